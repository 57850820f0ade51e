/* SPDX-License-Identifier: Apache-2.0 */
/* import.h: what the files of the importer share: one import, its scopes of names, and the node being imported.
 *
 * An op's import function reads like the op's definition, because everything here is sticky: after the first error on a
 * node, op->failed is set, values are none, and further calls do nothing. */
#ifndef WEFT_ONNX_IMPORT_H
#define WEFT_ONNX_IMPORT_H

#include "onnx/model.h"
#include "onnx/names.h"
#include "onnx/onnx.h"
#include "onnx/rows.h"

#define ONNX_MIN_OPSET 1
#define ONNX_MAX_OPSET 28

/* One name. Constants are made where they are first used, in each graph that uses them. */
struct onnx_entry {
    const struct onnx_tensor *tensor; /* an initializer that no node of the scope's graph has asked for, or NULL */
    weft_val value;                   /* none with tensor NULL: its definition failed, so whoever reads it is skipped */
    bool absent;                      /* an optional input that a function was called without */
};

/* The names of one ONNX graph. A subgraph sees the names of its parents. Scopes of an `if` whose branch is known while
 * importing share their parent's weft graph. */
struct onnx_scope {
    struct onnx_scope *parent;
    struct weft_graph *graph;
    struct onnx_names names;
    struct onnx_entry *entry; /* of each name */
    uint32_t entry_capacity;
    struct onnx_captures *captures; /* where values of the parent's graph are noted, or NULL */
};

/* What the bodies of one `if` read from outside: operands of the node, parameters of each body, in the same order. */
struct onnx_captures {
    struct onnx_string *name;
    weft_val *outer;
    uint32_t count, name_capacity, outer_capacity;
};

struct onnx_missing {
    const char *first; /* name of the first node */
    int opset;         /* of ONNX's own domain, or 0 */
    const char *domain, *op; /* domain NULL: ONNX's own */
    uint32_t count;
};

/* A call of a function whose nodes are being imported. */
struct onnx_call {
    const struct onnx_function *function;
    const struct onnx_node *node;
    const struct onnx_call *outer;
};

/* What the model takes for granted about a symbol, in words of the scratch arena. */
struct onnx_assumption {
    const char *symbol;
    int64_t low, high;
    const char *reason, *where; /* where: a node's name */
};
struct onnx_assumptions {
    struct weft_arena *arena;
    struct onnx_assumption *item;
    uint32_t count, capacity;
};

/* What is known about the elements of a value; all in the scratch arena. */
struct onnx_fold {
    struct weft_graph *graph;
    weft_val value;
    const struct weft_tensor *numbers; /* packed, or NULL: it does not follow from constants alone */
    const weft_dim *element;           /* as expressions, or NULL: unknown, or not asked for */
    weft_val constant;                 /* a const node of the numbers, or none yet */
};
struct onnx_folds {
    struct onnx_fold *item;
    uint32_t count, capacity;
    uint32_t *slot; /* open hash, a power of two: index of the item + 1, or 0 */
    uint32_t slots;
    int64_t spent;  /* elements computed so far */
};

struct onnx_importer {
    struct onnx_reader reader;
    struct onnx_assumptions *assumptions;
    struct weft_graph *root;
    struct weft_blob *file;
    struct onnx_model model;
    int opset;
    uint32_t depth; /* of subgraphs and functions */
    const struct onnx_call *call; /* the innermost function, or NULL */
    uint32_t unnamed; /* calls and trips at hand: their values get no names, which would repeat without end */
    uint64_t repeated;            /* nodes of functions and of loops that were written out */
    struct onnx_names functions; /* of the model, and the first of each name: others follow by `next` */
    struct onnx_function **function;
    struct onnx_names missing_op; /* "domain.op", and what is known about it */
    struct onnx_missing *missing;
    uint32_t missing_capacity;
    struct onnx_folds folds;     /* elements computed so far */
    struct onnx_names data_file; /* external data mapped so far */
    struct weft_blob **data;
    uint32_t data_capacity;
    struct onnx_names symbol; /* dim_params seen, and the dims they became */
    weft_dim *symbol_dim;
    uint32_t dim_capacity;
    unsigned last_size;   /* number of the last symbol that comes out of data */
    unsigned last_symbol; /* number of the last symbol made for an extent without a name */
    int64_t streams; /* of random numbers without a seed, so far */
    const struct weft_fixed_input *fixed; /* inputs that become constants */
    size_t fixeds;
};

struct onnx_op {
    struct onnx_importer *importer;
    struct onnx_scope *scope;
    struct weft_graph *graph;
    struct onnx_node *node;
    const struct onnx_row *row;
    const char *name;         /* of the node, for messages; of its first output where it has none */
    unsigned inputs, outputs; /* trailing absent inputs are not counted */
    const weft_val *input;    /* none: absent */
    weft_val *output;
    bool failed;
};

/* --- import.c ----------------------------------------------------------------------------------------------------- */

bool weft_onnx_import_nodes(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph);
/* Names of a graph's initializers. */
bool weft_onnx_declare(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_graph *graph);
const char *weft_onnx_text(struct onnx_importer *importer, struct onnx_string string); /* NUL-terminated copy */
/* A node's name, or that of its first result; NULL if it has neither. */
const char *weft_onnx_node_name(struct onnx_importer *importer, const struct onnx_node *node);
/* Records an error that belongs to no node, and returns false. `where` may be NULL. */
bool weft_onnx_fail_at(struct onnx_importer *importer, int status, const char *where, const char *format, ...)
    WEFT_PRINTF(4, 5);

/* --- missing.c ---------------------------------------------------------------------------------------------------- */

/* Counts the ops that weft lacks in a node and its bodies, or in a graph, that is not being imported. False after a
 * wire error. */
bool weft_onnx_survey_node(struct onnx_importer *importer, const struct onnx_node *node);
bool weft_onnx_survey(struct onnx_importer *importer, const struct onnx_graph *graph);
void weft_onnx_report_missing(struct onnx_importer *importer);

/* --- input_type.c ------------------------------------------------------------------------------------------------- */

/* Notes in the graph which modules of the source a node of this name stands in, where the exporter says it. */
void weft_onnx_note_scopes(struct onnx_importer *importer, const struct onnx_node *node, const char *name);
/* A name as a word of weft's language: other bytes become '_'. */
const char *weft_onnx_word_of(struct onnx_importer *importer, struct onnx_string source);
/* The type of a declared input; makes symbols. False after an error. */
bool weft_onnx_value_type(struct onnx_importer *importer, const struct onnx_value *value, struct weft_type *ret_type);

/* Is that a value for the input? Symbols in the input's shape become numbers. False after an error. */
bool weft_onnx_fits(struct onnx_importer *importer, const struct onnx_value *value, const struct weft_tensor *tensor);

/* --- import_control.c --------------------------------------------------------------------------------------------- */

/* A body of the node, with a name that no other body of the graph has. */
struct weft_graph *weft_onnx_new_body(struct onnx_op *op, const char *name);
/* Imports the body of a node into scope->graph, whose inputs have been defined there. `ret` gets its outputs; if one is
 * missing, the node has failed. */
void weft_onnx_import_body(struct onnx_op *op, struct onnx_scope *scope, const struct onnx_graph *body, weft_val *ret);

/* --- assume.c ----------------------------------------------------------------------------------------------------- */

/* Notes the sizes of one symbol for which two extents are one expression. True if there are such: then this import is
 * in vain, and the node has to be given up without an error. */
bool weft_onnx_assume_same(struct onnx_op *op, weft_dim a, weft_dim b);
/* Narrows the range of a symbol to what has been noted. */
void weft_onnx_apply_assumptions(const struct onnx_assumptions *assumptions, const char *symbol, int64_t *low,
                                 int64_t *high);
/* A note to the caller and a remark for each. */
void weft_onnx_report_assumptions(const struct onnx_assumptions *assumptions, struct weft_graph *graph);

/* --- import_data.c ------------------------------------------------------------------------------------------------ */

/* A node that defines a symbol, which comes out of data and is at most `bound`. `attr` has room for one more. */
weft_val weft_onnx_make_sized(struct onnx_op *op, int opcode, unsigned operands, const weft_val *operand,
                              weft_dim bound, unsigned attrs, struct weft_attr *attr);

/* --- fold.c ------------------------------------------------------------------------------------------------------- */

/* What is known about a value, until the next call. */
const struct onnx_fold *weft_onnx_fold(struct onnx_importer *importer, struct weft_graph *graph, weft_val value);
/* A const node with the elements of a value that follows from constants alone; none of others. */
weft_val weft_onnx_fold_constant(struct onnx_importer *importer, struct weft_graph *graph, weft_val value);
/* The elements of a tensor of integers or bools as expressions, for the caller to change; NULL if they are not known.
 * What a dim cannot hold is cut to what it can. */
weft_dim *weft_onnx_fold_list(struct onnx_importer *importer, struct weft_graph *graph, weft_val value,
                              unsigned *ret_count);

/* --- import_custom.c ---------------------------------------------------------------------------------------------- */

struct weft_custom_entry;
/* The caller's function for a node's op, or NULL: it goes before weft's own rows and the model's functions. */
const struct weft_custom_entry *weft_onnx_custom_of(const struct onnx_importer *importer, const struct onnx_node *node);
void weft_onnx_custom(struct onnx_op *op, const struct weft_custom_entry *entry);

/* --- function.c --------------------------------------------------------------------------------------------------- */

/* Accounts for nodes that are imported once more, in calls and in loops that are written out: nested ones would make
 * any number of a small file. False, and an error, beyond a bound. */
bool weft_onnx_repeat(struct onnx_op *op, uint32_t nodes);
/* The function that a node calls, or NULL. */
struct onnx_function *weft_onnx_function_of(const struct onnx_importer *importer, const struct onnx_node *node);
/* Enters the model's functions into importer->functions. False, and an error, if two are the same. */
bool weft_onnx_index_functions(struct onnx_importer *importer);
/* The node with what its attributes refer to, in the call at hand. */
struct onnx_node weft_onnx_resolve(struct onnx_importer *importer, const struct onnx_node *node);
/* Imports the function's nodes in place of the node. */
void weft_onnx_call(struct onnx_op *op, const struct onnx_function *function);

/* --- scope.c ------------------------------------------------------------------------------------------------------ */

struct onnx_entry *weft_onnx_lookup(struct onnx_importer *importer, struct onnx_scope *scope, struct onnx_string name);
/* Does this scope itself have an initializer of that name? */
bool weft_onnx_is_initializer(const struct onnx_scope *scope, struct onnx_string name);
/* False if the scope has the name already. */
bool weft_onnx_define(struct onnx_importer *importer, struct onnx_scope *scope, struct onnx_string name,
                      const struct onnx_tensor *tensor, weft_val value);
/* Adds what `captures` has to the parameters of a body, from parameter `first` on. */
void weft_onnx_add_captured(struct onnx_importer *importer, struct onnx_scope *scope, const struct onnx_scope *outer,
                            uint32_t first);

/* --- tensor.c ----------------------------------------------------------------------------------------------------- */

/* The weft dtype of a TensorProto.DataType, or 0; weft_onnx_dtype_name is for messages. */
int weft_onnx_dtype(int32_t type);
const char *weft_onnx_dtype_name(int32_t type);
/* A const node of elements that are copied, packed row-major. None after an error. */
weft_val weft_onnx_copy_constant(struct onnx_importer *importer, struct weft_graph *graph,
                                 const struct weft_tensor *tensor, const char *what);
/* A const node. None after an error; `what` names the tensor in messages. */
weft_val weft_onnx_constant(struct onnx_importer *importer, struct weft_graph *graph, const struct onnx_tensor *tensor,
                            const char *what);

/* --- op.c, known.c: what import functions are written in ---------------------------------------------------------- */

void weft_onnx_fail(struct onnx_op *op, int status, const char *format, ...) WEFT_PRINTF(3, 4);

/* Attributes, with the default of an absent one. Reading marks them as known; what nobody reads is an error. */
struct onnx_attribute *weft_onnx_attribute(struct onnx_op *op, const char *name, int type); /* NULL if absent */
int64_t weft_onnx_int(struct onnx_op *op, const char *name, int64_t fallback);
double weft_onnx_real(struct onnx_op *op, const char *name, double fallback);
/* Index of the attribute in `words`, which are separated by blanks; 0 if absent. Another word is an error. */
int weft_onnx_word(struct onnx_op *op, const char *name, const char *words);
const int64_t *weft_onnx_ints(struct onnx_op *op, const char *name, unsigned *ret_count); /* NULL if absent */
void weft_onnx_ignore(struct onnx_op *op, const char *name); /* an attribute without a meaning here */

bool weft_onnx_has(const struct onnx_op *op, unsigned input);
weft_val weft_onnx_input(struct onnx_op *op, unsigned input);        /* an error if absent */
struct weft_type weft_onnx_type(struct onnx_op *op, weft_val value); /* a copy: pointers do not outlive additions */
/* An axis given from -rank to rank - 1. */
unsigned weft_onnx_axis(struct onnx_op *op, int64_t axis, unsigned rank);
/* A constant in place of a value that follows from constants alone; else the value itself. */
weft_val weft_onnx_folded(struct onnx_op *op, weft_val value);
/* The elements of a tensor of integers or bools, however many, as expressions: constants, or computed from extents.
 * The list is the caller's to change, in scratch memory. NULL (no error) if they are not known. */
weft_dim *weft_onnx_elements(struct onnx_op *op, weft_val value, unsigned *ret_count);
/* The only element of a tensor; false (no error) if it is not known, or has company. */
bool weft_onnx_single(struct onnx_op *op, weft_val value, weft_dim *ret);
/* An extent that the model takes to be `value`: where it depends on one symbol, that symbol's range is narrowed to the
 * sizes for which it is, so that other inputs are refused. False if that cannot be done; then nothing has happened. */
bool weft_onnx_narrow(struct onnx_op *op, weft_dim extent, int64_t value);
/* Says that an input "must be" something, why it is not, and what whoever loads the model can do. */
void weft_onnx_fail_unknown(struct onnx_op *op, unsigned input, const char *what, const char *need);
/* The elements of an input that has to be known: NULL and an error if it is not. `what` is its name in ONNX. */
weft_dim *weft_onnx_known(struct onnx_op *op, unsigned input, const char *what, unsigned *ret_count);
/* The same for one that has to be constant: integers, and floats. */
int64_t *weft_onnx_known_ints(struct onnx_op *op, unsigned input, const char *what, unsigned *ret_count);
double *weft_onnx_known_reals(struct onnx_op *op, unsigned input, const char *what, unsigned *ret_count);
/* The only element of an input that has to be known, and of one that has to be constant; 0 after an error. */
weft_dim weft_onnx_known_single(struct onnx_op *op, unsigned input, const char *what);
int64_t weft_onnx_known_int(struct onnx_op *op, unsigned input, const char *what);
/* The axes that attribute `axes` or input 1 names, in `ret_chosen`. False if it names none. */
bool weft_onnx_axes(struct onnx_op *op, bool as_input, unsigned rank, bool ret_chosen[WEFT_MAX_RANK]);

weft_val weft_onnx_make(struct onnx_op *op, int opcode, unsigned operands, const weft_val *operand, unsigned attrs,
                        const struct weft_attr *attr, const struct weft_type *stated);
weft_val weft_onnx_unary(struct onnx_op *op, int opcode, weft_val x);
weft_val weft_onnx_binary(struct onnx_op *op, int opcode, weft_val x, weft_val y); /* of equal shapes */
weft_val weft_onnx_splat(struct onnx_op *op, const struct weft_type *type, double value);
weft_val weft_onnx_element(struct onnx_op *op, const struct weft_type *type, const struct weft_element *element);
weft_val weft_onnx_scalar_like(struct onnx_op *op, weft_val like, double value); /* of like's dtype and shape */
weft_val weft_onnx_cast(struct onnx_op *op, weft_val x, int dtype);              /* x itself if it has the dtype */
weft_val weft_onnx_widen(struct onnx_op *op, weft_val x); /* floats of 16 bits as f32: squares and sums need that */
weft_val weft_onnx_reshape(struct onnx_op *op, weft_val x, unsigned rank,
                           const weft_dim *extent); /* x itself if no change */
weft_val weft_onnx_transpose(struct onnx_op *op, weft_val x, unsigned rank, const unsigned *perm); /* of so many axes */
weft_val weft_onnx_slice(struct onnx_op *op, weft_val x, const weft_dim *start, const weft_dim *end,
                         const weft_dim *step);
weft_val weft_onnx_reduction(struct onnx_op *op, int opcode, weft_val x, unsigned axes, const unsigned *axis,
                             bool keepdims);

const char *weft_onnx_dim_text(struct onnx_op *op, weft_dim dim); /* for messages */
/* One extent by numpy's rule; an error where it cannot be proved. */
weft_dim weft_onnx_join(struct onnx_op *op, weft_dim a, weft_dim b);
/* The shape that the values broadcast to, in ret->rank and ret->extent. */
void weft_onnx_common_shape(struct onnx_op *op, unsigned count, const weft_val *values, struct weft_type *ret);
/* x repeated to `shape` (its dtype does not count), last axes aligned; x itself if it has that shape. */
weft_val weft_onnx_broadcast(struct onnx_op *op, weft_val x, const struct weft_type *shape);
/* The same with x's axis i at result axis axes[i]; an error where x has not as many axes. */
weft_val weft_onnx_broadcast_axes(struct onnx_op *op, weft_val x, const struct weft_type *shape, unsigned count,
                                  const unsigned *axes);
/* min and max of extents, decided where their ranges decide. */
weft_dim weft_onnx_min(struct onnx_op *op, weft_dim a, weft_dim b);
weft_dim weft_onnx_max(struct onnx_op *op, weft_dim a, weft_dim b);

#endif
