/* SPDX-License-Identifier: Apache-2.0 */
/* outside.c: passes of the caller's. Around one, as around weft's own (run.c): skip list, time; and the graph is
 * validated, whatever the build, since nobody has tested the pass. */
#include "ir/public.h"
#include "ir/validate.h"
#include "passes/passes.h"

#include <string.h>

struct weft_outside_pass {
    struct weft_outside_pass *next;
    struct weft_pass pass;
    int opcode;       /* of rewrite; 0: all */
    char name[64];
};

/* --- the register ------------------------------------------------------------------------------------------------- */

static const struct weft_outside_pass *find(const struct weft_context *context, const char *name)
{
    const struct weft_outside_pass *p = context->passes;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    return p;
}

bool weft_outside_pass_exists(const struct weft_context *context, const char *name) { return find(context, name); }

void weft_outside_passes_free(struct weft_context *context)
{
    for (struct weft_outside_pass *p = context->passes, *next; p; p = next) {
        next = p->next;
        weft_release(context, p, sizeof *p);
    }
}

struct registration {
    struct weft_context *context;
    const struct weft_pass *given;
};

static int add_pass(void *arg)
{
    const struct registration *r = arg;
    struct weft_context *const context = r->context;
    struct weft_pass pass;
    if (!weft_take_options(&pass, sizeof pass, r->given))
        return weft_wrong(context, NULL, "weft_pass.size is not set");
    const size_t length = pass.name ? strlen(pass.name) : 0;
    if (length == 0 || length > 63 ||
        strspn(pass.name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != length)
        return weft_wrong(context, pass.name, "the name of a pass is letters, digits and _, up to 63");
    if (weft_pass_find(pass.name) || find(context, pass.name))
        return weft_wrong(context, pass.name, "there is a pass of this name already");
    if (!pass.run == !pass.rewrite)
        return weft_wrong(context, pass.name, "a pass has either `run` or `rewrite`");
    if (pass.place < WEFT_PASS_BY_NAME || pass.place > WEFT_PASS_LAST)
        return weft_wrong(context, pass.name, "%d is no place of a pass", pass.place);
    const int opcode = pass.op ? weft_opcode_find(pass.op, strlen(pass.op)) : 0;
    if (pass.op && (!opcode || !pass.rewrite))
        return weft_wrong(context, pass.name, opcode ? "an op is for `rewrite`" : "it is about '%.64s', which is no op",
                          pass.op);
    struct weft_outside_pass **end = &context->passes, *const added = weft_allocate(context, sizeof *added);
    if (!added)
        return WEFT_ERR_NOMEM;
    *added = (struct weft_outside_pass){.pass = pass, .opcode = opcode};
    memcpy(added->name, pass.name, length);
    while (*end)
        end = &(*end)->next;
    *end = added;
    return WEFT_OK;
}

int weft_register_pass(struct weft_context *context, const struct weft_pass *pass)
{
    if (!context || !pass)
        return weft_missing(context);
    return weft_protected(context, add_pass, &(struct registration){context, pass});
}

/* --- running one -------------------------------------------------------------------------------------------------- */

/* Each node once more for as long as some node changes; what never ends is ended. */
static int rewrite_nodes(const struct weft_outside_pass *p, struct weft_graph *g)
{
    enum { MOST_ROUNDS = 64 };
    int changed = 0;
    bool again = true;
    for (int round = 0; round < MOST_ROUNDS && again; round++) {
        again = false;
        for (weft_node n = g->first, next; n.id; n = next) {
            next = g->node[n.id].next; /* it stays where an erased node was */
            if (g->node[n.id].dead || (p->opcode && weft_opcode_of(g, n) != p->opcode))
                continue;
            const int status = p->pass.rewrite(p->pass.user, g, weft_node_out(g, n));
            if (status < 0)
                return status;
            again |= status > 0;
        }
        changed |= again;
    }
    if (again)
        weft_add_remark_at(g, p->name, "", "refused", "a %dth round, as each before it has changed something",
                           MOST_ROUNDS + 1);
    return changed;
}

/* A body that a node uses stays what its users were told, parameters and types of results; what it computes them by may
 * be edited while a pass is at work. */
static int run_open(const struct weft_outside_pass *p, struct weft_graph *g, const struct weft_target *target)
{
    const bool was_edited = g->is_edited;
    g->is_edited = true;
    const int status = p->pass.run ? p->pass.run(p->pass.user, g, target) : rewrite_nodes(p, g);
    g->is_edited = was_edited;
    return status;
}

static int run_on(const struct weft_outside_pass *p, struct weft_graph *g, const struct weft_target *target)
{
    int changed = 0;
    for (uint32_t i = 0; i < g->bodies; i++) { /* depth is bounded by WEFT_MAX_DEPTH */
        const int status = run_on(p, g->body[i], target);
        if (status < 0)
            return status;
        changed |= status;
    }
    const int status = run_open(p, g, target);
    return status < 0 ? status : changed | (status > 0);
}

static int run_checked(const struct weft_outside_pass *p, struct weft_graph *g, const struct weft_target *target)
{
    struct weft_context *const context = g->context;
    const int32_t errors = context->error_count;
    const int status = run_on(p, g, target);
    if (status < 0 && context->error_count == errors)
        weft_error(context, status, &(struct weft_place){.file = g->file, .where = p->name},
                   "the pass ended with %s", weft_status_text(status));
    else if (status >= 0 && !weft_validate_graph(g->root))
        weft_error(context, WEFT_ERR_INVALID, &(struct weft_place){.file = g->file, .where = p->name},
                   "the pass left a graph that is not valid");
    return context->error_count > errors ? context->error_status : status;
}

static int run_timed(const struct weft_outside_pass *p, struct weft_graph *g, const struct weft_target *target)
{
    if (weft_environment_names("WEFT_SKIP", p->name, /* all= */ false))
        return 0;
    struct weft_pass_record record = {.pass = p->name, .nodes_before = g->live_nodes};
    const int64_t rewrites = g->root->rewrites, start = weft_now_ns();
    const int status = run_checked(p, g, target ? target : &g->context->target);
    record.ns = weft_now_ns() - start;
    record.changed = status > 0;
    record.nodes_after = g->live_nodes;
    record.rewrites = g->root->rewrites - rewrites;
    weft_add_pass_record(g->root, &record);
    return status;
}

int weft_run_outside_pass(struct weft_graph *graph, const char *name, const struct weft_target *target)
{
    const struct weft_outside_pass *const p = find(graph->context, name);
    return p ? run_timed(p, graph, target) : WEFT_ERR_ARGUMENT;
}

int weft_run_outside_passes(struct weft_pipeline *pipe, int place)
{
    int changed = 0;
    for (const struct weft_outside_pass *p = pipe->graph->context->passes; p; p = p->next) {
        if (p->pass.place != place || !weft_pipeline_takes(pipe, p->name))
            continue;
        const int status = run_timed(p, pipe->graph, pipe->target);
        if (status < 0)
            return status;
        pipe->changes += status > 0;
        changed |= status;
        weft_pipeline_ran(pipe, p->name);
    }
    return changed;
}
