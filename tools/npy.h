/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h: arrays in numpy's .npy files, versions 1 to 3.
 *
 * Reads the little-endian types that weft has, in C or Fortran order; the result is dense and row-major. Writes version
 * 1.0. bf16 has no name in the format, so it is written as f32, which holds every bf16; i4, u4 and f8 are refused. */
#ifndef WEFT_NPY_H
#define WEFT_NPY_H

#include "weft/weft.h"

#include <stdio.h>

#define WEFT_NPY_MESSAGE 256

/* Reads one array from a seekable stream, at its position. On failure returns false with one sentence in `message`. Any
 * bytes are safe to read: nothing is allocated that the file does not hold. Freed with weft_npy_free. */
bool weft_npy_read(FILE *from, struct weft_tensor *ret_tensor, char message[WEFT_NPY_MESSAGE]);
bool weft_npy_load(const char *path, struct weft_tensor *ret_tensor, char message[WEFT_NPY_MESSAGE]);
/* Any strides. */
bool weft_npy_save(const char *path, const struct weft_tensor *tensor, char message[WEFT_NPY_MESSAGE]);
/* Of a dense tensor as read, f32 is rounded to bf16 where that is the dtype that is meant; else nothing happens. */
void weft_npy_narrow(struct weft_tensor *tensor, int dtype);
void weft_npy_free(struct weft_tensor *tensor);

#endif
