/* SPDX-License-Identifier: Apache-2.0 */
/* check_relayout.c: copies against four nested loops, over random permutations, steps, broadcasts and element sizes;
 * reshapes against single elements. */
#include "check/check.h"
#include "kernels/relayout/reshape.h"

#include <stdio.h>
#include <string.h>

struct variant {
    const char *name;
    uint32_t cpu;
};

static const struct variant variants[] = {
    {"weft_relayout_runs__ref", 0},
    {"weft_relayout_narrow__ref", 0},
    {"weft_relayout_strided__ref", 0},
#ifdef __x86_64__
    {"weft_relayout_runs__avx2", WEFT_CPU_AVX2},
    {"weft_relayout_runs__avx512", WEFT_CPU_AVX2 | WEFT_CPU_AVX512},
    {"weft_relayout_weave__avx2", WEFT_CPU_AVX2},
    {"weft_relayout_weave__avx512", WEFT_CPU_AVX2 | WEFT_CPU_AVX512},
#endif
#define RELAYOUT(id, function, level, cpu, bytes) {"weft_relayout_" #id "__" #level, cpu},
#include "kernels/relayout/relayout.def"
};

/* Elements that a strided array reaches over, strides not negative. */
static int64_t span(const struct weft_copy *copy, const int64_t *stride)
{
    int64_t last = 0;
    for (int i = 0; i < copy->rank; i++)
        last += (copy->extent[i] - 1) * stride[i];
    return last + 1;
}

static void reference(const struct weft_copy *copy, unsigned char *out, const unsigned char *in)
{
    int64_t index[4];
    for (index[0] = 0; index[0] < copy->extent[0]; index[0]++)
        for (index[1] = 0; index[1] < copy->extent[1]; index[1]++)
            for (index[2] = 0; index[2] < copy->extent[2]; index[2]++)
                for (index[3] = 0; index[3] < copy->extent[3]; index[3]++) {
                    int64_t to = 0, from = 0;
                    for (int i = 0; i < 4; i++)
                        to += index[i] * copy->out_stride[i], from += index[i] * copy->in_stride[i];
                    memcpy(out + to * copy->bytes, in + from * copy->bytes, (size_t)copy->bytes);
                }
}

/* Random order of the axes in memory, but for the last if elements are grouped along it; gaps by padded extents; now
 * and then an axis of the operand is a broadcast. */
static void random_strides(struct weft_check *check, const struct weft_copy *copy, int64_t *stride, bool broadcast,
                           bool grouped)
{
    int order[4] = {0, 1, 2, 3};
    for (int i = grouped ? 2 : 3; i > 0; i--) {
        const int j = (int)weft_check_between(check, 0, i), swap = order[i];
        order[i] = order[j], order[j] = swap;
    }
    int64_t step = grouped || weft_check_between(check, 0, 7) ? 1 : weft_check_between(check, 1, 3);
    for (int i = 3; i >= 0; i--) {
        stride[order[i]] = step;
        const bool dense = grouped || weft_check_between(check, 0, 3);
        step *= copy->extent[order[i]] + (dense ? 0 : weft_check_between(check, 0, 5));
    }
    if (broadcast && !weft_check_between(check, 0, 4))
        stride[weft_check_between(check, 0, 3)] = 0;
}

static void random_copy(struct weft_check *check, struct weft_copy *copy, int bytes, int64_t most)
{
    static const size_t caches[] = {0, 1, 4096};
    *copy = (struct weft_copy){.bytes = bytes, .rank = 4, .cpu = weft_check_cpu(check),
                               .cache = caches[weft_check_between(check, 0, 2)]};
    const bool flat = !weft_check_between(check, 0, 3); /* two axes of several tiles */
    const bool grouped = !weft_check_between(check, 0, 3);
    for (int i = 0; i < 4; i++) {
        if (flat)
            copy->extent[i] = i == 0 ? 2 : i == 3 ? 1 : weft_check_between(check, 1, 9 * most);
        else
            copy->extent[i] = weft_check_between(check, 0, 2) ? weft_check_between(check, 1, most) : 1;
    }
    if (!weft_check_between(check, 0, 3))
        copy->extent[weft_check_between(check, 0, 3)] = 2; /* pairs have loops of their own */
    if (grouped)
        copy->extent[3] = (int64_t)1 << weft_check_between(check, 0, 4);
    random_strides(check, copy, copy->out_stride, false, grouped);
    random_strides(check, copy, copy->in_stride, true, grouped);
}

/* Reverses some axes of the operand; the first element then lies where the last one did. */
static int64_t turn_axes(struct weft_check *check, struct weft_copy *copy)
{
    int64_t first = 0;
    for (int i = 0; i < 4; i++)
        if (!weft_check_between(check, 0, 9)) {
            first += (copy->extent[i] - 1) * copy->in_stride[i];
            copy->in_stride[i] = -copy->in_stride[i];
        }
    return first;
}

/* A case counts when prepare has chosen the kernel under test; cases of other kernels are drawn again. */
static void body(struct weft_check *check, const void *user)
{
    const struct variant *const variant = user;
    static const int sizes[] = {1, 2, 4, 8};
    int cases = 0;
    for (int tries = 0; cases < 60 && tries < 20000 && !weft_check_failed(check); tries++) {
        struct weft_copy copy, plain;
        random_copy(check, &copy, sizes[weft_check_between(check, 0, 3)], tries % 8 ? 20 : 45);
        const size_t in_bytes = (size_t)(span(&copy, copy.in_stride) * copy.bytes);
        const int64_t first = turn_axes(check, &copy) * copy.bytes;
        plain = copy;
        weft_copy_prepare(&copy, 4);
        if (strcmp(weft_copy_name(&copy), variant->name) != 0)
            continue;
        cases++;
        const size_t out_bytes = (size_t)(span(&plain, plain.out_stride) * plain.bytes);
        unsigned char *const in = weft_check_alloc(check, in_bytes), *const out = weft_check_alloc(check, out_bytes);
        unsigned char *const want = weft_check_alloc(check, out_bytes);
        for (size_t i = 0; i < in_bytes; i++)
            in[i] = (unsigned char)weft_check_random(check);
        memset(want, 0x5a, out_bytes);
        reference(&plain, want, in + first);
        for (int parts = 1; parts <= 20; parts += parts < 5 ? 1 : 5) {
            memset(out, 0x5a, out_bytes);
            for (int part = parts - 1; part >= 0; part--)
                weft_copy_run(&copy, out, in + first, part, parts);
            if (!weft_check_same_bytes(check, "copy", out, want, out_bytes))
                break;
        }
    }
    if (cases < 60)
        weft_check_fail(check, "only %d cases reached this kernel", cases);
}

/* --- reshapes ----------------------------------------------------------------------------------------------------- */

/* The product of all factors, dealt out to axes in order. */
static int32_t random_extents(struct weft_check *check, const int64_t *factor, int factors, int64_t *extent)
{
    int32_t rank = 0;
    for (int i = 0; i < factors; i++) {
        if (rank == 0 || (rank < 4 && weft_check_between(check, 0, 1)))
            extent[rank++] = 1;
        extent[rank - 1] *= factor[i];
    }
    return rank;
}

/* Any order of axes in memory, with gaps now and then; of operands also a repeated axis. Returns how many elements it
 * reaches over. */
static int64_t random_places(struct weft_check *check, int32_t rank, const int64_t *extent, int64_t *stride,
                             bool repeats)
{
    int order[WEFT_K_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = weft_check_between(check, 0, 2) ? rank - 1 : 0; i > 0; i--) {
        const int j = (int)weft_check_between(check, 0, i), swap = order[i];
        order[i] = order[j], order[j] = swap;
    }
    int64_t step = weft_check_between(check, 0, 7) ? 1 : 2, last = 0;
    for (int i = rank - 1; i >= 0; i--) {
        stride[order[i]] = step;
        step *= extent[order[i]] + (weft_check_between(check, 0, 3) ? 0 : weft_check_between(check, 1, 5));
    }
    if (repeats && rank && !weft_check_between(check, 0, 3))
        stride[weft_check_between(check, 0, rank - 1)] = 0;
    for (int i = 0; i < rank; i++)
        last += (extent[i] - 1) * stride[i];
    return last + 1;
}

static int64_t place_of(int32_t rank, const int64_t *extent, const int64_t *stride, int64_t element)
{
    int64_t place = 0;
    for (int i = rank - 1; i >= 0; i--) {
        place += element % extent[i] * stride[i];
        element /= extent[i];
    }
    return place;
}

static void try_reshape(struct weft_check *check, const struct weft_reshape *plain, const struct weft_reshape *r,
                        size_t out_bytes, size_t in_bytes)
{
    const size_t size = (size_t)plain->bytes;
    int64_t elements = 1;
    for (int i = 0; i < plain->out_rank; i++)
        elements *= plain->out_extent[i];
    unsigned char *const in = weft_check_alloc(check, in_bytes), *const out = weft_check_alloc(check, out_bytes);
    unsigned char *const want = weft_check_alloc(check, out_bytes);
    for (size_t i = 0; i < in_bytes; i++)
        in[i] = (unsigned char)weft_check_random(check);
    memset(want, 0x5a, out_bytes);
    for (int64_t i = 0; i < elements; i++)
        memcpy(want + (size_t)place_of(plain->out_rank, plain->out_extent, plain->out_stride, i) * size,
               in + (size_t)place_of(plain->in_rank, plain->in_extent, plain->in_stride, i) * size, size);
    for (int parts = 1; parts <= 7; parts += 2) {
        memset(out, 0x5a, out_bytes);
        for (int part = parts - 1; part >= 0; part--)
            weft_reshape_run(r, out, in, part, parts);
        if (!weft_check_same_bytes(check, "reshape", out, want, out_bytes))
            return;
    }
}

/* Half of the cases go by lines, the other half by copies. */
static void reshape_body(struct weft_check *check, const void *user)
{
    static const int sizes[] = {1, 2, 4, 8};
    int cases[2] = {0};
    for (int tries = 0; cases[0] + cases[1] < 200 && tries < 20000 && !weft_check_failed(check); tries++) {
        int64_t factor[6];
        const int factors = (int)weft_check_between(check, 0, 6);
        for (int i = 0; i < factors; i++)
            factor[i] = weft_check_between(check, tries % 50 ? 1 : 0, 7);
        struct weft_reshape r = {.bytes = sizes[weft_check_between(check, 0, 3)], .cpu = weft_check_cpu(check)};
        r.in_rank = random_extents(check, factor, factors, r.in_extent);
        for (int i = factors - 1; i > 0 && tries % 2; i--) { /* other products: extents that do not divide each other */
            const int j = (int)weft_check_between(check, 0, i);
            const int64_t swap = factor[i];
            factor[i] = factor[j], factor[j] = swap;
        }
        r.out_rank = random_extents(check, factor, factors, r.out_extent);
        const int64_t in = random_places(check, r.in_rank, r.in_extent, r.in_stride, true);
        const int64_t out = random_places(check, r.out_rank, r.out_extent, r.out_stride, false);
        const struct weft_reshape plain = r;
        weft_reshape_prepare(&r, 4);
        if (cases[r.is_copy] == 100)
            continue;
        cases[r.is_copy]++;
        try_reshape(check, &plain, &r, (size_t)(out > 0 ? out : 1) * (size_t)r.bytes,
                    (size_t)(in > 0 ? in : 1) * (size_t)r.bytes);
    }
    if (cases[0] < 100 || cases[1] < 100)
        weft_check_fail(check, "only %d copies and %d reshapes by lines", cases[1], cases[0]);
}

void weft_check_relayout(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu, body, &variants[i]);
    weft_check_kernel(check, "weft_reshape_lines__ref", 0, reshape_body, NULL);
}
