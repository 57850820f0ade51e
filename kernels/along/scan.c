/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: scans strip by strip, by the loops of weft_along_run. The contract: scan.h. */
#include "kernels/along/scan.h"

#include "kernels/along/along.h"

void weft_scan_prepare(struct weft_scan *scan, uint32_t cpu, int64_t n, int64_t in_step, int64_t out_step)
{
    scan->along = (struct weft_along){.op = scan->op, .dtype = scan->dtype, .exclusive = scan->exclusive,
                                      .reverse = scan->reverse, .cpu = cpu, .n = n, .in_step = in_step,
                                      .out_step = out_step};
    const struct weft_along_pieces *const prefix = weft_along_prefix_of(&scan->along);
    scan->loops = weft_along_loops_of(&scan->along);
    scan->pieces = prefix ? prefix : &scan->loops->pieces;
    scan->in_vectors = prefix != NULL;
}

void weft_scan_begin(const struct weft_scan *scan, void *state, int64_t lines)
{
    union weft_along_sum *const sum = state;
    for (int64_t i = 0; i < lines; i++)
        scan->pieces->start(&scan->along, &sum[i]);
}

void weft_scan_strip(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t n,
                     const struct weft_scan_ahead *ahead)
{
    const int64_t bytes = scan->loops->bytes, first = scan->reverse ? n - 1 : 0;
    scan->pieces->go_on(&scan->along, (char *)out + first * scan->along.out_step * bytes,
                        (const char *)in + first * scan->along.in_step * bytes, n, ahead, state);
}

void weft_scan_beside(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t out_line,
                      int64_t in_line, int64_t lines)
{
    scan->loops->beside(&scan->along, state, out, in, out_line, in_line, lines);
}

void weft_scan_lines(const struct weft_scan *scan, void *out, const void *in, int64_t out_line, int64_t in_line,
                     int64_t lines)
{
    const struct weft_scan_ahead nothing = {.streams = 0};
    const int64_t bytes = scan->loops->bytes, most = scan->in_vectors ? 1 : WEFT_ALONG_TILE;
    for (int64_t line = 0; line < lines; line += most) {
        char *const to = (char *)out + line * out_line * bytes;
        const char *const from = (const char *)in + line * in_line * bytes;
        if (scan->in_vectors) {
            union weft_along_sum sum;
            weft_scan_begin(scan, &sum, 1);
            weft_scan_strip(scan, &sum, to, from, scan->along.n, &nothing);
        } else {
            scan->loops->scan(&scan->along, to, from, out_line, in_line, lines - line < most ? lines - line : most);
        }
    }
}

uint32_t weft_scan_cpu(const struct weft_scan *scan) { return weft_along_cpu(&scan->along); }
