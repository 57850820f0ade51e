/* SPDX-License-Identifier: Apache-2.0 */
/* alternatives.h: subgraphs that may take the place of nodes: weft's own and the caller's (weft/alternative.h), and
 * what they are predicted to take. */
#ifndef WEFT_ALTERNATIVES_H
#define WEFT_ALTERNATIVES_H

#include "ir/ir.h"

#include "weft/alternative.h"

struct weft_alternative_entry {
    struct weft_alternative_entry *next;
    struct weft_alternative given;  /* its texts are the name below, and none */
    int opcode;
    char name[64];
};

/* alternatives.c: weft's own, by number; then the caller's. NULL after the last. */
const struct weft_alternative_entry *weft_alternative_at(const struct weft_context *context, unsigned i,
                                                         struct weft_alternative_entry *own);
void weft_alternatives_free(struct weft_context *context);
/* What does WEFT_ALTERNATIVE name: this one, or all? */
bool weft_alternative_is_forced(const char *name);

/* alternative_price.c: what a graph whose layouts are chosen is predicted to take, in picoseconds, on a copy of which
 * passes may form groups (*ret_copy is set before it is filled, and is the caller's to free). -1 and why: nobody
 * knows. */
int64_t weft_alternative_price(const struct weft_graph *graph, const struct weft_target *target,
                               struct weft_graph **ret_copy, const char **ret_why);

/* One file each. */
#define ALTERNATIVE(name, op, help) extern const struct weft_alternative weft_alternative_##name;
#include "passes/alternatives.def"
#undef ALTERNATIVE

#endif
