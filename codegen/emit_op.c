/* SPDX-License-Identifier: Apache-2.0 */
/* emit_op.c: C for single instructions. The number of value %3 is v3, the pointer to its elements p3. A v is a vector:
 * of floats also where the value has 16 bits, which then are rounded to after each op, as strip kernels do (forms of
 * groups have no such ops but casts: widths.h); of masks where it is bool. What is loaded of i64 is the floats that
 * casts make of it, the one op that reads it. */
#include "codegen/emit_parts.h"
#include "codegen/form_parts.h"
#include "codegen/strips.h"

#include <stdio.h>
#include <string.h>

/* --- what there is ------------------------------------------------------------------------------------------------ */

const char *weft_emit_element(int dtype)
{
    switch (dtype) {
    case WEFT_F32: return "float";
    case WEFT_F16: case WEFT_BF16: return "uint16_t";
    case WEFT_BOOL: return "uint8_t";
    case WEFT_I32: return "int32_t";
    case WEFT_I64: return "int64_t";
    default: return NULL;
    }
}

static bool is_real(int dtype) { return dtype == WEFT_F32 || dtype == WEFT_F16 || dtype == WEFT_BF16; }
const char *weft_emit_vector(int dtype) { return is_real(dtype) || dtype == WEFT_I64 ? "vf" : "vi"; }

/* Ops of bools, in vectors of masks. */
static const struct {
    const char *word, *format;
    unsigned ins;
} logic[] = {{"and", "v%u & v%u", 2}, {"or", "v%u | v%u", 2}, {"xor", "v%u ^ v%u", 2},
             {"not", "~v%u", 1},      {"eq", "~(v%u ^ v%u)", 2}, {"ne", "v%u ^ v%u", 2}};

static const char *logic_of(const char *word, unsigned ins)
{
    for (size_t i = 0; i < sizeof logic / sizeof *logic; i++)
        if (logic[i].ins == ins && strcmp(logic[i].word, word) == 0)
            return logic[i].format;
    return NULL;
}

static bool can_cast(int from, int to)
{
    return (from == WEFT_F32 && (to == WEFT_F32 || to == WEFT_F16 || to == WEFT_BF16 || to == WEFT_BOOL)) ||
           (to == WEFT_F32 && weft_emit_element(from) && from != WEFT_F32);
}

static const char *refuse_map(const struct weft_form *form, const struct weft_form_op *op)
{
    const int in = form->op[op->in[0]].dtype, last = form->op[op->in[op->ins - 1]].dtype;
    if (strcmp(op->word, "cast") == 0)
        return can_cast(in, op->dtype) ? NULL : "has casts that are not written in vectors";
    if (strcmp(op->word, "select") == 0)
        return in == WEFT_BOOL && last == op->dtype && op->dtype != WEFT_I32 ? NULL : "selects integers";
    if (in == WEFT_BOOL)
        return op->dtype == WEFT_BOOL && logic_of(op->word, op->ins) ? NULL : "has ops of bools that are no logic";
    const struct weft_emit_row *row = weft_emit_row_find(op->word, op->ins);
    if (!row || !is_real(in) || op->dtype != (row->test ? WEFT_BOOL : in))
        return "has ops that are not written in vectors";
    for (unsigned k = 1; k < op->ins; k++)
        if (form->op[op->in[k]].dtype != in)
            return "has ops of several element types";
    return NULL;
}

/* Whole numbers that look-ups alone read: never in vectors. */
static bool is_index(const struct weft_form *form, uint32_t v)
{
    bool is = form->op[v].dtype == WEFT_I64;
    for (uint32_t i = v + 1; i < form->ops && is; i++)
        for (unsigned k = 0; k < form->op[i].ins && is; k++)
            is = form->op[i].in[k] != v || form->op[i].kind == WEFT_FORM_LOAD;
    return is;
}

const char *weft_emit_op_refuse(const struct weft_form *form, const struct weft_form_op *op)
{
    const uint32_t i = (uint32_t)(op - form->op);
    const bool reads = (op->kind == WEFT_FORM_LOAD && !weft_strips_is_look_up(form, i)) || is_index(form, i);
    if (!weft_emit_element(op->dtype) || (op->dtype == WEFT_I64 && !reads)) /* labels, indices */
        return "has element types that are not written in vectors";
    if (op->kind == WEFT_FORM_MAP)
        return refuse_map(form, op);
    if (op->kind == WEFT_FORM_FOLD && !(is_real(op->dtype) && is_real(form->op[op->in[0]].dtype)))
        return "reduces integers";
    if (op->kind == WEFT_FORM_STORE && form->op[op->in[0]].kind != WEFT_FORM_MAP &&
        form->op[op->in[0]].kind != WEFT_FORM_FOLD && form->op[op->in[0]].kind != WEFT_FORM_SCAN &&
        !weft_strips_is_look_up(form, op->in[0]))
        return "stores what it does not compute";
    return NULL;
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

/* A number that keeps its bits. */
static void print_number(float number, char *ret, size_t bytes)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (number != number)
        snprintf(ret, bytes, "(vf)viall(0x%x)", (unsigned)bits);
    else if (__builtin_isinf(number))
        snprintf(ret, bytes, "vall(%s__builtin_inff())", number < 0 ? "-" : "");
    else
        snprintf(ret, bytes, "vall(%af)", (double)number);
}

void weft_emit_rounded(int dtype, const char *expression, char *ret, size_t bytes)
{
    if (dtype == WEFT_F16)
        snprintf(ret, bytes, "vfrom_f16(vto_f16(%s))", expression);
    else if (dtype == WEFT_BF16)
        snprintf(ret, bytes, "vround_bf16(%s)", expression);
    else
        snprintf(ret, bytes, "%s", expression);
}

static void print_cast(const struct weft_form_op *op, int from, char *ret, size_t bytes)
{
    char x[32];
    snprintf(x, sizeof x, "v%u", op->in[0]);
    if (from == WEFT_BOOL)
        snprintf(ret, bytes, "vsel(%s, vall(1.f), vall(0.f))", x);
    else if (from == WEFT_I32)
        snprintf(ret, bytes, "__builtin_convertvector(%s, vf)", x);
    else if (from == WEFT_I64)
        snprintf(ret, bytes, "%s", x);
    else if (op->dtype == WEFT_BOOL)
        snprintf(ret, bytes, "%s != 0.f", x);
    else
        weft_emit_rounded(op->dtype, x, ret, bytes);
}

static void print_call(const struct weft_form_op *op, char *ret, size_t bytes)
{
    const struct weft_emit_row *row = weft_emit_row_find(op->word, op->ins);
    size_t length = (size_t)snprintf(ret, bytes, "op_%s(", row->id);
    char p[48];
    for (unsigned k = 0; k < op->ins; k++)
        length += (size_t)snprintf(ret + length, bytes - length, "%sv%u", k ? ", " : "", op->in[k]);
    for (int k = 0; k < 2 && op->ins == 1; k++)
        if (weft_emit_row_uses(row, k ? "q" : "p")) {
            print_number((float)op->param[k], p, sizeof p);
            length += (size_t)snprintf(ret + length, bytes - length, ", %s", p);
        }
    snprintf(ret + length, bytes - length, ")");
}

/* What is one of the operands, at most with another sign, or 0, needs no rounding. */
static bool is_exact(const char *word) { return weft_ops[weft_form_opcode(word)].traits & WEFT_EXACT; }

static bool is_same(const struct weft_form *form, uint32_t a, uint32_t b)
{
    const struct weft_form_op *const x = &form->op[a], *const y = &form->op[b];
    if (a == b)
        return true;
    if (x->kind != WEFT_FORM_LOAD || y->kind != WEFT_FORM_LOAD || x->array != y->array || x->number != y->number ||
        x->falls_back != y->falls_back || !weft_form_same_access(form, x, y))
        return false;
    return !x->falls_back || is_same(form, x->in[x->ins - 1], y->in[y->ins - 1]);
}

/* Is the operand a number of a row without the largest of that row, so that it is 0 at most? */
static bool is_below(const struct weft_form *form, uint32_t v)
{
    const struct weft_form_op *const op = &form->op[v];
    if (op->kind != WEFT_FORM_MAP || strcmp(op->word, "sub") != 0 || op->dtype != WEFT_F32)
        return false;
    const struct weft_form_op *const most = &form->op[op->in[1]];
    return most->kind == WEFT_FORM_FOLD && most->fold == WEFT_K_MAX && most->dtype == WEFT_F32 &&
           is_same(form, op->in[0], most->in[0]);
}

static void print_map(const struct weft_form *form, const struct weft_form_op *op, char *ret, size_t bytes)
{
    const int in = form->op[op->in[0]].dtype;
    char call[256];
    if (strcmp(op->word, "cast") == 0) {
        print_cast(op, in, ret, bytes);
    } else if (strcmp(op->word, "select") == 0) {
        snprintf(ret, bytes, "%s(v%u, v%u, v%u)", is_real(op->dtype) ? "vsel" : "visel", op->in[0], op->in[1],
                 op->in[2]);
    } else if (in == WEFT_BOOL) {
        snprintf(ret, bytes, logic_of(op->word, op->ins), op->in[0], op->in[op->ins - 1]);
    } else if (strcmp(op->word, "exp") == 0 && is_below(form, op->in[0])) {
        snprintf(ret, bytes, "vexp_below(v%u)", op->in[0]); /* the same bits, sooner */
    } else {
        print_call(op, call, sizeof call);
        weft_emit_rounded(is_exact(op->word) ? WEFT_F32 : op->dtype, call, ret, bytes);
    }
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

bool weft_emit_in_memory(const struct weft_emit *e, uint32_t value)
{
    const int place = e->program->value[value].place;
    if (e->again[value])
        return false;
    return place == WEFT_PROGRAM_ARGUMENT || place == WEFT_PROGRAM_TILE || e->crosses[value] ||
           (place == WEFT_PROGRAM_OUTER && e->way != WEFT_EMIT_ROWS);
}

/* Does the place depend on the line: on the outer point (rows) or the inner one (columns)? */
void weft_emit_place(const struct weft_emit *e, uint32_t v, char *ret, size_t bytes)
{
    const struct weft_program_value *value = &e->program->value[v];
    const bool moves = e->way == WEFT_EMIT_ROWS      ? value->place == WEFT_PROGRAM_ARGUMENT
                       : e->way == WEFT_EMIT_COLUMNS ? value->place != WEFT_PROGRAM_OUTER && !e->crosses[v] &&
                                                           e->inner[0]
                                                     : false;
    char from[WEFT_EMIT_AXIS] = ""; /* a strip that is kept begins where it is kept */
    char skip[WEFT_EMIT_AXIS];
    weft_emit_skip(e, v, skip, sizeof skip);
    if (e->from && value->step != 0 && !e->crosses[v])
        snprintf(from, sizeof from, " + %s * %lld", e->from, (long long)value->step);
    if (e->rows[0] && value->place == WEFT_PROGRAM_TILE)
        snprintf(ret, bytes, "tile->at[%u] + (pass & (apart - 1)) * tile->next[%u]%s", v, v, skip);
    else if (moves && *skip)
        snprintf(ret, bytes, "row%u_%s%s", v, e->outer, skip);
    else if (moves)
        snprintf(ret, bytes, "tile->at[%u] + %s * tile->next[%u]%s", v,
                 e->way == WEFT_EMIT_ROWS ? e->outer : e->inner, v, from);
    else
        snprintf(ret, bytes, "tile->at[%u]%s%s", v, from, skip);
}

void weft_emit_spread(const struct weft_emit *e, uint32_t v, const char *name)
{
    const int dtype = e->form->op[v].dtype;
    char place[192], comment[256];
    weft_emit_place(e, v, place, sizeof place);
    weft_emit_comment(e, v, comment, sizeof comment);
    const char *const format = dtype == WEFT_F32    ? "const vf %s = vall(*(const float *)(%s)); %s"
                               : dtype == WEFT_F16  ? "const vf %s = vfrom_f16((vh){0} + *(const uint16_t *)(%s)); %s"
                               : dtype == WEFT_BF16 ? "const vf %s = vfrom_bf16((vh){0} + *(const uint16_t *)(%s)); %s"
                               : dtype == WEFT_BOOL ? "const vi %s = viall(*(const uint8_t *)(%s) ? -1 : 0); %s"
                               : dtype == WEFT_I64  ? "const vf %s = vall((float)*(const int64_t *)(%s)); %s"
                                                    : "const vi %s = viall(*(const int32_t *)(%s)); %s";
    weft_emit_line(e, format, name, place, comment);
}

static void spread(struct weft_emit *e, uint32_t v)
{
    char name[16];
    snprintf(name, sizeof name, "v%u", v);
    weft_emit_spread(e, v, name);
    e->held[v] = true;
}

static void point(struct weft_emit *e, uint32_t v, bool written)
{
    char place[192];
    const char *const type = weft_emit_element(e->form->op[v].dtype), *const fixed = written ? "" : "const ";
    weft_emit_place(e, v, place, sizeof place);
    weft_emit_line(e, "%s%s *const p%u = (%s%s *)(%s);", fixed, type, v, fixed, type, place);
    e->pointed[v] = true;
}

/* Of a stage that goes along lines: is it for the loops around these to say where it is? */
static bool waits(const struct weft_emit *e, uint32_t v)
{
    return e->at && !e->in_line && weft_emit_is_by_line(e->program, v);
}

static void head(struct weft_emit *e, uint32_t v, bool written)
{
    if (!weft_emit_in_memory(e, v) || e->held[v] || e->pointed[v] || is_index(e->form, v) || waits(e, v))
        return;
    if (!written && e->program->value[v].stride == 0)
        spread(e, v);
    else
        point(e, v, written || e->form->op[v].kind != WEFT_FORM_LOAD);
}

void weft_emit_heads(struct weft_emit *e, const struct weft_form_stage *stage)
{
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++) {
        const struct weft_form_op *op = &e->form->op[i];
        const bool looks = weft_strips_is_look_up(e->form, i);
        if (looks && e->at && e->several && !e->in_line)
            continue;
        if (looks)
            weft_emit_look_head(e, i);
        else if (op->kind == WEFT_FORM_LOAD)
            head(e, i, false);
        for (unsigned k = 0; k < op->ins; k++)
            if (op->in[k] < stage->first)
                head(e, op->in[k], false);
        if ((op->kind == WEFT_FORM_MAP || op->kind == WEFT_FORM_SCAN) && e->at)
            head(e, i, true);
        if (looks && e->at && weft_emit_in_memory(e, i) && !e->pointed[i])
            point(e, i, true);
    }
}

static void map(struct weft_emit *e, uint32_t i);

static void read(struct weft_emit *e, uint32_t v)
{
    static const char *const whole[] = {
        [WEFT_F32] = "vload(p%u + %s)", [WEFT_F16] = "vfrom_f16(vhload(p%u + %s))",
        [WEFT_BF16] = "vfrom_bf16(vhload(p%u + %s))", [WEFT_BOOL] = "load_mask(p%u + %s)",
        [WEFT_I32] = "viload(p%u + %s)", [WEFT_I64] = "floats_of_i64(p%u + %s)"};
    static const char *const tail[] = {
        [WEFT_F32] = "vloadm(p%u + %s, live, 1.f)", [WEFT_F16] = "vfrom_f16(load_16_tail(p%u + %s, live))",
        [WEFT_BF16] = "vfrom_bf16(load_16_tail(p%u + %s, live))", [WEFT_BOOL] = "load_mask_tail(p%u + %s, live)",
        [WEFT_I32] = "load_i32_tail(p%u + %s, live)", [WEFT_I64] = "floats_of_i64_tail(p%u + %s, live)"};
    static const char *const back[] = { /* against their order in memory */
        [WEFT_F32] = "floats_back(p%u, %s, %s)", [WEFT_F16] = "vfrom_f16(halves_back(p%u, %s, %s))",
        [WEFT_BF16] = "vfrom_bf16(halves_back(p%u, %s, %s))", [WEFT_BOOL] = "masks_back(p%u, %s, %s)",
        [WEFT_I32] = "numbers_back(p%u, %s, %s)", [WEFT_I64] = "floats_of_i64_back(p%u, %s, %s)"};
    const int dtype = e->form->op[v].dtype;
    if (e->held[v] || e->made[v])
        return;
    if (e->again[v]) {
        for (unsigned k = 0; k < e->form->op[v].ins; k++)
            read(e, e->form->op[v].in[k]);
        map(e, v);
        return;
    }
    char right[128], comment[256] = "";
    if (e->program->value[v].stride < 0)
        snprintf(right, sizeof right, back[dtype], v, e->at, e->tail ? "live" : "LANES");
    else
        snprintf(right, sizeof right, (e->tail ? tail : whole)[dtype], v, e->at);
    if (e->form->op[v].kind == WEFT_FORM_LOAD)
        weft_emit_comment(e, v, comment, sizeof comment);
    weft_emit_line(e, "const %s v%u = %s;%s%s", weft_emit_vector(dtype), v, right, *comment ? " " : "", comment);
    e->made[v] = true;
}

/* A cast to 16 bits that only stores read is part of the store. */
static bool is_narrowing(const struct weft_emit *e, uint32_t v)
{
    const struct weft_form_op *op = &e->form->op[v];
    bool narrows = op->kind == WEFT_FORM_MAP && strcmp(op->word, "cast") == 0 && is_real(op->dtype) &&
                   op->dtype != WEFT_F32 && e->form->op[op->in[0]].dtype == WEFT_F32 &&
                   e->program->value[v].place == WEFT_PROGRAM_ARGUMENT;
    for (uint32_t i = v + 1; i < e->form->ops && narrows; i++)
        for (unsigned k = 0; k < e->form->op[i].ins; k++)
            narrows = narrows && (e->form->op[i].in[k] != v || e->form->op[i].kind == WEFT_FORM_STORE);
    return narrows;
}

void weft_emit_write(struct weft_emit *e, uint32_t v)
{
    static const char *const whole[] = {
        [WEFT_F32] = "vstore(p%u + %s, v%u);", [WEFT_F16] = "vhstore(p%u + %s, vto_f16(v%u));",
        [WEFT_BF16] = "vhstore(p%u + %s, vto_bf16(v%u));", [WEFT_BOOL] = "store_mask(p%u + %s, v%u);"};
    static const char *const tail[] = {
        [WEFT_F32] = "vstorem(p%u + %s, live, v%u);", [WEFT_F16] = "store_16_tail(p%u + %s, live, vto_f16(v%u));",
        [WEFT_BF16] = "store_16_tail(p%u + %s, live, vto_bf16(v%u));",
        [WEFT_BOOL] = "store_mask_tail(p%u + %s, live, v%u);"};
    static const char *const past[] = {
        [WEFT_F32] = "vput(p%u + %s, v%u, past%u);", [WEFT_F16] = "vhput(p%u + %s, vto_f16(v%u), past%u);",
        [WEFT_BF16] = "vhput(p%u + %s, vto_bf16(v%u), past%u);"};
    static const char *const one[] = {
        [WEFT_F32] = "*(float *)(%s) = v%u[0];", [WEFT_F16] = "*(uint16_t *)(%s) = vto_f16(v%u)[0];",
        [WEFT_BF16] = "*(uint16_t *)(%s) = vto_bf16(v%u)[0];", [WEFT_BOOL] = "*(uint8_t *)(%s) = v%u[0] & 1;"};
    const struct weft_form_op *op = &e->form->op[v];
    const int dtype = op->dtype;
    /* A result that was rounded when it was made, or is an operand, at most with another sign. What is only chosen may
     * be a NaN that has yet to become quiet. */
    const bool narrows = is_narrowing(e, v);
    const bool rounded = dtype == WEFT_BF16 && op->kind == WEFT_FORM_MAP && strcmp(op->word, "select") != 0 && !narrows;
    const uint32_t from = narrows ? op->in[0] : v;
    char place[192], line[320], comment[256] = "";
    if (e->at && e->past[v] && !e->tail) {
        snprintf(line, sizeof line, rounded ? "vhput(p%u + %s, vtop_bf16(v%u), past%u);" : past[dtype], v, e->at, from,
                 v);
    } else if (e->at && rounded) {
        snprintf(line, sizeof line, e->tail ? "store_16_tail(p%u + %s, live, vtop_bf16(v%u));"
                                            : "vhstore(p%u + %s, vtop_bf16(v%u));", v, e->at, v);
    } else if (e->at) {
        snprintf(line, sizeof line, (e->tail ? tail : whole)[dtype], v, e->at, from);
    } else {
        weft_emit_place(e, v, place, sizeof place);
        snprintf(line, sizeof line, one[dtype], place, from);
    }
    if (narrows)
        weft_emit_comment(e, v, comment, sizeof comment);
    weft_emit_line(e, "%s%s%s", line, narrows ? " " : "", comment);
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

const char *const weft_emit_combine[] = {"vadd", "vadd", "vmul", "vmax", "vmin"};
const char *const weft_emit_identity[] = {"0.f", "0.f", "1.f", "-__builtin_inff()", "__builtin_inff()"};

static void add_term(struct weft_emit *e, uint32_t i)
{
    const struct weft_form_op *op = &e->form->op[i];
    char term[96];
    if (e->several && e->tail)
        snprintf(term, sizeof term, "vfirst(v%u, live, %s)", op->in[0], weft_emit_identity[op->fold]);
    else
        snprintf(term, sizeof term, "v%u", op->in[0]);
    if (weft_strips_is_across(e->form, i))
        weft_emit_line(e, e->tail ? "vstorem(column%u + %s, live, %s(vloadm(column%u + %s, live, 0.f), v%u));"
                                  : "vstore(column%u + %s, %s(vload(column%u + %s), v%u));",
                       i, e->at, weft_emit_combine[op->fold], i, e->at, op->in[0]);
    else if (e->lanes && e->way == WEFT_EMIT_ROWS)
        weft_emit_add_chain(e, i, term);
    else if (e->lanes)
        weft_emit_line(e, "acc%u%s = %s(acc%u%s, v%u);", i, e->lanes, weft_emit_combine[op->fold], i, e->lanes,
                       op->in[0]);
    else
        weft_emit_line(e, "vstore(rest%u + (%s - rest), vfirst(v%u, live, %s));", i, e->at, op->in[0],
                       weft_emit_identity[op->fold]);
}

static void map(struct weft_emit *e, uint32_t i)
{
    const struct weft_form_op *op = &e->form->op[i];
    char right[320], comment[256];
    if (is_narrowing(e, i)) {
        weft_emit_write(e, i);
        return;
    }
    print_map(e->form, op, right, sizeof right);
    weft_emit_comment(e, i, comment, sizeof comment);
    weft_emit_line(e, "const %s v%u = %s; %s", weft_emit_vector(op->dtype), i, right, comment);
    *(e->at ? &e->made[i] : &e->held[i]) = true;
    if (e->at ? weft_emit_in_memory(e, i) : e->program->value[i].place == WEFT_PROGRAM_ARGUMENT)
        weft_emit_write(e, i);
}

static void instruction(struct weft_emit *e, uint32_t i)
{
    const struct weft_form_op *op = &e->form->op[i];
    for (unsigned k = 0; k < op->ins && op->kind != WEFT_FORM_STORE && op->kind != WEFT_FORM_LOAD; k++)
        read(e, op->in[k]);
    if (weft_strips_is_look_up(e->form, i))
        weft_emit_look_up(e, i);
    else if (op->kind == WEFT_FORM_LOAD && !is_index(e->form, i))
        read(e, i);
    else if (op->kind == WEFT_FORM_MAP)
        map(e, i);
    else if (op->kind == WEFT_FORM_FOLD && e->at)
        add_term(e, i);
}

void weft_emit_body(struct weft_emit *e, const struct weft_form_stage *stage)
{
    memset(e->made, 0, sizeof e->made);
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++)
        instruction(e, i);
}

void weft_emit_consts(struct weft_emit *e)
{
    for (uint32_t i = 0; i < e->form->ops; i++) {
        const struct weft_form_op *op = &e->form->op[i];
        if (op->kind != WEFT_FORM_CONST || op->dtype == WEFT_I64)
            continue;
        const char *const number = e->program->value[i].number;
        char right[64], comment[256];
        uint32_t bits = 0;
        memcpy(&bits, number, (size_t)e->program->value[i].bytes);
        float single;
        memcpy(&single, &bits, sizeof single);
        if (op->dtype == WEFT_F32)
            print_number(single, right, sizeof right);
        else if (is_real(op->dtype))
            snprintf(right, sizeof right, "vfrom_%s((vh){0} + 0x%x)", op->dtype == WEFT_F16 ? "f16" : "bf16",
                     (unsigned)bits);
        else
            snprintf(right, sizeof right, "viall(%d)", op->dtype == WEFT_BOOL ? -(bits != 0) : (int)bits);
        weft_emit_comment(e, i, comment, sizeof comment);
        weft_emit_line(e, "const %s v%u = %s; %s", weft_emit_vector(op->dtype), i, right, comment);
        e->held[i] = true;
    }
}
