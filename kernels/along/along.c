/* SPDX-License-Identifier: Apache-2.0 */
/* along.c: ops along one axis of a strided array: running sums, where an extreme is, what comes first in order.
 *
 * A line is what one op call of the definition sees: the elements along the axis, for one index of the other axes.
 * Parts are ranges of lines, or, where a scan has few and long ones, of chunks of lines: what each chunk comes to is
 * found first, which weft_along_totals does. The work for an element is a chain, so what counts is that several chains
 * run side by side: neighbouring lines in vectors, others one by one (along_level.c). The exception is the extreme of a
 * contiguous f32 line, which is found block by block in vectors and then looked for in the best block. */
#include "kernels/along/along.h"
#include "kernels/walk.h"

#define CHUNK       8192 /* elements of a line that are worth a chunk */
#define MOST_CHUNKS 64
#define SHARED_HEAD 64   /* bytes of shared memory that stay zero */

static bool is_scan(const struct weft_along *along) { return along->op >= WEFT_K_CUMSUM && along->op <= WEFT_K_CUMMIN; }
static bool is_order(const struct weft_along *along) { return along->op == WEFT_K_SORT; }

bool weft_along_supports(enum weft_along_op op, int dtype)
{
    if (op == WEFT_K_SORT)
        return dtype == WEFT_K_F32 || dtype == WEFT_K_I32;
    return dtype >= WEFT_K_F64 && dtype <= WEFT_K_U8 && dtype != WEFT_K_BF16 && dtype != WEFT_K_F16;
}

static uint32_t level_of(const struct weft_along *along)
{
    const uint32_t avx512 = WEFT_CPU_AVX2 | WEFT_CPU_AVX512;
    return (along->cpu & avx512) == avx512 ? avx512 : along->cpu & WEFT_CPU_AVX2;
}

static const struct weft_along_loops *loops_of(const struct weft_along *along)
{
    const uint32_t level = level_of(along);
    const struct weft_along_loops *const loops = level & WEFT_CPU_AVX512 ? weft_along_loops__avx512
                                                 : level                 ? weft_along_loops__avx2
                                                                         : weft_along_loops__ref;
    return &loops[along->dtype];
}

const char *weft_along_name(const struct weft_along *along)
{
    if (is_order(along) && along->k < along->n)
        return along->dtype == WEFT_K_F32 ? "weft_along_top_f32__ref" : "weft_along_top_i32__ref";
    if (is_order(along))
        return along->dtype == WEFT_K_F32 ? "weft_along_sort_f32__ref" : "weft_along_sort_i32__ref";
    return is_scan(along) ? loops_of(along)->scan_name : loops_of(along)->arg_name;
}

uint32_t weft_along_cpu(const struct weft_along *along) { return is_order(along) ? 0 : level_of(along); }

static int64_t element_bytes(const struct weft_along *along) { return loops_of(along)->bytes; }

bool weft_along_splits(int64_t n) { return n >= 2 * CHUNK; }

/* As many chunks as the shape says, so that every number of workers gives the same bits. */
static void cut(struct weft_along *along, int64_t lines)
{
    along->chunks = 1;
    along->chunk = along->n;
    along->shared = 0;
    if (!along->split || !is_scan(along) || lines < 1 || lines >= MOST_CHUNKS || !weft_along_splits(along->n))
        return;
    const int64_t wanted = along->n / CHUNK < MOST_CHUNKS ? along->n / CHUNK : MOST_CHUNKS;
    along->chunk = ((along->n + wanted - 1) / wanted + 15) / 16 * 16;
    along->chunks = (along->n + along->chunk - 1) / along->chunk;
    along->shared = SHARED_HEAD + (size_t)(lines * along->chunks) * 8;
}

void weft_along_prepare(struct weft_along *along, int workers)
{
    struct weft_k_axis axis[WEFT_K_RANK] = {{0}};
    int64_t lines = 1;
    for (int i = 0; i < along->rank; i++) {
        axis[i] = (struct weft_k_axis){along->extent[i],
                                       {along->in_stride[i], along->out_stride[i], along->index_stride[i]}};
        lines *= along->extent[i];
    }
    weft_k_axes_sort(axis, along->rank);
    along->rank = weft_k_axes_merge(axis, along->rank, 3);
    if (!along->rank)
        axis[along->rank++] = (struct weft_k_axis){1, {0, 0, 0}};
    for (int i = 0; i < along->rank; i++) {
        along->extent[i] = axis[i].extent;
        along->in_stride[i] = axis[i].stride[0];
        along->out_stride[i] = axis[i].stride[1];
        along->index_stride[i] = axis[i].stride[2];
    }
    along->scratch = is_order(along) ? weft_along_order_scratch(along) : 0;
    cut(along, lines);
    const int32_t parts = weft_parts_for((is_order(along) ? 16 : 2) * lines * along->n * element_bytes(along), workers);
    const int64_t units = lines * along->chunks;
    along->parts = units < 1 ? 1 : units < parts ? (int32_t)units : parts;
}

/* --- long lines in chunks ----------------------------------------------------------------------------------------- */

/* Calls for each line the range of chunks that the part has of it: units are chunks, line after line. Without `out`
 * nothing is written to it. */
static void each_line(const struct weft_along *along, void *out, const void *in, void *shared, int part, int parts,
                      void (*fn)(const struct weft_along *, void *, const void *, void *, int64_t, int64_t))
{
    const int64_t bytes = element_bytes(along);
    int64_t lines = 1, at, end;
    for (int i = 0; i < along->rank; i++)
        lines *= along->extent[i];
    weft_share(lines * along->chunks, 1, part, parts, &at, &end);
    while (at < end) {
        const int64_t line = at / along->chunks, first = at % along->chunks, left = end - line * along->chunks;
        const int64_t last = left < along->chunks ? left : along->chunks;
        int64_t rest = line, from = 0, to = 0;
        for (int i = along->rank - 1; i >= 0; i--) {
            from += rest % along->extent[i] * along->in_stride[i];
            to += rest % along->extent[i] * along->out_stride[i];
            rest /= along->extent[i];
        }
        fn(along, out ? (char *)out + to * bytes : NULL, (const char *)in + from * bytes,
           (char *)shared + SHARED_HEAD + line * along->chunks * 8, first, last);
        at += last - first;
    }
}

static void find_totals(const struct weft_along *along, void *out, const void *in, void *total, int64_t first,
                        int64_t end)
{
    loops_of(along)->totals(along, total, in, first, end);
}

static void scan_chunks(const struct weft_along *along, void *out, const void *in, void *total, int64_t first,
                        int64_t end)
{
    loops_of(along)->chunks(along, out, in, total, first, end);
}

void weft_along_totals(const struct weft_along *along, const void *in, void *shared, int part, int parts)
{
    if (along->chunks > 1)
        each_line(along, NULL, in, shared, part, parts, find_totals);
}

static void run_lines(const struct weft_along *along, const struct weft_k_walk *walk, int64_t lines, int inner,
                      void *scratch)
{
    const int64_t in_line = along->in_stride[inner], out_line = along->out_stride[inner];
    char *const in = walk->at[0], *const out = walk->at[1];
    if (is_order(along)) {
        weft_along_order(along, out, (int64_t *)(void *)walk->at[2], in, scratch);
        return;
    }
    (is_scan(along) ? loops_of(along)->scan : loops_of(along)->arg)(along, out, in, out_line, in_line, lines);
}

void weft_along_run(const struct weft_along *along, void *out, int64_t *index, const void *in, void *scratch, int part,
                    int parts)
{
    if (along->chunks > 1) {
        each_line(along, out, in, scratch, part, parts, scan_chunks);
        return;
    }
    struct weft_k_walk walk = {.rank = along->rank, .arrays = index ? 3 : 2, .at = {(char *)in, out, (char *)index}};
    const int inner = along->rank - 1;
    const int64_t bytes = element_bytes(along), out_bytes = is_scan(along) || is_order(along) ? bytes : 8;
    int64_t lines = 1, at, end;
    for (int i = 0; i < along->rank; i++) {
        lines *= walk.extent[i] = along->extent[i];
        walk.step[0][i] = along->in_stride[i] * bytes;
        walk.step[1][i] = along->out_stride[i] * out_bytes;
        walk.step[2][i] = along->index_stride[i] * 8;
    }
    weft_share(lines, along->in_stride[inner] == 1 ? 16 : 1, part, parts, &at, &end);
    if (at >= end)
        return;
    const int64_t beside = along->in_stride[inner] == 1 ? WEFT_ALONG_TILE : WEFT_ALONG_FEW;
    const int64_t most = is_order(along) ? 1 : beside;
    weft_k_walk_seek(&walk, at);
    while (at < end) {
        int64_t count = walk.extent[inner] - walk.index[inner];
        count = count < end - at ? count : end - at;
        count = count < most ? count : most;
        run_lines(along, &walk, count, inner, scratch);
        at += count;
        for (int64_t i = 0; i < count && at < end; i++)
            weft_k_walk_next(&walk, inner);
    }
}
