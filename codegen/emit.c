/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c: strip programs as C: what is taken, and the text around the loops. The contract: emit.h. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* --- what is taken ------------------------------------------------------------------------------------------------ */

static enum weft_emit_way way_of(const struct weft_program *p)
{
    return p->inner_rank == 0 ? WEFT_EMIT_POINTS : p->along_inner ? WEFT_EMIT_ROWS : WEFT_EMIT_COLUMNS;
}

/* A value that the stage writes, or reads from elsewhere: is it at hand? */
static const char *refuse_value(const struct weft_form *form, const struct weft_program *p, bool inside, uint32_t v,
                                bool written)
{
    const struct weft_program_value *value = &p->value[v];
    const bool vectors = inside || !p->along_inner;
    const int64_t extent = p->along_inner ? p->inner[p->inner_rank - 1] : p->outer[p->outer_rank - 1];
    if (value->place == WEFT_PROGRAM_STRIP && !written)
        return "reads a strip behind its stage";
    if (way_of(p) == WEFT_EMIT_POINTS && (value->place == WEFT_PROGRAM_TILE || value->place == WEFT_PROGRAM_OUTER))
        return "keeps what is not folded";
    if (value->place == WEFT_PROGRAM_TILE && form->op[v].dtype == WEFT_I32)
        return "keeps integers";
    if (value->place != WEFT_PROGRAM_ARGUMENT)
        return NULL;
    const bool is_one = value->stride == 0 && (!written || extent <= 1); /* along a strip */
    const bool back = value->stride == -1 && !written; /* neighbours in reverse order */
    if (vectors && value->stride != 1 && !is_one && !back)
        return "has operands or results not contiguous along the vector axis";
    return vectors || value->stride == 0 ? NULL : "reads lines where it has one number for each";
}

static const char *refuse_stage(const struct weft_form *form, const struct weft_program *p, uint32_t s)
{
    const struct weft_form_stage *stage = &form->stage[s];
    const bool inside = p->stage[s].inside;
    const char *why = NULL;
    int piece = 0;
    for (uint32_t i = stage->first; !why && i < stage->first + stage->ops; i++) {
        const struct weft_form_op *op = &form->op[i];
        why = weft_emit_op_refuse(form, op);
        if (op->kind == WEFT_FORM_STORE || why)
            continue;
        const bool looks = weft_strips_is_look_up(form, i);
        if (looks)
            why = weft_emit_look_refuse(form, p, inside || !p->along_inner, i);
        if (why)
            continue;
        if (op->kind != WEFT_FORM_CONST && (op->kind != WEFT_FORM_FOLD || !p->along_inner))
            why = refuse_value(form, p, inside, i, op->kind != WEFT_FORM_LOAD || looks);
        for (unsigned k = 0; !why && k < op->ins; k++)
            if (op->in[k] < stage->first)
                why = refuse_value(form, p, inside, op->in[k], false);
        if (op->kind != WEFT_FORM_FOLD || !p->along_inner || weft_strips_is_across(form, i))
            continue;
        if (piece && piece != weft_emit_piece(form, p, op))
            why = "has row reductions split into pieces of several lengths";
        piece = weft_emit_piece(form, p, op);
    }
    return why;
}

const char *weft_emit_refuse(const struct weft_form *form, const struct weft_program *program)
{
    const char *why = weft_strips_refuse(form);
    if (!why && (form->ops > WEFT_EMIT_OPS || program->values > 2 * WEFT_EMIT_OPS))
        why = "has more than 512 instructions";
    if (!why && weft_emit_several_of(program) > WEFT_PROGRAM_SKIPS)
        why = "reduces rows of more than three axes";
    if (!why && way_of(program) == WEFT_EMIT_COLUMNS && program->inner_rank > 1)
        why = "reduces columns of several axes";
    for (uint32_t s = 0; !why && s < form->stages; s++) {
        why = refuse_stage(form, program, s);
        why = why ? why : weft_emit_scans_refuse(form, program, s);
    }
    return why;
}

uint64_t weft_emit_shape(const struct weft_program *p)
{
    uint8_t key[2 * WEFT_EMIT_OPS + 2];
    key[0] = (uint8_t)weft_level_of(p->cpu);
    key[1] = (uint8_t)(weft_emit_several_of(p) << 3 | way_of(p) << 1 | p->pieces);
    for (int v = 0; v < p->values; v++)
        key[2 + v] = (uint8_t)(p->value[v].place << 3 | weft_emit_is_by_line(p, (uint32_t)v) << 2 |
                               (p->value[v].stride < 0) << 1 | (p->value[v].stride != 0));
    return XXH3_64bits(key, 2 + (size_t)p->values);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

void weft_emit_line(const struct weft_emit *e, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    weft_text_format(e->text, "%*s%s\n", 4 * e->depth, "", line);
}

/* Behind the head of a loop on its line. */
void weft_emit_open(struct weft_emit *e)
{
    struct weft_text *const text = e->text;
    if (text->length > 1 && strcmp(text->data + text->length - 2, ")\n") == 0) {
        text->length--;
        weft_text_add(text, " {\n");
    } else {
        weft_emit_line(e, "{");
    }
    e->depth++;
}

void weft_emit_close(struct weft_emit *e)
{
    e->depth--;
    weft_emit_line(e, "}");
}

/* --- names -------------------------------------------------------------------------------------------------------- */

void weft_emit_name(const struct weft_form *form, char ret[WEFT_EMIT_NAME])
{
    const char *const name = form->name ? form->name : "kernel";
    snprintf(ret, WEFT_EMIT_NAME, "%s%s", strncmp(name, "weft_", 5) == 0 ? "" : "weft_", name);
    for (char *c = ret; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
}

/* The variable that counts the points of these axes, which are one line: "a_b". A letter alone is nobody else's; a word
 * may be C's. */
static void name_axes(const struct weft_form *form, uint16_t axes, const char *otherwise, char *ret)
{
    size_t length = 0;
    int count = 0;
    for (uint32_t i = 0; i < form->axes && length < WEFT_EMIT_AXIS - 1; i++)
        if (axes >> i & 1) {
            const char *const name = form->axis[i].name;
            length += (size_t)snprintf(ret + length, WEFT_EMIT_AXIS - length, "%s%s",
                                       count++ ? "_" : strlen(name) == 1 ? "" : "axis_", name);
        }
    if (count == 0)
        snprintf(ret, WEFT_EMIT_AXIS, "%s", otherwise);
    for (char *c = ret; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
}

/* --- the function ------------------------------------------------------------------------------------------------- */

static const struct weft_emit_row *row_of(const struct weft_form *form, uint32_t i)
{
    const struct weft_form_op *op = &form->op[i];
    if (op->kind != WEFT_FORM_MAP || form->op[op->in[0]].dtype == WEFT_BOOL || strcmp(op->word, "cast") == 0)
        return NULL;
    return weft_emit_row_find(op->word, op->ins);
}

/* A function for each row of strip.def that the form has; `guarded`: unless it is there. */
static void print_rows(const struct weft_form *form, bool guarded, struct weft_text *text)
{
    for (uint32_t i = 0; i < form->ops; i++) {
        const struct weft_emit_row *row = row_of(form, i);
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= row && row_of(form, k) == row;
        if (!row || again)
            continue;
        if (guarded)
            weft_text_format(text, "#ifndef HAS_%s\n#define HAS_%s\n", row->id, row->id);
        weft_text_format(text, "INLINE %s op_%s(vf x%s%s%s%s) { return %s; }\n", row->test ? "vi" : "vf", row->id,
                         row->ins > 1 ? ", vf y" : "", row->ins > 2 ? ", vf z" : "",
                         row->ins == 1 && weft_emit_row_uses(row, "p") ? ", vf p" : "",
                         row->ins == 1 && weft_emit_row_uses(row, "q") ? ", vf q" : "", row->result);
        if (guarded)
            weft_text_add(text, "#endif\n");
    }
}

static void print_kernel(const struct weft_form *form, const struct weft_program *program, bool guarded,
                         struct weft_text *text)
{
    static const char *const what[] = {"For each point of %s, all stages; vectors run along %s",
                                       "Stage by stage, all points of %2$s; vectors run along %1$s",
                                       "All points of %s"};
    struct weft_emit e = {.form = form, .program = program, .text = text, .way = way_of(program), .depth = 1,
                          .several = weft_emit_several_of(program)};
    char name[WEFT_EMIT_NAME], line[2 * WEFT_EMIT_AXIS + 80];
    uint16_t all = 0;
    for (uint32_t s = 0; s < form->stages; s++)
        all |= form->stage[s].axes;
    const uint16_t outer = form->phase[0].axes;
    weft_emit_name(form, name);
    name_axes(form, outer, "point", e.outer);
    name_axes(form, all & (uint16_t)~outer, "point", e.inner);
    if (e.way == WEFT_EMIT_ROWS && !(all & ~outer)) /* one of the outer axes is the line, another one at other sizes */
        snprintf(e.outer, sizeof e.outer, "line");
    print_rows(form, guarded, text);
    snprintf(line, sizeof line, what[e.way], e.outer, e.inner);
    weft_text_format(text, "\n/* %s. */\nvoid %s(const struct weft_program_tile *tile);\n"
                           "void %s(const struct weft_program_tile *tile)\n{\n", line, name, name);
    weft_emit_line(&e, "const int64_t points = tile->points%s;",
                   e.way == WEFT_EMIT_POINTS ? "" : ", length = tile->length");
    if (e.way == WEFT_EMIT_POINTS)
        e.inner[0] = 0;
    weft_emit_declare_several(&e);
    weft_emit_consts(&e);
    if (e.way == WEFT_EMIT_ROWS)
        weft_emit_rows(&e);
    else if (e.way == WEFT_EMIT_COLUMNS)
        weft_emit_columns(&e);
    else
        weft_emit_points(&e);
    if (e.streamed)
        weft_emit_line(&e, "stream_end(tile->past);");
    weft_text_add(text, "}\n");
}

void weft_emit_kernel(const struct weft_form *form, const struct weft_program *program, struct weft_text *text)
{
    print_kernel(form, program, /* guarded= */ false, text);
}

void weft_emit_member(const struct weft_form *form, const struct weft_program *program, struct weft_text *text)
{
    print_kernel(form, program, /* guarded= */ true, text);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static const char tile_text[] =
    "\nstruct weft_program_tile {\n"
    "    char *const *at;        /* by value: the first point */\n"
    "    const int64_t *next;    /* by value: bytes to the next line */\n"
    "    int64_t points, length; /* outer points; inner points of each, or of a line */\n"
    "    uint64_t past;          /* by argument, a bit each: results that go past the caches */\n"
    "    const int64_t *bound;   /* of each index or position: elements along its axis, and from one to the next */\n"
    "    int64_t rows;           /* of what is kept there is memory for so many outer points */\n"
    "    int64_t strip;          /* what is scanned goes on by so many points */\n"
    "    const int64_t *skip;    /* by value two: bytes from line to line of a row */\n"
    "    const int64_t *lines;   /* and how many there are along each axis */\n"
    "    int (*scan)(const struct weft_program_tile *tile, int number, int64_t line, int64_t from, int64_t count,\n"
    "                void *out, const void *in); /* 0: nothing is made */\n"
    "};\n\n";

void weft_emit_includes(uint32_t cpu, struct weft_text *text)
{
    weft_text_format(text, "#define WEFT_LEVEL %d\n#include \"kernels/strip/look.h\"\n"
                           "#include \"kernels/strip/functions.h\"\n#include \"kernels/strip/functions_double.h\"\n",
                     weft_level_of(cpu));
    weft_text_add(text, tile_text);
}

void weft_emit_prelude(uint32_t cpu, bool doubles, struct weft_text *text)
{
    weft_text_format(text, "#define WEFT_LEVEL %d\n", weft_level_of(cpu));
    weft_text_add(text, weft_prelude_vector);
    weft_text_add(text, weft_prelude_access);
    weft_text_add(text, weft_prelude_look);
    weft_text_add(text, weft_prelude_functions);
    if (doubles)
        weft_text_add(text, weft_prelude_functions_double);
    weft_text_add(text, tile_text);
}

bool weft_emit_is_double(const struct weft_form *form)
{
    bool doubles = false;
    for (uint32_t i = 0; i < form->ops; i++) {
        const struct weft_emit_row *row = row_of(form, i);
        doubles |= row && weft_emit_row_is_double(row);
    }
    return doubles;
}

void weft_emit_source(const struct weft_form *form, const struct weft_program *program, struct weft_text *text)
{
    weft_emit_prelude(program->cpu, weft_emit_is_double(form), text);
    weft_emit_kernel(form, program, text);
}

/* No -fno-math-errno: with it gcc may compute fmod by the x87 unit. What kernels/meson.build has, for the same bits. */
const char *const *weft_emit_flags(uint32_t cpu)
{
#define COMMON "-std=gnu17", "-O2", "-ffp-contract=off", "-fPIC", "-shared"
    static const char *const flags[][10] = {
#ifdef __x86_64__
        {COMMON, "-march=x86-64", NULL},
        {COMMON, "-march=x86-64-v3", "-mtune=haswell", NULL},
        {COMMON, "-march=x86-64-v4", "-mprefer-vector-width=512", NULL},
#else
        {COMMON, NULL},
#endif
    };
    return flags[weft_level_of(cpu)];
}
