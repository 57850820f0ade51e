/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.c: lstm, gru and rnn, a sequence at a time, all in double; only what is stored is rounded. */
#include "eval/activation.h"
#include "ir/recurrent.h"

#include <math.h>
#include <string.h>

#define MOST_OPERANDS 8

/* One node with everything as numbers. */
struct net {
    struct weft_recurrence cell;
    int64_t times, batch, inputs, hidden;
    union weft_number *operand[MOST_OPERANDS]; /* row-major; NULL: not given */
    const union weft_number *peephole, *lengths;
    union weft_number *result[3];
    double *sum, *h, *c, *reset;               /* sum: W x and R h, a gate behind the other, twice */
};

static double apply(const struct net *net, unsigned function, double x, bool clips)
{
    const struct weft_gate_function *f = &net->cell.function[function];
    if (clips && net->cell.clip > 0)
        x = x < -net->cell.clip ? -net->cell.clip : x > net->cell.clip ? net->cell.clip : x;
    if (f->row->scaled)
        return f->alpha * tanh(f->beta * x);
    if (!f->row->opcode)
        return f->alpha * x + f->beta;
    return weft_real_of(f->row->opcode)(x, &(struct weft_activation){.alpha = f->alpha, .beta = f->beta});
}

/* ret[i] = b[i] + Σ m[i][k]·v[k] for rows i from `first` to `end`. */
static void product(const union weft_number *m, const union weft_number *b, int64_t first, int64_t end, int64_t n,
                    const double *v, double *ret)
{
    for (int64_t i = first; i < end; i++) {
        double sum = b[i].real;
        for (int64_t k = 0; k < n; k++)
            sum += m[i * n + k].real * v[k];
        ret[i] = sum;
    }
}

/* Gates i o f c; peepholes i o f. */
static void step_lstm(const struct net *net, unsigned d)
{
    const int64_t n = net->hidden;
    const unsigned f = d * net->cell.functions;
    const double *wx = net->sum, *rh = net->sum + 4 * n;
    for (int64_t i = 0; i < n; i++) {
        const union weft_number *p = net->peephole ? net->peephole + (int64_t)d * 3 * n + i : NULL;
        const double in = apply(net, f, wx[i] + rh[i] + (p ? p[0].real * net->c[i] : 0), true);
        const double keep = wx[2 * n + i] + rh[2 * n + i] + (p ? p[2 * n].real * net->c[i] : 0);
        const double forget = net->cell.input_forget ? 1 - in : apply(net, f, keep, true);
        net->c[i] = forget * net->c[i] + in * apply(net, f + 1, wx[3 * n + i] + rh[3 * n + i], true);
        const double out = apply(net, f, wx[n + i] + rh[n + i] + (p ? p[n].real * net->c[i] : 0), true);
        net->h[i] = out * apply(net, f + 2, net->c[i], false);
    }
}

/* Gates z r h. */
static void step_gru(const struct net *net, unsigned d)
{
    const int64_t n = net->hidden;
    const unsigned f = d * net->cell.functions;
    double *wx = net->sum, *rh = net->sum + 3 * n;
    for (int64_t i = 0; i < n; i++)
        net->reset[i] = apply(net, f, wx[n + i] + rh[n + i], true) * (net->cell.linear_before_reset ? 1 : net->h[i]);
    if (!net->cell.linear_before_reset)
        product(net->operand[WEFT_CELL_R] + (int64_t)d * 3 * n * n,
                net->operand[WEFT_CELL_B] + (int64_t)d * 6 * n + 3 * n, 2 * n, 3 * n, n, net->reset, rh);
    for (int64_t i = 0; i < n; i++) {
        const double turn = rh[2 * n + i] * (net->cell.linear_before_reset ? net->reset[i] : 1);
        const double candidate = apply(net, f + 1, wx[2 * n + i] + turn, true);
        const double update = apply(net, f, wx[i] + rh[i], true);
        net->h[i] = (1 - update) * candidate + update * net->h[i];
    }
}

static void step_rnn(const struct net *net, unsigned d)
{
    for (int64_t i = 0; i < net->hidden; i++)
        net->h[i] = apply(net, d, net->sum[i] + net->sum[net->hidden + i], true);
}

static void take_step(const struct net *net, unsigned d, const double *x)
{
    const int64_t n = net->hidden, rows = net->cell.gates * n, at = (int64_t)d * rows;
    const union weft_number *b = net->operand[WEFT_CELL_B] + 2 * at;
    product(net->operand[WEFT_CELL_W] + at * net->inputs, b, 0, rows, net->inputs, x, net->sum);
    product(net->operand[WEFT_CELL_R] + at * n, b + rows, 0, rows, n, net->h, net->sum + rows);
    if (net->cell.gates == 4)
        step_lstm(net, d);
    else if (net->cell.gates == 3)
        step_gru(net, d);
    else
        step_rnn(net, d);
}

static void run_sequence(const struct net *net, unsigned d, int64_t b, double *x)
{
    const int64_t n = net->hidden, state = ((int64_t)d * net->batch + b) * n;
    int64_t length = net->lengths ? net->lengths[b].integer : net->times;
    length = length < 0 ? 0 : length < net->times ? length : net->times;
    for (int64_t i = 0; i < n; i++) {
        net->h[i] = net->operand[WEFT_CELL_H][state + i].real;
        net->c[i] = net->cell.states == 2 ? net->operand[WEFT_CELL_C][state + i].real : 0;
    }
    for (int64_t s = 0; s < length; s++) {
        const int64_t t = net->cell.reverse[d] ? length - 1 - s : s;
        for (int64_t k = 0; k < net->inputs; k++)
            x[k] = net->operand[WEFT_CELL_X][(t * net->batch + b) * net->inputs + k].real;
        take_step(net, d, x);
        union weft_number *y = net->result[0] + ((t * net->cell.directions + d) * net->batch + b) * n;
        for (int64_t i = 0; i < n; i++)
            y[i].real = net->h[i];
    }
    for (int64_t i = 0; i < n; i++) {
        net->result[1][state + i].real = net->h[i];
        if (net->cell.states == 2)
            net->result[2][state + i].real = net->c[i];
    }
}

static bool open_net(struct weft_eval *eval, struct net *net, double **ret_room, int64_t *ret_rooms)
{
    const struct weft_node_info *info = weft_node_of(eval->graph, eval->node);
    bool right = true;
    for (unsigned i = 0; i < info->operands; i++)
        right = (net->operand[i] = weft_eval_numbers(eval, &eval->in[i])) && right;
    for (unsigned i = 0; i < info->results; i++) {
        const int64_t count = weft_tensor_count(&eval->out[i]);
        net->result[i] = weft_eval_scratch(eval, count, sizeof(union weft_number));
        if (net->result[i])
            memset(net->result[i], 0, (size_t)count * sizeof(union weft_number)); /* also the double 0 */
        right = right && net->result[i];
    }
    *ret_rooms = (2 * net->cell.gates + 3) * net->hidden + net->inputs + 1;
    *ret_room = weft_eval_scratch(eval, *ret_rooms, sizeof **ret_room);
    return right && *ret_room;
}

static void run_net(struct weft_eval *eval)
{
    const struct weft_node_info *info = weft_node_of(eval->graph, eval->node);
    const unsigned holes = weft_recurrence_peepholes(eval->graph, eval->node);
    const unsigned lengths = weft_recurrence_lengths(eval->graph, eval->node);
    const struct weft_tensor *x = &eval->in[WEFT_CELL_X];
    struct net net = {.cell = weft_recurrence_of(eval->graph, eval->node),
                      .times = x->extent[0],
                      .batch = x->extent[1],
                      .inputs = x->extent[2],
                      .hidden = eval->in[WEFT_CELL_R].extent[2]};
    double *room;
    int64_t rooms;
    if (open_net(eval, &net, &room, &rooms)) {
        net.peephole = holes ? net.operand[holes] : NULL;
        net.lengths = lengths ? net.operand[lengths] : NULL;
        net.sum = room;
        net.h = net.sum + 2 * net.cell.gates * net.hidden;
        net.c = net.h + net.hidden;
        net.reset = net.c + net.hidden;
        for (unsigned d = 0; d < net.cell.directions; d++)
            for (int64_t b = 0; b < net.batch; b++)
                run_sequence(&net, d, b, net.reset + net.hidden);
        for (unsigned i = 0; i < info->results; i++)
            weft_eval_store_all(&eval->out[i], net.result[i]);
    }
    weft_eval_drop(eval, room, rooms, sizeof *room);
    for (unsigned i = 0; i < info->results; i++)
        weft_eval_drop(eval, net.result[i], weft_tensor_count(&eval->out[i]), sizeof(union weft_number));
    for (unsigned i = 0; i < info->operands; i++)
        weft_eval_drop_numbers(eval, net.operand[i], weft_tensor_count(&eval->in[i]));
}

void weft_eval_lstm(struct weft_eval *eval) { run_net(eval); }
void weft_eval_gru(struct weft_eval *eval) { run_net(eval); }
void weft_eval_rnn(struct weft_eval *eval) { run_net(eval); }
