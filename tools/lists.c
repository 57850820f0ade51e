/* SPDX-License-Identifier: Apache-2.0 */
/* lists.c: what there is: ops, passes, kernels, each list from the table that the code itself runs on. */
#include "tools/golden.h"

#include "kernels/kernels.h"
#include "onnx/rows.h"
#include "passes/passes.h"

#include <stdio.h>

void weft_opt_print_ops(void)
{
    static const char *const traits[] = {"elementwise", "view", "reduction", "contraction", "movement", "composite",
                                         "commutative", "stated", "source", "control", "placement", "data", "random",
                                         "opaque", "scan", "bijective", "update", "linear", "rounding",
                                         "unsigned_zero", "exact", "recurrent"};
    _Static_assert(WEFT_RECURRENT == 1 << (sizeof traits / sizeof *traits - 1), "every trait has a name");
    printf("# op, operands, traits, attributes: a? may be left out, a=x is x then, a=(x y) is one of these words\n");
    for (int op = 1; op < WEFT_OP_COUNT; op++) {
        const struct weft_op_info *info = &weft_ops[op];
        printf("%-13s %d", info->name, info->min_operands);
        if (info->max_operands < 0)
            printf("..");
        else if (info->max_operands > info->min_operands)
            printf("..%d", info->max_operands);
        const char *separator = "  ";
        for (unsigned i = 0; i < sizeof traits / sizeof *traits; i++)
            if (info->traits & (1u << i)) {
                printf("%s%s", separator, traits[i]);
                separator = ",";
            }
        for (const struct weft_attr_spec *spec = info->attrs; spec->key != WEFT_ATTR_NONE; spec++) {
            printf("  %s", weft_attr_names[spec->key]);
            if (spec->words)
                printf("=(%s)", spec->words);
            else if (spec->has_default)
                printf("=%g", spec->fallback);
            else if (!spec->required)
                printf("?");
        }
        if (op == WEFT_OP_const)
            printf("  value=X | value=[X …] | file=\"F\" offset=N | blob=HASH | random=SEED scale=X");
        putchar('\n');
    }
}

void weft_opt_print_onnx(void)
{
    const char *domain;
    const struct onnx_row *row;
    printf("# op of ONNX, from this opset on, least inputs, most inputs (-1: any number)\n");
    for (unsigned i = 0; (row = weft_onnx_row_at(i, &domain)) != NULL; i++)
        printf("%s%s%s %d %d %d\n", domain, *domain ? "." : "", row->name, row->since, row->min_inputs,
               row->max_inputs);
}

void weft_opt_print_passes(void)
{
    for (unsigned i = 0; i < weft_pass_count; i++)
        printf("%-23s %s\n", weft_passes[i].name, weft_passes[i].help);
    printf("%-23s %s\n", "pipeline", "all of them, in the order and as often as the default says");
}

void weft_opt_print_kernels(void)
{
    char cpu[128];
    const struct weft_kernel_info *kernel;
    for (unsigned i = 0; (kernel = weft_kernel_at(i)) != NULL; i++) {
        weft_cpu_describe(kernel->cpu, cpu, sizeof cpu);
        printf("%-9s %-48s %s\n", kernel->family, kernel->name, cpu);
    }
}
