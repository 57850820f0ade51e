/* SPDX-License-Identifier: Apache-2.0 */
/* context.c: opening and closing; what the machine offers becomes the context's target. */
#include "ir/custom.h"
#include "ir/public.h"
#include "ir/suggest.h"
#include "passes/alternatives.h"
#include "passes/passes.h"
#include "plan/pack_folder.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define MOST_CACHE ((unsigned long long)1 << 40)

/* Large pieces (arenas, packed weights) begin at a huge page and ask for such: faults on small pages would take longer
 * than what is done with the memory at first, and a walk over it misses fewer translations. */
static void *allocate_default(void *user, size_t bytes, size_t align)
{
    void *memory;
    const bool large = bytes >= 2 * HUGE_PAGE && align <= HUGE_PAGE;
    if (large)
        align = HUGE_PAGE;
    if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0)
        return NULL;
    if (large)
        (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a wish */
    return memory;
}

static void release_default(void *user, void *memory, size_t bytes) { free(memory); }

/* --- what the caller asks for ------------------------------------------------------------------------------------- */

struct request {
    struct weft_context_options options;
    struct weft_allocator allocator;
    struct weft_executor executor;
    uint32_t mask;
};

/* Says what is wrong before there is a context. Returns the status. */
static int refuse(const struct request *r, int status, const char *where, const char *format, ...) WEFT_PRINTF(4, 5);
static int refuse(const struct request *r, int status, const char *where, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (r->options.diagnose)
        r->options.diagnose(r->options.diagnose_user,
                            &(struct weft_diagnostic){.severity = WEFT_ERROR, .status = status, .where = where,
                                                      .message = message});
    return status;
}

/* The mask from the options, else from WEFT_CPU; neither: everything. */
static int read_mask(struct request *r)
{
    const char *const word = r->options.cpu ? r->options.cpu : getenv("WEFT_CPU");
    struct weft_suggest suggest;
    r->mask = WEFT_CPU_ALL;
    if (!word || !*word || weft_cpu_parse(word, &r->mask))
        return WEFT_OK;
    return refuse(r, WEFT_ERR_ARGUMENT, r->options.cpu ? "weft_context_options.cpu" : "WEFT_CPU",
                  "there is no CPU level '%.64s'%s; there are " WEFT_CPU_WORDS "%s", word,
                  weft_suggest_among(&suggest, WEFT_CPU_WORDS, word, strlen(word)),
                  WEFT_CPU_BUILT ? ", and sums of them: avx2+amx" : "");
}

static int read_allocator(struct request *r)
{
    const struct weft_allocator *const given = r->options.allocator;
    static const char where[] = "weft_context_options.allocator";
    r->allocator = (struct weft_allocator){.allocate = allocate_default, .release = release_default};
    if (!given)
        return WEFT_OK;
    if (!weft_take_options(&r->allocator, sizeof r->allocator, given))
        return refuse(r, WEFT_ERR_ARGUMENT, where, "its size is not set");
    return r->allocator.allocate && r->allocator.release
               ? WEFT_OK
               : refuse(r, WEFT_ERR_ARGUMENT, where, "%s is NULL", r->allocator.allocate ? "release" : "allocate");
}

static int read_executor(struct request *r)
{
    const struct weft_executor *const given = r->options.executor;
    static const char where[] = "weft_context_options.executor";
    weft_executor_default(&r->executor);
    if (!given)
        return WEFT_OK;
    if (!weft_take_options(&r->executor, sizeof r->executor, given))
        return refuse(r, WEFT_ERR_ARGUMENT, where, "its size is not set");
    return r->executor.workers && r->executor.run
               ? WEFT_OK
               : refuse(r, WEFT_ERR_ARGUMENT, where, "%s is NULL", r->executor.workers ? "run" : "workers");
}

static int read_request(const struct weft_context_options *given, struct request *r)
{
    *r = (struct request){.mask = 0};
    if (given && !weft_take_options(&r->options, sizeof r->options, given))
        return WEFT_ERR_ARGUMENT; /* nor is there a callback to tell */
    if (r->options.threads < 0)
        return refuse(r, WEFT_ERR_ARGUMENT, "weft_context_options.threads",
                      "threads is %d: it is at least 1, or 0 for as many as there are", (int)r->options.threads);
    int status = read_mask(r);
    status = status == WEFT_OK ? read_allocator(r) : status;
    return status == WEFT_OK ? read_executor(r) : status;
}

/* --- what the machine offers -------------------------------------------------------------------------------------- */

/* "32K,1M,32M": three sizes, the last of which may be 0. */
static bool read_caches(const char *text, struct weft_target *target)
{
    size_t *const size[] = {&target->l1, &target->l2, &target->l3};
    for (int i = 0; i < 3; i++) {
        char *end;
        const unsigned long long number = strtoull(text, &end, 10);
        const int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
        if (text[0] < '0' || text[0] > '9' || number > MOST_CACHE >> shift || (number == 0 && i < 2))
            return false;
        *size[i] = (size_t)number << shift;
        end += shift > 0;
        if (*end != (i < 2 ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static int take_caches(void *arg)
{
    struct weft_context *context = arg;
    const char *const text = getenv("WEFT_CACHES");
    return !text || !*text || read_caches(text, &context->target)
               ? WEFT_OK
               : weft_wrong(context, "WEFT_CACHES", "the data caches per core, per core and shared are what it takes: "
                            "32K,1M,32M for instance, and 0 at the end where none is shared");
}

static void describe(struct weft_target *target)
{
    char features[48];
    weft_cpu_describe(target->cpu, features, sizeof features);
    snprintf(target->name, sizeof target->name, "%s %d threads", features, target->threads);
}

static void free_context(struct weft_context *context)
{
    weft_shared_packs_close(context);
    weft_pack_folder_close(context);
    weft_customs_free(context);
    weft_outside_passes_free(context);
    weft_alternatives_free(context);
    weft_prices_close(context);
    weft_text_close(&context->errors);
    const struct weft_allocator allocator = context->allocator;
    weft_barrier_free(&allocator, context->barrier);
    allocator.release(allocator.user, context, sizeof *context);
}

static void set_target(struct weft_context *context, const struct request *r, const struct weft_cpu *cpu)
{
    int workers = context->executor.workers(context->executor.user);
    if (r->options.threads && r->options.threads < workers)
        workers = r->options.threads;
    context->target = (struct weft_target){.cpu = cpu->flags & r->mask, .threads = workers < 1 ? 1 : workers,
                                           .arithmetic = WEFT_CONV_F2,
                                           .l1 = cpu->l1, .l2 = cpu->l2, .l3 = cpu->l3};
    describe(&context->target);
}

static int open_packs(struct weft_context *context, const char *given, uint64_t bytes)
{
    const char *const path = given ? given : secure_getenv("WEFT_PACKS");
    const char *const from = given ? "weft_context_options.packs" : "WEFT_PACKS";
    return path && *path ? weft_pack_folder_open(context, path, bytes, from) : WEFT_OK;
}

int weft_open(const struct weft_context_options *given, struct weft_context **ret_context)
{
    struct request r;
    if (!ret_context)
        return WEFT_ERR_ARGUMENT;
    int status = read_request(given, &r);
    if (status < 0)
        return status;
    struct weft_context *context =
        weft_executor_watch_forks() ? r.allocator.allocate(r.allocator.user, sizeof *context, 64) : NULL;
    if (!context)
        return refuse(&r, WEFT_ERR_NOMEM, NULL, "out of memory");
    *context = (struct weft_context){.allocator = r.allocator,
                                     .executor = r.executor,
                                     .diagnose = r.options.diagnose,
                                     .diagnose_user = r.options.diagnose_user,
                                     .holds = 1,
                                     .free = free_context};
    context->errors.context = context;
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    set_target(context, &r, &cpu);
    context->barrier = weft_barrier_new(&context->allocator, context->target.threads);
    status = context->barrier ? weft_protected(context, take_caches, context)
                              : refuse(&r, WEFT_ERR_NOMEM, NULL, "out of memory");
    if (status == WEFT_OK)
        status = weft_prices_open(context, r.options.prices, &cpu);
    if (status == WEFT_OK)
        status = open_packs(context, r.options.packs, r.options.packs_bytes);
    if (status < 0) {
        weft_close(context);
        return status;
    }
    *ret_context = context;
    return WEFT_OK;
}

void weft_close(struct weft_context *context)
{
    if (context && !atomic_exchange(&context->closed, true))
        weft_context_drop(context);
}

const struct weft_target *weft_context_target(const struct weft_context *context)
{
    return context ? &context->target : NULL;
}
