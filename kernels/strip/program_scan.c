/* SPDX-License-Identifier: Apache-2.0 */
/* program_scan.c: scans of strip programs, a strip or a block at a time. The contract: program.h. */
#include "kernels/strip/program.h"

/* Of a stage: arguments that lie as the results of its scan, each array once. */
static void choose_ahead(const struct weft_program *p, const struct weft_program_stage *stage,
                         struct weft_program_scan *scan, int bytes)
{
    for (int i = stage->first; i < stage->first + stage->ops && p->along_inner; i++)
        for (int k = -1; k < p->op[i].ins && scan->streams < WEFT_SCAN_STREAMS; k++) {
            const uint16_t v = k < 0 ? p->op[i].out : p->op[i].in[k];
            bool takes = weft_program_is_memory(&p->value[v]) && p->value[v].step == bytes && !p->op[i].guards;
            for (int s = 0; s < scan->streams; s++)
                takes &= p->value[scan->ahead[s]].argument != p->value[v].argument;
            if (takes)
                scan->ahead[scan->streams++] = v;
        }
}

void weft_program_scans_prepare(struct weft_program *p)
{
    for (int s = 0; s < p->stages; s++)
        for (int i = p->stage[s].first; i < p->stage[s].first + p->stage[s].ops; i++) {
            if (!p->op[i].scans)
                continue;
            struct weft_scan *const scan = &p->scan[p->op[i].fold].scan;
            weft_scan_prepare(scan, p->cpu, p->folded, p->value[p->op[i].in[0]].stride, p->value[p->op[i].out].stride);
            p->stage[s].backwards |= scan->reverse;
            choose_ahead(p, &p->stage[s], &p->scan[p->op[i].fold], p->value[p->op[i].out].bytes);
        }
}

/* Where what a scan wants early begins: at the next strip of the line, or at the next line. */
static struct weft_scan_ahead find_ahead(const struct weft_program_worker *w, const struct weft_program_scan *scan,
                                         int64_t from, int64_t n)
{
    const struct weft_program *p = w->program;
    const bool back = scan->scan.reverse, ends = back ? from == 0 : from + n == p->folded;
    struct weft_scan_ahead ahead = {.streams = scan->streams};
    for (int k = 0; k < scan->streams; k++) {
        const struct weft_program_value *const value = &p->value[scan->ahead[k]];
        const int64_t first = ends ? (back ? p->folded - 1 : 0) : back ? from - 1 : from + n;
        const int64_t line = ends ? w->next[scan->ahead[k]] : 0;
        ahead.at[k] = (const char *)((uintptr_t)w->at[scan->ahead[k]] + (uintptr_t)(line + first * value->step));
    }
    return ahead;
}

void weft_program_scan_strip(const struct weft_program_worker *w, const struct weft_program_op *op, int64_t from,
                             int64_t n)
{
    const struct weft_program *p = w->program;
    const struct weft_program_scan *const scan = &p->scan[op->fold];
    const struct weft_program_value *const in = &p->value[op->in[0]], *const out = &p->value[op->out];
    char *const x = w->at[op->in[0]] + from * in->step, *const y = w->at[op->out] + from * out->step;
    if (p->along_inner) {
        const struct weft_scan_ahead ahead = find_ahead(w, scan, from, n);
        weft_scan_strip(&scan->scan, w->scratch + scan->at, y, x, n, &ahead);
    } else {
        weft_scan_beside(&scan->scan, w->scratch + scan->at, y, x, out->stride, in->stride, n);
    }
}

void weft_program_scan_block(const struct weft_program_worker *w, const struct weft_program_stage *stage,
                             const struct weft_program_op *op, int64_t n, int64_t lines)
{
    const struct weft_program *p = w->program;
    const struct weft_program_scan *const scan = &p->scan[op->fold];
    const struct weft_program_value *const in = &p->value[op->in[0]], *const out = &p->value[op->out];
    const int64_t from = in->place == WEFT_PROGRAM_STRIP ? n * in->bytes : w->next[op->in[0]];
    const int64_t to = out->place == WEFT_PROGRAM_STRIP ? n * out->bytes : w->next[op->out];
    if (p->along_inner) {
        weft_scan_lines(&scan->scan, w->at[op->out], w->at[op->in[0]], to / out->bytes, from / in->bytes, lines);
        return;
    }
    for (int64_t i = 0; i < lines; i++) {
        const int64_t line = stage->backwards ? lines - 1 - i : i;
        weft_scan_beside(&scan->scan, w->scratch + scan->at, w->at[op->out] + line * to,
                         w->at[op->in[0]] + line * from, out->stride, in->stride, n);
    }
}
