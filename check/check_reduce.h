/* SPDX-License-Identifier: Apache-2.0 */
/* check_reduce.h: the harness's two files about reductions. */
#ifndef WEFT_CHECK_REDUCE_H
#define WEFT_CHECK_REDUCE_H

#include "check/check.h"

/* Tries the kernel of that name, which adds up in 64 bits. */
void weft_check_reduce_types(struct weft_check *check, const void *name);

#endif
