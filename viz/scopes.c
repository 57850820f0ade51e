/* SPDX-License-Identifier: Apache-2.0 */
/* scopes.c: the tree of scopes.
 *
 *   1  each node gets a scope: what the exporter noted beside it, else what its name says, else that of its value
 *   2  a group stands where the scopes of its nodes meet; a node without a scope, where those of its makers and its
 *      readers meet
 *   3  units become items in order, each with the scopes on its way that are new
 *   4  scopes with one item go
 *
 * A name says a scope by slashes ("/encoder/layer.0/MatMul"), else by dots, where a number belongs to the part before
 * it ("encoder.layer.0.matmul" stands in "encoder" and "encoder.layer.0"); the last part is the node's own. */
#include "viz/scopes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    struct weft_scopes *tree;
    uint32_t *of;              /* by node: its scope, 0: none known, or the graph itself */
    bool *known;               /* by node */
    uint32_t *depth;           /* by scope */
    uint32_t depth_capacity;
    uint32_t *hash;            /* of scopes, by full name and parent; open addressing, at most half full */
    uint32_t hash_size;
    struct weft_scope_note *note; /* by name */
    uint32_t notes;
};

/* --- scopes by name ----------------------------------------------------------------------------------------------- */

static uint32_t *find_slot(const struct builder *b, uint32_t parent, const char *full, size_t length)
{
    uint32_t at = (weft_hash_name(full, length) ^ parent * 2654435761u) & (b->hash_size - 1);
    for (;; at = (at + 1) & (b->hash_size - 1)) {
        const uint32_t s = b->hash[at];
        const struct weft_name_scope *const scope = &b->tree->scope[s];
        if (!s || (scope->parent == parent && strncmp(scope->full, full, length) == 0 && !scope->full[length]))
            return &b->hash[at];
    }
}

static uint32_t append_scope(struct builder *b, uint32_t parent, const char *full, size_t length)
{
    struct weft_scopes *const t = b->tree;
    const uint32_t s = t->scopes;
    t->scope = weft_grow(t->arena, t->scope, &t->scope_capacity, s + 1, sizeof *t->scope);
    b->depth = weft_grow(t->arena, b->depth, &b->depth_capacity, s + 1, sizeof *b->depth);
    t->scope[s] = (struct weft_name_scope){.full = weft_arena_copy(t->arena, full, length), .parent = parent};
    b->depth[s] = s ? b->depth[parent] + 1 : 0;
    t->scopes++;
    return s;
}

/* The scope of this full name in another one. */
static uint32_t enter(struct builder *b, uint32_t parent, const char *full, size_t length)
{
    uint32_t *slot = find_slot(b, parent, full, length);
    if (*slot)
        return *slot;
    const uint32_t s = append_scope(b, parent, full, length);
    *slot = s;
    if (b->tree->scopes * 2 <= b->hash_size)
        return s;
    b->hash_size *= 2;
    b->hash = weft_new(b->tree->arena, uint32_t, b->hash_size);
    for (uint32_t i = 1; i < b->tree->scopes; i++) {
        const struct weft_name_scope *const scope = &b->tree->scope[i];
        *find_slot(b, scope->parent, scope->full, strlen(scope->full)) = i;
    }
    return s;
}

enum { MOST_DEPTH = 64 }; /* deeper scopes are one */

static uint32_t enter_noted(struct builder *b, const char *path)
{
    uint32_t s = 0;
    for (int depth = 0; *path && depth < MOST_DEPTH; depth++) {
        const size_t length = strcspn(path, "\n");
        s = length ? enter(b, s, path, length) : s;
        path += length + (path[length] == '\n');
    }
    return s;
}

/* Where the part of a name that begins at `at` ends. */
static size_t end_of_part(const char *name, size_t at, bool slashes)
{
    if (slashes)
        return at + strcspn(name + at, "/");
    for (at += strcspn(name + at, "."); name[at]; at += strcspn(name + at, ".")) {
        size_t end = at + 1;
        while (isdigit((unsigned char)name[end]))
            end++;
        if (end == at + 1 || (name[end] && name[end] != '.'))
            break;
        at = end;
    }
    return at;
}

static uint32_t enter_by_name(struct builder *b, const char *name)
{
    name += name[0] == '%'; /* called after its value */
    const bool slashes = strchr(name, '/');
    uint32_t s = 0;
    size_t at = slashes ? strspn(name, "/") : 0;
    if (!slashes && !isalpha((unsigned char)name[0]) && name[0] != '_')
        return 0;
    for (int depth = 0; depth < MOST_DEPTH; depth++) {
        const size_t end = end_of_part(name, at, slashes);
        if (!name[end])
            break;
        const size_t first = name[0] == '/'; /* of TorchScript's names: not written by the user */
        s = end > at ? enter(b, s, name + first, end - first) : s;
        at = end + 1;
    }
    return s;
}

static int by_node_name(const void *a, const void *b)
{
    return strcmp(((const struct weft_scope_note *)a)->node, ((const struct weft_scope_note *)b)->node);
}

static const char *noted(const struct builder *b, const char *node)
{
    const struct weft_scope_note key = {.node = node};
    const struct weft_scope_note *found =
        node && b->notes ? bsearch(&key, b->note, b->notes, sizeof *b->note, by_node_name) : NULL;
    return found ? found->path : NULL;
}

static uint32_t scope_by_names(struct builder *b, weft_node n)
{
    const struct weft_graph *const g = b->tree->graph;
    const struct weft_node_info *const info = weft_node_of(g, n);
    const char *const path = noted(b, info->name);
    uint32_t s = path ? enter_noted(b, path) : info->name ? enter_by_name(b, info->name) : 0;
    for (unsigned i = 0; !s && i < info->results; i++) {
        const char *const text = b->tree->text[weft_result(g, n, i).id];
        s = text[0] == '%' && text[1] != '"' ? enter_by_name(b, text + 1) : 0;
        if (text[0] == '%' && text[1] == '"') /* '%"a b/c"' */
            s = enter_by_name(b, weft_value_of(g, weft_result(g, n, i))->name);
    }
    return s;
}

/* --- scopes of units ---------------------------------------------------------------------------------------------- */

static uint32_t meet(const struct builder *b, uint32_t x, uint32_t y)
{
    while (x != y) {
        const bool first = b->depth[x] >= b->depth[y];
        x = first ? b->tree->scope[x].parent : x;
        y = first ? y : b->tree->scope[y].parent;
    }
    return x;
}

static bool is_in(const struct builder *b, weft_node n)
{
    return n.id && !(b->tree->skipped && b->tree->skipped[n.id]);
}

/* Where the makers and the readers of a node meet, if there are both. */
static void place_between(struct builder *b, weft_node n)
{
    const struct weft_graph *const g = b->tree->graph;
    const struct weft_node_info *const info = weft_node_of(g, n);
    bool made = false, is_read = false;
    uint32_t s = 0;
    for (unsigned i = 0; i < info->operands; i++) {
        const weft_node def = weft_def(g, weft_operand(g, n, i));
        if (!is_in(b, def) || !b->known[def.id])
            continue;
        s = made ? meet(b, s, b->of[def.id]) : b->of[def.id];
        made = true;
    }
    for (unsigned i = 0; made && i < info->results; i++)
        for (uint32_t use = weft_value_of(g, weft_result(g, n, i))->first_use; use; use = g->slot[use - 1].next) {
            const weft_node reader = g->slot[use - 1].node;
            if (!b->known[reader.id])
                continue;
            s = meet(b, s, b->of[reader.id]);
            is_read = true;
        }
    b->of[n.id] = is_read ? s : 0;
    b->known[n.id] = made && is_read;
}

static void place_nodes(struct builder *b)
{
    const struct weft_graph *const g = b->tree->graph;
    weft_foreach_node(g, n) {
        if (!is_in(b, n))
            continue;
        b->of[n.id] = scope_by_names(b, n);
        b->known[n.id] = b->of[n.id] != 0;
    }
    weft_foreach_node(g, n)
        if (is_in(b, n) && !b->known[n.id])
            place_between(b, n);
    uint32_t *const common = weft_new(b->tree->arena, uint32_t, g->groups + 1);
    bool *const seen = weft_new(b->tree->arena, bool, g->groups + 1);
    for (int round = 0; round < 2; round++)
        weft_foreach_node(g, n) {
            const uint32_t group = weft_node_of(g, n)->group;
            if (!group || !is_in(b, n))
                continue;
            if (round == 1) {
                b->of[n.id] = common[group];
            } else if (b->known[n.id]) {
                common[group] = seen[group] ? meet(b, common[group], b->of[n.id]) : b->of[n.id];
                seen[group] = true;
            }
        }
}

/* --- items -------------------------------------------------------------------------------------------------------- */

static struct weft_scope_item *add_item(struct builder *b, uint32_t parent, uint32_t scope)
{
    struct weft_name_scope *const p = &b->tree->scope[parent];
    p->item = weft_grow(b->tree->arena, p->item, &p->item_capacity, p->items + 1, sizeof *p->item);
    p->item[p->items] = (struct weft_scope_item){.scope = scope, .name = "", .full = ""};
    return &p->item[p->items++];
}

/* The nodes of each scope, in one array: `begin` by scope, with the end of the last behind it. */
static weft_node *count_nodes(const struct builder *b, uint32_t *begin)
{
    const struct weft_scopes *const t = b->tree;
    weft_foreach_node(t->graph, n)
        for (uint32_t s = is_in(b, n) ? b->of[n.id] : 0; s; s = t->scope[s].parent)
            begin[s + 1]++;
    for (uint32_t s = 0; s < t->scopes; s++)
        begin[s + 1] += begin[s];
    return weft_new(t->arena, weft_node, begin[t->scopes] + 1);
}

/* Scopes on the way to a unit that are new become items, the outermost first. */
static void list_scopes(struct builder *b, uint32_t innermost, bool *listed)
{
    uint32_t way[MOST_DEPTH + 1], count = 0;
    for (uint32_t s = innermost; s && !listed[s]; s = b->tree->scope[s].parent)
        way[count++] = s;
    while (count--) {
        listed[way[count]] = true;
        add_item(b, b->tree->scope[way[count]].parent, way[count]);
    }
}

static void list_items(struct builder *b)
{
    struct weft_scopes *const t = b->tree;
    const struct weft_graph *const g = t->graph;
    bool *const listed = weft_new(t->arena, bool, t->scopes);
    uint32_t *const begin = weft_new(t->arena, uint32_t, t->scopes + 1);
    uint32_t *const filled = weft_new(t->arena, uint32_t, t->scopes);
    weft_node *const node = count_nodes(b, begin), *const order = weft_new(t->arena, weft_node, g->nodes + 1);
    uint32_t nodes = 0, group = 0;
    weft_foreach_node(g, n) {
        if (!is_in(b, n))
            continue;
        const uint32_t s = b->of[n.id];
        list_scopes(b, s, listed);
        for (uint32_t outer = s; outer; outer = t->scope[outer].parent)
            node[begin[outer] + filled[outer]++] = n;
        order[nodes] = n;
        if (group && weft_node_of(g, n)->group == group)
            t->scope[s].item[t->scope[s].items - 1].nodes++; /* groups are consecutive */
        else
            *add_item(b, s, 0) = (struct weft_scope_item){.name = "", .full = "", .node = &order[nodes], .nodes = 1};
        nodes++;
        group = weft_node_of(g, n)->group;
    }
    for (uint32_t s = 0; s < t->scopes; s++)
        for (uint32_t i = 0; i < t->scope[s].items; i++) {
            struct weft_scope_item *const item = &t->scope[s].item[i];
            item->node = item->scope ? &node[begin[item->scope]] : item->node;
            item->nodes = item->scope ? filled[item->scope] : item->nodes;
        }
}

/* The name of a scope in another: what is left of it behind the other's. */
static const char *relative(const char *full, const char *outer)
{
    const size_t length = strlen(outer);
    const bool inside = length && strncmp(full, outer, length) == 0 && full[length] && strchr("./", full[length]);
    return inside && full[length + 1] ? full + length + 1 : full;
}

/* Inner scopes have larger numbers than those around them, and come first. */
static void finish_items(struct builder *b)
{
    struct weft_scopes *const t = b->tree;
    for (uint32_t s = t->scopes; s-- > 0;)
        for (uint32_t i = 0; i < t->scope[s].items; i++) {
            struct weft_scope_item *const item = &t->scope[s].item[i];
            struct weft_name_scope *const inner = &t->scope[item->scope];
            if (!item->scope || inner->items != 1) {
                item->full = item->scope ? inner->full : item->full;
                continue;
            }
            const char *const full = inner->item[0].full[0] ? inner->item[0].full : inner->full;
            *item = inner->item[0];
            item->full = full;
            inner->items = 0;
        }
    while (t->scope[0].items == 1 && t->scope[0].item[0].scope) {
        struct weft_name_scope *const only = &t->scope[t->scope[0].item[0].scope];
        t->scope[0].items = only->items;
        t->scope[0].item = only->item;
        only->items = 0;
    }
    for (uint32_t s = 0; s < t->scopes; s++)
        for (uint32_t i = 0; i < t->scope[s].items; i++) {
            struct weft_scope_item *const item = &t->scope[s].item[i];
            item->name = relative(item->full, t->scope[s].full);
            t->scope[item->scope].parent = item->scope ? s : t->scope[item->scope].parent;
            t->scope[item->scope].place = item->scope ? i : 0;
            for (uint32_t k = 0; !item->scope && k < item->nodes; k++) {
                t->of[item->node[k].id] = s;
                t->place[item->node[k].id] = i;
            }
        }
}

void weft_scopes_skip_known(const struct weft_graph *graph, bool *ret_skipped)
{
    weft_foreach_node(graph, n) {
        const struct weft_op_info *op = weft_op_of(graph, n);
        const bool moves = op->traits & (WEFT_SOURCE | WEFT_VIEW | WEFT_PLACEMENT);
        bool known = moves || weft_opcode_of(graph, n) == WEFT_OP_cast;
        for (unsigned i = 0; known && i < weft_node_of(graph, n)->operands; i++) {
            const weft_node def = weft_def(graph, weft_operand(graph, n, i));
            known = def.id && ret_skipped[def.id];
        }
        ret_skipped[n.id] = known;
    }
}

void weft_scopes_build(struct weft_scopes *scopes)
{
    const struct weft_graph *const g = scopes->graph;
    struct builder b = {.tree = scopes, .hash_size = 64};
    b.of = weft_new(scopes->arena, uint32_t, g->nodes + 1);
    b.known = weft_new(scopes->arena, bool, g->nodes + 1);
    b.hash = weft_new(scopes->arena, uint32_t, b.hash_size);
    b.notes = g->root->scopes;
    b.note = weft_new(scopes->arena, struct weft_scope_note, b.notes + 1);
    if (b.notes) {
        memcpy(b.note, g->root->scope, b.notes * sizeof *b.note);
        qsort(b.note, b.notes, sizeof *b.note, by_node_name);
    }
    append_scope(&b, 0, "", 0);
    place_nodes(&b);
    list_items(&b);
    scopes->of = weft_new(scopes->arena, uint32_t, g->nodes + 1);
    scopes->place = weft_new(scopes->arena, uint32_t, g->nodes + 1);
    finish_items(&b);
    scopes->stand_in = weft_new(scopes->arena, weft_node, g->nodes + 1);
    weft_foreach_node(g, n)
        scopes->stand_in[n.id] = n;
}

bool weft_scope_is_named(const char *full, const char *name)
{
    const size_t length = strlen(name), all = strlen(full);
    return length && length <= all && strcmp(full + all - length, name) == 0 &&
           (length == all || strchr("./", full[all - length - 1]));
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

bool weft_scopes_is_called(const struct weft_scopes *scopes, const struct weft_scope_item *item, const char *name)
{
    const struct weft_graph *const g = scopes->graph;
    bool found = weft_scope_is_named(item->full, name);
    for (uint32_t i = 0; !found && item->scope && i < scopes->scope[item->scope].items; i++)
        found = weft_scopes_is_called(scopes, &scopes->scope[item->scope].item[i], name);
    for (uint32_t i = 0; !found && !item->scope && i < item->nodes; i++) {
        const struct weft_node_info *const info = weft_node_of(g, item->node[i]);
        found = info->name && strcmp(info->name, name) == 0;
        for (unsigned r = 0; !found && r < info->results; r++) {
            const char *const text = scopes->text[weft_result(g, item->node[i], r).id];
            found = strcmp(text, name) == 0 || (text[0] == '%' && strcmp(text + 1, name) == 0);
        }
    }
    return found;
}

const struct weft_repeat *weft_scopes_repeat_at(const struct weft_scopes *scopes, uint32_t scope, uint32_t item)
{
    for (uint32_t i = 0; i < scopes->repeats; i++) {
        const struct weft_repeat *const r = &scopes->repeat[i];
        if (r->scope == scope && item >= r->first && item - r->first < r->count)
            return r;
    }
    return NULL;
}

bool weft_scopes_are_in_copies(const struct weft_scopes *scopes, weft_node a, weft_node b)
{
    uint32_t x = scopes->of[a.id], y = scopes->of[b.id], i = scopes->place[a.id], k = scopes->place[b.id];
    while (x != y) { /* inner scopes have larger numbers */
        uint32_t *const deep = x > y ? &x : &y;
        *(x > y ? &i : &k) = scopes->scope[*deep].place;
        *deep = scopes->scope[*deep].parent;
    }
    const struct weft_repeat *const r = i != k ? weft_scopes_repeat_at(scopes, x, i) : NULL;
    return r && k >= r->first && k - r->first < r->count && (i - r->first) / r->period != (k - r->first) / r->period;
}

/* The items of a copy with names, "layer.0" or "stem, blocks.0". */
const char *weft_repeat_name(const struct weft_scopes *scopes, const struct weft_repeat *repeat)
{
    const struct weft_scope_item *const item = &scopes->scope[repeat->scope].item[repeat->first];
    uint32_t named = 0;
    while (named < repeat->period && !item[named].scope)
        named++;
    if (named == repeat->period)
        return "";
    uint32_t last = named;
    for (uint32_t i = named; i < repeat->count; i += repeat->period)
        last = i;
    return weft_arena_format(scopes->arena, "%s … %s", item[named].name, item[last].name);
}
