/* SPDX-License-Identifier: Apache-2.0 */
/* nomem_passes.h: passes while memory is refused, for test_nomem.c.
 *
 * A pass edits a graph in place, so what it has done stays when it ends halfway: the graph must then be valid and mean
 * the same. The graph below has something to do for every pass of passes/passes.def. Each pass, and the pipeline, runs
 * on it with the n-th request refused for n = 0, 1, 2 …; every time the graph is validated and evaluated. */
#ifndef WEFT_TEST_NOMEM_PASSES_H
#define WEFT_TEST_NOMEM_PASSES_H

#include "kernels/kernels.h"
#include "tests/unit/scarce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* after what it needs */

static const char passes_text[] =
    "weft 1\n"
    "graph @passes<N=1..9>(%x: f32[N,3,4], %c: bool[], %n: i64[], %u: u8[16], %m: f32[5,2], %q: f32[1,2,4,4],\n"
    "                      %seq: f32[5,2,3]) {\n"
    /* cancel_transpose, canonicalize, cse, dce */
    "  %t1: f32[4,N,3] = transpose %x perm=[2 0 1]\n"
    "  %t2: f32[N,3,4] = transpose %t1 perm=[1 2 0]\n"
    "  %zero: f32[N,3,4] = const value=0\n"
    "  %t3: f32[N,3,4] = add %zero, %t2\n"
    "  %e1: f32[N,3,4] = exp %x\n"
    "  %e2: f32[N,3,4] = exp %x\n"
    "  %t4: f32[N,3,4] = add %e1, %e2\n"
    "  %r0: f32[N,3,4] = sub %t4, %t3\n"
    "  %unused: f32[N,3,4] = tanh %x\n"
    /* dead_results: of three carried values one is dead and one never changes, the collection is not read */
    "  graph @trip(%i: i64[], %a: f32[5,2], %b: f32[5,2], %k: f32[5,2], %l: f32[5,2]) {\n"
    "    %a2: f32[5,2] = add %a, %l\n"
    "    %b2: f32[5,2] = mul %b, %k\n"
    "    %e: f32[5,2] = exp %b\n"
    "    return %a2, %b2, %k, %e\n"
    "  }\n"
    "  %mm: f32[5,2] = neg %m\n"
    "  %la: f32[5,2], %lb: f32[5,2], %lk: f32[5,2], %le: f32[3,5,2] = "
    "loop %n, %mm, %m, %mm, %m body=@trip carried=3 length=3\n"
    "  %r1: f32[5,2] = sub %lb, %lk\n"
    /* sink_const */
    "  graph @sunk(%i: i64[], %a: f32[5,2], %k: f32[5,2]) {\n"
    "    %b: f32[5,2] = mul %a, %k\n"
    "    return %b\n"
    "  }\n"
    "  %sk: f32[5,2] = const value=2\n"
    "  %r27: f32[5,2] = loop %n, %m, %sk body=@sunk carried=1\n"
    "  graph @then(%a: f32[5,2], %b: f32[5,2]) {\n"
    "    %r: f32[5,2] = exp %a\n"
    "    %s: f32[5,2] = neg %b\n"
    "    return %r, %s\n"
    "  }\n"
    "  graph @else(%a: f32[5,2], %b: f32[5,2]) {\n"
    "    fuse @opened {\n" /* open_groups */
    "      %g: f32[5,2]{-} = exp %b\n"
    "      %h: f32[5,2] = flip %g axes=[0]\n"
    "    }\n"
    "    return %a, %h\n"
    "  }\n"
    "  %ia: f32[5,2], %ib: f32[5,2] = if %c, %mm, %m then=@then else=@else\n"
    "  %r2: f32[5,2] = relu %ib\n"
    "  %tv: f32[5,1], %r3: i64[5,1] = top_k %m axis=1 k=1\n"
    /* decompose */
    "  %r4: f32[5,2] = softmax %m axis=1\n"
    /* fold_batchnorm, fold_const */
    "  %w0: f32[3,2,1,1] = const value=[1 2 3 4 5 6]\n"
    "  %w1: f32[3,2,1,1] = neg %w0\n"
    "  %bs: f32[3] = const value=[1 2 3]\n"
    "  %bb: f32[3] = const value=[0.5 0.25 0.125]\n"
    "  %bm: f32[3] = const value=[1 0 -1]\n"
    "  %bv: f32[3] = const value=[1 4 0.25]\n"
    "  %cv: f32[1,3,4,4] = conv %q, %w0\n"
    "  %r5: f32[1,3,4,4] = batch_norm %cv, %bs, %bb, %bm, %bv epsilon=0\n"
    "  %r6: f32[1,3,4,4] = conv %q, %w1\n"
    /* fuse_mix_order */
    "  %mo: f32[32768,2] = iota axis=0\n"
    "  %mr: f32[32768] = sum %mo axes=[1]\n"
    "  %mc: f32[2] = mean %mo axes=[0]\n"
    /* fold_range */
    "  %f1: i32[16] = cast %u\n"
    "  %f2: i32[16] = abs %f1\n"
    "  %f3: i32[16] = clamp %f2 low=-1 high=256\n"
    "  %r7: i32[16] = neg %f3\n"
    /* fold_shape */
    "  %h1: i64[2] = extents value=[N 4]\n"
    "  %h2: i64[1] = slice %h1 start=[0] end=[1]\n"
    "  %h3: i64[1] = const value=[2]\n"
    "  %r8: i64[1] = mul %h2, %h3\n"
    /* lower_recurrent */
    "  %gw: f32[2,8,3] = const random=1 scale=1\n"
    "  %gr: f32[2,8,2] = const random=2 scale=1\n"
    "  %gb: f32[2,16] = const random=3 scale=1\n"
    "  %gs: f32[2,2,2] = const value=0.5\n"
    "  %r9: f32[5,2,2,2], %gh: f32[2,2,2], %gc: f32[2,2,2] = "
    "lstm %seq, %gw, %gr, %gb, %gs, %gs direction=bidirectional\n"
    /* scatter_const */
    "  %ck: f32[5,4] = const value=2\n"
    "  %ci: i32[5,1] = const value=[0 3 -1 -4 2]\n"
    "  %cu: f32[5,1] = slice %m start=[0 0] end=[5 1]\n"
    "  %r10: f32[5,4] = scatter_elements %ck, %ci, %cu axis=1\n"
    /* sink_transpose */
    "  %k1: f32[4,N,3] = transpose %x perm=[2 0 1]\n"
    "  %k2: f32[4,N,3] = cumsum %k1 axis=0\n"
    "  %k3: f32[4,N,3] = flip %k2 axes=[0 2]\n"
    "  %k4: f32[N,3,4] = transpose %k3 perm=[1 2 0]\n"
    "  %r11: f32[N,3,4] = neg %k4\n"
    /* split_concat */
    "  %s1: f32[N,3,2] = slice %x start=[0 0 0] end=[N 3 2]\n"
    "  %s2: f32[N,3,2] = slice %x start=[0 0 2] end=[N 3 4]\n"
    "  %s3: f32[N,3,8] = concat %s1, %s2, %t4 axis=2\n"
    "  %s4: f32[N,3,12] = concat %s3, %x axis=2\n"
    "  %r12: f32[N,3,12] = neg %s4\n"
    /* split_reshape */
    "  %j1: f32[N,12] = reshape %x\n"
    "  %j2: f32[N] = reduce_max %j1 axes=[1]\n"
    "  %j3: f32[N,12] = bcast %j2 dims=[0]\n"
    "  %j4: f32[N,12] = sub %j1, %j3\n"
    "  %r13: f32[N,3,4] = reshape %j4\n"
    /* merge_axes */
    "  %ma1: f32[N,3,2,2] = reshape %x\n"
    "  %ma2: f32[N,3,2,2] = relu %ma1\n"
    "  %r18: f32[N,3,4] = reshape %ma2\n"
    /* split_folds */
    "  %sp1: f32[2048,32] = const random=6\n"
    "  %sp2: f32[2048,32] = abs %sp1\n"
    "  %r19: f32[32] = reduce_max %sp2 axes=[0]\n"
    /* sink_concat */
    "  %sk1: f32[520,32] = const random=7\n"
    "  %sk2: f32[520,32] = neg %sk1\n"
    "  %sk3: f32[1040,32] = concat %sk2, %sk1 axis=0\n"
    "  %r20: f32[1040,32] = exp %sk3\n";
static const char passes_more[] =
    /* fuse_attention */
    "  %at0: f32[5,2] = const value=0.5\n"
    "  %at1: f32[5,2] = mul %m, %at0\n"
    "  %at2: f32[5,5] = matmul %at1, %m trans_b=1\n"
    "  %at2z: f32[5,5] = const value=0\n"
    "  %at4: f32[5,5] = tanh %at2\n"
    "  %at5: f32[5,5] = const value=[0 -inf -inf -inf -inf 0 0 -inf -inf -inf 0 0 0 -inf -inf 0 0 0 0 -inf 0 0 0 0 0]\n"
    "  %at6: f32[5] = sum %m axes=[1]\n"
    "  %at7: f32[5,5] = bcast %at6 dims=[1]\n"
    "  %at8: bool[5,5] = lt %at7, %at2z\n"
    "  %at9: f32[5,5] = const value=-3.4e38\n"
    "  %at10: f32[5,5] = select %at8, %at9, %at4\n"
    "  %at11: f32[5,5] = add %at10, %at5\n"
    "  %at3: f32[5,5] = softmax %at11 axis=1\n"
    "  %r21: f32[5,2] = matmul %at3, %m\n"
    /* choose_alternatives: two narrow products of one matrix */
    "  %ap: f32[1,2,4,4] = exp %q\n"
    "  %aq: f32[2,16] = reshape %ap\n"
    "  %aw1: f32[16,4] = const random=1 scale=1\n"
    "  %aw2: f32[16,2] = const random=2 scale=1\n"
    "  %am1: f32[2,4] = matmul %aq, %aw1\n"
    "  %am2: f32[2,2] = matmul %aq, %aw2\n"
    "  %r25: f32[4] = sum %am1 axes=[0]\n"
    "  %r26: f32[2] = sum %am2 axes=[0]\n"
    /* scale_weights */
    "  %sw1: f32[1,2] = slice %m start=[0 0] end=[1 2]\n"
    "  %sw2: f32[1,2,1,1] = reshape %sw1\n"
    "  %sw3: f32[1,2,4,4] = bcast %sw1 dims=[0 1]\n"
    "  %sw4: f32[1,2,4,4] = mul %q, %sw3\n"
    "  %r22: f32[1,1,4,4] = conv %sw4, %sw2\n"
    /* scale_result */
    "  %sr0: f32[2] = sum %m axes=[0]\n"
    "  %sr1: f32[2,512] = bcast %sr0 dims=[0]\n"
    "  %srf: f32[512,512] = const random=1 scale=9\n"
    "  %sr2: i8[512,512] = cast %srf\n"
    "  %sr3: f32[512,512] = cast %sr2\n"
    "  %sr4: f32[512,512] = const value=0.5\n"
    "  %sr5: f32[512,512] = mul %sr3, %sr4\n"
    "  %r24: f32[2,512] = matmul %sr1, %sr5\n"
    /* hoist_slice */
    "  %hs1: f32[5,2] = tanh %m\n"
    "  %hs2: f32[2,2] = slice %hs1 start=[3 0] end=[5 2]\n"
    "  %r23: f32[2,2] = neg %hs2\n"
    /* pad_strides, align_buffers */
    "  %d1: f64[20,512] = const random=5\n"
    "  %d2: f64[20,512] = neg %d1\n"
    "  %r14: f32[2] = custom %d2 function=crossing\n"
    /* propagate_memory_format, for a function */
    "  %d3: f64[20,500] = slice %d1 start=[0 3] end=[20 503]\n"
    "  %r17: f32[2] = custom %d3 function=packing\n"
    /* lower_blocks */
    "  %o1: f32[1,2,4,4]{0 1/16 2 3 1%16} = neg %q\n"
    "  %r15: f32[1,2,4,4] = relu %o1\n"
    /* what is known of the elements of o3 is not known any more, and so on down */
    "  %o2: i64[2] = extents value=[2 3]\n"
    "  %o3: i64[2]{0/4 0%4} = abs %o2\n"
    "  %o4: i64[2] = abs %o3\n"
    "  %o5: i64[2] = abs %o4\n"
    "  %r16: i64[2] = neg %o5\n"
    "  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %gh, %r10, %r11, %r12, %r13, %r14, %r15, %r16, "
    "%r17, %r18, %r19, %r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27\n"
    "}\n";
enum { PASSES_INPUTS = 7, PASSES_RESULTS = 29 };

static inline bool crossing_layout(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static inline void crossing_demand(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    ret->along = 0;
    ret->align = 64;
}

static inline int crossing_run(void *user, const struct weft_custom_call *call)
{
    memset(call->result->data, 0, 2 * sizeof(float));
    return 0;
}

static inline void passes_evaluate(const struct weft_graph *graph, struct weft_context *context,
                                   struct weft_tensor *ret)
{
    static float number[64];
    static uint8_t byte[16];
    bool yes = true;
    int64_t trips = 100;
    for (int i = 0; i < 64; i++)
        number[i] = (float)(i % 7 - 3) / 4;
    for (int i = 0; i < 16; i++)
        byte[i] = (uint8_t)(i * 17);
    const struct weft_tensor inputs[PASSES_INPUTS] = {
        {.data = number, .dtype = WEFT_F32, .rank = 3, .extent = {2, 3, 4}, .stride = {12, 4, 1}},
        {.data = &yes, .dtype = WEFT_BOOL},
        {.data = &trips, .dtype = WEFT_I64},
        {.data = byte, .dtype = WEFT_U8, .rank = 1, .extent = {16}, .stride = {1}},
        {.data = number, .dtype = WEFT_F32, .rank = 2, .extent = {5, 2}, .stride = {2, 1}},
        {.data = number, .dtype = WEFT_F32, .rank = 4, .extent = {1, 2, 4, 4}, .stride = {32, 16, 4, 1}},
        {.data = number, .dtype = WEFT_F32, .rank = 3, .extent = {5, 2, 3}, .stride = {6, 3, 1}},
    };
    memset(ret, 0, PASSES_RESULTS * sizeof *ret);
    if (weft_evaluate(graph, inputs, PASSES_INPUTS, ret, PASSES_RESULTS) != WEFT_OK)
        fail_msg("evaluating: %s", weft_last_error(context));
}

/* Sums in another order round elsewhere: 1e-5 is a hundred roundings of numbers around 1. */
static inline bool passes_agree(const struct weft_tensor *a, const struct weft_tensor *b)
{
    int64_t elements = 1;
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int axis = 0; axis < a->rank; axis++) {
        if (a->extent[axis] != b->extent[axis])
            return false;
        elements *= a->extent[axis];
    }
    if (a->dtype != WEFT_F32)
        return memcmp(a->data, b->data, (size_t)elements * weft_dtype_bits(a->dtype) / 8) == 0;
    const float *x = a->data, *y = b->data;
    for (int64_t i = 0; i < elements; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-5f * (1 + fabsf(x[i]))))
            return false;
    return true;
}

/* One pass, or for NULL the pipeline, with one request refused; true when nothing had to be refused. */
static inline bool passes_refuse(const char *pass, int64_t n, bool once)
{
    struct scarce scarce = {.left = -1};
    const struct weft_allocator allocator = scarce_allocator(&scarce);
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = 1};
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_tensor before[PASSES_RESULTS], after[PASSES_RESULTS];
    const struct weft_custom crossing = {.size = sizeof crossing, .name = "crossing", .most_operands = 1,
                                         .run = crossing_run, .layout = crossing_layout, .demand = crossing_demand},
                             packing = {.size = sizeof packing, .name = "packing", .most_operands = 1,
                                        .run = crossing_run};
    assert_int_equal(weft_open(&options, &context), WEFT_OK);
    assert_int_equal(weft_register(context, &crossing), WEFT_OK);
    assert_int_equal(weft_register(context, &packing), WEFT_OK);
    char text[sizeof passes_text + sizeof passes_more]; /* compilers promise strings of 4095 characters */
    const int length = snprintf(text, sizeof text, "%s%s", passes_text, passes_more);
    if (weft_parse(context, text, (size_t)length, "passes", &graph) != WEFT_OK)
        fail_msg("%s", weft_last_error(context));
    passes_evaluate(graph, context, before);

    scarce.left = n;
    scarce.once = once;
    const int status = pass ? weft_run_pass(graph, pass, NULL) : weft_run_pipeline(graph, NULL);
    const bool refused = scarce.refused > 0;
    scarce.left = -1;
    const char *name = pass ? pass : "pipeline";
    if (status == 0 && !refused && pass)
        fail_msg("pass %s changes nothing in the graph of tests/unit/nomem_passes.h, so nothing is refused while it "
                 "works: add lines to passes_text that it rewrites", pass);
    if (status != (refused ? WEFT_ERR_NOMEM : 1))
        fail_msg("%s with request %lld refused: status %d", name, (long long)n, status);
    if (weft_validate(graph) != WEFT_OK)
        fail_msg("%s with request %lld refused: %s", name, (long long)n, weft_last_error(context));
    passes_evaluate(graph, context, after);
    for (int i = 0; i < PASSES_RESULTS; i++) {
        if (!passes_agree(&before[i], &after[i]))
            fail_msg("%s with request %lld refused: result %d is another", name, (long long)n, i);
        weft_tensor_free(context, &before[i]);
        weft_tensor_free(context, &after[i]);
    }
    weft_graph_destroy(graph);
    weft_close(context);
    assert_int_equal(scarce.blocks, 0);
    return !refused;
}

static void refused_passes_leave_the_graph_as_good(void **state)
{
    static const char *const names[] = {
#define PASS(name, help) #name,
#include "passes/passes.def"
#undef PASS
        NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i] && strcmp(names[i], "scale_result") == 0 && !WEFT_CPU_BUILT)
            continue; /* plain loops read no packs of small types, for which it works */
        for (int once = 0; once < 2; once++)
            for (int64_t n = 0; !passes_refuse(names[i], n, once); n += 1 + n / 100)
                continue;
    }
}

#endif
