/* SPDX-License-Identifier: Apache-2.0 */
/* bench_peers.h: the cases of each family as numbers, for our kernels and for the same work in other libraries.
 *
 * Peers are programs of others that this one may be linked with (meson -Dpeers): oneDNN and OpenBLAS. The library
 * itself never is. */
#ifndef WEFT_BENCH_PEERS_H
#define WEFT_BENCH_PEERS_H

#include "check/bench.h"

typedef bool bench_peer_fn(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                           struct weft_contestant *ret);

/* --- gemm: in[0] = A, in[1] = B, out = C -------------------------------------------------------------------------- */

enum { BENCH_M, BENCH_K, BENCH_N, BENCH_BATCH, BENCH_TA, BENCH_TB, BENCH_B, BENCH_GAP, BENCH_RELU,
       BENCH_FRONT };

struct bench_gemm {
    int64_t m, k, n, batch;
    bool a_transposed, b_transposed, constant;
    int64_t a_line, b_line, c_line; /* elements from one line to the next; a line is a row, or a column if transposed */
    int64_t a_size, b_size, c_size; /* elements of one matrix with its gaps */
};
struct bench_gemm bench_gemm_of(const struct weft_case *c);

bench_peer_fn bench_onednn_gemm, bench_openblas_gemm;

/* --- conv and pool: in[0] = x, conv: in[1] = w, out = y ----------------------------------------------------------- */

/* A window that slides over up to three axes. */
struct bench_window {
    int spatial;
    bool last, transposed;   /* last: channels behind the axes, NHWC */
    int64_t n, c, o, groups;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_after[3];
    int64_t x_stride[5], y_stride[5], w_stride[5]; /* elements: n, channels, axes; of w: as given, results first or, */
    int64_t x_size, y_size, w_size, taps;          /* transposed, channels first */
};
/* Where a family has the keys of its windows. */
struct bench_window_keys {
    int in, k, stride, pad, dilation;
};
/* Reads them; the padding is the same at both ends. Then out extents, strides and sizes from the other fields. */
void bench_window_read(struct bench_window *window, const struct weft_case *c, const struct bench_window_keys *keys);
/* NULL, or what is wrong with the lists of a case, or with its window. */
const char *bench_window_lists(const struct weft_case *c, const struct bench_window_keys *keys);
const char *bench_window_problem(const struct bench_window *window);

struct bench_window bench_conv_of(const struct weft_case *c);
/* _own: x and y in the layouts that oneDNN likes best, as inside of a network of its own. */
bench_peer_fn bench_onednn_conv, bench_onednn_conv_own;

struct bench_window bench_pool_of(const struct weft_case *c, bool *ret_mean, bool *ret_count_pad);
bench_peer_fn bench_onednn_pool;

/* --- relayout: in[0] to out --------------------------------------------------------------------------------------- */

struct bench_relayout {
    int rank, bytes;
    int64_t extent[WEFT_CASE_NUMBERS], in_stride[WEFT_CASE_NUMBERS], out_stride[WEFT_CASE_NUMBERS]; /* of the result */
    int64_t in_size, out_size;                                                                      /* elements */
};
struct bench_relayout bench_relayout_of(const struct weft_case *c);
bench_peer_fn bench_onednn_relayout;

#endif
