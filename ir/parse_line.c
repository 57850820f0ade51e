/* SPDX-License-Identifier: Apache-2.0 */
/* parse_line.c: the lines of a graph: types, definitions, returns.
 *
 * A line is a statement. One that is wrong is reported and skipped, and the values it should have defined are noted
 * as unknown, with their declared type where it could be read, so that the lines that use them are still read for
 * their own mistakes. A graph with any mistake is thrown away. */
#include "ir/parse.h"

#include <string.h>

/* --- types -------------------------------------------------------------------------------------------------------- */

static bool extent_failed(struct weft_parser *p, const char *at, const char *end, const char *message)
{
    p->cursor = at;
    const struct weft_word word = weft_parse_symbol(p);
    weft_dim found;
    if (at < end && word.length > 0 && !weft_parse_is(word, "min") && !weft_parse_is(word, "max") &&
        !weft_symbol_find(p->root->dims, weft_parse_copy(p, word), &found)) {
        if (p->symbols_broken) /* perhaps it is declared behind the mistake, which has its message */
            return false;
        struct weft_suggest suggest;
        return weft_parse_fail(p, at, WEFT_ERR_INVALID,
                               "symbol '%.*s' is not declared: write it in the graph's head, like @%s<%.*s>(…)%s",
                               (int)word.length, word.text, p->root->name ? p->root->name : "f", (int)word.length,
                               word.text, weft_suggest_symbol(&suggest, p->root->dims, word.text, word.length));
    }
    return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "%s", message);
}

bool weft_parse_extent(struct weft_parser *p, const char *end, weft_dim *ret)
{
    weft_parse_blanks(p);
    const char *message = "an extent is missing";
    if (p->cursor >= end || *p->cursor == ',' || *p->cursor == ']')
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "%s", message);
    if (!weft_dim_parse(p->root->dims, &p->cursor, end, ret, &message))
        return extent_failed(p, p->cursor, end, message);
    return true;
}

static bool parse_dtype(struct weft_parser *p, struct weft_type *type)
{
    const struct weft_word word = weft_parse_word(p);
    if (word.length == 0)
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected a type, like f32[2,3]");
    type->dtype = (uint8_t)weft_dtype_from_name(weft_parse_copy(p, word));
    if (type->dtype)
        return true;
    struct weft_suggest suggest;
    return weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "no element type is called '%.*s'%s", (int)word.length,
                           word.text, weft_suggest_dtype(&suggest, word.text, word.length));
}

static bool parse_layout(struct weft_parser *p, struct weft_declared *ret)
{
    const char *at = p->cursor, *message = "this is no layout";
    if (!weft_layout_parse(p->root->dims, &p->cursor, weft_parse_line_end(p), &ret->layout, &message))
        return extent_failed(p, p->cursor, weft_parse_line_end(p), message);
    message = ret->layout.kind == WEFT_STORED ? weft_layout_check(&ret->layout, &ret->type) : NULL;
    if (message)
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "layout: %s", message);
    ret->has_layout = true;
    return true;
}

bool weft_parse_type(struct weft_parser *p, struct weft_declared *ret)
{
    weft_parse_blanks(p);
    ret->type_at = p->cursor;
    ret->type = (struct weft_type){0};
    if (!parse_dtype(p, &ret->type) || !weft_parse_expect(p, '[', "before the extents of a type"))
        return false;
    const char *end = p->cursor; /* not that of the line, on which thousands of parameters may stand */
    while (end < p->end && *end != ']' && *end != '\n')
        end++;
    while (!weft_parse_take(p, ']')) {
        if (ret->type.rank > 0 && !weft_parse_expect(p, ',', "or ']' after an extent"))
            return false;
        weft_parse_blanks(p);
        const char *at = p->cursor;
        weft_dim extent;
        int64_t low, high;
        if (ret->type.rank == WEFT_MAX_RANK)
            return weft_parse_fail(p, at, WEFT_ERR_INVALID, "a type has at most %d axes", WEFT_MAX_RANK);
        if (!weft_parse_extent(p, end, &extent))
            return false;
        weft_dim_range(p->root->dims, extent, &low, &high);
        if (high < 0)
            return weft_parse_fail(p, at, WEFT_ERR_INVALID, "an extent cannot be negative");
        ret->type.extent[ret->type.rank++] = extent;
    }
    if (!weft_type_check_size(&ret->type))
        return weft_parse_fail(p, ret->type_at, WEFT_ERR_INVALID, "this is more elements than any memory holds");
    ret->has_type = true; /* a layout follows its type without a blank */
    return p->cursor == p->end || *p->cursor != '{' || parse_layout(p, ret);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

bool weft_parse_unknown(const struct weft_parser *p, weft_val value)
{
    return value.id < p->unknown_capacity && p->unknown[value.id];
}

bool weft_parse_is_new(struct weft_parser *p, const struct weft_declared *declared)
{
    const weft_val old = weft_value_find(p->graph, declared->name.text, declared->name.length);
    if (!old.id)
        return true;
    const weft_node def = weft_def(p->graph, old);
    if (def.id && weft_node_of(p->graph, def)->line)
        return weft_parse_fail(p, declared->at, WEFT_ERR_INVALID, "%%%.*s is defined already, in line %d",
                               (int)declared->name.length, declared->name.text, weft_node_of(p->graph, def)->line);
    return weft_parse_fail(p, declared->at, WEFT_ERR_INVALID, "%%%.*s is defined already",
                           (int)declared->name.length, declared->name.text);
}

/* Stands in for a value whose definition is wrong. The graph is lost already, so it may pose as a parameter. */
static void define_unknown(struct weft_parser *p, const struct weft_declared *declared)
{
    if (declared->name.length == 0 || weft_value_find(p->graph, declared->name.text, declared->name.length).id)
        return;
    struct weft_type type = declared->type;
    if (!declared->has_type)
        type = (struct weft_type){.dtype = WEFT_F32};
    const weft_val value = weft_add_param(p->graph, weft_parse_copy(p, declared->name), &type);
    p->unknown = weft_grow(&p->scratch, p->unknown, &p->unknown_capacity, value.id + 1, sizeof *p->unknown);
    p->unknown[value.id] = !declared->has_type;
}

static bool finish_node(struct weft_parser *p, weft_node node, const struct weft_declared *result, unsigned results)
{
    struct weft_graph *graph = p->graph;
    if (weft_node_of(graph, node)->results != results)
        return weft_parse_fail(p, result[0].at, WEFT_ERR_INVALID, "%s has %u results here, but %u are declared",
                               weft_op_of(graph, node)->name, (unsigned)weft_node_of(graph, node)->results, results);
    weft_node_of(graph, node)->group = p->group;
    bool right = true;
    for (unsigned i = 0; i < results; i++) {
        const weft_val value = weft_result(graph, node, i);
        if (!weft_parse_is_new(p, &result[i])) {
            right = false;
            continue;
        }
        weft_set_name(graph, value, result[i].name.text, result[i].name.length);
        if (!weft_type_same(&result[i].type, weft_type_of(graph, value))) {
            struct weft_text declared = {.context = p->context, .arena = &p->scratch}, inferred = declared;
            weft_type_print(graph->dims, &result[i].type, &declared);
            weft_type_print(graph->dims, weft_type_of(graph, value), &inferred);
            right = weft_parse_fail(p, result[i].type_at, WEFT_ERR_INVALID,
                                    "%%%.*s is declared %s, but %s of these operands is %s", (int)result[i].name.length,
                                    result[i].name.text, declared.data, weft_op_of(graph, node)->name, inferred.data);
        } else if (result[i].has_layout) {
            weft_state_layout(graph, value, &result[i].layout);
        }
    }
    return right;
}

/* %a: type, %b: type = op … */
bool weft_parse_definition(struct weft_parser *p)
{
    uint32_t results = 0;
    bool right = true, silent = false;
    do {
        p->result = weft_grow(&p->scratch, p->result, &p->result_capacity, results + 1, sizeof *p->result);
        struct weft_declared *next = &p->result[results];
        weft_parse_blanks(p);
        *next = (struct weft_declared){.at = p->cursor};
        right = weft_parse_name(p, '%', &next->name) && ++results &&
                weft_parse_expect(p, ':', "and a type after the name of a result") && weft_parse_type(p, next);
    } while (right && weft_parse_take(p, ','));
    right = right && weft_parse_expect(p, '=', "after the type of a result");
    const struct weft_declared *result = p->result;
    weft_node node = WEFT_NO_NODE;
    if (right)
        node = weft_parse_op(p, result, results, &silent);
    if (node.id)
        return finish_node(p, node, result, results);
    for (uint32_t i = 0; i < results; i++)
        define_unknown(p, &result[i]);
    return false;
}

/* return %a, mut %p = %b */
bool weft_parse_return(struct weft_parser *p)
{
    do {
        weft_val value, mut = WEFT_NO_VALUE;
        weft_parse_blanks(p);
        const char *at = p->cursor;
        if (weft_parse_is(weft_parse_peek(p), "mut")) {
            weft_parse_word(p);
            weft_parse_blanks(p);
            at = p->cursor;
            if (!weft_parse_value(p, &mut) ||
                !weft_parse_expect(p, '=', "and the new value of a mut parameter: return mut %w = %new"))
                return false;
            if (mut.id && !weft_value_of(p->graph, mut)->is_mut && !weft_parse_unknown(p, mut))
                return weft_parse_fail(p, at, WEFT_ERR_INVALID, "%s is not a mut parameter",
                                       weft_value_text(p->graph, mut));
        }
        if (!weft_parse_value(p, &value))
            return false;
        if (value.id)
            weft_add_return(p->graph, value, mut);
    } while (weft_parse_take(p, ','));
    return weft_parse_plan(p, &p->graph->end);
}
