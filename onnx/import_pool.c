/* SPDX-License-Identifier: Apache-2.0 */
/* import_pool.c: windows without weights, their inverse, whole planes as windows, and regions. */
#include "onnx/window.h"

/* --- windows ------------------------------------------------------------------------------------------------------ */

static void import_pool(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    struct onnx_window window = {0};
    weft_onnx_read_window(op, &type, NULL, &window);
    if (op->failed)
        return;
    struct weft_attr attrs[6];
    unsigned count = weft_onnx_window_attrs(op, &window, attrs);
    attrs[count++] = weft_attr_of_ints(op->graph, WEFT_ATTR_kernel, window.axes, window.kernel);
    if (op->importer->opset >= 10)
        attrs[count++] = weft_attr_of_int(WEFT_ATTR_ceil, weft_onnx_int(op, "ceil_mode", 0) != 0);
    const int opcode = op->row->opcode;
    if (opcode == WEFT_OP_mean_pool)
        attrs[count++] = weft_attr_of_int(WEFT_ATTR_count_pad, weft_onnx_int(op, "count_include_pad", 0) != 0);
    else if (opcode == WEFT_OP_norm_pool)
        attrs[count++] = weft_attr_of_int(WEFT_ATTR_order, weft_onnx_int(op, "p", 2));
    const int64_t column_major = opcode == WEFT_OP_max_pool ? weft_onnx_int(op, "storage_order", 0) : 0;
    if (op->outputs < 2 || opcode != WEFT_OP_max_pool || !op->node->output.item[1].length) {
        op->output[0] = weft_onnx_make(op, opcode, 1, &x, count, attrs, NULL);
        return;
    }
    attrs[count++] = weft_attr_of_int(WEFT_ATTR_column_major, column_major != 0);
    op->output[0] = weft_onnx_make(op, WEFT_OP_max_pool_index, 1, &x, count, attrs, NULL);
    if (!op->failed)
        op->output[1] = weft_result(op->graph, weft_def(op->graph, op->output[0]), 1);
}

static void import_global_pool(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned rank = weft_onnx_type(op, x).rank;
    unsigned axes[WEFT_MAX_RANK], count = 0;
    for (unsigned axis = 2; axis < rank; axis++)
        axes[count++] = axis;
    if (!count)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "an input of %u axes has no spatial ones", rank);
    op->output[0] = weft_onnx_reduction(op, op->row->opcode, x, count, axes, true);
}

static void import_global_norm(struct onnx_op *op)
{
    const double order = (double)weft_onnx_int(op, "p", 2);
    const weft_val x = weft_onnx_input(op, 0);
    const weft_val size = weft_onnx_unary(op, WEFT_OP_abs, weft_onnx_widen(op, x));
    unsigned axes[WEFT_MAX_RANK], count = 0;
    for (unsigned axis = 2; axis < weft_onnx_type(op, x).rank; axis++)
        axes[count++] = axis;
    const weft_val power = weft_onnx_binary(op, WEFT_OP_pow, size, weft_onnx_scalar_like(op, size, order));
    const weft_val sum = weft_onnx_reduction(op, WEFT_OP_sum, power, count, axes, true);
    const weft_val root = weft_onnx_binary(op, WEFT_OP_pow, sum, weft_onnx_scalar_like(op, sum, 1 / order));
    op->output[0] = weft_onnx_cast(op, root, weft_onnx_type(op, x).dtype);
}

/* Places count in the shape that the pooled operand must have had; a larger output_shape adds zeros behind. */
static void import_unpool(struct onnx_op *op)
{
    struct weft_dims *dims = op->graph->dims;
    const weft_val operands[] = {weft_onnx_input(op, 0), weft_onnx_input(op, 1)};
    const struct weft_type type = weft_onnx_type(op, operands[0]);
    struct onnx_window window = {0};
    weft_onnx_read_window(op, &type, NULL, &window);
    struct weft_type natural = type;
    for (unsigned i = 0; i < window.axes && !op->failed; i++) {
        const weft_dim steps =
            weft_dim_mul(dims, weft_dim_sub(dims, type.extent[2 + i], weft_dim_of(1)), weft_dim_of(window.stride[i]));
        const weft_dim cut = weft_dim_add(dims, window.pad[i], window.pad[window.axes + i]);
        natural.extent[2 + i] = weft_dim_sub(dims, weft_dim_add(dims, steps, weft_dim_of(window.kernel[i])), cut);
    }
    weft_val result = weft_onnx_make(op, WEFT_OP_unpool, 2, operands, 0, NULL, &natural);
    weft_dim pad[2 * WEFT_MAX_RANK];
    unsigned count;
    const weft_dim *wanted = weft_onnx_has(op, 2) ? weft_onnx_known(op, 2, "output_shape", &count) : NULL;
    if (wanted) {
        if (count != type.rank)
            weft_onnx_fail(op, WEFT_ERR_INVALID, "output_shape has %u elements for %u axes", count, type.rank);
        for (unsigned i = 0; i < type.rank && !op->failed; i++) {
            pad[i] = weft_dim_of(0);
            pad[type.rank + i] = weft_dim_sub(dims, wanted[i], natural.extent[i]);
        }
        const struct weft_type scalar = {.dtype = type.dtype};
        const weft_val filled[] = {result, weft_onnx_splat(op, &scalar, 0)};
        const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, pad);
        result = weft_onnx_make(op, WEFT_OP_pad, 2, filled, 1, &attr, NULL);
    }
    op->output[0] = result;
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

static void import_roi_align(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const weft_val operands[] = {x, weft_onnx_cast(op, weft_onnx_input(op, 1), weft_onnx_type(op, x).dtype),
                                 weft_onnx_input(op, 2)};
    const int64_t size[] = {weft_onnx_int(op, "output_height", 1), weft_onnx_int(op, "output_width", 1)};
    const bool largest = weft_onnx_word(op, "mode", "avg max") == 1;
    const bool half_pixel = op->importer->opset >= 16 &&
                            weft_onnx_word(op, "coordinate_transformation_mode", "half_pixel output_half_pixel") == 0;
    if (op->failed)
        return;
    const struct weft_attr attrs[] = {
        weft_attr_of_ints(op->graph, WEFT_ATTR_size, 2, size),
        weft_attr_of_real(WEFT_ATTR_factor, weft_onnx_real(op, "spatial_scale", 1)),
        weft_attr_of_int(WEFT_ATTR_samples, weft_onnx_int(op, "sampling_ratio", 0)),
        weft_attr_of_int(WEFT_ATTR_half_pixel, half_pixel),
        weft_attr_of_word(WEFT_ATTR_form, largest ? "max" : "mean"),
    };
    op->output[0] = weft_onnx_make(op, WEFT_OP_roi_align, 3, operands, 5, attrs, NULL);
}

/* A box is five numbers, of which the first says which image it lies in. */
static void import_roi_max_pool(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0), rois = weft_onnx_input(op, 1);
    const struct weft_type type = weft_onnx_type(op, rois);
    if (!op->failed && (type.rank != 2 || !weft_dim_is(type.extent[1], 5)))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "rois must have five numbers each");
    int64_t size[2] = {1, 1};
    weft_onnx_read_list(op, "pooled_shape", 2, 1, size);
    if (op->failed)
        return;
    const weft_dim start[] = {weft_dim_of(0), weft_dim_of(0)}, middle[] = {weft_dim_of(0), weft_dim_of(1)};
    const weft_dim one[] = {type.extent[0], weft_dim_of(1)}, end[] = {type.extent[0], weft_dim_of(5)};
    const weft_val image = weft_onnx_reshape(op, weft_onnx_slice(op, rois, start, one, NULL), 1, type.extent);
    const weft_val operands[] = {x, weft_onnx_slice(op, rois, middle, end, NULL), weft_onnx_cast(op, image, WEFT_I64)};
    const struct weft_attr attrs[] = {weft_attr_of_ints(op->graph, WEFT_ATTR_size, 2, size),
                                      weft_attr_of_real(WEFT_ATTR_factor, weft_onnx_real(op, "spatial_scale", 1))};
    op->output[0] = weft_onnx_make(op, WEFT_OP_roi_max_pool, 3, operands, 2, attrs, NULL);
}

const struct onnx_row weft_onnx_pool[] = {
    {"AveragePool", 1, 1, 1, WEFT_OP_mean_pool, import_pool},
    {"GlobalAveragePool", 1, 1, 1, WEFT_OP_mean, import_global_pool},
    {"GlobalLpPool", 2, 1, 1, 0, import_global_norm},
    {"GlobalMaxPool", 1, 1, 1, WEFT_OP_reduce_max, import_global_pool},
    {"LpPool", 2, 1, 1, WEFT_OP_norm_pool, import_pool},
    {"MaxPool", 1, 1, 1, WEFT_OP_max_pool, import_pool},
    {"MaxRoiPool", 1, 2, 2, 0, import_roi_max_pool},
    {"MaxUnpool", 9, 2, 3, 0, import_unpool},
    {"RoiAlign", 10, 3, 3, 0, import_roi_align},
    {0},
};
