/* SPDX-License-Identifier: Apache-2.0 */
/* scarce.h: an allocator for tests that grants some allocations, refuses the next, and counts what was not given back.
 * */
#ifndef WEFT_TEST_SCARCE_H
#define WEFT_TEST_SCARCE_H

#include "weft/weft.h"

#include <stdlib.h>

struct scarce {
    int64_t left;   /* allocations until one is refused; below 0: none is */
    bool once;      /* only that one is refused */
    int64_t refused;
    int64_t blocks; /* that are held */
    int64_t bytes;
};

static inline void *scarce_allocate(void *user, size_t bytes, size_t align)
{
    struct scarce *scarce = user;
    void *memory = NULL;
    if (scarce->left == 0) {
        scarce->left -= scarce->once;
        scarce->refused++;
        return NULL;
    }
    scarce->left -= scarce->left > 0;
    if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes))
        return NULL;
    scarce->blocks++;
    scarce->bytes += (int64_t)bytes;
    return memory;
}

static inline void scarce_release(void *user, void *memory, size_t bytes)
{
    struct scarce *scarce = user;
    scarce->blocks--;
    scarce->bytes -= (int64_t)bytes;
    free(memory);
}

static inline struct weft_allocator scarce_allocator(struct scarce *scarce)
{
    return (struct weft_allocator){
        .size = sizeof(struct weft_allocator), .user = scarce, .allocate = scarce_allocate, .release = scarce_release};
}

#endif
