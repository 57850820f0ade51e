/* SPDX-License-Identifier: Apache-2.0 */
/* compiler.h: C sources as functions: from the user's cache of compiled code, else by the system's C compiler.
 *
 *   weft_compiler_open(context, NULL, &compiler);     who compiles, and where what was compiled is kept
 *   weft_compiler_begin(compiler, &sources, &code);   what the cache has is loaded, compilers start for the rest
 *   weft_code_poll(code), weft_code_wait(code);       now and then, or until all is there
 *   weft_code_function(code, i)                       callable until the last weft_code_drop
 *
 * Compiler: $WEFT_CC (a name in PATH, or a path; one word, "none" for no compiler), else the first of cc, gcc and clang
 * in PATH. It is started by posix_spawn, without a shell, in a process group of its own, and killed with the group when
 * it takes too long.
 *
 * Cache: $WEFT_CACHE_DIR, else $XDG_CACHE_HOME/weft, else ~/.cache/weft; an empty WEFT_CACHE_DIR means no cache. The
 * folder is made for the user alone (0700). It is refused if it is a symbolic link, belongs to somebody else or may be
 * written by group or others; so is each file in it. Then sources are compiled in a private folder of $TMPDIR (/tmp),
 * which is gone when they are loaded. The same happens where a cache can be read but not written. Objects take at most
 * $WEFT_CACHE_BYTES (a number, which K, M or G may follow; 256M), those that were used longest ago go first.
 *
 * A source is found again by the XXH3-128 of its text, the prelude, the function's name, all flags, the compiler (its
 * path, size and time of change) and weft's version. System headers that it includes are not in it. One run of the
 * compiler makes one shared object of many sources; each has a name (a hard link) of its own in the cache, so other
 * sources may go with it next time. Objects end with a hash of all that comes before, and are loaded by the descriptor
 * that was checked. Files come under their names by a rename, so processes and threads need no lock: the last writer
 * wins, and both have written the same.
 *
 * Everything that can go wrong with files and compilers is a reason in words, for the one source that it concerns: its
 * function is NULL, and the caller computes otherwise. Nothing is printed. A SIGCHLD handler that waits for every child
 * of the process, or SIGCHLD being ignored, takes the compiler's status away: that is such a reason too. */
#ifndef WEFT_COMPILER_H
#define WEFT_COMPILER_H

#include "ir/base.h"

struct weft_compiler; /* immutable and counted: any number of threads may use one */
struct weft_code;     /* the functions of some sources; one thread at a time until it is done, any number afterwards */

#define WEFT_COMPILER_NONE 1u /* no compiler, whatever the environment says */

/* Members that are 0 or NULL leave it to the environment, or to what is usual. */
struct weft_compiler_options {
    const char *command;   /* in the place of WEFT_CC */
    const char *folder;    /* in the place of WEFT_CACHE_DIR */
    uint64_t limit;        /* bytes of objects in the cache */
    int32_t timeout_ms;    /* of each run of the compiler; 60000 */
    int32_t processes;     /* compilers that run at the same time; the target's threads */
    int32_t per_object;    /* sources of one run at most; so many that all processes have as much to do */
    uint32_t flags;        /* WEFT_COMPILER_… */
};

/* WEFT_OK even without compiler and cache. `options` may be NULL. Errors: WEFT_ERR_NOMEM. */
int weft_compiler_open(struct weft_context *context, const struct weft_compiler_options *options,
                       struct weft_compiler **ret_compiler);
/* Code holds its compiler, and that its context. NULL is fine. */
void weft_compiler_drop(struct weft_compiler *compiler);
/* The compiler's path; NULL if there is none, and weft_compiler_lacks says why. */
const char *weft_compiler_command(const struct weft_compiler *compiler);
const char *weft_compiler_lacks(const struct weft_compiler *compiler);
/* The cache's folder; NULL if there is none, and weft_compiler_uncached says why. */
const char *weft_compiler_folder(const struct weft_compiler *compiler);
const char *weft_compiler_uncached(const struct weft_compiler *compiler);

struct weft_source {
    const char *text;      /* defines `function`, and no other name outside of it: several sources are one text for the
                            * compiler. What they share is in the prelude */
    const char *function;  /* an identifier, which may be the same for all sources */
    uint32_t cpu;          /* WEFT_CPU_* that the code may use: WEFT_LEVEL and -m flags follow from it */
};

struct weft_sources {
    const char *prelude;   /* stands once before them all: includes, types, static functions. NULL: nothing */
    const char *flags;     /* for the compiler besides -O2 -ffp-contract=off, separated by blanks. NULL: none */
    const struct weft_source *source;
    int32_t count;
};

/* Loads what the cache has and starts compilers for what it lacks; returns at once. All texts are copied. Errors:
 * WEFT_ERR_NOMEM; then nothing runs. */
int weft_compiler_begin(struct weft_compiler *compiler, const struct weft_sources *sources,
                        struct weft_code **ret_code);
/* True when all is done. Else it loads what is ready and starts what had to wait, and returns at once: who polls and
 * never waits keeps compilers busy, and their time limit held, as often as it polls. */
bool weft_code_poll(struct weft_code *code);
/* Returns when all is done. WEFT_OK, whether sources compiled or not; WEFT_ERR_NOMEM: some were not tried. */
int weft_code_wait(struct weft_code *code);

typedef void (*weft_function)(void);
/* Function i, or NULL: it is not there, or not yet. */
weft_function weft_code_function(const struct weft_code *code, int32_t i);
/* When it is done: NULL, or why there is no function i. */
const char *weft_code_reason(const struct weft_code *code, int32_t i);
/* What the compiler that failed with source i printed, at least its beginning; else "". */
const char *weft_code_output(const struct weft_code *code, int32_t i);
/* Was function i in the cache? */
bool weft_code_was_cached(const struct weft_code *code, int32_t i);
/* NULL, or why something that was compiled is not in the cache. */
const char *weft_code_unkept(const struct weft_code *code);

/* Reference counts, on any thread. The last drop unloads the functions, and kills compilers that still run. */
struct weft_code *weft_code_hold(struct weft_code *code);
void weft_code_drop(struct weft_code *code);

#endif
