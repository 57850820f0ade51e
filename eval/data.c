/* SPDX-License-Identifier: Apache-2.0 */
/* data.c: ops whose results have as many elements as the data says. When they run, their results have the extents
 * that eval/extents.c found. */
#include "eval/rule.h"

static bool is_zero(const struct weft_tensor *x, const union weft_number *number)
{
    return weft_dtype_is_float(x->dtype) ? number->real == 0 : number->bits == 0;
}

void weft_extents_nonzero(struct weft_eval *eval, int64_t *counts)
{
    const int64_t n = weft_tensor_count(&eval->in[0]);
    union weft_number *x = weft_eval_numbers(eval, &eval->in[0]);
    for (int64_t i = 0; x && i < n; i++)
        counts[0] += !is_zero(&eval->in[0], &x[i]);
    weft_eval_drop_numbers(eval, x, n);
}

void weft_eval_nonzero(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const int64_t n = weft_tensor_count(in);
    union weft_number *x = weft_eval_numbers(eval, in);
    int64_t found = 0;
    for (int64_t i = 0; x && i < n; i++) {
        if (is_zero(in, &x[i]))
            continue;
        int64_t rest = i;
        for (int axis = in->rank - 1; axis >= 0; axis--) {
            weft_store_integer(out->dtype, out->data, axis * out->stride[0] + found * out->stride[1],
                               rest % in->extent[axis]);
            rest /= in->extent[axis];
        }
        found++;
    }
    weft_eval_drop_numbers(eval, x, n);
}

/* --- compress ---------------------------------------------------------------------------------------------- */

/* Calls for what is chosen, in order: elements of the flattened operand, or slices along the axis. With `out` they are
 * copied, one behind the other. */
static int64_t choose(const struct weft_eval *eval, const struct weft_tensor *out)
{
    const struct weft_attr *axis = weft_attr_find(eval->graph, eval->node, WEFT_ATTR_axis);
    const struct weft_tensor *in = &eval->in[0], *condition = &eval->in[1];
    const int along = axis ? (int)weft_dim_value(axis->integer) : 0;
    const int64_t there = axis ? in->extent[along] : weft_tensor_count(in);
    const int64_t n = there < condition->extent[0] ? there : condition->extent[0];
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!weft_load_integer(WEFT_BOOL, condition->data, i * condition->stride[0]))
            continue;
        if (out && axis) {
            struct weft_tensor from = *in, to = *out;
            from.extent[along] = to.extent[along] = 1;
            weft_tensor_copy(&to, found * out->stride[along], &from, i * in->stride[along]);
        } else if (out) {
            int64_t place = 0, rest = i;
            for (int a = in->rank - 1; a >= 0; a--) {
                place += rest % in->extent[a] * in->stride[a];
                rest /= in->extent[a];
            }
            const struct weft_tensor from = {.data = in->data, .dtype = in->dtype};
            const struct weft_tensor to = {.data = out->data, .dtype = out->dtype};
            weft_tensor_copy(&to, found * out->stride[0], &from, place);
        }
        found++;
    }
    return found;
}

void weft_extents_compress(struct weft_eval *eval, int64_t *counts) { counts[0] = choose(eval, NULL); }

void weft_eval_compress(struct weft_eval *eval) { choose(eval, &eval->out[0]); }
