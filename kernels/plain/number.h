/* SPDX-License-Identifier: Apache-2.0 */
/* number.h: elements of any dtype of whole bytes as numbers of 64 bits.
 *
 * Floats are doubles, integers and bool their low 64 bits, whose wrap-around is right for every width. Storing rounds
 * once, or wraps. So a kernel that is written for numbers is right for all types, and gives the reference evaluator's
 * bits where it computes in the same order. */
#ifndef WEFT_NUMBER_H
#define WEFT_NUMBER_H

#include "kernels/kernels.h"

union weft_k_number {
    double real;
    int64_t integer;
    uint64_t bits;
};

static inline bool weft_k_is_float(int dtype)
{
    return (dtype >= WEFT_K_F64 && dtype <= WEFT_K_F16) || dtype >= WEFT_K_F8E4M3;
}
static inline bool weft_k_is_signed(int dtype) { return dtype >= WEFT_K_I64 && dtype <= WEFT_K_I8; }
/* Bytes of an element; 0 for types smaller than a byte. */
int64_t weft_k_bytes(int dtype);

/* n elements at place, place + step, … */
void weft_k_load(int dtype, const void *data, int64_t place, int64_t step, int64_t n, union weft_k_number *ret);
void weft_k_store(int dtype, void *data, int64_t place, int64_t step, int64_t n, const union weft_k_number *number);

static inline union weft_k_number weft_k_at(int dtype, const void *data, int64_t place)
{
    union weft_k_number x;
    weft_k_load(dtype, data, place, 0, 1, &x);
    return x;
}
static inline void weft_k_put(int dtype, void *data, int64_t place, union weft_k_number x)
{
    weft_k_store(dtype, data, place, 0, 1, &x);
}
/* An integer or bool that says where or how many; what is larger than i64 is the largest. */
static inline int64_t weft_k_index(int dtype, const void *data, int64_t place)
{
    const int64_t i = weft_k_at(dtype, data, place).integer;
    return dtype == WEFT_K_U64 && i < 0 ? INT64_MAX : i;
}
/* Copies one element. */
void weft_k_move(int64_t bytes, void *to, int64_t to_place, const void *from, int64_t from_place);

static inline bool weft_k_is_nan(int dtype, union weft_k_number x)
{
    return weft_k_is_float(dtype) && x.real != x.real;
}
/* False where one is a NaN. */
static inline bool weft_k_less(int dtype, union weft_k_number a, union weft_k_number b)
{
    return weft_k_is_float(dtype) ? a.real < b.real : dtype == WEFT_K_U64 ? a.bits < b.bits : a.integer < b.integer;
}

#endif
