/* SPDX-License-Identifier: Apache-2.0 */
/* test_validate.c: the validator against graphs that are broken by hand, one rule at a time. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct weft_context *open_context(void)
{
    struct weft_context *context = NULL;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    return context;
}

static struct weft_graph *parse(struct weft_context *context, const char *text)
{
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "text", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    return graph;
}

static const char *const sound = "graph @f<N>(%x: f32[N,3], %w: mut f32[2]) {\n" /* nodes 1 to 7, values 3 to 9 */
                                 "  %e: i64[2] = extents value=[N 3]\n"
                                 "  fuse @g {\n"
                                 "    %a: f32[N,3]{-} = relu %x\n"
                                 "    %b: f32[N,3] = neg %a\n"
                                 "  }\n"
                                 "  %c: f32[2] = const value=[1 2]\n"
                                 "  %d: f32[2] = add %c, %w\n"
                                 "  %s: f32[N] = sum %b axes=[1]\n"
                                 "  %t: f32[3,N] = transpose %b perm=[1 0]\n"
                                 "  return %s, %t, mut %w = %d\n"
                                 "}\n";

/* The edit would store the value. */
static void escape(struct weft_graph *g, weft_node reader, weft_val value)
{
    const uint32_t layout = g->value[value.id].layout;
    weft_replace_operand(g, reader, 0, value);
    assert_int_equal(g->value[value.id].layout, 0);
    g->value[value.id].layout = layout;
}

enum corruption {
    WRONG_USES,
    WRONG_SLOT,
    WRONG_TYPE,
    WRONG_ORDER,
    WRONG_LINK,
    WRONG_COUNT,
    WRONG_NAME,
    WRONG_LAYOUT,
    TORN_GROUP,
    NO_GROUP,
    ESCAPED_REGISTER,
    WRONG_CONTENT,
    NO_ELEMENTS,
    SHORT_BLOB,
    NO_RETURN,
    WRONG_RETURNS,
    WRONG_RETURN_LIST,
    MUT_RESULT,
    STATIC_RESULT,
    MUT_AND_STATIC,
    NO_ATTRIBUTE,
    ERASED_OPERAND,
    NO_VALUE,
    STALE_ORDER,
    CORRUPTIONS
};
static const char *const expected[CORRUPTIONS] = {
    [WRONG_USES] = "the uses of %b are wrong",
    [WRONG_SLOT] = "belongs to another node",
    [WRONG_TYPE] = "%t is f32[4,N], but transpose of these operands is f32[3,N]",
    [WRONG_ORDER] = "is used before its definition",
    [WRONG_LINK] = "does not lead to the node before it",
    [WRONG_COUNT] = "live nodes",
    [WRONG_NAME] = "is not its own",
    [WRONG_LAYOUT] = "the layout of %b does not exist",
    [TORN_GROUP] = "group @g is torn",
    [NO_GROUP] = "only a group keeps values in registers",
    [ESCAPED_REGISTER] = "exists only within its group",
    [WRONG_CONTENT] = "the known elements of %e are out of date",
    [NO_ELEMENTS] = "a const node, and no other, has elements",
    [SHORT_BLOB] = "lie outside its memory",
    [NO_RETURN] = "mut parameter %w has no new value",
    [WRONG_RETURNS] = "returns, but has",
    [WRONG_RETURN_LIST] = "the list of the returns of %s is wrong",
    [MUT_RESULT] = "is mut, but no parameter",
    [STATIC_RESULT] = "is static, but no parameter",
    [MUT_AND_STATIC] = "parameter %w is mut and static",
    [NO_ATTRIBUTE] = "perm is missing",
    [ERASED_OPERAND] = "is a result of an erased node",
    [NO_VALUE] = "no value of this graph",
    [STALE_ORDER] = "the cached order is out of date",
};

static void corrupt(struct weft_graph *g, enum corruption which)
{
    static const weft_dim wrong[2] = {{2}, {2}};
    switch (which) {
    case WRONG_USES: g->value[5].uses++; break;
    case WRONG_SLOT: g->slot[g->node[3].first_operand].node = (weft_node){.id = 2}; break;
    case WRONG_TYPE: g->value[9].type.extent[0] = weft_dim_of(4); break;
    case WRONG_ORDER: weft_move_before(g, (weft_node){.id = 3}, (weft_node){.id = 2}); break;
    case WRONG_LINK: g->node[4].previous = (weft_node){.id = 1}; break;
    case WRONG_COUNT: g->live_nodes++; break;
    case WRONG_NAME: g->value[6].name = "b"; break;
    case WRONG_LAYOUT: g->value[5].layout = 99; break;
    case TORN_GROUP: g->node[6].group = g->node[2].group; break;
    case NO_GROUP: g->node[2].group = 0; break;
    case ESCAPED_REGISTER: escape(g, (weft_node){.id = 6}, (weft_val){.id = 4}); break;
    case WRONG_CONTENT: g->value[3].content = wrong; break;
    case NO_ELEMENTS: g->node[4].constant = NULL; break;
    case SHORT_BLOB: g->node[4].constant->offset = 1; break;
    case NO_RETURN: g->ret[2].mut = WEFT_NO_VALUE; break;
    case WRONG_RETURNS: g->value[8].returns = 7; break;
    case WRONG_RETURN_LIST: g->value[8].first_return = 0; break;
    case MUT_RESULT: g->value[8].is_mut = true; break;
    case STATIC_RESULT: g->value[8].is_static = true; break;
    case MUT_AND_STATIC: weft_value_of(g, weft_value_find(g, "w", 1))->is_static = true; break;
    case NO_ATTRIBUTE: g->node[7].attrs = 0; break;
    case ERASED_OPERAND:
        g->slot[g->node[6].first_operand].value = (weft_val){.id = 3};
        g->value[3].def = (weft_node){.id = 99};
        break;
    case NO_VALUE: g->slot[g->node[6].first_operand].value = (weft_val){.id = 1000}; break;
    default:
        weft_require(g, WEFT_ORDER);
        g->position[3] = g->position[7];
    }
}

struct findings {
    struct weft_graph *graph;
    enum corruption which;
    struct weft_arena arena;
    bool found;
};

static int find_corruption(void *arg)
{
    struct findings *call = arg;
    struct weft_finding *finding;
    assert_int_equal(weft_find_errors(call->graph, &call->arena, &finding), 0);
    corrupt(call->graph, call->which);
    const uint32_t count = weft_find_errors(call->graph, &call->arena, &finding);
    for (uint32_t i = 0; i < count; i++)
        call->found = call->found || strstr(finding[i].message, expected[call->which]);
    for (uint32_t i = 0; i < count && !call->found; i++)
        print_error("found: %s\n", finding[i].message);
    return WEFT_OK;
}

static void test_corrupted_graphs_are_found(void **state)
{
    (void)state;
    for (int which = 0; which < CORRUPTIONS; which++) {
        struct weft_context *context = open_context();
        struct findings call = {.graph = parse(context, sound), .which = which};
        weft_arena_open(&call.arena, context);
        assert_int_equal(weft_protected(context, find_corruption, &call), WEFT_OK);
        if (!call.found)
            fail_msg("nobody says '%s'", expected[which]);
        weft_arena_close(&call.arena);
        weft_graph_destroy(call.graph);
        weft_close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corrupted_graphs_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
