/* SPDX-License-Identifier: Apache-2.0 */
/* file.c: files that come out whole or not at all.
 *
 * A full disk, a signal or a crash in the middle of writing would leave the beginning of a file under its name, and
 * what was there before would be gone. So a file is written beside its place and renamed into it when all of it is
 * there. What is no file, a device or a pipe, is written in place: a rename would replace it. */
#include "ir/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names of files in the making, for a handler of signals: written before the file is made, cleared when it is gone.
 * Threads take places of their own; what finds none is not removed by a signal. */
enum { MOST = 8, FREE = 0, TAKEN, NAMED };
static struct {
    atomic_int state;
    char path[WEFT_FILE_PATH + 32];
} making[MOST];

void weft_file_discard_all(void)
{
    for (int i = 0; i < MOST; i++)
        if (atomic_load(&making[i].state) == NAMED)
            unlink(making[i].path);
}

static void take_slot(struct weft_file *file)
{
    for (file->slot = 0; file->slot < MOST; file->slot++) {
        int state = FREE;
        if (atomic_compare_exchange_strong(&making[file->slot].state, &state, TAKEN)) {
            memcpy(making[file->slot].path, file->beside, sizeof file->beside);
            atomic_store(&making[file->slot].state, NAMED);
            return;
        }
    }
}

static void give_slot(struct weft_file *file)
{
    if (file->slot >= 0 && file->slot < MOST)
        atomic_store(&making[file->slot].state, FREE);
    file->slot = -1;
}

/* Where links lead; a path that nothing is at stays as it is. False, with errno, if it is too long. */
static bool resolve(const char *path, char to[WEFT_FILE_PATH])
{
    char real[PATH_MAX];
    const char *found = realpath(path, real) ? real : path;
    if (strlen(found) >= WEFT_FILE_PATH) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(to, found, strlen(found) + 1);
    return true;
}

/* A name that nothing has, made in the same step; with the rights of the file that it will replace. */
static bool open_beside(struct weft_file *file, const struct stat *old)
{
    int made = -1;
    for (unsigned i = 0; made < 0 && i < 1000; i++) {
        snprintf(file->beside, sizeof file->beside, "%s.%ld-%u", file->path, (long)getpid(), i);
        take_slot(file);
        made = open(file->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (made < 0)
            give_slot(file);
        if (made < 0 && errno != EEXIST)
            return false;
    }
    if (made >= 0 && old)
        (void)fchmod(made, old->st_mode & 07777);
    file->to = made >= 0 ? fdopen(made, "wb") : NULL;
    if (!file->to && made >= 0) {
        close(made);
        unlink(file->beside);
        give_slot(file);
    }
    return file->to;
}

bool weft_file_create(struct weft_file *file, const char *path)
{
    *file = (struct weft_file){.slot = -1};
    struct stat old, link;
    const bool exists = stat(path, &old) == 0;
    if (!resolve(path, file->path))
        return false;
    const bool is_stream = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0; /* standard output, say */
    const bool leads_nowhere = !exists && lstat(path, &link) == 0;
    if (is_stream || leads_nowhere || (exists && !S_ISREG(old.st_mode))) {
        file->to = fopen(path, "wbe");
        return file->to;
    }
    if (exists && access(path, W_OK) != 0)
        return false;
    return open_beside(file, exists ? &old : NULL);
}

/* Why an earlier write failed: the next one fails of the same. What it adds is thrown away with the rest. */
static int ask_again(FILE *to)
{
    errno = 0;
    clearerr(to);
    return (fputc('\n', to) == EOF || fflush(to) != 0) && errno ? errno : EIO;
}

bool weft_file_finish(struct weft_file *file)
{
    errno = 0;
    bool whole = fflush(file->to) == 0 && !ferror(file->to);
    int error = whole ? 0 : errno ? errno : ask_again(file->to);
    if (fclose(file->to) != 0 && whole) { /* some file systems tell only now */
        error = errno;
        whole = false;
    }
    file->to = NULL;
    if (!whole)
        weft_file_discard(file);
    errno = whole ? errno : error;
    return whole;
}

bool weft_file_place(struct weft_file *file)
{
    const bool placed = !file->beside[0] || rename(file->beside, file->path) == 0;
    const int error = errno;
    if (placed) {
        file->beside[0] = '\0';
        give_slot(file);
    } else {
        weft_file_discard(file);
    }
    errno = error;
    return placed;
}

bool weft_file_commit(struct weft_file *file) { return weft_file_finish(file) && weft_file_place(file); }

void weft_file_discard(struct weft_file *file)
{
    if (file->to)
        (void)fclose(file->to);
    file->to = NULL;
    if (file->beside[0])
        unlink(file->beside);
    file->beside[0] = '\0';
    give_slot(file);
}
