/* SPDX-License-Identifier: Apache-2.0 */
/* compile_support.h: functions from emitted C, by the system's compiler, in a folder that goes again. */
#ifndef WEFT_TEST_COMPILE_SUPPORT_H
#define WEFT_TEST_COMPILE_SUPPORT_H

#include "codegen/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char emit_folder[] = "/tmp/weft-test-emit-XXXXXX";
static unsigned emit_files;

static inline int spawn(const char **words)
{
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, words[0], NULL, NULL, (char **)words, environ) != 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline bool has_compiler(void)
{
    const char *words[] = {"sh", "-c", "cc --version > /dev/null 2>&1", NULL};
    return spawn(words) == 0;
}

/* A source as a shared object, which stays. */
static inline void *compile_object(const char *source, uint32_t cpu)
{
    char from[128], to[128];
    const char *words[32] = {"cc"};
    int count = 1;
    if (emit_files == 0)
        assert_non_null(mkdtemp(emit_folder));
    snprintf(from, sizeof from, "%s/%u.c", emit_folder, emit_files);
    snprintf(to, sizeof to, "%s/%u.so", emit_folder, emit_files++);
    FILE *const file = fopen(from, "wb");
    assert_non_null(file);
    assert_true(fputs(source, file) >= 0);
    assert_int_equal(fclose(file), 0);
    for (const char *const *flag = weft_emit_flags(cpu); *flag; flag++)
        words[count++] = *flag;
    words[count++] = "-Wall";
    words[count++] = "-Werror";
    words[count++] = "-Wno-unused-variable";
    words[count++] = from;
    words[count++] = "-o";
    words[count++] = to;
    words[count++] = "-lm";
    if (spawn(words) != 0)
        fail_msg("cc refuses %s:\n%s", from, strstr(source, "struct weft_program_tile"));
    void *const object = dlopen(to, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        fail_msg("%s", dlerror());
    unlink(from);
    unlink(to);
    return object;
}

static inline weft_program_code *function_in(void *object, const char *name)
{
    weft_program_code *code;
    void *const symbol = dlsym(object, name);
    assert_non_null(symbol);
    memcpy(&code, &symbol, sizeof code);
    return code;
}

/* The function of a source. */
static inline weft_program_code *compile_code(const char *source, const char *name, uint32_t cpu)
{
    return function_in(compile_object(source, cpu), name);
}

static inline int leave_folder(void **state)
{
    if (emit_files > 0)
        rmdir(emit_folder);
    return 0;
}

#endif
