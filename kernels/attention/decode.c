/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c: which rows of keys meet which queries when, if each head has one query.
 *
 *   for each batch, for each block of groups, for each chunk of keys:    a unit; parts have runs of them
 *     scores     of heads that share no keys, in rows that hold those of all heads: row by row; else group by group
 *     weights    head by head
 *     values     as scores
 *     the end    by whoever finishes the last unit that it waits for
 *
 * Rows of a head's own keys are read whole, since pieces of them from as many pages come at two thirds of the speed. */
#include "kernels/attention/decode.h"

#include "kernels/gemm/gemm.h"

#include <math.h>
#include <string.h>

enum {
    CHUNKS = 16,
    LEAST_CHUNK = 128,
    UNITS_A_PART = 2,
    COUNTERS = 16,     /* of units that are done, in the header of shared memory */
    HEADER = 64,
    PAD = 16,          /* floats behind a row of scores, against rows a power of two apart */
    BEYOND = 4 << 20,  /* floats of keys and values that lie in the last cache */
    AHEAD = 4096,      /* floats */
    COPIED = 64        /* so many are copied at a time */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t rounded(int64_t n) { return (n + 15) / 16 * 16; }

/* --- prepare ------------------------------------------------------------------------------------------------------ */

/* Does a row of keys or values hold all groups? */
static bool is_wide(const struct weft_attention *a, const int64_t stride[4])
{
    return a->groups > 1 && stride[2] > stride[1];
}

static int64_t most_heads(const struct weft_attention *a)
{
    return weft_pieces(a->groups, a->blocks) * (a->heads / a->groups);
}

static int64_t place(int64_t *at, int64_t floats)
{
    const int64_t here = *at;
    *at += rounded(floats);
    return here;
}

void weft_decode_prepare(struct weft_attention *a, int workers)
{
    const int64_t wanted = larger(1, smaller(CHUNKS, weft_pieces(a->keys, LEAST_CHUNK)));
    a->chunk = larger(16, rounded(weft_pieces(a->keys, wanted)));
    a->chunks = larger(1, weft_pieces(a->keys, a->chunk));
    a->blocks = larger(1, a->groups);
    if ((is_wide(a, a->k) && !a->copy_k) || (is_wide(a, a->v) && !a->copy_v)) {
        const int64_t units = workers > 1 ? (int64_t)UNITS_A_PART * workers : 1;
        a->blocks = smaller(a->groups, weft_pieces(units, larger(1, a->batch * a->chunks)));
    }
    const int64_t heads = a->groups > 0 ? most_heads(a) : 0, row = rounded(a->out_width);
    a->score_row = a->chunk + PAD;
    int64_t floats = 0;
    a->at_score = place(&floats, heads * a->score_row);
    a->at_q = place(&floats, a->copy_q ? heads * rounded(a->width) : 0);
    a->at_k = place(&floats, a->copy_k ? COPIED * a->width : 0);
    a->at_v = place(&floats, a->copy_v ? COPIED * a->out_width : 0);
    a->at_mask = place(&floats, a->copy_mask ? a->chunk : 0);
    a->at_y = place(&floats, a->chunks == 1 ? heads * row : row);
    a->at_part = place(&floats, a->chunks == 1 ? 2 * heads : 0);
    a->scratch = (size_t)floats * sizeof(float);
    const int64_t partial = a->batch * a->chunks * a->heads;
    a->shared = a->chunks == 1 ? 0 : HEADER + (size_t)(partial * row) * sizeof(float) +
                                         (size_t)partial * sizeof(struct weft_decode_part);
    a->parts = weft_gemm_parts(2 * weft_attention_products(a), a->batch * a->blocks * a->chunks, workers);
}

/* --- run ---------------------------------------------------------------------------------------------------------- */

struct unit {
    const struct weft_attention *a;
    const struct weft_attention_data *data;
    float *scratch, *score;
    const float *q;
    int64_t q_row;
    int64_t shared;           /* heads of a group */
    int64_t batch, chunk;
    int64_t group, groups;    /* from which on, how many */
    int64_t key, keys;
    float *sum;               /* of weighted values, head by head */
    int64_t sum_row;
};

/* Of a head, all chunks one behind the other; of the only chunk, scratch memory. */
static struct weft_decode_part *parts_of(const struct unit *u, int64_t head)
{
    const struct weft_attention *const a = u->a;
    if (a->chunks == 1)
        return (struct weft_decode_part *)(u->scratch + a->at_part) + (head - u->group * u->shared);
    float *const behind = (float *)((char *)u->data->shared + HEADER) +
                          a->batch * a->chunks * a->heads * rounded(a->out_width);
    return (struct weft_decode_part *)behind + (u->batch * a->heads + head) * a->chunks;
}
/* Heads of a chunk lie side by side. */
static float *partial_of(const struct unit *u, int64_t chunk, int64_t head)
{
    const struct weft_attention *const a = u->a;
    return (float *)((char *)u->data->shared + HEADER) +
           ((u->batch * a->chunks + chunk) * a->heads + head) * rounded(a->out_width);
}

/* The queries of the unit, whose rows go on with zeros. */
static void find_queries(struct unit *u)
{
    const struct weft_attention *const a = u->a;
    const int64_t row = rounded(a->width);
    u->q = u->scratch + a->at_q, u->q_row = row;
    if (!a->copy_q) {
        u->q = u->data->q + u->batch * a->q[0] + u->group * u->shared * a->q[1], u->q_row = a->q[1];
        return;
    }
    for (int64_t h = 0; h < u->groups * u->shared; h++) {
        const float *const from = u->data->q + u->batch * a->q[0] + (u->group * u->shared + h) * a->q[1];
        float *const to = u->scratch + a->at_q + h * row;
        for (int64_t p = 0; p < row; p++)
            to[p] = p < a->width ? from[p * a->q[3]] : 0;
    }
}

/* Some rows of keys or values of a group, their elements side by side. */
static const float *rows_of(const struct unit *u, const float *from, const int64_t stride[4], float *copy,
                            int64_t group, int64_t key, int64_t keys, int64_t columns, int64_t *ret_row)
{
    from += u->batch * stride[0] + group * stride[1] + key * stride[2];
    *ret_row = copy ? columns : stride[2];
    if (!copy)
        return from;
    weft_gemm_gather(u->a->kernel, copy, columns, (const weft_loose_f32 *)from, stride[2], stride[3], keys, columns);
    return copy;
}

/* Beyond the caches, memory is asked for rows of so many floats in time; in them that costs a twentieth. */
static int64_t rows_ahead(const struct weft_attention *a, int64_t columns)
{
    const int64_t floats = a->batch * a->groups * a->keys * (a->width + a->out_width);
    return floats > BEYOND ? larger(1, AHEAD / larger(1, columns)) : 0;
}

static void make_scores(const struct unit *u)
{
    const struct weft_attention *const a = u->a;
    float *const copy = a->copy_k ? u->scratch + a->at_k : NULL;
    const bool whole = is_wide(a, a->k) && !copy && u->shared == 1;
    const int64_t step = copy ? COPIED : u->keys;
    for (int64_t j = 0; j < u->keys; j += step) {
        struct weft_decode_dots d = {.q_row = u->q_row, .to_row = a->score_row, .width = a->width,
                                     .keys = smaller(step, u->keys - j), .k_head = whole ? a->k[1] : 0,
                                     .ahead = copy ? 0 : rows_ahead(a, (whole ? u->groups : 1) * a->width)};
        for (int64_t g = 0; g < (whole ? 1 : u->groups); g++) {
            d.k = rows_of(u, u->data->k, a->k, copy, u->group + g, u->key + j, d.keys, a->width, &d.k_row);
            d.heads = whole ? u->groups : u->shared;
            d.q = u->q + g * u->shared * d.q_row, d.to = u->score + g * u->shared * d.to_row + j;
            a->code->decode->dots(&d);
        }
    }
}

static void weigh_values(const struct unit *u)
{
    const struct weft_attention *const a = u->a;
    float *const copy = a->copy_v ? u->scratch + a->at_v : NULL;
    const bool whole = is_wide(a, a->v) && !copy && u->shared == 1;
    const int64_t step = copy ? COPIED : u->keys;
    if (u->keys == 0)
        memset(u->sum, 0, (size_t)(u->groups * u->shared * u->sum_row) * sizeof *u->sum);
    for (int64_t j = 0; j < u->keys; j += step) {
        struct weft_decode_values w = {.weight_row = a->score_row, .to_row = u->sum_row, .columns = a->out_width,
                                       .keys = smaller(step, u->keys - j), .v_head = whole ? a->v[1] : 0,
                                       .ahead = copy ? 0 : rows_ahead(a, (whole ? u->groups : 1) * a->out_width),
                                       .goes_on = j > 0};
        for (int64_t g = 0; g < (whole ? 1 : u->groups); g++) {
            w.v = rows_of(u, u->data->v, a->v, copy, u->group + g, u->key + j, w.keys, a->out_width, &w.v_row);
            w.heads = whole ? u->groups : u->shared;
            w.weight = u->score + g * u->shared * a->score_row + j, w.to = u->sum + g * u->shared * u->sum_row;
            a->code->decode->values(&w);
        }
    }
}

static struct weft_decode_part weigh(const struct unit *u, int64_t head)
{
    const struct weft_attention *const a = u->a;
    struct weft_decode_part part;
    struct weft_attention_rows r = {.score = u->score + (head - u->group * u->shared) * a->score_row,
                                    .score_row = a->score_row, .rows = 1, .keys = u->keys, .seen = u->keys,
                                    .factor = a->factor, .softcap = a->softcap, .sum = &part.sum,
                                    .centre = &part.centre};
    if (a->masked)
        r.mask = u->data->mask + u->batch * a->mask[0] + head * a->mask[1] + u->key * a->mask[3];
    if (a->copy_mask) {
        float *const copy = u->scratch + a->at_mask;
        for (int64_t j = 0; j < u->keys; j++)
            copy[j] = r.mask[j * a->mask[3]];
        r.mask = copy;
    }
    a->code->weigh(&r);
    return part;
}

static void finish_head(const struct unit *u, int64_t head, float *from, struct weft_decode_part all)
{
    const struct weft_attention *const a = u->a;
    float *const y = u->data->y + u->batch * a->y[0] + head * a->y[1];
    const float inverse = weft_attention_inverse(all.sum, a->empty);
    if (a->has_sums)
        u->data->sums[u->batch * a->sums[0] + head * a->sums[1]] = a->code->log_sum(all.centre, all.sum);
    a->code->scale(a->copy_y ? from : y, 0, from, 0, 1, a->out_width, &inverse);
    for (int64_t j = 0; a->copy_y && j < a->out_width; j++)
        y[j * a->y[3]] = from[j];
}

/* Which counter a unit of this block has. */
static int64_t counter_of(const struct weft_attention *a, int64_t batch, int64_t block)
{
    return (batch * a->blocks + block) / weft_pieces(a->batch * a->blocks, COUNTERS);
}
/* Counts units as done; who does the last of a counter ends its heads. */
static void count_units(struct unit *u, int64_t counter, int64_t units)
{
    const struct weft_attention *const a = u->a;
    const int64_t all = a->batch * a->blocks, each = weft_pieces(all, COUNTERS);
    const int64_t first = counter * each, end = smaller(first + each, all);
    int *const done = (int *)u->data->shared + counter;
    if (__atomic_add_fetch(done, (int)units, __ATOMIC_ACQ_REL) < (end - first) * a->chunks)
        return;
    float *const sum = u->scratch + a->at_y;
    for (int64_t i = first; i < end; i++) {
        const int64_t group = weft_cut(a->groups, a->blocks, i % a->blocks);
        const int64_t group_end = weft_cut(a->groups, a->blocks, i % a->blocks + 1);
        u->batch = i / a->blocks;
        for (int64_t head = group * u->shared; head < group_end * u->shared; head++) {
            const struct weft_decode_part total =
                a->code->decode->combine(sum, parts_of(u, head), partial_of(u, 0, head),
                                         a->heads * rounded(a->out_width), a->out_width, a->chunks);
            finish_head(u, head, sum, total);
        }
    }
    __atomic_store_n(done, 0, __ATOMIC_RELEASE);
}

static void run_unit(struct unit *u, int64_t block)
{
    const struct weft_attention *const a = u->a;
    const int64_t seen = a->causal ? larger(0, smaller(a->keys, a->offset + 1)) : a->keys;
    u->group = weft_cut(a->groups, a->blocks, block);
    u->groups = weft_cut(a->groups, a->blocks, block + 1) - u->group;
    u->key = u->chunk * a->chunk;
    u->keys = larger(0, smaller(a->chunk, seen - u->key));
    u->sum_row = rounded(a->out_width);
    const int64_t head = u->group * u->shared, heads = u->groups * u->shared;
    u->sum = a->chunks == 1 ? u->scratch + a->at_y : partial_of(u, u->chunk, head);
    find_queries(u);
    make_scores(u);
    for (int64_t h = head; h < head + heads; h++)
        parts_of(u, h)[u->chunk] = weigh(u, h);
    weigh_values(u);
    for (int64_t h = 0; a->chunks == 1 && h < heads; h++)
        finish_head(u, head + h, u->sum + h * u->sum_row, *parts_of(u, head + h));
}

void weft_decode_run(const struct weft_attention *a, const struct weft_attention_data *data, int part, int parts)
{
    const int64_t units = a->batch * a->blocks * a->chunks, end = weft_cut_evenly(units, parts, part + 1);
    if (a->heads == 0)
        return;
    struct unit u = {.a = a, .data = data, .scratch = data->scratch, .shared = a->heads / a->groups};
    u.score = u.scratch + a->at_score;
    int64_t counter = 0, count = 0;
    for (int64_t i = weft_cut_evenly(units, parts, part); i < end; i++, count++) {
        const int64_t batch = i / a->chunks / a->blocks, block = i / a->chunks % a->blocks;
        const int64_t next = counter_of(a, batch, block);
        if (next != counter && count > 0 && a->chunks > 1) {
            count_units(&u, counter, count);
            count = 0;
        }
        counter = next;
        u.batch = batch, u.chunk = i % a->chunks;
        run_unit(&u, block);
    }
    if (count > 0 && a->chunks > 1)
        count_units(&u, counter, count);
}
