/* SPDX-License-Identifier: Apache-2.0 */
/* compiler_cache.c: the folder with compiled code.
 *
 *   <32 hex digits>.so   a source's key; what one run of the compiler made of several sources is one file with several
 * names
 *   tmp-<random>/        where compilers work
 *
 * Others in the same folder (prices, say) are let alone. Objects end with a seal: how long they are, and the hash of
 * all that. So what a crash or a full disk truncated, or what flipped a bit, is not loaded but made again. The seal is
 * no signature: who may write as the user may do anything; who may not is kept away by owner and mode of the folder and
 * of each file. These are asked of open descriptors, and never of a path: what a path means may change between two
 * calls.
 *
 * Names as links instead of an index in a file: the file system keeps them consistent with what they name, they come
 * and go atomically without a lock, and a name that is gone is a source to be compiled. The time of change is the time
 * of last use, which all names of a file share. Where there are no hard links, a file keeps the first of its names. */
#include "codegen/compiler_parts.h"
#include "ir/user_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY /* the state of a running hash, on the stack */
#include <xxhash.h>

enum { NAME_BYTES = 40, PIECE = 1 << 14, STALE_SECONDS = 3600, TRIES = 16, FREE_BYTES = 1 << 20 };
#define MOST_BYTES ((off_t)256 << 20)

static const char seal_word[16] = "weft object 1\n";
struct seal {
    char word[16];
    XXH128_canonical_t hash;
    uint64_t bytes;
};

/* --- what may be trusted ------------------------------------------------------------------------------------------ */

/* The hash of the first `bytes` bytes. */
static bool hash_file(int file, off_t bytes, XXH128_canonical_t *ret_hash)
{
    XXH3_state_t state;
    unsigned char piece[PIECE];
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (off_t done = 0; done < bytes;) {
        const off_t left = bytes - done;
        const ssize_t some = pread(file, piece, left < PIECE ? (size_t)left : PIECE, done);
        if (some <= 0)
            return false;
        XXH3_128bits_update(&state, piece, (size_t)some);
        done += some;
    }
    XXH128_canonicalFromHash(ret_hash, XXH3_128bits_digest(&state));
    return true;
}

static bool is_sealed(int file, off_t bytes)
{
    struct seal seal;
    XXH128_canonical_t hash;
    const off_t body = bytes - (off_t)sizeof seal;
    return body > 0 && pread(file, &seal, sizeof seal, body) == (ssize_t)sizeof seal &&
           memcmp(seal.word, seal_word, sizeof seal_word) == 0 && seal.bytes == (uint64_t)body &&
           hash_file(file, body, &hash) && memcmp(&hash, &seal.hash, sizeof hash) == 0;
}

int weft_object_seal(const struct weft_object *object)
{
    struct stat status;
    struct seal seal = {.bytes = 0};
    if (fstat(object->file, &status) != 0)
        return errno;
    if (!hash_file(object->file, status.st_size, &seal.hash))
        return EIO;
    memcpy(seal.word, seal_word, sizeof seal_word);
    seal.bytes = (uint64_t)status.st_size;
    const ssize_t written = pwrite(object->file, &seal, sizeof seal, status.st_size);
    return written == (ssize_t)sizeof seal ? 0 : written < 0 ? errno : ENOSPC;
}

/* --- the folder --------------------------------------------------------------------------------------------------- */

/* Makes what is missing of the path, for the user alone; what is wrong shows when it is opened. */
static void make_folders(const char *path)
{
    char part[PATH_MAX];
    for (size_t i = 1; path[0] && path[i - 1]; i++) {
        if (path[i] && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        mkdir(part, 0700);
    }
}

static bool find_path(const char *given, char path[PATH_MAX])
{
    const char *const ours = given ? given : secure_getenv("WEFT_CACHE_DIR");
    const char *const cache = secure_getenv("XDG_CACHE_HOME"), *const home = secure_getenv("HOME");
    int length = -1;
    if (ours)
        length = snprintf(path, PATH_MAX, "%s", ours);
    else if (cache && cache[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/weft", cache);
    else if (home && home[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/.cache/weft", home);
    if (length <= 0 || length >= PATH_MAX)
        return false;
    weft_user_folder_trim(path);
    return true;
}

void weft_cache_open(struct weft_cache *cache, struct weft_context *context, const char *folder, uint64_t limit)
{
    *cache = (struct weft_cache){.context = context, .folder = -1, .limit = limit};
    if (!find_path(folder, cache->path)) {
        snprintf(cache->refused, sizeof cache->refused,
                 "no cache for compiled code: WEFT_CACHE_DIR, XDG_CACHE_HOME and HOME name no folder");
        return;
    }
    make_folders(cache->path);
    const char *why;
    cache->folder = weft_user_folder_open(cache->path, &why);
    if (cache->folder < 0)
        snprintf(cache->refused, sizeof cache->refused, "no cache for compiled code: %.400s %s", cache->path, why);
}

void weft_cache_close(struct weft_cache *cache)
{
    if (cache->folder >= 0)
        close(cache->folder);
    cache->folder = -1;
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

static void name_of(const char *key, char name[NAME_BYTES]) { snprintf(name, NAME_BYTES, "%s.so", key); }

static bool is_object(const char *name)
{
    return strspn(name, "0123456789abcdef") == WEFT_KEY_BYTES - 1 && strcmp(name + WEFT_KEY_BYTES - 1, ".so") == 0;
}

bool weft_cache_find(const struct weft_cache *cache, const char *key, struct weft_object *ret_object,
                     bool (*known)(void *user, const struct weft_object *object), void *user)
{
    char name[NAME_BYTES];
    struct stat status;
    name_of(key, name);
    if (cache->folder < 0)
        return false;
    const int file = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return false;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && !weft_distrust(&status) &&
        status.st_size <= MOST_BYTES) {
        const struct weft_object object = {.file = file, .device = status.st_dev, .inode = status.st_ino};
        if (known(user, &object) || is_sealed(file, status.st_size)) {
            futimens(file, NULL);
            *ret_object = object;
            return true;
        }
    }
    close(file);
    return false;
}

int weft_object_open(int folder, const char *name, struct weft_object *ret_object)
{
    struct stat status;
    const int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return errno;
    int error = fstat(file, &status) != 0 ? errno : !S_ISREG(status.st_mode) ? EINVAL : 0;
    if (!error && fchmod(file, 0600) != 0) /* the linker's mode follows the umask, which may let a group write */
        error = errno;
    if (error)
        close(file);
    else
        *ret_object = (struct weft_object){.file = file, .device = status.st_dev, .inode = status.st_ino};
    return error;
}

int weft_cache_keep(const struct weft_cache *cache, int folder, const char *name, const char *key, bool last)
{
    static const char link_name[] = "link";
    char to[NAME_BYTES];
    name_of(key, to);
    if (last)
        return renameat(folder, name, cache->folder, to) == 0 ? 0 : errno;
    if (linkat(folder, name, folder, link_name, 0) != 0)
        return errno;
    const int error = renameat(folder, link_name, cache->folder, to) == 0 ? 0 : errno;
    unlinkat(folder, link_name, 0); /* a rename to another name of the same file succeeds and does nothing */
    return error;
}

/* --- the bound ---------------------------------------------------------------------------------------------------- */

struct name {
    ino_t inode;
    uint64_t bytes;
    struct timespec used;
    char text[NAME_BYTES];
};

static int by_use(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

static void remove_folder(int parent, const char *name)
{
    const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *const entries = folder < 0 ? NULL : weft_user_folder_list(folder);
    for (const struct dirent *e; entries && (e = readdir(entries));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlinkat(folder, e->d_name, 0) != 0)
            unlinkat(folder, e->d_name, AT_REMOVEDIR);
    if (entries)
        closedir(entries);
    if (folder >= 0)
        close(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static bool grow(const struct weft_cache *cache, struct name **name, size_t *capacity)
{
    const size_t larger = *capacity ? 2 * *capacity : 256;
    struct name *const more = weft_allocate(cache->context, larger * sizeof *more);
    if (!more)
        return false;
    if (*capacity)
        memcpy(more, *name, *capacity * sizeof *more);
    weft_release(cache->context, *name, *capacity * sizeof *more);
    *name = more;
    *capacity = larger;
    return true;
}

/* Names of objects, by file, those used longest ago first; old temporary folders go. */
static struct name *list_names(const struct weft_cache *cache, size_t *ret_count, size_t *ret_capacity)
{
    struct name *name = NULL;
    size_t count = 0;
    DIR *const entries = weft_user_folder_list(cache->folder);
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        struct stat status;
        const bool object = is_object(e->d_name), temporary = strncmp(e->d_name, "tmp-", 4) == 0;
        if ((!object && !temporary) || fstatat(cache->folder, e->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (temporary && S_ISDIR(status.st_mode) && time(NULL) - status.st_mtime > STALE_SECONDS)
            remove_folder(cache->folder, e->d_name);
        if (!object || !S_ISREG(status.st_mode))
            continue;
        if (count == *ret_capacity && !grow(cache, &name, ret_capacity))
            break; /* what is left is bounded next time */
        name[count] = (struct name){.inode = status.st_ino, .bytes = (uint64_t)status.st_size, .used = status.st_mtim};
        memcpy(name[count++].text, e->d_name, WEFT_KEY_BYTES + 3);
    }
    if (entries)
        closedir(entries);
    if (count)
        qsort(name, count, sizeof *name, by_use);
    *ret_count = count;
    return name;
}

void weft_cache_bound(const struct weft_cache *cache)
{
    size_t count = 0, capacity = 0;
    struct name *const name = cache->folder < 0 ? NULL : list_names(cache, &count, &capacity);
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += i == 0 || name[i].inode != name[i - 1].inode ? name[i].bytes : 0;
    for (size_t i = 0; i < count && total > cache->limit;) {
        const size_t first = i;
        while (i < count && name[i].inode == name[first].inode)
            unlinkat(cache->folder, name[i++].text, 0);
        total -= name[first].bytes;
    }
    weft_release(cache->context, name, capacity * sizeof *name);
}

/* --- temporary folders -------------------------------------------------------------------------------------------- */

/* False with errno. Whoever may write the parent may put another folder there: it has to be ours, and only ours. */
static bool make_temporary(struct weft_temporary *temporary)
{
    for (int i = 0; i < TRIES; i++) {
        unsigned char random[16];
        struct stat status;
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return false;
        int used = snprintf(temporary->name, sizeof temporary->name, "tmp-");
        for (size_t b = 0; b < sizeof random; b++)
            used += snprintf(temporary->name + used, sizeof temporary->name - (size_t)used, "%02x", random[b]);
        if (mkdirat(temporary->parent, temporary->name, 0700) != 0) {
            if (errno == EEXIST)
                continue;
            return false;
        }
        temporary->folder = openat(temporary->parent, temporary->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (temporary->folder >= 0 && fstat(temporary->folder, &status) == 0 && !weft_distrust(&status))
            return true;
        errno = temporary->folder < 0 ? errno : EPERM;
        return false;
    }
    return false;
}

/* NULL, or why compilers had better work elsewhere. */
static const char *unfit(const struct weft_cache *cache)
{
    struct statvfs system;
    if (fstatvfs(cache->folder, &system) != 0)
        return NULL;
    if (system.f_flag & ST_NOEXEC)
        return "no code from there may run (it is mounted noexec)";
    return (uint64_t)system.f_bavail * system.f_frsize < FREE_BYTES ? strerror(ENOSPC) : NULL;
}

bool weft_temporary_open(struct weft_temporary *temporary, const struct weft_cache *cache,
                         char reason[WEFT_REASON_BYTES])
{
    const char *const named = secure_getenv("TMPDIR"), *const folder = named && named[0] == '/' ? named : "/tmp";
    *temporary = (struct weft_temporary){.parent = -1, .folder = -1, .owner = getpid()};
    if (cache->folder >= 0) {
        const char *const why = unfit(cache);
        temporary->parent = fcntl(cache->folder, F_DUPFD_CLOEXEC, 0);
        temporary->in_cache = !why && temporary->parent >= 0 && make_temporary(temporary);
        if (temporary->in_cache)
            return true;
        snprintf(reason, WEFT_REASON_BYTES, "compiled code is not kept in %.300s: %s", cache->path,
                 why ? why : strerror(errno));
        weft_temporary_close(temporary);
    }
    temporary->parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (temporary->parent >= 0 && make_temporary(temporary))
        return true;
    snprintf(reason, WEFT_REASON_BYTES, "no folder to compile in: %.300s: %s", folder, strerror(errno));
    weft_temporary_close(temporary);
    return false;
}

void weft_temporary_close(struct weft_temporary *temporary)
{
    if (temporary->folder >= 0) {
        close(temporary->folder);
        if (temporary->owner == getpid())
            remove_folder(temporary->parent, temporary->name);
    }
    if (temporary->parent >= 0)
        close(temporary->parent);
    temporary->parent = temporary->folder = -1;
}
