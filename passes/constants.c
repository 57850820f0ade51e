/* SPDX-License-Identifier: Apache-2.0 */
/* constants.c: which values are computed when the plan is made (constants.h); runtime/constants.c computes them.
 *
 * One walk in order of execution finds what is known and adds up what it costs a run. Costs and freed bytes are summed
 * along operands, as if the known part were a tree: where two ways meet, their common part counts twice. That keeps the
 * walk linear, and it is the order of candidates that follows from it, not whether one is right.
 *
 * Why not fold_const for all: passes run on graphs that nobody plans, and the evaluator takes a second for a product
 * that a kernel does in a millisecond. Why saved time per byte and not the fewest bytes: a product of a megabyte may
 * save a thousand times as much as a vector of a kilobyte. */
#include "passes/constants.h"

#include "passes/passes.h"
#include "sched/format.h"
#include "sched/prices.h"

#include <stdlib.h>

/* Bytes of a value that is computed while compiling, also on the way. */
#define MOST_AT_ONCE ((int64_t)256 << 20)

/* Known values, by id. */
struct fact {
    bool known;      /* constants alone decide it */
    bool looked;     /* has been a candidate */
    uint32_t order;  /* of execution */
    uint32_t nodes;  /* that compute it, constants and views aside */
    int64_t ps;      /* what they cost a run */
    int64_t freed;   /* bytes of constants that are read for it alone */
};

/* A reshape of repeated elements is copied in each run. */
static bool is_copied(const struct weft_graph *g, weft_val v)
{
    if (weft_opcode_of(g, weft_def(g, v)) != WEFT_OP_reshape)
        return false;
    while (v.id && weft_is_view(g, weft_def(g, v)) && weft_opcode_of(g, weft_def(g, v)) != WEFT_OP_bcast)
        v = weft_operand(g, weft_def(g, v), 0);
    return weft_opcode_of(g, weft_def(g, v)) == WEFT_OP_bcast;
}

struct search {
    struct weft_graph *graph; /* the top or a body: that which is looked at */
    uint32_t place;           /* of it in the tree */
    const struct weft_formats *tree;
    struct fact **facts;      /* by place */
    struct fact *fact;        /* of the graph */
    const struct weft_target *target;
    struct weft_constant_choice *list; /* candidates; [0, chosen) in the end */
    uint32_t count, capacity;
    struct weft_constant_budget left;
    uint32_t values;          /* that took what is not left */
};

static void look_at(struct search *s, uint32_t place)
{
    s->place = place;
    s->graph = s->tree->all[place]->graph;
    s->fact = s->facts[place];
}

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* --- what is known ------------------------------------------------------------------------------------------------ */

static int64_t stream_ps(const struct search *s, weft_val v, enum weft_price first)
{
    const int64_t bytes = weft_value_bytes(s->graph, v);
    const double ps = (double)bytes * weft_price_of(s->target, weft_format_level(s->target, first, bytes)) * 1e-3;
    return ps < 1e17 ? (int64_t)ps : (int64_t)1e17;
}

/* A run's time for one node: its operands read, its results written, the products of a contraction. */
static int64_t node_ps(const struct search *s, weft_node n)
{
    const struct weft_graph *g = s->graph;
    const struct weft_node_info *info = &g->node[n.id];
    int64_t ps = (int64_t)weft_price_of(s->target, WEFT_PRICE_step) * 1000;
    for (unsigned i = 0; i < info->operands; i++)
        ps = add(ps, stream_ps(s, weft_format_stored(g, weft_operand(g, n, i)), WEFT_PRICE_read_private));
    for (unsigned i = 0; i < info->results; i++)
        ps = add(ps, stream_ps(s, weft_result(g, n, i), WEFT_PRICE_write_private));
    if (weft_op_of(g, n)->traits & WEFT_CONTRACTION) {
        const double products = (double)weft_node_work(g, n) * weft_price_of(s->target, WEFT_PRICE_product) * 1e-3;
        ps = add(ps, products < 1e17 ? (int64_t)products : (int64_t)1e17);
    }
    return ps;
}

static bool is_known(const struct search *s, weft_node n)
{
    const uint32_t never = WEFT_CONTROL | WEFT_PLACEMENT | WEFT_OPAQUE | WEFT_DATA | WEFT_RANDOM;
    const struct weft_graph *g = s->graph;
    const struct weft_node_info *info = &g->node[n.id];
    if ((weft_op_of(g, n)->traits & never) || weft_is_decided(g, n) || !weft_axes_are_constant(g, n))
        return false;
    for (unsigned i = 0; i < info->operands; i++)
        if (!s->fact[weft_operand(g, n, i).id].known)
            return false;
    for (unsigned i = 0; i < info->results && !info->constant; i++)
        if (g->value[weft_result(g, n, i).id].layout != 0 ||
            (!weft_is_view(g, n) && weft_value_bytes(g, weft_result(g, n, i)) > MOST_AT_ONCE))
            return false;
    return info->operands > 0 || (weft_op_of(g, n)->traits & WEFT_SOURCE);
}

static void add_facts(struct search *s)
{
    const struct weft_graph *g = s->graph;
    uint32_t order = 0;
    weft_foreach_node(g, n) {
        order++;
        if (!is_known(s, n))
            continue;
        struct fact fact = {.known = true, .order = order};
        const bool counts =
            !g->node[n.id].constant && (!weft_is_view(g, n) || is_copied(g, weft_result(g, n, 0)));
        for (unsigned i = 0; i < g->node[n.id].operands; i++) {
            const weft_val v = weft_operand(g, n, i);
            const struct fact *of = &s->fact[v.id];
            const bool alone = weft_has_one_use(g, v);
            fact.ps = add(fact.ps, of->ps);
            fact.nodes = fact.nodes > UINT32_MAX - of->nodes ? UINT32_MAX : fact.nodes + of->nodes;
            fact.freed = add(fact.freed, !alone ? 0 : weft_is_const(g, v) ? weft_constant_bytes(g, v) : of->freed);
        }
        if (counts) {
            fact.ps = add(fact.ps, node_ps(s, n));
            fact.nodes += fact.nodes < UINT32_MAX;
        }
        for (unsigned i = 0; i < g->node[n.id].results; i++)
            s->fact[weft_result(g, n, i).id] = fact;
    }
}

/* --- candidates --------------------------------------------------------------------------------------------------- */

/* What somebody reads when he reads v: v itself, or what it is a view of. */
static void offer(struct search *s, weft_val v)
{
    const struct weft_graph *g = s->graph;
    while (s->fact[v.id].known && weft_is_view(g, weft_def(g, v)) && !is_copied(g, v))
        v = weft_operand(g, weft_def(g, v), 0);
    struct fact *fact = &s->fact[v.id];
    if (!fact->known || fact->looked || weft_is_const(g, v))
        return;
    fact->looked = true;
    int64_t saved;
    if (__builtin_mul_overflow(fact->ps, s->tree->all[s->place]->weight, &saved))
        saved = INT64_MAX;
    s->list = weft_grow(&g->root->scratch, s->list, &s->capacity, s->count + 1, sizeof *s->list);
    s->list[s->count++] = (struct weft_constant_choice){
        .graph = s->graph, .value = v, .bytes = weft_value_bytes(g, v), .freed = fact->freed, .once_ps = fact->ps,
        .saved_ps = saved, .place = s->place, .order = fact->order, .nodes = fact->nodes};
}

/* What is only returned is computed in each run: a constant would be copied in each, which takes about as long. */
static void offer_all(struct search *s)
{
    const struct weft_graph *g = s->graph;
    weft_foreach_node(g, n) {
        const struct weft_node_info *info = &g->node[n.id];
        const bool known = info->results > 0 && s->fact[info->first_result].known;
        for (unsigned i = 0; i < info->operands && !known; i++)
            offer(s, weft_operand(g, n, i));
    }
}

static double rate(const struct weft_constant_choice *c)
{
    return (double)c->saved_ps / (double)(c->bytes > c->freed ? c->bytes - c->freed : 1);
}

static int by_order(const void *left, const void *right)
{
    const struct weft_constant_choice *a = left, *b = right;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->value.id < b->value.id ? -1 : 1;
}

static int by_rate(const void *left, const void *right)
{
    const struct weft_constant_choice *a = left, *b = right;
    if (rate(a) != rate(b))
        return rate(a) > rate(b) ? -1 : 1;
    return by_order(left, right);
}

static void refuse(const struct search *s, const struct weft_constant_choice *c, const struct weft_constant_budget *all)
{
    if (c->once_ps > s->left.ps)
        weft_refuse(s->graph, "constants", c->value,
                    "it would save some %.0f us a run, but compiling would take too long", (double)c->saved_ps * 1e-6);
    else
        weft_refuse(s->graph, "constants", c->value,
                    "it would save some %.0f us a run, but takes %lld bytes and frees %lld; of the plan's budget of "
                    "%lld bytes %u value%s took %lld",
                    (double)c->saved_ps * 1e-6, (long long)c->bytes, (long long)c->freed, (long long)all->bytes,
                    s->values, s->values == 1 ? "" : "s", (long long)(all->bytes - s->left.bytes));
}

/* Takes a candidate within the budget. */
static bool take(struct search *s, const struct weft_constant_choice *c)
{
    const int64_t more = c->bytes > c->freed ? c->bytes - c->freed : 0;
    if (more > s->left.bytes || c->once_ps > s->left.ps || c->bytes == 0)
        return false;
    s->left.bytes -= more;
    s->left.ps -= c->once_ps;
    s->values += more > 0;
    return true;
}

/* Chooses among all; puts those that are taken first. What a refused one is computed from comes last, and is looked at
 * without a word. */
static uint32_t choose(struct search *s, const struct weft_constant_budget *budget)
{
    uint32_t chosen = 0;
    const uint32_t first = s->count;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct weft_constant_choice c = s->list[i];
        look_at(s, c.place);
        if (take(s, &c)) {
            s->list[chosen++] = c;
            continue;
        }
        if (i < first)
            refuse(s, &c, budget);
        const weft_node n = weft_def(s->graph, c.value);
        for (unsigned k = 0; k < s->graph->node[n.id].operands; k++)
            offer(s, weft_operand(s->graph, n, k));
    }
    return chosen;
}

const struct weft_constant_choice *weft_choose_constants(struct weft_graph *graph, const struct weft_target *target,
                                                         const struct weft_constant_budget *budget,
                                                         uint32_t *ret_count)
{
    struct weft_arena *const arena = &graph->root->scratch;
    struct weft_formats tree = {.graph = graph, .target = target, .arena = arena};
    weft_format_open_tree(&tree);
    struct search s = {.tree = &tree, .target = target, .left = *budget,
                       .facts = weft_new(arena, struct fact *, tree.count)};
    for (uint32_t i = 0; i < tree.count; i++) {
        s.facts[i] = weft_new(arena, struct fact, tree.all[i]->graph->values);
        look_at(&s, i);
        add_facts(&s);
        offer_all(&s);
    }
    if (s.count > 0)
        qsort(s.list, s.count, sizeof *s.list, by_rate);
    const uint32_t chosen = choose(&s, budget);
    if (chosen > 0)
        qsort(s.list, chosen, sizeof *s.list, by_order);
    *ret_count = chosen;
    return s.list;
}
