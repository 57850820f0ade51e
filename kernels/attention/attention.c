/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c: blocks of rows around the tiles.
 *
 *   for each group, for each head of it:       keys go to panels when a part first meets their group
 *     for each block of rows:                  at most 64, whose scores fit a quarter of the second-level cache, or
 *                                              half of it where keys and values do not fit
 *       for each panel of 64 keys, for each tile of rows:   scores
 *       for each tile of rows:                              weights; times values; times 1 / sum of weights
 *
 * Where values take more than a quarter of that cache, the last line is three: weights of all tiles; times the values
 * of some keys (near_keys), for each tile; times 1 / sum. The chains are the same. */
#include "kernels/attention/decode.h"
#include "kernels/attention/tiles.h"

#include <string.h>

enum {
    MOST_ROWS = 64,     /* of a block: more gain nothing */
    LEAST_ROWS = 24,    /* for more parts blocks get no lower: each reads all keys and values once */
    BLOCKS_A_PART = 4,
    CACHE = 1 << 20,
    LEAST_KEYS = 128,   /* terms at least of a tile that goes on from its results; other numbers were not tried */
    PAD = 16,           /* floats behind a row of scores, against rows a power of two apart */
    EXPONENTIAL = 14    /* multiply-adds in whose time a weight is made: 7 cycles with two of them in each */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t rounded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static const struct weft_attention_code *const codes[] = {
#define ATTENTION(id, level, cpu) &weft_attention_##id##__##level,
#include "kernels/attention/attention.def"
};

/* The most rows that a tile of so many columns has, for many terms. */
static int64_t rows_of(const struct weft_attention *a, int64_t columns)
{
    return weft_attention_tile_rows(a->kernel, columns);
}

/* --- prepare ------------------------------------------------------------------------------------------------------ */

static int64_t panel_of(const struct weft_attention *a) { return a->kernel->columns; }

static int64_t cache_floats(const struct weft_attention *a)
{
    return (int64_t)(a->cache ? a->cache : CACHE) / (int64_t)sizeof(float);
}

static void choose_blocks(struct weft_attention *a, int workers)
{
    const int64_t shared = a->groups > 0 ? a->heads / a->groups : 0;
    const bool lines = shared * a->rows > 0 && shared * a->rows <= WEFT_ATTENTION_ROWS && a->k[3] == 1 &&
                       a->kernel->code->lines && a->kernel->code->lines[shared * a->rows - 1];
    a->form = lines ? WEFT_ATTENTION_LINES : WEFT_ATTENTION_PANELS;
    a->block = lines ? shared * a->rows : 1;
    a->blocks = 1;
    if (lines || a->rows == 0)
        return;
    const int64_t cache = cache_floats(a);
    const bool far = a->keys * (a->width + a->out_width) > cache; /* the more rows, the less often they are read */
    const int64_t fit = larger(cache / (far ? 2 : 4) / a->score_row, WEFT_ATTENTION_ROWS);
    const int64_t most = smaller(fit, MOST_ROWS);
    const int64_t heads = larger(a->batch * a->heads, 1), wanted = (BLOCKS_A_PART * workers + heads - 1) / heads;
    a->blocks = (a->rows + most - 1) / most;
    if (workers > 1)
        a->blocks = larger(a->blocks, smaller(wanted, (a->rows + LEAST_ROWS - 1) / LEAST_ROWS));
    a->block = (a->rows + a->blocks - 1) / a->blocks;
}

/* So many that their values take an eighth of the cache, where a block has several tiles, whose results stay in y, and
 * all values would take more than a quarter; else 0. */
static int64_t near_keys(const struct weft_attention *a)
{
    const int64_t cache = cache_floats(a);
    const bool far = a->keys * a->out_width > cache / 4;
    if (a->form == WEFT_ATTENTION_LINES || a->copy_y || a->block <= WEFT_ATTENTION_ROWS || !far)
        return 0;
    return larger(LEAST_KEYS, cache / 8 / a->out_width);
}

static int64_t units_of(const struct weft_attention *a)
{
    return a->batch * (a->form == WEFT_ATTENTION_LINES ? a->groups : a->heads) * a->blocks;
}

double weft_attention_products(const struct weft_attention *a)
{
    const double scores = (double)a->batch * (double)a->heads * (double)a->rows * (double)a->keys;
    return scores * (double)(a->width + a->out_width + EXPONENTIAL);
}

/* Gives `floats` of scratch a place. */
static int64_t place(int64_t *at, int64_t floats)
{
    const int64_t here = *at;
    *at += rounded(floats, 16);
    return here;
}

void weft_attention_prepare(struct weft_attention *a, int workers)
{
    if (a->groups > 1 && a->k[1] == 0 && a->v[1] == 0) /* repeated, and so those of one group */
        a->groups = 1;
    a->empty = a->keys == 0 ? WEFT_ATTENTION_ZERO : a->empty; /* a sum of nothing */
    a->code = codes[0];
    for (unsigned i = 1; i < sizeof codes / sizeof codes[0]; i++) {
        if (!(codes[i]->cpu & ~a->cpu))
            a->code = codes[i];
    }
    a->kernel = weft_gemm_find(a->code->cpu);
    a->copy_v = a->v[3] != 1;
    a->copy_mask = a->masked && a->mask[3] != 1;
    if (a->rows == 1) {
        a->form = WEFT_ATTENTION_DECODE;
        a->copy_k = a->k[3] != 1;
        a->copy_q = a->q[3] != 1 || a->width % WEFT_ATTENTION_LANES;
        a->copy_y = a->y[3] != 1;
        weft_decode_prepare(a, workers);
        return;
    }
    a->score_row = rounded(a->keys, 16) + PAD;
    choose_blocks(a, workers);
    const bool lines = a->form == WEFT_ATTENTION_LINES;
    a->copy_k = !lines && a->k[2] != 1;
    a->copy_q = lines || a->q[3] != 1;
    a->copy_y = lines || a->y[3] != 1;
    a->near_keys = near_keys(a);
    int64_t floats = 0;
    a->at_score = place(&floats, a->block * a->score_row);
    a->at_k = place(&floats, a->copy_k ? rounded(a->keys, panel_of(a)) * a->width : 0);
    a->at_v = place(&floats, a->copy_v ? a->keys * a->out_width : 0);
    a->at_q = place(&floats, a->copy_q ? a->block * a->width : 0);
    a->at_mask = place(&floats, a->copy_mask ? WEFT_ATTENTION_ROWS * a->keys : 0);
    a->at_y = place(&floats, a->copy_y ? WEFT_ATTENTION_ROWS * a->out_width : 0);
    a->scratch = (size_t)floats * sizeof(float);
    a->parts = weft_gemm_parts(2 * weft_attention_products(a) * (a->causal ? 0.5 : 1), units_of(a), workers);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

struct work {
    const struct weft_attention *a;
    const struct weft_attention_data *data;
    float *scratch;
    const float *k, *v;       /* of the group: panels and rows as tiles read them */
    int64_t k_panel, k_row;   /* floats from a panel to the next, from a row of one to the next */
    int64_t v_row;
    int64_t batch, group;
};

/* to[i·to_row + j] = from[i·row + j·column]. */
static void copy_rows(const struct weft_attention *a, float *to, int64_t to_row, const float *from, int64_t row,
                      int64_t column, int64_t rows, int64_t columns)
{
    weft_gemm_gather(a->kernel, to, to_row, (const weft_loose_f32 *)from, row, column, rows, columns);
}

static void meet_group(struct work *w, int64_t batch, int64_t group)
{
    const struct weft_attention *const a = w->a;
    const float *const k = w->data->k + batch * a->k[0] + group * a->k[1];
    const float *const v = w->data->v + batch * a->v[0] + group * a->v[1];
    const int64_t panel = panel_of(a);
    if (w->batch == batch && w->group == group)
        return;
    w->batch = batch, w->group = group;
    w->k = k, w->k_panel = panel, w->k_row = a->k[3];
    w->v = v, w->v_row = a->v[2];
    if (a->copy_k) {
        float *to = w->scratch + a->at_k;
        for (int64_t j = 0; j < a->keys; j += panel, to += a->width * panel) {
            const int64_t some = smaller(panel, a->keys - j);
            copy_rows(a, to, panel, k + j * a->k[2], a->k[3], a->k[2], a->width, some);
            for (int64_t p = 0; some < panel && p < a->width; p++)
                memset(to + p * panel + some, 0, (size_t)(panel - some) * sizeof *to);
        }
        w->k = w->scratch + a->at_k, w->k_panel = a->width * panel, w->k_row = panel;
    }
    if (a->copy_v) {
        copy_rows(a, w->scratch + a->at_v, a->out_width, v, a->v[2], a->v[3], a->keys, a->out_width);
        w->v = w->scratch + a->at_v, w->v_row = a->out_width;
    }
}

/* How many keys a row sees. */
static int64_t seen_by(const struct weft_attention *a, int64_t row)
{
    return a->causal ? larger(0, smaller(a->keys, row + a->offset + 1)) : a->keys;
}

/* Rows of a head: [first, first + rows). */
struct block {
    int64_t head, first, rows;
    const float *q;
    int64_t q_row;
};

/* Of tiles that differ by at most one row, tile t begins here. */
static int64_t cut(const struct block *b, int64_t tiles, int64_t t) { return weft_cut(b->rows, tiles, t); }

static void score_block(const struct work *w, const struct block *b)
{
    const struct weft_attention *const a = w->a;
    const int64_t panel = panel_of(a), keys = seen_by(a, b->first + b->rows - 1);
    const float *k = w->k;
    for (int64_t j = 0; j < keys; j += panel, k += w->k_panel) {
        const int64_t most = rows_of(a, smaller(panel, keys - j)), tiles = weft_pieces(b->rows, most);
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t i = cut(b, tiles, t), i_end = cut(b, tiles, t + 1);
            int64_t columns = smaller(panel, seen_by(a, b->first + i_end - 1) - j);
            if (columns <= 0)
                continue;
            if (a->copy_k)
                columns = smaller(panel, rounded(columns, 8)); /* vectors; what is behind keys is 0 times something */
            weft_attention_tile(a->kernel, a->width, b->q + i * b->q_row, b->q_row, k, w->k_row,
                                w->scratch + a->at_score + i * a->score_row + j, a->score_row, i_end - i, columns,
                                false);
        }
    }
}

/* Weights of rows [i, i_end) of a block; ret_inverse: what their products with values are to be multiplied by. */
static void weigh_rows(const struct work *w, const struct block *b, int64_t i, int64_t i_end, int64_t keys,
                       float *ret_inverse)
{
    const struct weft_attention *const a = w->a;
    float centre[WEFT_ATTENTION_ROWS], sum[WEFT_ATTENTION_ROWS];
    struct weft_attention_rows r = {
        .score = w->scratch + a->at_score + i * a->score_row, .score_row = a->score_row, .rows = i_end - i,
        .keys = keys,
        .seen = a->causal ? b->first + i + a->offset + 1 : keys, .step = a->causal, .factor = a->factor,
        .softcap = a->softcap, .centre = centre, .sum = sum};
    if (a->masked) {
        r.mask = w->data->mask + w->batch * a->mask[0] + b->head * a->mask[1] + (b->first + i) * a->mask[2];
        r.mask_row = a->mask[2];
    }
    if (a->copy_mask) {
        copy_rows(a, w->scratch + a->at_mask, a->keys, r.mask, r.mask_row, a->mask[3], r.rows, keys);
        r.mask = w->scratch + a->at_mask, r.mask_row = a->keys;
    }
    a->code->weigh(&r);
    for (int64_t p = 0; p < r.rows; p++)
        ret_inverse[p] = weft_attention_inverse(sum[p], a->empty);
    const int64_t place = w->batch * a->sums[0] + b->head * a->sums[1] + (b->first + i) * a->sums[2];
    for (int64_t p = 0; a->has_sums && p < r.rows; p++)
        w->data->sums[place + p * a->sums[2]] = a->code->log_sum(centre[p], sum[p]);
}

/* Weights times values of keys [begin, end), to y[i·y_row + j]; where begin > 0, the chains go on from what y holds. */
static void weigh_values(const struct work *w, const float *weight, int64_t rows, int64_t begin, int64_t end, float *y,
                         int64_t y_row)
{
    const struct weft_attention *const a = w->a;
    const int64_t panel = panel_of(a);
    for (int64_t j = 0; j < a->out_width; j += panel) {
        const int64_t columns = smaller(panel, a->out_width - j), most = rows_of(a, columns);
        for (int64_t i = 0; i < rows; i += most) {
            const int64_t some = smaller(most, rows - i);
            weft_attention_tile(a->kernel, end - begin, weight + i * a->score_row + begin, a->score_row,
                                w->v + begin * w->v_row + j, w->v_row, y + i * y_row + j, y_row, some, columns,
                                begin > 0);
        }
    }
}

static float *results_of(const struct work *w, const struct block *b, int64_t i)
{
    const struct weft_attention *const a = w->a;
    return w->data->y + w->batch * a->y[0] + b->head * a->y[1] + (b->first + i) * a->y[2];
}

static void finish_rows(const struct work *w, const struct block *b, int64_t i, int64_t i_end)
{
    const struct weft_attention *const a = w->a;
    const int64_t keys = seen_by(a, b->first + i_end - 1);
    float inverse[WEFT_ATTENTION_ROWS];
    weigh_rows(w, b, i, i_end, keys, inverse);
    float *const y = results_of(w, b, i), *const to = a->copy_y ? w->scratch + a->at_y : y;
    const int64_t to_row = a->copy_y ? a->out_width : a->y[2];
    weigh_values(w, w->scratch + a->at_score + i * a->score_row, i_end - i, 0, keys, to, to_row);
    a->code->scale(to, to_row, to, to_row, i_end - i, a->out_width, inverse);
    for (int64_t p = 0; a->copy_y && p < i_end - i; p++) {
        for (int64_t j = 0; j < a->out_width; j++)
            y[p * a->y[2] + j * a->y[3]] = to[p * to_row + j];
    }
}

/* The same of all tiles of a block, some keys at a time: what these read of the values stays near for all tiles. */
static void finish_block(const struct work *w, const struct block *b, int64_t tiles)
{
    const struct weft_attention *const a = w->a;
    float inverse[MOST_ROWS];
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t i = cut(b, tiles, t), i_end = cut(b, tiles, t + 1);
        weigh_rows(w, b, i, i_end, seen_by(a, b->first + i_end - 1), inverse + i);
    }
    const int64_t all = seen_by(a, b->first + b->rows - 1);
    for (int64_t begin = 0; begin < all; begin += a->near_keys) {
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t i = cut(b, tiles, t), i_end = cut(b, tiles, t + 1);
            const int64_t end = smaller(begin + a->near_keys, seen_by(a, b->first + i_end - 1));
            if (begin < end)
                weigh_values(w, w->scratch + a->at_score + i * a->score_row, i_end - i, begin, end,
                             results_of(w, b, i), a->y[2]);
        }
    }
    a->code->scale(results_of(w, b, 0), a->y[2], results_of(w, b, 0), a->y[2], b->rows, a->out_width, inverse);
}

static void run_block(struct work *w, int64_t batch, int64_t head, int64_t number)
{
    const struct weft_attention *const a = w->a;
    struct block b = {.head = head, .first = weft_cut(a->rows, a->blocks, number)};
    b.rows = weft_cut(a->rows, a->blocks, number + 1) - b.first;
    b.q = w->data->q + batch * a->q[0] + head * a->q[1] + b.first * a->q[2];
    b.q_row = a->q[2];
    meet_group(w, batch, head / (a->heads / a->groups));
    if (a->copy_q) {
        copy_rows(a, w->scratch + a->at_q, a->width, b.q, b.q_row, a->q[3], b.rows, a->width);
        b.q = w->scratch + a->at_q, b.q_row = a->width;
    }
    score_block(w, &b);
    const int64_t tiles = weft_pieces(b.rows, rows_of(a, smaller(panel_of(a), larger(a->out_width, 1))));
    if (a->near_keys > 0 && seen_by(a, b.first) > 0) {
        finish_block(w, &b, tiles);
        return;
    }
    for (int64_t t = 0; t < tiles; t++)
        finish_rows(w, &b, cut(&b, tiles, t), cut(&b, tiles, t + 1));
}

/* All rows of all heads of a group, whose keys are read in place. */
static void run_lines(struct work *w, int64_t batch, int64_t group)
{
    const struct weft_attention *const a = w->a;
    const int64_t heads = a->heads / a->groups, rows = a->block, lanes = a->kernel->lanes;
    float *const q = w->scratch + a->at_q, *const score = w->scratch + a->at_score, *const y = w->scratch + a->at_y;
    meet_group(w, batch, group);
    for (int64_t i = 0; i < rows; i++) {
        const float *const from = w->data->q + batch * a->q[0] + (group * heads + i / a->rows) * a->q[1] +
                                  i % a->rows * a->q[2];
        for (int64_t p = 0; p < a->width; p++)
            q[i * a->width + p] = from[p * a->q[3]];
    }
    for (int64_t j = 0; j < a->keys; j += lanes)
        a->kernel->code->lines[rows - 1](a->width, q, a->width, w->k + j * a->k[2], a->k[2], score + j, a->score_row,
                                         smaller(lanes, a->keys - j), false);
    float inverse[WEFT_ATTENTION_ROWS];
    for (int64_t i = 0; i < rows; i++) {
        const struct block b = {.head = group * heads + i / a->rows, .first = i % a->rows - i, .rows = rows};
        weigh_rows(w, &b, i, i + 1, a->keys, inverse + i);
    }
    weigh_values(w, score, rows, 0, a->keys, y, a->out_width);
    a->code->scale(y, a->out_width, y, a->out_width, rows, a->out_width, inverse);
    for (int64_t i = 0; i < rows; i++) {
        float *const to = w->data->y + batch * a->y[0] + (group * heads + i / a->rows) * a->y[1] +
                          i % a->rows * a->y[2];
        for (int64_t j = 0; j < a->out_width; j++)
            to[j * a->y[3]] = y[i * a->out_width + j];
    }
}

void weft_attention_run(const struct weft_attention *a, const struct weft_attention_data *data, int part, int parts)
{
    if (a->form == WEFT_ATTENTION_DECODE) {
        weft_decode_run(a, data, part, parts);
        return;
    }
    const int64_t units = units_of(a), end = weft_cut_evenly(units, parts, part + 1);
    struct work w = {.a = a, .data = data, .scratch = data->scratch, .batch = -1};
    for (int64_t u = weft_cut_evenly(units, parts, part); u < end; u++) {
        const int64_t head = u / a->blocks;
        if (a->form == WEFT_ATTENTION_LINES)
            run_lines(&w, u / a->groups, u % a->groups);
        else
            run_block(&w, head / a->heads, head % a->heads, u % a->blocks);
    }
}

const char *weft_attention_name(const struct weft_attention *a) { return a->code->name; }
uint32_t weft_attention_cpu(const struct weft_attention *a) { return a->code->cpu; }
