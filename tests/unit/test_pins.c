/* SPDX-License-Identifier: Apache-2.0 */
/* Which layout an operand or result has at no cost, given that of another one of the same node: every kind of op, in
 * both directions. */
#include "sched/pins.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of the last node of `graph`: pin `from` (r: the result, 0, 1, …: an operand) is stored in `layout`; then `to` is
 * stored in `outermost` or `innermost`, depending on where new axes go. NULL: the op says nothing. */
struct row {
    const char *graph;
    char from, to;
    const char *layout, *outermost, *innermost;
};

#define UNARY(op) "(%x: f32[2,3,4,5]) {\n %r: f32[2,3,4,5] = " op " %x\n return %r\n}"

static const struct row rows[] = {
    /* elementwise */
    {UNARY("exp"), '0', 'r', "{0 2 3 1}", "{0 2 3 1}", "{0 2 3 1}"},
    {UNARY("exp"), 'r', '0', "{3 2 1 0}", "{3 2 1 0}", "{3 2 1 0}"},
    {UNARY("exp"), '0', 'r', "{0 1 2 3 | 600 100 20 1}", "{0 1 2 3}", "{0 1 2 3}"}, /* padding stays behind */
    {"(%x: f32[2,32,4]) {\n %r: f32[2,32,4] = relu %x\n return %r\n}", '0', 'r', "{0 1/16 2 1%16}", "{0 1/16 2 1%16}",
     "{0 1/16 2 1%16}"},
    /* new axes go outside or inside */
    {"(%x: f32[3]) {\n %r: f32[2,3,4] = bcast %x dims=[1]\n return %r\n}", '0', 'r', "{0}", "{0 2 1}", "{1 0 2}"},
    {"(%x: f32[3,4]) {\n %r: f32[2,3,4] = bcast %x dims=[1 2]\n return %r\n}", '0', 'r', "{1 0}", "{0 2 1}", "{2 1 0}"},
    {"(%x: f32[3,4]) {\n %r: f32[2,3,4] = bcast %x dims=[1 2]\n return %r\n}", 'r', '0', "{2 0 1}", "{1 0}", "{1 0}"},
    /* axes move */
    {"(%x: f32[2,3,4]) {\n %r: f32[4,2,3] = transpose %x perm=[2 0 1]\n return %r\n}", '0', 'r', "{0 1 2}", "{1 2 0}",
     "{1 2 0}"},
    {"(%x: f32[2,3,4]) {\n %r: f32[4,2,3] = transpose %x perm=[2 0 1]\n return %r\n}", 'r', '0', "{0 1 2}", "{2 0 1}",
     "{2 0 1}"},
    /* axes go, and come back */
    {"(%x: f32[2,3,4,5]) {\n %r: f32[2,4,5] = sum %x axes=[1]\n return %r\n}", '0', 'r', "{0 2 3 1}", "{0 1 2}",
     "{0 1 2}"},
    {"(%x: f32[2,3,4,5]) {\n %r: f32[2,4,5] = sum %x axes=[1]\n return %r\n}", '0', 'r', "{3 1 0 2}", "{2 0 1}",
     "{2 0 1}"},
    {"(%x: f32[2,3,4,5]) {\n %r: f32[2,4,5] = sum %x axes=[1]\n return %r\n}", 'r', '0', "{0 1 2}", "{1 0 2 3}",
     "{0 2 3 1}"},
    {"(%x: f32[2,3,4,5]) {\n %r: f32[2,1,4,5] = mean %x axes=[1] keepdims=1\n return %r\n}", '0', 'r', "{0 3 2 1}",
     "{0 1 3 2}", "{0 1 3 2}"},
    {"(%x: f32[2,3,4]) {\n %r: i64[2,4] = arg_max %x axis=1\n return %r\n}", '0', 'r', "{2 1 0}", "{1 0}", "{1 0}"},
    /* split and merged */
    {"(%x: f32[2,12,5]) {\n %r: f32[2,3,4,5] = reshape %x\n return %r\n}", '0', 'r', "{0 2 1}", "{0 3 1 2}",
     "{0 3 1 2}"},
    {"(%x: f32[2,12,5]) {\n %r: f32[2,3,4,5] = reshape %x\n return %r\n}", 'r', '0', "{0 3 1 2}", "{0 2 1}", "{0 2 1}"},
    {"(%x: f32[2,12,5]) {\n %r: f32[2,3,4,5] = reshape %x\n return %r\n}", 'r', '0', "{0 2 1 3}", NULL, NULL},
    {"(%x: f32[2,3,4]) {\n %r: f32[24] = reshape %x\n return %r\n}", '0', 'r', "{1 0 2}", NULL, NULL},
    /* the same axes of other lengths */
    {"(%x: f32[2,3,4]) {\n %r: f32[2,2,4] = slice %x start=[0 1 0] end=[2 3 4]\n return %r\n}", '0', 'r', "{2 0 1}",
     "{2 0 1}", "{2 0 1}"},
    {"(%x: f32[2,3,4], %y: f32[2,1,4]) {\n %r: f32[2,4,4] = concat %x, %y axis=1\n return %r\n}", '0', 'r', "{2 1 0}",
     "{2 1 0}", "{2 1 0}"},
    {"(%x: f32[2,3,4], %y: f32[2,2,4]) {\n %r: f32[2,5,4] = concat %x, %y axis=1\n return %r\n}", 'r', '1', "{2 1 0}",
     "{2 1 0}", "{2 1 0}"},
    {"(%x: f32[2,3,4], %y: f32[]) {\n %r: f32[2,5,4] = pad %x, %y pad=[0 1 0 0 1 0]\n return %r\n}", '0', 'r',
     "{0 2 1}", "{0 2 1}", "{0 2 1}"},
    {"(%x: f32[2,3,4], %y: f32[]) {\n %r: f32[2,5,4] = pad %x, %y pad=[0 1 0 0 1 0]\n return %r\n}", 'r', '1',
     "{0 2 1}", NULL, NULL},
    {"(%x: f32[2,3,8,8]) {\n %r: f32[2,3,4,4] = max_pool %x kernel=[2 2] stride=[2 2]\n return %r\n}", '0', 'r',
     "{0 2 3 1}", "{0 2 3 1}", "{0 2 3 1}"},
    /* contractions */
    {"(%x: f32[2,3,8,8], %w: f32[5,3,3,3]) {\n %r: f32[2,5,6,6] = conv %x, %w\n return %r\n}", '0', 'r', "{0 2 3 1}",
     "{0 2 3 1}", "{0 2 3 1}"},
    {"(%x: f32[2,3,8,8], %w: f32[5,3,3,3]) {\n %r: f32[2,5,6,6] = conv %x, %w\n return %r\n}", 'r', '1', "{0 2 3 1}",
     NULL, NULL},
    {"(%x: f32[2,3,4,6], %y: f32[2,3,6,5]) {\n %r: f32[2,3,4,5] = matmul %x, %y\n return %r\n}", 'r', '0', "{1 2 0 3}",
     "{3 1 2 0}", "{1 2 0 3}"},
    {"(%x: f32[2,3,4,6], %y: f32[2,3,6,5]) {\n %r: f32[2,3,4,5] = matmul %x, %y\n return %r\n}", 'r', '1', "{3 1 2 0}",
     "{3 1 2 0}", "{3 1 2 0}"},
    {"(%x: f32[2,6,4], %y: f32[2,6,5]) {\n %r: f32[2,4,5] = matmul %x, %y trans_a=1\n return %r\n}", '0', 'r',
     "{1 2 0}", "{2 1 0}", "{1 0 2}"},
    {"(%q: f32[2,3,4,8], %k: f32[2,3,6,8], %v: f32[2,3,6,5]) {\n %r: f32[2,3,4,5] = attention %q, %k, %v factor=1\n "
     "return %r\n}", '0', 'r', "{0 2 1 3}", "{3 0 2 1}", "{0 2 1 3}"},
    {"(%q: f32[2,3,4,8], %k: f32[2,3,6,8], %v: f32[2,3,6,5]) {\n %r: f32[2,3,4,5] = attention %q, %k, %v factor=1\n "
     "return %r\n}", 'r', '2', "{0 2 1 3}", "{2 0 1 3}", "{0 1 3 2}"},
    {"(%x: f32[2,1,8,8], %w: f32[5,1,3,3]) {\n %r: f32[2,5,6,6] = conv %x, %w\n return %r\n}", '0', 'r', "{2 3 0 1}",
     "{2 3 0 1}", "{2 3 0 1}"},
    {"(%x: f32[2,6,8], %w: f32[6,1,3]) {\n %r: f32[2,6,6] = conv %x, %w groups=6\n return %r\n}", 'r', '0', "{0 2 1}",
     "{0 2 1}", "{0 2 1}"},
    {"(%q: f32[2,3,4,8], %k: f32[2,1,6,8], %v: f32[2,1,6,5]) {\n %r: f32[2,3,4,5] = attention %q, %k, %v factor=1\n "
     "return %r\n}", '2', 'r', "{2 0 1 3}", "{2 0 1 3}", "{0 1 3 2}"},
    {"(%x: f32[2,6,8]) {\n %r: f32[2,6,8] = softmax %x axis=2\n return %r\n}", '0', 'r', "{2 0 1}", "{2 0 1}",
     "{2 0 1}"},
    /* by index */
    {"(%x: f32[2,9,4], %i: i64[3,5]) {\n %r: f32[2,3,5,4] = gather %x, %i axis=1\n return %r\n}", '0', 'r', "{2 1 0}",
     "{3 1 2 0}", "{3 1 2 0}"},
    {"(%x: f32[2,9,4], %i: i64[3,5]) {\n %r: f32[2,3,5,4] = gather %x, %i axis=1\n return %r\n}", '1', 'r', "{1 0}",
     "{0 3 2 1}", "{2 1 0 3}"},
    {"(%x: f32[2,9,4], %i: i64[3,5]) {\n %r: f32[2,3,5,4] = gather %x, %i axis=1\n return %r\n}", 'r', '1',
     "{0 2 3 1}", "{1 0}", "{1 0}"},
    /* nothing is known */
    {"(%x: f32[3,3]) {\n %r: f32[] = det %x\n return %r\n}", '0', 'r', "{1 0}", NULL, NULL},
};

struct job {
    struct weft_context *context;
    const struct row *row;
    struct weft_graph *graph;
};

static struct weft_pin pin_of(const struct weft_graph *g, char name)
{
    return (struct weft_pin){.node = g->last, .result = name == 'r', .index = name == 'r' ? 0 : (uint32_t)(name - '0')};
}

static void expect(struct job *job, const struct weft_layout *layout, enum weft_new_axes place, const char *wanted)
{
    struct weft_graph *g = job->graph;
    const struct weft_pin to = pin_of(g, job->row->to);
    struct weft_layout got, want;
    const bool carried = weft_carry_layout(g, pin_of(g, job->row->from), layout, to, place, &got);
    if (!wanted) {
        assert_false(carried);
        return;
    }
    const char *cursor = wanted, *message = NULL;
    assert_true(weft_layout_parse(g->dims, &cursor, wanted + strlen(wanted), &want, &message));
    assert_true(carried);
    weft_layout_canonical(g->dims, &want, weft_type_of(g, weft_pin_value(g, to)));
    if (!weft_layout_same(&got, &want)) {
        struct weft_text text = {.context = job->context, .arena = g->arena};
        weft_layout_print(g->dims, &got, &text);
        print_error("%s\n%c%s to %c: %s instead of %s\n", job->row->graph, job->row->from, job->row->layout,
                    job->row->to, text.length ? text.data : "row-major", wanted);
        fail();
    }
}

static int check(void *arg)
{
    struct job *job = arg;
    const char *cursor = job->row->layout, *message = NULL;
    struct weft_layout layout;
    assert_true(weft_layout_parse(job->graph->dims, &cursor, cursor + strlen(cursor), &layout, &message));
    expect(job, &layout, WEFT_NEW_OUTERMOST, job->row->outermost);
    expect(job, &layout, WEFT_NEW_INNERMOST, job->row->innermost);
    return WEFT_OK;
}

static void layouts_are_carried(void **state)
{
    struct job job = {0};
    assert_int_equal(weft_open(NULL, &job.context), WEFT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        job.row = &rows[i];
        const int length = snprintf(text, sizeof text, "graph @g%s\n", rows[i].graph);
        if (weft_parse(job.context, text, (size_t)length, "row", &job.graph) != WEFT_OK)
            fail_msg("%s\n%s", text, weft_last_error(job.context));
        assert_int_equal(weft_protected(job.context, check, &job), WEFT_OK);
        weft_graph_destroy(job.graph);
    }
    weft_close(job.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_are_carried)};
    return cmocka_run_group_tests_name("pins", tests, NULL, NULL);
}
