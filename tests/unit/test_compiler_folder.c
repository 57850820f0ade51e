/* SPDX-License-Identifier: Apache-2.0 */
/* test_compiler_folder.c: where the cache is, what its bound removes, and processes that share it.
 *
 * `test_compiler_folder --child FOLDER` compiles what the main program does, in that folder. */
#include "tests/unit/compiler_support.h"
#include "tests/unit/emulated.h"

#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

/* --- where it is -------------------------------------------------------------------------------------------------- */

static void check_folder(const struct world *w, const char *expected)
{
    struct weft_compiler *compiler;
    struct stat status;
    assert_int_equal(weft_compiler_open(w->context, NULL, &compiler), WEFT_OK);
    assert_string_equal(weft_compiler_folder(compiler), expected);
    assert_null(weft_compiler_uncached(compiler));
    assert_int_equal(stat(expected, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    weft_compiler_drop(compiler);
}

static void the_environment_names_the_folder(void **state)
{
    const struct world *const w = *state;
    const char *const home = getenv("HOME");
    const mode_t mask = umask(0);
    setenv("HOME", in_root(w, "home"), 1);
    unsetenv("XDG_CACHE_HOME");
    check_folder(w, in_root(w, "home/.cache/weft"));
    setenv("XDG_CACHE_HOME", "relative", 1);
    check_folder(w, in_root(w, "home/.cache/weft"));
    setenv("XDG_CACHE_HOME", in_root(w, "xdg"), 1);
    check_folder(w, in_root(w, "xdg/weft"));
    setenv("WEFT_CACHE_DIR", in_root(w, "own/folder"), 1);
    check_folder(w, in_root(w, "own/folder"));
    assert_false(compile_alone(w, NULL, NULL)); /* the umask lets all write: objects are the user's nevertheless */
    assert_true(compile_alone(w, NULL, NULL));
    umask(mask);
    unsetenv("WEFT_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    if (home)
        setenv("HOME", home, 1);
}

/* --- the bound ---------------------------------------------------------------------------------------------------- */

static void use_at(const char *path, time_t when)
{
    const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Four objects, of which the first and the third were used last; room for two. */
static void what_was_used_longest_ago_goes_first(void **state)
{
    const struct world *const w = *state;
    struct weft_compiler *compiler = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    struct numbers n;
    struct stat status;
    set_numbers(&n);
    for (int i = 0; i < 4; i++) {
        weft_code_drop(compile_one(compiler, n.text[i]));
        for (char name[64]; count_objects(w->cache, name) > i + 1;)
            fail();
    }
    assert_int_equal(stat(object_path(w), &status), 0);
    weft_compiler_drop(compiler);
    DIR *const entries = opendir(w->cache);
    char path[512];
    for (const struct dirent *e; (e = readdir(entries));)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", w->cache, e->d_name);
            use_at(path, 1000000);
        }
    closedir(entries);
    close(open(in_root(w, "cache/machine.prices"), O_WRONLY | O_CREAT, 0600));
    use_at(in_root(w, "cache/machine.prices"), 1000);
    compiler = open_compiler(w, (struct weft_compiler_options){.limit = (uint64_t)status.st_size * 7 / 2});
    weft_code_drop(compile_one(compiler, n.text[0])); /* used now */
    weft_code_drop(compile_one(compiler, n.text[2]));
    weft_code_drop(compile_one(compiler, n.text[10])); /* a fifth: two have to go */
    assert_int_equal(count_objects(w->cache, NULL), 3);
    assert_int_equal(count_entries(w->cache), 4); /* prices are no objects */
    static const int there[] = {0, 2, 10, 1};
    for (int i = 0; i < 4; i++) {
        struct weft_code *const code = compile_one(compiler, n.text[there[i]]);
        assert_int_equal(weft_code_was_cached(code, 0), there[i] != 1);
        weft_code_drop(code);
    }
    weft_compiler_drop(compiler);
}

/* An object of many sources counts once and goes with all its names; limits by the environment. */
static void names_of_one_object_go_together(void **state)
{
    const struct world *const w = *state;
    struct weft_compiler *compiler = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    struct stat status;
    char limit[32];
    compile_numbers(compiler, 8, NULL);
    weft_compiler_drop(compiler);
    assert_int_equal(stat(object_path(w), &status), 0);
    assert_int_equal(status.st_nlink, 8);
    use_at(object_path(w), 1000000);
    snprintf(limit, sizeof limit, "%lldK", (long long)(status.st_size * 3 / 1024)); /* more than two, less than eight */
    setenv("WEFT_CACHE_BYTES", limit, 1);
    assert_false(compile_alone(w, NULL, NULL));
    assert_int_equal(count_objects(w->cache, NULL), 9);
    setenv("WEFT_CACHE_BYTES", "1", 1);
    compiler = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    weft_code_drop(compile_one(compiler, "int f(void) { return 9; }"));
    weft_compiler_drop(compiler);
    unsetenv("WEFT_CACHE_BYTES");
    assert_int_equal(count_objects(w->cache, NULL), 0);
}

static char warning[512];

static void keep_warning(void *user, const struct weft_diagnostic *d)
{
    snprintf(warning, sizeof warning, "%d %s: %s", (int)d->severity, d->file ? d->file : "", d->message);
}

static void limits_that_are_none_are_warned_of(void **state)
{
    const struct world *const w = *state;
    static const char *const wrong[] = {"much", "1T", "-1", "1.5G", "1K2", " 1",
                                        "99999999999999999999", "18014398509481984K"};
    const struct weft_context_options options = {.size = sizeof options, .diagnose = keep_warning};
    struct weft_context *context;
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        const struct weft_compiler_options mine = {.folder = w->cache};
        struct weft_compiler *compiler;
        const bool right = i == sizeof wrong / sizeof *wrong;
        warning[0] = '\0';
        setenv("WEFT_CACHE_BYTES", right ? "2G" : wrong[i], 1);
        assert_int_equal(weft_compiler_open(context, &mine, &compiler), WEFT_OK);
        weft_compiler_drop(compiler);
        if (right)
            assert_string_equal(warning, "");
        else
            assert_non_null(strstr(warning, "1 WEFT_CACHE_BYTES: the most bytes"));
    }
    unsetenv("WEFT_CACHE_BYTES");
    weft_close(context);
}

/* What a process that died has left; what one that works has there. */
static void old_temporary_folders_go(void **state)
{
    const struct world *const w = *state;
    assert_int_equal(mkdir(w->cache, 0700), 0);
    assert_int_equal(mkdir(in_root(w, "cache/tmp-old"), 0700), 0);
    assert_int_equal(mkdir(in_root(w, "cache/tmp-new"), 0700), 0);
    close(open(in_root(w, "cache/tmp-old/0.so"), O_WRONLY | O_CREAT, 0600));
    use_at(in_root(w, "cache/tmp-old"), time(NULL) - 100000);
    assert_false(compile_alone(w, NULL, NULL));
    assert_int_equal(count_entries(w->cache), 2);
    assert_int_equal(rmdir(in_root(w, "cache/tmp-new")), 0);
}

/* --- file systems ------------------------------------------------------------------------------------------------- */

enum { SKIPPED = 77 };

/* In a process with mounts of its own. Code runs, and the cache says why it has nothing. */
static int run_mounted(const struct world *w, unsigned long flags, const char *size, const char *why)
{
    char unkept[512];
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", in_root(w, "mounted"), "tmpfs", flags, size) != 0)
        return SKIPPED;
    for (int round = 0; round < 2; round++)
        if (compile_alone(w, in_root(w, "mounted"), unkept) || !strstr(unkept, why))
            return 1;
    return count_entries(in_root(w, "mounted"));
}

static void check_mounted(const struct world *w, unsigned long flags, const char *size, const char *why)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_mounted(w, flags, size, why));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status == SKIPPED << 8) {
        print_message("skipped: only root can mount\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void full_and_noexec_file_systems(void **state)
{
    const struct world *const w = *state;
    assert_int_equal(mkdir(in_root(w, "mounted"), 0700), 0);
    check_mounted(w, 0, "size=64k,mode=0700", "No space left");
    check_mounted(w, MS_NOEXEC, "size=8m,mode=0700", "mounted noexec");
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static const char *program;

static int run_child(const char *folder)
{
    struct weft_context *context;
    struct weft_compiler *compiler;
    struct weft_code *code;
    struct numbers n;
    const struct weft_compiler_options options = {.folder = folder, .processes = 2, .per_object = 3};
    set_numbers(&n);
    if (weft_open(NULL, &context) != WEFT_OK || weft_compiler_open(context, &options, &compiler) != WEFT_OK)
        return 1;
    const struct weft_sources sources = {.source = n.source, .count = 12};
    if (weft_compiler_begin(compiler, &sources, &code) != WEFT_OK || weft_code_wait(code) != WEFT_OK)
        return 2;
    for (int i = 0; i < 12; i++) {
        int (*const function)(void) = (int (*)(void))weft_code_function(code, i);
        if (!function || function() != 100 + i || weft_code_unkept(code))
            return 3;
    }
    weft_code_drop(code);
    weft_compiler_drop(compiler);
    weft_close(context);
    return 0;
}

static void processes_share_a_folder(void **state)
{
    if (is_emulated())
        skip();
    struct world *const w = *state;
    char *const arguments[] = {(char *)program, (char *)"--child", w->cache, NULL};
    pid_t child[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(posix_spawn(&child[i], program, NULL, NULL, arguments, environ), 0);
    for (int i = 0; i < 3; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_entries(w->cache), 12);
    struct weft_compiler *const compiler = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    assert_int_equal(compile_numbers(compiler, 12, NULL), 12);
    weft_compiler_drop(compiler);
}

/* A process that was made by fork has code that another one compiles: dropping it stops and removes nothing. */
static void forked_processes_leave_compilers_alone(void **state)
{
    struct world *const w = *state;
    struct weft_compiler *const usual = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    struct weft_code *code;
    char text[256];
    int status;
    snprintf(text, sizeof text, "while [ ! -e %s/go ]; do sleep 0.01; done\nexec %s \"$@\"", w->root,
             weft_compiler_command(usual));
    weft_compiler_drop(usual);
    const struct weft_compiler_options options = {.command = write_script(w, "slow", text), .processes = 1};
    struct weft_compiler *const compiler = open_compiler(w, options);
    const struct weft_source source = {.text = "int f(void) { return 5; }", .function = "f"};
    code = begin_code(compiler, &(struct weft_sources){.source = &source, .count = 1});
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        weft_code_drop(code);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_entries(w->cache), 1);
    close(open(in_root(w, "go"), O_WRONLY | O_CREAT, 0600));
    assert_int_equal(weft_code_wait(code), WEFT_OK);
    assert_int_equal(call(code, 0), 5);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(int count, char **argument)
{
    const struct CMUnitTest tests[] = {
        TEST(the_environment_names_the_folder), TEST(what_was_used_longest_ago_goes_first),
        TEST(names_of_one_object_go_together), TEST(limits_that_are_none_are_warned_of),
        TEST(old_temporary_folders_go), TEST(full_and_noexec_file_systems),
        TEST(processes_share_a_folder),
        TEST(forked_processes_leave_compilers_alone),
    };
    unsetenv("WEFT_CC");
    unsetenv("WEFT_CACHE_DIR");
    if (system("cc --version >/dev/null 2>&1") != 0) {
        printf("skipped: there is no cc\n");
        return 77;
    }
    if (count == 3 && strcmp(argument[1], "--child") == 0)
        return run_child(argument[2]);
    program = argument[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
