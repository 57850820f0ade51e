/* SPDX-License-Identifier: Apache-2.0 */
/* dims_text.c: expressions as text.
 *
 *   expression = ["-"] product (("+" | "-") product)*
 *   product    = factor (("*" | "/" | "%") factor)*          from left to right; / rounds down, a % b = a - b*(a/b)
 *   factor     = INTEGER | SYMBOL | "(" expression ")" | "-" factor
 *              | ("min" | "max") "(" expression ("," expression)+ ")"
 *   SYMBOL     = a letter or "_", then letters, digits, "_" and "."
 *
 * Blanks may stand between tokens. A leading minus takes the whole product: -N/2 is -(N/2). What is printed parses
 * to the same word, and depends on names and structure only, so that text is stable from table to table.
 *
 * The parser descends recursively; parentheses and signs are bounded, at a depth that no printed expression reaches. */
#include "ir/dims_table.h"

#include <inttypes.h>
#include <string.h>

/* --- print -------------------------------------------------------------------------------------------------------- */

/* As an operand of / : bare where one token, else in parentheses. */
static void print_operand(const struct weft_dims *dims, weft_dim d, struct weft_text *text)
{
    uint32_t symbol;
    if ((weft_dim_is_constant(d) && weft_dim_value(d) >= 0) || weft_dim_is_symbol(dims, d, &symbol)) {
        weft_dim_print(dims, d, text);
        return;
    }
    weft_text_add(text, "(");
    weft_dim_print(dims, d, text);
    weft_text_add(text, ")");
}

static void print_atom(const struct weft_dims *dims, uint32_t id, bool alone, struct weft_text *text)
{
    const struct weft_dim_atom atom = dims->atom[id];
    if (atom.kind == WEFT_DIM_SYMBOL) {
        weft_text_add(text, dims->symbol[atom.symbol].name);
    } else if (atom.kind == WEFT_DIM_DIV) {
        weft_text_add(text, alone ? "" : "(");
        print_operand(dims, atom.argument[0], text);
        weft_text_add(text, "/");
        print_operand(dims, atom.argument[1], text);
        weft_text_add(text, alone ? "" : ")");
    } else {
        weft_text_add(text, atom.kind == WEFT_DIM_MIN ? "min(" : "max(");
        for (uint32_t i = 0; i < atom.arguments; i++) {
            weft_text_add(text, i ? ", " : "");
            weft_dim_print(dims, atom.argument[i], text);
        }
        weft_text_add(text, ")");
    }
}

void weft_dim_print(const struct weft_dims *dims, weft_dim d, struct weft_text *text)
{
    if (weft_dim_is_constant(d)) {
        weft_text_integer(text, weft_dim_value(d));
        return;
    }
    const struct weft_dim_polynomial p = *weft_dim_polynomial_of(dims, d);
    for (uint32_t t = 0; t < p.terms; t++) {
        const int64_t coefficient = p.term[t].coefficient, size = coefficient < 0 ? -coefficient : coefficient;
        const struct weft_dim_monomial monomial = dims->monomial[p.term[t].monomial];
        weft_text_add(text, coefficient < 0 ? (t ? " - " : "-") : (t ? " + " : ""));
        const bool number = size != 1 || monomial.degree == 0;
        if (number)
            weft_text_integer(text, size);
        for (uint32_t i = 0; i < monomial.degree; i++) {
            weft_text_add(text, number || i ? "*" : "");
            print_atom(dims, monomial.atom[i], /* alone= */ !number && monomial.degree == 1, text);
        }
    }
}

/* --- parse -------------------------------------------------------------------------------------------------------- */

enum { MAX_NESTING = 3 * WEFT_DIM_MAX_DEPTH + 8 };

struct parser {
    struct weft_dims *dims;
    const char *at, *end;
    const char *message; /* of the first failure */
    int nesting;
};

static bool fail(struct parser *parser, const char *at, const char *message)
{
    if (!parser->message) {
        parser->message = message;
        parser->at = at;
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_letter(c) || is_digit(c) || c == '.';
}

/* The next character that is no blank, without taking it; NUL at the end. */
static char peek(struct parser *parser)
{
    while (parser->at < parser->end && (*parser->at == ' ' || *parser->at == '\t'))
        parser->at++;
    return parser->at < parser->end ? *parser->at : '\0';
}

static bool take(struct parser *parser, char c)
{
    if (peek(parser) != c)
        return false;
    parser->at++;
    return true;
}

static bool parse_sum(struct parser *parser, weft_dim *ret);

static bool parse_number(struct parser *parser, weft_dim *ret)
{
    const char *start = parser->at;
    int64_t value = 0;
    for (; parser->at < parser->end && is_digit(*parser->at); parser->at++) {
        const int64_t digit = *parser->at - '0';
        if (value > (WEFT_DIM_LIMIT - digit) / 10)
            return fail(parser, start, "the number is too large");
        value = 10 * value + digit;
    }
    *ret = weft_dim_of(value);
    return true;
}

static bool parse_extreme(struct parser *parser, const char *start, bool minimum, weft_dim *ret)
{
    if (!parse_sum(parser, ret))
        return false;
    int operands = 1;
    for (; take(parser, ','); operands++) {
        weft_dim next;
        if (!parse_sum(parser, &next))
            return false;
        *ret = minimum ? weft_dim_min(parser->dims, *ret, next) : weft_dim_max(parser->dims, *ret, next);
    }
    if (!take(parser, ')'))
        return fail(parser, parser->at, "expected ',' or ')'");
    return operands > 1 || fail(parser, start, "min and max take two or more operands");
}

static bool parse_name(struct parser *parser, weft_dim *ret)
{
    const char *start = parser->at;
    char name[128];
    size_t length = 0;
    for (; parser->at < parser->end && is_name(*parser->at); parser->at++) {
        if (length == sizeof name - 1)
            return fail(parser, start, "the name of the symbol is too long");
        name[length++] = *parser->at;
    }
    name[length] = '\0';
    const bool minimum = strcmp(name, "min") == 0;
    if ((minimum || strcmp(name, "max") == 0) && take(parser, '('))
        return parse_extreme(parser, start, minimum, ret);
    return weft_symbol_find(parser->dims, name, ret) || fail(parser, start, "unknown symbol");
}

static bool parse_factor(struct parser *parser, weft_dim *ret)
{
    const char c = peek(parser);
    if (is_digit(c))
        return parse_number(parser, ret);
    if (c != '(' && c != '-' && !is_letter(c))
        return fail(parser, parser->at, "expected a number, a symbol or '('");
    if (++parser->nesting > MAX_NESTING)
        return fail(parser, parser->at, "the expression is nested too deeply");
    bool good;
    if (is_letter(c)) {
        good = parse_name(parser, ret);
    } else if (parser->at++, c == '-') {
        good = parse_factor(parser, ret);
        if (good)
            *ret = weft_dim_sub(parser->dims, weft_dim_of(0), *ret);
    } else {
        good = parse_sum(parser, ret) && (take(parser, ')') || fail(parser, parser->at, "expected ')'"));
    }
    parser->nesting--;
    return good;
}

static bool parse_product(struct parser *parser, weft_dim *ret)
{
    if (!parse_factor(parser, ret))
        return false;
    for (char c; (c = peek(parser)) == '*' || c == '/' || c == '%';) {
        const char *start = parser->at++;
        weft_dim right;
        if (!parse_factor(parser, &right))
            return false;
        if (c != '*' && weft_dim_is(right, 0))
            return fail(parser, start, "division by zero");
        *ret = c == '*'   ? weft_dim_mul(parser->dims, *ret, right)
               : c == '/' ? weft_dim_div(parser->dims, *ret, right)
                          : weft_dim_mod(parser->dims, *ret, right);
        if (parser->dims->refusal)
            return fail(parser, start, parser->dims->refusal);
    }
    return true;
}

static bool parse_sum(struct parser *parser, weft_dim *ret)
{
    const bool negative = take(parser, '-');
    if (!parse_product(parser, ret))
        return false;
    if (negative)
        *ret = weft_dim_sub(parser->dims, weft_dim_of(0), *ret);
    for (char c; (c = peek(parser)) == '+' || c == '-';) {
        const char *start = parser->at++;
        weft_dim right;
        if (!parse_product(parser, &right))
            return false;
        *ret = c == '+' ? weft_dim_add(parser->dims, *ret, right) : weft_dim_sub(parser->dims, *ret, right);
        if (parser->dims->refusal)
            return fail(parser, start, parser->dims->refusal);
    }
    return true;
}

bool weft_dim_parse(struct weft_dims *dims, const char **cursor, const char *end, weft_dim *ret,
                    const char **ret_message)
{
    struct parser parser = {.dims = dims, .at = *cursor, .end = end};
    weft_dims_try(dims);
    weft_dim result;
    bool good = parse_sum(&parser, &result);
    const char *refusal = weft_dims_tried(dims);
    if (good && refusal)
        good = fail(&parser, *cursor, refusal);
    *cursor = parser.at;
    if (good)
        *ret = result;
    else
        *ret_message = parser.message;
    return good;
}
