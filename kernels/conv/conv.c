/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c: shapes, scratch and parts; conv_form.c has the choice of form. The loops are in conv_gemm.inc,
 * conv_depth.inc, slide.inc, windows.inc, grouped.inc, direct.inc, transposed.inc and winograd.inc. weft_conv_shape
 * recomputes what the loops need from the descriptor at each run: some hundred instructions, for a descriptor without
 * hidden state. */
#include "kernels/conv/direct.h"
#include "kernels/conv/phases.h"
#include "kernels/conv/share.h"
#include "kernels/conv/together.h"
#include "kernels/conv/transposed.h"
#include "kernels/conv/winograd.h"

enum {
    PLANE_FLOATS = 6 << 10,    /* of a band of one plane: most of the first-level cache */
    WINDOW_FLOATS = 32 << 10,  /* of a band of sixteen channels: two of its rows or three are in use at a time */
    CHANNEL_FLOATS = 32 << 10, /* of a band of all channels: a part of the second level */
};

const struct weft_conv_kernel weft_conv_kernels[] = {
#define WEFT_CONV(name, cpu, form, cells) {#name, cpu, form, cells, name},
#include "kernels/conv/conv.def"
};
const unsigned weft_conv_kernel_count = sizeof weft_conv_kernels / sizeof *weft_conv_kernels;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

bool weft_conv_is_inside(const struct weft_conv_shape *s)
{
    for (int d = 0; d < 3; d++) {
        const int64_t reach = (s->out[d] - 1) * s->stride[d] + (s->kernel[d] - 1) * s->dilation[d] + 1 - s->pad[d];
        if (s->pad[d] > 0 || reach > s->in[d])
            return false;
    }
    return true;
}

struct weft_conv_shape weft_conv_shape(const struct weft_conv *conv)
{
    struct weft_conv_shape s = {.n = conv->n, .groups = conv->groups, .taps = 1, .pixels = 1};
    s.c = conv->c / conv->groups, s.o = conv->o / conv->groups;
    s.x_n = conv->x_stride[0], s.x_c = conv->x_stride[1];
    s.y_n = conv->y_stride[0], s.y_o = conv->y_stride[1];
    s.w.o = conv->w_stride[conv->transposed], s.w.c = conv->w_stride[!conv->transposed];
    s.w.group = conv->transposed ? s.c * s.w.c : s.o * s.w.o;
    for (int d = 0; d < 3; d++) {
        const int from = d - (3 - conv->spatial);
        s.in[d] = from < 0 ? 1 : conv->in_extent[from], s.out[d] = from < 0 ? 1 : conv->out_extent[from];
        s.kernel[d] = from < 0 ? 1 : conv->kernel[from], s.stride[d] = from < 0 ? 1 : conv->stride[from];
        s.dilation[d] = from < 0 ? 1 : conv->dilation[from], s.pad[d] = from < 0 ? 0 : conv->pad[from];
        s.x_at[d] = from < 0 ? 0 : conv->x_stride[2 + from], s.y_at[d] = from < 0 ? 0 : conv->y_stride[2 + from];
        s.w.tap[d] = from < 0 ? 0 : conv->w_stride[2 + from];
        s.taps *= s.kernel[d], s.pixels *= s.out[d];
    }
    s.k = s.taps * s.c;
    s.line = s.out[2];
    for (int d = 1; d >= 0 && (s.out[d] == 1 || s.y_at[d] == s.line * s.y_at[2]); d--)
        s.line *= s.out[d];
    s.y_rows = s.y_o == 1 && conv->o > 1;
    s.adjoint = conv->transposed && s.stride[0] * s.stride[1] * s.stride[2] > 1;
    for (int d = 0; d < 3 && conv->transposed && !s.adjoint; d++) {
        s.w.first += (s.kernel[d] - 1) * s.w.tap[d];
        s.w.tap[d] = -s.w.tap[d], s.pad[d] = (s.kernel[d] - 1) * s.dilation[d] - s.pad[d];
    }
    s.bordered = s.c > 1 && (s.adjoint || !weft_conv_is_inside(&s));
    return s;
}

static int32_t find(enum weft_conv_form form, uint32_t cpu)
{
    int32_t best = 0;
    for (unsigned i = 0; i < weft_conv_kernel_count; i++) {
        if (weft_conv_kernels[i].form == form && (weft_conv_kernels[i].cpu & ~cpu) == 0)
            best = (int32_t)i;
    }
    return best;
}

/* Flops. */
static double work(const struct weft_conv_shape *s)
{
    return 2.0 * (double)s->n * (double)(s->groups * s->o) * (double)s->pixels * (double)s->k;
}

/* --- what comes after sums ---------------------------------------------------------------------------------------- */

/* Do all pixels of the residual, whose axes have these strides, lie at one stride, as those of a line of y do? */
static bool is_one_line(const struct weft_conv_shape *s, const int64_t step[3])
{
    return (s->out[1] == 1 || step[1] == s->out[2] * step[2]) &&
           (s->out[0] == 1 || step[0] == s->out[1] * s->out[2] * step[2]);
}

static void add_one_by_one(const struct weft_conv_piece *p, const struct weft_clamp *clamp, int64_t first,
                           int64_t count, const float *residual, int64_t channel, int64_t pixel)
{
    for (int64_t j = 0; j < count; j++) {
        float *const to = p->data + (first + j) * p->pixel_stride;
        for (int64_t c = 0; c < p->channels; c++) {
            const float x = to[c * p->channel_stride] + residual[c * channel + j * pixel];
            to[c * p->channel_stride] = clamp->given ? weft_clamped(clamp, x) : x;
        }
    }
}

/* By vectors where y and the residual lie side by side along the same axis, be it channels or pixels: rows of these are
 * finished as those of a product are. */
void weft_conv_add_residual(const struct weft_conv *conv, const struct weft_conv_shape *s,
                            const struct weft_conv_data *data, const struct weft_conv_piece *p)
{
    const int64_t *const stride = conv->r_stride;
    const bool across = p->channel_stride == 1 && (p->channels > 1 || p->pixel_stride != 1);
    int64_t step[3];
    for (int d = 0; d < 3; d++)
        step[d] = d < 3 - conv->spatial ? 0 : stride[2 + d - (3 - conv->spatial)];
    const struct weft_gemm_finish f = {.c_row = across ? p->pixel_stride : p->channel_stride, .c_col = 1,
                                       .r_row = across ? step[2] : stride[1], .r_col = across ? stride[1] : step[2],
                                       .clamp = conv->clamp};
    const bool one_line = is_one_line(s, step);
    for (int64_t i = 0, count; i < p->pixels; i += count) {
        int64_t at[3];
        weft_conv_unravel(s->out, p->pixel + i, at);
        count = one_line ? p->pixels : smaller(s->out[2] - at[2], p->pixels - i);
        float *const to = p->data + i * p->pixel_stride;
        const float *const residual = data->residual + p->image * stride[0] + p->channel * stride[1] +
                                      weft_conv_offset(at, step);
        if (across || p->pixel_stride == 1)
            conv->gemm.kernel->code->finish(&f, to, to, f.c_row, NULL, residual, across ? count : p->channels,
                                            across ? p->channels : count);
        else
            add_one_by_one(p, &conv->clamp, i, count, residual, stride[1], step[2]);
    }
}

/* Does the residual lie as y does? */
static bool lies_beside(const struct weft_conv *conv)
{
    bool same = conv->residual;
    for (int i = 0; i < 2 + conv->spatial; i++) {
        const int64_t extent = i == 0 ? conv->n : i == 1 ? conv->o : conv->out_extent[i - 2];
        same = same && (extent <= 1 || conv->r_stride[i] == conv->y_stride[i]);
    }
    return same;
}

static bool adds_in_registers(enum weft_conv_form form)
{
    return form == WEFT_CONV_POINT_COLUMNS || form == WEFT_CONV_POINT_ROWS || form == WEFT_CONV_COLUMNS ||
           form == WEFT_CONV_DIRECT || form == WEFT_CONV_WINOGRAD_2 || form == WEFT_CONV_WINOGRAD_4;
}

static void hand(const struct weft_conv_point *p, const struct weft_conv_piece *piece)
{
    if (p->conv->residual && !p->conv->beside)
        weft_conv_add_residual(p->conv, p->s, p->data, piece);
    if (p->conv->epilogue)
        p->conv->epilogue(p->data->user, piece);
}

/* The epilogue of POINT's products. Where images are joined, their pixels are one run. */
static void finish_point(void *user, const struct weft_gemm_piece *piece)
{
    const struct weft_conv_point *p = user;
    if (!p->s->y_rows) {
        const struct weft_conv_piece whole = {.data = piece->data, .channel_stride = piece->row,
                                              .pixel_stride = piece->column, .channels = piece->rows,
                                              .pixels = piece->columns, .image = piece->batch,
                                              .channel = p->channel + piece->first_row,
                                              .pixel = p->pixel + piece->first_column};
        hand(p, &whole);
        return;
    }
    for (int64_t i = 0; i < piece->rows;) {
        const int64_t at = p->pixel + piece->first_row + i, pixel = at % p->s->pixels;
        const struct weft_conv_piece part = {.data = piece->data + i * piece->row, .channel_stride = piece->column,
                                             .pixel_stride = piece->row, .channels = piece->columns,
                                             .pixels = smaller(piece->rows - i, p->s->pixels - pixel),
                                             .image = p->image + at / p->s->pixels,
                                             .channel = p->channel + piece->first_column, .pixel = pixel};
        hand(p, &part);
        i += part.pixels;
    }
}

/* The prologue of POINT's products. */
static void make_point(void *user, const struct weft_gemm_piece *piece)
{
    const struct weft_conv_point *const p = user;
    const bool rows = p->s->y_rows;
    const int64_t at = p->pixel + (rows ? piece->first_row : piece->first_column);
    const struct weft_conv_piece made = {.data = piece->data, .channel_stride = rows ? piece->column : piece->row,
                                         .pixel_stride = rows ? piece->row : piece->column,
                                         .channels = rows ? piece->columns : piece->rows,
                                         .pixels = rows ? piece->rows : piece->columns,
                                         .image = p->image + (rows ? at / p->s->pixels : piece->batch),
                                         .channel = rows ? piece->first_column : piece->first_row,
                                         .pixel = rows ? at % p->s->pixels : at};
    p->conv->prologue(p->data->user, &made);
}

/* The product of one group; of one image where y_rows and the images do not join into one run of pixels; of one line
 * where the pixels do not. */
static void prepare_point(struct weft_conv *conv, const struct weft_conv_shape *s, int workers)
{
    struct weft_gemm *g = &conv->gemm;
    g->one_chain = true; /* as in the other forms */
    g->pixels = s->y_rows ? WEFT_GEMM_ROW_PIXELS : WEFT_GEMM_COLUMN_PIXELS;
    g->takes_turns = conv->takes_turns && s->groups == 1;
    g->k = s->c;
    if (s->y_rows) {
        const bool joined = (conv->prologue || s->x_n == s->pixels * s->x_at[2]) && s->line == s->pixels &&
                            s->y_n == s->pixels * s->y_at[2];
        g->batch = 1;
        g->m = joined ? s->n * s->pixels : s->line, g->n = s->o;
        g->a_row = s->x_at[2], g->a_col = s->x_c;
        g->b_row = s->w.c, g->b_col = s->w.o, g->b_packed = conv->w_packed;
        g->c_row = s->y_at[2], g->c_col = s->y_o, g->bias_col = 1;
    } else {
        g->batch = s->n;
        g->m = s->o, g->n = s->line;
        g->a_row = conv->w_packed ? s->k : s->w.o, g->a_col = conv->w_packed ? 1 : s->w.c;
        g->b_batch = s->x_n, g->b_row = s->x_c, g->b_col = s->x_at[2];
        g->c_batch = s->y_n, g->c_row = s->y_o, g->c_col = s->y_at[2], g->bias_row = 1;
    }
    const bool late = conv->residual && !conv->beside;
    g->residual = conv->beside;
    g->r_batch = g->c_batch, g->r_row = g->c_row, g->r_col = g->c_col;
    if (!late)
        g->clamp = conv->clamp;
    g->epilogue = conv->epilogue || late ? finish_point : NULL;
    if (conv->prologue)
        *(s->y_rows ? &g->prologue_a : &g->prologue_b) = make_point;
    weft_gemm_prepare(g, workers);
    conv->scratch = g->scratch;
    const int64_t products = s->groups * (s->pixels / s->line) * (s->y_rows && g->m == s->line ? s->n : 1);
    if (products == 1) {
        conv->parts = g->parts;
        return;
    }
    const int64_t tiles = weft_pieces(g->m, g->kernel->rows) * weft_pieces(g->n, g->kernel->columns);
    conv->parts = weft_gemm_parts(work(s), products * g->batch * tiles, workers);
}

struct weft_windows weft_windows_plan(const struct weft_conv_shape *s, int64_t vectors)
{
    struct weft_windows p = {.pieces = weft_pieces(s->groups * s->o, WEFT_WINDOWS_CHANNELS)};
    p.width = larger(s->out[2], WEFT_WINDOWS_PIXELS);
    p.columns = larger(s->in[2], (p.width - 1) * s->stride[2] + (s->kernel[2] - 1) * s->dilation[2] + 1);
    const int64_t pixel = vectors * WEFT_WINDOWS_CHANNELS, window = (s->kernel[1] - 1) * s->dilation[1] + 1;
    p.rows = smaller(s->out[1], larger(2, (WINDOW_FLOATS / (p.columns * pixel) - window) / s->stride[1] + 1));
    const int64_t in_rows = (p.rows - 1) * s->stride[1] + window, slack = 16; /* pixels: whole turns */
    p.band_size = (in_rows * p.columns + slack) * pixel;
    p.block_size = (p.rows * p.width + slack) * WEFT_WINDOWS_CHANNELS;
    return p;
}

struct weft_conv_band weft_conv_band(const struct weft_conv_shape *s, enum weft_conv_form form)
{
    struct weft_conv_band band = {.columns = (s->out[2] - 1) * s->stride[2] + (s->kernel[2] - 1) * s->dilation[2] + 1};
    const bool planes = form == WEFT_CONV_PLANES;
    band.pitch = planes ? weft_conv_aligned(weft_pieces(band.columns, s->stride[2]) + WEFT_CONV_SLACK) : s->groups;
    band.row = band.pitch * (planes ? s->stride[2] : band.columns);
    const int64_t window = (s->kernel[1] - 1) * s->dilation[1] + 1;
    const int64_t fits = ((planes ? PLANE_FLOATS : CHANNEL_FLOATS) / band.row - window) / s->stride[1] + 1;
    band.rows = smaller(s->out[1], larger(planes ? 4 : 1, fits));
    band.in_rows = (band.rows - 1) * s->stride[1] + window;
    return band;
}

/* Floats of scratch besides weights; units of work that parts may share. */
static int64_t prepare_loops(const struct weft_conv *conv, const struct weft_conv_shape *s, enum weft_conv_form form,
                             int64_t *ret_units)
{
    const struct weft_gemm_kernel *kernel = conv->gemm.kernel;
    const int64_t images = s->n * s->groups, boxes = weft_conv_share_units(conv, s);
    *ret_units = boxes > 0 ? boxes : images * s->o * s->pixels;
    if (weft_winograd_of(form)) {
        const struct weft_winograd plan = weft_winograd_plan(conv, s, weft_winograd_of(form));
        return plan.v_size + plan.m_size + plan.band_size;
    }
    if (form == WEFT_CONV_COLUMNS)
        return s->k * kernel->columns;
    if (form == WEFT_CONV_DIRECT) {
        const struct weft_direct plan = weft_direct_plan(conv, s, 0);
        return plan.band_size + plan.block_size + plan.list_size;
    }
    if (form == WEFT_CONV_PHASES) {
        const struct weft_phases plan = weft_phases_plan(s, kernel->lanes);
        return plan.band_size + plan.list_size;
    }
    if (form == WEFT_CONV_TRANSPOSED) {
        const struct weft_transposed plan = weft_transposed_plan(conv, s);
        return plan.direct.band_size + plan.direct.block_size + plan.direct.list_size;
    }
    if (form == WEFT_CONV_WINDOWS || form == WEFT_CONV_GROUPED_WINDOWS || form == WEFT_CONV_GROUPED) {
        const struct weft_windows plan = weft_windows_plan(s, form == WEFT_CONV_GROUPED ? s->c : 1);
        *ret_units = s->n * s->out[1] * plan.pieces;
        return plan.band_size + plan.block_size;
    }
    if (form == WEFT_CONV_SLIDE) {
        *ret_units = images * s->o * weft_pieces(s->out[1], conv->folds ? weft_conv_rows_together(s) : 1);
        return weft_conv_zeros(s) + (conv->w_packed ? 0 : weft_conv_aligned(s->o * s->k));
    }
    if (form == WEFT_CONV_PLANES || form == WEFT_CONV_CHANNELS) {
        const struct weft_conv_band band = weft_conv_band(s, form);
        *ret_units = s->n * s->out[1] * (form == WEFT_CONV_PLANES ? s->groups * s->o : 1);
        return weft_conv_band_size(&band) + weft_conv_offsets_size(s);
    }
    return 0;
}

/* Results that fill one vector of 256 bits, of which a core does as many in a cycle as it has lanes of 512 bits to fill
 * with them, or more. */
static bool is_narrow(const struct weft_conv_shape *s, enum weft_conv_form form)
{
    return s->o <= 8 && (form == WEFT_CONV_DIRECT || form == WEFT_CONV_TRANSPOSED);
}

/* How many parts the units may be cut into, for threads that steal parts, such that little is computed or read twice
 * at the cuts: whole blocks of Winograd tiles, and at least ROWS rows of results, whose windows overlap those of the
 * next part. 0: the form is not cut finer than one part a thread. */
static int64_t turn_units(const struct weft_conv *conv, const struct weft_conv_shape *s, enum weft_conv_form form,
                          int64_t units)
{
    enum { ROWS = 4 };
    switch (form) {
    case WEFT_CONV_WINOGRAD_2:
    case WEFT_CONV_WINOGRAD_4: return s->n * s->groups * conv->blocks;
    case WEFT_CONV_WINDOWS:
    case WEFT_CONV_GROUPED_WINDOWS:
    case WEFT_CONV_GROUPED:
    case WEFT_CONV_CHANNELS: return s->n * s->out[1] / ROWS;
    case WEFT_CONV_DIRECT:
    case WEFT_CONV_PHASES:
    case WEFT_CONV_SLIDE:
    case WEFT_CONV_PLANES: return units / ROWS;
    default: return 0;
    }
}

/* The forms that are no products over x where it lies. */
static void prepare_others(struct weft_conv *conv, const struct weft_conv_shape *s, enum weft_conv_form form,
                           int workers)
{
    if (form == WEFT_CONV_DIRECT)
        weft_direct_weigh(conv, s); /* again where narrow vectors took the place of wide ones */
    else
        conv->skips = 0;
    if (weft_winograd_of(form))
        weft_winograd_spread(conv, s, weft_winograd_of(form), workers);
    int64_t units;
    int64_t floats = prepare_loops(conv, s, form, &units);
    conv->parts = weft_gemm_parts(work(s), units, workers);
    int32_t turns = 1;
    if (conv->takes_turns)
        turns = weft_gemm_turns(work(s), conv->parts, turn_units(conv, s, form, units) / conv->parts);
    conv->parts *= turns;
    conv->share = weft_conv_share(conv, s, conv->parts, turns);
    const bool packs = !conv->w_packed && form != WEFT_CONV_PLAIN;
    const int64_t aside = packs ? weft_conv_packed_aside(&conv->packing) : 0;
    const bool apart = s->groups >= conv->parts && aside * (int64_t)sizeof(float) < (int64_t)weft_conv_pack_bytes(conv);
    if (packs && !apart && weft_conv_pays_together(conv, aside)) { /* else most parts have groups of their own */
        conv->packs_together = conv->w_packed = true;
        floats = prepare_loops(conv, s, form, &units); /* some have weights in their scratch memory */
    }
    floats = weft_conv_aligned(floats) + (conv->prologue ? s->c : 0);
    if (packs && !conv->packs_together)
        floats += weft_conv_aligned(aside);
    conv->scratch = (size_t)floats * sizeof(float);
}

static bool is_product(const struct weft_conv *conv)
{
    const enum weft_conv_form form = weft_conv_kernels[conv->form].form;
    return form == WEFT_CONV_POINT_COLUMNS || form == WEFT_CONV_POINT_ROWS;
}

void weft_conv_prepare(struct weft_conv *conv, int workers)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    const bool none = s.o == 0 || s.pixels == 0 || s.k == 0; /* of the weights are read */
    uint32_t cpu = conv->cpu;
    conv->gemm = (struct weft_gemm){.cache = conv->cache, .kernel = weft_gemm_find(cpu)};
    conv->direct_lanes = 0;
    conv->w_packed = conv->w_packed && !conv->packs_together; /* as it was before an earlier call */
    conv->packs_together = false;
    const enum weft_conv_form chosen = none ? WEFT_CONV_PLAIN : weft_conv_choose(conv, &s);
    if (is_narrow(&s, chosen) && (cpu & WEFT_CPU_AVX2))
        cpu &= WEFT_CPU_AVX2;
    conv->form = find(chosen, cpu);
    conv->gemm.cpu = cpu, conv->gemm.kernel = weft_gemm_find(cpu);
    const enum weft_conv_form form = weft_conv_kernels[conv->form].form;
    const bool point = is_product(conv);
    conv->beside = adds_in_registers(form) && lies_beside(conv);
    if (point)
        prepare_point(conv, &s, workers);
    conv->packing = none ? (struct weft_packing){0} : weft_conv_packing(conv, &s, form);
    if (!point)
        prepare_others(conv, &s, form, workers);
    if (s.n == 0) { /* the packing is that of an image all the same: one pack serves any number */
        conv->form = find(WEFT_CONV_PLAIN, 0);
        conv->scratch = 0, conv->parts = 1;
        conv->w_packed = conv->w_packed && !conv->packs_together;
        conv->packs_together = false;
    }
}

void weft_conv_made_strides(const struct weft_conv *conv, int64_t *ret_channel, int64_t *ret_pixel)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    *ret_channel = 1, *ret_pixel = s.c;
    if (is_product(conv) && s.y_rows)
        weft_gemm_made_strides(&conv->gemm, ret_pixel, ret_channel);
    else if (is_product(conv))
        weft_gemm_made_strides(&conv->gemm, ret_channel, ret_pixel);
}

/* Products of one group. */
static double products_of(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    return (double)((s->y_rows && conv->gemm.m <= s->line ? s->n : 1) * (s->pixels / s->line));
}

double weft_conv_made_pieces(const struct weft_conv *conv)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    return is_product(conv) ? products_of(conv, &s) * weft_gemm_made_pieces(&conv->gemm) : (double)(s.n * s.pixels);
}

double weft_conv_made_lines(const struct weft_conv *conv)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    return is_product(conv) ? products_of(conv, &s) * weft_gemm_made_lines(&conv->gemm) : (double)(s.n * s.pixels);
}

double weft_conv_made(const struct weft_conv *conv) { return is_product(conv) ? weft_gemm_made(&conv->gemm) : 1; }

/* Adjoints have one form at any size; and so has everything that has no form but the formula. */
bool weft_conv_packs_one_way(const struct weft_conv *conv)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    return s.adjoint || (!conv->gemm.kernel->code->transpose && !weft_winograd_fits(conv, &s));
}

const char *weft_conv_name(const struct weft_conv *conv) { return weft_conv_kernels[conv->form].name; }

uint32_t weft_conv_cpu(const struct weft_conv *conv) { return weft_conv_kernels[conv->form].cpu; }

void weft_conv_run(const struct weft_conv *conv, const struct weft_conv_data *data, int part, int parts)
{
    struct weft_conv_data packed = *data;
    if (conv->packs_together)
        packed.w = weft_conv_pack_together(conv, data, parts);
    weft_conv_kernels[conv->form].run(conv, &packed, part, parts);
}
