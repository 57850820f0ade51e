/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const struct dl_type weft_dl_types[] = { /* by enum weft_dtype */
    [WEFT_F64] = {2, 64, 1}, [WEFT_F32] = {2, 32, 1}, [WEFT_BF16] = {4, 16, 1}, [WEFT_F16] = {2, 16, 1},
    [WEFT_I64] = {0, 64, 1}, [WEFT_I32] = {0, 32, 1}, [WEFT_I16] = {0, 16, 1}, [WEFT_I8] = {0, 8, 1},
    [WEFT_U64] = {1, 64, 1}, [WEFT_U32] = {1, 32, 1}, [WEFT_U16] = {1, 16, 1}, [WEFT_U8] = {1, 8, 1},
    [WEFT_BOOL] = {6, 8, 1},
};

enum { KEPT_BLOCKS = 2 }; /* free blocks of a pool: one that the caller holds while the next call runs, and one more */

struct block {
    struct dl_managed managed; /* first: what torch hands to the deleter */
    struct block *next;
    int64_t shape[WEFT_MAX_RANK], stride[WEFT_MAX_RANK];
    void *memory;
    size_t bytes;
};
struct pool {
    atomic_flag lock;
    int dead, kept;
    int64_t live;
    struct block *free;
};

static void pool_lock(struct pool *p)
{
    while (atomic_flag_test_and_set_explicit(&p->lock, memory_order_acquire)) {
    }
}

static void pool_unlock(struct pool *p) { atomic_flag_clear_explicit(&p->lock, memory_order_release); }

static void block_free(struct block *b)
{
    if (b) {
        free(b->memory);
        free(b);
    }
}

/* The deleter of a result. */
static void block_return(struct dl_managed *managed)
{
    struct block *b = (struct block *)managed;
    struct pool *p = managed->context;
    pool_lock(p);
    const int last = --p->live == 0 && p->dead;
    if (!p->dead && p->kept < KEPT_BLOCKS) {
        b->next = p->free;
        p->free = b;
        p->kept++;
        b = NULL;
    }
    pool_unlock(p);
    block_free(b);
    if (last)
        free(p);
}

void pool_close(struct pool *p)
{
    if (!p)
        return;
    pool_lock(p);
    struct block *free_blocks = p->free;
    p->free = NULL;
    p->dead = 1;
    const int last = p->live == 0;
    pool_unlock(p);
    while (free_blocks) {
        struct block *next = free_blocks->next;
        block_free(free_blocks);
        free_blocks = next;
    }
    if (last)
        free(p);
}

struct pool *pool_create(void)
{
    struct pool *p = calloc(1, sizeof *p);
    if (p)
        atomic_flag_clear(&p->lock);
    return p;
}

/* Does a result of so many bytes go into this block, and without taking four times what it needs? */
static int block_suits(const struct block *b, size_t bytes) { return b->bytes >= bytes && b->bytes / 4 <= bytes; }

struct dl_managed *pool_make(struct pool *p, const struct weft_tensor *like, size_t bytes)
{
    pool_lock(p);
    struct block *b = p->free;
    if (b) {
        p->free = b->next;
        p->kept--;
    }
    p->live++;
    pool_unlock(p);
    if (b && !block_suits(b, bytes)) { /* the sizes are others than those of the last call */
        block_free(b);
        b = NULL;
    }
    if (!b) {
        b = calloc(1, sizeof *b);
        if (b) {
            b->bytes = (bytes + 63) / 64 * 64;
            b->memory = aligned_alloc(64, b->bytes);
        }
        if (!b || !b->memory) {
            free(b);
            pool_lock(p);
            p->live--;
            pool_unlock(p);
            return NULL;
        }
    }
    memcpy(b->shape, like->extent, sizeof b->shape);
    memcpy(b->stride, like->stride, sizeof b->stride);
    b->managed = (struct dl_managed){.major = 1, .minor = 3, .context = p, .deleter = block_return,
        .tensor = {b->memory, {DL_CPU, 0}, like->rank, weft_dl_types[like->dtype], b->shape, b->stride, 0}};
    return &b->managed;
}
