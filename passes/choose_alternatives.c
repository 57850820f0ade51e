/* SPDX-License-Identifier: Apache-2.0 */
/* choose_alternatives: compute a node by another subgraph where that is predicted to be faster.
 *
 *   %p: f32[512,4] = matmul %x, %v          %c: f32[512,6] = matmul %x, %vw       %vw: both weights, side by side
 *   %q: f32[512,2] = matmul %x, %w      →   %p: f32[512,4] = slice %c start=[0 0] end=[512 4]
 *                                           %q: f32[512,2] = slice %c start=[0 4] end=[512 6]
 *
 * For each node and each alternative for its op (alternatives.def, then the caller's: weft/alternative.h) that fits:
 *
 *   node ──► trial: a graph of it alone ──► passes ──► price         as it is
 *        ──► trial ──build──► passes ─────────────────► price        as the alternative has it
 *
 * and the cheapest, where it is cheaper by a fiftieth at least (WEFT_FORMAT_HARDLY), is copied from its trial in front
 * of the node, as its passes have left it: with layouts and relayouts, but without groups, so that fuse may join its
 * last nodes with the node's readers. Trials know nothing of neighbours: what is computed on the way behind the node is
 * taken to be computed behind the alternative at the same price.
 *
 * Needs: layouts, which say where a node's operands lie. Before all passes that form groups. Rounds elsewhere, as the
 * alternative does. Not done: nodes in groups or with a kernel of the caller's; sizes that come out of data, since a
 * trial has no node that finds them; operands and results in blocks; alternatives of alternatives. */
#include "ir/public.h"
#include "ir/validate.h"
#include "passes/alternatives.h"
#include "passes/passes.h"
#include "sched/format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char who[] = "choose_alternatives";

enum { MOST_NODES = 16 };

/* Nodes and what computes them. */
struct weighed {
    struct weft_graph *graph;    /* the trial */
    weft_val *source;            /* by parameter of it: the value of the graph */
    weft_node node[MOST_NODES];
    uint32_t nodes;
    int64_t ps, plain_ps;        /* predicted; and of the nodes as they are */
    char who[96];                /* "choose_alternatives.decompose_k" */
    bool is_forced;
};

struct choosing {
    struct weft_graph *graph;
    const struct weft_target *target;
    struct weighed now, best;    /* being looked at; the best of the node so far, graph NULL: none */
    struct weft_graph *plain;    /* the trial of the nodes as they are */
    struct weft_graph *copy;     /* of a trial: on which groups are formed */
    weft_val *map;               /* by value of the graph, none: for those who copy nodes into a trial */
    uint32_t mapped;             /* how many values it has room for */
    bool has_data_sizes, failed, changed;
};

static void drop(struct weft_graph **graph)
{
    weft_graph_free(*graph);
    *graph = NULL;
}

/* What layouts put in front of a relayout has no name, and is refused all the same. */
static void refuse(struct weft_graph *g, const char *name, weft_val where, const char *format, ...) WEFT_PRINTF(4, 5);
static void refuse(struct weft_graph *g, const char *name, weft_val where, const char *format, ...)
{
    char reason[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (g->value[where.id].name)
        weft_refuse(g, name, where, "%s", reason);
    else
        weft_add_remark(g, name, where, "refused", "%s", reason);
}

/* --- which nodes -------------------------------------------------------------------------------------------------- */

static bool takes_value(const struct choosing *c, weft_val v)
{
    const struct weft_graph *const g = c->graph;
    const struct weft_layout *const layout = weft_layout_peek(g, g->value[v.id].layout, weft_type_of(g, v)->rank);
    return layout->kind == WEFT_STORED && !weft_is_split(g, v) &&
           (!c->has_data_sizes || weft_type_is_constant(weft_type_of(g, v)));
}

/* Has it none that data decide, as the bounds of a slice may be? */
static bool takes_attrs(const struct choosing *c, weft_node n)
{
    const struct weft_node_info *const info = &c->graph->node[n.id];
    bool takes = true;
    for (unsigned i = 0; c->has_data_sizes && i < info->attrs; i++) {
        const struct weft_attr *const attr = &info->attr[i];
        takes = takes && (attr->kind != WEFT_ATTR_INT || weft_dim_is_constant(attr->integer));
        for (uint32_t k = 0; attr->kind == WEFT_ATTR_INTS && k < attr->count; k++)
            takes = takes && weft_dim_is_constant(attr->integers[k]);
    }
    return takes;
}

static bool takes_node(const struct choosing *c, weft_node n)
{
    const struct weft_graph *const g = c->graph;
    const struct weft_node_info *const info = &g->node[n.id];
    bool takes = !info->dead && !weft_is_decided(g, n) && !info->constant && info->results > 0 &&
                 !(weft_ops[info->op].traits & WEFT_CONTROL) && takes_attrs(c, n);
    for (unsigned i = 0; takes && i < info->operands; i++)
        takes = takes_value(c, weft_operand(g, n, i));
    for (unsigned i = 0; takes && i < info->results; i++)
        takes = takes_value(c, weft_result(g, n, i));
    return takes;
}

/* Is all that it reads there in front of the first node? */
static bool can_move(const struct choosing *c, weft_node n, weft_node first)
{
    struct weft_graph *const g = c->graph;
    weft_require(g, WEFT_ORDER);
    for (unsigned i = 0; i < g->node[n.id].operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        const weft_node def = weft_def(g, v);
        if (def.id && !weft_is_const(g, v) && g->position[def.id] >= g->position[first.id])
            return false;
    }
    return true;
}

/* NULL, or why these nodes are not taken together. */
static const char *collect(struct choosing *c, const struct weft_alternative *a, weft_node n)
{
    struct weft_graph *const g = c->graph;
    struct weighed *const w = &c->now;
    weft_node beside[MOST_NODES] = {{0}};
    w->node[0] = n;
    w->nodes = 1;
    const size_t more = a->beside ? a->beside(a->user, g, weft_node_out(g, n), beside, MOST_NODES - 1) : 0;
    if (more > MOST_NODES - 1)
        return "it takes more nodes than there is room for";
    for (size_t i = 0; i < more; i++) {
        const weft_node other = {.id = beside[i].id};
        bool is_new = weft_node_is_in(g, beside[i]) && takes_node(c, other);
        for (uint32_t k = 0; is_new && k < w->nodes; k++)
            is_new = w->node[k].id != other.id;
        if (!is_new || !can_move(c, other, n))
            return "a node beside it is none that can be computed here";
        w->node[w->nodes++] = other;
    }
    return NULL;
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

/* In *ret_source: by parameter of the trial, the value of the graph. Takes no time that grows with the graph. */
static void open_trial(struct choosing *c, struct weft_graph **ret_trial, weft_val **ret_source)
{
    struct weft_graph *const g = c->graph;
    size_t operands = 1;
    for (uint32_t i = 0; i < c->now.nodes; i++)
        operands += g->node[c->now.node[i].id].operands;
    *ret_source = weft_new(&g->root->scratch, weft_val, operands);
    if (c->mapped < g->values) {
        c->mapped = 2 * g->values;
        c->map = weft_new(&g->root->scratch, weft_val, c->mapped);
    }
    weft_graph_copy_nodes(g, c->now.node, c->now.nodes, c->map, ret_trial, *ret_source);
    (*ret_trial)->rewrite_limit = -1; /* one decision, which the graph counts */
}

/* Picoseconds, or -1 and whose nobody knows. */
static int64_t price(struct choosing *c, struct weft_graph *trial, const char **ret_why)
{
    weft_pipeline_try(trial, c->target, WEFT_PHASE_OPEN, WEFT_PHASE_PLACE);
    const int64_t ps = weft_alternative_price(trial, c->target, &c->copy, ret_why);
    drop(&c->copy);
    return ps;
}

static void fail(struct choosing *c, const char *name, int status, const char *format, const char *what)
{
    const struct weft_graph *const g = c->graph;
    char message[160];
    snprintf(message, sizeof message, format, what);
    const char *const where = weft_value_text(g, weft_result(g, c->now.node[0], 0));
    weft_error(g->context, status, &(struct weft_place){.file = g->root->file, .where = where}, "alternative %s: %s",
               name, message);
    c->failed = true;
}

/* The same number of results, of the same types? They are to lie as the old ones. */
static bool take_results(struct choosing *c, const char *name, const weft_val *old, uint32_t count)
{
    struct weft_graph *const t = c->now.graph;
    if (t->returns != count) {
        fail(c, name, WEFT_ERR_INVALID, "it returns %s results than the nodes have",
             t->returns < count ? "fewer" : "more");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const weft_val new = t->ret[i].value;
        if (!weft_type_same(weft_type_of(t, new), weft_type_of(t, old[i]))) {
            struct weft_text text = {.arena = &t->scratch};
            weft_type_print(t->dims, weft_type_of(t, old[i]), &text);
            weft_text_add(&text, ", but ");
            weft_type_print(t->dims, weft_type_of(t, new), &text);
            fail(c, name, WEFT_ERR_INVALID, "what it returns is not of the type %s", text.data);
            return false;
        }
        if (t->value[new.id].is_param || t->value[new.id].returns > 1) {
            fail(c, name, WEFT_ERR_INVALID, "it returns %s: a reshape of it is a value of its own",
                 t->value[new.id].is_param ? "an operand" : "one value twice");
            return false;
        }
        weft_take_layout(t, new, old[i]);
    }
    return true;
}

/* 1 if it was built, 0 if not; or it has failed. */
static bool build(struct choosing *c, const struct weft_alternative_entry *entry)
{
    struct weft_graph *const t = c->now.graph;
    struct weft_context *const context = t->context;
    const int32_t errors = context->error_count;
    const uint32_t params = t->params, count = t->returns;
    weft_node node[MOST_NODES];
    weft_val *const old = weft_new(t->arena, weft_val, count);
    uint32_t nodes = 0;
    weft_foreach_node(t, n) {
        if (!t->node[n.id].constant)
            node[nodes++] = weft_node_out(t, n);
    }
    for (uint32_t i = 0; i < count; i++)
        old[i] = t->ret[i].value;
    const int status = entry->given.build(entry->given.user, t, node, nodes);
    if (status < 0 || context->error_count > errors)
        fail(c, entry->name, status < 0 ? status : context->error_status, "it could not be built: %s",
             weft_status_text(status < 0 ? status : context->error_status));
    else if (t->params != params)
        fail(c, entry->name, WEFT_ERR_INVALID, "%s", "it has added parameters");
    else if (status > 0 && take_results(c, entry->name, old, count) && !weft_validate_graph(t))
        fail(c, entry->name, WEFT_ERR_INVALID, "%s", "it is not valid");
    return status > 0 && !c->failed;
}

/* --- weighing ----------------------------------------------------------------------------------------------------- */

/* Is it handed to the caller, or read by what a product, reduction or the like could have computed on the way? */
static bool needs_step_of_view(const struct weft_graph *g, weft_val v)
{
    bool needs = g->value[v.id].returns > 0;
    for (uint32_t use = g->value[v.id].first_use; use && !needs; use = g->slot[use - 1].next)
        needs = weft_op_of(g, g->slot[use - 1].node)->traits & WEFT_ELEMENTWISE;
    return needs;
}

/* Views are computed by nobody: the caller's results are copied then, and readers are steps of their own. */
static int64_t behind_views_ps(const struct choosing *c)
{
    const struct weft_graph *const g = c->graph;
    struct weft_graph *const t = c->now.graph;
    const struct weft_formats formats = {.graph = t, .target = c->target, .arena = &t->scratch};
    int64_t ps = 0;
    for (uint32_t i = 0, next = 0; i < c->now.nodes; i++)
        for (unsigned k = 0; k < g->node[c->now.node[i].id].results; k++) {
            const weft_val made = t->ret[next++].value;
            const struct weft_layout layout = weft_layout_of(t, made);
            if (weft_is_view(t, weft_def(t, made)) && needs_step_of_view(g, weft_result(g, c->now.node[i], k)))
                ps += weft_format_relayout_ps(&formats, made, &layout, &layout);
        }
    return ps;
}

/* What it costs, as it says itself or as its trial says; false, with a remark: nobody knows. */
static bool find_cost(struct choosing *c, const struct weft_alternative *a, weft_val where)
{
    struct weft_graph *const g = c->graph;
    const char *why = NULL;
    c->now.ps = price(c, c->now.graph, &why);
    const bool is_known = c->now.ps >= 0;
    c->now.ps += is_known ? behind_views_ps(c) : 0;
    if (a->cost_ns) {
        const double ns = a->cost_ns(a->user, g, weft_node_out(g, c->now.node[0]));
        if (!(ns >= 0 && ns < 1e10)) {
            refuse(g, c->now.who, where, "its cost is %g ns, which cannot be", ns);
            return false;
        }
        c->now.ps = (int64_t)(ns * 1e3);
        return true;
    }
    if (!is_known && c->now.is_forced)
        c->now.ps = 0;
    else if (!is_known)
        refuse(g, c->now.who, where, "nobody knows what its %s takes: state a cost", why);
    return is_known || c->now.is_forced;
}

/* Keeps it if it is the best so far. */
static void compare(struct choosing *c, weft_val where)
{
    struct weft_graph *const g = c->graph;
    const struct weighed *const w = &c->now;
    const double us = (double)w->ps * 1e-6, plain_us = (double)w->plain_ps * 1e-6;
    const int64_t gain = w->plain_ps - w->ps, best = c->best.plain_ps - c->best.ps;
    const bool pays = gain > w->plain_ps / WEFT_FORMAT_HARDLY || w->is_forced;
    if (!pays)
        refuse(g, w->who, where, "it would take %.3f us, as it is %.3f us", us, plain_us);
    else if (c->best.graph && best >= gain)
        refuse(g, w->who, where, "it would take %.3f us, as it is %.3f us; %s saves more", us, plain_us,
               c->best.who);
    else {
        if (c->best.graph)
            refuse(g, c->best.who, where, "it would take %.3f us, as it is %.3f us; %s saves more",
                   (double)c->best.ps * 1e-6, (double)c->best.plain_ps * 1e-6, w->who);
        drop(&c->best.graph);
        c->best = c->now;
        c->now.graph = NULL;
    }
}

/* What the nodes take as they are; false, with a remark: nobody knows, and it is not asked for. */
static bool find_plain(struct choosing *c, weft_val where)
{
    const char *why = NULL;
    weft_val *source;
    open_trial(c, &c->plain, &source);
    c->now.plain_ps = price(c, c->plain, &why);
    drop(&c->plain);
    if (c->now.plain_ps < 0 && !c->now.is_forced)
        refuse(c->graph, c->now.who, where, "nobody knows what its %s takes as it is", why);
    return c->now.plain_ps >= 0 || c->now.is_forced;
}

static void weigh(struct choosing *c, const struct weft_alternative_entry *entry, weft_node n)
{
    struct weft_graph *const g = c->graph;
    struct weighed *const w = &c->now;
    const weft_val where = weft_result(g, n, 0);
    snprintf(w->who, sizeof w->who, "%s.%s", who, entry->name);
    if (weft_environment_names("WEFT_SKIP", w->who, /* all= */ false) ||
        (entry->given.fits && !entry->given.fits(entry->given.user, g, weft_node_out(g, n))))
        return;
    const char *const misfit = collect(c, &entry->given, n);
    if (misfit) {
        refuse(g, w->who, where, "%s", misfit);
        return;
    }
    w->is_forced = weft_alternative_is_forced(entry->name);
    open_trial(c, &w->graph, &w->source);
    if (build(c, entry) && find_cost(c, &entry->given, where) && find_plain(c, where))
        compare(c, where);
    drop(&w->graph);
}

/* --- taking it ---------------------------------------------------------------------------------------------------- */

/* Kernels of what is new are recorded, as those of the old nodes were. */
static void settle(struct choosing *c, uint32_t first_new)
{
    struct weft_graph *const g = c->graph;
    const struct weft_formats formats = {.graph = g, .target = c->target, .arena = g->arena};
    const int64_t *const symbols = weft_hint_symbols(g, g->arena);
    const struct weft_units units = weft_units_find(g, &g->root->scratch);
    for (uint32_t id = first_new; id < g->nodes; id++) {
        if (g->node[id].dead || g->node[id].constant)
            continue;
        const struct weft_unit *const unit = weft_unit_of(&units, (weft_node){.id = id});
        if (!weft_is_view(g, unit->first))
            g->node[id].choices = weft_format_first_choice(&formats, symbols, unit);
    }
}

static void take(struct choosing *c)
{
    struct weft_graph *const g = c->graph;
    struct weighed *const w = &c->best;
    const uint32_t first_new = g->nodes;
    const weft_val where = weft_result(g, w->node[0], 0);
    weft_val *const result = weft_new(&g->root->scratch, weft_val, w->graph->returns);
    const char *const label = weft_value_text(g, where); /* as numbered before there are others; with % */
    if (!weft_permit(g, w->who, where))
        return;
    const char *const why = weft_graph_inline(g, w->node[0], w->graph, w->source, result);
    if (why) {
        refuse(g, w->who, where, "its subgraph cannot stand here: %s", why);
        return;
    }
    weft_add_remark_at(g, w->who, label + 1, "chose",
                       "predicted to take %.3f us, as it is %.3f us; %u node%s in the place of %u",
                       (double)w->ps * 1e-6, (double)w->plain_ps * 1e-6, w->graph->live_nodes,
                       w->graph->live_nodes == 1 ? "" : "s", w->nodes);
    for (uint32_t id = first_new; id < g->nodes; id++) { /* messages point to where the old nodes came from */
        g->node[id].name = g->node[w->node[0].id].name;
        g->node[id].line = g->node[w->node[0].id].line;
    }
    for (uint32_t i = 0, next = 0; i < w->nodes; i++) {
        for (unsigned k = 0; k < g->node[w->node[i].id].results; k++)
            weft_substitute(g, weft_result(g, w->node[i], k), result[next++]);
        weft_erase_unused(g, w->node[i]);
    }
    c->changed = true;
}

static void look_at(struct choosing *c, weft_node n)
{
    const struct weft_graph *const g = c->graph;
    struct weft_alternative_entry own;
    const struct weft_alternative_entry *entry;
    for (unsigned i = 0; !c->failed && (entry = weft_alternative_at(g->context, i, &own)); i++)
        if (entry->opcode == weft_opcode_of(g, n) && takes_node(c, n))
            weigh(c, entry, n);
    if (c->best.graph && !c->failed)
        take(c);
    drop(&c->best.graph);
}

static void choose(struct choosing *c)
{
    const struct weft_graph *const g = c->graph;
    const weft_node last = g->last;
    for (weft_node n = g->first, next; n.id && !c->failed; n = next) {
        next = n.id == last.id ? WEFT_NO_NODE : g->node[n.id].next; /* what is new stands in front of it */
        if (!g->node[n.id].dead)
            look_at(c, n);
    }
}

static bool has_data_sizes(const struct weft_graph *g)
{
    bool any = false;
    for (uint32_t i = 0; i < weft_symbol_count(g->dims); i++)
        any |= weft_symbol_at(g->dims, i)->data;
    return any;
}

/* Trials go, too, when memory is refused. What a callback compiles has no alternatives: its trial would have the one
 * that is being built, and so on without end. */
bool weft_pass_choose_alternatives(struct weft_graph *graph, const struct weft_target *target)
{
    struct weft_context *const context = graph->context;
    if (context->weighs_alternatives)
        return false;
    struct choosing c = {.graph = graph, .target = target, .has_data_sizes = has_data_sizes(graph)};
    struct choosing *volatile const kept = &c;
    jmp_buf *const outer = context->on_nomem;
    jmp_buf here;
    if (setjmp(here)) {
        context->on_nomem = outer;
        context->weighs_alternatives = false;
        drop(&kept->now.graph);
        drop(&kept->best.graph);
        drop(&kept->plain);
        drop(&kept->copy);
        weft_out_of_memory(context);
    }
    context->on_nomem = &here;
    context->weighs_alternatives = true;
    const uint32_t first_new = graph->nodes;
    choose(kept);
    if (kept->changed)
        settle(kept, first_new);
    context->on_nomem = outer;
    context->weighs_alternatives = false;
    if (kept->changed)
        weft_pass_dce(graph, target); /* constants that only the old nodes read */
    return kept->changed;
}
