/* SPDX-License-Identifier: Apache-2.0 */
/* support.h: a context on malloc, an arena and a table of extents for tests of the inside that need nothing else. */
#ifndef WEFT_TEST_SUPPORT_H
#define WEFT_TEST_SUPPORT_H

#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct weft_context *context;
    struct weft_arena *arena;
    struct weft_dims *dims;
    void (*body)(struct fixture *);
};

static inline void *fixture_allocate(void *user, size_t bytes, size_t align)
{
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static inline void fixture_release(void *user, void *memory, size_t bytes)
{
    free(memory);
}

static inline int fixture_enter(void *arg)
{
    struct fixture *fixture = arg;
    struct weft_arena arena;
    weft_arena_open(&arena, fixture->context);
    fixture->arena = &arena;
    fixture->dims = weft_dims_new(&arena);
    fixture->body(fixture);
    weft_arena_close(&arena);
    return WEFT_OK;
}

/* Runs `body` under protection; returns the status that a public call would. */
static inline int fixture_run(void (*body)(struct fixture *))
{
    struct weft_context context = {.allocator = {.allocate = fixture_allocate, .release = fixture_release}};
    context.errors.context = &context;
    struct fixture fixture = {.context = &context, .body = body};
    const int status = weft_protected(&context, fixture_enter, &fixture);
    weft_text_close(&context.errors);
    return status;
}

/* A copy of the text in the arena; closes the text. */
static inline const char *fixture_text(struct fixture *fixture, struct weft_text *text)
{
    const char *copy = weft_arena_copy(fixture->arena, text->data ? text->data : "", text->length);
    weft_text_close(text);
    return copy;
}

#endif
