/* SPDX-License-Identifier: Apache-2.0 */
/* test_save.c: graphs and plans as files: what was saved and loaded again, in another context, computes the same bits;
 * and the elements and extents that weft.h tells of. */
#include "tests/unit/plan_support.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weft-test-save-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    *state = mkdtemp(folder);
    snprintf(path, sizeof path, "%s/g.weft", folder);
    return *state == NULL;
}

static int remove_folder(void **state)
{
    char data[80];
    snprintf(data, sizeof data, "%s.bin", path);
    unlink(path);
    unlink(data);
    return rmdir(folder);
}

/* Constants that are small, large, folded, shared, splats and a body's. */
static const char model[] = "graph @g<N=1..64 hint=8>(%x: f32[N,32], %n: i64[]) {\n"
                            "  graph @body(%i: i64[], %a: f32[N,48]) {\n"
                            "    %w: f32[48,48] = const random=7\n    %p: f32[N,48] = matmul %a, %w\n"
                            "    %r: f32[N,48] = tanh %p\n    return %r\n  }\n"
                            "  %w: f32[32,48] = const random=1\n  %s: f32[48] = const random=2\n"
                            "  %e: f32[48] = exp %s\n  %f: f32[32,48] = bcast %e dims=[1]\n"
                            "  %v: f32[32,48] = mul %w, %f\n  %b: f32[48] = const value=0.25\n"
                            "  %m: f32[N,48] = matmul %x, %v\n  %c: f32[N,48] = bcast %b dims=[1]\n"
                            "  %y: f32[N,48] = add %m, %c\n  %z: f32[N,48] = loop %n, %y body=@body\n"
                            "  return %z\n}\n";

static float rows[16 * 32];
static int64_t trips = 2;

/* The bits that a graph computes for 16 rows. */
static void run(const struct weft_graph *graph, uint32_t flags, float *ret)
{
    struct weft_plan *plan = compile((struct weft_graph *)graph, flags);
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    const struct weft_tensor x = tensor_of(rows, 2, (const int64_t[]){16, 32});
    const struct weft_tensor n = {.dtype = WEFT_I64, .data = &trips};
    struct weft_tensor z;
    assert_int_equal(weft_bind_input(e, 0, &x), WEFT_OK);
    assert_int_equal(weft_bind_input(e, 1, &n), WEFT_OK);
    assert_int_equal(weft_run(e), WEFT_OK);
    assert_int_equal(weft_output(e, 0, &z), WEFT_OK);
    memcpy(ret, z.data, 16 * 48 * sizeof *ret);
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
}

static int64_t bytes_of(const char *file)
{
    struct stat s;
    return stat(file, &s) == 0 ? (int64_t)s.st_size : -1;
}

static void graphs_come_back(void **state)
{
    float want[16 * 48], got[16 * 48];
    char data[80];
    snprintf(data, sizeof data, "%s.bin", path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = (float)(i * 37 % 101) / 101 - 0.5f;
    struct weft_context *one = open_context(2), *other = open_context(2);
    struct weft_graph *graph = parse(one, model), *again;
    run(graph, 0, want);
    assert_int_equal(weft_save(graph, path), WEFT_OK);
    assert_int_equal(weft_load(other, path, &again), WEFT_OK);
    run(again, 0, got);
    assert_memory_equal(got, want, sizeof want);
    /* A loaded graph, whose elements are mapped from the very file that is replaced. */
    assert_int_equal(weft_save(again, path), WEFT_OK);
    run(again, 0, got);
    assert_memory_equal(got, want, sizeof want);
    weft_graph_destroy(again);
    weft_graph_destroy(graph);
    weft_close(other);
    weft_close(one);
}

static void plans_come_back(void **state)
{
    float want[16 * 48], got[16 * 48];
    struct weft_context *one = open_context(2), *other = open_context(2);
    struct weft_graph *graph = parse(one, model), *again;
    run(graph, 0, want);
    struct weft_plan *lost = compile(graph, 0), *plan = compile(graph, WEFT_COMPILE_KEEP_CONSTANTS);
    assert_int_equal(weft_save(weft_plan_graph(lost), path), WEFT_ERR_INVALID);
    assert_non_null(strstr(weft_last_error(one), "WEFT_COMPILE_KEEP_CONSTANTS"));
    assert_int_equal(weft_save(weft_plan_graph(plan), path), WEFT_OK);
    char *planned, *replanned;
    assert_int_equal(weft_plan_print(plan, &planned), WEFT_OK);
    assert_int_equal(weft_load(other, path, &again), WEFT_OK);
    struct weft_plan *replan = compile(again, WEFT_COMPILE_NO_PASSES);
    assert_int_equal(weft_plan_print(replan, &replanned), WEFT_OK);
    const char *kernel = planned; /* the same kernels, in the same order, for the same values */
    for (const char *at = replanned; (at = strstr(at, " ! ")) != NULL; at++) {
        kernel = strstr(kernel, " ! ");
        assert_non_null(kernel);
        const size_t length = strcspn(at + 3, " \n");
        if (strncmp(kernel, at, 3 + length) != 0)
            fail_msg("%.60s and %.60s", kernel, at);
        kernel++;
    }
    assert_null(strstr(kernel, " ! "));
    run(again, WEFT_COMPILE_NO_PASSES, got);
    assert_memory_equal(got, want, sizeof want);
    weft_free_text(one, planned);
    weft_free_text(other, replanned);
    weft_plan_destroy(replan);
    weft_plan_destroy(plan);
    weft_plan_destroy(lost);
    weft_graph_destroy(again);
    weft_graph_destroy(graph);
    weft_close(other);
    weft_close(one);
}

/* Two constants of one blob share a piece; 64 elements stand in the text. */
static void data_are_written_once(void **state)
{
    char data[80];
    snprintf(data, sizeof data, "%s.bin", path);
    struct weft_context *context = open_context(1);
    struct weft_graph *graph, *clone;
    weft_val w, v, s, y[2];
    float numbers[1000];
    for (int i = 0; i < 1000; i++)
        numbers[i] = (float)i;
    assert_int_equal(weft_graph_create(context, "g", &graph), WEFT_OK);
    assert_int_equal(weft_constant(graph, WEFT_F32, 1, (const int64_t[]){1000}, numbers, &w), WEFT_OK);
    assert_int_equal(weft_constant(graph, WEFT_F32, 1, (const int64_t[]){64}, numbers, &s), WEFT_OK);
    assert_int_equal(weft_constant(graph, WEFT_F32, 1, (const int64_t[]){999}, numbers, &v), WEFT_OK);
    y[0] = w, y[1] = v;
    assert_int_equal(weft_return(graph, y, 2), WEFT_OK);
    assert_int_equal(weft_save(graph, path), WEFT_OK);
    assert_int_equal(bytes_of(data), 4032 + 3996); /* each at a multiple of 64 */
    assert_int_equal(weft_graph_clone(graph, &clone), WEFT_OK);
    assert_int_equal(weft_save(clone, path), WEFT_OK);
    assert_int_equal(bytes_of(data), 4032 + 3996);
    weft_graph_destroy(clone);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void failures_name_the_file(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, model);
    assert_int_equal(weft_save(graph, "/nowhere/at/all.weft"), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(context), "/nowhere/at/all.weft"));
    assert_int_equal(weft_save(graph, folder), WEFT_ERR_IO); /* the data could be written, the text not */
    assert_non_null(strstr(weft_last_error(context), folder));
    char data[80];
    snprintf(data, sizeof data, "%s.bin", folder);
    assert_int_equal(bytes_of(data), -1); /* and nothing is left */
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

static weft_val value_called(const struct weft_graph *graph, const char *name)
{
    for (weft_node n = weft_next_node(graph, (weft_node){0}); n.id; n = weft_next_node(graph, n)) {
        struct weft_value_facts facts = {.size = sizeof facts};
        const weft_val v = weft_node_result(graph, n, 0);
        assert_int_equal(weft_value_read(graph, v, &facts), WEFT_OK);
        if (facts.name && strcmp(facts.name, name) == 0)
            return v;
    }
    fail_msg("no value %%%s", name);
    return (weft_val){0};
}

static int32_t state_of(const struct weft_graph *graph, weft_val v)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    assert_int_equal(weft_value_read(graph, v, &facts), WEFT_OK);
    return facts.constant;
}

/* Weights that passes have computed: what whoever runs the graph by kernels of his own multiplies with. */
static void folded_constants_are_read(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, model);
    const weft_val w = value_called(graph, "w"), v = value_called(graph, "v"), b = value_called(graph, "b");
    struct weft_tensor data = {0}, same = {0}, seven = {0};
    assert_int_equal(state_of(graph, w), WEFT_CONSTANT_RANDOM);
    assert_int_equal(state_of(graph, v), WEFT_CONSTANT_NONE);
    assert_int_equal(state_of(graph, b), WEFT_CONSTANT_SPLAT);
    assert_int_equal(weft_constant_read(graph, v, &data), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "%v is no constant"));
    assert_int_equal(weft_constant_read(graph, w, &data), WEFT_OK);
    assert_int_equal(weft_constant_read(graph, value_called(graph, "s"), &seven), WEFT_OK);
    struct weft_plan *plan = compile(graph, WEFT_COMPILE_KEEP_CONSTANTS);
    const struct weft_graph *const planned = weft_plan_graph(plan);
    const weft_val folded = value_called(planned, "v");
    float own[32 * 48];
    same.data = own;
    assert_int_equal(state_of(planned, folded), WEFT_CONSTANT_STORED);
    assert_int_equal(weft_constant_read(planned, folded, &same), WEFT_OK);
    assert_ptr_equal(same.data, own);
    assert_int_equal(same.rank, 2);
    assert_int_equal(same.extent[0], 32);
    assert_int_equal(same.stride[0], 48);
    for (int i = 0; i < 32 * 48; i++) {
        const float want = ((float *)data.data)[i] * (float)exp(((float *)seven.data)[i % 48]);
        assert_true(fabsf(own[i] - want) <= 1e-6f * fabsf(want));
    }
    struct weft_tensor quarter = {0};
    assert_int_equal(weft_constant_read(graph, b, &quarter), WEFT_OK);
    assert_true(((float *)quarter.data)[47] == 0.25f);
    weft_tensor_free(context, &quarter);
    weft_plan_destroy(plan);
    weft_tensor_free(context, &data);
    weft_tensor_free(context, &seven);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void what_was_given_up_says_so(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, model);
    struct weft_plan *plan = compile(graph, 0);
    const struct weft_graph *const planned = weft_plan_graph(plan);
    const weft_val v = value_called(planned, "v");
    struct weft_tensor data = {0};
    assert_int_equal(state_of(planned, v), WEFT_CONSTANT_GIVEN_UP);
    assert_int_equal(weft_constant_read(planned, v, &data), WEFT_ERR_INVALID);
    assert_null(data.data);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

/* --- extents ------------------------------------------------------------------------------------------------------ */

static void extents_are_read(void **state)
{
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, "graph @g<H=1..100 hint=9, N>(%x: f32[N,H]) {\n"
                                              "  %o: f32[] = const value=0\n  %y: f32[N*H,1] = reshape %x\n"
                                              "  %z: f32[N*H + 1,1] = pad %y, %o pad=[1 0 0 0]\n  return %z\n}\n");
    struct weft_value_facts facts = {.size = sizeof facts};
    char *text;
    int64_t extent;
    assert_int_equal(weft_value_read(graph, weft_graph_return(graph, 0), &facts), WEFT_OK);
    assert_int_equal(weft_extent_text(graph, facts.extent[0], &text), WEFT_OK);
    assert_string_equal(text, "H*N + 1");
    weft_free_text(context, text);
    const struct weft_size sizes[] = {{"N", 5}, {"H", 20}};
    assert_int_equal(weft_extent_at(graph, facts.extent[0], sizes, 2, &extent), WEFT_OK);
    assert_int_equal(extent, 101);
    assert_int_equal(weft_extent_at(graph, facts.extent[0], sizes, 1, &extent), WEFT_OK);
    assert_int_equal(extent, 46); /* H at its hint */
    assert_int_equal(weft_extent_at(graph, facts.extent[1], NULL, 0, &extent), WEFT_OK);
    assert_int_equal(extent, 1);
    assert_int_equal(weft_extent_at(graph, facts.extent[0], &(struct weft_size){"M", 1}, 1, &extent),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "there is no symbol M"));
    assert_int_equal(weft_extent_at(graph, facts.extent[0], &(struct weft_size){"H", 101}, 1, &extent),
                     WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(context), "between 1 and 100, but 101"));
    weft_graph_destroy(graph);
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_come_back),         cmocka_unit_test(plans_come_back),
        cmocka_unit_test(data_are_written_once),    cmocka_unit_test(failures_name_the_file),
        cmocka_unit_test(folded_constants_are_read), cmocka_unit_test(what_was_given_up_says_so),
        cmocka_unit_test(extents_are_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
