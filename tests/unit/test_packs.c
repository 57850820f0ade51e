/* SPDX-License-Identifier: Apache-2.0 */
/* test_packs.c: weights are packed when the plan is made, for the sizes of the hints, and plans run at others. What a
 * pack is made for is compared whole, and where other sizes want another one the weights are there as they are. */
#include "tests/unit/plan_support.h"

#include "kernels/conv/conv.h"

static const char *const levels[] = {"baseline", "avx2", "avx512"};

/* --- packings ----------------------------------------------------------------------------------------------------- */

/* No byte of a packing is left out. */
static void packings_are_compared_whole(void **state)
{
    const struct weft_packing one = {.order = WEFT_PACK_ROWS, .groups = 1, .o = 2, .c = 3};
    for (size_t i = 0; i < sizeof one; i++) {
        struct weft_packing other = one;
        ((unsigned char *)&other)[i] ^= 1;
        assert_true(weft_packing_same(&one, &one));
        assert_false(weft_packing_same(&one, &other));
    }
}

static struct weft_conv transposed(int64_t pad)
{
    struct weft_conv v = {.cpu = WEFT_CPU_AVX2 | WEFT_CPU_AVX512, .transposed = true, .spatial = 1, .n = 1, .c = 1,
                          .o = 8, .groups = 1, .in_extent = {8}, .kernel = {4}, .stride = {2}, .dilation = {1},
                          .pad = {pad}, .x_stride = {8, 8, 1}, .w_stride = {32, 4, 1}};
    v.out_extent[0] = 18 - pad;
    v.y_stride[0] = 8 * v.out_extent[0], v.y_stride[1] = v.out_extent[0], v.y_stride[2] = 1;
    weft_conv_prepare(&v, 1);
    return v;
}

/* Which taps are a phase's depends on the padding modulo the stride, and on nothing else of it. */
static void phases_depend_on_the_padding(void **state)
{
    if (!weft_gemm_find(WEFT_CPU_ALL)->code->transpose)
        skip(); /* plain loops alone, which pack no phases */
    const struct weft_conv even = transposed(0), odd = transposed(1), next = transposed(2);
    assert_int_equal(even.packing.order, WEFT_PACK_PHASE_PANELS);
    assert_false(weft_packing_same(&even.packing, &odd.packing));
    assert_true(weft_packing_same(&even.packing, &next.packing));
}

/* How many images there are counts neither for the form nor for the packing. */
static void no_images_want_the_packing_of_one(void **state)
{
    struct weft_conv v = {.cpu = WEFT_CPU_AVX2 | WEFT_CPU_AVX512, .spatial = 2, .c = 32, .o = 64, .groups = 1,
                          .in_extent = {16, 16}, .out_extent = {14, 14}, .kernel = {3, 3}, .stride = {1, 1},
                          .dilation = {1, 1}, .x_stride = {8192, 256, 16, 1}, .y_stride = {12544, 196, 14, 1},
                          .w_stride = {288, 9, 3, 1}};
    struct weft_conv one = v;
    if (!weft_gemm_find(WEFT_CPU_ALL)->code->transpose)
        skip();
    one.n = 1;
    weft_conv_prepare(&v, 2);
    weft_conv_prepare(&one, 2);
    assert_true(v.packing.order != WEFT_PACK_NONE && v.packing.order != WEFT_PACK_ROWS);
    assert_true(weft_packing_same(&v.packing, &one.packing));
    v.n = 1, v.out_extent[0] = 0;
    weft_conv_prepare(&v, 2);
    assert_int_equal(v.packing.order, WEFT_PACK_NONE);
}

/* Windows of 5x5 over maps of `size` x `size` in pixels of 16 numbers. */
static struct weft_conv windows(int64_t size, int64_t o)
{
    return (struct weft_conv){.cpu = WEFT_CPU_ALL, .spatial = 2, .n = 1, .c = 16, .o = o, .groups = 1,
                              .in_extent = {size, size}, .out_extent = {size, size}, .kernel = {5, 5}, .stride = {1, 1},
                              .dilation = {1, 1}, .pad = {2, 2}, .x_stride = {16 * size * size, 1, 16 * size, 16},
                              .y_stride = {o * size * size, 1, o * size, o}, .w_stride = {400, 25, 5, 1}};
}

/* What DIRECT takes is found once for a descriptor: of the sizes and the vectors that it has when it is prepared. */
static void what_was_weighed_is_weighed_anew(void **state)
{
    struct weft_conv v = windows(2, 32), small = v, large = windows(64, 32), narrow = windows(64, 8);
    if (!weft_gemm_find(WEFT_CPU_ALL)->code->transpose)
        skip();
    weft_conv_prepare(&small, 1);
    weft_conv_prepare(&large, 1);
    weft_conv_prepare(&narrow, 1);
    assert_true(small.skips != large.skips && small.direct > 0 && small.direct < large.direct);
    for (int i = 0; i < 2; i++) {
        const struct weft_conv *const like = i == 0 ? &large : &small;
        memcpy(v.in_extent, like->in_extent, sizeof v.in_extent);
        memcpy(v.out_extent, like->out_extent, sizeof v.out_extent);
        memcpy(v.x_stride, like->x_stride, sizeof v.x_stride);
        memcpy(v.y_stride, like->y_stride, sizeof v.y_stride);
        weft_conv_prepare(&v, 1);
        assert_int_equal(v.skips, like->skips);
        assert_true(v.direct == like->direct);
    }
    assert_int_equal(narrow.direct_lanes, narrow.gemm.kernel->lanes);
    assert_int_equal(narrow.direct_lanes, 8);
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

/* What became of the last step with a pack. */
struct made {
    bool packed;            /* the run read the pack */
    const char *plain;
};

static struct made made_of(const struct weft_plan *plan, const struct weft_execution *e)
{
    struct made made = {0};
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        const void *const descriptor = weft_frame_descriptor(e->frame, step);
        if (!step->pack)
            continue;
        made.plain = step->plain;
        if (step->kind == &weft_step_conv)
            made.packed = ((const struct weft_conv *)descriptor)->w_packed;
        else if (step->kind == &weft_step_gemm) /* the product is the descriptor's first member */
            made.packed = ((const struct weft_gemm *)descriptor)->b_packed;
    }
    return made;
}

struct level {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
};

static void open_level(struct level *l, const char *cpu, const char *text)
{
    struct weft_context_options options = {.size = sizeof options, .threads = 2, .cpu = cpu};
    assert_int_equal(weft_open(&options, &l->context), WEFT_OK);
    l->graph = parse(l->context, text);
    l->plan = compile(l->graph, 0);
    assert_int_equal(weft_execution_create(l->plan, &l->execution), WEFT_OK);
}

/* Are there loops besides the plain ones? */
static bool has_vectors(const struct level *l) { return weft_gemm_find(l->context->target.cpu)->code->transpose; }

static void close_level(struct level *l)
{
    weft_execution_destroy(l->execution);
    weft_plan_destroy(l->plan);
    weft_graph_destroy(l->graph);
    weft_close(l->context);
}

/* Runs and compares with the evaluator, but for the last digits, in which sums of another order may differ. */
static struct made run_level(struct level *l, const char *cpu, const struct weft_tensor *in, size_t inputs)
{
    struct weft_tensor want = {0}, got;
    for (size_t i = 0; i < inputs; i++)
        assert_int_equal(weft_bind_input(l->execution, i, &in[i]), WEFT_OK);
    if (weft_run(l->execution) != WEFT_OK)
        fail_msg("%s: %s", cpu, weft_execution_error(l->execution));
    assert_int_equal(weft_output(l->execution, 0, &got), WEFT_OK);
    assert_int_equal(weft_evaluate(l->graph, in, inputs, &want, 1), WEFT_OK);
    int64_t count = 1;
    for (int i = 0; i < want.rank; i++) {
        assert_int_equal(got.extent[i], want.extent[i]);
        count *= want.extent[i];
    }
    for (int64_t i = 0; i < count; i++) {
        const double a = ((const float *)got.data)[i], b = ((const float *)want.data)[i];
        if (!(fabs(a - b) <= 1e-4 * (1 + fabs(b))))
            fail_msg("%s: element %lld is %g and not %g", cpu, (long long)i, a, b);
    }
    weft_tensor_free(l->context, &want);
    return made_of(l->plan, l->execution);
}

static float numbers[1 << 20];

/* The batch is empty at the hint: what is packed then is what every batch wants, and nothing is kept beside it. */
static void no_images_at_the_hint(void **state)
{
    static const char *const texts[] = {
        "graph @g<N>(%x: f32[N,32,16,16]) {\n"
        "  %t: f32[N - min(N, 1),32,16,16] = slice %x start=[(min(N, 1)) 0 0 0] end=[N 32 16 16]\n"
        "  %w: f32[64,32,3,3] = const random=3\n"
        "  %y: f32[N - min(N, 1),64,14,14] = conv %t, %w\n  return %y\n}\n",
        "graph @g<N>(%x: f32[N,32,16,16]) {\n"
        "  %t: f32[N - min(N, 1),32,16,16] = slice %x start=[(min(N, 1)) 0 0 0] end=[N 32 16 16]\n"
        "  %w: f32[32,24,3,3] = const random=3\n"
        "  %y: f32[N - min(N, 1),24,33,33] = conv_transpose %t, %w stride=[2 2]\n  return %y\n}\n",
        "graph @g<N>(%x: f32[N,32,16,16]) {\n"
        "  %t: f32[N - min(N, 1),32,16,16] = slice %x start=[(min(N, 1)) 0 0 0] end=[N 32 16 16]\n"
        "  %w: f32[16,100] = const random=3\n  %r: f32[N*512 - min(N, 1)*512,16] = reshape %t\n"
        "  %y: f32[N*512 - min(N, 1)*512,100] = matmul %r, %w\n  return %y\n}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
            struct level l;
            open_level(&l, levels[k], texts[i]);
            for (int64_t n = 0; n <= 3; n++) {
                const struct weft_tensor in = tensor_of(numbers, 4, (const int64_t[]){n, 32, 16, 16});
                const struct made made = run_level(&l, levels[k], &in, 1);
                assert_true(made.packed);
                assert_null(made.plain);
            }
            close_level(&l);
        }
    }
}

/* There are no pixels at the hint: then weights are packed for sizes at which there are some. */
static void no_pixels_at_the_hint(void **state)
{
    static const char text[] = "graph @g<H>(%x: f32[2,32,H,16]) {\n"
                               "  %t: f32[2,32,H - min(H, 1),16] = slice %x start=[0 0 (min(H, 1)) 0] end=[2 32 H 16]\n"
                               "  %w: f32[8,32,1,3] = const random=3\n"
                               "  %y: f32[2,8,H - min(H, 1),14] = conv %t, %w\n  return %y\n}\n";
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        struct level l;
        open_level(&l, levels[k], text);
        for (int64_t h = 0; h <= 20; h = 2 * h + 1) {
            const struct weft_tensor in = tensor_of(numbers, 4, (const int64_t[]){2, 32, h, 16});
            const struct made made = run_level(&l, levels[k], &in, 1);
            assert_true(h < 3 || made.packed);
            assert_true((made.plain == NULL) == !has_vectors(&l)); /* the plain loops read one order */
        }
        close_level(&l);
    }
}

/* The padding of a transposed convolution follows from the width, and with it the order of the taps. */
static void the_padding_depends_on_sizes(void **state)
{
    static const char text[] =
        "graph @g<W>(%x: f32[1,1,W]) {\n  %w: f32[1,8,4] = const random=5\n"
        "  %y: f32[1,8,17] = conv_transpose %x, %w stride=[2] pad=[(-(max(2*W, 15) + 1)/2 + max(2*W, 15) - 7) "
        "((max(2*W, 15) + 1)/2 - 8)] out_pad=[(-2*W + max(2*W, 15))]\n  return %y\n}\n";
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        struct level l;
        open_level(&l, levels[k], text);
        for (int64_t w = 7; w <= 12; w++) {
            const struct weft_tensor in = tensor_of(numbers, 3, (const int64_t[]){1, 1, w});
            assert_non_null(run_level(&l, levels[k], &in, 1).plain);
        }
        close_level(&l);
    }
}

/* All extents and strides are constant, and the padding is not. */
static void only_the_padding_depends_on_sizes(void **state)
{
    static const char text[] =
        "graph @g<P=0..3 hint=2>(%x: f32[1,8,9], %p: f32[P]) {\n  %w: f32[8,24,4] = const random=5\n"
        "  %y: f32[1,24,17] = conv_transpose %x, %w stride=[2] pad=[P (3 - P)]\n  return %y\n}\n";
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        struct level l;
        open_level(&l, levels[k], text);
        for (int64_t p = 0; p <= 3; p++) {
            const struct weft_tensor in[] = {tensor_of(numbers, 3, (const int64_t[]){1, 8, 9}),
                                             tensor_of(numbers + 100, 1, (const int64_t[]){p})};
            const struct made made = run_level(&l, levels[k], in, 2);
            assert_non_null(made.plain);
            assert_true(made.packed == (!has_vectors(&l) || p % 2 == 0));
        }
        close_level(&l);
    }
}

/* An adjoint has one packing at any size, and a product whose rows are side by side for any number of them. */
static void nothing_is_kept_where_one_pack_serves_all(void **state)
{
    static const char text[] = "graph @g<H, W>(%x: f32[2,8,H,W]) {\n  %w: f32[8,24,3,3] = const random=5\n"
                               "  %y: f32[2,24,2*H + 1,2*W + 1] = conv_transpose %x, %w stride=[2 2]\n"
                               "  return %y\n}\n";
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        struct level l;
        open_level(&l, levels[k], text);
        for (int64_t w = 1; w <= 40; w = 3 * w + 1) {
            const struct weft_tensor in = tensor_of(numbers, 4, (const int64_t[]){2, 8, 9, w});
            const struct made made = run_level(&l, levels[k], &in, 1);
            assert_true(made.packed);
            assert_null(made.plain);
        }
        close_level(&l);
    }
}

/* Weights that are numbers of `dtype`, i8 or of 16 bits, are packed as such for few rows, with fewer bytes, and serve
 * any number of rows. `one` is no number of such a type; it is added to a weight. */
static void check_small(const char *cpu, int dtype, const char *one, int64_t hint, bool small)
{
    char text[500];
    const size_t bytes = dtype == WEFT_I8 ? 1 : 2;
    snprintf(text, sizeof text,
             "graph @g<M=1..200 hint=%lld>(%%x: f32[M,600]) {\n  %%r: f32[600,500] = const random=3 scale=%d\n"
             "  %%h: %s[600,500] = cast %%r\n  %%w: f32[600,500] = cast %%h\n  %%o: f32[600,500] = const value=%s\n"
             "  %%v: f32[600,500] = add %%w, %%o\n  %%y: f32[M,500] = matmul %%x, %%v\n  return %%y\n}\n",
             (long long)hint, dtype == WEFT_I8 ? 127 : 1, weft_dtype_name(dtype), one);
    struct level l;
    open_level(&l, cpu, text);
    for (int64_t m = 1; m <= 100; m += m < 10 ? 1 : 29) {
        const struct weft_tensor in = tensor_of(numbers, 2, (const int64_t[]){m, 600});
        assert_true(run_level(&l, cpu, &in, 1).packed);
    }
    const struct weft_packing *packing = NULL;
    for (uint32_t i = 0; i < l.plan->steps; i++)
        if (l.plan->step[i].pack)
            packing = l.plan->pack[l.plan->step[i].pack].packing;
    assert_non_null(packing);
    if (packing->dtype != (small && has_vectors(&l) ? dtype : WEFT_F32))
        fail_msg("%s, %s + %s, %lld rows: the pack has elements of type %lld", cpu, weft_dtype_name(dtype), one,
                 (long long)hint, (long long)packing->dtype);
    const uint32_t pack = l.plan->step[l.plan->steps - 1].pack;
    assert_true(packing->dtype == WEFT_F32 || l.plan->pack[pack].bytes <= (size_t)600 * 512 * bytes);
    close_level(&l);
}

static void weights_of_small_types_stay_small(void **state)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (float)(i * 7 % 31) / 16 - 1;
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        check_small(levels[k], WEFT_I8, "0", 1, true);
        check_small(levels[k], WEFT_I8, "0", 2, true);
        check_small(levels[k], WEFT_BF16, "0", 1, true);
        check_small(levels[k], WEFT_F16, "0", 3, true);
        check_small(levels[k], WEFT_F16, "0", 4, false); /* a small matrix */
        check_small(levels[k], WEFT_F16, "0", 5, false); /* many rows: multiply-adds take longer than reading */
        check_small(levels[k], WEFT_F16, "0.0001", 1, false);
        check_small(levels[k], WEFT_F32, "0", 1, false);
    }
}

/* A plan says why weights take memory twice. */
static void a_remark_says_what_is_kept(void **state)
{
    if (!weft_gemm_find(WEFT_CPU_ALL)->code->transpose)
        skip();
    struct level l;
    open_level(&l, "avx2", "graph @g<H, W>(%x: f32[1,8,H + 2,W + 2]) {\n  %w: f32[16,8,3,3] = const random=5\n"
                           "  %y: f32[1,16,H,W] = conv %x, %w\n  return %y\n}\n");
    struct weft_remark remark = {.size = sizeof remark};
    bool said = false;
    for (size_t i = 0; weft_remark_get(weft_plan_graph(l.plan), i, &remark) == WEFT_OK; i++)
        said |= strcmp(remark.verdict, "kept") == 0 && strstr(remark.reason, "4608 bytes") &&
                strstr(remark.reason, "another form");
    assert_true(said);
    close_level(&l);
}

/* --- what is expected and what is done ---------------------------------------------------------------------------- */

/* How the weights of the last product or convolution of a graph come about, and are they packed? */
static const struct {
    const char *text;
    bool packed, bare; /* with passes, and without */
} weights[] = {
    {"(%x: f32[64,32]) {\n  %w: f32[32,48] = const random=1\n  %y: f32[64,48] = matmul %x, %w", true, true},
    {"(%x: f32[64,32], %w: f32[32,48]) {\n  %y: f32[64,48] = matmul %x, %w", false, false},
    {"(%x: f32[64,32]) {\n  %w: f32[64,96] = const random=1\n  %s: f32[32,48] = slice %w start=[9 4] end=[41 52]\n"
     "  %y: f32[64,48] = matmul %x, %s", true, true},
    {"(%x: f32[64,32]) {\n  %w: f32[48,32] = const random=1\n  %t: f32[32,48] = transpose %w perm=[1 0]\n"
     "  %y: f32[64,48] = matmul %x, %t", true, true},
    {"(%x: f32[64,32]) {\n  %w: f32[32,48] = const random=1\n  %r: f32[32,48]{1 0} = relayout %w\n"
     "  %y: f32[64,48] = matmul %x, %r", true, true},
    /* where the slice begins is no number */
    {"<N=1..8 hint=2>(%x: f32[64,32], %i: f32[N]) {\n  %w: f32[64,48] = const random=1\n"
     "  %s: f32[32,48] = slice %w start=[N 0] end=[(N + 32) 48]\n  %y: f32[64,48] = matmul %x, %s", false, false},
    {"<N=1..8 hint=2>(%x: f32[2,8,16,16], %i: f32[N]) {\n  %w: f32[40,8,3,3] = const random=1\n"
     "  %s: f32[32,8,3,3] = slice %w start=[N 0 0 0] end=[(N + 32) 8 3 3]\n  %y: f32[2,32,14,14] = conv %x, %s", false,
     false},
    /* one row for all; a relayout makes 32 times as many elements of it, but passes read it where it is */
    {"(%x: f32[64,32]) {\n  %w: f32[48] = const random=1\n  %b: f32[32,48] = bcast %w dims=[1]\n"
     "  %r: f32[32,48]{1 0} = relayout %b\n  %y: f32[64,48] = matmul %x, %r", true, false},
    {"(%x: f32[2,8,16,16]) {\n  %w: f32[32,8,3,3] = const random=1\n  %y: f32[2,32,14,14] = conv %x, %w", true, true},
    {"(%x: f32[2,8,16,16], %w: f32[32,8,3,3]) {\n  %y: f32[2,32,14,14] = conv %x, %w", false, false},
    {"(%x: f32[2,4,64,32]) {\n  %w: f32[2,4,32,48] = const random=1\n  %y: f32[2,4,64,48] = matmul %x, %w", false,
     false},
    /* a body's own constant is one; what it is handed is a parameter of it, unless a pass makes it one of its own */
    {"(%n: i64[], %x: f32[64,32]) {\n  graph @body(%i: i64[], %a: f32[64,32]) {\n"
     "    %w: f32[32,32] = const random=1\n    %b: f32[64,32] = matmul %a, %w\n    return %b\n  }\n"
     "  %y: f32[64,32] = loop %n, %x body=@body", true, true},
    {"(%n: i64[], %x: f32[64,32]) {\n  graph @body(%i: i64[], %a: f32[64,32], %w: f32[32,32]) {\n"
     "    %b: f32[64,32] = matmul %a, %w\n    return %b\n  }\n  %w: f32[32,32] = const random=1\n"
     "  %y: f32[64,32] = loop %n, %x, %w body=@body carried=1", true, false},
};

/* The number of steps with a pack, those of bodies included. */
static uint32_t packs_of(const struct weft_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->steps; i++)
        count += plan->step[i].pack != 0;
    for (uint32_t i = 1; i < plan->controls; i++)
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            count += packs_of(plan->control[i].body[k]);
    return count;
}

/* The search for layouts, the lists of choices and the plan ask one function. Whether the elements are kept besides
 * makes no difference to it. Without passes nobody has expected anything, and weights are packed all the same. */
static void what_is_expected_to_be_packed_is(void **state)
{
    static const uint32_t flags[] = {0, WEFT_COMPILE_KEEP_CONSTANTS, WEFT_COMPILE_NO_PASSES};
    struct weft_context *context = open_context(2);
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
            char text[512];
            snprintf(text, sizeof text, "graph @g%s\n  return %%y\n}\n", weights[i].text);
            struct weft_graph *graph = parse(context, text);
            struct weft_plan *plan = compile(graph, flags[k]);
            if (packs_of(plan) != (flags[k] == WEFT_COMPILE_NO_PASSES ? weights[i].bare : weights[i].packed))
                fail_msg("%u packs with flags %u: %s", packs_of(plan), flags[k], text);
            if (flags[k] != WEFT_COMPILE_NO_PASSES && (!plan->has_records || plan->unexpected_units > 0))
                fail_msg("%d units do not run as expected with flags %u: %s", plan->unexpected_units, flags[k], text);
            weft_plan_destroy(plan);
            weft_graph_destroy(graph);
        }
    }
    weft_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packings_are_compared_whole),
        cmocka_unit_test(phases_depend_on_the_padding),
        cmocka_unit_test(no_images_want_the_packing_of_one),
        cmocka_unit_test(what_was_weighed_is_weighed_anew),
        cmocka_unit_test(no_images_at_the_hint),
        cmocka_unit_test(no_pixels_at_the_hint),
        cmocka_unit_test(the_padding_depends_on_sizes),
        cmocka_unit_test(only_the_padding_depends_on_sizes),
        cmocka_unit_test(nothing_is_kept_where_one_pack_serves_all),
        cmocka_unit_test(weights_of_small_types_stay_small),
        cmocka_unit_test(a_remark_says_what_is_kept),
        cmocka_unit_test(what_is_expected_to_be_packed_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
