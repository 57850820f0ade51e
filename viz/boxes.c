/* SPDX-License-Identifier: Apache-2.0 */
/* boxes.c: a box for each scope, with the scopes in it inside; of a layer that repeats one copy, in a box that says how
 * many there are. What a box takes of the whole time is a shade of red. */
#include "viz/dot.h"

#include <stdio.h>

static bool has_shown(const struct weft_scene *scene, const struct weft_scope_item *item, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++)
        for (uint32_t k = 0; k < item[i].nodes; k++)
            if (scene->shown[item[i].node[k].id])
                return true;
    return false;
}

static bool is_marked(const struct weft_scene *scene, const struct weft_scope_item *item, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++)
        for (uint32_t k = 0; k < item[i].nodes; k++)
            if (!scene->marked[item[i].node[k].id])
                return false;
    return true;
}

/* A box that is marked has no marks inside. */
static void take_marks(const struct weft_scene *scene, const struct weft_scope_item *item, uint32_t items)
{
    for (uint32_t i = 0; i < items; i++)
        for (uint32_t k = 0; k < item[i].nodes; k++)
            scene->marked[item[i].node[k].id] = false;
}

/* Of the items that it holds as they are drawn: those of the copy that is shown. */
static Agraph_t *open_box(struct weft_picture *picture, const struct weft_scene *scene, Agraph_t *where,
                          const struct weft_scope_item *item, uint32_t items, const struct weft_repeat *repeat)
{
    const char *const name = weft_arena_format(&picture->arena, "cluster_%s%s %s", repeat ? "copies " : "scope ",
                                               scene->prefix, item->scope ? item->full : scene->text[
                                                   weft_result(scene->graph, item->node[0], 0).id]);
    Agraph_t *const box = agsubg(where, (char *)weft_dot_plain(picture, name), 1);
    weft_dot_scope_label(picture, scene, item, repeat);
    char *const html = agstrdup_html(picture->agraph, picture->label.data);
    weft_dot_set(box, picture->graph_attr[WEFT_GRAPH_LABEL], html);
    agstrfree(picture->agraph, html);
    const int64_t ns = weft_dot_time_of(picture, scene, item, items);
    const double warmth = ns > 0 && picture->heat_sum > 0 ? (double)ns / (double)picture->heat_sum : 0;
    const bool marked = is_marked(scene, item, items);
    char colour[16];
    snprintf(colour, sizeof colour, "#ff%02x%02x", 255 - (int)(60 * warmth), 255 - (int)(90 * warmth));
    weft_dot_set(box, picture->graph_attr[WEFT_GRAPH_STYLE], repeat ? "filled" : "filled,rounded");
    weft_dot_set(box, picture->graph_attr[WEFT_GRAPH_COLOR], marked ? "#0050c0" : "#1f4e79");
    weft_dot_set(box, picture->scope_attr[WEFT_SCOPE_FILL], ns >= 0 ? colour : "#fbfcfe");
    weft_dot_set(box, picture->scope_attr[WEFT_SCOPE_INK], "#1f4e79");
    weft_dot_set(box, picture->scope_attr[WEFT_SCOPE_PEN], marked ? "4" : repeat ? "2" : "1");
    weft_dot_set(box, picture->scope_attr[WEFT_SCOPE_SIDE], "l"); /* edges come in at the middle */
    if (marked)
        take_marks(scene, item, items);
    return box;
}

struct opening {
    struct weft_picture *picture;
    struct weft_scene *scene;
};

/* Scopes are at most 64 deep (scopes.c). */
static void open_items(const struct opening *o, uint32_t s, Agraph_t *where)
{
    const struct weft_scopes *const tree = o->scene->tree;
    Agraph_t *copy = NULL;
    for (uint32_t i = 0; i < tree->scope[s].items; i++) {
        const struct weft_scope_item *const item = &tree->scope[s].item[i];
        const struct weft_repeat *const repeat = weft_scopes_repeat_at(tree, s, i);
        if ((repeat && !weft_repeat_shows(repeat, i)) || !has_shown(o->scene, item, 1))
            continue;
        const bool alone = repeat && repeat->period == 1; /* the scope's own box says that it repeats */
        if (repeat && !alone && (i - repeat->first) % repeat->period == 0)
            copy = open_box(o->picture, o->scene, where, item, repeat->period, repeat);
        Agraph_t *const around = repeat && !alone && copy ? copy : where;
        if (item->scope) {
            open_items(o, item->scope, open_box(o->picture, o->scene, around, item, 1, alone ? repeat : NULL));
            continue;
        }
        for (uint32_t k = 0; k < item->nodes; k++)
            o->scene->home[item->node[k].id] = around;
    }
}

void weft_dot_open_scopes(struct weft_picture *picture, struct weft_scene *scene)
{
    scene->home = weft_new(&picture->arena, Agraph_t *, scene->graph->nodes + 1);
    open_items(&(struct opening){picture, scene}, 0, scene->cluster);
}
