/* SPDX-License-Identifier: Apache-2.0 */
/* packs_draw.c: a graph of one product or convolution whose weights are constant.
 *
 * Each draw aims at a kind of loops, or they would hardly ever come up; what is computed is then up to the kernels. An
 * axis is a number, a symbol, one less than a symbol (so that it is empty at the hint 1), or odd. */
#include "tests/property/packs.h"

#include <stdio.h>
#include <string.h>

enum { SMALL_ELEMENTS = 1 << 18 }; /* of weights that may be packed in elements smaller than f32 */
enum { MOST_TERMS = 1 << 18 }; /* of all sums of a run: the evaluator takes 10 ns for one */

struct drawing {
    struct weft_draws *choices;
    struct weft_graph *graph;
    struct weft_packs_case *made;
    int64_t most;           /* that a symbol may be */
    bool sliced, last;      /* a larger parameter is sliced; images are channels-last, as a rule */
    weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK];
};

static unsigned pick(struct drawing *d, unsigned n) { return weft_choose(d->choices, n); }
static int64_t between(struct drawing *d, int64_t low, int64_t high)
{
    return low + (int64_t)pick(d, (unsigned)(high - low + 1));
}
#define ONE_OF(d, ...) \
    ((const int64_t[]){__VA_ARGS__}[pick(d, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static weft_dim new_symbol(struct drawing *d, int64_t low, int64_t high)
{
    const uint32_t number = weft_symbol_count(d->graph->dims);
    const int64_t hints[] = {0, 1, 5, low + (high - low) / 2};
    const char name[2] = {(char)('A' + number), 0};
    int64_t hint = hints[pick(d, 4)]; /* 0: none */
    hint = hint && hint < low ? low : hint > high ? high : hint;
    const weft_dim symbol = weft_symbol_add(d->graph->dims, name, low, high, hint);
    for (int run = 0; run < WEFT_PACKS_RUNS; run++) {
        const int64_t edge = run == 0 && hint ? hint : run == 1 ? low : run == 2 ? high : between(d, low, high);
        d->made->size[run][number] = pick(d, 4) == 3 ? between(d, low, high) : edge;
    }
    return symbol;
}

/* An axis of about `extent`, of a parameter that may be larger and is sliced then. */
static weft_dim draw_axis(struct drawing *d, int axis, int64_t extent)
{
    struct weft_dims *dims = d->graph->dims;
    const unsigned kind = weft_symbol_count(dims) < 4 ? pick(d, 6) : 0;
    d->start[axis] = weft_dim_of(0);
    if (kind < 2)
        return d->end[axis] = weft_dim_of(extent);
    const int64_t high = extent * 2 > d->most ? d->most : extent * 2;
    if (kind == 5)
        return d->end[axis] = weft_dim_add(dims, weft_dim_mul(dims, new_symbol(d, 0, (high + 1) / 2), weft_dim_of(2)),
                                           weft_dim_of(1));
    const weft_dim symbol = new_symbol(d, 0, high);
    if (kind == 4) {
        d->sliced = true;
        d->start[axis] = weft_dim_min(dims, symbol, weft_dim_of(1));
    }
    return d->end[axis] = symbol;
}

/* A padding that only a parameter of its own says: what is before an axis, or behind it. */
static weft_dim draw_pad(struct drawing *d, int64_t high)
{
    if (weft_symbol_count(d->graph->dims) >= 5 || pick(d, 8) != 7)
        return weft_dim_of(between(d, 0, high));
    const weft_dim pad = new_symbol(d, 0, high + 1);
    weft_add_param(d->graph, NULL, &(struct weft_type){.dtype = WEFT_F32, .rank = 1, .extent = {pad}});
    return pad;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static weft_val build(struct drawing *d, int op, weft_val a, weft_val b, unsigned attrs, const struct weft_attr *attr)
{
    const weft_val operand[] = {a, b};
    const weft_node node = weft_add_node(d->graph, &(struct weft_node_spec){.op = op, .operand = operand, .attr = attr,
                                                                            .operands = b.id ? 2 : 1, .attrs = attrs});
    return node.id ? weft_result(d->graph, node, 0) : WEFT_NO_VALUE;
}

/* Channels-last of an image, by columns of a matrix. */
static void turn(struct drawing *d, weft_val v)
{
    static const char *const orders[] = {[2] = "{1 0}", "{0 2 1}", "{0 2 3 1}", "{0 2 3 4 1}"};
    weft_set_layout(d->graph, v, orders[weft_type_of(d->graph, v)->rank]);
}

static weft_val draw_operand(struct drawing *d, int rank, bool image)
{
    struct weft_type type = {.dtype = WEFT_F32, .rank = (uint8_t)rank};
    memcpy(type.extent, d->end, sizeof type.extent);
    const weft_val x = weft_add_param(d->graph, NULL, &type);
    if ((image && d->last) || pick(d, 6) == 5)
        turn(d, x);
    if (!d->sliced)
        return x;
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_start, (unsigned)rank, d->start),
                                     weft_attr_of_dims(WEFT_ATTR_end, (unsigned)rank, d->end)};
    return build(d, WEFT_OP_slice, x, WEFT_NO_VALUE, 2, attr);
}

/* At an odd address, so that nothing reads them where they lie: what a plan does not keep is not there. */
static weft_val draw_weights(struct drawing *d, int rank, const int64_t *extent)
{
    struct weft_type type = {.dtype = WEFT_F32, .rank = (uint8_t)rank};
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        type.extent[i] = weft_dim_of(extent[i]);
        count *= extent[i];
    }
    struct weft_blob *const blob = weft_blob_new(d->graph->context, (size_t)count * sizeof(float) + 1);
    uint64_t state = (uint64_t)count * 977 + pick(d, 1000);
    /* Numbers of i8, u8, bf16, or f16 alone, which large packs of few rows have as such. */
    const unsigned numbers = count >= SMALL_ELEMENTS ? pick(d, 4) : 0;
    const float shift = numbers == 1 ? 0 : -3, times = (float[]){1, 36, 64, 259}[numbers];
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const float element = ((float)(state >> 33 & 7) + shift) * times;
        memcpy((char *)blob->data + 1 + (size_t)i * sizeof element, &element, sizeof element);
    }
    weft_graph_hold(d->graph, blob);
    const struct weft_constant constant = {.kind = WEFT_CONST_BLOB, .blob = blob, .offset = 1};
    const weft_node node = weft_add_node(d->graph, &(struct weft_node_spec){.op = WEFT_OP_const, .stated = &type,
                                                                            .constant = &constant});
    weft_val w = weft_result(d->graph, node, 0);
    if (pick(d, 5) == 4) { /* weights that somebody wanted in another order */
        w = build(d, WEFT_OP_relayout, w, WEFT_NO_VALUE, 0, NULL);
        turn(d, w);
    }
    return w;
}

static void finish(struct drawing *d, weft_val y, bool image)
{
    if (!y.id)
        return;
    if ((image && d->last != (pick(d, 4) == 3)) || pick(d, 8) == 7)
        turn(d, y);
    else if (pick(d, 4) == 3)
        weft_set_layout(d->graph, y, "{?}");
    weft_add_return(d->graph, y, WEFT_NO_VALUE);
}

/* --- products ----------------------------------------------------------------------------------------------------- */

static void draw_product(struct drawing *d)
{
    const int64_t n = ONE_OF(d, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 24, 64, 65, 100, 510);
    const bool large = n == 510;
    const int64_t k = large ? 520 : ONE_OF(d, 1, 7, 8, 31, 32, 33, 64, 100, 520, 600, 4096, 5003);
    const int64_t m = large ? between(d, 1, 4) : ONE_OF(d, 1, 2, 3, 7, 8, 20, 70);
    const int rank = pick(d, 6) == 5 ? 3 : 2;
    const bool trans_a = pick(d, 5) == 4, trans_b = pick(d, 2);
    const int64_t fits = MOST_TERMS / (n * k) + 1;
    d->most = large ? 20 : fits < 100 ? fits : 100;
    if (rank == 3)
        draw_axis(d, 0, 1);
    draw_axis(d, rank - 2 + trans_a, m);
    d->start[rank - 1 - trans_a] = weft_dim_of(0), d->end[rank - 1 - trans_a] = weft_dim_of(k);
    const int64_t extent[] = {trans_b ? n : k, trans_b ? k : n};
    const weft_val a = draw_operand(d, rank, false);
    weft_val b = draw_weights(d, 2, extent);
    if (rank == 3) { /* one matrix for all products: what has another rank is no operand of a product */
        struct weft_builder builder = {.graph = d->graph};
        struct weft_type type = {.dtype = WEFT_F32, .rank = 3, .extent = {weft_type_of(d->graph, a)->extent[0],
                                 weft_dim_of(extent[0]), weft_dim_of(extent[1])}};
        b = weft_build_bcast(&builder, b, &type, (const int[]){1, 2});
    }
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_trans_a, trans_a),
                                     weft_attr_of_int(WEFT_ATTR_trans_b, trans_b)};
    finish(d, build(d, WEFT_OP_matmul, a, b, 2, attr), false);
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

enum aim { DENSE, POINT, DEPTHWISE, GROUPED, THIN, TRANSFORMED, ADJOINT, AIMS };
struct window {
    int spatial;
    int64_t groups, c, o; /* of a group */
    int64_t extent[3], kernel[3], stride[3], dilation[3];
    bool transposed;
};

static void draw_channels(struct drawing *d, enum aim aim, struct window *w)
{
    w->groups = pick(d, 8) == 7 ? 2 : 1;
    w->c = between(d, 1, 20), w->o = ONE_OF(d, 1, 2, 5, 7, 8, 9, 12, 16, 17, 31, 48, 65);
    if (aim == DEPTHWISE)
        w->groups = between(d, 2, 36), w->c = 1, w->o = pick(d, 5) == 4 ? 2 : 1;
    else if (aim == GROUPED)
        w->groups = between(d, 2, 20), w->c = w->o = ONE_OF(d, 2, 4, 8, 3, 4);
    else if (aim == THIN)
        w->c = between(d, 1, 4), w->o = between(d, 1, 16);
    else if (aim == TRANSFORMED)
        w->c = between(d, 16, 24), w->o = ONE_OF(d, 8, 9, 16, 17, 33, 66);
    if (aim == GROUPED && pick(d, 3) == 2)
        w->o = between(d, 1, 4);
}

static void draw_window_axis(struct drawing *d, enum aim aim, int axis, struct window *w)
{
    const bool outer = w->spatial == 3 && axis == 0;
    w->kernel[axis] = outer ? between(d, 1, 2) : ONE_OF(d, 3, 3, 1, 2, 5, 4, 7);
    w->stride[axis] = outer ? 1 : ONE_OF(d, 1, 1, 1, 2, 2, 3, 4);
    w->dilation[axis] = pick(d, 6) == 5 ? 2 : 1;
    if ((aim == DEPTHWISE || aim == GROUPED) && pick(d, aim == GROUPED ? 4 : 2)) {
        w->kernel[axis] = aim == GROUPED ? 3 : ONE_OF(d, 3, 3, 5, 7);
        w->stride[axis] = between(d, 1, 2), w->dilation[axis] = 1;
    }
    if (aim == POINT)
        w->kernel[axis] = w->stride[axis] = w->dilation[axis] = 1;
    if (aim == TRANSFORMED)
        w->kernel[axis] = 3, w->stride[axis] = w->dilation[axis] = 1;
    if (aim == ADJOINT)
        w->stride[axis] = outer ? 1 : ONE_OF(d, 2, 2, 1, 3);
    w->extent[axis] = outer ? between(d, 1, 3) : ONE_OF(d, 6, 7, 9, 12, 14, 16, 19, 28, 40);
}

static struct window draw_window(struct drawing *d)
{
    const unsigned drawn = pick(d, AIMS + 1);
    const enum aim aim = drawn == AIMS ? TRANSFORMED : (enum aim)drawn;
    struct window w = {.spatial = aim == TRANSFORMED ? 2 : (int)ONE_OF(d, 2, 2, 2, 1, 3)};
    w.transposed = aim == ADJOINT || pick(d, 3) == 2;
    draw_channels(d, aim, &w);
    const bool still = w.transposed && aim != ADJOINT && pick(d, 4); /* a convolution with its taps reversed */
    for (int i = 0; i < w.spatial; i++) {
        draw_window_axis(d, aim, i, &w);
        w.stride[i] = still ? 1 : w.stride[i];
    }
    return w;
}

/* Terms of all sums of an image at the largest sizes; the largest that an axis may be. */
static int64_t limit(const struct window *w)
{
    const bool transforms = w->c >= 16 && w->spatial == 2; /* pay for large maps only */
    int64_t terms = w->groups * w->c * w->o * (transforms ? 1 : 3), most = 80;
    for (int i = 0; i < w->spatial; i++)
        terms *= w->kernel[i];
    while (most > 12) {
        int64_t pixels = 1;
        for (int i = 0; i < w->spatial; i++)
            pixels *= w->extent[i] * 2 < most ? w->extent[i] * 2 : most;
        if (terms * pixels <= MOST_TERMS)
            break;
        most--;
    }
    return most;
}

static void draw_convolution(struct drawing *d)
{
    const struct window w = draw_window(d);
    d->last = pick(d, 2);
    weft_dim pad[6];
    int64_t extent[5] = {w.groups * w.o, w.c}, out_pad[3];
    d->most = 4;
    draw_axis(d, 0, between(d, 1, 2));
    d->most = limit(&w);
    d->start[1] = weft_dim_of(0), d->end[1] = weft_dim_of(w.groups * w.c);
    for (int i = 0; i < w.spatial; i++) {
        const int64_t reach = (w.kernel[i] - 1) * w.dilation[i];
        const int64_t least = w.transposed ? 1 : reach > 2 ? reach : 2;
        draw_axis(d, 2 + i, w.extent[i] > least ? w.extent[i] < d->most ? w.extent[i] : d->most : least);
        pad[i] = draw_pad(d, reach > 3 ? 3 : reach), pad[w.spatial + i] = draw_pad(d, reach > 3 ? 3 : reach);
        extent[2 + i] = w.kernel[i];
        out_pad[i] = w.transposed ? between(d, 0, w.stride[i] - 1) : 0;
    }
    if (w.transposed)
        extent[0] = w.groups * w.c, extent[1] = w.o;
    const unsigned spatial = (unsigned)w.spatial;
    const struct weft_attr attr[] = {weft_attr_of_ints(d->graph, WEFT_ATTR_stride, spatial, w.stride),
                                     weft_attr_of_ints(d->graph, WEFT_ATTR_dilation, spatial, w.dilation),
                                     weft_attr_of_dims(WEFT_ATTR_pad, 2 * spatial, pad),
                                     weft_attr_of_int(WEFT_ATTR_groups, w.groups),
                                     weft_attr_of_ints(d->graph, WEFT_ATTR_out_pad, spatial, out_pad)};
    const weft_val x = draw_operand(d, w.spatial + 2, true), weights = draw_weights(d, w.spatial + 2, extent);
    const int op = w.transposed ? WEFT_OP_conv_transpose : WEFT_OP_conv;
    const int64_t terms = w.c * w.kernel[0] * (w.spatial > 1 ? w.kernel[1] : 1) * (w.spatial > 2 ? w.kernel[2] : 1);
    const unsigned arithmetic = pick(d, 3);
    d->made->flags |= arithmetic == 1 ? WEFT_COMPILE_NO_WINOGRAD : arithmetic == 2 ? WEFT_COMPILE_WINOGRAD_4 : 0;
    d->made->tolerance = arithmetic == 2 ? 1e-4 * (double)terms : 0; /* whose sixths and 24ths are rounded */
    finish(d, build(d, op, x, weights, w.transposed ? 5 : 4, attr), true);
}

void weft_packs_draw(struct weft_context *context, struct weft_draws *choices, uint64_t seed,
                     struct weft_packs_case *ret)
{
    char name[32];
    snprintf(name, sizeof name, "g%llu", (unsigned long long)seed);
    *ret = (struct weft_packs_case){.graph = weft_graph_new(context, name)};
    struct drawing d = {.choices = choices, .graph = ret->graph, .made = ret};
    ret->threads = 1 + (int)pick(&d, 2);
    ret->flags = pick(&d, 3) == 2 ? WEFT_COMPILE_NO_PASSES : 0;
    if (pick(&d, 4) == 3)
        draw_product(&d);
    else
        draw_convolution(&d);
}
