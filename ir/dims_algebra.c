/* SPDX-License-Identifier: Apache-2.0 */
/* dims_algebra.c: canonical sums, products and quotients of extents.
 *
 * Sums and products are those of polynomials. A floor division a / b becomes
 *   1. long division by the leading term of b, coefficients rounded down: a = q·b + r with one r for all a that
 *      differ by multiples of b. The result is q + floor(r / b), so (2*N + 2)/2 is N + 1 and (N - 1)/2 is (N + 1)/2 -
 * 1;
 *   2. common factors of r and b cancelled, with floor((g·x + c) / (g·d)) = floor((x + floor(c/g)) / d) for constants;
 *   3. a division inside a division: floor((floor(x/c) + y) / d) = floor((x + c·y) / (c·d));
 *   repeated until nothing changes; then a range may still show that the rest is one number. What remains is an atom.
 * Divisors are never zero where a graph is legal, so N*C / N is C. */
#include "ir/dims_table.h"

#include <string.h>

enum { MAX_STEPS = 1024 }; /* of one division */
static const char too_long[] = "the expression of an extent is too long";

/* --- sums in the making ------------------------------------------------------------------------------------------- */

void weft_dim_sum_open(struct weft_dim_sum *sum, struct weft_dims *dims)
{
    sum->dims = dims;
    sum->term = sum->local;
    sum->count = 0;
    sum->capacity = sizeof sum->local / sizeof *sum->local;
    sum->refusal = NULL;
    sum->saturated = false;
}

static void insert_term(struct weft_dim_sum *sum, uint32_t at, struct weft_dim_term term)
{
    if (sum->count == WEFT_DIM_MAX_TERMS) {
        sum->refusal = too_long;
        return;
    }
    if (sum->count == sum->capacity) {
        struct weft_dim_term *more = weft_new(sum->dims->arena, struct weft_dim_term, 4 * sum->capacity);
        memcpy(more, sum->term, sum->count * sizeof *more);
        sum->term = more;
        sum->capacity *= 4;
    }
    memmove(&sum->term[at + 1], &sum->term[at], (sum->count - at) * sizeof term);
    sum->term[at] = term;
    sum->count++;
}

static int64_t limit(struct weft_dim_sum *sum, weft_wide number)
{
    const int64_t limited = weft_dim_saturate(number);
    sum->saturated |= limited != number;
    return limited;
}

void weft_dim_sum_add(struct weft_dim_sum *sum, int64_t coefficient, uint32_t monomial)
{
    if (coefficient == 0 || sum->refusal)
        return;
    uint32_t low = 0, high = sum->count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const int order = weft_dim_compare_monomials(sum->dims, monomial, sum->term[middle].monomial);
        if (order == 0) {
            struct weft_dim_term *term = &sum->term[middle];
            term->coefficient = limit(sum, (weft_wide)term->coefficient + coefficient);
            if (term->coefficient == 0) {
                memmove(term, term + 1, (sum->count - middle - 1) * sizeof *term);
                sum->count--;
            }
            return;
        }
        if (order > 0)
            high = middle;
        else
            low = middle + 1;
    }
    insert_term(sum, low, (struct weft_dim_term){coefficient, monomial});
}

/* False where the product has too many factors. */
static bool multiply_monomials(struct weft_dims *dims, uint32_t a, uint32_t b, uint32_t *ret)
{
    if (a == 0 || b == 0) {
        *ret = a + b;
        return true;
    }
    const struct weft_dim_monomial *x = &dims->monomial[a], *y = &dims->monomial[b];
    const uint32_t degree = x->degree + y->degree;
    uint32_t atom[WEFT_DIM_MAX_DEGREE];
    if (degree > WEFT_DIM_MAX_DEGREE)
        return false;
    for (uint32_t i = 0, k = 0, n = 0; n < degree; n++) {
        const bool left = k == y->degree ||
                          (i < x->degree && weft_dim_compare_atoms(dims, x->atom[i], y->atom[k]) <= 0);
        atom[n] = left ? x->atom[i++] : y->atom[k++];
    }
    *ret = weft_dim_intern_monomial(dims, atom, degree);
    return true;
}

/* a / b if b's factors are among a's. */
static bool divide_monomials(struct weft_dims *dims, uint32_t a, uint32_t b, uint32_t *ret)
{
    const struct weft_dim_monomial *x = &dims->monomial[a], *y = &dims->monomial[b];
    uint32_t atom[WEFT_DIM_MAX_DEGREE], n = 0, k = 0;
    for (uint32_t i = 0; i < x->degree; i++) {
        if (k < y->degree && x->atom[i] == y->atom[k])
            k++;
        else
            atom[n++] = x->atom[i];
    }
    if (k < y->degree)
        return false;
    *ret = weft_dim_intern_monomial(dims, atom, n);
    return true;
}

const struct weft_dim_term *weft_dim_terms(const struct weft_dims *dims, weft_dim d, struct weft_dim_term *constant,
                                           uint32_t *ret_count)
{
    if (!weft_dim_is_constant(d)) {
        *ret_count = weft_dim_polynomial_of(dims, d)->terms;
        return weft_dim_polynomial_of(dims, d)->term;
    }
    *constant = (struct weft_dim_term){weft_dim_value(d), 0};
    *ret_count = constant->coefficient != 0;
    return constant;
}

void weft_dim_sum_add_scaled(struct weft_dim_sum *sum, int64_t factor, uint32_t monomial, weft_dim d)
{
    struct weft_dim_term constant;
    uint32_t count, product;
    const struct weft_dim_term *term = weft_dim_terms(sum->dims, d, &constant, &count);
    for (uint32_t i = 0; i < count && !sum->refusal; i++) {
        if (multiply_monomials(sum->dims, monomial, term[i].monomial, &product))
            weft_dim_sum_add(sum, limit(sum, (weft_wide)factor * term[i].coefficient), product);
        else
            sum->refusal = too_long;
    }
}

/* --- sums and products -------------------------------------------------------------------------------------------- */

/* Most extents are numbers, which need no polynomials. */
static weft_dim number(struct weft_dims *dims, weft_wide exact)
{
    const int64_t limited = weft_dim_saturate(exact);
    if (limited != exact) /* runs on several threads multiply extents, too, and only read */
        dims->saturated = true;
    return weft_dim_of(limited);
}

weft_dim weft_dim_add_scaled(struct weft_dims *dims, weft_dim a, int64_t factor, weft_dim b)
{
    if (weft_dim_is_constant(a) && weft_dim_is_constant(b) && (factor == 1 || factor == -1))
        return number(dims, (weft_wide)weft_dim_value(a) + (weft_wide)factor * weft_dim_value(b));
    struct weft_dim_sum sum;
    weft_dim_sum_open(&sum, dims);
    weft_dim_sum_add_scaled(&sum, 1, 0, a);
    weft_dim_sum_add_scaled(&sum, factor, 0, b);
    return weft_dim_intern(&sum);
}

weft_dim weft_dim_add(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    return weft_dim_add_scaled(dims, a, 1, b);
}

weft_dim weft_dim_sub(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    return weft_dim_add_scaled(dims, a, -1, b);
}

weft_dim weft_dim_mul(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    if (weft_dim_is_constant(a) && weft_dim_is_constant(b))
        return number(dims, (weft_wide)weft_dim_value(a) * weft_dim_value(b));
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term *term = weft_dim_terms(dims, a, &constant, &count);
    struct weft_dim_sum sum;
    weft_dim_sum_open(&sum, dims);
    for (uint32_t i = 0; i < count && !sum.refusal; i++)
        weft_dim_sum_add_scaled(&sum, term[i].coefficient, term[i].monomial, b);
    return weft_dim_intern(&sum);
}

/* --- division ----------------------------------------------------------------------------------------------------- */

/* A number that leaves room for sums of two. */
static bool is_plain(weft_dim d)
{
    return weft_dim_is_constant(d) && weft_dim_value(d) < WEFT_DIM_LIMIT / 4 && weft_dim_value(d) > -WEFT_DIM_LIMIT / 4;
}

/* a = q·b + r by b's greatest term. Gives up (q = 0, r = a) where that takes too many terms or steps, or
 * numbers that are too large. */
static void divide_long(struct weft_dims *dims, weft_dim a, weft_dim b, weft_dim *ret_quotient, weft_dim *ret_rest)
{
    if (is_plain(a) && is_plain(b)) {
        const int64_t times = weft_dim_floor(weft_dim_value(a), weft_dim_value(b));
        *ret_quotient = weft_dim_of(times);
        *ret_rest = weft_dim_of(weft_dim_value(a) - times * weft_dim_value(b));
        return;
    }
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term lead = weft_dim_terms(dims, b, &constant, &count)[0];
    struct weft_dim_sum rest, quotient;
    weft_dim_sum_open(&rest, dims);
    weft_dim_sum_open(&quotient, dims);
    weft_dim_sum_add_scaled(&rest, 1, 0, a);
    uint32_t steps = 0, done = 0; /* terms before `done` stay in the rest */
    while (done < rest.count && !rest.refusal && !quotient.refusal && steps++ < MAX_STEPS) {
        const struct weft_dim_term top = rest.term[done];
        uint32_t monomial;
        int64_t times = 0;
        if (divide_monomials(dims, top.monomial, lead.monomial, &monomial))
            times = weft_dim_floor(top.coefficient, lead.coefficient);
        if (times == 0) {
            done++;
            continue;
        }
        weft_dim_sum_add(&quotient, times, monomial);
        weft_dim_sum_add_scaled(&rest, -times, monomial, b);
    }
    *ret_quotient = weft_dim_of(0);
    *ret_rest = a;
    if (rest.refusal || quotient.refusal || rest.saturated || quotient.saturated || done < rest.count)
        return;
    *ret_quotient = weft_dim_intern(&quotient);
    *ret_rest = weft_dim_intern(&rest);
}

/* The factors that all terms of d share with the monomial. */
static uint32_t common_monomial(struct weft_dims *dims, uint32_t monomial, weft_dim d)
{
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term *term = weft_dim_terms(dims, d, &constant, &count);
    for (uint32_t t = 0; t < count && monomial; t++) {
        const struct weft_dim_monomial *x = &dims->monomial[monomial], *y = &dims->monomial[term[t].monomial];
        uint32_t atom[WEFT_DIM_MAX_DEGREE], n = 0;
        for (uint32_t i = 0, k = 0; i < x->degree && k < y->degree;) {
            const int order = weft_dim_compare_atoms(dims, x->atom[i], y->atom[k]);
            if (order == 0)
                atom[n++] = x->atom[i];
            i += order <= 0;
            k += order >= 0;
        }
        monomial = weft_dim_intern_monomial(dims, atom, n);
    }
    return monomial;
}

int64_t weft_dim_common_factor(const struct weft_dims *dims, int64_t factor, weft_dim d, bool ignore_constant)
{
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term *term = weft_dim_terms(dims, d, &constant, &count);
    for (uint32_t t = 0; t < count; t++)
        if (!ignore_constant || term[t].monomial != 0)
            factor = weft_gcd(factor, term[t].coefficient);
    return factor;
}

weft_dim weft_dim_divide_terms(struct weft_dims *dims, weft_dim d, int64_t factor, uint32_t monomial)
{
    struct weft_dim_term constant;
    uint32_t count, quotient = 0;
    const struct weft_dim_term *term = weft_dim_terms(dims, d, &constant, &count);
    struct weft_dim_sum sum;
    weft_dim_sum_open(&sum, dims);
    for (uint32_t t = 0; t < count; t++) {
        const bool exact = divide_monomials(dims, term[t].monomial, monomial, &quotient);
        weft_assert(exact);
        weft_dim_sum_add(&sum, weft_dim_floor(term[t].coefficient, factor), quotient);
    }
    return weft_dim_intern(&sum);
}

/* Step 2 of the file's comment. True if something changed. */
static bool cancel_factors(struct weft_dims *dims, weft_dim *a, weft_dim *b)
{
    struct weft_dim_term constant;
    uint32_t count;
    const uint32_t first = weft_dim_terms(dims, *b, &constant, &count)[0].monomial;
    const uint32_t monomial = common_monomial(dims, common_monomial(dims, first, *b), *a);
    const bool number = weft_dim_is_constant(*b);
    int64_t factor = weft_dim_common_factor(dims, weft_dim_common_factor(dims, 0, *b, false), *a, number);
    if (factor < 1)
        factor = 1;
    if (monomial == 0 && factor == 1)
        return false;
    *a = weft_dim_divide_terms(dims, *a, factor, monomial);
    *b = weft_dim_divide_terms(dims, *b, factor, monomial);
    return true;
}

/* Step 3 of the file's comment. True if something changed. */
static bool flatten_division(struct weft_dims *dims, weft_dim *a, weft_dim *b)
{
    if (!weft_dim_is_constant(*b) || weft_dim_is_constant(*a))
        return false;
    const struct weft_dim_polynomial *p = weft_dim_polynomial_of(dims, *a);
    const uint32_t terms = p->terms;
    const struct weft_dim_term *term = p->term;
    for (uint32_t t = 0; t < terms; t++) {
        const struct weft_dim_monomial *monomial = &dims->monomial[term[t].monomial];
        if (term[t].coefficient != 1 || monomial->degree != 1)
            continue;
        const struct weft_dim_atom *atom = &dims->atom[monomial->atom[0]];
        if (atom->kind != WEFT_DIM_DIV || !weft_dim_is_constant(atom->argument[1]))
            continue;
        const weft_dim inner = atom->argument[0];
        const int64_t divisor = weft_dim_value(atom->argument[1]);
        if ((weft_wide)divisor * weft_dim_value(*b) > WEFT_DIM_LIMIT)
            continue;
        struct weft_dim_sum sum;
        weft_dim_sum_open(&sum, dims);
        weft_dim_sum_add_scaled(&sum, divisor, 0, *a);
        weft_dim_sum_add(&sum, -divisor, term[t].monomial);
        weft_dim_sum_add_scaled(&sum, 1, 0, inner);
        *a = weft_dim_intern(&sum);
        *b = weft_dim_of(divisor * weft_dim_value(*b));
        return true;
    }
    return false;
}

/* Do the ranges leave one value for floor(a / b)? */
static bool quotient_is_known(struct weft_dims *dims, weft_dim a, weft_dim b, int64_t *ret)
{
    int64_t a_low, a_high, b_low, b_high;
    weft_dim_range(dims, a, &a_low, &a_high);
    weft_dim_range(dims, b, &b_low, &b_high);
    if (b_low < 0 || a_low <= -WEFT_DIM_LIMIT || a_high >= WEFT_DIM_LIMIT)
        return false;
    b_low = b_low ? b_low : 1; /* divisors are not zero */
    b_high = b_high ? b_high : 1;
    const int64_t low = weft_dim_floor(a_low, a_low < 0 ? b_low : b_high);
    const int64_t high = weft_dim_floor(a_high, a_high < 0 ? b_high : b_low);
    if (low == high) {
        *ret = low;
        return true;
    }
    if (a_low < 0)
        return false;
    int64_t margin, unused;
    weft_dim_range(dims, weft_dim_sub(dims, b, a), &margin, &unused);
    *ret = 0;
    return margin > 0; /* 0 <= a < b */
}

weft_dim weft_dim_div(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    if (weft_dim_is(b, 0))
        return weft_dim_refuse(dims, "division by zero in an extent");
    if (weft_dim_is_constant(a) && weft_dim_is_constant(b) && weft_dim_value(b) > 0)
        return weft_dim_of(weft_dim_floor(weft_dim_value(a), weft_dim_value(b)));
    weft_dim total = weft_dim_of(0);
    for (int step = 0; step < MAX_STEPS; step++) {
        struct weft_dim_term constant;
        uint32_t count;
        if (weft_dim_terms(dims, b, &constant, &count)[0].coefficient < 0) {
            a = weft_dim_sub(dims, weft_dim_of(0), a);
            b = weft_dim_sub(dims, weft_dim_of(0), b);
        }
        weft_dim quotient;
        divide_long(dims, a, b, &quotient, &a);
        total = weft_dim_add(dims, total, quotient);
        if (weft_dim_is(a, 0))
            return total;
        if (!cancel_factors(dims, &a, &b) && !flatten_division(dims, &a, &b))
            break;
    }
    const weft_dim argument[2] = {a, b};
    weft_dim atom;
    int64_t known;
    if (!weft_dim_find_atom(dims, WEFT_DIM_DIV, argument, 2, &atom)) {
        if (quotient_is_known(dims, a, b, &known))
            return weft_dim_add(dims, total, weft_dim_of(known));
        atom = weft_dim_intern_atom(dims, WEFT_DIM_DIV, argument, 2);
    }
    return weft_dim_add(dims, total, atom);
}

weft_dim weft_dim_ceil_div(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    weft_dim quotient;
    if (weft_dim_divides(dims, a, b, &quotient))
        return quotient;
    int64_t low, high;
    weft_dim_range(dims, b, &low, &high);
    if (low >= 0) /* one form for rounding up, whether written by hand or not */
        return weft_dim_div(dims, weft_dim_sub(dims, weft_dim_add(dims, a, b), weft_dim_of(1)), b);
    const weft_dim minus = weft_dim_sub(dims, weft_dim_of(0), a);
    return weft_dim_sub(dims, weft_dim_of(0), weft_dim_div(dims, minus, b));
}

weft_dim weft_dim_mod(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    return weft_dim_sub(dims, a, weft_dim_mul(dims, b, weft_dim_div(dims, a, b)));
}

bool weft_dim_divides(struct weft_dims *dims, weft_dim a, weft_dim b, weft_dim *ret_quotient)
{
    if (weft_dim_is(b, 0))
        return false;
    weft_dim quotient, rest;
    divide_long(dims, a, b, &quotient, &rest);
    if (!weft_dim_is(rest, 0))
        return false;
    *ret_quotient = quotient;
    return true;
}
