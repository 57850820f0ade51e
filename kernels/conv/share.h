/* SPDX-License-Identifier: Apache-2.0 */
/* share.h: which units and inner pieces of a form are a part's: made once by prepare, for as many parts as it says
 * (weft_conv.share), and anew where a run has another number. */
#ifndef WEFT_CONV_SHARE_H
#define WEFT_CONV_SHARE_H

#include "kernels/conv/conv.h"

/* Units times inner pieces, where rows are cut as far as they may be: as many as there may be parts. 0 for forms whose
 * parts share out something else. */
int64_t weft_conv_share_units(const struct weft_conv *conv, const struct weft_conv_shape *s);
/* Of a descriptor whose form, kernel, blocks and passes are decided. */
struct weft_conv_share weft_conv_share(const struct weft_conv *conv, const struct weft_conv_shape *s, int parts,
                                       int turns);
/* Of a prepared one. */
struct weft_conv_share weft_conv_share_of(const struct weft_conv *conv, const struct weft_conv_shape *s, int parts);
/* [begin, end) of a part; false if there is nothing for it. */
bool weft_conv_share_box(const struct weft_conv_share *share, int part, int64_t ret_unit[2], int64_t ret_inner[2]);

/* COLUMNS: blocks of at most `size` pixels that lie in one line. */
static inline int64_t weft_conv_blocks(const struct weft_conv_shape *s, int64_t size)
{
    return s->groups * s->n * (s->pixels / s->line) * weft_pieces(s->line, size);
}

#endif
