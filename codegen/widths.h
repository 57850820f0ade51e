/* SPDX-License-Identifier: Apache-2.0 */
/* widths.h: floats of 16 bits in the kernels of groups (widths.c).
 *
 * A group computes what its nodes would compute in f32: what it reads of 16 bits is widened when it is loaded, what it
 * stores is rounded then, once, and nothing in between. What is stored and read inside as well is read unrounded. A
 * cast to 16 bits that is a node of the group rounds, as its node does. Two values that are no constants are rounded
 * before they are compared: a largest element out of memory is then among those that it was the largest of.
 *
 *   %y: bf16 = relu %h, of %h = add %x, %x     %0: bf16 = load %x[a]
 *                                              %1: f32 = cast %0
 *                                              %2: f32 = add %1, %1
 *                                              %3: f32 = relu %2
 *                                              %4: bf16 = cast %3
 *                                              store %y[a], %4 */
#ifndef WEFT_WIDTHS_H
#define WEFT_WIDTHS_H

#include "codegen/form.h"

/* The type that numbers of a type have inside of a group: f32 for f16 and bf16. */
int weft_inside_dtype(int dtype);
/* An op's value with that type: itself, or an op behind it, which ops from `begin` on have once. */
uint32_t weft_form_widen(struct weft_form *form, uint32_t begin, uint32_t op);
/* And with that of memory: itself, or a new op. */
uint32_t weft_form_narrow(struct weft_form *form, uint32_t op, int dtype);
/* A number as elements of a type hold it. */
double weft_rounded(int dtype, double number);

#endif
