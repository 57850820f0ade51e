/* SPDX-License-Identifier: Apache-2.0 */
/* compiler_process.c: compilers as processes.
 *
 * posix_spawn and not fork: weft lives in processes with gigabytes and threads. The child has a process group of its
 * own, so that what the driver starts dies with it; no signals blocked and none ignored, whatever the program does; no
 * descriptors but three; and its folder by descriptor, so that nobody can put another one under its name.
 *
 * What it prints goes into memory that cannot grow, not into a pipe: nobody has to read while it runs. Its end is asked
 * for, not awaited: SIGCHLD belongs to the program, and a thread that waits would have to be woken to kill. */
#include "codegen/compiler_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRINTED_BYTES = 1 << 16, MOST_VARIABLES = 4096 };

int weft_memory_file(void)
{
    const int low = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (low < 0 || low > STDERR_FILENO)
        return low;
    const int file = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    close(low);
    errno = error;
    return file;
}

static int output_open(void)
{
    const int file = weft_memory_file();
    if (file >= 0 && (ftruncate(file, PRINTED_BYTES) != 0 ||
                      fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)) {
        const int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}

static int set_files(posix_spawn_file_actions_t *actions, int folder, int input, int output)
{
    int error = posix_spawn_file_actions_addfchdir_np(actions, folder); /* first: it may be 0, 1 or 2 */
    error = error ? error : posix_spawn_file_actions_adddup2(actions, input, 0);
    error = error ? error : posix_spawn_file_actions_adddup2(actions, output, 1);
    error = error ? error : posix_spawn_file_actions_adddup2(actions, output, 2);
#if defined __GLIBC__
#if __GLIBC_PREREQ(2, 34)
    error = error ? error : posix_spawn_file_actions_addclosefrom_np(actions, 3);
#endif
#endif
    return error;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                         POSIX_SPAWN_SETSIGDEF);
    error = error ? error : posix_spawnattr_setpgroup(attributes, 0);
    error = error ? error : posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setsigdefault(attributes, &all);
}

static bool is_ours(const char *variable)
{
    return strncmp(variable, "TMPDIR=", 7) == 0 || strncmp(variable, "LC_ALL=", 7) == 0;
}

/* The program's environment, but messages in English and temporary files in the folder at hand. */
static int spawn(pid_t *ret_pid, const char *path, const char *const *argument,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes)
{
    const char *environment[MOST_VARIABLES + 3];
    int count = 0;
    for (char **variable = environ; variable && *variable && count < MOST_VARIABLES; variable++)
        if (!is_ours(*variable))
            environment[count++] = *variable;
    environment[count++] = "TMPDIR=.";
    environment[count++] = "LC_ALL=C";
    environment[count] = NULL;
    return posix_spawn(ret_pid, path, actions, attributes, (char *const *)argument, (char *const *)environment);
}

int weft_process_start(struct weft_process *process, const char *path, const char *const *argument, int folder,
                       int input, int64_t timeout_ns)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    *process = (struct weft_process){.owner = getpid(), .output = output_open()};
    if (process->output < 0)
        return errno;
    int error = posix_spawn_file_actions_init(&actions);
    if (!error) {
        error = posix_spawnattr_init(&attributes);
        if (!error) {
            error = set_files(&actions, folder, input, process->output);
            error = error ? error : set_attributes(&attributes);
            error = error ? error : spawn(&process->pid, path, argument, &actions, &attributes);
            posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    process->deadline = weft_now_ns() + timeout_ns;
    if (error) {
        process->pid = 0;
        weft_process_close(process);
    }
    return error;
}

/* The whole group. Who left it, and the driver before anything else, has an id of its own. */
static void kill_now(pid_t pid)
{
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
}

static pid_t await(pid_t pid, int *status, int options)
{
    pid_t ended;
    do
        ended = waitpid(pid, status, options);
    while (ended < 0 && errno == EINTR);
    return ended;
}

enum weft_process_end weft_process_poll(struct weft_process *process, int *ret_status)
{
    int status = 0;
    *ret_status = 0;
    pid_t ended = await(process->pid, &status, WNOHANG);
    if (ended == 0 && weft_now_ns() < process->deadline)
        return WEFT_PROCESS_RUNS;
    const pid_t pid = process->pid;
    process->pid = 0;
    if (ended == 0) {
        kill_now(pid);
        await(pid, &status, 0);
        return WEFT_PROCESS_LATE;
    }
    if (ended < 0)
        return WEFT_PROCESS_LOST;
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    return WIFEXITED(status) ? WEFT_PROCESS_ENDED : WEFT_PROCESS_KILLED;
}

void weft_process_output(struct weft_process *process, char text[WEFT_OUTPUT_BYTES])
{
    const off_t printed = lseek(process->output, 0, SEEK_CUR); /* the child's writes moved it: the file is one */
    const size_t most = printed < WEFT_OUTPUT_BYTES - 1 ? (size_t)(printed < 0 ? 0 : printed) : WEFT_OUTPUT_BYTES - 1;
    const ssize_t bytes = pread(process->output, text, most, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
}

void weft_process_close(struct weft_process *process)
{
    if (process->pid && process->owner == getpid()) {
        int status;
        kill_now(process->pid);
        await(process->pid, &status, 0);
    }
    if (process->output >= 0)
        close(process->output);
    *process = (struct weft_process){.output = -1};
}
