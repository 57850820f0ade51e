/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h: ONNX files into graphs. README.md of this folder is the tour. */
#ifndef WEFT_ONNX_H
#define WEFT_ONNX_H

#include "ir/ir.h"

/* An input whose elements are known while importing: it becomes a constant, and no parameter. */
struct weft_onnx_known {
    const char *name;
    const struct weft_tensor *tensor; /* packed row-major */
};

/* Imports the model in `file` into a new top-level graph, which holds the file, where its weights stay. Under
 * weft_protected; `scratch` is the caller's, so that the caller can close it after running out of memory too; for the
 * same reason *ret_graph, which is NULL before, is the caller's to free from the start. On failure records errors
 * (every unsupported op at once, by name, with its count and the first node that uses it) and returns false; the graph
 * is then only good for weft_graph_free. `path` names the file in messages, and external data is looked for beside it.
 * `known` lists inputs that become constants; elsewhere than in tests there are none. */
bool weft_onnx_import(struct weft_context *context, struct weft_arena *scratch, struct weft_blob *file,
                      const char *path, const struct weft_onnx_known *known, uint32_t knowns,
                      struct weft_graph **ret_graph);

/* weft_load with known inputs. */
int weft_onnx_load(struct weft_context *context, const char *path, const struct weft_onnx_known *known, uint32_t knowns,
                   struct weft_graph **ret_graph);

#endif
