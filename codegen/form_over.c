/* SPDX-License-Identifier: Apache-2.0 */
/* form_over.c: may a result of a kernel be written over one of its arguments? The contract: form.h.
 *
 * A back end does what a form says in its order: tiles in any order and at the same time, the stages of a tile one
 * behind the other, and of a stage any number of points side by side, each with all instructions. It may read a row
 * ahead of time only for what is computed ahead of time, and what is kept of a stage for the next ones it may compute
 * once more from what that loads. So what an argument holds is read
 *
 *   by other tiles        whenever these run: each element is needed by the tile that writes over it alone, which is
 *                         so where loads go along the axes that are cut as the store does;
 *   by earlier stages     before the store's stage begins: wherever they like inside of the tile;
 *   by the store's stage  at any time before and after the store of another point: at the store's own point alone, by
 *                         instructions that are done before the one that makes the result;
 *   later                 not at all.
 *
 * Of a stage that scans, a back end may do all points of a piece of a line up to the scan, then the scan, then what is
 * behind it; and where it shares a line out, all up to the scan of each piece twice.
 *
 *   softmax        sweep r, c    %0 = load %x[r, c]    %m = fold reduce_max %0
 *                  sweep r, c    %1 = load %x[r, c]    %e = exp(%1 - %m)    %s = fold sum %e
 *                  sweep r, c    %q = div %e, %s       store %y[r, c], %q           %y may be %x
 *
 *   a second use   …             %q = div %e, %s       store %y[r, c], %q
 *                                %k = mul %e, %s       store %k…                    %e may be made of %x again */
#include "codegen/form_parts.h"

struct over {
    const struct weft_form *form;
    const struct weft_form_over *ask;
    uint32_t store, stage, maker; /* the store, its stage, and what makes the value that it stores */
    bool *stored;                 /* by instruction: a store has its value */
};

static bool is_plain(const struct weft_index *at) { return !at->data && !at->border && !at->is_near && !at->over; }

static bool same_index(const struct weft_index *a, const struct weft_index *b)
{
    bool same = a->terms == b->terms && weft_dim_same(a->base, b->base);
    for (unsigned t = 0; t < a->terms && same; t++)
        same = a->term[t].axis == b->term[t].axis && weft_dim_same(a->term[t].step, b->term[t].step);
    return same;
}

/* Does the index name a point of one axis of the phase, and nothing else? */
static bool is_cut(const struct weft_form *form, const struct weft_index *at)
{
    return at->terms == 1 && weft_dim_is(at->base, 0) && weft_dim_is(at->term[0].step, 1) &&
           form->phase[0].axes >> at->term[0].axis & 1;
}

/* Every axis that is cut in tiles is a dimension of the store. */
static bool stores_tiles_apart(const struct over *o)
{
    const struct weft_index_map *const map = &o->form->map[o->form->op[o->store].map];
    uint16_t found = 0;
    for (int d = 0; d < map->rank; d++)
        if (is_plain(&map->at[d]) && is_cut(o->form, &map->at[d]))
            found |= (uint16_t)(1u << map->at[d].term[0].axis);
    for (uint32_t i = 0; i < o->form->axes; i++)
        if (weft_dim_is(o->form->axis[i].extent, 1))
            found |= (uint16_t)(1u << i);
    return (o->form->phase[0].axes & ~found) == 0;
}

/* Does a load read where the store writes: along the axes that are cut, or along all? */
static bool reads_where_it_writes(const struct over *o, uint32_t load, bool all)
{
    const struct weft_index_map *const to = &o->form->map[o->form->op[o->store].map];
    const struct weft_index_map *const from = &o->form->map[o->form->op[load].map];
    bool same = true;
    for (int d = 0; d < to->rank && same; d++)
        same = o->ask->dim[d] < 0 || !(all || is_cut(o->form, &to->at[d])) ||
               same_index(&to->at[d], &from->at[o->ask->dim[d]]);
    return same;
}

/* What instructions need that take the value from an earlier stage, where it may be made once more. */
struct needs {
    bool any;   /* the argument, somewhere */
    bool other; /* and at another index than the store's */
};

static struct needs needs_of(const struct over *o, const struct needs *needs, uint32_t v)
{
    const struct weft_form_op *const op = &o->form->op[v];
    struct needs ret = {false, false};
    if (op->kind != WEFT_FORM_LOAD && (op->kind != WEFT_FORM_MAP || o->stored[v]))
        return ret; /* a number that was folded, or what is read where it was stored */
    for (unsigned k = 0; k < op->ins; k++) {
        ret.any |= needs[op->in[k]].any;
        ret.other |= needs[op->in[k]].other;
    }
    if (op->kind == WEFT_FORM_LOAD && op->array == o->ask->in) {
        ret.any = true;
        ret.other |= !reads_where_it_writes(o, v, /* all= */ true);
    }
    return ret;
}

static const char *check_load(const struct over *o, uint32_t load)
{
    const struct weft_index_map *const map = &o->form->map[o->form->op[load].map];
    for (int d = 0; d < map->rank; d++)
        if (!is_plain(&map->at[d]))
            return "it is read at indices that are looked up";
    return reads_where_it_writes(o, load, /* all= */ false) ? NULL : "it is read at another index than is written";
}

/* Of an instruction: what it reads of its own stage, it reads there; what of an earlier one, maybe once more. */
static const char *check_op(const struct over *o, const struct needs *needs, uint32_t stage, uint32_t i)
{
    const struct weft_form_op *const op = &o->form->op[i];
    for (unsigned k = 0; k < op->ins && op->kind != WEFT_FORM_STORE; k++) {
        const uint32_t v = op->in[k];
        const bool reads = v < o->form->stage[stage].first || o->form->op[v].kind == WEFT_FORM_LOAD;
        if (reads && needs[v].any && i > o->maker)
            return "it is read again behind that";
        if (reads && needs[v].other && stage == o->stage)
            return "it is read at another index than is written";
    }
    return op->kind == WEFT_FORM_LOAD && op->array == o->ask->in ? check_load(o, i) : NULL;
}

/* One store, of what an instruction of its own stage makes, in a kernel of one phase. */
static bool find_store(struct over *o)
{
    const struct weft_form *const form = o->form;
    uint32_t found = 0;
    for (uint32_t s = 0; s < form->stages && form->phases == 1; s++) {
        if (form->stage[s].kind != WEFT_FORM_SWEEP)
            return false;
        for (uint32_t i = form->stage[s].first; i < form->stage[s].first + form->stage[s].ops; i++) {
            if (form->op[i].kind != WEFT_FORM_STORE)
                continue;
            o->stored[form->op[i].in[0]] = true;
            if (form->op[i].array != o->ask->out)
                continue;
            found++;
            o->store = i;
            o->stage = s;
            o->maker = form->op[i].in[0];
        }
    }
    const uint8_t kind = form->op[o->maker].kind;
    return found == 1 && (kind == WEFT_FORM_MAP || kind == WEFT_FORM_SCAN) &&
           o->maker >= form->stage[o->stage].first;
}

/* A scan that is exclusive writes the next element before it reads it; and what stands in front of a scan that is
 * shared out in chunks is computed twice. */
static const char *check_scan(const struct over *o)
{
    const struct weft_form *const form = o->form;
    const struct weft_form_op *const maker = &form->op[o->maker];
    const struct weft_form_stage *const stage = &form->stage[o->stage];
    bool reads = false;
    if (maker->kind == WEFT_FORM_SCAN && maker->exclusive && form->op[maker->in[0]].kind == WEFT_FORM_LOAD &&
        form->op[maker->in[0]].array == o->ask->in)
        return "an exclusive scan reads it";
    for (uint32_t i = stage->first; i < stage->first + stage->ops && weft_form_may_share_scan(form); i++) {
        reads |= form->op[i].kind == WEFT_FORM_LOAD && form->op[i].array == o->ask->in;
        if (form->op[i].kind == WEFT_FORM_SCAN && i > o->maker && reads)
            return "it is read again where a scan begins with the next chunk";
    }
    return NULL;
}

const char *weft_form_refuse_over(const struct weft_form *form, const struct weft_form_over *ask,
                                  struct weft_arena *arena, uint32_t *ret_op)
{
    struct over o = {.form = form, .ask = ask, .stored = weft_new(arena, bool, form->ops)};
    struct needs *const needs = weft_new(arena, struct needs, form->ops);
    const char *why = NULL;
    *ret_op = 0;
    if (!find_store(&o) || !stores_tiles_apart(&o))
        return "that is not computed point by point";
    why = check_scan(&o);
    for (uint32_t s = 0; s < form->stages; s++)
        for (uint32_t i = form->stage[s].first; i < form->stage[s].first + form->stage[s].ops && !why; i++) {
            why = check_op(&o, needs, s, i);
            needs[i] = needs_of(&o, needs, i);
            *ret_op = i;
        }
    return why;
}

uint32_t weft_form_last_read(const struct weft_form *form, uint32_t array)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < form->ops; i++)
        for (unsigned k = 0; k < form->op[i].ins; k++) {
            const struct weft_form_op *const in = &form->op[form->op[i].in[k]];
            last = in->kind == WEFT_FORM_LOAD && in->array == array ? i : last;
        }
    return last;
}
