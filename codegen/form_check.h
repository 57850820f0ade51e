/* SPDX-License-Identifier: Apache-2.0 */
/* form_check.h: what the files of the form's check share: form_check.c goes through a form, form_check_op.c looks at
 * instructions, form_check_index.c at indices. */
#ifndef WEFT_FORM_CHECK_H
#define WEFT_FORM_CHECK_H

#include "codegen/form_parts.h"

struct weft_form_checker {
    const struct weft_form *form;
    struct weft_arena *arena;
    const char *fault;          /* the first */
    struct weft_form_place at;  /* what is being looked at */
    const uint32_t *parent;     /* by stage: weft_form_parents */
    uint32_t *stage_of;         /* by op */
    const struct weft_form_phase *phase;
    uint32_t phase_id;
    uint32_t *stored;           /* by array, the last phase up to this one that stores it, + 1; or 0 */
    bool *is_next;              /* by op: a CARRY that has its NEXT */
};

/* Keeps the first; returns false. */
bool weft_form_complain(struct weft_form_checker *c, const char *format, ...) WEFT_PRINTF(2, 3);
/* What an op is called in a fault: "%m". */
const char *weft_form_called(struct weft_form_checker *c, uint32_t op);
/* The name of the first of these axes. */
const char *weft_form_axis_name(const struct weft_form_checker *c, uint16_t axes);

/* form_check_op.c; of the stage and op that `at` names. */
bool weft_form_check_op(struct weft_form_checker *c);
/* form_check_index.c: a LOAD or STORE whose array and map exist. */
bool weft_form_check_access(struct weft_form_checker *c);
/* Of a STORE: is each element stored by one point at most? */
bool weft_form_check_once(struct weft_form_checker *c);

#endif
