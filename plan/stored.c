/* SPDX-License-Identifier: Apache-2.0 */
/* stored.c: finding the plan of an earlier process. The contract: stored.h; what is in the file: stored_file.h. */
#include "plan/stored.h"

#include "ir/text.h"
#include "plan/pack_folder.h"
#include "plan/stored_file.h"
#include "sched/target.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_STATIC_LINKING_ONLY /* the state of a running hash, on the stack */
#include <xxhash.h>

WEFT_PRINTF(2, 3) static void say(struct weft_stored *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->why, sizeof s->why, format, arguments);
    va_end(arguments);
}

/* --- the key ------------------------------------------------------------------------------------------------------ */

const struct weft_stored_known *weft_stored_find_known(const struct weft_stored *s, const char *hash)
{
    for (uint32_t i = 0; i < s->knowns; i++)
        if (strcmp(s->known[i].hash, hash) == 0)
            return &s->known[i];
    return NULL;
}

/* Of a constant of the source: its hash stands in the text, and is remembered. */
static const char *note_known(void *user, const void *data, size_t bytes, uint64_t *ret_offset)
{
    struct weft_stored *const s = user;
    char hash[33];
    weft_blob_hash(data, bytes, hash);
    *ret_offset = 0;
    if (!weft_stored_find_known(s, hash)) {
        s->known = weft_grow(&s->arena, s->known, &s->known_capacity, s->knowns + 1, sizeof *s->known);
        struct weft_stored_known *const known = &s->known[s->knowns++];
        memcpy(known->hash, hash, sizeof hash);
        known->blob = NULL;
        for (uint32_t i = 0; i < s->source->blobs && !known->blob; i++) {
            struct weft_blob *const blob = s->source->blob[i];
            const uintptr_t first = (uintptr_t)blob->data, place = (uintptr_t)data;
            if (blob->data && place >= first && place + bytes <= first + blob->bytes) {
                known->blob = blob;
                known->offset = place - first;
            }
        }
    }
    return weft_arena_copy(&s->arena, hash, 32);
}

/* The file that has weft in it: a library, or the program, whose name is what it was called as. False: nobody knows. */
static bool hash_library(XXH3_state_t *state)
{
    Dl_info info;
    struct stat status;
    if (!dladdr((const void *)(uintptr_t)weft_version, &info))
        return false;
    const bool is_program = strcmp(info.dli_fname, program_invocation_name) == 0;
    if (stat(is_program ? "/proc/self/exe" : info.dli_fname, &status) != 0)
        return false;
    const int64_t facts[] = {(int64_t)status.st_size, (int64_t)status.st_mtim.tv_sec, (int64_t)status.st_mtim.tv_nsec};
    XXH3_128bits_update(state, facts, sizeof facts);
    return true;
}

static void hash_target(XXH3_state_t *state, const struct weft_target *target)
{
    const struct weft_prices *const prices = weft_prices_of(target);
    const int64_t facts[] = {target->cpu, target->threads, (int64_t)target->l1, (int64_t)target->l2,
                             (int64_t)target->l3, target->arithmetic, prices->threads, prices->lanes};
    XXH3_128bits_update(state, facts, sizeof facts);
    XXH3_128bits_update(state, prices->price, sizeof prices->price);
}

static void make_key(struct weft_stored *s, const struct weft_stored_facts *facts)
{
    XXH3_state_t state;
    XXH128_canonical_t key;
    struct weft_text text = {.context = s->context, .arena = &s->arena};
    const int64_t numbers[] = {facts->flags, facts->constant_bytes};
    weft_print_graph(s->source, &(struct weft_print_options){.place_blob = note_known, .user = s}, &text);
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, WEFT_STORED_WORD, sizeof WEFT_STORED_WORD);
    if (!hash_library(&state)) {
        say(s, "weft's own file is not to be found, which is part of the key");
        return;
    }
    hash_target(&state, &s->context->target);
    XXH3_128bits_update(&state, numbers, sizeof numbers);
    XXH3_128bits_update(&state, text.data, text.length);
    XXH128_canonicalFromHash(&key, XXH3_128bits_digest(&state));
    for (int i = 0; i < 16; i++)
        snprintf(s->key + 2 * i, 3, "%02x", (unsigned)key.digest[i]);
}

/* What decides a plan and is in no key; NULL: nothing. */
static const char *unkeyed(const struct weft_stored *s, const struct weft_stored_facts *facts)
{
    static const char *const switches[] = {"WEFT_SKIP", "WEFT_ALTERNATIVE", "WEFT_STOP_AFTER", "WEFT_CHOICE",
                                           "WEFT_TRACE", "WEFT_PRINT", "WEFT_DEBUG"};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (getenv(switches[i]))
            return switches[i];
    return facts->other                                ? facts->other
           : atomic_load(&s->context->customs)         ? "functions of the caller's (weft_register)"
           : s->context->passes                        ? "passes of the caller's"
           : s->context->alternatives                  ? "alternatives of the caller's"
                                                       : NULL;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static bool map_packs(struct weft_stored *s, const struct weft_stored_file *f)
{
    s->pack = weft_new(&s->arena, struct weft_stored_pack, f->head->entries);
    for (uint32_t i = 0; i < f->head->entries; i++) {
        const struct weft_stored_entry *const e = &f->entry[i];
        if (e->kind != WEFT_STORED_PACK)
            continue;
        struct weft_stored_pack pack = {.number = e->number, .bytes = (size_t)e->bytes, .mapped = e->offset == 0};
        memcpy(pack.hash, e->hash, 32);
        pack.data = pack.mapped ? weft_pack_folder_map_known(s->context, (size_t)e->bytes, pack.hash)
                                : (void *)(uintptr_t)(f->base + e->offset);
        if (!pack.data)
            return false;
        s->pack[s->packs++] = pack;
    }
    return true;
}

struct search {
    struct weft_stored *stored;
    const struct weft_stored_file *file;
};

static struct weft_blob *find_blob(void *user, const char *hash, uint64_t *ret_offset)
{
    const struct search *const search = user;
    struct weft_stored *const s = search->stored;
    const struct weft_stored_known *const known = weft_stored_find_known(s, hash);
    if (known && known->blob) {
        *ret_offset = known->offset;
        return weft_blob_hold(known->blob);
    }
    for (uint32_t i = 0; i < search->file->head->entries; i++) {
        const struct weft_stored_entry *const e = &search->file->entry[i];
        if (e->kind == WEFT_STORED_PACK || memcmp(e->hash, hash, 32) != 0)
            continue;
        *ret_offset = e->offset;
        if (e->kind == WEFT_STORED_ELEMENTS)
            return weft_blob_hold(s->file);
        struct weft_blob *const lost = weft_blob_lost(s->context, hash, (size_t)e->bytes);
        if (!lost)
            weft_out_of_memory(s->context);
        return lost;
    }
    return NULL;
}

/* What was found out about a constant's elements while they were there. */
static void tell_numbers(const struct weft_graph *g, const struct weft_stored_file *f)
{
    weft_foreach_node(g, n) {
        struct weft_constant *const constant = g->node[n.id].constant;
        if (!constant || constant->kind != WEFT_CONST_BLOB || constant->blob->data)
            continue;
        for (uint32_t i = 0; i < f->head->entries; i++)
            if (f->entry[i].kind == WEFT_STORED_LOST && memcmp(f->entry[i].hash, constant->blob->given_up, 32) == 0)
                atomic_store_explicit(&constant->numbers, (uint8_t)f->entry[i].number, memory_order_relaxed);
    }
}

static int load(void *arg)
{
    struct weft_stored *const s = arg;
    struct weft_stored_file f;
    size_t bytes;
    void *const data = weft_stored_read(s, &bytes);
    if (!data) {
        say(s, "there is no file of this plan");
        return WEFT_OK;
    }
    s->file = weft_blob_of_mapping(s->context, data, bytes);
    if (!s->file)
        weft_out_of_memory(s->context);
    const char *const wrong = weft_stored_take_apart(data, bytes, &f);
    if (wrong) {
        say(s, "the file of this plan %s", wrong);
        return WEFT_OK;
    }
    if (!map_packs(s, &f)) {
        say(s, "packed weights of this plan are gone or damaged");
        return WEFT_OK;
    }
    uint32_t count;
    const struct weft_parse_options options = {.name = "plan", .no_files = true, .find_blob = find_blob,
                                               .user = &(struct search){s, &f}};
    s->graph = weft_parse_graph(s->context, f.text, (size_t)f.head->text, 0, &options, &count);
    if (s->graph)
        tell_numbers(s->graph, &f);
    return s->context->error_status;
}

/* Errors of what is read from the file are nobody's but the report's. */
static int try_load(struct weft_stored *s)
{
    void (*const diagnose)(void *, const struct weft_diagnostic *) = s->context->diagnose;
    s->why[0] = '\0';
    s->context->diagnose = NULL;
    const int status = weft_protected(s->context, load, s);
    s->context->diagnose = diagnose;
    if (status == WEFT_OK || status == WEFT_ERR_NOMEM)
        return status;
    weft_graph_free(s->graph);
    s->graph = NULL;
    say(s, "the text of this plan: %.*s", (int)strcspn(weft_last_error(s->context), "\n"), weft_last_error(s->context));
    return WEFT_OK;
}

struct opening {
    struct weft_stored *stored;
    const struct weft_stored_facts *facts;
};

static int open_stored(void *arg)
{
    const struct opening *const o = arg;
    make_key(o->stored, o->facts);
    return WEFT_OK;
}

int weft_stored_open(struct weft_stored *s, const struct weft_graph *source, const struct weft_stored_facts *facts)
{
    *s = (struct weft_stored){.context = source->context, .source = source->root};
    weft_arena_open(&s->arena, s->context);
    const char *const other = unkeyed(s, facts);
    if (!s->context->pack_folder) {
        say(s, "the context has no folder for packs");
        return WEFT_OK;
    }
    if (other) {
        say(s, "plans are not stored with %s", other);
        return WEFT_OK;
    }
    const int status = weft_protected(s->context, open_stored, &(struct opening){s, facts});
    return status == WEFT_OK && s->key[0] ? try_load(s) : status;
}

static void drop_file(struct weft_stored *s)
{
    weft_graph_free(s->graph);
    for (uint32_t i = 0; i < s->packs; i++)
        if (s->pack[i].mapped && !s->pack[i].taken)
            weft_pack_folder_unmap(s->pack[i].data, s->pack[i].bytes);
    weft_blob_drop(s->file);
    s->graph = NULL;
    s->file = NULL;
    s->packs = 0;
}

int weft_stored_reopen(struct weft_stored *s)
{
    drop_file(s);
    return try_load(s);
}

void weft_stored_close(struct weft_stored *s)
{
    drop_file(s);
    weft_arena_close(&s->arena);
}

struct weft_stored_pack *weft_stored_find_pack(const struct weft_stored *s, uint32_t number, size_t bytes)
{
    for (uint32_t i = 0; s && i < s->packs; i++)
        if (s->pack[i].number == number && s->pack[i].bytes == bytes && !s->pack[i].taken)
            return &s->pack[i];
    return NULL;
}
