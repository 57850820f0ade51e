/* SPDX-License-Identifier: Apache-2.0 */
/* noise_amount.c: how far a kernel may be off one op; the amounts: noise.h. */
#include "tests/property/noise.h"

enum weft_noise_amount weft_noise_amount_of(int op)
{
    switch (op) {
    case WEFT_OP_abs: case WEFT_OP_neg: case WEFT_OP_sign: case WEFT_OP_ceil: case WEFT_OP_floor: case WEFT_OP_round:
    case WEFT_OP_trunc: case WEFT_OP_not: case WEFT_OP_bit_not: case WEFT_OP_is_nan: case WEFT_OP_is_inf:
    case WEFT_OP_bitcast: case WEFT_OP_copysign: case WEFT_OP_select: case WEFT_OP_relu: case WEFT_OP_sort:
    case WEFT_OP_top_k: case WEFT_OP_hardmax: case WEFT_OP_quantize: case WEFT_OP_bernoulli: case WEFT_OP_multinomial:
    case WEFT_OP_arg_max: case WEFT_OP_arg_min: case WEFT_OP_cast:
    case WEFT_OP_rand_uniform: case WEFT_OP_custom: /* draw_custom.c */
        return WEFT_NOISE_NOTHING;
    case WEFT_OP_min: case WEFT_OP_max: case WEFT_OP_reduce_max: case WEFT_OP_reduce_min: case WEFT_OP_max_pool:
    case WEFT_OP_cummax: case WEFT_OP_cummin: case WEFT_OP_clamp: case WEFT_OP_roi_max_pool:
    case WEFT_OP_max_pool_index:
        return WEFT_NOISE_EITHER_ZERO;
    case WEFT_OP_add: case WEFT_OP_sub: case WEFT_OP_mul: case WEFT_OP_div: case WEFT_OP_sqrt: case WEFT_OP_fma:
    case WEFT_OP_mod: case WEFT_OP_floor_div: case WEFT_OP_recip:
        return WEFT_NOISE_ROUNDING;
    case WEFT_OP_dequantize: /* opened it rounds both integers, their difference and the product */
        return WEFT_NOISE_FUNCTION;
    case WEFT_OP_fold_chunks:
    case WEFT_OP_sum: case WEFT_OP_mean: case WEFT_OP_prod: case WEFT_OP_cumsum: case WEFT_OP_cumprod:
    case WEFT_OP_matmul: case WEFT_OP_conv: case WEFT_OP_conv_transpose: case WEFT_OP_mean_pool: case WEFT_OP_col2im:
    case WEFT_OP_max_pool_grad: case WEFT_OP_scatter_elements: case WEFT_OP_scatter_nd: case WEFT_OP_conv_grad_weight:
        return WEFT_NOISE_SUM;
    default:
        break;
    }
    const uint32_t traits = weft_ops[op].traits;
    if (op != WEFT_OP_resize && traits & (WEFT_VIEW | WEFT_MOVEMENT | WEFT_SOURCE | WEFT_DATA | WEFT_CONTROL))
        return WEFT_NOISE_NOTHING;
    return traits & WEFT_ELEMENTWISE || traits & WEFT_RANDOM ? WEFT_NOISE_FUNCTION : WEFT_NOISE_OPAQUE;
}
