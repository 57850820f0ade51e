/* SPDX-License-Identifier: Apache-2.0 */
/* parse_op.c: what stands right of a line's `=`: op, operands, attributes, plan.
 *
 * Only the form is checked here, and what needs the place in the line for a good message: names of ops, attributes
 * and words. Arity, types and shapes are the business of the gate through which every node passes, weft_add_node. */
#include "ir/parse.h"

#include <string.h>

#define MAX_ATTRS 16

/* --- operands ----------------------------------------------------------------------------------------------------- */

/* The line further down in this graph that defines the name, or 0. Only asked once something is wrong. */
static int32_t later_line(struct weft_parser *p, struct weft_word name)
{
    const char *end = p->cursor; /* of the graph: a brace at the left margin */
    while (end < p->end && !(end[0] == '}' && end[-1] == '\n'))
        end++;
    for (const char *c = p->cursor; (c = memchr(c, '%', (size_t)(end - c))) != NULL; c++) {
        if ((size_t)(end - c) < name.length + 3 || memcmp(c + 1, name.text, name.length) != 0 ||
            c[1 + name.length] != ':' || (c[2 + name.length] != ' ' && c[2 + name.length] != '\t'))
            continue;
        const char *before = c;
        while (before > p->cursor && (before[-1] == ' ' || before[-1] == '\t'))
            before--;
        if (before[-1] == '\n')
            return weft_parse_place(p, c).line;
    }
    return 0;
}

static bool undefined(struct weft_parser *p, const char *at, struct weft_word name)
{
    const int length = (int)name.length;
    for (const struct weft_graph *outer = p->graph->parent; outer; outer = outer->parent)
        if (weft_value_find(outer, name.text, name.length).id)
            return weft_parse_fail(
                p, at, WEFT_ERR_INVALID,
                "%%%.*s is a value of @%s: a body sees nothing from outside, so hand it over as an operand", length,
                name.text, outer->name);
    const int32_t line = later_line(p, name);
    if (line)
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "%%%.*s is used before its definition in line %d", length,
                               name.text, line);
    struct weft_suggest suggest;
    return weft_parse_fail(p, at, WEFT_ERR_INVALID, "%%%.*s is not defined%s", length, name.text,
                           weft_suggest_value(&suggest, p->graph, name.text, name.length));
}

bool weft_parse_value(struct weft_parser *p, weft_val *ret)
{
    struct weft_word name;
    weft_parse_blanks(p);
    const char *at = p->cursor;
    if (!weft_parse_name(p, '%', &name))
        return false;
    *ret = weft_value_find(p->graph, name.text, name.length);
    return ret->id || p->head_broken || undefined(p, at, name);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

/* An element of a list, or a single integer: 3, -1, N, min(…), or any expression in parentheses; so blanks can
 * separate. */
static const char *atom_end(const struct weft_parser *p)
{
    const char *c = p->cursor;
    if (c < p->end && *c == '-')
        c++;
    while (c < p->end &&
           ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' || *c == '.'))
        c++;
    int depth = 0;
    for (; c < p->end && *c != '\n' && (depth > 0 || *c == '('); c++) {
        depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
        if (depth == 0)
            return c + 1;
    }
    return c;
}

static bool parse_atom(struct weft_parser *p, weft_dim *ret)
{
    weft_parse_blanks(p);
    const char *at = p->cursor, *end = atom_end(p);
    if (end == at)
        return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "expected an integer or a symbol");
    if (!weft_parse_extent(p, end, ret))
        return false;
    if (p->cursor == end && (end == p->end || strchr(" \t\r\n]}#", *end)))
        return true;
    if (p->cursor == end && *end == ',')
        return weft_parse_fail(p, end, WEFT_ERR_SYNTAX, "elements of a list are separated by blanks, not commas");
    return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "an expression stands in parentheses here, like (2*N + 1)");
}

static bool parse_integers(struct weft_parser *p, struct weft_attr *attr)
{
    weft_dim *list = NULL;
    uint32_t capacity = 0;
    if (!weft_parse_expect(p, '[', "before a list of integers"))
        return false;
    while (!weft_parse_take(p, ']')) {
        list = weft_grow(&p->scratch, list, &capacity, attr->count + 1, sizeof *list);
        if (!parse_atom(p, &list[attr->count]))
            return false;
        attr->count++;
    }
    attr->integers = list;
    return true;
}

static bool parse_real(struct weft_parser *p, double *ret)
{
    const struct weft_word word = weft_parse_token(p);
    return weft_read_real(word, ret) ||
           weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "'%.*s' is no number", (int)word.length, word.text);
}

static bool parse_reals(struct weft_parser *p, struct weft_attr *attr)
{
    double *list = NULL;
    uint32_t capacity = 0;
    if (!weft_parse_expect(p, '[', "before a list of numbers"))
        return false;
    while (!weft_parse_take(p, ']')) {
        list = weft_grow(&p->scratch, list, &capacity, attr->count + 1, sizeof *list);
        if (!parse_real(p, &list[attr->count]))
            return false;
        attr->count++;
    }
    attr->reals = list;
    return true;
}

static bool parse_choice(struct weft_parser *p, const struct weft_attr_spec *spec, struct weft_attr *attr)
{
    const struct weft_word word = weft_parse_word(p);
    attr->word = weft_parse_copy(p, word);
    if (!spec->words)
        return word.length > 0 || weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected a word");
    for (const char *legal = spec->words; *legal;) {
        const size_t length = strcspn(legal, " ");
        if (length == word.length && memcmp(legal, word.text, length) == 0)
            return true;
        legal += length + (legal[length] == ' ');
    }
    struct weft_suggest suggest;
    return weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "%s is one of: %s%s", weft_attr_names[spec->key],
                           spec->words, weft_suggest_among(&suggest, spec->words, word.text, word.length));
}

static bool parse_dtype(struct weft_parser *p, struct weft_attr *attr)
{
    const struct weft_word word = weft_parse_word(p);
    attr->dtype = weft_dtype_from_name(weft_parse_copy(p, word));
    struct weft_suggest suggest;
    return attr->dtype || weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "no element type is called '%.*s'%s",
                                          (int)word.length, word.text,
                                          weft_suggest_dtype(&suggest, word.text, word.length));
}

static bool parse_body(struct weft_parser *p, struct weft_attr *attr)
{
    struct weft_word name;
    weft_parse_blanks(p);
    const char *at = p->cursor;
    if (!weft_parse_name(p, '@', &name))
        return false;
    const uint32_t number = weft_parse_names_find(&p->bodies, name);
    if (number) {
        attr->graph = p->graph->body[number - 1];
        return true; /* perhaps broken: see is_broken */
    }
    struct weft_suggest suggest;
    weft_suggest_open(&suggest, name.text, name.length);
    for (uint32_t i = 0; i < p->graph->bodies && i < 4096; i++)
        weft_suggest_offer(&suggest, p->graph->body[i]->name);
    return weft_parse_fail(p, at, WEFT_ERR_INVALID, "graph @%s has no body @%.*s above this line%s", p->graph->name,
                           (int)name.length, name.text, weft_suggest_text(&suggest, "@"));
}

static bool no_such_attribute(struct weft_parser *p, int op, struct weft_word name)
{
    struct weft_text legal = {.context = p->context, .arena = &p->scratch};
    for (const struct weft_attr_spec *spec = weft_ops[op].attrs; spec->key != WEFT_ATTR_NONE; spec++)
        weft_text_format(&legal, " %s", weft_attr_names[spec->key]);
    struct weft_suggest suggest;
    return weft_parse_fail(p, name.text, WEFT_ERR_INVALID, "%s has no attribute '%.*s'%s; it has%s", weft_ops[op].name,
                           (int)name.length, name.text, weft_suggest_attr(&suggest, op, name.text, name.length),
                           legal.length ? legal.data : " none");
}

static bool parse_attr(struct weft_parser *p, int op, struct weft_attr *attr, unsigned attrs)
{
    const struct weft_word name = weft_parse_word(p);
    const int key = weft_attr_key_find(name.text, name.length);
    const struct weft_attr_spec *spec = key ? weft_attr_spec_find(op, key) : NULL;
    if (!spec)
        return no_such_attribute(p, op, name);
    for (unsigned i = 0; i < attrs; i++)
        if (attr[i].key == key)
            return weft_parse_fail(p, name.text, WEFT_ERR_INVALID, "%s is given twice", weft_attr_names[key]);
    attr += attrs;
    *attr = (struct weft_attr){.key = (uint8_t)key, .kind = weft_attr_kinds[key]};
    if (!weft_parse_expect(p, '=', "after the name of an attribute"))
        return false;
    switch (attr->kind) {
    case WEFT_ATTR_INT:
        return parse_atom(p, &attr->integer);
    case WEFT_ATTR_INTS:
        return parse_integers(p, attr);
    case WEFT_ATTR_REAL:
        return parse_real(p, &attr->real);
    case WEFT_ATTR_REALS:
        return parse_reals(p, attr);
    case WEFT_ATTR_WORD:
        return parse_choice(p, spec, attr);
    case WEFT_ATTR_DTYPE:
        return parse_dtype(p, attr);
    case WEFT_ATTR_VALUES:
        return weft_parse_values(p, attr);
    default:
        return parse_body(p, attr);
    }
}

/* --- plan --------------------------------------------------------------------------------------------------------- */

/* A token, or [token …] with single blanks; in the graph's arena. */
static bool parse_plan_value(struct weft_parser *p, const char **ret)
{
    struct weft_word word = weft_parse_token(p);
    const bool list = word.length == 0 && weft_parse_take(p, '[');
    struct weft_text text = {.context = p->context, .arena = &p->scratch};
    if (!list && word.length == 0)
        return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "expected a word or a [list] after '=' in a plan");
    if (!list) {
        *ret = weft_arena_copy(p->graph->arena, word.text, word.length);
        return true;
    }
    weft_text_add(&text, "[");
    while (!weft_parse_take(p, ']')) {
        word = weft_parse_token(p);
        if (word.length == 0)
            return weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX,
                                   "expected words separated by blanks, and ], in a plan's list");
        weft_text_add(&text, text.length > 1 ? " " : "");
        weft_text_addn(&text, word.text, word.length);
    }
    weft_text_add(&text, "]");
    *ret = weft_arena_copy(p->graph->arena, text.data, text.length);
    return true;
}

static bool parse_plan_entry(struct weft_parser *p, struct weft_plan_note *plan, struct weft_word word)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (weft_parse_is(word, plan->key[i]))
            return weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "%s is given twice", plan->key[i]);
    plan->key[plan->count] = weft_arena_copy(p->graph->arena, word.text, word.length);
    return parse_plan_value(p, &plan->value[plan->count++]);
}

bool weft_parse_plan(struct weft_parser *p, const struct weft_plan_note **ret)
{
    *ret = NULL;
    weft_parse_blanks(p);
    const char *at = p->cursor;
    if (!weft_parse_take(p, '!'))
        return true;
    struct weft_arena *arena = p->graph->arena;
    struct weft_plan_note *plan = weft_new(arena, struct weft_plan_note, 1);
    uint32_t keys = 0, values = 0;
    for (;;) {
        const struct weft_word word = weft_parse_token(p);
        if (word.length == 0)
            break;
        if (weft_parse_take(p, '=')) {
            plan->key = weft_grow(arena, plan->key, &keys, plan->count + 1, sizeof *plan->key);
            plan->value = weft_grow(arena, plan->value, &values, plan->count + 1, sizeof *plan->value);
            if (!parse_plan_entry(p, plan, word))
                return false;
        } else if (plan->kernel || plan->count > 0) {
            return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX,
                                   "a plan is one kernel and then key=value; '%.*s' is neither", (int)word.length,
                                   word.text);
        } else {
            plan->kernel = weft_arena_copy(arena, word.text, word.length);
        }
    }
    if (!plan->kernel && plan->count == 0)
        return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "after '!' stands a kernel, or key=value");
    *ret = plan;
    return true;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static int parse_opcode(struct weft_parser *p)
{
    const struct weft_word word = weft_parse_word(p);
    const int op = weft_opcode_find(word.text, word.length);
    if (op)
        return op;
    if (word.length == 0) {
        weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected the name of an op");
        return 0;
    }
    struct weft_suggest suggest;
    weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "no op is called '%.*s'%s; weft opt --list-ops has all",
                    (int)word.length, word.text, weft_suggest_op(&suggest, word.text, word.length));
    return 0;
}

/* %a, %b; *ret_silent if one of them is unknown. */
static bool parse_operands(struct weft_parser *p, uint32_t *operands, bool *ret_silent)
{
    weft_parse_blanks(p);
    if (p->cursor == p->end || *p->cursor != '%')
        return true;
    do {
        p->operand = weft_grow(&p->scratch, p->operand, &p->operand_capacity, *operands + 1, sizeof *p->operand);
        weft_val *next = &p->operand[*operands];
        if (!weft_parse_value(p, next))
            return false;
        *ret_silent = *ret_silent || !next->id || weft_parse_unknown(p, *next);
        ++*operands;
    } while (weft_parse_take(p, ','));
    weft_parse_blanks(p);
    return p->cursor == p->end || *p->cursor != '%' ||
           weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "operands are separated by commas");
}

static bool is_broken(const struct weft_parser *p, const struct weft_attr *attr)
{
    for (uint32_t i = 0; attr->kind == WEFT_ATTR_GRAPH && i < p->brokens; i++)
        if (p->broken[i] == attr->graph)
            return true;
    return false;
}

/* Of a custom op, whose results are all stated. */
static const struct weft_type *types_of(struct weft_parser *p, const struct weft_declared *result, unsigned results)
{
    struct weft_type *const types = weft_new(&p->scratch, struct weft_type, results);
    for (unsigned i = 0; i < results; i++)
        types[i] = result[i].type;
    return types;
}

weft_node weft_parse_op(struct weft_parser *p, const struct weft_declared *result, unsigned results, bool *ret_silent)
{
    weft_parse_blanks(p);
    const struct weft_place place = weft_parse_place(p, p->cursor);
    const int op = parse_opcode(p);
    uint32_t operands = 0, attrs = 0;
    struct weft_attr attr[MAX_ATTRS];
    struct weft_constant constant = {0};
    const struct weft_plan_note *plan;
    if (!op || !parse_operands(p, &operands, ret_silent))
        return WEFT_NO_NODE;
    if (weft_ops[op].results >= 0 && (unsigned)weft_ops[op].results != results) {
        weft_parse_fail(p, result[0].at, WEFT_ERR_INVALID, "%s has %d result%s, but %u %s declared",
                        weft_ops[op].name, weft_ops[op].results, weft_ops[op].results == 1 ? "" : "s", results,
                        results == 1 ? "is" : "are");
        return WEFT_NO_NODE;
    }
    if (op == WEFT_OP_const && !weft_parse_constant(p, &result[0].type, &constant))
        return WEFT_NO_NODE;
    while (weft_parse_peek(p).length > 0) {
        if (!parse_attr(p, op, attr, attrs))
            return WEFT_NO_NODE;
        *ret_silent = *ret_silent || is_broken(p, &attr[attrs++]);
    }
    if (!weft_parse_plan(p, &plan) || *ret_silent)
        return WEFT_NO_NODE;
    const struct weft_node_spec spec = {
        .op = op, .operand = p->operand, .operands = operands, .attr = attr, .attrs = attrs, .place = place,
        .stated = op == WEFT_OP_custom ? types_of(p, result, results)
                  : weft_ops[op].traits & WEFT_STATED ? &result[0].type : NULL,
        .results = op == WEFT_OP_custom ? results : 0,
        .constant = op == WEFT_OP_const ? &constant : NULL};
    const weft_node node = weft_add_node(p->graph, &spec);
    if (!node.id)
        p->errors++;
    else
        weft_node_of(p->graph, node)->plan = plan;
    return node;
}
