/* SPDX-License-Identifier: Apache-2.0 */
/* emit_again.c: of rows whose stages go side by side, what is computed again and not kept: what one cheap instruction
 * makes of operands that lie side by side, are one number of the row, or are handed on. They are read again instead,
 * without a store whose lines come back to the first-level cache. */
#include "codegen/emit_parts.h"
#include "codegen/strips.h"

#include <stdio.h>
#include <string.h>

bool weft_emit_is_number(const struct weft_emit *e, uint32_t v)
{
    return e->form->op[v].kind == WEFT_FORM_LOAD && e->program->value[v].stride == 0 &&
           !weft_strips_is_look_up(e->form, v) && !weft_emit_is_by_line(e->program, v);
}

/* Is it computed again by stages behind the one that makes it? One cheap instruction of what lies side by side, or is
 * one number of the row. */
bool weft_emit_is_again(const struct weft_emit *e, uint32_t v)
{
    static const char *const cheap[] = {"add", "sub", "mul", "neg", "abs"};
    const struct weft_form_op *op = &e->form->op[v];
    bool is = false;
    for (size_t i = 0; i < sizeof cheap / sizeof *cheap && op->kind == WEFT_FORM_MAP; i++)
        is |= strcmp(op->word, cheap[i]) == 0;
    is = is && op->dtype == WEFT_F32 && e->program->value[v].place == WEFT_PROGRAM_TILE;
    for (unsigned k = 0; k < op->ins && is; k++) {
        const uint32_t in = op->in[k];
        is = e->form->op[in].kind == WEFT_FORM_CONST || weft_emit_is_handed_on(e, in) || weft_emit_is_number(e, in) ||
             (e->form->op[in].kind == WEFT_FORM_LOAD && e->program->value[in].stride == 1 &&
              !weft_strips_is_look_up(e->form, in));
    }
    return is;
}

unsigned weft_emit_reads_of(const struct weft_emit *e, uint32_t op, uint32_t ret[WEFT_K_MAX_IN * (WEFT_K_MAX_IN + 1)])
{
    const struct weft_form_op *from = &e->form->op[op];
    unsigned count = 0;
    for (unsigned k = 0; k < from->ins; k++) {
        ret[count++] = from->in[k];
        const struct weft_form_op *in = &e->form->op[from->in[k]];
        for (unsigned j = 0; e->again[from->in[k]] && j < in->ins; j++)
            ret[count++] = in->in[j];
    }
    return count;
}

void weft_emit_load_numbers(const struct weft_emit *e, int depth)
{
    const struct weft_form_stage *const stage = weft_emit_stage_at(e, depth);
    bool loaded[WEFT_EMIT_OPS] = {false};
    uint32_t read[WEFT_K_MAX_IN * (WEFT_K_MAX_IN + 1)];
    for (uint32_t i = stage->first; i < stage->first + stage->ops; i++)
        for (unsigned k = weft_emit_reads_of(e, i, read); k-- > 0;) {
            const uint32_t v = read[k];
            char name[32];
            if (v >= stage->first || loaded[v] || !weft_emit_is_number(e, v))
                continue;
            loaded[v] = true;
            snprintf(name, sizeof name, "w%u_%d", v, depth - weft_emit_depth_of(e, weft_emit_stage_of(e, v)));
            weft_emit_spread(e, v, name);
        }
}
