/* SPDX-License-Identifier: Apache-2.0 */
/* bench_peers.h: the cases of each family as numbers, for our kernels and for the same work in other libraries.
 *
 * Peers are programs of others that this one may be linked with (meson -Dpeers): oneDNN and OpenBLAS. The library
 * itself never is. */
#ifndef WEFT_BENCH_PEERS_H
#define WEFT_BENCH_PEERS_H

#include "kernels/bench.h"

/* --- gemm: in[0] = A, in[1] = B, out = C -------------------------------------------------------------------------- */

enum { BENCH_M, BENCH_K, BENCH_N, BENCH_BATCH, BENCH_TA, BENCH_TB, BENCH_B, BENCH_GAP };

struct bench_gemm {
    int64_t m, k, n, batch;
    bool a_transposed, b_transposed, constant;
    int64_t a_line, b_line, c_line; /* elements from one line to the next; a line is a row, or a column if transposed */
    int64_t a_size, b_size, c_size; /* elements of one matrix with its gaps */
};
struct bench_gemm bench_gemm_of(const struct weft_case *c);

typedef bool bench_peer_fn(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                           struct weft_contestant *ret);
bench_peer_fn bench_onednn_gemm, bench_openblas_gemm;

#endif
