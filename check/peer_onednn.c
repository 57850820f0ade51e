/* SPDX-License-Identifier: Apache-2.0 */
/* peer_onednn.c: oneDNN (the 2.x interface) as a peer. A constant operand may have whatever layout it likes best, and
 * is brought into it before the clock runs. */
#include "check/peer_onednn.h"

#include <omp.h>
#include <string.h>

dnnl_engine_t onednn_engine(void)
{
    static dnnl_engine_t only;
    if (!only && dnnl_engine_create(&only, dnnl_cpu, 0) != dnnl_success)
        only = NULL;
    return only;
}

static void run(void *user, int part, int parts)
{
    const struct onednn *const p = user;
    dnnl_primitive_execute(p->primitive, p->stream, p->arguments, p->argument);
    dnnl_stream_wait(p->stream);
}

static void close_peer(void *user)
{
    struct onednn *const p = user;
    for (int i = 0; i < p->memories; i++)
        dnnl_memory_destroy(p->memory[i]);
    if (p->primitive)
        dnnl_primitive_destroy(p->primitive);
    if (p->stream)
        dnnl_stream_destroy(p->stream);
}

struct onednn *onednn_open(struct weft_bench *bench, int threads)
{
    struct onednn *const p = weft_bench_alloc(bench, sizeof *p);
    p->bench = bench;
    omp_set_num_threads(threads); /* the gang says itself how many it wants */
    if (!onednn_engine() || dnnl_stream_create(&p->stream, onednn_engine(), dnnl_stream_default_flags) != dnnl_success)
        return NULL;
    return p;
}

static bool add_memory(struct onednn *p, const dnnl_memory_desc_t *desc, void *data, dnnl_memory_t *ret)
{
    if (dnnl_memory_create(ret, desc, onednn_engine(), data) != dnnl_success)
        return false;
    p->memory[p->memories++] = *ret;
    return true;
}

static bool add_argument(struct onednn *p, int which, const dnnl_memory_desc_t *desc, const void *data)
{
    dnnl_memory_t memory;
    if (!add_memory(p, desc, (void *)data, &memory)) /* oneDNN has no type for what is only read */
        return false;
    p->argument[p->arguments++] = (dnnl_exec_arg_t){which, memory};
    return true;
}

/* Memory for what is described: from where ours comes, so that its pages are no smaller. */
static void *allocate(struct onednn *p, const dnnl_memory_desc_t *desc)
{
    return weft_bench_alloc(p->bench, dnnl_memory_desc_get_size(desc));
}

/* A constant operand, in the layout that the primitive wants. */
static bool add_constant(struct onednn *p, int which, const dnnl_memory_desc_t *given, const dnnl_memory_desc_t *wanted,
                         const void *data)
{
    if (dnnl_memory_desc_equal(given, wanted))
        return add_argument(p, which, given, data);
    dnnl_memory_t from;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
    dnnl_engine_t e = onednn_engine();
    if (!add_argument(p, which, wanted, allocate(p, wanted)) || !add_memory(p, given, (void *)data, &from) ||
        dnnl_reorder_primitive_desc_create(&desc, given, e, wanted, e, NULL) != dnnl_success)
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

bool onednn_describe(dnnl_memory_desc_t *ret, dnnl_data_type_t type, int rank, const int64_t *extent,
                     const int64_t *stride)
{
    dnnl_dims_t extents = {0}, strides = {0};
    memcpy(extents, extent, (size_t)rank * sizeof *extents);
    if (!stride)
        return dnnl_memory_desc_init_by_tag(ret, rank, extents, type, dnnl_format_tag_any) == dnnl_success;
    memcpy(strides, stride, (size_t)rank * sizeof *strides);
    return dnnl_memory_desc_init_by_strides(ret, rank, extents, type, strides) == dnnl_success;
}

bool onednn_finish(struct onednn *p, const void *op_desc, const struct onednn_arrays *arrays)
{
    dnnl_primitive_desc_t desc;
    if (dnnl_primitive_desc_create(&desc, op_desc, NULL, onednn_engine(), NULL) != dnnl_success)
        return false;
    bool good = dnnl_primitive_create(&p->primitive, desc) == dnnl_success;
    const dnnl_memory_desc_t *const md = arrays->md;
    if (arrays->own)
        good = good && add_constant(p, DNNL_ARG_SRC, &md[0], dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0),
                                    arrays->a);
    else
        good = good && add_argument(p, DNNL_ARG_SRC, &md[0], arrays->a);
    if (arrays->b && arrays->constant)
        good = good && add_constant(p, DNNL_ARG_WEIGHTS, &md[1],
                                    dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0), arrays->b);
    else if (arrays->b)
        good = good && add_argument(p, DNNL_ARG_WEIGHTS, &md[1], arrays->b);
    const dnnl_memory_desc_t *const to =
        arrays->own ? dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0) : &md[2];
    good = good && add_argument(p, DNNL_ARG_DST, to, arrays->own ? allocate(p, to) : arrays->out);
    dnnl_primitive_desc_destroy(desc);
    return good;
}

bool onednn_enter(struct onednn *p, bool good, struct weft_contestant *ret)
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
    struct onednn *const p = onednn_open(bench, threads);
    if (!p)
        return false;
    const struct bench_gemm g = bench_gemm_of(problem->c);
    const bool batched = g.batch > 1;
    const int rank = batched ? 3 : 2, skip = batched ? 0 : 1;
    const int64_t extent[][3] = {{g.batch, g.m, g.k}, {g.batch, g.k, g.n}, {g.batch, g.m, g.n}};
    const int64_t stride[][3] = {
        {g.a_size, g.a_transposed ? 1 : g.a_line, g.a_transposed ? g.a_line : 1},
        {g.b_size, g.b_transposed ? 1 : g.b_line, g.b_transposed ? g.b_line : 1},
        {g.c_size, g.c_line, 1},
    };
    struct onednn_arrays arrays = {
        .a = problem->in[0], .b = problem->in[1], .out = problem->out, .constant = g.constant};
    dnnl_memory_desc_t *const md = arrays.md, any;
    bool good = onednn_describe(&any, dnnl_f32, rank, extent[1] + skip, NULL);
    for (int i = 0; i < 3; i++)
        good = good && onednn_describe(&md[i], dnnl_f32, rank, extent[i] + skip, stride[i] + skip);
    dnnl_matmul_desc_t desc;
    good = good &&
           dnnl_matmul_desc_init(&desc, &md[0], g.constant ? &any : &md[1], NULL, &md[2]) == dnnl_success &&
           onednn_finish(p, &desc, &arrays);
    return onednn_enter(p, good, ret);
}

bool bench_onednn_relayout(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                           struct weft_contestant *ret)
{
    const struct bench_relayout r = bench_relayout_of(problem->c);
    const dnnl_data_type_t types[] = {[1] = dnnl_s8, [2] = dnnl_bf16, [4] = dnnl_f32, [8] = dnnl_data_type_undef};
    struct onednn *const p = r.bytes == 8 ? NULL : onednn_open(bench, threads);
    if (!p)
        return false;
    dnnl_memory_desc_t from, to;
    dnnl_primitive_desc_t desc;
    const dnnl_data_type_t type = types[r.bytes];
    bool good = onednn_describe(&from, type, r.rank, r.extent, r.in_stride) &&
                onednn_describe(&to, type, r.rank, r.extent, r.out_stride) &&
                dnnl_reorder_primitive_desc_create(&desc, &from, onednn_engine(), &to, onednn_engine(), NULL) ==
                    dnnl_success;
    if (good) {
        good = dnnl_primitive_create(&p->primitive, desc) == dnnl_success &&
               add_argument(p, DNNL_ARG_FROM, &from, problem->in[0]) &&
               add_argument(p, DNNL_ARG_TO, &to, problem->out);
        dnnl_primitive_desc_destroy(desc);
    }
    return onednn_enter(p, good, ret);
}
