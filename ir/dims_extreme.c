/* SPDX-License-Identifier: Apache-2.0 */
/* dims_extreme.c: canonical minima and maxima of extents.
 *
 * Nested ones are flattened, operands that another one bounds for all values of the symbols are dropped, a common
 * constant and a common factor are taken out, and operands are sorted: min(N + 3, min(8, M + 3)) is min(M, N, 5) +
 * 3. A minimum and a maximum are not turned into each other: max(N, 8) should print as it was written.
 *
 * An atom that exists already is found before operands are dropped, so that an expression stays the same word after the
 * range of a symbol was narrowed. */
#include "ir/dims_table.h"

#include <string.h>

enum { MAX_OPERANDS = 64 };
struct operands {
    int kind;
    uint32_t count;
    weft_dim item[MAX_OPERANDS];
    int64_t factor; /* taken out: the whole is factor · extreme(items) + offset */
    int64_t offset;
    bool refused;
};

static void add_operand(struct operands *operands, weft_dim d)
{
    if (operands->count < MAX_OPERANDS)
        operands->item[operands->count++] = d;
    else
        operands->refused = true;
}

/* Adds d, or where d is k·min(…) + c (a maximum for negative k), the operands of that, scaled. */
static void add_flat(struct weft_dims *dims, struct operands *operands, weft_dim d)
{
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term *term = weft_dim_terms(dims, d, &constant, &count);
    const bool shifted = count == 2 && term[1].monomial == 0;
    if ((count != 1 && !shifted) || dims->monomial[term[0].monomial].degree != 1) {
        add_operand(operands, d);
        return;
    }
    const struct weft_dim_atom atom = dims->atom[dims->monomial[term[0].monomial].atom[0]];
    const int same = term[0].coefficient > 0 ? operands->kind : WEFT_DIM_MIN + WEFT_DIM_MAX - operands->kind;
    if (atom.kind != same) {
        add_operand(operands, d);
        return;
    }
    const weft_dim shift = weft_dim_of(shifted ? term[1].coefficient : 0);
    for (uint32_t i = 0; i < atom.arguments; i++)
        add_operand(operands, weft_dim_add_scaled(dims, shift, term[0].coefficient, atom.argument[i]));
}

/* Insertion sort, since there are two or three; duplicates go. */
static void sort_operands(const struct weft_dims *dims, struct operands *o)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        const weft_dim d = o->item[i];
        uint32_t at = kept;
        while (at > 0 && weft_dim_compare(dims, o->item[at - 1], d) > 0)
            at--;
        if (at > 0 && weft_dim_same(o->item[at - 1], d))
            continue;
        memmove(&o->item[at + 1], &o->item[at], (kept - at) * sizeof d);
        o->item[at] = d;
        kept++;
    }
    o->count = kept;
}

/* Common constant and factor taken out, then sorted: constants take part in the order. */
static void normalise_operands(struct weft_dims *dims, struct operands *o)
{
    int64_t shift = INT64_MAX, factor = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        struct weft_dim_term constant;
        uint32_t count;
        const struct weft_dim_term *term = weft_dim_terms(dims, o->item[i], &constant, &count);
        const int64_t number = count && term[count - 1].monomial == 0 ? term[count - 1].coefficient : 0;
        shift = number < shift ? number : shift;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        o->item[i] = weft_dim_sub(dims, o->item[i], weft_dim_of(shift));
        factor = weft_dim_common_factor(dims, factor, o->item[i], false);
    }
    o->factor = factor > 1 ? factor : 1;
    o->offset = shift;
    for (uint32_t i = 0; i < o->count && factor > 1; i++)
        o->item[i] = weft_dim_divide_terms(dims, o->item[i], factor, 0);
    sort_operands(dims, o);
}

/* Drops what another operand bounds for all values of the symbols. */
static void drop_bounded(struct weft_dims *dims, struct operands *o)
{
    bool drop[MAX_OPERANDS] = {false};
    for (uint32_t i = 0; i < o->count; i++) {
        for (uint32_t k = 0; k < o->count && !drop[i]; k++) {
            if (k == i || drop[k])
                continue;
            int64_t low, high;
            weft_dim_range(dims, weft_dim_sub(dims, o->item[i], o->item[k]), &low, &high);
            drop[i] = o->kind == WEFT_DIM_MIN ? low >= 0 : high <= 0;
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < o->count; i++)
        if (!drop[i])
            o->item[kept++] = o->item[i];
    o->count = kept;
}

/* Two operands whose extreme has a form without nesting become one. Done until there are none, so that whoever takes
 * the extreme of the same operands in another order finds the same ones left. */
static bool join_a_pair(struct weft_dims *dims, struct operands *o)
{
    for (uint32_t i = 0; i < o->count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const weft_dim pair[2] = {o->item[k], o->item[i]};
            weft_dim joined;
            if (weft_dim_flatten_steps(dims, o->kind, pair, 2, &joined)) {
                o->item[k] = joined;
                o->item[i] = o->item[--o->count];
                return true;
            }
        }
    return false;
}

static weft_dim extreme(struct weft_dims *dims, int kind, weft_dim a, weft_dim b)
{
    if (weft_dim_is_constant(a) && weft_dim_is_constant(b))
        return (weft_dim_value(a) < weft_dim_value(b)) == (kind == WEFT_DIM_MIN) ? a : b;
    struct operands o = {.kind = kind};
    add_flat(dims, &o, a);
    add_flat(dims, &o, b);
    if (o.refused)
        return weft_dim_refuse(dims, "a minimum or maximum has too many operands");
    struct operands small = o;
    drop_bounded(dims, &small);
    normalise_operands(dims, &o);
    weft_dim found;
    if (small.count > 1 && weft_dim_flatten_steps(dims, kind, small.item, small.count, &found))
        return found;
    while (small.count > 2 && join_a_pair(dims, &small)) {
    }
    if (small.count > 1 && weft_dim_flatten_steps(dims, kind, small.item, small.count, &found))
        return found;
    if (o.count == 1 || !weft_dim_find_atom(dims, kind, o.item, o.count, &found)) {
        o = small;
        normalise_operands(dims, &o);
        found = o.count == 1 ? o.item[0] : weft_dim_intern_atom(dims, kind, o.item, o.count);
    }
    return weft_dim_add_scaled(dims, weft_dim_of(o.offset), o.factor, found);
}

weft_dim weft_dim_min(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    return extreme(dims, WEFT_DIM_MIN, a, b);
}

weft_dim weft_dim_max(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    return extreme(dims, WEFT_DIM_MAX, a, b);
}
