/* SPDX-License-Identifier: Apache-2.0 */
/* step_attention.c: attention of f32 (kernels/attention). Operands and results lie as they like; where their last axes
 * are not contiguous, the kernel copies pieces. */
#include "kernels/attention/attention.h"
#include "sched/step.h"

#include <string.h>

static enum weft_attention_empty empty_of(const char *word)
{
    return strcmp(word, "nan") == 0     ? WEFT_ATTENTION_NAN
           : strcmp(word, "clear") == 0 ? WEFT_ATTENTION_CLEAR
                                        : WEFT_ATTENTION_ZERO;
}

static void bind_attention(struct weft_bind *bind, void *descriptor)
{
    struct weft_attention *a = descriptor;
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor *q = &bind->in[0], *k = &bind->in[1], *v = &bind->in[2], *y = &bind->out;
    *a = (struct weft_attention){
        .cpu = weft_bind_cpu(bind), .cache = bind->target->l2,
        .batch = q->extent[0], .heads = q->extent[1], .rows = q->extent[2], .width = q->extent[3],
        .groups = k->extent[1], .keys = k->extent[2], .out_width = v->extent[3],
        .factor = (float)weft_attr_real(g, n, WEFT_ATTR_factor),
        .softcap = (float)weft_attr_real(g, n, WEFT_ATTR_softcap), .causal = weft_attr_int(g, n, WEFT_ATTR_causal) != 0,
        .offset = weft_dim_evaluate(g->dims, weft_attr_dim(g, n, WEFT_ATTR_offset), bind->symbols),
        .empty = empty_of(weft_attr_word(g, n, WEFT_ATTR_empty)),
        .masked = g->node[n.id].operands == 4, .has_sums = bind->step->outs == 2};
    memcpy(a->q, q->stride, sizeof a->q);
    memcpy(a->k, k->stride, sizeof a->k);
    memcpy(a->v, v->stride, sizeof a->v);
    memcpy(a->y, y->stride, sizeof a->y);
    if (a->masked)
        memcpy(a->mask, bind->in[3].stride, sizeof a->mask);
    if (a->has_sums) {
        const struct weft_tensor sums = weft_bind_tensor(bind, bind->step->out[1]);
        memcpy(a->sums, sums.stride, sizeof a->sums);
    }
    weft_attention_prepare(a, bind->workers);
    bind->parts = a->parts;
    bind->scratch = a->scratch;
    bind->shared = a->shared;
}

static void run_attention(const void *descriptor, struct weft_call *call)
{
    const struct weft_attention *a = descriptor;
    const struct weft_attention_data data = {.y = call->out,
                                             .sums = a->has_sums ? call->tensor(call, call->step->out[1]).data : NULL,
                                             .q = call->in[0], .k = call->in[1], .v = call->in[2],
                                             .mask = a->masked ? call->in[3] : NULL, .scratch = call->scratch,
                                             .shared = call->shared};
    weft_attention_run(a, &data, call->part, call->parts);
}

static void account_attention(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct weft_attention *a = descriptor;
    *ret = (struct weft_account){.count = weft_attention_products(a), .price = WEFT_PRICE_product,
                                 .signature = {.arithmetic = WEFT_ARITHMETIC_CHAIN}};
    if (a->form == WEFT_ATTENTION_DECODE) /* lanes of scores, slices of sums */
        ret->signature.lanes = WEFT_ATTENTION_LANES, ret->signature.slices = (uint16_t)a->chunks;
}

static uint32_t cpu_attention(const void *descriptor) { return weft_attention_cpu(descriptor); }
static const char *name_attention(const void *descriptor, const struct weft_step *step)
{
    return weft_attention_name(descriptor);
}

const struct weft_step_kind weft_step_attention = {
    .name = "attention", .traits = WEFT_STEP_STRIDED, .descriptor_bytes = sizeof(struct weft_attention),
    .bind = bind_attention, .run = run_attention, .kernel = name_attention, .cpu = cpu_attention,
    .account = account_attention};
