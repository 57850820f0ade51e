/* SPDX-License-Identifier: Apache-2.0 */
/* alias.c: who wants to live where, in which order they are asked, and what they are told. The contract: alias.h. */
#include "sched/alias.h"

#include <string.h>

static const char who[] = "mark_aliases";

enum { LINE = 64 }; /* where memory of one's own begins at least */

/* --- where results are computed ----------------------------------------------------------------------------------- */

struct weft_layout weft_alias_param_layout(const struct weft_alias_query *q, uint32_t i)
{
    return q->param_layout ? q->param_layout[i] : weft_own_layout(q->graph, q->graph->param[i]);
}

static bool keeps_all(const struct weft_graph *g, weft_node view)
{
    return weft_op_of(g, view)->traits & WEFT_BIJECTIVE;
}

/* What v is a view of, and how v lies if that is stored as its layout says: through reshapes and transposes, which keep
 * all elements, or through `any` views. False where one of them cannot be a view. */
static bool find_source(const struct weft_graph *g, weft_val v, bool any, weft_val *ret_source,
                        struct weft_layout *ret_layout)
{
    enum { MOST_VIEWS = 16 };
    weft_node view[MOST_VIEWS];
    int views = 0;
    for (weft_node n = weft_def(g, v); any ? weft_is_view(g, n) : n.id && keeps_all(g, n); n = weft_def(g, v)) {
        if (views == MOST_VIEWS)
            return false;
        view[views++] = n;
        v = weft_operand(g, n, 0);
    }
    *ret_source = v;
    *ret_layout = weft_own_layout(g, v);
    while (views > 0) {
        const struct weft_layout from = *ret_layout;
        if (!weft_view_layout(g, view[--views], &from, ret_layout))
            return false;
    }
    return true;
}

/* A result whose layout is left open lies like what it is a view of, packed: in its order, and with elements of its own
 * for those that are repeated. */
static struct weft_layout open_layout(const struct weft_graph *g, weft_val v)
{
    weft_val source;
    struct weft_layout layout;
    if (!find_source(g, v, /* any= */ true, &source, &layout))
        return weft_layout_row_major(weft_type_of(g, v)->rank);
    layout.dense = true;
    layout.align = 0;
    layout.offset = weft_dim_of(0);
    return layout;
}

static bool is_open(const struct weft_alias_query *q, uint32_t i)
{
    return !q->return_layout && weft_layout_of(q->graph, q->graph->ret[i].value).kind == WEFT_UNDECIDED;
}

static const struct weft_layout *keep(struct weft_graph *g, const struct weft_layout *layout)
{
    struct weft_layout *kept = weft_new(g->arena, struct weft_layout, 1);
    *kept = *layout;
    return kept;
}

/* The value itself, or what it is a view of, is computed in the caller's memory, unless that has a home already: a
 * parameter, a constant, the value of an earlier result. Then a copy at the end fills it. */
static void find_return(const struct weft_alias_query *q, uint32_t i, struct weft_aliases *aliases)
{
    struct weft_graph *g = q->graph;
    struct weft_alias_return *ret = &aliases->ret[i];
    weft_val v = g->ret[i].value, source;
    struct weft_layout view;
    ret->layout = is_open(q, i)      ? open_layout(g, v)
                  : q->return_layout ? q->return_layout[i]
                                     : weft_own_layout(g, v);
    struct weft_layout computed = ret->layout;
    if (find_source(g, v, /* any= */ false, &source, &view) && !weft_is(source, v) &&
        weft_alias_sees_root(q->units, v, source, 0) &&
        weft_layout_equal(g->dims, &view, &ret->layout, weft_type_of(g, v))) {
        v = source;
        computed = weft_own_layout(g, v);
    }
    const weft_node def = weft_def(g, v);
    const uint32_t not_computed = weft_unit_of(q->units, def)->nodes > 1 ? WEFT_SOURCE : WEFT_VIEW | WEFT_SOURCE;
    if (!def.id || aliases->of[v.id].layout || (weft_op_of(g, def)->traits & not_computed) ||
        (q->elsewhere && q->elsewhere(q->user, v)))
        return;
    aliases->of[v.id].layout = keep(g, &computed);
    ret->computed = v;
}

static void find_returns(const struct weft_alias_query *q, struct weft_aliases *ret)
{
    for (uint32_t i = 0; i < q->graph->returns; i++)
        find_return(q, i, ret);
}

static void open_result(const struct weft_alias_query *q, struct weft_aliases *ret)
{
    struct weft_graph *g = q->graph;
    *ret = (struct weft_aliases){.label = weft_value_labels(g, g->arena),
                                 .of = weft_new(g->arena, struct weft_alias, g->values),
                                 .ret = weft_new(g->arena, struct weft_alias_return, g->returns)};
    for (uint32_t i = 1; i < g->values; i++)
        ret->of[i] = (struct weft_alias){.owner = {i}, .until = UINT32_MAX};
}

void weft_find_returns(const struct weft_alias_query *query, struct weft_aliases *ret)
{
    open_result(query, ret);
    find_returns(query, ret);
}

const char *weft_alias_word(struct weft_graph *g, const struct weft_aliases *aliases, weft_val v)
{
    char *word = weft_arena_format(g->arena, "%%%s", aliases->label[v.id]);
    for (char *c = word; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("#{}[]=!\"", *c))
            *c = '_';
    return word;
}

/* --- one wish ----------------------------------------------------------------------------------------------------- */

/* `operand` wants to be in the place of `host`, at `place` of the memory that the host is in. */
struct wish {
    uint8_t kind;
    weft_val operand, host;
    struct weft_layout place;
    weft_node over;                 /* OVER: the node that overwrites it */
    struct weft_layout result;      /* and how its result is stored */
};

static bool has_data_symbols(const struct weft_graph *g)
{
    for (uint32_t s = 0; s < weft_symbol_count(g->dims); s++)
        if (weft_symbol_at(g->dims, s)->data)
            return true;
    return false;
}

static bool depends_on_data(const struct weft_aliasing *a, weft_val v)
{
    const struct weft_graph *g = a->graph;
    const struct weft_type *type = weft_type_of(g, v);
    for (uint32_t s = 0; a->sized_by_data && s < weft_symbol_count(g->dims); s++)
        for (int i = 0; weft_symbol_at(g->dims, s)->data && i < type->rank; i++)
            if (weft_dim_mentions(g->dims, type->extent[i], s))
                return true;
    return false;
}

static struct weft_layout layout_in_owner(const struct weft_aliasing *a, weft_val v)
{
    if (a->result->of[v.id].layout)
        return *a->result->of[v.id].layout;
    return a->graph->value[v.id].is_param ? weft_alias_param_layout(a->query, a->graph->value[v.id].result)
                                          : weft_own_layout(a->graph, v);
}

static const char *check_time(struct weft_aliasing *a, const struct wish *wish, weft_val root,
                              const struct weft_layout *layout)
{
    const struct weft_alias *host = &a->result->of[wish->host.id];
    const char *reason = NULL;
    if (wish->kind == WEFT_ALIAS_OVER)
        reason = weft_alias_check_readers(a, root, layout, a->units->of[wish->over.id], wish->over, &wish->result);
    else if (host->until != UINT32_MAX)
        reason = weft_alias_check_readers(a, root, layout, host->until, WEFT_NO_NODE, NULL);
    return reason ? reason : weft_alias_check_old(a, host->owner, weft_def(a->graph, root), layout);
}

/* Is it a step of its own, so that operands may be in their places already? */
static bool is_part(const struct weft_aliasing *a, weft_node n)
{
    const int op = weft_opcode_of(a->graph, n);
    return (op == WEFT_OP_concat || op == WEFT_OP_pad) && weft_unit_of(a->units, n)->nodes == 1;
}

/* A place in a concat saves a copy, one that is written over saves only memory: the first goes before the second. */
static const char *check_copies(struct weft_aliasing *a, weft_val root, weft_node over)
{
    const struct weft_graph *g = a->graph;
    const weft_node def = weft_def(g, root);
    if (a->wanted[root.id])
        return "it is wanted inside another result";
    const uint32_t parts = is_part(a, def) ? weft_places_in(g, def) : 0;
    for (uint32_t i = 0; i < parts; i++) {
        weft_val part = weft_operand(g, def, i);
        if (weft_alias_root(g, &part, NULL) || a->last[part.id].position < a->units->of[over.id])
            continue;
        a->reader = a->last[part.id].reader;
        return "a part of it, which is computed inside, is read later";
    }
    return NULL;
}

const char *weft_alias_noted(const struct weft_plan_note *note)
{
    for (uint32_t i = 0; note && i < note->count; i++)
        if (strcmp(note->key[i], "in") == 0)
            return note->value[i];
    return NULL;
}

/* Whoever keeps kernels keeps notes: then what stands there already is no rewrite. */
static bool may_mark(const struct weft_aliasing *a, weft_val root, weft_val host)
{
    const char *noted = a->query->keep_kernels ? weft_alias_noted(a->graph->node[weft_def(a->graph, root).id].plan)
                                               : NULL;
    return (noted && strcmp(noted, weft_alias_word(a->graph, a->result, host)) == 0) ||
           weft_permit(a->graph, who, root);
}

bool weft_alias_has_kernel(const struct weft_graph *g, weft_node n)
{
    const struct weft_node_info *info = &g->node[n.id];
    const struct weft_plan_note *group = info->group ? g->group[info->group].plan : NULL;
    return (info->plan && info->plan->kernel) || (group && group->kernel);
}

/* A value whose layout states its alignment is wanted at such an address (pass align_buffers): memory of its own has
 * it, a place inside of another value or of the caller's may not. */
static const char *check_alignment(const struct weft_aliasing *a, const struct wish *wish, weft_val root)
{
    const struct weft_alias *host = &a->result->of[wish->host.id];
    const uint32_t align = weft_layout_of(a->graph, root).align;
    const bool has_own = wish->kind == WEFT_ALIAS_OVER && host->kind == WEFT_ALIAS_OWN && !host->layout &&
                         !a->graph->value[wish->host.id].is_param;
    return align <= wish->place.align || (has_own && align <= LINE) ? NULL : "it has to be aligned";
}

static const char *try_to_grant(struct weft_aliasing *a, const struct wish *wish)
{
    struct weft_graph *g = a->graph;
    const struct weft_alias host = a->result->of[wish->host.id];
    struct weft_layout layout = wish->place;
    weft_val root = wish->operand;
    a->reader = WEFT_NO_NODE;
    if (depends_on_data(a, wish->host) || depends_on_data(a, root))
        return "its place depends on sizes that come out of data";
    const bool over = wish->kind == WEFT_ALIAS_OVER;
    const char *reason = weft_alias_root(g, &root, &layout);
    if (!reason && !weft_alias_sees_root(a->units, wish->operand, root, over ? a->units->of[wish->over.id] : 0))
        reason = "it is a view that a group makes";
    if (!reason && a->query->elsewhere && a->query->elsewhere(a->query->user, root))
        reason = "it is read where it lies in another value";
    if (!reason && a->query->keep_kernels &&
        (weft_alias_has_kernel(g, weft_def(g, root)) || (over && weft_alias_has_kernel(g, wish->over))))
        reason = "a kernel of the caller's writes it";
    reason = reason ? reason : check_alignment(a, wish, root);
    if (!reason && over)
        reason = check_copies(a, root, wish->over);
    reason = reason ? reason : check_time(a, wish, root, &layout); /* before what walks over all views */
    reason = reason ? reason : weft_alias_check_root(a, root, &layout, wish->operand, &wish->place, wish->kind);
    if (!reason && weft_dims_tried(g->dims))
        reason = "its place has no expression";
    if (!reason && !may_mark(a, root, wish->host))
        reason = "no more rewrites are allowed";
    if (reason)
        return reason;
    a->result->of[root.id] = (struct weft_alias){
        .kind = wish->kind, .in = wish->host, .owner = host.owner, .layout = keep(g, &layout),
        .until = over ? a->units->of[wish->over.id] : host.until};
    a->result->marked[wish->kind]++;
    return NULL;
}

static const char *ask(struct weft_aliasing *a, const struct wish *wish)
{
    static const char *const done[] = {[WEFT_ALIAS_PART] = "computed inside %%%s%s",
                                       [WEFT_ALIAS_OVER] = "computed where %%%s is written over it%s",
                                       [WEFT_ALIAS_UPDATED] = "computed in the memory of %%%s%s"};
    const char *const operand = a->result->label[wish->operand.id], *const host = a->result->label[wish->host.id];
    weft_dims_try(a->graph->dims);
    const char *reason = try_to_grant(a, wish);
    (void)weft_dims_tried(a->graph->dims);
    if (!reason)
        weft_add_remark_at(a->graph, who, operand, "done", done[wish->kind], host, "");
    else if (wish->kind != WEFT_ALIAS_OVER || a->reader.id) /* most operands are parameters, constants, broadcasts */
        weft_add_remark_at(a->graph, who, operand, "refused", "%s %%%s: %s%s%s",
                           wish->kind == WEFT_ALIAS_OVER ? "not overwritten by" : "copied into", host, reason,
                           a->reader.id ? ", by %" : "",
                           a->reader.id ? a->result->label[weft_result(a->graph, a->reader, 0).id] : "");
    return reason;
}

/* --- all wishes --------------------------------------------------------------------------------------------------- */

static void collect_wanted(struct weft_aliasing *a)
{
    const struct weft_graph *g = a->graph;
    weft_foreach_node(g, n) {
        for (uint32_t i = 0; is_part(a, n) && i < weft_places_in(g, n); i++) {
            weft_val root = weft_operand(g, n, i);
            if (!weft_alias_root(g, &root, NULL))
                a->wanted[root.id] = true;
        }
    }
}

/* The result of the graph that is the new value must lie in the parameter as it is promised to the caller. */
static void ask_for_new_value(struct weft_aliasing *a, uint32_t i)
{
    const struct weft_graph *g = a->graph;
    const weft_val param = g->ret[i].mut, v = g->ret[i].value;
    struct wish wish = {.kind = WEFT_ALIAS_UPDATED, .operand = v, .host = param,
                        .place = layout_in_owner(a, param)};
    const struct weft_layout promised = weft_own_layout(g, v);
    if (!is_open(a->query, i) && !weft_same_places(g, weft_type_of(g, v), &promised, &wish.place)) {
        weft_add_remark_at(g->root, who, a->result->label[v.id], "refused",
                           "copied into %%%s: its stated layout differs", a->result->label[param.id]);
        return;
    }
    if (promised.kind == WEFT_STORED && promised.align > wish.place.align) {
        weft_add_remark_at(g->root, who, a->result->label[v.id], "refused",
                           "copied into %%%s: its stated alignment is %u bytes, and that has less",
                           a->result->label[param.id], promised.align);
        return;
    }
    a->result->ret[i].updated = weft_is(v, param) || !ask(a, &wish);
    if (a->result->ret[i].updated)
        a->result->ret[i].layout = wish.place;
}

static bool may_host(const struct weft_aliasing *a, weft_node n, uint32_t operand)
{
    return !a->query->hosts || a->query->hosts(a->query->user, n, operand);
}

static void ask_for_parts(struct weft_aliasing *a, weft_node n)
{
    const struct weft_graph *g = a->graph;
    struct wish wish = {.kind = WEFT_ALIAS_PART, .host = weft_result(g, n, 0)};
    const struct weft_layout result = layout_in_owner(a, wish.host);
    const uint32_t places = weft_places_in(g, n);
    weft_dim along = weft_dim_of(0);
    for (uint32_t i = 0; i < places; i++) {
        wish.operand = weft_operand(g, n, i);
        if (!may_host(a, n, i))
            weft_add_remark_at(g->root, who, a->result->label[wish.operand.id], "refused",
                               "copied into %%%s: a kernel of the caller's does that", a->result->label[wish.host.id]);
        else if (weft_place_in(g, n, i, along, &result, &wish.place))
            ask(a, &wish);
        else
            weft_add_remark_at(g->root, who, a->result->label[wish.operand.id], "refused",
                               "copied into %%%s: that is stored with split axes", a->result->label[wish.host.id]);
        along = weft_index_behind(g, (struct weft_pin){n, .index = i}, along);
    }
}

/* The first operand that may is written over. */
static void ask_for_overwriting(struct weft_aliasing *a, weft_node n)
{
    const struct weft_graph *g = a->graph;
    struct wish wish = {.kind = WEFT_ALIAS_OVER, .host = weft_result(g, n, 0), .over = n};
    wish.result = layout_in_owner(a, wish.host);
    const uint32_t places = weft_places_in(g, n);
    for (uint32_t i = 0; i < places; i++) {
        wish.operand = weft_operand(g, n, i);
        if (may_host(a, n, i) && weft_place_in(g, n, i, weft_dim_of(0), &wish.result, &wish.place) && !ask(a, &wish))
            return;
    }
}

/* The same of an output of a group: the first of the values that it reads which may. */
static void ask_for_overwriting_by_group(struct weft_aliasing *a, weft_node n)
{
    const struct weft_graph *g = a->graph;
    struct wish wish = {.kind = WEFT_ALIAS_OVER, .host = weft_result(g, n, 0), .over = n};
    if (g->node[n.id].results != 1 || !weft_unit_stores(a->units, wish.host) ||
        weft_dtype_bits(weft_type_of(g, wish.host)->dtype) < 8)
        return;
    wish.place = wish.result = layout_in_owner(a, wish.host);
    const uint32_t count = weft_alias_find_candidates(a, n);
    for (uint32_t i = 0; i < count; i++) {
        wish.operand = a->candidate[i].value;
        if (!ask(a, &wish))
            return;
    }
}

/* A concat inside of a group is done by the group, which copies. */
static void refuse_parts_of_group(struct weft_aliasing *a, weft_node n)
{
    const struct weft_graph *g = a->graph;
    const weft_val host = weft_result(g, n, 0);
    const int op = weft_opcode_of(g, n);
    for (uint32_t i = 0; (op == WEFT_OP_concat || op == WEFT_OP_pad) && i < weft_places_in(g, n); i++)
        if (weft_unit_stores(a->units, host) && weft_unit_stores(a->units, weft_operand(g, n, i)))
            weft_add_remark_at(g->root, who, a->result->label[weft_operand(g, n, i).id], "refused",
                               "copied into %%%s: group @%s does that", a->result->label[host.id],
                               g->group[g->node[n.id].group].name);
}

static void ask_for_places(struct weft_aliasing *a, weft_node n)
{
    if (is_part(a, n)) {
        ask_for_parts(a, n);
    } else if (weft_unit_of(a->units, n)->nodes == 1) {
        ask_for_overwriting(a, n);
    } else {
        refuse_parts_of_group(a, n);
        ask_for_overwriting_by_group(a, n);
    }
}

void weft_find_aliases(const struct weft_alias_query *query, struct weft_aliases *ret)
{
    struct weft_graph *g = query->graph;
    struct weft_arena *scratch = &g->root->scratch;
    open_result(query, ret);
    struct weft_aliasing a = {.query = query, .graph = g, .units = query->units, .result = ret,
                              .wanted = weft_new(scratch, bool, g->values),
                              .last = weft_new(scratch, struct weft_last, g->values),
                              .sized_by_data = has_data_symbols(g)};
    collect_wanted(&a);
    weft_alias_find_last(a.units, query, a.last);
    for (uint32_t i = 0; i < g->returns; i++)
        if (g->ret[i].mut.id)
            ask_for_new_value(&a, i);
    find_returns(query, ret);
    for (weft_node n = g->last; n.id; n = g->node[n.id].previous)
        ask_for_places(&a, n);
}
