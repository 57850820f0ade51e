/* SPDX-License-Identifier: Apache-2.0 */
/* conv_fold.c: folds of a convolution's results over their pixels. The contract: conv_fold.h. */
#include "kernels/conv/conv_fold.h"

enum { HEADER = 64,  /* bytes of shared memory in front of the cells: how many parts are done */
       CHAIN = 256,  /* pixels of a cell, in a chain as in reduce.c */
       RUN = 2048 }; /* and along a line */

/* Cells are stored as y is: [image, cell, channel], or [image, channel, cell]. */
void weft_conv_fold_prepare(struct weft_conv_fold *fold, const struct weft_conv *conv, enum weft_reduce_op op,
                            const int64_t out_stride[2])
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    const bool across = s.y_rows && conv->o > 1;
    const enum weft_conv_cells ours = across ? WEFT_CONV_CELLS_ACROSS : WEFT_CONV_CELLS_ALONG;
    *fold = (struct weft_conv_fold){.loops = weft_fold_loops_find(WEFT_FOLD_F32, conv->cpu),
                                    .op = op == WEFT_K_MEAN ? WEFT_K_SUM : (int)op,
                                    .early = weft_conv_kernels[conv->form].cells == ours,
                                    .across = across,
                                    .channels = conv->o,
                                    .pixels = s.pixels,
                                    .run = s.out[2] * (across ? 1 : weft_conv_rows_together(&s)),
                                    .width = across ? CHAIN : RUN};
    fold->cells = weft_pieces(fold->run, fold->width);
    fold->all = s.pixels ? weft_pieces(s.pixels, fold->run) * fold->cells : 0;
    fold->last = (struct weft_reduce){.op = op, .in_dtype = WEFT_K_F32, .out_dtype = WEFT_K_F32, .cpu = conv->cpu,
                                      .kept = 2, .reduced = 1,
                                      .kept_extent = {s.n, conv->o}, .reduced_extent = {fold->all},
                                      .in_kept = {conv->o * fold->all, across ? 1 : fold->all},
                                      .in_reduced = {across ? conv->o : 1},
                                      .out_stride = {out_stride[0], out_stride[1]}};
    weft_reduce_prepare(&fold->last, 1);
    fold->last.slices = 1;
    fold->last.divisor = s.pixels;
    fold->shared = HEADER + (size_t)(s.n * conv->o * fold->all) * sizeof(float);
}

/* --- pieces ------------------------------------------------------------------------------------------------------- */

/* What is left of a cell, or less: n pixels of all channels of a piece, side by side. */
static void fold_across(const struct weft_conv_fold *fold, float *cell, bool fresh, const struct weft_conv_piece *piece,
                        const float *data, int64_t n)
{
    for (int64_t i = 0; i < piece->channels && fresh; i++)
        cell[i] = weft_fold_identity(fold->op);
    fold->loops->columns(fold->op, cell, data, piece->pixel_stride, n, piece->channels);
}

static float fold_along(const struct weft_conv_fold *fold, const float *data, int64_t stride, int64_t n)
{
    float terms[RUN];
    for (int64_t i = 0; i < n && stride != 1; i++)
        terms[i] = data[i * stride];
    return fold->loops->run(fold->op, stride == 1 ? data : terms, n);
}

void weft_conv_fold_piece(const struct weft_conv_fold *fold, void *shared, const struct weft_conv_piece *piece)
{
    float *const image = (float *)(void *)((char *)shared + HEADER) + piece->image * fold->channels * fold->all;
    int64_t run = piece->pixel / fold->run, at = piece->pixel % fold->run, n;
    if (fold->across && fold->cells == 1 && at == 0 && piece->pixels % fold->run == 0) { /* whole chains */
        fold->loops->chains(fold->op, image + run * fold->channels + piece->channel, fold->channels, piece->data,
                            piece->pixel_stride, fold->run, piece->pixels / fold->run, piece->channels);
        return;
    }
    for (int64_t done = 0; done < piece->pixels; done += n) {
        const int64_t left = piece->pixels - done, to_end = fold->run - at, in_cell = fold->width - at % fold->width;
        const int64_t cell = run * fold->cells + at / fold->width, room = in_cell < to_end ? in_cell : to_end;
        const float *const data = piece->data + done * piece->pixel_stride;
        n = room < left ? room : left;
        if (fold->across)
            fold_across(fold, image + cell * fold->channels + piece->channel, at % fold->width == 0, piece, data, n);
        for (int64_t c = 0; c < piece->channels && !fold->across; c++)
            image[(piece->channel + c) * fold->all + cell] =
                fold_along(fold, data + c * piece->channel_stride, piece->pixel_stride, n);
        at += n;
        if (at == fold->run)
            at = 0, run++;
    }
}

/* --- the last part ------------------------------------------------------------------------------------------------ */

/* Run by run, since lines need not follow each other. */
static void fold_all(const struct weft_conv_fold *fold, const struct weft_conv *conv, float *y, void *shared)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    const struct weft_conv_data data = {.y = y};
    for (int64_t n = 0; n < s.n; n++)
        for (int64_t pixel = 0; pixel < s.pixels; pixel += fold->run) {
            const int64_t left = s.pixels - pixel, pixels = left < fold->run ? left : fold->run;
            const struct weft_conv_piece piece = weft_conv_piece(&s, &data, n, 0, conv->o, pixel, pixels);
            weft_conv_fold_piece(fold, shared, &piece);
        }
}

void weft_conv_fold_end(const struct weft_conv_fold *fold, const struct weft_conv *conv, float *out, float *y,
                        void *shared, int parts)
{
    int *const done = shared;
    if (__atomic_add_fetch(done, 1, __ATOMIC_ACQ_REL) < parts)
        return;
    if (!fold->early)
        fold_all(fold, conv, y, shared);
    weft_reduce_run(&fold->last, out, (char *)shared + HEADER, NULL, 0, 1);
    __atomic_store_n(done, 0, __ATOMIC_RELEASE);
}
