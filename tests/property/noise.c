/* SPDX-License-Identifier: Apache-2.0 */
/* noise.c: the graph evaluated with each value moved by what a kernel may be off there, up or down at random.
 *
 * How far a kernel may be off one op: noise.h. Every second time 16-bit values are mostly kept in f32 (wide.c), as a
 * group of fused nodes keeps them: not rounded, and with the range of f32.
 *
 * Bodies are entered, so that a loop is moved in each trip; the recursion is that of bodies in bodies. */
#include "tests/property/noise.h"
#include "eval/eval.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct noise_run {
    const struct weft_graph *graph;
    struct weft_context *context;
    int64_t *symbols;
    uint64_t *state; /* 0: no noise */
    bool wide;       /* 16-bit values may stay f32 */
    bool only_wide;  /* and nothing is moved */
    bool nans;       /* only signs that nobody promises are turned: of NaNs, and of zeros that ops may give either of */
};

static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double unit_of(int dtype)
{
    return dtype == WEFT_F64 ? DBL_EPSILON : dtype == WEFT_F32 ? FLT_EPSILON : dtype == WEFT_F16 ? 0x1p-10 : 0x1p-7;
}

static double most_of(int dtype)
{
    return dtype == WEFT_F64 ? DBL_MAX : dtype == WEFT_F16 ? 65504 : FLT_MAX;
}

static double least_of(int dtype)
{
    return dtype == WEFT_F64 ? DBL_MIN : dtype == WEFT_F16 ? 0x1p-14 : FLT_MIN;
}

static bool can_move(const struct weft_tensor *tensor)
{
    return weft_dtype_is_float(tensor->dtype) && !weft_dtype_is_storage_only(tensor->dtype);
}

/* Moves each element by so many units of `scale`, or of itself where that is NULL. */
static void move(struct noise_run *run, const struct weft_tensor *tensor, double units, const double *scale)
{
    const int64_t count = weft_tensor_count(tensor);
    const double unit = unit_of(tensor->dtype), most = most_of(tensor->dtype), least = least_of(tensor->dtype);
    for (int64_t i = 0; i < count; i++) {
        const double x = weft_load_real(tensor->dtype, tensor->data, i), size = fabs(scale ? scale[i] : x);
        const uint64_t bits = next_bits(run->state);
        if (scale && size > most) {
            static const double any[] = {INFINITY, -INFINITY, NAN, 0, 1};
            weft_store_real(tensor->dtype, tensor->data, i, bits & 8 ? any[(bits >> 4) % 5] : x);
        } else if (isfinite(x) && size > 0) { /* below the normal numbers, units are what they are there */
            const double part = bits & 2 ? 1 : (double)(bits >> 40) * 0x1p-24; /* or periods would hide all between */
            const double step = part * units * unit * (size > least ? size : least);
            const double moved = bits & 1 ? x + step : x - step;
            weft_store_real(tensor->dtype, tensor->data, i, step >= fabs(x) && bits & 4 ? 0 : moved);
        }
    }
}

static void forget_overflows(struct noise_run *run, const struct weft_tensor *tensor, const double *size)
{
    for (int64_t i = weft_tensor_count(tensor) - 1; i >= 0; i--)
        if (size[i] > most_of(tensor->dtype) && next_bits(run->state) & 1)
            weft_store_real(tensor->dtype, tensor->data, i, next_bits(run->state) & 1 ? NAN : INFINITY);
}

/* Norms divide by a root of a sum of squares, which may be beyond the type: then the quotient is 0. */
static void forget_squares(struct noise_run *run, const struct weft_tensor *in, const struct weft_tensor *out)
{
    const double most = most_of(in->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32);
    double sum = 0;
    if (!can_move(in))
        return;
    const struct weft_tensor packed = weft_packed_copy(in);
    for (int64_t i = weft_tensor_count(in) - 1; i >= 0; i--)
        sum += pow(weft_load_real(in->dtype, packed.data, i), 2);
    free(packed.data);
    for (int64_t i = weft_tensor_count(out) - 1; i >= 0 && sum > most; i--)
        if (next_bits(run->state) & 1)
            weft_store_real(out->dtype, out->data, i, 0);
}

static void turn_zeros(struct noise_run *run, const struct weft_tensor *tensor)
{
    const int64_t count = weft_tensor_count(tensor);
    for (int64_t i = 0; i < count; i++)
        if (weft_load_real(tensor->dtype, tensor->data, i) == 0)
            weft_store_real(tensor->dtype, tensor->data, i, next_bits(run->state) & 1 ? -0.0 : 0);
}

/* Which NaN comes out is nobody's promise: its sign may be either, for copysign and bitcast to find; mostly that of all
 * others that the op makes. */
static void turn_nans(struct noise_run *run, const struct weft_tensor *tensor)
{
    const int64_t count = can_move(tensor) ? weft_tensor_count(tensor) : 0;
    const uint64_t like = next_bits(run->state);
    for (int64_t i = 0; i < count; i++)
        if (isnan(weft_load_real(tensor->dtype, tensor->data, i)))
            weft_store_real(tensor->dtype, tensor->data, i,
                            (like & 2 ? like : next_bits(run->state)) & 1 ? NAN : -NAN);
}

/* --- a node ------------------------------------------------------------------------------------------------------- */

static bool evaluate_plainly(struct noise_run *run, weft_node node, const struct weft_tensor *in,
                             struct weft_tensor *out)
{
    struct weft_eval eval = {.graph = run->graph, .node = node, .symbols = run->symbols, .context = run->context,
                             .in = in, .out = out};
    return weft_eval_node(&eval);
}

enum change { MOVED, MAGNITUDES, AT_LEAST_1 }; /* AT_LEAST_1: magnitudes, those below 1 are 1 */

/* A packed copy with its elements' magnitudes as doubles, or moved. */
static struct weft_tensor copy_of(struct noise_run *run, const struct weft_tensor *tensor, enum change change)
{
    struct weft_tensor copy = weft_packed_copy(tensor);
    const int64_t count = weft_tensor_count(&copy);
    if (change == MOVED || !can_move(&copy)) {
        if (can_move(&copy))
            move(run, &copy, 2, NULL);
        return copy;
    }
    struct weft_tensor wide = copy;
    wide.dtype = WEFT_F64;
    double *size = wide.data = calloc((size_t)count + 1, sizeof *size);
    if (!size)
        abort();
    for (int64_t i = 0; i < count; i++) {
        size[i] = fabs(weft_load_real(copy.dtype, copy.data, i));
        if (size[i] < 1 && change == AT_LEAST_1)
            size[i] = 1;
    }
    free(copy.data);
    return wide;
}

/* Evaluates on changed operands: moved ones, or on their magnitudes into doubles. */
static void evaluate_changed(struct noise_run *run, weft_node node, const struct weft_tensor *in,
                             struct weft_tensor *out, enum change change)
{
    const unsigned operands = weft_node_of(run->graph, node)->operands;
    struct weft_tensor changed[8];
    for (unsigned i = 0; i < operands && i < 8; i++)
        changed[i] = copy_of(run, &in[i], change);
    if (!evaluate_plainly(run, node, changed, out))
        abort();
    for (unsigned i = 0; i < operands && i < 8; i++)
        free(changed[i].data);
}

/* Opened, a convolution multiplies weights by the zeros between elements, and attention values by the zeros of keys
 * that have no weight (FORMAT.md): there an infinity makes NaNs, or does not. Gates of recurrent networks are as small
 * as exp(-88) or less: whether one is a zero when it meets an infinity depends on the type that it is held in. */
static void spread_infinities(struct noise_run *run, unsigned operands, const struct weft_tensor *in,
                              struct weft_tensor *out)
{
    bool finite = true;
    for (unsigned i = 0; i < operands; i++) {
        const struct weft_tensor packed = copy_of(run, &in[i], MAGNITUDES);
        for (int64_t k = weft_tensor_count(&in[i]) - 1; k >= 0 && finite; k--)
            finite = isfinite(weft_load_real(packed.dtype, packed.data, k));
        free(packed.data);
    }
    static const uint64_t eighths[] = {1, 4, 8, 8}; /* an infinite weight may meet zeros in every sum */
    const uint64_t kind = next_bits(run->state) % 4, often = eighths[kind];
    for (int64_t i = weft_tensor_count(out) - 1; i >= 0 && !finite; i--)
        if (next_bits(run->state) % 8 < often) /* zeros that are known are left out, and with them NaN */
            weft_store_real(out->dtype, out->data, i, kind == 3 || next_bits(run->state) & 3 ? NAN : 0.5);
}

/* A transform by factors of its length adds up all of a line for each result, and takes away again what has no part in
 * it: so all results of a line are as far off as the largest. */
static void level_lines(const struct weft_graph *graph, weft_node node, const struct weft_tensor *sums)
{
    const int axis = (int)weft_dim_value(weft_attr_at(graph, node, WEFT_ATTR_axis, 0));
    const int64_t length = sums->extent[axis], parts = sums->extent[sums->rank - 1]; /* real, and maybe imaginary */
    int64_t inner = parts;
    for (int i = axis + 1; i < sums->rank - 1; i++)
        inner *= sums->extent[i];
    for (int64_t line = 0; line < weft_tensor_count(sums) / length; line += parts) {
        double *const first = (double *)sums->data + line / inner * inner * length + line % inner;
        double most = 0;
        for (int64_t i = 0; i < length * parts; i++)
            most = fmax(most, fabs(first[i / parts * inner + i % parts]));
        for (int64_t i = 0; i < length * parts; i++)
            first[i / parts * inner + i % parts] = most;
    }
}

/* What a group keeps in registers has fractions where 16 bits are too few for them: a power of a negative number is NaN
 * then, or has the other sign. */
static void forget_wholes(struct noise_run *run, const struct weft_tensor *in, const struct weft_tensor *out)
{
    const struct weft_tensor base = weft_packed_copy(&in[0]), exponent = weft_packed_copy(&in[1]);
    const double fractions = 1 / unit_of(out->dtype);
    for (int64_t i = weft_tensor_count(out) - 1; i >= 0; i--)
        if (weft_load_real(base.dtype, base.data, i) < 0 &&
            fabs(weft_load_real(exponent.dtype, exponent.data, i)) >= fractions && next_bits(run->state) & 1)
            weft_store_real(out->dtype, out->data, i, NAN);
    free(base.data);
    free(exponent.data);
}

/* A factor of a function, like the exponential in x / (1 + exp(x)), may be 0 where the result is far below the normal
 * numbers. */
static void forget_smallest(struct noise_run *run, const struct weft_tensor *out)
{
    const double least = least_of(out->dtype) * 0x1p-8;
    for (int64_t i = weft_tensor_count(out) - 1; i >= 0; i--) {
        const double x = weft_load_real(out->dtype, out->data, i);
        if (fabs(x) < least && next_bits(run->state) & 1)
            weft_store_real(out->dtype, out->data, i, copysign(0, x));
    }
}

/* Nor is anything there too large for 16 bits. */
static void forget_ends(struct noise_run *run, const struct weft_tensor *out)
{
    for (int64_t i = weft_tensor_count(out) - 1; i >= 0; i--) {
        const double x = weft_load_real(out->dtype, out->data, i);
        if (isinf(x) && next_bits(run->state) & 1)
            weft_store_real(out->dtype, out->data, i, copysign(most_of(out->dtype), x));
    }
}

/* In the gradient of attention two sums are taken from each other, and what is left may be nothing but their roundings.
 * Here they are added up: with magnitudes of the gradient and of the values, and results below zero. */
static void move_by_terms(struct noise_run *run, weft_node node, const struct weft_tensor *in, struct weft_tensor *out)
{
    enum { DY, VALUES = 3, Y, OPERANDS = 7, RESULTS = 3 };
    const unsigned operands = weft_node_of(run->graph, node)->operands;
    struct weft_tensor changed[OPERANDS], terms[RESULTS];
    for (unsigned i = 0; i < operands; i++) {
        changed[i] = weft_packed_copy(&in[i]);
        for (int64_t k = weft_tensor_count(&in[i]) - 1; k >= 0 && (i == DY || i == VALUES || i == Y); k--)
            weft_store_real(in[i].dtype, changed[i].data, k,
                            fabs(weft_load_real(in[i].dtype, changed[i].data, k)) * (i == Y ? -1 : 1));
    }
    for (unsigned i = 0; i < RESULTS; i++) {
        terms[i] = out[i];
        terms[i].dtype = WEFT_F64;
        terms[i].data = calloc((size_t)weft_tensor_count(&out[i]) + 1, sizeof(double));
    }
    if (!terms[0].data || !terms[1].data || !terms[2].data || !evaluate_plainly(run, node, changed, terms))
        abort();
    for (unsigned i = 0; i < RESULTS; i++) {
        move(run, &out[i], 8, terms[i].data);
        free(terms[i].data);
    }
    for (unsigned i = 0; i < operands; i++)
        free(changed[i].data);
}

static void add_noise(struct noise_run *run, weft_node node, const struct weft_tensor *in, struct weft_tensor *out)
{
    const int op = weft_opcode_of(run->graph, node);
    const enum weft_noise_amount amount = weft_noise_amount_of(op);
    if (amount == WEFT_NOISE_NOTHING || !can_move(out) || weft_tensor_count(out) == 0)
        return;
    const unsigned results = weft_node_of(run->graph, node)->results;
    if (amount == WEFT_NOISE_EITHER_ZERO)
        turn_zeros(run, out);
    else if (results > 1) { /* recurrent networks, attention: what counts is how operands move them */
        evaluate_changed(run, node, in, out, MOVED);
        if (op == WEFT_OP_attention_grad)
            move_by_terms(run, node, in, out);
        for (unsigned i = 0; i < results && op == WEFT_OP_attention_grad; i++)
            forget_smallest(run, &out[i]); /* weights below the smallest normal number are 0 */
        for (unsigned i = 0; i < results; i++) {
            move(run, &out[i], 16, NULL);
            turn_zeros(run, &out[i]); /* a product that is below the type has a sign on the way, or is a zero */
            spread_infinities(run, weft_node_of(run->graph, node)->operands, in, &out[i]);
            if (op == WEFT_OP_attention_grad && weft_dtype_is_half(out[i].dtype)) /* others are bounded */
                forget_ends(run, &out[i]);
        }
    }
    else if (amount == WEFT_NOISE_ROUNDING || amount == WEFT_NOISE_FUNCTION) {
        move(run, out, amount == WEFT_NOISE_ROUNDING ? 1 : 4, NULL);
        if (amount == WEFT_NOISE_FUNCTION)
            forget_smallest(run, out);
        if (weft_dtype_is_half(out->dtype))
            forget_ends(run, out);
        if (op == WEFT_OP_pow && weft_dtype_is_half(out->dtype))
            forget_wholes(run, in, out);
    }
    else {
        if (amount == WEFT_NOISE_OPAQUE)
            evaluate_changed(run, node, in, out, MOVED);
        struct weft_tensor sums = *out;
        sums.dtype = WEFT_F64;
        sums.data = calloc((size_t)weft_tensor_count(out) + 1, sizeof(double));
        if (!sums.data)
            abort();
        const double terms = (double)weft_tensor_count(&in[0]);
        if (op == WEFT_OP_prod || op == WEFT_OP_cumprod) { /* in another order it may overflow before it meets a 0 */
            evaluate_changed(run, node, in, &sums, AT_LEAST_1);
            forget_overflows(run, out, sums.data);
        }
        evaluate_changed(run, node, in, &sums, MAGNITUDES);
        if (op == WEFT_OP_dft)
            level_lines(run->graph, node, &sums);
        move(run, out, 4 + sqrt(terms), sums.data);
        if (amount == WEFT_NOISE_OPAQUE) {
            move(run, out, 4, NULL);
            forget_squares(run, in, out);
        }
        turn_zeros(run, out);
        if (op == WEFT_OP_attention || op == WEFT_OP_conv_transpose)
            spread_infinities(run, op == WEFT_OP_attention ? 3 : 2, in, out);
        free(sums.data);
    }
}

/* --- bodies ------------------------------------------------------------------------------------------------------- */

static bool run_graph(struct noise_run *run, const struct weft_tensor *in, struct weft_tensor *out);

static bool run_body(const struct noise_run *run, const struct weft_graph *body, const struct weft_tensor *in,
                     struct weft_tensor *out)
{
    struct noise_run inner = *run;
    inner.graph = body;
    return run_graph(&inner, in, out);
}

void *weft_trial_allocate(struct weft_context *context, const struct weft_tensor *tensor)
{
    void *data = weft_allocate(context, weft_tensor_bytes(tensor));
    if (data)
        weft_context_hold(context);
    return data;
}

static void release(const struct noise_run *run, struct weft_tensor *tensor, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        weft_tensor_free(run->context, &tensor[i]);
}

static bool run_if(struct noise_run *run, weft_node node, const struct weft_tensor *in, struct weft_tensor *out)
{
    const int key = weft_load_integer(WEFT_BOOL, in[0].data, 0) ? WEFT_ATTR_then : WEFT_ATTR_else;
    const struct weft_graph *body = weft_attr_find(run->graph, node, key)->graph;
    struct weft_tensor *result = calloc(body->returns + 1, sizeof *result);
    bool done = result && run_body(run, body, in + 1, result);
    for (uint32_t i = 0; i < body->returns && done; i++)
        weft_tensor_copy(&out[i], 0, &result[i], 0);
    if (result)
        release(run, result, body->returns);
    free(result);
    return done;
}

/* What is collected becomes element `trip` along axis 0. */
static void collect(const struct weft_tensor *whole, const struct weft_tensor *element, int64_t trip)
{
    const size_t bytes = (size_t)weft_dtype_bytes(element->dtype, weft_tensor_count(element));
    memcpy((char *)whole->data + (size_t)trip * bytes, element->data, bytes);
}

static bool run_loop(struct noise_run *run, weft_node node, const struct weft_tensor *in, struct weft_tensor *out)
{
    const struct weft_node_info *info = weft_node_of(run->graph, node);
    const struct weft_graph *body = weft_attr_find(run->graph, node, WEFT_ATTR_body)->graph;
    const struct weft_attr *attr = weft_attr_find(run->graph, node, WEFT_ATTR_carried);
    const uint32_t carried = attr ? (uint32_t)weft_dim_value(attr->integer) : info->operands - 1;
    const bool asks = weft_attr_int(run->graph, node, WEFT_ATTR_while) != 0;
    struct weft_tensor argument[16] = {{0}}, result[16];
    int64_t trip = 0, most = weft_load_integer(WEFT_I64, in[0].data, 0);
    for (uint32_t i = 1; i < info->operands; i++)
        argument[i] = in[i];
    argument[0] = (struct weft_tensor){.data = &trip, .dtype = WEFT_I64};
    for (uint32_t i = 0; i < info->results; i++)
        if (i < carried) {
            weft_tensor_copy(&out[i], 0, &in[1 + i], 0);
            argument[1 + i] = out[i];
        } else {
            memset(out[i].data, 0, weft_tensor_bytes(&out[i]));
            most = out[i].extent[0] < most ? out[i].extent[0] : most;
        }
    for (; trip < most && !(asks && !weft_load_integer(WEFT_BOOL, argument[1].data, 0)); trip++) {
        memset(result, 0, sizeof result);
        if (!run_body(run, body, argument, result))
            return false;
        for (uint32_t i = 0; i < info->results; i++)
            if (i < carried)
                weft_tensor_copy(&out[i], 0, &result[i], 0);
            else
                collect(&out[i], &result[i], trip);
        release(run, result, info->results);
    }
    return true;
}

/* --- a graph ------------------------------------------------------------------------------------------------------ */

static bool run_on(struct noise_run *run, weft_node node, const struct weft_tensor *in, struct weft_tensor *out,
                   bool wide)
{
    const struct weft_node_info *info = weft_node_of(run->graph, node);
    const int op = info->op;
    struct weft_eval eval = {.graph = run->graph, .node = node, .symbols = run->symbols, .context = run->context,
                             .in = in};
    char message[256];
    if (weft_ops[op].traits & WEFT_DATA &&
        (!weft_eval_define_symbols(&eval) ||
         !weft_check_sizes_found(run->graph, node, run->symbols, message, sizeof message)))
        return false;
    for (unsigned i = 0; i < info->results; i++) {
        weft_tensor_of(run->graph, weft_type_of(run->graph, weft_result(run->graph, node, i)), run->symbols, &out[i]);
        if (wide && op != WEFT_OP_cast && weft_dtype_is_half(out[i].dtype)) {
            out[i].dtype = WEFT_F32;
            weft_tensor_dense(&out[i]);
        }
        out[i].data = weft_trial_allocate(run->context, &out[i]);
        if (!out[i].data)
            return false;
    }
    if (op == WEFT_OP_if || op == WEFT_OP_loop)
        return op == WEFT_OP_if ? run_if(run, node, in, out) : run_loop(run, node, in, out);
    if (!evaluate_plainly(run, node, in, out))
        return false;
    if (run->state) {
        if (!run->nans && !run->only_wide)
            add_noise(run, node, in, out);
        else if (weft_noise_amount_of(op) == WEFT_NOISE_EITHER_ZERO && can_move(out))
            turn_zeros(run, out);
        turn_nans(run, out);
    }
    return true;
}

static bool run_node(struct noise_run *run, weft_node node, struct weft_tensor *value)
{
    const struct weft_node_info *info = weft_node_of(run->graph, node);
    struct weft_tensor in[64]; /* a transposed convolution's phases are joined by one concat */
    const bool wide = run->wide && weft_may_be_wide(run->graph, node) && next_bits(run->state) & 3;
    for (unsigned i = 0; i < info->operands && i < 64; i++) {
        const weft_val operand = weft_operand(run->graph, node, i);
        in[i] = weft_widened(run->graph, operand, &value[operand.id], wide);
    }
    const bool done = run_on(run, node, in, &value[info->first_result], wide);
    for (unsigned i = 0; i < info->operands && i < 64; i++)
        if (in[i].data != value[weft_operand(run->graph, node, i).id].data)
            free(in[i].data);
    return done;
}

static bool run_graph(struct noise_run *run, const struct weft_tensor *in, struct weft_tensor *out)
{
    const struct weft_graph *g = run->graph;
    struct weft_tensor *value = calloc(g->values, sizeof *value);
    bool done = value;
    for (uint32_t i = 0; i < g->params && done; i++)
        value[g->param[i].id] = in[i];
    weft_foreach_node(g, node) done = done && run_node(run, node, value);
    for (uint32_t i = 0; i < g->returns && done; i++) {
        const struct weft_tensor *from = &value[g->ret[i].value.id];
        const struct weft_tensor narrow = weft_widened(g, g->ret[i].value, from, false);
        out[i] = narrow;
        weft_tensor_dense(&out[i]);
        out[i].data = weft_trial_allocate(run->context, &out[i]);
        done = out[i].data;
        if (done)
            weft_tensor_copy(&out[i], 0, &narrow, 0);
        if (narrow.data != from->data)
            free(narrow.data);
    }
    for (uint32_t i = 1; value && i < g->values; i++)
        if (g->value[i].def.id)
            weft_tensor_free(run->context, &value[i]);
    free(value);
    return done;
}

bool weft_noisy_evaluate(const struct weft_graph *graph, int64_t *symbols, const struct weft_tensor *in,
                         struct weft_tensor *out, uint64_t seed, bool nans)
{
    uint64_t state = seed;
    struct noise_run run = {.graph = graph, .context = graph->context, .symbols = symbols,
                            .state = seed ? &state : NULL, .nans = nans,
                            .wide = seed % 2 && !nans, .only_wide = seed % 4 == 3 && !nans};
    return run_graph(&run, in, out);
}
