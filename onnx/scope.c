/* SPDX-License-Identifier: Apache-2.0 */
/* scope.c: names of an import, and what subgraphs read from outside.
 *
 * ONNX subgraphs see every name around them; weft's bodies stand alone. A name that a body's scope does not have is
 * looked up in its parents. Found there, a constant is made again in the body (its bytes are shared), a tensor of
 * integers or bools whose elements are known becomes a constant or `extents` in the body, so that shapes stay known
 * inside, and any other value becomes an operand of the node and a parameter of its bodies. Parameters are added while
 * a body is being read; the bodies of one node get the same ones, so whoever has been read first gets those of the
 * later ones at the end. */
#include "onnx/import.h"

#include <string.h>

static struct onnx_entry *find_own(const struct onnx_scope *scope, struct onnx_string name)
{
    const uint32_t i = weft_onnx_find_name(&scope->names, name);
    return i == ONNX_NO_NAME ? NULL : &scope->entry[i];
}

bool weft_onnx_is_initializer(const struct onnx_scope *scope, struct onnx_string name)
{
    const struct onnx_entry *entry = find_own(scope, name);
    return entry && entry->tensor;
}

bool weft_onnx_define(struct onnx_importer *importer, struct onnx_scope *scope, struct onnx_string name,
                      const struct onnx_tensor *tensor, weft_val value)
{
    if (weft_onnx_find_name(&scope->names, name) != ONNX_NO_NAME)
        return false;
    struct weft_arena *arena = importer->reader.arena;
    const uint32_t i = weft_onnx_add_name(arena, &scope->names, name);
    scope->entry = weft_grow(arena, scope->entry, &scope->entry_capacity, i + 1, sizeof *scope->entry);
    scope->entry[i] = (struct onnx_entry){.tensor = tensor, .value = value};
    return true;
}

/* --- captures ----------------------------------------------------------------------------------------------------- */

static weft_val copy_const(struct onnx_scope *scope, const struct weft_graph *outer, weft_val value)
{
    const struct weft_constant *constant = weft_node_of(outer, weft_def(outer, value))->constant;
    const struct weft_type type = *weft_type_of(outer, value);
    const weft_node node = weft_add_node(
        scope->graph, &(struct weft_node_spec){.op = WEFT_OP_const, .stated = &type, .constant = constant});
    return node.id ? weft_result(scope->graph, node, 0) : WEFT_NO_VALUE;
}

static weft_val copy_elements(struct onnx_scope *scope, const struct weft_graph *outer, weft_val value,
                              const weft_dim *element)
{
    const struct weft_type type = *weft_type_of(outer, value);
    const weft_dim count = weft_type_elements(outer->dims, &type);
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_value, (unsigned)weft_dim_value(count), element);
    const weft_node node = weft_add_node(
        scope->graph, &(struct weft_node_spec){.op = WEFT_OP_extents, .attr = &attr, .attrs = 1, .stated = &type});
    return node.id ? weft_result(scope->graph, node, 0) : WEFT_NO_VALUE;
}

/* A value of integers or bools that is known, or none. */
static weft_val copy_known(struct onnx_importer *importer, struct onnx_scope *scope, struct weft_graph *outer,
                           weft_val value)
{
    const bool is_int = weft_dtype_is_int(weft_type_of(outer, value)->dtype);
    if (!is_int && weft_type_of(outer, value)->dtype != WEFT_BOOL)
        return WEFT_NO_VALUE;
    const struct onnx_fold *fold = weft_onnx_fold(importer, outer, value);
    if (is_int && fold->element)
        return copy_elements(scope, outer, value, fold->element);
    const weft_val constant = weft_onnx_fold_constant(importer, outer, value);
    return constant.id ? copy_const(scope, outer, constant) : WEFT_NO_VALUE;
}

static void note_capture(struct onnx_importer *importer, struct onnx_captures *captures, struct onnx_string name,
                         weft_val outer)
{
    struct weft_arena *arena = importer->reader.arena;
    captures->name =
        weft_grow(arena, captures->name, &captures->name_capacity, captures->count + 1, sizeof *captures->name);
    captures->outer =
        weft_grow(arena, captures->outer, &captures->outer_capacity, captures->count + 1, sizeof *captures->outer);
    captures->name[captures->count] = name;
    captures->outer[captures->count++] = outer;
}

static weft_val add_parameter(struct onnx_importer *importer, struct onnx_scope *scope, const struct weft_graph *outer,
                              struct onnx_string name, weft_val value)
{
    const struct weft_type type = *weft_type_of(outer, value);
    return weft_add_param(scope->graph, weft_onnx_text(importer, name), &type);
}

static weft_val capture(struct onnx_importer *importer, struct onnx_scope *scope, struct onnx_string name,
                        weft_val value)
{
    struct weft_graph *outer = scope->parent->graph;
    if (weft_is_const(outer, value))
        return copy_const(scope, outer, value);
    const weft_val known = copy_known(importer, scope, outer, value);
    if (known.id)
        return known;
    note_capture(importer, scope->captures, name, value);
    return add_parameter(importer, scope, outer, name, value);
}

void weft_onnx_add_captured(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_scope *outer,
                            uint32_t first)
{
    const struct onnx_captures *captures = scope->captures;
    for (uint32_t i = first; i < captures->count; i++) {
        const weft_val param = add_parameter(importer, scope, outer->graph, captures->name[i], captures->outer[i]);
        weft_onnx_define(importer, scope, captures->name[i], NULL, param);
    }
}

/* --- looking up --------------------------------------------------------------------------------------------------- */

/* Makes the constant of an initializer at its first use. */
static void make_constant(struct onnx_importer *importer, struct onnx_scope *scope, struct onnx_string source)
{
    struct onnx_entry *entry = find_own(scope, source);
    const struct onnx_tensor *tensor = entry->tensor;
    const char *name = weft_onnx_text(importer, source);
    entry->tensor = NULL;
    entry->value = weft_onnx_constant(importer, scope->graph, tensor, name);
    if (entry->value.id && source.length && !importer->unnamed)
        weft_set_name(scope->graph, entry->value, name, strlen(name));
}

/* The nearest scope that has the name. */
static struct onnx_scope *owner_of(struct onnx_scope *scope, struct onnx_string name)
{
    while (scope && !find_own(scope, name))
        scope = scope->parent;
    return scope;
}

struct onnx_entry *weft_onnx_lookup(struct onnx_importer *importer, struct onnx_scope *scope, struct onnx_string name)
{
    struct onnx_scope *owner = owner_of(scope, name);
    if (!owner)
        return NULL;
    const struct onnx_tensor *tensor = find_own(owner, name)->tensor;
    if (tensor && owner->graph != scope->graph) { /* each graph makes its own, from the same bytes */
        weft_onnx_define(importer, scope, name, tensor, WEFT_NO_VALUE);
        owner = scope;
    }
    if (tensor)
        make_constant(importer, owner, name);
    /* Inwards again, a graph at a time: each body on the way captures from the one around it. */
    while (owner->graph != scope->graph) {
        struct onnx_scope *inner = scope;
        while (inner->parent != owner)
            inner = inner->parent;
        const struct onnx_entry outside = *find_own(owner, name);
        const bool crosses = outside.value.id && inner->graph != owner->graph;
        weft_onnx_define(importer, inner, name, NULL,
                         crosses ? capture(importer, inner, name, outside.value) : outside.value);
        find_own(inner, name)->absent = outside.absent;
        owner = inner;
    }
    return find_own(owner, name);
}
