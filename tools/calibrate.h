/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.h: measuring a machine's prices (sched/prices.h); the parts of weft calibrate.
 *
 *   calibrate_memory.c, calibrate_kernels.c   jobs: a kernel's descriptor, ready to run, and what it counts for
 *   calibrate_time.c                          jobs timed in turns, round after round; the median of each
 *   calibrate_probe.c                         shared arrays, and the few jobs that make a roofline
 *   calibrate.c                               prices made of times; table, JSON, file
 *
 *   conv_point_first    1x1 64 → 256 at 56x56, 512 → 128 at 28x28, …    Σ medians / Σ products, in fs
 *   convert_transpose…  64x8192 turned                                  median / that of a plain copy, by bytes, in %
 *   access_strided      relu of a 64x8192 that lies the other way       1 + (median - that of a plain one) / reading */
#ifndef WEFT_CALIBRATE_H
#define WEFT_CALIBRATE_H

#include "runtime/runtime.h"
#include "sched/prices.h"

enum calibrate_how {
    CALIBRATE_NOTHING,       /* a time that others are compared with */
    CALIBRATE_RATE,          /* femtoseconds for each unit */
    CALIBRATE_STEP,          /* nanoseconds */
    CALIBRATE_EACH,          /* femtoseconds more than `beside`, for each unit */
    CALIBRATE_SHARE,         /* percent of the time of `beside`, for each unit */
    CALIBRATE_EXTRA,         /* 100 % and what it takes longer than `beside`, in percent of its units at `streamed` */
};

struct calibrate_job {
    enum weft_price price;
    enum calibrate_how how;
    double units;            /* bytes, products, taps, results */
    int beside;              /* another job */
    enum weft_price streamed;
    void (*run)(const struct calibrate_job *, void *scratch, int part, int parts);
    int parts;
    bool meets;              /* all wait for each other after each run */
    size_t scratch;          /* bytes for each part */
    const float *in;
    float *out;
    const void *weights;
    union {
        struct weft_map map;
        struct weft_copy copy;
        struct weft_reduce reduce;
        struct weft_along along;
        struct weft_conv conv;
        struct weft_gemm gemm;
        struct weft_pool pool;
        struct weft_blend blend;
        struct weft_sample sample;
        struct weft_table table;
    } with;
    const struct weft_blend_table *blend_table;
    const int64_t *const *places;
    /* timing */
    int repeats, least;      /* in a sample; and not fewer */
    double *ns;              /* of a run, by round */
    double median, spread;   /* ns; distance of the quartiles, as a share of the median */
};

enum { CALIBRATE_JOBS = 128 };
struct calibrate {
    struct weft_context *context;
    struct weft_arena arena;
    struct weft_cpu cpu;
    const struct weft_prices *shipped; /* for this CPU, and what of it may be used */
    int workers, rounds;
    double sample_ns;
    float *in, *out;         /* which jobs share; */
    float *memory;           /* a little before `out` */
    size_t floats;           /* of each */
    void *scratch;
    struct calibrate_job job[CALIBRATE_JOBS];
    int jobs;
};

/* The next job, with the shared arrays. */
struct calibrate_job *calibrate_add(struct calibrate *c, enum weft_price price, enum calibrate_how how, double units);
/* How large the shared arrays must be for jobs that leave the caches. */
size_t calibrate_memory_floats(const struct weft_cpu *cpu);
void calibrate_add_memory(struct calibrate *c);
/* Of what these measure: products by matrix, and reading from private caches and from memory. */
void calibrate_add_products(struct calibrate *c);
void calibrate_add_readings(struct calibrate *c);
void calibrate_add_kernels(struct calibrate *c);
/* Makes the shared arrays, under weft_protected. False: no memory. calibrate_close in any case. */
bool calibrate_open(struct calibrate *c);
void calibrate_close(struct calibrate *c);
/* calibrate_probe.c: what the machine reaches at this moment, all threads of the context together, within a second. */
struct calibrate_rates {
    double gflops, memory, cache; /* GFLOP/s; GB/s read from memory and from private caches */
    double spread;                /* the widest of them: distance of the quartiles, as a share of the median */
};
int calibrate_probe(struct weft_context *context, struct calibrate_rates *ret_rates);
/* Times all jobs. `progress` is called before each round. */
void calibrate_time(struct calibrate *c, void (*progress)(int round, int rounds));

#endif
