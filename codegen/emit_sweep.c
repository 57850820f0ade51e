/* SPDX-License-Identifier: Apache-2.0 */
/* emit_sweep.c: the loops of C kernels.
 *
 * Along lines a fold has 32 virtual lanes, in as many vectors as that takes: so many chains of additions are under way,
 * and the loop takes a block of 32 terms a turn. A last block that is not full goes through a row of 32 floats, where
 * what is missing are terms that change nothing. Across lines there is a chain for each result; four lines a turn are
 * added to it while it is in a register, so that memory sees few long streams. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <stdio.h>
#include <string.h>

enum { LINE_PIECE = 8192, SHORT_PIECE = 256, TOGETHER = 4 }; /* as in kernels/strip/program_fold.c; lines a turn */

int weft_emit_piece(const struct weft_form *form, const struct weft_program *program, const struct weft_form_op *op)
{
    return program->value[op->in[0]].stride == 1 && form->op[op->in[0]].dtype == WEFT_F32 ? LINE_PIECE : SHORT_PIECE;
}

/* That a row or column comes to; folds across put rows together, in memory. */
bool weft_emit_is_fold(const struct weft_emit *e, uint32_t i)
{
    return e->form->op[i].kind == WEFT_FORM_FOLD && !weft_strips_is_across(e->form, i);
}

bool weft_emit_has_folds(const struct weft_emit *e, const struct weft_form_stage *stage)
{
    bool any = false;
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++)
        any |= weft_emit_is_fold(e, i);
    return any;
}

static void print_names(const struct weft_emit *e, uint16_t axes, char *ret, size_t bytes)
{
    size_t length = 0;
    ret[0] = 0;
    for (uint32_t i = 0; i < e->form->axes && length < bytes - 1; i++)
        if (axes >> i & 1)
            length += (size_t)snprintf(ret + length, bytes - length, "%s%s", length ? ", " : "", e->form->axis[i].name);
}

void weft_emit_comment_stage(const struct weft_emit *e, const struct weft_form_stage *stage)
{
    char names[128];
    print_names(e, stage->axes, names, sizeof names);
    weft_emit_line(e, "/* sweep %s */", names);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const char *const words[] = {"sum", "sum", "prod", "max", "min"};

void weft_emit_each_chain(const struct weft_emit *e)
{
    weft_emit_line(e, "UNROLL for (int chain = 0; chain < FOLD_CHAINS; chain++)");
}

bool weft_emit_is_extreme(const struct weft_emit *e, uint32_t f)
{
    return e->form->op[f].fold == WEFT_K_MAX || e->form->op[f].fold == WEFT_K_MIN;
}

/* Two numbers of a line: of an extreme without regard to NaN, which is looked for besides. */
static const char *combine(const struct weft_emit *e, uint32_t f)
{
    const bool is_extreme = weft_emit_is_extreme(e, f);
    return is_extreme && e->form->op[f].fold == WEFT_K_MAX ? "vmax_x86"
           : is_extreme                                    ? "vmin_x86" : weft_emit_combine[e->form->op[f].fold];
}

void weft_emit_open_totals(struct weft_emit *e, const struct weft_form_stage *stage)
{
    WEFT_EACH_FOLD(e, stage, f)
    {
        weft_emit_line(e, "vf total%u[FOLD_CHAINS];", f);
        if (e->several) { /* there may be no line */
            weft_emit_each_chain(e);
            weft_emit_line(e, "    total%u[chain] = vall(%s);", f, weft_emit_identity[e->form->op[f].fold]);
        }
        if (weft_emit_is_extreme(e, f))
            weft_emit_line(e, "vseen seen%u = {0};", f);
    }
}

void weft_emit_open_chains(struct weft_emit *e, const struct weft_form_stage *stage)
{
    WEFT_EACH_FOLD(e, stage, f)
    {
        weft_emit_line(e, "vf acc%u[FOLD_CHAINS];", f);
        weft_emit_each_chain(e);
        weft_emit_line(e, "    acc%u[chain] = vall(%s);", f, weft_emit_identity[e->form->op[f].fold]);
    }
}

void weft_emit_add_chain(const struct weft_emit *e, uint32_t f, const char *term)
{
    weft_emit_line(e, "acc%u[chain] = %s(acc%u[chain], %s);", f, combine(e, f), f, term);
    if (weft_emit_is_extreme(e, f))
        weft_emit_line(e, "seen%u = vsee_nan(seen%u, %s);", f, f, term);
}

static void fold_blocks(struct weft_emit *e, const struct weft_form_stage *stage)
{
    const char *const i = e->inner;
    weft_emit_line(e, "int64_t %s = begin;", i);
    weft_emit_line(e, "for (; %s + FOLD_LANES <= end; %s += FOLD_LANES)", i, i);
    weft_emit_open(e);
    weft_emit_each_chain(e);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t here = %s + chain * LANES;", i);
    e->lanes = "[chain]";
    weft_emit_body(e, stage);
    weft_emit_close(e);
    weft_emit_close(e);
}

/* Of short lines the rest is a good part: it is added in registers, by code for each chain. */
static void fold_short_rest(struct weft_emit *e, const struct weft_form_stage *stage)
{
    weft_emit_each_chain(e);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t part = %s + chain * LANES;", e->inner);
    weft_emit_line(e, "if (part < end)");
    weft_emit_open(e);
    weft_emit_line(e, "const int live = end - part < LANES ? (int)(end - part) : LANES;");
    e->at = "part";
    e->tail = true;
    e->lanes = "[chain]";
    weft_emit_body(e, stage);
    e->tail = false;
    e->at = "here";
    weft_emit_close(e);
    weft_emit_close(e);
}

void weft_emit_fold_rest(struct weft_emit *e, const struct weft_form_stage *stage)
{
    if (e->several) {
        fold_short_rest(e, stage);
        return;
    }
    weft_emit_line(e, "const int64_t rest = %s;", e->inner);
    WEFT_EACH_FOLD(e, stage, f)
    {
        weft_emit_line(e, "float rest%u[FOLD_LANES];", f);
        weft_emit_line(e, "fill_floats(rest%u, FOLD_LANES, %s);", f, weft_emit_identity[e->form->op[f].fold]);
    }
    weft_emit_line(e, "for (int64_t part = rest; part < end; part += LANES)");
    weft_emit_open(e);
    weft_emit_line(e, "const int live = end - part < LANES ? (int)(end - part) : LANES;");
    e->at = "part";
    e->tail = true;
    e->lanes = NULL;
    weft_emit_body(e, stage);
    e->tail = false;
    e->at = "here";
    weft_emit_close(e);
    WEFT_EACH_FOLD(e, stage, f)
    {
        char term[64];
        snprintf(term, sizeof term, "vload(rest%u + chain * LANES)", f);
        weft_emit_each_chain(e);
        weft_emit_open(e);
        weft_emit_add_chain(e, f, term);
        weft_emit_close(e);
    }
}

void weft_emit_close_chains(struct weft_emit *e, const struct weft_form_stage *stage)
{
    WEFT_EACH_FOLD(e, stage, f)
    {
        weft_emit_each_chain(e);
        if (e->several)
            weft_emit_line(e, "    total%u[chain] = %s(total%u[chain], acc%u[chain]);", f, combine(e, f), f, f);
        else
            weft_emit_line(e, "    total%u[chain] = begin ? %s(total%u[chain], acc%u[chain]) : acc%u[chain];", f,
                           combine(e, f), f, f, f);
    }
}

/* What a fold makes of the number that all terms came to. */
static void finish(struct weft_emit *e, uint32_t f, const char *number)
{
    const struct weft_form_op *op = &e->form->op[f];
    char divided[192], right[256], comment[256];
    snprintf(divided, sizeof divided, "%s%s", number,
             op->fold != WEFT_K_MEAN ? "" : e->several ? " / vall((float)folded)" : " / vall((float)length)");
    weft_emit_rounded(op->dtype, divided, right, sizeof right);
    weft_emit_comment(e, f, comment, sizeof comment);
    weft_emit_line(e, "const vf v%u = %s; %s", f, right, comment);
    if (weft_emit_in_memory(e, f))
        weft_emit_write(e, f);
}

void weft_emit_finish_totals(struct weft_emit *e, const struct weft_form_stage *stage)
{
    e->at = NULL;
    WEFT_EACH_FOLD(e, stage, f)
    {
        const char *const word = words[e->form->op[f].fold];
        char number[96];
        if (weft_emit_is_extreme(e, f))
            snprintf(number, sizeof number, "vfold_%s_seen(total%u, seen%u)", word, f, f);
        else
            snprintf(number, sizeof number, "vfold_%s(total%u)", word, f);
        finish(e, f, number);
        e->held[f] = true;
    }
}

void weft_emit_fold_line(struct weft_emit *e, const struct weft_form_stage *stage)
{
    int piece = LINE_PIECE;
    WEFT_EACH_FOLD(e, stage, f)
        piece = weft_emit_piece(e->form, e->program, &e->form->op[f]);
    weft_emit_line(e, "for (int64_t begin = 0; begin == 0 || begin < length; begin += %d)", piece);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t end = length - begin < %d ? length : begin + %d;", piece, piece);
    weft_emit_open_chains(e, stage);
    fold_blocks(e, stage);
    weft_emit_line(e, "if (%s < end)", e->inner);
    weft_emit_open(e);
    weft_emit_fold_rest(e, stage);
    weft_emit_close(e);
    weft_emit_close_chains(e, stage);
    weft_emit_close(e);
}

/* Of a row, the line, or its lines one behind the other. */
static void sweep_row(struct weft_emit *e, const struct weft_form_stage *stage)
{
    const struct weft_emit before = *e;
    const bool folds = weft_emit_has_folds(e, stage);
    weft_emit_open_totals(e, stage);
    if (!e->several && !folds)
        weft_emit_open(e);
    weft_emit_open_lines(e);
    if (e->several)
        weft_emit_heads(e, stage);
    if (folds)
        weft_emit_fold_line(e, stage);
    else
        weft_emit_sweep_line(e, stage, e->inner, "length");
    weft_emit_close_lines(e, &before);
    if (!e->several && !folds)
        weft_emit_close(e);
    weft_emit_finish_totals(e, stage);
}

/* A number for each inner point, to which each row adds: whoever runs the chunk sets and reads them. */
static void point_at_columns(const struct weft_emit *e)
{
    int number = 0;
    for (uint32_t i = 0; i < e->form->ops; i++) {
        if (weft_strips_is_across(e->form, i))
            weft_emit_line(e, "float *const column%s%u = (float *)tile->at[%d];", e->several ? "s" : "", i,
                           e->program->values + number);
        number += e->form->op[i].kind == WEFT_FORM_FOLD;
    }
}

void weft_emit_rows(struct weft_emit *e)
{
    if (weft_emit_can_pipeline(e)) {
        weft_emit_pipeline(e);
        return;
    }
    point_at_columns(e);
    weft_emit_line(e, "for (int64_t %s = 0; %s < points; %s++)", e->outer, e->outer, e->outer);
    weft_emit_open(e);
    weft_emit_open_row(e, /* depth= */ -1);
    for (uint32_t s = 0; s < e->form->stages; s++) {
        const struct weft_form_stage *stage = &e->form->stage[s];
        const bool inside = e->program->stage[s].inside;
        if (e->program->stage[s].ops == 0)
            continue;
        weft_emit_comment_stage(e, stage);
        if (weft_emit_has_scans(e->form, stage)) {
            weft_emit_scan_stage(e, s);
            continue;
        }
        e->at = inside ? "here" : NULL;
        weft_emit_heads(e, stage);
        if (inside)
            sweep_row(e, stage);
        else
            weft_emit_body(e, stage);
    }
    weft_emit_close(e);
}

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* One vector of results, and a few lines of terms. */
static void fold_lines(struct weft_emit *e, const struct weft_form_stage *stage)
{
    const struct weft_emit before = *e;
    WEFT_EACH_FOLD(e, stage, f)
        weft_emit_line(e, e->tail ? "vf acc%u = vloadm(into%u + %s, live, 0.f);" : "vf acc%u = vload(into%u + %s);",
                       f, f, e->outer);
    weft_emit_line(e, "for (int64_t %s = first; %s < stop; %s++)", e->inner, e->inner, e->inner);
    weft_emit_open(e);
    weft_emit_heads(e, stage);
    weft_emit_body(e, stage);
    weft_emit_close(e);
    WEFT_EACH_FOLD(e, stage, f)
        weft_emit_line(e, e->tail ? "vstorem(into%u + %s, live, acc%u);" : "vstore(into%u + %s, acc%u);", f, e->outer,
                       f);
    memcpy(e->held, before.held, sizeof e->held);
    memcpy(e->pointed, before.pointed, sizeof e->pointed);
}

static void open_results(struct weft_emit *e)
{
    weft_emit_line(e, "for (int64_t %s = 0; %s < points; %s += LANES)", e->outer, e->outer, e->outer);
    weft_emit_open(e);
    weft_emit_line(e, "const int live = points - %s < LANES ? (int)(points - %s) : LANES;", e->outer, e->outer);
    e->at = e->outer;
}

static void finish_columns(struct weft_emit *e, const struct weft_form_stage *stage)
{
    const char moves = e->inner[0];
    e->inner[0] = 0; /* results are no inner points */
    open_results(e);
    e->tail = true;
    WEFT_EACH_FOLD(e, stage, f)
    {
        char number[WEFT_EMIT_AXIS + 64], place[192];
        const char *const type = weft_emit_element(e->form->op[f].dtype);
        weft_emit_place(e, f, place, sizeof place);
        weft_emit_line(e, "%s *const p%u = (%s *)(%s);", type, f, type, place);
        snprintf(number, sizeof number, "vloadm(total%u + %s, live, 0.f)", f, e->outer);
        finish(e, f, number);
    }
    e->tail = false;
    weft_emit_close(e);
    e->inner[0] = moves;
}

static void fold_columns(struct weft_emit *e, const struct weft_form_stage *stage)
{
    const char *const o = e->outer;
    WEFT_EACH_FOLD(e, stage, f)
    {
        uint16_t number = 0;
        WEFT_EACH_FOLD(e, &((struct weft_form_stage){.first = 0, .ops = f}), before)
            number++;
        weft_emit_line(e, "float *const total%u = (float *)tile->at[%u], *const more%u = total%u + points;", f,
                       e->program->values + number, f, f);
        weft_emit_line(e, "fill_floats(total%u, points, %s);", f, weft_emit_identity[e->form->op[f].fold]);
    }
    weft_emit_line(e, "for (int64_t begin = 0; begin < length; begin += %d)", SHORT_PIECE);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t end = length - begin < %d ? length : begin + %d;", SHORT_PIECE, SHORT_PIECE);
    WEFT_EACH_FOLD(e, stage, f)
    {
        weft_emit_line(e, "float *const into%u = begin ? more%u : total%u;", f, f, f);
        weft_emit_line(e, "fill_floats(into%u, points, %s);", f, weft_emit_identity[e->form->op[f].fold]);
    }
    weft_emit_line(e, "for (int64_t first = begin; first < end; first += %d)", TOGETHER);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t stop = end - first < %d ? end : first + %d;", TOGETHER, TOGETHER);
    weft_emit_line(e, "int64_t %s = 0;", o);
    weft_emit_line(e, "for (; %s + LANES <= points; %s += LANES)", o, o);
    weft_emit_open(e);
    e->at = o;
    e->lanes = "";
    fold_lines(e, stage);
    weft_emit_close(e);
    weft_emit_line(e, "if (%s < points)", o);
    weft_emit_open(e);
    weft_emit_line(e, "const int live = (int)(points - %s);", o);
    e->tail = true;
    fold_lines(e, stage);
    e->tail = false;
    weft_emit_close(e);
    weft_emit_close(e);
    WEFT_EACH_FOLD(e, stage, f)
    {
        weft_emit_line(e, "for (int64_t %s = 0; begin && %s < points; %s += LANES)", o, o, o);
        weft_emit_open(e);
        weft_emit_line(e, "const int live = points - %s < LANES ? (int)(points - %s) : LANES;", o, o);
        weft_emit_line(e, "vstorem(total%u + %s, live, %s(vloadm(total%u + %s, live, 0.f), "
                          "vloadm(more%u + %s, live, 0.f)));",
                       f, o, weft_emit_combine[e->form->op[f].fold], f, o, f, o);
        weft_emit_close(e);
    }
    weft_emit_close(e);
    finish_columns(e, stage);
}

void weft_emit_columns(struct weft_emit *e)
{
    const struct weft_emit before = *e;
    for (uint32_t s = 0; s < e->form->stages; s++) {
        const struct weft_form_stage *stage = &e->form->stage[s];
        memcpy(e->held, before.held, sizeof e->held);
        memcpy(e->pointed, before.pointed, sizeof e->pointed);
        weft_emit_comment_stage(e, stage);
        weft_emit_open(e);
        e->at = "here";
        e->inner[0] = e->program->stage[s].inside ? before.inner[0] : 0;
        if (weft_emit_has_scans(e->form, stage)) {
            weft_emit_scan_stage(e, s);
        } else if (weft_emit_has_folds(e, stage)) {
            fold_columns(e, stage);
        } else {
            if (e->inner[0]) {
                weft_emit_line(e, "for (int64_t %s = 0; %s < length; %s++)", e->inner, e->inner, e->inner);
                weft_emit_open(e);
            }
            weft_emit_heads(e, stage);
            weft_emit_sweep_line(e, stage, e->outer, "points");
            if (e->inner[0])
                weft_emit_close(e);
        }
        weft_emit_close(e);
    }
}

void weft_emit_points(struct weft_emit *e)
{
    e->at = "here";
    for (uint32_t s = 0; s < e->form->stages; s++) {
        weft_emit_comment_stage(e, &e->form->stage[s]);
        weft_emit_heads(e, &e->form->stage[s]);
        weft_emit_open(e);
        weft_emit_sweep_line(e, &e->form->stage[s], e->outer, "points");
        weft_emit_close(e);
    }
}
