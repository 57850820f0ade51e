/* SPDX-License-Identifier: Apache-2.0 */
/* align_buffers: what the caller's code wants at other addresses than it lies is copied once for all who want it so.
 *
 *   %s: f32[7,64] = slice %x start=[1 0] …                   %s: f32[7,64] = slice %x start=[1 0] …
 *   %y: f32[7,64] = custom %s function=f             →       %0: f32[7,64]{0 1 align=64} = relayout %s
 *                                                            %y: f32[7,64] = custom %0 function=f
 *
 * Of an address this is known: memory that a plan allocates for a value begins at a cache line; of a parameter only
 * what its layout promises (align=), of a constant nothing, since files are mapped as they are, and of a result that
 * the caller may bind nothing either; a view moves the first element by its offset. What is known is enough, or the
 * value is copied: by a relayout right behind it, which lies in memory of its own. Where a value is aligned only since
 * it has memory of its own, its layout says so from then on, and nothing computes it inside of another (sched/alias.h).
 *
 * Only what says that it wants alignment counts (weft_demand.align): custom functions, and kernels of the target.
 * Weft's own kernels read any address, at next to no cost, so that nothing is copied for them.
 * In which order functions take a value is none of its matters: propagate_memory_format sees to that, and what it turns
 * or packs for a function is made at the address at once.
 * A function that is called without this pass is safe too: what stands wrong is copied for that call (ir/custom.c).
 * Needs: layouts as propagate_memory_format leaves them. Done again, it changes nothing. */
#include "passes/passes.h"
#include "sched/alias.h"
#include "sched/caller.h"
#include "sched/format.h"

static const char who[] = "align_buffers";

enum { OWN_ALIGN = 64, MOST_VIEWS = 64 };
enum { UNKNOWN, HANDED_OUT, KEPT };

struct aligning {
    struct weft_graph *graph;
    const struct weft_target *target;
    weft_val *seen;
    uint32_t capacity;
    uint8_t *handed_out; /* by root, what was found: see is_handed_out */
    uint32_t values;     /* without the copies */
    bool changed;
};

static bool find_handed_out(struct aligning *a, weft_val v)
{
    const struct weft_graph *g = a->graph;
    uint32_t count = 1;
    a->seen = weft_grow(&g->root->scratch, a->seen, &a->capacity, 1, sizeof *a->seen);
    a->seen[0] = v;
    for (uint32_t i = 0; i < count; i++) {
        if (g->value[a->seen[i].id].returns)
            return true;
        for (uint32_t slot = g->value[a->seen[i].id].first_use; slot; slot = g->slot[slot - 1].next) {
            const weft_node n = g->slot[slot - 1].node;
            if (!weft_is_view(g, n))
                continue;
            a->seen = weft_grow(&g->root->scratch, a->seen, &a->capacity, count + 1, sizeof *a->seen);
            a->seen[count++] = weft_result(g, n, 0);
        }
    }
    return false;
}

/* May it be computed in the caller's memory: is it, or a view of it, returned? Many readers ask about one root, so the
 * answer is kept; copies make nothing returned that was not. */
static bool is_handed_out(struct aligning *a, weft_val root)
{
    if (root.id >= a->values)
        return find_handed_out(a, root);
    if (a->handed_out[root.id] == UNKNOWN)
        a->handed_out[root.id] = find_handed_out(a, root) ? HANDED_OUT : KEPT;
    return a->handed_out[root.id] == HANDED_OUT;
}

/* What is known of the value that a view begins with. */
static uint32_t root_alignment(struct aligning *a, weft_val root)
{
    const struct weft_graph *g = a->graph;
    const struct weft_layout layout = weft_layout_of(g, root);
    const weft_node n = weft_def(g, root);
    if (!n.id || layout.kind != WEFT_STORED || layout.align)
        return layout.kind == WEFT_STORED ? layout.align : 0;
    if (weft_is_const(g, root) || (weft_op_of(g, n)->traits & WEFT_CONTROL) || is_handed_out(a, root))
        return 0;
    return OWN_ALIGN;
}

/* Bytes that the address of the first element is known to be a multiple of, 0: none; and where its memory begins. */
static uint32_t known_alignment(struct aligning *a, weft_val v, weft_val *ret_root)
{
    struct weft_graph *g = a->graph;
    weft_node view[MOST_VIEWS];
    int views = 0;
    *ret_root = v;
    for (weft_node n = weft_def(g, v); weft_is_view(g, n); n = weft_def(g, *ret_root)) {
        if (views == MOST_VIEWS) {
            *ret_root = v;
            return weft_own_layout(g, v).align;
        }
        view[views++] = n;
        *ret_root = weft_operand(g, n, 0);
    }
    struct weft_layout layout = weft_own_layout(g, *ret_root);
    layout.align = root_alignment(a, *ret_root);
    while (views > 0) {
        const struct weft_layout from = layout;
        if (weft_view_layout(g, view[--views], &from, &layout))
            continue;
        *ret_root = weft_result(g, view[views], 0); /* no view: a copy, in memory of its own */
        layout = weft_own_layout(g, *ret_root);
        layout.align = is_handed_out(a, *ret_root) ? 0 : OWN_ALIGN;
    }
    return layout.align;
}

/* What the caller's code wants of operand `slot`, 0: nothing. What a group computes for its own nodes has memory only
 * if its kernel says so. */
static uint32_t wanted_by(struct aligning *a, uint32_t slot, const char **ret_name)
{
    struct weft_graph *g = a->graph;
    const weft_node n = g->slot[slot - 1].node, def = weft_def(g, g->slot[slot - 1].value);
    const uint32_t group = def.id ? g->node[def.id].group : 0;
    struct weft_caller_walk walk;
    if ((group && group == g->node[n.id].group) ||
        !weft_caller_walk_of(a->target, g, n, slot - 1 - g->node[n.id].first_operand, &walk))
        return 0;
    *ret_name = walk.name;
    return walk.align;
}

/* A relayout of a value right behind it, or behind its group. */
static weft_val copy_of(struct aligning *a, weft_val v, uint32_t layout)
{
    struct weft_graph *g = a->graph;
    const weft_node def = weft_def(g, v);
    struct weft_builder b = {.graph = g, .before = def.id ? g->node[weft_group_last(g, def).id].next : g->first};
    const weft_val copy = weft_build_unary(&b, WEFT_OP_relayout, v);
    g->value[copy.id].layout = layout;
    a->changed = true;
    return copy;
}

/* What a copy costs, for `weft explain` and those who ask for the price of all layouts. */
static const struct weft_conversion_record *record(struct aligning *a, weft_val v, weft_val copy,
                                                   const struct weft_layout *from, const char *wanted)
{
    struct weft_graph *g = a->graph;
    const struct weft_formats prices = {.graph = g, .target = a->target};
    const struct weft_layout to = weft_own_layout(g, copy);
    struct weft_conversion_record *made = weft_new(g->arena, struct weft_conversion_record, 1);
    *made = (struct weft_conversion_record){.from = v, .to = copy, .once = weft_is_const(g, v), .wanted = wanted,
                                            .ps = weft_format_relayout_ps(&prices, v, from, &to)};
    weft_add_conversion(g, made);
    g->format_ps += made->once ? 0 : made->ps;
    return made;
}

/* One copy for all whose wish is not met already. */
static void copy_for_readers(struct aligning *a, weft_val v, uint32_t known, uint32_t most, const char *name)
{
    struct weft_graph *g = a->graph;
    if (!weft_permit(g, who, v))
        return;
    struct weft_layout layout = weft_own_layout(g, v);
    if (weft_layout_overlaps(g->dims, &layout, weft_type_of(g, v)))
        layout = weft_layout_row_major(weft_type_of(g, v)->rank);
    layout.dense = true;
    layout.strength = WEFT_REQUIRED;
    layout.align = most;
    const weft_val copy = copy_of(a, v, weft_intern_layout(g, &layout, weft_type_of(g, v)));
    uint32_t readers = 0;
    for (uint32_t slot = g->value[v.id].first_use, next; slot; slot = next) {
        const weft_node n = g->slot[slot - 1].node;
        const char *other;
        next = g->slot[slot - 1].next;
        if (weft_is(weft_result(g, n, 0), copy) || wanted_by(a, slot, &other) <= known)
            continue;
        weft_replace_operand(g, n, slot - 1 - g->node[n.id].first_operand, copy);
        readers++;
    }
    const char *const wanted =
        weft_arena_format(g->arena, "%s, which wants an address that is a multiple of %u", name, most);
    const struct weft_conversion_record *made = record(a, v, copy, &layout, wanted);
    weft_add_remark(g, who, v, "copied", "%.3f us%s: %s, and %u is known; %u operand%s read the copy",
                    (double)made->ps * 1e-6, made->once ? " once" : "", wanted,
                    known ? known : weft_dtype_bits(weft_type_of(g, v)->dtype) / 8, readers, readers == 1 ? "" : "s");
}

/* Nothing may compute it inside of another value from now on. */
static void hold_in_place(struct aligning *a, weft_val root, uint32_t align)
{
    struct weft_graph *g = a->graph;
    struct weft_layout layout = weft_own_layout(g, root);
    if (g->value[root.id].is_param || layout.align || !weft_permit(g, who, root))
        return;
    layout.align = align;
    weft_set_value_layout(g, root, &layout);
    a->changed = true;
}

/* Is it a relayout into memory of its own, which may as well begin at a larger page or line? */
static bool is_own_copy(struct aligning *a, weft_val v, uint32_t known)
{
    const struct weft_graph *g = a->graph;
    return weft_def_opcode(g, v) == WEFT_OP_relayout && known == OWN_ALIGN && !weft_layout_of(g, v).align;
}

static void look_at(struct aligning *a, weft_val v)
{
    struct weft_graph *g = a->graph;
    struct weft_element element;
    const char *name = "", *first = "";
    uint32_t most = 0;
    if (weft_dtype_bits(weft_type_of(g, v)->dtype) < 8 || (weft_is_const(g, v) && weft_const_splat(g, v, &element)))
        return;
    for (uint32_t slot = g->value[v.id].first_use; slot; slot = g->slot[slot - 1].next) {
        const uint32_t wanted = wanted_by(a, slot, &name);
        first = wanted > most ? name : first;
        most = wanted > most ? wanted : most;
    }
    if (most <= weft_dtype_bits(weft_type_of(g, v)->dtype) / 8)
        return;
    weft_val root;
    const uint32_t known = known_alignment(a, v, &root);
    if (known >= most)
        hold_in_place(a, root, OWN_ALIGN);
    else if (is_own_copy(a, v, known))
        hold_in_place(a, v, most);
    else
        copy_for_readers(a, v, known, most, first);
}

/* Nothing copies a result behind a kernel of the target: it lies right, or that is said. */
static void look_at_results(struct aligning *a, weft_node n)
{
    struct weft_graph *g = a->graph;
    struct weft_caller_walk walk;
    for (uint32_t i = 0; i < g->node[n.id].results; i++) {
        const weft_val v = weft_result(g, n, i);
        const uint32_t own = weft_dtype_bits(weft_type_of(g, v)->dtype) / 8;
        if (!own || !weft_caller_walk_of(a->target, g, n, g->node[n.id].operands + i, &walk) || walk.align <= own)
            continue;
        weft_val root;
        const uint32_t known = known_alignment(a, v, &root);
        if (known >= walk.align)
            hold_in_place(a, root, OWN_ALIGN);
        else
            weft_add_remark(g, who, v, "refused", "%s wants its result at an address that is a multiple of %u, and %u "
                            "is known", walk.name, walk.align, known ? known : own);
    }
}

bool weft_pass_align_buffers(struct weft_graph *graph, const struct weft_target *target)
{
    struct aligning a = {.graph = graph, .target = target, .values = graph->values};
    a.handed_out = weft_new(&graph->root->scratch, uint8_t, a.values);
    for (uint32_t i = 1; i < a.values; i++)
        if (graph->value[i].first_use)
            look_at(&a, (weft_val){.id = i});
    weft_foreach_node(graph, n)
        if (target->kernel && weft_opcode_of(graph, n) != WEFT_OP_custom)
            look_at_results(&a, n);
    return a.changed;
}
