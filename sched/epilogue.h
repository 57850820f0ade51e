/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.h: contractions that are finished before their results leave the nearest caches.
 *
 * A group may have one contraction, an f32 product or convolution, and elementwise nodes that go over its results point
 * by point. It is computed by the step of the contraction, which has an epilogue: a bias, a residual and a clamp, in
 * this order, are the kernel's own work, in registers; the rest is a kernel form whose program the kernel calls for
 * each piece of results that it has finished (kernels/strip/program.h). The contraction's results are written to the
 * memory of the group's result, where the program reads them and puts its own in their place.
 *
 *   fuse @matmul_add_gelu_add {                       step: gemm
 *     %c: f32[128,768]{-} = matmul %x, %w             the kernel, which adds %b to its sums
 *     %d: f32[128,768]{-} = add %c, %b                %b: the rows of a constant [768]
 *     %e: f32[128,768]{-} = gelu %d                   the form: %y[a, b] = gelu(%c[a, b]) + %r[a, b]
 *     %y: f32[128,768] = add %e, %r
 *   }
 *
 * All nodes have the axes of the contraction's result, in any order. One value leaves the group; it is of f32 and has
 * all axes. Behind a convolution one node more may fold all pixels of that value (epilogue_fold.c): the kernel's pieces
 * are summed up while they are near (kernels/conv/conv_fold.h), and a global mean takes no pass. Others read both.
 * Nothing that the contraction reads is computed in the group. What is read besides is not written over: results of the
 * contraction stand there first. */
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
    weft_node head;               /* the contraction, or none */
    weft_node rest[WEFT_MOST_MEMBERS];
    int8_t axis[WEFT_MAX_RANK];   /* by dimension of the contraction's result: the axis of the fit; -1: extent 1 */
    weft_val out;                 /* of a group with a head: what others read */
    weft_node fold;               /* of all pixels of `out`, or none: not in `rest` */
};
/* As weft_fit_find. A contraction alone is no group: "is one node". */
const char *weft_group_fit_find(struct weft_members *members, const weft_node *node, uint32_t count,
                                struct weft_group_fit *ret, weft_val *ret_where);
/* epilogue_fold.c. Takes the node that folds pixels from `rest`, if there is one among those of a convolution; and when
 * the fit and what leaves it are found: NULL, or why it is no fold of all pixels of that. */
uint32_t weft_epilogue_take_fold(const struct weft_graph *graph, struct weft_group_fit *fit, uint32_t rest);
const char *weft_epilogue_check_fold(const struct weft_members *members, const struct weft_group_fit *fit);
/* Is it a contraction that may have an epilogue? */
bool weft_epilogue_takes(const struct weft_graph *graph, weft_node node);
/* Does a unit have a contraction that its other nodes finish? */
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
};
/* The step of such a group: of the contraction, from its operands and what the epilogue reads to `out`. False where the
 * family has no such kernel, and `why` says why. */
bool weft_epilogue_choose(const struct weft_scheduling *s, struct weft_members *members,
                          const struct weft_group_fit *fit, struct weft_step *step);

/* --- for the steps of contractions -------------------------------------------------------------------------------- */

/* The step's result with the dimensions of the contraction's; without an epilogue, as it is. */
struct weft_tensor weft_epilogue_result(const struct weft_bind *bind);
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
struct weft_program *weft_epilogue_bind(struct weft_bind *bind, const int8_t *order, int rows, int columns,
                                        void *memory, size_t *ret_scratch);

/* One worker's, while it runs a part. */
struct weft_epilogue_run {
    struct weft_program_pieces pieces;
    void *argument[WEFT_PROGRAM_ARGUMENTS];
    int64_t row;                  /* that pieces are counted from */
};
void weft_epilogue_begin(struct weft_epilogue_run *run, const struct weft_program *program, size_t scratch,
                         struct weft_call *call);
/* NULL, or the bias of a call. */
const float *weft_epilogue_bias(const struct weft_call *call);
const float *weft_epilogue_residual(const struct weft_call *call);
float *weft_epilogue_folded(const struct weft_call *call);

#endif
