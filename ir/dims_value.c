/* SPDX-License-Identifier: Apache-2.0 */
/* dims_value.c: what values an expression can have (intervals), and what value it has.
 *
 * Ranges are computed once, when an entry of the table is made, and again for all entries when the range of a symbol
 * is narrowed (entries refer to older ones only, so one walk does it). An expression that was made before stays the
 * same word after narrowing, even where the narrower range would now simplify it. Plain interval arithmetic, plus
 * one relation that shapes are full of: a - d*floor(a/d) is in [0, d - 1].
 *
 * Walks into atoms recurse: depth and length of expressions are limited. */
#include "ir/dims_table.h"

/* --- ranges ------------------------------------------------------------------------------------------------------- */

struct range {
    int64_t low, high;
};

/* A bound at the limit stands for "no bound" and stays there. */
static int64_t add_low(int64_t a, int64_t b)
{
    return a <= -WEFT_DIM_LIMIT || b <= -WEFT_DIM_LIMIT ? -WEFT_DIM_LIMIT : weft_dim_saturate((weft_wide)a + b);
}

static int64_t add_high(int64_t a, int64_t b)
{
    return a >= WEFT_DIM_LIMIT || b >= WEFT_DIM_LIMIT ? WEFT_DIM_LIMIT : weft_dim_saturate((weft_wide)a + b);
}

static struct range multiply_ranges(struct range a, struct range b)
{
    const int64_t corner[4] = {
        weft_dim_saturate((weft_wide)a.low * b.low), weft_dim_saturate((weft_wide)a.low * b.high),
        weft_dim_saturate((weft_wide)a.high * b.low), weft_dim_saturate((weft_wide)a.high * b.high)};
    struct range result = {corner[0], corner[0]};
    for (int i = 1; i < 4; i++) {
        result.low = corner[i] < result.low ? corner[i] : result.low;
        result.high = corner[i] > result.high ? corner[i] : result.high;
    }
    return result;
}

static struct range range_of(const struct weft_dims *dims, weft_dim d)
{
    struct range result;
    weft_dim_range(dims, d, &result.low, &result.high);
    return result;
}

static struct range range_of_division(struct range a, struct range b)
{
    if (b.low < 0) { /* the divisor may be -1 or 1: nothing better than the magnitude of the dividend */
        const int64_t most = a.high > -a.low ? a.high : -a.low;
        return (struct range){-most, most};
    }
    const int64_t low = b.low ? b.low : 1, high = b.high ? b.high : 1; /* nobody divides by zero */
    return (struct range){
        a.low <= -WEFT_DIM_LIMIT ? a.low : weft_dim_floor(a.low, a.low < 0 ? low : high),
        a.high >= WEFT_DIM_LIMIT ? a.high : weft_dim_floor(a.high, a.high < 0 ? high : low)};
}

/* Of a quotient, minimum or maximum: its range so far and that of its next argument. */
static struct range range_with(int kind, struct range so_far, struct range next)
{
    if (kind == WEFT_DIM_DIV)
        return range_of_division(so_far, next);
    const bool minimum = kind == WEFT_DIM_MIN;
    return (struct range){(next.low < so_far.low) == minimum ? next.low : so_far.low,
                          (next.high < so_far.high) == minimum ? next.high : so_far.high};
}

void weft_dim_range_atom(struct weft_dims *dims, struct weft_dim_atom *atom)
{
    struct range result = {0, 0};
    if (atom->kind == WEFT_DIM_SYMBOL) {
        const struct weft_symbol_info *symbol = &dims->symbol[atom->symbol];
        result = (struct range){weft_dim_saturate(symbol->low), weft_dim_saturate(symbol->high)};
    } else {
        result = range_of(dims, atom->argument[0]);
        for (uint32_t i = 1; i < atom->arguments; i++)
            result = range_with(atom->kind, result, range_of(dims, atom->argument[i]));
    }
    atom->low = result.low;
    atom->high = result.high;
}

/* Is the term k·floor(a/d) with a constant d that divides k? */
static const struct weft_dim_atom *exact_quotient(const struct weft_dims *dims, const struct weft_dim_term *term)
{
    const struct weft_dim_monomial *monomial = &dims->monomial[term->monomial];
    if (monomial->degree != 1)
        return NULL;
    const struct weft_dim_atom *atom = &dims->atom[monomial->atom[0]];
    if (atom->kind != WEFT_DIM_DIV || !weft_dim_is_constant(atom->argument[1]))
        return NULL;
    return term->coefficient % weft_dim_value(atom->argument[1]) ? NULL : atom;
}

enum { MAX_REFINED = 16 }; /* terms: the work grows with their cube */

/* Term by term; and where d·floor(a/d) occurs, also as a - m with m in [0, d - 1], which is what bounds a % d. */
static struct range range_terms(struct weft_dims *dims, const struct weft_dim_term *term, uint32_t terms, int nesting)
{
    struct range result = {0, 0};
    for (uint32_t i = 0; i < terms; i++) {
        struct range part = {term[i].coefficient, term[i].coefficient};
        const struct weft_dim_monomial *monomial = &dims->monomial[term[i].monomial];
        for (uint32_t k = 0; k < monomial->degree; k++) {
            const struct weft_dim_atom *atom = &dims->atom[monomial->atom[k]];
            part = multiply_ranges(part, (struct range){atom->low, atom->high});
        }
        result.low = add_low(result.low, part.low);
        result.high = add_high(result.high, part.high);
    }
    const bool refine = nesting > 0 && terms <= MAX_REFINED;
    for (uint32_t i = 0; i < terms && refine; i++) {
        const struct weft_dim_atom *atom = exact_quotient(dims, &term[i]);
        if (!atom)
            continue;
        const int64_t divisor = weft_dim_value(atom->argument[1]), times = term[i].coefficient / divisor;
        struct weft_dim_sum sum;
        weft_dim_sum_open(&sum, dims);
        for (uint32_t k = 0; k < terms; k++)
            if (k != i)
                weft_dim_sum_add(&sum, term[k].coefficient, term[k].monomial);
        weft_dim_sum_add_scaled(&sum, times, 0, atom->argument[0]);
        if (sum.refusal || sum.saturated)
            continue;
        struct range other = range_terms(dims, sum.term, sum.count, nesting - 1);
        const struct range rest = multiply_ranges((struct range){-times, -times}, (struct range){0, divisor - 1});
        other.low = add_low(other.low, rest.low);
        other.high = add_high(other.high, rest.high);
        result.low = other.low > result.low ? other.low : result.low;
        result.high = other.high < result.high ? other.high : result.high;
    }
    return result;
}

void weft_dim_range_terms(struct weft_dims *dims, const struct weft_dim_term *term, uint32_t terms, int64_t *ret_low,
                          int64_t *ret_high)
{
    const struct range result = range_terms(dims, term, terms, /* nesting= */ 2);
    *ret_low = result.low;
    *ret_high = result.high;
}

void weft_dim_range_everything(struct weft_dims *dims)
{
    uint32_t atom = 0;
    for (uint32_t i = 0; i < dims->polynomials; i++) {
        for (; atom < dims->atoms && dims->atom[atom].born <= i; atom++)
            weft_dim_range_atom(dims, &dims->atom[atom]);
        struct weft_dim_polynomial *p = &dims->polynomial[i];
        weft_dim_range_terms(dims, p->term, p->terms, &p->low, &p->high);
    }
}

void weft_dim_range(const struct weft_dims *dims, weft_dim d, int64_t *ret_low, int64_t *ret_high)
{
    const bool constant = weft_dim_is_constant(d);
    *ret_low = constant ? weft_dim_value(d) : weft_dim_polynomial_of(dims, d)->low;
    *ret_high = constant ? weft_dim_value(d) : weft_dim_polynomial_of(dims, d)->high;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static int64_t hint_of(const struct weft_symbol_info *symbol)
{
    return symbol->hint ? symbol->hint : symbol->low > 1 ? symbol->low : 1;
}

/* Values are computed in twice the width of a word: x*y - x*(y - 1) is x although x*y has no place in 62 bits. Products
 * stay below this, so that WEFT_DIM_MAX_TERMS of them have a place; what does not is lost, and so is all above it. */
static const weft_wide wide_limit = (weft_wide)1 << 118;

static weft_wide multiply_wide(weft_wide a, weft_wide b, bool *lost)
{
    weft_wide product;
    if (!__builtin_mul_overflow(a, b, &product) && product <= wide_limit && product >= -wide_limit)
        return product;
    *lost = true;
    return 0;
}

static weft_wide floor_wide(weft_wide a, weft_wide b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static weft_wide value_of(const struct weft_dims *dims, weft_dim d, const int64_t *symbols, bool *lost);

/* Symbols NULL: the hints. */
static weft_wide evaluate_atom(const struct weft_dims *dims, const struct weft_dim_atom *atom, const int64_t *symbols,
                               bool *lost)
{
    if (atom->kind == WEFT_DIM_SYMBOL)
        return symbols ? symbols[atom->symbol] : hint_of(&dims->symbol[atom->symbol]);
    weft_wide result = value_of(dims, atom->argument[0], symbols, lost);
    for (uint32_t i = 1; i < atom->arguments; i++) {
        const weft_wide next = value_of(dims, atom->argument[i], symbols, lost);
        if (atom->kind == WEFT_DIM_DIV)
            result = next ? floor_wide(result, next) : 0;
        else if ((next < result) == (atom->kind == WEFT_DIM_MIN))
            result = next;
    }
    return result;
}

static weft_wide value_of(const struct weft_dims *dims, weft_dim d, const int64_t *symbols, bool *lost)
{
    if (weft_dim_is_constant(d))
        return weft_dim_value(d);
    const struct weft_dim_polynomial *p = weft_dim_polynomial_of(dims, d);
    weft_wide sum = 0;
    for (uint32_t i = 0; i < p->terms; i++) {
        weft_wide product = p->term[i].coefficient;
        const struct weft_dim_monomial *monomial = &dims->monomial[p->term[i].monomial];
        bool too_large = false, is_zero = false;
        for (uint32_t k = 0; k < monomial->degree; k++) {
            const weft_wide factor = evaluate_atom(dims, &dims->atom[monomial->atom[k]], symbols, lost);
            is_zero |= factor == 0;
            product = multiply_wide(product, factor, &too_large);
        }
        *lost |= too_large && !is_zero;
        sum += product;
    }
    return multiply_wide(sum, 1, lost);
}

int64_t weft_dim_evaluate(const struct weft_dims *dims, weft_dim d, const int64_t *symbols)
{
    bool lost = false;
    if (weft_dim_is_constant(d)) /* nearly all are */
        return weft_dim_saturate(weft_dim_value(d));
    const weft_wide value = value_of(dims, d, symbols, &lost);
    return lost ? WEFT_DIM_LIMIT : weft_dim_saturate(value);
}

int64_t weft_dim_hint(const struct weft_dims *dims, weft_dim d)
{
    return weft_dim_evaluate(dims, d, NULL);
}

/* --- sizes that come out of data ---------------------------------------------------------------------------------- */

static struct range range_at(const struct weft_dims *dims, weft_dim d, const int64_t *symbols);

static struct range range_of_atom_at(const struct weft_dims *dims, const struct weft_dim_atom *atom,
                                     const int64_t *symbols)
{
    if (atom->kind == WEFT_DIM_SYMBOL) {
        const int64_t value = symbols[atom->symbol];
        return (struct range){dims->symbol[atom->symbol].data ? 0 : value, value};
    }
    struct range result = range_at(dims, atom->argument[0], symbols);
    for (uint32_t i = 1; i < atom->arguments; i++) {
        const struct range next = range_at(dims, atom->argument[i], symbols);
        const bool is_nothing = atom->kind == WEFT_DIM_DIV && next.low == 0 && next.high == 0;
        result = is_nothing ? (struct range){0, 0} : range_with(atom->kind, result, next);
    }
    return result;
}

/* Plain interval arithmetic, cut to what is known of the expression for all sizes. */
static struct range range_at(const struct weft_dims *dims, weft_dim d, const int64_t *symbols)
{
    if (weft_dim_is_constant(d))
        return (struct range){weft_dim_value(d), weft_dim_value(d)};
    const struct weft_dim_polynomial *p = weft_dim_polynomial_of(dims, d);
    struct range sum = {0, 0};
    for (uint32_t i = 0; i < p->terms; i++) {
        struct range part = {p->term[i].coefficient, p->term[i].coefficient};
        const struct weft_dim_monomial *monomial = &dims->monomial[p->term[i].monomial];
        for (uint32_t k = 0; k < monomial->degree; k++)
            part = multiply_ranges(part, range_of_atom_at(dims, &dims->atom[monomial->atom[k]], symbols));
        sum.low = add_low(sum.low, part.low);
        sum.high = add_high(sum.high, part.high);
    }
    if (sum.low < sum.high) {
        sum.low = p->low > sum.low ? p->low : sum.low;
        sum.high = p->high < sum.high ? p->high : sum.high;
    }
    return sum;
}

int64_t weft_dim_most(const struct weft_dims *dims, weft_dim d, const int64_t *symbols)
{
    return range_at(dims, d, symbols).high;
}

/* A bound is made of symbols that come before, so one pass in order finds all. */
void weft_symbols_at_bounds(const struct weft_dims *dims, int64_t *symbols)
{
    for (uint32_t i = 0; i < dims->symbols; i++)
        if (dims->symbol[i].data) {
            const int64_t bound = weft_dim_most(dims, dims->symbol[i].bound, symbols);
            symbols[i] = bound < 0 ? 0 : bound;
        }
}

/* --- symbols inside ----------------------------------------------------------------------------------------------- */

static bool atom_mentions(const struct weft_dims *dims, const struct weft_dim_atom *atom, uint32_t symbol)
{
    if (atom->kind == WEFT_DIM_SYMBOL)
        return atom->symbol == symbol;
    for (uint32_t i = 0; i < atom->arguments; i++)
        if (weft_dim_mentions(dims, atom->argument[i], symbol))
            return true;
    return false;
}

bool weft_dim_mentions(const struct weft_dims *dims, weft_dim d, uint32_t symbol)
{
    if (weft_dim_is_constant(d))
        return false;
    const struct weft_dim_polynomial *p = weft_dim_polynomial_of(dims, d);
    for (uint32_t i = 0; i < p->terms; i++) {
        const struct weft_dim_monomial *monomial = &dims->monomial[p->term[i].monomial];
        for (uint32_t k = 0; k < monomial->degree; k++)
            if (atom_mentions(dims, &dims->atom[monomial->atom[k]], symbol))
                return true;
    }
    return false;
}

bool weft_dim_linear(const struct weft_dims *dims, weft_dim d, uint32_t symbol, const int64_t *symbols,
                     int64_t *ret_slope, int64_t *ret_rest)
{
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term *term = weft_dim_terms(dims, d, &constant, &count);
    *ret_slope = *ret_rest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_dim_monomial *monomial = &dims->monomial[term[i].monomial];
        int64_t factor = term[i].coefficient;
        bool has_symbol = false;
        for (uint32_t k = 0; k < monomial->degree; k++) {
            const struct weft_dim_atom *atom = &dims->atom[monomial->atom[k]];
            if (!atom_mentions(dims, atom, symbol)) {
                bool lost = false;
                const weft_wide product = multiply_wide(factor, evaluate_atom(dims, atom, symbols, &lost), &lost);
                if (lost)
                    return false;
                factor = weft_dim_saturate(product);
                continue;
            }
            if (has_symbol || atom->kind != WEFT_DIM_SYMBOL)
                return false;
            has_symbol = true;
        }
        int64_t *sum = has_symbol ? ret_slope : ret_rest;
        *sum = weft_dim_saturate((weft_wide)*sum + factor);
    }
    return true;
}
