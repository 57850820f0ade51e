/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c: resizing by weights along one or two axes.
 *
 * For each row of the result, the rows of the operand that it is made of are blended into one, which vectors do at the
 * pace of memory; then the columns of that row are blended. Channels last, a column is a vector itself; else it is a
 * number, read at a place that the table knows, by vectors where each result has two neighbours (bilinear). The other
 * order would read every column of every row. */
#include "kernels/resize/resize.h"
#include "kernels/walk.h"

static const struct weft_blend_level *const levels[] = {
#define RESIZE(level, cpu) &weft_blend_level__##level,
#include "kernels/resize/resize.def"
};

static const struct weft_blend_level *best_level(uint32_t cpu)
{
    const struct weft_blend_level *best = levels[0];
    for (size_t i = 1; i < sizeof levels / sizeof levels[0]; i++)
        if (!(levels[i]->cpu & ~cpu))
            best = levels[i];
    return best;
}

const char *weft_blend_name(const struct weft_blend *blend) { return best_level(blend->cpu)->name; }

uint32_t weft_blend_cpu(const struct weft_blend *blend) { return best_level(blend->cpu)->cpu; }

/* Floats of a blended row, and as many as a vector reads behind its last. */
static int64_t row_floats(const struct weft_blend *b)
{
    return (b->in_columns * b->inner + 2 * WEFT_BLEND_LANES - 1) / WEFT_BLEND_LANES * WEFT_BLEND_LANES;
}

/* How many vectors of results are computed by pairs of neighbours. */
static int64_t count_pairs(const struct weft_blend *b, int64_t taps)
{
    const int32_t lanes = best_level(b->cpu)->lanes;
    return lanes && b->inner == 1 && b->column_out == 1 && taps <= 2 ? b->columns / lanes : 0;
}

void weft_blend_prepare(struct weft_blend *b, int workers)
{
    int64_t units = b->rows;
    for (int i = 0; i < b->outer; i++)
        units *= b->extent[i];
    b->parts = weft_parts_for(units * (b->columns + b->in_columns) * b->inner * 8, workers);
    b->parts = b->parts > units ? (int32_t)(units > 0 ? units : 1) : b->parts;
    b->scratch = (size_t)row_floats(b) * sizeof(float) +
                 (size_t)count_pairs(b, /* taps= */ 1) * sizeof(struct weft_blend_pairs); /* at most */
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

/* Of the results [c, c + lanes). */
static void find_pairs(const struct weft_blend_table *columns, int64_t c, int32_t lanes, struct weft_blend_pairs *pairs)
{
    int64_t least = INT64_MAX, most = 0;
    for (int32_t i = 0; i < lanes; i++)
        for (int32_t k = 0; k < columns->count[c + i]; k++) {
            const int64_t place = columns->place[(c + i) * columns->taps + k];
            least = place < least ? place : least;
            most = place > most ? place : most;
        }
    pairs->base = most - least < lanes ? least : -1;
    for (int32_t i = 0; i < lanes; i++) {
        const int64_t at = (c + i) * columns->taps, last = at + columns->count[c + i] - 1;
        pairs->first[i] = (int32_t)(columns->place[at] - least);
        pairs->second[i] = (int32_t)(columns->place[last] - least);
        pairs->both[i] = columns->count[c + i] > 1 ? -1 : 0;
        pairs->first_weight[i] = columns->weight[at];
        pairs->second_weight[i] = columns->weight[last];
    }
}

/* Columns [c, end). */
static void blend_columns(const struct weft_blend *b, weft_blend_row_fn row, float *out, const float *from,
                          const struct weft_blend_table *columns, int64_t c, int64_t end)
{
    for (; c < end; c++) {
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
    const struct weft_blend_level *const level = best_level(b->cpu);
    const int64_t pairs = count_pairs(b, columns->taps), lanes = level->lanes;
    float *const blended = scratch;
    struct weft_blend_pairs *const pair = (struct weft_blend_pairs *)(blended + row_floats(b));
    int64_t units = b->inner > 0 ? b->rows : 0, begin, end;
    for (int i = 0; i < b->outer; i++)
        units *= b->extent[i];
    weft_share(units, 1, part, parts, &begin, &end);
    for (int64_t p = 0; p < pairs && begin < end; p++)
        find_pairs(columns, p * lanes, level->lanes, &pair[p]);
    for (; begin < end; begin++) {
        const int64_t r = begin % b->rows;
        int64_t rest = begin / b->rows, to = r * b->row_out, from = 0;
        for (int i = b->outer - 1; i >= 0; i--) {
            to += rest % b->extent[i] * b->out_stride[i];
            from += rest % b->extent[i] * b->in_stride[i];
            rest /= b->extent[i];
        }
        blend_rows(b, level->row, blended, in + from, rows, r);
        for (int64_t p = 0; p < pairs; p++) {
            if (pair[p].base >= 0)
                level->pairs(out + to + p * lanes, blended, &pair[p]);
            else
                blend_columns(b, level->row, out + to, blended, columns, p * lanes, (p + 1) * lanes);
        }
        blend_columns(b, level->row, out + to, blended, columns, pairs * lanes, b->columns);
    }
}
