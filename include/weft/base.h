/* SPDX-License-Identifier: Apache-2.0 */
/* base.h: statuses, versions, element types, tensors. Conventions are in weft.h. */
#ifndef WEFT_PUBLIC_BASE_H
#define WEFT_PUBLIC_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#define WEFT_VERSION "0.3.0"
#define WEFT_VERSION_NUMBER 3000 /* major * 1000000 + minor * 1000 + patch */
#define WEFT_MAX_RANK 8

enum weft_status {
    WEFT_OK = 0,
    WEFT_ERR_NOMEM = -1,       /* the allocator returned NULL; nothing is lost */
    WEFT_ERR_ARGUMENT = -2,    /* a call's arguments do not fit its contract */
    WEFT_ERR_SYNTAX = -3,      /* a text or file is malformed */
    WEFT_ERR_INVALID = -4,     /* well-formed, but not a legal graph: types, shapes, attributes */
    WEFT_ERR_UNSUPPORTED = -5, /* legal, but uses ops or features that weft lacks (all such ops are listed at once) */
    WEFT_ERR_IO = -6,          /* the operating system refused a file */
    WEFT_ERR_BINDING = -7,     /* a tensor given to an execution does not fit the plan */
    WEFT_ERR_CUSTOM = -8,      /* a custom function (weft_register) reported an error */
    WEFT_ERR_CANCELLED = -9,   /* weft_cancel ended a run */
};
/* A short constant English text for a status, never NULL. */
WEFT_API const char *weft_status_text(int status);
/* The version of the library that is loaded, to be compared with WEFT_VERSION. */
WEFT_API const char *weft_version(void);
/* The same as a number, at least WEFT_VERSION_NUMBER if the library has all that the headers declare. */
WEFT_API int weft_version_number(void);

/* --- element types ------------------------------------------------------------------------------------------------ */

enum weft_dtype {
    WEFT_F64 = 1, WEFT_F32, WEFT_BF16, WEFT_F16, WEFT_I64, WEFT_I32, WEFT_I16, WEFT_I8,
    WEFT_U64, WEFT_U32, WEFT_U16, WEFT_U8, WEFT_BOOL,
    WEFT_I4, WEFT_U4, WEFT_F8E4M3, WEFT_F8E5M2, /* storage only: no arithmetic but casts */
};
/* "f32" and so on; NULL for a number that is no dtype. */
WEFT_API const char *weft_dtype_name(int dtype);
/* The dtype of that name, or 0, also for NULL. */
WEFT_API int weft_dtype_from_name(const char *name);
/* Size of one element in bits. For i4 and u4 it is 4: two elements per byte, the first in the lower half. An unused
 * half byte at the end of a result is 0. */
WEFT_API unsigned weft_dtype_bits(int dtype);

/* A strided array in the caller's memory. Broadcast axes have stride 0; strides are never negative. Axes from `rank` on
 * are not read. */
struct weft_tensor {
    void *data;
    int32_t dtype;
    int32_t rank;
    int64_t extent[WEFT_MAX_RANK];
    int64_t stride[WEFT_MAX_RANK]; /* in elements */
};

#ifdef __cplusplus
}
#endif
#endif
