/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: reductions over axes, those that need two passes over their terms, softmax and batch normalisation.
 *
 * Terms are added in row-major order of the operand, in double or in wrapping 64-bit integers. Over nothing, a sum is
 * 0, a product 1, a mean NaN (0 for integers), an extreme the least or largest value of the type. A NaN makes an
 * extreme NaN. */
#include "eval/rule.h"
#include "eval/types.h"

#include <math.h>

/* --- reductions -------------------------------------------------------------------------------------------- */

/* The ends of an integer type, as numbers of it. */
static uint64_t least_of(int dtype)
{
    return weft_dtype_is_signed(dtype) ? (uint64_t)(INT64_MIN >> (64 - weft_dtype_bits(dtype))) : 0;
}
static uint64_t largest_of(int dtype)
{
    return (UINT64_MAX >> (64 - weft_dtype_bits(dtype))) >> weft_dtype_is_signed(dtype);
}

/* What each row of fold.def is made of: expressions as functions, a loop over a strip, and what others call. */
#define REAL_FN(op, of_reals) \
    static double real_##op(double sum, double x) { return of_reals; }
#define WHOLE_FN(op, of_wholes) \
    static uint64_t whole_##op(int dtype, union weft_number sum, union weft_number x) { return of_wholes; }
#define FOR_EACH(to, value) \
    for (int64_t i = 0; i < n; i++, sum += step) \
        sum->to = value
#define FOLD(op, linkage, neutral, loops) \
    static union weft_number neutral_##op(int dtype) { return neutral; } \
    static void add_##op(int dtype, int64_t n, const union weft_number *x, union weft_number *sum, int64_t step) \
    { loops; } \
    linkage const struct weft_fold weft_fold_##op = {neutral_##op, add_##op};

#define REDUCE(op, neutral_real, of_reals, neutral_whole, of_wholes) \
    WEFT_ROW_TAKES(op, reduce) REAL_FN(op, of_reals) WHOLE_FN(op, of_wholes) \
    FOLD(op, , weft_dtype_is_float(dtype) ? (union weft_number){.real = neutral_real} \
                                          : (union weft_number){.bits = neutral_whole}, \
         if (weft_dtype_is_float(dtype)) FOR_EACH(real, real_##op(sum->real, x[i].real)); \
         else FOR_EACH(bits, whole_##op(dtype, *sum, x[i])))
#define REDUCE_LOGIC(op, neutral_whole, of_wholes) \
    WEFT_ROW_TAKES(op, reduce_logic) WHOLE_FN(op, of_wholes) \
    FOLD(op, static, (union weft_number){.bits = neutral_whole}, FOR_EACH(bits, whole_##op(dtype, *sum, x[i])))
#include "eval/fold.def"

/* A tensor without data over packed results, with the extents of the operand: reduced axes have stride 0. */
static struct weft_tensor target_of(const struct weft_eval *eval, const struct weft_tensor *in)
{
    const struct weft_attr *axes = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_axes);
    struct weft_tensor target = *in;
    bool reduced[WEFT_MAX_RANK] = {false};
    for (unsigned i = 0; i < axes->count; i++)
        reduced[weft_dim_value(axes->integers[i])] = true;
    int64_t stride = 1;
    for (int axis = in->rank - 1; axis >= 0; axis--) {
        target.stride[axis] = reduced[axis] ? 0 : stride;
        stride *= reduced[axis] ? 1 : in->extent[axis];
    }
    return target;
}

static void divide_all(int dtype, int64_t n, union weft_number *sum, int64_t terms)
{
    for (int64_t i = 0; i < n; i++) {
        if (weft_dtype_is_float(dtype))
            sum[i].real /= (double)terms;
        else if (weft_dtype_is_signed(dtype))
            sum[i].integer = terms ? sum[i].integer / terms : 0;
        else
            sum[i].bits = terms ? sum[i].bits / (uint64_t)terms : 0;
    }
}

static void reduce(struct weft_eval *eval, const struct weft_fold *fold, bool is_mean)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const int64_t results = weft_tensor_count(out);
    union weft_number *sum = weft_eval_scratch(eval, results, sizeof *sum);
    if (!sum)
        return;
    for (int64_t i = 0; i < results; i++)
        sum[i] = fold->neutral(out->dtype);
    const struct weft_tensor target = target_of(eval, in);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){in, &target}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[WEFT_EVAL_STRIP], *to = sum + walk.place[1] + i * walk.step[1];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            weft_eval_load(in, walk.place[0] + i * walk.step[0], walk.step[0], n, x);
            fold->add(in->dtype, n, x, to, walk.step[1]);
        }
    if (is_mean && results > 0)
        divide_all(in->dtype, results, sum, weft_tensor_count(in) / results);
    weft_eval_store_all(out, sum);
    weft_eval_drop_numbers(eval, sum, results);
}

#define REDUCE(op, neutral_real, of_reals, neutral_whole, of_wholes) \
    void weft_eval_##op(struct weft_eval *eval) { reduce(eval, &weft_fold_##op, false); }
#define REDUCE_LOGIC(op, neutral_whole, of_wholes) \
    void weft_eval_##op(struct weft_eval *eval) { reduce(eval, &weft_fold_##op, false); }
#include "eval/fold.def"

void weft_eval_mean(struct weft_eval *eval) { reduce(eval, &weft_fold_sum, true); }

/* --- reductions in two passes ------------------------------------------------------------------------------ */

/* One term: its distance from `centre`, squared, or its exponential below the largest. */
static double moment_term(bool logarithm, double x, double centre)
{
    if (!logarithm)
        return (x - centre) * (x - centre);
    return x == centre ? 1 : exp(x - centre); /* where the largest is infinite too */
}

/* Adds to sum[] what the second pass makes of the terms, or to centre[] (sum NULL) what the first pass looks for. */
static void moment_pass(const struct weft_eval *eval, bool logarithm, double *centre, double *sum)
{
    const struct weft_tensor *in = &eval->in[0], target = target_of(eval, in);
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){in, &target}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            union weft_number x;
            const int64_t to = walk.place[1] + i * walk.step[1];
            weft_eval_load(in, walk.place[0] + i * walk.step[0], walk.step[0], 1, &x);
            if (sum)
                sum[to] += moment_term(logarithm, x.real, centre[to]);
            else if (logarithm)
                centre[to] = isnan(centre[to]) || centre[to] > x.real ? centre[to] : x.real;
            else
                centre[to] += x.real;
        }
}

/* log_sum_exp: log Σ exp(x - m) + m, with m the largest. variance: Σ (x - mean)² / (count - correction). */
static void moment(struct weft_eval *eval, bool logarithm)
{
    const struct weft_tensor *out = &eval->out[0];
    const int64_t results = weft_tensor_count(out);
    const int64_t terms = results > 0 ? weft_tensor_count(&eval->in[0]) / results : 0;
    double *centre = weft_eval_scratch(eval, results, sizeof *centre);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    double *sum = weft_eval_scratch(eval, results, sizeof *sum);
    if (centre && sum && result) {
        for (int64_t i = 0; i < results; i++) {
            centre[i] = logarithm ? -INFINITY : 0;
            sum[i] = 0;
        }
        moment_pass(eval, logarithm, centre, NULL);
        for (int64_t i = 0; i < results && !logarithm; i++)
            centre[i] /= (double)terms;
        moment_pass(eval, logarithm, centre, sum);
        const double divisor = logarithm ? 0 : (double)(terms - weft_eval_int(eval, WEFT_ATTR_correction));
        for (int64_t i = 0; i < results; i++)
            result[i].real = logarithm ? log(sum[i]) + centre[i] : sum[i] / (divisor > 0 ? divisor : 0);
        weft_eval_store_all(out, result);
    }
    weft_eval_drop(eval, sum, results, sizeof *sum);
    weft_eval_drop(eval, result, results, sizeof *result);
    weft_eval_drop(eval, centre, results, sizeof *centre);
}

void weft_eval_log_sum_exp(struct weft_eval *eval) { moment(eval, true); }
void weft_eval_variance(struct weft_eval *eval) { moment(eval, false); }

/* --- softmax ----------------------------------------------------------------------------------------------- */

/* exp(x - max) / sum, or x - max - log(sum): the maximum keeps the exponentials in range. */
static void soften_by(union weft_number *x, int64_t n, bool logarithm)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = isnan(largest) || largest > x[i].real ? largest : x[i].real;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i].real - largest);
    for (int64_t i = 0; i < n; i++)
        x[i].real = logarithm ? x[i].real - largest - log(sum) : exp(x[i].real - largest) / sum;
}

static void soften(union weft_number *x, int64_t n) { soften_by(x, n, false); }
static void soften_log(union weft_number *x, int64_t n) { soften_by(x, n, true); }

/* 1 at the first of the largest, 0 elsewhere; a NaN is larger than all. */
static void harden(union weft_number *x, int64_t n)
{
    int64_t first = 0;
    for (int64_t i = 1; i < n; i++)
        if (!isnan(x[first].real) && (x[i].real > x[first].real || isnan(x[i].real)))
            first = i;
    for (int64_t i = 0; i < n; i++)
        x[i].real = i == first;
}

static void along_axis(struct weft_eval *eval, void (*fn)(union weft_number *row, int64_t n))
{
    const int64_t axis = weft_eval_int(eval, WEFT_ATTR_axis);
    struct weft_tensor in = eval->in[0], out = eval->out[0];
    const int64_t n = in.extent[axis];
    union weft_number *row = weft_eval_scratch(eval, n, sizeof *row);
    if (!row)
        return;
    in.extent[axis] = out.extent[axis] = n > 0;
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){&out, &in}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            weft_eval_load(&in, walk.place[1] + i * walk.step[1], in.stride[axis], n, row);
            fn(row, n);
            weft_eval_store(&out, walk.place[0] + i * walk.step[0], out.stride[axis], n, row);
        }
    weft_eval_drop_numbers(eval, row, n);
}

void weft_eval_softmax(struct weft_eval *eval) { along_axis(eval, soften); }
void weft_eval_log_softmax(struct weft_eval *eval) { along_axis(eval, soften_log); }
void weft_eval_hardmax(struct weft_eval *eval) { along_axis(eval, harden); }

/* --- normalisation ----------------------------------------------------------------------------------------- */

/* (x - mean) / sqrt(variance + epsilon) · scale + bias, with operands x, scale, bias, mean, variance. */
void weft_eval_batch_norm(struct weft_eval *eval)
{
    const double epsilon = weft_attr_real(eval->graph, eval->node, WEFT_ATTR_epsilon);
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    struct weft_tensor spread[4]; /* the channel's numbers, over all elements */
    const struct weft_tensor *tensor[WEFT_WALK_TENSORS] = {out, in};
    for (int t = 0; t < 4; t++) {
        spread[t] = *in;
        spread[t].data = eval->in[t + 1].data;
        for (int axis = 0; axis < in->rank; axis++)
            spread[t].stride[axis] = axis == 1 ? eval->in[t + 1].stride[0] : 0;
        tensor[t + 2] = &spread[t];
    }
    struct weft_walk walk;
    for (weft_walk_open(&walk, 6, tensor); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[5][WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            for (int t = 0; t < 5; t++)
                weft_eval_load(tensor[t + 1], walk.place[t + 1] + i * walk.step[t + 1], walk.step[t + 1], n, x[t]);
            for (int64_t j = 0; j < n; j++)
                x[0][j].real =
                    (x[0][j].real - x[3][j].real) / sqrt(x[4][j].real + epsilon) * x[1][j].real + x[2][j].real;
            weft_eval_store(out, walk.place[0] + i * walk.step[0], walk.step[0], n, x[0]);
        }
}
