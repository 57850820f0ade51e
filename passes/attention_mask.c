/* SPDX-License-Identifier: Apache-2.0 */
/* attention_mask.c: the terms that match_attention.c found around the scores, as one mask that is added to them. */
#include "passes/match_attention.h"

#include <math.h>

bool weft_match_cleared(struct weft_attention_match *match)
{
    struct weft_attention_term *const term = match->term;
    const struct weft_attention_cleared *const cleared = &match->cleared;
    if (!cleared->id)
        return true;
    if (match->terms != 1 || match->empty[0] != 'n' || !term->chooses || term->value.id != cleared->id ||
        term->hides != cleared->hides || term->turned != cleared->turned)
        return false;
    match->empty = "zero";
    term->hidden = -INFINITY;
    return true;
}

weft_val weft_build_turned(struct weft_builder *b, weft_val v)
{
    const int rank = weft_type_of(b->graph, v)->rank;
    int perm[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return weft_build_transpose(b, v, perm);
}

weft_val weft_build_attention_mask(struct weft_builder *b, const struct weft_attention_match *match)
{
    weft_val mask = WEFT_NO_VALUE;
    for (unsigned i = match->terms; i-- > 0;) {
        const struct weft_attention_term *term = &match->term[i];
        const weft_val value = term->turned ? weft_build_turned(b, term->value) : term->value;
        struct weft_type type = *weft_type_of(b->graph, value);
        type.dtype = WEFT_F32;
        if (mask.id)
            mask = weft_build_reshape(b, mask, &type);
        if (term->chooses) {
            const weft_val hidden = weft_build_splat(b, &type, term->hidden),
                           seen = mask.id ? mask : weft_build_splat(b, &type, 0);
            const weft_val operand[] = {value, term->hides ? hidden : seen, term->hides ? seen : hidden};
            mask = weft_build(b, WEFT_OP_select, 3, operand, 0, NULL, NULL);
        } else {
            weft_val added = weft_widen(b, value);
            if (term->scale != 1)
                added = weft_build_binary(b, WEFT_OP_mul, added, weft_build_splat(b, &type, term->scale));
            mask = mask.id ? weft_build_binary(b, WEFT_OP_add, mask, added) : added;
        }
    }
    return mask;
}
