/* SPDX-License-Identifier: Apache-2.0 */
/* emit_pieces.c: C for concats: a load that is outside what another one finds, and so on. Each of the loads has a
 * pointer t… and bounds first… and end… of its own (emit_look.c); %7, which falls back on %6, has
 *
 *   const float *const piece7[] = {t6, t7};
 *   const int64_t part7[] = {first6, end6, first7, end7};
 *
 * A vector that lies inside of one piece is loaded there; what a border goes through is put together by elements. Where
 * the axis that is joined is not the one along which vectors go, a strip has one piece, which its head finds. */
#include "codegen/emit_look.h"

#include "codegen/form_parts.h"

#include <stdio.h>
#include <string.h>

/* What the load falls back on. */
static uint32_t before(const struct weft_form *form, uint32_t v) { return form->op[v].in[form->op[v].ins - 1]; }

uint32_t weft_emit_pieces(const struct weft_form *form, uint32_t v)
{
    uint32_t count = 1;
    if (weft_strips_is_part(form, v))
        return 1;
    for (; form->op[v].falls_back; v = before(form, v))
        count++;
    return count;
}

/* The piece with this number, from the one that is looked at first on. */
static uint32_t piece_at(const struct weft_form *form, uint32_t v, uint32_t back)
{
    for (; back > 0; back--)
        v = before(form, v);
    return v;
}

/* Is each piece the same for all of a strip? */
static bool is_fixed(const struct weft_form *form, const struct weft_program *p, uint32_t v)
{
    bool fixed = true;
    for (uint32_t k = weft_emit_pieces(form, v); k-- > 0;) {
        const struct weft_look look = weft_emit_look_of(form, p, piece_at(form, v, k));
        for (uint32_t g = look.guard; g < look.guard + look.guards; g++)
            fixed &= !weft_emit_look_moves(&look, p->guard[g].value);
    }
    return fixed;
}

static bool are_one(const struct weft_form *form, const struct weft_program *p, uint32_t v)
{
    bool one = is_fixed(form, p, v);
    for (uint32_t k = weft_emit_pieces(form, v); k-- > 0;) {
        const struct weft_look look = weft_emit_look_of(form, p, piece_at(form, v, k));
        one &= !weft_emit_look_moves(&look, look.source);
    }
    return one;
}

const char *weft_emit_pieces_refuse(const struct weft_form *form, const struct weft_program *p, uint32_t v)
{
    bool moves = true;
    for (uint32_t k = weft_emit_pieces(form, v); k-- > 0;) {
        const struct weft_look look = weft_emit_look_of(form, p, piece_at(form, v, k));
        uint32_t number;
        if (weft_emit_look_guard(&look, WEFT_PROGRAM_INDEX, false, &number) ||
            weft_emit_look_guard(&look, WEFT_PROGRAM_QUOTIENT, false, &number))
            return "joins what it gathers";
        moves &= weft_emit_look_moves(&look, look.source);
    }
    return moves || are_one(form, p, v) ? NULL : "joins what is repeated along strips";
}

/* The element that a strip has in all places. */
static void print_one(const struct weft_emit *e, uint32_t v, uint32_t pieces, char *ret, size_t bytes)
{
    size_t length = 0;
    char fill[32];
    weft_emit_look_fill(e, piece_at(e->form, v, pieces - 1), fill, sizeof fill);
    for (uint32_t k = 0; k < pieces && length < bytes; k++) {
        const uint32_t piece = piece_at(e->form, v, k);
        length += (size_t)snprintf(ret + length, bytes - length, "first%u == 0 && end%u > 0 ? *t%u : ", piece, piece,
                                   piece);
    }
    if (length < bytes)
        snprintf(ret + length, bytes - length, "%s", fill);
}

void weft_emit_pieces_head(struct weft_emit *e, uint32_t v)
{
    const uint32_t pieces = weft_emit_pieces(e->form, v);
    char pointers[WEFT_PROGRAM_ARGUMENTS * 8] = "", bounds[WEFT_PROGRAM_ARGUMENTS * 24] = "", one[1024];
    size_t at = 0, to = 0;
    if (are_one(e->form, e->program, v)) {
        print_one(e, v, pieces, one, sizeof one);
        weft_emit_look_spread(e, v, one);
        return;
    }
    for (uint32_t k = pieces; k-- > 0;) {
        const uint32_t piece = piece_at(e->form, v, k);
        at += (size_t)snprintf(pointers + at, sizeof pointers - at, "%st%u", at ? ", " : "", piece);
        to += (size_t)snprintf(bounds + to, sizeof bounds - to, "%sfirst%u, end%u", to ? ", " : "", piece, piece);
    }
    weft_emit_line(e, "const %s *const piece%u[] = {%s};", weft_emit_element(e->form->op[v].dtype), v, pointers);
    weft_emit_line(e, "const int64_t part%u[] = {%s};", v, bounds);
    if (is_fixed(e->form, e->program, v))
        weft_emit_line(e, "const int only%u = piece_at(part%u, %u);", v, v, pieces);
}

void weft_emit_pieces_find(struct weft_emit *e, uint32_t v)
{
    const uint32_t pieces = weft_emit_pieces(e->form, v);
    const char *const word = weft_emit_look_word(e->form->op[v].dtype), *const live = e->tail ? "live" : "LANES";
    char found[256], fill[32];
    weft_emit_look_fill(e, piece_at(e->form, v, pieces - 1), fill, sizeof fill);
    if (is_fixed(e->form, e->program, v))
        snprintf(found, sizeof found, "%s_joined(piece%u + only%u, part%u + 2 * only%u, 1, %s, %s, %s)", word, v, v, v,
                 v, e->at, live, fill);
    else
        snprintf(found, sizeof found, "%s_joined(piece%u, part%u, %u, %s, %s, %s)", word, v, v, pieces, e->at, live,
                 fill);
    weft_emit_look_vector(e, v, found);
}
