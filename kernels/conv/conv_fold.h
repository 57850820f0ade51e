/* SPDX-License-Identifier: Apache-2.0 */
/* conv_fold.h: sums, means and extremes over all pixels of a convolution's results, taken up by its epilogue: global
 * pooling behind it takes no pass over y.
 *
 *   out[n,o] = op over all pixels q of y[n,o,q]
 *
 * Pixels are cut into cells. Where the results of one pixel lie side by side, a cell is a chain of up to 256 pixels of
 * a line (of y's last axis); else it is up to 2048 pixels of a line, or as many lines that follow each other as have
 * 1024, which go through 64 virtual lanes (kernels/strip/fold.h). Each cell comes to a number in memory that all parts
 * share, and the part that is done last folds these numbers as reduce.c does. Cells follow from y's extents and
 * strides: form, CPU level and number of parts change no bit. The bits are not those of reduce.c over all of y, which
 * knows no cells.
 *
 * The forms whose parts hand over whole cells, or pieces of a chain in order (early), have their pieces folded while
 * these are in the nearest caches. For other forms the last part goes over y when all is done. */
#ifndef WEFT_CONV_FOLD_H
#define WEFT_CONV_FOLD_H

#include "kernels/conv/conv.h"
#include "kernels/strip/fold.h"

struct weft_conv_fold {
    struct weft_reduce last;     /* cells to results */
    const struct weft_fold_loops *loops;
    int op;                      /* without means */
    bool early;
    bool across;                 /* results of one pixel lie side by side */
    int64_t channels, pixels;    /* of y */
    int64_t run, width;          /* pixels of a run, a line or several; of a cell: runs are cut into cells */
    int64_t cells, all;          /* cells of a run; of an image and channel */
    size_t shared;               /* bytes for all parts, of which the first 64 are zero when the first begins, and after
                                  * the last */
};

/* After weft_conv_prepare of a convolution that `folds`. out_stride: of images and channels. */
void weft_conv_fold_prepare(struct weft_conv_fold *fold, const struct weft_conv *conv, enum weft_reduce_op op,
                            const int64_t out_stride[2]);
/* If it is early, of each piece when it is finished. */
void weft_conv_fold_piece(const struct weft_conv_fold *fold, void *shared, const struct weft_conv_piece *piece);
/* Of each part, behind its last piece. */
void weft_conv_fold_end(const struct weft_conv_fold *fold, const struct weft_conv *conv, float *out, float *y,
                        void *shared, int parts);

#endif
