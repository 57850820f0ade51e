/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_x86.c: what an x86-64 processor is and can do.
 *
 * A feature counts only if the processor has it, the operating system saves its registers (XCR0), and, for the tiles of
 * AMX, the kernel has granted them to this process: Linux hands out the 8 KiB of tile state on request, so asking is
 * part of detecting. The compiler's own __builtin_cpu_supports knows neither that request nor cache sizes.
 *
 * This file is compiled for the oldest x86-64 and calls nothing that is not. */
#include "kernels/cpu.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XCR0_AVX            0x6u     /* SSE and the upper halves of 256-bit registers */
#define XCR0_AVX512         0xe6u    /* and masks, upper halves of 512-bit registers, registers 16 to 31 */
#define XCR0_TILES          0x60000u /* tile configuration and data */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_TILE_DATA  18

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

/* Intel lists caches in leaf 4, AMD in 0x8000001d, in the same form: type, level, ways, partitions, line, sets. */
static void detect_caches(struct weft_cpu *cpu)
{
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
}

void weft_cpu_identify(struct weft_cpu *cpu)
{
    cpu->flags = detect_flags();
    detect_brand(cpu->brand);
    detect_identity(cpu);
    detect_caches(cpu);
}
