/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c: the tables of all families, and how a row is found in them. */
#include "onnx/rows.h"

static const struct onnx_row *const tables[] = {
        weft_onnx_activation,
        weft_onnx_attention,
        weft_onnx_control,
        weft_onnx_cut,
    weft_onnx_data,
        weft_onnx_elementwise,
        weft_onnx_fused,
        weft_onnx_index,
        weft_onnx_linear,
    weft_onnx_loop,
        weft_onnx_loss,
        weft_onnx_movement,
        weft_onnx_norm,
        weft_onnx_order,
        weft_onnx_pool,
        weft_onnx_quantize,
        weft_onnx_random,
        weft_onnx_recurrent,
        weft_onnx_reduce,
        weft_onnx_resize,
        weft_onnx_shape,
        weft_onnx_state,
        weft_onnx_transform,
        weft_onnx_window,
};
/* Of other domains. */
static const struct {
    const char *domain;
    const struct onnx_row *table;
} others[] = {
    {"com.microsoft", weft_onnx_microsoft},
    {"ai.onnx.preview", weft_onnx_preview},
};
enum { TABLES = sizeof tables / sizeof *tables, OTHERS = sizeof others / sizeof *others };

/* The latest row that an opset knows, if it is later than `found`. */
static const struct onnx_row *find_in(const struct onnx_row *table, struct onnx_string op, int opset,
                                      const struct onnx_row *found)
{
    for (const struct onnx_row *row = table; row->name; row++)
        if (row->name[0] == (op.length ? op.data[0] : '\0') && row->since <= opset &&
            (!found || row->since > found->since) && onnx_is(op, row->name))
            found = row;
    return found;
}

const struct onnx_row *weft_onnx_find(struct onnx_string op, int opset)
{
    const struct onnx_row *found = NULL;
    for (unsigned t = 0; t < TABLES; t++)
        found = find_in(tables[t], op, opset, found);
    return found;
}

const struct onnx_row *weft_onnx_row_of(const struct onnx_node *node, int opset)
{
    if (onnx_is_default(node->domain))
        return weft_onnx_find(node->op, opset);
    for (unsigned t = 0; t < OTHERS; t++)
        if (onnx_is(node->domain, others[t].domain))
            return find_in(others[t].table, node->op, 1, NULL);
    return NULL;
}

const struct onnx_row *weft_onnx_row_at(unsigned i, const char **ret_domain)
{
    for (unsigned t = 0; t < TABLES + OTHERS; t++) {
        const struct onnx_row *row = t < TABLES ? tables[t] : others[t - TABLES].table;
        *ret_domain = t < TABLES ? "" : others[t - TABLES].domain;
        for (; row->name; row++)
            if (i-- == 0)
                return row;
    }
    return NULL;
}
