/* SPDX-License-Identifier: Apache-2.0 */
/* transposed.c: bands and weights of TRANSPOSED. */
#include "kernels/conv/transposed.h"

/* The least and the largest place relative to q that any phase sees along an axis; 0 and 0 where nothing is seen. */
static void reach(const struct weft_conv_shape *s, int d, int64_t *ret_least, int64_t *ret_most)
{
    bool any = false;
    *ret_least = *ret_most = 0;
    for (int64_t f = 0; f < s->stride[d]; f++) {
        for (int64_t t = 0; t < s->kernel[d]; t++) {
            const int64_t place = f + s->pad[d] - t * s->dilation[d];
            if (place % s->stride[d] != 0)
                continue;
            const int64_t delta = place / s->stride[d];
            *ret_least = any && *ret_least < delta ? *ret_least : delta;
            *ret_most = any && *ret_most > delta ? *ret_most : delta;
            any = true;
        }
    }
}

struct weft_transposed weft_transposed_plan(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    struct weft_transposed p = {.grid = *s};
    for (int d = 0; d < 3; d++) {
        int64_t least, most;
        reach(s, d, &least, &most);
        p.grid.out[d] = weft_pieces(s->out[d], s->stride[d]), p.grid.kernel[d] = most - least + 1;
        p.grid.stride[d] = p.grid.dilation[d] = 1, p.grid.pad[d] = -least;
    }
    p.grid.line = p.grid.out[2];
    p.direct = weft_direct_plan(conv, &p.grid, 0);
    p.direct.block_size *= s->stride[2];
    p.direct.list_size = weft_conv_aligned(4 * s->taps);
    return p;
}

void weft_transposed_along(const struct weft_conv_shape *s, int d, int64_t phase, struct weft_transposed_phase *ret)
{
    ret->taps[d] = ret->first[d] = 0, ret->step[d] = 1;
    for (int64_t t = s->kernel[d] - 1; t >= 0; t--) {
        const int64_t place = phase + s->pad[d] - t * s->dilation[d];
        if (place % s->stride[d] != 0)
            continue;
        if (ret->taps[d] == 0)
            ret->first[d] = place / s->stride[d];
        else
            ret->step[d] = (place / s->stride[d] - ret->first[d]) / ret->taps[d];
        ret->taps[d]++;
    }
    ret->from[d] = 0, ret->to[d] = ret->taps[d];
}

static bool meets(const struct weft_packing *p, const int64_t phase[3], const int64_t tap[3])
{
    bool whole = true;
    for (int d = 0; d < 3; d++)
        whole = whole && (phase[d] + p->phase[d] - tap[d] * p->dilation[d]) % p->step[d] == 0;
    return whole;
}

void weft_transposed_pack(const struct weft_packing *p, float *pack, const weft_loose_f32 *w,
                          const struct weft_conv_weights *at, int part, int parts)
{
    const struct weft_gemm_kernel *const kernel = weft_packing_kernel(p);
    const int64_t phases = p->step[0] * p->step[1] * p->step[2], taps = weft_packing_taps(p);
    struct weft_direct_packing d;
    weft_direct_pack_begin(&d, p, pack, part, parts);
    for (int64_t j = 0; j < weft_direct_panels(kernel, p->o); j++) {
        const struct weft_direct_panel panel = weft_direct_panel(kernel, p->o, j);
        for (int64_t i = 0; i < phases * taps; i++) {
            int64_t phase[3], tap[3];
            weft_conv_unravel(p->step, i / taps, phase);
            weft_conv_unravel(p->taps, taps - 1 - i % taps, tap);
            if (meets(p, phase, tap))
                weft_direct_pack_tap(&d, p, &panel, w + panel.first * at->o + weft_conv_offset(tap, at->tap), at);
        }
    }
}
