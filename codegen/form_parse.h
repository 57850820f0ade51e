/* SPDX-License-Identifier: Apache-2.0 */
/* form_parse.h: what the two files of the form's parser share: form_parse.c reads heads and blocks, form_parse_op.c
 * instructions. Each function leaves a message in the lexer's way and returns false where the text is wrong. */
#ifndef WEFT_FORM_PARSE_H
#define WEFT_FORM_PARSE_H

#include "codegen/form_parts.h"
#include "ir/parse.h"

struct weft_form_reader {
    struct weft_parser lex;
    struct weft_form *form;
    struct weft_arena *arena;
    struct weft_parse_names values, arrays; /* op + 1, array + 1 */
    int32_t *op_line, *stage_line;
    uint32_t op_lines, stage_lines; /* capacities */
};

/* form_parse_size.c */
/* An expression of sizes, up to `end` at most. Symbols that the table does not have are added to it. */
bool weft_form_read_dim(struct weft_form_reader *r, const char *end, weft_dim *ret);
/* [i, 2*h + j - 1 ?, …]; values that stand for an index, [%i, c], are read by `op`. */
bool weft_form_read_map(struct weft_form_reader *r, struct weft_form_op *op, struct weft_index_map *ret);
/* The axis of that name, or -1. */
int weft_form_find_axis(const struct weft_form *form, struct weft_word word);
bool weft_form_read_axis(struct weft_form_reader *r, unsigned *ret);

/* form_parse_op.c */
bool weft_form_read_dtype(struct weft_form_reader *r, uint8_t *ret);
/* r, c after the word `over`; none where that word does not follow. */
bool weft_form_read_over(struct weft_form_reader *r, uint16_t *ret);
/* %v: one more value that the op reads. */
bool weft_form_read_operand(struct weft_form_reader *r, struct weft_form_op *op);
/* A line of a stage of this kind, added to the form. */
bool weft_form_read_op(struct weft_form_reader *r, const struct weft_form_stage *stage);

#endif
