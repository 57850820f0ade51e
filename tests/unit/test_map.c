/* SPDX-License-Identifier: Apache-2.0 */
/* test_map.c: what prepare does to axes and parts, and that any division into parts gives the same bytes. */
#include "kernels/strip/strip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h> /* after what it needs */

static struct weft_cpu cpu;

static void contiguous_axes_become_one(void **state)
{
    struct weft_map map = {
        .kernel = weft_strip_find("relu", WEFT_K_F32, WEFT_K_F32, cpu.flags),
        .inputs = 1,
        .rank = 4,
        .extent = {2, 1, 3, 5},
        .stride = {{15, 99, 5, 1}, {15, 7, 5, 1}},
        .bytes = {4, 4},
    };
    assert_non_null(map.kernel);
    weft_map_prepare(&map, 8);
    assert_int_equal(map.rank, 1);
    assert_int_equal(map.extent[0], 30);
    assert_int_equal(map.parts, 1);
}

static void a_bias_keeps_its_axis_innermost(void **state)
{
    struct weft_map map = {
        /* channels-last result seen in the order n, c, w; one bias a channel */
        .kernel = weft_strip_find("add", WEFT_K_F32, WEFT_K_F32, cpu.flags),
        .inputs = 2,
        .rank = 3,
        .extent = {4, 64, 100},
        .stride = {{6400, 1, 64}, {6400, 1, 64}, {0, 1, 0}},
        .bytes = {4, 4, 4},
    };
    weft_map_prepare(&map, 8);
    assert_int_equal(map.rank, 1); /* the bias begins again after 64 elements */
    assert_int_equal(map.period, 64);
    assert_int_equal(map.again, 1 << 2);
    assert_int_equal(map.within[2][1], 1);
    assert_int_equal(map.parts, 8);
    static float x[25600], one[25600], many[25600];
    float bias[64];
    for (int i = 0; i < 25600; i++)
        x[i] = (float)(i % 97);
    for (int i = 0; i < 64; i++)
        bias[i] = (float)i;
    weft_map_run(&map, one, (const void *const[]){x, bias}, 0, 1);
    for (int i = 0; i < 25600; i++)
        assert_true(one[i] == (float)(i % 97) + (float)(i % 64));
    for (int parts = 2; parts < 6; parts++) {
        memset(many, 0, sizeof many);
        for (int part = 0; part < parts; part++)
            weft_map_run(&map, many, (const void *const[]){x, bias}, part, parts);
        assert_memory_equal(one, many, sizeof one);
    }
}

/* out[i,j,c] = mask[i,j,c] ? y[i,c] : z[c·3]: short rows, operands that begin again after each, one of them with other
 * values for each i. */
static void operands_that_begin_again(void **state)
{
    enum { OUTER = 3, MIDDLE = 2000, MOST = 37 };
    static float got[OUTER * MIDDLE * MOST];
    static uint8_t mask[OUTER * MIDDLE * MOST];
    float y[OUTER * MOST], z[3 * MOST];
    for (int i = 0; i < OUTER * MIDDLE * MOST; i++)
        mask[i] = (uint8_t)(i % 7 < 3);
    for (int i = 0; i < OUTER * MOST; i++)
        y[i] = (float)i;
    for (int i = 0; i < 3 * MOST; i++)
        z[i] = (float)-i;
    for (int inner = 1; inner <= MOST; inner += 4) {
        struct weft_map map = {
            .kernel = weft_strip_find("select", WEFT_K_F32, WEFT_K_F32, cpu.flags),
            .inputs = 3,
            .rank = 3,
            .extent = {OUTER, MIDDLE, inner},
            .stride = {{MIDDLE * inner, inner, 1}, {MIDDLE * inner, inner, 1}, {inner, 0, 1}, {0, 0, 3}},
            .bytes = {4, 1, 4, 4},
        };
        weft_map_prepare(&map, 2);
        assert_int_equal(map.period, inner > 1 ? inner : 0);
        for (int parts = 1; parts < 8; parts += 3) {
            memset(got, 0xff, sizeof got);
            for (int part = 0; part < parts; part++)
                weft_map_run(&map, got, (const void *const[]){mask, y, z}, part, parts);
            for (int i = 0; i < OUTER * MIDDLE * inner; i++) {
                const int c = i % inner;
                assert_true(got[i] == (mask[i] ? y[i / (MIDDLE * inner) * inner + c] : z[3 * c]));
            }
        }
    }
}

/* out[i,g,c] = x[i,g,c] - y[g]: a number for each of some groups of channels. */
static void groups_that_begin_again(void **state)
{
    enum { OUTER = 4000, GROUPS = 8, MOST = 9 };
    static float x[OUTER * GROUPS * MOST], got[OUTER * GROUPS * MOST];
    float y[GROUPS];
    for (int i = 0; i < OUTER * GROUPS * MOST; i++)
        x[i] = (float)(i % 1013);
    for (int i = 0; i < GROUPS; i++)
        y[i] = (float)(1 + i);
    for (int inner = 2; inner <= MOST; inner++) {
        struct weft_map map = {
            .kernel = weft_strip_find("sub", WEFT_K_F32, WEFT_K_F32, cpu.flags),
            .inputs = 2,
            .rank = 3,
            .extent = {OUTER, GROUPS, inner},
            .stride = {{GROUPS * inner, inner, 1}, {GROUPS * inner, inner, 1}, {0, 1, 0}},
            .bytes = {4, 4, 4},
        };
        weft_map_prepare(&map, 2);
        assert_int_equal(map.rank, 1);
        assert_int_equal(map.period, GROUPS * inner);
        assert_int_equal(map.piece, inner);
        for (int parts = 1; parts < 8; parts += 3) {
            memset(got, 0xff, sizeof got);
            for (int part = 0; part < parts; part++)
                weft_map_run(&map, got, (const void *const[]){x, y}, part, parts);
            for (int i = 0; i < OUTER * GROUPS * inner; i++)
                assert_true(got[i] == x[i] - y[i / inner % GROUPS]);
        }
    }
}

/* out[i,j,c] = x[i,j,c] · s[c] in rows with gaps, of the operand, the result or both; what is between them stays. */
static void rows_with_gaps(void **state)
{
    enum { OUTER = 2, MIDDLE = 700, MOST = 41, WIDE = 48, ALL = OUTER * MIDDLE * WIDE };
    static float x[ALL], got[ALL];
    float s[MOST];
    for (int i = 0; i < ALL; i++)
        x[i] = (float)(i % 1009);
    for (int i = 0; i < MOST; i++)
        s[i] = (float)(1 + i % 7);
    for (int inner = 1; inner <= MOST; inner += 5)
        for (int gaps = 1; gaps < 4; gaps++) {
            const int to = gaps & 1 ? WIDE : inner, from = gaps & 2 ? WIDE : inner;
            struct weft_map map = {
                .kernel = weft_strip_find("mul", WEFT_K_F32, WEFT_K_F32, cpu.flags),
                .inputs = 2,
                .rank = 3,
                .extent = {OUTER, MIDDLE, inner},
                .stride = {{MIDDLE * to, to, 1}, {MIDDLE * from, from, 1}, {0, 0, 1}},
                .bytes = {4, 4, 4},
            };
            weft_map_prepare(&map, 2);
            if (inner > 1)
                assert_int_equal(map.gapped, gaps);
            for (int parts = 1; parts < 8; parts += 3) {
                memset(got, 0xff, sizeof got);
                for (int part = 0; part < parts; part++)
                    weft_map_run(&map, got, (const void *const[]){x, s}, part, parts);
                for (int i = 0; i < OUTER * MIDDLE; i++)
                    for (int c = 0; c < to && i * to + c < ALL; c++)
                        if (c < inner)
                            assert_true(got[i * to + c] == x[i * from + c] * s[c]);
                        else
                            assert_true(got[i * to + c] != got[i * to + c]); /* NaN, as it was filled */
            }
        }
}

static void scalars_and_nothing(void **state)
{
    const float x = -2.f;
    float out = 5.f;
    struct weft_map map = {
        .kernel = weft_strip_find("abs", WEFT_K_F32, WEFT_K_F32, cpu.flags), .inputs = 1, .bytes = {4, 4}};
    weft_map_prepare(&map, 2);
    weft_map_run(&map, &out, (const void *const[]){&x}, 0, 1);
    assert_true(out == 2.f);
    struct weft_map none = {
        .kernel = map.kernel, .inputs = 1, .rank = 2, .extent = {3, 0}, .stride = {{1, 1}, {1, 1}}, .bytes = {4, 4}};
    weft_map_prepare(&none, 2);
    out = 5.f;
    weft_map_run(&none, &out, (const void *const[]){&x}, 0, 1);
    assert_true(out == 5.f);
}

static void kernels_respect_the_mask(void **state)
{
    assert_int_equal(weft_strip_find("exp", WEFT_K_F32, WEFT_K_F32, 0)->cpu, 0);
    assert_int_equal(weft_strip_find("exp", WEFT_K_F32, WEFT_K_F32, WEFT_CPU_AVX2)->cpu,
                     WEFT_CPU_AVX2 & WEFT_CPU_BUILT);
    assert_null(weft_strip_find("exp", WEFT_K_I64, WEFT_K_I64, WEFT_CPU_ALL));
    assert_null(weft_strip_find("nonsense", WEFT_K_F32, WEFT_K_F32, WEFT_CPU_ALL));
    assert_string_equal(weft_strip_find("gelu.tanh", WEFT_K_F32, WEFT_K_F32, 0)->name, "weft_strip_gelu_tanh_f32__ref");
}

static void the_list_has_every_kernel_once(void **state)
{
    unsigned count = 0;
    for (const struct weft_kernel_info *a; (a = weft_kernel_at(count)); count++)
        for (unsigned j = 0; j < count; j++)
            assert_string_not_equal(a->name, weft_kernel_at(j)->name);
    assert_true(count > 150);
}

/* For each row its op and types are found on a CPU that has no more than it asks for: it, or one of the same level. */
static void every_kernel_is_found(void **state)
{
    const struct weft_strip_kernel *row;
    unsigned rows = 0;
    for (; (row = weft_strip_at(rows)); rows++) {
        const struct weft_strip_kernel *k = weft_strip_find(row->op, row->in_dtype, row->out_dtype, row->cpu);
        assert_non_null(k);
        assert_string_equal(k->op, row->op);
        assert_true(k->in_dtype == row->in_dtype && k->out_dtype == row->out_dtype && k->cpu == row->cpu);
    }
    assert_true(rows > (WEFT_CPU_BUILT ? 1000u : 300u)); /* a third of them at the baseline */
}

int main(void)
{
    weft_cpu_detect(&cpu);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contiguous_axes_become_one),
        cmocka_unit_test(a_bias_keeps_its_axis_innermost),
        cmocka_unit_test(operands_that_begin_again),
        cmocka_unit_test(groups_that_begin_again),
        cmocka_unit_test(rows_with_gaps),
        cmocka_unit_test(scalars_and_nothing),
        cmocka_unit_test(kernels_respect_the_mask),
        cmocka_unit_test(the_list_has_every_kernel_once),
        cmocka_unit_test(every_kernel_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
