/* SPDX-License-Identifier: Apache-2.0 */
/* control.c: ops with bodies. Nesting of bodies is what bounds the recursion, and the makers of graphs bound that.
 */
#include "eval/rule.h"

void weft_eval_if(struct weft_eval *eval)
{
    union weft_number condition;
    weft_eval_load(&eval->in[0], 0, 0, 1, &condition);
    const int key = condition.integer ? WEFT_ATTR_then : WEFT_ATTR_else;
    const struct weft_graph *body = weft_attr_find(eval->graph, eval->node, key)->graph;
    if (!weft_eval_body(body, eval->symbols, eval->context, eval->in + 1, eval->out, eval->failure))
        eval->failed = true;
}

/* --- loop ---------------------------------------------------------------------------------------------------- */

/* Two sets of carried values take turns: a trip reads one and writes the other. What is collected is written where it
 * belongs in the result. */
struct loop {
    unsigned params, carried, results;
    struct weft_tensor *in;  /* the parameters of the body: the index, what is carried, what is only read */
    struct weft_tensor *out; /* what it returns: what is carried, what is collected */
    int64_t index, length;   /* of what is collected; INT64_MAX where nothing is */
};

static bool allocate(struct weft_eval *eval, struct weft_tensor *tensor)
{
    weft_tensor_dense(tensor);
    tensor->data = weft_eval_scratch(eval, (int64_t)weft_tensor_bytes(tensor), 1);
    return tensor->data;
}

static bool open_loop(struct weft_eval *eval, struct loop *loop)
{
    loop->in = weft_eval_scratch(eval, loop->params, sizeof *loop->in);
    loop->out = weft_eval_scratch(eval, loop->results, sizeof *loop->out);
    if (!loop->in || !loop->out)
        return false;
    for (unsigned i = 0; i < loop->params; i++)
        loop->in[i] = i ? eval->in[i] : (struct weft_tensor){.data = &loop->index, .dtype = WEFT_I64};
    for (unsigned i = 0; i < loop->results; i++)
        loop->out[i] = eval->out[i];
    for (unsigned i = 0; i < loop->carried; i++)
        loop->in[i + 1].data = loop->out[i].data = NULL;
    for (unsigned i = 0; i < loop->carried; i++)
        if (!allocate(eval, &loop->in[i + 1]) || !allocate(eval, &loop->out[i]))
            return false;
    for (unsigned i = 0; i < loop->carried; i++)
        weft_tensor_copy(&loop->in[i + 1], 0, &eval->in[i + 1], 0);
    for (unsigned i = loop->carried; i < loop->results; i++) { /* a slot of the result */
        struct weft_tensor *slot = &loop->out[i];
        loop->length = slot->extent[0];
        slot->rank--;
        for (int axis = 0; axis < slot->rank; axis++) {
            slot->extent[axis] = slot->extent[axis + 1];
            slot->stride[axis] = slot->stride[axis + 1];
        }
    }
    return true;
}

static void close_loop(struct weft_eval *eval, struct loop *loop)
{
    for (unsigned i = 0; i < loop->carried && loop->in && loop->out; i++) {
        weft_eval_drop(eval, loop->in[i + 1].data, (int64_t)weft_tensor_bytes(&loop->in[i + 1]), 1);
        weft_eval_drop(eval, loop->out[i].data, (int64_t)weft_tensor_bytes(&loop->out[i]), 1);
    }
    weft_eval_drop(eval, loop->in, loop->params, sizeof *loop->in);
    weft_eval_drop(eval, loop->out, loop->results, sizeof *loop->out);
}

/* Where trip `index` puts what is collected. */
static void aim(struct weft_eval *eval, struct loop *loop)
{
    for (unsigned i = loop->carried; i < loop->results; i++) {
        const struct weft_tensor *whole = &eval->out[i];
        const int64_t bytes = weft_dtype_bits(whole->dtype) / 8;
        loop->out[i].data = (char *)whole->data + loop->index * whole->stride[0] * bytes;
    }
}

static void take_turns(struct loop *loop)
{
    for (unsigned i = 0; i < loop->carried; i++) {
        void *const turn = loop->in[i + 1].data;
        loop->in[i + 1].data = loop->out[i].data;
        loop->out[i].data = turn;
    }
}

/* Does the condition, where there is one, ask for another trip? */
static bool goes_on(const struct weft_eval *eval, const struct loop *loop)
{
    union weft_number condition = {.integer = 1};
    if (weft_attr_int(eval->graph, eval->node, WEFT_ATTR_while))
        weft_eval_load(&loop->in[1], 0, 0, 1, &condition);
    return condition.integer != 0;
}

static void clear(const struct weft_tensor *slot)
{
    const union weft_number zero[WEFT_EVAL_STRIP] = {{.bits = 0}}; /* also the double 0 */
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &slot); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP)
            weft_eval_store(slot, walk.place[0] + i * walk.step[0], walk.step[0],
                            walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP, zero);
}

void weft_eval_loop(struct weft_eval *eval)
{
    const struct weft_node_info *info = weft_node_of(eval->graph, eval->node);
    const struct weft_graph *body = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_body)->graph;
    const struct weft_attr *carried = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_carried);
    struct loop loop = {.params = info->operands, .results = info->results, .length = INT64_MAX};
    loop.carried = carried ? (unsigned)weft_dim_value(carried->integer) : info->operands - 1u;
    union weft_number trips;
    weft_eval_load(&eval->in[0], 0, 0, 1, &trips);
    if (open_loop(eval, &loop)) {
        const int64_t most = trips.integer < loop.length ? trips.integer : loop.length;
        for (; loop.index < most && !eval->failed && goes_on(eval, &loop); loop.index++) {
            aim(eval, &loop);
            if (!weft_eval_body(body, eval->symbols, eval->context, loop.in, loop.out,
                                eval->failure))
                eval->failed = true;
            take_turns(&loop);
        }
        for (unsigned i = 0; i < loop.carried; i++)
            weft_tensor_copy(&eval->out[i], 0, &loop.in[i + 1], 0);
        for (; loop.results > loop.carried && loop.index < loop.length; loop.index++) {
            aim(eval, &loop);
            for (unsigned i = loop.carried; i < loop.results; i++)
                clear(&loop.out[i]);
        }
    }
    close_loop(eval, &loop);
}
