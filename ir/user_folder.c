/* SPDX-License-Identifier: Apache-2.0 */
/* user_folder.c: what may be trusted. The contract: user_folder.h. */
#include "ir/user_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *weft_distrust(const struct stat *status)
{
    return status->st_uid != geteuid()             ? "belongs to another user"
           : status->st_mode & (S_IWGRP | S_IWOTH) ? "may be written by its group or by others"
                                                   : NULL;
}

void weft_user_folder_trim(char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
}

int weft_user_folder_open(const char *path, const char **ret_why)
{
    struct stat status;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int error = errno;
    if (folder < 0)
        *ret_why = lstat(path, &status) == 0 && S_ISLNK(status.st_mode) ? "is a symbolic link" : strerror(error);
    else
        *ret_why = fstat(folder, &status) != 0 ? strerror(errno) : weft_distrust(&status);
    if (folder < 0 || !*ret_why)
        return folder;
    close(folder);
    return -1;
}

DIR *weft_user_folder_list(int folder)
{
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const entries = own < 0 ? NULL : fdopendir(own);
    if (!entries && own >= 0)
        close(own);
    return entries;
}

bool weft_user_folder_bytes(const char *text, uint64_t *ret_bytes)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (text[0] < '0' || text[0] > '9' || errno != 0 || number > UINT64_MAX >> shift || end[shift > 0] != '\0')
        return false;
    *ret_bytes = (uint64_t)number << shift;
    return true;
}
