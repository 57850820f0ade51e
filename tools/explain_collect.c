/* SPDX-License-Identifier: Apache-2.0 */
/* explain_collect.c: from a model as read and its plan to origins with their fates.
 *
 * A plan's graph is a copy, whose nodes are numbered anew in order of execution, and ids are never reused: so the k-th
 * node of the model is node k of the plan's graph, or was, and what has a higher number was made by a pass. Passes hand
 * the name of a node on to whatever they make of it. Everything here is linear in nodes, values and remarks. */
#include "tools/explain.h"

#include <ctype.h>
#include <string.h>

const char *const explain_fates[] = {"constant", "kept", "rewritten", "folded", "cancelled", "joined",
                                     "dropped"};

void explain_name_nodes(struct weft_graph *graph)
{
    const char **label = weft_value_labels(graph, graph->arena);
    weft_foreach_node(graph, n) {
        struct weft_node_info *info = weft_node_of(graph, n);
        if (!info->name && info->results > 0)
            info->name = weft_arena_format(graph->arena, "%%%s", label[info->first_result]);
    }
    for (uint32_t i = 0; i < graph->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        explain_name_nodes(graph->body[i]);
}

/* --- origins ------------------------------------------------------------------------------------------------------ */

static uint32_t origin_of(struct explain *e, struct weft_parse_names *names, const struct explain_pair *pair,
                          const char *name)
{
    const uint32_t known = weft_parse_names_find(names, (struct weft_word){name, strlen(name)});
    if (known)
        return known - 1;
    e->origin = weft_grow(e->arena, e->origin, &e->origin_capacity, e->origins + 1, sizeof *e->origin);
    e->origin[e->origins] =
        (struct explain_origin){.name = name, .pair = (uint32_t)(pair - e->pair)};
    weft_parse_names_add(e->arena, names, name, e->origins + 1);
    return e->origins++;
}

/* Lists keep the order of execution, so each is built from its end. */
static void list_nodes(struct explain *e, struct explain_pair *pair)
{
    struct weft_parse_names names = {0};
    weft_foreach_node(pair->from, n)
        if (pair->from->node[n.id].name)
            origin_of(e, &names, pair, pair->from->node[n.id].name);
    for (weft_node n = pair->from->last; n.id; n = pair->from->node[n.id].previous) {
        if (!pair->from->node[n.id].name)
            continue;
        struct explain_origin *origin = &e->origin[origin_of(e, &names, pair, pair->from->node[n.id].name)];
        pair->next_source[n.id] = origin->source;
        origin->source = n.id;
    }
    for (weft_node n = pair->to->last; n.id; n = pair->to->node[n.id].previous) {
        const char *name = pair->to->node[n.id].name;
        const uint32_t known = name ? weft_parse_names_find(&names, (struct weft_word){name, strlen(name)}) : 0;
        if (!known)
            continue;
        pair->next_final[n.id] = e->origin[known - 1].final;
        e->origin[known - 1].final = n.id;
    }
}

/* Node k in the order of `from` was made node k of the copy. */
static uint32_t *ranks(const struct explain *e, const struct weft_graph *from)
{
    uint32_t *rank = weft_new(e->arena, uint32_t, from->nodes), next = 1;
    weft_foreach_node(from, n)
        rank[n.id] = next++;
    return rank;
}

/* Names of the values of `from`; what has none is called like its copy. */
static const char **labels_as_copied(const struct explain *e, const struct explain_pair *pair)
{
    const struct weft_graph *const from = pair->from, *const to = pair->to;
    const char **label = weft_value_labels(from, e->arena);
    weft_foreach_node(from, n)
        for (uint32_t i = 0; i < from->node[n.id].results; i++) {
            const uint32_t v = from->node[n.id].first_result + i, copy = to->node[pair->rank[n.id]].first_result + i;
            if (!from->value[v].name && !to->value[copy].name)
                label[v] = pair->to_label[copy];
        }
    return label;
}

/* The origins of one graph stand together: those of its bodies come behind. */
static void add_pair(struct explain *e, const struct weft_graph *from, const struct weft_graph *to, const char *inside)
{
    e->pair = weft_grow(e->arena, e->pair, &e->pair_capacity, e->pairs + 1, sizeof *e->pair);
    struct explain_pair *pair = &e->pair[e->pairs++];
    *pair = (struct explain_pair){.from = from,
                                  .to = to,
                                  .inside = inside,
                                  .to_label = weft_value_labels(to, e->arena),
                                  .next_source = weft_new(e->arena, uint32_t, from->nodes),
                                  .next_final = weft_new(e->arena, uint32_t, to->nodes)};
    pair->rank = ranks(e, from);
    pair->from_label = labels_as_copied(e, pair);
    list_nodes(e, pair);
    explain_count_groups(e, pair);
    for (uint32_t i = 0; i < from->bodies && i < to->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        add_pair(e, from->body[i], to->body[i], from->body[i]->name);
}

/* --- remarks ------------------------------------------------------------------------------------------------------ */

/* Remarks name values; the first origin that has one takes all that is said about it. */
static void take_remarks(struct explain *e, struct weft_parse_names *places, uint32_t *first,
                         struct explain_origin *origin, const char *label)
{
    struct weft_text where = {.context = e->context, .arena = e->arena};
    weft_text_name(&where, '%', label);
    const uint32_t place = weft_parse_names_find(places, (struct weft_word){where.data, where.length});
    if (!place || !first[place])
        return;
    uint32_t *end = &origin->remark;
    while (*end)
        end = &e->next_remark[*end - 1];
    *end = first[place];
    first[place] = 0;
}

static void take_all(struct explain *e, struct weft_parse_names *places, uint32_t *first, struct explain_origin *origin)
{
    const struct explain_pair *pair = &e->pair[origin->pair];
    for (uint32_t n = origin->source; n; n = pair->next_source[n])
        for (uint32_t i = 0; i < pair->from->node[n].results; i++)
            take_remarks(e, places, first, origin, pair->from_label[pair->from->node[n].first_result + i]);
    for (uint32_t n = origin->final; n; n = pair->next_final[n])
        for (uint32_t i = 0; i < pair->to->node[n].results; i++)
            take_remarks(e, places, first, origin, pair->to_label[pair->to->node[n].first_result + i]);
}

static void list_remarks(struct explain *e)
{
    struct weft_parse_names places = {0};
    const uint32_t count = e->to->root->remarks;
    uint32_t *first = weft_new(e->arena, uint32_t, count + 1), *last = weft_new(e->arena, uint32_t, count + 1);
    e->next_remark = weft_new(e->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const char *where = e->to->root->remark[i].where ? e->to->root->remark[i].where : "";
        weft_parse_names_add(e->arena, &places, where, i + 1);
        const uint32_t place = weft_parse_names_find(&places, (struct weft_word){where, strlen(where)});
        if (first[place])
            e->next_remark[last[place] - 1] = i + 1;
        else
            first[place] = i + 1;
        last[place] = i + 1;
    }
    for (uint32_t i = 0; i < e->origins; i++)
        take_all(e, &places, first, &e->origin[i]);
}

/* --- fates -------------------------------------------------------------------------------------------------------- */

static bool only_constants(const struct weft_graph *graph, const uint32_t *next, uint32_t first)
{
    for (uint32_t n = first; n; n = next[n])
        if (!(weft_op_of(graph, (weft_node){.id = n})->traits & WEFT_SOURCE))
            return false;
    return true;
}

bool explain_is_unused_constant(const struct explain *e, const struct explain_origin *origin)
{
    const struct explain_pair *const pair = &e->pair[origin->pair];
    return !origin->final && only_constants(pair->from, pair->next_source, origin->source);
}

static bool has_verdict(const struct explain *e, const struct explain_origin *origin, const char *verdict)
{
    for (uint32_t r = origin->remark; r; r = e->next_remark[r - 1])
        if (strcmp(e->to->root->remark[r - 1].verdict, verdict) == 0)
            return true;
    return false;
}

static enum explain_fate fate_of(const struct explain *e, const struct explain_origin *origin)
{
    const struct explain_pair *pair = &e->pair[origin->pair];
    const bool source_only = only_constants(pair->from, pair->next_source, origin->source);
    uint32_t before = 0, same = 0, after = 0;
    for (uint32_t n = origin->source; n; n = pair->next_source[n]) {
        const struct weft_node_info *now = &pair->to->node[pair->rank[n]];
        before++;
        same += !now->dead && now->op == pair->from->node[n].op;
    }
    for (uint32_t n = origin->final; n; n = pair->next_final[n])
        after++;
    if (after == 0)
        return has_verdict(e, origin, "joined")                   ? EXPLAIN_JOINED
               : source_only || has_verdict(e, origin, "dropped") ? EXPLAIN_DROPPED : EXPLAIN_CANCELLED;
    if (only_constants(pair->to, pair->next_final, origin->final))
        return source_only ? EXPLAIN_CONSTANT : EXPLAIN_FOLDED;
    return same == before && after == before ? EXPLAIN_KEPT : EXPLAIN_REWRITTEN;
}

/* What a node of the model was computed into, while compiling. */
struct into {
    const struct explain *e;
    const struct explain_pair *pair;
    const uint32_t *origin; /* by node of the model: its origin + 1, or 0 */
    bool *known;                   /* by node: constants alone decide it */
    bool *read, *gone;             /* by value: a constant was computed from it; and nothing else reads it */
};

/* Whoever reads a value is later in the order of execution, and was asked before. */
static bool goes_into_constant(const struct into *in, weft_node n)
{
    const struct weft_graph *g = in->pair->from;
    const struct weft_node_info *info = &g->node[n.id];
    bool read = false, gone = in->known[n.id] && in->pair->to->node[in->pair->rank[n.id]].dead;
    for (unsigned i = 0; i < info->results; i++) {
        const uint32_t v = info->first_result + i;
        read |= in->read[v];
        gone &= in->gone[v] && !g->value[v].returns;
    }
    return read && gone;
}

static void ask_reader(const struct into *in, weft_node n)
{
    const struct weft_graph *g = in->pair->from;
    const uint32_t origin = in->origin[n.id];
    const int fate = origin ? (int)in->e->origin[origin - 1].fate : EXPLAIN_KEPT;
    const bool into = goes_into_constant(in, n) || fate == EXPLAIN_FOLDED;
    for (unsigned i = 0; i < g->node[n.id].operands; i++) {
        const uint32_t v = weft_operand(g, n, i).id;
        in->read[v] |= into;
        in->gone[v] &= into || fate == EXPLAIN_DROPPED;
    }
}

static void find_known(const struct into *in)
{
    const uint32_t never = WEFT_CONTROL | WEFT_OPAQUE | WEFT_DATA | WEFT_RANDOM;
    const struct weft_graph *g = in->pair->from;
    weft_foreach_node(g, n) {
        bool known = !(weft_op_of(g, n)->traits & never);
        for (unsigned i = 0; i < g->node[n.id].operands; i++) {
            const weft_node from = weft_def(g, weft_operand(g, n, i));
            known &= from.id && in->known[from.id];
        }
        in->known[n.id] = known;
    }
}

/* Of origins [first, end), all of one graph: what is gone, and only constants were computed from, is folded too. */
static void find_folded(struct explain *e, uint32_t first, uint32_t end)
{
    const struct explain_pair *pair = &e->pair[e->origin[first].pair];
    const struct weft_graph *g = pair->from;
    uint32_t *origin = weft_new(e->arena, uint32_t, g->nodes);
    const struct into in = {e, pair, origin, weft_new(e->arena, bool, g->nodes),
                            weft_new(e->arena, bool, g->values), weft_new(e->arena, bool, g->values)};
    for (uint32_t i = first; i < end; i++)
        for (uint32_t n = e->origin[i].source; n; n = pair->next_source[n])
            origin[n] = i + 1;
    for (uint32_t v = 0; v < g->values; v++)
        in.gone[v] = true;
    find_known(&in);
    for (weft_node n = g->last; n.id; n = g->node[n.id].previous)
        ask_reader(&in, n);
    for (uint32_t i = first; i < end; i++) {
        bool all = e->origin[i].final == 0 && e->origin[i].source;
        for (uint32_t n = e->origin[i].source; n && all; n = pair->next_source[n])
            all = goes_into_constant(&in, (weft_node){.id = n});
        if (all)
            e->origin[i].fate = EXPLAIN_FOLDED;
    }
}

void explain_collect(struct explain *e)
{
    e->to = weft_plan_graph(e->plan);
    add_pair(e, e->from, e->to, "");
    list_remarks(e);
    for (uint32_t first = 0, end = 0; first < e->origins; first = end) {
        for (; end < e->origins && e->origin[end].pair == e->origin[first].pair; end++)
            e->origin[end].fate = fate_of(e, &e->origin[end]);
        find_folded(e, first, end);
    }
}

/* --- passes ------------------------------------------------------------------------------------------------------- */

bool explain_pass_at(const struct explain *e, uint32_t i, struct explain_pass *ret)
{
    const struct weft_pass_record *record = e->to->root->record;
    const uint32_t records = e->to->root->records;
    uint32_t at = 0, seen = 0;
    for (; at < records; at++) {
        bool again = false;
        for (uint32_t k = 0; k < at && !again; k++)
            again = strcmp(record[k].pass, record[at].pass) == 0;
        if (!again && seen++ == i)
            break;
    }
    if (at == records)
        return false;
    *ret = (struct explain_pass){.name = record[at].pass};
    for (uint32_t k = at; k < records; k++)
        if (strcmp(record[k].pass, ret->name) == 0) {
            ret->runs++;
            ret->rewrites += record[k].rewrites;
            ret->ns += record[k].ns;
        }
    return true;
}

bool explain_is_by(const struct weft_remark *remark, const char *pass)
{
    const size_t length = strlen(pass);
    return strncmp(remark->who, pass, length) == 0 && (remark->who[length] == '\0' || remark->who[length] == '.');
}

/* The length of a value's name, which begins with %, or 0. */
static size_t name_length(const char *at)
{
    size_t length = *at == '%' && (at[1] == '_' || isalnum((unsigned char)at[1])) ? 2 : 0;
    while (length && (isalnum((unsigned char)at[length]) || (at[length] && strchr("_.$:/-", at[length]))))
        length++;
    while (length && at[length - 1] == ':')
        length--; /* a colon of the sentence */
    return length;
}

/* Equal but for the values that they name. */
static bool is_alike(const char *a, const char *b)
{
    while (*a && *b) {
        const size_t one = name_length(a), two = name_length(b);
        if ((one == 0) != (two == 0) || (!one && *a != *b))
            return false;
        a += one ? one : 1;
        b += two ? two : 1;
    }
    return *a == *b;
}

static bool is_like(const struct weft_remark *a, const struct weft_remark *b)
{
    return strcmp(a->verdict, b->verdict) == 0 && strcmp(a->who, b->who) == 0 && is_alike(a->reason, b->reason);
}

const char *explain_common_reason(const struct explain *e, const char *reason)
{
    struct weft_text text = {.context = e->context, .arena = e->arena};
    for (size_t length; *reason; reason += length ? length : 1) {
        length = name_length(reason);
        weft_text_addn(&text, length ? "%…" : reason, length ? strlen("%…") : 1);
    }
    return text.data ? text.data : "";
}

/* Asked for refusals alone, of which a model has few. */
uint32_t explain_count_like(const struct explain *e, uint32_t remark)
{
    const struct weft_remark *all = e->to->root->remark;
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->to->root->remarks; i++) {
        if (!is_like(&all[i], &all[remark]))
            continue;
        if (i < remark)
            return 0;
        count++;
    }
    return count;
}
