/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c: what a plan moves and computes, counted for the sizes of the hints: `weft opt --print=stats`.
 *
 *   graph @rows
 *     %y = add_relu_mean_f32: kernels=1 elements=4096+64 bytes=16384+256 flops=12288
 *     all: kernels=1 groups=1 grouped=3 elements=4096+64=4160 bytes=16384+256=16640 flops=12288 barriers=0 arena=0 …
 *     unfused: kernels=3 groups=0 …
 *
 * Read and written, a line for each unit that steps compute. A unit reads each piece of memory once and writes it once,
 * however many of its steps and operands do: views of one storage that differ are added up, but count no more than it
 * has. What a group keeps to itself is not memory. Numbers that fill a constant count nothing, nor do views. Where
 * places come from data, at most as many elements are read as there are places. Bodies are counted once, and copies
 * that a run does only for some callers not at all. Arithmetic is one for each point, and two for products that are
 * added up. All workers meet behind so many steps (`barriers`; in bodies: once each trip). The arena has the bytes of
 * intermediates; `live` of them at most are needed at once, so none is smaller. */
#include "codegen/form.h"
#include "ir/custom.h"
#include "plan/plan.h"
#include "sched/epilogue.h"

#include <string.h>

struct traffic {
    int64_t elements, bytes;
};
struct counts {
    struct traffic read, written;
    int64_t flops, kernels, groups, grouped, barriers;
    int64_t arena, live;    /* bytes of the arena, and what is alive at once in it */
};

/* Elements of a storage that a unit has touched so far, and which views of it. */
struct touched {
    uint32_t unit;
    struct traffic sum;
    uint32_t last;          /* view: 1 + its number; 0: none */
};
struct seen {
    weft_val value;
    uint32_t before;        /* in the same storage, the same way round */
};

struct counter {
    const struct weft_plan *plan;
    const struct weft_frame *frame;
    struct touched *read, *written; /* by storage */
    struct seen *seen;
    uint32_t views, capacity;
    struct weft_arena *arena;
    uint32_t unit;
};

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Hints may be too small for what is computed of them: then there is nothing. */
static int64_t at_least_0(int64_t extent) { return extent > 0 ? extent : 0; }

/* Elements that are there, not those that are found again along repeated axes. */
static int64_t stored_elements(const struct weft_tensor *t)
{
    int64_t elements = 1;
    for (int i = 0; i < t->rank; i++)
        elements *= t->stride[i] != 0 || t->extent[i] < 1 ? at_least_0(t->extent[i]) : 1;
    return elements;
}

static int64_t all_elements(const struct weft_tensor *t)
{
    int64_t elements = 1;
    for (int i = 0; i < t->rank; i++)
        elements *= at_least_0(t->extent[i]);
    return elements;
}

static bool is_same_view(const struct counter *c, weft_val a, weft_val b)
{
    const struct weft_tensor *const x = &c->frame->tensor[a.id], *const y = &c->frame->tensor[b.id];
    bool same = x->dtype == y->dtype && x->rank == y->rank && c->frame->offset[a.id] == c->frame->offset[b.id];
    for (int i = 0; i < x->rank && same; i++)
        same = x->extent[i] == y->extent[i] && x->stride[i] == y->stride[i];
    return weft_is(a, b) || same;
}

static bool was_seen(struct counter *c, struct touched *t, weft_val v)
{
    for (uint32_t i = t->last; i; i = c->seen[i - 1].before)
        if (is_same_view(c, c->seen[i - 1].value, v))
            return true;
    c->seen = weft_grow(c->arena, c->seen, &c->capacity, c->views + 1, sizeof *c->seen);
    c->seen[c->views++] = (struct seen){v, t->last};
    t->last = c->views;
    return false;
}

static int64_t storage_bytes(const struct counter *c, uint32_t storage)
{
    const weft_val v = c->plan->storage[storage].value;
    return v.id ? weft_dtype_bytes(c->frame->tensor[v.id].dtype, stored_elements(&c->frame->tensor[v.id])) : INT64_MAX;
}

/* `elements` of a view. What a storage has been counted for before is in `to` already. */
static void touch(struct counter *c, struct touched *of, uint32_t storage, weft_val v, int64_t elements,
                  struct traffic *to)
{
    struct touched *const t = &of[storage];
    if (t->unit != c->unit)
        *t = (struct touched){.unit = c->unit};
    if (!storage || c->plan->storage[storage].splat)
        return;
    const int64_t bytes = weft_dtype_bytes(c->frame->tensor[v.id].dtype, elements), most = storage_bytes(c, storage);
    const struct traffic before = t->sum;
    t->sum.bytes = bytes < most - before.bytes ? before.bytes + bytes : most;
    t->sum.elements += bytes > 0 ? (int64_t)((double)elements * (double)(t->sum.bytes - before.bytes) / (double)bytes)
                                 : 0;
    to->bytes += t->sum.bytes - before.bytes;
    to->elements += t->sum.elements - before.elements;
}

static void read_value(struct counter *c, weft_val v, int64_t most, struct counts *to)
{
    const uint32_t storage = c->plan->home[v.id].storage;
    const int64_t elements = stored_elements(&c->frame->tensor[v.id]);
    if (c->read[storage].unit != c->unit)
        c->read[storage] = (struct touched){.unit = c->unit};
    if (!was_seen(c, &c->read[storage], v))
        touch(c, c->read, storage, v, elements < most ? elements : most, &to->read);
}

static void write_value(struct counter *c, weft_val v, int64_t most, struct counts *to)
{
    const int64_t elements = stored_elements(&c->frame->tensor[v.id]);
    touch(c, c->written, c->plan->home[v.id].storage, v, elements < most ? elements : most, &to->written);
}

/* Copies, parts of concats, borders: as many elements as they move. */
static void count_move(struct counter *c, const struct weft_step *step, struct counts *to)
{
    const struct weft_copy *const copy = weft_frame_descriptor(c->frame, step);
    const int dtype = c->frame->tensor[step->out[0].id].dtype;
    const uint32_t out = step->to ? step->to : c->plan->home[step->out[0].id].storage;
    const uint32_t in = step->from ? step->from : c->plan->home[step->in[0].id].storage;
    int64_t bits = (int64_t)copy->bytes * 8, distinct = bits;
    for (int i = 0; i < copy->rank; i++) {
        bits *= at_least_0(copy->extent[i]);
        distinct *= copy->in_stride[i] || copy->extent[i] < 1 ? at_least_0(copy->extent[i]) : 1;
    }
    const int64_t elements = bits / weft_dtype_bits(dtype), sources = distinct / weft_dtype_bits(dtype);
    touch(c, c->written, out, step->out[0], elements, &to->written);
    if (!weft_step_has(step, WEFT_STEP_FILLS))
        touch(c, c->read, in, step->in[0], sources, &to->read);
}

/* What it updates was copied before, or is there: it writes as many elements as it has. */
static void count_scatter(struct counter *c, const struct weft_step *step, struct counts *to)
{
    const int64_t index = stored_elements(&c->frame->tensor[step->in[1].id]);
    const int64_t elements = all_elements(&c->frame->tensor[step->in[0].id]);
    const bool one_hot = weft_opcode_of(c->plan->graph, step->node) == WEFT_OP_one_hot;
    read_value(c, step->in[0], INT64_MAX, to);
    read_value(c, step->in[1], INT64_MAX, to);
    write_value(c, step->out[0], one_hot ? index : elements, to);
}

static void count_step(struct counter *c, const struct weft_step *step, struct counts *to)
{
    const struct weft_graph *const g = c->plan->graph;
    const uint32_t traits = step->node.id && !step->code ? weft_op_of(g, step->node)->traits : 0;
    if (weft_step_has(step, WEFT_STEP_MOVES) || weft_step_has(step, WEFT_STEP_FILLS)) {
        count_move(c, step, to);
        return;
    }
    if (step->kind == &weft_step_scatter) {
        count_scatter(c, step, to);
        return;
    }
    const int64_t places = all_elements(&c->frame->tensor[step->out[0].id]);
    for (uint32_t i = 0; i < step->ins; i++)
        read_value(c, step->in[i], i == 0 && traits & WEFT_MOVEMENT ? places : INT64_MAX, to);
    for (uint32_t i = 0; i < step->outs; i++)
        write_value(c, step->out[i], INT64_MAX, to);
}

/* --- arithmetic --------------------------------------------------------------------------------------------------- */

double weft_attention_flops(const struct weft_tensor *q, const struct weft_tensor *k, const struct weft_tensor *out)
{
    return 2 * (weft_tensor_elements(q) + weft_tensor_elements(out)) * (double)k->extent[k->rank - 2];
}

double weft_attention_grad_flops(const struct weft_tensor *q, const struct weft_tensor *k, const struct weft_tensor *y)
{
    return 2 * (3 * weft_tensor_elements(q) + 2 * weft_tensor_elements(y)) * (double)k->extent[k->rank - 2];
}

/* What a custom function says of itself; -1: nothing. */
static int64_t custom_flops(const struct counter *c, weft_node n)
{
    const struct weft_graph *const g = c->plan->graph;
    const struct weft_node_info *const info = &g->node[n.id];
    struct weft_tensor *const tensor = weft_new(c->arena, struct weft_tensor, info->operands + info->results + 1u);
    double operations, bytes;
    for (unsigned i = 0; i < info->operands; i++)
        tensor[i] = c->frame->tensor[weft_operand(g, n, i).id];
    for (unsigned i = 0; i < info->results; i++)
        tensor[info->operands + i] = c->frame->tensor[weft_result(g, n, i).id];
    const bool known = weft_custom_cost(g, n, tensor, &operations, &bytes);
    return known && operations >= 0 && operations < 0x1p62 ? (int64_t)operations : -1;
}

static int64_t flops_of(const struct counter *c, weft_node n)
{
    const struct weft_graph *const g = c->plan->graph;
    const int64_t stated = weft_opcode_of(g, n) == WEFT_OP_custom ? custom_flops(c, n) : -1;
    if (stated >= 0)
        return stated;
    const uint32_t traits = weft_op_of(g, n)->traits;
    struct weft_space space;
    if (traits & (WEFT_VIEW | WEFT_MOVEMENT | WEFT_PLACEMENT | WEFT_SOURCE | WEFT_UPDATE | WEFT_CONTROL))
        return 0;
    const struct weft_tensor *const tensor = c->frame->tensor;
    const int op = weft_opcode_of(g, n);
    if (op == WEFT_OP_attention || op == WEFT_OP_attention_sums)
        return at_least_0((int64_t)weft_attention_flops(&tensor[weft_operand(g, n, 0).id],
                                                        &tensor[weft_operand(g, n, 1).id],
                                                        &tensor[weft_result(g, n, 0).id]));
    if (op == WEFT_OP_attention_grad)
        return at_least_0((int64_t)weft_attention_grad_flops(&tensor[weft_operand(g, n, 1).id],
                                                             &tensor[weft_operand(g, n, 2).id],
                                                             &tensor[weft_operand(g, n, 4).id]));
    if (op == WEFT_OP_max_pool_grad) /* an element may come from any window of a plane, but each window adds once */
        return all_elements(&tensor[weft_operand(g, n, 0).id]);
    if (!weft_index_space(g, n, &space))
        return all_elements(&c->frame->tensor[weft_result(g, n, 0).id]);
    int64_t points = traits & WEFT_CONTRACTION ? 2 : 1;
    for (int i = 0; i < space.axes; i++)
        points *= at_least_0(weft_dim_evaluate(g->dims, space.axis[i].extent, c->frame->symbols));
    return points;
}

static int64_t flops_of_unit(const struct counter *c, const struct weft_unit *unit)
{
    int64_t flops = 0;
    weft_node n = unit->first;
    for (uint32_t i = 0; i < unit->nodes; i++, n = c->plan->graph->node[n.id].next)
        flops += flops_of(c, n);
    return flops;
}

/* Of a group's kernel, the form knows both: less, where arrays are views of one storage. */
static void count_form(const struct counter *c, const struct weft_form *form, struct counts *to)
{
    struct weft_form_counts form_counts;
    weft_form_count(form, c->frame->symbols, &form_counts);
    if (form_counts.elements_read < to->read.elements)
        to->read = (struct traffic){form_counts.elements_read, form_counts.bytes_read};
    to->flops = form_counts.flops;
}

/* --- units -------------------------------------------------------------------------------------------------------- */

static void add_counts(struct counts *sum, const struct counts *one)
{
    sum->read.elements += one->read.elements;
    sum->read.bytes += one->read.bytes;
    sum->written.elements += one->written.elements;
    sum->written.bytes += one->written.bytes;
    sum->flops += one->flops;
    sum->kernels += one->kernels;
    sum->groups += one->groups;
    sum->grouped += one->grouped;
    sum->barriers += one->barriers;
}

static const char *word_of(const struct weft_plan *plan, const struct weft_step *step)
{
    return step->epilogue  ? step->epilogue->name
           : step->code    ? step->code->name
           : step->node.id ? weft_op_of(plan->graph, step->node)->name : "copy";
}

static void print_unit(const struct weft_plan *plan, const struct weft_step *step, bool body, const struct counts *n,
                       struct weft_text *text)
{
    weft_text_format(text, "  %%%s = %s%s%s: kernels=%lld elements=%lld+%lld bytes=%lld+%lld flops=%lld\n",
                     weft_plan_step_name(plan, step), word_of(plan, step), body ? " in body @" : "",
                     body ? plan->graph->name : "", (long long)n->kernels, (long long)n->read.elements,
                     (long long)n->written.elements, (long long)n->read.bytes, (long long)n->written.bytes,
                     (long long)n->flops);
}

static struct counter open_counter(const struct weft_plan *plan, const struct weft_frame *frame,
                                   struct weft_arena *arena)
{
    return (struct counter){.plan = plan, .frame = frame, .arena = arena,
                            .read = weft_new(arena, struct touched, plan->storages + 1),
                            .written = weft_new(arena, struct touched, plan->storages + 1)};
}

/* The unit whose first step is `first`, without the bodies that it runs. Steps of a unit stand together; each copy at
 * the end is one by itself. Returns the step behind it. */
static uint32_t count_unit(struct counter *c, uint32_t first, struct counts *ret)
{
    const struct weft_plan *const plan = c->plan;
    const struct weft_step *const step = &plan->step[first];
    const struct weft_unit *const unit = &plan->units.unit[step->unit];
    const bool is_group = step->unit && unit->nodes > 1;
    struct counts one = {.groups = is_group, .grouped = is_group ? unit->nodes : 0};
    uint32_t next = first;
    c->unit = first + 1;
    c->views = 0;
    do
        if (!plan->step[next].control && !plan->step[next].bound) {
            count_step(c, &plan->step[next], &one);
            one.kernels++;
        }
    while (++next < plan->steps && step->unit && plan->step[next].unit == step->unit);
    for (uint32_t k = first; k < next; k++)
        one.barriers += weft_frame_meets(plan, c->frame, k);
    if (step->code)
        count_form(c, step->code, &one);
    else if (step->unit)
        one.flops = flops_of_unit(c, unit);
    *ret = one;
    return next;
}

/* Recursion is as deep as bodies are nested. `text` may be NULL. */
static void count_plan(const struct weft_plan *plan, const struct weft_frame *frame, bool body,
                       struct weft_arena *arena, struct weft_text *text, struct counts *sum)
{
    struct counter c = open_counter(plan, frame, arena);
    for (uint32_t i = 0, next; i < plan->steps; i = next) {
        const struct weft_step *const step = &plan->step[i];
        struct counts one;
        next = count_unit(&c, i, &one);
        const struct weft_control *const control = step->control ? &plan->control[step->control] : NULL;
        for (uint32_t k = 0; control && k < control->bodies; k++)
            count_plan(control->body[k], frame->control[step->control].body[k], /* body= */ true, arena, text, sum);
        if (text && one.kernels)
            print_unit(plan, step, body, &one, text);
        add_counts(sum, &one);
    }
}

/* The plan frees it if memory is refused meanwhile. */
static void open_hinted(struct weft_plan *plan, const int64_t *symbols)
{
    plan->hinted = weft_frame_new(plan, symbols, NULL);
    if (!plan->hinted)
        weft_out_of_memory(plan->context);
}

static void close_hinted(struct weft_plan *plan)
{
    weft_frame_free(plan, plan->hinted);
    plan->hinted = NULL;
}

static struct counts count_all(struct weft_plan *plan, struct weft_arena *arena, struct weft_text *text)
{
    struct counts sum = {0};
    open_hinted(plan, plan->hint);
    count_plan(plan, plan->hinted, /* body= */ false, arena, text, &sum);
    sum.arena = plan->hinted->arena_bytes;
    sum.live = weft_frame_live_bytes(plan, plan->hinted, arena);
    close_hinted(plan);
    return sum;
}

const struct weft_unit_counts *weft_plan_count_units(struct weft_plan *plan, const int64_t *symbols,
                                                     struct weft_arena *arena, uint32_t *ret_count)
{
    struct weft_unit_counts *const unit = weft_new(arena, struct weft_unit_counts, plan->steps + 1);
    uint32_t count = 0;
    open_hinted(plan, symbols ? symbols : plan->hint);
    struct counter c = open_counter(plan, plan->hinted, arena);
    for (uint32_t i = 0, next; i < plan->steps; i = next) {
        struct counts one;
        next = count_unit(&c, i, &one);
        unit[count++] = (struct weft_unit_counts){i, next - i, one.read.bytes, one.written.bytes, one.flops};
    }
    close_hinted(plan);
    *ret_count = count;
    return unit;
}

static void print_all(const char *what, const struct counts *n, struct weft_text *text)
{
    const long long elements[] = {n->read.elements, n->written.elements}, bytes[] = {n->read.bytes, n->written.bytes};
    weft_text_format(text,
                     "  %s: kernels=%lld groups=%lld grouped=%lld elements=%lld+%lld=%lld bytes=%lld+%lld=%lld "
                     "flops=%lld barriers=%lld arena=%lld live=%lld\n",
                     what, (long long)n->kernels, (long long)n->groups, (long long)n->grouped, elements[0],
                     elements[1], elements[0] + elements[1], bytes[0], bytes[1], bytes[0] + bytes[1],
                     (long long)n->flops, (long long)n->barriers, (long long)n->arena, (long long)n->live);
}

void weft_plan_print_stats(struct weft_plan *plan, struct weft_plan *unfused, struct weft_text *text)
{
    struct weft_arena *const arena = &plan->graph->scratch;
    weft_text_format(text, "graph @%s\n", plan->graph->name);
    const struct counts all = count_all(plan, arena, text), alone = count_all(unfused, arena, NULL);
    print_all("all", &all, text);
    print_all("unfused", &alone, text);
}
