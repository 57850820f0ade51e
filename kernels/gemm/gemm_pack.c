/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_pack.c: copies of operands in the order in which tiles read them, and the constant B that is packed ahead.
 *
 * A pack serves any number of rows of A: panels where tiles run along the columns of B, lines where B is read as A is
 * (the transposed product), or where it has so few columns that dot products want it. */
#include "kernels/gemm/gemm.h"

#include <string.h>

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void weft_gemm_gather(const struct weft_gemm_kernel *kernel, float *to, int64_t to_row, const weft_loose_f32 *from,
                      int64_t from_row, int64_t from_column, int64_t rows, int64_t columns)
{
    if (from_row == 1 && from_column != 1 && kernel->code->transpose) {
        kernel->code->transpose(to, to_row, from, from_column, rows, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        if (from_column == 1) {
            memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
            continue;
        }
        for (int64_t j = 0; j < columns; j++)
            to[i * to_row + j] = from[i * from_row + j * from_column];
    }
}

bool weft_packing_same(const struct weft_packing *a, const struct weft_packing *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

struct weft_packing weft_gemm_packing(const struct weft_gemm_kernel *kernel, enum weft_pack_order order, int64_t k,
                                      int64_t n)
{
    return (struct weft_packing){.order = order, .dtype = WEFT_K_F32,
                                 .kernel = order == WEFT_PACK_PANELS ? kernel - weft_gemm_kernels : 0,
                                 .groups = 1, .o = n, .c = k, .taps = {1, 1, 1}};
}

static int64_t panel_of(const struct weft_packing *p) { return weft_packing_kernel(p)->columns; }

int64_t weft_gemm_packed_size(const struct weft_packing *p)
{
    return p->order == WEFT_PACK_LINES ? p->o * p->c : weft_pieces(p->o, panel_of(p)) * panel_of(p) * p->c;
}

size_t weft_gemm_pack_bytes(const struct weft_gemm *gemm)
{
    return (size_t)(weft_gemm_packed_size(&gemm->packing) * weft_gemm_element_bytes(gemm));
}

/* --- elements smaller than f32 ------------------------------------------------------------------------------------ */

static void cast(uint32_t cpu, void *to, int to_dtype, const void *from, int from_dtype, int64_t count)
{
    struct weft_strip_args args = {.n = count, .out = to, .in = {from}, .stride = {1, 1}};
    weft_strip_find("cast", from_dtype, to_dtype, cpu)->fn(&args);
}

void weft_gemm_widen(const struct weft_gemm *gemm, float *to, const float *from, int64_t count)
{
    cast(gemm->kernel->cpu, to, WEFT_K_F32, from, gemm->b_small, count);
}

/* Panels by way of floats, some rows at a time. */
static void pack_small_panels(const struct weft_gemm *g, char *pack, const weft_loose_f32 *b, int64_t columns,
                              int64_t first, int64_t end)
{
    enum { ROWS = 64 };
    float buffer[ROWS * WEFT_GEMM_COLUMNS];
    const int64_t whole = g->kernel->columns, row_bytes = whole * weft_gemm_element_bytes(g), k = g->packing.c;
    for (int64_t j = 0; j < columns; j += whole, pack += k * row_bytes)
        for (int64_t p = first; p < end; p += ROWS) {
            const int64_t rows = smaller(ROWS, end - p), width = smaller(whole, columns - j);
            if (width < whole)
                memset(buffer, 0, sizeof buffer);
            weft_gemm_gather(g->kernel, buffer, whole, b + p * g->b_row + j * g->b_col, g->b_row, g->b_col, rows,
                             width);
            cast(g->kernel->cpu, pack + p * row_bytes, g->b_small, buffer, WEFT_K_F32, rows * whole);
        }
}

/* Are these numbers those of the type? The first that is not ends it. */
static bool holds(uint32_t cpu, int dtype, const weft_loose_f32 *numbers, int64_t count)
{
    enum { SOME = 2048 };
    float given[SOME], back[SOME];
    uint16_t small[SOME];
    bool same = true;
    for (int64_t i = 0, n; i < count && same; i += n) {
        n = smaller(SOME, count - i);
        memcpy(given, numbers + i, (size_t)n * sizeof *given);
        cast(cpu, small, dtype, given, WEFT_K_F32, n);
        cast(cpu, back, WEFT_K_F32, small, dtype, n);
        same = memcmp(given, back, (size_t)n * sizeof *given) == 0;
    }
    return same;
}

uint8_t weft_smallest_dtype(uint32_t cpu, const weft_loose_f32 *numbers, int64_t count)
{
    static const uint8_t dtypes[] = {WEFT_K_I8, WEFT_K_U8, WEFT_K_BF16, WEFT_K_F16};
    for (unsigned i = 0; i < sizeof dtypes; i++)
        if (holds(cpu, dtypes[i], numbers, count))
            return dtypes[i];
    return WEFT_K_F32;
}

enum {
    SMALL_FLOATS = 256 << 10,      /* of a smaller B conversions take the time that fewer bytes save; */
    SMALL_FLOATS_OF_FOUR = 2 << 20 /* of four rows multiply-adds do, unless B is in memory */
};

bool weft_gemm_wants_small(const struct weft_gemm *g, int workers)
{
    /* What many workers share lies in their second-level caches. */
    const int64_t one = g->m < WEFT_GEMM_SMALL_ROWS ? SMALL_FLOATS : SMALL_FLOATS_OF_FOUR;
    const int64_t least = one * (workers < 4 ? 4 : workers) / 4;
    /* By rows, and no handful of columns: others may be dot products, or exchanged with A, where rows are more. */
    const bool dense = g->b_col == 1 && g->b_row == g->n && g->n >= WEFT_GEMM_COLUMNS;
    return g->kernel->code->transpose && g->packing.order == WEFT_PACK_PANELS && dense &&
           g->m <= WEFT_GEMM_SMALL_ROWS && !g->swapped && !g->scaled && g->k * g->n >= least;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* Rows from `first` to before `end` of the panels [columns / panel][k][panel] of B, the last one filled with zeros. */
static void pack_panels(const struct weft_packing *packing, const struct weft_gemm_kernel *by, float *pack,
                        const weft_loose_f32 *b, int64_t b_row, int64_t b_col, int64_t columns, int64_t first,
                        int64_t end)
{
    const int64_t whole = panel_of(packing);
    for (int64_t j = 0; j < columns; j += whole, pack += packing->c * whole) {
        const int64_t width = smaller(whole, columns - j);
        weft_gemm_gather(by, pack + first * whole, whole, b + first * b_row + j * b_col, b_row, b_col, end - first,
                         width);
        for (int64_t p = first; width < whole && p < end; p++)
            memset(pack + p * whole + width, 0, (size_t)(whole - width) * sizeof *pack);
    }
}

void weft_gemm_pack_as(const struct weft_packing *packing, const struct weft_gemm_kernel *by, float *pack,
                       const weft_loose_f32 *b, int64_t b_row, int64_t b_col, int part, int parts)
{
    const int64_t n = packing->o, k = packing->c;
    const bool by_columns = b_col >= b_row, lines = packing->order == WEFT_PACK_LINES;
    const int64_t unit = by_columns && !lines ? panel_of(packing) : 1;
    const int64_t extent = by_columns ? n : k, units = weft_pieces(extent, unit);
    const int64_t first = smaller(extent, units * part / parts * unit);
    const int64_t end = smaller(extent, units * (part + 1) / parts * unit);
    if (first == end)
        return;
    if (lines && by_columns)
        weft_gemm_gather(by, pack + first * k, k, b + first * b_col, b_col, b_row, end - first, k);
    else if (lines)
        weft_gemm_gather(by, pack + first, k, b + first * b_row, b_col, b_row, n, end - first);
    else if (by_columns)
        pack_panels(packing, by, pack + first * k, b + first * b_col, b_row, b_col, end - first, 0, k);
    else
        pack_panels(packing, by, pack, b, b_row, b_col, n, first, end);
}

void weft_gemm_pack_part(const struct weft_gemm *g, float *pack, const weft_loose_f32 *b, int part, int parts)
{
    if (g->b_small) { /* b lies by rows: so do parts */
        pack_small_panels(g, (char *)pack, b, g->n, g->k * part / parts, g->k * (part + 1) / parts);
        return;
    }
    weft_gemm_pack_as(&g->packing, g->kernel, pack, b, g->b_row, g->b_col, part, parts);
}

void weft_gemm_pack(const struct weft_gemm *gemm, float *pack, const weft_loose_f32 *b)
{
    weft_gemm_pack_part(gemm, pack, b, 0, 1);
}
