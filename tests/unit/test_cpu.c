/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu.c: masks by name, their description, that detection agrees with the compiler's own, and caches that the
 * environment names. */
#include "ir/ir.h"
#include "kernels/kernels.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* after what it needs */

static uint32_t parsed(const char *name)
{
    uint32_t flags = 12345;
    assert_true(weft_cpu_parse(name, &flags));
    return flags;
}

static void a_level_implies_the_ones_below(void **state)
{
    assert_int_equal(parsed("baseline"), 0);
    assert_int_equal(parsed("avx2"), WEFT_CPU_AVX2);
    assert_int_equal(parsed("avx512"), WEFT_CPU_AVX2 | WEFT_CPU_AVX512);
    assert_int_equal(parsed("avx512vnni"), WEFT_CPU_AVX2 | WEFT_CPU_AVX512 | WEFT_CPU_AVX512VNNI);
    assert_true(parsed("amx") & WEFT_CPU_AVX512BF16);
    assert_int_equal(parsed("all"), WEFT_CPU_BUILT);
}

static void words_join(void **state)
{
    assert_int_equal(parsed("avx512bf16+avx512vnni"), parsed("avx512bf16") | parsed("avx512vnni"));
    assert_int_equal(parsed("baseline+avx2"), WEFT_CPU_AVX2);
}

static void unknown_words_are_refused(void **state)
{
    static const char *const wrong[] = {"", "avx", "avx5", "avx512x", "avx2+", "+avx2", "avx2++avx512", "AVX2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint32_t flags = 7;
        assert_false(weft_cpu_parse(wrong[i], &flags));
        assert_int_equal(flags, 0);
    }
}

static void descriptions(void **state)
{
    char text[64];
    weft_cpu_describe(0, text, sizeof text);
    assert_string_equal(text, "baseline");
    weft_cpu_describe(WEFT_CPU_AVX2, text, sizeof text);
    assert_string_equal(text, "avx2");
    weft_cpu_describe(parsed("avx512bf16+avx512vnni"), text, sizeof text);
    assert_string_equal(text, "avx512+bf16+vnni");
    weft_cpu_describe(WEFT_CPU_ALL, text, 9);
    assert_string_equal(text, "avx512+b");
}

static void detection(void **state)
{
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
#ifdef __x86_64__
    assert_int_equal(!!(cpu.flags & WEFT_CPU_AVX2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(!!(cpu.flags & WEFT_CPU_AVX512),
                     __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"));
#else
    assert_int_equal(cpu.flags, 0);
#endif
    assert_int_equal(cpu.flags & ~WEFT_CPU_BUILT, 0);
    assert_true(strlen(cpu.vendor) > 0);
    assert_true(strlen(cpu.brand) > 0);
    assert_in_range(cpu.l1, 4 << 10, 1 << 20);
    assert_true(cpu.l2 > cpu.l1 && cpu.l3 >= cpu.l2);
    assert_true(cpu.l3 <= (size_t)sysconf(_SC_NPROCESSORS_ONLN) << 25); /* as much as its own cores may have */
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        assert_in_range(cpu.workers, 1, CPU_COUNT(&set));
}

static char message[512];

static void keep_message(void *user, const struct weft_diagnostic *d)
{
    snprintf(message, sizeof message, "%s: %s", d->where ? d->where : "", d->message);
}

/* Plans for another machine, and mistakes that are said. */
static void caches_of_the_environment(void **state)
{
    static const char *const wrong[] = {
        "32K",      "32K,1M",     "32K,1M,32M,", "32K,1M,-1",   "0,1M,32M",
        "32K,,32M", "32k,1M,32M", "32K,1M,32G",  "32K, 1M,32M", "99999999999999999999,1,1", "8,8,9999999M"};
    const struct weft_context_options options = {.size = sizeof options, .prices = "", .diagnose = keep_message};
    struct weft_context *context;
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    setenv("WEFT_CACHES", "48K,2M,0", 1);
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    assert_int_equal(weft_context_target(context)->l1, 48 << 10);
    assert_int_equal(weft_context_target(context)->l2, 2 << 20);
    assert_int_equal(weft_context_target(context)->l3, 0);
    weft_close(context);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        message[0] = '\0';
        setenv("WEFT_CACHES", wrong[i], 1);
        assert_int_equal(weft_open(&options, &context), WEFT_ERR_ARGUMENT);
        assert_non_null(strstr(message, "WEFT_CACHES: "));
    }
    for (int unset = 0; unset < 2; unset++) {
        setenv("WEFT_CACHES", "", 1);
        if (unset)
            unsetenv("WEFT_CACHES");
        assert_int_equal(weft_open(&options, &context), WEFT_OK);
        assert_int_equal(weft_context_target(context)->l2, cpu.l2);
        weft_close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_implies_the_ones_below),
        cmocka_unit_test(words_join),
        cmocka_unit_test(unknown_words_are_refused),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(detection),
        cmocka_unit_test(caches_of_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
