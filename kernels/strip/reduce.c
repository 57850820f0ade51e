/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: sums, means, products and extremes over some axes of a strided array.
 *
 * prepare orders and merges the kept and the reduced axes; then one of three forms fits:
 *   lines     terms are contiguous: 32 virtual lanes along them, folded at the end
 *   columns   results are contiguous in the operand: up to STRIP results side by side, one chain each
 *   strided   neither: terms are gathered into a buffer and treated as lines
 *
 * Long chains are cut. After BLOCK steps the running values are added to totals and start again, so that the error
 * grows with BLOCK plus the number of blocks and not with the number of terms. Cuts depend on the shape alone, and
 * parts are ranges of results: neither the CPU level nor the number of parts changes a bit. The price: one huge
 * reduction to a single number runs on one thread. */
#include "kernels/strip/fold.h"
#include "kernels/walk.h"

#define BLOCK  256  /* terms in a chain before it is put aside */
#define STRIP  1024 /* results side by side: 4 KiB of totals and as much of running values, in L1 */
#define GATHER 256

enum form { LINES, COLUMNS, STRIDED };

static enum form form_of(const struct weft_reduce *reduce)
{
    if (reduce->in_reduced[reduce->reduced - 1] == 1)
        return LINES;
    return reduce->in_kept[reduce->kept - 1] == 1 ? COLUMNS : STRIDED;
}

const struct weft_fold *weft_fold_find(uint32_t cpu)
{
    return !(weft_fold__avx512.cpu & ~cpu) ? &weft_fold__avx512
           : !(weft_fold__avx2.cpu & ~cpu) ? &weft_fold__avx2
                                           : &weft_fold__ref;
}

const char *weft_reduce_name(const struct weft_reduce *reduce)
{
    static const char *const names[] = {
#define REDUCE(id, level, cpu) "weft_reduce_" #id "__" #level,
#include "kernels/strip/reduce.def"
    };
    const struct weft_fold *const fold = weft_fold_find(reduce->cpu);
    return names[3 * (fold == &weft_fold__avx512 ? 2 : fold == &weft_fold__avx2 ? 1 : 0) + (int)form_of(reduce)];
}

void weft_reduce_prepare(struct weft_reduce *reduce, int workers)
{
    struct weft_axis kept[WEFT_K_RANK] = {{0}}, reduced[WEFT_K_RANK] = {{0}};
    int64_t total = 1, results = 1;
    for (int i = 0; i < reduce->kept; i++) {
        kept[i] = (struct weft_axis){reduce->kept_extent[i], {reduce->out_stride[i], reduce->in_kept[i]}};
        results *= kept[i].extent;
    }
    for (int i = 0; i < reduce->reduced; i++) {
        reduced[i] = (struct weft_axis){reduce->reduced_extent[i], {reduce->in_reduced[i]}};
        total *= reduced[i].extent;
    }
    total *= results;
    weft_axes_sort(kept, reduce->kept);
    weft_axes_sort(reduced, reduce->reduced);
    reduce->kept = weft_axes_merge(kept, reduce->kept, 2);
    reduce->reduced = weft_axes_merge(reduced, reduce->reduced, 1);
    if (!reduce->kept)
        kept[reduce->kept++] = (struct weft_axis){1, {1, 0}};
    if (!reduce->reduced)
        reduced[reduce->reduced++] = (struct weft_axis){1, {0}};
    for (int i = 0; i < reduce->kept; i++)
        if (kept[i].stride[1] == 1) {
            weft_axes_move(kept, i, reduce->kept - 1);
            break;
        }
    for (int i = 0; i < reduce->kept; i++) {
        reduce->kept_extent[i] = kept[i].extent;
        reduce->out_stride[i] = kept[i].stride[0];
        reduce->in_kept[i] = kept[i].stride[1];
    }
    for (int i = 0; i < reduce->reduced; i++) {
        reduce->reduced_extent[i] = reduced[i].extent;
        reduce->in_reduced[i] = reduced[i].stride[0];
    }
    const int64_t grains = form_of(reduce) == COLUMNS ? (results + 63) / 64 : results;
    const int32_t parts = weft_parts_for(4 * total, workers);
    reduce->parts = grains < 1 ? 1 : grains < parts ? (int32_t)grains : parts;
}

/* --- one result, or one strip of results -------------------------------------------------------------------------- */

struct job {
    const struct weft_fold *fold;
    int op; /* without means */
    int64_t terms;
    struct weft_walk reduced; /* over the terms of one result; back at its start after each */
};

static struct job job_of(const struct weft_reduce *reduce)
{
    struct job job = {.fold = weft_fold_find(reduce->cpu),
                      .op = reduce->op == WEFT_K_MEAN ? WEFT_K_SUM : (int)reduce->op,
                      .terms = 1,
                      .reduced = {.rank = reduce->reduced, .arrays = 1}};
    for (int i = 0; i < reduce->reduced; i++) {
        job.terms *= job.reduced.extent[i] = reduce->reduced_extent[i];
        job.reduced.step[0][i] = reduce->in_reduced[i] * (int64_t)sizeof(float);
    }
    return job;
}

static void set_all(float *x, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

static float reduce_lines(struct job *job, const float *in, int64_t stride)
{
    float total[WEFT_FOLD_LANES], running[WEFT_FOLD_LANES], buffer[GATHER];
    const int inner = job->reduced.rank - 1;
    const int64_t n = job->reduced.extent[inner], piece = stride == 1 ? BLOCK * WEFT_FOLD_LANES : GATHER;
    bool first = true;
    job->reduced.at[0] = (char *)in;
    for (int64_t done = 0; done < job->terms; done += n) {
        const float *const x = (const float *)(const void *)job->reduced.at[0];
        for (int64_t i = 0; i < n; i += piece) {
            const int64_t length = n - i < piece ? n - i : piece;
            const float *line = x + i * stride;
            if (stride != 1) {
                for (int64_t j = 0; j < length; j++)
                    buffer[j] = line[j * stride];
                line = buffer;
            }
            job->fold->line(job->op, first ? total : running, line, length, true);
            if (!first)
                job->fold->line(job->op, total, running, WEFT_FOLD_LANES, false);
            first = false;
        }
        weft_walk_next(&job->reduced, inner - 1);
    }
    return first ? weft_fold_identity(job->op) : job->fold->finish(job->op, total);
}

static void reduce_columns(struct job *job, float *total, const float *in, int64_t columns)
{
    float running[STRIP];
    const int inner = job->reduced.rank - 1;
    const int64_t n = job->reduced.extent[inner], row = job->reduced.step[0][inner] / (int64_t)sizeof(float);
    int64_t chain = 0; /* terms in the running values */
    bool first = true; /* the first chain runs in the totals */
    float *into = total;
    set_all(total, columns, weft_fold_identity(job->op));
    job->reduced.at[0] = (char *)in;
    for (int64_t done = 0; done < job->terms; done += n) {
        const float *const x = (const float *)(const void *)job->reduced.at[0];
        for (int64_t i = 0; i < n;) {
            const int64_t rows = n - i < BLOCK - chain ? n - i : BLOCK - chain;
            job->fold->columns(job->op, into, x + i * row, row, rows, columns);
            i += rows, chain += rows;
            if (chain < BLOCK)
                continue;
            if (!first)
                job->fold->columns(job->op, total, running, 0, 1, columns);
            first = false, chain = 0, into = running;
            set_all(running, columns, weft_fold_identity(job->op));
        }
        weft_walk_next(&job->reduced, inner - 1);
    }
    if (!first && chain)
        job->fold->columns(job->op, total, running, 0, 1, columns);
}

void weft_reduce_run(const struct weft_reduce *reduce, float *out, const float *in, int part, int parts)
{
    const enum form form = form_of(reduce);
    struct job job = job_of(reduce);
    struct weft_walk kept = {.rank = reduce->kept, .arrays = 2, .at = {(char *)out, (char *)in}};
    int64_t results = 1, at, end;
    for (int i = 0; i < reduce->kept; i++) {
        results *= kept.extent[i] = reduce->kept_extent[i];
        kept.step[0][i] = reduce->out_stride[i] * (int64_t)sizeof(float);
        kept.step[1][i] = reduce->in_kept[i] * (int64_t)sizeof(float);
    }
    weft_share(results, form == COLUMNS ? 64 : 1, part, parts, &at, &end);
    if (at >= end)
        return;
    const int inner = kept.rank - 1;
    const int64_t out_stride = reduce->out_stride[inner];
    const float divisor = reduce->op == WEFT_K_MEAN ? (float)job.terms : 1.f;
    float strip[STRIP];
    weft_walk_seek(&kept, at);
    while (at < end) {
        float *const to = (float *)(void *)kept.at[0];
        const float *const from = (const float *)(const void *)kept.at[1];
        if (form != COLUMNS) {
            *to = reduce_lines(&job, from, reduce->in_reduced[reduce->reduced - 1]) / divisor;
            at++;
            weft_walk_next(&kept, inner);
            continue;
        }
        const int64_t rest = kept.extent[inner] - kept.index[inner], left = rest < end - at ? rest : end - at;
        for (int64_t c = 0; c < left; c += STRIP) {
            const int64_t columns = left - c < STRIP ? left - c : STRIP;
            reduce_columns(&job, strip, from + c, columns);
            for (int64_t i = 0; i < columns; i++)
                to[(c + i) * out_stride] = strip[i] / divisor;
        }
        at += left;
        weft_walk_next(&kept, inner - 1);
    }
}
