/* SPDX-License-Identifier: Apache-2.0 */
/* emit_several.c: rows of several lines in C. Where a fold removes axes that lie apart in memory, as a batch norm's
 * those of a channel in all images, the points of a row are lines of the last inner axis, one for each point of the
 * axes in front of it:
 *
 *   for (line_0 …)                  images
 *       for (line_1 …)              of a third axis
 *           c in [0, length)        pixels: as in rows of one line, with pointers of this line
 *
 * Chains begin anew with each line and are added to the totals where it ends; what these come to is asked once for a
 * row. What is kept of a row, and columns that rows add to, lie line behind line: `ahead` says how many points. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <stdio.h>
#include <string.h>

int weft_emit_several_of(const struct weft_program *p)
{
    return p->along_inner && !p->pieces && p->inner_rank > 1 ? p->inner_rank - 1 : 0;
}

bool weft_emit_is_by_line(const struct weft_program *p, uint32_t v)
{
    const struct weft_program_value *const value = &p->value[v];
    bool moves = value->place == WEFT_PROGRAM_TILE;
    for (int i = 0; i < p->inner_rank - 1; i++)
        moves |= value->place == WEFT_PROGRAM_ARGUMENT && value->inner[i] != 0;
    return weft_emit_several_of(p) && moves;
}

static bool is_apart(const struct weft_emit *e, uint32_t v)
{
    return weft_emit_is_by_line(e->program, v) && e->program->value[v].place == WEFT_PROGRAM_ARGUMENT;
}

void weft_emit_declare_several(const struct weft_emit *e)
{
    for (int v = 0; v < e->program->values; v++)
        for (int k = 0; k < e->several && is_apart(e, (uint32_t)v); k++)
            weft_emit_line(e, "const int64_t skip%d_%d = tile->skip[%d];", v, k, v * WEFT_PROGRAM_SKIPS + k);
    if (e->several == 1)
        weft_emit_line(e, "const int64_t folded = length * tile->lines[0];");
    else if (e->several)
        weft_emit_line(e, "const int64_t folded = length * tile->lines[0] * tile->lines[1];");
}

/* Is it read at a depth though it belongs to another one: by an instruction that is computed again? */
static bool is_read_again(const struct weft_emit *e, uint32_t v)
{
    bool is = false;
    for (uint32_t i = v + 1; i < e->form->ops && e->form->op[v].kind == WEFT_FORM_LOAD; i++)
        for (unsigned k = 0; k < e->form->op[i].ins; k++)
            is |= e->again[i] && e->form->op[i].in[k] == v;
    return is;
}

void weft_emit_open_row(const struct weft_emit *e, int depth)
{
    for (uint32_t v = 0; v < e->program->values; v++) {
        const int own = v < e->form->ops ? weft_emit_depth_of(e, weft_emit_stage_of(e, v)) : depth;
        if (is_apart(e, v) && (depth < 0 || own == depth || (own < depth && is_read_again(e, v))))
            weft_emit_line(e, "char *const row%u_%s = tile->at[%u] + %s * tile->next[%u];", v, e->outer, v, e->outer,
                           v);
    }
}

void weft_emit_skip(const struct weft_emit *e, uint32_t v, char *ret, size_t bytes)
{
    *ret = '\0';
    if (!e->in_line || !weft_emit_is_by_line(e->program, v))
        return;
    if (e->program->value[v].place == WEFT_PROGRAM_TILE)
        snprintf(ret, bytes, " + ahead * %d", e->program->value[v].bytes);
    else if (e->several == 1)
        snprintf(ret, bytes, " + line_0 * skip%u_0", v);
    else
        snprintf(ret, bytes, " + line_0 * skip%u_0 + line_1 * skip%u_1", v, v);
}

/* A number for each inner point, to which each row adds. */
static void point_at_columns(const struct weft_emit *e)
{
    for (uint32_t i = 0; i < e->form->ops; i++)
        if (weft_strips_is_across(e->form, i))
            weft_emit_line(e, "float *const column%u = columns%u + ahead;", i, i);
}

void weft_emit_open_lines(struct weft_emit *e)
{
    for (int k = 0; k < e->several; k++) {
        weft_emit_line(e, "for (int64_t line_%d = 0; line_%d < tile->lines[%d]; line_%d++)", k, k, k, k);
        weft_emit_open(e);
    }
    if (!e->several)
        return;
    weft_emit_line(e, e->several == 1 ? "const int64_t ahead = line_0 * length;"
                                      : "const int64_t ahead = (line_0 * tile->lines[1] + line_1) * length;");
    e->in_line = true;
    point_at_columns(e);
}

void weft_emit_close_lines(struct weft_emit *e, const struct weft_emit *before)
{
    for (int k = 0; k < e->several; k++)
        weft_emit_close(e);
    e->in_line = false;
    if (!e->several)
        return;
    memcpy(e->held, before->held, sizeof e->held);
    memcpy(e->pointed, before->pointed, sizeof e->pointed);
}
