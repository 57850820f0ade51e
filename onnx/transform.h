/* SPDX-License-Identifier: Apache-2.0 */
/* transform.h: the importer of Einsum, which has a file of its own. */
#ifndef WEFT_ONNX_TRANSFORM_H
#define WEFT_ONNX_TRANSFORM_H

#include "onnx/import.h"

void weft_onnx_import_einsum(struct onnx_op *op);

#endif
