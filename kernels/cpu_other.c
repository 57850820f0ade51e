/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_other.c: what a processor is that has no levels above the baseline: aarch64, and any other that Linux runs on.
 *
 * Caches are those that the kernel lists for the first CPU; cores of other sizes are not asked. A processor of aarch64
 * says who made it in a register that the kernel lets programs read where it says so (HWCAP_CPUID). */
#include "kernels/cpu.h"

#include <stdio.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

/* A line of a file of the first CPU's cache `index`, without its end; false where there is none. */
static bool read_line(int index, const char *name, char line[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *const file = fopen(path, "re");
    const bool found = file && fgets(line, 32, file);
    if (file)
        fclose(file);
    if (found)
        line[strcspn(line, "\n")] = '\0';
    return found;
}

static void detect_caches(struct weft_cpu *cpu)
{
    enum { MOST_CACHES = 8 };

    size_t *const size[] = {&cpu->l1, &cpu->l2, &cpu->l3};
    char type[32], level[32], text[32];
    for (int i = 0; i < MOST_CACHES && read_line(i, "type", type); i++) {
        unsigned long kilobytes;
        const bool told = read_line(i, "level", level) && read_line(i, "size", text) &&
                          sscanf(text, "%luK", &kilobytes) == 1 && kilobytes > 0 && kilobytes < 1ul << 22;
        if (told && strcmp(type, "Instruction") != 0 && level[0] >= '1' && level[0] <= '3' && !level[1])
            *size[level[0] - '1'] = (size_t)kilobytes << 10;
    }
}

#ifdef __aarch64__
static void detect_identity(struct weft_cpu *cpu)
{
    static const struct maker {
        unsigned code;
        const char *name;
    } makers[] = {{0x41, "ARM"},       {0x42, "Broadcom"}, {0x43, "Cavium"},   {0x46, "Fujitsu"}, {0x48, "HiSilicon"},
                  {0x4e, "NVIDIA"},    {0x51, "Qualcomm"}, {0x53, "Samsung"},  {0x61, "Apple"},   {0x6d, "Microsoft"},
                  {0xc0, "Ampere"}};
    uint64_t id = 0;
    if (getauxval(AT_HWCAP) & HWCAP_CPUID)
        __asm__("mrs %0, midr_el1" : "=r"(id));
    const unsigned code = (unsigned)(id >> 24 & 255);
    snprintf(cpu->vendor, sizeof cpu->vendor, "aarch64");
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (makers[i].code == code)
            snprintf(cpu->vendor, sizeof cpu->vendor, "%s", makers[i].name);
    cpu->family = (int32_t)(id >> 20 & 15); /* variant */
    cpu->model = (int32_t)(id >> 4 & 4095); /* part */
    snprintf(cpu->brand, sizeof cpu->brand, "aarch64 %s part 0x%x", code ? cpu->vendor : "unknown",
             (unsigned)cpu->model);
}
#else
static void detect_identity(struct weft_cpu *cpu)
{
    snprintf(cpu->vendor, sizeof cpu->vendor, "unknown");
    snprintf(cpu->brand, sizeof cpu->brand, "unknown processor");
}
#endif

void weft_cpu_identify(struct weft_cpu *cpu)
{
    cpu->flags = 0;
    detect_identity(cpu);
    detect_caches(cpu);
}
