/* SPDX-License-Identifier: Apache-2.0 */
/* check_conv_fold.h: the fold of a convolution's pixels behind the kernel under test, against conv_fold.h's words. */
#ifndef WEFT_CHECK_CONV_FOLD_H
#define WEFT_CHECK_CONV_FOLD_H

#include "check/check.h"
#include "kernels/conv/conv_fold.h"

struct check_conv_fold {
    const struct weft_conv *conv;
    struct weft_conv_fold fold;
    enum weft_reduce_op op;
    float *out;
    int64_t out_stride[2], size; /* of images and channels; of `out` */
    void *shared;
};
/* Draws an op and strides. Behind prepare. */
void check_conv_fold_open(struct weft_check *check, const struct weft_conv *conv, struct check_conv_fold *ret);
void check_conv_fold_piece(struct check_conv_fold *f, const struct weft_conv_piece *piece);
/* Behind each part. */
void check_conv_fold_end(struct check_conv_fold *f, float *y, int parts);
/* Compares what came out with what follows from y. */
void check_conv_fold_compare(struct weft_check *check, const char *what, const struct check_conv_fold *f,
                             const float *y);

#endif
