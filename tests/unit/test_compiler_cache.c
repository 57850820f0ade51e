/* SPDX-License-Identifier: Apache-2.0 */
/* test_compiler_cache.c: what was compiled is found again, by sources that are the same and by no others; what is
 * damaged or may be somebody else's is not loaded. Where the folder is and how large is in test_compiler_folder.c. */
#include "kernels/kernels.h"
#include "tests/unit/compiler_support.h"

/* --- found again -------------------------------------------------------------------------------------------------- */

static void found_again(void **state)
{
    struct weft_compiler *compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 2});
    assert_int_equal(compile_numbers(compiler, 6, NULL), 0);
    assert_int_equal(compile_numbers(compiler, 6, NULL), 6);
    weft_compiler_drop(compiler);
    compiler = open_compiler(*state, (struct weft_compiler_options){.processes = 1});
    assert_int_equal(compile_numbers(compiler, 6, NULL), 6);
    weft_compiler_drop(compiler);
}

/* In company of others, in another order, twice in one list. */
static void found_by_others(void **state)
{
    struct world *const w = *state;
    struct weft_compiler *const compiler = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    struct numbers n;
    set_numbers(&n);
    struct weft_code *code = compile_all(compiler, n.source, 4, NULL);
    weft_code_drop(code);
    assert_int_equal(count_objects(w->cache, NULL), 4);
    const struct weft_source mixed[] = {n.source[9], n.source[2], n.source[9], n.source[0], n.source[2]};
    code = compile_all(compiler, mixed, 5, NULL);
    static const int expected[] = {109, 102, 109, 100, 102};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(call(code, i), expected[i]);
        assert_int_equal(weft_code_was_cached(code, i), expected[i] != 109);
    }
    assert_ptr_equal(weft_code_function(code, 0), weft_code_function(code, 2));
    assert_int_equal(count_objects(w->cache, NULL), 5);
    weft_code_drop(code);
    weft_compiler_drop(compiler);
}

static void check_miss(struct weft_compiler *compiler, const struct weft_sources *sources)
{
    for (int round = 0; round < 2; round++) {
        struct weft_code *const code = begin_code(compiler, sources);
        assert_int_equal(weft_code_wait(code), WEFT_OK);
        call(code, 0);
        assert_int_equal(weft_code_was_cached(code, 0), round);
        weft_code_drop(code);
    }
}

static void whatever_differs_is_another_source(void **state)
{
    struct world *const w = *state;
    static const char text[] = "int f(void) { return 1; }\nint (*g)(void) = 0;";
    const struct weft_source source = {text, "f", 0};
    const struct weft_source other = {"int f(void) { return 1; }\nint (*g)(void) = 1 - 1;", "f", 0};
    const struct weft_source name = {"int f(void) { return 1; }\nint g(void) { return 2; }", "f", 0};
    const struct weft_source named = {name.text, "g", 0};
    struct weft_compiler *compiler = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    check_miss(compiler, &(struct weft_sources){NULL, NULL, &source, 1});
    check_miss(compiler, &(struct weft_sources){NULL, "-O1", &source, 1});
    check_miss(compiler, &(struct weft_sources){NULL, "-O1 -g", &source, 1});
    check_miss(compiler, &(struct weft_sources){"/* */", NULL, &source, 1});
    check_miss(compiler, &(struct weft_sources){NULL, NULL, &other, 1});
    check_miss(compiler, &(struct weft_sources){NULL, NULL, &name, 1});
    check_miss(compiler, &(struct weft_sources){NULL, NULL, &named, 1});
#if defined __x86_64__
    check_miss(compiler, &(struct weft_sources){NULL, NULL, &(struct weft_source){text, "f", WEFT_CPU_AVX2}, 1});
#endif
    char script[200];
    snprintf(script, sizeof script, "exec %.150s \"$@\"", weft_compiler_command(compiler));
    weft_compiler_drop(compiler);
    const char *const path = write_script(w, "wrapped", script);
    for (int age = 0; age < 2; age++) { /* another compiler; the same after an update */
        const struct timespec times[2] = {{.tv_sec = 1000 + age}, {.tv_sec = 1000 + age}};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        compiler = open_compiler(w, (struct weft_compiler_options){.command = path, .processes = 1});
        check_miss(compiler, &(struct weft_sources){NULL, NULL, &source, 1});
        weft_compiler_drop(compiler);
    }
}

/* --- damage ------------------------------------------------------------------------------------------------------- */

/* Damages the object, which another code may have loaded; it is made anew, and found then. */
static void check_rebuilt(const struct world *w, void (*damage)(const char *path, off_t bytes))
{
    struct stat status;
    const char *const path = object_path(w);
    assert_int_equal(stat(path, &status), 0);
    damage(path, status.st_size);
    assert_false(compile_alone(w, NULL, NULL));
    assert_true(compile_alone(w, NULL, NULL));
    assert_int_equal(count_entries(w->cache), 1);
}

static void change_byte(const char *path, off_t at)
{
    const int file = open(path, O_RDWR);
    unsigned char byte;
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
}

static void flip_first(const char *path, off_t bytes) { change_byte(path, 0); }
static void flip_middle(const char *path, off_t bytes) { change_byte(path, bytes / 2); }
static void flip_last(const char *path, off_t bytes) { change_byte(path, bytes - 1); }
static void flip_hash(const char *path, off_t bytes) { change_byte(path, bytes - 20); }
static void cut_one(const char *path, off_t bytes) { assert_int_equal(truncate(path, bytes - 1), 0); }
static void cut_half(const char *path, off_t bytes) { assert_int_equal(truncate(path, bytes / 2), 0); }
static void cut_all(const char *path, off_t bytes) { assert_int_equal(truncate(path, 0), 0); }
static void lengthen(const char *path, off_t bytes) { assert_int_equal(truncate(path, bytes + 1), 0); }

static void damage_is_not_loaded(void **state)
{
    static void (*const damage[])(const char *, off_t) = {flip_first, flip_middle, flip_last, flip_hash, cut_one,
                                                          cut_half, cut_all, lengthen};
    assert_false(compile_alone(*state, NULL, NULL));
    assert_true(compile_alone(*state, NULL, NULL));
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++)
        check_rebuilt(*state, damage[i]);
}

/* A sealed object under the name of another source. */
static void swapped_names_are_not_believed(void **state)
{
    struct world *const w = *state;
    char first[300], second[64];
    assert_false(compile_alone(w, NULL, NULL));
    snprintf(first, sizeof first, "%s", object_path(w));
    assert_int_equal(rename(first, in_root(w, "kept")), 0);
    struct weft_compiler *const compiler = open_compiler(w, (struct weft_compiler_options){.processes = 1});
    weft_code_drop(compile_one(compiler, "int f(void) { return 8; }"));
    weft_compiler_drop(compiler);
    assert_int_equal(count_objects(w->cache, second), 1);
    assert_int_equal(rename(object_path(w), first), 0);
    assert_false(compile_alone(w, NULL, NULL));
    assert_true(compile_alone(w, NULL, NULL));
}

/* --- whose it is -------------------------------------------------------------------------------------------------- */

static void make_group_writable(const char *path, off_t bytes) { assert_int_equal(chmod(path, 0620), 0); }
static void make_others_writable(const char *path, off_t bytes) { assert_int_equal(chmod(path, 0602), 0); }
static void give_away(const char *path, off_t bytes) { assert_int_equal(chown(path, 12345, 12345), 0); }

static void make_link(const char *path, off_t bytes)
{
    char moved[300];
    snprintf(moved, sizeof moved, "%s/../moved", path);
    snprintf(moved, sizeof moved, "%.*s-moved", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
}

static void make_folder(const char *path, off_t bytes)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_pipe(const char *path, off_t bytes)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void foreign_objects_are_not_loaded(void **state)
{
    const struct world *const w = *state;
    assert_false(compile_alone(w, NULL, NULL));
    check_rebuilt(w, make_group_writable);
    check_rebuilt(w, make_others_writable);
    check_rebuilt(w, make_link);
    check_rebuilt(w, make_pipe);
    if (geteuid() == 0)
        check_rebuilt(w, give_away);
    make_folder(object_path(w), 0); /* nothing can be renamed to it */
    char unkept[512];
    assert_false(compile_alone(w, NULL, unkept));
    assert_non_null(strstr(unkept, "not kept"));
}

/* Refused: code runs and nothing is in the folder. */
static void check_refused(const struct world *w, const char *folder, const char *why)
{
    struct weft_compiler *const compiler = open_compiler(w, (struct weft_compiler_options){.folder = folder});
    char unkept[512];
    const int before = count_entries(folder);
    assert_null(weft_compiler_folder(compiler));
    if (!strstr(weft_compiler_uncached(compiler), why))
        fail_msg("%s lacks %s", weft_compiler_uncached(compiler), why);
    weft_compiler_drop(compiler);
    for (int round = 0; round < 2; round++) {
        assert_false(compile_alone(w, folder, unkept));
        assert_non_null(strstr(unkept, why));
    }
    assert_int_equal(count_entries(folder), before);
}

static void folders_of_others_are_refused(void **state)
{
    const struct world *const w = *state;
    const char *const folder = in_root(w, "shared"), *const link = in_root(w, "link");
    char slashes[200];
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0770), 0);
    check_refused(w, folder, "may be written by its group or by others");
    assert_int_equal(chmod(folder, 0777), 0);
    check_refused(w, folder, "may be written by its group or by others");
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(symlink(folder, link), 0);
    check_refused(w, link, "is a symbolic link");
    snprintf(slashes, sizeof slashes, "%s//", link);
    check_refused(w, slashes, "is a symbolic link");
    check_refused(w, "", "name no folder");
    check_refused(w, "/dev/null", "Not a directory");
    check_refused(w, "/dev/null/deeper", "Not a directory");
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 12345, 12345), 0);
        check_refused(w, folder, "belongs to another user");
    }
}

/* A folder of the user's in which nothing can be made, root or not. */
static void folders_that_cannot_be_written(void **state)
{
    char unkept[512];
    assert_false(compile_alone(*state, "/proc/self/task", unkept));
    assert_non_null(strstr(unkept, "not kept in /proc/self/task: "));
}

static void no_folder_to_compile_in(void **state)
{
    const struct world *const w = *state;
    char before[200];
    snprintf(before, sizeof before, "%s", getenv("TMPDIR") ? getenv("TMPDIR") : "");
    setenv("TMPDIR", in_root(w, "missing"), 1);
    struct weft_compiler *const compiler = open_compiler(w, (struct weft_compiler_options){.folder = ""});
    struct weft_code *const code = compile_one(compiler, "int f(void) { return 7; }");
    assert_null(weft_code_function(code, 0));
    assert_non_null(strstr(weft_code_reason(code, 0), "missing: No such file or directory"));
    weft_code_drop(code);
    weft_compiler_drop(compiler);
    if (before[0])
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(found_again), TEST(found_by_others), TEST(whatever_differs_is_another_source),
        TEST(damage_is_not_loaded), TEST(swapped_names_are_not_believed), TEST(foreign_objects_are_not_loaded),
        TEST(folders_of_others_are_refused), TEST(folders_that_cannot_be_written), TEST(no_folder_to_compile_in),
    };
    unsetenv("WEFT_CC");
    unsetenv("WEFT_CACHE_DIR");
    if (system("cc --version >/dev/null 2>&1") != 0) {
        printf("skipped: there is no cc\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
