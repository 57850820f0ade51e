/* SPDX-License-Identifier: Apache-2.0 */
/* speed_probe.c: what this machine can do at best, to hold kernels to: fused multiply-adds in registers, reading, and
 * copying with plain and with streaming stores. Arrays are as large as what the case moves, so that they live in the
 * same cache; each worker takes a piece. Probes run in turns with what they judge: a clock that changes its mind, or a
 * neighbour on the same memory, then changes both. */
#include "check/speed.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

const char *const speed_probe_names[PROBES] = {"fma", "read", "copy", "copy"};

struct probe {
    enum speed_probe kind;
    int level; /* 0: plain C; 1: AVX2; 2: AVX-512 */
    int64_t rounds;
    size_t bytes;
    char *to;
    const char *from;
};

static volatile float float_sink;
static volatile unsigned long long word_sink;

/* --- arithmetic: independent chains, as many as hide the latency -------------------------------------------------- */

enum { CHAINS = 12 };
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define DECLARE(i) vector a##i = one * (float)(i);
#define ADD(i) sum += a##i;

#ifdef __x86_64__
#define STEP(i)                                                                                                        \
    __asm__("vfmadd213ps %2, %1, %0" : PIN(a##i) : USE(half), USE(one));
#define PIN(x) "+x"(x)
#define USE(x) "x"(x)
__attribute__((target("avx2,fma"))) static void fma_avx2(int64_t rounds)
{
    typedef float vector __attribute__((vector_size(32)));
    vector one = {1, 1, 1, 1, 1, 1, 1, 1}, half = one * 0.5f;
    ALL(DECLARE)
    for (int64_t r = 0; r < rounds; r++) {
        ALL(STEP)
    }
    vector sum = one;
    ALL(ADD)
    float_sink = sum[0];
}
#undef PIN
#undef USE
#define PIN(x) "+v"(x)
#define USE(x) "v"(x)
__attribute__((target("avx512f"))) static void fma_avx512(int64_t rounds)
{
    typedef float vector __attribute__((vector_size(64)));
    vector one = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, half = one * 0.5f;
    ALL(DECLARE)
    for (int64_t r = 0; r < rounds; r++) {
        ALL(STEP)
    }
    vector sum = one;
    ALL(ADD)
    float_sink = sum[0];
}
#endif

#ifdef __aarch64__
#define PIN_PLAIN(x) "+w"(x)
#elif defined __x86_64__
#define PIN_PLAIN(x) "+x"(x)
#else
#define PIN_PLAIN(x) "+m"(x)
#endif
/* Multiplications and additions of four lanes: what code for the oldest machines can do. */
static void fma_plain(int64_t rounds)
{
    typedef float vector __attribute__((vector_size(16)));
    vector one = {1, 1, 1, 1}, half = one * 0.5f;
    ALL(DECLARE)
    for (int64_t r = 0; r < rounds; r++) {
#define PLAIN_STEP(i)                                                                                                  \
    a##i = a##i * half + one;                                                                                          \
    __asm__("" : PIN_PLAIN(a##i));
        ALL(PLAIN_STEP)
    }
    vector sum = one;
    ALL(ADD)
    float_sink = sum[0];
}

static double flops_of_a_round(int level) { return CHAINS * 2.0 * (4 << level); }

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Streams side by side keep more lines on their way than one. */
enum { STREAMS = 6 };

#define READ_BODY(bytes_of_vector)                                                                                     \
    typedef long long vector __attribute__((vector_size(bytes_of_vector)));                                            \
    const size_t piece = bytes / STREAMS / 64 * 64;                                                                    \
    vector sum[STREAMS] = {0};                                                                                         \
    for (size_t at = 0; at < piece; at += 64)                                                                          \
        _Pragma("GCC unroll 8") for (int s = 0; s < STREAMS; s++)                                                      \
            _Pragma("GCC unroll 8") for (size_t i = 0; i < 64; i += bytes_of_vector)                                   \
                sum[s] |= *(const vector *)(const void *)(from + s * piece + at + i);                                  \
    for (size_t at = STREAMS * piece; at + 64 <= bytes; at += 64)                                                      \
        for (size_t i = 0; i < 64; i += bytes_of_vector)                                                               \
            sum[0] |= *(const vector *)(const void *)(from + at + i);                                                  \
    for (int s = 1; s < STREAMS; s++)                                                                                  \
        sum[0] |= sum[s];                                                                                              \
    for (size_t i = 0; i < sizeof(vector) / 8; i++)                                                                    \
        word_sink = (unsigned long long)sum[0][i];

static void read_plain(const char *from, size_t bytes) { READ_BODY(16) }
#ifdef __x86_64__
__attribute__((target("avx2"))) static void read_avx2(const char *from, size_t bytes) { READ_BODY(32) }
__attribute__((target("avx512f"))) static void read_avx512(const char *from, size_t bytes) { READ_BODY(64) }

static void stream(char *to, const char *from, size_t bytes)
{
    for (size_t at = 0; at + 64 <= bytes; at += 64)
        for (size_t i = 0; i < 64; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + at + i), *(const __m128i *)(const void *)(from + at + i));
    _mm_sfence();
}
#else
static void stream(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }
#endif

#define COPY_BODY(bytes_of_vector)                                                                                     \
    typedef long long vector __attribute__((vector_size(bytes_of_vector)));                                            \
    for (size_t at = 0; at + 64 <= bytes; at += 64)                                                                    \
        for (size_t i = 0; i < 64; i += bytes_of_vector)                                                               \
            *(vector *)(void *)(to + at + i) = *(const vector *)(const void *)(from + at + i);                         \
    __asm__ volatile("" ::: "memory");

static void copy_plain(char *to, const char *from, size_t bytes) { COPY_BODY(16) }
#ifdef __x86_64__
__attribute__((target("avx2"))) static void copy_avx2(char *to, const char *from, size_t bytes) { COPY_BODY(32) }
__attribute__((target("avx512f"))) static void copy_avx512(char *to, const char *from, size_t bytes) { COPY_BODY(64) }
#endif

/* --- as contestants ----------------------------------------------------------------------------------------------- */

static void run(void *user, int part, int parts)
{
    const struct probe *const p = user;
    const size_t lines = p->bytes / 64, begin = lines * (size_t)part / (size_t)parts * 64,
                 bytes = lines * ((size_t)part + 1) / (size_t)parts * 64 - begin;
#ifdef __x86_64__
    static void (*const fma[])(int64_t) = {fma_plain, fma_avx2, fma_avx512};
    static void (*const reading[])(const char *, size_t) = {read_plain, read_avx2, read_avx512};
    static void (*const copying[])(char *, const char *, size_t) = {copy_plain, copy_avx2, copy_avx512};
#else
    static void (*const fma[])(int64_t) = {fma_plain};
    static void (*const reading[])(const char *, size_t) = {read_plain};
    static void (*const copying[])(char *, const char *, size_t) = {copy_plain};
#endif
    switch (p->kind) {
    case PROBE_FMA:
        fma[p->level](p->rounds / parts + 1);
        break;
    case PROBE_READ:
        reading[p->level](p->from + begin, bytes);
        break;
    case PROBE_COPY:
        copying[p->level](p->to + begin, p->from + begin, bytes);
        break;
    default:
        stream(p->to + begin, p->from + begin, bytes);
    }
}

void speed_probe_open(struct weft_bench *bench, enum speed_probe probe, uint32_t cpu, double work, int workers,
                      struct weft_contestant *ret, double *ret_work)
{
    struct probe *const p = weft_bench_alloc(bench, sizeof *p);
    p->kind = probe;
#ifdef __x86_64__
    p->level = cpu & WEFT_CPU_AVX512 ? 2 : cpu & WEFT_CPU_AVX2 ? 1 : 0;
#endif
    if (probe == PROBE_FMA) {
        p->rounds = (int64_t)(work / flops_of_a_round(p->level));
        *ret_work = (double)(p->rounds / workers + 1) * workers * flops_of_a_round(p->level);
    } else {
        p->bytes = ((size_t)(probe == PROBE_READ ? work : work / 2) + 63) / 64 * 64;
        char *const from = weft_bench_alloc(bench, p->bytes);
        memset(from, 1, p->bytes); /* pages of their own, not the one page of zeros */
        p->from = from;
        p->to = probe == PROBE_READ ? NULL : memset(weft_bench_alloc(bench, p->bytes), 1, p->bytes);
        *ret_work = (double)p->bytes * (probe == PROBE_READ ? 1 : 2);
    }
    *ret = (struct weft_contestant){.name = speed_probe_names[probe], .run = run, .user = p, .parts = workers};
}
