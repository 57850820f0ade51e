/* SPDX-License-Identifier: Apache-2.0 */
/* group_join.c: which nodes go together. The rules: group.h. */
#include "sched/group.h"

#include <string.h>

enum { MOST_VISITS = 512, SMALL_BYTES = 64 << 10,
       NEAR = 64, MOST_BESIDE = 2, MOST_TOGETHER = 12 }; /* readers of a value go together up to so many nodes apart,
                                                           * with the last few, and up to so many nodes */
enum { MADE_SHARE = 2 }; /* per cent that a prologue of a contraction is to gain: less is lost in what no price knows */

/* --- ways around -------------------------------------------------------------------------------------------------- */

struct search {
    struct weft_grouping *g;
    uint32_t from, to;      /* clusters */
    uint32_t count, visited;
    bool found;
};

static bool is_view(const struct weft_grouping *g, weft_node n) { return n.id && weft_is_view(g->graph, n); }

/* Behind views: who makes it; none for a parameter. */
static weft_node maker_of(const struct weft_grouping *g, weft_val v)
{
    weft_node n = weft_def(g->graph, v);
    while (is_view(g, n))
        n = weft_def(g->graph, weft_operand(g->graph, n, 0));
    return n;
}

/* The operands of a node, for a search that goes back from `to` and looks for `from`. */
static void open_operands(struct search *s, weft_node n, bool direct)
{
    struct weft_grouping *const g = s->g;
    for (uint32_t i = 0; i < g->graph->node[n.id].operands; i++) {
        const weft_node maker = maker_of(g, weft_operand(g->graph, n, i));
        if (!maker.id || g->visit[maker.id] == g->visits)
            continue;
        const uint32_t of = g->of[maker.id];
        if (of == s->to && of)
            continue;
        if (of == s->from && of) {
            s->found |= !direct;
            continue;
        }
        const uint32_t last = of ? g->cluster[of].last : g->position[maker.id];
        if (last < g->cluster[s->from].first)
            continue;
        g->visit[maker.id] = g->visits;
        g->open = weft_grow(g->arena, g->open, &g->open_capacity, s->count + 1, sizeof *g->open);
        g->open[s->count++] = maker;
        s->visited++;
    }
}

/* Does something outside of both need `from`, that `to` needs? Also where that is too far to see. */
static bool goes_around(struct weft_grouping *g, uint32_t from, uint32_t to)
{
    struct search s = {.g = g, .from = from, .to = to};
    g->visits++;
    for (uint32_t i = 0; i < g->cluster[to].count; i++)
        open_operands(&s, g->cluster[to].node[i], /* direct= */ true);
    while (s.count > 0 && !s.found && s.visited < MOST_VISITS) {
        const weft_node n = g->open[--s.count];
        const uint32_t of = g->of[n.id];
        if (!of)
            open_operands(&s, n, false);
        for (uint32_t i = 0; of && i < g->cluster[of].count; i++)
            open_operands(&s, g->cluster[of].node[i], false);
    }
    return s.found || s.visited >= MOST_VISITS;
}

/* --- the union ---------------------------------------------------------------------------------------------------- */

/* Into the list of the union: in order of execution, each once. */
static uint32_t insert(struct weft_grouping *g, uint32_t count, weft_node n)
{
    g->list = weft_grow(g->arena, g->list, &g->list_capacity, count + 1, sizeof *g->list);
    uint32_t at = count;
    while (at > 0 && g->position[g->list[at - 1].id] > g->position[n.id])
        at--;
    if (at > 0 && g->list[at - 1].id == n.id)
        return count;
    memmove(g->list + at + 1, g->list + at, (count - at) * sizeof *g->list);
    g->list[at] = n;
    return count + 1;
}

/* Views between nodes of the union. */
static uint32_t insert_views(struct weft_grouping *g, uint32_t count, uint32_t a, uint32_t b, weft_node reader)
{
    for (uint32_t i = 0; i < g->graph->node[reader.id].operands; i++) {
        const weft_val v = weft_operand(g->graph, reader, i);
        const uint32_t of = g->of[maker_of(g, v).id];
        if (of == 0 || (of != a && of != b))
            continue;
        for (weft_node n = weft_def(g->graph, v); is_view(g, n); n = weft_def(g->graph, weft_operand(g->graph, n, 0)))
            count = insert(g, count, n);
    }
    return count;
}

static uint32_t unite(struct weft_grouping *g, uint32_t a, uint32_t b)
{
    const uint32_t both[] = {a, b};
    uint32_t count = 0;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < g->cluster[both[k]].count; i++) {
            count = insert(g, count, g->cluster[both[k]].node[i]);
            count = insert_views(g, count, a, b, g->cluster[both[k]].node[i]);
        }
    return count;
}

/* --- does it pay? ------------------------------------------------------------------------------------------------- */

static int64_t scanned_length(const struct weft_grouping *g, const struct weft_fit *fit)
{
    int64_t length = 0;
    for (uint32_t i = 0; i < fit->axes.axes; i++)
        if (fit->axes.scanned >> i & 1)
            length = weft_dim_hint(g->graph->dims, fit->axes.extent[i]);
    return length;
}

/* What a union is like that has a kernel. */
struct verdict {
    bool uneven;            /* weft_fit.uneven */
    bool stores;            /* also what the one makes for the other */
    bool finishes;          /* a contraction or window */
    bool folds;             /* what a contraction's group makes: prices say whether that pays */
    bool makes;             /* the operand of a head: waits as well; */
    bool shares_made;       /* of a contraction, whose parts may each make it: prices say whether that pays */
    bool reduces;           /* rows of a product: waits until the others are together */
    bool shares;            /* it scans lines of which there are few, or which a scan alone shares out in chunks */
};

/* Do neighbours in memory differ in the axis that is scanned? */
static bool scans_neighbours(const struct weft_grouping *g, const struct weft_fit *fit)
{
    bool all = true;
    for (uint32_t p = 0; p < fit->count; p++) {
        if (!g->members->member[fit->node[p].id]->scanned)
            continue;
        const weft_val x = weft_operand(g->graph, fit->node[p], 0);
        all &= weft_format_fastest_axis(&g->formats, x, g->graph->value[x.id].layout) ==
               (int)weft_attr_int(g->graph, fit->node[p], WEFT_ATTR_axis);
    }
    return all;
}

/* Rows are what workers share out; a fold by itself may be cut into slices instead, and a scan into chunks. A group
 * cuts the same chunks of contiguous rows (kernels/along/scan.h): prices say whether that pays. */
static const char *check_rows(const struct weft_grouping *g, const struct weft_fit *fit, bool *ret_shares)
{
    const double rows = weft_fit_points(g->members, fit, fit->outer);
    const double elements = weft_fit_points(g->members, fit, fit->all);
    const bool few = fit->outer != fit->all && rows < 2 * g->target->threads && elements * 4 > SMALL_BYTES;
    const bool cut = fit->axes.scanned && weft_along_cuts((int64_t)(rows < 1e6 ? rows : 1e6), scanned_length(g, fit));
    *ret_shares = fit->axes.scanned && (few || cut);
    return few && (fit->axes.folded || !fit->axes.scanned) ? "would have too few rows for the workers"
           : cut && !scans_neighbours(g, fit)
               ? "would scan few long lines that are not contiguous, which the scan alone shares out in chunks" : NULL;
}

static const char *check(struct weft_grouping *g, uint32_t a, uint32_t b, uint32_t count, weft_val *where,
                         weft_node maker, struct verdict *ret)
{
    struct weft_group_fit group = {.fit = {.uneven = false}};
    const struct weft_fit *const fit = &group.fit;
    const char *why = weft_group_fit_find(g->members, g->list, count, &group, where);
    bool shares = false;
    if (!why && !group.head.id)
        why = check_rows(g, fit, &shares);
    if (!why && (goes_around(g, a, b) || goes_around(g, b, a)))
        why = "is connected with it through a node outside too: the one kernel would wait for itself";
    const uint32_t place = weft_member_place(g->members, maker);
    *ret = (struct verdict){.uneven = fit->uneven, .finishes = group.head.id != 0, .reduces = group.rows,
                            .makes = group.befores > 0,
                            .shares_made = group.befores > 0 && !weft_epilogue_has_bands(g->graph, group.head),
                            .folds = group.head.id && !why && (group.fold.id || !group.is_alone),
                            .shares = shares};
    if (!why)
        ret->stores = place != UINT32_MAX ? fit->member[place].out : group.raw && maker.id == group.head.id;
    return why;
}

/* NULL, or why two clusters are not faster as one by more than `share` hundredths, said of *where, which becomes
 * NO_VALUE if it is said of both. */
static const char *weigh(struct weft_grouping *g, uint32_t a, uint32_t b, uint32_t count, int64_t share,
                         weft_val *where)
{
    struct weft_cluster one = {.node = g->list, .count = count};
    weft_group_price(g, &g->cluster[a]);
    weft_group_price(g, &g->cluster[b]);
    weft_group_price(g, &one);
    const int64_t apart = g->cluster[a].ps + g->cluster[b].ps;
    if (one.why || one.ps < apart - apart / 100 * share)
        return one.why;
    *where = WEFT_NO_VALUE;
    return weft_arena_format(g->graph->arena, "as one they would take %.3f us, as two %.3f us",
                             (double)one.ps * 1e-6, (double)apart * 1e-6);
}

/* `why` is said of `where`, or of both if that is NO_VALUE. shared: what both read, or NO_VALUE. */
static void keep_refusal(struct weft_grouping *g, weft_node reader, weft_node other, weft_val shared, weft_val where,
                         const char *why)
{
    g->refusal = weft_grow(g->arena, g->refusal, &g->refusal_capacity, g->refusals + 1, sizeof *g->refusal);
    const char *const reason = weft_arena_format(
        g->arena, "not joined with %s%s%s%s: %s%s%s", g->text[weft_result(g->graph, other, 0).id],
        shared.id ? ", which reads " : "", shared.id ? g->text[shared.id] : "", shared.id ? " too" : "",
        where.id ? g->text[where.id] : "", where.id ? " " : "", why);
    g->refusal[g->refusals++] = (struct weft_refusal){reader, other, reason};
}

/* What came together by another way is not refused. */
static void say_refused(const struct weft_grouping *g)
{
    for (uint32_t i = 0; i < g->refusals; i++) {
        const struct weft_refusal *const r = &g->refusal[i];
        if (g->of[r->reader.id] != g->of[r->other.id] || !g->of[r->other.id])
            weft_add_remark_at(g->graph, g->who, g->label[weft_result(g->graph, r->reader, 0).id], "refused", "%s",
                               r->reason);
    }
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

static void join(struct weft_grouping *g, uint32_t a, uint32_t b, uint32_t count)
{
    weft_node *const node = weft_new(g->arena, weft_node, count);
    memcpy(node, g->list, count * sizeof *node);
    for (uint32_t i = 0; i < count; i++)
        g->of[node[i].id] = a;
    g->cluster[a] = (struct weft_cluster){
        .node = node, .count = count, .first = g->position[node[0].id], .last = g->position[node[count - 1].id]};
    g->cluster[b].count = 0;
}

/* What may be joined, from what saves most to what saves least. What cannot finish a contraction is asked once more. */
enum round { UNSTORED, STORED, UNEVEN };

/* What looks elements up in a way that no group does. */
static void refuse_look_up(const struct weft_grouping *g, weft_node reader, weft_node other)
{
    const int op = other.id ? weft_opcode_of(g->graph, other) : 0;
    if (!weft_is_looked_up(op))
        return;
    const struct weft_member *const member = weft_member_of(g->members, other);
    if (!member->kind)
        weft_add_remark_at(g->graph, g->who, g->label[weft_result(g->graph, reader, 0).id], "refused",
                           "not joined with %s, which %s", g->text[weft_result(g->graph, other, 0).id], member->why);
}

/* The cluster of `reader` with that of another node. False: that is for a later round. */
static bool try_join(struct weft_grouping *g, weft_node reader, weft_node other, enum round round)
{
    const uint32_t a = g->of[other.id], b = g->of[reader.id];
    if (a == 0)
        refuse_look_up(g, reader, other);
    if (a == 0 || a == b || g->cluster[a].fixed)
        return true;
    weft_val where = weft_result(g->graph, reader, 0);
    const bool fits = g->cluster[a].count + g->cluster[b].count <= WEFT_MOST_MEMBERS;
    const uint32_t count = fits ? unite(g, a, b) : 0;
    struct verdict is = {.uneven = false};
    const char *why = fits ? check(g, a, b, count, &where, other, &is) : "would be in a group of more than 64 nodes";
    /* what computes the operand of a head may yet finish a contraction, which is done in registers */
    if (!why && (((is.uneven || is.reduces || is.makes) && round < UNEVEN) || (is.stores && round < STORED)))
        return false;
    if (why && is.finishes && round < UNEVEN) /* what reads the same may yet become one: x * sigmoid(x) */
        return false;
    if (!why && (is.uneven || is.folds || is.shares || is.shares_made)) {
        where = weft_result(g->graph, reader, 0);
        why = weigh(g, a, b, count, is.shares_made ? MADE_SHARE : 0, &where);
    }
    if (why)
        keep_refusal(g, reader, other, WEFT_NO_VALUE, where, why);
    else
        join(g, a, b, count);
    return true;
}

/* A fold of chunks goes along with whoever reads the same data: that is what it is for. */
static void join_readers(struct weft_grouping *g, weft_node chunks)
{
    const struct weft_graph *graph = g->graph;
    const weft_val v = weft_operand(graph, chunks, 0);
    for (uint32_t use = graph->value[v.id].first_use; use; use = graph->slot[use - 1].next) {
        const weft_node n = graph->slot[use - 1].node;
        if (n.id != chunks.id && g->of[n.id] && weft_member_of(g->members, n)->kind != WEFT_MEMBER_VIEW)
            try_join(g, chunks, n, UNEVEN);
    }
}

/* --- beside each other -------------------------------------------------------------------------------------------- */

static double elements_of(const struct weft_graph *graph, weft_val v)
{
    const struct weft_type *const type = weft_type_of(graph, v);
    double elements = 1;
    for (int i = 0; i < type->rank; i++)
        elements *= (double)weft_dim_hint(graph->dims, type->extent[i]);
    return elements;
}

/* Two readers of v. */
static void try_beside(struct weft_grouping *g, weft_val v, weft_node reader, weft_node other)
{
    const uint32_t a = g->of[other.id], b = g->of[reader.id];
    const bool fits = a && a != b && g->cluster[a].count + g->cluster[b].count <= MOST_TOGETHER;
    if (!fits || g->position[reader.id] - g->position[other.id] > NEAR)
        return;
    weft_val where = weft_result(g->graph, reader, 0);
    const uint32_t count = unite(g, a, b);
    struct verdict is;
    const char *why = check(g, a, b, count, &where, other, &is);
    if (!why) {
        where = weft_result(g->graph, reader, 0);
        why = weigh(g, a, b, count, 0, &where);
    }
    if (!why)
        join(g, a, b, count);
    else
        keep_refusal(g, reader, other, v, where, why);
}

/* A parameter that is updated is mostly written over by one of its readers, which may not do so in a group with the
 * others. */
static bool is_updated(const struct weft_grouping *g, weft_val v)
{
    while (is_view(g, weft_def(g->graph, v)))
        v = weft_operand(g->graph, weft_def(g->graph, v), 0);
    return g->graph->value[v.id].is_mut;
}

/* Each reader of a value, with those before it that go over as many points. */
static void join_beside(struct weft_grouping *g)
{
    const struct weft_graph *graph = g->graph;
    weft_node (*const last)[MOST_BESIDE] = weft_arena_new(g->arena, graph->values * sizeof *last);
    memset(last, 0, graph->values * sizeof *last);
    weft_foreach_node(graph, n) {
        if (!g->of[n.id] || is_view(g, n) || g->cluster[g->of[n.id]].fixed)
            continue;
        for (uint32_t i = 0; i < graph->node[n.id].operands; i++) {
            const weft_val v = weft_operand(graph, n, i);
            weft_node *const before = last[v.id];
            if (before[0].id == n.id || weft_is_const(graph, v) || is_updated(g, v) ||
                elements_of(graph, v) < elements_of(graph, weft_result(graph, n, 0)))
                continue;
            for (int k = 0; k < MOST_BESIDE && before[k].id; k++)
                try_beside(g, v, n, before[k]);
            if (g->of[before[0].id] != g->of[n.id])
                before[1] = before[0];
            before[0] = n;
        }
    }
}

/* Which head a node finishes rather than another one: a contraction, which may do it in registers, than a window; of
 * two the later one. 0: the node's group has none. */
static uint64_t rank_of_head(const struct weft_grouping *g, weft_node n)
{
    const struct weft_cluster *const cluster = &g->cluster[g->of[n.id]];
    for (uint32_t i = 0; i < cluster->count && g->of[n.id]; i++)
        if (weft_epilogue_takes(g->graph, cluster->node[i]))
            return ((uint64_t)!weft_epilogue_has_bands(g->graph, cluster->node[i]) << 32 |
                    g->position[cluster->node[i].id]) + 1;
    return 0;
}

/* Is the second of two operands to be tried first? Of two contractions the later one is finished by the node,
 * since what the earlier one makes is there by then: so each term of a long sum is added to what there is of the sum,
 * and not all of them, which left the caches long ago, at the end. */
static bool begins_with_second(const struct weft_grouping *g, weft_node n)
{
    if (g->graph->node[n.id].operands != 2)
        return false;
    const uint64_t first = rank_of_head(g, maker_of(g, weft_operand(g->graph, n, 0)));
    return first && first < rank_of_head(g, maker_of(g, weft_operand(g->graph, n, 1)));
}

/* Each node with what it reads. First where that is stored for nobody then; what has fewer axes than the rest of its
 * cluster comes last: it saves little, and keeps out what folds other axes. */
static void join_chains(struct weft_grouping *g)
{
    const struct weft_graph *graph = g->graph;
    weft_node *later = NULL; /* pairs */
    uint32_t pairs = 0, capacity = 0, left = 0;
    weft_foreach_node(graph, n) {
        const bool turned = begins_with_second(g, n);
        for (uint32_t i = 0; i < graph->node[n.id].operands; i++) {
            const weft_node maker = maker_of(g, weft_operand(graph, n, turned ? 1 - i : i));
            if (!g->of[n.id] || is_view(g, n) || g->cluster[g->of[n.id]].fixed || try_join(g, n, maker, UNSTORED))
                continue;
            later = weft_grow(g->arena, later, &capacity, 2 * pairs + 2, sizeof *later);
            later[2 * pairs] = n;
            later[2 * pairs++ + 1] = maker;
        }
    }
    for (uint32_t i = 0; i < pairs; i++)
        if (!try_join(g, later[2 * i], later[2 * i + 1], STORED)) {
            later[2 * left] = later[2 * i];
            later[2 * left++ + 1] = later[2 * i + 1];
        }
    for (uint32_t i = 0; i < left; i++)
        try_join(g, later[2 * i], later[2 * i + 1], UNEVEN);
}

void weft_group_join(struct weft_grouping *g)
{
    const struct weft_graph *graph = g->graph;
    join_chains(g);
    weft_foreach_node(graph, n)
        if (weft_opcode_of(graph, n) == WEFT_OP_fold_chunks && g->of[n.id] && !g->cluster[g->of[n.id]].fixed)
            join_readers(g, n);
    join_beside(g);
    say_refused(g);
}
