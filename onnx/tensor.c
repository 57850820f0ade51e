/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c: TensorProto into constants.
 *
 * Raw and external data stay where they are: a const points into the mapped file, at whatever address the writer
 * happened to leave it. Only single elements (which are better off as splats, known to every pass) and the typed
 * fields, whose elements are varints or spread over several fields, are converted into memory. Everything a tensor says
 * about sizes is checked against the bytes that are there before anything is made.
 *
 * External data may lie beside the model or below it and nowhere else: its location is a relative path without `..`,
 * and what it resolves to, symbolic links included, is inside the model's folder (of the link or of the file that it
 * points to: model caches link both into one store). */
#include "onnx/import.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t dtype;
    uint8_t field; /* of the typed elements when there is no raw data */
} types[] = {
    [1] = {"float", WEFT_F32, 4},
    [2] = {"uint8", WEFT_U8, 5},
    [3] = {"int8", WEFT_I8, 5},
    [4] = {"uint16", WEFT_U16, 5},
    [5] = {"int16", WEFT_I16, 5},
    [6] = {"int32", WEFT_I32, 5},
    [7] = {"int64", WEFT_I64, 7},
    [8] = {"string", 0, 6},
    [9] = {"bool", WEFT_BOOL, 5},
    [10] = {"float16", WEFT_F16, 5},
    [11] = {"double", WEFT_F64, 10},
    [12] = {"uint32", WEFT_U32, 11},
    [13] = {"uint64", WEFT_U64, 11},
    [14] = {"complex64", 0, 4},
    [15] = {"complex128", 0, 10},
    [16] = {"bfloat16", WEFT_BF16, 5},
    [17] = {"float8e4m3fn", WEFT_F8E4M3, 5},
    [18] = {"float8e4m3fnuz", 0, 5},
    [19] = {"float8e5m2", WEFT_F8E5M2, 5},
    [20] = {"float8e5m2fnuz", 0, 5},
    [21] = {"uint4", WEFT_U4, 5},
    [22] = {"int4", WEFT_I4, 5},
    [23] = {"float4e2m1", 0, 5},
    [24] = {"float8e8m0", 0, 5},
    [25] = {"uint2", 0, 5},
    [26] = {"int2", 0, 5},
};
enum { TYPES = sizeof types / sizeof *types };

int weft_onnx_dtype(int32_t type) { return type > 0 && type < TYPES ? types[type].dtype : 0; }

const char *weft_onnx_dtype_name(int32_t type)
{
    return type > 0 && type < TYPES ? types[type].name : type == 0 ? "undefined" : "unknown";
}

/* What is being made, for the helpers below. */
struct maker {
    struct onnx_importer *importer;
    struct weft_graph *graph;
    const struct onnx_tensor *tensor;
    const char *what;
    struct weft_type type;
    int64_t elements;
    size_t bytes;
};

static bool fail(const struct maker *maker, int status, const char *format, ...) WEFT_PRINTF(3, 4);
static bool fail(const struct maker *maker, int status, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const struct onnx_reader *reader = &maker->importer->reader;
    const size_t at = maker->tensor->message.data ? (size_t)(maker->tensor->message.data - reader->start) : 0;
    weft_error(reader->context, status, &(struct weft_place){.file = reader->path, .where = maker->what},
               "tensor at byte %zu: %s", at, message);
    return false;
}

static bool check_shape(struct maker *maker)
{
    const struct onnx_tensor *tensor = maker->tensor;
    const int dtype = weft_onnx_dtype(tensor->type);
    if (!dtype)
        return fail(maker, WEFT_ERR_UNSUPPORTED, "elements of type %s (%d) are not supported",
                    weft_onnx_dtype_name(tensor->type), tensor->type);
    if (tensor->rank > WEFT_MAX_RANK)
        return fail(maker, WEFT_ERR_UNSUPPORTED, "%u axes are more than %d", tensor->rank, WEFT_MAX_RANK);
    maker->type = (struct weft_type){.dtype = (uint8_t)dtype, .rank = (uint8_t)tensor->rank};
    maker->elements = 1;
    bool fits = true;
    for (unsigned i = 0; i < tensor->rank; i++) {
        if (tensor->dim[i] < 0)
            return fail(maker, WEFT_ERR_INVALID, "extent %lld of axis %u is negative", (long long)tensor->dim[i], i);
        maker->type.extent[i] = weft_dim_of(tensor->dim[i]);
        fits = fits && tensor->dim[i] < INT64_MAX / 128 &&
               !__builtin_mul_overflow(maker->elements, tensor->dim[i], &maker->elements);
    }
    if (!fits || maker->elements > INT64_MAX / 128)
        return fail(maker, WEFT_ERR_INVALID, "its extents are too large");
    maker->bytes = (size_t)weft_dtype_bytes(dtype, maker->elements);
    return true;
}

static weft_val add_const(const struct maker *maker, const struct weft_constant *constant)
{
    const weft_node node = weft_add_node(
        maker->graph, &(struct weft_node_spec){.op = WEFT_OP_const,
                                               .stated = &maker->type,
                                               .constant = constant,
                                               .place = {.file = maker->importer->reader.path, .where = maker->what}});
    return node.id ? weft_result(maker->graph, node, 0) : WEFT_NO_VALUE;
}

static weft_val add_splat(const struct maker *maker, const void *data)
{
    struct weft_constant constant = {.kind = WEFT_CONST_SPLAT, .integer = !weft_dtype_is_float(maker->type.dtype)};
    if (constant.integer)
        constant.splat = weft_load_integer(maker->type.dtype, data, 0);
    else
        constant.real = weft_load_real(maker->type.dtype, data, 0);
    return add_const(maker, &constant);
}

static struct weft_blob *new_blob(const struct maker *maker)
{
    struct weft_blob *blob = weft_blob_new(maker->importer->reader.context, maker->bytes);
    if (!blob)
        weft_out_of_memory(maker->importer->reader.context);
    weft_graph_hold(maker->graph, blob);
    return blob;
}

/* --- bytes in a file ---------------------------------------------------------------------------------------------- */

/* Files are little-endian. */
static weft_val add_swapped(const struct maker *maker, const uint8_t *data)
{
    struct weft_blob *blob = new_blob(maker);
    const size_t size = weft_dtype_bits(maker->type.dtype) < 8 ? 1 : weft_dtype_bits(maker->type.dtype) / 8;
    uint8_t *to = blob->data;
    for (size_t i = 0; i < maker->bytes; i++)
        to[i] = data[i - i % size + (size - 1 - i % size)];
    return maker->elements == 1 ? add_splat(maker, to)
                                : add_const(maker, &(struct weft_constant){.kind = WEFT_CONST_BLOB, .blob = blob});
}

static weft_val add_bytes(const struct maker *maker, struct weft_blob *file, const uint8_t *data)
{
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return add_swapped(maker, data);
    if (maker->elements == 1)
        return add_splat(maker, data);
    if (maker->bytes == 0)
        return add_const(maker, &(struct weft_constant){.kind = WEFT_CONST_SPLAT,
                                                        .integer = !weft_dtype_is_float(maker->type.dtype)});
    weft_graph_hold(maker->graph, weft_blob_hold(file));
    return add_const(maker, &(struct weft_constant){.kind = WEFT_CONST_BLOB,
                                                    .blob = file,
                                                    .offset = (uint64_t)(data - (const uint8_t *)file->data)});
}

static weft_val add_raw(const struct maker *maker)
{
    const struct weft_span raw = maker->tensor->raw;
    if (raw.bytes != maker->bytes) {
        fail(maker, WEFT_ERR_INVALID, "its shape asks for %zu bytes of data, but there are %zu", maker->bytes,
             raw.bytes);
        return WEFT_NO_VALUE;
    }
    return add_bytes(maker, maker->importer->file, raw.data);
}

/* --- typed fields ------------------------------------------------------------------------------------------------- */

static void store_low(void *data, size_t size, int64_t i, uint64_t bits)
{
    const uint8_t byte = (uint8_t)bits;
    const uint16_t half = (uint16_t)bits;
    const uint32_t word = (uint32_t)bits;
    const void *from = size == 1   ? (const void *)&byte
                       : size == 2 ? (const void *)&half
                       : size == 4 ? (const void *)&word
                                   : &bits;
    memcpy((char *)data + (size_t)i * size, from, size);
}

/* Walks all occurrences of the field; `data` NULL only counts. Elements narrower than a byte come two a number. */
static bool walk_typed(const struct maker *maker, void *data, int64_t *ret_count)
{
    const unsigned number = types[maker->tensor->type].field;
    const int wire_type = number == 4 ? WEFT_WIRE_FIXED32 : number == 10 ? WEFT_WIRE_FIXED64 : WEFT_WIRE_VARINT;
    const unsigned bits = weft_dtype_bits(maker->type.dtype);
    struct weft_wire wire = weft_wire_open(maker->tensor->message);
    struct weft_wire_field field;
    uint64_t element;
    int64_t count = 0;
    while (weft_wire_next(&wire, &field)) {
        if (field.number != number)
            continue;
        struct weft_wire_list list = weft_wire_list(&wire, &field, wire_type);
        for (; weft_wire_list_next(&list, &element); count++)
            if (data)
                store_low(data, bits < 8 ? 1 : bits / 8, count, element);
    }
    *ret_count = count;
    return weft_onnx_finish(&maker->importer->reader, &wire);
}

static weft_val add_typed(const struct maker *maker)
{
    const bool halves = weft_dtype_bits(maker->type.dtype) < 8;
    const int64_t numbers = halves ? (maker->elements + 1) / 2 : maker->elements;
    int64_t count;
    if (!walk_typed(maker, NULL, &count))
        return WEFT_NO_VALUE;
    if (count != numbers) {
        fail(maker, WEFT_ERR_INVALID, "its shape asks for %lld elements, but there are %lld",
             (long long)maker->elements, (long long)(halves ? 2 * count : count));
        return WEFT_NO_VALUE;
    }
    uint64_t single = 0;
    struct weft_blob *blob = maker->elements > 1 ? new_blob(maker) : NULL;
    void *data = blob ? blob->data : &single;
    walk_typed(maker, data, &count);
    if (maker->elements > 1)
        return add_const(maker, &(struct weft_constant){.kind = WEFT_CONST_BLOB, .blob = blob});
    return maker->elements == 1 ? add_splat(maker, data) : add_bytes(maker, maker->importer->file, NULL);
}

/* --- external data ------------------------------------------------------------------------------------------------ */

/* Relative, and no component is `..`; a backslash could be a separator elsewhere, and means nothing good here. */
static bool is_plain_path(struct onnx_string path)
{
    if (path.length == 0 || path.length >= PATH_MAX || path.data[0] == '/' || memchr(path.data, '\0', path.length) ||
        memchr(path.data, '\\', path.length))
        return false;
    for (size_t i = 0, start = 0; i <= path.length; i++)
        if (i == path.length || path.data[i] == '/') {
            if (i - start == 2 && memcmp(path.data + start, "..", 2) == 0)
                return false;
            start = i + 1;
        }
    return true;
}

static bool is_within(const char *folder, const char *path)
{
    char resolved[PATH_MAX];
    if (!realpath(folder, resolved))
        return false;
    const size_t length = strlen(resolved);
    return strncmp(path, resolved, length) == 0 && (path[length] == '/' || (length == 1 && *resolved == '/'));
}

static struct weft_blob *map_external(const struct maker *maker, struct onnx_string location)
{
    struct onnx_importer *importer = maker->importer;
    struct weft_arena *arena = importer->reader.arena;
    const uint32_t known = weft_onnx_find_name(&importer->data_file, location);
    if (known != ONNX_NO_NAME)
        return importer->data[known];
    const char *folder = importer->reader.folder;
    if (!folder) {
        fail(maker, WEFT_ERR_INVALID,
             "its data file \"%.*s\": a model in memory may name none, unless its folder is given",
             (int)location.length, location.data);
        return NULL;
    }
    const char *path = weft_arena_format(arena, "%s%.*s", folder, (int)location.length, location.data);
    char resolved[PATH_MAX], model[PATH_MAX];
    if (realpath(path, resolved) && !is_within(folder, resolved) &&
        !(importer->reader.is_path && realpath(importer->reader.path, model) &&
          is_within(weft_onnx_folder_of(arena, model), resolved))) {
        fail(maker, WEFT_ERR_INVALID, "its data file \"%.*s\" is a link out of the model's folder",
             (int)location.length, location.data);
        return NULL;
    }
    struct weft_blob *blob = weft_blob_map(importer->reader.context, path);
    if (blob)
        weft_graph_hold(importer->root, blob);
    else /* said once, however many tensors are in it */
        fail(maker, WEFT_ERR_IO, "its data file \"%.*s\" has to lie beside the model", (int)location.length,
             location.data);
    const uint32_t i = weft_onnx_add_name(arena, &importer->data_file, location);
    importer->data = weft_grow(arena, importer->data, &importer->data_capacity, i + 1, sizeof(struct weft_blob *));
    importer->data[i] = blob;
    return blob;
}

/* A decimal number; "" is `absent`. */
static bool parse_decimal(struct onnx_string text, uint64_t absent, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
            return false;
    *ret = text.length ? value : absent;
    return true;
}

static weft_val add_external(const struct maker *maker)
{
    const struct onnx_tensor *tensor = maker->tensor;
    const struct onnx_string location = tensor->location;
    uint64_t offset, length;
    if (!is_plain_path(location)) {
        fail(maker, WEFT_ERR_INVALID, "its data file \"%.*s\" is not a relative path without \"..\"",
             location.length < 200 ? (int)location.length : 200, location.data ? location.data : "");
        return WEFT_NO_VALUE;
    }
    if (!parse_decimal(tensor->offset, 0, &offset) || !parse_decimal(tensor->length, maker->bytes, &length)) {
        fail(maker, WEFT_ERR_INVALID, "offset or length of its data file is not a number");
        return WEFT_NO_VALUE;
    }
    struct weft_blob *file = map_external(maker, location);
    if (!file)
        return WEFT_NO_VALUE;
    if (length != maker->bytes || offset > file->bytes || length > file->bytes - offset) {
        fail(maker, WEFT_ERR_INVALID,
             "its shape asks for %zu bytes, but it has %llu at offset %llu of \"%.*s\" (%zu bytes)", maker->bytes,
             (unsigned long long)length, (unsigned long long)offset, (int)location.length, location.data, file->bytes);
        return WEFT_NO_VALUE;
    }
    return add_bytes(maker, file, (const uint8_t *)file->data + offset);
}

weft_val weft_onnx_copy_constant(struct onnx_importer *importer, struct weft_graph *graph,
                                 const struct weft_tensor *tensor, const char *what)
{
    const struct onnx_tensor none = {.type = 0};
    struct maker maker = {.importer = importer,
                          .graph = graph,
                          .tensor = &none,
                          .what = what,
                          .type = {.dtype = (uint8_t)tensor->dtype, .rank = (uint8_t)tensor->rank},
                          .elements = 1};
    for (int axis = 0; axis < tensor->rank; axis++) {
        maker.type.extent[axis] = weft_dim_of(tensor->extent[axis]);
        maker.elements *= tensor->extent[axis];
    }
    maker.bytes = (size_t)weft_dtype_bytes(tensor->dtype, maker.elements);
    if (maker.elements <= 1)
        return add_bytes(&maker, importer->file, tensor->data);
    struct weft_blob *blob = new_blob(&maker);
    memcpy(blob->data, tensor->data, maker.bytes);
    return add_const(&maker, &(struct weft_constant){.kind = WEFT_CONST_BLOB, .blob = blob});
}

weft_val weft_onnx_constant(struct onnx_importer *importer, struct weft_graph *graph, const struct onnx_tensor *tensor,
                            const char *what)
{
    struct maker maker = {.importer = importer, .graph = graph, .tensor = tensor, .what = what};
    if (!check_shape(&maker))
        return WEFT_NO_VALUE;
    return tensor->external ? add_external(&maker) : tensor->has_raw ? add_raw(&maker) : add_typed(&maker);
}
