/* SPDX-License-Identifier: Apache-2.0 */
/* emit_look.c: C for loads of what an index names, or that may lie outside. The value %7 is found from t7 on, the first
 * element of its strip:
 *   - an index that is the same along the strip moves t7, behind which the strip lies as any other;
 *   - an index of each element is i7, and elements are looked up one by one;
 *   - where a position is outside, elements before first7 and from end7 on are a number.
 * Concats: emit_pieces.c; indices that are divided: emit_quotient.c. */
#include "codegen/emit_look.h"

#include <stdio.h>
#include <string.h>

struct weft_look weft_emit_look_of(const struct weft_form *form, const struct weft_program *p, uint32_t v)
{
    struct weft_look look = {.program = p};
    look.source = weft_strips_source(form, v, &look.guard);
    look.guards = weft_strips_guards(form, v);
    return look;
}

const struct weft_program_guard *weft_emit_look_guard(const struct weft_look *look, enum weft_program_guard_kind kind,
                                                      bool moving, uint32_t *ret_number)
{
    const struct weft_program_guard *found = NULL;
    for (uint32_t k = look->guard; k < look->guard + look->guards && !found; k++)
        if (look->program->guard[k].kind == kind &&
            (!moving || weft_emit_look_moves(look, look->program->guard[k].value))) {
            found = &look->program->guard[k];
            *ret_number = k;
        }
    return found;
}

/* The guard that is an index, or NULL. */
static const struct weft_program_guard *index_of(const struct weft_look *look, uint32_t *ret_number)
{
    return weft_emit_look_guard(look, WEFT_PROGRAM_INDEX, /* moving= */ false, ret_number);
}

static bool is_quotient(const struct weft_look *look)
{
    uint32_t number;
    return weft_emit_look_guard(look, WEFT_PROGRAM_QUOTIENT, /* moving= */ false, &number) != NULL;
}

static bool moves(const struct weft_look *look, uint32_t value) { return weft_emit_look_moves(look, value); }

bool weft_emit_look_is_one(const struct weft_look *look)
{
    bool one = !moves(look, look->source);
    for (uint32_t k = look->guard; k < look->guard + look->guards; k++)
        one &= !moves(look, look->program->guard[k].value);
    return one;
}

const char *weft_emit_look_refuse(const struct weft_form *form, const struct weft_program *p, bool vectors, uint32_t v)
{
    const struct weft_look look = weft_emit_look_of(form, p, v);
    uint32_t number;
    const struct weft_program_guard *const index = index_of(&look, &number);
    if (form->op[v].dtype == WEFT_I32 && p->value[v].place == WEFT_PROGRAM_ARGUMENT)
        return "stores what it does not compute";
    if (index && p->bound[2 * number] < 1)
        return "has indices of an axis without elements";
    for (uint32_t k = look.guard; k <= look.guard + look.guards; k++) {
        const struct weft_program_value *const value =
            &p->value[k < look.guard + look.guards ? p->guard[k].value : look.source];
        const bool places = value->argument == WEFT_PROGRAM_POSITION && is_quotient(&look);
        if (value->stride != 0 && ((value->stride != 1 && !places) || !vectors))
            return "gathers or pads elements not contiguous along the vector axis";
    }
    if (is_quotient(&look))
        return weft_emit_quotient_refuse(form, p, v);
    if (weft_emit_pieces(form, v) > 1)
        return weft_emit_pieces_refuse(form, p, v);
    if (!index && !weft_emit_look_is_one(&look) && !moves(&look, look.source))
        return "pads what is repeated along strips";
    return index && look.guards > 1 ? "gathers with more than one index that may be out of range" : NULL;
}

/* --- heads -------------------------------------------------------------------------------------------------------- */

static void point(struct weft_emit *e, const struct weft_look *look, uint32_t v)
{
    char place[192], index_place[192];
    uint32_t number;
    const char *const type = weft_emit_element(e->form->op[v].dtype);
    const struct weft_program_guard *const index = index_of(look, &number);
    weft_emit_place(e, look->source, place, sizeof place);
    if (!index) {
        weft_emit_line(e, "const %s *const t%u = (const %s *)(%s);", type, v, type, place);
        return;
    }
    const char *const wide = look->program->value[index->value].bytes == 8 ? "int64_t" : "int32_t";
    weft_emit_place(e, index->value, index_place, sizeof index_place);
    if (look->program->value[index->value].stride) {
        weft_emit_line(e, "const %s *const t%u = (const %s *)(%s);", type, v, type, place);
        weft_emit_line(e, "const %s *const i%u = (const %s *)(%s);", wide, v, wide, index_place);
    } else {
        weft_emit_line(e, "const int64_t i%u = place_in(*(const %s *)(%s), tile->bound[%u]);", v, wide, index_place,
                       2 * number);
        weft_emit_line(e, "const %s *const t%u = (const %s *)(%s) + i%u * tile->bound[%u];", type, v, type, place, v,
                       2 * number + 1);
    }
}

static bool is_indexed(const struct weft_look *look)
{
    uint32_t number;
    return index_of(look, &number) != NULL;
}

static void keep_inside(struct weft_emit *e, const struct weft_look *look, uint32_t v)
{
    char place[192];
    weft_emit_line(e, "int64_t first%u = 0, end%u = INT64_MAX;", v, v);
    for (uint32_t k = look->guard; k < look->guard + look->guards; k++) {
        const uint32_t position = look->program->guard[k].value;
        weft_emit_place(e, position, place, sizeof place);
        weft_emit_line(e, "keep_inside((int64_t)(%s) - POSITION_ORIGIN, %d, tile->bound[%u], &first%u, &end%u);", place,
                       moves(look, position), 2 * k, v, v);
    }
}

void weft_emit_look_fill(const struct weft_emit *e, uint32_t v, char *ret, size_t bytes)
{
    _Alignas(8) char number[8] = {0};
    uint32_t bits = 0;
    const struct weft_form_op *const op = &e->form->op[v];
    if (weft_dtype_is_float(op->dtype))
        weft_store_real(op->dtype, number, 0, op->number);
    else
        weft_store_integer(op->dtype, number, 0, op->integer);
    memcpy(&bits, number, (size_t)weft_dtype_bits(op->dtype) / 8);
    snprintf(ret, bytes, op->dtype == WEFT_F32 ? "float_of(0x%xu)" : "%u", (unsigned)bits);
}

void weft_emit_look_spread(struct weft_emit *e, uint32_t v, const char *element)
{
    static const char *const format[] = {
        [WEFT_F32] = "const vf v%u = vall(%s);", [WEFT_F16] = "const vf v%u = vfrom_f16((vh){0} + (uint16_t)(%s));",
        [WEFT_BF16] = "const vf v%u = vfrom_bf16((vh){0} + (uint16_t)(%s));",
        [WEFT_BOOL] = "const vi v%u = viall((%s) ? -1 : 0);", [WEFT_I32] = "const vi v%u = viall((int32_t)(%s));"};
    char line[760], comment[256];
    weft_emit_comment(e, v, comment, sizeof comment);
    snprintf(line, sizeof line, format[e->form->op[v].dtype], v, element);
    weft_emit_line(e, "%s %s", line, comment);
    e->held[v] = true;
}

static void spread(struct weft_emit *e, const struct weft_look *look, uint32_t v)
{
    char element[128], fill[32];
    weft_emit_look_fill(e, v, fill, sizeof fill);
    if (is_indexed(look))
        snprintf(element, sizeof element, "*t%u", v);
    else
        snprintf(element, sizeof element, "(first%u == 0 && end%u > 0 ? *t%u : %s)", v, v, v, fill);
    weft_emit_look_spread(e, v, element);
}

void weft_emit_look_head(struct weft_emit *e, uint32_t v)
{
    const struct weft_look look = weft_emit_look_of(e->form, e->program, v);
    if (e->held[v])
        return;
    if (is_quotient(&look)) {
        weft_emit_quotient_head(e, v);
        return;
    }
    point(e, &look, v);
    if (!is_indexed(&look))
        keep_inside(e, &look, v);
    if (weft_strips_is_part(e->form, v))
        return;
    if (weft_emit_pieces(e->form, v) > 1)
        weft_emit_pieces_head(e, v);
    else if (weft_emit_look_is_one(&look))
        spread(e, &look, v);
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

const char *weft_emit_look_word(int dtype)
{
    return dtype == WEFT_F32 ? "floats" : dtype == WEFT_I32 ? "numbers" : dtype == WEFT_BOOL ? "masks" : "halves";
}

void weft_emit_look_vector(struct weft_emit *e, uint32_t v, const char *found)
{
    static const char *const one[] = {[WEFT_F32] = "%s", [WEFT_F16] = "vfrom_f16(%s)", [WEFT_BF16] = "vfrom_bf16(%s)",
                                      [WEFT_BOOL] = "%s", [WEFT_I32] = "%s"};
    const int dtype = e->form->op[v].dtype;
    char right[560], comment[256];
    snprintf(right, sizeof right, one[dtype], found);
    weft_emit_comment(e, v, comment, sizeof comment);
    weft_emit_line(e, "const %s v%u = %s; %s", weft_emit_vector(dtype), v, right, comment);
    e->made[v] = true;
}

void weft_emit_look_load(const struct weft_emit *e, int dtype, const char *pointer, char *ret, size_t bytes)
{
    static const char *const whole[] = {
        [WEFT_F32] = "vload(%s + %s)", [WEFT_F16] = "vhload(%s + %s)", [WEFT_BF16] = "vhload(%s + %s)",
        [WEFT_BOOL] = "load_mask(%s + %s)", [WEFT_I32] = "viload(%s + %s)"};
    static const char *const tail[] = {
        [WEFT_F32] = "vloadm(%s + %s, live, 1.f)", [WEFT_F16] = "load_16_tail(%s + %s, live)",
        [WEFT_BF16] = "load_16_tail(%s + %s, live)", [WEFT_BOOL] = "load_mask_tail(%s + %s, live)",
        [WEFT_I32] = "load_i32_tail(%s + %s, live)"};
    snprintf(ret, bytes, (e->tail ? tail : whole)[dtype], pointer, e->at);
}

static void load(struct weft_emit *e, uint32_t v)
{
    char pointer[16], found[256];
    snprintf(pointer, sizeof pointer, "t%u", v);
    weft_emit_look_load(e, e->form->op[v].dtype, pointer, found, sizeof found);
    weft_emit_look_vector(e, v, found);
}

static void look_up(struct weft_emit *e, uint32_t v)
{
    const struct weft_look look = weft_emit_look_of(e->form, e->program, v);
    const char *const word = weft_emit_look_word(e->form->op[v].dtype), *const live = e->tail ? "live" : "LANES";
    char found[256], fill[32];
    uint32_t number = 0;
    const struct weft_program_guard *const index = index_of(&look, &number);
    if (weft_emit_pieces(e->form, v) > 1) {
        weft_emit_pieces_find(e, v);
    } else if (is_quotient(&look) && !moves(&look, look.source)) {
        weft_emit_quotient_find(e, v);
    } else if (is_quotient(&look) || (index && !moves(&look, index->value))) {
        load(e, v);
    } else {
        weft_emit_look_fill(e, v, fill, sizeof fill);
        if (index)
            snprintf(found, sizeof found, "look_up_%s(t%u + %s%s, %d, i%u + %s, %d, %s, tile->bound + %u)", word, v,
                     moves(&look, look.source) ? "" : "0 * ", e->at, moves(&look, look.source), v, e->at,
                     look.program->value[index->value].bytes, live, 2 * number);
        else
            snprintf(found, sizeof found, "%s_inside(t%u, %s, %s, first%u, end%u, %s)", word, v, e->at, live, v, v,
                     fill);
        weft_emit_look_vector(e, v, found);
    }
}

void weft_emit_look_up(struct weft_emit *e, uint32_t v)
{
    if (weft_strips_is_part(e->form, v))
        return;
    if (!e->held[v])
        look_up(e, v);
    if (e->at ? weft_emit_in_memory(e, v) : e->program->value[v].place == WEFT_PROGRAM_ARGUMENT)
        weft_emit_write(e, v);
}
