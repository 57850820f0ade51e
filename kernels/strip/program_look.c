/* SPDX-License-Identifier: Apache-2.0 */
/* program_look.c: ops of strip programs that copy what an index names, or what lies inside of an array. The contract:
 * program.h. Indices are brought into range, and elements looked up one by one, by the loops of kernels/gather. */
#include "kernels/gather/gather.h"
#include "kernels/relayout/relayout.h"
#include "kernels/strip/program.h"

#include <string.h>

enum { CHUNK = 512 }; /* places at a time */

/* What is left to be copied. */
struct range {
    int64_t first, end;    /* points that are inside */
    int64_t along;         /* elements from the operand's first one, by what does not move along the strip */
    int moving;            /* the guard that does, or -1 */
};

static int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a - 1) / b + 1 : -(-a / b); }

/* Points whose position, `at` and so many steps, is in [0, limit). */
static void keep_inside(struct range *r, int64_t at, int64_t step, int64_t limit)
{
    int64_t first = at >= 0 && at < limit ? 0 : r->end, end = r->end;
    if (step > 0) {
        first = ceil_div(-at, step);
        end = ceil_div(limit - at, step);
    } else if (step < 0) {
        first = ceil_div(at - limit + 1, -step);
        end = ceil_div(at + 1, -step);
    }
    r->first = first > r->first ? first : r->first;
    r->end = end < 0 ? 0 : end < r->end ? end : r->end;
    r->first = r->first < r->end ? r->first : r->end;
}

static int64_t read_index(const char *at, int bytes)
{
    int64_t wide;
    int32_t narrow;
    if (bytes == 4) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static struct range range_of(const struct weft_program_look *look, int64_t n)
{
    const struct weft_program *const p = look->program;
    struct range r = {.end = n, .moving = -1};
    for (int k = 0; k < look->op->guards; k++) {
        const struct weft_program_guard *const guard = &p->guard[look->op->guard + k];
        const int64_t *const bound = &p->bound[2 * (look->op->guard + k)];
        const int64_t place = (int64_t)((intptr_t)look->at[k] - WEFT_PROGRAM_ORIGIN);
        if (guard->kind == WEFT_PROGRAM_INSIDE) {
            keep_inside(&r, place, look->stride[k], bound[0]);
        } else if (guard->kind == WEFT_PROGRAM_QUOTIENT) {
            r.moving = look->stride[k] != 0 ? k : r.moving;
            r.along += look->stride[k] != 0 ? 0 : place / bound[0] * bound[1];
        } else if (bound[0] < 1) {
            r.end = r.first;
        } else if (look->stride[k] != 0) {
            r.moving = k;
        } else if (n > 0) {
            int64_t index = read_index(look->at[k], p->value[guard->value].bytes);
            index += index < 0 ? bound[0] : 0;
            r.along += (index < 0 ? 0 : index >= bound[0] ? bound[0] - 1 : index) * bound[1];
        }
    }
    return r;
}

/* Points [first, end), by places. */
static void look_up(const struct weft_program_look *look, const struct range *r, const char *from, char *to,
                    int64_t to_stride)
{
    const struct weft_program *const p = look->program;
    const struct weft_gather_loops *const loops = weft_gather_loops_find(p->cpu);
    const int number = look->op->guard + r->moving, width = p->value[p->guard[number].value].bytes;
    const int bytes = p->value[look->op->out].bytes;
    int64_t place[CHUNK];
    for (int64_t at = r->first; at < r->end; at += CHUNK) {
        const struct weft_gather_line line = {.n = r->end - at < CHUNK ? r->end - at : CHUNK,
                                              .limit = p->bound[2 * number], .step = p->bound[2 * number + 1],
                                              .first = at * look->from_stride, .along = look->from_stride,
                                              .index = look->stride[r->moving]};
        loops->places(&line, width == 8, place, look->at[r->moving] + at * look->stride[r->moving] * width);
        loops->look_up(bytes, to + at * to_stride * bytes, to_stride, from, place, line.n);
    }
}

/* Points [first, end) whose place, divided, says which element; n of them. */
static void find_quotients(const struct weft_program_look *look, const struct range *r, int64_t at, int64_t n,
                           int64_t *place)
{
    const int number = look->op->guard + r->moving;
    const int64_t *const bound = &look->program->bound[2 * number];
    const int64_t step = look->stride[r->moving];
    const int64_t first = (int64_t)((intptr_t)look->at[r->moving] - WEFT_PROGRAM_ORIGIN) + at * step;
    int64_t quotient = first / bound[0], rest = first % bound[0];
    for (int64_t i = 0; i < n; i++, rest += step) {
        for (; rest >= bound[0]; rest -= bound[0])
            quotient++;
        for (; rest < 0; rest += bound[0])
            quotient--;
        place[i] = quotient * bound[1] + (at + i) * look->from_stride;
    }
}

static void look_up_quotients(const struct weft_program_look *look, const struct range *r, const char *from, char *to,
                              int64_t to_stride)
{
    const struct weft_gather_loops *const loops = weft_gather_loops_find(look->program->cpu);
    const int bytes = look->program->value[look->op->out].bytes;
    int64_t place[CHUNK];
    for (int64_t at = r->first; at < r->end; at += CHUNK) {
        const int64_t n = r->end - at < CHUNK ? r->end - at : CHUNK;
        find_quotients(look, r, at, n, place);
        loops->look_up(bytes, to + at * to_stride * bytes, to_stride, from, place, n);
    }
}

void weft_program_look_up(const struct weft_program_look *look, void *to, int64_t to_stride, int64_t n)
{
    const int bytes = look->program->value[look->op->out].bytes;
    const struct range r = range_of(look, n);
    const char *const from = look->from + r.along * bytes;
    char *const out = to;
    const bool part = look->op->part;
    const bool by_quotient =
        r.moving >= 0 && look->program->guard[look->op->guard + r.moving].kind == WEFT_PROGRAM_QUOTIENT;
    if (r.first > 0 && !part)
        weft_copy_strided(bytes, out, to_stride, look->op->number, 0, r.first);
    if (r.end < n && !part)
        weft_copy_strided(bytes, out + r.end * to_stride * bytes, to_stride, look->op->number, 0, n - r.end);
    if (r.first >= r.end)
        return;
    if (by_quotient)
        look_up_quotients(look, &r, from, out, to_stride);
    else if (r.moving >= 0)
        look_up(look, &r, from, out, to_stride);
    else if (to_stride == 1 && look->from_stride == 1)
        memcpy(out + r.first * bytes, from + r.first * bytes, (size_t)((r.end - r.first) * bytes));
    else
        weft_copy_strided(bytes, out + r.first * to_stride * bytes, to_stride,
                          from + r.first * look->from_stride * bytes, look->from_stride, r.end - r.first);
}

uint32_t weft_look_cpu(uint32_t cpu) { return weft_gather_loops_find(cpu)->cpu; }
