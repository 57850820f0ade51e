/* SPDX-License-Identifier: Apache-2.0 */
/* strips.c: from the kernel form to a strip program. Value i of the program is what instruction i of the form makes. */
#include "codegen/strips.h"

#include "codegen/form_parts.h"

enum { MOST_OPS = 512 };

/* The axis that the phase cuts in tiles of a stated length, or -1. */
static int chunk_axis(const struct weft_form *form)
{
    int axis = -1;
    for (uint32_t i = 0; i < form->axes; i++)
        if (form->phase[0].axes >> i & 1 && !weft_dim_is(form->phase[0].by[i], 0))
            axis = (int)i;
    return axis;
}

bool weft_strips_is_across(const struct weft_form *form, uint32_t op)
{
    return form->op[op].kind == WEFT_FORM_FOLD && (form->op[op].over & form->phase[0].axes);
}

static bool is_guarded(const struct weft_index *at) { return at->data || at->border || at->over; }

bool weft_strips_is_look_up(const struct weft_form *form, uint32_t op)
{
    bool any = false;
    const struct weft_index_map *const map = &form->map[form->op[op].map];
    for (int d = 0; form->op[op].kind == WEFT_FORM_LOAD && d < map->rank; d++)
        any |= is_guarded(&map->at[d]);
    return any;
}

/* What a look-up adds to a program: guards, and values besides its own. */
static void count_look_up(const struct weft_form *form, uint32_t op, uint32_t *values, uint32_t *guards)
{
    const struct weft_index_map *const map = &form->map[form->op[op].map];
    if (!weft_strips_is_look_up(form, op))
        return;
    ++*values;
    for (int d = 0; d < map->rank; d++) {
        *guards += is_guarded(&map->at[d]);
        *values += is_guarded(&map->at[d]) && !map->at[d].data;
    }
}

uint32_t weft_strips_source(const struct weft_form *form, uint32_t op, uint32_t *ret_guard)
{
    uint32_t values = form->ops;
    *ret_guard = 0;
    for (uint32_t i = 0; i < op; i++)
        count_look_up(form, i, &values, ret_guard);
    return values;
}

uint32_t weft_strips_guards(const struct weft_form *form, uint32_t op)
{
    uint32_t values = 0, guards = 0;
    count_look_up(form, op, &values, &guards);
    return guards;
}

const struct weft_index *weft_strips_guarded(const struct weft_form *form, uint32_t op, uint32_t guard)
{
    const struct weft_index_map *const map = &form->map[form->op[op].map];
    for (int d = 0; d < map->rank; d++)
        if (is_guarded(&map->at[d]) && guard-- == 0)
            return &map->at[d];
    return NULL;
}

/* Tiles of a stated length: along one axis, over which folds make what one store each writes. */
static const char *refuse_chunks(const struct weft_form *form)
{
    const int axis = chunk_axis(form);
    int stores[MOST_OPS] = {0};
    for (uint32_t i = 0; i < form->axes; i++)
        if (form->phase[0].axes >> i & 1 && (int)i != axis && !weft_dim_is(form->phase[0].by[i], 0))
            return "has several axes in tiles of stated length";
    if (axis >= 0 && !weft_dim_is_constant(form->phase[0].by[axis]))
        return "has tiles of a length that follows from other sizes";
    for (uint32_t i = 0; i < form->ops; i++)
        for (unsigned k = 0; k < form->op[i].ins; k++) {
            const uint32_t in = form->op[i].in[k];
            if (!weft_strips_is_across(form, in))
                continue;
            if (form->op[in].over != 1u << axis || form->op[i].kind != WEFT_FORM_STORE || stores[in]++)
                return "does more with sums of tiles than store them";
        }
    return NULL;
}

bool weft_strips_is_part(const struct weft_form *form, uint32_t op)
{
    bool part = false;
    for (uint32_t i = op + 1; i < form->ops && !part; i++)
        part = form->op[i].falls_back && form->op[i].in[form->op[i].ins - 1] == op;
    return part;
}

/* What a load falls back on is another look-up of its stage, which has all its axes, and nobody else reads. */
static const char *refuse_part(const struct weft_form *form, uint32_t stage, uint32_t i)
{
    const uint32_t in = form->op[i].in[form->op[i].ins - 1];
    uint32_t reads = 0;
    for (uint32_t k = in + 1; k < form->ops; k++)
        for (unsigned j = 0; j < form->op[k].ins; j++)
            reads += form->op[k].in[j] == in;
    return in < form->stage[stage].first || !weft_strips_is_look_up(form, in) || reads > 1 ||
                   form->op[in].axes != form->op[i].axes
               ? "has loads that are outside what it computes" : NULL;
}

/* Indices lie in memory, as many in it as there are points, and one axis is indexed at most. */
static const char *refuse_look_up(const struct weft_form *form, uint32_t i)
{
    const struct weft_form_op *op = &form->op[i];
    const struct weft_form_op *const index = weft_form_indices(op) ? &form->op[op->in[0]] : NULL;
    if (weft_form_indices(op) > 1)
        return "has loads by several indices";
    if (index && index->kind != WEFT_FORM_CONST &&
        (index->kind != WEFT_FORM_LOAD || weft_strips_is_look_up(form, op->in[0])))
        return "has indices that it computes";
    return index && index->dtype != WEFT_I64 && index->dtype != WEFT_I32 ? "has indices of other types than i64 and i32"
                                                                         : NULL;
}

/* What is not cut into tiles is the axis that is scanned, and a stage goes one way. */
static const char *refuse_scans(const struct weft_form *form)
{
    uint16_t inner = 0;
    for (uint32_t i = 0; i < form->axes; i++)
        inner |= form->axis[i].pieces_of < 0 ? (uint16_t)(1u << i & ~form->phase[0].axes) : 0;
    for (uint32_t s = 0; s < form->stages; s++) {
        bool forwards = false, backwards = false;
        for (uint32_t i = form->stage[s].first; i < form->stage[s].first + form->stage[s].ops; i++) {
            const struct weft_form_op *op = &form->op[i];
            const bool scans = op->kind == WEFT_FORM_SCAN;
            if (scans && op->over != inner)
                return "scans one of several axes that it does not cut";
            if (scans && chunk_axis(form) >= 0)
                return "has scans beside tiles of stated length";
            backwards |= scans && op->reverse;
            forwards |= op->kind == WEFT_FORM_FOLD || (scans && !op->reverse);
        }
        if (forwards && backwards)
            return "goes both ways in one stage";
    }
    return NULL;
}

const char *weft_strips_refuse(const struct weft_form *form)
{
    if (form->phases != 1)
        return "has several phases";
    if (form->arrays > WEFT_PROGRAM_ARGUMENTS)
        return "has more than 64 arguments";
    if (form->ops > MOST_OPS)
        return "has more than 512 instructions";
    for (uint32_t s = 0; s < form->stages; s++)
        if (form->stage[s].kind != WEFT_FORM_SWEEP)
            return "has stages that are no sweeps";
    for (uint32_t i = 0, s = 0; i < form->ops; i++) {
        const struct weft_form_op *op = &form->op[i];
        const bool stores = op->kind == WEFT_FORM_STORE;
        while (i >= form->stage[s].first + form->stage[s].ops)
            s++;
        for (int d = 0; stores && d < form->map[op->map].rank; d++)
            if (is_guarded(&form->map[op->map].at[d]))
                return "has stores that may be out of range";
        const char *why = weft_strips_is_look_up(form, i) ? refuse_look_up(form, i) : NULL;
        why = why || !op->falls_back ? why : refuse_part(form, s, i);
        if (why)
            return why;
        if (op->kind == WEFT_FORM_CONTRACT)
            return "has contractions";
    }
    const char *const why = refuse_scans(form);
    return why ? why : refuse_chunks(form);
}

static uint32_t count_kind(const struct weft_form *form, uint8_t kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < form->ops; i++)
        count += form->op[i].kind == kind;
    return count;
}

bool weft_strips_reads_anywhere(const struct weft_form *form, weft_val value)
{
    bool any = true;
    for (uint32_t i = 0; i < form->ops && any; i++)
        any = form->op[i].kind != WEFT_FORM_LOAD || !weft_is(form->array[form->op[i].array].value, value) ||
              weft_strips_is_look_up(form, i);
    return any;
}

static struct weft_program_counts counts_of(const struct weft_form *form)
{
    const uint32_t folds = count_kind(form, WEFT_FORM_FOLD), maps = count_kind(form, WEFT_FORM_MAP);
    const uint32_t scans = count_kind(form, WEFT_FORM_SCAN);
    struct weft_program_counts counts = {.values = form->ops, .ops = folds + scans + maps, .stages = form->stages,
                                         .folds = folds, .scans = scans};
    for (uint32_t i = 0; i < form->ops; i++) {
        counts.ops += weft_strips_is_look_up(form, i);
        count_look_up(form, i, &counts.values, &counts.guards);
    }
    return counts;
}

size_t weft_strips_bytes(const struct weft_form *form)
{
    const struct weft_program_counts counts = counts_of(form);
    return weft_program_bytes(&counts);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

struct making {
    const struct weft_form *form;
    struct weft_program *program;
    const int64_t *symbols;
    const struct weft_tensor *tensor;
    uint16_t outer;               /* axes of the form that are outer ones */
    int8_t place[WEFT_FORM_AXES]; /* of an axis among the program's outer or inner ones */
};

/* An index, so many elements a step. */
static void add_index(const struct making *m, const struct weft_index *at, int64_t stride,
                      struct weft_program_value *value)
{
    value->offset += weft_dim_evaluate(m->form->dims, at->base, m->symbols) * stride;
    for (int t = 0; t < at->terms; t++) {
        const int axis = at->term[t].axis;
        const int64_t step = weft_dim_evaluate(m->form->dims, at->term[t].step, m->symbols) * stride;
        if (m->form->axis[axis].pieces_of >= 0) {
            value->chunk += step;
            continue;
        }
        *(m->outer >> axis & 1 ? &value->outer[m->place[axis]] : &value->inner[m->place[axis]]) += step;
    }
}

/* An array at the places that a load or store means. */
static void place_argument(const struct making *m, const struct weft_form_op *op, struct weft_program_value *value)
{
    const struct weft_index_map *map = &m->form->map[op->map];
    const struct weft_tensor *tensor = &m->tensor[op->array];
    *value = (struct weft_program_value){.place = WEFT_PROGRAM_ARGUMENT, .argument = (uint16_t)op->array,
                                         .bytes = (uint8_t)(weft_dtype_bits(op->dtype) / 8)};
    for (int d = 0; d < map->rank; d++)
        if (!map->at[d].over)
            add_index(m, &map->at[d], map->at[d].border && tensor->extent[d] <= 1 ? 1 : tensor->stride[d], value);
}

/* Behind the value of its array: where a point is along one axis of it. */
static void place_position(const struct making *m, const struct weft_index *at, uint32_t value)
{
    m->program->value[value] = (struct weft_program_value){
        .place = WEFT_PROGRAM_ARGUMENT, .argument = WEFT_PROGRAM_POSITION, .bytes = 1};
    add_index(m, at, 1, &m->program->value[value]);
}

/* The array of a look-up, and its guards. */
static void place_look_up(const struct making *m, uint32_t i)
{
    const struct weft_form_op *const op = &m->form->op[i];
    const struct weft_index_map *map = &m->form->map[op->map];
    const struct weft_tensor *tensor = &m->tensor[op->array];
    uint32_t guard, value = weft_strips_source(m->form, i, &guard);
    place_argument(m, op, &m->program->value[value++]);
    for (int d = 0; d < map->rank; d++) {
        if (!is_guarded(&map->at[d]))
            continue;
        struct weft_program_guard *const to = &m->program->guard[guard];
        const bool indexed = map->at[d].data != 0, divided = map->at[d].over != 0;
        m->program->bound[2 * guard] = divided ? map->at[d].over : tensor->extent[d];
        m->program->bound[2 * guard++ + 1] = indexed || divided ? tensor->stride[d] : 0;
        *to = (struct weft_program_guard){
            .kind = indexed ? WEFT_PROGRAM_INDEX : divided ? WEFT_PROGRAM_QUOTIENT : WEFT_PROGRAM_INSIDE,
            .value = (uint16_t)(indexed ? op->in[0] : value)};
        if (!indexed)
            place_position(m, &map->at[d], value++);
    }
}

/* Does a stage visit the inner points? */
static bool is_inside(const struct making *m, uint32_t stage)
{
    return m->form->stage[stage].axes & ~m->outer || m->program->inner_rank == 0;
}

static void place_values(const struct making *m)
{
    const struct weft_form *form = m->form;
    bool kept[MOST_OPS] = {false}; /* frames are made while others run: nothing is allocated */
    weft_form_find_kept(form, kept);
    for (uint32_t s = 0, i = 0; i < form->ops; i++) {
        const struct weft_form_op *op = &form->op[i];
        struct weft_program_value *const value = &m->program->value[i];
        while (i >= form->stage[s].first + form->stage[s].ops)
            s++;
        const bool inside = is_inside(m, s) && (op->kind != WEFT_FORM_FOLD || weft_strips_is_across(form, i));
        *value = (struct weft_program_value){.bytes = (uint8_t)(weft_dtype_bits(op->dtype) / 8)};
        value->place = op->kind == WEFT_FORM_CONST || weft_strips_is_part(form, i) ? WEFT_PROGRAM_NUMBER
                       : !inside                   ? WEFT_PROGRAM_OUTER
                       : kept[i]                   ? WEFT_PROGRAM_TILE : WEFT_PROGRAM_STRIP;
        if (weft_strips_is_look_up(form, i))
            place_look_up(m, i);
        else if (op->kind == WEFT_FORM_LOAD)
            place_argument(m, op, value);
        if (op->kind == WEFT_FORM_STORE)
            place_argument(m, op, &m->program->value[op->in[0]]);
        if (op->kind == WEFT_FORM_CONST && weft_dtype_is_float(op->dtype))
            weft_store_real(op->dtype, value->number, 0, op->number);
        else if (op->kind == WEFT_FORM_CONST)
            weft_store_integer(op->dtype, value->number, 0, op->integer);
    }
}

/* --- axes, ops ---------------------------------------------------------------------------------------------------- */

static void place_axis(struct making *m, uint32_t i)
{
    struct weft_program *const p = m->program;
    const bool is_outer = m->outer >> i & 1;
    const int64_t extent = weft_dim_evaluate(m->form->dims, m->form->axis[i].extent, m->symbols);
    m->place[i] = (int8_t)(is_outer ? p->outer_rank++ : p->inner_rank++);
    (is_outer ? p->outer : p->inner)[m->place[i]] = extent > 0 ? extent : 0;
}

/* The axis of chunks is the last outer one. */
static void place_axes(struct making *m)
{
    const int last = chunk_axis(m->form);
    for (uint32_t k = 0; k < m->form->axes + (last >= 0); k++) {
        const uint32_t i = k < m->form->axes ? k : (uint32_t)last;
        if ((k != i || (int)i != last) && m->form->axis[i].pieces_of < 0)
            place_axis(m, i);
    }
}

/* The axis of the form along a dimension of an array, or -1. */
static int axis_along(const struct weft_form *form, uint32_t array, int dim)
{
    for (uint32_t i = 0; i < form->ops; i++)
        if ((form->op[i].kind == WEFT_FORM_LOAD || form->op[i].kind == WEFT_FORM_STORE) &&
            form->op[i].array == array) {
            const struct weft_index *const at = &form->map[form->op[i].map].at[dim];
            return at->terms ? at->term[0].axis : -1;
        }
    return -1;
}

static void place_box(struct making *m, const struct weft_strips_box *box)
{
    for (int k = 0; k < box->rows + box->columns; k++) {
        const int axis = axis_along(m->form, box->array, box->dim[k]);
        if (axis >= 0 && k < box->rows)
            m->outer |= (uint16_t)(1u << axis);
        if (axis >= 0)
            place_axis(m, (uint32_t)axis);
    }
}

/* What a part is a part of. */
static uint32_t whole_of(const struct weft_form *form, uint32_t op)
{
    for (uint32_t i = op + 1; i < form->ops; i++)
        if (form->op[i].falls_back && form->op[i].in[form->op[i].ins - 1] == op)
            op = i;
    return op;
}

static void add_look_up(const struct making *m, uint32_t i, struct weft_program_op *op)
{
    const struct weft_form_op *const from = &m->form->op[i];
    uint32_t guard;
    *op = (struct weft_program_op){.ins = 1, .out = (uint16_t)whole_of(m->form, i), .part = from->falls_back,
                                   .in = {(uint16_t)weft_strips_source(m->form, i, &guard)}};
    op->guard = (uint16_t)guard;
    op->guards = (uint8_t)weft_strips_guards(m->form, i);
    if (weft_dtype_is_float(from->dtype))
        weft_store_real(from->dtype, op->number, 0, from->number);
    else
        weft_store_integer(from->dtype, op->number, 0, from->integer);
}

static enum weft_along_op scan_op(uint8_t fold)
{
    return fold == WEFT_K_SUM ? WEFT_K_CUMSUM : fold == WEFT_K_PROD ? WEFT_K_CUMPROD
           : fold == WEFT_K_MAX ? WEFT_K_CUMMAX : WEFT_K_CUMMIN;
}

/* How many folds and scans there are already. */
struct added {
    uint32_t ops, folds, scans;
};

static void add_op(const struct making *m, uint32_t i, struct added *added)
{
    const struct weft_form_op *from = &m->form->op[i];
    if (weft_strips_is_look_up(m->form, i))
        add_look_up(m, i, &m->program->op[added->ops++]);
    if (from->kind != WEFT_FORM_MAP && from->kind != WEFT_FORM_FOLD && from->kind != WEFT_FORM_SCAN)
        return;
    struct weft_program_op *const op = &m->program->op[added->ops++];
    *op = (struct weft_program_op){.ins = from->ins, .out = (uint16_t)i, .param = {from->param[0], from->param[1]}};
    for (unsigned k = 0; k < from->ins; k++)
        op->in[k] = (uint16_t)from->in[k];
    const int in = m->form->op[from->in[from->ins == 3 ? 1 : 0]].dtype;
    if (from->kind == WEFT_FORM_MAP) {
        op->kernel = weft_strip_find(from->word, in, from->dtype, m->program->cpu);
        weft_assert(op->kernel);
        return;
    }
    if (from->kind == WEFT_FORM_SCAN) {
        op->scans = true;
        op->fold = (uint16_t)added->scans++;
        m->program->scan[op->fold].scan = (struct weft_scan){
            .op = scan_op(from->fold), .dtype = from->dtype, .exclusive = from->exclusive, .reverse = from->reverse};
        return;
    }
    op->fold = (uint16_t)added->folds++;
    m->program->fold[op->fold].across = weft_strips_is_across(m->form, i);
    m->program->fold[op->fold].reduce = (struct weft_reduce){
        .op = (enum weft_reduce_op)from->fold, .in_dtype = (uint8_t)in, .out_dtype = from->dtype};
}

static struct making open_program(const struct weft_form *form, uint32_t cpu, const int64_t *symbols,
                                  const struct weft_tensor *tensor, void *memory)
{
    const struct weft_program_counts counts = counts_of(form);
    struct making m = {.form = form, .symbols = symbols, .tensor = tensor};
    m.program = weft_program_open(memory, &counts);
    m.program->cpu = cpu;
    m.program->arguments = (uint16_t)form->arrays;
    m.program->may_share = weft_form_may_share_scan(form);
    return m;
}

/* Where axes are placed. */
static void fill_program(struct making *m)
{
    const struct weft_form *form = m->form;
    struct added added = {0};
    place_values(m);
    for (uint32_t s = 0; s < form->stages; s++) {
        m->program->stage[s] = (struct weft_program_stage){
            .inside = is_inside(m, s), .first = (uint16_t)added.ops};
        for (uint32_t i = form->stage[s].first; i < form->stage[s].first + form->stage[s].ops; i++)
            add_op(m, i, &added);
        m->program->stage[s].ops = (uint16_t)(added.ops - m->program->stage[s].first);
    }
}

struct weft_program *weft_strips_make(const struct weft_form *form, uint32_t cpu, const int64_t *symbols,
                                      const struct weft_tensor *tensor, int workers, void *memory)
{
    struct making m = open_program(form, cpu, symbols, tensor, memory);
    if (chunk_axis(form) >= 0)
        m.program->chunk = weft_dim_value(form->phase[0].by[chunk_axis(form)]);
    m.outer = form->phase[0].axes;
    place_axes(&m);
    fill_program(&m);
    weft_program_prepare(m.program, workers);
    return m.program;
}

struct weft_program *weft_strips_make_pieces(const struct weft_form *form, const struct weft_strips_box *box,
                                             uint32_t cpu, const int64_t *symbols, const struct weft_tensor *tensor,
                                             void *memory)
{
    struct making m = open_program(form, cpu, symbols, tensor, memory);
    place_box(&m, box);
    fill_program(&m);
    weft_program_prepare_pieces(m.program);
    return m.program;
}

struct weft_program *weft_strips_make_rows(const struct weft_form *form, const struct weft_strips_box *box,
                                           uint32_t cpu, const int64_t *symbols, const struct weft_tensor *tensor,
                                           void *memory)
{
    struct making m = open_program(form, cpu, symbols, tensor, memory);
    place_box(&m, box);
    fill_program(&m);
    m.program->ordered = true;
    weft_program_prepare(m.program, 1);
    return m.program;
}
