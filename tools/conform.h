/* SPDX-License-Identifier: Apache-2.0 */
/* conform.h: what the files of `weft conform` share.
 *
 * A case is a folder as the ONNX backend tests have them: model.onnx, and test_data_set_N with input_i.pb and
 * output_i.pb. The command runs each in a process of its own, which tells its verdict in lines on a pipe:
 *
 *   pass                   it ran, and every output agrees
 *   known COUNT            so many inputs had to be known while compiling
 *   skip OP DTYPE          weft does not list this op ("-": at all) with this element type; any number of lines
 *   fail MESSAGE           anything else */
#ifndef WEFT_CONFORM_H
#define WEFT_CONFORM_H

#include "onnx/model.h"

#define WEFT_CASE_FILE "model.onnx"

/* conform_case.c: runs the case in `folder` and prints its verdict to stdout; the exit code is of no interest. */
int weft_conform_case(const char *folder, bool reference);

/* conform_gap.c: prints a skip line for each op, with the element type, that the model uses and weft does not list.
 * Returns their number, or -1 if memory is refused. */
int weft_conform_gaps(struct onnx_reader *reader, const struct onnx_model *model);

/* tensor_proto.c: reads a file that holds a TensorProto; the data is packed, and freed with free(). False after
 * recording an error on the context. */
bool weft_tensor_proto_load(struct weft_context *context, const char *path, struct weft_tensor *ret_tensor);

#endif
