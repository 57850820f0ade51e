/* SPDX-License-Identifier: Apache-2.0 */
/* stored.h: plans as files, so that a later process neither runs passes nor chooses nor packs weights.
 *
 * They lie in the folder for packs (pack_folder.h), whose rules are theirs: who may write, how many bytes, and which
 * file goes first.
 *
 *   <32 hex digits>.plan    the key's
 *     head                  hash of all that follows, sizes
 *     entries               constants by the hash of their elements, and packs by number
 *     text                  the planned graph (ir/FORMAT.md); constants of more than a few elements by their hash
 *     elements              of constants that passes computed and that runs read; of packs too small for a file
 *
 * The key is of all that decides a plan: the library's file, the graph with the elements of its constants, the CPU, its
 * caches, threads, prices and options. So elements that the graph has are not in the file, and not those that kernels
 * read in packed form only: the packs are files of their own. Such a constant is known by its hash and has no elements;
 * who wants to read them after all gets an error, and the plan is made as if there were no file. */
#ifndef WEFT_STORED_H
#define WEFT_STORED_H

#include "plan/plan.h"

enum { WEFT_STORED_KEY_BYTES = 33, WEFT_STORED_WHY_BYTES = 256 };

/* Packed weights of a plan in the making. */
struct weft_stored_pack {
    uint32_t number;         /* of the plan's pack */
    size_t bytes;
    void *data;
    char hash[33];
    bool mapped;             /* a file of its own, which whoever takes it unmaps; else in the plan's file */
    bool taken;
};

struct weft_stored {
    struct weft_context *context;
    const struct weft_graph *source;
    struct weft_arena arena;
    char key[WEFT_STORED_KEY_BYTES]; /* "": the plan cannot be stored */
    char why[WEFT_STORED_WHY_BYTES]; /* there was no plan; "": there is one */
    struct weft_graph *graph;        /* as it was planned; NULL: none */
    struct weft_blob *file;
    struct weft_stored_pack *pack;
    uint32_t packs;
    struct weft_stored_known *known; /* constants of the source */
    uint32_t knowns, known_capacity;
};

/* What decides a plan besides the graph and the context. */
struct weft_stored_facts {
    uint32_t flags;
    int64_t constant_bytes;
    const char *other;       /* an option that no key has: such a plan is not stored; or NULL */
};

/* Finds the plan of an earlier process; `graph` is NULL where there is none, and `why` says why. Errors: out of memory.
 * Whatever is wrong with the file is no error. The caller closes in any case. */
int weft_stored_open(struct weft_stored *stored, const struct weft_graph *source,
                     const struct weft_stored_facts *facts);
/* Looks again, after weft_stored_write. */
int weft_stored_reopen(struct weft_stored *stored);
void weft_stored_close(struct weft_stored *stored);
/* Writes a plan that was made without a file. False: `why` says why not. */
bool weft_stored_write(struct weft_stored *stored, const struct weft_plan *plan);
/* Removes the file: it is of no use. */
void weft_stored_remove(struct weft_stored *stored);
/* The pack of this number, if it has so many bytes; or NULL. */
struct weft_stored_pack *weft_stored_find_pack(const struct weft_stored *stored, uint32_t number, size_t bytes);

#endif
