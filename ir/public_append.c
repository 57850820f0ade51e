/* SPDX-License-Identifier: Apache-2.0 */
/* public_append.c: the builder of weft.h: nodes. A C struct cannot say which of its members was meant, nor an id of
 * which graph it is; so each attribute has to be in the member of its kind and in no other, values bear the number of
 * their graph, extents that of their table, and a type that is stated has to be the one that follows. */
#include "ir/public.h"
#include "ir/suggest.h"
#include "ir/values.h"

#include <string.h>

struct append {
    struct weft_graph *graph;
    const struct weft_op *op;
    int opcode;
    const char *where; /* the node, for messages */
    weft_val *results;
    weft_node beside;  /* in front of this node, or none: at the end */
    bool behind;       /* or behind it */
};

/* --- attributes --------------------------------------------------------------------------------------------------- */

/* What each kind is, and which member of weft_attribute holds it. */
static const struct {
    const char *is, *set;
} kinds[] = {
    [WEFT_ATTR_INT] = {"an integer", ".integer"},
    [WEFT_ATTR_INTS] = {"a list of integers", ".integers and .count"},
    [WEFT_ATTR_REAL] = {"a number", ".real"},
    [WEFT_ATTR_REALS] = {"a list of numbers", ".reals and .count"},
    [WEFT_ATTR_WORD] = {"a word", ".word"},
    [WEFT_ATTR_DTYPE] = {"an element type by its name", ".word"},
    [WEFT_ATTR_GRAPH] = {"a body", ".graph"},
    [WEFT_ATTR_VALUES] = {"a list of named values", ".values and .count"},
};

/* A member that is set although the kind is another one's, or NULL. */
static const char *find_foreign(const struct weft_attribute *given, int kind)
{
    const bool is_list = kind == WEFT_ATTR_INTS || kind == WEFT_ATTR_REALS || kind == WEFT_ATTR_VALUES,
               is_word = kind == WEFT_ATTR_WORD || kind == WEFT_ATTR_DTYPE;
    if (given->integer && kind != WEFT_ATTR_INT)
        return ".integer";
    if (given->real != 0 && kind != WEFT_ATTR_REAL) /* also of NaN */
        return ".real";
    if (given->word && !is_word)
        return ".word";
    if (given->integers && kind != WEFT_ATTR_INTS)
        return ".integers";
    if (given->reals && kind != WEFT_ATTR_REALS)
        return ".reals";
    if (given->graph && kind != WEFT_ATTR_GRAPH)
        return ".graph";
    if (given->values && kind != WEFT_ATTR_VALUES)
        return ".values";
    if (given->reserved[1])
        return ".reserved";
    return given->count && !is_list ? ".count" : NULL;
}

/* Is the member of the kind not set? A number may be 0, and a list that has a default may be left to it. */
static bool is_unset(const struct weft_attribute *given, int kind, bool has_default)
{
    switch ((enum weft_attr_kind)kind) {
    case WEFT_ATTR_INT:
    case WEFT_ATTR_REAL: return false;
    case WEFT_ATTR_WORD:
    case WEFT_ATTR_DTYPE: return !given->word;
    case WEFT_ATTR_GRAPH: return !given->graph;
    case WEFT_ATTR_INTS: return !given->integers && (given->count || !has_default);
    case WEFT_ATTR_REALS: return !given->reals && (given->count || !has_default);
    case WEFT_ATTR_VALUES: return !given->values && given->count;
    }
    return true;
}

/* A list that is left to the op's default, as weft_node_attribute tells of one: as if it were not given. */
static bool is_left_out(const struct weft_attribute *given, int kind)
{
    return (kind == WEFT_ATTR_INTS && !given->integers) || (kind == WEFT_ATTR_REALS && !given->reals) ||
           (kind == WEFT_ATTR_VALUES && !given->count);
}

static int no_attribute(const struct append *a, const char *name)
{
    struct weft_suggest suggest;
    return name ? weft_wrong(a->graph->context, a->where, "%s has no attribute '%.64s'%s", a->op->op, name,
                             weft_suggest_attr(&suggest, a->opcode, name, strlen(name)))
                : weft_wrong(a->graph->context, a->where, "an attribute of %s has no name", a->op->op);
}

static int check_member(const struct append *a, const struct weft_attribute *given, const struct weft_attr_spec *spec)
{
    struct weft_context *context = a->graph->context;
    const int kind = weft_attr_kinds[spec->key];
    const char *op = a->op->op, *foreign = find_foreign(given, kind);
    if (foreign)
        return weft_wrong(context, a->where, "attribute %s of %s is %s: set %s, not %s", given->name, op,
                          kinds[kind].is, kinds[kind].set, foreign);
    if (is_unset(given, kind, spec->has_default))
        return weft_wrong(context, a->where, "attribute %s of %s is %s, but %s %s not set", given->name, op,
                          kinds[kind].is, kinds[kind].set, strchr(kinds[kind].set, ' ') ? "are" : "is");
    if (given->integer > WEFT_DIM_LIMIT || given->integer < -WEFT_DIM_LIMIT)
        return weft_wrong(context, a->where, "attribute %s of %s, %lld, is beyond 2^62 - 1", given->name, op,
                          (long long)given->integer);
    if (given->count > UINT32_MAX)
        return weft_wrong(context, a->where, "attribute %s of %s is a list longer than 2^32 - 1", given->name, op);
    return WEFT_OK;
}

static int check_elements(const struct append *a, const struct weft_attribute *given, const struct weft_attr *attr)
{
    struct weft_suggest suggest;
    if (attr->kind == WEFT_ATTR_DTYPE && !attr->dtype)
        return weft_wrong(a->graph->context, a->where, "attribute %s of %s: there is no element type '%.64s'%s",
                          given->name, a->op->op, given->word,
                          weft_suggest_dtype(&suggest, given->word, strlen(given->word)));
    const char *const broken = attr->kind == WEFT_ATTR_VALUES ? weft_values_check(attr->values, attr->count) : NULL;
    if (broken)
        return weft_wrong(a->graph->context, a->where, "attribute %s of %s: %s", given->name, a->op->op, broken);
    for (uint32_t i = 0; attr->kind == WEFT_ATTR_INTS && i < attr->count; i++)
        if (!weft_dim_exists(a->graph->dims, attr->integers[i]))
            return weft_wrong(a->graph->context, a->where, "element %u of attribute %s of %s " NO_EXPRESSION, i,
                              given->name, a->op->op);
    return WEFT_OK;
}

static int read_attr(const struct append *a, const struct weft_attribute *given, struct weft_attr *ret)
{
    const int key = given->name ? weft_attr_key_find(given->name, strlen(given->name)) : 0;
    const struct weft_attr_spec *spec = key ? weft_attr_spec_find(a->opcode, key) : NULL;
    if (!spec)
        return no_attribute(a, given->name);
    const int status = check_member(a, given, spec);
    if (status != WEFT_OK)
        return status;
    *ret = (struct weft_attr){.key = (uint8_t)key, .kind = weft_attr_kinds[key]};
    switch ((enum weft_attr_kind)ret->kind) {
    case WEFT_ATTR_INT: ret->integer = weft_dim_of(given->integer); break;
    case WEFT_ATTR_REAL: ret->real = given->real; break;
    case WEFT_ATTR_WORD: ret->word = given->word; break;
    case WEFT_ATTR_DTYPE: ret->dtype = weft_dtype_from_name(given->word); break;
    case WEFT_ATTR_GRAPH: ret->graph = given->graph; break;
    case WEFT_ATTR_INTS: ret->integers = given->integers; ret->count = (uint32_t)given->count; break;
    case WEFT_ATTR_REALS: ret->reals = given->reals; ret->count = (uint32_t)given->count; break;
    case WEFT_ATTR_VALUES: ret->values = given->values; ret->count = (uint32_t)given->count; break;
    }
    return check_elements(a, given, ret);
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* Copies operands, without the number of their graph. */
static int read_operands(const struct append *a, weft_val *ret)
{
    for (size_t i = 0; i < a->op->operands; i++) {
        if (!weft_value_is_in(a->graph, a->op->operand[i]))
            return weft_wrong(a->graph->context, a->where, "operand %zu of %s is %s", i, a->op->op,
                              weft_stranger(a->graph, a->op->operand[i]));
        ret[i] = (weft_val){.id = a->op->operand[i].id};
    }
    return WEFT_OK;
}

/* The types that the caller states of a custom op, in the graph's memory; NULL: it states none. */
static int read_results(const struct append *a, struct weft_type **ret)
{
    const struct weft_op *op = a->op;
    *ret = NULL;
    if (op->results && (a->opcode != WEFT_OP_custom || op->dtype || !op->result ||
                        op->results > WEFT_CUSTOM_MOST_RESULTS))
        return weft_wrong(a->graph->context, a->where, "weft_op.results is for custom ops, which have at most %d, with "
                          "weft_op.result and without weft_op.dtype", WEFT_CUSTOM_MOST_RESULTS);
    *ret = op->results ? weft_new(a->graph->arena, struct weft_type, op->results) : NULL;
    for (size_t i = 0; i < op->results; i++) {
        const struct weft_custom_type *const type = &op->result[i];
        const int status = weft_public_type(a->graph, a->where, type->dtype, type->rank, type->extent, &(*ret)[i]);
        if (status != WEFT_OK)
            return status;
    }
    return WEFT_OK;
}

/* The type that the caller states: of an op that does not infer it, or what the caller takes it to be. */
static int read_type(const struct append *a, struct weft_type *ret)
{
    const struct weft_op *op = a->op;
    if (op->dtype)
        return weft_public_type(a->graph, a->where, op->dtype, op->rank, op->extent, ret);
    if ((weft_ops[a->opcode].traits & WEFT_STATED) && a->opcode != WEFT_OP_custom)
        return weft_wrong(a->graph->context, a->where, "%s does not infer its type: set dtype, rank and extent",
                          op->op);
    return WEFT_OK;
}

/* Is all that the node reads there in front of its place? */
static int check_order(const struct append *a, const weft_val *operand)
{
    struct weft_graph *const g = a->graph;
    if (!a->beside.id)
        return WEFT_OK;
    weft_require(g, WEFT_ORDER);
    for (size_t i = 0; i < a->op->operands; i++) {
        const weft_node def = weft_def(g, operand[i]);
        if (def.id && g->position[def.id] >= g->position[a->beside.id])
            return weft_wrong(g->context, a->where, "operand %zu of %s, %s, is computed behind the place of the node",
                              i, a->op->op, weft_value_text(g, operand[i]));
    }
    return WEFT_OK;
}

/* The node before which to insert: the given one, or the next; an error in a group, whose nodes stand side by side. */
static int find_place(struct append *a)
{
    struct weft_graph *const g = a->graph;
    const weft_node beside = {.id = a->beside.id};
    if (!weft_node_is_in(g, a->beside))
        return weft_wrong(g->context, a->where, "the node that it is to stand beside is none of this graph's");
    if (g->node[beside.id].group)
        return weft_wrong(g->context, a->where, "the node that it is to stand beside is in group @%s",
                          g->group[g->node[beside.id].group].name);
    a->beside = a->behind ? g->node[beside.id].next : beside;
    return WEFT_OK;
}

static int append_node(const struct append *a)
{
    struct weft_graph *graph = a->graph;
    const struct weft_op *op = a->op;
    weft_val few[16], *operand = op->operands <= 16 ? few : weft_new(graph->arena, weft_val, op->operands);
    struct weft_attr attrs[WEFT_ATTR_COUNT];
    struct weft_type type, *types;
    if (read_operands(a, operand) != WEFT_OK || read_results(a, &types) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    unsigned given = 0;
    for (size_t i = 0; i < op->attributes; i++) {
        if (read_attr(a, &op->attribute[i], &attrs[given]) != WEFT_OK)
            return WEFT_ERR_ARGUMENT;
        given += !is_left_out(&op->attribute[i], attrs[given].kind);
    }
    if (read_type(a, &type) != WEFT_OK || check_order(a, operand) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    const bool stated = op->dtype && (weft_ops[a->opcode].traits & WEFT_STATED);
    const weft_node node = weft_add_node(graph, &(struct weft_node_spec){
        .op = a->opcode, .operand = operand, .operands = (unsigned)op->operands, .attr = attrs,
        .attrs = given, .stated = types ? types : stated ? &type : NULL,
        .results = types ? (unsigned)op->results : stated && a->opcode == WEFT_OP_custom ? 1 : 0,
        .claimed = op->dtype && !stated ? &type : NULL, .place = {.where = a->where}, .before = a->beside});
    if (!node.id)
        return WEFT_ERR_INVALID;
    if (op->name && graph->node[node.id].results)
        weft_set_name(graph, weft_result(graph, node, 0), op->name, strlen(op->name));
    for (unsigned i = 0; i < graph->node[node.id].results; i++)
        a->results[i] = weft_value_out(graph, weft_result(graph, node, i));
    return WEFT_OK;
}

static int find_op(struct weft_graph *graph, const char *op, const char *where)
{
    struct weft_suggest suggest;
    const int opcode = op ? weft_opcode_find(op, strlen(op)) : 0;
    if (opcode == WEFT_OP_const)
        weft_wrong(graph->context, where, "constants are made by weft_constant and weft_splat");
    else if (!opcode && op)
        weft_wrong(graph->context, where, "there is no op '%.64s'%s", op,
                   weft_suggest_op(&suggest, op, strlen(op)));
    else if (!opcode)
        weft_wrong(graph->context, where, "weft_op.op is NULL");
    return opcode == WEFT_OP_const ? 0 : opcode;
}

static int append(void *arg)
{
    struct append *a = arg;
    struct weft_graph *graph = a->graph;
    struct weft_op op;
    char unnamed[WEFT_PLACE_BYTES];
    const bool sized = weft_take_options(&op, sizeof op, a->op);
    a->op = &op;
    a->where = weft_public_place("node", graph->nodes, graph, sized ? op.name : NULL, unnamed);
    if (!sized)
        return weft_wrong(graph->context, a->where, "weft_op.size is not set");
    if (weft_uneditable(graph) || (a->beside.id && find_place(a) != WEFT_OK))
        return WEFT_ERR_ARGUMENT;
    a->opcode = find_op(graph, op.op, a->where);
    if (!a->opcode)
        return WEFT_ERR_ARGUMENT;
    if ((op.operands && !op.operand) || (op.attributes && !op.attribute))
        return weft_wrong(graph->context, a->where, "%s has %zu operands and %zu attributes, but %s is NULL", op.op,
                          op.operands, op.attributes,
                          op.operands && !op.operand ? "weft_op.operand" : "weft_op.attribute");
    if (op.operands > UINT16_MAX || op.attributes > WEFT_ATTR_COUNT)
        return weft_wrong(graph->context, a->where,
                          "an op has at most 65535 operands, and each attribute once; this %s has %zu and %zu", op.op,
                          op.operands, op.attributes);
    if (op.name && !*op.name)
        return weft_wrong(graph->context, a->where, NO_NAME);
    if (op.name && weft_value_find(graph, op.name, strlen(op.name)).id)
        return weft_wrong(graph->context, op.name, "there is a value of this name already");
    return append_node(a);
}

int weft_append(struct weft_graph *graph, const struct weft_op *op, weft_val *ret_results)
{
    if (!graph || !op || !ret_results)
        return weft_missing(graph ? graph->context : NULL);
    return weft_protected_graph(graph, append, &(struct append){.graph = graph, .op = op, .results = ret_results});
}

static int insert(struct weft_graph *graph, weft_node node, bool behind, const struct weft_op *op, weft_val *ret)
{
    struct append a = {.graph = graph, .op = op, .results = ret, .beside = node, .behind = behind};
    a.beside.id = node.id ? node.id : UINT32_MAX; /* none is no node of the graph */
    return weft_protected_graph(graph, append, &a);
}

int weft_insert_before(struct weft_graph *graph, weft_node node, const struct weft_op *op, weft_val *ret_results)
{
    return graph && op && ret_results ? insert(graph, node, false, op, ret_results)
                                      : weft_missing(graph ? graph->context : NULL);
}

int weft_insert_after(struct weft_graph *graph, weft_node node, const struct weft_op *op, weft_val *ret_results)
{
    return graph && op && ret_results ? insert(graph, node, true, op, ret_results)
                                      : weft_missing(graph ? graph->context : NULL);
}
