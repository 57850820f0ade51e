/* SPDX-License-Identifier: Apache-2.0 */
/* types.h: rows of tables of rules beside the types that inference lets through.
 *
 * The infer rule of each op as a C type, which exists while compiling only. A table whose rows are called like infer
 * rules has one assertion a row: then a row has an expression for every type that reaches the op, and no rule asks. */
#ifndef WEFT_EVAL_TYPES_H
#define WEFT_EVAL_TYPES_H

#include "ir/ops.h"

#define OP(name, min, max, results, traits, infer, index, walked, ...) \
    extern struct weft_types_##infer *weft_types_of_##name;
#include "ir/ops.def"
#undef OP

#define WEFT_ROW_TAKES(op, infer)                                                                                      \
    _Static_assert(_Generic(weft_types_of_##op, struct weft_types_##infer *: 1, default: 0),                           \
                   #op ": this row of the evaluator is not for the types that its rule of inference lets through");

#endif
