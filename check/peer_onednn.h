/* SPDX-License-Identifier: Apache-2.0 */
/* peer_onednn.h: what the files about oneDNN share. */
#ifndef WEFT_PEER_ONEDNN_H
#define WEFT_PEER_ONEDNN_H

#include "check/bench_peers.h"

#include <dnnl.h>

enum { ONEDNN_MEMORIES = 6, ONEDNN_ARGUMENTS = 3 };

/* A primitive with its arguments. */
struct onednn {
    struct weft_bench *bench;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_exec_arg_t argument[ONEDNN_ARGUMENTS];
    dnnl_memory_t memory[ONEDNN_MEMORIES];
    int arguments, memories;
};
dnnl_engine_t onednn_engine(void);
/* NULL if there is no engine. */
struct onednn *onednn_open(struct weft_bench *bench, int threads);

/* An array; without strides, in a layout that is left to the primitive. */
bool onednn_describe(dnnl_memory_desc_t *ret, dnnl_data_type_t type, int rank, const int64_t *extent,
                     const int64_t *stride);

/* Two operands and the result as they lie: the second may be missing. constant: the second may be brought into another
 * layout before the clock runs; own: the first as well, and the result is wherever the primitive wants it. */
struct onednn_arrays {
    dnnl_memory_desc_t md[3];
    const void *a, *b;
    void *out;
    bool constant, own;
};
/* Makes the primitive. Where the layout is left to it, the description of the operation says so. */
bool onednn_finish(struct onednn *p, const void *op_desc, const struct onednn_arrays *arrays);
/* The contestant, or the end of it if something was not `good`; returns that. */
bool onednn_enter(struct onednn *p, bool good, struct weft_contestant *ret);

#endif
