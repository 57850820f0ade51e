/* SPDX-License-Identifier: Apache-2.0 */
/* compiler_parts.h: the inside of compiler.h: processes, the folder of the cache, and what a compiler knows. */
#ifndef WEFT_COMPILER_PARTS_H
#define WEFT_COMPILER_PARTS_H

#include "codegen/compiler.h"

#include <limits.h>
#include <sys/types.h>

enum { WEFT_REASON_BYTES = 512, WEFT_OUTPUT_BYTES = 4096, WEFT_KEY_BYTES = 33 };

/* --- compiler_process.c ------------------------------------------------------------------------------------------- */

struct weft_process {
    pid_t pid;         /* 0: none */
    pid_t owner;       /* who started it: a copy of this after a fork kills nothing */
    int output;        /* what it printed, in memory */
    int64_t deadline;  /* on the clock of weft_now_ns */
};
enum weft_process_end {
    WEFT_PROCESS_RUNS, WEFT_PROCESS_ENDED, WEFT_PROCESS_KILLED, WEFT_PROCESS_LATE, WEFT_PROCESS_LOST,
};

/* An empty file in memory, whose descriptor is none of the three that processes begin with. -1 and errno. */
int weft_memory_file(void);
/* Starts `path` in `folder`, with `input`, a memory file, as its standard input. 0, or an errno. TMPDIR is that
 * folder. */
int weft_process_start(struct weft_process *process, const char *path, const char *const *argument, int folder,
                       int input, int64_t timeout_ns);
/* `ret_status`: the exit status when it ended, the signal when it was killed. A process past its deadline is killed. */
enum weft_process_end weft_process_poll(struct weft_process *process, int *ret_status);
/* The beginning of what it printed, once. */
void weft_process_output(struct weft_process *process, char text[WEFT_OUTPUT_BYTES]);
/* Kills it if it runs; gives back what it has. */
void weft_process_close(struct weft_process *process);

/* --- compiler_cache.c --------------------------------------------------------------------------------------------- */

struct weft_cache {
    struct weft_context *context;
    int folder;        /* -1: no cache */
    uint64_t limit;
    char path[PATH_MAX];
    char refused[WEFT_REASON_BYTES]; /* why there is none */
};
struct weft_object { /* a file that may be loaded */
    int file;
    dev_t device;
    ino_t inode;
};

void weft_cache_open(struct weft_cache *cache, struct weft_context *context, const char *folder, uint64_t limit);
void weft_cache_close(struct weft_cache *cache);
/* The object with the source `key`: its caller closes the file. False if there is none, or none that may be loaded.
 * `known(user, object)`: was this very file found before? Then its content is not read again. */
bool weft_cache_find(const struct weft_cache *cache, const char *key, struct weft_object *ret_object,
                     bool (*known)(void *user, const struct weft_object *object), void *user);
/* What a compiler left as `name` in the temporary folder; its caller closes the file. 0, or an errno. */
int weft_object_open(int folder, const char *name, struct weft_object *ret_object);
/* Puts length and hash behind it. 0, or an errno. */
int weft_object_seal(const struct weft_object *object);
/* Gives the sealed object a name in the cache; what had it before is replaced at once. `last`: the object needs no
 * other. 0, or an errno. */
int weft_cache_keep(const struct weft_cache *cache, int folder, const char *name, const char *key, bool last);
/* Removes objects, those that were used longest ago first, until the limit is held, and temporary folders that a
 * process which died has left. */
void weft_cache_bound(const struct weft_cache *cache);

/* A folder that no other user can enter, in the cache or, where it cannot be written, in $TMPDIR. */
struct weft_temporary {
    int parent, folder; /* descriptors; -1: none */
    pid_t owner;        /* who made it: a copy of this after a fork removes nothing */
    bool in_cache;
    char name[48];
};
/* False with a reason. */
bool weft_temporary_open(struct weft_temporary *temporary, const struct weft_cache *cache,
                         char reason[WEFT_REASON_BYTES]);
/* Removes it with its files. */
void weft_temporary_close(struct weft_temporary *temporary);

/* --- compiler.c --------------------------------------------------------------------------------------------------- */

struct weft_compiler {
    struct weft_context *context; /* held */
    _Atomic int32_t holds;
    int32_t processes, per_object;
    int64_t timeout_ns;
    struct weft_cache cache;
    char command[PATH_MAX];       /* "": none */
    char lacks[WEFT_REASON_BYTES];
    char identity[64];            /* size and time of change of the binary */
};
/* The key of a source, in hex. `prelude`: the weft_blob_hash of its text. */
void weft_source_key(const struct weft_compiler *compiler, const char *prelude, const char *flags,
                     const struct weft_source *source, char key[WEFT_KEY_BYTES]);
enum { WEFT_LEVEL_FLAGS = 8 };
/* The flags of a CPU level, ended by NULL; returns their number. */
int weft_level_flags(uint32_t cpu, const char *flag[WEFT_LEVEL_FLAGS + 1]);
/* What every run of the compiler is given, ended by NULL. */
extern const char *const weft_compiler_flags[];

/* --- compiler_job.c ----------------------------------------------------------------------------------------------- */

struct weft_job {
    struct weft_job *next;
    struct weft_process process;
    int32_t first, count; /* in the code's `order` */
    int32_t number;
    bool started, ended;
    char reason[WEFT_REASON_BYTES];
    char output[WEFT_OUTPUT_BYTES];
};

struct weft_entry {
    char key[WEFT_KEY_BYTES];
    bool cached;
    uint32_t cpu;
    int32_t number;                /* of the source */
    const struct weft_entry *same; /* the one that stands for it: equal sources are one */
    weft_function function;
    const char *reason;            /* owned by the job, the code or the compiler */
    const struct weft_job *job;    /* that failed */
    size_t text, bytes;            /* what the compiler reads of it, in the code's `text` */
};

struct weft_loaded {
    dev_t device;
    ino_t inode;
    void *handle;
};

struct weft_code {
    struct weft_compiler *compiler; /* held */
    _Atomic int32_t holds;
    int32_t status, count, missing, loads, jobs, running;
    bool done, kept;
    struct weft_entry *entry;       /* by source */
    struct weft_entry **order;      /* sorted; after the search those that are missing, first */
    struct weft_loaded *loaded;     /* room for two of each source: the cache's, and what was made in its place */
    struct weft_job *job, **last;
    const char **argument;          /* room for those of a run of the compiler */
    char *text, *flags;             /* all that is compiled, the prelude first; the caller's flags, cut at blanks */
    size_t text_bytes, prelude_bytes, argument_bytes, flags_bytes;
    int32_t words;                  /* of `flags` */
    struct weft_temporary temporary;
    char unkept[WEFT_REASON_BYTES], failure[WEFT_REASON_BYTES];
};

/* Loads the function of an entry from the cache, if it is there. */
bool weft_entry_find(struct weft_code *code, struct weft_entry *entry);
/* A run of the compiler on `count` entries of the code's order. False: out of memory. */
bool weft_job_add(struct weft_code *code, int32_t first, int32_t count);
/* Starts jobs until as many run as may. */
void weft_jobs_start(struct weft_code *code);
/* Takes what jobs that ended have made. */
void weft_jobs_poll(struct weft_code *code);

#endif
