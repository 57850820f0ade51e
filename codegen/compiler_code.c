/* SPDX-License-Identifier: Apache-2.0 */
/* compiler_code.c: from sources to functions.
 *
 * Sources are sorted by CPU level and key; equal ones are one. What the cache lacks is cut into jobs: runs of the
 * compiler on one text, which is the prelude and then the sources, each between a #define that gives its function the
 * name weft_<key> and an #undef. So all sources may call their function the same, an object is asked for a function by
 * what it was made of, and a file under a wrong name has nothing to offer.
 *
 * A run takes some 30 ms whatever it compiles, and a kernel a third of that: hence several sources a run, and as many
 * runs as may be at work at once (docs/decisions.md has figures). */
#include "codegen/compiler_parts.h"
#include "ir/text.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_FIXED = 40, NAP_NS = 500000 };

/* --- the way of sources ------------------------------------------------------------------------------------------- */

static int by_level_and_key(const void *a, const void *b)
{
    const struct weft_entry *x = *(struct weft_entry *const *)a, *y = *(struct weft_entry *const *)b;
    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    const int keys = memcmp(x->key, y->key, WEFT_KEY_BYTES);
    return keys ? keys : (x->number > y->number) - (x->number < y->number);
}

static void set_keys(struct weft_code *code, const struct weft_sources *sources)
{
    char prelude[WEFT_KEY_BYTES];
    const char *const text = sources->prelude ? sources->prelude : "";
    weft_blob_hash(text, strlen(text), prelude);
    for (int32_t i = 0; i < code->count; i++) {
        struct weft_entry *const entry = &code->entry[i];
        *entry = (struct weft_entry){.cpu = sources->source[i].cpu, .number = i};
        weft_source_key(code->compiler, prelude, sources->flags ? sources->flags : "", &sources->source[i], entry->key);
        entry->same = entry;
        code->order[i] = entry;
    }
    qsort(code->order, (size_t)code->count, sizeof(struct weft_entry *), by_level_and_key);
}

/* What is missing comes first in `order`, still sorted. */
static void search(struct weft_code *code)
{
    const struct weft_entry *last = NULL;
    for (int32_t i = 0; i < code->count; i++) {
        struct weft_entry *const entry = code->order[i];
        if (last && memcmp(last->key, entry->key, WEFT_KEY_BYTES) == 0) {
            entry->same = last;
            continue;
        }
        last = entry;
        if (!code->compiler->command[0])
            entry->reason = code->compiler->lacks;
        else if (!weft_entry_find(code, entry))
            code->order[code->missing++] = entry;
    }
}

/* What comes before and behind a source's text. */
#define BEFORE "#define %s weft_%s\n#line 1 \"%s\"\n"
#define BEHIND "\n#undef %s\n"

static void *take(const struct weft_code *code, size_t count, size_t size)
{
    void *const memory = weft_allocate(code->compiler->context, count * size);
    if (memory)
        memset(memory, 0, count * size);
    return memory;
}

static bool copy_texts(struct weft_code *code, const struct weft_sources *sources)
{
    const char *const prelude = sources->prelude ? sources->prelude : "";
    code->prelude_bytes = strlen(prelude) + 1;
    code->text_bytes = code->prelude_bytes + 1;
    for (int32_t i = 0; i < code->missing; i++) {
        const struct weft_source *const source = &sources->source[code->order[i]->number];
        code->text_bytes += strlen(source->text) + 3 * strlen(source->function) + WEFT_KEY_BYTES + sizeof BEFORE BEHIND;
    }
    code->text = take(code, code->text_bytes, 1);
    if (!code->text)
        return false;
    size_t used = (size_t)snprintf(code->text, code->text_bytes, "%s\n", prelude);
    for (int32_t i = 0; i < code->missing; i++) {
        struct weft_entry *const entry = code->order[i];
        const struct weft_source *const source = &sources->source[entry->number];
        entry->text = used;
        used += (size_t)snprintf(code->text + used, code->text_bytes - used, BEFORE "%s" BEHIND, source->function,
                                 entry->key, source->function, source->text, source->function);
        entry->bytes = used - entry->text;
    }
    return true;
}

static bool copy_flags(struct weft_code *code, const struct weft_sources *sources)
{
    const char *flags = sources->flags ? sources->flags : "";
    code->flags_bytes = strlen(flags) + 2;
    code->flags = take(code, code->flags_bytes, 1);
    code->argument_bytes = (MOST_FIXED + code->flags_bytes) * sizeof *code->argument;
    code->argument = take(code, code->argument_bytes, 1);
    if (!code->flags || !code->argument)
        return false;
    for (char *to = code->flags; *(flags += strspn(flags, " ")); code->words++) {
        const size_t length = strcspn(flags, " ");
        memcpy(to, flags, length);
        to += length + 1;
        flags += length;
    }
    return true;
}

/* A level after the other: as many jobs of a level as processes, or more where objects are to be smaller. */
static bool make_jobs(struct weft_code *code)
{
    const int32_t processes = code->compiler->processes, most = code->compiler->per_object;
    for (int32_t first = 0; first < code->missing;) {
        int32_t end = first + 1;
        while (end < code->missing && code->order[end]->cpu == code->order[first]->cpu)
            end++;
        const int32_t count = end - first, even = count < processes ? count : processes;
        const int32_t jobs = most > 0 && (count + most - 1) / most > even ? (count + most - 1) / most : even;
        for (int32_t j = 0; j < jobs; j++) {
            const int32_t from = (int32_t)((int64_t)count * j / jobs), to = (int32_t)((int64_t)count * (j + 1) / jobs);
            if (!weft_job_add(code, first + from, to - from))
                return false;
        }
        first = end;
    }
    return true;
}

static bool prepare(struct weft_code *code, const struct weft_sources *sources)
{
    code->entry = take(code, (size_t)code->count, sizeof *code->entry);
    code->order = take(code, (size_t)code->count, sizeof *code->order);
    code->loaded = take(code, (size_t)code->count * 2, sizeof *code->loaded);
    if (!code->entry || !code->order || !code->loaded)
        return false;
    set_keys(code, sources);
    search(code);
    if (code->missing == 0)
        return true;
    if (!copy_texts(code, sources) || !copy_flags(code, sources))
        return false;
    if (!weft_temporary_open(&code->temporary, &code->compiler->cache, code->failure)) {
        for (int32_t i = 0; i < code->missing; i++)
            code->order[i]->reason = code->failure;
        return true;
    }
    if (!code->temporary.in_cache)
        memcpy(code->unkept, code->failure[0] ? code->failure : code->compiler->cache.refused, sizeof code->unkept);
    return make_jobs(code);
}

/* What only compiling needs. */
static void finish(struct weft_code *code)
{
    struct weft_context *const context = code->compiler->context;
    for (struct weft_job *job = code->job; job; job = job->next)
        weft_process_close(&job->process);
    weft_temporary_close(&code->temporary);
    if (code->kept)
        weft_cache_bound(&code->compiler->cache);
    weft_release(context, code->text, code->text_bytes);
    weft_release(context, code->flags, code->flags_bytes);
    weft_release(context, code->argument, code->argument_bytes);
    code->text = code->flags = NULL;
    code->argument = NULL;
    code->done = true;
}

int weft_compiler_begin(struct weft_compiler *compiler, const struct weft_sources *sources, struct weft_code **ret_code)
{
    struct weft_code *const code = weft_allocate(compiler->context, sizeof *code);
    if (!code)
        return WEFT_ERR_NOMEM;
    memset(code, 0, sizeof *code);
    atomic_fetch_add(&compiler->holds, 1);
    atomic_init(&code->holds, 1);
    code->compiler = compiler;
    code->count = sources->count;
    code->last = &code->job;
    code->temporary = (struct weft_temporary){.parent = -1, .folder = -1};
    if (!prepare(code, sources)) {
        weft_code_drop(code);
        return WEFT_ERR_NOMEM;
    }
    weft_jobs_start(code);
    weft_code_poll(code);
    *ret_code = code;
    return WEFT_OK;
}

bool weft_code_poll(struct weft_code *code)
{
    if (!code->done) {
        weft_jobs_poll(code);
        weft_jobs_start(code);
    }
    if (!code->done && code->running == 0)
        finish(code);
    return code->done;
}

int weft_code_wait(struct weft_code *code)
{
    while (!weft_code_poll(code))
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return code->status;
}

/* --- what it holds ------------------------------------------------------------------------------------------------ */

static const struct weft_entry *entry_of(const struct weft_code *code, int32_t i)
{
    weft_assert(i >= 0 && i < code->count);
    return code->entry[i].same;
}

weft_function weft_code_function(const struct weft_code *code, int32_t i) { return entry_of(code, i)->function; }
const char *weft_code_reason(const struct weft_code *code, int32_t i) { return entry_of(code, i)->reason; }
bool weft_code_was_cached(const struct weft_code *code, int32_t i) { return entry_of(code, i)->cached; }
const char *weft_code_unkept(const struct weft_code *code) { return code->unkept[0] ? code->unkept : NULL; }

const char *weft_code_output(const struct weft_code *code, int32_t i)
{
    const struct weft_job *const job = entry_of(code, i)->job;
    return job ? job->output : "";
}

struct weft_code *weft_code_hold(struct weft_code *code)
{
    atomic_fetch_add(&code->holds, 1);
    return code;
}

void weft_code_drop(struct weft_code *code)
{
    if (!code || atomic_fetch_sub(&code->holds, 1) > 1)
        return;
    struct weft_compiler *const compiler = code->compiler;
    struct weft_context *const context = compiler->context;
    if (!code->done)
        finish(code);
    for (int32_t i = 0; i < code->loads; i++)
        dlclose(code->loaded[i].handle);
    for (struct weft_job *job = code->job; job;) {
        struct weft_job *const next = job->next;
        weft_release(context, job, sizeof *job);
        job = next;
    }
    weft_release(context, code->entry, (size_t)code->count * sizeof *code->entry);
    weft_release(context, code->order, (size_t)code->count * sizeof *code->order);
    weft_release(context, code->loaded, (size_t)code->count * 2 * sizeof *code->loaded);
    weft_release(context, code, sizeof *code);
    weft_compiler_drop(compiler);
}
