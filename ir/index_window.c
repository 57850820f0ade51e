/* SPDX-License-Identifier: Apache-2.0 */
/* index_window.c: index maps of contractions, windows and what reads between elements. */
#include "ir/index_rules.h"
#include "ir/places.h"

/* Of the pin: along spatial axis i, the element that tap `tap` of window `window` sees. */
static void window_term(struct weft_indexing *r, int i, int window, int tap)
{
    const int at = 2 + i;
    const weft_dim before = weft_index_attr_dim(r, WEFT_ATTR_pad, i);
    weft_index_term(r, at, window, weft_index_attr_dim(r, WEFT_ATTR_stride, i));
    weft_index_term(r, at, tap, weft_index_attr_dim(r, WEFT_ATTR_dilation, i));
    weft_index_offset(r, at, weft_dim_sub(r->graph->dims, weft_dim_of(0), before));
    r->map.at[at].border = WEFT_BORDER_SKIPPED;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

void weft_index_matmul(struct weft_indexing *r)
{
    const int rank = weft_index_result_type(r)->rank;
    const bool turned_a = weft_attr_int(r->graph, r->node, WEFT_ATTR_trans_a) != 0;
    weft_space_add_result(r);
    const int sum = weft_space_add(r, weft_index_type(r, 0)->extent[turned_a ? rank - 2 : rank - 1], WEFT_AXIS_REDUCED);
    if (!r->pin || r->pin->result)
        return;
    const bool first = r->pin->index == 0;
    const bool turned = first ? turned_a : weft_attr_int(r->graph, r->node, WEFT_ATTR_trans_b) != 0;
    const int rows = first ? rank - 2 : sum, columns = first ? sum : rank - 1;
    for (int i = 0; i < rank - 2; i++)
        weft_index_is(r, i, i);
    weft_index_is(r, turned ? rank - 1 : rank - 2, rows);
    weft_index_is(r, turned ? rank - 2 : rank - 1, columns);
}

/* --- convolutions and windows ------------------------------------------------------------------------------------- */

/* Axes of a convolution: a single group is none, and of several groups a single channel. */
struct channels {
    int group, out, in; /* axes of the space, or -1 */
    weft_dim outs, ins; /* in a group */
};

static struct channels add_channels(struct weft_indexing *r, weft_dim out, weft_dim in)
{
    struct weft_dims *dims = r->graph->dims;
    const weft_dim groups = weft_dim_of(weft_attr_int(r->graph, r->node, WEFT_ATTR_groups));
    struct channels c = {.outs = weft_dim_div(dims, out, groups), .ins = weft_dim_div(dims, in, groups)};
    c.group = weft_space_add_factor(r, groups, WEFT_AXIS_PARALLEL);
    c.out = c.group < 0 ? weft_space_add(r, c.outs, WEFT_AXIS_PARALLEL)
                        : weft_space_add_factor(r, c.outs, WEFT_AXIS_PARALLEL);
    return c;
}

static void channel_term(struct weft_indexing *r, int at, int group, int axis, weft_dim inside)
{
    weft_index_term(r, at, group, inside);
    weft_index_is(r, at, axis);
}

/* The weights of a convolution: [out of all groups, in of one, taps…]. */
static void weights(struct weft_indexing *r, const struct channels *c, const int *tap, int spatial)
{
    channel_term(r, 0, c->group, c->out, c->outs);
    weft_index_is(r, 1, c->in);
    for (int i = 0; i < spatial; i++)
        weft_index_is(r, 2 + i, tap[i]);
}

/* Batch, channels, places; reduced: channels, taps. */
struct convolution {
    int batch, spatial;
    struct channels channels;
    int place[WEFT_MAX_RANK], tap[WEFT_MAX_RANK]; /* by spatial axis */
};

/* Places are those of `places`: windows of the result, or elements that lead to it. */
static struct convolution add_convolution(struct weft_indexing *r, const struct weft_type *places,
                                          enum weft_axis_role role, weft_dim out)
{
    const struct weft_type *x = weft_index_type(r, 0), *w = weft_index_type(r, 1);
    struct convolution c = {.spatial = x->rank - 2};
    c.batch = weft_space_add(r, x->extent[0], WEFT_AXIS_PARALLEL);
    c.channels = add_channels(r, out, x->extent[1]);
    const int beside = c.channels.out >= 0 ? c.channels.out : c.channels.group;
    for (int i = 0; i < c.spatial; i++)
        c.place[i] = weft_space_add(r, places->extent[2 + i], role);
    const bool single = c.channels.group >= 0 && weft_dim_is(c.channels.ins, 1);
    c.channels.in = single ? -1 : weft_space_add_beside(r, c.channels.ins, beside);
    for (int i = 0; i < c.spatial; i++)
        c.tap[i] = weft_space_add(r, w->extent[2 + i], WEFT_AXIS_REDUCED);
    return c;
}

/* Of the pin: batch and channels of x or of the result. */
static void batch_and_channels(struct weft_indexing *r, const struct convolution *c)
{
    const bool result = r->pin->result;
    weft_index_is(r, 0, c->batch);
    channel_term(r, 1, c->channels.group, result ? c->channels.out : c->channels.in,
                 result ? c->channels.outs : c->channels.ins);
}

/* Deformed: where a tap looks is in operand 2. */
static void convolve(struct weft_indexing *r, bool deformed)
{
    const struct weft_type *y = weft_index_result_type(r);
    const struct convolution c = add_convolution(r, y, WEFT_AXIS_PARALLEL, weft_index_type(r, 1)->extent[0]);
    if (weft_index_is_operand(r, 1)) {
        weights(r, &c.channels, c.tap, c.spatial);
        return;
    }
    if (!r->pin)
        return;
    if (r->pin->result || r->pin->index == 0) {
        batch_and_channels(r, &c);
    } else { /* maps of operands 2 and 3, of which a group of channels and a tap have one or two */
        weft_index_is(r, 0, c.batch);
        r->map.at[1].is_near = true;
    }
    for (int i = 0; i < c.spatial; i++)
        if (!weft_index_is_operand(r, 0))
            weft_index_is(r, 2 + i, c.place[i]);
        else if (deformed)
            weft_index_term(r, 2 + i, c.place[i], weft_index_attr_dim(r, WEFT_ATTR_stride, i));
        else
            window_term(r, i, c.place[i], c.tap[i]);
    for (int i = 0; i < c.spatial && deformed && weft_index_is_operand(r, 0); i++)
        r->map.at[2 + i].data = 3;
}

void weft_index_conv(struct weft_indexing *r) { convolve(r, false); }
void weft_index_deform_conv(struct weft_indexing *r) { convolve(r, true); }

/* Elements of x are reduced here, and those of the result are where they and the taps lead:
 *
 *   %y = conv_transpose %x, %w stride=[2]     space a0 (batch), a1 (channels), reduced a2 (elements of x), a3, a4
 *                                             (taps)
 *                                             %x [a0, a3, a2]   %w [a3, a1, a4]   %y [a0, a1, 2·a2 + a4 ?] */
void weft_index_conv_transpose(struct weft_indexing *r)
{
    const struct convolution c =
        add_convolution(r, weft_index_type(r, 0), WEFT_AXIS_REDUCED, weft_index_result_type(r)->extent[1]);
    if (weft_index_is_operand(r, 1)) {
        channel_term(r, 0, c.channels.group, c.channels.in, c.channels.ins);
        weft_index_is(r, 1, c.channels.out);
    } else if (r->pin) {
        batch_and_channels(r, &c);
    }
    for (int i = 0; i < c.spatial && r->pin; i++)
        if (r->pin->result)
            window_term(r, i, c.place[i], c.tap[i]);
        else
            weft_index_is(r, 2 + i, r->pin->index == 0 ? c.place[i] : c.tap[i]);
}

/* Images and places of dy are reduced; results are weights. */
void weft_index_conv_grad_weight(struct weft_indexing *r)
{
    const struct weft_type *x = weft_index_type(r, 0), *dy = weft_index_type(r, 1), *dw = weft_index_result_type(r);
    const int spatial = x->rank - 2;
    int place[WEFT_MAX_RANK], tap[WEFT_MAX_RANK];
    struct channels c = add_channels(r, dy->extent[1], x->extent[1]);
    c.in = weft_space_add(r, dw->extent[1], WEFT_AXIS_PARALLEL);
    for (int i = 0; i < spatial; i++)
        tap[i] = weft_space_add(r, dw->extent[2 + i], WEFT_AXIS_PARALLEL);
    const int batch = weft_space_add(r, x->extent[0], WEFT_AXIS_REDUCED);
    for (int i = 0; i < spatial; i++)
        place[i] = weft_space_add(r, dy->extent[2 + i], WEFT_AXIS_REDUCED);
    if (!r->pin)
        return;
    if (r->pin->result) {
        weights(r, &c, tap, spatial);
        return;
    }
    weft_index_is(r, 0, batch);
    if (r->pin->index == 0)
        channel_term(r, 1, c.group, c.in, c.ins);
    else
        channel_term(r, 1, c.group, c.out, c.outs);
    for (int i = 0; i < spatial; i++)
        if (r->pin->index == 0)
            window_term(r, i, place[i], tap[i]);
        else
            weft_index_is(r, 2 + i, place[i]);
}

void weft_index_pool(struct weft_indexing *r)
{
    const int spatial = weft_index_result_type(r)->rank - 2;
    weft_space_add_result(r);
    for (int i = 0; i < spatial; i++) {
        const int tap = weft_space_add(r, weft_index_attr_dim(r, WEFT_ATTR_kernel, i), WEFT_AXIS_REDUCED);
        if (weft_index_is_operand(r, 0))
            window_term(r, i, 2 + i, tap);
    }
    for (int i = 0; i < 2 && weft_index_is_operand(r, 0); i++)
        weft_index_is(r, i, i);
}

/* A place may be any of its plane. */
void weft_index_max_pool_grad(struct weft_indexing *r)
{
    const struct weft_type *dy = weft_index_type(r, 0);
    const bool operand = r->pin && !r->pin->result;
    weft_space_add_result(r);
    for (int i = 0; i < dy->rank; i++) {
        const int axis = i < 2 ? i : weft_space_add(r, dy->extent[i], WEFT_AXIS_REDUCED);
        if (operand)
            weft_index_is(r, i, axis);
    }
}

/* Of windows over the result, as for a convolution; their number along a spatial axis. */
static weft_dim windows_of(const struct weft_indexing *r, int i)
{
    struct weft_dims *dims = r->graph->dims;
    const int spatial = weft_index_result_type(r)->rank - 2;
    const int64_t taps = weft_index_attr(r, WEFT_ATTR_kernel, i);
    const int64_t reach = weft_index_attr(r, WEFT_ATTR_dilation, i) * (taps - 1);
    weft_dim room = weft_dim_sub(dims, weft_index_result_type(r)->extent[2 + i], weft_dim_of(reach + 1));
    room = weft_dim_add(dims, room, weft_index_attr_dim(r, WEFT_ATTR_pad, i));
    room = weft_dim_add(dims, room, weft_index_attr_dim(r, WEFT_ATTR_pad, spatial + i));
    return weft_dim_add(dims, weft_dim_div(dims, room, weft_index_attr_dim(r, WEFT_ATTR_stride, i)), weft_dim_of(1));
}

/* The operand is [n, channels and taps, windows]; both of the latter count through all spatial axes. */
void weft_index_col2im(struct weft_indexing *r)
{
    struct weft_dims *dims = r->graph->dims;
    const struct weft_type *y = weft_index_result_type(r);
    const int spatial = y->rank - 2;
    int tap[WEFT_MAX_RANK], window[WEFT_MAX_RANK];
    const int batch = weft_space_add(r, y->extent[0], WEFT_AXIS_PARALLEL);
    const int channel = weft_space_add(r, y->extent[1], WEFT_AXIS_PARALLEL);
    for (int i = 0; i < spatial; i++)
        tap[i] = weft_space_add(r, weft_index_attr_dim(r, WEFT_ATTR_kernel, i), WEFT_AXIS_REDUCED);
    for (int i = 0; i < spatial; i++)
        window[i] = weft_space_add(r, windows_of(r, i), WEFT_AXIS_REDUCED);
    if (!r->pin)
        return;
    weft_index_is(r, 0, batch);
    if (r->pin->result) {
        weft_index_is(r, 1, channel);
        for (int i = 0; i < spatial; i++)
            window_term(r, i, window[i], tap[i]);
        return;
    }
    weft_dim taps = weft_dim_of(1), windows = weft_dim_of(1);
    for (int i = spatial - 1; i >= 0; i--) {
        weft_index_term(r, 1, tap[i], taps);
        weft_index_term(r, 2, window[i], windows);
        taps = weft_dim_mul(dims, taps, weft_index_attr_dim(r, WEFT_ATTR_kernel, i));
        windows = weft_dim_mul(dims, windows, windows_of(r, i));
    }
    weft_index_term(r, 1, channel, taps);
}

/* --- between elements --------------------------------------------------------------------------------------------- */

/* Some elements around the place that belongs to one of the result, but along axes that stay as they are. */
void weft_index_resize(struct weft_indexing *r)
{
    weft_space_add_result(r);
    if (!weft_index_is_operand(r, 0))
        return;
    weft_index_as_result(r);
    for (int i = 0; i < r->map.rank; i++)
        r->map.at[i].is_near = !weft_resize_keeps(r->graph, r->node, i);
}

/* x is read where the grid, [n, points…, coordinates], says. */
void weft_index_grid_sample(struct weft_indexing *r)
{
    const struct weft_type *grid = weft_index_type(r, 1);
    weft_space_add_result(r);
    const int component = weft_space_add(r, grid->extent[grid->rank - 1], WEFT_AXIS_REDUCED);
    if (!r->pin || r->pin->result)
        return;
    for (int i = 0; i < r->map.rank; i++)
        if (r->pin->index == 0 && i >= 2)
            r->map.at[i].data = 2;
        else
            weft_index_is(r, i, r->pin->index == 0 || i == 0 ? i : i == r->map.rank - 1 ? component : i + 1);
}

/* Of a box of x: which image it lies in is in operand 2, where in operand 1. */
void weft_index_regions(struct weft_indexing *r)
{
    weft_space_add_result(r);
    const int corner = weft_space_add(r, weft_dim_of(4), WEFT_AXIS_REDUCED);
    if (!r->pin || r->pin->result)
        return;
    if (r->pin->index == 0) {
        weft_index_is(r, 1, 1);
        for (int i = 0; i < r->map.rank; i++)
            r->map.at[i].data = i == 0 ? 3 : i == 1 ? 0 : 2;
        return;
    }
    weft_index_is(r, 0, 0);
    if (r->pin->index == 1)
        weft_index_is(r, 1, corner);
}

/* --- transforms of lines and matrices ----------------------------------------------------------------------------- */

/* Lines along an axis, and both parts of complex numbers. */
void weft_index_dft(struct weft_indexing *r)
{
    const struct weft_type *x = weft_index_type(r, 0);
    const int axis = (int)weft_attr_int(r->graph, r->node, WEFT_ATTR_axis);
    weft_space_add_result(r);
    for (int i = 0; i < x->rank; i++) {
        const bool whole = i == axis || i == x->rank - 1;
        const int own = whole ? weft_space_add_beside(r, x->extent[i], i) : i;
        if (weft_index_is_operand(r, 0))
            weft_index_is(r, i, own);
    }
}

void weft_index_det(struct weft_indexing *r)
{
    const struct weft_type *x = weft_index_type(r, 0);
    weft_space_add_result(r);
    for (int i = 0; i < x->rank; i++) {
        const int axis = i < x->rank - 2 ? i : weft_space_add(r, x->extent[i], WEFT_AXIS_REDUCED);
        if (weft_index_is_operand(r, 0))
            weft_index_is(r, i, axis);
    }
}
