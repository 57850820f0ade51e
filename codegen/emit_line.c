/* SPDX-License-Identifier: Apache-2.0 */
/* emit_line.c: a line of points without folds in C: whole vectors, then what is left of them. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <stdio.h>
#include <string.h>

/* Is it a result that a line of vectors may write past the caches? */
bool weft_emit_is_streamed(const struct weft_emit *e, uint32_t v)
{
    const int dtype = e->form->op[v].dtype;
    return e->form->op[v].kind == WEFT_FORM_MAP && e->program->value[v].place == WEFT_PROGRAM_ARGUMENT &&
           e->pointed[v] && (dtype == WEFT_F32 || dtype == WEFT_F16 || dtype == WEFT_BF16);
}

/* The points ahead of the first whole line of the first result go alone; others stream if they are whole there too.
 * Returns whether there is a result that may stream. */
static bool open_stream(struct weft_emit *e, const struct weft_form_stage *stage, const char *end)
{
    bool any = false;
    for (uint32_t v = stage->first; v < stage->first + stage->ops; v++) {
        if (!weft_emit_is_streamed(e, v))
            continue;
        const int bytes = weft_dtype_bits(e->form->op[v].dtype) / 8;
        if (!any) {
            weft_emit_line(e, "int64_t stop = tile->past ? stream_first(p%u, %d) : %s;", v, bytes, end);
            weft_emit_line(e, "stop = stop < %s ? stop : %s;", end, end);
        }
        weft_emit_line(e, "const int past%u = tile->past >> %u & 1 && stream_fits(p%u + stop, %d);", v,
                       e->program->value[v].argument, v, bytes);
        any = e->past[v] = e->streamed = true;
    }
    return any;
}

bool weft_emit_moves(const struct weft_emit *e, uint32_t v) { return e->form->op[v].axes & e->form->phase[0].axes; }

/* While a row's results stream, the next row is asked for, or one that is as far ahead: rows of at most 16 KiB. Scans
 * ask by themselves; where stages go side by side, another one reads it meanwhile. */
static bool fetches(const struct weft_emit *e) { return e->way == WEFT_EMIT_ROWS && !e->from && !e->rows[0]; }

static void fetch_rows(const struct weft_emit *e)
{
    for (uint32_t v = 0; v < e->form->ops && fetches(e); v++) {
        const struct weft_form_op *op = &e->form->op[v];
        bool again = op->kind != WEFT_FORM_LOAD || e->program->value[v].stride != 1 || !weft_emit_moves(e, v) ||
                     weft_strips_is_look_up(e->form, v);
        for (uint32_t k = 0; k < v; k++)
            again |= e->form->op[k].kind == WEFT_FORM_LOAD && e->form->op[k].array == op->array;
        if (again)
            continue;
        char skip[WEFT_EMIT_AXIS];
        weft_emit_skip(e, v, skip, sizeof skip);
        weft_emit_line(e, "if (fetch) __builtin_prefetch(tile->at[%u] + (%s + rows) * tile->next[%u]%s + here * %d);",
                       v, e->outer, v, skip, weft_dtype_bits(op->dtype) / 8);
    }
}

/* `count` whole vectors a turn, which have nothing to wait for in each other. */
static void sweep_vectors(struct weft_emit *e, const struct weft_form_stage *stage, const char *i, const char *end,
                          int count, bool streams)
{
    char step[24];
    snprintf(step, sizeof step, count == 1 ? "LANES" : "%d * LANES", count);
    weft_emit_line(e, "for (; %s + %s <= %s; %s += %s)", i, step, end, i, step);
    weft_emit_open(e);
    if (count > 1) {
        weft_emit_line(e, "UNROLL for (int copy = 0; copy < %d; copy++)", count);
        weft_emit_open(e);
    }
    weft_emit_line(e, count > 1 ? "const int64_t here = %s + copy * LANES;" : "const int64_t here = %s;", i);
    if (streams)
        fetch_rows(e);
    weft_emit_body(e, stage);
    if (count > 1)
        weft_emit_close(e);
    weft_emit_close(e);
}

static void sweep_tail(struct weft_emit *e, const struct weft_form_stage *stage, const char *i, const char *end)
{
    weft_emit_line(e, "for (; %s < %s; %s += LANES)", i, end, i);
    weft_emit_open(e);
    weft_emit_line(e, "const int live = %s - %s < LANES ? (int)(%s - %s) : LANES;", end, i, end, i);
    e->at = i;
    e->tail = true;
    weft_emit_body(e, stage);
    e->tail = false;
    e->at = "here";
    weft_emit_close(e);
}

/* A line of a piece: short, and in the nearest caches. Most are as long as a tile of a product is wide. */
static void sweep_piece(struct weft_emit *e, const struct weft_form_stage *stage, const char *i, const char *all)
{
    weft_emit_line(e, "int64_t %s = 0;", i);
    sweep_vectors(e, stage, i, all, 4, false);
    sweep_vectors(e, stage, i, all, 1, false);
    sweep_tail(e, stage, i, all);
}

/* All points of a line. */
void weft_emit_sweep_line(struct weft_emit *e, const struct weft_form_stage *stage, const char *i, const char *all)
{
    if (e->program->pieces) {
        sweep_piece(e, stage, i, all);
        return;
    }
    const bool streams = open_stream(e, stage, all);
    const char *const end = streams ? "stop" : all;
    weft_emit_line(e, "int64_t %s = 0;", i);
    if (streams) {
        if (fetches(e)) {
            weft_emit_line(e, "const int fetch = tile->past && %s <= FETCH_POINTS;", all);
            weft_emit_line(e, "const int64_t rows = %s < FETCH_AHEAD / 2 ? FETCH_AHEAD / (%s + 1) : 1;", all, all);
        }
        weft_emit_line(e, "for (;; stop = %s)", all);
        weft_emit_open(e);
    }
    sweep_vectors(e, stage, i, end, 2, streams);
    sweep_tail(e, stage, i, end);
    if (streams) {
        weft_emit_line(e, "%s = stop;", i);
        weft_emit_line(e, "if (stop == %s)", all);
        weft_emit_line(e, "    break;");
        weft_emit_close(e);
    }
    memset(e->past, 0, sizeof e->past);
}
