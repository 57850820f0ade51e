/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h: ids, values, nodes and uses (graph.c, copy.c), and the elements of const nodes (constant.c). */
#ifndef WEFT_GRAPH_H
#define WEFT_GRAPH_H

#include "ir/layout.h"
#include "ir/ops.h"

/* --- graph.c: ids, values, nodes, uses ---------------------------------------------------------------------------- */

#define WEFT_NO_VALUE ((weft_val){0})
#define WEFT_NO_NODE ((weft_node){0})

struct weft_attr {
    uint8_t key, kind;
    uint32_t count;
    union {
        weft_dim integer;
        double real;
        const weft_dim *integers;
        const double *reals;
        const char *word;
        int32_t dtype;
        struct weft_graph *graph;
        const struct weft_custom_value *values; /* values.h */
    };
};

/* Right of `!`: a kernel's name and key=value tokens, kept as text. */
struct weft_plan_note {
    const char *kernel; /* or NULL */
    uint32_t count;
    const char **key, **value;
};

/* The elements of a const. */
enum weft_constant_kind { WEFT_CONST_SPLAT, WEFT_CONST_BLOB, WEFT_CONST_RANDOM };
struct weft_constant {
    uint8_t kind;
    bool integer;       /* splat: which of the two members holds it (integers and bool: integer) */
    double real;
    int64_t splat;
    uint64_t seed;      /* random: uniform in [-scale, scale), by the generator that FORMAT.md states */
    double scale;
    struct weft_blob *blob; /* packed row-major elements at blob->data + offset, perhaps unaligned */
    uint64_t offset;
    /* Of a blob of f32: the smallest dtype that holds all its numbers; 0: nobody has looked. Copies of a graph share
     * constants, so that threads may look at once, and find the same (weft_step_numbers). */
    _Atomic uint8_t numbers;
};

struct weft_value {
    struct weft_type type;
    const char *name;        /* unique in the graph, or NULL: numbered when printed */
    weft_node def;           /* none for parameters */
    uint32_t result;         /* which result of def, or which parameter */
    bool is_param, is_mut, is_static;
    bool stated;             /* layout 0 is required of it: without, row-major is what is there where nothing is said */
    uint32_t layout;         /* index in the root's table; 0 is row-major of any rank */
    weft_val heir;           /* the value that took its place, or none */
    uint32_t first_use;      /* index of an operand slot + 1; 0: none */
    uint32_t uses;           /* operand slots, not counting returns */
    uint32_t returns;        /* times returned */
    uint32_t first_return;   /* index of a return slot + 1; 0: none */
    const weft_dim *content; /* elements of a small integer or bool tensor, where known as expressions; else NULL */
};

struct weft_operand {        /* one slot */
    weft_val value;
    weft_node node;
    uint32_t next, previous; /* in the list of uses of value, slot + 1 */
};

struct weft_node_info {
    uint16_t op, attrs;
    bool dead;
    uint32_t operands, results;
    uint32_t first_operand;  /* index of slots */
    uint32_t first_result;   /* values are consecutive ids */
    struct weft_attr *attr;
    struct weft_constant *constant; /* of const */
    weft_node next, previous; /* order of execution */
    uint32_t group;          /* index of a group, 0: none */
    const struct weft_plan_note *plan; /* or NULL */
    const struct weft_choices *choices; /* its kernel as layouts were chosen for it (sched/select.h), or NULL */
    const char *name;        /* the source's name of the node, for messages, or NULL */
    int32_t line;            /* in the source text, or 0 */
};

struct weft_group {          /* fuse @name ! plan { nodes, consecutive in order } */
    const char *name;        /* NULL: it was opened */
    const struct weft_plan_note *plan;
    uint32_t namesakes;      /* how many were called @name.2, @name.3 … because its name was taken */
};

struct weft_return_slot {
    weft_val value;
    weft_val mut;            /* the parameter whose buffer it becomes, or none */
    uint32_t next, previous; /* in the list of returns of value, slot + 1 */
};

struct weft_former_name {
    const char *name;
    weft_val value;
};

/* Where in its model the source put a node: what exporters note beside it. */
struct weft_scope_note {
    const char *node;        /* the source's name of the node, as nodes keep it */
    const char *path;        /* full names of the scopes around it, the outermost first, a line each:
                              * "model\nmodel.encoder\nmodel.encoder.layer.0" */
};

#define WEFT_MAX_DEPTH 64    /* of bodies in bodies */
#define WEFT_ORDER 1u        /* graph->position: rank of each live node in the order */

/* One run of a pass. */
struct weft_pass_record {
    const char *pass;
    int64_t ns;
    uint32_t nodes_before, nodes_after; /* of the graph it was called on, without bodies */
    int64_t rewrites;                   /* bodies included */
    bool changed;
};

/* A relayout that a pass put in, so that a value lies as its readers want it. */
struct weft_conversion_record {
    weft_val from, to;
    int64_t ps;                         /* its price */
    bool once;                          /* of a constant: before the first run */
    const char *wanted;                 /* by whom, and what it saves there */
};

struct weft_graph {
    struct weft_context *context;
    struct weft_graph *root;     /* itself at top level */
    struct weft_graph *parent;   /* of a body; NULL at top level */
    int32_t depth;               /* 0 at top level, at most WEFT_MAX_DEPTH */
    struct weft_arena *arena;    /* the root's; own_arena there */
    struct weft_arena own_arena;
    struct weft_dims *dims;      /* the root's */
    const char *name;
    const char *file;            /* where it came from, or NULL */
    uint32_t number;             /* that no other graph of the process has, bodies included; what callers get of a graph
                                  * bears it, what the graph itself holds bears 0 */

    struct weft_value *value;    /* [1, values) */
    struct weft_node_info *node; /* [1, nodes) */
    struct weft_operand *slot;
    struct weft_group *group;    /* [1, groups) */
    weft_val *param;
    struct weft_return_slot *ret;
    uint32_t values, nodes, slots, groups, params, returns;
    uint32_t value_capacity, node_capacity, slot_capacity, group_capacity, param_capacity, return_capacity;
    weft_node first, last;
    uint32_t live_nodes;
    bool returned;               /* a return line was seen */
    bool fixed_labels;           /* root: values without a name are called by their ids in remarks (weft_value_labels),
                                  * so that a remark names the same value whatever is moved later */
    const struct weft_plan_note *end; /* right of the return line, or NULL */
    uint32_t index;              /* of a body: where its parent lists it */
    bool frozen;                 /* a body that a node uses: callers may not change it any more; passes may */
    bool is_edited;              /* a pass of the caller's is at work on it */

    struct weft_graph **body;    /* subgraphs, owned */
    uint32_t bodies, body_capacity;

    struct weft_layout *layout;  /* root: interned canonical layouts; [0] stands for row-major */
    uint32_t layouts, layout_capacity;
    uint32_t *layout_hash, layout_hash_size;
    struct weft_blob **blob;     /* root: held until the graph dies */
    uint32_t blobs, blob_capacity;
    struct weft_former_name *former; /* names that live values had once */
    uint32_t formers, former_capacity;
    struct weft_scope_note *scope; /* root */
    uint32_t scopes, scope_capacity;
    struct weft_name_slot *names; /* hash of value names */
    uint32_t name_slots, name_count;
    struct weft_group_slot *group_names; /* hash of names of the groups [1, named_groups) */
    uint32_t group_slots, group_slots_used, named_groups;

    uint32_t *position;          /* analysis ORDER, by node id */
    uint32_t analyses;           /* which are valid */
    struct weft_remark *remark;  /* root */
    uint32_t remarks, remark_capacity;
    int64_t rewrites, rewrite_limit; /* root: the one counter; limit from WEFT_STOP_AFTER, -1: none */
    struct weft_pass_record *record; /* root: every run of a pass, in order */
    uint32_t records, record_capacity;
    struct weft_conversion_record *conversion; /* of all runs of propagate_memory_format and align_buffers */
    uint32_t conversions, conversion_capacity;
    int64_t format_ps;           /* what passes took all layouts of this graph to cost, conversions included */
    struct weft_rule_index *rule_index; /* root: of the pass that runs (passes/rules.c) */
    struct weft_arena scratch;   /* root: what a pass allocates; emptied when it returns */
    void *pass_memory;           /* root: what the pass that runs keeps in scratch from one body to the next */
};

static inline struct weft_value *weft_value_of(const struct weft_graph *g, weft_val v) { return &g->value[v.id]; }
static inline struct weft_node_info *weft_node_of(const struct weft_graph *g, weft_node n) { return &g->node[n.id]; }
static inline const struct weft_type *weft_type_of(const struct weft_graph *g, weft_val v)
{
    return &g->value[v.id].type;
}
static inline int weft_opcode_of(const struct weft_graph *g, weft_node n) { return g->node[n.id].op; }
static inline weft_node weft_def(const struct weft_graph *g, weft_val v) { return g->value[v.id].def; }
static inline int weft_def_opcode(const struct weft_graph *g, weft_val v) { return g->node[g->value[v.id].def.id].op; }
static inline weft_val weft_operand(const struct weft_graph *g, weft_node n, unsigned i)
{
    return g->slot[g->node[n.id].first_operand + i].value;
}
static inline weft_val weft_result(const struct weft_graph *g, weft_node n, unsigned i)
{
    return (weft_val){.id = g->node[n.id].first_result + i};
}
static inline bool weft_is(weft_val a, weft_val b) { return a.id == b.id; }
static inline const struct weft_op_info *weft_op_of(const struct weft_graph *g, weft_node n)
{
    return &weft_ops[g->node[n.id].op];
}
/* Does it rearrange without computing? False for what defines a parameter. */
static inline bool weft_is_view(const struct weft_graph *g, weft_node n)
{
    return n.id && (weft_op_of(g, n)->traits & WEFT_VIEW);
}

/* Live nodes in order. The body may erase any node and insert others; those inserted right after the current one are
 * not visited. (A dead node keeps its `next`, so a walk that stands on one finds its way back.) */
#define weft_foreach_node(g, n) \
    for (weft_node n = (g)->first, next_##n = {.id = n.id ? (g)->node[n.id].next.id : 0}; n.id; \
         n = next_##n, next_##n.id = n.id ? (g)->node[n.id].next.id : 0) \
        if ((g)->node[n.id].dead) {} else

struct weft_graph *weft_graph_new(struct weft_context *context, const char *name); /* under weft_protected */
struct weft_graph *weft_graph_new_body(struct weft_graph *parent, const char *name); /* NULL and an error if too deep */
/* Is `body` listed among the graph's bodies? Side arrays about bodies go by body->index. */
static inline bool weft_is_body(const struct weft_graph *graph, const struct weft_graph *body)
{
    return body && body->index < graph->bodies && graph->body[body->index] == body;
}
void weft_graph_free(struct weft_graph *graph);
/* Under weft_protected; live nodes only, blobs held. The graph must be valid. *ret_graph is set before it is filled, so
 * that the caller can free it if memory is refused on the way. */
void weft_graph_copy(const struct weft_graph *graph, struct weft_graph **ret_graph);
/* A new graph without parameters that returns copies of these values of a graph or body, in this order. They are
 * computed from constants alone, by nodes without bodies. Else as above. */
void weft_graph_copy_part(const struct weft_graph *graph, const weft_val *wanted, uint32_t count,
                          struct weft_graph **ret_part);
/* The same with parameters, where values begin that `cut` says by id, and parameters of the graph: in the order in
 * which they are come upon; ret_source[i], of which there is one for each value of the graph, is what parameter i was.
 * Updated parameters are plain ones. Nodes may have bodies, all of which are copied. Of a root graph. */
void weft_graph_copy_between(const struct weft_graph *graph, const bool *cut, const weft_val *wanted, uint32_t count,
                             struct weft_graph **ret_part, weft_val *ret_source);
/* A new graph of these nodes alone, in this order, none of which has bodies or reads another: what they read is a copy
 * of a constant, or a parameter, once each (ret_source[i], of which there is one for each operand, is what parameter i
 * was); it returns all their results. Layouts are those of the graph. `map` has an element for each value of the graph,
 * all none, and is left so: many small parts then take no time that grows with the graph. */
void weft_graph_copy_nodes(const struct weft_graph *graph, const weft_node *node, uint32_t nodes, weft_val *map,
                           struct weft_graph **ret_part, weft_val *ret_source);
/* inline.c: the other way round: copies the nodes of a graph, with their layouts, in front of a node of another, which
 * has the symbols of the first; `argument` are its parameters there. ret_result[i] is what it returns as result i. Why
 * not, and then nothing has changed, or NULL. */
const char *weft_graph_inline(struct weft_graph *to, weft_node before, const struct weft_graph *from,
                              const weft_val *argument, weft_val *ret_result);
void weft_graph_hold(struct weft_graph *graph, struct weft_blob *blob); /* takes over one reference */

weft_val weft_add_param(struct weft_graph *graph, const char *name, const struct weft_type *type);
/* Appends to the results. */
void weft_add_return(struct weft_graph *graph, weft_val value, weft_val mut);
void weft_clear_returns(struct weft_graph *graph);
uint32_t weft_add_group(struct weft_graph *graph, const char *name);
uint32_t weft_hash_name(const char *name, size_t length);
weft_val weft_value_find(const struct weft_graph *graph, const char *name, size_t length);
/* The same, or what passes have put in its place since. */
weft_val weft_value_find_heir(const struct weft_graph *graph, const char *name, size_t length);
/* Names a value; a name that is taken gets a suffix ".1", ".2", …; an empty one is none. */
void weft_set_name(struct weft_graph *graph, weft_val value, const char *name, size_t length);
/* A value without a name from now on; weft_value_find_heir still finds it by the old one. */
void weft_drop_name(struct weft_graph *graph, weft_val value);
/* Notes the scopes around nodes of this name, also in bodies; of two notes of one name one holds. */
void weft_note_scope(struct weft_graph *graph, const char *node, const char *path);
/* Gives the name of `from`, which has one, to `to`. Allocates nothing. */
void weft_move_name(struct weft_graph *graph, weft_val from, weft_val to);

/* Layouts are interned: canonicalise, look up, store. */
uint32_t weft_intern_layout(struct weft_graph *graph, const struct weft_layout *layout, const struct weft_type *type);
/* Of one that is canonical, and not in the table. */
uint32_t weft_intern_canonical(struct weft_graph *graph, const struct weft_layout *canonical);
/* Layout number `layout` of the graph's table; 0 is row-major of this rank. What is peeked at is where it is until the
 * next layout is interned: a layout has half a kilobyte. */
static inline const struct weft_layout *weft_layout_peek(const struct weft_graph *graph, uint32_t layout, int rank)
{
    return layout ? &graph->root->layout[layout] : &weft_layout_rows[rank];
}
static inline struct weft_layout weft_layout_at(const struct weft_graph *graph, uint32_t layout, int rank)
{
    return *weft_layout_peek(graph, layout, rank);
}
/* The layout of a value, whatever its index. */
static inline struct weft_layout weft_layout_of(const struct weft_graph *graph, weft_val value)
{
    const struct weft_value *const v = &graph->value[value.id];
    return *weft_layout_peek(graph, v->layout, v->type.rank);
}
void weft_set_value_layout(struct weft_graph *graph, weft_val value, const struct weft_layout *layout);
/* The same for what a text or the caller says: row-major is then required, as any other order is. */
void weft_state_layout(struct weft_graph *graph, weft_val value, const struct weft_layout *layout);
/* What is said of the layout of `from` is said of `to`, which has its type. */
void weft_take_layout(struct weft_graph *graph, weft_val to, weft_val from);
/* Does its layout split an axis? */
bool weft_is_split(const struct weft_graph *graph, weft_val value);
/* Does the graph, or one of its bodies, compute a value whose layout splits an axis? */
bool weft_has_blocks(const struct weft_graph *graph);
/* Must an intermediate value be stored in its layout? Hints and proposals are weighed, and what is not said is free. */
bool weft_is_required(const struct weft_graph *graph, weft_val value);

const struct weft_attr *weft_attr_find(const struct weft_graph *graph, weft_node node, int key); /* NULL if absent */
/* With the op's default when absent. A symbolic integer asks for a caller that knows it: weft_attr_dim. */
int64_t weft_attr_int(const struct weft_graph *graph, weft_node node, int key);
weft_dim weft_attr_dim(const struct weft_graph *graph, weft_node node, int key);
double weft_attr_real(const struct weft_graph *graph, weft_node node, int key);
const char *weft_attr_word(const struct weft_graph *graph, weft_node node, int key);
/* List element i with the default where the list is absent. */
weft_dim weft_attr_at(const struct weft_graph *graph, weft_node node, int key, unsigned i);
bool weft_attr_equal(const struct weft_attr *a, const struct weft_attr *b);

weft_dim weft_type_elements(struct weft_dims *dims, const struct weft_type *type);
bool weft_type_same(const struct weft_type *a, const struct weft_type *b);
bool weft_type_is_constant(const struct weft_type *type); /* no symbols in the extents */
bool weft_axes_are_constant(const struct weft_graph *graph, weft_node node); /* nor in attributes, of all that it has */
/* Most elements of a tensor: so many of the widest still have a size in bits. */
#define WEFT_MAX_ELEMENTS (INT64_MAX / 64)
/* Is the product of the extents that are numbers small enough? Zeros do not count, since strides leave them out. Every
 * value of a graph has passed this. */
bool weft_type_check_size(const struct weft_type *type);
void weft_type_print(struct weft_dims *dims, const struct weft_type *type, struct weft_text *text); /* "f32[N,3]" */

/* Computes what is missing of these analyses. Edits take back what they make untrue, so that nobody else has to say
 * what survives. */
void weft_require(struct weft_graph *graph, uint32_t analyses);

/* Lists a relayout, with texts that live as long as the graph, for pictures and `weft explain`. */
void weft_add_conversion(struct weft_graph *graph, const struct weft_conversion_record *record);

void weft_add_remark(struct weft_graph *graph, const char *who, weft_val where, const char *verdict, const char *format,
                     ...) WEFT_PRINTF(5, 6);
/* The same where the value's label is known (weft_value_labels): who has a remark for each value of a graph asks for
 * all labels at once, since the number of a value without a name is found by walking over the graph. */
void weft_add_remark_at(struct weft_graph *graph, const char *who, const char *label, const char *verdict,
                        const char *format, ...) WEFT_PRINTF(5, 6);

/* --- constant.c: elements of const nodes -------------------------------------------------------------------------- */

bool weft_is_const(const struct weft_graph *graph, weft_val value); /* defined by a const node */
/* One element. `real` of an integer is rounded: good for its magnitude, not to compute with. */
struct weft_element {
    bool is_integer;    /* integers and bools */
    int64_t integer;    /* u64 as its bits */
    double real;
};
/* If all elements of a const have the same bits: that element, as its dtype holds it. */
bool weft_const_splat(const struct weft_graph *graph, weft_val value, struct weft_element *ret);
/* Writes the packed row-major elements of a const (of constant extents) to `data`. */
void weft_const_write(const struct weft_graph *graph, weft_val value, void *data);
/* The elements in place, or NULL for a splat or random const. Perhaps unaligned. */
const void *weft_const_data(const struct weft_graph *graph, weft_val value);

#endif
