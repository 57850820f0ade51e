/* SPDX-License-Identifier: Apache-2.0 */
/* constants.c: what constants alone decide is computed once, when the plan is made, by the kernels that a run would
 * take.
 *
 * passes/constants.c chooses the values. They are copied, with what computes them, into a graph of its own, which is
 * planned and run like any other, on one worker: a process that only compiles and then forks keeps its children's
 * threads. The results take the places of the values, and the passes go on with constants.
 *
 * Values are computed a few at a time, until their results have BATCH_BYTES: then the intermediate values of all are
 * not in memory together, and the pages of constants that were read are given back before the next are. */
#include "passes/constants.h"
#include "passes/passes.h"
#include "runtime/runtime.h"

#define BATCH_BYTES ((int64_t)32 << 20)
#define MOST_PS ((int64_t)2000000000000) /* two seconds of a run, by prices */
#define MOST_BYTES ((int64_t)64 << 20) /* beside as many as the graph's own constants have */

/* --- the budget --------------------------------------------------------------------------------------------------- */

/* Recursion is as deep as bodies are nested. */
static int64_t stored_bytes(const struct weft_graph *g)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < g->bodies; i++)
        bytes += stored_bytes(g->body[i]);
    weft_foreach_node(g, n) {
        const struct weft_constant *constant = g->node[n.id].constant;
        if (constant && constant->kind != WEFT_CONST_SPLAT)
            bytes += weft_value_bytes(g, weft_result(g, n, 0));
    }
    return bytes;
}

/* --- computing ---------------------------------------------------------------------------------------------------- */

static void forget_sources(const struct weft_graph *part)
{
    weft_foreach_node(part, n) {
        const struct weft_constant *constant = part->node[n.id].constant;
        if (constant && constant->kind == WEFT_CONST_BLOB)
            weft_blob_forget(constant->blob, constant->offset, (size_t)weft_value_bytes(part, weft_result(part, n, 0)));
    }
}

/* A blob that the graph holds, bound to the result of the part. */
static struct weft_blob *add_result(struct weft_plan *plan, uint32_t i)
{
    const struct weft_plan *part = plan->part;
    const weft_val v = part->graph->ret[i].value;
    struct weft_blob *blob = weft_blob_new(plan->context, (size_t)weft_value_bytes(part->graph, v));
    if (!blob)
        weft_out_of_memory(plan->context);
    blob->for_one = true;
    weft_graph_hold(plan->graph, blob);
    struct weft_tensor tensor = weft_home_tensor(part, v, part->hint);
    weft_tensor_dense(&tensor);
    tensor.data = blob->data;
    const int status = weft_bind_output(plan->part_run, i, &tensor);
    weft_assert(status == WEFT_OK);
    return blob;
}

void weft_plan_drop_part(struct weft_plan *plan)
{
    weft_execution_destroy(plan->part_run);
    plan->part_run = NULL;
    if (plan->part)
        weft_plan_drop(plan->part);
    plan->part = NULL;
}

/* Plans the part, which goes with the plan where memory is refused on the way. */
static void plan_part(struct weft_plan *plan, const struct weft_graph *g, const weft_val *wanted, uint32_t count)
{
    plan->part = weft_plan_new(plan->context, &plan->target);
    if (!plan->part)
        weft_out_of_memory(plan->context);
    plan->part->workers = 1;
    plan->part->convolution = plan->convolution;
    weft_graph_copy_part(g, wanted, count, &plan->part->graph);
    weft_plan_build(plan->part, /* reference= */ false);
    if (weft_execution_create(plan->part, &plan->part_run) < 0)
        weft_out_of_memory(plan->context);
}

struct cone {
    weft_node *open; /* nodes that are still to be looked at */
    uint32_t count, capacity;
};

/* Erases a node that nothing reads; its operands are looked at next. */
static bool erase(struct weft_graph *g, weft_node n, struct cone *cone)
{
    const uint32_t operands = g->node[n.id].dead ? 0 : g->node[n.id].operands;
    cone->open = weft_grow(&g->root->scratch, cone->open, &cone->capacity, cone->count + operands, sizeof *cone->open);
    for (uint32_t i = 0; i < operands; i++)
        cone->open[cone->count + i] = weft_def(g, weft_operand(g, n, i));
    if (g->node[n.id].dead)
        return false;
    weft_erase_unused(g, n);
    cone->count += g->node[n.id].dead ? operands : 0;
    return g->node[n.id].dead;
}

/* What nothing reads any more goes with the value that was computed from it. */
static void erase_cone(struct weft_graph *g, weft_node top, weft_val into)
{
    const char *text = NULL; /* costs a walk over the graph where it has no name */
    struct cone cone = {0};
    erase(g, top, &cone);
    while (cone.count > 0) {
        const weft_node n = cone.open[--cone.count];
        const weft_val v = weft_result(g, n, 0);
        if (!erase(g, n, &cone) || !g->value[v.id].name)
            continue;
        text = text ? text : weft_value_text(g, into);
        weft_add_remark(g, "constants", v, "computed", "into %s when the plan is made", text);
    }
}

static void replace(struct weft_graph *g, const struct weft_constant_choice *c, struct weft_blob *blob)
{
    const weft_node n = weft_def(g, c->value);
    struct weft_builder b = {g, n};
    const struct weft_type type = *weft_type_of(g, c->value);
    weft_add_remark(g, "constants", c->value, "computed",
                    "by %u node%s when the plan is made, %lld bytes: saves some %.0f us a run", c->nodes,
                    c->nodes == 1 ? "" : "s", (long long)c->bytes, (double)c->saved_ps * 1e-6);
    const weft_val constant = weft_build_blob(&b, &type, blob);
    struct weft_node_info *const to = &g->node[weft_def(g, constant).id];
    to->name = g->node[n.id].name; /* messages point to where the node came from */
    to->line = g->node[n.id].line;
    weft_substitute(g, c->value, constant);
    erase_cone(g, n, constant);
}

static void compute(struct weft_plan *plan, struct weft_graph *g, const struct weft_constant_choice *c, uint32_t count)
{
    weft_val *const wanted = weft_new(&g->root->scratch, weft_val, count);
    struct weft_blob **const blob = weft_new(&g->root->scratch, struct weft_blob *, count);
    for (uint32_t i = 0; i < count; i++)
        wanted[i] = c[i].value;
    plan_part(plan, g, wanted, count);
    for (uint32_t i = 0; i < count; i++)
        blob[i] = add_result(plan, i);
    if (weft_run(plan->part_run) < 0) /* constants bind no sizes, and custom functions are not asked */
        weft_out_of_memory(plan->context);
    forget_sources(plan->part->graph);
    weft_plan_drop_part(plan);
    for (uint32_t i = 0; i < count; i++)
        replace(g, &c[i], blob[i]);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Bodies take what their graph leaves of the budget. */
static bool compute_graph(struct weft_plan *plan, struct weft_graph *g, struct weft_constant_budget *budget)
{
    uint32_t count, permitted = 0;
    const struct weft_constant_choice *const list = weft_choose_constants(g, &plan->target, budget, &count);
    while (permitted < count && weft_permit(g, "constants", list[permitted].value))
        permitted++;
    for (uint32_t i = 0, end = 0; i < permitted; i = end) {
        int64_t bytes = 0;
        while (end < permitted && (end == i || bytes + list[end].bytes <= BATCH_BYTES))
            bytes += list[end++].bytes;
        compute(plan, g, &list[i], end - i);
    }
    if (permitted > 0)
        weft_progress(g, true, 0);
    bool changed = permitted > 0;
    for (uint32_t i = 0; i < g->bodies; i++)
        changed |= compute_graph(plan, g->body[i], budget);
    return changed;
}

bool weft_plan_compute_constants(struct weft_plan *plan, int64_t most)
{
    struct weft_graph *g = plan->graph;
    struct weft_pass_record record = {.pass = "constants", .nodes_before = g->live_nodes};
    const int64_t start = weft_now_ns(), rewrites = g->rewrites;
    const int64_t given = most ? most : stored_bytes(g) + MOST_BYTES;
    struct weft_constant_budget budget = {.given = given, .bytes = given, .ps = MOST_PS};
    if (given < 0 || weft_environment_names("WEFT_SKIP", "constants", /* all= */ false))
        return false;
    record.changed = compute_graph(plan, g, &budget);
    record.nodes_after = g->live_nodes;
    record.rewrites = g->rewrites - rewrites;
    record.ns = weft_now_ns() - start;
    weft_add_pass_record(g, &record);
    weft_arena_empty(&g->scratch);
    return record.changed;
}
