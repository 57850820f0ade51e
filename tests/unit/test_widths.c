/* SPDX-License-Identifier: Apache-2.0 */
/* test_widths.c: the kernel forms of groups with floats of 16 bits: widened when loaded, rounded when stored, and in
 * between by casts that are nodes alone. */
#include "plan_support.h"

#include "codegen/form.h"
#include "ir/text.h"

/* The form of the one group, without the name of the kernel. */
static void expect(const char *text, const char *want)
{
    struct weft_context *const context = open_context(1);
    struct weft_graph *const graph = parse(context, text);
    struct weft_plan *const plan = compile(graph, WEFT_COMPILE_NO_PASSES);
    struct weft_text form = {.context = context};
    for (uint32_t i = 0; i < plan->steps; i++)
        if (plan->step[i].code)
            weft_form_print(plan->step[i].code, &form);
    if (!form.length)
        fail_msg("no step has code");
    assert_string_equal(strstr(form.data, "  axis"), want);
    weft_text_close(&form);
    weft_plan_destroy(plan);
    weft_graph_destroy(graph);
    weft_close(context);
}

static void results_round_once_and_are_read_unrounded(void **state)
{
    expect("graph @f(%x: bf16[9], %y: bf16[9]) {\n"
           "  %k: bf16[9] = const value=0.3\n"
           "  fuse @g {\n"
           "    %a: bf16[9]{-} = add %x, %y\n"
           "    %b: bf16[9] = mul %a, %k\n"
           "    %c: bf16[9] = sub %b, %x\n"
           "  }\n"
           "  return %b, %c\n"
           "}\n",
           "  axis a in 9\n"
           "  phase a {\n"
           "    sweep a {\n"
           "      %0: bf16 = load %x0[a]\n"
           "      %1: f32 = cast %0\n"
           "      %2: bf16 = load %x1[a]\n"
           "      %3: f32 = cast %2\n"
           "      %4: f32 = add %1, %3\n"
           "      %5: f32 = const 0.30078125\n"
           "      %6: f32 = mul %4, %5\n"
           "      %7: bf16 = cast %6\n"
           "      store %y2[a], %7\n"
           "      %8: f32 = sub %6, %1\n"
           "      %9: bf16 = cast %8\n"
           "      store %y3[a], %9\n"
           "    }\n"
           "  }\n"
           "}\n");
}

static void a_cast_that_is_a_node_rounds(void **state)
{
    expect("graph @f(%x: f32[9], %y: f16[9]) {\n"
           "  fuse @g {\n"
           "    %a: f16[9]{-} = cast %x\n"
           "    %b: f16[9]{-} = mul %a, %y\n"
           "    %c: f32[9]{-} = cast %b\n"
           "    %d: f32[9] = exp %c\n"
           "  }\n"
           "  return %d\n"
           "}\n",
           "  axis a in 9\n"
           "  phase a {\n"
           "    sweep a {\n"
           "      %0: f32 = load %x0[a]\n"
           "      %1: f16 = cast(1) %0\n"
           "      %2: f32 = cast %1\n"
           "      %3: f16 = load %x1[a]\n"
           "      %4: f32 = cast %3\n"
           "      %5: f32 = mul %2, %4\n"
           "      %6: f32 = exp %5\n"
           "      store %y2[a], %6\n"
           "    }\n"
           "  }\n"
           "}\n");
}

/* What was loaded is widened in each stage; no wide copy is kept. The exponentials are, in f32. */
static void stages_load_once_more(void **state)
{
    expect("graph @f(%x: bf16[4,9]) {\n"
           "  fuse @g {\n"
           "    %w: f32[4,9]{-} = cast %x\n"
           "    %m: f32[4]{-} = reduce_max %w axes=[1]\n"
           "    %0: f32[4,9]{-} = bcast %m dims=[0]\n"
           "    %d: f32[4,9]{-} = sub %w, %0\n"
           "    %e: f32[4,9]{-} = exp %d\n"
           "    %s: f32[4]{-} = sum %e axes=[1]\n"
           "    %1: f32[4,9]{-} = bcast %s dims=[0]\n"
           "    %q: f32[4,9]{-} = div %e, %1\n"
           "    %y: bf16[4,9] = cast %q\n"
           "  }\n"
           "  return %y\n"
           "}\n",
           "  axis a in 4\n"
           "  axis b in 9\n"
           "  phase a {\n"
           "    sweep a, b {\n"
           "      %0: bf16 = load %x0[a, b]\n"
           "      %1: f32 = cast %0\n"
           "      %2: f32 = fold reduce_max %1 over b\n"
           "    }\n"
           "    sweep a, b {\n"
           "      %3: bf16 = load %x0[a, b]\n"
           "      %4: f32 = cast %3\n"
           "      %5: f32 = sub %4, %2\n"
           "      %6: f32 = exp %5\n"
           "      %7: f32 = fold sum %6 over b\n"
           "    }\n"
           "    sweep a, b {\n"
           "      %8: f32 = div %6, %7\n"
           "      %9: bf16 = cast(1) %8\n"
           "      store %y1[a, b], %9\n"
           "    }\n"
           "  }\n"
           "}\n");
}

static void what_folds_make_is_stored_behind_them(void **state)
{
    expect("graph @f(%x: f16[4,9], %g: f16[9]) {\n"
           "  %0: f16[4,9] = bcast %g dims=[1]\n"
           "  fuse @g {\n"
           "    %p: f16[4,9]{-} = mul %x, %0\n"
           "    %s: f16[4] = sum %p axes=[1]\n"
           "    %c: f16[2,9] = fold_chunks %p axis=0 chunk=2 fold=sum\n"
           "  }\n"
           "  return %s, %c\n"
           "}\n",
           "  axis a in 4\n"
           "  axis b in 9\n"
           "  axis c in a by 2\n"
           "  phase a by 2 {\n"
           "    sweep a, b {\n"
           "      %0: f16 = load %x0[a, b]\n"
           "      %1: f32 = cast %0\n"
           "      %2: f16 = load %x1[a, b]\n"
           "      %3: f32 = cast %2\n"
           "      %4: f32 = mul %1, %3\n"
           "      %5: f32 = fold sum %4 over b\n"
           "      %6: f16 = fold sum %4 over a\n"
           "    }\n"
           "    sweep a {\n"
           "      %7: f16 = cast %5\n"
           "      store %y2[a], %7\n"
           "    }\n"
           "    sweep b {\n"
           "      store %y3[c, b], %6\n"
           "    }\n"
           "  }\n"
           "}\n");
}

static void a_stored_copy_in_f32_is_the_number_itself(void **state)
{
    expect("graph @f(%x: bf16[9]) {\n"
           "  fuse @g {\n"
           "    %t: bf16[9] = tanh %x\n"
           "    %w: f32[9] = cast %t\n"
           "    %v: f32[9] = cast %x\n"
           "    %u: f32[9] = cast %t\n"
           "  }\n"
           "  return %t, %w, %v, %u\n"
           "}\n",
           "  axis a in 9\n"
           "  phase a {\n"
           "    sweep a {\n"
           "      %0: bf16 = load %x0[a]\n"
           "      %1: f32 = cast %0\n"
           "      %2: f32 = tanh %1\n"
           "      %3: bf16 = cast %2\n"
           "      store %y1[a], %3\n"
           "      store %y2[a], %2\n"
           "      store %y3[a], %1\n"
           "      %4: f32 = cast(1) %2\n"
           "      store %y4[a], %4\n"
           "    }\n"
           "  }\n"
           "}\n");
}

static void silu_is_one_function(void **state)
{
    expect("graph @f(%x: f16[9]) {\n"
           "  fuse @g {\n"
           "    %s: f16[9]{-} = sigmoid %x\n"
           "    %y: f16[9] = mul %s, %x\n"
           "  }\n"
           "  return %y\n"
           "}\n",
           "  axis a in 9\n"
           "  phase a {\n"
           "    sweep a {\n"
           "      %0: f16 = load %x0[a]\n"
           "      %1: f32 = cast %0\n"
           "      %2: f32 = silu %1\n"
           "      %3: f16 = cast %2\n"
           "      store %y1[a], %3\n"
           "    }\n"
           "  }\n"
           "}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_round_once_and_are_read_unrounded),
        cmocka_unit_test(a_cast_that_is_a_node_rounds),
        cmocka_unit_test(stages_load_once_more),
        cmocka_unit_test(what_folds_make_is_stored_behind_them),
        cmocka_unit_test(a_stored_copy_in_f32_is_the_number_itself),
        cmocka_unit_test(silu_is_one_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
