/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: resizing by weights along one or two axes.
 *
 * For each row of the result, the rows of the operand that it is made of are blended into one, which vectors do at the
 * pace of memory; then the columns of that row are blended. Channels last, a column is a vector itself; else it is a
 * number, read at a place that the table knows. The other order would read every column of every row. */
#include "kernels/resize/resize.h"
#include "kernels/walk.h"

static const struct level {
    const char *name;
    uint32_t cpu;
    weft_blend_row_fn row;
} levels[] = {
#define RESIZE(level, cpu) {"weft_blend_f32__" #level, cpu, weft_blend_row__##level},
#include "kernels/resize/resize.def"
};

static const struct level *best_level(uint32_t cpu)
{
    const struct level *best = levels;
    for (size_t i = 1; i < sizeof levels / sizeof levels[0]; i++)
        if (!(levels[i].cpu & ~cpu))
            best = &levels[i];
    return best;
}

const char *weft_blend_name(const struct weft_blend *blend) { return best_level(blend->cpu)->name; }

uint32_t weft_blend_cpu(const struct weft_blend *blend) { return best_level(blend->cpu)->cpu; }

void weft_blend_prepare(struct weft_blend *b, int workers)
{
    int64_t units = b->rows;
    for (int i = 0; i < b->outer; i++)
        units *= b->extent[i];
    b->parts = weft_parts_for(units * (b->columns + b->in_columns) * b->inner * 8, workers);
    b->parts = b->parts > units ? (int32_t)(units > 0 ? units : 1) : b->parts;
    b->scratch = (size_t)(b->in_columns * b->inner) * sizeof(float);
}

/* Row r before its columns are blended; the operand's columns may lie apart. */
static void blend_rows(const struct weft_blend *b, weft_blend_row_fn row, float *to, const float *in,
                       const struct weft_blend_table *rows, int64_t r)
{
    const int64_t *const place = rows->place + r * rows->taps;
    const float *const weight = rows->weight + r * rows->taps;
    if (b->column_in == b->inner || b->in_columns == 1) {
        row(to, in, b->in_columns * b->inner, rows->count[r], place, weight);
        return;
    }
    for (int64_t c = 0; c < b->in_columns; c++)
        row(to + c * b->inner, in + c * b->column_in, b->inner, rows->count[r], place, weight);
}

static void blend_columns(const struct weft_blend *b, weft_blend_row_fn row, float *out, const float *from,
                          const struct weft_blend_table *columns)
{
    for (int64_t c = 0; c < b->columns; c++) {
        const int64_t *const place = columns->place + c * columns->taps;
        const float *const weight = columns->weight + c * columns->taps;
        if (b->inner > 1) {
            row(out + c * b->column_out, from, b->inner, columns->count[c], place, weight);
            continue;
        }
        float sum = weight[0] * from[place[0]];
        for (int32_t k = 1; k < columns->count[c]; k++)
            sum += weight[k] * from[place[k]];
        out[c * b->column_out] = sum;
    }
}

void weft_blend_run(const struct weft_blend *b, float *out, const float *in, const struct weft_blend_table *rows,
                    const struct weft_blend_table *columns, void *scratch, int part, int parts)
{
    const weft_blend_row_fn row = best_level(b->cpu)->row;
    int64_t units = b->inner > 0 ? b->rows : 0, begin, end;
    for (int i = 0; i < b->outer; i++)
        units *= b->extent[i];
    weft_share(units, 1, part, parts, &begin, &end);
    for (; begin < end; begin++) {
        const int64_t r = begin % b->rows;
        int64_t rest = begin / b->rows, to = r * b->row_out, from = 0;
        for (int i = b->outer - 1; i >= 0; i--) {
            to += rest % b->extent[i] * b->out_stride[i];
            from += rest % b->extent[i] * b->in_stride[i];
            rest /= b->extent[i];
        }
        blend_rows(b, row, scratch, in + from, rows, r);
        blend_columns(b, row, out + to, scratch, columns);
    }
}
