/* SPDX-License-Identifier: Apache-2.0 */
/* peer_openblas.c: OpenBLAS as a peer: sgemm, one call for each product of a batch. It takes B as it lies, constant or
 * not: its interface has no packed operands. */
#include "check/bench_peers.h"

#include <cblas.h>

struct peer {
    struct bench_gemm g;
    const float *a, *b;
    float *c;
};

static void run(void *user, int part, int parts)
{
    const struct peer *const p = user;
    const struct bench_gemm *const g = &p->g;
    for (int64_t i = 0; i < g->batch; i++)
        cblas_sgemm(CblasRowMajor, g->a_transposed ? CblasTrans : CblasNoTrans,
                    g->b_transposed ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k, 1,
                    p->a + i * g->a_size, (int)g->a_line, p->b + i * g->b_size, (int)g->b_line, 0, p->c + i * g->c_size,
                    (int)g->c_line);
}

bool bench_openblas_gemm(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                         struct weft_contestant *ret)
{
    struct peer *const p = weft_bench_alloc(bench, sizeof *p);
    *p = (struct peer){bench_gemm_of(problem->c), problem->in[0], problem->in[1], problem->out};
    openblas_set_num_threads(threads);
    *ret = (struct weft_contestant){.run = run, .user = p};
    return true;
}
