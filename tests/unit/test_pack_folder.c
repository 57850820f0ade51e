/* SPDX-License-Identifier: Apache-2.0 */
/* test_pack_folder.c: packed weights as files that contexts map (plan/pack_folder.h): made once, compared before they
 * are used, made anew where they are damaged, bounded, and refused in folders that others may write. */
#include "plan_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 256, COLUMNS = 192, BYTES = ROWS * COLUMNS * (int)sizeof(float) };
static char folder[64], said[512];

static void remember(void *user, const struct weft_diagnostic *diagnostic)
{
    snprintf(said, sizeof said, "%d %s: %s", diagnostic->severity, diagnostic->where ? diagnostic->where : "",
             diagnostic->message);
}

static int open_with(const char *packs, struct weft_context **ret_context)
{
    const struct weft_context_options options = {.size = sizeof options, .threads = 2, .packs = packs,
                                                 .diagnose = remember};
    said[0] = '\0';
    return weft_open(&options, ret_context);
}

static int make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/weft-packs-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* The file of the one pack there; returns how many there are. */
static int find_file(char path[320])
{
    int files = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *e; (e = readdir(entries));)
        if (e->d_name[0] != '.') {
            snprintf(path, 320, "%s/%s", folder, e->d_name);
            files++;
        }
    closedir(entries);
    return files;
}

static int remove_folder(void **state)
{
    char path[320];
    while (find_file(path))
        unlink(path);
    return rmdir(folder);
}

/* y = x @ w for weights of this seed. */
static struct weft_plan *plan_of(struct weft_context *context, int seed)
{
    char text[256];
    snprintf(text, sizeof text,
             "weft 1\ngraph @g(%%x: f32[8,%d]) {\n  %%w: f32[%d,%d] = const random=%d\n"
             "  %%y: f32[8,%d] = matmul %%x, %%w\n  return %%y\n}\n", ROWS, ROWS, COLUMNS, seed, COLUMNS);
    struct weft_graph *const graph = parse(context, text);
    struct weft_plan *const plan = compile(graph, 0);
    weft_graph_destroy(graph);
    return plan;
}

static int64_t mapped_bytes(const struct weft_plan *plan, float *ret_result)
{
    static float data[8 * ROWS];
    struct weft_statistics statistics = {.size = sizeof statistics};
    struct weft_execution *e;
    struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){8, ROWS}), y;
    for (int i = 0; i < 8 * ROWS; i++)
        data[i] = (float)(i % 13 - 6) / 8;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &y), WEFT_OK);
    memcpy(ret_result, y.data, sizeof(float) * 8 * COLUMNS);
    assert_int_equal(weft_execution_statistics(e, &statistics), WEFT_OK);
    weft_execution_destroy(e);
    return statistics.mapped_bytes;
}

static void contexts_map_one_file(void **state)
{
    static float alone[8 * COLUMNS], first[8 * COLUMNS], second[8 * COLUMNS];
    struct weft_context *context[3];
    char path[320];
    assert_int_equal(open_with("", &context[0]), WEFT_OK);
    assert_int_equal(open_with(folder, &context[1]), WEFT_OK);
    assert_int_equal(open_with(folder, &context[2]), WEFT_OK);
    struct weft_plan *const plan[3] = {plan_of(context[0], 1), plan_of(context[1], 1), plan_of(context[2], 1)};
    assert_int_equal(mapped_bytes(plan[0], alone), 0);
    assert_true(mapped_bytes(plan[1], first) >= BYTES);
    assert_true(mapped_bytes(plan[2], second) >= BYTES);
    assert_memory_equal(alone, first, sizeof alone);
    assert_memory_equal(alone, second, sizeof alone);
    assert_int_equal(find_file(path), 1);
    unlink(path); /* whoever has mapped it keeps it */
    memset(second, 0, sizeof second);
    mapped_bytes(plan[2], second);
    assert_memory_equal(alone, second, sizeof alone);
    for (int i = 0; i < 3; i++) {
        weft_plan_destroy(plan[i]);
        weft_close(context[i]);
    }
}

static void a_damaged_file_is_written_anew(void **state)
{
    static float before[8 * COLUMNS], after[8 * COLUMNS];
    struct weft_context *context;
    struct stat old, new;
    char path[320];
    assert_int_equal(open_with(folder, &context), WEFT_OK);
    struct weft_plan *plan = plan_of(context, 2);
    mapped_bytes(plan, before);
    weft_plan_destroy(plan);
    assert_int_equal(find_file(path), 1);
    assert_int_equal(stat(path, &old), 0);
    assert_int_equal(chmod(path, 0600), 0);
    const int file = open(path, O_WRONLY);
    assert_int_equal(pwrite(file, "damage", 6, BYTES / 2), 6);
    close(file);
    plan = plan_of(context, 2);
    assert_true(mapped_bytes(plan, after) >= BYTES);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(find_file(path), 1);
    assert_int_equal(stat(path, &new), 0);
    assert_true(new.st_ino != old.st_ino);
    assert_int_equal(new.st_mode & 0777, 0400);
    weft_plan_destroy(plan);
    weft_close(context);
}

/* In the place of the pack's file: what is mapped anyway is a new file with the right bytes. */
static void files_that_cannot_be_trusted_are_replaced(void **state)
{
    static float before[8 * COLUMNS], after[8 * COLUMNS];
    struct weft_context *context;
    struct stat status;
    char path[320], aside[400];
    assert_int_equal(open_with(folder, &context), WEFT_OK);
    struct weft_plan *plan = plan_of(context, 7);
    mapped_bytes(plan, before);
    weft_plan_destroy(plan);
    assert_int_equal(find_file(path), 1);
    snprintf(aside, sizeof aside, "%s-aside", folder);
    for (int kind = 0; kind < 4; kind++) {
        if (kind == 0)
            assert_int_equal(chmod(path, 0660), 0); /* its group may write it */
        else if (kind == 1)
            assert_int_equal(rename(path, aside) | symlink(aside, path), 0);
        else if (kind == 2)
            assert_int_equal(unlink(path) | mkfifo(path, 0600), 0);
        else
            assert_int_equal(chmod(path, 0600) | truncate(path, BYTES / 2), 0);
        plan = plan_of(context, 7);
        assert_true(mapped_bytes(plan, after) >= BYTES);
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(lstat(path, &status), 0);
        assert_true(S_ISREG(status.st_mode) && (status.st_mode & 0777) == 0400 && status.st_size >= BYTES);
        weft_plan_destroy(plan);
    }
    unlink(aside);
    weft_close(context);
}

static void set_old(const char *path)
{
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static void make_old_file(const char *name, char path[320])
{
    snprintf(path, 320, "%s/%s", folder, name);
    const int file = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    close(file);
    set_old(path);
}

/* Of what is there besides packs, only files as weft names them while it writes go, an hour after. */
static void files_of_others_stay(void **state)
{
    struct weft_context *context;
    char notes[320], mine[320], named[320];
    make_old_file("tmp-notes.txt", notes);
    make_old_file("tmp-0123456789abcdef0123456789abcdef", mine);
    snprintf(named, sizeof named, "%s/0123456789abcdef0123456789abcdef-1.pack", folder);
    assert_int_equal(mkdir(named, 0700), 0);
    set_old(named);
    setenv("WEFT_PACKS_BYTES", "250K", 1);
    assert_int_equal(open_with(folder, &context), WEFT_OK);
    for (int seed = 8; seed < 10; seed++)
        weft_plan_destroy(plan_of(context, seed));
    assert_string_equal(said, "");
    assert_int_equal(access(notes, F_OK), 0);
    assert_int_not_equal(access(mine, F_OK), 0);
    assert_int_equal(rmdir(named), 0);
    unsetenv("WEFT_PACKS_BYTES");
    weft_close(context);
}

/* Processes that write the same pack at the same time map one file: it has its name still when all have mapped it. */
static void processes_that_start_together_share(void **state)
{
    enum { PROCESSES = 6 };
    _Atomic int *const meeting = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(meeting != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() != 0)
            continue;
        struct weft_context *context;
        bool right = open_with(folder, &context) == WEFT_OK;
        for (meeting[0]++; meeting[0] < PROCESSES;)
            sched_yield();
        struct weft_plan *const plan = plan_of(context, 11);
        for (meeting[1]++; meeting[1] < PROCESSES;)
            sched_yield();
        char line[512], name[320];
        struct stat status;
        unsigned long inode = 0;
        right = right && find_file(name) == 1 && stat(name, &status) == 0;
        FILE *const maps = fopen("/proc/self/maps", "r");
        while (maps && fgets(line, sizeof line, maps))
            if (strstr(line, folder) && sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1)
                right = right && inode == status.st_ino;
        weft_plan_destroy(plan);
        _exit(right && inode ? 0 : 1);
    }
    for (int i = 0, status; i < PROCESSES; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    munmap((void *)meeting, 4096);
}

static void files_are_bounded(void **state)
{
    static float result[8 * COLUMNS];
    struct weft_context *context;
    char path[320], newer[320];
    setenv("WEFT_PACKS_BYTES", "250K", 1); /* room for one pack, and not for two */
    assert_int_equal(open_with(folder, &context), WEFT_OK);
    struct weft_plan *first = plan_of(context, 3);
    assert_int_equal(find_file(path), 1);
    struct weft_plan *second = plan_of(context, 4);
    assert_int_equal(find_file(newer), 1);
    assert_string_not_equal(path, newer);
    assert_true(mapped_bytes(first, result) >= BYTES && mapped_bytes(second, result) >= BYTES);
    weft_plan_destroy(first);
    weft_plan_destroy(second);
    weft_close(context);
    setenv("WEFT_PACKS_BYTES", "100K", 1);
    assert_int_equal(open_with(folder, &context), WEFT_OK);
    first = plan_of(context, 5);
    assert_int_equal(mapped_bytes(first, result), 0);
    assert_non_null(strstr(said, "1 ")); /* a warning */
    assert_non_null(strstr(said, "WEFT_PACKS_BYTES"));
    weft_plan_destroy(first);
    weft_close(context);
    setenv("WEFT_PACKS_BYTES", "1099511627776", 1); /* 1 TiB */
    assert_int_equal(open_with(folder, &context), WEFT_OK);
    weft_close(context);
    setenv("WEFT_PACKS_BYTES", "much", 1);
    assert_int_equal(open_with(folder, &context), WEFT_ERR_ARGUMENT);
    unsetenv("WEFT_PACKS_BYTES");
}

static void folders_of_others_are_refused(void **state)
{
    struct weft_context *context;
    char path[80];
    assert_int_equal(chmod(folder, 0770), 0);
    assert_int_equal(open_with(folder, &context), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(said, "may be written by its group"));
    assert_non_null(strstr(said, "weft_context_options.packs"));
    assert_int_equal(chmod(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(symlink(folder, path), 0);
    assert_int_equal(open_with(path, &context), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(said, "is a symbolic link"));
    unlink(path);
    assert_int_equal(open_with("/nowhere/at/all", &context), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(said, "No such file"));
    setenv("WEFT_PACKS", "/nowhere/at/all", 1);
    assert_int_equal(open_with(NULL, &context), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(said, "WEFT_PACKS:"));
    unsetenv("WEFT_PACKS");
}

/* What cannot be written stays in memory, with one warning. */
static void a_folder_that_is_gone_is_a_warning(void **state)
{
    static float result[8 * COLUMNS];
    struct weft_context *context;
    assert_int_equal(open_with(folder, &context), WEFT_OK);
    assert_int_equal(rmdir(folder), 0);
    struct weft_plan *const plan = plan_of(context, 6);
    assert_int_equal(mapped_bytes(plan, result), 0);
    assert_non_null(strstr(said, "packed weights are this process's alone: No such file"));
    assert_int_equal(mkdir(folder, 0700), 0);
    weft_plan_destroy(plan);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_damaged_file_is_written_anew, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_that_is_gone_is_a_warning, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(contexts_map_one_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_are_bounded, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_of_others_stay, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_trusted_are_replaced, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(folders_of_others_are_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(processes_that_start_together_share, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
