/* SPDX-License-Identifier: Apache-2.0 */
/* test_sizes.c: structs of callers that are shorter or longer than the library's: each gets what it has room for, byte
 * by byte, and zeros where it is longer; what a longer one asks for is refused. Values without a size are as long as
 * they will always be. */
#include "plan_support.h"

/* What the library fills: called with a struct of any size. */
struct world {
    struct scene scene;
    struct weft_access access;
};
static int fill_node(struct world *w, void *ret)
{
    return weft_node_read(w->scene.graph, weft_next_node(w->scene.graph, (weft_node){0}), ret);
}
static int fill_value(struct world *w, void *ret)
{
    return weft_value_read(w->scene.graph, weft_graph_param(w->scene.graph, 0), ret);
}
static int fill_width(struct world *w, void *ret) { return weft_access(w->scene.graph, &w->access, ret); }
static int fill_remark(struct world *w, void *ret)
{
    return weft_remark_get(weft_plan_graph(w->scene.plan), 0, ret);
}
static int fill_input(struct world *w, void *ret) { return weft_plan_input(w->scene.plan, 0, ret); }
static int fill_output(struct world *w, void *ret) { return weft_plan_output(w->scene.plan, 0, ret); }
static int fill_plan_value(struct world *w, void *ret) { return weft_plan_value(w->scene.plan, 0, ret); }
static int find_plan_value(struct world *w, void *ret) { return weft_plan_find(w->scene.plan, "x", ret); }
static int fill_step(struct world *w, void *ret) { return weft_plan_step(w->scene.plan, 0, ret); }
static int fill_block(struct world *w, void *ret) { return weft_plan_block(w->scene.plan, 0, ret); }
static int fill_statistics(struct world *w, void *ret)
{
    return weft_execution_statistics(w->scene.execution, ret);
}

static const struct {
    const char *name;
    size_t bytes;
    int (*fill)(struct world *, void *ret);
} filled[] = {
    {"weft_node_facts", sizeof(struct weft_node_facts), fill_node},
    {"weft_value_facts", sizeof(struct weft_value_facts), fill_value},
    {"weft_access_width", sizeof(struct weft_access_width), fill_width},
    {"weft_remark", sizeof(struct weft_remark), fill_remark},
    {"weft_port", sizeof(struct weft_port), fill_input},
    {"weft_port", sizeof(struct weft_port), fill_output},
    {"weft_plan_value", sizeof(struct weft_plan_value), fill_plan_value},
    {"weft_plan_value", sizeof(struct weft_plan_value), find_plan_value},
    {"weft_plan_step", sizeof(struct weft_plan_step), fill_step},
    {"weft_plan_block", sizeof(struct weft_plan_block), fill_block},
    {"weft_statistics", sizeof(struct weft_statistics), fill_statistics},
};

enum { ROOM = 2048, LONGER = 64, MARK = 0xa5 };
union struct_of_any_size {
    size_t size;
    unsigned char byte[ROOM];
};

static void fill(struct world *w, size_t i, size_t size, union struct_of_any_size *ret)
{
    memset(ret, MARK, sizeof *ret);
    ret->size = size;
    if (filled[i].fill(w, ret) != WEFT_OK)
        fail_msg("%s of %zu bytes is refused", filled[i].name, size);
}

static void each_size_is_filled_as_far_as_it_goes(struct world *w, size_t i)
{
    union struct_of_any_size whole, part;
    assert_true(filled[i].bytes + LONGER < ROOM);
    fill(w, i, filled[i].bytes, &whole);
    for (size_t size = sizeof(size_t); size <= filled[i].bytes + LONGER; size++) {
        fill(w, i, size, &part);
        const size_t common = size < filled[i].bytes ? size : filled[i].bytes;
        assert_int_equal(part.size, size);
        assert_memory_equal(part.byte + sizeof size, whole.byte + sizeof size, common - sizeof size);
        for (size_t at = common; at < ROOM; at++)
            if (part.byte[at] != (at < size ? 0 : MARK))
                fail_msg("%s of %zu bytes: byte %zu is %d", filled[i].name, size, at, part.byte[at]);
    }
    for (size_t size = 0; size < sizeof size; size++) {
        memset(&part, MARK, sizeof part);
        part.size = size;
        assert_int_equal(filled[i].fill(w, &part), WEFT_ERR_ARGUMENT);
        assert_int_equal(part.byte[sizeof size], MARK);
    }
}

static struct world open_world(void)
{
    static float data[32];
    struct world w = {.scene = open_scene("weft 1\ngraph @g(%x: f32[4,8]) {\n  %e: f32[4,8] = exp %x\n"
                                          "  %s: f32[4] = sum %e axes=[1]\n  %t: f32[4], %u: i64[4] = sort %s axis=0\n"
                                          "  return %t\n}\n", 0)};
    const struct weft_tensor x = tensor_of(data, 2, (const int64_t[]){4, 8});
    w.access = (struct weft_access){.size = sizeof w.access, .value = weft_graph_param(w.scene.graph, 0)};
    assert_int_equal(weft_bind_input(w.scene.execution, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(w.scene.execution), WEFT_OK);
    return w;
}

static void structs_get_what_they_have_room_for(void **state)
{
    struct world w = open_world();
    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++)
        each_size_is_filled_as_far_as_it_goes(&w, i);
    close_scene(&w.scene);
}

/* A newer caller's struct is longer: zeros there ask for nothing, and anything else for what this library lacks. */
static void unknown_members_must_be_zero(void **state)
{
    struct world w = open_world();
    struct {
        struct weft_compile_options known;
        int64_t unknown;
    } options = {.known.size = sizeof options};
    struct weft_plan *plan;
    assert_int_equal(weft_compile(w.scene.graph, &options.known, &plan), WEFT_OK);
    weft_plan_destroy(plan);
    options.unknown = 1;
    assert_int_equal(weft_compile(w.scene.graph, &options.known, &plan), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(w.scene.graph->context), "newer"));
    options.known.size = 4; /* not even the size itself */
    assert_int_equal(weft_compile(w.scene.graph, &options.known, &plan), WEFT_ERR_ARGUMENT);
    close_scene(&w.scene);
}

/* weft.h promises it: they are passed in arrays and within other structs. */
static void values_keep_their_size(void **state)
{
    assert_int_equal(sizeof(struct weft_tensor), 144);
    assert_int_equal(sizeof(weft_val), 8);
    assert_int_equal(sizeof(weft_node), 8);
    assert_int_equal(sizeof(weft_dim), 8);
    assert_int_equal(sizeof(struct weft_attribute), 80);
    assert_int_equal(sizeof(struct weft_fixed_input), 16);
    assert_int_equal(sizeof(struct weft_size), 16);
    assert_int_equal(sizeof(struct weft_input_alignment), 16);
    assert_int_equal(sizeof(struct weft_storage_axis), 32);
    assert_int_equal(sizeof(struct weft_custom_type), 72);
    assert_int_equal(sizeof(struct weft_custom_value), 80);
    assert_int_equal(sizeof(struct weft_custom_library), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_get_what_they_have_room_for),
        cmocka_unit_test(unknown_members_must_be_zero),
        cmocka_unit_test(values_keep_their_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
