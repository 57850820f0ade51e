/* SPDX-License-Identifier: Apache-2.0 */
/* sort.c: elements in order along an axis, all of them or the first k.
 *
 * A merge sort of indices, so equal elements keep their order in both directions. A NaN is larger than every number,
 * and equal to other NaNs. */
#include "eval/rule.h"
#include "kernels/plain/shared.h"

#include <math.h>
#include <string.h>

static int compare_numbers(int dtype, union weft_number a, union weft_number b)
{
    if (weft_dtype_is_float(dtype) && (isnan(a.real) || isnan(b.real)))
        return !!isnan(a.real) - !!isnan(b.real);
    return weft_eval_less(dtype, b, a) - weft_eval_less(dtype, a, b);
}

int weft_eval_compare_rows(const struct weft_rows *rows, int64_t a, int64_t b)
{
    int sign = 0;
    for (int64_t i = 0; i < rows->width && sign == 0; i++)
        sign = compare_numbers(rows->dtype, rows->number[a * rows->width + i], rows->number[b * rows->width + i]);
    return sign;
}

static int compare_rows(const void *rows, int64_t a, int64_t b) { return weft_eval_compare_rows(rows, a, b); }

void weft_eval_order(const struct weft_rows *rows, bool descending, int64_t *order, int64_t *scratch)
{
    weft_k_order(rows->n, compare_rows, rows, descending, order, scratch);
}

struct sort {
    int axis;
    int64_t n, k;
    bool descending, keep; /* keep: what is chosen stays in the order of its indices */
    union weft_number *number;
    int64_t *order, *scratch;
};

/* The chosen indices, rising: those of the first k in order are marked, then collected. */
static void by_index(struct sort *sort)
{
    memset(sort->scratch, 0, (size_t)sort->n * sizeof *sort->scratch);
    for (int64_t i = 0; i < sort->k; i++)
        sort->scratch[sort->order[i]] = 1;
    for (int64_t i = 0, to = 0; i < sort->n; i++)
        if (sort->scratch[i])
            sort->order[to++] = i;
}

static void sort_line(struct weft_eval *eval, const int64_t *place, void *user)
{
    struct sort *sort = user;
    const struct weft_tensor *values = &eval->out[0], *indices = &eval->out[1], *in = &eval->in[0];
    weft_eval_load(in, place[2], in->stride[sort->axis], sort->n, sort->number);
    const struct weft_rows rows = {.dtype = in->dtype, .n = sort->n, .width = 1, .number = sort->number};
    weft_eval_order(&rows, sort->descending, sort->order, sort->scratch);
    if (sort->keep)
        by_index(sort);
    for (int64_t i = 0; i < sort->k; i++) {
        const union weft_number index = {.integer = sort->order[i]};
        weft_eval_store(values, place[0] + i * values->stride[sort->axis], 1, 1, &sort->number[sort->order[i]]);
        weft_eval_store(indices, place[1] + i * indices->stride[sort->axis], 1, 1, &index);
    }
}

static void sort_lines(struct weft_eval *eval, bool all)
{
    struct sort sort = {.axis = (int)weft_eval_int(eval, WEFT_ATTR_axis),
                        .descending = weft_eval_int(eval, all ? WEFT_ATTR_descending : WEFT_ATTR_largest) != 0,
                        .keep = !all && !weft_eval_int(eval, WEFT_ATTR_sorted)};
    sort.n = eval->in[0].extent[sort.axis];
    sort.k = eval->out[0].extent[sort.axis] < sort.n ? eval->out[0].extent[sort.axis] : sort.n;
    sort.number = weft_eval_scratch(eval, sort.n, sizeof *sort.number);
    sort.order = weft_eval_scratch(eval, sort.n, sizeof *sort.order);
    sort.scratch = weft_eval_scratch(eval, sort.n, sizeof *sort.scratch);
    if (sort.number && sort.order && sort.scratch)
        weft_eval_lines(eval, sort.axis, 3,
                        (const struct weft_tensor *const[]){&eval->out[0], &eval->out[1], &eval->in[0]}, sort_line,
                        &sort);
    weft_eval_drop(eval, sort.scratch, sort.n, sizeof *sort.scratch);
    weft_eval_drop(eval, sort.order, sort.n, sizeof *sort.order);
    weft_eval_drop(eval, sort.number, sort.n, sizeof *sort.number);
}

void weft_eval_sort(struct weft_eval *eval) { sort_lines(eval, true); }
void weft_eval_top_k(struct weft_eval *eval) { sort_lines(eval, false); }

/* --- places in an order ------------------------------------------------------------------------------------------- */

struct search {
    const struct weft_tensor *line, *x, *out;
    int axis;
    bool right;
};

/* By halves, so that the result is the same for every kernel even where the line is in no order. */
static void search_line(struct weft_eval *eval, const int64_t *place, void *user)
{
    const struct search *s = user;
    for (int64_t i = 0; i < s->x->extent[s->axis]; i++) {
        union weft_number x, middle, found;
        int64_t low = 0, high = s->line->extent[s->axis];
        weft_eval_load(s->x, place[1] + i * s->x->stride[s->axis], 0, 1, &x);
        while (low < high) {
            const int64_t half = low + (high - low) / 2;
            weft_eval_load(s->line, place[0] + half * s->line->stride[s->axis], 0, 1, &middle);
            const int order = compare_numbers(s->line->dtype, middle, x);
            if (order < 0 || (order == 0 && s->right))
                low = half + 1;
            else
                high = half;
        }
        found.integer = low;
        weft_eval_store(s->out, place[2] + i * s->out->stride[s->axis], 0, 1, &found);
    }
}

void weft_eval_search_sorted(struct weft_eval *eval)
{
    struct search s = {.line = &eval->in[0],
                       .x = &eval->in[1],
                       .out = &eval->out[0],
                       .axis = eval->in[0].rank - 1,
                       .right = weft_eval_word_is(eval, WEFT_ATTR_form, "right")};
    weft_eval_lines(eval, s.axis, 3, (const struct weft_tensor *const[]){s.line, s.x, s.out}, search_line, &s);
}
