/* SPDX-License-Identifier: Apache-2.0 */
/* eval_control.c: ops with bodies. Nesting of bodies is what bounds the recursion, and the makers of graphs bound that.
 */
#include "ir/eval.h"

void weft_eval_if(struct weft_eval *eval)
{
    union weft_number condition;
    weft_eval_load(&eval->in[0], 0, 0, 1, &condition);
    const int key = condition.integer ? WEFT_ATTR_then : WEFT_ATTR_else;
    const struct weft_graph *body = weft_attr_find(eval->graph, eval->node, key)->graph;
    if (!weft_eval_body(body, eval->symbols, eval->context, eval->in + 1, eval->out))
        eval->failed = true;
}

/* Two sets of carried values take turns: a trip reads one and writes the other. */
struct carried {
    unsigned count;
    struct weft_tensor *tensor; /* [0]: the index, then one set, then the index again and the other set */
    int64_t index;
};

static void close_carried(struct weft_eval *eval, struct carried *c)
{
    if (!c->tensor)
        return;
    for (unsigned i = 0; i < 2 * (c->count + 1); i++)
        if (i % (c->count + 1) != 0)
            weft_eval_drop(eval, c->tensor[i].data, (int64_t)weft_tensor_bytes(&c->tensor[i]), 1);
    weft_eval_drop(eval, c->tensor, 2 * (c->count + 1), sizeof *c->tensor);
}

static bool open_carried(struct weft_eval *eval, struct carried *c)
{
    c->tensor = weft_eval_scratch(eval, 2 * (c->count + 1), sizeof *c->tensor);
    if (!c->tensor)
        return false;
    for (unsigned i = 0; i < 2 * (c->count + 1); i++) {
        const unsigned operand = i % (c->count + 1);
        struct weft_tensor *tensor = &c->tensor[i];
        *tensor = operand ? eval->in[operand] : (struct weft_tensor){.data = &c->index, .dtype = WEFT_I64};
        if (operand == 0)
            continue;
        weft_tensor_dense(tensor);
        tensor->data = NULL;
    }
    for (unsigned i = 0; i < 2 * (c->count + 1); i++)
        if (i % (c->count + 1) != 0) {
            c->tensor[i].data = weft_eval_scratch(eval, (int64_t)weft_tensor_bytes(&c->tensor[i]), 1);
            if (!c->tensor[i].data)
                return false;
        }
    return true;
}

void weft_eval_loop(struct weft_eval *eval)
{
    union weft_number trips;
    weft_eval_load(&eval->in[0], 0, 0, 1, &trips);
    const struct weft_graph *body = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_body)->graph;
    struct carried c = {.count = weft_node_of(eval->graph, eval->node)->results};
    if (open_carried(eval, &c)) {
        struct weft_tensor *now = c.tensor, *next = c.tensor + c.count + 1;
        for (unsigned i = 1; i <= c.count; i++)
            weft_tensor_copy(&now[i], 0, &eval->in[i], 0);
        for (; c.index < trips.integer && !eval->failed; c.index++) {
            if (!weft_eval_body(body, eval->symbols, eval->context, now, next + 1))
                eval->failed = true;
            struct weft_tensor *const turn = now;
            now = next;
            next = turn;
        }
        for (unsigned i = 1; i <= c.count; i++)
            weft_tensor_copy(&eval->out[i - 1], 0, &now[i], 0);
    }
    close_carried(eval, &c);
}
