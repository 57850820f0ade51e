/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h: what the rules of ops share: elements as numbers of 64 bits, attributes, scratch memory, lines, orders. */
#ifndef WEFT_RULE_H
#define WEFT_RULE_H

#include "eval/eval.h"

/* A rule for each row of ops.def, called as the op. One that is missing does not link. */
#define OP(name, min, max, results, traits, infer, index, walked, ...) void weft_eval_##name(struct weft_eval *);
#include "ir/ops.def"
#undef OP

/* One element in the arithmetic of its family: double for floats, which is exact for all but f64's own rounding; for
 * integers and bool the low 64 bits, whose wrap-around is right for every width. */
union weft_number {
    double real;
    int64_t integer;
    uint64_t bits;
};

/* Elements are handled in strips of this many. */
#define WEFT_EVAL_STRIP 128

/* n elements at place, place + step, …; data may be unaligned. Storing rounds once, or wraps. */
void weft_eval_load(const struct weft_tensor *tensor, int64_t place, int64_t step, int64_t n, union weft_number *ret);
void weft_eval_store(const struct weft_tensor *tensor, int64_t place, int64_t step, int64_t n,
                     const union weft_number *number);

/* Scratch memory: on refusal sets eval->failed and returns NULL. */
void *weft_eval_scratch(struct weft_eval *eval, int64_t count, size_t element);
void weft_eval_drop(struct weft_eval *eval, void *memory, int64_t count, size_t element);
/* All elements of a tensor, row-major; to be dropped with weft_eval_drop_numbers. */
union weft_number *weft_eval_numbers(struct weft_eval *eval, const struct weft_tensor *tensor);
void weft_eval_drop_numbers(struct weft_eval *eval, union weft_number *numbers, int64_t count);
void weft_eval_store_all(const struct weft_tensor *tensor, const union weft_number *number);

/* The order of two numbers of a dtype; false where one is NaN. */
static inline bool weft_eval_less(int dtype, union weft_number a, union weft_number b)
{
    return weft_dtype_is_float(dtype) ? a.real < b.real
           : dtype == WEFT_U64        ? a.bits < b.bits
                                      : a.integer < b.integer;
}

/* What adds up terms, in sums, extremes and the like (fold.def): what a sum over nothing is, and how n numbers x are
 * added one after the other, each to the next of sum, sum + step, …. */
struct weft_fold {
    union weft_number (*neutral)(int dtype);
    void (*add)(int dtype, int64_t n, const union weft_number *x, union weft_number *sum, int64_t step);
};
extern const struct weft_fold weft_fold_sum, weft_fold_prod, weft_fold_reduce_max, weft_fold_reduce_min;

/* Calls rule(eval, place, user) for each line along `axis` of up to WEFT_WALK_TENSORS tensors of one rank, whose other
 * extents are equal; place[t] is where the line of tensor t begins (eval/scan.c). */
typedef void weft_line_rule(struct weft_eval *eval, const int64_t *place, void *user);
void weft_eval_lines(struct weft_eval *eval, int axis, int tensors, const struct weft_tensor *const *tensor,
                     weft_line_rule *rule, void *user);

static inline int weft_eval_op(const struct weft_eval *eval) { return weft_opcode_of(eval->graph, eval->node); }
/* Attributes with the values of the symbols put in. */
int64_t weft_eval_int(const struct weft_eval *eval, int key);
int64_t weft_eval_at(const struct weft_eval *eval, int key, unsigned i);
bool weft_eval_word_is(const struct weft_eval *eval, int key, const char *word);

/* Rules that count how much a data-dependent op will find: counts[i] is the value of the symbol extent[i]; zero before.
 */
typedef void weft_extents_fn(struct weft_eval *eval, int64_t *counts);
weft_extents_fn weft_extents_nonzero, weft_extents_compress, weft_extents_unique, weft_extents_nms;
/* Order of n rows of `width` numbers each, by their first difference; a NaN is larger than every number and equal to
 * another one. Equal rows stay as they stand. `order` gets their indices; it and `scratch` have room for n
 * (eval/sort.c). */
struct weft_rows {
    int dtype;
    int64_t n, width;
    const union weft_number *number;
};
int weft_eval_compare_rows(const struct weft_rows *rows, int64_t a, int64_t b); /* < 0, 0, > 0 */
void weft_eval_order(const struct weft_rows *rows, bool descending, int64_t *order, int64_t *scratch);
#endif
