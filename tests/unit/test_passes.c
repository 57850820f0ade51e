/* SPDX-License-Identifier: Apache-2.0 */
/* test_passes.c: what surrounds a pass: names and results, skipping, bisecting, printing, snapshots, timing,
 * remarks. What the passes themselves do is in tests/golden; here every graph of those
 * files serves to show that passes are idempotent, alone and as a pipeline. */
#include "kernels/kernels.h"
#include "passes/passes.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The constant moves right, x * 1 goes, silu is opened, and what nobody reads is dropped. */
static const char *const text = "weft 1\n"
                                "graph @f(%x: f32[4]) {\n"
                                "  %one: f32[4] = const value=1\n"
                                "  %a: f32[4] = mul %one, %x\n"
                                "  %dead: f32[4] = exp %a\n"
                                "  %y: f32[4] = silu %a\n"
                                "  return %y\n"
                                "}\n";

struct notes {
    int count;
    char lines[4096];
};

static void collect(void *user, const struct weft_diagnostic *diagnostic)
{
    struct notes *notes = user;
    if (diagnostic->severity != WEFT_NOTE)
        return;
    notes->count++;
    strncat(notes->lines, diagnostic->message, sizeof notes->lines - strlen(notes->lines) - 1);
    strncat(notes->lines, "\n", sizeof notes->lines - strlen(notes->lines) - 1);
}

struct fixture {
    struct weft_context *context;
    struct weft_graph *graph;
    struct notes notes;
};

static void open_text(struct fixture *f, const char *source)
{
    memset(f, 0, sizeof *f);
    const struct weft_context_options options = {
        .size = sizeof options, .diagnose = collect, .diagnose_user = &f->notes};
    assert_int_equal(weft_open(&options, &f->context), WEFT_OK);
    assert_int_equal(weft_parse(f->context, source, strlen(source), "test", &f->graph), WEFT_OK);
}

static void close_fixture(struct fixture *f)
{
    weft_graph_destroy(f->graph);
    weft_close(f->context);
}

static bool prints(struct fixture *f, const char *needle)
{
    char *printed;
    assert_int_equal(weft_print(f->graph, &printed), WEFT_OK);
    const bool found = strstr(printed, needle) != NULL;
    weft_free_text(f->context, printed);
    return found;
}

/* --- names, results, order -------------------------------------------------------------------------------------- */

static void runs_by_name(void **state)
{
    struct fixture f;
    open_text(&f, text);
    assert_int_equal(weft_run_pass(f.graph, "canonicalize", NULL), 1);
    assert_int_equal(weft_run_pass(f.graph, "canonicalize", NULL), 0);
    assert_int_equal(weft_run_pass(f.graph, "fold-const", NULL), 0);
    assert_int_equal(weft_run_pass(f.graph, "fold_const", NULL), 0);
    assert_int_equal(weft_run_pass(f.graph, "fold_everything", NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(f.context), "fold_everything"));
    assert_int_equal(weft_run_pass(f.graph, "dce_", NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_run_pass(f.graph, NULL, NULL), WEFT_ERR_ARGUMENT);
    close_fixture(&f);
}

static void refuses_invalid_graphs(void **state)
{
    struct fixture f;
    open_text(&f, text);
    weft_clear_returns(f.graph); /* a graph without a return line is not valid */
    assert_int_equal(weft_run_pass(f.graph, "dce", NULL), WEFT_ERR_INVALID);
    assert_int_equal(weft_run_pipeline(f.graph, NULL), WEFT_ERR_INVALID);
    close_fixture(&f);
}

static void pipeline_reaches_a_fixed_point(void **state)
{
    struct fixture f;
    open_text(&f, text);
    assert_int_equal(weft_run_pipeline(f.graph, NULL), 1);
    assert_int_equal(f.graph->live_nodes, 2); /* sigmoid, mul */
    assert_int_equal(weft_run_pipeline(f.graph, NULL), 0);
    close_fixture(&f);
}

/* Does a pass have golden texts, and a row in the list of files? */
static void look_for(const char *name)
{
    const char *source = getenv("WEFT_SOURCE");
    char path[4096], row[128];
    static char manual[1 << 17];
    struct stat folder;
    snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", name);
    if (stat(path, &folder) != 0)
        fail_msg("pass %s has no golden texts: write some into tests/golden/%s/ (CONTRIBUTING.md)", name, name);
    snprintf(path, sizeof path, "%s/passes/README.md", source ? source : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    manual[fread(manual, 1, sizeof manual - 1, file)] = '\0';
    fclose(file);
    snprintf(row, sizeof row, "`%s.c`", name);
    if (!strstr(manual, row))
        fail_msg("pass %s has no row in the list of files of passes/README.md", name);
}

static void table_is_sorted_and_complete(void **state)
{
    for (unsigned i = 0; i < weft_pass_count; i++) {
        const char *name = weft_passes[i].name;
        assert_ptr_equal(weft_pass_find(name), &weft_passes[i]);
        if (strlen(weft_passes[i].help) <= 10)
            fail_msg("pass %s: passes.def says too little about it: \"%s\"", name, weft_passes[i].help);
        if (i > 0 && strcmp(weft_passes[i - 1].name, name) >= 0)
            fail_msg("pass %s stands behind %s: passes.def is in alphabetical order", name, weft_passes[i - 1].name);
        look_for(name);
    }
}

/* --- skipping, bisecting ---------------------------------------------------------------------------------------- */

static void skips_passes_and_rules(void **state)
{
    struct fixture f;
    open_text(&f, text);
    setenv("WEFT_SKIP", "dce,canonicalize.mul_one", 1);
    assert_int_equal(weft_run_pass(f.graph, "dce", NULL), 0);
    assert_int_equal(weft_run_pass(f.graph, "canonicalize", NULL), 1); /* const_right is another rule */
    assert_true(prints(&f, "mul %x, %one"));
    setenv("WEFT_SKIP", "canonicalize", 1);
    assert_int_equal(weft_run_pass(f.graph, "canonicalize", NULL), 0);
    setenv("WEFT_SKIP", "canon", 1); /* not a name */
    assert_int_equal(weft_run_pass(f.graph, "canonicalize", NULL), 1);
    unsetenv("WEFT_SKIP");
    close_fixture(&f);
}

/* The pipeline under WEFT_STOP_AFTER; returns the number of rewrites. */
static int64_t rewrites_with(const char *limit)
{
    struct fixture f;
    setenv("WEFT_STOP_AFTER", limit, 1);
    open_text(&f, text);
    unsetenv("WEFT_STOP_AFTER");
    const int status = weft_run_pipeline(f.graph, NULL);
    const int64_t rewrites = f.graph->rewrites;
    assert_int_equal(status, rewrites > 0);
    assert_int_equal(weft_validate(f.graph), WEFT_OK);
    close_fixture(&f);
    return rewrites;
}

/* Every prefix of the rewrites leaves a valid graph, and has exactly the rewrites that are allowed. */
static void stops_after_each_rewrite(void **state)
{
    const int64_t all = rewrites_with("");
    assert_true(all >= 4);
    for (int64_t n = 0; n <= all; n++) {
        char limit[24];
        snprintf(limit, sizeof limit, "%lld", (long long)n);
        assert_int_equal(rewrites_with(limit), n);
    }
}

/* --- what can be seen ------------------------------------------------------------------------------------------- */

static void prints_through_the_callback(void **state)
{
    struct fixture f;
    open_text(&f, text);
    setenv("WEFT_PRINT", "dce", 1);
    weft_run_pass(f.graph, "canonicalize", NULL);
    assert_int_equal(f.notes.count, 0);
    weft_run_pass(f.graph, "dce", NULL);
    unsetenv("WEFT_PRINT");
    char *printed;
    assert_int_equal(weft_print(f.graph, &printed), WEFT_OK);
    assert_true(f.notes.count > 3);
    assert_string_equal(f.notes.lines, strstr(printed, "graph"));
    weft_free_text(f.context, printed);
    close_fixture(&f);
}

static void writes_snapshots(void **state)
{
    char folder[] = "/tmp/weft-trace-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct fixture f;
    open_text(&f, text);
    setenv("WEFT_TRACE", folder, 1);
    weft_run_pass(f.graph, "canonicalize", NULL);
    weft_run_pass(f.graph, "canonicalize", NULL); /* changes nothing: no snapshot */
    weft_run_pass(f.graph, "dce", NULL);
    unsetenv("WEFT_TRACE");
    static const char *const names[] = {"000-input", "001-canonicalize", "003-dce"};
    for (unsigned i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s.weft", folder, names[i]);
        struct weft_graph *again;
        assert_int_equal(weft_load(f.context, path, &again), WEFT_OK);
        weft_graph_destroy(again);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0); /* empty: there was no fourth */
    close_fixture(&f);
}

static void keeps_time(void **state)
{
    struct fixture f;
    open_text(&f, text);
    weft_run_pass(f.graph, "canonicalize", NULL);
    weft_run_pass(f.graph, "dce", NULL);
    const struct weft_pass_record *first = weft_pass_timing(f.graph, 0), *second = weft_pass_timing(f.graph, 1);
    assert_string_equal(first->pass, "canonicalize");
    assert_true(first->changed && first->ns > 0);
    assert_int_equal(first->nodes_before, 4);
    assert_int_equal(first->nodes_after, 3);
    assert_string_equal(second->pass, "dce");
    assert_int_equal(second->nodes_after, 1);
    assert_null(weft_pass_timing(f.graph, 2));
    close_fixture(&f);
}

static int remarks_of(const struct weft_graph *graph, const char *who, const char *verdict)
{
    int count = 0;
    struct weft_remark remark = {.size = sizeof remark};
    for (size_t i = 0; weft_remark_get(graph, i, &remark) == WEFT_OK; i++)
        count += strcmp(remark.who, who) == 0 && strcmp(remark.verdict, verdict) == 0;
    return count;
}

static void remarks_name_rules(void **state)
{
    struct fixture f;
    open_text(&f, text);
    weft_run_pipeline(f.graph, NULL);
    assert_int_equal(remarks_of(f.graph, "canonicalize.mul_one", "done"), 1);
    assert_int_equal(remarks_of(f.graph, "decompose.silu", "done"), 1);
    assert_int_equal(remarks_of(f.graph, "dce", "dropped"), 2); /* %dead, %one */
    close_fixture(&f);
}

static void refusals_are_said_once(void **state)
{
    struct fixture f;
    open_text(&f, "weft 1\n"
                  "graph @f(%x: f32[512,128]) {\n"
                  "  %a: f32[512,1] = const random=1\n"
                  "  %b: f32[1,128] = const random=2\n"
                  "  %c: f32[512,128] = matmul %a, %b\n"
                  "  %y: f32[512,128] = add %x, %c\n"
                  "  return %y\n"
                  "}\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(weft_run_pass(f.graph, "fold_const", NULL), 0);
    assert_int_equal(remarks_of(f.graph, "fold_const.evaluate", "refused"), 1);
    struct weft_remark remark = {.size = sizeof remark};
    assert_int_equal(weft_remark_get(f.graph, 0, &remark), WEFT_OK);
    assert_non_null(strstr(remark.reason, "262144 bytes"));
    assert_string_equal(remark.where, "%c");
    close_fixture(&f);
}

/* --- large constants -------------------------------------------------------------------------------------------- */

enum { LARGE = 4096 };

/* x + a + b for two constants that differ in one element, or in none (differs < 0). Merged constants leave one. */
static uint32_t constants_after_cse(int differs)
{
    struct weft_context *context;
    struct weft_graph *graph;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    assert_int_equal(weft_graph_create(context, "f", &graph), WEFT_OK);
    static float data[LARGE];
    for (int i = 0; i < LARGE; i++)
        data[i] = (float)i;
    const int64_t extent = LARGE;
    const weft_dim dim = weft_extent(LARGE);
    weft_val x, a, b, sum;
    assert_int_equal(weft_param(graph, "x", WEFT_F32, 1, &dim, &x), WEFT_OK);
    assert_int_equal(weft_constant(graph, WEFT_F32, 1, &extent, data, &a), WEFT_OK);
    if (differs >= 0)
        data[differs] = -1;
    assert_int_equal(weft_constant(graph, WEFT_F32, 1, &extent, data, &b), WEFT_OK);
    const weft_val first[] = {x, a};
    struct weft_op op = {.size = sizeof op, .op = "add", .operand = first, .operands = 2};
    assert_int_equal(weft_append(graph, &op, &sum), WEFT_OK);
    const weft_val second[] = {sum, b};
    op.operand = second;
    assert_int_equal(weft_append(graph, &op, &sum), WEFT_OK);
    assert_int_equal(weft_return(graph, &sum, 1), WEFT_OK);
    assert_int_equal(weft_run_pass(graph, "cse", NULL), differs < 0);
    const uint32_t constants = graph->live_nodes - 2;
    weft_graph_destroy(graph);
    weft_close(context);
    return constants;
}

/* The hash samples the two ends and the middle: a difference elsewhere must be found by comparing. */
static void large_constants_are_compared_whole(void **state)
{
    assert_int_equal(constants_after_cse(-1), 1);
    assert_int_equal(constants_after_cse(0), 2);
    assert_int_equal(constants_after_cse(LARGE / 4), 2);
    assert_int_equal(constants_after_cse(LARGE - 1), 2);
}

/* --- rules whose edits move the tables of the graph --------------------------------------------------------------- */

/* Operands that are made smaller one after the other, after so many nodes: for some of these numbers the table of nodes
 * grows between two of them. */
static void operands_are_shrunk_while_tables_grow(void **state)
{
    enum { MOST_NODES = 300 };
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    for (int nodes = 0; nodes < MOST_NODES; nodes++) {
        struct weft_text source = {.context = context};
        struct weft_graph *graph;
        weft_text_add(&source, "graph @g(%x: f32[3], %z: f32[5], %c: bool[3]) {\n  %v0: f32[3] = exp %x\n");
        for (int i = 0; i < nodes; i++)
            weft_text_format(&source, "  %%v%d: f32[3] = exp %%v%d\n", i + 1, i);
        weft_text_add(&source, "  %a: f32[4,3,5] = bcast %z dims=[2]\n  %k: bool[4,3,5] = bcast %c dims=[1]\n");
        weft_text_format(&source, "  %%b: f32[4,3,5] = bcast %%v%d dims=[1]\n", nodes);
        weft_text_add(&source, "  %y: f32[4,3,5] = select %k, %a, %b\n  return %y\n}\n");
        assert_int_equal(weft_parse(context, source.data, source.length, "text", &graph), WEFT_OK);
        assert_int_equal(weft_run_pass(graph, "canonicalize", NULL), 1);
        assert_int_equal(weft_validate(graph), WEFT_OK);
        weft_graph_destroy(graph);
        weft_text_close(&source);
    }
    weft_close(context);
}

/* --- every golden graph ----------------------------------------------------------------------------------------- */

struct parse_call {
    struct weft_context *context;
    const char *source;
    size_t bytes;
    uint32_t index, count;
    struct weft_graph *graph;
};

static int parse_one(void *arg)
{
    struct parse_call *call = arg;
    call->graph = weft_parse_graph(call->context, call->source, call->bytes, call->index,
                                   &(struct weft_parse_options){.name = "golden"}, &call->count);
    return WEFT_OK;
}

/* What is cheapest depends on caches, so a pass that is not idempotent may be found on some machines only. */
static const struct weft_target machines[] = {
    {.threads = 4, .l1 = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20, .name = "32 KiB, 1 MiB, 32 MiB"},
    {.threads = 2, .l1 = 48 << 10, .l2 = 2 << 20, .l3 = 105 << 20, .name = "48 KiB, 2 MiB, 105 MiB"},
    {.threads = 1, .l1 = 32 << 10, .l2 = 256 << 10, .name = "32 KiB, 256 KiB"},
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* What was in blocks is a graph of other values since the pipeline's last pass, which the next run simplifies, and for
 * which it decides layouts, like those of any other. */
static bool was_lowered(const struct weft_graph *graph)
{
    const struct weft_pass_record *record;
    bool lowered = false;
    for (size_t i = 0; !lowered && (record = weft_pass_timing(graph, i)); i++)
        lowered = strcmp(record->pass, "lower_blocks") == 0 && record->changed;
    return lowered;
}

/* Runs the pass (NULL: the pipeline) twice on graph `index` of a text; false if there is none. */
static bool run_twice(struct weft_context *context, const char *source, size_t bytes, uint32_t index, const char *pass,
                      const struct weft_target *machine, const char *path)
{
    struct weft_target target = *machine;
    assert_true(weft_cpu_parse("avx2", &target.cpu));
    struct parse_call call = {.context = context, .source = source, .bytes = bytes, .index = index};
    if (weft_protected(context, parse_one, &call) != WEFT_OK || !call.graph)
        return false;
    int second = 0;
    for (int i = 0; i < 2 + (!pass && was_lowered(call.graph)); i++) {
        second = pass ? weft_run_pass(call.graph, pass, &target) : weft_run_pipeline(call.graph, &target);
        if (second < 0)
            print_message("%s graph %u: %s\n", path, index, weft_last_error(context));
        assert_true(second >= 0);
    }
    if (second)
        print_message("%s: %s changes graph @%s again, with caches of %s\n", path, pass ? pass : "the pipeline",
                      call.graph->name, target.name);
    assert_int_equal(second, 0);
    weft_graph_destroy(call.graph);
    return true;
}

static int run_file(struct weft_context *context, const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    static char source[1 << 16];
    const size_t bytes = fread(source, 1, sizeof source, file);
    fclose(file);
    uint32_t graphs = 0;
    while (run_twice(context, source, bytes, graphs, NULL, &machines[0], path)) {
        for (unsigned m = 1; m < MACHINES; m++)
            run_twice(context, source, bytes, graphs, NULL, &machines[m], path);
        for (unsigned i = 0; i < MACHINES * weft_pass_count; i++)
            run_twice(context, source, bytes, graphs, weft_passes[i / MACHINES].name, &machines[i % MACHINES], path);
        graphs++;
    }
    return (int)graphs;
}

/* With all checks of WEFT_DEBUG on, so copying, printing and parsing are tried on all these graphs too. */
static void passes_are_idempotent(void **state)
{
    char root[512];
    snprintf(root, sizeof root, "%s/tests/golden", getenv("WEFT_SOURCE") ? getenv("WEFT_SOURCE") : ".");
    setenv("WEFT_DEBUG", "all", 1);
    struct weft_context *context;
    assert_int_equal(weft_open(NULL, &context), WEFT_OK);
    int graphs = 0;
    DIR *folders = opendir(root);
    assert_non_null(folders);
    for (struct dirent *folder; (folder = readdir(folders));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", root, folder->d_name);
        DIR *files = folder->d_name[0] == '.' ? NULL : opendir(path);
        for (struct dirent *file; files && (file = readdir(files));) {
            const size_t length = strlen(file->d_name);
            if (length < 6 || strcmp(file->d_name + length - 5, ".weft") != 0)
                continue;
            snprintf(path, sizeof path, "%s/%s/%s", root, folder->d_name, file->d_name);
            graphs += run_file(context, path);
        }
        if (files)
            closedir(files);
    }
    closedir(folders);
    weft_close(context);
    unsetenv("WEFT_DEBUG");
    assert_true(graphs > 80);
}

int main(void)
{
    unsetenv("WEFT_SKIP");
    unsetenv("WEFT_DEBUG");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_by_name),
        cmocka_unit_test(refuses_invalid_graphs),
        cmocka_unit_test(pipeline_reaches_a_fixed_point),
        cmocka_unit_test(table_is_sorted_and_complete),
        cmocka_unit_test(skips_passes_and_rules),
        cmocka_unit_test(stops_after_each_rewrite),
        cmocka_unit_test(prints_through_the_callback),
        cmocka_unit_test(writes_snapshots),
        cmocka_unit_test(keeps_time),
        cmocka_unit_test(remarks_name_rules),
        cmocka_unit_test(refusals_are_said_once),
        cmocka_unit_test(large_constants_are_compared_whole),
        cmocka_unit_test(operands_are_shrunk_while_tables_grow),
        cmocka_unit_test(passes_are_idempotent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
