/* SPDX-License-Identifier: Apache-2.0 */
/* import_loop.c: Loop and Scan.
 *
 * Both become weft's `loop`: what a body reads from outside becomes operands behind the carried values, and what it
 * returns for every trip is collected along a new axis.
 *
 * Where a Loop's trips are limited to a known number and may be fewer, they are counted: the collected values are cut
 * to that count, which comes out of data.
 *
 * A Loop whose few trips are all known is written out instead, trip behind trip: then its slices and reshapes by the
 * number of the trip are constant, a carried value may change its shape, and later passes see through it. */
#include "onnx/cut.h"

#include <string.h>

#define MAX_UNROLLED 32 /* trips */

/* What an importer of loops knows about the body. */
struct loop {
    struct onnx_graph source;
    unsigned carried, collected;
    unsigned first;     /* the body's inputs and outputs in front of the carried ones */
    weft_val trips;     /* i64[] */
    weft_val condition; /* bool[], or none: no need to ask */
    bool counted;       /* the number of trips is `length`, whatever the data */
    bool counting;      /* it is at most `length`: the trips are counted, to know how much was collected */
    weft_val counter;   /* in the body */
    weft_dim length;
    struct weft_graph *body;
    struct onnx_captures captures;
    struct onnx_scope scope;
};

static bool read_body(struct onnx_op *op, struct loop *loop)
{
    const struct onnx_attribute *attribute = weft_onnx_attribute(op, "body", ONNX_GRAPH);
    if (!attribute)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute body is missing");
    if (op->failed)
        return false;
    if (!weft_onnx_read_graph(&op->importer->reader, attribute->message, &loop->source))
        op->failed = true;
    return !op->failed;
}

static weft_val scalar_of(struct onnx_op *op, weft_val value, int dtype)
{
    const weft_val scalar = weft_onnx_reshape(op, value, 0, NULL);
    if (!op->failed && weft_onnx_type(op, scalar).dtype != dtype)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the %s is not %s", dtype == WEFT_BOOL ? "condition" : "trip count",
                       weft_dtype_name(dtype));
    return scalar;
}

/* The op as if it stood in its own body. */
static struct onnx_op inside(const struct onnx_op *op, struct loop *loop)
{
    struct onnx_op inner = *op;
    inner.graph = loop->body;
    inner.scope = &loop->scope;
    return inner;
}

static weft_val zero(struct onnx_op *op)
{
    const struct weft_type scalar = {.dtype = WEFT_I64};
    return weft_onnx_splat(op, &scalar, 0);
}

static weft_val next_count(struct onnx_op *op, weft_val counter)
{
    return weft_onnx_binary(op, WEFT_OP_add, counter, weft_onnx_scalar_like(op, counter, 1));
}

/* Gives a name of the body its value. */
static void bind(struct onnx_op *op, struct onnx_scope *scope, struct onnx_string name, weft_val value)
{
    if (name.length && !weft_onnx_define(op->importer, scope, name, NULL, value))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the body has two inputs \"%s\"", weft_onnx_text(op->importer, name));
}

static weft_val add_param(struct onnx_op *op, struct loop *loop, struct onnx_string name, const struct weft_type *type)
{
    return weft_add_param(loop->body, name.length ? weft_onnx_text(op->importer, name) : NULL, type);
}

/* A scalar parameter, in the shape that the body declares for it: some writers say [1]. */
static void add_scalar(struct onnx_op *op, struct loop *loop, const struct onnx_value *input, int dtype)
{
    const struct weft_type type = {.dtype = (uint8_t)dtype};
    const weft_dim one = weft_dim_of(1);
    struct onnx_op inner = inside(op, loop);
    weft_val value = add_param(op, loop, input->name, &type);
    if (input->has_shape && input->rank == 1)
        value = weft_onnx_reshape(&inner, value, 1, &one);
    bind(op, &loop->scope, input->name, value);
}

static bool open_body(struct onnx_op *op, struct loop *loop)
{
    loop->body = weft_onnx_new_body(op, "body");
    loop->scope = (struct onnx_scope){.parent = op->scope, .graph = loop->body, .captures = &loop->captures};
    op->failed = op->failed || !loop->body;
    return !op->failed;
}

/* The new value of a carried one has its type. */
static void check_carried(struct onnx_op *op, const struct loop *loop, unsigned i, weft_val before, weft_val after)
{
    const struct weft_type *from = weft_type_of(op->graph, before), *to = weft_type_of(loop->body, after);
    if (weft_type_same(from, to))
        return;
    struct weft_text text[2];
    for (unsigned k = 0; k < 2; k++) {
        text[k] = (struct weft_text){.context = op->importer->reader.context, .arena = op->importer->reader.arena};
        weft_type_print(op->graph->dims, k ? to : from, &text[k]);
    }
    weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "carried value %u is %s before a trip and %s after it", i, text[0].data,
                   text[1].data);
}

/* Imports the body and makes the node. `given`: the carried values, then what the body reads whole. */
static void make_loop(struct onnx_op *op, struct loop *loop, unsigned givens, const weft_val *given)
{
    struct weft_arena *arena = op->importer->reader.arena;
    weft_val *returned = weft_new(arena, weft_val, loop->source.outputs + 1u);
    weft_onnx_import_body(op, &loop->scope, &loop->source, returned);
    if (op->failed)
        return;
    const unsigned conditions = loop->condition.id ? 1 : 0;
    struct onnx_op inner = inside(op, loop);
    if (conditions)
        weft_add_return(loop->body, scalar_of(&inner, returned[0], WEFT_BOOL), WEFT_NO_VALUE);
    op->failed = inner.failed;
    for (unsigned i = 0; i < loop->carried + loop->collected && !op->failed; i++) {
        if (i < loop->carried)
            check_carried(op, loop, i, given[i], returned[loop->first + i]);
        if (i == loop->carried && loop->counting)
            weft_add_return(loop->body, next_count(&inner, loop->counter), WEFT_NO_VALUE);
        weft_add_return(loop->body, returned[loop->first + i], WEFT_NO_VALUE);
    }
    const unsigned captured = loop->captures.count, counters = loop->counting ? 1 : 0;
    const unsigned heads = 1 + conditions, operands = heads + givens + counters + captured;
    weft_val *operand = weft_new(arena, weft_val, operands);
    operand[0] = loop->trips;
    operand[conditions] = conditions ? loop->condition : operand[0];
    for (unsigned i = 0; i < givens; i++)
        operand[heads + i] = given[i];
    if (loop->counting) /* behind the carried values, which are all that is given then */
        operand[heads + givens] = zero(op);
    for (unsigned i = 0; i < captured; i++)
        operand[heads + givens + counters + i] = loop->captures.outer[i];
    struct weft_attr attrs[] = {
        {.key = WEFT_ATTR_body, .kind = WEFT_ATTR_GRAPH, .graph = loop->body},
        weft_attr_of_int(WEFT_ATTR_carried, conditions + loop->carried + counters),
        weft_attr_of_int(WEFT_ATTR_while, conditions),
        weft_attr_of_int(WEFT_ATTR_length, 0),
    };
    attrs[3].integer = loop->length;
    const weft_val first =
        weft_onnx_make(op, WEFT_OP_loop, operands, operand, loop->collected ? 4 : 3, attrs, NULL);
    weft_val made = WEFT_NO_VALUE; /* the positions that were collected */
    if (loop->counting)
        made = weft_onnx_positions(op, loop->length, zero(op), (weft_val){.id = first.id + conditions + loop->carried},
                                   WEFT_NO_VALUE);
    for (unsigned i = 0; i < op->outputs && i < loop->carried + loop->collected && !op->failed; i++) {
        const bool collected = i >= loop->carried;
        const weft_val value = {.id = first.id + conditions + (collected ? counters : 0) + i};
        op->output[i] = collected && loop->counting ? weft_onnx_take(op, value, made, 0) : value;
    }
}

/* --- Loop --------------------------------------------------------------------------------------------------------- */

/* Is the condition after a trip the one before it? Followed by name through Identity nodes. */
static bool keeps_condition(const struct loop *loop)
{
    struct onnx_string name = loop->source.output[0].name;
    const struct onnx_string before = loop->source.input[1].name;
    for (uint32_t i = loop->source.nodes; i-- > 0;) {
        const struct onnx_node *node = &loop->source.node[i];
        if (node->output.count == 1 && node->input.count == 1 && onnx_is(node->op, "Identity") &&
            onnx_same(node->output.item[0], name))
            name = node->input.item[0];
    }
    return onnx_same(name, before);
}

/* Trip count and condition; either may be absent. */
static void read_trips(struct onnx_op *op, struct loop *loop)
{
    static const struct weft_type count = {.dtype = WEFT_I64}, truth = {.dtype = WEFT_BOOL};
    weft_dim known;
    loop->trips = weft_onnx_has(op, 0) ? scalar_of(op, op->input[0], WEFT_I64) : weft_onnx_splat(op, &count, 9e18);
    loop->condition =
        weft_onnx_has(op, 1) ? scalar_of(op, op->input[1], WEFT_BOOL) : weft_onnx_splat(op, &truth, 1);
    if (op->failed)
        return;
    const bool begins = weft_onnx_single(op, loop->condition, &known) && weft_dim_is(known, 1);
    loop->counted = begins && keeps_condition(loop) && weft_onnx_single(op, loop->trips, &loop->length);
    if (loop->counted)
        loop->length = weft_onnx_max(op, loop->length, weft_dim_of(0));
}

static void collect_unrolled(struct onnx_op *op, unsigned trips, weft_val *each, weft_val *ret)
{
    for (unsigned t = 0; t < trips && !op->failed; t++) {
        struct weft_type type = weft_onnx_type(op, each[t]);
        if (type.rank == WEFT_MAX_RANK) {
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "a collected value has %d axes already", WEFT_MAX_RANK);
            return;
        }
        memmove(type.extent + 1, type.extent, type.rank * sizeof *type.extent);
        type.extent[0] = weft_dim_of(1);
        each[t] = weft_onnx_reshape(op, each[t], type.rank + 1u, type.extent);
    }
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    *ret = weft_onnx_make(op, WEFT_OP_concat, trips, each, 1, &axis, NULL);
}

/* Trip behind trip in the graph itself. */
static void unroll(struct onnx_op *op, struct loop *loop, unsigned trips)
{
    struct weft_arena *arena = op->importer->reader.arena;
    const unsigned outputs = loop->source.outputs;
    weft_val *value = weft_new(arena, weft_val, loop->carried + 1), *returned = weft_new(arena, weft_val, outputs);
    weft_val *collected = weft_new(arena, weft_val, (size_t)trips * loop->collected + 1);
    for (unsigned i = 0; i < loop->carried; i++)
        value[i] = op->input[2 + i];
    for (unsigned t = 0; t < trips && weft_onnx_repeat(op, loop->source.nodes); t++) {
        struct onnx_scope scope = {.parent = op->scope, .graph = op->graph};
        static const struct weft_type count = {.dtype = WEFT_I64};
        const weft_dim one = weft_dim_of(1);
        weft_val head[] = {weft_onnx_splat(op, &count, t), loop->condition};
        for (unsigned i = 0; i < loop->source.inputs; i++) {
            const struct onnx_value *input = &loop->source.input[i];
            weft_val given = i < 2 ? head[i] : value[i - 2];
            if (i < 2 && input->has_shape && input->rank == 1)
                given = weft_onnx_reshape(op, given, 1, &one);
            bind(op, &scope, input->name, given);
        }
        op->importer->unnamed++;
        if (!op->failed)
            weft_onnx_import_body(op, &scope, &loop->source, returned);
        op->importer->unnamed--;
        for (unsigned i = 0; i < loop->carried && !op->failed; i++)
            value[i] = returned[1 + i];
        for (unsigned i = 0; i < loop->collected && !op->failed; i++)
            collected[i * trips + t] = returned[1 + loop->carried + i];
    }
    for (unsigned i = 0; i < op->outputs && !op->failed; i++)
        if (i < loop->carried)
            op->output[i] = value[i];
        else
            collect_unrolled(op, trips, collected + (size_t)(i - loop->carried) * trips, &op->output[i]);
}

static void import_loop(struct onnx_op *op)
{
    struct loop loop = {.first = 1, .carried = op->inputs > 2 ? op->inputs - 2 : 0};
    if (!read_body(op, &loop))
        return;
    if (loop.source.inputs != loop.carried + 2 || loop.source.outputs < loop.carried + 1 ||
        op->outputs > loop.source.outputs - 1) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a body of %u inputs and %u outputs does not fit %u carried values",
                       loop.source.inputs, loop.source.outputs, loop.carried);
        return;
    }
    loop.collected = loop.source.outputs - 1 - loop.carried;
    read_trips(op, &loop);
    for (unsigned i = 0; i < loop.carried && !op->failed; i++)
        weft_onnx_input(op, 2 + i);
    if (op->failed)
        return;
    const bool fixed = loop.counted && weft_dim_is_constant(loop.length);
    if (fixed && weft_dim_value(loop.length) <= MAX_UNROLLED && (!loop.collected || !weft_dim_is(loop.length, 0))) {
        unroll(op, &loop, (unsigned)weft_dim_value(loop.length));
        return;
    }
    if (loop.collected && !loop.counted) {
        loop.counting = weft_onnx_can_cut(op) && weft_onnx_has(op, 0) && weft_onnx_single(op, loop.trips, &loop.length);
        loop.length = weft_onnx_max(op, loop.length, weft_dim_of(0));
    }
    if (loop.collected && !loop.counted && !loop.counting)
        weft_onnx_fail_unknown(op, weft_onnx_has(op, 0) ? 0 : 1, weft_onnx_has(op, 0) ? "M" : "cond",
                               "must be a constant or follow from extents where results are collected");
    if (op->failed || !open_body(op, &loop))
        return;
    add_scalar(op, &loop, &loop.source.input[0], WEFT_I64);
    add_scalar(op, &loop, &loop.source.input[1], WEFT_BOOL);
    for (unsigned i = 0; i < loop.carried && !op->failed; i++) {
        const struct weft_type type = weft_onnx_type(op, op->input[2 + i]);
        const struct onnx_string name = loop.source.input[2 + i].name;
        bind(op, &loop.scope, name, add_param(op, &loop, name, &type));
    }
    const struct weft_type scalar = {.dtype = WEFT_I64};
    if (loop.counting)
        loop.counter = add_param(op, &loop, (struct onnx_string){0}, &scalar);
    make_loop(op, &loop, loop.carried, op->input + 2);
}

/* --- Scan --------------------------------------------------------------------------------------------------------- */

struct scan {
    unsigned states, inputs, outputs;
    unsigned input_axis[64], output_axis[64];
    bool input_reverse[64], output_reverse[64];
};

/* One number for each of `count` inputs or outputs. */
static const int64_t *scan_list(struct onnx_op *op, const char *name, unsigned count)
{
    static const int64_t zeros[64];
    unsigned given;
    const int64_t *list = weft_onnx_ints(op, name, &given);
    if (list && given != count)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s has %u elements instead of %u", name, given, count);
    return list && given == count ? list : zeros;
}

static bool read_scan(struct onnx_op *op, struct loop *loop, struct scan *scan)
{
    const int64_t inputs = weft_onnx_int(op, "num_scan_inputs", 0);
    if (inputs < 1 || inputs > op->inputs || op->inputs > 64 || loop->source.inputs != op->inputs ||
        loop->source.outputs < op->inputs - inputs || loop->source.outputs != op->outputs || op->outputs > 64)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a body of %u inputs and %u outputs does not fit", loop->source.inputs,
                       loop->source.outputs);
    if (op->failed)
        return false;
    *scan = (struct scan){.states = op->inputs - (unsigned)inputs, .inputs = (unsigned)inputs};
    scan->outputs = op->outputs - scan->states;
    const int64_t *axes = scan_list(op, "scan_input_axes", scan->inputs);
    const int64_t *directions = scan_list(op, "scan_input_directions", scan->inputs);
    for (unsigned i = 0; i < scan->inputs && !op->failed; i++) {
        const weft_val input = weft_onnx_input(op, scan->states + i);
        scan->input_axis[i] = weft_onnx_axis(op, axes[i], weft_onnx_type(op, input).rank);
        scan->input_reverse[i] = directions[i] != 0;
    }
    return !op->failed;
}

/* In the body, an input of the scan is the part of it that belongs to the trip. */
static void add_scanned(struct onnx_op *op, struct loop *loop, struct onnx_string name, weft_val whole, unsigned axis,
                        bool reverse, weft_val index)
{
    const struct weft_type type = weft_onnx_type(op, whole);
    struct onnx_op inner = inside(op, loop);
    if (reverse) {
        const struct weft_type scalar = {.dtype = WEFT_I64};
        const weft_dim last = weft_dim_sub(op->graph->dims, loop->length, weft_dim_of(1));
        const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &last);
        index = weft_onnx_binary(&inner, WEFT_OP_sub,
                                 weft_onnx_make(&inner, WEFT_OP_extents, 0, NULL, 1, &value, &scalar), index);
    }
    const weft_val operands[] = {add_param(op, loop, (struct onnx_string){0}, &type), index};
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    bind(op, &loop->scope, name, weft_onnx_make(&inner, WEFT_OP_gather, 2, operands, 1, &attr, NULL));
    op->failed = op->failed || inner.failed;
}

/* What was collected along axis 0, in the order and along the axis that is asked for. */
static weft_val placed(struct onnx_op *op, weft_val collected, int64_t wanted, bool reverse)
{
    const unsigned rank = weft_onnx_type(op, collected).rank, axis = weft_onnx_axis(op, wanted, rank);
    const weft_dim zero = weft_dim_of(0);
    const struct weft_attr axes = weft_attr_of_dims(WEFT_ATTR_axes, 1, &zero);
    if (reverse)
        collected = weft_onnx_make(op, WEFT_OP_flip, 1, &collected, 1, &axes, NULL);
    unsigned perm[WEFT_MAX_RANK];
    for (unsigned i = 0; i < rank; i++)
        perm[i] = i < axis ? i + 1 : i == axis ? 0 : i;
    return axis ? weft_onnx_transpose(op, collected, rank, perm) : collected;
}

static void import_scan(struct onnx_op *op)
{
    struct loop loop = {.counted = true};
    struct scan scan;
    if (!read_body(op, &loop) || !read_scan(op, &loop, &scan))
        return;
    loop.carried = scan.states;
    loop.collected = scan.outputs;
    for (unsigned i = 0; i < scan.inputs && !op->failed; i++) {
        const weft_dim extent = weft_onnx_type(op, op->input[scan.states + i]).extent[scan.input_axis[i]];
        if (i && !weft_dim_same(loop.length, extent))
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "extents of its scanned axes cannot be proved equal");
        loop.length = extent;
    }
    const struct weft_type scalar = {.dtype = WEFT_I64};
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &loop.length);
    loop.trips = weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &scalar);
    if (op->failed || !open_body(op, &loop))
        return;
    const weft_val index = weft_add_param(loop.body, NULL, &scalar);
    for (unsigned i = 0; i < scan.states && !op->failed; i++) {
        const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, i));
        const struct onnx_string name = loop.source.input[i].name;
        bind(op, &loop.scope, name, add_param(op, &loop, name, &type));
    }
    for (unsigned i = 0; i < scan.inputs && !op->failed; i++)
        add_scanned(op, &loop, loop.source.input[scan.states + i].name, op->input[scan.states + i],
                    scan.input_axis[i], scan.input_reverse[i], index);
    const int64_t *axes = scan_list(op, "scan_output_axes", scan.outputs);
    const int64_t *directions = scan_list(op, "scan_output_directions", scan.outputs);
    if (op->failed)
        return;
    make_loop(op, &loop, op->inputs, op->input);
    for (unsigned i = 0; i < scan.outputs && !op->failed; i++)
        op->output[scan.states + i] = placed(op, op->output[scan.states + i], axes[i], directions[i] != 0);
}

const struct onnx_row weft_onnx_loop[] = {
    {"Loop", 1, 0, -1, 0, import_loop},
    {"Scan", 9, 1, -1, 0, import_scan},
    {0},
};
