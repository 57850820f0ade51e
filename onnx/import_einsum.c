/* SPDX-License-Identifier: Apache-2.0 */
/* import_einsum.c: sums of products over named axes.
 *
 * Each operand is brought to its own letters: repeated ones become a diagonal, the ellipsis the letters of axes counted
 * from its end. Operands are then folded from the left. Two at a time, letters that neither the result nor a later
 * operand needs are summed: alone where one operand has them, and in a matmul where both do:
 *
 *   left  [batch…, mine…, summed…]  ·  right [batch…, theirs…, summed…]'   →   [batch…, mine…, theirs…]
 *
 * with each of the groups as one axis. */
#include "onnx/transform.h"

#include <string.h>

/* Letters are bits; axes of the ellipsis come behind a to z and A to Z. */
#define LETTERS (52 + WEFT_MAX_RANK)

struct term {
    weft_val value;
    unsigned rank;
    uint8_t letter[WEFT_MAX_RANK];
};

struct einsum {
    struct onnx_op *op;
    const char *at, *end; /* what is left of the equation */
    weft_dim extent[LETTERS];
    bool known[LETTERS];
    unsigned ellipsis; /* most axes that an ellipsis stands for */
};

static uint64_t letters_of(const struct term *term)
{
    uint64_t set = 0;
    for (unsigned i = 0; i < term->rank; i++)
        set |= UINT64_C(1) << term->letter[i];
    return set;
}

static bool has(uint64_t set, unsigned letter) { return set >> letter & 1; }

static int letter_of(char c) { return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1; }

/* Reads one term up to a comma, an arrow or the end. `rank` is the operand's, or that of the result's ellipsis. */
static void read_term(struct einsum *e, unsigned rank, bool is_result, struct term *ret)
{
    unsigned given = 0, dots = 0;
    const char *at = e->at;
    for (; at < e->end && *at != ',' && *at != '-'; at++)
        given += letter_of(*at) >= 0;
    unsigned covered = is_result ? e->ellipsis : rank >= given ? rank - given : 0;
    ret->rank = 0;
    for (; e->at < at; e->at++) {
        const int letter = letter_of(*e->at);
        dots += *e->at == '.';
        if (dots == 3 && covered <= e->ellipsis + WEFT_MAX_RANK) {
            for (unsigned i = 0; i < covered && ret->rank < WEFT_MAX_RANK; i++)
                ret->letter[ret->rank++] = (uint8_t)(52 + WEFT_MAX_RANK - covered + i);
            if (!is_result && covered > e->ellipsis)
                e->ellipsis = covered;
            dots = 4;
        } else if (letter >= 0 && ret->rank < WEFT_MAX_RANK) {
            ret->letter[ret->rank++] = (uint8_t)letter;
        } else if (*e->at != ' ' && *e->at != '.') {
            weft_onnx_fail(e->op, WEFT_ERR_INVALID, "the equation holds '%c', or more axes than fit", *e->at);
        }
    }
    if (!is_result && ret->rank != rank)
        weft_onnx_fail(e->op, WEFT_ERR_INVALID, "a term of the equation has %u axes for an operand of %u", ret->rank,
                       rank);
}

/* --- one operand -------------------------------------------------------------------------------------------------- */

static weft_val drop_axis(struct onnx_op *op, weft_val x, unsigned axis)
{
    struct weft_type type = weft_onnx_type(op, x);
    memmove(type.extent + axis, type.extent + axis + 1, (type.rank - 1u - axis) * sizeof *type.extent);
    return weft_onnx_reshape(op, x, type.rank - 1u, type.extent);
}

/* Axes i and k, which have one letter, become axis i: where their indices are equal, the element stays, and the rest,
 * which is 0, is summed away. A select keeps infinities elsewhere out of the sum. */
static void take_diagonal(struct onnx_op *op, struct term *term, unsigned i, unsigned k)
{
    struct weft_type index = weft_onnx_type(op, term->value);
    index.dtype = WEFT_I64;
    const struct weft_attr axes[] = {weft_attr_of_int(WEFT_ATTR_axis, i), weft_attr_of_int(WEFT_ATTR_axis, k)};
    const weft_val row = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &axes[0], &index);
    const weft_val column = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &axes[1], &index);
    const weft_val kept[] = {weft_onnx_binary(op, WEFT_OP_eq, row, column), term->value,
                             weft_onnx_scalar_like(op, term->value, 0)};
    const weft_val diagonal = weft_onnx_make(op, WEFT_OP_select, 3, kept, 0, NULL, NULL);
    term->value = weft_onnx_reduction(op, WEFT_OP_sum, diagonal, 1, &k, false);
    memmove(term->letter + k, term->letter + k + 1, term->rank - 1u - k);
    term->rank--;
}

static void take_diagonals(struct onnx_op *op, struct term *term)
{
    for (unsigned i = 0; i < term->rank; i++)
        for (unsigned k = i + 1; k < term->rank && !op->failed;)
            if (term->letter[i] == term->letter[k])
                take_diagonal(op, term, i, k);
            else
                k++;
}

/* Axes of extent 1 whose letter has another extent elsewhere vanish: they would be repeated. */
static void drop_single_axes(struct einsum *e, struct term *term)
{
    for (unsigned i = 0; i < term->rank && !e->op->failed;) {
        const weft_dim extent = weft_onnx_type(e->op, term->value).extent[i];
        if (!weft_dim_is(extent, 1) || weft_dim_is(e->extent[term->letter[i]], 1)) {
            i++;
            continue;
        }
        term->value = drop_axis(e->op, term->value, i);
        memmove(term->letter + i, term->letter + i + 1, term->rank - 1u - i);
        term->rank--;
    }
}

static void sum_away(struct onnx_op *op, struct term *term, uint64_t needed)
{
    unsigned axes[WEFT_MAX_RANK], count = 0, rank = 0;
    for (unsigned i = 0; i < term->rank; i++)
        if (!has(needed, term->letter[i]))
            axes[count++] = i;
        else
            term->letter[rank++] = term->letter[i];
    if (count)
        term->value = weft_onnx_reduction(op, WEFT_OP_sum, term->value, count, axes, false);
    term->rank = rank;
}

/* --- two operands ------------------------------------------------------------------------------------------------- */

static unsigned axis_of(const struct term *term, unsigned letter)
{
    unsigned axis = 0;
    while (axis < term->rank && term->letter[axis] != letter)
        axis++;
    return axis;
}

/* The term with its axes in the order of three groups of letters, each merged to one axis. */
static weft_val grouped(struct einsum *e, const struct term *term, const uint64_t *group)
{
    unsigned perm[WEFT_MAX_RANK], count = 0;
    weft_dim extent[3];
    for (unsigned g = 0; g < 3; g++) {
        extent[g] = weft_dim_of(1);
        for (unsigned letter = 0; letter < LETTERS; letter++)
            if (has(group[g], letter)) {
                perm[count++] = axis_of(term, letter);
                extent[g] = weft_dim_mul(e->op->graph->dims, extent[g], e->extent[letter]);
            }
    }
    const weft_val sorted = count > 1 ? weft_onnx_transpose(e->op, term->value, count, perm) : term->value;
    return weft_onnx_reshape(e->op, sorted, 3, extent);
}

/* Multiplies two terms; letters outside of `needed` are summed. */
static void multiply(struct einsum *e, struct term *left, struct term *right, uint64_t needed)
{
    struct onnx_op *op = e->op;
    sum_away(op, left, needed | letters_of(right));
    sum_away(op, right, needed | letters_of(left));
    const uint64_t a = letters_of(left), b = letters_of(right), both = a & b;
    const uint64_t batch = both & needed, summed = both & ~needed;
    const weft_val x = grouped(e, left, (const uint64_t[]){batch, a & ~both, summed});
    const weft_val y = grouped(e, right, (const uint64_t[]){batch, b & ~both, summed});
    const struct weft_attr trans_b = weft_attr_of_int(WEFT_ATTR_trans_b, 1);
    const weft_val product = weft_onnx_make(op, WEFT_OP_matmul, 2, (const weft_val[]){x, y}, 1, &trans_b, NULL);
    const uint64_t order[] = {batch, a & ~both, b & ~both};
    weft_dim extent[WEFT_MAX_RANK];
    unsigned rank = 0;
    for (unsigned g = 0; g < 3; g++)
        for (unsigned letter = 0; letter < LETTERS; letter++)
            if (has(order[g], letter)) {
                if (rank == WEFT_MAX_RANK) {
                    weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "a product has more than %d axes", WEFT_MAX_RANK);
                    return;
                }
                left->letter[rank] = (uint8_t)letter;
                extent[rank++] = e->extent[letter];
            }
    left->rank = rank;
    left->value = weft_onnx_reshape(op, product, rank, extent);
}

/* --- the equation ------------------------------------------------------------------------------------------------- */

static void note_extents(struct einsum *e, const struct term *term)
{
    const struct weft_type type = weft_onnx_type(e->op, term->value);
    for (unsigned i = 0; i < term->rank && !e->op->failed; i++) {
        const unsigned letter = term->letter[i];
        e->extent[letter] =
            e->known[letter] ? weft_onnx_join(e->op, e->extent[letter], type.extent[i]) : type.extent[i];
        e->known[letter] = true;
    }
}

/* Without an arrow: the ellipsis, then the letters that occur once, in alphabetical order (capitals first). */
static void implied_result(const struct einsum *e, const struct term *term, unsigned terms, struct term *ret)
{
    ret->rank = 0;
    for (unsigned i = 0; i < e->ellipsis && ret->rank < WEFT_MAX_RANK; i++)
        ret->letter[ret->rank++] = (uint8_t)(52 + WEFT_MAX_RANK - e->ellipsis + i);
    for (unsigned k = 0; k < 52; k++) {
        const unsigned letter = (k + 26) % 52;
        unsigned times = 0;
        for (unsigned t = 0; t < terms; t++)
            for (unsigned i = 0; i < term[t].rank; i++)
                times += term[t].letter[i] == letter;
        if (times == 1 && ret->rank < WEFT_MAX_RANK)
            ret->letter[ret->rank++] = (uint8_t)letter;
    }
}

static void read_equation(struct einsum *e, struct term *term, unsigned terms, struct term *ret_result)
{
    for (unsigned t = 0; t < terms && !e->op->failed; t++) {
        term[t].value = weft_onnx_input(e->op, t);
        read_term(e, weft_onnx_type(e->op, term[t].value).rank, false, &term[t]);
        note_extents(e, &term[t]);
        const bool more = e->at < e->end && *e->at == ',';
        if (!e->op->failed && more != (t + 1 < terms))
            weft_onnx_fail(e->op, WEFT_ERR_INVALID, "the equation does not have %u terms", terms);
        e->at += more;
    }
    if (e->op->failed)
        return;
    if (e->at + 1 < e->end && e->at[0] == '-' && e->at[1] == '>') {
        e->at += 2;
        read_term(e, 0, true, ret_result);
    } else {
        implied_result(e, term, terms, ret_result);
    }
    for (unsigned i = 0; i < ret_result->rank && !e->op->failed; i++)
        if (!e->known[ret_result->letter[i]])
            weft_onnx_fail(e->op, WEFT_ERR_INVALID, "the result of the equation has an axis that no term has");
}

/* Transposes to the result's order, and repeats along axes that only had extent 1. */
static weft_val ordered(struct einsum *e, const struct term *term, const struct term *result)
{
    struct weft_type shape = weft_onnx_type(e->op, term->value);
    unsigned axes[WEFT_MAX_RANK], perm[WEFT_MAX_RANK], count = 0;
    shape.rank = (uint8_t)result->rank;
    for (unsigned i = 0; i < result->rank; i++) {
        shape.extent[i] = e->extent[result->letter[i]];
        const unsigned axis = axis_of(term, result->letter[i]);
        if (axis < term->rank) {
            axes[count] = i;
            perm[count++] = axis;
        }
    }
    const weft_val moved = count > 1 ? weft_onnx_transpose(e->op, term->value, count, perm) : term->value;
    return weft_onnx_broadcast_axes(e->op, moved, &shape, count, axes);
}

void weft_onnx_import_einsum(struct onnx_op *op)
{
    const struct onnx_attribute *equation = weft_onnx_attribute(op, "equation", ONNX_STRING);
    if (!equation)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute equation is missing");
    if (op->failed)
        return;
    struct einsum e = {.op = op, .at = equation->string.data, .end = equation->string.data + equation->string.length};
    struct term *term = weft_new(op->importer->reader.arena, struct term, op->inputs), result;
    read_equation(&e, term, op->inputs, &result);
    for (unsigned t = 0; t < op->inputs && !op->failed; t++) {
        take_diagonals(op, &term[t]);
        drop_single_axes(&e, &term[t]);
    }
    for (unsigned t = 1; t < op->inputs && !op->failed; t++) {
        uint64_t needed = letters_of(&result);
        for (unsigned later = t + 1; later < op->inputs; later++)
            needed |= letters_of(&term[later]);
        multiply(&e, &term[0], &term[t], needed);
    }
    if (op->failed)
        return;
    sum_away(op, &term[0], letters_of(&result));
    if (!op->failed)
        op->output[0] = ordered(&e, &term[0], &result);
}
