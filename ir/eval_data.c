/* SPDX-License-Identifier: Apache-2.0 */
/* eval_data.c: ops whose results have as many elements as the data says. When they run, their results have the extents
 * that eval_extents.c found. */
#include "ir/eval.h"

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
