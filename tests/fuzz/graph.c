/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c: what holds for every graph that weft has accepted, wherever it came from.
 *
 *   it is valid; it prints, and what is printed parses to what prints the same; so does a copy
 *   stripped, it is valid, and stripping again changes nothing
 *   after a pass alone, and after the pipeline, all of that holds again
 *   if it evaluates, then so does what passes made of it, and a plan of it runs: with results of the same shape, and
 *   with the same bits where all values of the graph are integers
 *
 * Values of floats are left to the golden tests and to random graphs, which know the bounds of their errors. */
#include "tests/fuzz/fuzz.h"

#include "passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PORTS = 32 };

struct sample {
    const struct weft_graph *graph; /* whose parameters the inputs fit */
    struct weft_tensor in[MOST_PORTS], out[MOST_PORTS];
    uint32_t ins, outs;
    bool exact;                     /* integers only: every bit of a result is determined */
};

static struct weft_context *context_of(const struct weft_graph *graph) { return graph->context; }

/* --- texts -------------------------------------------------------------------------------------------------------- */

struct text_call {
    struct weft_graph *graph;
    const char *given;         /* parsed instead of `graph` being printed */
    struct weft_text text;
    bool ok;
};

static int print_in_full(void *arg)
{
    struct text_call *call = arg;
    weft_print_graph(call->graph, &(struct weft_print_options){.all_inline = true, .absolute_files = true},
                     &call->text);
    return WEFT_OK;
}

static int parse_again(void *arg)
{
    struct text_call *call = arg;
    const struct weft_parse_options options = {.name = "/nowhere/again.weft"};
    call->graph =
        weft_parse_graph(call->text.context, call->given, strlen(call->given), 0, &options, NULL);
    return WEFT_OK;
}

static int strip_it(void *arg)
{
    struct text_call *call = arg;
    call->ok = weft_strip(call->graph);
    return WEFT_OK;
}

/* False if memory was refused; any other status but WEFT_OK is a finding. */
static bool went_well(const struct weft_graph *graph, int status, const char *what)
{
    if (status < 0 && status != WEFT_ERR_NOMEM)
        weft_fuzz_fail("%s: %s: %s", what, weft_status_text(status), weft_last_error(context_of(graph)));
    return status >= 0;
}

/* In the context's memory, to be closed; data is NULL where memory was refused. */
static struct weft_text text_of(struct weft_graph *graph)
{
    struct text_call call = {.graph = graph, .text = {.context = context_of(graph)}};
    if (!went_well(graph, weft_protected_graph(graph, print_in_full, &call), "printing"))
        weft_text_close(&call.text);
    return call.text;
}

static void require_same_text(struct weft_graph *graph, const char *want, struct weft_graph *other, const char *what)
{
    struct weft_text got = text_of(other);
    if (got.data && strcmp(want, got.data) != 0)
        weft_fuzz_fail("%s: another text\n--- first\n%s--- then\n%s", what, want, got.data);
    weft_text_close(&got);
}

static void check_texts(struct weft_graph *graph, const char *when)
{
    char what[80];
    snprintf(what, sizeof what, "validating %s", when);
    if (!went_well(graph, weft_validate(graph), what))
        return;
    struct weft_text text = text_of(graph);
    if (!text.data)
        return;
    struct text_call call = {.given = text.data, .text = {.context = context_of(graph)}};
    const int status = weft_protected(context_of(graph), parse_again, &call);
    if (status != WEFT_OK && status != WEFT_ERR_NOMEM)
        weft_fuzz_fail("what prints %s does not parse: %s\n%s", when, weft_last_error(context_of(graph)), text.data);
    if (status == WEFT_OK)
        require_same_text(graph, text.data, call.graph, "parsed again");
    weft_graph_destroy(call.graph);
    struct weft_graph *copy = NULL;
    if (went_well(graph, weft_graph_clone(graph, &copy), "copying"))
        require_same_text(graph, text.data, copy, "a copy");
    weft_graph_destroy(copy);
    weft_text_close(&text);
}

static void check_strip(const struct weft_graph *graph)
{
    struct weft_graph *copy = NULL;
    if (!went_well(graph, weft_graph_clone(graph, &copy), "copying"))
        return;
    struct text_call call = {.graph = copy};
    if (went_well(copy, weft_protected_graph(copy, strip_it, &call), "stripping")) {
        went_well(copy, weft_validate(copy), "validating what was stripped");
        if (went_well(copy, weft_protected_graph(copy, strip_it, &call), "stripping again"))
            weft_fuzz_require(!call.ok);
    }
    weft_graph_destroy(copy);
}

/* --- samples: inputs, and the results of evaluating --------------------------------------------------------------- */

/* Values of all symbols: the lower ends, one above them, or the hints; data symbols at their bounds. */
static int64_t *draw_symbols(const struct weft_graph *graph, uint64_t *choice)
{
    const uint32_t count = weft_symbol_count(graph->dims);
    int64_t *symbols = calloc(count + 1u, sizeof *symbols);
    const uint32_t how = weft_fuzz_draw(choice, 4);
    weft_fuzz_require(symbols != NULL);
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_symbol_info *info = weft_symbol_at(graph->dims, i);
        const int64_t hint = info->hint ? info->hint : info->low;
        symbols[i] = how == 0 ? info->low : how == 3 ? hint : info->low + how;
        if (symbols[i] > info->high)
            symbols[i] = info->high;
    }
    weft_symbols_at_bounds(graph->dims, symbols);
    return symbols;
}

/* Scalars of integers stay 0 or 1, since they may say how often a loop runs; other integers may be anything. */
static void draw_elements(struct weft_tensor *tensor, int64_t count, uint64_t *choice)
{
    static const int64_t whole[] = {0, 1, 0, 1, 2, -1, 3, 127, -128, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    const bool tame = tensor->rank == 0 || tensor->dtype == WEFT_BOOL || weft_fuzz_draw(choice, 2);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = weft_fuzz_draw(choice, 1 << 20);
        if (weft_dtype_is_float(tensor->dtype) || tensor->dtype > WEFT_U4)
            weft_store_real(tensor->dtype, tensor->data, i, (double)bits / (1 << 19) - 1);
        else
            weft_store_integer(tensor->dtype, tensor->data, i,
                               tame ? bits & 1 : whole[bits % (sizeof whole / sizeof *whole)]);
    }
}

static void make_input(struct sample *sample, uint32_t i, const int64_t *symbols, uint64_t *choice)
{
    const struct weft_type *type = weft_type_of(sample->graph, sample->graph->param[i]);
    struct weft_tensor *in = &sample->in[sample->ins++];
    *in = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
    int64_t count = 1;
    for (int axis = 0; axis < type->rank; axis++)
        count *= in->extent[axis] = weft_dim_evaluate(sample->graph->dims, type->extent[axis], symbols);
    weft_tensor_dense(in);
    in->data = calloc((size_t)count + 1, 8);
    weft_fuzz_require(in->data != NULL);
    draw_elements(in, count, choice);
}

static bool has_only_integers(const struct weft_graph *graph)
{
    for (uint32_t i = 1; i < graph->values; i++) {
        const int dtype = graph->value[i].type.dtype;
        if (weft_dtype_is_float(dtype) || weft_dtype_is_storage_only(dtype))
            return false;
    }
    for (uint32_t i = 0; i < graph->bodies; i++)
        if (!has_only_integers(graph->body[i]))
            return false;
    return true;
}

/* Draws inputs and evaluates. False where that is too much work, or an error; the sample is to be closed in any case.
 * */
static bool open_sample(struct sample *sample, const struct weft_graph *graph, uint64_t *choice)
{
    *sample = (struct sample){.graph = graph, .exact = has_only_integers(graph)};
    if (graph->params > MOST_PORTS || graph->returns > MOST_PORTS)
        return false;
    int64_t *symbols = draw_symbols(graph, choice);
    const bool small = weft_fuzz_is_small(graph, symbols);
    for (uint32_t i = 0; small && i < graph->params; i++)
        make_input(sample, i, symbols, choice);
    free(symbols);
    if (!small || weft_evaluate(graph, sample->in, sample->ins, sample->out, graph->returns) != WEFT_OK)
        return false;
    sample->outs = graph->returns;
    return true;
}

static void close_sample(struct sample *sample)
{
    for (uint32_t i = 0; i < sample->ins; i++)
        free(sample->in[i].data);
    for (uint32_t i = 0; i < sample->outs; i++)
        weft_tensor_free(context_of(sample->graph), &sample->out[i]);
}

static void require_same(const struct sample *sample, uint32_t i, const struct weft_tensor *got, const char *what)
{
    const struct weft_tensor *want = &sample->out[i];
    bool same = got->dtype == want->dtype && got->rank == want->rank;
    int64_t count = 1;
    for (int axis = 0; same && axis < want->rank; axis++) {
        count *= want->extent[axis];
        same = got->extent[axis] == want->extent[axis];
    }
    if (!same)
        weft_fuzz_fail("%s: result %u has another shape", what, i);
    struct weft_tensor dense = *want;
    weft_tensor_dense(&dense);
    if (sample->exact && memcmp(dense.stride, got->stride, (size_t)want->rank * sizeof *got->stride) == 0 &&
        count > 0 && memcmp(want->data, got->data, (size_t)weft_dtype_bytes(want->dtype, count)) != 0)
        weft_fuzz_fail("%s: result %u has other elements", what, i);
}

/* --- what may be done to a graph ---------------------------------------------------------------------------------- */

static void check_evaluation(const struct sample *sample, const struct weft_graph *graph, const char *what)
{
    struct weft_tensor out[MOST_PORTS] = {{0}};
    if (sample->outs == 0)
        return;
    weft_fuzz_require(graph->returns == sample->outs && graph->params == sample->ins);
    if (!went_well(graph, weft_evaluate(graph, sample->in, sample->ins, out, sample->outs), what))
        return;
    for (uint32_t i = 0; i < sample->outs; i++) {
        require_same(sample, i, &out[i], what);
        weft_tensor_free(context_of(graph), &out[i]);
    }
}

/* `pass` NULL: the pipeline. */
static void check_pass(const struct weft_graph *graph, const struct sample *sample, const char *pass)
{
    struct weft_graph *copy = NULL;
    char when[64];
    snprintf(when, sizeof when, "after %s", pass ? pass : "the pipeline");
    if (went_well(graph, weft_graph_clone(graph, &copy), "copying") &&
        went_well(copy, pass ? weft_run_pass(copy, pass, NULL) : weft_run_pipeline(copy, NULL), when)) {
        check_texts(copy, when);
        check_evaluation(sample, copy, when);
    }
    weft_graph_destroy(copy);
}

/* Runs twice: the second time everything is bound already. */
static void check_execution(struct weft_execution *execution, const struct sample *sample)
{
    for (uint32_t i = 0; i < sample->ins; i++)
        weft_fuzz_require(weft_bind_input(execution, i, &sample->in[i]) == WEFT_OK);
    for (int times = 0; times < 2; times++) {
        const int status = weft_run(execution);
        if (status == WEFT_ERR_NOMEM)
            return;
        if (status != WEFT_OK)
            weft_fuzz_fail("it evaluates but does not run: %s", weft_execution_error(execution));
        for (uint32_t i = 0; i < sample->outs; i++) {
            struct weft_tensor out;
            weft_fuzz_require(weft_output(execution, i, &out) == WEFT_OK);
            require_same(sample, i, &out, "the plan");
        }
    }
}

/* A parameter that runs write to, or that does not lie as the sample does, wants a tensor of its own. */
static bool is_plain(const struct weft_graph *graph)
{
    for (uint32_t i = 0; i < graph->params; i++) {
        const struct weft_layout layout = weft_layout_of(graph, graph->param[i]);
        if (weft_value_of(graph, graph->param[i])->is_mut || !weft_layout_is_row_major(&layout))
            return false;
    }
    return true;
}

static void check_plan(const struct weft_graph *graph, const struct sample *sample, uint64_t *choice)
{
    static const uint32_t flags[] = {0, 0, WEFT_COMPILE_NO_PASSES, WEFT_COMPILE_REFERENCE};
    const struct weft_compile_options options = {.size = sizeof options, .flags = flags[weft_fuzz_draw(choice, 4)]};
    struct weft_plan *plan = NULL;
    const int status = weft_compile(graph, &options, &plan);
    if (status != WEFT_OK) {
        if (sample->outs && status != WEFT_ERR_UNSUPPORTED) /* layouts that no kernel reads yet */
            went_well(graph, status, "it evaluates but does not compile");
        return;
    }
    char *text = NULL;
    if (went_well(graph, weft_plan_print(plan, &text), "printing the plan"))
        weft_free_text(context_of(graph), text);
    struct weft_execution *execution = NULL;
    if (sample->outs && is_plain(graph) && weft_execution_create(plan, &execution) == WEFT_OK)
        check_execution(execution, sample);
    weft_execution_destroy(execution);
    weft_plan_destroy(plan);
}

void weft_fuzz_graph(struct weft_graph *graph, uint64_t choice)
{
    struct sample sample;
    check_texts(graph, "as it was read");
    check_strip(graph);
    if (!open_sample(&sample, graph, &choice))
        sample.outs = 0;
    /* Copies of the graph go through each pass beside it: slow, hence not every time. */
    if (weft_fuzz_draw(&choice, 4) == 0)
        setenv("WEFT_DEBUG", "clone,reparse", 1);
    check_pass(graph, &sample, weft_passes[weft_fuzz_draw(&choice, weft_pass_count)].name);
    check_pass(graph, &sample, NULL);
    unsetenv("WEFT_DEBUG");
    check_plan(graph, &sample, &choice);
    close_sample(&sample);
}
