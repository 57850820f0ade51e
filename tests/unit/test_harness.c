/* SPDX-License-Identifier: Apache-2.0 */
/* test_harness.c: the harness itself. weft_check.c is built a second time around a family of kernels that are wrong on
 * purpose; each must be reported for what it does, and the one that is right must pass. The speed half has a family of
 * its own, whose peer is slow, and whose kernel is wrong if the case says so. */
#define WEFT_CHECK_LIST "tests/unit/harness.def"
#define WEFT_BENCH_LIST "tests/unit/harness_bench.def"
#include "check/bench.h"
#include "check/check.h"
#include "check/speed.h"
#include "tests/unit/emulated.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* after what it needs */

int weft_check_main(int argc, char **argv);

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

/* --- the speed half ----------------------------------------------------------------------------------------------- */

/* A family whose kernel negates, `wrong` ones do not; peers do the same or refuse. */
enum { TOY_N, TOY_KIND, TOY_SLOW, TOY_AXES };
static const struct weft_case_key toy_keys[] = {
    [TOY_N] = {.name = "n", .most = 1, .low = 1, .required = true},
    [TOY_KIND] = {.name = "kind", .most = 1, .words = "right wrong"},
    [TOY_SLOW] = {.name = "slow"},
    [TOY_AXES] = {.name = "axes", .most = 3, .otherwise = 7},
    {0},
};

static const char *toy_problem(const struct weft_case *c)
{
    return c->value[TOY_N][0] == 13 ? "13 brings bad luck" : NULL;
}

static void toy_set(struct weft_bench *bench, const struct weft_case *c, struct weft_problem *ret)
{
    const int64_t n = c->value[TOY_N][0];
    *ret = (struct weft_problem){.c = c, .read = 4.0 * (double)n, .written = 4.0 * (double)n,
                                 .in = {weft_bench_floats(bench, n)},
                                 .out = weft_bench_alloc(bench, (size_t)n * sizeof(float)),
                                 .out_bytes = (size_t)n * sizeof(float)};
}

struct toy {
    const struct weft_problem *problem;
    float factor;
    int64_t repeat;
};

static void toy_run(void *user, int part, int parts)
{
    const struct toy *const t = user;
    const int64_t n = t->problem->c->value[TOY_N][0];
    for (int64_t r = 0; r < t->repeat; r++)
        for (int64_t i = n * part / parts; i < n * (part + 1) / parts; i++)
            ((volatile float *)t->problem->out)[i] = t->factor * t->problem->in[0][i];
}

static void toy_enter(struct weft_bench *bench, const struct weft_problem *problem, float factor, int64_t repeat,
                      int parts, struct weft_contestant *ret)
{
    struct toy *const t = weft_bench_alloc(bench, sizeof *t);
    *t = (struct toy){problem, factor, repeat};
    *ret = (struct weft_contestant){.name = "toy", .run = toy_run, .user = t, .parts = parts};
}

static void toy_crash(void *user, int part, int parts) { __builtin_trap(); }

static bool toy_ours(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers,
                     struct weft_contestant *ret)
{
    if (problem->c->value[TOY_N][0] == 14)
        return false;
    if (problem->c->value[TOY_N][0] == 15) {
        *ret = (struct weft_contestant){.name = "crash", .run = toy_crash, .parts = 1};
        return true;
    }
    toy_enter(bench, problem, cpu && problem->c->value[TOY_KIND][0] ? 1 : -1, 1, workers, ret);
    return true;
}

static bool toy_peer(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                     struct weft_contestant *ret)
{
    toy_enter(bench, problem, -1, 50, 0, ret);
    return true;
}

static void toy_draw(struct weft_bench *bench, char *line, size_t bytes)
{
    snprintf(line, bytes, "n=%lld", (long long)weft_bench_size(bench, 1000, 1010));
}

static const struct weft_peer toy_peers[] = {{"slow", toy_peer}, {0}};
const struct weft_bench_family weft_bench_toy = {"toy", toy_keys, toy_problem, toy_set, toy_ours, toy_peers, toy_draw};

/* Reads a shape file of this text: what is wrong with it, without the path, or "" and its cases. */
static const char *read_text(struct speed_shapes *shapes, const char *text)
{
    static char error[1024];
    char path[] = "/tmp/weft-shapes-XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
    close(descriptor);
    *error = 0;
    *shapes = (struct speed_shapes){0};
    const bool good = speed_shapes_read(shapes, path, error, sizeof error);
    unlink(path);
    if (good)
        return "";
    speed_shapes_close(shapes);
    assert_int_equal(strncmp(error, path, strlen(path)), 0);
    return error + strlen(path);
}

static void shape_files_are_read(void **state)
{
    struct speed_shapes shapes;
    static const char text[] = "# one\n\n group first\t# two\ntoy a n=5\n"
                               "toy  b\tn=6 kind=wrong slow axes=1x2\r\ngroup second\ntoy c axes=0 n=1";
    assert_string_equal(read_text(&shapes, text), "");
    assert_int_equal(shapes.count, 3);
    const struct weft_case *const c = shapes.cases;
    assert_string_equal(c[1].group, "first");
    assert_string_equal(c[2].group, "second");
    assert_string_equal(c[1].name, "b");
    assert_int_equal(c[1].line, 5);
    assert_int_equal(c[0].value[TOY_KIND][0], 0);
    assert_int_equal(c[0].value[TOY_AXES][0], 7);
    assert_int_equal(c[0].count[TOY_AXES], 0);
    assert_int_equal(c[1].value[TOY_KIND][0], 1);
    assert_int_equal(c[1].value[TOY_SLOW][0], 1);
    assert_int_equal(c[1].count[TOY_AXES], 2);
    assert_int_equal(weft_case_at(&c[1], TOY_AXES, 1), 2);
    assert_int_equal(weft_case_at(&c[2], TOY_AXES, 2), 0);
    speed_shapes_close(&shapes);
}

static void wrong_lines_are_refused(void **state)
{
    static const char *const wrong[][2] = {
        {"toy a n=1", ":1: a case before the first 'group NAME'"},
        {"group g\nfoo a n=1", ":2: no family 'foo'"},
        {"group g\n\n# x\ntoy n=1", ":4: the case has no name: family name key=value…"},
        {"group g\ntoy", ":2: the case has no name: family name key=value…"},
        {"group a b", ":1: a group has one word of at most 111 bytes as its name"},
        {"group g\ntoy a", ":2: toy needs n=…"},
        {"group g\ntoy a n=1 m=2", ":2: toy has no key 'm'"},
        {"group g\ntoy a n=1 n=1", ":2: 'n' twice"},
        {"group g\ntoy a n=", ":2: 'n' needs a value: n=…"},
        {"group g\ntoy a n", ":2: 'n' needs a value: n=…"},
        {"group g\ntoy a n=0", ":2: n=0: 0 is not between 1 and 1073741824"},
        {"group g\ntoy a n=9999999999", ":2: n=9999999999: 9999999999 is not between 1 and 1073741824"},
        {"group g\ntoy a n=1x2", ":2: n=1x2: more than 1 number"},
        {"group g\ntoy a n=1y", ":2: n=1y: not a number"},
        {"group g\ntoy a n=1 axes=1x2x3x4", ":2: axes=1x2x3x4: more than 3 numbers"},
        {"group g\ntoy a n=1 axes=1xx2", ":2: axes=1xx2: not numbers with x between"},
        {"group g\ntoy a n=1 slow=1", ":2: 'slow' takes no value"},
        {"group g\ntoy a n=1 kind=wron", ":2: kind=wron: not one of: right wrong"},
        {"group g\ntoy a n=13", ":2: 13 brings bad luck"},
        {"group g\ntoy a n=1\ngroup h\ntoy a n=2", ":4: 'toy a' is already in line 2"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct speed_shapes shapes;
        assert_string_equal(read_text(&shapes, wrong[i][0]), wrong[i][1]);
    }
    char error[100];
    struct speed_shapes none = {0};
    assert_false(speed_shapes_read(&none, "/nowhere/x.shapes", error, sizeof error));
    assert_string_equal(error, "/nowhere/x.shapes: No such file or directory");
    speed_shapes_close(&none);
}

static void summaries_are_of_groups(void **state)
{
    const struct weft_case cases[] = {{.group = "g", .name = "a", .family = &weft_bench_toy},
                                      {.group = "g", .name = "b", .family = &weft_bench_toy},
                                      {.group = "h", .name = "c", .family = &weft_bench_toy}};
    const double ratio[] = {1, 4, 3}, least[] = {2, 0.5, 3};
    char text[4096];
    FILE *const file = tmpfile();
    assert_non_null(file);
    struct speed_report report = {.out = file, .columns = 2, .column = {"limit", "ref"}};
    for (int i = 0; i < 3; i++) {
        const struct speed_result result = {.c = &cases[i], .threads = 1, .kernel = "k", .unit = "", .limit = "read",
                                            .ratio = {0.5, ratio[i]}, .least = {0.5, least[i]}};
        speed_report_add(&report, &result);
    }
    speed_report_close(&report);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (char *p = text, *to = text; (*to = *p); p++) /* one blank is enough */
        to += *p != ' ' || p[1] != ' ';
    assert_non_null(strstr(text, "\ng 1 limit 2 50.00% 50.00% a 50.00% 50.00% a\n"));
    assert_non_null(strstr(text, "\ng 1 ref 2 2.00x 1.00x a 1.00x 0.50x b\n"));
    assert_non_null(strstr(text, "\nh 1 ref 1 3.00x 3.00x c 3.00x 3.00x c\n"));
    assert_true(speed_median((double[]){3, 1, 2}, 3) == 2);
    assert_true(speed_median((double[]){4, 1, 2, 3}, 4) == 2.5);
    assert_true(isnan(speed_median(NULL, 0)));
}

static void cases_are_timed_beside_peers(void **state)
{
    char text[8192], name[] = "weft-check", bench[] = "--bench", random[] = "--random=2", one[] = "--threads=1",
                     quick[] = "--seconds=0", json[] = "--json", shapes[] = "--shapes=/nowhere/x.shapes";
    assert_int_equal(run(text, sizeof text, 5, (char *[]){name, bench, random, one, quick, NULL}), 0);
    assert_non_null(strstr(text, "-- random-toy\nn=100"));
    assert_non_null(strstr(text, "summary of"));
    assert_non_null(strstr(text, " slow "));
    assert_int_equal(run(text, sizeof text, 6, (char *[]){name, bench, random, one, quick, json, NULL}), 0);
    const char *const ratio = strstr(text, "\"slow\": "); /* the peer does the work fifty times */
    assert_non_null(ratio);
    assert_true(strtod(ratio + 8, NULL) > 10);
    assert_int_equal(run(text, sizeof text, 3, (char *[]){name, bench, shapes, NULL}), 2);
    assert_int_equal(run(text, sizeof text, 2, (char *[]){name, one, NULL}), 2);
}

/* In a process of its own, whose standard error is read. */
static void crashes_name_the_case(void **state)
{
    if (is_emulated())
        skip(); /* the emulator speaks of the crash too */
    static const char text[] = "group g\ntoy falls n=15\n";
    char name[] = "weft-check", bench[] = "--bench", one[] = "--threads=1",
         shapes[] = "--shapes=/tmp/weft-shapes-XXXXXX";
    const int descriptor = mkstemp(shapes + 9);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
    close(descriptor);
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        _exit(weft_check_main(4, (char *[]){name, bench, one, shapes, NULL}));
    }
    close(pipes[1]);
    char said[200] = "";
    for (size_t at = 0; at < sizeof said - 1;) {
        const ssize_t n = read(pipes[0], said + at, sizeof said - 1 - at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(shapes + 9);
    assert_string_equal(said, "weft-check: crashed while timing falls\n");
    assert_true(WIFSIGNALED(status));
}

static void another_result_is_found(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip(); /* the plain loops are all there is, and are right by definition */
    char text[8192], name[] = "weft-check", bench[] = "--bench", one[] = "--threads=1", quick[] = "--seconds=0",
                     shapes[] = "--shapes=/tmp/weft-shapes-XXXXXX";
    static const char wrong[] = "group g\ntoy a n=100 kind=wrong\ntoy b n=14\n";
    const int descriptor = mkstemp(shapes + 9);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, wrong, strlen(wrong)), strlen(wrong));
    close(descriptor);
    const int code = run(text, sizeof text, 5, (char *[]){name, bench, one, quick, shapes, NULL});
    unlink(shapes + 9);
    assert_int_equal(code, 1);
    assert_non_null(strstr(text, "ANOTHER RESULT: ref"));
    assert_non_null(strstr(text, "skipped: no kernel of ours does it"));
    assert_non_null(strstr(text, "\n1 skipped\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(faults_are_found_and_survived),
        cmocka_unit_test(patterns_select),
        cmocka_unit_test(shape_files_are_read),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(summaries_are_of_groups),
        cmocka_unit_test(cases_are_timed_beside_peers),
        cmocka_unit_test(another_result_is_found),
        cmocka_unit_test(crashes_name_the_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
