/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c: results beside what was expected, element by element, within the spread that noise has shown.
 *
 *   want 0.5, moved by 3e-8 at most        0.50000006 is right, 0.5001 is not
 *   want inf, a move made it 3e38          says nothing
 *   want -0.0, no move changed its sign    0.0 is wrong */
#include "tests/property/random_graph.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_SAMPLES = 3, LAST_SAMPLES = 60 };
#define SAFETY 4 /* how much further than the furthest move an honest kernel may be: moves of sums cancel */

/* --- the spread --------------------------------------------------------------------------------------------------- */

/* NaN, the infinities, zeros of both signs, numbers of both signs. */
static int kind_of(double x) { return isnan(x) ? 0 : isinf(x) ? (x > 0 ? 1 : 2) : x == 0 ? (signbit(x) ? 3 : 4) : 5; }

static bool same_shape(const struct weft_tensor *a, const struct weft_tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->extent[i] == b->extent[i];
    return same;
}

static void compare_sample(struct weft_spread *spread, const struct weft_tensor *base, const struct weft_tensor *sample)
{
    if (!same_shape(base, sample)) {
        spread->other_shape = true;
        return;
    }
    const bool real = weft_dtype_is_float(base->dtype);
    for (int64_t i = 0; i < spread->count; i++) {
        if (!real) {
            if (weft_load_integer(base->dtype, base->data, i) != weft_load_integer(base->dtype, sample->data, i))
                spread->unstable[i] = true;
            continue;
        }
        const double x = weft_load_real(base->dtype, base->data, i), y = weft_load_real(base->dtype, sample->data, i);
        if (isfinite(x) && isfinite(y))
            spread->moved[i] = fmax(spread->moved[i], fabs(x - y));
        if (kind_of(x) != kind_of(y))
            spread->unstable[i] = spread->unstable[i] || !isfinite(x) || !isfinite(y) || x == y;
    }
}

static bool open_noise(struct weft_noise *noise)
{
    const uint32_t results = noise->graph->returns;
    noise->base = calloc(results + 1, sizeof *noise->base);
    noise->spread = calloc(results + 1, sizeof *noise->spread);
    if (!noise->base || !noise->spread ||
        !weft_noisy_evaluate(noise->graph, noise->symbols, noise->in, noise->base, 0, false))
        return false;
    for (uint32_t i = 0; i < results; i++) {
        struct weft_spread *spread = &noise->spread[i];
        spread->count = weft_tensor_count(&noise->base[i]);
        spread->moved = calloc((size_t)spread->count + 1, sizeof *spread->moved);
        spread->unstable = calloc((size_t)spread->count + 1, sizeof *spread->unstable);
        if (!spread->moved || !spread->unstable)
            return false;
    }
    return true;
}

bool weft_noise_measure(struct weft_noise *noise, int samples)
{
    const uint32_t results = noise->graph->returns;
    if (!noise->spread && !open_noise(noise))
        return false;
    for (; noise->samples < samples; noise->samples++) {
        struct weft_tensor *sample = calloc(results + 1, sizeof *sample);
        if (!sample)
            return false;
        const bool done = weft_noisy_evaluate(noise->graph, noise->symbols, noise->in, sample,
                                              1000u + 77u * (uint64_t)noise->samples, noise->nans);
        for (uint32_t i = 0; i < results; i++) {
            if (done)
                compare_sample(&noise->spread[i], &noise->base[i], &sample[i]);
            else /* what moved made sizes that the graph refuses */
                noise->spread[i].other_shape = true;
            weft_tensor_free(noise->graph->context, &sample[i]);
        }
        free(sample);
    }
    return true;
}

void weft_noise_free(struct weft_noise *noise)
{
    for (uint32_t i = 0; noise->spread && i < noise->graph->returns; i++) {
        free(noise->spread[i].moved);
        free(noise->spread[i].unstable);
        weft_tensor_free(noise->graph->context, &noise->base[i]);
    }
    free(noise->spread);
    free(noise->base);
    noise->spread = NULL;
    noise->base = NULL;
}

/* --- the verdict -------------------------------------------------------------------------------------------------- */

/* Two roundings of the type, which noise that was rounded away does not show. */
static double rounding(int dtype, double x)
{
    switch (dtype) {
    case WEFT_F64: return 2 * fmax(fabs(x) * DBL_EPSILON, 0x1p-1074);
    case WEFT_F32: return 2 * fmax(fabs(x) * FLT_EPSILON, 0x1p-149);
    case WEFT_F16: return 2 * fmax(fabs(x) * 0x1p-10, 0x1p-24);
    case WEFT_BF16: return 2 * fmax(fabs(x) * 0x1p-7, 0x1p-133);
    case WEFT_F8E4M3: return fmax(fabs(x) * 0x1p-3, 0x1p-9);
    default: return fmax(fabs(x) * 0x1p-2, 0x1p-16);
    }
}

/* Is element i of result r right, or does the noise say that nobody knows? */
static bool is_right(const struct weft_tensor *want, const struct weft_tensor *got, uint32_t r, int64_t i,
                     struct weft_noise *const *noise, int noises, bool exact)
{
    const bool real = weft_dtype_is_float(want->dtype);
    const double x = weft_load_real(want->dtype, want->data, i), y = weft_load_real(want->dtype, got->data, i);
    if (real ? kind_of(x) == kind_of(y) && (x == y || isnan(x))
             : weft_load_integer(want->dtype, want->data, i) == weft_load_integer(want->dtype, got->data, i))
        return true;
    const bool only_nans = exact && !(real && x == 0 && y == 0);
    double moved = 0;
    bool known = false;
    for (int k = 0; k < noises; k++) {
        if (!noise[k]->spread || noise[k]->nans != only_nans)
            continue;
        const struct weft_spread *spread = &noise[k]->spread[r];
        if (spread->other_shape || i >= spread->count || spread->unstable[i])
            return true;
        moved = fmax(moved, spread->moved[i]);
        known = true;
    }
    if (!known || !real || !isfinite(x) || !isfinite(y) || (x == 0 && y == 0 && moved == 0))
        return false; /* a zero that moves has no sign that counts */
    return fabs(x - y) <= SAFETY * moved + (moved > 0 ? rounding(want->dtype, x) : 0);
}

static int64_t first_wrong(const struct weft_tensor *want, const struct weft_tensor *got, uint32_t r,
                           struct weft_noise *const *noise, int noises, bool exact)
{
    const int64_t count = weft_tensor_count(want);
    for (int64_t i = 0; i < count; i++)
        if (!is_right(want, got, r, i, noise, noises, exact))
            return i;
    return -1;
}

bool weft_judge(const struct weft_tensor *want, const struct weft_tensor *got, uint32_t results,
                struct weft_noise *const *noise, int noises, bool exact, char *message, size_t bytes)
{
    static const int samples[] = {0, FIRST_SAMPLES, LAST_SAMPLES};
    for (uint32_t r = 0; r < results; r++) {
        int64_t i = -1;
        bool shapes = true;
        for (int round = 0; round < (noises ? 3 : 1); round++) {
            for (int k = 0; k < noises && samples[round]; k++)
                if (!weft_noise_measure(noise[k], samples[round])) {
                    snprintf(message, bytes, "memory is short");
                    return false;
                }
            shapes = same_shape(&want[r], &got[r]);
            for (int k = 0; k < noises && !shapes; k++)
                shapes = noise[k]->spread && noise[k]->spread[r].other_shape;
            i = same_shape(&want[r], &got[r]) ? first_wrong(&want[r], &got[r], r, noise, noises, exact) : -1;
            if (shapes && i < 0)
                break;
        }
        if (!shapes) {
            snprintf(message, bytes, "result %u has other extents", r);
            return false;
        }
        if (i >= 0) {
            const double moved = noises && noise[0]->spread ? noise[0]->spread[r].moved[i] : 0;
            snprintf(message, bytes, "result %u, element %lld is %.9g instead of %.9g (moved by %.3g)", r, (long long)i,
                     weft_load_real(got[r].dtype, got[r].data, i), weft_load_real(want[r].dtype, want[r].data, i),
                     moved);
            return false;
        }
    }
    return true;
}
