/* SPDX-License-Identifier: Apache-2.0 */
/* save.c: a graph as two files: its text, and the elements of its larger constants, which the text refers to by offset.
 *
 *   m.weft      weft 1
 *               graph @m(%x: f32[1,4096]) {
 *                 %w: f32[4096,4096] = const file="m.weft.bin" offset=64
 *   m.weft.bin  the elements, each constant's at a multiple of 64 bytes
 *
 * Whoever loads the text maps the other file, so processes that do share its memory. Both are written under names of
 * their own, and put in their places when all is written: the elements, then the text. */
#include "ir/file.h"
#include "ir/ir.h"
#include "ir/text.h"

#include <errno.h>
#include <string.h>

enum { ALIGN = 64 };

/* A piece that is written, by where its elements are in memory: constants that share them share the piece. */
struct piece {
    const void *data;
    size_t bytes;
    uint64_t offset;
};

struct saving {
    const struct weft_graph *graph;
    const char *path;
    char *data_path;
    const char *name;           /* of the data, relative to the text */
    struct weft_file data, text;
    bool begun;                 /* there is a file for data */
    uint64_t bytes;
    struct piece *piece;        /* hashed by address */
    uint32_t pieces, slots;
    int error;                  /* errno of what failed, on */
    const char *failed;         /* this file */
};

static struct piece *slot_of(const struct saving *s, const void *data)
{
    uint32_t i = (uint32_t)(((uintptr_t)data >> 6) * UINT32_C(2654435761)) & (s->slots - 1);
    while (s->piece[i].data && s->piece[i].data != data)
        i = (i + 1) & (s->slots - 1);
    return &s->piece[i];
}

static void make_room(struct saving *s)
{
    struct piece *const old = s->piece;
    const uint32_t count = s->slots;
    if (2 * s->pieces < s->slots)
        return;
    s->slots = count ? 2 * count : 64;
    s->piece = weft_new(&s->graph->root->scratch, struct piece, s->slots);
    for (uint32_t i = 0; i < count; i++)
        if (old[i].data)
            *slot_of(s, old[i].data) = old[i];
}

static void fail(struct saving *s, const char *file)
{
    if (!s->failed) {
        s->error = errno;
        s->failed = file;
    }
}

static const char *add_piece(void *user, const void *data, size_t bytes, uint64_t *ret_offset)
{
    static const char zeros[ALIGN];
    struct saving *const s = user;
    make_room(s);
    struct piece *const piece = slot_of(s, data);
    if (piece->data && piece->bytes == bytes) {
        *ret_offset = piece->offset;
        return s->name;
    }
    const size_t padding = (size_t)(ALIGN - s->bytes % ALIGN) % ALIGN;
    if (!s->begun && !s->failed) {
        s->begun = weft_file_create(&s->data, s->data_path);
        if (!s->begun)
            fail(s, s->data_path);
    }
    if (s->begun) { /* what cannot be written is seen when the file is finished */
        (void)fwrite(zeros, 1, padding, s->data.to);
        (void)fwrite(data, 1, bytes, s->data.to);
    }
    s->pieces += !piece->data;
    *piece = (struct piece){data, bytes, s->bytes + padding};
    s->bytes += padding + bytes;
    *ret_offset = piece->offset;
    return s->name;
}

static void write_text(struct saving *s, const struct weft_text *text)
{
    (void)fwrite(text->data, 1, text->length, s->text.to);
    if (!weft_file_finish(&s->text))
        fail(s, s->path);
    else if (s->begun && (!weft_file_finish(&s->data) || !weft_file_place(&s->data)))
        fail(s, s->data_path);
    else if (!weft_file_place(&s->text))
        fail(s, s->path);
}

static int save(void *arg)
{
    struct saving *const s = arg;
    struct weft_arena *const arena = &s->graph->root->scratch;
    const char *const slash = strrchr(s->path, '/');
    s->data_path = weft_arena_format(arena, "%s.bin", s->path);
    s->name = s->data_path + (slash ? slash + 1 - s->path : 0);
    if (!weft_file_create(&s->text, s->path)) {
        fail(s, s->path);
        return WEFT_OK;
    }
    struct weft_text text = {.context = s->graph->context, .arena = arena};
    weft_text_add(&text, "weft 1\n");
    weft_print_graph(s->graph, &(struct weft_print_options){.place_blob = add_piece, .user = s}, &text);
    if (!s->failed)
        write_text(s, &text);
    return WEFT_OK;
}

/* A constant whose elements are nowhere any more. Recursion is as deep as bodies are nested. */
static bool has_lost(const struct weft_graph *g)
{
    bool lost = false;
    weft_foreach_node(g, n) {
        const struct weft_constant *const constant = g->node[n.id].constant;
        lost |= constant && constant->kind == WEFT_CONST_BLOB && constant->blob->given_up[0];
    }
    for (uint32_t i = 0; i < g->bodies; i++)
        lost |= has_lost(g->body[i]);
    return lost;
}

int weft_save(const struct weft_graph *graph, const char *path)
{
    if (!graph || !path)
        return weft_missing(graph ? graph->context : NULL);
    const struct weft_place place = {.file = path, .where = graph->name};
    if (has_lost(graph)) {
        weft_error(graph->context, WEFT_ERR_INVALID, &place,
                   "the plan has given constants up that kernels read in packed form only: compile with "
                   "WEFT_COMPILE_KEEP_CONSTANTS to save its graph");
        return WEFT_ERR_INVALID;
    }
    struct saving s = {.graph = graph, .path = path, .data = {.slot = -1}, .text = {.slot = -1}};
    int status = weft_protected_graph(graph, save, &s);
    if (status == WEFT_OK && s.failed) {
        weft_error(graph->context, WEFT_ERR_IO, &(struct weft_place){.file = s.failed}, "%s", strerror(s.error));
        status = WEFT_ERR_IO;
    }
    if (s.begun)
        weft_file_discard(&s.data); /* nothing, if it is placed */
    weft_file_discard(&s.text);
    return status;
}
