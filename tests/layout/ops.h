/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h: what the files that add ops to a graph share (ops.c, ops_product.c). */
#ifndef WEFT_LAYOUT_CASES_OPS_H
#define WEFT_LAYOUT_CASES_OPS_H

#include "layout_cases.h"

/* One op on its way into the graph. */
struct adding {
    struct build *b;
    const json_t *json;
    const char *op;                  /* weft's word, where there is one */
    struct case_value operand[MOST_PORTS];
    size_t operands;
    const char *result[MOST_PORTS];
    size_t results;
};

/* The result's extents are given; weft is told them where `stated`. */
bool add_node(struct build *b, const char *op, const weft_val *operand, size_t operands,
                     const struct weft_attribute *attribute, size_t attributes, bool stated, struct case_value *result);
/* A list of integers as an attribute; `room` holds them. */
struct weft_attribute list_of(const char *name, const int64_t *number, int count, weft_dim *room);
/* Makes a value known by its name, which must be new. */
bool keep(struct build *b, const struct case_value *v);
int64_t integer_of(const json_t *json, const char *key);
bool reshape(struct build *b, const struct case_value *x, struct case_value *y);
/* Extents to which both can be broadcast. */
void spread_extents(struct shape *to, const struct shape *more);
/* The value itself, if it has these extents, or broadcast to them. */
bool spread(struct build *b, const struct case_value *x, const struct shape *to, struct case_value *y);
/* An elementwise node on any operands. */
bool combine(struct build *b, const char *op, const struct case_value *operand, size_t operands, int dtype,
                    struct case_value *y);
bool splat(struct build *b, int dtype, double value, struct case_value *y);
bool reduce(struct build *b, const char *op, const struct case_value *x, const int64_t *axis, int axes,
                   bool keepdims, struct case_value *y);

/* --- ops_product.c ------------------------------------------------------------------------------------------------ */

bool add_matmul(struct adding *a);
bool add_linear(struct adding *a);
bool add_attention(struct adding *a);

#endif
