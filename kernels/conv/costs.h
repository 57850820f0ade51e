/* SPDX-License-Identifier: Apache-2.0 */
/* costs.h: what the loops of a convolution are expected to take, for those who choose in which order its operand and
 * result lie. */
#ifndef WEFT_CONV_COSTS_H
#define WEFT_CONV_COSTS_H

#include "kernels/kernels.h"

enum weft_conv_kind {
    WEFT_CONV_KIND_DIRECT,    /* by its formula */
    WEFT_CONV_KIND_POINT,     /* one tap: a product of matrices */
    WEFT_CONV_KIND_WINOGRAD,
    WEFT_CONV_KIND_PLANES,    /* depthwise, vectors along the pixels */
    WEFT_CONV_KIND_CHANNELS,  /* depthwise, vectors across channels */
    WEFT_CONV_KIND_OTHER      /* small groups, or the formula in plain C */
};
/* After prepare: the kind of loops, and the multiply-adds in whose time they would be done if all vectors were full and
 * nothing else were to do: what turns, gathers and pads is in it. 0 where there is no model: then it is the
 * multiply-adds of the formula that count, and x lies as y does. */
enum weft_conv_kind weft_conv_kind(const struct weft_conv *conv, double *ret_products);
/* After prepare: m of the transform F(m x m, 3 x 3), or 0: another formula, with other bits. */
int weft_conv_winograd(const struct weft_conv *conv);

#endif
