/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h: graphs from text, from files and node by node, and into files. */
#ifndef WEFT_PUBLIC_GRAPH_H
#define WEFT_PUBLIC_GRAPH_H

#include "weft/context.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 * ONNX models only; an input that the file has a value for, as old ones list their weights, is a constant already and
 * refused. */
WEFT_API int weft_load_fixed(struct weft_context *context, const char *path, const struct weft_fixed_input *fixed,
                             size_t count, struct weft_graph **ret_graph);
/* The elements of constants that weft text writes as `const blob=ID`: memory that stays the caller's, is read where it
 * lies and may not change. Whoever writes such a text may choose the 32 hexadecimal digits of `id` (lower case). */
struct weft_known_constant {
    const char *id;
    const void *data;
    size_t bytes;
    /* Called once: when the last graph, plan or execution is gone that could read `data`, on whichever thread that is;
     * before weft_load_memory returns if the text does not name it. Never if that fails. NULL: the data stays valid
     * until the context is freed. */
    void (*release)(void *user, const void *data);
    void *user;
};
struct weft_load_options {
    size_t size;
    const char *name;      /* what messages call the model; NULL: "memory" */
    const char *folder;    /* where files lie that the model names (external data, const file=); NULL: it may name
                              none */
    const struct weft_fixed_input *fixed; /* as weft_load_fixed */
    size_t fixed_count;
    /* Called once when the last graph, plan or execution is gone that could read `data`, on whichever thread that is;
     * for weft text before weft_load_memory returns. Never if that fails. NULL: the bytes are copied. */
    void (*release)(void *user, const void *data, size_t bytes);
    void *release_user;
    const struct weft_known_constant *constants; /* for weft text: `constant_count` of them, each `id` once */
    size_t constant_count;
};
/* As weft_load, from memory: an ONNX model, or weft text if it begins like it. With `release` the weights of a model
 * stay in `data`, which may not change until `release` is called; plans copy those that kernels want packed, and those
 * whose address does not suit their type. `options` may be NULL. */
WEFT_API int weft_load_memory(struct weft_context *context, const void *data, size_t bytes,
                              const struct weft_load_options *options, struct weft_graph **ret_graph);
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

struct weft_custom_value; /* custom.h */
struct weft_custom_type;

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
    union {
        const void *reserved[2]; /* NULL: for kinds of attributes that are yet to come */
        const struct weft_custom_value *values; /* for lists of named values (custom.h), `count` long */
    };
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
/* As weft_param, for weights whose elements the caller changes seldom, and says so (weft_refresh). An execution then
 * packs them for the kernels once, and not in each run:
 *
 *   weft_param_static(graph, "w", WEFT_F32, 2, extent, &w);     y = matmul x, w
 *   …
 *   weft_bind_input(execution, 1, &weights);
 *   weft_run(execution);                                        packs w
 *   weft_run(execution);                                        reads the pack
 *   train(weights.data);
 *   weft_refresh(execution, 1);
 *   weft_run(execution);                                        packs w anew, into the same memory
 *
 * Packed is operand 1 of matrix products and convolutions of f32, if it is a static parameter, or views of one
 * (transposes, reshapes, slices) that are the same at all sizes; where a constant would be, and as one would be, but in
 * elements of f32. A body of `if` or `loop` has no static parameters, and reads what it is handed as it lies, as all
 * other readers do, and as runs do whose sizes want another pack. Nothing else is computed ahead: norms, scales and the
 * like are folded into constants only. A parameter is `mut` or static, not both. */
WEFT_API int weft_param_static(struct weft_graph *graph, const char *name, int dtype, int rank, const weft_dim *extent,
                               weft_val *ret_value);
/* Adds a dense row-major constant; the data is copied. It may be NULL only where an extent is 0. */
WEFT_API int weft_constant(struct weft_graph *graph, int dtype, int rank, const int64_t *extent, const void *data,
                           weft_val *ret_value);
/* As weft_constant, but `data` stays the caller's and is read where it lies by all graphs, clones, plans and executions
 * that use the constant; it may not change. `release` is called once, when the last of them is gone, on whichever
 * thread that is; never if this function fails. NULL: the data stays valid until the context is freed. Plans copy what
 * kernels want packed. */
WEFT_API int weft_constant_borrowed(struct weft_graph *graph, int dtype, int rank, const int64_t *extent,
                                    const void *data, void (*release)(void *user, const void *data), void *user,
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
    const struct weft_custom_type *result; /* of `custom` alone, in the place of dtype, rank and extent: the types of */
    size_t results;                        /* so many results; NULL and 0: as many as the registered function has, */
};                                         /* by its `type` */
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

#ifdef __cplusplus
}
#endif
#endif
