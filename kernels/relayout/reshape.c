/* SPDX-License-Identifier: Apache-2.0 */
/* reshape.c: copies between arrays of other extents, of which either may lie anyhow.
 *
 *   out [2, 48, 5]  in [6, 16, 5]     extents that both are cut to: 2 · 3 · 16 · 5, and the copy is one of relayout.c
 *   out [8, 3]      in [6, 4]         none that make both 8 · 3 and 6 · 4: line by line, as far as both go on
 *
 * Axes whose elements lie as those of one longer axis are joined first, so that an array without gaps can be cut
 * anywhere. What is left for lines is rare: both arrays are strided, and their extents do not divide each other. */
#include "kernels/relayout/reshape.h"
#include "kernels/relayout/tiles.h"
#include "kernels/relayout/weave.h"

enum { GRAIN = 64, CUTS = 2 * WEFT_K_RANK };

/* Drops axes of extent 1 and joins those that lie as one; the new rank. */
static int32_t join(int32_t rank, int64_t *extent, int64_t *stride)
{
    int32_t left = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (extent[i] == 1)
            continue;
        if (left > 0 && stride[left - 1] == extent[i] * stride[i]) {
            extent[left - 1] *= extent[i];
            stride[left - 1] = stride[i];
            continue;
        }
        extent[left] = extent[i];
        stride[left++] = stride[i];
    }
    return left;
}

struct cut {
    int32_t count;
    int64_t extent[CUTS], out[CUTS], in[CUTS]; /* innermost first */
};

/* Extents that make the axes of both arrays; false if there are none, or too many for a copy. */
static bool cut(const struct weft_reshape *r, struct cut *ret)
{
    int32_t i = r->out_rank - 1, k = r->in_rank - 1;
    int64_t out = i >= 0 ? r->out_extent[i] : 1, in = k >= 0 ? r->in_extent[k] : 1; /* what is left of both axes */
    int64_t out_stride = i >= 0 ? r->out_stride[i] : 0, in_stride = k >= 0 ? r->in_stride[k] : 0;
    ret->count = 0;
    while (i >= 0 && k >= 0) {
        const int64_t both = out < in ? out : in;
        if (out % both || in % both)
            return false;
        ret->extent[ret->count] = both;
        ret->out[ret->count] = out_stride;
        ret->in[ret->count++] = in_stride;
        out /= both, out_stride *= both;
        in /= both, in_stride *= both;
        if (out == 1 && --i >= 0)
            out = r->out_extent[i], out_stride = r->out_stride[i];
        if (in == 1 && --k >= 0)
            in = r->in_extent[k], in_stride = r->in_stride[k];
    }
    return true;
}

/* Fills the copy; neighbours that go on in both arrays are one axis. */
static bool fill_copy(struct weft_reshape *r, const struct cut *c)
{
    struct weft_copy *copy = &r->copy;
    int64_t extent[CUTS], out[CUTS], in[CUTS];
    int32_t rank = 0;
    for (int32_t i = c->count - 1; i >= 0; i--) {
        const bool goes_on = rank > 0 && out[rank - 1] == c->extent[i] * c->out[i] &&
                             in[rank - 1] == c->extent[i] * c->in[i];
        const int32_t at = goes_on ? rank - 1 : rank++;
        extent[at] = goes_on ? extent[at] * c->extent[i] : c->extent[i];
        out[at] = c->out[i];
        in[at] = c->in[i];
    }
    if (rank > WEFT_K_RANK)
        return false;
    *copy = (struct weft_copy){.bytes = r->bytes, .rank = rank, .cpu = r->cpu, .cache = r->cache};
    for (int32_t i = 0; i < rank; i++) {
        copy->extent[i] = extent[i];
        copy->out_stride[i] = out[i];
        copy->in_stride[i] = in[i];
    }
    return true;
}

void weft_reshape_prepare(struct weft_reshape *r, int workers)
{
    struct cut c;
    int64_t elements = 1;
    for (int32_t i = 0; i < r->out_rank; i++)
        elements *= r->out_extent[i];
    if (elements == 0)
        r->in_rank = r->out_rank = 0;
    r->in_rank = join(r->in_rank, r->in_extent, r->in_stride);
    r->out_rank = join(r->out_rank, r->out_extent, r->out_stride);
    r->is_copy = elements > 0 && cut(r, &c) && fill_copy(r, &c);
    if (!r->is_copy)
        r->copy = (struct weft_copy){.bytes = r->bytes, .rank = 1, .cpu = r->cpu, .cache = r->cache,
                                     .extent = {elements}, .out_stride = {1}, .in_stride = {1}};
    weft_copy_prepare(&r->copy, workers);
}

const char *weft_reshape_name(const struct weft_reshape *r)
{
    return r->is_copy ? weft_copy_name(&r->copy) : "weft_reshape_lines__ref";
}

uint32_t weft_reshape_cpu(const struct weft_reshape *r) { return r->is_copy ? weft_copy_cpu(&r->copy) : 0; }

enum weft_move weft_reshape_move(const struct weft_reshape *r, int64_t *ret_run)
{
    const struct weft_copy *copy = &r->copy;
    *ret_run = copy->extent[copy->rank - 1] * copy->bytes;
    switch (r->is_copy ? (enum weft_copy_form)copy->form : WEFT_COPY_STRIDED) {
    case WEFT_COPY_RUNS:
    case WEFT_COPY_BLOCKED:
        return WEFT_MOVE_RUNS;
    case WEFT_COPY_TRANSPOSE:
        return WEFT_MOVE_TRANSPOSE;
    case WEFT_COPY_WEAVE:
        return weft_weave_kind(copy) == WEFT_WEAVE_DEAL ? WEFT_MOVE_DEAL : WEFT_MOVE_WEAVE;
    case WEFT_COPY_NARROW:
        return WEFT_MOVE_NARROW;
    default:
        return WEFT_MOVE_OTHER;
    }
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* An array on its way: where it stands, and how far its innermost axis goes on from there. */
struct place {
    int32_t rank;
    const int64_t *extent, *stride;
    int64_t index[WEFT_K_RANK], at; /* elements */
};

static struct place seek(int32_t rank, const int64_t *extent, const int64_t *stride, int64_t element)
{
    struct place p = {.rank = rank, .extent = extent, .stride = stride};
    for (int32_t i = rank - 1; i >= 0; i--) {
        p.index[i] = element % extent[i];
        p.at += p.index[i] * stride[i];
        element /= extent[i];
    }
    return p;
}

static int64_t left_of(const struct place *p)
{
    return p->rank ? p->extent[p->rank - 1] - p->index[p->rank - 1] : 1;
}

static void advance(struct place *p, int64_t elements)
{
    for (int32_t i = p->rank - 1; i >= 0; i--) {
        p->index[i] += elements;
        p->at += elements * p->stride[i];
        if (p->index[i] < p->extent[i])
            return;
        p->at -= p->extent[i] * p->stride[i];
        p->index[i] = 0;
        elements = 1;
    }
}

void weft_reshape_run(const struct weft_reshape *r, void *out, const void *in, int part, int parts)
{
    int64_t at, end;
    if (r->is_copy) {
        weft_copy_run(&r->copy, out, in, part, parts);
        return;
    }
    weft_share(r->copy.extent[0], GRAIN, part, parts, &at, &end);
    if (at >= end)
        return;
    struct place to = seek(r->out_rank, r->out_extent, r->out_stride, at);
    struct place from = seek(r->in_rank, r->in_extent, r->in_stride, at);
    while (at < end) {
        const int64_t a = left_of(&to), b = left_of(&from), both = a < b ? a : b, n = both < end - at ? both : end - at;
        weft_copy_strided(r->bytes, (char *)out + to.at * r->bytes, r->out_rank ? to.stride[r->out_rank - 1] : 0,
                          (const char *)in + from.at * r->bytes, r->in_rank ? from.stride[r->in_rank - 1] : 0, n);
        advance(&to, n);
        advance(&from, n);
        at += n;
    }
}
