/* SPDX-License-Identifier: Apache-2.0 */
/* program_fold.c: folds of strip programs, a strip at a time, in the order that reduce.c has: along lines virtual
 * lanes, put aside after so many terms and where a line of memory ends; across lines one chain for each result, put
 * aside after so many terms. */
#include "kernels/strip/program.h"
#include "kernels/strip/reduce_type.h"

#define BLOCK  256 /* as in reduce.c: terms in a chain before it is put aside */
#define GATHER 256 /* and terms that are converted at once */

/* In front of the numbers. */
struct state {
    int64_t terms; /* in the running values */
    bool first;    /* the first chain runs in the totals */
};
enum { HEAD = 64 };

static int plain_op(const struct weft_program_fold *fold)
{
    return fold->reduce.op == WEFT_K_MEAN ? WEFT_K_SUM : (int)fold->reduce.op;
}

static size_t side_bytes(const struct weft_program *program)
{
    return program->along_inner ? WEFT_FOLD_BYTES : (size_t)program->tile * 8;
}

size_t weft_program_fold_prepare(const struct weft_program *program, struct weft_program_fold *fold)
{
    fold->reduce.cpu = program->cpu;
    fold->reduce.divisor = program->folded;
    weft_reduce_type_of(fold->reduce.in_dtype, fold->reduce.out_dtype, program->cpu, &fold->type);
    if (fold->across)
        return (size_t)(program->folded * fold->type.loops->bytes);
    return HEAD + 2 * side_bytes(program);
}

void weft_program_fold_begin(const struct weft_program *program, const struct weft_program_fold *fold, void *memory,
                             int64_t n)
{
    *(struct state *)memory = (struct state){.first = true};
    if (program->along_inner)
        return;
    weft_reduce_identity(&fold->type, plain_op(fold), (char *)memory + HEAD, n);
}

/* --- along lines -------------------------------------------------------------------------------------------------- */

static void add_line(const struct weft_program_fold *fold, char *memory,
                     const char *x, int64_t stride, int64_t n, bool ends)
{
    _Alignas(64) char buffer[GATHER * 8];
    struct state *const state = (void *)memory;
    char *const total = memory + HEAD, *const running = total + WEFT_FOLD_BYTES;
    const bool in_place = stride == 1 && !fold->type.widens;
    const int64_t lanes = WEFT_FOLD_BYTES / fold->type.loops->bytes, piece = in_place ? BLOCK * lanes : GATHER;
    for (int64_t i = 0; i < n;) {
        const int64_t room = piece - state->terms, length = n - i < room ? n - i : room;
        const void *line = x + i * stride * fold->type.in_bytes;
        if (!in_place) {
            weft_reduce_load(&fold->reduce, &fold->type, buffer, line, stride, length);
            line = buffer;
        }
        fold->type.loops->line(plain_op(fold), state->first ? total : running, line, length, state->terms == 0);
        i += length;
        state->terms += length;
        if (state->terms < piece && !(ends && i == n))
            continue;
        if (!state->first)
            fold->type.loops->line(plain_op(fold), total, running, lanes, false);
        state->first = false;
        state->terms = 0;
    }
}

/* --- across lines ------------------------------------------------------------------------------------------------- */

/* `lines` lines of n terms, line by line, to n numbers. */
static void add_columns(const struct weft_program_fold *fold, char *into, const char *x, int64_t stride, int64_t n,
                        int64_t lines, int64_t next)
{
    _Alignas(64) char buffer[GATHER * 8];
    if (stride == 1 && !fold->type.widens) {
        fold->type.loops->columns(plain_op(fold), into, x, next / fold->type.in_bytes, lines, n);
        return;
    }
    for (int64_t l = 0; l < lines; l++)
        for (int64_t i = 0; i < n; i += GATHER) {
            const int64_t length = n - i < GATHER ? n - i : GATHER;
            weft_reduce_load(&fold->reduce, &fold->type, buffer, x + l * next + i * stride * fold->type.in_bytes,
                             stride, length);
            fold->type.loops->columns(plain_op(fold), into + i * fold->type.loops->bytes, buffer, 0, 1, length);
        }
}

/* So many lines that a chain is not longer than BLOCK. */
static void add_lines(const struct weft_program *program, const struct weft_program_fold *fold, char *memory,
                      const char *x, int64_t stride, int64_t n, int64_t lines, int64_t next)
{
    struct state *const state = (void *)memory;
    char *const total = memory + HEAD, *const running = total + side_bytes(program);
    if (!state->first && state->terms == 0)
        weft_reduce_identity(&fold->type, plain_op(fold), running, n);
    add_columns(fold, state->first ? total : running, x, stride, n, lines, next);
    state->terms += lines;
    if (state->terms < BLOCK)
        return;
    if (!state->first)
        fold->type.loops->columns(plain_op(fold), total, running, 0, 1, n);
    state->first = false;
    state->terms = 0;
}

static void add_across(const struct weft_program *program, const struct weft_program_fold *fold, char *memory,
                       const char *x, int64_t stride, int64_t n, int64_t lines, int64_t next)
{
    const struct state *const state = (const void *)memory;
    for (int64_t line = 0; line < lines;) {
        const int64_t room = BLOCK - state->terms, some = lines - line < room ? lines - line : room;
        add_lines(program, fold, memory, x + line * next, stride, n, some, next);
        line += some;
    }
}

/* --- both --------------------------------------------------------------------------------------------------------- */

void weft_program_fold_strip(const struct weft_program *program, const struct weft_program_fold *fold, void *state,
                             const void *x, int64_t stride, int64_t n, bool ends, int64_t lines, int64_t next)
{
    if (program->along_inner)
        add_line(fold, state, x, stride, n, ends);
    else
        add_across(program, fold, state, x, stride, n, lines, next);
}

void weft_program_fold_end(const struct weft_program *program, const struct weft_program_fold *fold, void *memory,
                           void *to, int64_t stride, int64_t n)
{
    _Alignas(8) char result[8];
    const struct state *const state = memory;
    char *const total = (char *)memory + HEAD, *const running = total + side_bytes(program);
    if (program->folded == 0) {
        weft_reduce_nothing(&fold->reduce, &fold->type, result);
        for (int64_t i = 0; i < n; i++)
            weft_reduce_store(&fold->reduce, &fold->type, (char *)to + i * stride * fold->type.out_bytes, 1, result, 1);
    } else if (program->along_inner) {
        fold->type.loops->finish(plain_op(fold), total, result);
        weft_reduce_store(&fold->reduce, &fold->type, to, stride, result, 1);
    } else {
        if (!state->first && state->terms > 0)
            fold->type.loops->columns(plain_op(fold), total, running, 0, 1, n);
        weft_reduce_store(&fold->reduce, &fold->type, to, stride, total, n);
    }
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

void weft_program_across_begin(const struct weft_program *program, const struct weft_program_fold *fold, void *state)
{
    weft_reduce_identity(&fold->type, plain_op(fold), state, program->folded);
}

void weft_program_across_strip(const struct weft_program_fold *fold, void *state, int64_t point, const void *x,
                               int64_t stride, int64_t n, int64_t lines, int64_t next)
{
    add_columns(fold, (char *)state + point * fold->type.loops->bytes, x, stride, n, lines, next);
}

void weft_program_across_end(const struct weft_program *program, const struct weft_program_fold *fold,
                             const void *state, const struct weft_program_value *out, void *to)
{
    const int last = program->inner_rank - 1;
    const int64_t length = program->inner[last];
    for (int64_t point = 0; point < program->folded; point += length) {
        int64_t at = 0, rest = point / length;
        for (int i = last - 1; i >= 0; i--) {
            at += rest % program->inner[i] * out->inner[i];
            rest /= program->inner[i];
        }
        weft_reduce_store(&fold->reduce, &fold->type, (char *)to + at * fold->type.out_bytes, out->inner[last],
                          (const char *)state + point * fold->type.loops->bytes, length);
    }
}
