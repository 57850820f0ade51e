/* SPDX-License-Identifier: Apache-2.0 */
/* context.h: contexts, with the caller's allocator, executor and callback for messages. */
#ifndef WEFT_PUBLIC_CONTEXT_H
#define WEFT_PUBLIC_CONTEXT_H

#include "weft/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_context;
struct weft_target; /* what a plan is made for: CPU features, cache sizes, threads, kernels */

/* Both may be called from any thread. `allocate` returns memory aligned to `align` (a power of two) or NULL. */
struct weft_allocator {
    size_t size;
    void *user;
    void *(*allocate)(void *user, size_t bytes, size_t align);
    void (*release)(void *user, void *memory, size_t bytes);
};

#define WEFT_EXECUTOR_CONCURRENT 1u /* `run` promises that all n calls run at the same time */

/* Runs parallel work. `run` calls fn(arg, i) once for each i in [0, n), n <= workers(user), and returns when all have
 * returned. Executions on several threads, and contexts that share an executor, may call it at the same time. With
 * WEFT_EXECUTOR_CONCURRENT weft calls `run` at most once per weft_run and uses barriers inside fn. Without it weft
 * calls `run` once per kernel, and a call of fn waits only for calls of the same `run` that have already begun. */
struct weft_executor {
    size_t size;
    void *user;
    uint32_t flags;
    uint32_t reserved;
    int (*workers)(void *user);
    void (*run)(void *user, int n, void (*fn)(void *arg, int i), void *arg);
};

enum weft_severity { WEFT_NOTE = 0, WEFT_WARNING = 1, WEFT_ERROR = 2 };

struct weft_diagnostic {
    int32_t severity;
    int32_t status;      /* what the call will return; WEFT_OK for notes and warnings */
    const char *file;    /* NULL where there is none */
    int32_t line, column; /* from 1; 0 where there is none */
    const char *where;   /* name of the node, value or graph at fault, or NULL */
    const char *message; /* one sentence, no newline; all pointers live only during the call */
};

struct weft_context_options {
    size_t size;
    const struct weft_allocator *allocator; /* NULL: malloc; the struct is copied */
    const struct weft_executor *executor;   /* NULL: OpenMP; the struct is copied */
    void (*diagnose)(void *user, const struct weft_diagnostic *); /* NULL: only weft_last_error() */
    void *diagnose_user;
    const char *cpu; /* highest CPU level to use: "avx2", "avx512", "baseline"; NULL: WEFT_CPU, else all it has;
                        a bound, so that levels of x86-64 leave other processors their baseline */
    int32_t threads; /* maximum number of threads; 0: what the executor and the container allow */
    int32_t reserved;
    const char *prices; /* costs for choosing layouts: a file written by `weft calibrate`; "": those that weft ships for
                           Zen 4, so that plans are the same on all machines; NULL: WEFT_PRICES, else this machine's in
                           the user's cache, else those that weft ships for this CPU */
    const char *packs; /* a folder: packed weights of this context's plans are files there, which all processes that
                          name the folder have in memory once; made (for the user alone) if it is not there. "": none;
                          NULL: WEFT_PACKS, else none. One that is not the user's alone to write is refused
                          (WEFT_ERR_ARGUMENT). Files there take at most $WEFT_PACKS_BYTES (64G; those mapped longest
                          ago are removed first; what a process has mapped stays in its memory), and may be removed
                          at any time, but not written or cut short: that reaches whoever has them mapped. Plans
                          (WEFT_COMPILE_STORE) lie there too */
    uint64_t packs_bytes; /* most bytes of files in that folder; 0: $WEFT_PACKS_BYTES */
};

/* Opens a context; `options` may be NULL. Wrong options give WEFT_ERR_ARGUMENT, with a message to `diagnose`. A file
 * of costs that the caller or WEFT_PRICES names and that is damaged, or is another machine's, gives WEFT_ERR_SYNTAX.
 * If the file in the user's cache is unusable, or was measured at another CPU level than `cpu`, that is a warning, and
 * the shipped costs are used. Plans are made for the cache sizes of this machine, or for those in WEFT_CACHES, such as
 * 32K,1M,32M (data caches per core, per core, shared; the last may be 0); anything else in it gives
 * WEFT_ERR_ARGUMENT. */
WEFT_API int weft_open(const struct weft_context_options *options, struct weft_context **ret_context);
/* Drops the caller's reference to the context; graphs, plans and executions made from it stay usable. */
WEFT_API void weft_close(struct weft_context *context);
/* All errors of the last failing call on this context or its graphs, one per line as `file:line:column: message`; "" if
 * none failed. Valid until the next call on the context. Calls that only read (weft_…_read, _find, _get), and calls on
 * plans and executions, leave no message here. */
WEFT_API const char *weft_last_error(const struct weft_context *context);
/* The context's own target, made from its options; it lives until weft_close. */
WEFT_API const struct weft_target *weft_context_target(const struct weft_context *context);
/* Releases a text that a ret_text parameter returned; NULL is fine. */
WEFT_API void weft_free_text(struct weft_context *context, char *text);

#ifdef __cplusplus
}
#endif
#endif
