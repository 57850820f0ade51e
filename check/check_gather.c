/* SPDX-License-Identifier: Apache-2.0 */
/* check_gather.c: copies by index against the definition in their header, element by element, over random shapes,
 * strides, index types and wild indices; tables against the same. */
#include "check/check.h"
#include "kernels/gather/gather.h"

#include <stdio.h>
#include <string.h>

static const struct kernel {
    const char *name;
    uint32_t cpu;
} kernels[] = {
#define GATHER(id, level, cpu) {"weft_" #id "__" #level, cpu},
#include "kernels/gather/gather.def"
};

/* --- the definition --------------------------------------------------------------------------------------------- */

static void one(const struct weft_gather *g, char *out, const char *in, int64_t plain, int64_t indexed)
{
    char *const to = out + (g->scatter ? indexed : plain) * g->bytes;
    const char *const from = in + (g->scatter ? plain : indexed) * g->bytes;
    if (g->combine) {
        float x, y;
        memcpy(&x, to, 4);
        memcpy(&y, from, 4);
        const float nan = x != x ? x : y;
        x = g->combine == WEFT_COMBINE_ADD ? x + y : g->combine == WEFT_COMBINE_MULTIPLY ? x * y
            : x != x || y != y ? nan : g->combine == WEFT_COMBINE_LEAST ? (y < x ? y : x) : y > x ? y : x;
        memcpy(to, &x, 4);
    } else {
        memcpy(to, from, (size_t)g->bytes);
    }
}

static void reference(const struct weft_gather *g, char *out, const char *in, const void *index)
{
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < g->outer; i++)
        outer *= g->extent[i];
    for (int i = 0; i < g->inner; i++)
        inner *= g->block[i];
    for (int64_t o = 0; o < outer; o++) {
        int64_t plain = 0, indexed = 0, number = 0, rest = o;
        for (int i = g->outer - 1; i >= 0; i--) {
            const int64_t at = rest % g->extent[i];
            rest /= g->extent[i];
            plain += at * g->plain[i], indexed += at * g->indexed[i], number += at * g->index[i];
        }
        bool inside = true;
        for (int k = 0; k < g->numbers; k++) {
            int64_t at = weft_gather_number(g->index_dtype, index, number + k * g->number_stride);
            at += g->from_end && at < 0 ? g->limit[k] : 0;
            inside &= at >= 0 && at < g->limit[k];
            indexed += (at < 0 ? 0 : at >= g->limit[k] ? g->limit[k] - 1 : at) * g->step[k];
        }
        for (int64_t j = 0; j < inner && (inside || !g->scatter || g->clamp); j++) {
            int64_t p = plain, x = indexed;
            rest = j;
            for (int i = g->inner - 1; i >= 0; i--) {
                const int64_t at = rest % g->block[i];
                rest /= g->block[i];
                p += at * g->plain_block[i], x += at * g->indexed_block[i];
            }
            one(g, out, in, p, x);
        }
    }
}

/* --- random cases ----------------------------------------------------------------------------------------------- */

/* Axes are dealt out to an array from the innermost on, now and then with a gap between. */
static int64_t deal(struct weft_check *check, int64_t *step, int64_t extent)
{
    const int64_t mine = *step;
    *step *= extent + (weft_check_between(check, 0, 3) ? 0 : weft_check_between(check, 1, 4));
    return mine;
}

struct extent_of {
    int64_t plain, indexed, index; /* elements */
};

static struct extent_of random_gather(struct weft_check *check, struct weft_gather *g, bool scatter, bool combine)
{
    static const int sizes[] = {1, 2, 4, 8};
    *g = (struct weft_gather){.cpu = weft_check_cpu(check), .scatter = scatter,
                              .combine = (uint8_t)(combine ? weft_check_between(check, 1, WEFT_COMBINE_GREATEST)
                                                           : WEFT_COMBINE_REPLACE),
                              .bytes = combine ? 4 : sizes[weft_check_between(check, 0, 3)],
                              .outer = (int32_t)weft_check_between(check, 0, 3),
                              .inner = (int32_t)weft_check_between(check, 0, 2),
                              .numbers = (int32_t)weft_check_between(check, 1, 2),
                              .from_end = weft_check_between(check, 0, 2) != 0,
                              .index_dtype = (uint8_t)weft_check_between(check, WEFT_K_I64, WEFT_K_U8)};
    g->clamp = scatter && !weft_check_between(check, 0, 3);
    struct extent_of e = {1, 1, 1};
    for (int i = g->inner - 1; i >= 0; i--) {
        g->block[i] = weft_check_between(check, 1, 9);
        g->plain_block[i] = deal(check, &e.plain, g->block[i]);
        g->indexed_block[i] = deal(check, &e.indexed, g->block[i]);
    }
    g->number_stride = deal(check, &e.index, g->numbers);
    for (int k = g->numbers - 1; k >= 0; k--) {
        g->limit[k] = weft_check_between(check, 1, 12);
        g->step[k] = deal(check, &e.indexed, g->limit[k]);
    }
    for (int i = g->outer - 1; i >= 0; i--) {
        const bool moves = weft_check_between(check, 0, 1), shared = !weft_check_between(check, 0, 3);
        g->extent[i] = weft_check_between(check, 1, weft_check_between(check, 0, 4) ? 9 : g->outer == 1 ? 1500 : 70);
        g->plain[i] = deal(check, &e.plain, g->extent[i]);
        g->indexed[i] = moves ? deal(check, &e.indexed, g->extent[i]) : 0;
        g->index[i] = shared ? 0 : deal(check, &e.index, g->extent[i]);
    }
    return e;
}

static void fill_index(struct weft_check *check, const struct weft_gather *g, void *index, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = weft_check_between(check, 0, 15) ? weft_check_between(check, -12, 12)
                                                           : (int64_t)weft_check_random(check);
        switch (g->index_dtype) {
        case WEFT_K_I64: case WEFT_K_U64: ((int64_t *)index)[i] = x; break;
        case WEFT_K_I32: case WEFT_K_U32: ((int32_t *)index)[i] = (int32_t)x; break;
        case WEFT_K_I16: case WEFT_K_U16: ((int16_t *)index)[i] = (int16_t)x; break;
        default: ((int8_t *)index)[i] = (int8_t)x; break;
        }
    }
}

static size_t index_bytes(int dtype)
{
    return dtype == WEFT_K_I64 || dtype == WEFT_K_U64   ? 8
           : dtype == WEFT_K_I32 || dtype == WEFT_K_U32 ? 4
           : dtype == WEFT_K_I16 || dtype == WEFT_K_U16 ? 2
                                                        : 1;
}

static void *random_bytes(struct weft_check *check, size_t bytes, bool floats)
{
    unsigned char *const memory = weft_check_alloc(check, bytes);
    if (floats)
        weft_check_fill(check, (float *)(void *)memory, (int64_t)(bytes / 4), WEFT_FILL_PLAIN);
    else
        for (size_t i = 0; i < bytes; i++)
            memory[i] = (unsigned char)weft_check_random(check);
    return memory;
}

static void gather_body(struct weft_check *check, const void *user)
{
    const char *const name = user;
    const bool combine = strstr(name, "combine") != NULL, scatter = strstr(name, "scatter") != NULL;
    int cases = 0;
    for (int tries = 0; cases < 150 && tries < 20000 && !weft_check_failed(check); tries++) {
        struct weft_gather g, plain;
        const struct extent_of e = random_gather(check, &g, scatter, combine);
        plain = g;
        weft_gather_prepare(&g, 4);
        if (strcmp(weft_gather_name(&g), name) != 0)
            continue;
        cases++;
        const size_t out_bytes = (size_t)((scatter ? e.indexed : e.plain) * g.bytes);
        const size_t in_bytes = (size_t)((scatter ? e.plain : e.indexed) * g.bytes);
        const size_t odd = scatter ? 0 : (size_t)weft_check_between(check, 0, 7); /* gathers read any address */
        const char *const in = (char *)random_bytes(check, in_bytes + odd, combine) + odd;
        char *const before = random_bytes(check, out_bytes, combine);
        char *const want = weft_check_alloc(check, out_bytes), *const out = weft_check_alloc(check, out_bytes);
        void *const index = weft_check_alloc(check, (size_t)e.index * index_bytes(g.index_dtype));
        fill_index(check, &g, index, e.index);
        memcpy(want, before, out_bytes);
        reference(&plain, want, in, index);
        for (int parts = 1; parts <= 4; parts++) {
            memcpy(out, before, out_bytes);
            for (int part = parts - 1; part >= 0; part--)
                weft_gather_run(&g, out, in, index, part, parts);
            if (!weft_check_same_bytes(check, "copy by index", out, want, out_bytes))
                break;
        }
    }
    if (cases < 150)
        weft_check_fail(check, "only %d cases reached this kernel", cases);
}

/* Spans of one axis of `source` elements, `step` apart, in any order and direction; their places go to `table` too. */
static struct weft_table_span *random_spans(struct weft_check *check, int64_t *table, int64_t n, int64_t source,
                                            int64_t step)
{
    struct weft_table_span *const spans = weft_check_alloc(check, (size_t)n * sizeof *spans);
    for (int64_t at = 0, k = 0; at < n; k++) {
        const int64_t way = weft_check_between(check, -1, 1), first = weft_check_between(check, 0, source - 1);
        const int64_t room = way == 0 ? n : way > 0 ? source - first : first + 1, most = room < n - at ? room : n - at;
        spans[k] = (struct weft_table_span){first * step, way * step, weft_check_between(check, 1, most)};
        for (int64_t i = 0; i < spans[k].count; i++)
            table[at++] = (first + way * i) * step;
    }
    return spans;
}

/* An axis of `source` elements: as it is, each twice, each up to a few times, or any of them. */
static int64_t random_places(struct weft_check *check, int64_t step, int64_t source, int64_t **ret_places)
{
    enum { SAME, TWICE, LARGER, ANY };
    const int64_t way = weft_check_between(check, SAME, ANY);
    const int64_t extent = way == SAME ? source : way == TWICE ? 2 * source - weft_check_between(check, 0, 1)
                           : way == LARGER ? weft_check_between(check, source, 3 * source)
                                           : weft_check_between(check, 0, 2 * source);
    int64_t *const place = *ret_places = weft_check_alloc(check, (size_t)extent * sizeof(int64_t));
    for (int64_t k = 0; k < extent; k++)
        place[k] = step * (way == SAME ? k : way == TWICE ? k / 2 : way == LARGER ? k * source / extent
                                       : weft_check_between(check, 0, source - 1));
    return extent;
}

static struct weft_table_span *random_table(struct weft_check *check, struct weft_table *t, int64_t **table,
                                      struct extent_of *extent)
{
    int64_t sources[3], in_steps[3];
    const int64_t far = weft_check_between(check, 0, 3) ? 12 : 200;
    *extent = (struct extent_of){1, 1, 0};
    for (int i = t->rank - 1; i >= 0; i--) {
        const int64_t source = sources[i] = weft_check_between(check, 1, i + 1 == t->rank ? far : 12);
        in_steps[i] = extent->indexed;
        t->extent[i] = random_places(check, extent->indexed, source, &table[i]);
        extent->indexed *= source;
    }
    for (int i = t->rank - 1, first = (int)weft_check_between(check, 0, t->rank - 1); i >= 0; i--) {
        const int axis = (i + first) % t->rank; /* any axis is the innermost of the result */
        t->out_stride[axis] = deal(check, &extent->plain, t->extent[axis]);
    }
    weft_table_prepare(t, 4);
    const int inner = t->order[t->rank - 1];
    return t->spans ? random_spans(check, table[inner], t->extent[inner], sources[inner], in_steps[inner]) : NULL;
}

static void table_body(struct weft_check *check, const void *user)
{
    static const int sizes[] = {1, 2, 4, 8};
    for (int tries = 0; tries < 150 && !weft_check_failed(check); tries++) {
        struct weft_table t = {.cpu = weft_check_cpu(check), .spans = strstr(user, "spans") != NULL,
                               .bytes = sizes[tries % 4], .rank = (int32_t)weft_check_between(check, 1, 3)};
        int64_t *table[3] = {NULL};
        struct extent_of extent;
        const struct weft_table_span *const spans = random_table(check, &t, table, &extent);
        if (strcmp(weft_table_name(&t), user) != 0)
            weft_check_fail(check, "%s is chosen", weft_table_name(&t));
        const size_t bytes = (size_t)(extent.plain * t.bytes);
        const char *const in = random_bytes(check, (size_t)(extent.indexed * t.bytes), false);
        char *const want = memset(weft_check_alloc(check, bytes), 0x5a, bytes);
        char *const out = weft_check_alloc(check, bytes);
        int64_t total = 1;
        for (int i = 0; i < t.rank; i++)
            total *= t.extent[i];
        for (int64_t n = 0; n < total; n++) {
            int64_t rest = n, to = 0, from = 0;
            for (int i = t.rank - 1; i >= 0; i--) {
                to += rest % t.extent[i] * t.out_stride[i];
                from += table[i][rest % t.extent[i]];
                rest /= t.extent[i];
            }
            memcpy(want + to * t.bytes, in + from * t.bytes, (size_t)t.bytes);
        }
        if (spans)
            table[t.order[t.rank - 1]] = NULL; /* not read then */
        for (int parts = 1; parts <= 4; parts++) {
            memset(out, 0x5a, bytes);
            for (int part = parts - 1; part >= 0; part--)
                weft_table_run(&t, out, in, (const int64_t *const *)table, spans, part, parts);
            if (!weft_check_same_bytes(check, "look-up", out, want, bytes))
                break;
        }
    }
}

void weft_check_gather(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const char *const name = kernels[i].name;
        const bool table = strstr(name, "table") || strstr(name, "spans");
        weft_check_kernel(check, name, kernels[i].cpu, table ? table_body : gather_body, name);
    }
}
