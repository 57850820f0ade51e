/* SPDX-License-Identifier: Apache-2.0 */
/* test_rewriting.c: every rewrite is counted. A pass that may make n of them makes n, leaves a valid graph, says that
 * it has changed, and leaves a remark for each; with none allowed the graph stays as it is, to the letter. And min_cut
 * against all ways to divide small sets. */
#include "passes/min_cut.h"
#include "passes/passes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *pass;
    int rewrites;
    const char *text;
} cases[] = {
    /* Two regions, each with a way through two nodes: two rewrites, not four. */
    {"sink_transpose", 2, "graph @f(%x: f32[3,4], %z: f32[5,6]) {\n"
                          "  %t: f32[4,3] = transpose %x perm=[1 0]\n"
                          "  %s: f32[4,3] = sigmoid %t\n"
                          "  %m: f32[4,3] = mul %s, %t\n"
                          "  %u: f32[6,5] = transpose %z perm=[1 0]\n"
                          "  %e: f32[6,5] = exp %u\n"
                          "  %n: f32[6,5] = neg %e\n"
                          "  return %m, %n\n"
                          "}\n"},
    /* There are more elements than an expression can say: no reason to report an error. */
    {"sink_transpose", 1, "graph @f<A, B, C, D>(%x: f32[A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,"
                          "A+B+C+D+1,A]) {\n"
                          "  %t: f32[A,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1] ="
                          " transpose %x perm=[7 6 5 4 3 2 1 0]\n"
                          "  %e: f32[A,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1,A+B+C+D+1] ="
                          " exp %t\n"
                          "  return %e\n"
                          "}\n"},
    {"canonicalize", 2, "graph @f(%x: i32[4], %y: i32[4]) {\n"
                        "  %n: i32[4] = neg %y\n"
                        "  %a: i32[4] = add %n, %x\n"
                        "  %k: i32[4] = const value=4\n"
                        "  %q: i32[4] = floor_div %a, %k\n"
                        "  return %q\n"
                        "}\n"},
    {"dead_results", 2, "graph @f(%n: i64[], %x: f32[4], %y: f32[4]) {\n"
                        "  graph @body(%i: i64[], %a: f32[4], %b: f32[4]) {\n"
                        "    %b2: f32[4] = neg %b\n"
                        "    return %a, %b2\n"
                        "  }\n"
                        "  %q: f32[4], %r: f32[4] = loop %n, %x, %y body=@body\n"
                        "  %v: f32[1], %i: i64[1] = top_k %r axis=0 k=1\n"
                        "  return %i\n"
                        "}\n"},
    {"fold_range", 3, "graph @f(%x: u8[4]) {\n"
                      "  %a: i32[4] = cast %x\n"
                      "  %b: i32[4] = abs %a\n"
                      "  %c: i16[4] = cast %b\n"
                      "  %d: f32[4] = cast %c\n"
                      "  return %d\n"
                      "}\n"},
    {"cancel_transpose", 2, "graph @f(%x: f32[3,4], %z: f32[3,5]) {\n"
                            "  %t: f32[4,3] = transpose %x perm=[1 0]\n"
                            "  %u: f32[5,3] = transpose %z perm=[1 0]\n"
                            "  %m: f32[4,5] = matmul %t, %u trans_b=1\n"
                            "  return %m\n"
                            "}\n"},
    /* A chain is taken at once; then its constant end is a padding, and the slice reads what is padded. */
    {"split_concat", 3, "graph @f(%x: f32[2], %y: f32[2]) {\n"
                        "  %k: f32[3] = const value=0\n"
                        "  %a: f32[4] = concat %x, %y axis=0\n"
                        "  %b: f32[7] = concat %a, %k axis=0\n"
                        "  %s: f32[4] = slice %b start=[0] end=[4]\n"
                        "  %e: f32[4] = exp %s\n"
                        "  return %e\n"
                        "}\n"},
    {"scatter_const", 2, "graph @f(%x: f32[1,4], %i: i64[1,4], %s: f32[2]) {\n"
                         "  %k: f32[3,4] = const value=0\n"
                         "  %a: f32[3,4] = scatter_elements %k, %i, %x axis=0\n"
                         "  %z: f32[5] = const value=1\n"
                         "  %j: i64[1] = extents value=[2]\n"
                         "  %b: f32[5] = dynamic_update %z, %s, %j\n"
                         "  return %a, %b\n"
                         "}\n"},
};

static int count_remarks(const struct weft_graph *graph, const char *pass)
{
    struct weft_remark remark = {.size = sizeof remark};
    int count = 0;
    for (size_t i = 0; weft_remark_get(graph, i, &remark) == WEFT_OK; i++)
        count += strncmp(remark.who, pass, strlen(pass)) == 0 && strcmp(remark.verdict, "done") == 0;
    return count;
}

static void open_case(const char *source, const char *limit, struct weft_context **ret_context,
                      struct weft_graph **ret_graph)
{
    setenv("WEFT_STOP_AFTER", limit, 1);
    assert_int_equal(weft_open(NULL, ret_context), WEFT_OK);
    assert_int_equal(weft_parse(*ret_context, source, strlen(source), "test", ret_graph), WEFT_OK);
    unsetenv("WEFT_STOP_AFTER");
}

static void every_rewrite_is_counted(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int allowed = 0; allowed <= cases[i].rewrites + 1; allowed++) {
            struct weft_context *context;
            struct weft_graph *graph;
            char limit[16], *before, *after;
            snprintf(limit, sizeof limit, "%d", allowed);
            open_case(cases[i].text, limit, &context, &graph);
            assert_int_equal(weft_print(graph, &before), WEFT_OK);
            assert_int_equal(weft_run_pass(graph, cases[i].pass, NULL), allowed > 0);
            assert_int_equal(weft_print(graph, &after), WEFT_OK);
            assert_int_equal(graph->rewrites, allowed < cases[i].rewrites ? allowed : cases[i].rewrites);
            assert_string_equal(weft_last_error(context), "");
            assert_int_equal(count_remarks(graph, cases[i].pass), graph->rewrites);
            assert_int_equal(strcmp(before, after) == 0, allowed == 0);
            assert_int_equal(weft_validate(graph), WEFT_OK);
            weft_free_text(context, before);
            weft_free_text(context, after);
            weft_graph_destroy(graph);
            weft_close(context);
        }
}

/* --- minimum cuts ----------------------------------------------------------------------------------------------- */

enum { PLACES = 7, EDGES = 14 };

struct edge {
    uint32_t from, to;
    int64_t capacity;
};

/* What it costs if the places of `near` are near. */
static int64_t cost_of(const struct edge *edge, unsigned near)
{
    int64_t cost = 0;
    for (unsigned i = 0; i < EDGES; i++)
        if (near >> edge[i].from & 1 && !(near >> edge[i].to & 1))
            cost += edge[i].capacity;
    return cost;
}

static unsigned bits_of(unsigned set)
{
    unsigned bits = 0;
    for (; set; set &= set - 1)
        bits++;
    return bits;
}

/* Of the cheapest ways, one has more places near than all others, because near sides of cheapest cuts add up to one. */
static void cuts_are_the_cheapest(void **state)
{
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        struct edge edge[EDGES];
        struct weft_arena arena;
        struct weft_cut cut;
        weft_arena_open(&arena, context);
        weft_cut_open(&cut, &arena, PLACES);
        for (unsigned i = 0; i < EDGES; i++) {
            random = random * 1664525 + 1013904223;
            edge[i] = (struct edge){random >> 8 & 255, random >> 16 & 255, random >> 24 & 7};
            edge[i].from %= PLACES;
            edge[i].to %= PLACES;
            if (edge[i].capacity == 7)
                edge[i].capacity = 1000;
            weft_cut_edge(&cut, edge[i].from, edge[i].to, edge[i].capacity);
        }
        unsigned best = 1, found = 0;
        for (unsigned near = 1; near < 1u << PLACES; near += 4) /* 0 is near, 1 is far */
            if (cost_of(edge, near) < cost_of(edge, best) ||
                (cost_of(edge, near) == cost_of(edge, best) && bits_of(near) > bits_of(best)))
                best = near;
        assert_true(weft_cut_solve(&cut));
        for (uint32_t place = 0; place < PLACES; place++)
            found |= (unsigned)weft_cut_is_near(&cut, place) << place;
        assert_int_equal(found, best);
        weft_arena_close(&arena);
    }
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rewrite_is_counted),
        cmocka_unit_test(cuts_are_the_cheapest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
