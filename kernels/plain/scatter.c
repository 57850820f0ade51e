/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c: scatters that combine what they bring with what is there, of all types; replacing, and combining
 * f32, are in gather/.
 *
 * Units are elements of the result. Each part copies its own from the operand, then goes through all updates in the
 * order of their indices and applies those that fall upon its elements, each rounded to the type: duplicates have one
 * result, however many parts there are. An update whose index lies outside is dropped. */
#include "kernels/plain/plain.h"

static double combined_real(int how, double x, double y)
{
    if (how == WEFT_COMBINE_ADD)
        return x + y;
    if (how == WEFT_COMBINE_MULTIPLY)
        return x * y;
    if (x != x || y != y)
        return x != x ? x : y;
    return (how == WEFT_COMBINE_LEAST) == (y < x) ? y : x;
}

static uint64_t combined_integer(int how, int dtype, union weft_k_number x, union weft_k_number y)
{
    if (how == WEFT_COMBINE_ADD)
        return x.bits + y.bits;
    if (how == WEFT_COMBINE_MULTIPLY)
        return x.bits * y.bits;
    return (how == WEFT_COMBINE_LEAST) == weft_k_less(dtype, y, x) ? y.bits : x.bits;
}

struct scatter {
    const struct weft_plain *plain;
    const struct weft_plain_data *data;
    int how;            /* WEFT_COMBINE_* */
    int64_t begin, end; /* of the elements of the result */
};

static void copy_own(const struct scatter *s)
{
    const struct weft_array *out = &s->plain->out[0], *in = &s->plain->in[0];
    const int64_t bytes = weft_k_bytes(out->dtype);
    for (int64_t i = s->begin; i < s->end; i++)
        weft_k_move(bytes, s->data->out[0], weft_array_seek(out, i), s->data->in[0], weft_array_seek(in, i));
}

/* Brings the update at a place to the element of an index, if it is one of ours. */
static void combine(const struct scatter *s, const int64_t *index, int64_t from)
{
    const struct weft_array *out = &s->plain->out[0];
    int64_t element = 0;
    for (int axis = 0; axis < out->rank; axis++)
        element = element * out->extent[axis] + index[axis];
    if (element < s->begin || element >= s->end)
        return;
    const int64_t to = weft_array_place(out, out->rank, index);
    if (s->how == WEFT_COMBINE_REPLACE) {
        weft_k_move(weft_k_bytes(out->dtype), s->data->out[0], to, s->data->in[2], from);
        return;
    }
    union weft_k_number x = weft_k_at(out->dtype, s->data->out[0], to);
    const union weft_k_number y = weft_k_at(out->dtype, s->data->in[2], from);
    if (weft_k_is_float(out->dtype))
        x.real = combined_real(s->how, x.real, y.real);
    else
        x.bits = combined_integer(s->how, out->dtype, x, y);
    weft_k_put(out->dtype, s->data->out[0], to, x);
}

/* A number of an index, counted from the front; false if it lies outside. */
static bool read_index(const struct scatter *s, int64_t place, int64_t extent, int64_t *ret)
{
    *ret = weft_k_index(s->plain->in[1].dtype, s->data->in[1], place);
    *ret += *ret < 0 ? extent : 0;
    return *ret >= 0 && *ret < extent;
}

void weft_plain_run_scatter_elements(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                     int64_t end)
{
    const struct weft_array *indices = &plain->in[1], *update = &plain->in[2], *out = &plain->out[0];
    const struct scatter s = {plain, data, (int)plain->attr[1].integer[0], begin, end};
    const int axis = (int)plain->attr[0].integer[0];
    const int64_t n = weft_array_elements(indices);
    copy_own(&s);
    for (int64_t i = 0; i < n; i++) {
        int64_t index[WEFT_K_RANK];
        weft_array_index(indices, indices->rank, i, index);
        const int64_t from = weft_array_place(update, update->rank, index);
        const int64_t place = weft_array_place(indices, indices->rank, index);
        bool inside = read_index(&s, place, out->extent[axis], &index[axis]);
        for (int k = 0; k < out->rank; k++)
            inside = inside && index[k] < out->extent[k];
        if (inside)
            combine(&s, index, from);
    }
}

void weft_plain_run_scatter_nd(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                               int64_t end)
{
    const struct weft_array *indices = &plain->in[1], *update = &plain->in[2], *out = &plain->out[0];
    const struct scatter s = {plain, data, (int)plain->attr[0].integer[0], begin, end};
    const int tuples = indices->rank - 1, numbers = (int)indices->extent[tuples];
    const int64_t n = weft_array_elements(update);
    copy_own(&s);
    for (int64_t i = 0; i < n; i++) {
        int64_t at[WEFT_K_RANK], index[WEFT_K_RANK];
        weft_array_index(update, update->rank, i, at);
        const int64_t place = weft_array_place(indices, tuples, at);
        bool inside = true;
        for (int k = 0; k < numbers; k++)
            inside &= read_index(&s, place + k * indices->stride[tuples], out->extent[k], &index[k]);
        for (int k = numbers; k < out->rank; k++)
            index[k] = at[tuples + k - numbers];
        if (inside)
            combine(&s, index, weft_array_place(update, update->rank, at));
    }
}
