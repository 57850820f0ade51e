/* SPDX-License-Identifier: Apache-2.0 */
/* builder_support.h: a graph in the making, for tests of the public builder. */
#ifndef WEFT_TEST_BUILDER_SUPPORT_H
#define WEFT_TEST_BUILDER_SUPPORT_H

#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct builder {
    struct weft_context *context;
    struct weft_graph *graph;
};

static inline struct builder open_builder(void)
{
    struct builder b = {0};
    assert_int_equal(weft_open(NULL, &b.context), WEFT_OK);
    assert_int_equal(weft_graph_create(b.context, "g", &b.graph), WEFT_OK);
    return b;
}

static inline void close_builder(struct builder *b)
{
    weft_graph_destroy(b->graph);
    weft_close(b->context);
}

#define assert_refused(b, status, part) refused((b), (status), (part), __LINE__)
static inline void refused(const struct builder *b, int status, const char *part, int line)
{
    if (status != WEFT_ERR_ARGUMENT || !strstr(weft_last_error(b->context), part))
        fail_msg("line %d: status %d, '%s'", line, status, weft_last_error(b->context));
}

/* Prints, parses and prints again: both texts are equal and hold `part`. */
static inline void assert_prints_twice(const struct builder *b, const char *part)
{
    char *text = NULL, *again = NULL;
    struct weft_graph *copy = NULL;
    assert_int_equal(weft_print(b->graph, &text), WEFT_OK);
    if (!strstr(text, part))
        fail_msg("no '%s' in %s", part, text);
    if (weft_parse(b->context, text, strlen(text), "text", &copy) != WEFT_OK)
        fail_msg("%s: %s", weft_last_error(b->context), text);
    assert_int_equal(weft_print(copy, &again), WEFT_OK);
    assert_string_equal(text, again);
    weft_graph_destroy(copy);
    weft_free_text(b->context, text);
    weft_free_text(b->context, again);
}

#endif
