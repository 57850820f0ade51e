/* SPDX-License-Identifier: Apache-2.0 */
/* emit.h: the C back end: strip programs as C source (emit.c, emit_sweep.c, emit_op.c, emit_rows.c).
 *
 * A prepared program (kernels/strip/program.h) becomes one function that does all stages of a tile, a
 * weft_program_code. What a stage makes and reads itself stays in vector registers, where the interpreter writes and
 * reads a strip for each op. Sizes, steps between rows and places are arguments, so one function serves all sizes that
 * programs of the same shape have.
 *
 *   struct weft_program *program = weft_strips_make(form, …);
 *   if (!weft_emit_refuse(form, program)) {
 *       weft_emit_source(form, program, &text);         text: a file of its own, for cc with weft_emit_flags
 *       program->code = …                               the function weft_emit_name of what came of it
 *   }
 *
 * Results are those of the interpreted program at the same CPU level, bit for bit: the vocabulary of vectors, the
 * mathematics and the rows of strip.def are the text that strip kernels are compiled from, and folds have the same
 * virtual lanes and pieces. Of a NaN it is not promised which one: of two NaN operands either may come through. */
#ifndef WEFT_EMIT_H
#define WEFT_EMIT_H

#include "codegen/form.h"
#include "kernels/strip/program.h"

/* NULL, or why there is no C for the program, which weft_strips_make made of the form: constant text. Taken are
 * programs with strips along inner axes, of which up to two are in front of the last, or along outer ones with one line
 * of inner points or none, whose arguments have elements side by side along strips, or one element, of f32, f16, bf16,
 * bool and i32, with ops that strip.def has rows for, logic of bools and casts between these. Allocates nothing. */
const char *weft_emit_refuse(const struct weft_form *form, const struct weft_program *program);
/* Of two programs of one form that are not refused, the source is the same if and only if these are equal but for
 * collisions of 64 bits: CPU level, where strips run, of how many axes the lines of a row are, and for each value where
 * it lies, whether it has one element along a strip and whether it has others in the next line. Allocates nothing:
 * whoever binds sizes can ask whether the code at hand fits. */
uint64_t weft_emit_shape(const struct weft_program *program);

/* Bytes of a function's name, and the name: that of the form, as C can have it. */
enum { WEFT_EMIT_NAME = 256 };
void weft_emit_name(const struct weft_form *form, char ret[WEFT_EMIT_NAME]);
/* Appends the function, of a program that is not refused, with the functions for its ops above it; and everything that
 * a file needs besides, as include lines that find the headers in weft's source folder. */
void weft_emit_kernel(const struct weft_form *form, const struct weft_program *program, struct weft_text *text);
void weft_emit_includes(uint32_t cpu, struct weft_text *text);
/* The same for a text of several kernels, behind one prelude: functions for ops are there once. */
void weft_emit_member(const struct weft_form *form, const struct weft_program *program, struct weft_text *text);
/* Do its ops compute in double? */
bool weft_emit_is_double(const struct weft_form *form);
/* What stands in front of functions in a file of their own, as text; `doubles`: with the functions that compute in
 * double, which take as long to compile as all others. */
void weft_emit_prelude(uint32_t cpu, bool doubles, struct weft_text *text);
/* A whole file, which includes nothing of weft's and no header of intrinsics. */
void weft_emit_source(const struct weft_form *form, const struct weft_program *program, struct weft_text *text);
/* What a compiler has to be told besides files, up to NULL: language, optimisation, the level's instructions. Position-
 * independent, for a shared object, which needs libm. */
const char *const *weft_emit_flags(uint32_t cpu);

#endif
