/* SPDX-License-Identifier: Apache-2.0 */
/* along.c: ops along one axis of a strided array: running sums, where an extreme is, what comes first in order.
 *
 * A line is what one op call of the definition sees: the elements along the axis, for one index of the other axes.
 * Parts are ranges of lines, or, where a scan has few and long ones, take chunks of lines in turn (chunks.c). The work
 * for an element is a chain, so what counts is that several chains run side by side: neighbouring lines in vectors,
 * others one by one (along_level.c). Where the elements of a line are neighbours themselves, a scan makes prefixes in
 * vectors (prefix_level.c), and the extreme of floats is found block by block and then looked for in the best block. */
#include "kernels/along/along.h"
#include "kernels/walk.h"

#define CHUNK      8192 /* elements of a line that are worth a chunk */
#define LARGEST    32768
#define GRAIN      512 /* elements: a strip of a group is in one chunk (kernels/strip/program.c) */
#define CHUNKS     64 /* wanted, of chunks between these sizes */
#define SHORT      32 /* shorter lines go side by side, an element each */
#define MOST_LINES 64 /* more are shared out as they are */
#define LEAST_STREAM 4096 /* bytes of a line that goes past the caches: each line waits for its stores */

static bool is_scan(const struct weft_along *along) { return along->op >= WEFT_K_CUMSUM && along->op <= WEFT_K_CUMMIN; }
static bool is_order(const struct weft_along *along) { return along->op == WEFT_K_SORT; }

bool weft_along_supports(enum weft_along_op op, int dtype)
{
    if (op == WEFT_K_SORT)
        return dtype == WEFT_K_F32 || dtype == WEFT_K_I32;
    return dtype >= WEFT_K_F64 && dtype <= WEFT_K_U8;
}

const struct weft_along_loops *weft_along_loops_of(const struct weft_along *along)
{
    static const struct weft_along_loops *const loops[] = {WEFT_LEVELS(weft_along_loops)};
    return &loops[weft_level_of(along->cpu)][along->dtype];
}

/* Products of floats go element by element, each line by one part: what several elements come to may be too small or
 * too large for the type where no result is, and of 16 bits each has to be rounded. */
bool weft_along_is_chain(const struct weft_along *along)
{
    return along->op == WEFT_K_CUMPROD && along->dtype >= WEFT_K_F64 && along->dtype <= WEFT_K_F16;
}

const struct weft_along_pieces *weft_along_prefix_of(const struct weft_along *along)
{
    static const struct weft_along_pieces *const prefixes[] = {WEFT_LEVELS(weft_along_prefixes)};
    const struct weft_along_pieces *const all = prefixes[weft_level_of(along->cpu)];
    if (along->in_step != 1 || along->out_step != 1 || along->n < SHORT || !all[along->dtype].piece)
        return NULL;
    return weft_along_is_chain(along) ? NULL : &all[along->dtype];
}

static const struct weft_along_pieces *pieces_of(const struct weft_along *along)
{
    const struct weft_along_pieces *const prefix = weft_along_prefix_of(along);
    return prefix ? prefix : &weft_along_loops_of(along)->pieces;
}

const char *weft_along_name(const struct weft_along *along)
{
    if (is_order(along) && along->k < along->n)
        return along->dtype == WEFT_K_F32 ? "weft_along_top_f32__ref" : "weft_along_top_i32__ref";
    if (is_order(along))
        return along->dtype == WEFT_K_F32 ? "weft_along_sort_f32__ref" : "weft_along_sort_i32__ref";
    return is_scan(along) ? pieces_of(along)->name : weft_along_loops_of(along)->arg_name;
}

uint32_t weft_along_cpu(const struct weft_along *along) { return is_order(along) ? 0 : weft_level_cpu(along->cpu); }

static int64_t element_bytes(const struct weft_along *along) { return weft_along_loops_of(along)->bytes; }

bool weft_along_cuts(int64_t lines, int64_t n) { return lines >= 1 && lines < MOST_LINES && n >= 2 * CHUNK; }

/* As many chunks as the shape says, so that every number of workers gives the same bits. */
void weft_along_cut(struct weft_along *along, int64_t lines)
{
    along->chunks = 1;
    along->chunk = along->n;
    along->shared = 0;
    if (!along->split || !is_scan(along) || weft_along_is_chain(along) || !weft_along_cuts(lines, along->n))
        return;
    const int64_t wanted = along->n / CHUNKS, least = wanted > CHUNK ? wanted : CHUNK;
    along->chunk = ((least < LARGEST ? least : LARGEST) + GRAIN - 1) / GRAIN * GRAIN;
    along->chunks = (along->n + along->chunk - 1) / along->chunk;
    along->shared = weft_along_chunks_shared(lines * along->chunks);
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
    weft_along_cut(along, lines);
    const int32_t parts = weft_parts_for((is_order(along) ? 16 : 2) * lines * along->n * element_bytes(along), workers);
    const int64_t units = lines * along->chunks;
    along->past = is_scan(along) && along->cache && along->n * element_bytes(along) >= LEAST_STREAM &&
                  (uint64_t)(lines * along->n * element_bytes(along)) > along->cache;
    along->parts = units < 1 ? 1 : units < parts ? (int32_t)units : parts;
}

/* Lines whose elements are neighbours, one by one: each has vectors of its own. */
static void scan_neighbours(const struct weft_along *along, const struct weft_along_pieces *prefix, char *out,
                            const char *in, int64_t out_line, int64_t in_line, int64_t lines)
{
    const int64_t bytes = element_bytes(along), first = along->reverse ? along->n - 1 : 0;
    union weft_along_sum before;
    prefix->start(along, &before);
    for (int64_t i = 0; i < lines && along->n > 0; i++)
        prefix->piece(along, out + (i * out_line + first) * bytes, in + (i * in_line + first) * bytes, along->n,
                      0, &before, NULL);
}

static void run_lines(const struct weft_along *along, const struct weft_along_pieces *prefix,
                      const struct weft_k_walk *walk, int64_t lines, int inner, void *scratch)
{
    const int64_t in_line = along->in_stride[inner], out_line = along->out_stride[inner];
    const struct weft_along_loops *const loops = weft_along_loops_of(along);
    char *const in = walk->at[0], *const out = walk->at[1];
    if (is_order(along)) {
        weft_along_order(along, out, (int64_t *)(void *)walk->at[2], in, scratch);
        return;
    }
    if (prefix)
        scan_neighbours(along, prefix, out, in, out_line, in_line, lines);
    else
        (is_scan(along) ? loops->scan : loops->arg)(along, out, in, out_line, in_line, lines);
}

void weft_along_run(const struct weft_along *along, void *out, int64_t *index, const void *in, void *scratch, int part,
                    int parts)
{
    if (along->chunks > 1) {
        weft_along_run_chunks(along, pieces_of(along), element_bytes(along), out, in, scratch, parts);
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
    const struct weft_along_pieces *const prefix = is_scan(along) ? weft_along_prefix_of(along) : NULL;
    weft_k_walk_seek(&walk, at);
    while (at < end) {
        int64_t count = walk.extent[inner] - walk.index[inner];
        count = count < end - at ? count : end - at;
        count = count < most ? count : most;
        run_lines(along, prefix, &walk, count, inner, scratch);
        at += count;
        for (int64_t i = 0; i < count && at < end; i++)
            weft_k_walk_next(&walk, inner);
    }
}
