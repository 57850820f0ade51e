/* SPDX-License-Identifier: Apache-2.0 */
/* places.c: elements that follow from their places: numbers that count along an axis, and the two sides of a diagonal.
 *
 * Both go line by line along the axis that lies innermost in memory. A line of an iota counts up by 1, or is one number
 * where it counts along another axis; a line of a triangle is a run of the operand and a run of zeros, on one side or
 * the other. */
#include "kernels/small.h"
#include "kernels/walk.h"

#include <string.h>

const char *weft_places_name(bool triangle)
{
    static const char *const names[] = {
#define PLACES(id) "weft_" #id "__ref",
#include "kernels/places/places.def"
    };
    return names[triangle];
}

static int element_bytes(int dtype)
{
    switch (dtype) {
    case WEFT_K_F64: case WEFT_K_I64: case WEFT_K_U64: return 8;
    case WEFT_K_F32: case WEFT_K_I32: case WEFT_K_U32: return 4;
    case WEFT_K_BF16: case WEFT_K_F16: case WEFT_K_I16: case WEFT_K_U16: return 2;
    default: return 1;
    }
}

/* --- iota --------------------------------------------------------------------------------------------------------- */

bool weft_iota_supports(int dtype) { return dtype >= WEFT_K_F64 && dtype <= WEFT_K_U8; }

void weft_iota_prepare(struct weft_iota *iota, int workers)
{
    struct weft_k_axis axis[WEFT_K_RANK] = {{0}};
    int64_t elements = 1;
    for (int i = 0; i < iota->rank; i++) {
        axis[i] = (struct weft_k_axis){iota->extent[i], {iota->out_stride[i], i == iota->axis}};
        elements *= iota->extent[i];
    }
    weft_k_axes_sort(axis, iota->rank);
    iota->rank = weft_k_axes_merge(axis, iota->rank, 2);
    if (!iota->rank)
        axis[iota->rank++] = (struct weft_k_axis){elements ? 1 : 0, {1, 0}};
    for (int i = 0; i < iota->rank; i++) {
        iota->extent[i] = axis[i].extent;
        iota->out_stride[i] = axis[i].stride[0];
        iota->count[i] = axis[i].stride[1];
    }
    iota->elements = elements;
    iota->parts = weft_parts_for(elements * element_bytes(iota->dtype), workers);
}

static uint16_t narrowed(int dtype, int64_t x)
{
    const struct weft_small format = dtype == WEFT_K_F16 ? weft_small_f16 : weft_small_bf16;
    return (uint16_t)weft_small_narrow(format, weft_odd_f64((double)x));
}

/* n numbers from `first` on, each `count` more than the one before it; integers wrap. */
static void write_line(int dtype, void *out, int64_t step, int64_t n, int64_t first, int64_t count)
{
#define LINE(type, number)                                                                                             \
    do {                                                                                                               \
        type *const to = out;                                                                                          \
        if (step == 1)                                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[i] = (type)(number);                                                                                \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                to[i * step] = (type)(number);                                                                         \
    } while (0)
    switch (dtype) {
    case WEFT_K_F64: LINE(double, first + i * count); break;
    case WEFT_K_F32: LINE(float, first + i * count); break;
    case WEFT_K_BF16: case WEFT_K_F16: LINE(uint16_t, narrowed(dtype, first + i * count)); break;
    case WEFT_K_I64: case WEFT_K_U64: LINE(int64_t, first + i * count); break;
    case WEFT_K_I32: case WEFT_K_U32: LINE(uint32_t, first + i * count); break;
    case WEFT_K_I16: case WEFT_K_U16: LINE(uint16_t, first + i * count); break;
    default: LINE(uint8_t, first + i * count); break;
    }
#undef LINE
}

void weft_iota_run(const struct weft_iota *iota, void *out, int part, int parts)
{
    const int inner = iota->rank - 1, bytes = element_bytes(iota->dtype);
    struct weft_k_walk walk = {.rank = iota->rank, .arrays = 1, .at = {out}};
    int64_t at, end;
    for (int i = 0; i < iota->rank; i++) {
        walk.extent[i] = iota->extent[i];
        walk.step[0][i] = iota->out_stride[i] * bytes;
    }
    weft_share(iota->elements, 64 / bytes, part, parts, &at, &end);
    if (at >= end)
        return;
    weft_k_walk_seek(&walk, at);
    while (at < end) {
        const int64_t rest = walk.extent[inner] - walk.index[inner], n = rest < end - at ? rest : end - at;
        int64_t first = 0;
        for (int i = 0; i < iota->rank; i++)
            first += walk.index[i] * iota->count[i];
        write_line(iota->dtype, walk.at[0], iota->out_stride[inner], n, first, iota->count[inner]);
        at += n;
        walk.index[inner] += n - 1;
        walk.at[0] += (n - 1) * walk.step[0][inner];
        weft_k_walk_next(&walk, inner);
    }
}

/* --- triangle ----------------------------------------------------------------------------------------------------- */

void weft_triangle_prepare(struct weft_triangle *t, int workers)
{
    struct weft_k_axis axis[WEFT_K_RANK] = {{0}};
    const int row = t->rank - 2, column = t->rank - 1;
    int64_t elements = 1;
    for (int i = 0; i < t->rank; i++) {
        axis[i] = (struct weft_k_axis){t->extent[i], {t->out_stride[i], t->in_stride[i]}};
        elements *= t->extent[i];
    }
    const int64_t row_step = axis[row].stride[0] < 0 ? -axis[row].stride[0] : axis[row].stride[0],
                  column_step = axis[column].stride[0] < 0 ? -axis[column].stride[0] : axis[column].stride[0];
    t->along_rows = row_step < column_step && t->extent[row] > 1;
    if (t->along_rows)
        weft_k_axes_move(axis, row, column);
    weft_k_axes_sort(axis, row);
    for (int i = 0; i < t->rank; i++) {
        t->extent[i] = axis[i].extent;
        t->out_stride[i] = axis[i].stride[0];
        t->in_stride[i] = axis[i].stride[1];
    }
    t->lines = elements ? elements / t->extent[column] : 0;
    const int32_t parts = weft_parts_for(2 * elements * t->bytes, workers);
    t->parts = t->lines < 1 ? 1 : t->lines < parts ? (int32_t)t->lines : parts;
}

/* n elements; no operand: zeros. */
static void move(int bytes, char *out, int64_t out_step, const char *in, int64_t in_step, int64_t n)
{
    if (n > 0 && out_step == 1 && (!in || in_step == 1)) {
        if (in)
            memcpy(out, in, (size_t)(n * bytes));
        else
            memset(out, 0, (size_t)(n * bytes));
        return;
    }
#define MOVE(type)                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((type *)(void *)out)[i * out_step] = in ? ((const type *)(const void *)in)[i * in_step] : 0
    switch (bytes) {
    case 1: MOVE(uint8_t); break;
    case 2: MOVE(uint16_t); break;
    case 4: MOVE(uint32_t); break;
    default: MOVE(uint64_t); break;
    }
#undef MOVE
}

void weft_triangle_run(const struct weft_triangle *t, void *out, const void *in, int part, int parts)
{
    const int inner = t->rank - 1, line = t->rank - 2, bytes = t->bytes;
    const int64_t n = t->extent[inner], to = t->out_stride[inner], from = t->in_stride[inner];
    struct weft_k_walk walk = {.rank = inner, .arrays = 2, .at = {out, (char *)in}};
    int64_t at, end;
    for (int i = 0; i < inner; i++) {
        walk.extent[i] = t->extent[i];
        walk.step[0][i] = t->out_stride[i] * bytes;
        walk.step[1][i] = t->in_stride[i] * bytes;
    }
    weft_share(t->lines, 1, part, parts, &at, &end);
    if (at >= end)
        return;
    weft_k_walk_seek(&walk, at);
    for (; at < end; at++) {
        /* Element j of row i is on the upper side where j - i >= diagonal: of a row from a border on, of a column
         * before one. The lower side has the diagonal too. */
        const int64_t border = t->along_rows ? walk.index[line] - t->diagonal + t->upper
                                             : walk.index[line] + t->diagonal + !t->upper;
        const int64_t first = border < 0 ? 0 : border > n ? n : border;
        const bool keeps_first = t->upper == t->along_rows;
        char *const begin = walk.at[0], *const rest = begin + first * to * bytes;
        const char *const source = walk.at[1];
        move(bytes, begin, to, keeps_first ? source : NULL, from, first);
        move(bytes, rest, to, keeps_first ? NULL : source + first * from * bytes, from, n - first);
        if (at + 1 < end)
            weft_k_walk_next(&walk, line);
    }
}
