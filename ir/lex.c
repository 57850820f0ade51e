/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c: the parser's walk over the text, its errors and its suggestions.
 *
 * There is no array of tokens: extents and layouts have parsers of their own which take a cursor, and a line is
 * short. Every function skips blanks first. Lines are counted on demand, from the last place that was asked for, so
 * counting is linear in the text as long as places rise, which they nearly always do. */
#include "ir/parse.h"

#include <stdio.h>
#include <string.h>

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct weft_place weft_parse_place(struct weft_parser *p, const char *at)
{
    weft_assert(at >= p->text && at <= p->end);
    if (at < p->line_start) {
        p->line_start = p->text;
        p->line = 1;
    }
    for (const char *newline; (newline = memchr(p->line_start, '\n', (size_t)(at - p->line_start))) != NULL;) {
        p->line_start = newline + 1;
        p->line++;
    }
    return (struct weft_place){
        .file = p->options->name, .line = p->line, .column = (int32_t)(at - p->line_start) + 1};
}

bool weft_parse_fail(struct weft_parser *p, const char *at, int status, const char *format, ...)
{
    if (++p->errors > WEFT_PARSE_MAX_ERRORS)
        return false;
    char message[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const struct weft_place place = weft_parse_place(p, at);
    weft_error(p->context, status, &place, "%s", message);
    return false;
}

void weft_parse_blanks(struct weft_parser *p)
{
    while (p->cursor < p->end && is_blank(*p->cursor))
        p->cursor++;
    if (p->cursor < p->end && *p->cursor == '#')
        p->cursor = weft_parse_line_end(p);
}

void weft_parse_lines(struct weft_parser *p)
{
    for (weft_parse_blanks(p); p->cursor < p->end && *p->cursor == '\n'; weft_parse_blanks(p))
        p->cursor++;
}

const char *weft_parse_line_end(const struct weft_parser *p)
{
    const char *newline = memchr(p->cursor, '\n', (size_t)(p->end - p->cursor));
    return newline ? newline : p->end;
}

bool weft_parse_take(struct weft_parser *p, char c)
{
    weft_parse_blanks(p);
    if (p->cursor == p->end || *p->cursor != c)
        return false;
    p->cursor++;
    return true;
}

bool weft_parse_expect(struct weft_parser *p, char c, const char *why)
{
    if (weft_parse_take(p, c))
        return true;
    if (p->cursor == p->end || *p->cursor == '\n')
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected '%c' %s, but the line ends", c, why);
    const char found = *p->cursor;
    if (found < ' ' || found > '~')
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected '%c' %s, not the byte 0x%02x", c, why,
                               (unsigned)(unsigned char)found);
    return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected '%c' %s, not '%c'", c, why, found);
}

struct weft_word weft_parse_peek(struct weft_parser *p)
{
    weft_parse_blanks(p);
    const char *last = p->cursor;
    if (last < p->end && is_letter(*last))
        while (last < p->end && (is_letter(*last) || is_digit(*last)))
            last++;
    return (struct weft_word){p->cursor, (size_t)(last - p->cursor)};
}

struct weft_word weft_parse_word(struct weft_parser *p)
{
    const struct weft_word word = weft_parse_peek(p);
    p->cursor += word.length;
    return word;
}

struct weft_word weft_parse_symbol(struct weft_parser *p)
{
    struct weft_word word = weft_parse_word(p);
    while (word.length > 0 && p->cursor < p->end &&
           (is_letter(*p->cursor) || is_digit(*p->cursor) || *p->cursor == '.')) {
        p->cursor++;
        word.length++;
    }
    return word;
}

bool weft_parse_is(struct weft_word word, const char *text)
{
    return strlen(text) == word.length && memcmp(word.text, text, word.length) == 0;
}

char *weft_parse_copy(struct weft_parser *p, struct weft_word word)
{
    return weft_arena_copy(&p->scratch, word.text, word.length);
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \" \\ \n \xHH; returns the byte or -1, and advances over the escape. */
static int unescape(const char **cursor, const char *end)
{
    const char *c = *cursor + 1;
    if (c == end)
        return -1;
    *cursor = c + 1;
    if (*c == '"' || *c == '\\')
        return *c;
    if (*c == 'n')
        return '\n';
    if (*c != 'x' || end - c < 3 || hex_digit(c[1]) < 0 || hex_digit(c[2]) < 0)
        return -1;
    *cursor = c + 3;
    return hex_digit(c[1]) * 16 + hex_digit(c[2]);
}

bool weft_parse_string(struct weft_parser *p, struct weft_word *ret)
{
    weft_parse_blanks(p);
    const char *open = p->cursor;
    if (p->cursor == p->end || *p->cursor != '"')
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected a text in double quotes");
    const char *end = weft_parse_line_end(p);
    char *bytes = weft_arena_new(&p->scratch, (size_t)(end - open) + 1);
    size_t length = 0;
    for (p->cursor++; p->cursor < end && *p->cursor != '"';) {
        if (*p->cursor != '\\') {
            bytes[length++] = *p->cursor++;
            continue;
        }
        const char *escape = p->cursor;
        const int byte = unescape(&p->cursor, end);
        if (byte <= 0)
            return weft_parse_fail(
                p, escape, WEFT_ERR_SYNTAX,
                "unknown escape in a quoted text: \\\" \\\\ \\n and \\xHH (lower case, not 00) are known");
        bytes[length++] = (char)byte;
    }
    if (p->cursor == end)
        return weft_parse_fail(p, open, WEFT_ERR_SYNTAX, "the quoted text is not closed on its line");
    p->cursor++;
    if (memchr(bytes, '\0', length))
        return weft_parse_fail(p, open, WEFT_ERR_SYNTAX, "a quoted text may not hold a zero byte");
    *ret = (struct weft_word){bytes, length};
    return true;
}

bool weft_parse_name(struct weft_parser *p, char sigil, struct weft_word *ret)
{
    weft_parse_blanks(p);
    const char *what = sigil == '%' ? "a value, like %x" : "a name, like @f";
    if (p->cursor == p->end || *p->cursor != sigil)
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected %s", what);
    const char *at = p->cursor++;
    if (p->cursor < p->end && *p->cursor == '"') {
        if (!weft_parse_string(p, ret))
            return false;
    } else {
        const char *first = p->cursor;
        while (p->cursor < p->end && weft_is_name_character(*p->cursor))
            p->cursor++;
        while (p->cursor > first && p->cursor[-1] == ':') /* `%x:` is a name and the colon before its type */
            p->cursor--;
        *ret = (struct weft_word){first, (size_t)(p->cursor - first)};
    }
    if (ret->length == 0)
        return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "a name is missing after '%c'", sigil);
    return true;
}

struct weft_word weft_parse_token(struct weft_parser *p)
{
    weft_parse_blanks(p);
    const char *first = p->cursor;
    while (p->cursor < p->end && *p->cursor > ' ' && *p->cursor <= '~' && !strchr("#{}[]=!\"", *p->cursor))
        p->cursor++;
    return (struct weft_word){first, (size_t)(p->cursor - first)};
}

bool weft_parse_integer(struct weft_word word, int64_t *ret)
{
    const bool negative = word.length > 0 && word.text[0] == '-';
    uint64_t value = 0;
    const uint64_t limit = (uint64_t)INT64_MAX + negative;
    for (size_t i = negative; i < word.length; i++) {
        if (!is_digit(word.text[i]))
            return false;
        const uint64_t digit = (uint64_t)(word.text[i] - '0');
        if (value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = (int64_t)(negative ? 0 - value : value);
    return word.length > negative;
}

/* The `{` that opens a block is the last thing on its line, but for a comment. */
static const char *block_start(const struct weft_parser *p, const char *line_end)
{
    const char *start = NULL;
    for (const char *c = p->cursor; c < line_end && *c != '#'; c++)
        start = *c == '{' ? c : is_blank(*c) ? start : NULL;
    return start;
}

void weft_parse_recover(struct weft_parser *p) { p->cursor = weft_parse_line_end(p); }

/* A head may run over several lines. */
bool weft_parse_recover_block(struct weft_parser *p)
{
    const char *stay = weft_parse_line_end(p);
    while (p->cursor < p->end && *p->cursor != '}') {
        const char *line_end = weft_parse_line_end(p);
        const char *start = block_start(p, line_end);
        if (start) {
            p->cursor = start + 1;
            return true;
        }
        p->cursor = line_end < p->end ? line_end + 1 : p->end;
        weft_parse_blanks(p);
    }
    p->cursor = stay;
    return false;
}
