/* SPDX-License-Identifier: Apache-2.0 */
/* mark_aliases: say which values are computed in the memory of others.
 *
 *   %a: f32[64] = relu %x                                  %a: f32[64] = relu %x ! in=%c
 *   %d: f32[64] = mul %y, %y                         →     %d: f32[64] = mul %y, %y ! in=%e
 *   %e: f32[64] = exp %d                                   %e: f32[64] = exp %d ! in=%c
 *   %c: f32[128] = concat %a, %e axis=0                    %c: f32[128] = concat %a, %e axis=0
 *
 * What is decided, in which order, and what is refused: sched/alias.h. A plan decides anew, since it also knows its
 * kernels and, in bodies, how outer values lie; so what stands in a text is for readers and for frameworks with kernels
 * of their own, and a text that claims what is wrong does no harm.
 * A node that makes the new value of a `mut` parameter is moved behind the readers of the old one, where that can be,
 * with its group; in a graph without marks only, since two that stand in each other's way would change places each
 * time. What stands there of an earlier time is decided anew; other pairs of a note stay. What a kernel of a caller
 * computes, its own or its group's, has memory of its own: nobody knows whether it writes with gaps, or over what it
 * reads; and its note is the caller's.
 * Comes last, when the layouts of all values are decided. Needs: nothing. */
#include "passes/passes.h"
#include "sched/alias.h"
#include "sched/select.h"

#include <string.h>

/* What computes each group, chosen as plans choose, once. */
struct choosing {
    struct weft_scheduling scheduling;
    const struct weft_units *units;
    struct weft_step **step; /* by unit */
};

static const struct weft_form *form_of(void *user, weft_node first)
{
    struct choosing *const c = user;
    const struct weft_unit *const unit = weft_unit_of(c->units, first);
    struct weft_step **const step = &c->step[unit->position];
    if (!*step) {
        *step = weft_new(c->scheduling.arena, struct weft_step, 1);
        if (!weft_select_unit(&c->scheduling, unit, *step))
            **step = (struct weft_step){0}; /* open_groups makes nodes of it again */
    }
    return weft_alias_form(*step);
}

/* Gives the note of a node the pair in=WORD, or takes it away (NULL); true if that makes another note. */
static bool mark(struct weft_graph *g, weft_node n, const char *word)
{
    const struct weft_plan_note *note = g->node[n.id].plan;
    const char *before = weft_alias_noted(note);
    if (word ? before && strcmp(word, before) == 0 : !before)
        return false;
    const uint32_t old = note ? note->count : 0;
    const char **key = weft_new(&g->root->scratch, const char *, old + 1);
    const char **value = weft_new(&g->root->scratch, const char *, old + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < old; i++) {
        if (strcmp(note->key[i], "in") == 0)
            continue;
        key[count] = note->key[i];
        value[count++] = note->value[i];
    }
    if (word) {
        key[count] = "in";
        value[count++] = word;
    }
    weft_set_plan(g, n, NULL, count, key, value);
    return true;
}

static bool is_marked(const struct weft_graph *g)
{
    weft_foreach_node(g, n) {
        if (weft_alias_noted(g->node[n.id].plan))
            return true;
    }
    return false;
}

bool weft_pass_mark_aliases(struct weft_graph *graph, const struct weft_target *target)
{
    bool changed = !is_marked(graph) && weft_delay_updates(graph);
    const struct weft_units units = weft_units_find(graph, &graph->root->scratch);
    struct choosing choosing = {.scheduling = {graph, target, &graph->root->scratch}, .units = &units,
                                .step = weft_new(&graph->root->scratch, struct weft_step *, units.count)};
    const struct weft_alias_query query = {.graph = graph, .units = &units, .form = form_of, .user = &choosing,
                                           .keep_kernels = true};
    struct weft_aliases aliases;
    weft_find_aliases(&query, &aliases);
    weft_foreach_node(graph, n) {
        if (weft_alias_has_kernel(graph, n))
            continue;
        const struct weft_alias *alias = &aliases.of[weft_result(graph, n, 0).id]; /* others have one result */
        changed |= mark(graph, n, alias->kind == WEFT_ALIAS_OWN ? NULL
                                                                : weft_alias_word(graph, &aliases, alias->in));
    }
    return changed;
}
