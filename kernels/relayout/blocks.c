/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c: copies into blocks, out of them, and between blocks of different sizes.
 *
 * Where all blocks are full the digits of an axis are axes of their own, f32[1,64,28,28] in blocks of 16 channels an
 * array of 1 x 4 x 16 x 28 x 28, and the copy is one between strided arrays, with the vector loops of relayout.c. Else
 * rows along the axis that lies innermost in the result are copied run by run; a run is what both store with one
 * stride. Why not always so: places of blocks take a division each. */
#include "kernels/relayout/blocks.h"

#include "kernels/relayout/relayout.h"

#include <string.h>

/* --- as a strided copy -------------------------------------------------------------------------------------------- */

/* The least div above this one among the digits of an axis, or `most`. */
static int64_t next_div(const struct weft_digits *digits, int axis, int64_t div, int64_t most)
{
    for (int i = 0; i < digits->count; i++)
        if (digits->digit[i].axis == axis && digits->digit[i].div > div && digits->digit[i].div < most)
            most = digits->digit[i].div;
    return most;
}

/* By how much the place grows from one multiple of `div` to the next: of the digit that it is in. */
static int64_t stride_at(const struct weft_digits *digits, int axis, int64_t div)
{
    const struct weft_digit *best = NULL;
    for (int i = 0; i < digits->count; i++) {
        const struct weft_digit *const digit = &digits->digit[i];
        if (digit->axis == axis && digit->div <= div && (!best || digit->div > best->div))
            best = digit;
    }
    return best ? best->stride * (div / best->div) : 0;
}

/* Splits an axis where either side does, innermost digit first; false if the digits do not go into one another. */
static bool split_axis(const struct weft_block_copy *c, int axis, struct weft_copy *ret)
{
    const int64_t extent = c->extent[axis];
    for (int64_t div = 1, next; div < extent; div = next) {
        next = next_div(&c->in, axis, div, next_div(&c->out, axis, div, extent));
        if (ret->rank == WEFT_K_RANK || next % div != 0)
            return false;
        ret->extent[ret->rank] = next / div;
        ret->out_stride[ret->rank] = stride_at(&c->out, axis, div);
        ret->in_stride[ret->rank++] = stride_at(&c->in, axis, div);
    }
    return true;
}

static bool fill_strided(struct weft_block_copy *c, int workers)
{
    struct weft_copy copy = {.bytes = c->bytes, .cpu = c->cpu, .cache = c->cache};
    for (int axis = 0; axis < c->rank; axis++)
        if (c->filled[axis] != c->extent[axis] || !split_axis(c, axis, &copy))
            return false;
    weft_copy_prepare(&copy, workers);
    c->copy = copy;
    return true;
}

/* --- run by run --------------------------------------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* Indices along an axis that the result has room for. */
static int64_t filled(const struct weft_digits *digits, int axis, int64_t extent)
{
    int64_t div = 1;
    for (int i = 0; i < digits->count; i++)
        if (digits->digit[i].axis == axis && digits->digit[i].div > div)
            div = digits->digit[i].div;
    return (extent + div - 1) / div * div;
}

/* Neighbours that the innermost digit of an axis holds. */
static int64_t run_of(const struct weft_digits *digits, int axis)
{
    for (int i = 0; i < digits->count; i++)
        if (digits->digit[i].axis == axis && digits->digit[i].div == 1)
            return digits->digit[i].mod; /* 0: all of them */
    return 0;
}

static int64_t place_of(const struct weft_digits *digits, int axis, int64_t index)
{
    int64_t place = 0;
    for (int i = 0; i < digits->count; i++) {
        const struct weft_digit *const digit = &digits->digit[i];
        if (digit->axis == axis)
            place += (digit->mod ? index / digit->div % digit->mod : index / digit->div) * digit->stride;
    }
    return place;
}

void weft_block_copy_prepare(struct weft_block_copy *c, int workers)
{
    enum { LEAST_BYTES = 1 << 15 }; /* of a part */
    int64_t elements = 1;
    c->inner = c->out.count ? c->out.digit[c->out.count - 1].axis : 0;
    c->split = -1;
    for (int axis = 0; axis < c->rank; axis++) {
        c->filled[axis] = filled(&c->out, axis, c->extent[axis]);
        elements *= c->filled[axis];
        if (axis != c->inner && (c->split < 0 || c->filled[axis] > c->filled[c->split]))
            c->split = axis;
    }
    c->strided = elements > 0 && fill_strided(c, workers);
    if (c->strided)
        return;
    const int64_t run = gcd(run_of(&c->out, c->inner), run_of(&c->in, c->inner));
    c->run = run ? run : c->filled[c->inner];
    c->copy = (struct weft_copy){.bytes = c->bytes, .rank = c->rank};
    memcpy(c->copy.extent, c->extent, sizeof c->extent);
    const int64_t most = elements * c->bytes / LEAST_BYTES, cut = c->split < 0 ? 1 : c->filled[c->split];
    const int64_t parts = most < workers ? most : workers;
    c->copy.parts = elements == 0 ? 0 : (int32_t)(parts < 1 ? 1 : parts < cut ? parts : cut);
}

/* A row along the inner axis; all of it is filling if `outside`. */
static void copy_row(const struct weft_block_copy *c, char *out, const char *in, bool outside)
{
    const int axis = c->inner;
    const int64_t out_step = stride_at(&c->out, axis, 1), in_step = stride_at(&c->in, axis, 1);
    const int64_t extent = outside ? 0 : c->extent[axis], all = c->filled[axis];
    for (int64_t i = 0; i < all; i += c->run) {
        const int64_t end = i + c->run < all ? i + c->run : all, inside = end < extent ? end : extent;
        char *const to = out + place_of(&c->out, axis, i) * c->bytes;
        if (inside > i)
            weft_copy_strided(c->bytes, to, out_step, in + place_of(&c->in, axis, i) * c->bytes, in_step, inside - i);
        for (int64_t k = inside > i ? inside : i; k < end; k++)
            memset(to + (k - i) * out_step * c->bytes, 0, (size_t)c->bytes);
    }
}

void weft_block_copy_run(const struct weft_block_copy *c, void *out, const void *in, int part, int parts)
{
    if (c->strided) {
        weft_copy_run(&c->copy, out, in, part, parts);
        return;
    }
    int64_t index[WEFT_K_RANK] = {0}, first[WEFT_K_RANK] = {0}, end[WEFT_K_RANK];
    for (int axis = 0; axis < c->rank; axis++)
        end[axis] = axis == c->inner ? 1 : c->filled[axis];
    if (c->split >= 0) {
        first[c->split] = c->filled[c->split] * part / parts;
        end[c->split] = c->filled[c->split] * (part + 1) / parts;
        index[c->split] = first[c->split];
    } else if (part > 0) {
        return;
    }
    for (int axis = 0; axis >= 0;) {
        int64_t to = 0, from = 0;
        bool outside = false;
        for (int i = 0; i < c->rank; i++) {
            if (i == c->inner)
                continue;
            outside |= index[i] >= c->extent[i];
            to += place_of(&c->out, i, index[i]);
            from += place_of(&c->in, i, index[i]);
        }
        copy_row(c, (char *)out + to * c->bytes, (const char *)in + (outside ? 0 : from) * c->bytes, outside);
        for (axis = c->rank - 1; axis >= 0 && ++index[axis] >= end[axis]; axis--)
            index[axis] = first[axis];
    }
}

const char *weft_block_copy_name(const struct weft_block_copy *c)
{
    return c->strided ? weft_copy_name(&c->copy) : "weft_relayout_blocks__ref";
}

uint32_t weft_block_copy_cpu(const struct weft_block_copy *c) { return c->strided ? weft_copy_cpu(&c->copy) : 0; }
