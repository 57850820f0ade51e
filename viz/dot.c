/* SPDX-License-Identifier: Apache-2.0 */
/* dot.c: a graph as DOT text, through cgraph, which knows how to quote and always writes what Graphviz reads back.
 *
 *   gather, choose   what is drawn (choose.c)
 *   draw             parameters, nodes in order, results; then the edges
 *   write            agwrite into memory
 *
 * A box is named after its first result, so that pictures of one graph before and after a pass can be compared line by
 * line; boxes and edges are made in graph order, and agwrite keeps that order: same graph, same bytes.
 *
 * Not done: layout. Rendering is left to the `dot` program, because linking gvc would bring its plug-ins into the
 * process. */
#include "viz/dot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_LABEL, NODE_TOOLTIP, NODE_ID };
enum { EDGE_STYLE, EDGE_COLOR, EDGE_PENWIDTH, EDGE_TOOLTIP };

/* --- draw --------------------------------------------------------------------------------------------------------- */

static Agsym_t *declare(Agraph_t *graph, int kind, const char *name, const char *value)
{
    return agattr(graph, kind, (char *)name, (char *)value);
}

static Agnode_t *draw_box(struct weft_picture *picture, Agraph_t *where, const char *name, const char *tooltip)
{
    Agnode_t *box = agnode(where, (char *)weft_dot_plain(picture, name), 1);
    char *html = agstrdup_html(picture->agraph, picture->label.data);
    weft_dot_set(box, picture->node_attr[NODE_LABEL], html);
    agstrfree(picture->agraph, html);
    weft_dot_set(box, picture->node_attr[NODE_TOOLTIP], weft_dot_plain(picture, tooltip));
    weft_dot_set(box, picture->node_attr[NODE_ID], weft_dot_plain(picture, name));
    return box;
}

static Agraph_t *open_cluster(struct weft_picture *picture, Agraph_t *where, const char *name, const char *label,
                              const char *style)
{
    Agraph_t *cluster = agsubg(where, (char *)weft_dot_plain(picture, name), 1);
    weft_dot_set(cluster, picture->graph_attr[WEFT_GRAPH_LABEL], weft_dot_plain(picture, label));
    weft_dot_set(cluster, picture->graph_attr[WEFT_GRAPH_STYLE], style);
    weft_dot_set(cluster, picture->graph_attr[WEFT_GRAPH_COLOR], "#666666");
    if (picture->scope_attr[WEFT_SCOPE_PEN]) { /* the boxes around it hand theirs on */
        weft_dot_set(cluster, picture->scope_attr[WEFT_SCOPE_INK], "black");
        weft_dot_set(cluster, picture->scope_attr[WEFT_SCOPE_PEN], "1");
        weft_dot_set(cluster, picture->scope_attr[WEFT_SCOPE_SIDE], "l");
    }
    return cluster;
}

/* Operands and uses of a node that the picture leaves out. */
static unsigned count_hidden(const struct weft_scene *scene, weft_node node)
{
    const struct weft_graph *graph = scene->graph;
    unsigned hidden = 0;
    for (unsigned i = 0; i < weft_node_of(graph, node)->operands; i++) {
        const weft_node def = weft_def(graph, weft_operand(graph, node, i));
        hidden += def.id && !scene->folded[def.id] && !scene->shown[weft_dot_drawn(scene, def).id];
    }
    for (unsigned i = 0; i < weft_node_of(graph, node)->results; i++) {
        const weft_val result = weft_result(graph, node, i);
        for (uint32_t use = weft_value_of(graph, result)->first_use; use; use = graph->slot[use - 1].next)
            hidden += !scene->shown[weft_dot_drawn(scene, graph->slot[use - 1].node).id];
    }
    return hidden;
}

/* Is a parameter drawn: in a whole picture always, in a cut one where a drawn node reads it. */
static bool has_drawn_user(const struct weft_scene *scene, weft_val value)
{
    const struct weft_graph *graph = scene->graph;
    for (uint32_t use = weft_value_of(graph, value)->first_use; use; use = graph->slot[use - 1].next)
        if (scene->shown[graph->slot[use - 1].node.id])
            return true;
    return false;
}

/* A value's text without its '%', which cgraph takes for the mark of its own anonymous names. */
static const char *box_name(struct weft_picture *picture, const struct weft_scene *scene, const char *text)
{
    return weft_arena_format(&picture->arena, "%s%s", scene->prefix, text + (text[0] == '%'));
}

/* The box around a node's unit. */
static Agraph_t *home_of(const struct weft_scene *scene, weft_node node)
{
    return scene->home && scene->home[node.id] ? scene->home[node.id] : scene->cluster;
}

/* A group is one box with its nodes inside: what computes it, and how long that takes. */
static Agraph_t *open_group(struct weft_picture *picture, struct weft_scene *scene, weft_node node)
{
    const struct weft_graph *graph = scene->graph;
    const struct weft_group *group = &graph->group[weft_node_of(graph, node)->group];
    const char *name = weft_arena_format(&picture->arena, "cluster_%s%s", scene->prefix, group->name);
    return open_cluster(picture, home_of(scene, node), name, weft_dot_group_label(picture, scene, node), "rounded");
}

static void draw_nodes(struct weft_picture *picture, struct weft_scene *scene)
{
    const struct weft_graph *graph = scene->graph;
    Agraph_t **cluster = weft_new(&picture->arena, Agraph_t *, graph->groups + 1);
    for (uint32_t p = 0; p < graph->params; p++) {
        const weft_val value = graph->param[p];
        if ((picture->hidden || picture->repeated) && !has_drawn_user(scene, value))
            continue;
        weft_dot_port_label(picture, scene, weft_value_of(graph, value)->is_mut      ? "mut parameter"
                                            : weft_value_of(graph, value)->is_static ? "static parameter" : "parameter",
                            value);
        const char *text = scene->text[value.id];
        scene->maker[value.id] =
            draw_box(picture, scene->cluster, box_name(picture, scene, text), text);
    }
    weft_foreach_node(graph, n) {
        if (!scene->shown[n.id])
            continue;
        const struct weft_node_info *info = weft_node_of(graph, n);
        if (info->group && !cluster[info->group])
            cluster[info->group] = open_group(picture, scene, n);
        weft_dot_node_label(picture, scene, n, picture->hidden ? count_hidden(scene, n) : 0);
        const char *text = scene->text[weft_result(graph, n, 0).id];
        Agraph_t *const where = info->group ? cluster[info->group] : home_of(scene, n);
        Agnode_t *box = draw_box(picture, where, box_name(picture, scene, text),
                                 info->name ? info->name : text);
        for (unsigned i = 0; i < info->results; i++)
            scene->maker[weft_result(graph, n, i).id] = box;
    }
}

static void draw_edge(struct weft_picture *picture, Agnode_t *from, Agnode_t *to, const char *tooltip, bool moves,
                      bool control)
{
    Agedge_t *edge = agedge(picture->agraph, from, to, NULL, 1);
    weft_dot_set(edge, picture->edge_attr[EDGE_TOOLTIP], weft_dot_plain(picture, tooltip));
    if (moves) {
        weft_dot_set(edge, picture->edge_attr[EDGE_COLOR], "#c00000");
        weft_dot_set(edge, picture->edge_attr[EDGE_PENWIDTH], "3");
    }
    if (control)
        weft_dot_set(edge, picture->edge_attr[EDGE_STYLE], "dashed");
}

/* Does the plan say that the kernel of a node, or of its group, reads this value in another order than it writes? The
 * note is "%x" or "[%x %y]". */
static bool is_turned(const struct weft_graph *graph, weft_node node, const char *name)
{
    const struct weft_node_info *const info = weft_node_of(graph, node);
    const struct weft_plan_note *const note = info->group ? graph->group[info->group].plan : info->plan;
    const size_t length = strlen(name);
    const char *at = NULL;
    for (uint32_t i = 0; note && i < note->count && !at; i++)
        at = strcmp(note->key[i], "turns") == 0 ? note->value[i] : NULL;
    bool found = false;
    for (; at && *at && !found; at += strcspn(at, " ")) {
        at += strspn(at, "[ ");
        found = strncmp(at, name, length) == 0 && (!at[length] || strchr(" ]", at[length]));
    }
    return found;
}

/* The box that stands for what makes a value, or NULL. */
static Agnode_t *maker_of(const struct weft_scene *scene, weft_val value)
{
    const weft_node def = weft_def(scene->graph, value), drawn = weft_dot_drawn(scene, def);
    if (!def.id || drawn.id == def.id)
        return scene->maker[value.id];
    const uint32_t result = value.id - scene->graph->node[def.id].first_result;
    return scene->maker[weft_result(scene->graph, drawn, result).id];
}

static bool is_of_other_copy(const struct weft_scene *scene, weft_node def, weft_node reader)
{
    return scene->tree && def.id && !scene->folded[def.id] && weft_scopes_are_in_copies(scene->tree, def, reader);
}

static void draw_operands(struct weft_picture *picture, struct weft_scene *scene, weft_node n)
{
    const struct weft_graph *graph = scene->graph;
    const bool places = weft_op_of(graph, n)->traits & WEFT_PLACEMENT;
    for (unsigned i = 0; i < weft_node_of(graph, n)->operands; i++) {
        const weft_val value = weft_operand(graph, n, i);
        Agnode_t *const from = maker_of(scene, value);
        if (from && !is_of_other_copy(scene, weft_def(graph, value), n))
            draw_edge(picture, from, scene->maker[weft_result(graph, n, 0).id],
                      weft_arena_format(&picture->arena, "%s: %s", scene->text[value.id],
                                        weft_dot_type(picture, graph, value)),
                      places || is_turned(graph, n, scene->text[value.id]), /* control= */ false);
    }
}

/* What a layer that is not drawn reads from elsewhere than the one that stands for it: a dashed edge to the latter. */
static void draw_repeated_operands(struct weft_picture *picture, struct weft_scene *scene, weft_node n)
{
    const struct weft_graph *graph = scene->graph;
    const weft_node drawn = weft_dot_drawn(scene, n);
    if (scene->folded[n.id] || drawn.id == n.id || !scene->shown[drawn.id])
        return;
    Agnode_t *const to = scene->maker[weft_result(graph, drawn, 0).id];
    for (unsigned i = 0; i < weft_node_of(graph, n)->operands; i++) {
        const weft_val value = weft_operand(graph, n, i);
        Agnode_t *const from = maker_of(scene, value);
        if (!from || from == to || is_of_other_copy(scene, weft_def(graph, value), n) ||
            agedge(picture->agraph, from, to, NULL, 0))
            continue;
        draw_edge(picture, from, to, weft_arena_format(&picture->arena, "%s, read by layers that are not drawn",
                                                       scene->text[value.id]), false, /* control= */ true);
    }
}

/* Of results of layers that are not drawn none is, if the drawn one has the like. */
static bool is_return_drawn(const struct weft_picture *picture, const struct weft_scene *scene, weft_val value)
{
    const weft_node def = weft_def(scene->graph, value), drawn = weft_dot_drawn(scene, def);
    if (picture->hidden && !maker_of(scene, value))
        return false;
    const uint32_t result = def.id ? value.id - scene->graph->node[def.id].first_result : 0;
    return !def.id || drawn.id == def.id ||
           !weft_value_of(scene->graph, weft_result(scene->graph, drawn, result))->returns;
}

static void draw_edges(struct weft_picture *picture, struct weft_scene *scene)
{
    const struct weft_graph *graph = scene->graph;
    weft_foreach_node(graph, n)
        if (scene->shown[n.id])
            draw_operands(picture, scene, n);
    if (scene->tree) {
        weft_foreach_node(graph, n)
            draw_repeated_operands(picture, scene, n);
    }
    for (uint32_t r = 0; r < graph->returns; r++) {
        const weft_val value = graph->ret[r].value;
        if (!is_return_drawn(picture, scene, value))
            continue;
        const weft_val mut = graph->ret[r].mut;
        const char *target = mut.id ? scene->text[mut.id] : "";
        weft_dot_port_label(picture, scene,
                            mut.id ? weft_arena_format(&picture->arena, "return mut %s =", target) : "return", value);
        const char *name = weft_arena_format(&picture->arena, "%sreturn %u", scene->prefix, (unsigned)r);
        Agnode_t *box = draw_box(picture, scene->cluster, name, scene->text[value.id]);
        if (maker_of(scene, value))
            draw_edge(picture, maker_of(scene, value), box, weft_dot_type(picture, graph, value), false, false);
    }
}

/* A dashed edge from `if` or `loop` to what its body begins with. */
static void draw_control(struct weft_picture *picture, const struct weft_scene *scene)
{
    const struct weft_scene *parent = &picture->scene[scene->parent];
    Agnode_t *from = parent->maker[weft_result(parent->graph, scene->owner, 0).id];
    Agnode_t *first = agfstnode(scene->cluster);
    if (from && first)
        draw_edge(picture, from, first, "runs", false, /* control= */ true);
}

static void draw(struct weft_picture *picture)
{
    for (uint32_t s = 0; s < picture->scenes; s++) {
        struct weft_scene *scene = &picture->scene[s];
        const struct weft_scene *parent = &picture->scene[scene->parent];
        if (s == 0)
            scene->cluster = picture->agraph;
        else if (parent->cluster && parent->shown[scene->owner.id])
            scene->cluster = open_cluster(picture, parent->cluster,
                                          weft_arena_format(&picture->arena, "cluster_%s", scene->prefix),
                                          scene->title, "dashed");
        if (!scene->cluster)
            continue;
        if (scene->tree)
            weft_dot_open_scopes(picture, scene);
        draw_nodes(picture, scene);
        draw_edges(picture, scene);
        if (s > 0)
            draw_control(picture, scene);
    }
}

/* --- write -------------------------------------------------------------------------------------------------------- */

/* agwrite must not be left by a jump, so its text is collected in plain memory first. */
static int put_string(void *channel, const char *string)
{
    struct weft_dot_sink *sink = channel;
    const size_t length = strlen(string);
    if (sink->length + length >= sink->capacity && !sink->failed) {
        const size_t capacity = 2 * (sink->length + length) + 4096;
        char *data = realloc(sink->data, capacity);
        sink->failed = !data;
        if (data) {
            sink->data = data;
            sink->capacity = capacity;
        }
    }
    if (sink->failed)
        return EOF;
    memcpy(sink->data + sink->length, string, length);
    sink->length += length;
    return 0;
}

static int flush_nothing(void *channel)
{
    return 0;
}

static void open_agraph(struct weft_picture *picture)
{
    static const struct {
        int kind;
        const char *name, *value;
    } looks[] = {
        {AGRAPH, "weft_version", WEFT_VERSION}, {AGRAPH, "rankdir", "TB"}, {AGRAPH, "fontname", "DejaVu Sans"},
        {AGRAPH, "fontsize", "11"}, {AGRAPH, "labelloc", "t"}, {AGNODE, "shape", "plain"},
        {AGNODE, "fontname", "DejaVu Sans"}, {AGNODE, "fontsize", "10"}, {AGEDGE, "arrowsize", "0.6"},
    };
    picture->io = (Agiodisc_t){.putstr = put_string, .flush = flush_nothing};
    picture->discipline = (Agdisc_t){.id = &AgIdDisc, .io = &picture->io};
    const char *name = picture->scene[0].graph->name ? picture->scene[0].graph->name : "";
    Agraph_t *g = picture->agraph = agopen((char *)weft_dot_plain(picture, name), Agdirected, &picture->discipline);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        declare(g, looks[i].kind, looks[i].name, looks[i].value);
    picture->graph_attr[WEFT_GRAPH_LABEL] = declare(g, AGRAPH, "label", "");
    picture->graph_attr[WEFT_GRAPH_STYLE] = declare(g, AGRAPH, "style", "");
    picture->graph_attr[WEFT_GRAPH_COLOR] = declare(g, AGRAPH, "color", "#888888");
    bool scopes = false;
    for (uint32_t s = 0; s < picture->scenes; s++)
        scopes |= picture->scene[s].tree != NULL;
    if (scopes) { /* pictures without any stay as short as they were */
        picture->scope_attr[WEFT_SCOPE_FILL] = declare(g, AGRAPH, "fillcolor", "#ffffff");
        picture->scope_attr[WEFT_SCOPE_INK] = declare(g, AGRAPH, "fontcolor", "#000000");
        picture->scope_attr[WEFT_SCOPE_PEN] = declare(g, AGRAPH, "penwidth", "1");
        picture->scope_attr[WEFT_SCOPE_SIDE] = declare(g, AGRAPH, "labeljust", "c");
    }
    picture->node_attr[NODE_LABEL] = declare(g, AGNODE, "label", "");
    picture->node_attr[NODE_TOOLTIP] = declare(g, AGNODE, "tooltip", "");
    picture->node_attr[NODE_ID] = declare(g, AGNODE, "id", "");
    picture->edge_attr[EDGE_STYLE] = declare(g, AGEDGE, "style", "solid");
    picture->edge_attr[EDGE_COLOR] = declare(g, AGEDGE, "color", "#444444");
    picture->edge_attr[EDGE_PENWIDTH] = declare(g, AGEDGE, "penwidth", "1");
    picture->edge_attr[EDGE_TOOLTIP] = declare(g, AGEDGE, "tooltip", "");
}

/* A value of the root by its name. */
struct named_value {
    const char *name;
    weft_node node;
};

static int order_of_names(const void *a, const void *b)
{
    return strcmp(((const struct named_value *)a)->name, ((const struct named_value *)b)->name);
}

/* All values of the root by name, for find_named. */
static struct named_value *sort_names(struct weft_picture *picture, size_t *ret_values)
{
    const struct weft_graph *graph = picture->root;
    struct named_value *value = weft_new(&picture->arena, struct named_value, graph->values + 1);
    const char **label = weft_value_labels(graph, &picture->arena);
    size_t values = 0;
    weft_foreach_node(graph, n)
        for (unsigned i = 0; i < weft_node_of(graph, n)->results; i++)
            value[values++] = (struct named_value){label[weft_result(graph, n, i).id], n};
    qsort(value, values, sizeof *value, order_of_names);
    *ret_values = values;
    return value;
}

/* Adds up what is said of values by the nodes that they belong to: a node may have several results, and several steps.
 * -1 at a node: nothing is said. */
static int64_t *add_by_node(struct weft_picture *picture, const char *const *name, const int64_t *number, size_t count)
{
    if (!name || !number || count == 0)
        return NULL;
    size_t values;
    const struct named_value *const value = sort_names(picture, &values);
    int64_t *const sum = weft_new(&picture->arena, int64_t, picture->root->nodes + 1);
    for (uint32_t n = 0; n <= picture->root->nodes; n++)
        sum[n] = -1;
    for (size_t i = 0; i < count; i++) {
        const struct named_value key = {.name = name[i] + (name[i][0] == '%')};
        const struct named_value *found = bsearch(&key, value, values, sizeof *value, order_of_names);
        if (found)
            sum[found->node.id] = (sum[found->node.id] < 0 ? 0 : sum[found->node.id]) + number[i];
    }
    return sum;
}

static void gather_heat(struct weft_picture *picture)
{
    const struct weft_dot_options *options = picture->options;
    picture->heat = add_by_node(picture, options->heat_name, options->heat_ns, options->heats);
    picture->bytes = add_by_node(picture, options->work_name, options->work_bytes, options->works);
    for (size_t i = 0; picture->heat && i < options->heats; i++)
        picture->heat_sum += options->heat_ns[i];
    for (uint32_t n = 0; picture->heat && n < picture->root->nodes; n++)
        picture->hottest = picture->heat[n] > picture->hottest ? picture->heat[n] : picture->hottest;
}

/* Everything that may run out of memory or find a fault; what it leaves behind belongs to the picture. */
static int paint(void *argument)
{
    struct weft_picture *picture = argument;
    weft_dot_gather(picture);
    gather_heat(picture);
    if (!weft_dot_choose(picture))
        return WEFT_ERR_ARGUMENT;
    open_agraph(picture);
    draw(picture);
    weft_dot_title(picture);
    char *html = agstrdup_html(picture->agraph, picture->label.data);
    weft_dot_set(picture->agraph, picture->graph_attr[WEFT_GRAPH_LABEL], html);
    agstrfree(picture->agraph, html);
    agwrite(picture->agraph, &picture->sink);
    if (picture->sink.failed)
        weft_out_of_memory(picture->context);
    return WEFT_OK;
}

static int drop_message(char *message)
{
    return 0;
}

int weft_dot(const struct weft_graph *graph, const struct weft_dot_options *options, char **ret_text)
{
    if (!graph || !ret_text)
        return weft_missing(graph ? graph->context : NULL);
    struct weft_dot_options known = {.size = sizeof known};
    struct weft_context *context = graph->context;
    if (options && !weft_take_options(&known, sizeof known, options))
        return weft_missing(context);
    struct weft_picture picture = {.context = context, .options = &known, .root = graph};
    picture.label = picture.piece = (struct weft_text){.context = context, .arena = &picture.arena};
    weft_arena_open(&picture.arena, context);
    const agusererrf previous = agseterrf(drop_message); /* the library never prints */
    int status = weft_protected(context, paint, &picture);
    if (picture.agraph)
        agclose(picture.agraph);
    agseterrf(previous);
    const struct weft_text text = {.context = context, .data = picture.sink.data, .length = picture.sink.length};
    char *result = status == WEFT_OK ? weft_text_take(&text) : NULL;
    if (status == WEFT_OK && !result)
        status = WEFT_ERR_NOMEM;
    if (status == WEFT_OK)
        *ret_text = result;
    free(picture.sink.data);
    weft_arena_close(&picture.arena);
    return status;
}
