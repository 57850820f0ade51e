/* SPDX-License-Identifier: Apache-2.0 */
/* form_check.c: what a form must hold to. Here: its parts fit together, names tell them apart, ALONGs close, what is
 * carried goes on, results are stored. form_check_op.c looks at instructions, form_check_index.c at indices.
 *
 * A form may come from a text that anybody wrote, so numbers of parts are looked at before they are followed. The first
 * fault ends the check. It takes time in the size of the form and the depth of its ALONGs. */
#include "codegen/form_check.h"

#include "ir/parse.h"

#include <stdio.h>
#include <string.h>

bool weft_form_complain(struct weft_form_checker *c, const char *format, ...)
{
    char message[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (!c->fault)
        c->fault = weft_arena_format(c->arena, "%s", message);
    return false;
}

const char *weft_form_called(struct weft_form_checker *c, uint32_t op)
{
    return weft_form_label(c->form, op, c->arena);
}

const char *weft_form_axis_name(const struct weft_form_checker *c, uint16_t axes)
{
    for (unsigned a = 0; a < c->form->axes; a++)
        if (axes >> a & 1)
            return c->form->axis[a].name;
    return "that there is not";
}

/* --- axes, arrays, names ------------------------------------------------------------------------------------------ */

static bool is_word(const char *name)
{
    const char *c = name;
    for (; *c; c++) {
        const bool letter = *c == '_' || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        if (!letter && !(c > name && *c >= '0' && *c <= '9'))
            return false;
    }
    return c > name;
}

/* An extent that may be 0 or more. */
static bool is_size(const struct weft_form *form, weft_dim d)
{
    int64_t low, high;
    if (!weft_dim_exists(form->dims, d))
        return false;
    weft_dim_range(form->dims, d, &low, &high);
    return high >= 0;
}

/* The length of tiles or pieces: above 0 for some sizes, or 0 where the back end chooses. */
static bool is_length(const struct weft_form *form, weft_dim d)
{
    int64_t low, high;
    if (!weft_dim_exists(form->dims, d))
        return false;
    weft_dim_range(form->dims, d, &low, &high);
    return high > 0 || weft_dim_is(d, 0);
}

static bool check_axis(struct weft_form_checker *c, uint32_t a)
{
    const struct weft_form *const form = c->form;
    const struct weft_form_axis *const axis = &form->axis[a];
    if (!axis->name || !is_word(axis->name))
        return weft_form_complain(c, "an axis is called '%s', which is no word", axis->name ? axis->name : "");
    for (uint32_t b = 0; b < a; b++)
        if (strcmp(form->axis[b].name, axis->name) == 0)
            return weft_form_complain(c, "two axes are called %s", axis->name);
    if (!is_size(form, axis->extent))
        return weft_form_complain(c, "axis %s has an extent below 0", axis->name);
    if (axis->pieces_of < 0)
        return true;
    if (axis->pieces_of >= (int)a || weft_dim_is(axis->by, 0) || !is_length(form, axis->by))
        return weft_form_complain(c, "axis %s numbers pieces of no axis before it, or of no length", axis->name);
    weft_dims_try(form->dims);
    const weft_dim pieces = weft_dim_ceil_div(form->dims, form->axis[axis->pieces_of].extent, axis->by);
    return (!weft_dims_tried(form->dims) && weft_dim_same(pieces, axis->extent)) ||
           weft_form_complain(c, "axis %s is not as long as axis %s has pieces", axis->name,
                              form->axis[axis->pieces_of].name);
}

static bool check_arrays(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    struct weft_parse_names names = {0};
    for (uint32_t i = 0; i < form->arrays; i++) {
        const struct weft_form_array *const array = &form->array[i];
        if (!array->name || !*array->name || !weft_dtype_name(array->dtype) || array->rank > WEFT_MAX_RANK ||
            array->use > WEFT_FORM_SCRATCH)
            return weft_form_complain(c, "array %u has no name, no element type, or more axes than there can be", i);
        if (weft_parse_names_find(&names, (struct weft_word){array->name, strlen(array->name)}))
            return weft_form_complain(c, "two arrays are called %%%s", array->name);
        weft_parse_names_add(c->arena, &names, array->name, i + 1);
        for (unsigned k = 0; k < array->rank; k++)
            if (!is_size(form, array->extent[k]))
                return weft_form_complain(c, "%%%s has an extent below 0", array->name);
    }
    return true;
}

static bool check_names(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    struct weft_parse_names names = {0};
    for (uint32_t i = 0; i < form->ops; i++) {
        const char *const name = form->op[i].name;
        if (!name || !weft_form_has_value(&form->op[i]))
            continue;
        c->at.op = i;
        if (!*name || weft_parse_names_find(&names, (struct weft_word){name, strlen(name)}))
            return weft_form_complain(c, "two values are called %%%s, or one has an empty name", name);
        weft_parse_names_add(c->arena, &names, name, i + 1);
    }
    c->at.op = WEFT_FORM_NOWHERE;
    return true;
}

/* --- stages, phases ----------------------------------------------------------------------------------------------- */

/* Phases hold all stages and stages all ops, each one behind the other. */
static bool check_parts(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    uint32_t stages = 0, ops = 0;
    for (uint32_t i = 0; i < form->phases; i++) {
        if (form->phase[i].first != stages || form->phase[i].stages > form->stages - stages)
            return weft_form_complain(c, "the stages of phase %u are not those behind the phase before it", i);
        stages += form->phase[i].stages;
    }
    for (uint32_t s = 0; s < form->stages; s++) {
        if (form->stage[s].first != ops || form->stage[s].ops > form->ops - ops ||
            form->stage[s].kind > WEFT_FORM_ALONG)
            return weft_form_complain(c, "the ops of stage %u are not those behind the stage before it", s);
        for (uint32_t i = 0; i < form->stage[s].ops; i++)
            c->stage_of[ops++] = s;
    }
    return (stages == form->stages && ops == form->ops) ||
           weft_form_complain(c, "a stage is of no phase, or an op of no stage");
}

static bool check_stage(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    const uint32_t s = c->at.stage;
    const struct weft_form_stage *const stage = &form->stage[s];
    if (stage->axes >> form->axes || (stage->kind == WEFT_FORM_ALONG && stage->axis >= form->axes))
        return weft_form_complain(c, "a stage goes over an axis that there is not");
    if (stage->kind == WEFT_FORM_ALONG)
        return (stage->ops == 0 && is_length(form, stage->by)) ||
               weft_form_complain(c, "an along has pieces of no length, or ops of its own");
    if (stage->kind == WEFT_FORM_BEGIN) {
        const uint32_t next = s + 1;
        if (next >= c->phase->first + c->phase->stages || form->stage[next].kind != WEFT_FORM_ALONG ||
            c->parent[next] != c->parent[s])
            return weft_form_complain(c, "no along stands directly behind this `begin`");
    }
    if (stage->kind == WEFT_FORM_MULTIPLY &&
        (stage->ops == 0 || form->op[stage->first + stage->ops - 1].kind != WEFT_FORM_CONTRACT))
        return weft_form_complain(c, "this stage ends in no contract");
    for (uint32_t i = 0; i + 1 < stage->ops && stage->kind == WEFT_FORM_MULTIPLY; i++)
        if (form->op[stage->first + i].kind == WEFT_FORM_CONTRACT)
            return weft_form_complain(c, "a contract stands behind loads in a stage of its own");
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++) {
        c->at.op = i;
        if (!weft_form_check_op(c))
            return false;
    }
    c->at.op = WEFT_FORM_NOWHERE;
    return true;
}

/* Marks what this phase stores before any load of it is looked at. */
static void mark_stored(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    for (uint32_t s = c->phase->first; s < c->phase->first + c->phase->stages; s++)
        for (uint32_t i = form->stage[s].first; i < form->stage[s].first + form->stage[s].ops; i++)
            if (form->op[i].kind == WEFT_FORM_STORE && form->op[i].array < form->arrays)
                c->stored[form->op[i].array] = c->phase_id + 1;
}

static bool check_phase(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    if (c->phase->axes >> form->axes)
        return weft_form_complain(c, "a phase cuts an axis that there is not");
    for (unsigned a = 0; a < form->axes; a++)
        if (c->phase->axes >> a & 1 && !is_length(form, c->phase->by[a]))
            return weft_form_complain(c, "a phase cuts axis %s in tiles of no length", form->axis[a].name);
    mark_stored(c);
    for (uint32_t s = c->phase->first; s < c->phase->first + c->phase->stages; s++) {
        c->at.stage = s;
        if (!check_stage(c))
            return false;
    }
    c->at.stage = WEFT_FORM_NOWHERE;
    return true;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static bool check_ends(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    for (uint32_t i = 0; i < form->ops; i++)
        if (form->op[i].kind == WEFT_FORM_CARRY && !c->is_next[i]) {
            c->at.op = i;
            return weft_form_complain(c, "%s is carried, but has no next", weft_form_called(c, i));
        }
    for (uint32_t i = 0; i < form->arrays; i++)
        if (form->array[i].use == WEFT_FORM_OUT && !c->stored[i])
            return weft_form_complain(c, "nothing stores the result %%%s", form->array[i].name);
    return true;
}

static bool check_form(struct weft_form_checker *c)
{
    const struct weft_form *const form = c->form;
    uint32_t culprit = WEFT_FORM_NOWHERE;
    if (!form->name || !*form->name)
        return weft_form_complain(c, "a kernel has no name");
    if (form->axes > WEFT_FORM_AXES)
        return weft_form_complain(c, "a kernel has at most %d axes", WEFT_FORM_AXES);
    for (uint32_t a = 0; a < form->axes; a++)
        if (!check_axis(c, a))
            return false;
    if (!check_arrays(c) || !check_parts(c) || !check_names(c))
        return false;
    c->parent = weft_form_parents(form, c->arena, &culprit);
    if (!c->parent) {
        c->at.stage = culprit;
        return weft_form_complain(c, "an along does not close inside of its phase, or of the along around it");
    }
    for (c->phase_id = 0; c->phase_id < form->phases; c->phase_id++) {
        c->phase = &form->phase[c->phase_id];
        if (!check_phase(c))
            return false;
    }
    return check_ends(c);
}

const char *weft_form_find_fault(const struct weft_form *form, struct weft_arena *arena, struct weft_form_place *ret)
{
    struct weft_form_checker c = {.form = form, .arena = arena, .at = {WEFT_FORM_NOWHERE, WEFT_FORM_NOWHERE}};
    c.stage_of = weft_new(arena, uint32_t, form->ops + 1);
    c.stored = weft_new(arena, uint32_t, form->arrays + 1);
    c.is_next = weft_new(arena, bool, form->ops + 1);
    check_form(&c);
    *ret = c.at;
    return c.fault;
}

const char *weft_form_fault(const struct weft_form *form, struct weft_arena *arena)
{
    struct weft_form_place place;
    return weft_form_find_fault(form, arena, &place);
}
