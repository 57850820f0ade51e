/* SPDX-License-Identifier: Apache-2.0 */
/* base.h: contexts, protected calls, arenas, growing texts, messages, the bytes of constants, elements by dtype. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include "weft/weft.h"

#include <setjmp.h>
#include <stdarg.h>

#define WEFT_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* --- base.c: context, protected calls, arena, vectors, strings, diagnostics --------------------------------------- */

/* Broken invariants stop the process in builds with assertions, which all tests use; never wrong input. */
#ifdef NDEBUG
#define weft_assert(condition) ((void)sizeof(condition))
#else
#define weft_assert(condition) ((condition) ? (void)0 : weft_assert_failed(#condition, __FILE__, __LINE__))
#endif
_Noreturn void weft_assert_failed(const char *condition, const char *file, int line);

/* The greatest common divisor; of 0 and a number, that number. */
static inline int64_t weft_gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

struct weft_prices;
struct weft_target_kernel;
struct weft_target {
    uint32_t cpu;        /* WEFT_CPU_* of kernels/kernels.h: what kernels may use */
    int32_t threads;
    int32_t arithmetic;  /* enum weft_conv_arithmetic of kernels/kernels.h */
    size_t l1, l2, l3;   /* bytes of data cache: per core, per core, shared */
    const struct weft_prices *prices; /* sched/prices.h; NULL: those that weft ships */
    char name[64];       /* "avx512+bf16 2 threads", for messages */
    struct weft_context *context;              /* of a target of the caller's; NULL in that of a context */
    struct weft_target_kernel *kernel;         /* the caller's, a list in the order in which they were added */
    uint32_t restricted; /* WEFT_TARGET_* */
    bool planned;        /* a plan's copy: kernels in its memory, and weft computes what they do not */
};

struct weft_text {       /* a growing text, always NUL-terminated when length > 0 */
    struct weft_context *context;
    struct weft_arena *arena; /* where it grows; NULL: in the allocator's memory, until weft_text_close */
    char *data;
    size_t length, capacity;
};

struct weft_custom_entry;
struct weft_outside_pass;
struct weft_alternative_entry;
/* Who wants to know whether something would be an error: while context->caught points here, errors are not recorded,
 * and the first message is kept, in the arena. A refused allocation ends it, wherever it leads. */
struct weft_caught {
    struct weft_arena *arena;
    const char *message;     /* NULL: none yet */
};

/* Where a message points. All members may be empty. */
struct weft_place {
    const char *file;
    int32_t line, column;
    const char *where;
};

struct weft_shared_pack;
struct weft_pack_folder;
enum { WEFT_SHARED_PACKS = 64 };
struct weft_context {
    struct weft_allocator allocator;
    struct weft_executor executor;
    void (*diagnose)(void *user, const struct weft_diagnostic *);
    void *diagnose_user;
    struct weft_target target;
    _Atomic(struct weft_custom_entry *) customs; /* custom.h */
    struct weft_outside_pass *passes; /* the caller's: passes/outside.c */
    struct weft_alternative_entry *alternatives; /* the caller's: passes/alternatives.c */
    bool weighs_alternatives; /* choose_alternatives runs, whose callbacks may compile graphs */
    _Atomic uint32_t gang;   /* 0, or who has the executor's workers; another run gets one: runtime/executor.c */
    struct weft_barrier *barrier; /* where workers of a gang meet, for target.threads */
    _Atomic uint32_t holds;  /* the caller's, until weft_close, and one of each thing that was made from it and lives */
    _Atomic bool closed;     /* the caller's is given up */
    struct weft_shared_pack *shared_pack[WEFT_SHARED_PACKS]; /* of its plans, by hash: plan/shared.c */
    struct weft_pack_folder *pack_folder; /* where packs are files; or NULL: plan/pack_folder.h */
    void (*free)(struct weft_context *context); /* when nobody holds it any more; NULL: whoever made it does */
    jmp_buf *on_nomem;       /* the innermost protected call; NULL outside */
    struct weft_caught *caught; /* or NULL */
    struct weft_place here;  /* what is being read or rewritten: where a message without a place of its own points */
    struct weft_text errors; /* of the last failing call */
    int32_t error_count;     /* errors since the protected call began */
    int32_t error_status;    /* status of the first of them */
};

/* What lives longer than a call holds its context, which goes with the last of them: graphs, plans, targets of the
 * caller's, texts and tensors that were returned. Any thread. */
void weft_context_hold(struct weft_context *context);
void weft_context_drop(struct weft_context *context);

/* Runs fn(arg) so that an allocation that fails in an arena ends it with WEFT_ERR_NOMEM. The first protected call on
 * the stack clears the errors; when it has collected any and fn returned WEFT_OK, it returns the first error's
 * status. Nested calls just run fn. Every public function of the compile phase goes through here. */
int weft_protected(struct weft_context *context, int (*fn)(void *arg), void *arg);
/* The same for a call on a graph; the outermost call empties the scratch arena, where one that ran out of memory may
 * have left something. */
int weft_protected_graph(const struct weft_graph *graph, int (*fn)(void *arg), void *arg);
_Noreturn void weft_out_of_memory(struct weft_context *context);

/* Copies a caller's struct, which begins with its size, into `own`, zero where the caller's is older and shorter. False
 * if the size was not set, or a newer caller's is longer and is not zero there. */
bool weft_take_options(void *own, size_t bytes, const void *given);
/* The other way round: fills a caller's struct, which begins with its size, from `facts` of ours, as far as the
 * caller's is long; where a newer caller's is longer, with zeros. WEFT_ERR_ARGUMENT if the size was not set. */
int weft_give_facts(void *ret, const void *facts, size_t bytes);
/* For a public function that is given NULL, or a struct without its size: a message of that, in the place of those of
 * earlier calls, if there is a context to have it. Returns WEFT_ERR_ARGUMENT. */
#define weft_missing(context) weft_missing_in((context), __func__)
int weft_missing_in(struct weft_context *context, const char *function);

void *weft_allocate(struct weft_context *context, size_t bytes); /* 64-byte aligned; NULL on failure; any thread */
void weft_release(struct weft_context *context, void *memory, size_t bytes);

/* A clock that only goes forward. */
int64_t weft_now_ns(void);

/* Memory that lives and dies together. weft_new never returns NULL: see weft_protected. Zeroed. */
struct weft_arena {
    struct weft_context *context;
    struct weft_chunk *chunk;
    size_t used, capacity; /* of the current chunk */
    size_t total;          /* bytes taken from the allocator */
};
void weft_arena_open(struct weft_arena *arena, struct weft_context *context);
void weft_arena_close(struct weft_arena *arena);
/* Forgets all pieces, but keeps the newest chunk for those to come: for who empties an arena again and again. */
void weft_arena_empty(struct weft_arena *arena);
bool weft_arena_is_empty(const struct weft_arena *arena);
void *weft_arena_new(struct weft_arena *arena, size_t bytes);
#define weft_new(arena, type, count) ((type *)weft_arena_new((arena), sizeof(type) * (size_t)(count)))
char *weft_arena_copy(struct weft_arena *arena, const char *text, size_t length); /* NUL-terminated */
char *weft_arena_format(struct weft_arena *arena, const char *format, ...) WEFT_PRINTF(2, 3);

/* array = weft_grow(arena, array, &capacity, need, sizeof element): the array holds at least `need` elements then, new
 * ones zeroed. It comes from weft_grow on the same arena, unless its capacity is 0. Pointers into it end here. */
void *weft_grow(struct weft_arena *arena, void *array, uint32_t *capacity, uint32_t need, size_t element);

void weft_text_add(struct weft_text *text, const char *string);
void weft_text_addn(struct weft_text *text, const char *string, size_t length);
void weft_text_integer(struct weft_text *text, int64_t value); /* in decimal */
void weft_text_format(struct weft_text *text, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_text_close(struct weft_text *text);
/* A copy that weft_free_text releases, and that holds the context until then; NULL if memory is refused. */
char *weft_text_take(const struct weft_text *text);

/* Records an error (or a note) with the status that the call will return. Without a place, or with an empty one, it
 * points to context->here, which whoever goes through nodes sets to the node at hand and sets back; its texts live
 * until then. It is empty where a protected call begins. */
void weft_error(struct weft_context *context, int status, const struct weft_place *place, const char *format, ...)
    WEFT_PRINTF(4, 5);
void weft_note(struct weft_context *context, int severity, const struct weft_place *place, const char *format, ...)
    WEFT_PRINTF(4, 5);

/* --- blob.c: bytes of constants, shared between a graph and its clones -------------------------------------------- */

/* Counted memory: allocated, or a mapped file, or the caller's, which is given back with the last reference. Reference
 * counts are atomic. */
struct weft_blob {
    struct weft_context *context;
    void *data;
    size_t bytes;
    bool mapped, borrowed; /* neither: allocated */
    void (*release)(void *user, const void *data, size_t bytes); /* of borrowed memory; or NULL */
    void (*release_data)(void *user, const void *data);          /* the same without its size */
    void *release_user;
    _Atomic int32_t references;
    char *path; /* of the mapped file, else NULL; owned by the blob */
    bool planned;      /* it came without elements, in a graph that is planned with their packs (plan/stored.h) */
    bool for_one;      /* the elements of one constant, made for its value (runtime/constants.c) */
    char given_up[33]; /* weft_blob_hash of what `data` was before it was given up; else "" */
};
/* NULL and WEFT_ERR_NOMEM on failure; zeroed, 64-byte aligned. */
struct weft_blob *weft_blob_new(struct weft_context *context, size_t bytes);
/* Maps a whole file, read-only; on failure records an error that names the file and returns NULL. */
struct weft_blob *weft_blob_map(struct weft_context *context, const char *path);
/* Such a mapping, which becomes the blob's. NULL if memory is refused: then it is unmapped. */
struct weft_blob *weft_blob_of_mapping(struct weft_context *context, void *data, size_t bytes);
/* One that has been given up, as far as anybody can tell: its elements are known by their hash alone. */
struct weft_blob *weft_blob_lost(struct weft_context *context, const char *hash, size_t bytes);
/* The user's memory, which is never written; who calls this sets `release` when all has gone well. NULL if memory is
 * refused. */
struct weft_blob *weft_blob_borrow(struct weft_context *context, const void *data, size_t bytes);
/* Gives back the whole pages within a part of a mapped file; they are read again if somebody looks. */
void weft_blob_forget(struct weft_blob *blob, uint64_t offset, size_t bytes);
/* Gives back the memory of a blob that was allocated and that only the caller's graph holds: `data` is NULL from then
 * on, and constants on it can be printed (by their hash) and nothing else. Nothing happens where somebody else holds
 * it. */
void weft_blob_give_up(struct weft_blob *blob);
struct weft_blob *weft_blob_hold(struct weft_blob *blob);
void weft_blob_drop(struct weft_blob *blob);

/* --- dtype.c ------------------------------------------------------------------------------------------------------ */

bool weft_dtype_is_float(int dtype);
bool weft_dtype_is_int(int dtype);     /* signed or unsigned, not bool */
bool weft_dtype_is_signed(int dtype);  /* signed integers */
bool weft_dtype_is_storage_only(int dtype);
bool weft_dtype_is_half(int dtype);    /* f16 or bf16 */
/* Element i of a packed array: as double for floats, exact for integers. Unaligned data is fine. */
double weft_load_real(int dtype, const void *data, int64_t i);
int64_t weft_load_integer(int dtype, const void *data, int64_t i); /* u64 as its bits; floats truncated, saturating */
void weft_store_real(int dtype, void *data, int64_t i, double value);      /* rounds to nearest even */
void weft_store_integer(int dtype, void *data, int64_t i, int64_t value);  /* integers wrap */
/* Bytes of n packed elements. */
int64_t weft_dtype_bytes(int dtype, int64_t n);

#endif
