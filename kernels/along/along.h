/* SPDX-License-Identifier: Apache-2.0 */
/* along.h: what the files of this folder share. */
#ifndef WEFT_ALONG_H
#define WEFT_ALONG_H

#include "kernels/kernels.h"

/* One line in order, for sort and top_k (order.c). */
void weft_along_order(const struct weft_along *along, char *out, int64_t *index, const char *in, void *scratch);
size_t weft_along_order_scratch(const struct weft_along *along);

enum {
    WEFT_ALONG_TILE = 64, /* lines side by side, where they are neighbours */
    WEFT_ALONG_FEW = 8    /* and where they are far apart: as many streams as the machine follows */
};

/* Scans and arguments of extremes of one type (along_level.c). */
struct weft_along_loops {
    int bytes;
    const char *scan_name, *arg_name;
    /* Up to WEFT_ALONG_TILE lines, which lie out_line and in_line apart; `out` of arg are int64_t. */
    void (*scan)(const struct weft_along *along, void *out, const void *in, int64_t out_line, int64_t in_line,
                 int64_t lines);
    void (*arg)(const struct weft_along *along, void *out, const void *in, int64_t out_line, int64_t in_line,
                int64_t lines);
    /* Chunks [first, end) of one line: what they come to, and the scan of them, given that. */
    void (*totals)(const struct weft_along *along, void *total, const void *in, int64_t first, int64_t end);
    void (*chunks)(const struct weft_along *along, void *out, const void *in, const void *total, int64_t first,
                   int64_t end);
};
/* By WEFT_K_*; of types without loops 0. */
extern const struct weft_along_loops weft_along_loops__ref[], weft_along_loops__avx2[], weft_along_loops__avx512[];

#endif
