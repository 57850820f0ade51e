/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: weft_load. A file is weft text if it is called so or begins like it, and an ONNX model otherwise: protobuf
 * has no magic number, but no model begins with a word, since its first field would be an impossible one. */
#include "onnx/onnx.h"

#include <string.h>

struct load {
    struct weft_context *context;
    const char *path;
    struct weft_graph *graph;
    struct weft_blob *file;
    struct weft_arena scratch;
    const struct weft_fixed_input *fixed;
    size_t fixeds;
};

static bool has_suffix(const char *path, const char *suffix)
{
    const size_t length = strlen(path), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

/* The first word, after blanks and comments, is "weft" or "graph". */
static bool begins_like_text(const char *data, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && (strchr(" \t\r\n#", data[i]) != NULL && data[i])) {
        const char *line_end = data[i] == '#' ? memchr(data + i, '\n', bytes - i) : data + i;
        i = line_end ? (size_t)(line_end - data) + 1 : bytes;
    }
    static const char *const words[] = {"weft ", "graph ", "weft\t", "graph\t"};
    for (size_t w = 0; w < 4; w++) {
        const size_t length = strlen(words[w]);
        if (bytes - i >= length && memcmp(data + i, words[w], length) == 0)
            return true;
    }
    return false;
}

static int load_protected(void *arg)
{
    struct load *load = arg;
    load->file = weft_blob_map(load->context, load->path);
    if (!load->file)
        return load->context->error_status;
    load->context->here = (struct weft_place){.file = load->path};
    const char *data = load->file->data;
    if (has_suffix(load->path, ".weft") || begins_like_text(data, load->file->bytes)) {
        const struct weft_parse_options options = {.name = load->path};
        uint32_t count;
        if (load->fixeds) {
            weft_error(load->context, WEFT_ERR_UNSUPPORTED, &(struct weft_place){.file = load->path},
                       "inputs of weft text cannot be fixed: write them as const");
            return load->context->error_status;
        }
        load->graph = weft_parse_graph(load->context, data, load->file->bytes, 0, &options, &count);
        return load->context->error_status;
    }
    weft_onnx_import(load->context, &load->scratch, load->file, load->path, load->fixed, load->fixeds, &load->graph);
    return load->context->error_status;
}

int weft_load(struct weft_context *context, const char *path, struct weft_graph **ret_graph)
{
    return weft_load_fixed(context, path, NULL, 0, ret_graph);
}

int weft_load_fixed(struct weft_context *context, const char *path, const struct weft_fixed_input *fixed, size_t count,
                    struct weft_graph **ret_graph)
{
    if (!context || !path || !ret_graph || (count && !fixed))
        return weft_missing(context);
    for (size_t i = 0; i < count; i++)
        if (!fixed[i].name || !fixed[i].tensor)
            return weft_missing(context);
    struct load load = {.context = context, .path = path, .fixed = fixed, .fixeds = count};
    weft_arena_open(&load.scratch, context);
    int status = weft_protected(context, load_protected, &load);
    weft_arena_close(&load.scratch);
    weft_blob_drop(load.file);
    if (status == WEFT_OK)
        *ret_graph = load.graph;
    else
        weft_graph_free(load.graph);
    return status;
}
