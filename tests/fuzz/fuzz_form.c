/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_form.c: bytes as the text of a kernel form.
 *
 * Whatever the bytes are, the parser returns a form, or a message that begins with a line's number. A form has no
 * fault, and prints; what prints parses, and prints the same again. It can be counted at any sizes, and no count is
 * below 0. */
#include "codegen/form.h"
#include "ir/text.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const size_t weft_fuzz_limit = 4096;

struct check {
    struct weft_context *context;
    struct weft_arena arena;
    const uint8_t *data;
    size_t size;
};

static void check_counts(struct check *c, const struct weft_form *form)
{
    const uint32_t symbols = weft_symbol_count(form->dims);
    int64_t *const value = weft_new(&c->arena, int64_t, symbols + 1);
    struct weft_form_counts counts;
    uint64_t random = c->size;
    for (int round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < symbols; i++)
            value[i] = round == 3 ? INT32_MAX : weft_fuzz_draw(&random, 40);
        weft_form_count(form, value, &counts);
        weft_fuzz_require(counts.bytes_read >= 0 && counts.bytes_written >= 0 && counts.elements_read >= 0 &&
                          counts.elements_written >= 0 && counts.flops >= 0 && counts.points >= 0 &&
                          counts.kept_bytes >= 0);
    }
}

static int check_text(void *arg)
{
    struct check *const c = arg;
    struct weft_dims *const dims = weft_dims_new(&c->arena);
    struct weft_text text = {.context = c->context, .arena = &c->arena}, again = text;
    const char *fault = NULL;
    const struct weft_form *form = weft_form_parse((const char *)c->data, c->size, dims, &c->arena, &fault);
    weft_fuzz_require((form == NULL) == (fault != NULL));
    weft_fuzz_require(form || (fault[0] >= '1' && fault[0] <= '9' && strchr(fault, ':')));
    if (!form)
        return WEFT_OK;
    weft_fuzz_require(weft_form_fault(form, &c->arena) == NULL);
    weft_form_print(form, &text);
    check_counts(c, form);
    form = weft_form_parse(text.data, text.length, dims, &c->arena, &fault);
    if (!form)
        weft_fuzz_fail("%s in what was printed:\n%s", fault, text.data);
    weft_form_print(form, &again);
    weft_fuzz_require(strcmp(text.data, again.data) == 0);
    return WEFT_OK;
}

void weft_fuzz_check(const uint8_t *data, size_t size)
{
    struct weft_fuzz_budget budget;
    struct check check = {.context = weft_fuzz_open(&budget), .data = data, .size = size};
    weft_arena_open(&check.arena, check.context);
    weft_protected(check.context, check_text, &check);
    weft_arena_close(&check.arena);
    weft_fuzz_close(check.context, &budget);
}

/* --- mutation ----------------------------------------------------------------------------------------------------- */

size_t weft_fuzz_mutate(uint8_t *data, size_t size, size_t room, uint64_t *random)
{
    static const char *const tokens[] = {
        " by 2", " by 128", " by N", ", r", ", c", "r", "c", "t", "r, c", " + 1", " - 1", " ?", "2*", "(N)*", "-", "[",
        "]", "%0", "%1", "%m", "f32", "i32", "bool", " over c", " over r", " = 0", " else 1", "fold sum ", "scan sum ",
        "const 1", "add ", "clamp(0, 6) ", "load %x", "store %y", "next ", "carry ", "begin {\n", "along c {\n",
        "sweep {\n", "contract {\n", "phase {\n", "}\n", "{", "\n", "axis u in 3\n", "scratch ", "out ",
        "4611686018427387903"};
    const uint32_t how = weft_fuzz_draw(random, 4);
    if (how == 0)
        return weft_fuzz_mutate_bytes(data, size, room, random);
    if (how == 1)
        return weft_fuzz_mutate_text(data, size, room, random);
    const char *const token = tokens[weft_fuzz_draw(random, sizeof tokens / sizeof *tokens)];
    const size_t at = weft_fuzz_draw(random, size + 1), left = size - at, old = weft_fuzz_draw(random, 4);
    return weft_fuzz_splice(data, size, room, at, old < left ? old : left, token, strlen(token));
}
