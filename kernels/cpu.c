/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c: what this machine can run, and how many threads this process should use.
 *
 * A feature counts only if the processor has it, the operating system saves its registers (XCR0), and, for the tiles of
 * AMX, the kernel has granted them to this process: Linux hands out the 8 KiB of tile state on request, so asking is
 * part of detecting. The compiler's own __builtin_cpu_supports knows neither that request nor cache sizes.
 *
 * Workers: the CPU set of the process, lowered to the whole CPUs that a container's quota pays for. A quota of 1.5
 * gives one worker and not two: a gang that is throttled in the middle of a barrier loses far more than half a CPU.
 *
 * This file is compiled for the oldest x86-64 and calls nothing that is not. */
#include "kernels/kernels.h"

#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XCR0_AVX            0x6u     /* SSE and the upper halves of 256-bit registers */
#define XCR0_AVX512         0xe6u    /* and masks, upper halves of 512-bit registers, registers 16 to 31 */
#define XCR0_TILES          0x60000u /* tile configuration and data */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_TILE_DATA  18

#define AVX512_LEVEL (WEFT_CPU_AVX2 | WEFT_CPU_AVX512)

struct regs {
    unsigned a, b, c, d;
};

static struct regs leaf(unsigned number, unsigned sub)
{
    struct regs r = {0, 0, 0, 0};
    if ((unsigned)__get_cpuid_max(number & 0x80000000u, NULL) >= number)
        __cpuid_count(number, sub, r.a, r.b, r.c, r.d);
    return r;
}

static bool has(unsigned word, unsigned bit) { return word >> bit & 1; }

static unsigned saved_state(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool tiles_granted(void) { return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILE_DATA) == 0; }

static uint32_t detect_flags(void)
{
    const struct regs basic = leaf(1, 0), more = leaf(7, 0), most = leaf(7, 1), extended = leaf(0x80000001u, 0);
    if (!has(basic.c, 27)) /* no xgetbv, so nobody saves wide registers */
        return 0;
    const unsigned saved = saved_state();
    const bool avx2 = (saved & XCR0_AVX) == XCR0_AVX && has(basic.c, 28) && has(basic.c, 12) && has(basic.c, 29) &&
                      has(basic.c, 22) && has(basic.c, 23) && has(more.b, 5) && has(more.b, 3) && has(more.b, 8) &&
                      has(extended.c, 5);
    if (!avx2)
        return 0;
    uint32_t flags = WEFT_CPU_AVX2;
    const bool avx512 = (saved & XCR0_AVX512) == XCR0_AVX512 && has(more.b, 16) && has(more.b, 17) && has(more.b, 28) &&
                        has(more.b, 30) && has(more.b, 31);
    if (!avx512)
        return flags;
    flags |= WEFT_CPU_AVX512;
    if (has(more.c, 11))
        flags |= WEFT_CPU_AVX512VNNI;
    if (has(most.a, 5))
        flags |= WEFT_CPU_AVX512BF16;
    if (has(more.d, 23))
        flags |= WEFT_CPU_AVX512FP16;
    if ((saved & XCR0_TILES) == XCR0_TILES && has(more.d, 22) && has(more.d, 24) && has(more.d, 25) && tiles_granted())
        flags |= WEFT_CPU_AMX;
    return flags;
}

static void detect_brand(char brand[64])
{
    memset(brand, 0, 64);
    for (unsigned i = 0; i < 3; i++) {
        const struct regs r = leaf(0x80000002u + i, 0);
        memcpy(brand + 16 * i, &r, sizeof r);
    }
    const size_t blanks = strspn(brand, " ");
    memmove(brand, brand + blanks, 64 - blanks);
    if (!brand[0])
        strcpy(brand, "x86-64");
}

/* Family and model each have a part that only counts beyond what fits the old four bits. */
static void detect_identity(struct weft_cpu *cpu)
{
    const struct regs vendor = leaf(0, 0), basic = leaf(1, 0);
    const unsigned text[3] = {vendor.b, vendor.d, vendor.c};
    memcpy(cpu->vendor, text, sizeof text);
    for (char *c = cpu->vendor; *c; c++)
        if (*c <= ' ' || *c == '/' || *c > '~')
            *c = '_'; /* it is part of names of files */
    const unsigned family = basic.a >> 8 & 15, model = basic.a >> 4 & 15;
    cpu->family = (int32_t)(family == 15 ? family + (basic.a >> 20 & 255) : family);
    cpu->model = (int32_t)(family == 15 || family == 6 ? model + (basic.a >> 16 & 15) * 16 : model);
}

enum { MOST_L3_OF_CPU = 32 << 20 };

/* Intel lists caches in leaf 4, AMD in 0x8000001d, in the same form: type, level, ways, partitions, line, sets. */
static void detect_caches(struct weft_cpu *cpu)
{
    cpu->l1 = 32u << 10, cpu->l2 = 512u << 10, cpu->l3 = 8u << 20;
    const unsigned number = (leaf(4, 0).a & 31) ? 4 : 0x8000001du;
    for (unsigned i = 0; i < 8; i++) {
        const struct regs r = leaf(number, i);
        const unsigned type = r.a & 31, level = r.a >> 5 & 7;
        if (!type)
            break;
        if (type == 2) /* instructions */
            continue;
        const size_t bytes =
            ((size_t)(r.b >> 22) + 1) * ((r.b >> 12 & 1023) + 1) * ((r.b & 4095) + 1) * ((size_t)r.c + 1);
        if (level >= 1 && level <= 3)
            *(level == 1 ? &cpu->l1 : level == 2 ? &cpu->l2 : &cpu->l3) = bytes;
    }
    /* A virtual machine of a few cores is told the whole cache of the host, which others fill: two cores that were told
     * 480 MB wrote 100 MB in half the time past the caches. So a CPU that is online counts with at most this much, as
     * most processors have for a core; where there is more, results are written past the caches a little early. */
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
    *ret = (struct weft_cpu){.flags = detect_flags()};
    detect_brand(ret->brand);
    detect_identity(ret);
    detect_caches(ret);
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
    {"all", NULL, 0, WEFT_CPU_ALL},
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
