/* SPDX-License-Identifier: Apache-2.0 */
/* weave_level.c: a few vectors become as many others by shuffles that tables describe (weave.h). Compiled once per CPU
 * level; the baseline, which has no shuffle by a table, has none.
 *
 * AVX-512 takes elements from two registers at a time: m - 1 shuffles make a vector from m. AVX2, and elements of one
 * byte, take bytes from within lanes of 16: m shuffles and as many unions, for two groups of 16 bytes side by side. */
#include "kernels/relayout/weave.h"
#include "kernels/strip/vector.h"

typedef char v_lane __attribute__((vector_size(16)));
typedef char v_lane_any __attribute__((vector_size(16), aligned(1), may_alias));
typedef char v_lanes __attribute__((vector_size(32)));

/* --- bytes within lanes ------------------------------------------------------------------------------------------- */

#define FIRST_16 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define LAST_16  16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31

INLINE v_lanes both(const void *low, const void *high)
{
    const v_lane a = *(const v_lane_any *)low, b = *(const v_lane_any *)high;
    return __builtin_shufflevector(a, b, FIRST_16, LAST_16);
}

/* The group at `in` and the one `second` elements further. */
INLINE void two_groups(const struct weft_weave *w, char *out, const char *in, int64_t second, const int m)
{
    v_lanes from[WEFT_WEAVE_MOST];
    UNROLL for (int i = 0; i < m; i++)
    {
        const char *const p = in + i * w->in_vector;
        from[i] = both(p, p + second * w->in_element);
    }
    UNROLL for (int o = 0; o < m; o++)
    {
        v_lanes all = {0};
        UNROLL for (int i = 0; i < m; i++)
        {
            const unsigned char *const table = w->index[o][i];
            all |= __builtin_ia32_pshufb256(from[i], both(table, table));
        }
        char *const p = out + o * w->out_vector;
        *(v_lane_any *)(p + second * w->out_element) = __builtin_shufflevector(all, all, LAST_16);
        *(v_lane_any *)p = __builtin_shufflevector(all, all, FIRST_16);
    }
}

INLINE void lanes_of(const struct weft_weave *w, char *out, const char *in, int64_t n, const int m)
{
    const int64_t group = w->group;
    for (int64_t i = 0; i < n; i += 2 * group) {
        const int64_t left = n - i; /* the last groups go back over what is there already */
        const int64_t at = left >= group ? i : n - group;
        const int64_t second = left >= 2 * group ? group : left > group ? left - group : 0;
        two_groups(w, out + at * w->out_element, in + at * w->in_element, second, m);
    }
}

/* --- places in two registers -------------------------------------------------------------------------------------- */

#if LANES == 16
typedef short v_short __attribute__((vector_size(64)));
typedef vf v_odd __attribute__((aligned(1), may_alias));

#ifdef __clang__
INLINE vf pick_16(vf a, vi index, vf b)
{
    return (vf)__builtin_ia32_vpermi2varhi512((v_short)a, (v_short)index, (v_short)b);
}
#else
INLINE vf pick_16(vf a, vi index, vf b)
{
    return (vf)__builtin_ia32_vpermt2varhi512_mask((v_short)index, (v_short)a, (v_short)b, 0xffffffff);
}
#endif

INLINE void one_group(const struct weft_weave *w, char *out, const char *in, const int m, const bool words)
{
    vf from[WEFT_WEAVE_MOST];
    UNROLL for (int i = 0; i < m; i++) from[i] = *(const v_odd *)(in + i * w->in_vector);
    UNROLL for (int o = 0; o < m; o++)
    {
        vf all = from[0];
        UNROLL for (int i = 1; i < m || i == 1; i++)
        {
            const vi index = *(const vi *)(const void *)w->index[o][i];
            all = words ? pick_16(all, index, from[i % m]) : vpick(all, index, from[i % m]);
        }
        *(v_odd *)(out + o * w->out_vector) = all;
    }
}

INLINE void registers_of(const struct weft_weave *w, char *out, const char *in, int64_t n, const int m,
                         const bool words)
{
    const int64_t group = w->group;
    for (int64_t i = 0; i < n; i += group) {
        const int64_t at = n - i >= group ? i : n - group;
        one_group(w, out + at * w->out_element, in + at * w->in_element, m, words);
    }
}
#endif

/* ------------------------------------------------------------------------------------------------------------------ */

INLINE void weave_of(const struct weft_weave *w, char *out, const char *in, int64_t n, const int m)
{
#if LANES == 16
    if (w->vector == 64) {
        if (w->bytes == 2)
            registers_of(w, out, in, n, m, true);
        else
            registers_of(w, out, in, n, m, false);
        return;
    }
#endif
    lanes_of(w, out, in, n, m);
}

void LEVEL(weft_weave)(const struct weft_weave *w, char *out, const char *in, int64_t n)
{
    switch (w->vectors) {
    case 1:
        weave_of(w, out, in, n, 1);
        break;
    case 2:
        weave_of(w, out, in, n, 2);
        break;
    case 3:
        weave_of(w, out, in, n, 3);
        break;
    case 4:
        weave_of(w, out, in, n, 4);
        break;
    case 5:
        weave_of(w, out, in, n, 5);
        break;
    case 6:
        weave_of(w, out, in, n, 6);
        break;
    case 7:
        weave_of(w, out, in, n, 7);
        break;
    default:
        weave_of(w, out, in, n, 8);
    }
}
