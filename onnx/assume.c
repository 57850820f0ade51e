/* SPDX-License-Identifier: Apache-2.0 */
/* assume.c: sizes that a model takes for granted.
 *
 * Two extents that have to be equal may be so only for some sizes: a table of 512 positions, sliced to min(length, 512)
 * rows, is added to `length` rows. A longer input would be an error when the model runs, so nothing is lost by refusing
 * it when tensors are bound; and with length <= 512 the two are one expression. Expressions that exist do not become
 * simpler when a range is narrowed, so such a range is noted here, the node is given up without an error, and the model
 * is imported once more from the start. Each import notes all that it meets; each new one begins with more.
 *
 *     min(length, 512)  =  length      holds for length in 0..512, and nothing else was asked:  note `length 0..512`
 *
 * The sizes are guessed by looking at values and then proved: both expressions, written out and read again in a table
 * of symbols with the narrower range, must be the same word. */
#include "onnx/import.h"

#include <inttypes.h>
#include <string.h>

/* --- guessing ----------------------------------------------------------------------------------------------------- */

struct question {
    const struct weft_dims *dims;
    weft_dim a, b;
    uint32_t symbol;
    int64_t *symbols; /* values of all symbols */
};

static bool equal_at(struct question *q, int64_t size)
{
    q->symbols[q->symbol] = size;
    return weft_dim_evaluate(q->dims, q->a, q->symbols) == weft_dim_evaluate(q->dims, q->b, q->symbols);
}

/* The last size on the way from `good`, where the two are equal, to `end`, if equal sizes are one interval. */
static int64_t last_equal(struct question *q, int64_t good, int64_t end)
{
    int64_t bad = end + (end >= good ? 1 : -1);
    while (bad - good > 1 || good - bad > 1) {
        const int64_t middle = good + (bad - good) / 2;
        if (equal_at(q, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* The interval of equal sizes around one of a few likely ones. False if there is none of at least two sizes. */
static bool guess(struct question *q, int64_t *ret_low, int64_t *ret_high)
{
    const struct weft_symbol_info *info = weft_symbol_at(q->dims, q->symbol);
    const int64_t likely[] = {info->hint, 2, 3, 8, 64, 512, 4096, info->low, info->high};
    for (size_t i = 0; i < sizeof likely / sizeof *likely; i++) {
        if (likely[i] < info->low || likely[i] > info->high || !equal_at(q, likely[i]))
            continue;
        *ret_low = last_equal(q, likely[i], info->low);
        *ret_high = last_equal(q, likely[i], info->high);
        if (*ret_low < *ret_high)
            return true;
    }
    return false;
}

/* --- proving ------------------------------------------------------------------------------------------------------ */

static bool restate(struct onnx_op *op, struct weft_dims *to, weft_dim d, weft_dim *ret)
{
    const char *text = weft_onnx_dim_text(op, d), *message;
    return weft_dim_parse(to, &text, text + strlen(text), ret, &message);
}

/* Are a and b one expression where the symbol is within [low, high]? */
static bool is_same_within(struct onnx_op *op, weft_dim a, weft_dim b, uint32_t symbol, int64_t low, int64_t high)
{
    const struct weft_dims *dims = op->graph->dims;
    struct weft_dims *narrow = weft_dims_new(op->importer->reader.arena);
    weft_dims_try(narrow);
    for (uint32_t i = 0; i < weft_symbol_count(dims); i++) {
        const struct weft_symbol_info *info = weft_symbol_at(dims, i);
        weft_symbol_add(narrow, info->name, i == symbol ? low : info->low, i == symbol ? high : info->high, 0);
    }
    weft_dim x, y;
    return restate(op, narrow, a, &x) && restate(op, narrow, b, &y) && weft_dim_same(x, y) && !weft_dims_tried(narrow);
}

/* --- noting ------------------------------------------------------------------------------------------------------- */

static void note(struct onnx_op *op, weft_dim a, weft_dim b, uint32_t symbol, int64_t low, int64_t high)
{
    struct onnx_assumptions *assumptions = op->importer->assumptions;
    struct weft_arena *arena = assumptions->arena;
    const char *name = weft_symbol_at(op->graph->dims, symbol)->name;
    const char *reason = weft_arena_format(arena, "%s and %s must be equal", weft_onnx_dim_text(op, a),
                                           weft_onnx_dim_text(op, b));
    const char *where = op->name ? op->name : "";
    assumptions->item = weft_grow(arena, assumptions->item, &assumptions->capacity, assumptions->count + 1,
                                  sizeof *assumptions->item);
    assumptions->item[assumptions->count++] = (struct onnx_assumption){
        .symbol = weft_arena_copy(arena, name, strlen(name)), .low = low, .high = high, .reason = reason,
        .where = weft_arena_copy(arena, where, strlen(where))};
}

bool weft_onnx_assume_same(struct onnx_op *op, weft_dim a, weft_dim b)
{
    const struct weft_dims *dims = op->graph->dims;
    if (op->graph != op->graph->root || !op->importer->assumptions)
        return false; /* what holds in a branch need not hold for the whole */
    const uint32_t count = weft_symbol_count(dims);
    struct question q = {.dims = dims, .a = a, .b = b};
    q.symbols = weft_new(op->importer->reader.arena, int64_t, count + 1);
    for (q.symbol = 0; q.symbol < count; q.symbol++) {
        int64_t low, high;
        if (weft_symbol_at(dims, q.symbol)->data ||
            !(weft_dim_mentions(dims, a, q.symbol) || weft_dim_mentions(dims, b, q.symbol)))
            continue;
        for (uint32_t i = 0; i < count; i++) /* others: values that are unlikely to agree by chance */
            q.symbols[i] = weft_symbol_at(dims, i)->low + 2 + (int64_t)i % 5;
        const struct weft_symbol_info info = *weft_symbol_at(dims, q.symbol);
        if (guess(&q, &low, &high) && (low > info.low || high < info.high) &&
            is_same_within(op, a, b, q.symbol, low, high)) {
            note(op, a, b, q.symbol, low, high);
            return true;
        }
    }
    return false;
}

void weft_onnx_apply_assumptions(const struct onnx_assumptions *assumptions, const char *symbol, int64_t *low,
                                 int64_t *high)
{
    for (uint32_t i = 0; i < assumptions->count; i++)
        if (strcmp(assumptions->item[i].symbol, symbol) == 0) {
            *low = assumptions->item[i].low > *low ? assumptions->item[i].low : *low;
            *high = assumptions->item[i].high < *high ? assumptions->item[i].high : *high;
        }
}

void weft_onnx_report_assumptions(const struct onnx_assumptions *assumptions, struct weft_graph *graph)
{
    for (uint32_t i = 0; i < assumptions->count; i++) {
        const struct onnx_assumption *item = &assumptions->item[i];
        weft_note(graph->context, WEFT_NOTE, &(struct weft_place){.file = graph->file, .where = item->where},
                  "%s is limited to %" PRId64 "..%" PRId64 ", since %s", item->symbol, item->low, item->high,
                  item->reason);
        weft_add_remark(graph, "import", WEFT_NO_VALUE, "assumed",
                        "%s is within %" PRId64 "..%" PRId64 ", since %s at %s", item->symbol, item->low, item->high,
                        item->reason, item->where);
    }
}
