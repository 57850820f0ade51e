/* SPDX-License-Identifier: Apache-2.0 */
/* sidecar.c: where the elements of large constants go when a graph is written as text: what is mapped from a file stays
 * there, under its name and offset; all else is appended to FILE.bin beside the text, each piece aligned to 64 bytes,
 * so that the text can be read back and its weights mapped. No such file is made if nothing needs it. */
#include "tools/golden.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 64

/* Blobs of the graph and its bodies that are files. Few: a model has one file, or some. */
static bool collect_files(struct weft_sidecar *sidecar, const struct weft_graph *graph)
{
    for (uint32_t i = 1; i < graph->nodes; i++) {
        const struct weft_node_info *info = &graph->node[i];
        if (info->dead || !info->constant || info->constant->kind != WEFT_CONST_BLOB || !info->constant->blob->path)
            continue;
        size_t known = 0;
        while (known < sidecar->files && sidecar->file[known] != info->constant->blob)
            known++;
        if (known < sidecar->files)
            continue;
        const struct weft_blob **grown = realloc(sidecar->file, (known + 1) * sizeof *grown);
        if (!grown)
            return false;
        sidecar->file = grown;
        sidecar->file[sidecar->files++] = info->constant->blob;
    }
    return true;
}

bool weft_sidecar_open(struct weft_sidecar *ret_sidecar, const struct weft_graph *graph, const char *text_path)
{
    *ret_sidecar = (struct weft_sidecar){0};
    const size_t bytes = strlen(text_path) + sizeof ".bin";
    ret_sidecar->path = malloc(bytes);
    bool right = ret_sidecar->path != NULL;
    if (right)
        snprintf(ret_sidecar->path, bytes, "%s.bin", text_path);
    right = right && collect_files(ret_sidecar, graph);
    for (uint32_t i = 0; right && i < graph->bodies; i++)
        right = collect_files(ret_sidecar, graph->body[i]);
    if (!right)
        fputs("weft opt: out of memory\n", stderr);
    return right;
}

const char *weft_sidecar_place(void *user, const void *data, size_t bytes, uint64_t *ret_offset)
{
    struct weft_sidecar *sidecar = user;
    for (size_t i = 0; i < sidecar->files; i++) {
        const char *start = sidecar->file[i]->data;
        if ((const char *)data >= start && (const char *)data + bytes <= start + sidecar->file[i]->bytes) {
            *ret_offset = (uint64_t)((const char *)data - start);
            return sidecar->file[i]->path;
        }
    }
    static const char zeros[ALIGN];
    if (!sidecar->to && !sidecar->failed)
        sidecar->to = fopen(sidecar->path, "wb");
    const size_t padding = (ALIGN - sidecar->bytes % ALIGN) % ALIGN;
    if (!sidecar->to || fwrite(zeros, 1, padding, sidecar->to) != padding ||
        fwrite(data, 1, bytes, sidecar->to) != bytes) {
        sidecar->error = sidecar->failed ? sidecar->error : errno;
        sidecar->failed = true;
    }
    *ret_offset = sidecar->bytes + padding;
    sidecar->bytes += padding + bytes;
    return sidecar->path;
}

bool weft_sidecar_close(struct weft_sidecar *sidecar)
{
    if (sidecar->to && fclose(sidecar->to) && !sidecar->failed) {
        sidecar->error = errno;
        sidecar->failed = true;
    }
    const bool right = !sidecar->failed;
    if (!right)
        fprintf(stderr, "weft opt: %s: %s\n", sidecar->path, strerror(sidecar->error));
    free(sidecar->file);
    free(sidecar->path);
    *sidecar = (struct weft_sidecar){0};
    return right;
}
