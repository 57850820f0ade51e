/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_definition.h: what a convolution by Winograd's transforms must give, from the matrices of the transform. */
#ifndef WEFT_WINOGRAD_DEFINITION_H
#define WEFT_WINOGRAD_DEFINITION_H

#include "check/check.h"

/* Holds got to the exact convolution: each result may differ by the roundings that the transforms and one chain over
 * the channels can add up to. A result whose window in x has a NaN must be NaN; of F(4x4) one whose tile sees one may
 * be anything besides. w has no NaN. */
void weft_check_winograd(struct weft_check *check, const char *what, const struct weft_conv *conv, const float *got,
                         const float *x, const float *w);

#endif
