/* SPDX-License-Identifier: Apache-2.0 */
/* form_parse.c: text to a kernel form: its head, its axes, its blocks. form_parse_op.c reads instructions,
 * form_parse_size.c sizes and indices.
 *
 * The walk over the text is the graph's (ir/lex.c). The first mistake ends it: forms are short, and mostly written by
 * programs. Blocks are kept on a stack of their own, so nothing recurses but expressions of sizes, whose parser is
 * bounded; memory is linear in the text. */
#include "codegen/form_parse.h"

#include <setjmp.h>
#include <string.h>

/* ALONGs around each other: no more than axes could use. */
enum { MOST_OPEN = WEFT_FORM_AXES };

/* --- the head ----------------------------------------------------------------------------------------------------- */

static bool read_extents(struct weft_form_reader *r, struct weft_form_array *array)
{
    struct weft_parser *const p = &r->lex;
    if (!weft_parse_expect(p, '[', "before the extents of an array"))
        return false;
    while (!weft_parse_take(p, ']')) {
        if (array->rank > 0 && !weft_parse_expect(p, ',', "or ']' after an extent"))
            return false;
        if (array->rank == WEFT_MAX_RANK)
            return weft_parse_fail(p, p->cursor, WEFT_ERR_INVALID, "an array has at most %d axes", WEFT_MAX_RANK);
        if (!weft_form_read_dim(r, weft_parse_line_end(p), &array->extent[array->rank]))
            return false;
        array->rank++;
    }
    return true;
}

/* in %x: f32[N,768] */
static bool read_array(struct weft_form_reader *r)
{
    static const char *const use[] = {"in", "out", "scratch"};
    struct weft_parser *const p = &r->lex;
    struct weft_form_array array = {.value = WEFT_NO_VALUE};
    weft_parse_lines(p);
    const struct weft_word word = weft_parse_word(p);
    while (array.use < 3 && !weft_parse_is(word, use[array.use]))
        array.use++;
    if (array.use == 3)
        return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected an array: in, out or scratch, then its name");
    struct weft_word name;
    weft_parse_blanks(p);
    const char *const at = p->cursor;
    if (!weft_parse_name(p, '%', &name))
        return false;
    array.name = weft_arena_copy(r->arena, name.text, name.length);
    if (weft_parse_names_find(&r->arrays, name))
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "there is an array %%%s already", array.name);
    if (!weft_parse_expect(p, ':', "after the name of an array") || !weft_form_read_dtype(r, &array.dtype) ||
        !read_extents(r, &array))
        return false;
    weft_parse_names_add(&p->scratch, &r->arrays, array.name, weft_form_add_array(r->form, array) + 1);
    return true;
}

static bool read_head(struct weft_form_reader *r)
{
    struct weft_parser *const p = &r->lex;
    struct weft_word name;
    weft_parse_lines(p);
    const struct weft_word word = weft_parse_word(p);
    if (!weft_parse_is(word, "kernel"))
        return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected kernel @name(");
    if (!weft_parse_name(p, '@', &name) || !weft_parse_expect(p, '(', "before the arrays of a kernel"))
        return false;
    r->form = weft_form_new(r->arena, r->form->dims, weft_arena_copy(r->arena, name.text, name.length));
    weft_parse_lines(p);
    if (!weft_parse_take(p, ')')) {
        do {
            if (!read_array(r))
                return false;
        } while (weft_parse_take(p, ','));
        if (!weft_parse_expect(p, ')', "or ',' after an array"))
            return false;
    }
    return weft_parse_expect(p, '{', "after the head of a kernel");
}

/* --- axes --------------------------------------------------------------------------------------------------------- */

/* Behind `in`: an axis and its pieces, where `by` follows the axis. */
static bool read_pieces(struct weft_form_reader *r, struct weft_form_axis *axis, bool *ret_found)
{
    struct weft_parser *const p = &r->lex;
    const char *const start = p->cursor;
    const int of = weft_form_find_axis(r->form, weft_parse_word(p));
    *ret_found = of >= 0 && weft_parse_is(weft_parse_peek(p), "by");
    if (!*ret_found) {
        p->cursor = start;
        return true;
    }
    weft_parse_word(p);
    weft_parse_blanks(p);
    const char *const at = p->cursor;
    if (!weft_form_read_dim(r, weft_parse_line_end(p), &axis->by))
        return false;
    if (weft_dim_is(axis->by, 0))
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "pieces of axis %s by 0", r->form->axis[of].name);
    weft_dims_try(r->form->dims);
    axis->extent = weft_dim_ceil_div(r->form->dims, r->form->axis[of].extent, axis->by);
    const char *const refusal = weft_dims_tried(r->form->dims);
    axis->pieces_of = (int8_t)of;
    return !refusal || weft_parse_fail(p, at, WEFT_ERR_INVALID, "%s", refusal);
}

/* After the word: r in N, or t in r by 128. */
static bool read_axis(struct weft_form_reader *r)
{
    struct weft_parser *const p = &r->lex;
    const struct weft_word name = weft_parse_word(p);
    struct weft_form_axis axis = {.pieces_of = -1};
    bool pieces;
    if (name.length == 0)
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected the name of an axis");
    if (weft_form_find_axis(r->form, name) >= 0)
        return weft_parse_fail(p, name.text, WEFT_ERR_INVALID, "there is an axis %.*s already", (int)name.length,
                               name.text);
    if (r->form->axes == WEFT_FORM_AXES)
        return weft_parse_fail(p, name.text, WEFT_ERR_INVALID, "a kernel has at most %d axes", WEFT_FORM_AXES);
    if (!weft_parse_is(weft_parse_word(p), "in"))
        return weft_parse_fail(p, name.text, WEFT_ERR_SYNTAX, "expected `in` after axis %.*s", (int)name.length,
                               name.text);
    weft_parse_blanks(p);
    if (!read_pieces(r, &axis, &pieces) ||
        (!pieces && !weft_form_read_dim(r, weft_parse_line_end(p), &axis.extent)))
        return false;
    axis.name = weft_arena_copy(r->arena, name.text, name.length);
    r->form->axis[weft_form_add_axis(r->form, axis.name, axis.extent)] = axis;
    return true;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* ` by 128`, or nothing: 0. */
static bool read_by(struct weft_form_reader *r, weft_dim *ret)
{
    struct weft_parser *const p = &r->lex;
    *ret = weft_dim_of(0);
    if (!weft_parse_is(weft_parse_peek(p), "by"))
        return true;
    weft_parse_word(p);
    weft_parse_blanks(p);
    const char *const at = p->cursor;
    if (!weft_form_read_dim(r, weft_parse_line_end(p), ret))
        return false;
    return !weft_dim_is(*ret, 0) ||
           weft_parse_fail(p, at, WEFT_ERR_INVALID, "pieces by 0: without `by` the back end chooses");
}

/* r by 128, c {: with `by`, lengths may stand. */
static bool read_axes(struct weft_form_reader *r, uint16_t *ret, weft_dim *by)
{
    struct weft_parser *const p = &r->lex;
    *ret = 0;
    if (weft_parse_take(p, '{'))
        return true;
    do {
        weft_parse_blanks(p);
        const char *const at = p->cursor;
        unsigned axis;
        if (!weft_form_read_axis(r, &axis))
            return false;
        if (*ret >> axis & 1)
            return weft_parse_fail(p, at, WEFT_ERR_INVALID, "axis %s stands there twice", r->form->axis[axis].name);
        *ret |= (uint16_t)(1u << axis);
        if (by && !read_by(r, &by[axis]))
            return false;
    } while (weft_parse_take(p, ','));
    return weft_parse_expect(p, '{', "or ',' after an axis");
}

static bool read_along(struct weft_form_reader *r, struct weft_form_stage *stage)
{
    unsigned axis;
    stage->kind = WEFT_FORM_ALONG;
    if (!weft_form_read_axis(r, &axis) || !read_by(r, &stage->by))
        return false;
    stage->axis = (uint8_t)axis;
    return weft_parse_expect(&r->lex, '{', "after the axis of `along`");
}

static bool end_line(struct weft_form_reader *r)
{
    struct weft_parser *const p = &r->lex;
    weft_parse_blanks(p);
    const int rest = (int)(weft_parse_line_end(p) - p->cursor > 24 ? 24 : weft_parse_line_end(p) - p->cursor);
    return rest == 0 || *p->cursor == '}' ||
           weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "the line should end before '%.*s'", rest, p->cursor);
}

/* The lines of a stage up to its brace. */
static bool read_ops(struct weft_form_reader *r)
{
    while (weft_parse_lines(&r->lex), !weft_parse_take(&r->lex, '}')) {
        const struct weft_form_stage stage = r->form->stage[r->form->stages - 1];
        if (r->lex.cursor == r->lex.end)
            return weft_parse_fail(&r->lex, r->lex.cursor, WEFT_ERR_SYNTAX, "the } of a stage is missing");
        if (!weft_form_read_op(r, &stage) || !end_line(r))
            return false;
    }
    return true;
}

/* A stage in a phase or an `along`; *ret_open if it is an `along`, whose stages follow. */
static bool read_stage(struct weft_form_reader *r, bool *ret_open)
{
    struct weft_parser *const p = &r->lex;
    struct weft_form_stage stage = {0};
    const struct weft_word word = weft_parse_word(p);
    *ret_open = weft_parse_is(word, "along");
    if (weft_parse_is(word, "begin")) {
        stage.kind = WEFT_FORM_BEGIN;
        if (!weft_parse_expect(p, '{', "after begin"))
            return false;
    } else if (*ret_open) {
        if (!read_along(r, &stage))
            return false;
    } else if (weft_parse_is(word, "sweep") || weft_parse_is(word, "contract")) {
        stage.kind = weft_parse_is(word, "sweep") ? WEFT_FORM_SWEEP : WEFT_FORM_MULTIPLY;
        if (!read_axes(r, &stage.axes, NULL))
            return false;
    } else {
        return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected begin, along, sweep, contract or }");
    }
    const uint32_t id = weft_form_add_stage(r->form, stage);
    r->stage_line = weft_grow(&p->scratch, r->stage_line, &r->stage_lines, id + 1, sizeof *r->stage_line);
    r->stage_line[id] = weft_parse_place(p, word.text).line;
    return *ret_open || read_ops(r);
}

/* The stages of a phase up to its brace. */
static bool read_stages(struct weft_form_reader *r)
{
    struct weft_parser *const p = &r->lex;
    uint32_t along[MOST_OPEN], open = 0;
    for (;;) {
        bool opens;
        weft_parse_lines(p);
        const char *const at = p->cursor;
        if (weft_parse_take(p, '}')) {
            if (open == 0)
                return true;
            open--;
            r->form->stage[along[open]].stages = r->form->stages - along[open] - 1;
            continue;
        }
        if (at == p->end)
            return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "the } of %s is missing", open ? "an along" : "a phase");
        if (!read_stage(r, &opens))
            return false;
        if (opens && open == MOST_OPEN)
            return weft_parse_fail(p, at, WEFT_ERR_INVALID, "along stands in along more than %d times", MOST_OPEN);
        if (opens)
            along[open++] = r->form->stages - 1;
    }
}

static bool read_kernel(struct weft_form_reader *r)
{
    struct weft_parser *const p = &r->lex;
    if (!read_head(r))
        return false;
    while (weft_parse_lines(p), !weft_parse_take(p, '}')) {
        const struct weft_word word = weft_parse_word(p);
        struct weft_form_phase phase = {0};
        if (weft_parse_is(word, "axis") && r->form->phases == 0) {
            if (!read_axis(r) || !end_line(r))
                return false;
        } else if (weft_parse_is(word, "phase")) {
            if (!read_axes(r, &phase.axes, phase.by))
                return false;
            weft_form_add_phase(r->form, phase);
            if (!read_stages(r))
                return false;
        } else {
            return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected %sphase or }",
                                   r->form->phases ? "" : "axis, ");
        }
    }
    weft_parse_lines(p);
    return p->cursor == p->end ||
           weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "nothing may follow the kernel");
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Messages of the lexer and of the table of sizes come in `caught`. The lexer counted lines up to its mistake. */
static struct weft_form *read_caught(struct weft_form_reader *r, const char **ret_fault)
{
    struct weft_context *const context = r->arena->context;
    struct weft_caught *const outer = context->caught;
    struct weft_caught caught = {.arena = r->arena};
    context->caught = &caught;
    const bool read = read_kernel(r);
    context->caught = outer;
    if (read && caught.message)
        weft_parse_place(&r->lex, r->lex.cursor);
    if (caught.message) {
        *ret_fault = weft_arena_format(r->arena, "%d: %s", (int)r->lex.line, caught.message);
        return NULL;
    }
    struct weft_form_place place;
    const char *const fault = weft_form_find_fault(r->form, r->arena, &place);
    if (!fault)
        return r->form;
    const int32_t line = place.op < r->form->ops         ? r->op_line[place.op]
                         : place.stage < r->form->stages ? r->stage_line[place.stage]
                                                         : 1;
    *ret_fault = weft_arena_format(r->arena, "%d: %s", (int)line, fault);
    return NULL;
}

/* When memory is refused, control passes by here, and the scratch memory is given back. */
static struct weft_form *read_guarded(struct weft_form_reader *r, const char **ret_fault)
{
    struct weft_context *const context = r->arena->context;
    jmp_buf *const outer = context->on_nomem;
    struct weft_caught *const caught = context->caught;
    jmp_buf here;
    if (setjmp(here)) {
        context->on_nomem = outer;
        context->caught = caught;
        weft_arena_close(&r->lex.scratch);
        weft_out_of_memory(context);
    }
    context->on_nomem = &here;
    struct weft_form *const form = read_caught(r, ret_fault);
    context->on_nomem = outer;
    return form;
}

struct weft_form *weft_form_parse(const char *text, size_t length, struct weft_dims *dims, struct weft_arena *arena,
                                  const char **ret_fault)
{
    const struct weft_parse_options options = {0};
    struct weft_form start = {.dims = dims, .arena = arena};
    struct weft_form_reader r = {.form = &start, .arena = arena};
    r.lex = (struct weft_parser){.context = arena->context, .options = &options, .text = text, .end = text + length,
                                 .cursor = text, .line_start = text, .line = 1};
    weft_arena_open(&r.lex.scratch, arena->context);
    struct weft_form *const form = read_guarded(&r, ret_fault);
    weft_arena_close(&r.lex.scratch);
    return form;
}
