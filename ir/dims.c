/* SPDX-License-Identifier: Apache-2.0 */
/* dims.c: the table of extents: symbols, atoms, products and polynomials, each stored once.
 *
 * An expression is a polynomial with integer coefficients over atoms: symbols, floor divisions, minima and maxima,
 * whose arguments are expressions again. Every polynomial is kept in one canonical form (terms sorted, like terms
 * merged) and interned, so equality is equality of one word. dims_algebra.c makes the forms, dims_value.c bounds and
 * evaluates them, dims_text.c reads and writes them.
 *
 *   2*N + (N + 1)/2     =  polynomial [ 2 · {N}, 1 · {a} ],  a = DIV(polynomial [ 1 · {N}, 1 · {} ], 2)
 *
 * Expressions have limits (WEFT_DIM_MAX_*): a text or a model could otherwise ask for a product of exponentially
 * many terms, and the walks here recurse, at most WEFT_DIM_MAX_DEPTH deep. Whoever exceeds them gets an error, not a
 * wrong extent. Numbers beyond 62 bits saturate instead: counts of elements may be that large before somebody looks at
 * them. Who needs the exact number asks weft_dims_saturated. */
#include "ir/dims_table.h"

#include <stdatomic.h>
#include <string.h>

/* --- hash index --------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

/* The next id + 1 with this hash, 0 when there is none; *at starts as the hash. */
static uint32_t probe(const struct weft_dim_index *index, uint32_t hash, uint32_t *at)
{
    while (index->size) {
        const uint64_t slot = index->slot[(*at)++ & (index->size - 1)];
        if (!slot)
            break;
        if ((uint32_t)(slot >> 32) == hash)
            return (uint32_t)slot;
    }
    return 0;
}

static void place_slot(struct weft_dim_index *index, uint64_t slot)
{
    uint32_t at = (uint32_t)(slot >> 32);
    while (index->slot[at & (index->size - 1)])
        at++;
    index->slot[at & (index->size - 1)] = slot;
}

/* Room for one more id. Memory may be refused: so room is made first, then arrays and indices change together. */
static void reserve_slot(struct weft_dims *dims, struct weft_dim_index *index)
{
    if (2 * (index->used + 1) <= index->size)
        return;
    const uint32_t size = index->size ? 2 * index->size : 16;
    struct weft_dim_index larger = {.slot = weft_new(dims->arena, uint64_t, size), .size = size, .used = index->used};
    for (uint32_t i = 0; i < index->size; i++)
        if (index->slot[i])
            place_slot(&larger, index->slot[i]);
    *index = larger;
}

static void insert(struct weft_dim_index *index, uint32_t hash, uint32_t id)
{
    place_slot(index, (uint64_t)hash << 32 | (id + 1));
    index->used++;
}

static uint32_t hash_name(const char *name)
{
    uint64_t hash = 1;
    for (; *name; name++)
        hash = mix(hash, (unsigned char)*name);
    return (uint32_t)hash;
}

#define GROW(dims, array, need) \
    ((dims)->array = weft_grow((dims)->arena, (dims)->array, &(dims)->array##_capacity, (need), sizeof *(dims)->array))

/* --- the table ---------------------------------------------------------------------------------------------------- */

static uint32_t new_number(void)
{
    static _Atomic uint32_t last;
    return (atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1) & INT32_MAX;
}

struct weft_dims *weft_dims_new(struct weft_arena *arena)
{
    struct weft_dims *dims = weft_new(arena, struct weft_dims, 1);
    dims->arena = arena;
    dims->number = new_number();
    (void)weft_dim_intern_monomial(dims, NULL, 0);
    return dims;
}

static void *copy_array(struct weft_arena *arena, const void *data, uint32_t count, size_t element,
                        uint32_t *ret_capacity)
{
    *ret_capacity = 0;
    void *copy = weft_grow(arena, NULL, ret_capacity, count, element);
    if (count)
        memcpy(copy, data, count * element);
    return copy;
}
#define COPY(arena, data, count) copy_array((arena), (data), (count), sizeof *(data), &(uint32_t){0})
#define COPY_GROWING(arena, data, count, capacity) copy_array((arena), (data), (count), sizeof *(data), &(capacity))

static void copy_index(struct weft_arena *arena, struct weft_dim_index *index)
{
    index->slot = COPY(arena, index->slot, index->size);
}

struct weft_dims *weft_dims_clone(struct weft_arena *arena, const struct weft_dims *dims)
{
    struct weft_dims *copy = weft_new(arena, struct weft_dims, 1);
    *copy = *dims;
    copy->arena = arena;
    copy->number = new_number();
    copy->symbol = COPY_GROWING(arena, dims->symbol, dims->symbols, copy->symbol_capacity);
    copy->symbol_atom = COPY_GROWING(arena, dims->symbol_atom, dims->symbols, copy->symbol_atom_capacity);
    copy->atom = COPY_GROWING(arena, dims->atom, dims->atoms, copy->atom_capacity);
    copy->monomial = COPY_GROWING(arena, dims->monomial, dims->monomials, copy->monomial_capacity);
    copy->polynomial = COPY_GROWING(arena, dims->polynomial, dims->polynomials, copy->polynomial_capacity);
    for (uint32_t i = 0; i < dims->symbols; i++)
        copy->symbol[i].name = weft_arena_copy(arena, dims->symbol[i].name, strlen(dims->symbol[i].name));
    for (uint32_t i = 0; i < dims->atoms; i++)
        copy->atom[i].argument = COPY(arena, dims->atom[i].argument, dims->atom[i].arguments);
    for (uint32_t i = 0; i < dims->monomials; i++)
        copy->monomial[i].atom = COPY(arena, dims->monomial[i].atom, dims->monomial[i].degree);
    for (uint32_t i = 0; i < dims->polynomials; i++)
        copy->polynomial[i].term = COPY(arena, dims->polynomial[i].term, dims->polynomial[i].terms);
    copy_index(arena, &copy->symbol_index);
    copy_index(arena, &copy->atom_index);
    copy_index(arena, &copy->monomial_index);
    copy_index(arena, &copy->polynomial_index);
    return copy;
}

void weft_dims_try(struct weft_dims *dims)
{
    dims->trying = true;
    dims->refusal = NULL;
    dims->saturated = false;
}

const char *weft_dims_tried(struct weft_dims *dims)
{
    const char *refusal = dims->refusal;
    dims->trying = false;
    dims->refusal = NULL;
    return refusal;
}

bool weft_dims_saturated(const struct weft_dims *dims) { return dims->saturated; }

weft_dim weft_dim_refuse(struct weft_dims *dims, const char *message)
{
    if (!dims->trying)
        weft_error(dims->arena->context, WEFT_ERR_UNSUPPORTED, NULL, "%s", message);
    else if (!dims->refusal)
        dims->refusal = message;
    return weft_dim_of(0);
}

/* --- interning ---------------------------------------------------------------------------------------------------- */

static uint32_t hash_monomial(const uint32_t *atom, uint32_t degree)
{
    uint64_t wide = degree;
    for (uint32_t i = 0; i < degree; i++)
        wide = mix(wide, atom[i]);
    return (uint32_t)wide;
}

static void reserve_monomial(struct weft_dims *dims)
{
    GROW(dims, monomial, dims->monomials + 1);
    reserve_slot(dims, &dims->monomial_index);
}

static uint32_t add_monomial(struct weft_dims *dims, uint32_t hash, const struct weft_dim_monomial *made)
{
    const uint32_t id = dims->monomials++;
    dims->monomial[id] = *made;
    insert(&dims->monomial_index, hash, id);
    return id;
}

uint32_t weft_dim_intern_monomial(struct weft_dims *dims, const uint32_t *atom, uint32_t degree)
{
    const uint32_t hash = hash_monomial(atom, degree);
    uint32_t at = hash;
    for (uint32_t found; (found = probe(&dims->monomial_index, hash, &at)) != 0;) {
        const struct weft_dim_monomial *have = &dims->monomial[found - 1];
        if (have->degree == degree && (!degree || memcmp(have->atom, atom, degree * sizeof *atom) == 0))
            return found - 1;
    }
    struct weft_dim_monomial made = {.degree = degree, .atom = COPY(dims->arena, atom, degree)};
    for (uint32_t i = 0; i < degree; i++) {
        made.weight += dims->atom[atom[i]].weight;
        made.depth = dims->atom[atom[i]].depth > made.depth ? dims->atom[atom[i]].depth : made.depth;
    }
    reserve_monomial(dims);
    return add_monomial(dims, hash, &made);
}

static uint32_t hash_polynomial(const struct weft_dim_term *term, uint32_t terms)
{
    uint64_t wide = terms;
    for (uint32_t i = 0; i < terms; i++)
        wide = mix(mix(wide, (uint64_t)term[i].coefficient), term[i].monomial);
    return (uint32_t)wide;
}

static void reserve_polynomial(struct weft_dims *dims)
{
    GROW(dims, polynomial, dims->polynomials + 1);
    reserve_slot(dims, &dims->polynomial_index);
}

static weft_dim expression(const struct weft_dims *dims, uint32_t id)
{
    return (weft_dim){(int64_t)((uint64_t)dims->polynomial[id].table << 33 | (uint64_t)id << 1 | 1)};
}

static weft_dim add_polynomial(struct weft_dims *dims, uint32_t hash, const struct weft_dim_polynomial *made)
{
    const uint32_t id = dims->polynomials++;
    dims->polynomial[id] = *made;
    dims->polynomial[id].table = dims->number;
    weft_dim_range_terms(dims, made->term, made->terms, &dims->polynomial[id].low, &dims->polynomial[id].high);
    insert(&dims->polynomial_index, hash, id);
    return expression(dims, id);
}

static weft_dim intern_polynomial(struct weft_dims *dims, const struct weft_dim_term *term, uint32_t terms)
{
    const uint32_t hash = hash_polynomial(term, terms);
    uint32_t at = hash;
    for (uint32_t found; (found = probe(&dims->polynomial_index, hash, &at)) != 0;) {
        const struct weft_dim_polynomial *have = &dims->polynomial[found - 1];
        bool same = have->terms == terms;
        for (uint32_t i = 0; i < terms && same; i++)
            same = have->term[i].coefficient == term[i].coefficient && have->term[i].monomial == term[i].monomial;
        if (same)
            return expression(dims, found - 1);
    }
    struct weft_dim_polynomial made = {.terms = terms, .term = COPY(dims->arena, term, terms), .weight = terms};
    for (uint32_t i = 0; i < terms; i++) {
        const struct weft_dim_monomial *monomial = &dims->monomial[term[i].monomial];
        made.weight += monomial->weight;
        made.depth = monomial->depth > made.depth ? monomial->depth : made.depth;
    }
    if (made.weight > WEFT_DIM_MAX_WEIGHT)
        return weft_dim_refuse(dims, "the expression of an extent is too long");
    reserve_polynomial(dims);
    return add_polynomial(dims, hash, &made);
}

weft_dim weft_dim_intern(struct weft_dim_sum *sum)
{
    if (sum->refusal)
        return weft_dim_refuse(sum->dims, sum->refusal);
    sum->dims->saturated |= sum->saturated;
    if (sum->count == 0)
        return weft_dim_of(0);
    if (sum->count == 1 && sum->term[0].monomial == 0)
        return weft_dim_of(sum->term[0].coefficient);
    return intern_polynomial(sum->dims, sum->term, sum->count);
}

static uint32_t hash_atom(int kind, const weft_dim *argument, uint32_t arguments)
{
    uint64_t wide = (uint64_t)kind;
    for (uint32_t i = 0; i < arguments; i++)
        wide = mix(wide, (uint64_t)argument[i].bits);
    return (uint32_t)wide;
}

static bool find_atom(const struct weft_dims *dims, int kind, const weft_dim *argument, uint32_t arguments,
                      uint32_t *ret)
{
    const uint32_t hash = hash_atom(kind, argument, arguments);
    uint32_t at = hash;
    for (uint32_t found; (found = probe(&dims->atom_index, hash, &at)) != 0;) {
        const struct weft_dim_atom *have = &dims->atom[found - 1];
        if (have->kind == kind && have->arguments == arguments &&
            memcmp(have->argument, argument, arguments * sizeof *argument) == 0) {
            *ret = found - 1;
            return true;
        }
    }
    return false;
}

/* An atom that is new, so that the monomial and the polynomial of it alone are as well. */
static uint32_t add_atom(struct weft_dims *dims, const struct weft_dim_atom *atom)
{
    GROW(dims, atom, dims->atoms + 1);
    reserve_monomial(dims);
    reserve_polynomial(dims);
    uint32_t *factor = weft_new(dims->arena, uint32_t, 1);
    struct weft_dim_term *term = weft_new(dims->arena, struct weft_dim_term, 1);
    const uint32_t id = dims->atoms++; /* from here on nothing allocates */
    dims->atom[id] = *atom;
    dims->atom[id].born = dims->polynomials;
    weft_dim_range_atom(dims, &dims->atom[id]);
    *factor = id;
    const struct weft_dim_monomial monomial = {1, factor, atom->weight, atom->depth};
    *term = (struct weft_dim_term){1, add_monomial(dims, hash_monomial(factor, 1), &monomial)};
    const struct weft_dim_polynomial polynomial = {
        .terms = 1, .term = term, .weight = 1 + atom->weight, .depth = atom->depth};
    dims->atom[id].self = add_polynomial(dims, hash_polynomial(term, 1), &polynomial);
    return id;
}

weft_dim weft_dim_intern_atom(struct weft_dims *dims, int kind, const weft_dim *argument, uint32_t arguments)
{
    uint32_t id;
    if (find_atom(dims, kind, argument, arguments, &id))
        return dims->atom[id].self;
    struct weft_dim_atom atom = {.kind = (uint8_t)kind, .arguments = arguments, .weight = 1};
    for (uint32_t i = 0; i < arguments; i++) {
        const bool constant = weft_dim_is_constant(argument[i]);
        const uint32_t depth = constant ? 0 : weft_dim_polynomial_of(dims, argument[i])->depth;
        atom.weight += constant ? 1 : weft_dim_polynomial_of(dims, argument[i])->weight;
        atom.depth = depth > atom.depth ? depth : atom.depth;
    }
    atom.depth++;
    if (atom.weight >= WEFT_DIM_MAX_WEIGHT || atom.depth > WEFT_DIM_MAX_DEPTH)
        return weft_dim_refuse(dims, "the expression of an extent is nested too deeply");
    atom.argument = COPY(dims->arena, argument, arguments);
    reserve_slot(dims, &dims->atom_index);
    id = add_atom(dims, &atom);
    insert(&dims->atom_index, hash_atom(kind, argument, arguments), id);
    return dims->atom[id].self;
}

bool weft_dim_find_atom(const struct weft_dims *dims, int kind, const weft_dim *argument, uint32_t arguments,
                        weft_dim *ret)
{
    uint32_t id;
    if (!find_atom(dims, kind, argument, arguments, &id))
        return false;
    *ret = dims->atom[id].self;
    return true;
}

/* --- symbols ------------------------------------------------------------------------------------------------------ */

uint32_t weft_symbol_count(const struct weft_dims *dims) { return dims->symbols; }

const struct weft_symbol_info *weft_symbol_at(const struct weft_dims *dims, uint32_t i)
{
    weft_assert(i < dims->symbols);
    return &dims->symbol[i];
}

static bool find_symbol(const struct weft_dims *dims, const char *name, uint32_t *ret)
{
    const uint32_t hash = hash_name(name);
    uint32_t at = hash;
    for (uint32_t found; (found = probe(&dims->symbol_index, hash, &at)) != 0;) {
        if (strcmp(dims->symbol[found - 1].name, name) == 0) {
            *ret = found - 1;
            return true;
        }
    }
    return false;
}

bool weft_symbol_find(const struct weft_dims *dims, const char *name, weft_dim *ret)
{
    uint32_t id;
    if (!find_symbol(dims, name, &id))
        return false;
    *ret = dims->atom[dims->symbol_atom[id]].self;
    return true;
}

static void narrow_symbol(struct weft_dims *dims, struct weft_symbol_info *symbol, int64_t low, int64_t high,
                          int64_t hint)
{
    hint = hint ? hint : symbol->hint;
    low = low > symbol->low ? low : symbol->low;
    high = high < symbol->high ? high : symbol->high;
    if (low > high) {
        (void)weft_dim_refuse(dims, "two ranges of one symbol have no value in common");
        return;
    }
    symbol->hint = hint == 0 ? 0 : hint < low ? low : hint > high ? high : hint; /* it moves along with the bounds */
    if (low != symbol->low || high != symbol->high) {
        symbol->low = low;
        symbol->high = high;
        weft_dim_range_everything(dims);
    }
}

weft_dim weft_symbol_add(struct weft_dims *dims, const char *name, int64_t low, int64_t high, int64_t hint)
{
    weft_assert(low <= high);
    uint32_t id;
    if (find_symbol(dims, name, &id)) {
        narrow_symbol(dims, &dims->symbol[id], low, high, hint);
        return dims->atom[dims->symbol_atom[id]].self;
    }
    id = dims->symbols;
    GROW(dims, symbol, id + 1);
    GROW(dims, symbol_atom, id + 1);
    dims->symbol[id] = (struct weft_symbol_info){
        .name = weft_arena_copy(dims->arena, name, strlen(name)), .low = low, .high = high, .hint = hint};
    const struct weft_dim_atom atom = {.kind = WEFT_DIM_SYMBOL, .symbol = id, .weight = 1};
    reserve_slot(dims, &dims->symbol_index);
    dims->symbol_atom[id] = add_atom(dims, &atom);
    dims->symbols++;
    insert(&dims->symbol_index, hash_name(name), id);
    return dims->atom[dims->symbol_atom[id]].self;
}

weft_dim weft_symbol_add_data(struct weft_dims *dims, const char *name, weft_dim bound)
{
    int64_t low, high, symbol_high = INT32_MAX;
    weft_dim_range(dims, bound, &low, &high);
    if (high < symbol_high)
        symbol_high = high < 0 ? 0 : high;
    const int64_t hint = weft_dim_hint(dims, bound);
    const weft_dim symbol = weft_symbol_add(dims, name, 0, symbol_high, hint < 0 ? 0 : hint);
    uint32_t id;
    if (find_symbol(dims, name, &id)) {
        dims->symbol[id].data = true;
        dims->symbol[id].bound = bound;
    }
    return symbol;
}

bool weft_dim_exists(const struct weft_dims *dims, weft_dim d)
{
    if (weft_dim_is_constant(d))
        return true;
    const uint32_t id = (uint32_t)((uint64_t)d.bits >> 1);
    return id < dims->polynomials && weft_dim_same(d, expression(dims, id));
}

bool weft_dim_is_symbol(const struct weft_dims *dims, weft_dim d, uint32_t *ret_symbol)
{
    if (weft_dim_is_constant(d))
        return false;
    const struct weft_dim_polynomial *p = weft_dim_polynomial_of(dims, d);
    const struct weft_dim_monomial *monomial = &dims->monomial[p->term[0].monomial];
    if (p->terms != 1 || p->term[0].coefficient != 1 || monomial->degree != 1)
        return false;
    const struct weft_dim_atom *atom = &dims->atom[monomial->atom[0]];
    if (atom->kind != WEFT_DIM_SYMBOL)
        return false;
    *ret_symbol = atom->symbol;
    return true;
}

