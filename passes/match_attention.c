/* SPDX-License-Identifier: Apache-2.0 */
/* match_attention.c: walks from the second product of an attention back to the first.
 *
 *   weights   casts, reshapes, transposes, a factor, and a choice of 0 where the softmax is NaN, has nothing but -inf,
 *             or where a choice hid the score
 *   softmax   over the keys: the op, or exp(x - max) / sum of the last axis
 *   scores    casts, reshapes, transposes, factors, one bound by tanh, and around all these terms: what is added or
 *             subtracted, and choices of a number for hidden scores
 *
 * Both may be keys by queries (`turned`); then the product has keys on the left, and the weights are read transposed.
 * A factor that is the same for all keys of a row, but no number, is one of the query.
 *
 *   select(%c, %x, -inf)        →   %x + select(%c, 0, -inf)
 *   c · tanh(x · f)             →   softcap=c factor=f·c
 *   (%x + %m) · f               →   %x · f + %m · f
 *   %x - %m                     →   %x + %m · -1
 *   constants like 0 -inf / 0 0 →   causal=1
 *
 * Values on the way have one reader and no stated layout: else they are wanted in memory. Types are f32, f16 and bf16,
 * and everything is computed in f32.
 *
 * A finite number for hidden scores hides as -inf does, but in rows where all are hidden: those are the mean of all
 * values. From -1e30 down a score that is added to it is lost in rounding, so a term says the same; the lowest of f32
 * stands for the lowest of f16 where nothing else is added. A choice of a number like -10000 is refused: a score may be
 * lower. An additive mask stays what it is, but such numbers in it hide NaN and +inf too, as a choice does. */
#include "passes/match_attention.h"

#include <float.h>
#include <math.h>

/* --- questions --------------------------------------------------------------------------------------------------- */

static bool is_op(const struct weft_graph *g, weft_val v, int op)
{
    const weft_node n = weft_def(g, v);
    return weft_opcode_of(g, n) == op && !weft_is_decided(g, n);
}

static weft_val operand_of(const struct weft_graph *g, weft_val v, unsigned i)
{
    return weft_operand(g, weft_def(g, v), i);
}

static bool is_narrow(int dtype) { return dtype == WEFT_F32 || dtype == WEFT_F16 || dtype == WEFT_BF16; }

bool weft_match_scaled(const struct weft_graph *g, weft_val v, weft_val *ret, double *ret_factor)
{
    struct weft_element number;
    const bool divides = is_op(g, v, WEFT_OP_div);
    if (!divides && !is_op(g, v, WEFT_OP_mul))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        if ((divides && i == 0) || !weft_const_splat(g, operand_of(g, v, i), &number))
            continue;
        *ret = operand_of(g, v, 1 - i);
        *ret_factor = divides ? 1 / number.real : number.real;
        return isfinite(*ret_factor) && *ret_factor != 0;
    }
    return false;
}

/* Through a cast between types that are computed in f32, or a reshape that keeps the last two axes. */
static bool is_passed(const struct weft_graph *g, weft_val v, weft_val *ret)
{
    const bool casts = is_op(g, v, WEFT_OP_cast);
    if (!casts && !is_op(g, v, WEFT_OP_reshape))
        return false;
    *ret = operand_of(g, v, 0);
    const struct weft_type *from = weft_type_of(g, *ret), *to = weft_type_of(g, v);
    if (casts)
        return is_narrow(from->dtype) && is_narrow(to->dtype);
    if (from->rank < 2 || to->rank < 2)
        return false;
    for (int i = 1; i <= 2; i++)
        if (!weft_dim_same(from->extent[from->rank - i], to->extent[to->rank - i]))
            return false;
    return true;
}

/* Is v the transpose of the last two axes of another value? */
static bool is_turned(const struct weft_graph *g, weft_val v, weft_val *ret)
{
    const int rank = weft_type_of(g, v)->rank;
    if (!is_op(g, v, WEFT_OP_transpose) || rank < 2)
        return false;
    *ret = operand_of(g, v, 0);
    for (int i = 0; i < rank; i++)
        if (weft_dim_value(weft_attr_at(g, weft_def(g, v), WEFT_ATTR_perm, (unsigned)i)) !=
            (i < rank - 2 ? i : 2 * rank - 3 - i))
            return false;
    return true;
}

/* Is x multiplied or divided by what a broadcast repeats along `axis`? */
static bool is_scaled_by_rows(const struct weft_graph *g, weft_val x, int axis, weft_val *ret, weft_val *ret_scale)
{
    const bool divides = is_op(g, x, WEFT_OP_div);
    if (!divides && !is_op(g, x, WEFT_OP_mul))
        return false;
    for (unsigned i = divides; i < 2; i++) {
        const weft_val scale = operand_of(g, x, i);
        if (!is_op(g, scale, WEFT_OP_bcast))
            continue;
        const struct weft_type *from = weft_type_of(g, operand_of(g, scale, 0));
        bool repeats = true;
        for (int k = 0; k < from->rank; k++)
            if (weft_dim_value(weft_attr_at(g, weft_def(g, scale), WEFT_ATTR_dims, (unsigned)k)) == axis)
                repeats = weft_dim_same(from->extent[k], weft_dim_of(1));
        if (!repeats)
            continue;
        *ret = operand_of(g, x, 1 - i);
        *ret_scale = scale;
        return true;
    }
    return false;
}

/* Of a row: is v op(x) along the last axis, repeated along it? */
static bool is_of_row(const struct weft_graph *g, weft_val v, int op, weft_val *ret_x)
{
    if (!is_op(g, v, WEFT_OP_bcast))
        return false;
    const int rank = weft_type_of(g, v)->rank;
    const weft_node spread = weft_def(g, v);
    weft_val y = weft_operand(g, spread, 0);
    for (int i = 0; i < weft_type_of(g, y)->rank; i++)
        if (weft_dim_value(weft_attr_at(g, spread, WEFT_ATTR_dims, (unsigned)i)) != i)
            return false;
    if (is_op(g, y, WEFT_OP_reshape)) { /* [.., rows] to [.., rows, 1], or back */
        const weft_val x = operand_of(g, y, 0);
        const struct weft_type *from = weft_type_of(g, x), *to = weft_type_of(g, y);
        if (from->rank < rank - 1 || to->rank < rank - 1 || !weft_has_one_use(g, y))
            return false;
        for (int i = 0; i < rank - 1; i++)
            if (!weft_dim_same(from->extent[i], to->extent[i]))
                return false;
        y = x;
    }
    const int inner = weft_type_of(g, y)->rank;
    const weft_node n = weft_def(g, y);
    if (!is_op(g, y, op) || inner < rank - 1 || !weft_has_one_use(g, v) || !weft_has_one_use(g, y))
        return false;
    *ret_x = weft_operand(g, n, 0);
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    return axes && axes->count == 1 && weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_axes, 0)) == rank - 1 &&
           weft_type_of(g, *ret_x)->rank == rank;
}

/* Does only what is between the products read it, in so many places, and may it lie anywhere? */
static bool is_inside(const struct weft_graph *g, weft_val v, uint32_t readers, struct weft_attention_match *match)
{
    if (g->value[v.id].uses != readers || g->value[v.id].returns)
        match->why = "scores or weights are read elsewhere too, so they are computed";
    else if (weft_is_required(g, v))
        match->why = "the layout of scores or weights is stated, so they are stored";
    else
        return true;
    return false;
}

/* --- weights and softmax ----------------------------------------------------------------------------------------- */

/* The operand of a softmax, of the op or in pieces, and how many nodes of it read that. */
static bool is_softmax(const struct weft_graph *g, weft_val v, bool turned, weft_val *ret, uint32_t *ret_readers)
{
    const int rank = weft_type_of(g, v)->rank;
    weft_val x;
    if (is_op(g, v, WEFT_OP_softmax)) {
        *ret = operand_of(g, v, 0);
        *ret_readers = 1;
        return weft_attr_int(g, weft_def(g, v), WEFT_ATTR_axis) == rank - 1 - turned;
    }
    if (turned || !is_op(g, v, WEFT_OP_div) || !is_of_row(g, operand_of(g, v, 1), WEFT_OP_sum, &x))
        return false;
    const weft_val power = operand_of(g, v, 0);
    if (power.id != x.id || !is_op(g, power, WEFT_OP_exp) || g->value[power.id].uses != 2 ||
        g->value[power.id].returns)
        return false;
    const weft_val difference = operand_of(g, power, 0);
    if (!is_op(g, difference, WEFT_OP_sub) || !weft_has_one_use(g, difference) ||
        !is_of_row(g, operand_of(g, difference, 1), WEFT_OP_reduce_max, &x))
        return false;
    *ret = operand_of(g, difference, 0);
    *ret_readers = 2;
    return ret->id == x.id;
}

/* select(%guard, 0, %x): where %x is NaN, or where all that its softmax is of is -inf. ret_readers: of x. */
static bool is_guarded(const struct weft_graph *g, weft_val v, weft_val *ret, const char **ret_empty,
                       uint32_t *ret_readers)
{
    struct weft_element number;
    if (!is_op(g, v, WEFT_OP_select) || !weft_const_splat(g, operand_of(g, v, 1), &number) || number.real != 0)
        return false;
    const weft_val guard = operand_of(g, v, 0), x = operand_of(g, v, 2);
    weft_val low, scores;
    uint32_t readers;
    *ret = x;
    if (is_op(g, guard, WEFT_OP_is_nan) && operand_of(g, guard, 0).id == x.id && weft_has_one_use(g, guard)) {
        *ret_empty = "clear";
        *ret_readers = 2;
        return true;
    }
    if (!is_of_row(g, guard, WEFT_OP_all, &low) || !is_op(g, low, WEFT_OP_eq) || !weft_has_one_use(g, low) ||
        !is_softmax(g, x, false, &scores, &readers))
        return false;
    for (unsigned i = 0; i < 2; i++)
        if (operand_of(g, low, i).id == scores.id && weft_const_splat(g, operand_of(g, low, 1 - i), &number) &&
            number.real == -INFINITY) {
            *ret_empty = "zero";
            *ret_readers = 1;
            return true;
        }
    return false;
}

/* select(%hidden, 0, %x) or select(%seen, %x, 0): weft_match_attention compares that with what hid the scores. */
static bool is_cleared(const struct weft_graph *g, weft_val v, struct weft_attention_match *match, weft_val *ret)
{
    struct weft_element number;
    if (!is_op(g, v, WEFT_OP_select) || match->cleared.id)
        return false;
    for (unsigned i = 1; i <= 2; i++) {
        if (!weft_const_splat(g, operand_of(g, v, i), &number) || number.real != 0)
            continue;
        match->cleared = (struct weft_attention_cleared){operand_of(g, v, 0).id, i == 1, match->turned};
        *ret = operand_of(g, v, 3 - i);
        return true;
    }
    return false;
}

/* Is v made from a softmax over keys, by ops of a few operands? For the remark only. */
static bool leads_to_softmax(const struct weft_graph *g, weft_val v, int depth)
{
    const weft_node n = weft_def(g, v);
    const int op = weft_opcode_of(g, n);
    weft_val x;
    uint32_t readers;
    if (op == WEFT_OP_softmax || is_softmax(g, v, false, &x, &readers))
        return true;
    if (op == WEFT_OP_select || op == WEFT_OP_add || op == WEFT_OP_mul)
        return depth > 0 && (leads_to_softmax(g, operand_of(g, v, op == WEFT_OP_select), depth - 1) ||
                             leads_to_softmax(g, operand_of(g, v, 1 + (op == WEFT_OP_select)), depth - 1));
    return depth > 0 && (op == WEFT_OP_cast || op == WEFT_OP_reshape || op == WEFT_OP_transpose) &&
           leads_to_softmax(g, operand_of(g, v, 0), depth - 1);
}

/* From the weights to what the softmax is of; false: there is none, or `why`. */
static bool match_weights(const struct weft_graph *g, weft_val x, struct weft_attention_match *match, weft_val *ret)
{
    uint32_t readers = 1, softmax_readers;
    for (int step = 0; step < 8; step++) {
        weft_val inner;
        double factor;
        const uint32_t here = readers;
        readers = 1;
        if (!is_narrow(weft_type_of(g, x)->dtype))
            return false;
        if (is_softmax(g, x, match->turned, &inner, &softmax_readers)) {
            if (!is_inside(g, x, here, match))
                return false;
            *ret = inner;
            return is_inside(g, inner, softmax_readers + (match->empty[0] == 'z'), match);
        }
        if (g->value[x.id].uses != here || g->value[x.id].returns || weft_is_required(g, x)) {
            if (leads_to_softmax(g, x, 4))
                is_inside(g, x, here, match);
            return false;
        }
        if (weft_match_scaled(g, x, &inner, &factor))
            match->weight_factor *= factor;
        else if (is_turned(g, x, &inner))
            match->turned = !match->turned;
        else if (!is_passed(g, x, &inner) &&
                 (match->empty[0] != 'n' || !is_guarded(g, x, &inner, &match->empty, &readers)) &&
                 !is_cleared(g, x, match, &inner)) {
            if (leads_to_softmax(g, x, 4))
                match->why = "weights are not only scaled between the softmax and the second product, or the softmax "
                             "is not over the keys";
            return false;
        }
        x = inner;
    }
    return false;
}

/* --- scores ------------------------------------------------------------------------------------------------------ */

/* Is v made from a product by what match_scores knows? */
static bool leads_to_product(const struct weft_graph *g, weft_val v, int depth)
{
    weft_val inner, scale;
    double factor;
    if (!weft_has_one_use(g, v) || depth == 0)
        return false;
    if (is_op(g, v, WEFT_OP_matmul))
        return true;
    const int rank = weft_type_of(g, v)->rank;
    if (weft_match_scaled(g, v, &inner, &factor) || is_passed(g, v, &inner) || is_turned(g, v, &inner) ||
        is_scaled_by_rows(g, v, rank - 1, &inner, &scale) || is_scaled_by_rows(g, v, rank - 2, &inner, &scale))
        return leads_to_product(g, inner, depth - 1);
    if (is_op(g, v, WEFT_OP_tanh) || is_op(g, v, WEFT_OP_sub))
        return leads_to_product(g, operand_of(g, v, 0), depth - 1);
    const bool chooses = is_op(g, v, WEFT_OP_select);
    return (chooses || is_op(g, v, WEFT_OP_add)) && (leads_to_product(g, operand_of(g, v, chooses), depth - 1) ||
                                                     leads_to_product(g, operand_of(g, v, chooses + 1), depth - 1));
}

/* The number that a choice gives to hidden scores; false if a score may be lower. */
static bool find_hidden(const struct weft_graph *g, weft_val v, struct weft_attention_term *term)
{
    struct weft_element number;
    if (!weft_const_splat(g, v, &number) || isnan(number.real))
        return false;
    term->stands_in = weft_type_of(g, v)->dtype == WEFT_F16 && number.real == -65504;
    const bool below = number.real < -FLT_MAX && number.real != -INFINITY; /* of f64 */
    term->hidden = term->stands_in || below ? -FLT_MAX : number.real;
    if (term->stands_in)
        return term->scale > 0;
    term->hidden *= term->scale; /* what is chosen is scaled with the scores */
    return term->scale > 0 && weft_is_lowest(term->hidden) &&
           (number.real == -INFINITY || term->hidden >= -FLT_MAX);
}

/* Is there a lowest number of f16 among others? */
static bool stands_beside(const struct weft_attention_match *match, const struct weft_attention_term *term)
{
    return match->terms > 0 && (term->stands_in || match->term[0].stands_in);
}

/* Takes a term off x; false: `why`. */
static bool match_term(const struct weft_graph *g, weft_val x, struct weft_attention_match *match, weft_val *ret)
{
    enum { DEPTH = 12 };
    const bool chooses = is_op(g, x, WEFT_OP_select);
    const bool subtracts = is_op(g, x, WEFT_OP_sub);
    const weft_val a = operand_of(g, x, chooses), b = operand_of(g, x, chooses + 1);
    const bool first = leads_to_product(g, a, DEPTH);
    struct weft_attention_term term = {.value = first ? b : a, .chooses = chooses, .hides = !first,
                                       .turned = match->turned, .scale = subtracts ? -match->factor : match->factor};
    if (!first && (subtracts || !leads_to_product(g, b, DEPTH)))
        match->why = "what is added to, or chosen from, is no product that only this reads";
    else if (match->scale.id || match->softcap != 0)
        match->why = "what is added to scores is bounded with them, or scaled by what is no number";
    else if (match->terms == WEFT_ATTENTION_TERMS)
        match->why = "there are too many masks";
    else if ((chooses && !find_hidden(g, term.value, &term)) || stands_beside(match, &term))
        match->why = "hidden scores get a number that others may be below";
    else if (!chooses && !is_narrow(weft_type_of(g, term.value)->dtype))
        match->why = "the mask is of a type that is not computed in f32";
    if (match->why)
        return false;
    if (chooses)
        term.value = operand_of(g, x, 0);
    match->term[match->terms++] = term;
    *ret = first ? a : b;
    return true;
}

/* A factor of rows, which queries get. */
static bool match_row_scale(const struct weft_graph *g, weft_val x, struct weft_attention_match *match, weft_val *ret)
{
    const int axis = weft_type_of(g, x)->rank - 1 - match->turned;
    if (match->scale.id || !is_scaled_by_rows(g, x, axis, ret, &match->scale))
        return false;
    match->scale_divides = is_op(g, x, WEFT_OP_div);
    match->scale_turned = match->turned;
    return true;
}

/* From what the softmax is of to the product. */
static bool match_scores(const struct weft_graph *g, weft_val x, struct weft_attention_match *match, weft_val *ret)
{
    for (int step = 0; step < 16; step++) {
        weft_val inner;
        double factor;
        if (!is_narrow(weft_type_of(g, x)->dtype))
            break;
        if (step > 0 && !is_inside(g, x, 1, match))
            return false;
        if (is_op(g, x, WEFT_OP_matmul)) {
            *ret = x;
            return true;
        }
        if (weft_match_scaled(g, x, &inner, &factor)) {
            match->factor *= factor;
        } else if (is_op(g, x, WEFT_OP_tanh) && match->softcap == 0 && !match->scale.id) {
            match->softcap = fabs(match->factor);
            inner = operand_of(g, x, 0);
        } else if (is_op(g, x, WEFT_OP_add) || is_op(g, x, WEFT_OP_sub) || is_op(g, x, WEFT_OP_select)) {
            if (!match_term(g, x, match, &inner))
                return false;
        } else if (is_turned(g, x, &inner)) {
            match->turned = !match->turned;
        } else if (!is_passed(g, x, &inner) && !match_row_scale(g, x, match, &inner)) {
            break;
        }
        x = inner;
    }
    match->why = "what the softmax is of is not made of a product by scales, a bound and masks";
    return false;
}

/* A constant triangle is no mask to be read. Beside other terms it has to be of -inf: rows whose keys the others hide
 * are else the mean of all values. */
static void match_causal(struct weft_graph *g, struct weft_attention_match *match)
{
    for (unsigned i = 0; i < match->terms; i++) {
        const struct weft_attention_term *term = &match->term[i];
        bool finite;
        int64_t offset;
        if (i > 0 && term[-1].chooses && isfinite(term[-1].hidden))
            return; /* in the place of -inf, too */
        if (term->turned || (!term->chooses && term->scale != 1) ||
            !weft_match_causal(g, term->value, term->hides, &offset, &finite))
            continue;
        if (term->chooses)
            finite = isfinite(term->hidden);
        if (finite && (match->terms > 1 || offset < 0))
            continue;
        match->causal = true;
        match->offset = offset;
        for (match->terms--; i < match->terms; i++)
            match->term[i] = match->term[i + 1];
        return;
    }
}

/* Have the rows of queries, which q has on the axis that f says, a factor each? */
static bool fits_scale(const struct weft_graph *g, const struct weft_attention_match *f, weft_val product)
{
    if (!f->scale.id)
        return true;
    const struct weft_type *scale = weft_type_of(g, f->scale), *scores = weft_type_of(g, product);
    if (scale->rank != scores->rank || scale->rank != weft_type_of(g, f->q)->rank || f->scale_turned != f->turned ||
        f->q_turned != f->turned || !is_narrow(scale->dtype))
        return false;
    for (int i = 0; i < scale->rank; i++)
        if (!weft_dim_same(scale->extent[i], scores->extent[i]))
            return false;
    return f->empty[0] != 'z'; /* a row of -inf by an infinite factor */
}

/* The type of scores as the weights have it, turned if one of both is. */
static bool same_axes(const struct weft_graph *g, weft_val product, weft_val weights, bool is_other)
{
    struct weft_type type = *weft_type_of(g, product);
    const weft_dim last = type.extent[type.rank - 1];
    type.dtype = weft_type_of(g, weights)->dtype;
    if (is_other) {
        type.extent[type.rank - 1] = type.extent[type.rank - 2];
        type.extent[type.rank - 2] = last;
    }
    return weft_type_same(&type, weft_type_of(g, weights));
}

/* With the weights as this operand of the product n. */
static bool match_side(struct weft_graph *g, weft_node n, unsigned side, struct weft_attention_match *ret)
{
    const bool trans[] = {weft_attr_int(g, n, WEFT_ATTR_trans_a) != 0, weft_attr_int(g, n, WEFT_ATTR_trans_b) != 0};
    const weft_val weights = weft_operand(g, n, side);
    const bool starts_turned = side == 0 ? trans[0] : !trans[1];
    *ret = (struct weft_attention_match){.factor = 1, .weight_factor = 1, .empty = "nan", .turned = starts_turned,
                                         .v = weft_operand(g, n, 1 - side), .result_turned = side == 1,
                                         .v_turned = side == 0 ? trans[1] : !trans[0]};
    weft_val x, product;
    if (!match_weights(g, weights, ret, &x) || !match_scores(g, x, ret, &product))
        return false;
    const weft_node scores = weft_def(g, product);
    const bool left = weft_attr_int(g, scores, WEFT_ATTR_trans_a) != 0,
               right = !weft_attr_int(g, scores, WEFT_ATTR_trans_b);
    ret->q = weft_operand(g, scores, ret->turned), ret->k = weft_operand(g, scores, !ret->turned);
    ret->q_turned = ret->turned ? right : left, ret->k_turned = ret->turned ? left : right;
    if (!same_axes(g, product, weights, ret->turned != starts_turned))
        ret->why = "the two products have other axes";
    else if (!is_narrow(weft_type_of(g, ret->q)->dtype) || !is_narrow(weft_type_of(g, ret->v)->dtype))
        ret->why = "it is of a type that is not computed in f32";
    else if (!weft_match_cleared(ret))
        ret->why = "weights are made 0 elsewhere than where one mask hides scores";
    else if (!fits_scale(g, ret, product))
        ret->why = "the factor of the scores has not the axes of queries";
    if (ret->why)
        return false;
    match_causal(g, ret);
    return true;
}

bool weft_match_attention(struct weft_graph *g, weft_node n, struct weft_attention_match *ret)
{
    return match_side(g, n, 0, ret) || (!ret->why && match_side(g, n, 1, ret));
}
