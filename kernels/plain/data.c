/* SPDX-License-Identifier: Apache-2.0 */
/* data.c: ops whose results have as many elements as the data says. Each finds its elements twice: once to count them,
 * before its results have extents, and once to write them. */
#include "kernels/plain/plain.h"
#include "kernels/plain/shared.h"

#include <string.h>

static bool is_zero(int dtype, union weft_k_number x) { return weft_k_is_float(dtype) ? x.real == 0 : x.bits == 0; }

/* --- nonzero ------------------------------------------------------------------------------------------------------ */

/* With `to`: writes the index of each element that is not 0 as a column of the result. */
static int64_t find(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *to)
{
    const struct weft_array *in = &plain->in[0], *out = &plain->out[0];
    const int64_t n = weft_array_elements(in);
    int64_t found = 0, index[WEFT_K_RANK];
    for (int64_t i = 0; i < n; i++) {
        weft_array_index(in, in->rank, i, index);
        if (is_zero(in->dtype, weft_k_at(in->dtype, data->in[0], weft_array_place(in, in->rank, index))))
            continue;
        for (int axis = 0; axis < in->rank && to; axis++)
            to[axis * out->stride[0] + found * out->stride[1]] = index[axis];
        found++;
    }
    return found;
}

void weft_plain_count_nonzero(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts)
{
    counts[0] = find(plain, data, NULL);
}

void weft_plain_run_nonzero(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                            int64_t end)
{
    find(plain, data, data->out[0]);
}

/* --- compress ----------------------------------------------------------------------------------------------------- */

/* Copies slice `from` along an axis to slice `to`, or with no axis an element of the flattened operand. */
static void copy_slice(const struct weft_array *out, void *target, int64_t to, const struct weft_array *in,
                       const void *source, int64_t from, int axis)
{
    const int64_t bytes = weft_k_bytes(in->dtype);
    if (axis < 0) {
        weft_k_move(bytes, target, to * out->stride[0], source, weft_array_seek(in, from));
        return;
    }
    struct weft_array slice = *in;
    int64_t index[WEFT_K_RANK];
    slice.extent[axis] = 1;
    const int64_t n = weft_array_elements(&slice);
    for (int64_t i = 0; i < n; i++) {
        weft_array_index(&slice, slice.rank, i, index);
        weft_k_move(bytes, target, weft_array_place(out, out->rank, index) + to * out->stride[axis], source,
                    weft_array_place(in, in->rank, index) + from * in->stride[axis]);
    }
}

static int64_t choose(const struct weft_plain *plain, const struct weft_plain_data *data, void *target)
{
    const struct weft_array *in = &plain->in[0], *condition = &plain->in[1];
    const int axis = plain->attr[0].given ? (int)plain->attr[0].integer[0] : -1;
    const int64_t there = axis >= 0 ? in->extent[axis] : weft_array_elements(in);
    const int64_t n = there < condition->extent[0] ? there : condition->extent[0];
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!((const uint8_t *)data->in[1])[i * condition->stride[0]])
            continue;
        if (target)
            copy_slice(&plain->out[0], target, found, in, data->in[0], i, axis);
        found++;
    }
    return found;
}

void weft_plain_count_compress(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts)
{
    counts[0] = choose(plain, data, NULL);
}

void weft_plain_run_compress(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                             int64_t end)
{
    choose(plain, data, data->out[0]);
}

/* --- unique ------------------------------------------------------------------------------------------------------- */

/* Rows, slices along an axis or single elements, in groups of equal ones, numbered in their order or in the order of
 * their first rows. */
struct groups {
    struct weft_plain_rows rows;
    int axis;
    int64_t found, *order, *scratch, *group, *first, *count; /* group by row; first and count by group */
};

size_t weft_plain_scratch_rows(const struct weft_plain *plain)
{
    const int64_t n = weft_array_elements(&plain->in[0]);
    const int64_t rows = plain->attr[0].given ? plain->in[0].extent[plain->attr[0].integer[0]] : n;
    return (size_t)(n + 5 * rows) * sizeof(int64_t);
}

static void read_rows(const struct weft_plain *plain, const struct weft_plain_data *data, struct groups *g)
{
    const struct weft_array *in = &plain->in[0];
    const int64_t elements = weft_array_elements(in);
    union weft_k_number *const number = data->scratch;
    g->axis = plain->attr[0].given ? (int)plain->attr[0].integer[0] : -1;
    struct weft_array turned = *in; /* the axis in front */
    for (int i = g->axis; i > 0; i--) {
        turned.extent[i] = in->extent[i - 1];
        turned.stride[i] = in->stride[i - 1];
    }
    if (g->axis > 0) {
        turned.extent[0] = in->extent[g->axis];
        turned.stride[0] = in->stride[g->axis];
    }
    g->rows = (struct weft_plain_rows){.dtype = in->dtype, .n = elements, .width = 1, .number = number};
    if (g->axis >= 0) {
        g->rows.n = turned.extent[0];
        g->rows.width = turned.extent[0] ? elements / turned.extent[0] : 0;
    }
    for (int64_t i = 0; i < elements; i++)
        number[i] = weft_k_at(in->dtype, data->in[0], weft_array_seek(&turned, i));
    g->order = (int64_t *)data->scratch + elements;
    g->scratch = g->order + g->rows.n;
    g->group = g->scratch + g->rows.n;
    g->first = g->group + g->rows.n;
    g->count = g->first + g->rows.n;
}

static void number_by_first_row(struct groups *g)
{
    for (int64_t i = 0; i < g->found; i++)
        g->scratch[i] = -1;
    int64_t next = 0;
    for (int64_t row = 0; row < g->rows.n; row++) {
        int64_t *const number = &g->scratch[g->group[row]];
        if (*number < 0)
            *number = next++;
        g->group[row] = *number;
    }
    memset(g->count, 0, (size_t)g->rows.n * sizeof *g->count);
    for (int64_t row = g->rows.n - 1; row >= 0; row--) {
        g->first[g->group[row]] = row;
        g->count[g->group[row]]++;
    }
}

static void find_groups(const struct weft_plain *plain, const struct weft_plain_data *data, struct groups *g)
{
    *g = (struct groups){.found = 0};
    read_rows(plain, data, g);
    weft_plain_order(&g->rows, false, g->order, g->scratch);
    for (int64_t i = 0; i < g->rows.n; i++) {
        const int64_t row = g->order[i];
        if (i == 0 || weft_plain_compare(&g->rows, g->order[i - 1], row) != 0) {
            g->first[g->found] = row;
            g->count[g->found++] = 0;
        }
        g->group[row] = g->found - 1;
        g->count[g->found - 1]++;
    }
    if (!plain->attr[1].integer[0])
        number_by_first_row(g);
}

void weft_plain_count_unique(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts)
{
    struct groups g;
    find_groups(plain, data, &g);
    counts[0] = g.found;
}

static void store_list(const struct weft_plain *plain, const struct weft_plain_data *data, int result,
                       const int64_t *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)data->out[result])[i * plain->out[result].stride[0]] = list[i];
}

void weft_plain_run_unique(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                           int64_t end)
{
    struct groups g;
    find_groups(plain, data, &g);
    for (int64_t i = 0; i < g.found; i++)
        copy_slice(&plain->out[0], data->out[0], i, &plain->in[0], data->in[0], g.first[i], g.axis);
    store_list(plain, data, 1, g.first, g.found);
    store_list(plain, data, 2, g.group, g.rows.n);
    store_list(plain, data, 3, g.count, g.found);
}

/* --- nms ---------------------------------------------------------------------------------------------------------- */

struct nms {
    const struct weft_plain *plain;
    const struct weft_plain_data *data;
    int64_t most;
    double overlap, threshold;
    union weft_k_number *score;
    struct weft_k_box *kept;
    int64_t *order, *scratch;
};

size_t weft_plain_scratch_boxes(const struct weft_plain *plain)
{
    return (size_t)plain->in[0].extent[1] * (sizeof(struct weft_k_box) + 3 * sizeof(int64_t));
}

static struct weft_k_box read_box(const struct nms *nms, int64_t batch, int64_t i)
{
    const struct weft_array *boxes = &nms->plain->in[0];
    const bool centre = nms->plain->attr[0].integer[0] == 1;
    double x[4];
    for (int64_t j = 0; j < 4; j++)
        x[j] = weft_k_at(boxes->dtype, nms->data->in[0],
                         batch * boxes->stride[0] + i * boxes->stride[1] + j * boxes->stride[2]).real;
    return weft_k_box_of(x, centre);
}

/* One class of one batch: rows [batch, class, box] behind the first `found`; how many there are then. */
static int64_t select_class(const struct nms *nms, int64_t batch, int64_t class, int64_t *to, int64_t found)
{
    const struct weft_array *scores = &nms->plain->in[1], *out = &nms->plain->out[0];
    const int64_t n = nms->plain->in[0].extent[1];
    weft_k_load(scores->dtype, nms->data->in[1], batch * scores->stride[0] + class * scores->stride[1],
                scores->stride[2], n, nms->score);
    const struct weft_plain_rows rows = {.dtype = scores->dtype, .n = n, .width = 1, .number = nms->score};
    weft_plain_order(&rows, true, nms->order, nms->scratch);
    for (int64_t i = 0, kept = 0; i < n && kept < nms->most; i++) {
        const int64_t at = nms->order[i], row[] = {batch, class, at};
        const struct weft_k_box box = read_box(nms, batch, at);
        if (!(nms->score[at].real > nms->threshold) || weft_k_box_overlaps(&box, nms->kept, kept, nms->overlap))
            continue;
        nms->kept[kept++] = box;
        for (int64_t j = 0; j < 3 && to; j++)
            to[found * out->stride[0] + j * out->stride[1]] = row[j];
        found++;
    }
    return found;
}

static int64_t suppress(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *to)
{
    const int64_t n = plain->in[0].extent[1];
    struct nms nms = {.plain = plain, .data = data, .most = weft_k_at(WEFT_K_I64, data->in[2], 0).integer,
                      .overlap = weft_k_at(plain->in[3].dtype, data->in[3], 0).real,
                      .threshold = weft_k_at(plain->in[4].dtype, data->in[4], 0).real, .kept = data->scratch};
    nms.score = (union weft_k_number *)(void *)(nms.kept + n);
    nms.order = (int64_t *)(void *)(nms.score + n);
    nms.scratch = nms.order + n;
    int64_t found = 0;
    for (int64_t batch = 0; batch < plain->in[1].extent[0]; batch++)
        for (int64_t class = 0; class < plain->in[1].extent[1]; class++)
            found = select_class(&nms, batch, class, to, found);
    return found;
}

void weft_plain_count_nms(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts)
{
    counts[0] = suppress(plain, data, NULL);
}

void weft_plain_run_nms(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end)
{
    suppress(plain, data, data->out[0]);
}
