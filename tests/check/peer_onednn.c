/* SPDX-License-Identifier: Apache-2.0 */
/* peer_onednn.c: oneDNN (the 2.x interface) as a peer. A constant operand may have whatever layout it likes best, and
 * is brought into it before the clock runs. */
#include "tests/check/bench_peers.h"

#include <dnnl.h>
#include <omp.h>

enum { MEMORIES = 5, ARGUMENTS = 3 };

struct peer {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_exec_arg_t argument[ARGUMENTS];
    dnnl_memory_t memory[MEMORIES];
    int arguments, memories;
};

static dnnl_engine_t engine(void)
{
    static dnnl_engine_t only;
    if (!only && dnnl_engine_create(&only, dnnl_cpu, 0) != dnnl_success)
        only = NULL;
    return only;
}

static void run(void *user, int part, int parts)
{
    const struct peer *const p = user;
    dnnl_primitive_execute(p->primitive, p->stream, p->arguments, p->argument);
    dnnl_stream_wait(p->stream);
}

static void close_peer(void *user)
{
    struct peer *const p = user;
    for (int i = 0; i < p->memories; i++)
        dnnl_memory_destroy(p->memory[i]);
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    if (p->stream)
        dnnl_stream_destroy(p->stream);
}

static struct peer *open_peer(struct weft_bench *bench, int threads)
{
    struct peer *const p = weft_bench_alloc(bench, sizeof *p);
    omp_set_num_threads(threads); /* the gang says itself how many it wants */
    if (!engine() || dnnl_stream_create(&p->stream, engine(), dnnl_stream_default_flags) != dnnl_success)
        return NULL;
    return p;
}

static bool add_memory(struct peer *p, const dnnl_memory_desc_t *desc, void *data, dnnl_memory_t *ret)
{
    if (dnnl_memory_create(ret, desc, engine(), data) != dnnl_success)
        return false;
    p->memory[p->memories++] = *ret;
    return true;
}

static bool add_argument(struct peer *p, int which, const dnnl_memory_desc_t *desc, const void *data)
{
    dnnl_memory_t memory;
    if (!add_memory(p, desc, (void *)data, &memory)) /* oneDNN has no type for what is only read */
        return false;
    p->argument[p->arguments++] = (dnnl_exec_arg_t){which, memory};
    return true;
}

/* A constant operand, in the layout that the primitive wants. */
static bool add_constant(struct peer *p, int which, const dnnl_memory_desc_t *given, const dnnl_memory_desc_t *wanted,
                         const void *data)
{
    if (dnnl_memory_desc_equal(given, wanted))
        return add_argument(p, which, given, data);
    dnnl_memory_t from;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
    if (!add_argument(p, which, wanted, DNNL_MEMORY_ALLOCATE) || !add_memory(p, given, (void *)data, &from) ||
        dnnl_reorder_primitive_desc_create(&desc, given, engine(), wanted, engine(), NULL) != dnnl_success)
        return false;
    bool good = dnnl_primitive_create(&reorder, desc) == dnnl_success;
    dnnl_primitive_desc_destroy(desc);
    if (!good)
        return false;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, p->argument[p->arguments - 1].memory}};
    good = dnnl_primitive_execute(reorder, p->stream, 2, arguments) == dnnl_success;
    dnnl_stream_wait(p->stream);
    dnnl_primitive_destroy(reorder);
    return good;
}

/* Makes the primitive for two operands, of which the second may be a constant whose layout `desc` leaves open, and a
 * result. */
static bool finish(struct peer *p, const void *op_desc, const dnnl_memory_desc_t md[3], const void *a, const void *b,
                   bool constant, void *out)
{
    dnnl_primitive_desc_t desc;
    if (dnnl_primitive_desc_create(&desc, op_desc, NULL, engine(), NULL) != dnnl_success)
        return false;
    bool good = dnnl_primitive_create(&p->primitive, desc) == dnnl_success && add_argument(p, DNNL_ARG_SRC, &md[0], a);
    if (b && constant)
        good = good && add_constant(p, DNNL_ARG_WEIGHTS, &md[1],
                                    dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0), b);
    else if (b)
        good = good && add_argument(p, DNNL_ARG_WEIGHTS, &md[1], b);
    good = good && add_argument(p, DNNL_ARG_DST, &md[2], out);
    dnnl_primitive_desc_destroy(desc);
    return good;
}

static bool enter(struct peer *p, bool good, struct weft_contestant *ret)
{
    if (!good)
        close_peer(p);
    else
        *ret = (struct weft_contestant){.run = run, .user = p, .close = close_peer};
    return good;
}

bool bench_onednn_gemm(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                       struct weft_contestant *ret)
{
    struct peer *const p = open_peer(bench, threads);
    if (!p)
        return false;
    const struct bench_gemm g = bench_gemm_of(problem->c);
    const bool batched = g.batch > 1;
    const int rank = batched ? 3 : 2, skip = batched ? 0 : 1;
    const dnnl_dims_t extent[] = {{g.batch, g.m, g.k}, {g.batch, g.k, g.n}, {g.batch, g.m, g.n}};
    const dnnl_dims_t stride[] = {
        {g.a_size, g.a_transposed ? 1 : g.a_line, g.a_transposed ? g.a_line : 1},
        {g.b_size, g.b_transposed ? 1 : g.b_line, g.b_transposed ? g.b_line : 1},
        {g.c_size, g.c_line, 1},
    };
    dnnl_memory_desc_t md[3], open;
    bool good = true;
    for (int i = 0; i < 3; i++)
        good = good && dnnl_memory_desc_init_by_strides(&md[i], rank, extent[i] + skip, dnnl_f32, stride[i] + skip) ==
                           dnnl_success;
    good = good && dnnl_memory_desc_init_by_tag(&open, rank, extent[1] + skip, dnnl_f32, dnnl_format_tag_any) ==
                       dnnl_success;
    dnnl_matmul_desc_t desc;
    good = good &&
           dnnl_matmul_desc_init(&desc, &md[0], g.constant ? &open : &md[1], NULL, &md[2]) == dnnl_success &&
           finish(p, &desc, md, problem->in[0], problem->in[1], g.constant, problem->out);
    return enter(p, good, ret);
}
