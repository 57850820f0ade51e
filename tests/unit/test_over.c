/* SPDX-License-Identifier: Apache-2.0 */
/* test_over.c: groups that write over what they read. Of each graph it is known whether the group may: then its plan
 * puts %b, which a flip makes that is in no group, where a result of the group is. It computes the same bits as a plan
 * without aliases, at each CPU level, with one to four threads, interpreted and as compiled C, with results that go
 * past the caches and without. */
#include "compile_steps.h"

enum { MOST_PARAMS = 6 };

struct trial {
    const char *name, *text;
    const char *over;   /* values that lie where a result of the group is, "" none */
    const char *why;    /* of a refusal: part of the remark, or NULL */
};

#define HEAD_OF(type) OPEN_OF("", type)
#define OPEN_OF(symbols, type) "graph @g" symbols "(%p: " type ") {\n  %b: " type " = flip %p axes=[0]\n"
#define SOFTMAX(type, kept, axis, dims) OPEN_SOFTMAX("", type, kept, axis, dims)
#define OPEN_SOFTMAX(symbols, type, kept, axis, dims) \
    OPEN_OF(symbols, type) "  fuse @g {\n    %m: " kept "{-} = reduce_max %b axes=[" axis "]\n" \
    "    %mb: " type "{-} = bcast %m dims=[" dims "]\n    %d: " type "{-} = sub %b, %mb\n" \
    "    %e: " type "{-} = exp %d\n    %s: " kept "{-} = sum %e axes=[" axis "]\n" \
    "    %sb: " type "{-} = bcast %s dims=[" dims "]\n    %y: " type " = div %e, %sb\n  }\n  return %y\n}\n"
#define SCAN(type, first, second, results) \
    HEAD_OF(type) "  fuse @g {\n    " first "\n    " second "\n  }\n  return " results "\n}\n"
#define NORM(type, n, c, g, result, ending) \
    "graph @g(%p: " type ", %g: f32[" c "], %h: f32[" c "]) {\n  %b: " type " = flip %p axes=[0]\n  fuse @g {\n" \
    "    %w: f32[" n "," c "]{-} = cast %b\n    %m: f32[" n "]{-} = mean %w axes=[1]\n" \
    "    %mb: f32[" n "," c "]{-} = bcast %m dims=[0]\n    %d: f32[" n "," c "]{-} = sub %w, %mb\n" \
    "    %q: f32[" n "," c "]{-} = mul %d, %d\n    %v: f32[" n "]{-} = mean %q axes=[1]\n" \
    "    %r: f32[" n "]{-} = rsqrt %v\n    %rb: f32[" n "," c "]{-} = bcast %r dims=[0]\n" \
    "    %x: f32[" n "," c "]{-} = mul %d, %rb\n    %gb: f32[" n "," c "]{-} = bcast %" g " dims=[1]\n" \
    "    %z: f32[" n "," c "]{-} = mul %x, %gb\n    %hb: f32[" n "," c "]{-} = bcast %h dims=[1]\n" \
    "    %u: f32[" n "," c "]{-} = add %z, %hb\n    %y: " result " = " ending "\n  }\n  return %y\n}\n"

static const struct trial trials[] = {
    {"softmax of rows", SOFTMAX("f32[37,130]", "f32[37]", "1", "0"), "b", NULL},
    {"softmax of columns", SOFTMAX("f32[37,130]", "f32[130]", "0", "1"), "b", NULL},
    {"softmax of a middle axis", SOFTMAX("f32[5,33,40]", "f32[5,40]", "1", "0 2"), "b", NULL},
    {"softmax of two axes", SOFTMAX("f32[9,20,33]", "f32[9]", "1 2", "0"), "b", NULL},
    {"softmax of everything", SOFTMAX("f32[9,33]", "f32[]", "0 1", ""), "b", NULL},
    {"softmax of long rows", SOFTMAX("f32[7,9001]", "f32[7]", "1", "0"), "b", NULL},
    {"softmax of short rows", SOFTMAX("f32[700,7]", "f32[700]", "1", "0"), "b", NULL},
    {"softmax of open sizes", OPEN_SOFTMAX("<N, M>", "f32[N,M]", "f32[N]", "1", "0"), "b", NULL},
    {"layer norm", NORM("f32[41,200]", "41", "200", "g", "f32[41,200]", "max %u, %hb"), "b", NULL},
    {"layer norm, bf16", NORM("bf16[41,200]", "41", "200", "g", "bf16[41,200]", "cast %u"), "b", NULL},
    {"layer norm, f16", NORM("f16[41,200]", "41", "200", "g", "f16[41,200]", "cast %u"), "b", NULL},
    {"layer norm, bf16 over f32", NORM("f32[41,200]", "41", "200", "g", "bf16[41,200]", "cast %u"), "", NULL},
    {"log-softmax",
     HEAD_OF("f32[50,129]") "  fuse @g {\n    %m: f32[50]{-} = reduce_max %b axes=[1]\n"
     "    %mb: f32[50,129]{-} = bcast %m dims=[0]\n    %d: f32[50,129]{-} = sub %b, %mb\n"
     "    %e: f32[50,129]{-} = exp %d\n    %s: f32[50]{-} = sum %e axes=[1]\n    %l: f32[50]{-} = log %s\n"
     "    %lb: f32[50,129]{-} = bcast %l dims=[0]\n    %y: f32[50,129] = sub %d, %lb\n  }\n  return %y\n}\n",
     "b", NULL},
    {"a sum that goes on, and its RMS norm",
     "graph @g(%p: f32[60,96], %q: f32[60,96], %g: f32[96]) {\n  %b: f32[60,96] = flip %p axes=[0]\n"
     "  %c: f32[60,96] = flip %q axes=[0]\n  fuse @g {\n    %s: f32[60,96] = add %b, %c\n"
     "    %m: f32[60,96]{-} = mul %s, %s\n    %v: f32[60]{-} = mean %m axes=[1]\n    %r: f32[60]{-} = rsqrt %v\n"
     "    %rb: f32[60,96]{-} = bcast %r dims=[0]\n    %x: f32[60,96]{-} = mul %s, %rb\n"
     "    %gb: f32[60,96]{-} = bcast %g dims=[1]\n    %y: f32[60,96] = mul %x, %gb\n  }\n  return %s, %y\n}\n",
     "b c", NULL},
    {"a chain with broadcasts",
     "graph @g(%p: f32[3,50,70], %s: f32[50], %t: f32[70]) {\n  %b: f32[3,50,70] = flip %p axes=[2]\n  fuse @g {\n"
     "    %sb: f32[3,50,70]{-} = bcast %s dims=[1]\n    %tb: f32[3,50,70]{-} = bcast %t dims=[2]\n"
     "    %m: f32[3,50,70]{-} = mul %b, %sb\n    %a: f32[3,50,70]{-} = add %m, %tb\n"
     "    %e: f32[3,50,70]{-} = sigmoid %a\n    %y: f32[3,50,70] = mul %e, %b\n  }\n  return %y\n}\n", "b", NULL},
    {"gates of channels",
     "graph @g(%p: f32[6,40,9,11], %s: f32[6,40]) {\n  %b: f32[6,40,9,11] = flip %p axes=[0]\n"
     "  %c: f32[6,40] = flip %s axes=[0]\n  fuse @g {\n    %t: f32[6,40]{-} = sigmoid %c\n"
     "    %tb: f32[6,40,9,11]{-} = bcast %t dims=[0 1]\n    %y: f32[6,40,9,11] = mul %b, %tb\n  }\n  return %y\n}\n",
     "b", NULL},
    {"a row's number over another",
     "graph @g(%p: f32[50,90], %s: f32[50]) {\n  %b: f32[50] = flip %s axes=[0]\n  fuse @g {\n"
     "    %sb: f32[50,90]{-} = bcast %b dims=[0]\n    %m: f32[50,90]{-} = mul %p, %sb\n"
     "    %v: f32[50]{-} = reduce_max %m axes=[1]\n    %y: f32[50] = add %v, %b\n  }\n  return %y\n}\n", "b", NULL},
    {"whole numbers over floats",
     HEAD_OF("f32[30,70]") "  fuse @g {\n    %r: f32[30,70]{-} = round %b\n    %y: i32[30,70] = cast %r\n  }\n"
     "  return %y\n}\n", "b", NULL},
    {"stored with other axes",
     "graph @g(%p: f32[1,40,30]) {\n  %b: f32[1,40,30] = flip %p axes=[1]\n  %v: f32[40,30] = reshape %b\n"
     "  fuse @g {\n    %e: f32[40,30]{-} = exp %v\n    %y: f32[40,30] = sub %e, %v\n  }\n  return %y\n}\n", "b", NULL},
    {"the last of two results",
     HEAD_OF("f32[40,30]") "  fuse @g {\n    %o: f32[40,30] = exp %b\n    %y: f32[40,30] = sub %o, %b\n  }\n"
     "  return %o, %y\n}\n", "b", NULL},
    {"a scan of rows", SCAN("f32[40,300]", "%v: f32[40,300]{-} = mul %b, %b", "%y: f32[40,300] = cumsum %v axis=1",
                            "%y"), "b", NULL},
    {"a scan of rows in chunks", SCAN("f32[3,49000]", "%v: f32[3,49000]{-} = sigmoid %b",
                                      "%y: f32[3,49000] = cumsum %v axis=1 reverse=1 exclusive=1", "%y"), "b", NULL},
    {"what a scan of chunks reads itself", SCAN("f32[3,49000]", "%y: f32[3,49000] = cummax %b axis=1",
                                                "%z: bf16[3,49000] = cast %y", "%y, %z"), "b", NULL},
    {"behind a scan in chunks", SCAN("f32[1,70000]", "%s: f32[1,70000]{-} = cumsum %b axis=1",
                                     "%y: f32[1,70000] = mul %s, %b", "%y"), "b", NULL},
    {"a scan of columns", SCAN("f32[50,700]", "%v: f32[50,700]{-} = sigmoid %b",
                               "%y: f32[50,700] = cumsum %v axis=0 exclusive=1", "%y"), "b", NULL},
    /* refused */
    {"in front of a scan in chunks", SCAN("f32[3,49000]", "%y: f32[3,49000] = exp %b\n    %s: f32[3,49000]{-} = "
                                          "cumsum %y axis=1", "%z: bf16[3,49000] = cast %s", "%y, %z"), "",
     "it is read again where a scan begins with the next chunk"},
    {"what an exclusive scan reads itself", SCAN("f32[40,300]", "%y: f32[40,300] = cumsum %b axis=1 exclusive=1",
                                                 "%z: bf16[40,300] = cast %y", "%y, %z"), "",
     "an exclusive scan reads it"},
    {"a transpose", HEAD_OF("f32[40,40]") "  %t: f32[40,40] = transpose %b perm=[1 0]\n  fuse @g {\n"
     "    %e: f32[40,40]{-} = exp %b\n    %y: f32[40,40] = add %e, %t\n  }\n  return %y\n}\n", "",
     "it is read at another index than is written"},
    {"a transpose that the group makes", HEAD_OF("f32[40,40]") "  fuse @g {\n"
     "    %t: f32[40,40]{-} = transpose %b perm=[1 0]\n    %e: f32[40,40]{-} = exp %b\n"
     "    %y: f32[40,40] = add %e, %t\n  }\n  return %y\n}\n", "", "it is read at another index than is written"},
    {"a second reading behind the result",
     HEAD_OF("f32[50,90]") "  fuse @g {\n    %y: f32[50,90] = sigmoid %b\n    %s: f32[50]{-} = sum %y axes=[1]\n"
     "    %sb: f32[50,90]{-} = bcast %s dims=[0]\n    %m: f32[50,90]{-} = mul %b, %sb\n"
     "    %z: bf16[50,90] = cast %m\n  }\n  return %y, %z\n}\n", "", "it is read again behind that, by %m"},
    {"what may be made again behind the result",
     HEAD_OF("f32[50,90]") "  fuse @g {\n    %e: f32[50,90]{-} = neg %b\n    %s: f32[50]{-} = sum %e axes=[1]\n"
     "    %sb: f32[50,90]{-} = bcast %s dims=[0]\n    %y: f32[50,90] = sub %e, %sb\n"
     "    %m: f32[50,90]{-} = mul %e, %sb\n"
     "    %z: bf16[50,90] = cast %m\n  }\n  return %y, %z\n}\n", "", "it is read again behind that, by %m"},
    {"rows of a table",
     "graph @g(%p: f32[40,30], %q: f32[40,30], %i: i64[40]) {\n  %b: f32[40,30] = flip %p axes=[0]\n  fuse @g {\n"
     "    %e: f32[40,30]{-} = gather %b, %i axis=0\n    %y: f32[40,30] = add %e, %q\n  }\n  return %y\n}\n", "",
     "it is read at indices that are looked up"},
    {"a later reader",
     HEAD_OF("f32[40,30]") "  fuse @g {\n    %e: f32[40,30]{-} = exp %b\n    %y: f32[40,30] = sub %e, %b\n  }\n"
     "  %z: f32[30,40] = transpose %b perm=[1 0]\n  %k: f32[30,40] = cumsum %z axis=0\n  return %y, %k\n}\n", "",
     "it is read later, by %k"},
};
enum { TRIALS = sizeof trials / sizeof *trials };

static bool compiles;

/* --- running ------------------------------------------------------------------------------------------------------ */

struct inputs {
    size_t count;
    struct weft_tensor in[MOST_PARAMS];
};

static void make_inputs(const struct weft_plan *plan, struct inputs *ret)
{
    ret->count = weft_plan_inputs(plan);
    for (size_t i = 0; i < ret->count; i++) {
        struct weft_port port = {.size = sizeof port};
        int64_t elements = 1;
        assert_int_equal(weft_plan_input(plan, i, &port), WEFT_OK);
        struct weft_tensor *const t = &ret->in[i];
        *t = (struct weft_tensor){.dtype = port.dtype, .rank = port.rank};
        for (int axis = port.rank; axis-- > 0; elements *= t->extent[axis]) {
            t->extent[axis] = port.extent[axis] < 0 ? 45 : port.extent[axis];
            t->stride[axis] = elements;
        }
        t->data = malloc((size_t)elements * 8 + 8);
        assert_non_null(t->data);
        for (int64_t k = 0; k < elements; k++)
            if (weft_dtype_is_float(t->dtype))
                weft_store_real(t->dtype, t->data, k, (double)((k * 37 + (int64_t)i * 11) % 1009) / 251 - 2);
            else
                weft_store_integer(t->dtype, t->data, k, (k * 7 + 3) % 40);
    }
}

static struct weft_plan *plan_of(struct weft_graph *graph, uint32_t cpu, int threads, size_t l3, bool aliases)
{
    struct weft_target target = {.cpu = cpu, .threads = threads, .l1 = 32 << 10, .l2 = 1 << 20, .l3 = l3,
                                 .arithmetic = WEFT_CONV_F2, .name = "test"};
    const struct weft_compile_options options = {.size = sizeof options, .target = &target,
                                                 .flags = WEFT_COMPILE_NO_PASSES};
    struct weft_plan *plan = NULL;
    if (!aliases)
        setenv("WEFT_SKIP", "mark_aliases", 1);
    if (weft_compile(graph, &options, &plan) != WEFT_OK)
        fail_msg("%s", weft_last_error(graph->context));
    unsetenv("WEFT_SKIP");
    return plan;
}

static struct weft_execution *run(const struct weft_plan *plan, const struct inputs *inputs, bool as_code)
{
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    for (size_t i = 0; i < inputs->count; i++)
        assert_int_equal(weft_bind_input(e, i, &inputs->in[i]), WEFT_OK);
    if (weft_run(e) != WEFT_OK)
        fail_msg("%s", weft_execution_error(e));
    if (as_code)
        run_compiled(e);
    return e;
}

static void compare(const struct trial *trial, const struct weft_execution *over, const struct weft_execution *apart,
                    const char *how)
{
    for (size_t i = 0; i < weft_plan_outputs(over->plan); i++) {
        struct weft_tensor a, b;
        assert_int_equal(weft_output(over, i, &a), WEFT_OK);
        assert_int_equal(weft_output(apart, i, &b), WEFT_OK);
        if (memcmp(a.data, b.data, weft_tensor_elements(&a) * weft_dtype_bits(a.dtype) / 8) != 0)
            fail_msg("%s: result %zu is another in place: %s\n%s", trial->name, i, how, trial->text);
    }
}

/* The names of what lies where a result of a group is. */
static void check_over(const struct trial *trial, const struct weft_plan *plan)
{
    const struct weft_graph *const g = plan->graph;
    char found[64] = "";
    for (uint32_t i = 1; i < g->values; i++) {
        const struct weft_alias *const alias = &plan->alias.of[i];
        if (alias->kind == WEFT_ALIAS_OVER && weft_unit_of(&plan->units, weft_def(g, alias->in))->nodes > 1)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", *found ? " " : "",
                     plan->alias.label[i]);
    }
    if (strcmp(found, trial->over) != 0)
        fail_msg("%s: over \"%s\" instead of \"%s\"\n%s", trial->name, found, trial->over, trial->text);
    bool says = !trial->why;
    for (uint32_t i = 0; i < g->remarks; i++)
        says |= strcmp(g->remark[i].who, "mark_aliases") == 0 && strcmp(g->remark[i].where, "%b") == 0 &&
                trial->why && strstr(g->remark[i].reason, trial->why);
    if (!says)
        fail_msg("%s: does not say \"%s\"", trial->name, trial->why);
}

static void run_trial(const struct trial *trial, struct weft_context *const *contexts, uint32_t cpu)
{
    static const size_t caches[] = {32 << 20, 1 << 10};
    for (int k = 0; k < 8; k++) {
        const int threads = 1 + k % 4;
        const size_t l3 = caches[k / 4];
        struct weft_graph *const graph = parse(contexts[threads - 1], trial->text);
        struct weft_plan *const over = plan_of(graph, cpu, threads, l3, true);
        struct weft_plan *const apart = plan_of(graph, cpu, threads, l3, false);
        struct inputs inputs;
        check_over(trial, over);
        make_inputs(over, &inputs);
        for (int as_code = 0; as_code <= compiles; as_code++) {
            char how[96];
            snprintf(how, sizeof how, "cpu 0x%x, %d threads, a cache of %zu bytes, %s", cpu, threads, l3,
                     as_code ? "compiled" : "interpreted");
            struct weft_execution *const a = run(over, &inputs, as_code), *const b = run(apart, &inputs, as_code);
            compare(trial, a, b, how);
            weft_execution_destroy(a);
            weft_execution_destroy(b);
        }
        for (size_t i = 0; i < inputs.count; i++)
            free(inputs.in[i].data);
        weft_plan_destroy(over);
        weft_plan_destroy(apart);
        weft_graph_destroy(graph);
    }
}

static void groups_write_over_what_they_read(void **state)
{
    struct weft_context *contexts[4];
    struct weft_cpu machine;
    weft_cpu_detect(&machine);
    compiles = has_compiler();
    for (int i = 0; i < 4; i++)
        contexts[i] = open_context(i + 1);
    for (size_t i = 0; i < TRIALS; i++) {
        uint32_t cpu = machine.flags;
        do
            run_trial(&trials[i], contexts, cpu);
        while (weft_cpu_lower(cpu, &cpu));
    }
    for (int i = 0; i < 4; i++)
        weft_close(contexts[i]);
    if (compiles)
        assert_true(compiled > not_compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_write_over_what_they_read)};
    return cmocka_run_group_tests(tests, NULL, leave_folder);
}
