/* SPDX-License-Identifier: Apache-2.0 */
/* check_places.c: numbers that count along an axis, and triangles, against an element at a time. */
#include "check/check.h"
#include "kernels/small.h"

#include <string.h>

#define MOST 3 /* axes */

/* Strides of an array whose axes lie in a random order, some with gaps or turned round; elements it needs, and where
 * its first one is. */
struct lie {
    int64_t stride[MOST], elements, first;
};

static struct lie random_lie(struct weft_check *check, int rank, const int64_t *extent)
{
    struct lie lie = {.elements = 1};
    int left[MOST] = {0, 1, 2};
    for (int n = rank; n > 0; n--) {
        const int64_t pick = weft_check_between(check, 0, n - 1);
        const int axis = left[pick];
        left[pick] = left[n - 1];
        lie.stride[axis] = lie.elements;
        lie.elements *= (extent[axis] > 0 ? extent[axis] : 1) + (weft_check_between(check, 0, 3) == 0);
        if (weft_check_between(check, 0, 5) == 0 && extent[axis] > 0) {
            lie.first += lie.stride[axis] * (extent[axis] - 1);
            lie.stride[axis] = -lie.stride[axis];
        }
    }
    return lie;
}

static int64_t random_extents(struct weft_check *check, int rank, int64_t *extent)
{
    int64_t total = 1;
    for (int i = 0; i < rank; i++)
        total *= extent[i] = weft_check_between(check, 0, 9) ? weft_check_between(check, 1, i ? 40 : 300)
                                                             : weft_check_between(check, 0, 1);
    return total;
}

/* The index along each axis of element n in row-major order; its place. */
static int64_t place_of(const struct lie *lie, int rank, const int64_t *extent, int64_t n, int64_t *index)
{
    int64_t place = lie->first;
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = n % extent[i];
        n /= extent[i];
        place += index[i] * lie->stride[i];
    }
    return place;
}

static const int dtypes[] = {WEFT_K_F64, WEFT_K_F32, WEFT_K_BF16, WEFT_K_F16, WEFT_K_I64, WEFT_K_I32,
                             WEFT_K_I16, WEFT_K_I8,  WEFT_K_U64,  WEFT_K_U32, WEFT_K_U16, WEFT_K_U8};

static int bytes_of(int dtype)
{
    return dtype == WEFT_K_F64 || dtype == WEFT_K_I64 || dtype == WEFT_K_U64   ? 8
           : dtype == WEFT_K_F32 || dtype == WEFT_K_I32 || dtype == WEFT_K_U32 ? 4
           : dtype == WEFT_K_I8 || dtype == WEFT_K_U8                          ? 1
                                                                               : 2;
}

static void put(int dtype, char *to, int64_t x)
{
    const double real = (double)x;
    const float narrow = (float)x;
    const uint16_t small = (uint16_t)weft_small_narrow(dtype == WEFT_K_F16 ? weft_small_f16 : weft_small_bf16, narrow);
    const void *from = dtype == WEFT_K_F64   ? (const void *)&real
                       : dtype == WEFT_K_F32 ? (const void *)&narrow
                       : dtype == WEFT_K_F16 || dtype == WEFT_K_BF16 ? (const void *)&small
                                                                     : (const void *)&x; /* little-endian */
    memcpy(to, from, (size_t)bytes_of(dtype));
}

static void iota_body(struct weft_check *check, const void *user)
{
    for (int tries = 0; tries < 200 && !weft_check_failed(check); tries++) {
        struct weft_iota iota = {.dtype = (uint8_t)dtypes[tries % 12],
                                 .rank = (int32_t)weft_check_between(check, 1, MOST)};
        int64_t index[MOST];
        const int64_t total = random_extents(check, iota.rank, iota.extent);
        const struct lie lie = random_lie(check, iota.rank, iota.extent);
        const int bytes = bytes_of(iota.dtype);
        iota.axis = (int32_t)weft_check_between(check, 0, iota.rank - 1);
        memcpy(iota.out_stride, lie.stride, sizeof lie.stride);
        char *const out = weft_check_alloc(check, (size_t)(lie.elements * bytes));
        char *const want = memset(weft_check_alloc(check, (size_t)(lie.elements * bytes)), 0x5a,
                                  (size_t)(lie.elements * bytes));
        for (int64_t n = 0; n < total; n++) {
            const int64_t place = place_of(&lie, iota.rank, iota.extent, n, index);
            put(iota.dtype, want + place * bytes, index[iota.axis]);
        }
        weft_iota_prepare(&iota, 4);
        for (int parts = 1; parts <= 4; parts++) {
            memset(out, 0x5a, (size_t)(lie.elements * bytes));
            for (int part = parts - 1; part >= 0; part--)
                weft_iota_run(&iota, out + lie.first * bytes, part, parts);
            if (!weft_check_same_bytes(check, "count", out, want, (size_t)(lie.elements * bytes)))
                break;
        }
    }
}

static void triangle_body(struct weft_check *check, const void *user)
{
    static const int sizes[] = {1, 2, 4, 8};
    for (int tries = 0; tries < 200 && !weft_check_failed(check); tries++) {
        struct weft_triangle t = {.bytes = sizes[tries % 4], .rank = (int32_t)weft_check_between(check, 2, MOST),
                                  .upper = weft_check_between(check, 0, 1),
                                  .diagonal = weft_check_between(check, -45, 45)};
        int64_t index[MOST];
        const int64_t total = random_extents(check, t.rank, t.extent);
        const struct lie to = random_lie(check, t.rank, t.extent), from = random_lie(check, t.rank, t.extent);
        const size_t out_bytes = (size_t)(to.elements * t.bytes), in_bytes = (size_t)(from.elements * t.bytes);
        memcpy(t.out_stride, to.stride, sizeof to.stride);
        memcpy(t.in_stride, from.stride, sizeof from.stride);
        char *const out = weft_check_alloc(check, out_bytes), *const in = weft_check_alloc(check, in_bytes);
        char *const want = memset(weft_check_alloc(check, out_bytes), 0x5a, out_bytes);
        for (size_t i = 0; i < in_bytes; i++)
            in[i] = (char)weft_check_random(check);
        for (int64_t n = 0; n < total; n++) {
            char *const at = want + place_of(&to, t.rank, t.extent, n, index) * t.bytes;
            const int64_t source = place_of(&from, t.rank, t.extent, n, index);
            const int64_t above = index[t.rank - 1] - index[t.rank - 2];
            if (t.upper ? above >= t.diagonal : above <= t.diagonal)
                memcpy(at, in + source * t.bytes, (size_t)t.bytes);
            else
                memset(at, 0, (size_t)t.bytes);
        }
        weft_triangle_prepare(&t, 4);
        for (int parts = 1; parts <= 4; parts++) {
            memset(out, 0x5a, out_bytes);
            for (int part = parts - 1; part >= 0; part--)
                weft_triangle_run(&t, out + to.first * t.bytes, in + from.first * t.bytes, part, parts);
            if (!weft_check_same_bytes(check, "triangle", out, want, out_bytes))
                break;
        }
    }
}

void weft_check_places(struct weft_check *check)
{
    weft_check_kernel(check, "weft_iota__ref", 0, iota_body, NULL);
    weft_check_kernel(check, "weft_triangle__ref", 0, triangle_body, NULL);
}
