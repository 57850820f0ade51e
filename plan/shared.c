/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c: equal packs of the plans of one context are in memory once.
 *
 * Two plans of one model (for two batch sizes, say, or of a prefix of it) pack the same weights in the same way. What
 * is shared is found by its bytes: a pack is written, looked up by its hash, compared, and given back if another plan
 * has the same. So it does not matter where the weights came from, a file, the caller's memory or a pass that computed
 * them, nor whether anybody could say of two kinds of packing that they are one. Packing takes its time all the same,
 * and for a moment there is one pack more than needed.
 *
 * Plans are made by one thread of a context at a time, but dropped by any. So the lists belong to whoever makes plans:
 * who drops the last reference gives back the bytes and leaves the entry, which the next search of the list removes. No
 * lock is held that a fork could leave behind.
 *
 * Where the context has a folder for packs (pack_folder.h), the bytes are those of a file there, which other processes
 * have mapped too. */
#include "plan/pack_folder.h"
#include "plan/stored.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#define LEAST ((size_t)16 << 10) /* bytes that are worth an entry */

struct weft_shared_pack {
    struct weft_shared_pack *next;
    XXH128_hash_t hash;
    void *data;
    size_t bytes;
    bool mapped;                 /* from a file */
    _Atomic uint32_t references; /* packs of plans; 0: the bytes are gone, and nobody may take it */
};

/* Takes a reference, unless there is none any more. */
static bool take(struct weft_shared_pack *shared)
{
    uint32_t references = atomic_load(&shared->references);
    while (references && !atomic_compare_exchange_weak(&shared->references, &references, references + 1))
        ;
    return references != 0;
}

static void drop(struct weft_context *context, struct weft_shared_pack *shared)
{
    void *const data = shared->data; /* afterwards it may be removed at any time */
    const size_t bytes = shared->bytes;
    const bool mapped = shared->mapped;
    if (atomic_fetch_sub(&shared->references, 1) != 1)
        return;
    if (mapped)
        weft_pack_folder_unmap(data, bytes);
    else
        weft_release(context, data, bytes);
}

/* The entry with these bytes, held; what nobody has any more leaves the list. */
static struct weft_shared_pack *find(struct weft_context *context, struct weft_shared_pack **list,
                                     const struct weft_pack *pack, XXH128_hash_t hash)
{
    for (struct weft_shared_pack *shared; (shared = *list) != NULL;) {
        if (atomic_load(&shared->references) == 0) {
            *list = shared->next;
            weft_release(context, shared, sizeof *shared);
            continue;
        }
        list = &shared->next;
        if (shared->bytes != pack->bytes || !XXH128_isEqual(shared->hash, hash) || !take(shared))
            continue;
        if (memcmp(shared->data, pack->data, pack->bytes) == 0)
            return shared;
        drop(context, shared);
    }
    return NULL;
}

/* The same bytes in the context's folder, or NULL. */
static void *map(struct weft_context *context, const struct weft_pack *pack, XXH128_hash_t hash)
{
    char name[33];
    snprintf(name, sizeof name, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    return weft_pack_folder_map(context, pack->data, pack->bytes, name);
}

void weft_plan_share_pack(struct weft_plan *plan, uint32_t number)
{
    struct weft_context *const context = plan->context;
    struct weft_pack *const pack = &plan->pack[number];
    if (pack->bytes < LEAST || pack->shared)
        return;
    const XXH128_hash_t hash = XXH3_128bits(pack->data, pack->bytes);
    struct weft_shared_pack **const list = &context->shared_pack[hash.low64 % WEFT_SHARED_PACKS];
    struct weft_shared_pack *shared = find(context, list, pack, hash);
    if (shared) {
        weft_release(context, pack->data, pack->bytes);
        pack->data = shared->data;
        pack->shared = shared;
        return;
    }
    shared = weft_allocate(context, sizeof *shared);
    if (!shared)
        return; /* then it is this plan's alone */
    void *const mapped = map(context, pack, hash);
    if (mapped) {
        weft_release(context, pack->data, pack->bytes);
        pack->data = mapped;
    }
    *shared = (struct weft_shared_pack){.next = *list, .hash = hash, .data = pack->data, .bytes = pack->bytes,
                                        .mapped = mapped != NULL, .references = 1};
    *list = shared;
    pack->shared = shared;
}

static XXH128_hash_t hash_of(const char *digits)
{
    unsigned long long high, low;
    return sscanf(digits, "%16llx%16llx", &high, &low) == 2 ? (XXH128_hash_t){.high64 = high, .low64 = low}
                                                            : (XXH128_hash_t){0};
}

uint32_t weft_plan_adopt_pack(struct weft_plan *plan, struct weft_stored_pack *stored)
{
    struct weft_context *const context = plan->context;
    const struct weft_pack pack = {.data = stored->data, .bytes = stored->bytes};
    const XXH128_hash_t hash = hash_of(stored->hash);
    if (!stored->mapped) {
        const uint32_t number = weft_plan_add_pack(plan, stored->bytes);
        memcpy(plan->pack[number].data, stored->data, stored->bytes);
        weft_plan_share_pack(plan, number);
        return number;
    }
    struct weft_shared_pack **const list = &context->shared_pack[hash.low64 % WEFT_SHARED_PACKS];
    struct weft_shared_pack *shared = find(context, list, &pack, hash);
    if (!shared) {
        shared = weft_allocate(context, sizeof *shared);
        if (!shared)
            weft_out_of_memory(context);
        *shared = (struct weft_shared_pack){.next = *list, .hash = hash, .data = stored->data, .bytes = stored->bytes,
                                            .mapped = true, .references = 1};
        *list = shared;
        stored->taken = true;
    }
    return weft_plan_add_shared(plan, shared, shared->data, shared->bytes);
}

bool weft_plan_pack_file(const struct weft_pack *pack, char ret_hash[33])
{
    if (!pack->shared || !pack->shared->mapped)
        return false;
    snprintf(ret_hash, 33, "%016llx%016llx", (unsigned long long)pack->shared->hash.high64,
             (unsigned long long)pack->shared->hash.low64);
    return true;
}

void weft_plan_free_pack(struct weft_context *context, struct weft_pack *pack)
{
    if (pack->shared)
        drop(context, pack->shared);
    else
        weft_release(context, pack->data, pack->bytes);
    *pack = (struct weft_pack){0};
}

static bool has_others(const struct weft_shared_pack *shared) { return atomic_load(&shared->references) > 1; }
static bool is_mapped(const struct weft_shared_pack *shared) { return shared->mapped; }

/* Bytes of shared packs of which this holds. */
static int64_t sum_bytes(const struct weft_plan *plan, bool (*holds)(const struct weft_shared_pack *shared))
{
    int64_t bytes = 0;
    for (uint32_t i = 1; i < plan->packs; i++)
        if (plan->pack[i].shared && holds(plan->pack[i].shared))
            bytes += (int64_t)plan->pack[i].bytes;
    for (uint32_t i = 1; i < plan->controls; i++)
        for (uint32_t k = 0; k < plan->control[i].bodies; k++)
            bytes += sum_bytes(plan->control[i].body[k], holds);
    return bytes;
}

int64_t weft_plan_shared_bytes(const struct weft_plan *plan) { return sum_bytes(plan, has_others); }

int64_t weft_plan_mapped_bytes(const struct weft_plan *plan) { return sum_bytes(plan, is_mapped); }

void weft_shared_packs_close(struct weft_context *context)
{
    for (int i = 0; i < WEFT_SHARED_PACKS; i++)
        for (struct weft_shared_pack *shared = context->shared_pack[i], *next; shared; shared = next) {
            next = shared->next;
            weft_assert(atomic_load(&shared->references) == 0);
            weft_release(context, shared, sizeof *shared);
        }
}
