/* SPDX-License-Identifier: Apache-2.0 */
/* test_misaligned.c: data of the caller at every address that its elements allow, which weft's own kernels take as it
 * is. Nothing is touched beyond what is bound: inputs and results end, and then begin, where a page begins that may not
 * be touched, or a few elements away from it, which stay as they are. Slices off any boundary, views as another dtype,
 * 4-bit weights in blocks of 144 bytes, an input that is updated. */
#include "plan_support.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 4, STEPS = 16, CANARY = 0x5a };

/* `bytes` whose end, or beginning, is `off` elements away from a page that may not be touched. */
struct guarded {
    char *map;
    size_t room;  /* of the map */
    char *data;
    size_t bytes; /* of data */
};

static struct guarded guard(size_t bytes, size_t off, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + off + page - 1) / page * page;
    struct guarded g = {.room = room + 2 * page, .bytes = bytes};
    g.map = mmap(NULL, g.room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    assert_int_equal(mprotect(g.map, page, PROT_NONE) | mprotect(g.map + page + room, page, PROT_NONE), 0);
    g.data = at_end ? g.map + page + room - bytes - off : g.map + page + off;
    memset(g.map + page, CANARY, room);
    return g;
}

static void release(const struct guarded *g)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (const char *at = g->map + page; at < g->map + g->room - page; at++)
        if ((at < g->data || at >= g->data + g->bytes) && *at != CANARY)
            fail_msg("%lld bytes from the data something was written", (long long)(at - g->data));
    munmap(g->map, g->room);
}

static size_t bytes_of(const struct weft_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->extent[i];
    return (size_t)weft_dtype_bytes(t->dtype, n);
}

/* Exact in every type: whole numbers in bytes, small multiples of 1/8 in floats. */
static void fill(struct weft_tensor *t)
{
    const int64_t n = (int64_t)bytes_of(t) * 8 / weft_dtype_bits(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        const int64_t number = (i * 37 + 11) % 41;
        if (weft_dtype_is_float(t->dtype))
            weft_store_real(t->dtype, t->data, i, (double)(number - 20) / 8);
        else
            weft_store_integer(t->dtype, t->data, i, number);
    }
}

/* What the evaluator finds, for results and, behind them, updated inputs. */
static void reference(const struct weft_graph *g, struct weft_tensor *in, struct weft_tensor *ret)
{
    for (uint32_t i = 0; i < g->params; i++) {
        const struct weft_type *type = weft_type_of(g, g->param[i]);
        in[i] = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
        for (int d = 0; d < type->rank; d++)
            in[i].extent[d] = weft_dim_value(type->extent[d]);
        weft_tensor_dense(&in[i]);
        in[i].data = malloc(bytes_of(&in[i]));
        assert_non_null(in[i].data);
        fill(&in[i]);
    }
    assert_int_equal(weft_evaluate(g, in, g->params, ret, g->returns), WEFT_OK);
}

/* One run with everything `off` elements from a page that may not be touched. */
static void run_at(const struct weft_graph *g, const struct weft_plan *plan, const struct weft_tensor *in,
                   const struct weft_tensor *want, size_t off, bool at_end)
{
    struct guarded from[MOST], to[MOST];
    struct weft_execution *e;
    assert_int_equal(weft_execution_create((struct weft_plan *)plan, &e), WEFT_OK);
    for (uint32_t i = 0; i < g->params; i++) {
        struct weft_tensor t = in[i];
        from[i] = guard(bytes_of(&t), off * (size_t)weft_dtype_bits(t.dtype) / 8, at_end);
        t.data = memcpy(from[i].data, in[i].data, bytes_of(&t));
        assert_int_equal(weft_bind_input(e, i, &t), WEFT_OK);
    }
    for (uint32_t i = 0; i < g->returns; i++) {
        struct weft_tensor t = want[i];
        to[i] = guard(bytes_of(&t), (STEPS - 1 - off) * (size_t)weft_dtype_bits(t.dtype) / 8, at_end);
        t.data = to[i].data;
        assert_int_equal(weft_bind_output(e, i, &t), WEFT_OK);
    }
    if (weft_run(e) != WEFT_OK)
        fail_msg("%s", weft_execution_error(e));
    for (uint32_t i = 0; i < g->returns; i++) {
        assert_memory_equal(to[i].data, want[i].data, bytes_of(&want[i]));
        for (uint32_t p = 0; p < g->params; p++)
            if (weft_is(g->ret[i].mut, g->param[p]))
                assert_memory_equal(from[p].data, want[i].data, bytes_of(&want[i]));
        release(&to[i]);
    }
    for (uint32_t i = 0; i < g->params; i++)
        release(&from[i]);
    weft_execution_destroy(e);
}

static void run_all(const char *text, uint32_t flags)
{
    struct scene s = open_scene(text, flags);
    struct weft_tensor in[MOST], want[MOST] = {{0}};
    assert_true(s.graph->params <= MOST && s.graph->returns <= MOST);
    reference(s.graph, in, want);
    for (size_t off = 0; off < STEPS; off++)
        for (int at_end = 0; at_end < 2; at_end++)
            run_at(s.graph, s.plan, in, want, off, at_end);
    for (uint32_t i = 0; i < s.graph->returns; i++)
        weft_tensor_free(s.context, &want[i]);
    for (uint32_t i = 0; i < s.graph->params; i++)
        free(in[i].data);
    close_scene(&s);
}

static const char *const graphs[] = {
    "graph @inner(%x: f32[1040]) {\n %s: f32[1024] = slice %x start=[1] end=[1025]\n %c: f32[1024] = const value=2\n"
    " %y: f32[1024] = mul %s, %c\n return %y\n}",
    "graph @columns(%x: f32[24,80]) {\n %s: f32[24,64] = slice %x start=[0 1] end=[24 65]\n"
    " %y: f32[24,64] = relu %s\n %z: f32[24] = reduce_max %s axes=[1]\n return %y, %z\n}",
    "graph @behind_the_first(%x: f32[129]) {\n %s: f32[128] = slice %x start=[1] end=[129]\n"
    " %y: f32[128] = add %s, %s\n return %y\n}",
    "graph @as_another_type(%x: bf16[130]) {\n %b: u16[130] = bitcast %x\n"
    " %s: u16[128] = slice %b start=[2] end=[130]\n"
    " %h: f16[128] = bitcast %s\n %n: u16[128] = bitcast %h\n return %n\n}",
    "graph @half_words(%x: u16[1026]) {\n %s: u16[1024] = slice %x start=[2] end=[1026]\n"
    " %r: u16[512,2] = reshape %s\n %l: u16[512,1] = slice %r start=[0 0] end=[512 1]\n"
    " %h: u16[512,1] = slice %r start=[0 1] end=[512 2]\n %lw: u32[512,1] = cast %l\n %hw: u32[512,1] = cast %h\n"
    " %k: u32[512,1] = const value=16\n %up: u32[512,1] = shift_left %hw, %k\n %w: u32[512,1] = bit_or %lw, %up\n"
    " %y: u32[512] = reshape %w\n return %y\n}",
    /* as Q4_K: the scale of a block in two bytes, at odd places too; two weights a byte in the last 128 */
    "graph @four_bits(%q: u8[6,144]) {\n %d: u8[6,1] = slice %q start=[0 0] end=[6 1]\n"
    " %e: u8[6,1] = slice %q start=[0 1] end=[6 2]\n %dw: u16[6,1] = cast %d\n %ew: u16[6,1] = cast %e\n"
    " %k: u16[6,1] = const value=8\n %up: u16[6,1] = shift_left %ew, %k\n %dd: u16[6,1] = bit_or %dw, %up\n"
    " %h: f16[6,1] = bitcast %dd\n %scale: f32[6,1] = cast %h\n %n: u8[6,128] = slice %q start=[0 16] end=[6 144]\n"
    " %m: u8[6,128] = const value=15\n %lo: u8[6,128] = bit_and %n, %m\n %four: u8[6,128] = const value=4\n"
    " %hi: u8[6,128] = shift_right %n, %four\n %both: u8[6,256] = concat %lo, %hi axis=1\n"
    " %f: f32[6,256] = cast %both\n %s: f32[6,256] = bcast %scale dims=[0 1]\n"
    " %y: f32[6,256] = mul %f, %s\n return %y\n}",
    "graph @updated(%w: mut f32[40], %g: f32[41]) {\n %s: f32[40] = slice %g start=[1] end=[41]\n"
    " %n: f32[40] = sub %w, %s\n %y: f32[40] = neg %n\n return mut %w = %n, %y\n}",
    "graph @a_view_of_an_input(%x: f32[70]) {\n %s: f32[64] = slice %x start=[3] end=[67]\n"
    " %y: f32[8,8] = reshape %s\n %z: f32[8,8] = transpose %y perm=[1 0]\n return %y, %z\n}",
    "graph @product(%x: f32[7,33], %w: f32[35,19]) {\n %a: f32[7,32] = slice %x start=[0 1] end=[7 33]\n"
    " %b: f32[32,17] = slice %w start=[3 2] end=[35 19]\n %y: f32[7,17] = matmul %a, %b\n return %y\n}",
};

static void results_are_right_at_any_address(void **state)
{
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        run_all(graphs[i], 0);
        run_all(graphs[i], WEFT_COMPILE_NO_PASSES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_right_at_any_address)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
