/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.c: what the environment asks to be checked and shown around a pass.
 *
 *   WEFT_DEBUG=validate,clone,reparse   more checks after each pass, see enum weft_debug
 *   WEFT_PRINT=pass,…                   the graph after these passes, as notes through the context's callback
 *   WEFT_TRACE=folder                   000-input.weft, and NNN-pass.weft after each pass that changed something
 *
 * With these on, the copying, printing and parsing code is exercised by every test that runs a pass. The clone
 * check does not go on with the copy, whose address the caller does not have: it runs the pass on both and
 * compares, so it also finds a pass whose result depends on ids, addresses or leftovers. A failed check is a
 * broken invariant of weft, not an error of the user. */
#include "passes/alternatives.h"
#include "passes/passes.h"

#include "ir/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same_name(const char *a, size_t length, const char *b)
{
    for (size_t i = 0; i < length; i++)
        if (b[i] == '\0' || (a[i] == '-' ? '_' : a[i]) != (b[i] == '-' ? '_' : b[i]))
            return false;
    return b[length] == '\0';
}

bool weft_environment_names(const char *variable, const char *name, bool all)
{
    const char *const list = getenv(variable);
    return weft_list_names(list, name) || (all && weft_list_names(list, "all"));
}

bool weft_list_names(const char *list, const char *name)
{
    while (list && *list) {
        const size_t length = strcspn(list, ",");
        if (same_name(list, length, name))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* --- texts ------------------------------------------------------------------------------------------------------ */

/* In the graph's scratch memory. */
static const char *text_of(struct weft_graph *owner, const struct weft_graph *graph, bool all_inline)
{
    struct weft_text text = {.context = graph->context, .arena = &owner->root->scratch};
    weft_print_graph(graph, &(struct weft_print_options){.all_inline = all_inline}, &text);
    return text.length ? text.data : "";
}

static void deliver_lines(struct weft_graph *graph, const char *pass, const char *text)
{
    const struct weft_place place = {.where = pass};
    while (*text) {
        const size_t length = strcspn(text, "\n");
        weft_note(graph->context, WEFT_NOTE, &place, "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static void write_snapshot(struct weft_graph *graph, uint32_t number, const char *pass)
{
    const char *folder = getenv("WEFT_TRACE");
    const char *path = weft_arena_format(&graph->root->scratch, "%s/%03u-%s.weft", folder, number, pass);
    const char *text = text_of(graph, graph->root, /* all_inline= */ false);
    FILE *file = fopen(path, "w");
    const bool written = file && fwrite(text, 1, strlen(text), file) == strlen(text);
    if (!file || fclose(file) != 0 || !written)
        weft_note(graph->context, WEFT_WARNING, &(struct weft_place){.file = path},
                  "cannot write this snapshot of WEFT_TRACE: %s", strerror(errno));
}

/* --- checks ----------------------------------------------------------------------------------------------------- */

static void expect(struct weft_inspection *inspection, bool holds, const char *message)
{
    if (!holds)
        weft_error(inspection->graph->context, WEFT_ERR_INVALID, &(struct weft_place){.where = inspection->graph->name},
                   "after pass %s: %s", inspection->pass->name, message);
    weft_assert(holds);
}

static void expect_same_text(struct weft_inspection *inspection, const struct weft_graph *other, const char *message)
{
    struct weft_graph *graph = inspection->graph->root;
    const char *ours = text_of(graph, graph, /* all_inline= */ false);
    const char *theirs = text_of(graph, other, /* all_inline= */ false);
    expect(inspection, strcmp(ours, theirs) == 0, message);
}

static void check_reparse(struct weft_inspection *inspection)
{
    struct weft_graph *graph = inspection->graph->root;
    const char *text = text_of(graph, graph, /* all_inline= */ true);
    uint32_t graphs = 0;
    struct weft_graph *again = weft_parse_graph(graph->context, text, strlen(text), 0,
                                                &(struct weft_parse_options){.name = graph->name}, &graphs);
    expect(inspection, again != NULL, "the printed graph does not parse");
    if (!again)
        return;
    expect(inspection, strcmp(text, text_of(graph, again, /* all_inline= */ true)) == 0,
           "the printed graph parses to another graph");
    weft_graph_free(again);
}

/* Ranks that no edit has taken back are those that would be computed anew. */
static void check_order(struct weft_inspection *inspection, const struct weft_graph *graph)
{
    uint32_t rank = 0;
    bool right = true;
    if (!(graph->analyses & WEFT_ORDER))
        return;
    weft_foreach_node(graph, n) {
        right &= graph->position[n.id] == ++rank;
    }
    expect(inspection, right, "the order of nodes is said to be known, and is wrong");
}

/* --- words that nobody knows ------------------------------------------------------------------------------------- */

static bool is_pass(const char *word, size_t length)
{
    for (unsigned i = 0; i < weft_pass_count; i++)
        if (same_name(word, length, weft_passes[i].name))
            return true;
    return false;
}

static void warn_of_word(struct weft_context *context, const char *variable, const char *const *known, bool passes,
                         const char *word, size_t length)
{
    struct weft_suggest suggest;
    weft_suggest_open(&suggest, word, length);
    for (unsigned i = 0; known[i]; i++)
        weft_suggest_offer(&suggest, known[i]);
    for (unsigned i = 0; passes && i < weft_pass_count; i++)
        weft_suggest_offer(&suggest, weft_passes[i].name);
    weft_note(context, WEFT_WARNING, &(struct weft_place){.where = variable}, "nothing is called '%.*s'%s", (int)length,
              word, weft_suggest_text(&suggest, ""));
}

/* A word with a slip of the pen would otherwise do nothing, silently. Of `pass.rule`, the pass is looked at. */
static void warn_of_words(struct weft_context *context, const char *variable, const char *const *known, bool passes)
{
    const char *list = getenv(variable);
    while (list && *list) {
        const size_t length = strcspn(list, ",");
        bool right = length == 0 || (passes && is_pass(list, strcspn(list, ",.")));
        for (unsigned i = 0; known[i] && !right; i++)
            right = same_name(list, length, known[i]);
        if (!right)
            warn_of_word(context, variable, known, passes, list, length);
        list += length + (list[length] == ',');
    }
}

static void warn_of_alternatives(struct weft_context *context)
{
    enum { MOST = 64 };
    struct weft_alternative_entry own[MOST];
    const char *known[MOST + 2] = {"all"};
    for (unsigned i = 0; i < MOST; i++) {
        const struct weft_alternative_entry *const entry = weft_alternative_at(context, i, &own[i]);
        known[i + 1] = entry ? entry->name : NULL;
        if (!entry)
            break;
    }
    warn_of_words(context, "WEFT_ALTERNATIVE", known, /* passes= */ false);
}

static void warn_of_number(struct weft_context *context, const char *variable, bool zero, const char *meaning)
{
    const char *text = getenv(variable);
    const bool is_zero = text && !text[strspn(text, "0")];
    if (text && (!*text || text[strspn(text, "0123456789")] || (is_zero && !zero)))
        weft_note(context, WEFT_WARNING, &(struct weft_place){.where = variable}, "'%s' is not %s", text, meaning);
}

static void warn_of_environment(struct weft_context *context)
{
    static const char *const all[] = {"all", NULL}, *const besides[] = {"constants", NULL}; /* no pass (runtime) */
    static const char *const checks[] = {"validate", "clone", "reparse", "poison", "all", NULL};
    warn_of_words(context, "WEFT_SKIP", besides, /* passes= */ true);
    warn_of_words(context, "WEFT_PRINT", all, /* passes= */ true);
    warn_of_words(context, "WEFT_DEBUG", checks, /* passes= */ false);
    warn_of_alternatives(context);
    warn_of_number(context, "WEFT_STOP_AFTER", /* zero= */ true, "a number of rewrites");
    warn_of_number(context, "WEFT_CHOICE", /* zero= */ false, "the number of a choice, from 1 on");
}

/* --- around a pass ---------------------------------------------------------------------------------------------- */

static uint32_t debug_flags(void)
{
    static const char *const name[] = {"validate", "clone", "reparse"};
    uint32_t flags = 0;
    for (unsigned i = 0; i < 3; i++)
        if (weft_environment_names("WEFT_DEBUG", name[i], /* all= */ true))
            flags |= 1u << i;
#ifndef NDEBUG
    flags |= WEFT_DEBUG_VALIDATE;
#endif
    return flags;
}

void weft_inspect_before(struct weft_inspection *inspection)
{
    struct weft_graph *root = inspection->graph->root;
    inspection->debug = debug_flags();
    if (root->records == 0 && inspection->graph == root)
        warn_of_environment(root->context);
    if (getenv("WEFT_TRACE") && root->records == 0)
        write_snapshot(root, 0, "input");
    if (!(inspection->debug & WEFT_DEBUG_CLONE) || inspection->graph != root)
        return;
    weft_graph_copy(root, &inspection->copy);
    inspection->copy->rewrites = root->rewrites;
    inspection->copy->rewrite_limit = root->rewrite_limit;
    expect_same_text(inspection, inspection->copy, "a copy made before it prints another text");
}

void weft_inspect_after(struct weft_inspection *inspection, bool changed)
{
    struct weft_graph *graph = inspection->graph, *root = graph->root;
    const char *pass = inspection->pass->name;
    check_order(inspection, graph);
    if (changed && (inspection->debug & WEFT_DEBUG_VALIDATE))
        expect(inspection, weft_validate_graph(root), "the graph is not valid");
    if (inspection->copy) {
        expect_same_text(inspection, inspection->copy, "it did something else to a copy of the graph");
        weft_graph_free(inspection->copy);
    }
    if (inspection->debug & WEFT_DEBUG_REPARSE)
        check_reparse(inspection);
    if (weft_environment_names("WEFT_PRINT", pass, /* all= */ true))
        deliver_lines(graph, pass, text_of(graph, root, /* all_inline= */ false));
    if (changed && getenv("WEFT_TRACE"))
        write_snapshot(root, root->records, pass);
}
