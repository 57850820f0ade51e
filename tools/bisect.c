/* SPDX-License-Identifier: Apache-2.0 */
/* bisect.c: weft bisect: which decision makes a model's answer wrong.
 *
 * Every rewrite, group and kernel of a plan is one decision, and all are counted in the order in which they are made
 * (WEFT_STOP_AFTER). With none of them a plan is the graph as it was read, node by node in the reference evaluator. So
 * where all decisions together give a wrong answer, some first one does, and halving finds it: twelve plans for four
 * thousand decisions. Each is compiled and run on the same inputs, and compared with the answer of the evaluator, or
 * with files. */
#include "tools/npy.h"
#include "tools/tools.h"

#include "ir/ir.h"
#include "runtime/runtime.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bisecting {
    struct weft_model_options options;
    const char *folder;        /* of expected outputs, or NULL: the evaluator's */
    double bound;              /* below 0: the one that follows from the graph */
    struct weft_model model;
    struct weft_tensor *want;  /* by output */
    int trials;
};
/* What came of so many decisions. */
struct trial {
    int64_t decisions;         /* that were made */
    bool right;
    size_t output;             /* the worst one, and how far it is off */
    double error, bound;
};

/* How far an output is off; infinitely where it has another shape. */
static bool judge_output(struct bisecting *b, size_t i, struct trial *ret)
{
    struct weft_tensor got;
    struct weft_comparison c;
    char message[256];
    if (weft_output(b->model.execution, i, &got) < 0) {
        fprintf(stderr, "weft bisect: output %zu: %s\n", i, weft_execution_error(b->model.execution));
        return false;
    }
    const double bound = weft_tool_stated_bound(b->bound, b->model.graph, b->model.execution->symbols, i);
    const bool alike = weft_tool_compare(&got, &b->want[i], bound, &c, message);
    const bool same = alike && c.same;
    const double error = !alike ? INFINITY : c.max_rel;
    if (i == 0 || (ret->right && !same) || (ret->right == same && error > ret->error)) {
        ret->output = i;
        ret->error = error;
        ret->bound = bound;
    }
    ret->right &= same;
    return true;
}

/* Compiles with so many decisions (-1: all), runs, compares. False after saying what failed. */
static bool try_decisions(struct bisecting *b, int64_t decisions, struct trial *ret)
{
    struct weft_model *const m = &b->model;
    weft_execution_destroy(m->execution);
    weft_plan_destroy(m->plan);
    m->execution = NULL;
    m->plan = NULL;
    m->graph->rewrite_limit = decisions;
    *ret = (struct trial){.right = true};
    weft_tool_progress("trials", ++b->trials);
    if (weft_model_compile(&b->options, m->graph, &m->plan) < 0 ||
        weft_model_prepare(&b->options, m) != WEFT_EXIT_OK)
        return false;
    ret->decisions = m->plan->graph->rewrites;
    if (weft_tool_run(m->execution) < 0) {
        weft_tool_run_failed(m->execution);
        return false;
    }
    for (size_t i = 0; i < m->outputs; i++)
        if (!judge_output(b, i, ret))
            return false;
    return true;
}

static bool expect_outputs(struct bisecting *b)
{
    struct weft_model *const m = &b->model;
    b->want = calloc(m->outputs + 1, sizeof *b->want);
    if (!b->want)
        return false;
    if (!b->folder) {
        weft_tool_progress("the reference evaluator", 0);
        return weft_evaluate(m->graph, m->input, m->inputs, b->want, m->outputs) >= 0;
    }
    bool right = true;
    for (size_t i = 0; i < m->outputs && right; i++)
        right = weft_tool_load_output(m, i, b->folder, &b->want[i]);
    return right;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* The remark that the last decision left, and what else was said of the same value then. */
static void print_decision(const struct bisecting *b, int64_t number)
{
    const struct weft_graph *const g = b->model.plan->graph->root;
    const struct weft_remark *last = NULL;
    for (uint32_t i = 0; i < g->remarks; i++)
        if (strcmp(g->remark[i].verdict, "stopped") == 0)
            last = &g->remark[i];
    printf("decision  %" PRId64, number);
    if (!last) {
        printf(", of which nothing is recorded\n");
        return;
    }
    printf(": %s at %s\n", last->who, last->where);
    for (const struct weft_remark *r = last + 1; r < g->remark + g->remarks; r++)
        if (r->where && strcmp(r->where, last->where) == 0 && strcmp(r->verdict, "fallback") != 0 &&
            strcmp(r->verdict, "unpriced") != 0) /* what follows from stopping there */
            printf("          %s %s: %s\n", r->who, r->verdict, r->reason);
}

static void print_trial(const char *what, const struct trial *t)
{
    printf("%-9s %s: output %zu is off by %.3g of its largest magnitude, bound %.3g\n", what,
           t->right ? "right" : "WRONG", t->output, t->error, t->bound);
}

static int report(struct bisecting *b, int64_t number, const struct trial *before, const struct trial *after)
{
    weft_tool_progress(NULL, 0);
    print_decision(b, number);
    print_trial("before", before);
    print_trial("after", after);
    printf("again     WEFT_STOP_AFTER=%" PRId64 " weft run %s", number, b->options.path);
    if (b->folder)
        printf(" --check %s", b->folder);
    weft_model_print_options(&b->options, /* inputs= */ true);
    printf("; one less is right\n");
    return WEFT_EXIT_FAILED;
}

/* Of `high` decisions, which give a wrong answer, the first that does; none at all give `right`. */
static int halve(struct bisecting *b, struct trial right, int64_t high)
{
    struct trial now;
    int64_t low = 0;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (!try_decisions(b, middle, &now))
            return WEFT_EXIT_FAILED;
        if (now.right) {
            low = middle;
            right = now;
        } else {
            high = middle;
        }
    }
    if (!try_decisions(b, high, &now)) /* its remarks */
        return WEFT_EXIT_FAILED;
    return report(b, high, &right, &now);
}

static int bisect(struct bisecting *b)
{
    struct trial all, none;
    if (!expect_outputs(b) || !try_decisions(b, -1, &all))
        return WEFT_EXIT_FAILED;
    weft_tool_progress(NULL, 0);
    printf("plan      %" PRId64 " decisions\n", all.decisions);
    print_trial("answer", &all);
    if (all.right)
        return WEFT_EXIT_OK;
    if (!try_decisions(b, 0, &none))
        return WEFT_EXIT_FAILED;
    if (none.right)
        return halve(b, none, all.decisions);
    weft_tool_progress(NULL, 0);
    print_trial("without", &none);
    printf("no decision is to blame: %s\n",
           b->folder ? "the graph as it was read, by the reference evaluator, does not give the expected outputs"
                     : "the plan that evaluates each node gives another answer than the evaluator");
    return WEFT_EXIT_FAILED;
}

int weft_cmd_bisect(int argc, char **argv)
{
    struct bisecting b = {.bound = -1};
    const struct weft_option table[] = {
        {"--check", WEFT_OPTION_WORD, &b.folder, "DIR",
         "inputs and expected outputs are input_N.npy, output_N.npy there"},
        WEFT_BOUND_OPTION(&b.bound),
        WEFT_MODEL_OPTIONS(&b.options),
        {0},
    };
    const struct weft_usage usage = {
        "weft bisect MODEL [options]",
        "Finds the rewrite, group or kernel that makes the answer of a model wrong: the first decision with which\n"
        "the outputs differ from those of the reference evaluator, or from files, by more than roundings explain.\n"
        "Compiles and runs the model about as often as the number of decisions has binary digits; what has no kernel\n"
        "yet then runs in the slow evaluator. Exits with 0 if the answer is right.",
        table, WEFT_TOOL_MODEL, 1};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    code = code >= 0 ? code : weft_model_misused(&usage, &b.options);
    if (code >= 0)
        return code;
    b.options.path = words.word[0];
    b.options.folder = b.folder;
    code = weft_model_open(&b.options, &b.model);
    if (code == WEFT_EXIT_OK)
        code = bisect(&b);
    weft_tool_progress(NULL, 0);
    for (size_t i = 0; b.want && i < b.model.outputs; i++)
        if (b.folder)
            weft_npy_free(&b.want[i]);
        else
            weft_tensor_free(b.model.context, &b.want[i]);
    free(b.want);
    weft_model_close(&b.model);
    return code;
}
