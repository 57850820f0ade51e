/* SPDX-License-Identifier: Apache-2.0 */
/* sink_choice.c: which nodes of a region are straightened: those that leave the fewest bytes to be transposed.
 *
 * Each member has two places in a network (min_cut.h). The first is near if its node is straightened; of a source it
 * means nothing. The second, place + 1, is near if nobody wants the value itself. Between them runs what the value
 * costs if it has a straight form and somebody wants it:
 *
 *   source:  0 ──bytes──▶ place + 1          others:  place ──bytes──▶ place + 1
 *
 * A reader that may be straightened ties itself to what it reads with edges that are never cut: as it is it wants the
 * value, and straightened its straight form. Any other reader, and a return, tie place + 1 to the far end. */
#include "passes/min_cut.h"
#include "passes/sink_region.h"

#include <string.h>

#define MAX_BYTES ((int64_t)1 << 44) /* of a value, as a price: many of them add up to less than WEFT_CUT_NEVER */

/* What it costs to transpose a value, at the hints. The extents are multiplied as numbers: their product may be beyond
 * what expressions can say. */
static int64_t price(const struct weft_graph *g, weft_val v)
{
    const struct weft_type *type = weft_type_of(g, v);
    int64_t n = 1;
    for (unsigned i = 0; i < type->rank; i++) {
        const int64_t extent = weft_dim_hint(g->dims, type->extent[i]);
        if (__builtin_mul_overflow(n, extent, &n))
            n = MAX_BYTES;
    }
    const int64_t bytes = n < MAX_BYTES ? weft_dtype_bytes(type->dtype, n) : MAX_BYTES;
    return bytes < MAX_BYTES ? bytes : MAX_BYTES;
}

static bool absorbs(const struct weft_graph *g, const struct weft_operand *use, const struct weft_sink_member *m)
{
    const unsigned rank = weft_type_of(g, m->value)->rank;
    struct weft_turn swap = weft_turn_none();
    if (weft_opcode_of(g, use->node) != WEFT_OP_matmul || weft_is_decided(g, use->node))
        return false;
    swap.axis[rank - 1] = (uint8_t)(rank - 2);
    swap.axis[rank - 2] = (uint8_t)(rank - 1);
    return memcmp(&swap, &m->turn, sizeof swap) == 0;
}

enum weft_sink_reader weft_sink_reader_of(const struct weft_sinking *s, const struct weft_sink_member *m,
                                          const struct weft_operand *use)
{
    const struct weft_graph *g = s->graph;
    if (g->node[use->node.id].results == 1) {
        const struct weft_sink_member *reader = weft_sink_member_of(s, weft_result(g, use->node, 0));
        if (reader && !reader->is_source)
            return WEFT_READER_MEMBER;
        if (weft_opcode_of(g, use->node) == WEFT_OP_transpose && !weft_is_decided(g, use->node))
            return WEFT_READER_TRANSPOSE;
    }
    return absorbs(g, use, m) ? WEFT_READER_ABSORBS : WEFT_READER_OTHER;
}

/* A transpose of a value of its own region merges with what turns it, or its readers move, not both: they would want
 * that value. It merges. */
static bool is_inside(struct weft_sinking *s, const struct weft_sink_member *source)
{
    const weft_val x = weft_operand(s->graph, weft_def(s->graph, source->value), 0);
    const uint32_t self = s->member_of[source->value.id] - 1;
    return weft_sink_turned_member(s, x) &&
           weft_sink_first_of(s, s->member_of[x.id] - 1) == weft_sink_first_of(s, self);
}

struct weft_turn weft_sink_merged_turn(const struct weft_graph *g, weft_node transpose,
                                       const struct weft_sink_member *m)
{
    const struct weft_type *type = weft_type_of(g, weft_result(g, transpose, 0));
    struct weft_turn raw = weft_turn_none();
    for (unsigned i = 0; i < type->rank; i++)
        raw.axis[i] = m->turn.axis[weft_dim_value(weft_attr_at(g, transpose, WEFT_ATTR_perm, i))];
    return weft_turn_settle(type, &raw);
}

static void add_readers(struct weft_sinking *s, struct weft_cut *cut, const struct weft_sink_member *m)
{
    const struct weft_graph *g = s->graph;
    const bool inside = m->is_source && is_inside(s, m);
    bool wanted = g->value[m->value.id].returns > 0;
    for (uint32_t slot = g->value[m->value.id].first_use; slot; slot = g->slot[slot - 1].next) {
        const struct weft_operand *use = &g->slot[slot - 1];
        const enum weft_sink_reader reader = weft_sink_reader_of(s, m, use);
        wanted |= reader == WEFT_READER_OTHER;
        if (reader == WEFT_READER_MEMBER) { /* as it is, the node wants the value; straightened, its straight form */
            const struct weft_sink_member *by = weft_sink_member_of(s, weft_result(g, use->node, 0));
            weft_cut_edge(cut, m->place + 1, by->place, WEFT_CUT_NEVER);
            if (!m->is_source || inside)
                weft_cut_edge(cut, by->place, inside ? 1 : m->place, WEFT_CUT_NEVER);
        } else if (reader == WEFT_READER_TRANSPOSE && !m->is_source) {
            const struct weft_turn merged = weft_sink_merged_turn(g, use->node, m);
            if (weft_turn_is_none(&merged))
                weft_cut_edge(cut, 0, m->place, price(g, m->value));
        }
    }
    if (wanted)
        weft_cut_edge(cut, m->place + 1, 1, WEFT_CUT_NEVER);
    weft_cut_edge(cut, m->is_source ? 0 : m->place, m->place + 1, price(g, m->value));
}

weft_val weft_sink_choose(struct weft_sinking *s, uint32_t first, uint32_t places)
{
    struct weft_cut cut;
    weft_cut_open(&cut, &s->graph->root->scratch, places);
    for (uint32_t i = first + 1; i; i = s->member[i - 1].next)
        if (!weft_turn_is_none(&s->member[i - 1].turn))
            add_readers(s, &cut, &s->member[i - 1]);
    if (!weft_cut_solve(&cut))
        return WEFT_NO_VALUE;
    weft_val moves = WEFT_NO_VALUE;
    for (uint32_t i = first + 1; i; i = s->member[i - 1].next) {
        struct weft_sink_member *m = &s->member[i - 1];
        m->moves = !m->is_source && weft_cut_is_near(&cut, m->place);
        if (m->moves && !moves.id)
            moves = m->value;
    }
    return moves;
}
