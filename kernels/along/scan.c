/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: scans strip by strip, by the loops of weft_along_run. The contract: scan.h. */
#include "kernels/along/scan.h"

#include "kernels/along/along.h"

/* What a strip is gone along for. */
enum aim { ELEMENTS, TOTAL, BOTH };

/* What a line that is cut has come to. */
struct line {
    union weft_along_sum sum, before; /* up to here; up to the chunk */
    union weft_along_sum lane[WEFT_ALONG_LANES]; /* of the chunk, not all of ELEMENTS */
    int64_t left;                     /* elements of the chunk from here on */
    enum aim aim;
};

void weft_scan_prepare(struct weft_scan *scan, uint32_t cpu, int64_t lines, int64_t n, int64_t in_step,
                       int64_t out_step)
{
    scan->along = (struct weft_along){.op = scan->op, .dtype = scan->dtype, .exclusive = scan->exclusive,
                                      .reverse = scan->reverse, .cpu = cpu, .n = n, .in_step = in_step,
                                      .out_step = out_step, .split = true};
    const struct weft_along_pieces *const prefix = scan->beside ? NULL : weft_along_prefix_of(&scan->along);
    scan->loops = weft_along_loops_of(&scan->along);
    scan->pieces = prefix ? prefix : &scan->loops->pieces;
    scan->in_vectors = prefix != NULL;
    scan->lines = lines;
    scan->chunk = 0;
    if (prefix)
        weft_along_cut(&scan->along, lines);
    if (scan->along.chunks > 1)
        scan->chunk = scan->along.chunk;
}

size_t weft_scan_bytes(const struct weft_scan *scan, int64_t lines)
{
    return (size_t)lines * (scan->chunk ? sizeof(struct line) : sizeof(union weft_along_sum));
}

static void begin_chunk(const struct weft_scan *scan, struct line *line)
{
    line->left = scan->chunk;
    line->before = line->sum;
    for (int k = 0; k < WEFT_ALONG_LANES; k++)
        scan->pieces->start(&scan->along, &line->lane[k]);
}

/* What comes behind a chunk is put together of what comes before it and of what it comes to, if that is known so. */
static void end_chunk(const struct weft_scan *scan, struct line *line)
{
    union weft_along_sum total, after;
    scan->pieces->total_end(&scan->along, line->lane, &total);
    if (scan->pieces->join(&scan->along, &line->before, &total, &after))
        line->sum = after;
}

void weft_scan_begin(const struct weft_scan *scan, void *state, int64_t lines)
{
    union weft_along_sum *const sum = state;
    struct line *const line = state;
    for (int64_t i = 0; i < lines && !scan->chunk; i++)
        scan->pieces->start(&scan->along, &sum[i]);
    for (int64_t i = 0; i < lines && scan->chunk; i++) {
        scan->pieces->start(&scan->along, &line[i].sum);
        line[i].aim = BOTH;
        begin_chunk(scan, &line[i]);
    }
}

static void strip_of_chunk(const struct weft_scan *scan, struct line *line, char *out, const char *in, int64_t n,
                           const struct weft_scan_ahead *ahead)
{
    if (line->aim != ELEMENTS)
        scan->pieces->total_in(&scan->along, in, n, line->lane);
    if (line->aim != TOTAL)
        scan->pieces->go_on(&scan->along, out, in, n, ahead, &line->sum);
    line->left -= n;
    if (line->aim != BOTH || line->left > 0)
        return;
    end_chunk(scan, line);
    begin_chunk(scan, line);
}

bool weft_scan_strip(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t n,
                     const struct weft_scan_ahead *ahead)
{
    const int64_t bytes = scan->loops->bytes, out_step = scan->along.out_step * bytes;
    const int64_t in_step = scan->along.in_step * bytes;
    struct line *const line = state;
    if (!scan->chunk) {
        const int64_t first = scan->reverse ? n - 1 : 0;
        scan->pieces->go_on(&scan->along, (char *)out + first * out_step, (const char *)in + first * in_step, n, ahead,
                            state);
        return true;
    }
    const bool makes = line->aim != TOTAL;
    for (int64_t done = 0; done < n;) {
        const int64_t some = n - done < line->left ? n - done : line->left, at = scan->reverse ? n - 1 - done : done;
        strip_of_chunk(scan, line, (char *)out + at * out_step, (const char *)in + at * in_step, some, ahead);
        done += some;
    }
    return makes;
}

void weft_scan_beside(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t out_line,
                      int64_t in_line, int64_t lines)
{
    scan->loops->beside(&scan->along, state, out, in, out_line, in_line, lines);
}

void weft_scan_lines(const struct weft_scan *scan, void *out, const void *in, int64_t out_line, int64_t in_line,
                     int64_t lines)
{
    const struct weft_scan_ahead nothing = {.streams = 0};
    const int64_t bytes = scan->loops->bytes, most = scan->in_vectors ? 1 : WEFT_ALONG_TILE;
    for (int64_t line = 0; line < lines; line += most) {
        char *const to = (char *)out + line * out_line * bytes;
        const char *const from = (const char *)in + line * in_line * bytes;
        if (scan->in_vectors) {
            union weft_along_sum sum;
            weft_scan_begin(scan, &sum, 1);
            weft_scan_strip(scan, &sum, to, from, scan->along.n, &nothing);
        } else {
            scan->loops->scan(&scan->along, to, from, out_line, in_line, lines - line < most ? lines - line : most);
        }
    }
}

/* --- chunks ------------------------------------------------------------------------------------------------------- */

struct share {
    const struct weft_scan *scan;
    struct line *line;
    void (*run)(void *user, const struct weft_scan_chunk *chunk);
    void *user;
};

static void run_chunk(const struct share *share, const struct weft_along_chunk *chunk, enum aim aim)
{
    begin_chunk(share->scan, share->line);
    share->line->aim = aim;
    share->line->left = chunk->n + 1; /* its end is here */
    share->run(share->user, &(struct weft_scan_chunk){chunk->line, chunk->begin, chunk->n});
}

static void total_of(void *user, const struct weft_along_chunk *chunk, union weft_along_sum *ret)
{
    const struct share *const share = user;
    run_chunk(share, chunk, TOTAL);
    share->scan->pieces->total_end(&share->scan->along, share->line->lane, ret);
}

static void scan_one(void *user, const struct weft_along_chunk *chunk, const struct weft_along_chunk *later,
                     const union weft_along_sum *before, union weft_along_sum *ret_after)
{
    const struct share *const share = user;
    (void)later; /* strips ask for what they read themselves */
    share->line->sum = *before;
    run_chunk(share, chunk, ret_after ? BOTH : ELEMENTS);
    if (!ret_after)
        return;
    end_chunk(share->scan, share->line);
    *ret_after = share->line->sum;
}

size_t weft_scan_shared(const struct weft_scan *scan) { return scan->chunk ? scan->along.shared : 0; }

void weft_scan_share(const struct weft_scan *scan, void *state, void (*run)(void *user, const struct weft_scan_chunk *),
                     void *user, void *shared, int parts)
{
    struct share share = {scan, state, run, user};
    const struct weft_along_work work = {&share, total_of, scan_one};
    weft_along_take_turns(&scan->along, scan->pieces, scan->lines, &work, shared, parts);
}

uint32_t weft_scan_cpu(const struct weft_scan *scan) { return weft_along_cpu(&scan->along); }
