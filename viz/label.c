/* SPDX-License-Identifier: Apache-2.0 */
/* label.c: what stands inside the boxes.
 *
 * A node is a small table: op with its attributes, result, type with layout, kernel, time, and one row for each operand
 * that is known before the run (weights and what is made from them alone), which would otherwise be half of all boxes.
 * The table's colour is that of the layout, so a change of storage is a change of colour along the way.
 *
 * All text from graphs goes through weft_dot_escape: Graphviz parses labels as XML and gives up on a whole picture for
 * one stray byte, and names in model files hold anything. */
#include "ir/values.h"
#include "viz/dot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Pale, so that black text reads on all; the first is row-major. Then they repeat. */
static const char *const palette[] = {
    "#f4f4f4", "#cfe8ff", "#ffe3b8", "#d3f2cf", "#e9d8fd", "#ffd6d6", "#fff6b0", "#cff3f0", "#f6d5ec", "#dfe0c8",
};
#define DEAREST 5 /* nodes in the title of a picture with times */
#define PALETTE_SIZE (sizeof palette / sizeof *palette)

/* Bytes of the UTF-8 sequence at `s`, or 0 if it is none (overlong forms and surrogates are none). */
static int sequence_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    const int length = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                       : (s[0] & 0xf0) == 0xe0       ? 3
                       : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                     : 0;
    for (int i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

/* Copies what XML can hold. In a plain string of DOT < > " are themselves, but a backslash begins an escape. */
static void add_text(struct weft_text *text, const char *string, bool html)
{
    for (const unsigned char *s = (const unsigned char *)string; *s;) {
        const int length = sequence_length(s);
        if (length == 0 || *s == 0x7f)
            weft_text_add(text, "?");
        else if (*s < 0x20)
            weft_text_add(text, " ");
        else if (*s == '&')
            weft_text_add(text, "&amp;");
        else if (html && *s == '<')
            weft_text_add(text, "&lt;");
        else if (html && *s == '>')
            weft_text_add(text, "&gt;");
        else if (html && *s == '"')
            weft_text_add(text, "&quot;");
        else if (!html && *s == '\\')
            weft_text_add(text, "\\\\");
        else
            weft_text_addn(text, (const char *)s, (size_t)length);
        s += length ? length : 1;
    }
}

void weft_dot_escape(struct weft_text *text, const char *string)
{
    add_text(text, string, /* html= */ true);
}

const char *weft_dot_plain(struct weft_picture *picture, const char *string)
{
    picture->piece.length = 0;
    add_text(&picture->piece, string, /* html= */ false);
    return weft_arena_copy(&picture->arena, picture->piece.data, picture->piece.length);
}

/* The layout as text: "" for row-major. */
static const char *layout_text(struct weft_picture *picture, const struct weft_graph *graph, weft_val value)
{
    const struct weft_layout layout = weft_layout_of(graph, value);
    if (layout.kind == WEFT_STORED && weft_layout_is_row_major(&layout))
        return "";
    picture->piece.length = 0;
    weft_layout_print(graph->dims, &layout, &picture->piece);
    return weft_arena_copy(&picture->arena, picture->piece.data, picture->piece.length);
}

const char *weft_dot_type(struct weft_picture *picture, const struct weft_graph *graph, weft_val value)
{
    const char *layout = layout_text(picture, graph, value);
    picture->piece.length = 0;
    weft_type_print(graph->dims, weft_type_of(graph, value), &picture->piece);
    weft_text_add(&picture->piece, layout);
    return weft_arena_copy(&picture->arena, picture->piece.data, picture->piece.length);
}

const char *weft_dot_colour(struct weft_picture *picture, const struct weft_graph *graph, weft_val value)
{
    const char *text = layout_text(picture, graph, value);
    if (*text == '\0')
        return palette[0];
    uint32_t i = 0;
    while (i < picture->layouts && strcmp(picture->layout[i], text))
        i++;
    if (i == picture->layouts) {
        picture->layout = weft_grow(&picture->arena, picture->layout, &picture->layout_capacity, picture->layouts + 1,
                                    sizeof *picture->layout);
        picture->layout[picture->layouts++] = text;
    }
    return palette[1 + i % (PALETTE_SIZE - 1)];
}

static void add_attr_value(const struct weft_graph *graph, const struct weft_attr *attr, struct weft_text *text)
{
    switch (attr->kind) {
    case WEFT_ATTR_INT:
        weft_dim_print(graph->dims, attr->integer, text);
        break;
    case WEFT_ATTR_REAL:
        weft_text_format(text, "%.6g", attr->real);
        break;
    case WEFT_ATTR_WORD:
        weft_text_add(text, attr->word);
        break;
    case WEFT_ATTR_DTYPE:
        weft_text_add(text, weft_dtype_name(attr->dtype));
        break;
    case WEFT_ATTR_VALUES: weft_values_print_some(attr->values, attr->count, 80, text); break;
    case WEFT_ATTR_GRAPH:
        weft_text_format(text, "@%s", attr->graph->name ? attr->graph->name : "");
        break;
    default:
        weft_text_add(text, "[");
        for (uint32_t i = 0; i < attr->count; i++) {
            if (i)
                weft_text_add(text, " ");
            if (i == 8) {
                weft_text_add(text, "…");
                break;
            }
            if (attr->kind == WEFT_ATTR_REALS)
                weft_text_format(text, "%.6g", attr->reals[i]);
            else
                weft_dim_print(graph->dims, attr->integers[i], text);
        }
        weft_text_add(text, "]");
    }
}

/* Opens a row, to be closed with end_row. */
static void begin_row(struct weft_text *label, const char *colour)
{
    weft_text_format(label, colour ? "<TR><TD BGCOLOR=\"%s\">" : "<TR><TD>", colour);
}

static void end_row(struct weft_text *label)
{
    weft_text_add(label, "</TD></TR>");
}

static void add_row(struct weft_text *label, const char *string)
{
    begin_row(label, NULL);
    weft_dot_escape(label, string);
    end_row(label);
}

/* `frame`: the colour of a thick one, or NULL. */
static void begin_table(struct weft_picture *picture, const char *colour, const char *frame)
{
    static const char look[] = "CELLBORDER=\"1\" CELLSPACING=\"0\" CELLPADDING=\"4\"";
    picture->label.length = 0;
    weft_text_format(&picture->label, "<TABLE BORDER=\"%d\" %s", frame ? 3 : 0, look);
    if (frame)
        weft_text_format(&picture->label, " COLOR=\"%s\"", frame);
    weft_text_format(&picture->label, " BGCOLOR=\"%s\">", colour);
}

/* "%w = const f32[16,3,3,3]", "%b = bcast of 0.5 f32[]": one operand that is known before the run, through the views
 * over it; the type is that of the constant. */
static void add_constant_row(struct weft_picture *picture, const struct weft_scene *scene, weft_val value)
{
    const struct weft_graph *graph = scene->graph;
    weft_val source = value;
    const char *way = "";
    while (weft_node_of(graph, weft_def(graph, source))->operands > 0) {
        const weft_node node = weft_def(graph, source);
        way = weft_arena_format(&picture->arena, "%s%s of ", way, weft_op_of(graph, node)->name);
        source = weft_operand(graph, node, 0);
    }
    const char *type = weft_dot_type(picture, graph, source);
    struct weft_element number;
    begin_row(&picture->label, NULL);
    weft_dot_escape(&picture->label, scene->text[value.id]);
    weft_text_add(&picture->label, " = ");
    weft_dot_escape(&picture->label, way);
    if (weft_def_opcode(graph, source) == WEFT_OP_const && weft_const_splat(graph, source, &number))
        weft_text_format(&picture->label, "%.6g ", number.real);
    else
        weft_text_format(&picture->label, "%s ", weft_op_of(graph, weft_def(graph, source))->name);
    weft_dot_escape(&picture->label, type);
    end_row(&picture->label);
}

/* Is the node computed together with others? */
static bool is_member(const struct weft_graph *graph, weft_node node)
{
    const struct weft_node_info *info = weft_node_of(graph, node);
    return info->group && ((info->next.id && weft_node_of(graph, info->next)->group == info->group) ||
                           (info->previous.id && weft_node_of(graph, info->previous)->group == info->group));
}

static double share_of(const struct weft_picture *picture, int64_t ns)
{
    return picture->heat_sum > 0 ? (double)ns / (double)picture->heat_sum : 0;
}

/* --- scopes ------------------------------------------------------------------------------------------------------- */

/* Sum of what is known of all nodes, -1: nothing. */
static int64_t sum_of(const int64_t *by_node, const struct weft_scope_item *item, uint32_t items)
{
    int64_t sum = -1;
    for (uint32_t i = 0; by_node && i < items; i++)
        for (uint32_t k = 0; k < item[i].nodes; k++)
            if (by_node[item[i].node[k].id] >= 0)
                sum = (sum < 0 ? 0 : sum) + by_node[item[i].node[k].id];
    return sum;
}

int64_t weft_dot_time_of(const struct weft_picture *picture, const struct weft_scene *scene,
                         const struct weft_scope_item *item, uint32_t items)
{
    return scene == picture->scene ? sum_of(picture->heat, item, items) : -1;
}

/* "12.300 ms, 80.1 %, 210.0 MB" */
static void add_costs(struct weft_picture *picture, const struct weft_scene *scene, const struct weft_scope_item *item,
                      uint32_t items)
{
    const int64_t ns = weft_dot_time_of(picture, scene, item, items);
    const int64_t bytes = scene == picture->scene ? sum_of(picture->bytes, item, items) : -1;
    if (ns >= 0)
        weft_text_format(&picture->label, "%.3f ms, %.1f %%", (double)ns * 1e-6, 100 * share_of(picture, ns));
    if (bytes >= 0)
        weft_text_format(&picture->label, "%s%.*f %s", ns >= 0 ? ", " : "", bytes < 1000 ? 0 : 1,
                         (double)bytes / (bytes < 1000 ? 1 : bytes < 1000000 ? 1e3 : 1e6),
                         bytes < 1000 ? "B" : bytes < 1000000 ? "kB" : "MB");
}

void weft_dot_scope_label(struct weft_picture *picture, const struct weft_scene *scene,
                          const struct weft_scope_item *item, const struct weft_repeat *repeat)
{
    struct weft_text *const label = &picture->label;
    label->length = 0;
    const char *const name = repeat ? weft_repeat_name(scene->tree, repeat) : item->name;
    if (name[0]) {
        weft_text_add(label, "<FONT POINT-SIZE=\"15\"><B>");
        weft_dot_escape(label, name);
        weft_text_add(label, "</B></FONT>  ");
    }
    if (repeat) {
        const struct weft_scope_item *const first = &scene->tree->scope[repeat->scope].item[repeat->first];
        weft_text_format(label, "<FONT POINT-SIZE=\"15\"><B>x %" PRIu32 "</B></FONT>  ", repeat->copies);
        add_costs(picture, scene, first, repeat->count);
        weft_text_add(label, "<BR/>drawn: ");
        weft_dot_escape(label, item->scope ? item->name : scene->text[weft_result(scene->graph, item->node[0], 0).id]);
        weft_text_add(label, repeat->period == 1 ? "  " : " …  ");
    }
    add_costs(picture, scene, item, repeat ? repeat->period : 1);
    const char *const difference =
        repeat ? scene->tree->scope[repeat->scope].item[repeat->first].difference : item->difference;
    if (difference && (!repeat || repeat->period == 1)) {
        weft_text_add(label, "<BR/><I>");
        weft_dot_escape(label, difference);
        weft_text_add(label, "</I>");
    }
}

/* What the unit's scope is called, if it has nothing else in it: "query", or "". */
static const char *unit_name(const struct weft_scene *scene, weft_node node)
{
    const struct weft_scopes *const tree = scene->tree;
    return tree && !scene->folded[node.id] ? tree->scope[tree->of[node.id]].item[tree->place[node.id]].name : "";
}

const char *weft_dot_group_label(struct weft_picture *picture, const struct weft_scene *scene, weft_node node)
{
    const struct weft_graph *graph = scene->graph;
    const struct weft_group *group = &graph->group[weft_node_of(graph, node)->group];
    const char *kernel = group->plan && group->plan->kernel ? group->plan->kernel : "";
    int64_t ns = -1;
    const weft_node last = weft_group_last(graph, node);
    for (weft_node n = weft_group_first(graph, node); picture->heat && scene == picture->scene;
         n = weft_node_of(graph, n)->next) {
        if (picture->heat[n.id] >= 0)
            ns = (ns < 0 ? 0 : ns) + picture->heat[n.id];
        if (n.id == last.id)
            break;
    }
    const char *const scope = unit_name(scene, node);
    const char *const name =
        weft_arena_format(&picture->arena, "%s%s@%s %s", scope, *scope ? ": " : "", group->name, kernel);
    if (ns < 0 || !is_member(graph, node))
        return name;
    return weft_arena_format(&picture->arena, "%s  %.3f ms, %.1f %%", name, (double)ns * 1e-6,
                             100 * share_of(picture, ns));
}

/* Time and share, on a ground from white to red by how it stands to the slowest node. */
static void add_heat_row(struct weft_picture *picture, const struct weft_scene *scene, weft_node node)
{
    if (!picture->heat || scene != picture->scene || picture->heat[node.id] < 0 || is_member(scene->graph, node))
        return;
    const int64_t ns = picture->heat[node.id];
    const double warmth = picture->hottest > 0 ? (double)ns / (double)picture->hottest : 0;
    char colour[16];
    snprintf(colour, sizeof colour, "#ff%02x%02x", 255 - (int)(150 * warmth), 255 - (int)(190 * warmth));
    begin_row(&picture->label, colour);
    weft_text_format(&picture->label, "%.3f ms, %.1f %%", (double)ns * 1e-6, 100 * share_of(picture, ns));
    end_row(&picture->label);
}

/* Of a relayout that was inserted: its cost, and for whom. */
static void add_price_rows(struct weft_picture *picture, const struct weft_conversion_record *conversion)
{
    if (!conversion)
        return;
    begin_row(&picture->label, NULL);
    weft_text_format(&picture->label, "<B>%.3f us</B>", (double)conversion->ps * 1e-6);
    if (conversion->once)
        weft_text_add(&picture->label, " once");
    else if (picture->format_ps > 0)
        weft_text_format(&picture->label, ", %.1f %% of all layouts",
                         100 * (double)conversion->ps / (double)picture->format_ps);
    end_row(&picture->label);
    picture->piece.length = 0;
    weft_text_format(&picture->piece, "for %s", conversion->wanted);
    add_row(&picture->label, picture->piece.data);
}

void weft_dot_node_label(struct weft_picture *picture, const struct weft_scene *scene, weft_node node, unsigned hidden)
{
    const struct weft_graph *graph = scene->graph;
    const struct weft_node_info *info = weft_node_of(graph, node);
    struct weft_text *label = &picture->label;
    begin_table(picture, weft_dot_colour(picture, graph, weft_result(graph, node, 0)),
                scene->marked[node.id]                               ? "#0050c0"
                : weft_op_of(graph, node)->traits & WEFT_PLACEMENT ? "#c00000" : NULL);
    if (!info->group && unit_name(scene, node)[0]) {
        weft_text_add(label, "<TR><TD><I>");
        weft_dot_escape(label, unit_name(scene, node));
        weft_text_add(label, "</I></TD></TR>");
    }
    weft_text_format(label, "<TR><TD><B>%s</B>", weft_op_of(graph, node)->name);
    for (unsigned i = 0; i < info->attrs; i++) {
        picture->piece.length = 0;
        weft_text_format(&picture->piece, " %s=", weft_attr_names[info->attr[i].key]);
        add_attr_value(graph, &info->attr[i], &picture->piece);
        weft_dot_escape(label, picture->piece.data);
    }
    end_row(label);
    for (unsigned i = 0; i < info->results; i++) {
        const weft_val result = weft_result(graph, node, i);
        const char *type = weft_dot_type(picture, graph, result);
        begin_row(label, info->results > 1 ? weft_dot_colour(picture, graph, result) : NULL);
        weft_dot_escape(label, scene->text[result.id]);
        weft_text_add(label, "<BR/>");
        weft_dot_escape(label, type);
        end_row(label);
    }
    if (info->plan && info->plan->kernel)
        add_row(label, info->plan->kernel);
    add_price_rows(picture, scene->conversion[weft_result(graph, node, 0).id]);
    add_heat_row(picture, scene, node);
    for (unsigned i = 0; i < info->operands; i++) {
        const weft_node def = weft_def(graph, weft_operand(graph, node, i));
        if (def.id && scene->folded[def.id])
            add_constant_row(picture, scene, weft_operand(graph, node, i));
    }
    if (hidden)
        weft_text_format(label, "<TR><TD><I>%u neighbour%s not shown</I></TD></TR>", hidden, hidden == 1 ? "" : "s");
    weft_text_add(label, "</TABLE>");
}

void weft_dot_port_label(struct weft_picture *picture, const struct weft_scene *scene, const char *word,
                         weft_val value)
{
    const struct weft_graph *graph = scene->graph;
    const char *type = weft_dot_type(picture, graph, value);
    begin_table(picture, weft_dot_colour(picture, graph, value), /* frame= */ NULL);
    weft_text_add(&picture->label, "<TR><TD><B>");
    weft_dot_escape(&picture->label, word);
    weft_text_add(&picture->label, "</B> ");
    weft_dot_escape(&picture->label, scene->text[value.id]);
    end_row(&picture->label);
    add_row(&picture->label, type);
    const weft_node def = weft_def(graph, value);
    if (def.id && scene->folded[def.id])
        add_constant_row(picture, scene, value);
    weft_text_add(&picture->label, "</TABLE>");
}

/* The nodes that take longest, so that one knows where to look in a large picture. */
static void add_dearest(struct weft_picture *picture)
{
    const struct weft_graph *graph = picture->root;
    weft_node dearest[DEAREST];
    int count = 0;
    for (uint32_t n = 1; picture->heat && n < graph->nodes; n++) {
        const weft_node node = {.id = n};
        if (weft_node_of(graph, node)->dead || picture->heat[n] < 0)
            continue;
        int place = count;
        while (place > 0 && picture->heat[dearest[place - 1].id] < picture->heat[n])
            place--;
        if (place == DEAREST)
            continue;
        count += count < DEAREST;
        memmove(dearest + place + 1, dearest + place, (size_t)(count - 1 - place) * sizeof *dearest);
        dearest[place] = node;
    }
    for (int i = 0; i < count; i++) {
        const struct weft_node_info *info = weft_node_of(graph, dearest[i]);
        const struct weft_group *group = is_member(graph, dearest[i]) ? &graph->group[info->group] : NULL;
        const struct weft_plan_note *note = group ? group->plan : info->plan;
        weft_text_format(&picture->label, "<TR><TD ALIGN=\"LEFT\">%.3f ms  ",
                         (double)picture->heat[dearest[i].id] * 1e-6);
        weft_dot_escape(&picture->label, group ? weft_arena_format(&picture->arena, "@%s", group->name)
                                               : weft_op_of(graph, dearest[i])->name);
        weft_text_add(&picture->label, "  ");
        weft_dot_escape(&picture->label, picture->scene->text[weft_result(graph, dearest[i], 0).id]);
        weft_text_add(&picture->label, "  ");
        weft_dot_escape(&picture->label, note && note->kernel ? note->kernel : "");
        end_row(&picture->label);
    }
}

/* How many were inserted, and at what cost. */
static void add_relayouts(struct weft_picture *picture)
{
    uint32_t count = 0;
    int64_t ps = 0;
    for (uint32_t s = 0; s < picture->scenes; s++) {
        const struct weft_graph *graph = picture->scene[s].graph;
        for (uint32_t i = 0; i < graph->conversions; i++) {
            const struct weft_conversion_record *const record = &graph->conversion[i];
            if (weft_node_of(graph, weft_def(graph, record->to))->dead)
                continue;
            count++;
            ps += record->once ? 0 : record->ps;
        }
    }
    if (!count)
        return;
    weft_text_format(&picture->label,
                     "<TR><TD><FONT COLOR=\"#c00000\"><B>%" PRIu32 " relayout%s inserted, %.3f us a run"
                     "</B></FONT> of %.3f us that all layouts are estimated to cost", count, count == 1 ? "" : "s",
                     (double)ps * 1e-6, (double)picture->format_ps * 1e-6);
    end_row(&picture->label);
}

void weft_dot_title(struct weft_picture *picture)
{
    struct weft_text *label = &picture->label;
    label->length = 0;
    weft_text_add(label, "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"2\"><TR><TD><B>@");
    weft_dot_escape(label, picture->scene[0].graph->name ? picture->scene[0].graph->name : "");
    weft_text_format(label, "</B>  %" PRIu32 " nodes", picture->shown);
    if (picture->hidden)
        weft_text_format(label, " of %" PRIu32 "; the others are not shown",
                         picture->shown + picture->hidden + picture->repeated);
    else if (picture->repeated)
        weft_text_format(label, ", which stand for %" PRIu32 ": layers that repeat are drawn once",
                         picture->shown + picture->repeated);
    if (picture->heat)
        weft_text_format(label, ", %.3f ms in its steps", (double)picture->heat_sum * 1e-6);
    if (picture->heat && picture->options->heat_note) {
        weft_text_add(label, ", ");
        weft_dot_escape(label, picture->options->heat_note);
    }
    weft_text_add(label, "</TD></TR>");
    add_dearest(picture);
    add_relayouts(picture);
    if (picture->layouts) {
        begin_row(label, palette[0]);
        weft_text_add(label, "layout row-major");
        end_row(label);
    }
    for (uint32_t i = 0; i < picture->layouts; i++) {
        begin_row(label, palette[1 + i % (PALETTE_SIZE - 1)]);
        weft_text_add(label, "layout ");
        weft_dot_escape(label, picture->layout[i]);
        end_row(label);
    }
    weft_text_add(label, "</TABLE>");
}
