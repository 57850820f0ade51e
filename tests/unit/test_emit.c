/* SPDX-License-Identifier: Apache-2.0 */
/* test_emit.c: the C back end (codegen/emit.h): for forms of many kinds and sizes with tails of all lengths, what comes
 * of the emitted source has the bits of the interpreted program, in any number of parts, and writes nowhere else. */
#include "tests/unit/emit_forms.h"
#include "tests/unit/emit_look_forms.h"
#include "tests/unit/emit_scan_forms.h"
#include "tests/unit/emit_several_forms.h"
#include "tests/unit/emit_support.h"

struct subject {
    const char *text;
    bool calm;              /* no NaN and no infinities, so that a difference of numbers shows */
    bool across;            /* folds columns: strips run along these where they are long enough; or products that are
                             * scanned, of which rows up to 256 go side by side */
};

static const struct subject subjects[] = {
    {softmax_rows, false, false},    {softmax_rows, true, false},   {softmax_columns, true, true},
    {softmax_columns, false, true},  {layer_norm, true, false},     {rms_norm, false, false},
    {mean_columns, true, true},      {gelu_chain, false, false},    {bias_relu, false, false},
    {choices, false, false},         {masked_softmax, true, false}, {halves, true, false},
    {two_gathers, true, false},      {products, true, false},       {cross_entropy, true, false},
    {cross_entropy, false, false},   {picked_kept, true, false},      {picked_kept, false, false},
    {picked_pair, true, false},      {integer_labels, true, false}, {integers, true, false},
    {row_tests, true, false},        {row_tests, false, false},
    {scan_rows, true, false},        {scan_rows, false, false},     {scan_ways, true, false},
    {scan_ways, false, false},       {scan_top, true, false},       {scan_halves, true, false},
    {scan_halves, false, false},     {scan_counts, true, true},     {scan_columns, true, true},
    {scan_columns, false, true},
    {joined_rows, true, false},      {joined_rows, false, false},   {joined_outer, true, false},
    {joined_over, true, false},      {joined_over, false, false},   {flipped, true, false},
    {flipped_rows, true, false},     {flipped_rows, false, false},  {slower, true, false},
    {slower, false, false},
    {batch_norm, true, false},       {batch_norm, false, false},    {batch_norm_backward, true, false},
    {batch_norm_backward, false, false}, {softmax_planes, true, false}, {softmax_planes, false, false},
    {mean_of_three, true, false},    {across_planes, true, false},  {across_planes, false, false},
    {looked_planes, true, false},
};

/* Compiled code, by what it was compiled for. */
struct known {
    const char *text;
    uint64_t shape;
    weft_program_code *code;
};
static struct known known[128];
static unsigned knows;

static weft_program_code *code_of(struct fixture *f, const struct emit_trial *t, const char *text)
{
    const uint64_t shape = weft_emit_shape(t->program);
    for (unsigned i = 0; i < knows; i++)
        if (known[i].text == text && known[i].shape == shape)
            return known[i].code;
    struct weft_text source = {.context = f->context};
    char name[WEFT_EMIT_NAME];
    weft_emit_source(t->form, t->program, &source);
    weft_emit_name(t->form, name);
    weft_program_code *const code = compile_code(fixture_text(f, &source), name, t->program->cpu);
    assert_true(knows < sizeof known / sizeof *known);
    known[knows++] = (struct known){text, shape, code};
    return code;
}

static void compare(struct fixture *f, struct emit_trial *t, const char *text)
{
    static const int parts[] = {1, 3};
    void *want[EMIT_ARRAYS] = {NULL};
    t->program->code = NULL;
    emit_run(t, 1);
    for (uint32_t i = 0; i < t->form->arrays; i++) {
        want[i] = malloc(t->bytes[i]);
        assert_non_null(want[i]);
        memcpy(want[i], t->tensor[i].data, t->bytes[i]);
    }
    t->program->code = code_of(f, t, text);
    for (int p = 0; p < 4; p++) {
        /* whatever the size: what stands ahead of whole lines differs from row to row */
        t->program->past = p % 2 ? UINT64_MAX : 0;
        emit_run(t, parts[p / 2]);
        for (uint32_t i = 0; i < t->form->arrays; i++)
            if (!emit_same(t->tensor[i].dtype, t->tensor[i].data, want[i], t->bytes[i]))
                fail_msg("@%s, %%%s: N=%lld C=%lld gap %lld, cpu %#x, %d parts, past %d", t->form->name,
                         t->form->array[i].name, (long long)t->symbols[0], (long long)t->symbols[1],
                         (long long)t->gap, t->program->cpu, parts[p / 2], p % 2);
    }
    for (uint32_t i = 0; i < t->form->arrays; i++)
        free(want[i]);
}

/* One form at one level: one function serves all sizes that are long enough to have the same shape. */
static int try_sizes(struct fixture *f, const struct subject *subject, uint32_t cpu)
{
    static const int64_t sizes[][3] = {/* N, C, gap */
        {40, 1, 0}, {1, 40, 0}, {40, 15, 0}, {40, 16, 0}, {40, 17, 3}, {40, 31, 0}, {40, 33, 0}, {3, 511, 0},
        {3, 513, 1}, {5, 8193, 0}, {33, 300, 0}, {513, 257, 0}, {2000, 9, 0}, {2, 20000, 0}, {17, 17, 0}, {0, 5, 0},
        {40, 0, 0}};
    int taken = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct emit_trial t = {.form = parse(f, subject->text), .symbols = {sizes[i][0], sizes[i][1]},
                               .gap = sizes[i][2]};
        const struct weft_symbol_info *const first = weft_symbol_at(f->dims, 0);
        if (strcmp(first->name, "C") == 0) {
            t.symbols[0] = sizes[i][1];
            t.symbols[1] = sizes[i][0];
        }
        emit_open(f, &t, cpu, subject->calm);
        const char *const why = weft_emit_refuse(t.form, t.program);
        if (why && sizes[i][0] > 32 && sizes[i][1] > 32 && (!subject->across || sizes[i][0] > 64))
            fail_msg("@%s is refused: %s", t.form->name, why);
        if (!why) {
            compare(f, &t, subject->text);
            taken++;
        }
        emit_close(&t);
    }
    return taken;
}

static uint32_t level;
static const struct subject *subject_at_hand;

static void try_subject(struct fixture *f)
{
    const int taken = try_sizes(f, subject_at_hand, level);
    const bool scans = strstr(subject_at_hand->text, " scan "); /* no short rows */
    if (taken < (subject_at_hand->across || scans ? 6 : 12))
        fail_msg("%d sizes are taken of %s", taken, subject_at_hand->text);
}

static void try_level(const char *name)
{
    uint32_t flags;
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    assert_true(weft_cpu_parse(name, &flags));
    if (!has_compiler() || flags & ~cpu.flags) {
        print_message("skipped: %s\n", has_compiler() ? "this CPU has no such level" : "there is no cc");
        skip();
    }
    level = flags;
    knows = 0;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        subject_at_hand = &subjects[i];
        assert_int_equal(fixture_run(try_subject), WEFT_OK);
    }
}

static void emitted_code_has_the_bits_of_strips_baseline(void **state) { try_level("baseline"); }
static void emitted_code_has_the_bits_of_strips_avx2(void **state) { try_level("avx2"); }
static void emitted_code_has_the_bits_of_strips_avx512(void **state) { try_level("avx512"); }

/* --- all ops ------------------------------------------------------------------------------------------------------ */

static const struct row {
    const char *word;
    unsigned ins;
    bool test;
} rows[] = {
#define F1(id, op, result) {op, 1, false},
#define F2(id, op, result) {op, 2, false},
#define F3(id, op, result) {op, 3, false},
#define C1(id, op, mask)   {op, 1, true},
#define C2(id, op, mask)   {op, 2, true},
#define FN(id, op, in, out)
#include "kernels/strip/strip.def"
};
enum { ROWS = sizeof rows / sizeof *rows, TOGETHER = 5 };

/* A form with ops [from, from + count) of strip.def on one type, each with a result of its own. */
static const char *rows_form(struct fixture *f, const char *type, unsigned from, unsigned count)
{
    static const char *const operands[] = {"", " %x", " %x, %z", " %x, %z, %w"};
    struct weft_text text = {.context = f->context};
    weft_text_format(&text, "kernel @rows_%s_%u(in %%a: %s[N,C], in %%b: %s[C], in %%c: %s[N,C]", type, from, type,
                     type, type);
    for (unsigned i = 0; i < count; i++)
        weft_text_format(&text, ", out %%y%u: %s[N,C]", i, rows[from + i].test ? "bool" : type);
    weft_text_format(&text, ") {\n  axis r in N\n  axis c in C\n  phase r, c {\n    sweep r, c {\n"
                            "      %%x: %s = load %%a[r, c]\n      %%z: %s = load %%b[c]\n"
                            "      %%w: %s = load %%c[r, c]\n",
                     type, type, type);
    for (unsigned i = 0; i < count; i++) {
        const struct row *row = &rows[from + i];
        unsigned least;
        const unsigned params = weft_form_params(row->word, &least);
        weft_text_format(&text, "      %%r%u: %s = %s%s%s\n      store %%y%u[r, c], %%r%u\n", i,
                         row->test ? "bool" : type, row->word,
                         params == 0 ? "" : params == 1 ? "(0.75)" : "(0.25, 1.5)", operands[row->ins], i, i);
    }
    weft_text_add(&text, "    }\n  }\n}\n");
    return fixture_text(f, &text);
}

static void try_rows(struct fixture *f)
{
    static const char *const types[] = {"f32", "f16", "bf16"};
    for (unsigned t = 0; t < 3; t++)
        for (unsigned from = 0; from < ROWS; from += TOGETHER) {
            const char *const text = rows_form(f, types[t], from, ROWS - from < TOGETHER ? ROWS - from : TOGETHER);
            struct emit_trial trial = {.form = parse(f, text), .symbols = {4, 1021}};
            emit_open(f, &trial, level, /* calm= */ false);
            const char *const why = weft_emit_refuse(trial.form, trial.program);
            if (why)
                fail_msg("%s: %s", why, text);
            compare(f, &trial, text);
            emit_close(&trial);
        }
}

/* At the best level: what differs between levels is in forms above. */
static void every_row_has_the_bits_of_its_strip_kernel(void **state)
{
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    if (!has_compiler()) {
        print_message("skipped: there is no cc\n");
        skip();
    }
    level = cpu.flags & (WEFT_CPU_AVX2 | WEFT_CPU_AVX512);
    knows = 0;
    assert_int_equal(fixture_run(try_rows), WEFT_OK);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static void expect_refused(struct fixture *f, const char *text, int64_t n, int64_t c, const char *want)
{
    struct emit_trial t = {.form = parse(f, text), .symbols = {n, c}};
    emit_open(f, &t, 0, true);
    const char *const why = weft_emit_refuse(t.form, t.program);
    assert_non_null(why);
    assert_string_equal(why, want);
    emit_close(&t);
}

static void refuse_some(struct fixture *f)
{
    expect_refused(f, "kernel @transposed(in %x: f32[N,C], in %z: f32[C,N], out %y: f32[N,C]) {\n"
                      "  axis r in N\n  axis c in C\n"
                      "  phase r, c {\n"
                      "    sweep r, c {\n"
                      "      %0: f32 = load %x[r, c]\n"
                      "      %1: f32 = load %z[c, r]\n"
                      "      %2: f32 = add %0, %1\n"
                      "      store %y[r, c], %2\n"
                      "    }\n"
                      "  }\n"
                      "}\n", 50, 60, "has operands or results not contiguous along the vector axis");
    expect_refused(f, "kernel @integers(in %x: i32[N,C], out %y: i32[N,C]) {\n"
                      "  axis r in N\n  axis c in C\n"
                      "  phase r, c {\n"
                      "    sweep r, c {\n"
                      "      %0: i32 = load %x[r, c]\n"
                      "      %1: i32 = add %0, %0\n"
                      "      store %y[r, c], %1\n"
                      "    }\n"
                      "  }\n"
                      "}\n", 50, 60, "has ops that are not written in vectors");
    expect_refused(f, "kernel @planes(in %x: f32[N,8,C,64], out %y: f32[8,64]) {\n"
                      "  axis n in N\n  axis k in 8\n  axis c in C\n  axis j in 64\n"
                      "  phase k, j {\n"
                      "    sweep n, k, c, j {\n"
                      "      %0: f32 = load %x[n, k, c, j]\n"
                      "      %1: f32 = fold sum %0 over n, c\n"
                      "    }\n"
                      "    sweep k, j {\n"
                      "      store %y[k, j], %1\n"
                      "    }\n"
                      "  }\n"
                      "}\n", 50, 60, "reduces columns of several axes");
    expect_refused(f, "kernel @wide(in %x: f64[N,C], out %y: f64[N,C]) {\n"
                      "  axis r in N\n  axis c in C\n"
                      "  phase r, c {\n"
                      "    sweep r, c {\n"
                      "      %0: f64 = load %x[r, c]\n"
                      "      %1: f64 = exp %0\n"
                      "      store %y[r, c], %1\n"
                      "    }\n"
                      "  }\n"
                      "}\n", 50, 60, "has element types that are not written in vectors");
}

static void what_has_no_vectors_is_refused(void **state) { assert_int_equal(fixture_run(refuse_some), WEFT_OK); }

/* --- the text ----------------------------------------------------------------------------------------------------- */

/* The files beside this one; WEFT_BLESS=1 writes them anew. */
static void compare_text(struct fixture *f, const char *form, const char *file)
{
    char path[4096];
    struct emit_trial t = {.form = parse(f, form), .symbols = {100, 100}};
    struct weft_text text = {.context = f->context};
    snprintf(path, sizeof path, "%s/tests/unit/%s", getenv("WEFT_SOURCE") ? getenv("WEFT_SOURCE") : ".", file);
    emit_open(f, &t, WEFT_CPU_AVX2, true);
    weft_emit_includes(WEFT_CPU_AVX2, &text);
    weft_emit_kernel(t.form, t.program, &text);
    emit_close(&t);
    const char *const got = fixture_text(f, &text);
    FILE *const to = fopen(path, getenv("WEFT_BLESS") ? "w+" : "r");
    assert_non_null(to);
    if (getenv("WEFT_BLESS"))
        assert_true(fputs(got, to) >= 0);
    rewind(to);
    char *const want = weft_arena_new(f->arena, 1 << 16);
    want[fread(want, 1, (1 << 16) - 1, to)] = '\0';
    fclose(to);
    assert_string_equal(got, want);
}

static void print_some(struct fixture *f)
{
    compare_text(f, softmax_rows, "emit_softmax_rows.txt");
    compare_text(f, mean_columns, "emit_mean_columns.txt");
    compare_text(f, scan_rows, "emit_scan_rows.txt");
}

static const char *source_of(struct fixture *f, const char *form)
{
    struct emit_trial t = {.form = parse(f, form), .symbols = {100, 100}};
    struct weft_text text = {.context = f->context};
    emit_open(f, &t, WEFT_CPU_AVX2, true);
    weft_emit_kernel(t.form, t.program, &text);
    emit_close(&t);
    return fixture_text(f, &text);
}

/* Of a label, however it comes, the other columns are not visited. */
static void pick_some(struct fixture *f)
{
    static const char *const forms[] = {cross_entropy, integer_labels};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        assert_non_null(strstr(source_of(f, forms[i]), " place_of("));
}

/* Exponentials of what is 0 at most are known by the largest number of the same row, no other. */
static void bound_some(struct fixture *f)
{
    assert_non_null(strstr(source_of(f, softmax_rows), "vexp_below("));
    assert_null(strstr(source_of(f, two_gathers), "vexp_below("));
}

static void exponents_are_bounded_by_their_own_row(void **state)
{
    assert_int_equal(fixture_run(bound_some), WEFT_OK);
}

static void labels_are_picked(void **state) { assert_int_equal(fixture_run(pick_some), WEFT_OK); }

static void the_text_is_as_it_was(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip(); /* it is that of AVX2 */
    assert_int_equal(fixture_run(print_some), WEFT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_code_has_the_bits_of_strips_baseline),
        cmocka_unit_test(emitted_code_has_the_bits_of_strips_avx2),
        cmocka_unit_test(emitted_code_has_the_bits_of_strips_avx512),
        cmocka_unit_test(every_row_has_the_bits_of_its_strip_kernel),
        cmocka_unit_test(what_has_no_vectors_is_refused),
        cmocka_unit_test(labels_are_picked),
        cmocka_unit_test(exponents_are_bounded_by_their_own_row),
        cmocka_unit_test(the_text_is_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, leave_folder);
}
