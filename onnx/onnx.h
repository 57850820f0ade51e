/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h: ONNX files into graphs. README.md of this folder is the tour. */
#ifndef WEFT_ONNX_H
#define WEFT_ONNX_H

#include "ir/ir.h"

/* Imports the model in `file` into a new top-level graph, which holds the file, where its weights stay. Under
 * weft_protected; `scratch` is the caller's, so that the caller can close it after running out of memory too; for the
 * same reason *ret_graph, which is NULL before, is the caller's to free from the start. On failure records errors
 * (every unsupported op at once, by name, with its count and the first node that uses it) and returns false; the graph
 * is then only good for weft_graph_free. `path` names the file in messages, and external data is looked for beside it.
 * `fixed` lists inputs that become constants. */
bool weft_onnx_import(struct weft_context *context, struct weft_arena *scratch, struct weft_blob *file,
                      const char *path, const struct weft_fixed_input *fixed, size_t fixeds,
                      struct weft_graph **ret_graph);

#endif
