/* SPDX-License-Identifier: Apache-2.0 */
/* layout_text.c: layouts as text.
 *
 *   layout  = "{" ( "?" | "-" | axis* ["|" stride*] ["+" token] ["align=" INTEGER] ["hint" | "free"] ) "}"
 *   axis    = INTEGER (("/" | "%") INTEGER)*        a digit of the index of that logical axis, read from left to right
 *   stride  = token
 *   token   = an expression of dims_text.c without blanks outside of parentheses
 *
 *   {0 2 3 1}                                   packed, channels last
 *   {0 1/16 2 3 1%16}                           packed, channels in blocks of 16, the last block padded
 *   {0 1 | 4096 1}                              strides in elements, one per storage axis
 *   {0 1 | (N + 3) 1 +64 align=32 hint}         first element 64 elements in, aligned to 32 bytes; a wish
 *   {?}  {-}                                    not decided; kept in registers
 *
 * Storage axes run from outermost to innermost. "/ n" divides and "% n" takes the remainder: 1%32/2 is (i % 32) / 2,
 * which prints as 1/2%16. Division comes first in print, and a chain that has no such form (1%6/4) is an error. An
 * offset of 0, an alignment of 0 (unknown) and the strength "required" are not written. Words may stand without a
 * "|" before them. */
#include "ir/layout_digits.h"

#include <inttypes.h>
#include <string.h>

/* --- print -------------------------------------------------------------------------------------------------------- */

/* In parentheses if it has blanks. */
static void print_token(const struct weft_dims *dims, weft_dim d, struct weft_text *text)
{
    const size_t start = text->length;
    weft_text_add(text, "(");
    weft_dim_print(dims, d, text);
    if (memchr(text->data + start, ' ', text->length - start)) {
        weft_text_add(text, ")");
        return;
    }
    text->length--;
    memmove(text->data + start, text->data + start + 1, text->length - start + 1);
}

void weft_layout_print(struct weft_dims *dims, const struct weft_layout *layout, struct weft_text *text)
{
    if (layout->kind != WEFT_STORED) {
        weft_text_add(text, layout->kind == WEFT_UNDECIDED ? "{?}" : "{-}");
        return;
    }
    const char *gap = "{";
    for (int i = 0; i < layout->axes; i++, gap = " ") {
        const struct weft_axis *axis = &layout->axis[i];
        weft_text_format(text, "%s%d", gap, axis->axis);
        if (axis->div != 1)
            weft_text_format(text, "/%" PRId64, axis->div);
        if (axis->mod)
            weft_text_format(text, "%%%" PRId64, axis->mod);
    }
    if (!layout->dense && layout->axes) {
        weft_text_add(text, " |");
        for (int i = 0; i < layout->axes; i++) {
            weft_text_add(text, " ");
            print_token(dims, layout->stride[i], text);
        }
    }
    if (!weft_dim_is(layout->offset, 0)) {
        weft_text_format(text, "%s+", gap);
        print_token(dims, layout->offset, text);
        gap = " ";
    }
    if (layout->align) {
        weft_text_format(text, "%salign=%" PRIu32, gap, layout->align);
        gap = " ";
    }
    if (layout->strength != WEFT_REQUIRED) {
        weft_text_format(text, "%s%s", gap, layout->strength == WEFT_HINT ? "hint" : "free");
        gap = " ";
    }
    weft_text_add(text, *gap == '{' ? "{}" : "}");
}

/* --- parse -------------------------------------------------------------------------------------------------------- */

struct parser {
    struct weft_dims *dims;
    const char *at, *end;
    const char *message;
};

static bool fail(struct parser *parser, const char *at, const char *message)
{
    parser->at = at;
    parser->message = message;
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char peek(struct parser *parser)
{
    while (parser->at < parser->end && is_blank(*parser->at))
        parser->at++;
    return parser->at < parser->end ? *parser->at : '\0';
}

static char here(const struct parser *parser)
{
    return parser->at < parser->end ? *parser->at : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parse_integer(struct parser *parser, int64_t *ret)
{
    const char *start = parser->at;
    int64_t value = 0;
    if (!is_digit(here(parser)))
        return fail(parser, start, "expected a number");
    for (; is_digit(here(parser)); parser->at++) {
        value = 10 * value + (*parser->at - '0');
        if (value > INT32_MAX)
            return fail(parser, start, "the number is too large");
    }
    *ret = value;
    return true;
}

static bool apply_split(struct parser *parser, const char *start, bool divide, int64_t by, struct weft_axis *axis)
{
    if (by < 1)
        return fail(parser, start, "an axis is split by a number below 1");
    if (axis->mod && (divide ? axis->mod % by : axis->mod % by && by % axis->mod))
        return fail(parser, start, "this division does not fit the remainder before it");
    if (divide) {
        axis->div *= by;
        axis->mod /= by;
        if (axis->div > INT32_MAX)
            return fail(parser, start, "the number is too large");
    } else if (!axis->mod || by < axis->mod) {
        axis->mod = by;
    }
    return true;
}

static bool parse_axis(struct parser *parser, struct weft_layout *layout)
{
    const char *start = parser->at;
    int64_t number;
    if (!parse_integer(parser, &number))
        return false;
    if (number >= WEFT_MAX_RANK)
        return fail(parser, start, "an axis is a number from 0 to 7");
    if (layout->axes == WEFT_MAX_STORAGE)
        return fail(parser, start, "a layout has at most 16 storage axes");
    struct weft_axis axis = {.axis = (uint8_t)number, .div = 1};
    while (here(parser) == '/' || here(parser) == '%') {
        const char *split = parser->at;
        const bool divide = *parser->at++ == '/';
        if (!parse_integer(parser, &number) || !apply_split(parser, split, divide, number, &axis))
            return false;
    }
    layout->axis[layout->axes++] = axis;
    return true;
}

static bool parse_token(struct parser *parser, weft_dim *ret)
{
    const char *start = parser->at, *end = start;
    for (int depth = 0; end < parser->end && *end != '}' && *end != '\n' && (depth > 0 || !is_blank(*end)); end++)
        depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
    if (!weft_dim_parse(parser->dims, &parser->at, end, ret, &parser->message))
        return false;
    return parser->at == end || fail(parser, parser->at, "the expression has an end that is none of it");
}

static bool parse_strides(struct parser *parser, struct weft_layout *layout)
{
    for (int i = 0; i < layout->axes; i++) {
        const char c = peek(parser);
        if (c == '}' || c == '+' || c == '\0')
            return fail(parser, parser->at, "there are fewer strides than storage axes");
        if (!parse_token(parser, &layout->stride[i]))
            return false;
    }
    layout->dense = layout->axes == 0;
    return !is_digit(peek(parser)) || fail(parser, parser->at, "there are more strides than storage axes");
}

static bool take_word(struct parser *parser, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(parser->end - parser->at) < length || memcmp(parser->at, word, length) != 0)
        return false;
    parser->at += length;
    return true;
}

static bool parse_words(struct parser *parser, struct weft_layout *layout)
{
    if (peek(parser) == '+') {
        parser->at++;
        if (!parse_token(parser, &layout->offset))
            return false;
    }
    (void)peek(parser);
    if (take_word(parser, "align=")) {
        const char *start = parser->at;
        int64_t align;
        if (!parse_integer(parser, &align))
            return false;
        if (align < 1 || (align & (align - 1)) != 0)
            return fail(parser, start, "the alignment is no power of two");
        layout->align = (uint32_t)align;
    }
    (void)peek(parser);
    if (take_word(parser, "hint"))
        layout->strength = WEFT_HINT;
    else if (take_word(parser, "free"))
        layout->strength = WEFT_FREE;
    return true;
}

static bool parse_layout(struct parser *parser, struct weft_layout *layout)
{
    if (here(parser) != '{')
        return fail(parser, parser->at, "expected '{'");
    parser->at++;
    char c = peek(parser);
    if (c == '?' || c == '-') {
        layout->kind = c == '?' ? WEFT_UNDECIDED : WEFT_REGISTER;
        parser->at++;
    } else {
        for (; is_digit(c); c = peek(parser))
            if (!parse_axis(parser, layout))
                return false;
        if (c == '|') {
            parser->at++;
            if (!parse_strides(parser, layout))
                return false;
        }
        if (!parse_words(parser, layout))
            return false;
    }
    if (peek(parser) != '}')
        return fail(parser, parser->at, "expected '}' or a part of a layout");
    parser->at++;
    return true;
}

bool weft_layout_parse(struct weft_dims *dims, const char **cursor, const char *end, struct weft_layout *ret,
                       const char **ret_message)
{
    struct parser parser = {.dims = dims, .at = *cursor, .end = end};
    struct weft_layout layout = {.dense = true};
    const bool good = parse_layout(&parser, &layout);
    *cursor = parser.at;
    if (good)
        *ret = layout;
    else
        *ret_message = parser.message;
    return good;
}
