/* SPDX-License-Identifier: Apache-2.0 */
/* together.c: pieces of weights, who packs them, and when they are complete. */
#include "kernels/conv/together.h"
#include "kernels/pause.h"

#include <sched.h>

enum {
    PAYS = 16 << 10,        /* floats that all parts but one need not pack: some microseconds */
    PIECE = 4 << 10,        /* floats */
    PAUSES = 1000           /* before the operating system may give the core to somebody else */
};

bool weft_conv_pays_together(const struct weft_conv *conv, int64_t floats)
{
    return conv->shares && (conv->parts - 1) * floats >= PAYS;
}

static int pieces_of(const struct weft_conv *conv)
{
    const int64_t pieces = (int64_t)(weft_conv_pack_bytes(conv) / sizeof(float)) / PIECE;
    return pieces < 1 ? 1 : pieces < WEFT_CONV_PACK_PARTS ? (int)pieces : WEFT_CONV_PACK_PARTS;
}

const float *weft_conv_pack_together(const struct weft_conv *conv, const struct weft_conv_data *data, int parts)
{
    struct weft_conv_together *const t = data->together;
    const int pieces = pieces_of(conv);
    for (int piece; (piece = __atomic_fetch_add(&t->taken, 1, __ATOMIC_RELAXED)) < pieces;) {
        weft_conv_pack_part(conv, data->pack, data->w, piece, pieces);
        __atomic_fetch_add(&t->packed, 1, __ATOMIC_RELEASE);
    }
    for (int i = 1; __atomic_load_n(&t->packed, __ATOMIC_ACQUIRE) < pieces; i++) {
        if (i % PAUSES == 0)
            sched_yield();
        else
            weft_k_pause();
    }
    if (__atomic_add_fetch(&t->gone, 1, __ATOMIC_ACQ_REL) == parts) /* nobody looks any more */
        *t = (struct weft_conv_together){0};
    return data->pack;
}
