/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c: the arrays behind ids: values, nodes, operand slots, layouts, attributes, remarks; copies of whole
 * graphs.
 *
 * Arrays double in the root's arena and leave their old selves behind, so a struct pointer dies with the next addition,
 * an id never does. */
#include "ir/parse.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- life --------------------------------------------------------------------------------------------------------- */

static int64_t limit_from_environment(void)
{
    const char *limit = getenv("WEFT_STOP_AFTER");
    char *end;
    const long long n = limit ? strtoll(limit, &end, 10) : -1;
    return limit && *limit && *end == '\0' && n >= 0 ? n : -1;
}

static void open_arrays(struct weft_graph *g)
{
    static _Atomic uint32_t last;
    while (g->number == 0)
        g->number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    const uint32_t room = g->parent ? 4 : 16; /* bodies are many and small */
    g->value = weft_grow(g->arena, NULL, &g->value_capacity, room, sizeof *g->value);
    g->node = weft_grow(g->arena, NULL, &g->node_capacity, room, sizeof *g->node);
    g->group = weft_grow(g->arena, NULL, &g->group_capacity, 4, sizeof *g->group);
    g->values = g->nodes = g->groups = 1; /* id 0 is none */
}

static void fill_graph(struct weft_graph *g, const char *name)
{
    g->name = weft_arena_copy(g->arena, name, strlen(name));
    g->dims = weft_dims_new(g->arena);
    g->layout = weft_grow(g->arena, NULL, &g->layout_capacity, 8, sizeof *g->layout);
    g->layouts = 1;
    g->rewrite_limit = limit_from_environment();
    open_arrays(g);
}

/* Until it is returned nobody but this function can free it, so running out of memory stops here for that. */
static void fill_guarded(struct weft_graph *g, const char *name)
{
    struct weft_context *context = g->context;
    jmp_buf *const outer = context->on_nomem;
    jmp_buf here;
    if (setjmp(here)) {
        context->on_nomem = outer;
        weft_graph_free(g);
        weft_out_of_memory(context);
    }
    context->on_nomem = &here;
    fill_graph(g, name);
    context->on_nomem = outer;
}

struct weft_graph *weft_graph_new(struct weft_context *context, const char *name)
{
    struct weft_arena arena;
    weft_arena_open(&arena, context);
    struct weft_graph *g = weft_new(&arena, struct weft_graph, 1);
    weft_context_hold(context);
    g->context = context;
    g->own_arena = arena; /* from here on the graph owns the memory it lives in */
    g->arena = &g->own_arena;
    weft_arena_open(&g->scratch, context);
    g->root = g;
    fill_guarded(g, name);
    return g;
}

struct weft_graph *weft_graph_new_body(struct weft_graph *parent, const char *name)
{
    if (parent->depth >= WEFT_MAX_DEPTH) {
        weft_error(parent->context, WEFT_ERR_INVALID, &(struct weft_place){.where = name},
                   "bodies are nested more than %d deep", WEFT_MAX_DEPTH);
        return NULL;
    }
    struct weft_graph *g = weft_new(parent->arena, struct weft_graph, 1);
    g->context = parent->context;
    g->arena = parent->arena;
    g->root = parent->root;
    g->parent = parent;
    g->depth = parent->depth + 1;
    g->dims = parent->dims;
    g->name = weft_arena_copy(g->arena, name, strlen(name));
    g->file = parent->file;
    open_arrays(g);
    parent->body =
        weft_grow(g->arena, parent->body, &parent->body_capacity, parent->bodies + 1, sizeof(struct weft_graph *));
    g->index = parent->bodies;
    parent->body[parent->bodies++] = g;
    return g;
}

void weft_graph_free(struct weft_graph *graph)
{
    if (!graph)
        return;
    weft_assert(graph->root == graph);
    for (uint32_t i = 0; i < graph->blobs; i++)
        weft_blob_drop(graph->blob[i]);
    weft_arena_close(&graph->scratch);
    struct weft_arena arena = graph->own_arena;
    weft_arena_close(&arena);
    weft_context_drop(arena.context);
}

/* Room for one more blob. Until the graph lists it nobody else would drop it, so running out of memory stops here. */
static void reserve_blob(struct weft_graph *root, struct weft_blob *blob)
{
    struct weft_context *context = root->context;
    jmp_buf *const outer = context->on_nomem;
    jmp_buf here;
    if (setjmp(here)) {
        context->on_nomem = outer;
        weft_blob_drop(blob);
        weft_out_of_memory(context);
    }
    context->on_nomem = &here;
    root->blob = weft_grow(root->arena, root->blob, &root->blob_capacity, root->blobs + 1, sizeof(struct weft_blob *));
    context->on_nomem = outer;
}

void weft_graph_hold(struct weft_graph *graph, struct weft_blob *blob)
{
    struct weft_graph *root = graph->root;
    for (uint32_t i = root->blobs; i > 0 && i + 8 > root->blobs; i--)
        if (root->blob[i - 1] == blob) { /* one file serves many tensors, one after the other */
            weft_blob_drop(blob);
            return;
        }
    if (root->blobs == root->blob_capacity)
        reserve_blob(root, blob);
    root->blob[root->blobs++] = blob;
}

/* --- parameters, returns, groups ---------------------------------------------------------------------------------- */

weft_val weft_add_param(struct weft_graph *graph, const char *name, const struct weft_type *type)
{
    const struct weft_type own = *type; /* perhaps that of a value, which moves now */
    graph->value =
        weft_grow(graph->arena, graph->value, &graph->value_capacity, graph->values + 1, sizeof *graph->value);
    graph->param =
        weft_grow(graph->arena, graph->param, &graph->param_capacity, graph->params + 1, sizeof *graph->param);
    const weft_val v = {.id = graph->values++};
    graph->value[v.id] = (struct weft_value){.type = own, .is_param = true, .result = graph->params};
    graph->param[graph->params++] = v;
    if (name)
        weft_set_name(graph, v, name, strlen(name));
    return v;
}

void weft_add_return(struct weft_graph *graph, weft_val value, weft_val mut)
{
    graph->ret = weft_grow(graph->arena, graph->ret, &graph->return_capacity, graph->returns + 1, sizeof *graph->ret);
    value.graph = mut.graph = 0;
    struct weft_value *v = &graph->value[value.id];
    graph->ret[graph->returns] = (struct weft_return_slot){.value = value, .mut = mut, .next = v->first_return};
    if (v->first_return)
        graph->ret[v->first_return - 1].previous = graph->returns + 1;
    v->first_return = ++graph->returns;
    v->returns++;
    graph->returned = true;
}

void weft_clear_returns(struct weft_graph *graph)
{
    for (uint32_t i = 0; i < graph->returns; i++) {
        graph->value[graph->ret[i].value.id].returns--;
        graph->value[graph->ret[i].value.id].first_return = 0;
    }
    graph->returns = 0;
    graph->returned = false;
    graph->end = NULL;
}

uint32_t weft_add_group(struct weft_graph *graph, const char *name)
{
    graph->group =
        weft_grow(graph->arena, graph->group, &graph->group_capacity, graph->groups + 1, sizeof *graph->group);
    graph->group[graph->groups] = (struct weft_group){.name = weft_arena_copy(graph->arena, name, strlen(name))};
    return graph->groups++;
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

static uint32_t hash_layout(const struct weft_layout *layout)
{
    uint64_t hash = layout->kind * 31u + layout->strength * 7u + layout->align + (uint64_t)layout->offset.bits;
    for (int i = 0; i < layout->axes; i++) {
        const struct weft_axis *axis = &layout->axis[i];
        hash = (hash ^ axis->axis) * 0x9E3779B97F4A7C15u + (uint64_t)axis->div * 3 + (uint64_t)axis->mod;
        if (!layout->dense)
            hash = (hash ^ (uint64_t)layout->stride[i].bits) * 0x9E3779B97F4A7C15u;
    }
    return (uint32_t)(hash >> 32 ^ hash);
}

static bool same_in_all(const struct weft_layout *a, const struct weft_layout *b)
{
    return a->strength == b->strength && a->align == b->align && a->axes == b->axes && weft_layout_same(a, b);
}

static void rehash_layouts(struct weft_graph *root)
{
    const uint32_t size = root->layout_hash_size ? root->layout_hash_size * 2 : 32;
    root->layout_hash = weft_new(root->arena, uint32_t, size);
    root->layout_hash_size = size; /* only now: memory may be refused */
    for (uint32_t i = 1; i < root->layouts; i++) {
        uint32_t slot = hash_layout(&root->layout[i]) & (root->layout_hash_size - 1);
        while (root->layout_hash[slot])
            slot = (slot + 1) & (root->layout_hash_size - 1);
        root->layout_hash[slot] = i;
    }
}

uint32_t weft_intern_layout(struct weft_graph *graph, const struct weft_layout *layout, const struct weft_type *type)
{
    struct weft_layout canonical = *layout;
    weft_layout_canonical(graph->dims, &canonical, type);
    return weft_intern_canonical(graph, &canonical);
}

uint32_t weft_intern_canonical(struct weft_graph *graph, const struct weft_layout *canonical)
{
    struct weft_graph *root = graph->root;
    if (canonical->strength == WEFT_REQUIRED && canonical->align == 0 && weft_layout_is_row_major(canonical))
        return 0;
    if (root->layouts * 2 >= root->layout_hash_size)
        rehash_layouts(root);
    uint32_t slot = hash_layout(canonical) & (root->layout_hash_size - 1);
    for (; root->layout_hash[slot]; slot = (slot + 1) & (root->layout_hash_size - 1))
        if (same_in_all(&root->layout[root->layout_hash[slot]], canonical))
            return root->layout_hash[slot];
    root->layout =
        weft_grow(root->arena, root->layout, &root->layout_capacity, root->layouts + 1, sizeof *root->layout);
    root->layout[root->layouts] = *canonical;
    root->layout_hash[slot] = root->layouts;
    return root->layouts++;
}

void weft_set_value_layout(struct weft_graph *graph, weft_val value, const struct weft_layout *layout)
{
    struct weft_value *v = &graph->value[value.id];
    v->layout = weft_intern_layout(graph, layout, &v->type);
    v->stated = false;
}

void weft_state_layout(struct weft_graph *graph, weft_val value, const struct weft_layout *layout)
{
    weft_set_value_layout(graph, value, layout);
    graph->value[value.id].stated = graph->value[value.id].layout == 0 && !graph->value[value.id].is_param;
}

void weft_take_layout(struct weft_graph *graph, weft_val to, weft_val from)
{
    graph->value[to.id].layout = graph->value[from.id].layout;
    graph->value[to.id].stated = graph->value[from.id].stated && !graph->value[to.id].is_param;
}

static bool splits_axis(const struct weft_layout *layout)
{
    bool any = false;
    for (int k = 0; k < layout->axes && !any; k++)
        any = layout->axis[k].mod;
    return any;
}

bool weft_is_split(const struct weft_graph *graph, weft_val value)
{
    const struct weft_value *const v = &graph->value[value.id];
    return v->layout && splits_axis(&graph->root->layout[v->layout]);
}

bool weft_has_blocks(const struct weft_graph *graph)
{
    bool any = false;
    for (uint32_t i = 1; i < graph->root->layouts && !any; i++) /* of most graphs none */
        any = splits_axis(&graph->root->layout[i]);
    if (!any)
        return false;
    weft_foreach_node(graph, n)
        for (uint32_t i = 0; i < graph->node[n.id].results; i++)
            if (splits_axis(&graph->root->layout[graph->value[weft_result(graph, n, i).id].layout]))
                return true;
    for (uint32_t i = 0; i < graph->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        if (weft_has_blocks(graph->body[i]))
            return true;
    return false;
}

bool weft_is_required(const struct weft_graph *graph, weft_val value)
{
    const struct weft_value *v = &graph->value[value.id];
    const struct weft_layout *const layout = weft_layout_peek(graph, v->layout, v->type.rank);
    return (v->layout || v->stated) && layout->kind == WEFT_STORED && layout->strength == WEFT_REQUIRED;
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

const struct weft_attr *weft_attr_find(const struct weft_graph *graph, weft_node node, int key)
{
    const struct weft_node_info *info = &graph->node[node.id];
    for (unsigned i = 0; i < info->attrs; i++)
        if (info->attr[i].key == key)
            return &info->attr[i];
    return NULL;
}

static const struct weft_attr_spec *spec_of(const struct weft_graph *graph, weft_node node, int key)
{
    const struct weft_attr_spec *spec = weft_attr_spec_find(graph->node[node.id].op, key);
    weft_assert(spec); /* asked for an attribute that the op does not have */
    return spec;
}

weft_dim weft_attr_dim(const struct weft_graph *graph, weft_node node, int key)
{
    const struct weft_attr *attr = weft_attr_find(graph, node, key);
    return attr ? attr->integer : weft_dim_of((int64_t)spec_of(graph, node, key)->fallback);
}

int64_t weft_attr_int(const struct weft_graph *graph, weft_node node, int key)
{
    const weft_dim value = weft_attr_dim(graph, node, key);
    weft_assert(weft_dim_is_constant(value));
    return weft_dim_value(value);
}

double weft_attr_real(const struct weft_graph *graph, weft_node node, int key)
{
    const struct weft_attr *attr = weft_attr_find(graph, node, key);
    return attr ? attr->real : spec_of(graph, node, key)->fallback;
}

const char *weft_attr_word(const struct weft_graph *graph, weft_node node, int key)
{
    const struct weft_attr *attr = weft_attr_find(graph, node, key);
    return attr ? attr->word : spec_of(graph, node, key)->word;
}

weft_dim weft_attr_at(const struct weft_graph *graph, weft_node node, int key, unsigned i)
{
    const struct weft_attr *attr = weft_attr_find(graph, node, key);
    if (attr && i < attr->count)
        return attr->integers[i];
    return weft_dim_of((int64_t)spec_of(graph, node, key)->fallback);
}

static bool same_numbers(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

bool weft_attr_equal(const struct weft_attr *a, const struct weft_attr *b)
{
    if (a->key != b->key || a->kind != b->kind || a->count != b->count)
        return false;
    switch ((enum weft_attr_kind)a->kind) {
    case WEFT_ATTR_INT: return weft_dim_same(a->integer, b->integer);
    case WEFT_ATTR_REAL: return same_numbers(a->real, b->real);
    case WEFT_ATTR_WORD: return strcmp(a->word, b->word) == 0;
    case WEFT_ATTR_DTYPE: return a->dtype == b->dtype;
    case WEFT_ATTR_GRAPH: return a->graph == b->graph;
    case WEFT_ATTR_INTS: return a->count == 0 || memcmp(a->integers, b->integers, a->count * sizeof *a->integers) == 0;
    case WEFT_ATTR_REALS: return a->count == 0 || memcmp(a->reals, b->reals, a->count * sizeof *a->reals) == 0;
    case WEFT_ATTR_VALUES: return weft_values_equal(a->values, b->values, a->count);
    }
    return false;
}

/* --- types -------------------------------------------------------------------------------------------------------- */

weft_dim weft_type_elements(struct weft_dims *dims, const struct weft_type *type)
{
    weft_dim n = weft_dim_of(1);
    for (int i = 0; i < type->rank; i++)
        n = weft_dim_mul(dims, n, type->extent[i]);
    return n;
}

bool weft_type_check_size(const struct weft_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++) {
        const int64_t extent = weft_dim_is_constant(type->extent[i]) ? weft_dim_value(type->extent[i]) : 1;
        if (extent > 0 && (__builtin_mul_overflow(count, extent, &count) || count > WEFT_MAX_ELEMENTS))
            return false;
    }
    return true;
}

bool weft_type_same(const struct weft_type *a, const struct weft_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!weft_dim_same(a->extent[i], b->extent[i]))
            return false;
    return true;
}

bool weft_type_is_constant(const struct weft_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (!weft_dim_is_constant(type->extent[i]))
            return false;
    return true;
}

void weft_type_print(struct weft_dims *dims, const struct weft_type *type, struct weft_text *text)
{
    const char *name = weft_dtype_name(type->dtype);
    weft_text_add(text, name ? name : "?");
    weft_text_add(text, "[");
    for (int i = 0; i < type->rank; i++) {
        if (i)
            weft_text_add(text, ",");
        weft_dim_print(dims, type->extent[i], text);
    }
    weft_text_add(text, "]");
}

/* --- analyses and remarks ----------------------------------------------------------------------------------------- */

void weft_require(struct weft_graph *graph, uint32_t analyses)
{
    if ((analyses & WEFT_ORDER) && !(graph->analyses & WEFT_ORDER)) {
        graph->position = weft_new(graph->arena, uint32_t, graph->node_capacity);
        uint32_t rank = 0;
        weft_foreach_node(graph, n)
            graph->position[n.id] = ++rank;
    }
    graph->analyses |= analyses;
}

static void add_remark(struct weft_graph *root, const char *who, const char *where, const char *verdict,
                       const char *format, va_list arguments)
{
    char reason[512];
    vsnprintf(reason, sizeof reason, format, arguments);
    root->remark =
        weft_grow(root->arena, root->remark, &root->remark_capacity, root->remarks + 1, sizeof *root->remark);
    root->remark[root->remarks++] = (struct weft_remark){
        .who = weft_arena_copy(root->arena, who, strlen(who)),
        .where = where,
        .verdict = weft_arena_copy(root->arena, verdict, strlen(verdict)),
        .reason = weft_arena_copy(root->arena, reason, strlen(reason)),
    };
}

void weft_add_remark(struct weft_graph *graph, const char *who, weft_val where, const char *verdict, const char *format,
                     ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_remark(graph->root, who, where.id ? weft_value_text(graph, where) : graph->name, verdict, format, arguments);
    va_end(arguments);
}

void weft_add_remark_at(struct weft_graph *graph, const char *who, const char *label, const char *verdict,
                        const char *format, ...)
{
    struct weft_text where = {.context = graph->context, .arena = graph->root->arena};
    weft_text_name(&where, '%', label);
    va_list arguments;
    va_start(arguments, format);
    add_remark(graph->root, who, where.data, verdict, format, arguments);
    va_end(arguments);
}

void weft_add_conversion(struct weft_graph *graph, const struct weft_conversion_record *record)
{
    graph->conversion = weft_grow(graph->arena, graph->conversion, &graph->conversion_capacity, graph->conversions + 1,
                                  sizeof *graph->conversion);
    graph->conversion[graph->conversions++] = *record;
}

size_t weft_remark_count(const struct weft_graph *graph) { return graph ? graph->root->remarks : 0; }

int weft_remark_get(const struct weft_graph *graph, size_t i, struct weft_remark *ret_remark)
{
    if (!graph || !ret_remark || i >= graph->root->remarks)
        return WEFT_ERR_ARGUMENT;
    return weft_give_facts(ret_remark, &graph->root->remark[i], sizeof *ret_remark);
}
