/* SPDX-License-Identifier: Apache-2.0 */
/* test_scans.c: scans in groups: pieces of lines beside whole lines, and groups with long lines beside their nodes.
 * What test_program.c draws has lines of up to 1030 elements. */
#include "codegen/form.h"
#include "kernels/along/scan.h"
#include "tests/unit/compile_support.h"
#include "tests/unit/plan_support.h"

#include <pthread.h>

enum { MOST = 3000, LONG = 20000, LINES = 5, ROOM = (LONG + 1) * LINES * 8 }; /* LONG: lines that are cut into chunks */

static _Alignas(64) char from[ROOM], whole[ROOM], parts[ROOM];
static const int dtypes[] = {WEFT_F64, WEFT_F32, WEFT_BF16, WEFT_F16, WEFT_I64, WEFT_I32,
                             WEFT_I16, WEFT_I8,  WEFT_U64,  WEFT_U32, WEFT_U16, WEFT_U8};

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Numbers around 1, so that products stay in the range, and a few that no sum comes back from. */
static void fill(int dtype, int64_t elements, uint64_t *state)
{
    for (int64_t i = 0; i < elements; i++) {
        const uint64_t bits = next(state);
        const bool ends = bits % 1999 == 0;
        if (weft_dtype_is_float(dtype))
            weft_store_real(dtype, from, i, !ends ? (double)(bits % 301) / 150 : bits & 1 ? NAN : -INFINITY);
        else
            weft_store_integer(dtype, from, i, (int64_t)(bits % 7) - 2);
    }
}

/* In as many elements. */
static void expect_same(const char *what, const struct weft_scan *scan, uint32_t cpu, int64_t n, size_t bytes)
{
    bool same = true;
    for (int64_t i = 0; i < (int64_t)bytes / (weft_dtype_bits(scan->dtype) / 8) && same; i++) {
        const int64_t element = weft_dtype_bits(scan->dtype) / 8;
        const bool is_nan = weft_dtype_is_float(scan->dtype) && isnan(weft_load_real(scan->dtype, whole, i));
        same = is_nan ? isnan(weft_load_real(scan->dtype, parts, i)) /* which one is nobody's promise */
                      : !memcmp(whole + i * element, parts + i * element, (size_t)element);
    }
    if (!same)
        fail_msg("%s: op %d, dtype %d, exclusive %d, reverse %d, cpu 0x%x, %lld elements: other bits than whole lines",
                 what, (int)scan->op, scan->dtype, scan->exclusive, scan->reverse, cpu, (long long)n);
}

/* In strips that are cut anywhere but where they may not be. */
static void scan_in_strips(const struct weft_scan *scan, int64_t n, int64_t element, uint64_t *state)
{
    const struct weft_scan_ahead ahead = {.streams = 2, .at = {from, whole}};
    uint64_t sum[64];
    assert_true(weft_scan_bytes(scan, 1) <= sizeof sum);
    for (int line = 0; line < LINES; line++) {
        weft_scan_begin(scan, sum, 1);
        for (int64_t done = 0; done < n;) {
            const int64_t some = WEFT_SCAN_PIECE * (1 + (int64_t)(next(state) % 9));
            const int64_t length = some < n - done ? some : n - done;
            const int64_t at = (line * n + (scan->reverse ? n - done - length : done)) * element;
            assert_true(weft_scan_strip(scan, sum, parts + at, from + at, length, &ahead));
            done += length;
        }
    }
}

static void scan_over(const struct weft_scan *scan, int64_t n, int64_t element)
{
    const struct weft_scan_ahead nothing = {.streams = 0};
    uint64_t sum[64];
    for (int line = 0; line < LINES; line++) {
        weft_scan_begin(scan, sum, 1);
        for (int64_t done = 0; done < n; done += 512) {
            const int64_t length = n - done < 512 ? n - done : 512;
            const int64_t at = (line * n + (scan->reverse ? n - done - length : done)) * element;
            weft_scan_strip(scan, sum, parts + at, parts + at, length, &nothing);
        }
    }
}

/* Parts that have chunks in turn, each with a state of its own. */
struct part {
    const struct weft_scan *scan;
    int64_t n, element;
    uint64_t sum[64];
    void *shared;
    int parts;
};

static void run_chunk(void *user, const struct weft_scan_chunk *chunk)
{
    struct part *const part = user;
    const struct weft_scan_ahead nothing = {.streams = 0};
    for (int64_t done = chunk->begin; done < chunk->begin + chunk->n; done += 512) {
        const int64_t left = chunk->begin + chunk->n - done, length = left < 512 ? left : 512;
        const int64_t first = part->scan->reverse ? part->n - done - length : done;
        const int64_t at = (chunk->line * part->n + first) * part->element;
        weft_scan_strip(part->scan, part->sum, parts + at, from + at, length, &nothing);
    }
}

static void *run_part(void *user)
{
    struct part *const part = user;
    weft_scan_share(part->scan, part->sum, run_chunk, part, part->shared, part->parts);
    return NULL;
}

static void share_chunks(const struct weft_scan *scan, int64_t n, int64_t element)
{
    enum { PARTS = 3 };
    _Alignas(64) static char shared[4096];
    struct part part[PARTS];
    pthread_t thread[PARTS];
    assert_true(weft_scan_shared(scan) <= sizeof shared && weft_scan_bytes(scan, 1) <= sizeof part[0].sum);
    memset(shared, 0, sizeof shared);
    for (int i = 0; i < PARTS; i++) {
        part[i] = (struct part){.scan = scan, .n = n, .element = element, .shared = shared, .parts = PARTS};
        assert_int_equal(pthread_create(&thread[i], NULL, run_part, &part[i]), 0);
    }
    for (int i = 0; i < PARTS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 64; i++)
        assert_int_equal(shared[i], 0);
}

static void try_lines(struct weft_scan *scan, uint32_t cpu, int64_t n, int64_t element, uint64_t *state)
{
    struct weft_along along = {.op = scan->op, .dtype = scan->dtype, .exclusive = scan->exclusive,
                               .reverse = scan->reverse, .cpu = cpu, .rank = 1, .n = n, .in_step = 1, .out_step = 1,
                               .extent = {LINES}, .in_stride = {n}, .out_stride = {n}, .split = true};
    const size_t bytes = (size_t)(n * LINES * element);
    _Alignas(64) static char shared[4096];
    weft_along_prepare(&along, 1);
    assert_true(along.shared <= sizeof shared);
    weft_along_run(&along, whole, NULL, from, shared, 0, 1);
    weft_scan_prepare(scan, cpu, LINES, n, 1, 1);
    memset(parts, 1, bytes);
    scan_in_strips(scan, n, element, state);
    expect_same("strips", scan, cpu, n, bytes);
    if (!scan->exclusive) {
        memcpy(parts, from, bytes);
        scan_over(scan, n, element);
        expect_same("strips over what they read", scan, cpu, n, bytes);
    }
    if (scan->chunk) {
        memset(parts, 1, bytes);
        share_chunks(scan, n, element);
        expect_same("chunks", scan, cpu, n, bytes);
        return;
    }
    memset(parts, 1, bytes);
    weft_scan_lines(scan, parts, from, n, n, LINES);
    expect_same("lines", scan, cpu, n, bytes);
}

static void try_columns(struct weft_scan *scan, uint32_t cpu, int64_t n, int64_t element)
{
    struct weft_along along = {.op = scan->op, .dtype = scan->dtype, .exclusive = scan->exclusive,
                               .reverse = scan->reverse, .cpu = cpu, .rank = 1, .n = n, .in_step = LINES,
                               .out_step = LINES, .extent = {LINES}, .in_stride = {1}, .out_stride = {1}};
    uint64_t sum[LINES];
    weft_along_prepare(&along, 1);
    weft_along_run(&along, whole, NULL, from, NULL, 0, 1);
    scan->beside = true;
    weft_scan_prepare(scan, cpu, LINES, n, LINES, LINES);
    assert_int_equal(weft_scan_bytes(scan, LINES), sizeof sum);
    weft_scan_begin(scan, sum, LINES);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (scan->reverse ? n - 1 - i : i) * LINES * element;
        weft_scan_beside(scan, sum, parts + at, from + at, 1, 1, LINES);
    }
    expect_same("columns", scan, cpu, n, (size_t)(n * LINES * element));
}

static void pieces_are_as_the_whole(void **unused)
{
    static const int64_t lengths[] = {1, 31, 32, 65, 700, MOST, LONG, LONG + 1};
    struct weft_cpu machine;
    weft_cpu_detect(&machine);
    uint32_t cpu = machine.flags;
    uint64_t state = 5;
    bool lower = true;
    for (; lower; lower = weft_cpu_lower(cpu, &cpu))
        for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
            for (int which = 0; which < 4 * 4; which++) {
                struct weft_scan scan = {.op = (enum weft_along_op)(WEFT_K_CUMSUM + which / 4),
                                         .dtype = (uint8_t)dtypes[t], .exclusive = which & 1, .reverse = which & 2};
                const int64_t n = lengths[next(&state) % 8], element = weft_dtype_bits(dtypes[t]) / 8;
                fill(dtypes[t], n * LINES, &state);
                try_lines(&scan, cpu, n, element, &state);
                try_columns(&scan, cpu, n, element);
            }
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* Rows of several strips, columns of several tiles; and rows that are cut into chunks, of which the last is short. */
static const struct shape {
    int rows, columns;
} shapes[] = {{70, 2100}, {3, 49000}};
enum { ELEMENTS = 70 * 2100 };

/* T stands for the type, a semicolon for the end of a line. */
static const char *const bodies[] = {
    "%v: T = mul %x, %w; %s: T = cumsum %v axis=1; %y: T = add %s, %w; return %y",
    "%v: T = mul %x, %w; %s: T = cumsum %v axis=1 exclusive=1 reverse=1; %y: T = sub %s, %v; return %y, %s",
    "%v: T = sub %x, %w; %s: T = cumsum %v axis=0 reverse=1; %y: T = max %s, %w; return %y",
    "%v: T = add %x, %w; %s: T = cumsum %v axis=0 exclusive=1; %y: T = mul %s, %w; return %y",
    "%s: T = cumsum %x axis=1; %r: T = cummax %s axis=1 reverse=1; %y: T = sub %r, %s; return %y",
    "%v: T = min %x, %w; %s: T = cummin %v axis=1; %r: T = cumsum %s axis=1 exclusive=1; %y: T = add %r, %x; return %y",
};
static _Alignas(64) char operands[2][ELEMENTS * 8];

static const char *text_of(const char *body, const struct shape *shape, int dtype, char text[2048])
{
    char type[32];
    snprintf(type, sizeof type, "%s[%d,%d]", weft_dtype_name(dtype), shape->rows, shape->columns);
    int length = snprintf(text, 2048, "weft 1\ngraph @g(%%x: %s, %%w: %s) {\n", type, type);
    for (; *body; body++)
        length += *body == 'T' ? snprintf(text + length, (size_t)(2048 - length), "%s", type)
                               : snprintf(text + length, (size_t)(2048 - length), "%c", *body == ';' ? '\n' : *body);
    snprintf(text + length, (size_t)(2048 - length), "\n}\n");
    return text;
}

static long scans_of(const struct weft_plan *plan)
{
    long count = 0;
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_form *const form = weft_step_form(&plan->step[i]);
        for (uint32_t k = 0; form && k < form->ops; k++)
            count += form->op[k].kind == WEFT_FORM_SCAN;
    }
    return count;
}

struct ran {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
};

static struct ran run(const char *text, const struct shape *shape, int dtype, int threads, uint32_t flags)
{
    struct ran r = {.context = open_context(threads)};
    r.graph = parse(r.context, text);
    r.plan = compile(r.graph, flags);
    assert_int_equal(weft_execution_create(r.plan, &r.execution), WEFT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct weft_tensor t = {.data = operands[i], .dtype = dtype, .rank = 2,
                                .extent = {shape->rows, shape->columns}};
        weft_tensor_dense(&t);
        assert_int_equal(weft_bind_input(r.execution, i, &t), WEFT_OK);
    }
    if (weft_run(r.execution) != WEFT_OK)
        fail_msg("%s", weft_execution_error(r.execution));
    return r;
}

static void drop(struct ran *r)
{
    weft_execution_destroy(r->execution);
    weft_plan_destroy(r->plan);
    weft_graph_destroy(r->graph);
    weft_close(r->context);
}

static void expect_equal(const struct ran *a, const struct ran *b, const char *text, int threads)
{
    for (uint32_t i = 0; i < a->graph->returns; i++) {
        struct weft_tensor x, y;
        assert_int_equal(weft_output(a->execution, i, &x), WEFT_OK);
        assert_int_equal(weft_output(b->execution, i, &y), WEFT_OK);
        if (memcmp(x.data, y.data, (size_t)ELEMENTS * (size_t)weft_dtype_bits(x.dtype) / 8))
            fail_msg("result %u: other bits with %d threads:\n%s", i, threads, text);
    }
}

static void store(int dtype, void *data, int64_t i, uint64_t bits)
{
    if (weft_dtype_is_float(dtype))
        weft_store_real(dtype, data, i, (double)(bits % 4001) / 997 - 2);
    else
        weft_store_integer(dtype, data, i, (int64_t)(bits % 9) - 4);
}

/* Does a group share chunks of rows out? */
static bool shares(const struct ran *r)
{
    bool any = false;
    for (uint32_t i = 0; i < r->plan->steps; i++) {
        const struct weft_step *const step = &r->plan->step[i];
        const struct weft_program *const program = weft_frame_descriptor(r->execution->frame, step);
        any |= step->kind == &weft_step_strips && program->shared;
    }
    return any;
}

static long shared, compiled;

/* Run by run the same bits, interpreted and compiled. */
static void expect_compiled(struct ran *r, const struct ran *before, const char *text, int threads)
{
    if (!has_compiler() || weft_plan_wait(r->plan) != WEFT_OK)
        return;
    assert_int_equal(weft_run(r->execution), WEFT_OK);
    compiled++;
    expect_equal(r, before, text, threads);
}

/* A group of 16 bits rounds where it stores, its nodes one by one each: there the plan for one thread is what others
 * are compared with, if they have the same groups. */
static void try_group(const char *body, const struct shape *shape, int dtype, bool compile_too)
{
    char text[2048];
    text_of(body, shape, dtype, text);
    struct ran before = run(text, shape, dtype, 1, dtype == WEFT_BF16 ? 0 : WEFT_COMPILE_NO_FUSE);
    for (int threads = 1; threads <= 4; threads++) {
        struct ran r = run(text, shape, dtype, threads, 0);
        if (dtype != WEFT_BF16 && shape == &shapes[0] && !scans_of(r.plan))
            fail_msg("%d threads: no scan is in a group:\n%s", threads, text);
        shared += shares(&r);
        if (r.plan->steps == before.plan->steps || dtype != WEFT_BF16) {
            expect_equal(&r, &before, text, threads);
            if (compile_too)
                expect_compiled(&r, &before, text, threads);
        }
        drop(&r);
    }
    drop(&before);
}

static void groups_are_as_their_nodes(void **unused)
{
    static const int types[] = {WEFT_F32, WEFT_F64, WEFT_I64, WEFT_I32, WEFT_BF16};
    uint64_t state = 11;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
            for (int64_t i = 0; i < 2 * ELEMENTS; i++)
                store(types[t], operands[i / ELEMENTS], i % ELEMENTS, next(&state));
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                try_group(bodies[b], &shapes[s], types[t], types[t] == WEFT_F32 || types[t] == WEFT_BF16);
        }
    print_message("%ld plans share chunks of rows out, %ld are compiled\n", shared, compiled);
    assert_true(shared > 10 && (compiled > 0 || !has_compiler()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_are_as_the_whole),
                                       cmocka_unit_test(groups_are_as_their_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
