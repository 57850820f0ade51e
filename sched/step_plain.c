/* SPDX-License-Identifier: Apache-2.0 */
/* step_plain.c: steps of the plain kernels, which take operands, results and attributes of a node as they are, in the
 * op's order. Where results have as many elements as the data says, such a step also counts them. */
#include "sched/step.h"

#include <string.h>

static int dtype_of(const struct weft_graph *g, weft_node n)
{
    return weft_type_of(g, g->node[n.id].operands ? weft_operand(g, n, 0) : weft_result(g, n, 0))->dtype;
}

static bool has_places(const struct weft_graph *g, weft_val v)
{
    return weft_dtype_bits(weft_type_of(g, v)->dtype) >= 8;
}

bool weft_step_is_plain(const struct weft_graph *g, weft_node n)
{
    const struct weft_node_info *info = &g->node[n.id];
    const struct weft_op_info *op = weft_op_of(g, n);
    bool fits = info->operands <= WEFT_PLAIN_IN && info->results <= WEFT_PLAIN_OUT;
    for (unsigned i = 0; i < info->operands && fits; i++)
        fits = has_places(g, weft_operand(g, n, i));
    for (unsigned i = 0; i < info->results && fits; i++)
        fits = has_places(g, weft_result(g, n, i));
    for (unsigned i = 0; i < info->attrs && fits; i++)
        fits = info->attr[i].count <= WEFT_PLAIN_LIST;
    return fits && weft_plain_find(op->name, dtype_of(g, n));
}

static struct weft_array array_of(const struct weft_bind *bind, weft_val v)
{
    const struct weft_tensor t = weft_bind_tensor(bind, v);
    struct weft_array array = {.dtype = t.dtype, .rank = t.rank};
    for (int i = 0; i < t.rank; i++) {
        array.extent[i] = t.extent[i];
        array.stride[i] = t.stride[i];
    }
    return array;
}

/* As many elements of a list as there can be: one that is not given has its default throughout. */
static void read_attr(const struct weft_bind *bind, const struct weft_attr_spec *spec, struct weft_plain_attr *ret)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_attr *attr = weft_attr_find(g, n, spec->key);
    const int kind = weft_attr_kinds[spec->key];
    ret->given = attr || spec->has_default || spec->word;
    ret->count = attr && (attr->kind == WEFT_ATTR_INTS || attr->kind == WEFT_ATTR_REALS) ? (int32_t)attr->count : 1;
    if (!ret->given)
        return;
    if (kind == WEFT_ATTR_REAL)
        ret->real = weft_attr_real(g, n, spec->key);
    else if (kind == WEFT_ATTR_INT)
        ret->integer[0] = weft_dim_evaluate(g->dims, weft_attr_dim(g, n, spec->key), bind->symbols);
    else if (kind == WEFT_ATTR_WORD)
        ret->integer[0] = weft_step_word(g, n, spec->key);
    else if (kind == WEFT_ATTR_INTS)
        for (unsigned i = 0; i < (attr ? attr->count : WEFT_PLAIN_LIST); i++)
            ret->integer[i] = attr ? weft_bind_attr(bind, spec->key, i) : (int64_t)spec->fallback;
}

static void bind_plain(struct weft_bind *bind, void *descriptor)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_node_info *info = &g->node[n.id];
    struct weft_plain *plain = descriptor;
    *plain = (struct weft_plain){.kernel = weft_plain_find(weft_op_of(g, n)->name, dtype_of(g, n)),
                                 .ins = (int32_t)info->operands, .outs = (int32_t)info->results};
    for (unsigned i = 0; i < info->operands; i++)
        plain->in[i] = array_of(bind, weft_operand(g, n, i));
    for (unsigned i = 0; i < info->results; i++)
        plain->out[i] = array_of(bind, weft_result(g, n, i));
    const struct weft_attr_spec *spec = weft_op_of(g, n)->attrs;
    for (int i = 0; i < WEFT_PLAIN_ATTRS && spec[i].key != WEFT_ATTR_NONE; i++)
        read_attr(bind, &spec[i], &plain->attr[i]);
    weft_plain_prepare(plain, bind->workers);
    bind->parts = plain->parts;
    bind->scratch = plain->scratch;
}

static struct weft_plain_data data_of(const struct weft_plain *plain, const struct weft_call *call)
{
    const struct weft_graph *g = call->graph;
    struct weft_plain_data data = {.scratch = call->scratch};
    for (int i = 0; i < plain->ins; i++)
        data.in[i] = call->tensor(call, weft_operand(g, call->step->node, (unsigned)i)).data;
    for (int i = 0; i < plain->outs; i++)
        data.out[i] = call->tensor(call, weft_result(g, call->step->node, (unsigned)i)).data;
    return data;
}

static void run_plain(const void *descriptor, struct weft_call *call)
{
    const struct weft_plain *plain = descriptor;
    const struct weft_plain_data data = data_of(plain, call);
    weft_plain_run(plain, &data, call->part, call->parts);
}

static void count(const void *descriptor, struct weft_call *call)
{
    const struct weft_graph *g = call->graph;
    const struct weft_plain *plain = descriptor;
    const struct weft_plain_data data = data_of(plain, call);
    int64_t counts[WEFT_PLAIN_LIST] = {0};
    weft_plain_count(plain, &data, counts);
    if (!weft_define_data(g, call->step->node, counts, call->symbols, call->failure))
        *call->failed = true;
}

static const char *name_plain(const void *descriptor, const struct weft_step *step)
{
    return weft_plain_name(((const struct weft_plain *)descriptor)->kernel);
}

const struct weft_step_kind weft_step_plain = {
    .name = "plain", .arithmetic = WEFT_ARITHMETIC_PLAIN, .traits = WEFT_STEP_STRIDED,
    .descriptor_bytes = sizeof(struct weft_plain), .bind = bind_plain,
    .run = run_plain, .kernel = name_plain, .define = count};
