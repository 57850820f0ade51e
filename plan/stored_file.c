/* SPDX-License-Identifier: Apache-2.0 */
/* stored_file.c: the file of a plan, written and checked. The contract: stored.h. */
#include "plan/stored_file.h"

#include "ir/text.h"
#include "plan/pack_folder.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64, NAME_BYTES = 48 };
#define MOST_ELEMENTS ((uint64_t)1 << 30) /* that passes computed: beyond, a file costs more than it saves */

static void name_of(const struct weft_stored *s, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s.plan", s->key);
}

void *weft_stored_read(const struct weft_stored *s, size_t *ret_bytes)
{
    char name[NAME_BYTES];
    name_of(s, name);
    return weft_pack_folder_read(s->context, name, ret_bytes);
}

void weft_stored_remove(struct weft_stored *s)
{
    char name[NAME_BYTES];
    name_of(s, name);
    weft_pack_folder_remove(s->context, name);
}

static size_t hashed_from(void) { return offsetof(struct weft_stored_head, bytes); }

const char *weft_stored_take_apart(const void *data, size_t bytes, struct weft_stored_file *ret)
{
    const struct weft_stored_head *const head = data;
    if (bytes < sizeof *head || memcmp(head->word, WEFT_STORED_WORD, sizeof head->word) != 0)
        return "is none";
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits((const char *)data + hashed_from(), bytes - hashed_from()));
    if (head->bytes != bytes || memcmp(&hash, &head->hash, sizeof hash) != 0)
        return "is damaged";
    *ret = (struct weft_stored_file){.base = data, .head = head, .entry = (const void *)(head + 1)};
    const uint64_t table = (uint64_t)head->entries * sizeof *ret->entry, left = bytes - sizeof *head;
    if (table > left || head->text > left - table)
        return "is damaged";
    ret->text = (const char *)(ret->entry + head->entries);
    for (uint32_t i = 0; i < head->entries; i++) {
        const struct weft_stored_entry *const e = &ret->entry[i];
        if (e->offset > bytes || (e->offset && e->bytes > bytes - e->offset))
            return "is damaged";
    }
    return NULL;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct writing {
    struct weft_stored *stored;
    struct weft_arena *arena;
    struct weft_stored_entry *entry;
    const void **data;         /* by entry: what is at its offset */
    uint32_t entries, capacity, data_capacity;
    uint64_t bytes;            /* of what has an offset */
};

static bool has(const struct writing *w, uint32_t kind, const char *hash)
{
    for (uint32_t i = 0; i < w->entries; i++)
        if (w->entry[i].kind == kind && memcmp(w->entry[i].hash, hash, 32) == 0)
            return true;
    return false;
}

static void add(struct writing *w, struct weft_stored_entry entry, const char *hash, const void *data)
{
    w->entry = weft_grow(w->arena, w->entry, &w->capacity, w->entries + 1, sizeof *w->entry);
    w->data = weft_grow(w->arena, w->data, &w->data_capacity, w->entries + 1, sizeof *w->data);
    memcpy(entry.hash, hash, 32);
    w->data[w->entries] = data;
    w->entry[w->entries++] = entry;
    w->bytes += data ? (entry.bytes + ALIGN - 1) / ALIGN * ALIGN : 0;
}

/* Of a constant of the planned graph that has its elements. */
static const char *place(void *user, const void *data, size_t bytes, uint64_t *ret_offset)
{
    struct writing *const w = user;
    char hash[33];
    weft_blob_hash(data, bytes, hash);
    *ret_offset = 0;
    if (!weft_stored_find_known(w->stored, hash) && !has(w, WEFT_STORED_ELEMENTS, hash))
        add(w, (struct weft_stored_entry){.bytes = bytes, .kind = WEFT_STORED_ELEMENTS}, hash, data);
    return NULL;
}

/* Recursion is as deep as bodies are nested. */
static void add_lost(struct writing *w, const struct weft_graph *g)
{
    weft_foreach_node(g, n) {
        const struct weft_constant *const constant = g->node[n.id].constant;
        if (!constant || constant->kind != WEFT_CONST_BLOB || !constant->blob->given_up[0] ||
            weft_stored_find_known(w->stored, constant->blob->given_up) ||
            has(w, WEFT_STORED_LOST, constant->blob->given_up))
            continue;
        add(w, (struct weft_stored_entry){.bytes = constant->blob->bytes, .kind = WEFT_STORED_LOST,
                                          .number = atomic_load_explicit(&constant->numbers, memory_order_relaxed)},
            constant->blob->given_up, NULL);
    }
    for (uint32_t i = 0; i < g->bodies; i++)
        add_lost(w, g->body[i]);
}

static void add_packs(struct writing *w, const struct weft_plan *plan)
{
    for (uint32_t i = 1; i < plan->packs; i++) {
        const struct weft_pack *const pack = &plan->pack[i];
        if (!pack->packing || !pack->data)
            continue;
        char hash[33];
        const bool in_file = weft_plan_pack_file(pack, hash);
        if (!in_file)
            weft_blob_hash(pack->data, pack->bytes, hash);
        add(w, (struct weft_stored_entry){.bytes = pack->bytes, .kind = WEFT_STORED_PACK, .number = i}, hash,
            in_file ? NULL : pack->data);
    }
}

/* Head, entries, text and elements in one piece of memory. */
static char *assemble(struct writing *w, const struct weft_text *text, size_t *ret_bytes)
{
    const size_t table = w->entries * sizeof *w->entry;
    const size_t start = (sizeof(struct weft_stored_head) + table + text->length + ALIGN - 1) / ALIGN * ALIGN;
    char *const data = weft_arena_new(w->arena, start + (size_t)w->bytes);
    struct weft_stored_head head = {.word = WEFT_STORED_WORD, .bytes = start + w->bytes, .text = text->length,
                                    .entries = w->entries};
    uint64_t offset = start;
    memset(data, 0, start + (size_t)w->bytes);
    for (uint32_t i = 0; i < w->entries; i++)
        if (w->data[i]) {
            w->entry[i].offset = offset;
            memcpy(data + offset, w->data[i], (size_t)w->entry[i].bytes);
            offset += (w->entry[i].bytes + ALIGN - 1) / ALIGN * ALIGN;
        }
    memcpy(data, &head, sizeof head);
    memcpy(data + sizeof head, w->entry, table);
    memcpy(data + sizeof head + table, text->data, text->length);
    XXH128_canonicalFromHash(&head.hash, XXH3_128bits(data + hashed_from(), (size_t)head.bytes - hashed_from()));
    memcpy(data, &head, sizeof head);
    *ret_bytes = (size_t)head.bytes;
    return data;
}

struct request {
    struct weft_stored *stored;
    const struct weft_plan *plan;
    bool done;
};

static int write_file(void *arg)
{
    struct request *const r = arg;
    struct weft_stored *const s = r->stored;
    struct writing w = {.stored = s, .arena = &s->arena};
    struct weft_text text = {.context = s->context, .arena = &s->arena};
    char name[NAME_BYTES];
    size_t bytes;
    weft_print_graph(r->plan->graph, &(struct weft_print_options){.by_content = true, .place_blob = place, .user = &w},
                     &text);
    add_lost(&w, r->plan->graph);
    add_packs(&w, r->plan);
    if (w.bytes > MOST_ELEMENTS) {
        snprintf(s->why, sizeof s->why, "passes computed %llu bytes of constants, too many for a file",
                 (unsigned long long)w.bytes);
        return WEFT_OK;
    }
    const char *const data = assemble(&w, &text, &bytes);
    name_of(s, name);
    const char *const wrong = weft_pack_folder_write(s->context, name, data, bytes);
    if (wrong)
        snprintf(s->why, sizeof s->why, "the plan cannot be written: %.180s", wrong);
    r->done = !wrong;
    return WEFT_OK;
}

bool weft_stored_write(struct weft_stored *s, const struct weft_plan *plan)
{
    struct request r = {.stored = s, .plan = plan};
    return s->key[0] && weft_protected(s->context, write_file, &r) == WEFT_OK && r.done;
}
