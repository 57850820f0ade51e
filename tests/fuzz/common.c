/* SPDX-License-Identifier: Apache-2.0 */
/* common.c: failing, a budget of memory, random numbers, and mutation without knowledge. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weft_fuzz_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("FINDING: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void *allocate(void *user, size_t bytes, size_t align)
{
    struct weft_fuzz_budget *budget = user;
    if (bytes > WEFT_FUZZ_BUDGET - budget->held)
        return NULL;
    void *memory = NULL;
    if (posix_memalign(&memory, align, bytes))
        return NULL;
    budget->held += bytes;
    budget->blocks++;
    return memory;
}

/* What is given back states its size, and a wrong one would go unnoticed with malloc. */
static void release(void *user, void *memory, size_t bytes)
{
    struct weft_fuzz_budget *budget = user;
    weft_fuzz_require(budget->blocks > 0 && budget->held >= bytes);
    budget->held -= bytes;
    budget->blocks--;
    free(memory);
}

struct weft_context *weft_fuzz_open(struct weft_fuzz_budget *budget)
{
    *budget = (struct weft_fuzz_budget){0};
    const struct weft_allocator allocator = {
        .size = sizeof allocator, .user = budget, .allocate = allocate, .release = release};
    const struct weft_context_options options = {.size = sizeof options, .allocator = &allocator, .threads = 1};
    struct weft_context *context = NULL;
    weft_fuzz_require(weft_open(&options, &context) == WEFT_OK);
    return context;
}

void weft_fuzz_close(struct weft_context *context, const struct weft_fuzz_budget *budget)
{
    weft_close(context);
    if (budget->blocks || budget->held)
        weft_fuzz_fail("%zu blocks (%zu bytes) were not given back", budget->blocks, budget->held);
}

/* --- mutation ----------------------------------------------------------------------------------------------------- */

uint32_t weft_fuzz_draw(uint64_t *random, size_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*random >> 33) % below);
}

size_t weft_fuzz_splice(uint8_t *data, size_t size, size_t room, size_t at, size_t old, const void *bytes, size_t count)
{
    if (size - old + count > room)
        return size;
    memmove(data + at + count, data + at + old, size - at - old);
    if (count)
        memcpy(data + at, bytes, count);
    return size - old + count;
}

size_t weft_fuzz_mutate_bytes(uint8_t *data, size_t size, size_t room, uint64_t *random)
{
    const size_t at = size ? weft_fuzz_draw(random, size) : 0;
    uint8_t run[32];
    size_t count = 1 + weft_fuzz_draw(random, sizeof run);
    if (count > size - at)
        count = size - at;
    if (count)
        memcpy(run, data + at, count);
    switch (weft_fuzz_draw(random, 6)) {
    case 0:
        if (size)
            data[at] ^= (uint8_t)(1u << weft_fuzz_draw(random, 8));
        return size;
    case 1:
        if (size)
            data[at] = (uint8_t)weft_fuzz_draw(random, 256);
        return size;
    case 2:
        run[0] = (uint8_t)weft_fuzz_draw(random, 256);
        return weft_fuzz_splice(data, size, room, at, 0, run, 1);
    case 3:
        return weft_fuzz_splice(data, size, room, at, count, NULL, 0);
    case 4:
        return weft_fuzz_splice(data, size, room, at, 0, run, count);
    default:
        return weft_fuzz_splice(data, size, room, weft_fuzz_draw(random, size + 1), 0, run, count);
    }
}
