/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_pack.c: weights as Winograd's products read them: taps gathered for 16 results side by side, and transformed
 * by the loops of the CPU level (winograd_points.c). */
#include "kernels/conv/winograd.h"
#include "kernels/walk.h"

enum { TOGETHER = WEFT_WINOGRAD_TOGETHER };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static weft_winograd_points_fn *points_of(const struct weft_gemm_kernel *kernel)
{
#ifdef __x86_64__
    if (kernel->cpu & WEFT_CPU_AVX512)
        return weft_winograd_points__avx512;
    if (kernel->cpu & WEFT_CPU_AVX2)
        return weft_winograd_points__avx2;
#endif
    return weft_winograd_points__ref;
}

/* The taps of results [0, results) of so many channels: [channel][tap][TOGETHER]. Where taps lie one behind another, as
 * in [o][c][3][3], they are rows of a transpose; and so are channels behind each other. */
static void gather_taps(const struct weft_gemm_kernel *kernel, const struct weft_conv_weights *at, float *to,
                        const weft_loose_f32 *w, int64_t results, int64_t channels)
{
    const bool in_line = at->tap[1] == 3 * at->tap[2];
    const int64_t rows = in_line ? 9 : 3, turns = 9 / rows;
    if (in_line && at->c == 9 * at->tap[2]) {
        weft_gemm_gather(kernel, to, TOGETHER, w, at->tap[2], at->o, 9 * channels, results);
        return;
    }
    for (int64_t i = 0; i < channels * turns; i++)
        weft_gemm_gather(kernel, to + i * rows * TOGETHER, TOGETHER, w + i / turns * at->c + i % turns * at->tap[1],
                         at->tap[2], at->o, rows, results);
}

/* What is packed in one go: results from `o` on, channels [c, end) of them. */
struct piece {
    int64_t o, c, end;
};

static void pack_piece(const struct weft_packing *p, float *pack, const weft_loose_f32 *w,
                       const struct weft_conv_weights *at, struct piece piece)
{
    const struct weft_gemm_kernel *const kernel = weft_packing_kernel(p);
    const int64_t columns = kernel->columns, panels = weft_pieces(WEFT_WINOGRAD_PASS, columns);
    const int64_t point = weft_winograd_u_point(p->c, columns), results = smaller(p->o - piece.o, TOGETHER);
    const int64_t in_pass = piece.o % (panels * columns), m = weft_winograd_packed(p), points = (m + 2) * (m + 2);
    weft_winograd_points_fn *const transform = points_of(kernel);
    float taps[9 * TOGETHER * TOGETHER] = {0}, u[WEFT_WINOGRAD_POINTS * TOGETHER];
    float *to = pack + piece.o / (panels * columns) * weft_winograd_pass_size(p);
    to += in_pass / columns * p->c * columns + in_pass % columns + piece.c * columns;
    for (int64_t c = piece.c; c < piece.end; c++, to += columns) {
        const int64_t in_turn = (c - piece.c) % TOGETHER;
        if (in_turn == 0)
            gather_taps(kernel, at, taps, w + piece.o * at->o + c * at->c, results, smaller(piece.end - c, TOGETHER));
        if (columns >= TOGETHER) {
            transform((int)m, taps + in_turn * 9 * TOGETHER, to, point);
            continue;
        }
        transform((int)m, taps + in_turn * 9 * TOGETHER, u, TOGETHER); /* panels of one column */
        for (int64_t i = 0; i < points * TOGETHER; i++)
            to[i / TOGETHER * point + i % TOGETHER * p->c] = u[i];
    }
}

int64_t weft_winograd_u_point(int64_t c, int64_t columns)
{
    return c * weft_pieces(WEFT_WINOGRAD_PASS, columns) * columns + WEFT_WINOGRAD_STAGGER;
}

int64_t weft_winograd_pass_size(const struct weft_packing *p)
{
    const int64_t side = weft_winograd_packed(p) + 2;
    return side * side * weft_winograd_u_point(p->c, weft_packing_kernel(p)->columns);
}

int64_t weft_winograd_packed_size(const struct weft_packing *p)
{
    return weft_pieces(p->o, WEFT_WINOGRAD_PASS) * weft_winograd_pass_size(p);
}

/* Pieces are of TOGETHER results and channels each, or of all channels. */
void weft_winograd_pack(const struct weft_packing *p, float *pack, const weft_loose_f32 *w,
                        const struct weft_conv_weights *at, int part, int parts)
{
    const int64_t turns = weft_pieces(p->o, TOGETHER), cuts = parts > 1 ? weft_pieces(p->c, TOGETHER) : 1;
    int64_t begin, end;
    weft_share(turns * cuts, 1, part, parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t cut = i % cuts * TOGETHER;
        pack_piece(p, pack, w, at, (struct piece){i / cuts * TOGETHER, cut,
                                                  cuts > 1 ? smaller(p->c, cut + TOGETHER) : p->c});
    }
}
