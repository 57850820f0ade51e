/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: writes an ONNX model with an op of domain acme, which examples/top_two.c computes: model OP FILE.
 *
 *   v, i = acme.OP(relu(x), softmax=1)        x f32[N,64] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/onnx_writer.h"

int main(int argc, char **argv)
{
    struct bytes graph = {.count = 0}, opset = {.count = 0};
    if (argc != 3)
        return 2;
    put_input(&graph, "x", "N 64");
    put_node(&graph, "Relu", "x", "r");
    struct bytes node = node_of(argv[1], "r", "v,i");
    put_text(&node, 7, "acme");
    put_int_attribute(&node, "softmax", 1);
    put_message(&graph, 1, &node);
    put_output(&graph, "v");
    put_output(&graph, "i");
    struct bytes model = model_of(&graph, 8, 17);
    put_text(&opset, 1, "acme");
    put_integer(&opset, 2, 1);
    put_message(&model, 8, &opset);
    write_file(argv[2], model.data, model.count);
    return 0;
}
