/* SPDX-License-Identifier: Apache-2.0 */
/* cast.c: elements in another type: the nearest value, or the same bits. */
#include "eval/rule.h"

#include <math.h>

/* The double for an integer that is to be rounded again to a shorter format: cut towards zero, with the last bit set
 * where something was cut. So the second rounding cannot meet a tie that the first one made (Boldo and Melquiond, "When
 * double rounding is odd", 2005). */
static double odd_real(union weft_number x, bool has_sign)
{
    const bool negative = has_sign && x.integer < 0;
    uint64_t magnitude = negative ? 0 - x.bits : x.bits;
    int shift = 0;
    bool cut = false;
    for (; magnitude >> 53; shift++) {
        cut |= magnitude & 1;
        magnitude >>= 1;
    }
    const double real = ldexp((double)(magnitude | cut), shift);
    return negative ? -real : real;
}

static double nearest_real(union weft_number x, bool has_sign) { return has_sign ? (double)x.integer : (double)x.bits; }

/* float → integer truncates, and wraps where the type is too narrow; anything but 0 is true. */
static void cast_run(const struct weft_tensor *out, int64_t place, int64_t step, int from, bool saturate, int64_t n,
                     union weft_number *x)
{
    const bool to_real = weft_dtype_is_float(out->dtype), has_sign = weft_dtype_is_signed(from);
    if (weft_dtype_is_float(from) && !to_real) {
        for (int64_t i = 0; i < n; i++)
            weft_store_real(out->dtype, out->data, place + i * step, x[i].real);
        return;
    }
    if (!weft_dtype_is_float(from) && to_real)
        for (int64_t i = 0; i < n; i++)
            x[i].real = out->dtype == WEFT_F64 ? nearest_real(x[i], has_sign) : odd_real(x[i], has_sign);
    const double largest = out->dtype == WEFT_F8E4M3 ? 448 : 57344;
    if (saturate && (out->dtype == WEFT_F8E4M3 || out->dtype == WEFT_F8E5M2))
        for (int64_t i = 0; i < n; i++)
            x[i].real = x[i].real > largest ? largest : x[i].real < -largest ? -largest : x[i].real;
    weft_eval_store(out, place, step, n, x);
}

void weft_eval_cast(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const bool saturate = weft_eval_int(eval, WEFT_ATTR_saturate) != 0;
    if (in->dtype == out->dtype) {
        weft_tensor_copy(out, 0, in, 0);
        return;
    }
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, in}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[WEFT_EVAL_STRIP];
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            weft_eval_load(in, walk.place[1] + i * walk.step[1], walk.step[1], n, x);
            cast_run(out, walk.place[0] + i * walk.step[0], walk.step[0], in->dtype, saturate, n, x);
        }
}

/* Types of equal width: elements move as they are. */
void weft_eval_bitcast(struct weft_eval *eval)
{
    struct weft_tensor in = eval->in[0];
    in.dtype = eval->out[0].dtype;
    weft_tensor_copy(&eval->out[0], 0, &in, 0);
}
