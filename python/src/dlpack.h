/* SPDX-License-Identifier: Apache-2.0 */
/* dlpack.h: DLPack 1.3 as far as it is used: tensors, tensors with an owner, and the table of C functions that a tensor
 * type carries as a capsule. */
#ifndef WEFT_DLPACK_H
#define WEFT_DLPACK_H

#include <stdint.h>

struct dl_device { int32_t type, id; };
struct dl_type { uint8_t code, bits; uint16_t lanes; };
struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t ndim;
    struct dl_type dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct dl_managed {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_managed *);
    uint64_t flags;
    struct dl_tensor tensor;
};
enum { DL_CPU = 1 };
struct dl_table {
    uint32_t major, minor;
    void *previous;
    int (*allocate)(struct dl_tensor *like, struct dl_managed **out, void *context,
                    void (*error)(void *, const char *, const char *));
    int (*managed_from_object)(void *object, struct dl_managed **out);
    int (*managed_to_object)(struct dl_managed *managed, void **out);
    int (*tensor_from_object)(void *object, struct dl_tensor *out);
};

#endif
