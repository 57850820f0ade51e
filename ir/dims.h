/* SPDX-License-Identifier: Apache-2.0 */
/* dims.h: extents as expressions over symbols (dims.c, dims_*.c). */
#ifndef WEFT_DIMS_H
#define WEFT_DIMS_H

#include "ir/base.h"

/* A weft_dim is either a constant (low bit 0, value in the upper 63 bits) or an index into the table of expressions (in
 * bits 1 to 32) with the number of the table that made the entry above it, so that those of other tables are told.
 * Equal expressions are one entry: a == b as polynomials, with floor divisions, minima and maxima as atoms, if and
 * only if the bits are equal. Extents are never negative, but expressions in between and elements of integer tensors
 * may be. */
#define WEFT_DIM_LIMIT (((int64_t)1 << 62) - 1) /* constants and coefficients saturate here; as a bound: "unbounded" */
static inline bool weft_dim_is_constant(weft_dim d) { return (d.bits & 1) == 0; }
static inline int64_t weft_dim_value(weft_dim d) { return d.bits >> 1; } /* of a constant */
static inline weft_dim weft_dim_of(int64_t value) { return (weft_dim){(int64_t)((uint64_t)value << 1)}; }
static inline bool weft_dim_same(weft_dim a, weft_dim b) { return a.bits == b.bits; }
static inline bool weft_dim_is(weft_dim d, int64_t value) { return d.bits == weft_dim_of(value).bits; }

struct weft_dims; /* the table; one per root graph */
struct weft_symbol_info {
    const char *name;
    int64_t low, high; /* inclusive; default 0 and 2^31 - 1 */
    int64_t hint;      /* what costs are computed for; 0: low, but at least 1 */
    bool data;         /* not known when tensors are bound: a node computes it, as its attribute `extent` says */
    weft_dim bound;    /* of a data symbol: the most it can be, for which memory is reserved */
};
struct weft_dims *weft_dims_new(struct weft_arena *arena);
struct weft_dims *weft_dims_clone(struct weft_arena *arena, const struct weft_dims *dims); /* same bits mean the same */

uint32_t weft_symbol_count(const struct weft_dims *dims);
const struct weft_symbol_info *weft_symbol_at(const struct weft_dims *dims, uint32_t i);
bool weft_symbol_find(const struct weft_dims *dims, const char *name, weft_dim *ret);
weft_dim weft_symbol_add(struct weft_dims *dims, const char *name, int64_t low, int64_t high, int64_t hint);
/* A symbol that a node computes, between 0 and `bound`, an expression over symbols added before. */
weft_dim weft_symbol_add_data(struct weft_dims *dims, const char *name, weft_dim bound);
/* Sets each data symbol to the most it can be, given the values of all others. */
void weft_symbols_at_bounds(const struct weft_dims *dims, int64_t *symbols);
/* Is d just one symbol? Then its number. */
bool weft_dim_is_symbol(const struct weft_dims *dims, weft_dim d, uint32_t *ret_symbol);

/* Is d a constant, or an expression of this table? A clone has the expressions that its source had. */
bool weft_dim_exists(const struct weft_dims *dims, weft_dim d);

/* Results are canonical. Overflow of a constant beyond 62 bits saturates. b != 0 for division. */
weft_dim weft_dim_add(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_sub(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_mul(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_div(struct weft_dims *dims, weft_dim a, weft_dim b);      /* floor; exact where provable */
weft_dim weft_dim_ceil_div(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_mod(struct weft_dims *dims, weft_dim a, weft_dim b);      /* a - b * floor(a / b) */
weft_dim weft_dim_min(struct weft_dims *dims, weft_dim a, weft_dim b);
weft_dim weft_dim_max(struct weft_dims *dims, weft_dim a, weft_dim b);
/* Expressions have limits. Who exceeds them gets 0 and an error is recorded; but between these two calls the reason is
 * kept for the caller instead, who must not use what was computed if there is one. Not to be nested. */
void weft_dims_try(struct weft_dims *dims);
const char *weft_dims_tried(struct weft_dims *dims); /* the first refusal, constant text, or NULL */
/* Has a number been saturated since weft_dims_try? Then results may be wrong, not only large. */
bool weft_dims_saturated(const struct weft_dims *dims);
/* Is a a multiple of b for all values of the symbols? Then the quotient. */
bool weft_dim_divides(struct weft_dims *dims, weft_dim a, weft_dim b, weft_dim *ret_quotient);
/* Bounds that hold for all values of the symbols in their ranges; maybe not tight. */
void weft_dim_range(const struct weft_dims *dims, weft_dim d, int64_t *ret_low, int64_t *ret_high);
/* Value for given symbol values (indexed by symbol number); WEFT_DIM_LIMIT also where a product on the way, of a
 * coefficient and its factors, has more than 118 bits. */
int64_t weft_dim_evaluate(const struct weft_dims *dims, weft_dim d, const int64_t *symbols);
/* The most that it can be while each data symbol is anything from 0 to its value in `symbols`; at least that. */
int64_t weft_dim_most(const struct weft_dims *dims, weft_dim d, const int64_t *symbols);
int64_t weft_dim_hint(const struct weft_dims *dims, weft_dim d);
/* Does the symbol occur in d, also inside of divisions, minima and maxima? */
bool weft_dim_mentions(const struct weft_dims *dims, weft_dim d, uint32_t symbol);
/* d as slope * symbol + rest, for given values of the other symbols; false where d is not of that form for all values
 * of this one, be it that a power, a division, a minimum or a maximum is in the way. */
bool weft_dim_linear(const struct weft_dims *dims, weft_dim d, uint32_t symbol, const int64_t *symbols,
                     int64_t *ret_slope, int64_t *ret_rest);
/* "2*N + 1", "(N + 1)/2 - 1", "min(N, 8)": parses back (dims_parse) to the same bits. */
void weft_dim_print(const struct weft_dims *dims, weft_dim d, struct weft_text *text);
/* Parses an expression (integers, symbols, + - * / % min() max() and parentheses) at *cursor, which it advances. On
 * failure returns false with a constant message; *cursor then stands at the culprit. Unknown symbols are an error. */
bool weft_dim_parse(struct weft_dims *dims, const char **cursor, const char *end, weft_dim *ret,
                    const char **ret_message);

#endif
