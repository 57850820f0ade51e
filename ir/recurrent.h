/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.h: what the ops lstm, gru and rnn are made of, read from a node's attributes: for inference, the evaluator
 * and the pass that opens them.
 *
 *   %y: f32[T,2,B,H], %h: f32[2,B,H] = gru %x, %w, %r, %b, %h0 direction=bidirectional */
#ifndef WEFT_RECURRENT_H
#define WEFT_RECURRENT_H

#include "ir/graph.h"

/* A function of gates: an op, or a x + b (opcode 0), or a tanh(b x) (opcode 0, scaled). */
struct weft_gate_row {
    const char *name;
    int opcode;
    bool scaled;
    uint8_t numbers;        /* how many of alpha and beta it has */
    double alpha, beta;     /* the defaults */
};
extern const struct weft_gate_row weft_gate_rows[];
/* NULL if there is none of that name. */
const struct weft_gate_row *weft_gate_find(const char *name, size_t length);

struct weft_gate_function {
    const struct weft_gate_row *row;
    double alpha, beta;
};
#define WEFT_MAX_GATE_FUNCTIONS 6
struct weft_recurrence {
    unsigned gates;         /* 1 of an rnn, 3 of a gru (z r h), 4 of an lstm (i o f c) */
    unsigned states;        /* 2 of an lstm, else 1: also the number of operand 4's neighbours */
    unsigned directions;
    bool reverse[2];        /* by direction */
    unsigned functions;     /* of one direction; those of the second stand behind those of the first */
    struct weft_gate_function function[WEFT_MAX_GATE_FUNCTIONS];
    double clip;            /* 0: none */
    bool input_forget, linear_before_reset;
};
/* Operands: x, w, r, b, h0, in an lstm c0; then peepholes (floats) and lengths (integers), if given. */
enum { WEFT_CELL_X, WEFT_CELL_W, WEFT_CELL_R, WEFT_CELL_B, WEFT_CELL_H, WEFT_CELL_C };
/* False, and a message, if functions or numbers are not what the op takes. */
bool weft_recurrence_read(int op, const struct weft_attr *attr, unsigned attrs, struct weft_recurrence *ret,
                          const char **ret_message);
/* As for a node that exists, where nothing can be wrong. */
struct weft_recurrence weft_recurrence_of(const struct weft_graph *graph, weft_node node);
/* Numbers of the operands that may be missing; 0: they are. */
unsigned weft_recurrence_peepholes(const struct weft_graph *graph, weft_node node);
unsigned weft_recurrence_lengths(const struct weft_graph *graph, weft_node node);

#endif
