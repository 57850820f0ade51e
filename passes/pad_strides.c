/* SPDX-License-Identifier: Apache-2.0 */
/* pad_strides: rows of intermediates that the caller's code crosses are stored a cache line longer where they would
 * fall into few sets of a cache.
 *
 *   %y: f32[2048,2048] = exp %x                      →   %y: f32[2048,2048]{0 1 | 2064 1} = exp %x
 *   %z: f32[2048] = custom %y function=columns           %z: f32[2048] = custom %y function=columns
 *
 * A cache of so many ways keeps, of lines that stand S bytes apart, ways · sets / gcd(sets, S in lines). 2048 rows of
 * 8 KiB find 8 places in a first-level cache of 32 KiB and 128 in a second-level one of 1 MiB: a column has evicted its
 * first line before the next column, which has its elements in the same lines, begins. Each element then costs a line.
 * One line more a row spreads a column over all sets, for less than a 64th of the bytes.
 *
 * Only what says that it goes along columns counts (weft_demand.along): a custom function, or a kernel of the target,
 * that takes any strides. Weft's own kernels cross rows by tiles, and were no faster on padded rows. The price decides:
 * lines that are not fetched again, against the bytes that are written and read more.
 *
 * Refused, with a remark: what is returned, since the boundary promises packed arrays; where a view would become a copy
 * (a reshape that merges rows); what another of the caller's kernels wants packed; and what a concat or a padding may
 * compute in place, which saves more; and what has a kernel that is not asked, its own or its group's, as its readers.
 * What another group reads and writes is padded like all else; values inside of it have no rows in memory.
 * Needs: layouts as propagate_memory_format leaves them. Done again, it changes nothing: only packed
 * rows are looked at. */
#include "passes/passes.h"
#include "sched/alias.h"
#include "sched/caller.h"
#include "sched/format.h"
#include "sched/unit.h"

static const char who[] = "pad_strides";

enum { LINE = 64, PERIOD_1 = 4096, WAYS_2 = 8 }; /* the first level's sets make a page: it is indexed by addresses */

/* A value or a view of it, as it is stored. */
struct seen {
    weft_val value;
    struct weft_layout layout;
};

struct survey {
    struct weft_graph *graph;
    const struct weft_target *target;
    struct weft_units units;
    struct seen *seen;
    uint32_t count, capacity;
    /* of all columns: the rows that are worth most */
    int64_t stride;            /* elements; 0: none */
    int64_t gain, column;      /* picoseconds; elements of a column */
    const char *name;          /* whose columns */
};

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* Lines that stand so many bytes apart and fit a cache of so many bytes, whose sets repeat after `period`. */
static int64_t held(int64_t bytes, int64_t period, int64_t stride)
{
    return bytes / weft_gcd(stride % period ? stride : period, period);
}

/* Does a column stay in a cache until the next one, if rows are a line longer, and not without? */
static bool is_helped(const struct weft_target *target, int64_t rows, int64_t stride)
{
    const int64_t l1 = (int64_t)target->l1, l2 = (int64_t)target->l2;
    int64_t period_2 = PERIOD_1;
    while (period_2 * 2 * WAYS_2 <= l2)
        period_2 *= 2;
    if (stride % LINE) /* neighbours of an element lie in other lines from row to row */
        return false;
    return (rows > held(l1, PERIOD_1, stride) && rows <= held(l1, PERIOD_1, stride + LINE)) ||
           (rows > held(l2, period_2, stride) && rows <= held(l2, period_2, stride + LINE));
}

/* Femtoseconds a byte, of a value of so many bytes. */
static int64_t price_of(const struct weft_target *target, enum weft_price first, int64_t bytes)
{
    return weft_price_of(target, weft_format_level(target, first, bytes));
}

/* --- who goes along columns --------------------------------------------------------------------------------------- */

static void push(struct survey *s, weft_val value, const struct weft_layout *layout)
{
    s->seen = weft_grow(&s->graph->root->scratch, s->seen, &s->capacity, s->count + 1, sizeof *s->seen);
    s->seen[s->count++] = (struct seen){value, *layout};
}

/* One reader, and how much a line more would save it. */
static void weigh_reader(struct survey *s, const struct seen *seen, const struct weft_caller_walk *walk)
{
    struct weft_graph *g = s->graph;
    const struct weft_type *type = weft_type_of(g, seen->value);
    weft_dim stride[WEFT_MAX_RANK];
    if (walk->along < 0 || !walk->strides || !weft_layout_logical_strides(g->dims, &seen->layout, type, stride) ||
        !weft_dim_is_constant(stride[walk->along]))
        return;
    const int64_t size = weft_dtype_bits(type->dtype) / 8, apart = weft_dim_value(stride[walk->along]);
    const int64_t rows = weft_dim_hint(g->dims, type->extent[walk->along]);
    const int64_t elements = weft_format_elements(g, seen->value);
    if (size == 0 || apart * size < PERIOD_1 / 2 || !is_helped(s->target, rows, apart * size))
        return;
    const int64_t gain =
        (int64_t)((double)elements * (double)(LINE - size) *
                  (double)price_of(s->target, WEFT_PRICE_read_private, elements * size) * 1e-3);
    if (s->stride == apart)
        s->gain += gain;
    else if (gain > s->gain) {
        s->stride = apart;
        s->gain = gain;
        s->column = rows;
        s->name = walk->name;
    }
}

static void find_columns(struct survey *s, weft_val v)
{
    struct weft_graph *g = s->graph;
    const struct weft_layout own = weft_layout_of(g, v);
    s->count = 0;
    push(s, v, &own);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct seen seen = s->seen[i];
        for (uint32_t slot = g->value[seen.value.id].first_use; slot; slot = g->slot[slot - 1].next) {
            const weft_node n = g->slot[slot - 1].node;
            struct weft_caller_walk walk;
            struct weft_layout view;
            if (weft_is_view(g, n) && weft_view_layout(g, n, &seen.layout, &view))
                push(s, weft_result(g, n, 0), &view);
            else if (weft_caller_walk_of(s->target, g, n, slot - 1 - g->node[n.id].first_operand, &walk))
                weigh_reader(s, &seen, &walk);
        }
    }
}

/* --- what speaks against it --------------------------------------------------------------------------------------- */

/* The layout with a line more between the rows that stand `stride` elements apart; false if none do. */
static bool pad_rows(struct survey *s, weft_val v, struct weft_layout *ret)
{
    struct weft_graph *g = s->graph;
    const struct weft_type *type = weft_type_of(g, v);
    struct weft_layout layout = weft_layout_of(g, v);
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(g->dims, &layout, type, stride);
    int row = layout.axes - 1;
    while (row >= 0 && !weft_dim_is(stride[row], s->stride))
        row--;
    if (row < 0)
        return false;
    while (row > 0 && weft_dim_is(stride[row - 1], s->stride)) /* those of extent 1 */
        row--;
    weft_dim next = weft_dim_of(s->stride + LINE * 8 / (int64_t)weft_dtype_bits(type->dtype));
    for (int i = layout.axes - 1; i >= 0; i--) {
        layout.stride[i] = i > row ? stride[i] : next;
        if (i <= row)
            next = weft_dim_mul(g->dims, next, weft_layout_axis_extent(g->dims, &layout, i, type));
    }
    layout.dense = false;
    *ret = layout;
    return true;
}

static const char *refuse_reader(struct survey *s, const struct seen *seen, weft_node n, uint32_t index)
{
    struct weft_graph *g = s->graph;
    const int op = weft_opcode_of(g, n);
    struct weft_caller_walk walk;
    struct weft_layout view;
    if (weft_is_view(g, n)) {
        if (!weft_view_layout(g, n, &seen->layout, &view))
            return weft_arena_format(&g->root->scratch, "%s would become a copy",
                                     weft_value_text(g, weft_result(g, n, 0)));
        push(s, weft_result(g, n, 0), &view);
        return NULL;
    }
    if (op == WEFT_OP_concat || op == WEFT_OP_pad)
        return weft_arena_format(&g->root->scratch, "%s may have it computed in place",
                                 weft_value_text(g, weft_result(g, n, 0)));
    if (weft_op_of(g, n)->traits & WEFT_CONTROL)
        return "a body reads it";
    if (weft_caller_walk_of(s->target, g, n, index, &walk) && !walk.strides)
        return weft_arena_format(&g->root->scratch, "%s wants it packed", walk.name);
    return NULL;
}

/* What has a kernel that is not asked here, its own or its group's, was decided for the layouts that are. */
static bool is_settled(const struct survey *s, weft_node n, uint32_t index)
{
    const struct weft_node_info *info = &s->graph->node[n.id];
    const struct weft_plan_note *group = info->group ? s->graph->group[info->group].plan : NULL;
    struct weft_caller_walk walk;
    return (group && group->kernel) || (info->plan && !weft_caller_walk_of(s->target, s->graph, n, index, &walk));
}

/* Why not, or NULL. */
static const char *find_refusal(struct survey *s, weft_val v, const struct weft_layout *padded)
{
    struct weft_graph *g = s->graph;
    if (is_settled(s, weft_def(g, v), g->node[weft_def(g, v).id].operands))
        return "its node or its group has a kernel";
    s->count = 0;
    push(s, v, padded);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct seen seen = s->seen[i];
        if (g->value[seen.value.id].returns)
            return "it is returned, and results are packed";
        for (uint32_t slot = g->value[seen.value.id].first_use; slot; slot = g->slot[slot - 1].next) {
            const weft_node n = g->slot[slot - 1].node;
            const uint32_t index = slot - 1 - g->node[n.id].first_operand;
            const char *reason = is_settled(s, n, index)
                                     ? weft_arena_format(&g->root->scratch, "%s or its group has a kernel",
                                                         weft_value_text(g, weft_result(g, n, 0)))
                                     : refuse_reader(s, &seen, n, index);
            if (reason)
                return reason;
        }
    }
    return NULL;
}

/* May the node write its result with gaps? */
static bool writes_gaps(const struct survey *s, weft_node n)
{
    struct weft_graph *g = s->graph;
    struct weft_caller_walk walk;
    const uint32_t others = WEFT_VIEW | WEFT_SOURCE | WEFT_CONTROL | WEFT_DATA;
    if (g->node[n.id].results != 1 || (weft_op_of(g, n)->traits & others) ||
        !weft_unit_stores(&s->units, weft_result(g, n, 0)))
        return false;
    return !weft_caller_walk_of(s->target, g, n, g->node[n.id].operands, &walk) || walk.strides;
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

static bool pad(struct survey *s, weft_val v)
{
    struct weft_graph *g = s->graph;
    const struct weft_type *type = weft_type_of(g, v);
    const struct weft_layout layout = weft_layout_of(g, v);
    struct weft_layout padded;
    s->stride = s->gain = 0;
    if (layout.kind != WEFT_STORED || !layout.dense || weft_dtype_bits(type->dtype) < 8)
        return false;
    find_columns(s, v);
    if (!s->stride || !pad_rows(s, v, &padded))
        return false;
    const int64_t size = weft_dtype_bits(type->dtype) / 8, bytes = weft_format_elements(g, v) * size;
    const int64_t more = bytes / (s->stride * size) * LINE;
    const int64_t both = price_of(s->target, WEFT_PRICE_write_private, bytes) +
                         price_of(s->target, WEFT_PRICE_read_private, bytes);
    const int64_t price = (int64_t)((double)more * 1e-3 * (double)both);
    const char *reason = price >= s->gain ? "the bytes cost more than the lines" : find_refusal(s, v, &padded);
    if (!reason && !weft_permit(g, who, v))
        return false;
    weft_add_remark(g, who, v, reason ? "refused" : "padded",
                    "rows of %lld bytes a line longer: %s walks across %lld of them, which map to few sets of the "
                    "cache; %.3f us for %lld bytes%s%s",
                    (long long)(s->stride * size), s->name, (long long)s->column, (double)(s->gain - price) * 1e-6,
                    (long long)more, reason ? "; but " : "", reason ? reason : "");
    if (reason)
        return false;
    weft_set_value_layout(g, v, &padded); /* what views state is an order, which stays */
    return true;
}

bool weft_pass_pad_strides(struct weft_graph *graph, const struct weft_target *target)
{
    struct survey s = {
        .graph = graph, .target = target, .units = weft_units_find(graph, &graph->root->scratch)};
    bool changed = false;
    weft_foreach_node(graph, n)
        if (writes_gaps(&s, n))
            changed |= pad(&s, weft_result(graph, n, 0));
    return changed;
}
