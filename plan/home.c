/* SPDX-License-Identifier: Apache-2.0 */
/* home.c: where each value of a plan lives.
 *
 * A view lives where its operand lives, if a strided layout can say so; else it is copied. A result is computed where
 * the caller wants it; a reshape or transpose that is returned hands its home back to the value that it is a view of,
 * so that the last kernel writes the result itself. A result that is a view of an input, of another result or of
 * a block of the arena may be given to the caller as such. What is computed in the memory of another value, and where,
 * is decided in sched/alias.h. Constants stay in their file. Everything else is a block of the arena, alive from the
 * step that writes it, or the first part of it, to the last that reads it, or to the end if the caller sees it. */
#include "ir/public.h"
#include "passes/passes.h"
#include "plan/plan.h"
#include "sched/target.h"

#include <string.h>

static uint32_t add_storage(struct weft_plan *plan, struct weft_storage storage)
{
    plan->storage = weft_grow(plan->graph->arena, plan->storage, &plan->storage_capacity, plan->storages + 1,
                              sizeof *plan->storage);
    plan->storage[plan->storages] = storage;
    return plan->storages++;
}

static const struct weft_layout *keep_layout(struct weft_plan *plan, const struct weft_layout *layout, int rank)
{
    const bool plain = weft_layout_is_row_major(layout) && layout->align == 0;
    if (plain && plan->row_major[rank])
        return plan->row_major[rank];
    struct weft_layout *kept = weft_new(plan->graph->arena, struct weft_layout, 1);
    *kept = *layout;
    if (plain)
        plan->row_major[rank] = kept;
    return kept;
}

void weft_home_set(struct weft_plan *plan, weft_val v, uint32_t storage, const struct weft_layout *layout)
{
    const struct weft_graph *g = plan->graph;
    struct weft_home *home = &plan->home[v.id];
    home->storage = storage;
    home->layout = keep_layout(plan, layout, weft_type_of(g, v)->rank);
    home->split = false;
    for (int i = 0; i < layout->axes; i++)
        home->split |= layout->axis[i].mod != 0;
    if (!weft_layout_logical_strides(g->dims, layout, weft_type_of(g, v), home->stride))
        /* nobody walks these strides; whoever counts elements and bytes finds about as many */
        weft_layout_logical_strides(g->dims, &weft_layout_rows[weft_type_of(g, v)->rank], weft_type_of(g, v),
                                    home->stride);
}

bool weft_home_is_fixed(const struct weft_plan *plan, weft_val v)
{
    const struct weft_home *home = &plan->home[v.id];
    bool fixed = weft_dim_is_constant(home->layout->offset);
    for (int i = 0; i < weft_type_of(plan->graph, v)->rank; i++)
        fixed &= weft_dim_is_constant(home->stride[i]);
    return fixed;
}

uint32_t weft_plan_add_pack(struct weft_plan *plan, size_t bytes)
{
    plan->pack = weft_grow(plan->graph->arena, plan->pack, &plan->pack_capacity, plan->packs + 1, sizeof *plan->pack);
    void *data = weft_allocate(plan->context, bytes);
    if (!data)
        weft_out_of_memory(plan->context);
    if (weft_environment_names("WEFT_DEBUG", "poison", /* all= */ true))
        memset(data, 0xff, bytes); /* NaNs: whoever fills it writes all that is read */
    plan->pack[plan->packs] = (struct weft_pack){.data = data, .bytes = bytes};
    plan->constant_bytes += (int64_t)bytes;
    return plan->packs++;
}

uint32_t weft_plan_add_shared(struct weft_plan *plan, struct weft_shared_pack *shared, void *data, size_t bytes)
{
    plan->pack = weft_grow(plan->graph->arena, plan->pack, &plan->pack_capacity, plan->packs + 1, sizeof *plan->pack);
    plan->pack[plan->packs] = (struct weft_pack){.data = data, .bytes = bytes, .shared = shared};
    plan->constant_bytes += (int64_t)bytes;
    return plan->packs++;
}

void weft_plan_drop_pack(struct weft_plan *plan, uint32_t pack)
{
    struct weft_pack *dropped = &plan->pack[pack];
    plan->constant_bytes -= (int64_t)dropped->bytes;
    weft_plan_free_pack(plan->context, dropped);
}

void weft_home_params(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->params; i++) {
        const struct weft_type *type = weft_type_of(g, g->param[i]);
        const struct weft_layout layout =
            plan->param_layout ? plan->param_layout[i] : weft_own_layout(g, g->param[i]);
        struct weft_storage storage = {.kind = WEFT_IN_PARAM, .dtype = type->dtype, .index = i, .value = g->param[i]};
        weft_layout_logical_strides(g->dims, &layout, type, storage.stride);
        plan->param_storage[i] = add_storage(plan, storage);
        weft_home_set(plan, g->param[i], plan->param_storage[i], &layout);
    }
}

/* Which values, or views of them, are read by kernels of the caller's, which take what they ask for. */
static void find_read_by_callers(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    plan->read_by_callers = weft_new(g->arena, bool, g->values);
    for (weft_node n = g->last; n.id; n = g->node[n.id].previous) {
        const bool own = weft_target_kernel_noted(&plan->target, g, n);
        for (uint32_t i = 0; i < g->node[n.id].operands; i++)
            plan->read_by_callers[weft_operand(g, n, i).id] |=
                own || (weft_is_view(g, n) && plan->read_by_callers[weft_result(g, n, 0).id]);
    }
}

/* Whether a node's kernel, or the reference evaluator, writes rows with gaps as fast as without. */
static bool is_strided(void *user, weft_node n)
{
    struct weft_plan *plan = user;
    if (weft_opcode_of(plan->graph, n) == WEFT_OP_custom)
        return false;
    const struct weft_step *kernel = weft_plan_choice(plan, n);
    return weft_step_has(kernel, WEFT_STEP_STRIDED);
}

static bool is_elsewhere(void *user, weft_val v)
{
    const struct weft_plan *plan = user;
    return plan->storage[plan->home[v.id].storage].kind == WEFT_IN_ROW ||
           (plan->chosen && plan->chosen[weft_def(plan->graph, v).id]);
}

static const struct weft_form *form_of(void *user, weft_node first)
{
    return weft_alias_form(weft_plan_choice(user, first));
}

/* Of one result: others have no place (sched/alias_root.c). */
static bool is_exact(void *user, weft_node n)
{
    const struct weft_plan *plan = user;
    return plan->read_by_callers[weft_result(plan->graph, n, 0).id] ||
           weft_target_kernel_noted(&plan->target, plan->graph, n);
}

/* A kernel of the caller's writes over what it says, and its concat copies all. */
static bool may_host(void *user, weft_node n, uint32_t operand)
{
    const struct weft_plan *plan = user;
    const struct weft_target_kernel *const own = weft_target_kernel_noted(&plan->target, plan->graph, n);
    const int op = weft_opcode_of(plan->graph, n);
    return !own || (op != WEFT_OP_concat && op != WEFT_OP_pad && own->kernel.in_place &&
                    own->kernel.in_place(own->kernel.user, plan->graph, weft_node_out(plan->graph, n), operand));
}

/* A result is computed where the caller wants it, or in the parameter that it is the new value of; else a copy at the
 * end fills its slot. */
static void place_returns(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->returns; i++) {
        const weft_val v = g->ret[i].value;
        const struct weft_alias_return *ret = &plan->alias.ret[i];
        struct weft_storage storage = {
            .kind = WEFT_IN_RETURN, .dtype = weft_type_of(g, v)->dtype, .index = i, .value = v};
        weft_layout_logical_strides(g->dims, &ret->layout, weft_type_of(g, v), storage.stride);
        plan->return_storage[i] = add_storage(plan, storage);
        if (ret->computed.id)
            weft_home_set(plan, ret->computed, plan->return_storage[i], plan->alias.of[ret->computed.id].layout);
    }
}

void weft_home_results(struct weft_plan *plan, bool alone)
{
    const struct weft_graph *g = plan->graph;
    if (!alone)
        weft_delay_updates(plan->graph);
    plan->units = weft_units_find(g, g->arena);
    if (plan->target.planned)
        find_read_by_callers(plan);
    if (!alone)
        weft_chosen_find(plan);
    const struct weft_alias_query query = {
        .graph = plan->graph, .units = &plan->units, .param_layout = plan->param_layout,
        .return_layout = plan->return_layout, .strided = is_strided, .form = form_of, .hosts = may_host,
        .elsewhere = is_elsewhere,
        .exact = plan->read_by_callers ? is_exact : NULL, .user = plan};
    (alone ? weft_find_returns : weft_find_aliases)(&query, &plan->alias);
    weft_arena_close(&g->root->scratch);
    place_returns(plan);
    for (uint32_t i = 1; i < g->values; i++) {
        const struct weft_alias *alias = &plan->alias.of[i];
        if (alias->kind == WEFT_ALIAS_OWN)
            continue;
        if (!plan->home[alias->owner.id].storage)
            weft_home_block(plan, alias->owner);
        weft_home_set(plan, (weft_val){.id = i}, plan->home[alias->owner.id].storage, alias->layout);
    }
}

const bool *weft_home_inside(const struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_home *result = &plan->home[weft_result(g, n, 0).id];
    if ((weft_op_of(g, n)->traits & WEFT_ELEMENTWISE) || weft_unit_of(&plan->units, n)->nodes > 1)
        return NULL;
    const uint32_t places = weft_places_in(g, n);
    bool *inside = NULL;
    weft_dim along = weft_dim_of(0);
    for (uint32_t i = 0; i < places; i++) {
        const weft_val v = weft_operand(g, n, i);
        struct weft_layout place;
        if (plan->home[v.id].storage == result->storage && weft_place_in(g, n, i, along, result->layout, &place) &&
            weft_same_places(g, weft_type_of(g, v), &place, plan->home[v.id].layout)) {
            inside = inside ? inside : weft_new(g->arena, bool, places);
            inside[i] = true;
        }
        along = weft_index_behind(g, (struct weft_pin){n, .index = i}, along);
    }
    return inside;
}

/* Do strides that are constant fall, from each storage axis to the next? What is repeated has no place in an order. */
static bool lies_in_order(const struct weft_plan *plan, weft_val v, const struct weft_layout *order)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_type *type = weft_type_of(g, v);
    int64_t inside = 0;
    for (int i = order->axes - 1; i >= 0; i--) {
        const int axis = order->axis[i].axis;
        const weft_dim stride = plan->home[v.id].stride[axis];
        if (weft_dim_is(type->extent[axis], 1) || weft_dim_is(stride, 0))
            continue;
        if (order->axis[i].div != 1 || !weft_dim_is_constant(stride) || weft_dim_value(stride) <= inside)
            return false;
        inside = weft_dim_value(stride);
    }
    return true;
}

/* Does the value lie as the caller wants result i? An order without strides, be it row-major, is met by any strides
 * that fall in it. */
static bool lies_as_promised(const struct weft_plan *plan, uint32_t i)
{
    const struct weft_graph *g = plan->graph;
    const weft_val v = g->ret[i].value;
    const struct weft_type *type = weft_type_of(g, v);
    const weft_dim *promised = plan->storage[plan->return_storage[i]].stride, *stride = plan->home[v.id].stride;
    const struct weft_layout wanted = weft_layout_of(g, v);
    if (wanted.kind == WEFT_UNDECIDED)
        return true;
    if (wanted.align)
        return false; /* a view begins anywhere */
    if (wanted.dense)
        return lies_in_order(plan, v, &wanted);
    for (int axis = 0; axis < type->rank; axis++)
        if (!weft_dim_is(type->extent[axis], 1) && !weft_dim_same(promised[axis], stride[axis]))
            return false;
    return true;
}

/* Does a parameter's memory hold at the end what results that live there are views of? Not if it gets a new value by a
 * copy; where that is computed in place, nobody returns the old one (sched/alias.h). */
static bool holds_result(const struct weft_plan *plan, weft_val param)
{
    const struct weft_graph *g = plan->graph;
    if (!g->value[param.id].is_mut)
        return true;
    for (uint32_t i = 0; i < g->returns; i++)
        if (weft_is(g->ret[i].mut, param))
            return plan->alias.ret[i].updated;
    return false;
}

void weft_home_share(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    bool sized_by_data = false;
    for (uint32_t i = 0; i < weft_symbol_count(g->dims); i++)
        sized_by_data |= weft_symbol_at(g->dims, i)->data;
    for (uint32_t i = 0; plan->share && !plan->return_layout && !sized_by_data && i < g->returns; i++) {
        const struct weft_home *home = &plan->home[g->ret[i].value.id];
        const struct weft_storage *storage = &plan->storage[home->storage];
        const bool is_input = storage->kind == WEFT_IN_PARAM && holds_result(plan, storage->value);
        const bool is_result = storage->kind == WEFT_IN_RETURN && home->storage != plan->return_storage[i];
        const bool is_kept = storage->kind == WEFT_IN_ARENA; /* until the next run: plan_returns in plan.c */
        plan->shared[i] = (is_input || is_result || is_kept) && !g->ret[i].mut.id && lies_as_promised(plan, i);
    }
    for (uint32_t i = 0; i < g->returns; i++)
        plan->shared[i] |= plan->alias.ret[i].updated;
}

static struct weft_layout splat_layout(int rank)
{
    struct weft_layout layout = weft_layout_row_major(rank);
    layout.dense = false;
    for (int i = 0; i < rank; i++)
        layout.stride[i] = weft_dim_of(0);
    return layout;
}

/* A splat is one element that all indices find. Other constants stay where they are, mapped from their file; weights.c
 * copies them where their address is odd for their type. */
void weft_home_constant(struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_type *type = weft_type_of(g, v);
    const struct weft_constant *constant = g->node[weft_def(g, v).id].constant;
    struct weft_storage storage = {.kind = WEFT_IN_CONSTANT, .dtype = type->dtype, .value = v};
    struct weft_layout layout = weft_layout_row_major(type->rank);
    const unsigned bits = weft_dtype_bits(type->dtype);
    if (constant->kind == WEFT_CONST_SPLAT && bits >= 8) {
        const uint32_t pack = weft_plan_add_pack(plan, bits / 8);
        if (constant->integer)
            weft_store_integer(type->dtype, plan->pack[pack].data, 0, constant->splat);
        else
            weft_store_real(type->dtype, plan->pack[pack].data, 0, constant->real);
        storage.data = plan->pack[pack].data;
        storage.splat = true;
        layout = splat_layout(type->rank);
    } else {
        storage.data = weft_const_data(g, v);
        if ((uintptr_t)storage.data % (bits >= 8 ? bits / 8 : 1) != 0)
            storage.data = NULL; /* weights.c makes a copy if one is wanted */
    }
    weft_home_set(plan, v, add_storage(plan, storage), &layout);
}

void weft_home_loaded(struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_layout layout = weft_own_layout(g, v);
    weft_home_set(plan, v, add_storage(plan, (struct weft_storage){
        .kind = WEFT_IN_CONSTANT, .dtype = weft_type_of(g, v)->dtype, .value = v}), &layout);
}

bool weft_home_view(struct weft_plan *plan, weft_node n, weft_val v)
{
    const struct weft_home from = plan->home[weft_operand(plan->graph, n, 0).id];
    struct weft_layout layout;
    bool view = weft_view_layout(plan->graph, n, from.layout, &layout);
    if (view && plan->target.planned && (weft_is_split(plan->graph, v) ||
                                         weft_target_kernel_noted(&plan->target, plan->graph, n))) {
        const struct weft_layout own = weft_own_layout(plan->graph, v); /* what is stored so is read so */
        view = weft_layout_equal(plan->graph->dims, &own, &layout, weft_type_of(plan->graph, v));
    }
    if (view)
        weft_home_set(plan, v, from.storage, &layout);
    return view;
}

void weft_home_block(struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_layout layout = weft_own_layout(g, v);
    const uint32_t storage = add_storage(plan, (struct weft_storage){
        .kind = WEFT_IN_ARENA, .dtype = weft_type_of(g, v)->dtype, .value = v, .first = INT32_MAX, .last = -1,
        .align = layout.align > 64 ? layout.align : 0});
    weft_home_set(plan, v, storage, &layout);
}

uint32_t weft_home_row(struct weft_plan *plan, struct weft_storage storage) { return add_storage(plan, storage); }

uint32_t weft_home_room(struct weft_plan *plan, uint32_t control)
{
    return add_storage(plan, (struct weft_storage){
        .kind = WEFT_IN_ARENA, .control = control, .first = INT32_MAX, .last = -1});
}
