/* SPDX-License-Identifier: Apache-2.0 */
/* test_harness.c: the harness itself. weft_check.c is built a second time around a family of kernels that are wrong on
 * purpose; each must be reported for what it does, and the one that is right must pass. */
#define WEFT_CHECK_LIST "tests/unit/harness.def"
#define WEFT_BENCH_LIST "tests/unit/harness_bench.def"
#include "kernels/bench.h"
#include "kernels/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after what it needs */

int weft_check_main(int argc, char **argv);

const struct weft_bench_family weft_bench_toy = {0};

enum { N = 7 };

static void right(struct weft_check *check, const void *user)
{
    float *const x = weft_check_alloc(check, N * sizeof *x);
    double want[N];
    weft_check_fill(check, x, N, WEFT_FILL_HOSTILE);
    for (int i = 0; i < N; i++)
        want[i] = x[i];
    weft_check_close(check, "copy", x, want, N, 0, 0);
}

static void inexact(struct weft_check *check, const void *user)
{
    const float got[2] = {1, 1.0000002f};
    weft_check_close(check, "two ulps", got, (const double[]){1, 1}, 2, 1, 0);
}

/* One end of the block has a guard page, the other canaries; over many blocks both are met on each side. */
static void beyond(struct weft_check *check, const void *user)
{
    for (int i = 0; i < 8; i++)
        ((volatile float *)weft_check_alloc(check, N * sizeof(float)))[user ? -1 : N] = 1;
}

static void canary_only(struct weft_check *check, const void *user)
{
    for (int i = 0; i < 64; i++) { /* the one end without a guard page: the write itself succeeds */
        volatile unsigned char *const x = weft_check_alloc(check, 4096 - 64);
        if ((size_t)x % 4096 == 0) {
            x[4096 - 64] = 1;
            return;
        }
    }
}

static void illegal(struct weft_check *check, const void *user) { __builtin_trap(); }

void weft_check_broken(struct weft_check *check)
{
    weft_check_kernel(check, "right", 0, right, NULL);
    weft_check_kernel(check, "inexact", 0, inexact, NULL);
    weft_check_kernel(check, "after_the_end", 0, beyond, NULL);
    weft_check_kernel(check, "before_the_start", 0, beyond, "");
    weft_check_kernel(check, "canary", 0, canary_only, NULL);
    weft_check_kernel(check, "illegal", 0, illegal, NULL);
    weft_check_kernel(check, "unknown_cpu", 1u << 31, right, NULL);
    weft_check_kernel(check, "right_again", 0, right, NULL);
}

/* Runs the harness with its output in a file, which is read back. */
static int run(char *text, size_t bytes, int argc, char **argv)
{
    fflush(stdout);
    FILE *const saved = stdout, *const file = tmpfile();
    assert_non_null(file);
    stdout = file;
    const int code = weft_check_main(argc, argv);
    stdout = saved;
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = 0;
    fclose(file);
    return code;
}

static void faults_are_found_and_survived(void **state)
{
    char text[8192], name[] = "weft-check", seed[] = "--seed=5";
    assert_int_equal(run(text, sizeof text, 2, (char *[]){name, seed, NULL}), 1);
    assert_non_null(strstr(text, "FAIL inexact (--seed=5): two ulps: element 1 of 2"));
    assert_non_null(strstr(text, "FAIL after_the_end (--seed=5): crashed"));
    assert_non_null(strstr(text, "FAIL before_the_start (--seed=5): crashed"));
    assert_non_null(strstr(text, "FAIL canary (--seed=5): wrote outside its result"));
    assert_non_null(strstr(text, "FAIL illegal (--seed=5): crashed"));
    assert_non_null(strstr(text, "\n2 passed, 5 failed, 1 skipped\n"));
}

static void patterns_select(void **state)
{
    char text[8192], name[] = "weft-check", pattern[] = "right*", family[] = "broken", none[] = "nothing";
    assert_int_equal(run(text, sizeof text, 2, (char *[]){name, pattern, NULL}), 0);
    assert_non_null(strstr(text, "\n2 passed, 0 failed, 0 skipped\n"));
    assert_int_equal(run(text, sizeof text, 2, (char *[]){name, family, NULL}), 1);
    assert_int_equal(run(text, sizeof text, 2, (char *[]){name, none, NULL}), 2);
}

static void distances(void **state)
{
    assert_true(weft_check_ulps(1.f, 1.0) == 0);
    assert_true(weft_check_ulps(1.f + 0x1p-23f, 1.0) == 1);
    assert_true(weft_check_ulps(-0.f, 0.0) == 0);
    assert_true(weft_check_ulps(0x1p-149f, 0.0) == 1);
    assert_true(weft_check_ulps(__builtin_nanf(""), 0.0) > 1e9);
    assert_true(weft_check_ulps(__builtin_inff(), 1e300) == 0);
    assert_true(weft_check_ulps(0x1.fffffep127f, __builtin_inf()) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(faults_are_found_and_survived),
        cmocka_unit_test(patterns_select),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
