/* SPDX-License-Identifier: Apache-2.0 */
/* import_transform.c: Fourier transforms, windows of signals, determinants. */
#include "onnx/import.h"
#include "onnx/transform.h"

#include <math.h>

/* --- transforms --------------------------------------------------------------------------------------------------- */

static weft_val transform(struct onnx_op *op, weft_val x, unsigned axis, weft_dim length, bool inverse, bool onesided)
{
    const struct weft_attr attrs[] = {
        weft_attr_of_int(WEFT_ATTR_axis, axis),
        {.key = WEFT_ATTR_length, .kind = WEFT_ATTR_INT, .integer = length},
        weft_attr_of_int(WEFT_ATTR_inverse, inverse),
        weft_attr_of_int(WEFT_ATTR_onesided, onesided),
    };
    return weft_onnx_make(op, WEFT_OP_dft, 1, &x, 4, attrs, NULL);
}

/* The axis is an attribute before opset 20, where it counts the batch as 0 and is 1 by default, and an input after. */
static void import_dft(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x);
    const bool inverse = weft_onnx_int(op, "inverse", 0) != 0, onesided = weft_onnx_int(op, "onesided", 0) != 0;
    int64_t given = op->importer->opset < 20 ? weft_onnx_int(op, "axis", 1) : -2;
    if (op->importer->opset >= 20 && weft_onnx_has(op, 2))
        given = weft_onnx_known_int(op, 2, "axis");
    const unsigned axis = weft_onnx_axis(op, given, type.rank);
    if (op->failed)
        return;
    const weft_dim two = weft_dim_of(2), one = weft_dim_of(1), extent = type.extent[axis];
    struct weft_dims *dims = op->graph->dims;
    weft_dim length = inverse && onesided ? weft_dim_mul(dims, two, weft_dim_sub(dims, extent, one)) : extent;
    if (weft_onnx_has(op, 1))
        length = weft_onnx_known_single(op, 1, "dft_length");
    weft_val operand = x;
    if (onesided && !inverse && weft_dim_is(type.extent[type.rank - 1], 2)) { /* only the real parts count */
        weft_dim start[WEFT_MAX_RANK], end[WEFT_MAX_RANK];
        for (unsigned i = 0; i < type.rank; i++) {
            start[i] = weft_dim_of(0);
            end[i] = i + 1 == type.rank ? one : type.extent[i];
        }
        operand = weft_onnx_slice(op, x, start, end, NULL);
    }
    op->output[0] = transform(op, operand, axis, length, inverse, onesided);
}

/* Element (i, j) is i · step + j: which samples a frame holds. */
static weft_val frame_places(struct onnx_op *op, weft_dim frames, weft_dim length, int64_t step)
{
    const struct weft_type type = {.dtype = WEFT_I64, .rank = 2, .extent = {frames, length}};
    weft_val along[2];
    for (unsigned i = 0; i < 2; i++) {
        const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, i);
        along[i] = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &axis, &type);
    }
    const weft_val start =
        weft_onnx_binary(op, WEFT_OP_mul, along[0], weft_onnx_scalar_like(op, along[0], (double)step));
    return weft_onnx_binary(op, WEFT_OP_add, start, along[1]);
}

/* Frames of the signal, `step` samples apart, times the window, each transformed. */
static void import_stft(struct onnx_op *op)
{
    struct weft_dims *dims = op->graph->dims;
    weft_val signal = weft_onnx_input(op, 0);
    struct weft_type type = weft_onnx_type(op, signal);
    const int64_t step = weft_onnx_known_int(op, 1, "frame_step");
    const bool onesided = weft_onnx_int(op, "onesided", 1) != 0;
    if (type.rank == 2) {
        const weft_dim extent[] = {type.extent[0], type.extent[1], weft_dim_of(1)};
        signal = weft_onnx_reshape(op, signal, 3, extent);
        type = weft_onnx_type(op, signal);
    }
    if (!op->failed && (type.rank != 3 || step < 1 || (!weft_onnx_has(op, 2) && !weft_onnx_has(op, 3))))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "it needs a signal of 3 axes, a step, and a window or a frame_length");
    if (op->failed)
        return;
    const weft_dim length = weft_onnx_has(op, 3) ? weft_onnx_known_single(op, 3, "frame_length")
                                                 : weft_onnx_type(op, op->input[2]).extent[0];
    const weft_dim room = weft_dim_sub(dims, type.extent[1], length);
    const weft_dim frames = weft_dim_add(dims, weft_dim_div(dims, room, weft_dim_of(step)), weft_dim_of(1));
    const weft_val operands[] = {signal, frame_places(op, frames, length, step)};
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 1);
    weft_val framed = weft_onnx_make(op, WEFT_OP_gather, 2, operands, 1, &axis, NULL);
    if (weft_onnx_has(op, 2)) {
        const struct weft_type shape = weft_onnx_type(op, framed);
        const weft_val window = weft_onnx_cast(op, op->input[2], shape.dtype);
        framed = weft_onnx_binary(op, WEFT_OP_mul, framed,
                                  weft_onnx_broadcast_axes(op, window, &shape, 1, (const unsigned[]){2}));
    }
    op->output[0] = transform(op, framed, 2, length, false, onesided);
}

/* --- windows of signals ------------------------------------------------------------------------------------------- */

/* a - b · cos(2πi / n) + c · cos(4πi / n); n is the size, less one where the window is symmetric. */
static void import_signal_window(struct onnx_op *op, double a, double b, double c)
{
    struct weft_dims *dims = op->graph->dims;
    const weft_dim size = weft_onnx_known_single(op, 0, "size");
    const int64_t to = weft_onnx_int(op, "output_datatype", 1);
    const int dtype = to > 0 && to < INT32_MAX ? weft_onnx_dtype((int32_t)to) : 0;
    const bool periodic = weft_onnx_int(op, "periodic", 1) != 0;
    if (!dtype)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "type %lld is not supported", (long long)to);
    if (op->failed)
        return;
    const struct weft_type type = {.dtype = WEFT_F64, .rank = 1, .extent = {size}}, one = {.dtype = WEFT_I64};
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    const weft_val place = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &axis, &type);
    const weft_dim points = periodic ? size : weft_dim_sub(dims, size, weft_dim_of(1));
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &points);
    const weft_val count = weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &one);
    const weft_val total = weft_onnx_broadcast(op, weft_onnx_cast(op, count, WEFT_F64), &type);
    const double turn = 6.283185307179586476925286766559;
    const weft_val angle = weft_onnx_binary(
        op, WEFT_OP_div, weft_onnx_binary(op, WEFT_OP_mul, place, weft_onnx_splat(op, &type, turn)), total);
    const weft_val first = weft_onnx_unary(op, WEFT_OP_cos, angle);
    const weft_val second =
        weft_onnx_unary(op, WEFT_OP_cos, weft_onnx_binary(op, WEFT_OP_mul, angle, weft_onnx_splat(op, &type, 2)));
    const weft_val wave = weft_onnx_binary(op, WEFT_OP_mul, first, weft_onnx_splat(op, &type, b));
    weft_val result = weft_onnx_binary(op, WEFT_OP_sub, weft_onnx_splat(op, &type, a), wave);
    if (c != 0)
        result = weft_onnx_binary(op, WEFT_OP_add, result,
                                  weft_onnx_binary(op, WEFT_OP_mul, second, weft_onnx_splat(op, &type, c)));
    op->output[0] = weft_onnx_cast(op, result, dtype);
}

static void import_hann(struct onnx_op *op) { import_signal_window(op, 0.5, 0.5, 0); }
static void import_hamming(struct onnx_op *op) { import_signal_window(op, 25.0 / 46, 21.0 / 46, 0); }
static void import_blackman(struct onnx_op *op) { import_signal_window(op, 0.42, 0.5, 0.08); }

/* --- mel weights -------------------------------------------------------------------------------------------------- */

static double known_real(struct onnx_op *op, unsigned input, const char *what)
{
    struct weft_element number = {0};
    if (!weft_onnx_has(op, input) || !weft_const_splat(op->graph, weft_onnx_folded(op, op->input[input]), &number))
        weft_onnx_fail_unknown(op, input, what, "must be constant");
    return number.real;
}

/* Triangles over the bins of a spectrum, whose corners are evenly spaced in mel; `corner` are bins, bands + 2 of them.
 */
static void fill_triangles(double *weight, int64_t bins, int64_t bands, const int64_t *corner)
{
    for (int64_t band = 0; band < bands; band++) {
        const int64_t low = corner[band], middle = corner[band + 1], high = corner[band + 2];
        for (int64_t bin = low > 0 ? low : 0; bin <= middle && bin < bins; bin++)
            weight[bin * bands + band] = middle == low ? 1 : (double)(bin - low) / (double)(middle - low);
        for (int64_t bin = middle > 0 ? middle : 0; bin < high && bin < bins; bin++)
            weight[bin * bands + band] = (double)(high - bin) / (double)(high - middle);
    }
}

static void import_mel_weights(struct onnx_op *op)
{
    const int64_t bands = weft_onnx_known_int(op, 0, "num_mel_bins"), length = weft_onnx_known_int(op, 1, "dft_length");
    const int64_t rate = weft_onnx_known_int(op, 2, "sample_rate"), to = weft_onnx_int(op, "output_datatype", 1);
    const double low = known_real(op, 3, "lower_edge_hertz"), high = known_real(op, 4, "upper_edge_hertz");
    const int dtype = to > 0 && to < INT32_MAX ? weft_onnx_dtype((int32_t)to) : 0;
    if (!op->failed && (bands < 1 || bands > 65536 || length < 1 || length > 65536 || rate < 1 || !dtype ||
                        !(low >= 0 && high >= low && high <= 1e9)))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "its inputs or output_datatype do not fit");
    if (op->failed)
        return;
    const int64_t bins = length / 2 + 1;
    double *weight = weft_new(op->importer->reader.arena, double, bins * bands);
    int64_t *corner = weft_new(op->importer->reader.arena, int64_t, bands + 2);
    const double first = 2595 * log10(1 + low / 700),
                 step = (2595 * log10(1 + high / 700) - first) / (double)(bands + 2);
    for (int64_t i = 0; i < bands + 2; i++) {
        const double hertz = 700 * (pow(10, ((double)i * step + first) / 2595) - 1);
        corner[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
    }
    fill_triangles(weight, bins, bands, corner);
    struct weft_tensor tensor = {.data = weight, .dtype = WEFT_F64, .rank = 2, .extent = {bins, bands}};
    weft_tensor_dense(&tensor);
    const weft_val table = weft_onnx_copy_constant(op->importer, op->graph, &tensor, op->name);
    if (!table.id)
        op->failed = true; /* the error is recorded */
    op->output[0] = weft_onnx_cast(op, table, dtype);
}

static void import_det(struct onnx_op *op) { op->output[0] = weft_onnx_unary(op, WEFT_OP_det, weft_onnx_input(op, 0)); }

const struct onnx_row weft_onnx_transform[] = {
    {"BlackmanWindow", 17, 1, 1, 0, import_blackman},
    {"DFT", 17, 1, 2, 0, import_dft},
    {"DFT", 20, 1, 3, 0, import_dft},
    {"Det", 11, 1, 1, 0, import_det},
    {"Einsum", 12, 1, -1, 0, weft_onnx_import_einsum},
    {"HammingWindow", 17, 1, 1, 0, import_hamming},
    {"HannWindow", 17, 1, 1, 0, import_hann},
    {"MelWeightMatrix", 17, 5, 5, 0, import_mel_weights},
    {"STFT", 17, 2, 4, 0, import_stft},
    {0},
};
