/* SPDX-License-Identifier: Apache-2.0 */
/* composites.h: chains of a group's nodes that one function of strips computes (composites.c). */
#ifndef WEFT_COMPOSITES_H
#define WEFT_COMPOSITES_H

#include "codegen/lower.h"

/* By place of a node: a chain that ends there has a word; the nodes before its end are inside of it. */
struct weft_composite {
    const char *word;      /* NULL: an instruction of its own */
    uint8_t operand;       /* what the word is a function of: this operand of the node at place `at` */
    uint32_t at;           /* the end, or a node inside of the chain */
    bool inside;           /* computed by a chain that ends later */
};
/* An entry for each node of `fit`, in `arena`. */
struct weft_composite *weft_composites_find(const struct weft_members *members, const struct weft_fit *fit,
                                            struct weft_arena *arena);

#endif
