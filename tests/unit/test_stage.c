/* SPDX-License-Identifier: Apache-2.0 */
/* test_stage.c: what a plan assumes of the addresses of inputs: aligned buffers are never copied, others where a
 * function wants them so, and mutable ones back; or they are refused. */
#include "plan_support.h"

enum { N = 1000, LINE = 64 };

static const void *seen;   /* the operand that the function was given */
static int misaligned;     /* how often it was not as it wants it */

static void want_lines(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    ret->align = i < operands ? LINE : 0;
}

static int add_one(void *user, const struct weft_custom_call *call)
{
    seen = call->operand[0].data;
    misaligned += (uintptr_t)seen % LINE != 0;
    for (int64_t i = 0; i < call->result->extent[0]; i++)
        ((float *)call->result->data)[i] = ((const float *)seen)[i] + 1;
    return 0;
}

static struct weft_context *open_wanting(void)
{
    static const struct weft_custom custom = {.size = sizeof custom, .name = "add_one", .least_operands = 1,
                                              .most_operands = 1, .run = add_one, .demand = want_lines};
    struct weft_context *context = open_context(2);
    assert_int_equal(weft_register(context, &custom), WEFT_OK);
    seen = NULL;
    misaligned = 0;
    return context;
}

static int try_compile(const struct weft_graph *graph, int mode, const struct weft_input_alignment *input,
                       struct weft_plan **ret)
{
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_COMPILER,
                                                 .assume_aligned = mode, .input_alignment = input,
                                                 .input_alignments = input != NULL};
    return weft_compile(graph, &options, ret);
}

struct staging {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *e;
    float *memory; /* a line of it begins at its start */
};

static struct staging open_staging(const char *text, int mode, const struct weft_input_alignment *input)
{
    struct staging s = {.context = open_wanting(), .memory = aligned_alloc(LINE, sizeof(float) * 2 * N)};
    s.graph = parse(s.context, text);
    if (try_compile(s.graph, mode, input, &s.plan) != WEFT_OK)
        fail_msg("%s", weft_last_error(s.context));
    assert_int_equal(weft_execution_create(s.plan, &s.e), WEFT_OK);
    return s;
}

static void close_staging(struct staging *s)
{
    weft_execution_destroy(s->e);
    weft_plan_destroy(s->plan);
    weft_graph_destroy(s->graph);
    weft_close(s->context);
    free(s->memory);
}

/* So many elements behind the line. */
static struct weft_tensor vector_at(const struct staging *s, int offset)
{
    return tensor_of(s->memory + offset, 1, &(int64_t){N});
}

static struct weft_statistics statistics_of(const struct staging *s)
{
    struct weft_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(weft_execution_statistics(s->e, &statistics), WEFT_OK);
    return statistics;
}

static const char one[] = "graph @g(%x: f32[1000]) {\n  %y: f32[1000] = custom %x function=add_one\n  return %y\n}\n";

static void run_and_compare(struct staging *s, const struct weft_tensor *x)
{
    struct weft_tensor y;
    assert_int_equal(weft_bind_input(s->e, 0, x), WEFT_OK);
    assert_int_equal(weft_run(s->e), WEFT_OK);
    assert_int_equal(weft_output(s->e, 0, &y), WEFT_OK);
    for (int i = 0; i < N; i++)
        assert_true(((float *)y.data)[i] == ((const float *)x->data)[i] + 1);
    assert_int_equal(misaligned, 0);
}

/* Each run copies in place of the plan: the plan has one step, and none for an aligned buffer. */
static void where_it_pays_only_misaligned_buffers_are_copied(void **state)
{
    struct staging s = open_staging(one, WEFT_ALIGN_PAYS, NULL);
    assert_int_equal(weft_plan_steps(s.plan), 1);
    const struct weft_tensor at[] = {vector_at(&s, 0), vector_at(&s, 3), vector_at(&s, 16)};
    for (int i = 0; i < 3; i++) {
        const bool aligned = i != 1;
        run_and_compare(&s, &at[i]);
        assert_int_equal(seen == at[i].data, aligned);
        assert_int_equal(statistics_of(&s).staged_inputs, !aligned);
        assert_int_equal(statistics_of(&s).staged_bytes, aligned ? 0 : (int64_t)sizeof(float) * N);
    }
    ((float *)at[1].data)[5] = 77; /* each run copies anew */
    run_and_compare(&s, &at[1]);
    ((float *)at[1].data)[5] = 78;
    assert_int_equal(weft_run(s.e), WEFT_OK);
    struct weft_tensor y;
    assert_int_equal(weft_output(s.e, 0, &y), WEFT_OK);
    assert_true(((float *)y.data)[5] == 79);
    close_staging(&s);
}

/* The reader that asked is gone behind passes, and a slice that begins at a line stands for it: it is still aligned. */
static void what_was_assumed_holds_for_later_readers(void **state)
{
    struct staging s = open_staging("graph @g(%x: f32[1000]) {\n  %d: f32[1000] = custom %x function=add_one\n"
                                    "  %s: f32[984] = slice %x start=[16] end=[1000]\n"
                                    "  %y: f32[984] = custom %s function=add_one\n  return %y\n}\n",
                                    WEFT_ALIGN_PAYS, NULL);
    for (int offset = 0; offset < 2; offset++) {
        const struct weft_tensor x = vector_at(&s, offset);
        struct weft_tensor y;
        assert_int_equal(weft_bind_input(s.e, 0, &x), WEFT_OK);
        assert_int_equal(weft_run(s.e), WEFT_OK);
        assert_int_equal(weft_output(s.e, 0, &y), WEFT_OK);
        for (int i = 0; i < N - 16; i++)
            assert_true(((float *)y.data)[i] == ((const float *)x.data)[i + 16] + 1);
        assert_int_equal(misaligned, 0);
    }
    close_staging(&s);
}

/* Without the option the plan has a copy of its own, whatever the address. */
static void by_default_the_plan_copies(void **state)
{
    struct staging s = open_staging(one, WEFT_ALIGN_NEVER, NULL);
    assert_int_equal(weft_plan_steps(s.plan), 2);
    const struct weft_tensor at[] = {vector_at(&s, 0), vector_at(&s, 3)};
    for (int i = 0; i < 2; i++) {
        run_and_compare(&s, &at[i]);
        assert_true(seen != at[i].data);
        assert_int_equal(statistics_of(&s).staged_inputs, 0);
    }
    close_staging(&s);
}

static void where_nothing_wants_it_nothing_is_copied(void **state)
{
    struct staging s = open_staging("graph @g(%x: f32[1000]) {\n  %y: f32[1000] = exp %x\n  return %y\n}\n",
                                    WEFT_ALIGN_PAYS, NULL);
    const struct weft_tensor x = vector_at(&s, 1);
    assert_int_equal(weft_bind_input(s.e, 0, &x), WEFT_OK);
    assert_int_equal(weft_run(s.e), WEFT_OK);
    assert_int_equal(statistics_of(&s).staged_inputs, 0);
    close_staging(&s);
}

static void misaligned_buffers_are_refused_where_all_are_aligned(void **state)
{
    struct staging s = open_staging(one, WEFT_ALIGN_ALWAYS, NULL);
    assert_int_equal(weft_plan_steps(s.plan), 1);
    const struct weft_tensor good = vector_at(&s, 0), bad = vector_at(&s, 3);
    run_and_compare(&s, &good);
    assert_ptr_equal(seen, good.data);
    assert_int_equal(weft_bind_input(s.e, 0, &bad), WEFT_ERR_BINDING);
    assert_string_equal(weft_execution_error(s.e), "input 0 'x': data is not aligned to 64 bytes, as promised");
    assert_int_equal(weft_run(s.e), WEFT_OK); /* with the good one, which stays bound */
    close_staging(&s);
}

/* %s is updated: the caller's buffer has the new value, also where the run worked on a copy. */
static void mutable_inputs_are_copied_back(void **state)
{
    static const char text[] = "graph @g(%s: mut f32[1000], %x: f32[1000]) {\n"
                               "  %a: f32[1000] = custom %s function=add_one\n"
                               "  %n: f32[1000] = add %a, %x\n  return mut %s = %n\n}\n";
    for (int offset = 0; offset < 2; offset++) {
        struct staging s = open_staging(text, WEFT_ALIGN_PAYS, NULL);
        static float addend[N], old[N];
        struct weft_tensor state_tensor = vector_at(&s, offset), result;
        const struct weft_tensor x = tensor_of(addend, 1, &(int64_t){N});
        memcpy(old, state_tensor.data, sizeof old);
        assert_int_equal(weft_bind_input(s.e, 0, &state_tensor), WEFT_OK);
        assert_int_equal(weft_bind_input(s.e, 1, &x), WEFT_OK);
        for (int run = 1; run <= 3; run++) {
            assert_int_equal(weft_run(s.e), WEFT_OK);
            for (int i = 0; i < N; i++)
                assert_true(((float *)state_tensor.data)[i] == old[i] + (float)run * (1 + addend[i]));
        }
        assert_int_equal(weft_output(s.e, 0, &result), WEFT_OK);
        assert_memory_equal(result.data, state_tensor.data, sizeof old);
        if (statistics_of(&s).updating) /* in place: the result is the caller's buffer, not the copy */
            assert_ptr_equal(result.data, state_tensor.data);
        assert_int_equal(statistics_of(&s).staged_bytes, offset ? 2 * (int64_t)sizeof old : 0);
        assert_int_equal(misaligned, 0);
        close_staging(&s);
    }
}

/* The last element before a page that may not be touched, and gaps between rows that are not the library's. */
static void gaps_between_rows_are_left_alone(void **state)
{
    static const char text[] = "graph @g(%s: mut f32[8,3]{0 1 | 5 1}) {\n  %f: f32[24] = reshape %s\n"
                               "  %a: f32[24] = custom %f function=add_one\n  %n: f32[8,3]{0 1 | 5 1} = reshape %a\n"
                               "  return mut %s = %n\n}\n";
    struct weft_context *context = open_wanting();
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan;
    struct weft_execution *e;
    assert_int_equal(try_compile(graph, WEFT_ALIGN_PAYS, NULL, &plan), WEFT_OK);
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    _Alignas(64) float memory[48];
    for (int i = 0; i < 48; i++)
        memory[i] = (float)i;
    const struct weft_tensor s = {.data = memory + 1, .dtype = WEFT_F32, .rank = 2, .extent = {8, 3}, .stride = {5, 1}};
    assert_int_equal(weft_bind_input(e, 0, &s), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    for (int i = 0; i < 48; i++)
        assert_true(memory[i] == (float)i + (i > 0 && i < 39 && (i - 1) % 5 < 3));
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void inputs_are_named_one_by_one(void **state)
{
    struct weft_input_alignment input = {.input = "x", .assume_aligned = WEFT_ALIGN_ALWAYS};
    struct staging s = open_staging(one, WEFT_ALIGN_NEVER, &input);
    const struct weft_tensor bad = vector_at(&s, 1);
    struct weft_plan *none = NULL;
    assert_int_equal(weft_bind_input(s.e, 0, &bad), WEFT_ERR_BINDING);
    input.input = "xx";
    assert_int_equal(try_compile(s.graph, WEFT_ALIGN_NEVER, &input, &none), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(s.context), "xx: there is no such input to be aligned"));
    input.input = NULL;
    assert_int_equal(try_compile(s.graph, WEFT_ALIGN_NEVER, &input, &none), WEFT_ERR_ARGUMENT);
    input = (struct weft_input_alignment){.input = "x", .assume_aligned = 3};
    assert_int_equal(try_compile(s.graph, WEFT_ALIGN_NEVER, &input, &none), WEFT_ERR_ARGUMENT);
    assert_int_equal(try_compile(s.graph, 7, NULL, &none), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(s.context), "assume_aligned is 7"));
    assert_null(none);
    close_staging(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_it_pays_only_misaligned_buffers_are_copied),
        cmocka_unit_test(what_was_assumed_holds_for_later_readers),
        cmocka_unit_test(by_default_the_plan_copies),
        cmocka_unit_test(where_nothing_wants_it_nothing_is_copied),
        cmocka_unit_test(misaligned_buffers_are_refused_where_all_are_aligned),
        cmocka_unit_test(mutable_inputs_are_copied_back),
        cmocka_unit_test(gaps_between_rows_are_left_alone),
        cmocka_unit_test(inputs_are_named_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
