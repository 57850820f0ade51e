/* SPDX-License-Identifier: Apache-2.0 */
/* conv_pack.c: weights in the order in which each form reads them: packed once where they are constants, or into
 * scratch by each part of a run, a group at a time if the form allows it. */
#include "kernels/conv/direct.h"
#include "kernels/conv/phases.h"
#include "kernels/conv/transposed.h"
#include "kernels/conv/winograd.h"

/* Weights are packed as [sixteen results][taps][c][16]. */
static bool by_sixteens(enum weft_conv_form form)
{
    return form == WEFT_CONV_WINDOWS || form == WEFT_CONV_GROUPED_WINDOWS || form == WEFT_CONV_GROUPED;
}

/* [o][taps][c] for what reads a result's weights in a row; panels [o / columns][taps·c][columns] where o runs along
 * vectors; CHANNELS: [taps][groups], of which group g is a column; WINOGRAD: as winograd.h says. */
int64_t weft_conv_group_size(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    const enum weft_conv_form form = weft_conv_kernels[conv->form].form;
    if (weft_winograd_of(form)) {
        const struct weft_winograd plan = weft_winograd_plan(conv, s, weft_winograd_of(form));
        return plan.passes * plan.pass_size;
    }
    if (form == WEFT_CONV_POINT_ROWS)
        return (int64_t)(weft_gemm_pack_bytes(&conv->gemm) / sizeof(float));
    const bool panels = form == WEFT_CONV_DIRECT || form == WEFT_CONV_TRANSPOSED;
    return panels ? weft_direct_weights(conv->gemm.kernel, s) : s->o * s->k;
}

/* Floats of all packed weights. */
static int64_t packed_size(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    if (by_sixteens(weft_conv_kernels[conv->form].form))
        return weft_pieces(s->groups * s->o, WEFT_WINDOWS_CHANNELS) * WEFT_WINDOWS_CHANNELS * s->k;
    return weft_conv_group_size(conv, s) * s->groups;
}

int64_t weft_conv_packed_aside(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    const enum weft_conv_form form = weft_conv_kernels[conv->form].form;
    const bool all = form == WEFT_CONV_CHANNELS || by_sixteens(form);
    return all ? packed_size(conv, s) : weft_conv_group_size(conv, s);
}

void weft_conv_pack_group(const struct weft_conv *conv, const struct weft_conv_shape *s, float *pack,
                          const weft_loose_f32 *w, int64_t g)
{
    const enum weft_conv_form form = weft_conv_kernels[conv->form].form;
    const weft_loose_f32 *from = w + g * s->w_group + s->w_first;
    if (weft_winograd_of(form)) {
        weft_winograd_pack(conv, s, weft_winograd_of(form), pack, from);
        return;
    }
    if (form == WEFT_CONV_POINT_ROWS) {
        weft_gemm_pack(&conv->gemm, pack, from);
        return;
    }
    if (form == WEFT_CONV_TRANSPOSED) {
        weft_transposed_pack(conv, s, pack, from);
        return;
    }
    if (form == WEFT_CONV_PHASES) {
        weft_phases_pack(conv, s, pack, from);
        return;
    }
    if (form == WEFT_CONV_DIRECT) {
        weft_direct_pack(conv, s, pack, from);
        return;
    }
    for (int64_t o = 0; o < s->o; o++) {
        for (int64_t t = 0; t < s->taps; t++) {
            int64_t tap[3];
            weft_conv_unravel(s->kernel, t, tap);
            const weft_loose_f32 *at = from + o * s->w_o + weft_conv_offset(tap, s->w_at);
            if (form == WEFT_CONV_CHANNELS)
                pack[t * s->groups] = *at;
            for (int64_t c = 0; form != WEFT_CONV_CHANNELS && c < s->c; c++)
                pack[o * s->k + t * s->c + c] = at[c * s->w_c];
        }
    }
}

size_t weft_conv_pack_bytes(const struct weft_conv *conv)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    return (size_t)packed_size(conv, &s) * sizeof(float);
}

/* What is behind the last result as zeros. */
static void pack_sixteens(const struct weft_conv_shape *s, float *pack, const weft_loose_f32 *w)
{
    const int64_t lanes = WEFT_WINDOWS_CHANNELS;
    for (int64_t o = 0; o < weft_pieces(s->groups * s->o, lanes) * lanes; o++) {
        for (int64_t t = 0; t < s->taps; t++) {
            int64_t tap[3];
            weft_conv_unravel(s->kernel, t, tap);
            const weft_loose_f32 *from =
                w + o / s->o * s->w_group + o % s->o * s->w_o + s->w_first + weft_conv_offset(tap, s->w_at);
            float *to = pack + ((o / lanes * s->taps + t) * s->c) * lanes + o % lanes;
            for (int64_t c = 0; c < s->c; c++)
                to[c * lanes] = o < s->groups * s->o ? from[c * s->w_c] : 0;
        }
    }
}

void weft_conv_pack(const struct weft_conv *conv, float *pack, const weft_loose_f32 *w)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    const enum weft_conv_form form = weft_conv_kernels[conv->form].form;
    if (by_sixteens(form)) {
        pack_sixteens(&s, pack, w);
        return;
    }
    const int64_t size = form == WEFT_CONV_CHANNELS ? 1 : weft_conv_group_size(conv, &s);
    for (int64_t g = 0; g < s.groups; g++)
        weft_conv_pack_group(conv, &s, pack + g * size, w, g);
}
