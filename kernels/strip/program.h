/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: strip programs: several elementwise ops and folds over the points of a box as one kernel, whose
 * intermediate values never leave the nearest caches (program.c, program_run.c, program_fold.c, program_scan.c).
 *
 * The axes of the box are *outer* ones, whose points are independent, and *inner* ones, which folds remove. Outer
 * points are cut into *tiles*; a worker does one tile after the other. A tile goes through the *stages*: a stage that
 * is `inside` visits all inner points of each outer point of the tile, any other the outer points alone. Points are
 * visited a *strip* at a time: up to 512 along one axis, for which each op of the stage is called once (kernels.h,
 * struct weft_strip_args). Short lines are visited several at a time, as a *block*: what is not contiguous from line to
 * line is written out for the block before, and an op is called once for all of them.
 *
 *   softmax of rows        stage 0, inside    m = max x
 *   outer r, inner c       stage 1, inside    d = x - m    e = exp d    s = sum e     d: a strip; e: kept for the tile
 *                          stage 2, inside    y = e / s                                 m, s: one for each outer point
 *
 * Strips run along the innermost inner axis (rows that are folded lie side by side in memory), or along the innermost
 * outer one (columns are folded, or nothing is): whichever finds more arguments with elements side by side. Where
 * nothing is folded and lines are short, prepare makes the innermost axis an inner one.
 *
 * A fold *across* goes the other way: it puts the numbers of all outer points of a *chunk* together, one result for
 * each inner point. A chunk is so many points along the last outer axis, whatever the number of workers; one worker
 * does it, tile by tile. So sums down the columns and along the rows of one array take one pass over it. What chunks
 * come to is put together by who reads it.
 *
 *   layer norm, backward   stage 0, inside    h = (x - mean) * rstd    d = dy * g    a = mean d    b = mean d * h
 *   outer r, inner c       stage 1, inside    dx = …    q = sum dy * h, across    stored at [chunk, c]
 *
 * A *scan* makes each inner point the sum, product or extreme of all points of its line up to it. The scanned axis is
 * the only inner one, so one worker has a line whole, and the strips of a stage come in the order of the scan, from
 * the end if it is reversed. Strips along inner: the scan goes on from strip to strip with one number. Strips along
 * outer: each inner point is one step of as many lines as a strip has points, with a row of numbers between the steps.
 * What is made in front of a scan and behind it belongs to the same stage. Of few long lines, parts take chunks in turn
 * where lines do not go round (scan.h): what is in front of the scan is then made twice.
 *
 *   decay, log domain      stage 0, inside    l = log a    s = scan sum l    y = exp s
 *   outer r, inner c
 *
 * What is *looked up* by an index, or lies inside of an array only at some points, is an op as well, which copies what
 * it finds. Its first operand is the array at the points as if all *guards* were 0; each guard is a number that an
 * argument holds (an index: the op goes so many elements on), or the place of the point along an axis of the array (a
 * position: where it is outside, the op finds `number`; or one that is divided: a quotient, by which the op goes on).
 * Several ops may find the parts of one value: the first one `number` where it is outside, the others leave what is
 * there.
 *
 *   embedding              stage 0, inside    x = table, guarded by index i     y = x + p
 *   outer r, inner c
 *   concat, sum            stage 0, inside    x = a, guarded by position c; x = b, by position c - 64    s = sum x
 *
 * Folds keep the order of kernels/strip/reduce.c: a program gives the same bits as its ops one by one, where reduce.c
 * cuts no slices and goes along rows, or along columns, and merges axes, as the program does. So do scans that of
 * kernels/along (scan.h). */
#ifndef WEFT_STRIP_PROGRAM_H
#define WEFT_STRIP_PROGRAM_H

#include "kernels/along/scan.h"
#include "kernels/strip/reduce_type.h"

#define WEFT_PROGRAM_ORIGIN ((intptr_t)1 << 40) /* the address of position 0 */
enum { WEFT_PROGRAM_ARGUMENTS = 64, /* at most */
       WEFT_PROGRAM_POSITION = UINT16_MAX, /* the number of no argument: addresses count positions, bytes are 1 */
       WEFT_PROGRAM_SKIPS = 2,      /* inner axes in front of the last one, at most, of what is compiled */
       WEFT_PROGRAM_GRAIN = 16,     /* outer points side by side that one worker does: a line of f32 */
       WEFT_PROGRAM_COLUMNS = 128 }; /* long folds of fewer columns are priced as narrow: parts are pieces of lines */

enum weft_program_place {
    WEFT_PROGRAM_ARGUMENT, /* memory of the caller's; strides of 0 where it does not have an axis */
    WEFT_PROGRAM_TILE,     /* one for each outer and inner point of a tile: read behind the stage that makes it */
    WEFT_PROGRAM_OUTER,    /* one for each outer point of a tile */
    WEFT_PROGRAM_STRIP,    /* one for each point of a strip: read in its own stage alone */
    WEFT_PROGRAM_NUMBER    /* one for all points: `number` */
};
struct weft_program_value {
    uint8_t place, bytes;      /* bytes of an element */
    uint16_t argument;         /* which, of an ARGUMENT */
    int64_t outer[WEFT_K_RANK], inner[WEFT_K_RANK]; /* strides of an ARGUMENT, elements */
    int64_t chunk;             /* of an ARGUMENT that a fold across writes: elements from chunk to chunk */
    int64_t offset;            /* of an ARGUMENT: elements from its base to the first point */
    _Alignas(8) char number[8];
    /* set by prepare */
    size_t at, copy;           /* bytes from the worker's scratch memory: where it is; written out for a block */
    int64_t stride, step;      /* along a strip: elements as ops take them, and bytes */
    int64_t next;              /* bytes from line to line: to the next outer point of a tile (strips along inner), or to
                                * the next inner point */
};

/* Of a look-up, in the order of the array's axes. Its limit and step are in weft_program.bound. */
enum weft_program_guard_kind { WEFT_PROGRAM_INSIDE, WEFT_PROGRAM_INDEX, WEFT_PROGRAM_QUOTIENT };
struct weft_program_guard {
    uint16_t value;            /* an ARGUMENT: a position, not below 0 if it is divided; or an index of 32 or 64 bits */
    uint8_t kind;
};

struct weft_program_op {
    const struct weft_strip_kernel *kernel; /* NULL: a fold, a scan, or a look-up */
    uint8_t ins;
    uint16_t out, in[WEFT_K_MAX_IN]; /* values. An ARGUMENT that is written has its own element at each point */
    uint16_t guard;            /* of a look-up: its first one */
    uint8_t guards;            /* their number; 0: it is none */
    bool part;                 /* of a look-up: what it does not find stays as an op before it has made it */
    _Alignas(8) char number[8]; /* of a look-up: what it finds outside */
    uint16_t fold;             /* which, of a fold: out is an OUTER value, or an ARGUMENT without inner strides; of one
                                * across an ARGUMENT with inner strides and none along the axis of chunks */
    bool scans;                /* then `fold` says which scan */
    double param[2];
};

struct weft_program_fold {
    struct weft_reduce reduce; /* op and dtypes */
    bool across;               /* chunks instead of inner points; no mean */
    /* set by prepare */
    struct weft_reduce_type type;
    size_t at;                 /* state: bytes from the worker's scratch memory; across: a number for each inner
                                * point */
};

struct weft_program_scan {
    struct weft_scan scan;     /* op, dtype and flags; prepare sets the rest */
    /* set by prepare */
    size_t at;                 /* state: bytes from the worker's scratch memory */
    uint16_t ahead[WEFT_SCAN_STREAMS]; /* arguments of the stage that are asked for a strip early */
    uint8_t streams;
    bool past;                 /* it writes an argument, `out`, which may go past the caches */
    uint16_t out;
};

struct weft_program_stage {
    bool inside;
    bool backwards;            /* set by prepare: it has a reversed scan, and neither folds nor other scans */
    uint16_t first, ops;
};

struct weft_program_worker;
/* What compiled code is handed instead of a program (codegen/emit.h): a tile, or, where the code keeps nothing of one
 * outer point for the next, as many outer points as a worker has left of a line. */
struct weft_program_tile {
    char *const *at;       /* by value: at the first point. Behind them by fold, across lines: 8 bytes for each point */
    const int64_t *next;   /* by value: bytes from line to line */
    int64_t points, length; /* outer points; inner points of each, where strips run along inner those of a line */
    uint64_t past;          /* by argument, a bit each: results that go past the caches */
    const int64_t *bound;   /* weft_program.bound */
    int64_t rows;           /* of TILE values there is memory for so many outer points */
    int64_t strip;          /* of STRIP values, for so many points */
    const int64_t *skip;    /* of programs with several lines to an outer point, WEFT_PROGRAM_SKIPS numbers by value:
                             * bytes from line to line along the inner axes in front of the last, the outermost first */
    const int64_t *lines;   /* and how many there are along each of these axes */
    /* The scan with this number, on the strip of `count` points that begins `from` points behind the first one of outer
     * point `line` (strips along inner), or on step `line` of `count` lines (strips along outer), from its operand at
     * `in` to `out`. Strips and steps come in the order of the scan, and what it has come to begins anew with the
     * first. 0: nothing is made, and the rest of the stage is left out for this strip; that is asked of the one scan of
     * programs without folds alone. */
    int (*scan)(const struct weft_program_tile *tile, int number, int64_t line, int64_t from, int64_t count, void *out,
                const void *in);
    const struct weft_program_worker *worker; /* for `scan` */
};
typedef void weft_program_code(const struct weft_program_tile *tile);

struct weft_program {
    uint32_t cpu;
    uint16_t arguments, values, ops, stages, folds, scans, guards;
    int32_t outer_rank, inner_rank;
    int64_t outer[WEFT_K_RANK], inner[WEFT_K_RANK]; /* extents */
    struct weft_program_value *value;
    struct weft_program_op *op;
    struct weft_program_stage *stage;
    struct weft_program_fold *fold;
    struct weft_program_scan *scan;
    struct weft_program_guard *guard;
    int64_t *bound;            /* by guard two: elements along the axis, or what a quotient is divided by; of an index
                                * or quotient, elements from one to the next */
    int64_t chunk;             /* outer points along the last outer axis that folds across put together; 0: there are
                                * none. Outer axes stay as they are then, and strips run along inner */
    bool may_share;            /* its one scan may go in chunks of lines: where results lie and compiled code allow it
                                */
    /* set by prepare */
    bool along_inner;          /* strips run along the last inner axis; else along the last outer one */
    int64_t points, folded;    /* outer points; inner points of each */
    int64_t tile, strip, block; /* outer points of a tile; at most so many points of a strip, and of a block */
    size_t scratch;            /* bytes for each worker */
    size_t shared;             /* bytes that all parts share where they take chunks of lines (scan.h), or 0; zero in
                                * the first 64 before the first part begins, and again when the last ends */
    int32_t parts;
    bool pieces;               /* set by weft_program_prepare_pieces */
    bool ordered;              /* set by who makes it: outer axes stay in their order, so that their points are numbered
                                * row by row of it */
    bool lines_follow;         /* and: each other in all arrays; several whole ones of a piece are one */
    uint64_t past;             /* by argument, a bit each; set by weft_program_stream */
    /* set by whoever has compiled it, before it runs: does all stages of a tile, with the same bits. NULL: they are
     * interpreted */
    weft_program_code *code;
    uint64_t shape;            /* for which code that is (codegen/emit.h); set by whoever made the program */
};

/* Bytes of a program with so many parts, and a program laid out in as many: counts set, lists behind the head. */
struct weft_program_counts {
    uint32_t values, ops, stages, folds, scans, guards;
};
size_t weft_program_bytes(const struct weft_program_counts *counts);
struct weft_program *weft_program_open(void *memory, const struct weft_program_counts *counts);
/* An argument in memory, no position. */
static inline bool weft_program_is_memory(const struct weft_program_value *value)
{
    return value->place == WEFT_PROGRAM_ARGUMENT && value->argument != WEFT_PROGRAM_POSITION;
}
/* Does a value have strides along the inner axes? */
static inline bool weft_program_has_inner(const struct weft_program *program, int value)
{
    bool any = false;
    for (int i = 0; i < program->inner_rank; i++)
        any |= program->value[value].inner[i] != 0;
    return any;
}
static inline bool weft_program_is_fold(const struct weft_program_op *op)
{
    return !op->kernel && !op->guards && !op->scans;
}
/* Orders and merges the axes, cuts tiles, lays scratch memory out. The program stays where it is from then on. */
void weft_program_prepare(struct weft_program *program, int workers);
/* How many chunks there are; they are numbered line by line. Of a prepared program that has them. */
int64_t weft_program_chunks(const struct weft_program *program);
/* Compiled code writes results past the caches, by streaming stores, if they are larger than so many bytes, the last
 * cache's, together: who reads them finds them in memory anyway, and lines that are written whole need not be read
 * first. Of a prepared program; without it nothing is streamed. The bits are the same. Who runs the program takes the
 * bits of results out of `past` that lie over what is read: their lines are in the caches. */
void weft_program_stream(struct weft_program *program, size_t cache);
/* What calls, tiles and lines take on one worker besides reading, writing and computing, in nanoseconds, by estimates
 * for Zen 4: for who weighs the program against its ops one by one. Of a prepared program. */
double weft_program_overhead_ns(const struct weft_program *program);
enum { WEFT_STRIP_CALL_NS = 15 }; /* of a strip kernel on a few elements: an estimate */
/* Nanoseconds of one thread for its scans, and for what is computed twice for them where lines are shared out. */
double weft_program_scan_ns(const struct weft_program *program);
/* The same of a program for pieces, if all of its points are visited in so many of them. */
double weft_program_pieces_ns(const struct weft_program *program, double pieces);
/* Nanoseconds of one thread for the arithmetic of its elementwise ops (kernels.h, weft_strip_ns). */
double weft_program_arithmetic_ns(const struct weft_program *program);
/* `argument`: by number. Memory that is written may be read where codegen/form_over.c says so; else it overlaps
 * nothing. */
void weft_program_run(const struct weft_program *program, void *const *argument, void *scratch, void *shared, int part,
                      int parts);

/* Outer points [first, end) of an `ordered` program without folds across, of which somebody else got ready what it
 * reads: whole rows of a product. */
void weft_program_run_points(const struct weft_program *program, void *const *argument, void *scratch, int64_t first,
                             int64_t end);

/* --- program_piece.c: pieces --------------------------------------------------------------------------------------
 *
 * A program without folds may be run piece by piece as somebody else gets them ready: a product hands on each piece of
 * its results while that is in the nearest caches. A piece is rows [row, row + rows) and columns [column, column +
 * columns) of the box, rows being the outer points and columns the inner ones, numbered row by row of their axes. */

/* Instead of weft_program_prepare: of one stage, which keeps nothing. Axes stay in the order in which they are. */
void weft_program_prepare_pieces(struct weft_program *program);

/* What a worker holds of every value and op: at the begin of its scratch memory. */
struct weft_program_worker {
    const struct weft_program *program;
    char *scratch;
    char **base;                  /* by value: at the first point of the tile; behind them by fold: its state */
    char **at;                    /* at the first point of the next line */
    int64_t *next;                /* by value: bytes from line to line in this tile */
    int64_t *skip;                /* of weft_program_tile */
    int64_t *written;             /* by value: number of the block, or tile, that it was written out for */
    struct weft_strip_args *args; /* by op */
    char *const *argument;
    int64_t index[WEFT_K_RANK];   /* of the tile's first outer point */
    int64_t inner_at;             /* number of the first inner point that `at` stands at */
    int64_t tile, block;          /* what they are numbered by, from 1 on: both from one sequence */
};
/* A worker that does pieces. */
struct weft_program_pieces {
    struct weft_program program;  /* with the extents of the piece at hand */
    struct weft_program_worker worker;
    const struct weft_program *whole;
};
/* `code` as of weft_program. `pieces` stays where it is until the last piece. */
void weft_program_begin_pieces(struct weft_program_pieces *pieces, const struct weft_program *program,
                               weft_program_code *code, void *const *argument, void *scratch);
void weft_program_run_piece(struct weft_program_pieces *pieces, int64_t row, int64_t rows, int64_t column,
                            int64_t columns);

/* --- program_run.c: what the files of programs share -------------------------------------------------------------- */

struct weft_program_worker weft_program_open_worker(const struct weft_program *program, void *const *argument,
                                                    char *scratch);
/* Finds the first point of all values for the tile that begins at this outer point; runs it. */
void weft_program_open_tile(struct weft_program_worker *worker, int64_t point);
void weft_program_run_tile(struct weft_program_worker *worker, int64_t points);

/* --- program_look.c ----------------------------------------------------------------------------------------------- */

/* A look-up at n points of a strip: where its operands are at the first one, by value, and elements from one point to
 * the next. */
struct weft_program_look {
    const struct weft_program *program;
    const struct weft_program_op *op;
    const char *from;
    int64_t from_stride;
    const char *at[WEFT_K_RANK];  /* by guard of the op */
    int64_t stride[WEFT_K_RANK];
};
void weft_program_look_up(const struct weft_program_look *look, void *to, int64_t to_stride, int64_t n);
uint32_t weft_look_cpu(uint32_t cpu); /* what its loops need of the CPU */

/* --- program_axes.c ----------------------------------------------------------------------------------------------- */

enum { WEFT_PROGRAM_SHORT_LINE = 256 }; /* points of a line, up to which several are visited as a block */
/* Merges and orders the axes of the box, and decides along which one strips run. */
void weft_program_order_axes(struct weft_program *program);
/* Merges axes and leaves them in their order; each of the two lists has at least one then. */
void weft_program_merge_axes(struct weft_program *program);

/* --- program_scan.c ----------------------------------------------------------------------------------------------- */

/* Sets what prepare sets but the place of the state, and which way stages go. Where strips run, and how values lie
 * along them, is known. */
void weft_program_scans_prepare(struct weft_program *program);
/* Decides whether so many parts take chunks of lines in turn, and sets `parts` and `shared` then. */
void weft_program_scans_share(struct weft_program *program, int32_t parts);
/* A scan's op on n points, `from` points behind where `at` stands: the next of the line, or a step of n lines. False:
 * nothing is made, and what stands behind it in its stage is left out for these points. */
bool weft_program_scan_strip(const struct weft_program_worker *worker, const struct weft_program_op *op, int64_t from,
                             int64_t n);
/* weft_program_tile.scan. */
int weft_program_scan_code(const struct weft_program_tile *tile, int number, int64_t line, int64_t from, int64_t count,
                           void *out, const void *in);
/* A part's share of the chunks of all lines, where `shared` is not 0. `run` does all stages of one line, of so many
 * points, that begins where `base` stands. */
typedef void weft_program_lines(struct weft_program_worker *worker, int64_t length);
void weft_program_share_chunks(struct weft_program_worker *worker, weft_program_lines *run, void *shared, int parts);
/* Strips along inner: so many whole lines. Else as many steps of n lines. */
void weft_program_scan_block(const struct weft_program_worker *worker, const struct weft_program_stage *stage,
                             const struct weft_program_op *op, int64_t n, int64_t lines);

/* --- program_fold.c: what the files of programs share ---------------------------------------------------------------
 * */

/* Sets what prepare sets, but for the place of the state; returns its bytes. */
size_t weft_program_fold_prepare(const struct weft_program *program, struct weft_program_fold *fold);
/* Before the first point; the next n terms, `stride` elements apart, where `ends` says that a line of memory does;
 * behind the last: writes the results. Not of folds across. Strips along inner: of one outer point. Else: `lines`
 * terms, `next` bytes apart, for each of n outer points. */
void weft_program_fold_begin(const struct weft_program *program, const struct weft_program_fold *fold, void *state,
                             int64_t n);
void weft_program_fold_strip(const struct weft_program *program, const struct weft_program_fold *fold, void *state,
                             const void *x, int64_t stride, int64_t n, bool ends, int64_t lines, int64_t next);
void weft_program_fold_end(const struct weft_program *program, const struct weft_program_fold *fold, void *state,
                           void *to, int64_t stride, int64_t n);
/* Of a fold across, before the first outer point of a chunk; n inner points from number `point` on, of `lines` outer
 * ones, `next` bytes apart; behind the last: writes the results, `to` being that of the first inner point. */
void weft_program_across_begin(const struct weft_program *program, const struct weft_program_fold *fold, void *state);
void weft_program_across_strip(const struct weft_program_fold *fold, void *state, int64_t point, const void *x,
                               int64_t stride, int64_t n, int64_t lines, int64_t next);
void weft_program_across_end(const struct weft_program *program, const struct weft_program_fold *fold,
                             const void *state, const struct weft_program_value *out, void *to);

#endif
