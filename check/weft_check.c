/* SPDX-License-Identifier: Apache-2.0 */
/* weft_check.c: the kernel harness. Every kernel of every family against its reference, on hostile data, at each CPU
 * level that this machine has; check.h says how a family takes part, check_<family>.c are the families.
 *
 *   weft-check [--cpu=LEVEL] [--seed=N] [--list] [FAMILY | PATTERN]…
 *   weft-check --bench …: the speed half, speed.c
 *
 * The idea is checkasm's, of dav1d: random cases from a printed seed, guard pages around all memory, crashes caught and
 * reported as failures. One process runs everything; a crash leaves the body by siglongjmp, which is safe because
 * bodies and kernels own nothing but harness memory and hold no lock. */
#include "check/check.h"
#include "check/speed.h"
#include "check/wishes.h"

#include <fnmatch.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CANARY     0xa5
#define SHOWN      3 /* complaints printed per kernel */
#define BENCH_RUNS 21

struct block {
    struct block *next;
    unsigned char *map, *data, *pages; /* the mapping; what the body got; the accessible part */
    size_t map_bytes, page_bytes, bytes;
};

struct weft_check {
    const char *family, *kernel;
    char **patterns;
    int pattern_count;
    uint32_t machine, mask, cpu;
    uint64_t seed, random;
    bool bench, list, help;
    struct weft_wishes *wishes; /* in a survey, in which no kernel runs; else NULL */
    struct speed_options speed;
    int passed, failed, skipped, complaints;
    struct block *blocks;
};

/* What a signal handler may reach: where to go on, set only while a body runs. */
static sigjmp_buf crash_point;
static volatile sig_atomic_t in_body;

static void on_crash(int number)
{
    if (in_body) {
        in_body = 0;
        siglongjmp(crash_point, number);
    }
    if (speed_current) { /* operands of the speed half have no guards to come back to */
        static const char said[] = "weft-check: crashed while timing ";
        (void)!write(STDERR_FILENO, said, sizeof said - 1);
        (void)!write(STDERR_FILENO, speed_current, strlen(speed_current));
        (void)!write(STDERR_FILENO, "\n", 1);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_crashes(void)
{
    static unsigned char stack[1 << 16]; /* a kernel may have run out of, or destroyed, the usual one */
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE}; /* SIGTRAP: __builtin_trap on aarch64 */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

void *weft_check_alloc(struct weft_check *check, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + 64 + page - 1) / page * page;
    unsigned char *const map = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct block *const block = malloc(sizeof *block);
    if (map == MAP_FAILED || !block || mprotect(map + page, room, PROT_READ | PROT_WRITE) != 0) {
        fputs("weft-check: out of memory\n", stderr);
        exit(1);
    }
    memset(map + page, CANARY, room);
    const bool at_end = weft_check_random(check) & 1;
    *block = (struct block){
        check->blocks, map, at_end ? map + page + room - bytes : map + page, map + page, room + 2 * page, room, bytes};
    check->blocks = block;
    return block->data;
}

/* False if a canary of some block is dead. Unmaps everything. */
static bool free_blocks(struct weft_check *check)
{
    bool alive = true;
    while (check->blocks) {
        struct block *const block = check->blocks;
        const unsigned char *const end = block->pages + block->page_bytes;
        for (const unsigned char *p = block->pages; p < block->data; p++)
            alive &= *p == CANARY;
        for (const unsigned char *p = block->data + block->bytes; p < end; p++)
            alive &= *p == CANARY;
        check->blocks = block->next;
        munmap(block->map, block->map_bytes);
        free(block);
    }
    return alive;
}

/* --- data --------------------------------------------------------------------------------------------------------- */

uint64_t weft_check_random(struct weft_check *check) /* splitmix64 */
{
    uint64_t z = check->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t weft_check_between(struct weft_check *check, int64_t low, int64_t high)
{
    return low + (int64_t)(weft_check_random(check) % ((uint64_t)(high - low) + 1));
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float random_f32(uint64_t r, enum weft_check_fill fill)
{
    const uint32_t sign = (uint32_t)(r >> 63) << 31, bits = (uint32_t)r;
    switch (fill) {
    case WEFT_FILL_TINY:
        return from_bits(sign | (r >> 40 & 7 ? bits % 0x01000000u : 0));
    case WEFT_FILL_HUGE:
        return from_bits(sign | (0x7f000000u + bits % 0x00800000u));
    case WEFT_FILL_BITS:
        return from_bits(bits);
    case WEFT_FILL_HOSTILE:
        switch (r >> 40 & 31) {
        case 0:
            return from_bits(sign | 0x7fc00000u);
        case 1:
            return from_bits(sign | 0x7f800000u);
        case 2:
        case 3:
            return random_f32(r, WEFT_FILL_TINY);
        case 4:
        case 5:
            return random_f32(r, WEFT_FILL_HUGE);
        case 6:
            return from_bits(bits);
        default:
            return random_f32(r, WEFT_FILL_PLAIN);
        }
    default:
        return (float)((int32_t)bits * 0x1p-30);
    }
}

void weft_check_fill(struct weft_check *check, float *x, int64_t n, enum weft_check_fill fill)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = random_f32(weft_check_random(check), fill);
}

uint32_t weft_check_cpu(const struct weft_check *check) { return check->cpu; }
bool weft_check_failed(const struct weft_check *check) { return check->complaints > 0; }
bool weft_check_benching(const struct weft_check *check) { return check->bench; }

/* --- judging ------------------------------------------------------------------------------------------------------ */

void weft_check_fail(struct weft_check *check, const char *format, ...)
{
    if (check->complaints++ >= SHOWN)
        return;
    va_list list;
    va_start(list, format);
    printf("FAIL %s (--seed=%llu): ", check->kernel, (unsigned long long)check->seed);
    vprintf(format, list);
    putchar('\n');
    va_end(list);
}

double weft_check_ulps(float got, double want)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : INFINITY;
    /* Infinity stands where the next number after the largest would be. */
    const double g = isinf(got) ? copysign(0x1p128, got) : got, w = fmin(fmax(want, -0x1p128), 0x1p128), size = fabs(w);
    const int exponent = size < 0x1p-126 ? -126 : size >= 0x1p127 ? 127 : ilogb(size);
    return ldexp(fabs(g - w), 23 - exponent);
}

bool weft_check_close(struct weft_check *check, const char *what, const float *got, const double *want, int64_t n,
                      double ulps, double absolute)
{
    for (int64_t i = 0; i < n; i++) {
        const double error = weft_check_ulps(got[i], want[i]);
        if (error <= ulps || fabs(got[i] - want[i]) <= absolute)
            continue;
        weft_check_fail(check, "%s: element %lld of %lld is %.9g (%a), should be %.9g: %.3g ULP off, %.3g allowed",
                        what, (long long)i, (long long)n, got[i], got[i], want[i], error, ulps);
        return false;
    }
    return true;
}

bool weft_check_same(struct weft_check *check, const char *what, const float *got, const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!memcmp(&got[i], &want[i], sizeof got[i]) || (isnan(got[i]) && isnan(want[i])))
            continue;
        weft_check_fail(check, "%s: element %lld of %lld is %a, the same bits as %a were promised", what, (long long)i,
                        (long long)n, got[i], want[i]);
        return false;
    }
    return true;
}

bool weft_check_same_bytes(struct weft_check *check, const char *what, const void *got, const void *want, size_t bytes)
{
    const unsigned char *const a = got, *const b = want;
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i]) {
            weft_check_fail(check, "%s: byte %zu of %zu is %02x, should be %02x", what, i, bytes, a[i], b[i]);
            return false;
        }
    return true;
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void weft_check_bench(struct weft_check *check, const char *shape, double work, const char *unit, void (*run)(void *),
                      void *user)
{
    if (!check->bench)
        return;
    run(user); /* caches, pages, clock */
    double begin = now_ns();
    run(user);
    const double once = now_ns() - begin;
    const int repeat = once > 20e3 ? 1 : (int)(20e3 / (once + 1)) + 1; /* 20 us: well above the clock's own cost */
    double times[BENCH_RUNS];
    for (int i = 0; i < BENCH_RUNS; i++) {
        begin = now_ns();
        for (int j = 0; j < repeat; j++)
            run(user);
        times[i] = (now_ns() - begin) / repeat;
    }
    qsort(times, BENCH_RUNS, sizeof times[0], by_value);
    const double median = times[BENCH_RUNS / 2];
    printf("%-44s %-28s %12.0f ns %10.1f %s\n", check->kernel, shape, median, work / median, unit);
    fflush(stdout);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static bool wanted(const struct weft_check *check, const char *name)
{
    if (!check->pattern_count)
        return true;
    for (int i = 0; i < check->pattern_count; i++)
        if (!strcmp(check->patterns[i], check->family) || !fnmatch(check->patterns[i], name, 0))
            return true;
    return false;
}

void weft_check_kernel(struct weft_check *check, const char *name, uint32_t cpu, weft_check_body body, const void *user)
{
    if (check->wishes) {
        weft_wishes_offer(check->wishes, check->family, name);
        return;
    }
    if (!wanted(check, name))
        return;
    if (check->list) {
        char text[64];
        weft_cpu_describe(cpu, text, sizeof text);
        printf("%-10s %-44s %s\n", check->family, name, text);
        return;
    }
    if (cpu & ~check->mask) {
        check->skipped++;
        return;
    }
    check->kernel = name, check->cpu = cpu, check->complaints = 0;
    check->random = check->seed;
    for (const char *p = name; *p; p++)
        check->random = (check->random ^ (unsigned char)*p) * 0x100000001b3u;
    const int signal_number = sigsetjmp(crash_point, 1);
    if (!signal_number) {
        in_body = 1;
        body(check, user);
        in_body = 0;
    } else {
        weft_check_fail(check, "crashed: %s", strsignal(signal_number));
    }
    if (!free_blocks(check))
        weft_check_fail(check, "wrote outside its result");
    if (check->complaints)
        check->failed++;
    else
        check->passed++;
}

static int usage(const char *problem, const char *word)
{
    if (problem)
        fprintf(stderr, "weft-check: %s%s\n", problem, word);
    fputs("usage: weft-check [--cpu=LEVEL] [--seed=N] [--list] [FAMILY | PATTERN]...\n"
          "       weft-check --bench [--threads=1,2] [--shapes=FILE | --random=N] [--seconds=S] [--json]\n"
          "                  [--cpu=LEVEL] [--seed=N] [--list] [FAMILY | GROUP | PATTERN]...\n"
          "  LEVEL: baseline, avx2, avx512, avx512bf16, avx512vnni, avx512fp16, amx, all; PATTERN: *, ? and [] match\n"
          "  --threads: if not given, 1 and as many as there are; --seconds: for a case and number of threads, 0.25\n"
          "  --random: so many cases of each family, drawn from the seed, instead of those of bench/shapes\n",
          problem ? stderr : stdout);
    return problem ? 2 : 0;
}

static const struct family {
    const char *name;
    void (*run)(struct weft_check *);
} families[] = {
#define CHECK(family) {#family, weft_check_##family},
#include WEFT_CHECK_LIST
};

/* Does each word name a family or a kernel? What would be passed over in silence is said before anything runs. */
static bool are_names_known(struct weft_check *check)
{
    check->wishes = weft_wishes_open(check->patterns, check->pattern_count);
    for (size_t i = 0; check->wishes && i < sizeof families / sizeof families[0]; i++) {
        check->family = families[i].name;
        families[i].run(check);
    }
    struct weft_wishes *const wishes = check->wishes;
    check->wishes = NULL;
    return wishes && weft_wishes_close(wishes);
}

static int report(const struct weft_check *check)
{
    if (check->list)
        return 0;
    printf("%d passed, %d failed, %d skipped\n", check->passed, check->failed, check->skipped);
    return check->failed ? 1 : 0;
}

/* The number after the `=` of an option. */
static bool read_number(const char *word, double least, double *ret)
{
    const char *const text = strchr(word, '=') + 1;
    char *end;
    *ret = strtod(text, &end);
    return *text && !*end && *ret >= least && *ret <= 1e9;
}

static bool read_threads(struct speed_options *speed, const char *text)
{
    enum { MOST = sizeof speed->threads / sizeof speed->threads[0] };
    for (speed->thread_counts = 0; speed->thread_counts < MOST; text++) {
        char *end;
        const long n = strtol(text, &end, 10);
        if (end == text || n < 1 || n > 1024)
            return false;
        speed->threads[speed->thread_counts++] = (int)n;
        text = end;
        if (*text != ',')
            return !*text;
    }
    return false;
}

/* NULL, or what is wrong with the option. */
static const char *read_option(struct weft_check *check, const char *word)
{
    struct speed_options *const speed = &check->speed;
    double number;
    char *end = NULL;
    if (!strncmp(word, "--cpu=", 6)) {
        if (!weft_cpu_parse(word + 6, &check->mask))
            return "unknown CPU level: ";
        check->mask &= check->machine;
    } else if (!strncmp(word, "--seed=", 7)) {
        check->seed = strtoull(word + 7, &end, 10);
        return !word[7] || *end ? "not a seed: " : NULL;
    } else if (!strncmp(word, "--threads=", 10)) {
        return read_threads(speed, word + 10) ? NULL : "not one to four numbers of threads: ";
    } else if (!strncmp(word, "--random=", 9)) {
        if (!read_number(word, 1, &number))
            return "not a number of cases: ";
        speed->random = (int)number;
    } else if (!strncmp(word, "--seconds=", 10)) {
        return read_number(word, 0, &speed->seconds) ? NULL : "not a number of seconds: ";
    } else if (!strncmp(word, "--shapes=", 9)) {
        speed->shapes = word + 9;
    } else if (!strcmp(word, "--json")) {
        speed->json = true;
    } else if (!strcmp(word, "--bench")) {
        check->bench = true;
    } else if (!strcmp(word, "--list")) {
        check->list = true;
    } else if (!strcmp(word, "--help")) {
        check->help = true;
    } else {
        return "unknown option ";
    }
    return NULL;
}

static int run_families(struct weft_check *check, const char *brand)
{
    if (!are_names_known(check))
        return 2;
    if (!check->list) {
        char text[64];
        weft_cpu_describe(check->mask, text, sizeof text);
        printf("%s, kernels up to %s, seed %llu\n", brand, text, (unsigned long long)check->seed);
    }
    catch_crashes();
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        check->family = families[i].name;
        const int passed = check->passed, failed = check->failed, skipped = check->skipped;
        families[i].run(check);
        if (!check->list && check->passed + check->failed + check->skipped > passed + failed + skipped)
            printf("%-10s %4d passed, %d failed, %d skipped\n", check->family, check->passed - passed,
                   check->failed - failed, check->skipped - skipped);
    }
    return report(check);
}

/* Cases of the shape files. Kernels of families that have none are timed by their check, where the words name them. */
static int run_bench(struct weft_check *check, const char *brand, int workers)
{
    struct speed_options *const speed = &check->speed;
    speed->cpu = check->mask, speed->brand = brand, speed->seed = check->seed, speed->list = check->list;
    speed->patterns = check->patterns, speed->pattern_count = check->pattern_count;
    if (!speed->thread_counts) {
        speed->threads[speed->thread_counts++] = 1;
        if (workers > 1)
            speed->threads[speed->thread_counts++] = workers;
    }
    int cases;
    catch_crashes();
    const int code = speed_main(speed, &cases);
    if (cases || code == 2)
        return code;
    if (!check->pattern_count || speed->shapes || speed->random)
        return usage("no case has such a name; --list shows them", "");
    const int checked = run_families(check, brand);
    if (checked == 2)
        speed_print_groups(speed, stderr);
    return checked;
}

int main(int argc, char **argv)
{
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    struct weft_check check = {.machine = cpu.flags, .mask = cpu.flags, .seed = 1, .speed = {.seconds = 0.25}};
    check.patterns = argv + 1; /* what is not an option moves to the front */
    for (int i = 1; i < argc; i++) {
        const char *const problem = argv[i][0] == '-' ? read_option(&check, argv[i]) : NULL;
        if (problem)
            return usage(problem, argv[i]);
        if (argv[i][0] != '-')
            check.patterns[check.pattern_count++] = argv[i];
    }
    if (check.help)
        return usage(NULL, NULL);
    if (!check.bench && (check.speed.json || check.speed.shapes || check.speed.random || check.speed.thread_counts))
        return usage("--json, --shapes, --random and --threads go with --bench", "");
    return check.bench ? run_bench(&check, cpu.brand, cpu.workers) : run_families(&check, cpu.brand);
}
