/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: weft_load and its kin. A file is weft text if it is called so or begins like it, and an ONNX model otherwise;
 * what is in memory has no name. Protobuf has no magic number, but no model begins with a word, since its first field
 * would be an impossible one. */
#include "onnx/onnx.h"

#include <string.h>

struct load {
    struct weft_context *context;
    struct weft_graph *graph;
    const char *path;           /* of a file; NULL: it is in memory */
    const void *data;
    size_t bytes;
    struct weft_load_options options; /* of what is in memory; of a file: what is fixed */
    struct weft_blob *file;
    struct weft_blob **known;   /* of constants that the caller has, as far as the text named them; a reference each */
    struct weft_arena scratch;
};

const char *weft_onnx_folder_of(struct weft_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? weft_arena_copy(arena, path, (size_t)(slash - path) + 1) : "./";
}

static bool has_suffix(const char *path, const char *suffix)
{
    const size_t length = strlen(path), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(path + length - suffix_length, suffix) == 0;
}

/* The first word, after blanks and comments, is "weft" or "graph". */
static bool begins_like_text(const char *data, size_t bytes)
{
    size_t i = weft_count_mark(data, bytes);
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

static struct weft_blob *find_known(void *user, const char *id, uint64_t *ret_offset)
{
    struct load *const load = user;
    *ret_offset = 0;
    for (size_t i = 0; i < load->options.constant_count; i++) {
        const struct weft_known_constant *const known = &load->options.constants[i];
        if (strcmp(known->id, id) != 0)
            continue;
        if (!load->known[i])
            load->known[i] = weft_blob_borrow(load->context, known->data, known->bytes);
        if (!load->known[i])
            weft_out_of_memory(load->context);
        return weft_blob_hold(load->known[i]);
    }
    return NULL;
}

static int load_text(struct load *load, const char *name)
{
    const struct weft_parse_options options = {
        .name = name, .folder = load->options.folder, .no_files = !load->path && !load->options.folder,
        .find_blob = find_known, .user = load};
    load->known = weft_new(&load->scratch, struct weft_blob *, load->options.constant_count);
    uint32_t count;
    if (load->options.fixed_count)
        weft_error(load->context, WEFT_ERR_UNSUPPORTED, &(struct weft_place){.file = name},
                   "inputs of weft text cannot be fixed: write them as const");
    else
        load->graph = weft_parse_graph(load->context, load->file->data, load->file->bytes, 0, &options, &count);
    return load->context->error_status;
}

static struct weft_blob *open_source(const struct load *load)
{
    if (load->path)
        return weft_blob_map(load->context, load->path);
    struct weft_blob *blob = load->options.release ? weft_blob_borrow(load->context, load->data, load->bytes)
                                                   : weft_blob_new(load->context, load->bytes);
    if (!blob)
        weft_out_of_memory(load->context);
    if (!load->options.release && load->bytes)
        memcpy(blob->data, load->data, load->bytes);
    return blob;
}

static int load_protected(void *arg)
{
    struct load *load = arg;
    const struct weft_load_options *options = &load->options;
    load->file = open_source(load);
    if (!load->file)
        return load->context->error_status;
    const char *name = load->path ? load->path : options->name ? options->name : "memory";
    load->context->here = (struct weft_place){.file = name};
    if ((load->path && has_suffix(load->path, ".weft")) || begins_like_text(load->file->data, load->file->bytes))
        return load_text(load, name);
    const struct weft_onnx_source source = {
        .file = load->file, .path = name, .is_path = load->path != NULL, .fixed = options->fixed,
        .fixeds = options->fixed_count,
        .folder = load->path        ? weft_onnx_folder_of(&load->scratch, load->path)
                  : options->folder ? weft_arena_format(&load->scratch, "%s/", options->folder)
                                    : NULL};
    if (options->constant_count)
        weft_error(load->context, WEFT_ERR_UNSUPPORTED, NULL, "constants that the caller has are for weft text");
    else
        weft_onnx_import(load->context, &load->scratch, &source, &load->graph);
    return load->context->error_status;
}

/* The caller's constants are given back from here on, if all went well, and at once if the text does not name them. */
static void settle_known(struct load *load, bool well)
{
    for (size_t i = 0; load->known && i < load->options.constant_count; i++) {
        const struct weft_known_constant *const known = &load->options.constants[i];
        if (well && load->known[i]) {
            load->known[i]->release_data = known->release;
            load->known[i]->release_user = known->user;
        } else if (well && known->release)
            known->release(known->user, known->data);
        weft_blob_drop(load->known[i]);
    }
}

/* Borrowed memory is given back from here on, if all went well, and at once if no graph holds it. */
static int load_graph(struct load *load, struct weft_graph **ret_graph)
{
    const struct weft_load_options *options = &load->options;
    for (size_t i = 0; i < options->fixed_count; i++)
        if (!options->fixed || !options->fixed[i].name || !options->fixed[i].tensor)
            return weft_missing(load->context);
    for (size_t i = 0; i < options->constant_count; i++)
        if (!options->constants || !options->constants[i].id ||
            (options->constants[i].bytes && !options->constants[i].data))
            return weft_missing(load->context);
    weft_arena_open(&load->scratch, load->context);
    const int status = weft_protected(load->context, load_protected, load);
    settle_known(load, status == WEFT_OK);
    weft_arena_close(&load->scratch);
    if (status == WEFT_OK && load->file->borrowed) {
        load->file->release = options->release;
        load->file->release_user = options->release_user;
    }
    if (status == WEFT_OK)
        *ret_graph = load->graph;
    else
        weft_graph_free(load->graph);
    weft_blob_drop(load->file);
    return status;
}

int weft_load(struct weft_context *context, const char *path, struct weft_graph **ret_graph)
{
    if (!context || !path || !ret_graph) /* a message names the function that was called */
        return weft_missing(context);
    return weft_load_fixed(context, path, NULL, 0, ret_graph);
}

int weft_load_fixed(struct weft_context *context, const char *path, const struct weft_fixed_input *fixed, size_t count,
                    struct weft_graph **ret_graph)
{
    if (!context || !path || !ret_graph)
        return weft_missing(context);
    struct load load = {.context = context, .path = path, .options = {.fixed = fixed, .fixed_count = count}};
    return load_graph(&load, ret_graph);
}

int weft_load_memory(struct weft_context *context, const void *data, size_t bytes,
                     const struct weft_load_options *options, struct weft_graph **ret_graph)
{
    struct load load = {.context = context, .data = data, .bytes = bytes};
    if (!context || !ret_graph || (bytes && !data) ||
        (options && !weft_take_options(&load.options, sizeof load.options, options)))
        return weft_missing(context);
    return load_graph(&load, ret_graph);
}
