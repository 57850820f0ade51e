/* SPDX-License-Identifier: Apache-2.0 */
/* grad_level.c: what the gradient of attention does between its products, at one CPU level. */
#include "kernels/attention/attention.h"
#include "kernels/attention/grad.h"
#include "kernels/strip/vector.h"
#include "kernels/strip/functions.h"

#if LANES == 16
static const vi lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif LANES == 8
static const vi lanes = {0, 1, 2, 3, 4, 5, 6, 7};
#else
static const vi lanes = {0, 1, 2, 3};
#endif

INLINE int some_of(int64_t left) { return left < LANES ? (int)left : LANES; }
INLINE vf load(const float *p, int some) { return some == LANES ? vload(p) : vloadm(p, some, 0); }
INLINE void store(float *p, int some, vf x)
{
    if (some == LANES)
        vstore(p, x);
    else
        vstorem(p, some, x);
}

/* One key and some rows, of which the first `hidden` do not see it. `bends`: there is a bound or a mask. */
INLINE void step_lanes(const struct weft_attention_grad_step *s, int64_t at, int64_t i, int some, int64_t hidden,
                       const bool bends)
{
    const vf product = load(s->score + at + i, some), centre = load(s->sums + i, some);
    const vf change = load(s->change + at + i, some) - load(s->delta + i, some);
    const vi off = lanes < (int)(hidden > LANES ? LANES : hidden < 0 ? 0 : hidden);
    vf slope = vall(s->factor), x = vfma(product, slope, -centre);
    if (bends) {
        vf score = product * s->factor;
        vi covered = (vi)vall(0);
        if (s->softcap > 0) {
            const vf inside = score / s->softcap, e = vexp(vabs(inside) * -2.f), sum = e + 1.f;
            score = vtanh(inside) * s->softcap;
            slope = slope * (4.f * e / (sum * sum)); /* 1 - tanh², which near 1 has no digits left */
        }
        if (s->mask) {
            const vf m = load(s->mask + at + i, some);
            covered = m <= WEFT_ATTENTION_HIDES;
            score = vsel(covered, m, score + m);
        }
        x = score - centre;
        slope = vsel(covered, vall(0), slope);
        const vf weight = vsel(off, vall(0), vexp(x));
        store(s->score + at + i, some, weight);
        store(s->change + at + i, some, vsel(off | covered, vall(0), weight * change * slope));
        return;
    }
    const vf weight = vexp(x);
    store(s->score + at + i, some, hidden > 0 ? vsel(off, vall(0), weight) : weight);
    const vf result = weight * change * slope;
    store(s->change + at + i, some, hidden > 0 ? vsel(off, vall(0), result) : result);
}

INLINE void step_keys(const struct weft_attention_grad_step *s, const bool bends)
{
    for (int64_t t = 0; t < s->keys; t++) {
        const int64_t hidden = s->hidden + t * s->more;
        int64_t i = 0;
        for (; i + LANES <= s->rows; i += LANES)
            step_lanes(s, t * s->row, i, LANES, hidden - i, bends);
        if (i < s->rows)
            step_lanes(s, t * s->row, i, (int)(s->rows - i), hidden - i, bends);
    }
}

static void step(const struct weft_attention_grad_step *s)
{
    if (s->mask || s->softcap > 0)
        step_keys(s, true);
    else
        step_keys(s, false);
}

static void delta(float *to, const float *x, const float *y, int64_t row, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i += LANES) {
        const int some = some_of(rows - i);
        vf sum = vall(0);
        for (int64_t j = 0; j < columns; j++)
            sum = vfma(vloadm(x + j * row + i, some, 0), vloadm(y + j * row + i, some, 0), sum);
        vstorem(to + i, some, sum);
    }
}

const struct weft_attention_grad_code LEVEL(weft_attention_grad_f32) = {
    .name = "weft_attention_grad_f32" LEVEL_TEXT, .cpu = LEVEL_CPU, .step = step, .delta = delta};
