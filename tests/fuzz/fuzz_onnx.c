/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_onnx.c: bytes as an ONNX model.
 *
 * The importer returns a graph, or records at least one error. A graph then has to satisfy all of graph.c. The model is
 * in memory; data files that it names are looked for in a folder that does not exist. */
#include "tests/fuzz/fuzz.h"

#include "onnx/onnx.h"

#include <string.h>

const size_t weft_fuzz_limit = 16384;

struct import {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_arena scratch;
    struct weft_blob *file;
    const uint8_t *data;
    size_t size;
};

static int import(void *arg)
{
    struct import *import = arg;
    import->file = weft_blob_new(import->context, import->size);
    if (!import->file)
        return WEFT_ERR_NOMEM;
    if (import->size)
        memcpy(import->file->data, import->data, import->size);
    const bool done = weft_onnx_import(import->context, &import->scratch,
                                       &(struct weft_onnx_source){.file = import->file, .path = "/nowhere/fuzz.onnx",
                                                                  .folder = "/nowhere/"}, &import->graph);
    weft_fuzz_require(done == (import->context->error_count == 0));
    return WEFT_OK;
}

void weft_fuzz_check(const uint8_t *data, size_t size)
{
    struct weft_fuzz_budget budget;
    struct import call = {.context = weft_fuzz_open(&budget), .data = data, .size = size};
    weft_arena_open(&call.scratch, call.context);
    const int status = weft_protected(call.context, import, &call);
    weft_arena_close(&call.scratch);
    weft_blob_drop(call.file);
    if (status == WEFT_OK)
        weft_fuzz_graph(call.graph, size * 31 + (size ? data[size / 2] : 0));
    else
        weft_fuzz_require(*weft_last_error(call.context) || status == WEFT_ERR_NOMEM);
    weft_graph_free(call.graph);
    weft_fuzz_close(call.context, &budget);
}
