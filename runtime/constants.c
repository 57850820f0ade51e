/* SPDX-License-Identifier: Apache-2.0 */
/* constants.c: what constants alone decide is computed once, when the plan is made, by the kernels that a run would
 * take.
 *
 * passes/constants.c chooses the values. They are copied, with what computes them, into a graph of its own, which is
 * planned and run like any other, on one worker: a process that only compiles and then forks keeps its children's
 * threads. The results take the places of the values, and the passes go on with constants.
 *
 * Values are computed a few at a time, until their results have BATCH_BYTES: then the intermediate values of all are
 * not in memory together, and the pages of constants that were read are given back before the next are. What several
 * batches read is computed once, by the first of them, and kept until the last is done: at most KEPT_BYTES in all,
 * beside the results. For that the batches are parts of a copy of what they compute, in which whatever has been
 * computed is a constant: the graph itself may have other readers of an intermediate value, for which there was no room
 * in the budget. */
#include "passes/constants.h"
#include "passes/passes.h"
#include "runtime/runtime.h"

#define BATCH_BYTES ((int64_t)32 << 20)
#define KEPT_BYTES ((int64_t)32 << 20)
#define MOST_PS ((int64_t)2000000000000) /* two seconds of a run, by prices */
#define MOST_BYTES ((int64_t)64 << 20) /* beside as many as the graph's own constants have */

/* --- the budget --------------------------------------------------------------------------------------------------- */

static int64_t times_as_f32(int dtype) { return weft_dtype_is_half(dtype) ? 2 : weft_dtype_bits(dtype) == 8 ? 4 : 1; }

/* Of what is stored, as f32 where it is a float of 16 bits or has 8 bits: products of these read weights of f32
 * (passes/decompose.c, scale_result.c). Recursion is as deep as bodies are nested. */
static int64_t stored_bytes(const struct weft_graph *g)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < g->bodies; i++)
        bytes += stored_bytes(g->body[i]);
    weft_foreach_node(g, n) {
        const struct weft_constant *constant = g->node[n.id].constant;
        const weft_val v = weft_result(g, n, 0);
        if (constant && constant->kind != WEFT_CONST_SPLAT)
            bytes += weft_value_bytes(g, v) * times_as_f32(weft_type_of(g, v)->dtype);
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

/* A blob that a graph holds, bound to the result of the part. */
static struct weft_blob *add_result(struct weft_plan *plan, struct weft_graph *holder, uint32_t i)
{
    const struct weft_plan *part = plan->part;
    const weft_val v = part->graph->ret[i].value;
    struct weft_blob *blob = weft_blob_new(plan->context, (size_t)weft_value_bytes(part->graph, v));
    if (!blob)
        weft_out_of_memory(plan->context);
    blob->for_one = true;
    weft_graph_hold(holder, blob);
    struct weft_tensor tensor = weft_home_tensor(part, v, part->hint);
    weft_tensor_dense(&tensor);
    tensor.data = blob->data;
    const int status = weft_bind_output(plan->part_run, i, &tensor);
    weft_assert(status == WEFT_OK);
    return blob;
}

static void drop_part(struct weft_plan *plan)
{
    weft_execution_destroy(plan->part_run);
    plan->part_run = NULL;
    if (plan->part)
        weft_plan_drop(plan->part);
    plan->part = NULL;
}

void weft_plan_drop_known(struct weft_plan *plan)
{
    drop_part(plan);
    weft_graph_free(plan->known);
    plan->known = NULL;
}

/* Plans the part, which goes with the plan where memory is refused on the way. */
static void plan_part(struct weft_plan *plan, const struct weft_graph *g, const weft_val *wanted, uint32_t count)
{
    plan->part = weft_plan_new(plan->context, &plan->target);
    if (!plan->part)
        weft_out_of_memory(plan->context);
    plan->part->workers = 1;
    plan->part->target.kernel = NULL; /* a kernel of the caller's may have no run, and makes no constants */
    plan->part->target.planned = false;
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

/* --- batches ------------------------------------------------------------------------------------------------------ */

struct batches {
    struct weft_plan *plan;
    struct weft_graph *graph;         /* whose values are chosen */
    const struct weft_constant_choice *list;
    uint32_t *end, count;             /* by batch: where it ends in the list */
    uint32_t *first;                  /* by node of plan->known: the batch that computes it, + 1; 0: none does */
    weft_val *kept;                   /* of plan->known: what later batches read, too */
    uint32_t *keeper;                 /* by kept value: the batch that computes it, + 1 */
    uint32_t keeps, capacity, keeper_capacity;
    int64_t kept_bytes;
};

static void split(struct batches *b, uint32_t count)
{
    b->end = weft_new(&b->graph->root->scratch, uint32_t, count);
    for (uint32_t i = 0, end = 0; i < count; i = end) {
        int64_t bytes = 0;
        while (end < count && (end == i || bytes + b->list[end].bytes <= BATCH_BYTES))
            bytes += b->list[end++].bytes;
        b->end[b->count++] = end;
    }
}

/* Marks what the batch computes and no batch before it does. */
static void mark(struct batches *b, uint32_t batch)
{
    const struct weft_graph *g = b->plan->known;
    struct cone cone = {0};
    for (uint32_t i = batch ? b->end[batch - 1] : 0; i < b->end[batch]; i++) {
        cone.open = weft_grow(&b->graph->root->scratch, cone.open, &cone.capacity, cone.count + 1, sizeof *cone.open);
        cone.open[cone.count++] = weft_def(g, g->ret[i].value);
    }
    while (cone.count > 0) {
        const weft_node n = cone.open[--cone.count];
        const uint32_t operands = g->node[n.id].operands;
        if (b->first[n.id])
            continue;
        b->first[n.id] = batch + 1;
        cone.open = weft_grow(&b->graph->root->scratch, cone.open, &cone.capacity, cone.count + operands,
                              sizeof *cone.open);
        for (uint32_t i = 0; i < operands; i++)
            cone.open[cone.count++] = weft_def(g, weft_operand(g, n, i));
    }
}

/* A later batch reads v, perhaps through views. */
static void keep(struct batches *b, weft_val v, bool *seen)
{
    const struct weft_graph *g = b->plan->known;
    const int64_t bytes = weft_value_bytes(g, v);
    if (seen[v.id] || b->kept_bytes + bytes > KEPT_BYTES)
        return;
    seen[v.id] = true;
    b->kept_bytes += bytes;
    b->kept = weft_grow(&b->graph->root->scratch, b->kept, &b->capacity, b->keeps + 1, sizeof *b->kept);
    b->keeper = weft_grow(&b->graph->root->scratch, b->keeper, &b->keeper_capacity, b->keeps + 1, sizeof *b->keeper);
    b->keeper[b->keeps] = b->first[weft_def(g, v).id];
    b->kept[b->keeps++] = v;
    if (g->value[v.id].name)
        weft_add_remark_at(b->graph, "constants", g->value[v.id].name, "shared",
                           "computed once and kept until all that is computed from it is there: %lld bytes",
                           (long long)bytes);
}

/* Results of earlier batches are constants by then, and views are made again. */
static void find_shared(struct batches *b)
{
    const struct weft_graph *g = b->plan->known;
    b->first = weft_new(&b->graph->root->scratch, uint32_t, g->nodes);
    bool *const seen = weft_new(&b->graph->root->scratch, bool, g->values);
    for (uint32_t i = 0; i < b->count; i++)
        mark(b, i);
    weft_foreach_node(g, n) {
        if (weft_is_view(g, n) && !g->value[weft_result(g, n, 0).id].returns)
            continue;
        for (uint32_t i = 0; i < g->node[n.id].operands; i++) {
            weft_val v = weft_operand(g, n, i);
            while (weft_is_view(g, weft_def(g, v)) && !g->value[v.id].returns)
                v = weft_operand(g, weft_def(g, v), 0);
            if (!weft_is_const(g, v) && !g->value[v.id].returns && b->first[weft_def(g, v).id] < b->first[n.id])
                keep(b, v, seen);
        }
    }
}

/* In the copy, what has been computed is a constant. */
static void make_known(struct weft_graph *known, weft_val v, struct weft_blob *blob)
{
    struct weft_builder b = {known, weft_def(known, v)};
    const struct weft_type type = *weft_type_of(known, v);
    const weft_val constant = weft_build_blob(&b, &type, blob);
    weft_substitute(known, v, constant);
    weft_erase_unused(known, b.before);
}

/* Computes values [0, chosen) of the list, and `count` in all: the others are of the copy alone. */
static void compute(struct weft_plan *plan, struct weft_graph *g, const struct weft_constant_choice *list,
                    const weft_val *wanted, uint32_t chosen, uint32_t count)
{
    struct weft_blob **const blob = weft_new(&g->root->scratch, struct weft_blob *, count);
    plan_part(plan, plan->known ? plan->known : g, wanted, count);
    for (uint32_t i = 0; i < count; i++)
        blob[i] = add_result(plan, i < chosen ? plan->graph : plan->known, i);
    if (weft_run(plan->part_run) < 0) /* constants bind no sizes, and custom functions are not asked */
        weft_out_of_memory(plan->context);
    forget_sources(plan->part->graph);
    drop_part(plan);
    for (uint32_t i = 0; i < chosen; i++)
        replace(g, &list[i], blob[i]);
    for (uint32_t i = 0; plan->known && i < count; i++) {
        if (i < chosen)
            weft_graph_hold(plan->known, weft_blob_hold(blob[i]));
        make_known(plan->known, wanted[i], blob[i]);
    }
    if (plan->known)
        weft_arena_empty(&plan->known->scratch);
}

static void compute_batch(struct batches *b, uint32_t batch)
{
    const uint32_t start = batch ? b->end[batch - 1] : 0, chosen = b->end[batch] - start;
    const struct weft_graph *known = b->plan->known;
    weft_val *const wanted = weft_new(&b->graph->root->scratch, weft_val, chosen + b->keeps);
    uint32_t count = chosen;
    for (uint32_t i = 0; i < chosen; i++)
        wanted[i] = known ? known->ret[start + i].value : b->list[start + i].value;
    for (uint32_t i = 0; i < b->keeps; i++)
        if (b->keeper[i] == batch + 1)
            wanted[count++] = b->kept[i];
    compute(b->plan, b->graph, &b->list[start], wanted, chosen, count);
}

static void compute_all(struct weft_plan *plan, struct weft_graph *g, const struct weft_constant_choice *list,
                        uint32_t count)
{
    struct batches b = {.plan = plan, .graph = g, .list = list};
    split(&b, count);
    if (b.count > 1) {
        weft_val *const wanted = weft_new(&g->root->scratch, weft_val, count);
        for (uint32_t i = 0; i < count; i++)
            wanted[i] = list[i].value;
        weft_graph_copy_part(g, wanted, count, &plan->known);
        find_shared(&b);
    }
    for (uint32_t i = 0; i < b.count; i++)
        compute_batch(&b, i);
    weft_plan_drop_known(plan);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* One rewrite a value. True if there was any. */
static bool compute_permitted(struct weft_plan *plan, const struct weft_constant_choice *list, uint32_t count)
{
    uint32_t permitted = 0;
    while (permitted < count && weft_permit(list[permitted].graph, "constants", list[permitted].value))
        permitted++;
    for (uint32_t first = 0, end = 0; first < permitted; first = end) {
        struct weft_graph *const g = list[first].graph;
        while (end < permitted && list[end].graph == g)
            end++;
        compute_all(plan, g, &list[first], end - first);
    }
    return permitted > 0;
}

bool weft_plan_compute_constants(struct weft_plan *plan, int64_t most)
{
    struct weft_graph *g = plan->graph;
    struct weft_pass_record record = {.pass = "constants", .nodes_before = g->live_nodes};
    const int64_t start = weft_now_ns(), rewrites = g->rewrites;
    const struct weft_constant_budget budget = {.bytes = most ? most : stored_bytes(g) + MOST_BYTES, .ps = MOST_PS};
    uint32_t count;
    if (budget.bytes < 0 || weft_environment_names("WEFT_SKIP", "constants", /* all= */ false))
        return false;
    const struct weft_constant_choice *const list = weft_choose_constants(g, &plan->target, &budget, &count);
    record.changed = compute_permitted(plan, list, count);
    record.nodes_after = g->live_nodes;
    record.rewrites = g->rewrites - rewrites;
    record.ns = weft_now_ns() - start;
    weft_add_pass_record(g, &record);
    weft_arena_empty(&g->scratch);
    return record.changed;
}
