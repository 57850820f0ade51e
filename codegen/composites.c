/* SPDX-License-Identifier: Apache-2.0 */
/* composites.c: what passes took to pieces, so that all ways to write it become one, is put together where nothing else
 * reads the pieces:
 *
 *   x * sigmoid(x)                                           silu
 *   x * tanh(softplus(x))                                    mish
 *   x * (½ * (1 + erf(x / sqrt 2)))                          gelu; also (½ x) * …, ½ * (x * …)
 *   x * (½ * (1 + tanh(sqrt(2/π) (x + 0.044715 x * x * x)))) gelu.tanh; likewise
 *
 * in f32, as groups also compute what has 16 bits. The one function takes fewer steps, and its errors are smaller,
 * since nothing is rounded on the way; gelu needs no 1 + erf or 1 + tanh, which cancel for negative x. Constants of 16
 * bits are recognised by their rounded value, and computed with as f32. */
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
    const int dtype = weft_type_of(g, v)->dtype;
    return constant && constant->kind == WEFT_CONST_SPLAT && !constant->integer &&
           (float)weft_rounded(dtype, constant->real) == (float)weft_rounded(dtype, (double)number);
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

static void mark(struct weft_composite *c, const uint32_t *place, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        c[place[i]].inside = true;
}

/* --- x * f(x) ----------------------------------------------------------------------------------------------------- */

/* The chain ends in x * gate(x); `k` is the operand that is the gate. */
static bool find_gated(const struct search *s, unsigned k, struct weft_composite *c)
{
    static const struct {
        const char *word;
        int op[2]; /* of the gate, last first */
    } gates[] = {{"silu", {WEFT_OP_sigmoid}}, {"mish", {WEFT_OP_tanh, WEFT_OP_softplus}}};
    const struct weft_graph *g = s->m->graph;
    const weft_node end = s->fit->node[s->end];
    for (size_t i = 0; i < sizeof gates / sizeof gates[0]; i++) {
        uint32_t place[2], count = 0;
        weft_val v = weft_operand(g, end, k);
        while (v.id && count < 2 && gates[i].op[count]) {
            place[count] = piece(s, v, gates[i].op[count]);
            v = only_operand(s, place[count++]);
        }
        if (!v.id || !weft_is(v, weft_operand(g, end, 1 - k)))
            continue;
        c[s->end] = (struct weft_composite){.word = gates[i].word, .at = s->end, .operand = (uint8_t)(1 - k)};
        mark(c, place, count);
        return true;
    }
    return false;
}

/* --- gelu --------------------------------------------------------------------------------------------------------- */

/* ½ x gate, in one of three orders. */
struct halved {
    weft_val x, gate;
    uint32_t inner;        /* place of the product that is done first */
    uint32_t at;           /* place of the product that reads x, as its operand `operand` */
    uint8_t operand;
};

static bool find_halved(const struct search *s, unsigned order, struct halved *ret)
{
    const struct weft_graph *g = s->m->graph;
    const weft_node end = s->fit->node[s->end];
    const unsigned k = order & 1; /* which operand of the end the inner product is; of that, which one x or ½ is */
    const uint8_t j = order >> 1 & 1;
    const uint32_t inner = piece(s, weft_operand(g, end, k), WEFT_OP_mul);
    if (inner == UINT32_MAX)
        return false;
    const weft_val other = weft_operand(g, end, 1 - k);
    const weft_val one = weft_operand(g, s->fit->node[inner], j), two = weft_operand(g, s->fit->node[inner], 1 - j);
    switch (order >> 2) {
    case 0: /* x * (½ gate) */
        *ret = (struct halved){other, two, inner, s->end, (uint8_t)(1 - k)};
        return is_number(g, one, 0.5f);
    case 1: /* (½ x) * gate */
        *ret = (struct halved){two, other, inner, inner, (uint8_t)(1 - j)};
        return is_number(g, one, 0.5f);
    default: /* ½ * (x gate) */
        *ret = (struct halved){one, two, inner, inner, j};
        return is_number(g, other, 0.5f);
    }
}

/* Is the product at p one of x and a piece that is a product? The place of that piece. */
static uint32_t times(const struct search *s, uint32_t p, weft_val x)
{
    const struct weft_graph *g = s->m->graph;
    for (unsigned k = 0; k < 2 && p != UINT32_MAX; k++)
        if (weft_is(weft_operand(g, s->fit->node[p], k), x))
            return piece(s, weft_operand(g, s->fit->node[p], 1 - k), WEFT_OP_mul);
    return UINT32_MAX;
}

static bool is_square(const struct search *s, uint32_t p, weft_val x)
{
    const weft_node n = p == UINT32_MAX ? WEFT_NO_NODE : s->fit->node[p];
    return n.id && weft_is(weft_operand(s->m->graph, n, 0), x) && weft_is(weft_operand(s->m->graph, n, 1), x);
}

/* Is the operand of the function at p x / sqrt 2? */
static bool scales(const struct search *s, uint32_t p, weft_val x, uint32_t *place)
{
    place[0] = piece(s, only_operand(s, p), WEFT_OP_mul);
    return weft_is(beside(s, place[0], 0x1.6a09e6p-1f), x);
}

/* Is it sqrt(2/π) (x + 0.044715 x³), or with x² x for the cube? */
static bool is_cubic(const struct search *s, uint32_t p, weft_val x, uint32_t place[5])
{
    const struct weft_graph *g = s->m->graph;
    place[0] = piece(s, only_operand(s, p), WEFT_OP_mul);
    const weft_val sum = beside(s, place[0], 0x1.988454p-1f);
    place[1] = sum.id ? piece(s, sum, WEFT_OP_add) : UINT32_MAX;
    for (unsigned k = 0; k < 2 && place[1] != UINT32_MAX; k++) {
        if (!weft_is(weft_operand(g, s->fit->node[place[1]], k), x))
            continue;
        place[2] = piece(s, weft_operand(g, s->fit->node[place[1]], 1 - k), WEFT_OP_mul);
        const weft_val cube = beside(s, place[2], 0x1.6e4e26p-5f);
        place[3] = cube.id ? piece(s, cube, WEFT_OP_mul) : UINT32_MAX;
        place[4] = times(s, place[3], x);
        if (is_square(s, place[4], x))
            return true;
    }
    return false;
}

static bool find_gelu(const struct search *s, unsigned order, struct weft_composite *c)
{
    uint32_t place[8];
    struct halved h;
    if (!find_halved(s, order, &h))
        return false;
    place[0] = h.inner, place[1] = piece(s, h.gate, WEFT_OP_add);
    const weft_val f = beside(s, place[1], 1.f);
    const uint32_t error = f.id ? piece(s, f, WEFT_OP_erf) : UINT32_MAX;
    const uint32_t tangent = f.id ? piece(s, f, WEFT_OP_tanh) : UINT32_MAX;
    unsigned count = 0;
    if (error != UINT32_MAX && scales(s, error, h.x, place + 3))
        place[2] = error, count = 4;
    else if (tangent != UINT32_MAX && is_cubic(s, tangent, h.x, place + 3))
        place[2] = tangent, count = 8;
    if (count == 0)
        return false;
    c[s->end] = (struct weft_composite){.word = count == 4 ? "gelu" : "gelu.tanh", .at = h.at, .operand = h.operand};
    mark(c, place, count);
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
            find_gated(&s, k, c);
        for (unsigned order = 0; order < 12 && !c[p].word; order++)
            find_gelu(&s, order, c);
    }
    return c;
}
