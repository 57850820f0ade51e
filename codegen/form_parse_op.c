/* SPDX-License-Identifier: Apache-2.0 */
/* form_parse_op.c: instructions in the text of a kernel form. The axes of a value are not written: they follow from
 * what it is made of (weft_form_value_axes). */
#include "codegen/form_parse.h"

#include <string.h>

bool weft_form_read_dtype(struct weft_form_reader *r, uint8_t *ret)
{
    const struct weft_word word = weft_parse_word(&r->lex);
    char name[16] = "";
    if (word.length < sizeof name)
        memcpy(name, word.text, word.length);
    *ret = (uint8_t)weft_dtype_from_name(name);
    return *ret || weft_parse_fail(&r->lex, word.text, WEFT_ERR_INVALID, "no element type is called '%.*s'",
                                   (int)word.length, word.text);
}

bool weft_form_read_over(struct weft_form_reader *r, uint16_t *ret)
{
    *ret = 0;
    if (!weft_parse_is(weft_parse_peek(&r->lex), "over"))
        return true;
    weft_parse_word(&r->lex);
    do {
        weft_parse_blanks(&r->lex);
        const char *const at = r->lex.cursor;
        unsigned axis;
        if (!weft_form_read_axis(r, &axis))
            return false;
        if (*ret >> axis & 1)
            return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "axis %s stands there twice",
                                   r->form->axis[axis].name);
        *ret |= (uint16_t)(1u << axis);
    } while (weft_parse_take(&r->lex, ','));
    return true;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static struct weft_word take_number(struct weft_parser *p)
{
    weft_parse_blanks(p);
    const char *const first = p->cursor;
    while (p->cursor < p->end &&
           (memchr("+-.", *p->cursor, 3) || (*p->cursor >= '0' && *p->cursor <= '9') ||
            (*p->cursor >= 'a' && *p->cursor <= 'z') || (*p->cursor >= 'A' && *p->cursor <= 'Z')))
        p->cursor++;
    return (struct weft_word){first, (size_t)(p->cursor - first)};
}

static bool read_real(struct weft_form_reader *r, double *ret)
{
    const struct weft_word word = take_number(&r->lex);
    return weft_read_real(word, ret) || weft_parse_fail(&r->lex, word.text, WEFT_ERR_SYNTAX, "'%.*s' is no number",
                                                        (int)word.length, word.text);
}

/* As an element of the op's type: of floats, the nearest there is. */
static bool read_number(struct weft_form_reader *r, struct weft_form_op *op)
{
    uint64_t element = 0;
    weft_parse_blanks(&r->lex);
    if (weft_dtype_is_float(op->dtype)) {
        if (!read_real(r, &op->number))
            return false;
        weft_store_real(op->dtype, &element, 0, op->number);
        op->number = weft_load_real(op->dtype, &element, 0);
        return true;
    }
    const struct weft_word word = take_number(&r->lex);
    if (!weft_parse_integer(word, &op->integer))
        return weft_parse_fail(&r->lex, word.text, WEFT_ERR_SYNTAX, "'%.*s' is no whole number", (int)word.length,
                               word.text);
    weft_store_integer(op->dtype, &element, 0, op->integer);
    return weft_load_integer(op->dtype, &element, 0) == op->integer ||
           weft_parse_fail(&r->lex, word.text, WEFT_ERR_INVALID, "%.*s is no element of %s", (int)word.length,
                           word.text, weft_dtype_name(op->dtype));
}

/* --- what instructions name --------------------------------------------------------------------------------------- */

bool weft_form_read_operand(struct weft_form_reader *r, struct weft_form_op *op)
{
    struct weft_word name;
    weft_parse_blanks(&r->lex);
    const char *const at = r->lex.cursor;
    if (!weft_parse_name(&r->lex, '%', &name))
        return false;
    const uint32_t number = weft_parse_names_find(&r->values, name);
    if (!number)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "no value %%%.*s is made above this line",
                               (int)name.length, name.text);
    if (op->ins == WEFT_FORM_INS)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "an instruction reads at most %d values", WEFT_FORM_INS);
    op->in[op->ins++] = number - 1;
    return true;
}

static bool read_operands(struct weft_form_reader *r, struct weft_form_op *op)
{
    do {
        if (!weft_form_read_operand(r, op))
            return false;
    } while (weft_parse_take(&r->lex, ','));
    return true;
}

/* %x[…]; the map is the form's from then on. */
static bool read_access(struct weft_form_reader *r, struct weft_form_op *op)
{
    struct weft_word name;
    struct weft_index_map map;
    weft_parse_blanks(&r->lex);
    const char *const at = r->lex.cursor;
    if (!weft_parse_name(&r->lex, '%', &name))
        return false;
    const uint32_t number = weft_parse_names_find(&r->arrays, name);
    if (!number)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "the kernel has no array %%%.*s", (int)name.length,
                               name.text);
    if (!weft_form_read_map(r, op, &map))
        return false;
    if (map.rank != r->form->array[number - 1].rank)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "array %%%.*s has %d axes, not %d", (int)name.length,
                               name.text, r->form->array[number - 1].rank, map.rank);
    op->array = number - 1;
    op->map = weft_form_add_map(r->form, 0, NULL);
    r->form->map[op->map] = map;
    return true;
}

/* --- what stands right of = --------------------------------------------------------------------------------------- */

static bool read_load(struct weft_form_reader *r, struct weft_form_op *op)
{
    op->kind = WEFT_FORM_LOAD;
    if (!read_access(r, op))
        return false;
    if (!weft_parse_is(weft_parse_peek(&r->lex), "else"))
        return true;
    weft_parse_word(&r->lex);
    weft_parse_blanks(&r->lex);
    op->falls_back = r->lex.cursor < r->lex.end && *r->lex.cursor == '%';
    return op->falls_back ? weft_form_read_operand(r, op) : read_number(r, op);
}

static bool read_fold(struct weft_form_reader *r, struct weft_form_op *op, bool scan)
{
    struct weft_word word = weft_parse_word(&r->lex);
    op->kind = scan ? WEFT_FORM_SCAN : WEFT_FORM_FOLD;
    for (bool flag = scan; flag;) {
        const bool exclusive = weft_parse_is(word, "exclusive"), reverse = weft_parse_is(word, "reverse");
        flag = exclusive || reverse;
        op->exclusive |= exclusive;
        op->reverse |= reverse;
        word = flag ? weft_parse_word(&r->lex) : word;
    }
    while (op->fold < WEFT_FORM_FOLDS && !weft_parse_is(word, weft_form_fold_words[op->fold]))
        op->fold++;
    if (op->fold == WEFT_FORM_FOLDS)
        return weft_parse_fail(&r->lex, word.text, WEFT_ERR_INVALID,
                               "'%.*s' is no fold: sum, mean, prod, reduce_max, reduce_min", (int)word.length,
                               word.text);
    return weft_form_read_operand(r, op) && weft_form_read_over(r, &op->over);
}

static bool read_map_op(struct weft_form_reader *r, struct weft_form_op *op, struct weft_word word)
{
    unsigned params = 0, least;
    op->kind = WEFT_FORM_MAP;
    op->word = weft_arena_copy(r->arena, word.text, word.length);
    const unsigned most = weft_form_params(op->word, &least);
    if (weft_parse_take(&r->lex, '(')) {
        do {
            double extra;
            if (!read_real(r, params < 2 ? &op->param[params] : &extra))
                return false;
            params++;
        } while (weft_parse_take(&r->lex, ','));
        if (!weft_parse_expect(&r->lex, ')', "after the numbers of an op"))
            return false;
    }
    if (params < least || params > most)
        return weft_parse_fail(&r->lex, word.text, WEFT_ERR_INVALID, "%s takes %u numbers in parentheses, not %u",
                               op->word, params < least ? least : most, params);
    return read_operands(r, op);
}

static bool read_right(struct weft_form_reader *r, struct weft_form_op *op)
{
    const struct weft_word word = weft_parse_symbol(&r->lex);
    if (word.length == 0)
        return weft_parse_fail(&r->lex, r->lex.cursor, WEFT_ERR_SYNTAX, "expected an op after '='");
    if (weft_parse_is(word, "load"))
        return read_load(r, op);
    if (weft_parse_is(word, "fold") || weft_parse_is(word, "scan"))
        return read_fold(r, op, weft_parse_is(word, "scan"));
    if (weft_parse_is(word, "const")) {
        op->kind = WEFT_FORM_CONST;
        return read_number(r, op);
    }
    if (weft_parse_is(word, "contract")) {
        op->kind = WEFT_FORM_CONTRACT;
        return read_operands(r, op) && weft_form_read_over(r, &op->over);
    }
    return read_map_op(r, op, word);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* %v: f32 = …, or what stands behind `carry`: %v: f32 over r = -inf */
static bool read_value(struct weft_form_reader *r, struct weft_form_op *op)
{
    struct weft_word name;
    weft_parse_blanks(&r->lex);
    const char *const at = r->lex.cursor;
    const bool carry = op->kind == WEFT_FORM_CARRY;
    if (!weft_parse_name(&r->lex, '%', &name))
        return false;
    op->name = weft_arena_copy(r->arena, name.text, name.length);
    if (weft_parse_names_find(&r->values, name))
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "there is a value %%%s already", op->name);
    if (!weft_parse_expect(&r->lex, ':', "after the name of a value") || !weft_form_read_dtype(r, &op->dtype) ||
        (carry && !weft_form_read_over(r, &op->axes)) ||
        !weft_parse_expect(&r->lex, '=', carry ? "before the number that it starts with" : "after a type"))
        return false;
    return carry ? read_number(r, op) : read_right(r, op);
}

static bool read_store(struct weft_form_reader *r, struct weft_form_op *op)
{
    op->kind = WEFT_FORM_STORE;
    return read_access(r, op) && weft_parse_expect(&r->lex, ',', "between the array and the value") &&
           weft_form_read_operand(r, op);
}

static bool read_next(struct weft_form_reader *r, struct weft_form_op *op)
{
    op->kind = WEFT_FORM_NEXT;
    return weft_form_read_operand(r, op) && weft_parse_expect(&r->lex, ',', "between the carried value and its next") &&
           weft_form_read_operand(r, op);
}

bool weft_form_read_op(struct weft_form_reader *r, const struct weft_form_stage *stage)
{
    struct weft_form_op op = {0};
    weft_parse_blanks(&r->lex);
    const char *const at = r->lex.cursor;
    const struct weft_word word = weft_parse_word(&r->lex);
    const bool carry = weft_parse_is(word, "carry"), store = weft_parse_is(word, "store");
    op.kind = carry ? WEFT_FORM_CARRY : op.kind;
    if (word.length > 0 && !carry && !store && !weft_parse_is(word, "next"))
        return weft_parse_fail(&r->lex, at, WEFT_ERR_SYNTAX,
                               "expected a line that begins with %%value:, carry, store, next or }");
    if (!(word.length == 0 || carry ? read_value(r, &op) : store ? read_store(r, &op) : read_next(r, &op)))
        return false;
    op.axes = weft_form_value_axes(r->form, &op, stage->axes);
    if (!weft_form_has_value(&op))
        op.dtype = r->form->op[op.in[op.ins - 1]].dtype;
    const uint32_t id = weft_form_add_op(r->form, op);
    r->op_line = weft_grow(&r->lex.scratch, r->op_line, &r->op_lines, id + 1, sizeof *r->op_line);
    r->op_line[id] = weft_parse_place(&r->lex, at).line;
    if (op.name)
        weft_parse_names_add(&r->lex.scratch, &r->values, op.name, id + 1);
    return true;
}
