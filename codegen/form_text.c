/* SPDX-License-Identifier: Apache-2.0 */
/* form_text.c: a form as text, as README.md has it. form_parse.c reads it.
 *
 * One form has one text: sets of axes are printed in the order in which the axes are declared, unnamed values are
 * numbered in the order in which they are made, and a list of arrays goes on below its first one where a line has no
 * room left. What lies in words of the form but has no meaning (the length of tiles along an axis that is not cut) is
 * not printed.
 *
 * In an index, a bare word that names an axis is that axis, and sizes that are not plain numbers stand in parentheses:
 * axes are named by the lowering and sizes by whoever wrote the model, so that the two may meet. */
#include "codegen/form_parts.h"
#include "ir/parse.h"

#include <string.h>

enum { COLUMNS = 120 };

struct printer {
    const struct weft_form *form;
    struct weft_text *text;
    const uint32_t *number;
    uint32_t depth;
};

/* --- sizes, axes, names ------------------------------------------------------------------------------------------- */

static void print_dim(const struct printer *p, weft_dim dim)
{
    weft_dim_print(p->form->dims, dim, p->text);
}

static void print_indent(const struct printer *p)
{
    for (uint32_t i = 0; i < p->depth; i++)
        weft_text_add(p->text, "  ");
}

/* "r, c" behind `before`; with `by`, "r by 128, c". Nothing where there are none. */
static void print_axes(const struct printer *p, const char *before, uint16_t axes, const weft_dim *by)
{
    for (unsigned a = 0; a < p->form->axes; a++) {
        if (!(axes >> a & 1))
            continue;
        weft_text_add(p->text, before);
        weft_text_add(p->text, p->form->axis[a].name);
        if (by && !weft_dim_is(by[a], 0)) {
            weft_text_add(p->text, " by ");
            print_dim(p, by[a]);
        }
        before = ", ";
    }
}

static void print_value(const struct printer *p, uint32_t op)
{
    if (p->form->op[op].name) {
        weft_text_name(p->text, '%', p->form->op[op].name);
        return;
    }
    weft_text_add(p->text, "%");
    weft_text_integer(p->text, p->number[op]);
}

static void print_array_type(const struct printer *p, const struct weft_form_array *array)
{
    weft_text_add(p->text, weft_dtype_name(array->dtype));
    weft_text_add(p->text, "[");
    for (unsigned i = 0; i < array->rank; i++) {
        weft_text_add(p->text, i ? "," : "");
        print_dim(p, array->extent[i]);
    }
    weft_text_add(p->text, "]");
}

/* --- indices ------------------------------------------------------------------------------------------------------ */

static void print_term(const struct printer *p, const struct weft_index_term *term, bool first)
{
    const bool plain = weft_dim_is_constant(term->step);
    const int64_t step = plain ? weft_dim_value(term->step) : 0, size = step < 0 ? -step : step;
    weft_text_add(p->text, first ? (step < 0 ? "-" : "") : step < 0 ? " - " : " + ");
    if (!plain) {
        weft_text_add(p->text, "(");
        print_dim(p, term->step);
        weft_text_add(p->text, ")*");
    } else if (size != 1) {
        weft_text_integer(p->text, size);
        weft_text_add(p->text, "*");
    }
    weft_text_add(p->text, p->form->axis[term->axis].name);
}

static void print_base(const struct printer *p, weft_dim base, bool first)
{
    if (!weft_dim_is_constant(base)) {
        weft_text_add(p->text, first ? "(" : " + (");
        print_dim(p, base);
        weft_text_add(p->text, ")");
    } else if (first || !weft_dim_is(base, 0)) {
        const int64_t value = weft_dim_value(base);
        weft_text_add(p->text, first ? "" : value < 0 ? " - " : " + ");
        weft_text_integer(p->text, !first && value < 0 ? -value : value);
    }
}

static void print_map(const struct printer *p, const struct weft_form_op *op)
{
    const struct weft_index_map *const map = &p->form->map[op->map];
    weft_text_add(p->text, "[");
    for (int i = 0; i < map->rank; i++) {
        const struct weft_index *const index = &map->at[i];
        weft_text_add(p->text, i ? ", " : "");
        weft_text_add(p->text, index->over ? "floor(" : "");
        for (unsigned t = 0; t < index->terms; t++)
            print_term(p, &index->term[t], t == 0);
        if (index->data)
            print_value(p, op->in[index->data - 1]);
        else
            print_base(p, index->base, index->terms == 0);
        if (index->over) {
            weft_text_add(p->text, ", ");
            weft_text_integer(p->text, index->over);
            weft_text_add(p->text, ")");
        }
        weft_text_add(p->text, index->border ? " ?" : "");
    }
    weft_text_add(p->text, "]");
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

static void print_number(const struct printer *p, const struct weft_form_op *op)
{
    if (weft_dtype_is_float(op->dtype))
        weft_text_real(p->text, op->dtype, op->number);
    else
        weft_text_integer(p->text, op->integer);
}

static void print_operands(const struct printer *p, const struct weft_form_op *op)
{
    for (unsigned k = 0; k < op->ins; k++) {
        weft_text_add(p->text, k ? ", " : " ");
        print_value(p, op->in[k]);
    }
}

static void print_access(const struct printer *p, const struct weft_form_op *op)
{
    weft_text_add(p->text, " ");
    weft_text_name(p->text, '%', p->form->array[op->array].name);
    print_map(p, op);
}

static void print_map_op(const struct printer *p, const struct weft_form_op *op)
{
    unsigned params;
    weft_form_params(op->word, &params);
    for (unsigned k = params; k < 2; k++)
        params = op->param[k] != 0 ? k + 1 : params;
    weft_text_add(p->text, op->word);
    for (unsigned k = 0; k < params; k++) {
        weft_text_add(p->text, k ? ", " : "(");
        weft_text_real(p->text, WEFT_F64, op->param[k]);
    }
    weft_text_add(p->text, params ? ")" : "");
}

static void print_load(const struct printer *p, const struct weft_form_op *op)
{
    weft_text_add(p->text, "load");
    print_access(p, op);
    const bool real = weft_dtype_is_float(op->dtype);
    uint64_t bits = 0;
    memcpy(&bits, &op->number, sizeof bits); /* -0 is a number to be told, too */
    if (op->falls_back) {
        weft_text_add(p->text, " else ");
        print_value(p, op->in[op->ins - 1]);
    } else if (real ? bits != 0 : op->integer != 0) {
        weft_text_add(p->text, " else ");
        print_number(p, op);
    }
}

/* What stands right of the = of a value. */
static void print_right(const struct printer *p, const struct weft_form_op *op)
{
    static const char *const word[] = {[WEFT_FORM_FOLD] = "fold ", [WEFT_FORM_SCAN] = "scan "};
    switch (op->kind) {
    case WEFT_FORM_LOAD:
        print_load(p, op);
        return;
    case WEFT_FORM_CONST:
        weft_text_add(p->text, "const ");
        print_number(p, op);
        return;
    case WEFT_FORM_MAP:
        print_map_op(p, op);
        print_operands(p, op);
        return;
    case WEFT_FORM_FOLD:
    case WEFT_FORM_SCAN:
        weft_text_add(p->text, word[op->kind]);
        weft_text_add(p->text, op->exclusive ? "exclusive " : "");
        weft_text_add(p->text, op->reverse ? "reverse " : "");
        weft_text_add(p->text, weft_form_fold_words[op->fold]);
        break;
    default:
        weft_text_add(p->text, "contract");
        break;
    }
    print_operands(p, op);
    print_axes(p, " over ", op->over, NULL);
}

static void print_op(const struct printer *p, uint32_t id)
{
    const struct weft_form_op *const op = &p->form->op[id];
    print_indent(p);
    if (op->kind == WEFT_FORM_STORE) {
        weft_text_add(p->text, "store");
        print_access(p, op);
        weft_text_add(p->text, ",");
        print_operands(p, op);
    } else if (op->kind == WEFT_FORM_NEXT) {
        weft_text_add(p->text, "next");
        print_operands(p, op);
    } else {
        weft_text_add(p->text, op->kind == WEFT_FORM_CARRY ? "carry " : "");
        print_value(p, id);
        weft_text_add(p->text, ": ");
        weft_text_add(p->text, weft_dtype_name(op->dtype));
        if (op->kind == WEFT_FORM_CARRY)
            print_axes(p, " over ", op->axes, NULL);
        weft_text_add(p->text, " = ");
        if (op->kind == WEFT_FORM_CARRY)
            print_number(p, op);
        else
            print_right(p, op);
    }
    weft_text_add(p->text, "\n");
}

/* --- stages, phases ----------------------------------------------------------------------------------------------- */

static void close_blocks(struct printer *p, uint32_t depth)
{
    while (p->depth > depth) {
        p->depth--;
        print_indent(p);
        weft_text_add(p->text, "}\n");
    }
}

static void print_stage(struct printer *p, const struct weft_form_stage *stage)
{
    static const char *const word[] = {"sweep", "contract", "begin", "along "};
    print_indent(p);
    weft_text_add(p->text, word[stage->kind]);
    if (stage->kind == WEFT_FORM_ALONG) {
        weft_text_add(p->text, p->form->axis[stage->axis].name);
        weft_text_add(p->text, weft_dim_is(stage->by, 0) ? "" : " by ");
        if (!weft_dim_is(stage->by, 0))
            print_dim(p, stage->by);
    } else if (stage->kind != WEFT_FORM_BEGIN) {
        print_axes(p, " ", stage->axes, NULL);
    }
    weft_text_add(p->text, " {\n");
    p->depth++;
    if (stage->kind == WEFT_FORM_ALONG)
        return; /* stays open */
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++)
        print_op(p, i);
    close_blocks(p, p->depth - 1);
}

/* Stages inside of ALONGs are one level deeper for each. */
static void print_phase(struct printer *p, const struct weft_form_phase *phase, const uint32_t *parent)
{
    print_indent(p);
    weft_text_add(p->text, "phase");
    print_axes(p, " ", phase->axes, phase->by);
    weft_text_add(p->text, " {\n");
    const uint32_t outside = ++p->depth;
    for (uint32_t s = phase->first; s < phase->first + phase->stages; s++) {
        uint32_t depth = outside;
        for (uint32_t a = parent[s]; a != WEFT_FORM_NOWHERE; a = parent[a])
            depth++;
        close_blocks(p, depth);
        print_stage(p, &p->form->stage[s]);
    }
    close_blocks(p, outside - 1);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Characters of UTF-8 from `from` on. */
static size_t columns(const struct weft_text *text, size_t from)
{
    size_t count = 0;
    for (size_t i = from; i < text->length; i++)
        count += ((unsigned char)text->data[i] & 0xc0) != 0x80;
    return count;
}

/* Line breaks before arrays that would reach beyond the last column; the list begins at `open`. */
static void print_arrays(const struct printer *p, size_t line)
{
    static const char *const use[] = {"in ", "out ", "scratch "};
    const struct weft_form *const form = p->form;
    struct weft_text one = {.context = p->text->context, .arena = form->arena};
    const struct printer inner = {.form = form, .text = &one};
    const size_t open = columns(p->text, line);
    for (uint32_t i = 0; i < form->arrays; i++) {
        one.length = 0;
        weft_text_add(&one, use[form->array[i].use]);
        weft_text_name(&one, '%', form->array[i].name);
        weft_text_add(&one, ": ");
        print_array_type(&inner, &form->array[i]);
        weft_text_add(&one, i + 1 < form->arrays ? "," : ") {");
        if (i > 0 && columns(p->text, line) + 1 + columns(&one, 0) > COLUMNS) {
            weft_text_add(p->text, "\n");
            line = p->text->length;
            for (size_t k = 0; k < open; k++)
                weft_text_add(p->text, " ");
        } else {
            weft_text_add(p->text, i ? " " : "");
        }
        weft_text_addn(p->text, one.data, one.length);
    }
    weft_text_add(p->text, form->arrays ? "\n" : ") {\n");
}

static void print_axis(const struct printer *p, const struct weft_form_axis *axis)
{
    print_indent(p);
    weft_text_add(p->text, "axis ");
    weft_text_add(p->text, axis->name);
    weft_text_add(p->text, " in ");
    if (axis->pieces_of >= 0) {
        weft_text_add(p->text, p->form->axis[axis->pieces_of].name);
        weft_text_add(p->text, " by ");
        print_dim(p, axis->by);
    } else {
        print_dim(p, axis->extent);
    }
    weft_text_add(p->text, "\n");
}

void weft_form_print(const struct weft_form *form, struct weft_text *text)
{
    uint32_t culprit;
    const uint32_t *const parent = weft_form_parents(form, form->arena, &culprit);
    struct printer p = {.form = form, .text = text, .number = weft_form_numbers(form, form->arena), .depth = 1};
    weft_assert(parent != NULL);
    const size_t line = text->length;
    weft_text_add(text, "kernel ");
    weft_text_name(text, '@', form->name);
    weft_text_add(text, "(");
    print_arrays(&p, line);
    for (uint32_t i = 0; i < form->axes; i++)
        print_axis(&p, &form->axis[i]);
    for (uint32_t i = 0; i < form->phases; i++)
        print_phase(&p, &form->phase[i], parent);
    close_blocks(&p, 0);
}
