/* SPDX-License-Identifier: Apache-2.0 */
/* step.h: kernel calls. A step is one call: its kind, the values that it reads and writes, and what was decided about
 * it. Kinds are what weft has kernels for, a file each or a few that belong together (step_*.c).
 *
 *   node ──weft_step_choose──► step: kind, arguments          once, when a plan is made (sched/select.h)
 *        ──kind->expand─────► several steps, where one call cannot do it (a concat: one for each operand)
 *        ──kind->bind───────► descriptor: a kernel prepared for sizes and strides, parts, scratch memory
 *        ──kind->run────────► the work of one part
 *
 *   %y: f32[2,7] = concat %a, %b axis=1      two steps of the kind `concat`: part 0 copies %a to element 0 of the
 *                                            result's rows, part 1 copies %b to where `before` says
 *
 * Kinds know a graph, a target and tensors. Where values lie they ask of whoever binds: a plan, or a search for
 * layouts. */
#ifndef WEFT_STEP_H
#define WEFT_STEP_H

#include "ir/ir.h"
#include "kernels/kernels.h"
#include "sched/prices.h"

#include <assert.h>

struct weft_custom_entry;
struct weft_target_kernel; /* sched/target.h */
struct weft_form; /* codegen/form.h */
struct weft_epilogue; /* sched/epilogue.h */
struct weft_prologue; /* sched/prologue.h */
struct weft_program; /* kernels/strip/program.h */
struct weft_tier; /* codegen/strips.h */

/* Kernels take at most so many arguments by pointer; the evaluator, plain kernels and functions of the caller's ask for
 * tensors, and take any number. */
#define WEFT_STEP_POINTERS 4

struct weft_step {
    const struct weft_step_kind *kind;
    weft_node node;         /* none for copies at the end */
    uint32_t unit;          /* of the plan (sched/unit.h) that it belongs to; 0 for copies at the end */
    const weft_val *out;    /* what it writes: the results of the node; the first is never none */
    weft_val *in;           /* what it reads, in the order of the kernel */
    uint32_t outs, ins;
    uint32_t part;          /* which part of the result: operand of a concat, border of a pad */
    weft_dim before;        /* of a concat: elements along the axis that stand before this operand's */
    const struct weft_strip_kernel *strip;  /* of an elementwise step */
    const struct weft_custom_entry *custom; /* of a custom step */
    const struct weft_target_kernel *own; /* of a step that calls a kernel of the caller's target */
    const struct weft_form *code; /* of a step that computes a group */
    const struct weft_epilogue *epilogue; /* of the head of a group (sched/epilogue.h) */
    const struct weft_chosen *chosen; /* of a product whose matrices data chooses (sched/chosen.h), or NULL */
    const struct weft_prologue *prologue; /* what makes operand 0 of that, or NULL (sched/prologue.h) */
    struct weft_tier *tier; /* of a step with programs: compiled code in the place of them; the plan's. Of the one that
                             * `program` gives, and of the one that `makes` gives */
    int32_t form;           /* one of kind->forms; 0: the kernel chooses by sizes */
    uint32_t without;       /* CPU levels of the target that it leaves aside: WEFT_CPU_* */
    const char *why;        /* of a reference step: why no kernel takes the node */
    double param[2];
    /* decided by the plan */
    uint32_t from;          /* the storage that a plain copy reads; 0: in[0]'s home */
    uint32_t to;            /* the storage that receives a plain copy of in[0]; 0: out's home */
    uint32_t pack;          /* memory of the plan that holds the packed operand 1, or 0 */
    const char *plain;      /* why operand 1 stays readable beside its pack, or NULL: every size wants that pack */
    uint32_t descriptor;    /* byte offset in a frame */
    uint32_t control;       /* the bodies that this step runs, or 0: a kernel */
    uint32_t bound;         /* done only if a tensor is bound to this return slot, + 1; 0: always */
};

/* --- where values lie --------------------------------------------------------------------------------------------- */

struct weft_places {
    struct weft_tensor (*tensor)(const void *user, weft_val value, const int64_t *symbols); /* without data */
    const weft_dim *(*stride)(const void *user, weft_val value);                          /* by logical axis */
    uintptr_t (*alignment)(const void *user, weft_val value, const int64_t *symbols); /* of its first element, bytes */
    const struct weft_layout *(*layout)(const void *user, weft_val value);
    const void *user;
};

/* --- binding ------------------------------------------------------------------------------------------------------ */

/* A step being bound to sizes: concrete tensors without data, kernels prepared for so many workers. */
struct weft_bind {
    const struct weft_graph *graph;
    const struct weft_step *step;
    const struct weft_target *target;
    const struct weft_places *places;
    const struct weft_packing *packed;     /* how operand 1 was packed, or NULL: it was not */
    const int64_t *symbols;
    struct weft_tensor out, in[WEFT_STEP_POINTERS]; /* of the first result; of as many operands */
    int workers;
    /* results */
    int32_t parts;
    size_t scratch;         /* bytes per worker */
    size_t shared;          /* bytes for all parts together, of which the first 64 are zero when the first begins */
    int64_t out_offset,
        in_offset; /* elements added to the places of the result and of operand 0 (concat, pad, slice) */
};
/* The CPU levels that the step may use. */
static inline uint32_t weft_bind_cpu(const struct weft_bind *bind)
{
    return bind->target->cpu & ~bind->step->without;
}
/* Does the pack of the step serve loops that want this packing? If not, the weights are there as they are. */
bool weft_bind_serves(const struct weft_bind *bind, const struct weft_packing *wanted);
/* Is the number the same for all sizes? */
bool weft_bind_is_fixed(const struct weft_bind *bind, weft_dim dim);
/* Element i of a list attribute of the step's node, for the sizes at hand. */
int64_t weft_bind_attr(const struct weft_bind *bind, int key, unsigned i);
/* Any operand or result of the step's node, also one that is stored in blocks. */
static inline void weft_bind_array(const struct weft_bind *bind, weft_val value, struct weft_kernel_array *ret)
{
    weft_array_of(bind->graph->dims, weft_type_of(bind->graph, value),
                  bind->places->layout(bind->places->user, value), bind->symbols, ret);
}
/* Any operand or result of the step's node. */
static inline struct weft_tensor weft_bind_tensor(const struct weft_bind *bind, weft_val value)
{
    return bind->places->tensor(bind->places->user, value, bind->symbols);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

struct weft_call {
    const struct weft_graph *graph;
    const struct weft_step *step;
    void *out;              /* of the first result */
    const void *in[WEFT_STEP_POINTERS];
    const void *packed;     /* operand 1 as it was packed, or NULL */
    struct weft_prefetch prefetch; /* what the worker reads next of the packed operand of a later step */
    void *scratch;          /* of this worker */
    void *shared;           /* of all parts; a step leaves the first 64 bytes as it found them: zero */
    int64_t *symbols;       /* the live ones of the run */
    _Atomic bool *failed;   /* set when scratch memory was refused, or a custom function failed */
    struct weft_failure *failure; /* what else than memory was missing */
    struct weft_tensor (*tensor)(const struct weft_call *call, weft_val value); /* with its data */
    const void *user;       /* of whoever fills `tensor` in */
    int part, parts;
    int worker, workers;    /* who does it; how many there are at most */
};

/* --- packing of operand 1 ----------------------------------------------------------------------------------------- */

enum { WEFT_STEP_PACK_PARTS = WEFT_CONV_PACK_PARTS };

/* How constant or static weights are to be packed. */
struct weft_step_pack {
    union {
        struct weft_gemm gemm;
        struct weft_conv conv;
    };                      /* for the sizes at hand */
    size_t bytes;
    const struct weft_packing *packing; /* of the member that is meant */
    const char *plain;      /* why other sizes may want another packing; NULL: none does */
};

/* --- what a choice says of itself (sched/select.h) ---------------------------------------------------------------- */

/* How numbers are rounded on the way to a result. Two choices of one node whose signatures are the same give the same
 * bits. */
enum weft_arithmetic {
    WEFT_ARITHMETIC_MOVES,    /* there are no roundings */
    WEFT_ARITHMETIC_OP,       /* each element by the op's kernel */
    WEFT_ARITHMETIC_SUMS,     /* terms in the fixed order of the reduction kernels, for terms side by side */
    WEFT_ARITHMETIC_COLUMNS,  /* and for results side by side */
    WEFT_ARITHMETIC_CHAIN,    /* one chain of multiply-adds for each result, or as the numbers below say */
    WEFT_ARITHMETIC_PLAIN,    /* by plain loops of their own */
    WEFT_ARITHMETIC_EVALUATOR /* in double or exact, rounded at the end */
};
struct weft_signature {
    uint8_t arithmetic;
    uint8_t winograd;         /* results of a transform along an axis, or 0 */
    uint16_t lanes, slices;   /* chains side by side, chains one behind the other, where they are more than one */
};

/* What a bound step has to do besides reading and writing memory, and how it rounds. */
struct weft_account {
    double overhead_ns;       /* on one worker, besides what is counted: calls, short lines, elementwise arithmetic */
    double count;             /* so many of what the price is for; 0: none */
    enum weft_price price;
    struct weft_signature signature;
};

/* --- kinds -------------------------------------------------------------------------------------------------------- */

enum weft_step_trait {
    WEFT_STEP_COPIES = 1 << 0,    /* is nothing but a copy; its descriptor begins with a weft_copy */
    WEFT_STEP_MOVES = 1 << 1,     /* moves elements only, and its descriptor begins with a weft_copy */
    WEFT_STEP_FILLS = 1 << 2,     /* writes one element everywhere, whatever the order of axes */
    WEFT_STEP_STRIDED = 1 << 3,   /* writes rows with gaps between them as fast as without */
    WEFT_STEP_EVALUATES = 1 << 4, /* is the reference evaluator */
    WEFT_STEP_ODD_ADDRESS = 1 << 5, /* reads operand 0 at any address */
    WEFT_STEP_FINISHES = 1 << 6,  /* its f32 results may be finished in a group (sched/epilogue.h) */
    WEFT_STEP_BANDS = 1 << 7,     /* and come band by band then, as its operand may (sched/prologue.h) */
};

enum { WEFT_STEP_FORMS = 16 };
static_assert((int)WEFT_CONV_FORMS <= (int)WEFT_STEP_FORMS, "a list has room for all forms of a convolution");

/* Where the steps of a node go. */
struct weft_step_sink {
    void (*add)(void *user, struct weft_step step);
    void *user;
    struct weft_arena *arena;
    const bool *inside;     /* of a concat, a scatter or a padding: which parts are in their places already; or NULL */
};

struct weft_step_kind {
    const char *name;
    uint32_t traits;
    size_t descriptor_bytes;
    size_t (*bytes)(const struct weft_step *step); /* of a descriptor, where not all are as large; or NULL */
    void (*bind)(struct weft_bind *bind, void *descriptor);
    void (*run)(const void *descriptor, struct weft_call *call);
    const char *(*kernel)(const void *descriptor, const struct weft_step *step); /* its name */
    /* After bind: what that kernel needs of the CPU, WEFT_CPU_*; 0: it is plain loops. NULL: all of this kind are. */
    uint32_t (*cpu)(const void *descriptor);
    /* Of a kind that moves elements: does it go line by line, and not as the copy that its descriptor begins with?
     * NULL: never. */
    bool (*by_lines)(const void *descriptor);
    /* What a part reads first of the packed operand, for earlier steps to prefetch. NULL: nothing, and steps of the
     * kind prefetch nothing for others (call->prefetch). */
    struct weft_prefetch (*reads_first)(const void *descriptor, const void *packed, int part);
    /* NULL: one step, as it was chosen. */
    void (*expand)(const struct weft_graph *graph, const struct weft_step *step, struct weft_step_sink *sink);
    /* Finds the values of the data symbols that the node defines, into call->symbols. NULL: the evaluator does. */
    void (*define)(const void *descriptor, struct weft_call *call);
    /* After bind: the program that runs in or behind the kernel, or NULL: there is none. NULL: never. */
    const struct weft_program *(*program)(const void *descriptor);
    /* The same of the program that makes operand 0. NULL: never. */
    const struct weft_program *(*makes)(const void *descriptor);
    uint8_t arithmetic;       /* of the signature, if account says nothing */
    /* After bind: what there is to do. NULL: memory is all. */
    void (*account)(const struct weft_bind *bind, const void *descriptor, struct weft_account *ret);
    /* After bind with form 0: other forms that fit, for step->form, at most WEFT_STEP_FORMS; their number. NULL: none.
     * */
    uint32_t (*forms)(const struct weft_bind *bind, const void *descriptor, int32_t *ret_form);
    /* How to pack operand 1, if it is constant or static, for the sizes in `bind`; false: not for them. NULL: never. */
    bool (*plan_pack)(const struct weft_bind *bind, struct weft_step_pack *ret);
    /* Two packs of this kind for the same weights, with the same packing: are they the same, byte by byte? */
    bool (*same_pack)(const struct weft_step_pack *a, const struct weft_step_pack *b);
    /* Packs the weights, which begin at `data`. On the way it gives back pages of a mapped `source`, if any. */
    void (*write_pack)(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data,
                       const struct weft_constant *source);
    /* A part of that, of at most WEFT_STEP_PACK_PARTS, which may be packed at the same time. */
    void (*write_pack_part)(const struct weft_step_pack *how, float *to, const weft_loose_f32 *data, int part,
                            int parts);
};

static inline bool weft_step_has(const struct weft_step *step, enum weft_step_trait trait)
{
    return step->kind->traits & trait;
}

/* A relayout, as weft_statistics and the commands count them (docs/explain.md says what one is). The copy of a result
 * that is elsewhere unless the caller binds a tensor to it is none. */
static inline bool weft_step_is_relayout(const struct weft_step *step)
{
    return weft_step_has(step, WEFT_STEP_COPIES) && !step->bound;
}

/* Bytes of its descriptor. */
static inline size_t weft_step_bytes(const struct weft_step *step)
{
    return step->kind->bytes ? step->kind->bytes(step) : step->kind->descriptor_bytes;
}

/* A step that computes all results of a node from all of its operands, of no kind yet. Memory is the arena's. */
struct weft_step weft_step_of(const struct weft_graph *graph, weft_node node, struct weft_arena *arena);
/* Replaces what a step reads. */
void weft_step_read(struct weft_step *step, struct weft_arena *arena, uint32_t ins, const weft_val *in);
/* Finds the values of the data symbols that the step's node defines. */
void weft_step_define(const void *descriptor, struct weft_call *call);

/* Are all operands, the result and what is added up of f32? Products, convolutions and pools of others have other
 * kernels, or plain ones. */
bool weft_step_is_f32(const struct weft_graph *graph, weft_node node);
/* step_gemm.c, step_conv.c: what the kernel of a product or of a convolution is prepared from, all of the descriptor
 * but what weft_gemm_prepare and weft_conv_prepare fill in: strides and extents of the tensors in `bind`. Whoever
 * prices forms asks the kernel for them as whoever runs it does. Of a product: is it a single one, whose operand 1 may
 * be packed? */
bool weft_step_fill_gemm(const struct weft_bind *bind, struct weft_gemm *ret);
/* The smallest type that holds the numbers of constant weights of f32 (weft_smallest_dtype), which moving them does not
 * change: found once for each constant. WEFT_K_F32 where they are in no memory, or not any more. */
uint8_t weft_step_numbers(const struct weft_graph *graph, weft_val weights, uint32_t cpu);
void weft_step_fill_conv(const struct weft_bind *bind, struct weft_conv *ret);
/* After prepare. Of a product: vectors that are not filled take the time of full ones, so many times that of their
 * lanes at work. Of a convolution: the multiply-adds in whose time it is done; what turns, gathers and pads is in it
 * where its loops have a model of that. */
double weft_step_gemm_waste(const struct weft_gemm *gemm);
double weft_step_conv_products(const struct weft_conv *conv, enum weft_price *ret_price, bool *ret_modelled);
/* step_sweep.c: the same of a sum, mean, product or extreme of so many elements; after prepare, lines of terms besides
 * them, where empty lanes of rows of results count as parts of lines. step_pool.c: taps, those of empty lanes included.
 * Of a grid_sample (step_sample.c): elements of the result, and what finding their places takes, as elements. */
void weft_step_fill_reduce(const struct weft_bind *bind, struct weft_reduce *ret);
double weft_step_reduce_lines(const struct weft_reduce *reduce, double elements, double results);
double weft_step_sampled(double elements, int64_t channels, bool by_pixel);
enum { WEFT_STEP_TAP_WITH_PLACE = 2 }; /* a tap of a max_pool_index takes the time of so many */
double weft_step_pool_taps(int rank, const int64_t *extent, const int64_t *kernel, bool last, uint32_t cpu,
                           enum weft_price *ret_price);

/* step_pool.c: windows over operand 0, with a result that lies so; all of the descriptor but what prepare fills in. */
void weft_step_read_pool(const struct weft_bind *bind, const struct weft_tensor *out, struct weft_pool *ret);
/* step_along.c: what the kernel of a scan, sort or search along an axis is told. */
enum weft_along_op weft_step_along_op(int opcode);
/* Which of the words that an attribute may be it is: kernels have enumerations in that order. */
int weft_step_word(const struct weft_graph *graph, weft_node node, int key);
/* The form of the step's program, or NULL: it has none; and of the one that makes operand 0. */
const struct weft_form *weft_step_form(const struct weft_step *step);
const struct weft_form *weft_step_makes_form(const struct weft_step *step);

/* step_along.c: is there a kernel for an op along one axis, on this dtype and extent? */
bool weft_step_is_along(const struct weft_graph *g, weft_node n);
/* step_product.c: is it a product in f64 or integers? */
bool weft_step_is_product(const struct weft_graph *g, weft_node n);
/* step_plain.c: is there a plain kernel for the node? */
bool weft_step_is_plain(const struct weft_graph *g, weft_node n);

#define KIND(name) extern const struct weft_step_kind weft_step_##name;
#include "sched/step.def"
#undef KIND

#endif
