/* SPDX-License-Identifier: Apache-2.0 */
/* emit_pick.c: labels picked of a row. A stage that adds up select(%i == %t, a, 0) over the numbers %i of columns
 * picks the number at column %t: where %i counts up from 0, which is asked once, the other columns are not visited. Not
 * where a is made of what is kept: by the time of the pick that is the next row's. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <stdio.h>
#include <string.h>

static bool is_load(const struct weft_emit *e, uint32_t v, int64_t stride)
{
    return e->form->op[v].kind == WEFT_FORM_LOAD && e->form->op[v].dtype == WEFT_F32 &&
           e->program->value[v].stride == stride && !weft_strips_is_look_up(e->form, v);
}

/* One for a whole row: loaded so, or made by an earlier stage. */
static bool is_one_number(const struct weft_emit *e, uint32_t v, int depth)
{
    return is_load(e, v, 0) || (e->form->op[v].dtype == WEFT_F32 && weft_emit_is_handed_on(e, v) &&
                                weft_emit_depth_of(e, weft_emit_stage_of(e, v)) < depth);
}

/* Does op i read what an earlier stage keeps? By the time of the pick that is the next row's. */
static bool reads_kept(const struct weft_emit *e, uint32_t first, uint32_t i)
{
    uint32_t read[WEFT_K_MAX_IN * (WEFT_K_MAX_IN + 1)];
    bool reads = false;
    for (unsigned k = 0, count = weft_emit_reads_of(e, i, read); k < count; k++)
        reads |= read[k] < first && !e->again[read[k]] && e->program->value[read[k]].place == WEFT_PROGRAM_TILE;
    return reads;
}

/* Of a stage that makes nothing but sums: the pick, if it has one sum and that is one. */
struct weft_emit_pick weft_emit_pick_of(const struct weft_emit *e, int depth)
{
    const struct weft_emit_pick none = {.depth = -1};
    const struct weft_form_stage *stage = weft_emit_stage_at(e, depth);
    const struct weft_form_op *const op = e->form->op;
    struct weft_emit_pick pick = none;
    if (e->several)
        return none;
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++) {
        if ((op[i].kind == WEFT_FORM_MAP && weft_emit_in_memory(e, i)) || reads_kept(e, stage->first, i))
            return none;
        if (op[i].kind != WEFT_FORM_FOLD)
            continue;
        const uint32_t term = op[i].in[0];
        if (pick.depth >= 0 || op[i].fold != WEFT_K_SUM || term < stage->first || op[term].kind != WEFT_FORM_MAP ||
            strcmp(op[term].word, "select") != 0 || op[term].dtype != WEFT_F32)
            return none;
        const uint32_t test = op[term].in[0], zero = op[term].in[2];
        if (op[zero].kind != WEFT_FORM_CONST || op[zero].number != 0 || test < stage->first ||
            op[test].kind != WEFT_FORM_MAP || strcmp(op[test].word, "eq") != 0)
            return none;
        pick = (struct weft_emit_pick){.line = op[test].in[0], .number = op[test].in[1], .fold = i, .depth = depth};
        if (is_load(e, pick.number, 1))
            pick = (struct weft_emit_pick){.line = pick.number, .number = pick.line, .fold = i, .depth = depth};
        if (!is_load(e, pick.line, 1) || !is_one_number(e, pick.number, depth))
            return none;
    }
    return pick;
}

void weft_emit_ask_for_count(const struct weft_emit *e, const struct weft_emit_pick *pick)
{
    weft_emit_line(e, "const int counts%u = points > 4 && tile->next[%u] == 0 && "
                      "counts_up((const float *)tile->at[%u], length);",
                   pick->line, pick->line, pick->line);
}

/* The one term that is not 0, in total…[0]. */
void weft_emit_pick_term(struct weft_emit *e, const struct weft_emit_pick *pick)
{
    const struct weft_form_stage *stage = weft_emit_stage_at(e, pick->depth);
    char number[32];
    if (weft_emit_is_handed_on(e, pick->number))
        snprintf(number, sizeof number, "w%u_%d", pick->number,
                 pick->depth - weft_emit_depth_of(e, weft_emit_stage_of(e, pick->number)));
    else
        snprintf(number, sizeof number, "v%u", pick->number);
    weft_emit_line(e, "const int64_t from = on%d && counts%u ? place_of(%s[0], length) : -1;", pick->depth, pick->line,
                   number);
    weft_emit_line(e, "if (from >= 0)");
    weft_emit_open(e);
    weft_emit_name_handed_on(e, stage);
    weft_emit_line(e, "vf acc%u[1] = {{0}};", pick->fold);
    weft_emit_line(e, "const int live = 1, chain = 0;");
    e->at = "from";
    e->tail = true;
    e->lanes = "[chain]";
    weft_emit_body(e, stage);
    e->tail = false;
    e->at = "here";
    weft_emit_line(e, "total%u[0] = vfirst(acc%u[0], 1, 0.f);", pick->fold, pick->fold);
    weft_emit_close(e);
}
