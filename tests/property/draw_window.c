/* SPDX-License-Identifier: Apache-2.0 */
/* draw_window.c: contractions, windows, what reads between elements, norms, quantised types. Shapes that
 * have to fit each other are drawn together; operands of such shapes are then obtained. */
#include "tests/property/random_graph.h"

static weft_dim small(struct weft_maker *m) { return weft_dim_of(1 + weft_draw(m, 3)); }

static int accumulator(struct weft_maker *m, int dtype, struct weft_attr *ret)
{
    const bool narrow = weft_dtype_is_int(dtype) && weft_dtype_bits(dtype) <= 16;
    const int acc = dtype == WEFT_F16 || dtype == WEFT_BF16 ? WEFT_F32
                    : !narrow                               ? 0
                    : weft_dtype_is_signed(dtype)           ? WEFT_I32
                                                            : WEFT_U32;
    if (!acc || weft_draw(m, 2) == 0)
        return 0;
    *ret = (struct weft_attr){.key = WEFT_ATTR_acc, .kind = WEFT_ATTR_DTYPE, .count = 1, .dtype = acc};
    return 1;
}

/* Up to three elementwise ops upon a value: what groups put in front of contractions and windows, or behind windows. */
static weft_val draw_chain(struct weft_maker *m, weft_val v, unsigned families)
{
    static const int ops[] = {WEFT_OP_relu, WEFT_OP_neg, WEFT_OP_mul, WEFT_OP_add, WEFT_OP_cast};
    for (unsigned more = weft_draw(m, 4); more > 0; more--) {
        const int op = ops[weft_draw(m, 5)];
        struct weft_type type = *weft_drawn_type(m, v);
        const bool two = op == WEFT_OP_mul || op == WEFT_OP_add, turned = two && weft_draw(m, 2);
        const weft_val other = two ? weft_obtain(m, &type) : WEFT_NO_VALUE;
        const weft_val operand[] = {turned ? other : v, turned ? v : other};
        if (op == WEFT_OP_cast)
            type.dtype = (uint8_t)weft_draw_dtype(m, families);
        const weft_val next = weft_draw_made(m, weft_emit(m, op, 1u + two, operand, 0, NULL,
                                                          op == WEFT_OP_cast ? &type : NULL));
        v = next.id ? next : v;
    }
    return v;
}

void weft_draw_matmul(struct weft_maker *m, int op)
{
    if (weft_draw(m, 60) == 59) {
        weft_draw_quantised(m);
        return;
    }
    if (weft_draw(m, 6) == 5) {
        weft_draw_chosen(m);
        return;
    }
    weft_val a = weft_draw_value(m, WEFT_DRAW_NUMERIC, 2, 4);
    if (weft_draw(m, 3) == 2)
        a = draw_chain(m, a, WEFT_DRAW_NUMERIC);
    struct weft_type type = *weft_drawn_type(m, a);
    const int rank = type.rank, trans_a = (int)weft_draw(m, 2), trans_b = (int)weft_draw(m, 2);
    const weft_dim k = type.extent[rank - 1 - trans_a];
    type.extent[rank - 2 + trans_b] = k;
    type.extent[rank - 1 - trans_b] = weft_draw_dim(m);
    struct weft_attr attr[3] = {weft_attr_of_int(WEFT_ATTR_trans_a, trans_a),
                                weft_attr_of_int(WEFT_ATTR_trans_b, trans_b)};
    const unsigned attrs = 2 + (unsigned)accumulator(m, type.dtype, &attr[2]);
    weft_draw_finished(m, weft_emit(m, op, 2, (const weft_val[]){a, weft_obtain(m, &type)}, attrs, attr, NULL));
}

/* A list of an attribute: each element from `low`, one of `n` numbers. */
static struct weft_attr list_of(struct weft_maker *m, int key, unsigned count, int64_t low, unsigned n)
{
    int64_t list[8];
    for (unsigned i = 0; i < count; i++)
        list[i] = low + weft_draw(m, n);
    return weft_attr_of_ints(m->graph, key, count, list);
}

static unsigned window_attrs(struct weft_maker *m, unsigned spatial, struct weft_attr *attr)
{
    unsigned attrs = 0;
    if (weft_draw(m, 2))
        attr[attrs++] = list_of(m, WEFT_ATTR_stride, spatial, 1, 3);
    if (weft_draw(m, 2))
        attr[attrs++] = list_of(m, WEFT_ATTR_pad, 2 * spatial, 0, 3);
    if (weft_draw(m, 3) == 2)
        attr[attrs++] = list_of(m, WEFT_ATTR_dilation, spatial, 1, 2);
    return attrs;
}

/* An image [n, c, spatial…]. */
static weft_val image(struct weft_maker *m, unsigned families, int rank, weft_dim channels)
{
    struct weft_type type = {.dtype = (uint8_t)weft_draw_dtype(m, families), .rank = (uint8_t)rank,
                             .extent = {small(m), channels}};
    for (int i = 2; i < rank; i++)
        type.extent[i] = weft_draw_dim(m);
    for (int i = 2; i < rank && !weft_draw_fits(m, &type); i++)
        type.extent[i] = weft_dim_of(3);
    return weft_obtain(m, &type);
}

/* conv and conv_transpose, whose weights are [c, o / groups, …]. */
void weft_draw_conv(struct weft_maker *m, int op)
{
    static const uint8_t ranks[] = {4, 3, 4, 5};
    const bool transposed = op == WEFT_OP_conv_transpose;
    const int rank = ranks[weft_draw(m, 4)];
    const unsigned spatial = (unsigned)rank - 2;
    const bool point = weft_draw(m, 4) == 3; /* a product, most often */
    const int64_t groups = 1 + (weft_draw(m, 3) == 2), in = 1 + weft_draw(m, 4), out = 1 + weft_draw(m, 9);
    weft_val x = image(m, WEFT_DRAW_NUMERIC, rank, weft_dim_of(in * groups));
    if (weft_draw(m, point ? 2 : 8) == 1)
        x = draw_chain(m, x, WEFT_DRAW_NUMERIC);
    struct weft_type type = {.dtype = weft_drawn_type(m, x)->dtype, .rank = (uint8_t)rank};
    type.extent[0] = weft_dim_of(transposed ? in * groups : out * groups);
    type.extent[1] = weft_dim_of(transposed ? out : in);
    for (int i = 2; i < rank; i++)
        type.extent[i] = point ? weft_dim_of(1) : small(m);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = point ? 0 : window_attrs(m, spatial, attr);
    attr[attrs++] = weft_attr_of_int(WEFT_ATTR_groups, groups);
    attrs += (unsigned)accumulator(m, type.dtype, &attr[attrs]);
    if (transposed && weft_draw(m, 2))
        attr[attrs++] = list_of(m, WEFT_ATTR_out_pad, spatial, 0, 2);
    weft_draw_finished(m, weft_emit(m, op, 2, (const weft_val[]){x, weft_obtain(m, &type)}, attrs, attr, NULL));
}

void weft_draw_pool(struct weft_maker *m, int op)
{
    const bool real = op == WEFT_OP_mean_pool || op == WEFT_OP_norm_pool;
    const unsigned families = real ? WEFT_DRAW_REAL : WEFT_DRAW_NUMERIC;
    const weft_val x = draw_chain(m, weft_draw_value(m, families, 3, 5), families);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    const unsigned spatial = weft_drawn_type(m, x)->rank - 2u;
    unsigned attrs = window_attrs(m, spatial, attr);
    attr[attrs++] = list_of(m, WEFT_ATTR_kernel, spatial, 1, 3);
    attrs += weft_draw_attrs(m, op, attr + attrs);
    if (op == WEFT_OP_norm_pool)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_order, 1 + weft_draw(m, 3));
    const weft_val y = weft_draw_made(m, weft_emit(m, op, 1, &x, attrs, attr, NULL));
    if (y.id)
        draw_chain(m, y, families);
}

/* --- between elements --------------------------------------------------------------------------------------------- */

void weft_draw_resize(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 1, 5);
    struct weft_type to = *weft_drawn_type(m, x);
    double region[2 * WEFT_MAX_RANK], scale[WEFT_MAX_RANK];
    for (int i = 0; i < to.rank; i++) {
        const unsigned how = weft_draw(m, 3);
        scale[i] = how == 1 ? 2 : how == 2 ? 0.5 : 1;
        if (how)
            to.extent[i] = how == 1 ? weft_dim_mul(m->graph->dims, to.extent[i], weft_dim_of(2))
                                    : weft_dim_div(m->graph->dims, to.extent[i], weft_dim_of(2));
        region[i] = 0.25 * weft_draw(m, 2);
        region[to.rank + i] = 1 - 0.25 * weft_draw(m, 2);
    }
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    attr[attrs++] = (struct weft_attr){.key = WEFT_ATTR_region, .kind = WEFT_ATTR_REALS, .count = 2u * to.rank,
                                       .reals = region};
    if (weft_draw(m, 2))
        attr[attrs++] =
            (struct weft_attr){.key = WEFT_ATTR_scale, .kind = WEFT_ATTR_REALS, .count = to.rank, .reals = scale};
    weft_emit(m, op, 1, &x, attrs, attr, &to);
}

void weft_draw_grid_sample(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_REAL, 3, 4);
    const struct weft_type *type = weft_drawn_type(m, x);
    struct weft_type grid = {.dtype = type->dtype, .rank = type->rank, .extent = {type->extent[0]}};
    for (int i = 1; i + 1 < grid.rank; i++)
        grid.extent[i] = small(m);
    grid.extent[grid.rank - 1] = weft_dim_of(grid.rank - 2);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    const unsigned attrs = weft_draw_attrs(m, op, attr);
    weft_emit(m, op, 2, (const weft_val[]){x, weft_obtain(m, &grid)}, attrs, attr, NULL);
}

void weft_draw_col2im(struct weft_maker *m, int op)
{
    const int64_t extent[] = {2 + weft_draw(m, 4), 2 + weft_draw(m, 4)}, pad[] = {weft_draw(m, 2), 0, 0, 1};
    const int64_t kernel[] = {1 + weft_draw(m, 2), 1 + weft_draw(m, 2)}, step[] = {1 + weft_draw(m, 2), 1};
    int64_t windows = 1;
    for (int i = 0; i < 2; i++)
        windows *= (extent[i] + pad[i] + pad[2 + i] - kernel[i]) / step[i] + 1;
    const weft_dim images = weft_draw_dim(m), channels = small(m);
    const int dtype = weft_draw_dtype(m, WEFT_DRAW_NUMERIC);
    const weft_dim from[] = {images, weft_dim_of(weft_dim_value(channels) * kernel[0] * kernel[1]),
                             weft_dim_of(windows)};
    const struct weft_type to = {.dtype = (uint8_t)dtype, .rank = 4,
                                 .extent = {images, channels, weft_dim_of(extent[0]), weft_dim_of(extent[1])}};
    const weft_val x = weft_obtain_with(m, dtype, 3, from);
    const struct weft_attr attr[] = {weft_attr_of_ints(m->graph, WEFT_ATTR_kernel, 2, kernel),
                                     weft_attr_of_ints(m->graph, WEFT_ATTR_stride, 2, step),
                                     weft_attr_of_ints(m->graph, WEFT_ATTR_pad, 4, pad)};
    weft_emit(m, op, 1, &x, 3, attr, &to);
}

void weft_draw_unpool(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_NUMERIC, 1, 5);
    struct weft_type place = *weft_drawn_type(m, x), to = place;
    place.dtype = (uint8_t)weft_draw_dtype(m, WEFT_DRAW_INTEGER);
    to.extent[to.rank - 1] = weft_dim_mul(m->graph->dims, to.extent[to.rank - 1], weft_dim_of(1 + weft_draw(m, 2)));
    weft_emit(m, op, 2, (const weft_val[]){x, weft_obtain(m, &place)}, 0, NULL, &to);
}

/* Places are drawn like any integers: many are outside, others the same. */
void weft_draw_max_pool_grad(struct weft_maker *m, int op)
{
    const weft_val dy = weft_draw_value(m, WEFT_DRAW_NUMERIC, 3, 5);
    struct weft_type place = *weft_drawn_type(m, dy), to = place;
    place.dtype = (uint8_t)weft_draw_dtype(m, WEFT_DRAW_INTEGER);
    for (int i = 2; i < to.rank; i++)
        to.extent[i] = weft_dim_mul(m->graph->dims, to.extent[i], weft_dim_of(1 + weft_draw(m, 2)));
    weft_emit(m, op, 2, (const weft_val[]){dy, weft_obtain(m, &place)}, 0, NULL, &to);
}

void weft_draw_deform_conv(struct weft_maker *m, int op)
{
    const int64_t height = 2 + weft_draw(m, 4), width = 2 + weft_draw(m, 4), taps = 1 + weft_draw(m, 2);
    const int64_t channels = 2 * (1 + weft_draw(m, 2)), groups = 1 + weft_draw(m, 2), maps = 1 + weft_draw(m, 2);
    const int64_t n = 1 + weft_draw(m, 2), out = groups * (1 + weft_draw(m, 2));
    const int64_t rows = height - taps + 1, columns = width;
    const int dtype = weft_draw_dtype(m, WEFT_DRAW_REAL);
    const weft_val operand[] = {
        weft_obtain_fixed(m, dtype, 4, (const int64_t[]){n, channels, height, width}),
        weft_obtain_fixed(m, dtype, 4, (const int64_t[]){out, channels / groups, taps, 1}),
        weft_obtain_fixed(m, dtype, 4, (const int64_t[]){n, 2 * maps * taps, rows, columns}),
        weft_draw(m, 2) ? weft_obtain_fixed(m, dtype, 4, (const int64_t[]){n, maps * taps, rows, columns})
                        : WEFT_NO_VALUE};
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_groups, groups),
                                     weft_attr_of_int(WEFT_ATTR_offset_groups, maps)};
    weft_emit(m, op, 3 + (operand[3].id != 0), operand, 2, attr, NULL);
}

void weft_draw_conv_grad_weight(struct weft_maker *m, int op)
{
    const int rank = 3 + (int)weft_draw(m, 3);
    const unsigned spatial = (unsigned)rank - 2;
    const bool many = rank == 4 && m->most_elements > 10000; /* channels: for Winograd's transform */
    const int64_t groups = !many && weft_draw(m, 3) == 2 ? 1 + weft_draw(m, 18) : 1;
    struct weft_attr attr[WEFT_MOST_ATTRS];
    const unsigned attrs = 5;
    attr[0] = list_of(m, WEFT_ATTR_kernel, spatial, many ? 3 : 1, many ? 1 : 3);
    attr[1] = list_of(m, WEFT_ATTR_stride, spatial, 1, many ? 1 : 3);
    attr[2] = list_of(m, WEFT_ATTR_pad, 2 * spatial, 0, 3);
    attr[3] = list_of(m, WEFT_ATTR_dilation, spatial, 1, many ? 1 : 2);
    attr[4] = weft_attr_of_int(WEFT_ATTR_groups, groups);
    int64_t x[5] = {1 + weft_draw(m, 3), groups * (1 + weft_draw(m, 3) + (many ? 40 : 0))};
    int64_t dy[5] = {x[0], groups * (1 + weft_draw(m, groups > 1 ? 2 : many ? 10 : 20) + (many ? 40 : 0))};
    for (unsigned i = 0; i < spatial; i++) {
        const int64_t reach = weft_dim_value(attr[3].integers[i]) * (weft_dim_value(attr[0].integers[i]) - 1) + 1;
        const int64_t pad = weft_dim_value(attr[2].integers[i]) + weft_dim_value(attr[2].integers[spatial + i]);
        x[2 + i] = (reach > pad ? reach - pad : 1) + (many ? 8 + weft_draw(m, 8) : weft_draw(m, rank == 3 ? 20 : 6));
        dy[2 + i] = (x[2 + i] + pad - reach) / weft_dim_value(attr[1].integers[i]) + 1;
    }
    const int dtype = weft_draw_dtype(m, WEFT_DRAW_REAL);
    const weft_val operand[] = {weft_obtain_fixed(m, dtype, rank, x), weft_obtain_fixed(m, dtype, rank, dy)};
    weft_draw_finished(m, weft_emit(m, op, 2, operand, attrs, attr, NULL));
}

/* How many places a cell has follows from the box unless `samples` says it: then boxes are kept small, since an
 * infinite one takes for ever. */
void weft_draw_regions(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_REAL, 4, 4);
    const weft_dim boxes[] = {weft_draw_dim(m), weft_dim_of(4)};
    weft_val box = weft_obtain_with(m, weft_drawn_type(m, x)->dtype, 2, boxes);
    const weft_val image_of = weft_obtain_with(m, weft_draw_dtype(m, WEFT_DRAW_INTEGER), 1, boxes);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    attr[attrs++] = list_of(m, WEFT_ATTR_size, 2, 1, 3);
    if (op == WEFT_OP_roi_align && weft_draw(m, 2)) {
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_samples, 1 + weft_draw(m, 2));
    } else if (op == WEFT_OP_roi_align) {
        const struct weft_attr limits[] = {weft_attr_of_real(WEFT_ATTR_low, -2), weft_attr_of_real(WEFT_ATTR_high, 9)};
        box = weft_draw_made(m, weft_emit(m, WEFT_OP_clamp, 1, &box, 2, limits, NULL));
    }
    weft_emit(m, op, 3, (const weft_val[]){x, box, image_of}, attrs, attr, NULL);
}

void weft_draw_dft(struct weft_maker *m, int op)
{
    const int inverse = (int)weft_draw(m, 2), onesided = (int)weft_draw(m, 2);
    const weft_dim extent[] = {weft_draw_dim(m), weft_draw_dim(m),
                               weft_dim_of(1 + (onesided ? inverse : (int)weft_draw(m, 2)))};
    const weft_val x = weft_obtain_with(m, weft_draw_dtype(m, WEFT_DRAW_REAL), 3, extent);
    const int axis = (int)weft_draw(m, 2);
    const struct weft_attr attr[] = {
        weft_attr_of_int(WEFT_ATTR_axis, axis), weft_attr_of_int(WEFT_ATTR_inverse, inverse),
        weft_attr_of_int(WEFT_ATTR_onesided, onesided),
        {.key = WEFT_ATTR_length, .kind = WEFT_ATTR_INT, .count = 1,
         .integer = weft_draw(m, 2) && weft_least(m, extent[axis]) > 0 ? extent[axis]
                                                                       : weft_dim_of(1 + weft_draw(m, 6))}};
    weft_emit(m, op, 1, &x, 4, attr, NULL);
}

void weft_draw_det(struct weft_maker *m, int op)
{
    const weft_dim n = small(m), extent[] = {weft_draw_dim(m), n, n};
    const unsigned rank = 2 + weft_draw(m, 2);
    const weft_val x = weft_obtain_with(m, weft_draw_dtype(m, WEFT_DRAW_REAL), (int)rank, extent + (3 - rank));
    weft_emit(m, op, 1, &x, 0, NULL, NULL);
}

/* --- norms, quantised types --------------------------------------------------------------------------------------- */

void weft_draw_norm(struct weft_maker *m, int op)
{
    const bool channels = op == WEFT_OP_batch_norm || op == WEFT_OP_group_norm;
    const weft_val x = weft_draw_value(m, WEFT_DRAW_REAL, channels ? 2 : 1, 5);
    const struct weft_type type = *weft_drawn_type(m, x);
    const int axis = channels ? 1 : weft_draw_axis(m, x);
    struct weft_type rest = {.dtype = type.dtype};
    for (int i = axis; i < type.rank && !(channels && i > 1); i++)
        rest.extent[rest.rank++] = type.extent[i];
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = weft_draw_attrs(m, op, attr);
    if (op == WEFT_OP_group_norm)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_groups, 1 + weft_draw(m, 2));
    else if (!channels)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_axis, axis);
    const unsigned most = (unsigned)weft_ops[op].max_operands, least = (unsigned)weft_ops[op].min_operands;
    const unsigned operands = least + weft_draw(m, most - least + 1);
    weft_val operand[5] = {x};
    for (unsigned i = 1; i < operands; i++)
        operand[i] = weft_obtain(m, &rest);
    weft_emit(m, op, operands, operand, attrs, attr, NULL);
}

void weft_draw_quantize(struct weft_maker *m, int op)
{
    static const uint8_t narrow[] = {WEFT_I8, WEFT_U8, WEFT_I16, WEFT_U16, WEFT_I4, WEFT_U4, WEFT_F8E4M3, WEFT_F8E5M2,
                                     WEFT_I32};
    const bool back = op == WEFT_OP_dequantize;
    const int dtype = narrow[weft_draw(m, back ? 9 : 8)];
    struct weft_type type = weft_draw_type(m, WEFT_DRAW_REAL, 0, 4);
    const weft_val real = weft_obtain(m, &type), scale = weft_obtain(m, &type);
    struct weft_type whole = type;
    whole.dtype = (uint8_t)dtype;
    const weft_val first = back ? weft_obtain(m, &whole) : real,
                   zero = weft_draw(m, 2) ? weft_obtain(m, &whole) : WEFT_NO_VALUE;
    weft_emit(m, op, 2 + (zero.id != 0), (const weft_val[]){first, scale, zero}, 0, NULL, back ? NULL : &whole);
}
