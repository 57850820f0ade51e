/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: ops along one axis whose order is given: running sums, products and extremes, and where an extreme is.
 *
 * A scan adds up in double or in wrapping 64-bit integers and rounds each element as it is stored. */
#include "eval/rule.h"

#include <math.h>

void weft_eval_lines(struct weft_eval *eval, int axis, int tensors, const struct weft_tensor *const *tensor,
                     weft_line_rule *rule, void *user)
{
    struct weft_tensor line[WEFT_WALK_TENSORS];
    const struct weft_tensor *pointer[WEFT_WALK_TENSORS];
    for (int t = 0; t < tensors; t++) {
        line[t] = *tensor[t];
        line[t].extent[axis] = 1;
        pointer[t] = &line[t];
    }
    struct weft_walk walk;
    for (weft_walk_open(&walk, tensors, pointer); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            int64_t place[WEFT_WALK_TENSORS];
            for (int t = 0; t < tensors; t++)
                place[t] = walk.place[t] + i * walk.step[t];
            rule(eval, place, user);
        }
}

/* --- scans ------------------------------------------------------------------------------------------------- */

struct scan {
    const struct weft_fold *fold;
    int axis;
    bool exclusive, reverse;
};

static void scan_line(struct weft_eval *eval, const int64_t *place, void *user)
{
    const struct scan *scan = user;
    const struct weft_tensor *out = &eval->out[0], *in = &eval->in[0];
    const int64_t n = in->extent[scan->axis];
    union weft_number sum = scan->fold->neutral(in->dtype);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = scan->reverse ? n - 1 - i : i;
        const int64_t from = place[1] + at * in->stride[scan->axis], to = place[0] + at * out->stride[scan->axis];
        union weft_number x;
        weft_eval_load(in, from, 1, 1, &x);
        if (scan->exclusive)
            weft_eval_store(out, to, 1, 1, &sum);
        scan->fold->add(in->dtype, 1, &x, &sum, 0);
        if (!scan->exclusive)
            weft_eval_store(out, to, 1, 1, &sum);
    }
}

static void run_scan(struct weft_eval *eval, const struct weft_fold *fold)
{
    struct scan scan = {.fold = fold,
                        .axis = (int)weft_eval_int(eval, WEFT_ATTR_axis),
                        .exclusive = weft_eval_int(eval, WEFT_ATTR_exclusive) != 0,
                        .reverse = weft_eval_int(eval, WEFT_ATTR_reverse) != 0};
    weft_eval_lines(eval, scan.axis, 2, (const struct weft_tensor *const[]){&eval->out[0], &eval->in[0]}, scan_line,
                    &scan);
}

void weft_eval_cumsum(struct weft_eval *eval) { run_scan(eval, &weft_fold_sum); }
void weft_eval_cumprod(struct weft_eval *eval) { run_scan(eval, &weft_fold_prod); }
void weft_eval_cummax(struct weft_eval *eval) { run_scan(eval, &weft_fold_reduce_max); }
void weft_eval_cummin(struct weft_eval *eval) { run_scan(eval, &weft_fold_reduce_min); }

/* --- folds of chunks ----------------------------------------------------------------------------------------- */

struct chunks {
    const struct weft_fold *fold;
    int axis;
    int64_t chunk;
};

static void fold_line(struct weft_eval *eval, const int64_t *place, void *user)
{
    const struct chunks *chunks = user;
    const struct weft_tensor *out = &eval->out[0], *in = &eval->in[0];
    const int64_t n = in->extent[chunks->axis];
    for (int64_t c = 0; c < out->extent[chunks->axis]; c++) {
        union weft_number sum = chunks->fold->neutral(out->dtype);
        const int64_t begin = c * chunks->chunk, end = n - begin < chunks->chunk ? n : begin + chunks->chunk;
        for (int64_t i = begin; i < end; i++) {
            union weft_number x;
            weft_eval_load(in, place[1] + i * in->stride[chunks->axis], 1, 1, &x);
            chunks->fold->add(in->dtype, 1, &x, &sum, 0);
        }
        weft_eval_store(out, place[0] + c * out->stride[chunks->axis], 1, 1, &sum);
    }
}

void weft_eval_fold_chunks(struct weft_eval *eval)
{
    const struct weft_fold *const fold = weft_eval_word_is(eval, WEFT_ATTR_fold, "sum")    ? &weft_fold_sum
                                         : weft_eval_word_is(eval, WEFT_ATTR_fold, "prod") ? &weft_fold_prod
                                         : weft_eval_word_is(eval, WEFT_ATTR_fold, "max")  ? &weft_fold_reduce_max
                                                                                           : &weft_fold_reduce_min;
    struct chunks chunks = {.fold = fold,
                            .axis = (int)weft_eval_int(eval, WEFT_ATTR_axis),
                            .chunk = weft_eval_int(eval, WEFT_ATTR_chunk)};
    weft_eval_lines(eval, chunks.axis, 2, (const struct weft_tensor *const[]){&eval->out[0], &eval->in[0]}, fold_line,
                    &chunks);
}

/* --- arguments of extremes --------------------------------------------------------------------------------- */

struct arg {
    int axis;
    bool largest, last;
    struct weft_tensor out; /* with the axis, of extent 1 */
};

static bool is_nan(int dtype, union weft_number x) { return weft_dtype_is_float(dtype) && isnan(x.real); }

/* A NaN is beyond every number, in both directions. */
static bool beats(const struct arg *arg, int dtype, union weft_number x, union weft_number best)
{
    if (is_nan(dtype, best) || is_nan(dtype, x))
        return is_nan(dtype, x) && (arg->last || !is_nan(dtype, best));
    if (arg->largest ? weft_eval_less(dtype, best, x) : weft_eval_less(dtype, x, best))
        return true;
    return arg->last && !weft_eval_less(dtype, x, best) && !weft_eval_less(dtype, best, x);
}

static void arg_line(struct weft_eval *eval, const int64_t *place, void *user)
{
    const struct arg *arg = user;
    const struct weft_tensor *in = &eval->in[0];
    union weft_number best = {.bits = 0}, x, index = {.integer = 0};
    for (int64_t i = 0; i < in->extent[arg->axis]; i++) {
        weft_eval_load(in, place[1] + i * in->stride[arg->axis], 1, 1, &x);
        if (i > 0 && !beats(arg, in->dtype, x, best))
            continue;
        best = x;
        index.integer = i;
    }
    weft_eval_store(&arg->out, place[0], 1, 1, &index);
}

static void find_extreme(struct weft_eval *eval, bool largest)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    struct arg arg = {.axis = (int)weft_eval_int(eval, WEFT_ATTR_axis),
                      .largest = largest,
                      .last = weft_eval_word_is(eval, WEFT_ATTR_ties, "last"),
                      .out = *out};
    arg.out.rank = in->rank;
    for (int axis = 0, result = 0; axis < in->rank; axis++) {
        arg.out.extent[axis] = axis == arg.axis ? 1 : in->extent[axis];
        arg.out.stride[axis] = axis == arg.axis ? 0 : out->stride[result];
        result += axis != arg.axis || out->rank == in->rank;
    }
    weft_eval_lines(eval, arg.axis, 2, (const struct weft_tensor *const[]){&arg.out, in}, arg_line, &arg);
}

void weft_eval_arg_max(struct weft_eval *eval) { find_extreme(eval, true); }
void weft_eval_arg_min(struct weft_eval *eval) { find_extreme(eval, false); }
