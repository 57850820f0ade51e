/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h: contractions and windows that are finished before their results leave the nearest caches.
 *
 * A group may have one contraction, an f32 product or convolution, and elementwise nodes that go over its results point
 * by point. It is computed by the step of the contraction, which has an epilogue: a bias, a residual and a clamp, in
 * this order, are the kernel's own work, in registers; the rest is a kernel form whose program the kernel calls for
 * each piece of results that it has finished (kernels/strip/program.h).
 *
 *   fuse @matmul_add_gelu_add {                       step: gemm
 *     %c: f32[128,768]{-} = matmul %x, %w             the kernel, which adds %b to its sums
 *     %d: f32[128,768]{-} = add %c, %b                %b: the rows of a constant [768]
 *     %e: f32[128,768]{-} = gelu %d                   the form: %y[a, b] = gelu(%c[a, b]) + %r[a, b]
 *     %y: f32[128,768] = add %e, %r
 *   }
 *
 * Any number of values leave the group, each of any type and with all axes of the contraction, in any order: also the
 * contraction's own results. What the kernel makes in registers stands where the program reads it, in the memory of
 *   - that value itself, if others read it;
 *   - else of a result of f32 that the program stores when it has read what stands there (codegen/form.h, overwriting);
 *   - else of the step (`is_aside`): as large, and dead when the step is done. So it is for results of 16 bits.
 *
 *   %c = matmul %x, %w          in registers: %d = %c + bias + %r
 *   %d = add %c, bias, %r       others read it: its memory is where the kernel writes
 *   %e: bf16 = cast (gelu %d)   the program reads %d there, and stores %e
 *
 * Nodes that reduce the columns of a product, and what is computed of that, may be among them (*rows*). Then the
 * program goes over whole rows: a part that has whole rows calls it for each band of rows that the kernel has finished;
 * where parts share rows, the last of them to end calls it for theirs (kernels/gemm/gemm_bands.c).
 *
 *   fuse @matmul_add_mean_sub_mul_… {                 step: gemm, rows
 *     %c: f32[128,768]{-} = matmul %x, %w
 *     %d: f32[128,768] = add %c, %r                   in registers, and stored
 *     %m: f32[128,1]{-} = mean %d axes=[1] keepdims=1 the program, on rows in the second-level cache
 *     …
 *
 * A window, a pool of f32, may be the *head* of a group as a contraction may. Its kernel has nothing to add in
 * registers; it goes band by band, and the program is called for each. A band stands where a contraction's results
 * would; for results of 16 bits, in scratch memory of one band (kernels/strip/pool_band.h). Elementwise nodes in front
 * of a head may compute its operand (prologue.h).
 *
 *   fuse @max_pool_neg_cast {                         step: pool
 *     %p: f32[1,8,14,14]{-} = max_pool %x             the kernel: a band of rows after the other
 *     %n: f32[1,8,14,14]{-} = neg %p                  the program, on each band
 *     %y: f16[1,8,14,14] = cast %n
 *   }
 *
 * Behind a convolution one node may reduce all pixels of a value that leaves the group alone (epilogue_fold.c): the
 * kernel's pieces are summed up while they are near (kernels/conv/conv_fold.h), and a global mean takes no pass. Others
 * read both. Nothing that a contraction reads is written over: the group's results are stored while others of its
 * results are yet to be made. */
#ifndef WEFT_EPILOGUE_H
#define WEFT_EPILOGUE_H

#include "codegen/lower.h"
#include "kernels/strip/program.h"
#include "sched/select.h"

/* --- which nodes go together -------------------------------------------------------------------------------------- */

/* Nodes that one kernel computes: a fit of all, or a contraction and a fit of the rest. Not to be moved once it was
 * found: the fit points at `rest`. */
struct weft_group_fit {
    struct weft_fit fit;
    weft_node head;               /* the contraction or window, or none */
    weft_node rest[WEFT_MOST_MEMBERS];
    weft_node before[WEFT_MOST_MEMBERS]; /* what computes operand 0 of the head; then there may be no rest */
    uint32_t befores;
    int8_t axis[WEFT_MAX_RANK];   /* by dimension of the contraction's result: the axis of the fit; -1: extent 1 */
    weft_val out;                 /* of a group with a head: the first value with all axes that others read, best one
                                   * of f32; or none */
    weft_node fold;               /* of all pixels of `out`, or none: not in `rest` */
    uint32_t outs;                /* values that others read, but for what `fold` makes */
    bool raw;                     /* one is the contraction's own result, `out` then */
    bool rows;                    /* columns of a product are reduced */
    bool is_alone;                /* `out` is all, of f32, and nothing is reduced but pixels: no pass is ever faster */
};
/* As weft_fit_find. A contraction alone is no group: "is one node". */
const char *weft_group_fit_find(struct weft_members *members, const weft_node *node, uint32_t count,
                                struct weft_group_fit *ret, weft_val *ret_where);
/* epilogue_head.c: the name of its kernel; a reason with a word for the head; and what is found of a head that nothing
 * follows: others read its result. */
const char *weft_group_fit_name(const struct weft_graph *graph, const struct weft_group_fit *group,
                                struct weft_arena *arena);
const char *weft_group_fit_say(const struct weft_members *members, const struct weft_group_fit *group,
                               const char *format);
void weft_group_fit_show_head(const struct weft_graph *graph, struct weft_group_fit *ret);
/* epilogue_fold.c. Takes the node that folds pixels from `rest`, if there is one among those of a convolution; and when
 * the fit and what leaves it are found: NULL, or why it is no fold of all pixels of that. */
uint32_t weft_epilogue_take_fold(const struct weft_graph *graph, struct weft_group_fit *fit, uint32_t rest);
const char *weft_epilogue_check_fold(const struct weft_members *members, const struct weft_group_fit *fit);
/* May it be the head of a group? And is it one that goes band by band then: a window? */
bool weft_epilogue_takes(const struct weft_graph *graph, weft_node node);
bool weft_epilogue_has_bands(const struct weft_graph *graph, weft_node node);
/* Does a unit have a head and other nodes? */
bool weft_epilogue_is_in(const struct weft_graph *graph, const struct weft_unit *unit);

/* --- what the contraction's step has ------------------------------------------------------------------------------ */

struct weft_epilogue {
    const char *name;             /* "weft_matmul_add_gelu_f32" */
    weft_val bias;                /* a constant with a number for each column of a product or channel of a convolution,
                                   * side by side, as a view with all dimensions; or none */
    weft_val residual;            /* added after the bias: a number for each result, which lie in the same order; or
                                   * none */
    struct weft_clamp clamp;
    const struct weft_form *form; /* of what follows, or NULL */
    uint32_t c;                   /* its array that is the contraction's result, or what the kernel makes of it */
    int8_t c_dim[WEFT_MAX_RANK];  /* by dimension of the contraction's result: that of this array, or -1: extent 1 */
    int8_t out_dim[WEFT_MAX_RANK]; /* that of the step's result, or -1 */
    int8_t r_dim[WEFT_MAX_RANK];  /* that of the residual, or -1 */
    weft_val folded;              /* what a fold of all pixels of the step's result makes, or none */
    enum weft_reduce_op fold;
    int8_t fold_dim[2];           /* which of its dimensions are images and channels, or -1: extent 1 */
    bool is_aside;                /* the contraction's results stand in memory of the step, in the order in which those
                                   * of its first result do */
    bool rows;                    /* the program goes over whole rows */
};
/* The step of such a group: of the contraction, from its operands and what the epilogue reads to the `count` values
 * that others read. False where the family has no such kernel, and `why` says why. */
bool weft_epilogue_choose(const struct weft_scheduling *s, struct weft_members *members,
                          const struct weft_group_fit *fit, uint32_t count, const weft_val *out,
                          struct weft_step *step);

/* --- epilogue_outs.c ---------------------------------------------------------------------------------------------- */

/* Finds what others read: sets `out`, `outs` and `is_alone`. NULL, or why such a value does not leave a group. */
const char *weft_epilogue_find_outs(const struct weft_members *members, struct weft_group_fit *ret,
                                    weft_val *ret_where);
struct weft_epilogue_outs {
    uint32_t count;
    const weft_val *out;          /* what `fold` makes among them */
    int8_t dim[WEFT_MOST_MEMBERS + 2][WEFT_MAX_RANK]; /* by dimension of the contraction's result: theirs, or -1 */
};
/* Decides where the contraction's results stand, of which registers make `v`: lists what the step writes, that memory
 * first. */
void weft_epilogue_write(const struct weft_scheduling *s, const struct weft_group_fit *group, weft_val v,
                         const struct weft_epilogue_outs *outs, struct weft_epilogue *epilogue,
                         struct weft_step *step);

/* --- for the steps of contractions -------------------------------------------------------------------------------- */

/* Where the contraction's results stand, with its dimensions; without an epilogue, the step's result as it is. */
struct weft_tensor weft_epilogue_result(const struct weft_bind *bind);
/* Of results aside: their place in memory that parts share, bytes, behind what bind->shared has, to which it adds
 * theirs. */
size_t weft_epilogue_reserve(struct weft_bind *bind);
/* The first of the results: `aside` is their place. */
float *weft_epilogue_data(const struct weft_call *call, size_t aside);
/* Whether there is a residual: then the same of it, without its data. */
bool weft_epilogue_residual_tensor(const struct weft_bind *bind, struct weft_tensor *ret);
/* The dimension of the step's result that is dimension `dim` of the contraction's, or -1: it has extent 1. */
int weft_epilogue_dim(const struct weft_step *step, int dim);
/* Whether pixels are folded: then strides of the result by images and channels. */
bool weft_epilogue_folds(const struct weft_bind *bind, int64_t ret_stride[2]);
/* The stride of the bias, if there is one. */
int64_t weft_epilogue_bias_stride(const struct weft_bind *bind);
/* Bytes that a descriptor has for the program, at an offset that divides by 64; 0: there is none. */
size_t weft_epilogue_bytes(const struct weft_step *step);
/* Makes the program in `memory`, and adds what its workers need to bind->scratch: from ret_scratch on. `order`: the
 * dimensions of the contraction's result, those of a piece's rows first, then those of its columns. NULL: there is
 * none. */
/* epilogue_price.c: what the program takes on one worker besides the product's own reading and writing, where so many
 * bands of rows can be gone over at the same time (0: any number). */
double weft_epilogue_ns(const struct weft_bind *bind, const struct weft_program *program, int32_t bands);
struct weft_program *weft_epilogue_bind(struct weft_bind *bind, const int8_t *order, int rows, int columns,
                                        void *memory, size_t *ret_scratch);
/* The same where the head's results have these strides. */
struct weft_program *weft_epilogue_bind_apart(struct weft_bind *bind, const int64_t *stride, const int8_t *order,
                                              int rows, int columns, void *memory, size_t *ret_scratch);

/* One worker's, while it runs a part. */
struct weft_epilogue_run {
    struct weft_program_pieces pieces;
    void *argument[WEFT_PROGRAM_ARGUMENTS], *scratch;
    int64_t row;                  /* that pieces are counted from */
};
void weft_epilogue_begin(struct weft_epilogue_run *run, const struct weft_program *program, size_t scratch,
                         size_t aside, struct weft_call *call);
/* Where the head's results of the next pieces are: as a whole array. */
static inline void weft_epilogue_move(struct weft_epilogue_run *run, const struct weft_step *step, float *results)
{
    run->argument[step->epilogue->c] = results;
}
/* Of a program that goes over whole rows. */
void weft_epilogue_run_rows(struct weft_epilogue_run *run, int64_t row, int64_t rows);
/* NULL, or the bias of a call. */
const float *weft_epilogue_bias(const struct weft_call *call);
const float *weft_epilogue_residual(const struct weft_call *call);
float *weft_epilogue_folded(const struct weft_call *call);

#endif
