/* SPDX-License-Identifier: Apache-2.0 */
/* along.h: what the files of this folder share. */
#ifndef WEFT_ALONG_H
#define WEFT_ALONG_H

#include "kernels/kernels.h"

/* One line in order, for sort and top_k (order.c). */
void weft_along_order(const struct weft_along *along, char *out, int64_t *index, const char *in, void *scratch);
size_t weft_along_order_scratch(const struct weft_along *along);

#endif
