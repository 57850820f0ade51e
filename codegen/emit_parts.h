/* SPDX-License-Identifier: Apache-2.0 */
/* emit_parts.h: what the files of the C back end share. */
#ifndef WEFT_EMIT_PARTS_H
#define WEFT_EMIT_PARTS_H

#include "codegen/emit.h"

enum { WEFT_EMIT_OPS = 512, WEFT_EMIT_AXIS = 64 }; /* instructions at most; bytes of a variable's name */

/* Which loops a program becomes.
 *   ROWS     for each outer point all stages; vectors run along the inner points, which one fold removes
 *   COLUMNS  for each stage all inner points; vectors run along the outer ones
 *   POINTS   outer points alone: nothing is folded */
enum weft_emit_way { WEFT_EMIT_ROWS, WEFT_EMIT_COLUMNS, WEFT_EMIT_POINTS };

struct weft_emit {
    const struct weft_form *form;
    const struct weft_program *program;
    struct weft_text *text;
    enum weft_emit_way way;
    char rows[WEFT_EMIT_AXIS];     /* of stages side by side: what their variables for rows begin with */
    char outer[WEFT_EMIT_AXIS], inner[WEFT_EMIT_AXIS]; /* variables that count outer and inner points */
    int depth;                     /* of blocks */
    /* where the next instructions are printed */
    const char *at;                /* the variable that says where a vector begins; NULL: one number for all lanes */
    bool tail;                     /* the first `live` lanes alone */
    const char *lanes;             /* index of the accumulators that folds add to, "" if they are single vectors; NULL:
                                    * terms are put into rest_… */
    bool held[WEFT_EMIT_OPS];      /* by value: there is a variable v_… for all that is inside of this block */
    bool made[WEFT_EMIT_OPS];      /* and for the instructions of one vector */
    bool pointed[WEFT_EMIT_OPS];   /* by value: there is a variable p_… */
    bool past[WEFT_EMIT_OPS];      /* and a variable past_…: does this line of it go past the caches? */
    bool streamed;                 /* there was one */
    bool again[WEFT_EMIT_OPS];     /* by value: kept nowhere, computed again by each stage that reads it */
    bool crosses[WEFT_EMIT_OPS];   /* by value of a strip: in memory, as a scan meets it */
    const char *from;              /* of strips along rows: the variable that says where this one begins, or NULL */
    int several;                   /* loops around the line of a row: 0 where a row is one line */
    bool in_line;                  /* inside of these loops */
};

/* A line, at the depth of the block. */
void weft_emit_line(const struct weft_emit *e, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_emit_open(struct weft_emit *e);  /* { */
void weft_emit_close(struct weft_emit *e); /* } */

/* --- emit_rows.c: rows of strip.def ------------------------------------------------------------------------------- */

struct weft_emit_row {
    const char *id, *op, *result;
    uint8_t ins;
    bool test;                     /* the result is a mask */
};
/* The row of a word for f32, or NULL. */
const struct weft_emit_row *weft_emit_row_find(const char *word, unsigned ins);
/* Has the row's expression this identifier? */
bool weft_emit_row_uses(const struct weft_emit_row *row, const char *name);
/* Is it of functions_double.h? */
bool weft_emit_row_is_double(const struct weft_emit_row *row);

/* --- emit_op.c: instructions -------------------------------------------------------------------------------------- */

/* NULL, or why no vector code computes the instruction. */
const char *weft_emit_op_refuse(const struct weft_form *form, const struct weft_form_op *op);
/* Pointers, and numbers that are the same along a strip, of all that the stage reads from memory and writes. */
void weft_emit_heads(struct weft_emit *e, const struct weft_form_stage *stage);
/* The instructions of a stage for one vector. */
void weft_emit_body(struct weft_emit *e, const struct weft_form_stage *stage);
void weft_emit_consts(struct weft_emit *e);
/* One element of memory in all lanes, as a variable of that name. */
void weft_emit_spread(const struct weft_emit *e, uint32_t value, const char *name);
/* Prints v_… to memory. */
void weft_emit_write(struct weft_emit *e, uint32_t value);
/* "tile->at[3] + a * tile->next[3]": where the value's first element of a strip is. */
void weft_emit_place(const struct weft_emit *e, uint32_t value, char *ret, size_t bytes);
const char *weft_emit_element(int dtype); /* "float", or NULL: not an element type of emitted code */
const char *weft_emit_vector(int dtype);  /* "vf" */
/* In emit_comment.c: "/ %3 = sub %0, %1 /", without the blanks. */
void weft_emit_comment(const struct weft_emit *e, uint32_t op, char *ret, size_t bytes);
/* The value narrowed to its dtype and widened again: f(…) of the expression. */
void weft_emit_rounded(int dtype, const char *expression, char *ret, size_t bytes);
/* By enum weft_reduce_op: the function of two vectors, and what it leaves as it is. */
extern const char *const weft_emit_combine[], *const weft_emit_identity[];
/* Does the program keep the value in memory between stages, or is it the caller's? */
bool weft_emit_in_memory(const struct weft_emit *e, uint32_t value);

/* --- emit_line.c: lines without folds ----------------------------------------------------------------------------- */

/* All points of a line: `i` counts up to `all`. */
void weft_emit_sweep_line(struct weft_emit *e, const struct weft_form_stage *stage, const char *i, const char *all);

/* --- emit_several.c: rows of several lines ------------------------------------------------------------------------ */

/* How many axes of a row are in front of its line. */
int weft_emit_several_of(const struct weft_program *program);
/* At the begin of the function: how far lines lie apart. */
void weft_emit_declare_several(const struct weft_emit *e);
/* At the begin of a row: where it begins of all that the stages at a depth read and write line by line; -1: all. */
void weft_emit_open_row(const struct weft_emit *e, int depth);
/* The loops; what stands between them is printed with heads of the line. What was held is held behind them. */
void weft_emit_open_lines(struct weft_emit *e);
void weft_emit_close_lines(struct weft_emit *e, const struct weft_emit *before);
/* Does it lie elsewhere for another line of the row? */
bool weft_emit_is_by_line(const struct weft_program *program, uint32_t value);
/* " + line_0 * skip3_0": from where the row has it to where the line does; "" outside of the loops. */
void weft_emit_skip(const struct weft_emit *e, uint32_t value, char *ret, size_t bytes);

/* --- emit_scan.c: stages with scans ------------------------------------------------------------------------------- */

bool weft_emit_has_scans(const struct weft_form *form, const struct weft_form_stage *stage);
/* NULL, or why there is no C for the scans of a stage. */
const char *weft_emit_scans_refuse(const struct weft_form *form, const struct weft_program *program, uint32_t stage);
/* All points of a row, or of a tile's lines. */
void weft_emit_scan_stage(struct weft_emit *e, uint32_t stage);

/* --- emit_look.c: loads that are look-ups (strips.h) -------------------------------------------------------------- */

/* NULL, or why there is no C for it; `vectors`: in a stage whose strips are vectors. */
const char *weft_emit_look_refuse(const struct weft_form *form, const struct weft_program *program, bool vectors,
                                  uint32_t value);
/* What its strip begins with; the value for one vector. */
void weft_emit_look_head(struct weft_emit *e, uint32_t value);
void weft_emit_look_up(struct weft_emit *e, uint32_t value);

/* --- emit_sweep.c: stages ----------------------------------------------------------------------------------------- */

/* Terms in a chain, for folds along lines: what program_fold.c does. */
int weft_emit_piece(const struct weft_form *form, const struct weft_program *program, const struct weft_form_op *op);
/* Does a row or column come to it? Folds across put rows together, in memory. */
bool weft_emit_is_fold(const struct weft_emit *e, uint32_t op);
bool weft_emit_is_extreme(const struct weft_emit *e, uint32_t fold);
bool weft_emit_has_folds(const struct weft_emit *e, const struct weft_form_stage *stage);
/* For each fold of a stage, i. */
#define WEFT_EACH_FOLD(e, stage, i)                                                                                    \
    for (uint32_t i = (stage)->first; i < (stage)->first + (stage)->ops; i++)                                          \
        if (weft_emit_is_fold(e, i))
/* Is it a result that a line of vectors may write past the caches? */
bool weft_emit_is_streamed(const struct weft_emit *e, uint32_t value);
/* Does what is loaded differ from row to row? */
bool weft_emit_moves(const struct weft_emit *e, uint32_t load);
void weft_emit_comment_stage(const struct weft_emit *e, const struct weft_form_stage *stage);
/* Folds along a row, in this order: totals, and for each piece of it [begin, end) the chains, their terms (by
 * weft_emit_body), the terms behind the last whole block, the chains added to the totals; then the results. */
void weft_emit_open_totals(struct weft_emit *e, const struct weft_form_stage *stage);
void weft_emit_open_chains(struct weft_emit *e, const struct weft_form_stage *stage);
void weft_emit_each_chain(const struct weft_emit *e);
void weft_emit_add_chain(const struct weft_emit *e, uint32_t fold, const char *term);
void weft_emit_fold_rest(struct weft_emit *e, const struct weft_form_stage *stage);
void weft_emit_close_chains(struct weft_emit *e, const struct weft_form_stage *stage);
/* All of a line but the totals around it. */
void weft_emit_fold_line(struct weft_emit *e, const struct weft_form_stage *stage);
void weft_emit_finish_totals(struct weft_emit *e, const struct weft_form_stage *stage);
void weft_emit_rows(struct weft_emit *e);
void weft_emit_columns(struct weft_emit *e);
void weft_emit_points(struct weft_emit *e);

/* --- emit_pipeline.c: rows of which each stage has another one under way ------------------------------------------ */

bool weft_emit_can_pipeline(const struct weft_emit *e);
void weft_emit_pipeline(struct weft_emit *e);
/* How many stages inside of rows stand before this one; the stage of an instruction; the one inside of rows at a
 * depth. */
int weft_emit_depth_of(const struct weft_emit *e, uint32_t stage);
uint32_t weft_emit_stage_of(const struct weft_emit *e, uint32_t op);
const struct weft_form_stage *weft_emit_stage_at(const struct weft_emit *e, int depth);
/* A number of a row that stages behind the one that makes it read; named as they do. */
bool weft_emit_is_handed_on(const struct weft_emit *e, uint32_t value);
void weft_emit_name_handed_on(struct weft_emit *e, const struct weft_form_stage *stage);

/* --- emit_again.c: what such rows compute again ------------------------------------------------------------------- */

/* Is it loaded as one number for all of a row? */
bool weft_emit_is_number(const struct weft_emit *e, uint32_t value);
/* Is it computed again by stages behind the one that makes it? */
bool weft_emit_is_again(const struct weft_emit *e, uint32_t value);
/* What an instruction reads: its operands, and for what is computed again the operands of that behind them. */
unsigned weft_emit_reads_of(const struct weft_emit *e, uint32_t op,
                            uint32_t ret[WEFT_K_MAX_IN * (WEFT_K_MAX_IN + 1)]);
/* Numbers that stages in front have loaded of another row, and that the stage at a depth reads again: w3_1. */
void weft_emit_load_numbers(const struct weft_emit *e, int depth);

/* --- emit_pick.c: of a line that is the same for all rows, the place that one number of a row names --------------- */

struct weft_emit_pick {
    uint32_t line, number, fold;
    int depth;             /* of its stage; -1: there is none */
};
/* Of a stage that makes nothing but sums: the pick, if it has one sum and that is one. */
struct weft_emit_pick weft_emit_pick_of(const struct weft_emit *e, int depth);
/* Prints whether the line counts up; the one term that is not 0, in total…[0]. */
void weft_emit_ask_for_count(const struct weft_emit *e, const struct weft_emit_pick *pick);
void weft_emit_pick_term(struct weft_emit *e, const struct weft_emit_pick *pick);


/* --- emit_prelude.c, which embed.py writes: headers without their own includes ------------------------------------ */

extern const char weft_prelude_vector[], weft_prelude_access[], weft_prelude_look[],
    weft_prelude_functions[], weft_prelude_functions_double[];

#endif
