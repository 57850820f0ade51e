/* SPDX-License-Identifier: Apache-2.0 */
/* grad.c: blocks of keys and rows around the products of the gradient (grad.h has the order of work). */
#include "kernels/attention/grad.h"
#include "kernels/attention/tiles.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 64,         /* rows that meet a chunk of keys together: lanes of a panel */
    CAUSAL_BLOCK = 16,  /* the same on the diagonal */
    CHUNK = 128,        /* keys of one: scores of a block and both operands of its products lie near */
    SPANS = 8,
    LEAST_SPAN = 256,
    PAD = 16,           /* floats behind a row of ds, against rows a power of two apart */
    COUNTERS = 16,      /* of units that are done, in the header of shared memory */
    HEADER = 64,
    EXPONENTIAL = 24    /* multiply-adds in whose time a weight and its ds are made */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t rounded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static const struct weft_attention_grad_code *const codes[] = {
#define ATTENTION(id, level, cpu) &weft_attention_grad_##id##__##level,
#include "kernels/attention/attention.def"
};

/* --- prepare ------------------------------------------------------------------------------------------------------ */

double weft_attention_grad_products(const struct weft_attention_grad *g)
{
    const double scores = (double)g->batch * (double)g->heads * (double)g->rows * (double)g->keys;
    return scores * (double)(3 * g->width + 2 * g->out_width + EXPONENTIAL) * (g->causal ? 0.5 : 1);
}

/* Gives `floats` of scratch a place. */
static int64_t place(int64_t *at, int64_t floats)
{
    const int64_t here = *at;
    *at += rounded(floats, 16);
    return here;
}

static int64_t dq_size(const struct weft_attention_grad *g) { return rounded(g->rows * g->width, 16); }

static void place_scratch(struct weft_attention_grad *g)
{
    const int64_t wide = larger(g->width, g->out_width);
    int64_t floats = 0;
    g->at_rows = place(&floats, (3 * wide + 2) * BLOCK); /* turned q, dy, y; sums, delta */
    g->at_score = place(&floats, CHUNK * BLOCK);
    g->at_change = place(&floats, CHUNK * BLOCK);
    g->at_slope = place(&floats, BLOCK * (CHUNK + PAD));
    g->at_mask = place(&floats, g->masked ? CHUNK * BLOCK : 0);
    g->at_q = place(&floats, g->copy_q ? BLOCK * g->width : 0);
    g->at_dy = place(&floats, g->copy_dy ? BLOCK * g->out_width : 0);
    g->at_k = place(&floats, g->copy_k ? CHUNK * g->width : 0);
    g->at_v = place(&floats, g->copy_v ? CHUNK * g->out_width : 0);
    g->at_dq = place(&floats, g->aside_dq && !g->splits ? dq_size(g) : 0);
    g->at_dk = place(&floats, g->aside_dk ? g->span * g->width : 0);
    g->at_dv = place(&floats, g->aside_dv ? g->span * g->out_width : 0);
    g->scratch = (size_t)floats * sizeof(float);
}

void weft_attention_grad_prepare(struct weft_attention_grad *g, int workers)
{
    g->code = codes[0];
    for (unsigned i = 1; i < sizeof codes / sizeof codes[0]; i++) {
        if (!(codes[i]->cpu & ~g->cpu))
            g->code = codes[i];
    }
    g->kernel = weft_gemm_find(g->code->cpu);
    g->span = larger(LEAST_SPAN, rounded(weft_pieces(g->keys, SPANS), CHUNK));
    g->spans = larger(1, weft_pieces(g->keys, g->span));
    const int64_t groups = g->batch * g->groups, turns = weft_pieces(groups, larger(1, workers));
    g->splits = g->spans > 1 && 10 * groups < 9 * turns * workers;
    g->copy_q = g->q[3] != 1, g->copy_dy = g->dy[3] != 1;
    g->copy_k = g->k[3] != 1, g->copy_v = g->v[3] != 1;
    g->aside_dq = g->spans > 1 || g->dq[3] != 1;
    g->aside_dk = g->dk[3] != 1, g->aside_dv = g->dv[3] != 1;
    place_scratch(g);
    const int64_t partial = g->splits ? groups * g->spans * (g->heads / g->groups) * dq_size(g) : 0;
    g->shared = g->splits ? HEADER + (size_t)partial * sizeof(float) : 0;
    g->parts = weft_gemm_parts(2 * weft_attention_grad_products(g), groups * (g->splits ? g->spans : 1), workers);
}

/* --- one head and one span ---------------------------------------------------------------------------------------- */

struct work {
    const struct weft_attention_grad *g;
    const struct weft_attention_grad_data *data;
    float *scratch;
    int64_t batch, group, head;
    float *dq, *dk, *dv;               /* of the head; of the span */
    int64_t dq_row, dk_row, dv_row;
    int64_t first, keys;               /* of the chunk */
    const float *k, *v;
    int64_t k_row, v_row;
};

/* Some rows of a block, and what is made of them once for a chunk. */
struct block {
    int64_t first, rows, keys;         /* keys: so many of the chunk are seen by any of them */
    const float *q, *dy;
    int64_t q_row, dy_row;
    float *turned_q, *turned_dy, *turned_y, *sums, *delta; /* [width][BLOCK]; by row */
};

/* to[i·to_row + j] = from[i·row + j·column]. */
static void copy_rows(const struct weft_attention_grad *g, float *to, int64_t to_row, const float *from, int64_t row,
                      int64_t column, int64_t rows, int64_t columns)
{
    weft_gemm_gather(g->kernel, to, to_row, (const weft_loose_f32 *)from, row, column, rows, columns);
}

static const float *head_of(const struct work *w, const float *from, const int64_t stride[4], int64_t row)
{
    return from + w->batch * stride[0] + w->head * stride[1] + row * stride[2];
}

/* Rows whose elements lie side by side: in place, or copied. */
static const float *find_rows(const struct work *w, const float *from, const int64_t stride[4], bool copies,
                              int64_t at, int64_t rows, int64_t columns, int64_t *ret_row)
{
    *ret_row = copies ? columns : stride[2];
    if (!copies)
        return from;
    copy_rows(w->g, w->scratch + at, columns, from, stride[2], stride[3], rows, columns);
    return w->scratch + at;
}

static void meet_rows(const struct work *w, struct block *b)
{
    const struct weft_attention_grad *const g = w->g;
    const struct weft_attention_grad_data *const data = w->data;
    const int64_t wide = larger(g->width, g->out_width) * BLOCK;
    const float *const q = head_of(w, data->q, g->q, b->first), *const dy = head_of(w, data->dy, g->dy, b->first);
    const float *const y = head_of(w, data->y, g->y, b->first);
    const float *const sums = data->sums + w->batch * g->sums[0] + w->head * g->sums[1] + b->first * g->sums[2];
    b->turned_q = w->scratch + g->at_rows, b->turned_dy = b->turned_q + wide, b->turned_y = b->turned_dy + wide;
    b->sums = b->turned_y + wide, b->delta = b->sums + BLOCK;
    b->q = find_rows(w, q, g->q, g->copy_q, g->at_q, b->rows, g->width, &b->q_row);
    b->dy = find_rows(w, dy, g->dy, g->copy_dy, g->at_dy, b->rows, g->out_width, &b->dy_row);
    copy_rows(g, b->turned_q, BLOCK, q, g->q[3], g->q[2], g->width, b->rows);
    copy_rows(g, b->turned_dy, BLOCK, dy, g->dy[3], g->dy[2], g->out_width, b->rows);
    copy_rows(g, b->turned_y, BLOCK, y, g->y[3], g->y[2], g->out_width, b->rows);
    g->code->delta(b->delta, b->turned_dy, b->turned_y, BLOCK, b->rows, g->out_width);
    for (int64_t i = 0; i < b->rows; i++) {
        const float sum = sums[i * g->sums[2]];
        const bool blind = sum == -INFINITY;
        b->sums[i] = blind ? INFINITY : sum;
        b->delta[i] = blind ? 0 : b->delta[i];
    }
}

/* Weights and ds of the block's rows and the keys of the chunk that they see. */
static void make_weights(const struct work *w, const struct block *b)
{
    const struct weft_attention_grad *const g = w->g;
    struct weft_attention_grad_step s = {.score = w->scratch + g->at_score, .change = w->scratch + g->at_change,
                                         .row = BLOCK, .keys = b->keys, .rows = b->rows, .sums = b->sums,
                                         .delta = b->delta, .factor = g->factor, .softcap = g->softcap};
    if (g->causal)
        s.hidden = w->first - g->offset - b->first, s.more = 1;
    weft_attention_product(g->kernel, g->width, w->k, w->k_row, b->turned_q, BLOCK, s.score, BLOCK, b->keys, b->rows,
                           false);
    weft_attention_product(g->kernel, g->out_width, w->v, w->v_row, b->turned_dy, BLOCK, s.change, BLOCK, b->keys,
                           b->rows, false);
    if (g->masked) {
        copy_rows(g, w->scratch + g->at_mask, BLOCK,
                  head_of(w, w->data->mask, g->mask, b->first) + w->first * g->mask[3], g->mask[3], g->mask[2],
                  b->keys, b->rows);
        s.mask = w->scratch + g->at_mask;
    }
    g->code->step(&s);
}

static void meet_block(const struct work *w, int64_t first, int64_t rows)
{
    const struct weft_attention_grad *const g = w->g;
    struct block b = {.first = first, .rows = rows, .keys = w->keys};
    if (g->causal)
        b.keys = larger(0, smaller(w->keys, first + rows + g->offset - w->first));
    if (b.keys == 0)
        return;
    meet_rows(w, &b);
    make_weights(w, &b);
    const float *const weight = w->scratch + g->at_score, *const turned = w->scratch + g->at_change;
    float *const slope = w->scratch + g->at_slope, *const dq = w->dq + first * w->dq_row;
    const int64_t in_span = w->first % g->span;
    weft_attention_product(g->kernel, rows, weight, BLOCK, b.dy, b.dy_row, w->dv + in_span * w->dv_row, w->dv_row,
                           b.keys, g->out_width, true);
    weft_attention_product(g->kernel, rows, turned, BLOCK, b.q, b.q_row, w->dk + in_span * w->dk_row, w->dk_row,
                           b.keys, g->width, true);
    copy_rows(g, slope, CHUNK + PAD, turned, 1, BLOCK, rows, b.keys);
    weft_attention_product(g->kernel, b.keys, slope, CHUNK + PAD, w->k, w->k_row, dq, w->dq_row, rows, g->width, true);
}

/* A block computes what its last row sees, so where rows see fewer keys than those behind them, blocks are lower. */
static int64_t block_rows(const struct work *w, int64_t row)
{
    const int64_t last = w->first + w->keys - 1 - w->g->offset; /* who sees all keys */
    return w->g->causal && row < last && row + BLOCK > w->first - w->g->offset ? CAUSAL_BLOCK : BLOCK;
}

static void meet_span(struct work *w, int64_t first, int64_t keys)
{
    const struct weft_attention_grad *const g = w->g;
    for (int64_t j = first; j < first + keys; j += CHUNK) {
        w->first = j, w->keys = smaller(CHUNK, first + keys - j);
        const float *const k = w->data->k + w->batch * g->k[0] + w->group * g->k[1] + j * g->k[2];
        const float *const v = w->data->v + w->batch * g->v[0] + w->group * g->v[1] + j * g->v[2];
        w->k = find_rows(w, k, g->k, g->copy_k, g->at_k, w->keys, g->width, &w->k_row);
        w->v = find_rows(w, v, g->v, g->copy_v, g->at_v, w->keys, g->out_width, &w->v_row);
        for (int64_t i = 0, rows; i < g->rows; i += rows) {
            rows = smaller(block_rows(w, i), g->rows - i);
            meet_block(w, i, rows);
        }
    }
}

/* --- units -------------------------------------------------------------------------------------------------------- */

static void clear(float *to, int64_t row, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        memset(to + i * row, 0, (size_t)columns * sizeof *to);
}

/* to[…] = from, whose rows lie one behind the other; or += from. */
static void put(const struct weft_attention_grad *g, float *to, const int64_t stride[4], const float *from,
                int64_t rows, int64_t columns, bool adds)
{
    for (int64_t i = 0; i < rows; i++, to += stride[2], from += columns) {
        if (stride[3] == 1 && adds)
            g->kernel->code->add(to, from, columns);
        else if (stride[3] == 1)
            memcpy(to, from, (size_t)columns * sizeof *to);
        else
            for (int64_t j = 0; j < columns; j++)
                to[j * stride[3]] = adds ? to[j * stride[3]] + from[j] : from[j];
    }
}

static float *dq_of(const struct work *w, int64_t head)
{
    return w->data->dq + w->batch * w->g->dq[0] + head * w->g->dq[1];
}

/* Of a span of the group, where spans are units. */
static float *partial_of(const struct work *w, int64_t span, int64_t head)
{
    const struct weft_attention_grad *const g = w->g;
    return (float *)((char *)w->data->shared + HEADER) +
           ((w->batch * g->heads + head) * g->spans + span) * dq_size(g);
}

static void run_span(struct work *w, int64_t span)
{
    const struct weft_attention_grad *const g = w->g;
    const int64_t sharing = g->heads / g->groups, first = span * g->span;
    const int64_t keys = smaller(g->span, g->keys - first);
    float *const dk = w->data->dk + w->batch * g->dk[0] + w->group * g->dk[1] + first * g->dk[2];
    float *const dv = w->data->dv + w->batch * g->dv[0] + w->group * g->dv[1] + first * g->dv[2];
    w->dk = g->aside_dk ? w->scratch + g->at_dk : dk, w->dk_row = g->aside_dk ? g->width : g->dk[2];
    w->dv = g->aside_dv ? w->scratch + g->at_dv : dv, w->dv_row = g->aside_dv ? g->out_width : g->dv[2];
    clear(w->dk, w->dk_row, keys, g->width);
    clear(w->dv, w->dv_row, keys, g->out_width);
    for (w->head = w->group * sharing; w->head < (w->group + 1) * sharing; w->head++) {
        w->dq = g->splits ? partial_of(w, span, w->head) : g->aside_dq ? w->scratch + g->at_dq : dq_of(w, w->head);
        w->dq_row = g->aside_dq ? g->width : g->dq[2];
        clear(w->dq, w->dq_row, g->rows, g->width);
        meet_span(w, first, keys);
        if (g->aside_dq && !g->splits)
            put(g, dq_of(w, w->head), g->dq, w->dq, g->rows, g->width, span > 0);
    }
    if (g->aside_dk)
        put(g, dk, g->dk, w->dk, keys, g->width, false);
    if (g->aside_dv)
        put(g, dv, g->dv, w->dv, keys, g->out_width, false);
}

/* Counts spans of groups as done; who does the last of a counter adds up their dq. */
static void count_spans(struct work *w, int64_t counter, int64_t units)
{
    const struct weft_attention_grad *const g = w->g;
    const int64_t all = g->batch * g->groups, each = weft_pieces(all, COUNTERS), sharing = g->heads / g->groups;
    const int64_t first = counter * each, end = smaller(first + each, all);
    int *const done = (int *)w->data->shared + counter;
    if (__atomic_add_fetch(done, (int)units, __ATOMIC_ACQ_REL) < (end - first) * g->spans)
        return;
    for (int64_t i = first; i < end; i++) {
        w->batch = i / g->groups;
        for (int64_t h = i % g->groups * sharing; h < (i % g->groups + 1) * sharing; h++) {
            for (int64_t span = 0; span < g->spans; span++)
                put(g, dq_of(w, h), g->dq, partial_of(w, span, h), g->rows, g->width, span > 0);
        }
    }
    __atomic_store_n(done, 0, __ATOMIC_RELEASE);
}

static void run_split(struct work *w, int part, int parts)
{
    const struct weft_attention_grad *const g = w->g;
    const int64_t groups = g->batch * g->groups, units = groups * g->spans, each = weft_pieces(groups, COUNTERS);
    const int64_t end = weft_cut_evenly(units, parts, part + 1);
    int64_t counter = 0, count = 0;
    for (int64_t u = weft_cut_evenly(units, parts, part); u < end; u++, count++) {
        const int64_t group = u / g->spans;
        if (group / each != counter && count > 0) {
            count_spans(w, counter, count);
            count = 0;
        }
        counter = group / each;
        w->batch = group / g->groups, w->group = group % g->groups;
        run_span(w, u % g->spans);
    }
    if (count > 0)
        count_spans(w, counter, count);
}

void weft_attention_grad_run(const struct weft_attention_grad *g, const struct weft_attention_grad_data *data,
                             int part, int parts)
{
    const int64_t groups = g->batch * g->groups, end = weft_cut_evenly(groups, parts, part + 1);
    struct work w = {.g = g, .data = data, .scratch = data->scratch};
    if (g->splits) {
        run_split(&w, part, parts);
        return;
    }
    for (int64_t i = weft_cut_evenly(groups, parts, part); i < end; i++) {
        w.batch = i / g->groups, w.group = i % g->groups;
        for (int64_t span = 0; span < g->spans; span++)
            run_span(&w, span);
    }
}

const char *weft_attention_grad_name(const struct weft_attention_grad *g) { return g->code->name; }
uint32_t weft_attention_grad_cpu(const struct weft_attention_grad *g) { return g->code->cpu; }
