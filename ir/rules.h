/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h: the infer rules that rows of ops.def name. Included by the files that define them and by ops.c.
 * Several ops share a rule, so a prototype repeats. */
#ifndef WEFT_RULES_H
#define WEFT_RULES_H

#include "ir/ir.h"

#define OP(name, min, max, results, traits, infer, index, walked, ...) bool weft_infer_##infer(struct weft_infer *);
#include "ir/ops.def"
#undef OP

#endif
