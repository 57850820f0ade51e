/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: what a command is doing, on a terminal. */
#include "tools/tools.h"

#include <stdio.h>
#include <unistd.h>

void weft_tool_progress(const char *what, int runs)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (what)
        fprintf(stderr, "\r\033[K%s", what);
    if (what && runs)
        fprintf(stderr, ", %d", runs);
    if (!what)
        fprintf(stderr, "\r\033[K");
    fflush(stderr);
}
