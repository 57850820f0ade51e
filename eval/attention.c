/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c: scores of a query with each key, softmax, and the mean of the values that it weighs; in double, a
 * row at a time, rounded once. Rows that see no key are 0. attention_sums also gives the logarithm of the sum of each
 * row's exponentials. */
#include "eval/rule.h"

#include <math.h>
#include <string.h>

struct attention {
    const union weft_number *query, *key, *value, *mask; /* mask may be NULL */
    double scale, softcap;
    int64_t heads, groups, rows, keys, width, out_width;
    bool causal;
    bool keeps_nan, clears; /* `empty`: nan, clear */
    int64_t offset; /* row i sees keys up to i + offset */
};

static double score_of(const struct attention *a, const union weft_number *query, const union weft_number *key)
{
    double sum = 0;
    for (int64_t i = 0; i < a->width; i++)
        sum += query[i].real * key[i].real;
    sum *= a->scale;
    return a->softcap > 0 ? a->softcap * tanh(sum / a->softcap) : sum;
}

/* Weights of the keys for one row, which are all 0 where it sees none; the logarithm of the sum of exp(score). */
static double weigh(const struct attention *a, int64_t row, const union weft_number *query,
                    const union weft_number *keys, const union weft_number *mask, union weft_number *weight)
{
    double largest = -INFINITY, sum = 0;
    bool any = false;
    for (int64_t k = 0; k < a->keys; k++) {
        const double added = mask ? mask[k].real : 0;
        const bool seen = (!a->causal || k <= row + a->offset) && added != -INFINITY;
        weight[k].real = !seen                        ? -INFINITY
                         : added <= WEFT_HIDING_MASK ? added
                                                     : score_of(a, query, keys + k * a->width) + added;
        largest = isnan(largest) || largest > weight[k].real ? largest : weight[k].real;
        any |= seen;
    }
    const bool blind = largest == -INFINITY;
    if (a->keeps_nan && blind)
        largest = NAN;
    for (int64_t k = 0; k < a->keys; k++) {
        weight[k].real = (any || a->keeps_nan) && largest != -INFINITY ? exp(weight[k].real - largest) : 0;
        sum += weight[k].real;
    }
    for (int64_t k = 0; k < a->keys && sum != 0; k++)
        weight[k].real = a->clears && isnan(sum) ? 0 : weight[k].real / sum;
    return blind ? -INFINITY : largest + log(sum);
}

/* Results of a batch, and, unless it is NULL, a logarithm for each of its rows. */
static void attend(const struct attention *a, int64_t batch, union weft_number *weight, union weft_number *result,
                   union weft_number *logarithm)
{
    for (int64_t head = 0; head < a->heads; head++) {
        const int64_t group = batch * a->groups + head / (a->heads / a->groups),
                      row = (batch * a->heads + head) * a->rows;
        const union weft_number *value = a->value + group * a->keys * a->out_width;
        for (int64_t i = 0; i < a->rows; i++, result += a->out_width) {
            const double log_sum = weigh(a, i, a->query + (row + i) * a->width, a->key + group * a->keys * a->width,
                                         a->mask ? a->mask + (row + i) * a->keys : NULL, weight);
            if (logarithm)
                logarithm[head * a->rows + i].real = log_sum;
            for (int64_t j = 0; j < a->out_width; j++)
                result[j].real = 0;
            for (int64_t k = 0; k < a->keys; k++)
                for (int64_t j = 0; j < a->out_width && weight[k].real != 0; j++)
                    result[j].real += weight[k].real * value[k * a->out_width + j].real;
        }
    }
}

static void evaluate(struct weft_eval *eval, const struct weft_tensor *sums)
{
    const struct weft_tensor *query = &eval->in[0], *key = &eval->in[1], *out = &eval->out[0];
    const unsigned operands = weft_node_of(eval->graph, eval->node)->operands;
    union weft_number *in[4] = {NULL};
    bool there = true;
    for (unsigned i = 0; i < operands; i++) {
        in[i] = weft_eval_numbers(eval, &eval->in[i]);
        there = there && in[i];
    }
    struct attention a = {.query = in[0],
                          .key = in[1],
                          .value = in[2],
                          .mask = in[3],
                          .scale = weft_attr_real(eval->graph, eval->node, WEFT_ATTR_factor),
                          .softcap = weft_attr_real(eval->graph, eval->node, WEFT_ATTR_softcap),
                          .heads = query->extent[1],
                          .groups = key->extent[1],
                          .rows = query->extent[2],
                          .keys = key->extent[2],
                          .width = query->extent[3],
                          .out_width = out->extent[3],
                          .causal = weft_eval_int(eval, WEFT_ATTR_causal) != 0,
                          .offset = weft_eval_int(eval, WEFT_ATTR_offset),
                          .keeps_nan = strcmp(weft_attr_word(eval->graph, eval->node, WEFT_ATTR_empty), "nan") == 0,
                          .clears = strcmp(weft_attr_word(eval->graph, eval->node, WEFT_ATTR_empty), "clear") == 0};
    const int64_t results = weft_tensor_count(out);
    union weft_number *weight = weft_eval_scratch(eval, a.keys, sizeof *weight);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    const int64_t rows = sums ? weft_tensor_count(sums) : 0, rows_of_one = a.heads * a.rows;
    union weft_number *logarithm = weft_eval_scratch(eval, rows, sizeof *logarithm);
    if (there && weight && result && logarithm) {
        for (int64_t batch = 0; batch < query->extent[0] && (results > 0 || rows > 0); batch++)
            attend(&a, batch, weight, result + batch * rows_of_one * a.out_width,
                   sums ? logarithm + batch * rows_of_one : NULL);
        weft_eval_store_all(out, result);
        if (sums)
            weft_eval_store_all(sums, logarithm);
    }
    for (unsigned i = 0; i < operands; i++)
        weft_eval_drop_numbers(eval, in[i], weft_tensor_count(&eval->in[i]));
    weft_eval_drop_numbers(eval, weight, a.keys);
    weft_eval_drop_numbers(eval, result, results);
    weft_eval_drop_numbers(eval, logarithm, rows);
}

void weft_eval_attention(struct weft_eval *eval) { evaluate(eval, NULL); }
void weft_eval_attention_sums(struct weft_eval *eval) { evaluate(eval, &eval->out[1]); }
