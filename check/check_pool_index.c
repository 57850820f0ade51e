/* SPDX-License-Identifier: Apache-2.0 */
/* check_pool_index.c: maxima of windows and their places against the definition, in all layouts, levels and numbers of
 * parts; and the gradient that goes back to places. */
#include "check/check.h"
#include "kernels/strip/pool_grad.h"
#include "kernels/strip/pool_index.h"

#include <stdio.h>
#include <string.h>

struct variant {
    const char *name;
    uint32_t cpu;
};

static const struct variant variants[] = {
#define POOL_INDEX(id, level, cpu) {"weft_pool_index_" #id "__" #level, cpu},
#include "kernels/strip/pool_index.def"
};

/* Extents as five axes, missing ones 1; strides of a dense array whose axes lie row-major, channels-last or in any
 * order. */
static int64_t lay(struct weft_check *check, int64_t n, int64_t c, const int64_t *spatial, int rank, int64_t *stride)
{
    int64_t extent[5] = {n, c, 1, 1, 1}, step = 1;
    int order[5] = {0, 1, 2, 3, 4};
    const int64_t how = weft_check_between(check, 0, 9);
    memcpy(extent + 2, spatial, (size_t)rank * sizeof *spatial);
    for (int i = 4; i > 1 && how < 5; i--) /* channels last */
        order[i - 1] = i;
    if (how < 5)
        order[4] = 1;
    for (int i = 4; i > 0 && how == 9; i--) {
        const int other = (int)weft_check_between(check, 0, i), kept = order[i];
        order[i] = order[other], order[other] = kept;
    }
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        step *= extent[order[i]];
    }
    return step;
}

struct sizes {
    int64_t elements, results, places;
};

static void random_pool(struct weft_check *check, struct weft_pool_index *p, struct sizes *sizes)
{
    struct weft_pool *const w = &p->pool;
    *p = (struct weft_pool_index){.column_major = weft_check_between(check, 0, 1),
                                  .in_plane = weft_check_between(check, 0, 1)};
    *w = (struct weft_pool){.cpu = weft_check_cpu(check), .spatial = (int32_t)weft_check_between(check, 1, 3),
                            .n = weft_check_between(check, 1, 2), .c = weft_check_between(check, 1, 90)};
    const bool whole = !weft_check_between(check, 0, 5); /* windows as large as the array */
    const bool wide = !weft_check_between(check, 0, 5);  /* rows that are cut, or too many taps */
    const bool deep = !wide && !whole && !weft_check_between(check, 0, 4); /* little room for rows with much padding */
    if (wide)
        w->spatial = 1, w->c = weft_check_between(check, 1, 3);
    else if (deep)
        w->spatial = 2, w->c = weft_check_between(check, 1, 3);
    for (int i = 0; i < w->spatial; i++) {
        const bool last = i == w->spatial - 1;
        w->kernel[i] = wide && !weft_check_between(check, 0, 2) ? weft_check_between(check, 200, 400)
                                                               : weft_check_between(check, 1, whole ? 20 : 5);
        w->stride[i] = weft_check_between(check, 1, weft_check_between(check, 0, 9) ? 3 : 5000);
        w->dilation[i] = weft_check_between(check, 1, whole ? 1 : 3);
        w->pad[i] = whole ? 0 : weft_check_between(check, 0, w->kernel[i] + 1);
        w->pad_after[i] = whole ? 0 : weft_check_between(check, 0, w->kernel[i] + 1);
        if (deep && !last)
            w->kernel[i] = 2, w->stride[i] = 1, w->dilation[i] = weft_check_between(check, 5, 60);
        else if (deep)
            w->pad[i] = weft_check_between(check, 0, 600), w->pad_after[i] = weft_check_between(check, 0, 600);
        const int64_t window = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t more = wide || (deep && last) ? weft_check_between(check, 0, deep ? 600 : 3000)
                                                   : weft_check_between(check, 0, last ? 70 : 9);
        w->in_extent[i] = whole ? window : window + more - weft_check_between(check, 0, w->pad[i]);
        w->in_extent[i] = w->in_extent[i] < 0 ? 0 : w->in_extent[i];
        const int64_t room = w->in_extent[i] + w->pad[i] + w->pad_after[i] - window;
        w->out_extent[i] = room < 0 ? 0 : room / w->stride[i] + 1;
    }
    sizes->elements = lay(check, w->n, w->c, w->in_extent, w->spatial, w->in_stride);
    sizes->results = lay(check, w->n, w->c, w->out_extent, w->spatial, w->out_stride);
    sizes->places = lay(check, w->n, w->c, w->out_extent, w->spatial, p->index_stride);
}

/* The definition for one result. o: its place in the spatial axes. */
static float define(const struct weft_pool_index *p, const float *plane, int64_t number, const int64_t *o,
                    int64_t *ret_place)
{
    const struct weft_pool *const w = &p->pool;
    float best = -__builtin_inff();
    int64_t taps = 1, size = 1;
    bool any = false;
    *ret_place = 0;
    for (int i = 0; i < w->spatial; i++)
        taps *= w->kernel[i], size *= w->in_extent[i];
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t rest = tap, at = 0, place = 0, unit = 1, x[3];
        bool inside = true;
        for (int i = w->spatial - 1; i >= 0; rest /= w->kernel[i--]) {
            x[i] = o[i] * w->stride[i] - w->pad[i] + rest % w->kernel[i] * w->dilation[i];
            inside &= x[i] >= 0 && x[i] < w->in_extent[i];
            at += x[i] * w->in_stride[2 + i];
        }
        for (int k = 0; k < w->spatial; k++) { /* from the axis that counts fastest */
            const int i = p->column_major ? k : w->spatial - 1 - k;
            place += x[i] * unit, unit *= w->in_extent[i];
        }
        if (!inside || (any && !(plane[at] > best) && (plane[at] == plane[at] || best != best)))
            continue;
        any = true;
        best = plane[at];
        *ret_place = place + (p->in_plane ? 0 : number * size);
    }
    return best;
}

static void check_values(struct weft_check *check, const struct weft_pool_index *p, const float *in, const float *out,
                         const int64_t *index)
{
    const struct weft_pool *const w = &p->pool;
    int64_t results = 1;
    for (int i = 0; i < w->spatial; i++)
        results *= w->out_extent[i];
    for (int64_t plane = 0; plane < w->n * w->c; plane++)
        for (int64_t k = 0; k < results; k++) {
            const int64_t n = plane / w->c, c = plane % w->c;
            int64_t o[3], rest = k, place;
            int64_t to = n * w->out_stride[0] + c * w->out_stride[1];
            int64_t at = n * p->index_stride[0] + c * p->index_stride[1];
            for (int i = w->spatial - 1; i >= 0; rest /= w->out_extent[i--]) {
                o[i] = rest % w->out_extent[i];
                to += o[i] * w->out_stride[2 + i], at += o[i] * p->index_stride[2 + i];
            }
            const float want = define(p, in + n * w->in_stride[0] + c * w->in_stride[1], plane, o, &place);
            const bool same = (want != want && out[to] != out[to]) || memcmp(&want, &out[to], sizeof want) == 0;
            if (same && index[at] == place)
                continue;
            weft_check_fail(check, "plane %lld, result %lld: %.9g at %lld, should be %.9g at %lld", (long long)plane,
                            (long long)k, (double)out[to], (long long)index[at], (double)want, (long long)place);
            return;
        }
}

static void check_case(struct weft_check *check, const struct weft_pool_index *p, const struct sizes *s)
{
    float *const in = weft_check_alloc(check, (size_t)s->elements * sizeof *in);
    float *const out = weft_check_alloc(check, (size_t)s->results * sizeof *out);
    int64_t *const index = weft_check_alloc(check, (size_t)s->places * sizeof *index);
    const int64_t how = weft_check_between(check, 0, 3);
    weft_check_fill(check, in, s->elements, how ? WEFT_FILL_HOSTILE : WEFT_FILL_PLAIN);
    for (int64_t i = 0; how == 2 && i < s->elements; i++) /* many ties, and windows of -infinity alone */
        in[i] = weft_check_between(check, 0, 3) ? -__builtin_inff() : (float)weft_check_between(check, -1, 1);
    for (int parts = 1; parts <= 4; parts++) {
        memset(out, 0x55, (size_t)s->results * sizeof *out);
        memset(index, 0x55, (size_t)s->places * sizeof *index);
        for (int part = parts - 1; part >= 0; part--)
            weft_pool_index_run(p, out, index, in, part, parts);
        check_values(check, p, in, out, index);
    }
}

static void body(struct weft_check *check, const void *user)
{
    const struct variant *const variant = user;
    int cases = 0;
    for (int tries = 0; cases < 60 && tries < 20000 && !weft_check_failed(check); tries++) {
        struct weft_pool_index p;
        struct sizes sizes;
        random_pool(check, &p, &sizes);
        if (sizes.elements > 60000 || sizes.results > 60000)
            continue;
        weft_pool_index_prepare(&p, (int)weft_check_between(check, 1, 4));
        if (strcmp(weft_pool_index_name(&p), variant->name) != 0)
            continue;
        cases++;
        check_case(check, &p, &sizes);
    }
    if (cases < 60 && !weft_check_failed(check))
        weft_check_fail(check, "only %d cases reached this kernel", cases);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

/* Places in and around a plane, many of them the same. */
static void fill_places(struct weft_check *check, const struct weft_pool_grad *g, void *index, int64_t count,
                        int64_t size)
{
    const int64_t high = weft_check_between(check, 0, 1) ? size : 3;
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = weft_check_between(check, -1, high);
        if (g->index_dtype == WEFT_K_I64)
            ((int64_t *)index)[i] = place;
        else
            ((int32_t *)index)[i] = (int32_t)place;
    }
}

static int64_t offset_of(const int64_t *extent, const int64_t *stride, int spatial, int64_t place)
{
    int64_t at = 0;
    for (int i = spatial - 1; i >= 0; place /= extent[i--])
        at += place % extent[i] * stride[2 + i];
    return at;
}

static void define_grad(const struct weft_pool_grad *g, float *dx, const float *dy, const void *index, int64_t size,
                        int64_t windows)
{
    for (int64_t plane = 0; plane < g->n * g->c; plane++) {
        const int64_t n = plane / g->c, c = plane % g->c;
        float *const to = dx + n * g->dx_stride[0] + c * g->dx_stride[1];
        for (int64_t i = 0; i < size; i++)
            to[offset_of(g->dx_extent, g->dx_stride, g->spatial, i)] = 0;
        for (int64_t i = 0; i < windows; i++) {
            const int64_t at = n * g->index_stride[0] + c * g->index_stride[1] +
                               offset_of(g->dy_extent, g->index_stride, g->spatial, i);
            const int64_t place = g->index_dtype == WEFT_K_I64 ? ((const int64_t *)index)[at]
                                                               : ((const int32_t *)index)[at];
            if (place >= 0 && place < size)
                to[offset_of(g->dx_extent, g->dx_stride, g->spatial, place)] +=
                    dy[n * g->dy_stride[0] + c * g->dy_stride[1] +
                       offset_of(g->dy_extent, g->dy_stride, g->spatial, i)];
        }
    }
}

static void grad_body(struct weft_check *check, const void *user)
{
    for (int cases = 0; cases < 100 && !weft_check_failed(check); cases++) {
        struct weft_pool_grad g = {.index_dtype = weft_check_between(check, 0, 2) ? WEFT_K_I64 : WEFT_K_I32,
                                   .spatial = (int32_t)weft_check_between(check, 1, 3),
                                   .n = weft_check_between(check, 1, 2), .c = weft_check_between(check, 1, 40)};
        int64_t size = 1, windows = 1;
        for (int i = 0; i < g.spatial; i++) {
            size *= g.dx_extent[i] = weft_check_between(check, cases ? 1 : 0, 9);
            windows *= g.dy_extent[i] = weft_check_between(check, cases == 1 ? 0 : 1, 9);
        }
        const int64_t elements = lay(check, g.n, g.c, g.dx_extent, g.spatial, g.dx_stride);
        const int64_t gradients = lay(check, g.n, g.c, g.dy_extent, g.spatial, g.dy_stride);
        const int64_t places = lay(check, g.n, g.c, g.dy_extent, g.spatial, g.index_stride);
        float *const dx = weft_check_alloc(check, (size_t)elements * sizeof *dx);
        float *const want = weft_check_alloc(check, (size_t)elements * sizeof *want);
        float *const dy = weft_check_alloc(check, (size_t)gradients * sizeof *dy);
        void *const index = weft_check_alloc(check, (size_t)places * (g.index_dtype == WEFT_K_I64 ? 8 : 4));
        weft_check_fill(check, dy, gradients, cases % 2 ? WEFT_FILL_PLAIN : WEFT_FILL_HOSTILE);
        fill_places(check, &g, index, places, size);
        define_grad(&g, want, dy, index, size, windows);
        weft_pool_grad_prepare(&g, 4);
        for (int parts = 1; parts <= 4; parts++) {
            memset(dx, 0x55, (size_t)elements * sizeof *dx);
            for (int part = parts - 1; part >= 0; part--)
                weft_pool_grad_run(&g, dx, dy, index, part, parts);
            weft_check_same(check, "gradients", dx, want, elements);
        }
    }
}

void weft_check_pool_index(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu, body, &variants[i]);
    weft_check_kernel(check, "weft_pool_grad_f32__ref", 0, grad_body, NULL);
}
