/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h: the family of the f32 convolution; kernels.h has the descriptor and what a caller may do with it.
 *
 *   y[n,o,q] = s(K),  s(0) = +0,
 *   s(t·C + c + 1) = fma(X[n, g·C + c, q·stride - pad + t·dilation], w[o,c,t], s(t·C + c))
 *
 * with C = c / groups, g the group of o, t the taps of the kernel in row-major order, K = taps·C, and X equal to x
 * inside and +0 outside. So there is one chain per result, the taps outside and the channels inside (which is the order
 * in which a channels-last array has them side by side), and every form below computes it: form, layout, packing, parts
 * and CPU level change no bit. A tap in the padding is a multiplication by zero, so an infinite weight over the border
 * gives NaN in every form alike. As in gemm.h, which NaN is not defined.
 *
 * An adjoint that moves by one along all axes is the convolution with its taps in reverse order; transposed.h has the
 * others. Where C > 1 and some window reaches over the border, and in those others, y is s(K) + 0: a result that is
 * zero is +0. Thereby a form may leave out multiplications by zero, if no weight is infinite or NaN, and change no bit:
 * fma(0, w, s) is s, but for the sign of a zero, which no later term of the chain but a zero can see.
 *
 * A bias is added last, rounded once, and then the residual, then comes the clamp; then the epilogue gets pieces of y:
 * whatever a form has finished at once, as soon as it will not be touched again. Every form calls it; which pieces it
 * gets depends on form, parts and level. Products of matrices (POINT, COLUMNS, DIRECT) and WINOGRAD add a residual that
 * lies as y in registers; else it is added to such pieces.
 *
 * Forms, chosen by prepare:
 *   COLUMNS   y has its unit stride along the pixels (NCHW) and few channels: W[o,K] · X[K,pixels], a panel of X
 *             gathered at a time.
 *   DIRECT    X[pixels,K] · W[K,o] for any order of axes, nothing gathered: direct.h.
 *   PHASES    x and y along the pixels: the product of COLUMNS over rows dealt out by the stride: phases.h.
 *   POINT_COLUMNS, POINT_ROWS   one tap, stride 1, no padding: the same two products over x where it lies, or where a
 *             prologue makes it. Then pixels of y that are not one axis are a product for each line of them.
 *   PLANES    one channel per group, y along the pixels: sliding windows over a padded band of one plane.
 *   SLIDE     the same over x where it lies, if its rows are contiguous, at steps of one or two: slide.inc.
 *   CHANNELS  depthwise, x and y along the channels: sliding windows over a padded band, vectors across channels.
 *   WINDOWS   depthwise, windows 3, 5 or 7 wide, vectors across channels.
 *   GROUPED_WINDOWS   2, 4 or 8 channels and as many results per group, windows 3 wide, vectors across groups: the
 *             loops of WINDOWS.
 *   GROUPED   few channels and results per group, vectors across the results of groups.
 *   TRANSPOSED  the formula of adjoints that move by more than one.
 *   PLAIN     the formula, or that of the adjoint.
 *   WINOGRAD_2, WINOGRAD_4  where the descriptor's `arithmetic` permits it: another formula, with other bits, which
 *             winograd.h has.
 *
 * Preconditions: y overlaps neither x nor w nor the residual; distinct indices of y are distinct elements; o and c
 * divide by groups. No alignment, no reading outside the described elements. Extents of n, o and y may be 0. */
#ifndef WEFT_CONV_H
#define WEFT_CONV_H

#include "kernels/gemm/gemm.h"

#include <assert.h>

enum weft_conv_form {
    WEFT_CONV_PLAIN,
    WEFT_CONV_COLUMNS,
    WEFT_CONV_DIRECT,
    WEFT_CONV_PHASES,
    WEFT_CONV_POINT_COLUMNS,
    WEFT_CONV_POINT_ROWS,
    WEFT_CONV_PLANES,
    WEFT_CONV_SLIDE,
    WEFT_CONV_CHANNELS,
    WEFT_CONV_WINDOWS,
    WEFT_CONV_GROUPED_WINDOWS,
    WEFT_CONV_GROUPED,
    WEFT_CONV_TRANSPOSED,
    WEFT_CONV_WINOGRAD_2,
    WEFT_CONV_WINOGRAD_4
};
static_assert(WEFT_CONV_WINOGRAD_4 + 1 == WEFT_CONV_FORMS, "kernels.h says how many forms there are");

/* In data->w are the weights as given or as packed. */
typedef void weft_conv_fn(const struct weft_conv *conv, const struct weft_conv_data *data, int part, int parts);
#define WEFT_CONV(name, cpu, form, cells) weft_conv_fn name;
#include "kernels/conv/conv.def"

/* The cells of a fold over pixels (conv_fold.h) that the parts of a form hand over whole, or as pieces in order. */
enum weft_conv_cells { WEFT_CONV_CELLS_NONE, WEFT_CONV_CELLS_ALONG, WEFT_CONV_CELLS_ACROSS };

struct weft_conv_kernel {
    const char *name;
    uint32_t cpu;
    enum weft_conv_form form;
    enum weft_conv_cells cells;
    weft_conv_fn *run;
};
extern const struct weft_conv_kernel weft_conv_kernels[];
extern const unsigned weft_conv_kernel_count;

/* Strides of the weights. */
struct weft_conv_weights {
    int64_t group, o, c, tap[3];
    int64_t first;          /* elements before the first tap: taps may be read in reverse order */
};

/* A descriptor with three spatial axes, the missing ones in front with extent 1, and what follows from it. */
struct weft_conv_shape {
    int64_t n, groups, c, o; /* c and o of one group */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t x_n, x_c, x_at[3], y_n, y_o, y_at[3]; /* strides of the arrays */
    struct weft_conv_weights w;
    int64_t taps, k, pixels;
    bool adjoint; /* a transposed one that moves by more than one; others are convolutions with their taps reversed */
    int64_t line; /* so many pixels of y follow each other at the stride y_at[2] */
    bool y_rows;  /* the unit stride of y is along its channels */
    bool bordered; /* +0 is added to all results */
};
struct weft_conv_shape weft_conv_shape(const struct weft_conv *conv);
enum weft_conv_form weft_conv_choose(struct weft_conv *conv, const struct weft_conv_shape *s); /* conv_form.c */
bool weft_conv_is_inside(const struct weft_conv_shape *s); /* no window reaches over the border */

/* Index of an element in the spatial axes from a number in row-major order. */
static inline void weft_conv_unravel(const int64_t extent[3], int64_t number, int64_t ret_index[3])
{
    ret_index[2] = number % extent[2];
    ret_index[1] = number / extent[2] % extent[1];
    ret_index[0] = number / extent[2] / extent[1];
}
static inline int64_t weft_conv_offset(const int64_t index[3], const int64_t stride[3])
{
    return index[0] * stride[0] + index[1] * stride[1] + index[2] * stride[2];
}

/* Pixels [pixel, pixel + pixels) of `channels` results from `channel` on, where y has them. The pixels lie in one line
 * (weft_conv_shape). */
static inline struct weft_conv_piece weft_conv_piece(const struct weft_conv_shape *s, const struct weft_conv_data *data,
                                                     int64_t image, int64_t channel, int64_t channels, int64_t pixel,
                                                     int64_t pixels)
{
    int64_t at[3];
    weft_conv_unravel(s->out, pixel, at);
    return (struct weft_conv_piece){
        .data = data->y + image * s->y_n + channel * s->y_o + weft_conv_offset(at, s->y_at),
        .channel_stride = s->y_o, .pixel_stride = s->y_at[2], .channels = channels, .pixels = pixels,
        .image = image, .channel = channel, .pixel = pixel,
    };
}

/* Adds the residual to finished pieces, and does what comes after it. */
void weft_conv_add_residual(const struct weft_conv *conv, const struct weft_conv_shape *s,
                            const struct weft_conv_data *data, const struct weft_conv_piece *piece);
/* POINT: what pieces of a product are of y. `image`, `channel` and `pixel` are those of its first result. */
struct weft_conv_point {
    const struct weft_conv *conv;
    const struct weft_conv_shape *s;
    const struct weft_conv_data *data;
    int64_t image, channel, pixel;
};

/* Those i in [0, count) for which 0 <= first + i·step < extent (step > 0), as [begin, end) with 0 <= begin <= end <=
 * count. */
static inline void weft_conv_inside(int64_t first, int64_t step, int64_t extent, int64_t count, int64_t *ret_begin,
                                    int64_t *ret_end)
{
    int64_t end = extent <= first ? 0 : extent - first, begin = first >= 0 ? 0 : -first;
    if (step != 1) { /* divisions take longer than what a short row needs otherwise */
        end = (end + step - 1) / step;
        begin = (begin + step - 1) / step;
    }
    *ret_end = end < count ? end : count;
    *ret_begin = begin < *ret_end ? begin : *ret_end;
}

/* Rows of y, counted from the first, that a fold of pixels takes together (conv_fold.h): SLIDE hands them over at once.
 * They follow each other in memory, where there is more than one. */
static inline int64_t weft_conv_rows_together(const struct weft_conv_shape *s)
{
    enum { PIXELS = 1024 };
    const int64_t fit = s->line == s->pixels && s->out[2] > 0 ? PIXELS / s->out[2] : 1, rows = s->out[0] * s->out[1];
    return fit < 1 ? 1 : fit < rows ? fit : rows < 1 ? 1 : rows;
}

/* PLANES, CHANNELS: a band of input rows, padding written out, that `rows` rows of y need. PLANES deals the columns of
 * a row out to stride[2] phases of `pitch` floats, so that neighbouring results read neighbouring floats; CHANNELS
 * keeps a pixel's channels together. */
struct weft_conv_band {
    int64_t rows, in_rows, columns; /* of y; of the band; of the band in pixels */
    int64_t pitch, row;             /* floats: of a phase or a pixel; of a row of the band */
};
struct weft_conv_band weft_conv_band(const struct weft_conv_shape *s, enum weft_conv_form form);
enum { WEFT_CONV_SLACK = 16 }; /* floats that a window may read past its row */

/* WINDOWS, GROUPED_WINDOWS, GROUPED: a band of x and a block of y, of so many results at a time. Rows are at least as
 * wide as a tile. */
enum { WEFT_WINDOWS_CHANNELS = 16, WEFT_WINDOWS_PIXELS = 7 };
struct weft_windows {
    int64_t rows, pieces;          /* of y at a time; sixteens of results */
    int64_t columns, width;        /* of the band, of the block */
    int64_t band_size, block_size;
};
/* For bands of so many times sixteen floats a pixel. */
struct weft_windows weft_windows_plan(const struct weft_conv_shape *s, int64_t vectors);

/* Scratch holds, each rounded up to a cache line: what is gathered; for the windows, an offset for each tap; the
 * weights of a group (CHANNELS: of all), unless they are packed. */
static inline int64_t weft_conv_aligned(int64_t floats) { return (floats + 15) / 16 * 16; }
static inline int64_t weft_conv_band_size(const struct weft_conv_band *band)
{
    return weft_conv_aligned(band->in_rows * band->row + WEFT_CONV_SLACK);
}
static inline int64_t weft_conv_offsets_size(const struct weft_conv_shape *s) { return weft_conv_aligned(2 * s->taps); }

/* SLIDE: the row of zeros at the beginning of scratch, which starts behind weft_conv_zeros_begin floats: scratch holds
 * what lies under the lanes that loads leave out, too. One that reaches into a page that is not there is a trap that
 * the processor takes back, 160 ns on Zen 4: planes of 14 x 14 took five times as long where scratch began a page. */
static inline int64_t weft_conv_zeros_begin(const struct weft_conv_shape *s) { return weft_conv_aligned(s->pad[2]); }
static inline int64_t weft_conv_zeros(const struct weft_conv_shape *s)
{
    const int64_t strips = weft_conv_aligned(s->out[2]) * s->stride[2], across = (s->kernel[2] - 1) * s->dilation[2];
    return weft_conv_zeros_begin(s) + weft_conv_aligned(strips + across + 33);
}

/* What a form reads; of a POINT form, its product is prepared. */
struct weft_packing weft_conv_packing(const struct weft_conv *conv, const struct weft_conv_shape *s,
                                      enum weft_conv_form form);
/* The weights of group g as conv->packing says, from unpacked ones. */
void weft_conv_pack_group(const struct weft_conv *conv, const struct weft_conv_shape *s, float *pack,
                          const weft_loose_f32 *w, int64_t g);
int64_t weft_conv_group_size(const struct weft_packing *packing); /* floats */
/* Floats that a part packs weights to which are not packed yet: of a group, or of all. */
int64_t weft_conv_packed_aside(const struct weft_packing *packing);
static inline int64_t weft_packing_taps(const struct weft_packing *p) { return p->taps[0] * p->taps[1] * p->taps[2]; }
static inline int64_t weft_packing_terms(const struct weft_packing *p) { return weft_packing_taps(p) * p->c; }

#endif
