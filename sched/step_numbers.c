/* SPDX-License-Identifier: Apache-2.0 */
/* step_numbers.c: the smallest type that holds the elements of a constant. */
#include "sched/alias.h"
#include "sched/step.h"

#include <stdatomic.h>

uint8_t weft_step_numbers(const struct weft_graph *g, weft_val v, uint32_t cpu)
{
    while (weft_is_moved(g, weft_def(g, v)))
        v = weft_operand(g, weft_def(g, v), 0);
    struct weft_constant *const constant = g->node[weft_def(g, v).id].constant;
    const void *const data = constant && weft_type_of(g, v)->dtype == WEFT_F32 ? weft_const_data(g, v) : NULL;
    uint8_t numbers = constant ? atomic_load_explicit(&constant->numbers, memory_order_relaxed) : 0;
    if (numbers || !data)
        return numbers ? numbers : WEFT_K_F32;
    numbers = weft_smallest_dtype(cpu, data, weft_dim_value(weft_type_elements(g->dims, weft_type_of(g, v))));
    atomic_store_explicit(&constant->numbers, numbers, memory_order_relaxed);
    return numbers;
}
