/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: from a graph to homes and steps.
 *
 * Values get their homes in order of execution. A view lives where its operand lives, if a strided layout can say so;
 * else it is copied. A result is computed where the caller wants it; a reshape that is returned hands its home back to
 * the value it reshapes, so that the last kernel writes the result itself. Everything else is a block of the arena,
 * alive from the step that writes it to the last that reads it. What depends on sizes is left to frame.c. */
#include "passes/passes.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>

/* --- homes -------------------------------------------------------------------------------------------------------- */

static uint32_t add_storage(struct weft_plan *plan, struct weft_storage storage)
{
    plan->storage = weft_grow(plan->graph->arena, plan->storage, &plan->storage_capacity, plan->storages + 1,
                              sizeof *plan->storage);
    plan->storage[plan->storages] = storage;
    return plan->storages++;
}

static void set_home(struct weft_plan *plan, weft_val v, uint32_t storage, const struct weft_layout *layout)
{
    const struct weft_graph *g = plan->graph;
    struct weft_home *home = &plan->home[v.id];
    home->storage = storage;
    home->layout = *layout;
    weft_layout_logical_strides(g->dims, layout, weft_type_of(g, v), home->stride);
}

/* As stated, or row-major where nothing is decided. From offset 0: a value that is computed or bound begins where its
 * storage does. */
static struct weft_layout home_layout(const struct weft_graph *g, weft_val v)
{
    struct weft_layout layout = weft_layout_of(g, v);
    if (layout.kind != WEFT_STORED)
        return weft_layout_row_major(weft_type_of(g, v)->rank);
    layout.offset = weft_dim_of(0);
    return layout;
}

uint32_t weft_plan_add_pack(struct weft_plan *plan, size_t bytes)
{
    plan->pack = weft_grow(plan->graph->arena, plan->pack, &plan->pack_capacity, plan->packs + 1, sizeof *plan->pack);
    void *data = weft_allocate(plan->context, bytes);
    if (!data)
        weft_out_of_memory(plan->context);
    memset(data, 0, bytes);
    plan->pack[plan->packs] = (struct weft_pack){data, bytes};
    plan->constant_bytes += (int64_t)bytes;
    return plan->packs++;
}

static void home_params(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->params; i++) {
        const struct weft_type *type = weft_type_of(g, g->param[i]);
        const struct weft_layout layout = home_layout(g, g->param[i]);
        struct weft_storage storage = {.kind = WEFT_IN_PARAM, .dtype = type->dtype, .index = i, .value = g->param[i]};
        weft_layout_logical_strides(g->dims, &layout, type, storage.stride);
        plan->param_storage[i] = add_storage(plan, storage);
        set_home(plan, g->param[i], plan->param_storage[i], &layout);
    }
}

static bool is_plain(const struct weft_graph *g, weft_val v)
{
    const struct weft_layout layout = home_layout(g, v);
    return weft_layout_is_row_major(&layout);
}

/* Result slots: the value itself, or what it reshapes, is computed there, unless that has a home already (a parameter,
 * a constant, the value of an earlier slot): then a copy at the end fills the slot. */
static void home_returns(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->returns; i++) {
        weft_val v = g->ret[i].value;
        struct weft_storage storage = {
            .kind = WEFT_IN_RETURN, .dtype = weft_type_of(g, v)->dtype, .index = i, .value = v};
        struct weft_layout layout = home_layout(g, v);
        weft_layout_logical_strides(g->dims, &layout, weft_type_of(g, v), storage.stride);
        plan->return_storage[i] = add_storage(plan, storage);
        while (weft_def(g, v).id && weft_def_opcode(g, v) == WEFT_OP_reshape && is_plain(g, v) &&
               is_plain(g, weft_operand(g, weft_def(g, v), 0)))
            v = weft_operand(g, weft_def(g, v), 0);
        const weft_node def = weft_def(g, v);
        if (def.id && !plan->home[v.id].storage && !(weft_op_of(g, def)->traits & (WEFT_VIEW | WEFT_SOURCE))) {
            layout = home_layout(g, v);
            set_home(plan, v, plan->return_storage[i], &layout);
        }
    }
}

static struct weft_layout splat_layout(int rank)
{
    struct weft_layout layout = weft_layout_row_major(rank);
    layout.dense = false;
    for (int i = 0; i < rank; i++)
        layout.stride[i] = weft_dim_of(0);
    return layout;
}

/* A splat is one element that all indices find. Other constants stay where they are, mapped from their file, unless
 * their address is odd for their type: then the plan has a copy. */
static void home_constant(struct weft_plan *plan, weft_val v)
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
        layout = splat_layout(type->rank);
    } else {
        storage.data = weft_const_data(g, v);
        if (!storage.data || (uintptr_t)storage.data % (bits >= 8 ? bits / 8 : 1) != 0) {
            const int64_t n = weft_dim_value(weft_type_elements(g->dims, type));
            const uint32_t pack = weft_plan_add_pack(plan, (size_t)weft_dtype_bytes(type->dtype, n));
            weft_const_write(g, v, plan->pack[pack].data);
            storage.data = plan->pack[pack].data;
        }
    }
    set_home(plan, v, add_storage(plan, storage), &layout);
}

/* The home of a view in its operand's storage; false: it must be copied. */
static bool home_view(struct weft_plan *plan, weft_node n, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    const weft_val operand = weft_operand(g, n, 0);
    const struct weft_home *from = &plan->home[operand.id];
    const struct weft_type *type = weft_type_of(g, operand), *to = weft_type_of(g, v);
    struct weft_layout layout;
    int axis[WEFT_MAX_RANK];
    bool view = false;
    if (weft_dtype_bits(type->dtype) < 8)
        return false;
    switch (weft_opcode_of(g, n)) {
    case WEFT_OP_transpose:
        for (int i = 0; i < type->rank; i++)
            axis[i] = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_perm, (unsigned)i));
        view = weft_layout_transpose(&from->layout, axis, &layout);
        break;
    case WEFT_OP_bcast:
        for (int i = 0; i < type->rank; i++)
            axis[i] = (int)weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)i));
        view = weft_layout_broadcast(g->dims, &from->layout, type, to, axis, &layout);
        break;
    case WEFT_OP_reshape:
        view = weft_layout_reshape(g->dims, &from->layout, type, to, &layout);
        break;
    case WEFT_OP_slice: {
        weft_dim start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
        for (int i = 0; i < type->rank; i++) {
            start[i] = weft_attr_at(g, n, WEFT_ATTR_start, (unsigned)i);
            step[i] = weft_attr_at(g, n, WEFT_ATTR_step, (unsigned)i);
        }
        view = weft_layout_slice(g->dims, &from->layout, type, start, step, &layout);
        break;
    }
    default:
        break;
    }
    weft_dim stride[WEFT_MAX_RANK]; /* a reshape may yield a view with split axes, which kernels do not read */
    view = view && weft_layout_logical_strides(g->dims, &layout, to, stride);
    if (view)
        set_home(plan, v, from->storage, &layout);
    return view;
}

static void home_block(struct weft_plan *plan, weft_val v)
{
    const struct weft_graph *g = plan->graph;
    const uint32_t storage = add_storage(plan, (struct weft_storage){
        .kind = WEFT_IN_ARENA, .dtype = weft_type_of(g, v)->dtype, .value = v, .first = INT32_MAX, .last = -1});
    const struct weft_layout layout = home_layout(g, v);
    set_home(plan, v, storage, &layout);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void live_at(struct weft_plan *plan, weft_val v, int32_t step)
{
    struct weft_storage *storage = &plan->storage[plan->home[v.id].storage];
    if (step < storage->first)
        storage->first = step;
    if (step > storage->last)
        storage->last = step;
}

static void add_step(struct weft_plan *plan, struct weft_step step)
{
    plan->step = weft_grow(plan->graph->arena, plan->step, &plan->step_capacity, plan->steps + 1, sizeof *plan->step);
    step.descriptor = (uint32_t)plan->descriptor_bytes;
    plan->descriptor_bytes += (step.kind->descriptor_bytes + 63) & ~(size_t)63;
    const struct weft_graph *g = plan->graph;
    const int32_t number = (int32_t)plan->steps;
    live_at(plan, step.out, number);
    for (unsigned i = 0; i < step.inputs; i++)
        live_at(plan, step.in[i], number);
    if (step.kind == &weft_step_reference) {
        for (unsigned i = 0; i < g->node[step.node.id].results; i++)
            live_at(plan, weft_result(g, step.node, i), number);
        for (unsigned i = 0; i < g->node[step.node.id].operands; i++)
            live_at(plan, weft_operand(g, step.node, i), number);
        plan->fallbacks++;
    }
    plan->relayouts += step.kind == &weft_step_copy;
    plan->step[plan->steps++] = step;
}

static int64_t *hint_symbols(const struct weft_graph *g)
{
    const uint32_t count = weft_symbol_count(g->dims);
    int64_t *symbols = weft_new(g->arena, int64_t, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_symbol_info *info = weft_symbol_at(g->dims, i);
        symbols[i] = info->hint ? info->hint : info->low > 1 ? info->low : 1;
    }
    weft_symbols_at_bounds(g->dims, symbols);
    return symbols;
}

static void pack_weights(struct weft_plan *plan, struct weft_step *step)
{
    if (step->kind != &weft_step_gemm && step->kind != &weft_step_conv)
        return;
    const struct weft_storage *weights = &plan->storage[plan->home[step->in[1].id].storage];
    if (weights->kind != WEFT_IN_CONSTANT)
        return;
    const int64_t *symbols = hint_symbols(plan->graph);
    const struct weft_bind bind = {.plan = plan, .step = step, .symbols = symbols, .workers = plan->workers,
                                   .out = weft_home_tensor(plan, step->out, symbols),
                                   .in = {weft_home_tensor(plan, step->in[0], symbols),
                                          weft_home_tensor(plan, step->in[1], symbols)}};
    const int64_t offset = weft_dim_evaluate(plan->graph->dims, plan->home[step->in[1].id].layout.offset, symbols);
    weft_step_pack(plan, step, &bind, (const float *)weights->data + offset);
}

/* A step for each operand of a concat, two for a padding with a constant, one for everything else. */
static void add_kernel_steps(struct weft_plan *plan, struct weft_step step)
{
    const struct weft_graph *g = plan->graph;
    const bool concat = step.kind == &weft_step_concat, pad = step.kind == &weft_step_pad;
    const unsigned parts = concat ? g->node[step.node.id].operands : pad ? 2 : 1;
    for (unsigned part = 0; part < parts; part++) {
        step.part = part;
        if (concat)
            step.in[0] = weft_operand(g, step.node, part);
        else if (pad)
            step.in[0] = weft_operand(g, step.node, part == 0 ? 1 : 0); /* the fill first, then what lies inside */
        pack_weights(plan, &step);
        add_step(plan, step);
    }
}

static void plan_node(struct weft_plan *plan, weft_node n, bool reference)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_node_info *info = &g->node[n.id];
    const weft_val first = weft_result(g, n, 0);
    if (info->constant && (info->constant->kind == WEFT_CONST_SPLAT || weft_type_is_constant(weft_type_of(g, first)))) {
        home_constant(plan, first);
        return;
    }
    if ((weft_op_of(g, n)->traits & WEFT_VIEW) && !plan->home[first.id].storage && home_view(plan, n, first))
        return;
    for (unsigned i = 0; i < info->results; i++)
        if (!plan->home[weft_result(g, n, i).id].storage)
            home_block(plan, weft_result(g, n, i));
    struct weft_step step = {.node = n, .out = first};
    if (!reference && weft_step_choose(plan, n, &step) && weft_permit(plan->graph, "plan.kernel", first))
        add_kernel_steps(plan, step);
    else
        add_step(plan, (struct weft_step){.kind = &weft_step_reference, .node = n, .out = first});
}

/* Results that were computed elsewhere are copied, and the new values of mutable parameters go last: until then the old
 * ones may be read. */
static void plan_returns(struct weft_plan *plan)
{
    const struct weft_graph *g = plan->graph;
    for (uint32_t i = 0; i < g->returns; i++)
        if (plan->home[g->ret[i].value.id].storage != plan->return_storage[i])
            add_step(plan, (struct weft_step){.kind = &weft_step_copy, .out = g->ret[i].value, .in = {g->ret[i].value},
                                              .inputs = 1, .to = plan->return_storage[i]});
    for (uint32_t i = 0; i < g->returns; i++)
        if (g->ret[i].mut.id)
            add_step(plan, (struct weft_step){.kind = &weft_step_copy, .out = g->ret[i].value, .in = {g->ret[i].value},
                                              .inputs = 1, .to = plan->home[g->ret[i].mut.id].storage});
}

/* --- what the plan says of itself --------------------------------------------------------------------------------- */

static void place_text(const struct weft_plan *plan, const struct weft_frame *frame, weft_val v, char *text,
                       size_t bytes)
{
    const struct weft_storage *storage = &plan->storage[plan->home[v.id].storage];
    switch ((enum weft_storage_kind)storage->kind) {
    case WEFT_IN_RETURN: snprintf(text, bytes, "out%u+0", storage->index); break;
    case WEFT_IN_ARENA: snprintf(text, bytes, "arena+%lld", (long long)frame->place[plan->home[v.id].storage]); break;
    default: snprintf(text, bytes, "-"); break;
    }
}

/* Kernel and place right of `!`, for sizes as the hints say. A node of several steps is named after its last. */
static void annotate(struct weft_plan *plan, const struct weft_frame *frame)
{
    static const char *const keys[] = {"at", "parts"};
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        if (!step->node.id)
            continue;
        char place[40], parts[16];
        place_text(plan, frame, step->out, place, sizeof place);
        snprintf(parts, sizeof parts, "%d", frame->step[i].parts);
        const char *const values[] = {place, parts};
        const char *kernel = step->kind->kernel(weft_frame_descriptor(frame, step), step);
        weft_set_plan(plan->graph, step->node, kernel, 2, keys, values);
        weft_add_remark(plan->graph, "plan", step->out, step->kind == &weft_step_reference ? "fallback" : "chosen",
                        "%s", kernel);
    }
}

static bool check_layouts(const struct weft_graph *g)
{
    bool legal = true;
    for (uint32_t i = 1; i < g->values; i++) {
        const weft_val v = {i};
        if (g->node[weft_def(g, v).id].dead)
            continue;
        const struct weft_layout layout = home_layout(g, v);
        weft_dim stride[WEFT_MAX_RANK];
        if (weft_layout_logical_strides(g->dims, &layout, weft_type_of(g, v), stride))
            continue;
        weft_error(g->context, WEFT_ERR_UNSUPPORTED,
                   &(struct weft_place){.file = g->file, .where = weft_value_text(g, v)},
                   "is stored with split axes, which no kernel reads yet");
        legal = false;
    }
    return legal;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

struct compile {
    const struct weft_graph *source;
    struct weft_compile_options options;
    struct weft_plan *plan;
};

static bool defines_symbols(const struct weft_graph *g, weft_node n)
{
    return n.id && (weft_op_of(g, n)->traits & WEFT_DATA);
}

static void build(struct weft_plan *plan, bool reference)
{
    struct weft_graph *g = plan->graph;
    plan->storages = plan->packs = 1;
    plan->home = weft_new(g->arena, struct weft_home, g->values);
    plan->param_storage = weft_new(g->arena, uint32_t, g->params);
    plan->return_storage = weft_new(g->arena, uint32_t, g->returns);
    plan->storage = weft_grow(g->arena, NULL, &plan->storage_capacity, 16, sizeof *plan->storage);
    plan->pack = weft_grow(g->arena, NULL, &plan->pack_capacity, 16, sizeof *plan->pack);
    home_params(plan);
    home_returns(plan);
    weft_foreach_node(g, n)
        plan_node(plan, n, reference);
    plan_returns(plan);
    while (plan->late < plan->steps && !defines_symbols(g, plan->step[plan->late].node))
        plan->late++;
    struct weft_frame *frame = weft_frame_new(plan, hint_symbols(g));
    if (!frame)
        weft_out_of_memory(plan->context);
    annotate(plan, frame);
    weft_frame_free(plan, frame);
}

static int compile(void *arg)
{
    struct compile *c = arg;
    struct weft_plan *plan = c->plan;
    plan->graph = weft_graph_copy(c->source);
    if (!weft_validate_graph(plan->graph))
        return WEFT_ERR_INVALID;
    if (!(c->options.flags & WEFT_COMPILE_NO_PASSES))
        weft_run_passes(plan->graph, &plan->target);
    if (!check_layouts(plan->graph))
        return WEFT_ERR_UNSUPPORTED;
    build(plan, c->options.flags & WEFT_COMPILE_REFERENCE);
    return WEFT_OK;
}

int weft_compile(const struct weft_graph *graph, const struct weft_compile_options *given, struct weft_plan **ret_plan)
{
    struct weft_context *context = graph->context;
    struct compile c = {.source = graph->root};
    if (given)
        memcpy(&c.options, given, given->size && given->size < sizeof c.options ? given->size : sizeof c.options);
    c.plan = weft_allocate(context, sizeof *c.plan);
    if (!c.plan)
        return WEFT_ERR_NOMEM;
    *c.plan = (struct weft_plan){.context = context, .target = c.options.target ? *c.options.target : context->target};
    c.plan->workers =
        context->target.threads < c.plan->target.threads ? context->target.threads : c.plan->target.threads;
    const int status = weft_protected(context, compile, &c);
    if (status == WEFT_OK)
        *ret_plan = c.plan;
    else
        weft_plan_destroy(c.plan);
    return status;
}

void weft_plan_destroy(struct weft_plan *plan)
{
    if (!plan)
        return;
    for (uint32_t i = 1; i < plan->packs; i++)
        weft_release(plan->context, plan->pack[i].data, plan->pack[i].bytes);
    weft_graph_free(plan->graph);
    weft_release(plan->context, plan, sizeof *plan);
}

int weft_plan_print(const struct weft_plan *plan, char **ret_text) { return weft_print(plan->graph, ret_text); }

const struct weft_graph *weft_plan_graph(const struct weft_plan *plan) { return plan->graph; }

size_t weft_plan_inputs(const struct weft_plan *plan) { return plan->graph->params; }

size_t weft_plan_outputs(const struct weft_plan *plan) { return plan->graph->returns; }

static int port(const struct weft_plan *plan, weft_val v, struct weft_port *ret_port)
{
    const struct weft_graph *g = plan->graph;
    const struct weft_type *type = weft_type_of(g, v);
    struct weft_port p = {
        .name = g->value[v.id].name ? g->value[v.id].name : "", .dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        p.extent[i] = weft_dim_is_constant(type->extent[i]) ? weft_dim_value(type->extent[i]) : -1;
    struct weft_text text = {.context = g->context};
    weft_type_print(g->dims, type, &text);
    if (g->value[v.id].layout) {
        const struct weft_layout layout = weft_layout_of(g, v);
        weft_layout_print(g->dims, &layout, &text);
    }
    snprintf(p.text, sizeof p.text, "%s", text.length ? text.data : "");
    weft_text_close(&text);
    *ret_port = p;
    return WEFT_OK;
}

int weft_plan_input(const struct weft_plan *plan, size_t i, struct weft_port *ret_port)
{
    return i < plan->graph->params ? port(plan, plan->graph->param[i], ret_port) : WEFT_ERR_ARGUMENT;
}

int weft_plan_output(const struct weft_plan *plan, size_t i, struct weft_port *ret_port)
{
    return i < plan->graph->returns ? port(plan, plan->graph->ret[i].value, ret_port) : WEFT_ERR_ARGUMENT;
}
