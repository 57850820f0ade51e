/* SPDX-License-Identifier: Apache-2.0 */
/* wide.c: 16-bit values as a group of fused nodes keeps them between its nodes: in f32, neither rounded nor out of
 * range.
 *
 *   %1: f16[4] = asin %0      asin(1) is 1.5703125 in f16, whose tangent is 2066;
 *   %2: f16[4] = tan %1       in f32 it is 1.57079637, whose tangent is -22877332 */
#include "tests/property/random_graph.h"

#include <stdlib.h>

bool weft_is_16_bits(int dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16; }

bool weft_may_be_wide(const struct weft_graph *graph, weft_node node)
{
    const int op = weft_opcode_of(graph, node);
    const uint32_t traits = weft_ops[op].traits;
    if (op == WEFT_OP_bitcast || op == WEFT_OP_quantize || op == WEFT_OP_custom || op == WEFT_OP_attention ||
        weft_node_of(graph, node)->results > 1 || traits & (WEFT_DATA | WEFT_CONTROL | WEFT_RANDOM | WEFT_SOURCE))
        return false;
    return true;
}

struct weft_tensor weft_widened(const struct weft_graph *graph, weft_val value, const struct weft_tensor *tensor,
                                bool wide)
{
    const int dtype = weft_type_of(graph, value)->dtype, wanted = wide && weft_is_16_bits(dtype) ? WEFT_F32 : dtype;
    if (tensor->dtype == wanted)
        return *tensor;
    struct weft_tensor dense = *tensor, copy = *tensor;
    weft_tensor_dense(&dense);
    weft_tensor_dense(&copy);
    copy.dtype = wanted;
    const int64_t count = weft_tensor_count(tensor);
    dense.data = malloc(weft_tensor_bytes(&dense) + 8);
    copy.data = malloc(weft_tensor_bytes(&copy) + 8);
    if (!dense.data || !copy.data)
        abort();
    weft_tensor_copy(&dense, 0, tensor, 0);
    for (int64_t i = 0; i < count; i++)
        weft_store_real(wanted, copy.data, i, weft_load_real(tensor->dtype, dense.data, i));
    free(dense.data);
    return copy;
}
