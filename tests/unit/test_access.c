/* SPDX-License-Identifier: Apache-2.0 */
/* test_access.c: how wide a value can be read along another: by hand where one idea is at stake, and on random graphs
 * beside a count of elements, path by path and block by block. There the answer may never be too large, and is too
 * small in a few of a thousand cases at most (runs that were cut apart in two ways, see ir/access_width.c). */
#include "access_trial.h"

/* --- by hand ------------------------------------------------------------------------------------------------------ */

static void expect(const char *text, const char *value, const char *along, uint32_t axes, int64_t width, int64_t inner)
{
    struct weft_context *context;
    struct weft_graph *g;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    if (weft_parse(context, text, strlen(text), "text", &g) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    struct weft_access access = {.size = sizeof access, .axes = axes, .value = weft_value_find(g, value, strlen(value)),
                                 .along = weft_value_find(g, along, strlen(along))};
    struct weft_access_width got = {.size = sizeof got};
    if (weft_access(g, &access, &got) != WEFT_OK)
        fail_msg("%s: %s", weft_last_error(context), text);
    if (got.width != width || got.inner != inner)
        fail_msg("%s along %s: width %lld inner %lld, not %lld and %lld: %s", value, along, (long long)got.width,
                 (long long)got.inner, (long long)width, (long long)inner, text);
    weft_graph_destroy(g);
    weft_close(context);
}

static void test_alone(void **state)
{
    expect("graph @g(%x: f32[8,12]{0 1 align=64}) {\n return %x\n}", "x", "x", 0, 4, 96);
    expect("graph @g(%x: f32[8,12]) {\n return %x\n}", "x", "x", 0, 1, 96);
    expect("graph @g(%x: f32[8,12]{0 1 | 14 1 align=64}) {\n return %x\n}", "x", "x", 0, 2, 12);
    expect("graph @g(%x: f32[8,12]{0 1 | 14 1 align=64}) {\n return %x\n}", "x", "x", 2, 2, 12);
    expect("graph @g(%x: f16[8,12]{0 1 align=8}) {\n return %x\n}", "x", "x", 0, 4, 96);
    expect("graph @g(%x: f32[4,0]) {\n return %x\n}", "x", "x", 0, 0, 0);
    expect("graph @g(%x: f32[2,64]{0 1 | 0 1 align=64}) {\n %y: f32[2,64] = relu %x\n return %y\n}", "x", "x", 0, 4,
           64);
    /* the last block is half padding */
    expect("graph @g(%x: f32[2,20,3]{0 1/8 2 1%8 align=64}) {\n return %x\n}", "x", "x", 0, 4, 4);
}

static void test_views(void **state)
{
    expect("graph @g(%x: f32[6]{0 align=64}) {\n %y: f32[2,3] = reshape %x\n return %y\n}", "x", "y", 2, 1, 3);
    expect("graph @g(%x: f32[3,5,7]) {\n %a: f32[7,15] = reshape %x\n %y: f32[3,5,7] = reshape %a\n return %y\n}", "x",
           "y", 6, 1, 35);
    expect("graph @g(%x: f32[1032]{0 align=64}) {\n %y: f32[1024] = slice %x start=[2] end=[1026]\n return %y\n}", "x",
           "y", 0, 2, 2);
    expect("graph @g(%x: f32[32,64]{0 1 align=64}) {\n %y: f32[64,32] = transpose %x perm=[1 0]\n return %y\n}", "x",
           "y", 0, 1, 1);
    expect("graph @g(%x: f32[32,64]{0 1 align=64}) {\n %y: f32[64,32]{1 0} = transpose %x perm=[1 0]\n return %y\n}",
           "x", "y", 0, 4, 2048);
    expect("graph @g(%x: f32[16]{0 align=64}) {\n %a: f32[8,16] = bcast %x dims=[1]\n %y: f32[128] = reshape %a\n"
           " return %y\n}", "x", "y", 0, 4, 16);
}

static void test_movement(void **state)
{
    const char *pad = "graph @g(%x: f32[4,8,16]{0 1 2 align=64}) {\n %z: f32[] = const value=0\n"
                      " %y: f32[4,8,22] = pad %x, %z pad=[0 0 4 0 0 2]\n return %y\n}";
    expect(pad, "y", "x", 0, 2, 2);
    const char *halves = "graph @g(%x: f32[16]{0 align=64}) {\n %a: f32[4] = slice %x start=[0] end=[4]\n"
                         " %b: f32[12] = slice %x start=[4] end=[16]\n %y: f32[16] = concat %a, %b axis=0\n"
                         " return %y\n}";
    expect(halves, "x", "y", 0, 4, 16); /* one run again */
    const char *gather = "graph @g(%x: f32[37,32]{0 1 align=64}, %i: i64[33]{0 align=64}) {\n"
                         " %y: f32[33,32] = gather %x, %i axis=0\n return %y\n}";
    expect(gather, "x", "y", 0, 4, 32);
    expect(gather, "i", "y", 0, 1, 1);
}

static void test_ways(void **state)
{
    const char *shifted = "graph @g(%x: f32[128]{0 align=64}) {\n %t: f32[128] = sin %x\n"
                          " %a: f32[124] = slice %t start=[4] end=[128]\n %b: f32[124] = slice %t start=[2] end=[126]\n"
                          " %y: f32[124] = add %a, %b\n return %y\n}";
    expect(shifted, "x", "y", 0, 2, 2);
    const char *sum = "graph @g(%x: f32[3,4,5,6]) {\n %s: f32[3,4,6] = sum %x axes=[2]\n"
                      " %y: f32[3,24] = reshape %s\n return %y\n}";
    expect(sum, "y", "x", 0, 2, 6);
    expect(sum, "x", "y", 0, 1, 6);
}

/* Paths double at each sum, but they are one, since all lead to the same elements. */
static void test_many_ways(void **state)
{
    char text[8192] = "graph @g(%x0: f32[64]{0 align=64}) {\n";
    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 " %%r%d: f32[64] = relu %%x%d\n %%x%d: f32[64] = add %%x%d, %%r%d\n", i, i, i + 1, i, i);
    strcat(text, " return %x100\n}");
    expect(text, "x0", "x100", 0, 4, 64);
}

/* What a buffer is aligned to counts with the offset in it, and a slice may make good what the offset spoils. */
static void test_buffers(void **state)
{
    struct builder b = open_builder();
    weft_val x, y;
    const weft_dim extent = weft_extent(66), start = weft_extent(2), end = weft_extent(66);
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 1, &extent, &x), WEFT_OK);
    const struct weft_attribute attribute[] = {{.name = "start", .integers = &start, .count = 1},
                                               {.name = "end", .integers = &end, .count = 1}};
    const struct weft_op slice = {.size = sizeof slice, .op = "slice", .operand = &x, .operands = 1,
                                  .attribute = attribute, .attributes = 2};
    assert_int_equal(weft_append(b.graph, &slice, &y), WEFT_OK);
    struct weft_access_width width = {.size = sizeof width};
    struct weft_access access = {.size = sizeof access, .value = x, .along = y, .align = 64};
    assert_int_equal(weft_access(b.graph, &access, &width), WEFT_OK);
    assert_int_equal(width.width, 2);
    access.offset = 2;
    assert_int_equal(weft_access(b.graph, &access, &width), WEFT_OK);
    assert_int_equal(width.width, 4);
    access.align = 8;
    assert_int_equal(weft_access(b.graph, &access, &width), WEFT_OK);
    assert_int_equal(width.width, 2);
    close_builder(&b);
}

static void test_refused(void **state)
{
    struct builder b = open_builder();
    weft_val x, other;
    const weft_dim extent[] = {weft_extent(4), weft_extent(6)};
    assert_int_equal(weft_param(b.graph, "x", WEFT_F32, 2, extent, &x), WEFT_OK);
    assert_int_equal(weft_param(b.graph, "other", WEFT_F32, 2, extent, &other), WEFT_OK);
    struct weft_access_width width = {.size = sizeof width};
    struct weft_access access = {.size = sizeof access, .value = x, .along = other};
    assert_refused(&b, weft_access(b.graph, &access, &width), "not read along");
    access.along = x;
    access.align = 24;
    assert_refused(&b, weft_access(b.graph, &access, &width), "power of two");
    access.align = 0;
    access.axes = 1;
    assert_refused(&b, weft_access(b.graph, &access, &width), "innermost");
    access.value.id = 77;
    assert_refused(&b, weft_access(b.graph, &access, &width), "the value is no value of @g");
    access.size = 0;
    assert_int_equal(weft_access(b.graph, &access, &width), WEFT_ERR_ARGUMENT);
    close_builder(&b);
}

/* --- random graphs ------------------------------------------------------------------------------------------------ */

static int64_t asked, exact;

static void compare(struct trial *t, const struct known *value, const struct known *along, bool back, uint64_t began)
{
    static int32_t needed[MOST_PATHS][MOST_ELEMENTS];
    const struct known *later = back ? value : along;
    for (int p = 0; p < later->paths; p++)
        if (!needs(value, along, later->from[p], back, needed[p]))
            return;
    const struct weft_access access = {.size = sizeof access, .value = value->id, .along = along->id};
    struct weft_access_width got = {.size = sizeof got};
    if (weft_access(t->builder.graph, &access, &got) != WEFT_OK)
        fail_msg("seed %llu: %s", (unsigned long long)began, weft_last_error(t->builder.context));
    int64_t width = 1, inner = 1;
    const int64_t steps = elements_of(along);
    for (int64_t k = 2; k <= steps; k++) {
        bool by_place = k == 2 || k == 4, by_number = true;
        for (int p = 0; p < later->paths && steps % k == 0 && (by_place || by_number); p++) {
            by_place = by_place && is_good(value, needed[p], steps, k, /* dense= */ false);
            by_number = by_number && is_good(value, needed[p], steps, k, /* dense= */ true);
        }
        width = steps % k == 0 && by_place ? k : width;
        inner = steps % k == 0 && by_number ? k : inner;
    }
    char *text = NULL;
    if (width % got.width != 0 || inner % got.inner != 0) {
        weft_print(t->builder.graph, &text);
        fail_msg("seed %llu, %s: width %lld, %lld is right; inner %lld, %lld is right:\n%s", (unsigned long long)began,
                 back ? "back" : "forth", (long long)got.width, (long long)width, (long long)got.inner,
                 (long long)inner, text);
    }
    asked += t->guesses ? 0 : 2;
    exact += t->guesses ? 0 : (width == got.width) + (inner == got.inner);
    if (getenv("WEFT_ACCESS_VERBOSE") && !t->guesses &&
        (width != got.width || inner != got.inner)) {
        weft_print(t->builder.graph, &text);
        printf("seed %llu, %s: width %lld, %lld is right; inner %lld, %lld is right:\n%s", (unsigned long long)began,
               back ? "back" : "forth", (long long)got.width, (long long)width, (long long)got.inner, (long long)inner,
               text);
        weft_free_text(t->builder.context, text);
    }
}

static void test_random(void **state)
{
    static struct trial trial;
    const char *count = getenv("WEFT_TRIALS");
    for (uint64_t i = 1; i <= (count ? strtoull(count, NULL, 10) : 3000); i++) {
        seed = i * 7919;
        make(&trial);
        struct known *last = &trial.known[trial.values - 1];
        lay_out(&trial, &trial.known[0]);
        if (last != &trial.known[0])
            lay_out(&trial, last);
        if (last->paths > 0 && last->paths < MOST_PATHS) {
            compare(&trial, &trial.known[0], last, /* back= */ false, i);
            if (last != &trial.known[0])
                compare(&trial, last, &trial.known[0], /* back= */ true, i);
        }
        close_builder(&trial.builder);
    }
    printf("%lld questions, %lld answered exactly\n", (long long)asked, (long long)exact);
    assert_true(asked > 3000 && (asked - exact) * 500 <= asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone), cmocka_unit_test(test_views),     cmocka_unit_test(test_movement),
        cmocka_unit_test(test_ways),  cmocka_unit_test(test_many_ways), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_buffers), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
