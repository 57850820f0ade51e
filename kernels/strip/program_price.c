/* SPDX-License-Identifier: Apache-2.0 */
/* program_price.c: what a strip program takes besides reading, writing and computing. The contract: program.h. */
#include "kernels/strip/program.h"

#include <math.h>

/* Estimates, held against a few kernels: to open a tile, for each of its values; a fold's line; an element that lies
 * apart from the next. The others stand for loops that the ops have by themselves and
 * programs do not, and are large enough to keep such groups apart. */
enum { TILE_NS = 40, VALUE_NS = 2, LINE_NS = 10, APART_NS = 1, NARROW_NS = 4, LONG_COLUMNS = 256 };

/* Long folds of few columns: what workers share out are pieces of lines, where reductions cut slices and are three
 * times as fast. */
static bool is_narrow(const struct weft_program *p)
{
    return p->folds && !p->along_inner && p->points < WEFT_PROGRAM_COLUMNS && p->folded > LONG_COLUMNS;
}

/* A look-up in a line, which without it might be one with the next; in a line that is folded; of each element, besides
 * what it takes where a gather does it. C takes a quarter of it (Zen 4, one thread: 8192 rows of 16 added to others 21
 * us, one by one 13; 358,400 single elements added to others 206 us and 151, and where rows share the indices, whose
 * cosine is taken, 562 and 373: the kernel of gathers brings them into range once for all rows). */
enum { LOOK_NS = 10, LOOK_FOLDED_NS = 4, LOOK_EACH_NS = 1, QUOTIENT_NS = 20 }; /* that of a line by quotients */
#define LOOK_TWICE_NS 0.1   /* elements that C repeats in registers: each one twice */
#define LOOK_PART_NS  0.015 /* of a piece of a concat: each vector asks whether it begins there */
#define LOOK_DOWN_NS  0.4   /* where columns are folded, each vector of each line finds all pieces anew */

/* Does it go backwards along an axis? Its lines are never one with the next either. */
static bool is_turned(const struct weft_program *p, int v)
{
    bool turned = false;
    for (int i = 0; i < p->outer_rank; i++)
        turned |= p->value[v].outer[i] < 0;
    for (int i = 0; i < p->inner_rank; i++)
        turned |= p->value[v].inner[i] < 0;
    return turned && weft_program_is_memory(&p->value[v]);
}

/* What each element takes that a guard looks up. */
static double each_ns(const struct weft_program *p, int number)
{
    const struct weft_program_guard *const guard = &p->guard[number];
    const int64_t step = p->value[guard->value].stride;
    if (guard->kind == WEFT_PROGRAM_INSIDE || step == 0)
        return 0;
    return guard->kind == WEFT_PROGRAM_QUOTIENT && step == 1 && p->bound[2 * number] == 2 &&
                   p->bound[2 * number + 1] == 1 ? LOOK_TWICE_NS : LOOK_EACH_NS;
}

static double line_ns(const struct weft_program *p, const struct weft_program_op *op)
{
    const bool divides = p->guard[op->guard].kind == WEFT_PROGRAM_QUOTIENT;
    return divides ? QUOTIENT_NS : p->folds ? LOOK_FOLDED_NS : LOOK_NS;
}

static double look_up_ns(const struct weft_program *p, double length)
{
    const double points = (double)p->points * (double)p->folded, lines = length > 0 ? points / length : 0;
    double ns = 0;
    for (int i = 0; i < p->ops; i++) {
        double each = 0;
        for (int k = 0; k < p->op[i].guards; k++)
            each += each_ns(p, p->op[i].guard + k);
        if (p->op[i].part && p->folds && !p->along_inner)
            each += LOOK_DOWN_NS;
        ns += p->op[i].part ? points * LOOK_PART_NS : 0;
        if (p->op[i].guards)
            ns += each > 0 ? points * each : lines * line_ns(p, &p->op[i]);
    }
    for (int v = 0; v < p->values; v++)
        ns += is_turned(p, v) ? lines * (p->folds ? LOOK_FOLDED_NS : LOOK_NS) : 0;
    return ns;
}

/* An op on an element of the nearest caches, besides its arithmetic. */
#define AGAIN_NS 0.02
/* A step of a scan down columns, also inside of a block: 8192 rows of 16 took 0.71 of the speed of one by one. */
enum { STEP_NS = 10 };

/* What stands in front of the scan is computed again for each chunk. */
static double again_ns(const struct weft_program *p)
{
    double ns = 0;
    for (int i = 0; i < p->ops && !p->op[i].scans; i++)
        ns += p->op[i].kernel ? weft_strip_ns(p->op[i].kernel) + AGAIN_NS : 0;
    return ns;
}

double weft_program_scan_ns(const struct weft_program *p)
{
    const double last = (double)p->outer[p->outer_rank - 1], points = (double)p->points * (double)p->folded;
    const double tiles = (double)p->points / (p->tile < last ? (double)p->tile : last > 0 ? last : 1);
    double ns = p->along_inner ? 0 : p->scans * tiles * (double)p->folded * STEP_NS;
    for (int i = 0; i < p->scans; i++)
        ns += points * weft_scan_ns(&p->scan[i].scan, p->along_inner && p->block == p->strip);
    return ns + (p->shared ? points * again_ns(p) : 0);
}

/* A line of a piece that does not go on as the next one (Zen 4, lines of 64); what compiled code has of calls. */
enum { SHORT_NS = 3, COMPILED = 4 };

double weft_program_pieces_ns(const struct weft_program *p, double pieces)
{
    double lines = 1, length = 1;
    for (int i = 0; i < p->outer_rank; i++)
        lines *= (double)p->outer[i];
    for (int i = 0; i < p->inner_rank; i++)
        length *= (double)p->inner[i];
    const double calls = pieces + lines * length / (double)p->block;
    return pieces * (TILE_NS + VALUE_NS * p->values) + calls * p->ops * WEFT_STRIP_CALL_NS / (p->shape ? COMPILED : 1) +
           (p->lines_follow ? 0 : lines * SHORT_NS);
}

/* Of rows of several lines, C takes a line at a time too, but with all ops of a stage at once. In the same unit as the
 * calls, of which compiled code is taken to have a quarter (Zen 4: 5 ns a line and stage, sums included, where the ops
 * of a batch norm's stages are called 4 to 9 times). */
enum { STAGE_LINE_NS = 20 };

double weft_program_overhead_ns(const struct weft_program *p)
{
    const bool by_line = p->shape && p->along_inner && p->inner_rank > 1;
    const double last = (double)p->outer[p->outer_rank - 1];
    const double tile = p->tile < last ? (double)p->tile : last, tiles = tile > 0 ? (double)p->points / tile : 0;
    const double length = p->along_inner ? (double)p->inner[p->inner_rank - 1] : tile;
    const double lines = p->along_inner ? (length > 0 ? tile * (double)p->folded / length : 0) : (double)p->folded;
    double calls = lines; /* of each op, for a tile */
    if (length > (double)p->strip)
        calls *= length / (double)p->strip;
    else if (p->block > p->strip && length > 0)
        calls = ceil(lines * length / (double)p->block);
    double ns = TILE_NS + VALUE_NS * p->values;
    for (int s = 0; s < p->stages; s++)
        ns += by_line && p->stage[s].inside ? calls * STAGE_LINE_NS
                                            : p->stage[s].ops * (p->stage[s].inside ? calls : 1) * WEFT_STRIP_CALL_NS;
    ns = tiles * (ns + (by_line ? 0 : p->folds * (p->along_inner ? lines : calls) * LINE_NS));
    for (int v = 0; v < p->values; v++) /* what goes backwards is turned around in registers */
        if (weft_program_is_memory(&p->value[v]) && p->value[v].stride * p->value[v].stride > 1)
            ns += (double)p->points * (double)p->folded * APART_NS;
    ns += look_up_ns(p, length);
    if (is_narrow(p))
        ns += (double)p->points * (double)p->folded * NARROW_NS;
    return ns;
}
