/* SPDX-License-Identifier: Apache-2.0 */
/* match.c: weft_match: does a tree of ops stand in the graph?
 *
 * Patterns are tried from the root to the operands; what is found is kept in a list, so that a choice that turns out
 * wrong, an operand of a commutative op, is taken back. A tree that takes more than MOST_TRIALS counts as not found. */
#include "ir/public.h"

#include <string.h>

enum { MOST_TRIALS = 10000 };

struct match {
    const struct weft_graph *graph;
    const struct weft_pattern *pattern;
    int opcode[WEFT_PATTERN_MAX]; /* 0: any value */
    weft_val value[WEFT_PATTERN_MAX];
    int *trials;                  /* left: a tree of commutative ops has a choice at each */
};

/* A pattern that waits to be found at a value; those behind it wait as well. */
struct wait {
    uint32_t pattern;
    weft_val value;
    const struct wait *next;
};

static bool fits(const struct match *m, uint32_t k, weft_val v)
{
    const struct weft_graph *const g = m->graph;
    const struct weft_value *const info = &g->value[v.id];
    const weft_node def = info->def;
    if (m->opcode[k] && (!def.id || weft_opcode_of(g, def) != m->opcode[k] || !weft_is(v, weft_result(g, def, 0))))
        return false;
    return !(m->pattern[k].flags & WEFT_PATTERN_ONE_READER && (info->uses != 1 || info->returns)) &&
           !(m->pattern[k].flags & WEFT_PATTERN_CONSTANT && !weft_is_const(g, v));
}

/* Depth is the number of patterns. */
static bool find(struct match *m, const struct wait *first);

static bool find_operands(struct match *m, uint32_t k, weft_node n, bool swapped, const struct wait *next)
{
    const struct weft_graph *const g = m->graph;
    struct wait wait[WEFT_PATTERN_OPERANDS];
    for (unsigned i = WEFT_PATTERN_OPERANDS; i-- > 0;) {
        const uint32_t wanted = m->pattern[k].operand[i];
        const unsigned at = swapped && i < 2 ? 1 - i : i;
        if (!wanted)
            continue;
        if (at >= g->node[n.id].operands)
            return false;
        wait[i] = (struct wait){wanted, weft_operand(g, n, at), next};
        next = &wait[i];
    }
    return find(m, next);
}

static bool find(struct match *m, const struct wait *first)
{
    if (!first)
        return true;
    if (--*m->trials < 0)
        return false;
    const uint32_t k = first->pattern;
    const weft_val v = first->value, before = m->value[k];
    if (before.id ? !weft_is(before, v) : !fits(m, k, v))
        return false;
    if (before.id || !m->opcode[k])
        return m->value[k] = v, find(m, first->next) || (m->value[k] = before, false);
    const weft_node n = weft_def(m->graph, v);
    struct weft_node_info const *const info = &m->graph->node[n.id];
    const bool swaps = weft_ops[info->op].traits & WEFT_COMMUTATIVE && info->operands == 2 &&
                       !weft_is(weft_operand(m->graph, n, 0), weft_operand(m->graph, n, 1));
    struct match kept = *m;
    m->value[k] = v;
    if (find_operands(m, k, n, false, first->next))
        return true;
    *m = kept;
    m->value[k] = v;
    if (swaps && find_operands(m, k, n, true, first->next))
        return true;
    *m = kept;
    return false;
}

int weft_match(const struct weft_graph *graph, weft_node node, const struct weft_pattern *pattern, size_t count,
               weft_val *ret_value)
{
    int trials = MOST_TRIALS;
    struct match m = {.graph = graph, .pattern = pattern, .trials = &trials};
    if (!graph || !pattern || !ret_value || count == 0 || count > WEFT_PATTERN_MAX || !weft_node_is_in(graph, node))
        return WEFT_ERR_ARGUMENT;
    for (size_t k = 0; k < count; k++) {
        m.opcode[k] = pattern[k].op ? weft_opcode_find(pattern[k].op, strlen(pattern[k].op)) : 0;
        bool right = !pattern[k].op || m.opcode[k];
        for (unsigned i = 0; i < WEFT_PATTERN_OPERANDS; i++)
            right = right && pattern[k].operand[i] < count && (pattern[k].op || !pattern[k].operand[i]);
        if (!right)
            return WEFT_ERR_ARGUMENT;
    }
    if (graph->node[node.id].results == 0)
        return 0;
    const struct wait root = {.value = weft_result(graph, node, 0)};
    if (!find(&m, &root))
        return 0;
    for (size_t k = 0; k < count; k++)
        ret_value[k] = weft_value_out(graph, m.value[k]);
    return 1;
}
