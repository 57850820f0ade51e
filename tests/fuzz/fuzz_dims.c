/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dims.c: two lines as expressions over symbols, and the laws of their algebra.
 *
 * An expression that parses prints to text that parses to the same word. For random values of the symbols within their
 * ranges it has the value that the operations written in the text give, one after the other, computed here in 128 bits
 * and without any algebra; and it lies in the range that the table states. Then for a and b:
 *
 *     a + b - b = a      a + b = b + a      a * b = b * a      min(a, b) + max(a, b) = a + b in value
 *     a * b / b = a  and  (a / b) * b + a % b = a,  where b is above 0 for all values
 *
 * Nothing is asked of values beyond WEFT_DIM_LIMIT, where constants saturate, and of expressions that were refused for
 * their size. The limit may stand for a value if a product in the printed form has more than 118 bits. A quotient is
 * cancelled although its divisor may be 0, so nothing is asked of values where one is. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

const size_t weft_fuzz_limit = 256;

enum { SYMBOLS = 4, POINTS = 8, MOST_DEPTH = 40 };
#define LOST ((wide)1 << 118) /* what no product on the way to a value may exceed: dims.h */
__extension__ typedef __int128 wide;

static const struct { const char *name; int64_t low, high; } symbol_rows[SYMBOLS] = {
    {"N", 0, 1000}, {"M", 1, 64}, {"C", 3, INT32_MAX}, {"K", 2, 7}};

/* --- plain values ------------------------------------------------------------------------------------------------- */

/* A walk over a text that is known to parse. `bad`: no value is asked for. */
struct plain {
    const char *at, *end;
    const int64_t *symbol;
    int depth;
    bool bad;
    wide limit; /* beyond it, no value is asked for */
};

static wide plain_sum(struct plain *p);

static char peek(struct plain *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t'))
        p->at++;
    return p->at < p->end ? *p->at : '\0';
}

static wide checked(struct plain *p, wide value)
{
    if (value > p->limit || value < -p->limit)
        p->bad = true;
    return p->bad ? 0 : value;
}

static wide floor_divide(struct plain *p, wide a, wide b)
{
    if (b <= 0) {
        p->bad = true;
        return 0;
    }
    return a / b - (a % b < 0);
}

static wide plain_extreme(struct plain *p, bool smallest)
{
    p->at += 3;
    p->at += peek(p) == '(';
    wide value = plain_sum(p);
    while (peek(p) == ',') {
        p->at++;
        const wide other = plain_sum(p);
        if (smallest ? other < value : other > value)
            value = other;
    }
    p->at += peek(p) == ')';
    return value;
}

static wide plain_atom(struct plain *p)
{
    const char c = peek(p);
    wide value = 0;
    if (++p->depth > MOST_DEPTH || c == '\0') {
        p->bad = true;
    } else if (c == '-') {
        p->at++;
        value = -plain_atom(p);
    } else if (c == '(') {
        p->at++;
        value = plain_sum(p);
        p->at += peek(p) == ')';
    } else if (c >= '0' && c <= '9') {
        while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
            value = checked(p, value * 10 + (*p->at++ - '0'));
    } else if (p->end - p->at > 3 && (memcmp(p->at, "min", 3) == 0 || memcmp(p->at, "max", 3) == 0)) {
        value = plain_extreme(p, p->at[1] == 'i');
    } else {
        int i = 0;
        while (i < SYMBOLS && symbol_rows[i].name[0] != c)
            i++;
        p->bad |= i == SYMBOLS;
        value = i < SYMBOLS ? p->symbol[i] : 0;
        p->at++;
    }
    p->depth--;
    return checked(p, value);
}

static wide plain_product(struct plain *p)
{
    wide value = plain_atom(p);
    for (char c = peek(p); !p->bad && (c == '*' || c == '/' || c == '%'); c = peek(p)) {
        p->at++;
        const wide other = plain_atom(p);
        const wide quotient = c == '*' ? 0 : floor_divide(p, value, other);
        wide product = 0;
        p->bad |= c == '*' && __builtin_mul_overflow(value, other, &product);
        value = checked(p, c == '*' ? product : c == '/' ? quotient : value - other * quotient);
    }
    return value;
}

static wide plain_sum(struct plain *p)
{
    const bool negative = peek(p) == '-'; /* of the whole product: -7/2 is -3 */
    p->at += negative;
    wide value = plain_product(p);
    value = negative ? -value : value;
    for (char c = peek(p); !p->bad && (c == '+' || c == '-'); c = peek(p)) {
        p->at++;
        const wide other = plain_product(p);
        value = checked(p, c == '+' ? value + other : value - other);
    }
    return value;
}

/* --- laws --------------------------------------------------------------------------------------------------------- */

struct check {
    struct weft_context *context;
    struct weft_arena arena;
    struct weft_dims *dims;
    const char *text;
    size_t size;
    uint64_t random;
    int64_t point[POINTS][SYMBOLS];
    bool asked[POINTS]; /* both lines have a value here */
    bool refused;       /* something on the way to the laws */
};

static void draw_points(struct check *c)
{
    for (int i = 0; i < POINTS; i++) {
        c->asked[i] = true;
        for (int k = 0; k < SYMBOLS; k++) {
            const int64_t low = symbol_rows[k].low, high = symbol_rows[k].high;
            const uint32_t how = weft_fuzz_draw(&c->random, 4);
            c->point[i][k] = how == 0 ? low : how == 1 ? high : low + weft_fuzz_draw(&c->random, how == 2 ? 4 : 40);
            if (c->point[i][k] > high)
                c->point[i][k] = high;
        }
    }
}

/* A line as an expression; its end may stand before the line's, where something else follows. */
static bool parse_line(struct check *c, const char *line, const char *end, weft_dim *ret, const char **ret_end)
{
    const char *message = NULL;
    *ret_end = line;
    weft_dims_try(c->dims);
    const bool parsed = weft_dim_parse(c->dims, ret_end, end, ret, &message);
    const bool refused = weft_dims_tried(c->dims) != NULL || weft_dims_saturated(c->dims);
    weft_fuzz_require(*ret_end >= line && *ret_end <= end && (parsed || message != NULL || refused));
    return parsed && !refused;
}

/* Is there a product in the printed form that has no place? Only then may the limit stand for the value. */
static bool is_lost(const struct weft_text *text, const int64_t *symbol)
{
    struct plain p = {.at = text->data, .end = text->data + text->length, .symbol = symbol, .limit = LOST};
    (void)plain_sum(&p);
    return p.bad;
}

static void check_line(struct check *c, const char *line, const char *end, weft_dim d)
{
    struct weft_text text = {.context = c->context, .arena = &c->arena};
    const char *stop;
    weft_dim again;
    int64_t low, high;
    weft_dim_print(c->dims, d, &text);
    if (parse_line(c, text.data, text.data + text.length, &again, &stop) && !weft_dim_same(d, again))
        weft_fuzz_fail("%.*s prints as %s, which is something else", (int)(end - line), line, text.data);
    weft_dim_range(c->dims, d, &low, &high);
    for (int i = 0; i < POINTS; i++) {
        struct plain p = {.at = line, .end = end, .symbol = c->point[i], .limit = WEFT_DIM_LIMIT};
        const wide want = plain_sum(&p);
        c->asked[i] &= !p.bad && p.at == end;
        if (p.bad || p.at != end)
            continue;
        const int64_t got = weft_dim_evaluate(c->dims, d, c->point[i]);
        if (got == WEFT_DIM_LIMIT && is_lost(&text, c->point[i]))
            c->asked[i] = false;
        else if (got != want || got < low || got > high)
            weft_fuzz_fail("%.*s = %s is %lld instead of %lld in [%lld, %lld] at N=%lld M=%lld C=%lld K=%lld",
                           (int)(end - line), line, text.data, (long long)got, (long long)want, (long long)low,
                           (long long)high, (long long)c->point[i][0], (long long)c->point[i][1],
                           (long long)c->point[i][2], (long long)c->point[i][3]);
    }
}

/* Was nothing refused or saturated since the laws began? Later words are made of earlier ones, so it stays so. */
static bool all_granted(struct check *c)
{
    c->refused |= weft_dims_saturated(c->dims);
    c->refused |= weft_dims_tried(c->dims) != NULL;
    weft_dims_try(c->dims);
    return !c->refused;
}

/* Both sides are words; equal unless something was refused on the way. */
static void require_equal(struct check *c, weft_dim left, weft_dim right, const char *law)
{
    if (all_granted(c) && !weft_dim_same(left, right))
        weft_fuzz_fail("%s does not hold for\n%.*s", law, (int)c->size, c->text);
}

static void check_laws(struct check *c, weft_dim a, weft_dim b)
{
    struct weft_dims *dims = c->dims;
    int64_t low, high;
    weft_dims_try(dims);
    const weft_dim sum = weft_dim_add(dims, a, b), product = weft_dim_mul(dims, a, b);
    require_equal(c, sum, weft_dim_add(dims, b, a), "a + b = b + a");
    require_equal(c, product, weft_dim_mul(dims, b, a), "a * b = b * a");
    require_equal(c, weft_dim_sub(dims, sum, b), a, "a + b - b = a");
    weft_dim_range(dims, b, &low, &high);
    if (low > 0) {
        const weft_dim whole = weft_dim_div(dims, a, b), rest = weft_dim_mod(dims, a, b);
        require_equal(c, weft_dim_add(dims, weft_dim_mul(dims, whole, b), rest), a, "a / b * b + a % b = a");
        require_equal(c, weft_dim_div(dims, product, b), a, "a * b / b = a");
        weft_dim quotient;
        if (weft_dim_divides(dims, a, b, &quotient))
            require_equal(c, weft_dim_mul(dims, quotient, b), a, "a is a multiple of b");
    }
    const weft_dim less = weft_dim_min(dims, a, b), more = weft_dim_max(dims, a, b);
    for (int i = 0; i < POINTS && all_granted(c); i++) {
        const int64_t *at = c->point[i];
        const int64_t x = weft_dim_evaluate(dims, a, at), y = weft_dim_evaluate(dims, b, at);
        const int64_t limit = WEFT_DIM_LIMIT / 4;
        if (!c->asked[i] || x < -limit || x > limit || y < -limit || y > limit)
            continue;
        if (weft_dim_evaluate(dims, less, at) != (x < y ? x : y) ||
            weft_dim_evaluate(dims, more, at) != (x > y ? x : y))
            weft_fuzz_fail("min or max is wrong for\n%.*s", (int)c->size, c->text);
    }
}

static int check_text(void *arg)
{
    struct check *c = arg;
    c->dims = weft_dims_new(&c->arena);
    for (int i = 0; i < SYMBOLS; i++)
        weft_symbol_add(c->dims, symbol_rows[i].name, symbol_rows[i].low, symbol_rows[i].high, 0);
    draw_points(c);
    const char *end = c->text + c->size, *newline = c->size ? memchr(c->text, '\n', c->size) : NULL;
    const char *second = newline ? newline + 1 : end, *a_end, *b_end;
    weft_dim a, b;
    if (!parse_line(c, c->text, newline ? newline : end, &a, &a_end))
        return WEFT_OK;
    check_line(c, c->text, a_end, a);
    if (!parse_line(c, second, end, &b, &b_end))
        return WEFT_OK;
    check_line(c, second, b_end, b);
    check_laws(c, a, b);
    return WEFT_OK;
}

void weft_fuzz_check(const uint8_t *data, size_t size)
{
    struct weft_fuzz_budget budget;
    struct check check = {.context = weft_fuzz_open(&budget), .text = (const char *)data, .size = size, .random = size};
    weft_arena_open(&check.arena, check.context);
    weft_protected(check.context, check_text, &check);
    weft_arena_close(&check.arena);
    weft_fuzz_close(check.context, &budget);
}

/* --- mutation ----------------------------------------------------------------------------------------------------- */

size_t weft_fuzz_mutate(uint8_t *data, size_t size, size_t room, uint64_t *random)
{
    static const char *const tokens[] = {"N", "M", "C", "K", "N", "M", "(", ")", "(N + 1)", " + ", " - ", "*", "/", "%",
                                         "/2", "*4", "/3", "%4", "min(", "max(", ", ", "1", "2", "3", "5", "8", "0",
                                         "4611686018427387903", "2147483647", "-", "\n", "(N - M)", "/M", "min(N, 8)",
                                         "max(C, 1)", "(N*M + K)"};
    if (weft_fuzz_draw(random, 4) == 0)
        return weft_fuzz_mutate_bytes(data, size, room, random);
    const char *token = tokens[weft_fuzz_draw(random, sizeof tokens / sizeof *tokens)];
    const size_t at = weft_fuzz_draw(random, size + 1), left = size - at;
    const size_t old = weft_fuzz_draw(random, 3) < left ? weft_fuzz_draw(random, 3) : 0;
    return weft_fuzz_splice(data, size, room, at, old < left ? old : left, token, strlen(token));
}
