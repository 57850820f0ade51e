/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h: allocation domains: how a value of some shape is stored (layout.c, layout_*.c). */
#ifndef WEFT_LAYOUT_H
#define WEFT_LAYOUT_H

#include "ir/dims.h"

/* One storage axis: digit (index[axis] / div) % mod of a logical index; mod 0 means no modulus. */
struct weft_axis {
    uint8_t axis;
    int64_t div, mod;
};

enum weft_layout_kind { WEFT_STORED, WEFT_UNDECIDED /* {?} */, WEFT_REGISTER /* {-}: never stored */ };
enum weft_strength { WEFT_REQUIRED, WEFT_HINT, WEFT_FREE };

/* How a value of some rank and extents is stored: storage axes from outermost to innermost, each with a stride in
 * elements, from an offset. `dense` says the strides are those of a packed array in this order (with the padding that
 * splits imply); else `stride` holds them. Every logical axis is covered by its digits exactly once: sorted by div, the
 * last has div 1, each but the first has mod = div of its predecessor / own div, the first has none. */
struct weft_layout {
    uint8_t kind, strength;
    uint8_t axes;
    bool dense;
    uint32_t align;             /* bytes the first element is known to be aligned to; 0: unknown (element size) */
    weft_dim offset;            /* in elements, from the start of the storage */
    struct weft_axis axis[WEFT_MAX_STORAGE];
    weft_dim stride[WEFT_MAX_STORAGE];
};

struct weft_type {
    uint8_t dtype, rank;
    weft_dim extent[WEFT_MAX_RANK];
};

struct weft_layout weft_layout_row_major(int rank);
extern const struct weft_layout weft_layout_rows[WEFT_MAX_RANK + 1]; /* row-major, by rank */
struct weft_layout weft_layout_order(int rank, const int *order); /* dense, outermost first */
bool weft_layout_is_row_major(const struct weft_layout *layout); /* dense, natural order, no offset, no split */
/* Breaks the rule of coverage? Then a constant message, else NULL. */
const char *weft_layout_check(const struct weft_layout *layout, const struct weft_type *type);
/* Do two elements surely share a place, for some or all values of the symbols? A stride of 0 along an axis that may be
 * longer than 1 counts, and a stride that is no larger than what the smaller ones reach; strides with symbols are not
 * judged. Such a layout is for what is only read. */
bool weft_layout_overlaps(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type);
/* Canonical form: axes of extent 1 right behind their logical predecessor, neighbouring digits of one axis merged,
 * numeric strides sorted, explicit strides that equal the dense ones turned to dense. */
void weft_layout_canonical(struct weft_dims *dims, struct weft_layout *layout, const struct weft_type *type);
bool weft_layout_same(const struct weft_layout *a, const struct weft_layout *b); /* of canonical layouts: same places */
/* Same places for every element, ignoring axes of extent 1; strength and align do not count. */
bool weft_layout_equal(struct weft_dims *dims, const struct weft_layout *a, const struct weft_layout *b,
                       const struct weft_type *type);
weft_dim weft_layout_axis_extent(struct weft_dims *dims, const struct weft_layout *layout, int storage_axis,
                                 const struct weft_type *type);
void weft_layout_strides(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                         weft_dim *ret_stride); /* explicit or dense, one per storage axis */
/* The logical strides, if every axis has one: no split, or one that strides go through evenly. */
bool weft_layout_logical_strides(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                                 weft_dim *ret_stride);
/* Place of an element, in elements from the start of the storage. All extents and strides constant. */
int64_t weft_layout_place(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                          const int64_t *index);
weft_dim weft_layout_elements(struct weft_dims *dims, const struct weft_layout *layout,
                              const struct weft_type *type); /* elements of storage, padding included, from offset on */
/* The layout of the result of a view op whose operand is stored in `operand`: false where no strided layout of the
 * result addresses the same storage. transpose: result axis i is operand axis perm[i]. broadcast: operand axis i is
 * result axis result_axis[i]; of one whose only element is repeated, that may be -1. */
bool weft_layout_transpose(const struct weft_layout *operand, const int *perm, struct weft_layout *ret);
bool weft_layout_reshape(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                         const struct weft_type *to, struct weft_layout *ret);
bool weft_layout_slice(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                       const weft_dim *start, const weft_dim *step, struct weft_layout *ret);
bool weft_layout_broadcast(struct weft_dims *dims, const struct weft_layout *operand, const struct weft_type *from,
                           const struct weft_type *to, const int *result_axis, struct weft_layout *ret);
/* The layout b for which transpose(b, perm) is `result`. */
bool weft_layout_untranspose(const struct weft_layout *result, const int *perm, struct weft_layout *ret);
enum weft_conversion { WEFT_CONVERT_NONE, WEFT_CONVERT_RUNS, WEFT_CONVERT_TRANSPOSE, WEFT_CONVERT_GENERAL };
/* What it takes to copy a value from layout a to b. All elements move in runs of *ret_run that are contiguous in
 * both. */
enum weft_conversion weft_layout_conversion(struct weft_dims *dims, const struct weft_layout *a,
                                            const struct weft_layout *b, const struct weft_type *type,
                                            int64_t *ret_run);
/* Elements that are neighbours in memory when walked from the innermost storage axis outwards; the padding of splits
 * counts as elements, symbols count with their hints. */
int64_t weft_layout_run(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type);
/* Largest power of two k, at most `limit`, such that each aligned block of k elements along the innermost storage
 * axis is k neighbours at a multiple of k elements, given the alignment of the storage. */
int64_t weft_layout_vector_width(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                                 int dtype, int64_t limit);
void weft_layout_print(struct weft_dims *dims, const struct weft_layout *layout,
                       struct weft_text *text); /* "{0 2 3 1}" */
/* Parses at '{'; as weft_dim_parse. */
bool weft_layout_parse(struct weft_dims *dims, const char **cursor, const char *end, struct weft_layout *ret,
                       const char **ret_message);

#endif
