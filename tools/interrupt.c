/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c: Ctrl-C and its like. A run is cancelled, so that the command ends as after any other error; outside of
 * runs, and at the second signal, the command dies at once. Either way no half of a file is left behind, and whoever
 * waits for the command sees that a signal ended it. */
#include "ir/file.h"
#include "tools/tools.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static struct weft_execution *_Atomic running;
static volatile sig_atomic_t caught, held;

static void die_of(int number)
{
    weft_file_discard_all();
    signal(number, SIG_DFL);
    raise(number); /* seen when the handler returns, if it is one */
}

static void on_signal(int number)
{
    struct weft_execution *const execution = running;
    if ((!execution && !held) || caught) {
        die_of(number);
        return;
    }
    caught = number;
    if (execution)
        (void)weft_cancel(execution);
}

void weft_tool_hold_signals(bool hold)
{
    held = hold;
}

bool weft_tool_is_interrupted(void)
{
    return caught != 0;
}

void weft_tool_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup stays nohup */
            (void)sigaction(numbers[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error of the write */
}

int weft_tool_run(struct weft_execution *execution)
{
    running = execution;
    const int status = weft_run(execution);
    running = NULL;
    return status;
}

int weft_tool_run_timed(struct weft_execution *execution,
                        void (*fn)(void *user, const char *kernel, const char *value, int64_t ns), void *user)
{
    running = execution;
    const int status = weft_run_timed(execution, fn, user);
    running = NULL;
    return status;
}

void weft_tool_run_failed(struct weft_execution *execution)
{
    fprintf(stderr, "weft: %s\n", caught ? "interrupted" : weft_execution_error(execution));
}

int weft_tool_end(int code)
{
    if (caught)
        die_of(caught);
    return code;
}
