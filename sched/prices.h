/* SPDX-License-Identifier: Apache-2.0 */
/* prices.h: what things cost on the machine that a target describes: rates that format_*.c and schedule_*.c make costs
 * of, which rank layouts; they do not foretell times.
 *
 *   weft prices 1
 *   machine AuthenticAMD-25-17-32K-1024K-32768K-avx512+bf16+vnni
 *   threads 2
 *   lanes 16                         of f32 in the vectors of the kernels that were measured: 1, 8 or 16
 *   read_private 4210
 *   …                                a line for each row of prices.def, in any order; # begins a comment
 *
 * A target without prices has the first of those that weft ships, whatever its CPU, so that plans of targets that are
 * described are the same everywhere; a context takes the shipped ones for the CPU and threads it runs on. Others are
 * measured by `weft calibrate` and belong to one machine: a file that names another machine is refused (the same one
 * with other kernel levels, as under a mask: left aside, with a warning), and so is one where a price is missing,
 * unknown, given twice or no whole number from 1 to 10^9, since a choice by half a table is worse than one by another
 * machine's. All threads of the measurement are at work in a price; a context with fewer uses it as it is, as layouts
 * are ranked by ratios. Files without the line `lanes` are from before it was written: they have those of the levels in
 * their machine's name. */
#ifndef WEFT_PRICES_H
#define WEFT_PRICES_H

#include "ir/base.h"
#include "kernels/kernels.h"

enum weft_price {
#define PRICE(name, unit, zen, intel, avx2, wide, help) WEFT_PRICE_##name,
#include "sched/prices.def"
#undef PRICE
    WEFT_PRICE_COUNT
};

/* Channels and columns of the result on which `repeat` is measured: each pixel, and each row, takes time itself. */
enum { WEFT_REPEAT_CHANNELS = 64, WEFT_REPEAT_COLUMNS = 56 };
/* Channels of the image on which `sample` is measured: each point takes time itself. */
enum { WEFT_SAMPLE_CHANNELS = 64 };
/* Rows of so many results, and longer ones, are the wide ones of windows. */
enum { WEFT_WIDE_ROW = 16 };

struct weft_price_info {
    const char *name, *unit, *help;
};
extern const struct weft_price_info weft_price_list[WEFT_PRICE_COUNT];

enum { WEFT_MACHINE_BYTES = 128 };
struct weft_prices {
    char machine[WEFT_MACHINE_BYTES]; /* where they were measured */
    int32_t threads;                  /* by so many */
    int32_t lanes;                    /* of f32 in the vectors of the kernels that were measured */
    int32_t price[WEFT_PRICE_COUNT];
    char from[192];                   /* for messages: "shipped", "shipped for …", the end of a path */
};
extern const struct weft_prices weft_prices_shipped, weft_prices_shipped_intel, weft_prices_shipped_avx2,
    weft_prices_shipped_wide;

/* The shipped prices for a CPU of which kernels may use the levels in `flags`, and so many threads. Between 2 and 16
 * threads, of which there are prices, the nearer number by ratio. */
enum { WEFT_WIDE_THREADS = 6 };
const struct weft_prices *weft_prices_shipped_for(const struct weft_cpu *cpu, uint32_t flags, int32_t threads);

/* The prices of a target, and one of them. */
const struct weft_prices *weft_prices_of(const struct weft_target *target);
static inline int64_t weft_price_of(const struct weft_target *target, enum weft_price price)
{
    return weft_prices_of(target)->price[price];
}

/* Lanes of f32 in the widest vectors that these CPU levels have kernels for; 1: plain loops. */
int32_t weft_price_lanes(uint32_t cpu);

/* "AuthenticAMD-25-17-32K-1024K-32768K-avx512+bf16+vnni": vendor, family, model, caches, and the levels in `flags`. A
 * word that may be a file's name. */
void weft_machine_name(const struct weft_cpu *cpu, uint32_t flags, char ret_name[WEFT_MACHINE_BYTES]);

/* Reads a text as above. Where it does not parse or is of another machine than `machine`, messages name `path` and the
 * line, as errors or warnings (`severity`); then *ret_prices is as before. */
bool weft_prices_parse(struct weft_context *context, int severity, const char *path, const char *text, size_t bytes,
                       const char *machine, struct weft_prices *ret_prices);
/* The text. What is parsed from it is equal. */
void weft_prices_print(const struct weft_prices *prices, struct weft_text *text);

#endif
