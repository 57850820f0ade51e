/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h: what ops.def and attrs.def say about ops and their attributes (ops.c). */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include "ir/base.h"

enum weft_attr_key {
    WEFT_ATTR_NONE,
#define ATTR(name, kind, help) WEFT_ATTR_##name,
#include "attrs.def"
#undef ATTR
    WEFT_ATTR_COUNT
};
enum weft_attr_kind {
    WEFT_ATTR_INT, WEFT_ATTR_INTS, WEFT_ATTR_REAL, WEFT_ATTR_REALS, WEFT_ATTR_WORD, WEFT_ATTR_DTYPE, WEFT_ATTR_GRAPH,
    WEFT_ATTR_VALUES /* named, of any kind: values.h */
};
enum weft_opcode {
    WEFT_OP_NONE,
#define OP(name, min, max, results, traits, infer, index, walked, ...) WEFT_OP_##name,
#include "ops.def"
#undef OP
    WEFT_OP_COUNT
};
enum weft_trait {
    WEFT_ELEMENTWISE = 1 << 0,  /* result element i depends on operand elements i only; shapes are equal */
    WEFT_VIEW = 1 << 1,         /* rearranges without computing: may be an alias */
    WEFT_REDUCTION = 1 << 2,
    WEFT_CONTRACTION = 1 << 3,
    WEFT_MOVEMENT = 1 << 4,     /* copies elements about; values are not computed */
    WEFT_COMPOSITE = 1 << 5,    /* has a decomposition into other ops */
    WEFT_COMMUTATIVE = 1 << 6,  /* operands 0 and 1 may be swapped */
    WEFT_STATED = 1 << 7,       /* the result type is part of the node, not inferred from the operands */
    WEFT_SOURCE = 1 << 8,       /* no operands: constants */
    WEFT_CONTROL = 1 << 9,      /* has bodies */
    WEFT_PLACEMENT = 1 << 10,   /* identity on values, says where they live: relayout */
    WEFT_DATA = 1 << 11,        /* defines the symbols that its attribute `extent` names, from the operands' elements */
    WEFT_RANDOM = 1 << 12,      /* a function of its seed and of places: other programs get other numbers */
    WEFT_OPAQUE = 1 << 13,      /* a function of the caller's: never computed while compiling */
    WEFT_SCAN = 1 << 14,        /* along an axis an element depends on those before it, or behind it (reverse=1) */
    WEFT_BIJECTIVE = 1 << 15,   /* of a view: shows each element of the operand once */
    WEFT_UPDATE = 1 << 16,      /* operand 0, but for elements that the others say */
    WEFT_LINEAR = 1 << 17,      /* takes a time like that of reading the operands and writing the result, as elementwise
                                 * ops, views, movement, scans and sources do */
    WEFT_ROUNDING = 1 << 18,    /* gives a whole number next to the operand's element: of a whole one, itself */
    WEFT_UNSIGNED_ZERO = 1 << 19, /* gives no -0, whatever it is given */
    WEFT_EXACT = 1 << 20,       /* gives elements of operands, at most with another sign, or 0: nothing is rounded */
    WEFT_RECURRENT = 1 << 21,   /* goes through the times of operand 0, with states */
};

struct weft_attr_spec {
    uint8_t key;
    bool required;
    bool has_default;    /* an attribute equal to it (all elements, for a list) is dropped when a node is made */
    double fallback;     /* the default */
    const char *words;   /* legal words, separated by blanks */
    const char *word;    /* the first of them, which is the default */
};
struct weft_infer;
struct weft_indexing;
struct weft_op_info {
    const char *name;
    int8_t min_operands, max_operands; /* max -1: any number */
    int8_t results;                    /* -1: as many as the bodies return, or the function has */
    int8_t walked;                     /* operands that kernels walk in any order of axes, from the first on; -1: all */
    uint32_t traits;
    bool (*infer)(struct weft_infer *);
    void (*index)(struct weft_indexing *);
    const struct weft_attr_spec *attrs; /* in the order of printing; ends with key NONE */
};
extern const struct weft_op_info weft_ops[WEFT_OP_COUNT];
extern const char *const weft_attr_names[WEFT_ATTR_COUNT];
extern const uint8_t weft_attr_kinds[WEFT_ATTR_COUNT];
int weft_opcode_find(const char *name, size_t length);    /* 0 if unknown */
int weft_attr_key_find(const char *name, size_t length);  /* 0 if unknown */
const struct weft_attr_spec *weft_attr_spec_find(int opcode, int key); /* NULL if the op has no such attribute */

/* A mask of attention from here down takes the place of the score, whatever that is: NaN and +inf are hidden too.
 * Adding any score that a model has to it would change nothing. */
#define WEFT_HIDING_MASK (-1e30)

#endif
