/* SPDX-License-Identifier: Apache-2.0 */
/* test_program.c: strip programs beside their ops one by one, on graphs drawn at random.
 *
 * A graph is a function of its seed: elementwise ops, comparisons, selects, casts and reductions over the first or the
 * last axes of one box, over parameters of the whole box or of some of its axes. It is compiled as it is, so that what
 * goes together becomes groups, and with WEFT_COMPILE_NO_FUSE; both run on the same numbers, tame and hostile, at each
 * CPU level of the machine, with 1 to 4 threads, and where the box has an open extent, at several. Every bit has to
 * agree, but NaN is NaN, unless terms are added up in another order. Boxes stay below 256 KiB, so that reductions alone are not cut into slices, which programs do not have.
 *
 *   build/tests/test_program --seed 17      that graph, its plan, and whether it agrees
 *   build/tests/test_program --count 50000  more of them */
#include "plan_support.h"

#include "codegen/strips.h"

#include <inttypes.h>

enum { GRAPHS = 1000, MOST_VALUES = 96, RANK = 4, MOST_ELEMENTS = 32767, MANY_ELEMENTS = 3000, MOST_PARAMS = 16, MOST_RETURNS = 5 };

/* Which axes of the box a value has: all; those that are not folded, also with the others as axes of extent 1. */
enum shape { WHOLE, KEPT, KEEPDIMS, SHAPES };

struct value {
    char name[8];
    int dtype;
    enum shape shape;
    bool computed;         /* not a parameter, a view or a constant */
};
struct maker {
    uint64_t state;
    int rank, steps;
    int64_t extent[RANK];
    unsigned folded;       /* axes, a bit each: the first or the last ones */
    int open;              /* axis whose extent is the symbol N, or -1 */
    struct value value[MOST_VALUES];
    int values, params;
    char head[4096], body[16384], text[24576];
};

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static unsigned draw(struct maker *m, unsigned n) { return (unsigned)(next(&m->state) % n); }

static void add_text(char *to, size_t bytes, const char *format, ...) WEFT_PRINTF(3, 4);
static void add_text(char *to, size_t bytes, const char *format, ...)
{
    va_list arguments;
    const size_t length = strlen(to);
    va_start(arguments, format);
    const int added = vsnprintf(to + length, bytes - length, format, arguments);
    va_end(arguments);
    assert_true(added >= 0 && (size_t)added < bytes - length);
}
#define HEAD(...) add_text(m->head, sizeof m->head, __VA_ARGS__)
#define BODY(...) add_text(m->body, sizeof m->body, __VA_ARGS__)

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static int64_t draw_extent(struct maker *m)
{
    static const int64_t extents[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 65, 100, 257, 513, 1030};
    return draw(m, 60) == 0 ? 0 : extents[draw(m, 16)];
}

static void draw_box(struct maker *m)
{
    int64_t elements = 1;
    const int64_t most = draw(m, 8) ? MANY_ELEMENTS : MOST_ELEMENTS; /* most are small: that is faster */
    m->rank = 1 + (int)draw(m, RANK);
    for (int i = 0; i < m->rank; i++) {
        do
            m->extent[i] = draw_extent(m);
        while (m->extent[i] * elements > most);
        elements *= m->extent[i] > 0 ? m->extent[i] : 1;
    }
    const int count = m->rank == 1 ? (int)draw(m, 2) : 1 + (int)draw(m, (unsigned)m->rank - 1);
    m->folded = (1u << count) - 1;
    if (draw(m, 3))
        m->folded <<= m->rank - count;
    m->open = draw(m, 4) ? -1 : (int)draw(m, (unsigned)m->rank);
}

static bool has_axis(const struct maker *m, enum shape shape, int axis)
{
    return shape != KEPT || !(m->folded >> axis & 1);
}

static const char *extent_text(const struct maker *m, enum shape shape, int axis, char text[24])
{
    if (shape == KEEPDIMS && m->folded >> axis & 1)
        return "1";
    if (axis == m->open)
        return "N";
    snprintf(text, 24, "%" PRId64, m->extent[axis]);
    return text;
}

/* "f32[5,N]". */
static const char *type_text(const struct maker *m, int dtype, enum shape shape, char text[96])
{
    int axes = 0;
    char one[24];
    snprintf(text, 96, "%s[", weft_dtype_name(dtype));
    for (int i = 0; i < m->rank; i++)
        if (has_axis(m, shape, i))
            add_text(text, 96, "%s%s", axes++ ? "," : "", extent_text(m, shape, i, one));
    add_text(text, 96, "]");
    return text;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static struct value *new_value(struct maker *m, int dtype, enum shape shape, bool computed)
{
    struct value *const v = &m->value[m->values];
    *v = (struct value){.dtype = dtype, .shape = shape, .computed = computed};
    snprintf(v->name, sizeof v->name, "v%d", m->values++);
    return v;
}

static int draw_dtype(struct maker *m)
{
    static const int dtypes[] = {WEFT_F32, WEFT_F32, WEFT_F32, WEFT_F32, WEFT_BF16, WEFT_F16,
                                 WEFT_F64, WEFT_I32, WEFT_I64, WEFT_BOOL, WEFT_U8,  WEFT_I8};
    return dtypes[draw(m, 12)];
}

/* Begins the line of a result; the caller ends it. */
static struct value *begin(struct maker *m, int dtype, enum shape shape, bool computed)
{
    char type[96];
    struct value *const v = new_value(m, dtype, shape, computed);
    BODY("  %%%s: %s = ", v->name, type_text(m, dtype, shape, type));
    return v;
}

/* One that is stored transposed and seen in order, one whose rows lie apart, or as it is. */
static const struct value *add_param(struct maker *m, int dtype, enum shape shape)
{
    char type[96];
    const char *const from = m->params++ ? ", " : "";
    const unsigned how = shape == WHOLE && m->rank == 2 ? draw(m, 6) : 5;
    if (how == 0) {
        char first[24], second[24];
        HEAD("%s%%p%d: %s[%s,%s]", from, m->params, weft_dtype_name(dtype), extent_text(m, WHOLE, 1, first),
             extent_text(m, WHOLE, 0, second));
        struct value *const v = begin(m, dtype, WHOLE, false);
        BODY("transpose %%p%d perm=[1 0]\n", m->params);
        return v;
    }
    if (how == 1 && m->open != 1) {
        char first[24];
        HEAD("%s%%p%d: %s[%s,%" PRId64 "]", from, m->params, weft_dtype_name(dtype), extent_text(m, WHOLE, 0, first),
             2 * m->extent[1] + 3);
        struct value *const v = begin(m, dtype, WHOLE, false);
        const int64_t step = 1 + draw(m, 2);
        BODY("slice %%p%d start=[0 1] end=[%s %" PRId64 "] step=[1 %" PRId64 "]\n", m->params,
             m->open == 0 ? "N" : first, 1 + (m->extent[1] > 0 ? step * (m->extent[1] - 1) + 1 : 0), step);
        return v;
    }
    const char *const order = shape != WHOLE || draw(m, 4) ? "" : m->rank == 4 ? "{0 2 3 1}" : m->rank == 3 ? "{0 2 1}"
                                                                                                        : "";
    struct value *const v = new_value(m, dtype, shape, false);
    HEAD("%s%%%s: %s%s", from, v->name, type_text(m, dtype, shape, type), order);
    return v;
}

static const struct value *draw_value(struct maker *m)
{
    if (m->values == 0 || (m->params < 4 && draw(m, 8) == 0))
        return add_param(m, draw_dtype(m), draw(m, 4) ? WHOLE : draw(m, 2) ? KEPT : KEEPDIMS);
    const unsigned values = (unsigned)m->values;
    return &m->value[draw(m, 2) && values > 3 ? values - 1 - draw(m, 3) : draw(m, values)];
}

static const struct value *cast_to(struct maker *m, const struct value *x, int dtype)
{
    if (x->dtype == dtype)
        return x;
    const struct value *const v = begin(m, dtype, x->shape, true);
    BODY("cast %%%s\n", x->name);
    return v;
}

static const struct value *add_bcast(struct maker *m, const struct value *x)
{
    const struct value *const v = begin(m, x->dtype, WHOLE, false);
    int axes = 0;
    BODY("bcast %%%s dims=[", x->name);
    for (int i = 0; i < m->rank; i++)
        if (has_axis(m, x->shape, i))
            BODY("%s%d", axes++ ? " " : "", i);
    BODY("]\n");
    return v;
}

static const struct value *add_reduction(struct maker *m, const struct value *x, enum shape shape)
{
    static const char *const words[] = {"sum", "sum", "mean", "reduce_max", "reduce_min", "prod"};
    const bool truth = x->dtype == WEFT_BOOL;
    const char *const word = truth ? (draw(m, 2) ? "any" : "all") : words[draw(m, 6)];
    const struct value *const v = begin(m, x->dtype, shape, true);
    int axes = 0;
    BODY("%s %%%s axes=[", word, x->name);
    for (int i = 0; i < m->rank; i++)
        if (m->folded >> i & 1)
            BODY("%s%d", axes++ ? " " : "", i);
    BODY("]%s\n", shape == KEEPDIMS ? " keepdims=1" : "");
    return v;
}

/* Another value as one of this shape and type: through views, reductions and casts, or a constant. */
static const struct value *draw_partner(struct maker *m, int dtype, enum shape shape)
{
    static const char *const numbers[] = {"0", "1", "2", "3", "0.5", "-0.0", "-1.5", "7"};
    if (draw(m, 6) == 0) {
        const struct value *const v = begin(m, dtype, shape, false);
        const unsigned most = weft_dtype_is_float(dtype) ? 8 : dtype == WEFT_BOOL ? 2 : 4;
        BODY("const value=%s\n", numbers[draw(m, most)]);
        return v;
    }
    const struct value *x = draw_value(m);
    if (x->shape != shape && shape != WHOLE) {
        x = x->shape == WHOLE ? x : add_bcast(m, x);
        x = m->folded ? add_reduction(m, x, shape) : add_param(m, dtype, shape);
    } else if (x->shape != shape) {
        x = add_bcast(m, x);
    }
    return cast_to(m, x, dtype);
}

/* --- ops ---------------------------------------------------------------------------------------------------------- */

static void add_unary(struct maker *m, const struct value *x)
{
    static const char *const real[] = {"abs", "neg", "sign", "relu",  "floor",   "round",   "sqrt",     "rsqrt",
                                       "exp", "log", "sin",  "tanh",  "sigmoid", "erf",     "softplus", "recip",
                                       "cos", "ceil", "log1p", "expm1"};
    static const char *const whole[] = {"abs", "neg", "sign", "relu", "bit_not"};
    const int dtype = x->dtype;
    if (weft_dtype_is_float(dtype) && draw(m, 12) == 0) {
        begin(m, WEFT_BOOL, x->shape, true);
        BODY("%s %%%s\n", draw(m, 2) ? "is_nan" : "is_inf", x->name);
        return;
    }
    begin(m, dtype, x->shape, true);
    BODY("%s %%%s\n", weft_dtype_is_float(dtype) ? real[draw(m, 20)] : dtype == WEFT_BOOL ? "not"
                      : whole[draw(m, 5)], x->name);
}

static void add_binary(struct maker *m, const struct value *x)
{
    static const char *const numeric[] = {"add", "sub", "mul", "div", "min", "max", "add", "mul", "mod", "pow"};
    static const char *const compare[] = {"eq", "ne", "lt", "le", "gt", "ge"}, *const logic[] = {"and", "or", "xor"};
    const struct value *const y = draw_partner(m, x->dtype, x->shape);
    const bool truth = x->dtype == WEFT_BOOL, compares = !truth && draw(m, 5) == 0, swapped = draw(m, 2);
    const char *const word = truth ? logic[draw(m, 3)] : compares ? compare[draw(m, 6)]
                             : numeric[draw(m, weft_dtype_is_float(x->dtype) ? 10 : 8)];
    begin(m, compares ? WEFT_BOOL : x->dtype, x->shape, true);
    BODY("%s %%%s, %%%s\n", word, swapped ? y->name : x->name, swapped ? x->name : y->name);
}

static void add_ternary(struct maker *m, const struct value *x)
{
    const bool fma = x->dtype != WEFT_BOOL && draw(m, 3) == 0;
    const struct value *const y = draw_partner(m, x->dtype, x->shape);
    const struct value *const c = draw_partner(m, fma ? x->dtype : WEFT_BOOL, x->shape);
    begin(m, x->dtype, x->shape, true);
    BODY("%s %%%s, %%%s, %%%s\n", fma ? "fma" : "select", c->name, x->name, y->name);
}

static void add_step(struct maker *m)
{
    const struct value *const x = draw_value(m);
    switch (draw(m, 8)) {
    case 0: cast_to(m, x, draw_dtype(m)); break;
    case 1:
    case 2: add_unary(m, x); break;
    case 3: add_ternary(m, x); break;
    case 4:
    case 5:
        if (x->shape == WHOLE && m->folded)
            add_reduction(m, x, draw(m, 2) ? KEPT : KEEPDIMS);
        else if (x->shape != WHOLE)
            add_bcast(m, x);
        break;
    default: add_binary(m, x); break;
    }
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* The last computed value, and some of the others. */
static void add_returns(struct maker *m, uint64_t seed)
{
    uint64_t state = seed ^ 0x9e3779b97f4a7c15u;
    int returns = 0;
    for (int i = m->values; i-- > 0 && returns < MOST_RETURNS;)
        if (m->value[i].computed && (returns == 0 || next(&state) % 6 == 0))
            BODY("%s%%%s", returns++ ? ", " : "  return ", m->value[i].name);
    BODY("\n}\n");
}

/* A hint is above 0. */
static int64_t hint_of(const struct maker *m) { return m->extent[m->open] > 0 ? m->extent[m->open] : 1; }

/* Of so many steps. Fewer steps of one seed are the beginning of more. */
static void make(struct maker *m, uint64_t seed, int steps)
{
    *m = (struct maker){.state = seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        next(&m->state);
    draw_box(m);
    add_param(m, draw_dtype(m), WHOLE);
    bool computed = false;
    for (int i = 0; (i < steps || !computed) && m->values < MOST_VALUES - 12; i++) {
        add_step(m);
        for (int k = 0; k < m->values; k++)
            computed |= m->value[k].computed;
    }
    add_returns(m, seed);
    char symbol[48] = "";
    if (m->open >= 0)
        snprintf(symbol, sizeof symbol, "<N=0..1030 hint=%" PRId64 ">", hint_of(m));
    add_text(m->text, sizeof m->text, "weft 1\ngraph @g%s(%s) {\n%s", symbol, m->head, m->body);
}

static int steps_of(uint64_t seed) { return 1 + (int)(seed * 2654435761u >> 7 & 0xffff) % 14; }

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
static long groups, refused, plans, runs, otherwise; /* otherwise: runs whose sums are added up in another order */

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

static struct weft_plan *plan_of(const struct trial *t, uint32_t flags)
{
    struct weft_target target = {.cpu = t->cpu, .threads = t->threads, .l1 = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20,
                                 .arithmetic = WEFT_CONV_F2, .name = "test"};
    const struct weft_compile_options options = {.size = sizeof options, .target = &target, .flags = flags};
    struct weft_plan *plan = NULL;
    if (weft_compile(t->graph, &options, &plan) != WEFT_OK)
        return NULL;
    return plan;
}

static struct weft_execution *run_plan(struct trial *t, const struct weft_plan *plan)
{
    struct weft_execution *e;
    assert_int_equal(weft_execution_create(plan, &e), WEFT_OK);
    bool right = true;
    for (uint32_t i = 0; i < t->graph->params && right; i++)
        right = weft_bind_input(e, i, &t->in[i]) == WEFT_OK;
    if (!right || weft_run(e) != WEFT_OK)
        snprintf(t->fault, sizeof t->fault, "does not run: %s", weft_execution_error(e));
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

enum { LINES = 1, COLUMNS = 2 };

/* How folds of these sizes add up: terms side by side, results side by side, or some so and some so. */
static unsigned forms_of(const struct weft_execution *e)
{
    unsigned forms = 0;
    int64_t lanes;
    for (uint32_t i = 0; i < e->plan->steps; i++) {
        const struct weft_step *const step = &e->plan->step[i];
        const void *const descriptor = weft_frame_descriptor(e->frame, step);
        if (step->kind == &weft_step_reduce)
            forms |= weft_reduce_columns(descriptor, &lanes) > 0 ? COLUMNS : LINES;
        else if (step->code && ((const struct weft_program *)descriptor)->folds > 0)
            forms |= ((const struct weft_program *)descriptor)->along_inner ? LINES : COLUMNS;
    }
    return forms;
}

/* A group may fold in another order than its reductions alone: their operands lie otherwise, where a value that they
 * alone would read from memory is a broadcast, or never stored. */
static bool rounds_otherwise(const struct trial *t, const struct weft_execution *a, const struct weft_execution *b)
{
    const bool rounds = strstr(t->maker->body, "sum") || strstr(t->maker->body, "mean") ||
                        strstr(t->maker->body, "prod");
    return rounds && (forms_of(a) | forms_of(b)) == (LINES | COLUMNS);
}

static void try_size(struct trial *t, const struct weft_plan *fused, const struct weft_plan *alone, int64_t n,
                     unsigned rare)
{
    make_inputs(t, n, rare);
    struct weft_execution *const a = run_plan(t, fused), *const b = run_plan(t, alone);
    runs++;
    if (!t->fault[0] && rounds_otherwise(t, a, b))
        otherwise++;
    else if (!t->fault[0])
        compare(t, a, b, n);
    weft_execution_destroy(a);
    weft_execution_destroy(b);
    drop_inputs(t);
}

static void count_groups(const struct weft_plan *plan)
{
    struct weft_remark remark;
    plans++;
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
        struct weft_plan *const fused = plan_of(t, 0), *const alone = plan_of(t, WEFT_COMPILE_NO_FUSE);
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
    printf("seeds %" PRIu64 " to %" PRIu64 ": %ld plans with %ld groups, %ld refused by price; %ld runs, %ld of them not compared, "
           "since they add up in another order; %d graphs fail\n",
           first_seed, first_seed + (uint64_t)count - 1, plans, groups, refused, runs, otherwise, failures);
    for (int i = 0; i < 4; i++)
        weft_close(contexts[i]);
    free(m);
    free(t);
    assert_int_equal(failures, 0);
    if (count >= GRAPHS)
        assert_true(groups > plans / 2 && otherwise < runs / 5); /* else there would be little that is tried here */
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
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed")) {
            first_seed = strtoull(argv[i + 1], NULL, 10);
            count = 1;
            show(first_seed);
        } else if (!strcmp(argv[i], "--count")) {
            count = atoi(argv[i + 1]);
        } else if (!strcmp(argv[i], "--from")) {
            first_seed = strtoull(argv[i + 1], NULL, 10);
        }
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_compute_what_their_nodes_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
