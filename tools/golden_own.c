/* SPDX-License-Identifier: Apache-2.0 */
/* golden_own.c: kernels of a caller's target that golden texts may have, for passes that ask the target. */
#include "sched/target.h"
#include "tools/golden.h"

#include <stdio.h>
#include <string.h>

static double cost(void *user, const struct weft_graph *graph, weft_node node) { return 1; }

struct weft_target_kernel *weft_golden_kernels(const char *ops, struct weft_arena *arena)
{
    struct weft_target_kernel *first = NULL, **end = &first;
    while (*ops) {
        const size_t length = strcspn(ops, ",");
        const int opcode = weft_opcode_find(ops, length);
        if (!opcode)
            return NULL;
        *end = weft_new(arena, struct weft_target_kernel, 1);
        (*end)->opcode = opcode;
        snprintf((*end)->name, sizeof (*end)->name, "own.%s", weft_ops[opcode].name);
        (*end)->kernel = (struct weft_kernel){.size = sizeof(struct weft_kernel), .name = (*end)->name,
                                              .op = weft_ops[opcode].name, .cost = cost};
        end = &(*end)->next;
        ops += length + (ops[length] == ',');
    }
    return first;
}
