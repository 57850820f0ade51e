/* SPDX-License-Identifier: Apache-2.0 */
/* form_parse_size.c: sizes, axes and indices in the text of a kernel form.
 *
 *   index  = ["-"] term (("+" | "-") term)* ["?"] | VALUE
 *   term   = [size "*"] AXIS | size              size: ir/dims_text.c, with sums in parentheses
 *
 * Expressions of sizes are read by the table of sizes, which is told where one ends: it knows no axes. */
#include "codegen/form_parse.h"

#include <string.h>

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

int weft_form_find_axis(const struct weft_form *form, struct weft_word word)
{
    for (uint32_t a = 0; a < form->axes; a++)
        if (weft_parse_is(word, form->axis[a].name))
            return (int)a;
    return -1;
}

bool weft_form_read_axis(struct weft_form_reader *r, unsigned *ret)
{
    const struct weft_word word = weft_parse_word(&r->lex);
    const int axis = weft_form_find_axis(r->form, word);
    if (word.length == 0)
        return weft_parse_fail(&r->lex, r->lex.cursor, WEFT_ERR_SYNTAX, "expected the name of an axis");
    if (axis < 0)
        return weft_parse_fail(&r->lex, word.text, WEFT_ERR_INVALID, "there is no axis %.*s", (int)word.length,
                               word.text);
    *ret = (unsigned)axis;
    return true;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static struct weft_word word_at(const char *at, const char *end)
{
    const char *last = at;
    if (last < end && is_letter(*last))
        while (last < end && (is_letter(*last) || is_digit(*last) || *last == '.'))
            last++;
    return (struct weft_word){at, (size_t)(last - at)};
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

/* Where the expression that begins here ends: before what can be no operand, or no operator where one is due. With
 * `term`, also before a sum's sign outside of all parentheses. */
static const char *expression_end(const char *at, const char *end, bool term)
{
    int depth = 0;
    bool operand = false; /* has one just ended? */
    const char *last = at;
    for (at = skip_blanks(at, end); at < end; at = skip_blanks(at, end)) {
        const struct weft_word word = word_at(at, end);
        if (!operand && (word.length > 0 || is_digit(*at))) {
            at += word.length;
            while (word.length == 0 && at < end && is_digit(*at))
                at++;
            operand = word.length == 0 || at == end || *skip_blanks(at, end) != '(' ||
                      !(weft_parse_is(word, "min") || weft_parse_is(word, "max"));
        } else if (!operand && (*at == '(' || *at == '-')) {
            depth += *at++ == '(';
        } else if (operand && *at == ')' && depth > 0) {
            depth--;
            at++;
        } else if (operand && ((*at == ',' && depth > 0) || memchr("*/%", *at, 3) ||
                               (memchr("+-", *at, 2) && !(term && depth == 0)))) {
            at++;
            operand = false;
        } else {
            break;
        }
        last = at;
    }
    return last;
}

/* Adds the symbols of an expression that the table does not have. An axis is no size. */
static bool add_symbols(struct weft_form_reader *r, const char *at, const char *end, bool is_index)
{
    enum { MOST_LETTERS = 127 }; /* of which ir/dims_text.c reads a name */
    int depth = 0;
    weft_dim found;
    for (struct weft_word word; at < end; at += word.length ? word.length : 1) {
        word = word_at(at, end);
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (word.length == 0 || word.length > MOST_LETTERS || weft_parse_is(word, "min") || weft_parse_is(word, "max"))
            continue;
        const char *const name = weft_arena_copy(r->arena, word.text, word.length);
        const bool known = weft_symbol_find(r->form->dims, name, &found);
        if ((!known || (is_index && depth == 0)) && weft_form_find_axis(r->form, word) >= 0)
            return weft_parse_fail(&r->lex, word.text, WEFT_ERR_INVALID,
                                   "axis %s stands where a size is expected%s", name,
                                   is_index ? "; of an axis there are sums, with factors to its left" : "");
        if (!known)
            weft_symbol_add(r->form->dims, name, 0, INT32_MAX, 0);
    }
    return true;
}

/* The whole text from `at` to `end` as a size. */
static bool read_size(struct weft_form_reader *r, const char *at, const char *end, bool is_index, weft_dim *ret)
{
    const char *message = NULL, *cursor = at;
    if (!add_symbols(r, at, end, is_index))
        return false;
    if (!weft_dim_parse(r->form->dims, &cursor, end, ret, &message))
        return weft_parse_fail(&r->lex, cursor, WEFT_ERR_SYNTAX, "%s", message);
    cursor = skip_blanks(cursor, end);
    return cursor == end ||
           weft_parse_fail(&r->lex, cursor, WEFT_ERR_SYNTAX, "the size should end before '%c'", *cursor);
}

bool weft_form_read_dim(struct weft_form_reader *r, const char *end, weft_dim *ret)
{
    weft_parse_blanks(&r->lex);
    const char *const at = r->lex.cursor, *const last = expression_end(at, end, false);
    if (last == at)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_SYNTAX, "a size is missing");
    if (!read_size(r, at, last, false, ret))
        return false;
    r->lex.cursor = last;
    return true;
}

/* --- indices ------------------------------------------------------------------------------------------------------ */

/* Adds step · axis, or to the base. Terms stay sorted by axis. */
static bool add_term(struct weft_form_reader *r, const char *at, struct weft_index *index, int axis, weft_dim step)
{
    struct weft_dims *const dims = r->form->dims;
    unsigned t = 0;
    while (axis >= 0 && t < index->terms && index->term[t].axis < axis)
        t++;
    const bool new = axis >= 0 && (t == index->terms || index->term[t].axis != axis);
    if (new && index->terms == WEFT_INDEX_TERMS)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "an index has at most %d axes", WEFT_INDEX_TERMS);
    if (new) {
        memmove(&index->term[t + 1], &index->term[t], (index->terms++ - t) * sizeof *index->term);
        index->term[t] = (struct weft_index_term){.axis = (int8_t)axis};
    }
    weft_dim *const to = axis >= 0 ? &index->term[t].step : &index->base;
    weft_dims_try(dims);
    *to = weft_dim_add(dims, *to, step);
    const char *const refusal = weft_dims_tried(dims);
    return !refusal || weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "%s", refusal);
}

/* The axis that ends the term, or -1; *ret_end is then where the factor before it ends, without its `*`. */
static int term_axis(const struct weft_form_reader *r, const char *at, const char *end, const char **ret_end)
{
    const char *first = end;
    while (first > at && (is_letter(first[-1]) || is_digit(first[-1]) || first[-1] == '.'))
        first--;
    const int axis = weft_form_find_axis(r->form, (struct weft_word){first, (size_t)(end - first)});
    while (first > at && is_blank(first[-1]))
        first--;
    if (axis < 0 || (first > at && first[-1] != '*'))
        return -1;
    *ret_end = first > at ? first - 1 : first;
    return axis;
}

static bool read_term(struct weft_form_reader *r, const char *end, bool minus, struct weft_index *index)
{
    weft_parse_blanks(&r->lex);
    const char *const at = r->lex.cursor, *const last = expression_end(at, end, true);
    const char *size_end = last;
    weft_dim size = weft_dim_of(1);
    if (last == at)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_SYNTAX, "expected an axis or a size");
    const int axis = term_axis(r, at, last, &size_end);
    if ((axis < 0 || size_end > at) && !read_size(r, at, size_end, true, &size))
        return false;
    r->lex.cursor = last;
    weft_dims_try(r->form->dims);
    size = minus ? weft_dim_sub(r->form->dims, weft_dim_of(0), size) : size;
    const char *const refusal = weft_dims_tried(r->form->dims);
    if (refusal)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "%s", refusal);
    return add_term(r, at, index, axis, size);
}

/* "floor(": no axis can be called with a parenthesis behind it. */
static bool takes_floor(struct weft_form_reader *r)
{
    const char *const before = r->lex.cursor;
    if (weft_parse_is(weft_parse_peek(&r->lex), "floor")) {
        weft_parse_word(&r->lex);
        if (weft_parse_take(&r->lex, '('))
            return true;
        r->lex.cursor = before;
    }
    return false;
}

/* ", 2)" */
static bool read_divisor(struct weft_form_reader *r, const char *end, struct weft_index *index)
{
    weft_dim by;
    if (!weft_parse_expect(&r->lex, ',', "before what an index is divided by"))
        return false;
    weft_parse_blanks(&r->lex);
    const char *const at = r->lex.cursor;
    if (!weft_form_read_dim(r, end, &by))
        return false;
    if (!weft_dim_is_constant(by) || weft_dim_value(by) < 2)
        return weft_parse_fail(&r->lex, at, WEFT_ERR_INVALID, "an index is divided by a whole number from 2 on");
    index->over = weft_dim_value(by);
    return weft_parse_expect(&r->lex, ')', "behind what an index is divided by");
}

static bool read_index(struct weft_form_reader *r, struct weft_form_op *op, const char *end, struct weft_index *index)
{
    weft_parse_blanks(&r->lex);
    if (r->lex.cursor < end && *r->lex.cursor == '%') {
        index->data = (uint8_t)(op->ins + 1);
        return weft_form_read_operand(r, op);
    }
    const bool divided = takes_floor(r);
    bool minus = weft_parse_take(&r->lex, '-');
    do {
        if (!read_term(r, end, minus, index))
            return false;
        minus = weft_parse_take(&r->lex, '-');
    } while (minus || weft_parse_take(&r->lex, '+'));
    if (divided && !read_divisor(r, end, index))
        return false;
    index->border = weft_parse_take(&r->lex, '?') ? WEFT_BORDER_SKIPPED : WEFT_BORDER_NONE;
    unsigned kept = 0;
    for (unsigned t = 0; t < index->terms; t++)
        if (!weft_dim_is(index->term[t].step, 0))
            index->term[kept++] = index->term[t];
    index->terms = (uint8_t)kept;
    return true;
}

bool weft_form_read_map(struct weft_form_reader *r, struct weft_form_op *op, struct weft_index_map *ret)
{
    *ret = (struct weft_index_map){0};
    if (!weft_parse_expect(&r->lex, '[', "before an index"))
        return false;
    const char *const end = weft_parse_line_end(&r->lex);
    while (!weft_parse_take(&r->lex, ']')) {
        if (ret->rank > 0 && !weft_parse_expect(&r->lex, ',', "or ']' after an index"))
            return false;
        if (ret->rank == WEFT_MAX_RANK)
            return weft_parse_fail(&r->lex, r->lex.cursor, WEFT_ERR_INVALID, "an array has at most %d axes",
                                   WEFT_MAX_RANK);
        if (!read_index(r, op, end, &ret->at[ret->rank]))
            return false;
        ret->rank++;
    }
    return true;
}
