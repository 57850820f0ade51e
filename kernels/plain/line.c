/* SPDX-License-Identifier: Apache-2.0 */
/* line.c: orders along one axis, for the types that the family along/ leaves out. */
#include "kernels/plain/plain.h"
#include "kernels/plain/shared.h"

#include <string.h>

/* The place of line `unit` in an array that has the axis. */
static void line_of(const struct weft_plain *plain, const struct weft_array *array, int64_t unit, int64_t *ret)
{
    const struct weft_array *in = &plain->in[0];
    const int axis = (int)plain->attr[0].integer[0];
    struct weft_array lines = *in;
    int64_t index[WEFT_K_RANK];
    lines.extent[axis] = 1;
    weft_array_index(&lines, in->rank, unit, index);
    *ret = 0;
    for (int i = 0; i < in->rank; i++)
        *ret += index[i] * array->stride[i];
}

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
