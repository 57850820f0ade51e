/* SPDX-License-Identifier: Apache-2.0 */
/* format_memo.c: what has been worked out for one node holds for all that are like it.
 *
 * A graph repeats few nodes: the layers of a network are one layer many times. Two values are of one kind where prices
 * cannot tell them apart, and two nodes where they have the same op, attributes and kinds of values:
 *
 *   %a: f32[L,8] = exp %x        kind 3 = (exp, f32[L,8], f32[L,8])
 *   %b: f32[L,8] = exp %a        kind 3
 *   %c: f32[L,8] = exp %one      kind 5, if %one is a constant of equal elements: it is not read from memory
 *
 * Answers are kept under keys of words that begin with their purpose: (reading, kind 3, operand 0, these layouts, those
 * layouts). One table serves all questions, and all bodies of a graph while the pass runs. */
#include "sched/format.h"
#include "sched/select.h"

#include <string.h>
#include <xxhash.h>

struct weft_format_memo {
    struct weft_arena *arena;
    struct weft_format_answer **slot;
    uint32_t size, count, first_size; /* sizes: powers of two */
    uint64_t *word;             /* a key in the making */
    uint32_t words, capacity;
};

struct weft_format_answer {
    uint64_t hash;
    struct weft_format_known known;
    uint32_t words;
    uint64_t key[];
};

/* Slots: for a node, twice what is asked of it, about; and of large graphs, which repeat themselves. */
enum { ANSWERS = 32, MOST_AT_FIRST = 4096 };

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void grow(struct weft_format_memo *m)
{
    struct weft_format_answer **old = m->slot;
    const uint32_t size = m->size;
    m->size = size ? 2 * size : m->first_size;
    m->slot = weft_new(m->arena, struct weft_format_answer *, m->size);
    for (uint32_t i = 0; i < size; i++) {
        uint32_t at = old[i] ? (uint32_t)old[i]->hash & (m->size - 1) : 0;
        while (old[i] && m->slot[at])
            at = (at + 1) & (m->size - 1);
        if (old[i])
            m->slot[at] = old[i];
    }
}

struct weft_format_known *weft_format_recall(const struct weft_formats *f, const uint64_t *key, uint32_t words)
{
    struct weft_format_memo *m = f->memo;
    const uint64_t hash = XXH3_64bits(key, words * sizeof *key);
    if (2 * (m->count + 1) > m->size)
        grow(m);
    uint32_t at = (uint32_t)hash & (m->size - 1);
    for (; m->slot[at]; at = (at + 1) & (m->size - 1))
        if (m->slot[at]->hash == hash && m->slot[at]->words == words &&
            memcmp(m->slot[at]->key, key, words * sizeof *key) == 0)
            return &m->slot[at]->known;
    struct weft_format_answer *answer = weft_arena_new(m->arena, sizeof *answer + words * sizeof *key);
    answer->hash = hash;
    answer->words = words;
    answer->known.number = ++m->count;
    memcpy(answer->key, key, words * sizeof *key);
    m->slot[at] = answer;
    return &answer->known;
}

/* --- keys of kinds ------------------------------------------------------------------------------------------------ */

enum purpose { TYPE = WEFT_RECALL_PURPOSES, VALUE, NODE };

static void say(struct weft_format_memo *m, uint64_t word)
{
    m->word = weft_grow(m->arena, m->word, &m->capacity, m->words + 1, sizeof *m->word);
    m->word[m->words++] = word;
}

static void say_bytes(struct weft_format_memo *m, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, (const char *)data + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        say(m, word);
    }
}

static void say_attr(struct weft_format_memo *m, const struct weft_attr *attr)
{
    const size_t length = attr->kind == WEFT_ATTR_WORD ? strlen(attr->word) : attr->count;
    say(m, (uint64_t)length << 16 | (uint64_t)attr->key << 8 | attr->kind);
    switch ((enum weft_attr_kind)attr->kind) {
    case WEFT_ATTR_INT: say(m, (uint64_t)attr->integer.bits); return;
    case WEFT_ATTR_REAL: say_bytes(m, &attr->real, sizeof attr->real); return;
    case WEFT_ATTR_WORD: say_bytes(m, attr->word, length); return;
    case WEFT_ATTR_DTYPE: say(m, (uint64_t)attr->dtype); return;
    case WEFT_ATTR_INTS: say_bytes(m, attr->integers, attr->count * sizeof *attr->integers); return;
    case WEFT_ATTR_REALS: say_bytes(m, attr->reals, attr->count * sizeof *attr->reals); return;
    case WEFT_ATTR_GRAPH: say(m, (uint64_t)(uintptr_t)attr->graph); return;
    case WEFT_ATTR_VALUES: return; /* prices of functions do not ask for them */
    }
}

static uint32_t number_of(const struct weft_formats *f)
{
    return weft_format_recall(f, f->memo->word, f->memo->words)->number;
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

static uint32_t type_number(const struct weft_formats *f, weft_val v)
{
    const struct weft_type *type = weft_type_of(f->graph, v);
    f->memo->words = 0;
    say(f->memo, TYPE);
    say(f->memo, (uint64_t)type->dtype << 8 | type->rank);
    say_bytes(f->memo, type->extent, type->rank * sizeof *type->extent);
    return number_of(f);
}

/* Beside its type, what is read of a value counts (weft_format_bytes), which of its axes are stored at all, and whether
 * it is converted once. */
static uint32_t value_kind(const struct weft_formats *f, weft_val v)
{
    const struct weft_graph *g = f->graph;
    struct weft_element element;
    const uint32_t type = type_number(f, v);
    const weft_val stored = weft_format_stored(g, v);
    const bool is_const = weft_is_const(g, stored), is_view = !weft_is(v, stored);
    const uint64_t key[] = {VALUE, type, is_view ? type_number(f, stored) : 0,
                            is_view ? weft_format_stored_axes(g, v) : 0,
                            is_const && weft_const_splat(g, stored, &element),
                            weft_format_converts_once(f, v)};
    return weft_format_recall(f, key, sizeof key / sizeof *key)->number;
}

static uint32_t node_kind(const struct weft_formats *f, weft_node n)
{
    const struct weft_graph *g = f->graph;
    const struct weft_node_info *info = &g->node[n.id];
    struct weft_format_memo *m = f->memo;
    m->words = 0;
    say(m, NODE);
    say(m, (uint64_t)info->op << 32 | info->operands);
    say(m, (uint64_t)info->results << 32 | info->attrs);
    for (uint32_t i = 0; i < info->operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        const bool is_piece = info->op == WEFT_OP_concat || info->op == WEFT_OP_pad;
        say(m, (uint64_t)f->kind[v.id] << 8 |
                   (is_piece ? weft_format_piece_kind(g, v)
                             : i == 1 && weft_select_packs(g, weft_select_kind((int)info->op), v)));
    }
    for (uint32_t i = 0; i < info->results; i++)
        say(m, f->kind[weft_result(g, n, i).id]);
    for (uint32_t i = 0; i < info->attrs; i++)
        say_attr(m, &info->attr[i]);
    say(m, weft_format_goes_along(g, n));
    return number_of(f);
}

void weft_format_kinds(struct weft_formats *f)
{
    struct weft_graph *g = f->graph;
    if (!g->root->pass_memory) {
        struct weft_format_memo *memo = weft_new(f->arena, struct weft_format_memo, 1);
        memo->arena = f->arena;
        memo->first_size = 64;
        while (memo->first_size < MOST_AT_FIRST && memo->first_size / ANSWERS < g->live_nodes)
            memo->first_size *= 2;
        g->root->pass_memory = memo;
    }
    f->memo = g->root->pass_memory;
    f->kind = weft_new(f->arena, uint32_t, g->values);
    f->node_kind = weft_new(f->arena, uint32_t, g->nodes);
    for (uint32_t i = 0; i < g->params; i++)
        f->kind[g->param[i].id] = value_kind(f, g->param[i]);
    weft_foreach_node(g, n) {
        for (uint32_t i = 0; i < g->node[n.id].results; i++)
            f->kind[weft_result(g, n, i).id] = value_kind(f, weft_result(g, n, i));
        f->node_kind[n.id] = node_kind(f, n);
    }
}
