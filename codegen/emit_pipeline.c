/* SPDX-License-Identifier: Apache-2.0 */
/* emit_pipeline.c: rows, with all stages side by side in one loop.
 *
 * Stage by stage a row is read while nothing is computed, then computed on while memory rests, then written; and each
 * stage waits for the number that the fold before it comes to. So stage k works on the row k rows behind that of the
 * first one: pass n reads row n, and is at row n - 1 in the second stage, at row n - 2 in the third. Memory is busy all
 * the time, and what folds come to has until the next pass to arrive.
 *
 *   pass n     y[n - 2] = e / s     e = exp(x[n - 1] - m)     s' = sum e     m' = max x[n]
 *
 * The last stage comes first: what is kept of a row is read before another row's is written to the same place. Numbers
 * that folds and stages outside of rows make are handed on by row, in hand3: w3_1 is %3 as the stage behind it reads
 * it, w3_2 for the stage behind that. Of short rows several lie between a stage and the next (`apart`), and what a
 * row's terms are added to comes to a number `late` passes behind, before the terms of another row: a fold and a
 * logarithm take longer than a row of 128 columns, and the window of a core is not longer than its instructions.
 *
 * What is cheap to compute again is not kept (emit_again.c).
 *
 * Rows of several lines go line by line: so the loops along a line are those that rows by themselves have, and what the
 * stages in front read lies far enough ahead all the same.
 *
 * Not done: folds across rows, scans, and values that are read more than a stage behind. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 4 };

/* How many stages inside of rows stand before this one; one outside belongs to the one before it. */
int weft_emit_depth_of(const struct weft_emit *e, uint32_t stage)
{
    int depth = -1;
    for (uint32_t s = 0; s <= stage; s++)
        depth += e->program->stage[s].inside;
    return depth;
}

uint32_t weft_emit_stage_of(const struct weft_emit *e, uint32_t op)
{
    uint32_t s = 0;
    while (op >= e->form->stage[s].first + e->form->stage[s].ops)
        s++;
    return s;
}

static int depths(const struct weft_emit *e) { return weft_emit_depth_of(e, e->form->stages - 1) + 1; }

const struct weft_form_stage *weft_emit_stage_at(const struct weft_emit *e, int depth)
{
    uint32_t s = 0;
    while (weft_emit_depth_of(e, s) < depth)
        s++;
    return &e->form->stage[s];
}

/* --- what can be -------------------------------------------------------------------------------------------------- */

/* A number of a row that the stage at this depth reads, made before: is it handed on? */
bool weft_emit_is_handed_on(const struct weft_emit *e, uint32_t v)
{
    const struct weft_form_op *op = &e->form->op[v];
    return op->kind == WEFT_FORM_FOLD ||
           (op->kind == WEFT_FORM_MAP && !e->program->stage[weft_emit_stage_of(e, v)].inside);
}

static bool can_read(const struct weft_emit *e, uint32_t v, uint32_t stage)
{
    const struct weft_form_op *op = &e->form->op[v];
    const int distance = weft_emit_depth_of(e, stage) - weft_emit_depth_of(e, weft_emit_stage_of(e, v));
    if (op->kind == WEFT_FORM_CONST || weft_emit_is_handed_on(e, v) || weft_emit_is_again(e, v))
        return true;
    return op->kind == WEFT_FORM_MAP && e->program->value[v].place == WEFT_PROGRAM_TILE && distance <= 1;
}

bool weft_emit_can_pipeline(const struct weft_emit *e)
{
    const struct weft_form *form = e->form;
    const int all = depths(e);
    bool can = all > 1 && all <= MOST_DEPTH && e->program->stage[0].inside;
    int piece = 0;
    for (uint32_t s = 0; s < form->stages && can; s++) {
        const struct weft_form_stage *stage = &form->stage[s];
        can = !e->program->stage[s].inside || weft_emit_has_folds(e, stage) || weft_emit_depth_of(e, s) == all - 1;
        can = can && !weft_emit_has_scans(form, stage);
        for (uint32_t i = stage->first; i < stage->first + stage->ops && can; i++) {
            const struct weft_form_op *op = &form->op[i];
            for (unsigned k = 0; k < op->ins && can; k++)
                can = op->in[k] >= stage->first || can_read(e, op->in[k], s);
            if (op->kind != WEFT_FORM_FOLD)
                continue;
            const int own = weft_emit_piece(form, e->program, op);
            can &= !weft_strips_is_across(form, i) && (piece == 0 || piece == own);
            piece = own;
        }
    }
    return can && piece;
}

/* The variable that says which row a stage is at. */
static void set_row(struct weft_emit *e, int depth)
{
    snprintf(e->outer, sizeof e->outer, "%.*s_%d", (int)sizeof e->outer - 16, e->rows, depth);
}

/* --- numbers that are handed on ----------------------------------------------------------------------------------- */

/* How many passes behind the one that makes it a value is read last. */
static int reach_of(const struct weft_emit *e, uint32_t v)
{
    uint32_t read[WEFT_K_MAX_IN * (WEFT_K_MAX_IN + 1)];
    int reach = 0;
    const int from = weft_emit_depth_of(e, weft_emit_stage_of(e, v));
    for (uint32_t i = v + 1; i < e->form->ops && weft_emit_is_handed_on(e, v); i++)
        for (unsigned k = e->form->op[i].kind == WEFT_FORM_STORE ? 0 : weft_emit_reads_of(e, i, read); k-- > 0;)
            if (read[k] == v) {
                const int distance = weft_emit_depth_of(e, weft_emit_stage_of(e, i)) - from;
                reach = distance > reach ? distance : reach;
            }
    return reach;
}

static void point_again(struct weft_emit *e, uint32_t v, int depth)
{
    char place[192];
    set_row(e, depth);
    weft_emit_place(e, v, place, sizeof place);
    const char *const type = weft_emit_element(e->form->op[v].dtype);
    weft_emit_line(e, "const %s *const p%u = (const %s *)(%s);", type, v, type, place);
}

/* What an instruction of the stage reads of earlier passes gets its ordinary name, and so do operands of earlier stages
 * that it reads again, on its own row. */
void weft_emit_name_handed_on(struct weft_emit *e, const struct weft_form_stage *stage)
{
    const int depth = weft_emit_depth_of(e, weft_emit_stage_of(e, stage->first));
    bool named[WEFT_EMIT_OPS] = {false};
    uint32_t read[WEFT_K_MAX_IN * (WEFT_K_MAX_IN + 1)];
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++)
        for (unsigned k = weft_emit_reads_of(e, i, read); k-- > 0;) {
            const uint32_t v = read[k];
            const int distance = depth - weft_emit_depth_of(e, weft_emit_stage_of(e, v));
            if (v >= stage->first || named[v] || distance == 0)
                continue;
            named[v] = true;
            if (weft_emit_is_number(e, v) || weft_emit_is_handed_on(e, v)) {
                weft_emit_line(e, "const %s v%u = w%u_%d;", weft_emit_vector(e->form->op[v].dtype), v, v, distance);
                e->held[v] = true;
            } else if (e->form->op[v].kind == WEFT_FORM_LOAD) {
                point_again(e, v, depth);
            }
        }
}

/* Masks or integers, one lane of which is an int32_t? */
static bool is_whole(const struct weft_emit *e, uint32_t v)
{
    return strcmp(weft_emit_vector(e->form->op[v].dtype), "vi") == 0;
}

/* By row, of as many rows as the last stage is behind, and more. */
static void declare_handed_on(const struct weft_emit *e)
{
    for (uint32_t v = 0; v < e->form->ops; v++)
        if (reach_of(e, v))
            weft_emit_line(e, "%s hand%u[ROWS_HELD] = {0};", is_whole(e, v) ? "int32_t" : "float", v);
}

/* What there is for the row of a stage. */
static void take_handed_on(const struct weft_emit *e, int depth)
{
    for (uint32_t v = 0; v < e->form->ops; v++) {
        const int distance = depth - weft_emit_depth_of(e, weft_emit_stage_of(e, v));
        if (distance > 0 && distance <= reach_of(e, v))
            weft_emit_line(e, "const %s w%u_%d = %s(hand%u[%s_%d & (ROWS_HELD - 1)]);",
                           weft_emit_vector(e->form->op[v].dtype), v, distance, is_whole(e, v) ? "viall" : "vall", v,
                           e->rows, depth);
    }
}

/* Those made at a depth, in this pass. */
static void hand_on(const struct weft_emit *e, int depth)
{
    for (uint32_t v = 0; v < e->form->ops; v++)
        if (weft_emit_depth_of(e, weft_emit_stage_of(e, v)) == depth && reach_of(e, v))
            weft_emit_line(e, "hand%u[%s_%d & (ROWS_HELD - 1)] = v%u[0];", v, e->rows, depth, v);
}

/* --- loops -------------------------------------------------------------------------------------------------------- */

/* What this stage is the first to read, asked for ahead of time. */
static void fetch(const struct weft_emit *e, const struct weft_form_stage *stage)
{
    for (uint32_t v = stage->first; v < stage->first + stage->ops; v++) {
        const struct weft_form_op *op = &e->form->op[v];
        bool again = op->kind != WEFT_FORM_LOAD || !e->pointed[v] || !weft_emit_moves(e, v) ||
                     weft_strips_is_look_up(e->form, v);
        for (uint32_t k = 0; k < v; k++)
            again |= e->form->op[k].kind == WEFT_FORM_LOAD && e->form->op[k].array == op->array;
        if (!again)
            weft_emit_line(e, "if (tile->next[%u]) __builtin_prefetch(p%u + %s + FETCH_AHEAD);", v, v, e->at);
    }
}

static void each_chain(struct weft_emit *e, const struct weft_form_stage *stage, const char *from)
{
    weft_emit_each_chain(e);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t here = %s + chain * LANES;", from);
    e->lanes = "[chain]";
    fetch(e, stage);
    weft_emit_body(e, stage);
    weft_emit_close(e);
}

/* The points ahead of the first whole line of the first result go alone; others stream if they are whole there too.
 * Whole blocks are [next, stop). */
static void open_results(struct weft_emit *e, const struct weft_form_stage *stage, int depth)
{
    bool any = false;
    weft_emit_line(e, "const int64_t last = on%d ? length : 0;", depth);
    for (uint32_t v = stage->first; v < stage->first + stage->ops; v++) {
        if (!weft_emit_is_streamed(e, v))
            continue;
        const int bytes = weft_dtype_bits(e->form->op[v].dtype) / 8;
        if (!any) {
            weft_emit_line(e, "int64_t next = tile->past && on%d ? stream_first(p%u, %d) : 0;", depth, v, bytes);
            weft_emit_line(e, "next = next < last ? next : last;");
        }
        weft_emit_line(e, "const int past%u = tile->past >> %u & 1 && stream_fits(p%u + next, %d);", v,
                       e->program->value[v].argument, v, bytes);
        any = e->past[v] = e->streamed = true;
    }
    if (!any)
        weft_emit_line(e, "int64_t next = 0;");
    weft_emit_line(e, "const int64_t stop = next + (last - next) / FOLD_LANES * FOLD_LANES;");
}

/* Results ahead of whole blocks and behind them, before the stages in front write over what is kept of the row. */
static void sweep_ends(struct weft_emit *e, const struct weft_form_stage *stage)
{
    weft_emit_line(e, "for (int64_t from = next ? 0 : stop, until = next ? next : last; from < last;)");
    weft_emit_open(e);
    weft_emit_name_handed_on(e, stage);
    weft_emit_line(e, "const int live = until - from < LANES ? (int)(until - from) : LANES;");
    e->at = "from";
    e->tail = true;
    weft_emit_body(e, stage);
    e->tail = false;
    e->at = "here";
    weft_emit_line(e, "from += live;");
    weft_emit_line(e, "if (from == next)");
    weft_emit_line(e, "    from = stop, until = last;");
    weft_emit_close(e);
}

/* Whole blocks of all stages. */
static void pass_blocks(struct weft_emit *e)
{
    const int all = depths(e);
    weft_emit_line(e, "int64_t %s = begin;", e->inner);
    weft_emit_line(e, "for (; %s + FOLD_LANES <= end; %s += FOLD_LANES)", e->inner, e->inner);
    weft_emit_open(e);
    for (int depth = all - 1; depth >= 0; depth--) {
        const struct weft_form_stage *stage = weft_emit_stage_at(e, depth);
        const bool folds = weft_emit_has_folds(e, stage);
        const struct weft_emit_pick pick = weft_emit_pick_of(e, depth);
        if (pick.depth >= 0)
            weft_emit_line(e, "if (on%d && !counts%u)", depth, pick.line);
        else
            weft_emit_line(e, folds ? "if (on%d)" : "if (next < stop)", depth);
        weft_emit_open(e);
        weft_emit_name_handed_on(e, stage);
        each_chain(e, stage, folds ? e->inner : "next");
        if (!folds)
            weft_emit_line(e, "next += FOLD_LANES;");
        weft_emit_close(e);
    }
    weft_emit_close(e);
}

static void pass_rest(struct weft_emit *e)
{
    const int all = depths(e);
    for (int depth = all - 1; depth >= 0; depth--) {
        const struct weft_form_stage *stage = weft_emit_stage_at(e, depth);
        if (!weft_emit_has_folds(e, stage))
            continue;
        const struct weft_emit_pick pick = weft_emit_pick_of(e, depth);
        if (pick.depth >= 0)
            weft_emit_line(e, "if (on%d && !counts%u && %s < end)", depth, pick.line, e->inner);
        else
            weft_emit_line(e, "if (on%d && %s < end)", depth, e->inner);
        weft_emit_open(e);
        weft_emit_name_handed_on(e, stage);
        weft_emit_fold_rest(e, stage);
        weft_emit_close(e);
    }
}

static void pass_pieces(struct weft_emit *e)
{
    const int all = depths(e);
    int piece = 0;
    for (uint32_t i = 0; i < e->form->ops; i++)
        if (weft_emit_is_fold(e, i))
            piece = weft_emit_piece(e->form, e->program, &e->form->op[i]);
    weft_emit_line(e, "for (int64_t begin = 0; begin == 0 || begin < length; begin += %d)", piece);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t end = length - begin < %d ? length : begin + %d;", piece, piece);
    for (int depth = 0; depth < all; depth++)
        weft_emit_open_chains(e, weft_emit_stage_at(e, depth));
    pass_blocks(e);
    pass_rest(e);
    for (int depth = 0; depth < all; depth++)
        weft_emit_close_chains(e, weft_emit_stage_at(e, depth));
    weft_emit_close(e);
}

/* Rows of several lines: line by line, of each stage the one of its own row. */
static void pass_lines(struct weft_emit *e)
{
    const struct weft_emit before = *e;
    weft_emit_open_lines(e);
    for (int depth = depths(e) - 1; depth >= 0; depth--) {
        const struct weft_form_stage *const stage = weft_emit_stage_at(e, depth);
        const struct weft_emit around = *e;
        weft_emit_line(e, "if (on%d)", depth);
        weft_emit_open(e);
        weft_emit_name_handed_on(e, stage);
        set_row(e, depth);
        weft_emit_heads(e, stage);
        if (weft_emit_has_folds(e, stage))
            weft_emit_fold_line(e, stage);
        else
            weft_emit_sweep_line(e, stage, e->inner, "length");
        weft_emit_close(e);
        memcpy(e->held, around.held, sizeof e->held);
        memcpy(e->pointed, around.pointed, sizeof e->pointed);
    }
    weft_emit_close_lines(e, &before);
}

/* A row of each stage that is one line, block by block. */
static void pass_row(struct weft_emit *e)
{
    const struct weft_form_stage *const last = weft_emit_stage_at(e, depths(e) - 1);
    if (!weft_emit_has_folds(e, last)) {
        open_results(e, last, depths(e) - 1);
        sweep_ends(e, last);
    }
    pass_pieces(e);
}

static void declare_sums(const struct weft_emit *e)
{
    for (uint32_t v = 0; v < e->form->ops; v++) {
        if (!weft_emit_is_fold(e, v))
            continue;
        weft_emit_line(e, "vf sums%u[2][FOLD_CHAINS];", v);
        if (weft_emit_is_extreme(e, v))
            weft_emit_line(e, "vseen saw%u[2];", v);
    }
}

static void keep_sums(const struct weft_emit *e)
{
    for (uint32_t v = 0; v < e->form->ops; v++) {
        if (!weft_emit_is_fold(e, v))
            continue;
        weft_emit_each_chain(e);
        weft_emit_line(e, "    sums%u[pass & 1][chain] = total%u[chain];", v, v);
        if (weft_emit_is_extreme(e, v))
            weft_emit_line(e, "saw%u[pass & 1] = seen%u;", v, v);
    }
}

/* What the folds of a stage, and the stages outside behind it, come to, of a row that the stage was at before. */
static void finish_row(struct weft_emit *e, int depth)
{
    const struct weft_emit before = *e;
    const struct weft_form_stage *const inside = weft_emit_stage_at(e, depth);
    bool any = weft_emit_has_folds(e, inside);
    for (uint32_t s = 0; s < e->form->stages; s++)
        any |= !e->program->stage[s].inside && weft_emit_depth_of(e, s) == depth;
    if (!any)
        return;
    set_row(e, depth);
    weft_emit_line(e, "if (pass >= late + %d * apart && pass - late - %d * apart < points)", depth, depth);
    weft_emit_open(e);
    weft_emit_line(e, "const int64_t %s = pass - late - %d * apart;", e->outer, depth);
    take_handed_on(e, depth);
    WEFT_EACH_FOLD(e, inside, f)
    {
        weft_emit_line(e, "const vf *const total%u = sums%u[(pass - late) & 1];", f, f);
        if (weft_emit_is_extreme(e, f))
            weft_emit_line(e, "const vseen seen%u = saw%u[(pass - late) & 1];", f, f);
    }
    weft_emit_finish_totals(e, inside);
    for (uint32_t s = 0; s < e->form->stages; s++) {
        const struct weft_form_stage *stage = &e->form->stage[s];
        if (e->program->stage[s].inside || weft_emit_depth_of(e, s) != depth || e->program->stage[s].ops == 0)
            continue;
        weft_emit_comment_stage(e, stage);
        e->at = NULL;
        weft_emit_name_handed_on(e, stage);
        weft_emit_heads(e, stage);
        weft_emit_body(e, stage);
    }
    hand_on(e, depth);
    weft_emit_close(e);
    memcpy(e->held, before.held, sizeof e->held);
    memcpy(e->pointed, before.pointed, sizeof e->pointed);
    e->at = before.at;
}

void weft_emit_pipeline(struct weft_emit *e)
{
    const int all = depths(e);
    memcpy(e->rows, e->outer, sizeof e->rows);
    for (uint32_t v = 0; v < e->form->ops; v++)
        e->again[v] = weft_emit_is_again(e, v);
    declare_handed_on(e);
    for (int depth = 0; depth < all; depth++) {
        const struct weft_emit_pick pick = weft_emit_pick_of(e, depth);
        if (pick.depth >= 0)
            weft_emit_ask_for_count(e, &pick);
    }
    declare_sums(e);
    weft_emit_line(e, "const int64_t apart = rows_apart(points, tile->rows), late = apart > 1 ? 2 : 1;");
    weft_emit_line(e, "for (int64_t pass = 0; points > 0 && pass < points + %d * apart + late; pass++)", all - 1);
    weft_emit_open(e);
    for (uint32_t v = 0; v < e->form->ops; v++)
        e->held[v] |= reach_of(e, v) > 0;
    for (int depth = all - 1; depth >= 0; depth--)
        finish_row(e, depth);
    for (int depth = 0; depth < all; depth++) {
        weft_emit_comment_stage(e, weft_emit_stage_at(e, depth));
        set_row(e, depth);
        weft_emit_line(e, depth ? "const int on%d = pass >= %d * apart && pass - %d * apart < points;"
                                : "const int on%d = pass < points;", depth, depth, depth);
        weft_emit_line(e, depth ? "const int64_t %s = on%d ? pass - %d * apart : 0;"
                                : "const int64_t %s = on%d ? pass : 0;", e->outer, depth, depth);
        e->at = "here";
        weft_emit_open_row(e, depth);
        weft_emit_heads(e, weft_emit_stage_at(e, depth));
        take_handed_on(e, depth);
        weft_emit_load_numbers(e, depth);
    }
    for (int depth = 0; depth < all; depth++)
        weft_emit_open_totals(e, weft_emit_stage_at(e, depth));
    if (e->several)
        pass_lines(e);
    else
        pass_row(e);
    for (int depth = 0; depth < all; depth++) {
        const struct weft_emit_pick pick = weft_emit_pick_of(e, depth);
        if (pick.depth >= 0)
            weft_emit_pick_term(e, &pick);
    }
    keep_sums(e);
    weft_emit_close(e);
    memset(e->past, 0, sizeof e->past);
    memcpy(e->outer, e->rows, sizeof e->outer);
    e->rows[0] = 0;
}
