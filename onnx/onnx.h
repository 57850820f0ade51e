/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h: ONNX files into graphs. README.md of this folder is the tour. */
#ifndef WEFT_ONNX_H
#define WEFT_ONNX_H

#include "ir/ir.h"

/* Imports the model in `file` into the empty top-level `graph`, which then holds the file where its weights stay. Under
 * weft_protected; `scratch` is the caller's, so that the caller can close it after running out of memory too. On
 * failure records errors (every unsupported op at once, by name, with its count and the first node that uses it) and
 * returns false; the graph is then only good for weft_graph_free. `path` names the file in messages, and external data
 * is looked for beside it. */
bool weft_onnx_import(struct weft_graph *graph, struct weft_arena *scratch, struct weft_blob *file, const char *path);

#endif
