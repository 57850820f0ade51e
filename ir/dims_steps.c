/* SPDX-License-Identifier: Apache-2.0 */
/* dims_steps.c: minima inside of minima, as functions of one symbol.
 *
 * What is made of one symbol by sums, numbers, minima and maxima is a line with corners. On whole numbers each such
 * function is one sum of hinges, and so a nested one has a form without nesting:
 *
 *     min(L + min(L, 1), 1)   for L = 0, 1, 2, 3 …   is 0, 1, 1, 1 …   which is   min(L, 1)
 *
 * Exporters write such things when they clamp what they have clamped already. A function is kept as its corners from
 * the least value of the symbol on; two are combined segment by segment, where a crossing between n and n + 1 makes
 * corners of both. */
#include "ir/dims_table.h"

enum { MAX_CORNERS = 24 };
#define MAX_VALUE ((int64_t)1 << 30) /* of corners, values and slopes: their products fit */
#define NO_END ((int64_t)1 << 40)    /* of the last segment: add_corner refuses a crossing beyond MAX_VALUE */

struct steps {
    uint32_t corners;           /* at least 1 */
    int64_t x[MAX_CORNERS], y[MAX_CORNERS]; /* x rises from the symbol's least value; lines in between */
    int64_t slope;              /* after the last corner */
};

static int64_t value_at(const struct steps *f, int64_t x)
{
    uint32_t i = f->corners - 1;
    while (i > 0 && f->x[i] > x)
        i--;
    const int64_t run = i + 1 < f->corners ? f->x[i + 1] - f->x[i] : 1;
    const int64_t rise = i + 1 < f->corners ? f->y[i + 1] - f->y[i] : f->slope;
    return f->y[i] + (int64_t)((weft_wide)(x - f->x[i]) * rise / run); /* exact on every line that is made here */
}

/* Adds a corner to the right; one on the line through its neighbours goes again. */
static bool add_corner(struct steps *f, int64_t x, int64_t y)
{
    const uint32_t n = f->corners;
    if (n >= 2 && (weft_wide)(y - f->y[n - 1]) * (f->x[n - 1] - f->x[n - 2]) ==
                      (weft_wide)(f->y[n - 1] - f->y[n - 2]) * (x - f->x[n - 1]))
        f->corners--;
    if (f->corners == MAX_CORNERS || x > MAX_VALUE || y > MAX_VALUE || y < -MAX_VALUE)
        return false;
    f->x[f->corners] = x;
    f->y[f->corners++] = y;
    return true;
}

/* The last corner goes if the line before it has the slope of what follows. */
static void close_steps(struct steps *f, int64_t slope)
{
    f->slope = slope;
    const uint32_t n = f->corners;
    if (n >= 2 && f->y[n - 1] - f->y[n - 2] == slope * (f->x[n - 1] - f->x[n - 2]))
        f->corners--;
}

enum combination { ADD, MINIMUM, MAXIMUM };

static int64_t combine_values(enum combination how, int64_t a, int64_t b)
{
    return how == ADD ? a + b : (a < b) == (how == MINIMUM) ? a : b;
}

/* The corners between x and x + length where the lines a and b, `difference` apart at x and `change` more with each
 * step, change places. */
static bool add_crossing(struct steps *ret, enum combination how, const struct steps *a, const struct steps *b,
                         int64_t x, int64_t difference, int64_t change, int64_t length)
{
    if (how == ADD || difference == 0 || change == 0 || (difference < 0) == (change < 0))
        return true;
    const int64_t steps = (difference < 0 ? -difference : difference) / (change < 0 ? -change : change);
    for (int64_t at = x + steps; at <= x + steps + 1; at++)
        if (at > x && at - x < length && !add_corner(ret, at, combine_values(how, value_at(a, at), value_at(b, at))))
            return false;
    return true;
}

static bool combine(enum combination how, const struct steps *a, const struct steps *b, struct steps *ret)
{
    ret->corners = 0;
    int64_t x = a->x[0], slope_a = 0, slope_b = 0;
    for (uint32_t i = 0, k = 0;;) {
        if (!add_corner(ret, x, combine_values(how, value_at(a, x), value_at(b, x))))
            return false;
        while (i + 1 < a->corners && a->x[i] <= x)
            i++;
        while (k + 1 < b->corners && b->x[k] <= x)
            k++;
        const bool more_a = a->x[i] > x, more_b = b->x[k] > x;
        const int64_t next = more_a && (!more_b || a->x[i] < b->x[k]) ? a->x[i] : b->x[k];
        const int64_t end = more_a || more_b ? next : NO_END;
        slope_a = value_at(a, x + 1) - value_at(a, x);
        slope_b = value_at(b, x + 1) - value_at(b, x);
        if (!add_crossing(ret, how, a, b, x, value_at(a, x) - value_at(b, x), slope_a - slope_b, end - x))
            return false;
        if (!more_a && !more_b)
            break;
        x = end;
    }
    const bool least = (slope_a < slope_b) == (how == MINIMUM); /* in the long run the smaller slope is the minimum */
    close_steps(ret, how == ADD ? slope_a + slope_b : least ? slope_a : slope_b);
    return ret->slope <= MAX_VALUE && ret->slope >= -MAX_VALUE;
}

/* --- from expressions --------------------------------------------------------------------------------------------- */

static bool steps_of(const struct weft_dims *dims, weft_dim d, uint32_t symbol, struct steps *ret);

static bool steps_of_atom(const struct weft_dims *dims, const struct weft_dim_atom *atom, uint32_t symbol,
                          struct steps *ret)
{
    if (atom->kind == WEFT_DIM_SYMBOL) {
        const int64_t low = dims->symbol[symbol].low;
        *ret = (struct steps){.corners = 1, .x = {low}, .y = {low}, .slope = 1};
        return atom->symbol == symbol;
    }
    if (atom->kind == WEFT_DIM_DIV || !steps_of(dims, atom->argument[0], symbol, ret))
        return false;
    for (uint32_t i = 1; i < atom->arguments; i++) {
        const struct steps before = *ret;
        struct steps next;
        if (!steps_of(dims, atom->argument[i], symbol, &next) ||
            !combine(atom->kind == WEFT_DIM_MIN ? MINIMUM : MAXIMUM, &before, &next, ret))
            return false;
    }
    return true;
}

/* False where d is not of that kind, or too large. */
static bool steps_of(const struct weft_dims *dims, weft_dim d, uint32_t symbol, struct steps *ret)
{
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term *term = weft_dim_terms(dims, d, &constant, &count);
    *ret = (struct steps){.corners = 1, .x = {dims->symbol[symbol].low}};
    for (uint32_t t = 0; t < count; t++) {
        const struct weft_dim_monomial *monomial = &dims->monomial[term[t].monomial];
        const int64_t factor = term[t].coefficient;
        const struct steps before = *ret;
        struct steps part = {.corners = 1, .x = {dims->symbol[symbol].low}, .y = {1}};
        if (monomial->degree > 1 || factor > MAX_VALUE || factor < -MAX_VALUE ||
            (monomial->degree && !steps_of_atom(dims, &dims->atom[monomial->atom[0]], symbol, &part)))
            return false;
        for (uint32_t i = 0; i < part.corners; i++)
            if (__builtin_mul_overflow(part.y[i], factor, &part.y[i]) || part.y[i] > MAX_VALUE ||
                part.y[i] < -MAX_VALUE)
                return false;
        if (__builtin_mul_overflow(part.slope, factor, &part.slope) || part.slope > MAX_VALUE ||
            part.slope < -MAX_VALUE || !combine(ADD, &before, &part, ret))
            return false;
    }
    return true;
}

/* --- to expressions ----------------------------------------------------------------------------------------------- */

/* The hinge min(symbol, at). */
static weft_dim hinge(struct weft_dims *dims, weft_dim symbol, int64_t at)
{
    return weft_dim_min(dims, symbol, weft_dim_of(at));
}

static weft_dim expression_of(struct weft_dims *dims, const struct steps *f, uint32_t symbol)
{
    const weft_dim variable = dims->atom[dims->symbol_atom[symbol]].self;
    const int64_t high = dims->symbol[symbol].high;
    uint32_t corners = f->corners;
    int64_t slope = f->slope;
    for (; corners >= 2 && f->x[corners - 1] >= high; corners--)
        slope = (f->y[corners - 1] - f->y[corners - 2]) / (f->x[corners - 1] - f->x[corners - 2]);
    weft_dim sum = weft_dim_add_scaled(dims, weft_dim_of(f->y[0] - slope * f->x[0]), slope, variable);
    for (uint32_t i = corners - 1; i >= 1; i--) {
        const int64_t before = (f->y[i] - f->y[i - 1]) / (f->x[i] - f->x[i - 1]);
        const int64_t bend = before - slope;
        /* a hinge is its symbol up to the corner: what it adds at the first corner is taken away again */
        sum = weft_dim_add_scaled(dims, sum, bend, hinge(dims, variable, f->x[i]));
        sum = weft_dim_sub(dims, sum, weft_dim_of(bend * f->x[0]));
        slope = before;
    }
    return sum;
}

static uint32_t weight_of(const struct weft_dims *dims, weft_dim d)
{
    return weft_dim_is_constant(d) ? 1 : weft_dim_polynomial_of(dims, d)->weight;
}

static bool has_corner(const struct weft_dims *dims, weft_dim d)
{
    struct weft_dim_term constant;
    uint32_t count;
    const struct weft_dim_term *term = weft_dim_terms(dims, d, &constant, &count);
    for (uint32_t t = 0; t < count; t++) {
        const struct weft_dim_monomial *monomial = &dims->monomial[term[t].monomial];
        for (uint32_t i = 0; i < monomial->degree; i++) {
            const int kind = dims->atom[monomial->atom[i]].kind;
            if (kind == WEFT_DIM_MIN || kind == WEFT_DIM_MAX)
                return true;
        }
    }
    return false;
}

bool weft_dim_flatten_steps(struct weft_dims *dims, int kind, const weft_dim *item, uint32_t count, weft_dim *ret)
{
    bool nested = false;
    uint32_t weight = 1, symbol = dims->symbols;
    for (uint32_t i = 0; i < count; i++) {
        nested |= has_corner(dims, item[i]);
        weight += weight_of(dims, item[i]);
        for (uint32_t s = 0; s < dims->symbols && symbol == dims->symbols; s++)
            if (weft_dim_mentions(dims, item[i], s))
                symbol = s;
    }
    struct steps whole, next;
    if (!nested || symbol == dims->symbols || !steps_of(dims, item[0], symbol, &whole))
        return false;
    for (uint32_t i = 1; i < count; i++) {
        const struct steps before = whole;
        if (!steps_of(dims, item[i], symbol, &next) ||
            !combine(kind == WEFT_DIM_MIN ? MINIMUM : MAXIMUM, &before, &next, &whole))
            return false;
    }
    *ret = expression_of(dims, &whole, symbol);
    return weight_of(dims, *ret) <= weight;
}
