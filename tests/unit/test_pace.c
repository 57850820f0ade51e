/* SPDX-License-Identifier: Apache-2.0 */
/* test_pace.c: when runs are done by one worker instead of all, by times that are made up. */
#include "runtime/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ALL = 4, MS = 1000000 };

/* A run that takes so long by all, and so long by one. Returns by how many it was done. */
static int run(struct weft_pace *pace, int64_t all_ns, int64_t alone_ns)
{
    const int workers = weft_pace_workers(pace, ALL);
    weft_pace_tell(pace, workers, workers == 1 ? alone_ns : all_ns);
    return workers;
}

/* How many runs by one follow each other. */
static int count_alone(struct weft_pace *pace, int64_t all_ns, int64_t alone_ns)
{
    int runs = 0;
    while (runs < 10000 && weft_pace_workers(pace, ALL) == 1) {
        run(pace, all_ns, alone_ns);
        runs++;
    }
    return runs;
}

static void even_runs_keep_all_workers(void **state)
{
    struct weft_pace pace = {0};
    for (int i = 0; i < 100; i++)
        assert_int_equal(run(&pace, (1 + i % 3) * MS, 9 * MS), ALL);
    for (int i = 0; i < 20; i++) /* one slow run now and then */
        assert_int_equal(run(&pace, i % 2 ? MS : 50 * MS, 9 * MS), ALL);
}

static void a_busy_machine_has_one_worker(void **state)
{
    struct weft_pace pace = {0};
    run(&pace, MS, 0);
    run(&pace, 20 * MS, 0);
    assert_int_equal(run(&pace, 20 * MS, 0), ALL);
    for (int expected = 4; expected < 1024; expected *= 2) { /* each trial by all is slow again */
        assert_int_equal(count_alone(&pace, 0, 2 * MS), expected);
        assert_int_equal(run(&pace, 20 * MS, 0), ALL);
    }
    assert_int_equal(count_alone(&pace, 0, 2 * MS), 1024);
    assert_int_equal(run(&pace, 20 * MS, 0), ALL);
    assert_int_equal(count_alone(&pace, 0, 2 * MS), 1024); /* at most */
    assert_int_equal(run(&pace, MS, 0), ALL); /* at rest again */
    for (int i = 0; i < 10; i++)
        assert_int_equal(run(&pace, MS, 0), ALL);
}

static void longer_runs_are_not_a_busy_machine(void **state)
{
    struct weft_pace pace = {0};
    run(&pace, MS, 0);
    run(&pace, 20 * MS, 0);
    run(&pace, 20 * MS, 0); /* the data has become more: */
    assert_int_equal(count_alone(&pace, 0, 80 * MS), 4);
    for (int i = 0; i < 50; i++)
        assert_int_equal(run(&pace, 20 * MS, 80 * MS), ALL);
    int alone = 0;
    for (int i = 0; i < 5000; i++) /* two of three runs have more to do */
        alone += run(&pace, i % 3 ? 20 * MS : MS, i % 3 ? 80 * MS : 4 * MS) == 1;
    assert_in_range(alone, 4, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_runs_keep_all_workers),
        cmocka_unit_test(a_busy_machine_has_one_worker),
        cmocka_unit_test(longer_runs_are_not_a_busy_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
