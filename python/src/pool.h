/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h: memory for results that goes back to a pool when the tensor dies: the next call finds its pages mapped.
 *
 * A tensor may die on any thread, and after Python has ended: a pool has a lock of its own and needs no GIL. */
#ifndef WEFT_POOL_H
#define WEFT_POOL_H

#include <stddef.h>
#include <weft/base.h>

#include "dlpack.h"

struct pool;

/* The DLPack type of a weft dtype. */
extern const struct dl_type weft_dl_types[];

/* NULL if there is no memory. */
struct pool *pool_create(void);
/* The caller lets go; blocks whose tensors live stay until these die. NULL is fine. */
void pool_close(struct pool *pool);
/* A tensor like this one, whose data is ignored, in `bytes` bytes of the pool's. Its deleter gives them back. NULL if
 * there is no memory. */
struct dl_managed *pool_make(struct pool *pool, const struct weft_tensor *like, size_t bytes);

#endif
