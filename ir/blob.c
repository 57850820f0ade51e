/* SPDX-License-Identifier: Apache-2.0 */
/* blob.c: counted bytes for constants. A graph, its clones and the plans made from it share weights; whoever goes last
 * unmaps them. Each of these holds the context. */
#include "ir/ir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct weft_blob *weft_blob_new(struct weft_context *context, size_t bytes)
{
    struct weft_blob *blob = weft_allocate(context, sizeof *blob);
    void *data = blob ? weft_allocate(context, bytes) : NULL;
    if (!data) {
        weft_release(context, blob, sizeof *blob);
        return NULL;
    }
    memset(data, 0, bytes);
    *blob = (struct weft_blob){.context = context, .data = data, .bytes = bytes, .references = 1};
    return blob;
}

static const char nothing[1]; /* where there are no bytes */

struct weft_blob *weft_blob_borrow(struct weft_context *context, const void *data, size_t bytes)
{
    struct weft_blob *blob = weft_allocate(context, sizeof *blob);
    if (blob)
        *blob = (struct weft_blob){.context = context, .data = (void *)(data ? data : nothing), .bytes = bytes,
                                   .borrowed = true, .references = 1};
    return blob;
}

static struct weft_blob *map_failed(struct weft_context *context, const char *path, int error)
{
    weft_error(context, error == ENOMEM ? WEFT_ERR_NOMEM : WEFT_ERR_IO, &(struct weft_place){.file = path},
               "cannot be read: %s", strerror(error));
    return NULL;
}

/* An empty file cannot be mapped; it becomes an empty blob. */
static void *map_bytes(int file, size_t bytes)
{
    return bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0) : (void *)nothing;
}

struct weft_blob *weft_blob_map(struct weft_context *context, const char *path)
{
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe without a writer is an error, no wait */
    if (file < 0)
        return map_failed(context, path, errno);
    struct stat status = {0};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(file);
        weft_error(context, WEFT_ERR_IO, &(struct weft_place){.file = path}, "cannot be read: %s",
                   S_ISDIR(status.st_mode) ? "Is a directory" : "not a regular file");
        return NULL;
    }
    const size_t bytes = (size_t)status.st_size;
    void *data = map_bytes(file, bytes);
    const int error = errno;
    close(file);
    if (data == MAP_FAILED)
        return map_failed(context, path, error);
    const size_t length = strlen(path) + 1;
    struct weft_blob *blob = weft_allocate(context, sizeof *blob);
    char *copy = blob ? weft_allocate(context, length) : NULL;
    if (!copy) {
        weft_release(context, blob, sizeof *blob);
        if (bytes)
            munmap(data, bytes);
        return map_failed(context, path, ENOMEM);
    }
    memcpy(copy, path, length);
    *blob = (struct weft_blob){.context = context, .data = data, .bytes = bytes, .mapped = true, .references = 1,
                               .path = copy};
    return blob;
}

struct weft_blob *weft_blob_of_mapping(struct weft_context *context, void *data, size_t bytes)
{
    struct weft_blob *const blob = weft_allocate(context, sizeof *blob);
    if (blob)
        *blob = (struct weft_blob){.context = context, .data = data, .bytes = bytes, .mapped = true, .references = 1};
    else
        munmap(data, bytes);
    return blob;
}

struct weft_blob *weft_blob_lost(struct weft_context *context, const char *hash, size_t bytes)
{
    struct weft_blob *const blob = weft_allocate(context, sizeof *blob);
    if (blob) {
        *blob = (struct weft_blob){.context = context, .bytes = bytes, .planned = true, .references = 1};
        memcpy(blob->given_up, hash, sizeof blob->given_up - 1);
    }
    return blob;
}

enum { FORGOTTEN = 64 << 10 }; /* bytes that are worth a system call */

void weft_blob_forget(struct weft_blob *blob, uint64_t offset, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)blob->data + offset + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)blob->data + offset + bytes) / page * page;
    if (blob->mapped && first < end && end - first >= FORGOTTEN)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

void weft_blob_give_up(struct weft_blob *blob)
{
    if (blob->mapped || blob->borrowed || !blob->data || atomic_load(&blob->references) != 1)
        return;
    weft_blob_hash(blob->data, blob->bytes, blob->given_up);
    weft_release(blob->context, blob->data, blob->bytes);
    blob->data = NULL;
}

struct weft_blob *weft_blob_hold(struct weft_blob *blob)
{
    atomic_fetch_add(&blob->references, 1);
    return blob;
}

void weft_blob_drop(struct weft_blob *blob)
{
    if (!blob || atomic_fetch_sub(&blob->references, 1) != 1)
        return;
    struct weft_context *context = blob->context;
    if (blob->mapped && blob->bytes)
        munmap(blob->data, blob->bytes);
    else if (!blob->mapped && !blob->borrowed && blob->data)
        weft_release(context, blob->data, blob->bytes);
    const void *const given = blob->data == nothing ? NULL : blob->data;
    if (blob->release)
        blob->release(blob->release_user, given, blob->bytes);
    if (blob->release_data)
        blob->release_data(blob->release_user, given);
    if (blob->path)
        weft_release(context, blob->path, strlen(blob->path) + 1);
    weft_release(context, blob, sizeof *blob);
}
