/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h: what a fuzz target is, and what targets share. README.md of this folder is the tour.
 *
 * A target is one file fuzz_<name>.c with the three definitions below. Two programs are made of it: with libfuzzer.c it
 * is driven by libFuzzer (clang), with replay.c it goes through kept inputs once, built like every other test.
 *
 *     bytes ──weft_fuzz_check──► returns: nothing to complain about
 *                            └─► weft_fuzz_fail, a sanitizer, a broken invariant: a finding
 *
 * An input that is refused with a status is fine, whatever the status is: refusing is what hostile input deserves. So
 * is WEFT_ERR_NOMEM: the context of a target has a budget, and a small input that asks for more of it gets none.
 * Whatever was allocated must be given back when the context closes; the budget counts. */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include "ir/ir.h"

/* --- what a target defines ---------------------------------------------------------------------------------------- */

/* Inputs are at most so long; a longer one says nothing new and takes time. */
extern const size_t weft_fuzz_limit;
/* One input. It may keep nothing: two calls with the same bytes do the same. */
void weft_fuzz_check(const uint8_t *data, size_t size);
/* Changes `size` bytes in place, `room` at most afterwards, and returns the new size: a step that knows what the bytes
 * mean. The same `random` makes the same step. */
size_t weft_fuzz_mutate(uint8_t *data, size_t size, size_t room, uint64_t *random);

/* --- common.c ----------------------------------------------------------------------------------------------------- */

/* Says what is wrong and aborts: libFuzzer keeps the input. */
_Noreturn void weft_fuzz_fail(const char *format, ...) WEFT_PRINTF(1, 2);
#define weft_fuzz_require(condition) \
    ((condition) ? (void)0 : weft_fuzz_fail("%s:%d: %s", __FILE__, __LINE__, #condition))

/* Memory that a context may hold at once. */
#define WEFT_FUZZ_BUDGET ((size_t)128 << 20)
struct weft_fuzz_budget {
    size_t held; /* bytes */
    size_t blocks;
};
/* A context of one thread on a budget; weft_fuzz_close finds what was not given back. */
struct weft_context *weft_fuzz_open(struct weft_fuzz_budget *budget);
void weft_fuzz_close(struct weft_context *context, const struct weft_fuzz_budget *budget);

/* A number below `below`, which is at least 1. */
uint32_t weft_fuzz_draw(uint64_t *random, size_t below);
/* Puts `count` bytes in place of `old` ones at `at`. Does nothing where there is no room. */
size_t weft_fuzz_splice(uint8_t *data, size_t size, size_t room, size_t at, size_t old, const void *bytes,
                        size_t count);
/* A step that knows nothing: a bit, a byte, a run of bytes moved, doubled or dropped. */
size_t weft_fuzz_mutate_bytes(uint8_t *data, size_t size, size_t room, uint64_t *random);

/* --- graph.c: what holds for every graph, wherever it came from --------------------------------------------------- */

/* `choice` decides what is too slow to be tried on every input: which pass runs alone, which sizes symbols have. */
void weft_fuzz_graph(struct weft_graph *graph, uint64_t choice);

/* --- small.c: is it cheap? ---------------------------------------------------------------------------------------- */

/* Is evaluating the graph at these values of its symbols a matter of milliseconds? */
bool weft_fuzz_is_small(const struct weft_graph *graph, const int64_t *symbols);

/* --- mutate_text.c ------------------------------------------------------------------------------------------------ */

/* Steps on the text of graphs: another op, dtype, number, value, attribute or layout; a type or number changed wherever
 * it stands, which often stays legal; lines doubled, dropped, swapped. */
size_t weft_fuzz_mutate_text(uint8_t *data, size_t size, size_t room, uint64_t *random);

#endif
