/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h: ONNX files into graphs. README.md of this folder is the tour. */
#ifndef WEFT_ONNX_H
#define WEFT_ONNX_H

#include "ir/ir.h"

/* Imports a model into a new top-level graph, which holds the file, where its weights stay. Under
 * weft_protected; `scratch` is the caller's, so that the caller can close it after running out of memory too; for the
 * same reason *ret_graph, which is NULL before, is the caller's to free from the start. On failure records errors
 * (every unsupported op at once, by name, with its count and the first node that uses it) and returns false; the graph
 * is then only good for weft_graph_free. */
struct weft_onnx_source {
    struct weft_blob *file;
    const char *path;           /* names it in messages */
    bool is_path;               /* and is where it lies, not the caller's word for something in memory */
    const char *folder;         /* where external data lies, with its last slash; NULL: there may be none */
    const struct weft_fixed_input *fixed; /* inputs that become constants */
    size_t fixeds;
};
/* The folder of a path, as text in the arena, with its last slash. */
const char *weft_onnx_folder_of(struct weft_arena *arena, const char *path);
bool weft_onnx_import(struct weft_context *context, struct weft_arena *scratch, const struct weft_onnx_source *source,
                      struct weft_graph **ret_graph);

#endif
