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

/* --- bodies ------------------------------------------------------------------------------------------------------- */

/* What is one number in all places has no order, nor has what is repeated or empty; and blocks do not go into
 * bodies. */
static bool has_order(const struct weft_graph *g, weft_val v)
{
    struct weft_element element;
    const weft_val stored = weft_format_stored(g, v);
    return weft_is(stored, v) && !(weft_is_const(g, v) && weft_const_splat(g, v, &element)) &&
           weft_format_elements(g, v) > 0 && weft_layout_of(g, v).axes == weft_type_of(g, v)->rank;
}

struct ports {
    struct weft_graph *graph;
    const char *wrong;
};

static void compare(struct ports *p, const struct weft_formats *outer, weft_val v, const struct weft_formats *body,
                    weft_val w, uint32_t wanted)
{
    const struct weft_type *type = weft_type_of(body->graph, w);
    const struct weft_layout a = weft_layout_at(p->graph, wanted, type->rank),
                             b = weft_layout_at(p->graph, weft_format_order(body, w, body->graph->value[w.id].layout),
                                                type->rank);
    if (has_order(outer->graph, v) && !weft_layout_equal(p->graph->dims, &a, &b, type))
        p->wrong = weft_value_text(body->graph, w);
}

static void compare_node(struct ports *p, const struct weft_formats *f, weft_node n)
{
    struct weft_formats *body[WEFT_MOST_BODIES];
    const uint32_t bodies = weft_format_bodies(f, n, body);
    for (uint32_t k = 0; k < bodies; k++) {
        for (uint32_t i = 1; i < f->graph->node[n.id].operands; i++) {
            const weft_val v = weft_format_is_carried(f->graph, n, i) ? weft_result(f->graph, n, i - 1)
                                                                      : weft_operand(f->graph, n, i);
            compare(p, f, v, body[k], weft_format_param_of(body[k], n, i),
                    weft_format_order(f, v, f->graph->value[v.id].layout));
        }
        for (uint32_t i = 0; i < f->graph->node[n.id].results; i++) {
            const weft_val v = weft_result(f->graph, n, i), w = body[k]->graph->ret[i].value;
            uint32_t inner;
            if (!weft_is_view(body[k]->graph, weft_def(body[k]->graph, w)) && !weft_is_const(body[k]->graph, w) &&
                !body[k]->graph->value[w.id].is_param &&
                weft_format_inner(f, n, i, f->graph->value[v.id].layout, &inner))
                compare(p, f, v, body[k], w, inner);
        }
    }
}

static int compare_ports(void *argument)
{
    struct ports *p = argument;
    struct weft_formats top;
    p->graph->root->pass_memory = NULL;
    weft_formats_collect(&top, p->graph, &p->graph->context->target, &p->graph->root->scratch);
    p->graph->root->pass_memory = NULL;
    for (uint32_t i = 0; i < top.count; i++)
        weft_foreach_node(top.all[i]->graph, n)
            compare_node(p, top.all[i], n);
    return WEFT_OK;
}

enum weft_outcome weft_trial_ports(struct weft_trial *trial, struct weft_graph *graph)
{
    struct ports p = {.graph = graph};
    weft_protected_graph(graph, compare_ports, &p);
    return p.wrong ? weft_trial_fail(trial, WEFT_FAILS_PASS, "%s is stored otherwise than what it is outside of its "
                                     "body", p.wrong) : WEFT_HOLDS;
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
