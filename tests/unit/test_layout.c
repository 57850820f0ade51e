/* SPDX-License-Identifier: Apache-2.0 */
/* test_layout.c: layouts by themselves and in pairs: text, legality, canonical form, places, strides, runs, vectors,
 * equality and the class of a conversion, each checked against places that are computed element by element. */
#include "layout_samples.h"

/* --- one layout alone --------------------------------------------------------------------------------------------- */

/* Is an axis linear, and with which stride? */
static bool is_linear(const struct weft_type *type, const int64_t *place, int axis, int64_t *ret_stride)
{
    int64_t unit = 1;
    for (int i = axis + 1; i < type->rank; i++)
        unit *= extent_of(type, i);
    const int64_t extent = extent_of(type, axis);
    *ret_stride = extent > 1 ? place[unit] - place[0] : 0;
    for (int64_t i = 0; i < extent; i++)
        if (place[i * unit] - place[0] != i * *ret_stride)
            return false;
    return true;
}

static void check_alone(struct fixture *f, const struct sample *s)
{
    static int64_t place[MAX_ELEMENTS];
    places_of(&s->layout, &s->type, place);
    const int64_t elements = elements_of(&s->type);
    int64_t index[WEFT_MAX_RANK] = {0}, last = -1;
    for (int64_t n = 0; n < elements; n++) {
        unravel(&s->type, n, index);
        assert_int_equal(weft_layout_place(f->dims, &s->layout, &s->type, index), place[n]);
        const int64_t from_offset = place[n] - weft_dim_value(s->layout.offset);
        last = from_offset > last ? from_offset : last;
    }
    assert_true(weft_dim_value(weft_layout_elements(f->dims, &s->layout, &s->type)) > last);

    struct weft_layout canonical = s->layout;
    weft_layout_canonical(f->dims, &canonical, &s->type);
    expect_places(f, &canonical, &s->type, place, "canonical form", &s->layout);
    struct weft_layout again = canonical;
    weft_layout_canonical(f->dims, &again, &s->type);
    assert_true(weft_layout_same(&canonical, &again));
    assert_true(weft_layout_equal(f->dims, &canonical, &s->layout, &s->type));
    assert_true(weft_dim_value(weft_layout_elements(f->dims, &canonical, &s->type)) > last);
    const struct weft_layout read = parse(f, print(f, &s->layout));
    assert_true(weft_layout_same(&read, &s->layout));

    weft_dim stride[WEFT_MAX_RANK];
    const bool linear = weft_layout_logical_strides(f->dims, &s->layout, &s->type, stride);
    bool expected = true;
    for (int axis = 0; axis < s->type.rank; axis++) {
        int64_t along;
        expected = is_linear(&s->type, place, axis, &along) && expected;
        if (linear && extent_of(&s->type, axis) > 1)
            assert_int_equal(weft_dim_value(stride[axis]), along);
    }
    assert_int_equal(linear, expected);
}

/* Walks storage coordinates from the innermost axis outwards; ends at the first gap. */
static void check_walk(struct fixture *f, const struct sample *s)
{
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(f->dims, &s->layout, &s->type, stride);
    int64_t extent[WEFT_MAX_STORAGE], total = 1;
    for (int i = 0; i < s->layout.axes; i++) {
        extent[i] = weft_dim_value(weft_layout_axis_extent(f->dims, &s->layout, i, &s->type));
        total *= extent[i];
    }
    static int64_t place[MAX_ELEMENTS];
    assert_true(total <= MAX_ELEMENTS);
    for (int64_t n = 0; n < total; n++) {
        place[n] = 0;
        int64_t rest = n;
        for (int i = s->layout.axes - 1; i >= 0; i--) {
            place[n] += rest % extent[i] * weft_dim_value(stride[i]);
            rest /= extent[i];
        }
    }
    int64_t run = 1;
    while (run < total && place[run] == run)
        run++;
    assert_int_equal(weft_layout_run(f->dims, &s->layout, &s->type), run);

    int64_t row = 1; /* of the innermost storage axis */
    for (int i = s->layout.axes - 1; i >= 0 && row == 1; i--)
        row = extent[i];
    for (uint32_t align = 4; align <= 64; align *= 2) {
        struct weft_layout layout = s->layout;
        layout.align = align;
        const int64_t width = weft_layout_vector_width(f->dims, &layout, &s->type, WEFT_F32, 8);
        int64_t best = 1;
        for (int64_t k = 2; k <= 8 && k <= row; k *= 2) {
            bool good = true;
            for (int64_t n = 0; n < total && good; n++) {
                const int64_t block = n / row * row + n % row / k * k; /* where n's block begins */
                if (block % row + k <= row)
                    good = place[n] == place[block] + (n - block) && (align + 4 * place[block]) % (4 * k) == 0;
            }
            best = good ? k : best;
        }
        assert_int_equal(width, best);
    }
}

static void check_each(struct fixture *f)
{
    make_samples();
    assert_true(samples > 1500);
    for (int i = 0; i < samples; i++) {
        check_alone(f, &sample[i]);
        check_walk(f, &sample[i]);
    }
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* The greatest r such that the elements fall into pieces of r that are neighbours, in one order, in both. */
static int64_t common_run(const int64_t *a, const int64_t *b, int64_t elements)
{
    static int64_t element_at[4 * MAX_ELEMENTS];
    int64_t places = 0;
    for (int64_t n = 0; n < elements; n++)
        places = a[n] >= places ? a[n] + 1 : places;
    assert_true(places <= 4 * MAX_ELEMENTS);
    memset(element_at, -1, sizeof *element_at * (size_t)places);
    for (int64_t n = 0; n < elements; n++)
        element_at[a[n]] = n;
    int64_t run = 0, length = 0, before = -1;
    for (int64_t p = 0; p < places; p++) {
        const int64_t n = element_at[p];
        const bool goes_on = n >= 0 && before >= 0 && b[n] == b[before] + 1;
        if (!goes_on && length > 0) {
            run = gcd(run, length);
            length = 0;
        }
        length += n >= 0;
        before = n;
    }
    return gcd(run, length);
}

/* Does some axis step between neighbours in memory? */
static bool has_unit_step(const struct weft_type *type, const int64_t *place)
{
    int64_t unit = 1;
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        for (int64_t i = 1; i < extent_of(type, axis); i++)
            if (place[i * unit] == place[0] + 1)
                return true;
        unit *= extent_of(type, axis);
    }
    return false;
}

static void check_pairs(struct fixture *f)
{
    static int64_t a_place[MAX_ELEMENTS], b_place[MAX_ELEMENTS];
    make_samples();
    int64_t kinds[4] = {0};
    for (int i = 0; i < samples; i++) {
        const struct sample *a = &sample[i];
        places_of(&a->layout, &a->type, a_place);
        const int64_t elements = elements_of(&a->type);
        /* every partner for small ranks, every seventh for rank 4 */
        for (int k = 0; k < samples; k += a->type.rank == 4 ? 7 : 1) {
            const struct sample *b = &sample[k];
            if (!weft_type_same(&a->type, &b->type))
                continue;
            places_of(&b->layout, &b->type, b_place);
            const bool equal = memcmp(a_place, b_place, sizeof *a_place * (size_t)elements) == 0;
            assert_int_equal(weft_layout_equal(f->dims, &a->layout, &b->layout, &a->type), equal);
            int64_t run;
            const int kind = weft_layout_conversion(f->dims, &a->layout, &b->layout, &a->type, &run);
            kinds[kind]++;
            assert_int_equal(kind == WEFT_CONVERT_NONE, equal);
            const int64_t best = common_run(a_place, b_place, elements);
            if (a->split || b->split ? best % run != 0 : best != run)
                fail_msg("%s to %s: run %d, found %d", print(f, &a->layout), print(f, &b->layout), (int)run, (int)best);
            if (kind != WEFT_CONVERT_NONE && elements > 1)
                assert_int_equal(kind == WEFT_CONVERT_RUNS, run > 1);
            const bool steps = has_unit_step(&a->type, a_place) && has_unit_step(&a->type, b_place);
            if (kind == WEFT_CONVERT_TRANSPOSE)
                assert_true(steps);
            if (kind == WEFT_CONVERT_GENERAL && !a->split && !b->split)
                assert_false(steps);
        }
    }
    for (int kind = 0; kind < 4; kind++)
        assert_true(kinds[kind] > 0);
}

/* --- by example --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *print, *canonical; /* for [1,32,12,10] */
} good_cases[] = {
    {"{0 1 2 3}", "{0 1 2 3}", "{0 1 2 3}"},
    {"{ 0 2 3 1 }", "{0 2 3 1}", "{0 2 3 1}"},
    {"{2 3 1 0}", "{2 3 1 0}", "{0 2 3 1}"},
    {"{0 1/16 2 3 1%16}", "{0 1/16 2 3 1%16}", "{0 1/16 2 3 1%16}"},
    {"{0 1%32/2 1%2 1/32 2 3}", "{0 1/2%16 1%2 1/32 2 3}", "{0 1 2 3}"},
    {"{0 1/4/2 1%8 2/5 3 2%5}", "{0 1/8 1%8 2/5 3 2%5}", "{0 1 2/5 3 2%5}"},
    {"{0 1 2 3 | 3840 120 10 1}", "{0 1 2 3 | 3840 120 10 1}", "{0 1 2 3}"},
    {"{0 1 2 3|77 64*2 (16) 1}", "{0 1 2 3 | 77 128 16 1}", "{0 1 2 3 | 4096 128 16 1}"},
    {"{0 1 2 3 | 0 4 10 1}", "{0 1 2 3 | 0 4 10 1}", "{0 1 2 3 | 128 4 10 1}"}, /* overlaps: the order is stated */
    {"{0 1 2 3 | 0 0 10 1}", "{0 1 2 3 | 0 0 10 1}", "{0 1 2 3 | 0 0 10 1}"},
    {"{0 2 3 1 | 4096 640 64 1 +32 align=64 hint}", "{0 2 3 1 | 4096 640 64 1 +32 align=64 hint}",
     "{0 2 3 1 | 7680 640 64 1 +32 align=64 hint}"},
    {"{0 2 3 1 +7}", "{0 2 3 1 +7}", "{0 2 3 1 +7}"},
    {"{0 2 3 1 free}", "{0 2 3 1 free}", "{0 2 3 1 free}"},
    {"{0 1 2 3 | 1 N*120 (N + 3) 1 +(N - 1)}", "{0 1 2 3 | 1 120*N (N + 3) 1 +(N - 1)}",
     "{0 1 2 3 | 3840*N 120*N (N + 3) 1 +(N - 1)}"},
    {"{?}", "{?}", "{?}"},
    {"{-}", "{-}", "{-}"},
};

static const struct {
    const char *text;
    int column;
    const char *message;
} bad_cases[] = {
    {"0 1", 0, "expected '{'"},
    {"{0 1", 4, "expected '}' or a part of a layout"},
    {"{0 x}", 3, "expected '}' or a part of a layout"},
    {"{0 8}", 3, "an axis is a number from 0 to 7"},
    {"{0/}", 3, "expected a number"},
    {"{0/0 0%0}", 2, "an axis is split by a number below 1"},
    {"{1%6/4}", 4, "this division does not fit the remainder before it"},
    {"{1%6%4}", 4, "this division does not fit the remainder before it"},
    {"{0 1 | 1}", 8, "there are fewer strides than storage axes"},
    {"{0 1 | 1 2 3}", 11, "there are more strides than storage axes"},
    {"{0 1 | 1 X}", 9, "unknown symbol"},
    {"{0 1 | 1 2 +}", 12, "expected a number, a symbol or '('"},
    {"{0 1 align=48}", 11, "the alignment is no power of two"},
    {"{0 99999999999}", 3, "the number is too large"},
    {"{0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0}", 33, "a layout has at most 16 storage axes"},
    {"{0 1 hint free}", 10, "expected '}' or a part of a layout"},
    {"{? hint}", 3, "expected '}' or a part of a layout"},
};

static const char *const illegal_cases[][2] = {
    /* for [4,6] */
    {"{0}", "the layout leaves out an axis of the type"},
    {"{0 1 2}", "the layout names an axis that the type does not have"},
    {"{0 1 1}", "the digits of an axis do not cover its index exactly once"},
    {"{0 1/2}", "the innermost digit of an axis must not be divided"},
    {"{0 1%6}", "the outermost digit of an axis must have no modulus"},
    {"{0 1/4 1%2}", "the digits of an axis do not cover its index exactly once"},
    {"{0 1 1%1}", "the digits of an axis do not cover its index exactly once"},
    {"{0 1 | 6 -1}", "a stride is negative"},
    {"{0 1 +-1}", "the offset is negative"},
    {"{0 1 | 1 4}", "the strides do not fall from the outermost axis to the innermost"},
};

static void check_text(struct fixture *f)
{
    (void)weft_symbol_add(f->dims, "N", 1, 100, 0);
    const struct weft_type type = type_of(4, (const int[]){1, 32, 12, 10}), flat = type_of(2, (const int[]){4, 6});
    for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++) {
        struct weft_layout layout = parse(f, good_cases[i].text);
        assert_string_equal(print(f, &layout), good_cases[i].print);
        assert_null(weft_layout_check(&layout, &type));
        weft_layout_canonical(f->dims, &layout, &type);
        assert_string_equal(print(f, &layout), good_cases[i].canonical);
        const struct weft_layout read = parse(f, print(f, &layout));
        assert_true(weft_layout_same(&read, &layout));
        assert_int_equal(read.strength, layout.strength);
        assert_int_equal(read.align, layout.align);
    }
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const char *text = bad_cases[i].text, *cursor = text, *message = NULL;
        struct weft_layout layout = {.axes = 9};
        assert_false(weft_layout_parse(f->dims, &cursor, text + strlen(text), &layout, &message));
        assert_string_equal(message, bad_cases[i].message);
        assert_int_equal(cursor - text, bad_cases[i].column);
        assert_int_equal(layout.axes, 9);
    }
    for (size_t i = 0; i < sizeof illegal_cases / sizeof *illegal_cases; i++) {
        const struct weft_layout layout = parse(f, illegal_cases[i][0]);
        const char *message = weft_layout_check(&layout, &flat);
        assert_non_null(message);
        assert_string_equal(message, illegal_cases[i][1]);
    }
}

/* Random tokens, as in test_dims.c. */
static void check_soup(struct fixture *f)
{
    static const char *const tokens[] = {"0", "1", "2", "0", "1",  "2",     "/2",   "%2",   "/", "%", "|", "4", "24",
                                         " ", " ", " ", "+", "(N", "- 1)", "align=", "hint", "free", "?", "-",
                                         "}", "N"};
    (void)weft_symbol_add(f->dims, "N", 1, 100, 0);
    const struct weft_type type = type_of(3, (const int[]){4, 6, 1});
    uint64_t state = 99;
    int parsed = 0, legal = 0;
    for (int round = 0; round < 300000; round++) {
        char text[200] = "{";
        for (int n = 1 + round % 10; n > 0; n--) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            strcat(text, tokens[(state >> 33) % (sizeof tokens / sizeof *tokens)]);
            strcat(text, state >> 62 ? " " : "");
        }
        strcat(text, "}");
        const char *cursor = text, *message = NULL, *end = text + strlen(text);
        struct weft_layout layout;
        if (!weft_layout_parse(f->dims, &cursor, end, &layout, &message)) {
            assert_non_null(message);
            assert_true(cursor >= text && cursor <= end);
            continue;
        }
        parsed++;
        const struct weft_layout read = parse(f, print(f, &layout));
        assert_true(weft_layout_same(&read, &layout));
        if (weft_layout_check(&layout, &type))
            continue;
        legal++;
        struct weft_layout canonical = layout;
        weft_layout_canonical(f->dims, &canonical, &type);
        assert_null(weft_layout_check(&canonical, &type));
        assert_true(weft_layout_equal(f->dims, &layout, &canonical, &type));
    }
    assert_true(parsed > 10000 && legal > 100);
}

#define TEST(name)                                            \
    static void test_##name(void **state)                     \
    {                                                         \
        assert_int_equal(fixture_run(check_##name), WEFT_OK); \
    }
TEST(text)
TEST(each)
TEST(pairs)
TEST(soup)

static void overlaps_in(struct fixture *f)
{
    (void)weft_symbol_add(f->dims, "N", 0, 100, 0);
    (void)weft_symbol_add(f->dims, "M", 4, 100, 0);
    static const struct {
        const char *layout, *first, *second; /* extents */
        bool overlaps;
    } cases[] = {
        {"{0 1}", "2", "3", false},           {"{0 1 | 3 1}", "2", "3", false},    {"{0 1 | 2 1}", "2", "3", true},
        {"{0 1 | 1 1}", "2", "3", true},      {"{0 1 | 0 1}", "2", "3", true},     {"{0 1 | 0 1}", "1", "3", false},
        {"{0 1 | 0 1}", "0", "3", false},     {"{1 0 | 2 1}", "2", "3", false},    {"{1 0 | 1 1}", "2", "3", true},
        {"{0 1 | 1 1}", "N", "3", false},     {"{0 1 | 2 1}", "M", "3", true},     {"{0 1 | 3 1}", "M", "3", false},
        {"{0 1 | 0 1}", "N", "3", true},      {"{0 1 | M 1}", "2", "3", false},    {"{0 1 | 1 1}", "1", "3", false},
        {"{0/2 1 0%2 | 6 2 1}", "4", "3", false}, {"{0/2 1 0%2 | 5 2 1}", "4", "3", true},
        {"{0 1 | 4611686018427387903 4611686018427387902}", "100", "100", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_type type = {.dtype = WEFT_F32, .rank = 2};
        struct weft_layout layout;
        const char *at = cases[i].first, *message = "";
        assert_true(weft_dim_parse(f->dims, &at, at + strlen(at), &type.extent[0], &message));
        at = cases[i].second;
        assert_true(weft_dim_parse(f->dims, &at, at + strlen(at), &type.extent[1], &message));
        at = cases[i].layout;
        if (!weft_layout_parse(f->dims, &at, at + strlen(at), &layout, &message))
            fail_msg("%s: %s", cases[i].layout, message);
        if (weft_layout_overlaps(f->dims, &layout, &type) != cases[i].overlaps)
            fail_msg("%s of %s by %s", cases[i].layout, cases[i].first, cases[i].second);
    }
}

static void test_elements_that_share_places(void **state)
{
    (void)state;
    assert_int_equal(fixture_run(overlaps_in), WEFT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_soup),
        cmocka_unit_test(test_elements_that_share_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
