/* SPDX-License-Identifier: Apache-2.0 */
/* format.h: memory formats: in which layouts each value of a graph may be stored, what that costs, and the choice for
 * all values at once.
 *
 *   tree       a graph and the bodies of its loops and branches, which are one problem; port: what goes into them
 *   memo       nodes that are alike have the same candidates and prices, which are worked out once
 *   collect    candidates by value: the wishes of contractions, parameters and results, carried through the graph
 *   order      do an operand and the result of its node lie in one order?
 *   price      picoseconds: of an op that stores in one layout and reads in another; at the rates of the target
 *              (prices.h). move: of conversions and other copies; join: of what is put together; conv, product: of
 *              convolutions, and of products of matrices, by what kernels say of themselves; custom: of custom
 *              functions, by the orders that they take
 *   choose     a labelling problem (labelling.h) of all that, solved; for each value the layout that its node writes,
 *              for each operand the layout that its node reads
 *
 *   %x: f32[32,64,25,25]{0 2 3 1}          x is a fact: channels-last
 *   %y: f32[32,64,25,25] = relu %x         y may be row-major or channels-last: relu reads x as it writes y, or pays
 *   return %y                              if {?}: channels-last; else relu reads with strides, or x is converted first
 *
 * A layout is a number in the graph's table (weft_intern_layout); 0 is row-major of any rank. */
#ifndef WEFT_FORMAT_H
#define WEFT_FORMAT_H

#include "sched/labelling.h"
#include "sched/pins.h"
#include "sched/prices.h"
#include "sched/step.h"
#include "sched/target.h"
#include "sched/unit.h"

enum { WEFT_MAX_FORMATS = 8, WEFT_MAX_CHOICES = 16 };
enum { WEFT_FORMAT_HARDLY = 50 }; /* what costs 1 / 50 less than a graph as it stands is not worth a change */
enum { WEFT_FORMAT_TIE = WEFT_MAX_CHOICES }; /* picoseconds that tell equal prices apart: more than places of a list */

struct weft_format_list {
    uint8_t count;
    bool is_fact;                      /* of a parameter: it is stored in layout[0] and nothing else */
    uint16_t dropped;                  /* candidates for which there was no room */
    uint32_t layout[WEFT_MAX_FORMATS];
    uint32_t number;                   /* equal lists of equal ways to write have equal numbers */
    uint32_t own;                      /* of result 0 of a node that kernels of the caller's compute: the first, + 1 */
};

/* A kernel of the caller's that fits a node, and what it asks for. */
struct weft_format_own {
    const struct weft_target_kernel *kernel;
    uint32_t next;                     /* of the same node, + 1 */
    int64_t ps;
    uint32_t *layout;                  /* by operand, then by result; WEFT_ANY_FORMAT: it takes any */
};
#define WEFT_ANY_FORMAT UINT32_MAX

/* One way to compute a value: in layout number `format` of its list, by a kernel of the caller's or by weft's own. */
struct weft_format_choice {
    uint32_t format;
    const struct weft_format_own *own; /* or NULL */
};

/* Of one graph. A graph and the bodies of its `if` and `loop` are one problem, which belongs to the top. */
struct weft_formats {
    struct weft_graph *graph;
    struct weft_formats **all;         /* of the top: itself, then the bodies that its nodes run, outer ones first */
    uint32_t count, index;             /* how many; and where it stands among them */
    struct weft_formats *outer;        /* of a body: of the graph that holds it; NULL at the top */
    weft_node *holder;                 /* of a body: the nodes of that graph that run it */
    uint32_t holders, holder_capacity;
    struct weft_formats **body;        /* by weft_graph.index: bodies that a node runs, or NULL */
    int64_t weight;                    /* how often it is run in one run of the top, as far as that is known */
    const struct weft_target *target;
    struct weft_arena *arena;
    struct weft_format_list *list;     /* by value */
    struct weft_format_memo *memo;
    uint32_t *kind, *node_kind;        /* by value and by node: equal where prices are the same */
    struct weft_format_own *own;       /* kernels of the caller's that fit, node by node */
    uint32_t owns, own_capacity;
    /* the choice; what it costs is of the whole problem, and the top's */
    uint32_t *written;                 /* by value: the layout that its node writes */
    uint32_t *read;                    /* by operand slot: the layout in which it is read */
    uint32_t *given;                   /* by return with a promise: the layout from which it is put into that */
    uint32_t *promise;                 /* of a body, by return: how the outer result lies */
    const struct weft_format_own **chosen; /* by value: the kernel of the caller's that computes it, or NULL */
    uint32_t *second;                  /* by value: the best other layout, all else as it is; = written where none is */
    const struct weft_format_own **second_own; /* and by which kernel of the caller's */
    int64_t *written_ps, *second_ps;   /* what writing and reading it costs as chosen; and more with the other */
    int64_t free_cost;                 /* ps: of the best choice if the caller took every result in any layout */
    int64_t cost, bound;               /* ps: of the choice; and none costs less, but for what is hardly less */
    bool weighs;                       /* was there anything to choose? */
    int64_t row_major, channels_last;  /* ps: of storing all values so, where they may be */
};

/* --- format_memo.c ------------------------------------------------------------------------------------------------ */

/* Finds out of which kind values and nodes are, and opens the memo with the first graph of a tree. */
void weft_format_kinds(struct weft_formats *formats);
/* What is known about a question: made when it is asked for the first time, then with answer NULL. */
struct weft_format_known {
    uint32_t number; /* from 1 on, one for each question */
    void *answer;
};
/* A question is words; the first says what it is about. */
enum { WEFT_RECALL_LIST, WEFT_RECALL_CARRY, WEFT_RECALL_WRITE, WEFT_RECALL_CONVERT, WEFT_RECALL_CONVERSIONS,
       WEFT_RECALL_SETS, WEFT_RECALL_READS, WEFT_RECALL_EDGE, WEFT_RECALL_PLACE, WEFT_RECALL_TEXT, WEFT_RECALL_CONV,
       WEFT_RECALL_PURPOSES };
struct weft_format_known *weft_format_recall(const struct weft_formats *formats, const uint64_t *question,
                                             uint32_t words);
#define WEFT_RECALL(formats, ...) \
    weft_format_recall((formats), (const uint64_t[]){__VA_ARGS__}, \
                       (uint32_t)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

/* --- format_collect.c --------------------------------------------------------------------------------------------- */

/* Is it left to weft how parameter i is stored: by the caller ({?}), or since it is a body's? */
static inline bool weft_format_is_open(const struct weft_graph *g, uint32_t i)
{
    return g->parent || weft_layout_of(g, g->param[i]).kind != WEFT_STORED;
}
/* Opens `formats` for a graph and its bodies. All memory is the arena's. */
void weft_formats_collect(struct weft_formats *formats, struct weft_graph *graph, const struct weft_target *target,
                          struct weft_arena *arena);
/* What a layout of one pin makes of the other side of its node, new axes outermost; false where nothing fits. */
bool weft_format_carry(const struct weft_formats *formats, struct weft_pin from, uint32_t layout, struct weft_pin to,
                       uint32_t *ret_layout);

/* --- format_tree.c ------------------------------------------------------------------------------------------------ */

/* Finds the bodies, and how often each is run. */
void weft_format_open_tree(struct weft_formats *top);
/* A cost as often as a graph is run. */
int64_t weft_format_weighted(const struct weft_formats *formats, int64_t ps);

/* --- format_port.c ------------------------------------------------------------------------------------------------ */

enum { WEFT_MOST_BODIES = 2 };
/* The bodies of a node: their number, none of other nodes than `if` and `loop`. */
uint32_t weft_format_bodies(const struct weft_formats *formats, weft_node node,
                            struct weft_formats *ret_body[WEFT_MOST_BODIES]);
/* Is operand i, not the first, carried from trip to trip? Then it is that of result i - 1. */
bool weft_format_is_carried(const struct weft_graph *graph, weft_node node, uint32_t operand);
/* The parameter of a body that operand i, not the first, is handed to. */
weft_val weft_format_param_of(const struct weft_formats *body, weft_node node, uint32_t operand);
/* The value, and its graph, that says what reading operand i costs: result 0 of the node; of what goes into bodies the
 * result or the parameter that it becomes. */
const struct weft_formats *weft_format_handed_to(const struct weft_formats *formats, weft_node node, uint32_t i,
                                                 weft_val *ret_value);
/* How what a body returns has to lie where result i of the node lies so; and the other way round. False where none
 * fits. Only order and splits of a layout count. */
bool weft_format_inner(const struct weft_formats *outer, weft_node node, uint32_t i, uint32_t layout,
                       uint32_t *ret_inner);
bool weft_format_outer(const struct weft_formats *outer, weft_node node, uint32_t i, uint32_t inner,
                       uint32_t *ret_layout);
/* A layout without gaps, offset and alignment. */
uint32_t weft_format_order(const struct weft_formats *formats, weft_val value, uint32_t layout);
/* Whether a node with bodies can have result i lie so. */
int64_t weft_format_port_write_ps(const struct weft_formats *formats, weft_val value, uint32_t layout);
/* An operand, not the first, that lies in one layout where what it is handed to lies in another. */
int64_t weft_format_port_read_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                                 uint32_t inner);

/* --- format_own.c ------------------------------------------------------------------------------------------------- */

/* Asks the target's kernels about a node: those that fit are added to the list of its first result. What they say of
 * layouts that is wrong is a remark, and then they do not fit. Where a note names the node's kernel that is the only
 * one, and takes what is stated if the target does not have it. True if there is one. */
bool weft_format_ask_own(struct weft_formats *formats, weft_node node);
/* The ways to compute a value, at most WEFT_MAX_CHOICES; their number. */
uint32_t weft_format_choices(const struct weft_formats *formats, weft_val value, struct weft_format_choice *ret_choice);

/* --- format_order.c ----------------------------------------------------------------------------------------------- */

enum { WEFT_FORMAT_RUN = 64 }; /* bytes: runs of this length stream nearly like all of memory */
enum weft_format_agreement { WEFT_SAME_ORDER, WEFT_SAME_RUNS, WEFT_OTHER_ORDER };
/* Of a node that walks an operand and result 0 together. */
enum weft_format_agreement weft_format_agreement_of(const struct weft_graph *graph, struct weft_pin operand,
                                                    uint32_t layout, uint32_t result);
/* Of one value in two layouts: apart from axes along which nothing is stored in the first. */
bool weft_format_has_order(const struct weft_formats *formats, weft_val value, uint32_t number, uint32_t other);
/* The axis that neighbours in memory differ in, or WEFT_NO_DIM. */
int weft_format_fastest_axis(const struct weft_formats *formats, weft_val value, uint32_t number);
/* Is it axis 1? Also in blocks; or only where there are none. */
bool weft_format_has_channels_inside(const struct weft_formats *formats, weft_val value, uint32_t number);
bool weft_format_is_last(const struct weft_formats *formats, weft_val value, uint32_t number);
/* Of orders that cost the same, attention takes that of the query, and a product in batches that of the matrix whose
 * rows it mixes, as attention does when it has been taken apart: heads that lie inside of rows stay there. */
bool weft_format_mixes_rows(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                            uint32_t result);

/* --- format_move.c ------------------------------------------------------------------------------------------------ */

/* Strides in elements by axis, with sizes at their hints; 0 along axes that are not stored. False where axes are
 * split. */
bool weft_format_strides(const struct weft_formats *formats, weft_val value, uint32_t layout, int64_t *ret_stride);
/* A copy of so many bytes where so many are, slowed down by a price `near`, or by the one behind it. */
int64_t weft_format_move_ps(const struct weft_formats *formats, int64_t bytes, enum weft_price near);
/* A copy in runs of so many bytes. */
int64_t weft_format_runs_ps(const struct weft_formats *formats, int64_t bytes, int64_t run);
/* A step more, and the barrier behind it. */
int64_t weft_format_step_ps(const struct weft_formats *formats);
/* A copy of a value to a result of as many elements, in other order or another shape; as the graph has stored it, or
 * has not (weft_format_stored_axes). */
int64_t weft_format_copy_ps(const struct weft_formats *formats, weft_val value, const struct weft_layout *from,
                            weft_val result, const struct weft_layout *to);
/* A conversion, done by a copy of its own. 0 if the layouts are the same. */
int64_t weft_format_convert_ps(const struct weft_formats *formats, weft_val value, uint32_t from, uint32_t to);
/* A relayout that is made whether layouts differ or not, for an address for instance: at least a copy. */
int64_t weft_format_relayout_ps(const struct weft_formats *formats, weft_val value, const struct weft_layout *from,
                                const struct weft_layout *to);

/* --- format_price.c ----------------------------------------------------------------------------------------------- */

/* The value that is in memory: of a broadcast, which is not stored, its operand. And which axes of v that one has. */
weft_val weft_format_stored(const struct weft_graph *graph, weft_val v);
uint32_t weft_format_stored_axes(const struct weft_graph *graph, weft_val v);
/* Elements of a value, symbols at their hints. */
int64_t weft_format_elements(const struct weft_graph *graph, weft_val value);
/* The price of the level of memory where so many bytes live, given that of the first. */
enum weft_price weft_format_level(const struct weft_target *target, enum weft_price first, int64_t bytes);
/* Bytes that are read of a value; of a broadcast, those of its operand. */
int64_t weft_format_bytes(const struct weft_formats *formats, weft_val value);
/* Is a conversion of the value for a node done once, before the first run (plan/load.c)? */
bool weft_format_is_loaded(const struct weft_graph *graph, weft_val value);
/* And is that in the place of the constant or in little memory besides? Then it costs next to nothing: more than none.
 * What is returned is converted in each run, into the caller's memory. */
bool weft_format_converts_once(const struct weft_formats *formats, weft_val value);
/* What a node pays for writing its result in this layout, whatever it reads: WEFT_LABEL_NEVER if it cannot. */
int64_t weft_format_write_ps(const struct weft_formats *formats, weft_val value, uint32_t layout);
/* What a node pays more for reading operand `slot` in one layout while it writes result 0 in another, compared with
 * reading it as it likes best. For a view: the price of its result, if that is not where its operand is. Of a node with
 * bodies: while what the operand is handed to lies in another (weft_format_handed_to). */
int64_t weft_format_read_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                            uint32_t result);
/* What reading an operand in another order than that of the result takes more than streaming it, of most ops. */
int64_t weft_format_across_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                              uint32_t result);
/* Is the node a reshape that is no view of an operand that lies so? It writes its result in any layout. */
bool weft_format_is_copied(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout);
/* What a kernel is taken to cost in another order than row-major: estimates are not exact, and what another order saves
 * has to pay for conversions that are. */
int64_t weft_format_doubted_ps(int64_t row_major, int64_t other);
/* A padding that only takes away is a slice that has not been written as one. */
bool weft_format_is_cut(const struct weft_graph *graph, weft_node node);
/* A copy between orders that is made inside of a kernel. */
int64_t weft_format_turn_ps(const struct weft_formats *formats, weft_val value);
/* Calls of a kernel, elements one by one, lines of sums: what little of them costs is no reason to leave an order.
 * The same for all, since what one order saves of one it pays with another. */
enum { WEFT_FORMAT_LITTLE_PS = 6500000 };
static inline int64_t weft_format_beyond_little(int64_t ps)
{
    return ps > WEFT_FORMAT_LITTLE_PS ? ps - WEFT_FORMAT_LITTLE_PS : 0;
}
/* So many of what the price is for. */
int64_t weft_format_rate_ps(const struct weft_formats *formats, double count, enum weft_price price);
/* What it is more than streaming so many bytes, at the price of the memory where so many are (`first`: of its private
 * level), to be slowed down. */
int64_t weft_format_extra_ps(const struct weft_formats *formats, enum weft_price first, int64_t bytes,
                             enum weft_price percent);
/* What the caller is given: the price of handing return `i`, stored in this layout, over as promised. */
int64_t weft_format_return_ps(const struct weft_formats *formats, uint32_t i, uint32_t layout);
/* The layout promised for return i, or false if weft may choose. Of a body, when the choice is made: how the outer
 * result lies. */
bool weft_format_promised(const struct weft_formats *formats, uint32_t i, uint32_t *ret_layout);

/* --- format_join.c ------------------------------------------------------------------------------------------------ */

/* What counts of a part of a concat beside its type: where it lives, and what writes it. */
uint32_t weft_format_piece_kind(const struct weft_graph *graph, weft_val value);
/* Is an operand of a concat, whose result has that layout, computed in its place, in pieces of a cache line and more,
 * if nothing else speaks against it? */
bool weft_format_in_place(const struct weft_graph *graph, struct weft_pin operand, uint32_t result);
/* What becomes of an operand of a concat that is stored in the order of the result: nothing, if it may be computed in
 * place in long pieces; else it is written with gaps, or copied. */
int64_t weft_format_join_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                            uint32_t result);

/* --- format_walk.c ------------------------------------------------------------------------------------------------ */

/* What an elementwise op pays for a result that lies so, all operands likewise; and for an operand that lies
 * otherwise. */
int64_t weft_format_walk_write_ps(const struct weft_formats *formats, weft_node node, uint32_t result);
int64_t weft_format_walk_read_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                                 uint32_t result);

/* --- format_lines.c ----------------------------------------------------------------------------------------------- */

/* What a reduction pays for lines of terms or short rows of results; and what a scan pays that goes by elements. */
int64_t weft_format_reduce_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout);
int64_t weft_format_scan_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                            uint32_t result);
/* Will a group have the node with a reduction of rows, as far as the node and its neighbours tell? And what is left
 * then of what rows take. */
bool weft_format_goes_along(const struct weft_graph *graph, weft_node node);
int64_t weft_format_in_group_ps(const struct weft_formats *formats, weft_node node, int64_t ps);

/* --- format_form.c ------------------------------------------------------------------------------------------------ */

/* The kernel of a convolution, of a product of f32 or of a reduction at the hints, for an operand and a result in these
 * layouts, to be prepared; false where axes are split. Weights of a convolution lie row-major, or are packed. */
bool weft_format_conv(const struct weft_formats *formats, weft_node node, uint32_t operand, uint32_t result,
                      struct weft_conv *ret);
bool weft_format_gemm(const struct weft_formats *formats, weft_node node, uint32_t first, uint32_t second,
                      uint32_t result, struct weft_gemm *ret);
bool weft_format_reduce(const struct weft_formats *formats, weft_node node, uint32_t operand, uint32_t result,
                        struct weft_reduce *ret);
/* What a unit takes as its values lie now, for these sizes: the first choice, in the memory of its graph. NULL for what
 * has no choices, and where axes are split. */
const struct weft_choices *weft_format_first_choice(const struct weft_formats *formats, const int64_t *symbols,
                                            const struct weft_unit *unit);
/* The same of a step whose unit is no unit of the graph yet. */
const struct weft_choices *weft_format_choice_of(const struct weft_formats *formats, const int64_t *symbols,
                                                 const struct weft_step *step);

/* --- format_conv.c ------------------------------------------------------------------------------------------------ */

/* A convolution that writes its result so, with an operand that lies likewise; and what it takes longer by an operand
 * that lies otherwise. */
int64_t weft_format_conv_write_ps(const struct weft_formats *formats, weft_node node, uint32_t result);
int64_t weft_format_conv_read_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                                 uint32_t result);

/* --- format_product.c --------------------------------------------------------------------------------------------- */

/* Would the kernel of a product of f32 read constant weights in elements smaller than f32 (weft_gemm_wants_small), as
 * operands lie before layouts are chosen, at the hints? */
bool weft_format_wants_small(const struct weft_formats *formats, weft_node node);
/* What a product takes longer to compute into this layout than into the better one, and what it copies of an operand
 * that lies so. */
int64_t weft_format_product_write_ps(const struct weft_formats *formats, weft_node node, uint32_t result);
int64_t weft_format_product_read_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                                    uint32_t result);

/* --- format_custom.c ---------------------------------------------------------------------------------------------- */

/* In which layout a custom function takes an operand, or writes its result: unknown also of all other nodes. */
enum weft_format_wanted { WEFT_WANTS_UNKNOWN, WEFT_WANTS_ANY, WEFT_WANTS_ORDER };
enum weft_format_wanted weft_format_custom(const struct weft_formats *formats, struct weft_pin pin,
                                           uint32_t *ret_layout);
/* What it costs that a custom function takes or writes a value in its order, if that is stored so; in row-major where
 * the function says nothing. */
int64_t weft_format_custom_ps(const struct weft_formats *formats, struct weft_pin pin, uint32_t layout);
/* The same of an operand, while result 0 is written in another layout; and what reading across takes. */
int64_t weft_format_custom_read_ps(const struct weft_formats *formats, struct weft_pin operand, uint32_t layout,
                                   uint32_t result);
/* Will there be a relayout for that alone (passes/propagate_orders.c)? */
bool weft_format_misses_order(const struct weft_formats *formats, struct weft_pin pin, uint32_t layout);

/* --- format_choose.c ---------------------------------------------------------------------------------------------- */

/* Fills the choice. */
void weft_formats_choose(struct weft_formats *formats);

#endif
