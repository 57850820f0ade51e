/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c: results made from their own places: sizes, random numbers; and operands that are turned round by their
 * places. Random numbers are functions of seed, stream, step and the element's index, see ir/FORMAT.md. */
#include "kernels/philox.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/shared.h"

#include <math.h>

/* Row `unit` of an array: its index, the place it begins at, its elements and their step. */
struct row {
    int64_t index[WEFT_K_RANK], place, n, step;
};

static struct row row_of(const struct weft_array *array, int64_t unit)
{
    struct row row = {.n = 1};
    const int axes = array->rank > 0 ? array->rank - 1 : 0;
    weft_array_index(array, axes, unit, row.index);
    row.place = weft_array_place(array, axes, row.index);
    if (array->rank > 0) {
        row.n = array->extent[axes];
        row.step = array->stride[axes];
    }
    return row;
}

void weft_plain_run_extents(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                            int64_t end)
{
    const struct weft_array *out = &plain->out[0];
    for (int64_t i = 0; i < weft_array_elements(out); i++)
        weft_k_put(out->dtype, data->out[0], weft_array_seek(out, i),
                   (union weft_k_number){.integer = plain->attr[0].integer[i]});
}

/* --- random numbers ----------------------------------------------------------------------------------------------- */

struct source {
    uint64_t seed;
    uint32_t stream, step;
};

/* Attributes 0 and 1 are seed and stream; operand `step`, where there is one, the number of the step. */
static struct source source_of(const struct weft_plain *plain, const struct weft_plain_data *data, int step)
{
    struct source source = {.seed = (uint64_t)plain->attr[0].integer[0], .stream = (uint32_t)plain->attr[1].integer[0]};
    if (plain->ins > step)
        source.step = (uint32_t)weft_k_at(WEFT_K_I64, data->in[step], 0).bits;
    return source;
}

static struct weft_philox block_of(const struct source *source, uint64_t block)
{
    return weft_philox((const uint32_t[]){(uint32_t)block, (uint32_t)(block >> 32), source->stream, source->step},
                       source->seed);
}

/* In [0, 1), with the digits of the dtype. */
static double uniform(const struct source *source, int dtype, uint64_t i)
{
    if (dtype == WEFT_K_F64) {
        const struct weft_philox words = block_of(source, i / 2);
        const uint64_t high = words.word[i % 2 * 2], low = words.word[i % 2 * 2 + 1];
        return (double)((high << 32 | low) >> 11) * 0x1p-53;
    }
    const int bits = dtype == WEFT_K_F16 ? 11 : dtype == WEFT_K_BF16 ? 8 : 24;
    return (double)(block_of(source, i / 4).word[i % 4] >> (32 - bits)) / (double)(1u << bits);
}

static double normal(const struct source *source, uint64_t i)
{
    const struct weft_philox words = block_of(source, i / 4);
    const unsigned pair = i % 4 / 2 * 2;
    const double radius = sqrt(-2 * log(((double)words.word[pair] + 1) * 0x1p-32));
    const double angle = 6.283185307179586476925 * ((double)words.word[pair + 1] * 0x1p-32);
    return radius * (i % 2 ? sin(angle) : cos(angle));
}

/* Attributes 2 and 3 are low and high, or mean and deviation. */
static void fill_random(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end,
                        bool is_normal)
{
    const struct weft_array *out = &plain->out[0];
    const struct source source = source_of(plain, data, 0);
    const double from = plain->attr[2].real, to = plain->attr[3].real, range = is_normal ? to : to - from;
    for (int64_t unit = begin; unit < end; unit++) {
        const struct row row = row_of(out, unit);
        for (int64_t i = 0; i < row.n; i++) {
            const uint64_t element = (uint64_t)(unit * row.n + i);
            const double z = is_normal ? normal(&source, element) : uniform(&source, out->dtype, element);
            weft_k_put(out->dtype, data->out[0], row.place + i * row.step,
                       (union weft_k_number){.real = from + range * z});
        }
    }
}

void weft_plain_run_rand_uniform(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                 int64_t end)
{
    fill_random(plain, data, begin, end, false);
}

void weft_plain_run_rand_normal(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                int64_t end)
{
    fill_random(plain, data, begin, end, true);
}

void weft_plain_run_bernoulli(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                              int64_t end)
{
    const struct weft_array *in = &plain->in[0];
    const struct source source = source_of(plain, data, 1);
    const int dtype = in->dtype == WEFT_K_F64 ? WEFT_K_F64 : WEFT_K_F32;
    for (int64_t unit = begin; unit < end; unit++) {
        const struct row to = row_of(&plain->out[0], unit), from = row_of(in, unit);
        for (int64_t i = 0; i < to.n; i++) {
            const double p = weft_k_at(in->dtype, data->in[0], from.place + i * from.step).real;
            ((uint8_t *)data->out[0])[to.place + i * to.step] =
                uniform(&source, dtype, (uint64_t)(unit * to.n + i)) < p;
        }
    }
}

/* Running sums of exp(x - largest). */
size_t weft_plain_scratch_classes(const struct weft_plain *plain)
{
    return (size_t)plain->in[0].extent[plain->in[0].rank - 1] * sizeof(double);
}

static void add_up(int dtype, const void *x, const struct row *row, double *running)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < row->n; i++) {
        running[i] = weft_k_at(dtype, x, row->place + i * row->step).real;
        largest = running[i] > largest ? running[i] : largest;
    }
    for (int64_t i = 0; i < row->n; i++)
        running[i] = sum += running[i] == largest ? 1 : exp(running[i] - largest);
}

void weft_plain_run_multinomial(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                int64_t end)
{
    const struct source source = source_of(plain, data, 1);
    double *const running = data->scratch;
    for (int64_t unit = begin; unit < end; unit++) {
        const struct row to = row_of(&plain->out[0], unit), from = row_of(&plain->in[0], unit);
        add_up(plain->in[0].dtype, data->in[0], &from, running);
        for (int64_t i = 0; i < to.n; i++)
            ((int64_t *)data->out[0])[to.place + i * to.step] =
                weft_k_draw(running, from.n, uniform(&source, WEFT_K_F64, (uint64_t)(unit * to.n + i)));
    }
}

/* --- by place ----------------------------------------------------------------------------------------------------- */

/* Attributes: the axis that is turned, and the one that lengths are for. */
void weft_plain_run_reverse_sequence(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                     int64_t end)
{
    const struct weft_array *in = &plain->in[0], *length = &plain->in[1], *out = &plain->out[0];
    const int axis = (int)plain->attr[0].integer[0], batch = (int)plain->attr[1].integer[0], last = out->rank - 1;
    const int64_t bytes = weft_k_bytes(out->dtype);
    for (int64_t unit = begin; unit < end; unit++) {
        struct row row = row_of(out, unit);
        for (int64_t i = 0; i < row.n; i++) {
            row.index[last] = i;
            const int64_t turned =
                weft_k_index(length->dtype, data->in[1], row.index[batch] * length->stride[0]);
            const int64_t most = turned < in->extent[axis] ? turned : in->extent[axis], at = row.index[axis];
            int64_t from = weft_array_place(in, in->rank, row.index);
            if (at < most)
                from += (most - 1 - 2 * at) * in->stride[axis];
            weft_k_move(bytes, data->out[0], row.place + i * row.step, data->in[0], from);
        }
    }
}
