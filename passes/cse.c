/* SPDX-License-Identifier: Apache-2.0 */
/* cse: compute equal things once.
 *
 *   %a: f32[8] = exp %x                        %a: f32[8] = exp %x
 *   %b: f32[8] = exp %x                  →     %c: f32[8] = mul %a, %a
 *   %c: f32[8] = mul %a, %b                    return %c
 *   return %c
 *
 * One walk in order of execution with a hash table of what has been computed: op, operands (sorted where they
 * commute), attributes, stated type, layouts, elements of constants. Operands were made one before the node is looked
 * at, so equal trees fall together from the leaves up in one walk. A node that was computed before is replaced by the
 * first of its kind, which stands earlier and therefore dominates every use.
 *
 * Constants are compared by content, without reading large weights twice: the hash takes three samples of 256 bytes,
 * and only constants of the same type and samples are compared byte by byte; two of the same place in the same file
 * are equal at once.
 *
 * Why layouts count: two copies of a value in different layouts are what layout propagation may have asked for.
 * Needs: nothing. Not done: `if` and `loop` are never equal, bodies are not compared; nodes in
 * groups or with a kernel are left alone. */
#include "passes/passes.h"

#include <string.h>
#include <xxhash.h>

struct table {
    struct weft_graph *graph;
    uint32_t *slot; /* node ids, 0: free */
    uint64_t *hash; /* of slot's node */
    uint32_t size;  /* a power of two */
};

/* --- hashing ---------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) { return XXH3_64bits_withSeed(data, bytes, hash); }
static uint64_t mix_word(uint64_t hash, uint64_t word) { return mix(hash, &word, sizeof word); }

static uint64_t hash_type(uint64_t hash, const struct weft_type *type)
{
    hash = mix_word(hash, type->dtype * 16u + type->rank);
    return mix(hash, type->extent, type->rank * sizeof type->extent[0]);
}

static uint64_t hash_constant(uint64_t hash, const struct weft_graph *g, weft_val value)
{
    const struct weft_constant *constant = g->node[weft_def(g, value).id].constant;
    hash = mix_word(hash, constant->kind);
    if (constant->kind == WEFT_CONST_SPLAT)
        return constant->integer ? mix_word(hash, (uint64_t)constant->splat)
                                 : mix(hash, &constant->real, sizeof constant->real);
    if (constant->kind == WEFT_CONST_RANDOM)
        return mix(mix_word(hash, constant->seed), &constant->scale, sizeof constant->scale);
    const char *data = weft_const_data(g, value);
    const size_t bytes = (size_t)weft_constant_bytes(g, value), sample = 256;
    if (bytes <= 3 * sample)
        return mix(hash, data, bytes);
    hash = mix(hash, data, sample);
    hash = mix(hash, data + bytes / 2, sample);
    return mix(hash, data + bytes - sample, sample);
}

static uint64_t hash_attr(uint64_t hash, const struct weft_attr *attr)
{
    hash = mix_word(hash, attr->key);
    switch ((enum weft_attr_kind)attr->kind) {
    case WEFT_ATTR_INT: return mix_word(hash, (uint64_t)attr->integer.bits);
    case WEFT_ATTR_REAL: return mix(hash, &attr->real, sizeof attr->real);
    case WEFT_ATTR_WORD: return mix(hash, attr->word, strlen(attr->word));
    case WEFT_ATTR_DTYPE: return mix_word(hash, (uint64_t)attr->dtype);
    case WEFT_ATTR_INTS: return mix(hash, attr->integers, attr->count * sizeof *attr->integers);
    case WEFT_ATTR_REALS: return mix(hash, attr->reals, attr->count * sizeof *attr->reals);
    case WEFT_ATTR_GRAPH: return hash;
    case WEFT_ATTR_VALUES: return mix_word(hash, attr->count); /* equality looks closer */
    }
    return hash;
}

/* Operand i, in an order that is the same for both orders of a commutative op's operands. */
static weft_val operand_at(const struct weft_graph *g, weft_node n, unsigned i)
{
    if (i < 2 && (weft_op_of(g, n)->traits & WEFT_COMMUTATIVE)) {
        const weft_val a = weft_operand(g, n, 0), b = weft_operand(g, n, 1);
        return (a.id < b.id) == (i == 0) ? a : b;
    }
    return weft_operand(g, n, i);
}

static uint64_t hash_node(const struct weft_graph *g, weft_node n)
{
    const struct weft_node_info *info = &g->node[n.id];
    uint64_t hash = info->op;
    for (unsigned i = 0; i < info->operands; i++)
        hash = mix_word(hash, operand_at(g, n, i).id);
    for (unsigned i = 0; i < info->attrs; i++)
        hash = hash_attr(hash, &info->attr[i]);
    hash = hash_type(hash, weft_type_of(g, weft_result(g, n, 0)));
    return info->op == WEFT_OP_const ? hash_constant(hash, g, weft_result(g, n, 0)) : hash;
}

/* --- equality --------------------------------------------------------------------------------------------------- */

static bool same_constant(const struct weft_graph *g, weft_node a, weft_node b)
{
    const struct weft_constant *x = g->node[a.id].constant, *y = g->node[b.id].constant;
    if (x->kind != y->kind)
        return false;
    switch ((enum weft_constant_kind)x->kind) {
    case WEFT_CONST_SPLAT:
        return x->integer == y->integer &&
               (x->integer ? x->splat == y->splat : memcmp(&x->real, &y->real, sizeof x->real) == 0);
    case WEFT_CONST_RANDOM:
        return x->seed == y->seed && memcmp(&x->scale, &y->scale, sizeof x->scale) == 0;
    case WEFT_CONST_BLOB:
        break;
    }
    const void *p = weft_const_data(g, weft_result(g, a, 0)), *q = weft_const_data(g, weft_result(g, b, 0));
    return p == q || memcmp(p, q, (size_t)weft_constant_bytes(g, weft_result(g, a, 0))) == 0;
}

static bool same_node(const struct weft_graph *g, weft_node a, weft_node b)
{
    const struct weft_node_info *x = &g->node[a.id], *y = &g->node[b.id];
    if (x->op != y->op || x->operands != y->operands || x->results != y->results || x->attrs != y->attrs)
        return false;
    for (unsigned i = 0; i < x->operands; i++)
        if (!weft_is(operand_at(g, a, i), operand_at(g, b, i)))
            return false;
    for (unsigned i = 0; i < x->attrs; i++)
        if (!weft_attr_equal(&x->attr[i], &y->attr[i]))
            return false;
    for (unsigned i = 0; i < x->results; i++) {
        const struct weft_value *p = weft_value_of(g, weft_result(g, a, i));
        const struct weft_value *q = weft_value_of(g, weft_result(g, b, i));
        if (!weft_type_same(&p->type, &q->type) || p->layout != q->layout ||
            p->stated != q->stated)
            return false;
    }
    return x->op != WEFT_OP_const || same_constant(g, a, b);
}

/* --- the walk --------------------------------------------------------------------------------------------------- */

/* The first node equal to n, or n itself, which is then in the table. */
static weft_node first_equal(struct table *table, weft_node n)
{
    const uint64_t hash = hash_node(table->graph, n);
    uint32_t i = (uint32_t)hash & (table->size - 1);
    for (; table->slot[i]; i = (i + 1) & (table->size - 1))
        if (table->hash[i] == hash && same_node(table->graph, (weft_node){.id = table->slot[i]}, n))
            return (weft_node){.id = table->slot[i]};
    table->slot[i] = n.id;
    table->hash[i] = hash;
    return n;
}

static bool merge(struct weft_graph *g, weft_node n, weft_node first)
{
    bool useful = false;
    for (unsigned i = 0; i < g->node[n.id].results; i++)
        useful |= weft_can_substitute(g, weft_result(g, n, i), weft_result(g, first, i));
    if (!useful || !weft_permit(g, "cse", weft_result(g, n, 0)))
        return false;
    const char *name = g->value[weft_result(g, n, 0).id].name, *other = g->value[weft_result(g, first, 0).id].name;
    if (name)
        weft_add_remark(g, "cse", weft_result(g, n, 0), "done", "it equals %s", other ? other : "an earlier value");
    for (unsigned i = 0; i < g->node[n.id].results; i++)
        if (weft_can_substitute(g, weft_result(g, n, i), weft_result(g, first, i)))
            weft_substitute(g, weft_result(g, n, i), weft_result(g, first, i));
    weft_erase_unused(g, n);
    return true;
}

bool weft_pass_cse(struct weft_graph *graph, const struct weft_target *target)
{
    struct table table = {.graph = graph, .size = 16};
    while (table.size < 2 * graph->live_nodes)
        table.size *= 2;
    table.slot = weft_new(&graph->root->scratch, uint32_t, table.size);
    table.hash = weft_new(&graph->root->scratch, uint64_t, table.size);
    bool changed = false;
    weft_foreach_node(graph, n) {
        const bool has_bodies = weft_op_of(graph, n)->traits & WEFT_CONTROL;
        if (graph->node[n.id].results == 0 || weft_is_decided(graph, n) || has_bodies)
            continue;
        const weft_node first = first_equal(&table, n);
        changed |= first.id != n.id && merge(graph, n, first);
    }
    return changed;
}
