/* SPDX-License-Identifier: Apache-2.0 */
/* form_parts.c: words, names and axes of the kernel form, as its text, its check and its counts need them. */
#include "codegen/form_parts.h"

#include "ir/parse.h"
#include "kernels/kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const weft_form_fold_words[WEFT_FORM_FOLDS] = {
    [WEFT_K_SUM] = "sum", [WEFT_K_MEAN] = "mean", [WEFT_K_PROD] = "prod", [WEFT_K_MAX] = "reduce_max",
    [WEFT_K_MIN] = "reduce_min"};

/* Ops whose strip kernels read p, or p and q; the words of their other forms ("cast.x") read the same. */
static const struct {
    int op;
    unsigned least, most;
} params[] = {
    {WEFT_OP_cast, 0, 1},             {WEFT_OP_leaky_relu, 1, 1}, {WEFT_OP_thresholded_relu, 1, 1},
    {WEFT_OP_swish, 1, 1},            {WEFT_OP_elu, 1, 1},        {WEFT_OP_celu, 1, 1},
    {WEFT_OP_selu, 2, 2},             {WEFT_OP_shrink, 2, 2},     {WEFT_OP_hard_sigmoid, 2, 2},
    {WEFT_OP_clamp, 2, 2},            {WEFT_OP_is_inf, 2, 2},
};

int weft_form_opcode(const char *word)
{
    return weft_opcode_find(word, strcspn(word, "."));
}

unsigned weft_form_params(const char *word, unsigned *ret_least)
{
    const int op = weft_form_opcode(word);
    *ret_least = 0;
    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        if (params[i].op == op) {
            *ret_least = params[i].least;
            return params[i].most;
        }
    return 0;
}

uint16_t weft_form_map_axes(const struct weft_index_map *map)
{
    uint16_t axes = 0;
    for (int i = 0; i < map->rank; i++)
        for (unsigned t = 0; t < map->at[i].terms; t++)
            axes |= (uint16_t)(1u << map->at[i].term[t].axis);
    return axes;
}

uint16_t weft_form_value_axes(const struct weft_form *form, const struct weft_form_op *op, uint16_t stage)
{
    uint16_t read = 0;
    for (unsigned k = 0; k < op->ins; k++)
        read |= form->op[op->in[k]].axes;
    switch (op->kind) {
    case WEFT_FORM_LOAD:
        return (weft_form_map_axes(&form->map[op->map]) & stage) | read;
    case WEFT_FORM_FOLD:
    case WEFT_FORM_CONTRACT:
        return read & (uint16_t)~op->over;
    case WEFT_FORM_MAP:
    case WEFT_FORM_SCAN:
        return read;
    case WEFT_FORM_CARRY:
        return op->axes;
    case WEFT_FORM_NEXT:
    case WEFT_FORM_STORE:
        return stage;
    default:
        return 0;
    }
}

/* --- names -------------------------------------------------------------------------------------------------------- */

const uint32_t *weft_form_numbers(const struct weft_form *form, struct weft_arena *arena)
{
    uint32_t *const number = weft_new(arena, uint32_t, form->ops + 1);
    struct weft_parse_names taken = {0};
    uint32_t next = 0;
    char digits[16];
    for (uint32_t i = 0; i < form->ops; i++)
        if (form->op[i].name && form->op[i].name[0] >= '0' && form->op[i].name[0] <= '9')
            weft_parse_names_add(arena, &taken, form->op[i].name, 1);
    for (uint32_t i = 0; i < form->ops; i++) {
        if (form->op[i].name || !weft_form_has_value(&form->op[i]))
            continue;
        for (;; next++) {
            const int length = snprintf(digits, sizeof digits, "%" PRIu32, next);
            if (!weft_parse_names_find(&taken, (struct weft_word){digits, (size_t)length}))
                break;
        }
        number[i] = next++;
    }
    return number;
}

const char *weft_form_label(const struct weft_form *form, uint32_t op, struct weft_arena *arena)
{
    struct weft_text text = {.context = arena->context, .arena = arena};
    if (form->op[op].name)
        weft_text_name(&text, '%', form->op[op].name);
    else
        weft_text_format(&text, "%%%" PRIu32, weft_form_numbers(form, arena)[op]);
    return text.data;
}

/* --- stages ------------------------------------------------------------------------------------------------------- */

/* One phase; false, and the ALONG that reaches beyond its phase or the one around it. */
static bool find_parents(const struct weft_form *form, const struct weft_form_phase *phase, uint32_t *parent,
                         uint32_t *ret_culprit)
{
    const uint32_t end = phase->first + phase->stages;
    uint32_t inner = WEFT_FORM_NOWHERE;
    for (uint32_t s = phase->first; s < end; s++) {
        while (inner != WEFT_FORM_NOWHERE && s > inner + form->stage[inner].stages)
            inner = parent[inner];
        parent[s] = inner;
        if (form->stage[s].kind != WEFT_FORM_ALONG)
            continue;
        const uint32_t room = (inner == WEFT_FORM_NOWHERE ? end : inner + 1 + form->stage[inner].stages) - s - 1;
        *ret_culprit = s;
        if (form->stage[s].stages > room)
            return false;
        inner = s;
    }
    return true;
}

const uint32_t *weft_form_parents(const struct weft_form *form, struct weft_arena *arena, uint32_t *ret_culprit)
{
    uint32_t *const parent = weft_new(arena, uint32_t, form->stages + 1);
    for (uint32_t i = 0; i < form->phases; i++)
        if (!find_parents(form, &form->phase[i], parent, ret_culprit))
            return NULL;
    return parent;
}

bool weft_form_knows_piece(const struct weft_form *form, const struct weft_form_phase *phase, const uint32_t *parent,
                           uint32_t stage, unsigned t)
{
    const struct weft_form_axis *const pieces = &form->axis[t];
    if (pieces->pieces_of < 0)
        return false;
    for (uint32_t s = parent[stage]; s != WEFT_FORM_NOWHERE; s = parent[s])
        if (form->stage[s].axis == pieces->pieces_of && weft_dim_same(form->stage[s].by, pieces->by))
            return true;
    return phase->axes >> pieces->pieces_of & 1 && weft_dim_same(phase->by[pieces->pieces_of], pieces->by);
}

bool weft_form_same_access(const struct weft_form *form, const struct weft_form_op *x, const struct weft_form_op *y)
{
    const struct weft_index_map *const a = &form->map[x->map], *const b = &form->map[y->map];
    for (int i = 0; i < a->rank; i++) {
        if (a->at[i].terms != b->at[i].terms || a->at[i].border != b->at[i].border ||
            a->at[i].data != b->at[i].data || a->at[i].over != b->at[i].over ||
            !weft_dim_same(a->at[i].base, b->at[i].base))
            return false;
        for (unsigned t = 0; t < a->at[i].terms; t++)
            if (a->at[i].term[t].axis != b->at[i].term[t].axis ||
                !weft_dim_same(a->at[i].term[t].step, b->at[i].term[t].step))
                return false;
        if (!a->at[i].data)
            continue;
        const uint32_t index = x->in[a->at[i].data - 1], other = y->in[b->at[i].data - 1];
        const struct weft_form_op *const p = &form->op[index], *const q = &form->op[other];
        if (index != other && (p->kind != WEFT_FORM_LOAD || q->kind != WEFT_FORM_LOAD || p->array != q->array ||
                               p->ins || q->ins || !weft_form_same_access(form, p, q)))
            return false;
    }
    return true;
}

bool weft_form_may_share_scan(const struct weft_form *form)
{
    uint32_t scans = 0, folds = 0;
    for (uint32_t i = 0; i < form->ops; i++) {
        scans += form->op[i].kind == WEFT_FORM_SCAN;
        folds += form->op[i].kind == WEFT_FORM_FOLD;
    }
    return scans == 1 && folds == 0;
}
