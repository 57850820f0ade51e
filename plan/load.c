/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: relayouts of constants, done once, when the plan is made.
 *
 *   %w: f32[64,9] = const file="w.bin"
 *   %t: f32[64,9]{1 0} = relayout %w        ! weft_… when=load at=const+0
 *   %y: f32[8,64] = matmul %x, %t trans_b=1                                   packed from %w: then there is no %t
 *
 * A relayout, or a view that had to be copied, whose operand lies in a constant and whose result takes no more bytes
 * than that constant has, is no step: its result is a constant of its own. It is made when somebody asks for it, in
 * memory of the plan; weights are packed from where they were before their relayout (weights.c), which then nobody
 * needs. The bound keeps a broadcast from becoming memory for the life of the plan. What is computed in the memory of
 * another value, a result of the graph included, stays a step. */
#include "kernels/relayout/blocks.h"
#include "kernels/relayout/reshape.h"
#include "passes/passes.h"
#include "plan/plan.h"

#include <string.h>

/* --- what may be done at once ------------------------------------------------------------------------------------- */

int64_t weft_plan_constant_bytes(const struct weft_plan *plan, const struct weft_storage *storage)
{
    if (plan->home[storage->value.id].split)
        return weft_home_array(plan, storage->value, plan->hint).bytes;
    const struct weft_tensor tensor = weft_home_tensor(plan, storage->value, plan->hint);
    return weft_dtype_bytes(tensor.dtype, storage->splat ? 1 : weft_tensor_span(&tensor));
}

static bool reads_a_constant(const struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    if (weft_opcode_of(g, n) != WEFT_OP_relayout && !weft_is_view(g, n))
        return false;
    const weft_val v = weft_operand(g, n, 0);
    return plan->storage[plan->home[v.id].storage].kind == WEFT_IN_CONSTANT && weft_home_is_fixed(plan, v) &&
           weft_axes_are_constant(g, n) && weft_dtype_bits(weft_type_of(g, v)->dtype) >= 8;
}

bool weft_plan_load(struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    const weft_val v = weft_result(g, n, 0);
    struct weft_home *home = &plan->home[v.id];
    if (home->storage || !reads_a_constant(plan, n) || weft_layout_of(g, v).align > 64)
        return false;
    const struct weft_step *step = weft_plan_choice(plan, n);
    if (!weft_step_has(step, WEFT_STEP_COPIES) || !weft_permit(plan->graph, "plan.load", v))
        return false;
    weft_home_loaded(plan, v);
    const struct weft_storage *source = &plan->storage[plan->home[step->in[0].id].storage];
    struct weft_storage *storage = &plan->storage[home->storage];
    if (!weft_home_is_fixed(plan, v) ||
        (step->kind != &weft_step_blocks && /* which fills up its last blocks */
         weft_plan_constant_bytes(plan, storage) > weft_plan_constant_bytes(plan, source))) {
        home->storage = 0;
        plan->storages--;
        return false;
    }
    plan->load = weft_grow(g->arena, plan->load, &plan->load_capacity, plan->loads + 1, sizeof *plan->load);
    storage->load = plan->loads;
    plan->load[plan->loads++] = *step;
    return true;
}

/* --- doing it ----------------------------------------------------------------------------------------------------- */

union move {
    struct weft_copy copy; /* what a reshape begins with, too */
    struct weft_reshape reshape;
    struct weft_block_copy blocks;
};

static union move bind_load(const struct weft_plan *plan, const struct weft_step *step, int64_t *ret_in,
                            int64_t *ret_out)
{
    union move move;
    const struct weft_places places = weft_plan_places(plan);
    const struct weft_select select = weft_plan_select(plan, &places, &plan->graph->root->scratch);
    struct weft_bind bind = weft_select_bind(&select, step, plan->hint);
    bind.workers = 1;
    step->kind->bind(&bind, &move);
    *ret_in = weft_dim_value(plan->home[step->in[0].id].layout->offset) + bind.in_offset;
    *ret_out = weft_dim_value(plan->home[step->out[0].id].layout->offset) + bind.out_offset;
    return move;
}

const char *weft_plan_load_kernel(const struct weft_plan *plan, const struct weft_step *step)
{
    int64_t in, out;
    const union move move = bind_load(plan, step, &in, &out);
    return step->kind->kernel(&move, step);
}

void weft_plan_write_loaded(struct weft_plan *plan, const struct weft_storage *storage, void *data)
{
    const struct weft_step *step = &plan->load[storage->load];
    const int64_t size = weft_dtype_bits(storage->dtype) / 8;
    int64_t in, out;
    const union move move = bind_load(plan, step, &in, &out);
    struct weft_call call = {.graph = plan->graph, .step = step, .out = (char *)data + out * size,
                             .parts = move.copy.parts};
    call.in[0] = (const char *)weft_plan_keep_constant(plan, plan->home[step->in[0].id].storage) + in * size;
    for (call.part = 0; call.part < call.parts; call.part++)
        step->kind->run(&move, &call);
}
