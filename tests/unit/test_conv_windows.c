/* SPDX-License-Identifier: Apache-2.0 */
/* test_conv_windows.c: WINDOWS by bands of rows, for which images have to be larger than those of weft-check: beside
 * the plain loops, bit by bit, at each CPU level, for 1 to 3 parts; the epilogue gets each result once, finished; and
 * nothing is written behind scratch. */
#include "kernels/conv/conv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after what it needs */

enum { PARTS = 3, GUARD = 1 << 18 }; /* bytes behind scratch */

/* Extents of x, windows and steps; which axes of x and y are innermost: channels or columns. */
struct shape {
    int64_t n, c, h, w, window, step;
    bool x_planes, y_planes, hook, small;
};
static const struct shape shapes[] = {
    {1, 48, 96, 150, 3, 1, false, false, false, false}, /* far: the next band is prefetched */
    {1, 48, 130, 150, 3, 2, false, false, true, false},
    {1, 40, 110, 160, 5, 1, false, false, true, false}, /* the last channels go through scratch */
    {1, 24, 450, 100, 3, 1, false, false, false, false}, /* and have no room for as many rows as a band could have */
    {1, 48, 120, 140, 3, 2, false, true, true, false},  /* planes as results */
    {2, 64, 40, 30, 3, 1, false, false, true, false},   /* near: bands for the epilogue's sake; shared out by images */
    {1, 64, 41, 33, 3, 1, false, false, true, true},
    {1, 33, 41, 35, 7, 1, true, false, true, false},
    {1, 512, 512, 0, 3, 1, false, false, true, false},  /* nothing but padding */
};

/* Results that the hook has seen. */
struct seen {
    const struct weft_conv *conv;
    const float *y, *want;
    unsigned char *times;
};

static void see(void *user, const struct weft_conv_piece *piece)
{
    const struct seen *const s = user;
    for (int64_t i = 0; i < piece->channels; i++)
        for (int64_t j = 0; j < piece->pixels; j++) {
            const int64_t at = &piece->data[i * piece->channel_stride + j * piece->pixel_stride] - s->y;
            assert_memory_equal(s->y + at, s->want + at, sizeof *s->y);
            s->times[at]++;
        }
}

static void order(bool planes, const int64_t extent[4], int64_t stride[5])
{
    const int axes[2][4] = {{1, 3, 2, 0}, {3, 2, 1, 0}};
    int64_t step = 1;
    for (int i = 0; i < 4; i++) {
        stride[axes[planes][i]] = step;
        step *= extent[axes[planes][i]];
    }
}

/* Images without columns are padded to four. */
static struct weft_conv describe(const struct shape *s, int64_t *ret_size)
{
    const int64_t across = s->w > 0 ? s->window / 2 : 3, columns = s->w > 0 ? (s->w - 1) / s->step + 1 : 4;
    const int64_t rows = (s->h - 1) / s->step + 1;
    struct weft_conv conv = {.spatial = 2, .n = s->n, .c = s->c, .o = s->c, .groups = s->c,
                             .in_extent = {s->h, s->w}, .out_extent = {rows, columns},
                             .kernel = {s->window, s->window}, .stride = {s->step, s->step}, .dilation = {1, 1},
                             .pad = {s->window / 2, across},
                             .w_stride = {s->window * s->window, s->window * s->window, s->window, 1},
                             .clamp = {.given = true, .low = -2, .high = 1.5f}, .small_pieces = s->small};
    order(s->x_planes, (int64_t[]){s->n, s->c, s->h, s->w}, conv.x_stride);
    order(s->y_planes, (int64_t[]){s->n, s->c, rows, columns}, conv.y_stride);
    *ret_size = s->n * s->c * rows * columns;
    return conv;
}

static float *numbers(int64_t count, uint32_t seed)
{
    float *const ret = malloc((size_t)(count + WEFT_CONV_SLACK) * sizeof *ret);
    assert_non_null(ret);
    for (int64_t i = 0; i < count + WEFT_CONV_SLACK; i++) {
        seed = seed * 1664525u + 1013904223u;
        ret[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
    return ret;
}

static void run(struct weft_conv *conv, struct weft_conv_data data, int parts)
{
    const size_t bytes = (conv->scratch + 63) / 64 * 64;
    unsigned char *const scratch = aligned_alloc(64, bytes + GUARD);
    assert_non_null(scratch);
    data.scratch = scratch;
    memset(scratch + bytes, 0x5a, GUARD);
    for (int part = 0; part < parts; part++)
        weft_conv_run(conv, &data, part, parts);
    for (size_t i = bytes; i < bytes + GUARD; i++)
        assert_int_equal(scratch[i], 0x5a);
    free(scratch);
}

static void compare(const struct shape *s, uint32_t cpu)
{
    int64_t size;
    struct weft_conv conv = describe(s, &size);
    float *const x = numbers(s->n * s->c * s->h * s->w, 1), *const w = numbers(s->c * s->window * s->window, 2);
    float *const want = calloc((size_t)size, sizeof *want), *const y = calloc((size_t)size, sizeof *y);
    struct weft_conv_data data = {.y = want, .x = x, .w = w};
    weft_conv_prepare(&conv, 1); /* by plain loops */
    run(&conv, data, 1);
    struct seen seen = {.conv = &conv, .y = y, .want = want, .times = calloc((size_t)size, 1)};
    data.y = y, data.user = &seen;
    for (int parts = 1; parts <= PARTS; parts++) {
        conv = describe(s, &size);
        conv.cpu = cpu, conv.wanted = 1 + WEFT_CONV_WINDOWS, conv.epilogue = s->hook ? see : NULL;
        weft_conv_prepare(&conv, parts);
        assert_int_equal(weft_conv_kernels[conv.form].form, WEFT_CONV_WINDOWS);
        memset(y, 0xff, (size_t)size * sizeof *y);
        memset(seen.times, 0, (size_t)size);
        run(&conv, data, parts);
        assert_memory_equal(y, want, (size_t)size * sizeof *y);
        for (int64_t i = 0; i < size; i++)
            assert_int_equal(seen.times[i], s->hook);
    }
    free(x), free(w), free(want), free(y), free(seen.times);
}

static void bands(void **state)
{
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    uint32_t levels = cpu.flags;
    for (bool more = (levels & WEFT_CPU_AVX2) != 0; more; more = more && (levels & WEFT_CPU_AVX2)) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            compare(&shapes[i], levels);
        more = weft_cpu_lower(levels, &levels);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
