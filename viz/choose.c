/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c: what a picture shows.
 *
 * The root and the bodies of its `if` and `loop` nodes become scenes, breadth first, so that depth costs no stack. In
 * each scene, what is known before the run (constants, and views, relayouts and casts of them) folds into its
 * consumers' labels. Of layers that repeat one is shown (scopes.h). A focus keeps what is within some edges of one
 * node, in both directions; a limit keeps the first nodes in order. Bodies are shown with the node that owns them. */
#include "viz/dot.h"

#include "ir/suggest.h"

#include <string.h>

static const struct weft_conversion_record **conversions_of(struct weft_picture *picture,
                                                            const struct weft_graph *graph)
{
    const struct weft_conversion_record **by_value =
        weft_new(&picture->arena, const struct weft_conversion_record *, graph->values + 1);
    for (uint32_t i = 0; i < graph->conversions; i++) /* one that is gone is asked for by nobody */
        by_value[graph->conversion[i].to.id] = &graph->conversion[i];
    picture->format_ps += graph->format_ps;
    return by_value;
}

static void add_scene(struct weft_picture *picture, const struct weft_graph *graph, uint32_t parent, weft_node owner,
                      const char *prefix, const char *title)
{
    picture->scene = weft_grow(&picture->arena, picture->scene, &picture->scene_capacity, picture->scenes + 1,
                               sizeof *picture->scene);
    picture->scene[picture->scenes++] = (struct weft_scene){
        .graph = graph,
        .parent = parent,
        .owner = owner,
        .prefix = prefix,
        .title = title,
        .text = weft_value_texts(graph, &picture->arena),
        .conversion = conversions_of(picture, graph),
        .shown = weft_new(&picture->arena, bool, graph->nodes + 1),
        .folded = weft_new(&picture->arena, bool, graph->nodes + 1),
        .maker = weft_new(&picture->arena, Agnode_t *, graph->values + 1),
        .marked = weft_new(&picture->arena, bool, graph->nodes + 1),
    };
}

static void add_body(struct weft_picture *picture, uint32_t parent, weft_node owner, const struct weft_attr *attr)
{
    const struct weft_scene *scene = &picture->scene[parent];
    const char *value = scene->text[weft_result(scene->graph, owner, 0).id];
    const char *word = weft_attr_names[attr->key];
    const char *prefix =
        weft_arena_format(&picture->arena, "%s%s/%s/", scene->prefix, value + (value[0] == '%'), word);
    const char *title = weft_arena_format(&picture->arena, "%s of %s: @%s", word, value,
                                          attr->graph->name ? attr->graph->name : "");
    add_scene(picture, attr->graph, parent, owner, prefix, title);
}

void weft_dot_gather(struct weft_picture *picture)
{
    add_scene(picture, picture->root, 0, WEFT_NO_NODE, "", "");
    for (uint32_t s = 0; s < picture->scenes; s++) {
        const struct weft_graph *graph = picture->scene[s].graph;
        weft_foreach_node(graph, n) {
            const struct weft_node_info *info = weft_node_of(graph, n);
            for (unsigned i = 0; i < info->attrs; i++) {
                if (info->attr[i].kind != WEFT_ATTR_GRAPH)
                    continue;
                add_body(picture, s, n, &info->attr[i]);
            }
        }
    }
}

static bool is_named(const struct weft_scene *scene, weft_node node, const char *name)
{
    const struct weft_graph *graph = scene->graph;
    const struct weft_node_info *info = weft_node_of(graph, node);
    if (info->name && !strcmp(info->name, name))
        return true;
    for (unsigned i = 0; i < info->results; i++) {
        const char *text = scene->text[weft_result(graph, node, i).id];
        if (!strcmp(text, name) || (text[0] == '%' && !strcmp(text + 1, name)))
            return true;
    }
    return false;
}

/* --- scopes and layers that repeat -------------------------------------------------------------------------------- */

enum { MANY_NODES = 60 }; /* a picture of fewer can be read without boxes for scopes */

static bool has_boxes(const struct weft_scene *scene)
{
    for (uint32_t s = 1; s < scene->tree->scopes; s++)
        if (scene->tree->scope[s].items)
            return true;
    return scene->tree->repeats > 0;
}

static bool is_large(const struct weft_scene *scene)
{
    uint32_t nodes = 0;
    weft_foreach_node(scene->graph, n)
        nodes += !scene->folded[n.id];
    return nodes > MANY_NODES;
}

static void find_scopes(struct weft_picture *picture, struct weft_scene *scene)
{
    const struct weft_dot_options *const options = picture->options;
    const struct weft_graph *const graph = scene->graph;
    if (options->scopes < 0 || !(options->scopes || options->focus || options->expands || is_large(scene)))
        return;
    scene->tree = weft_new(&picture->arena, struct weft_scopes, 1);
    *scene->tree = (struct weft_scopes){.graph = graph, .arena = &picture->arena, .skipped = scene->folded,
                                        .text = scene->text};
    weft_scopes_build(scene->tree);
    if (options->repeats >= 0 && !options->focus)
        weft_scopes_repeat(scene->tree, options->expand, options->expands);
    if (!has_boxes(scene))
        scene->tree = NULL;
}

/* Of a scope of the tree. */
typedef void item_fn(void *user, const struct weft_scope_item *item);

static void for_each_item(const struct weft_scopes *tree, item_fn *fn, void *user)
{
    for (uint32_t s = 0; tree && s < tree->scopes; s++)
        for (uint32_t i = 0; i < tree->scope[s].items; i++)
            if (tree->scope[s].item[i].full[0])
                fn(user, &tree->scope[s].item[i]);
}

static void offer_item(void *user, const struct weft_scope_item *item)
{
    weft_suggest_offer(user, item->full);
    weft_suggest_offer_as(user, item->name, item->full);
}

/* Nodes reached so far, in order of distance. */
struct front {
    weft_node *node;
    int32_t *distance; /* by node id, -1: not reached */
    uint32_t count;
};

static void reach(struct front *front, const struct weft_scene *scene, weft_node node, int32_t distance)
{
    if (!node.id || scene->folded[node.id] || front->distance[node.id] >= 0)
        return;
    front->distance[node.id] = distance;
    front->node[front->count++] = node;
}

struct named_scope {
    struct front *front;
    struct weft_scene *scene;
    const char *name;
    bool found;
};

static void reach_scope(void *user, const struct weft_scope_item *item)
{
    struct named_scope *const s = user;
    if (!weft_scope_is_named(item->full, s->name))
        return;
    s->found = true;
    for (uint32_t i = 0; i < item->nodes; i++)
        reach(s->front, s->scene, item->node[i], 0);
}

static void reach_users(struct front *front, const struct weft_scene *scene, weft_val value, int32_t distance)
{
    const struct weft_graph *graph = scene->graph;
    for (uint32_t use = weft_value_of(graph, value)->first_use; use; use = graph->slot[use - 1].next)
        reach(front, scene, graph->slot[use - 1].node, distance);
}

/* Marks what is within the radius of the focus; false if nothing has that name. */
static bool show_focus(struct weft_picture *picture, struct weft_scene *scene)
{
    const struct weft_graph *graph = scene->graph;
    const char *name = picture->options->focus;
    const int32_t radius = picture->options->radius > 0 ? picture->options->radius : 3;
    struct front front = {
        .node = weft_new(&picture->arena, weft_node, graph->nodes + 1),
        .distance = weft_new(&picture->arena, int32_t, graph->nodes + 1),
    };
    memset(front.distance, -1, sizeof *front.distance * (graph->nodes + 1));
    bool found = false;
    weft_foreach_node(graph, n) {
        if (!is_named(scene, n, name))
            continue;
        found = true;
        reach(&front, scene, n, 0);
        for (unsigned i = 0; scene->folded[n.id] && i < weft_node_of(graph, n)->results; i++)
            reach_users(&front, scene, weft_result(graph, n, i), 0); /* a weight: those who show it as a row */
    }
    for (uint32_t p = 0; p < graph->params; p++) {
        const char *text = scene->text[graph->param[p].id];
        if (strcmp(text, name) && strcmp(text + (text[0] == '%'), name))
            continue;
        found = true;
        reach_users(&front, scene, graph->param[p], 1);
    }
    struct named_scope scope = {&front, scene, name, false};
    if (!found)
        for_each_item(scene->tree, reach_scope, &scope);
    for (uint32_t i = 0; i < front.count; i++)
        scene->marked[front.node[i].id] = front.distance[front.node[i].id] == 0;
    for (uint32_t i = 0; i < front.count; i++) {
        const weft_node n = front.node[i];
        scene->shown[n.id] = true;
        if (front.distance[n.id] >= radius)
            continue;
        for (unsigned k = 0; k < weft_node_of(graph, n)->operands; k++)
            reach(&front, scene, weft_def(graph, weft_operand(graph, n, k)), front.distance[n.id] + 1);
        for (unsigned k = 0; k < weft_node_of(graph, n)->results; k++)
            reach_users(&front, scene, weft_result(graph, n, k), front.distance[n.id] + 1);
    }
    return found || scope.found;
}

static void no_such_name(const struct weft_picture *picture, const struct weft_scene *scene, const char *name)
{
    const struct weft_graph *graph = scene->graph;
    struct weft_suggest suggest;
    weft_suggest_open(&suggest, name, strlen(name));
    weft_foreach_node(graph, n) {
        if (graph->node[n.id].name)
            weft_suggest_offer(&suggest, graph->node[n.id].name);
        for (unsigned i = 0; i < graph->node[n.id].results; i++)
            weft_suggest_offer(&suggest, scene->text[weft_result(graph, n, i).id]);
    }
    for (uint32_t p = 0; p < graph->params; p++)
        weft_suggest_offer(&suggest, scene->text[graph->param[p].id]);
    for_each_item(scene->tree, offer_item, &suggest);
    weft_error(picture->context, WEFT_ERR_ARGUMENT, NULL, "no value, node or scope is named '%s'%s", name,
               weft_suggest_text(&suggest, ""));
}

/* What stands somewhere in a scene is called so. */
static bool marks_named(struct weft_scene *scene, const char *name)
{
    bool found = false;
    const struct weft_scopes *const tree = scene->tree;
    for (uint32_t s = 0; tree && s < tree->scopes; s++)
        for (uint32_t i = 0; i < tree->scope[s].items; i++) {
            const struct weft_scope_item *const item = &tree->scope[s].item[i];
            const bool named = weft_scope_is_named(item->full, name);
            for (uint32_t k = 0; k < item->nodes; k++) {
                const bool is_it = named || is_named(scene, item->node[k], name);
                scene->marked[item->node[k].id] |= is_it;
                found |= is_it;
            }
        }
    return found;
}

static bool mark_expanded(struct weft_picture *picture)
{
    const struct weft_dot_options *const options = picture->options;
    for (size_t e = 0; e < options->expands; e++) {
        bool found = false;
        for (uint32_t s = 0; s < picture->scenes; s++)
            found |= marks_named(&picture->scene[s], options->expand[e]);
        if (!found) {
            no_such_name(picture, picture->scene, options->expand[e]);
            return false;
        }
    }
    return true;
}

bool weft_dot_choose(struct weft_picture *picture)
{
    const struct weft_dot_options *options = picture->options;
    const uint32_t limit = options->max_nodes < 0    ? UINT32_MAX
                           : options->max_nodes == 0 ? 2000
                                                     : (uint32_t)options->max_nodes;
    for (uint32_t s = 0; s < picture->scenes; s++) {
        weft_scopes_skip_known(picture->scene[s].graph, picture->scene[s].folded);
        find_scopes(picture, &picture->scene[s]);
    }
    if (!mark_expanded(picture))
        return false;
    for (uint32_t s = 0; s < picture->scenes; s++) {
        struct weft_scene *scene = &picture->scene[s];
        const bool whole = s == 0 ? !options->focus : picture->scene[scene->parent].shown[scene->owner.id];
        if (s == 0 && options->focus && !show_focus(picture, scene)) {
            no_such_name(picture, scene, options->focus);
            return false;
        }
        weft_foreach_node(scene->graph, n) {
            if (scene->folded[n.id])
                continue;
            const bool stands = weft_dot_drawn(scene, n).id == n.id;
            scene->shown[n.id] = stands && (whole || scene->shown[n.id]) && picture->shown < limit;
            if (scene->shown[n.id])
                picture->shown++;
            else if (!stands)
                picture->repeated++;
            else
                picture->hidden++;
        }
        if (options->scopes == 0 && options->expands == 0 && !is_large(scene))
            scene->tree = NULL; /* it was there for the name of the focus */
    }
    return true;
}
