/* SPDX-License-Identifier: Apache-2.0 */
/* emit_quotient.c: C for loads whose indices are places divided by a number: resizes to nearest elements. What is the
 * same along a strip moves the pointer t7 there; along a strip, slow7 is where it begins, and each element is repeated
 * in registers. */
#include "codegen/emit_look.h"

#include <inttypes.h>
#include <stdio.h>

/* The index that a guard of the load asks about. */
static const struct weft_index *index_at(const struct weft_form *form, const struct weft_look *look, uint32_t v,
                                         uint32_t number)
{
    const struct weft_index_map *const map = &form->map[form->op[v].map];
    uint32_t guard = look->guard;
    for (int d = 0; d < map->rank; d++) {
        const bool guarded = map->at[d].data || map->at[d].border || map->at[d].over;
        if (guarded && guard == number)
            return &map->at[d];
        guard += guarded;
    }
    return NULL;
}

const char *weft_emit_quotient_refuse(const struct weft_form *form, const struct weft_program *p, uint32_t v)
{
    const struct weft_look look = weft_emit_look_of(form, p, v);
    uint32_t moving = 0;
    for (uint32_t k = look.guard; k < look.guard + look.guards; k++) {
        const bool moves = weft_emit_look_moves(&look, p->guard[k].value);
        const struct weft_index *const at = index_at(form, &look, v, k);
        if (p->guard[k].kind != WEFT_PROGRAM_QUOTIENT)
            return "divides an index beside others that may be out of range";
        if (at->terms > 1 || (at->terms && !weft_dim_is_constant(at->term[0].step)))
            return "divides indices that are no multiple of a place";
        if (at->over > INT32_MAX / 2 || (at->terms && (weft_dim_value(at->term[0].step) < 1 ||
                                                   weft_dim_value(at->term[0].step) > INT32_MAX / 64)))
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
        const struct weft_index *const at = index_at(e->form, &look, v, k);
        const uint32_t position = e->program->guard[k].value;
        weft_emit_place(e, position, place, sizeof place);
        if (weft_emit_look_moves(&look, position))
            weft_emit_line(e, "const int64_t slow%u = (int64_t)(%s) - POSITION_ORIGIN;", v, place);
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
    const struct weft_index *const at = guard ? index_at(e->form, &look, v, number) : NULL;
    if (!at)
        return;
    snprintf(found, sizeof found, "%s_slower(t%u, slow%u, %" PRId64 ", %" PRId64 ", tile->bound[%u], %s, %s)",
             weft_emit_look_word(e->form->op[v].dtype), v, v, at->over, weft_dim_value(at->term[0].step),
             2 * number + 1, e->at, e->tail ? "live" : "LANES");
    weft_emit_look_vector(e, v, found);
}
