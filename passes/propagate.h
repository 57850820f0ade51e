/* SPDX-License-Identifier: Apache-2.0 */
/* propagate.h: propagate_memory_format at work: what it shares with what it says. */
#ifndef WEFT_PROPAGATE_H
#define WEFT_PROPAGATE_H

#include "passes/passes.h"
#include "sched/format.h"

struct weft_placing {
    struct weft_graph *graph;
    struct weft_formats *formats;
    struct weft_placing_note *note; /* remarks to be, until values have their last numbers */
    uint32_t notes, note_capacity;
    uint32_t *stored;           /* by value: the layout that it really has */
    bool *in_registers;         /* by value: what says {-}, until its group is opened */
    bool *packs;                /* by value: a relayout that was there, and packs rows with gaps for a function */
    uint32_t values;            /* of the graph before this pass added some */
    struct weft_converted *copy; /* relayouts so far */
    uint32_t *first_copy;       /* by value: index + 1 */
    uint32_t copies, capacity;
    bool changed;
};

struct weft_converted {
    uint32_t layout, from, next; /* next: of the same value, + 1 */
    weft_val of;                /* the value of the graph as it came */
    weft_val source, value;     /* what is converted, of itself or an earlier relayout; and what that makes */
    weft_val reader;            /* result of the first node that reads it; of a promise, the value itself */
    bool promised;              /* a result of the graph */
    bool is_extra;              /* no part of what the choice costs */
    uint32_t readers;
    int64_t saves;              /* ps: what they would pay more for reading the value as it is */
};

struct weft_placing_note {
    weft_val value;
    const char *verdict, *text;
};

/* --- propagate_copies.c ------------------------------------------------------------------------------------------- */

/* The relayout of a value of the graph as it came in this layout, if there is one. */
struct weft_converted *weft_find_copy(const struct weft_placing *placing, weft_val v, uint32_t layout);
/* A relayout, right behind what it converts, which is the value as it is in layout `from`; it has no reader yet, but is
 * for `reader`. A view whose operand lies otherwise than it was chosen to be written is converted to that first. */
struct weft_converted *weft_add_copy(struct weft_placing *placing, weft_val v, uint32_t from, uint32_t layout,
                                     weft_val reader);
/* Somebody reads it, who saves so much. */
void weft_count_reader(struct weft_converted *copy, weft_val reader, int64_t saves);
/* The value in this layout: itself, or a relayout of what it is in layout `from`, which all share that want the same.
 * `reader` is a result of the node that does, or the value itself where it is promised so; `saves`: what it would pay
 * more. */
weft_val weft_value_in(struct weft_placing *placing, weft_val v, uint32_t from, uint32_t layout, weft_val reader,
                       int64_t saves);

/* --- propagate_orders.c ------------------------------------------------------------------------------------------- */

/* Custom functions get and write the orders that they take, whatever has been chosen. Fills `packs`. */
void weft_place_orders(struct weft_placing *placing);

/* --- propagate_remarks.c ------------------------------------------------------------------------------------------ */

/* What the choice costs, beside others. */
void weft_say_costs(struct weft_placing *placing);
/* What was chosen for a value, and what the best other choice would have cost; said at the end. */
void weft_say_stored(struct weft_placing *placing, weft_val value);
/* When all values have their last numbers: these, and what was converted for whom, which is also recorded. */
void weft_say_conversions(struct weft_placing *placing);

#endif
