/* SPDX-License-Identifier: Apache-2.0 */
/* step_pool.c: windows: by themselves, or as heads of groups. Then they go band by band (kernels/strip/pool_band.h): a
 * program computes the rows of the operand that a band reads (sched/prologue.h), the kernel the rows of results, and
 * another program goes on with these (sched/epilogue.h). What stands between them is in scratch memory. */
#include "kernels/strip/pool_band.h"
#include "sched/prologue.h"
#include "sched/step.h"

struct pool_step {
    struct weft_pool_bands bands; /* only the pool, if it is by itself */
    struct weft_program *makes, *program; /* in front of it, behind it; or NULL */
    size_t makes_scratch, program_scratch, in_scratch, out_scratch; /* bytes from the begin of scratch memory */
};

enum { LINE = 64, NEAR_SHARE = 8, FAR_SHARE = 2 }; /* of caches, what bands may fill: there are other arrays, too */

void weft_step_read_pool(const struct weft_bind *bind, const struct weft_tensor *out, struct weft_pool *pool)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor in = weft_bind_tensor(bind, weft_operand(g, n, 0));
    const bool mean = weft_opcode_of(g, n) == WEFT_OP_mean_pool;
    const int spatial = in.rank - 2;
    *pool = (struct weft_pool){.mean = mean, .count_pad = mean && weft_attr_int(g, n, WEFT_ATTR_count_pad),
                               .cpu = weft_bind_cpu(bind), .spatial = spatial, .n = in.extent[0], .c = in.extent[1]};
    for (int i = 0; i < spatial + 2; i++) {
        pool->in_stride[i] = in.stride[i];
        pool->out_stride[i] = out->stride[i];
    }
    for (int i = 0; i < spatial; i++) {
        const unsigned axis = (unsigned)i;
        pool->in_extent[i] = in.extent[2 + i];
        pool->out_extent[i] = out->extent[2 + i];
        pool->kernel[i] = weft_bind_attr(bind, WEFT_ATTR_kernel, axis);
        pool->stride[i] = weft_bind_attr(bind, WEFT_ATTR_stride, axis);
        pool->dilation[i] = weft_bind_attr(bind, WEFT_ATTR_dilation, axis);
        pool->pad[i] = weft_bind_attr(bind, WEFT_ATTR_pad, axis);
        pool->pad_after[i] = weft_bind_attr(bind, WEFT_ATTR_pad, axis + (unsigned)spatial);
    }
}

static size_t take_scratch(struct weft_bind *bind, size_t bytes)
{
    const size_t at = (bind->scratch + LINE - 1) / LINE * LINE;
    bind->scratch = at + bytes;
    return at;
}

/* Rows of pieces are planes, and columns what they consist of; where channels lie side by side, rows are pixels. */
static int list_dims(const struct weft_pool_bands *bands, int8_t *order)
{
    int count = 1;
    order[0] = 0;
    if (!bands->inside)
        order[count++] = 1;
    for (int i = 0; i < bands->pool.spatial; i++)
        order[count++] = (int8_t)(2 + i);
    if (bands->inside)
        order[count] = 1;
    return bands->inside ? count : 2;
}

/* Results that are finished stand in the memory of a result of the step, whose lines so come while the window computes;
 * in scratch memory where there is none for them, or where it lies in another order than the operand. */
static bool stand_apart(const struct weft_bind *bind, const struct weft_pool *pool)
{
    const struct weft_step *const step = bind->step;
    const bool turned = !step->prologue && (pool->in_stride[1] == 1) != (pool->out_stride[1] == 1);
    const bool shown = weft_is(step->out[0], weft_result(bind->graph, step->node, 0));
    return step->epilogue->is_aside || (turned && !shown);
}

static void bind_bands(struct weft_bind *bind, struct pool_step *s)
{
    struct weft_pool_bands *const b = &s->bands;
    const struct weft_step *const step = bind->step;
    int8_t order[WEFT_MAX_RANK];
    char *const memory = (char *)s + (sizeof *s + LINE - 1) / LINE * LINE;
    b->makes = step->prologue != NULL;
    b->apart = step->epilogue->form && stand_apart(bind, &b->pool);
    b->near = bind->target->l2 / NEAR_SHARE;
    b->far = bind->target->l2 / FAR_SHARE;
    weft_pool_prepare_bands(b, bind->workers);
    const int rank = 2 + b->pool.spatial, rows = list_dims(b, order);
    if (b->makes) {
        struct weft_tensor operand = weft_bind_tensor(bind, weft_operand(bind->graph, step->node, 0));
        for (int d = 0; d < rank; d++)
            operand.stride[d] = b->pool.in_stride[d];
        s->makes = weft_prologue_bind(bind, &operand, order, rows, rank - rows, memory, &s->makes_scratch);
        s->in_scratch = take_scratch(bind, b->in_bytes);
    }
    if (step->epilogue->form)
        s->program = weft_epilogue_bind_apart(bind, b->pool.out_stride, order, rows, rank - rows,
                                              memory + weft_prologue_bytes(step), &s->program_scratch);
    if (b->apart)
        s->out_scratch = take_scratch(bind, b->out_bytes);
}

static void bind_pool(struct weft_bind *bind, void *descriptor)
{
    struct pool_step *const s = descriptor;
    *s = (struct pool_step){.makes = NULL};
    const struct weft_tensor out = weft_epilogue_result(bind);
    weft_step_read_pool(bind, &out, &s->bands.pool);
    if (bind->step->epilogue)
        bind_bands(bind, s);
    else
        weft_pool_prepare(&s->bands.pool, bind->workers);
    bind->parts = s->bands.pool.parts;
}

static size_t bytes_pool(const struct weft_step *step)
{
    return (sizeof(struct pool_step) + LINE - 1) / LINE * LINE + weft_prologue_bytes(step) + weft_epilogue_bytes(step);
}

static const struct weft_program *program_pool(const void *descriptor)
{
    return ((const struct pool_step *)descriptor)->program;
}

static const struct weft_program *makes_pool(const void *descriptor)
{
    return ((const struct pool_step *)descriptor)->makes;
}

/* --- what it takes ------------------------------------------------------------------------------------------------ */

enum { SCATTERED = 16 };

/* Vectors across channels that are not filled, of f32; few channels are walked like any strides. */
static double pool_waste(int64_t channels, uint32_t cpu)
{
    const int64_t lanes = cpu & WEFT_CPU_AVX512 ? 16 : 8;
    return channels < WEFT_POOL_INSIDE ? SCATTERED : channels < lanes ? (double)lanes / (double)channels : 1;
}

double weft_step_pool_taps(int rank, const int64_t *extent, const int64_t *kernel, bool last, uint32_t cpu,
                           enum weft_price *ret_price)
{
    double taps = 1;
    for (int i = 0; i < rank; i++)
        taps *= (double)extent[i];
    for (int i = 2; i < rank; i++)
        taps *= (double)kernel[i - 2];
    *ret_price = (extent[rank - 1] >= WEFT_WIDE_ROW ? WEFT_PRICE_pool_wide_first : WEFT_PRICE_pool_narrow_first) + last;
    return last ? taps * pool_waste(extent[1], cpu) : taps;
}

enum { BAND_NS = 200 }; /* of a band besides: its loops begin anew (an estimate for Zen 4) */

static double points_of(const struct weft_pool *pool, const int64_t *extent)
{
    double points = (double)pool->n * (double)pool->c;
    for (int i = 0; i < pool->spatial; i++)
        points *= (double)extent[i];
    return points;
}

/* On one worker: bands, calls and arithmetic of programs, and what they make or read in the nearest caches. Rows that
 * are kept from band to band are moved there. */
static double bands_ns(const struct weft_bind *bind, const struct pool_step *s)
{
    const struct weft_pool_bands *const b = &s->bands;
    const double bands = weft_pool_count_bands(b);
    double ns = bands * BAND_NS;
    if (s->makes)
        ns += b->made_again * weft_program_arithmetic_ns(s->makes) + weft_program_pieces_ns(s->makes, bands) +
              weft_prologue_near_ns(bind, b->read_again * points_of(&b->pool, b->pool.in_extent));
    if (s->program)
        ns += weft_epilogue_ns(bind, s->program, 0) + weft_program_pieces_ns(s->program, bands) +
              weft_prologue_near_ns(bind, points_of(&b->pool, b->pool.out_extent));
    return ns;
}

static void account_pool(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct pool_step *const s = descriptor;
    const struct weft_pool *const pool = &s->bands.pool;
    int64_t extent[WEFT_MAX_RANK] = {pool->n, pool->c};
    for (int i = 0; i < pool->spatial; i++)
        extent[2 + i] = pool->out_extent[i];
    *ret = (struct weft_account){.signature = {.arithmetic = WEFT_ARITHMETIC_SUMS}};
    ret->count = weft_step_pool_taps(2 + pool->spatial, extent, pool->kernel,
                                     /* last= */ pool->out_stride[1] == 1, pool->cpu, &ret->price);
    if (bind->step->epilogue)
        ret->overhead_ns = bands_ns(bind, s);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static int64_t pixels_of(const int64_t *extent, int spatial)
{
    int64_t pixels = 1;
    for (int i = 0; i < spatial; i++)
        pixels *= extent[i];
    return pixels;
}

/* The operand of a band: whole planes at once, else the rows of a slice after the other. */
static void make_operand(const struct weft_pool_bands *b, struct weft_prologue_run *run,
                         const struct weft_pool_band *band)
{
    const struct weft_pool *const pool = &b->pool;
    const int spatial = pool->spatial;
    const int64_t pixels = pixels_of(pool->in_extent, spatial), width = pool->in_extent[spatial - 1];
    const int64_t height = spatial > 1 ? pool->in_extent[spatial - 2] : 1;
    const int64_t from = band->read[1][0] + band->kept, rows = band->read[1][1] - from;
    const bool whole = (band->read[0][1] - band->read[0][0]) * rows * width == pixels;
    const int64_t count = whole ? pixels : rows * width;
    for (int64_t d = band->read[0][0]; d < (whole ? band->read[0][0] + 1 : band->read[0][1]); d++) {
        const int64_t first = whole ? 0 : (d * height + from) * width;
        if (b->inside)
            weft_program_run_piece(&run->pieces, band->plane * pixels + first, band->planes * count, band->channel,
                                   band->channels);
        else
            weft_program_run_piece(&run->pieces, band->plane, band->planes, first, count);
    }
}

static void finish_results(const struct weft_pool_bands *b, struct weft_epilogue_run *run,
                           const struct weft_pool_band *band)
{
    const int64_t width = b->pool.out_extent[b->pool.spatial - 1], pixels = b->height * width;
    if (b->inside)
        weft_program_run_piece(&run->pieces, band->at * width, (band->end - band->at) * width, band->channel,
                               band->channels);
    else if (band->planes > 1)
        weft_program_run_piece(&run->pieces, band->plane, band->planes, 0, pixels);
    else
        weft_program_run_piece(&run->pieces, band->plane, 1, band->at * width - band->plane * pixels,
                               (band->end - band->at) * width);
}

static void run_bands(const struct pool_step *s, struct weft_call *call)
{
    const struct weft_pool_bands *const b = &s->bands;
    struct weft_prologue_run before; /* large: filled in only if there is something to do */
    struct weft_epilogue_run behind;
    struct weft_pool_band band;
    float *out = call->out;
    const float *in = b->makes ? NULL : call->in[0];
    bool any = weft_pool_first_band(b, call->part, call->parts, &band);
    if (any && b->makes)
        weft_prologue_begin(&before, s->makes, s->makes_scratch, call);
    if (any && s->program)
        weft_epilogue_begin(&behind, s->program, s->program_scratch, /* aside= */ 0, call);
    for (; any; any = weft_pool_next_band(b, &band)) {
        if (b->makes) {
            if (band.kept)
                weft_pool_move_kept(b, &band, (float *)((char *)call->scratch + s->in_scratch));
            float *const operand = weft_pool_whole((char *)call->scratch + s->in_scratch, band.in_shift);
            weft_prologue_move(&before, call->step, operand);
            make_operand(b, &before, &band);
            in = operand;
        }
        if (b->apart)
            out = weft_pool_whole((char *)call->scratch + s->out_scratch, band.out_shift);
        weft_pool_run_band(b, &band, out, in);
        if (b->apart)
            weft_epilogue_move(&behind, call->step, out);
        if (s->program)
            finish_results(b, &behind, &band);
    }
}

static void run_pool(const void *descriptor, struct weft_call *call)
{
    const struct pool_step *const s = descriptor;
    if (call->step->epilogue)
        run_bands(s, call);
    else
        weft_pool_run(&s->bands.pool, call->out, call->in[0], call->part, call->parts);
}

static uint32_t cpu_pool(const void *descriptor)
{
    return weft_pool_cpu(&((const struct pool_step *)descriptor)->bands.pool);
}

static const char *name_pool(const void *descriptor, const struct weft_step *step)
{
    return weft_pool_name(&((const struct pool_step *)descriptor)->bands.pool);
}

const struct weft_step_kind weft_step_pool = {
    .name = "pool", .traits = WEFT_STEP_STRIDED | WEFT_STEP_FINISHES | WEFT_STEP_BANDS, .bytes = bytes_pool,
    .bind = bind_pool, .run = run_pool, .kernel = name_pool, .cpu = cpu_pool, .program = program_pool,
    .makes = makes_pool, .account = account_pool};
