/* SPDX-License-Identifier: Apache-2.0 */
/* test_public.c: the builder of weft.h against callers that are wrong: every mistake is a status and a message, and the
 * graph stays what it was. */
#include "ir/ir.h"

#include <math.h>
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

static struct builder open_builder(void)
{
    struct builder b = {0};
    assert_int_equal(weft_open(NULL, &b.context), WEFT_OK);
    assert_int_equal(weft_graph_create(b.context, "g", &b.graph), WEFT_OK);
    return b;
}

static void close_builder(struct builder *b)
{
    weft_graph_destroy(b->graph);
    weft_close(b->context);
}

#define assert_refused(b, status, part) refused((b), (status), (part), __LINE__)
static void refused(const struct builder *b, int status, const char *part, int line)
{
    if (status != WEFT_ERR_ARGUMENT || !strstr(weft_last_error(b->context), part))
        fail_msg("line %d: status %d, '%s'", line, status, weft_last_error(b->context));
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

static void test_constants_need_their_data(void **state)
{
    (void)state;
    struct builder b = open_builder();
    const int64_t hundred[] = {100}, none[] = {0, 5}, huge[] = {(int64_t)1 << 40, (int64_t)1 << 40},
                  large[] = {(int64_t)1 << 50}, negative[] = {-1}, wide[] = {INT64_MAX};
    const float number = 1;
    weft_val v = {0};
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, hundred, NULL, &v), "data");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 0, NULL, NULL, &v), "data");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, NULL, &number, &v), "rank");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 9, hundred, &number, &v), "rank");
    assert_refused(&b, weft_constant(b.graph, 77, 1, hundred, &number, &v), "element type");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 2, huge, &number, &v), "bytes");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, large, &number, &v), "bytes");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, wide, &number, &v), "extent");
    assert_refused(&b, weft_constant(b.graph, WEFT_F32, 1, negative, &number, &v), "extent");
    assert_int_equal(b.graph->nodes, 1);
    assert_int_equal(weft_constant(b.graph, WEFT_F32, 2, none, NULL, &v), WEFT_OK);
    assert_int_equal(weft_constant(b.graph, WEFT_F32, 0, NULL, &number, &v), WEFT_OK);
    close_builder(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constants_need_their_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
