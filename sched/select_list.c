/* SPDX-License-Identifier: Apache-2.0 */
/* select_list.c: the list of choices. Each is a step that is bound at the hints, to see which kernel that makes of it
 * and what it needs; what it takes is predicted from what the kind says that there is to do, and from the bytes that
 * have to be read and written. */
#include "sched/epilogue.h"
#include "sched/format.h"
#include "sched/select.h"
#include "sched/target.h"

#include <math.h>
#include <stdalign.h>
#include <string.h>

/* --- how long it takes -------------------------------------------------------------------------------------------- */

/* Bytes that are there, not those that are found again along repeated axes. */
static double stored_bytes(const struct weft_tensor *t)
{
    double bytes = (double)weft_dtype_bits(t->dtype) / 8;
    for (int i = 0; i < t->rank; i++)
        bytes *= t->stride[i] != 0 || t->extent[i] == 0 ? (double)t->extent[i] : 1;
    return bytes;
}

/* Elements that a form's loads of an array can read at most: where all of them look places up, one for each point. */
static double looked_up(const struct weft_form *form, weft_val array, const int64_t *symbols)
{
    double elements = 0;
    bool is_read = false; /* what a contraction reads by itself no load of the form does */
    for (uint32_t i = 0; i < form->ops; i++) {
        const struct weft_form_op *const op = &form->op[i];
        bool looks_up = false;
        double points = 1;
        if (op->kind != WEFT_FORM_LOAD || !weft_is(form->array[op->array].value, array))
            continue;
        for (int k = 0; k < form->map[op->map].rank; k++)
            looks_up |= form->map[op->map].at[k].data != 0;
        if (!looks_up)
            return INFINITY;
        for (unsigned a = 0; a < form->axes; a++)
            points *= op->axes >> a & 1 ? (double)weft_dim_evaluate(form->dims, form->axis[a].extent, symbols) : 1;
        elements += points;
        is_read = true;
    }
    return is_read ? elements : INFINITY;
}

/* Elements that a step reads of operand i at most: of a table, as many as there are places for them. */
static double most_read(const struct weft_select *s, const struct weft_bind *bind, uint32_t i)
{
    const struct weft_step *const step = bind->step;
    const struct weft_form *const form = weft_step_form(step);
    if (form)
        return looked_up(form, step->in[i], s->symbols);
    const bool moves = i == 0 && step->node.id && weft_op_of(s->graph, step->node)->traits & WEFT_MOVEMENT;
    return moves ? weft_tensor_elements(&bind->out) : INFINITY;
}

/* What moving up to `most` elements of an array takes; which cache they lie in follows from the whole of it. Narrow
 * vectors take longer for what lies near; memory does not wait for them. */
static double stream_ps(const struct weft_target *target, const struct weft_tensor *t, double most,
                        enum weft_price first, double slower)
{
    const double bytes = stored_bytes(t), moved = most * (double)weft_dtype_bits(t->dtype) / 8;
    const enum weft_price level = weft_format_level(target, first, (int64_t)bytes);
    return (bytes < moved ? bytes : moved) * (double)weft_price_of(target, level) * 1e-3 *
           (level == first ? slower : 1);
}

/* Prices are those of the widest vectors where they were measured. A kernel with vectors is taken to work as its level
 * does, also where half a vector is all that it fills. */
static double slower_at(const struct weft_target *target, const struct weft_step *step, const void *descriptor)
{
    const bool plain = !step->kind->cpu || step->kind->cpu(descriptor) == 0;
    return (double)weft_prices_of(target)->lanes / weft_price_lanes(plain ? 0 : target->cpu & ~step->without);
}

/* What the evaluator and plain loops take for an element that they load or store, by its type, and for a point that
 * they visit, on Zen 4. Of nine ops that the evaluator computed seven took 0.9 to 1.15 times as long as this says, an
 * addition a quarter, and a gather of rows, which are moved as a whole, a seventieth: near enough for what comes last.
 */
enum { ELEMENT_PS = 3000, CONVERTED_PS = 20000, POINT_PS = 500 };

static double element_ps(const struct weft_tensor *t)
{
    const bool is_converted = t->dtype != WEFT_F32 && t->dtype != WEFT_F64 && weft_dtype_is_float(t->dtype);
    return weft_tensor_elements(t) * (is_converted ? CONVERTED_PS : ELEMENT_PS);
}

static double one_by_one_ps(const struct weft_select *s, const struct weft_bind *bind)
{
    const struct weft_step *const step = bind->step;
    struct weft_space space;
    double ps = 0, points = POINT_PS;
    for (uint32_t i = 0; i < step->ins + step->outs; i++) {
        const struct weft_tensor t = weft_bind_tensor(bind, i < step->ins ? step->in[i] : step->out[i - step->ins]);
        ps += element_ps(&t);
    }
    if (!weft_index_space(s->graph, step->node, &space))
        return ps;
    for (int i = 0; i < space.axes; i++)
        points *= (double)weft_dim_evaluate(s->graph->dims, space.axis[i].extent, s->symbols);
    return ps + points;
}

/* Prices are of so many threads at work; a step has no more than its parts. */
static double shared_by(const struct weft_select *s, const struct weft_bind *bind)
{
    const int workers = bind->parts < s->workers ? bind->parts : s->workers;
    return (double)weft_prices_of(s->target)->threads / (workers > 1 ? workers : 1);
}

/* The longer one of products and memory, since they go on at the same time; then what strips compute. */
static int64_t predict(const struct weft_select *s, const struct weft_bind *bind, const void *descriptor,
                       const struct weft_account *account)
{
    const double most = 1e17, shared = shared_by(s, bind);
    const double slower = slower_at(s->target, bind->step, descriptor) * shared;
    double memory = 0;
    for (uint32_t i = 0; i < bind->step->outs; i++) {
        const struct weft_tensor out = i ? weft_bind_tensor(bind, bind->step->out[i]) : bind->out;
        memory += stream_ps(s->target, &out, INFINITY, WEFT_PRICE_write_private, slower);
    }
    for (uint32_t i = 0; i < bind->step->ins; i++) {
        struct weft_tensor in = i < WEFT_STEP_POINTERS ? bind->in[i] : weft_bind_tensor(bind, bind->step->in[i]);
        if (i == 1 && bind->packed)
            in.dtype = (int)bind->packed->dtype; /* perhaps smaller elements; their order and padding do not count */
        memory += stream_ps(s->target, &in, most_read(s, bind, i), WEFT_PRICE_read_private, slower);
    }
    const int workers = bind->parts < s->workers ? bind->parts : s->workers;
    double ps = account->count * (double)weft_price_of(s->target, account->price) * 1e-3 * slower;
    if (account->signature.arithmetic == WEFT_ARITHMETIC_PLAIN ||
        account->signature.arithmetic == WEFT_ARITHMETIC_EVALUATOR)
        ps = one_by_one_ps(s, bind) / workers;
    ps = (ps > memory ? ps : memory) + (double)weft_price_of(s->target, WEFT_PRICE_step) * 1e3 +
         account->overhead_ns * 1e3 / workers;
    return (int64_t)(ps < most ? ps : most);
}

/* --- one choice --------------------------------------------------------------------------------------------------- */

struct listing {
    const struct weft_select *select;
    struct weft_choices *list;
    const char *why;           /* no kernel family takes the node */
    struct weft_choice choice; /* being made */
};

enum { DESCRIPTOR_BYTES = 2048 };

/* Most descriptors have room on the stack. */
static void *descriptor_of(const struct weft_select *s, const struct weft_step *step, char *room)
{
    const size_t bytes = weft_step_bytes(step);
    return bytes <= DESCRIPTOR_BYTES ? room : weft_arena_new(&s->graph->root->scratch, bytes);
}

/* One of the steps that make up a choice. */
static void bind_one(void *user, struct weft_step step)
{
    struct listing *const l = user;
    const struct weft_select *s = l->select;
    struct weft_choice *choice = &l->choice;
    struct weft_bind bind = weft_select_bind(s, &step, s->symbols);
    struct weft_step_pack pack = {.bytes = 0};
    if (weft_select_pack(s, &step, &pack)) {
        choice->packing = weft_new(s->arena, struct weft_packing, 1);
        *choice->packing = *pack.packing;
        choice->pack_bytes = pack.bytes;
        step.plain = pack.plain;
        bind.packed = choice->packing;
    }
    alignas(64) char room[DESCRIPTOR_BYTES];
    void *const descriptor = descriptor_of(s, &step, room);
    step.kind->bind(&bind, descriptor);
    struct weft_account account = {.signature = {.arithmetic = step.kind->arithmetic}};
    if (step.kind->account)
        step.kind->account(&bind, descriptor, &account);
    choice->kernel = step.kind->kernel(descriptor, &step);
    choice->signature = account.signature;
    choice->cpu = step.kind->cpu ? step.kind->cpu(descriptor) : 0;
    const int64_t ps = predict(s, &bind, descriptor, &account), most = INT64_MAX / 2;
    choice->ps = choice->ps < most - ps ? choice->ps + ps : most;
    choice->scratch = bind.scratch > choice->scratch ? bind.scratch : choice->scratch;
}

static bool is_listed(const struct weft_choices *list, const struct weft_choice *choice)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->choice[i].kernel, choice->kernel) == 0 &&
            weft_signature_same(&list->choice[i].signature, &choice->signature))
            return true;
    return false;
}

/* False where the list has the same kernel already. */
static bool add(struct listing *l, const struct weft_step *step)
{
    struct weft_choices *list = l->list;
    struct weft_step_sink sink = {.add = bind_one, .user = l, .arena = l->select->arena,
                                  .inside = l->select->inside};
    l->choice = (struct weft_choice){.step = *step};
    if (step->kind->expand)
        step->kind->expand(l->select->graph, step, &sink);
    else
        bind_one(l, *step);
    if (!l->choice.kernel || is_listed(list, &l->choice))
        return false;
    if (list->count == list->capacity) /* often one is all that is asked for */
        list->choice = list->capacity == 0 ? weft_new(l->select->arena, struct weft_choice, list->capacity = 1)
                                           : weft_grow(l->select->arena, list->choice, &list->capacity,
                                                       list->count + 1, sizeof *list->choice);
    list->choice[list->count++] = l->choice;
    return true;
}

/* --- all choices -------------------------------------------------------------------------------------------------- */

static void add_forms(struct listing *l, const struct weft_step *step)
{
    const struct weft_select *s = l->select;
    if (!step->kind->forms)
        return;
    struct weft_step formed = *step;
    struct weft_bind bind = weft_select_bind(s, &formed, s->symbols);
    alignas(64) char room[DESCRIPTOR_BYTES];
    void *const descriptor = descriptor_of(s, step, room);
    int32_t form[WEFT_STEP_FORMS];
    step->kind->bind(&bind, descriptor);
    const uint32_t forms = step->kind->forms(&bind, descriptor, form);
    for (uint32_t i = 0; i < forms; i++) {
        formed.form = form[i];
        add(l, &formed);
    }
}

/* What the family has at the target's CPU level, and then at the ones below: of a node, or of a contraction with what
 * finishes it. */
static void add_family(struct listing *l, const struct weft_unit *unit)
{
    const struct weft_select *s = l->select;
    struct weft_target target = *s->target;
    bool lower = true;
    while (lower) {
        const struct weft_scheduling scheduling = {s->graph, &target, s->arena};
        struct weft_step step = weft_step_of(s->graph, unit->first, s->arena);
        const bool takes = unit->nodes > 1 ? weft_select_group(&scheduling, unit, &step)
                                           : weft_select_family(&scheduling, &step);
        step.without = s->target->cpu & ~target.cpu;
        if (takes) {
            add(l, &step);
            add_forms(l, &step);
        } else if (target.cpu == s->target->cpu) {
            l->why = step.why;
        }
        lower = weft_cpu_lower(target.cpu, &target.cpu);
    }
}

static void add_other(struct listing *l, weft_node node, const struct weft_step_kind *kind)
{
    struct weft_step step = weft_step_of(l->select->graph, node, l->select->arena);
    step.kind = kind;
    step.why = l->why ? l->why : "it was asked for";
    add(l, &step);
}

/* By time, and of equal times as they came: lists are short. */
static void sort_by_time(struct weft_choice *choice, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct weft_choice moved = choice[i];
        uint32_t to = i;
        for (; to > 0 && choice[to - 1].ps > moved.ps; to--)
            choice[to] = choice[to - 1];
        choice[to] = moved;
    }
}

/* A node that is computed by no step of one of these kinds: by the caller, by bodies, or not at all. */
static bool has_choices(const struct weft_select *s, weft_node node)
{
    const struct weft_graph *const g = s->graph;
    return weft_opcode_of(g, node) != WEFT_OP_custom && !g->node[node.id].constant &&
           !(weft_op_of(g, node)->traits & WEFT_CONTROL) && !weft_target_kernel_noted(s->target, g, node);
}

static struct weft_choices *open_list(const struct weft_select *s, const struct weft_unit *unit)
{
    return has_choices(s, unit->first) ? weft_new(s->arena, struct weft_choices, 1) : NULL;
}

const struct weft_choices *weft_select_step_choice(const struct weft_select *s, const struct weft_step *step)
{
    struct listing l = {.select = s, .list = weft_new(s->arena, struct weft_choices, 1)};
    return add(&l, step) ? l.list : NULL;
}

const struct weft_choices *weft_select_first(const struct weft_select *s, const struct weft_unit *unit)
{
    const struct weft_scheduling scheduling = {s->graph, s->target, s->arena};
    struct listing l = {.select = s, .list = open_list(s, unit)};
    if (!l.list)
        return NULL;
    struct weft_step step;
    if (!weft_select_unit(&scheduling, unit, &step) && unit->nodes > 1)
        return NULL;
    return add(&l, &step) ? l.list : NULL;
}

/* Parts that are in their places already must not be copied upon themselves: then there is one choice. */
const struct weft_choices *weft_select_all(const struct weft_select *s, const struct weft_unit *unit)
{
    struct listing l = {.select = s, .list = open_list(s, unit)};
    const bool finishes = weft_epilogue_is_in(s->graph, unit);
    if (!l.list || s->inside || (unit->nodes > 1 && !finishes))
        return l.list ? weft_select_first(s, unit) : NULL;
    add_family(&l, unit);
    if (l.list->count > 1)
        sort_by_time(l.list->choice + 1, l.list->count - 1);
    if (finishes)
        return l.list;
    if (weft_step_is_plain(s->graph, unit->first))
        add_other(&l, unit->first, &weft_step_plain);
    add_other(&l, unit->first, &weft_step_reference);
    return l.list;
}

/* --- signatures --------------------------------------------------------------------------------------------------- */

bool weft_signature_same(const struct weft_signature *a, const struct weft_signature *b)
{
    return a->arithmetic == b->arithmetic && a->winograd == b->winograd && a->lanes == b->lanes &&
           a->slices == b->slices;
}

const char *weft_signature_text(const struct weft_signature *s, struct weft_arena *arena)
{
    static const char *const words[] = {
        [WEFT_ARITHMETIC_MOVES] = "moves",    [WEFT_ARITHMETIC_OP] = "by element",
        [WEFT_ARITHMETIC_SUMS] = "sums",      [WEFT_ARITHMETIC_COLUMNS] = "sums of columns",
        [WEFT_ARITHMETIC_CHAIN] = "one chain",
        [WEFT_ARITHMETIC_PLAIN] = "plain",    [WEFT_ARITHMETIC_EVALUATOR] = "evaluator"};
    if (s->winograd)
        return weft_arena_format(arena, "winograd=%d", s->winograd);
    if (s->lanes > 1 && s->slices > 1)
        return weft_arena_format(arena, "lanes=%d slices=%d", s->lanes, s->slices);
    if (s->lanes > 1 || s->slices > 1)
        return weft_arena_format(arena, s->lanes > 1 ? "lanes=%d" : "slices=%d", s->lanes > 1 ? s->lanes : s->slices);
    return words[s->arithmetic];
}
