/* SPDX-License-Identifier: Apache-2.0 */
/* edit.c: the few legal rewrites. Whatever changes a graph goes through here or through weft_add_node, so that use
 * lists, order, names and the validity of analyses are kept in one place. Each has a drawing in ir.h. */
#include "ir/ir.h"

#include <string.h>

bool weft_permit(struct weft_graph *graph, const char *who, weft_val where)
{
    struct weft_graph *root = graph->root;
    if (root->rewrite_limit >= 0 && root->rewrites >= root->rewrite_limit)
        return false;
    root->rewrites++;
    if (root->rewrites == root->rewrite_limit) /* the last one that bisecting lets happen: say which it was */
        weft_add_remark(graph, who, where, "stopped", "rewrite %lld is the last that WEFT_STOP_AFTER allows",
                        (long long)root->rewrites);
    return true;
}

/* A group that one reader less has may write a value less. */
static void forget_shown(struct weft_graph *g, weft_val value, uint32_t group)
{
    const weft_node def = weft_def(g, value);
    if (def.id && g->node[def.id].group && g->node[def.id].group != group)
        weft_forget_choices(g, def);
}

static void unlink_use(struct weft_graph *g, uint32_t slot)
{
    struct weft_operand *use = &g->slot[slot];
    forget_shown(g, use->value, g->node[use->node.id].group);
    if (use->previous)
        g->slot[use->previous - 1].next = use->next;
    else
        g->value[use->value.id].first_use = use->next;
    if (use->next)
        g->slot[use->next - 1].previous = use->previous;
    g->value[use->value.id].uses--;
    use->next = use->previous = 0;
}

static void set_use(struct weft_graph *g, uint32_t slot, weft_val value)
{
    weft_forget_choices(g, g->slot[slot].node); /* they were for the old operand */
    unlink_use(g, slot);
    struct weft_operand *use = &g->slot[slot];
    struct weft_value *v = &g->value[value.id];
    use->value = value;
    use->next = v->first_use;
    if (v->first_use)
        g->slot[v->first_use - 1].previous = slot + 1;
    v->first_use = slot + 1;
    v->uses++;
}

/* --- what is known of elements (content.c) ------------------------------------------------------------------------
 *
 * A result's elements are known only where those of all operands are. So before an operand changes, what was concluded
 * from it is forgotten, from the last reader up to the node itself, and learned again afterwards: each node once,
 * however many ways lead there, and memory that is refused on the way leaves less known and nothing wrong. */

static struct weft_value *only_result(const struct weft_graph *g, weft_node node)
{
    return g->node[node.id].results == 1 ? &g->value[g->node[node.id].first_result] : NULL;
}

static bool is_known(const struct weft_graph *g, weft_node node)
{
    const struct weft_value *v = only_result(g, node);
    return v && v->content;
}

static void forget_content(struct weft_graph *g, weft_node node)
{
    struct open {
        weft_node node;
        uint32_t use; /* the next to look at */
    } *open = NULL;
    uint32_t count = 0, capacity = 0;
    weft_node next = node;
    while (is_known(g, next)) {
        open = weft_grow(&g->root->scratch, open, &capacity, count + 1, sizeof *open);
        open[count++] = (struct open){next, only_result(g, next)->first_use};
        for (next = WEFT_NO_NODE; count > 0 && !next.id;) {
            struct open *last = &open[count - 1];
            while (last->use && !is_known(g, g->slot[last->use - 1].node))
                last->use = g->slot[last->use - 1].next;
            if (last->use)
                next = g->slot[last->use - 1].node;
            else
                only_result(g, open[--count].node)->content = NULL;
        }
    }
}

static void learn_content(struct weft_graph *g, weft_node node)
{
    weft_node *reader = NULL;
    uint32_t count = 0, capacity = 0;
    for (;;) {
        struct weft_value *v = only_result(g, node);
        if (v && !v->content) {
            v->content = weft_content_of(g, node);
            for (uint32_t use = v->content ? v->first_use : 0; use; use = g->slot[use - 1].next) {
                reader = weft_grow(&g->root->scratch, reader, &capacity, count + 1, sizeof *reader);
                reader[count++] = g->slot[use - 1].node;
            }
        }
        if (count == 0)
            return;
        node = reader[--count];
    }
}

static bool same_content(const struct weft_graph *g, weft_val a, weft_val b)
{
    const weft_dim *of_a = g->value[a.id].content, *of_b = g->value[b.id].content;
    if (!of_a || !of_b || !weft_type_same(&g->value[a.id].type, &g->value[b.id].type))
        return of_a == of_b;
    const int64_t count = weft_dim_value(weft_type_elements(g->dims, &g->value[a.id].type));
    return memcmp(of_a, of_b, (size_t)count * sizeof *of_a) == 0;
}

/* An operand becomes another value. */
static void change_use(struct weft_graph *g, uint32_t slot, weft_val value)
{
    const weft_node node = g->slot[slot].node;
    weft_show_value(g, value, g->node[node.id].group);
    if (same_content(g, g->slot[slot].value, value)) {
        set_use(g, slot, value);
        return;
    }
    forget_content(g, node);
    set_use(g, slot, value);
    learn_content(g, node);
}

void weft_replace_operand(struct weft_graph *graph, weft_node node, unsigned i, weft_val value)
{
    change_use(graph, graph->node[node.id].first_operand + i, value);
}

void weft_swap_operands(struct weft_graph *graph, weft_node node)
{
    const weft_val a = weft_operand(graph, node, 0), b = weft_operand(graph, node, 1);
    const uint32_t first = graph->node[node.id].first_operand;
    set_use(graph, first, b);
    set_use(graph, first + 1, a);
}

static void unlink_return(struct weft_graph *g, uint32_t i)
{
    const struct weft_return_slot *slot = &g->ret[i];
    forget_shown(g, slot->value, /* group= */ 0);
    if (slot->previous)
        g->ret[slot->previous - 1].next = slot->next;
    else
        g->value[slot->value.id].first_return = slot->next;
    if (slot->next)
        g->ret[slot->next - 1].previous = slot->previous;
    g->value[slot->value.id].returns--;
}

void weft_replace_return(struct weft_graph *graph, uint32_t i, weft_val value)
{
    unlink_return(graph, i);
    weft_show_value(graph, value, /* group= */ 0);
    struct weft_return_slot *slot = &graph->ret[i];
    struct weft_value *v = &graph->value[value.id];
    *slot = (struct weft_return_slot){.value = value, .mut = slot->mut, .next = v->first_return};
    if (v->first_return)
        graph->ret[v->first_return - 1].previous = i + 1;
    v->first_return = i + 1;
    v->returns++;
}

void weft_keep_params(struct weft_graph *body, const weft_val *param, uint32_t count)
{
    weft_assert(body->root != body);
    for (uint32_t i = 0; i < body->params; i++)
        body->value[body->param[i].id].is_param = false;
    for (uint32_t i = 0; i < count; i++) {
        body->value[param[i].id].is_param = true;
        body->value[param[i].id].result = i;
    }
    for (uint32_t i = 0; i < body->params; i++) {
        struct weft_value *value = &body->value[body->param[i].id];
        weft_assert(value->is_param || (value->uses == 0 && value->returns == 0));
        if (!value->is_param)
            value->layout = 0; /* what is no longer there is not stored in any way */
    }
    memcpy(body->param, param, count * sizeof *param);
    body->params = count;
}

void weft_replace_body(struct weft_graph *graph, weft_node node, const struct weft_graph *a, struct weft_graph *b)
{
    const struct weft_node_info *info = &graph->node[node.id];
    for (unsigned i = 0; i < info->attrs; i++)
        if (info->attr[i].kind == WEFT_ATTR_GRAPH && info->attr[i].graph == a)
            info->attr[i].graph = b;
    b->frozen = true;
}

void weft_replace_uses(struct weft_graph *graph, weft_val a, weft_val b)
{
    weft_assert(!weft_is(a, b));
    graph->value[a.id].heir = b;
    graph->value[b.id].heir = WEFT_NO_VALUE; /* it may have been replaced itself, and is back */
    while (graph->value[a.id].first_use)
        change_use(graph, graph->value[a.id].first_use - 1, b);
    while (graph->value[a.id].first_return)
        weft_replace_return(graph, graph->value[a.id].first_return - 1, b);
    if (graph->value[a.id].name && !graph->value[b.id].name && !graph->value[a.id].is_param)
        weft_move_name(graph, a, b);
}

static void unlink_node(struct weft_graph *g, weft_node node)
{
    const struct weft_node_info *info = &g->node[node.id];
    *(info->previous.id ? &g->node[info->previous.id].next : &g->first) = info->next;
    *(info->next.id ? &g->node[info->next.id].previous : &g->last) = info->previous;
}

void weft_erase_node(struct weft_graph *graph, weft_node node)
{
    struct weft_node_info *info = &graph->node[node.id];
    weft_assert(!info->dead);
    for (unsigned i = 0; i < info->results; i++)
        weft_assert(graph->value[info->first_result + i].uses == 0 &&
                    graph->value[info->first_result + i].returns == 0);
    for (unsigned i = 0; i < info->operands; i++)
        unlink_use(graph, info->first_operand + i);
    unlink_node(graph, node);
    info->dead = true; /* `next` stays, for walks that stand here */
    graph->live_nodes--;
    graph->analyses &= ~WEFT_ORDER;
}

void weft_move_before(struct weft_graph *graph, weft_node node, weft_node before)
{
    if (node.id == before.id || graph->node[node.id].next.id == before.id)
        return;
    unlink_node(graph, node);
    struct weft_node_info *info = &graph->node[node.id];
    info->next = before;
    info->previous = before.id ? graph->node[before.id].previous : graph->last;
    *(info->previous.id ? &graph->node[info->previous.id].next : &graph->first) = node;
    *(before.id ? &graph->node[before.id].previous : &graph->last) = node;
    graph->analyses &= ~WEFT_ORDER;
}

/* --- attributes and plans ----------------------------------------------------------------------------------------- */

void weft_drop_attr(struct weft_graph *graph, weft_node node, int key)
{
    struct weft_node_info *info = &graph->node[node.id];
    unsigned kept = 0;
    forget_content(graph, node);
    for (unsigned i = 0; i < info->attrs; i++)
        if (info->attr[i].key != key)
            info->attr[kept++] = info->attr[i];
    info->attrs = (uint16_t)kept;
    weft_forget_choices(graph, node);
    learn_content(graph, node);
}

void weft_set_attr(struct weft_graph *graph, weft_node node, const struct weft_attr *attr)
{
    const struct weft_node_info *old = &graph->node[node.id];
    struct weft_attr *attrs = weft_new(graph->arena, struct weft_attr, old->attrs + 1u);
    unsigned count = 0, i = 0;
    for (const struct weft_attr_spec *spec = weft_ops[old->op].attrs; spec->key != WEFT_ATTR_NONE; spec++) {
        const bool had = i < old->attrs && old->attr[i].key == spec->key;
        if (spec->key == attr->key)
            attrs[count++] = *attr;
        else if (had)
            attrs[count++] = old->attr[i];
        i += had;
    }
    forget_content(graph, node);
    graph->node[node.id].attr = attrs;
    graph->node[node.id].attrs = (uint16_t)count;
    weft_forget_choices(graph, node);
    learn_content(graph, node);
}

const struct weft_plan_note *weft_make_note(struct weft_graph *graph, const char *kernel, uint32_t count,
                                            const char *const *key, const char *const *value)
{
    struct weft_arena *arena = graph->arena;
    if (!kernel && count == 0)
        return NULL;
    struct weft_plan_note *note = weft_new(arena, struct weft_plan_note, 1);
    note->kernel = kernel ? weft_arena_copy(arena, kernel, strlen(kernel)) : NULL;
    note->count = count;
    note->key = weft_new(arena, const char *, count);
    note->value = weft_new(arena, const char *, count);
    for (uint32_t i = 0; i < count; i++) {
        note->key[i] = weft_arena_copy(arena, key[i], strlen(key[i]));
        note->value[i] = weft_arena_copy(arena, value[i], strlen(value[i]));
    }
    return note;
}

void weft_set_plan(struct weft_graph *graph, weft_node node, const char *kernel, uint32_t count, const char *const *key,
                   const char *const *value)
{
    const struct weft_plan_note *note = weft_make_note(graph, kernel, count, key, value);
    graph->node[node.id].plan = note;
}

/* --- the strip law ------------------------------------------------------------------------------------------------ */

static bool strip_layouts(struct weft_graph *g)
{
    bool changed = false;
    for (uint32_t i = 1; i < g->values; i++) {
        struct weft_value *v = &g->value[i];
        if (v->is_param || v->returns || !(v->layout || v->stated))
            continue;
        v->layout = 0;
        v->stated = false;
        changed = true;
    }
    return changed;
}

static bool strip_one(struct weft_graph *g)
{
    bool changed = false;
    weft_foreach_node(g, n) {
        struct weft_node_info *info = &g->node[n.id];
        changed |= info->plan || info->group;
        info->plan = NULL;
        info->group = 0;
        if (!(weft_ops[info->op].traits & WEFT_PLACEMENT))
            continue;
        const weft_val result = weft_result(g, n, 0), operand = weft_operand(g, n, 0);
        /* A returned relayout of a parameter, or of a value that is returned as well, says where a result lives: it
         * stays. */
        const struct weft_value *from = &g->value[operand.id];
        if (g->value[result.id].returns && (from->is_param || from->returns))
            continue;
        if (g->value[result.id].returns)
            weft_take_layout(g, operand, result);
        weft_replace_uses(g, result, operand);
        weft_erase_node(g, n);
        changed = true;
    }
    g->groups = 1;
    changed |= g->end != NULL;
    g->end = NULL;
    return strip_layouts(g) || changed;
}

bool weft_strip(struct weft_graph *graph)
{
    bool changed = strip_one(graph);
    for (uint32_t i = 0; i < graph->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        changed |= weft_strip(graph->body[i]);
    return changed;
}
