/* SPDX-License-Identifier: Apache-2.0 */
/* test_concat_parts.c: which operands of a concat hold a slice. Wide concats are searched by what has been noted about
 * them; here their answers are those of a search from the first operand on, over extents that are numbers, 0 among
 * them, and symbols. */
#include "passes/split_concat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPERANDS = 40 };

/* Does what was found hold [start, end), as far as is known for all sizes? */
static bool holds(struct weft_dims *dims, const weft_dim *begin, const struct weft_holders *found, weft_dim start,
                  weft_dim end)
{
    return weft_dim_same(found->before, begin[found->first]) && weft_dim_at_most(dims, found->before, start) &&
           weft_dim_at_most(dims, end, begin[found->last + 1]);
}

/* The number of operands that a search from the first one finds. */
static unsigned fewest(struct weft_dims *dims, const weft_dim *begin, weft_dim start, weft_dim end)
{
    unsigned first = 0;
    for (unsigned i = 0; i < OPERANDS; i++) {
        if (weft_dim_at_most(dims, begin[i], start))
            first = i;
        if (weft_dim_at_most(dims, end, begin[i + 1]))
            return i - first + 1;
    }
    return OPERANDS - first;
}

/* Concats `extent[0..OPERANDS)`, and asks for all pairs of places where something begins, and of one behind them. */
static void try_all(const char *const *extent)
{
    struct weft_context *context;
    struct weft_graph *graph;
    char text[16384] = "graph @f<N, M=1..9>(";
    size_t length = strlen(text);
    for (unsigned i = 0; i < OPERANDS; i++)
        length += (size_t)sprintf(text + length, "%s%%x%u: f32[%s]", i ? ", " : "", i, extent[i]);
    length += (size_t)sprintf(text + length, ") {\n  %%c: f32[");
    for (unsigned i = 0; i < OPERANDS; i++)
        length += (size_t)sprintf(text + length, "%s%s", i ? "+" : "", extent[i]);
    length += (size_t)sprintf(text + length, "] = concat");
    for (unsigned i = 0; i < OPERANDS; i++)
        length += (size_t)sprintf(text + length, "%s %%x%u", i ? "," : "", i);
    sprintf(text + length, " axis=0\n  return %%c\n}\n");
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    if (weft_parse(context, text, strlen(text), "parts", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    struct weft_dims *dims = graph->dims;
    const weft_node concat = graph->first;
    weft_dim begin[OPERANDS + 1] = {weft_dim_of(0)};
    for (unsigned i = 0; i < OPERANDS; i++)
        begin[i + 1] = weft_dim_add(dims, begin[i], weft_type_of(graph, weft_operand(graph, concat, i))->extent[0]);
    graph->root->pass_memory = NULL;
    unsigned asked = 0;
    for (unsigned a = 0; a < 2 * OPERANDS; a++)
        for (unsigned b = a; b < 2 * OPERANDS + 1; b++) {
            const weft_dim start = weft_dim_add(dims, begin[a / 2], weft_dim_of(a % 2)),
                           end = weft_dim_add(dims, begin[b / 2], weft_dim_of(b % 2));
            if (!weft_dim_at_most(dims, start, end) || !weft_dim_at_most(dims, end, begin[OPERANDS]))
                continue;
            struct weft_holders found;
            assert_true(weft_find_holders(graph, concat, 0, start, end, &found));
            assert_true(holds(dims, begin, &found, start, end));
            assert_true(found.last - found.first + 1 <= fewest(dims, begin, start, end));
            asked++;
        }
    assert_true(asked > OPERANDS);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void wide_concats_are_searched_as_narrow_ones(void **state)
{
    static const char *const kinds[][4] = {
        {"1", "1", "1", "1"}, {"3", "0", "2", "5"}, {"0", "0", "4", "0"}, {"N", "N", "N", "N"},
        {"2", "N", "0", "M"}, {"M", "3", "2*N", "0"},
    };
    srand(1);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const char *extent[OPERANDS];
        for (unsigned i = 0; i < OPERANDS; i++)
            extent[i] = kinds[k][rand() % 4];
        try_all(extent);
        for (unsigned i = 0; i < 10; i++) /* numbers first */
            extent[i] = kinds[1][rand() % 4];
        try_all(extent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_concats_are_searched_as_narrow_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
