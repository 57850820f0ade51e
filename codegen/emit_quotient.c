/* SPDX-License-Identifier: Apache-2.0 */
/* emit_quotient.c: C for loads whose indices are places divided by a number: resizes to nearest elements. What is the
 * same along a strip moves the pointer t7 there; along a strip, place7 is where it begins, and each element is repeated
 * in registers. */
#include "codegen/emit_look.h"

#include <inttypes.h>
#include <stdio.h>

const char *weft_emit_quotient_refuse(const struct weft_form *form, const struct weft_program *p, uint32_t v)
{
    const struct weft_look look = weft_emit_look_of(form, p, v);
    uint32_t moving = 0;
    for (uint32_t k = look.guard; k < look.guard + look.guards; k++) {
        const bool moves = weft_emit_look_moves(&look, p->guard[k].value);
        const struct weft_index *const at = weft_strips_guarded(form, v, k - look.guard);
        if (p->guard[k].kind != WEFT_PROGRAM_QUOTIENT)
            return "divides an index beside others that may be out of range";
        if (at->terms > 1 || (at->terms && !weft_dim_is_constant(at->term[0].step)))
            return "divides indices that are no multiple of a place";
        const int64_t step = at->terms ? weft_dim_value(at->term[0].step) : 1;
        if (at->over > INT32_MAX / 2 || step < 1 || step > INT32_MAX / 64)
            return "divides by large numbers";
        moving += moves;
    }
    return moving > 1 || (moving && weft_emit_look_moves(&look, look.source)) ? "moves in two ways along strips" : NULL;
}

void weft_emit_quotient_head(struct weft_emit *e, uint32_t v)
{
    const struct weft_look look = weft_emit_look_of(e->form, e->program, v);
    const char *const type = weft_emit_element(e->form->op[v].dtype);
    char place[192];
    weft_emit_place(e, look.source, place, sizeof place);
    weft_emit_line(e, "const %s *t%u = (const %s *)(%s);", type, v, type, place);
    for (uint32_t k = look.guard; k < look.guard + look.guards; k++) {
        const struct weft_index *const at = weft_strips_guarded(e->form, v, k - look.guard);
        const uint32_t position = e->program->guard[k].value;
        weft_emit_place(e, position, place, sizeof place);
        if (weft_emit_look_moves(&look, position))
            weft_emit_line(e, "const int64_t place%u = (int64_t)(%s) - POSITION_ORIGIN;", v, place);
        else
            weft_emit_line(e, "t%u += ((int64_t)(%s) - POSITION_ORIGIN) / %" PRId64 " * tile->bound[%u];", v, place,
                           at->over, 2 * k + 1);
    }
    if (weft_emit_look_is_one(&look)) {
        char element[32];
        snprintf(element, sizeof element, "*t%u", v);
        weft_emit_look_spread(e, v, element);
    }
}

void weft_emit_quotient_find(struct weft_emit *e, uint32_t v)
{
    const struct weft_look look = weft_emit_look_of(e->form, e->program, v);
    uint32_t number;
    char found[256];
    const struct weft_program_guard *const guard =
        weft_emit_look_guard(&look, WEFT_PROGRAM_QUOTIENT, /* moves= */ true, &number);
    const struct weft_index *const at = guard ? weft_strips_guarded(e->form, v, number - look.guard) : NULL;
    if (!at)
        return;
    snprintf(found, sizeof found, "%s_repeated(t%u, place%u, %" PRId64 ", %" PRId64 ", tile->bound[%u], %s, %s)",
             weft_emit_look_word(e->form->op[v].dtype), v, v, at->over, weft_dim_value(at->term[0].step),
             2 * number + 1, e->at, e->tail ? "live" : "LANES");
    weft_emit_look_vector(e, v, found);
}
