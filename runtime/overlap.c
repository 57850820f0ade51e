/* SPDX-License-Identifier: Apache-2.0 */
/* overlap.c: what is written may not lie in what is read or written under another name: kernels rely on it, and the
 * order of steps says nothing about the caller's memory.
 *
 * A training step moves hundreds of inputs and outputs in each run. So how many bytes each takes is found out once for
 * their sizes, and whether there is an overlap at all by a loop of two comparisons a pair. Which pair it is, for the
 * message, is looked for where there is one. */
#include "runtime/runtime.h"

static bool is_written(const struct weft_execution *e, uint32_t i)
{
    const struct weft_graph *g = e->plan->graph;
    return i >= g->params || g->value[g->param[i].id].is_mut;
}

static const struct weft_tensor *tensor_of(const struct weft_execution *e, uint32_t i)
{
    const uint32_t inputs = e->plan->graph->params;
    return i < inputs ? &e->input[i] : e->output_bound[i - inputs] ? &e->output[i - inputs] : NULL;
}

static bool overlap(const struct weft_span *a, const struct weft_span *b)
{
    return a->first < b->end && b->first < a->end;
}

void weft_overlap_measure(struct weft_execution *e)
{
    const struct weft_graph *g = e->plan->graph;
    for (uint32_t i = 0; i < g->params + g->returns; i++) {
        const struct weft_tensor *const t = tensor_of(e, i);
        e->span[i].bytes = t ? weft_dtype_bytes(t->dtype, weft_tensor_span(t)) : 0;
    }
}

/* Inputs that are only read may be the same memory; of each other pair, the later one is written, or the former. */
static int say(struct weft_execution *e, uint32_t i, uint32_t k)
{
    const struct weft_graph *g = e->plan->graph;
    const bool is_output = i >= g->params, of_output = k >= g->params;
    char number[2][16];
    return weft_execution_fail(
        e, WEFT_ERR_BINDING, "%s %u '%s' overlaps %s %u '%s'", is_output ? "output" : "mutable input",
        is_output ? i - g->params : i,
        weft_execution_name(e, is_output ? g->ret[i - g->params].value : g->param[i], number[0]),
        of_output ? "output" : "input", of_output ? k - g->params : k,
        weft_execution_name(e, of_output ? g->ret[k - g->params].value : g->param[k], number[1]));
}

int weft_overlap_check(struct weft_execution *e)
{
    const struct weft_graph *g = e->plan->graph;
    const uint32_t count = g->params + g->returns;
    for (uint32_t i = 0; i < count; i++) {
        struct weft_span *const span = &e->span[i];
        span->first = span->bytes > 0 ? (uintptr_t)tensor_of(e, i)->data : UINTPTR_MAX;
        span->end = span->bytes > 0 ? span->first + (uintptr_t)span->bytes : 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_written(e, i))
            continue;
        const uint32_t others = i < g->params ? g->params : i; /* outputs look at all before them */
        uint32_t hits = 0;
        for (uint32_t k = 0; k < others; k++)
            hits += overlap(&e->span[i], &e->span[k]);
        if (hits > (i < g->params && e->span[i].bytes > 0)) /* itself */
            for (uint32_t k = 0; k < others; k++)
                if (k != i && overlap(&e->span[i], &e->span[k]))
                    return say(e, i, k);
    }
    return WEFT_OK;
}
