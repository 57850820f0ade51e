/* SPDX-License-Identifier: Apache-2.0 */
/* line.c: scans, places of extremes and orders along one axis, for the types that the family along/ leaves out. */
#include "kernels/plain/plain.h"
#include "kernels/plain/shared.h"

#include <math.h>
#include <string.h>

/* The place of line `unit` in an array that has the axis (or, of an arg op, perhaps not). */
static void line_of(const struct weft_plain *plain, const struct weft_array *array, int64_t unit, int64_t *ret)
{
    const struct weft_array *in = &plain->in[0];
    const int axis = (int)plain->attr[0].integer[0];
    struct weft_array lines = *in;
    int64_t index[WEFT_K_RANK];
    lines.extent[axis] = 1;
    weft_array_index(&lines, in->rank, unit, index);
    *ret = 0;
    for (int i = 0, own = 0; i < in->rank; i++) {
        *ret += index[i] * array->stride[own];
        own += i != axis || array->rank == in->rank;
    }
}

/* --- scans -------------------------------------------------------------------------------------------------------- */

enum scan { SUM, PRODUCT, LARGEST, LEAST };

/* The least or the largest number of a type. */
static union weft_k_number end_of(int dtype, bool largest)
{
    const int64_t bits = 8 * weft_k_bytes(dtype);
    if (weft_k_is_float(dtype))
        return (union weft_k_number){.real = largest ? INFINITY : -INFINITY};
    if (dtype == WEFT_K_BOOL)
        return (union weft_k_number){.integer = largest};
    if (!weft_k_is_signed(dtype))
        return (union weft_k_number){.bits = largest ? ~(uint64_t)0 >> (64 - bits) : 0};
    const int64_t most = (int64_t)(~(uint64_t)0 >> (65 - bits));
    return (union weft_k_number){.integer = largest ? most : -most - 1};
}

static union weft_k_number neutral(enum scan op, int dtype)
{
    if (op == LARGEST || op == LEAST)
        return end_of(dtype, op == LEAST);
    const int first = op == PRODUCT;
    return weft_k_is_float(dtype) ? (union weft_k_number){.real = first} : (union weft_k_number){.integer = first};
}

static union weft_k_number fold(enum scan op, int dtype, union weft_k_number sum, union weft_k_number x)
{
    if (op == LARGEST || op == LEAST) {
        const bool keeps = op == LARGEST ? weft_k_less(dtype, x, sum) : weft_k_less(dtype, sum, x);
        return weft_k_is_nan(dtype, sum) || keeps ? sum : x;
    }
    if (weft_k_is_float(dtype))
        return (union weft_k_number){.real = op == SUM ? sum.real + x.real : sum.real * x.real};
    return (union weft_k_number){.bits = op == SUM ? sum.bits + x.bits : sum.bits * x.bits};
}

static void scan(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end,
                 enum scan op)
{
    const struct weft_array *in = &plain->in[0], *out = &plain->out[0];
    const int axis = (int)plain->attr[0].integer[0];
    const bool exclusive = plain->attr[1].integer[0] != 0, reverse = plain->attr[2].integer[0] != 0;
    const int64_t n = in->extent[axis];
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t from, to;
        line_of(plain, in, unit, &from);
        line_of(plain, out, unit, &to);
        union weft_k_number sum = neutral(op, in->dtype);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = reverse ? n - 1 - i : i;
            const union weft_k_number before = sum;
            sum = fold(op, in->dtype, sum, weft_k_at(in->dtype, data->in[0], from + at * in->stride[axis]));
            weft_k_put(out->dtype, data->out[0], to + at * out->stride[axis], exclusive ? before : sum);
        }
    }
}

#define SCAN(name, op)                                                                                                 \
    void weft_plain_run_##name(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,      \
                               int64_t end)                                                                            \
    {                                                                                                                  \
        scan(plain, data, begin, end, op);                                                                             \
    }
SCAN(cumsum, SUM)
SCAN(cumprod, PRODUCT)
SCAN(cummax, LARGEST)
SCAN(cummin, LEAST)

/* --- places of extremes ------------------------------------------------------------------------------------------- */

/* A NaN is beyond every number, in both directions. */
static bool beats(int dtype, bool largest, bool last, union weft_k_number x, union weft_k_number best)
{
    if (weft_k_is_nan(dtype, x) || weft_k_is_nan(dtype, best))
        return weft_k_is_nan(dtype, x) && (last || !weft_k_is_nan(dtype, best));
    if (largest ? weft_k_less(dtype, best, x) : weft_k_less(dtype, x, best))
        return true;
    return last && !weft_k_less(dtype, x, best) && !weft_k_less(dtype, best, x);
}

static void arg(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end,
                bool largest)
{
    const struct weft_array *in = &plain->in[0];
    const int axis = (int)plain->attr[0].integer[0];
    const bool last = plain->attr[2].integer[0] == 1;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t from, to, index = 0;
        line_of(plain, in, unit, &from);
        line_of(plain, &plain->out[0], unit, &to);
        union weft_k_number best = {.bits = 0};
        for (int64_t i = 0; i < in->extent[axis]; i++) {
            const union weft_k_number x = weft_k_at(in->dtype, data->in[0], from + i * in->stride[axis]);
            if (i > 0 && !beats(in->dtype, largest, last, x, best))
                continue;
            best = x;
            index = i;
        }
        ((int64_t *)data->out[0])[to] = index;
    }
}

void weft_plain_run_arg_max(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                            int64_t end)
{
    arg(plain, data, begin, end, true);
}

void weft_plain_run_arg_min(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                            int64_t end)
{
    arg(plain, data, begin, end, false);
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

static int compare_numbers(int dtype, union weft_k_number a, union weft_k_number b)
{
    if (weft_k_is_nan(dtype, a) || weft_k_is_nan(dtype, b))
        return weft_k_is_nan(dtype, a) - weft_k_is_nan(dtype, b);
    return weft_k_less(dtype, b, a) - weft_k_less(dtype, a, b);
}

int weft_plain_compare(const struct weft_plain_rows *rows, int64_t a, int64_t b)
{
    int sign = 0;
    for (int64_t i = 0; i < rows->width && sign == 0; i++)
        sign = compare_numbers(rows->dtype, rows->number[a * rows->width + i], rows->number[b * rows->width + i]);
    return sign;
}

static int compare_rows(const void *rows, int64_t a, int64_t b) { return weft_plain_compare(rows, a, b); }

void weft_plain_order(const struct weft_plain_rows *rows, bool descending, int64_t *order, int64_t *scratch)
{
    weft_k_order(rows->n, compare_rows, rows, descending, order, scratch);
}

size_t weft_plain_scratch_order(const struct weft_plain *plain)
{
    return 3 * (size_t)plain->in[0].extent[plain->attr[0].integer[0]] * sizeof(int64_t);
}

/* The chosen indices, rising. */
static void by_index(int64_t *order, int64_t *chosen, int64_t n, int64_t k)
{
    memset(chosen, 0, (size_t)n * sizeof *chosen);
    for (int64_t i = 0; i < k; i++)
        chosen[order[i]] = 1;
    for (int64_t i = 0, to = 0; i < n; i++)
        if (chosen[i])
            order[to++] = i;
}

/* Results: elements and their indices. `keep`: what is chosen stays in the order of its indices. */
static void order_lines(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end,
                        bool descending, bool keep)
{
    const struct weft_array *in = &plain->in[0], *values = &plain->out[0], *indices = &plain->out[1];
    const int axis = (int)plain->attr[0].integer[0];
    const int64_t n = in->extent[axis], bytes = weft_k_bytes(in->dtype);
    const int64_t k = values->extent[axis] < n ? values->extent[axis] : n;
    union weft_k_number *const number = data->scratch;
    int64_t *const order = (int64_t *)data->scratch + n, *const scratch = order + n;
    const struct weft_plain_rows rows = {.dtype = in->dtype, .n = n, .width = 1, .number = number};
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t from, to, index;
        line_of(plain, in, unit, &from);
        line_of(plain, values, unit, &to);
        line_of(plain, indices, unit, &index);
        weft_k_load(in->dtype, data->in[0], from, in->stride[axis], n, number);
        weft_plain_order(&rows, descending, order, scratch);
        if (keep)
            by_index(order, scratch, n, k);
        for (int64_t i = 0; i < k; i++) {
            weft_k_move(bytes, data->out[0], to + i * values->stride[axis], data->in[0],
                        from + order[i] * in->stride[axis]);
            ((int64_t *)data->out[1])[index + i * indices->stride[axis]] = order[i];
        }
    }
}

void weft_plain_run_sort(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end)
{
    order_lines(plain, data, begin, end, plain->attr[1].integer[0] != 0, false);
}

/* Attributes: axis, k, largest, sorted. */
void weft_plain_run_top_k(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                          int64_t end)
{
    order_lines(plain, data, begin, end, plain->attr[2].integer[0] != 0, plain->attr[3].integer[0] == 0);
}
