/* SPDX-License-Identifier: Apache-2.0 */
/* op_price.c: what elementwise ops take besides reading and writing. The contract: kernels.h, program.h. */
#include "kernels/strip/program.h"

#include <stdlib.h>
#include <string.h>

enum { PLAIN_TIMES = 5 }; /* what plain loops that call the C library take of the time with 8 lanes */

struct row {
    const char *op;
    int32_t eight, sixteen;
};

static const struct row rows[] = {
#define STRIP_PRICE(op, eight, sixteen) {op, eight, sixteen},
#include "kernels/strip/op_price.def"
};

static int compare(const void *op, const void *row) { return strcmp(op, ((const struct row *)row)->op); }

double weft_strip_ns(const struct weft_strip_kernel *kernel)
{
    const struct row *const row = bsearch(kernel->op, rows, sizeof rows / sizeof *rows, sizeof *rows, compare);
    if (!row)
        return 0;
    return 1e-3 * (kernel->cpu & WEFT_CPU_AVX512 ? row->sixteen
                   : kernel->cpu & WEFT_CPU_AVX2 ? row->eight : PLAIN_TIMES * row->eight);
}

double weft_map_overhead_ns(const struct weft_map *map)
{
    double lines = 1;
    for (int i = 0; i + 1 < map->rank; i++)
        lines *= (double)map->extent[i];
    return lines * WEFT_STRIP_CALL_NS;
}

double weft_program_arithmetic_ns(const struct weft_program *p)
{
    const double points = (double)p->points, all = points * (double)p->folded;
    double ns = 0;
    for (int s = 0; s < p->stages; s++)
        for (int i = 0; i < p->stage[s].ops; i++) {
            const struct weft_program_op *const op = &p->op[p->stage[s].first + i];
            if (op->kernel)
                ns += weft_strip_ns(op->kernel) * (p->stage[s].inside ? all : points);
        }
    return ns;
}
