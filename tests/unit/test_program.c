/* SPDX-License-Identifier: Apache-2.0 */
/* test_program.c: strip programs beside their ops one by one, on graphs drawn at random.
 *
 * A graph is a function of its seed: elementwise ops, comparisons, selects, casts, reductions over the first or the
 * last axes of one box, scans, gathers, paddings, products and convolutions whose results fill the box, and values that
 * are put together of pieces, over parameters of the whole box or of some of its axes. It is compiled as it is, so that
 * what goes together becomes groups, and with WEFT_COMPILE_NO_FUSE, where groups have numbers of 16 bits in f32
 * between casts (program_widen.h); both run on the same numbers, tame and hostile, at each CPU level of the machine,
 * with 1 to 4 threads, and where the box has an open extent, at several. Every bit has to agree, but NaN is NaN,
 * unless terms are added up in another order. Boxes stay below 256 KiB, so that reductions alone are not cut into
 * slices, which programs do not have.
 *
 *   build/tests/test_program --seed 17                    that graph as text, and whether it agrees
 *   build/tests/test_program --count 50000 --from 1000000 more of them
 *   build/tests/test_program --count 100 --compiled       groups as compiled C, where there is C for them */
#include "tests/unit/program_draw.h"
#include "tests/unit/program_widen.h"

#include "compile_steps.h"

enum { GRAPHS = 1000, MOST_PARAMS = 16 };

/* --- running ------------------------------------------------------------------------------------------------------ */

struct trial {
    struct weft_context *context;
    struct weft_graph *graph;
    const struct maker *maker;
    uint64_t seed;
    uint32_t cpu;
    int threads;
    char fault[512];       /* what differs */
    struct weft_tensor in[MOST_PARAMS];
};

static struct weft_context *contexts[4];
static long groups, refused, plans, runs, widened; /* widened: plans with groups of 16 bits */
static long scans, scans_in_groups; /* of fused plans */
static long over;          /* results of groups that lie over what these read */
static long otherwise;     /* runs whose sums are added up in another order */

/* Numbers of every kind: `rare` of 1 is all hostile. */
static void fill(struct weft_tensor *t, int64_t elements, unsigned rare, uint64_t *state)
{
    static const double reals[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-42, 5e-324, 65504, 3e38, -1e300, 0.5};
    static const int64_t whole[] = {0, 1, -1, 127, -128, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 2, 3};
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t bits = next(state);
        const bool hostile = rare && bits % rare == 0;
        const unsigned which = (unsigned)(next(state) % 12);
        if (weft_dtype_is_float(t->dtype))
            weft_store_real(t->dtype, t->data, i, hostile ? reals[which] : (double)(bits % 4001) / 1000 - 2);
        else
            weft_store_integer(t->dtype, t->data, i, hostile ? whole[which] : (int64_t)(bits % 7) - 2);
    }
}

/* Strides of a tensor that lies as the parameter's layout says. */
static void lay_out(const struct weft_graph *g, weft_val v, struct weft_tensor *t)
{
    const struct weft_layout layout = weft_layout_of(g, v);
    int64_t stride = 1;
    for (int at = layout.axes; at-- > 0;) {
        t->stride[layout.axis[at].axis] = stride;
        stride *= t->extent[layout.axis[at].axis];
    }
}

static void make_inputs(struct trial *t, int64_t n, unsigned rare)
{
    uint64_t state = t->seed + 77;
    const struct weft_graph *g = t->graph;
    const int64_t symbols[1] = {n};
    for (uint32_t i = 0; i < g->params; i++) {
        const struct weft_type *type = weft_type_of(g, g->param[i]);
        int64_t elements = 1;
        t->in[i] = (struct weft_tensor){.dtype = type->dtype, .rank = type->rank};
        for (int k = 0; k < type->rank; k++)
            elements *= t->in[i].extent[k] = weft_dim_evaluate(g->dims, type->extent[k], symbols);
        lay_out(g, g->param[i], &t->in[i]);
        t->in[i].data = malloc((size_t)elements * 8 + 8);
        assert_non_null(t->in[i].data);
        fill(&t->in[i], elements, rare, &state);
    }
}

static void drop_inputs(struct trial *t)
{
    for (uint32_t i = 0; i < t->graph->params; i++)
        free(t->in[i].data);
}

static struct weft_plan *plan_of(const struct trial *t, const struct weft_graph *graph, uint32_t flags)
{
    struct weft_target target = {.cpu = t->cpu, .threads = t->threads, .l1 = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20,
                                 .arithmetic = WEFT_CONV_F2, .name = "test"};
    const struct weft_compile_options options = {.size = sizeof options, .target = &target, .flags = flags};
    struct weft_plan *plan = NULL;
    if (weft_compile(graph, &options, &plan) != WEFT_OK)
        return NULL;
    return plan;
}

/* Each node by itself; those of groups of 16 bits as the groups compute them. */
static struct weft_plan *plan_alone(const struct trial *t, const struct weft_plan *fused)
{
    static struct widen w;
    struct weft_graph *graph;
    struct weft_text text = {.context = t->context};
    if (!fused)
        return NULL;
    weft_print_graph(fused->graph, &(struct weft_print_options){.all_inline = true}, &text);
    const char *const wide = widen_groups(&w, text.data);
    weft_text_close(&text);
    if (!wide)
        return plan_of(t, t->graph, WEFT_COMPILE_NO_FUSE);
    widened++;
    if (weft_parse(t->context, wide, strlen(wide), "widened", &graph) != WEFT_OK) {
        printf("%s\n%s", weft_last_error(t->context), wide);
        return NULL;
    }
    struct weft_plan *const plan = plan_of(t, graph, WEFT_COMPILE_NO_FUSE | WEFT_COMPILE_NO_PASSES);
    weft_graph_destroy(graph);
    return plan;
}

/* --- groups as compiled C ----------------------------------------------------------------------------------------- */

static bool compiles;
static struct weft_execution *run_plan(struct trial *t, const struct weft_plan *plan)
{
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    bool right = true;
    for (uint32_t i = 0; i < t->graph->params && right; i++)
        right = weft_bind_input(e, i, &t->in[i]) == WEFT_OK;
    if (!right || weft_run(e) != WEFT_OK)
        snprintf(t->fault, sizeof t->fault, "does not run: %s", weft_execution_error(e));
    if (compiles && !t->fault[0])
        run_compiled(e);
    return e;
}

/* Both are dense. */
static void compare(struct trial *t, const struct weft_execution *fused, const struct weft_execution *alone, int64_t n)
{
    for (uint32_t i = 0; i < t->graph->returns && !t->fault[0]; i++) {
        struct weft_tensor a, b;
        assert_int_equal(weft_output(fused, i, &a), WEFT_OK);
        assert_int_equal(weft_output(alone, i, &b), WEFT_OK);
        const size_t bytes = (size_t)weft_dtype_bits(a.dtype) / 8;
        const int64_t elements = (int64_t)weft_tensor_elements(&a);
        for (int64_t k = 0; k < elements && !t->fault[0]; k++) {
            uint64_t x = 0, y = 0;
            memcpy(&x, (const char *)a.data + (size_t)k * bytes, bytes);
            memcpy(&y, (const char *)b.data + (size_t)k * bytes, bytes);
            const double p = weft_load_real(a.dtype, a.data, k), q = weft_load_real(b.dtype, b.data, k);
            if (x != y && !(p != p && q != q)) /* which NaN comes of two is nobody's promise */
                snprintf(t->fault, sizeof t->fault,
                         "result %u, element %" PRId64 ": 0x%" PRIx64 " (%g) in groups, 0x%" PRIx64
                         " (%g) one by one; N=%" PRId64 ", cpu 0x%x, %d threads",
                         i, k, x, p, y, q, n, t->cpu, t->threads);
        }
    }
}

/* How folds of these sizes add up. */
struct order {
    bool any, several;     /* folds; and some otherwise than others */
    bool rows;             /* terms side by side, else results side by side */
    int32_t rank;
    int64_t extent[WEFT_K_RANK]; /* of folded axes, those that are one in memory merged */
    long scans, in_vectors; /* of floats that add up */
};

static void see_scan(struct order *order, bool is_sum, int dtype, bool in_vectors)
{
    order->scans += is_sum && weft_dtype_is_float(dtype);
    order->in_vectors += is_sum && weft_dtype_is_float(dtype) && in_vectors;
}

static void see_fold(struct order *order, bool rows, int32_t rank, const int64_t *extent)
{
    const struct order before = *order;
    *order = (struct order){.any = true, .rows = rows, .rank = rank};
    memcpy(order->extent, extent, (size_t)rank * sizeof *extent);
    const bool same = !before.any || (before.rows == rows && before.rank == rank &&
                                      memcmp(before.extent, order->extent, sizeof before.extent) == 0);
    order->several = before.several || !same;
}

static void see_folds(struct order *order, const struct weft_execution *e)
{
    int64_t lanes;
    for (uint32_t i = 0; i < e->plan->steps; i++) {
        const struct weft_step *const step = &e->plan->step[i];
        const void *const descriptor = weft_frame_descriptor(e->frame, step);
        const struct weft_reduce *const reduce = descriptor;
        const struct weft_program *const program = descriptor;
        const struct weft_along *const along = descriptor;
        if (step->kind == &weft_step_reduce)
            see_fold(order, weft_reduce_columns(reduce, &lanes) == 0, reduce->reduced, reduce->reduced_extent);
        else if (step->code && program->folds > 0)
            see_fold(order, program->along_inner, program->inner_rank, program->inner);
        for (int k = 0; step->code && k < program->scans; k++)
            see_scan(order, program->scan[k].scan.op == WEFT_K_CUMSUM, program->scan[k].scan.dtype,
                     program->scan[k].scan.in_vectors);
        if (step->kind == &weft_step_along)
            see_scan(order, along->op == WEFT_K_CUMSUM, along->dtype, strstr(weft_along_name(along), "prefix") != NULL);
    }
}

/* Does the plan compute a chain of ops by one function, which rounds once? */
static bool has_composite(const struct weft_plan *plan)
{
    bool has = false;
    for (uint32_t i = 0; i < plan->steps; i++)
        for (uint32_t k = 0; weft_step_form(&plan->step[i]) && k < weft_step_form(&plan->step[i])->ops; k++) {
            const char *const word = weft_step_form(&plan->step[i])->op[k].word;
            has |= word && (!strcmp(word, "silu") || !strcmp(word, "mish") || !strncmp(word, "gelu", 4));
        }
    return has;
}

/* A group may fold in another order than its reductions alone: their operands lie otherwise, where a value that they
 * alone would read from memory is a broadcast, or never stored. An extreme of zeros has the sign of the first one. */
static bool rounds_otherwise(const struct trial *t, const struct weft_execution *a, const struct weft_execution *b)
{
    struct order order = {.any = false}, each[2] = {{.any = false}};
    static const char *const words[] = {"sum", "mean", "prod", "reduce_m"};
    bool folds = false;
    for (int i = 0; i < 4; i++)
        folds |= strstr(t->maker->body, words[i]) != NULL;
    if (!folds)
        return false;
    see_folds(&order, a);
    see_folds(&order, b);
    see_folds(&each[0], a);
    see_folds(&each[1], b);
    return order.several || each[0].in_vectors != each[1].in_vectors;
}

static void try_size(struct trial *t, const struct weft_plan *fused, const struct weft_plan *alone, int64_t n,
                     unsigned rare)
{
    make_inputs(t, n, rare);
    struct weft_execution *const a = run_plan(t, fused), *const b = run_plan(t, alone);
    runs++;
    if (!t->fault[0] && (rounds_otherwise(t, a, b) || has_composite(fused)))
        otherwise++;
    else if (!t->fault[0])
        compare(t, a, b, n);
    weft_execution_destroy(a);
    weft_execution_destroy(b);
    drop_inputs(t);
}

static void count_groups(const struct weft_plan *plan)
{
    struct weft_remark remark = {.size = sizeof remark};
    plans++;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_form *const form = weft_step_form(&plan->step[i]);
        scans += plan->step[i].kind == &weft_step_along;
        for (uint32_t k = 0; form && k < form->ops; k++) {
            scans += form->op[k].kind == WEFT_FORM_SCAN;
            scans_in_groups += form->op[k].kind == WEFT_FORM_SCAN;
        }
    }
    for (uint32_t i = 1; i < plan->graph->values; i++) {
        const struct weft_alias *const alias = &plan->alias.of[i];
        const weft_node host = weft_def(plan->graph, alias->in);
        over += alias->kind == WEFT_ALIAS_OVER && weft_unit_of(&plan->units, host)->nodes > 1;
    }
    for (size_t i = 0; weft_remark_get(plan->graph, i, &remark) == WEFT_OK; i++) {
        groups += !strcmp(remark.who, "fuse") && !strcmp(remark.verdict, "formed");
        refused += !strcmp(remark.who, "fuse") && strstr(remark.reason, "as one they would take") != NULL;
    }
}

/* Other sizes of N: those that keep the box small. */
static void try_sizes(struct trial *t, const struct weft_plan *fused, const struct weft_plan *alone)
{
    static const unsigned rare[] = {0, 200, 6};
    static const int64_t other[] = {0, 1, 15, 17, 130};
    const struct maker *m = t->maker;
    int64_t rest = 1;
    for (int i = 0; i < m->rank; i++)
        rest *= i != m->open && m->extent[i] > 0 ? m->extent[i] : 1;
    for (int i = 0; i < 3 && !t->fault[0]; i++)
        try_size(t, fused, alone, m->open < 0 ? 0 : hint_of(m), rare[i]);
    for (int i = 0; i < 5 && m->open >= 0 && !t->fault[0]; i++)
        if (other[i] * rest <= MANY_ELEMENTS)
            try_size(t, fused, alone, other[i], 200);
}

/* NULL, or what is wrong. */
static const char *check(struct maker *m, uint64_t seed, int steps, struct trial *t)
{
    struct weft_cpu machine;
    weft_cpu_detect(&machine);
    make(m, seed, steps);
    *t = (struct trial){.maker = m, .seed = seed, .cpu = machine.flags, .threads = 1 + (int)(seed % 4)};
    bool lower = true;
    for (; lower && !t->fault[0]; lower = weft_cpu_lower(t->cpu, &t->cpu), t->threads = t->threads % 4 + 1) {
        t->context = contexts[t->threads - 1];
        if (weft_parse(t->context, m->text, strlen(m->text), "program", &t->graph) != WEFT_OK) {
            snprintf(t->fault, sizeof t->fault, "does not parse: %s", weft_last_error(t->context));
            break;
        }
        struct weft_plan *const fused = plan_of(t, t->graph, WEFT_COMPILE_KEEP_CONSTANTS);
        struct weft_plan *const alone = plan_alone(t, fused);
        if (fused && alone) {
            count_groups(fused);
            try_sizes(t, fused, alone);
        } else {
            snprintf(t->fault, sizeof t->fault, "does not compile: %s", weft_last_error(t->context));
        }
        weft_plan_destroy(fused);
        weft_plan_destroy(alone);
        weft_graph_destroy(t->graph);
    }
    return t->fault[0] ? t->fault : NULL;
}

/* The shortest beginning that fails, too. */
static void show_failure(struct maker *m, uint64_t seed, struct trial *t)
{
    const char *fault = NULL;
    for (int steps = 1; !fault; steps++)
        fault = check(m, seed, steps, t);
    printf("seed %" PRIu64 ": %s\n%s", seed, fault, m->text);
}

static uint64_t first_seed = 1;
static int count = GRAPHS;

static void groups_compute_what_their_nodes_do(void **state)
{
    struct maker *const m = malloc(sizeof *m);
    struct trial *const t = malloc(sizeof *t);
    int failures = 0;
    assert_true(m && t);
    for (int i = 0; i < 4; i++)
        contexts[i] = open_context(i + 1);
    for (int i = 0; i < count; i++) {
        const uint64_t seed = first_seed + (uint64_t)i;
        if (!check(m, seed, steps_of(seed), t))
            continue;
        show_failure(m, seed, t);
        failures++;
    }
    printf("seeds %" PRIu64 " to %" PRIu64 ": %ld plans with %ld groups, %ld refused by price, %ld plans with groups "
           "of 16 bits, %ld of %ld scans in groups, %ld results over what groups read; %ld runs, %ld of them not "
           "compared, since they add up in "
           "another order; %d graphs fail\n",
           first_seed, first_seed + (uint64_t)count - 1, plans, groups, refused, widened, scans_in_groups, scans, over,
           runs, otherwise,
           failures);
    if (compiles)
        printf("%ld groups of runs as C, %ld of them with rows of several lines, of %u sources, %ld interpreted\n",
               compiled, several, knows, not_compiled);
    for (int i = 0; i < 4; i++)
        weft_close(contexts[i]);
    free(m);
    free(t);
    assert_int_equal(failures, 0);
    if (count >= GRAPHS) /* else there would be little that is tried here */
        assert_true(groups > plans / 2 && over > plans / 15 && scans_in_groups > scans / 4 && otherwise < runs / 5);
}

/* The graph of a seed, for weft opt and weft run. */
static void show(uint64_t seed)
{
    struct maker *const m = malloc(sizeof *m);
    assert_non_null(m);
    make(m, seed, steps_of(seed));
    fputs(m->text, stdout);
    free(m);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *const value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--compiled")) {
            compiles = has_compiler();
            continue;
        }
        if (!strcmp(argv[i], "--seed")) {
            first_seed = strtoull(value, NULL, 10);
            count = 1;
            show(first_seed);
        } else if (!strcmp(argv[i], "--count")) {
            count = atoi(value);
        } else if (!strcmp(argv[i], "--from")) {
            first_seed = strtoull(value, NULL, 10);
        } else {
            fprintf(stderr, "%s: no option '%s': --seed N, --from N, --count N, --compiled\n", argv[0], argv[i]);
            return 1;
        }
        i++;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_compute_what_their_nodes_do)};
    return cmocka_run_group_tests(tests, NULL, leave_folder);
}
