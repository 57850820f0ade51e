/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.h: what the two files of recurrent networks share: one node as a struct, and one time of one direction. */
#ifndef WEFT_ONNX_RECURRENT_H
#define WEFT_ONNX_RECURRENT_H

#include "onnx/import.h"

enum onnx_cell { ONNX_CELL_RNN = 1, ONNX_CELL_GRU = 3, ONNX_CELL_LSTM = 4 }; /* the number of gates */

struct onnx_activation {
    struct onnx_string name;
    double alpha, beta;
};

/* All of a node but its direction. */
struct onnx_recurrence {
    int kind;
    weft_dim times, batch, hidden, gates; /* gates: kind * hidden */
    int dtype;
    unsigned directions;
    bool by_batch; /* layout=1: the batch is the outer axis */
    bool linear_before_reset, input_forget;
    double clip; /* 0: none */
    weft_val x, lengths; /* x [times, batch, …]; lengths: none, or i64[batch] */
    struct onnx_activation activation[6];
};

/* What a trip reads, in the graph that it stands in. */
struct onnx_step {
    weft_val h, c;                           /* states; c of an LSTM */
    weft_val wx, r, bias, peephole, lengths; /* W x of all times, weights; none where there are none */
    weft_val index;                          /* i64[] */
};

/* Reads the functions of all directions. */
void weft_onnx_read_activations(struct onnx_op *op, struct onnx_recurrence *cell);
/* One time. Returns what it collects; the states in *s are the new ones. */
weft_val weft_onnx_take_step(struct onnx_op *op, const struct onnx_recurrence *cell, unsigned direction,
                             struct onnx_step *s);
/* x · yᵀ. */
weft_val weft_onnx_product_transposed(struct onnx_op *op, weft_val x, weft_val y);
/* [first, first + count) along an axis; `squeeze` drops the axis, of which one is taken. */
weft_val weft_onnx_part(struct onnx_op *op, weft_val x, unsigned axis, weft_dim first, weft_dim count, bool squeeze);
/* x opcode y, with y repeated to x's shape. */
weft_val weft_onnx_with(struct onnx_op *op, int opcode, weft_val x, weft_val y);

#endif
