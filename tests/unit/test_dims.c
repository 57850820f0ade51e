/* SPDX-License-Identifier: Apache-2.0 */
/* test_dims.c: extents. Canonical forms by example; then random expressions, whose value for random symbols must equal
 * the value of the same operations on integers, lie in the range that the table states, and survive print and parse. */
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static weft_dim symbol_n, symbol_m, symbol_c;

static void add_symbols(struct fixture *f)
{
    symbol_n = weft_symbol_add(f->dims, "N", 0, 1000, 0);
    symbol_m = weft_symbol_add(f->dims, "M", 1, 64, 7);
    symbol_c = weft_symbol_add(f->dims, "C", 3, 3000, 0);
}

static weft_dim parse(struct fixture *f, const char *text)
{
    const char *cursor = text, *message = NULL;
    weft_dim d = {0};
    if (!weft_dim_parse(f->dims, &cursor, text + strlen(text), &d, &message))
        fail_msg("%s: %s at %s", text, message, cursor);
    if (*cursor)
        fail_msg("%s: stopped at %s", text, cursor);
    return d;
}

static const char *print(struct fixture *f, weft_dim d)
{
    struct weft_text text = {.context = f->context};
    weft_dim_print(f->dims, d, &text);
    return fixture_text(f, &text);
}

/* --- canonical forms ---------------------------------------------------------------------------------------------- */

static const char *const canonical_cases[][2] = {
    {"7", "7"},
    {"-7/2", "-3"},
    {"(0-7)/2", "-4"},
    {"7%3", "1"},
    {"(0-7)%3", "2"},
    {"N + N", "2*N"},
    {"N - N", "0"},
    {"(N + 1)*(N - 1)", "N*N - 1"},
    {"M*N - N*M + 3", "3"},
    {"(2*N + 2)/2", "N + 1"},
    {"(N*9*224*224)/(9*224*224)", "N"},
    {"N*C/N", "C"},
    {"(N*C*M)/(C*M)", "N"},
    {"(N - 1)/2", "(N + 1)/2 - 1"},
    {"(N + 2*1 - 3)/2 + 1", "(N + 1)/2"},
    {"(5*N + 3)/2", "2*N + (N + 1)/2 + 1"},
    {"-N/2", "-N/2"},
    {"(-N)/2", "-N + N/2"},
    {"(N/2)/3", "N/6"},
    {"(N/2 + 1)/2", "(N + 2)/4"},
    {"(4*N + 3)/8", "N/2"},
    {"(6*N + 4)/(3*4)", "N/2"},
    {"(2*N*M)/(4*N)", "M/2"},
    {"(N*N - 1)/(N + 1)", "N - 1"},
    {"M/(M + 1)", "0"},
    {"(M - 1)/M", "0"},
    {"(C + M - 1)/M", "(C - 1)/M + 1"},
    {"N % 4", "N - 4*(N/4)"},
    {"(N % 4)/4", "0"},
    {"(N*4 + M % 4)/4", "N"},
    {"8*N % 4", "0"},
    {"min(N, 2000)", "N"},
    {"min(N, 0)", "0"},
    {"max(N, 1)", "max(N, 1)"},
    {"max(C, 1)", "C"},
    {"min(N, N + 1)", "N"},
    {"min(N + 3, min(8, M + 3))", "min(M, N, 5) + 3"},
    {"min(2*N, 8)", "2*min(N, 4)"},
    {"2*min(N, 4) - min(8, N + N)", "0"},
    {"min(max(N, 0), 1000)", "N"},
    {"max(N, M, N, 3)", "max(M, N, 3)"},
    {"-max(N, M) + max(M, N)", "0"},
    {"- 3 * -N", "3*N"},
    {"2*-3", "-6"},
    {"((((N))))", "N"},
    {"N*N*N", "N*N*N"},
    {"N + min(N, 1) - min(N + min(N, 1), 1)", "N"},
    {"min(min(N, 5) + min(N, 3), 6)", "2*min(N, 3)"},
    {"min(2*min(N, 3), N + 1)", "min(N + 1, 2*N, 6)"},
    {"max(min(N, 8), min(N, 4))", "min(N, 8)"},
    {"min(max(N, 4), 8)", "min(max(N, 4), 8)"},
    {"max(5 - min(N, 5), 0)", "max(-N + 5, 0)"},
    {"(N/3)*(N/3)", "(N/3)*(N/3)"},
    {"2*(N/3)", "2*(N/3)"},
};

static void check_canonical(struct fixture *f)
{
    for (size_t i = 0; i < sizeof canonical_cases / sizeof *canonical_cases; i++) {
        const weft_dim d = parse(f, canonical_cases[i][0]), expected = parse(f, canonical_cases[i][1]);
        const char *text = print(f, d);
        if (!weft_dim_same(d, expected) || !weft_dim_same(parse(f, text), d))
            fail_msg("%s became %s, not %s", canonical_cases[i][0], text, canonical_cases[i][1]);
        assert_string_equal(text, canonical_cases[i][1]);
    }
}

/* Of numbers, also of those for which no sum of two is a number. */
static void check_quotients(struct weft_dims *dims)
{
    static const int64_t exact[][3] = {{12, 3, 4},  {-12, 3, -4}, {12, -3, -4}, {0, 5, 0},
                                       {7, 7, 1},   {7, -7, -1},  {9, 1, 9},    {WEFT_DIM_LIMIT, 1, WEFT_DIM_LIMIT}};
    static const int64_t uneven[][2] = {{13, 3}, {-13, 3}, {13, -3}, {2, 3}, {-2, 3}, {WEFT_DIM_LIMIT, 2}};
    weft_dim q;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        assert_true(weft_dim_divides(dims, weft_dim_of(exact[i][0]), weft_dim_of(exact[i][1]), &q));
        assert_true(weft_dim_is(q, exact[i][2]));
    }
    for (size_t i = 0; i < sizeof uneven / sizeof *uneven; i++)
        assert_false(weft_dim_divides(dims, weft_dim_of(uneven[i][0]), weft_dim_of(uneven[i][1]), &q));
    assert_int_equal(weft_dim_hint(dims, weft_dim_of(-5)), -5);
    assert_int_equal(weft_dim_hint(dims, weft_dim_of(WEFT_DIM_LIMIT)), WEFT_DIM_LIMIT);
}

static void check_helpers(struct fixture *f)
{
    struct weft_dims *dims = f->dims;
    const weft_dim two = weft_dim_of(2), three = weft_dim_of(3);
    weft_dim q = weft_dim_of(77);
    assert_true(weft_dim_same(weft_dim_ceil_div(dims, symbol_n, two), parse(f, "(N + 1)/2")));
    assert_true(weft_dim_same(weft_dim_ceil_div(dims, weft_dim_mul(dims, symbol_n, symbol_m), symbol_m), symbol_n));
    assert_true(weft_dim_is(weft_dim_ceil_div(dims, weft_dim_of(7), three), 3));
    assert_true(weft_dim_is(weft_dim_ceil_div(dims, weft_dim_of(-7), three), -2));
    assert_true(weft_dim_divides(dims, parse(f, "6*N*M + 3*M"), parse(f, "3*M"), &q));
    assert_true(weft_dim_same(q, parse(f, "2*N + 1")));
    assert_false(weft_dim_divides(dims, symbol_n, two, &q));
    assert_false(weft_dim_divides(dims, two, symbol_n, &q));
    assert_false(weft_dim_divides(dims, symbol_n, weft_dim_of(0), &q));
    assert_true(weft_dim_divides(dims, weft_dim_of(0), symbol_n, &q));
    assert_true(weft_dim_is(q, 0));
    check_quotients(dims);
    uint32_t symbol = 99;
    assert_true(weft_dim_is_symbol(dims, symbol_m, &symbol));
    assert_int_equal(symbol, 1);
    assert_false(weft_dim_is_symbol(dims, parse(f, "2*M"), &symbol));
    assert_false(weft_dim_is_symbol(dims, parse(f, "M + 1"), &symbol));
    assert_false(weft_dim_is_symbol(dims, parse(f, "M/2"), &symbol));
    assert_false(weft_dim_is_symbol(dims, two, &symbol));
    assert_int_equal(weft_dim_hint(dims, parse(f, "10*M + N + C")), 70 + 1 + 3);
    int64_t low, high;
    weft_dim_range(dims, parse(f, "(N + 3) % 4"), &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 3);
    const weft_dim huge = weft_dim_of(((int64_t)1 << 62) - 1);
    assert_true(weft_dim_same(weft_dim_add(dims, huge, huge), huge));
    assert_true(weft_dim_same(weft_dim_mul(dims, huge, huge), huge));
    assert_int_equal(weft_symbol_count(dims), 3);
    assert_string_equal(weft_symbol_at(dims, 2)->name, "C");
}

static void check_narrowing(struct fixture *f)
{
    const weft_dim smaller = parse(f, "min(N, 16)"), quotient = parse(f, "N/16");
    assert_true(weft_dim_same(weft_symbol_add(f->dims, "N", 20, 5000, 40), symbol_n));
    assert_int_equal(weft_symbol_at(f->dims, 0)->low, 20);
    assert_int_equal(weft_symbol_at(f->dims, 0)->high, 1000);
    assert_int_equal(weft_dim_hint(f->dims, symbol_n), 40);
    assert_true(weft_dim_same(parse(f, "min(N, 16)"), smaller));
    int64_t low, high;
    weft_dim_range(f->dims, smaller, &low, &high);
    assert_int_equal(low, 16);
    assert_int_equal(high, 16);
    weft_dim_range(f->dims, quotient, &low, &high);
    assert_int_equal(low, 1);
    assert_int_equal(high, 62);
    assert_true(weft_dim_is(parse(f, "min(N, 18)"), 18));
}

static void check_clone(struct fixture *f)
{
    const weft_dim d = parse(f, "min(N/3, M*C) + 2*N*M"), product = parse(f, "M*N");
    struct weft_dims *copy = weft_dims_clone(f->arena, f->dims);
    struct fixture other = {.context = f->context, .arena = f->arena, .dims = copy};
    assert_string_equal(print(f, d), print(&other, d));
    const weft_dim fresh = weft_symbol_add(copy, "Z", 0, 9, 0);
    assert_int_equal(weft_symbol_count(copy), 4);
    assert_int_equal(weft_symbol_count(f->dims), 3);
    const weft_dim a = weft_dim_add(copy, fresh, weft_dim_of(1)), b = weft_dim_add(copy, weft_dim_of(1), fresh);
    assert_true(weft_dim_same(a, b));
    assert_true(weft_dim_same(weft_dim_mul(copy, symbol_n, symbol_m), product));
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    int column;
    const char *message;
} bad_cases[] = {
    {"", 0, "expected a number, a symbol or '('"},
    {"N +", 3, "expected a number, a symbol or '('"},
    {"N * X", 4, "unknown symbol"},
    {"(N + 1", 6, "expected ')'"},
    {"N / 0", 2, "division by zero"},
    {"N % (M - M)", 2, "division by zero"},
    {"min(N)", 0, "min and max take two or more operands"},
    {"max(N; 2)", 5, "expected ',' or ')'"},
    {"99999999999999999999", 0, "the number is too large"},
};

static void check_refusals(struct fixture *f)
{
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const char *text = bad_cases[i].text, *cursor = text, *message = NULL;
        weft_dim d = weft_dim_of(5);
        assert_false(weft_dim_parse(f->dims, &cursor, text + strlen(text), &d, &message));
        assert_true(weft_dim_is(d, 5));
        assert_string_equal(message, bad_cases[i].message);
        assert_int_equal(cursor - text, bad_cases[i].column);
    }
    static char deep[100000];
    static const char opener[] = {'(', '-'};
    for (size_t i = 0; i < sizeof opener; i++) {
        memset(deep, opener[i], sizeof deep);
        const char *cursor = deep, *message = NULL;
        weft_dim d;
        assert_false(weft_dim_parse(f->dims, &cursor, deep + sizeof deep, &d, &message));
        assert_string_equal(message, "the expression is nested too deeply");
    }
    /* (N + M + C)(N + M + C)… has more and more terms; C/(C/(C/…)) is deeper and deeper. */
    char wide[2000] = "(N + M + C)";
    for (int i = 0; i < 100; i++)
        strcat(wide, "*(N + M + C)");
    const char *cursor = wide, *message = NULL;
    weft_dim d;
    assert_false(weft_dim_parse(f->dims, &cursor, wide + strlen(wide), &d, &message));
    assert_string_equal(message, "the expression of an extent is too long");
}

static void nest_until_refused(struct fixture *f)
{
    weft_dim d = symbol_c;
    for (int i = 0; i < 100; i++) /* each step keeps a division of its own inside */
        d = weft_dim_div(f->dims, weft_dim_add(f->dims, weft_dim_add(f->dims, d, d), symbol_n), weft_dim_of(3));
}

/* --- random expressions ------------------------------------------------------------------------------------------- */

enum { VALUES = 8, POOL = 400 };

static uint64_t random_state;
static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static bool apply(struct fixture *f, int op, weft_dim a, weft_dim b, const int64_t *x, const int64_t *y, weft_dim *ret,
                  int64_t *value)
{
    for (int v = 0; v < VALUES; v++) {
        if ((op == 3 || op == 4 || op == 7) && y[v] == 0)
            return false;
        if (x[v] > 1000000000 || x[v] < -1000000000 || y[v] > 1000000000 || y[v] < -1000000000)
            return false;
        const int64_t q = y[v] ? floor_div(x[v], y[v]) : 0;
        const int64_t results[] = {x[v] + y[v], x[v] - y[v], x[v] * y[v], q, x[v] - y[v] * q, x[v] < y[v] ? x[v] : y[v],
                                   x[v] > y[v] ? x[v] : y[v], y[v] ? -floor_div(-x[v], y[v]) : 0};
        value[v] = results[op];
    }
    weft_dim (*const functions[])(struct weft_dims *, weft_dim, weft_dim) = {
        weft_dim_add, weft_dim_sub, weft_dim_mul, weft_dim_div,
        weft_dim_mod, weft_dim_min, weft_dim_max, weft_dim_ceil_div};
    *ret = functions[op](f->dims, a, b);
    return true;
}

static void check_one(struct fixture *f, weft_dim d, const int64_t *value, int64_t symbols[VALUES][3])
{
    int64_t low, high;
    weft_dim_range(f->dims, d, &low, &high);
    for (int v = 0; v < VALUES; v++) {
        if (weft_dim_evaluate(f->dims, d, symbols[v]) != value[v])
            fail_msg("%s is %ld, not %ld, for N=%ld M=%ld C=%ld", print(f, d),
                     (long)weft_dim_evaluate(f->dims, d, symbols[v]), (long)value[v], (long)symbols[v][0],
                     (long)symbols[v][1], (long)symbols[v][2]);
        if (value[v] < low || value[v] > high)
            fail_msg("%s is %ld, outside of [%ld, %ld]", print(f, d), (long)value[v], (long)low, (long)high);
    }
    const char *text = print(f, d);
    if (!weft_dim_same(parse(f, text), d))
        fail_msg("%s parses to %s", text, print(f, parse(f, text)));
    /* A table with another history prints the same text. */
    struct fixture other = {.context = f->context, .arena = f->arena, .dims = weft_dims_new(f->arena)};
    (void)weft_symbol_add(other.dims, "C", 3, 3000, 0);
    (void)weft_symbol_add(other.dims, "M", 1, 64, 0);
    (void)weft_symbol_add(other.dims, "N", 0, 1000, 0);
    assert_string_equal(print(&other, parse(&other, text)), text);
}

static void check_random(struct fixture *f)
{
    static weft_dim pool[POOL];
    static int64_t value[POOL][VALUES];
    for (int round = 0; round < 12; round++) {
        random_state = 88172645463325252u + (uint64_t)round;
        int64_t symbols[VALUES][3];
        for (int v = 0; v < VALUES; v++) {
            symbols[v][0] = v == 0 ? 0 : v == 1 ? 1000 : random_below(v < 5 ? 20 : 1001);
            symbols[v][1] = v == 0 ? 1 : v == 1 ? 64 : 1 + random_below(64);
            symbols[v][2] = v == 0 ? 3 : v == 1 ? 3000 : 3 + random_below(v < 5 ? 20 : 2998);
        }
        int count = 0;
        for (; count < 3; count++) {
            pool[count] = count == 0 ? symbol_n : count == 1 ? symbol_m : symbol_c;
            for (int v = 0; v < VALUES; v++)
                value[count][v] = symbols[v][count];
        }
        for (int k = -3; k < 9; k++, count++) {
            pool[count] = weft_dim_of(k);
            for (int v = 0; v < VALUES; v++)
                value[count][v] = k;
        }
        while (count < POOL) {
            /* young ones often: expressions grow, until something beyond the bounds below sends us back */
            const uint32_t a = random_below((uint32_t)count), b = random_below(random_below(2) ? 15 : (uint32_t)count);
            const uint32_t op = random_below(8);
            if (strlen(print(f, pool[a])) + strlen(print(f, pool[b])) > 120)
                continue;
            if (!apply(f, (int)op, pool[a], pool[b], value[a], value[b], &pool[count], value[count]))
                continue;
            check_one(f, pool[count], value[count], symbols);
            count++;
        }
        for (int i = 0; i < count; i++) /* (a + b)·c is one word however it is reached; so is (a·b + c) / b for b > 0 */
            for (int k = 0; k < 15; k += 2) {
                if (strlen(print(f, pool[i])) > 60)
                    continue;
                const weft_dim a = pool[i], b = pool[k], c = pool[random_below(15)];
                const weft_dim left = weft_dim_mul(f->dims, weft_dim_add(f->dims, a, b), c);
                const weft_dim right =
                    weft_dim_add(f->dims, weft_dim_mul(f->dims, c, b), weft_dim_mul(f->dims, a, c));
                assert_true(weft_dim_same(left, right));
                if (weft_dim_is(c, 0))
                    continue;
                const weft_dim sum = weft_dim_add(f->dims, weft_dim_mul(f->dims, a, c), b);
                assert_true(weft_dim_same(weft_dim_div(f->dims, sum, c),
                                          weft_dim_add(f->dims, a, weft_dim_div(f->dims, b, c))));
            }
    }
}

/* Lines with corners far out: minima and maxima of one symbol of the widest range, with large and small numbers. */
static void check_far_corners(struct fixture *f)
{
    enum { TERMS = 12, POINTS = 6 };
    const weft_dim wide = weft_symbol_add(f->dims, "W", 0, INT32_MAX, 0);
    random_state = 88172645463325252u;
    for (int round = 0; round < 4000; round++) {
        const int64_t at[POINTS] = {0, 1, 1 + random_below(40), (int64_t)1 << 30, random_below(INT32_MAX), INT32_MAX};
        weft_dim term[TERMS] = {wide, wide};
        int64_t value[TERMS][POINTS];
        memcpy(value[0], at, sizeof at);
        memcpy(value[1], at, sizeof at);
        for (int t = 2; t < TERMS; t++) {
            const uint32_t a = random_below((uint32_t)t), b = random_below((uint32_t)t), how = random_below(6);
            const int64_t near = random_below(10), far = (int64_t)random_below(1u << 31) - (1 << 30);
            const weft_dim number = weft_dim_of(how < 2 ? near : far);
            term[t] = how % 3 == 0   ? weft_dim_min(f->dims, term[a], how < 4 ? number : term[b])
                      : how % 3 == 1 ? weft_dim_max(f->dims, term[a], how < 4 ? number : term[b])
                                     : weft_dim_add(f->dims, term[a], how < 4 ? term[b] : number);
            for (int p = 0; p < POINTS; p++) {
                const int64_t x = value[a][p], y = (how % 3 == 2) == (how < 4) ? value[b][p] : weft_dim_value(number);
                value[t][p] = how % 3 == 2 ? x + y : (x < y) == (how % 3 == 0) ? x : y;
                int64_t symbols[] = {0, 1, 3, at[p]};
                if (weft_dim_evaluate(f->dims, term[t], symbols) != value[t][p])
                    fail_msg("%s is %ld, not %ld, for W=%ld", print(f, term[t]),
                             (long)weft_dim_evaluate(f->dims, term[t], symbols), (long)value[t][p], (long)at[p]);
            }
        }
    }
}

/* Random tokens: mostly nonsense, which must end in a message; what parses must print and parse to the same word. */
static void check_soup(struct fixture *f)
{
    static const char *const tokens[] = {"N", "M", "C", "(",   ")",    "(",    ")",  "+",         "-",
                                         "*", "/", "%", "1",   "2",    "3",    "17", "0",         "X",
                                         " ", ",", "*", "min", "max(", "min(", "$",  "9999999999"};
    random_state = 12345;
    int parsed = 0;
    for (int round = 0; round < 200000; round++) {
        char text[200] = "";
        for (uint32_t n = random_below(14) + 1; n > 0; n--)
            strcat(text, tokens[random_below(sizeof tokens / sizeof *tokens)]);
        const char *cursor = text, *message = NULL, *end = text + strlen(text);
        weft_dim d;
        if (!weft_dim_parse(f->dims, &cursor, end, &d, &message)) {
            assert_non_null(message);
            assert_true(cursor >= text && cursor <= end);
            continue;
        }
        parsed++;
        const char *printed = print(f, d);
        if (!weft_dim_same(parse(f, printed), d))
            fail_msg("%s: %s parses to something else", text, printed);
    }
    assert_true(parsed > 10000);
}

/* The longest sums, of divisions that all ask for a closer look at the range, take no noticeable time. */
static void check_long_sum(struct fixture *f)
{
    weft_dim sum = weft_dim_of(0);
    for (int64_t k = 2; k < 256; k++) {
        const weft_dim divisor = weft_dim_of(k), quotient = weft_dim_div(f->dims, symbol_n, divisor);
        sum = weft_dim_add(f->dims, sum, weft_dim_mul(f->dims, quotient, divisor));
    }
    int64_t low, high;
    weft_dim_range(f->dims, sum, &low, &high);
    assert_true(low >= 0 && high <= 254 * 1000);
    assert_true(weft_dim_same(parse(f, print(f, sum)), sum));
}

#define TEST(name, status)                               \
    static void name##_with_symbols(struct fixture *f)   \
    {                                                    \
        add_symbols(f);                                  \
        name(f);                                         \
    }                                                    \
    static void test_##name(void **state)                \
    {                                                    \
        assert_int_equal(fixture_run(name##_with_symbols), status); \
    }
TEST(check_canonical, WEFT_OK)
TEST(check_helpers, WEFT_OK)
TEST(check_narrowing, WEFT_OK)
TEST(check_clone, WEFT_OK)
TEST(check_refusals, WEFT_OK)
TEST(check_random, WEFT_OK)
TEST(check_far_corners, WEFT_OK)
TEST(check_soup, WEFT_OK)
TEST(check_long_sum, WEFT_OK)
TEST(nest_until_refused, WEFT_ERR_UNSUPPORTED)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_canonical), cmocka_unit_test(test_check_helpers),
        cmocka_unit_test(test_check_narrowing), cmocka_unit_test(test_check_clone),
        cmocka_unit_test(test_check_refusals),  cmocka_unit_test(test_nest_until_refused),
        cmocka_unit_test(test_check_random),    cmocka_unit_test(test_check_far_corners),
        cmocka_unit_test(test_check_soup),      cmocka_unit_test(test_check_long_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
