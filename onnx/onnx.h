/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h: ONNX files into graphs. wire.c reads the protobuf wire format in place; import.c turns a model into a graph; the ops
 * are rows of tables in import_*.c. Weights stay in the mapped file. */
#ifndef WEFT_ONNX_H
#define WEFT_ONNX_H

#include "ir/ir.h"

/* Imports the model in `file`, whose reference passes to the graph. Under weft_protected. On failure records errors (every
 * unsupported op at once, by name, with its count and the first node that uses it) and returns NULL. `path` names the file in
 * messages, and external data is looked for beside it. */
struct weft_graph *weft_onnx_import(struct weft_context *context, struct weft_blob *file, const char *path);

#endif
