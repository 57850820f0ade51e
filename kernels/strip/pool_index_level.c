/* SPDX-License-Identifier: Apache-2.0 */
/* pool_index_level.c: the inner loops of maxima of windows and their places. Compiled once per CPU level.
 *
 * Each tap is a comparison, a maximum and a choice of places; of equal elements the first stays, since none exceeds it.
 * NaN exceeds nothing either: that there is one is all that vectors find out, two taps or vectors by one comparison,
 * and the windows of that vector are then looked at one by one. */
#include "kernels/strip/pool_index.h"
#include "kernels/strip/even_odd.h"

#include <string.h>

enum { MOST = 4 }; /* vectors side by side */

/* The largest elements so far, and how far behind the window's first tap they stand. */
struct found {
    vf largest[MOST];
    vi place[MOST];
};

/* Which lanes have seen numbers only: a bit of each, or all bits. */
#if LANES == 16
typedef uint16_t fine;
#define ALL_FINE ((fine)-1)
INLINE bool is_fine(fine seen) { return seen == ALL_FINE; }
INLINE fine both_fine(fine seen, vf a, vf b)
{
    return __builtin_ia32_cmpps512_mask(a, b, 7 /* ordered */, seen, WEFT_CURRENT);
}
INLINE void look(struct found *f, int v, vf x, vi place)
{
    const uint16_t more =
        __builtin_ia32_cmpps512_mask(x, f->largest[v], 30 /* greater */, WEFT_ALL_LANES, WEFT_CURRENT);
    f->place[v] = (vi)vpass(more, (vf)place, (vf)f->place[v]);
    f->largest[v] = vmax_x86(x, f->largest[v]);
}
#else
typedef vi fine;
#define ALL_FINE viall(-1)
INLINE bool is_fine(fine seen) { return !vany_from((vu)~seen, 1); }
#if LANES == 8
INLINE fine both_fine(fine seen, vf a, vf b) { return seen & (vi)__builtin_ia32_cmpps256(a, b, 7 /* ordered */); }
INLINE vi choose(vi mask, vi a, vi b) { return (vi)__builtin_ia32_blendvps256((vf)b, (vf)a, (vf)mask); }
#else
INLINE fine both_fine(fine seen, vf a, vf b) { return seen & (a == a) & (b == b); }
INLINE vi choose(vi mask, vi a, vi b) { return visel(mask, a, b); }
#endif
INLINE void look(struct found *f, int v, vf x, vi place)
{
    const vi more = x > f->largest[v];
    f->place[v] = choose(more, place, f->place[v]);
    f->largest[v] = vmax_x86(x, f->largest[v]);
}
#endif

INLINE void look_all(struct found *f, fine *seen, const struct weft_pool_windows *w, int64_t at, int vectors, int last)
{
    for (int64_t t = 0; t < w->taps; t++) {
        const float *const from = w->from[t] + at;
        const vi place = viall(w->place[t]);
        vf x[MOST];
        UNROLL for (int v = 0; v < vectors; v++)
        {
            x[v] = v + 1 < vectors || last == LANES ? vload(from + v * LANES) : vloadm(from + v * LANES, last, 0.f);
            look(f, v, x[v], place);
        }
        UNROLL for (int v = 0; v < vectors; v += 2)
            *seen = both_fine(*seen, x[v], x[v + 1 < vectors ? v + 1 : v]);
    }
}

/* --- what vectors do not look at ---------------------------------------------------------------------------------- */

INLINE int32_t first_place(const struct weft_pool_windows *w, int64_t i)
{
    return w->first ? w->above + w->first[i] : w->above;
}

/* Windows [i, i + n), of which some may hold a NaN: the first of them is the maximum. `at`: elements from from[t]. */
static __attribute__((noinline)) void look_each(float *largest, int32_t *place, const struct weft_pool_windows *w,
                                                int64_t at, int64_t i, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        largest[k] = -__builtin_inff();
        place[k] = first_place(w, i + k);
        for (int64_t t = 0; t < w->taps && largest[k] == largest[k]; t++) {
            const float x = w->from[t][at + k];
            if (x > largest[k] || x != x) {
                largest[k] = x;
                place[k] = w->place[t];
            }
        }
    }
}

/* --- results ------------------------------------------------------------------------------------------------------ */

INLINE void put(float *to, int64_t step, int n, vf x)
{
    if (step == 1 && n == LANES)
        vstore(to, x);
    else if (step == 1)
        vstorem(to, n, x);
    else
        for (int i = 0; i < n; i++)
            to[i * step] = x[i];
}

typedef int64_t vl_any __attribute__((vector_size(4 * LANES), aligned(8), may_alias));
typedef int32_t vi_half __attribute__((vector_size(2 * LANES)));
#define LOW  __builtin_shufflevector(places, places, LOW_LANES)
#define HIGH __builtin_shufflevector(places, places, HIGH_LANES)

/* base[0] and base[1] are added to the lower lanes and to the upper ones. */
INLINE void put_places(int64_t *to, int64_t step, int n, vi places, const vl base[2])
{
    const vl low = __builtin_convertvector((vi_half)LOW, vl) + base[0];
    const vl high = __builtin_convertvector((vi_half)HIGH, vl) + base[1];
    if (step == 1 && n == LANES) {
        *(vl_any *)to = low;
        *(vl_any *)(to + LANES / 2) = high;
        return;
    }
    int64_t each[LANES];
    memcpy(each, &low, sizeof low);
    memcpy(each + LANES / 2, &high, sizeof high);
    for (int i = 0; i < n; i++)
        to[i * step] = each[i];
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

/* What all windows add to places: those of the lanes of a vector, apart from its first one's. */
struct lanes {
    vi along;
    vl base[2];
};

INLINE void some_windows(const struct weft_pool_windows *w, const struct lanes *lanes, int64_t run, int64_t i,
                         int vectors, int last)
{
    struct found f;
    fine seen = ALL_FINE;
    UNROLL for (int v = 0; v < vectors; v++)
    {
        f.largest[v] = vall(-__builtin_inff());
        f.place[v] = viall(w->above);
        if (w->first)
            f.place[v] += viload(w->first + i + v * LANES);
    }
    look_all(&f, &seen, w, run * w->from_run + i, vectors, last);
    if (__builtin_expect(!is_fine(seen), 0)) {
        float largest[MOST * LANES];
        int32_t place[MOST * LANES];
        const int64_t n = (vectors - 1) * LANES + last;
        look_each(largest, place, w, run * w->from_run + i, i, n);
        memcpy(f.largest, largest, (size_t)n * sizeof *largest);
        memcpy(f.place, place, (size_t)n * sizeof *place);
    }
    const int64_t start = w->start + run * w->start_run;
    UNROLL for (int v = 0; v < vectors; v++)
    {
        const int64_t at = i + v * LANES;
        const int n = v + 1 < vectors ? LANES : last;
        const vl more = w->base + at * w->apart - (vl){0};
        put(w->out + run * w->out_run + at * w->out_step, w->out_step, n, f.largest[v]);
        put_places(w->index + run * w->index_run + at * w->index_step, w->index_step, n,
                   f.place[v] + lanes->along + viall((int32_t)(start + at * w->along)),
                   (const vl[2]){lanes->base[0] + more, lanes->base[1] + more});
    }
}

/* Whole vectors are known to be whole. */
#define LAST_WINDOWS(vectors)                                                                                          \
    do {                                                                                                               \
        if (left == (vectors)*LANES)                                                                                   \
            some_windows(w, &lanes, run, i, vectors, LANES);                                                           \
        else                                                                                                           \
            some_windows(w, &lanes, run, i, vectors, left - ((vectors)-1) * LANES);                                    \
    } while (0)

static void windows_fn(const struct weft_pool_windows *w)
{
    struct lanes lanes = {.along = (vi){LOW_LANES, HIGH_LANES} * w->along};
    for (int i = 0; w->apart && i < LANES; i++)
        lanes.base[i / (LANES / 2)][i % (LANES / 2)] = i * w->apart;
    for (int64_t run = 0; run < w->runs; run++) {
        int64_t i = 0;
        for (; i + MOST * LANES <= w->count; i += MOST * LANES)
            some_windows(w, &lanes, run, i, MOST, LANES);
        const int left = (int)(w->count - i);
        if (left > 3 * LANES)
            LAST_WINDOWS(4);
        else if (left > 2 * LANES)
            LAST_WINDOWS(3);
        else if (left > LANES)
            LAST_WINDOWS(2);
        else if (left > 0)
            LAST_WINDOWS(1);
        for (i = 0; w->some_empty && i < w->count; i++)
            if (w->first[i] < 0)
                w->index[run * w->index_run + i * w->index_step] = 0;
    }
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

INLINE vf load_up_to(const float *p, int64_t n)
{
    return n >= LANES ? vload(p) : vloadm(p, n > 0 ? (int)n : 0, -__builtin_inff());
}

static void line_fn(float *line, int64_t pitch, int64_t stride, const float *x, int64_t step, int64_t n)
{
    int64_t i = 0, to = 0;
    if (stride == 1 && step == 1)
        for (; i < n; i += LANES)
            vstore(line + i, load_up_to(x + i, n - i));
    if (stride == 2 && step == 1)
        for (; i < n; i += 2 * LANES, to += LANES) {
            const vf a = load_up_to(x + i, n - i), b = load_up_to(x + i + LANES, n - i - LANES);
            vstore(line + to, __builtin_shufflevector(a, b, EVEN));
            vstore(line + pitch + to, __builtin_shufflevector(a, b, ODD));
        }
    for (; i < n; i += stride, to++)
        for (int64_t p = 0; p < stride && i + p < n; p++)
            line[p * pitch + to] = x[(i + p) * step];
}

const struct weft_pool_index_loops LEVEL(weft_pool_index_loops) = {
    "weft_pool_index_rows_f32" LEVEL_TEXT, "weft_pool_index_channels_f32" LEVEL_TEXT, LEVEL_CPU, windows_fn, line_fn};
