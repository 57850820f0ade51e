/* SPDX-License-Identifier: Apache-2.0 */
/* pack_folder.c: packs as files that are mapped. The contract: pack_folder.h. */
#include "plan/pack_folder.h"

#include "ir/public.h"
#include "ir/text.h"
#include "ir/user_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LEAST ((size_t)64 << 10) /* bytes that are worth a file */
#define MOST_BYTES ((uint64_t)64 << 30)
#define PIECE ((size_t)1 << 30) /* of one write */
enum { HASH_DIGITS = 32, NAME_BYTES = 72, STALE_SECONDS = 3600, TRIES = 16 };

struct weft_pack_folder {
    int file;           /* descriptor */
    uint64_t limit;
    bool warned;
    char path[PATH_MAX];
};

/* --- the folder --------------------------------------------------------------------------------------------------- */

struct opening {
    struct weft_context *context;
    struct weft_pack_folder *folder;
    const char *path, *from;
    uint64_t bytes;
};

static int refuse(const struct opening *o, const char *why)
{
    return weft_wrong(o->context, o->from, "no folder for packed weights: '%.400s' %s", o->path, why);
}

static int open_folder(void *argument)
{
    const struct opening *const o = argument;
    struct weft_pack_folder *const folder = o->folder;
    const char *const limit = secure_getenv("WEFT_PACKS_BYTES"), *why;
    if (o->bytes)
        folder->limit = o->bytes;
    else if (limit && *limit && !weft_user_folder_bytes(limit, &folder->limit))
        return weft_wrong(o->context, "WEFT_PACKS_BYTES", "'%.64s' is no number, which K, M or G may follow", limit);
    if (snprintf(folder->path, sizeof folder->path, "%s", o->path) >= (int)sizeof folder->path)
        return refuse(o, strerror(ENAMETOOLONG));
    weft_user_folder_trim(folder->path);
    if (mkdir(folder->path, 0700) != 0 && errno != EEXIST)
        return refuse(o, strerror(errno));
    folder->file = weft_user_folder_open(folder->path, &why);
    return folder->file < 0 ? refuse(o, why) : WEFT_OK;
}

int weft_pack_folder_open(struct weft_context *context, const char *path, uint64_t bytes, const char *from)
{
    struct weft_pack_folder *const folder = weft_allocate(context, sizeof *folder);
    if (!folder)
        return WEFT_ERR_NOMEM;
    *folder = (struct weft_pack_folder){.file = -1, .limit = MOST_BYTES};
    context->pack_folder = folder;
    return weft_protected(context, open_folder,
                          &(struct opening){.context = context, .folder = folder, .path = path, .bytes = bytes,
                                            .from = from});
}

void weft_pack_folder_close(struct weft_context *context)
{
    struct weft_pack_folder *const folder = context->pack_folder;
    if (folder && folder->file >= 0)
        close(folder->file);
    weft_release(context, folder, sizeof *folder);
    context->pack_folder = NULL;
}

/* --- the bound ---------------------------------------------------------------------------------------------------- */

static bool is_pack(const char *name)
{
    const size_t hash = strspn(name, "0123456789abcdef");
    if (hash == HASH_DIGITS && strcmp(name + hash, ".plan") == 0)
        return true;
    const size_t size = hash == HASH_DIGITS && name[hash] == '-' ? strspn(name + hash + 1, "0123456789abcdef") : 0;
    return size > 0 && strcmp(name + hash + 1 + size, ".pack") == 0;
}

/* As make_temporary names them. */
static bool is_temporary(const char *name)
{
    return strncmp(name, "tmp-", 4) == 0 && strspn(name + 4, "0123456789abcdef") == HASH_DIGITS &&
           name[4 + HASH_DIGITS] == '\0';
}

/* What all packs and plans take, and the name of the one that was mapped longest ago; removes what writers that died
 * left. */
static uint64_t survey(const struct weft_pack_folder *folder, char oldest[NAME_BYTES])
{
    uint64_t bytes = 0;
    struct timespec first = {0};
    DIR *const entries = weft_user_folder_list(folder->file);
    oldest[0] = '\0';
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        struct stat status;
        const bool pack = is_pack(e->d_name), temporary = is_temporary(e->d_name);
        if ((!pack && !temporary) || strlen(e->d_name) >= NAME_BYTES ||
            fstatat(folder->file, e->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
            continue;
        if (temporary && time(NULL) - status.st_mtime > STALE_SECONDS)
            unlinkat(folder->file, e->d_name, 0);
        if (!pack)
            continue;
        bytes += (uint64_t)status.st_size;
        const struct timespec used = status.st_mtim;
        if (!oldest[0] || used.tv_sec < first.tv_sec ||
            (used.tv_sec == first.tv_sec && used.tv_nsec < first.tv_nsec)) {
            first = used;
            snprintf(oldest, NAME_BYTES, "%.*s", NAME_BYTES - 1, e->d_name);
        }
    }
    if (entries)
        closedir(entries);
    return bytes;
}

/* Makes room for so many bytes below the limit. */
static bool make_room(const struct weft_pack_folder *folder, size_t bytes)
{
    char oldest[NAME_BYTES];
    if (bytes > folder->limit)
        return false;
    while (survey(folder, oldest) > folder->limit - bytes)
        if (!oldest[0] || (unlinkat(folder->file, oldest, 0) != 0 && errno != ENOENT)) /* another process was faster */
            return false;
    return true;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* The file with this name, mapped, if it may be trusted; `*bytes`: so many, or, if that is 0, as many as it has. */
static void *map_trusted(const struct weft_pack_folder *folder, const char *name, size_t *bytes, int flags)
{
    struct stat status;
    const int file = openat(folder->file, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return NULL;
    void *mapped = MAP_FAILED;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && !weft_distrust(&status) && status.st_size > 0 &&
        (*bytes == 0 || status.st_size == (off_t)*bytes)) {
        *bytes = (size_t)status.st_size;
        mapped = mmap(NULL, *bytes, PROT_READ, MAP_SHARED | flags, file, 0);
    }
    if (mapped != MAP_FAILED)
        futimens(file, NULL);
    close(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* The file with this name, mapped, if it may be trusted and has these bytes. */
static void *map_equal(const struct weft_pack_folder *folder, const char *name, const void *data, size_t bytes)
{
    void *const mapped = map_trusted(folder, name, &bytes, 0);
    if (!mapped)
        return NULL;
    (void)madvise(mapped, bytes, MADV_HUGEPAGE); /* a wish, which a tmpfs may grant */
    if (memcmp(mapped, data, bytes) == 0)
        return mapped;
    munmap(mapped, bytes);
    return NULL;
}

static int make_temporary(const struct weft_pack_folder *folder, char name[NAME_BYTES])
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t random[2];
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return -1;
        snprintf(name, NAME_BYTES, "tmp-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
        const int file = openat(folder->file, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/* 0, or an errno. */
static int write_all(int file, const char *data, size_t bytes)
{
    int error;
    do
        error = posix_fallocate(file, 0, (off_t)bytes); /* a full disk shows here, and not as a signal */
    while (error == EINTR);
    if (error && error != EOPNOTSUPP && error != EINVAL)
        return error;
    for (size_t done = 0; done < bytes;) {
        const ssize_t some = write(file, data + done, bytes - done < PIECE ? bytes - done : PIECE);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return some < 0 ? errno : ENOSPC;
        done += (size_t)some;
    }
    return 0;
}

/* Gives a written file its name. If another process did so in the meantime, its file is the one that all map, unless it
 * is damaged: `*ret_mapped`. Without hard links the last file that is written takes the name. 0, or an errno. */
static int publish(const struct weft_pack_folder *folder, const char *temporary, const char *name, const void *data,
                   size_t bytes, void **ret_mapped)
{
    if (linkat(folder->file, temporary, folder->file, name, 0) == 0)
        return 0;
    if (errno == EEXIST)
        *ret_mapped = map_equal(folder, name, data, bytes);
    return *ret_mapped || renameat(folder->file, temporary, folder->file, name) == 0 ? 0 : errno;
}

/* Writes the file, and maps it or an equal one. 0, or an errno. */
static int write_file(const struct weft_pack_folder *folder, const char *name, const void *data, size_t bytes,
                      void **ret_mapped)
{
    char temporary[NAME_BYTES];
    const int file = make_temporary(folder, temporary);
    if (file < 0)
        return errno;
    int error = write_all(file, data, bytes);
    if (close(file) != 0 && !error)
        error = errno;
    error = error ? error : publish(folder, temporary, name, data, bytes, ret_mapped);
    unlinkat(folder->file, temporary, 0); /* its other name, if it got one by a link */
    if (!error && !*ret_mapped)
        *ret_mapped = map_equal(folder, name, data, bytes);
    return error;
}

static void warn(struct weft_context *context, const char *why)
{
    struct weft_pack_folder *const folder = context->pack_folder;
    if (!folder->warned)
        weft_note(context, WEFT_WARNING, &(struct weft_place){.file = folder->path},
                  "packed weights are this process's alone: %s", why);
    folder->warned = true;
}

void *weft_pack_folder_map(struct weft_context *context, const void *data, size_t bytes, const char hash[33])
{
    const struct weft_pack_folder *const folder = context->pack_folder;
    char name[NAME_BYTES];
    if (!folder || bytes < LEAST)
        return NULL;
    snprintf(name, sizeof name, "%.32s-%zx.pack", hash, bytes);
    void *mapped = map_equal(folder, name, data, bytes);
    if (mapped)
        return mapped;
    if (!make_room(folder, bytes)) {
        warn(context, "the folder may not hold so many bytes (WEFT_PACKS_BYTES)");
        return NULL;
    }
    const int error = write_file(folder, name, data, bytes, &mapped);
    if (!mapped)
        warn(context, error ? strerror(error) : "a file that was just written cannot be mapped");
    return mapped;
}

void *weft_pack_folder_map_known(struct weft_context *context, size_t bytes, const char hash[33])
{
    const struct weft_pack_folder *const folder = context->pack_folder;
    char name[NAME_BYTES], found[33];
    if (!folder || bytes == 0)
        return NULL;
    snprintf(name, sizeof name, "%.32s-%zx.pack", hash, bytes);
    void *const mapped = map_trusted(folder, name, &bytes, MAP_POPULATE);
    if (!mapped)
        return NULL;
    weft_blob_hash(mapped, bytes, found);
    if (memcmp(found, hash, HASH_DIGITS) == 0)
        return mapped;
    munmap(mapped, bytes);
    unlinkat(folder->file, name, 0); /* whoever has it mapped has noticed, or never will */
    return NULL;
}

void *weft_pack_folder_read(struct weft_context *context, const char *name, size_t *ret_bytes)
{
    *ret_bytes = 0;
    return context->pack_folder ? map_trusted(context->pack_folder, name, ret_bytes, 0) : NULL;
}

const char *weft_pack_folder_write(struct weft_context *context, const char *name, const void *data, size_t bytes)
{
    const struct weft_pack_folder *const folder = context->pack_folder;
    char temporary[NAME_BYTES];
    if (!folder || !make_room(folder, bytes))
        return "the folder may not hold so many bytes";
    const int file = make_temporary(folder, temporary);
    if (file < 0)
        return strerror(errno);
    int error = write_all(file, data, bytes);
    if (close(file) != 0 && !error)
        error = errno;
    if (!error && renameat(folder->file, temporary, folder->file, name) != 0)
        error = errno;
    if (error)
        unlinkat(folder->file, temporary, 0);
    return error ? strerror(error) : NULL;
}

void weft_pack_folder_remove(struct weft_context *context, const char *name)
{
    if (context->pack_folder)
        unlinkat(context->pack_folder->file, name, 0);
}

void weft_pack_folder_unmap(void *data, size_t bytes) { munmap(data, bytes); }
