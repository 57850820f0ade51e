/* SPDX-License-Identifier: Apache-2.0 */
/* price_file.c: the prices of the machine that a context is opened on (sched/prices.h).
 *
 *   weft_context_options.prices, else WEFT_PRICES   this file, or weft_open fails; "": the shipped ones of Zen 4, so
 *                                                   that plans are the same on all machines
 *   $XDG_CACHE_HOME/weft/<machine>.prices           where `weft calibrate` writes; ~/.cache without the variable
 *   neither                                         the shipped ones for this CPU
 *
 * Nobody asked for the file in the cache, so damage in it is a warning and not an error: a program must not cease to
 * start because of what another one left there. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 32 << 10, PATH_BYTES = 4096 };

bool weft_prices_path(const char *machine, char *path, size_t bytes)
{
    const char *const cache = getenv("XDG_CACHE_HOME"), *const home = getenv("HOME");
    int length = -1;
    if (cache && cache[0] == '/')
        length = snprintf(path, bytes, "%s/weft/%s.prices", cache, machine);
    else if (home && home[0] == '/')
        length = snprintf(path, bytes, "%s/.cache/weft/%s.prices", home, machine);
    return length > 0 && (size_t)length < bytes;
}

struct search {
    struct weft_context *context;
    const char *path;
    const char *machine;
    const char *from;    /* who named the path, for messages; NULL: it is where the cache has it */
    int severity;
};

static void say(const struct search *s, int status, const char *what)
{
    const struct weft_place place = {.file = s->path};
    if (s->severity == WEFT_ERROR)
        weft_error(s->context, status, &place, "%s, and %s names it as the file of prices", what, s->from);
    else
        weft_note(s->context, s->severity, &place, "%s", what);
}

static const char *what_it_is(const struct stat *status)
{
    return S_ISDIR(status->st_mode)   ? "this is a folder"
           : !S_ISREG(status->st_mode) ? "this is no file of prices, but a device or pipe"
                                       : "this is no file of prices: it is too long";
}

/* The number of bytes, or -1 after saying what is wrong. */
static ssize_t read_text(const struct search *s, char text[MOST_BYTES])
{
    const int file = open(s->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe without a writer does not hang */
    struct stat status;
    ssize_t bytes = -1;
    if (file < 0 || fstat(file, &status) != 0)
        say(s, WEFT_ERR_IO, strerror(errno));
    else if (!S_ISREG(status.st_mode) || status.st_size >= MOST_BYTES)
        say(s, WEFT_ERR_SYNTAX, what_it_is(&status));
    else if ((bytes = read(file, text, MOST_BYTES)) < 0)
        say(s, WEFT_ERR_IO, strerror(errno));
    if (file >= 0)
        close(file);
    return bytes;
}

/* Makes the context's prices a copy. */
static int keep(struct weft_context *context, const struct weft_prices *prices)
{
    struct weft_prices *const kept = weft_allocate(context, sizeof *kept);
    if (!kept)
        return WEFT_ERR_NOMEM;
    *kept = *prices;
    context->target.prices = kept;
    return WEFT_OK;
}

static int take(void *user)
{
    const struct search *const s = user;
    char text[MOST_BYTES];
    const ssize_t bytes = read_text(s, text);
    struct weft_prices prices;
    if (bytes < 0 || !weft_prices_parse(s->context, s->severity, s->path, text, (size_t)bytes, s->machine, &prices))
        return WEFT_OK; /* an error is the status of the call */
    return keep(s->context, &prices);
}

int weft_prices_open(struct weft_context *context, const char *given, const struct weft_cpu *cpu)
{
    char machine[WEFT_MACHINE_BYTES], path[PATH_BYTES];
    weft_machine_name(cpu, context->target.cpu, machine);
    const char *const from = given ? "weft_context_options.prices" : "WEFT_PRICES";
    given = given ? given : getenv("WEFT_PRICES");
    struct search search = {.context = context, .path = given, .machine = machine, .from = from,
                            .severity = WEFT_ERROR};
    if (!given) {
        struct stat status;
        if (!weft_prices_path(machine, path, sizeof path) || stat(path, &status) != 0)
            return keep(context, weft_prices_shipped_for(cpu, context->target.cpu, context->target.threads));
        search.path = path;
        search.severity = WEFT_WARNING;
    }
    if (!search.path[0])
        return WEFT_OK;
    const int status = weft_protected(context, take, &search);
    if (status == WEFT_OK && !context->target.prices)
        return keep(context, weft_prices_shipped_for(cpu, context->target.cpu, context->target.threads));
    return status;
}

void weft_prices_close(struct weft_context *context)
{
    weft_release(context, (void *)context->target.prices, sizeof *context->target.prices);
}
