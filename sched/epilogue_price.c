/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue_price.c: what the program of an epilogue takes. The contract: epilogue.h. */
#include "sched/epilogue.h"
#include "sched/format.h"

enum { CALLS_SHARE = 4 }; /* of the overhead of interpreting, what compiled code has of it: one in so many */

/* On one worker: prices are of all threads at work. `near`: in the nearest caches, whatever the size; where the caches
 * are priced upside down, no dearer than beyond them. */
static double moved_ns(const struct weft_bind *bind, const struct weft_tensor *tensor, enum weft_price first, bool near)
{
    const struct weft_target *const target = bind->target;
    const double bytes = weft_tensor_elements(tensor) * weft_dtype_bits(tensor->dtype) / 8;
    const int64_t there = weft_price_of(target, weft_format_level(target, first, (int64_t)bytes));
    const int64_t here = weft_price_of(target, first);
    return bytes * (double)(near && here < there ? here : there) * 1e-6 * weft_prices_of(target)->threads;
}

/* What is read of the contraction's results is near. A result in their place is written a second time. */
double weft_epilogue_ns(const struct weft_bind *bind, const struct weft_program *program, int32_t bands)
{
    const struct weft_epilogue *const e = bind->step->epilogue;
    if (!program)
        return 0;
    double ns = weft_program_arithmetic_ns(program);
    const bool is_aside = e->is_aside && !weft_epilogue_has_bands(bind->graph, bind->step->node);
    for (uint32_t i = is_aside ? 0 : 1; i < bind->step->outs; i++) {
        const struct weft_tensor out = weft_bind_tensor(bind, bind->step->out[i]);
        if (!weft_is(bind->step->out[i], e->folded))
            ns += moved_ns(bind, &out, WEFT_PRICE_write_private, false);
    }
    if (!e->rows)
        return ns;
    const struct weft_tensor raw = weft_epilogue_result(bind);
    ns += moved_ns(bind, &raw, WEFT_PRICE_read_private, true);
    if (!e->is_aside && !weft_is(bind->step->out[0], e->form->array[e->c].value))
        ns += moved_ns(bind, &raw, WEFT_PRICE_write_private, true);
    ns += weft_program_overhead_ns(program) / (program->shape ? CALLS_SHARE : 1);
    return bands > 0 && bands < bind->workers ? ns * bind->workers / bands : ns;
}
