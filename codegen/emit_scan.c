/* SPDX-License-Identifier: Apache-2.0 */
/* emit_scan.c: stages with scans in C. A scan is a call of the primitive that interpreted programs call too
 * (weft_program_tile.scan), on a strip at a time: as long as strips of these are, so that it is in the first-level
 * cache. Around it are loops over vectors, as in stages without scans: between two calls all instructions that stand
 * there, so that only what meets a scan is written to memory.
 *
 *   y = cumsum(exp(x) * g) * h     for each strip     v = exp(x) * g, of all its points
 *                                                     s = scan(v), which goes on where the last strip ended
 *                                                     y = s * h, of all its points
 *
 * Why not prefixes in the emitted code: a block of 32 elements turned into quads of doubles is 200 lines for each type
 * and level, compiled anew in each kernel, and the call takes less than a hundredth of its strip.
 *
 * Not done: folds in a stage that scans, and short rows, which interpreted programs scan side by side. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <string.h>

static bool is_scan(const struct weft_form *form, uint32_t i) { return form->op[i].kind == WEFT_FORM_SCAN; }

bool weft_emit_has_scans(const struct weft_form *form, const struct weft_form_stage *stage)
{
    bool any = false;
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++)
        any |= is_scan(form, i);
    return any;
}

/* Which scan of the program it is. */
static int number_of(const struct weft_form *form, uint32_t scan)
{
    int number = 0;
    for (uint32_t i = 0; i < scan; i++)
        number += is_scan(form, i);
    return number;
}

/* --- what is taken ------------------------------------------------------------------------------------------------ */

static bool goes_beside(const struct weft_program *p, uint32_t number)
{
    return p->along_inner && p->block > p->strip && !p->scan[number].scan.in_vectors;
}

const char *weft_emit_scans_refuse(const struct weft_form *form, const struct weft_program *p, uint32_t s)
{
    const struct weft_form_stage *const stage = &form->stage[s];
    const char *why = NULL;
    if (!weft_emit_has_scans(form, stage))
        return NULL;
    for (uint32_t i = stage->first; i < stage->first + stage->ops && !why; i++) {
        const struct weft_form_op *const op = &form->op[i];
        if (op->kind == WEFT_FORM_FOLD)
            why = "reduces and scans in one stage";
        if (op->kind == WEFT_FORM_SCAN && p->value[op->in[0]].stride != 1)
            why = "scans elements that are not side by side";
        if (op->kind == WEFT_FORM_SCAN && goes_beside(p, (uint32_t)number_of(form, i)))
            why = "scans short rows, which go side by side";
        if (op->dtype == WEFT_I32 && weft_strips_is_look_up(form, i))
            why = "keeps integers";
    }
    return why;
}

/* --- strips ------------------------------------------------------------------------------------------------------- */

/* Values of the stage that are in memory for as long as a strip: those that scans read and make, and those that are
 * read behind a scan which stands behind what makes them. */
static void find_crossing(struct weft_emit *e, const struct weft_form_stage *stage)
{
    uint32_t scan = stage->first; /* the last one */
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++) {
        const struct weft_form_op *const op = &e->form->op[i];
        scan = is_scan(e->form, i) ? i : scan;
        e->crosses[i] |= is_scan(e->form, i);
        for (unsigned k = 0; k < op->ins && op->kind != WEFT_FORM_STORE; k++)
            if (op->in[k] >= stage->first && op->in[k] < scan + (is_scan(e->form, i) ? 1 : 0))
                e->crosses[op->in[k]] = true;
    }
    for (uint32_t i = 0; i < e->form->ops; i++)
        e->crosses[i] &= e->program->value[i].place == WEFT_PROGRAM_STRIP;
}

/* Instructions from `first` on up to the next scan, whose number is returned, or up to the end of the stage. */
static uint32_t sweep_part(struct weft_emit *e, const struct weft_form_stage *stage, uint32_t first)
{
    const bool rows = e->way == WEFT_EMIT_ROWS;
    struct weft_form_stage part = *stage;
    uint32_t next = first;
    bool any = false;
    for (; next < stage->first + stage->ops && !is_scan(e->form, next); next++)
        any |= e->form->op[next].kind == WEFT_FORM_MAP || weft_strips_is_look_up(e->form, next);
    part.first = first;
    part.ops = next - first;
    if (!any)
        return next;
    weft_emit_open(e);
    weft_emit_sweep_line(e, &part, rows ? e->inner : e->outer, rows ? "count" : "points");
    weft_emit_close(e);
    return next;
}

static void call_scan(const struct weft_emit *e, uint32_t i)
{
    const bool rows = e->way == WEFT_EMIT_ROWS;
    char comment[256];
    weft_emit_comment(e, i, comment, sizeof comment);
    const bool asked = rows && e->program->may_share; /* first, what the strip comes to */
    weft_emit_line(e, "%stile->scan(tile, %d, %s, %s, %s, p%u, p%u)%s %s", asked ? "if (!" : "", number_of(e->form, i),
                   rows ? e->outer : e->inner, rows ? "from" : "0", rows ? "count" : "points", i, e->form->op[i].in[0],
                   asked ? ")" : ";", comment);
    if (asked)
        weft_emit_line(e, "    continue;");
}

/* All that the stage does with a strip. */
static void sweep_strip(struct weft_emit *e, const struct weft_form_stage *stage)
{
    e->at = "here";
    weft_emit_heads(e, stage);
    for (uint32_t i = stage->first; i < stage->first + stage->ops;) {
        if (is_scan(e->form, i))
            call_scan(e, i++);
        else
            i = sweep_part(e, stage, i);
    }
}

/* A row in strips, or all lines of a tile one behind the other. */
void weft_emit_scan_stage(struct weft_emit *e, uint32_t s)
{
    const struct weft_emit before = *e;
    const bool back = e->program->stage[s].backwards;
    find_crossing(e, &e->form->stage[s]);
    if (e->way == WEFT_EMIT_ROWS) {
        weft_emit_line(e, "for (int64_t done = 0; done < length; done += tile->strip)");
        weft_emit_open(e);
        weft_emit_line(e, "const int64_t count = length - done < tile->strip ? length - done : tile->strip;");
        weft_emit_line(e, back ? "const int64_t from = length - done - count;" : "const int64_t from = done;");
        memset(e->pointed, 0, sizeof e->pointed); /* from the strip on, not from the row */
        e->from = "from";
    } else {
        weft_emit_line(e, "for (int64_t done = 0; done < length; done++)");
        weft_emit_open(e);
        weft_emit_line(e, back ? "const int64_t %s = length - 1 - done;" : "const int64_t %s = done;", e->inner);
    }
    sweep_strip(e, &e->form->stage[s]);
    weft_emit_close(e);
    memcpy(e->held, before.held, sizeof e->held);
    memcpy(e->pointed, before.pointed, sizeof e->pointed);
    memcpy(e->crosses, before.crosses, sizeof e->crosses);
    e->from = NULL;
}
