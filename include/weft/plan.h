/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: plans: compiling a graph, and what a plan tells of itself. */
#ifndef WEFT_PUBLIC_PLAN_H
#define WEFT_PUBLIC_PLAN_H

#include "weft/passes.h"
#include "weft/target.h"
#include "weft/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_plan;
struct weft_execution;

/* What a plan assumes of the addresses of inputs, besides that they are multiples of an element's size and what layouts
 * promise (align=). Kernels of weft's read any address at next to no cost; what depends on it are the caller's
 * functions (weft_demand.align). */
enum weft_assume_aligned {
    WEFT_ALIGN_NEVER = 0,  /* nothing: an operand that a function wants aligned is copied in each run */
    WEFT_ALIGN_PAYS = 1,   /* inputs that a function reads as they are and wants aligned are: a buffer that is aligned
                              is never copied, another one is in each run, and a mutable one back when the run has
                              succeeded (weft_statistics.staged_inputs) */
    WEFT_ALIGN_ALWAYS = 2, /* inputs lie at multiples of 64 bytes: others are WEFT_ERR_BINDING when they are bound */
};
/* The same for one input, by its name. */
struct weft_input_alignment {
    const char *input;
    int32_t assume_aligned; /* enum weft_assume_aligned */
    int32_t reserved;
};

struct weft_compile_options {
    size_t size;
    const struct weft_target *target; /* NULL: the context's */
    uint32_t flags;                   /* WEFT_COMPILE_*; others are WEFT_ERR_ARGUMENT */
    uint32_t reserved;
    int64_t constant_bytes;           /* weft_compile computes values that depend on constants alone once, where that
                                         saves time in runs; they may add so many bytes. 0: as many as the graph's
                                         constants have, those of 8 bits, f16 and bf16 counted as f32, plus 64 MiB;
                                         below 0: none, each run computes them. Values at most 64 KiB larger than their
                                         operands are folded in any case and do not count */
    int32_t assume_aligned;           /* enum weft_assume_aligned, for all inputs but those that are listed */
    int32_t reserved2;
    const struct weft_input_alignment *input_alignment; /* `input_alignments` of them; a name that is no input's is */
    size_t input_alignments;                            /* WEFT_ERR_ARGUMENT */
    const struct weft_pipeline_options *pipeline; /* which passes run; NULL: all */
};
#define WEFT_COMPILE_NO_PASSES 1u   /* plan the graph as it is, without passes */
#define WEFT_COMPILE_REFERENCE 2u   /* run every node in the reference evaluator: slow, for comparison */
#define WEFT_COMPILE_NO_WINOGRAD 4u /* compute 3x3 convolutions, and gradients of their weights, directly, up to two
                                       times slower. The default, Winograd's F(2x2,3x3) and F(3x3,2x2), may give NaN
                                       where the direct sum is infinite */
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
#define WEFT_COMPILE_STORE 256u /* take the plan from the context's folder for packs (weft_context_options.packs), if an
                                  earlier process has put it there: neither passes run nor choices nor packs are made;
                                  else make it and put it there. Its file is found by all that decides it: the library,
                                  the graph with its elements, CPU, caches, threads, prices and options. What is wrong
                                  with the folder or the file is no error, and weft_plan_stored tells it. Not stored:
                                  plans with options that name passes, addresses of inputs or a target, with
                                  WEFT_COMPILE_NO_PASSES, _REFERENCE or _KEEP_CONSTANTS, and those of contexts with
                                  functions, passes or alternatives of the caller's */

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
/* Was the plan, compiled with WEFT_COMPILE_STORE, there already? *ret_reason: why not, or NULL; the plan owns the text.
 * Pointers may be NULL. */
WEFT_API int weft_plan_stored(const struct weft_plan *plan, int32_t *ret_found, const char **ret_reason);
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
    const char *name;      /* in the graph that was compiled; "": it has none */
    int32_t dtype;
    int32_t rank;
    int64_t extent[WEFT_MAX_RANK]; /* -1 where it depends on a symbol */
    int64_t stride[WEFT_MAX_RANK]; /* in elements: what a bound tensor must have; -1 where it depends on a symbol */
    const char *text;              /* the type with symbols and layout, "f32[N,3,240,320]"; lives with the plan */
    int32_t is_mutable;            /* of an input: a run writes its new value where it lies */
    int32_t updates;               /* of an output: the number of the input that it is the new value of; else -1 */
    int32_t is_static;             /* of an input: weft_param_static */
    int32_t reserved;
};
WEFT_API size_t weft_plan_inputs(const struct weft_plan *plan);
WEFT_API size_t weft_plan_outputs(const struct weft_plan *plan);
WEFT_API int weft_plan_input(const struct weft_plan *plan, size_t i, struct weft_port *ret_port);
WEFT_API int weft_plan_output(const struct weft_plan *plan, size_t i, struct weft_port *ret_port);
/* The number of the first input or output of that name. WEFT_ERR_ARGUMENT, without a message, if there is none. */
WEFT_API int weft_plan_find_input(const struct weft_plan *plan, const char *name, size_t *ret_i);
WEFT_API int weft_plan_find_output(const struct weft_plan *plan, const char *name, size_t *ret_i);

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
    int64_t stride[WEFT_MAX_RANK]; /* in elements, by logical axis; 0: the axis is repeated, or split into blocks */
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
    int32_t own;           /* 1: `kernel` is one of the caller's target (weft_target_add) */
    weft_node node;        /* of weft_plan_graph, the first of a group; none: a copy into a result */
    const char *op;        /* "conv"; "relayout" also of a copy into a result; NULL of a group */
    int32_t operands, results; /* of weft_plan_step_operand and weft_plan_step_result */
    int32_t output;        /* -1, or: done only if a tensor is bound to this output (WEFT_COMPILE_SHARE_RESULTS) */
};
WEFT_API size_t weft_plan_steps(const struct weft_plan *plan);
WEFT_API int weft_plan_step(const struct weft_plan *plan, size_t i, struct weft_plan_step *ret_step);
/* What a step reads or writes, and where: all that it takes to call the kernel of a step of the caller's, and to do a
 * relayout. For other kernels of weft's it says what the node reads, which may be packed besides, or a part of it. */
struct weft_plan_operand {
    size_t size;           /* set by the caller */
    const char *value;     /* its name, as weft_plan_value's; strings live with the plan */
    weft_val id;           /* of weft_plan_graph */
    int32_t memory;        /* enum weft_memory */
    uint32_t storage;      /* as in weft_plan_value */
    int32_t port;          /* the number of that input or output */
    int32_t reserved;
    int64_t offset;        /* bytes from the beginning of the input, the output or the arena to the first element */
    const char *layout;    /* "{0 1/16 2 3 1%16}" */
    struct weft_kernel_array array; /* with symbols at their hints; data: of a constant the plan's memory, else NULL */
};
/* Operand k, or result k, of step i. WEFT_ERR_ARGUMENT if there is none. */
WEFT_API int weft_plan_step_operand(const struct weft_plan *plan, size_t i, size_t k,
                                    struct weft_plan_operand *ret_operand);
WEFT_API int weft_plan_step_result(const struct weft_plan *plan, size_t i, size_t k,
                                   struct weft_plan_operand *ret_result);
/* How many bytes the arena of weft_plan_step and weft_plan_block has, to be aligned to 64. */
WEFT_API int64_t weft_plan_arena_bytes(const struct weft_plan *plan);
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
 * and convolutions, is not counted. These are not the relayouts that weft_statistics and the commands count, which are
 * steps: copies that keep the order are among those, and the other operands here are not. */
WEFT_API size_t weft_plan_relayouts(const struct weft_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
