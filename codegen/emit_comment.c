/* SPDX-License-Identifier: Apache-2.0 */
/* emit_comment.c: instructions of a form as comments beside their C. */
#include "codegen/emit_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct line {
    char *to;
    size_t left;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line->to, line->left, format, list);
    va_end(list);
    const size_t added = length < 0 ? 0 : (size_t)length < line->left ? (size_t)length : line->left - 1;
    line->to += added;
    line->left -= added;
}

/* Names come from models and may hold anything. */
static void add_name(struct line *line, const char *name)
{
    for (; *name && line->left > 1; name++)
        add(line, "%c", *name == '*' || *name == '/' || *name == '\\' || (unsigned char)*name < ' ' ? '_' : *name);
}

static void add_value(struct line *line, const struct weft_form *form, uint32_t op)
{
    add(line, "%%");
    if (form->op[op].name)
        add_name(line, form->op[op].name);
    else
        add(line, "%u", op);
}

static void add_access(struct line *line, const struct weft_form *form, const struct weft_form_op *op)
{
    const struct weft_index_map *map = &form->map[op->map];
    add(line, " %%");
    add_name(line, form->array[op->array].name ? form->array[op->array].name : "");
    for (int d = 0; d < map->rank; d++) {
        add(line, d ? ", " : "[");
        if (map->at[d].data) {
            add_value(line, form, op->in[map->at[d].data - 1]);
            continue;
        }
        add(line, "%s", map->at[d].over ? "floor(" : "");
        for (int t = 0; t < map->at[d].terms; t++) {
            const weft_dim step = map->at[d].term[t].step;
            add(line, t ? " + " : "");
            if (!weft_dim_is_constant(step))
                add(line, "…*");
            else if (!weft_dim_is(step, 1))
                add(line, "%lld*", (long long)weft_dim_value(step));
            add_name(line, form->axis[map->at[d].term[t].axis].name);
        }
        if (!weft_dim_is_constant(map->at[d].base))
            add(line, " + …");
        else if (!map->at[d].terms || !weft_dim_is(map->at[d].base, 0))
            add(line, map->at[d].terms ? " + %lld" : "%lld", (long long)weft_dim_value(map->at[d].base));
        if (map->at[d].over)
            add(line, ", %lld)", (long long)map->at[d].over);
        add(line, map->at[d].border ? " ?" : "");
    }
    add(line, "%s", map->rank ? "]" : "");
}

void weft_emit_comment(const struct weft_emit *e, uint32_t id, char *ret, size_t bytes)
{
    static const char *const folds[] = {"sum", "mean", "prod", "reduce_max", "reduce_min"};
    const struct weft_form *form = e->form;
    const struct weft_form_op *op = &form->op[id];
    struct line line = {ret, bytes - 3};
    add(&line, "/* ");
    if (op->kind == WEFT_FORM_STORE) {
        add(&line, "store");
        add_access(&line, form, op);
        add(&line, ", ");
    } else {
        add_value(&line, form, id);
        if (op->kind == WEFT_FORM_CONST)
            add(&line, weft_dtype_is_float(op->dtype) ? " = const %g" : " = const %.0f",
                weft_dtype_is_float(op->dtype) ? op->number : (double)op->integer);
        else if (op->kind == WEFT_FORM_FOLD)
            add(&line, " = fold %s ", folds[op->fold]);
        else if (op->kind == WEFT_FORM_SCAN)
            add(&line, " = scan %s%s%s ", op->exclusive ? "exclusive " : "", op->reverse ? "reverse " : "",
                folds[op->fold]);
        else
            add(&line, " = %s%s", op->kind == WEFT_FORM_LOAD ? "load" : op->word,
                op->kind == WEFT_FORM_LOAD ? "" : " ");
    }
    if (op->kind == WEFT_FORM_LOAD)
        add_access(&line, form, op);
    if (op->kind == WEFT_FORM_LOAD && op->falls_back) {
        add(&line, " else ");
        add_value(&line, form, op->in[op->ins - 1]);
    }
    for (unsigned k = 0; k < op->ins && op->kind != WEFT_FORM_LOAD; k++) {
        add(&line, k ? ", " : "");
        add_value(&line, form, op->in[k]);
    }
    line.left += 3;
    add(&line, " */");
}
