/* SPDX-License-Identifier: Apache-2.0 */
/* check_plain.c: plain kernels, and products in f64 and integers, in plans of one op, whose inputs and results border
 * on inaccessible pages, beside the reference evaluator. All forms and dtypes for which the plan chooses the kernel, of
 * several sizes. */
#include "check/check.h"
#include "runtime/runtime.h"
#include "tests/unit/sample_support.h"

static void run_at(struct weft_check *check, const struct weft_plan *plan, int64_t n, const char *what)
{
    static char memory[1 << 20];
    const struct weft_graph *g = plan->graph;
    struct weft_tensor in[8], want[8] = {{0}}, got;
    struct weft_execution *e;
    sample_fill(g, in, n, memory);
    if (weft_evaluate(g, in, g->params, want, g->returns) != WEFT_OK || weft_execution_create(plan, &e) != WEFT_OK) {
        weft_check_fail(check, "%s: %s", what, weft_last_error(plan->context));
        return;
    }
    for (uint32_t i = 0; i < g->params; i++) {
        void *const guarded = weft_check_alloc(check, weft_tensor_bytes(&in[i]));
        memcpy(guarded, in[i].data, weft_tensor_bytes(&in[i]));
        in[i].data = guarded;
        weft_bind_input(e, i, &in[i]);
    }
    for (uint32_t i = 0; i < g->returns && !(weft_op_of(g, weft_def(g, g->ret[i].value))->traits & WEFT_DATA); i++) {
        struct weft_tensor out = want[i];
        out.data = weft_check_alloc(check, weft_tensor_bytes(&out));
        weft_bind_output(e, i, &out);
    }
    if (weft_run(e) != WEFT_OK)
        weft_check_fail(check, "%s: %s", what, weft_execution_error(e));
    for (uint32_t i = 0; i < g->returns && !weft_check_failed(check); i++) {
        weft_output(e, i, &got);
        for (int64_t k = 0; k < weft_tensor_count(&want[i]) && !weft_check_failed(check); k++)
            if (!sample_near(&got, &want[i], k))
                weft_check_fail(check, "%s: element %lld of result %u is %.9g instead of %.9g", what, (long long)k, i,
                                weft_load_real(got.dtype, got.data, k),
                                weft_load_real(want[i].dtype, want[i].data, k));
    }
    for (uint32_t i = 0; i < g->returns; i++)
        weft_tensor_free(plan->context, &want[i]);
    weft_execution_destroy(e);
}

/* Is the kernel's name in the plan's text? */
static bool uses(const struct weft_plan *plan, const char *kernel)
{
    char *text, word[64];
    snprintf(word, sizeof word, "! %s ", kernel);
    if (weft_plan_print(plan, &text) != WEFT_OK)
        return false;
    const bool there = strstr(text, word) != NULL;
    weft_free_text(plan->context, text);
    return there;
}

static void body(struct weft_check *check, const void *user)
{
    const char *const kernel = user, *const level = strstr(kernel, "__") + 2;
    const struct weft_context_options options = {
        .size = sizeof options, .threads = 3, .cpu = strcmp(level, "ref") == 0 ? "baseline" : level};
    struct weft_context *context;
    int cases = 0;
    if (weft_open(&options, &context) != WEFT_OK) {
        weft_check_fail(check, "no context");
        return;
    }
    for (size_t i = 0; i < SAMPLES; i++)
        for (int dtype = SAMPLE_FIRST; dtype <= SAMPLE_LAST && !weft_check_failed(check); dtype++) {
            struct weft_plan *plan = NULL;
            struct weft_graph *graph = sample_graph(context, &samples[i], dtype);
            if (graph && weft_compile(graph, NULL, &plan) == WEFT_OK && uses(plan, kernel)) {
                run_at(check, plan, weft_check_between(check, 3, 9), weft_dtype_name(dtype));
                run_at(check, plan, weft_check_between(check, 10, 60), weft_dtype_name(dtype));
                cases++;
            }
            weft_plan_destroy(plan);
            weft_graph_destroy(graph);
        }
    if (!cases)
        weft_check_fail(check, "no sample uses it");
    weft_close(context);
}

void weft_check_plain(struct weft_check *check)
{
#define PLAIN(op, units, scratch, run, count)                                                                          \
    weft_check_kernel(check, "weft_plain_" #op "__ref", 0, body, "weft_plain_" #op "__ref");
#include "kernels/plain/plain.def"
    weft_check_kernel(check, "weft_weigh__ref", 0, body, "weft_weigh__ref");
}

void weft_check_product(struct weft_check *check)
{
#define PRODUCT(id, form, level, cpu)                                                                                  \
    weft_check_kernel(check, "weft_product_" #id "__" #level, cpu, body, "weft_product_" #id "__" #level);
#include "kernels/product/product.def"
}
