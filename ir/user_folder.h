/* SPDX-License-Identifier: Apache-2.0 */
/* user_folder.h: folders that weft keeps files in for a user, compiled code and packed weights: files there are loaded
 * and mapped, so that nobody else may write them. What is asked of a file is asked of an open descriptor, and never of
 * a path, which may mean something else a moment later. */
#ifndef WEFT_USER_FOLDER_H
#define WEFT_USER_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Why a file or folder is not the user's alone to write, as the end of a sentence; NULL: it is. */
const char *weft_distrust(const struct stat *status);
/* Removes slashes at the end of a path: behind one, a link would be followed. */
void weft_user_folder_trim(char *path);
/* Opens a folder that exists, which the caller closes. -1: `*ret_why` says why it cannot be opened, is a symbolic link
 * or is not the user's alone to write, as the end of a sentence; it may change with the next call of strerror. */
int weft_user_folder_open(const char *path, const char **ret_why);
/* Its entries, which the caller closes; NULL with errno. */
DIR *weft_user_folder_list(int folder);
/* Most bytes that files there may take, as a user writes them: "64M"; units are K, M and G. False: it is no size. */
bool weft_user_folder_bytes(const char *text, uint64_t *ret_bytes);

#endif
