/* SPDX-License-Identifier: Apache-2.0 */
/* strip_definition.h: what a strip kernel should compute: the reference evaluator's answer, and how far from it the
 * kernel may be. */
#ifndef WEFT_STRIP_DEFINITION_H
#define WEFT_STRIP_DEFINITION_H

#include "ir/ir.h"
#include "kernels/kernels.h"

enum { STRIP_VARIANTS = 2 };

/* A kernel's op with every set of parameters that is tried. f32 and narrower floats are defined by the evaluator in
 * f64, so that its own rounding does not count; all else in its own types, to the bit. */
struct strip_definition {
    const struct weft_strip_kernel *kernel;
    struct weft_context *context;
    int inputs, dtype[1 + WEFT_K_MAX_IN]; /* result first */
    int wide[1 + WEFT_K_MAX_IN];          /* the same as the evaluator has them */
    double ulps, absolute;                /* the error that f32 may have */
    int variants;
    double param[STRIP_VARIANTS][2];
    struct weft_graph *graph[STRIP_VARIANTS];
};
/* False if the evaluator does not take the op with these types. */
bool strip_definition_open(struct strip_definition *definition, const struct weft_strip_kernel *kernel);
void strip_definition_close(struct strip_definition *definition);

/* n elements of the result, packed, in definition->wide[0]. Operands have any strides. */
void strip_definition_run(const struct strip_definition *definition, int variant, const struct weft_strip_args *args,
                          void *ret);
/* Is element i of the kernel's result what element i of `want` allows? */
bool strip_definition_holds(const struct strip_definition *definition, const void *got, int64_t place, const void *want,
                            int64_t i);

#endif
