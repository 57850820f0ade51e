/* SPDX-License-Identifier: Apache-2.0 */
/* match_causal.c: constants that let row i see the keys 0 to i + offset.
 *
 *   0 -inf -inf          1 1 0
 *   0    0 -inf          1 1 1          offset 0, offset 1
 *
 * Read once, when the graph is compiled; at run time nobody reads them. Several matrices behind one another have all to
 * be the same triangle. Not done: windows of keys, which attention cannot say. */
#include "passes/match_attention.h"

/* The constant that v repeats along leading axes, whose last two are v's. */
static weft_val repeated_constant(const struct weft_graph *g, weft_val v)
{
    for (int step = 0; step < 4 && !weft_is_const(g, v); step++) {
        const weft_node n = weft_def(g, v);
        const int op = weft_def_opcode(g, v);
        if ((op != WEFT_OP_bcast && op != WEFT_OP_reshape && op != WEFT_OP_cast) || weft_is_decided(g, n))
            return WEFT_NO_VALUE;
        const weft_val x = weft_operand(g, n, 0);
        const struct weft_type *from = weft_type_of(g, x), *to = weft_type_of(g, v);
        if (from->rank < 2 || to->rank < 2)
            return WEFT_NO_VALUE;
        if (op == WEFT_OP_cast && !(weft_dtype_is_float(from->dtype) && weft_dtype_is_float(to->dtype)))
            return WEFT_NO_VALUE; /* a truth value that is added is 0 or 1, and hides nothing */
        for (int i = 1; i <= 2; i++) {
            if (!weft_dim_same(from->extent[from->rank - i], to->extent[to->rank - i]))
                return WEFT_NO_VALUE;
            if (op == WEFT_OP_bcast &&
                weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)(from->rank - i))) != to->rank - i)
                return WEFT_NO_VALUE;
        }
        v = x;
    }
    return weft_is_const(g, v) && weft_type_of(g, v)->rank >= 2 ? v : WEFT_NO_VALUE;
}

struct triangle {
    int dtype;
    const void *data;
    int64_t rows, keys;
    bool hides, finite;
};

/* How many keys a row sees, all of them in front of those that it does not; -1 if they are not so. */
static int64_t seen_by(struct triangle *t, int64_t row)
{
    int64_t seen = 0;
    for (int64_t key = 0; key < t->keys; key++) {
        const int64_t place = row * t->keys + key;
        bool hidden;
        if (t->dtype == WEFT_BOOL) {
            hidden = (weft_load_integer(t->dtype, t->data, place) != 0) == t->hides;
        } else {
            const double x = weft_load_real(t->dtype, t->data, place);
            hidden = weft_is_lowest(x);
            if (!hidden && x != 0)
                return -1;
            t->finite |= hidden && x >= -3.5e38;
        }
        if (!hidden && seen < key)
            return -1;
        seen += !hidden;
    }
    return seen;
}

bool weft_match_causal(struct weft_graph *g, weft_val v, bool hides, int64_t *ret_offset, bool *ret_finite)
{
    const weft_val c = repeated_constant(g, v);
    struct weft_element splat;
    if (!c.id || weft_const_splat(g, c, &splat))
        return false;
    const struct weft_type *type = weft_type_of(g, c);
    if (type->dtype != WEFT_BOOL && !weft_dtype_is_float(type->dtype))
        return false;
    struct triangle t = {.dtype = type->dtype, .hides = hides,
                         .rows = weft_dim_value(type->extent[type->rank - 2]),
                         .keys = weft_dim_value(type->extent[type->rank - 1])};
    const int64_t elements = weft_dim_value(weft_type_elements(g->dims, type));
    if (elements == 0)
        return false;
    t.data = weft_elements(g, c);
    bool known = false;
    int64_t offset = 0;
    for (int64_t row = 0; row < elements / t.keys; row++) {
        const int64_t seen = seen_by(&t, row), i = row % t.rows;
        if (seen < 0)
            return false;
        if (!known && (seen > 0 || i + 1 == t.rows)) { /* the first row that sees something says where the edge is */
            if (i > 0 && seen > 1)
                return false;
            offset = seen - 1 - i, known = true;
        }
        const int64_t expected = known ? (i + offset < -1 ? 0 : i + offset + 1 < t.keys ? i + offset + 1 : t.keys) : 0;
        if (seen != expected)
            return false;
    }
    *ret_offset = offset;
    *ret_finite = t.finite;
    return true;
}
