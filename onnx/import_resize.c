/* SPDX-License-Identifier: Apache-2.0 */
/* import_resize.c: Resize and what it grew out of, sampling by grids, windows put together.
 *
 * A factor is a constant; an extent is its product with that of the operand, rounded down. Of a symbolic extent that
 * needs the factor as a fraction, which is looked for among small denominators. */
#include "onnx/import.h"

#include "ir/places.h"

#include <math.h>
#include <string.h>

/* --- numbers that have to be known ------------------------------------------------------------------------------ */

/* The number that a rounded one stands for: 3/5 where single precision has made 0.60000002 of it. */
static double meant(double x, int digits)
{
    const struct weft_fraction f = weft_fraction_of(x, digits);
    return f.p && fabs(x) < 0x1p40 ? (double)f.p / (double)f.q : x;
}

/* Elements of a list of factors, or of fractions of an axis. */
static double *known_factors(struct onnx_op *op, unsigned input, const char *what, unsigned *ret_count)
{
    double *factor = weft_onnx_known_reals(op, input, what, ret_count);
    const int dtype = weft_onnx_type(op, weft_onnx_has(op, input) ? op->input[input] : WEFT_NO_VALUE).dtype;
    const int digits = dtype == WEFT_F32 ? 24 : dtype == WEFT_F16 ? 11 : dtype == WEFT_BF16 ? 8 : 53;
    for (unsigned i = 0; factor && i < *ret_count; i++)
        factor[i] = meant(factor[i], digits);
    return factor;
}

/* Is there an input that is not an empty list? Exporters write those for absent ones. */
static bool has_elements(struct onnx_op *op, unsigned input)
{
    if (!weft_onnx_has(op, input))
        return false;
    const struct weft_type type = weft_onnx_type(op, op->input[input]);
    return type.rank == 0 || !weft_dim_is(type.extent[0], 0);
}

/* The axes in `axes`, or the first of all; their number must be `count`. */
static bool list_axes(struct onnx_op *op, unsigned rank, unsigned count, unsigned ret[WEFT_MAX_RANK])
{
    unsigned given = 0;
    const int64_t *axes = op->importer->opset >= 18 ? weft_onnx_ints(op, "axes", &given) : NULL;
    if (count != (axes ? given : rank) || count > WEFT_MAX_RANK)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u elements are given for %u axes", count, axes ? given : rank);
    for (unsigned i = 0; i < count && !op->failed; i++)
        ret[i] = axes ? weft_onnx_axis(op, axes[i], rank) : i;
    return !op->failed;
}

/* --- extents ---------------------------------------------------------------------------------------------------- */

/* floor(extent · factor). Single precision rounds the product, as whoever wrote the model has done. */
static weft_dim scaled(struct onnx_op *op, weft_dim extent, double factor)
{
    struct weft_dims *dims = op->graph->dims;
    if (weft_dim_is_constant(extent) && !op->failed) {
        const double product = floor((double)((float)weft_dim_value(extent) * (float)factor));
        if (product >= 0 && product < 0x1p31)
            return weft_dim_of((int64_t)product);
    }
    for (int64_t q = 1; q <= 64 && !op->failed && !weft_dim_is_constant(extent); q++) {
        const double p = rint(factor * (double)q);
        if (p >= 1 && p < 0x1p20 && (float)(p / (double)q) == (float)factor)
            return weft_dim_div(dims, weft_dim_mul(dims, extent, weft_dim_of((int64_t)p)), weft_dim_of(q));
    }
    weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "an extent times the factor %g is not known", factor);
    return extent;
}

struct resize {
    struct weft_type type;      /* of the result */
    double scale[WEFT_MAX_RANK], region[2 * WEFT_MAX_RANK];
    bool scaled, cropped;       /* factors are given; a region is */
    const char *form, *coordinates, *nearest;
    double cubic, fill;
    bool exclude, antialias;
};

/* Sizes for some axes; with a policy, one factor for all of them that keeps the ratio of the axes. */
static void take_sizes(struct onnx_op *op, struct resize *r)
{
    unsigned count, axis[WEFT_MAX_RANK];
    const int policy = weft_onnx_word(op, "keep_aspect_ratio_policy", "stretch not_larger not_smaller");
    weft_dim *size = weft_onnx_known(op, 3, "sizes", &count);
    if (!size || !list_axes(op, r->type.rank, count, axis))
        return;
    double factor = 0;
    for (unsigned i = 0; i < count && policy; i++) {
        const weft_dim extent = r->type.extent[axis[i]];
        if (!weft_dim_is_constant(size[i]) || !weft_dim_is_constant(extent) || weft_dim_is(extent, 0)) {
            weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "keeping the ratio of extents that are not known");
            return;
        }
        const double here = (double)weft_dim_value(size[i]) / (double)weft_dim_value(extent);
        factor = i == 0 || (policy == 1) == (here < factor) ? here : factor;
    }
    for (unsigned i = 0; i < count; i++) {
        if (policy) {
            r->scale[axis[i]] = factor;
            r->scaled = true;
            size[i] = weft_dim_of((int64_t)floor(factor * (double)weft_dim_value(r->type.extent[axis[i]]) + 0.5));
        }
        r->type.extent[axis[i]] = size[i];
    }
}

static void take_scales(struct onnx_op *op, struct resize *r, unsigned count, const double *scale)
{
    unsigned axis[WEFT_MAX_RANK];
    if (!list_axes(op, r->type.rank, count, axis))
        return;
    r->scaled = true;
    for (unsigned i = 0; i < count; i++) {
        r->scale[axis[i]] = scale[i];
        r->type.extent[axis[i]] = scaled(op, r->type.extent[axis[i]], scale[i]);
    }
}

/* --- Resize ----------------------------------------------------------------------------------------------------- */

static weft_val make_resize(struct onnx_op *op, weft_val x, const struct resize *r)
{
    struct weft_attr attr[10];
    unsigned count = 0;
    attr[count++] = weft_attr_of_word(WEFT_ATTR_form, r->form);
    attr[count++] = weft_attr_of_word(WEFT_ATTR_coordinates, r->coordinates);
    attr[count++] = weft_attr_of_int(WEFT_ATTR_exclude, r->exclude);
    attr[count++] = weft_attr_of_int(WEFT_ATTR_antialias, r->antialias);
    if (strcmp(r->form, "nearest") == 0)
        attr[count++] = weft_attr_of_word(WEFT_ATTR_nearest, r->nearest);
    if (strcmp(r->form, "cubic") == 0)
        attr[count++] = weft_attr_of_real(WEFT_ATTR_cubic, r->cubic);
    if (r->scaled)
        attr[count++] = (struct weft_attr){
            .key = WEFT_ATTR_scale, .kind = WEFT_ATTR_REALS, .count = r->type.rank, .reals = r->scale};
    if (r->cropped) {
        attr[count++] = weft_attr_of_real(WEFT_ATTR_fill, r->fill);
        attr[count++] = (struct weft_attr){
            .key = WEFT_ATTR_region, .kind = WEFT_ATTR_REALS, .count = 2u * r->type.rank, .reals = r->region};
    }
    return weft_onnx_make(op, WEFT_OP_resize, 1, &x, count, attr, &r->type);
}

static struct resize resize_of(struct onnx_op *op)
{
    struct resize r = {.type = weft_onnx_type(op, weft_onnx_input(op, 0)), .form = "nearest",
                       .coordinates = "asymmetric", .nearest = "floor", .cubic = -0.75};
    for (unsigned i = 0; i < WEFT_MAX_RANK; i++)
        r.scale[i] = 1;
    return r;
}

/* The part to crop to: starts, then ends, of the axes. */
static void take_region(struct onnx_op *op, struct resize *r)
{
    unsigned count, axis[WEFT_MAX_RANK];
    r->cropped = true;
    for (unsigned i = 0; i < r->type.rank; i++) {
        r->region[i] = 0;
        r->region[r->type.rank + i] = 1;
    }
    const double *region = known_factors(op, 1, "roi", &count);
    if (!region || !list_axes(op, r->type.rank, count / 2, axis))
        return;
    for (unsigned i = 0; i < count / 2; i++) {
        r->region[axis[i]] = region[i];
        r->region[r->type.rank + axis[i]] = region[count / 2 + i];
    }
}

static void import_resize(struct onnx_op *op)
{
    static const char *const forms[] = {"nearest", "linear", "cubic"},
                      *const coordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                              "tf_half_pixel_for_nn", "tf_crop_and_resize", "half_pixel_symmetric"},
                      *const nearest[] = {"prefer_floor", "prefer_ceil", "floor", "ceil"};
    struct resize r = resize_of(op);
    r.form = forms[weft_onnx_word(op, "mode", "nearest linear cubic")];
    r.coordinates = coordinates[weft_onnx_word(op, "coordinate_transformation_mode",
                                               "half_pixel pytorch_half_pixel align_corners asymmetric "
                                               "tf_half_pixel_for_nn tf_crop_and_resize half_pixel_symmetric")];
    r.nearest = nearest[weft_onnx_word(op, "nearest_mode", "round_prefer_floor round_prefer_ceil floor ceil")];
    r.cubic = weft_onnx_real(op, "cubic_coeff_a", -0.75);
    r.fill = weft_onnx_real(op, "extrapolation_value", 0);
    r.exclude = weft_onnx_int(op, "exclude_outside", 0) != 0;
    r.antialias = weft_onnx_int(op, "antialias", 0) != 0;
    if (strcmp(r.coordinates, "tf_crop_and_resize") == 0)
        take_region(op, &r);
    unsigned count;
    weft_onnx_ignore(op, "axes"); /* read only where a list is */
    weft_onnx_ignore(op, "keep_aspect_ratio_policy");
    const double *scale = has_elements(op, 3) ? NULL : known_factors(op, 2, "scales", &count);
    if (scale)
        take_scales(op, &r, count, scale);
    else if (!op->failed)
        take_sizes(op, &r);
    op->output[0] = make_resize(op, weft_onnx_input(op, 0), &r);
}

/* --- Upsample, and Resize before it learnt more ----------------------------------------------------------------- */

/* Places are i / s; the nearest element is the one below it, and above it where an axis shrinks: those two are resized
 * one after the other. */
static void resize_plainly(struct onnx_op *op, unsigned count, const double *scale)
{
    struct resize r = resize_of(op);
    weft_val x = weft_onnx_input(op, 0);
    const bool linear = weft_onnx_word(op, "mode", "nearest linear bilinear") != 0;
    if (count != r.type.rank) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%u factors are given for %u axes", count, r.type.rank);
        return;
    }
    r.form = linear ? "linear" : "nearest";
    for (int shrinks = 0; shrinks < 2; shrinks++) {
        bool any = false;
        for (unsigned i = 0; i < count; i++) {
            const bool now = linear ? !shrinks : shrinks == (scale[i] < 1);
            r.scale[i] = now ? scale[i] : 1;
            any |= now && scale[i] != 1;
            if (now)
                r.type.extent[i] = scaled(op, r.type.extent[i], scale[i]);
        }
        r.scaled = true;
        r.nearest = shrinks ? "ceil" : "floor";
        if (any)
            x = make_resize(op, x, &r);
    }
    op->output[0] = x;
}

static void import_upsample_attribute(struct onnx_op *op)
{
    const struct onnx_attribute *scales = weft_onnx_attribute(op, "scales", ONNX_FLOATS);
    double scale[WEFT_MAX_RANK];
    if (!scales || scales->count > WEFT_MAX_RANK) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute scales must have an element for each axis");
        return;
    }
    for (unsigned i = 0; i < scales->count; i++)
        scale[i] = meant((double)scales->reals[i], 24);
    resize_plainly(op, scales->count, scale);
}

static void import_upsample(struct onnx_op *op)
{
    unsigned count;
    const double *scale = known_factors(op, 1, "scales", &count);
    if (scale)
        resize_plainly(op, count, scale);
}

/* --- grids ------------------------------------------------------------------------------------------------------ */

static void import_grid_sample(struct onnx_op *op)
{
    static const char *const forms[] = {"linear", "nearest", "cubic", "linear", "cubic"};
    static const char *const borders[] = {"zeros", "edge", "reflect"};
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const struct weft_attr attrs[] = {
        weft_attr_of_word(WEFT_ATTR_form, forms[weft_onnx_word(op, "mode", "bilinear nearest bicubic linear cubic")]),
        weft_attr_of_word(WEFT_ATTR_border, borders[weft_onnx_word(op, "padding_mode", "zeros border reflection")]),
        weft_attr_of_int(WEFT_ATTR_corners, weft_onnx_int(op, "align_corners", 0) != 0)};
    op->output[0] = weft_onnx_make(op, WEFT_OP_grid_sample, 2, operands, 3, attrs, NULL);
}

/* Coordinates in [-1, 1] of the elements along one axis, repeated over `points`. */
static weft_val coordinates(struct onnx_op *op, const struct weft_type *points, unsigned axis, bool corners)
{
    struct weft_type line = {.dtype = points->dtype, .rank = 1, .extent = {points->extent[axis]}};
    if (!weft_dim_is_constant(line.extent[0]))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "input size must be constant");
    const double n = op->failed ? 1 : (double)weft_dim_value(line.extent[0]);
    const double step = corners ? (n > 1 ? 2 / (n - 1) : 0) : n > 0 ? 2 / n : 0;
    const double first = corners ? (n > 1 ? -1 : 0) : step / 2 - 1;
    const struct weft_attr along = weft_attr_of_int(WEFT_ATTR_axis, 0);
    weft_val x = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &along, &line);
    x = weft_onnx_binary(op, WEFT_OP_mul, x, weft_onnx_splat(op, &line, step));
    x = weft_onnx_binary(op, WEFT_OP_add, x, weft_onnx_splat(op, &line, first));
    return weft_onnx_broadcast_axes(op, x, points, 1, &axis);
}

/* The grid of the identity, [points, k + 1] with a column of ones, times each transposed theta. */
static void import_affine_grid(struct onnx_op *op)
{
    const weft_val theta = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, theta);
    const bool corners = weft_onnx_int(op, "align_corners", 0) != 0;
    unsigned count;
    const weft_dim *size = weft_onnx_known(op, 1, "size", &count);
    if (!size)
        return;
    const unsigned k = count - 2;
    if ((count != 4 && count != 5) || type.rank != 3 || !weft_dim_is(type.extent[1], k) ||
        !weft_dim_is(type.extent[2], k + 1)) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "inputs theta and size do not fit each other");
        return;
    }
    struct weft_dims *dims = op->graph->dims;
    struct weft_type points = {.dtype = type.dtype, .rank = (uint8_t)(k + 1)};
    weft_dim pixels = weft_dim_of(1), result[WEFT_MAX_RANK] = {type.extent[0]};
    for (unsigned i = 0; i < k; i++) {
        points.extent[i] = result[1 + i] = size[2 + i];
        pixels = weft_dim_mul(dims, pixels, size[2 + i]);
    }
    points.extent[k] = weft_dim_of(1);
    result[1 + k] = weft_dim_of(k);
    weft_val column[4];
    for (unsigned i = 0; i < k; i++)
        column[i] = coordinates(op, &points, k - 1 - i, corners);
    column[k] = weft_onnx_splat(op, &points, 1);
    const struct weft_attr along = weft_attr_of_int(WEFT_ATTR_axis, k), swap = weft_attr_of_int(WEFT_ATTR_trans_b, 1);
    weft_val grid = weft_onnx_make(op, WEFT_OP_concat, k + 1, column, 1, &along, NULL);
    const struct weft_type each = {.rank = 3, .extent = {type.extent[0], pixels, weft_dim_of(k + 1)}};
    grid = weft_onnx_broadcast_axes(op, weft_onnx_reshape(op, grid, 2, each.extent + 1), &each,
                                    2, (const unsigned[]){1, 2});
    grid = weft_onnx_make(op, WEFT_OP_matmul, 2, (const weft_val[]){grid, theta}, 1, &swap, NULL);
    op->output[0] = weft_onnx_reshape(op, grid, k + 2, result);
}

/* --- windows ---------------------------------------------------------------------------------------------------- */

/* A list of the attribute as dims, `fallback` where it is absent. */
static struct weft_attr list_attr(struct onnx_op *op, const char *name, int key, unsigned count, int64_t fallback,
                                  weft_dim *room)
{
    unsigned given;
    const int64_t *list = weft_onnx_ints(op, name, &given);
    if (list && given != count)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attribute %s has %u elements instead of %u", name, given, count);
    for (unsigned i = 0; i < count; i++) {
        const int64_t value = list && !op->failed ? list[i] : fallback;
        if (value < -INT32_MAX || value > INT32_MAX)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "element %u of attribute %s is impossible", i, name);
        room[i] = weft_dim_of(op->failed ? fallback : value);
    }
    return weft_attr_of_dims(key, count, room);
}

static void import_col2im(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type from = weft_onnx_type(op, x);
    weft_dim room[3][2 * WEFT_MAX_RANK];
    unsigned axes, taps_count;
    const weft_dim *image = weft_onnx_known(op, 1, "image_shape", &axes);
    const weft_dim *kernel = weft_onnx_known(op, 2, "block_shape", &taps_count);
    if (op->failed)
        return;
    weft_dim taps = weft_dim_of(1), channels = weft_dim_of(0);
    for (unsigned i = 0; i < taps_count; i++)
        taps = weft_dim_mul(op->graph->dims, taps, kernel[i]);
    if (axes != taps_count || axes > WEFT_MAX_RANK - 2 || from.rank != 3 || weft_dim_is(taps, 0) ||
        !weft_dim_divides(op->graph->dims, from.extent[1], taps, &channels)) {
        weft_onnx_fail(op, WEFT_ERR_INVALID, "inputs image_shape and block_shape do not fit the columns");
        return;
    }
    struct weft_type to = {.dtype = from.dtype, .rank = (uint8_t)(axes + 2), .extent = {from.extent[0], channels}};
    memcpy(to.extent + 2, image, axes * sizeof *image);
    const struct weft_attr attrs[] = {weft_attr_of_dims(WEFT_ATTR_kernel, axes, kernel),
                                      list_attr(op, "strides", WEFT_ATTR_stride, axes, 1, room[0]),
                                      list_attr(op, "dilations", WEFT_ATTR_dilation, axes, 1, room[1]),
                                      list_attr(op, "pads", WEFT_ATTR_pad, 2 * axes, 0, room[2])};
    op->output[0] = weft_onnx_make(op, WEFT_OP_col2im, 1, &x, 4, attrs, &to);
}

const struct onnx_row weft_onnx_resize[] = {
    {"AffineGrid", 20, 2, 2, 0, import_affine_grid},
    {"Col2Im", 18, 3, 3, 0, import_col2im},
    {"GridSample", 16, 2, 2, 0, import_grid_sample},
    {"Resize", 10, 2, 2, 0, import_upsample},
    {"Resize", 11, 1, 4, 0, import_resize},
    {"Upsample", 7, 1, 1, 0, import_upsample_attribute},
    {"Upsample", 9, 2, 2, 0, import_upsample},
    {0},
};
