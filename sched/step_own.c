/* SPDX-License-Identifier: Apache-2.0 */
/* step_own.c: steps that call a kernel of the caller's target (weft_kernel.run). What the kernel is told of its arrays
 * is worked out when the step is bound; a call adds where they are. A run whose kernel failed goes on to its end
 * without working, and reports the first failure. */
#include "ir/public.h"
#include "sched/step.h"
#include "sched/target.h"

#include <stdio.h>
#include <string.h>

struct own {
    size_t scratch;            /* bytes that the kernel asked for */
    uint32_t arrays;           /* operands, then results */
    struct weft_kernel_array array[]; /* without data */
};

#define MOST_SCRATCH ((size_t)1 << 47)

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static size_t bytes_of(const struct weft_step *step)
{
    return sizeof(struct own) + (step->ins + step->outs) * sizeof(struct weft_kernel_array);
}

static struct weft_kernel_call call_of(const struct weft_graph *g, const struct weft_step *step,
                                       const struct weft_kernel_array *array, const int64_t *symbols)
{
    return (struct weft_kernel_call){.size = sizeof(struct weft_kernel_call), .graph = g,
                                     .node = weft_node_out(g, step->node),
                                     .operand = array, .operands = step->ins, .result = array + step->ins,
                                     .results = step->outs, .parts = 1, .sizes = symbols};
}

static void bind_own(struct weft_bind *bind, void *descriptor)
{
    struct own *const own = descriptor;
    const struct weft_step *const step = bind->step;
    const struct weft_kernel *const kernel = &step->own->kernel;
    *own = (struct own){.arrays = step->ins + step->outs};
    for (uint32_t i = 0; i < own->arrays; i++)
        weft_bind_array(bind, i < step->ins ? step->in[i] : step->out[i - step->ins], &own->array[i]);
    struct weft_kernel_call call = call_of(bind->graph, step, own->array, bind->symbols);
    call.workers = bind->workers;
    const int32_t parts = kernel->parts ? kernel->parts(kernel->user, &call) : 1;
    bind->parts = call.parts = parts > 1 ? parts : 1;
    own->scratch = kernel->scratch ? kernel->scratch(kernel->user, &call) : 0;
    if (own->scratch > MOST_SCRATCH) /* sums of it would wrap; more than any machine has is refused as such */
        own->scratch = MOST_SCRATCH;
    bind->scratch = rounded(own->arrays * sizeof(struct weft_kernel_array)) + own->scratch;
}

static void run_own(const void *descriptor, struct weft_call *call)
{
    const struct own *const own = descriptor;
    const struct weft_step *const step = call->step;
    struct weft_kernel_array *const array = call->scratch;
    char message[256] = "";
    memcpy(array, own->array, own->arrays * sizeof *array);
    for (uint32_t i = 0; i < own->arrays; i++)
        array[i].data = call->tensor(call, i < step->ins ? step->in[i] : step->out[i - step->ins]).data;
    const char *const name = weft_value_of(call->graph, step->out[0])->name;
    struct weft_kernel_call told = call_of(call->graph, step, array, call->symbols);
    told.where = name ? name : "";
    told.part = call->part;
    told.parts = call->parts;
    told.worker = call->worker;
    told.workers = call->workers;
    told.scratch = (char *)call->scratch + rounded(own->arrays * sizeof *array);
    told.message = message;
    told.message_bytes = sizeof message;
    const int status = step->own->kernel.run(step->own->kernel.user, &told);
    message[sizeof message - 1] = '\0';
    if (status == 0)
        return;
    weft_fail(call->failure, WEFT_ERR_CUSTOM, "%s%s: kernel %s reports error %d%s%s", name ? "%" : "an unnamed value",
              told.where, step->own->name, status, message[0] ? ": " : "", message);
    *call->failed = true;
}

int weft_call_extent(const struct weft_kernel_call *call, weft_dim extent, int64_t *ret_extent)
{
    if (!call || !call->graph || !call->sizes || !ret_extent || !weft_dim_exists(call->graph->dims, extent))
        return WEFT_ERR_ARGUMENT;
    *ret_extent = weft_dim_evaluate(call->graph->dims, extent, call->sizes);
    return WEFT_OK;
}

static const char *name_own(const void *descriptor, const struct weft_step *step) { return step->own->name; }

const struct weft_step_kind weft_step_own = {
    .name = "own", .bytes = bytes_of, .bind = bind_own, .run = run_own, .kernel = name_own};
