/* SPDX-License-Identifier: Apache-2.0 */
/* program_run.c: running a part of a strip program. The contract: program.h. */
#include "kernels/relayout/relayout.h"
#include "kernels/strip/program.h"
#include "kernels/walk.h"

#include <string.h>

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Writes lines out one behind the other that lie otherwise: one number a line, the same line, or gaps between lines. */
static void write_out(const struct weft_program_worker *w, int v, int64_t n, int64_t lines)
{
    const struct weft_program_value *const value = &w->program->value[v];
    char *const to = w->scratch + value->copy;
    const int64_t bytes = n * value->bytes, next = w->next[v];
    for (int64_t l = 0; l < lines; l++)
        if (l > 0 && next == 0)
            memcpy(to + l * bytes, to, (size_t)bytes);
        else
            weft_copy_strided(value->bytes, to + l * bytes, 1, w->at[v] + l * next, value->stride, n);
}

/* An operand of all lines of a block at once. */
static const void *read_block(const struct weft_program_worker *w, int v, int64_t n, int64_t lines, int64_t *ret_stride)
{
    const struct weft_program_value *const value = &w->program->value[v];
    const int64_t next = w->next[v], number = next == 0 ? w->tile : w->block;
    *ret_stride = 1;
    if (value->place == WEFT_PROGRAM_STRIP || (value->stride == 1 && next == n * value->step))
        return w->at[v];
    if (value->stride == 0 && next == 0) {
        *ret_stride = 0;
        return w->at[v];
    }
    if (w->written[v] != number)
        write_out(w, v, n, lines);
    w->written[v] = number;
    return w->scratch + value->copy;
}

static void map_block(const struct weft_program_worker *w, const struct weft_program_op *op, int64_t n, int64_t lines)
{
    const struct weft_program_value *const out = &w->program->value[op->out];
    const bool joined = out->place == WEFT_PROGRAM_STRIP || (out->stride == 1 && w->next[op->out] == n * out->step);
    struct weft_strip_args args = {.n = joined ? n * lines : n, .out = w->at[op->out], .stride = {out->stride},
                                   .param = {op->param[0], op->param[1]}};
    for (int k = 0; k < op->ins; k++)
        args.in[k] = read_block(w, op->in[k], n, lines, &args.stride[1 + k]);
    for (int64_t l = 0; l < (joined ? 1 : lines); l++) {
        op->kernel->fn(&args);
        args.out = (char *)args.out + w->next[op->out];
        for (int k = 0; k < op->ins; k++)
            args.in[k] = (const char *)args.in[k] + n * args.stride[1 + k] * w->program->value[op->in[k]].bytes;
    }
}

/* A look-up whose guards are in this order in `at`. */
static struct weft_program_look look_at(const struct weft_program_worker *w, const struct weft_program_op *op,
                                        char *const *at, int64_t from, int64_t line)
{
    const struct weft_program *p = w->program;
    struct weft_program_look look = {.program = p, .op = op};
    for (int k = -1; k < op->guards; k++) {
        const int v = k < 0 ? op->in[0] : p->guard[op->guard + k].value;
        const char *const place = at[v] + from * p->value[v].step + line * w->next[v];
        *(k < 0 ? &look.from : &look.at[k]) = place;
        *(k < 0 ? &look.from_stride : &look.stride[k]) = p->value[v].stride;
    }
    return look;
}

static void look_block(const struct weft_program_worker *w, const struct weft_program_op *op, int64_t n, int64_t lines)
{
    const struct weft_program_value *const out = &w->program->value[op->out];
    const int64_t next = out->place == WEFT_PROGRAM_STRIP ? n * out->bytes : w->next[op->out];
    for (int64_t l = 0; l < lines; l++) {
        const struct weft_program_look look = look_at(w, op, w->at, 0, l);
        weft_program_look_up(&look, w->at[op->out] + l * next, out->stride, n);
    }
}

static void fold_block(const struct weft_program_worker *w, const struct weft_program_op *op, int64_t n, int64_t lines)
{
    const struct weft_program *p = w->program;
    const struct weft_program_fold *const fold = &p->fold[op->fold];
    const struct weft_program_value *const in = &p->value[op->in[0]], *const out = &p->value[op->out];
    char *const state = w->scratch + fold->at;
    const int64_t next = in->place == WEFT_PROGRAM_STRIP ? n * in->bytes : w->next[op->in[0]];
    const int64_t stride = in->place == WEFT_PROGRAM_STRIP ? 1 : in->stride;
    if (fold->across) {
        weft_program_across_strip(fold, state, 0, w->at[op->in[0]], stride, n, lines, next);
        return;
    }
    if (!p->along_inner) {
        weft_program_fold_strip(p, fold, state, w->at[op->in[0]], stride, n, true, lines, next);
        return;
    }
    for (int64_t l = 0; l < lines; l++) {
        weft_program_fold_begin(p, fold, state, 1);
        weft_program_fold_strip(p, fold, state, w->at[op->in[0]] + l * next, stride, n, true, 1, 0);
        weft_program_fold_end(p, fold, state, w->at[op->out] + l * w->next[op->out], out->stride, 1);
    }
}

/* Whole lines of n points, and all folds of them. */
static void run_block(struct weft_program_worker *w, const struct weft_program_stage *stage, int64_t n, int64_t lines)
{
    const struct weft_program *p = w->program;
    w->block++;
    for (int i = stage->first; i < stage->first + stage->ops; i++)
        if (p->op[i].kernel)
            map_block(w, &p->op[i], n, lines);
        else if (p->op[i].guards)
            look_block(w, &p->op[i], n, lines);
        else if (p->op[i].scans)
            weft_program_scan_block(w, stage, &p->op[i], n, lines);
        else
            fold_block(w, &p->op[i], n, lines);
}

/* --- strips ------------------------------------------------------------------------------------------------------- */

/* The ops of a stage on n points, `from` points behind where `at` stands. */
static inline void run_strip(const struct weft_program_worker *w, const struct weft_program_stage *stage, int64_t from,
                             int64_t n, bool ends)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++) {
        const struct weft_program_op *op = &p->op[i];
        const struct weft_program_value *const in = &p->value[op->in[0]], *const out = &p->value[op->out];
        if (op->guards) {
            const struct weft_program_look look = look_at(w, op, w->at, from, 0);
            weft_program_look_up(&look, w->at[op->out] + from * out->step, out->stride, n);
            continue;
        }
        if (op->scans) {
            if (!weft_program_scan_strip(w, op, from, n))
                return;
            continue;
        }
        if (!op->kernel) {
            const struct weft_program_fold *fold = &p->fold[op->fold];
            char *const x = w->at[op->in[0]] + from * in->step, *const state = w->scratch + fold->at;
            if (fold->across)
                weft_program_across_strip(fold, state, w->inner_at + from, x, in->stride, n, 1, 0);
            else
                weft_program_fold_strip(p, fold, state, x, in->stride, n, ends, 1, 0);
            continue;
        }
        struct weft_strip_args *const args = &w->args[i];
        args->n = n;
        args->out = w->at[op->out] + from * out->step;
        for (int k = 0; k < op->ins; k++)
            args->in[k] = w->at[op->in[k]] + from * p->value[op->in[k]].step;
        op->kernel->fn(args);
    }
}

static void begin_folds_and_scans(const struct weft_program_worker *w, const struct weft_program_stage *stage,
                                  int64_t n)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++)
        if (p->op[i].scans)
            weft_scan_begin(&p->scan[p->op[i].fold].scan, w->scratch + p->scan[p->op[i].fold].at, n);
        else if (weft_program_is_fold(&p->op[i]) && !p->fold[p->op[i].fold].across) {
            const struct weft_program_fold *fold = &p->fold[p->op[i].fold];
            weft_program_fold_begin(p, fold, w->scratch + fold->at, n);
        }
}

static void end_folds(const struct weft_program_worker *w, const struct weft_program_stage *stage, char *const *to,
                      int64_t n)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++)
        if (weft_program_is_fold(&p->op[i]) && !p->fold[p->op[i].fold].across) {
            const struct weft_program_fold *fold = &p->fold[p->op[i].fold];
            const struct weft_program_value *const out = &p->value[p->op[i].out];
            weft_program_fold_end(p, fold, w->scratch + fold->at, to[p->op[i].out], out->stride, n);
        }
}

/* `at` for inner line number `line` of outer point `row` of the tile (strips along inner), or for inner point `line`
 * (strips along outer). */
static void seek(const struct weft_program_worker *w, int64_t row, int64_t line)
{
    const struct weft_program *p = w->program;
    const int last = p->inner_rank - 1, axes = p->along_inner ? last : p->inner_rank;
    const int64_t length = p->along_inner ? p->inner[last] : 1;
    for (int v = 0; v < p->values; v++) {
        const struct weft_program_value *const value = &p->value[v];
        int64_t offset = p->along_inner ? row * w->next[v] : 0, rest = line;
        if (value->place == WEFT_PROGRAM_ARGUMENT)
            for (int i = axes - 1; i >= 0 && rest > 0; i--) { /* of empty axes there is line 0 alone */
                offset += rest % p->inner[i] * value->inner[i] * value->bytes;
                rest /= p->inner[i];
            }
        else if (value->place == WEFT_PROGRAM_TILE)
            offset += line * (p->along_inner ? length * value->bytes : w->next[v]);
        w->at[v] = w->base[v] + offset;
    }
}

static void step(const struct weft_program_worker *w, int64_t lines)
{
    for (int v = 0; v < w->program->values; v++)
        w->at[v] += lines * w->next[v];
}

/* --- stages ------------------------------------------------------------------------------------------------------- */

/* A line of one outer point, in strips, which a scan that is reversed takes from the end. */
static void run_line(const struct weft_program_worker *w, const struct weft_program_stage *stage, int64_t length)
{
    for (int64_t done = 0; done < length; done += w->program->strip) {
        const int64_t n = length - done < w->program->strip ? length - done : w->program->strip;
        run_strip(w, stage, stage->backwards ? length - done - n : done, n, done + n == length);
    }
}

static void run_along_inner(struct weft_program_worker *w, const struct weft_program_stage *stage, int64_t rows)
{
    const struct weft_program *p = w->program;
    const int64_t length = p->inner[p->inner_rank - 1], lines = length > 0 ? p->folded / length : 0;
    const int64_t most = lines == 1 && p->block > p->strip ? p->block / length : 1;
    seek(w, 0, 0);
    for (int64_t row = 0; row < rows;) {
        const int64_t some = rows - row < most ? rows - row : most;
        if (some > 1) {
            run_block(w, stage, length, some);
            step(w, some);
            row += some;
            continue;
        }
        begin_folds_and_scans(w, stage, 1);
        for (int64_t line = 0; line < lines; line++) {
            if (lines > 1)
                seek(w, row, line);
            w->inner_at = line * length;
            run_line(w, stage, length);
        }
        if (lines != 1)
            seek(w, row, 0);
        end_folds(w, stage, w->at, 1);
        step(w, 1);
        row++;
    }
}

static void run_along_outer(struct weft_program_worker *w, const struct weft_program_stage *stage, int64_t points)
{
    const struct weft_program *p = w->program;
    const bool folds = p->inner_rank > 0;
    const int64_t most = p->block > p->strip ? p->block / points : 1;
    if (folds)
        begin_folds_and_scans(w, stage, points);
    for (int64_t i = 0; i < p->folded;) {
        const int64_t some = p->folded - i < most ? p->folded - i : most > 1 ? most : 1;
        if (p->inner_rank > 1 || i == 0 || stage->backwards)
            seek(w, 0, stage->backwards ? p->folded - i - some : i);
        if (some > 1)
            run_block(w, stage, points, some);
        else
            run_strip(w, stage, 0, points, true);
        step(w, some);
        i += some;
    }
    if (folds)
        end_folds(w, stage, w->base, points);
}

static int64_t outside_stride(const struct weft_program *p, int v)
{
    const struct weft_program_value *const value = &p->value[v];
    return value->place == WEFT_PROGRAM_ARGUMENT ? value->outer[p->outer_rank - 1]
                                                 : value->place != WEFT_PROGRAM_NUMBER;
}

static void look_outside(const struct weft_program_worker *w, const struct weft_program_op *op, int64_t points)
{
    const struct weft_program *p = w->program;
    struct weft_program_look look = look_at(w, op, w->base, 0, 0);
    look.from_stride = outside_stride(p, op->in[0]);
    for (int k = 0; k < op->guards; k++)
        look.stride[k] = outside_stride(p, p->guard[op->guard + k].value);
    weft_program_look_up(&look, w->base[op->out], outside_stride(p, op->out), points);
}

/* Values of outer points, with strips along the last outer axis whatever the others do. */
static void run_outside(const struct weft_program_worker *w, const struct weft_program_stage *stage, int64_t points)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++) {
        const struct weft_program_op *op = &p->op[i];
        if (op->guards) {
            look_outside(w, op, points);
            continue;
        }
        struct weft_strip_args args = {.n = points, .out = w->base[op->out], .param = {op->param[0], op->param[1]}};
        for (int k = 0; k <= op->ins; k++) {
            args.stride[k] = outside_stride(p, k ? op->in[k - 1] : op->out);
            if (k)
                args.in[k - 1] = w->base[op->in[k - 1]];
        }
        op->kernel->fn(&args);
    }
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

void weft_program_open_tile(struct weft_program_worker *w, int64_t point)
{
    const struct weft_program *p = w->program;
    for (int i = p->outer_rank - 1; i >= 0; i--) {
        w->index[i] = point % p->outer[i];
        point /= p->outer[i];
    }
    for (int v = 0; v < p->values; v++) {
        const struct weft_program_value *const value = &p->value[v];
        if (value->place == WEFT_PROGRAM_ARGUMENT) {
            int64_t at = value->offset;
            for (int i = 0; i < p->outer_rank; i++)
                at += w->index[i] * value->outer[i];
            char *const first = value->argument == WEFT_PROGRAM_POSITION ? (char *)WEFT_PROGRAM_ORIGIN
                                                                         : w->argument[value->argument];
            w->base[v] = (char *)((uintptr_t)first + (uintptr_t)(at * value->bytes)); /* of an empty array, NULL */
        } else {
            w->base[v] = value->place == WEFT_PROGRAM_NUMBER ? (char *)value->number : w->scratch + value->at;
        }
    }
}

static void run_code(const struct weft_program_worker *w, int64_t points, int64_t length)
{
    const struct weft_program *p = w->program;
    p->code(&(struct weft_program_tile){
        .at = w->base, .next = w->next, .points = points, .length = length, .past = p->past, .bound = p->bound,
        .rows = p->tile, .strip = p->strip, .skip = w->skip, .lines = p->inner, .scan = weft_program_scan_code,
        .worker = w});
}

void weft_program_run_tile(struct weft_program_worker *w, int64_t points)
{
    const struct weft_program *p = w->program;
    w->tile = w->block + 1; /* numbers of tiles and blocks differ */
    w->block++;
    for (int v = 0; v < p->values && !p->along_inner; v++)
        if (p->value[v].place == WEFT_PROGRAM_TILE)
            w->next[v] = points * p->value[v].bytes;
    if (p->code) {
        run_code(w, points, p->along_inner ? p->inner[p->inner_rank - 1] : p->folded);
        return;
    }
    for (int s = 0; s < p->stages; s++)
        if (p->stage[s].ops == 0) /* it stores what folds across have made: end_chunk */
            continue;
        else if (!p->stage[s].inside)
            run_outside(w, &p->stage[s], points);
        else if (p->along_inner)
            run_along_inner(w, &p->stage[s], points);
        else
            run_along_outer(w, &p->stage[s], points);
}

struct weft_program_worker weft_program_open_worker(const struct weft_program *p, void *const *argument, char *scratch)
{
    struct weft_program_worker w = {.program = p, .scratch = scratch, .argument = (char *const *)argument};
    w.args = (void *)scratch;
    w.base = (char **)(w.args + p->ops);
    w.at = w.base + p->values + p->folds;
    w.next = (int64_t *)(w.at + p->values);
    w.written = w.next + p->values;
    w.skip = w.written + p->values;
    for (int f = 0; f < p->folds; f++)
        w.base[p->values + f] = scratch + p->fold[f].at;
    for (int v = 0; v < p->values; v++) {
        w.next[v] = p->value[v].next;
        w.written[v] = 0;
        for (int i = 0; i < WEFT_PROGRAM_SKIPS && p->code; i++)
            w.skip[v * WEFT_PROGRAM_SKIPS + i] = i < p->inner_rank - 1 ? p->value[v].inner[i] * p->value[v].bytes : 0;
    }
    for (int i = 0; i < p->ops && !p->code; i++) {
        const struct weft_program_op *op = &p->op[i];
        w.args[i] = (struct weft_strip_args){.stride = {p->value[op->out].stride},
                                             .param = {op->param[0], op->param[1]}};
        for (int k = 0; k < op->ins; k++)
            w.args[i].stride[1 + k] = p->value[op->in[k]].stride;
    }
    return w;
}

/* Code that goes along lines keeps what is between stages for one outer point at a time, and code without folds has one
 * stage: neither asks for tiles. */
static int64_t most_points(const struct weft_program *p)
{
    return p->code && (p->along_inner || p->inner_rank == 0) ? INT64_MAX : p->tile;
}

static void begin_chunk(const struct weft_program_worker *w)
{
    const struct weft_program *p = w->program;
    for (int f = 0; f < p->folds; f++)
        if (p->fold[f].across)
            weft_program_across_begin(p, &p->fold[f], w->scratch + p->fold[f].at);
}

/* Results of the chunk with this number on its line; the last tile is one of its own. */
static void end_chunk(const struct weft_program_worker *w, int64_t chunk)
{
    const struct weft_program *p = w->program;
    for (int i = 0; i < p->ops; i++) {
        const struct weft_program_fold *const fold =
            weft_program_is_fold(&p->op[i]) ? &p->fold[p->op[i].fold] : NULL;
        const struct weft_program_value *const out = &p->value[p->op[i].out];
        if (fold && fold->across)
            weft_program_across_end(p, fold, w->scratch + fold->at, out,
                                    w->base[p->op[i].out] + chunk * out->chunk * out->bytes);
    }
}

/* Outer points [at, end) of one line. */
static void run_points(struct weft_program_worker *w, int64_t at, int64_t end)
{
    const int64_t most = most_points(w->program);
    while (at < end) {
        const int64_t points = end - at < most ? end - at : most;
        weft_program_open_tile(w, at);
        weft_program_run_tile(w, points);
        at += points;
    }
}

/* Outer points [at, end) of any lines. */
static void run_lines(struct weft_program_worker *w, int64_t at, int64_t end)
{
    const int64_t line = w->program->outer[w->program->outer_rank - 1];
    while (at < end) {
        const int64_t left = line - at % line, points = left < end - at ? left : end - at;
        run_points(w, at, at + points);
        at += points;
    }
}

static void run_chunks(struct weft_program_worker *w, int64_t at, int64_t end)
{
    const struct weft_program *p = w->program;
    const int64_t line = p->outer[p->outer_rank - 1], chunks = (line + p->chunk - 1) / p->chunk;
    for (; at < end; at++) {
        const int64_t chunk = at % chunks, first = at / chunks * line + chunk * p->chunk;
        const int64_t left = line - chunk * p->chunk;
        begin_chunk(w);
        run_points(w, first, first + (left < p->chunk ? left : p->chunk));
        end_chunk(w, chunk);
    }
}

/* All stages of a line that is a chunk of another one. */
static void run_chunk_of_line(struct weft_program_worker *w, int64_t length)
{
    const struct weft_program *p = w->program;
    if (p->code) {
        run_code(w, 1, length);
        return;
    }
    w->tile = w->block + 1;
    w->block++;
    for (int s = 0; s < p->stages; s++) {
        seek(w, 0, 0);
        run_line(w, &p->stage[s], length);
    }
}

void weft_program_run(const struct weft_program *p, void *const *argument, void *scratch, void *shared, int part,
                      int parts)
{
    struct weft_program_worker w = weft_program_open_worker(p, argument, scratch);
    int64_t at, end;
    if (p->shared) {
        weft_program_share_chunks(&w, run_chunk_of_line, shared, parts);
        return;
    }
    if (p->chunk) {
        weft_share(weft_program_chunks(p), 1, part, parts, &at, &end);
        run_chunks(&w, at, end);
        return;
    }
    weft_share(p->points, p->along_inner ? 1 : WEFT_PROGRAM_GRAIN, part, parts, &at, &end);
    run_lines(&w, at, end);
}

void weft_program_run_points(const struct weft_program *p, void *const *argument, void *scratch, int64_t first,
                             int64_t end)
{
    struct weft_program_worker w = weft_program_open_worker(p, argument, scratch);
    run_lines(&w, first, end);
}
