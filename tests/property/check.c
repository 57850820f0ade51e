/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: what holds for every graph; the list is in random_graph.h. */
#include "runtime/runtime.h"
#include "tests/property/random_graph.h"
#include "tests/property/trial.h"

#include "passes/passes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_way(struct weft_machine *machine, struct weft_context *context, int choice)
{
    machine->context[machine->ways] = context;
    machine->choice[machine->ways++] = choice;
}

bool weft_machine_open(struct weft_machine *machine, const struct weft_machine_options *options)
{
    static const char *const levels[] = {"avx512+bf16+fp16", "avx512", "avx2", "baseline"};
    uint32_t last = UINT32_MAX;
    const int most = options->thorough ? 4 : 2;
    *machine = (struct weft_machine){.compiled = options->thorough};
    for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++)
        for (int threads = most; threads > 0; threads--) {
            struct weft_context_options of = {.size = sizeof of, .threads = threads, .cpu = i ? levels[i] : NULL};
            struct weft_context *context;
            if (weft_open(&of, &context) != WEFT_OK || weft_register_drawn(context) != WEFT_OK ||
                weft_register_drawn_alternatives(context) != WEFT_OK)
                return false;
            if (threads == most && context->target.cpu == last && i) { /* no more than the level before */
                weft_close(context);
                break;
            }
            last = context->target.cpu;
            snprintf(machine->name[machine->ways], sizeof machine->name[0], "%s, %d thread%s",
                     i ? levels[i] : "everything", threads, threads > 1 ? "s" : "");
            machine->repeats[machine->ways] = threads < most;
            add_way(machine, context, 1);
        }
    machine->contexts = machine->ways;
    for (int choice = 2; options->choices && choice <= WEFT_LAST_CHOICE; choice++) {
        snprintf(machine->name[machine->ways], sizeof machine->name[0], "everything, choice %d", choice);
        add_way(machine, machine->context[0], choice);
    }
    if (options->choices) {
        snprintf(machine->name[machine->ways], sizeof machine->name[0], "everything, all alternatives");
        add_way(machine, machine->context[0], WEFT_ALTERNATIVES);
    }
    return true;
}

void weft_machine_close(struct weft_machine *machine)
{
    for (int i = 0; i < machine->contexts; i++)
        weft_close(machine->context[i]);
}

enum weft_outcome weft_trial_fail(struct weft_trial *trial, enum weft_outcome failure, const char *format, ...)
{
    if (!trial->quiet) {
        va_list arguments;
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        putchar('\n');
    }
    return failure;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

struct text_check {
    struct weft_trial *trial;
    const struct weft_graph *graph;
    bool same;
};

static int check_text(void *argument)
{
    struct text_check *check = argument;
    struct weft_context *context = check->graph->context;
    const struct weft_print_options options = {.all_inline = true};
    struct weft_text first = {.context = context}, second = {.context = context};
    weft_print_graph(check->graph, &options, &first);
    const struct weft_parse_options parse = {.name = "text"};
    struct weft_graph *again = weft_parse_graph(context, first.data, first.length, 0, &parse, NULL);
    if (again)
        weft_print_graph(again, &options, &second);
    check->same = again && strcmp(first.data, second.data) == 0;
    if (!check->same && !check->trial->quiet)
        printf("%s%s%s\n", first.data, again ? "is printed again as\n" : "does not parse: ",
               again ? second.data : weft_last_error(context));
    weft_graph_destroy(again);
    weft_text_close(&first);
    weft_text_close(&second);
    return WEFT_OK;
}

static enum weft_outcome text_stays(struct weft_trial *trial, const struct weft_graph *graph, const char *what)
{
    struct text_check check = {.trial = trial, .graph = graph};
    weft_protected_graph(graph, check_text, &check);
    return check.same ? WEFT_HOLDS : weft_trial_fail(trial, WEFT_FAILS_TEXT, "text: %s does not read back", what);
}

/* --- variants: the graph after passes ----------------------------------------------------------------------------- */

/* Passes that promise every bit. */
static bool is_exact(const char *pass)
{
    static const char *const exact[] = {"canonicalize", "cancel_transpose", "cse", "dce", "fold_const", "fold_shape"};
    for (unsigned i = 0; i < sizeof exact / sizeof exact[0]; i++)
        if (strcmp(pass, exact[i]) == 0)
            return true;
    return false;
}

static enum weft_outcome add_variant(struct weft_trial *trial, const char *pass)
{
    struct weft_variant *variant = &trial->variant[trial->variants];
    if (weft_graph_clone(trial->graph, &variant->graph) != WEFT_OK)
        return weft_trial_fail(trial, WEFT_FAILS_PASS, "the graph is not valid: %s",
                               weft_last_error(trial->graph->context));
    variant->name = pass ? pass : "all passes";
    variant->exact = pass && is_exact(pass);
    if (pass && strcmp(pass, "lower_blocks") == 0)
        weft_trial_split(variant->graph);
    const int changed = pass ? weft_run_pass(variant->graph, pass, NULL) : weft_run_pipeline(variant->graph, NULL);
    const bool keep = changed > 0 || !pass;
    if (keep)
        trial->variants++;
    else
        weft_graph_destroy(variant->graph);
    if (changed < 0)
        return weft_trial_fail(trial, WEFT_FAILS_PASS, "pass %s: %s", variant->name,
                               weft_last_error(trial->graph->context));
    if (keep && pass && strcmp(pass, "propagate_memory_format") == 0) {
        const enum weft_outcome failure = weft_trial_ports(trial, variant->graph);
        if (failure)
            return failure;
    }
    return keep ? text_stays(trial, variant->graph, variant->name) : WEFT_HOLDS;
}

static enum weft_outcome check_choice(struct weft_trial *trial)
{
    struct weft_graph *copy;
    if (weft_graph_clone(trial->graph, &copy) != WEFT_OK)
        return weft_trial_fail(trial, WEFT_FAILS_PASS, "no copy: %s", weft_last_error(trial->graph->context));
    const enum weft_outcome failure = weft_trial_choice(trial, copy);
    weft_graph_destroy(copy);
    return failure;
}

static enum weft_outcome make_variants(struct weft_trial *trial)
{
    enum weft_outcome failure = check_choice(trial);
    for (unsigned i = 0; i < weft_pass_count && !failure && trial->variants < WEFT_MOST_VARIANTS - 1; i++)
        failure = add_variant(trial, weft_passes[i].name);
    return failure ? failure : add_variant(trial, NULL);
}

/* Steps in the reference evaluator, those on elements smaller than a byte aside, for which there are no kernels. */
static int count_fallbacks(const struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    int count = 0;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const weft_node n = plan->step[i].node;
        if (plan->step[i].kind != &weft_step_reference)
            continue;
        bool excused = weft_dtype_bits(weft_type_of(g, weft_result(g, n, 0))->dtype) < 8;
        for (unsigned k = 0; k < g->node[n.id].operands; k++)
            excused |= weft_dtype_bits(weft_type_of(g, weft_operand(g, n, k))->dtype) < 8;
        struct weft_element number; /* chunks of one number have no kernel */
        excused |= weft_opcode_of(g, n) == WEFT_OP_fold_chunks && weft_is_const(g, weft_operand(g, n, 0)) &&
                 weft_const_splat(g, weft_operand(g, n, 0), &number);
        count += !excused;
    }
    return count;
}

/* Layouts and rewrites leave no more to the reference evaluator than it has without them. */
static enum weft_outcome check_fallbacks(struct weft_trial *trial)
{
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_PASSES,
                                                 .target = weft_context_target(trial->machine->context[0])};
    struct weft_plan *plain;
    if (weft_compile(trial->graph, &options, &plain) != WEFT_OK)
        return WEFT_HOLDS; /* a layout that only passes make readable */
    const int with = count_fallbacks(trial->planned[0].plan), without = count_fallbacks(plain);
    weft_plan_destroy(plain);
    return with <= without ? WEFT_HOLDS
                           : weft_trial_fail(trial, WEFT_FAILS_COMPILE,
                                             "%d steps run in the reference evaluator, without passes %d", with,
                                             without);
}

/* As way number i of the machine says. */
static int compile(const struct weft_trial *trial, int i, struct weft_plan **ret)
{
    const struct weft_compile_options options = {.size = sizeof options,
                                                 .target = weft_context_target(trial->machine->context[i])};
    char choice[16];
    snprintf(choice, sizeof choice, "%d", trial->machine->choice[i]);
    if (trial->machine->choice[i] > 1)
        setenv("WEFT_CHOICE", choice, 1);
    if (trial->machine->choice[i] == WEFT_ALTERNATIVES)
        setenv("WEFT_ALTERNATIVE", "all", 1);
    const int status = weft_compile(trial->graph, &options, ret);
    unsetenv("WEFT_ALTERNATIVE");
    if (trial->machine->choice[i] > 1)
        unsetenv("WEFT_CHOICE");
    return status;
}

/* Which nodes form groups may depend on the number of threads, and a group of 16-bit values rounds less often. */
static bool have_same_graphs(const struct weft_plan *a, const struct weft_plan *b)
{
    const struct weft_print_options options = {.all_inline = true};
    struct weft_text first = {.context = a->context}, second = {.context = b->context};
    weft_print_graph(a->graph, &options, &first);
    weft_print_graph(b->graph, &options, &second);
    const bool same = first.length == second.length && memcmp(first.data, second.data, first.length) == 0;
    weft_text_close(&first);
    weft_text_close(&second);
    return same;
}

static enum weft_outcome make_plans(struct weft_trial *trial)
{
    for (int i = 0; i < trial->machine->ways; i++) {
        struct weft_planned *planned = &trial->planned[i];
        const int status = compile(trial, i, &planned->plan);
        if (status == WEFT_ERR_UNSUPPORTED && i == 0)
            return WEFT_HOLDS; /* a layout that nothing reads yet */
        if (status != WEFT_OK)
            return weft_trial_fail(trial, WEFT_FAILS_COMPILE, "does not compile for %s: %s", trial->machine->name[i],
                                   weft_last_error(trial->graph->context));
        if (weft_execution_create(planned->plan, &planned->execution) != WEFT_OK)
            return weft_trial_fail(trial, WEFT_FAILS_COMPILE, "no execution for %s", trial->machine->name[i]);
        planned->same = trial->machine->repeats[i] && have_same_graphs(trial->planned[i - 1].plan, planned->plan);
        trial->plans = i + 1;
    }
    return check_fallbacks(trial);
}

/* --- one set of inputs -------------------------------------------------------------------------------------------- */

static void free_results(struct weft_trial *trial, struct weft_tensor *tensor)
{
    for (uint32_t i = 0; i < trial->graph->returns; i++)
        weft_tensor_free(trial->graph->context, &tensor[i]);
    memset(tensor, 0, (trial->graph->returns + 1) * sizeof *tensor);
}

static enum weft_outcome check_control(struct weft_trial *trial, const struct weft_tensor *want,
                                       struct weft_tensor *got)
{
    char message[256];
    int64_t symbols[WEFT_MOST_SYMBOLS];
    memcpy(symbols, trial->symbols, sizeof symbols);
    if (!weft_noisy_evaluate(trial->graph, symbols, trial->in, got, 0, false))
        return weft_trial_fail(trial, WEFT_FAILS_CONTROL, "the second evaluator fails");
    const bool right = weft_judge(want, got, trial->graph->returns, NULL, 0, true, message, sizeof message);
    free_results(trial, got);
    return right ? WEFT_HOLDS
                 : weft_trial_fail(trial, WEFT_FAILS_CONTROL, "the second evaluator differs, %s: %s", trial->what,
                                   message);
}

static enum weft_outcome check_variants(struct weft_trial *trial, const struct weft_tensor *want,
                                        struct weft_tensor *got, struct weft_noise *noise)
{
    for (int v = 0; v < trial->variants; v++) {
        const struct weft_graph *graph = trial->variant[v].graph;
        char message[256];
        if (weft_evaluate(graph, trial->in, graph->params, got, graph->returns) != WEFT_OK)
            return weft_trial_fail(trial, WEFT_FAILS_PASS, "after %s, %s: %s", trial->variant[v].name, trial->what,
                                   weft_last_error(graph->context));
        struct weft_noise nans = {.graph = trial->graph, .symbols = noise[trial->variants].symbols, .in = trial->in,
                                  .nans = true};
        struct weft_noise *const noises[] = {&noise[v], &noise[trial->variants], &nans};
        const bool right = weft_judge(want, got, graph->returns, noises, 3, trial->variant[v].exact, message,
                                      sizeof message);
        weft_noise_free(&nans);
        free_results(trial, got);
        if (!right)
            return weft_trial_fail(trial, WEFT_FAILS_PASS, "after %s, %s: %s", trial->variant[v].name, trial->what,
                                   message);
    }
    return WEFT_HOLDS;
}

static enum weft_outcome check_inputs(struct weft_trial *trial)
{
    struct weft_tensor *want = calloc(2 * (trial->graph->returns + 1), sizeof *want),
                       *got = want + trial->graph->returns + 1;
    struct weft_noise noise[WEFT_MOST_VARIANTS + 1] = {{0}}; /* of the variants; the last: of the graph as it stands */
    enum weft_outcome failure = WEFT_HOLDS;
    int64_t symbols[WEFT_MOST_VARIANTS + 1][WEFT_MOST_SYMBOLS];
    const int status = weft_evaluate(trial->graph, trial->in, trial->graph->params, want, trial->graph->returns);
    if (status == WEFT_OK) {
        for (int v = 0; v <= trial->variants; v++) {
            memcpy(symbols[v], trial->symbols, sizeof symbols[v]);
            noise[v] = (struct weft_noise){.graph = v < trial->variants ? trial->variant[v].graph : trial->graph,
                                           .symbols = symbols[v], .in = trial->in};
        }
        failure = check_control(trial, want, got);
        if (!failure)
            failure = check_variants(trial, want, got, noise);
        for (int p = 0; p < trial->plans && !failure; p++)
            failure = weft_trial_run(trial, p, want, noise);
        for (int v = 0; v <= trial->variants; v++)
            weft_noise_free(&noise[v]);
        free_results(trial, want);
    } else if (status == WEFT_ERR_BINDING) { /* sizes that the graph refuses are refused with this */
        for (int p = 0; p < trial->plans; p++)
            weft_trial_run_refused(trial, p);
    } else {
        failure = weft_trial_fail(trial, WEFT_FAILS_EVALUATOR, "%s: %s", trial->what,
                                  weft_last_error(trial->graph->context));
    }
    free(want);
    return failure;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static enum weft_outcome check_all(struct weft_trial *trial)
{
    enum weft_outcome failure = text_stays(trial, trial->graph, "the graph");
    if (!failure)
        failure = make_variants(trial);
    if (!failure)
        failure = make_plans(trial);
    const struct weft_dims *dims = trial->graph->dims;
    for (int size = 0; size < (weft_symbol_count(dims) ? WEFT_SIZES : 1) && !failure; size++)
        for (int hostile = 0; hostile < 2 && !failure; hostile++) {
            weft_trial_fill(trial, size, hostile);
            failure = check_inputs(trial);
            weft_trial_empty(trial);
        }
    return failure;
}

enum weft_outcome weft_check_graph(const struct weft_machine *machine, const struct weft_graph *graph, bool quiet)
{
    struct weft_trial trial = {.machine = machine, .graph = graph, .quiet = quiet};
    const enum weft_outcome failure = weft_symbol_count(graph->dims) <= WEFT_MOST_SYMBOLS ? check_all(&trial)
                                                                                         : WEFT_HOLDS;
    for (int i = 0; i < machine->ways; i++) {
        weft_execution_destroy(trial.planned[i].execution);
        weft_plan_destroy(trial.planned[i].plan);
    }
    for (int i = 0; i < trial.variants; i++)
        weft_graph_destroy(trial.variant[i].graph);
    return failure;
}
