/* SPDX-License-Identifier: Apache-2.0 */
/* test_strip.c: no elementwise op falls back upon the evaluator: each has a strip kernel for every type it takes.
 *
 * Which types an op takes is asked of inference, with a graph of that one node; whether there is a kernel, of the plan
 * that is made of it. So a new row in ops.def fails here until it has kernels, or a line among the exceptions. */
#include "kernels/kernels.h"
#include "runtime/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The exceptions. Two elements in a byte have no address, so no strip; they are storage, which a model unpacks once.
 * quantize and dequantize have operands of several types, which no strip has; decompose opens them. */
static bool is_small(int dtype) { return weft_dtype_bits(dtype) < 8; }
static bool is_opened(int op) { return op == WEFT_OP_quantize || op == WEFT_OP_dequantize; }

static struct weft_context *context;
static int kernels, nodes;

static void ignore(void *user, const struct weft_diagnostic *diagnostic) {}

/* One node on operands of a type; `condition`: the first is bool. Inference decides whether there is such a node. */
static void try_node(int op, const char *attributes, int from, int to)
{
    const int operands = weft_ops[op].min_operands;
    char text[512], params[160] = "", names[64] = "";
    for (int i = 0; i < operands; i++) {
        const bool condition = op == WEFT_OP_select && i == 0;
        snprintf(params + strlen(params), sizeof params - strlen(params), "%s%%%c: %s[5]", i ? ", " : "", 'a' + i,
                 condition ? "bool" : weft_dtype_name(from));
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%%%c", i ? ", " : "", 'a' + i);
    }
    snprintf(text, sizeof text, "graph @g(%s) {\n%%r: %s[5] = %s %s %s\nreturn %%r\n}\n", params, weft_dtype_name(to),
             weft_ops[op].name, names, attributes);
    struct weft_graph *graph = NULL;
    if (weft_parse(context, text, strlen(text), "test", &graph) != WEFT_OK)
        return;
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_NO_PASSES};
    struct weft_plan *plan = NULL;
    assert_int_equal(weft_compile(graph, &options, &plan), WEFT_OK);
    for (uint32_t i = 0; i < plan->steps; i++) {
        nodes += plan->step[i].node.id != 0;
        kernels += plan->step[i].node.id && plan->step[i].kind != &weft_step_reference;
        if (plan->step[i].kind == &weft_step_reference && !is_small(from) && !is_small(to))
            fail_msg("there is no kernel for this node:\n%s", text);
    }
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
}

static void try_op(int op, const char *attributes)
{
    for (int from = WEFT_F64; from <= WEFT_F8E5M2; from++) {
        const bool stated = weft_ops[op].traits & WEFT_STATED;
        for (int to = WEFT_F64; to <= WEFT_F8E5M2; to++)
            if (stated || to == from || to == WEFT_BOOL)
                try_node(op, attributes, from, to);
    }
}

static void test_every_op_has_kernels(void **state)
{
    (void)state;
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        if (!(weft_ops[op].traits & WEFT_ELEMENTWISE) || is_opened(op))
            continue;
        const int before = nodes;
        const struct weft_attr_spec *form = weft_attr_spec_find(op, WEFT_ATTR_form);
        const char *words = form ? form->words : "";
        for (const char *word = words; *word; word += strspn(word, " ")) {
            char attributes[64];
            const size_t length = strcspn(word, " ");
            snprintf(attributes, sizeof attributes, "form=%.*s", (int)length, word);
            try_op(op, attributes);
            word += length;
        }
        try_op(op, "");
        if (nodes == before)
            fail_msg("%s takes none of the types", weft_ops[op].name);
    }
    assert_in_range(kernels, 800, 100000); /* the loops above did meet them */
}

static int setup(void **state)
{
    (void)state;
    const struct weft_context_options options = {.size = sizeof options, .diagnose = ignore};
    return weft_open(&options, &context);
}

static int teardown(void **state)
{
    (void)state;
    weft_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_op_has_kernels)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
