/* SPDX-License-Identifier: Apache-2.0 */
/* import_flex.c: FlexAttention: attention whose scores and shares may each go through a graph of the model's own.
 *
 * Heads of queries that share a head of keys are rows of one product: nothing is repeated. The two graphs are imported
 * in place, where they see the values around the node. */
#include "onnx/import.h"

#include <math.h>

struct flex {
    weft_val query, key, value;
    weft_dim batch, query_heads, heads, length, width, seen, value_width;
    weft_dim rows; /* queries of one head of keys */
};

/* Imports the graph that an attribute holds, if there is one, as a function of `x` that keeps its type. */
static weft_val modified(struct onnx_op *op, const char *name, weft_val x)
{
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, name, ONNX_GRAPH);
    struct onnx_graph source;
    weft_val returned[1];
    if (!attribute || op->failed)
        return x;
    if (!weft_onnx_read_graph(&op->importer->reader, attribute->message, &source)) {
        op->failed = true;
        return WEFT_NO_VALUE;
    }
    if (source.inputs != 1 || source.outputs != 1) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%s has %u inputs and %u outputs instead of one of each", name,
                       source.inputs, source.outputs);
        return WEFT_NO_VALUE;
    }
    struct onnx_scope scope = {.parent = op->scope, .graph = op->graph};
    weft_onnx_define(op->importer, &scope, source.input[0].name, NULL, x);
    op->importer->unnamed++;
    weft_onnx_import_body(op, &scope, &source, returned);
    op->importer->unnamed--;
    const struct weft_type before = weft_onnx_type(op, x), after = weft_onnx_type(op, op->failed ? x : returned[0]);
    if (!op->failed && !weft_type_same(&before, &after))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%s changes the type or the shape of what it is given", name);
    return op->failed ? WEFT_NO_VALUE : returned[0];
}

static void read_shapes(struct onnx_op *op, struct flex *f)
{
    const struct weft_type q = weft_onnx_type(op, weft_onnx_input(op, 0));
    const struct weft_type k = weft_onnx_type(op, weft_onnx_input(op, 1));
    const struct weft_type v = weft_onnx_type(op, weft_onnx_input(op, 2));
    if (!op->failed && (q.rank != 4 || k.rank != 4 || v.rank != 4))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "Q, K and V must have 4 axes");
    if (op->failed)
        return;
    *f = (struct flex){.batch = q.extent[0], .query_heads = q.extent[1], .heads = k.extent[1], .length = q.extent[2],
                       .width = q.extent[3], .seen = k.extent[2], .value_width = v.extent[3]};
    const bool known = weft_dim_is_constant(f->query_heads) && weft_dim_is_constant(f->heads) &&
                       weft_dim_is_constant(f->width) && weft_dim_value(f->heads) > 0;
    if (!known || weft_dim_value(f->query_heads) % weft_dim_value(f->heads) != 0)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED,
                       "numbers of heads and their width must be known, and heads of queries share those of keys");
    else
        f->rows = weft_dim_mul(op->graph->dims, f->length,
                               weft_dim_of(weft_dim_value(f->query_heads) / weft_dim_value(f->heads)));
}

static weft_val product(struct onnx_op *op, weft_val x, weft_val y, bool swap_y)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_trans_b, swap_y);
    return weft_onnx_make(op, WEFT_OP_matmul, 2, (const weft_val[]){x, y}, 1, &attr, NULL);
}

static void import_flex_attention(struct onnx_op *op)
{
    struct flex f = {.width = weft_dim_of(1)};
    read_shapes(op, &f);
    if (op->failed)
        return;
    const int given = weft_onnx_type(op, op->input[0]).dtype;
    const int64_t wanted = weft_onnx_int(op, "softmax_precision", 0);
    const int dtype = wanted ? weft_onnx_dtype(wanted > 0 && wanted < INT32_MAX ? (int32_t)wanted : 0)
                             : given == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    if (!dtype || !weft_dtype_is_float(dtype)) {
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "softmax_precision %lld is not supported", (long long)wanted);
        return;
    }
    const double scale = weft_onnx_real(op, "scale", 1 / sqrt((double)weft_dim_value(f.width)));
    const weft_dim folded[] = {f.batch, f.heads, f.rows, f.width}, whole[] = {f.batch, f.query_heads, f.length, f.seen},
                   shared[] = {f.batch, f.heads, f.rows, f.seen},
                   result[] = {f.batch, f.query_heads, f.length, f.value_width};
    const weft_val query = weft_onnx_reshape(op, weft_onnx_cast(op, op->input[0], dtype), 4, folded);
    weft_val x = product(op, query, weft_onnx_cast(op, op->input[1], dtype), /* swap_y= */ true);
    x = weft_onnx_binary(op, WEFT_OP_mul, x, weft_onnx_scalar_like(op, x, scale));
    x = modified(op, "score_mod", weft_onnx_reshape(op, x, 4, whole));
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 3);
    x = modified(op, "prob_mod", weft_onnx_make(op, WEFT_OP_softmax, 1, &x, 1, &axis, NULL));
    const weft_val values = weft_onnx_cast(op, op->input[2], dtype);
    x = product(op, weft_onnx_reshape(op, x, 4, shared), values, /* swap_y= */ false);
    op->output[0] = weft_onnx_cast(op, weft_onnx_reshape(op, x, 4, result), given);
}

const struct onnx_row weft_onnx_preview[] = {
    {"FlexAttention", 1, 3, 3, 0, import_flex_attention},
    {0},
};
