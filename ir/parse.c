/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c: text to graph; the language is FORMAT.md's. Here: files, heads and blocks; lines are in parse_line.c.
 *
 * What was read without a mistake goes through the validator, which knows the rules that span lines; so a parsed
 * graph is a valid one. The only recursion is that of bodies in bodies, and weft_graph_new_body bounds it.
 *
 * When memory is refused, control passes by here on its way to the protected call, and the half-made graph is freed. */
#include "ir/parse.h"

#include <setjmp.h>
#include <string.h>

static bool too_many(const struct weft_parser *p) { return p->errors >= WEFT_PARSE_MAX_ERRORS; }

/* Over a graph that is not wanted, from its head to its last brace. A brace right after a ] is a layout's. */
static void skip_block(struct weft_parser *p)
{
    int64_t depth = 0;
    bool quoted = false;
    for (; p->cursor < p->end; p->cursor++) {
        const char c = *p->cursor;
        if (c == '\n')
            quoted = false;
        else if (quoted && c == '\\' && p->cursor + 1 < p->end && p->cursor[1] != '\n')
            p->cursor++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '#')
            p->cursor = weft_parse_line_end(p) - 1;
        else if (!quoted && c == '{' && p->cursor > p->text && p->cursor[-1] == ']')
            while (p->cursor + 1 < p->end && p->cursor[0] != '}' && p->cursor[1] != '\n')
                p->cursor++;
        else if (!quoted && c == '{')
            depth++;
        else if (!quoted && c == '}' && --depth <= 0) {
            p->cursor++;
            return;
        }
    }
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* fuse @name ! plan {   up to the brace; the lines that follow stand in the group. */
static bool parse_fuse(struct weft_parser *p, const char *at)
{
    struct weft_word name;
    const struct weft_plan_note *plan = NULL;
    if (p->group)
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "a group cannot stand in another group, @%s",
                               p->graph->group[p->group].name);
    weft_parse_blanks(p);
    const char *name_at = p->cursor; /* a quoted name has its letters elsewhere */
    if (!weft_parse_name(p, '@', &name))
        return false;
    const bool known = weft_parse_names_find(&p->groups, name) != 0;
    p->group = weft_add_group(p->graph, weft_parse_copy(p, name));
    weft_parse_names_add(&p->scratch, &p->groups, p->graph->group[p->group].name, p->group);
    p->group_at = at;
    p->group_nodes = p->graph->live_nodes;
    if (known)
        return weft_parse_fail(p, name_at, WEFT_ERR_INVALID, "there is a group @%.*s already", (int)name.length,
                               name.text);
    if (!weft_parse_plan(p, &plan) || !weft_parse_expect(p, '{', "after the head of a group"))
        return false;
    p->graph->group[p->group].plan = plan;
    return true;
}

static void close_group(struct weft_parser *p)
{
    if (p->errors == p->errors_before && p->graph->live_nodes == p->group_nodes)
        weft_parse_fail(p, p->group_at, WEFT_ERR_INVALID, "group @%s is empty", p->graph->group[p->group].name);
    p->group = 0;
}

static void parse_graph(struct weft_parser *p, const char *at);

/* One statement. `word` is its first word, taken already; of length 0 before a %. */
static bool parse_statement(struct weft_parser *p, struct weft_word word, const char **return_at)
{
    const char *at = word.text;
    if (*return_at)
        return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "nothing may follow the return line");
    if (weft_parse_is(word, "return")) {
        *return_at = at;
        if (p->group)
            return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "return cannot stand in a group: close @%s first",
                                   p->graph->group[p->group].name);
        return weft_parse_return(p);
    }
    if (word.length == 0 && p->cursor < p->end && *p->cursor == '%')
        return weft_parse_definition(p);
    struct weft_suggest suggest;
    return weft_parse_fail(p, at, WEFT_ERR_SYNTAX,
                           "expected a line that begins with %%value:, graph, fuse, return or }%s",
                           weft_suggest_among(&suggest, "return graph fuse", word.text, word.length));
}

static void end_statement(struct weft_parser *p)
{
    weft_parse_blanks(p);
    if (p->cursor == p->end || *p->cursor == '\n' || *p->cursor == '}')
        return;
    const char *end = weft_parse_line_end(p);
    const int length = (int)(end - p->cursor > 24 ? 24 : end - p->cursor);
    weft_parse_fail(p, p->cursor, WEFT_ERR_SYNTAX, "the line should end before '%.*s'", length, p->cursor);
    weft_parse_recover(p);
}

/* The lines between a graph's braces, and the closing one. */
static void parse_block(struct weft_parser *p, const char *graph_at)
{
    const char *return_at = NULL;
    while (!too_many(p)) {
        weft_parse_lines(p);
        if (p->cursor == p->end) {
            weft_parse_fail(p, graph_at, WEFT_ERR_SYNTAX, "the } of graph @%s is missing", p->graph->name);
            return;
        }
        if (weft_parse_take(p, '}')) {
            if (p->extra_braces > 0) {
                p->extra_braces--;
                continue;
            }
            if (p->group) {
                close_group(p);
                continue;
            }
            if (!return_at)
                weft_parse_fail(p, p->cursor - 1, WEFT_ERR_INVALID,
                                "graph @%s returns nothing: end it with a line like `return %%x`", p->graph->name);
            return;
        }
        const struct weft_word word = weft_parse_word(p);
        const bool is_graph = weft_parse_is(word, "graph"), is_fuse = weft_parse_is(word, "fuse");
        if (is_graph && !return_at && !p->group) {
            parse_graph(p, word.text);
            end_statement(p);
        } else if (is_fuse && !return_at) {
            const uint32_t outer = p->group;
            if (!parse_fuse(p, word.text)) {
                const bool entered = weft_parse_recover_block(p);
                p->extra_braces += entered && p->group == outer;
                p->group = entered ? p->group : outer;
            }
        } else if (is_graph && p->group) {
            weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX,
                            "a body cannot stand in a group: move it before the fuse line");
            skip_block(p);
        } else if (parse_statement(p, word, &return_at)) {
            end_statement(p);
        } else {
            weft_parse_recover(p);
        }
    }
}

/* Every body must be somebody's. */
static void check_bodies(struct weft_parser *p)
{
    const struct weft_graph *graph = p->graph;
    for (uint32_t i = 0; i < graph->bodies && p->errors == p->errors_before; i++)
        if (!graph->body[i]->frozen)
            weft_parse_fail(p, p->cursor > p->text ? p->cursor - 1 : p->cursor, WEFT_ERR_INVALID,
                            "no line of graph @%s uses its body @%s", graph->name, graph->body[i]->name);
}

/* --- a graph's head ----------------------------------------------------------------------------------------------- */

static bool takes_word(struct weft_parser *p, const char *word, bool *taken)
{
    if (*taken || !weft_parse_is(weft_parse_peek(p), word))
        return false;
    weft_parse_word(p);
    return *taken = true;
}

static bool parse_param(struct weft_parser *p)
{
    struct weft_declared param = {0};
    weft_parse_lines(p);
    param.at = p->cursor;
    if (!weft_parse_name(p, '%', &param.name) || !weft_parse_expect(p, ':', "and a type after the name of a parameter"))
        return false;
    while (takes_word(p, "mut", &param.is_mut) || takes_word(p, "static", &param.is_static))
        ;
    if (param.is_mut && param.is_static)
        return weft_parse_fail(p, param.at, WEFT_ERR_SYNTAX, "a parameter is mut or static, not both");
    if (!weft_parse_type(p, &param) || !weft_parse_is_new(p, &param))
        return false;
    const weft_val value = weft_add_param(p->graph, weft_parse_copy(p, param.name), &param.type);
    weft_value_of(p->graph, value)->is_mut = param.is_mut;
    weft_value_of(p->graph, value)->is_static = param.is_static;
    if (param.has_layout)
        weft_set_value_layout(p->graph, value, &param.layout);
    return true;
}

/* <N=1..64, L>(%x: …, …) { */
static bool parse_head(struct weft_parser *p)
{
    weft_parse_blanks(p);
    const char *at = p->cursor;
    if (weft_parse_take(p, '<')) {
        if (p->graph != p->root)
            return weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "a body declares no symbols: it shares those of @%s",
                                   p->root->name);
        do {
            weft_parse_lines(p);
            p->symbols_broken = !weft_parse_symbol_head(p);
            if (p->symbols_broken)
                return false;
            weft_parse_lines(p);
        } while (weft_parse_take(p, ','));
        if (!weft_parse_expect(p, '>', "or ',' after a symbol"))
            return false;
    }
    if (!weft_parse_expect(p, '(', "before the parameters of a graph"))
        return false;
    weft_parse_lines(p);
    if (!weft_parse_take(p, ')')) {
        do {
            if (!parse_param(p))
                return false;
            weft_parse_lines(p);
        } while (weft_parse_take(p, ','));
        if (!weft_parse_expect(p, ')', "or ',' after a parameter"))
            return false;
    }
    return weft_parse_expect(p, '{', "before the lines of a graph");
}

/* A graph after its word; p->graph is the parent, or NULL at top level, and is so again afterwards. */
static void parse_graph(struct weft_parser *p, const char *at)
{
    const struct weft_parser outer = *p;
    struct weft_word name = {"", 0};
    weft_parse_blanks(p);
    const char *name_at = p->cursor;
    bool right = weft_parse_name(p, '@', &name);
    if (right && weft_parse_names_find(&p->bodies, name))
        weft_parse_fail(p, name_at, WEFT_ERR_INVALID, "@%s has a body @%.*s already", p->graph->name, (int)name.length,
                        name.text);
    const char *copy = weft_parse_copy(p, name);
    p->graph = outer.graph ? weft_graph_new_body(outer.graph, copy) : weft_graph_new(p->context, copy);
    if (!p->graph) {
        p->errors++;
        p->graph = outer.graph;
        skip_block(p);
        return;
    }
    if (!p->root) {
        p->root = p->graph;
        p->symbols_broken = false;
        p->root->file =
            p->options->name ? weft_arena_copy(p->root->arena, p->options->name, strlen(p->options->name)) : NULL;
    }
    if (outer.graph)
        weft_parse_names_add(&p->scratch, &p->bodies, p->graph->name, p->graph->index + 1);
    const struct weft_parse_names bodies = p->bodies;
    p->groups = p->bodies = (struct weft_parse_names){0};
    p->unknown = NULL;
    p->unknown_capacity = 0;
    p->group = 0;
    p->extra_braces = 0;
    p->head_broken = false;
    if (!right || !parse_head(p)) {
        p->head_broken = true;
        weft_parse_recover_block(p);
    }
    parse_block(p, at);
    check_bodies(p);
    if (p->errors > outer.errors) {
        p->broken = weft_grow(&p->scratch, p->broken, &p->broken_capacity, p->brokens + 1, sizeof *p->broken);
        p->broken[p->brokens++] = p->graph;
    }
    p->graph = outer.graph;
    p->groups = outer.groups;
    p->bodies = bodies;
    p->extra_braces = outer.extra_braces;
    p->unknown = outer.unknown;
    p->unknown_capacity = outer.unknown_capacity;
    p->group = outer.group;
    p->head_broken = outer.head_broken;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* weft 1 */
static void parse_version(struct weft_parser *p)
{
    weft_parse_lines(p);
    if (!weft_parse_is(weft_parse_peek(p), "weft"))
        return;
    weft_parse_word(p);
    weft_parse_blanks(p);
    const char *at = p->cursor;
    int64_t version = 0;
    if (!weft_parse_number(p, &version))
        weft_parse_fail(p, at, WEFT_ERR_SYNTAX, "expected the version of the language: weft 1");
    else if (version != 1)
        weft_parse_fail(p, at, WEFT_ERR_UNSUPPORTED,
                        "this text is of version %lld of the language; this library reads version 1",
                        (long long)version);
    else
        end_statement(p);
}

/* The rules that no single line can break. Findings without a line of their own are shown at the graph's. */
static void validate(struct weft_parser *p, const char *at)
{
    struct weft_finding *finding;
    const uint32_t count = weft_find_errors(p->root, &p->scratch, &finding);
    for (uint32_t i = 0; i < count; i++) {
        struct weft_place place = weft_parse_place(p, at);
        if (finding[i].node.id)
            place = (struct weft_place){p->options->name, weft_node_of(p->root, finding[i].node)->line, 1, NULL};
        weft_error(p->context, WEFT_ERR_INVALID, &place, "%s", finding[i].message);
        p->errors++;
    }
}

/* All graphs of the text; keeps number `index`, reads others only to report their mistakes. Returns how many there
 * are. */
static uint32_t parse_text(struct weft_parser *p, uint32_t index, struct weft_graph **ret_graph)
{
    uint32_t count = 0;
    bool told = false;
    parse_version(p);
    for (weft_parse_lines(p); p->cursor < p->end && !too_many(p); weft_parse_lines(p)) {
        const struct weft_word word = weft_parse_word(p);
        if (!weft_parse_is(word, "graph")) {
            if (!told)
                weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected a graph, like graph @f(%%x: f32[2,3]) {");
            told = true;
            weft_parse_recover(p);
        } else if (count == index || p->options->keep_going) {
            p->errors_before = p->errors;
            p->brokens = 0;
            parse_graph(p, word.text);
            if (p->errors == p->errors_before)
                validate(p, word.text);
            if (count == index)
                *ret_graph = p->root;
            else
                weft_graph_free(p->root);
            p->root = NULL;
            count++;
            end_statement(p);
        } else {
            skip_block(p);
            count++;
        }
    }
    return count;
}

struct parse_call {
    struct weft_parser parser;
    struct weft_graph *graph;
    uint32_t count;
};

static void release(struct parse_call *call)
{
    if (call->parser.root && call->parser.root != call->graph)
        weft_graph_free(call->parser.root);
    if (call->graph)
        weft_graph_free(call->graph);
    call->graph = NULL;
    weft_arena_close(&call->parser.scratch);
}

static void parse_guarded(struct parse_call *call, uint32_t index)
{
    struct weft_context *context = call->parser.context;
    jmp_buf *const outer = context->on_nomem;
    jmp_buf here;
    if (setjmp(here)) {
        context->on_nomem = outer;
        release(call);
        weft_out_of_memory(context);
    }
    context->on_nomem = &here;
    call->count = parse_text(&call->parser, index, &call->graph);
    context->on_nomem = outer;
}

size_t weft_count_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

struct weft_graph *weft_parse_graph(struct weft_context *context, const char *text, size_t bytes, uint32_t index,
                                    const struct weft_parse_options *options, uint32_t *ret_count)
{
    static const struct weft_parse_options none;
    const size_t mark = weft_count_mark(text, bytes);
    text += mark;
    bytes -= mark;
    struct parse_call call = {.parser = {.context = context, .options = options ? options : &none, .text = text,
                                         .end = text + bytes, .cursor = text, .line_start = text, .line = 1}};
    struct weft_parser *p = &call.parser;
    weft_arena_open(&p->scratch, context);
    parse_guarded(&call, index);
    if (p->errors == 0 && call.count <= index)
        weft_parse_fail(p, p->end, WEFT_ERR_SYNTAX, call.count == 0 ? "there is no graph in the text" :
                        call.count == 1 ? "the text has only %u graph, number 0" :
                        "the text has only %u graphs, from number 0 on", call.count);
    if (ret_count)
        *ret_count = call.count;
    struct weft_graph *graph = p->errors == 0 ? call.graph : NULL;
    if (graph)
        call.graph = NULL;
    release(&call);
    return graph;
}

struct public_call {
    struct weft_context *context;
    const char *text, *name;
    size_t bytes;
    struct weft_graph *graph;
};

static int parse_public(void *arg)
{
    struct public_call *call = arg;
    const struct weft_parse_options options = {.name = call->name};
    call->graph = weft_parse_graph(call->context, call->text, call->bytes, 0, &options, NULL);
    return WEFT_OK; /* the errors that were recorded make the status */
}

int weft_parse(struct weft_context *context, const char *text, size_t bytes, const char *name,
               struct weft_graph **ret_graph)
{
    if (!context || !text || !ret_graph)
        return weft_missing(context);
    struct public_call call = {.context = context, .text = text, .name = name, .bytes = bytes};
    const int status = weft_protected(context, parse_public, &call);
    if (status == WEFT_OK)
        *ret_graph = call.graph;
    return status;
}
