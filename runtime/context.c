/* SPDX-License-Identifier: Apache-2.0 */
/* context.c: opening and closing; what the machine offers becomes the context's target. */
#include "ir/custom.h"
#include "ir/public.h"
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

/* The mask from the options, else from WEFT_CPU; NULL: everything. */
static bool mask_of(const struct weft_context_options *options, const char **ret_word, uint32_t *ret_mask)
{
    const char *word = options->cpu ? options->cpu : getenv("WEFT_CPU");
    *ret_word = word;
    *ret_mask = WEFT_CPU_ALL;
    return !word || !*word || weft_cpu_parse(word, ret_mask);
}

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
    weft_customs_free(context);
    weft_prices_close(context);
    weft_text_close(&context->errors);
    const struct weft_allocator allocator = context->allocator;
    allocator.release(allocator.user, context, sizeof *context);
}

int weft_open(const struct weft_context_options *given, struct weft_context **ret_context)
{
    if (!ret_context)
        return WEFT_ERR_ARGUMENT;
    struct weft_context_options options = {0};
    if (given && !weft_take_options(&options, sizeof options, given))
        return WEFT_ERR_ARGUMENT;
    const char *word;
    uint32_t mask;
    if (!mask_of(&options, &word, &mask) || options.threads < 0)
        return WEFT_ERR_ARGUMENT;
    struct weft_allocator allocator = {.allocate = allocate_default, .release = release_default};
    struct weft_executor executor = {0};
    if (options.allocator && (!weft_take_options(&allocator, sizeof allocator, options.allocator) ||
                              !allocator.allocate || !allocator.release))
        return WEFT_ERR_ARGUMENT;
    if (options.executor && (!weft_take_options(&executor, sizeof executor, options.executor) || !executor.workers ||
                             !executor.run))
        return WEFT_ERR_ARGUMENT;
    if (!weft_executor_watch_forks())
        return WEFT_ERR_NOMEM;
    struct weft_context *context = allocator.allocate(allocator.user, sizeof *context, 64);
    if (!context)
        return WEFT_ERR_NOMEM;
    *context = (struct weft_context){.allocator = allocator, .diagnose = options.diagnose,
                                     .diagnose_user = options.diagnose_user,
                                     .holds = 1,
                                     .free = free_context};
    context->errors.context = context;
    if (options.executor)
        context->executor = executor;
    else
        weft_executor_default(&context->executor);

    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    int workers = context->executor.workers(context->executor.user);
    if (options.threads && options.threads < workers)
        workers = options.threads;
    context->target = (struct weft_target){.cpu = cpu.flags & mask, .threads = workers < 1 ? 1 : workers,
                                           .l1 = cpu.l1, .l2 = cpu.l2, .l3 = cpu.l3};
    describe(&context->target);
    int status = weft_protected(context, take_caches, context);
    if (status == WEFT_OK)
        status = weft_prices_open(context, options.prices, &cpu);
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
