/* SPDX-License-Identifier: Apache-2.0 */
/* golden_run.c: runs the tests of one file. Besides what a test asks for, every graph must survive, before and after
 * its passes: printing and parsing again, copying, validation, a second run that gives the same text, and the strip
 * law (stripped or not, it computes the same). */
#include "tools/golden.h"
#include "eval/eval.h"
#include "kernels/kernels.h"
#include "plan/plan.h"
#include "tools/tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GRAPHS 64
#define MAX_EVALUATED (1 << 18) /* elements of all values, beyond which the strip law is not executed */

struct run {
    struct weft_context *context;
    const struct weft_golden_file *file;
    const struct weft_golden_case *test;
    struct weft_target target;
    struct weft_arena arena;             /* texts of the test */
    struct weft_graph *made[MAX_GRAPHS]; /* freed with the test */
    int count;
    struct weft_graph *now;              /* on which passes run */
    const char *result;                  /* text after the passes */
    bool bless, failed, differs;
};

static bool fail(struct run *run, const char *format, ...) WEFT_PRINTF(2, 3);
static bool fail(struct run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("FAIL %s:%d: %s: ", run->file->path, run->test->line, run->test->name);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    run->failed = true;
    return false;
}

static struct weft_graph *keep(struct run *run, struct weft_graph *graph)
{
    if (graph && run->count < MAX_GRAPHS)
        run->made[run->count++] = graph;
    return graph;
}

static const char *print(struct run *run, const struct weft_graph *graph, const char *const *under)
{
    struct weft_text text = {.context = run->context, .arena = &run->arena};
    weft_print_graph(graph, &(struct weft_print_options){.under = under}, &text);
    return text.data;
}

/* --- what holds for every graph ----------------------------------------------------------------------------------- */

/* The bytes of a constant that was printed by its content address. */
static struct weft_blob *find_blob(void *user, const char *hash, uint64_t *ret_offset)
{
    const struct weft_graph *graph = user;
    for (uint32_t i = 1; i < graph->nodes; i++) {
        const struct weft_node_info *info = &graph->node[i];
        if (info->dead || !info->constant || info->constant->kind != WEFT_CONST_BLOB)
            continue;
        const struct weft_type *type = weft_type_of(graph, (weft_val){.id = info->first_result});
        const int64_t count = weft_dim_value(weft_type_elements(graph->dims, type));
        char found[33];
        weft_blob_hash((const char *)info->constant->blob->data + info->constant->offset,
                       (size_t)weft_dtype_bytes(type->dtype, count), found);
        if (strcmp(found, hash) == 0) {
            *ret_offset = info->constant->offset;
            return weft_blob_hold(info->constant->blob);
        }
    }
    struct weft_blob *found = NULL;
    for (uint32_t i = 0; i < graph->bodies && !found; i++)
        found = find_blob(graph->body[i], hash, ret_offset);
    return found;
}

static void show_difference(const char *want, const char *got, const char *want_name, const char *got_name)
{
    weft_diff_print(want, got, want_name, got_name, 1);
}

static struct weft_graph *copy_of(struct run *run, const struct weft_graph *graph)
{
    struct weft_graph *copy = NULL;
    weft_graph_copy(graph, &copy);
    return keep(run, copy);
}

static bool check_round_trip(struct run *run, struct weft_graph *graph, const char *when)
{
    const char *text = print(run, graph, NULL);
    const struct weft_parse_options options = {.name = run->file->path, .find_blob = find_blob, .user = graph};
    struct weft_graph *again = keep(run, weft_parse_graph(run->context, text, strlen(text), 0, &options, NULL));
    if (!again)
        return fail(run, "what is printed %s does not parse:\n%s\n%s", when, weft_last_error(run->context), text);
    const char *second = print(run, again, NULL);
    if (strcmp(text, second) != 0) {
        fail(run, "printed %s, parsed and printed again, it is another text", when);
        show_difference(text, second, "printed", "printed again");
        return false;
    }
    const char *copy = print(run, copy_of(run, graph), NULL);
    if (strcmp(text, copy) != 0) {
        fail(run, "a copy made %s prints another text", when);
        show_difference(text, copy, "graph", "copy");
        return false;
    }
    return true;
}

static bool check_valid(struct run *run, struct weft_graph *graph, const char *when)
{
    struct weft_finding *finding;
    const uint32_t count = weft_find_errors(graph, &run->arena, &finding);
    if (count == 0)
        return true;
    const char **under = weft_new(&run->arena, const char *, graph->nodes);
    fail(run, "%u broken rules %s", count, when);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t node = finding[i].node.id;
        if (node && under[node])
            under[node] = weft_arena_format(&run->arena, "%s\n%s", under[node], finding[i].message);
        else if (node)
            under[node] = finding[i].message;
        else
            printf("  %s\n", finding[i].message);
    }
    fputs(print(run, graph, under), stdout);
    return false;
}

/* --- evaluation --------------------------------------------------------------------------------------------------- */

/* What a graph is evaluated on. */
struct draw {
    enum { AT_HINT, AT_LOW, ABOVE_LOW, SIZES } size; /* of every symbol */
    bool hostile; /* values that rules get wrong, instead of harmless ones */
};

static const int64_t *draw_symbols(struct run *run, const struct weft_graph *graph, const struct draw *draw)
{
    const uint32_t count = weft_symbol_count(graph->dims);
    int64_t *symbols = weft_new(&run->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_symbol_info *info = weft_symbol_at(graph->dims, i);
        symbols[i] = info->hint ? info->hint : info->low > 1 ? info->low : 1;
        if (draw->size != AT_HINT)
            symbols[i] = info->low + (draw->size == ABOVE_LOW && info->low < info->high);
    }
    return symbols;
}

/* Harmless: floats between low and high; integers and bool 0 or 1, which are legal indices nearly everywhere. Hostile
 * integers of rank 0 stay small: they may say how often a loop runs. */
static void draw_element(const struct run *run, const struct draw *draw, struct weft_tensor *tensor, int64_t i,
                         uint64_t bits)
{
    static const double reals[] = {0, -0.0,  INFINITY, -INFINITY, NAN,  1,     -1,
                                   0.5, -2.5, 1e-30,   3e38,      -3e38, 65504, 1e300};
    static const int64_t whole[] = {0, 1, 2, 3, -1, 127, -128, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                    (INT64_C(1) << 53) + 1, -100};
    const int dtype = tensor->dtype, n = dtype == WEFT_BOOL ? 2 : tensor->rank == 0 ? 5 : 14;
    const double low = run->test->evaluate ? run->test->low : -1, high = run->test->evaluate ? run->test->high : 1;
    if (weft_dtype_is_float(dtype))
        weft_store_real(dtype, tensor->data, i,
                        draw->hostile ? reals[bits % 14] : low + (high - low) * (double)(bits >> 11) * 0x1p-53);
    else
        weft_store_integer(dtype, tensor->data, i, draw->hostile ? whole[bits % (unsigned)n] : (int64_t)(bits >> 63));
}

static bool make_input(const struct run *run, const struct weft_graph *graph, weft_val param, const struct draw *draw,
                       const int64_t *symbols, uint64_t *state, struct weft_tensor *tensor)
{
    const struct weft_type *type = weft_type_of(graph, param);
    *tensor = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= tensor->extent[i] = weft_dim_evaluate(graph->dims, type->extent[i], symbols);
    weft_tensor_dense(tensor);
    tensor->data = count >= 0 ? calloc((size_t)count + 1, 8) : NULL;
    for (int64_t i = 0; tensor->data && i < count; i++)
        draw_element(run, draw, tensor, i, weft_tool_next_random(state));
    return tensor->data != NULL;
}

/* NULL after an error, which is the context's last. */
static struct weft_tensor *evaluate(struct run *run, const struct weft_graph *graph, const struct draw *draw)
{
    struct weft_tensor *in = weft_new(&run->arena, struct weft_tensor, graph->params + 1);
    struct weft_tensor *out = weft_new(&run->arena, struct weft_tensor, graph->returns + 1);
    const int64_t *symbols = draw_symbols(run, graph, draw);
    uint64_t state = run->test->seed;
    bool right = true;
    for (uint32_t i = 0; i < graph->params; i++)
        right = make_input(run, graph, graph->param[i], draw, symbols, &state, &in[i]) && right;
    right = right && weft_eval_graph(graph, in, graph->params, out, graph->returns) == WEFT_OK;
    for (uint32_t i = 0; i < graph->params; i++)
        free(in[i].data);
    return right ? out : NULL;
}

static void release(struct run *run, const struct weft_graph *graph, struct weft_tensor *tensor)
{
    for (uint32_t i = 0; tensor && i < graph->returns; i++)
        weft_tensor_free(run->context, &tensor[i]);
}

static bool compare(struct run *run, const struct weft_graph *graph, const struct weft_tensor *want,
                    const struct weft_tensor *got, bool exact, const char *what)
{
    for (uint32_t i = 0; i < graph->returns; i++) {
        double bound = exact ? 0 : run->test->has_tolerance ? run->test->tolerance : weft_tool_bound(graph, NULL, i);
        struct weft_comparison result;
        char message[256];
        if (!weft_tool_compare(&got[i], &want[i], bound, &result, message))
            return fail(run, "%s: result %u: %s", what, i, message);
        if (!result.same)
            return fail(run,
                        "%s: result %u differs by %g of its largest magnitude, the bound is %g (NaN or infinite on one "
                        "side: %lld elements)",
                        what, i, result.max_rel, bound, (long long)result.nans);
    }
    return true;
}

/* Sizes at which the first graph is an error say nothing about the second, but for those that the text hints at. */
static bool check_draw(struct run *run, const struct weft_graph *before, const struct weft_graph *after, bool exact,
                       const struct draw *draw, const char *what)
{
    struct weft_tensor *want = evaluate(run, before, draw), *got = want ? evaluate(run, after, draw) : NULL;
    bool same = !want && draw->size != AT_HINT;
    if (got)
        same = compare(run, before, want, got, exact, what);
    else if (!same)
        fail(run, "%s: it cannot be evaluated: %s", what, weft_last_error(run->context));
    release(run, before, want);
    release(run, after, got);
    return same;
}

/* Both graphs on the same random inputs: at the hinted sizes, at the smallest and just above them, and where every bit
 * has to agree also on hostile numbers. */
static bool check_same(struct run *run, const struct weft_graph *before, const struct weft_graph *after, bool exact,
                       const char *what)
{
    static const char *const sizes[SIZES] = {"", ", smallest sizes", ", sizes above the smallest"};
    if (before->returns != after->returns)
        return fail(run, "%s: it returned %u values and now returns %u", what, before->returns, after->returns);
    const bool every_bit = exact || (run->test->has_tolerance && run->test->tolerance == 0);
    const int last = weft_symbol_count(before->dims) > 0 ? ABOVE_LOW : AT_HINT;
    for (int size = AT_HINT; size <= last; size++)
        for (int hostile = 0; hostile <= every_bit; hostile++) {
            const struct draw draw = {.size = size, .hostile = hostile};
            const char *how = weft_arena_format(&run->arena, "%s%s%s", what, sizes[size],
                                                hostile ? ", hostile numbers" : "");
            if (!check_draw(run, before, after, exact, &draw, how))
                return false;
        }
    return true;
}

static double elements(const struct weft_graph *graph)
{
    double sum = 0;
    for (uint32_t i = 1; i < graph->values; i++) {
        double product = 1;
        for (int axis = 0; axis < graph->value[i].type.rank; axis++)
            product *= (double)weft_dim_hint(graph->dims, graph->value[i].type.extent[axis]);
        sum += product;
    }
    return sum;
}

/* Dropping all that says how, and keeping what, changes no bit of any result. */
static bool check_strip(struct run *run, struct weft_graph *graph)
{
    struct weft_graph *stripped = copy_of(run, graph);
    if (!weft_strip(stripped))
        return true;
    if (!check_valid(run, stripped, "after stripping"))
        return false;
    if (weft_strip(stripped))
        return fail(run, "stripping it twice changes it twice");
    return elements(graph) > MAX_EVALUATED || check_same(run, graph, stripped, /* exact= */ true, "stripping");
}

/* --- one test ----------------------------------------------------------------------------------------------------- */

static struct weft_graph *parse(struct run *run)
{
    const struct weft_parse_options options = {.name = run->file->path};
    return keep(run,
                weft_parse_graph(run->context, run->file->text, run->file->bytes, run->test->index, &options, NULL));
}

static bool after_pass(void *user, const char *pass)
{
    struct run *run = user;
    const char *when = weft_arena_format(&run->arena, "after %s", pass);
    return check_valid(run, run->now, when) && check_round_trip(run, run->now, when);
}

static bool check_expected(struct run *run)
{
    char *expected = weft_golden_expected(run->file, run->test);
    const bool same = expected && strcmp(expected, run->result) == 0;
    run->differs = !same;
    if (!same && !run->bless) {
        fail(run, run->test->expect_first ? "the text is not the expected one" : "there is no #> block");
        if (expected)
            weft_diff_print(expected, run->result, "expected", "got",
                            run->test->expect_first ? run->test->expect_first : run->test->end + 1);
    }
    free(expected);
    return same || run->bless;
}

static bool run_passes(struct run *run, struct weft_graph *graph, bool check)
{
    run->now = graph;
    if (run->test->passes[0] &&
        !weft_opt_passes(graph, run->test->passes, &run->target, check ? after_pass : NULL, run))
        return run->failed ? false : fail(run, "%s", weft_last_error(run->context));
    if (run->test->strip)
        weft_strip(graph);
    return true;
}

static struct weft_plan *compile(struct run *run, const struct weft_graph *graph, uint32_t flags)
{
    struct weft_plan *plan = NULL;
    const struct weft_compile_options options = {.size = sizeof options, .target = &run->target,
                                                 .flags = WEFT_COMPILE_KEEP_CONSTANTS | flags};
    if (weft_compile(graph, &options, &plan) < 0)
        fail(run, "it has no plan: %s", weft_last_error(run->context));
    return plan;
}

/* A copy of the graph that the plan of this one holds: what runs. */
static struct weft_graph *plan_of(struct run *run, const struct weft_graph *graph, bool passes)
{
    struct weft_plan *const plan = compile(run, graph, passes ? 0 : WEFT_COMPILE_NO_PASSES);
    struct weft_graph *const planned = plan ? copy_of(run, weft_plan_graph(plan)) : NULL;
    weft_plan_destroy(plan);
    return planned;
}

/* What the plan moves and computes, or NULL. */
static const char *stats_of(struct run *run, const struct weft_graph *graph)
{
    const uint32_t flags = run->test->passes[0] ? WEFT_COMPILE_NO_PASSES : 0;
    struct weft_plan *const plan = compile(run, graph, flags);
    struct weft_plan *const unfused = plan ? compile(run, graph, flags | WEFT_COMPILE_NO_FUSE) : NULL;
    struct weft_text text = {.context = run->context, .arena = &run->arena};
    if (unfused)
        weft_plan_print_stats(plan, unfused, &text);
    weft_plan_destroy(plan);
    weft_plan_destroy(unfused);
    return text.data;
}

/* What runs is what is printed: read back and planned again, as it stands, it is the same. */
static bool check_plan(struct run *run, struct weft_graph *plan)
{
    const char *text = print(run, plan, NULL);
    const struct weft_parse_options options = {.name = run->file->path, .find_blob = find_blob, .user = plan};
    struct weft_graph *read = keep(run, weft_parse_graph(run->context, text, strlen(text), 0, &options, NULL));
    struct weft_graph *again = read ? plan_of(run, read, /* passes= */ false) : NULL;
    const char *second = again ? print(run, again, NULL) : NULL;
    if (!second)
        return fail(run, "the plan cannot be read back:\n%s\n%s", weft_last_error(run->context), text);
    if (strcmp(text, second) == 0)
        return true;
    fail(run, "the plan, read back and planned again, is another");
    show_difference(text, second, "plan", "plan of the plan");
    return false;
}

/* The graphs that the passes left are those of plans from now on. */
static bool plan_both(struct run *run, struct weft_graph **first, struct weft_graph **second)
{
    if (!run->test->plan)
        return true;
    *first = plan_of(run, *first, !run->test->passes[0]);
    *second = *first ? plan_of(run, *second, !run->test->passes[0]) : NULL;
    return *first && *second && check_valid(run, *first, "in the plan") &&
           check_round_trip(run, *first, "in the plan") && check_plan(run, *first);
}

static int run_test(void *arg)
{
    struct run *run = arg;
    struct weft_graph *const before = parse(run); /* what it says is wrong the others would say again */
    struct weft_graph *first = before ? parse(run) : NULL, *second = first ? parse(run) : NULL;
    if (!second) {
        fail(run, "\n%s", weft_last_error(run->context));
        return WEFT_OK;
    }
    if (!check_round_trip(run, before, "before any pass") || !check_strip(run, before) ||
        !run_passes(run, first, /* check= */ true) || !run_passes(run, second, /* check= */ false))
        return WEFT_OK;
    const char *const stats = run->test->stats ? stats_of(run, first) : NULL;
    const char *const other = run->test->stats ? stats_of(run, second) : NULL;
    if (!plan_both(run, &first, &second))
        return WEFT_OK;
    run->result = run->test->stats ? stats : print(run, first, NULL);
    const char *again = run->test->stats ? other : print(run, second, NULL);
    if (strcmp(run->result, again) != 0) {
        fail(run, "two runs give two texts");
        show_difference(run->result, again, "first run", "second run");
    } else if (check_expected(run) && check_strip(run, first) && run->test->evaluate) {
        check_same(run, before, first, /* exact= */ false, "before and after");
    }
    return WEFT_OK;
}

/* Planned for a level. *ret_block gets the text if it is another than the one expected; the caller frees it. */
static bool run_at(struct weft_context *context, const struct weft_golden_file *file,
                   const struct weft_golden_case *test, const char *level, bool bless, char **ret_block)
{
    struct run run = {.context = context, .file = file, .test = test, .bless = bless};
    weft_arena_open(&run.arena, context);
    if (!weft_opt_target(level, &run.target))
        fail(&run, "no CPU level is called '%s'", level);
    else if (test->own[0] && !(run.target.kernel = weft_golden_kernels(test->own, &run.arena)))
        fail(&run, "own= names what is no op: %s", test->own);
    else if (weft_protected(context, run_test, &run) == WEFT_ERR_NOMEM)
        fail(&run, "out of memory");
    *ret_block = run.result && run.differs ? strdup(run.result) : NULL;
    while (run.count > 0)
        weft_graph_free(run.made[--run.count]);
    weft_arena_close(&run.arena);
    return !run.failed;
}

void weft_golden_run(struct weft_context *context, const struct weft_golden_file *file, bool bless, char **ret_block,
                     struct weft_golden_score *score)
{
    for (int i = 0; i < file->tests; i++) {
        const struct weft_golden_case *const test = &file->test[i];
        const bool everywhere = !test->target[0];
        uint32_t cpu;
        ret_block[i] = NULL;
        if (!everywhere && weft_cpu_parse(test->target, &cpu) && (cpu & ~WEFT_CPU_BUILT)) {
            score->skipped++;
            continue;
        }
        const char *const level = !everywhere ? test->target : WEFT_CPU_BUILT ? "avx2" : "baseline";
        bool right = run_at(context, file, test, level, bless, &ret_block[i]);
        score->wants_bless |= ret_block[i] != NULL;
        if (right && everywhere && WEFT_CPU_BUILT && !ret_block[i]) {
            char *block;
            right = run_at(context, file, test, "baseline", /* bless= */ false, &block);
            if (!right)
                puts("at the baseline: a text that depends on the CPU level names its target");
            free(block);
        }
        score->failed += !right;
        score->passed += right;
    }
}
