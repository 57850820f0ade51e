/* SPDX-License-Identifier: Apache-2.0 */
/* unique.c: what is different among elements, or among slices along an axis.
 *
 * The rows (slices, or single elements) are put into order; equal ones are then neighbours, and the first of them in
 * the operand comes first, since the order is stable. Groups are numbered in that order, or in the order of their first
 * rows. */
#include "eval/rule.h"

#include <string.h>

struct groups {
    struct weft_rows rows;
    int64_t found;
    int64_t *memory, *order, *scratch, *group, *first, *count; /* group by row; first and count by group */
};

static union weft_number *read_rows(struct weft_eval *eval, struct groups *g)
{
    const struct weft_attr *axis = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_axis);
    struct weft_tensor in = eval->in[0];
    const int64_t elements = weft_tensor_count(&in);
    g->rows = (struct weft_rows){.dtype = in.dtype, .n = elements, .width = 1};
    if (axis) { /* slices side by side: the axis moves to the front */
        const int along = (int)weft_dim_value(axis->integer);
        for (int i = along; i > 0; i--) {
            const int64_t extent = in.extent[i], stride = in.stride[i];
            in.extent[i] = in.extent[i - 1], in.stride[i] = in.stride[i - 1];
            in.extent[i - 1] = extent, in.stride[i - 1] = stride;
        }
        g->rows.n = in.extent[0];
        g->rows.width = in.extent[0] ? elements / in.extent[0] : 0;
    }
    union weft_number *numbers = weft_eval_numbers(eval, &in);
    g->rows.number = numbers;
    return numbers;
}

/* Numbers the groups in the order of their first rows. */
static void by_first_row(struct groups *g)
{
    for (int64_t i = 0; i < g->found; i++)
        g->scratch[i] = -1;
    int64_t next = 0;
    for (int64_t row = 0; row < g->rows.n; row++) {
        int64_t *number = &g->scratch[g->group[row]];
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

static bool find_groups(struct weft_eval *eval, struct groups *g)
{
    union weft_number *numbers = read_rows(eval, g);
    const int64_t n = g->rows.n;
    g->memory = weft_eval_scratch(eval, 5 * n, sizeof *g->memory);
    if (numbers && g->memory) {
        g->order = g->memory, g->scratch = g->order + n, g->group = g->scratch + n;
        g->first = g->group + n, g->count = g->first + n;
        weft_eval_order(&g->rows, false, g->order, g->scratch);
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = g->order[i];
            if (i == 0 || weft_eval_compare_rows(&g->rows, g->order[i - 1], row) != 0) {
                g->first[g->found] = row;
                g->count[g->found++] = 0;
            }
            g->group[row] = g->found - 1;
            g->count[g->found - 1]++;
        }
        if (!weft_eval_int(eval, WEFT_ATTR_sorted))
            by_first_row(g);
    }
    weft_eval_drop_numbers(eval, numbers, weft_tensor_count(&eval->in[0]));
    return !eval->failed;
}

static void drop_groups(struct weft_eval *eval, struct groups *g)
{
    weft_eval_drop(eval, g->memory, 5 * g->rows.n, sizeof *g->memory);
}

void weft_extents_unique(struct weft_eval *eval, int64_t *counts)
{
    struct groups g = {.found = 0};
    find_groups(eval, &g);
    counts[0] = g.found;
    drop_groups(eval, &g);
}

static void store_list(const struct weft_tensor *to, const int64_t *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        weft_store_integer(to->dtype, to->data, i * to->stride[0], list[i]);
}

/* Copies row `row` of the operand to place `i` of the values. */
static void store_row(struct weft_eval *eval, int64_t i, int64_t row)
{
    const struct weft_attr *axis = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_axis);
    struct weft_tensor from = eval->in[0], to = eval->out[0];
    if (axis) {
        const int along = (int)weft_dim_value(axis->integer);
        from.extent[along] = to.extent[along] = 1;
        weft_tensor_copy(&to, i * to.stride[along], &from, row * from.stride[along]);
        return;
    }
    int64_t place = 0;
    for (int a = from.rank - 1; a >= 0; a--) {
        place += row % from.extent[a] * from.stride[a];
        row /= from.extent[a];
    }
    from.rank = to.rank = 0;
    weft_tensor_copy(&to, i * to.stride[0], &from, place);
}

void weft_eval_unique(struct weft_eval *eval)
{
    struct groups g = {.found = 0};
    if (find_groups(eval, &g)) {
        for (int64_t i = 0; i < g.found; i++)
            store_row(eval, i, g.first[i]);
        store_list(&eval->out[1], g.first, g.found);
        store_list(&eval->out[2], g.group, g.rows.n);
        store_list(&eval->out[3], g.count, g.found);
    }
    drop_groups(eval, &g);
}
