/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: walking through the steps of a plan on a gang.
 *
 * All workers walk through all steps; a step cut into parts is shared out, a step of one part is done by worker 0.
 * Where there are more parts than workers each does its own first, and then whichever is left (next_turn). A barrier
 * stands behind a step only where the next one might come too early (plan/meetings.c). Behind a step that finds out a
 * size, worker 0 binds each step before it is done.
 *
 * A run that fails or is cancelled goes on to its end without working: each worker leaves out the parts of steps that
 * it comes to, but keeps all appointments with the others, and worker 0 makes no more trips of loops. */
#include "plan/tiers.h"
#include "runtime/runtime.h"

#include <stdatomic.h>
#include <string.h>

static struct weft_tensor tensor_of(const struct weft_call *call, weft_val value)
{
    const struct weft_scope *scope = call->user;
    struct weft_tensor t = scope->frame->tensor[value.id];
    const int64_t size = weft_dtype_bits(t.dtype) / 8;
    t.data = (char *)scope->base[scope->plan->home[value.id].storage] + scope->frame->offset[value.id] * size;
    return t;
}

static const void *packed_of(const struct weft_execution *e, const struct weft_pack *pack)
{
    return pack->by_execution ? e->packed[pack->by_execution - 1].data : pack->data;
}

static void fill_call(struct weft_run *run, const struct weft_scope *scope, uint32_t number, int worker,
                      struct weft_call *call)
{
    const struct weft_execution *e = run->execution;
    const struct weft_plan *plan = scope->plan;
    const struct weft_step *step = &plan->step[number];
    const struct weft_frame_step *bound = &scope->frame->step[number];
    *call = (struct weft_call){.graph = plan->graph,
                               .step = step,
                               .symbols = scope->frame->live,
                               .failed = &run->failed,
                               .failure = &run->failure,
                               .tensor = tensor_of,
                               .user = scope,
                               .parts = bound->parts,
                               .worker = worker,
                               .workers = plan->workers,
                               .shared = e->scratch.data,
                               .scratch = (char *)e->scratch.data + e->frame->shared_bytes +
                                          (size_t)worker * e->frame->scratch_bytes};
    const uint32_t storage = step->to ? step->to : plan->home[step->out[0].id].storage;
    call->out = (char *)scope->base[storage] + bound->out_offset;
    for (uint32_t i = 0; i < step->ins && i < WEFT_STEP_POINTERS; i++) {
        const uint32_t from = step->from ? step->from : plan->home[step->in[i].id].storage;
        call->in[i] = (const char *)scope->base[from] + bound->in_offset[i];
    }
    if (step->pack)
        call->packed = packed_of(e, &plan->pack[step->pack]);
}

/* Finds out the sizes that a node defines; false if it failed, or if they do not go with what stands behind it. */
static bool define_sizes(struct weft_run *run, const struct weft_scope *scope, uint32_t number)
{
    const struct weft_plan *plan = scope->plan;
    struct weft_call call;
    weft_frame_rebind(plan, scope->frame, number); /* its operands may have sizes that came out of data */
    if (!weft_execution_reserve_scratch(run->execution, run->execution->frame))
        return false;
    fill_call(run, scope, number, 0, &call);
    weft_step_define(weft_frame_descriptor(scope->frame, call.step), &call);
    char message[sizeof run->failure.message];
    if (atomic_load(&run->failed))
        return false;
    const bool fits = weft_check_sizes_found(plan->graph, plan->step[number].node, scope->frame->live, message,
                                             sizeof message);
    if (!fits)
        weft_fail(&run->failure, WEFT_ERR_BINDING, "%s", message);
    return fits;
}

/* A step behind one that defines a size: bound now that the sizes are known. Not in bodies: those define none. After a
 * failure nothing is bound or computed, since sizes may be beyond what there is room for. */
static void bind_late(struct weft_run *run, const struct weft_scope *scope, uint32_t number)
{
    struct weft_execution *e = run->execution;
    const struct weft_plan *plan = scope->plan;
    const weft_node node = plan->step[number].node;
    bool fits = !weft_run_stopped(run);
    if (fits && node.id && (weft_op_of(plan->graph, node)->traits & WEFT_DATA))
        fits = define_sizes(run, scope, number);
    if (fits) {
        weft_frame_rebind(plan, scope->frame, number);
        fits = weft_execution_reserve_scratch(e, e->frame);
    }
    if (!fits) {
        scope->frame->step[number].parts = 0;
        if (!weft_run_stopped(run))
            atomic_store(&run->failed, true);
    }
}

struct fork {
    struct weft_run *run;
    const struct weft_scope *scope;
    uint32_t step;
    int branches;           /* no more than workers: each has scratch of its own */
};

static void work_on_branch(void *arg, int branch)
{
    const struct fork *fork = arg;
    struct weft_call call;
    fill_call(fork->run, fork->scope, fork->step, branch, &call);
    for (call.part = branch; call.part < call.parts && !weft_run_stopped(fork->run); call.part += fork->branches)
        call.step->kind->run(weft_frame_descriptor(fork->scope->frame, call.step), &call);
}

/* Has the step more parts than workers, so that they steal? In bodies, which begin anew with each trip while others may
 * still be in the last one, each worker has its own parts: every so many. */
static bool steals(const struct weft_walker *walker, const struct weft_scope *scope, uint32_t number)
{
    return scope->plan == walker->run->execution->plan && scope->frame->step[number].parts > walker->workers;
}

/* The first of the parts that are a worker's own. */
static int own_part(const struct weft_walker *walker, const struct weft_scope *scope, uint32_t number)
{
    const struct weft_frame_step *step = &scope->frame->step[number];
    const int turn = walker->worker - step->first % walker->workers;
    return steals(walker, scope, number) ? (int)((int64_t)walker->worker * step->parts / walker->workers)
                                         : turn < 0 ? turn + walker->workers : turn;
}

/* What the worker reads first of the weights of the next step that has any: step `number` prefetches it, since a step
 * that begins with weights from memory waits for them. Steps with few weights are over before that would help, and it
 * takes 30 ns to find out. Nobody looks at steps that are bound while the plan runs. */
static struct weft_prefetch next_weights(const struct weft_walker *walker, const struct weft_scope *scope,
                                         uint32_t number)
{
    enum { NEAR = 6 /* steps: what these read would displace it */, LEAST_BYTES = 64 << 10 };
    const struct weft_plan *const plan = scope->plan;
    const uint32_t own = plan->step[number].pack;
    const bool asks = own && plan->pack[own].bytes >= LEAST_BYTES && plan->step[number].kind->reads_first;
    for (uint32_t i = number + 1; asks && i < plan->steps && i < plan->late && i <= number + NEAR; i++) {
        const struct weft_step *const step = &plan->step[i];
        if (!step->pack)
            continue;
        if (!step->kind->reads_first || scope->frame->step[i].parts == 0)
            break;
        return step->kind->reads_first(weft_frame_descriptor(scope->frame, step),
                                       packed_of(walker->run->execution, &plan->pack[step->pack]),
                                       own_part(walker, scope, i));
    }
    return (struct weft_prefetch){.data = NULL};
}

/* Work stealing: the next part that nobody has begun, or the number of parts. A worker's own parts lie side by side,
 * since what it reads of them, or wrote in the step before, is then in its core's cache. A worker that has done its own
 * steals the next one of another, which may be slower or be doing something else. `taken` counts the parts of all
 * workers, so that a worker looks for a part only while one is left. */
static int next_part(const struct weft_walker *walker, const struct weft_scope *scope, uint32_t number)
{
    struct weft_frame *const frame = scope->frame;
    const int parts = frame->step[number].parts, workers = walker->workers;
    if (atomic_fetch_add_explicit(&frame->step[number].taken, 1, memory_order_relaxed) >= parts)
        return parts;
    for (int i = 0;; i++) {
        const int64_t whose = (walker->worker + i) % workers;
        const int begin = (int)(whose * parts / workers), end = (int)((whose + 1) * parts / workers);
        _Atomic int32_t *const share = &frame->share[whose * scope->plan->steps + number];
        if (atomic_load_explicit(share, memory_order_relaxed) >= end - begin)
            continue;
        const int part = begin + atomic_fetch_add_explicit(share, 1, memory_order_relaxed);
        if (part < end)
            return part;
    }
}

static void work_on_step(const struct weft_walker *walker, const struct weft_scope *scope, uint32_t number)
{
    const int parts = scope->frame->step[number].parts;
    const uint32_t slot = scope->plan->step[number].bound;
    if (parts == 0 || (slot && !walker->run->execution->output_bound[slot - 1]))
        return;
    if (scope->plan->step[number].control) {
        weft_run_control(walker, scope, number);
    } else if (walker->forks) {
        const int workers = walker->run->execution->plan->workers;
        struct fork fork = {.run = walker->run, .scope = scope, .step = number,
                            .branches = parts < workers ? parts : workers};
        weft_fork_run(scope->plan->context, fork.branches, work_on_branch, &fork);
    } else if (parts > 1 || walker->worker == 0) {
        struct weft_call call;
        fill_call(walker->run, scope, number, walker->worker, &call);
        const void *const descriptor = weft_frame_descriptor(scope->frame, call.step);
        const struct weft_prefetch none = {.data = NULL};
        const struct weft_prefetch next = next_weights(walker, scope, number);
        if (steals(walker, scope, number)) {
            const int last = (int)((int64_t)(walker->worker + 1) * parts / walker->workers) - 1;
            while (!weft_run_stopped(walker->run) && (call.part = next_part(walker, scope, number)) < parts) {
                call.prefetch = call.part == last ? next : none;
                call.step->kind->run(descriptor, &call);
            }
            return;
        }
        call.prefetch = next;
        for (call.part = own_part(walker, scope, number); call.part < parts && !weft_run_stopped(walker->run);
             call.part += walker->workers)
            call.step->kind->run(descriptor, &call);
    }
}

static void poison(const struct weft_walker *walker, const struct weft_scope *scope, uint32_t step, bool after)
{
    if (!walker->run->execution->poison)
        return;
    weft_walker_meet(walker);
    if (walker->worker == 0)
        weft_poison_blocks(scope, step, after);
    weft_walker_meet(walker);
}

static const char *kernel_of(const struct weft_frame *frame, const struct weft_step *step)
{
    return step->kind->kernel(weft_frame_descriptor(frame, step), step);
}

/* Steps that have a clock in bodies too; one around every step there would cost more than small steps take. */
static bool is_slow(const struct weft_frame *frame, const struct weft_step *step)
{
    return weft_step_has(step, WEFT_STEP_EVALUATES) || weft_kernel_is_plain(kernel_of(frame, step));
}

/* Adds to a step's time in the trips before, if there is room for one more step. */
static void note_inner_step(struct weft_execution *e, const char *kernel, const char *value, int64_t ns)
{
    uint32_t i = 0;
    while (i < e->inner_steps && e->inner_step[i].value != value)
        i++;
    if (i == WEFT_MOST_INNER_STEPS)
        return;
    if (i == e->inner_steps)
        e->inner_step[e->inner_steps++] = (struct weft_inner_step){.kernel = kernel, .value = value};
    e->inner_step[i].ns += ns;
}

static void count_slow_step(struct weft_execution *e, const struct weft_step *step, int64_t ns)
{
    *(weft_step_has(step, WEFT_STEP_EVALUATES) ? &e->fallback_ns : &e->plain_ns) += ns;
}

void weft_walk_steps(const struct weft_walker *walker, const struct weft_scope *scope)
{
    const struct weft_plan *plan = scope->plan;
    struct weft_run *run = walker->run;
    const bool timed = run->ns && plan == run->execution->plan, inner = run->ns && !timed;
    if (timed) /* else a worker that comes late finds steps done that no clock has seen */
        weft_walker_meet(walker);
    int64_t last = run->ns ? weft_now_ns() : 0;
    for (uint32_t i = 0; i < plan->steps; i++) {
        if (i >= plan->late) {
            weft_walker_meet(walker);
            if (walker->worker == 0)
                bind_late(run, scope, i);
            weft_walker_meet(walker);
        }
        const struct weft_step *step = &plan->step[i];
        const bool measured = inner && walker->worker == 0 && is_slow(scope->frame, step);
        if (measured)
            last = weft_now_ns();
        poison(walker, scope, i, /* after= */ false);
        work_on_step(walker, scope, i);
        poison(walker, scope, i, /* after= */ true);
        if (measured) {
            const int64_t ns = weft_now_ns() - last;
            count_slow_step(run->execution, step, ns);
            note_inner_step(run->execution, kernel_of(scope->frame, step), weft_plan_step_name(plan, step), ns);
        }
        if (weft_frame_meets(plan, scope->frame, i) || timed) /* timed: the wait belongs to the step that caused it */
            weft_walker_meet(walker);
        if (timed && walker->worker == 0) {
            const int64_t now = weft_now_ns();
            run->ns[i] = now - last;
            last = now;
        }
    }
}

static void walk_all(struct weft_run *run, struct weft_walker walker)
{
    struct weft_execution *e = run->execution;
    weft_walk_steps(&walker, &(struct weft_scope){.plan = e->plan, .frame = e->frame, .base = e->base});
}

static void work(void *arg, int worker, int workers)
{
    walk_all(arg, (struct weft_walker){.run = arg, .worker = worker, .workers = workers});
}

/* For executors that do not promise concurrent workers: one fork per kernel, which they may run in any order. */
static void work_by_forks(struct weft_run *run)
{
    walk_all(run, (struct weft_walker){.run = run, .workers = 1, .alone = true, .forks = true});
}

/* What all parts of a step share is zero between steps, which a run does not leave so that was cancelled, or during
 * which another thread forked this process. */
static void clear_shared(struct weft_execution *e) { memset(e->scratch.data, 0, 64); }

static int work_with_gang(struct weft_execution *e, int64_t *ns)
{
    const struct weft_plan *plan = e->plan;
    memcpy(e->frame->live, e->symbols, weft_symbol_count(plan->graph->dims) * sizeof *e->symbols);
    struct weft_run run = {.execution = e, .ns = ns, .failure.stop = &e->cancelled};
    e->fallback_ns = e->plain_ns = 0;
    e->inner_steps = 0;
    clear_shared(e);
    for (uint32_t i = 0; i < plan->steps; i++)
        atomic_store_explicit(&e->frame->step[i].taken, 0, memory_order_relaxed);
    memset((void *)e->frame->share, 0, (size_t)plan->steps * (size_t)plan->workers * sizeof *e->frame->share);
    if (e->poison)
        weft_poison_results(e);
    const bool few = plan->late == plan->steps && e->frame->most_parts < plan->workers;
    const int most = few ? e->frame->most_parts : plan->workers;
    if (most > 1 && !weft_gang_is_concurrent(plan->context)) {
        work_by_forks(&run);
    } else {
        const int workers = weft_pace_workers(&e->frame->pace, most);
        const int64_t start = most > 1 ? weft_now_ns() : 0;
        weft_gang_run(plan->context, workers, work, &run);
        if (most > 1 && !weft_run_stopped(&run))
            weft_pace_tell(&e->frame->pace, workers, weft_now_ns() - start);
    }
    for (uint32_t i = 0; i < plan->graph->returns; i++) {
        e->result[i] = e->output[i];
        if (plan->late < plan->steps)
            weft_execution_port(e, &plan->storage[plan->return_storage[i]], e->frame->live, &e->result[i]);
        e->result[i].data = e->output[i].data;
    }
    if (run.failure.status != WEFT_OK)
        return weft_execution_fail(e, run.failure.status, "%s", run.failure.message);
    if (atomic_load(&e->cancelled))
        return weft_execution_fail(e, WEFT_ERR_CANCELLED, "cancelled, as weft_cancel asked");
    e->ran = !atomic_load(&run.failed);
    return e->ran ? WEFT_OK : weft_execution_fail(e, WEFT_ERR_NOMEM, "out of memory in a reference kernel");
}

enum { COLD_RUNS = 8 };

/* A plan that runs again and again has its groups compiled, and takes the code over between two runs. */
static void heat(const struct weft_plan *plan)
{
    struct weft_plan *const counted = (struct weft_plan *)plan; /* nothing else of a plan changes */
    if (!plan->tiers)
        return;
    if (atomic_load_explicit(&counted->runs, memory_order_relaxed) > COLD_RUNS)
        weft_tiers_poll(plan);
    else if (atomic_fetch_add_explicit(&counted->runs, 1, memory_order_relaxed) == COLD_RUNS)
        weft_tiers_begin(plan); /* refused memory: it stays as it is */
}

static int refuse_to_run(struct weft_execution *e)
{
    const char *where;
    const char *const kernel = weft_own_without_run(e->plan, &where);
    return kernel ? weft_execution_fail(e, WEFT_ERR_UNSUPPORTED, "%%%s: kernel %s has no run: its plans are the "
                                        "caller's to walk through", where, kernel) : WEFT_OK;
}

static int run_steps(struct weft_execution *e, int64_t *ns)
{
    e->error[0] = '\0';
    e->ran = false;
    heat(e->plan);
    int status = e->plan->target.planned ? refuse_to_run(e) : WEFT_OK;
    if (status == WEFT_OK && (!e->frame || e->moved))
        status = e->frame ? weft_execution_move(e) : weft_execution_prepare(e);
    if (status == WEFT_OK) {
        weft_stage_in(e);
        status = e->is_stale ? weft_refresh_packs(e) : WEFT_OK;
    }
    if (status == WEFT_OK)
        status = work_with_gang(e, ns);
    if (status == WEFT_OK)
        weft_stage_back(e);
    atomic_store(&e->cancelled, false);
    return status;
}

/* Called by signal handlers too: one store. */
int weft_cancel(struct weft_execution *e)
{
    _Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a signal handler may set the flag");
    if (!e)
        return WEFT_ERR_ARGUMENT;
    atomic_store(&e->cancelled, true);
    return WEFT_OK;
}

int weft_run(struct weft_execution *e) { return e ? run_steps(e, NULL) : WEFT_ERR_ARGUMENT; }

int weft_run_timed(struct weft_execution *e, void (*fn)(void *user, const char *kernel, const char *value, int64_t ns),
                   void *user)
{
    if (!e)
        return WEFT_ERR_ARGUMENT;
    const struct weft_plan *plan = e->plan;
    int64_t *ns = weft_allocate(plan->context, (plan->steps + 1) * sizeof *ns);
    if (!ns)
        return weft_execution_fail(e, WEFT_ERR_NOMEM, "out of memory");
    const int status = run_steps(e, ns);
    e->total_ns = e->relayout_ns = 0;
    for (uint32_t i = 0; status == WEFT_OK && i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        e->total_ns += ns[i];
        if (is_slow(e->frame, step))
            count_slow_step(e, step, ns[i]);
        e->relayout_ns += weft_step_has(step, WEFT_STEP_MOVES) ? ns[i] : 0;
        if (fn)
            fn(user, kernel_of(e->frame, step), weft_plan_step_name(plan, step), ns[i]);
    }
    weft_release(plan->context, ns, (plan->steps + 1) * sizeof *ns);
    return status;
}

int weft_output(const struct weft_execution *e, size_t i, struct weft_tensor *ret_tensor)
{
    if (!e || !ret_tensor)
        return WEFT_ERR_ARGUMENT;
    if (i >= e->plan->graph->returns || !e->ran)
        return WEFT_ERR_ARGUMENT;
    *ret_tensor = e->result[i];
    return WEFT_OK;
}

int weft_execution_statistics(const struct weft_execution *e, struct weft_statistics *ret_statistics)
{
    if (!e || !ret_statistics)
        return WEFT_ERR_ARGUMENT;
    const struct weft_plan *plan = e->plan;
    const int32_t *const marked = plan->alias.marked; /* those of bodies, which run along, included */
    const int gang = weft_gang_size(plan->context); /* a child that fork made has one worker */
    const int workers = weft_gang_is_concurrent(plan->context) && gang < plan->workers ? gang : plan->workers;
    const int64_t copied = e->frame ? weft_plan_copied_bytes(plan, e->frame, e->output_bound) : 0;
    int64_t staged_bytes;
    const int32_t staged = weft_stage_count(e, &staged_bytes);
    const struct weft_statistics all = {.arena_bytes = e->arena.data ? (int64_t)e->arena.bytes - WEFT_SPARE_BYTES : 0,
                                        .constant_bytes = plan->constant_bytes,
                                        .kernels = (int32_t)plan->steps + plan->inner_steps,
                                        .relayouts = plan->relayouts,
                                        .fallbacks = plan->fallbacks,
                                        .workers = workers,
                                        .fallback_ns = e->fallback_ns,
                                        .relayout_ns = e->relayout_ns,
                                        .total_ns = e->total_ns,
                                        .copied_bytes = copied,
                                        .inside = marked[WEFT_ALIAS_PART],
                                        .overwriting = marked[WEFT_ALIAS_OVER],
                                        .updating = marked[WEFT_ALIAS_UPDATED],
                                        .plain_ns = e->plain_ns,
                                        .shared_bytes = weft_plan_shared_bytes(plan),
                                        .mapped_bytes = weft_plan_mapped_bytes(plan),
                                        .staged_bytes = staged_bytes,
                                        .staged_inputs = staged,
                                        .static_bytes = weft_refresh_bytes(e),
                                        .static_packs = e->static_packs};
    return weft_give_facts(ret_statistics, &all, sizeof all);
}
