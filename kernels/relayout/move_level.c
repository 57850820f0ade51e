/* SPDX-License-Identifier: Apache-2.0 */
/* move_level.c: rows that are moved as they are, and buffered rows that leave for memory. Compiled once per CPU level.
 *
 * A streaming store pays when it writes a whole line: half a line costs a read, a write and a place in the few buffers
 * that combine stores. Rows of a transposed result rarely begin at a line, and tiles rarely end at one. So tiles are
 * made in a buffer that holds a few lines of each row; drain writes those that are whole and keeps the rest in front
 * of the place where the next tile puts its part of the row. While stores wait for memory the operand of the next tile
 * is asked for: without that, loads and stores take turns, and the whole takes as long as both together. */
#include "kernels/relayout/relayout.h"
#include "kernels/strip/vector.h"

#include <string.h>

#define VECTOR (4 * LANES)
#define NEAR   2048 /* bytes between a row and the row that is asked for */

typedef float v_odd __attribute__((vector_size(VECTOR), aligned(1), may_alias));

INLINE void stream_line(char *to, const char *from)
{
    UNROLL for (int i = 0; i < WEFT_LINE; i += VECTOR)
        vstream((float *)(void *)(to + i), *(const v_odd *)(from + i));
}

INLINE void move_line(char *to, const char *from)
{
    UNROLL for (int i = 0; i < WEFT_LINE; i += VECTOR) *(v_odd *)(to + i) = *(const v_odd *)(from + i);
}

INLINE int64_t past_line(const char *p) { return (int64_t)((uintptr_t)p % WEFT_LINE); }

static void stream_row(char *to, const char *from, int64_t bytes)
{
    int64_t i = (WEFT_LINE - past_line(to)) % WEFT_LINE;
    if (i > bytes)
        i = bytes;
    memcpy(to, from, (size_t)i);
    for (; i + 4 * WEFT_LINE <= bytes; i += 4 * WEFT_LINE) {
        UNROLL for (int k = 0; k < 4; k++) stream_line(to + i + k * WEFT_LINE, from + i + k * WEFT_LINE);
    }
    for (; i + WEFT_LINE <= bytes; i += WEFT_LINE)
        stream_line(to + i, from + i);
    memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* At least one vector; the last one overlaps the one before. */
INLINE void plain_row(char *to, const char *from, int64_t bytes)
{
    int64_t i = 0;
    for (; i + 4 * VECTOR <= bytes; i += 4 * VECTOR) {
        UNROLL for (int k = 0; k < 4; k++)
            *(v_odd *)(to + i + k * VECTOR) = *(const v_odd *)(from + i + k * VECTOR);
    }
    for (; i + VECTOR <= bytes; i += VECTOR)
        *(v_odd *)(to + i) = *(const v_odd *)(from + i);
    if (i < bytes)
        *(v_odd *)(to + bytes - VECTOR) = *(const v_odd *)(from + bytes - VECTOR);
}

static void rows_of(char *out, int64_t out_step, const char *in, int64_t in_step, int64_t rows, int64_t bytes,
                    bool stream)
{
    /* Jumps that hardware does not foresee. */
    const int64_t near = bytes > 0 && bytes < NEAR ? in_step * (NEAR / bytes) : 0;
    for (int64_t r = 0; r < rows; r++, out += out_step, in += in_step) {
        for (int64_t i = 0; near && i < bytes; i += WEFT_LINE)
            __builtin_prefetch(in + near + i, 0, 3);
        if (stream)
            stream_row(out, in, bytes);
        else if (bytes >= VECTOR && bytes <= 4096) /* beyond that the C library has more to offer */
            plain_row(out, in, bytes);
        else
            memcpy(out, in, (size_t)bytes);
    }
}

static void drain_of(const struct weft_drain *d)
{
    const char *ahead = d->ahead;
    int64_t asked = 0, rows_left = d->ahead ? d->ahead_rows : 0;
    for (int64_t row = 0; row < d->rows; row++) {
        char *to = d->out + row * d->out_step, *const buffer = d->buffer + row * WEFT_BUFFER_PITCH + WEFT_LINE;
        const char *from = buffer;
        int64_t bytes = d->bytes, before = past_line(to);
        if (before && d->first) { /* the part before the first whole line */
            const int64_t head = WEFT_LINE - before < bytes ? WEFT_LINE - before : bytes;
            memcpy(to, from, (size_t)head);
            to += head, from += head, bytes -= head;
        } else {
            to -= before, from -= before, bytes += before;
        }
        int64_t i = 0;
        for (; i + WEFT_LINE <= bytes; i += WEFT_LINE) {
            stream_line(to + i, from + i);
            if (rows_left) {
                __builtin_prefetch(ahead + asked, 0, 2);
                asked += WEFT_LINE;
                if (asked >= d->ahead_bytes)
                    asked = 0, ahead += d->ahead_step, rows_left--;
            }
        }
        if (d->last)
            memcpy(to + i, from + i, (size_t)(bytes - i));
        else
            move_line(buffer - (bytes - i), from + i); /* what is too much lands where the next tile writes */
    }
}

static void fence_of(void) { vfence(); }

const struct weft_mover LEVEL(weft_mover) = {LEVEL_CPU, "weft_relayout_runs" LEVEL_TEXT, LANES == 16, rows_of, drain_of,
                                             fence_of, LEVEL(weft_relayout_spread)};
