/* SPDX-License-Identifier: Apache-2.0 */
/* check.h: what a family gives to and takes from the kernel harness, weft-check.
 *
 * A family is a row in check.def and a file check_<family>.c with weft_check_<family>(), which calls
 * weft_check_kernel once for each kernel of its list. The harness decides whether to run it: names that the command
 * line did not ask for are left out, kernels that this CPU (or --cpu) cannot run count as skipped, never as passed. The
 * body tries the kernel on many cases and reports what is wrong; a kernel passes if nothing was. Crashes inside the
 * body are failures of that kernel with its name and the seed, and the run goes on.
 *
 * Memory comes from weft_check_alloc: it borders on an inaccessible page at one end, at random, and on canary bytes at
 * the other, and lives until the body returns. So a kernel that reads or writes one element too far crashes or is
 * seen. Random numbers depend on the seed and the kernel's name only: a failure repeats with --seed=N NAME.
 *
 * How fast a family is, bench.h is about. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H

#include "kernels/kernels.h"

struct weft_check;
typedef void (*weft_check_body)(struct weft_check *check, const void *user);

/* The harness is tested by a list of its own. */
#ifndef WEFT_CHECK_LIST
#define WEFT_CHECK_LIST "check/check.def"
#endif
#define CHECK(family) void weft_check_##family(struct weft_check *check);
#include WEFT_CHECK_LIST

/* Runs body(check, user) as the test of kernel `name`, which needs `cpu`. */
void weft_check_kernel(struct weft_check *check, const char *name, uint32_t cpu, weft_check_body body,
                       const void *user);

/* --- inside a body ------------------------------------------------------------------------------------------------ */

/* The mask to put into descriptors: exactly what the kernel under test needs, so that dispatch takes no better one. */
uint32_t weft_check_cpu(const struct weft_check *check);

uint64_t weft_check_random(struct weft_check *check);
/* In [low, high]. */
int64_t weft_check_between(struct weft_check *check, int64_t low, int64_t high);
/* Strides of an array of these extents whose axes lie in a random order, now and then with gaps; how many elements it
 * reaches over. */
int64_t weft_check_lay(struct weft_check *check, const int64_t extent[4], int64_t ret_stride[4]);

void *weft_check_alloc(struct weft_check *check, size_t bytes);

enum weft_check_fill {
    WEFT_FILL_PLAIN,   /* spread evenly over [-2, 2] */
    WEFT_FILL_TINY,    /* near the smallest normal number, denormals, zeros of both signs */
    WEFT_FILL_HUGE,    /* near the largest */
    WEFT_FILL_HOSTILE, /* any of these, and NaN and both infinities now and then */
    WEFT_FILL_BITS,    /* any bit pattern */
    WEFT_FILLS
};
void weft_check_fill(struct weft_check *check, float *x, int64_t n, enum weft_check_fill fill);

/* One line about what went wrong; the first few of a kernel are printed. */
void weft_check_fail(struct weft_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* True once this kernel has failed: a body may stop early. */
bool weft_check_failed(const struct weft_check *check);

/* got[i] may differ from want[i] by `ulps` units in the last place of want[i] plus `absolute`. Any NaN equals any NaN,
 * and +0 equals -0. A result that overflows equals infinity. False and a report of the first bad element otherwise. */
bool weft_check_close(struct weft_check *check, const char *what, const float *got, const double *want, int64_t n,
                      double ulps, double absolute);
/* The distance used above, in units in the last place: for a body that wants to report its worst. */
double weft_check_ulps(float got, double want);
/* The same bits, but any NaN equals any NaN. */
bool weft_check_same(struct weft_check *check, const char *what, const float *got, const float *want, int64_t n);
bool weft_check_same_bytes(struct weft_check *check, const char *what, const void *got, const void *want, size_t bytes);

/* With --bench: times run(user) and prints the median with its rate; `unit` is "GB/s" or "GFLOP/s" and `work` the bytes
 * or flops of one run. Without: nothing. */
void weft_check_bench(struct weft_check *check, const char *shape, double work, const char *unit, void (*run)(void *),
                      void *user);
bool weft_check_benching(const struct weft_check *check);

#endif
