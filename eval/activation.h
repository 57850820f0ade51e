/* SPDX-License-Identifier: Apache-2.0 */
/* activation.h: elementwise functions with coefficients, in double. */
#ifndef WEFT_ACTIVATION_H
#define WEFT_ACTIVATION_H

#include "eval/rule.h"

/* The attributes of one node; what its op does not have is 0. */
struct weft_activation {
    double alpha, beta, gamma, bias, lambda, low, high;
    bool by_tanh, has_low, has_high, negative, positive;
};
struct weft_activation weft_activation_read(const struct weft_eval *eval);
/* Any elementwise op of one float operand that gives a float (eval/unary.c). */
double weft_real_apply(int op, double x, const struct weft_activation *activation);
double weft_activation_apply(int op, double x, const struct weft_activation *activation);

#endif
