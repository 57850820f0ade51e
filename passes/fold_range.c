/* SPDX-License-Identifier: Apache-2.0 */
/* fold_range: drop what the range of numbers makes needless: casts on the way, bounds, comparisons.
 *
 *   %i: i64[8] = iota axis=0                    %i: i64[8] = iota axis=0
 *   %a: f32[8] = cast %i                        return %i
 *   %b: i64[8] = cast %a                 →
 *   return %b
 *
 * A walk finds which numbers can occur (range.c); then local rules over the walk of rules.c ask for them. Nothing
 * changes but by whom a number is read, so what was found stays true. The rules:
 *
 *   casts         A → B → C is A → C where B holds every number that can occur, as it is: then C gets the same number
 *                 either way, and rounds, wraps or saturates it the same. That A holds numbers that B does not is no
 *                 matter here; canonicalize asks for the types alone. A -0 that goes through an integer becomes 0, so
 *                 where C would show that, the cast stays. NaN and infinities are not whole: nothing is known of them.
 *   bounds        min, max, clamp, abs, relu, mod by more than can occur, and rounding, where they cannot do anything.
 *   comparisons   and tests for NaN and infinity are constants where ranges decide them.
 *
 * Why not within canonicalize: that needs no analysis, and runs more often. Every bit stays. Needs: nothing. Not done:
 * fractions; what a condition says of the branch behind it; carried values of loops. */
#include "passes/passes.h"
#include "passes/range.h"

static struct weft_range at(const struct weft_rewriting *r, weft_node n, unsigned operand)
{
    return weft_range_of(r->facts, weft_operand(r->graph, n, operand));
}

static int dtype_of(const struct weft_graph *g, weft_val v) { return weft_type_of(g, v)->dtype; }

static weft_val cast_between(struct weft_rewriting *r, weft_node n)
{
    struct weft_graph *g = r->graph;
    const weft_val middle = weft_operand(g, n, 0);
    const weft_node inner = weft_def(g, middle);
    if (weft_opcode_of(g, inner) != WEFT_OP_cast)
        return WEFT_NO_VALUE;
    const weft_val x = weft_operand(g, inner, 0), result = weft_result(g, n, 0);
    const struct weft_range range = weft_range_of(r->facts, x);
    const int to = dtype_of(g, result);
    const bool loses_sign = range.negative_zero && !weft_dtype_is_float(dtype_of(g, middle)) && weft_dtype_is_float(to);
    if (!range.whole || loses_sign || !weft_dtype_holds(dtype_of(g, middle), range.low, range.high))
        return WEFT_NO_VALUE;
    if (dtype_of(g, x) == to && weft_can_substitute(g, result, x))
        return weft_rewrite_to(r, x);
    if (!weft_rewrite_begin(r))
        return WEFT_NO_VALUE;
    weft_replace_operand(g, n, 0, x);
    return result;
}

static bool is_not_negative(struct weft_range range) { return range.whole && range.low >= 0 && !range.negative_zero; }

/* abs, relu. */
static weft_val positive(struct weft_rewriting *r, weft_node n)
{
    return is_not_negative(at(r, n, 0)) ? weft_rewrite_to(r, weft_operand(r->graph, n, 0)) : WEFT_NO_VALUE;
}

static weft_val rounded(struct weft_rewriting *r, weft_node n)
{
    return at(r, n, 0).whole ? weft_rewrite_to(r, weft_operand(r->graph, n, 0)) : WEFT_NO_VALUE;
}

/* Of equal zeros of a float either sign may count, so these are for integers. */
static weft_val extreme(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const struct weft_range a = at(r, n, 0), b = at(r, n, 1);
    if (!a.whole || !b.whole || weft_dtype_is_float(dtype_of(g, weft_result(g, n, 0))))
        return WEFT_NO_VALUE;
    const bool is_max = weft_opcode_of(g, n) == WEFT_OP_max;
    if (is_max ? a.low >= b.high : a.high <= b.low)
        return weft_rewrite_to(r, weft_operand(g, n, 0));
    if (is_max ? b.low >= a.high : b.high <= a.low)
        return weft_rewrite_to(r, weft_operand(g, n, 1));
    return WEFT_NO_VALUE;
}

/* A bound beyond all that occurs does nothing, also to floats: it never equals one that does. */
static weft_val bounded(struct weft_rewriting *r, weft_node n)
{
    const struct weft_graph *g = r->graph;
    const struct weft_attr *low = weft_attr_find(g, n, WEFT_ATTR_low), *high = weft_attr_find(g, n, WEFT_ATTR_high);
    const struct weft_range range = at(r, n, 0);
    const double least = (double)range.low, most = (double)range.high; /* rounded by less than what `exact` leaves */
    const bool exact = range.low >= -(INT64_C(1) << 53) && range.high <= INT64_C(1) << 53;
    if (!range.whole || !exact || (low && !(low->real < least)) || (high && !(high->real > most)))
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(g, n, 0));
}

static weft_val remainder_of_less(struct weft_rewriting *r, weft_node n)
{
    const struct weft_range a = at(r, n, 0), b = at(r, n, 1);
    if (!is_not_negative(a) || !b.whole || a.high >= b.low)
        return WEFT_NO_VALUE;
    return weft_rewrite_to(r, weft_operand(r->graph, n, 0));
}

static weft_val build_truth(struct weft_rewriting *r, weft_node n, bool truth)
{
    const struct weft_type type = *weft_type_of(r->graph, weft_result(r->graph, n, 0));
    return weft_rewrite_begin(r) ? weft_build_splat(&r->build, &type, truth) : WEFT_NO_VALUE;
}

static weft_val compared(struct weft_rewriting *r, weft_node n)
{
    const struct weft_range a = at(r, n, 0), b = at(r, n, 1);
    if (!a.whole || !b.whole)
        return WEFT_NO_VALUE;
    const bool less = a.high < b.low, not_more = a.high <= b.low, more = a.low > b.high, not_less = a.low >= b.high;
    const bool equal = not_more && not_less, apart = less || more;
    bool yes, no;
    switch (weft_opcode_of(r->graph, n)) {
    case WEFT_OP_eq: yes = equal; no = apart; break;
    case WEFT_OP_ne: yes = apart; no = equal; break;
    case WEFT_OP_lt: yes = less; no = not_less; break;
    case WEFT_OP_le: yes = not_more; no = more; break;
    case WEFT_OP_gt: yes = more; no = not_more; break;
    case WEFT_OP_ge: yes = not_less; no = less; break;
    default: return WEFT_NO_VALUE;
    }
    return yes || no ? build_truth(r, n, yes) : WEFT_NO_VALUE;
}

static weft_val finite(struct weft_rewriting *r, weft_node n)
{
    return at(r, n, 0).whole ? build_truth(r, n, false) : WEFT_NO_VALUE;
}

static const struct weft_rule rules[] = {
    {"cast_between",  WEFT_OP_cast,   cast_between,      "the type between holds every number that can occur"},
    {"abs_positive",  WEFT_OP_abs,    positive,          "it is never negative"},
    {"relu_positive", WEFT_OP_relu,   positive,          "it is never negative"},
    {"floor_whole",   WEFT_OP_floor,  rounded,           "it is whole"},
    {"ceil_whole",    WEFT_OP_ceil,   rounded,           "it is whole"},
    {"round_whole",   WEFT_OP_round,  rounded,           "it is whole"},
    {"trunc_whole",   WEFT_OP_trunc,  rounded,           "it is whole"},
    {"min_decided",   WEFT_OP_min,    extreme,           "one operand is never larger"},
    {"max_decided",   WEFT_OP_max,    extreme,           "one operand is never smaller"},
    {"clamp_within",  WEFT_OP_clamp,  bounded,           "it is always within the bounds"},
    {"mod_less",      WEFT_OP_mod,    remainder_of_less, "it is always less than the divisor"},
    {"eq_decided",    WEFT_OP_eq,     compared,          "the ranges of the operands decide it"},
    {"ne_decided",    WEFT_OP_ne,     compared,          "the ranges of the operands decide it"},
    {"lt_decided",    WEFT_OP_lt,     compared,          "the ranges of the operands decide it"},
    {"le_decided",    WEFT_OP_le,     compared,          "the ranges of the operands decide it"},
    {"gt_decided",    WEFT_OP_gt,     compared,          "the ranges of the operands decide it"},
    {"ge_decided",    WEFT_OP_ge,     compared,          "the ranges of the operands decide it"},
    {"nan_never",     WEFT_OP_is_nan, finite,            "a whole number is not a NaN"},
    {"inf_never",     WEFT_OP_is_inf, finite,            "a whole number is finite"},
};

/* Most graphs have nothing to ask about; then no range is worth finding. */
static bool has_questions(const struct weft_graph *graph)
{
    bool asks[WEFT_OP_COUNT] = {false};
    for (unsigned i = 0; i < sizeof rules / sizeof rules[0]; i++)
        asks[rules[i].op] = true;
    weft_foreach_node(graph, n)
        if (asks[weft_opcode_of(graph, n)])
            return true;
    return false;
}

bool weft_pass_fold_range(struct weft_graph *graph, const struct weft_target *target)
{
    const struct weft_rule_set sets[] = {WEFT_RULE_SET(rules)};
    if (!has_questions(graph))
        return false;
    const struct weft_ranges ranges = weft_find_ranges(graph);
    return weft_apply_rules_with(graph, "fold_range", sets, 1, &ranges);
}
