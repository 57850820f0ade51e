/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: weft reduce: a model whose plan gives a wrong answer, made small.
 *
 * The model is wrong where its plan and the reference evaluator differ by more than roundings explain. What is tried,
 * again and again until nothing of it leaves a wrong model that is smaller, or the time is over:
 *
 *   one output      of several, the first that is wrong alone
 *   an earlier end  a value on the way to the output becomes the output: the earliest that is still wrong
 *   a later start   values become inputs, with the numbers that the evaluator computes for them: all that the last
 *                   1, 2, 4 … nodes read, then single ones
 *
 * Each attempt is a part of the graph (weft_graph_copy_between), compiled, run and evaluated. */
#include "tools/npy.h"
#include "tools/tools.h"

#include "ir/ir.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A graph with its inputs. */
struct part {
    struct weft_graph *graph;
    struct weft_tensor *input; /* by parameter, of memory that weft_npy_free takes */
    double error, bound;       /* of its output, where it is wrong */
};

struct reducing {
    struct weft_model_options options;
    const char *to;            /* the folder */
    double bound, seconds, end_ms;
    struct weft_context *context;
    struct part best;
    int attempts;
    char work[4096];           /* a folder for the inputs of an attempt */
};

static void drop_part(struct part *part)
{
    for (uint32_t i = 0; part->input && i < part->graph->params; i++)
        weft_npy_free(&part->input[i]);
    free(part->input);
    weft_graph_destroy(part->graph);
    *part = (struct part){0};
}

static uint32_t nodes_of(const struct weft_graph *graph)
{
    uint32_t count = 0;
    weft_foreach_node(graph, n)
        count += !weft_is_const(graph, weft_result(graph, n, 0));
    return count;
}

/* --- is it wrong? ------------------------------------------------------------------------------------------------- */

static bool save_inputs(const struct part *part, const char *folder)
{
    bool ok = true;
    for (uint32_t i = 0; i < part->graph->params && ok; i++) {
        char path[4200], message[WEFT_NPY_MESSAGE];
        snprintf(path, sizeof path, "%s/input_%u.npy", folder, i);
        ok = weft_npy_save(path, &part->input[i], message);
        if (!ok)
            fprintf(stderr, "weft reduce: %s: %s\n", path, message);
    }
    return ok;
}

static void judge(const struct reducing *r, struct weft_model *m, struct part *part, bool *ret_wrong)
{
    struct weft_tensor *const want = calloc(m->outputs + 1, sizeof *want);
    if (!want || weft_evaluate(part->graph, part->input, part->graph->params, want, m->outputs) < 0) {
        free(want);
        return;
    }
    for (size_t i = 0; i < m->outputs; i++) {
        struct weft_tensor got;
        struct weft_comparison c = {.same = true};
        char message[256];
        const double bound = weft_tool_stated_bound(r->bound, part->graph, m->execution->symbols, i);
        const bool alike = weft_output(m->execution, i, &got) >= 0 &&
                           weft_tool_compare(&got, &want[i], bound, &c, message);
        if (!alike || !c.same) {
            *ret_wrong = true;
            part->error = alike ? c.max_rel : INFINITY;
            part->bound = bound;
        }
        weft_tensor_free(r->context, &want[i]);
    }
    free(want);
}

/* A graph that does not compile or run is no smaller case of a wrong answer. */
static bool is_wrong(struct reducing *r, struct part *part)
{
    struct weft_model m = {.context = r->context, .graph = part->graph};
    struct weft_model_options options = r->options;
    bool wrong = false;
    weft_tool_progress("attempts", ++r->attempts);
    options.folder = r->work;
    options.inputs.count = options.sizes.count = 0;
    weft_tool_hush(true); /* what is wrong with an attempt is nobody's concern */
    if (part->graph->params <= WEFT_TOOL_PORTS && save_inputs(part, r->work) &&
        weft_model_compile(&options, part->graph, &m.plan) == WEFT_OK &&
        weft_model_prepare(&options, &m) == WEFT_EXIT_OK && weft_tool_run(m.execution) >= 0)
        judge(r, &m, part, &wrong);
    weft_tool_hush(false);
    weft_execution_destroy(m.execution);
    weft_plan_destroy(m.plan);
    weft_model_drop_inputs(&m);
    return wrong;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

struct cutting {
    const struct weft_graph *graph;
    const bool *cut;
    const weft_val *wanted;
    uint32_t count;
    struct weft_graph *part;
    weft_val *source;
};

static int copy_part(void *arg)
{
    struct cutting *const c = arg;
    weft_graph_copy_between(c->graph, c->cut, c->wanted, c->count, &c->part, c->source);
    return WEFT_OK;
}

/* The numbers of values of the best graph, by the evaluator. */
static bool evaluate(struct reducing *r, const weft_val *values, uint32_t count, struct weft_tensor *ret)
{
    const struct weft_graph *const g = r->best.graph;
    bool *const none = calloc(g->values, sizeof *none);
    weft_val *const source = calloc(g->values, sizeof *source);
    struct cutting c = {g, none, values, count, NULL, source};
    struct weft_tensor *in = NULL;
    bool ok = none && source && weft_protected_graph(g, copy_part, &c) == WEFT_OK;
    if (ok) {
        in = calloc(c.part->params + 1, sizeof *in);
        ok = in != NULL;
        for (uint32_t i = 0; ok && i < c.part->params; i++)
            in[i] = r->best.input[g->value[source[i].id].result]; /* of a parameter, its number */
        ok = ok && weft_evaluate(c.part, in, c.part->params, ret, count) >= 0;
    }
    free(in);
    if (c.part)
        weft_graph_destroy(c.part);
    free(source);
    free(none);
    return ok;
}

/* A copy that weft_npy_free takes. */
static bool copy_tensor(const struct weft_tensor *from, struct weft_tensor *to)
{
    const size_t bytes = (size_t)weft_dtype_bytes(from->dtype, weft_tensor_count(from));
    *to = *from;
    to->data = malloc(bytes + 64);
    if (to->data)
        memcpy(to->data, from->data, bytes);
    return to->data;
}

static bool fill_inputs(struct reducing *r, struct part *part, const weft_val *source)
{
    const struct weft_graph *const g = r->best.graph;
    const uint32_t count = part->graph->params;
    weft_val *const value = calloc(count + 1, sizeof *value);
    struct weft_tensor *const made = calloc(count + 1, sizeof *made);
    uint32_t computed = 0;
    part->input = calloc(count + 1, sizeof *part->input);
    bool ok = value && made && part->input;
    for (uint32_t i = 0; ok && i < count; i++)
        if (!g->value[source[i].id].is_param)
            value[computed++] = source[i];
    ok = ok && (computed == 0 || evaluate(r, value, computed, made));
    for (uint32_t i = 0, k = 0; ok && i < count; i++)
        ok = copy_tensor(g->value[source[i].id].is_param ? &r->best.input[g->value[source[i].id].result] : &made[k++],
                         &part->input[i]);
    for (uint32_t i = 0; made && i < computed; i++)
        weft_tensor_free(r->context, &made[i]);
    free(made);
    free(value);
    return ok;
}

/* What computes `wanted` from where `cut` says, instead of the best, if it is wrong too and smaller. */
static bool attempt(struct reducing *r, const bool *cut, weft_val wanted)
{
    const struct weft_graph *const g = r->best.graph;
    weft_val *const source = calloc(g->values, sizeof *source);
    struct cutting c = {g, cut, &wanted, 1, NULL, source};
    struct part part = {0};
    if (weft_tool_now_ms() > r->end_ms || !source || weft_protected_graph(g, copy_part, &c) != WEFT_OK) {
        if (c.part)
            weft_graph_destroy(c.part);
        free(source);
        return false;
    }
    part.graph = c.part;
    const bool smaller = nodes_of(part.graph) < nodes_of(g) || g->returns > 1;
    weft_tool_hush(true);
    const bool filled = smaller && fill_inputs(r, &part, source);
    weft_tool_hush(false);
    const bool better = filled && is_wrong(r, &part);
    free(source);
    if (better) {
        drop_part(&r->best);
        r->best = part;
    } else {
        drop_part(&part);
    }
    return better;
}

/* --- what is tried ------------------------------------------------------------------------------------------------ */

/* Values that nodes compute, in order; of constants there is nothing to gain. */
static weft_val *list_values(const struct weft_graph *g, uint32_t *ret_count)
{
    weft_val *const list = calloc(g->values + 1, sizeof *list);
    *ret_count = 0;
    weft_foreach_node(g, n)
        for (uint32_t i = 0; list && i < g->node[n.id].results; i++)
            if (!weft_is_const(g, weft_result(g, n, i)))
                list[(*ret_count)++] = weft_result(g, n, i);
    return list;
}

static bool take_one_output(struct reducing *r)
{
    bool *const none = calloc(r->best.graph->values, sizeof *none);
    const uint32_t outputs = r->best.graph->returns;
    bool taken = false;
    for (uint32_t i = 0; none && i < outputs && outputs > 1 && !taken; i++)
        taken = attempt(r, none, r->best.graph->ret[i].value);
    free(none);
    return taken;
}

/* Halving, from the earliest on. */
static bool end_earlier(struct reducing *r)
{
    uint32_t count;
    weft_val *const list = list_values(r->best.graph, &count);
    bool *const none = calloc(r->best.graph->values, sizeof *none);
    bool taken = false;
    for (uint32_t back = count; list && none && back > 0 && !taken; back /= 2)
        if (count > back && !weft_is(list[count - 1 - back], r->best.graph->ret[0].value))
            taken = attempt(r, none, list[count - 1 - back]);
    free(none);
    free(list);
    return taken;
}

/* All that the last 1, 2, 4 … nodes read. */
static bool start_later(struct reducing *r)
{
    const struct weft_graph *g = r->best.graph;
    uint32_t count;
    weft_val *const list = list_values(g, &count);
    bool *const cut = calloc(g->values, sizeof *cut);
    const weft_val end = g->ret[0].value;
    bool taken = false;
    for (uint32_t kept = 1; list && cut && kept < count && !taken; kept *= 2) {
        memset(cut, 0, g->values * sizeof *cut);
        for (uint32_t i = 0; i + kept < count; i++)
            cut[list[i].id] = true;
        taken = !cut[end.id] && attempt(r, cut, end);
    }
    for (uint32_t i = count; list && cut && i-- > 0 && !taken;) { /* the latest cuts off most */
        memset(cut, 0, g->values * sizeof *cut);
        cut[list[i].id] = true;
        taken = !cut[end.id] && attempt(r, cut, end);
    }
    free(cut);
    free(list);
    return taken;
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static bool write_result(const struct reducing *r)
{
    char path[4200], message[WEFT_NPY_MESSAGE];
    struct weft_tensor want = {0};
    if (mkdir(r->to, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "weft reduce: %s: %s\n", r->to, strerror(errno));
        return false;
    }
    snprintf(path, sizeof path, "%s/model.weft", r->to);
    if (weft_save(r->best.graph, path) < 0 || !save_inputs(&r->best, r->to) ||
        weft_evaluate(r->best.graph, r->best.input, r->best.graph->params, &want, 1) < 0)
        return false;
    snprintf(path, sizeof path, "%s/output_0.npy", r->to);
    const bool ok = weft_npy_save(path, &want, message);
    if (!ok)
        fprintf(stderr, "weft reduce: %s: %s\n", path, message);
    weft_tensor_free(r->context, &want);
    return ok;
}

static int reduce(struct reducing *r)
{
    const uint32_t before = nodes_of(r->best.graph);
    if (!is_wrong(r, &r->best)) { /* it has compiled, and run where its inputs are right */
        weft_tool_progress(NULL, 0);
        printf("the answer is right: nothing to reduce\n");
        return WEFT_EXIT_OK;
    }
    r->end_ms = weft_tool_now_ms() + 1e3 * r->seconds;
    while (take_one_output(r) || start_later(r) || end_earlier(r))
        continue;
    weft_tool_progress(NULL, 0);
    printf("%u of %u nodes are left after %d attempts%s\n", nodes_of(r->best.graph), before, r->attempts,
           weft_tool_now_ms() > r->end_ms ? ", when time was over" : "");
    printf("WRONG     output 0 is off by %.3g of its largest magnitude, bound %.3g\n", r->best.error, r->best.bound);
    if (!write_result(r))
        return WEFT_EXIT_FAILED;
    printf("again     weft run %s/model.weft --check %s", r->to, r->to);
    weft_model_print_options(&r->options, /* inputs= */ false);
    putchar('\n');
    return WEFT_EXIT_FAILED;
}

/* The model with its inputs, read or invented, as the first best part. */
static int open_best(struct reducing *r, struct weft_model *m)
{
    const int code = weft_model_open(&r->options, m);
    if (code != WEFT_EXIT_OK)
        return code;
    r->context = m->context;
    r->best.graph = m->graph;
    m->graph = NULL;
    r->best.input = calloc(m->inputs + 1, sizeof *r->best.input);
    bool ok = r->best.input;
    for (size_t i = 0; ok && i < m->inputs; i++)
        ok = copy_tensor(&m->input[i], &r->best.input[i]);
    weft_execution_destroy(m->execution);
    weft_plan_destroy(m->plan);
    m->execution = NULL;
    m->plan = NULL;
    return ok ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
}

static void remove_work(const struct reducing *r)
{
    char path[4200];
    for (int i = 0; i < WEFT_TOOL_PORTS; i++) {
        snprintf(path, sizeof path, "%s/input_%d.npy", r->work, i);
        unlink(path);
    }
    rmdir(r->work);
}

int weft_cmd_reduce(int argc, char **argv)
{
    struct reducing r = {.bound = -1, .seconds = 60, .to = "reduced"};
    const struct weft_option table[] = {
        {"-o", WEFT_OPTION_WORD, &r.to, "DIR", "the folder for model.weft, input_N.npy, output_0.npy (reduced)"},
        {"--check", WEFT_OPTION_WORD, &r.options.folder, "DIR", "inputs are input_N.npy there"},
        WEFT_BOUND_OPTION(&r.bound),
        {"--seconds", WEFT_OPTION_REAL, &r.seconds, "S", "how long to try (60)"},
        WEFT_MODEL_OPTIONS(&r.options),
        {0},
    };
    const struct weft_usage usage = {
        "weft reduce MODEL [options]",
        "Makes a model small whose plan gives another answer than the reference evaluator: leaves out outputs, ends\n"
        "earlier, and starts later, at values with the numbers that the evaluator computes for them, as long as the\n"
        "answer stays wrong. Writes what is left, its inputs and the right output to a folder. Exits with 0 if the\n"
        "answer is right.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    struct weft_model model = {0};
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, &r.options);
    if (code >= 0)
        return code;
    r.options.path = words.word[0];
    const int length = snprintf(r.work, sizeof r.work, "%s/weft-reduce-XXXXXX", weft_tool_temporary());
    errno = ENAMETOOLONG;
    if (length >= (int)sizeof r.work || !mkdtemp(r.work)) {
        fprintf(stderr, "weft reduce: %s: %s\n", r.work, strerror(errno));
        return WEFT_EXIT_FAILED;
    }
    code = open_best(&r, &model);
    if (code == WEFT_EXIT_OK)
        code = reduce(&r);
    weft_tool_progress(NULL, 0);
    if (r.best.graph)
        drop_part(&r.best);
    remove_work(&r);
    weft_model_close(&model);
    return code;
}
