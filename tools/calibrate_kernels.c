/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate_kernels.c: jobs of products, and of kernels that know two orders of channels, each in both, on the shapes
 * of networks: two shapes for a price where one alone would be an accident of its sizes. */
#include "tools/calibrate.h"

/* Strides of [1, c, rows, columns], row-major or channels-last. */
static void set_strides(int64_t stride[5], int64_t c, int64_t rows, int64_t columns, bool last)
{
    stride[0] = c * rows * columns;
    stride[1] = last ? 1 : rows * columns;
    stride[2] = last ? columns * c : columns;
    stride[3] = last ? c : 1;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

static void run_gemm(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    const struct weft_gemm_data data = {.c = j->out, .a = j->in, .b = j->weights, .scratch = scratch};
    weft_gemm_run(&j->with.gemm, &data, part, parts);
}

static void add_gemm(struct calibrate *c, int64_t m, int64_t n, int64_t k)
{
    struct calibrate_job *const j =
        calibrate_add(c, WEFT_PRICE_product, CALIBRATE_RATE, (double)m * (double)n * (double)k);
    struct weft_gemm *const g = &j->with.gemm;
    *g = (struct weft_gemm){.cpu = c->context->target.cpu, .cache = c->cpu.l2, .batch = 1, .m = m, .n = n, .k = k,
                            .a_row = k, .a_col = 1, .b_row = n, .b_col = 1, .c_row = n, .c_col = 1, .b_packed = true,
                            .one_chain = true};
    weft_gemm_prepare(g, c->workers);
    float *const pack = weft_arena_new(&c->arena, weft_gemm_pack_bytes(g));
    weft_gemm_pack(g, pack, c->in);
    j->weights = pack;
    j->scratch = g->scratch;
    j->run = run_gemm;
    j->parts = g->parts;
}

/* --- convolutions ------------------------------------------------------------------------------------------------- */

static const struct shape {
    enum weft_price first;   /* the price row-major; channels-last comes behind it */
    int c, o, groups, size, kernel, stride;
} convolutions[] = {
    {WEFT_PRICE_conv_point_first, 64, 256, 1, 56, 1, 1},
    {WEFT_PRICE_conv_point_first, 512, 128, 1, 28, 1, 1},
    {WEFT_PRICE_conv_point_first, 256, 1024, 1, 14, 1, 1},
    {WEFT_PRICE_conv_winograd_first, 64, 64, 1, 56, 3, 1},
    {WEFT_PRICE_conv_winograd_first, 256, 256, 1, 14, 3, 1},
    {WEFT_PRICE_conv_direct_first, 64, 128, 1, 56, 3, 2},
    {WEFT_PRICE_conv_direct_first, 256, 256, 1, 14, 3, 2},
    {WEFT_PRICE_conv_grouped_first, 128, 128, 32, 28, 3, 1},
    {WEFT_PRICE_depth_small_wide_first, 96, 96, 96, 56, 3, 1},
    {WEFT_PRICE_depth_small_wide_first, 192, 192, 192, 28, 3, 1},
    {WEFT_PRICE_depth_small_narrow_first, 384, 384, 384, 14, 3, 1},
    {WEFT_PRICE_depth_small_narrow_first, 960, 960, 960, 7, 3, 1},
    {WEFT_PRICE_depth_large_wide_first, 96, 96, 96, 56, 7, 1},
    {WEFT_PRICE_depth_large_wide_first, 240, 240, 240, 28, 5, 1},
    {WEFT_PRICE_depth_large_narrow_first, 384, 384, 384, 14, 7, 1},
    {WEFT_PRICE_depth_large_narrow_first, 1152, 1152, 1152, 7, 5, 1},
};

static void run_conv(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    const struct weft_conv_data data = {.y = j->out, .x = j->in, .w = j->weights, .scratch = scratch};
    weft_conv_run(&j->with.conv, &data, part, parts);
}

static void add_conv(struct calibrate *c, const struct shape *s, bool last)
{
    const int64_t out = (s->size - 1) / s->stride + 1, taps = s->kernel * s->kernel;
    const double products = (double)(s->o * out * out) * (double)(s->c / s->groups * taps);
    struct calibrate_job *const j = calibrate_add(c, s->first + (enum weft_price)last, CALIBRATE_RATE, products);
    struct weft_conv *const v = &j->with.conv;
    *v = (struct weft_conv){.cpu = c->context->target.cpu, .arithmetic = WEFT_CONV_F2, .spatial = 2, .n = 1,
                            .c = s->c, .o = s->o, .groups = s->groups, .w_packed = true};
    for (int i = 0; i < 2; i++) {
        v->in_extent[i] = s->size, v->out_extent[i] = out;
        v->kernel[i] = s->kernel, v->pad[i] = s->kernel / 2;
        v->stride[i] = s->stride, v->dilation[i] = 1;
    }
    set_strides(v->x_stride, s->c, s->size, s->size, last);
    set_strides(v->y_stride, s->o, out, out, last);
    set_strides(v->w_stride, s->c / s->groups, s->kernel, s->kernel, false);
    weft_conv_prepare(v, c->workers);
    float *const pack = weft_arena_new(&c->arena, weft_conv_pack_bytes(v));
    weft_conv_pack(v, pack, c->in);
    j->weights = pack;
    j->scratch = v->scratch;
    j->run = run_conv;
    j->parts = v->parts;
}

/* --- pooling ------------------------------------------------------------------------------------------------------ */

static void run_pool(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    weft_pool_run(&j->with.pool, j->out, j->in, part, parts);
}

static void add_pool(struct calibrate *c, enum weft_price first, int channels, int size, int kernel, int stride,
                     bool last)
{
    const int64_t pad = (kernel - 1) / 2, out = (size + 2 * pad - kernel) / stride + 1;
    struct calibrate_job *const j = calibrate_add(c, first + (enum weft_price)last, CALIBRATE_RATE,
                                                  (double)(channels * out * out) * kernel * kernel);
    struct weft_pool *const p = &j->with.pool;
    *p = (struct weft_pool){.cpu = c->context->target.cpu, .spatial = 2, .n = 1, .c = channels};
    for (int i = 0; i < 2; i++) {
        p->in_extent[i] = size, p->out_extent[i] = out, p->kernel[i] = kernel;
        p->stride[i] = stride, p->dilation[i] = 1, p->pad[i] = p->pad_after[i] = pad;
    }
    set_strides(p->in_stride, channels, size, size, last);
    set_strides(p->out_stride, channels, out, out, last);
    weft_pool_prepare(p, c->workers);
    j->run = run_pool;
    j->parts = p->parts;
}

/* --- resizes: 28x28 to 56x56 -------------------------------------------------------------------------------------- */

enum { LARGE = WEFT_REPEAT_COLUMNS, SMALL = LARGE / 2, RESIZED_CHANNELS = WEFT_REPEAT_CHANNELS };

static void run_blend(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    weft_blend_run(&j->with.blend, j->out, j->in, &j->blend_table[0], &j->blend_table[1], scratch, part, parts);
}

static void run_table(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    weft_table_run(&j->with.table, j->out, j->in, j->places, NULL, part, parts);
}

/* Two taps for each result, `step` apart in memory. */
static struct weft_blend_table linear_table(struct calibrate *c, int64_t step)
{
    int32_t *const count = weft_new(&c->arena, int32_t, LARGE);
    int64_t *const place = weft_new(&c->arena, int64_t, 2 * LARGE);
    float *const weight = weft_new(&c->arena, float, 2 * LARGE);
    for (int i = 0; i < LARGE; i++) {
        const int64_t low = i / 2 < SMALL - 1 ? i / 2 : SMALL - 2;
        count[i] = 2;
        place[2 * i] = low * step, place[2 * i + 1] = (low + 1) * step;
        weight[2 * i] = i % 2 ? 0.25f : 0.75f, weight[2 * i + 1] = 1 - weight[2 * i];
    }
    return (struct weft_blend_table){.taps = 2, .count = count, .place = place, .weight = weight};
}

static void add_blend(struct calibrate *c, bool last)
{
    int64_t in[5], out[5];
    set_strides(in, RESIZED_CHANNELS, SMALL, SMALL, last);
    set_strides(out, RESIZED_CHANNELS, LARGE, LARGE, last);
    struct calibrate_job *const j = calibrate_add(c, WEFT_PRICE_blend_first + (enum weft_price)last, CALIBRATE_RATE,
                                                  (double)(RESIZED_CHANNELS * LARGE * LARGE));
    struct weft_blend *const b = &j->with.blend;
    *b = (struct weft_blend){.cpu = c->context->target.cpu, .rows = LARGE, .columns = LARGE, .in_columns = SMALL,
                             .row_out = out[2], .column_out = out[3], .column_in = in[3],
                             .inner = last ? RESIZED_CHANNELS : 1, .outer = last ? 0 : 1,
                             .extent = {RESIZED_CHANNELS}, .out_stride = {out[1]}, .in_stride = {in[1]}};
    weft_blend_prepare(b, c->workers);
    struct weft_blend_table *const table = weft_new(&c->arena, struct weft_blend_table, 2);
    table[0] = linear_table(c, in[2]);
    table[1] = linear_table(c, b->inner);
    j->blend_table = table;
    j->scratch = b->scratch;
    j->run = run_blend;
    j->parts = b->parts;
}

static void add_table(struct calibrate *c, bool last)
{
    int64_t in[5], out[5];
    const int64_t extent[] = {1, RESIZED_CHANNELS, LARGE, LARGE};
    set_strides(in, RESIZED_CHANNELS, SMALL, SMALL, last);
    set_strides(out, RESIZED_CHANNELS, LARGE, LARGE, last);
    struct calibrate_job *const j = calibrate_add(c, WEFT_PRICE_repeat_first + (enum weft_price)last, CALIBRATE_RATE,
                                                  (double)(RESIZED_CHANNELS * LARGE * LARGE));
    struct weft_table *const t = &j->with.table;
    const int64_t **const places = weft_new(&c->arena, const int64_t *, 4);
    *t = (struct weft_table){.cpu = c->context->target.cpu, .bytes = 4, .rank = 4};
    for (int axis = 0; axis < 4; axis++) {
        int64_t *const place = weft_new(&c->arena, int64_t, extent[axis]);
        for (int64_t i = 0; i < extent[axis]; i++)
            place[i] = (axis < 2 ? i : i / 2) * in[axis];
        places[axis] = place;
        t->extent[axis] = extent[axis];
        t->out_stride[axis] = out[axis];
    }
    weft_table_prepare(t, c->workers);
    j->places = places;
    j->run = run_table;
    j->parts = t->parts;
}

/* --- sampling: 28x28 at 56x56 points ------------------------------------------------------------------------------ */

static void run_sample(const struct calibrate_job *j, void *scratch, int part, int parts)
{
    weft_sample_run(&j->with.sample, j->out, j->in, j->weights, part, parts);
}

/* Points all over the image, as an image that is enlarged and somewhat turned has them. */
static const float *turned_grid(struct calibrate *c)
{
    float *const grid = weft_new(&c->arena, float, 2 * LARGE * LARGE);
    for (int i = 0; i < LARGE * LARGE; i++) {
        const float y = (float)(i / LARGE) / LARGE - 0.5f, x = (float)(i % LARGE) / LARGE - 0.5f;
        grid[2 * i] = 1.3f * x - 0.4f * y;
        grid[2 * i + 1] = 1.3f * y + 0.4f * x;
    }
    return grid;
}

static void add_sample(struct calibrate *c, bool last)
{
    int64_t in[5], out[5];
    set_strides(in, WEFT_SAMPLE_CHANNELS, SMALL, SMALL, last);
    set_strides(out, WEFT_SAMPLE_CHANNELS, LARGE, LARGE, last);
    struct calibrate_job *const j = calibrate_add(c, WEFT_PRICE_sample_first + (enum weft_price)last, CALIBRATE_RATE,
                                                  (double)(WEFT_SAMPLE_CHANNELS * LARGE * LARGE));
    struct weft_sample *const s = &j->with.sample;
    *s = (struct weft_sample){.cpu = c->context->target.cpu, .images = 1, .channels = WEFT_SAMPLE_CHANNELS,
                              .extent = {SMALL, SMALL}, .points = {LARGE, LARGE}, .in_channel = in[1],
                              .in = {in[2], in[3]}, .grid = {2 * LARGE, 2}, .grid_axis = 1, .out_channel = out[1],
                              .out_point = {out[2], out[3]}};
    weft_sample_prepare(s, c->workers);
    j->weights = turned_grid(c);
    j->run = run_sample;
    j->parts = s->parts;
}

void calibrate_add_products(struct calibrate *c)
{
    add_gemm(c, 256, 512, 512);
    add_gemm(c, 196, 768, 768);
}

void calibrate_add_kernels(struct calibrate *c)
{
    calibrate_add_products(c);
    for (int last = 0; last < 2; last++) {
        for (size_t i = 0; i < sizeof convolutions / sizeof convolutions[0]; i++)
            add_conv(c, &convolutions[i], last);
        add_pool(c, WEFT_PRICE_pool_wide_first, 64, 112, 3, 2, last);
        add_pool(c, WEFT_PRICE_pool_wide_first, 128, 56, 2, 2, last);
        add_pool(c, WEFT_PRICE_pool_narrow_first, 256, 14, 3, 1, last);
        add_pool(c, WEFT_PRICE_pool_narrow_first, 512, 14, 2, 2, last);
        add_blend(c, last);
        add_table(c, last);
        add_sample(c, last);
    }
}
