/* SPDX-License-Identifier: Apache-2.0 */
/* dims_table.h: the table of expressions, shared by dims.c (storage), dims_value.c (ranges, values), dims_algebra.c and
 * dims_extreme.c (canonical arithmetic), dims_order.c and dims_text.c (print and parse). Nobody else includes it. */
#ifndef WEFT_DIMS_TABLE_H
#define WEFT_DIMS_TABLE_H

#include "ir/ir.h"

#define WEFT_DIM_MAX_DEGREE 32                  /* factors of one product */
#define WEFT_DIM_MAX_TERMS 256
#define WEFT_DIM_MAX_WEIGHT 4096                /* names, operators and numbers of an expression written out */
#define WEFT_DIM_MAX_DEPTH 64                   /* atoms inside atoms */

enum weft_dim_atom_kind { WEFT_DIM_SYMBOL, WEFT_DIM_DIV, WEFT_DIM_MIN, WEFT_DIM_MAX };

/* What polynomials are made of. Arguments are canonical: numerator and denominator of DIV, two or more of MIN, MAX. */
struct weft_dim_atom {
    uint8_t kind;
    uint32_t symbol;
    uint32_t arguments;
    const weft_dim *argument;
    uint32_t weight, depth;
    weft_dim self; /* the atom as an expression */
    uint32_t born; /* polynomials that existed before it: the order in which ranges are computed anew */
    int64_t low, high;
};
/* A product of atoms, sorted by weft_dim_compare_atoms; monomial 0 is the empty product. */
struct weft_dim_monomial {
    uint32_t degree;
    const uint32_t *atom;
    uint32_t weight, depth;
};
struct weft_dim_term {
    int64_t coefficient; /* never 0 */
    uint32_t monomial;
};
/* A sum of terms, greatest monomial first; never just a constant. */
struct weft_dim_polynomial {
    uint32_t terms;
    uint32_t table; /* the number of the table that made it: a clone has those of its source as well */
    const struct weft_dim_term *term;
    uint32_t weight, depth;
    int64_t low, high;
};

struct weft_dim_index { /* open addressing; a slot is hash << 32 | id + 1 */
    uint64_t *slot;
    uint32_t size, used;
};

struct weft_dims {
    struct weft_arena *arena;
    uint32_t number;     /* of 31 bits, that no other table of the process has: part of each expression made here */
    struct weft_symbol_info *symbol;
    uint32_t *symbol_atom;
    struct weft_dim_atom *atom;
    struct weft_dim_monomial *monomial;
    struct weft_dim_polynomial *polynomial;
    uint32_t symbols, atoms, monomials, polynomials;
    uint32_t symbol_capacity, symbol_atom_capacity, atom_capacity, monomial_capacity, polynomial_capacity;
    struct weft_dim_index symbol_index, atom_index, monomial_index, polynomial_index;
    bool trying;         /* then a refusal is left here instead of being reported: weft_dims_try */
    const char *refusal; /* constant text, or NULL */
    bool saturated;      /* a number of a sum reached the limit since weft_dims_try */
};

/* A polynomial in the making: sorted terms, small ones on the stack. Not to be copied by assignment. */
struct weft_dim_sum {
    struct weft_dims *dims;
    struct weft_dim_term *term;
    uint32_t count, capacity;
    const char *refusal;
    bool saturated; /* a coefficient is not what it should be */
    struct weft_dim_term local[16];
};

__extension__ typedef __int128 weft_wide;

static inline int64_t weft_dim_saturate(weft_wide value)
{
    return value > WEFT_DIM_LIMIT ? WEFT_DIM_LIMIT : value < -WEFT_DIM_LIMIT ? -WEFT_DIM_LIMIT : (int64_t)value;
}

static inline int64_t weft_dim_floor(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static inline const struct weft_dim_polynomial *weft_dim_polynomial_of(const struct weft_dims *dims, weft_dim d)
{
    return &dims->polynomial[(uint32_t)((uint64_t)d.bits >> 1)];
}

/* dims_order.c */
/* Total orders that depend on names and structure only, not on the history of the table. */
int weft_dim_compare_atoms(const struct weft_dims *dims, uint32_t a, uint32_t b);
int weft_dim_compare_monomials(const struct weft_dims *dims, uint32_t a, uint32_t b); /* graded, then lexicographic */
int weft_dim_compare(const struct weft_dims *dims, weft_dim a, weft_dim b);

/* dims.c */
bool weft_dim_find_atom(const struct weft_dims *dims, int kind, const weft_dim *argument, uint32_t arguments,
                        weft_dim *ret);
/* The atom as an expression; arguments must be in canonical form. */
weft_dim weft_dim_intern_atom(struct weft_dims *dims, int kind, const weft_dim *argument, uint32_t arguments);
uint32_t weft_dim_intern_monomial(struct weft_dims *dims, const uint32_t *atom, uint32_t degree);
/* The sum as an expression; reports the sum's refusal and returns 0 if there is one. */
weft_dim weft_dim_intern(struct weft_dim_sum *sum);
/* An expression that exceeds the limits above: recorded as an error, or left to whoever tries. */
weft_dim weft_dim_refuse(struct weft_dims *dims, const char *message);

/* dims_value.c */
void weft_dim_range_atom(struct weft_dims *dims, struct weft_dim_atom *atom);
void weft_dim_range_terms(struct weft_dims *dims, const struct weft_dim_term *term, uint32_t terms, int64_t *ret_low,
                          int64_t *ret_high);
void weft_dim_range_everything(struct weft_dims *dims);

/* dims_algebra.c */
void weft_dim_sum_open(struct weft_dim_sum *sum, struct weft_dims *dims);
void weft_dim_sum_add(struct weft_dim_sum *sum, int64_t coefficient, uint32_t monomial);
/* sum += factor * monomial * d */
void weft_dim_sum_add_scaled(struct weft_dim_sum *sum, int64_t factor, uint32_t monomial, weft_dim d);
/* Terms of an expression, greatest first; that of a constant is written to `constant`. */
const struct weft_dim_term *weft_dim_terms(const struct weft_dims *dims, weft_dim d, struct weft_dim_term *constant,
                                           uint32_t *ret_count);
weft_dim weft_dim_add_scaled(struct weft_dims *dims, weft_dim a, int64_t factor, weft_dim b); /* a + factor * b */
/* The greatest number that divides `factor` and all coefficients; without the constant term if `ignore_constant`. */
int64_t weft_dim_common_factor(const struct weft_dims *dims, int64_t factor, weft_dim d, bool ignore_constant);
/* Every term divided by factor * monomial; coefficients are rounded down. */
weft_dim weft_dim_divide_terms(struct weft_dims *dims, weft_dim d, int64_t factor, uint32_t monomial);

/* dims_steps.c */
/* The minimum or maximum of items of one symbol, some of them made of minima or maxima themselves, as a sum that is no
 * longer than that; false where that is not what they are. */
bool weft_dim_flatten_steps(struct weft_dims *dims, int kind, const weft_dim *item, uint32_t count, weft_dim *ret);

#endif
