/* SPDX-License-Identifier: Apache-2.0 */
/* test_compiler.c: sources become functions; compilers that are missing, fail, hang or are killed. What the cache does
 * is in test_compiler_cache.c. */
#include "kernels/kernels.h"
#include "tests/unit/compiler_support.h"
#include "tests/unit/emulated.h"
#include "tests/unit/scarce.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static void sources_become_functions(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 2});
    struct numbers n;
    set_numbers(&n);
    assert_non_null(weft_compiler_command(compiler));
    assert_null(weft_compiler_lacks(compiler));
    struct weft_code *const code = compile_all(compiler, n.source, MOST_NUMBERS, NULL);
    for (int i = 0; i < MOST_NUMBERS; i++) {
        assert_int_equal(call(code, i), 100 + i);
        assert_false(weft_code_was_cached(code, i));
        assert_string_equal(weft_code_output(code, i), "");
    }
    assert_null(weft_code_unkept(code));
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

static void nothing_is_no_work(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 2});
    struct weft_code *const code = begin_code(compiler, &(struct weft_sources){.count = 0});
    assert_true(weft_code_poll(code));
    assert_int_equal(weft_code_wait(code), WEFT_OK);
    weft_code_drop(code);
    weft_code_drop(NULL);
    weft_compiler_drop(compiler);
    weft_compiler_drop(NULL);
}

/* Two functions with two names, types of the prelude, flags, and the C library's mathematics. */
static void preludes_names_and_flags(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 1});
    const struct weft_source source[] = {
        {.text = "int one(void) { return twice(ADDED); }", .function = "one"},
        {.text = "int two(void) { return (int)cbrt((double)twice(ADDED + 24)); }", .function = "two"},
    };
    const struct weft_sources sources = {
        .prelude = "#include <math.h>\nstatic int twice(int x) { return 2 * x; }",
        .flags = " -DADDED=8  -fno-builtin ", .source = source, .count = 2,
    };
    struct weft_code *const code = begin_code(compiler, &sources);
    assert_int_equal(weft_code_wait(code), WEFT_OK);
    assert_int_equal(call(code, 0), 16);
    assert_int_equal(call(code, 1), 4);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

/* Each level has its own flags, of which code can be asked; nothing of it runs but numbers. */
static void levels_have_their_flags(void **state)
{
#if defined __x86_64__
    static const char text[] = "int f(void) { return LEVEL; }";
    static const char prelude[] = "#if defined __AVX512BF16__\n#define LEVEL 3\n#elif defined __AVX512F__\n"
                                  "#define LEVEL 2\n#elif defined __AVX2__\n#define LEVEL 1\n#else\n#define LEVEL 0\n"
                                  "#endif\n#if defined WEFT_LEVEL && WEFT_LEVEL > LEVEL\n#error level\n#endif";
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 2});
    const struct weft_source source[] = {
        {text, "f", 0},
        {text, "f", WEFT_CPU_AVX2},
        {text, "f", WEFT_CPU_AVX2 | WEFT_CPU_AVX512},
        {text, "f", WEFT_CPU_AVX2 | WEFT_CPU_AVX512 | WEFT_CPU_AVX512BF16},
    };
    struct weft_code *const code = begin_code(compiler, &(struct weft_sources){prelude, NULL, source, 4});
    assert_int_equal(weft_code_wait(code), WEFT_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(call(code, i), i);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
#else
    skip();
#endif
}

/* --- no compiler -------------------------------------------------------------------------------------------------- */

static void check_none(struct world *w, struct weft_compiler_options options, const char *why)
{
    struct weft_compiler *const compiler = open_compiler(w, options);
    struct weft_code *const code = compile_one(compiler, "int f(void) { return 1; }");
    assert_null(weft_compiler_command(compiler));
    assert_non_null(strstr(weft_compiler_lacks(compiler), why));
    assert_null(weft_code_function(code, 0));
    assert_string_equal(weft_code_reason(code, 0), weft_compiler_lacks(compiler));
    weft_compiler_drop(compiler); /* the code holds it */
    assert_non_null(strstr(weft_code_reason(code, 0), why));
    weft_code_drop(code);
}

static void no_compiler(void **state)
{
    char path[4096];
    check_none(*state, (struct weft_compiler_options){.flags = WEFT_COMPILER_NONE}, "no compiler is wanted");
    check_none(*state, (struct weft_compiler_options){.command = "none"}, "weft_compiler_options.command is none");
    check_none(*state, (struct weft_compiler_options){.command = "no-such-compiler"}, "which is no program in PATH");
    check_none(*state, (struct weft_compiler_options){.command = "/no/such/compiler"}, "/no/such/compiler, which is");
    check_none(*state, (struct weft_compiler_options){.command = "/tmp"}, "/tmp, which is no program");
    setenv("WEFT_CC", "none", 1);
    check_none(*state, (struct weft_compiler_options){.limit = 0}, "WEFT_CC is none");
    unsetenv("WEFT_CC");
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    setenv("PATH", ".:relative::/nowhere", 1);
    check_none(*state, (struct weft_compiler_options){.limit = 0}, "no cc, gcc or clang in PATH");
    setenv("PATH", path, 1);
    assert_int_equal(count_objects(((struct world *)*state)->cache, NULL), 0);
}

/* --- compilers that fail ------------------------------------------------------------------------------------------ */

static void one_bad_source_takes_no_other_with_it(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 1});
    struct numbers n;
    set_numbers(&n);
    n.source[2] = (struct weft_source){.text = "int bad(void) { return }", .function = "bad"};
    struct weft_code *const code = compile_all(compiler, n.source, 4, NULL);
    for (int i = 0; i < 4; i++)
        if (i != 2)
            assert_int_equal(call(code, i), 100 + i);
    assert_null(weft_code_function(code, 2));
    assert_non_null(strstr(weft_code_reason(code, 2), "ended with status 1: bad:1:"));
    assert_non_null(strstr(weft_code_reason(code, 2), "error"));
    assert_null(strchr(weft_code_reason(code, 2), '\n'));
    assert_non_null(strstr(weft_code_output(code, 2), "bad:1:"));
    assert_string_equal(weft_code_output(code, 1), "");
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

static void text_without_the_function(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 1});
    struct weft_code *const code = compile_one(compiler, "int g(void) { return 1; }");
    assert_null(weft_code_function(code, 0));
    assert_non_null(strstr(weft_code_reason(code, 0), "does not define its function"));
    assert_int_equal(count_objects(((struct world *)*state)->cache, NULL), 0);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

/* What a script that stands for the compiler makes of a source. */
static void check_script(struct world *w, const char *name, const char *script, const char *why)
{
    const struct weft_compiler_options options = {.command = write_script(w, name, script), .processes = 1};
    struct weft_compiler *const compiler = open_compiler(w, options);
    struct weft_code *const code = compile_one(compiler, "int f(void) { return 1; }");
    assert_null(weft_code_function(code, 0));
    if (!strstr(weft_code_reason(code, 0), why))
        fail_msg("%s lacks %s", weft_code_reason(code, 0), why);
    assert_int_equal(count_entries(w->cache), 0);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

static void compilers_that_fail(void **state)
{
    check_script(*state, "status", "echo first; echo some error: here >&2; exit 3", "status 3: some error: here");
    check_script(*state, "quiet", "exit 4", "ended with status 4");
    check_script(*state, "killed", "kill -9 $$", "was ended by signal 9");
    check_script(*state, "lazy", "exit 0", "left no object: No such file or directory");
    check_script(*state, "junk", "while [ $# -gt 1 ]; do [ x$1 = x-o ] && echo junk >$2; shift; done",
                 "cannot be loaded");
    check_script(*state, "loud", "exec yes error", "ended"); /* what it prints has an end */
    check_script(*state, "folder", "while [ $# -gt 1 ]; do [ x$1 = x-o ] && mkdir $2; shift; done", "left no object");
}

static void script_that_is_none(void **state)
{
    if (is_emulated())
        skip();
    struct world *const w = *state;
    const char *const path = in_root(w, "broken");
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/no/such/interpreter\n", file);
    fclose(file);
    chmod(path, 0700);
    struct weft_compiler *const compiler = open_compiler(w, (struct weft_compiler_options){.command = path});
    struct weft_code *const code = compile_one(compiler, "int f(void) { return 1; }");
    assert_null(weft_code_function(code, 0));
    assert_non_null(strstr(weft_code_reason(code, 0), "cannot be started: No such file"));
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

static int64_t now_ms(void) { return weft_now_ns() / 1000000; }

static bool is_gone(pid_t pid)
{
    const int64_t start = now_ms();
    while (kill(pid, 0) == 0 && now_ms() - start < 5000) { /* an orphan's end is seen when init has waited for it */
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *const file = fopen(path, "r");
        if (!file)
            return true;
        const size_t bytes = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        if (bytes && strstr(text, ") Z "))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return kill(pid, 0) != 0;
}

static pid_t read_pid(const char *path)
{
    const int64_t start = now_ms();
    int pid = 0;
    while (pid == 0 && now_ms() - start < 10000) {
        FILE *const file = fopen(path, "r");
        if (file && fscanf(file, "%d\n", &pid) != 1)
            pid = 0;
        if (file)
            fclose(file);
    }
    assert_true(pid > 0);
    return pid;
}

/* The compiler waits for a process of its own, as gcc does: both go. */
static const char *write_hanging(const struct world *w, char pids[160])
{
    char text[256];
    snprintf(pids, 160, "%s/pid", w->root);
    snprintf(text, sizeof text, "sleep 1000 &\necho $! >%s\nwait", pids);
    return write_script(w, "hang", text);
}

static void compilers_that_hang_are_killed(void **state)
{
    struct world *const w = *state;
    char pids[160];
    const struct weft_compiler_options options = {.command = write_hanging(w, pids), .timeout_ms = 400, .processes = 1};
    struct weft_compiler *const compiler = open_compiler(w, options);
    const int64_t start = now_ms();
    struct numbers n;
    set_numbers(&n);
    struct weft_code *const code = compile_all(compiler, n.source, 3, NULL);
    assert_in_range(now_ms() - start, 400, 20000);
    for (int i = 0; i < 3; i++) {
        assert_null(weft_code_function(code, i));
        assert_non_null(strstr(weft_code_reason(code, i), "took more than 400 ms and was killed"));
    }
    assert_true(is_gone(read_pid(pids)));
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

static void dropping_kills_what_runs(void **state)
{
    struct world *const w = *state;
    char pids[160];
    const struct weft_compiler_options options = {.command = write_hanging(w, pids), .processes = 1};
    struct weft_compiler *const compiler = open_compiler(w, options);
    const struct weft_source source = {.text = "int f(void) { return 1; }", .function = "f"};
    struct weft_code *const code = begin_code(compiler, &(struct weft_sources){.source = &source, .count = 1});
    const pid_t pid = read_pid(pids);
    assert_false(weft_code_poll(code));
    assert_null(weft_code_function(code, 0));
    assert_int_equal(count_entries(w->cache), 1);
    weft_code_drop(code);
    assert_true(is_gone(pid));
    assert_int_equal(count_entries(w->cache), 0);
    weft_compiler_drop(compiler);
}

static void lost_status_is_a_reason(void **state)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    assert_int_equal(sigaction(SIGCHLD, &ignore, &before), 0);
    check_script(*state, "slow", "exit 0", "another part of this program took its status");
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
}

/* --- in the background -------------------------------------------------------------------------------------------- */

static void begin_returns_before_the_compiler(void **state)
{
    struct world *const w = *state;
    char text[256];
    struct weft_compiler *const usual = open_compiler(w, (struct weft_compiler_options){.limit = 0});
    snprintf(text, sizeof text, "while [ ! -e %s/go ]; do sleep 0.01; done\nexec %s \"$@\"", w->root,
             weft_compiler_command(usual));
    weft_compiler_drop(usual);
    const struct weft_compiler_options options = {.command = write_script(w, "slow", text), .processes = 1};
    struct weft_compiler *const compiler = open_compiler(w, options);
    struct numbers n;
    set_numbers(&n);
    struct weft_code *const code = begin_code(compiler, &(struct weft_sources){.source = n.source, .count = 2});
    memset(n.text, 0, sizeof n.text); /* texts are copied */
    assert_false(weft_code_poll(code));
    assert_null(weft_code_function(code, 1));
    assert_null(weft_code_reason(code, 1));
    close(open(in_root(w, "go"), O_WRONLY | O_CREAT, 0600));
    for (int64_t start = now_ms(); !weft_code_poll(code) && now_ms() - start < 60000;)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(call(code, 0), 100);
    assert_int_equal(call(code, 1), 101);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

/* More jobs than may run at once: they start as others end. */
static void jobs_wait_for_their_turn(void **state)
{
    const struct weft_compiler_options options = {.processes = 2, .per_object = 2};
    struct weft_compiler *const compiler = open_compiler(*state, options);
    struct numbers n;
    set_numbers(&n);
    struct weft_code *const code = compile_all(compiler, n.source, 10, NULL);
    for (int i = 0; i < 10; i++)
        assert_int_equal(call(code, i), 100 + i);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

static int count_one(struct dl_phdr_info *info, size_t bytes, void *count)
{
    *(int *)count += strstr(info->dlpi_name, "/proc/self/fd") != NULL;
    return 0;
}

static int count_loaded(void)
{
    int count = 0;
    dl_iterate_phdr(count_one, &count);
    return count;
}

static void the_last_drop_unloads(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 1});
    struct weft_code *const code = compile_one(compiler, "int f(void) { return 1; }");
    struct weft_code *const again = compile_one(compiler, "int f(void) { return 1; }");
    struct weft_code *const other = compile_one(compiler, "int f(void) { return 2; }");
    weft_compiler_drop(compiler);
    assert_int_equal(count_loaded(), 2); /* the cache's object is the one that is loaded */
    assert_ptr_equal(weft_code_function(code, 0), weft_code_function(again, 0));
    assert_ptr_equal(weft_code_hold(code), code);
    weft_code_drop(again);
    weft_code_drop(code);
    assert_int_equal(call(code, 0), 1);
    weft_code_drop(code);
    assert_int_equal(count_loaded(), 1);
    assert_int_equal(call(other, 0), 2);
    weft_code_drop(other);
    assert_int_equal(count_loaded(), 0);
}

/* The loader knows objects by their path too, and descriptors are numbered anew when they were closed. */
static void equal_descriptors_are_other_objects(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 1});
    struct weft_code *code[8];
    struct numbers n;
    set_numbers(&n);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++)
            code[i] = compile_one(compiler, n.text[i]);
        for (int i = 0; i < 8; i++) {
            assert_int_equal(call(code[i], 0), 100 + i);
            assert_int_equal(weft_code_was_cached(code[i], 0), round);
        }
        for (int i = 0; i < 8; i++)
            weft_code_drop(code[i]);
    }
    weft_compiler_drop(compiler);
}

/* --- threads and memory ------------------------------------------------------------------------------------------- */

static void *compile_in_thread(void *arg)
{
    struct weft_compiler *const compiler = arg;
    struct numbers n;
    set_numbers(&n);
    struct weft_code *const code = compile_all(compiler, n.source, 6, NULL);
    int sum = 0;
    for (int i = 0; i < 6; i++)
        sum += weft_code_function(code, i) ? call(code, i) : 0;
    weft_code_drop(code);
    return (void *)(intptr_t)sum;
}

static void threads_share_a_compiler(void **state)
{
    struct weft_compiler *const compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 1});
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, compile_in_thread, compiler), 0);
    for (int i = 0; i < 3; i++) {
        void *sum;
        assert_int_equal(pthread_join(thread[i], &sum), 0);
        assert_int_equal((intptr_t)sum, 615);
    }
    assert_int_equal(count_objects(((struct world *)*state)->cache, NULL), 6);
    weft_compiler_drop(compiler);
}

/* Every allocation refused once: a status, nothing lost, nothing left behind. */
static void refused_memory_is_a_status(void **state)
{
    struct world *const w = *state;
    struct scarce scarce = {.left = -1};
    const struct weft_allocator allocator = {.size = sizeof allocator, .user = &scarce, .allocate = scarce_allocate,
                                             .release = scarce_release};
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = 1};
    struct weft_context *context;
    struct numbers n;
    set_numbers(&n);
    n.source[1] = (struct weft_source){.text = "wrong", .function = "f"};
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    const int64_t blocks = scarce.blocks;
    int64_t refusals = 0;
    for (bool refused = true; refused;) {
        const struct weft_compiler_options mine = {.folder = w->cache, .processes = 1};
        struct weft_compiler *compiler = NULL;
        struct weft_code *code = NULL;
        remove_tree(w->cache);
        scarce.left = refusals++;
        scarce.once = true;
        scarce.refused = 0;
        int status = weft_compiler_open(context, &mine, &compiler);
        if (status == WEFT_OK)
            status = weft_compiler_begin(compiler, &(struct weft_sources){.source = n.source, .count = 2}, &code);
        if (status == WEFT_OK)
            status = weft_code_wait(code);
        refused = scarce.refused;
        scarce.left = -1;
        if (status == WEFT_OK)
            assert_int_equal(call(code, 0), 100); /* the bound of the cache needs memory and can wait */
        else
            assert_true(refused && status == WEFT_ERR_NOMEM);
        weft_code_drop(code);
        weft_compiler_drop(compiler);
        assert_int_equal(scarce.blocks, blocks);
        assert_true(count_entries(w->cache) == count_objects(w->cache, NULL) || count_entries(w->cache) == -2);
    }
    assert_in_range(refusals, 8, 30);
    weft_close(context);
    assert_int_equal(scarce.blocks, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sources_become_functions), TEST(nothing_is_no_work), TEST(preludes_names_and_flags),
        TEST(levels_have_their_flags), TEST(no_compiler), TEST(one_bad_source_takes_no_other_with_it),
        TEST(text_without_the_function), TEST(compilers_that_fail), TEST(script_that_is_none),
        TEST(compilers_that_hang_are_killed), TEST(dropping_kills_what_runs), TEST(lost_status_is_a_reason),
        TEST(begin_returns_before_the_compiler), TEST(jobs_wait_for_their_turn), TEST(the_last_drop_unloads),
        TEST(equal_descriptors_are_other_objects), TEST(threads_share_a_compiler), TEST(refused_memory_is_a_status),
    };
    unsetenv("WEFT_CC");
    if (system("cc --version >/dev/null 2>&1") != 0) {
        printf("skipped: there is no cc\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
