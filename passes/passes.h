/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h: one function a pass, in a file of its name; the list is passes.def. How to add one: README.md. */
#ifndef WEFT_PASSES_H
#define WEFT_PASSES_H

#include "ir/ir.h"

struct weft_pass_info {
    const char *name;      /* with underscores */
    bool (*run)(struct weft_graph *, const struct weft_target *);
    uint32_t keeps;        /* analyses that survive when it changed something */
    const char *help;      /* one line */
};
extern const struct weft_pass_info weft_passes[];
extern const unsigned weft_pass_count;

#define PASS(name, keeps, help) bool weft_pass_##name(struct weft_graph *graph, const struct weft_target *target);
#include "passes.def"
#undef PASS

/* run.c */
const struct weft_pass_info *weft_pass_find(const char *name); /* - and _ are the same; NULL if unknown */
/* Runs a pass on the graph and its bodies with everything around it: skip list, canary, validation, snapshots, timing.
 * Under weft_protected. True if the graph changed. */
bool weft_run_pass_info(struct weft_graph *graph, const struct weft_pass_info *pass, const struct weft_target *target);
/* The default pipeline, to a fixed point where it says so. */
bool weft_run_passes(struct weft_graph *graph, const struct weft_target *target);

#endif
