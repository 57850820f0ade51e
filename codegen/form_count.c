/* SPDX-License-Identifier: Apache-2.0 */
/* form_count.c: how much memory a form touches and how much arithmetic it does, for given sizes.
 *
 * Along one axis of an array, an instruction touches the numbers base + Σ step · place that lie inside: a run of evenly
 * spaced ones, as long as each further step continues the run, repeated for the steps that do not. Over the array's
 * axes these counts are multiplied. That is exact where no two axes of an array share an axis of the form, and an upper
 * bound on a diagonal. What several instructions of a phase touch in one array is counted once where their maps are
 * equal; of different maps, it is their sum, but no more than the box around them holds.
 *
 * An instruction is done at the points of its axes, and again in each tile and piece of axes that it lacks; tiles and
 * pieces whose length is open count as one. Numbers that no int64_t holds stop at its largest. */
#include "codegen/form_parts.h"

#include <stdlib.h>
#include <string.h>

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? -INT64_MAX : INT64_MAX) : sum;
}

static int64_t multiply(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

struct counter {
    const struct weft_form *form;
    const int64_t *symbols;
    const uint32_t *parent;
    const bool *kept;
    bool *done;             /* by op: is there a point at all? */
    int64_t extent[WEFT_FORM_AXES];
    struct weft_form_counts *ret;
};

/* --- elements ----------------------------------------------------------------------------------------------------- */

/* What one index touches of an axis of `extent` elements. */
struct reach {
    int64_t count, low, high; /* inclusive; of none, high < low */
};

struct term {
    int64_t step, extent;
};

static int by_step(const void *a, const void *b)
{
    const int64_t x = ((const struct term *)a)->step, y = ((const struct term *)b)->step;
    return (x > y) - (x < y);
}

/* Numbers low + gap · k for k in [0, run) that are in [0, extent). */
static int64_t count_run(int64_t low, int64_t gap, int64_t run, int64_t extent)
{
    const int64_t first = low >= 0 ? 0 : add(gap - 1, -low) / gap;
    const int64_t last = extent - 1 < low ? -1 : smaller(run - 1, add(extent - 1, -low) / gap);
    return larger(last - first + 1, 0);
}

/* Runs from `low` on, repeated by terms that do not continue them; too many to be looked at one by one are taken to lie
 * inside. */
static int64_t count_repeated(int64_t low, int64_t gap, int64_t run, const struct term *term, unsigned terms,
                              int64_t extent)
{
    enum { MOST_RUNS = 1 << 16 };
    int64_t runs = 1, count = 0, at[WEFT_INDEX_TERMS] = {0};
    for (unsigned t = 0; t < terms; t++)
        runs = multiply(runs, term[t].extent);
    if (runs > MOST_RUNS)
        return smaller(multiply(runs, run), extent);
    for (int64_t i = 0; i < runs; i++) {
        int64_t start = low;
        for (unsigned t = 0; t < terms; t++)
            start = add(start, multiply(at[t], term[t].step));
        count += count_run(start, gap, run, extent);
        for (unsigned t = 0; t < terms && ++at[t] == term[t].extent; t++)
            at[t] = 0;
    }
    return smaller(count, extent);
}

/* As many as there are indices, anywhere. */
static struct reach reach_by_data(const struct counter *c, uint32_t index, int64_t extent)
{
    int64_t points = 1;
    for (unsigned a = 0; a < c->form->axes; a++)
        points = c->form->op[index].axes >> a & 1 ? multiply(points, c->extent[a]) : points;
    return (struct reach){smaller(points, extent), 0, extent - 1};
}

static struct reach reach_of(const struct counter *c, const struct weft_index *index, int64_t extent)
{
    const struct weft_dims *const dims = c->form->dims;
    struct term term[WEFT_INDEX_TERMS];
    unsigned terms = 0, joined = 0;
    int64_t low = weft_dim_evaluate(dims, index->base, c->symbols), high = low, gap = 1, run = 1;
    for (unsigned t = 0; t < index->terms; t++) {
        const int64_t step = weft_dim_evaluate(dims, index->term[t].step, c->symbols);
        const int64_t length = c->extent[index->term[t].axis], far = multiply(llabs(step), length - 1);
        low = step < 0 ? add(low, -far) : low; /* a falling term is a rising one from its other end */
        high = step < 0 ? high : add(high, far);
        if (step != 0 && length > 1)
            term[terms++] = (struct term){llabs(step), length};
    }
    qsort(term, terms, sizeof *term, by_step);
    for (; joined < terms; joined++) {
        const struct term next = term[joined];
        gap = run == 1 ? next.step : gap;
        if (next.step % gap != 0 || next.step / gap > run)
            break;
        run = add(run, multiply(next.step / gap, next.extent - 1));
    }
    if (index->over) /* a run of every element, or of some with gaps */
        return (struct reach){smaller((high - low) / index->over + 1, smaller(run, extent)), low / index->over,
                              smaller(high / index->over, extent - 1)};
    const int64_t count = count_repeated(low, gap, run, term + joined, terms - joined, extent);
    return (struct reach){count, larger(low, 0), smaller(high, extent - 1)};
}

/* What a phase touches of one array by loads, or by stores. */
struct touched {
    int64_t sum, low[WEFT_MAX_RANK], high[WEFT_MAX_RANK];
};

static void touch(const struct counter *c, const struct weft_form_op *op, struct touched *touched)
{
    const struct weft_form_array *const array = &c->form->array[op->array];
    const struct weft_index_map *const map = &c->form->map[op->map];
    struct reach reach[WEFT_MAX_RANK];
    int64_t count = 1;
    for (int i = 0; i < map->rank; i++) {
        const int64_t extent = weft_dim_evaluate(c->form->dims, array->extent[i], c->symbols);
        reach[i] = map->at[i].data ? reach_by_data(c, op->in[map->at[i].data - 1], extent)
                                   : reach_of(c, &map->at[i], extent);
        count = multiply(count, reach[i].count);
    }
    for (int i = 0; i < map->rank && count > 0; i++) {
        touched->low[i] = touched->sum ? smaller(touched->low[i], reach[i].low) : reach[i].low;
        touched->high[i] = touched->sum ? larger(touched->high[i], reach[i].high) : reach[i].high;
    }
    touched->sum = add(touched->sum, count);
}

/* Loads or stores of a phase, from op `first` on to `end`, that are of the same array as op `first`. */
static int64_t count_array(const struct counter *c, uint32_t first, uint32_t end, bool *seen)
{
    const struct weft_form *const form = c->form;
    struct touched touched = {0};
    int64_t box = 1;
    for (uint32_t i = first; i < end; i++) {
        const struct weft_form_op *const op = &form->op[i];
        if (op->kind != form->op[first].kind || op->array != form->op[first].array || seen[i])
            continue;
        for (uint32_t k = i; k < end && c->done[i]; k++)
            seen[k] |= c->done[k] && form->op[k].kind == op->kind && form->op[k].array == op->array &&
                       weft_form_same_access(form, &form->op[k], op);
        if (c->done[i])
            touch(c, op, &touched);
    }
    for (unsigned i = 0; i < form->array[form->op[first].array].rank; i++)
        box = multiply(box, touched.high[i] - touched.low[i] + 1);
    return smaller(touched.sum, box);
}

static void count_memory(const struct counter *c, uint32_t first, uint32_t end, bool *seen)
{
    for (uint32_t i = first; i < end; i++) {
        const struct weft_form_op *const op = &c->form->op[i];
        if ((op->kind != WEFT_FORM_LOAD && op->kind != WEFT_FORM_STORE) || seen[i])
            continue;
        const struct weft_form_array *const array = &c->form->array[op->array];
        const int64_t elements = count_array(c, i, end, seen);
        const int64_t bits = multiply(elements, weft_dtype_bits(array->dtype));
        const int64_t bytes = bits == INT64_MAX ? bits : (bits + 7) / 8;
        int64_t *const to = op->kind == WEFT_FORM_LOAD ? &c->ret->bytes_read : &c->ret->bytes_written;
        int64_t *const plain = op->kind == WEFT_FORM_LOAD ? &c->ret->elements_read : &c->ret->elements_written;
        *to = add(*to, bytes);
        *plain = add(*plain, array->use == WEFT_FORM_SCRATCH ? 0 : elements);
    }
}

/* --- arithmetic --------------------------------------------------------------------------------------------------- */

/* Lengths that an axis is cut to, from the outermost on. */
struct cuts {
    unsigned count;
    int64_t length[1 + WEFT_FORM_AXES];
};

static void cut(const struct counter *c, struct cuts *cuts, weft_dim by)
{
    const int64_t length = weft_dim_evaluate(c->form->dims, by, c->symbols);
    if (length > 0 && cuts->count <= WEFT_FORM_AXES)
        cuts->length[cuts->count++] = length;
}

/* Innermost pieces of this many elements. */
static int64_t count_pieces(int64_t elements, const int64_t *length, unsigned cuts)
{
    if (elements == 0 || cuts == 0)
        return elements > 0;
    return add(multiply(elements / *length, count_pieces(*length, length + 1, cuts - 1)),
               count_pieces(elements % *length, length + 1, cuts - 1));
}

/* How often a stage is done for axes that an instruction lacks, in tiles and pieces whose length is stated. */
static int64_t count_repeats(const struct counter *c, const struct weft_form_phase *phase, uint32_t stage,
                             uint16_t axes)
{
    int64_t repeats = 1;
    uint32_t along[WEFT_FORM_AXES], depth = 0;
    for (uint32_t s = c->parent[stage]; s != WEFT_FORM_NOWHERE && depth < WEFT_FORM_AXES; s = c->parent[s])
        along[depth++] = s;
    for (unsigned a = 0; a < c->form->axes; a++) {
        struct cuts cuts = {0};
        if (axes >> a & 1)
            continue;
        if (phase->axes >> a & 1)
            cut(c, &cuts, phase->by[a]);
        for (uint32_t d = depth; d-- > 0;)
            if (c->form->stage[along[d]].axis == a)
                cut(c, &cuts, c->form->stage[along[d]].by);
        repeats = cuts.count ? multiply(repeats, count_pieces(c->extent[a], cuts.length, cuts.count)) : repeats;
    }
    return repeats;
}

static bool is_narrow(int dtype) { return dtype == WEFT_F32 || dtype == WEFT_F16 || dtype == WEFT_BF16; }

/* A cast that widens what was loaded, or rounds what is stored, is no arithmetic. */
static bool computes(const struct counter *c, const struct weft_form_op *op)
{
    const bool casts = op->kind == WEFT_FORM_MAP && weft_form_opcode(op->word) == WEFT_OP_cast;
    return op->kind != WEFT_FORM_CARRY && op->kind != WEFT_FORM_NEXT &&
           !(casts && is_narrow(op->dtype) && is_narrow(c->form->op[op->in[0]].dtype));
}

static void count_op(const struct counter *c, const struct weft_form_phase *phase, uint32_t stage, uint32_t id)
{
    const struct weft_form_op *const op = &c->form->op[id];
    const uint16_t axes = op->axes | op->over;
    if (op->kind == WEFT_FORM_LOAD || op->kind == WEFT_FORM_CONST || op->kind == WEFT_FORM_STORE)
        return;
    int64_t points = count_repeats(c, phase, stage, axes);
    for (unsigned a = 0; a < c->form->axes; a++)
        points = axes >> a & 1 ? multiply(points, c->extent[a]) : points;
    c->ret->points = add(c->ret->points, points);
    if (computes(c, op))
        c->ret->flops = add(c->ret->flops, multiply(points, op->kind == WEFT_FORM_CONTRACT ? 2 : 1));
}

/* --- memory of a tile --------------------------------------------------------------------------------------------- */

/* Of one kept value: axes of tiles and pieces are as long as these, or 1 where that is open. */
static int64_t kept_bytes(const struct counter *c, const struct weft_form_phase *phase, uint32_t stage, uint32_t id)
{
    const struct weft_form *const form = c->form;
    int64_t length[WEFT_FORM_AXES], elements = 1;
    memcpy(length, c->extent, sizeof length);
    for (unsigned a = 0; a < form->axes; a++)
        if (phase->axes >> a & 1) {
            const int64_t by = weft_dim_evaluate(form->dims, phase->by[a], c->symbols);
            length[a] = smaller(length[a], larger(by, 1));
        }
    for (uint32_t s = c->parent[stage]; s != WEFT_FORM_NOWHERE; s = c->parent[s]) {
        const unsigned a = form->stage[s].axis;
        length[a] = smaller(length[a], larger(weft_dim_evaluate(form->dims, form->stage[s].by, c->symbols), 1));
    }
    for (unsigned a = 0; a < form->axes; a++)
        elements = form->op[id].axes >> a & 1 ? multiply(elements, length[a]) : elements;
    const int64_t bits = multiply(elements, weft_dtype_bits(form->op[id].dtype));
    return bits == INT64_MAX ? bits : (bits + 7) / 8;
}

/* Is there a point, and a tile and piece that it is in? */
static bool is_done(const struct counter *c, const struct weft_form_phase *phase, uint32_t stage)
{
    uint32_t axes = phase->axes | c->form->stage[stage].axes;
    for (uint32_t s = c->parent[stage]; s != WEFT_FORM_NOWHERE; s = c->parent[s])
        axes |= 1u << c->form->stage[s].axis;
    for (unsigned a = 0; a < c->form->axes; a++)
        if (axes >> a & 1 && c->extent[a] == 0)
            return false;
    return true;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void count_phase(const struct counter *c, const struct weft_form_phase *phase, bool *seen)
{
    const struct weft_form *const form = c->form;
    int64_t kept = 0;
    for (uint32_t s = phase->first; s < phase->first + phase->stages; s++)
        for (uint32_t i = form->stage[s].first; i < form->stage[s].first + form->stage[s].ops; i++) {
            c->done[i] = is_done(c, phase, s);
            count_op(c, phase, s, i);
            kept = c->kept[i] ? add(kept, kept_bytes(c, phase, s, i)) : kept;
        }
    c->ret->kept_bytes = larger(c->ret->kept_bytes, kept);
    if (phase->stages > 0) {
        const struct weft_form_stage *const last = &form->stage[phase->first + phase->stages - 1];
        count_memory(c, form->stage[phase->first].first, last->first + last->ops, seen);
    }
}

void weft_form_count(const struct weft_form *form, const int64_t *symbols, struct weft_form_counts *ret)
{
    uint32_t culprit;
    struct counter c = {.form = form, .symbols = symbols, .ret = ret};
    c.parent = weft_form_parents(form, form->arena, &culprit);
    bool *const kept = weft_new(form->arena, bool, form->ops + 1);
    weft_form_find_kept(form, kept);
    c.kept = kept;
    c.done = weft_new(form->arena, bool, form->ops + 1);
    weft_assert(c.parent != NULL);
    *ret = (struct weft_form_counts){0};
    for (uint32_t a = 0; a < form->axes; a++)
        c.extent[a] = larger(weft_dim_evaluate(form->dims, form->axis[a].extent, symbols), 0);
    bool *const seen = weft_new(form->arena, bool, form->ops + 1);
    for (uint32_t i = 0; i < form->phases; i++)
        count_phase(&c, &form->phase[i], seen);
}
