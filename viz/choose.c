/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c: what a picture shows.
 *
 * The root and the bodies of its `if` and `loop` nodes become scenes, breadth first, so that depth costs no stack. In
 * each scene, what is known before the run (constants, and views, relayouts and casts of them) folds into its
 * consumers' labels. A focus keeps what is within some edges of one node, in both directions; a limit keeps the first
 * nodes in order. Bodies are shown with the node that owns them. */
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

/* Constants, and views, relayouts and casts of what is folded. */
static void fold_constants(struct weft_scene *scene)
{
    const struct weft_graph *graph = scene->graph;
    weft_foreach_node(graph, n) {
        const struct weft_op_info *op = weft_op_of(graph, n);
        const bool moves = op->traits & (WEFT_SOURCE | WEFT_VIEW | WEFT_PLACEMENT);
        bool folded = moves || weft_opcode_of(graph, n) == WEFT_OP_cast;
        for (unsigned i = 0; folded && i < weft_node_of(graph, n)->operands; i++) {
            const weft_node def = weft_def(graph, weft_operand(graph, n, i));
            folded = def.id && scene->folded[def.id];
        }
        scene->folded[n.id] = folded;
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
    return found;
}

static void no_such_focus(const struct weft_picture *picture, const struct weft_scene *scene)
{
    const struct weft_graph *graph = scene->graph;
    const char *name = picture->options->focus;
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
    weft_error(picture->context, WEFT_ERR_ARGUMENT, NULL, "no value or node is named '%s'%s", name,
               weft_suggest_text(&suggest, ""));
}

bool weft_dot_choose(struct weft_picture *picture)
{
    const struct weft_dot_options *options = picture->options;
    const uint32_t limit = options->max_nodes < 0    ? UINT32_MAX
                           : options->max_nodes == 0 ? 2000
                                                     : (uint32_t)options->max_nodes;
    for (uint32_t s = 0; s < picture->scenes; s++) {
        struct weft_scene *scene = &picture->scene[s];
        const bool whole = s == 0 ? !options->focus : picture->scene[scene->parent].shown[scene->owner.id];
        fold_constants(scene);
        if (s == 0 && options->focus && !show_focus(picture, scene)) {
            no_such_focus(picture, scene);
            return false;
        }
        weft_foreach_node(scene->graph, n) {
            if (scene->folded[n.id])
                continue;
            scene->shown[n.id] = (whole || scene->shown[n.id]) && picture->shown < limit;
            if (scene->shown[n.id])
                picture->shown++;
            else
                picture->hidden++;
        }
    }
    return true;
}
