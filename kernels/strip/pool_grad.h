/* SPDX-License-Identifier: Apache-2.0 */
/* pool_grad.h: the gradient of maxima of windows (pool_grad.c).
 *
 *   dx[n,c,place] = Σ of dy[n,c,o…] over o… whose index[n,c,o…] is place, in row-major order of o; places count in a
 *                   plane of dx, and what is outside of it is left out
 *
 * f32. Strides are any. */
#ifndef WEFT_STRIP_POOL_GRAD_H
#define WEFT_STRIP_POOL_GRAD_H

#include "kernels/kernels.h"

struct weft_pool_grad {
    uint8_t index_dtype; /* WEFT_K_I64 or WEFT_K_I32 */
    int32_t spatial;     /* 1 to 3 */
    int64_t n, c, dx_extent[3], dy_extent[3];
    int64_t dx_stride[5], dy_stride[5], index_stride[5]; /* n, c, spatial… in elements */
    /* set by prepare */
    int64_t block;       /* channels that are done together: several where they lie side by side in dx */
    bool inside;         /* then in dy, too: lines go along them */
    int32_t parts;
};
void weft_pool_grad_prepare(struct weft_pool_grad *grad, int workers);
void weft_pool_grad_run(const struct weft_pool_grad *grad, float *dx, const float *dy, const void *index, int part,
                        int parts);
const char *weft_pool_grad_name(const struct weft_pool_grad *grad);

#endif
