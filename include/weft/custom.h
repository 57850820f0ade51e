/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h: custom ops: the caller's functions. */
#ifndef WEFT_PUBLIC_CUSTOM_H
#define WEFT_PUBLIC_CUSTOM_H

#include "weft/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `%y: f32[N], %i: i64[N] = custom %a, %b function=NAME parameters=[0.5] with=[axis=1 mode="fast"]` calls the function
 * that is registered as NAME. Worked examples: examples/custom.c; examples/top_two.c, a library for `weft --custom`.
 * What weft asks of a function:
 *  - Its results depend on operands, parameters and named values only. weft may merge equal calls and drop unused ones;
 *    it makes none while it compiles a graph.
 *  - All functions below but `type` may be called by several threads at once, for one node or many; `type` only by the
 *    thread that uses the context. weft passes `user` on; it must live as long as anything made from the context.
 *  - It may not call weft on the context, except weft_extent and weft_extent_combine in `type`. */

/* A named number, text, list or array that a node hands to its function: what stands in `with=[…]`, and each attribute
 * of an ONNX node. The member of the kind is set. */
enum weft_custom_kind {
    WEFT_CUSTOM_INTEGER = 1, /* integer:           axis=1 */
    WEFT_CUSTOM_REAL,        /* real:              epsilon=0.001, which has a point or an exponent */
    WEFT_CUSTOM_TEXT,        /* text:              mode="fast" */
    WEFT_CUSTOM_INTEGERS,    /* integers, count:   axes=[0 2]; also a list without elements, of whatever kind */
    WEFT_CUSTOM_REALS,       /* reals, count:      scales=[1.0 0.5] */
    WEFT_CUSTOM_TEXTS,       /* texts, count:      names=["a" "b"] */
    WEFT_CUSTOM_ARRAY,       /* array:             table=f32[2,2][1 2 3 4], packed row-major, at most 65536 elements */
};
struct weft_custom_value {
    const char *name;        /* a letter or _, then letters, digits and _ */
    int32_t kind;            /* enum weft_custom_kind */
    int32_t reserved;        /* 0 */
    int64_t integer;
    double real;
    const char *text;
    const int64_t *integers;
    const double *reals;
    const char *const *texts;
    const struct weft_tensor *array; /* read-only */
    size_t count;
};

/* Input and output of the function `type`. */
struct weft_custom_type {
    int32_t dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
};
struct weft_custom_types {
    size_t size;
    struct weft_graph *graph;               /* for weft_extent_combine */
    const struct weft_custom_type *operand;
    size_t operands;
    const double *parameter;
    size_t parameters;
    struct weft_custom_type result;         /* filled by the function: of the first result */
    char *message;                          /* filled by the function if it refuses: why */
    size_t message_bytes;
    struct weft_custom_type *more;          /* filled by the function: more[k - 1] of result k, from the second on */
    size_t results;                         /* weft_custom.results */
    const struct weft_custom_value *value;  /* what stands in `with` */
    size_t values;
};

/* One call of `run`. Tensors have the layouts that `layout` requires. */
struct weft_custom_call {
    size_t size;
    const char *where;                      /* the name of the value that is computed, "%y"; "" for parts, scratch and
                                               cost */
    const struct weft_tensor *operand;      /* read-only */
    size_t operands;
    struct weft_tensor *result;             /* `results` of them; the function fills their data, of parts their share */
    const double *parameter;
    size_t parameters;
    char *message;                          /* filled by the function on error: what went wrong */
    size_t message_bytes;
    size_t results;
    const struct weft_custom_value *value;  /* what stands in `with` */
    size_t values;
    int32_t part, parts;                    /* from 0 to parts - 1; in any order, may be at the same time */
    int32_t worker, workers;                /* who does it, from 0, and how many there are at most */
    void *scratch;                          /* of this worker alone, 64-byte aligned, weft_custom.scratch bytes */
};

/* How a function or kernel reads an operand or writes a result, beyond its layout.
 * `along`: it walks this axis element by element before it goes to the next column. If the strides of that walk make
 * cache lines evict each other, weft may store rows a cache line longer (pass pad_strides), where the layout allows any
 * strides.
 * `align`: the address of the first element must be a multiple of so many bytes, a power of two up to 4096. An operand
 * that is not known to be aligned is copied, by pass align_buffers or for the call; a result of a function is copied
 * after the call; for a result of a kernel weft only leaves a remark. Values out of range count as no demand. */
struct weft_demand {
    size_t size;
    int32_t along; /* an axis; -1: as stored */
    int32_t align; /* 0: any address */
};

#define WEFT_CUSTOM_MOST_RESULTS 64

struct weft_custom {
    size_t size;
    const char *name;                       /* a letter, then letters, digits and _; up to 63 */
    void *user;                             /* passed to all functions below */
    int32_t least_operands, most_operands;  /* most_operands -1: any number */
    /* Computes the results, or part call->part of them. Returns 0, or another number for an error: then the run ends
     * with WEFT_ERR_CUSTOM, and its message names the node. */
    int (*run)(void *user, const struct weft_custom_call *call);
    /* Sets the types of the results, always the same for the same operands. Returns 0, or another number if operands,
     * parameters or named values are wrong. NULL: the node states the types. */
    int (*type)(void *user, struct weft_custom_types *types);
    /* The layout that operand i, or for i = operands + k result k, must have. True: packed, with the axes in
     * `ret_order` from the outermost to the innermost. False: any strides will do, also 0 for a repeated axis. NULL:
     * everything is packed row-major. Values in other layouts are copied, by relayouts that pass
     * propagate_memory_format inserts, or within the call where the pass did not know. */
    bool (*layout)(void *user, size_t i, size_t operands, int rank, int *ret_order);
    /* The cost of a call, given tensors without data: arithmetic operations, and bytes read and written. NULL:
     * unknown. */
    void (*cost)(void *user, const struct weft_custom_call *call, double *ret_operations, double *ret_bytes);
    /* Sets further demands on operand i, or for i = operands + k on result k, if there are any. NULL: none. */
    void (*demand)(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret_demand);
    int32_t results;                        /* how many it has, up to WEFT_CUSTOM_MOST_RESULTS; 0: one */
    uint32_t flags;                         /* 0 */
    /* The ONNX op that the function computes: models that use it call the function, whatever else could compute it. The
     * node's inputs are operands; its attributes are named values, but for graphs, sparse tensors and types, which are
     * refused. Outputs that the node does not have are computed and dropped. Needs `type`. NULL: none. */
    const char *domain, *op;                /* "acme", "TopTwo"; "" or "ai.onnx": ONNX's own */
    /* Into how many parts the work is cut for arrays of these sizes (data is NULL), where `call->workers` could do
     * them, at most 64 for each worker; asked whenever sizes are new, by any thread. Parts write different elements. A
     * call for which something has to be copied is one part. NULL or less than 1: one, so that one thread makes the
     * call. */
    int32_t (*parts)(void *user, const struct weft_custom_call *call);
    /* How many bytes of scratch memory each worker needs for that. NULL: none. */
    size_t (*scratch)(void *user, const struct weft_custom_call *call);
    /* Which axes lie alike: for each axis of operand i, or for i = operands + k of result k, not the first, the axis of
     * the first result that the function walks together with it, or -1. Where any strides will do, layouts are carried
     * along these axes from operands to results and back; an operand that lies in another order than the first result
     * costs what reading across takes. NULL: nothing is known, and nothing is carried. */
    void (*axes)(void *user, size_t i, size_t operands, int rank, int *ret_axis);
};
/* Registers a function with a context for good; strings are copied. Call it before graphs that use the function are
 * evaluated or compiled, and before ONNX models that use it are loaded: without it texts can be read, printed and
 * changed, but not run. A name can be used once, and so can an ONNX op. */
WEFT_API int weft_register(struct weft_context *context, const struct weft_custom *custom);
/* The named value of a call, or NULL. */
WEFT_API const struct weft_custom_value *weft_custom_value_of(const struct weft_custom_value *value, size_t values,
                                                              const char *name);

/* --- libraries of functions --------------------------------------------------------------------------------------- */

/* A shared library of functions, for `weft --custom FILE` and weft_register_library, has one symbol, which this makes
 * at file scope: WEFT_CUSTOM_LIBRARY(enter). It need not be linked with weft: `enter` is handed all that it may call.
 * Worked example: examples/top_two.c. */
struct weft_custom_host {
    size_t size;
    struct weft_context *context;
    /* weft_register, weft_extent, weft_extent_combine, weft_custom_value_of */
    int (*enroll)(struct weft_context *context, const struct weft_custom *custom);
    weft_dim (*extent)(int64_t value);
    int (*extent_combine)(struct weft_graph *graph, char op, weft_dim a, weft_dim b, weft_dim *ret_dim);
    const struct weft_custom_value *(*value_of)(const struct weft_custom_value *value, size_t values, const char *name);
};
#define WEFT_CUSTOM_ABI 1
struct weft_custom_library {
    int32_t abi;         /* WEFT_CUSTOM_ABI */
    int32_t reserved;    /* 0 */
    /* Registers the functions. WEFT_OK or a status. `host` is valid during the call, its functions longer. */
    int (*enter)(const struct weft_custom_host *host);
};
#ifdef __cplusplus
#define WEFT_CUSTOM_SYMBOL extern "C" WEFT_API
#else
#define WEFT_CUSTOM_SYMBOL extern WEFT_API
#endif
#define WEFT_CUSTOM_LIBRARY(function) \
    WEFT_CUSTOM_SYMBOL const struct weft_custom_library weft_custom_library; \
    const struct weft_custom_library weft_custom_library = {WEFT_CUSTOM_ABI, 0, (function)}
/* Loads a library and has it register its functions. It stays loaded until the process ends. A file name without a
 * slash is looked for as the dynamic linker does. WEFT_ERR_IO: it cannot be loaded; WEFT_ERR_UNSUPPORTED: it has no
 * such symbol, or one for another version of this interface; else what `enter` returned. Messages name the library. */
WEFT_API int weft_register_library(struct weft_context *context, const char *path);

#ifdef __cplusplus
}
#endif
#endif
