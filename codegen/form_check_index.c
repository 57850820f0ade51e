/* SPDX-License-Identifier: Apache-2.0 */
/* form_check_index.c: do indices stay inside of their arrays, and do the points of a store stand at elements of their
 * own?
 *
 * Both are proved with the ranges of sizes (weft_dim_range), for all values of the symbols: what cannot be proved is a
 * fault. Along an axis of extent e there are the numbers from 0 to e - 1; where e is 0, there is no point, and nothing
 * is asked: the proofs hold for e >= 1. */
#include "codegen/form_check.h"

static bool at_least(struct weft_dims *dims, weft_dim a, weft_dim b)
{
    int64_t low, high;
    weft_dim_range(dims, weft_dim_sub(dims, a, b), &low, &high);
    return low >= 0;
}

/* step * (extent - 1): how far the term goes. */
static weft_dim reach_of(const struct weft_form *form, const struct weft_index_term *term)
{
    const weft_dim last = weft_dim_sub(form->dims, form->axis[term->axis].extent, weft_dim_of(1));
    return weft_dim_mul(form->dims, term->step, last);
}

/* Is every index of this dimension from 0 to extent - 1? */
static bool stays_inside(const struct weft_form *form, const struct weft_index *index, weft_dim extent)
{
    struct weft_dims *const dims = form->dims;
    weft_dim low = index->base, high = index->base;
    for (unsigned t = 0; t < index->terms; t++) {
        const weft_dim reach = reach_of(form, &index->term[t]);
        const bool rises = at_least(dims, index->term[t].step, weft_dim_of(0));
        if (!rises && !at_least(dims, weft_dim_of(0), index->term[t].step))
            return false;
        *(rises ? &high : &low) = weft_dim_add(dims, rises ? high : low, reach);
    }
    const weft_dim most = index->over ? weft_dim_mul(dims, extent, weft_dim_of(index->over)) : extent;
    return at_least(dims, low, weft_dim_of(0)) && at_least(dims, weft_dim_sub(dims, most, weft_dim_of(1)), high);
}

/* A value of integers alone, in a load. */
static bool is_index_value(const struct weft_form *form, const struct weft_form_op *op, const struct weft_index *index)
{
    if (op->kind != WEFT_FORM_LOAD || index->data > op->ins || index->terms || index->border ||
        !weft_dim_is(index->base, 0))
        return false;
    const int dtype = form->op[op->in[index->data - 1]].dtype;
    return !weft_dtype_is_float(dtype) && dtype != WEFT_BOOL;
}

/* Axes whose place is known at this point: the stage's, and numbers of pieces. */
static bool check_axes(struct weft_form_checker *c, const struct weft_form_op *op, const struct weft_index *index)
{
    const struct weft_form *const form = c->form;
    const char *const array = form->array[op->array].name;
    if (index->data && !is_index_value(form, op, index))
        return weft_form_complain(c, "an index of %%%s is a value, but in a store, in a sum, or no integer", array);
    if (index->is_near)
        return weft_form_complain(c, "an index of %%%s is not a sum of axes", array);
    if (index->border != WEFT_BORDER_NONE && index->border != WEFT_BORDER_SKIPPED)
        return weft_form_complain(c, "an index of %%%s has a border that a form does not know", array);
    if (index->over && (index->over < 2 || index->data || index->border || op->kind != WEFT_FORM_LOAD))
        return weft_form_complain(c, "an index of %%%s is divided, but in a store, guarded, or a value", array);
    if (index->terms > WEFT_INDEX_TERMS || !weft_dim_exists(form->dims, index->base))
        return weft_form_complain(c, "an index of %%%s is broken", array);
    for (unsigned t = 0; t < index->terms; t++) {
        const int axis = index->term[t].axis;
        if (axis < 0 || axis >= (int)form->axes || (t > 0 && axis <= index->term[t - 1].axis) ||
            !weft_dim_exists(form->dims, index->term[t].step) || weft_dim_is(index->term[t].step, 0))
            return weft_form_complain(c, "an index of %%%s is broken", array);
        if (!(form->stage[c->at.stage].axes >> axis & 1) &&
            !weft_form_knows_piece(form, c->phase, c->parent, c->at.stage, (unsigned)axis))
            return weft_form_complain(c, "axis %s of an index of %%%s is none of its stage, nor does the phase or an "
                                         "along cut pieces that it numbers", form->axis[axis].name, array);
    }
    return true;
}

bool weft_form_check_access(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_op *const op = &form->op[c->at.op];
    const struct weft_index_map *const map = &form->map[op->map];
    const struct weft_form_array *const array = &form->array[op->array];
    bool guarded = false;
    unsigned values = 0;
    if (map->rank != array->rank)
        return weft_form_complain(c, "%%%s has %d axes, not %d", array->name, array->rank, map->rank);
    for (int i = 0; i < map->rank; i++) {
        if (!check_axes(c, op, &map->at[i]))
            return false;
        guarded |= map->at[i].border != WEFT_BORDER_NONE;
        values += map->at[i].data != 0;
        weft_dims_try(form->dims);
        const bool inside = map->at[i].border != WEFT_BORDER_NONE || map->at[i].data ||
                            stays_inside(form, &map->at[i], array->extent[i]);
        if (weft_dims_tried(form->dims) || weft_dims_saturated(form->dims) || !inside)
            return weft_form_complain(c, "index %d of %%%s may leave the array, and there is no ?", i, array->name);
    }
    if (op->kind == WEFT_FORM_LOAD && weft_form_indices(op) != values)
        return weft_form_complain(c, "a load of %%%s reads values that are no index", array->name);
    if (op->kind == WEFT_FORM_LOAD && op->falls_back && form->op[op->in[op->ins - 1]].dtype != op->dtype)
        return weft_form_complain(c, "a load of %%%s is of %s, but outside of %s", array->name,
                                  weft_dtype_name(op->dtype), weft_dtype_name(form->op[op->in[op->ins - 1]].dtype));
    const bool real = weft_dtype_is_float(op->dtype);
    const bool says = op->falls_back || (real ? op->number != 0 : op->integer != 0);
    return op->kind != WEFT_FORM_LOAD || guarded || !says ||
           weft_form_complain(c, "a load of %%%s says `else`, but no index of it has a ?", array->name);
}

/* --- once --------------------------------------------------------------------------------------------------------- */

/* One more than all of these axes but `except` reach together in this index; false where a factor has no sign. */
static bool find_rest(const struct weft_form *form, const struct weft_index *index, uint16_t axes, unsigned except,
                      weft_dim *ret)
{
    struct weft_dims *const dims = form->dims;
    *ret = weft_dim_of(1);
    for (unsigned t = 0; t < index->terms; t++) {
        const struct weft_index_term *const term = &index->term[t];
        if (t == except || !(axes >> term->axis & 1))
            continue;
        const bool rises = at_least(dims, term->step, weft_dim_of(0));
        if (!rises && !at_least(dims, weft_dim_of(0), term->step))
            return false;
        *ret = (rises ? weft_dim_add : weft_dim_sub)(dims, *ret, reach_of(form, term));
    }
    return true;
}

/* Which of the axes in `open` follow from this index, if all others are known? The term whose step is longer than all
 * others reach together is found, then the next: a number written in mixed radix. */
static uint16_t found_by(const struct weft_form *form, const struct weft_index *index, uint16_t open)
{
    struct weft_dims *const dims = form->dims;
    uint16_t known = 0;
    for (bool progress = true; progress;) {
        progress = false;
        for (unsigned t = 0; t < index->terms; t++) {
            const uint16_t bit = (uint16_t)(1u << index->term[t].axis), left = open & (uint16_t)~known;
            const weft_dim step = index->term[t].step;
            weft_dim rest;
            if (!(left & bit) || !find_rest(form, index, left, t, &rest) ||
                !(at_least(dims, step, rest) || at_least(dims, weft_dim_sub(dims, weft_dim_of(0), step), rest)))
                continue;
            known |= bit;
            progress = true;
        }
    }
    return known;
}

/* Is it known in which tile or piece of this axis a point stands: from its place, or from the number of the piece? */
static bool tells_cut(const struct weft_form *form, uint16_t known, unsigned axis, weft_dim by)
{
    bool told = known >> axis & 1 || weft_dim_is(form->axis[axis].extent, 1);
    for (unsigned t = 0; t < form->axes; t++)
        told |= known >> t & 1 && form->axis[t].pieces_of == (int)axis && weft_dim_same(form->axis[t].by, by);
    return told;
}

bool weft_form_check_once(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_op *const op = &form->op[c->at.op];
    const struct weft_index_map *const map = &form->map[op->map];
    const char *const array = form->array[op->array].name;
    const uint16_t axes = weft_form_map_axes(map);
    uint16_t known = 0;
    for (unsigned a = 0; a < form->axes; a++)
        if (form->stage[c->at.stage].axes & ~axes & 1u << a && !weft_dim_is(form->axis[a].extent, 1))
            return weft_form_complain(c, "%%%s is stored once for each point of axis %s, which its index does not have",
                                      array, form->axis[a].name);
    weft_dims_try(form->dims);
    for (uint16_t found = axes; found; known |= found) {
        found = 0;
        for (int i = 0; i < map->rank; i++)
            found |= found_by(form, &map->at[i], axes & (uint16_t)~(known | found));
    }
    if (weft_dims_tried(form->dims) || weft_dims_saturated(form->dims) || known != axes)
        return weft_form_complain(c, "two points may store the same element of %%%s", array);
    for (unsigned a = 0; a < form->axes; a++)
        if (c->phase->axes >> a & 1 && !tells_cut(form, known, a, c->phase->by[a]))
            return weft_form_complain(c, "%%%s is stored by each tile of axis %s, which its index does not tell", array,
                                      form->axis[a].name);
    for (uint32_t s = c->parent[c->at.stage]; s != WEFT_FORM_NOWHERE; s = c->parent[s])
        if (!tells_cut(form, known, form->stage[s].axis, form->stage[s].by))
            return weft_form_complain(c, "%%%s is stored for each piece of axis %s, which its index does not tell",
                                      array, form->axis[form->stage[s].axis].name);
    return true;
}
