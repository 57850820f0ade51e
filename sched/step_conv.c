/* SPDX-License-Identifier: Apache-2.0 */
/* step_conv.c: convolutions of f32, and their adjoints; constant weights are packed as in step_gemm.c. */
#include "kernels/conv/conv_fold.h"
#include "kernels/conv/costs.h"
#include "sched/format.h"
#include "sched/prologue.h"
#include "sched/step.h"

/* --- the epilogue ------------------------------------------------------------------------------------------------- */

struct conv_step {
    struct weft_conv conv;  /* first: what is told of a bound step reads it alone */
    struct weft_program *makes, *program; /* of the prologue, of the epilogue; or NULL */
    size_t makes_scratch, program_scratch, aside; /* where their memory and the results aside begin */
    size_t pack;            /* of weights that the parts pack together, where they begin in what parts share */
    int64_t made_image, made_channel, made_pixel; /* strides of what is made */
    int64_t channels, pixels; /* of the result; pixels of an image */
    bool by_channels;       /* rows of pieces are pixels */
    struct weft_conv_fold fold; /* if conv folds */
};

struct finishing {
    const struct conv_step *step;
    void *shared;
    struct weft_epilogue_run run;
    const struct weft_step *made_by; /* of the prologue */
    struct weft_prologue_run before;
};

/* Do the channels of a result's pixel lie side by side? */
static bool is_by_channels(const struct weft_conv *conv) { return conv->y_stride[1] == 1 && conv->o > 1; }

static void run_program(struct finishing *f, const struct weft_conv_piece *piece)
{
    const struct conv_step *const s = f->step;
    if (s->by_channels)
        weft_program_run_piece(&f->run.pieces, piece->image * s->pixels + piece->pixel, piece->pixels, piece->channel,
                               piece->channels);
    else
        weft_program_run_piece(&f->run.pieces, piece->image * s->channels + piece->channel, piece->channels,
                               piece->pixel, piece->pixels);
}

static void finish_piece(void *user, const struct weft_conv_piece *piece)
{
    struct finishing *const f = user;
    if (f->step->program)
        run_program(f, piece);
    if (f->step->conv.folds && f->step->fold.early)
        weft_conv_fold_piece(&f->step->fold, f->shared, piece);
}

static void make_piece(void *user, const struct weft_conv_piece *piece)
{
    struct finishing *const f = user;
    const struct conv_step *const s = f->step;
    if (piece->channels == 0 || piece->pixels == 0)
        return;
    weft_prologue_move_piece(&f->before, f->made_by, piece->data,
                             piece->image * s->made_image + piece->channel * s->made_channel +
                                 piece->pixel * s->made_pixel);
    if (s->by_channels)
        weft_program_run_piece(&f->before.pieces, piece->image * s->pixels + piece->pixel, piece->pixels,
                               piece->channel, piece->channels);
    else
        weft_program_run_piece(&f->before.pieces, piece->image * s->conv.c + piece->channel, piece->channels,
                               piece->pixel, piece->pixels);
}

/* Of an operand that is made: strides as if it were to lie as the result does. */
static void lie_along(struct weft_conv *conv)
{
    int64_t stride = is_by_channels(conv) ? conv->c : 1;
    for (int i = conv->spatial - 1; i >= 0; i--) {
        conv->x_stride[2 + i] = stride;
        stride *= conv->in_extent[i];
    }
    conv->x_stride[1] = is_by_channels(conv) ? 1 : stride;
    conv->x_stride[0] = is_by_channels(conv) ? stride : stride * conv->c;
}

void weft_step_fill_conv(const struct weft_bind *bind, struct weft_conv *conv)
{
    const struct weft_graph *g = bind->graph;
    const weft_node n = bind->step->node;
    const struct weft_tensor result = weft_epilogue_result(bind);
    const struct weft_tensor operand = weft_prologue_operand(bind);
    const struct weft_tensor *x = &operand, *w = &bind->in[1], *y = &result;
    *conv = (struct weft_conv){.cpu = weft_bind_cpu(bind),
                               .cache = bind->target->l2,
                               .arithmetic = (enum weft_conv_arithmetic)bind->target->arithmetic,
                               .spatial = x->rank - 2,
                               .n = x->extent[0],
                               .c = x->extent[1],
                               .o = y->extent[1],
                               .wanted = bind->step->form,
                               .transposed = weft_opcode_of(g, n) == WEFT_OP_conv_transpose,
                               .groups = weft_attr_int(g, n, WEFT_ATTR_groups)};
    for (int i = 0; i < x->rank; i++) {
        conv->x_stride[i] = x->stride[i];
        conv->y_stride[i] = y->stride[i];
        conv->w_stride[i] = w->stride[i];
    }
    for (int i = 0; i < conv->spatial; i++) {
        const unsigned axis = (unsigned)i;
        conv->in_extent[i] = x->extent[2 + i];
        conv->out_extent[i] = y->extent[2 + i];
        conv->kernel[i] = w->extent[2 + i];
        conv->stride[i] = weft_bind_attr(bind, WEFT_ATTR_stride, axis);
        conv->dilation[i] = weft_bind_attr(bind, WEFT_ATTR_dilation, axis);
        conv->pad[i] = weft_bind_attr(bind, WEFT_ATTR_pad, axis);
    }
    conv->prologue = bind->step->prologue ? make_piece : NULL;
    weft_assert(!conv->prologue || weft_conv_is_made(conv)); /* as weft_prologue_fits says of all sizes */
    if (conv->prologue)
        lie_along(conv);
    if (!bind->step->epilogue)
        return;
    conv->folds = bind->step->epilogue->folded.id != 0;
    conv->small_pieces = conv->folds && !bind->step->epilogue->form; /* no program, which each piece would prepare */
    struct weft_tensor residual;
    conv->residual = weft_epilogue_residual_tensor(bind, &residual);
    for (int i = 0; i < x->rank && conv->residual; i++)
        conv->r_stride[i] = residual.stride[i];
    conv->clamp = bind->step->epilogue->clamp;
    conv->epilogue = bind->step->epilogue->form || conv->folds ? finish_piece : NULL;
}

/* Are extents and strides the same for all sizes, those of the images aside? Of the result, or of operand 0. */
static bool lies_one_way(const struct weft_bind *bind, bool result)
{
    const weft_val x = weft_operand(bind->graph, bind->step->node, 0), v = result ? bind->step->out[0] : x;
    const struct weft_type *type = weft_type_of(bind->graph, v);
    const weft_dim *const stride = bind->places->stride(bind->places->user, v);
    const int rank = weft_type_of(bind->graph, x)->rank;
    bool fixed = true;
    for (int i = 1; i < rank; i++) {
        const int dim = result ? weft_epilogue_dim(bind->step, i) : i;
        fixed = fixed && (dim < 0 || (weft_bind_is_fixed(bind, type->extent[dim]) &&
                                      weft_bind_is_fixed(bind, stride[dim])));
    }
    return fixed;
}

/* Why other sizes may want another packing, or NULL: the packing follows from all that fill_conv reads but the images'
 * number and strides. The weights are constant. */
static const char *why_conv_differs(const struct weft_bind *bind, const struct weft_conv *conv)
{
    static const int keys[] = {WEFT_ATTR_stride, WEFT_ATTR_dilation, WEFT_ATTR_pad};
    const struct weft_graph *g = bind->graph;
    if (weft_symbol_count(g->dims) == 0) /* there are no other sizes */
        return NULL;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (unsigned axis = 0; axis < (unsigned)conv->spatial; axis++)
            if (!weft_bind_is_fixed(bind, weft_attr_at(g, bind->step->node, keys[k], axis)))
                return "its attributes depend on sizes";
    if (weft_conv_packs_one_way(conv) ||
        (lies_one_way(bind, /* result= */ true) &&
         (bind->step->prologue || lies_one_way(bind, /* result= */ false))))
        return NULL;
    return "other sizes may be computed in another form";
}

enum { LINE = 64 };
#define STEP_BYTES ((sizeof(struct conv_step) + LINE - 1) / LINE * LINE)

static void bind_prologue(struct weft_bind *bind, struct conv_step *s, const int8_t *order, int rows, int columns)
{
    const struct weft_conv *const conv = &s->conv;
    s->makes = NULL;
    if (!bind->step->prologue)
        return;
    struct weft_tensor operand = weft_prologue_operand(bind);
    weft_conv_made_strides(conv, &s->made_channel, &s->made_pixel);
    s->made_image = s->by_channels ? s->pixels * s->made_pixel : conv->c * s->made_channel;
    operand.stride[0] = s->made_image;
    operand.stride[1] = s->made_channel;
    int64_t stride = s->made_pixel;
    for (int i = conv->spatial - 1; i >= 0; i--) {
        operand.stride[2 + i] = stride;
        stride *= conv->in_extent[i];
    }
    s->makes = weft_prologue_bind(bind, &operand, order, rows, columns, (char *)s + STEP_BYTES, &s->makes_scratch);
}

static void bind_programs(struct weft_bind *bind, struct conv_step *s)
{
    const struct weft_conv *const conv = &s->conv;
    int8_t order[WEFT_MAX_RANK] = {0};
    int count = 1;
    s->by_channels = is_by_channels(conv);
    s->channels = conv->o;
    s->pixels = 1;
    if (!s->by_channels)
        order[count++] = 1;
    for (int i = 0; i < conv->spatial; i++) {
        order[count++] = (int8_t)(2 + i);
        s->pixels *= conv->out_extent[i];
    }
    if (s->by_channels)
        order[count++] = 1;
    const int rows = s->by_channels ? 1 + conv->spatial : 2;
    bind_prologue(bind, s, order, rows, count - rows);
    s->program = weft_epilogue_bind(bind, order, rows, count - rows,
                                    (char *)s + STEP_BYTES + weft_prologue_bytes(bind->step), &s->program_scratch);
}

static void bind_fold(struct weft_bind *bind, struct conv_step *s)
{
    int64_t stride[2];
    if (!weft_epilogue_folds(bind, stride))
        return;
    weft_conv_fold_prepare(&s->fold, &s->conv, bind->step->epilogue->fold, stride);
    weft_assert(bind->shared == 0); /* results aside and folds exclude each other */
    bind->shared = s->fold.shared;
}

/* What all parts share: counters of the fold and of packing in the halves of the first line, which is zero before a
 * step; cells of the fold; packed weights. */
enum { TOGETHER_AT = LINE / 2 };

static void bind_pack(struct weft_bind *bind, struct conv_step *s)
{
    s->pack = 0;
    if (!s->conv.packs_together)
        return;
    s->pack = bind->shared > LINE ? (bind->shared + LINE - 1) / LINE * LINE : LINE;
    bind->shared = s->pack + weft_conv_pack_bytes(&s->conv);
}

static size_t bytes_conv(const struct weft_step *step)
{
    return STEP_BYTES + weft_prologue_bytes(step) + weft_epilogue_bytes(step);
}

static const struct weft_program *makes_conv(const void *descriptor)
{
    return ((const struct conv_step *)descriptor)->makes;
}

static const struct weft_program *program_conv(const void *descriptor)
{
    return ((const struct conv_step *)descriptor)->program;
}

static void bind_conv(struct weft_bind *bind, void *descriptor)
{
    struct conv_step *const s = descriptor;
    struct weft_conv *const conv = &s->conv;
    weft_step_fill_conv(bind, conv);
    conv->w_packed = bind->packed != NULL;
    conv->takes_turns = conv->shares = true;
    weft_conv_prepare(conv, bind->workers);
    if (bind->packed && !weft_bind_serves(bind, &conv->packing)) {
        conv->w_packed = false;
        weft_conv_prepare(conv, bind->workers);
    }
    bind->parts = conv->parts;
    bind->scratch = conv->scratch;
    s->aside = weft_epilogue_reserve(bind);
    bind_programs(bind, s);
    bind_fold(bind, s);
    bind_pack(bind, s);
}

static uint32_t forms_conv(const struct weft_bind *bind, const void *descriptor, int32_t *ret_form)
{
    uint32_t count = 0;
    if (bind->step->prologue) /* its result says which */
        return 0;
    for (int form = 0; form < WEFT_CONV_FORMS; form++)
        if (weft_conv_fits(descriptor, form))
            ret_form[count++] = 1 + form;
    return count;
}

/* --- what it takes ------------------------------------------------------------------------------------------------ */

enum { SMALL_WINDOW = 9, EARLY_PS = 40 };

/* Multiply-adds of the formula: each result has the weights of its filter; each operand of an adjoint adds to its own.
 */
static double formula(const struct weft_conv *conv)
{
    double products = (double)conv->n * (double)conv->c * (double)conv->o / (double)conv->groups;
    for (int i = 0; i < conv->spatial; i++)
        products *= (double)conv->kernel[i] * (double)(conv->transposed ? conv->in_extent : conv->out_extent)[i];
    return products;
}

static enum weft_price depthwise_price(const struct weft_conv *conv)
{
    const bool wide = conv->out_extent[conv->spatial - 1] >= WEFT_WIDE_ROW;
    int64_t taps = 1;
    for (int i = 0; i < conv->spatial; i++)
        taps *= conv->kernel[i];
    return taps <= SMALL_WINDOW ? wide ? WEFT_PRICE_depth_small_wide_first : WEFT_PRICE_depth_small_narrow_first
           : wide               ? WEFT_PRICE_depth_large_wide_first
                                : WEFT_PRICE_depth_large_narrow_first;
}

/* By the order of y the row of a price is taken: row-major, channels-last. */
double weft_step_conv_products(const struct weft_conv *conv, enum weft_price *ret_price, bool *ret_modelled)
{
    static const enum weft_price first[] = {[WEFT_CONV_KIND_DIRECT] = WEFT_PRICE_conv_direct_first,
                                            [WEFT_CONV_KIND_POINT] = WEFT_PRICE_conv_point_first,
                                            [WEFT_CONV_KIND_WINOGRAD] = WEFT_PRICE_conv_winograd_first,
                                            [WEFT_CONV_KIND_OTHER] = WEFT_PRICE_conv_grouped_first};
    double products;
    const enum weft_conv_kind kind = weft_conv_kind(conv, &products);
    const bool depthwise = kind == WEFT_CONV_KIND_PLANES || kind == WEFT_CONV_KIND_CHANNELS;
    const bool last = depthwise ? kind == WEFT_CONV_KIND_CHANNELS : is_by_channels(conv);
    *ret_price = (depthwise ? depthwise_price(conv) : first[kind]) + last;
    *ret_modelled = products > 0;
    return products > 0 ? products : formula(conv);
}

/* On one worker, of all who share what there is to do: a pass over pieces in the first-level cache (Sapphire Rapids: 10
 * to 60 ps an element); or, at the end, over all of the result by a single one. */
static double fold_ns(const struct weft_bind *bind, const struct conv_step *s)
{
    const double elements = weft_tensor_elements(&bind->out);
    const struct weft_target *const target = bind->target;
    if (!s->conv.folds)
        return 0;
    if (s->fold.early)
        return elements * EARLY_PS * 1e-3;
    const double bytes = elements * (double)sizeof(float);
    const enum weft_price level = weft_format_level(target, WEFT_PRICE_read_private, (int64_t)bytes);
    const double read = bytes * (double)weft_price_of(target, level) * 1e-6 * weft_prices_of(target)->threads;
    return read * (bind->parts < bind->workers ? bind->parts : bind->workers);
}

static void account_conv(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct weft_conv *conv = descriptor;
    bool modelled;
    *ret = (struct weft_account){.signature = {.arithmetic = WEFT_ARITHMETIC_CHAIN,
                                               .winograd = (uint8_t)weft_conv_winograd(conv)}};
    ret->count = weft_step_conv_products(conv, &ret->price, &modelled);
    ret->overhead_ns = fold_ns(bind, descriptor) + weft_epilogue_ns(bind, program_conv(descriptor), 0);
    if (makes_conv(descriptor))
        ret->overhead_ns += weft_prologue_ns(bind, makes_conv(descriptor), weft_conv_made(conv),
                                             weft_conv_made_pieces(conv), weft_conv_made_lines(conv));
}

static void run_conv(const void *descriptor, struct weft_call *call)
{
    const struct conv_step *const s = descriptor;
    const struct weft_conv *const conv = &s->conv;
    const float *w = conv->w_packed && !conv->packs_together ? call->packed : call->in[1];
    char *const shared = call->shared;
    struct finishing finishing; /* large: filled in only if there is something to finish */
    finishing.step = s;
    finishing.shared = shared;
    if (s->program)
        weft_epilogue_begin(&finishing.run, s->program, s->program_scratch, s->aside, call);
    finishing.made_by = call->step;
    if (s->makes)
        weft_prologue_begin(&finishing.before, s->makes, s->makes_scratch, call);
    const struct weft_conv_data data = {.y = weft_epilogue_data(call, s->aside), .x = s->makes ? NULL : call->in[0],
                                        .w = w, .bias = weft_epilogue_bias(call),
                                        .residual = weft_epilogue_residual(call),
                                        .user = &finishing, .scratch = call->scratch,
                                        .together = (void *)(shared + TOGETHER_AT), .pack = (void *)(shared + s->pack)};
    weft_conv_run(conv, &data, call->part, call->parts);
    if (conv->folds)
        weft_conv_fold_end(&s->fold, conv, weft_epilogue_folded(call), call->out, shared, call->parts);
}

static uint32_t cpu_conv(const void *descriptor) { return weft_conv_cpu(descriptor); }

static const char *name_conv(const void *descriptor, const struct weft_step *step)
{
    return weft_conv_name(descriptor);
}

static bool plan_conv_pack(const struct weft_bind *bind, struct weft_step_pack *ret)
{
    *ret = (struct weft_step_pack){.bytes = 0};
    weft_step_fill_conv(bind, &ret->conv);
    ret->conv.w_packed = true;
    weft_conv_prepare(&ret->conv, bind->workers);
    ret->bytes = weft_conv_pack_bytes(&ret->conv);
    ret->packing = &ret->conv.packing;
    ret->plain = why_conv_differs(bind, &ret->conv);
    return ret->bytes > 0;
}

/* Loops of one packing may differ in what they make of it by how the window moves. */
static bool same_conv_pack(const struct weft_step_pack *a, const struct weft_step_pack *b)
{
    const struct weft_conv *const p = &a->conv, *const q = &b->conv;
    bool same = p->spatial == q->spatial && p->c == q->c && p->o == q->o && p->groups == q->groups &&
                p->transposed == q->transposed;
    for (int i = 0; i < p->spatial && same; i++)
        same = p->kernel[i] == q->kernel[i] && p->stride[i] == q->stride[i] && p->dilation[i] == q->dilation[i] &&
               p->pad[i] == q->pad[i];
    for (int i = 0; i < 2 + p->spatial && same; i++)
        same = p->w_stride[i] == q->w_stride[i];
    return same;
}

static void write_conv_pack_part(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data, int part,
                                 int parts)
{
    weft_conv_pack_part(&how->conv, to, data, part, parts);
}

static void write_conv_pack(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data,
                            const struct weft_constant *source)
{
    weft_conv_pack(&how->conv, to, data);
}

const struct weft_step_kind weft_step_conv = {
    .name = "conv", .traits = WEFT_STEP_STRIDED | WEFT_STEP_FINISHES, .bytes = bytes_conv,
    .program = program_conv, .makes = makes_conv, .bind = bind_conv, .run = run_conv, .kernel = name_conv,
    .cpu = cpu_conv,
    .account = account_conv, .forms = forms_conv, .plan_pack = plan_conv_pack, .same_pack = same_conv_pack,
    .write_pack = write_conv_pack, .write_pack_part = write_conv_pack_part};
