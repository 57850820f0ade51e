/* SPDX-License-Identifier: Apache-2.0 */
/* match_attention.h: what stands between the two products of an attention, for fuse_attention. */
#ifndef WEFT_PASSES_MATCH_ATTENTION_H
#define WEFT_PASSES_MATCH_ATTENTION_H

#include "passes/passes.h"

enum { WEFT_ATTENTION_TERMS = 4 };

/* What is added to the scores, or hides some of them. */
struct weft_attention_term {
    weft_val value;      /* the summand, or the condition */
    bool chooses;        /* a condition */
    bool hides;          /* where it is true; else where it is false */
    bool turned;         /* keys by queries */
    double scale;        /* of what is added */
    double hidden;       /* what a hidden score is: -inf, or a number from -1e30 down */
    bool stands_in;      /* the lowest of f32 for that of f16: right only where nothing else is added */
};

/* Weights that are made 0 by a choice; id 0: none. */
struct weft_attention_cleared {
    uint32_t id; /* of the condition */
    bool hides, turned;
};

struct weft_attention_match {
    weft_val q, k, v;
    bool q_turned, k_turned, v_turned; /* [.., width, rows], as the products have them */
    bool turned;                       /* the first product is keys by queries */
    bool result_turned;                /* the second is width by queries */
    weft_val scale;                    /* a factor of the scores, the same along keys; none: NO_VALUE */
    bool scale_divides, scale_turned;
    struct weft_attention_cleared cleared;
    double factor, softcap;            /* of scores; softcap 0: none */
    double weight_factor;              /* of the weights */
    const char *empty;                 /* of attention */
    struct weft_attention_term term[WEFT_ATTENTION_TERMS]; /* from the softmax to the product */
    unsigned terms;
    bool causal;
    int64_t offset;
    const char *why;                   /* if there is a softmax, but no attention: why */
};

/* Is an operand of this product a softmax of a product that nobody else reads? */
bool weft_match_attention(struct weft_graph *graph, weft_node product, struct weft_attention_match *ret);
/* All terms as one that is added, of f32; none if there are none. */
weft_val weft_build_attention_mask(struct weft_builder *b, const struct weft_attention_match *match);
/* Weights of keys that a choice hid are made 0: they are 0 anyway, but in rows where all are hidden. Those become 0.
 * False if weights are made 0 elsewhere. */
bool weft_match_cleared(struct weft_attention_match *match);
/* v with its last two axes exchanged. */
weft_val weft_build_turned(struct weft_builder *b, weft_val v);
/* The number by which v is multiplied or divided, other operand to ret; false: by none. */
bool weft_match_scaled(const struct weft_graph *graph, weft_val v, weft_val *ret, double *ret_factor);

/* match_causal.c: does a constant, maybe repeated along leading axes, hide from row i all keys behind i + offset and
 * no others? Of truth values what is `hides` hides; of numbers 0 does not, and those that nothing is left of beside any
 * other do. ret_finite: some that hide are finite. */
bool weft_match_causal(struct weft_graph *graph, weft_val v, bool hides, int64_t *ret_offset, bool *ret_finite);
static inline bool weft_is_lowest(double x) { return x <= WEFT_HIDING_MASK; }

#endif
