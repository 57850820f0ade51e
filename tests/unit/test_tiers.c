/* SPDX-License-Identifier: Apache-2.0 */
/* test_tiers.c: compiled code comes to plans that run: when somebody waits, and after some runs by itself; it gives the
 * bits of the interpreted program, also at other sizes; without a compiler a plan stays as it is and says so. */
#include "tests/unit/plan_support.h"

#include <time.h>
#include <unistd.h>

static const char softmax[] = "graph @s<N=1..99 hint=7>(%x: f32[N,33]) {\n  %y: f32[N,33] = softmax %x axis=1\n"
                              "  %z: f32[N,33] = relu %y\n  return %z\n}\n";
enum { MOST = 99, COLUMNS = 33 };

static float input[MOST * COLUMNS];

static void run_at(struct scene *c, int64_t rows, float *ret)
{
    struct weft_tensor in = {.data = input, .dtype = WEFT_F32, .rank = 2, .extent = {rows, COLUMNS}}, out;
    weft_tensor_dense(&in);
    if (weft_bind_input(c->execution, 0, &in) != WEFT_OK || weft_run(c->execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(c->execution));
    assert_int_equal(weft_output(c->execution, 0, &out), WEFT_OK);
    memcpy(ret, out.data, (size_t)rows * COLUMNS * sizeof *ret);
}

static int32_t compiled(const struct scene *c, int32_t *ret_groups, const char **ret_why)
{
    int32_t count;
    assert_int_equal(weft_plan_compiled(c->plan, &count, ret_groups, ret_why), WEFT_OK);
    return count;
}

static bool has_compiler(void)
{
    struct scene c = open_scene(softmax, 0);
    int32_t groups;
    const char *why;
    assert_int_equal(weft_plan_wait(c.plan), WEFT_OK);
    const bool has = compiled(&c, &groups, &why) > 0;
    if (!has)
        print_message("skipped: %s\n", why);
    close_scene(&c);
    return has;
}

/* Before, after, and at sizes that were not there before. */
static void compiled_code_has_the_same_bits(void **state)
{
    static float before[MOST * COLUMNS], after[MOST * COLUMNS];
    static const int64_t rows[] = {7, 1, 64, 99};
    int32_t groups;
    const char *why;
    if (!has_compiler())
        skip();
    struct scene interpreted = open_scene(softmax, WEFT_COMPILE_NO_COMPILER), c = open_scene(softmax, 0);
    run_at(&c, 7, before);
    assert_int_equal(compiled(&c, &groups, &why), 0);
    assert_int_equal(groups, 1);
    assert_int_equal(weft_plan_wait(c.plan), WEFT_OK);
    assert_int_equal(weft_plan_wait(c.plan), WEFT_OK);
    assert_int_equal(compiled(&c, &groups, &why), 1);
    assert_null(why);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_at(&interpreted, rows[i], before);
        run_at(&c, rows[i], after);
        assert_memory_equal(before, after, (size_t)rows[i] * COLUMNS * sizeof *before);
    }
    assert_int_equal(weft_plan_wait(interpreted.plan), WEFT_OK);
    assert_int_equal(compiled(&interpreted, &groups, &why), 0);
    close_scene(&interpreted);
    close_scene(&c);
}

/* Nobody waits: compilers start beside the ninth run, and some later run takes the code over. */
static void plans_that_run_often_are_compiled(void **state)
{
    static float out[MOST * COLUMNS];
    int32_t groups;
    const char *why;
    if (!has_compiler())
        skip();
    struct scene c = open_scene(softmax, 0);
    for (int i = 0; i < 8; i++)
        run_at(&c, 7, out);
    assert_int_equal(compiled(&c, &groups, &why), 0);
    for (int i = 0; i < 3000 && compiled(&c, &groups, &why) == 0; i++) {
        run_at(&c, 7, out);
        usleep(10000);
    }
    assert_int_equal(compiled(&c, &groups, &why), 1);
    close_scene(&c);
}

static void without_a_compiler_plans_say_so(void **state)
{
    static float out[MOST * COLUMNS];
    int32_t groups;
    const char *why;
    setenv("WEFT_CC", "none", 1);
    struct scene c = open_scene(softmax, 0);
    assert_int_equal(weft_plan_wait(c.plan), WEFT_OK);
    assert_int_equal(compiled(&c, &groups, &why), 0);
    assert_int_equal(groups, 1);
    assert_non_null(why);
    run_at(&c, 7, out);
    close_scene(&c);
    unsetenv("WEFT_CC");
}

int main(void)
{
    char folder[] = "/tmp/weft_tiers_XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    setenv("WEFT_CACHE_DIR", folder, 1);
    for (int i = 0; i < MOST * COLUMNS; i++)
        input[i] = (float)((i * 7919) % 201 - 100) / 9.f;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_code_has_the_same_bits),
        cmocka_unit_test(plans_that_run_often_are_compiled),
        cmocka_unit_test(without_a_compiler_plans_say_so),
    };
    const int status = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? status : 1;
}
