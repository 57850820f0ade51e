/* SPDX-License-Identifier: Apache-2.0 */
/* test_block_copy.c: copies between random layouts with blocks, element by element against the definition: every
 * element is where its digits say, and what fills up the last blocks is 0. */
#include "kernels/relayout/blocks.h"
#include "tests/unit/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after what it needs */

enum { MOST = 1 << 20, BYTES = 4 };

static uint64_t state = 7;

static int64_t draw(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static int64_t digits_along(const struct weft_digit *d, int64_t extent)
{
    return d->mod ? d->mod : (extent + d->div - 1) / d->div;
}

/* Axes in random order, some of them split once or twice; elements of the storage. */
static int64_t draw_digits(int rank, const int64_t *extent, struct weft_digits *ret)
{
    static const int64_t blocks[] = {2, 3, 4, 8, 16};
    int64_t elements = 1;
    ret->count = 0;
    for (int axis = 0; axis < rank; axis++) {
        int64_t div = 1;
        for (int64_t splits = draw(3); splits >= 0; splits--) {
            const int64_t block = splits ? blocks[draw(5)] : 0;
            ret->digit[ret->count++] = (struct weft_digit){.axis = axis, .div = div, .mod = block};
            div *= block;
        }
    }
    for (int i = ret->count - 1; i > 0; i--) {
        const int64_t other = draw(i + 1);
        const struct weft_digit kept = ret->digit[i];
        ret->digit[i] = ret->digit[other];
        ret->digit[other] = kept;
    }
    for (int i = ret->count - 1; i >= 0; i--) {
        ret->digit[i].stride = elements;
        elements *= digits_along(&ret->digit[i], extent[ret->digit[i].axis]);
    }
    return elements;
}

static int64_t place(const struct weft_digits *digits, const int64_t *index)
{
    int64_t sum = 0;
    for (int i = 0; i < digits->count; i++) {
        const struct weft_digit *d = &digits->digit[i];
        sum += (d->mod ? index[d->axis] / d->div % d->mod : index[d->axis] / d->div) * d->stride;
    }
    return sum;
}

static void copies_follow_the_digits(void **nothing)
{
    static uint32_t in[MOST], out[MOST], expected[MOST];
    int strided = 0, others = 0;
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    for (int round = 0; round < 3000; round++) {
        struct weft_block_copy c = {.bytes = BYTES, .rank = (int)draw(4), .cpu = cpu.flags};
        int64_t index[WEFT_K_RANK] = {0}, count = 1;
        for (int i = 0; i < c.rank; i++)
            count *= c.extent[i] = draw(2) ? 16 * (1 + draw(2)) : draw(round % 50 ? 19 : 3) + (round % 50 ? 1 : 0);
        const int64_t from = draw_digits(c.rank, c.extent, &c.in), to = draw_digits(c.rank, c.extent, &c.out);
        if (from > MOST || to > MOST)
            continue;
        for (int64_t i = 0; i < from; i++)
            in[i] = (uint32_t)i + 1;
        memset(expected, 0, (size_t)to * BYTES);
        for (int64_t i = 0; i < count; i++) {
            expected[place(&c.out, index)] = in[place(&c.in, index)];
            for (int axis = c.rank - 1; axis >= 0 && ++index[axis] == c.extent[axis]; axis--)
                index[axis] = 0;
        }
        memset(out, 0xff, (size_t)to * BYTES);
        weft_block_copy_prepare(&c, 1 + (int)draw(3));
        for (int part = 0; part < c.copy.parts; part++)
            weft_block_copy_run(&c, out, in, part, c.copy.parts);
        if (count > 0 && memcmp(out, expected, (size_t)to * BYTES) != 0)
            fail_msg("round %d differs", round);
        *(c.strided ? &strided : &others) += 1;
    }
    assert_true(strided > 100 && others > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(copies_follow_the_digits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
