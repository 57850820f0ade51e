/* SPDX-License-Identifier: Apache-2.0 */
/* The public headers of weft 0.2 in one, frozen: tests/abi/README.md. */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#define WEFT_VERSION "0.2.0"
#define WEFT_VERSION_NUMBER 2000 /* major * 1000000 + minor * 1000 + patch */
#define WEFT_MAX_RANK 8

enum weft_status {
    WEFT_OK = 0,
    WEFT_ERR_NOMEM = -1,       /* the allocator returned NULL; nothing is lost */
    WEFT_ERR_ARGUMENT = -2,    /* a call's arguments do not fit its contract */
    WEFT_ERR_SYNTAX = -3,      /* a text or file is malformed */
    WEFT_ERR_INVALID = -4,     /* well-formed, but not a legal graph: types, shapes, attributes */
    WEFT_ERR_UNSUPPORTED = -5, /* legal, but uses ops or features that weft lacks (all such ops are listed at once) */
    WEFT_ERR_IO = -6,          /* the operating system refused a file */
    WEFT_ERR_BINDING = -7,     /* a tensor given to an execution does not fit the plan */
    WEFT_ERR_CUSTOM = -8,      /* a custom function (weft_register) reported an error */
    WEFT_ERR_CANCELLED = -9,   /* weft_cancel ended a run */
};
/* A short constant English text for a status, never NULL. */
WEFT_API const char *weft_status_text(int status);
/* The version of the library that is loaded, to be compared with WEFT_VERSION. */
WEFT_API const char *weft_version(void);
/* The same as a number, at least WEFT_VERSION_NUMBER if the library has all that the headers declare. */
WEFT_API int weft_version_number(void);

/* --- element types ------------------------------------------------------------------------------------------------ */

enum weft_dtype {
    WEFT_F64 = 1, WEFT_F32, WEFT_BF16, WEFT_F16, WEFT_I64, WEFT_I32, WEFT_I16, WEFT_I8,
    WEFT_U64, WEFT_U32, WEFT_U16, WEFT_U8, WEFT_BOOL,
    WEFT_I4, WEFT_U4, WEFT_F8E4M3, WEFT_F8E5M2, /* storage only: no arithmetic but casts */
};
/* "f32" and so on; NULL for a number that is no dtype. */
WEFT_API const char *weft_dtype_name(int dtype);
/* The dtype of that name, or 0, also for NULL. */
WEFT_API int weft_dtype_from_name(const char *name);
/* Size of one element in bits. For i4 and u4 it is 4: two elements per byte, the first in the lower half. An unused
 * half byte at the end of a result is 0. */
WEFT_API unsigned weft_dtype_bits(int dtype);

/* A strided array in the caller's memory. Broadcast axes have stride 0; strides are never negative. Axes from `rank` on
 * are not read. */
struct weft_tensor {
    void *data;
    int32_t dtype;
    int32_t rank;
    int64_t extent[WEFT_MAX_RANK];
    int64_t stride[WEFT_MAX_RANK]; /* in elements */
};

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
    const char *cpu; /* highest CPU level to use: "avx2", "avx512", "baseline"; NULL: WEFT_CPU, else all it has */
    int32_t threads; /* maximum number of threads; 0: what the executor and the container allow */
    int32_t reserved;
    const char *prices; /* costs for choosing layouts: a file written by `weft calibrate`; "": those that weft ships for
                           Zen 4, so that plans are the same on all machines; NULL: WEFT_PRICES, else this machine's in
                           the user's cache, else those that weft ships for this CPU */
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

/* --- graphs: from text and files ---------------------------------------------------------------------------------- */

struct weft_graph;

/* Reads a graph from a file: ONNX, or weft text when the name ends in ".weft" or it begins like weft text. Weights stay
 * mapped from the file. The caller destroys the graph. */
WEFT_API int weft_load(struct weft_context *context, const char *path, struct weft_graph **ret_graph);
/* An input that is the same in every run. If an ONNX model takes a shape, a number of repeats or an axis as an input,
 * weft has to know its value when the model is loaded. */
struct weft_fixed_input {
    const char *name;
    const struct weft_tensor *tensor; /* of the type that the model declares, packed row-major; copied */
};
/* As weft_load, but the named inputs become constants, and symbols in their declared shapes become their sizes. For
 * ONNX models only. */
WEFT_API int weft_load_fixed(struct weft_context *context, const char *path, const struct weft_fixed_input *fixed,
                             size_t count, struct weft_graph **ret_graph);
/* Parses the first top-level graph of a text (language: ir/FORMAT.md). Messages show `name` as the file, and references
 * to files are relative to its folder. */
WEFT_API int weft_parse(struct weft_context *context, const char *text, size_t bytes, const char *name,
                        struct weft_graph **ret_graph);
/* A copy of the whole graph, which must be valid. */
WEFT_API int weft_graph_clone(const struct weft_graph *graph, struct weft_graph **ret_graph);
/* Drops the caller's reference to a graph and its bodies. A body is freed with its parent: for a body this does
 * nothing. */
WEFT_API void weft_graph_destroy(struct weft_graph *graph);
/* The graph as text that parses back to the same graph. The caller frees it with weft_free_text. */
WEFT_API int weft_print(const struct weft_graph *graph, char **ret_text);
/* Checks every rule of the language; WEFT_ERR_INVALID, with all findings, if one is broken. */
WEFT_API int weft_validate(struct weft_graph *graph);

/* --- graphs: the builder ------------------------------------------------------------------------------------------ */

/* A value of one graph, as returned by the functions here. Functions refuse values of another graph, also of a body's
 * parent. id 0 is "none". Ids differ within a graph; `graph` is a number that no other graph of the process has. */
typedef struct { uint32_t id, graph; } weft_val;
typedef struct { uint32_t id, graph; } weft_node; /* a node of one graph; id 0 is "none" */
typedef struct { int64_t bits; } weft_dim;  /* an extent: a constant or an expression over one graph's symbols */

/* One attribute of an op; `name` as in `weft opt --list-ops`. Set the member for the attribute's kind and leave the
 * others at zero: anything else is refused. A list without a default may be empty, but then `integers` or `reals` may
 * not be NULL. */
struct weft_attribute {
    const char *name;
    int64_t integer;
    double real;
    const char *word;            /* for words and dtypes */
    const weft_dim *integers;    /* for lists of integers, `count` long */
    const double *reals;
    size_t count;
    struct weft_graph *graph;    /* a body, made with weft_graph_create_body */
    const void *reserved[2];     /* NULL: for kinds of attributes that are yet to come */
};

WEFT_API int weft_graph_create(struct weft_context *context, const char *name, struct weft_graph **ret_graph);
/* A subgraph for the body of an `if` or `loop`; owned by `parent`, shares its symbols, sees none of its values. Once a
 * node of `parent` uses it, it cannot be changed. */
WEFT_API int weft_graph_create_body(struct weft_graph *parent, const char *name, struct weft_graph **ret_graph);

/* A constant extent. Extents and integer attributes lie between -(2^62 - 1) and 2^62 - 1; larger values saturate. */
WEFT_API weft_dim weft_extent(int64_t value);
/* The symbol `name` (letters, digits, _ and ., first a letter or _) with sizes in [low, high]; high is at most 2^31 -
 * 1. Plans assume the size `hint` (0: no hint) and are right for all. The first call creates the symbol; later calls
 * narrow its bounds, and its hint with them. */
WEFT_API int weft_symbol(struct weft_graph *graph, const char *name, int64_t low, int64_t high, int64_t hint,
                         weft_dim *ret_dim);
/* a op b for op in + - * / (floor) % m (min) M (max). */
WEFT_API int weft_extent_combine(struct weft_graph *graph, char op, weft_dim a, weft_dim b, weft_dim *ret_dim);

/* Adds an input. Its layout is dense row-major unless set with weft_set_layout. `name` must be new or NULL. */
WEFT_API int weft_param(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
                        weft_val *ret_value);
/* As weft_param, for a buffer that the run updates: its old value is an operand like any other, and weft_return_mut
 * names its new value. The new value is computed in place if nothing reads the old one afterwards (a run that fails may
 * then leave the buffer partly updated), and is copied into it at the end of the run otherwise. Not in bodies. */
WEFT_API int weft_param_mut(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
                            weft_val *ret_value);
/* Adds a dense row-major constant; the data is copied. It may be NULL only where an extent is 0. */
WEFT_API int weft_constant(struct weft_graph *graph, int dtype, int rank, const int64_t *extent, const void *data,
                           weft_val *ret_value);
/* A constant whose elements all equal `value`, rounded for a float dtype; for an integer dtype `value` must be one of
 * its numbers. It takes no memory. */
WEFT_API int weft_splat(struct weft_graph *graph, int dtype, int rank, const weft_dim *extent, double value,
                        weft_val *ret_value);

/* As weft_splat for integers and bools, exactly: every number of i64, and of u64 given as its 64 bits. */
WEFT_API int weft_splat_integer(struct weft_graph *graph, int dtype, int rank, const weft_dim *extent, int64_t value,
                                weft_val *ret_value);

struct weft_op {
    size_t size;
    const char *op;                /* "conv", "add", ... */
    const char *name;              /* name of the first result; NULL: numbered */
    const weft_val *operand;
    size_t operands;
    const struct weft_attribute *attribute;
    size_t attributes;
    int32_t dtype;                 /* type of the first result, for ops that do not infer it (cast, reshape, bcast…); */
    int32_t rank;                  /* dtype 0: infer it (for `custom`: by the function's `type`). A stated type that */
    const weft_dim *extent;        /* can be inferred must equal the inferred one */
};
/* Appends a node after all others; `ret_results` takes as many values as the op has results. */
WEFT_API int weft_append(struct weft_graph *graph, const struct weft_op *op, weft_val *ret_results);
/* Declares the results of the graph, in order; a second call replaces the first. */
WEFT_API int weft_return(struct weft_graph *graph, const weft_val *values, size_t count);
/* As weft_return; if updated[i] is not none (id 0), result i is also the new value of that `mut` parameter, of the same
 * type. Each `mut` parameter needs exactly one new value. If no tensor is bound to such a result and it was computed in
 * place, weft_output returns the parameter's buffer. */
WEFT_API int weft_return_mut(struct weft_graph *graph, const weft_val *values, const weft_val *updated, size_t count);
/* Sets a value's layout from its text form, e.g. "{0 2 3 1}" or "{0 1 | 4096 1}". A layout that is set for an
 * intermediate value is required, row-major ("{0 1 2 3}") too; without this call weft chooses one. */
WEFT_API int weft_set_layout(struct weft_graph *graph, weft_val value, const char *layout);

/* Writes the graph as text to `path` and the elements of its constants (if some have more than 64) to `path`.bin,
 * which the text names; files that constants are mapped from are copied, so the two are all that is needed. weft_load
 * of `path` gives an equal graph, in any process, and maps the elements. A plan's graph (weft_plan_graph of a plan made
 * with WEFT_COMPILE_KEEP_CONSTANTS) keeps its layouts and groups: WEFT_COMPILE_NO_PASSES compiles it again as it is.
 * Files that are there are replaced when all is written. WEFT_ERR_IO names the file that could not be. */
WEFT_API int weft_save(const struct weft_graph *graph, const char *path);

/* Inputs and results in order; none (id 0) if there is no i-th. Counts are 0 if the graph is NULL. */
WEFT_API size_t weft_graph_params(const struct weft_graph *graph);
WEFT_API weft_val weft_graph_param(const struct weft_graph *graph, size_t i);
WEFT_API size_t weft_graph_returns(const struct weft_graph *graph);
WEFT_API weft_val weft_graph_return(const struct weft_graph *graph, size_t i);
/* The next node in execution order; for none the first node, after the last node none. Nodes of a body belong to the
 * body's graph. */
WEFT_API weft_node weft_next_node(const struct weft_graph *graph, weft_node node);

struct weft_node_facts {
    size_t size;           /* set by the caller */
    const char *op;        /* "conv" */
    const char *kernel;    /* the name right of `!`, or NULL */
    const char *group;     /* the name of the group `fuse @group { … }` that it is in, or NULL */
    size_t operands, results;
    const char *in;        /* "%c": it is computed in that value's memory (pass mark_aliases), or NULL */
    const char *group_kernel; /* the name right of the group's `!`, or NULL */
};
WEFT_API int weft_node_read(const struct weft_graph *graph, weft_node node, struct weft_node_facts *ret_facts);
/* None (id 0) beyond the last. */
WEFT_API weft_val weft_node_operand(const struct weft_graph *graph, weft_node node, size_t i);
WEFT_API weft_val weft_node_result(const struct weft_graph *graph, weft_node node, size_t i);
/* An attribute by its name: as the node states it, else its default; a list that is not stated has count 0. An integer
 * that depends on a symbol is given at the symbol's hint. WEFT_ERR_ARGUMENT if the op has no such attribute, or the
 * node does not state it and it has no default. */
WEFT_API int weft_node_attribute(const struct weft_graph *graph, weft_node node, const char *name,
                                 struct weft_attribute *ret_attribute);

/* How a value is stored: storage axes from the outermost to the innermost. A storage axis is a logical axis, or a part
 * of a split one: for index i along logical axis `axis` its index is (i / div) % mod, or i / div if mod is 0. NCHW16c
 * stores channels as one axis with div 16 and, innermost, one with mod 16. */
#define WEFT_MAX_STORAGE 16
struct weft_storage_axis {
    int32_t axis, reserved;
    int64_t div, mod;
    int64_t stride;        /* in elements, with symbols at their hints */
};
struct weft_value_facts {
    size_t size;           /* set by the caller */
    const char *name;      /* without %; NULL: it has a number only */
    weft_node node;        /* the node that computes it; none: an input */
    int32_t dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
    int64_t hint[WEFT_MAX_RANK]; /* the extents with symbols at their hints */
    int32_t decided;       /* 0: any layout will do ({?}), and there are no storage axes */
    int32_t storage_axes;
    struct weft_storage_axis storage[WEFT_MAX_STORAGE];
    int64_t offset;        /* of the first element, in elements */
    size_t uses;           /* how many operands and results of the graph are this value */
    int32_t constant;      /* enum weft_constant_state */
};
enum weft_constant_state {
    WEFT_CONSTANT_NONE = 0, /* the value is no constant */
    WEFT_CONSTANT_STORED,   /* its elements lie in memory or in a mapped file */
    WEFT_CONSTANT_SPLAT,    /* all elements are one number */
    WEFT_CONSTANT_RANDOM,   /* elements follow from a seed */
    WEFT_CONSTANT_GIVEN_UP  /* of a plan's graph: kernels have packed them, and nothing else was kept */
};
WEFT_API int weft_value_read(const struct weft_graph *graph, weft_val value, struct weft_value_facts *ret_facts);

/* Elements of a constant, also of one that a pass has folded, dense row-major. As weft_evaluate's outputs: if
 * `tensor->data` is set, it has room for all of them; if it is NULL, memory is allocated, which the caller frees with
 * weft_tensor_free. The rest of the tensor is filled in. WEFT_ERR_ARGUMENT: no constant, or extents with symbols;
 * WEFT_ERR_INVALID: WEFT_CONSTANT_GIVEN_UP. */
WEFT_API int weft_constant_read(const struct weft_graph *graph, weft_val value, struct weft_tensor *tensor);
/* An extent as the graph prints it, "N*(H/2 + 1)", to be freed with weft_free_text. */
WEFT_API int weft_extent_text(const struct weft_graph *graph, weft_dim extent, char **ret_text);
/* An extent for given sizes of symbols; symbols that are not given have their hints. */
struct weft_size {
    const char *symbol;
    int64_t value;
};
WEFT_API int weft_extent_at(const struct weft_graph *graph, weft_dim extent, const struct weft_size *sizes,
                            size_t count, int64_t *ret_extent);

/* --- access: how wide a value can be read or written -------------------------------------------------------------- */

/* May a kernel load k elements of a value at once? Suppose that it walks the value `along` in storage order, k
 * elements at a time, and needs elements of `value`, through the ops between the two. A block of k is good if the
 * elements of `value` that it needs are k neighbours in memory, in rising order, starting at a multiple of k; or if it
 * needs none (padding). If several paths of ops lead from one value to the other, each must be good. A reduction of at
 * most 16 terms counts as that many paths. Longer reductions, contractions and scans are loops of their own: no path
 * leads through them. Symbols count at their hints. */
struct weft_access {
    size_t size;
    weft_val value;
    weft_val along;         /* the value that is walked; none (id 0): `value` itself */
    uint32_t axes;          /* bit i: blocks extend along axis i of `along`; these must be its innermost axes; 0: all */
    uint32_t align;         /* known alignment of the value's buffer in bytes; 0: see `width` */
    int64_t offset;         /* elements from that aligned address to the first element */
};
struct weft_access_width {
    size_t size;            /* set by the caller */
    int64_t width;          /* the largest power of two k, at most 16 bytes, for which all blocks are good and aligned.
                             * Alignment is what `align` says, else the layout's align=; else 64 bytes where weft
                             * allocates, and the element size for a parameter */
    int64_t inner;          /* the largest k for which all blocks are good, with offsets as if the value were dense */
};
/* WEFT_ERR_ARGUMENT if no such path leads from one value to the other. Both numbers are 0 if one of the values has no
 * elements. A width that is returned is safe; it is 1 where finding more would take too long. */
WEFT_API int weft_access(const struct weft_graph *graph, const struct weft_access *access,
                         struct weft_access_width *ret_width);

/* Runs one pass by its name, with - or _ ("fold_batchnorm"; `weft opt --list-passes`). `target` NULL: the context's.
 * Returns 1 if the graph changed, 0 if not, or a negative status: unknown name, or a graph that is not valid. */
WEFT_API int weft_run_pass(struct weft_graph *graph, const char *name, const struct weft_target *target);
/* Runs the default pipeline; returns as weft_run_pass. Values in blocked layouts (NCHW16c) become ordinary arrays with
 * one more axis at its end, unless the target has kernels of the caller's. */
WEFT_API int weft_run_pipeline(struct weft_graph *graph, const struct weft_target *target);

/* One explained decision. */
struct weft_remark {
    size_t size;         /* set by the caller */
    const char *who;     /* the pass or engine */
    const char *where;   /* the value it is about */
    const char *verdict; /* "done", "refused", "chosen", ... */
    const char *reason;  /* one sentence, with its numbers */
};
WEFT_API size_t weft_remark_count(const struct weft_graph *graph);
/* Remark i in order of decision; strings live as long as the graph. */
WEFT_API int weft_remark_get(const struct weft_graph *graph, size_t i, struct weft_remark *ret_remark);

/* `%y: f32[N] = custom %a, %b function=NAME parameters=[0.5]` calls the function that is registered as NAME. Worked
 * example: examples/custom.c. What weft asks of a function:
 *  - Its result depends on operands and parameters only. weft may merge equal calls and drop unused ones; it makes none
 *    while it compiles a graph.
 *  - `run`, `layout` and `cost` may be called by several threads at once, for one node or many; `type` only by the
 *    thread that uses the context. weft passes `user` on; it must live as long as anything made from the context.
 *  - It may not call weft on the context, except weft_extent and weft_extent_combine in `type`. */

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
    struct weft_custom_type result;         /* filled by the function */
    char *message;                          /* filled by the function if it refuses: why */
    size_t message_bytes;
};

/* One call of `run`. Tensors have the layouts that `layout` requires. */
struct weft_custom_call {
    size_t size;
    const char *where;                      /* the name of the value that is computed, "%y" */
    const struct weft_tensor *operand;      /* read-only */
    size_t operands;
    struct weft_tensor *result;             /* the function fills its data */
    const double *parameter;
    size_t parameters;
    char *message;                          /* filled by the function on error: what went wrong */
    size_t message_bytes;
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

struct weft_custom {
    size_t size;
    const char *name;                       /* a letter, then letters, digits and _; up to 63 */
    void *user;                             /* passed to all functions below */
    int32_t least_operands, most_operands;  /* most_operands -1: any number */
    /* Computes the result. Returns 0, or another number for an error: then the run ends with WEFT_ERR_CUSTOM, and its
     * message names the node. */
    int (*run)(void *user, const struct weft_custom_call *call);
    /* Sets the type of the result, always the same for the same operands. Returns 0, or another number if operands or
     * parameters are wrong. NULL: the node states the type. */
    int (*type)(void *user, struct weft_custom_types *types);
    /* The layout that operand i, or for i = operands the result, must have. True: packed, with the axes in `ret_order`
     * from the outermost to the innermost. False: any strides will do, also 0 for a repeated axis. NULL: everything is
     * packed row-major. Values in other layouts are copied, by relayouts that pass propagate_memory_format inserts, or
     * within the call where the pass did not know. */
    bool (*layout)(void *user, size_t i, size_t operands, int rank, int *ret_order);
    /* The cost of a call, given tensors without data: arithmetic operations, and bytes read and written. NULL:
     * unknown. */
    void (*cost)(void *user, const struct weft_custom_call *call, double *ret_operations, double *ret_bytes);
    /* Sets further demands on operand i, or for i = operands on the result, if there are any. NULL: none. */
    void (*demand)(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret_demand);
};
/* Registers a function with a context for good; strings are copied. Call it before graphs that use the function are
 * evaluated or compiled: without it they can be read, printed and changed, but not run. A name can be used once. */
WEFT_API int weft_register(struct weft_context *context, const struct weft_custom *custom);

/* A framework with kernels of its own describes them, lets passes choose layouts and a kernel for each node, and reads
 * the graph back. Worked example: examples/own_kernels.c.
 *
 * A target of the caller's is the context's target plus the caller's kernels. With it, `propagate_memory_format`
 * chooses one of the kernels that fit a node; for a node that none fits, it uses weft's own costs. The graph then
 * names a node's kernel right of `!` and has `relayout` nodes where data must be converted. Relayouts of constants are
 * done once, before the first run, and count as free. weft cannot run such kernels: weft_compile refuses the target. */
struct weft_kernel {
    size_t size;
    const char *name;        /* letters, digits, _ and .; up to 63 */
    const char *op;          /* the op it computes, "conv" */
    void *user;              /* passed to all functions below, which may not change the graph */
    /* Can it compute this node? NULL: it can compute every node of its op. */
    bool (*fits)(void *user, const struct weft_graph *graph, weft_node node);
    /* The layout that operand i, or for i = operands + k result k, must have, as text: "{0 1/16 2 3 1%16}". Returning
     * NULL means any layout for an operand, row-major for a result. If the function is NULL: row-major everywhere. For
     * alignment see demand. */
    const char *(*layout)(void *user, const struct weft_graph *graph, weft_node node, size_t i);
    /* The time of a call in microseconds, without conversions, with symbols at their hints; not NULL. A kernel whose
     * cost is negative, NaN, or 10 seconds or more, or whose layouts cannot be parsed, is not used, and a remark says
     * so. */
    double (*cost)(void *user, const struct weft_graph *graph, weft_node node);
    /* Sets further demands on operand i, or for i = operands + k on result k. NULL: none. */
    void (*demand)(void *user, const struct weft_graph *graph, weft_node node, size_t i,
                   struct weft_demand *ret_demand);
};
/* Creates a target like the context's, without kernels yet, for graphs of this context. */
WEFT_API int weft_target_create(struct weft_context *context, struct weft_target **ret_target);
WEFT_API void weft_target_destroy(struct weft_target *target);
/* Adds a kernel; strings are copied. A name can be used once. */
WEFT_API int weft_target_add(struct weft_target *target, const struct weft_kernel *kernel);

struct weft_plan;
struct weft_execution;

struct weft_compile_options {
    size_t size;
    const struct weft_target *target; /* NULL: the context's */
    uint32_t flags;                   /* WEFT_COMPILE_*; others are WEFT_ERR_ARGUMENT */
    uint32_t reserved;
    int64_t constant_bytes;           /* weft_compile computes values that depend on constants alone once, where that
                                         saves time in runs; they may add so many bytes. 0: as many as the graph's
                                         constants have, those of f16 and bf16 counted as f32, plus 64 MiB; below
                                         0: none, each run computes them. Values at most 64 KiB larger than their
                                         operands are folded in any case and do not count */
};
#define WEFT_COMPILE_NO_PASSES 1u   /* plan the graph as it is, without passes */
#define WEFT_COMPILE_REFERENCE 2u   /* run every node in the reference evaluator: slow, for comparison */
#define WEFT_COMPILE_NO_WINOGRAD 4u /* compute 3x3 convolutions directly, up to two times slower. The default,
                                       Winograd's F(2x2,3x3), may give NaN where the direct sum is infinite */
#define WEFT_COMPILE_SHARE_RESULTS 8u /* do not copy a result that is a view of an input, of another result or of an
                                         intermediate value, if its layout fits the result's ({?}: any). weft_output
                                         then returns that memory, which changes with its owner or with the next run;
                                         a result to which a tensor is bound is copied all the same. A layout without
                                         strides ({1 0}; none: row-major) accepts any strides in that order, and
                                         repeated elements */
#define WEFT_COMPILE_WINOGRAD_4 16u /* use Winograd's F(4x4,3x3) for 3x3 convolutions where it is faster than the
                                       default F(2x2,3x3). Its rounding error is about five times that of the direct
                                       sum; an infinity or NaN in x makes NaNs of tiles of 4 x 4 results. Together
                                       with WEFT_COMPILE_NO_WINOGRAD: WEFT_ERR_ARGUMENT */
#define WEFT_COMPILE_KEEP_CONSTANTS 32u /* keep the elements of all constants, also of those that kernels read only in
                                          packed form, so that the plan's graph can be cloned, printed with its data
                                          and planned again: twice the memory for weights that passes computed */
#define WEFT_COMPILE_NO_FUSE 64u    /* a kernel for each node: groups in the graph are opened, and none are formed.
                                       Layouts and kernels are otherwise the same. For comparison */
#define WEFT_COMPILE_NO_COMPILER 128u /* always interpret groups; never start a C compiler */

/* Makes a plan. The graph is copied (weights are shared) and may be destroyed afterwards; so may the target. */
WEFT_API int weft_compile(const struct weft_graph *graph, const struct weft_compile_options *options,
                          struct weft_plan **ret_plan);
/* Waits for compiled code. A plan can run at once: its groups are interpreted at first and later run as compiled C
 * code, with the same bits. This function returns when all code that can be had is there, from the user's cache
 * (WEFT_CACHE_DIR) or from the system's C compiler (WEFT_CC), which takes some tenths of a second. Without this call
 * weft starts the compiler in the background after eight runs. Returns WEFT_OK also if there is no compiler:
 * weft_plan_compiled tells. May be called by any thread, also while the plan runs. */
WEFT_API int weft_plan_wait(const struct weft_plan *plan);
/* How many of the plan's groups have compiled code by now, and how many groups there are; *ret_reason: why others have
 * none, or NULL; the plan owns the text. Pointers may be NULL. */
WEFT_API int weft_plan_compiled(const struct weft_plan *plan, int32_t *ret_compiled, int32_t *ret_groups,
                                const char **ret_reason);
/* Drops the caller's reference to the plan, which is freed with its last execution. */
WEFT_API void weft_plan_destroy(struct weft_plan *plan);
/* The planned graph as text, with kernels and storage right of `!`. The caller frees it with weft_free_text. */
WEFT_API int weft_plan_print(const struct weft_plan *plan, char **ret_text);
/* The planned graph, for iteration and remarks; owned by the plan. Constants that passes computed and that kernels read
 * only in packed form have lost their elements (they print as a hash), unless WEFT_COMPILE_KEEP_CONSTANTS was given:
 * cloning such a graph gives WEFT_ERR_INVALID. */
WEFT_API const struct weft_graph *weft_plan_graph(const struct weft_plan *plan);

struct weft_port {
    size_t size;           /* set by the caller */
    const char *name;
    int32_t dtype;
    int32_t rank;
    int64_t extent[WEFT_MAX_RANK]; /* -1 where it depends on a symbol */
    int64_t stride[WEFT_MAX_RANK]; /* in elements: what a bound tensor must have; -1 where it depends on a symbol */
    const char *text;              /* the type with symbols and layout, "f32[N,3,240,320]"; lives with the plan */
};
WEFT_API size_t weft_plan_inputs(const struct weft_plan *plan);
WEFT_API size_t weft_plan_outputs(const struct weft_plan *plan);
WEFT_API int weft_plan_input(const struct weft_plan *plan, size_t i, struct weft_port *ret_port);
WEFT_API int weft_plan_output(const struct weft_plan *plan, size_t i, struct weft_port *ret_port);

/* Where a value of the planned graph is stored. Values in one storage share memory: a view and its operand, a part of a
 * concat and the whole, the old and the new value of a buffer that is updated in place. */
enum weft_memory {
    WEFT_MEMORY_NONE = 0,  /* never stored */
    WEFT_MEMORY_INPUT,     /* the caller's tensor of an input */
    WEFT_MEMORY_OUTPUT,    /* the memory of an output */
    WEFT_MEMORY_CONSTANT,  /* a constant, in its file or copied */
    WEFT_MEMORY_ARENA,     /* the arena of an execution */
};
struct weft_plan_value {
    size_t size;           /* set by the caller */
    const char *name;      /* as the planned graph prints it, without %; lives with the plan */
    const char *root;      /* the name of the value that the storage was made for: its own, that of an input, … */
    int32_t memory;        /* enum weft_memory */
    uint32_t storage;      /* equal numbers: the same storage. 0: none */
    int32_t port;          /* the number of that input or output */
    int32_t copies;        /* how many copies a run makes of it at its end, for outputs and mutable inputs */
    int32_t dtype, rank;
    int64_t extent[WEFT_MAX_RANK]; /* -1 where it depends on a symbol; so with strides and offset */
    int64_t stride[WEFT_MAX_RANK]; /* in elements, by logical axis */
    int64_t offset;                /* in elements, from the start of the storage */
};
/* Values of the planned graph, without those of bodies, in order of definition: i from 0 to the count - 1. */
WEFT_API size_t weft_plan_values(const struct weft_plan *plan);
WEFT_API int weft_plan_value(const struct weft_plan *plan, size_t i, struct weft_plan_value *ret_value);
/* Finds the value that has this name in the graph that was compiled, or the value by which passes replaced it, which
 * then has another name. WEFT_ERR_ARGUMENT, without a message, if passes removed it. */
WEFT_API int weft_plan_find(const struct weft_plan *plan, const char *name, struct weft_plan_value *ret_value);
/* The steps of a run in their order, with sizes at their hints; bodies of loops and branches are one step. Of a
 * group, only the values that nodes outside of it read are stored. */
struct weft_plan_step {
    size_t size;           /* set by the caller */
    const char *kernel;    /* "weft_conv_f32_direct__avx2"; lives with the plan, as the others */
    const char *value;     /* the value that it computes, as weft_plan_find takes it */
    const char *group;     /* the group that it computes, or NULL */
    int32_t nodes;         /* how many nodes of the planned graph that are; 0: a copy into a result */
    int32_t parts;         /* into how many parts its work is cut */
};
WEFT_API size_t weft_plan_steps(const struct weft_plan *plan);
WEFT_API int weft_plan_step(const struct weft_plan *plan, size_t i, struct weft_plan_step *ret_step);
/* The arena with sizes at their hints: blocks, each for one storage (weft_plan_value), which holds something that is
 * read between two steps. Blocks whose steps overlap do not overlap in memory. */
struct weft_plan_block {
    size_t size;           /* set by the caller */
    const char *value;     /* the value that it was made for; NULL: what the bodies of a loop or branch work in */
    uint32_t storage;      /* as in weft_plan_value */
    int32_t first, last;   /* steps, numbered as by weft_plan_step; both included. first is -1: from the beginning */
    int64_t offset, bytes; /* in the arena */
};
WEFT_API size_t weft_plan_blocks(const struct weft_plan *plan);
WEFT_API int weft_plan_block(const struct weft_plan *plan, size_t i, struct weft_plan_block *ret_block);
/* In how many places of the plan data changes its storage order, with symbols at their hints: copies, and operands
 * that a kernel reads in another order than it writes its result. Packing, when the plan is made or within products
 * and convolutions, is not counted. */
WEFT_API size_t weft_plan_relayouts(const struct weft_plan *plan);

/* Executions of one plan may be created, run and destroyed by different threads at once. */
WEFT_API int weft_execution_create(const struct weft_plan *plan, struct weft_execution **ret_execution);
WEFT_API void weft_execution_destroy(struct weft_execution *execution);
/* The next runs read input i from `tensor`, whose data must stay valid until then. Dtype, rank, extents and strides
 * must be those that the plan states: otherwise WEFT_ERR_BINDING and a message that names the input, and the tensor
 * that was bound before stays bound. weft_run compares extents and strides, when all inputs are bound and sizes are
 * known. */
WEFT_API int weft_bind_input(struct weft_execution *execution, size_t i, const struct weft_tensor *tensor);
/* The next runs write output i to the caller's memory, which is checked like an input's; its address must be aligned
 * as the output's layout states (align=). Unbound outputs are stored in the execution; a `tensor` of NULL unbinds. If
 * an extent depends on data, the tensor must have the maximum extent, and weft_output returns a dense tensor with the
 * actual extents. */
WEFT_API int weft_bind_output(struct weft_execution *execution, size_t i, const struct weft_tensor *tensor);
/* Runs the plan. Memory is allocated when sizes are new; a second run with the same sizes allocates nothing, except in
 * steps of the reference evaluator (weft_statistics.fallbacks). Memory that is written (bound outputs, mutable inputs)
 * may not overlap any other bound tensor: WEFT_ERR_BINDING. */
WEFT_API int weft_run(struct weft_execution *execution);
/* Ends the current run with WEFT_ERR_CANCELLED, or the next one if none is in progress. May be called from another
 * thread or a signal handler, as long as the execution exists; returns at once. The run stops between steps, between
 * iterations of a loop, or between the parts of a step that several threads share; a step of one thread is finished
 * first. Memory that the run writes may hold a part of its results. The execution can run again. */
WEFT_API int weft_cancel(struct weft_execution *execution);
/* Output i of the last run; the data is valid until the next run or until the execution is destroyed.
 * WEFT_ERR_ARGUMENT, without a message, if there is no such output or nothing has run. */
WEFT_API int weft_output(const struct weft_execution *execution, size_t i, struct weft_tensor *ret_tensor);
/* As weft_last_error, for calls on this execution; the context's callback is not called for them. */
WEFT_API const char *weft_execution_error(const struct weft_execution *execution);

struct weft_statistics {
    size_t size;            /* set by the caller */
    int64_t arena_bytes;    /* memory for intermediate values of the execution */
    int64_t constant_bytes; /* packed, copied or computed constants that the plan holds besides the files */
    int32_t kernels;        /* steps that do work */
    int32_t relayouts;      /* of these, steps that only change a layout */
    int32_t fallbacks;      /* of these, steps in the reference evaluator */
    int32_t workers;        /* threads */
    int64_t fallback_ns;    /* of the last timed run (weft_run_timed): time in the reference evaluator, */
    int64_t relayout_ns;    /* in relayouts, */
    int64_t total_ns;       /* in all kernels */
    int64_t copied_bytes;   /* bytes that steps write in a run that only move elements: copies, concats, paddings */
    int32_t inside;         /* how many values are computed in their place in a concat or padding, */
    int32_t overwriting;    /* in place over the value that they are the last reader of, */
    int32_t updating;       /* or in the `mut` parameter whose new value they are */
    int64_t plain_ns;       /* of the last timed run: time in plain C kernels (__ref), for ops without a faster one */
};
WEFT_API int weft_execution_statistics(const struct weft_execution *execution, struct weft_statistics *ret_statistics);
/* Runs once and times each kernel. For each step `fn` gets the kernel's name, the value that it computes, and ns. */
WEFT_API int weft_run_timed(struct weft_execution *execution,
                            void (*fn)(void *user, const char *kernel, const char *value, int64_t ns), void *user);

/* Evaluates the graph by the reference evaluator, in double or exact arithmetic, rounding at each value: the definition
 * of correct. Inputs are in parameter order. If an output's `data` is set, it has room for the dense row-major result,
 * and the tensor states its dtype, rank and extents; if it is NULL, memory is allocated, which the caller frees with
 * weft_tensor_free. */
WEFT_API int weft_evaluate(const struct weft_graph *graph, const struct weft_tensor *inputs, size_t input_count,
                           struct weft_tensor *outputs, size_t output_count);
WEFT_API void weft_tensor_free(struct weft_context *context, struct weft_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
