/* SPDX-License-Identifier: Apache-2.0 */
/* compiler.c: which compiler there is, what it is called with, and the key of a source.
 *
 * What compiles is known by its file: path, size, time of change. To ask it for its version would cost a process each
 * time a program starts, and says less: two builds of one version may differ. Where the file is a wrapper (ccache), an
 * update of what is behind it is not seen; what was compiled before is right all the same. */
#include "codegen/compiler_parts.h"
#include "ir/text.h"
#include "ir/user_folder.h"
#include "kernels/kernels.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_LIMIT ((uint64_t)256 << 20)
#define USUAL_TIMEOUT_MS 60000

/* The bits of a result follow from the source: no contraction of a product and a sum, no -ffast-math, as in weft. */
const char *const weft_compiler_flags[] = {
    "-std=gnu17", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-pipe", "-w", NULL,
};

/* As kernels/meson.build has them for the same levels. */
int weft_level_flags(uint32_t cpu, const char *flag[WEFT_LEVEL_FLAGS + 1])
{
    int count = 0;
    cpu &= WEFT_CPU_BUILT;
    if (cpu & WEFT_CPU_AVX512) {
        flag[count++] = "-DWEFT_LEVEL=2";
        flag[count++] = "-march=x86-64-v4";
        flag[count++] = "-mprefer-vector-width=512";
    } else if (cpu & WEFT_CPU_AVX2) {
        flag[count++] = "-DWEFT_LEVEL=1";
        flag[count++] = "-march=x86-64-v3";
        flag[count++] = "-mtune=haswell";
    }
    if (cpu & WEFT_CPU_AVX512BF16)
        flag[count++] = "-mavx512bf16";
    if (cpu & WEFT_CPU_AVX512VNNI)
        flag[count++] = "-mavx512vnni";
    if (cpu & WEFT_CPU_AVX512FP16)
        flag[count++] = "-mavx512fp16";
    if (cpu & WEFT_CPU_AMX) {
        flag[count++] = "-mamx-bf16";
        flag[count++] = "-mamx-int8";
    }
    flag[count] = NULL;
    return count;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* Hash after hash, each of fixed length, so that no two lists of texts become one. */
void weft_source_key(const struct weft_compiler *compiler, const char *prelude, const char *flags,
                     const struct weft_source *source, char key[WEFT_KEY_BYTES])
{
    const char *level[WEFT_LEVEL_FLAGS + 1];
    const int levels = weft_level_flags(source->cpu, level);
    const char *part[16 + WEFT_LEVEL_FLAGS] = {
        "object 1", WEFT_VERSION, compiler->command, compiler->identity, flags, source->function, source->text,
    };
    int parts = 7;
    for (int i = 0; weft_compiler_flags[i]; i++)
        part[parts++] = weft_compiler_flags[i];
    for (int i = 0; i < levels; i++)
        part[parts++] = level[i];
    char hash[1 + sizeof part / sizeof *part][WEFT_KEY_BYTES];
    memcpy(hash[0], prelude, WEFT_KEY_BYTES);
    for (int i = 0; i < parts; i++)
        weft_blob_hash(part[i], strlen(part[i]), hash[1 + i]);
    weft_blob_hash(hash, (size_t)(1 + parts) * WEFT_KEY_BYTES, key);
}

/* --- the compiler ------------------------------------------------------------------------------------------------- */

static bool is_program(const char *path, struct stat *status)
{
    return stat(path, status) == 0 && S_ISREG(status->st_mode) && access(path, X_OK) == 0;
}

/* Folders of PATH that are not absolute are passed over: what runs must not follow from where a program stands. */
static bool find_program(const char *word, char path[PATH_MAX], struct stat *status)
{
    if (strchr(word, '/'))
        return snprintf(path, PATH_MAX, "%s", word) < PATH_MAX && is_program(path, status);
    const char *list = secure_getenv("PATH");
    while (list && *list) {
        const int length = (int)strcspn(list, ":");
        if (list[0] == '/' && snprintf(path, PATH_MAX, "%.*s/%s", length, list, word) < PATH_MAX &&
            is_program(path, status))
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

/* A name with a path is made absolute: compilers run in a folder of their own. */
static bool take_program(struct weft_compiler *compiler, const char *word)
{
    char path[PATH_MAX];
    struct stat status;
    if (!find_program(word, path, &status))
        return false;
    if (path[0] == '/')
        memcpy(compiler->command, path, strlen(path) + 1);
    else if (!realpath(path, compiler->command))
        return false;
    snprintf(compiler->identity, sizeof compiler->identity, "%lld %lld.%09ld", (long long)status.st_size,
             (long long)status.st_mtim.tv_sec, (long)status.st_mtim.tv_nsec);
    return true;
}

static void find_compiler(struct weft_compiler *compiler, const struct weft_compiler_options *options)
{
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *const named = secure_getenv("WEFT_CC");
    const char *const word = options->command ? options->command : named && *named ? named : NULL;
    const char *const from = options->command ? "weft_compiler_options.command" : "WEFT_CC";
    bool found = false;
    compiler->command[0] = '\0';
    if (options->flags & WEFT_COMPILER_NONE)
        snprintf(compiler->lacks, sizeof compiler->lacks, "no compiler is wanted");
    else if (word && strcmp(word, "none") == 0)
        snprintf(compiler->lacks, sizeof compiler->lacks, "no compiler is wanted: %s is none", from);
    else if (word) {
        found = take_program(compiler, word);
        snprintf(compiler->lacks, sizeof compiler->lacks, "no compiler: %s names %.300s, which is no program%s", from,
                 word, strchr(word, '/') ? "" : " in PATH");
    } else {
        for (size_t i = 0; i < sizeof usual / sizeof *usual && !found; i++)
            found = take_program(compiler, usual[i]);
        snprintf(compiler->lacks, sizeof compiler->lacks, "no compiler: no cc, gcc or clang in PATH");
    }
    if (found)
        compiler->lacks[0] = '\0';
    else
        compiler->command[0] = '\0';
}

static uint64_t find_limit(struct weft_context *context, uint64_t given)
{
    const char *const text = secure_getenv("WEFT_CACHE_BYTES");
    uint64_t bytes = USUAL_LIMIT;
    if (!given && text && *text && !weft_user_folder_bytes(text, &bytes))
        weft_note(context, WEFT_WARNING, &(struct weft_place){.file = "WEFT_CACHE_BYTES"},
                  "the most bytes of compiled code in the cache are what it takes, 64M for instance; 256M is taken");
    return given ? given : bytes;
}

int weft_compiler_open(struct weft_context *context, const struct weft_compiler_options *given,
                       struct weft_compiler **ret_compiler)
{
    const struct weft_compiler_options none = {.flags = 0}, *const options = given ? given : &none;
    const uint64_t limit = find_limit(context, options->limit);
    struct weft_compiler *const compiler = weft_allocate(context, sizeof *compiler);
    if (!compiler)
        return WEFT_ERR_NOMEM;
    memset(compiler, 0, sizeof *compiler);
    const int32_t threads = context->target.threads < 1 ? 1 : context->target.threads;
    compiler->context = context;
    compiler->processes = options->processes > 0 ? options->processes : threads;
    compiler->per_object = options->per_object;
    compiler->timeout_ns = (int64_t)(options->timeout_ms > 0 ? options->timeout_ms : USUAL_TIMEOUT_MS) * 1000000;
    atomic_init(&compiler->holds, 1);
    find_compiler(compiler, options);
    weft_cache_open(&compiler->cache, context, options->folder, limit);
    weft_context_hold(context);
    *ret_compiler = compiler;
    return WEFT_OK;
}

void weft_compiler_drop(struct weft_compiler *compiler)
{
    if (!compiler || atomic_fetch_sub(&compiler->holds, 1) > 1)
        return;
    struct weft_context *const context = compiler->context;
    weft_cache_close(&compiler->cache);
    weft_release(context, compiler, sizeof *compiler);
    weft_context_drop(context);
}

const char *weft_compiler_command(const struct weft_compiler *compiler)
{
    return compiler->command[0] ? compiler->command : NULL;
}

const char *weft_compiler_lacks(const struct weft_compiler *compiler)
{
    return compiler->command[0] ? NULL : compiler->lacks;
}

const char *weft_compiler_folder(const struct weft_compiler *compiler)
{
    return compiler->cache.folder >= 0 ? compiler->cache.path : NULL;
}

const char *weft_compiler_uncached(const struct weft_compiler *compiler)
{
    return compiler->cache.folder >= 0 ? NULL : compiler->cache.refused;
}
