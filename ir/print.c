/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: graph to text; the language is FORMAT.md's.
 *
 * One graph has one text: attributes stand in the order of their op's row, unnamed values are numbered in order of
 * definition, a body is printed before the first line that uses it. So texts can be compared as texts, and what was
 * printed parses back to what prints the same.
 *
 * Numbers of unnamed values live in a side array that the printer makes. They pass over numbers that serve as names. */
#include "ir/parse.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINE_LIMIT 64

struct printer {
    const struct weft_graph *graph;
    const struct weft_print_options *options;
    struct weft_text *text;
    uint32_t *number;        /* by value id, of unnamed values */
    int depth;
    bool *printed;           /* by body */
};

/* --- names -------------------------------------------------------------------------------------------------------- */

/* The next number from `next` on that is no name. */
static uint32_t free_number(const struct weft_graph *graph, uint32_t next)
{
    char digits[16];
    for (;; next++) {
        const int length = snprintf(digits, sizeof digits, "%" PRIu32, next);
        if (!weft_value_find(graph, digits, (size_t)length).id)
            return next;
    }
}

/* Numbers the unnamed values: into number[] by id, or only up to `until`, whose number is returned. */
static uint32_t number_values(const struct weft_graph *graph, uint32_t *number, weft_val until)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < graph->params; i++) {
        const weft_val value = graph->param[i];
        if (graph->value[value.id].name)
            continue;
        next = free_number(graph, next);
        if (weft_is(value, until))
            return next;
        if (number)
            number[value.id] = next;
        next++;
    }
    weft_foreach_node(graph, n)
        for (unsigned i = 0; i < weft_node_of(graph, n)->results; i++) {
            const weft_val value = weft_result(graph, n, i);
            if (graph->value[value.id].name)
                continue;
            next = free_number(graph, next);
            if (weft_is(value, until))
                return next;
            if (number)
                number[value.id] = next;
            next++;
        }
    return next;
}

static void print_number(struct weft_text *text, uint32_t number)
{
    weft_text_add(text, "%");
    weft_text_integer(text, number);
}

const char *weft_value_text(const struct weft_graph *graph, weft_val value)
{
    struct weft_text text = {.context = graph->context, .arena = graph->arena};
    if (!value.id)
        return "no value";
    if (graph->value[value.id].name)
        weft_text_name(&text, '%', graph->value[value.id].name);
    else if (graph->root->fixed_labels)
        weft_text_format(&text, "%%_%" PRIu32, value.id);
    else
        print_number(&text, number_values(graph, NULL, value));
    return text.data;
}

const char **weft_value_labels(const struct weft_graph *graph, struct weft_arena *arena)
{
    const bool fixed = graph->root->fixed_labels;
    uint32_t *number = weft_new(arena, uint32_t, graph->values);
    const char **label = weft_new(arena, const char *, graph->values);
    if (!fixed)
        number_values(graph, number, WEFT_NO_VALUE);
    for (uint32_t i = 1; i < graph->values; i++) {
        const char *name = graph->value[i].name;
        label[i] = name ? name : weft_arena_format(arena, "%s%" PRIu32, fixed ? "_" : "", fixed ? i : number[i]);
    }
    return label;
}

const char **weft_value_texts(const struct weft_graph *graph, struct weft_arena *arena)
{
    const char **text = weft_value_labels(graph, arena);
    for (uint32_t i = 1; i < graph->values; i++) {
        struct weft_text quoted = {.context = graph->context, .arena = arena};
        weft_text_name(&quoted, '%', text[i]);
        text[i] = quoted.data;
    }
    return text;
}

static void print_value(struct printer *p, weft_val value)
{
    const char *name = p->graph->value[value.id].name;
    if (name)
        weft_text_name(p->text, '%', name);
    else
        print_number(p->text, p->number[value.id]);
}

/* f32[2,3]{1 0} */
static void print_type(struct printer *p, weft_val value)
{
    weft_type_print(p->graph->dims, weft_type_of(p->graph, value), p->text);
    const struct weft_value *info = &p->graph->value[value.id];
    if (info->layout == 0 && (!info->stated || info->returns)) /* of a result, row-major is what is said by nothing */
        return;
    const struct weft_layout layout = weft_layout_of(p->graph, value);
    weft_layout_print(p->graph->dims, &layout, p->text);
}

static void print_indent(struct printer *p, int more)
{
    for (int i = 0; i < p->depth + more; i++)
        weft_text_add(p->text, "  ");
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static void print_dim(struct printer *p, weft_dim dim)
{
    if (weft_dim_is_constant(dim)) {
        weft_text_integer(p->text, weft_dim_value(dim));
        return;
    }
    uint32_t symbol;
    const bool plain = weft_dim_is_symbol(p->graph->dims, dim, &symbol);
    weft_text_add(p->text, plain ? "" : "(");
    weft_dim_print(p->graph->dims, dim, p->text);
    weft_text_add(p->text, plain ? "" : ")");
}

static void print_attr(struct printer *p, const struct weft_attr *attr)
{
    weft_text_add(p->text, " ");
    weft_text_add(p->text, weft_attr_names[attr->key]);
    weft_text_add(p->text, "=");
    switch ((enum weft_attr_kind)attr->kind) {
    case WEFT_ATTR_INT:
        print_dim(p, attr->integer);
        break;
    case WEFT_ATTR_INTS:
        for (uint32_t i = 0; i < attr->count; i++) {
            weft_text_add(p->text, i ? " " : "[");
            print_dim(p, attr->integers[i]);
        }
        weft_text_add(p->text, attr->count ? "]" : "[]");
        break;
    case WEFT_ATTR_REAL:
        weft_text_real(p->text, WEFT_F64, attr->real);
        break;
    case WEFT_ATTR_REALS:
        for (uint32_t i = 0; i < attr->count; i++) {
            weft_text_add(p->text, i ? " " : "[");
            weft_text_real(p->text, WEFT_F64, attr->reals[i]);
        }
        weft_text_add(p->text, attr->count ? "]" : "[]");
        break;
    case WEFT_ATTR_WORD:
        weft_text_add(p->text, attr->word);
        break;
    case WEFT_ATTR_DTYPE:
        weft_text_add(p->text, weft_dtype_name(attr->dtype));
        break;
    case WEFT_ATTR_GRAPH:
        weft_text_name(p->text, '@', attr->graph->name);
        break;
    case WEFT_ATTR_VALUES:
        weft_values_print(attr->values, attr->count, p->text);
        break;
    }
}

static void print_plan(struct printer *p, const struct weft_plan_note *plan)
{
    if (!plan)
        return;
    weft_text_add(p->text, " !");
    if (plan->kernel)
        weft_text_format(p->text, " %s", plan->kernel);
    for (uint32_t i = 0; i < plan->count; i++)
        weft_text_format(p->text, " %s=%s", plan->key[i], plan->value[i]);
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

/* file="…": relative to the folder that the graph came from, as the parser reads it, or the whole path. */
static void print_file(struct printer *p, const char *path, uint64_t offset)
{
    const char *source = p->graph->root->file;
    const size_t folder = weft_folder_length(source);
    char absolute[PATH_MAX];
    if (p->options->absolute_files && realpath(path, absolute))
        path = absolute;
    else if (folder > 0 && strncmp(path, source, folder) == 0)
        path += folder;
    weft_text_add(p->text, " file=");
    weft_text_quoted(p->text, path);
    if (offset)
        weft_text_format(p->text, " offset=%" PRIu64, offset);
}

static void print_blob(struct printer *p, const struct weft_type *type, const struct weft_constant *constant)
{
    const struct weft_print_options *options = p->options;
    if (!constant->blob->data) {
        weft_text_format(p->text, " blob=%s", constant->blob->given_up);
        return;
    }
    const int64_t count = weft_dim_value(weft_type_elements(p->graph->dims, type));
    const size_t bytes = (size_t)weft_dtype_bytes(type->dtype, count);
    const char *data = (const char *)constant->blob->data + constant->offset;
    if (options->all_inline || count <= (options->inline_limit ? options->inline_limit : INLINE_LIMIT)) {
        weft_text_add(p->text, " value=[");
        for (int64_t i = 0; i < count; i++) {
            weft_text_add(p->text, i ? " " : "");
            weft_text_element(p->text, type->dtype, data, i);
        }
        weft_text_add(p->text, "]");
        return;
    }
    uint64_t offset = 0;
    const char *place = options->place_blob ? options->place_blob(options->user, data, bytes, &offset) : NULL;
    if (place) {
        print_file(p, place, offset);
    } else if (constant->blob->path && !options->by_content) {
        print_file(p, constant->blob->path, constant->offset);
    } else {
        char hash[33];
        weft_blob_hash(data, bytes, hash);
        weft_text_format(p->text, " blob=%s", hash);
    }
}

static void print_constant(struct printer *p, const struct weft_type *type, const struct weft_constant *constant)
{
    struct weft_text *text = p->text;
    switch ((enum weft_constant_kind)constant->kind) {
    case WEFT_CONST_BLOB:
        print_blob(p, type, constant);
        break;
    case WEFT_CONST_RANDOM:
        weft_text_format(text, " random=%" PRIu64, constant->seed);
        if (constant->scale != 1) {
            weft_text_add(text, " scale=");
            weft_text_real(text, WEFT_F64, constant->scale);
        }
        break;
    case WEFT_CONST_SPLAT:
        weft_text_add(text, " value=");
        if (!constant->integer)
            weft_text_real(text, weft_dtype_is_float(type->dtype) ? type->dtype : WEFT_F64, constant->real);
        else if (type->dtype == WEFT_U64)
            weft_text_format(text, "%" PRIu64, (uint64_t)constant->splat);
        else
            weft_text_integer(text, constant->splat);
        break;
    }
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void print_under(struct printer *p, weft_node node)
{
    const char *under = p->options->under && p->graph == p->graph->root ? p->options->under[node.id] : NULL;
    while (under && *under) {
        const size_t length = strcspn(under, "\n");
        print_indent(p, 0);
        weft_text_format(p->text, "# ^ %.*s\n", (int)length, under);
        under += length + (under[length] == '\n');
    }
}

static void print_node(struct printer *p, weft_node node)
{
    const struct weft_graph *graph = p->graph;
    const struct weft_node_info *info = weft_node_of(graph, node);
    print_indent(p, 0);
    for (unsigned i = 0; i < info->results; i++) {
        weft_text_add(p->text, i ? ", " : "");
        print_value(p, weft_result(graph, node, i));
        weft_text_add(p->text, ": ");
        print_type(p, weft_result(graph, node, i));
    }
    weft_text_add(p->text, " = ");
    weft_text_add(p->text, weft_ops[info->op].name);
    for (unsigned i = 0; i < info->operands; i++) {
        weft_text_add(p->text, i ? ", " : " ");
        print_value(p, weft_operand(graph, node, i));
    }
    if (info->constant)
        print_constant(p, weft_type_of(graph, weft_result(graph, node, 0)), info->constant);
    for (const struct weft_attr_spec *spec = weft_ops[info->op].attrs; spec->key != WEFT_ATTR_NONE; spec++) {
        const struct weft_attr *attr = weft_attr_find(graph, node, spec->key);
        if (attr)
            print_attr(p, attr);
    }
    print_plan(p, info->plan);
    weft_text_add(p->text, "\n");
    print_under(p, node);
}

static void print_one(const struct weft_graph *graph, const struct weft_print_options *options, int depth,
                      struct weft_text *text);

static void print_bodies_of(struct printer *p, weft_node node)
{
    const struct weft_graph *graph = p->graph;
    const struct weft_node_info *info = weft_node_of(graph, node);
    for (unsigned a = 0; a < info->attrs; a++)
        if (info->attr[a].kind == WEFT_ATTR_GRAPH && weft_is_body(graph, info->attr[a].graph) &&
            !p->printed[info->attr[a].graph->index]) {
            p->printed[info->attr[a].graph->index] = true;
            print_one(info->attr[a].graph, p->options, p->depth, p->text);
        }
}

/* Opens, closes, or changes the group that lines stand in. Bodies stand before it, since a group holds lines only. */
static void print_group_change(struct printer *p, uint32_t from, uint32_t to, weft_node first)
{
    if (from) {
        p->depth--;
        print_indent(p, 0);
        weft_text_add(p->text, "}\n");
    }
    if (!to)
        return;
    for (weft_node n = first; n.id && weft_node_of(p->graph, n)->group == to; n = weft_node_of(p->graph, n)->next)
        print_bodies_of(p, n);
    print_indent(p, 0);
    weft_text_add(p->text, "fuse ");
    weft_text_name(p->text, '@', p->graph->group[to].name);
    print_plan(p, p->graph->group[to].plan);
    weft_text_add(p->text, " {\n");
    p->depth++;
}

static void print_symbols(struct printer *p)
{
    const struct weft_dims *dims = p->graph->dims;
    const uint32_t count = p->graph == p->graph->root ? weft_symbol_count(dims) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_symbol_info *symbol = weft_symbol_at(dims, i);
        weft_text_format(p->text, "%s%s", i ? ", " : "<", symbol->name);
        if (symbol->data) {
            weft_text_add(p->text, "=data(");
            weft_dim_print(dims, symbol->bound, p->text);
            weft_text_add(p->text, ")");
            continue;
        }
        if (symbol->high < INT32_MAX)
            weft_text_format(p->text, "=%" PRId64 "..%" PRId64, symbol->low, symbol->high);
        else if (symbol->low > 0)
            weft_text_format(p->text, "=%" PRId64 "..", symbol->low);
        if (symbol->hint)
            weft_text_format(p->text, " hint=%" PRId64, symbol->hint);
    }
    weft_text_add(p->text, count ? ">" : "");
}

static void print_head(struct printer *p)
{
    const struct weft_graph *graph = p->graph;
    print_indent(p, 0);
    weft_text_add(p->text, "graph ");
    weft_text_name(p->text, '@', graph->name);
    print_symbols(p);
    weft_text_add(p->text, "(");
    for (uint32_t i = 0; i < graph->params; i++) {
        weft_text_add(p->text, i ? ", " : "");
        print_value(p, graph->param[i]);
        const struct weft_value *const value = &graph->value[graph->param[i].id];
        weft_text_add(p->text, value->is_mut ? ": mut " : value->is_static ? ": static " : ": ");
        print_type(p, graph->param[i]);
    }
    weft_text_add(p->text, ") {\n");
    p->depth++;
}

static void print_lines(struct printer *p)
{
    const struct weft_graph *graph = p->graph;
    print_head(p);
    uint32_t group = 0;
    weft_foreach_node(graph, n) {
        const uint32_t next = weft_node_of(graph, n)->group;
        if (next != group)
            print_group_change(p, group, next, n);
        group = next;
        print_bodies_of(p, n);
        print_node(p, n);
    }
    if (group)
        print_group_change(p, group, 0, WEFT_NO_NODE);
    for (uint32_t i = 0; i < graph->returns; i++) {
        if (i == 0)
            print_indent(p, 0);
        weft_text_add(p->text, i ? ", " : "return ");
        if (graph->ret[i].mut.id) {
            weft_text_add(p->text, "mut ");
            print_value(p, graph->ret[i].mut);
            weft_text_add(p->text, " = ");
        }
        print_value(p, graph->ret[i].value);
    }
    print_plan(p, graph->end);
    weft_text_add(p->text, graph->returns ? "\n" : "");
    p->depth--;
    print_indent(p, 0);
    weft_text_add(p->text, "}\n");
}

/* The side arrays are the arena's, not the printer's own, so that a refused allocation leaks nothing. */
static void print_one(const struct weft_graph *graph, const struct weft_print_options *options, int depth,
                      struct weft_text *text)
{
    struct printer p = {.graph = graph, .options = options, .text = text, .depth = depth};
    bool unnamed = false;
    for (uint32_t i = 1; i < graph->values && !unnamed; i++)
        unnamed = !graph->value[i].name;
    if (unnamed) {
        p.number = weft_new(graph->arena, uint32_t, graph->values);
        number_values(graph, p.number, WEFT_NO_VALUE);
    }
    if (graph->bodies)
        p.printed = weft_new(graph->arena, bool, graph->bodies);
    print_lines(&p);
}

void weft_print_graph(const struct weft_graph *graph, const struct weft_print_options *options, struct weft_text *text)
{
    static const struct weft_print_options plain;
    print_one(graph, options ? options : &plain, 0, text);
}

struct print_call {
    const struct weft_graph *graph;
    struct weft_text text;
};

static int print_protected(void *arg)
{
    struct print_call *call = arg;
    weft_text_add(&call->text, "weft 1\n");
    weft_print_graph(call->graph, NULL, &call->text);
    return WEFT_OK;
}

int weft_print(const struct weft_graph *graph, char **ret_text)
{
    if (!graph || !ret_text)
        return weft_missing(graph ? graph->context : NULL);
    struct print_call call = {.graph = graph, .text = {.context = graph->context}};
    int status = weft_protected_graph(graph, print_protected, &call);
    if (status == WEFT_OK) {
        char *text = weft_text_take(&call.text);
        if (text)
            *ret_text = text;
        else
            status = WEFT_ERR_NOMEM;
    }
    weft_text_close(&call.text);
    return status;
}
