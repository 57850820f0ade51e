/* SPDX-License-Identifier: Apache-2.0 */
/* prologue.h: windows whose operand is computed while they run.
 *
 * A group whose head is a window (sched/epilogue.h) may have elementwise nodes in front of it, whose value nobody else
 * reads. They are a kernel form of their own. The window goes band by band (kernels/strip/pool_band.h): the form's
 * program computes the rows of the operand that a band of results reads into scratch memory, the window reads them
 * there, and its results go through scratch memory too if nodes behind it finish them. So the operand is never in
 * memory. Rows that two bands of a part read are computed once and moved; what two parts read is computed twice.
 *
 *   fuse @relu_max_pool_mul {                         step: pool
 *     %a: f32[1,64,112,112]{-} = relu %x              the prologue's form: %a[a, b, c, d] = relu(%x[a, b, c, d])
 *     %p: f32[1,64,56,56]{-} = max_pool %a            the kernel
 *     %y: f32[1,64,56,56] = mul %p, %s                the epilogue's form
 *   }
 *
 * Not done: values in front of the window that others read too. They would have to be stored, or be computed again by
 * those others. */
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

/* Moves what operand 0 of the head needs from `rest` to `before`, if the head is a window; how many are left. */
uint32_t weft_prologue_take(const struct weft_graph *graph, struct weft_group_fit *group, uint32_t rest);
/* NULL, or why `before` is no prologue, with the value that stands in the way. A question to `members`. */
const char *weft_prologue_check(struct weft_members *members, const struct weft_group_fit *group, weft_val *ret_where);
/* Of a group with nodes in front: what makes the operand, and what that reads instead of it. NULL, and why. A question
 * to `members`. */
const struct weft_prologue *weft_prologue_choose(const struct weft_scheduling *s, struct weft_members *members,
                                                 const struct weft_group_fit *group, const char **ret_why);

/* --- for the steps of windows ------------------------------------------------------------------------------------- */

/* Bytes that a descriptor has for the program, at an offset that divides by 64; 0: there is none. */
size_t weft_prologue_bytes(const struct weft_step *step);
/* Makes the program in `memory`, and adds what its workers need to bind->scratch: from ret_scratch on. `operand`: as it
 * lies in scratch memory. `order` as for weft_epilogue_bind, of the operand's dimensions. */
struct weft_program *weft_prologue_bind(struct weft_bind *bind, const struct weft_tensor *operand, const int8_t *order,
                                        int rows, int columns, void *memory, size_t *ret_scratch);

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

#endif
