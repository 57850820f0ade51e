/* SPDX-License-Identifier: Apache-2.0 */
/* program_run.c: running a part of a strip program. The contract: program.h. */
#include "kernels/strip/program.h"
#include "kernels/walk.h"

/* A worker at its part. What it holds of every value and op stands at the begin of its scratch memory. */
struct worker {
    const struct weft_program *program;
    char *scratch;
    char **base;                  /* by value: at the first point of the tile */
    char **at;                    /* at the first point of the next strip */
    struct weft_strip_args *args; /* by op */
    char *const *argument;
    int64_t index[WEFT_K_RANK];   /* of the tile's first outer point */
};

/* --- strips ------------------------------------------------------------------------------------------------------- */

/* The ops of a stage on n points, `from` points behind where `at` stands. */
static inline void run_strip(const struct worker *w, const struct weft_program_stage *stage, int64_t from, int64_t n,
                             bool ends)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++) {
        const struct weft_program_op *op = &p->op[i];
        const struct weft_program_value *const in = &p->value[op->in[0]];
        if (!op->kernel) {
            const struct weft_program_fold *fold = &p->fold[op->fold];
            weft_program_fold_strip(p, fold, w->scratch + fold->at, w->at[op->in[0]] + from * in->step, in->stride, n,
                                    ends);
            continue;
        }
        struct weft_strip_args *const args = &w->args[i];
        args->n = n;
        args->out = w->at[op->out] + from * p->value[op->out].step;
        for (int k = 0; k < op->ins; k++)
            args->in[k] = w->at[op->in[k]] + from * p->value[op->in[k]].step;
        op->kernel->fn(args);
    }
}

static void begin_folds(const struct worker *w, const struct weft_program_stage *stage, int64_t n)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++)
        if (!p->op[i].kernel) {
            const struct weft_program_fold *fold = &p->fold[p->op[i].fold];
            weft_program_fold_begin(p, fold, w->scratch + fold->at, n);
        }
}

static void end_folds(const struct worker *w, const struct weft_program_stage *stage, char *const *to, int64_t n)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++)
        if (!p->op[i].kernel) {
            const struct weft_program_fold *fold = &p->fold[p->op[i].fold];
            const struct weft_program_value *const out = &p->value[p->op[i].out];
            weft_program_fold_end(p, fold, w->scratch + fold->at, to[p->op[i].out], out->stride, n);
        }
}

/* `at` for inner line number `line` of outer point `row` of the tile (strips along inner), or for inner point `line`
 * (strips along outer). */
static void seek(const struct worker *w, int64_t row, int64_t line)
{
    const struct weft_program *p = w->program;
    const int last = p->inner_rank - 1, axes = p->along_inner ? last : p->inner_rank;
    const int64_t length = p->along_inner ? p->inner[last] : 1;
    for (int v = 0; v < p->values; v++) {
        const struct weft_program_value *const value = &p->value[v];
        int64_t offset = p->along_inner ? row * value->next : 0, rest = line;
        if (value->place == WEFT_PROGRAM_ARGUMENT)
            for (int i = axes - 1; i >= 0; i--) {
                offset += rest % p->inner[i] * value->inner[i] * value->bytes;
                rest /= p->inner[i];
            }
        else if (value->place == WEFT_PROGRAM_TILE)
            offset += line * (p->along_inner ? length * value->bytes : value->next);
        w->at[v] = w->base[v] + offset;
    }
}

static void step(const struct worker *w)
{
    for (int v = 0; v < w->program->values; v++)
        w->at[v] += w->program->value[v].next;
}

/* --- stages ------------------------------------------------------------------------------------------------------- */

static void run_along_inner(const struct worker *w, const struct weft_program_stage *stage, int64_t rows)
{
    const struct weft_program *p = w->program;
    const int64_t length = p->inner[p->inner_rank - 1], lines = length > 0 ? p->folded / length : 0;
    seek(w, 0, 0);
    for (int64_t row = 0; row < rows; row++) {
        begin_folds(w, stage, 1);
        for (int64_t line = 0; line < lines; line++) {
            if (lines > 1)
                seek(w, row, line);
            for (int64_t from = 0; from < length; from += p->strip) {
                const int64_t n = length - from < p->strip ? length - from : p->strip;
                run_strip(w, stage, from, n, from + n == length);
            }
        }
        if (lines != 1)
            seek(w, row, 0);
        end_folds(w, stage, w->at, 1);
        step(w);
    }
}

static void run_along_outer(const struct worker *w, const struct weft_program_stage *stage, int64_t points)
{
    const struct weft_program *p = w->program;
    const bool folds = p->inner_rank > 0;
    if (folds)
        begin_folds(w, stage, points);
    for (int64_t i = 0; i < p->folded; i++) {
        if (p->inner_rank > 1 || i == 0)
            seek(w, 0, i);
        else
            step(w);
        run_strip(w, stage, 0, points, true);
    }
    if (folds)
        end_folds(w, stage, w->base, points);
}

/* Values of outer points, with strips along the last outer axis whatever the others do. */
static void run_outside(const struct worker *w, const struct weft_program_stage *stage, int64_t points)
{
    const struct weft_program *p = w->program;
    for (int i = stage->first; i < stage->first + stage->ops; i++) {
        const struct weft_program_op *op = &p->op[i];
        struct weft_strip_args args = {.n = points, .out = w->base[op->out], .param = {op->param[0], op->param[1]}};
        for (int k = 0; k <= op->ins; k++) {
            const struct weft_program_value *const value = &p->value[k ? op->in[k - 1] : op->out];
            args.stride[k] = value->place == WEFT_PROGRAM_ARGUMENT ? value->outer[p->outer_rank - 1]
                                                                   : value->place != WEFT_PROGRAM_NUMBER;
            if (k)
                args.in[k - 1] = w->base[op->in[k - 1]];
        }
        op->kernel->fn(&args);
    }
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

static void open_tile(struct worker *w, int64_t point)
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
            w->base[v] = w->argument[value->argument] + at * value->bytes;
        } else {
            w->base[v] = value->place == WEFT_PROGRAM_NUMBER ? (char *)value->number : w->scratch + value->at;
        }
    }
}

static void run_tile(const struct worker *w, int64_t points)
{
    const struct weft_program *p = w->program;
    for (int s = 0; s < p->stages; s++)
        if (!p->stage[s].inside)
            run_outside(w, &p->stage[s], points);
        else if (p->along_inner)
            run_along_inner(w, &p->stage[s], points);
        else
            run_along_outer(w, &p->stage[s], points);
}

static struct worker open_worker(const struct weft_program *p, void *const *argument, char *scratch)
{
    struct worker w = {.program = p, .scratch = scratch, .argument = (char *const *)argument};
    w.args = (void *)scratch;
    w.base = (char **)(w.args + p->ops);
    w.at = w.base + p->values;
    for (int i = 0; i < p->ops; i++) {
        const struct weft_program_op *op = &p->op[i];
        w.args[i] = (struct weft_strip_args){.stride = {p->value[op->out].stride}, .param = {op->param[0], op->param[1]}};
        for (int k = 0; k < op->ins; k++)
            w.args[i].stride[1 + k] = p->value[op->in[k]].stride;
    }
    return w;
}

void weft_program_run(const struct weft_program *p, void *const *argument, void *scratch, int part, int parts)
{
    struct worker w = open_worker(p, argument, scratch);
    const int64_t line = p->outer[p->outer_rank - 1];
    int64_t at, end;
    weft_share(p->points, p->along_inner ? 1 : 64, part, parts, &at, &end);
    while (at < end) {
        open_tile(&w, at);
        int64_t points = line - w.index[p->outer_rank - 1];
        points = points < p->tile ? points : p->tile;
        points = points < end - at ? points : end - at;
        run_tile(&w, points);
        at += points;
    }
}
