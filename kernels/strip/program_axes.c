/* SPDX-License-Identifier: Apache-2.0 */
/* program_axes.c: which axes of a strip program are one, in which order they are, and along which one strips run. The
 * contract: program.h. */
#include "kernels/strip/program.h"

/* One of the two lists of axes, with the strides of all values along them. */
struct axes {
    struct weft_program *program;
    bool inner;
    int32_t *rank;
    int64_t *extent;
};

static struct axes axes_of(struct weft_program *p, bool inner)
{
    return (struct axes){p, inner, inner ? &p->inner_rank : &p->outer_rank, inner ? p->inner : p->outer};
}

static int64_t *strides(const struct axes *axes, int value)
{
    return axes->inner ? axes->program->value[value].inner : axes->program->value[value].outer;
}

static void move_in(int64_t *list, int from, int to)
{
    const int64_t moved = list[from];
    for (; from < to; from++)
        list[from] = list[from + 1];
    for (; from > to; from--)
        list[from] = list[from - 1];
    list[to] = moved;
}

static void move_axis(const struct axes *axes, int from, int to)
{
    move_in(axes->extent, from, to);
    for (int v = 0; v < axes->program->values; v++)
        move_in(strides(axes, v), from, to);
}

/* An argument by whose strides axes are ordered: one that is written, if it has most of them, else one that has. */
static int leader_of(const struct axes *axes)
{
    const struct weft_program *p = axes->program;
    int best = -1, most = -1;
    for (int v = 0; v < p->values; v++) {
        int score = 0;
        for (int i = 0; i < *axes->rank; i++)
            score += strides(axes, v)[i] != 0 ? 2 : 0;
        for (int i = 0; i < p->ops; i++)
            score += score > 0 && p->op[i].out == v;
        if (weft_program_is_memory(&p->value[v]) && score > most) {
            best = v;
            most = score;
        }
    }
    return best;
}

static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

static void sort_axes(const struct axes *axes)
{
    const int leader = leader_of(axes);
    if (leader < 0)
        return;
    for (int i = 1; i < *axes->rank; i++) {
        int to = i;
        while (to > 0 && distance(strides(axes, leader)[to - 1]) < distance(strides(axes, leader)[i]))
            to--;
        move_axis(axes, i, to);
    }
}

static bool is_one(const struct axes *axes, int i)
{
    bool one = true;
    for (int v = 0; v < axes->program->values && one; v++)
        one = strides(axes, v)[i] == strides(axes, v)[i + 1] * axes->extent[i + 1];
    return one;
}

static void drop_axis(const struct axes *axes, int i)
{
    move_axis(axes, i, *axes->rank - 1);
    --*axes->rank;
}

/* Drops axes of extent 1, makes one of neighbours that are one in all arguments. */
static void merge_axes(const struct axes *axes)
{
    for (int i = *axes->rank - 1; i >= 0; i--)
        if (axes->extent[i] == 1)
            drop_axis(axes, i);
    for (int i = *axes->rank - 2; i >= 0; i--)
        if (is_one(axes, i)) {
            axes->extent[i + 1] *= axes->extent[i];
            drop_axis(axes, i);
        }
}

/* What an axis is worth as the one that strips run along: arguments side by side, and long enough to pay for calls. */
static int64_t worth(const struct axes *axes, int i)
{
    const struct weft_program *p = axes->program;
    int64_t score = 0;
    for (int v = 0; v < p->values; v++) {
        const int64_t stride = strides(axes, v)[i];
        const bool counts =
            weft_program_is_memory(&p->value[v]) && (p->inner_rank == 0 || weft_program_has_inner(p, v));
        score += !counts ? 0 : stride == 1 || stride == -1 ? 4 : stride == 0 ? 2 : 0;
    }
    return score * (axes->extent[i] < 64 ? axes->extent[i] : 64);
}

/* The worth of the best axis, which goes last. */
static int64_t put_best_last(const struct axes *axes)
{
    int best = *axes->rank - 1;
    for (int i = best - 1; i >= 0; i--)
        if (worth(axes, i) > worth(axes, best))
            best = i;
    const int64_t most = worth(axes, best);
    move_axis(axes, best, *axes->rank - 1);
    return most;
}

/* Short, but what is written lies side by side along them: by worth alone, a long axis with gaps would win. */
static bool has_short_lines(const struct weft_program *p)
{
    const int last = p->outer_rank - 1;
    bool side_by_side = p->inner_rank == 0 && p->outer_rank > 1 && p->outer[last] <= WEFT_PROGRAM_SHORT_LINE;
    for (int i = 0; i < p->ops && side_by_side; i++) {
        const struct weft_program_value *const out = &p->value[p->op[i].out];
        side_by_side = out->place != WEFT_PROGRAM_ARGUMENT || out->outer[last] == 1;
    }
    return side_by_side;
}

/* The last outer axis becomes an inner one, so that its lines are rows of a tile. */
static void turn_inwards(struct weft_program *p)
{
    const int last = --p->outer_rank;
    p->inner[0] = p->outer[last];
    p->inner_rank = 1;
    for (int v = 0; v < p->values; v++)
        p->value[v].inner[0] = p->value[v].outer[last];
    p->folded = p->inner[0];
    p->points = 1;
    for (int i = 0; i < last; i++)
        p->points *= p->outer[i];
    p->along_inner = true;
}

/* A list without axes gets one of a single point. */
static void have_one(const struct axes *axes)
{
    if (*axes->rank > 0)
        return;
    axes->extent[(*axes->rank)++] = 1;
    for (int v = 0; v < axes->program->values; v++)
        strides(axes, v)[0] = 0;
}

void weft_program_merge_axes(struct weft_program *p)
{
    const struct axes list[] = {axes_of(p, false), axes_of(p, true)};
    for (int i = 0; i < 2; i++) {
        merge_axes(&list[i]);
        have_one(&list[i]);
    }
}

void weft_program_order_axes(struct weft_program *p)
{
    const struct axes outer = axes_of(p, false), inner = axes_of(p, true);
    if (!p->chunk && !p->ordered)
        sort_axes(&outer);
    if (!p->chunk)
        merge_axes(&outer);
    sort_axes(&inner);
    merge_axes(&inner);
    const bool goes_along = p->folds > 0 || p->scans > 0;
    have_one(&outer);
    if (goes_along)
        have_one(&inner);
    p->points = p->folded = 1;
    for (int i = 0; i < p->outer_rank; i++)
        p->points *= p->outer[i];
    for (int i = 0; i < p->inner_rank; i++)
        p->folded *= p->inner[i];
    if (p->chunk) {
        put_best_last(&inner);
        p->along_inner = true;
        return;
    }
    if (has_short_lines(p)) {
        turn_inwards(p);
        return;
    }
    const int64_t along_outer = p->ordered ? worth(&outer, p->outer_rank - 1) : put_best_last(&outer);
    p->along_inner = p->inner_rank > 0 && put_best_last(&inner) >= along_outer;
}
