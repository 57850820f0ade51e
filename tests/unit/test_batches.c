/* SPDX-License-Identifier: Apache-2.0 */
/* test_batches.c: plans for a hint, run at other numbers of images. Weights are packed when the plan is made, so what
 * they are packed for may not depend on that. An image gets the same bits in any batch. */
#include "tests/unit/plan_support.h"

enum { MOST = 64 };

static struct weft_tensor port_tensor(const struct weft_port *port, int64_t batch, float *data)
{
    struct weft_tensor t = {.data = data, .dtype = WEFT_F32, .rank = port->rank};
    for (int i = 0; i < port->rank; i++)
        t.extent[i] = port->extent[i] < 0 ? batch : port->extent[i];
    weft_tensor_dense(&t);
    if (port->rank == 4 && port->stride[1] == 1) { /* channels-last */
        t.stride[1] = 1;
        t.stride[3] = t.extent[1];
        t.stride[2] = t.extent[3] * t.stride[3];
        t.stride[0] = t.extent[2] * t.stride[2];
    }
    return t;
}

/* Each image is the same, and has to come out as the first of a batch of one. */
static void check_batches(const char *text)
{
    static const int64_t batches[] = {1, 2, 3, 8, 17, MOST};
    struct weft_context *context = open_context(1);
    struct weft_graph *graph = parse(context, text);
    struct weft_plan *plan = compile(graph, 0);
    struct weft_execution *execution;
    struct weft_port in = {.size = sizeof in}, out = {.size = sizeof out};
    assert_int_equal(weft_execution_create(plan, &execution), WEFT_OK);
    assert_int_equal(weft_plan_input(plan, 0, &in), WEFT_OK);
    assert_int_equal(weft_plan_output(plan, 0, &out), WEFT_OK);
    float *first = NULL;
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        struct weft_tensor x = port_tensor(&in, batches[b], NULL), y;
        const int64_t image = weft_tensor_count(&x) / batches[b];
        float *const data = malloc((size_t)(image * batches[b]) * sizeof *data);
        for (int64_t i = 0; i < image * batches[b]; i++)
            data[i] = sinf((float)(i % image));
        x.data = data;
        assert_int_equal(weft_bind_input(execution, 0, &x), WEFT_OK);
        if (weft_run(execution) != WEFT_OK)
            fail_msg("%s", weft_execution_error(execution));
        assert_int_equal(weft_output(execution, 0, &y), WEFT_OK);
        const int64_t result = weft_tensor_count(&y) / batches[b];
        if (!first) {
            first = malloc((size_t)result * sizeof *first);
            memcpy(first, y.data, (size_t)result * sizeof *first);
            assert_true(isfinite(first[0]));
        }
        for (int64_t n = 0; n < batches[b]; n++)
            if (memcmp((const float *)y.data + n * result, first, (size_t)result * sizeof *first) != 0)
                fail_msg("image %lld of %lld is another: %s", (long long)n, (long long)batches[b], text);
        free(data);
    }
    free(first);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

struct shape {
    int c, o, side, kernel, groups, pad, stride;
};

static void convolutions(const char *layout)
{
    static const struct shape shapes[] = {
        {64, 4, 5, 1, 1, 0, 1},   {64, 64, 3, 3, 1, 1, 1}, {64, 64, 2, 3, 1, 1, 1}, {16, 16, 9, 3, 1, 1, 1},
        {3, 8, 11, 3, 1, 1, 2},   {32, 32, 7, 3, 32, 1, 1}, {16, 32, 6, 3, 4, 1, 1}, {8, 1, 7, 3, 1, 1, 1},
        {64, 64, 7, 1, 1, 0, 1},  {24, 48, 1, 1, 1, 0, 1},  {33, 17, 4, 1, 1, 0, 2}, {16, 6, 8, 1, 1, 0, 1},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int hint = 1; hint <= MOST; hint *= 8) {
            const struct shape s = shapes[i];
            const int out = (s.side + 2 * s.pad - s.kernel) / s.stride + 1;
            char text[512];
            snprintf(text, sizeof text,
                     "graph @g<N=1..64 hint=%d>(%%x: f32[N,%d,%d,%d]%s) {\n"
                     "  %%w: f32[%d,%d,%d,%d] = const random=1\n"
                     "  %%y: f32[N,%d,%d,%d]%s = conv %%x, %%w pad=[%d %d %d %d] stride=[%d %d] groups=%d\n"
                     "  return %%y\n}",
                     hint, s.c, s.side, s.side, layout, s.o, s.c / s.groups, s.kernel, s.kernel, s.o, out, out, layout,
                     s.pad, s.pad, s.pad, s.pad, s.stride, s.stride, s.groups);
            check_batches(text);
        }
}

static void images_in_planes(void **state) { convolutions(""); }
static void images_in_pixels(void **state) { convolutions("{0 2 3 1}"); }

/* No terms: zeros, whatever the layout. */
static void no_channels(void **state)
{
    static const char *const texts[] = {
        "graph @g<N=1..64>(%x: f32[N,2,8,8]) {\n %w: f32[8,0,3,3] = const random=1\n"
        " %e: f32[N,0,8,8] = slice %x start=[0 0 0 0] end=[N 0 8 8]\n %y: f32[N,8,6,6] = conv %e, %w\n return %y\n}",
        "graph @g<N=1..64>(%x: f32[N,2,8,8]) {\n %w: f32[0,8,3,3] = const random=1\n"
        " %e: f32[N,0,8,8] = slice %x start=[0 0 0 0] end=[N 0 8 8]\n"
        " %y: f32[N,8,17,17] = conv_transpose %e, %w stride=[2 2]\n return %y\n}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_batches(texts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_in_planes),
        cmocka_unit_test(images_in_pixels),
        cmocka_unit_test(no_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
