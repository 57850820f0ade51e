/* SPDX-License-Identifier: Apache-2.0 */
/* dims_order.c: the orders of atoms, products and expressions. They compare names and structure, never ids: the order
 * of terms in print does not depend on how a graph came to be. */
#include "ir/dims_table.h"

#include <string.h>

int weft_dim_compare_atoms(const struct weft_dims *dims, uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    const struct weft_dim_atom *x = &dims->atom[a], *y = &dims->atom[b];
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->kind == WEFT_DIM_SYMBOL)
        return strcmp(dims->symbol[x->symbol].name, dims->symbol[y->symbol].name);
    if (x->arguments != y->arguments)
        return x->arguments < y->arguments ? -1 : 1;
    for (uint32_t i = 0; i < x->arguments; i++) {
        const int order = weft_dim_compare(dims, x->argument[i], y->argument[i]);
        if (order)
            return order;
    }
    return 0;
}

/* Graded lexicographic: compatible with multiplication, as the long division of dims_algebra.c needs. */
int weft_dim_compare_monomials(const struct weft_dims *dims, uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    const struct weft_dim_monomial *x = &dims->monomial[a], *y = &dims->monomial[b];
    if (x->degree != y->degree)
        return x->degree < y->degree ? -1 : 1;
    for (uint32_t i = 0; i < x->degree; i++) {
        const int order = weft_dim_compare_atoms(dims, x->atom[i], y->atom[i]);
        if (order)
            return -order;
    }
    return 0;
}

int weft_dim_compare(const struct weft_dims *dims, weft_dim a, weft_dim b)
{
    if (weft_dim_same(a, b))
        return 0;
    if (weft_dim_is_constant(a) && weft_dim_is_constant(b))
        return weft_dim_value(a) < weft_dim_value(b) ? -1 : 1;
    if (weft_dim_is_constant(a) || weft_dim_is_constant(b))
        return weft_dim_is_constant(a) ? 1 : -1;
    const struct weft_dim_polynomial *x = weft_dim_polynomial_of(dims, a), *y = weft_dim_polynomial_of(dims, b);
    for (uint32_t i = 0; i < x->terms && i < y->terms; i++) {
        const int order = weft_dim_compare_monomials(dims, x->term[i].monomial, y->term[i].monomial);
        if (order)
            return -order;
        if (x->term[i].coefficient != y->term[i].coefficient)
            return x->term[i].coefficient < y->term[i].coefficient ? -1 : 1;
    }
    return x->terms < y->terms ? -1 : x->terms > y->terms;
}
