/* SPDX-License-Identifier: Apache-2.0 */
/* step_blocks.c: steps that convert values into blocks, out of blocks, or between them, for kernels of the caller's:
 * of weft's own, lower_blocks makes arrays that have strides. */
#include "kernels/relayout/blocks.h"
#include "sched/step.h"

static void take_digits(const struct weft_kernel_array *array, struct weft_digits *ret)
{
    ret->count = array->storage_axes;
    for (int i = 0; i < array->storage_axes; i++)
        ret->digit[i] = (struct weft_digit){.axis = array->storage[i].axis, .div = array->storage[i].div,
                                            .mod = array->storage[i].mod, .stride = array->storage[i].stride};
}

static void bind_blocks(struct weft_bind *bind, void *descriptor)
{
    struct weft_block_copy *const copy = descriptor;
    struct weft_kernel_array out, in;
    weft_bind_array(bind, bind->step->out[0], &out);
    weft_bind_array(bind, bind->step->in[0], &in);
    *copy = (struct weft_block_copy){.bytes = (int32_t)weft_dtype_bits(out.dtype) / 8, .rank = out.rank,
                                     .cpu = weft_bind_cpu(bind), .cache = bind->target->l3};
    for (int i = 0; i < out.rank; i++)
        copy->extent[i] = out.extent[i];
    take_digits(&out, &copy->out);
    take_digits(&in, &copy->in);
    weft_block_copy_prepare(copy, bind->workers);
    bind->parts = copy->copy.parts;
}

static void run_blocks(const void *descriptor, struct weft_call *call)
{
    weft_block_copy_run(descriptor, call->out, call->in[0], call->part, call->parts);
}

static const char *name_blocks(const void *descriptor, const struct weft_step *step)
{
    return weft_block_copy_name(descriptor);
}

static bool always(const void *descriptor) { return true; }

static uint32_t cpu_blocks(const void *descriptor) { return weft_block_copy_cpu(descriptor); }

const struct weft_step_kind weft_step_blocks = {
    .name = "blocks", .traits = WEFT_STEP_COPIES | WEFT_STEP_MOVES, .descriptor_bytes = sizeof(struct weft_block_copy),
    .bind = bind_blocks, .run = run_blocks, .kernel = name_blocks, .cpu = cpu_blocks, .by_lines = always};
