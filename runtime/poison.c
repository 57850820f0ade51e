/* SPDX-License-Identifier: Apache-2.0 */
/* poison.c: memory that holds nothing, made to look like it.
 *
 * Under WEFT_DEBUG=poison a block of the arena is filled with a pattern before the first step that writes it and after
 * the last that reads it, and results in the execution's own memory before a run. A value that lives in the wrong
 * block, or is read when its block is another's already, is then a NaN or a number beyond all bounds instead of what
 * happened to be there: the tests that compare results find it. Workers meet around each step, so parallel runs stay
 * parallel. */
#include "passes/passes.h"
#include "runtime/runtime.h"

#include <string.h>

/* NaN as a float of any width; as an integer beyond any index. */
#define PATTERN 0x7f

bool weft_poison_asked(void) { return weft_environment_names("WEFT_DEBUG", "poison", /* all= */ true); }

void weft_poison_results(struct weft_execution *e)
{
    for (uint32_t i = 0; i < e->plan->graph->returns; i++)
        if (e->own[i].data && !e->output_bound[i])
            memset(e->own[i].data, PATTERN, e->own[i].bytes);
}

void weft_poison_blocks(const struct weft_scope *scope, uint32_t step, bool after)
{
    const struct weft_plan *plan = scope->plan;
    for (uint32_t i = 1; i < plan->storages; i++) {
        const struct weft_storage *storage = &plan->storage[i];
        const int32_t edge = after ? storage->last : storage->first;
        if (storage->kind != WEFT_IN_ARENA || storage->last < storage->first || edge != (int32_t)step)
            continue;
        memset(scope->base[i], PATTERN, (size_t)weft_frame_block_bytes(plan, scope->frame, i));
    }
}
