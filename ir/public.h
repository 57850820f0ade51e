/* SPDX-License-Identifier: Apache-2.0 */
/* public.h: what the files that carry out weft.h's builder share. */
#ifndef WEFT_PUBLIC_H
#define WEFT_PUBLIC_H

#include "ir/ir.h"

/* Records a wrong argument; returns WEFT_ERR_ARGUMENT. */
int weft_wrong(struct weft_context *context, const char *where, const char *message);
/* True, and an error, for a body that a node uses: the node's types follow from it. */
bool weft_frozen(const struct weft_graph *graph);

#endif
