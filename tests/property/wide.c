/* SPDX-License-Identifier: Apache-2.0 */
/* wide.c: 16-bit values as a group of fused nodes keeps them between its nodes: in f32, neither rounded nor out of
 * range.
 *
 *   %1: f16[4] = asin %0      asin(1) is 1.5703125 in f16, whose tangent is 2066;
 *   %2: f16[4] = tan %1       in f32 it is 1.57079637, whose tangent is -22877332 */
#include "tests/property/noise.h"

#include <stdlib.h>

struct weft_tensor weft_packed_copy(const struct weft_tensor *tensor)
{
    struct weft_tensor copy = *tensor;
    weft_tensor_dense(&copy);
    copy.data = calloc(weft_tensor_bytes(&copy) + 8, 1);
    if (!copy.data)
        abort();
    weft_tensor_copy(&copy, 0, tensor, 0);
    return copy;
}

bool weft_may_be_wide(const struct weft_graph *graph, weft_node node)
{
    const int op = weft_opcode_of(graph, node);
    const uint32_t not = WEFT_DATA | WEFT_CONTROL | WEFT_RANDOM | WEFT_SOURCE;
    return op != WEFT_OP_bitcast && op != WEFT_OP_quantize && op != WEFT_OP_custom && op != WEFT_OP_attention &&
           weft_node_of(graph, node)->results == 1 && !(weft_ops[op].traits & not);
}

struct weft_tensor weft_widened(const struct weft_graph *graph, weft_val value, const struct weft_tensor *tensor,
                                bool wide)
{
    const int dtype = weft_type_of(graph, value)->dtype, wanted = wide && weft_dtype_is_half(dtype) ? WEFT_F32 : dtype;
    if (tensor->dtype == wanted)
        return *tensor;
    const struct weft_tensor from = weft_packed_copy(tensor);
    struct weft_tensor to = from;
    to.dtype = (uint8_t)wanted;
    to.data = malloc(weft_tensor_bytes(&to) + 8);
    if (!to.data)
        abort();
    for (int64_t i = weft_tensor_count(&from) - 1; i >= 0; i--)
        weft_store_real(wanted, to.data, i, weft_load_real(from.dtype, from.data, i));
    free(from.data);
    return to;
}
