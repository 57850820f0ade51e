/* SPDX-License-Identifier: Apache-2.0 */
/* composites.c: what passes took to pieces, so that all ways to write it become one, is put together where nothing else
 * reads the pieces:
 *
 *   x * (½ * (1 + erf(x / sqrt 2)))    gelu, as decompose writes it
 *   x * sigmoid(x)                     silu
 *
 * in f32, as groups also compute what has 16 bits. The one function takes fewer steps, and its errors are smaller,
 * since nothing is rounded on the way; gelu needs no 1 + erf, which cancels for negative x. */
#include "codegen/composites.h"

#include "codegen/widths.h"

#include <string.h>

struct search {
    const struct weft_members *m;
    const struct weft_fit *fit;
    uint32_t end;          /* place of the chain's last node */
};

/* The place of the elementwise node `op` that makes v, which nothing but one operand reads; else UINT32_MAX. It
 * belongs to the stage of the chain's end, so that the chain is one instruction there. */
static uint32_t piece(const struct search *s, weft_val v, int op)
{
    const struct weft_graph *g = s->m->graph;
    const uint32_t p = weft_member_place(s->m, weft_def(g, v));
    if (p == UINT32_MAX || weft_opcode_of(g, s->fit->node[p]) != op || s->fit->member[p].out ||
        s->m->member[s->fit->node[p].id]->kind != WEFT_MEMBER_MAP)
        return UINT32_MAX;
    const uint32_t use = g->value[v.id].first_use;
    const struct weft_fit_member *one = &s->fit->member[p], *end = &s->fit->member[s->end];
    const bool alone = use && !g->slot[use - 1].next && one->stage == end->stage && one->inside == end->inside &&
                       one->axes == end->axes;
    return alone ? p : UINT32_MAX;
}

static bool is_number(const struct weft_graph *g, weft_val v, float number)
{
    const struct weft_constant *const constant = g->node[weft_def(g, v).id].constant;
    return constant && constant->kind == WEFT_CONST_SPLAT && !constant->integer &&
           (float)weft_rounded(weft_type_of(g, v)->dtype, constant->real) == number;
}

/* The operand of the node at p that is not the constant, or no value. */
static weft_val beside(const struct search *s, uint32_t p, float number)
{
    const struct weft_graph *g = s->m->graph;
    for (unsigned k = 0; k < 2 && p != UINT32_MAX; k++)
        if (is_number(g, weft_operand(g, s->fit->node[p], k), number))
            return weft_operand(g, s->fit->node[p], 1 - k);
    return WEFT_NO_VALUE;
}

static weft_val only_operand(const struct search *s, uint32_t p)
{
    return p == UINT32_MAX ? WEFT_NO_VALUE : weft_operand(s->m->graph, s->fit->node[p], 0);
}

/* x, if v is 1 + erf(x / sqrt 2); the places on the way. */
static weft_val gate_of(const struct search *s, weft_val v, uint32_t place[3])
{
    place[0] = piece(s, v, WEFT_OP_add);
    const weft_val error = beside(s, place[0], 1.f);
    place[1] = error.id ? piece(s, error, WEFT_OP_erf) : UINT32_MAX;
    const weft_val scaled = only_operand(s, place[1]);
    place[2] = scaled.id ? piece(s, scaled, WEFT_OP_mul) : UINT32_MAX;
    return beside(s, place[2], 0x1.6a09e6p-1f);
}

static void mark(struct weft_composite *c, const uint32_t *place, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        c[place[i]].inside = true;
}

/* The end of the chain is x * (½ gate); `k` is the operand in parentheses. Other orders are left as they are: their end
 * does not read x, and what it does not read need not be at hand in its stage. */
static bool find_gelu(const struct search *s, unsigned k, struct weft_composite *c)
{
    const struct weft_graph *g = s->m->graph;
    const weft_node end = s->fit->node[s->end];
    uint32_t place[4];
    place[3] = piece(s, weft_operand(g, end, k), WEFT_OP_mul);
    if (place[3] == UINT32_MAX)
        return false;
    const weft_val gate = beside(s, place[3], 0.5f), x = gate.id ? gate_of(s, gate, place) : WEFT_NO_VALUE;
    if (!x.id || !weft_is(x, weft_operand(g, end, 1 - k)))
        return false;
    c[s->end] = (struct weft_composite){.word = "gelu", .operand = (uint8_t)(1 - k)};
    mark(c, place, 4);
    return true;
}

static bool find_silu(const struct search *s, unsigned k, struct weft_composite *c)
{
    const struct weft_graph *g = s->m->graph;
    const weft_node end = s->fit->node[s->end];
    const uint32_t place = piece(s, weft_operand(g, end, k), WEFT_OP_sigmoid);
    const weft_val x = only_operand(s, place);
    if (!x.id || !weft_is(x, weft_operand(g, end, 1 - k)))
        return false;
    c[s->end] = (struct weft_composite){.word = "silu", .operand = (uint8_t)(1 - k)};
    mark(c, &place, 1);
    return true;
}

struct weft_composite *weft_composites_find(const struct weft_members *m, const struct weft_fit *fit,
                                            struct weft_arena *arena)
{
    const struct weft_graph *g = m->graph;
    struct weft_composite *const c = weft_new(arena, struct weft_composite, fit->count);
    for (uint32_t p = 0; p < fit->count; p++) {
        const weft_node n = fit->node[p];
        const struct search s = {.m = m, .fit = fit, .end = p};
        const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
        if (weft_opcode_of(g, n) != WEFT_OP_mul || weft_inside_dtype(dtype) != WEFT_F32)
            continue;
        for (unsigned k = 0; k < 2 && !c[p].word; k++)
            if (!find_gelu(&s, k, c))
                find_silu(&s, k, c);
    }
    return c;
}
