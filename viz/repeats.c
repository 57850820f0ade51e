/* SPDX-License-Identifier: Apache-2.0 */
/* repeats.c: items of a scope that repeat, and how those that do not differ.
 *
 *   1  an item is described: ops, attributes, types, layouts, kernels, nesting, and which of its own values each node
 *      reads; equal descriptions get one number. Names are no part of it, so that layers with other weights are equal
 *   2  in the row of numbers, the longest stretch that repeats with some period is taken, from left to right:
 *
 *        embeddings  [layer.0 + group]  [layer.1 + group]  …  [layer.11]  pooler      period 2, the last copy cut short
 *
 *   3  what is read across items must lie in the same place of the same copy, or of the one before
 *
 * Scopes repeat only where their names are alike but for numbers. Where there are no scopes, a stretch of units repeats
 * that is long enough to be a layer. */
#include "ir/values.h"
#include "viz/scopes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PERIOD = 512,
    LEAST_UNITS = 4, /* of a period without scopes: */
    LEAST_COPIES = 3,
    LONG_UNITS = 12,  /* but of one that is so long, 2 copies */
    LEAST_LAYER = 8,  /* nodes of layers whose differences are named, */
    MOST_NAMED = 4,   /* and ops that are */
};

struct described {
    weft_node *node;  /* in the order of the description */
    uint32_t nodes;
    char hash[33];
    uint32_t number;  /* equal for equal items */
};

struct finder {
    struct weft_scopes *tree;
    struct weft_text text; /* scratch */
    uint32_t *rank;        /* by node: where it stands in the item that is being described, + 1 */
    uint32_t *item, *place; /* by node: the item of the scope at hand that it is in, + 1, and where there */
    struct described *described; /* by item of the scope at hand */
};

/* --- descriptions ------------------------------------------------------------------------------------------------- */

static void add_attr(struct finder *f, const struct weft_attr *attr)
{
    struct weft_text *const text = &f->text;
    struct weft_dims *const dims = f->tree->graph->dims;
    weft_text_format(text, " %s=", weft_attr_names[attr->key]);
    switch (attr->kind) {
    case WEFT_ATTR_INT:
        weft_dim_print(dims, attr->integer, text);
        break;
    case WEFT_ATTR_REAL:
        weft_text_format(text, "%a", attr->real);
        break;
    case WEFT_ATTR_WORD:
        weft_text_add(text, attr->word);
        break;
    case WEFT_ATTR_DTYPE:
        weft_text_add(text, weft_dtype_name(attr->dtype));
        break;
    case WEFT_ATTR_VALUES:
        weft_values_print(attr->values, attr->count, text);
        break;
    case WEFT_ATTR_GRAPH: /* bodies are not compared: each is itself */
        weft_text_format(text, "%u", attr->graph->number);
        break;
    default:
        for (uint32_t i = 0; i < attr->count; i++) {
            weft_text_add(text, ",");
            if (attr->kind == WEFT_ATTR_REALS)
                weft_text_format(text, "%a", attr->reals[i]);
            else
                weft_dim_print(dims, attr->integers[i], text);
        }
    }
}

static void add_type(struct finder *f, weft_val value)
{
    const struct weft_graph *const g = f->tree->graph;
    const struct weft_layout layout = weft_layout_of(g, value);
    weft_type_print(g->dims, weft_type_of(g, value), &f->text);
    if (layout.kind != WEFT_STORED || !weft_layout_is_row_major(&layout))
        weft_layout_print(g->dims, &layout, &f->text);
}

static const char *kernel_of(const struct weft_graph *g, weft_node n)
{
    const struct weft_node_info *const info = weft_node_of(g, n);
    const struct weft_plan_note *const note = info->group ? g->group[info->group].plan : info->plan;
    return note && note->kernel ? note->kernel : "";
}

static void add_node(struct finder *f, weft_node n)
{
    const struct weft_graph *const g = f->tree->graph;
    const struct weft_node_info *const info = weft_node_of(g, n);
    weft_text_add(&f->text, weft_op_of(g, n)->name);
    for (unsigned i = 0; i < info->attrs; i++) /* which slice of a cache is read makes no other layer */
        if (info->op != WEFT_OP_slice || (info->attr[i].key != WEFT_ATTR_start && info->attr[i].key != WEFT_ATTR_end))
            add_attr(f, &info->attr[i]);
    for (unsigned i = 0; i < info->operands; i++) {
        const weft_val value = weft_operand(g, n, i);
        const weft_node def = weft_def(g, value);
        if (def.id && f->rank[def.id])
            weft_text_format(&f->text, " %%%u.%u", f->rank[def.id], value.id - g->node[def.id].first_result);
        else
            weft_text_add(&f->text, " %");
        add_type(f, value);
    }
    weft_text_add(&f->text, " =");
    for (unsigned i = 0; i < info->results; i++) {
        weft_text_add(&f->text, " ");
        add_type(f, weft_result(g, n, i));
    }
    weft_text_add(&f->text, " ! ");
    weft_text_add(&f->text, kernel_of(g, n));
    weft_text_add(&f->text, "\n");
}

/* Scopes are at most MOST_DEPTH deep (scopes.c). */
static void add_item(struct finder *f, const struct weft_scope_item *item, struct described *to)
{
    weft_text_add(&f->text, item->scope ? "(" : "[");
    const struct weft_name_scope *const scope = &f->tree->scope[item->scope];
    for (uint32_t i = 0; item->scope && i < scope->items; i++)
        add_item(f, &scope->item[i], to);
    for (uint32_t i = 0; !item->scope && i < item->nodes; i++) {
        to->node[to->nodes++] = item->node[i];
        add_node(f, item->node[i]);
        f->rank[item->node[i].id] = to->nodes;
    }
    weft_text_add(&f->text, item->scope ? ")" : "]");
}

static void describe(struct finder *f, const struct weft_scope_item *item, struct described *to)
{
    *to = (struct described){.node = weft_new(f->tree->arena, weft_node, item->nodes)};
    f->text.length = 0;
    add_item(f, item, to);
    weft_blob_hash(f->text.data, f->text.length, to->hash);
    for (uint32_t i = 0; i < to->nodes; i++)
        f->rank[to->node[i].id] = 0;
}

static int by_hash(const void *a, const void *b)
{
    return strcmp((*(struct described *const *)a)->hash, (*(struct described *const *)b)->hash);
}

static void describe_items(struct finder *f, const struct weft_name_scope *scope)
{
    struct described **const order = weft_new(f->tree->arena, struct described *, scope->items);
    f->described = weft_new(f->tree->arena, struct described, scope->items);
    for (uint32_t i = 0; i < scope->items; i++) {
        order[i] = &f->described[i];
        describe(f, &scope->item[i], order[i]);
        for (uint32_t k = 0; k < order[i]->nodes; k++) {
            f->item[order[i]->node[k].id] = i + 1;
            f->place[order[i]->node[k].id] = k;
        }
    }
    qsort(order, scope->items, sizeof *order, by_hash);
    for (uint32_t i = 1; i < scope->items; i++)
        order[i]->number = order[i - 1]->number + (strcmp(order[i]->hash, order[i - 1]->hash) != 0);
}

static void forget_items(struct finder *f, const struct weft_name_scope *scope)
{
    for (uint32_t i = 0; i < scope->items; i++)
        for (uint32_t k = 0; k < f->described[i].nodes; k++)
            f->item[f->described[i].node[k].id] = 0;
}

/* --- repeats ------------------------------------------------------------------------------------------------------ */

/* Equal but for numbers in them. */
static bool are_alike(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0123456789");
            b += strspn(b, "0123456789");
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

/* Where an operand comes from, as seen from a copy: 0: from outside the stretch. */
struct source {
    uint32_t back;  /* copies before this one, + 1 */
    uint32_t item, place;
};

static struct source source_of(const struct finder *f, const struct weft_repeat *r, uint32_t copy, weft_val value)
{
    const weft_node def = weft_def(f->tree->graph, value);
    const uint32_t item = def.id ? f->item[def.id] : 0;
    if (!item || item - 1 < r->first || item - 1 >= r->first + r->count)
        return (struct source){0};
    const uint32_t from = (item - 1 - r->first) / r->period;
    return (struct source){copy - from + 1, (item - 1 - r->first) % r->period, f->place[def.id]};
}

/* Do both copies read the same places? The first copy of a stretch reads from outside what others read from the copy
 * before. */
static bool is_wired_alike(const struct finder *f, const struct weft_repeat *r, uint32_t a, uint32_t b)
{
    const struct weft_graph *const g = f->tree->graph;
    for (uint32_t i = 0; i < r->period && b * r->period + i < r->count; i++) {
        const struct described *const x = &f->described[r->first + a * r->period + i];
        const struct described *const y = &f->described[r->first + b * r->period + i];
        for (uint32_t k = 0; k < x->nodes; k++)
            for (unsigned o = 0; o < weft_node_of(g, x->node[k])->operands; o++) {
                const struct source s = source_of(f, r, a, weft_operand(g, x->node[k], o));
                const struct source t = source_of(f, r, b, weft_operand(g, y->node[k], o));
                const bool begins = a == 0 && !s.back && t.back > 1;
                if (!begins && (s.back != t.back || s.item != t.item || s.place != t.place))
                    return false;
            }
    }
    return true;
}

/* Items of a stretch up to the first whose name is not like that of its counterpart. */
static uint32_t count_alike(const struct weft_name_scope *scope, const struct weft_repeat *r)
{
    uint32_t i = r->period;
    while (i < r->count && are_alike(scope->item[r->first + i].name, scope->item[r->first + i % r->period].name))
        i++;
    return i;
}

/* Is a stretch large enough to be layers? */
static bool are_layers(const struct weft_name_scope *scope, const struct weft_repeat *r)
{
    bool scopes = false;
    for (uint32_t i = 0; i < r->period; i++)
        scopes |= scope->item[r->first + i].scope != 0;
    return scopes || (r->period >= LEAST_UNITS && r->copies >= LEAST_COPIES) || r->period >= LONG_UNITS;
}

/* Items from `first` on that equal the one a period later. */
static uint32_t run_length(const struct finder *f, const struct weft_name_scope *scope, uint32_t first, uint32_t period)
{
    uint32_t i = first;
    while (i + period < scope->items && f->described[i].number == f->described[i + period].number)
        i++;
    return i - first;
}

/* The copies that can stand for each other, from the first on. */
static uint32_t count_wired(const struct finder *f, const struct weft_repeat *r)
{
    uint32_t copies = 1;
    while (copies < r->copies && is_wired_alike(f, r, copies - 1, copies))
        copies++;
    return copies;
}

/* The longest stretch that begins at an item. */
static bool find_at(const struct finder *f, const struct weft_name_scope *scope, uint32_t first,
                    struct weft_repeat *ret)
{
    ret->count = 0;
    const uint32_t left = scope->items - first;
    for (uint32_t period = 1; period <= left / 2 && period <= MOST_PERIOD; period++) {
        const uint32_t run = run_length(f, scope, first, period);
        if (run < period || run + period <= ret->count)
            continue;
        bool has_less = false; /* a b a b is no period of its own */
        for (uint32_t part = 1; part <= period / 2 && !has_less; part++)
            has_less = period % part == 0 && run_length(f, scope, first, part) >= 2 * period - part;
        if (has_less)
            continue;
        struct weft_repeat r = {.first = first, .count = run + period, .period = period};
        r.count = count_alike(scope, &r);
        r.copies = (r.count + period - 1) / period;
        r.copies = count_wired(f, &r);
        r.count = r.copies * period < r.count ? r.copies * period : r.count;
        if (r.count >= 2 * period && r.count > ret->count && are_layers(scope, &r))
            *ret = r;
    }
    return ret->count > 0;
}

/* --- differences -------------------------------------------------------------------------------------------------- */

static const char *text_of(struct finder *f, weft_val value)
{
    f->text.length = 0;
    add_type(f, value);
    return weft_arena_copy(f->tree->arena, f->text.data, f->text.length);
}

/* "2 reshape less, 1 transpose more" */
static const char *count_ops(struct finder *f, const struct described *x, const struct described *y, const char *name)
{
    const struct weft_graph *const g = f->tree->graph;
    int32_t count[WEFT_OP_COUNT] = {0};
    int named = 0;
    for (uint32_t k = 0; k < x->nodes; k++)
        count[weft_opcode_of(g, x->node[k])]--;
    for (uint32_t k = 0; k < y->nodes; k++)
        count[weft_opcode_of(g, y->node[k])]++;
    f->text.length = 0;
    weft_text_format(&f->text, "unlike %s:", name);
    for (int op = 0; op < WEFT_OP_COUNT; op++)
        if (count[op] && ++named <= MOST_NAMED)
            weft_text_format(&f->text, "%s %d %s %s", named > 1 ? "," : "", abs(count[op]), weft_ops[op].name,
                             count[op] > 0 ? "more" : "less");
    weft_text_add(&f->text, named > MOST_NAMED ? ", …" : "");
    return named ? weft_arena_copy(f->tree->arena, f->text.data, f->text.length) : NULL;
}

/* Where two layers part. NULL: they are no layers of one kind, because they compute other things, or other sizes. */
static const char *first_difference(struct finder *f, const struct described *x, const struct described *y,
                                    const char *name)
{
    const struct weft_graph *const g = f->tree->graph;
    struct weft_arena *const arena = f->tree->arena;
    const uint32_t more = x->nodes > y->nodes ? x->nodes : y->nodes;
    if (more < LEAST_LAYER || (uint32_t)abs((int)x->nodes - (int)y->nodes) * 4 > more)
        return NULL;
    const char *const ops = count_ops(f, x, y, name);
    for (uint32_t k = 0; !ops && k < x->nodes; k++) {
        const weft_node a = x->node[k], b = y->node[k];
        const weft_val u = weft_result(g, a, 0), v = weft_result(g, b, 0);
        const char *const value = f->tree->text[v.id];
        if (weft_opcode_of(g, a) != weft_opcode_of(g, b))
            return weft_arena_format(arena, "unlike %s: another order, from %s = %s on", name, value,
                                     weft_op_of(g, b)->name);
        if (!weft_type_same(weft_type_of(g, u), weft_type_of(g, v)))
            return NULL;
        if (strcmp(kernel_of(g, a), kernel_of(g, b)) != 0)
            return weft_arena_format(arena, "unlike %s: %s by %s, not %s", name, value,
                                     kernel_of(g, b)[0] ? kernel_of(g, b) : "no kernel",
                                     kernel_of(g, a)[0] ? kernel_of(g, a) : "no kernel");
        const char *const one = text_of(f, u), *const two = text_of(f, v);
        if (strcmp(one, two) != 0)
            return weft_arena_format(arena, "unlike %s: %s is %s, not %s", name, value, two, one);
    }
    return ops ? ops : weft_arena_format(arena, "unlike %s: other attributes or operands", name);
}

static void name_differences(struct finder *f, struct weft_name_scope *scope)
{
    const struct weft_scope_item *last = NULL;
    for (uint32_t i = 0; i < scope->items; i++) {
        struct weft_scope_item *const item = &scope->item[i];
        if (!item->scope)
            continue;
        if (last && strcmp(last->name, item->name) != 0 && are_alike(last->name, item->name)) {
            const struct described *const before = &f->described[last - scope->item];
            if (before->number != f->described[i].number)
                item->difference = first_difference(f, before, &f->described[i], last->name);
        }
        last = item;
    }
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void choose_copy(struct weft_scopes *t, struct weft_repeat *r, const char *const *expand, size_t expands)
{
    const uint32_t whole = r->count / r->period;
    for (uint32_t i = 0; i < whole * r->period; i++)
        for (size_t e = 0; e < expands; e++)
            if (weft_scopes_is_called(t, &t->scope[r->scope].item[r->first + i], expand[e]))
                r->shown = i / r->period;
}

static void stand_in(struct finder *f, const struct weft_repeat *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct described *const from = &f->described[r->first + i];
        const struct described *const to = &f->described[r->first + r->shown * r->period + i % r->period];
        for (uint32_t k = 0; k < from->nodes && from != to; k++)
            f->tree->stand_in[from->node[k].id] = to->node[k];
    }
}

/* A node in two repeats was led to the inner one's copy, which the outer one leads on. */
static void follow_chains(const struct weft_scopes *t)
{
    weft_foreach_node(t->graph, n) {
        weft_node last = t->stand_in[n.id];
        while (t->stand_in[last.id].id != last.id)
            last = t->stand_in[last.id];
        t->stand_in[n.id] = last;
    }
}

void weft_scopes_repeat(struct weft_scopes *scopes, const char *const *expand, size_t expands)
{
    const uint32_t nodes = scopes->graph->nodes + 1;
    struct finder f = {.tree = scopes, .text = {.context = scopes->graph->context, .arena = scopes->arena},
                       .rank = weft_new(scopes->arena, uint32_t, nodes),
                       .item = weft_new(scopes->arena, uint32_t, nodes),
                       .place = weft_new(scopes->arena, uint32_t, nodes)};
    for (uint32_t s = 0; s < scopes->scopes; s++) { /* outer scopes first: follow_chains */
        struct weft_name_scope *const scope = &scopes->scope[s];
        if (scope->items < 2)
            continue;
        describe_items(&f, scope);
        name_differences(&f, scope);
        struct weft_repeat r = {0};
        for (uint32_t i = 0; i < scope->items; i += r.count ? r.count : 1) {
            if (!find_at(&f, scope, i, &r))
                continue;
            r.scope = s;
            choose_copy(scopes, &r, expand, expands);
            stand_in(&f, &r);
            scopes->repeat = weft_grow(scopes->arena, scopes->repeat, &scopes->repeat_capacity, scopes->repeats + 1,
                                       sizeof *scopes->repeat);
            scopes->repeat[scopes->repeats++] = r;
        }
        forget_items(&f, scope);
    }
    follow_chains(scopes);
}
