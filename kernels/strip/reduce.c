/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: sums, means, products and extremes over some axes of a strided array.
 *
 * prepare orders and merges the kept and the reduced axes; then one of three forms fits:
 *   lines     terms are contiguous: virtual lanes along them, folded at the end
 *   columns   results are contiguous in the operand: a strip of results side by side, one chain each
 *   strided   neither: terms are gathered into a buffer and treated as lines
 *
 * Long chains are cut. After BLOCK steps the running values are added to totals and start again, so that the error
 * grows with BLOCK plus the number of blocks and not with the number of terms.
 *
 * Parts are ranges of results. Where there are few results of many terms, the longest reduced axis is cut into slices
 * of equal length, each result has one partial result for each slice and one for what is left over, and the part that
 * comes last adds them up, in order. Cuts depend on the shape alone: neither the CPU level nor the number of parts
 * changes a bit. */
#include "kernels/strip/reduce_type.h"
#include "kernels/walk.h"

#define BLOCK  256  /* terms in a chain before it is put aside */
#define STRIP  8192 /* bytes of results side by side: totals, running values and terms that are widened fit L1 */
#define GATHER 256
#define SLICE  (128 << 10) /* bytes that are worth a slice */
#define SLICES 64
#define HEADER 64   /* bytes of shared memory before the partial results: how many parts are done */

enum form { LINES, COLUMNS, STRIDED };

static enum form form_of(const struct weft_reduce *reduce)
{
    if (reduce->in_reduced[reduce->reduced - 1] == 1)
        return LINES;
    return reduce->in_kept[reduce->kept - 1] == 1 ? COLUMNS : STRIDED;
}

const struct weft_fold *weft_fold_find(uint32_t cpu)
{
    static const struct weft_fold *const folds[] = {WEFT_LEVELS(&weft_fold)};
    return folds[weft_level_of(cpu)];
}

const char *weft_reduce_name(const struct weft_reduce *reduce)
{
    static const char *const names[] = {
#define REDUCE(id, level, cpu) "weft_reduce_" #id "__" #level,
#include "kernels/strip/reduce.def"
    };
    const int level = weft_level_of(reduce->cpu);
    struct weft_reduce_type type;
    weft_reduce_type_of(reduce->in_dtype, reduce->out_dtype, reduce->cpu, &type);
    return names[(level * WEFT_FOLD_KINDS + (int)type.kind) * 3 + (int)form_of(reduce)];
}

uint32_t weft_reduce_cpu(const struct weft_reduce *reduce) { return weft_fold_find(reduce->cpu)->cpu; }

int64_t weft_reduce_columns(const struct weft_reduce *reduce, int64_t *ret_lanes)
{
    struct weft_reduce_type type;
    weft_reduce_type_of(reduce->in_dtype, reduce->out_dtype, reduce->cpu, &type);
    *ret_lanes = (weft_level_of(reduce->cpu) == 2 ? 64 : 32) / type.loops->bytes;
    return form_of(reduce) == COLUMNS ? reduce->kept_extent[reduce->kept - 1] : 0;
}

bool weft_reduce_supports(int in_dtype, int out_dtype, uint32_t cpu)
{
    struct weft_reduce_type type;
    return weft_reduce_type_of(in_dtype, out_dtype, cpu, &type);
}

/* As many slices as the work is worth, but no more than make the parts fine enough. */
static void cut_into_slices(struct weft_reduce *reduce, int64_t bytes, int64_t grains)
{
    reduce->slices = 1;
    reduce->slice_axis = 0;
    for (int i = 1; i < reduce->reduced; i++)
        if (reduce->reduced_extent[i] > reduce->reduced_extent[reduce->slice_axis])
            reduce->slice_axis = i;
    int64_t slices = bytes / SLICE;
    if (grains < 1 || slices > SLICES / grains)
        slices = grains < 1 ? 1 : SLICES / grains;
    if (slices > reduce->reduced_extent[reduce->slice_axis])
        slices = reduce->reduced_extent[reduce->slice_axis];
    if (slices > 1)
        reduce->slices = slices;
}

void weft_reduce_prepare(struct weft_reduce *reduce, int workers)
{
    struct weft_k_axis kept[WEFT_K_RANK] = {{0}}, reduced[WEFT_K_RANK] = {{0}};
    int64_t total = 1, results = 1;
    for (int i = 0; i < reduce->kept; i++) {
        kept[i] = (struct weft_k_axis){reduce->kept_extent[i], {reduce->out_stride[i], reduce->in_kept[i]}};
        results *= kept[i].extent;
    }
    for (int i = 0; i < reduce->reduced; i++) {
        reduced[i] = (struct weft_k_axis){reduce->reduced_extent[i], {reduce->in_reduced[i]}};
        total *= reduced[i].extent;
    }
    total *= results;
    weft_k_axes_sort(kept, reduce->kept);
    weft_k_axes_sort(reduced, reduce->reduced);
    reduce->kept = weft_k_axes_merge(kept, reduce->kept, 2);
    reduce->reduced = weft_k_axes_merge(reduced, reduce->reduced, 1);
    if (!reduce->kept)
        kept[reduce->kept++] = (struct weft_k_axis){1, {1, 0}};
    if (!reduce->reduced)
        reduced[reduce->reduced++] = (struct weft_k_axis){1, {0}};
    for (int i = 0; i < reduce->kept; i++)
        if (kept[i].stride[1] == 1) {
            weft_k_axes_move(kept, i, reduce->kept - 1);
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
    struct weft_reduce_type type;
    weft_reduce_type_of(reduce->in_dtype, reduce->out_dtype, reduce->cpu, &type);
    const int64_t bytes = type.in_bytes * total;
    int64_t grains = form_of(reduce) == COLUMNS ? (results + 63) / 64 : results;
    reduce->divisor = results > 0 ? total / results : 0;
    cut_into_slices(reduce, bytes, grains);
    if (reduce->slices > 1) {
        grains *= reduce->slices;
        reduce->shared = HEADER + (size_t)((reduce->slices + 1) * results * type.loops->bytes);
    }
    const int32_t parts = weft_parts_for(bytes, workers);
    reduce->parts = grains < 1 ? 1 : grains < parts ? (int32_t)grains : parts;
}

/* --- one result, or one strip of results -------------------------------------------------------------------------- */

struct job {
    const struct weft_reduce *reduce;
    struct weft_reduce_type type;
    int op; /* without means */
    int64_t terms;
    struct weft_k_walk reduced; /* over the terms of one result; back at its start after each */
};

static struct job job_of(const struct weft_reduce *reduce)
{
    struct job job = {.reduce = reduce,
                      .op = reduce->op == WEFT_K_MEAN ? WEFT_K_SUM : (int)reduce->op,
                      .terms = 1,
                      .reduced = {.rank = reduce->reduced, .arrays = 1}};
    weft_reduce_type_of(reduce->in_dtype, reduce->out_dtype, reduce->cpu, &job.type);
    for (int i = 0; i < reduce->reduced; i++) {
        job.terms *= job.reduced.extent[i] = reduce->reduced_extent[i];
        job.reduced.step[0][i] = reduce->in_reduced[i] * job.type.in_bytes;
    }
    return job;
}

static void reduce_lines(struct job *job, const void *in, void *ret)
{
    _Alignas(64) char total[WEFT_FOLD_BYTES], running[WEFT_FOLD_BYTES], buffer[GATHER * 8];
    const struct weft_fold_loops *const loops = job->type.loops;
    const int inner = job->reduced.rank - 1;
    const int64_t n = job->reduced.extent[inner], stride = job->reduce->in_reduced[inner];
    const bool in_place = stride == 1 && !job->type.widens;
    const int64_t lanes = WEFT_FOLD_BYTES / loops->bytes, piece = in_place ? BLOCK * lanes : GATHER;
    bool first = true;
    job->reduced.at[0] = (char *)in;
    for (int64_t done = 0; done < job->terms; done += n) {
        for (int64_t i = 0; i < n; i += piece) {
            const int64_t length = n - i < piece ? n - i : piece;
            const void *line = job->reduced.at[0] + i * job->reduced.step[0][inner];
            if (!in_place) {
                weft_reduce_load(job->reduce, &job->type, buffer, line, stride, length);
                line = buffer;
            }
            loops->line(job->op, first ? total : running, line, length, true);
            if (!first)
                loops->line(job->op, total, running, lanes, false);
            first = false;
        }
        weft_k_walk_next(&job->reduced, inner - 1);
    }
    loops->finish(job->op, total, ret);
}

/* The loop that reads terms as they lie, or NULL. */
static weft_fold_columns columns_for(const struct job *job)
{
    const struct weft_fold_loops *const loops = job->type.loops;
    if (!job->type.widens)
        return loops->columns;
    return job->reduce->in_dtype == WEFT_K_BF16  ? loops->columns_bf16
           : job->reduce->in_dtype == WEFT_K_F16 ? loops->columns_f16
                                                 : NULL;
}

/* acc[c] op= rows of terms, which are widened one by one where no loop reads them as they are. */
static void add_rows(struct job *job, void *acc, const char *x, int64_t step, int64_t rows, int64_t columns)
{
    _Alignas(64) char buffer[STRIP];
    const weft_fold_columns direct = columns_for(job);
    if (direct) {
        direct(job->op, acc, x, step / job->type.in_bytes, rows, columns);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        weft_reduce_load(job->reduce, &job->type, buffer, x + r * step, 1, columns);
        job->type.loops->columns(job->op, acc, buffer, 0, 1, columns);
    }
}

static void reduce_columns(struct job *job, void *total, const void *in, int64_t columns)
{
    _Alignas(64) char running[STRIP];
    const struct weft_fold_loops *const loops = job->type.loops;
    const int inner = job->reduced.rank - 1;
    const int64_t n = job->reduced.extent[inner], row = job->reduced.step[0][inner];
    int64_t chain = 0; /* terms in the running values */
    bool first = true; /* the first chain runs in the totals */
    void *into = total;
    weft_reduce_identity(&job->type, job->op, total, columns);
    job->reduced.at[0] = (char *)in;
    for (int64_t done = 0; done < job->terms; done += n) {
        for (int64_t i = 0; i < n;) {
            const int64_t rows = n - i < BLOCK - chain ? n - i : BLOCK - chain;
            add_rows(job, into, job->reduced.at[0] + i * row, row, rows, columns);
            i += rows, chain += rows;
            if (chain < BLOCK)
                continue;
            if (!first)
                loops->columns(job->op, total, running, 0, 1, columns);
            first = false, chain = 0, into = running;
            weft_reduce_identity(&job->type, job->op, running, columns);
        }
        weft_k_walk_next(&job->reduced, inner - 1);
    }
    if (!first && chain)
        loops->columns(job->op, total, running, 0, 1, columns);
}

/* Some results side by side, from `from` on: at most `left`. How many it did. */
static int64_t reduce_some(struct job *job, void *to, int64_t out_stride, const char *from, int64_t left, bool columns)
{
    _Alignas(64) char strip[STRIP];
    const int64_t most = STRIP / job->type.loops->bytes, count = !columns ? 1 : left < most ? left : most;
    if (job->terms == 0)
        for (int64_t i = 0; i < count; i++)
            weft_reduce_nothing(job->reduce, &job->type, strip + i * job->type.loops->bytes);
    else if (columns)
        reduce_columns(job, strip, from, count);
    else
        reduce_lines(job, from, strip);
    weft_reduce_store(job->reduce, &job->type, to, out_stride, strip, count);
    return count;
}

static void run_range(const struct weft_reduce *reduce, void *out, const void *in, int part, int parts)
{
    const bool columns = form_of(reduce) == COLUMNS;
    struct job job = job_of(reduce);
    struct weft_k_walk kept = {.rank = reduce->kept, .arrays = 2, .at = {out, (char *)in}};
    int64_t results = 1, at, end;
    for (int i = 0; i < reduce->kept; i++) {
        results *= kept.extent[i] = reduce->kept_extent[i];
        kept.step[0][i] = reduce->out_stride[i] * job.type.out_bytes;
        kept.step[1][i] = reduce->in_kept[i] * job.type.in_bytes;
    }
    weft_share(results, columns ? 64 : 1, part, parts, &at, &end);
    if (at >= end)
        return;
    const int inner = kept.rank - 1;
    weft_k_walk_seek(&kept, at);
    while (at < end) {
        const int64_t rest = kept.extent[inner] - kept.index[inner], left = rest < end - at ? rest : end - at;
        for (int64_t c = 0; c < (columns ? left : 1);)
            c += reduce_some(&job, kept.at[0] + c * kept.step[0][inner], reduce->out_stride[inner],
                             kept.at[1] + c * job.type.in_bytes, left - c, columns);
        at += columns ? left : 1;
        weft_k_walk_next(&kept, columns ? inner - 1 : inner);
    }
}

/* --- slices ------------------------------------------------------------------------------------------------------- */

static int accumulator(enum weft_fold_kind kind)
{
    static const uint8_t dtype[] = {WEFT_K_F32, WEFT_K_F64, WEFT_K_I64, WEFT_K_U64};
    return dtype[kind];
}

/* The partial results of all slices: the slice is the outermost kept axis. `count`: of terms along the axis each. */
static struct weft_reduce partial_of(const struct weft_reduce *reduce, int dtype, int64_t slices, int64_t count)
{
    struct weft_reduce partial = *reduce;
    partial.op = reduce->op == WEFT_K_MEAN ? WEFT_K_SUM : reduce->op;
    partial.out_dtype = (uint8_t)dtype;
    partial.reduced_extent[reduce->slice_axis] = count;
    int64_t results = 1;
    for (int i = reduce->kept - 1; i >= 0; i--) {
        partial.kept_extent[i + 1] = reduce->kept_extent[i];
        partial.in_kept[i + 1] = reduce->in_kept[i];
        partial.out_stride[i + 1] = results;
        results *= reduce->kept_extent[i];
    }
    partial.kept++;
    partial.kept_extent[0] = slices;
    partial.in_kept[0] = reduce->in_reduced[reduce->slice_axis] * count;
    partial.out_stride[0] = results;
    return partial;
}

/* Partial results [slices, results] to the results. */
static struct weft_reduce sum_of(const struct weft_reduce *reduce, int dtype, int64_t slices)
{
    struct weft_reduce sum = *reduce;
    sum.in_dtype = (uint8_t)dtype;
    int64_t results = 1;
    for (int i = reduce->kept - 1; i >= 0; i--) {
        sum.in_kept[i] = results;
        results *= reduce->kept_extent[i];
    }
    sum.reduced = 1;
    sum.reduced_extent[0] = slices;
    sum.in_reduced[0] = results;
    return sum;
}

void weft_reduce_run(const struct weft_reduce *reduce, void *out, const void *in, void *shared, int part, int parts)
{
    if (reduce->slices < 2) {
        run_range(reduce, out, in, part, parts);
        return;
    }
    struct weft_reduce_type type;
    weft_reduce_type_of(reduce->in_dtype, reduce->out_dtype, reduce->cpu, &type);
    const int dtype = accumulator(type.kind);
    const int64_t extent = reduce->reduced_extent[reduce->slice_axis], length = extent / reduce->slices;
    const struct weft_reduce partial = partial_of(reduce, dtype, reduce->slices, length);
    char *const memory = (char *)shared + HEADER;
    int *const done = shared;
    run_range(&partial, memory, in, part, parts);
    if (__atomic_add_fetch(done, 1, __ATOMIC_ACQ_REL) < parts)
        return;
    const int64_t rest = extent - length * reduce->slices;
    if (rest > 0) {
        const struct weft_reduce last = partial_of(reduce, dtype, 1, rest);
        const int64_t taken = length * reduce->slices * reduce->in_reduced[reduce->slice_axis];
        run_range(&last, memory + reduce->slices * partial.out_stride[0] * type.loops->bytes,
                  (const char *)in + taken * type.in_bytes, 0, 1);
    }
    const struct weft_reduce sum = sum_of(reduce, dtype, reduce->slices + (rest > 0));
    run_range(&sum, out, memory, 0, 1);
    __atomic_store_n(done, 0, __ATOMIC_RELEASE);
}
