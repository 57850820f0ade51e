/* SPDX-License-Identifier: Apache-2.0 */
/* packs.c: the program.
 *
 *   random-packs [COUNT [SEED]]     draws COUNT cases from SEED on (200 from 1) and runs each at every CPU level; then
 *                                   more, up to five times as many, until every kind of loops was met
 *   random-packs --show SEED        prints the graph of a seed and the sizes that it is run at
 *   random-packs --choices …        each case also with the second to the ninth choice of every unit, and no more cases
 *                                   than that: which kinds of loops were met is not asked
 *
 * Prints how often each kind of loops was run on a pack, and on weights as they are because the pack was for others;
 * fails where one of the kernels' tables never was. Closes with "N passed, N failed, N skipped". */
#include "tests/property/packs.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TIMES = 5, EACH = 20 };

struct level {
    struct weft_context *context[2]; /* by threads - 1 */
    uint32_t cpu;
};
static struct level levels[3];
static int level_count;

static bool open_levels(void)
{
    static const char *const names[] = {"avx512", "avx2", "baseline"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct level *level = &levels[level_count];
        for (int t = 0; t < 2; t++) {
            struct weft_context_options options = {.size = sizeof options, .threads = t + 1, .cpu = names[i]};
            if (weft_open(&options, &level->context[t]) != WEFT_OK)
                return false;
        }
        level->cpu = level->context[0]->target.cpu;
        if (level_count > 0 && level->cpu == level[-1].cpu) { /* the machine has no more than the level before */
            weft_close(level->context[0]);
            weft_close(level->context[1]);
            continue;
        }
        level_count++;
    }
    return true;
}

/* --- one case ----------------------------------------------------------------------------------------------------- */

struct drawn {
    struct weft_context *context;
    uint64_t seed;
    struct weft_packs_case made;
};

static int draw(void *argument)
{
    struct drawn *d = argument;
    struct weft_draws choices;
    weft_choices_seed(&choices, d->seed);
    weft_packs_draw(d->context, &choices, d->seed, &d->made);
    weft_choices_free(&choices);
    return WEFT_OK;
}

static void describe(const struct weft_packs_case *made)
{
    struct weft_text text = {.context = made->graph->context};
    weft_print_graph(made->graph, &(struct weft_print_options){.all_inline = true}, &text);
    fputs(text.data, stdout);
    weft_text_close(&text);
    for (int run = 0; run < WEFT_PACKS_RUNS; run++) {
        printf("# run %d:", run);
        for (uint32_t i = 0; i < weft_symbol_count(made->graph->dims); i++)
            printf(" %s=%lld", weft_symbol_at(made->graph->dims, i)->name, (long long)made->size[run][i]);
        printf("%s", run + 1 < WEFT_PACKS_RUNS ? "\n" : "\n\n");
    }
}

struct inputs {
    struct weft_tensor tensor[WEFT_PACKS_SYMBOLS];
};

static void fill_inputs(const struct weft_graph *graph, const int64_t *symbols, struct inputs *ret)
{
    for (uint32_t i = 0; i < graph->params; i++) {
        struct weft_tensor *t = &ret->tensor[i];
        const struct weft_layout layout = weft_layout_of(graph, graph->param[i]);
        weft_dim stride[WEFT_MAX_RANK];
        weft_tensor_of(graph, weft_type_of(graph, graph->param[i]), symbols, t);
        weft_layout_logical_strides(graph->dims, &layout, weft_type_of(graph, graph->param[i]), stride);
        for (int k = 0; k < t->rank; k++)
            t->stride[k] = weft_dim_evaluate(graph->dims, stride[k], symbols);
        const int64_t count = weft_tensor_count(t);
        float *const data = malloc((size_t)(count + 1) * sizeof *data);
        uint64_t state = (uint64_t)count + i;
        for (int64_t k = 0; k < count; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            data[k] = (float)((state >> 33) % 5) - 2.0f;
        }
        t->data = data;
    }
}

static const float *element(const struct weft_tensor *t, int64_t number)
{
    int64_t at = 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        at += number % t->extent[i] * t->stride[i];
        number /= t->extent[i];
    }
    return (const float *)t->data + at;
}

/* The first element that is wrong, or -1. */
static int64_t compare(const struct weft_tensor *want, const struct weft_tensor *got, double tolerance)
{
    const int64_t count = weft_tensor_count(want);
    for (int i = 0; i < want->rank; i++)
        if (want->extent[i] != got->extent[i])
            return 0;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)*element(want, i) - (double)*element(got, i)) <= tolerance))
            return i;
    return -1;
}

/* A case with what the evaluator says of its runs. */
struct expected {
    struct drawn d;
    struct inputs in[WEFT_PACKS_RUNS];
    struct weft_tensor want[WEFT_PACKS_RUNS];
    bool refused[WEFT_PACKS_RUNS]; /* sizes that the graph does not take */
};

static void expect(struct expected *ret, uint64_t seed)
{
    *ret = (struct expected){.d = {.context = levels[0].context[0], .seed = seed}};
    weft_protected(ret->d.context, draw, &ret->d);
    const struct weft_graph *graph = ret->d.made.graph;
    for (int run = 0; run < WEFT_PACKS_RUNS; run++) {
        fill_inputs(graph, ret->d.made.size[run], &ret->in[run]);
        ret->refused[run] = graph->returns == 0 || weft_evaluate(graph, ret->in[run].tensor, graph->params,
                                                                 &ret->want[run], 1) != WEFT_OK;
    }
}

static void forget(struct expected *e)
{
    for (int run = 0; run < WEFT_PACKS_RUNS; run++) {
        for (uint32_t i = 0; i < e->d.made.graph->params; i++)
            free(e->in[run].tensor[i].data);
        weft_tensor_free(e->d.context, &e->want[run]);
    }
    weft_graph_destroy(e->d.made.graph);
}

/* True if it is right. */
static bool run_once(const struct expected *expected, const struct weft_plan *plan, struct weft_execution *e, int run)
{
    const unsigned long long seed = expected->d.seed;
    struct weft_tensor got;
    bool runs = true;
    for (size_t i = 0; i < weft_plan_inputs(plan); i++)
        runs = runs && weft_bind_input(e, i, &expected->in[run].tensor[i]) == WEFT_OK;
    runs = runs && weft_run(e) == WEFT_OK && weft_output(e, 0, &got) == WEFT_OK;
    if (!runs) {
        printf("seed %llu, run %d: %s\n", seed, run, weft_execution_error(e));
        return false;
    }
    weft_packs_count(plan, e);
    const struct weft_tensor *want = &expected->want[run];
    const int64_t wrong = compare(want, &got, expected->d.made.tolerance);
    if (wrong >= 0)
        printf("seed %llu, run %d: element %lld is %g and not %g\n", seed, run, (long long)wrong,
               (double)*element(&got, wrong), (double)*element(want, wrong));
    return wrong < 0;
}

/* A plan in which every unit takes that choice, from 1. */
static int compile(const struct drawn *d, int choice, struct weft_plan **ret)
{
    const struct weft_compile_options options = {.size = sizeof options, .flags = d->made.flags};
    char text[16];
    snprintf(text, sizeof text, "%d", choice);
    if (choice > 1)
        setenv("WEFT_CHOICE", text, 1);
    const int status = weft_compile(d->made.graph, &options, ret);
    if (choice > 1)
        unsetenv("WEFT_CHOICE");
    return status;
}

/* At one CPU level. False: something is wrong. */
static bool check_level(const struct level *level, const struct expected *expected, int choice, long *ret_runs)
{
    struct drawn d = {.seed = expected->d.seed, .context = level->context[expected->d.made.threads - 1]};
    struct weft_plan *plan = NULL;
    struct weft_execution *e = NULL;
    weft_protected(d.context, draw, &d);
    bool right = true;
    if (d.made.graph->returns == 0) { /* inference refused it: a map that no size gives a pixel */
        weft_graph_destroy(d.made.graph);
        return true;
    }
    if (compile(&d, choice, &plan) != WEFT_OK || weft_execution_create(plan, &e) != WEFT_OK) {
        printf("seed %llu: %s\n", (unsigned long long)d.seed, weft_last_error(d.context));
        right = false;
    }
    for (int run = 0; run < WEFT_PACKS_RUNS && right; run++) {
        if (expected->refused[run])
            continue;
        right = run_once(expected, plan, e, run);
        ++*ret_runs;
    }
    weft_execution_destroy(e);
    weft_plan_destroy(plan);
    weft_graph_destroy(d.made.graph);
    if (!right && choice > 1)
        printf("seed %llu: that was choice %d\n", (unsigned long long)d.seed, choice);
    return right;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static volatile uint64_t at_hand;

static void tell_seed(int number)
{
    char text[48] = "crash at seed ";
    size_t length = strlen(text), digits = 1;
    for (uint64_t rest = at_hand; rest >= 10; rest /= 10)
        digits++;
    for (size_t i = digits, rest = at_hand; i > 0; i--, rest /= 10)
        text[length + i - 1] = (char)('0' + rest % 10);
    text[length + digits] = '\n';
    if (write(STDOUT_FILENO, text, length + digits + 1) > 0)
        signal(number, SIG_DFL);
    raise(number);
}

static int show(uint64_t seed)
{
    struct drawn d = {.seed = seed, .context = levels[0].context[0]};
    weft_protected(d.context, draw, &d);
    describe(&d.made);
    weft_graph_destroy(d.made.graph);
    return 0;
}

static int check_all(uint64_t count, uint64_t seed, int last_choice)
{
    long failed = 0, runs = 0;
    uint32_t cpu = 0;
    for (int k = 0; k < level_count; k++)
        cpu |= levels[k].cpu;
    uint64_t i = 0;
    const uint64_t most = last_choice > 1 ? count : MOST_TIMES * count;
    for (; i < count || (i < most && (i % EACH || weft_packs_missing(cpu, true) > 0)); i++) {
        bool right = true;
        at_hand = seed + i;
        struct expected expected;
        expect(&expected, seed + i);
        for (int k = 0; k < level_count; k++)
            for (int choice = 1; choice <= last_choice; choice++)
                right = check_level(&levels[k], &expected, choice, &runs) && right;
        forget(&expected);
        if (!right && failed++ < 3)
            show(seed + i);
    }
    const int unmet = weft_packs_missing(cpu, last_choice > 1), missing = last_choice > 1 ? 0 : unmet;
    printf("%llu cases from seed %llu on, %ld runs\n", (unsigned long long)i, (unsigned long long)seed, runs);
    printf("%ld passed, %ld failed, 0 skipped\n", (long)i - failed, failed + missing);
    return failed + missing > 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGSEGV, tell_seed);
    signal(SIGABRT, tell_seed);
    const bool choices = argc > 1 && strcmp(argv[1], "--choices") == 0;
    if (!open_levels())
        return 1;
    argc -= choices, argv += choices;
    int status;
    if (argc == 3 && strcmp(argv[1], "--show") == 0)
        status = show(strtoull(argv[2], NULL, 10));
    else
        status = check_all(argc > 1 ? strtoull(argv[1], NULL, 10) : 200, argc > 2 ? strtoull(argv[2], NULL, 10) : 1,
                           choices ? WEFT_LAST_CHOICE : 1);
    for (int i = 0; i < level_count; i++)
        for (int t = 0; t < 2; t++)
            weft_close(levels[i].context[t]);
    return status;
}
