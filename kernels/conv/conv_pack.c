/* SPDX-License-Identifier: Apache-2.0 */
/* conv_pack.c: weights in the order in which each form reads them: packed once where they are constants; in each run by
 * all parts together (together.h); or, if they are small, into scratch by each part, a group at a time if the order
 * allows it.
 *
 * Whoever packs is given the packing and where the weights lie, and nothing else of the convolution. So no order can
 * come to depend on something that the packing does not say, and that is not compared where a pack is read. */
#include "kernels/conv/direct.h"
#include "kernels/conv/phases.h"
#include "kernels/conv/transposed.h"
#include "kernels/conv/winograd.h"
#include "kernels/walk.h"

static enum weft_pack_order order_of(const struct weft_conv *conv, enum weft_conv_form form)
{
    switch (form) {
    case WEFT_CONV_POINT_ROWS: return (enum weft_pack_order)conv->gemm.packing.order;
    case WEFT_CONV_DIRECT: return WEFT_PACK_TAP_PANELS;
    case WEFT_CONV_PHASES: return WEFT_PACK_TILES;
    case WEFT_CONV_CHANNELS: return WEFT_PACK_TAPS;
    case WEFT_CONV_WINDOWS:
    case WEFT_CONV_GROUPED_WINDOWS:
    case WEFT_CONV_GROUPED: return WEFT_PACK_SIXTEENS;
    case WEFT_CONV_TRANSPOSED: return WEFT_PACK_PHASE_PANELS;
    case WEFT_CONV_WINOGRAD_2: return WEFT_PACK_WINOGRAD_2;
    case WEFT_CONV_WINOGRAD_4: return WEFT_PACK_WINOGRAD_4;
    case WEFT_CONV_PLAIN:
    case WEFT_CONV_COLUMNS:
    case WEFT_CONV_POINT_COLUMNS:
    case WEFT_CONV_PLANES:
    case WEFT_CONV_SLIDE: break;
    }
    return WEFT_PACK_ROWS;
}

static bool has_vectors(enum weft_pack_order order)
{
    return order == WEFT_PACK_PANELS || order == WEFT_PACK_TILES || order == WEFT_PACK_TAP_PANELS ||
           order == WEFT_PACK_PHASE_PANELS || order == WEFT_PACK_WINOGRAD_2 || order == WEFT_PACK_WINOGRAD_4;
}

struct weft_packing weft_conv_packing(const struct weft_conv *conv, const struct weft_conv_shape *s,
                                      enum weft_conv_form form)
{
    const enum weft_pack_order order = order_of(conv, form);
    struct weft_packing p = {.order = order, .dtype = WEFT_K_F32, .groups = s->groups, .o = s->o, .c = s->c,
                             .reversed = conv->transposed && !s->adjoint};
    if (has_vectors(order))
        p.kernel = conv->gemm.kernel - weft_gemm_kernels;
    for (int d = 0; d < 3; d++) {
        p.taps[d] = s->kernel[d];
        if (order != WEFT_PACK_PHASE_PANELS)
            continue;
        p.step[d] = s->stride[d], p.dilation[d] = s->dilation[d] % s->stride[d];
        p.phase[d] = (s->pad[d] % s->stride[d] + s->stride[d]) % s->stride[d];
    }
    return p;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

int64_t weft_conv_group_size(const struct weft_packing *p)
{
    const int64_t terms = weft_packing_terms(p);
    switch ((enum weft_pack_order)p->order) {
    case WEFT_PACK_PANELS:
    case WEFT_PACK_LINES: return weft_gemm_packed_size(p);
    case WEFT_PACK_TAP_PANELS:
    case WEFT_PACK_PHASE_PANELS: return weft_direct_weights(weft_packing_kernel(p), p->o, terms);
    case WEFT_PACK_WINOGRAD_2:
    case WEFT_PACK_WINOGRAD_4: return weft_winograd_packed_size(p);
    case WEFT_PACK_NONE:
    case WEFT_PACK_ROWS:
    case WEFT_PACK_TAPS:
    case WEFT_PACK_SIXTEENS:
    case WEFT_PACK_TILES: break;
    }
    return p->o * terms;
}

/* Floats of all packed weights. */
static int64_t packed_size(const struct weft_packing *p)
{
    const int64_t lanes = WEFT_WINDOWS_CHANNELS;
    return p->order == WEFT_PACK_SIXTEENS ? weft_pieces(p->groups * p->o, lanes) * lanes * weft_packing_terms(p)
                                          : p->groups * weft_conv_group_size(p);
}

int64_t weft_conv_packed_aside(const struct weft_packing *p)
{
    const bool all = p->order == WEFT_PACK_TAPS || p->order == WEFT_PACK_SIXTEENS;
    return all ? packed_size(p) : weft_conv_group_size(p);
}

size_t weft_conv_pack_bytes(const struct weft_conv *conv)
{
    return (size_t)packed_size(&conv->packing) * sizeof(float);
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

/* Which of what is to be packed. */
struct portion {
    int part, parts;
};

/* [o][tap][c] of a group; of one weight a tap, [tap] with room for all groups between. */
static void pack_rows(const struct weft_packing *p, float *pack, const weft_loose_f32 *w,
                      const struct weft_conv_weights *at, struct portion mine)
{
    const int64_t taps = weft_packing_taps(p), apart = p->order == WEFT_PACK_TAPS ? p->groups : p->c;
    int64_t o, end;
    weft_share(p->o, 1, mine.part, mine.parts, &o, &end);
    for (; o < end; o++) {
        for (int64_t t = 0; t < taps; t++) {
            int64_t tap[3];
            weft_conv_unravel(p->taps, t, tap);
            const weft_loose_f32 *from = w + o * at->o + weft_conv_offset(tap, at->tap);
            for (int64_t c = 0; c < p->c; c++)
                pack[(o * taps + t) * apart + c] = from[c * at->c];
        }
    }
}

/* What is behind the last result as zeros. */
static void pack_sixteens(const struct weft_packing *p, float *pack, const weft_loose_f32 *w,
                          const struct weft_conv_weights *at, struct portion mine)
{
    const int64_t lanes = WEFT_WINDOWS_CHANNELS, taps = weft_packing_taps(p);
    int64_t o, end;
    weft_share(weft_pieces(p->groups * p->o, lanes) * lanes, lanes, mine.part, mine.parts, &o, &end);
    for (; o < end; o++) {
        for (int64_t t = 0; t < taps; t++) {
            int64_t tap[3];
            weft_conv_unravel(p->taps, t, tap);
            const weft_loose_f32 *from =
                w + o / p->o * at->group + o % p->o * at->o + weft_conv_offset(tap, at->tap);
            float *to = pack + ((o / lanes * taps + t) * p->c) * lanes + o % lanes;
            for (int64_t c = 0; c < p->c; c++)
                to[c * lanes] = o < p->groups * p->o ? from[c * at->c] : 0;
        }
    }
}

/* Of the weights of a group, which begin at `w`. */
static void pack_group(const struct weft_packing *p, const struct weft_gemm_kernel *by, float *pack,
                       const weft_loose_f32 *w, const struct weft_conv_weights *at, struct portion mine)
{
    switch ((enum weft_pack_order)p->order) {
    case WEFT_PACK_PANELS:
    case WEFT_PACK_LINES: weft_gemm_pack_as(p, by, pack, w, at->c, at->o, mine.part, mine.parts); break;
    case WEFT_PACK_TAP_PANELS: weft_direct_pack(p, pack, w, at, mine.part, mine.parts); break;
    case WEFT_PACK_PHASE_PANELS: weft_transposed_pack(p, pack, w, at, mine.part, mine.parts); break;
    case WEFT_PACK_TILES: weft_phases_pack(p, pack, w, at, mine.part, mine.parts); break;
    case WEFT_PACK_WINOGRAD_2:
    case WEFT_PACK_WINOGRAD_4: weft_winograd_pack(p, pack, w, at, mine.part, mine.parts); break;
    case WEFT_PACK_ROWS:
    case WEFT_PACK_TAPS: pack_rows(p, pack, w, at, mine); break;
    case WEFT_PACK_NONE:
    case WEFT_PACK_SIXTEENS: break; /* of all groups at once */
    }
}

void weft_conv_pack_group(const struct weft_conv *conv, const struct weft_conv_shape *s, float *pack,
                          const weft_loose_f32 *w, int64_t g)
{
    pack_group(&conv->packing, conv->gemm.kernel, pack, w + s->w.first + g * s->w.group, &s->w, (struct portion){0, 1});
}

/* Parts have groups of their own, or, of fewer groups than parts, all a portion of each. */
void weft_conv_pack_part(const struct weft_conv *conv, float *pack, const weft_loose_f32 *w, int part, int parts)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    const struct weft_packing *const p = &conv->packing;
    if (p->order == WEFT_PACK_SIXTEENS) {
        pack_sixteens(p, pack, w + s.w.first, &s.w, (struct portion){part, parts});
        return;
    }
    const int64_t size = p->order == WEFT_PACK_TAPS ? 1 : weft_conv_group_size(p);
    const bool whole = s.groups >= parts;
    int64_t g = 0, end = s.groups;
    if (whole)
        weft_share(s.groups, 1, part, parts, &g, &end);
    for (; g < end; g++)
        pack_group(p, conv->gemm.kernel, pack + g * size, w + s.w.first + g * s.w.group, &s.w,
                   whole ? (struct portion){0, 1} : (struct portion){part, parts});
}

void weft_conv_pack(const struct weft_conv *conv, float *pack, const weft_loose_f32 *w)
{
    weft_conv_pack_part(conv, pack, w, 0, 1);
}
