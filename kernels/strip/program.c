/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: getting a strip program ready: how large tiles are, where values lie in scratch memory (program_axes.c:
 * which axis strips run along). The contract: program.h. */
#include "kernels/strip/program.h"
#include "kernels/walk.h"

#include <assert.h>
#include <limits.h>

#define SHORT_STRIP 512 /* points: best from memory, and within a tenth of the best in the second-level cache */
#define LONG_STRIP  1024 /* a whole line up to that length: one call instead of two */
#define NEAR_BYTES  (16 << 10) /* of a tile of rows: half of the first-level cache */
#define FAR_BYTES   (256 << 10) /* of a tile of columns, which the second-level cache has to hold */
#define MOST_ROWS   256
#define PAGE        4096 /* a load waits for a store that is not finished yet to the same place of another page, */
#define APART       2560 /* so buffers begin as far apart within pages as several of them can */
#define BLOCK       1024 /* points of a block of short lines */
#define LEAST_COLUMNS 16
#define LEAST_STREAM 256 /* bytes of a line that goes past the caches: short ones are mostly lines shared by two */

size_t weft_program_bytes(const struct weft_program_counts *c)
{
    return sizeof(struct weft_program) + c->values * sizeof(struct weft_program_value) +
           c->ops * sizeof(struct weft_program_op) + c->stages * sizeof(struct weft_program_stage) +
           c->folds * sizeof(struct weft_program_fold) +
           c->scans * sizeof(struct weft_program_scan) +
           c->guards * (sizeof(struct weft_program_guard) + 2 * sizeof(int64_t)) + 7 * 64;
}

static void *take(char **memory, size_t bytes)
{
    char *const taken = *memory;
    *memory += (bytes + 63) & ~(size_t)63;
    return taken;
}

struct weft_program *weft_program_open(void *memory, const struct weft_program_counts *c)
{
    struct weft_program *const p = memory;
    char *rest = (char *)(p + 1);
    *p = (struct weft_program){.values = (uint16_t)c->values, .ops = (uint16_t)c->ops, .stages = (uint16_t)c->stages,
                               .folds = (uint16_t)c->folds, .scans = (uint16_t)c->scans,
                               .guards = (uint16_t)c->guards};
    p->value = take(&rest, c->values * sizeof *p->value);
    p->op = take(&rest, c->ops * sizeof *p->op);
    p->stage = take(&rest, c->stages * sizeof *p->stage);
    p->fold = take(&rest, c->folds * sizeof *p->fold);
    p->scan = take(&rest, c->scans * sizeof *p->scan);
    p->guard = take(&rest, c->guards * sizeof *p->guard);
    p->bound = take(&rest, 2 * c->guards * sizeof *p->bound);
    return p;
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

static int64_t at_most(int64_t x, int64_t most) { return x < most ? x : most; }

/* Bytes that lie about while a tile is done, for an outer point. An array that several stages load is there once. */
static int64_t point_bytes(const struct weft_program *p)
{
    bool seen[WEFT_PROGRAM_ARGUMENTS] = {false};
    int64_t bytes = 1;
    for (int v = 0; v < p->values; v++) {
        const struct weft_program_value *const value = &p->value[v];
        const bool is_array = weft_program_is_memory(value) && weft_program_has_inner(p, v) && !seen[value->argument];
        if (is_array || value->place == WEFT_PROGRAM_TILE)
            bytes += value->bytes * p->folded;
        if (is_array)
            seen[value->argument] = true;
    }
    return bytes;
}

static bool visits_twice(const struct weft_program *p)
{
    int visits = 0;
    for (int s = 0; s < p->stages; s++)
        visits += p->stage[s].inside;
    return visits > 1;
}

static int64_t strip_of(int64_t extent) { return extent <= LONG_STRIP ? (extent > 0 ? extent : 1) : SHORT_STRIP; }

static void cut_tiles(struct weft_program *p)
{
    const int64_t last = p->outer[p->outer_rank - 1];
    if (p->along_inner) {
        const int64_t near = p->folds ? NEAR_BYTES : 4 * NEAR_BYTES;
        const int64_t rows = at_most(near / point_bytes(p), MOST_ROWS);
        p->tile = at_most(rows > 1 ? rows : 1, last > 0 ? last : 1);
        p->strip = strip_of(p->inner[p->inner_rank - 1]);
        p->block = p->strip <= WEFT_PROGRAM_SHORT_LINE && p->inner_rank == 1 ? BLOCK : p->strip;
        return;
    }
    p->tile = strip_of(last);
    if (p->folded > 1 && visits_twice(p)) {
        const int64_t columns = FAR_BYTES / point_bytes(p) / LEAST_COLUMNS * LEAST_COLUMNS;
        p->tile = at_most(p->tile, columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS);
    }
    p->strip = p->tile;
    p->block = p->tile <= WEFT_PROGRAM_SHORT_LINE && p->inner_rank == 1 ? BLOCK : p->strip;
}

/* --- scratch memory ----------------------------------------------------------------------------------------------- */

static size_t reserve(struct weft_program *p, int64_t bytes)
{
    const size_t at = p->scratch;
    const int64_t lines = (bytes + 63) & ~(int64_t)63;
    p->scratch += (size_t)(lines + ((APART - lines) & (PAGE - 1)));
    return at;
}

/* Of the largest element of a strip. */
static int strip_bytes(const struct weft_program *p)
{
    int most = 1;
    for (int v = 0; v < p->values; v++)
        if (p->value[v].place == WEFT_PROGRAM_STRIP && p->value[v].bytes > most)
            most = p->value[v].bytes;
    return most;
}

static int last_reader(const struct weft_program *p, int stage, int value)
{
    int last = -1;
    for (int i = p->stage[stage].first; i < p->stage[stage].first + p->stage[stage].ops; i++)
        for (int k = 0; k < p->op[i].ins; k++)
            last = p->op[i].in[k] == value ? i : last;
    return last;
}

/* Is a value that op i makes an operand or the result of a scan, or read behind one? Compiled code goes along a strip
 * with all ops between two scans, so that it needs such values whole, and for longer than their last reader. */
static bool meets_scan(const struct weft_program *p, int stage, int i)
{
    bool behind = p->op[i].scans, meets = behind;
    for (int k = i + 1; k < p->stage[stage].first + p->stage[stage].ops; k++) {
        behind |= p->op[k].scans;
        for (int in = 0; in < p->op[k].ins; in++)
            meets |= behind && p->op[k].in[in] == p->op[i].out;
    }
    return meets;
}

/* Strips that are read for the last time give their memory to those that are made next. */
static void place_strips(struct weft_program *p, int stage, size_t slot_bytes)
{
    enum { MOST = 64 };
    size_t at[MOST];
    int until[MOST], slots = 0;
    for (int i = p->stage[stage].first; i < p->stage[stage].first + p->stage[stage].ops; i++) {
        struct weft_program_value *const out = &p->value[p->op[i].out];
        if (out->place != WEFT_PROGRAM_STRIP || p->op[i].part) /* of a part the first op has said where it is */
            continue;
        int slot = 0;
        while (slot < slots && until[slot] >= i)
            slot++;
        if (slot == slots) {
            at[slots] = reserve(p, (int64_t)slot_bytes);
            slots += slots < MOST - 1; /* the last one is handed out once only */
        }
        until[slot] = meets_scan(p, stage, i) ? INT_MAX : last_reader(p, stage, p->op[i].out);
        out->at = at[slot];
    }
}

static void place_values(struct weft_program *p)
{
    const size_t heads = p->values * (2 * sizeof(char *) + (2 + WEFT_PROGRAM_SKIPS) * sizeof(int64_t)) +
                         p->folds * sizeof(char *) + p->ops * sizeof(struct weft_strip_args);
    p->scratch = 0;
    reserve(p, (int64_t)heads);
    for (int v = 0; v < p->values; v++) {
        struct weft_program_value *const value = &p->value[v];
        if (value->place == WEFT_PROGRAM_TILE)
            value->at = reserve(p, p->tile * p->folded * value->bytes);
        else if (value->place == WEFT_PROGRAM_OUTER)
            value->at = reserve(p, p->tile * value->bytes);
        if (p->block > p->strip && value->place != WEFT_PROGRAM_STRIP && value->place != WEFT_PROGRAM_NUMBER)
            value->copy = reserve(p, p->block * value->bytes);
    }
    const size_t begin = p->scratch;
    size_t most = begin;
    for (int s = 0; s < p->stages; s++) {
        p->scratch = begin;
        place_strips(p, s, (size_t)(p->block * strip_bytes(p)));
        most = p->scratch > most ? p->scratch : most;
    }
    p->scratch = most;
    for (int f = 0; f < p->folds; f++)
        p->fold[f].at = reserve(p, (int64_t)weft_program_fold_prepare(p, &p->fold[f]));
    for (int s = 0; s < p->scans; s++)
        p->scan[s].at = reserve(p, (int64_t)weft_scan_bytes(&p->scan[s].scan, p->along_inner ? 1 : p->tile));
}

/* How each value goes on along a strip, and from one row of strips to the next. */
static void step_values(struct weft_program *p)
{
    const int outer = p->outer_rank - 1, inner = p->inner_rank - 1;
    for (int v = 0; v < p->values; v++) {
        struct weft_program_value *const value = &p->value[v];
        const int64_t across = value->outer[outer], along = inner >= 0 ? value->inner[inner] : 0;
        switch (value->place) {
        case WEFT_PROGRAM_ARGUMENT:
            value->stride = p->along_inner ? along : across;
            value->step = value->stride * value->bytes;
            value->next = (p->along_inner ? across : along) * value->bytes;
            break;
        case WEFT_PROGRAM_TILE:
            value->stride = 1;
            value->step = value->bytes;
            value->next = (p->along_inner ? p->folded : p->tile) * value->bytes;
            break;
        case WEFT_PROGRAM_OUTER:
            value->stride = !p->along_inner;
            value->step = value->stride * value->bytes;
            value->next = p->along_inner ? value->bytes : 0;
            break;
        default:
            value->stride = value->place == WEFT_PROGRAM_STRIP;
            value->step = value->next = 0;
            break;
        }
    }
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* What the ops one by one would read and write. */
static int64_t moved_bytes(const struct weft_program *p)
{
    int64_t bytes = 0;
    for (int s = 0; s < p->stages; s++)
        for (int i = p->stage[s].first; i < p->stage[s].first + p->stage[s].ops; i++) {
            int64_t width = p->value[p->op[i].out].bytes;
            for (int k = 0; k < p->op[i].ins; k++)
                width += p->value[p->op[i].in[k]].bytes;
            bytes += width * p->points * (p->stage[s].inside ? p->folded : 1);
        }
    return bytes;
}

int64_t weft_program_chunks(const struct weft_program *p)
{
    const int64_t line = p->outer[p->outer_rank - 1];
    return line > 0 ? p->points / line * ((line + p->chunk - 1) / p->chunk) : 0;
}

void weft_program_prepare(struct weft_program *p, int workers)
{
    weft_program_order_axes(p);
    cut_tiles(p);
    step_values(p);
    weft_program_scans_prepare(p);
    static_assert(SHORT_STRIP % WEFT_SCAN_PIECE == 0, "scans keep their bits where strips are whole pieces");
    place_values(p);
    const int64_t grain = p->along_inner ? 1 : WEFT_PROGRAM_GRAIN;
    const int64_t grains = p->chunk ? weft_program_chunks(p) : (p->points + grain - 1) / grain;
    const int32_t parts = weft_parts_for(moved_bytes(p), workers);
    p->parts = grains < 1 ? 1 : grains < parts ? (int32_t)grains : parts;
    weft_program_scans_share(p, parts);
}

static bool lines_follow(const struct weft_program *p)
{
    const int last = p->outer_rank - 1;
    bool follow = p->inner_rank == 1;
    for (int v = 0; v < p->values && follow; v++)
        follow = p->value[v].place != WEFT_PROGRAM_ARGUMENT ||
                 p->value[v].outer[last] == p->value[v].inner[0] * p->inner[0];
    return follow;
}

void weft_program_prepare_pieces(struct weft_program *p)
{
    weft_program_merge_axes(p);
    for (int v = 0; v < p->values; v++) /* of these there is memory for a tile, and pieces may have more rows */
        assert(p->value[v].place != WEFT_PROGRAM_TILE && p->value[v].place != WEFT_PROGRAM_OUTER);
    p->pieces = p->along_inner = true;
    p->lines_follow = lines_follow(p);
    p->folded = p->inner[p->inner_rank - 1];
    p->points = p->outer[p->outer_rank - 1];
    cut_tiles(p);
    step_values(p);
    place_values(p);
    p->parts = 1;
}

void weft_program_stream(struct weft_program *p, size_t cache)
{
    const int64_t length = p->along_inner ? p->inner[p->inner_rank - 1] : p->outer[p->outer_rank - 1];
    double bytes = 0;
    for (int s = 0; s < p->stages; s++)
        for (int i = p->stage[s].first; i < p->stage[s].first + p->stage[s].ops; i++) {
            const struct weft_program_value *const out = &p->value[p->op[i].out];
            if (p->op[i].kernel && p->stage[s].inside && out->place == WEFT_PROGRAM_ARGUMENT && out->stride == 1 &&
                length * out->bytes >= LEAST_STREAM)
                bytes += (double)p->points * (double)p->folded * out->bytes;
        }
    p->past = cache && bytes > (double)cache ? UINT64_MAX : 0; /* 0: not known */
}
