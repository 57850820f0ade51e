/* SPDX-License-Identifier: Apache-2.0 */
/* base.c: memory that dies together, calls that survive running out of it, texts, and messages.
 *
 * An arena never returns NULL. When the allocator refuses, control jumps to the innermost protected call, which is the
 * public function that the user made; so no function in between checks for memory, and none needs to clean up, because
 * everything it had belongs to an arena that its owner frees as a whole. The idea is Lua's. Execution does not use any
 * of this: it reserves its memory before it runs and checks each reservation. */
#include "ir/ir.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define ALIGN ((size_t)16)
#define LARGEST ((size_t)1 << 46) /* no allocator has more: a product of hostile sizes */

/* Under the address sanitizer each piece of an arena is a block of the allocator: then it sees where pieces end, and
 * tests that refuse allocations refuse each piece once. */
#if defined(__has_feature)
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
enum { PIECES_ARE_BLOCKS = true };
#else
enum { PIECES_ARE_BLOCKS = false };
#endif

/* A chunk is shared by many pieces, or holds one large array that grows: then it goes when the array has moved. */
#define OWN_CHUNK ((size_t)256 << 10)

struct weft_chunk {
    struct weft_chunk *next, **link; /* link: what points here, the arena or the next member of the chunk before */
    size_t bytes;
    _Alignas(64) char memory[];
};

void weft_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
    abort();
}

/* --- time --------------------------------------------------------------------------------------------------------- */

int64_t weft_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

void weft_context_hold(struct weft_context *context)
{
    atomic_fetch_add_explicit(&context->holds, 1, memory_order_relaxed);
}

void weft_context_drop(struct weft_context *context)
{
    /* What others did before they let go happens before the memory goes. */
    if (atomic_fetch_sub_explicit(&context->holds, 1, memory_order_acq_rel) == 1 && context->free)
        context->free(context);
}

/* --- protected calls ---------------------------------------------------------------------------------------------- */

int weft_protected(struct weft_context *context, int (*fn)(void *arg), void *arg)
{
    if (context->on_nomem)
        return fn(arg);
    jmp_buf here;
    context->errors.length = 0;
    if (context->errors.data)
        context->errors.data[0] = '\0';
    context->error_count = 0;
    context->error_status = WEFT_OK;
    context->here = (struct weft_place){0};
    if (setjmp(here)) {
        context->on_nomem = NULL;
        context->here = (struct weft_place){0};
        context->caught = NULL;
        weft_error(context, WEFT_ERR_NOMEM, NULL, "out of memory");
        return WEFT_ERR_NOMEM;
    }
    context->on_nomem = &here;
    const int status = fn(arg);
    context->on_nomem = NULL;
    context->here = (struct weft_place){0};
    return status == WEFT_OK && context->error_count > 0 ? context->error_status : status;
}

int weft_protected_graph(const struct weft_graph *graph, int (*fn)(void *arg), void *arg)
{
    if (!graph->context->on_nomem)
        weft_arena_close(&graph->root->scratch);
    return weft_protected(graph->context, fn, arg);
}

void weft_out_of_memory(struct weft_context *context)
{
    weft_assert(context->on_nomem);
    longjmp(*context->on_nomem, 1);
}

bool weft_take_options(void *own, size_t bytes, const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    memset(own, 0, bytes);
    memcpy(own, given, size < bytes ? size : bytes);
    bool known = true; /* what a newer caller wants of us may not be left out */
    for (size_t i = bytes; i < size; i++)
        known &= ((const char *)given)[i] == 0;
    return size >= sizeof size && known;
}

int weft_give_facts(void *ret, const void *facts, size_t bytes)
{
    size_t size;
    memcpy(&size, ret, sizeof size);
    if (size < sizeof size)
        return WEFT_ERR_ARGUMENT;
    memcpy((char *)ret + sizeof size, (const char *)facts + sizeof size, (size < bytes ? size : bytes) - sizeof size);
    if (size > bytes)
        memset((char *)ret + bytes, 0, size - bytes);
    return WEFT_OK;
}

struct missing {
    struct weft_context *context;
    const char *function;
};

static int say_missing(void *arg)
{
    const struct missing *m = arg;
    weft_error(m->context, WEFT_ERR_ARGUMENT, &(struct weft_place){.where = m->function},
               "an argument that is needed is NULL, or a struct has no size, or sets what only a newer weft knows");
    return WEFT_ERR_ARGUMENT;
}

int weft_missing_in(struct weft_context *context, const char *function)
{
    return context && !context->on_nomem ? weft_protected(context, say_missing, &(struct missing){context, function})
                                         : WEFT_ERR_ARGUMENT;
}

void *weft_allocate(struct weft_context *context, size_t bytes)
{
    return context->allocator.allocate(context->allocator.user, bytes ? bytes : 1, 64);
}

void weft_release(struct weft_context *context, void *memory, size_t bytes)
{
    if (memory)
        context->allocator.release(context->allocator.user, memory, bytes ? bytes : 1);
}

/* --- arena -------------------------------------------------------------------------------------------------------- */

void weft_arena_open(struct weft_arena *arena, struct weft_context *context)
{
    *arena = (struct weft_arena){.context = context};
}

void weft_arena_close(struct weft_arena *arena)
{
    for (struct weft_chunk *chunk = arena->chunk; chunk;) {
        struct weft_chunk *next = chunk->next;
        weft_release(arena->context, chunk, chunk->bytes);
        chunk = next;
    }
    *arena = (struct weft_arena){.context = arena->context};
}

void weft_arena_empty(struct weft_arena *arena)
{
    struct weft_chunk *kept = arena->chunk;
    if (!kept || PIECES_ARE_BLOCKS) {
        weft_arena_close(arena);
        return;
    }
    struct weft_arena older = {.context = arena->context, .chunk = kept->next};
    weft_arena_close(&older);
    kept->next = NULL;
    arena->used = 0;
    arena->total = kept->bytes;
}

bool weft_arena_is_empty(const struct weft_arena *arena)
{
    return !arena->chunk || (arena->used == 0 && !arena->chunk->next);
}

static struct weft_chunk *link_chunk(struct weft_arena *arena, struct weft_chunk **link, size_t need)
{
    const size_t bytes = need + sizeof(struct weft_chunk);
    struct weft_chunk *chunk = weft_allocate(arena->context, bytes);
    if (!chunk)
        weft_out_of_memory(arena->context);
    *chunk = (struct weft_chunk){.next = *link, .link = link, .bytes = bytes};
    if (chunk->next)
        chunk->next->link = &chunk->next;
    *link = chunk;
    arena->total += bytes;
    return chunk;
}

/* Chunks double, so that n bytes take O(log n) of them; a piece larger than a chunk gets one of its own size. */
static void add_chunk(struct weft_arena *arena, size_t need)
{
    size_t bytes = arena->total > CHUNK_BYTES ? arena->total : CHUNK_BYTES;
    if (bytes > ((size_t)16 << 20))
        bytes = (size_t)16 << 20;
    if (bytes < need || PIECES_ARE_BLOCKS)
        bytes = need;
    link_chunk(arena, &arena->chunk, bytes);
    arena->used = 0;
    arena->capacity = bytes;
}

void *weft_arena_new(struct weft_arena *arena, size_t bytes)
{
    if (bytes > LARGEST)
        weft_out_of_memory(arena->context);
    const size_t rounded = PIECES_ARE_BLOCKS ? bytes : (bytes + ALIGN - 1) & ~(ALIGN - 1);
    if (rounded > arena->capacity - arena->used || PIECES_ARE_BLOCKS)
        add_chunk(arena, rounded);
    void *piece = arena->chunk ? arena->chunk->memory + arena->used : NULL;
    if (!piece) { /* nothing asked for and no chunk yet */
        add_chunk(arena, ALIGN);
        piece = arena->chunk->memory;
    }
    arena->used += rounded;
    memset(piece, 0, bytes);
    return piece;
}

char *weft_arena_copy(struct weft_arena *arena, const char *text, size_t length)
{
    char *copy = weft_arena_new(arena, length + 1);
    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

char *weft_arena_format(struct weft_arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    char start[256]; /* most texts fit; the call tells the length either way */
    const int length = vsnprintf(start, sizeof start, format, arguments);
    va_end(arguments);
    char *text = weft_arena_new(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

/* Behind the current chunk, in which small pieces go on. */
static void *new_array(struct weft_arena *arena, size_t bytes)
{
    if (bytes < OWN_CHUNK && !PIECES_ARE_BLOCKS)
        return weft_arena_new(arena, bytes);
    if (bytes > LARGEST)
        weft_out_of_memory(arena->context);
    if (!arena->chunk)
        add_chunk(arena, ALIGN);
    struct weft_chunk *chunk = link_chunk(arena, &arena->chunk->next, bytes);
    return memset(chunk->memory, 0, bytes);
}

static void drop_array(struct weft_arena *arena, void *array, size_t bytes)
{
    if (bytes == 0 || (bytes < OWN_CHUNK && !PIECES_ARE_BLOCKS))
        return;
    struct weft_chunk *chunk = (struct weft_chunk *)((char *)array - offsetof(struct weft_chunk, memory));
    *chunk->link = chunk->next;
    if (chunk->next)
        chunk->next->link = chunk->link;
    arena->total -= chunk->bytes;
    weft_release(arena->context, chunk, chunk->bytes);
}

void *weft_grow(struct weft_arena *arena, void *array, uint32_t *capacity, uint32_t need, size_t element)
{
    if (need <= *capacity)
        return array;
    uint32_t larger = *capacity ? *capacity * 2 : 4;
    if (larger < need)
        larger = need;
    const size_t bytes = (size_t)*capacity * element;
    void *copy = new_array(arena, (size_t)larger * element);
    if (bytes > 0)
        memcpy(copy, array, bytes);
    drop_array(arena, array, bytes);
    *capacity = larger;
    return copy;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* Inside a protected call a refused allocation ends it; outside, the text just stops growing. */
static bool reserve(struct weft_text *text, size_t more)
{
    const size_t need = text->length + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity * 2 : 256;
    if (capacity < need)
        capacity = need;
    char *data = text->arena ? weft_arena_new(text->arena, capacity) : weft_allocate(text->context, capacity);
    if (!data) {
        if (text->context->on_nomem && text != &text->context->errors)
            weft_out_of_memory(text->context);
        return false;
    }
    if (text->length)
        memcpy(data, text->data, text->length);
    data[text->length] = '\0';
    if (!text->arena)
        weft_release(text->context, text->data, text->capacity);
    text->data = data;
    text->capacity = capacity;
    return true;
}

void weft_text_addn(struct weft_text *text, const char *string, size_t length)
{
    if (!reserve(text, length) || !length)
        return;
    memcpy(text->data + text->length, string, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void weft_text_add(struct weft_text *text, const char *string)
{
    weft_text_addn(text, string, strlen(string));
}

void weft_text_integer(struct weft_text *text, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0)
        digits[--at] = '-';
    weft_text_addn(text, digits + at, sizeof digits - at);
}

static void add_formatted(struct weft_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    char start[256];
    const int length = vsnprintf(start, sizeof start, format, arguments);
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void weft_text_format(struct weft_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_formatted(text, format, arguments);
    va_end(arguments);
}

void weft_text_close(struct weft_text *text)
{
    if (!text->arena)
        weft_release(text->context, text->data, text->capacity);
    *text = (struct weft_text){.context = text->context, .arena = text->arena};
}

char *weft_text_take(const struct weft_text *text)
{
    char *copy = weft_allocate(text->context, text->length + 1);
    if (copy && text->length)
        memcpy(copy, text->data, text->length);
    if (!copy)
        return NULL;
    copy[text->length] = '\0';
    weft_context_hold(text->context);
    return copy;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Hundreds of follow-up errors help nobody. */
#define MAX_ERRORS 100

static void deliver(struct weft_context *context, int severity, int status, const struct weft_place *place,
                    const char *format, va_list arguments)
{
    if (!place || (!place->file && !place->line && !place->where))
        place = &context->here;
    char message[1024];
    vsnprintf(message, sizeof message, format, arguments);
    if (severity == WEFT_ERROR) {
        struct weft_text *errors = &context->errors;
        if (errors->length)
            weft_text_add(errors, "\n");
        if (place->file)
            weft_text_format(errors, "%s:", place->file);
        if (place->line)
            weft_text_format(errors, "%d:%d:", place->line, place->column);
        if (place->file || place->line)
            weft_text_add(errors, " ");
        if (place->where)
            weft_text_format(errors, "%s: ", place->where);
        weft_text_add(errors, message);
    }
    if (context->diagnose)
        context->diagnose(context->diagnose_user,
                          &(struct weft_diagnostic){.severity = severity, .status = status, .file = place->file,
                                                    .line = place->line, .column = place->column,
                                                    .where = place->where, .message = message});
}

static void catch_message(struct weft_caught *caught, const char *format, va_list arguments)
{
    char message[1024];
    vsnprintf(message, sizeof message, format, arguments);
    if (!caught->message)
        caught->message = weft_arena_format(caught->arena, "%s", message);
}

void weft_error(struct weft_context *context, int status, const struct weft_place *place, const char *format, ...)
{
    if (context->caught) {
        va_list caught;
        va_start(caught, format);
        catch_message(context->caught, format, caught);
        va_end(caught);
        return;
    }
    if (context->error_count++ == 0)
        context->error_status = status;
    if (context->error_count > MAX_ERRORS)
        return;
    va_list arguments;
    va_start(arguments, format);
    deliver(context, WEFT_ERROR, status, place, format, arguments);
    va_end(arguments);
    if (context->error_count == MAX_ERRORS && context->errors.length)
        weft_text_format(&context->errors, "\ntoo many errors: only the first %d are shown", MAX_ERRORS);
}

void weft_note(struct weft_context *context, int severity, const struct weft_place *place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    deliver(context, severity, WEFT_OK, place, format, arguments);
    va_end(arguments);
}

const char *weft_last_error(const struct weft_context *context)
{
    return context && context->errors.length ? context->errors.data : "";
}

void weft_free_text(struct weft_context *context, char *text)
{
    if (!context || !text)
        return;
    weft_release(context, text, strlen(text) + 1);
    weft_context_drop(context);
}
