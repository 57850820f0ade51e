/* SPDX-License-Identifier: Apache-2.0 */
/* together.h: weights that no run before has packed, packed once in each run, by all of its parts.
 *
 *   part 0   piece 0 · piece 2 ·         ·│ results of part 0
 *   part 1   piece 1 · piece 3 · (waits) ·│ results of part 1
 *   part 2                                │ begins late: all is packed, results of part 2
 *
 * A part takes pieces as long as there are any, and then waits for those that others have taken. So no part waits for
 * one that has not begun, and parts may run one after the other on a single thread. A part alone, and parts whose
 * weights are few, pack for themselves, into scratch memory, which takes less than waiting for others. */
#ifndef WEFT_TOGETHER_H
#define WEFT_TOGETHER_H

#include "kernels/conv/conv.h"

/* After the number of parts is known: shall they pack so many floats together? */
bool weft_conv_pays_together(const struct weft_conv *conv, int64_t floats);
/* Returns the packed weights, when they are complete. */
const float *weft_conv_pack_together(const struct weft_conv *conv, const struct weft_conv_data *data, int parts);

#endif
