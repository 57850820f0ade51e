/* SPDX-License-Identifier: Apache-2.0 */
/* sidecar.c: where the elements of large constants go when a graph is written as text: what is mapped from a file stays
 * there, under its name and offset; all else is appended to FILE.bin beside the text, each piece aligned to 64 bytes,
 * so that the text can be read back and its weights mapped. No such file is made if nothing needs it. */
#include "tools/golden.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
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

/* The whole path of a file that may not be there yet, in a folder that is; else the path as it is. */
static char *whole_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char folder[PATH_MAX], whole[PATH_MAX];
    if ((size_t)(name - path) >= sizeof folder)
        return strdup(path);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (!realpath(folder, whole))
        return strdup(path);
    const size_t bytes = strlen(whole) + strlen(name) + 2;
    char *joined = malloc(bytes);
    if (joined)
        snprintf(joined, bytes, "%s/%s", strcmp(whole, "/") ? whole : "", name);
    return joined;
}

bool weft_sidecar_open(struct weft_sidecar *ret_sidecar, const struct weft_graph *graph, const char *text_path,
                       bool whole)
{
    *ret_sidecar = (struct weft_sidecar){0};
    const size_t bytes = strlen(text_path) + sizeof ".bin";
    ret_sidecar->path = malloc(bytes);
    bool right = ret_sidecar->path != NULL;
    if (right)
        snprintf(ret_sidecar->path, bytes, "%s.bin", text_path);
    ret_sidecar->shown = !right ? NULL : whole ? whole_path(ret_sidecar->path) : strdup(ret_sidecar->path);
    right = right && ret_sidecar->shown && collect_files(ret_sidecar, graph);
    for (uint32_t i = 0; right && i < graph->bodies; i++)
        right = collect_files(ret_sidecar, graph->body[i]);
    if (!right)
        fputs("weft opt: out of memory\n", stderr);
    return right;
}

/* Where the graph came from the text that is written anew, the file beside it is one that the text refers to: then what
 * it has stays where it is, and the new pieces come behind. */
static void begin(struct weft_sidecar *sidecar)
{
    if (!weft_file_create(&sidecar->made, sidecar->path)) {
        sidecar->error = errno;
        sidecar->failed = true;
        return;
    }
    sidecar->begun = true;
    for (size_t i = 0; i < sidecar->files && !sidecar->bytes; i++)
        if (weft_tool_same_file(sidecar->file[i]->path, sidecar->path)) {
            sidecar->bytes = sidecar->file[i]->bytes;
            (void)fwrite(sidecar->file[i]->data, 1, sidecar->bytes, sidecar->made.to);
        }
}

const char *weft_sidecar_add(void *user, const void *data, size_t bytes, uint64_t *ret_offset)
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
    if (!sidecar->begun && !sidecar->failed)
        begin(sidecar);
    const size_t padding = (ALIGN - sidecar->bytes % ALIGN) % ALIGN;
    if (sidecar->begun) { /* what cannot be written is seen when it is finished */
        (void)fwrite(zeros, 1, padding, sidecar->made.to);
        (void)fwrite(data, 1, bytes, sidecar->made.to);
    }
    *ret_offset = sidecar->bytes + padding;
    sidecar->bytes += padding + bytes;
    return sidecar->shown;
}

static bool check(struct weft_sidecar *sidecar, bool right)
{
    if (!right && !sidecar->failed)
        sidecar->error = errno;
    sidecar->failed |= !right;
    if (sidecar->failed)
        fprintf(stderr, "weft opt: %s: %s\n", sidecar->path, strerror(sidecar->error));
    return !sidecar->failed;
}

bool weft_sidecar_finish(struct weft_sidecar *sidecar)
{
    const bool finished = !sidecar->begun || weft_file_finish(&sidecar->made);
    sidecar->begun &= finished;
    return check(sidecar, finished);
}

bool weft_sidecar_place(struct weft_sidecar *sidecar)
{
    const bool placed = !sidecar->begun || weft_file_place(&sidecar->made);
    sidecar->begun = false;
    return check(sidecar, placed);
}

void weft_sidecar_close(struct weft_sidecar *sidecar)
{
    if (sidecar->begun)
        weft_file_discard(&sidecar->made);
    free(sidecar->file);
    free(sidecar->path);
    free(sidecar->shown);
    *sidecar = (struct weft_sidecar){0};
}
