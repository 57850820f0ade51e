/* SPDX-License-Identifier: Apache-2.0 */
/* test_coverage.c: which op has a kernel for which dtype, as a table that kernels/COVERAGE.md must hold word for word,
 * and what each gives beside the reference evaluator. An op without a kernel stands in sched/no_kernel.def.
 *
 * Every op is compiled for every dtype of arithmetic, elementwise ops by their operands, all others from
 * op_samples.def; what the rules refuse is left out. Plans with a kernel run at one and at three threads: twice, the
 * second time without an allocation, with the same bits, and near the evaluator's numbers.
 *
 * usage: [WEFT_SOURCE=…] test_coverage [--write] */
#include "tests/unit/plan_support.h"
#include "tests/unit/sample_support.h"

/* What computes an op for a dtype; of several forms of the op, the last of these. */
enum cover { REFUSED, KERNEL, PLAIN, EVALUATOR };

enum { FIRST = SAMPLE_FIRST, LAST = SAMPLE_LAST, MOST = 8, MEMORY = 1 << 20 };

static char coverage_file[4096];
static bool write_file;

/* Ops that need no kernel. */
static const struct {
    int op;
    const char *reason;
} excused[] = {
#define NO_KERNEL(op, reason) {WEFT_OP_##op, reason},
#include "sched/no_kernel.def"
};

/* --- running ------------------------------------------------------------------------------------------------------ */

static void compare(const char *what, int dtype, const struct weft_tensor *got, const struct weft_tensor *want)
{
    const int64_t n = weft_tensor_count(want);
    if (weft_tensor_count(got) != n)
        fail_msg("%s %s: %lld elements instead of %lld", what, weft_dtype_name(dtype),
                 (long long)weft_tensor_count(got), (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!sample_near(got, want, i))
            fail_msg("%s %s: element %lld is %.9g instead of %.9g", what, weft_dtype_name(dtype), (long long)i,
                     weft_load_real(got->dtype, got->data, i), weft_load_real(want->dtype, want->data, i));
}

/* Runs twice; the results are copied to `ret`. */
static void run(const struct weft_plan *plan, const struct weft_tensor *in, const struct weft_tensor *want,
                const char *what, int dtype, char *ret)
{
    const struct weft_graph *g = plan->graph;
    struct weft_execution *e;
    struct weft_tensor got;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    bind_inputs(e, g, in, what);
    for (int again = 0; again < 2; again++) {
        const int before = allocations;
        if (weft_run(e) != WEFT_OK)
            fail_msg("%s %s: %s", what, weft_dtype_name(dtype), weft_execution_error(e));
        if (again && allocations != before)
            fail_msg("%s %s: allocates while it runs", what, weft_dtype_name(dtype));
    }
    for (uint32_t i = 0; i < g->returns; i++) {
        assert_int_equal(weft_output(e, i, &got), WEFT_OK);
        compare(what, dtype, &got, &want[i]);
        if (weft_tensor_count(&got) > 0)
            memcpy(ret, got.data, weft_tensor_bytes(&got));
        ret += weft_tensor_bytes(&got);
    }
    weft_execution_destroy(e);
}

static enum cover cover_by(const struct weft_plan *plan)
{
    enum cover cover = plan->fallbacks ? EVALUATOR : KERNEL;
    for (uint32_t i = 0; i < plan->steps && cover == KERNEL; i++)
        cover = plan->step[i].kind == &weft_step_plain || plan->step[i].kind == &weft_step_weigh ? PLAIN : KERNEL;
    return cover;
}

static enum cover check(struct weft_context *const *context, struct weft_graph *graph, int dtype, const char *what)
{
    static char memory[MEMORY], one[MEMORY], three[MEMORY];
    struct weft_plan *plan = compile(graph, 0);
    const enum cover cover = cover_by(plan);
    static const int64_t sizes[] = {7, 60};
    for (int i = 0; i < 2 && cover != EVALUATOR; i++) {
        struct weft_tensor in[MOST], want[MOST] = {{0}};
        sample_fill(graph, in, sizes[i], memory);
        if (weft_evaluate(graph, in, graph->params, want, graph->returns) != WEFT_OK)
            fail_msg("%s %s: %s", what, weft_dtype_name(dtype), weft_last_error(graph->context));
        memset(one, 0, sizeof one);
        memset(three, 0, sizeof three);
        run(plan, in, want, what, dtype, one);
        char *text;
        struct weft_graph *copy;
        assert_int_equal(weft_print(graph, &text), WEFT_OK);
        assert_int_equal(weft_parse(context[1], text, strlen(text), "copy", &copy), WEFT_OK);
        struct weft_plan *parallel = compile(copy, 0);
        run(parallel, in, want, what, dtype, three);
        if (memcmp(one, three, sizeof one) != 0)
            fail_msg("%s %s: other bits at three threads", what, weft_dtype_name(dtype));
        weft_plan_destroy(parallel);
        weft_graph_destroy(copy);
        weft_free_text(graph->context, text);
        for (uint32_t k = 0; k < graph->returns; k++)
            weft_tensor_free(graph->context, &want[k]);
    }
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    return cover;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static bool accepted[SAMPLES]; /* by some dtype */

static enum cover cover_of(struct weft_context *const *context, int op, int dtype)
{
    enum cover cover = REFUSED;
    bool sampled = false;
    for (size_t i = 0; i < SAMPLES; i++) {
        if (samples[i].op != op)
            continue;
        sampled = true;
        struct weft_graph *graph = sample_graph(context[0], &samples[i], dtype);
        const enum cover form = graph ? check(context, graph, dtype, weft_ops[op].name) : REFUSED;
        accepted[i] |= form != REFUSED;
        cover = form > cover ? form : cover;
    }
    if (!sampled && (weft_ops[op].traits & WEFT_ELEMENTWISE)) {
        struct weft_graph *graph = sample_elementwise(context[0], op, dtype);
        if (graph)
            cover = check(context, graph, dtype, weft_ops[op].name);
    }
    return cover;
}

static void list_dtypes(char **at, const enum cover *cover, enum cover wanted)
{
    int count = 0, legal = 0;
    for (int dtype = FIRST; dtype <= LAST; dtype++) {
        count += cover[dtype] == wanted;
        legal += cover[dtype] != REFUSED;
    }
    const int total = count;
    if (count == legal && count > 0) {
        *at += sprintf(*at, "all");
        return;
    }
    for (int dtype = FIRST; dtype <= LAST; dtype++)
        if (cover[dtype] == wanted)
            *at += sprintf(*at, "%s%s", count-- == total ? "" : " ", weft_dtype_name(dtype));
}

static const char head[] =
    "# What has a kernel\n\n"
    "Made by `build/tests/test_coverage --write`, and checked by it. Of the types that an op accepts: those for\n"
    "which plans use the families made for speed; those with a plain kernel, at least for one form of the op; those\n"
    "that the reference evaluator computes. An op that a pass takes apart counts by its parts. Types smaller than a\n"
    "byte are left out.\n\n"
    "| op | kernels | plain kernels | evaluator |\n|---|---|---|---|\n";

static const char *excuse_of(int op)
{
    for (size_t i = 0; i < sizeof excused / sizeof *excused; i++)
        if (excused[i].op == op)
            return excused[i].reason;
    return NULL;
}

/* Before the table, which --write would make right. */
static void check_op(int op, const enum cover *cover)
{
    const char *name = weft_ops[op].name, *excuse = excuse_of(op);
    bool legal = false, falls_back = false;
    for (int dtype = FIRST; dtype <= LAST; dtype++) {
        legal |= cover[dtype] != REFUSED;
        falls_back |= cover[dtype] == EVALUATOR;
    }
    if (!legal && !excuse)
        fail_msg("%s has no sample that any dtype accepts: add one to tests/unit/op_samples.def", name);
    if (falls_back && !excuse)
        fail_msg("%s has no kernel for one of its types: add one (kernels/README.md), or a line with the reason to "
                 "sched/no_kernel.def", name);
    if (legal && !falls_back && excuse)
        fail_msg("%s has kernels for all of its types: take its line out of sched/no_kernel.def", name);
}

static void test_table(void **state)
{
    static char table[1 << 16], there[1 << 16];
    char *at = table;
    struct weft_context *context[2] = {open_context(1), open_context(3)};
    at += sprintf(at, "%s", head);
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        enum cover cover[LAST + 1] = {REFUSED};
        bool legal = false;
        for (int dtype = FIRST; dtype <= LAST; dtype++)
            legal |= (cover[dtype] = cover_of(context, op, dtype)) != REFUSED;
        check_op(op, cover);
        if (!legal)
            continue;
        at += sprintf(at, "| `%s` | ", weft_ops[op].name);
        list_dtypes(&at, cover, KERNEL);
        at += sprintf(at, " | ");
        list_dtypes(&at, cover, PLAIN);
        at += sprintf(at, " | ");
        list_dtypes(&at, cover, EVALUATOR);
        at += sprintf(at, " |\n");
    }
    for (size_t i = 0; i < SAMPLES; i++)
        if (!accepted[i])
            fail_msg("no dtype is accepted by: %s", samples[i].lines);
    weft_close(context[0]);
    weft_close(context[1]);
    FILE *file = fopen(coverage_file, write_file ? "w" : "r");
    assert_non_null(file);
    if (write_file)
        fputs(table, file);
    else
        there[fread(there, 1, sizeof there - 1, file)] = '\0';
    fclose(file);
    if (!write_file && strcmp(table, there) != 0)
        fail_msg("%s is not what kernels compute: run build/tests/test_coverage --write and read the difference",
                 coverage_file);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    const char *source = getenv("WEFT_SOURCE");
    snprintf(coverage_file, sizeof coverage_file, "%s/kernels/COVERAGE.md", source ? source : ".");
    write_file = argc > 1 && strcmp(argv[1], "--write") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
