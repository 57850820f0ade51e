/* SPDX-License-Identifier: Apache-2.0 */
/* chosen.c: decides which products read matrices that data chooses where they lie (sched/chosen.h).
 *
 * A gather along axis 0 of matrices that do not change, all of whose readers are products of f32 in kernels, each node
 * by itself: with the gather, or with a reshape that only merges or splits the axes of its indices. Decided before
 * anything but parameters has a home, since nobody may write over the indices until the products have read them, nor
 * over what is now a part of the table. Not in bodies. */
#include "passes/passes.h"
#include "plan/plan.h"
#include "sched/chosen.h"

/* Elements of a matrix, for each worker, from which on products read it in place. All parts share one product, the next
 * one comes behind it: small ones are faster side by side, on copies (two workers: 64 of 64 x 64 by 8 columns take 1.9
 * times the time in place, of 128 x 128 0.7; docs/decisions.md). */
enum { LEAST_ELEMENTS = 1 << 13 };

/* Does the value stay as it is during a run: a constant, or an input that nobody changes? */
static bool is_kept(const struct weft_graph *g, weft_val v)
{
    return weft_is_const(g, v) || (g->value[v.id].is_param && !g->value[v.id].is_mut);
}

static bool gathers_matrices(const struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    const int op = weft_opcode_of(g, n);
    if ((op != WEFT_OP_gather && op != WEFT_OP_gather_nd) || g->node[n.id].group || plan->target.planned ||
        plan->param_layout)
        return false;
    const weft_val table = weft_operand(g, n, 0), index = weft_operand(g, n, 1), result = weft_result(g, n, 0);
    const struct weft_type *const type = weft_type_of(g, table), *const by = weft_type_of(g, index);
    const struct weft_layout from = weft_own_layout(g, table), to = weft_own_layout(g, result);
    int64_t fewest, most;
    if (type->rank != 3 || type->dtype != WEFT_F32 || !is_kept(g, table) || g->value[result.id].returns ||
        !weft_layout_is_row_major(&from) || !weft_layout_is_row_major(&to) || to.align ||
        weft_dim_is(type->extent[1], 0) || weft_dim_is(type->extent[2], 0)) /* reshapes make any number of those */
        return false;
    weft_dim_range(g->dims, type->extent[0], &fewest, &most);
    if (op == WEFT_OP_gather)
        return fewest > 0 && weft_attr_int(g, n, WEFT_ATTR_axis) == 0;
    return fewest > 0 && weft_attr_int(g, n, WEFT_ATTR_batch) == 0 && weft_dim_is(by->extent[by->rank - 1], 1);
}

/* What a value is before reshapes. */
static weft_node before_reshapes(const struct weft_graph *g, weft_val v)
{
    weft_node n = weft_def(g, v);
    while (n.id && weft_opcode_of(g, n) == WEFT_OP_reshape)
        n = weft_def(g, weft_operand(g, n, 0));
    return n;
}

/* The gather that a value is a view of, or none. */
static weft_node gather_of(const struct weft_plan *plan, weft_val v)
{
    const weft_node n = before_reshapes(plan->graph, v);
    return n.id && plan->chosen && plan->chosen[n.id] ? n : WEFT_NO_NODE;
}

/* Is it predicted to be faster? A matrix that all products multiply alike by several columns is read once for all where
 * the others are copied side by side. WEFT_CHOICE takes it wherever it is possible. */
static bool is_worth_it(const struct weft_plan *plan, weft_node n, uint32_t operand)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_type *const type = weft_type_of(g, weft_operand(g, n, operand)),
                           *const out = weft_type_of(g, weft_result(g, n, 0));
    const int64_t elements = weft_dim_evaluate(g->dims, type->extent[type->rank - 1], plan->hint) *
                             weft_dim_evaluate(g->dims, type->extent[type->rank - 2], plan->hint);
    const bool repeated = weft_def_opcode(g, weft_operand(g, n, 1 - operand)) == WEFT_OP_bcast;
    return plan->pick || (elements >= LEAST_ELEMENTS * plan->workers &&
                          (!repeated || weft_dim_is(out->extent[out->rank - (operand ? 2 : 1)], 1)));
}

/* A product whose operand the value is, with a product for each matrix. The other operand is no other view of the same
 * gather, which is not decided yet: a step chooses for one operand. */
static bool is_product(struct weft_plan *plan, weft_node n, uint32_t operand, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    if (weft_opcode_of(g, n) != WEFT_OP_matmul || g->node[n.id].group || operand > 1 ||
        before_reshapes(g, v).id == before_reshapes(g, weft_operand(g, n, 1 - operand)).id ||
        gather_of(plan, weft_operand(g, n, 1 - operand)).id)
        return false;
    const struct weft_type *const type = weft_type_of(g, v), *const out = weft_type_of(g, weft_result(g, n, 0));
    if (out->rank != type->rank || out->dtype != WEFT_F32)
        return false;
    return is_worth_it(plan, n, operand) && weft_plan_choice(plan, n)->kind == &weft_step_gemm;
}

/* A reshape that leaves the matrices as they are. */
static bool keeps_matrices(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *const from = weft_type_of(g, weft_operand(g, n, 0)), *const to =
        weft_type_of(g, weft_result(g, n, 0));
    return weft_opcode_of(g, n) == WEFT_OP_reshape && !g->node[n.id].group && to->rank >= 3 &&
           !g->value[weft_result(g, n, 0).id].returns &&
           weft_dim_same(from->extent[from->rank - 1], to->extent[to->rank - 1]) &&
           weft_dim_same(from->extent[from->rank - 2], to->extent[to->rank - 2]);
}

/* Are all readers such products? */
static bool is_multiplied(struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t slot = g->value[v.id].first_use; slot; slot = g->slot[slot - 1].next) {
        const weft_node user = g->slot[slot - 1].node;
        const uint32_t operand = slot - 1 - g->node[user.id].first_operand;
        if (!(keeps_matrices(g, user) ? is_multiplied(plan, weft_result(g, user, 0))
                                      : is_product(plan, user, operand, v)))
            return false;
    }
    return g->value[v.id].uses > 0;
}

void weft_chosen_find(struct weft_plan *plan)
{
    struct weft_graph *g = plan->graph;
    weft_foreach_node(g, n)
        if (gathers_matrices(plan, n) && is_multiplied(plan, weft_result(g, n, 0)) &&
            weft_permit(g, "plan.chosen", weft_result(g, n, 0))) {
            plan->chosen = plan->chosen ? plan->chosen : weft_new(g->arena, bool, g->nodes);
            plan->chosen[n.id] = true;
            weft_add_remark_at(g, "plan", plan->label[weft_result(g, n, 0).id], "done",
                               "products read the matrices that it chooses of %%%s where they lie",
                               plan->label[weft_operand(g, n, 0).id]);
        }
}

bool weft_chosen_place_matrices(struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    if (!plan->chosen || !plan->chosen[n.id])
        return false;
    const weft_val v = weft_result(g, n, 0);
    const struct weft_home from = plan->home[weft_operand(g, n, 0).id];
    struct weft_layout layout = weft_layout_row_major(weft_type_of(g, v)->rank);
    layout.dense = false;
    layout.offset = from.layout->offset;
    for (int i = 0; i < layout.axes; i++)
        layout.stride[i] = i < layout.axes - 2 ? weft_dim_of(0) : from.stride[i - (layout.axes - 3)];
    weft_home_set(plan, v, from.storage, &layout);
    return true;
}

const struct weft_step *weft_chosen_step(struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    if (!plan->chosen || weft_opcode_of(g, n) != WEFT_OP_matmul || g->node[n.id].group)
        return NULL;
    const weft_node of[] = {gather_of(plan, weft_operand(g, n, 0)), gather_of(plan, weft_operand(g, n, 1))};
    const uint8_t operand = of[0].id ? 0 : 1;
    if (!of[operand].id)
        return NULL;
    struct weft_step *const step = weft_new(g->arena, struct weft_step, 1);
    struct weft_chosen *const chosen = weft_new(g->arena, struct weft_chosen, 1);
    *step = *weft_plan_choice(plan, n);
    *chosen = (struct weft_chosen){.operand = operand, .table = weft_operand(g, of[operand], 0),
                                   .index = weft_operand(g, of[operand], 1)};
    weft_val *const in = weft_new(g->arena, weft_val, 3);
    in[0] = step->in[0], in[1] = step->in[1], in[2] = chosen->index;
    step->in = in;
    step->ins = 3;
    step->chosen = chosen;
    return step;
}
