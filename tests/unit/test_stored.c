/* SPDX-License-Identifier: Apache-2.0 */
/* test_stored.c: plans in files (plan/stored.h): found by all that decides them, the same as planned anew, and whatever
 * is wrong with a file, there is a plan. */
#include "plan_support.h"
#include "scarce.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 256, COLUMNS = 192 };
static char folder[64];
static bool any_rows; /* are the rows of x a symbol? Then kernels for other sizes may read the weights as they are */

static int make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/weft-plans-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* A file there whose name ends so, and how many there are. */
static int find_file(const char *suffix, char path[320])
{
    int files = 0;
    DIR *const entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *e; (e = readdir(entries));) {
        const size_t length = strlen(e->d_name), end = strlen(suffix);
        if (e->d_name[0] == '.' || length < end || strcmp(e->d_name + length - end, suffix) != 0)
            continue;
        snprintf(path, 320, "%s/%s", folder, e->d_name);
        files++;
    }
    closedir(entries);
    return files;
}

static int remove_folder(void **state)
{
    char path[320];
    while (find_file("", path))
        unlink(path);
    return rmdir(folder);
}

static struct weft_context *open_here(int threads, const char *cpu, uint64_t bytes)
{
    const struct weft_context_options options = {.size = sizeof options, .threads = threads, .packs = folder,
                                                 .packs_bytes = bytes, .cpu = cpu};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    return context;
}

/* y = relu(x @ exp(w).T + b): passes compute exp(w), whose elements then only a pack has. */
static struct weft_graph *graph_of(struct weft_context *context, int seed)
{
    const char *const head = any_rows ? "<n=1..64 hint=8>" : "", *const n = any_rows ? "n" : "8";
    char text[512];
    snprintf(text, sizeof text,
             "weft 1\ngraph @g%s(%%x: f32[%s,%d]) {\n  %%w: f32[%d,%d] = const random=%d\n"
             "  %%b: f32[%d] = const random=3\n  %%e: f32[%d,%d] = exp %%w\n"
             "  %%t: f32[%d,%d] = transpose %%e perm=[1 0]\n"
             "  %%m: f32[%s,%d] = matmul %%x, %%t\n  %%c: f32[%s,%d] = bcast %%b dims=[1]\n"
             "  %%a: f32[%s,%d] = add %%m, %%c\n  %%y: f32[%s,%d] = relu %%a\n  return %%y\n}\n",
             head, n, ROWS, COLUMNS, ROWS, seed, COLUMNS, COLUMNS, ROWS, ROWS, COLUMNS, n, COLUMNS, n, COLUMNS, n,
             COLUMNS, n, COLUMNS);
    return parse(context, text);
}

static struct weft_plan *plan_of(struct weft_context *context, int seed, uint32_t flags)
{
    struct weft_graph *const graph = graph_of(context, seed);
    struct weft_plan *const plan = compile(graph, flags | WEFT_COMPILE_STORE);
    weft_graph_destroy(graph);
    return plan;
}

static const char *why(const struct weft_plan *plan)
{
    int32_t found;
    const char *reason;
    assert_int_equal(weft_plan_stored(plan, &found, &reason), WEFT_OK);
    assert_true(found ? !reason : reason && *reason);
    return found ? "" : reason;
}

static void run(const struct weft_plan *plan, int64_t n, float result[8 * COLUMNS])
{
    static float data[8 * ROWS];
    struct weft_execution *e;
    struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){n, ROWS}), y;
    for (int i = 0; i < 8 * ROWS; i++)
        data[i] = (float)(i % 13 - 6) / 8;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input_named(e, "x", &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    memcpy(result, y.data, sizeof(float) * (size_t)n * COLUMNS);
    weft_execution_destroy(e);
}

/* Compiles in a context of its own, which may have an alternative; the reason why the plan was not there. */
static const char *again_with(const struct weft_alternative *alternative, int seed, uint32_t flags, int64_t n,
                              float result[8 * COLUMNS])
{
    static char reason[512];
    struct weft_context *const context = open_here(2, NULL, 0);
    if (alternative)
        assert_int_equal(weft_register_alternative(context, alternative), WEFT_OK);
    struct weft_plan *const plan = plan_of(context, seed, flags);
    snprintf(reason, sizeof reason, "%s", why(plan));
    run(plan, n, result);
    weft_plan_destroy(plan);
    weft_close(context);
    return reason;
}

static const char *again(int seed, uint32_t flags, int64_t n, float result[8 * COLUMNS])
{
    return again_with(NULL, seed, flags, n, result);
}

static void plans_are_found_and_the_same(void **state)
{
    float first[8 * COLUMNS], second[8 * COLUMNS];
    char path[320], *a, *b;
    any_rows = true;
    for (int64_t n = 1; n <= 8; n += 7) {
        const char *const reason = again(1, 0, n, first);
        assert_string_equal(reason, n == 1 ? "there is no file of this plan" : "");
        assert_string_equal(again(1, 0, n, second), "");
        assert_memory_equal(first, second, sizeof(float) * (size_t)n * COLUMNS);
    }
    any_rows = false;
    assert_string_equal(again(1, 0, 8, first), "there is no file of this plan");
    assert_string_equal(again(1, 0, 8, second), "");
    assert_memory_equal(first, second, sizeof first);
    assert_int_equal(find_file(".plan", path), 2);
    struct weft_context *const context = open_here(2, NULL, 0);
    struct weft_plan *const one = plan_of(context, 1, 0), *const other = plan_of(context, 1, 0);
    struct weft_graph *copy = NULL;
    assert_int_equal(weft_plan_print(one, &a), WEFT_OK);
    assert_int_equal(weft_plan_print(other, &b), WEFT_OK);
    assert_string_equal(a, b);
    assert_int_equal(weft_graph_clone(weft_plan_graph(one), &copy), WEFT_ERR_INVALID); /* its weights are a pack */
    weft_free_text(context, a);
    weft_free_text(context, b);
    weft_plan_destroy(one);
    weft_plan_destroy(other);
    weft_close(context);
}

/* Is the plan of a context with other options found? On a machine where they make no difference, it is. */
static void expect_own_plan(int threads, const char *cpu)
{
    struct weft_context *const usual = open_here(2, NULL, 0), *const other = open_here(threads, cpu, 0);
    const bool differs = usual->target.threads != other->target.threads || usual->target.cpu != other->target.cpu;
    struct weft_plan *const plan = plan_of(other, 1, 0);
    assert_string_equal(why(plan), differs ? "there is no file of this plan" : "");
    weft_plan_destroy(plan);
    weft_close(other);
    weft_close(usual);
}

static void keys_differ(void **state)
{
    float result[8 * COLUMNS];
    (void)again(1, 0, 8, result);
    assert_string_equal(again(2, 0, 8, result), "there is no file of this plan");
    assert_string_equal(again(1, WEFT_COMPILE_NO_FUSE, 8, result), "there is no file of this plan");
    expect_own_plan(1, NULL);
    expect_own_plan(2, "baseline");
    assert_string_equal(again(1, 0, 8, result), "");
}

static int build_none(void *user, struct weft_graph *trial, const weft_node *node, size_t nodes) { return 0; }

/* What takes the place of a node may differ from one process to the next, and no key says how. */
static void alternatives_are_in_no_key(void **state)
{
    const struct weft_alternative none = {.size = sizeof none, .name = "none", .op = "matmul", .build = build_none};
    float result[8 * COLUMNS];
    assert_string_equal(again(1, 0, 8, result), "there is no file of this plan");
    assert_non_null(strstr(again_with(&none, 1, 0, 8, result), "alternatives"));
    setenv("WEFT_ALTERNATIVE", "all", 1);
    assert_non_null(strstr(again(1, 0, 8, result), "WEFT_ALTERNATIVE"));
    unsetenv("WEFT_ALTERNATIVE");
    assert_string_equal(again(1, 0, 8, result), "");
}

/* A program that has weft in itself is known by its own file, whatever it was called as. */
static void programs_are_known_by_their_file(void **state)
{
    float result[8 * COLUMNS];
    int status;
    (void)again(1, 0, 8, result);
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "some-name", folder, (char *)NULL);
        _exit(2);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* As such a child: 0 if the plan was found. */
static int find_plan(const char *path)
{
    float result[8 * COLUMNS];
    snprintf(folder, sizeof folder, "%s", path);
    return *again(1, 0, 8, result) ? 1 : 0;
}

static void some_plans_are_not_stored(void **state)
{
    float result[8 * COLUMNS];
    char path[320];
    assert_non_null(strstr(again(1, WEFT_COMPILE_NO_PASSES, 8, result), "flags"));
    setenv("WEFT_SKIP", "cse", 1);
    assert_non_null(strstr(again(1, 0, 8, result), "WEFT_SKIP"));
    unsetenv("WEFT_SKIP");
    struct weft_context *const context = open_context(2);
    struct weft_plan *const plan = plan_of(context, 1, 0);
    assert_string_equal(why(plan), "the context has no folder for packs");
    weft_plan_destroy(plan);
    weft_close(context);
    assert_int_equal(find_file(".plan", path), 0);
}

static void damage_file(const char *path, off_t bytes, off_t flip)
{
    char byte;
    assert_int_equal(chmod(path, 0600), 0);
    const int file = open(path, O_RDWR);
    assert_true(file >= 0);
    if (bytes >= 0)
        assert_int_equal(ftruncate(file, bytes), 0);
    else {
        assert_int_equal(pread(file, &byte, 1, flip), 1);
        byte ^= 1;
        assert_int_equal(pwrite(file, &byte, 1, flip), 1);
    }
    close(file);
}

/* All files whose names end so: cut to so many bytes, or, if that is below 0, with another byte at `flip`. */
static void damage(const char *suffix, off_t bytes, off_t flip)
{
    DIR *const entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *e; (e = readdir(entries));) {
        char path[320];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strstr(e->d_name, suffix))
            damage_file(path, bytes, flip);
    }
    closedir(entries);
}

/* Any byte and any length of the file of the plan; of the pack, one in the middle. */
static void damaged_files_are_made_anew(void **state)
{
    float want[8 * COLUMNS], result[8 * COLUMNS];
    char path[320];
    struct stat status;
    (void)again(1, 0, 8, want);
    assert_int_equal(find_file(".plan", path), 1);
    assert_int_equal(stat(path, &status), 0);
    for (off_t i = 0; i < status.st_size; i += i < 128 ? 8 : 173) {
        damage(".plan", -1, i);
        assert_non_null(strstr(again(1, 0, 8, result), "the file of this plan is"));
        assert_memory_equal(result, want, sizeof want);
        damage(".plan", i, 0);
        assert_string_not_equal(again(1, 0, 8, result), "");
        assert_string_equal(again(1, 0, 8, result), "");
    }
    damage(".pack", -1, 1000);
    assert_non_null(strstr(again(1, 0, 8, result), "packed weights"));
    assert_memory_equal(result, want, sizeof want);
    assert_string_equal(again(1, 0, 8, result), "");
}

static void a_full_folder_is_no_error(void **state)
{
    float result[8 * COLUMNS];
    char path[320];
    struct weft_context *const context = open_here(2, NULL, 512);
    struct weft_plan *const plan = plan_of(context, 1, 0);
    assert_non_null(strstr(why(plan), "may not hold so many bytes"));
    run(plan, 8, result);
    weft_plan_destroy(plan);
    weft_close(context);
    assert_int_equal(find_file(".plan", path), 0);
}

/* A plan that is compiled where an allocation is refused, and the next ones or not; false: none was. */
static bool compile_with(int64_t allocations, bool once)
{
    struct scarce scarce = {.left = -1};
    const struct weft_allocator allocator = scarce_allocator(&scarce);
    const struct weft_context_options options = {.size = sizeof options, .threads = 2, .packs = folder,
                                                 .allocator = &allocator};
    const struct weft_compile_options how = {.size = sizeof how, .flags = WEFT_COMPILE_STORE};
    struct weft_context *context;
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    struct weft_graph *const graph = graph_of(context, 1);
    scarce.left = allocations;
    scarce.once = once;
    const int status = weft_compile(graph, &how, &plan);
    const bool refused = scarce.refused > 0;
    scarce.left = -1;
    assert_true(status == (plan ? WEFT_OK : WEFT_ERR_NOMEM));
    if (plan) {
        float want[8 * COLUMNS], result[8 * COLUMNS];
        run(plan, 8, result);
        (void)again(1, 0, 8, want);
        assert_memory_equal(result, want, sizeof want);
    }
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
    assert_int_equal(scarce.blocks, 0);
    return refused;
}

/* With a file, with a damaged one, and with none: what cannot be stored for want of memory is compiled all the same. */
static void memory_may_be_refused(void **state)
{
    float result[8 * COLUMNS];
    for (int once = 0; once < 2; once++)
        for (int way = 0; way < 3; way++) {
            bool refused = true;
            for (int64_t n = 0; refused; n++) {
                char path[320];
                (void)again(1, 0, 8, result);
                if (way == 1)
                    damage(".plan", 100, 0);
                if (way == 2 && find_file(".plan", path))
                    unlink(path);
                refused = compile_with(n, once);
            }
        }
}

static void give_back(void *user, const void *data) { ++*(int *)user; }

/* Weft text whose constants the caller has. */
static void constants_of_the_caller(void **state)
{
    static const char text[] = "graph @g(%x: f32[4]) {\n"
                               "  %w: f32[4] = const blob=000000000000000000000000000000ab\n"
                               "  %y: f32[4] = add %x, %w\n  return %y\n}\n";
    static const float w[4] = {1, 2, 3, 4};
    int released = 0, unused = 0;
    const struct weft_known_constant known[] = {
        {.id = "000000000000000000000000000000ab", .data = w, .bytes = sizeof w, .release = give_back,
         .user = &released},
        {.id = "000000000000000000000000000000ac", .data = w, .bytes = sizeof w, .release = give_back,
         .user = &unused}};
    struct weft_load_options options = {.size = sizeof options, .constants = known, .constant_count = 2};
    struct weft_context *const context = open_context(1);
    struct weft_graph *graph = NULL;
    assert_int_equal(weft_load_memory(context, text, strlen(text), &options, &graph), WEFT_OK);
    assert_int_equal(unused, 1);
    struct weft_plan *const plan = compile(graph, 0);
    weft_graph_destroy(graph);
    struct weft_execution *e;
    float data[4];
    struct weft_tensor x = tensor_of(data, 1, (const int64_t[]){4}), y;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    for (int i = 0; i < 4; i++)
        assert_true(((const float *)y.data)[i] == data[i] + w[i]);
    assert_int_equal(released, 0);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    assert_int_equal(released, 1);
    options.constant_count = 1; /* too short for its type */
    const struct weft_known_constant small = {.id = known[0].id, .data = w, .bytes = 8, .release = give_back,
                                              .user = &released};
    options.constants = &small;
    assert_int_equal(weft_load_memory(context, text, strlen(text), &options, &graph), WEFT_ERR_INVALID);
    options.constant_count = 0;
    assert_int_equal(weft_load_memory(context, text, strlen(text), &options, &graph), WEFT_ERR_INVALID);
    assert_int_equal(released, 1);
    weft_close(context);
}

/* A stored plan packs its static inputs as the one that was made: from what is bound, constants beside them. */
static void static_inputs_are_not_stored(void **state)
{
    static const char text[] = "graph @s(%x: f32[8,64], %v: static f32[64,48]) {\n"
                               "  %w: f32[48,64] = const random=7\n  %a: f32[8,48] = matmul %x, %v\n"
                               "  %y: f32[8,64] = matmul %a, %w\n  return %y\n}\n";
    static float x_data[8 * 64], v_data[64 * 48], result[2][8 * 64];
    struct weft_tensor in[] = {tensor_of(x_data, 2, (const int64_t[]){8, 64}),
                               tensor_of(v_data, 2, (const int64_t[]){64, 48})};
    for (int i = 0; i < 2; i++) {
        struct weft_context *const context = open_here(2, NULL, 0);
        struct weft_graph *const graph = parse(context, text);
        struct weft_plan *const plan = compile(graph, WEFT_COMPILE_STORE);
        struct weft_execution *e;
        struct weft_tensor y;
        struct weft_statistics statistics = {.size = sizeof statistics};
        assert_string_equal(why(plan), i == 0 ? "there is no file of this plan" : "");
        assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
        bind_inputs(e, plan->graph, in, "bind");
        assert_int_equal(weft_run(e), WEFT_OK);
        v_data[5] += 1;
        assert_int_equal(weft_refresh(e, 1), WEFT_OK);
        assert_int_equal(weft_run(e), WEFT_OK);
        v_data[5] -= 1;
        assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
        memcpy(result[i], y.data, sizeof result[i]);
        assert_int_equal(weft_execution_statistics(e, &statistics), WEFT_OK);
        assert_int_equal(statistics.static_packs, 2);
        weft_execution_destroy(e);
        weft_plan_destroy(plan);
        weft_graph_destroy(graph);
        weft_close(context);
    }
    assert_memory_equal(result[0], result[1], sizeof result[0]);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return find_plan(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_are_found_and_the_same, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(static_inputs_are_not_stored, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(keys_differ, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(programs_are_known_by_their_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(alternatives_are_in_no_key, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(some_plans_are_not_stored, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damaged_files_are_made_anew, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(memory_may_be_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_full_folder_is_no_error, make_folder, remove_folder),
        cmocka_unit_test(constants_of_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
