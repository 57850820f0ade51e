/* SPDX-License-Identifier: Apache-2.0 */
/* dot.h: what dot.c and label.c share. Needs: ir. */
#ifndef WEFT_DOT_H
#define WEFT_DOT_H

#include "viz/scopes.h"
#include "weft/viz.h"

#include <cgraph.h>

/* One graph of the picture: the root, or a body of `if` or `loop`. Side arrays are indexed by id. */
struct weft_scene {
    const struct weft_graph *graph;
    uint32_t parent;        /* index of the scene whose node `owner` has this graph as a body */
    weft_node owner;
    const char *prefix;     /* of the names of its nodes in the picture: "", "then/", … */
    const char *title;      /* of a body: "then of %y: @yes" */
    Agraph_t *cluster;
    const char **text;      /* by value: "%x" */
    const struct weft_conversion_record **conversion; /* by value: the relayout that was inserted to make it, or NULL */
    bool *shown;            /* by node: drawn as a node of its own */
    bool *folded;           /* by node: known before the run, hence only a row in its consumers' labels */
    Agnode_t **maker;       /* by value: the drawn node that makes it, or NULL */
    struct weft_scopes *tree; /* or NULL: no scopes are drawn */
    bool *marked;           /* by node: the focus is on it */
    Agraph_t **home;        /* by node: the box around its unit, or NULL: the cluster; with a tree */
};

/* Text from cgraph, in malloc's memory. */
struct weft_dot_sink {
    char *data;
    size_t length, capacity;
    bool failed;
};

struct weft_picture {
    struct weft_context *context;
    const struct weft_graph *root;
    const struct weft_dot_options *options;
    struct weft_arena arena;
    struct weft_text label; /* scratch: the label that is being written */
    struct weft_text piece; /* scratch: unescaped text */
    struct weft_dot_sink sink;
    Agiodisc_t io;
    Agdisc_t discipline;
    Agraph_t *agraph;
    Agsym_t *graph_attr[3], *scope_attr[4], *node_attr[3], *edge_attr[4];
    struct weft_scene *scene;
    uint32_t scenes, scene_capacity;
    uint32_t shown, hidden; /* nodes drawn, and nodes left out by focus or limit; */
    uint32_t repeated;      /* and those of layers that others stand for */
    const char **layout;    /* layouts by text in order of appearance: index chooses the colour */
    uint32_t layouts, layout_capacity;
    int64_t format_ps;      /* what all layouts were taken to cost */
    int64_t *heat;          /* by node id of the root: time of all its steps, -1: none; or NULL. That of a group stands
                             * at the node whose value it is called by */
    int64_t hottest, heat_sum;
    int64_t *bytes;         /* by node id of the root: bytes that computing it moves; or NULL */
};

/* --- choose.c ----------------------------------------------------------------------------------------------------- */

/* Makes the scenes: the root is the first, and a body comes after the graph that owns it. */
void weft_dot_gather(struct weft_picture *picture);
/* Decides what is shown. False, with an error, if nothing is named like the focus. */
bool weft_dot_choose(struct weft_picture *picture);

/* The node that is drawn for a node of a scene: itself, or that of a layer that stands for it. */
static inline weft_node weft_dot_drawn(const struct weft_scene *scene, weft_node node)
{
    return scene->tree && node.id ? scene->tree->stand_in[node.id] : node;
}

/* --- boxes.c ------------------------------------------------------------------------------------------------------ */

/* Opens the boxes of a scene's scopes, with what they are and cost, and gives each node that is shown its home. */
void weft_dot_open_scopes(struct weft_picture *picture, struct weft_scene *scene);

/* --- dot.c -------------------------------------------------------------------------------------------------------- */

/* cgraph takes char * for what it only reads. */
static inline void weft_dot_set(void *object, Agsym_t *attribute, const char *value)
{
    agxset(object, attribute, (char *)value);
}
enum { WEFT_GRAPH_LABEL, WEFT_GRAPH_STYLE, WEFT_GRAPH_COLOR };
enum { WEFT_SCOPE_FILL, WEFT_SCOPE_INK, WEFT_SCOPE_PEN, WEFT_SCOPE_SIDE };

/* --- label.c ------------------------------------------------------------------------------------------------------ */

/* Appends `string` so that it is plain text inside an HTML-like label, whatever bytes it holds. */
void weft_dot_escape(struct weft_text *text, const char *string);
/* A copy that is plain text in a tooltip or an id. */
const char *weft_dot_plain(struct weft_picture *picture, const char *string);
/* "f32[1,8,4,4]{0 2 3 1}", in the picture's arena. */
const char *weft_dot_type(struct weft_picture *picture, const struct weft_graph *graph, weft_val value);
/* Colour of the layout of a value; a new layout takes the next one. */
const char *weft_dot_colour(struct weft_picture *picture, const struct weft_graph *graph, weft_val value);
/* Of the box around a scope, or around a stretch of units that repeats: its name, how often, the time and bytes of all
 * copies and of the one that is drawn, and how it differs from the scope before it. HTML-like, in picture->label. */
void weft_dot_scope_label(struct weft_picture *picture, const struct weft_scene *scene,
                          const struct weft_scope_item *item, const struct weft_repeat *repeat);
/* Time of a scope's nodes, -1: none is known; and its share of all. */
int64_t weft_dot_time_of(const struct weft_picture *picture, const struct weft_scene *scene,
                         const struct weft_scope_item *item, uint32_t items);
/* HTML-like labels, left in picture->label. `hidden` neighbours are mentioned. */
void weft_dot_node_label(struct weft_picture *picture, const struct weft_scene *scene, weft_node node, unsigned hidden);
/* Of the box around a group: its name, its kernel, its time. */
const char *weft_dot_group_label(struct weft_picture *picture, const struct weft_scene *scene, weft_node node);
void weft_dot_port_label(struct weft_picture *picture, const struct weft_scene *scene, const char *word,
                         weft_val value);
void weft_dot_title(struct weft_picture *picture);

#endif
