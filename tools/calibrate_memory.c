/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_memory.c: jobs that only move: streams by level of memory, other patterns of access, conversions, and
 * what a step costs that does next to nothing. */
#include "tools/calibrate.h"

#include <string.h>

static void run_map(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    const void *in[WEFT_K_MAX_IN] = {j->in, j->in};
    weft_map_run(&j->with.map, j->out, in, part, parts);
}

static void run_copy(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    weft_copy_run(&j->with.copy, j->out, j->in, part, parts);
}

static void run_reduce(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    weft_reduce_run(&j->with.reduce, j->out, j->in, NULL, part, parts);
}

static void run_along(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    weft_along_run(&j->with.along, j->out, NULL, j->in, scratch, part, parts);
}

/* --- jobs --------------------------------------------------------------------------------------------------------- */

/* Does an array of these strides lie in one of those that all jobs share? */
static bool fits(const struct calibrate *c, int rank, const int64_t *extent, const int64_t *stride)
{
    size_t last = 0;
    for (int i = 0; i < rank; i++)
        last += (size_t)((extent[i] - 1) * stride[i]);
    return last < c->floats;
}

/* out[i, k, m] = relu(in[i, k, m]) by these strides. */
static struct calibrate_job *add_map(struct calibrate *c, enum weft_price price, enum calibrate_how how,
                                     const int64_t extent[3], const int64_t out[3], const int64_t in[3])
{
    weft_assert(fits(c, 3, extent, out) && fits(c, 3, extent, in));
    struct calibrate_job *const j =
        calibrate_add(c, price, how, 4.0 * (double)(extent[0] * extent[1] * extent[2]));
    struct weft_map *const map = &j->with.map;
    *map = (struct weft_map){.kernel = weft_strip_find("relu", WEFT_K_F32, WEFT_K_F32, c->context->target.cpu),
                             .inputs = 1, .rank = 3, .bytes = {4, 4}};
    for (int i = 0; i < 3; i++) {
        map->extent[i] = extent[i];
        map->stride[0][i] = out[i];
        map->stride[1][i] = in[i];
    }
    weft_map_prepare(map, c->workers);
    j->run = run_map;
    j->parts = map->parts;
    return j;
}

static struct calibrate_job *add_copy(struct calibrate *c, enum weft_price price, enum calibrate_how how, int rank,
                                      const int64_t *extent, const int64_t *in)
{
    double elements = 1;
    for (int i = 0; i < rank; i++)
        elements *= (double)extent[i];
    struct calibrate_job *const j = calibrate_add(c, price, how, 4 * elements);
    struct weft_copy *const copy = &j->with.copy;
    *copy = (struct weft_copy){.bytes = 4, .rank = rank, .cpu = c->context->target.cpu, .cache = c->cpu.l3};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; stride *= extent[i--]) {
        copy->extent[i] = extent[i];
        copy->out_stride[i] = stride;
        copy->in_stride[i] = in[i];
    }
    weft_assert(fits(c, rank, extent, in) && fits(c, rank, extent, copy->out_stride));
    weft_copy_prepare(copy, c->workers);
    j->run = run_copy;
    j->parts = copy->parts;
    return j;
}

/* Sums that run along the first axis of a matrix; operand, result or none of them is stored by columns. */
static struct calibrate_job *add_along(struct calibrate *c, enum weft_price price, enum calibrate_how how,
                                       int64_t rows, int64_t columns, bool in, bool out)
{
    weft_assert((size_t)(rows * columns) <= c->floats);
    struct calibrate_job *const j = calibrate_add(c, price, how, 4.0 * (double)(rows * columns));
    struct weft_along *const a = &j->with.along;
    *a = (struct weft_along){.op = WEFT_K_CUMSUM, .dtype = WEFT_K_F32, .cpu = c->context->target.cpu, .rank = 1,
                             .n = rows, .in_step = in ? 1 : columns, .out_step = out ? 1 : columns,
                             .extent = {columns}, .in_stride = {in ? rows : 1}, .out_stride = {out ? rows : 1}};
    weft_along_prepare(a, c->workers);
    j->scratch = a->scratch;
    j->run = run_along;
    j->parts = a->parts;
    return j;
}

static void add_reading(struct calibrate *c, enum weft_price price, int64_t floats)
{
    weft_assert((size_t)floats <= c->floats);
    const int64_t rows = 64, columns = floats / rows;
    struct calibrate_job *const j = calibrate_add(c, price, CALIBRATE_RATE, 4.0 * (double)(rows * columns));
    struct weft_reduce *const r = &j->with.reduce;
    *r = (struct weft_reduce){.op = WEFT_K_MAX, .in_dtype = WEFT_K_F32, .out_dtype = WEFT_K_F32,
                              .cpu = c->context->target.cpu, .kept = 1, .reduced = 1, .kept_extent = {rows},
                              .reduced_extent = {columns}, .in_kept = {columns}, .in_reduced = {1}, .out_stride = {1}};
    weft_reduce_prepare(r, c->workers);
    weft_assert(r->shared == 0);
    j->run = run_reduce;
    j->parts = r->parts;
}

static void add_level(struct calibrate *c, int level, int64_t floats)
{
    const int64_t extent[] = {1, 64, floats / 64}, row[] = {floats, floats / 64, 1}, same[] = {0, 0, 0};
    add_reading(c, WEFT_PRICE_read_private + (enum weft_price)level, floats);
    add_map(c, WEFT_PRICE_write_private + (enum weft_price)level, CALIBRATE_RATE, extent, row, same);
    add_copy(c, WEFT_PRICE_copy_private + (enum weft_price)level, CALIBRATE_RATE, 3, extent, row);
}

/* Rows of 32 elements with a number each, beside rows that all have the same ones. */
static void add_calls(struct calibrate *c, int64_t floats)
{
    const int64_t length = 32, rows = floats / length, each[] = {1, 0}, same[] = {0, 1};
    for (int i = 0; i < 2; i++) {
        struct calibrate_job *const j = calibrate_add(c, i ? WEFT_PRICE_strip_call : WEFT_PRICE_COUNT,
                                                      i ? CALIBRATE_EACH : CALIBRATE_NOTHING, (double)rows);
        struct weft_map *const map = &j->with.map;
        *map = (struct weft_map){.kernel = weft_strip_find("add", WEFT_K_F32, WEFT_K_F32, c->context->target.cpu),
                                 .inputs = 2, .rank = 2, .bytes = {4, 4, 4}, .extent = {rows, length},
                                 .stride = {{length, 1}, {length, 1}}};
        for (int axis = 0; axis < 2; axis++)
            map->stride[2][axis] = i ? each[axis] : same[axis];
        weft_map_prepare(map, c->workers);
        j->run = run_map;
        j->parts = map->parts;
        j->beside = c->jobs - 2;
    }
}

/* Lines of 32 terms, beside columns of as many: so many columns that no kernel cuts their terms into slices, which
 * would be another loop, with memory of its own. */
static void add_lines(struct calibrate *c, int64_t floats)
{
    enum { LENGTH = 32, FEWEST_ROWS = 4096 };
    const int64_t length = LENGTH, rows = floats / LENGTH > FEWEST_ROWS ? floats / LENGTH : FEWEST_ROWS;
    weft_assert((size_t)(rows * length) <= c->floats);
    for (int i = 0; i < 2; i++) {
        struct calibrate_job *const j = calibrate_add(c, i ? WEFT_PRICE_reduce_line : WEFT_PRICE_COUNT,
                                                      i ? CALIBRATE_EACH : CALIBRATE_NOTHING, (double)rows);
        struct weft_reduce *const r = &j->with.reduce;
        *r = (struct weft_reduce){.op = WEFT_K_SUM, .in_dtype = WEFT_K_F32, .out_dtype = WEFT_K_F32,
                                  .cpu = c->context->target.cpu, .kept = 1, .reduced = 1, .kept_extent = {rows},
                                  .reduced_extent = {length}, .in_kept = {i ? length : 1},
                                  .in_reduced = {i ? 1 : rows}, .out_stride = {1}};
        weft_reduce_prepare(r, c->workers);
        weft_assert(r->shared == 0);
        j->run = run_reduce;
        j->parts = r->parts;
        j->beside = c->jobs - 2;
    }
}

static void add_step(struct calibrate *c)
{
    static const int64_t extent[] = {1, 1, 16}, row[] = {16, 16, 1};
    struct calibrate_job *const j = add_map(c, WEFT_PRICE_step, CALIBRATE_STEP, extent, row, row);
    j->meets = true;
}

/* --- patterns ----------------------------------------------------------------------------------------------------- */

/* In the shared cache, where activations of networks live: matrices of 64 rows, runs of 64 elements. */
static void add_patterns(struct calibrate *c, int64_t floats)
{
    const int64_t n = floats / 64, b = n / 64;
    const int64_t extent[] = {1, 64, n}, row[] = {floats, n, 1}, across[] = {floats, 1, 64};
    const int64_t blocks[] = {64, b, 64}, packed[] = {n, 64, 1}, runs[] = {64, 4096, 1};
    const int64_t rows[] = {1, n, 64}, dense[] = {floats, 64, 1}, apart[] = {floats, 128, 1};

    const int plain = c->jobs;
    add_map(c, WEFT_PRICE_COUNT, CALIBRATE_NOTHING, extent, row, row);
    struct calibrate_job *const other[] = {
        add_map(c, WEFT_PRICE_access_runs, CALIBRATE_EXTRA, blocks, packed, runs),
        add_map(c, WEFT_PRICE_access_strided, CALIBRATE_EXTRA, extent, row, across),
        add_map(c, WEFT_PRICE_access_gaps, CALIBRATE_EXTRA, rows, apart, dense),
    };
    for (int i = 0; i < 3; i++) {
        other[i]->beside = plain;
        other[i]->streamed = i == 2 ? WEFT_PRICE_write_shared : WEFT_PRICE_read_shared;
    }

    const int summed = c->jobs;
    add_along(c, WEFT_PRICE_COUNT, CALIBRATE_NOTHING, 512, floats / 512, false, false);
    for (int i = 0; i < 4; i++) { /* the mean is the price of all else */
        const bool out = i % 2;
        const enum weft_price price = i < 2 ? WEFT_PRICE_access_along
                                      : out ? WEFT_PRICE_access_to_lines : WEFT_PRICE_access_from_lines;
        struct calibrate_job *const turned = add_along(c, price, CALIBRATE_EXTRA, 512, floats / 512, !out, out);
        turned->beside = summed;
        turned->streamed = WEFT_PRICE_read_shared;
    }

}

/* Copies of their own, beside a plain one of the same array. */
static void add_conversions(struct calibrate *c, int64_t floats, int far)
{
    const int copied = c->jobs;
    const enum weft_price runs = WEFT_PRICE_convert_runs_near + (enum weft_price)far;
    const enum weft_price lines = WEFT_PRICE_convert_lines_near + (enum weft_price)far;
    const enum weft_price transpose = WEFT_PRICE_convert_transpose_near + (enum weft_price)far;
    const enum weft_price deal = WEFT_PRICE_convert_deal_near + (enum weft_price)far;
    const enum weft_price weave = WEFT_PRICE_convert_weave_near + (enum weft_price)far;
    const enum weft_price general = WEFT_PRICE_convert_general_near + (enum weft_price)far;
    add_copy(c, WEFT_PRICE_COUNT, CALIBRATE_NOTHING, 1, &floats, &(int64_t){1});
    /* heads of 64 and of 16: runs of 256 and 64 bytes */
    const int64_t heads[] = {12, floats / 768, 64}, in_heads[] = {64, 768, 1};
    const int64_t small[] = {12, floats / 192, 16}, in_small[] = {16, 192, 1};
    add_copy(c, runs, CALIBRATE_SHARE, 3, heads, in_heads);
    add_copy(c, lines, CALIBRATE_SHARE, 3, small, in_small);
    const int64_t n = floats / 64, turned[] = {64, n}, across[] = {1, 64};
    const int64_t reversed[] = {16, 16, 16, n / 64}, in_reversed[] = {1, 16, 256, 4096};
    add_copy(c, transpose, CALIBRATE_SHARE, 2, turned, across);
    add_copy(c, general, CALIBRATE_SHARE, 4, reversed, in_reversed);
    for (int64_t few = 3; few <= 8; few += 5) {
        const int64_t few_lines[] = {few, floats / few}, by_rows[] = {1, few};
        const int64_t rows[] = {floats / few, few}, by_lines[] = {1, floats / few};
        add_copy(c, deal, CALIBRATE_SHARE, 2, few_lines, by_rows);
        add_copy(c, weave, CALIBRATE_SHARE, 2, rows, by_lines);
    }
    for (int i = copied + 1; i < c->jobs; i++)
        c->job[i].beside = copied;
    const int64_t little[] = {8, 128}, single[] = {1, 8}, plain[] = {128, 1};
    add_copy(c, WEFT_PRICE_COUNT, CALIBRATE_NOTHING, 2, little, plain);
    struct calibrate_job *const turn =
        add_copy(c, WEFT_PRICE_convert_single_near + (enum weft_price)far, CALIBRATE_SHARE, 2, little, single);
    turn->beside = c->jobs - 2;
}

/* A power of two, so that matrices divide evenly. */
static int64_t floats_in(size_t bytes)
{
    int64_t floats = 4096;
    while ((size_t)floats * 8 <= bytes)
        floats *= 2;
    return floats;
}

size_t calibrate_memory_floats(const struct weft_cpu *cpu)
{
    enum { MOST = 64 << 20, LEAST = 4 << 20 };
    const size_t twice_shared = cpu->l3 / 2, in_no_private = (size_t)floats_in(2 * cpu->l2) * 2;
    const size_t wanted = twice_shared < LEAST ? LEAST : twice_shared > MOST ? MOST : twice_shared;
    return wanted > in_no_private ? wanted : in_no_private;
}

void calibrate_add_readings(struct calibrate *c)
{
    add_reading(c, WEFT_PRICE_read_private, floats_in(c->cpu.l2 / 4));
    add_reading(c, WEFT_PRICE_read_memory, (int64_t)c->floats);
}

void calibrate_add_memory(struct calibrate *c)
{
    const int64_t shared = floats_in(c->cpu.l3 / 4);
    const int64_t least = floats_in(2 * c->cpu.l2) * 2; /* is in no private cache, even shared out */
    add_level(c, 0, floats_in(c->cpu.l2 / 4));
    add_level(c, 1, shared > least ? shared : least);
    add_level(c, 2, (int64_t)c->floats);
    add_patterns(c, floats_in(2 * c->cpu.l2));
    add_conversions(c, floats_in(c->cpu.l2 / 4), /* far= */ 0);
    add_conversions(c, floats_in(2 * c->cpu.l2), /* far= */ 1);
    add_calls(c, floats_in(c->cpu.l2 / 4));
    add_lines(c, floats_in(c->cpu.l2 / 4));
    add_step(c);
}
