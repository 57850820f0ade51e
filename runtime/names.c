/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: inputs and outputs by their names, which are those of the graph that was compiled: passes may replace an
 * output by a value of another name. */
#include "ir/suggest.h"
#include "runtime/runtime.h"

#include <string.h>

static const char *name_of(const struct weft_graph *source, struct weft_graph *to, weft_val v)
{
    const char *name = source->value[v.id].name;
    return name ? weft_arena_copy(to->arena, name, strlen(name)) : NULL;
}

void weft_plan_keep_names(struct weft_plan *plan, const struct weft_graph *source)
{
    struct weft_graph *g = plan->graph;
    plan->input_name = weft_new(g->arena, const char *, g->params);
    plan->output_name = weft_new(g->arena, const char *, g->returns);
    for (uint32_t i = 0; i < g->params; i++)
        plan->input_name[i] = name_of(source, g, source->param[i]);
    for (uint32_t i = 0; i < g->returns; i++)
        plan->output_name[i] = name_of(source, g, source->ret[i].value);
}

/* The first of that name, or `count`. */
static size_t find(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && (!names[i] || strcmp(names[i], name) != 0))
        i++;
    return i;
}

int weft_plan_find_input(const struct weft_plan *plan, const char *name, size_t *ret_i)
{
    if (!plan || !name || !ret_i)
        return WEFT_ERR_ARGUMENT;
    const size_t i = find(plan->input_name, plan->graph->params, name);
    if (i == plan->graph->params)
        return WEFT_ERR_ARGUMENT;
    *ret_i = i;
    return WEFT_OK;
}

int weft_plan_find_output(const struct weft_plan *plan, const char *name, size_t *ret_i)
{
    if (!plan || !name || !ret_i)
        return WEFT_ERR_ARGUMENT;
    const size_t i = find(plan->output_name, plan->graph->returns, name);
    if (i == plan->graph->returns)
        return WEFT_ERR_ARGUMENT;
    *ret_i = i;
    return WEFT_OK;
}

/* Names what was perhaps meant, else the first of those that there are. */
static int no_port(struct weft_execution *e, const char *what, const char *name, const char *const *names, size_t count)
{
    struct weft_suggest suggest;
    const char *first = NULL;
    weft_suggest_open(&suggest, name, strlen(name));
    for (size_t i = 0; i < count; i++) {
        if (names[i])
            weft_suggest_offer(&suggest, names[i]);
        first = first ? first : names[i];
    }
    const char *meant = weft_suggest_text(&suggest, "");
    if (*meant || !first)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "there is no %s '%.100s'%s", what, name, meant);
    return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "there is no %s '%.100s': the plan has %zu, '%.100s' %s", what,
                               name, count, first, count > 1 ? "first" : "alone");
}

int weft_bind_input_named(struct weft_execution *e, const char *name, const struct weft_tensor *tensor)
{
    size_t i;
    if (!e)
        return WEFT_ERR_ARGUMENT;
    if (!name)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "weft_bind_input_named: the name is NULL");
    if (weft_plan_find_input(e->plan, name, &i) != WEFT_OK)
        return no_port(e, "input", name, e->plan->input_name, e->plan->graph->params);
    return weft_bind_input(e, i, tensor);
}

int weft_bind_output_named(struct weft_execution *e, const char *name, const struct weft_tensor *tensor)
{
    size_t i;
    if (!e)
        return WEFT_ERR_ARGUMENT;
    if (!name)
        return weft_execution_fail(e, WEFT_ERR_ARGUMENT, "weft_bind_output_named: the name is NULL");
    if (weft_plan_find_output(e->plan, name, &i) != WEFT_OK)
        return no_port(e, "output", name, e->plan->output_name, e->plan->graph->returns);
    return weft_bind_output(e, i, tensor);
}
