/* SPDX-License-Identifier: Apache-2.0 */
/* sink_transpose: move transposes towards the results, where pairs meet and cancel.
 *
 *   %t: f32[4,3] = transpose %x perm=[1 0]             %r: f32[3,4] = exp %x
 *   %e: f32[4,3] = exp %t                              %u: f32[3,4] = add %r, %z
 *   %b: f32[3,4] = transpose %e perm=[1 0]      →      return %u
 *   %u: f32[3,4] = add %b, %z
 *   return %u
 *
 * A node on a transposed value may as well be computed from the straight form, the value before the transpose, and its
 * result be transposed instead (sink_plan.c says how, sink_transpose.h what is meant by turned and straight). Whether
 * this is any good cannot be seen from one node: in x·sigmoid(x) neither node may move alone. So the pass looks at
 * regions: all transposes and all nodes that could be straightened, as far as values connect them. Each node of a
 * region is straightened or is not; each turned value costs its bytes if it has a straight form and somebody wants the
 * value itself. Those are the places and edges of a minimum cut (sink_choice.c), which gives the choice with the fewest
 * bytes transposed, and of several the one that straightens most. A transpose that reads a value of the region is then
 * merged with what turns it.
 *
 * The measure: the bytes that are transposed, at the hints of the sizes, and for equal bytes how many nodes lie behind
 * transposes. The first never grows and one of them falls with each rewrite, so this ends.
 *
 * Each node is computed as before, term by term, so every bit of the results stays. A constant operand is transposed
 * instead, in advance. One region is one rewrite.
 * Why not rules of one node: see x·sigmoid(x); and a transpose that is read twice would be copied for each reader.
 * Needs: nothing; after canonicalize, broadcasts carry no axes of extent 1.
 * Not done: an operand that is not turned could be transposed so that a larger one need not be; windows and products
 * could be computed over axes in another order; nodes with several results. */
#include "passes/sink_region.h"

#include <string.h>

#define MAX_ROUNDS 16

/* --- regions ---------------------------------------------------------------------------------------------------- */

uint32_t weft_sink_first_of(struct weft_sinking *s, uint32_t i)
{
    while (s->member[i].parent != i)
        i = s->member[i].parent = s->member[s->member[i].parent].parent;
    return i;
}

static void join(struct weft_sinking *s, uint32_t i, uint32_t j)
{
    i = weft_sink_first_of(s, i);
    j = weft_sink_first_of(s, j);
    s->member[i < j ? j : i].parent = i < j ? i : j;
}

static void add_member(struct weft_sinking *s, weft_val v, const struct weft_turn *turn, bool is_source)
{
    s->member = weft_grow(&s->graph->root->scratch, s->member, &s->capacity, s->members + 1, sizeof *s->member);
    s->member[s->members] =
        (struct weft_sink_member){.value = v, .turn = *turn, .is_source = is_source, .parent = s->members};
    s->member_of[v.id] = ++s->members;
}

#define MAX_OPERANDS 256

static bool plan_node(const struct weft_sinking *s, weft_node n, struct weft_sink_plan *ret)
{
    struct weft_graph *g = s->graph;
    const struct weft_turn *turn[MAX_OPERANDS];
    const unsigned operands = g->node[n.id].operands;
    bool any = false;
    for (unsigned i = 0; i < operands && i < MAX_OPERANDS; i++) {
        const struct weft_sink_member *m = weft_sink_turned_member(s, weft_operand(g, n, i));
        turn[i] = m ? &m->turn : NULL;
        any |= m != NULL;
    }
    return any && operands <= MAX_OPERANDS && weft_sink_plan(g, n, turn, ret);
}

static void look_at(struct weft_sinking *s, weft_node n)
{
    struct weft_graph *g = s->graph;
    if (g->node[n.id].results != 1 || weft_is_decided(g, n))
        return;
    const weft_val result = weft_result(g, n, 0);
    if (g->value[result.id].uses == 0 && g->value[result.id].returns == 0)
        return;
    if (weft_opcode_of(g, n) == WEFT_OP_transpose) {
        const struct weft_turn turn = weft_turn_of(g, n);
        if (!weft_turn_is_none(&turn))
            add_member(s, result, &turn, /* is_source= */ true);
        return;
    }
    struct weft_sink_plan plan;
    if (!plan_node(s, n, &plan))
        return;
    add_member(s, result, &plan.turn, /* is_source= */ false);
    const uint32_t self = s->members - 1;
    for (unsigned i = 0; i < g->node[n.id].operands; i++)
        if (weft_sink_turned_member(s, weft_operand(g, n, i)))
            join(s, self, s->member_of[weft_operand(g, n, i).id] - 1);
}

/* Strings the members of each region together, in order of execution. */
static void link_regions(struct weft_sinking *s)
{
    for (uint32_t i = 0; i < s->members; i++) {
        struct weft_sink_member *first = &s->member[weft_sink_first_of(s, i)];
        if (first != &s->member[i])
            s->member[first->last].next = i + 1;
        first->last = i;
    }
}

/* --- the choice ------------------------------------------------------------------------------------------------- */

/* Is this member still what it was found to be? Rewrites of other regions merge transposes and move operands. */
static bool is_current(const struct weft_sinking *s, const struct weft_sink_member *m)
{
    const weft_node n = weft_def(s->graph, m->value);
    struct weft_sink_plan plan;
    if (s->graph->node[n.id].dead)
        return false;
    return m->is_source || (plan_node(s, n, &plan) && memcmp(&plan.turn, &m->turn, sizeof m->turn) == 0);
}

/* Decides for the region whose first member is number `first`; gives the first node to be straightened, or none. */
static weft_val decide(struct weft_sinking *s, uint32_t first)
{
    uint32_t places = 2;
    for (uint32_t i = first + 1; i; i = s->member[i - 1].next) {
        struct weft_sink_member *m = &s->member[i - 1];
        if (!is_current(s, m))
            return WEFT_NO_VALUE; /* the next round looks again */
        m->place = places;
        places += 2;
    }
    return weft_sink_choose(s, first, places);
}

/* --- the rewrite ------------------------------------------------------------------------------------------------ */

/* Before the transpose, with its axes of extent 1 where turns have them. */
static weft_val straight_of_source(struct weft_sinking *s, struct weft_sink_member *m)
{
    struct weft_graph *g = s->graph;
    const weft_node transpose = weft_def(g, m->value);
    const weft_val x = weft_operand(g, transpose, 0);
    const struct weft_type type = weft_turn_straight(weft_type_of(g, m->value), &m->turn);
    struct weft_builder b = {g, transpose};
    return weft_type_same(weft_type_of(g, x), &type) ? x : weft_build_reshape(&b, x, &type);
}

static void straighten(struct weft_sinking *s, struct weft_sink_member *m)
{
    struct weft_graph *g = s->graph;
    const weft_node n = weft_def(g, m->value);
    struct weft_sink_plan plan;
    weft_val straight[MAX_OPERANDS];
    for (unsigned i = 0; i < g->node[n.id].operands; i++) {
        struct weft_sink_member *operand = weft_sink_turned_member(s, weft_operand(g, n, i));
        straight[i] = WEFT_NO_VALUE;
        if (!operand)
            continue;
        if (!operand->straight.id)
            operand->straight = straight_of_source(s, operand);
        straight[i] = operand->straight;
    }
    plan_node(s, n, &plan); /* it fits: decide has looked */
    struct weft_builder b = {g, n};
    m->straight = weft_sink_build(&b, n, &plan, straight);
}

/* v' turned by `turn`, of the given type: a transpose, or nothing but axes of extent 1 that move. */
static weft_val build_turned(struct weft_builder *b, weft_val straight, const struct weft_turn *turn,
                             const struct weft_type *type)
{
    if (weft_turn_is_none(turn))
        return weft_type_same(weft_type_of(b->graph, straight), type) ? straight
                                                                       : weft_build_reshape(b, straight, type);
    const struct weft_type own = weft_turn_straight(type, turn);
    int perm[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type->rank; i++)
        perm[i] = turn->axis[i];
    if (!weft_type_same(weft_type_of(b->graph, straight), &own))
        straight = weft_build_reshape(b, straight, &own);
    return weft_build_transpose(b, straight, perm);
}

/* What takes the place of `result`. A result of the graph has a place of its own: of a value that is a parameter or
 * another result it is a copy. */
static weft_val with_place(struct weft_builder *b, weft_val v, weft_val result)
{
    const struct weft_graph *g = b->graph;
    const bool taken = g->value[v.id].is_param || g->value[v.id].returns > 0;
    if (!taken || g->root != g || g->value[result.id].returns == 0)
        return v;
    return weft_build_transpose(b, v, (const int[]){0, 1, 2, 3, 4, 5, 6, 7});
}

/* A transpose of a straightened value reads the straight form. */
static void merge_transposes(struct weft_sinking *s, const struct weft_sink_member *m)
{
    struct weft_graph *g = s->graph;
    uint32_t next;
    for (uint32_t slot = g->value[m->value.id].first_use; slot; slot = next) {
        next = g->slot[slot - 1].next;
        const weft_node transpose = g->slot[slot - 1].node;
        if (weft_sink_reader_of(s, m, &g->slot[slot - 1]) != WEFT_READER_TRANSPOSE)
            continue;
        const weft_val result = weft_result(g, transpose, 0);
        const struct weft_turn turn = weft_sink_merged_turn(g, transpose, m);
        const struct weft_type type = *weft_type_of(g, result);
        struct weft_builder b = {g, transpose};
        const weft_val merged = with_place(&b, build_turned(&b, m->straight, &turn, &type), result);
        weft_substitute(g, result, merged);
        weft_erase_unused(g, transpose);
    }
}

static bool is_wanted(const struct weft_sinking *s, const struct weft_sink_member *m)
{
    const struct weft_graph *g = s->graph;
    for (uint32_t slot = g->value[m->value.id].first_use; slot; slot = g->slot[slot - 1].next) {
        const weft_node reader = g->slot[slot - 1].node;
        const struct weft_sink_member *by = weft_sink_member_of(s, weft_result(g, reader, 0));
        if (!by || !by->moves)
            return true;
    }
    return g->value[m->value.id].returns > 0;
}

static void rewrite(struct weft_sinking *s, uint32_t first)
{
    struct weft_graph *g = s->graph;
    for (uint32_t i = first + 1; i; i = s->member[i - 1].next)
        if (s->member[i - 1].moves)
            straighten(s, &s->member[i - 1]);
    for (uint32_t i = first + 1; i; i = s->member[i - 1].next) {
        struct weft_sink_member *m = &s->member[i - 1];
        if (m->is_source && !m->straight.id)
            m->straight = straight_of_source(s, m);
        if (m->is_source || m->moves)
            merge_transposes(s, m);
        if (!m->moves || !is_wanted(s, m))
            continue;
        struct weft_builder b = {g, weft_def(g, m->value)};
        const weft_val turned = build_turned(&b, m->straight, &m->turn, weft_type_of(g, m->value));
        weft_substitute(g, m->value, with_place(&b, turned, m->value));
    }
}

/* Old nodes, last ones first, and the transposes if nobody needs them any more. */
static void erase_old(struct weft_sinking *s)
{
    for (uint32_t i = s->members; i > 0; i--) {
        const struct weft_sink_member *m = &s->member[i - 1];
        const weft_node n = weft_def(s->graph, m->value);
        if ((m->moves || m->is_source) && !s->graph->node[n.id].dead)
            weft_erase_unused(s->graph, n);
    }
}

static bool sink_once(struct weft_graph *graph)
{
    struct weft_sinking s = {.graph = graph, .values = graph->values};
    s.member_of = weft_new(&graph->root->scratch, uint32_t, graph->values);
    weft_foreach_node(graph, n)
        look_at(&s, n);
    link_regions(&s);
    bool changed = false;
    for (uint32_t i = 0; i < s.members; i++) {
        const bool is_region = s.member[i].parent == i && s.member[i].next;
        const weft_val value = is_region ? decide(&s, i) : WEFT_NO_VALUE;
        if (!value.id)
            continue;
        if (!weft_permit(graph, "sink_transpose", value)) {
            for (uint32_t k = i + 1; k; k = s.member[k - 1].next)
                s.member[k - 1].moves = false;
            continue;
        }
        if (graph->value[value.id].name)
            weft_add_remark(graph, "sink_transpose", value, "done", "it is computed before it is transposed");
        rewrite(&s, i);
        changed = true;
    }
    if (changed)
        erase_old(&s);
    return changed;
}

bool weft_pass_sink_transpose(struct weft_graph *graph, const struct weft_target *target)
{
    bool changed = false;
    for (int round = 0; round < MAX_ROUNDS && sink_once(graph); round++)
        changed = true;
    return changed;
}
