/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_proto.c: a file that holds one TensorProto, as the inputs and outputs of the ONNX backend tests are kept.
 *
 * The importer knows how to make a constant of a TensorProto, whatever its encoding; so the file becomes the one
 * constant of a graph that is thrown away, and its elements are copied out. */
#include "tools/conform.h"

#include "onnx/import.h"

#include <stdlib.h>

struct proto {
    struct weft_context *context;
    const char *path;
    struct weft_arena scratch;
    struct weft_graph *graph;
    struct weft_blob *file;
    struct weft_tensor *tensor;
};

static void copy_elements(struct proto *proto, weft_val value)
{
    const struct weft_type *type = weft_type_of(proto->graph, value);
    struct weft_tensor tensor = {.dtype = type->dtype, .rank = type->rank};
    int64_t elements = 1;
    for (int axis = 0; axis < type->rank; axis++) {
        tensor.extent[axis] = weft_dim_value(type->extent[axis]);
        elements *= tensor.extent[axis];
    }
    weft_tensor_dense(&tensor);
    tensor.data = calloc(1, (size_t)weft_dtype_bytes(tensor.dtype, elements) + 1);
    if (!tensor.data)
        weft_out_of_memory(proto->context);
    if (elements > 0)
        weft_const_write(proto->graph, value, tensor.data);
    *proto->tensor = tensor;
}

static int read_protected(void *arg)
{
    struct proto *proto = arg;
    proto->graph = weft_graph_new(proto->context, "tensor");
    proto->file = weft_blob_map(proto->context, proto->path);
    if (!proto->file)
        return WEFT_OK; /* the error is recorded, and decides */
    struct onnx_importer importer = {
        .reader = {.context = proto->context,
                   .arena = &proto->scratch,
                   .start = proto->file->data,
                   .path = proto->path},
        .root = proto->graph,
        .file = proto->file};
    struct onnx_tensor tensor;
    const struct weft_span message = {proto->file->data, proto->file->bytes};
    if (!weft_onnx_read_tensor(&importer.reader, message, &tensor))
        return WEFT_OK;
    const weft_val value = weft_onnx_constant(&importer, proto->graph, &tensor, NULL);
    if (value.id)
        copy_elements(proto, value);
    return WEFT_OK;
}

bool weft_tensor_proto_load(struct weft_context *context, const char *path, struct weft_tensor *ret_tensor)
{
    struct proto proto = {.context = context, .path = path, .tensor = ret_tensor};
    weft_arena_open(&proto.scratch, context);
    const int status = weft_protected(context, read_protected, &proto);
    weft_arena_close(&proto.scratch);
    if (proto.graph)
        weft_graph_free(proto.graph);
    weft_blob_drop(proto.file);
    return status == WEFT_OK;
}
