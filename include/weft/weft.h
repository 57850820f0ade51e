/* SPDX-License-Identifier: Apache-2.0 */
/* weft.h: the public interface of libweft.
 *
 *   context ──► graph (text, ONNX file or builder) ──► passes ──► plan ──► execution (one per thread) ──► run
 *
 * Conventions, true for every function here unless its comment says otherwise:
 *  - It returns WEFT_OK (0) or a negative weft_status. Results come last, in ret_x, and are untouched on error.
 *  - The library never prints, aborts or exits. What went wrong is delivered through the context's callback, message by
 *    message, and the joined text of the last failing call is kept: weft_last_error().
 *  - A context, graph, plan, execution or ret_x that is NULL is WEFT_ERR_ARGUMENT, with a message if another argument
 *    leads to a context; functions that return counts or pointers then return 0 or NULL, those that return messages "".
 *    What is destroyed, closed or freed may be NULL.
 *  - Strings and arrays that are passed in are copied; pointers that are returned stay owned by the object they came
 *    from.
 *  - Objects are reference-counted: an execution holds a reference to its plan; plans, graphs, targets, returned texts
 *    and returned tensors hold one to their context. weft_close and the functions that destroy or free drop the
 *    caller's reference, in any order and on any thread; an object is freed with its last reference. So executions
 *    may run after weft_plan_destroy and weft_close. The caller may not use a pointer after dropping it, nor drop an
 *    object while one of his calls uses it. The caller's allocator, executor, `diagnose_user` and custom functions
 *    must stay valid until the context is freed.
 *  - Extents and strides count elements; sizes named bytes count bytes. Axis 0 is the outermost logical axis.
 *  - A context with its graphs is used by one thread at a time. A plan is immutable: any number of threads may run
 *    executions of one plan at once, each thread an execution of its own.
 *  - After fork, the child may use every object but those that another thread was using at that moment, whose state is
 *    undefined. OpenMP's threads do not exist in the child: there, runs on the default executor have one worker.
 *  - Structs of options start with their size, so that a newer library accepts an older caller's struct: set
 *    `.size = sizeof(struct weft_…)` and leave at zero what you do not care about. A size of 0 is WEFT_ERR_ARGUMENT. */
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

#define WEFT_VERSION "0.1.0"
#define WEFT_MAX_RANK 8

enum weft_status {
    WEFT_OK = 0,
    WEFT_ERR_NOMEM = -1,       /* the allocator returned NULL; nothing is lost */
    WEFT_ERR_ARGUMENT = -2,    /* a call's arguments do not fit its contract */
    WEFT_ERR_SYNTAX = -3,      /* text or a file that cannot be read as what it claims to be */
    WEFT_ERR_INVALID = -4,     /* readable, but no legal graph: types, shapes, attributes */
    WEFT_ERR_UNSUPPORTED = -5, /* legal, but uses what weft does not have (all such ops are listed at once) */
    WEFT_ERR_IO = -6,          /* the operating system refused a file */
    WEFT_ERR_BINDING = -7,     /* a tensor given to an execution does not fit the plan */
    WEFT_ERR_CUSTOM = -8,      /* a function of the caller's (weft_register) reported an error */
    WEFT_ERR_CANCELLED = -9,   /* weft_cancel ended a run */
};
/* A short constant English text for a status, never NULL. */
WEFT_API const char *weft_status_text(int status);
/* The version of the library that is loaded, to be compared with WEFT_VERSION. */
WEFT_API const char *weft_version(void);

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
/* Size of one element in bits. Of i4 and u4 it is 4: two to a byte, the first in its lower half; half a byte that is
 * left over is 0 in results. */
WEFT_API unsigned weft_dtype_bits(int dtype);

/* A strided array in the caller's memory. Broadcast axes have stride 0; strides are never negative. */
struct weft_tensor {
    void *data;
    int32_t dtype;
    int32_t rank;
    int64_t extent[WEFT_MAX_RANK];
    int64_t stride[WEFT_MAX_RANK]; /* in elements */
};

/* --- context ------------------------------------------------------------------------------------------------------ */

struct weft_context;
struct weft_target; /* what code is made for: CPU features, caches, threads */

/* Both may be called from any thread. `allocate` returns memory aligned to `align` (a power of two) or NULL. */
struct weft_allocator {
    size_t size;
    void *user;
    void *(*allocate)(void *user, size_t bytes, size_t align);
    void (*release)(void *user, void *memory, size_t bytes);
};

#define WEFT_EXECUTOR_CONCURRENT 1u /* `run` promises that all n calls run at the same time */

/* Where parallel work goes. `run` calls fn(arg, i) once for each i in [0, n), n <= workers(user), and returns when all
 * have returned. Executions on several threads, and contexts that share an executor, may call it at the same time.
 * Without WEFT_EXECUTOR_CONCURRENT weft forks once per kernel, and waits inside fn for nothing but calls of the same
 * fork that have begun. */
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
    const char *cpu; /* "avx2", "avx512", "baseline": mask over what there is; NULL: WEFT_CPU, else everything */
    int32_t threads; /* upper bound on workers; 0: what the executor and the container allow */
    int32_t reserved;
    const char *prices; /* a file of `weft calibrate`, by which layouts are chosen; "": the prices that weft ships;
                           NULL: WEFT_PRICES, else what is in the user's cache for this machine, else those */
};

/* Opens a context; `options` may be NULL. What is wrong with them is WEFT_ERR_ARGUMENT, with a message to `diagnose`.
 * Prices that were asked for and are damaged, or another machine's, are WEFT_ERR_SYNTAX, with messages to `diagnose`;
 * of those in the cache that is a warning, and the shipped ones are used; so it is of this machine's at other levels
 * than `cpu`. Plans are made for the caches of this machine, or for those that WEFT_CACHES names: 32K,1M,32M (data
 * caches per core, per core, shared; the last may be 0); anything else in it is WEFT_ERR_ARGUMENT. */
WEFT_API int weft_open(const struct weft_context_options *options, struct weft_context **ret_context);
/* Drops the caller's reference to the context; graphs, plans and executions made from it stay usable. */
WEFT_API void weft_close(struct weft_context *context);
/* All errors of the last failing call on this context (or on its graphs), one a line as `file:line:column: message`;
 * "" when none failed. Valid until the next call on the context. Calls that only look (weft_…_read, _find, _get) and
 * those on plans and executions leave no message here. */
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
/* An input that is the same in every run. weft compiles for shapes, so where an ONNX model takes a shape, the number of
 * repeats or an axis as an input, its value has to be known when the model is loaded. */
struct weft_fixed_input {
    const char *name;
    const struct weft_tensor *tensor; /* of the type that the model declares, packed row-major; copied */
};
/* weft_load, but the inputs that are named become constants, and symbols in their declared shapes the sizes that they
 * have. Of ONNX models only. */
WEFT_API int weft_load_fixed(struct weft_context *context, const char *path, const struct weft_fixed_input *fixed,
                             size_t count, struct weft_graph **ret_graph);
/* Parses the first top-level graph of a text (language: ir/FORMAT.md). `name` stands in messages, and references to
 * files are relative to its folder. */
WEFT_API int weft_parse(struct weft_context *context, const char *text, size_t bytes, const char *name,
                        struct weft_graph **ret_graph);
/* A copy of the whole graph, which must be valid. */
WEFT_API int weft_graph_clone(const struct weft_graph *graph, struct weft_graph **ret_graph);
/* Releases a graph with its bodies. A body dies with its parent: given one, or NULL, this does nothing. */
WEFT_API void weft_graph_destroy(struct weft_graph *graph);
/* The graph as text that parses back to the same graph. The caller frees it with weft_free_text. */
WEFT_API int weft_print(const struct weft_graph *graph, char **ret_text);
/* Checks every rule of the language; WEFT_ERR_INVALID and all findings if one is broken. */
WEFT_API int weft_validate(struct weft_graph *graph);

/* --- graphs: the builder ------------------------------------------------------------------------------------------ */

/* A value of one graph, as the functions here return it: of another graph's, a body's parent's included, it is refused.
 * id 0 is "none". In one graph ids differ; `graph` is a number that no other graph of the process has. */
typedef struct { uint32_t id, graph; } weft_val;
typedef struct { int64_t bits; } weft_dim;  /* an extent: a constant or an expression over one graph's symbols */

/* One attribute of an op; `name` as in `weft opt --list-ops`. Set the member that the attribute's kind asks for, and
 * leave the others at zero: anything else is refused. A list that has no default may be empty, but `integers` or
 * `reals` may not be NULL then. */
struct weft_attribute {
    const char *name;
    int64_t integer;
    double real;
    const char *word;            /* words and dtypes */
    const weft_dim *integers;    /* lists of integers, `count` long */
    const double *reals;
    size_t count;
    struct weft_graph *graph;    /* a body, made with weft_graph_create_body */
};

WEFT_API int weft_graph_create(struct weft_context *context, const char *name, struct weft_graph **ret_graph);
/* A subgraph for the bodies of `if` and `loop`; owned by `parent`, shares its symbols, sees none of its values. Once a
 * node of `parent` uses it, it cannot change any more. */
WEFT_API int weft_graph_create_body(struct weft_graph *parent, const char *name, struct weft_graph **ret_graph);

/* A constant extent. Extents, and integers that are attributes, go up to 2^62 - 1 either way: what is beyond becomes
 * that. */
WEFT_API weft_dim weft_extent(int64_t value);
/* The symbol `name` (letters, digits, _ and ., first a letter or _), made on first use, in [low, high], planned for
 * `hint` (0: none); high is at most 2^31 - 1. Bounds of a known symbol are narrowed, and its hint with them. */
WEFT_API int weft_symbol(struct weft_graph *graph, const char *name, int64_t low, int64_t high, int64_t hint,
                         weft_dim *ret_dim);
/* a op b for op in + - * / (floor) % m (min) M (max). */
WEFT_API int weft_extent_combine(struct weft_graph *graph, char op, weft_dim a, weft_dim b, weft_dim *ret_dim);

/* Adds an input. Its layout is dense row-major unless set with weft_set_layout. `name` must be new or NULL. */
WEFT_API int weft_param(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
                        weft_val *ret_value);
/* As weft_param, for a buffer that the run updates: its old value is an operand like any other, and weft_return_mut
 * names its new one. Where nobody reads the old value later, the new one is computed over it, so that a run that fails
 * may leave a part of it there; else it is copied at the end. Only a whole graph has such parameters, no body. */
WEFT_API int weft_param_mut(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
                            weft_val *ret_value);
/* Adds a dense row-major constant; the data is copied. It may be NULL only where an extent is 0. */
WEFT_API int weft_constant(struct weft_graph *graph, int dtype, int rank, const int64_t *extent, const void *data,
                           weft_val *ret_value);
/* A constant whose elements all equal `value`, rounded to a float dtype; an integer dtype must have it as an element.
 * It takes no memory. */
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
    int32_t rank;                  /* dtype 0: inferred; of `custom`, by the function's own rule. Where it is stated, */
    const weft_dim *extent;        /* but follows from the operands, it has to be what follows */
};
/* Appends a node after all others; `ret_results` takes as many values as the op has results. */
WEFT_API int weft_append(struct weft_graph *graph, const struct weft_op *op, weft_val *ret_results);
/* Declares the results of the graph, in order; a second call replaces the first. */
WEFT_API int weft_return(struct weft_graph *graph, const weft_val *values, size_t count);
/* As weft_return; result i is also the new value of the `mut` parameter updated[i], of the same type, where that is not
 * none (id 0). Each `mut` parameter gets exactly one. Where no tensor is bound to such a result and it was computed in
 * place, weft_output shows the parameter's buffer. */
WEFT_API int weft_return_mut(struct weft_graph *graph, const weft_val *values, const weft_val *updated, size_t count);
/* Sets a value's allocation domain from its text form, e.g. "{0 2 3 1}" or "{0 1 | 4096 1}". Of an intermediate value
 * it is required, row-major ("{0 1 2 3}") as any other order; without this call weft chooses how it lies. */
WEFT_API int weft_set_layout(struct weft_graph *graph, weft_val value, const char *layout);

/* --- graphs: reading ---------------------------------------------------------------------------------------------- */

typedef struct { uint32_t id, graph; } weft_node; /* a node of one graph, as a value is one; id 0 is "none" */

/* Inputs and results in order; none (id 0) where there is no i-th. Counts are 0 for a graph that is NULL. */
WEFT_API size_t weft_graph_params(const struct weft_graph *graph);
WEFT_API weft_val weft_graph_param(const struct weft_graph *graph, size_t i);
WEFT_API size_t weft_graph_returns(const struct weft_graph *graph);
WEFT_API weft_val weft_graph_return(const struct weft_graph *graph, size_t i);
/* The node that is executed after `node`; after none the first, after the last none. Nodes of bodies are nodes of the
 * bodies' graphs. */
WEFT_API weft_node weft_next_node(const struct weft_graph *graph, weft_node node);

struct weft_node_facts {
    size_t size;           /* set by the caller */
    const char *op;        /* "conv" */
    const char *kernel;    /* the name right of `!`, or NULL */
    const char *group;     /* the name of `fuse @group { … }` around it, or NULL */
    size_t operands, results;
    const char *in;        /* "%c": in the memory of that value it is computed (pass mark_aliases), or NULL */
    const char *group_kernel; /* the name right of the group's `!`, or NULL */
};
WEFT_API int weft_node_read(const struct weft_graph *graph, weft_node node, struct weft_node_facts *ret_facts);
/* None beyond the last. */
WEFT_API weft_val weft_node_operand(const struct weft_graph *graph, weft_node node, size_t i);
WEFT_API weft_val weft_node_result(const struct weft_graph *graph, weft_node node, size_t i);
/* An attribute by its name: as the node states it, else as its default says; a list that is not stated has count 0.
 * Extents in `integers` are of the graph; an integer that depends on a symbol is given at its hint. WEFT_ERR_ARGUMENT
 * where the op has no such attribute, or the node neither states it nor has it a default. */
WEFT_API int weft_node_attribute(const struct weft_graph *graph, weft_node node, const char *name,
                                 struct weft_attribute *ret_attribute);

/* How a value is stored: axes from the outermost to the innermost, each a digit of the index i along a logical axis:
 * (i / div) % mod, or i / div where mod is 0. */
#define WEFT_MAX_STORAGE 16
struct weft_storage_axis {
    int32_t axis, reserved;
    int64_t div, mod;
    int64_t stride;        /* in elements, symbols at their hints */
};
struct weft_value_facts {
    size_t size;           /* set by the caller */
    const char *name;      /* without %; NULL: it is numbered */
    weft_node node;        /* which computes it; none: an input */
    int32_t dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
    int64_t hint[WEFT_MAX_RANK]; /* the extents, symbols at their hints */
    int32_t decided;       /* 0: it may lie anyhow ({?}), and there are no storage axes */
    int32_t storage_axes;
    struct weft_storage_axis storage[WEFT_MAX_STORAGE];
    int64_t offset;        /* of the first element, in elements */
    size_t uses;           /* operands that are this value, and results of the graph */
};
WEFT_API int weft_value_read(const struct weft_graph *graph, weft_val value, struct weft_value_facts *ret_facts);

/* --- passes ------------------------------------------------------------------------------------------------------- */

/* Runs one pass by its name, with - or _ ("fold_batchnorm"; `weft opt --list-passes`). `target` NULL: the context's.
 * Returns 1 if the graph changed, 0 if not, or a negative status: unknown name, or a graph that is not valid. */
WEFT_API int weft_run_pass(struct weft_graph *graph, const char *name, const struct weft_target *target);
/* Runs the default pipeline; results as above. What lies in blocks becomes arrays of these at its end, unless the
 * target has kernels of the caller's. */
WEFT_API int weft_run_pipeline(struct weft_graph *graph, const struct weft_target *target);

/* One explained decision. */
struct weft_remark {
    const char *who;     /* the pass or engine */
    const char *where;   /* the value it is about */
    const char *verdict; /* "done", "refused", "chosen", ... */
    const char *reason;  /* one sentence, with its numbers */
};
WEFT_API size_t weft_remark_count(const struct weft_graph *graph);
/* Remark i in order of decision; strings live as long as the graph. */
WEFT_API int weft_remark_get(const struct weft_graph *graph, size_t i, struct weft_remark *ret_remark);

/* --- access: how wide a value can be read or written -------------------------------------------------------------- */

/* A kernel walks one value in the order in which it is stored and needs elements of another one, or of the same,
 * through the ops between them. Cut the walk into blocks of k elements: a block is good if what it needs of the value
 * is k neighbours in memory in rising order that begin at a multiple of k, or nothing at all (as behind a padding).
 * Where several ways lead from one to the other, each must be good. A reduction of at most 16 terms is as many ways;
 * longer ones, contractions, scans and the like are loops of their own, and no ways. Sizes that are symbols count as
 * hinted. */
struct weft_access {
    size_t size;
    weft_val value;
    weft_val along;         /* what is walked; none (id 0): the value itself */
    uint32_t axes;          /* bit i: blocks reach along axis i of `along`, which must be its innermost; 0: all axes */
    uint32_t align;         /* bytes to which the buffer of the value is known to be aligned, and elements from there */
    int64_t offset;         /* to the first one; align 0: see `width` */
};
struct weft_access_width {
    int64_t width;          /* the largest power of two k of at most 16 bytes with good blocks only, and aligned places:
                             * counted from what `align` says, else from a first element that lies as its layout says
                             * (align=), or where weft allocates, at 64 bytes; a parameter without align= at its size */
    int64_t inner;          /* the largest k with good blocks only, places counted as if the value were dense */
};
/* WEFT_ERR_ARGUMENT if neither of the values is computed from the other by ways that can be walked. Both numbers are 0
 * if one of them has no elements. What is promised is true; 1 where it would take too long to find out more. */
WEFT_API int weft_access(const struct weft_graph *graph, const struct weft_access *access,
                         struct weft_access_width *ret_width);

/* --- custom ops: functions of the caller's ------------------------------------------------------------------------ */

/* `%y: f32[N] = custom %a, %b function=NAME parameters=[0.5]` calls the function that is registered as NAME. Worked
 * example: examples/custom.c. What weft asks of a function:
 *  - Its result follows from operands and parameters. Equal calls may be merged, unused ones left out; none is made
 *    while a graph is compiled.
 *  - `run`, `layout` and `cost` may be called by several threads at once, for one node or many; `type` only by the
 *    thread that uses the context. `user` is the function's own affair; it must live as long as anything that was made
 *    from the context.
 *  - It may not call weft on the context, but for weft_extent and weft_extent_combine in `type`. */

/* What the rule for the type of a result sees, and says. */
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
    struct weft_custom_type result;         /* to be filled */
    char *message;                          /* to be filled on refusal: why */
    size_t message_bytes;
};

/* One call. Tensors are in the layouts that the layout rule asks for. */
struct weft_custom_call {
    size_t size;
    const char *where;                      /* the value that is computed, "%y" */
    const struct weft_tensor *operand;      /* only read */
    size_t operands;
    struct weft_tensor *result;             /* its data is to be filled */
    const double *parameter;
    size_t parameters;
    char *message;                          /* to be filled on error: what went wrong */
    size_t message_bytes;
};

/* How a function or kernel reads an operand or writes a result, beyond the layout that it asks for. `along`: it goes
 * element by element along this axis, and to the next such column only then; where the rows that it crosses stand a
 * multiple of the cache's sets apart, weft may store them a cache line longer (pass pad_strides), if any strides will
 * do. `align`: the address of the first element is a multiple of so many bytes, a power of two up to 4096; what is not
 * known to be is copied: an operand by pass align_buffers, else for the call; a result of a function behind the call.
 * Of a kernel's result a remark says so. Anything else is as good as nothing. */
struct weft_demand {
    size_t size;
    int32_t along; /* an axis; -1: as stored */
    int32_t align; /* 0: any address */
};

struct weft_custom {
    size_t size;
    const char *name;                       /* a letter, then letters, digits and _; up to 63 */
    void *user;                             /* handed to all of these */
    int32_t least_operands, most_operands;  /* most -1: any number */
    /* Computes the result. 0, or any other number for an error: the run ends with WEFT_ERR_CUSTOM, and its message
     * names the node. */
    int (*run)(void *user, const struct weft_custom_call *call);
    /* The type of the result; 0, or any other number where operands or parameters are wrong. The same for the same
     * operands every time. NULL: the node states its type, whatever it is. */
    int (*type)(void *user, struct weft_custom_types *types);
    /* The layout that operand i, or for i = operands the result, must have: true, and in `ret_order` its axes from the
     * outermost to the innermost, packed without gaps; false: any strides will do, also 0 for what repeats. NULL:
     * everything is packed row-major. What lies otherwise is copied, by relayouts that pass propagate_memory_format
     * puts in; what it could not know, within the call. */
    bool (*layout)(void *user, size_t i, size_t operands, int rank, int *ret_order);
    /* What a call costs, for tensors without data: arithmetic operations, and bytes read and written. NULL: unknown. */
    void (*cost)(void *user, const struct weft_custom_call *call, double *ret_operations, double *ret_bytes);
    /* How it goes through operand i, or for i = operands through the result; to be filled where there is something to
     * say. NULL: nothing. */
    void (*demand)(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret_demand);
};
/* Makes a function known to a context, for good; strings are copied. Call it before graphs that use the function are
 * evaluated or compiled: without it they can be read, printed and changed, but not run. A name is registered once. */
WEFT_API int weft_register(struct weft_context *context, const struct weft_custom *custom);

/* --- kernels of the caller's: layouts for a framework that computes by itself ------------------------------------- */

/* A framework that has kernels of its own describes them as alternatives, lets passes decide layouts and which of them
 * computes what, and reads the graph back. Worked example: examples/own_kernels.c.
 *
 * A target of the caller's is the context's, with kernels. Under it `propagate_memory_format` takes for a node one of
 * the kernels that fit it, where there are any, and weft's own prices else. The kernel of a node is named right of `!`,
 * and `relayout` nodes stand where data has to be converted: of constants once, before the first run, which costs
 * nothing here. Plans know no such kernels: weft_compile refuses the target. */
struct weft_kernel {
    size_t size;
    const char *name;        /* letters, digits, _ and .; up to 63 */
    const char *op;          /* the op it computes, "conv" */
    void *user;              /* handed to all of these, which may not change the graph */
    /* Can it compute this node? NULL: every node of its op. */
    bool (*fits)(void *user, const struct weft_graph *graph, weft_node node);
    /* The layout that operand i has to have, or for i = operands + k result k, as text: "{0 1/16 2 3 1%16}". NULL: any
     * for an operand, row-major for a result. The function NULL: row-major everywhere. No alignment: see demand. */
    const char *(*layout)(void *user, const struct weft_graph *graph, weft_node node, size_t i);
    /* What a call takes, in microseconds, without conversions, at the hints of symbols; not NULL. A kernel whose cost
     * is negative, no number, or 10 seconds and more, or whose layouts cannot be read, is not taken, says a remark. */
    double (*cost)(void *user, const struct weft_graph *graph, weft_node node);
    /* How it goes through operand i, or for i = operands + k result k; as above. NULL: nothing. */
    void (*demand)(void *user, const struct weft_graph *graph, weft_node node, size_t i,
                   struct weft_demand *ret_demand);
};
/* A target with what the context's target has and no kernels yet. It is for graphs of this context. */
WEFT_API int weft_target_create(struct weft_context *context, struct weft_target **ret_target);
WEFT_API void weft_target_destroy(struct weft_target *target);
/* Adds a kernel; strings are copied. A name is used once. */
WEFT_API int weft_target_add(struct weft_target *target, const struct weft_kernel *kernel);

/* --- plan and execution ------------------------------------------------------------------------------------------- */

struct weft_plan;
struct weft_execution;

struct weft_compile_options {
    size_t size;
    const struct weft_target *target; /* NULL: the context's */
    uint32_t flags;                   /* WEFT_COMPILE_*; others are WEFT_ERR_ARGUMENT */
    uint32_t reserved;
    int64_t constant_bytes;           /* Bytes that may be added by what constants alone decide, which weft_compile
                                         computes once where that saves time in runs. 0: as many as the graph's
                                         constants have, and 64 MiB; below 0: none, each run computes them.
                                         Passes fold values of up to 64 KiB more than they are computed from
                                         in any case: those do not count */
};
#define WEFT_COMPILE_NO_PASSES 1u   /* plan the graph as it stands */
#define WEFT_COMPILE_REFERENCE 2u   /* every node by the reference evaluator: slow, for comparison */
#define WEFT_COMPILE_NO_WINOGRAD 4u /* 3x3 convolutions by their formula, up to two times slower: where one gives an
                                       infinity, the transforms that are used otherwise may give NaN */
#define WEFT_COMPILE_SHARE_RESULTS 8u /* what is a view of an input, of another result or of what is computed on the
                                         way, and stored as that result has to be or may be ({?}), is not copied, unless
                                         a tensor is bound to it: weft_output tells where it is, and it changes when
                                         that memory does, or with the next run. An order
                                         without strides ({1 0}; none: row-major) is met by any strides that fall in
                                         it, and by repeated elements */
#define WEFT_COMPILE_WINOGRAD_4 16u /* 3x3 convolutions by Winograd's F(4x4,3x3) where it pays: faster than what is used
                                       otherwise (F(2x2,3x3)), but with a rounding error about five times that of the
                                       formula; an infinity or NaN in x makes NaNs of tiles of 4 x 4 results. Not
                                       with WEFT_COMPILE_NO_WINOGRAD: WEFT_ERR_ARGUMENT */
#define WEFT_COMPILE_KEEP_CONSTANTS 32u /* keeps the elements of all constants, also of those that are only packed, so
                                          that the plan's graph can be cloned, printed with its data and planned
                                          again: twice the memory for weights that passes computed */
#define WEFT_COMPILE_NO_FUSE 64u    /* each node by a kernel of its own: groups that the graph has are opened, and none
                                       are formed. The same layouts and kernels else, for comparison */
#define WEFT_COMPILE_NO_COMPILER 128u /* groups are interpreted for ever, and no C compiler is started */

/* Plans the graph. The graph is copied (weights are shared) and may be destroyed afterwards; so may a target. */
WEFT_API int weft_compile(const struct weft_graph *graph, const struct weft_compile_options *options,
                          struct weft_plan **ret_plan);
/* A plan runs at once; its groups are interpreted at first, and later run as C code that a compiler made of them, with
 * the same bits. This returns when all such code is there that there can be: from the user's cache (WEFT_CACHE_DIR), or
 * from the system's C compiler (WEFT_CC), which takes some tenths of a second. Without this call compilers start beside
 * the plan's runs, once it has had eight. WEFT_OK also where there is no compiler: weft_plan_compiled says what came
 * of it. Any thread, also while the plan runs. */
WEFT_API int weft_plan_wait(const struct weft_plan *plan);
/* How many of its groups have compiled code by now, of how many; *ret_reason: why others have none, or NULL. The text
 * is the plan's. Pointers may be NULL. */
WEFT_API int weft_plan_compiled(const struct weft_plan *plan, int32_t *ret_compiled, int32_t *ret_groups,
                                const char **ret_reason);
/* Drops the caller's reference to the plan, which is freed with its last execution. */
WEFT_API void weft_plan_destroy(struct weft_plan *plan);
/* The planned graph as text: kernels and places right of `!`. Freed with weft_free_text. */
WEFT_API int weft_plan_print(const struct weft_plan *plan, char **ret_text);
/* The planned graph, for iteration and remarks; owned by the plan. Constants that passes computed and that are only
 * packed have lost their elements (printed as their hash), unless WEFT_COMPILE_KEEP_CONSTANTS was given: a clone of
 * such a graph is WEFT_ERR_INVALID. */
WEFT_API const struct weft_graph *weft_plan_graph(const struct weft_plan *plan);

struct weft_port {
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

/* Where a value of the planned graph lives. Values in one storage share memory: a view and what it is a view of, a part
 * of a concat and the whole, old and new value of a buffer that is updated in place. */
enum weft_memory {
    WEFT_MEMORY_NONE = 0,  /* never stored */
    WEFT_MEMORY_INPUT,     /* the caller's, of an input */
    WEFT_MEMORY_OUTPUT,    /* an output's */
    WEFT_MEMORY_CONSTANT,  /* a constant's, in its file or copied */
    WEFT_MEMORY_ARENA,     /* an execution's */
};
struct weft_plan_value {
    const char *name;      /* of the value as the planned graph prints it, without %; lives with the plan */
    const char *root;      /* of the value that the storage was made for: its own name, that of an input, … */
    int32_t memory;        /* enum weft_memory */
    uint32_t storage;      /* equal numbers: one storage. 0: none */
    int32_t port;          /* the number of that input or output */
    int32_t copies;        /* made of it at the end of a run, for outputs and mutable inputs: its home is not theirs */
    int32_t dtype, rank;
    int64_t extent[WEFT_MAX_RANK]; /* -1 where it depends on a symbol; so with strides and offset */
    int64_t stride[WEFT_MAX_RANK]; /* in elements, by logical axis */
    int64_t offset;                /* in elements, from where the storage begins */
};
/* Values of the planned graph, without those of bodies, in order of definition: i from 0 to the count. */
WEFT_API size_t weft_plan_values(const struct weft_plan *plan);
WEFT_API int weft_plan_value(const struct weft_plan *plan, size_t i, struct weft_plan_value *ret_value);
/* The value that has this name in the graph that was compiled, or the one that passes put in its place: then with a
 * name of its own. WEFT_ERR_ARGUMENT, without a message, where passes left nothing of it. */
WEFT_API int weft_plan_find(const struct weft_plan *plan, const char *name, struct weft_plan_value *ret_value);
/* Places of the plan where data changes the order in which it is stored, at the sizes of the hints: copies that do, and
 * operands that a kernel reads in another order than it writes its result. Not counted: what is packed when the plan is
 * made, and packing within products and convolutions. */
WEFT_API size_t weft_plan_relayouts(const struct weft_plan *plan);

/* Executions of one plan may be created, run and destroyed by different threads at once. */
WEFT_API int weft_execution_create(const struct weft_plan *plan, struct weft_execution **ret_execution);
WEFT_API void weft_execution_destroy(struct weft_execution *execution);
/* Input i is read from `tensor` at the next runs; its data must stay valid until then. The dtype, rank, extents and the
 * layout that the plan states must fit: otherwise WEFT_ERR_BINDING and a message that names the input. Extents and
 * strides are compared by weft_run, when all inputs are bound and sizes known. */
WEFT_API int weft_bind_input(struct weft_execution *execution, size_t i, const struct weft_tensor *tensor);
/* Output i is written to the caller's memory, which is checked as an input's is, at an address as its layout promises
 * (align=). Unbound outputs live in the execution; a `tensor` of NULL unbinds. Where
 * an extent depends on data, the tensor's is the most that it can be, and what weft_output returns is dense in the
 * extents that came out. */
WEFT_API int weft_bind_output(struct weft_execution *execution, size_t i, const struct weft_tensor *tensor);
/* Computes everything. Memory is reserved when sizes are new; a second run with the same sizes allocates nothing,
 * except in steps of the reference evaluator (weft_statistics.fallbacks). Memory that is written (bound outputs,
 * mutable inputs) may not overlap any other bound tensor: WEFT_ERR_BINDING. */
WEFT_API int weft_run(struct weft_execution *execution);
/* Ends the run that is under way with WEFT_ERR_CANCELLED, or the next one if none is. Called from another thread or a
 * signal handler, while the execution is there; returns at once. It is seen between steps, between trips of a loop and
 * between the parts of a step that several workers share; a step that one worker does is finished first. Memory that
 * the run writes may hold a part of its results. The execution can run again. */
WEFT_API int weft_cancel(struct weft_execution *execution);
/* Output i of the last run; the data is valid until the next run or the execution's end. WEFT_ERR_ARGUMENT, without a
 * message, where there is no such output or nothing has run. */
WEFT_API int weft_output(const struct weft_execution *execution, size_t i, struct weft_tensor *ret_tensor);
/* As weft_last_error, for calls on this execution; the context's callback is not called for them. */
WEFT_API const char *weft_execution_error(const struct weft_execution *execution);

struct weft_statistics {
    size_t size;            /* set by the caller */
    int64_t arena_bytes;    /* intermediates of the execution */
    int64_t constant_bytes; /* packed, copied or computed constants that the plan holds besides the files */
    int32_t kernels;        /* steps that do work */
    int32_t relayouts;      /* of these, steps that only change a layout */
    int32_t fallbacks;      /* of these, steps in the reference evaluator */
    int32_t workers;
    int64_t fallback_ns;    /* time of the last timed run in them */
    int64_t relayout_ns;
    int64_t total_ns;       /* of the last timed run, all kernels */
    int64_t copied_bytes;   /* written in a run by steps that only move elements: copies, concats, paddings */
    int32_t inside;         /* values computed inside of the concat or padding that would copy them, */
    int32_t overwriting;    /* where their last reader writes its result over them, */
    int32_t updating;       /* and in the `mut` parameter that they are the new value of */
    int64_t plain_ns;       /* of the last timed run, in plain kernels (__ref): plain C for what has no faster one */
};
WEFT_API int weft_execution_statistics(const struct weft_execution *execution, struct weft_statistics *ret_statistics);
/* Runs once with a clock around each kernel. For each step `fn` gets the kernel's name, the value it computes, ns. */
WEFT_API int weft_run_timed(struct weft_execution *execution,
                            void (*fn)(void *user, const char *kernel, const char *value, int64_t ns), void *user);

/* Evaluates the graph plainly, in double or exact arithmetic, rounding at each value: the definition of correct. Input
 * tensors in order of the parameters. Where an output's `data` is set, it has room for the dense row-major result, and
 * the tensor states its dtype, rank and extents; where it is NULL, memory is allocated, and the caller frees it with
 * weft_tensor_free. */
WEFT_API int weft_evaluate(const struct weft_graph *graph, const struct weft_tensor *inputs, size_t input_count,
                           struct weft_tensor *outputs, size_t output_count);
WEFT_API void weft_tensor_free(struct weft_context *context, struct weft_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
