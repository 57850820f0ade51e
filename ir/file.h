/* SPDX-License-Identifier: Apache-2.0 */
/* file.h: files that come out whole or not at all. */
#ifndef WEFT_IR_FILE_H
#define WEFT_IR_FILE_H

#include <stdbool.h>
#include <stdio.h>

#define WEFT_FILE_PATH 4096

/* A file in the making. It lies beside the one that it will replace, under a name of its own, until it is placed. */
struct weft_file {
    FILE *to;                           /* to be written; NULL once it is finished */
    char path[WEFT_FILE_PATH];          /* what it will replace: behind symbolic links */
    char beside[WEFT_FILE_PATH + 32];   /* where it lies; "": written in place, since the path is a device or pipe */
    int slot;                           /* among those that a signal removes; -1: none */
};
/* False, with errno, if it cannot be made. An existing file keeps its access rights, but has to be writable. */
bool weft_file_create(struct weft_file *file, const char *path);
/* All is written: false, with errno, if something could not be; then nothing of it is left. */
bool weft_file_finish(struct weft_file *file);
/* Puts a finished file in its place, all at once. False, with errno, if that cannot be. */
bool weft_file_place(struct weft_file *file);
/* Both. */
bool weft_file_commit(struct weft_file *file);
/* Removes it, whatever it has come to; the file that it was to replace stays. */
void weft_file_discard(struct weft_file *file);
/* Removes all that are not placed. For signal handlers. */
void weft_file_discard_all(void);

#endif
