/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h: which ops of ONNX weft reads, a row for each op and change of its meaning. Import functions are in
 * import_*.c, with the table of their family at the end. */
#ifndef WEFT_ONNX_ROWS_H
#define WEFT_ONNX_ROWS_H

#include "onnx/model.h"

struct onnx_op;
/* One row of the tables: from opset `since` on, until a row of the same name with a later one. */
struct onnx_row {
    const char *name;
    int16_t since;
    int16_t min_inputs, max_inputs; /* max -1: any number */
    int16_t opcode;                 /* for functions that serve several ops */
    void (*import)(struct onnx_op *op);
};

/* Tables by family; each ends with a row without a name. */
extern const struct onnx_row weft_onnx_activation[];
extern const struct onnx_row weft_onnx_elementwise[];
extern const struct onnx_row weft_onnx_shape[];
extern const struct onnx_row weft_onnx_state[];
extern const struct onnx_row weft_onnx_movement[];
extern const struct onnx_row weft_onnx_index[];
extern const struct onnx_row weft_onnx_resize[];
extern const struct onnx_row weft_onnx_window[];
extern const struct onnx_row weft_onnx_pool[];
extern const struct onnx_row weft_onnx_quantize[];
extern const struct onnx_row weft_onnx_attention[];
extern const struct onnx_row weft_onnx_transform[];
extern const struct onnx_row weft_onnx_fused[];
/* Of the domains com.microsoft and ai.onnx.preview. */
extern const struct onnx_row weft_onnx_microsoft[];
extern const struct onnx_row weft_onnx_preview[];
extern const struct onnx_row weft_onnx_recurrent[];
extern const struct onnx_row weft_onnx_reduce[];
extern const struct onnx_row weft_onnx_order[];
extern const struct onnx_row weft_onnx_random[];
extern const struct onnx_row weft_onnx_data[];
extern const struct onnx_row weft_onnx_control[];
extern const struct onnx_row weft_onnx_linear[];
extern const struct onnx_row weft_onnx_cut[];
extern const struct onnx_row weft_onnx_loop[];
extern const struct onnx_row weft_onnx_loss[];
extern const struct onnx_row weft_onnx_norm[];
/* The row for an op at an opset, or NULL: the one with the largest `since` that is not above it. */
const struct onnx_row *weft_onnx_find(struct onnx_string op, int opset);
/* The same for a node of any domain; other domains have one version each. */
const struct onnx_row *weft_onnx_row_of(const struct onnx_node *node, int opset);
/* Row `i` of all, with the domain it belongs to; NULL behind the last. For lists. */
const struct onnx_row *weft_onnx_row_at(unsigned i, const char **ret_domain);

#endif
