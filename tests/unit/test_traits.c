/* SPDX-License-Identifier: Apache-2.0 */
/* test_traits.c: what traits say of ops, and tables of passes, held to index maps and to what the evaluator computes:
 * for every op that has them. */
#include "eval/eval.h"
#include "ir/index_rules.h"
#include "ir/rules.h"
#include "tests/unit/sample_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MEMORY = 1 << 20, N = 7, MOST = 8 };

/* --- graphs of every op with a trait ------------------------------------------------------------------------------ */

struct subject {
    const struct weft_graph *graph;
    weft_node node;
    const char *name;
};
typedef void check_function(const struct subject *subject);

static bool check_graph(struct weft_context *context, const struct sample *sample, check_function *check)
{
    struct weft_graph *f64 = sample_graph(context, sample, WEFT_F64);
    struct weft_graph *g = f64 ? f64 : sample_graph(context, sample, WEFT_BOOL);
    struct subject subject = {.graph = g, .name = weft_ops[sample->op].name};
    if (!g)
        return false;
    weft_foreach_node(g, n)
        if (weft_opcode_of(g, n) == sample->op)
            subject.node = n;
    assert_true(subject.node.id);
    check(&subject);
    weft_graph_destroy(g);
    return true;
}

static bool check_op(struct weft_context *context, int op, check_function *check)
{
    static const char *const params[] = {"%x: T[5,N]", "%x: T[5,N], %z: T[5,N]",
                                         "%b: bool[5,N], %x: T[5,N], %z: T[5,N]"};
    static const char *const operands[] = {"%x", "%x, %z", "%b, %x, %z"};
    const int count = weft_ops[op].min_operands;
    bool seen = false;
    for (size_t i = 0; i < SAMPLES; i++)
        if (samples[i].op == op)
            seen |= check_graph(context, &samples[i], check);
    if (weft_ops[op].traits & WEFT_ELEMENTWISE && count >= 1 && count <= 3) {
        char line[128];
        snprintf(line, sizeof line, "%%y: T[5,N] = %s %s", weft_ops[op].name, operands[count - 1]);
        seen |= check_graph(context, &(struct sample){op, params[count - 1], line, "%y"}, check);
    }
    return seen;
}

static void check_all(uint32_t traits, check_function *check)
{
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        if (weft_ops[op].traits & traits && !check_op(context, op, check))
            fail_msg("no sample has %s", weft_ops[op].name);
    weft_close(context);
}

/* --- what index maps say ------------------------------------------------------------------------------------------ */

static int64_t extent_of(const struct weft_graph *g, weft_dim extent)
{
    return weft_dim_evaluate(g->dims, extent, (const int64_t[]){N, 0});
}

static int64_t elements_of(const struct weft_graph *g, weft_val v)
{
    const struct weft_type *type = weft_type_of(g, v);
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= extent_of(g, type->extent[i]);
    return count;
}

static int64_t points_of(const struct subject *s, struct weft_space *ret)
{
    int64_t points = 1;
    assert_true(weft_index_space(s->graph, s->node, ret));
    for (int a = 0; a < ret->axes; a++)
        points *= extent_of(s->graph, ret->axis[a].extent);
    return points;
}

/* How many points of a view stand at each element of the operand; false where the map does not tell. */
static bool count_visits(const struct subject *s, int *visits)
{
    const struct weft_type *type = weft_type_of(s->graph, weft_operand(s->graph, s->node, 0));
    struct weft_space space;
    struct weft_index_map map;
    const int64_t points = points_of(s, &space);
    assert_true(weft_index_map(s->graph, (struct weft_pin){.node = s->node}, &map));
    for (int64_t p = 0; p < points; p++) {
        int64_t point[WEFT_SPACE_AXES], rest = p, at = 0;
        for (int a = space.axes - 1; a >= 0; a--) {
            point[a] = rest % extent_of(s->graph, space.axis[a].extent);
            rest /= extent_of(s->graph, space.axis[a].extent);
        }
        for (int i = 0; i < map.rank; i++) {
            if (map.at[i].is_near || map.at[i].data)
                return false;
            at = at * extent_of(s->graph, type->extent[i]) +
                 weft_index_at(s->graph->dims, &map.at[i], (const int64_t[]){N, 0}, point);
        }
        visits[at]++;
    }
    return true;
}

static void check_view(const struct subject *s)
{
    const int64_t count = elements_of(s->graph, weft_operand(s->graph, s->node, 0));
    bool once = count == elements_of(s->graph, weft_result(s->graph, s->node, 0));
    int *visits = calloc((size_t)count, sizeof *visits);
    if (count_visits(s, visits))
        for (int64_t i = 0; i < count; i++)
            once &= visits[i] == 1;
    free(visits);
    if (once != ((weft_op_of(s->graph, s->node)->traits & WEFT_BIJECTIVE) != 0))
        fail_msg("%s: the trait `bijective` is not what its map says", s->name);
}

static void views_show_each_element_once_where_they_say_so(void **state)
{
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        assert_true((weft_ops[op].traits & WEFT_VIEW) || !(weft_ops[op].traits & WEFT_BIJECTIVE));
    check_all(WEFT_VIEW, check_view);
}

static void check_linear(const struct subject *s)
{
    struct weft_space space;
    const struct weft_node_info *info = weft_node_of(s->graph, s->node);
    int64_t elements = 0;
    for (unsigned i = 0; i < info->operands; i++)
        elements += elements_of(s->graph, weft_operand(s->graph, s->node, i));
    for (unsigned i = 0; i < info->results; i++)
        elements += elements_of(s->graph, weft_result(s->graph, s->node, i));
    if (!(weft_ops[info->op].traits & WEFT_UPDATE) && points_of(s, &space) > elements)
        fail_msg("%s runs over more points than it has elements", s->name);
}

static void linear_ops_are_linear(void **state)
{
    check_all(WEFT_LINEAR | WEFT_SCAN, check_linear);
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        const uint32_t traits = weft_ops[op].traits;
        const bool folds = traits & WEFT_REDUCTION && weft_ops[op].index == weft_index_reduce;
        if (!(traits & WEFT_UPDATE) && folds != ((traits & WEFT_LINEAR) != 0))
            fail_msg("%s: a reduction without windows is linear, and nothing else needs to say so", weft_ops[op].name);
    }
}

static void check_update(const struct subject *s)
{
    struct weft_index_map map;
    assert_true(weft_index_map(s->graph, (struct weft_pin){.node = s->node}, &map));
    assert_int_equal(map.rank, weft_type_of(s->graph, weft_result(s->graph, s->node, 0))->rank);
    for (int i = 0; i < map.rank; i++)
        if (weft_index_axis(&map.at[i]) != i)
            fail_msg("%s: operand 0 does not stand where the result does", s->name);
}

static void updates_read_what_they_leave(void **state) { check_all(WEFT_UPDATE, check_update); }

static void recurrent_ops_have_their_rule(void **state)
{
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        assert_int_equal((weft_ops[op].traits & WEFT_RECURRENT) != 0, weft_ops[op].infer == weft_infer_recurrent);
}

static void elementwise_ops_and_ops_with_maps_are_walked(void **state)
{
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        const struct weft_op_info *info = &weft_ops[op];
        if (info->traits & WEFT_ELEMENTWISE && info->walked != -1)
            fail_msg("%s: elementwise kernels walk all operands in any order", info->name);
        if (info->walked && info->index == weft_index_unknown)
            fail_msg("%s is walked in any order, but has no index map that says along which axes", info->name);
        if (info->max_operands >= 0 && info->walked > info->max_operands)
            fail_msg("%s has at most %d operands, of which %d are walked", info->name, info->max_operands,
                     info->walked);
    }
}

/* Axes of the result that run with one of operand 0 stand side by side, in the order of operand 0: what sink_transpose
 * relies on. */
static void check_sink(const struct subject *s)
{
    struct weft_follow follow[WEFT_MAX_RANK];
    int at = 0;
    assert_true(weft_index_follow(s->graph, (struct weft_pin){.node = s->node}, follow));
    for (int i = 0; i < weft_type_of(s->graph, weft_operand(s->graph, s->node, 0))->rank; i++) {
        if (follow[i].axes && follow[i].axis != at)
            fail_msg("%s: axis %d of operand 0 is axis %d of the result instead of %d", s->name, i, follow[i].axis, at);
        at += follow[i].axes;
    }
    if (at != weft_type_of(s->graph, weft_result(s->graph, s->node, 0))->rank)
        fail_msg("%s: the result has other axes than those of operand 0", s->name);
}

static void transposes_move_where_axes_keep_their_order(void **state)
{
    static const struct {
        int op;
        const char *rule;
    } rows[] = {
#define SINK(op, rule) {WEFT_OP_##op, #rule},
#include "passes/sink.def"
    };
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bool has_own_rule = strcmp(rows[i].rule, weft_ops[rows[i].op].name) == 0;
        if (!has_own_rule && !check_op(context, rows[i].op, check_sink))
            fail_msg("no sample has %s", weft_ops[rows[i].op].name);
    }
    weft_close(context);
}

/* --- what the evaluator computes ---------------------------------------------------------------------------------- */

struct run {
    struct weft_tensor in[MOST], out[MOST];
};

/* Parameters of floats are filled with `number` over and over, unless there are none. */
static void evaluate(const struct subject *s, const double *number, int numbers, struct run *run)
{
    static char memory[MEMORY];
    const struct weft_graph *g = s->graph;
    memset(run, 0, sizeof *run);
    sample_fill(g, run->in, N, memory);
    for (uint32_t i = 0; i < g->params && numbers; i++)
        for (int64_t k = 0; k < weft_tensor_count(&run->in[i]); k++)
            if (weft_dtype_is_float(run->in[i].dtype))
                weft_store_real(run->in[i].dtype, run->in[i].data, k, number[(k + (int64_t)i) % numbers]);
    if (weft_evaluate(g, run->in, g->params, run->out, g->returns) != WEFT_OK)
        fail_msg("%s: %s", s->name, weft_last_error(g->context));
}

static void close_run(const struct subject *s, struct run *run)
{
    for (uint32_t i = 0; i < s->graph->returns; i++)
        weft_tensor_free(s->graph->context, &run->out[i]);
}

static bool has_element(const struct run *run, double x)
{
    for (int i = 0; i < MOST; i++)
        for (int64_t k = 0; run->in[i].data && run->in[i].dtype == WEFT_F64 && k < weft_tensor_count(&run->in[i]); k++)
            if (fabs(weft_load_real(WEFT_F64, run->in[i].data, k)) == fabs(x))
                return true;
    return false;
}

static void check_exact(const struct subject *s)
{
    struct run run;
    evaluate(s, NULL, 0, &run);
    for (int64_t k = 0; k < weft_tensor_count(&run.out[0]); k++) {
        const double x = weft_load_real(WEFT_F64, run.out[0].data, k);
        if (x != 0 && !isinf(x) && !isnan(x) && !has_element(&run, x))
            fail_msg("%s: %g is no element of an operand", s->name, x);
    }
    close_run(s, &run);
}

static void exact_ops_give_elements_of_operands(void **state) { check_all(WEFT_EXACT, check_exact); }

static void check_zeros(const struct subject *s)
{
    static const double numbers[] = {-0.0, -0.0, -0.0, 0.0, -0.0, -1.5, -HUGE_VAL, 2};
    for (int count = 1; count <= 8; count++) {
        struct run run;
        evaluate(s, numbers, count, &run);
        for (int64_t k = 0; k < weft_tensor_count(&run.out[0]); k++) {
            const double x = weft_load_real(WEFT_F64, run.out[0].data, k);
            if (x == 0 && signbit(x))
                fail_msg("%s gives -0", s->name);
        }
        close_run(s, &run);
    }
}

static void no_minus_zero_where_ops_say_so(void **state) { check_all(WEFT_UNSIGNED_ZERO, check_zeros); }

static void check_rounding(const struct subject *s)
{
    static const double numbers[] = {-2, -1.75, -1.5, -1, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 3};
    struct run run;
    evaluate(s, numbers, sizeof numbers / sizeof *numbers, &run);
    for (int64_t k = 0; k < weft_tensor_count(&run.out[0]); k++) {
        const double x = weft_load_real(WEFT_F64, run.in[0].data, k), y = weft_load_real(WEFT_F64, run.out[0].data, k);
        if (y != floor(y) || fabs(y - x) >= 1)
            fail_msg("%s: %g becomes %g", s->name, x, y);
    }
    close_run(s, &run);
}

static void rounding_gives_whole_numbers(void **state) { check_all(WEFT_ROUNDING, check_rounding); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_show_each_element_once_where_they_say_so),
        cmocka_unit_test(linear_ops_are_linear),
        cmocka_unit_test(updates_read_what_they_leave),
        cmocka_unit_test(recurrent_ops_have_their_rule),
        cmocka_unit_test(elementwise_ops_and_ops_with_maps_are_walked),
        cmocka_unit_test(transposes_move_where_axes_keep_their_order),
        cmocka_unit_test(exact_ops_give_elements_of_operands),
        cmocka_unit_test(no_minus_zero_where_ops_say_so),
        cmocka_unit_test(rounding_gives_whole_numbers),
    };
    return cmocka_run_group_tests_name("traits", tests, NULL, NULL);
}
