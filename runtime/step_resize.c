/* SPDX-License-Identifier: Apache-2.0 */
/* step_resize.c: steps that read through a table per axis: elements that are repeated by a padding or a resize, and
 * weighted sums. Tables cost little beside what is moved with them, so each part makes its own, in scratch memory, and
 * a plan keeps none. */
#include "ir/places.h"
#include "runtime/runtime.h"

#include <string.h>

/* --- elements --------------------------------------------------------------------------------------------------- */

static void bind_table(struct weft_bind *bind, void *descriptor)
{
    struct weft_table *t = descriptor;
    *t = (struct weft_table){.bytes = (int32_t)weft_dtype_bits(bind->out.dtype) / 8, .rank = bind->out.rank};
    bool empty = false;
    for (int i = 0; i < t->rank; i++) {
        t->extent[i] = bind->out.extent[i];
        t->out_stride[i] = bind->out.stride[i];
        bind->scratch += (size_t)t->extent[i] * sizeof(int64_t);
        empty |= bind->in[0].extent[i] == 0; /* only where sizes were not known to inference */
    }
    if (empty)
        t->rank = 0;
    else
        weft_table_prepare(t, bind->workers);
    bind->parts = empty ? 1 : t->parts;
}

/* Elements from the first one to the one that result i of an axis repeats. */
static int64_t source_of(const struct weft_call *call, int axis, int64_t i, const struct weft_tensor *in,
                         const struct weft_resize *resize)
{
    const struct weft_graph *g = call->plan->graph;
    const weft_node n = call->step->node;
    int64_t index;
    double weight;
    if (weft_opcode_of(g, n) == WEFT_OP_pad) {
        const weft_dim before = weft_attr_at(g, n, WEFT_ATTR_pad, (unsigned)axis);
        i -= weft_dim_evaluate(g->dims, before, call->symbols);
        return in->stride[axis] * weft_pad_source(weft_attr_word(g, n, WEFT_ATTR_form), i, in->extent[axis]);
    }
    weft_resize_tabulate(resize, i, &index, &weight);
    return in->stride[axis] * index;
}

static void run_table(const void *descriptor, struct weft_call *call)
{
    const struct weft_table *t = descriptor;
    const weft_node n = call->step->node;
    const struct weft_tensor in = weft_call_tensor(call, call->step->in[0]);
    if (t->rank == 0) {
        weft_step_reference.run(NULL, call);
        return;
    }
    const int64_t *table[WEFT_K_RANK];
    int64_t *at = call->scratch;
    for (int axis = 0; axis < t->rank; axis++) {
        struct weft_resize resize = {0};
        if (weft_opcode_of(call->plan->graph, n) == WEFT_OP_resize)
            weft_resize_read(call->plan->graph, n, axis, in.extent[axis], t->extent[axis], &resize);
        table[axis] = at;
        for (int64_t i = 0; i < t->extent[axis]; i++)
            *at++ = source_of(call, axis, i, &in, &resize);
    }
    weft_table_run(t, call->out, call->in[0], table, call->part, call->parts);
}

static const char *name_table(const void *descriptor, const struct weft_step *step) { return "weft_table__ref"; }

const struct weft_step_kind weft_step_table = {"table", sizeof(struct weft_table), bind_table, run_table, name_table};
