/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c: what holds of the choice of layouts, and graphs whose values are stored in blocks. */
#include "tests/property/trial.h"

#include "sched/format.h"

/* --- the choice --------------------------------------------------------------------------------------------------- */

struct choice {
    struct weft_graph *graph;
    struct weft_formats formats;
};

static int choose(void *argument)
{
    struct choice *c = argument;
    weft_formats_collect(&c->formats, c->graph, &c->graph->context->target, &c->graph->root->scratch);
    weft_formats_choose(&c->formats);
    return WEFT_OK;
}

enum weft_outcome weft_trial_choice(struct weft_trial *trial, struct weft_graph *graph)
{
    struct choice c = {.graph = graph};
    graph->root->pass_memory = NULL;
    const int status = weft_protected_graph(graph, choose, &c);
    graph->root->pass_memory = NULL;
    const struct weft_formats *f = &c.formats;
    if (status != WEFT_OK)
        return weft_trial_fail(trial, WEFT_FAILS_PASS, "layouts: %s", weft_last_error(graph->context));
    const int64_t hardly = f->cost / WEFT_FORMAT_HARDLY;
    if (f->cost - hardly > f->row_major || f->cost - hardly > f->channels_last || f->bound > f->cost ||
        f->free_cost > f->cost)
        return weft_trial_fail(trial, WEFT_FAILS_PASS, "layouts cost %lld ps, at least %lld, row-major %lld, "
                               "channels-last %lld, without promises %lld", (long long)f->cost, (long long)f->bound,
                               (long long)f->row_major, (long long)f->channels_last, (long long)f->free_cost);
    return WEFT_HOLDS;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* A layout with one axis in blocks, whose elements are neighbours in memory. */
static struct weft_layout in_blocks(int rank, int split, int64_t block)
{
    struct weft_layout layout = weft_layout_row_major(rank);
    layout.axis[split].div = block;
    layout.axis[layout.axes++] = (struct weft_axis){.axis = (uint8_t)split, .div = 1, .mod = block};
    return layout;
}

static int split_values(void *argument)
{
    struct weft_graph *g = argument;
    for (uint32_t v = 1; v < g->values; v++) {
        const struct weft_value *value = &g->value[v];
        const uint32_t draw = (v * 2654435761u) >> 8;
        const int axis = value->type.rank ? (int)(draw / 4 % value->type.rank) : 0;
        if (draw % 4 == 0 || !value->type.rank || value->is_param || value->returns || !value->def.id ||
            g->node[value->def.id].dead || weft_dtype_bits(value->type.dtype) < 8 ||
            weft_opcode_of(g, value->def) == WEFT_OP_const || !weft_dim_is_constant(value->type.extent[axis]))
            continue;
        const struct weft_layout layout = in_blocks(value->type.rank, axis, 2 + draw / 64 % 3);
        weft_set_value_layout(g, (weft_val){.id = v}, &layout);
    }
    for (uint32_t i = 0; i < g->bodies; i++)
        split_values(g->body[i]);
    return WEFT_OK;
}

void weft_trial_split(struct weft_graph *graph) { weft_protected_graph(graph, split_values, graph); }
