/* SPDX-License-Identifier: Apache-2.0 */
/* import_random.c: random numbers, and dropout while training.
 *
 * A node without a seed gets seed 0 and a stream of its own, so that results differ among nodes and repeat among runs;
 * one with a seed has exactly the numbers of that seed. */
#include "onnx/import.h"

#include <math.h>
#include <string.h>

static unsigned put_seed(struct onnx_op *op, bool given, int64_t seed, struct weft_attr *attr)
{
    attr[0] = weft_attr_of_int(WEFT_ATTR_seed, given ? seed : 0);
    attr[1] = weft_attr_of_int(WEFT_ATTR_stream, given ? 0 : ++op->importer->streams);
    return 2;
}

/* A seed is a float; what is no whole number counts by its bits. */
static unsigned read_seed(struct onnx_op *op, struct weft_attr *attr)
{
    const struct onnx_attribute *given = weft_onnx_attribute(op, "seed", ONNX_FLOAT);
    const float seed = given ? (float)given->real : 0;
    uint32_t bits;
    memcpy(&bits, &seed, sizeof bits);
    const bool whole = seed >= 0 && seed < 0x1p31f && floorf(seed) == seed;
    return put_seed(op, given, whole ? (int64_t)seed : (int64_t)bits, attr);
}

/* Attribute dtype, a TensorProto.DataType. */
static int dtype_of(struct onnx_op *op, int fallback)
{
    const struct onnx_attribute *given = weft_onnx_attribute(op, "dtype", ONNX_INT);
    const int dtype = given ? weft_onnx_dtype((int32_t)given->integer) : fallback;
    if (!dtype)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "attribute dtype asks for elements of type %s",
                       weft_onnx_dtype_name((int32_t)given->integer));
    return dtype;
}

static void make_random(struct onnx_op *op, struct weft_type *type)
{
    struct weft_attr attr[4];
    const bool normal = op->row->opcode == WEFT_OP_rand_normal;
    const unsigned attrs = read_seed(op, attr);
    attr[attrs] = weft_attr_of_real(normal ? WEFT_ATTR_mean : WEFT_ATTR_low,
                                    weft_onnx_real(op, normal ? "mean" : "low", 0));
    attr[attrs + 1] = weft_attr_of_real(normal ? WEFT_ATTR_deviation : WEFT_ATTR_high,
                                        weft_onnx_real(op, normal ? "scale" : "high", 1));
    op->output[0] = weft_onnx_make(op, op->row->opcode, 0, NULL, attrs + 2, attr, type);
}

static void import_random(struct onnx_op *op)
{
    unsigned rank;
    const int64_t *shape = weft_onnx_ints(op, "shape", &rank);
    struct weft_type type = {.dtype = (uint8_t)dtype_of(op, WEFT_F32), .rank = (uint8_t)rank};
    if (!shape || rank > WEFT_MAX_RANK) {
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, shape ? "a shape of more than %d axes" : "attribute shape is missing",
                       WEFT_MAX_RANK);
        return;
    }
    for (unsigned i = 0; i < rank; i++)
        type.extent[i] = weft_dim_of(shape[i]);
    make_random(op, &type);
}

static void import_random_like(struct onnx_op *op)
{
    struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 0));
    type.dtype = (uint8_t)dtype_of(op, type.dtype);
    make_random(op, &type);
}

static void import_bernoulli(struct onnx_op *op)
{
    const weft_val p = weft_onnx_input(op, 0);
    const int dtype = dtype_of(op, weft_onnx_type(op, p).dtype);
    struct weft_attr attr[2];
    const unsigned attrs = read_seed(op, attr);
    op->output[0] = weft_onnx_cast(op, weft_onnx_make(op, WEFT_OP_bernoulli, 1, &p, attrs, attr, NULL), dtype);
}

static void import_multinomial(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const int dtype = dtype_of(op, WEFT_I32);
    struct weft_attr attr[3];
    const unsigned attrs = read_seed(op, attr);
    attr[attrs] = weft_attr_of_int(WEFT_ATTR_samples, weft_onnx_int(op, "sample_size", 1));
    op->output[0] = weft_onnx_cast(op, weft_onnx_make(op, WEFT_OP_multinomial, 1, &x, attrs + 1, attr, NULL), dtype);
}

/* --- dropout ------------------------------------------------------------------------------------------------------ */

static bool wants_mask(const struct onnx_op *op) { return op->outputs > 1 && op->node->output.item[1].length; }

/* Dropout drops nothing when a model is run. The mask then says that everything was kept. */
static void keep_all(struct onnx_op *op)
{
    weft_onnx_ignore(op, "ratio");
    weft_onnx_ignore(op, "seed");
    op->output[0] = weft_onnx_input(op, 0);
    if (!wants_mask(op))
        return;
    struct weft_type type = weft_onnx_type(op, op->output[0]);
    if (op->importer->opset >= 10)
        type.dtype = WEFT_BOOL;
    op->output[1] = weft_onnx_splat(op, &type, 1);
}

/* An element is kept with probability 1 - ratio, and then divided by it. */
static void drop_some(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const struct weft_type type = weft_onnx_type(op, x), scalar = {.dtype = WEFT_F32};
    weft_val ratio = weft_onnx_has(op, 1) ? weft_onnx_cast(op, weft_onnx_reshape(op, op->input[1], 0, NULL), WEFT_F32)
                                          : weft_onnx_splat(op, &scalar, 0.5);
    const weft_val zero = weft_onnx_splat(op, &scalar, 0);
    const weft_val training = weft_onnx_reshape(op, weft_onnx_input(op, 2), 0, NULL);
    ratio = weft_onnx_make(op, WEFT_OP_select, 3, (const weft_val[]){training, ratio, zero}, 0, NULL, NULL);
    const weft_val kept = weft_onnx_binary(op, WEFT_OP_sub, weft_onnx_splat(op, &scalar, 1), ratio);
    const weft_val chance = weft_onnx_broadcast(op, kept, &type);
    struct weft_attr attr[2];
    const struct onnx_attribute *seed = weft_onnx_attribute(op, "seed", ONNX_INT);
    const unsigned attrs = put_seed(op, seed, seed ? seed->integer & (INT64_MAX / 4) : 0, attr);
    const weft_val mask = weft_onnx_make(op, WEFT_OP_bernoulli, 1, &chance, attrs, attr, NULL);
    const weft_val divisor = weft_onnx_broadcast(op, weft_onnx_cast(op, kept, type.dtype), &type);
    const weft_val scaled = weft_onnx_binary(op, WEFT_OP_div, x, divisor);
    op->output[0] = weft_onnx_make(op, WEFT_OP_select, 3,
                                   (const weft_val[]){mask, scaled, weft_onnx_splat(op, &type, 0)}, 0, NULL, NULL);
    if (wants_mask(op))
        op->output[1] = mask;
}

static void import_dropout(struct onnx_op *op)
{
    weft_dim training = weft_dim_of(0);
    const bool known = !weft_onnx_has(op, 2) || weft_onnx_single(op, op->input[2], &training);
    if (known && weft_dim_is(training, 0))
        keep_all(op);
    else
        drop_some(op);
}

const struct onnx_row weft_onnx_random[] = {
    {"Bernoulli", 15, 1, 1, 0, import_bernoulli},
    {"Dropout", 7, 1, 1, 0, import_dropout},
    {"Dropout", 12, 1, 3, 0, import_dropout},
    {"Multinomial", 7, 1, 1, 0, import_multinomial},
    {"RandomNormal", 1, 0, 0, WEFT_OP_rand_normal, import_random},
    {"RandomNormalLike", 1, 1, 1, WEFT_OP_rand_normal, import_random_like},
    {"RandomUniform", 1, 0, 0, WEFT_OP_rand_uniform, import_random},
    {"RandomUniformLike", 1, 1, 1, WEFT_OP_rand_uniform, import_random_like},
    {0},
};
