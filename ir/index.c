/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: asks the rule of a node's op for its space and maps; what rules are written with; and maps as text. */
#include "ir/index.h"
#include "ir/index_rules.h"

#include <stddef.h>
#include <string.h>

/* --- what rules are written with ---------------------------------------------------------------------------------- */

int weft_space_add(struct weft_indexing *r, weft_dim extent, enum weft_axis_role role)
{
    weft_assert(r->space.axes < WEFT_SPACE_AXES);
    r->space.axis[r->space.axes] = (struct weft_space_axis){.extent = extent, .role = (uint8_t)role, .beside = -1};
    return r->space.axes++;
}

int weft_space_add_beside(struct weft_indexing *r, weft_dim extent, int beside)
{
    const int axis = weft_space_add(r, extent, WEFT_AXIS_REDUCED);
    r->space.axis[axis].beside = (int8_t)beside;
    return axis;
}

void weft_space_add_result(struct weft_indexing *r)
{
    const struct weft_type *type = weft_index_result_type(r);
    for (int i = 0; i < type->rank; i++)
        weft_space_add(r, type->extent[i], WEFT_AXIS_PARALLEL);
    if (weft_index_is_result(r))
        weft_index_as_result(r);
}

int weft_space_add_factor(struct weft_indexing *r, weft_dim extent, enum weft_axis_role role)
{
    return weft_dim_is(extent, 1) ? -1 : weft_space_add(r, extent, role);
}

bool weft_index_is_result(const struct weft_indexing *r) { return r->pin && r->pin->result; }

bool weft_index_is_operand(const struct weft_indexing *r, unsigned i)
{
    return r->pin && !r->pin->result && r->pin->index == i;
}

const struct weft_type *weft_index_type(const struct weft_indexing *r, unsigned operand)
{
    return weft_type_of(r->graph, weft_operand(r->graph, r->node, operand));
}

const struct weft_type *weft_index_result_type(const struct weft_indexing *r)
{
    return weft_type_of(r->graph, weft_result(r->graph, r->node, 0));
}

void weft_index_term(struct weft_indexing *r, int at, int axis, weft_dim step)
{
    struct weft_index *index = &r->map.at[at];
    if (axis < 0)
        return;
    weft_assert(index->terms < WEFT_INDEX_TERMS);
    unsigned i = index->terms++;
    for (; i > 0 && index->term[i - 1].axis > axis; i--)
        index->term[i] = index->term[i - 1];
    index->term[i] = (struct weft_index_term){.step = step, .axis = (int8_t)axis};
}

void weft_index_as_result(struct weft_indexing *r)
{
    for (int i = 0; i < r->map.rank; i++)
        weft_index_is(r, i, i);
}

void weft_index_offset(struct weft_indexing *r, int at, weft_dim base)
{
    r->map.at[at].base = weft_dim_add(r->graph->dims, r->map.at[at].base, base);
}

int weft_index_attr(const struct weft_indexing *r, int key, int i)
{
    return (int)weft_dim_value(weft_attr_at(r->graph, r->node, key, (unsigned)i));
}

weft_dim weft_index_attr_dim(const struct weft_indexing *r, int key, int i)
{
    return weft_attr_at(r->graph, r->node, key, (unsigned)i);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

/* What is not added or set stays as it was: the whole is large, and this is asked often. */
static bool ask(struct weft_indexing *r, const struct weft_graph *g, weft_node node, const struct weft_pin *pin,
                weft_dim behind)
{
    r->graph = g;
    r->node = node;
    r->pin = pin;
    r->behind = behind;
    r->space.axes = 0;
    r->map.rank = pin ? weft_type_of(g, weft_pin_value(g, *pin))->rank : 0;
    r->lost = false;
    for (int i = 0; i < r->map.rank; i++)
        memset(&r->map.at[i], 0, offsetof(struct weft_index, term));
    weft_op_of(g, node)->index(r);
    return !r->lost;
}

bool weft_index_space(const struct weft_graph *g, weft_node node, struct weft_space *ret)
{
    struct weft_indexing r;
    const bool known = ask(&r, g, node, NULL, weft_dim_of(0));
    ret->axes = r.space.axes;
    memcpy(ret->axis, r.space.axis, (size_t)r.space.axes * sizeof *ret->axis);
    return known;
}

bool weft_index_map_behind(const struct weft_graph *g, struct weft_pin pin, weft_dim behind,
                           struct weft_index_map *ret)
{
    struct weft_indexing r;
    const bool known = ask(&r, g, pin.node, &pin, behind);
    ret->rank = r.map.rank;
    memcpy(ret->at, r.map.at, (size_t)r.map.rank * sizeof *ret->at);
    return known;
}

weft_dim weft_index_behind(const struct weft_graph *g, struct weft_pin pin, weft_dim behind)
{
    if (weft_opcode_of(g, pin.node) != WEFT_OP_concat || pin.result)
        return behind;
    const struct weft_type *type = weft_type_of(g, weft_pin_value(g, pin));
    return weft_dim_add(g->dims, behind, type->extent[weft_attr_int(g, pin.node, WEFT_ATTR_axis)]);
}

bool weft_index_map(const struct weft_graph *g, struct weft_pin pin, struct weft_index_map *ret)
{
    weft_dim behind = weft_dim_of(0);
    if (weft_opcode_of(g, pin.node) == WEFT_OP_concat && !pin.result)
        for (uint32_t i = 0; i < pin.index; i++)
            behind = weft_index_behind(g, (struct weft_pin){pin.node, .index = i}, behind);
    return weft_index_map_behind(g, pin, behind, ret);
}

int weft_index_axis(const struct weft_index *index)
{
    const bool plain = index->terms == 1 && weft_dim_is(index->term[0].step, 1) && weft_dim_is(index->base, 0);
    return plain && !index->is_near && !index->data && !index->border ? index->term[0].axis : -1;
}

/* The axis of the result that each axis of the space, or the one beside it, stands in; or -1. */
static void find_places(const struct weft_space *space, const struct weft_index_map *result, int8_t *ret)
{
    for (int a = 0; a < space->axes; a++)
        ret[a] = -1;
    for (int i = 0; i < result->rank; i++) {
        for (unsigned t = 0; t < result->at[i].terms; t++)
            ret[result->at[i].term[t].axis] = (int8_t)i;
        if (result->at[i].kept)
            ret[result->at[i].kept - 1] = (int8_t)i;
    }
    for (int a = 0; a < space->axes; a++)
        if (ret[a] < 0 && space->axis[a].beside >= 0)
            ret[a] = ret[space->axis[a].beside];
}

static uint32_t axes_of(const struct weft_index *index)
{
    uint32_t axes = 0;
    for (unsigned t = 0; t < index->terms; t++)
        axes |= 1u << index->term[t].axis;
    return axes;
}

/* Places of these axes of the space: the first of them, and those that follow it. */
static struct weft_follow follow(uint32_t axes, const int8_t *place)
{
    struct weft_follow ret = {.axis = -1};
    for (int a = 0; axes >> a; a++)
        if (axes >> a & 1 && place[a] >= 0) {
            ret.axis = ret.axes ? ret.axis : place[a];
            ret.axes += place[a] == ret.axis + ret.axes;
        }
    return ret;
}

/* Axes of the space that the operand which tells an index stands at, but those that `others` stand at. */
static uint32_t told_axes(const struct weft_graph *g, struct weft_pin pin, const struct weft_index_map *others,
                          unsigned data)
{
    struct weft_index_map map;
    uint32_t axes = 0;
    if (!weft_index_map_behind(g, (struct weft_pin){pin.node, .index = data - 1}, weft_dim_of(0), &map))
        return 0;
    for (int i = 0; i < map.rank; i++)
        axes |= axes_of(&map.at[i]);
    for (int i = 0; i < others->rank; i++)
        axes &= ~axes_of(&others->at[i]);
    return axes;
}

bool weft_index_follow(const struct weft_graph *g, struct weft_pin pin, struct weft_follow ret[WEFT_MAX_RANK])
{
    const struct weft_pin result = {.node = pin.node, .result = true};
    struct weft_indexing r;
    int8_t place[WEFT_SPACE_AXES];
    if (!ask(&r, g, pin.node, &result, weft_dim_of(0)))
        return false;
    find_places(&r.space, &r.map, place);
    if (!ask(&r, g, pin.node, &pin, weft_dim_of(0)))
        return false;
    const struct weft_index_map *map = &r.map;
    for (int i = 0; i < map->rank; i++) {
        const struct weft_index *index = &map->at[i];
        const bool is_told = index->data && !index->terms;
        ret[i] = pin.result ? (struct weft_follow){(int8_t)i, 1}
                            : follow(is_told ? told_axes(g, pin, map, index->data) : axes_of(index), place);
        ret[i].axes = is_told || ret[i].axis < 0 ? ret[i].axes : 1;
    }
    return true;
}

int64_t weft_index_at(const struct weft_dims *dims, const struct weft_index *index, const int64_t *symbols,
                      const int64_t *point)
{
    int64_t at = weft_dim_evaluate(dims, index->base, symbols);
    for (unsigned t = 0; t < index->terms; t++)
        at += weft_dim_evaluate(dims, index->term[t].step, symbols) * point[index->term[t].axis];
    return index->over ? at / index->over - (at % index->over < 0) : at;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void print_term(const struct weft_dims *dims, const struct weft_index_term *term, bool first,
                       struct weft_text *text)
{
    const bool minus = weft_dim_is_constant(term->step) && weft_dim_value(term->step) < 0;
    const int64_t factor = weft_dim_is_constant(term->step) ? weft_dim_value(term->step) : 0;
    weft_text_add(text, first ? (minus ? "-" : "") : minus ? " - " : " + ");
    if (factor == 0) {
        weft_text_add(text, "(");
        weft_dim_print(dims, term->step, text);
        weft_text_add(text, ")*");
    } else if (factor != 1 && factor != -1) {
        weft_text_format(text, "%lld*", (long long)(minus ? -factor : factor));
    }
    weft_text_format(text, "a%d", term->axis);
}

static void print_base(const struct weft_dims *dims, const struct weft_index *index, bool first, struct weft_text *text)
{
    const bool minus = weft_dim_is_constant(index->base) && weft_dim_value(index->base) < 0;
    if (!first && weft_dim_is(index->base, 0))
        return;
    if (minus)
        weft_text_format(text, first ? "%lld" : " - %lld",
                         (long long)(first ? weft_dim_value(index->base) : -weft_dim_value(index->base)));
    else {
        weft_text_add(text, first ? "" : " + ");
        weft_dim_print(dims, index->base, text);
    }
}

static void print_index(const struct weft_dims *dims, const struct weft_index *index, struct weft_text *text)
{
    static const char *const border[] = {"", " ?", " ?edge", " ?reflect", " ?wrap"};
    bool first = true;
    if (index->is_near)
        weft_text_add(text, "~");
    if (index->data) {
        weft_text_format(text, "@%d", index->data - 1);
        first = false;
    }
    for (unsigned t = 0; t < index->terms; t++) {
        print_term(dims, &index->term[t], first, text);
        first = false;
    }
    print_base(dims, index, first, text);
    weft_text_add(text, border[index->border]);
}

void weft_index_print_map(const struct weft_dims *dims, const struct weft_index_map *map, struct weft_text *text)
{
    weft_text_add(text, "[");
    for (int i = 0; i < map->rank; i++) {
        weft_text_add(text, i ? ", " : "");
        print_index(dims, &map->at[i], text);
    }
    weft_text_add(text, "]");
}

void weft_index_print_space(const struct weft_dims *dims, const struct weft_space *space, struct weft_text *text)
{
    static const char *const role[] = {"", "scanned ", "reduced "};
    for (int i = 0; i < space->axes; i++) {
        weft_text_format(text, "%s%sa%d in ", i ? ", " : "", role[space->axis[i].role], i);
        weft_dim_print(dims, space->axis[i].extent, text);
        if (space->axis[i].beside >= 0)
            weft_text_format(text, " beside a%d", space->axis[i].beside);
    }
}
