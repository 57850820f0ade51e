/* SPDX-License-Identifier: Apache-2.0 */
/* compiler_support.h: temporary folders, scripts that stand for compilers, and small sources for tests of the compiler.
 * */
#ifndef WEFT_TEST_COMPILER_SUPPORT_H
#define WEFT_TEST_COMPILER_SUPPORT_H

#include "codegen/compiler.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
    char root[64];   /* of this test alone */
    char cache[96];  /* in it, not made yet */
    struct weft_context *context;
};

/* A path in the test's folder, good until the fourth call from now. */
static inline const char *in_root(const struct world *w, const char *name)
{
    static char text[4][160];
    static int turn;
    char *const path = text[turn++ % 4];
    snprintf(path, sizeof text[0], "%s/%s", w->root, name);
    return path;
}

static inline int world_open(void **state)
{
    struct world *const w = calloc(1, sizeof *w);
    const char *const folder = getenv("TMPDIR");
    assert_non_null(w);
    snprintf(w->root, sizeof w->root, "%.30s/weft-compiler-XXXXXX", folder && *folder ? folder : "/tmp");
    assert_non_null(mkdtemp(w->root));
    snprintf(w->cache, sizeof w->cache, "%s/cache", w->root);
    assert_int_equal(weft_open(NULL, &w->context), WEFT_OK);
    *state = w;
    return 0;
}

static inline void remove_tree(const char *path)
{
    DIR *const entries = opendir(path);
    char inner[4096];
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof inner, "%.3000s/%s", path, e->d_name);
        if (unlink(inner) != 0)
            remove_tree(inner);
    }
    if (entries)
        closedir(entries);
    rmdir(path);
}

static inline int world_close(void **state)
{
    struct world *const w = *state;
    weft_close(w->context);
    remove_tree(w->root);
    free(w);
    return 0;
}

/* A compiler with the test's own cache. */
static inline struct weft_compiler *open_compiler(const struct world *w, struct weft_compiler_options options)
{
    struct weft_compiler *compiler = NULL;
    if (!options.folder)
        options.folder = w->cache;
    assert_int_equal(weft_compiler_open(w->context, &options, &compiler), WEFT_OK);
    return compiler;
}

static inline const char *write_script(const struct world *w, const char *name, const char *text)
{
    const char *const path = in_root(w, name);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
    return path;
}

static inline struct weft_code *begin_code(struct weft_compiler *compiler, const struct weft_sources *sources)
{
    struct weft_code *code = NULL;
    assert_int_equal(weft_compiler_begin(compiler, sources, &code), WEFT_OK);
    return code;
}

static inline struct weft_code *compile_all(struct weft_compiler *compiler, const struct weft_source *source,
                                            int32_t count, const char *flags)
{
    const struct weft_sources sources = {.flags = flags, .source = source, .count = count};
    struct weft_code *const code = begin_code(compiler, &sources);
    assert_int_equal(weft_code_wait(code), WEFT_OK);
    return code;
}

static inline struct weft_code *compile_one(struct weft_compiler *compiler, const char *text)
{
    const struct weft_source source = {.text = text, .function = "f"};
    return compile_all(compiler, &source, 1, NULL);
}

static inline int call(const struct weft_code *code, int32_t i)
{
    int (*const function)(void) = (int (*)(void))weft_code_function(code, i);
    if (!function)
        fail_msg("%s", weft_code_reason(code, i));
    assert_null(weft_code_reason(code, i));
    return function();
}

/* Sources f() that return 100, 101 and so on. */
enum { MOST_NUMBERS = 40 };
struct numbers {
    char text[MOST_NUMBERS][48];
    struct weft_source source[MOST_NUMBERS];
};
static inline void set_numbers(struct numbers *n)
{
    for (int i = 0; i < MOST_NUMBERS; i++) {
        snprintf(n->text[i], sizeof n->text[i], "int f(void) { return %d; }", 100 + i);
        n->source[i] = (struct weft_source){.text = n->text[i], .function = "f"};
    }
}

/* Objects in a folder, by name; `ret_name`: that of one of them. */
static inline int count_objects(const char *folder, char ret_name[64])
{
    DIR *const entries = opendir(folder);
    int count = 0;
    for (const struct dirent *e; entries && (e = readdir(entries));)
        if (strlen(e->d_name) == 35 && strcmp(e->d_name + 32, ".so") == 0) {
            if (ret_name)
                snprintf(ret_name, 64, "%s", e->d_name);
            count++;
        }
    if (entries)
        closedir(entries);
    return count;
}

/* Entries of any kind. */
static inline int count_entries(const char *folder)
{
    DIR *const entries = opendir(folder);
    int count = -2;
    while (entries && readdir(entries))
        count++;
    if (entries)
        closedir(entries);
    return count;
}

/* Compiles sources 0 to count - 1; how many of them were in the cache. */
static inline int compile_numbers(struct weft_compiler *compiler, int count, const char *flags)
{
    struct numbers n;
    set_numbers(&n);
    struct weft_code *const code = compile_all(compiler, n.source, count, flags);
    int cached = 0;
    for (int i = 0; i < count; i++) {
        assert_int_equal(call(code, i), 100 + i);
        cached += weft_code_was_cached(code, i);
    }
    weft_code_drop(code);
    return cached;
}

/* Compiles one source in a compiler of its own; true if it was in the cache. `ret_unkept`: NULL, or why it is not now.
 * */
static inline bool compile_alone(const struct world *w, const char *folder, char ret_unkept[512])
{
    struct weft_compiler *const compiler = open_compiler(w, (struct weft_compiler_options){.folder = folder});
    struct weft_code *const code = compile_one(compiler, "int f(void) { return 7; }");
    assert_int_equal(call(code, 0), 7);
    const bool cached = weft_code_was_cached(code, 0);
    if (ret_unkept)
        snprintf(ret_unkept, 512, "%s", weft_code_unkept(code) ? weft_code_unkept(code) : "");
    weft_code_drop(code);
    weft_compiler_drop(compiler);
    return cached;
}

static inline const char *object_path(const struct world *w)
{
    static char path[256];
    char name[64] = "";
    count_objects(w->cache, name);
    snprintf(path, sizeof path, "%s/%s", w->cache, name);
    return path;
}

#endif
