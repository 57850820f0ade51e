/* SPDX-License-Identifier: Apache-2.0 */
/* parse_symbol.c: the symbols that a graph's head declares: a range, a hint, or a bound for a size that comes out of
 * data. */
#include "ir/parse.h"

/* A number without a sign; false and nothing taken if there is none. */
bool weft_parse_number(struct weft_parser *p, int64_t *ret)
{
    const char *first = p->cursor;
    while (p->cursor < p->end && *p->cursor >= '0' && *p->cursor <= '9')
        p->cursor++;
    return weft_parse_integer((struct weft_word){first, (size_t)(p->cursor - first)}, ret);
}

/* 1..64 or 1.. */
static bool parse_range(struct weft_parser *p, int64_t *low, int64_t *high)
{
    weft_parse_blanks(p);
    const char *at = p->cursor;
    bool right = weft_parse_number(p, low) && p->end - p->cursor > 2 && p->cursor[0] == '.' && p->cursor[1] == '.';
    if (right) {
        p->cursor += 2;
        if (*p->cursor >= '0' && *p->cursor <= '9')
            right = weft_parse_number(p, high);
    }
    if (right && *low <= *high && *high <= INT32_MAX)
        return true;
    return weft_parse_fail(p, at, WEFT_ERR_INVALID, "expected a range low..high or low.. with low <= high <= %d",
                           INT32_MAX);
}

/* K=data(2*N): computed by a node, at most 2*N. */
static bool parse_bound(struct weft_parser *p, struct weft_word name)
{
    weft_parse_word(p);
    weft_dim bound;
    if (!weft_parse_expect(p, '(', "after data") || !weft_parse_extent(p, p->end, &bound) ||
        !weft_parse_expect(p, ')', "after the bound of a symbol"))
        return false;
    int64_t low, high;
    weft_dim_range(p->root->dims, bound, &low, &high);
    if (low < 0)
        return weft_parse_fail(p, name.text, WEFT_ERR_INVALID, "the bound of symbol '%.*s' may be below 0",
                               (int)name.length, name.text);
    weft_symbol_add_data(p->root->dims, weft_parse_copy(p, name), bound);
    return true;
}

/* N=1..64 hint=8 */
bool weft_parse_symbol_head(struct weft_parser *p)
{
    const struct weft_word name = weft_parse_symbol(p);
    int64_t low = 0, high = INT32_MAX, hint = 0;
    weft_dim found;
    if (name.length == 0)
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected a symbol, like N=1..64 hint=8");
    if (weft_parse_is(name, "min") || weft_parse_is(name, "max"))
        return weft_parse_fail(p, name.text, WEFT_ERR_INVALID, "%.*s is a function and cannot be a symbol",
                               (int)name.length, name.text);
    if (weft_symbol_find(p->root->dims, weft_parse_copy(p, name), &found))
        return weft_parse_fail(p, name.text, WEFT_ERR_INVALID, "symbol '%.*s' is declared twice", (int)name.length,
                               name.text);
    if (weft_parse_take(p, '=')) {
        if (weft_parse_is(weft_parse_peek(p), "data"))
            return parse_bound(p, name);
        if (!parse_range(p, &low, &high))
            return false;
    }
    if (weft_parse_is(weft_parse_peek(p), "hint")) {
        weft_parse_word(p);
        if (!weft_parse_expect(p, '=', "after hint"))
            return false;
        weft_parse_blanks(p);
        const char *at = p->cursor;
        if (!weft_parse_number(p, &hint) || hint < low || hint > high || hint == 0)
            return weft_parse_fail(p, at, WEFT_ERR_INVALID, "the hint must be a number in the symbol's range, above 0");
    }
    weft_symbol_add(p->root->dims, weft_arena_copy(p->root->arena, name.text, name.length), low, high, hint);
    return true;
}
