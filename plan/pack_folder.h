/* SPDX-License-Identifier: Apache-2.0 */
/* pack_folder.h: packed weights that several processes have in memory once.
 *
 * A context may be given a folder (weft_context_options.packs, WEFT_PACKS). Each pack of its plans that is large enough
 * is a file there, named by the hash of its bytes, and the plan maps that file in the place of its own memory: so equal
 * packs of all processes that use the folder are one piece of memory, the system's cache of that file. A file is mapped
 * only after its bytes were compared with those of the pack. So a damaged file is never read; it is written anew.
 *
 *   <32 hex digits>-<bytes, in hex>.pack    the bytes of a pack, and nothing else
 *   tmp-<hex digits>                        one that is being written
 *
 * Files come under their names by a link: of processes that write equal packs at the same time, the first one's file is
 * the one that all map. No lock is needed. Files with a name take at most WEFT_PACKS_BYTES (a number, which K, M or G
 * may follow; 64G): those that were mapped longest ago lose their names first, though a process may have them mapped
 * still; a file without a name lives as long as it is mapped. Nobody may write to a file or cut it short (they are made
 * read-only): that reaches the processes that have mapped it, by a signal or as other weights. The folder is made for
 * the user alone (0700), and refused if it is a symbolic link, belongs to somebody else or may be written by group or
 * others; so is each file in it.
 *
 * Mapped files have small pages where weft's own memory has huge ones (bench/README.md, "Memory", says what that
 * costs). A folder in a tmpfs that is mounted with huge=advise, or within_size, has both. */
#ifndef WEFT_PACK_FOLDER_H
#define WEFT_PACK_FOLDER_H

#include "ir/base.h"

struct weft_pack_folder;

/* Opens the folder of this path, for the context, with this limit, or, if that is 0, WEFT_PACKS_BYTES. `from`: who
 * named it, for messages. Errors: WEFT_ERR_ARGUMENT, with what is wrong; WEFT_ERR_NOMEM. */
int weft_pack_folder_open(struct weft_context *context, const char *path, uint64_t bytes, const char *from);
/* NULL is fine. What is mapped stays so. */
void weft_pack_folder_close(struct weft_context *context);

/* Other files of the folder, <32 hex digits>.plan (stored.h): the whole file, mapped read-only, or NULL; writes one,
 * also in the place of another: NULL, or what is wrong; removes it. */
void *weft_pack_folder_read(struct weft_context *context, const char *name, size_t *ret_bytes);
const char *weft_pack_folder_write(struct weft_context *context, const char *name, const void *data, size_t bytes);
void weft_pack_folder_remove(struct weft_context *context, const char *name);

/* The bytes of a pack as memory of its file, read-only and at the begin of a page; the file is written if it is not
 * there. `hash`: XXH3's of 128 bits, in hex. NULL: the context has no folder, the pack is too small for a file, or its
 * file cannot be had; the first time that one cannot be written, a warning says why. Inside of a protected call. */
void *weft_pack_folder_map(struct weft_context *context, const void *data, size_t bytes, const char hash[33]);
/* The pack with this hash and so many bytes, if its file is there and has them: nothing is compared but the hash. */
void *weft_pack_folder_map_known(struct weft_context *context, size_t bytes, const char hash[33]);
/* Gives such memory back. Any thread. */
void weft_pack_folder_unmap(void *data, size_t bytes);

#endif
