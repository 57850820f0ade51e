/* SPDX-License-Identifier: Apache-2.0 */
/* spread_level.c: lines whose operand stands still, goes backwards or goes by twos: broadcasts, reversals and steps
 * along the axis in which the result is contiguous. Compiled once per CPU level.
 *
 * All sizes of element go backwards as 32-bit elements do; then halves, or bytes, of each change places, or pairs for
 * elements of 64 bits. The last vector of a line goes back over what is there already. Lines below a vector, other
 * strides, and steps of other elements than 32 bits are moved element by element. */
#include "kernels/relayout/relayout.h"
#include "kernels/strip/vector.h"

#define VECTOR (4 * LANES)

typedef uint64_t v_64 __attribute__((vector_size(VECTOR)));
typedef uint32_t v_32 __attribute__((vector_size(VECTOR)));
typedef v_32 v_odd __attribute__((aligned(1), may_alias)); /* at any address */

#if LANES == 16
#define BACKWARDS 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#define BY_TWOS   0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#elif LANES == 8
#define BACKWARDS 7, 6, 5, 4, 3, 2, 1, 0
#define BY_TWOS   0, 2, 4, 6, 9, 11, 13, 15
#else
#define BACKWARDS 3, 2, 1, 0
#define BY_TWOS   0, 2, 5, 7
#endif

INLINE v_32 repeat(const char *from, int bytes)
{
    uint64_t x = 0;
    __builtin_memcpy(&x, from, (size_t)bytes);
    for (int i = bytes; i < 8; i *= 2)
        x |= x << 8 * i;
    return (v_32)(x - (v_64){0});
}

INLINE v_32 backwards(v_32 x, int bytes)
{
    x = __builtin_shufflevector(x, x, BACKWARDS);
    if (bytes == 8)
        return (v_32)((v_64)x << 32 | (v_64)x >> 32);
    if (bytes < 4)
        x = x << 16 | x >> 16;
    return bytes == 1 ? (x & 0x00ff00ff) << 8 | (x >> 8 & 0x00ff00ff) : x;
}

/* One line of at least a vector. */
INLINE void line_of(char *to, const char *from, int64_t n, const int stride, const int bytes)
{
    const int lanes = VECTOR / bytes;
    const v_32 all = stride == 0 ? repeat(from, bytes) : (v_32){0};
    for (int64_t i = 0; i < n; i += lanes) {
        const int64_t at = n - i < lanes ? n - lanes : i;
        v_32 x = all;
        if (stride == -1) {
            x = backwards(*(const v_odd *)(from - (at + lanes - 1) * bytes), bytes);
        } else if (stride == 2) { /* nothing behind the last element is read */
            const v_32 low = *(const v_odd *)(from + 2 * at * bytes);
            const v_32 high = *(const v_odd *)(from + (2 * at + lanes - 1) * bytes);
            x = __builtin_shufflevector(low, high, BY_TWOS);
        }
        *(v_odd *)(to + at * bytes) = x;
    }
}

#define LINES(stride, bytes)                                                                                           \
    for (int64_t r = 0; r < rows; r++, out += out_step, in += in_step) line_of(out, in, n, stride, bytes)

void LEVEL(weft_relayout_spread)(char *out, int64_t out_step, const char *in, int64_t in_step, int64_t rows, int64_t n,
                                 int64_t stride, int bytes)
{
    const bool whole = n * bytes >= VECTOR;
    if (whole && stride == 0 && bytes == 1)
        LINES(0, 1);
    else if (whole && stride == 0 && bytes == 2)
        LINES(0, 2);
    else if (whole && stride == 0 && bytes == 4)
        LINES(0, 4);
    else if (whole && stride == 0)
        LINES(0, 8);
    else if (whole && stride == -1 && bytes == 1)
        LINES(-1, 1);
    else if (whole && stride == -1 && bytes == 2)
        LINES(-1, 2);
    else if (whole && stride == -1 && bytes == 4)
        LINES(-1, 4);
    else if (whole && stride == -1)
        LINES(-1, 8);
    else if (whole && stride == 2 && bytes == 4)
        LINES(2, 4);
    else
        for (int64_t r = 0; r < rows; r++)
            weft_copy_strided(bytes, out + r * out_step, 1, in + r * in_step, stride, n);
}
