/* SPDX-License-Identifier: Apache-2.0 */
/* ternary.c: elementwise ops of three operands. */
#include "eval/rule.h"

#include <math.h>
#include <string.h>

void weft_eval_select(struct weft_eval *eval)
{
    const struct weft_tensor *const tensor[] = {&eval->out[0], &eval->in[0], &eval->in[1], &eval->in[2]};
    struct weft_walk walk;
    for (weft_walk_open(&walk, 4, tensor); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[3][WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            for (int t = 0; t < 3; t++)
                weft_eval_load(tensor[t + 1], walk.place[t + 1] + i * walk.step[t + 1], walk.step[t + 1], n, x[t]);
            for (int64_t j = 0; j < n; j++)
                x[0][j] = x[0][j].integer ? x[1][j] : x[2][j];
            weft_eval_store(tensor[0], walk.place[0] + i * walk.step[0], walk.step[0], n, x[0]);
        }
}

/* a·b + c such that storing it in at most 32 bits rounds the exact number. The product of two 24-bit mantissas is exact
 * in double; the sum may not be, so it is rounded to odd: where something was lost, the last bit says so, and the
 * second rounding cannot meet a tie that the first one made. */
static double odd_sum(double product, double c)
{
    double sum = product + c;
    const double of_c = sum - product, lost = (product - (sum - of_c)) + (c - of_c);
    if (!isfinite(sum) || lost == 0)
        return sum;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (bits & 1)
        return sum;
    return nextafter(sum, lost > 0 ? INFINITY : -INFINITY);
}

void weft_eval_fma(struct weft_eval *eval)
{
    const struct weft_tensor *const tensor[] = {&eval->out[0], &eval->in[0], &eval->in[1], &eval->in[2]};
    const int dtype = tensor[0]->dtype;
    struct weft_walk walk;
    for (weft_walk_open(&walk, 4, tensor); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[3][WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            for (int t = 0; t < 3; t++)
                weft_eval_load(tensor[t + 1], walk.place[t + 1] + i * walk.step[t + 1], walk.step[t + 1], n, x[t]);
            for (int64_t j = 0; j < n; j++)
                if (!weft_dtype_is_float(dtype))
                    x[0][j].bits = x[0][j].bits * x[1][j].bits + x[2][j].bits;
                else if (dtype == WEFT_F64)
                    x[0][j].real = fma(x[0][j].real, x[1][j].real, x[2][j].real);
                else
                    x[0][j].real = odd_sum(x[0][j].real * x[1][j].real, x[2][j].real);
            weft_eval_store(tensor[0], walk.place[0] + i * walk.step[0], walk.step[0], n, x[0]);
        }
}
