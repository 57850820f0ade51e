/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c: the list of this family, and how results fall into units. */
#include "kernels/plain/plain.h"
#include "kernels/walk.h"

#include <string.h>

int64_t weft_array_elements(const struct weft_array *array)
{
    int64_t n = 1;
    for (int axis = 0; axis < array->rank; axis++)
        n *= array->extent[axis];
    return n;
}

void weft_array_index(const struct weft_array *array, int axes, int64_t i, int64_t *ret)
{
    for (int axis = axes - 1; axis >= 0; axis--) {
        ret[axis] = i % array->extent[axis];
        i /= array->extent[axis];
    }
}

int64_t weft_array_seek(const struct weft_array *array, int64_t i)
{
    int64_t index[WEFT_K_RANK];
    weft_array_index(array, array->rank, i, index);
    return weft_array_place(array, array->rank, index);
}

/* --- units -------------------------------------------------------------------------------------------------------- */

static int64_t units_one(const struct weft_plain *plain) { return 1; }

static int64_t units_elements(const struct weft_plain *plain) { return weft_array_elements(&plain->out[0]); }

/* All axes of the result but the last. */
static int64_t units_rows(const struct weft_plain *plain)
{
    const struct weft_array *out = &plain->out[0];
    const int64_t n = weft_array_elements(out);
    return n == 0 || out->rank == 0 ? n : n / out->extent[out->rank - 1];
}

/* All axes of the operand but the one that attribute 0 names. */
static int64_t units_lines(const struct weft_plain *plain)
{
    int64_t n = 1;
    for (int axis = 0; axis < plain->in[0].rank; axis++)
        n *= axis == plain->attr[0].integer[0] ? 1 : plain->in[0].extent[axis];
    return n;
}

static int64_t units_planes(const struct weft_plain *plain)
{
    return weft_array_elements(&plain->out[0]) == 0 ? 0 : plain->out[0].extent[0] * plain->out[0].extent[1];
}

/* All axes of the result but that of channels, the second. */
static int64_t units_points(const struct weft_plain *plain)
{
    const struct weft_array *out = &plain->out[0];
    const int64_t n = weft_array_elements(out);
    return n == 0 ? 0 : n / out->extent[1];
}

/* All axes of the operand but the one that attribute 0 names and the last. */
static int64_t units_transforms(const struct weft_plain *plain)
{
    int64_t n = 1;
    for (int axis = 0; axis + 1 < plain->in[0].rank; axis++)
        n *= axis == plain->attr[0].integer[0] ? 1 : plain->in[0].extent[axis];
    return n;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

#define weft_plain_scratch_none NULL
#define weft_plain_count_none   NULL
static const struct weft_plain_kernel kernels[] = {
#define PLAIN(op, units, scratch, run, count)                                                                          \
    {#op, "weft_plain_" #op "__ref", units_##units, weft_plain_scratch_##scratch, weft_plain_run_##run,                \
     weft_plain_count_##count},
#include "kernels/plain/plain.def"
};

const struct weft_plain_kernel *weft_plain_find(const char *op, int dtype)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].op, op) == 0)
            return weft_k_bytes(dtype) > 0 ? &kernels[i] : NULL;
    return NULL;
}

const char *weft_plain_name(const struct weft_plain_kernel *kernel) { return kernel->name; }

/* An element costs some ten times what copying it does. */
void weft_plain_prepare(struct weft_plain *plain, int workers)
{
    plain->units = plain->kernel->units(plain);
    plain->scratch = plain->kernel->scratch ? plain->kernel->scratch(plain) : 0;
    int64_t elements = 0;
    for (int i = 0; i < plain->outs; i++)
        elements += weft_array_elements(&plain->out[i]);
    for (int i = 0; i < plain->ins; i++)
        elements += weft_array_elements(&plain->in[i]);
    const int32_t parts = weft_parts_for(elements * 80, workers);
    plain->parts = plain->units < 1 ? 1 : plain->units < parts ? (int32_t)plain->units : parts;
}

void weft_plain_run(const struct weft_plain *plain, const struct weft_plain_data *data, int part, int parts)
{
    int64_t begin, end;
    weft_share(plain->units, 1, part, parts, &begin, &end);
    if (begin < end)
        plain->kernel->run(plain, data, begin, end);
}

void weft_plain_count(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts)
{
    plain->kernel->count(plain, data, counts);
}
