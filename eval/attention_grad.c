/* SPDX-License-Identifier: Apache-2.0 */
/* attention_grad.c: gradients of attention by its operands, key by key of row by row, in double, rounded once. Weights
 * are made again from scores and the logarithms of their sums. */
#include "eval/rule.h"

#include <math.h>

enum { DY, QUERY, KEY, VALUE, Y, SUMS, MASK, OPERANDS, RESULTS = 3 };

struct gradient {
    const union weft_number *in[OPERANDS]; /* the mask may be NULL */
    union weft_number *dq, *dk, *dv;
    double factor, softcap;
    int64_t heads, groups, rows, keys, width, out_width;
    bool causal;
    int64_t offset; /* row i sees keys up to i + offset */
};

static double dot(const union weft_number *x, const union weft_number *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i].real * y[i].real;
    return sum;
}

static void add(union weft_number *to, double times, const union weft_number *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i].real += times * x[i].real;
}

/* What one key gives and gets, of a row whose gradient and result have the product `delta`. */
static void meet_key(const struct gradient *g, int64_t row, int64_t key, double delta, double added)
{
    const union weft_number *const q = g->in[QUERY] + row * g->width, *const k = g->in[KEY] + key * g->width;
    const union weft_number *const dy = g->in[DY] + row * g->out_width, *const v = g->in[VALUE] + key * g->out_width;
    const double product = g->factor * dot(q, k, g->width);
    const double inside = g->softcap > 0 ? product / g->softcap : 0, flat = cosh(inside); /* 1 - tanh² = 1 / cosh² */
    const double score = (g->softcap > 0 ? g->softcap * tanh(inside) : product) + added;
    const bool hidden = added <= WEFT_HIDING_MASK;
    const double weight = exp((hidden ? added : score) - g->in[SUMS][row].real);
    add(g->dv + key * g->out_width, weight, dy, g->out_width);
    if (hidden)
        return;
    const double slope = weight * (dot(dy, v, g->out_width) - delta) / (flat * flat) * g->factor;
    add(g->dq + row * g->width, slope, k, g->width);
    add(g->dk + key * g->width, slope, q, g->width);
}

static void meet_row(const struct gradient *g, int64_t row, int64_t i, int64_t first_key)
{
    const double delta = dot(g->in[DY] + row * g->out_width, g->in[Y] + row * g->out_width, g->out_width);
    if (g->in[SUMS][row].real == -INFINITY) /* it sees nothing */
        return;
    for (int64_t t = 0; t < g->keys; t++) {
        const double added = g->in[MASK] ? g->in[MASK][row * g->keys + t].real : 0;
        if ((!g->causal || t <= i + g->offset) && added != -INFINITY)
            meet_key(g, row, first_key + t, delta, added);
    }
}

static void compute(struct weft_eval *eval, struct gradient *g)
{
    const struct weft_tensor *const query = &eval->in[QUERY], *const key = &eval->in[KEY];
    g->factor = weft_attr_real(eval->graph, eval->node, WEFT_ATTR_factor);
    g->softcap = weft_attr_real(eval->graph, eval->node, WEFT_ATTR_softcap);
    g->heads = query->extent[1], g->groups = key->extent[1];
    g->rows = query->extent[2], g->keys = key->extent[2];
    g->width = query->extent[3], g->out_width = eval->in[VALUE].extent[3];
    g->causal = weft_eval_int(eval, WEFT_ATTR_causal) != 0;
    g->offset = weft_eval_int(eval, WEFT_ATTR_offset);
    const int64_t all = query->extent[0] * g->heads;
    for (int64_t head = 0; head < all; head++) {
        const int64_t group = head / g->heads * g->groups + head % g->heads / (g->heads / g->groups);
        for (int64_t i = 0; i < g->rows; i++)
            meet_row(g, head * g->rows + i, i, group * g->keys);
    }
}

void weft_eval_attention_grad(struct weft_eval *eval)
{
    const unsigned operands = weft_node_of(eval->graph, eval->node)->operands;
    union weft_number *in[OPERANDS] = {NULL}, *out[RESULTS];
    bool there = true;
    for (unsigned i = 0; i < operands; i++) {
        in[i] = weft_eval_numbers(eval, &eval->in[i]);
        there = there && in[i];
    }
    for (int i = 0; i < RESULTS; i++) {
        const int64_t count = weft_tensor_count(&eval->out[i]);
        out[i] = weft_eval_scratch(eval, count, sizeof *out[i]);
        there = there && out[i];
        for (int64_t j = 0; out[i] && j < count; j++)
            out[i][j].real = 0;
    }
    struct gradient g = {.dq = out[0], .dk = out[1], .dv = out[2]};
    for (unsigned i = 0; i < operands; i++)
        g.in[i] = in[i];
    if (there)
        compute(eval, &g);
    for (int i = 0; i < RESULTS; i++) {
        if (there)
            weft_eval_store_all(&eval->out[i], out[i]);
        weft_eval_drop_numbers(eval, out[i], weft_tensor_count(&eval->out[i]));
    }
    for (unsigned i = 0; i < operands; i++)
        weft_eval_drop_numbers(eval, in[i], weft_tensor_count(&eval->in[i]));
}
