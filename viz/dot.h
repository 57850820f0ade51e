/* SPDX-License-Identifier: Apache-2.0 */
/* dot.h: what dot.c and label.c share. Needs: ir. */
#ifndef WEFT_DOT_H
#define WEFT_DOT_H

#include "ir/ir.h"
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
    Agsym_t *graph_attr[3], *node_attr[3], *edge_attr[4];
    struct weft_scene *scene;
    uint32_t scenes, scene_capacity;
    uint32_t shown, hidden; /* nodes drawn, and nodes left out by focus or limit */
    const char **layout;    /* layouts by text in order of appearance: index chooses the colour */
    uint32_t layouts, layout_capacity;
    int64_t format_ps;      /* what all layouts were taken to cost */
    int64_t *heat;          /* by node id of the root: time of all its steps, -1: none; or NULL. That of a group stands
                             * at the node whose value it is called by */
    int64_t hottest, heat_sum;
};

/* --- choose.c ----------------------------------------------------------------------------------------------------- */

/* Makes the scenes: the root is the first, and a body comes after the graph that owns it. */
void weft_dot_gather(struct weft_picture *picture);
/* Decides what is shown. False, with an error, if nothing is named like the focus. */
bool weft_dot_choose(struct weft_picture *picture);

/* --- label.c ------------------------------------------------------------------------------------------------------ */

/* Appends `string` so that it is plain text inside an HTML-like label, whatever bytes it holds. */
void weft_dot_escape(struct weft_text *text, const char *string);
/* A copy that is plain text in a tooltip or an id. */
const char *weft_dot_plain(struct weft_picture *picture, const char *string);
/* "f32[1,8,4,4]{0 2 3 1}", in the picture's arena. */
const char *weft_dot_type(struct weft_picture *picture, const struct weft_graph *graph, weft_val value);
/* Colour of the layout of a value; a new layout takes the next one. */
const char *weft_dot_colour(struct weft_picture *picture, const struct weft_graph *graph, weft_val value);
/* HTML-like labels, left in picture->label. `hidden` neighbours are mentioned. */
void weft_dot_node_label(struct weft_picture *picture, const struct weft_scene *scene, weft_node node, unsigned hidden);
/* Of the box around a group: its name, its kernel, its time. */
const char *weft_dot_group_label(struct weft_picture *picture, const struct weft_scene *scene, weft_node node);
void weft_dot_port_label(struct weft_picture *picture, const struct weft_scene *scene, const char *word,
                         weft_val value);
void weft_dot_title(struct weft_picture *picture);

#endif
