/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h: what every kernel family shares. Kernels know scalars, strides and descriptors; they never see a graph.
 *
 * A family is a folder: X.h (the mathematics and the preconditions), X.def (one row per kernel: prototypes, dispatch,
 * the list of the harness and of `weft opt --list-kernels` come from it), X_ref.c (plain loops, the definition of
 * correct) and X_<isa>.c. Names: weft_<op>_<types>_<tile>__<isa>.
 *
 * How a kernel runs: the caller fills a descriptor (`struct weft_map`, `weft_gemm`, …) with extents and strides, calls
 * the family's `prepare` once, which chooses loops and the number of parts, and may then call `run` any number of times
 * with other buffers, from several threads, each doing its own part. `run` allocates nothing. Results do not depend on
 * the number of parts or on who runs them. */
#ifndef WEFT_KERNELS_H
#define WEFT_KERNELS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- cpu.c -------------------------------------------------------------------------------------------------------- */

#define WEFT_CPU_AVX2 (1u << 0)       /* x86-64-v3: AVX2, FMA, F16C, BMI2 */
#define WEFT_CPU_AVX512 (1u << 1)     /* x86-64-v4: F, BW, CD, DQ, VL */
#define WEFT_CPU_AVX512BF16 (1u << 2)
#define WEFT_CPU_AVX512VNNI (1u << 3)
#define WEFT_CPU_AVX512FP16 (1u << 4)
#define WEFT_CPU_AMX (1u << 5)        /* tiles with bf16 and int8, usable by this process */
#define WEFT_CPU_ALL 0x3fu

struct weft_cpu {
    uint32_t flags;      /* what machine and operating system offer */
    char brand[64];
    char vendor[13];     /* "AuthenticAMD" */
    int32_t family, model;
    size_t l1, l2, l3;   /* bytes of data cache: per core, per core, shared; guesses where the CPU does not say */
    int32_t workers;     /* threads this process should use: CPU set and container limits respected */
};
void weft_cpu_detect(struct weft_cpu *ret);
/* The mask of a level by name: "baseline", "avx2", "avx512", "avx512bf16", "avx512vnni", "avx512fp16", "amx", "all"; a
 * level implies the ones below. "a+b" joins. 0 and false if a word is unknown. All builds know all words, since a mask
 * is a bound: what the machine does not have it does not use. */
bool weft_cpu_parse(const char *name, uint32_t *ret_flags);
/* The next level below, by vectors: without AVX-512 and all that implies it, then without AVX2. False at the baseline.
 */
bool weft_cpu_lower(uint32_t flags, uint32_t *ret_flags);
/* "avx512+bf16+vnni", written to `text`. */
void weft_cpu_describe(uint32_t flags, char *text, size_t bytes);

/* --- levels that this build has kernels for ----------------------------------------------------------------------- */

/* Levels above the baseline are those of x86-64; a build for another processor has the baseline alone. All that depends
 * on that is here, in rows of the families' .def behind the same #ifdef, and in what kernels/meson.build compiles. */
#ifdef __x86_64__
#define WEFT_CPU_BUILT WEFT_CPU_ALL
/* What there is of a name at each level, lowest first: WEFT_LEVELS(&weft_fold) lists weft_fold__ref and so on. */
#define WEFT_LEVELS(name) name##__ref, name##__avx2, name##__avx512
/* The number in that list of the highest level that `cpu` has. */
static inline int weft_level_of(uint32_t cpu) { return !(cpu & WEFT_CPU_AVX2) ? 0 : cpu & WEFT_CPU_AVX512 ? 2 : 1; }
#else
#define WEFT_CPU_BUILT 0u
#define WEFT_LEVELS(name) name##__ref
static inline int weft_level_of(uint32_t cpu) { return (void)cpu, 0; }
#endif
/* What that level needs. */
static inline uint32_t weft_level_cpu(uint32_t cpu)
{
    const int level = weft_level_of(cpu);
    return level == 2 ? WEFT_CPU_AVX2 | WEFT_CPU_AVX512 : level == 1 ? WEFT_CPU_AVX2 : 0;
}

/* --- lists, for the harness and --list-kernels -------------------------------------------------------------------- */

struct weft_kernel_info {
    const char *family, *name; /* "gemm", "weft_gemm_f32_6x64__avx512" */
    uint32_t cpu;              /* what it needs */
};
/* Kernel i of all families, or NULL past the end. */
const struct weft_kernel_info *weft_kernel_at(unsigned i);
/* Is it plain loops, "weft_…__ref"? */
bool weft_kernel_is_plain(const char *name);
/* Below, weft_…_name and weft_…_cpu of a family say after prepare which kernel run uses, and what that one needs of the
 * CPU: WEFT_CPU_*; 0: it is plain loops. */

/* --- types by their number in enum weft_dtype (kernels include no graph header) ----------------------------------- */

enum { WEFT_K_F64 = 1, WEFT_K_F32, WEFT_K_BF16, WEFT_K_F16, WEFT_K_I64, WEFT_K_I32, WEFT_K_I16, WEFT_K_I8,
       WEFT_K_U64, WEFT_K_U32, WEFT_K_U16, WEFT_K_U8, WEFT_K_BOOL, WEFT_K_I4, WEFT_K_U4, WEFT_K_F8E4M3,
       WEFT_K_F8E5M2 };

/* Elements at any address. Files that are mapped care little for alignment; what reads their arrays once, or a row here
 * and there, reads them where they lie, through these, instead of from a copy. */
typedef float weft_loose_f32 __attribute__((aligned(1)));
typedef uint16_t weft_loose_u16 __attribute__((aligned(1)));
typedef uint32_t weft_loose_u32 __attribute__((aligned(1)));
typedef uint64_t weft_loose_u64 __attribute__((aligned(1)));

#define WEFT_K_RANK 8
#define WEFT_K_MAX_IN 3

/* --- strip/map.c: elementwise over strided arrays ----------------------------------------------------------------- */

/* One op over one strip: out[i·s0] = f(a[i·s1], b[i·s2], c[i·s3]) for i in [0, n); strides in elements, 0 allowed for
 * operands. out may be an operand with the same stride, else the arrays do not overlap. */
struct weft_strip_args {
    int64_t n;
    void *out;
    const void *in[WEFT_K_MAX_IN];
    int64_t stride[1 + WEFT_K_MAX_IN]; /* out, then operands */
    double param[2];                   /* alpha, beta or low, high */
};
typedef void (*weft_strip_fn)(const struct weft_strip_args *);
struct weft_strip_kernel {
    const char *op;      /* the op's word in ops.def, with ".form" for a form that is not the default: "gelu.tanh" */
    uint8_t in_dtype, out_dtype; /* of the operands that share a type (select: of operands 1 and 2) and of the result */
    uint32_t cpu;
    const char *name;
    weft_strip_fn fn;
};
/* The best kernel for op and dtypes within `cpu`, or NULL. */
const struct weft_strip_kernel *weft_strip_find(const char *op, int in_dtype, int out_dtype, uint32_t cpu);
/* Nanoseconds that an element takes one thread besides loading and storing it; 0 for a few instructions. */
double weft_strip_ns(const struct weft_strip_kernel *kernel);

struct weft_map {
    const struct weft_strip_kernel *kernel;
    int32_t inputs, rank;
    int64_t extent[WEFT_K_RANK];
    int64_t stride[1 + WEFT_K_MAX_IN][WEFT_K_RANK]; /* elements: result first */
    int32_t bytes[1 + WEFT_K_MAX_IN];               /* element sizes */
    double param[2];
    /* set by prepare */
    int32_t parts;    /* at most so many parts are worth it */
    /* Of an innermost axis that was joined from short rows (strip/map_joined.c): elements of a row, and of a piece of
     * it within which strides are even; 0: it was not. As bits by array: whose rows begin again; whose have gaps. */
    int32_t period, piece;
    uint32_t again, gapped;
    int64_t row[1 + WEFT_K_MAX_IN], within[1 + WEFT_K_MAX_IN][2]; /* strides from row to row, piece to piece, in one */
};
/* Merges axes that are contiguous in all arrays, puts the axis with the best strides innermost, sets parts (1 for small
 * work). */
void weft_map_prepare(struct weft_map *map, int workers);
void weft_map_run(const struct weft_map *map, void *out, const void *const *in, int part, int parts);
/* Nanoseconds of one thread for what a prepared map takes besides arithmetic and memory: a call a row. */
double weft_map_overhead_ns(const struct weft_map *map);

/* --- strip/reduce.c: sums, means, products, extremes -------------------------------------------------------------- */

enum weft_reduce_op { WEFT_K_SUM, WEFT_K_MEAN, WEFT_K_PROD, WEFT_K_MAX, WEFT_K_MIN };
/* Any dtypes but a float to an integer: floats up to 32 bits are added up in f32, f64 in f64, integers and bool in 64
 * bits that wrap; a maximum of bools says whether one is true, a minimum whether all are. One fixed order of virtual
 * lanes, whatever the vector width and the number of parts. NaN operands give NaN. `kept` axes run over results,
 * `reduced` axes over terms; each of them at most WEFT_K_RANK - 1. */
struct weft_reduce {
    enum weft_reduce_op op;
    uint8_t in_dtype, out_dtype;
    uint32_t cpu;
    int32_t kept, reduced;
    int64_t kept_extent[WEFT_K_RANK], reduced_extent[WEFT_K_RANK];
    int64_t in_kept[WEFT_K_RANK], in_reduced[WEFT_K_RANK], out_stride[WEFT_K_RANK]; /* elements */
    /* set by prepare */
    int32_t parts, slice_axis;
    int64_t slices, divisor;
    size_t shared; /* bytes that all parts share, or 0 */
};
bool weft_reduce_supports(int in_dtype, int out_dtype, uint32_t cpu);
void weft_reduce_prepare(struct weft_reduce *reduce, int workers);
/* `shared` is zero before the first part runs, at least in its first 64 bytes, and those are zero again after the last;
 * each part runs once. */
void weft_reduce_run(const struct weft_reduce *reduce, void *out, const void *in, void *shared, int part, int parts);
const char *weft_reduce_name(const struct weft_reduce *reduce);
uint32_t weft_reduce_cpu(const struct weft_reduce *reduce);
/* For those who price it, after prepare: how many results it has side by side in vectors of so many lanes; 0: terms lie
 * side by side, or are gathered. */
int64_t weft_reduce_columns(const struct weft_reduce *reduce, int64_t *ret_lanes);

/* --- along/along.c: along one axis -------------------------------------------------------------------------------- */

enum weft_along_op {
    WEFT_K_ARG_MAX, WEFT_K_ARG_MIN, WEFT_K_CUMSUM, WEFT_K_CUMPROD, WEFT_K_CUMMAX, WEFT_K_CUMMIN, WEFT_K_SORT
};
/* f32, i32, and but for sorting all floats and integers of 16 bits and more, and integers of 8. The other axes are in
 * `extent`. arg: `out` are int64_t indices; a NaN beats all. Scans add up in f64 or in 64 bits that wrap. sort: the
 * first k of n values in order, a NaN being the largest, with their indices; n is less than 2^32.
 *
 * Few long lines of a scan are cut into chunks, as long as follows from the shape (`split`). An element is what the
 * chunks before its own come to, combined with what its own does up to it; where floats leave the range that way, the
 * chunk goes one by one. */
struct weft_along {
    enum weft_along_op op;
    uint8_t dtype;
    bool last;                /* arg: of equal elements the last */
    bool exclusive, reverse;  /* scan */
    bool split;               /* scan: may be cut into chunks */
    bool descending, by_index; /* sort; by_index: what is chosen stays in the order of its indices */
    uint32_t cpu;
    int32_t rank;
    int64_t n, k, in_step, out_step, index_step; /* along the axis, elements */
    int64_t extent[WEFT_K_RANK], in_stride[WEFT_K_RANK], out_stride[WEFT_K_RANK], index_stride[WEFT_K_RANK];
    size_t cache;             /* bytes of the last cache: larger results of scans are stored past it */
    int32_t parts;            /* set by prepare */
    bool past;                /* set by prepare */
    size_t scratch;           /* set by prepare: bytes for each part */
    int64_t chunks, chunk;    /* set by prepare: of a line; elements of each but the last */
    size_t shared;            /* set by prepare: bytes that all parts share where there are several chunks, or 0; zero
                                 before the first part begins, and zero again when the last ends */
};
bool weft_along_supports(enum weft_along_op op, int dtype);
/* Are so many lines of n elements cut into chunks? Those of products of floats never are. */
bool weft_along_cuts(int64_t lines, int64_t n);
void weft_along_prepare(struct weft_along *along, int workers);
/* `index` is for sort, and may be NULL there. `memory`: scratch of this part; of a scan in chunks, what is shared. */
void weft_along_run(const struct weft_along *along, void *out, int64_t *index, const void *in, void *memory, int part,
                    int parts);
const char *weft_along_name(const struct weft_along *along);
uint32_t weft_along_cpu(const struct weft_along *along);

/* --- plain/plain.h: ops without a family of their own, for every dtype of whole bytes ----------------------------- */

#define WEFT_PLAIN_IN 5
#define WEFT_PLAIN_OUT 4
#define WEFT_PLAIN_ATTRS 9
#define WEFT_PLAIN_LIST 16

struct weft_array {
    int32_t dtype, rank;
    int64_t extent[WEFT_K_RANK], stride[WEFT_K_RANK]; /* elements */
};
/* An attribute of the op; a word is its place in the op's list of words. */
struct weft_plain_attr {
    bool given;              /* or there is a default */
    int32_t count;           /* of a list; else 1 */
    int64_t integer[WEFT_PLAIN_LIST];
    double real;
};
/* One op call. Results and operands in the op's order, attributes in that of ops.def. */
struct weft_plain {
    const struct weft_plain_kernel *kernel;
    int32_t ins, outs;
    struct weft_array in[WEFT_PLAIN_IN], out[WEFT_PLAIN_OUT];
    struct weft_plain_attr attr[WEFT_PLAIN_ATTRS];
    int64_t units;           /* set by prepare: results are computed in so many independent pieces */
    int32_t parts;           /* set by prepare */
    size_t scratch;          /* set by prepare: bytes for each part */
};
struct weft_plain_data {
    const void *in[WEFT_PLAIN_IN];
    void *out[WEFT_PLAIN_OUT];
    void *scratch;
};
/* The kernel of an op (by its word in ops.def) for an operand 0 (or result 0 of ops without one) of this dtype, or
 * NULL. */
const struct weft_plain_kernel *weft_plain_find(const char *op, int dtype);
const char *weft_plain_name(const struct weft_plain_kernel *kernel);
void weft_plain_prepare(struct weft_plain *plain, int workers);
void weft_plain_run(const struct weft_plain *plain, const struct weft_plain_data *data, int part, int parts);
/* Of an op whose results have as many elements as the data says: counts them, a number for each size. */
void weft_plain_count(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t *counts);

/* --- strip/pool.c: windows ---------------------------------------------------------------------------------------- */

/* f32. Arrays are [n, c, spatial…] logically, any strides. Padding never wins a maximum and counts in a mean only with
 * count_pad. */
enum { WEFT_POOL_INSIDE = 4 }; /* channels from which on vectors go along them, where they lie side by side */
struct weft_pool {
    bool mean, count_pad;
    uint32_t cpu;
    int32_t spatial; /* 1 to 3 */
    int64_t n, c, in_extent[3], out_extent[3], kernel[3], stride[3], dilation[3], pad[3], pad_after[3];
    int64_t in_stride[5], out_stride[5]; /* n, c, spatial… in elements */
    int32_t parts;
};
void weft_pool_prepare(struct weft_pool *pool, int workers);
void weft_pool_run(const struct weft_pool *pool, float *out, const float *in, int part, int parts);
const char *weft_pool_name(const struct weft_pool *pool);
uint32_t weft_pool_cpu(const struct weft_pool *pool);

/* --- relayout/relayout.c: copies between strided arrays ----------------------------------------------------------- */

/* out[i…] = in[i…] for elements of 1, 2, 4 or 8 bytes; in strides may be 0 or negative. Arrays do not overlap. */
struct weft_copy {
    int32_t bytes, rank;
    uint32_t cpu;
    size_t cache; /* bytes of the last cache, beside which a result counts as large; 0: not known */
    int64_t extent[WEFT_K_RANK], out_stride[WEFT_K_RANK], in_stride[WEFT_K_RANK]; /* elements */
    /* set by prepare, which also merges axes and may join elements that stay neighbours */
    uint8_t form, stream;
    int32_t parts;
};
void weft_copy_prepare(struct weft_copy *copy, int workers);
void weft_copy_run(const struct weft_copy *copy, void *out, const void *in, int part, int parts);
const char *weft_copy_name(const struct weft_copy *copy);
uint32_t weft_copy_cpu(const struct weft_copy *copy);

/* --- places/places.c: elements that follow from their places ------------------------------------------------------ */

/* out[i…] = the index along one axis, in a numeric type; integers wrap. */
struct weft_iota {
    uint8_t dtype; /* WEFT_K_* */
    int32_t rank, axis;
    int64_t extent[WEFT_K_RANK], out_stride[WEFT_K_RANK]; /* elements */
    /* set by prepare, which also sorts and merges axes */
    int64_t elements, count[WEFT_K_RANK]; /* count: by how much numbers grow along each axis */
    int32_t parts;
};
bool weft_iota_supports(int dtype);
void weft_iota_prepare(struct weft_iota *iota, int workers);
void weft_iota_run(const struct weft_iota *iota, void *out, int part, int parts);

/* out[…, i, j] = in[…, i, j] where j - i <= diagonal, or with `upper` >=; else 0. Elements of 1, 2, 4 or 8 bytes; rank
 * at least 2. */
struct weft_triangle {
    bool upper, along_rows; /* set by prepare: lines go along axis i */
    int32_t bytes, rank;
    int64_t diagonal;
    int64_t extent[WEFT_K_RANK], out_stride[WEFT_K_RANK], in_stride[WEFT_K_RANK]; /* elements */
    int64_t lines;          /* set by prepare */
    int32_t parts;
};
void weft_triangle_prepare(struct weft_triangle *triangle, int workers);
void weft_triangle_run(const struct weft_triangle *triangle, void *out, const void *in, int part, int parts);
const char *weft_places_name(bool triangle);

/* --- gather/gather.h: copies whose places come from indices ------------------------------------------------------- */

/* What a scatter does with what is there, in the order of the words of its attribute. */
enum { WEFT_COMBINE_REPLACE, WEFT_COMBINE_ADD, WEFT_COMBINE_MULTIPLY, WEFT_COMBINE_LEAST, WEFT_COMBINE_GREATEST };

/* Outer axes run over the indices, inner axes over the block that each moves. A gather reads the indexed array and
 * writes the plain one, a scatter the other way round. An index is `numbers` numbers, each in [0, limit) once negative
 * ones count from the end (`from_end`); outside, gathers (and scatters with `clamp`) take the nearest place, scatters
 * leave the block out. Strides in elements. */
struct weft_gather {
    uint32_t cpu;
    bool scatter, from_end, clamp;
    bool by_place;           /* set by prepare */
    uint8_t combine;         /* WEFT_COMBINE_*, of f32 but to replace: what a scatter brings, with what is there */
    uint8_t index_dtype;     /* WEFT_K_* */
    int32_t bytes, outer, inner, numbers;
    int64_t extent[WEFT_K_RANK], plain[WEFT_K_RANK], indexed[WEFT_K_RANK], index[WEFT_K_RANK];
    int64_t block[WEFT_K_RANK], plain_block[WEFT_K_RANK], indexed_block[WEFT_K_RANK];
    int64_t limit[WEFT_K_RANK], step[WEFT_K_RANK], number_stride;
    /* set by prepare, which also orders and merges outer axes where it goes by place */
    int32_t shared;          /* of these, how many do not move in the indices: those before the last */
    int32_t split, parts;    /* the axis that parts of a scatter share out; -1: none, or the numbers of the index */
};
void weft_gather_prepare(struct weft_gather *gather, int workers);
void weft_gather_run(const struct weft_gather *gather, void *out, const void *in, const void *index, int part,
                     int parts);
const char *weft_gather_name(const struct weft_gather *gather);
uint32_t weft_gather_cpu(const struct weft_gather *gather);

/* out[i, j, …] = in[table 0 at i + table 1 at j + …]: paddings and resizes that repeat elements. At least one axis. */
struct weft_table {
    uint32_t cpu;
    bool spans;              /* the innermost axis comes as spans, not as a table */
    int32_t bytes, rank;
    int64_t extent[WEFT_K_RANK], out_stride[WEFT_K_RANK];
    int32_t order[WEFT_K_RANK], parts; /* set by prepare: axes, the innermost last */
};
/* `count` results, the first of which stands at `place` in the operand and the others `step` apart; elements. */
struct weft_table_span {
    int64_t place, step, count;
};
void weft_table_prepare(struct weft_table *table, int workers);
/* A table for each axis, in the descriptor's order, premultiplied with the operand's stride; or for order[rank - 1]
 * spans, which together have its extent. */
void weft_table_run(const struct weft_table *table, void *out, const void *in, const int64_t *const *places,
                    const struct weft_table_span *span, int part, int parts);
const char *weft_table_name(const struct weft_table *table);
uint32_t weft_table_cpu(const struct weft_table *table);

/* --- resize/resize.h: weighted sums along two axes, f32 ----------------------------------------------------------- */

/* Of each result along an axis: how many elements it is made of, where they are, and their weights. */
struct weft_blend_table {
    int64_t taps;            /* room for each result */
    const int32_t *count;    /* 1 to taps */
    const int64_t *place;    /* rows: elements from the first row; columns: elements of a blended row */
    const float *weight;
};
struct weft_blend {
    uint32_t cpu;
    int32_t outer;           /* axes that are only walked over */
    int64_t extent[WEFT_K_RANK], out_stride[WEFT_K_RANK], in_stride[WEFT_K_RANK];
    int64_t rows, columns, in_columns; /* of the result; of the operand */
    int64_t row_out, column_out, column_in; /* strides */
    int64_t inner;           /* elements that are neighbours in both arrays: channels; or 1 */
    int32_t parts;           /* set by prepare */
    size_t scratch;          /* set by prepare: bytes each part needs */
};
void weft_blend_prepare(struct weft_blend *blend, int workers);
void weft_blend_run(const struct weft_blend *blend, float *out, const float *in, const struct weft_blend_table *rows,
                    const struct weft_blend_table *columns, void *scratch, int part, int parts);
const char *weft_blend_name(const struct weft_blend *blend);
uint32_t weft_blend_cpu(const struct weft_blend *blend);

/* --- sample/sample.h: images read between their elements, f32 ----------------------------------------------------- */

/* out[n, c, p, q] = in[n, c] at the place that grid[n, p, q] names: the element nearest to it, or a weighed sum of the
 * four around it. Rows come before columns, but in the grid, whose last axis has the column first. Strides are in
 * elements. */
struct weft_sample {
    uint32_t cpu;
    bool nearest, corners;   /* coordinates -1 and 1: the centres of the outer elements, or their edges */
    int32_t border;          /* enum weft_k_border (plain/shared.h) */
    int64_t images, channels, extent[2], points[2];
    int64_t in_image, in_channel, in[2];
    int64_t grid_image, grid[2], grid_axis;
    int64_t out_image, out_channel, out_point[2];
    int32_t parts;           /* set by prepare, which also merges rows of points */
};
void weft_sample_prepare(struct weft_sample *sample, int workers);
void weft_sample_run(const struct weft_sample *sample, float *out, const float *in, const float *grid, int part,
                     int parts);
/* Are channels neighbours in both images, so that vectors go along them? Else vectors are of points. */
bool weft_sample_by_pixel(const struct weft_sample *sample);
const char *weft_sample_name(const struct weft_sample *sample);
uint32_t weft_sample_cpu(const struct weft_sample *sample);

/* --- grad_weight/grad_weight.h: the gradient of a convolution's weights, f32 -------------------------------------- */

/* dw[o, c, t…] = sum over n, p… of dy[n, o, p…] · x[n, c, p·stride + t·dilation − pad…], where x is 0 outside of its
 * extents. Axes are depth, rows and columns; those that are missing have extents of 1. Strides are in elements: of x
 * and dy [n, channels, depth, row, column], of dw [o, c, depth, row, column]. */
struct weft_grad_weight {
    uint32_t cpu;
    int64_t images, groups, c, o; /* channels of x and of dy in a group */
    int64_t in[3], out[3], taps[3], stride[3], dilation[3], pad[3];
    int64_t x_stride[5], dy_stride[5], dw_stride[5];
    bool winograd_permitted; /* which may make NaN of Inf (grad_weight/grad_winograd.h) */
    bool winograd;           /* set by prepare: is it used? By sizes alone. */
    int64_t units;           /* set by prepare: of work that a part does at once */
    int64_t c_blocks, o_blocks; /* set by prepare, with Winograd's transform: pieces of a group's channels */
    int32_t parts;           /* set by prepare */
    size_t scratch;          /* set by prepare: bytes each part needs */
    size_t shared;           /* set by prepare: bytes that all parts share, or 0 */
};
void weft_grad_weight_prepare(struct weft_grad_weight *grad, int workers);
/* `shared` is zero in its first 64 bytes before the first part runs, and after the last. */
void weft_grad_weight_run(const struct weft_grad_weight *grad, float *dw, const float *x, const float *dy,
                          void *scratch, void *shared, int part, int parts);
/* Multiply-adds, those of lanes without a result included; or those in whose time Winograd's transform does it. */
double weft_grad_weight_products(const struct weft_grad_weight *grad);
const char *weft_grad_weight_name(const struct weft_grad_weight *grad);
uint32_t weft_grad_weight_cpu(const struct weft_grad_weight *grad);

/* --- plain/weigh.c: weighted sums along all axes, of any type ----------------------------------------------------- */

/* Of each result along an axis: the places of its elements, premultiplied with the stride, their weights, and whether
 * it lies inside. */
struct weft_weigh_table {
    int64_t taps;
    const int64_t *place;
    const double *weight;
    const bool *inside;
};
struct weft_weigh {
    uint8_t dtype;
    bool nearest;            /* one element each, copied */
    int32_t rank;
    int64_t extent[WEFT_K_RANK], out_stride[WEFT_K_RANK];
    double fill;             /* of results that lie outside */
    int64_t units;           /* set by prepare */
    int32_t parts;
};
void weft_weigh_prepare(struct weft_weigh *weigh, int workers);
void weft_weigh_run(const struct weft_weigh *weigh, void *out, const void *in, const struct weft_weigh_table *tables,
                    int part, int parts);

/* --- products and convolutions ------------------------------------------------------------------------------------ */

#include "kernels/contraction.h"

#endif
