/* SPDX-License-Identifier: Apache-2.0 */
/* form_support.h: kernel forms from texts, and the kernels that codegen/README.md has. */
#ifndef WEFT_TEST_FORM_SUPPORT_H
#define WEFT_TEST_FORM_SUPPORT_H

#include "codegen/form_parts.h"
#include "ir/text.h"
#include "tests/unit/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static inline struct weft_form *parse(struct fixture *f, const char *text)
{
    const char *fault = NULL;
    struct weft_form *const form = weft_form_parse(text, strlen(text), f->dims, f->arena, &fault);
    if (!form)
        fail_msg("%s\n%s", fault, text);
    return form;
}

static inline const char *print(struct fixture *f, const struct weft_form *form)
{
    struct weft_text text = {.context = f->context};
    weft_form_print(form, &text);
    return fixture_text(f, &text);
}

static inline const char *read_readme(struct fixture *f)
{
    char path[4096];
    const char *const source = getenv("WEFT_SOURCE");
    snprintf(path, sizeof path, "%s/codegen/README.md", source ? source : ".");
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    char *const text = weft_arena_new(f->arena, 1 << 18);
    const size_t length = fread(text, 1, (1 << 18) - 1, file);
    fclose(file);
    text[length] = '\0';
    return text;
}

/* The kernel of that name, or the next one from *cursor on where name is NULL. NULL where there is none. */
static inline const char *find_kernel(struct fixture *f, const char **cursor, const char *name)
{
    const char *at = *cursor;
    while ((at = strstr(at, "```\nkernel @")) != NULL) {
        const char *const start = at + 4, *const end = strstr(start, "```");
        assert_non_null(end);
        *cursor = at = end + 3;
        if (!name || strncmp(start + strlen("kernel @"), name, strlen(name)) == 0)
            return weft_arena_copy(f->arena, start, (size_t)(end - start));
    }
    return NULL;
}

#endif
