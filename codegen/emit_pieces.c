/* SPDX-License-Identifier: Apache-2.0 */
/* emit_pieces.c: C for concats: a load that is outside what another one finds, and so on. Each of the loads has a
 * pointer t… and bounds first… and end… of its own (emit_look.c); %7, which falls back on %6, has
 *
 *   const float *const piece7[] = {t6, t7};
 *   const int64_t part7[] = {first6, end6, first7, end7};
 *
 * A vector begins in the last piece that has begun where it does. If it ends where stop7 says that this piece does, or
 * before, it is loaded there; what a border goes through is put together by elements. Where the axis that is joined is
 * not the one along which vectors go, a strip has one piece, which its head finds. */
#include "codegen/emit_look.h"

#include "codegen/form_parts.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PIECES = 16 }; /* what a line of C has room for */

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
    if (weft_emit_pieces(form, v) > MOST_PIECES)
        return "joins more than 16 pieces";
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
    const char *const type = weft_emit_element(e->form->op[v].dtype);
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
    weft_emit_line(e, "const %s *const piece%u[] = {%s};", type, v, pointers);
    weft_emit_line(e, "const int64_t part%u[] = {%s};", v, bounds);
    if (is_fixed(e->form, e->program, v)) {
        weft_emit_line(e, "const int only%u = piece_at(part%u, %u);", v, v, pieces);
        weft_emit_line(e, "const %s *const only_t%u = piece%u[only%u];", type, v, v, v);
        weft_emit_line(e, "const int64_t stop%u = part%u[2 * only%u] > 0 ? INT64_MIN : part%u[2 * only%u + 1];", v, v,
                       v, v, v);
        return;
    }
    for (uint32_t k = pieces; k-- > 0;)
        weft_emit_line(e, "const int64_t stop%u = piece_stop(part%u, %u, %u);", piece_at(e->form, v, k), v, pieces,
                       pieces - 1 - k);
}

/* Of each piece, "here >= first7 ? t7 : here >= first6 ? t6 : t5". */
static void print_choice(const struct weft_emit *e, uint32_t v, const char *what, char *ret, size_t bytes)
{
    const uint32_t pieces = weft_emit_pieces(e->form, v);
    size_t length = 0;
    for (uint32_t k = 0; k < pieces && length < bytes; k++) {
        const uint32_t piece = piece_at(e->form, v, k);
        if (k + 1 < pieces)
            length += (size_t)snprintf(ret + length, bytes - length, "%s >= first%u ? %s%u : ", e->at, piece, what,
                                       piece);
        else
            snprintf(ret + length, bytes - length, "%s%u", what, piece);
    }
}

void weft_emit_pieces_find(struct weft_emit *e, uint32_t v)
{
    const uint32_t pieces = weft_emit_pieces(e->form, v);
    const int dtype = e->form->op[v].dtype;
    const char *const live = e->tail ? "live" : "LANES";
    char found[512], fill[32], from[640], stop[640], loaded[96], pointer[16];
    weft_emit_look_fill(e, piece_at(e->form, v, pieces - 1), fill, sizeof fill);
    if (is_fixed(e->form, e->program, v)) {
        snprintf(from, sizeof from, "only_t%u", v);
        snprintf(stop, sizeof stop, "stop%u", v);
    } else {
        print_choice(e, v, "t", from, sizeof from);
        print_choice(e, v, "stop", stop, sizeof stop);
    }
    weft_emit_line(e, "const %s *const u%u = %s;", weft_emit_element(dtype), v, from);
    weft_emit_line(e, "const int64_t until%u = %s;", v, stop);
    snprintf(pointer, sizeof pointer, "u%u", v);
    weft_emit_look_load(e, dtype, pointer, loaded, sizeof loaded);
    snprintf(found, sizeof found,
             "__builtin_expect(%s + %s <= until%u, 1) ? %s : %s_joined(piece%u, part%u, %u, %s, %s, %s)", e->at, live,
             v, loaded, weft_emit_look_word(dtype), v, v, pieces, e->at, live, fill);
    weft_emit_look_vector(e, v, found);
}
