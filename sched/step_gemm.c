/* SPDX-License-Identifier: Apache-2.0 */
/* step_gemm.c: matrix products of f32. Constant weights are packed once, when the plan is made; beside a pack is its
 * packing, which is all that the kernels' prepare says about the order in which loops read one. Where other sizes lead
 * to loops that want another packing, the weights are read as they are. */
#include "kernels/gemm/gemm_bands.h"
#include "sched/alias.h"
#include "sched/chosen.h"
#include "sched/prologue.h"
#include "sched/step.h"

#include <stdatomic.h>

/* Leading axes, from the innermost: where the second operand is repeated along one (grouped-query attention, weights
 * that are broadcast), the rows of its products are rows of one product, if rows and products are equally far apart.
 * Axes that merge for all three are the batch of one call. Those outside of them are walked by hand, one call after the
 * other. */
enum { ONE_CHAIN = 1 }; /* a form of steps */

struct gemm_step {
    struct weft_gemm gemm;
    int32_t folded_from; /* the rows are those of several products: of the leading axes from this one on */
    int32_t walked;  /* leading axes, outermost first */
    int64_t extent[WEFT_MAX_RANK], out[WEFT_MAX_RANK], a[WEFT_MAX_RANK], b[WEFT_MAX_RANK], residual[WEFT_MAX_RANK];
    struct weft_chosen_places chosen; /* then all leading axes are walked */
    struct weft_program *makes, *program; /* of the prologue, of the epilogue; or NULL */
    size_t makes_scratch, program_scratch, aside; /* where their memory and the results aside begin */
    int64_t made_row, made_column; /* strides of what is made */
    bool turned;     /* its rows are columns of the product, which is written by columns */
    bool rows;       /* it goes over whole rows, */
    int32_t sharers; /* which so many parts share */
};

/* One axis behind the other: `outer` elements apart, `count` times `inner`. */
static bool follows(int64_t outer, int64_t count, int64_t inner) { return count == 1 || outer == count * inner; }

/* A leading axis: how long it is, and the strides of all that has it; that of a residual that is not there is 0. */
struct leading {
    int64_t extent, out, a, b, residual;
};

static bool fold_rows(struct weft_gemm *g, const struct leading *axis)
{
    if (axis->b != 0 || g->batch != 1 || !follows(axis->out, g->m, g->c_row) || !follows(axis->a, g->m, g->a_row) ||
        (g->residual && !follows(axis->residual, g->m, g->r_row)))
        return false;
    if (g->m == 1) {
        g->c_row = axis->out, g->r_row = axis->residual;
        g->a_row = axis->a;
    }
    g->m *= axis->extent;
    return true;
}

static bool add_batch(struct weft_gemm *g, const struct leading *axis)
{
    if (!follows(axis->out, g->batch, g->c_batch) || !follows(axis->a, g->batch, g->a_batch) ||
        !follows(axis->b, g->batch, g->b_batch) ||
        (g->residual && !follows(axis->residual, g->batch, g->r_batch)))
        return false;
    if (g->batch == 1) {
        g->c_batch = axis->out, g->r_batch = axis->residual;
        g->a_batch = axis->a, g->b_batch = axis->b;
    }
    g->batch *= axis->extent;
    return true;
}

/* `residual` counts only where there is one. */
static void set_batch(struct gemm_step *s, const struct weft_tensor *out, const struct weft_tensor *a,
                      const struct weft_tensor *b, const struct weft_tensor *residual)
{
    struct weft_gemm *g = &s->gemm;
    int axis = out->rank - 3;
    g->batch = 1;
    for (; axis >= 0 && s->chosen.operand < 0; axis--) {
        const struct leading leading = {out->extent[axis], out->stride[axis], a->stride[axis], b->stride[axis],
                                        g->residual ? residual->stride[axis] : 0};
        if (leading.extent == 1)
            continue;
        if (fold_rows(g, &leading))
            s->folded_from = axis;
        else if (!add_batch(g, &leading))
            break;
    }
    s->walked = axis + 1;
    g->max_slices = s->walked > 0 ? 1 : g->max_slices; /* parts are not at the same product at the same time */
    for (int i = 0; i < s->walked; i++) {
        s->extent[i] = out->extent[i], s->out[i] = out->stride[i];
        s->a[i] = a->stride[i], s->b[i] = b->stride[i];
        s->residual[i] = g->residual ? residual->stride[i] : 0;
    }
}

/* --- the epilogue ------------------------------------------------------------------------------------------------- */

struct finishing {
    const struct gemm_step *step;
    struct weft_epilogue_run run;
    /* of the prologue; `rows`: those of A that are numbered before those of the product at hand */
    const struct weft_step *made_by;
    struct weft_prologue_run before;
    int64_t rows;
};

static void make_piece(void *user, const struct weft_gemm_piece *piece)
{
    struct finishing *const f = user;
    const struct gemm_step *const s = f->step;
    const int64_t row = f->rows + piece->batch * s->gemm.m + piece->first_row;
    if (piece->rows == 0 || piece->columns == 0)
        return;
    weft_prologue_move_piece(&f->before, f->made_by, piece->data,
                             row * s->made_row + piece->first_column * s->made_column);
    weft_program_run_piece(&f->before.pieces, row, piece->rows, piece->first_column, piece->columns);
}

static void finish_piece(void *user, const struct weft_gemm_piece *piece)
{
    struct finishing *const f = user;
    const struct gemm_step *const s = f->step;
    if (s->rows && piece->first_column + piece->columns == s->gemm.n)
        weft_epilogue_run_rows(&f->run, f->run.row + piece->batch * s->gemm.m + piece->first_row, piece->rows);
    if (s->rows)
        return;
    if (s->turned)
        weft_program_run_piece(&f->run.pieces, f->run.row + piece->batch * s->gemm.n + piece->first_column,
                               piece->columns, piece->first_row, piece->rows);
    else
        weft_program_run_piece(&f->run.pieces, f->run.row + piece->batch * s->gemm.m + piece->first_row, piece->rows,
                               piece->first_column, piece->columns);
}

/* Of an operand that is made strides say only that rows follow each other. */
static void lie_densely(struct weft_tensor *operand)
{
    int64_t stride = 1;
    for (int d = operand->rank - 1; d >= 0; d--) {
        operand->stride[d] = stride;
        stride *= operand->extent[d];
    }
}

static void fill_gemm(const struct weft_bind *bind, struct gemm_step *s)
{
    const struct weft_graph *graph = bind->graph;
    const weft_node n = bind->step->node;
    const bool trans_a = weft_attr_int(graph, n, WEFT_ATTR_trans_a),
               trans_b = weft_attr_int(graph, n, WEFT_ATTR_trans_b);
    const struct weft_tensor result = weft_epilogue_result(bind);
    struct weft_tensor operand = weft_prologue_operand(bind);
    const struct weft_tensor *a = &operand, *b = &bind->in[1], *c = &result;
    const int row = c->rank - 2, col = c->rank - 1;
    if (bind->step->prologue)
        lie_densely(&operand);
    *s = (struct gemm_step){.gemm = {
        .cpu = weft_bind_cpu(bind), .cache = bind->target->l2,
        .m = c->extent[row], .n = c->extent[col], .k = a->extent[trans_a ? row : col],
        .a_row = a->stride[trans_a ? col : row], .a_col = a->stride[trans_a ? row : col],
        .b_row = b->stride[trans_b ? col : row], .b_col = b->stride[trans_b ? row : col],
        .c_row = c->stride[row], .c_col = c->stride[col]}};
    s->gemm.prologue_a = bind->step->prologue ? make_piece : NULL;
    s->folded_from = c->rank - 2;
    struct weft_tensor residual;
    s->gemm.residual = weft_epilogue_residual_tensor(bind, &residual);
    if (s->gemm.residual)
        s->gemm.r_row = residual.stride[row], s->gemm.r_col = residual.stride[col];
    s->chosen = weft_chosen_bind(bind);
    set_batch(s, c, a, b, &residual);
    if (!bind->step->epilogue)
        return;
    s->rows = bind->step->epilogue->rows;
    s->gemm.clamp = bind->step->epilogue->clamp;
    s->gemm.epilogue = bind->step->epilogue->form ? finish_piece : NULL;
    if (bind->step->epilogue->bias.id)
        s->gemm.bias_col = weft_epilogue_bias_stride(bind);
}

enum { LINE = 64 };
#define STEP_BYTES ((sizeof(struct gemm_step) + LINE - 1) / LINE * LINE)
static char *programs_of(struct gemm_step *s) { return (char *)s + STEP_BYTES; }

/* Rows of pieces are numbered as products, their batches and their rows follow each other, which is the order of axes.
 */
static void bind_epilogue(struct weft_bind *bind, struct gemm_step *s)
{
    const int rank = weft_type_of(bind->graph, weft_result(bind->graph, bind->step->node, 0))->rank;
    int8_t order[WEFT_MAX_RANK];
    int count = 0;
    s->turned = !s->rows && s->gemm.c_col != 1 && s->gemm.c_row == 1;
    const int rows = s->turned ? s->folded_from + 1 : rank - 1;
    for (int i = 0; i < s->folded_from; i++)
        order[count++] = (int8_t)i;
    if (s->turned)
        order[count++] = (int8_t)(rank - 1);
    for (int i = s->folded_from; i < rank - s->turned; i++)
        order[count++] = (int8_t)i;
    s->program = weft_epilogue_bind(bind, order, rows, rank - rows, programs_of(s) + weft_prologue_bytes(bind->step),
                                    &s->program_scratch);
}

/* The rows of A are numbered as those of C are. */
static void bind_prologue(struct weft_bind *bind, struct gemm_step *s)
{
    struct weft_tensor operand = weft_prologue_operand(bind);
    int8_t order[WEFT_MAX_RANK];
    if (!bind->step->prologue)
        return;
    weft_gemm_made_strides(&s->gemm, &s->made_row, &s->made_column);
    int64_t stride = s->made_row;
    operand.stride[operand.rank - 1] = s->made_column;
    for (int d = operand.rank - 2; d >= 0; d--) {
        operand.stride[d] = stride;
        stride *= operand.extent[d];
    }
    for (int d = 0; d < operand.rank; d++)
        order[d] = (int8_t)d;
    s->makes = weft_prologue_bind(bind, &operand, order, operand.rank - 1, 1, programs_of(s), &s->makes_scratch);
}

static bool is_single(const struct weft_bind *bind, const struct gemm_step *s)
{
    const int rank = weft_type_of(bind->graph, weft_result(bind->graph, bind->step->node, 0))->rank;
    return s->gemm.batch == 1 && !s->walked && s->folded_from == rank - 2;
}

bool weft_step_fill_gemm(const struct weft_bind *bind, struct weft_gemm *ret)
{
    struct gemm_step s;
    fill_gemm(bind, &s);
    *ret = s.gemm;
    return is_single(bind, &s);
}

static bool is_above_one(const struct weft_bind *bind, weft_dim d)
{
    int64_t low, high;
    weft_dim_range(bind->graph->dims, d, &low, &high);
    return low > 1;
}

/* Why other sizes may want another packing, or NULL: the packing follows from the extents and strides of B, which are
 * constant, and from whether C lies by columns and has more rows than one. */
static const char *why_gemm_differs(const struct weft_bind *bind, const struct weft_gemm *g)
{
    const weft_val out = bind->step->out[0];
    const struct weft_type *type = weft_type_of(bind->graph, weft_result(bind->graph, bind->step->node, 0));
    const weft_dim *stride = bind->places->stride(bind->places->user, out), rows = type->extent[type->rank - 2];
    const int row_dim = weft_epilogue_dim(bind->step, type->rank - 2),
              column_dim = weft_epilogue_dim(bind->step, type->rank - 1);
    const weft_dim none = weft_dim_of(0), row = row_dim < 0 ? none : stride[row_dim],
                   column = column_dim < 0 ? none : stride[column_dim];
    for (int i = 0; i < type->rank - 2; i++)
        if (!weft_bind_is_fixed(bind, type->extent[i]))
            return "other sizes may have several products, which read the weights as they are";
    const bool never = weft_dim_is(column, 1) || (weft_bind_is_fixed(bind, row) && !weft_dim_is(row, 1));
    const bool always = weft_dim_is(row, 1) && is_above_one(bind, column) && is_above_one(bind, rows);
    const bool fixed = weft_bind_is_fixed(bind, row) && weft_bind_is_fixed(bind, column) && weft_bind_is_fixed(bind,
        rows);
    return never || always || fixed || weft_gemm_packs_one_way(g)
               ? NULL
               : "other sizes may have results whose rows are not side by side";
}

/* --- whole rows ---------------------------------------------------------------------------------------------------
 *
 * Where parts share rows, each counts itself when it is done, at the counter of its band or of several; the last one
 * goes over the rows of these. The counters are the first bytes of what parts share, which are 0 when a step begins. */

enum { COUNTERS = 16 };

/* Nobody has to hand over pieces then. */
static void share_rows(struct gemm_step *s, int workers)
{
    s->sharers = s->rows ? weft_gemm_row_parts(&s->gemm) : 1;
    if (s->sharers == 1)
        return;
    s->gemm.epilogue = NULL;
    weft_gemm_prepare(&s->gemm, workers);
}

static int32_t counter_of(const struct gemm_step *s, int32_t band)
{
    const int32_t bands = weft_gemm_bands(&s->gemm);
    return bands <= COUNTERS ? band : (int32_t)((int64_t)band * COUNTERS / bands);
}

/* Of all products that are walked. */
static void run_band(struct finishing *f, int32_t band, int64_t products)
{
    const struct gemm_step *const s = f->step;
    const struct weft_gemm_band rows = weft_gemm_band(&s->gemm, band);
    for (int64_t p = 0; p < products; p++)
        for (int64_t i = rows.batch; i < rows.batch_end; i++)
            weft_epilogue_run_rows(&f->run, (p * s->gemm.batch + i) * s->gemm.m + rows.row, rows.row_end - rows.row);
}

static void run_shared_rows(struct finishing *f, const struct weft_call *call, int64_t products)
{
    const struct gemm_step *const s = f->step;
    const int32_t counter = counter_of(s, weft_gemm_band_of(&s->gemm, call->part));
    int32_t bands = 0;
    for (int32_t band = 0; band < weft_gemm_bands(&s->gemm); band++)
        bands += counter_of(s, band) == counter;
    int *const done = (int *)call->shared + counter;
    if (__atomic_add_fetch(done, 1, __ATOMIC_ACQ_REL) < s->sharers * bands)
        return;
    __atomic_store_n(done, 0, __ATOMIC_RELEASE);
    for (int32_t band = 0; band < weft_gemm_bands(&s->gemm); band++)
        if (counter_of(s, band) == counter)
            run_band(f, band, products);
}

static void bind_gemm(struct weft_bind *bind, void *descriptor)
{
    struct gemm_step *s = descriptor;
    fill_gemm(bind, s);
    s->gemm.b_packed = bind->packed && s->gemm.batch == 1 && !s->walked;
    s->gemm.b_small = s->gemm.b_packed && bind->packed->dtype != WEFT_K_F32 ? (uint8_t)bind->packed->dtype : 0;
    s->gemm.one_chain = bind->step->form == ONE_CHAIN;
    s->gemm.takes_turns = true;
    /* Parts that share rows would each make them. */
    void (*const prepare)(struct weft_gemm *, int) =
        s->rows || bind->step->prologue ? weft_gemm_prepare_rows : weft_gemm_prepare;
    prepare(&s->gemm, bind->workers);
    if (s->gemm.b_packed && !weft_bind_serves(bind, &s->gemm.packing)) {
        s->gemm.b_packed = false;
        s->gemm.b_small = 0;
        prepare(&s->gemm, bind->workers);
    }
    share_rows(s, bind->workers);
    bind->parts = s->gemm.parts;
    bind->scratch = s->gemm.scratch;
    bind->shared = s->sharers > 1 ? sizeof(int) * COUNTERS : s->gemm.shared; /* slices hand over whole rows */
    s->aside = weft_epilogue_reserve(bind);
    bind_prologue(bind, s);
    bind_epilogue(bind, s);
}

static size_t bytes_gemm(const struct weft_step *step)
{
    return STEP_BYTES + weft_prologue_bytes(step) + weft_epilogue_bytes(step);
}

static const struct weft_program *makes_gemm(const void *descriptor)
{
    return ((const struct gemm_step *)descriptor)->makes;
}

static const struct weft_program *program_gemm(const void *descriptor)
{
    return ((const struct gemm_step *)descriptor)->program;
}

double weft_step_gemm_waste(const struct weft_gemm *g)
{
    const int64_t columns = g->swapped ? g->m : g->n, lanes = g->kernel->lanes;
    return columns > 0 && columns < lanes ? (double)lanes / (double)columns : 1;
}

static void account_gemm(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret)
{
    const struct gemm_step *s = descriptor;
    const struct weft_gemm *g = &s->gemm;
    *ret = (struct weft_account){
        .count = (double)g->m * (double)g->n * (double)g->batch * (double)g->k * weft_step_gemm_waste(g),
        .price = WEFT_PRICE_product,
        .overhead_ns = weft_epilogue_ns(bind, s->program, s->rows ? weft_gemm_bands(g) : 0),
        .signature = {.arithmetic = WEFT_ARITHMETIC_CHAIN, .lanes = (uint16_t)g->lanes, .slices = (uint16_t)g->slices}};
    for (int i = 0; i < s->walked; i++)
        ret->count *= (double)s->extent[i];
    if (s->makes)
        ret->overhead_ns += weft_prologue_ns(bind, s->makes, weft_gemm_made(g), weft_gemm_made_pieces(g),
                                             weft_gemm_made_lines(g));
}

/* Where a result is the sum of several chains, one is another way. */
static uint32_t forms_gemm(const struct weft_bind *bind, const void *descriptor, int32_t *ret_form)
{
    const struct gemm_step *s = descriptor;
    ret_form[0] = ONE_CHAIN;
    return s->gemm.lanes > 1 || s->gemm.slices > 1;
}

static void run_gemm(const void *descriptor, struct weft_call *call)
{
    const struct gemm_step *s = descriptor;
    const float *b = s->gemm.b_packed ? call->packed : call->in[1];
    float *const c = weft_epilogue_data(call, s->aside);
    const float *const residual = weft_epilogue_residual(call);
    const int64_t lines = s->gemm.batch * (s->turned ? s->gemm.n : s->gemm.m);
    struct finishing finishing; /* large: filled in only if there is something to finish */
    finishing.step = s;
    if (s->program)
        weft_epilogue_begin(&finishing.run, s->program, s->program_scratch, s->aside, call);
    if (s->makes)
        weft_prologue_begin(&finishing.before, s->makes, s->makes_scratch, call);
    finishing.made_by = call->step;
    finishing.rows = 0;
    int64_t index[WEFT_MAX_RANK] = {0}, products = 1;
    for (int i = 0; i < s->walked; i++)
        products *= s->extent[i];
    for (int64_t p = 0; p < products; p++) {
        int64_t out = 0, left = 0, right = 0, more = 0;
        for (int i = 0; i < s->walked; i++) {
            out += index[i] * s->out[i];
            left += index[i] * s->a[i];
            right += index[i] * s->b[i];
            more += index[i] * s->residual[i];
        }
        if (s->chosen.operand >= 0)
            *(s->chosen.operand == 0 ? &left : &right) += weft_chosen_place(&s->chosen, call->in[2], p);
        const struct weft_gemm_data data = {.c = c + out, .a = s->makes ? NULL : (const float *)call->in[0] + left,
                                            .b = b + right, .bias = weft_epilogue_bias(call), .user = &finishing,
                                            .residual = residual ? residual + more : NULL,
                                            .scratch = call->scratch, .shared = call->shared,
                                            .prefetch = p == 0 ? call->prefetch : (struct weft_prefetch){.data = NULL}};
        weft_gemm_run(&s->gemm, &data, call->part, call->parts);
        if (s->program)
            finishing.run.row += lines;
        finishing.rows += s->gemm.batch * s->gemm.m;
        for (int i = s->walked - 1; i >= 0 && ++index[i] == s->extent[i]; i--)
            index[i] = 0;
    }
    if (s->sharers > 1)
        run_shared_rows(&finishing, call, products);
    else if (s->rows && s->gemm.n == 0 && call->part == 0) /* nothing was handed over */
        weft_epilogue_run_rows(&finishing.run, 0, products * lines);
}

static struct weft_prefetch first_of_gemm(const void *descriptor, const void *packed, int part)
{
    return weft_gemm_reads_first(&((const struct gemm_step *)descriptor)->gemm, packed, part);
}

static uint32_t cpu_gemm(const void *descriptor)
{
    return weft_gemm_cpu(&((const struct gemm_step *)descriptor)->gemm);
}

static const char *name_gemm(const void *descriptor, const struct weft_step *step)
{
    return weft_gemm_name(&((const struct gemm_step *)descriptor)->gemm);
}

/* Weights of f32 that are all numbers of a smaller type, as those of a 16-bit model are behind casts, and those of a
 * quantised one before they are scaled, are packed as such if few rows are multiplied. */
static bool plan_gemm_pack(const struct weft_bind *bind, struct weft_step_pack *ret)
{
    struct gemm_step s;
    fill_gemm(bind, &s);
    if (!is_single(bind, &s))
        return false;
    s.gemm.b_packed = true;
    s.gemm.one_chain = bind->step->form == ONE_CHAIN;
    weft_gemm_prepare(&s.gemm, bind->workers);
    const uint8_t numbers = weft_gemm_wants_small(&s.gemm, bind->workers)
                                ? weft_step_numbers(bind->graph, bind->step->in[1], weft_bind_cpu(bind))
                                : WEFT_K_F32;
    if (numbers != WEFT_K_F32) {
        s.gemm.b_small = numbers;
        weft_gemm_prepare(&s.gemm, bind->workers);
    }
    *ret = (struct weft_step_pack){.gemm = s.gemm, .bytes = weft_gemm_pack_bytes(&s.gemm),
                                   .plain = why_gemm_differs(bind, &s.gemm)};
    ret->packing = &ret->gemm.packing;
    return ret->bytes > 0;
}

static bool same_gemm_pack(const struct weft_step_pack *a, const struct weft_step_pack *b)
{
    const struct weft_gemm *const p = &a->gemm, *const q = &b->gemm;
    return p->n == q->n && p->k == q->k && p->b_row == q->b_row && p->b_col == q->b_col && p->b_small == q->b_small;
}

static void pack_part(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data, int part, int parts)
{
    weft_gemm_pack_part(&how->gemm, to, data, part, parts);
}

/* Piece by piece: what the file of one takes in memory meanwhile is given back behind it. */
static void write_pack(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data,
                       const struct weft_constant *source)
{
    enum { PACK_BYTES = 8 << 20 };
    const struct weft_gemm *g = &how->gemm;
    const int parts = 1 + (int)(how->bytes / PACK_BYTES);
    const size_t piece = (size_t)(g->n * g->k) * sizeof(float) / (size_t)parts;
    for (int part = 0; part < parts; part++) {
        weft_gemm_pack_part(g, to, data, part, parts);
        if (source && source->kind == WEFT_CONST_BLOB)
            weft_blob_forget(source->blob, source->offset + (size_t)part * piece, piece);
    }
}

const struct weft_step_kind weft_step_gemm = {
    .name = "gemm", .traits = WEFT_STEP_STRIDED | WEFT_STEP_FINISHES, .bytes = bytes_gemm,
    .program = program_gemm, .makes = makes_gemm, .bind = bind_gemm, .run = run_gemm,
    .reads_first = first_of_gemm, .kernel = name_gemm, .cpu = cpu_gemm, .account = account_gemm, .forms = forms_gemm,
    .plan_pack = plan_gemm_pack, .same_pack = same_gemm_pack, .write_pack = write_pack, .write_pack_part = pack_part};
