/* SPDX-License-Identifier: Apache-2.0 */
/* test_index_map.c: index maps of every op: their texts, and whether they tell the truth. Graphs of one op are computed
 * by the evaluator again and again with one element of an operand changed; whatever changes in a result must be related
 * to that element by some point of the space. Rows marked TIGHT are held to the other direction too: that each related
 * element changes something (a NaN does, wherever it takes part). */
#include "ir/index_rules.h"
#include "ir/places.h"
#include "tests/unit/sample_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MEMORY = 1 << 20, N = 4, MOST = 16 };
enum { LOOSE, TIGHT };

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static const struct row {
    int tight;
    const char *params, *line; /* of the type T, and what the node is */
    const char *map;           /* its text, or NULL: not held to one */
} rows[] = {
#define INDEX_SAMPLE(tight, params, line, map) {tight, params, line, map},
#include "tests/unit/index_samples.def"
};

static struct weft_graph *parse_row(struct weft_context *context, const struct row *row)
{
    struct weft_graph *graph;
    char text[1024], *at = text + sprintf(text, "graph @g<N=0.. hint=4>(");
    sample_put(&at, row->params, "f64");
    at += sprintf(at, "%s%%nn: f64[N]) {\n", *row->params ? ", " : "");
    sample_put(&at, row->line, "f64");
    sprintf(at, "\nreturn %%y\n}\n");
    if (weft_parse(context, text, strlen(text), "row", &graph) != WEFT_OK)
        fail_msg("%s: %s", text, weft_last_error(context));
    return graph;
}

static void texts(void **state)
{
    struct weft_context *context;
    int failures = 0;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weft_graph *g = parse_row(context, &rows[i]);
        const weft_node n = g->last;
        struct weft_text text = {.context = context};
        struct weft_space space;
        struct weft_index_map map;
        const bool known = weft_index_space(g, n, &space);
        weft_index_print_space(g->dims, &space, &text);
        for (unsigned k = 0; known && k <= g->node[n.id].operands; k++) {
            const struct weft_pin pin = {n, .result = k == 0, .index = k ? k - 1 : 0};
            weft_text_add(&text, k ? " " : space.axes ? "; " : "");
            if (weft_index_map(g, pin, &map))
                weft_index_print_map(g->dims, &map, &text);
            else
                weft_text_add(&text, "unknown");
        }
        if (rows[i].map && strcmp(rows[i].map, known ? text.data : "unknown") != 0) {
            print_error("%s\n    expected %s\n    but is   %s\n", rows[i].line, rows[i].map, text.data);
            failures++;
        }
        weft_text_close(&text);
        weft_graph_destroy(g);
    }
    weft_close(context);
    assert_int_equal(failures, 0);
}

/* --- what is related ---------------------------------------------------------------------------------------------- */

/* A box of elements: along each axis from .. to. */
struct box {
    int rank;
    int64_t from[WEFT_MAX_RANK], to[WEFT_MAX_RANK];
};

struct trial {
    const struct weft_graph *graph;
    weft_node node;
    const char *what;
    struct weft_tensor in[MOST], base[MOST], out[MOST];
    int64_t symbols[2];
    struct weft_space space;
    bool *related; /* elements of the result by elements of the operand */
};

/* Where the points stand, all along axes that are not known; false: nowhere. */
static bool box_of(const struct trial *t, const struct weft_index_map *map, const struct weft_tensor *tensor,
                   const int64_t *point, struct box *ret)
{
    static const char *const form[] = {[WEFT_BORDER_EDGE] = "edge", [WEFT_BORDER_REFLECT] = "reflect",
                                       [WEFT_BORDER_WRAP] = "wrap"};
    ret->rank = map->rank;
    for (int i = 0; i < map->rank; i++) {
        const struct weft_index *index = &map->at[i];
        bool open = index->is_near || index->data;
        for (unsigned k = 0; k < index->terms; k++)
            open |= t->space.axis[index->term[k].axis].role == WEFT_AXIS_SCANNED;
        int64_t at = weft_index_at(t->graph->dims, index, t->symbols, point);
        if (open) {
            ret->from[i] = 0, ret->to[i] = tensor->extent[i];
            continue;
        }
        if (index->border > WEFT_BORDER_SKIPPED)
            at = weft_pad_source(form[index->border], at, tensor->extent[i]);
        if (at < 0 || at >= tensor->extent[i]) {
            if (index->border != WEFT_BORDER_SKIPPED)
                fail_msg("%s: index %lld of axis %d lies outside", t->what, (long long)at, i);
            return false;
        }
        ret->from[i] = at, ret->to[i] = at + 1;
    }
    return true;
}

static int64_t number_of(const struct weft_tensor *tensor, const int64_t *index)
{
    int64_t number = 0;
    for (int i = 0; i < tensor->rank; i++)
        number = number * tensor->extent[i] + index[i];
    return number;
}

/* The next index of the box, the last axis first; false at its end. */
static bool step(const struct box *box, int64_t *index)
{
    for (int i = box->rank - 1; i >= 0; i--) {
        if (++index[i] < box->to[i])
            return true;
        index[i] = box->from[i];
    }
    return false;
}

static void relate(struct trial *t, const struct box *result, const struct weft_tensor *out, const struct box *operand,
                   const struct weft_tensor *in)
{
    int64_t at[WEFT_MAX_RANK], to[WEFT_MAX_RANK];
    for (int i = 0; i < WEFT_MAX_RANK; i++)
        at[i] = i < result->rank ? result->from[i] : 0, to[i] = i < operand->rank ? operand->from[i] : 0;
    do {
        do
            t->related[number_of(out, at) * weft_tensor_count(in) + number_of(in, to)] = true;
        while (step(operand, to));
    } while (step(result, at));
}

static void relate_all(struct trial *t, unsigned result, unsigned operand, const struct weft_tensor *in)
{
    const struct weft_pin result_pin = {t->node, true, result}, operand_pin = {t->node, false, operand};
    struct weft_index_map result_map, operand_map;
    struct box from, to;
    int64_t point[WEFT_SPACE_AXES] = {0}, extent[WEFT_SPACE_AXES];
    const bool known = weft_index_map(t->graph, result_pin, &result_map) &&
                       weft_index_map(t->graph, operand_pin, &operand_map);
    if (!known) {
        memset(t->related, true, (size_t)(weft_tensor_count(&t->base[result]) * weft_tensor_count(in)));
        return;
    }
    for (int i = 0; i < t->space.axes; i++) {
        extent[i] = weft_dim_evaluate(t->graph->dims, t->space.axis[i].extent, t->symbols);
        if (extent[i] <= 0)
            return;
    }
    for (bool more = true; more;) {
        if (box_of(t, &result_map, &t->base[result], point, &to) && box_of(t, &operand_map, in, point, &from))
            relate(t, &to, &t->base[result], &from, in);
        more = false;
        for (int i = t->space.axes - 1; i >= 0 && !more; i--) {
            more = ++point[i] < extent[i];
            if (!more)
                point[i] = 0;
        }
    }
}

/* --- what changes ------------------------------------------------------------------------------------------------- */

static void evaluate(struct trial *t, struct weft_tensor *ret)
{
    memset(ret, 0, MOST * sizeof *ret);
    const struct weft_graph *g = t->graph;
    if (weft_evaluate(g, t->in, g->params, ret, g->returns) != WEFT_OK)
        fail_msg("%s: %s", t->what, weft_last_error(g->context));
}

/* Changes one element in several ways; `changed` gets what that changes in the result. */
static void change(struct trial *t, unsigned result, const struct weft_tensor *in, int64_t element, bool *changed)
{
    static const double real[] = {0.37, 40, -60, (double)NAN};
    static const int64_t integer[] = {0, 1, 2, 3, -1};
    const bool floats = weft_dtype_is_float(in->dtype);
    const int ways = floats ? 4 : 5;
    const int64_t count = weft_tensor_count(&t->base[result]);
    const size_t bytes = (size_t)weft_dtype_bits(t->base[result].dtype) / 8;
    double was_real = 0;
    int64_t was_integer = 0;
    if (floats)
        was_real = weft_load_real(in->dtype, in->data, element);
    else
        was_integer = weft_load_integer(in->dtype, in->data, element);
    for (int way = 0; way < ways; way++) {
        if (floats)
            weft_store_real(in->dtype, in->data, element, real[way]);
        else
            weft_store_integer(in->dtype, in->data, element, integer[way]);
        evaluate(t, t->out);
        for (int64_t i = 0; i < count; i++)
            changed[i] |= memcmp((char *)t->out[result].data + (size_t)i * bytes,
                                 (char *)t->base[result].data + (size_t)i * bytes, bytes) != 0;
        for (uint32_t i = 0; i < t->graph->returns; i++)
            weft_tensor_free(t->graph->context, &t->out[i]);
    }
    if (floats)
        weft_store_real(in->dtype, in->data, element, was_real);
    else
        weft_store_integer(in->dtype, in->data, element, was_integer);
}

static void judge(struct trial *t, unsigned result, unsigned operand, const struct weft_tensor *in, bool tight)
{
    const int64_t results = weft_tensor_count(&t->base[result]), elements = weft_tensor_count(in);
    t->related = calloc((size_t)(results * elements + 1), 1);
    relate_all(t, result, operand, in);
    for (int64_t k = 0; k < elements; k++) {
        bool *changed = calloc((size_t)results + 1, 1);
        change(t, result, in, k, changed);
        for (int64_t i = 0; i < results; i++) {
            const bool related = t->related[i * elements + k];
            if (changed[i] && !related)
                fail_msg("%s: element %lld of result %u depends on element %lld of operand %u, which no map says",
                         t->what, (long long)i, result, (long long)k, operand);
            if (tight && related && !changed[i])
                fail_msg("%s: element %lld of result %u does not depend on element %lld of operand %u", t->what,
                         (long long)i, result, (long long)k, operand);
        }
        free(changed);
    }
    free(t->related);
}

/* The parameter that the operand is, or -1. */
static int param_of(const struct weft_graph *g, weft_val v)
{
    for (uint32_t i = 0; i < g->params; i++)
        if (weft_is(g->param[i], v))
            return (int)i;
    return -1;
}

/* All of a graph whose node `op` has parameters as operands. False: it has none such. */
static bool try_graph(const struct weft_graph *g, const char *what, int op, bool tight)
{
    static char memory[MEMORY];
    struct trial t = {.graph = g, .what = what, .symbols = {N}};
    for (weft_node n = g->first; n.id; n = g->node[n.id].next)
        if (weft_opcode_of(g, n) == op)
            t.node = n;
    if (!t.node.id || !weft_index_space(g, t.node, &t.space))
        return false;
    sample_fill(g, t.in, N, memory);
    evaluate(&t, t.base);
    for (unsigned k = 0; k < g->node[t.node.id].operands; k++) {
        const int param = param_of(g, weft_operand(g, t.node, k));
        for (uint32_t i = 0; i < g->returns && param >= 0; i++)
            if (weft_def(g, g->ret[i].value).id == t.node.id)
                judge(&t, g->value[g->ret[i].value.id].result, k, &t.in[param], tight);
    }
    for (uint32_t i = 0; i < g->returns; i++)
        weft_tensor_free(g->context, &t.base[i]);
    return true;
}

static void what_changes_is_related(void **state)
{
    struct weft_context *context;
    bool seen[WEFT_OP_COUNT] = {false};
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weft_graph *g = parse_row(context, &rows[i]);
        seen[weft_opcode_of(g, g->last)] |=
            try_graph(g, rows[i].line, weft_opcode_of(g, g->last), rows[i].tight == TIGHT);
        weft_graph_destroy(g);
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        struct weft_graph *g = sample_graph(context, &samples[i], WEFT_F64);
        if (!g)
            continue;
        seen[samples[i].op] |= try_graph(g, samples[i].lines, samples[i].op, false);
        weft_graph_destroy(g);
    }
    weft_close(context);
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        const bool each = weft_ops[op].index == weft_index_each;
        if (weft_ops[op].traits & WEFT_ELEMENTWISE)
            assert_true(each);
        else if (!each && weft_ops[op].index != weft_index_unknown && !seen[op])
            fail_msg("no sample has %s", weft_ops[op].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(what_changes_is_related),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
