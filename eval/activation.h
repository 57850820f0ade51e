/* SPDX-License-Identifier: Apache-2.0 */
/* activation.h: the functions of one number behind elementwise ops, for rules that apply them inside. */
#ifndef WEFT_ACTIVATION_H
#define WEFT_ACTIVATION_H

#include "eval/rule.h"

/* The attributes of one node; what its op does not have is 0. */
struct weft_activation {
    double alpha, beta, gamma, bias, lambda, low, high;
    bool by_tanh, has_low, has_high, negative, positive;
};
typedef double weft_real_fn(double x, const struct weft_activation *activation);
/* Of an op of unary.def that takes floats and gives floats; else NULL. */
weft_real_fn *weft_real_of(int op);

#endif
