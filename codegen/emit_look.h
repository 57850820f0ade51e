/* SPDX-License-Identifier: Apache-2.0 */
/* emit_look.h: what the files share that print look-ups (emit_look.c, emit_pieces.c, emit_quotient.c). */
#ifndef WEFT_EMIT_LOOK_H
#define WEFT_EMIT_LOOK_H

#include "codegen/emit_parts.h"
#include "codegen/strips.h"

/* The parts of a program that belong to a look-up. */
struct weft_look {
    const struct weft_program *program;
    uint32_t source, guard, guards;
};
struct weft_look weft_emit_look_of(const struct weft_form *form, const struct weft_program *program, uint32_t value);
/* Does a value of the program move along strips? */
static inline bool weft_emit_look_moves(const struct weft_look *look, uint32_t value)
{
    return look->program->value[value].stride != 0;
}
/* Is it one element for all of the strip? */
bool weft_emit_look_is_one(const struct weft_look *look);
/* The guard of a kind that moves, or any one; NULL: there is none. */
const struct weft_program_guard *weft_emit_look_guard(const struct weft_look *look, enum weft_program_guard_kind kind,
                                                      bool moves, uint32_t *ret_number);
/* What it finds outside: as a number of the element's type. */
void weft_emit_look_fill(const struct weft_emit *e, uint32_t value, char *ret, size_t bytes);
/* "floats", "halves", "masks", "numbers": how functions of look.h and access.h for a type begin; a vector made of what
 * they return. */
const char *weft_emit_look_word(int dtype);
void weft_emit_look_vector(struct weft_emit *e, uint32_t value, const char *found);
/* Text of a load of one vector, without widening, of what lies side by side from a pointer on: `pointer` is its name in
 * the C that is emitted. */
void weft_emit_look_load(const struct weft_emit *e, int dtype, const char *pointer, char *ret, size_t bytes);
/* One element, in all lanes. */
void weft_emit_look_spread(struct weft_emit *e, uint32_t value, const char *element);

/* --- emit_pieces.c: loads that fall back on others ---------------------------------------------------------------- */

/* How many loads make the value, itself included; of a part, and where there is no other, 1. */
uint32_t weft_emit_pieces(const struct weft_form *form, uint32_t value);
const char *weft_emit_pieces_refuse(const struct weft_form *form, const struct weft_program *program, uint32_t value);
/* Behind the heads of its parts; of one vector. */
void weft_emit_pieces_head(struct weft_emit *e, uint32_t value);
void weft_emit_pieces_find(struct weft_emit *e, uint32_t value);

/* --- emit_quotient.c: indices that are divided -------------------------------------------------------------------- */

const char *weft_emit_quotient_refuse(const struct weft_form *form, const struct weft_program *program, uint32_t value);
void weft_emit_quotient_head(struct weft_emit *e, uint32_t value);
void weft_emit_quotient_find(struct weft_emit *e, uint32_t value);

#endif
