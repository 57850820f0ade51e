/* SPDX-License-Identifier: Apache-2.0 */
/* public.h: what the files that carry out weft.h's builder share. */
#ifndef WEFT_PUBLIC_H
#define WEFT_PUBLIC_H

#include "ir/ir.h"

/* Records a wrong argument; returns WEFT_ERR_ARGUMENT. */
int weft_wrong(struct weft_context *context, const char *where, const char *message);

#endif
