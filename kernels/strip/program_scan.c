/* SPDX-License-Identifier: Apache-2.0 */
/* program_scan.c: scans of strip programs, a strip or a block at a time. The contract: program.h. */
#include "kernels/strip/program.h"

enum { EVEN_LINES = 4 }; /* lines of each worker, so many that one more or less does not matter */

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
            scan->beside = !p->along_inner;
            weft_scan_prepare(scan, p->cpu, p->points, p->folded, p->value[p->op[i].in[0]].stride,
                              p->value[p->op[i].out].stride);
            p->stage[s].backwards |= scan->reverse;
            p->scan[p->op[i].fold].past = weft_program_is_memory(&p->value[p->op[i].out]);
            p->scan[p->op[i].fold].out = p->value[p->op[i].out].argument;
            choose_ahead(p, &p->stage[s], &p->scan[p->op[i].fold], p->value[p->op[i].out].bytes);
        }
}

/* Where what a scan wants early begins: at the next strip of the line, or at the next line. `at`: by value, at the
 * first point of outer point 0; the strip is one of outer point `line`. */
static struct weft_scan_ahead find_ahead(const struct weft_program_worker *w, const struct weft_program_scan *scan,
                                         char *const *at, int64_t line, int64_t from, int64_t n)
{
    const struct weft_program *p = w->program;
    const bool back = scan->scan.reverse, ends = back ? from == 0 : from + n == p->folded;
    struct weft_scan_ahead ahead = {.streams = scan->streams, .past = scan->past && (p->past >> scan->out & 1)};
    for (int k = 0; k < scan->streams; k++) {
        const uint16_t v = scan->ahead[k];
        const int64_t first = ends ? (back ? p->folded - 1 : 0) : back ? from - 1 : from + n;
        ahead.at[k] = (const char *)((uintptr_t)at[v] +
                                     (uintptr_t)((line + ends) * w->next[v] + first * p->value[v].step));
    }
    return ahead;
}

bool weft_program_scan_strip(const struct weft_program_worker *w, const struct weft_program_op *op, int64_t from,
                             int64_t n)
{
    const struct weft_program *p = w->program;
    const struct weft_program_scan *const scan = &p->scan[op->fold];
    const struct weft_program_value *const in = &p->value[op->in[0]], *const out = &p->value[op->out];
    char *const x = w->at[op->in[0]] + from * in->step, *const y = w->at[op->out] + from * out->step;
    if (p->along_inner) {
        const struct weft_scan_ahead ahead = find_ahead(w, scan, w->at, 0, from, n);
        return weft_scan_strip(&scan->scan, w->scratch + scan->at, y, x, n, &ahead);
    }
    weft_scan_beside(&scan->scan, w->scratch + scan->at, y, x, out->stride, in->stride, n);
    return true;
}

int weft_program_scan_code(const struct weft_program_tile *tile, int number, int64_t line, int64_t from, int64_t count,
                           void *out, const void *in)
{
    const struct weft_program_worker *const w = tile->worker;
    const struct weft_program *p = w->program;
    const struct weft_program_scan *const scan = &p->scan[number];
    char *const state = w->scratch + scan->at;
    const bool back = scan->scan.reverse;
    if (!p->along_inner) {
        if (line == (back ? tile->length - 1 : 0))
            weft_scan_begin(&scan->scan, state, count);
        weft_scan_beside(&scan->scan, state, out, in, 1, 1, count);
        return 1;
    }
    if (!p->shared && (back ? from + count == tile->length : from == 0))
        weft_scan_begin(&scan->scan, state, 1);
    const struct weft_scan_ahead ahead = find_ahead(w, scan, tile->at, line, from, count);
    return weft_scan_strip(&scan->scan, state, out, in, count, &ahead);
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

/* Where a scan's lines are cut, workers may take chunks of lines instead of lines. That pays where there are too few
 * lines to go round: each chunk is then gone along once more for what it comes to. */
void weft_program_scans_share(struct weft_program *p, int32_t parts)
{
    const bool evenly = p->points >= EVEN_LINES * parts || p->points % parts == 0;
    int inside = 0;
    for (int s = 0; s < p->stages; s++)
        inside += p->stage[s].ops > 0;
    if (!p->may_share || inside != 1 || !p->along_inner || evenly || !p->scan[0].scan.chunk)
        return;
    const int64_t chunk = p->scan[0].scan.chunk, chunks = p->points * ((p->folded + chunk - 1) / chunk);
    p->parts = chunks < parts ? (int32_t)chunks : parts;
    p->shared = weft_scan_shared(&p->scan[0].scan);
}

struct sharing {
    struct weft_program_worker *worker;
    weft_program_lines *run;
};

/* A chunk as a tile of one short line. */
static void run_chunk(void *user, const struct weft_scan_chunk *chunk)
{
    const struct sharing *const sharing = user;
    struct weft_program_worker *const w = sharing->worker;
    const struct weft_program *p = w->program;
    const int64_t first = p->scan[0].scan.reverse ? p->folded - chunk->begin - chunk->n : chunk->begin;
    weft_program_open_tile(w, chunk->line);
    for (int v = 0; v < p->values; v++)
        w->base[v] = (char *)((uintptr_t)w->base[v] + (uintptr_t)(first * p->value[v].step));
    sharing->run(w, chunk->n);
}

void weft_program_share_chunks(struct weft_program_worker *w, weft_program_lines *run, void *shared, int parts)
{
    const struct weft_program_scan *const scan = &w->program->scan[0];
    struct sharing sharing = {w, run};
    weft_scan_share(&scan->scan, w->scratch + scan->at, run_chunk, &sharing, shared, parts);
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
