/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_mix_order: sums down the columns of what is also summed along its rows take the same pass over memory.
 *
 *   %a: f32[N] = mean %p axes=[1]                  %a: f32[N] = mean %p axes=[1]
 *   %g: f32[768] = sum %q axes=[0]           →     %c: f32[(N + 127)/128,768] = fold_chunks %q axis=0 chunk=128
 *                                                  %g: f32[768] = sum %c axes=[0]
 *
 * %p and %q are computed from the same data, as in the backward pass of a layer norm. A kernel goes either along rows,
 * which it shares out among workers, or down columns, and so the two sums are two kernels that read everything twice. A
 * fold of chunks goes along with the rows: whoever does a chunk of them adds them up column by column, and what the
 * chunks come to is a small array, which a second reduction finishes. Which chunks there are does not depend on the
 * number of workers, so the bits do not either.
 *
 * `fuse` then puts the fold of chunks into the group of the rows; where it does not, `fuse` takes it back.
 *
 * Taken: sum, mean, prod, reduce_max and reduce_min over the first axes of what lies row-major, where another reduction
 * goes over all other axes and both read data of the same extents. Chunks are 128 rows, more where there would be
 * thousands of chunks, fewer where there would be under 32; 16-bit sums are handed on in f32. Refused, with the
 * numbers: where less than 256 KiB need not be read again, or where the results of the chunks are more than an eighth
 * of that. Needs: layouts. Comes before `fuse`.
 *
 * Not done: column sums of what has no row sum, which `fuse` makes a group of columns; axes that are not the first. */
#include "passes/passes.h"

enum { MOST_VALUES = 256, ROWS = 128, MOST_ROWS = 1024, LEAST_ROWS = 16, MANY_CHUNKS = 1024, FEW_CHUNKS = 32, WORTH = 8,
       LEAST_BYTES = 256 << 10 };

struct search {
    struct weft_graph *graph;
    uint32_t *visit, visits; /* by value: of the last search that came by */
    uint32_t *columns;       /* by value: of the last search from a reduction down columns that found it */
    weft_val *list;          /* what it found */
    uint32_t count, capacity;
    const struct weft_type *type; /* extents of what counts as data */
};

/* --- what reductions read ----------------------------------------------------------------------------------------- */

static bool is_reduction(int op)
{
    return op == WEFT_OP_sum || op == WEFT_OP_mean || op == WEFT_OP_prod || op == WEFT_OP_reduce_max ||
           op == WEFT_OP_reduce_min;
}

/* Does it reduce axes [first, end) of its operand, and no others? */
static bool reduces(const struct weft_graph *g, weft_node n, int first, int end)
{
    const struct weft_attr *const axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    bool same = is_reduction(weft_opcode_of(g, n)) && axes->count == (unsigned)(end - first);
    for (unsigned i = 0; same && i < axes->count; i++)
        same = weft_dim_value(axes->integers[i]) == first + (int)i;
    return same;
}

static bool same_extents(const struct weft_type *a, const struct weft_type *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = weft_dim_same(a->extent[i], b->extent[i]);
    return same;
}

static void visit(struct search *s, weft_val v)
{
    if (s->visit[v.id] == s->visits || s->count == MOST_VALUES)
        return;
    s->visit[v.id] = s->visits;
    s->list = weft_grow(&s->graph->root->scratch, s->list, &s->capacity, s->count + 1, sizeof *s->list);
    s->list[s->count++] = v;
}

/* Gone through: what a group may compute on the way from its data to a reduction. */
static bool is_open(const struct weft_graph *g, weft_node n)
{
    return n.id && ((weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) || weft_is_view(g, n) ||
                    is_reduction(weft_opcode_of(g, n)));
}

/* Everything that a reduction's operand is computed from, through ops that may be in a group with it. */
static void find_data(struct search *s, weft_node reduction)
{
    const struct weft_graph *const g = s->graph;
    s->visits++;
    s->count = 0;
    visit(s, weft_operand(g, reduction, 0));
    for (uint32_t i = 0; i < s->count; i++) {
        const weft_node n = weft_def(g, s->list[i]);
        for (uint32_t k = 0; is_open(g, n) && k < g->node[n.id].operands; k++)
            visit(s, weft_operand(g, n, k));
    }
}

/* Bytes of data in the list of the search that search number `columns` has found too. */
static int64_t shared_bytes(const struct search *s, uint32_t columns)
{
    const struct weft_graph *const g = s->graph;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const weft_val v = s->list[i];
        const struct weft_type *type = weft_type_of(g, v);
        if (s->columns[v.id] != columns || is_open(g, weft_def(g, v)) || weft_is_const(g, v) ||
            !same_extents(type, s->type))
            continue;
        int64_t size = weft_dtype_bits(type->dtype) / 8;
        for (int d = 0; d < type->rank; d++)
            size *= weft_dim_hint(g->dims, type->extent[d]);
        bytes += size;
    }
    return bytes;
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

struct candidate {
    weft_node fold;
    int axes;               /* it reduces the first ones; the last of them is cut */
    int64_t chunk, saved, partial; /* rows; bytes that are not read again; bytes of what chunks come to */
};

static int64_t chunks_of(const struct weft_graph *g, const struct weft_type *type, int axes, int64_t chunk)
{
    const int64_t rows = weft_dim_hint(g->dims, type->extent[axes - 1]);
    int64_t chunks = (rows + chunk - 1) / chunk;
    for (int i = 0; i < axes - 1; i++)
        chunks *= weft_dim_hint(g->dims, type->extent[i]);
    return chunks;
}

static void cut(const struct weft_graph *g, struct candidate *c)
{
    const struct weft_type *const type = weft_type_of(g, weft_operand(g, c->fold, 0));
    const int64_t rows = weft_dim_hint(g->dims, type->extent[c->axes - 1]);
    c->chunk = ROWS;
    while (c->chunk < MOST_ROWS && c->chunk < rows && chunks_of(g, type, c->axes, c->chunk) > MANY_CHUNKS)
        c->chunk *= 2;
    while (c->chunk > LEAST_ROWS && chunks_of(g, type, c->axes, c->chunk) < FEW_CHUNKS)
        c->chunk /= 2;
    c->partial = 4 * chunks_of(g, type, c->axes, c->chunk);
    for (int i = c->axes; i < type->rank; i++)
        c->partial *= weft_dim_hint(g->dims, type->extent[i]);
}

/* Axes that a reduction over the first ones reduces, of what lies row-major; 0: it is none. */
static int leading_axes(const struct weft_graph *g, weft_node n)
{
    if (!is_reduction(weft_opcode_of(g, n)) || weft_is_decided(g, n))
        return 0;
    const weft_val in = weft_operand(g, n, 0);
    const struct weft_type *const type = weft_type_of(g, in);
    const struct weft_layout from = weft_layout_of(g, in), to = weft_layout_of(g, weft_result(g, n, 0));
    const int axes = weft_attr_find(g, n, WEFT_ATTR_axes)->count;
    const bool floats = weft_dtype_is_float(type->dtype) || weft_opcode_of(g, n) != WEFT_OP_mean;
    return floats && axes > 0 && axes < type->rank && reduces(g, n, 0, axes) && weft_layout_is_row_major(&from) &&
           weft_layout_is_row_major(&to) && weft_dtype_bits(type->dtype) >= 16 ? axes : 0;
}

/* With the reduction along rows that has most of the data. */
static bool find_rows(struct search *s, const weft_node *rows, uint32_t count, struct candidate *c)
{
    const struct weft_graph *const g = s->graph;
    s->type = weft_type_of(g, weft_operand(g, c->fold, 0));
    find_data(s, c->fold);
    const uint32_t columns = s->visits;
    bool any = false;
    for (uint32_t i = 0; i < s->count; i++)
        s->columns[s->list[i].id] = columns;
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_type *const type = weft_type_of(g, weft_operand(g, rows[i], 0));
        if (!same_extents(type, s->type) || !reduces(g, rows[i], c->axes, type->rank))
            continue;
        find_data(s, rows[i]);
        const int64_t bytes = shared_bytes(s, columns);
        any |= bytes > 0;
        c->saved = bytes > c->saved ? bytes : c->saved;
    }
    return any;
}

/* --- the rewrite -------------------------------------------------------------------------------------------------- */

/* The number of terms, as elements of `type`. */
static weft_val count_terms(struct weft_builder *b, const struct weft_type *type, const struct weft_type *from,
                            int axes)
{
    struct weft_dims *const dims = b->graph->dims;
    weft_dim count = weft_dim_of(1);
    for (int i = 0; i < axes; i++)
        count = weft_dim_mul(dims, count, from->extent[i]);
    return weft_build_size(b, type, count);
}

static void rewrite(struct weft_graph *g, const struct candidate *c)
{
    static const char *const words[] = {[WEFT_OP_sum] = "sum", [WEFT_OP_mean] = "sum", [WEFT_OP_prod] = "prod",
                                        [WEFT_OP_reduce_max] = "max", [WEFT_OP_reduce_min] = "min"};
    const int op = weft_opcode_of(g, c->fold), whole = op == WEFT_OP_mean ? WEFT_OP_sum : op;
    const bool is_sum = whole == WEFT_OP_sum || whole == WEFT_OP_prod;
    const weft_val in = weft_operand(g, c->fold, 0), out = weft_result(g, c->fold, 0);
    const struct weft_type from = *weft_type_of(g, in), to = *weft_type_of(g, out);
    struct weft_builder b = {.graph = g, .before = c->fold};
    const bool widens = is_sum && weft_dtype_is_float(from.dtype) && weft_dtype_bits(to.dtype) == 16;
    const int sums = widens ? WEFT_F32 : to.dtype;
    struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_axis, c->axes - 1),
                               weft_attr_of_int(WEFT_ATTR_chunk, c->chunk),
                               weft_attr_of_word(WEFT_ATTR_fold, words[op]),
                               {.key = WEFT_ATTR_acc, .kind = WEFT_ATTR_DTYPE, .count = 1, .dtype = sums}};
    const weft_val partial = weft_build(&b, WEFT_OP_fold_chunks, 1, &in, 3 + (sums != from.dtype), attr, NULL);
    int axis[WEFT_MAX_RANK];
    for (int i = 0; i < c->axes; i++)
        axis[i] = i;
    weft_val total = weft_build_reduce(&b, whole, partial, (unsigned)c->axes, axis, /* keepdims= */ false);
    if (op == WEFT_OP_mean) {
        const struct weft_type type = *weft_type_of(g, total);
        total = weft_build_binary(&b, WEFT_OP_div, total, count_terms(&b, &type, &from, c->axes));
    }
    if (weft_type_of(b.graph, total)->dtype != to.dtype) /* not loose: decompose, which follows loose casts, is over */
        total = weft_build_cast(&b, total, to.dtype);
    if (!weft_type_same(weft_type_of(g, total), &to))
        total = weft_build_reshape(&b, total, &to); /* keepdims */
    weft_replace_uses(g, out, total);
    weft_erase_node(g, c->fold);
}

static bool try_rewrite(struct weft_graph *g, const struct candidate *c)
{
    static const char who[] = "fuse_mix_order";
    const weft_val out = weft_result(g, c->fold, 0);
    const double saved = (double)c->saved / 1024, partial = (double)c->partial / 1024;
    if (c->saved < LEAST_BYTES) {
        weft_add_remark(g, who, out, "refused", "would save reading %.0f KiB again: too few for one reduction more",
                        saved);
        return false;
    }
    if (c->partial > c->saved / WORTH) {
        weft_add_remark(g, who, out, "refused", "would save reading %.0f KiB again, but chunks of %lld rows come to "
                        "%.0f KiB", saved, (long long)c->chunk, partial);
        return false;
    }
    if (!weft_permit(g, who, out))
        return false;
    weft_add_remark(g, who, out, "cut", "chunks of %lld rows: %.0f KiB are not read again, chunks come to %.0f KiB",
                    (long long)c->chunk, saved, partial);
    rewrite(g, c);
    return true;
}

bool weft_pass_fuse_mix_order(struct weft_graph *graph, const struct weft_target *target)
{
    (void)target; /* chunks are those of the sizes alone */
    struct weft_arena *const arena = &graph->root->scratch;
    weft_node *const fold = weft_new(arena, weft_node, graph->nodes);
    weft_node *const rows = weft_new(arena, weft_node, graph->nodes);
    uint32_t folds = 0, row_folds = 0;
    weft_foreach_node(graph, n) {
        if (leading_axes(graph, n))
            fold[folds++] = n;
        else if (is_reduction(weft_opcode_of(graph, n)))
            rows[row_folds++] = n;
    }
    if (folds == 0 || row_folds == 0)
        return false;
    struct search s = {.graph = graph, .visit = weft_new(arena, uint32_t, graph->values),
                       .columns = weft_new(arena, uint32_t, graph->values)};
    struct candidate *const found = weft_new(arena, struct candidate, folds);
    uint32_t count = 0;
    for (uint32_t i = 0; i < folds; i++) {
        struct candidate c = {.fold = fold[i], .axes = leading_axes(graph, fold[i])};
        if (!find_rows(&s, rows, row_folds, &c))
            continue;
        cut(graph, &c);
        found[count++] = c;
    }
    bool changed = false;
    for (uint32_t i = 0; i < count; i++)
        changed |= try_rewrite(graph, &found[i]);
    return changed;
}
