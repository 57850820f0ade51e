/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c: what a plan takes for granted of the addresses of inputs, and what is done with a buffer that is not so.
 *
 *   assume_aligned   planned as aligned                  a buffer that is not
 *   never            no input                            is read where it lies; a function that wants it aligned gets a
 *                                                        copy that the plan makes in each run, whatever the address
 *   pays             inputs that functions want aligned  is copied in each run, a mutable one also back
 *   always           every input, to a cache line        is refused when it is bound
 *
 * Weft's own kernels read any address at next to no cost, so a copy pays for the caller's functions alone
 * (weft_demand.align), and of their operands for those that are an input or a view of one from its first element on:
 * of others the plan copies a part, or has to bring them into another order anyway. What functions want is asked before
 * passes. From then on passes and the plan rely on the address, also where they read the input through other views, so
 * it stays aligned whoever reads it in the end.
 *
 * The copy is the execution's: the run begins and ends with it, and the plan sees nothing but an aligned buffer. */
#include "ir/public.h"
#include "ir/suggest.h"
#include "runtime/runtime.h"
#include "sched/caller.h"

#include <string.h>

enum { LINE = 64 };

/* --- while compiling ---------------------------------------------------------------------------------------------- */

/* The most that functions ask of the address of a value or of views that begin with it. Views of views are as deep as
 * the list is long. */
static uint32_t wanted_of(const struct weft_plan *plan, weft_val v)
{
    struct weft_graph *g = plan->graph;
    struct weft_arena *arena = &g->root->scratch;
    uint32_t count = 1, capacity = 0, most = 0;
    weft_val *list = weft_grow(arena, NULL, &capacity, 1, sizeof *list);
    list[0] = v;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t slot = g->value[list[i].id].first_use; slot; slot = g->slot[slot - 1].next) {
            const weft_node n = g->slot[slot - 1].node;
            struct weft_caller_walk walk;
            if (weft_caller_walk_of(&plan->target, g, n, slot - 1 - g->node[n.id].first_operand, &walk))
                most = walk.align > most ? walk.align : most;
            else if (weft_opcode_of(g, n) == WEFT_OP_reshape && weft_is_view(g, n)) {
                list = weft_grow(arena, list, &capacity, count + 1, sizeof *list);
                list[count++] = weft_result(g, n, 0);
            }
        }
    return most;
}

/* The caller's word on one input, by its name in the graph, else on all; -1: it is none. */
static int mode_of(const struct weft_compile_options *options, const char *name)
{
    int mode = options->assume_aligned;
    for (size_t i = 0; i < options->input_alignments; i++)
        if (name && strcmp(options->input_alignment[i].input, name) == 0)
            mode = options->input_alignment[i].assume_aligned;
    return mode;
}

static bool is_mode(int mode) { return mode >= WEFT_ALIGN_NEVER && mode <= WEFT_ALIGN_ALWAYS; }

static bool check(const struct weft_plan *plan, const struct weft_compile_options *options)
{
    struct weft_context *context = plan->context;
    if (options->reserved2)
        return weft_wrong(context, "weft_compile", "weft_compile_options.reserved2 is %d: it has to be 0",
                          (int)options->reserved2) == WEFT_OK;
    if (options->input_alignments && !options->input_alignment)
        return weft_wrong(context, "weft_compile", "%zu input alignments are counted, but there are none",
                          options->input_alignments) == WEFT_OK;
    if (!is_mode(options->assume_aligned))
        return weft_wrong(context, "weft_compile",
                          "assume_aligned is %d: it can be never (%d), pays (%d) or always (%d)",
                          options->assume_aligned, WEFT_ALIGN_NEVER, WEFT_ALIGN_PAYS, WEFT_ALIGN_ALWAYS) == WEFT_OK;
    for (size_t i = 0; i < options->input_alignments; i++) {
        const struct weft_input_alignment *input = &options->input_alignment[i];
        struct weft_suggest suggest;
        bool found = false;
        weft_suggest_open(&suggest, input->input ? input->input : "", input->input ? strlen(input->input) : 0);
        for (uint32_t k = 0; input->input && k < plan->graph->params && !found; k++) {
            const char *name = plan->input_name[k];
            found = name && strcmp(name, input->input) == 0;
            if (name)
                weft_suggest_offer(&suggest, name);
        }
        if (!found || input->reserved || !is_mode(input->assume_aligned)) {
            weft_wrong(context, input->input,
                       !found ? "there is no such input to be aligned%s"
                       : input->reserved ? "weft_input_alignment.reserved has to be 0%s"
                                         : "assume_aligned is none of never, pays and always%s",
                       found ? "" : weft_suggest_text(&suggest, ""));
            return false;
        }
    }
    return true;
}

bool weft_plan_assume_aligned(struct weft_plan *plan, const struct weft_compile_options *options)
{
    struct weft_graph *g = plan->graph;
    if (!check(plan, options))
        return false;
    plan->assumed = weft_new(g->arena, struct weft_assumed, g->params);
    for (uint32_t i = 0; i < g->params; i++) {
        const int mode = mode_of(options, plan->input_name[i]);
        struct weft_layout layout = weft_own_layout(g, g->param[i]);
        struct weft_assumed *assumed = &plan->assumed[i];
        const uint32_t align = mode == WEFT_ALIGN_ALWAYS ? LINE
                               : mode == WEFT_ALIGN_PAYS ? wanted_of(plan, g->param[i])
                                                         : 0;
        assumed->promised = mode == WEFT_ALIGN_ALWAYS && layout.align < LINE ? LINE : layout.align;
        if (align <= layout.align)
            continue;
        assumed->staged = mode == WEFT_ALIGN_PAYS;
        assumed->align = layout.align = align;
        weft_set_value_layout(g, g->param[i], &layout);
    }
    return true;
}

void weft_plan_settle_aligned(struct weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->graph->params; i++) {
        struct weft_assumed *assumed = &plan->assumed[i];
        if (assumed->staged && plan->graph->value[plan->graph->param[i].id].uses == 0)
            assumed->staged = false;
        if (assumed->staged)
            weft_add_remark(plan->graph, "stage", plan->graph->param[i], "assumed",
                            "aligned to %u bytes: a buffer that is not so is copied in each run", assumed->align);
    }
}

/* --- while running ------------------------------------------------------------------------------------------------ */

/* Is the buffer that is bound to this input copied in each run? */
static bool is_staged(const struct weft_execution *e, uint32_t i)
{
    const struct weft_assumed *assumed = e->plan->assumed ? &e->plan->assumed[i] : NULL;
    return assumed && assumed->staged && e->input[i].data && weft_tensor_count(&e->input[i]) > 0 &&
           (uintptr_t)e->input[i].data % assumed->align != 0;
}

static size_t span_bytes(const struct weft_tensor *t)
{
    return (size_t)weft_dtype_bytes(t->dtype, weft_tensor_span(t));
}

/* Where the copy lies: the buffer of the execution has room for any address. */
static char *place_of(const struct weft_execution *e, uint32_t i)
{
    char *const memory = e->stage[i].data;
    return memory + -(uintptr_t)memory % e->plan->assumed[i].align;
}

int weft_stage_place(struct weft_execution *e, uint32_t i)
{
    void **const base = &e->base[e->plan->param_storage[i]];
    *base = e->input[i].data;
    if (!is_staged(e, i))
        return WEFT_OK;
    const size_t bytes = span_bytes(&e->input[i]);
    if (!weft_execution_reserve(e, &e->stage[i], bytes + e->plan->assumed[i].align))
        return weft_execution_fail(e, WEFT_ERR_NOMEM, "out of memory for an aligned copy of input %u (%zu bytes)", i,
                                   bytes);
    *base = place_of(e, i);
    return WEFT_OK;
}

/* Rows with gaps between them: what lies in the gaps is nobody's but the caller's. */
static void copy(struct weft_tensor to, void *data, const struct weft_tensor *from)
{
    to.data = data;
    if (weft_dtype_bits(to.dtype) < 8)
        memcpy(data, from->data, span_bytes(from));
    else
        weft_tensor_copy(&to, 0, from, 0);
}

void weft_stage_in(const struct weft_execution *e)
{
    for (uint32_t i = 0; e->plan->assumed && i < e->plan->graph->params; i++)
        if (is_staged(e, i))
            copy(e->input[i], place_of(e, i), &e->input[i]);
}

void weft_stage_back(struct weft_execution *e)
{
    const struct weft_graph *g = e->plan->graph;
    for (uint32_t i = 0; e->plan->assumed && i < g->params; i++) {
        if (!is_staged(e, i))
            continue;
        const char *const from = place_of(e, i);
        const size_t bytes = span_bytes(&e->input[i]);
        if (g->value[g->param[i].id].is_mut) {
            struct weft_tensor copied = e->input[i];
            copied.data = (void *)from;
            copy(e->input[i], e->input[i].data, &copied);
        }
        for (uint32_t k = 0; k < g->returns; k++) { /* a result that is the input, or a view: the caller's memory */
            const uintptr_t at = (uintptr_t)e->result[k].data - (uintptr_t)from;
            if (at < bytes)
                e->result[k].data = (char *)e->input[i].data + at;
        }
    }
}

int32_t weft_stage_count(const struct weft_execution *e, int64_t *ret_bytes)
{
    const struct weft_graph *g = e->plan->graph;
    int32_t count = 0;
    *ret_bytes = 0;
    for (uint32_t i = 0; e->plan->assumed && i < g->params; i++)
        if (is_staged(e, i)) {
            count++;
            *ret_bytes += (1 + g->value[g->param[i].id].is_mut) *
                          weft_dtype_bytes(e->input[i].dtype, weft_tensor_count(&e->input[i]));
        }
    return count;
}
