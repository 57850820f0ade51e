/* SPDX-License-Identifier: Apache-2.0 */
/* format_collect.c: in which layouts a value may be stored.
 *
 * Wishes begin at parameters (which are facts), at results that the caller wants in some layout, at convolutions
 * (channels-last), at custom functions that take one order, and with row-major everywhere. Each is carried from operand
 * to result and back through every node that it passes at no cost, until nothing is new. A limit on the distance would
 * lose: a wish is worth something only where a whole region follows it. Where a node has axes that the wish does not
 * know (a bias has no rows), their places are guesses: those wait until all that is known in full is everywhere, since
 * lists are short. What goes into a body or out of it carries wishes through the node that runs it. */
#include "sched/format.h"

struct wish {
    struct weft_formats *formats;
    weft_val value;
    uint32_t layout;
};

struct collector {
    struct weft_formats *formats; /* of the graph that is looked at */
    struct weft_graph *graph;
    struct wish *queue, *guess;
    uint32_t head, tail, capacity;
    uint32_t first_guess, guesses, guess_capacity;
};

/* Blocks have no strides that a caller could be told; but a framework with kernels of its own may take what it reads
 * back in blocks. In a plan its kernels read and write blocks where another layout is promised, by a relayout. */
static bool is_told_to_caller(const struct collector *c, weft_val v)
{
    const struct weft_value *info = &c->graph->value[v.id];
    const struct weft_target *target = c->formats->target;
    const bool is_converted = weft_layout_of(c->graph, v).kind == WEFT_STORED;
    return (info->is_param || info->returns) && (!target->kernel || (target->planned && !is_converted));
}

static void add(struct collector *c, weft_val value, uint32_t layout)
{
    struct weft_format_list *list = &c->formats->list[value.id];
    const int rank = weft_type_of(c->graph, value)->rank;
    if (layout && layout != c->graph->value[value.id].layout && is_told_to_caller(c, value) &&
        weft_layout_peek(c->graph, layout, rank)->axes > rank)
        return;
    if (layout && weft_dtype_bits(weft_type_of(c->graph, value)->dtype) < 8) /* these are row-major only */
        return;
    for (int i = 0; i < list->count; i++)
        if (list->layout[i] == layout)
            return;
    if (list->count == WEFT_MAX_FORMATS) {
        list->dropped++;
        return;
    }
    list->layout[list->count++] = layout;
    c->queue = weft_grow(c->formats->arena, c->queue, &c->capacity, c->tail + 1, sizeof *c->queue);
    c->queue[c->tail++] = (struct wish){c->formats, value, layout};
}

static void add_layout(struct collector *c, weft_val value, const struct weft_layout *layout)
{
    add(c, value, weft_intern_layout(c->graph, layout, weft_type_of(c->graph, value)));
}

/* 0, then all spatial axes, then 1. */
static void wish_channels_last(struct collector *c, weft_val value)
{
    const int rank = weft_type_of(c->graph, value)->rank;
    int order[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    const struct weft_layout layout = weft_layout_order(rank, order);
    add_layout(c, value, &layout);
}

/* What kernels of the caller's ask for. */
static void wish_own(struct collector *c, weft_node n)
{
    const struct weft_formats *f = c->formats;
    const uint32_t operands = c->graph->node[n.id].operands, pins = operands + c->graph->node[n.id].results;
    for (uint32_t k = f->list[weft_result(c->graph, n, 0).id].own; k; k = f->own[k - 1].next)
        for (uint32_t i = 0; i < pins; i++)
            if (f->own[k - 1].layout[i] != WEFT_ANY_FORMAT)
                add(c, i < operands ? weft_operand(c->graph, n, i) : weft_result(c->graph, n, i - operands),
                    f->own[k - 1].layout[i]);
}

/* The orders that a custom function takes. */
static void wish_custom(struct collector *c, weft_node n)
{
    const uint32_t operands = c->graph->node[n.id].operands;
    for (uint32_t i = 0; i < operands + c->graph->node[n.id].results; i++) {
        const struct weft_pin pin = {.node = n, .result = i >= operands, .index = i < operands ? i : i - operands};
        uint32_t layout;
        if (weft_format_custom(c->formats, pin, &layout) == WEFT_WANTS_ORDER)
            add(c, weft_pin_value(c->graph, pin), layout);
    }
}

/* Is an intermediate value stored in a layout that the graph requires? A view lies where its operand does, a constant
 * as its data, and what is returned has a promise instead. */
static bool is_stated(const struct weft_graph *g, weft_val v)
{
    return weft_is_required(g, v) && !g->value[v.id].returns && !weft_is_view(g, weft_def(g, v)) &&
           !weft_is_const(g, v);
}

static void look_at(struct collector *c, struct weft_formats *formats)
{
    c->formats = formats;
    c->graph = formats->graph;
}

/* What is said of a parameter or result of a body is a wish: they lie as the node around it has them. */
static void wish_port(struct collector *c, weft_val v)
{
    if (weft_is_required(c->graph, v))
        add(c, v, weft_format_order(c->formats, v, c->graph->value[v.id].layout));
}

static void begin(struct collector *c)
{
    struct weft_graph *g = c->graph;
    for (uint32_t i = 0; i < g->params; i++) {
        c->formats->list[g->param[i].id].is_fact = !weft_format_is_open(g, i);
        if (!weft_format_is_open(g, i))
            add(c, g->param[i], g->value[g->param[i].id].layout);
        else if (g->parent)
            wish_port(c, g->param[i]);
        add(c, g->param[i], 0);
    }
    for (uint32_t i = 0; g->parent && i < g->returns; i++)
        wish_port(c, g->ret[i].value);
    weft_foreach_node(g, n) {
        for (uint32_t i = 0; i < g->node[n.id].results; i++) {
            const weft_val v = weft_result(g, n, i);
            c->formats->list[v.id].is_fact = is_stated(g, v);
            if (c->formats->list[v.id].is_fact)
                add(c, v, g->value[v.id].layout);
            add(c, v, 0);
        }
        const int op = weft_opcode_of(g, n);
        if (weft_format_ask_own(c->formats, n)) {
            wish_own(c, n);
        } else if (op == WEFT_OP_custom) {
            wish_custom(c, n);
        } else if (op == WEFT_OP_conv || op == WEFT_OP_conv_transpose) {
            wish_channels_last(c, weft_operand(g, n, 0));
            wish_channels_last(c, weft_result(g, n, 0));
        }
    }
    uint32_t promised;
    for (uint32_t i = 0; i < g->returns; i++)
        if (weft_format_promised(c->formats, i, &promised))
            add(c, g->ret[i].value, promised);
}

/* What one layout of one pin asks of the other side of its node. */
struct carried {
    uint32_t count;
    struct {
        uint32_t pin, layout;
        bool is_guess;
    } wish[];
};

static uint32_t carry(struct weft_graph *g, struct weft_pin from, const struct weft_layout *stored, struct weft_pin to,
                      uint32_t *ret_layout)
{
    struct weft_layout carried[2];
    const uint32_t count = (uint32_t)weft_carry_layouts(g, from, stored, to, carried);
    for (uint32_t i = 0; i < count; i++)
        ret_layout[i] = weft_intern_canonical(g, &carried[i]);
    return count;
}

static const struct carried *carry_all(const struct weft_formats *f, struct weft_pin from, uint32_t layout)
{
    struct weft_graph *g = f->graph;
    const struct weft_node_info *node = &g->node[from.node.id];
    const uint32_t pins = from.result ? node->operands : node->results;
    const int rank = weft_type_of(g, weft_pin_value(g, from))->rank;
    const struct weft_layout stored = weft_layout_at(g, layout, rank);
    struct carried *carried = weft_arena_new(f->arena, sizeof *carried + 2 * pins * sizeof carried->wish[0]);
    for (uint32_t i = 0; i < pins; i++) {
        uint32_t to[2];
        const uint32_t count =
            carry(g, from, &stored, (struct weft_pin){.node = from.node, .result = !from.result, .index = i}, to);
        for (uint32_t k = 0; k < count; k++) {
            carried->wish[carried->count].pin = i;
            carried->wish[carried->count].is_guess = count > 1 && to[0] != to[1];
            carried->wish[carried->count++].layout = to[k];
        }
    }
    return carried;
}

/* From a result to all operands, or from an operand to all results; the wishes of a pin, that with new axes outermost
 * first. */
static const struct carried *carry_known(const struct weft_formats *f, struct weft_pin from, uint32_t layout)
{
    struct weft_format_known *known =
        WEFT_RECALL(f, WEFT_RECALL_CARRY, f->node_kind[from.node.id], from.result, from.index, layout);
    if (!known->answer)
        known->answer = (void *)carry_all(f, from, layout);
    return known->answer;
}

bool weft_format_carry(const struct weft_formats *f, struct weft_pin from, uint32_t layout, struct weft_pin to,
                       uint32_t *ret_layout)
{
    const struct carried *carried = carry_known(f, from, layout);
    uint32_t i = 0;
    while (i < carried->count && carried->wish[i].pin != to.index)
        i++;
    if (i < carried->count)
        *ret_layout = carried->wish[i].layout;
    return i < carried->count;
}

static void carry_on(struct collector *c, struct weft_pin from, uint32_t layout)
{
    const struct carried *carried = carry_known(c->formats, from, layout);
    for (uint32_t i = 0; i < carried->count; i++) {
        const struct weft_pin to = {.node = from.node, .result = !from.result, .index = carried->wish[i].pin};
        const struct wish wish = {c->formats, weft_pin_value(c->graph, to), carried->wish[i].layout};
        if (!carried->wish[i].is_guess) {
            add(c, wish.value, wish.layout);
            continue;
        }
        c->guess = weft_grow(c->formats->arena, c->guess, &c->guess_capacity, c->guesses + 1, sizeof *c->guess);
        c->guess[c->guesses++] = wish;
    }
}

/* --- into bodies and out of them ---------------------------------------------------------------------------------- */

static void add_in(struct collector *c, struct weft_formats *formats, weft_val v, uint32_t layout)
{
    struct weft_formats *const here = c->formats;
    look_at(c, formats);
    add(c, v, weft_format_order(formats, v, layout));
    look_at(c, here);
}

/* Operand or result of a node with bodies. */
static void enter(struct collector *c, weft_node n, bool is_result, uint32_t index, uint32_t layout)
{
    struct weft_formats *body[WEFT_MOST_BODIES];
    const uint32_t bodies = weft_format_bodies(c->formats, n, body);
    const bool carried = weft_opcode_of(c->graph, n) == WEFT_OP_loop &&
                         weft_format_is_carried(c->graph, n, index + is_result);
    uint32_t inner;
    for (uint32_t k = 0; k < bodies && (is_result || index > 0); k++)
        if (!is_result || carried)
            add_in(c, body[k], weft_format_param_of(body[k], n, index + is_result), layout);
    for (uint32_t k = 0; k < bodies && is_result; k++)
        if (weft_format_inner(c->formats, n, index, layout, &inner))
            add_in(c, body[k], body[k]->graph->ret[index].value, inner);
    if (carried && is_result)
        add_in(c, c->formats, weft_operand(c->graph, n, index + 1), layout);
    else if (carried && index > 0)
        add_in(c, c->formats, weft_result(c->graph, n, index - 1), layout);
}

/* Parameter or result of a body. */
static void leave(struct collector *c, struct wish wish)
{
    const struct weft_formats *f = wish.formats;
    const struct weft_value *value = &f->graph->value[wish.value.id];
    uint32_t layout;
    for (uint32_t h = 0; h < f->holders; h++) {
        const weft_node n = f->holder[h];
        const uint32_t operand = value->result + (weft_opcode_of(f->outer->graph, n) != WEFT_OP_loop);
        if (value->is_param && operand > 0)
            add_in(c, f->outer, weft_operand(f->outer->graph, n, operand), wish.layout);
        for (uint32_t slot = value->first_return; slot; slot = f->graph->ret[slot - 1].next)
            if (weft_format_outer(f->outer, n, slot - 1, wish.layout, &layout))
                add_in(c, f->outer, weft_result(f->outer->graph, n, slot - 1), layout);
    }
}

static bool has_bodies(const struct weft_graph *g, weft_node n)
{
    return n.id && (weft_op_of(g, n)->traits & WEFT_CONTROL);
}

/* From the node that makes the value, and to all that read it. */
static void spread(struct collector *c, struct wish wish)
{
    look_at(c, wish.formats);
    const struct weft_graph *g = c->graph;
    const struct weft_value *value = &g->value[wish.value.id];
    if (c->formats->outer)
        leave(c, wish);
    if (has_bodies(g, value->def))
        enter(c, value->def, /* is_result= */ true, value->result, wish.layout);
    else if (value->def.id)
        carry_on(c, (struct weft_pin){.node = value->def, .result = true, .index = value->result}, wish.layout);
    for (uint32_t slot = value->first_use; slot; slot = g->slot[slot - 1].next) {
        const weft_node user = g->slot[slot - 1].node;
        const uint32_t index = slot - 1 - g->node[user.id].first_operand;
        if (has_bodies(g, user))
            enter(c, user, /* is_result= */ false, index, wish.layout);
        else
            carry_on(c, (struct weft_pin){.node = user, .index = index}, wish.layout);
    }
}

/* Ways to write a value follow from its list, and with it whether a fact has more than one reader; kernels of the
 * caller's make it one of its own. */
static void number_lists(const struct weft_formats *f)
{
    for (uint32_t v = 1; v < f->graph->values; v++) {
        struct weft_format_list *list = &f->list[v];
        const uint64_t fact = list->is_fact ? f->graph->value[v].uses > 1 ? 2 : 1 : 0;
        uint64_t question[4 + WEFT_MAX_FORMATS] = {WEFT_RECALL_LIST, fact, list->own,
                                                   list->own ? (uint64_t)(uintptr_t)f->graph : 0};
        for (uint32_t i = 0; i < list->count; i++)
            question[4 + i] = list->layout[i];
        list->number = weft_format_recall(f, question, 4 + list->count)->number;
    }
}

/* Remembers of a graph what prices and candidates are asked for. */
static void open_formats(struct weft_formats *f)
{
    f->list = weft_new(f->arena, struct weft_format_list, f->graph->values);
    weft_format_kinds(f);
}

void weft_formats_collect(struct weft_formats *formats, struct weft_graph *graph, const struct weft_target *target,
                          struct weft_arena *arena)
{
    *formats = (struct weft_formats){.graph = graph, .target = target, .arena = arena};
    struct collector c = {0};
    weft_format_open_tree(formats);
    for (uint32_t i = 0; i < formats->count; i++)
        open_formats(formats->all[i]);
    for (uint32_t i = 0; i < formats->count; i++) {
        look_at(&c, formats->all[i]);
        begin(&c);
    }
    while (c.head < c.tail || c.first_guess < c.guesses) {
        if (c.head == c.tail) {
            const struct wish guess = c.guess[c.first_guess++];
            look_at(&c, guess.formats);
            add(&c, guess.value, guess.layout);
        } else {
            spread(&c, c.queue[c.head++]);
        }
    }
    for (uint32_t i = 0; i < formats->count; i++)
        number_lists(formats->all[i]);
}
