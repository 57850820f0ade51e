/* SPDX-License-Identifier: Apache-2.0 */
/* strips.h: the strip back end: forms as strip programs (strips.c). */
#ifndef WEFT_STRIPS_H
#define WEFT_STRIPS_H

#include "codegen/form.h"
#include "kernels/strip/program.h"

#include <stdatomic.h>

/* Compiled code in the place of a step's program, from some moment of its plan's life on (plan/tiers.h). Both give the
 * same bits. */
struct weft_tier {
    _Atomic(weft_program_code *) code; /* NULL: not yet, or never */
    uint64_t shape;                    /* of programs that it is code for; set before `code` is */
};

/* The code, if there is some for a program of this shape. */
static inline weft_program_code *weft_tier_code(const struct weft_tier *tier, const struct weft_program *program)
{
    weft_program_code *const code = tier ? atomic_load_explicit(&tier->code, memory_order_acquire) : NULL;
    return code && tier->shape == program->shape ? code : NULL;
}

/* NULL, or why the form has no strip program: it has one phase of sweeps, whose loads and stores stay inside, and where
 * it scans, that goes over all axes that the phase does not cut, which are one. */
const char *weft_strips_refuse(const struct weft_form *form);
/* Is it a fold over tiles of a stated length (program.h: a fold across)? Of a form that is not refused. */
bool weft_strips_is_across(const struct weft_form *form, uint32_t op);
/* Is it a load of what an index names, or that may lie outside? Such loads are ops of the program. */
bool weft_strips_is_look_up(const struct weft_form *form, uint32_t op);
/* Does another load fall back on it, so that it finds a part of that one's value? */
bool weft_strips_is_part(const struct weft_form *form, uint32_t op);
/* Of such a load: the program's value for its array; behind that, of each position that is asked for. `ret_guard`: the
 * number of its first guard. */
uint32_t weft_strips_source(const struct weft_form *form, uint32_t op, uint32_t *ret_guard);
uint32_t weft_strips_guards(const struct weft_form *form, uint32_t op);
/* The index that the guard with this number among those of the load is about. */
const struct weft_index *weft_strips_guarded(const struct weft_form *form, uint32_t op, uint32_t guard);
/* Is a value read by look-ups alone, which take it at any address? */
bool weft_strips_reads_anywhere(const struct weft_form *form, weft_val value);
/* Bytes of the program, whatever the sizes. */
size_t weft_strips_bytes(const struct weft_form *form);
/* Makes the program in `memory` for the sizes at hand. `tensor`: by array, without data; arguments of the program are
 * the arrays of the form, in their order. */
struct weft_program *weft_strips_make(const struct weft_form *form, uint32_t cpu, const int64_t *symbols,
                                      const struct weft_tensor *tensor, int workers, void *memory);

/* How the box of a form lies in pieces (kernels/strip/program.h): the dimensions of an array that has all axes of the
 * form, those of rows first. */
struct weft_strips_box {
    uint32_t array;
    int8_t dim[WEFT_MAX_RANK];
    uint8_t rows, columns;  /* how many */
};
/* The same for pieces: of a form without folds and scans. */
struct weft_program *weft_strips_make_pieces(const struct weft_form *form, const struct weft_strips_box *box,
                                             uint32_t cpu, const int64_t *symbols, const struct weft_tensor *tensor,
                                             void *memory);
/* The same for whole rows: of a form that reduces the columns. */
struct weft_program *weft_strips_make_rows(const struct weft_form *form, const struct weft_strips_box *box,
                                           uint32_t cpu, const int64_t *symbols, const struct weft_tensor *tensor,
                                           void *memory);

#endif
