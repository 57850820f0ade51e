/* SPDX-License-Identifier: Apache-2.0 */
/* prologue.h: windows, products and convolutions whose operand is computed while they run.
 *
 * A group whose head is a window or contraction (sched/epilogue.h) may have elementwise nodes in front of it, whose
 * value nobody else reads. They are a kernel form of their own, whose program computes pieces of operand 0 into scratch
 * memory of the worker, where the kernel reads them; so the operand is never in memory.
 *
 * A window goes band by band (kernels/strip/pool_band.h): the program computes the rows of the operand that a band of
 * results reads, and the results go through scratch memory too if nodes behind the window finish them. Rows that two
 * bands of a part read are computed once and moved; what two parts read is computed twice.
 *
 *   fuse @relu_max_pool_mul {                         step: pool
 *     %a: f32[1,64,112,112]{-} = relu %x              the prologue's form: %a[a, b, c, d] = relu(%x[a, b, c, d])
 *     %p: f32[1,64,56,56]{-} = max_pool %a            the kernel
 *     %y: f32[1,64,56,56] = mul %p, %s                the epilogue's form
 *   }
 *
 * A product, and a convolution with one tap that moves by one, has no padding and one group, computes a piece of the
 * operand where its loops would copy one to otherwise (kernels/gemm/gemm_made.c): for a product, or a convolution whose
 * results lie channels-last, a band of up to 192 rows by a block of up to 512 terms, which the tiles read as rows of A;
 * all rows, where they are at most 16; for a convolution whose results lie along pixels, all terms of 64 pixels. Each
 * worker computes what its parts read. Where parts share rows, since columns are what they split, each of them computes
 * those, which the price counts (weft_gemm_made); a group is made only where that pays.
 *
 *   fuse @mul_conv_add {                              step: conv
 *     %a: f32[1,96,56,56]{-} = mul %x, %gate          %a[a, b, c, d] = %x[a, b, c, d] * %gate[a, b], 192 pixels by 96
 *     %c: f32[1,24,56,56]{-} = conv %a, %w            channels at a time: 72 KiB in the second-level cache
 *     %y: f32[1,24,56,56] = add %c, %b                in registers
 *   }
 *
 * What is read of such a step is what the form reads; the weights stay operand 1, which is packed as in other steps.
 *
 * Not done: values in front of the head that others read too. They would have to be stored, or be computed again by
 * those others. Nor operands other than the first, and products of a transposed one. */
#ifndef WEFT_PROLOGUE_H
#define WEFT_PROLOGUE_H

#include "sched/epilogue.h"

/* Of the head's step. */
struct weft_prologue {
    const struct weft_form *form;
    uint32_t out;                 /* its array that is the operand, or what the operand is a view of */
    int8_t dim[WEFT_MAX_RANK];    /* by dimension of the operand: that of this array, or -1: extent 1 */
};

/* --- for the fit of a group --------------------------------------------------------------------------------------- */

/* May operand 0 of a head be computed so? */
bool weft_prologue_fits(const struct weft_graph *graph, weft_node head);
/* Moves what operand 0 of the head needs from `rest` to `before`, if that may be; how many are left. */
uint32_t weft_prologue_take(const struct weft_graph *graph, struct weft_group_fit *group, uint32_t rest);
/* NULL, or why `before` is no prologue, with the value that stands in the way. A question to `members`. */
const char *weft_prologue_check(struct weft_members *members, const struct weft_group_fit *group, weft_val *ret_where);
/* Of a group with nodes in front: what makes the operand, and what that reads instead of it. NULL, and why. A question
 * to `members`. */
const struct weft_prologue *weft_prologue_choose(const struct weft_scheduling *s, struct weft_members *members,
                                                 const struct weft_group_fit *group, const char **ret_why);

/* --- for the steps of heads --------------------------------------------------------------------------------------- */

/* Bytes that a descriptor has for the program, at an offset that divides by 64; 0: there is none. */
size_t weft_prologue_bytes(const struct weft_step *step);
/* Makes the program in `memory`, and adds what its workers need to bind->scratch: from ret_scratch on. `operand`: as it
 * lies in scratch memory. `order` as for weft_epilogue_bind, of the operand's dimensions. */
struct weft_program *weft_prologue_bind(struct weft_bind *bind, const struct weft_tensor *operand, const int8_t *order,
                                        int rows, int columns, void *memory, size_t *ret_scratch);

/* Operand 0 of a contraction, whether it is in memory or made; of what is made strides do not count. */
struct weft_tensor weft_prologue_operand(const struct weft_bind *bind);
/* What the program of a contraction takes on one worker, if each element is made so many times by all parts together,
 * in so many pieces, which have so many rows together. */
double weft_prologue_ns(const struct weft_bind *bind, const struct weft_program *program, double made, double pieces,
                        double lines);
/* Of elements that are written to a cache of one worker and read there soon. */
double weft_prologue_near_ns(const struct weft_bind *bind, double elements);

/* One worker's, while it runs a part. */
struct weft_prologue_run {
    struct weft_program_pieces pieces;
    void *argument[WEFT_PROGRAM_ARGUMENTS]; /* that of the operand is set from band to band */
};
void weft_prologue_begin(struct weft_prologue_run *run, const struct weft_program *program, size_t scratch,
                         struct weft_call *call);

/* Where the operand of the next pieces is: as a whole array. */
static inline void weft_prologue_move(struct weft_prologue_run *run, const struct weft_step *step, float *operand)
{
    run->argument[step->prologue->out] = operand;
}
/* The same where element `shift` of the whole array is the first one of a piece. */
static inline void weft_prologue_move_piece(struct weft_prologue_run *run, const struct weft_step *step, float *piece,
                                            int64_t shift)
{
    weft_prologue_move(run, step, (float *)((uintptr_t)piece - (uintptr_t)shift * sizeof(float)));
}

#endif
