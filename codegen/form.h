/* SPDX-License-Identifier: Apache-2.0 */
/* form.h: the kernel form: what one kernel computes, and in which order it has to, without a word about a machine.
 * README.md has several kernels written out in it.
 *
 *   kernel @softmax(in %x: f32[N,768], out %y: f32[N,768]) {
 *     axis r in N
 *     axis c in 768
 *     phase r {                            tiles of the phase run in any order, also at the same time
 *       sweep r, c {                       all points of the tile
 *         %0: f32 = load %x[r, c]
 *         %m: f32 = fold reduce_max %0 over c
 *       }                                  here %m has a number for each r of the tile
 *       sweep r, c {
 *         %1: f32 = load %x[r, c]
 *         %2: f32 = sub %1, %m
 *         %e: f32 = exp %2
 *         %s: f32 = fold sum %e over c
 *       }
 *       sweep r, c {
 *         %q: f32 = div %e, %s             %e is read behind the sweep that made it: it is kept in the tile's scratch
 *         store %y[r, c], %q
 *       }
 *     }
 *   }
 *
 * A kernel is a list of *phases*. Between two of them all is finished: what a phase stores in a scratch array the next
 * ones may load. A phase cuts some axes into *tiles*, which are independent of each other. A tile is a list of
 * *stages*, done one behind the other; a stage has instructions, done for each point of the stage's axes inside of the
 * tile. `along` repeats the stages inside of it for one piece of an axis after the other, in order, and hands *carried*
 * values on.
 *
 * Instructions make values, each once. A value has a set of axes: one number for each point of them. An instruction may
 * read any value of its own tile whose axes it has, made before it. Values read behind their stage are kept in the
 * tile's scratch memory; how much that is follows, and is not written down.
 *
 * Ids are positions in arrays; all memory is the arena's of whoever made the form. A form knows no graph but the table
 * of its sizes; `value` and `node` say where a part came from, for whoever binds or explains. */
#ifndef WEFT_FORM_H
#define WEFT_FORM_H

#include "ir/index.h"
#include "ir/ir.h"

enum { WEFT_FORM_AXES = 2 * WEFT_MAX_RANK, WEFT_FORM_INS = 3 };

/* --- parts -------------------------------------------------------------------------------------------------------- */

struct weft_form_axis {
    const char *name;
    weft_dim extent;
    /* `axis t in r by 128`: numbers the pieces of another axis; in a phase or an `along` that cuts that axis in pieces
     * as long, an instruction finds the number of its piece. */
    int8_t pieces_of;       /* or -1 */
    weft_dim by;
};

enum weft_form_use { WEFT_FORM_IN, WEFT_FORM_OUT, WEFT_FORM_SCRATCH };
/* Memory that instructions load and store by index. Scratch is the kernel's own, all phases see it. */
struct weft_form_array {
    const char *name;
    uint8_t use, dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
    weft_val value;         /* of the graph, or none */
};

enum weft_form_kind {
    WEFT_FORM_LOAD,         /* %v = load %x[i, …]: where the index lies outside (`?`), `number`, or, of a concat's
                             * parts, what another load finds there (`else %w`). Where a value of integers stands for
                             * an index, %x[%i, c], it counts from the end below 0, what then lies outside is the
                             * nearest element, and of an axis that has none, the result is 0. floor(a, 2): half of a,
                             * rounded down */
    WEFT_FORM_CONST,        /* %v = const 1e-05 */
    WEFT_FORM_MAP,          /* %v = word(p, q) %a, %b, %c: an elementwise op, by its word in kernels/strip/strip.def */
    WEFT_FORM_FOLD,         /* %v = fold sum %a over c: over all of these axes in the tile; empty: the identity */
    WEFT_FORM_SCAN,         /* %v = scan sum %a over c: one axis; each element with all before it; `scan exclusive
                             * reverse sum`: without itself, with all behind it. Operand and result share a type */
    WEFT_FORM_CONTRACT,     /* %v = contract %a, %b over k: sum of products, with a loop and packing of its own */
    WEFT_FORM_CARRY,        /* carry %v over r = -inf: before an `along`: one number for each point of its axes */
    WEFT_FORM_NEXT,         /* next %v, %w: what the carried value is from the next piece on, or behind the `along` */
    WEFT_FORM_STORE         /* store %y[i, …], %v */
};
struct weft_form_op {
    uint8_t kind, dtype;    /* of the value; of STORE and NEXT: of what is read */
    uint8_t ins, fold;      /* enum weft_reduce_op of a FOLD or SCAN (kernels/kernels.h) */
    bool exclusive, reverse; /* SCAN */
    bool falls_back;        /* LOAD: what it is outside is the last of `in`, not `number` */
    uint16_t axes;          /* of the value, a bit each: those of the stage that its map names (LOAD), none (CONST),
                             * those of its operands less the folded ones; of STORE and NEXT: those of the point */
    uint16_t over;          /* FOLD, SCAN, CONTRACT: axes that are folded, or the one that is gone along */
    uint32_t in[WEFT_FORM_INS]; /* ops that made what it reads; NEXT: the carried one, then the new */
    uint32_t array, map;    /* LOAD, STORE: which array; index map, whose axes are the form's */
    const char *word;       /* MAP */
    double param[2];        /* MAP: as its kernel takes them */
    double number;          /* CONST, CARRY; what a LOAD finds outside. Of integers: as `integer` */
    int64_t integer;
    const char *name;       /* of the value, without %; NULL: by its number */
    weft_node node;         /* of the graph that it computes, or none */
};

enum weft_form_stage_kind {
    WEFT_FORM_SWEEP,        /* instructions but CONTRACT and CARRY */
    WEFT_FORM_MULTIPLY,     /* `contract { … }`: loads, and one CONTRACT behind them */
    WEFT_FORM_BEGIN,        /* CARRYs, which stand before an `along` */
    WEFT_FORM_ALONG         /* the next `stages` stages, once for each piece */
};
struct weft_form_stage {
    uint8_t kind;
    uint16_t axes;          /* SWEEP, MULTIPLY: whose points it visits */
    uint32_t first, ops;    /* in weft_form.op */
    uint8_t axis;           /* ALONG */
    weft_dim by;            /* ALONG: elements of a piece; 0: the back end chooses */
    uint32_t stages;        /* ALONG: how many behind it are inside */
};

struct weft_form_phase {
    uint16_t axes;          /* that are cut into tiles */
    weft_dim by[WEFT_FORM_AXES]; /* elements of a tile along these; 0: the back end chooses */
    uint32_t first, stages;
};

struct weft_form {
    const char *name;       /* "add_relu_mean_f32" */
    struct weft_dims *dims; /* of the sizes */
    struct weft_arena *arena;
    struct weft_form_axis axis[WEFT_FORM_AXES];
    uint32_t axes;
    struct weft_form_array *array;
    struct weft_form_phase *phase;
    struct weft_form_stage *stage;
    struct weft_form_op *op;
    struct weft_index_map *map;
    uint32_t arrays, phases, stages, ops, maps;
    uint32_t array_capacity, phase_capacity, stage_capacity, op_capacity, map_capacity;
};

/* --- making (form.c) ---------------------------------------------------------------------------------------------- */

struct weft_form *weft_form_new(struct weft_arena *arena, struct weft_dims *dims, const char *name);
/* Each returns the number of what it added. A phase takes all stages that are added after it, a stage all ops. */
uint32_t weft_form_add_axis(struct weft_form *form, const char *name, weft_dim extent);
uint32_t weft_form_add_array(struct weft_form *form, struct weft_form_array array);
uint32_t weft_form_add_phase(struct weft_form *form, struct weft_form_phase phase);
uint32_t weft_form_add_stage(struct weft_form *form, struct weft_form_stage stage);
uint32_t weft_form_add_op(struct weft_form *form, struct weft_form_op op);
/* A map that finds dimension i of an array at axis axis[i], or at 0 where that is -1. */
uint32_t weft_form_add_map(struct weft_form *form, int rank, const int8_t *axis);
/* By op: is its value read behind the stage that makes it, so that the tile keeps it? Carried values are. Sets those
 * that are, of as many as there are ops. */
void weft_form_find_kept(const struct weft_form *form, bool *ret_kept);

/* --- checking (form_check.c) -------------------------------------------------------------------------------------- */

/* NULL, or what is wrong, naming the value, array or axis, in the arena's memory: a value that is read before it is
 * made (a fold is made behind its stage), in another phase, or behind an `along` that it was made in (carried ones
 * excepted); axes that a value does not have; a fold over axes that its operand does not have, or that the phase cuts
 * in tiles of no stated length; a load of scratch or of a result that no earlier phase stores, or that this one does;
 * indices that may leave the array and are not guarded; an array that is stored at points of fewer axes than the stage
 * has, or by several tiles or pieces (each element once); a word that no strip kernel has for the types; a carried
 * value that has no NEXT, or one outside of its `along`; results that nobody stores; ALONGs that do not close. */
const char *weft_form_fault(const struct weft_form *form, struct weft_arena *arena);

/* --- overwriting (form_over.c) ------------------------------------------------------------------------------------ */

struct weft_form_over {
    uint32_t out, in;           /* arrays: a result, and an argument in its memory, with elements of the same size */
    int8_t dim[WEFT_MAX_RANK];  /* by dimension of the result: that of the argument that has its elements as far apart,
                                 * and as many; -1: of extent 1 */
};
/* NULL, or why the result must not lie over the argument, with the instruction that needs it. */
const char *weft_form_refuse_over(const struct weft_form *form, const struct weft_form_over *ask,
                                  struct weft_arena *arena, uint32_t *ret_op);
/* The last instruction that reads what a load of the array finds; 0: none. */
uint32_t weft_form_last_read(const struct weft_form *form, uint32_t array);

/* --- text (form_text.c, form_parse.c) ----------------------------------------------------------------------------- */

struct weft_text;
void weft_form_print(const struct weft_form *form, struct weft_text *text);
/* What weft_form_print wrote, or a person. Symbols of sizes are those of `dims`, unknown ones are added. NULL with a
 * message that begins with the line's number, in the arena's memory. Parsed forms are checked. */
struct weft_form *weft_form_parse(const char *text, size_t length, struct weft_dims *dims, struct weft_arena *arena,
                                  const char **ret_fault);

/* --- counting (form_count.c) -------------------------------------------------------------------------------------- */

struct weft_form_counts {
    int64_t bytes_read, bytes_written; /* of arrays: each element that some point needs, once for each phase that does,
                                        * scratch arrays included */
    int64_t elements_read, elements_written; /* the same in elements, without scratch */
    int64_t flops;          /* of MAPs but casts of floats up to f32, FOLDs, SCANs one a point, of CONTRACTs two */
    int64_t points;         /* of all instructions but loads, constants and stores */
    int64_t kept_bytes;     /* that a tile keeps between stages, where axes that the back end cuts are cut to one */
};
/* For these values of the symbols. */
void weft_form_count(const struct weft_form *form, const int64_t *symbols, struct weft_form_counts *ret);

#endif
