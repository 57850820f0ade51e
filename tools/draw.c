/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c: pictures by the program `dot` of Graphviz. */
#include "tools/tools.h"

#include <errno.h>
#include <spawn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Starts dot -T<format>, which reads `in`; what it draws comes out of *ret_out. Returns 0 or an errno. */
static int start(FILE *in, const char *format, pid_t *ret_child, int *ret_out)
{
    char program[] = "dot", kind[16];
    snprintf(kind, sizeof kind, "-T%s", format);
    char *const argv[] = {program, kind, NULL};
    int end[2];
    if (pipe2(end, O_CLOEXEC) != 0)
        return errno;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, end[1], STDOUT_FILENO);
    const int error = posix_spawnp(ret_child, "dot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(end[1]);
    if (error)
        close(end[0]);
    *ret_out = end[0];
    return error;
}

/* Whatever comes out of a pipe, to its end; what cannot be written is seen when the file is committed. */
static void copy_all(int from, FILE *to)
{
    char part[4096];
    ssize_t bytes;
    while ((bytes = read(from, part, sizeof part)) > 0 || (bytes < 0 && errno == EINTR))
        if (bytes > 0)
            (void)fwrite(part, 1, (size_t)bytes, to);
    close(from);
}

/* dot does not say whether it could write all that it drew: so we write it. */
static bool run_dot(FILE *in, const char *format, FILE *to, char message[WEFT_DRAW_MESSAGE])
{
    pid_t child = 0;
    int out = -1, code = 0;
    const int error = start(in, format, &child, &out);
    if (error) {
        snprintf(message, WEFT_DRAW_MESSAGE, "the program 'dot' of Graphviz is needed: %s", strerror(error));
        return false;
    }
    copy_all(out, to);
    while (waitpid(child, &code, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(code) && WEXITSTATUS(code) == 0)
        return true;
    snprintf(message, WEFT_DRAW_MESSAGE, "'dot' could not draw it");
    return false;
}

/* A file without a name, in the folder for such; NULL with errno. */
static FILE *open_temporary(void)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/weft-draw-XXXXXX", weft_tool_temporary()) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const int file = mkostemp(path, O_CLOEXEC);
    if (file < 0)
        return NULL;
    unlink(path);
    return fdopen(file, "w+");
}

bool weft_tool_draw(const char *text, const char *format, FILE *to, char message[WEFT_DRAW_MESSAGE])
{
    FILE *in = open_temporary();
    bool right = in && fputs(text, in) >= 0 && !fflush(in) && !fseek(in, 0, SEEK_SET);
    if (right)
        right = run_dot(in, format, to, message);
    else
        snprintf(message, WEFT_DRAW_MESSAGE, "temporary file in %s: %s", weft_tool_temporary(), strerror(errno));
    if (in)
        fclose(in);
    return right;
}
