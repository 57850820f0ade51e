/* SPDX-License-Identifier: Apache-2.0 */
/* compiler_job.c: runs of the compiler, and objects that are loaded.
 *
 * When a run of several sources fails, each is compiled on its own: one bad source costs time but takes no other with
 * it. Not so when it takes too long: the others would wait as long again. */
#include "codegen/compiler_parts.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 24, SYMBOL_BYTES = 40 };

/* --- objects ------------------------------------------------------------------------------------------------------ */

static struct weft_loaded *find_loaded(const struct weft_code *code, const struct weft_object *object)
{
    for (int32_t i = 0; i < code->loads; i++)
        if (code->loaded[i].inode == object->inode && code->loaded[i].device == object->device)
            return &code->loaded[i];
    return NULL;
}

static bool is_loaded(void *user, const struct weft_object *object) { return find_loaded(user, object); }

/* The descriptor as a path. The loader takes two equal paths for one object, and numbers of descriptors come again: so
 * slashes and dots in the middle, which mean nothing, spell a number that does not. */
static void path_of(int file, char path[128])
{
    static _Atomic uint32_t count;
    uint32_t number = atomic_fetch_add(&count, 1);
    int used = snprintf(path, 128, "/proc/self/fd");
    for (int bit = 0; bit < 32; bit++, number >>= 1)
        used += snprintf(path + used, 128 - (size_t)used, number & 1 ? "/." : "//");
    snprintf(path + used, 128 - (size_t)used, "/%d", file);
}

static void *load(struct weft_code *code, const struct weft_object *object)
{
    const struct weft_loaded *const before = find_loaded(code, object);
    char path[128];
    if (before)
        return before->handle;
    path_of(object->file, path);
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        code->loaded[code->loads++] = (struct weft_loaded){object->device, object->inode, handle};
    return handle;
}

static weft_function find_function(void *handle, const struct weft_entry *entry)
{
    char symbol[SYMBOL_BYTES];
    snprintf(symbol, sizeof symbol, "weft_%s", entry->key);
    void *const address = dlsym(handle, symbol);
    weft_function function = NULL;
    memcpy(&function, &address, sizeof function); /* ISO C knows no conversion */
    return function;
}

bool weft_entry_find(struct weft_code *code, struct weft_entry *entry)
{
    struct weft_object object;
    if (!weft_cache_find(&code->compiler->cache, entry->key, &object, is_loaded, code))
        return false;
    void *const handle = load(code, &object);
    entry->function = handle ? find_function(handle, entry) : NULL;
    entry->cached = entry->function;
    close(object.file);
    return entry->cached;
}

/* --- what came of a job ------------------------------------------------------------------------------------------- */

static void fail(struct weft_code *code, struct weft_job *job)
{
    for (int32_t i = 0; i < job->count; i++) {
        struct weft_entry *const entry = code->order[job->first + i];
        entry->reason = job->reason;
        entry->job = job;
    }
}

static void keep(struct weft_code *code, const struct weft_job *job, const char *name,
                 const struct weft_object *object)
{
    int error = weft_object_seal(object);
    for (int32_t i = 0; i < job->count && !error; i++) {
        const bool last = i + 1 == job->count;
        error = weft_cache_keep(&code->compiler->cache, code->temporary.folder, name, code->order[job->first + i]->key,
                                last);
        if (error && !last) { /* no links here: the object keeps the first name at least */
            weft_cache_keep(&code->compiler->cache, code->temporary.folder, name, code->order[job->first]->key, true);
            break;
        }
    }
    code->kept = true;
    if (error && !code->unkept[0])
        snprintf(code->unkept, sizeof code->unkept, "what was compiled is not kept in %.300s: %s",
                 code->compiler->cache.path, strerror(error));
}

static void take_object(struct weft_code *code, struct weft_job *job)
{
    char name[NAME_BYTES];
    struct weft_object object;
    snprintf(name, sizeof name, "%d.so", (int)job->number);
    const int error = weft_object_open(code->temporary.folder, name, &object);
    if (error) {
        snprintf(job->reason, sizeof job->reason, "%.300s left no object: %s", code->compiler->command,
                 strerror(error));
        fail(code, job);
        return;
    }
    void *const handle = load(code, &object);
    const char *const said = handle ? NULL : dlerror(), *const colon = said ? strstr(said, ": ") : NULL;
    const char *const why = colon ? colon + 2 : said ? said : ""; /* without the path, which says nothing */
    bool all = handle;
    for (int32_t i = 0; i < job->count; i++) {
        struct weft_entry *const entry = code->order[job->first + i];
        entry->function = handle ? find_function(handle, entry) : NULL;
        if (!entry->function) {
            entry->reason = job->reason;
            all = false;
        }
    }
    snprintf(job->reason, sizeof job->reason, handle ? "its text does not define its function"
                                                     : "what was compiled cannot be loaded: %.400s", why);
    if (all && code->temporary.in_cache)
        keep(code, job, name, &object);
    close(object.file);
}

/* The first line about an error; else the first. That the linker failed (collect2 says it last) is no news. */
static void describe(const char *output, char line[WEFT_REASON_BYTES / 2])
{
    const char *start = output;
    for (const char *at = output; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const size_t length = strcspn(at, "\n");
        if (memmem(at, length, "error", 5) && strncmp(at, "collect2:", 9) != 0) {
            start = at;
            break;
        }
    }
    snprintf(line, WEFT_REASON_BYTES / 2, "%.*s", (int)strcspn(start, "\n"), start);
}

static void explain(struct weft_code *code, struct weft_job *job, enum weft_process_end end, int status)
{
    const char *const command = code->compiler->command;
    char line[WEFT_REASON_BYTES / 2];
    describe(job->output, line);
    if (end == WEFT_PROCESS_LATE)
        snprintf(job->reason, sizeof job->reason, "%.200s took more than %lld ms and was killed", command,
                 (long long)(code->compiler->timeout_ns / 1000000));
    else if (end == WEFT_PROCESS_LOST)
        snprintf(job->reason, sizeof job->reason, "%.200s ended, but another part of this program took its status (it "
                 "waits for every child, or ignores SIGCHLD)", command);
    else
        snprintf(job->reason, sizeof job->reason, "%.200s %s %d%s%s", command,
                 end == WEFT_PROCESS_KILLED ? "was ended by signal" : "ended with status", status, line[0] ? ": " : "",
                 line);
}

bool weft_job_add(struct weft_code *code, int32_t first, int32_t count)
{
    struct weft_job *const job = weft_allocate(code->compiler->context, sizeof *job);
    if (!job)
        return false;
    *job = (struct weft_job){.process = {.output = -1}, .first = first, .count = count, .number = code->jobs++};
    *code->last = job;
    code->last = &job->next;
    return true;
}

/* A job of its own for each of its sources. */
static void split(struct weft_code *code, struct weft_job *job)
{
    for (int32_t i = 0; i < job->count; i++)
        if (!weft_job_add(code, job->first + i, 1)) {
            code->status = WEFT_ERR_NOMEM;
            code->order[job->first + i]->reason = "out of memory";
        }
}

static void end_job(struct weft_code *code, struct weft_job *job, enum weft_process_end end, int status)
{
    weft_process_output(&job->process, job->output);
    weft_process_close(&job->process);
    job->ended = true;
    code->running--;
    if (end == WEFT_PROCESS_ENDED && status == 0) {
        take_object(code, job);
        return;
    }
    explain(code, job, end, status);
    if (job->count > 1 && (end == WEFT_PROCESS_ENDED || end == WEFT_PROCESS_KILLED))
        split(code, job);
    else
        fail(code, job);
}

/* --- starting jobs ------------------------------------------------------------------------------------------------ */

static bool write_all(int file, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t some = write(file, text, bytes);
        if (some <= 0)
            return false;
        text += some;
        bytes -= (size_t)some;
    }
    return true;
}

/* The text of a job as a file in memory; -1 and errno. */
static int write_text(const struct weft_code *code, const struct weft_job *job)
{
    const int file = weft_memory_file();
    bool ok = file >= 0 && write_all(file, code->text, code->prelude_bytes);
    for (int32_t i = 0; i < job->count && ok; i++) {
        const struct weft_entry *const entry = code->order[job->first + i];
        ok = write_all(file, code->text + entry->text, entry->bytes);
    }
    if (ok && lseek(file, 0, SEEK_SET) == 0)
        return file;
    const int error = errno;
    if (file >= 0)
        close(file);
    errno = error;
    return -1;
}

static void start_job(struct weft_code *code, struct weft_job *job)
{
    const char **const argument = code->argument;
    char name[NAME_BYTES];
    int count = 0;
    argument[count++] = code->compiler->command;
    for (int i = 0; weft_compiler_flags[i]; i++)
        argument[count++] = weft_compiler_flags[i];
    count += weft_level_flags(code->order[job->first]->cpu, argument + count);
    const char *word = code->flags;
    for (int32_t i = 0; i < code->words; i++, word += strlen(word) + 1)
        argument[count++] = word;
    snprintf(name, sizeof name, "%d.so", (int)job->number);
    const char *const rest[] = {"-x", "c", "-", "-o", name, "-lm", NULL};
    memcpy(argument + count, rest, sizeof rest);
    const int input = write_text(code, job);
    const int error = input < 0 ? errno
                                : weft_process_start(&job->process, code->compiler->command, argument,
                                                     code->temporary.folder, input, code->compiler->timeout_ns);
    if (input >= 0)
        close(input);
    job->started = true;
    if (error) {
        job->ended = true;
        snprintf(job->reason, sizeof job->reason, "%.300s cannot be started: %s", code->compiler->command,
                 strerror(error));
        fail(code, job);
    } else {
        code->running++;
    }
}

void weft_jobs_start(struct weft_code *code)
{
    for (struct weft_job *job = code->job; job && code->running < code->compiler->processes; job = job->next)
        if (!job->started)
            start_job(code, job);
}

void weft_jobs_poll(struct weft_code *code)
{
    for (struct weft_job *job = code->job; job; job = job->next) {
        int status;
        if (!job->started || job->ended)
            continue;
        const enum weft_process_end end = weft_process_poll(&job->process, &status);
        if (end != WEFT_PROCESS_RUNS)
            end_job(code, job, end, status);
    }
}
