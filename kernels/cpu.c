/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c: levels by name, and how many threads this process should use. What the processor is and can do is found out by
 * cpu_x86.c or cpu_other.c.
 *
 * Workers: the CPU set of the process, lowered to the whole CPUs that a container's quota pays for. A quota of 1.5
 * gives one worker and not two: a gang that is throttled in the middle of a barrier loses far more than half a CPU.
 *
 * This file is compiled for the oldest processor of its family and calls nothing that is not. */
#include "kernels/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AVX512_LEVEL (WEFT_CPU_AVX2 | WEFT_CPU_AVX512)

enum { MOST_L3_OF_CPU = 32 << 20 };

/* A virtual machine of a few cores is told the whole cache of the host, which others fill: two cores that were told
 * 480 MB wrote 100 MB in half the time past the caches. So a CPU that is online counts with at most this much, as
 * most processors have for a core; where there is more, results are written past the caches a little early. */
static void lower_shared_cache(struct weft_cpu *cpu)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t most = (size_t)(cpus > 0 ? cpus : 1) * MOST_L3_OF_CPU;
    cpu->l3 = cpu->l3 < most ? cpu->l3 : most;
}

/* CPUs in the set of this process. The kernel refuses a set smaller than its own, so grow until it fits. */
static int cpus_allowed(void)
{
    for (int most = 1024; most <= 1 << 16; most *= 2) {
        cpu_set_t *const set = CPU_ALLOC(most);
        if (!set)
            break;
        const size_t bytes = CPU_ALLOC_SIZE(most);
        const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    return 1;
}

/* Whole CPUs that `quota` and `period` in one control group pay for, or `most` without a limit. */
static int lower_to_quota(const char *folder, int most)
{
    char path[4200], text[64] = "";
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *const file = fopen(path, "re");
    if (!file)
        return most;
    const bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    long long quota, period;
    if (!read || sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return most; /* "max": no limit */
    const long long cpus = quota < period ? 1 : quota / period;
    return cpus < most ? (int)cpus : most;
}

/* The group of this process and all groups above it may each have a quota; the smallest holds. */
static int cpus_paid(int most)
{
    char line[4096], folder[4128] = "/sys/fs/cgroup";
    const size_t root = strlen(folder);
    FILE *const file = fopen("/proc/self/cgroup", "re");
    if (file) {
        while (fgets(line, sizeof line, file))
            if (!strncmp(line, "0::", 3)) {
                line[strcspn(line, "\n")] = 0;
                snprintf(folder + root, sizeof folder - root, "%s", line + 3);
            }
        fclose(file);
    }
    for (;;) {
        most = lower_to_quota(folder, most);
        char *const last = strrchr(folder + root, '/');
        if (!last)
            return most;
        *last = 0;
    }
}

void weft_cpu_detect(struct weft_cpu *ret)
{
    *ret = (struct weft_cpu){.l1 = 32u << 10, .l2 = 512u << 10, .l3 = 8u << 20};
    weft_cpu_identify(ret);
    lower_shared_cache(ret);
    ret->workers = cpus_paid(cpus_allowed());
}

static const struct level {
    const char *name, *suffix; /* suffix: how weft_cpu_describe adds it to "avx512" */
    uint32_t flag, implied;
} levels[] = {
    {"baseline", NULL, 0, 0},
    {"avx2", NULL, WEFT_CPU_AVX2, WEFT_CPU_AVX2},
    {"avx512", NULL, WEFT_CPU_AVX512, AVX512_LEVEL},
    {"avx512bf16", "+bf16", WEFT_CPU_AVX512BF16, AVX512_LEVEL | WEFT_CPU_AVX512BF16},
    {"avx512vnni", "+vnni", WEFT_CPU_AVX512VNNI, AVX512_LEVEL | WEFT_CPU_AVX512VNNI},
    {"avx512fp16", "+fp16", WEFT_CPU_AVX512FP16, AVX512_LEVEL | WEFT_CPU_AVX512FP16},
    {"amx", "+amx", WEFT_CPU_AMX, AVX512_LEVEL | WEFT_CPU_AVX512BF16 | WEFT_CPU_AVX512VNNI | WEFT_CPU_AMX},
    {"all", NULL, 0, WEFT_CPU_BUILT},
};

bool weft_cpu_parse(const char *name, uint32_t *ret_flags)
{
    uint32_t flags = 0;
    for (const char *word = name;; word++) {
        const size_t length = strcspn(word, "+");
        size_t i = 0;
        while (i < sizeof levels / sizeof levels[0] &&
               (strlen(levels[i].name) != length || memcmp(levels[i].name, word, length) != 0))
            i++;
        if (i == sizeof levels / sizeof levels[0]) {
            *ret_flags = 0;
            return false;
        }
        flags |= levels[i].implied;
        word += length;
        if (!*word)
            break;
    }
    *ret_flags = flags;
    return true;
}

bool weft_cpu_lower(uint32_t flags, uint32_t *ret_flags)
{
    *ret_flags = flags & WEFT_CPU_AVX512 ? flags & WEFT_CPU_AVX2 : 0;
    return *ret_flags != flags;
}

void weft_cpu_describe(uint32_t flags, char *text, size_t bytes)
{
    if (!bytes)
        return;
    const char *const base = flags & WEFT_CPU_AVX512 ? "avx512" : flags & WEFT_CPU_AVX2 ? "avx2" : "baseline";
    size_t used = (size_t)snprintf(text, bytes, "%s", base);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0] && used < bytes; i++)
        if (levels[i].suffix && flags & levels[i].flag)
            used += (size_t)snprintf(text + used, bytes - used, "%s", levels[i].suffix);
}
