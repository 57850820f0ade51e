/* SPDX-License-Identifier: Apache-2.0 */
/* program_piece.c: strip programs on pieces of their box. The contract: program.h. */
#include "kernels/strip/program.h"

void weft_program_begin_pieces(struct weft_program_pieces *pieces, const struct weft_program *program,
                               weft_program_code *code, void *const *argument, void *scratch)
{
    pieces->whole = program;
    pieces->program = *program;
    pieces->program.code = code;
    pieces->program.inner_rank = 1; /* line by line of the last axis */
    pieces->worker = weft_program_open_worker(&pieces->program, argument, scratch);
}

/* To the column with this number, and how many there are up to the end of its line. */
static int64_t seek_column(struct weft_program_pieces *pieces, int64_t column)
{
    const struct weft_program *const p = pieces->whole;
    const int64_t line = p->inner[p->inner_rank - 1], left = line - column % line;
    for (int i = p->inner_rank - 1; i >= 0 && column > 0; i--) {
        const int64_t index = column % p->inner[i];
        for (int v = 0; v < p->values; v++)
            if (p->value[v].place == WEFT_PROGRAM_ARGUMENT)
                pieces->worker.base[v] += index * p->value[v].inner[i] * p->value[v].bytes;
        column /= p->inner[i];
    }
    return left;
}

/* Whole lines as one. Of strips there is memory for a block. */
static void run_joined(struct weft_program_pieces *pieces, int64_t row, int64_t length)
{
    pieces->program.inner[0] = pieces->program.folded = length;
    pieces->program.strip = pieces->program.block;
    weft_program_open_tile(&pieces->worker, row);
    weft_program_run_tile(&pieces->worker, 1);
    pieces->program.strip = pieces->whole->strip;
}

void weft_program_run_piece(struct weft_program_pieces *pieces, int64_t row, int64_t rows, int64_t column,
                            int64_t columns)
{
    const struct weft_program *const p = pieces->whole;
    const int64_t line = p->outer[p->outer_rank - 1], end = row + rows, column_end = column + columns;
    while (row < end) {
        const int64_t left = line - row % line, points = left < end - row ? left : end - row;
        if (p->lines_follow && column == 0 && columns == p->inner[0]) {
            run_joined(pieces, row, points * columns);
            row += points;
            continue;
        }
        for (int64_t at = column; at < column_end;) {
            weft_program_open_tile(&pieces->worker, row);
            const int64_t to_end = seek_column(pieces, at);
            const int64_t length = to_end < column_end - at ? to_end : column_end - at;
            pieces->program.inner[0] = pieces->program.folded = length;
            weft_program_run_tile(&pieces->worker, points);
            at += length;
        }
        row += points;
    }
}
