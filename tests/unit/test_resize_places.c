/* SPDX-License-Identifier: Apache-2.0 */
/* test_resize_places.c: which elements a resized axis is made of, against the definition in ir/FORMAT.md computed with
 * fractions: for all small extents, kinds of coordinates and ways to round. */
#include "ir/ir.h"
#include "ir/places.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* --- fractions ---------------------------------------------------------------------------------------------------- */

struct q {
    int64_t n, d; /* d > 0 */
};

static struct q make(int64_t n, int64_t d)
{
    const int64_t common = weft_gcd(n, d) * (d < 0 ? -1 : 1);
    return (struct q){n / common, d / common};
}
static struct q add(struct q a, struct q b) { return make(a.n * b.d + b.n * a.d, a.d * b.d); }
static struct q sub(struct q a, struct q b) { return make(a.n * b.d - b.n * a.d, a.d * b.d); }
static struct q mul(struct q a, struct q b) { return make(a.n * b.n, a.d * b.d); }
static struct q over(struct q a, struct q b) { return make(a.n * b.d, a.d * b.n); }
static int64_t down(struct q a) { return a.n / a.d - (a.n % a.d < 0); }
static int64_t up(struct q a) { return -down((struct q){-a.n, a.d}); }
static double value(struct q a) { return (double)a.n / (double)a.d; }

static const struct q half = {1, 2}, one = {1, 1}, zero = {0, 1};
static const char *const coordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize"};
static const char *const nearest[] = {"prefer_floor", "prefer_ceil", "floor", "ceil"};
static const struct q region[] = {{1, 10}, {7, 10}};

static struct q place_of(int kind, int64_t i, int64_t in, int64_t out, struct q s)
{
    const struct q x = make(i, 1), n = make(in, 1), m = make(out, 1), w = mul(s, n), last = sub(n, one);
    const struct q pixel = sub(over(add(x, half), s), half), room = sub(w, one);
    switch (kind) {
    case 1: return add(pixel, mul(mul(n, half), sub(one, over(m, w))));
    case 2: return out > 1 ? pixel : zero;
    case 3: return room.n ? over(mul(x, last), room) : zero;
    case 4: return over(x, s);
    case 5: return over(add(x, half), s);
    case 6:
        if (!room.n)
            return mul(mul(add(region[0], region[1]), half), last);
        return add(mul(region[0], last), over(mul(mul(x, sub(region[1], region[0])), last), room));
    default: return pixel;
    }
}

static int64_t rounded(int how, struct q u)
{
    switch (how) {
    case 0: return up(sub(u, half));
    case 1: return down(add(u, half));
    case 2: return down(u);
    default: return up(u);
    }
}

/* --- one axis ----------------------------------------------------------------------------------------------------- */

static struct weft_context *context;

/* What weft_resize_floors says of the axis that was read last. */
static bool floors;
static struct weft_floored floored;
static unsigned found; /* how often it says something */

/* `factor`: as text, or NULL for that of the extents. */
static void read_axis(int64_t in, int64_t out, int kind, const char *form, int how, const char *factor,
                      struct weft_resize *ret)
{
    char text[400], scale[40] = "";
    struct weft_graph *graph;
    if (factor)
        snprintf(scale, sizeof scale, " scale=[%s]", factor);
    snprintf(text, sizeof text,
             "graph @f(%%x: f32[%d]) {\n  %%y: f32[%d] = resize %%x form=%s coordinates=%s nearest=%s%s"
             " region=[0.1 0.7]\n  return %%y\n}\n",
             (int)in, (int)out, form, coordinates[kind], nearest[how], scale);
    if (weft_parse(context, text, strlen(text), "resize", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    weft_resize_read(graph, graph->first, 0, in, out, ret);
    floors = weft_resize_floors(graph, graph->first, 0, &floored);
    weft_graph_destroy(graph);
}

static int64_t within(int64_t i, int64_t extent) { return i < 0 ? 0 : i >= extent ? extent - 1 : i; }

static void try_axis(int64_t in, int64_t out, int kind, struct q s, const char *factor)
{
    struct weft_resize r;
    int64_t index[2];
    double weight[2];
    for (int how = 0; how < 4; how++) {
        read_axis(in, out, kind, "nearest", how, factor, &r);
        for (int64_t i = 0; i < out; i++) {
            const struct q u = place_of(kind, i, in, out, s);
            const bool inside = u.n >= 0 && u.n <= (in - 1) * u.d;
            assert_int_equal(weft_resize_tabulate(&r, i, index, weight), kind != 6 || inside);
            assert_int_equal(index[0], within(rounded(how, u), in));
            if (floors)
                assert_int_equal((floored.first + floored.step * i) / floored.over, index[0]);
        }
        found += floors;
        if (floors)
            assert_true(floored.first >= 0 && weft_gcd(floored.step, floored.over) == 1);
    }
    read_axis(in, out, kind, "linear", 0, factor, &r);
    assert_int_equal(r.taps, 2);
    for (int64_t i = 0; i < out; i++) {
        const struct q u = place_of(kind, i, in, out, s);
        weft_resize_tabulate(&r, i, index, weight);
        for (int k = 0; k < 2; k++) {
            const int64_t at = up(u) - 1 + k;
            assert_int_equal(index[k], within(at, in));
            assert_true(fabs(weight[k] - (1 - fabs(value(sub(make(at, 1), u))))) <= 1e-15);
        }
        if (u.d == 1) /* upon an element: nothing of the other one */
            assert_true(weight[0] == 0 && weight[1] == 1);
    }
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void places_follow_from_extents(void **state)
{
    for (int kind = 0; kind < 7; kind++)
        for (int64_t in = 1; in <= 11; in++)
            for (int64_t out = 1; out <= 11; out++)
                try_axis(in, out, kind, make(out, in), NULL);
    assert_true(found > 700);
}

/* Whatever the sizes are, of whole factors; and not where places depend on the length. */
static void quotients_of_symbols(void **state)
{
    static const struct {
        const char *to, *words;
        int64_t over;
    } cases[] = {{"2*N", "", 2},
                 {"3*N", " coordinates=asymmetric nearest=floor", 3},
                 {"2*N", " scale=[2]", 2},
                 {"4*N", " coordinates=asymmetric nearest=prefer_floor", 0}, /* 3 and 4 are nearest to 1 */
                 {"2*N", " coordinates=align_corners", 0},
                 {"2*N", " scale=[2.5]", 0},
                 {"2*N", " form=linear", 0},
                 {"N + 1", " coordinates=asymmetric nearest=floor", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300];
        struct weft_graph *graph;
        snprintf(text, sizeof text,
                 "graph @f<N=1..1000>(%%x: f32[N]) {\n  %%y: f32[%s] = resize %%x%s\n  return %%y\n}\n", cases[i].to,
                 cases[i].words);
        if (weft_parse(context, text, strlen(text), "resize", &graph) != WEFT_OK)
            fail_msg("%s", weft_last_error(context));
        assert_int_equal(weft_resize_floors(graph, graph->first, 0, &floored), cases[i].over > 0);
        if (cases[i].over > 0)
            assert_true(floored.first == 0 && floored.step == 1 && floored.over == cases[i].over);
        weft_graph_destroy(graph);
    }
}

static void factors_are_the_fractions_they_stand_for(void **state)
{
    static const struct {
        const char *text;
        struct q s;
    } factors[] = {{"0.6", {3, 5}}, {"1.4", {7, 5}}, {"0.3", {3, 10}}, {"2.2", {11, 5}}, {"0.35", {7, 20}},
                   {"0.3333333333333333", {1, 3}}, {"0.5714285714285714", {4, 7}}, {"1", {1, 1}}, {"2", {2, 1}}};
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++)
        for (int kind = 0; kind < 7; kind++)
            for (int64_t in = 1; in <= 30; in += 1 + in / 8) {
                const int64_t out = down(mul(factors[f].s, make(in, 1)));
                if (out > 0)
                    try_axis(in, out, kind, factors[f].s, factors[f].text);
            }
}

static void fractions_of_rounded_numbers(void **state)
{
    static const struct {
        double x;
        int digits;
        int64_t p, q;
    } cases[] = {
        {0.6, 53, 3, 5}, {(double)0.6f, 24, 3, 5}, {(double)(1.0f / 3), 24, 1, 3}, {1.0 / 3, 53, 1, 3},
        {2, 24, 2, 1}, {0.5, 24, 1, 2}, {-0.4, 53, -2, 5}, {0, 53, 0, 1}, {(double)(7.0f / 11), 24, 7, 11},
        {224.0 / 300, 53, 56, 75}, {65536, 53, 65536, 1}, {1e300, 53, (int64_t)1 << 40, 1}, {1e-300, 53, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct weft_fraction f = weft_fraction_of(cases[i].x, cases[i].digits);
        assert_int_equal(f.p, cases[i].p);
        assert_int_equal(f.q, cases[i].q);
    }
    for (int i = 1; i < 100000; i++) { /* all come back, and none is off by more than its rounding */
        const double x = sin(i) * exp2(i % 40 - 20);
        const struct weft_fraction wide = weft_fraction_of(x, 53), narrow = weft_fraction_of((double)(float)x, 24);
        assert_true(fabs((double)wide.p / (double)wide.q - x) <= fabs(x) * 0x1p-52);
        assert_true((float)((double)narrow.p / (double)narrow.q) == (float)x);
    }
}

/* Factors and regions of any digits give places, be they not exact. */
static void wild_numbers_have_places(void **state)
{
    static const char *const factors[] = {"1e-30", "1e30", "0.123456789012345", "3.14159265358979", "1e9", "1e-9"};
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++)
        for (int kind = 0; kind < 7; kind++) {
            struct weft_resize r;
            int64_t index[2];
            double weight[2];
            read_axis(1000003, 999983, kind, "linear", 0, factors[f], &r);
            assert_true(r.unit > 0);
            for (int64_t i = 0; i < 999983; i += 99991) {
                weft_resize_tabulate(&r, i, index, weight);
                assert_in_range(index[0], 0, 1000002);
                assert_in_range(index[1], 0, 1000002);
                assert_true(fabs(weight[0] + weight[1] - 1) <= 1e-9);
            }
        }
}

int main(void)
{
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_follow_from_extents),
        cmocka_unit_test(quotients_of_symbols),
        cmocka_unit_test(factors_are_the_fractions_they_stand_for),
        cmocka_unit_test(fractions_of_rounded_numbers),
        cmocka_unit_test(wild_numbers_have_places),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    weft_close(context);
    return failed;
}
