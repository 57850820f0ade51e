/* SPDX-License-Identifier: Apache-2.0 */
/* order.c: the elements of a line in order, all of them or the first k.
 *
 * An element of 32 bits and its index make one number of 64: above, a key that rises as the elements fall or rise in
 * the order that is wanted; below, the index. All numbers are different, so every way of sorting them is stable, and
 * comparing is one instruction. All of a line are sorted by radix, eight bits of the key at a time; the first k are
 * kept in a heap, which most elements of a long line never enter. */
#include "kernels/along/along.h"

#include <string.h>

#define DIGITS 256

/* Keys rise with the elements: floats by their bits with the sign turned, -0 as 0, a NaN above all. */
static uint32_t rising_key(int dtype, const char *element)
{
    uint32_t bits;
    memcpy(&bits, element, sizeof bits);
    if (dtype != WEFT_K_F32)
        return bits ^ 0x80000000u;
    if ((bits & 0x7fffffff) > 0x7f800000)
        return UINT32_MAX;
    if (bits == 0x80000000u)
        bits = 0;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static uint64_t number_at(const struct weft_along *along, const char *in, int64_t i)
{
    const uint32_t key = rising_key(along->dtype, in + i * along->in_step * 4);
    return (uint64_t)(along->descending ? ~key : key) << 32 | (uint64_t)i;
}

/* Sorts by the upper 32 bits; those with equal ones keep their order. The result is in `number`. */
static void sort_by_radix(uint64_t *number, uint64_t *other, int64_t n)
{
    for (int shift = 32; shift < 64; shift += 8) {
        int64_t count[DIGITS] = {0}, start = 0;
        for (int64_t i = 0; i < n; i++)
            count[number[i] >> shift & (DIGITS - 1)]++;
        for (int digit = 0; digit < DIGITS; digit++) {
            const int64_t here = count[digit];
            count[digit] = start;
            start += here;
        }
        for (int64_t i = 0; i < n; i++)
            other[count[number[i] >> shift & (DIGITS - 1)]++] = number[i];
        uint64_t *const swap = number;
        number = other;
        other = swap;
    }
}

/* The largest on top; restores the heap below place `i`. */
static void sink(uint64_t *heap, int64_t n, int64_t i)
{
    const uint64_t number = heap[i];
    for (int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= number)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = number;
}

static void sort_by_heap(uint64_t *heap, int64_t n)
{
    for (int64_t left = n - 1; left > 0; left--) {
        const uint64_t largest = heap[0];
        heap[0] = heap[left];
        heap[left] = largest;
        sink(heap, left, 0);
    }
}

static void build_heap(uint64_t *heap, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sink(heap, n, i);
}

/* The k smallest numbers of the line, rising. */
static void first_of(const struct weft_along *along, const char *in, uint64_t *heap)
{
    const int64_t k = along->k;
    for (int64_t i = 0; i < k; i++)
        heap[i] = number_at(along, in, i);
    build_heap(heap, k);
    for (int64_t i = k; i < along->n; i++) {
        const uint64_t number = number_at(along, in, i);
        if (number >= heap[0])
            continue;
        heap[0] = number;
        sink(heap, k, 0);
    }
    sort_by_heap(heap, k);
}

size_t weft_along_order_scratch(const struct weft_along *along)
{
    return (size_t)(along->k < along->n ? along->k : 2 * along->n) * sizeof(uint64_t) + 64;
}

void weft_along_order(const struct weft_along *along, char *out, int64_t *index, const char *in, void *scratch)
{
    uint64_t *const number = scratch;
    if (along->k == 0)
        return;
    if (along->k < along->n) {
        first_of(along, in, number);
    } else {
        for (int64_t i = 0; i < along->n; i++)
            number[i] = number_at(along, in, i);
        sort_by_radix(number, number + along->n, along->n);
    }
    if (along->by_index) { /* the indices alone, rising */
        for (int64_t i = 0; i < along->k; i++)
            number[i] &= UINT32_MAX;
        build_heap(number, along->k);
        sort_by_heap(number, along->k);
    }
    for (int64_t i = 0; i < along->k; i++) {
        const int64_t at = (int64_t)(number[i] & UINT32_MAX);
        memcpy(out + i * along->out_step * 4, in + at * along->in_step * 4, 4);
        if (index)
            index[i * along->index_step] = at;
    }
}
