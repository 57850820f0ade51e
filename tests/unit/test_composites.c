/* SPDX-License-Identifier: Apache-2.0 */
/* test_composites.c: chains of elementwise ops that groups compute by one function (codegen/composites.c), and chains
 * that are nearly that. */
#include "codegen/form.h"
#include "tests/unit/plan_support.h"

#define GELU_GATE "  %d: T = mul %x, %root\n  %e: T = erf %d\n  %g: T = add %e, %one\n"
#define TANH_GATE                                                                                                      \
    "  %s: T = mul %x, %x\n  %c: T = mul %s, %x\n  %k: T = mul %c, %cubic\n  %p: T = add %x, %k\n"                     \
    "  %u: T = mul %p, %sqrt\n  %e: T = tanh %u\n  %g: T = add %e, %one\n"

/* Lines of a graph from %x to %y, and the words that its form has. */
static const struct {
    const char *body, *words;
} chain[] = {
    {"  %s: T = sigmoid %x\n  %y: T = mul %s, %x\n", "silu "},
    {"  %s: T = softplus %x\n  %t: T = tanh %s\n  %y: T = mul %x, %t\n", "mish "},
    {"  %s: T = softplus %x\n  %t: T = tanh %s\n  %y: T = mul %t, %x\n", "mish "},
    {"  %s: T = softplus %x\n  %t: T = tanh %s\n  %y: T = mul %t, %z\n", "softplus tanh mul "},
    {GELU_GATE "  %h: T = mul %g, %half\n  %y: T = mul %x, %h\n", "gelu "},
    {GELU_GATE "  %h: T = mul %x, %half\n  %y: T = mul %h, %g\n", "gelu "},
    {GELU_GATE "  %h: T = mul %x, %g\n  %y: T = mul %h, %half\n", "gelu "},
    {GELU_GATE "  %h: T = mul %z, %half\n  %y: T = mul %h, %g\n", "mul erf add mul mul "},
    {GELU_GATE "  %h: T = mul %x, %root\n  %y: T = mul %h, %g\n", "mul erf add mul "}, /* x / sqrt 2 twice */
    {TANH_GATE "  %h: T = mul %g, %half\n  %y: T = mul %x, %h\n", "gelu.tanh "},
    {TANH_GATE "  %h: T = mul %half, %x\n  %y: T = mul %g, %h\n", "gelu.tanh "},
    {TANH_GATE "  %h: T = mul %g, %x\n  %y: T = mul %half, %h\n", "gelu.tanh "},
    {"  %s: T = mul %z, %x\n  %c: T = mul %s, %x\n  %k: T = mul %c, %cubic\n  %p: T = add %x, %k\n"
     "  %u: T = mul %p, %sqrt\n  %e: T = tanh %u\n  %g: T = add %e, %one\n  %h: T = mul %g, %half\n"
     "  %y: T = mul %x, %h\n", "mul mul mul add mul tanh add mul mul "},
};

static void write_chain(const char *body, const char *type, char *text, size_t bytes)
{
    static const struct {
        const char *name;
        double value;
    } number[] = {{"one", 1}, {"half", 0.5}, {"root", 0.70710678118654752}, {"sqrt", 0.79788456080286536},
                  {"cubic", 0.044715}};
    size_t n = (size_t)snprintf(text, bytes, "graph @t(%%x: %s, %%z: %s) {\n", type, type);
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
        n += (size_t)snprintf(text + n, bytes - n, "  %%%s: %s = const value=%.17g\n", number[i].name, type,
                              number[i].value);
    for (; *body; body++)
        n += (size_t)(*body == 'T' ? snprintf(text + n, bytes - n, "%s", type)
                                   : snprintf(text + n, bytes - n, "%c", *body));
    snprintf(text + n, bytes - n, "  return %%y\n}\n");
}

/* The words of all instructions of the plan's only group. */
static void words_of(const struct weft_plan *plan, char *words, size_t bytes)
{
    words[0] = '\0';
    assert_int_equal(plan->steps, 1);
    const struct weft_form *const form = weft_step_form(&plan->step[0]);
    assert_non_null(form);
    for (uint32_t i = 0; i < form->ops; i++)
        if (form->op[i].kind == WEFT_FORM_MAP && strcmp(form->op[i].word, "cast") != 0)
            snprintf(words + strlen(words), bytes - strlen(words), "%s ", form->op[i].word);
}

static void chains(void **state)
{
    (void)state;
    static const char *const types[] = {"f32[50,77]", "bf16[50,77]", "f16[50,77]"};
    for (size_t i = 0; i < sizeof chain / sizeof chain[0]; i++)
        for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
            char text[4096], words[256];
            write_chain(chain[i].body, types[k], text, sizeof text);
            struct scene s = open_scene(text, 0);
            words_of(s.plan, words, sizeof words);
            if (strcmp(words, chain[i].words) != 0)
                fail_msg("%sis computed as %s", text, words);
            close_scene(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
