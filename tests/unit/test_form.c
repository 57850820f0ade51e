/* SPDX-License-Identifier: Apache-2.0 */
/* test_form.c: the text of kernel forms and their counts. Every kernel of codegen/README.md is read out of it, and
 * prints to the very text that stands there. */
#include "tests/unit/form_support.h"

#include <math.h>

/* --- codegen/README.md -------------------------------------------------------------------------------------------- */

static void readme_body(struct fixture *f)
{
    const char *cursor = read_readme(f), *text;
    int kernels = 0;
    for (; (text = find_kernel(f, &cursor, NULL)) != NULL; kernels++) {
        const struct weft_form *const form = parse(f, text);
        assert_null(weft_form_fault(form, f->arena));
        assert_string_equal(print(f, form), text);
        assert_string_equal(print(f, parse(f, print(f, form))), text);
    }
    assert_int_equal(kernels, 12);
}
static void readme(void **state) { assert_int_equal(fixture_run(readme_body), WEFT_OK); }

/* --- text --------------------------------------------------------------------------------------------------------- */

/* What a person may write, and how it is printed. */
static const char *const rewritten[][2] = {
    {"kernel @k ( out %y : f32 [ ] ) { # nothing else\n\n axis r in 3 # rows\n phase{ sweep{\n%a :f32=const 1e0\n"
     "store %y [ ],%a } }\n}\n\n",
     "kernel @k(out %y: f32[]) {\n  axis r in 3\n  phase {\n    sweep {\n      %a: f32 = const 1\n"
     "      store %y[], %a\n    }\n  }\n}\n"},
    {"kernel @k(in %x: f32[N,8], out %y: f32[N]) {\naxis r in N\naxis c in 2*3 - 1\nphase r {\nsweep c, r {\n"
     "%a: f32 = load %x[N - 1 - r, 1 + c + 2 - c + c]\n%b: f32 = fold sum %a over c\n}\nsweep r {\n"
     "%q: f32 = clamp(-inf, 6) %b\nstore %y[r], %q\n}\n}\n}\n",
     "kernel @k(in %x: f32[N,8], out %y: f32[N]) {\n  axis r in N\n  axis c in 5\n  phase r {\n    sweep r, c {\n"
     "      %a: f32 = load %x[-r + (N - 1), c + 3]\n      %b: f32 = fold sum %a over c\n    }\n    sweep r {\n"
     "      %q: f32 = clamp(-inf, 6) %b\n      store %y[r], %q\n    }\n  }\n}\n"},
    /* An axis called like a size. */
    {"kernel @k(in %x: f32[n*m], out %y: f32[n,m]) {\naxis n in n\naxis c in m\nphase n by 4*m, c {\nsweep n, c {\n"
     "%a: f32 = load %x[c + (m)*n]\nstore %y[n, c], %a\n}\n}\n}\n",
     "kernel @k(in %x: f32[m*n], out %y: f32[n,m]) {\n  axis n in n\n  axis c in m\n  phase n by 4*m, c {\n"
     "    sweep n, c {\n      %a: f32 = load %x[(m)*n + c]\n      store %y[n, c], %a\n    }\n  }\n}\n"},
    {"kernel @\"a b\"(in %\"x y\": bool[4], in %i: i8[4], out %y: i8[4]) {\naxis r in 4\nphase {\nsweep r {\n"
     "%a: bool = load %\"x y\"[r + 1 ?] else 1\n%b: i8 = load %i[r - 2 ?] else -128\n%c: i8 = const 3\n"
     "%d: i8 = select %a, %b, %c\n%e: i8 = clamp(0, 6) %d\nstore %y[r ?], %e\n}\n}\n}\n",
     "kernel @\"a b\"(in %\"x y\": bool[4], in %i: i8[4], out %y: i8[4]) {\n  axis r in 4\n  phase {\n    sweep r {\n"
     "      %a: bool = load %\"x y\"[r + 1 ?] else 1\n      %b: i8 = load %i[r - 2 ?] else -128\n"
     "      %c: i8 = const 3\n      %d: i8 = select %a, %b, %c\n      %e: i8 = clamp(0, 6) %d\n"
     "      store %y[r ?], %e\n    }\n  }\n}\n"},
    /* Pieces of a concat, backwards, and two results to an element; an axis called floor. */
    {"kernel @k(in %a: f32[N], in %b: f32[3], out %y: f32[N + 3]) {\naxis floor in N+3\nphase floor {\nsweep floor {\n"
     "%0: f32 = load %a[floor ?]\n%1: f32 = load %b[floor - N ?] else %0\n%2: f32 = load %b[floor ( 0 , 4 )]\n"
     "%3: f32 = load %b[floor( 2 - 2 + 1,2 )]\n%4: f32 = add %1, %2\n%5: f32 = add %4, %3\nstore %y[floor], %5\n"
     "}\n}\n}\n",
     "kernel @k(in %a: f32[N], in %b: f32[3], out %y: f32[N + 3]) {\n  axis floor in N + 3\n  phase floor {\n"
     "    sweep floor {\n      %0: f32 = load %a[floor ?]\n      %1: f32 = load %b[floor + (-N) ?] else %0\n"
     "      %2: f32 = load %b[floor(0, 4)]\n      %3: f32 = load %b[floor(1, 2)]\n"
     "      %4: f32 = add %1, %2\n      %5: f32 = add %4, %3\n      store %y[floor], %5\n    }\n  }\n}\n"},
};

static void rewritten_body(struct fixture *f)
{
    for (size_t i = 0; i < sizeof rewritten / sizeof *rewritten; i++) {
        assert_string_equal(print(f, parse(f, rewritten[i][0])), rewritten[i][1]);
        assert_string_equal(print(f, parse(f, rewritten[i][1])), rewritten[i][1]);
    }
}
static void rewriting(void **state) { assert_int_equal(fixture_run(rewritten_body), WEFT_OK); }

/* Elements of a type print so that they parse to the same bits, also where the decimal is longer in double. */
static void numbers_body(struct fixture *f)
{
    const double numbers[] = {0.0, -0.0, 1e-5f, 0.1f, 0x1p-149, 3.4028234663852886e38, 16777216, 1e7f, INFINITY,
                              -INFINITY, 1.0 / 3};
    const int dtypes[] = {WEFT_F32, WEFT_F64, WEFT_BF16, WEFT_F16};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            uint64_t element = 0;
            weft_store_real(dtypes[d], &element, 0, numbers[i]);
            const double number = weft_load_real(dtypes[d], &element, 0);
            struct weft_form *const form = weft_form_new(f->arena, f->dims, "k");
            const uint8_t dtype = (uint8_t)dtypes[d];
            weft_form_add_array(form, (struct weft_form_array){.name = "y", .use = WEFT_FORM_OUT, .dtype = dtype});
            weft_form_add_phase(form, (struct weft_form_phase){0});
            weft_form_add_stage(form, (struct weft_form_stage){.kind = WEFT_FORM_SWEEP});
            weft_form_add_op(form, (struct weft_form_op){.kind = WEFT_FORM_CONST, .dtype = dtype, .number = number});
            weft_form_add_op(form, (struct weft_form_op){
                .kind = WEFT_FORM_STORE, .dtype = dtype, .ins = 1, .map = weft_form_add_map(form, 0, NULL)});
            const struct weft_form *const again = parse(f, print(f, form));
            assert_memory_equal(&again->op[0].number, &number, sizeof number);
            assert_string_equal(again->op[0].name, "0");
        }
    const struct weft_form *const nan = parse(f, "kernel @k(out %y: f32[]) {\nphase {\nsweep {\n%a: f32 = const nan\n"
                                                 "%b: f32 = leaky_relu(0.01) %a\n%c: f32 = clamp(0.1, nan) %b\n"
                                                 "store %y[], %c\n}\n}\n}\n");
    assert_true(isnan(nan->op[0].number) && isnan(nan->op[2].param[1]));
    assert_true(nan->op[1].param[0] == 0.01 && nan->op[2].param[0] == 0.1);
    assert_non_null(strstr(print(f, nan), "%a: f32 = const nan\n"));
    assert_non_null(strstr(print(f, nan), "%b: f32 = leaky_relu(0.01) %a\n"));
    assert_non_null(strstr(print(f, nan), "%c: f32 = clamp(0.1, nan) %b\n"));
}
static void numbers(void **state) { assert_int_equal(fixture_run(numbers_body), WEFT_OK); }

/* Numbers of unnamed values pass over numbers that are names. */
static void unnamed_body(struct fixture *f)
{
    struct weft_form *const form =
        parse(f, "kernel @k(out %y: f32[]) {\nphase {\nsweep {\n%a: f32 = const 1\n%1: f32 = neg %a\n%b: f32 = exp %1\n"
                 "%c: f32 = exp %b\nstore %y[], %c\n}\n}\n}\n");
    form->op[0].name = form->op[2].name = form->op[3].name = NULL;
    const char *const text = print(f, form);
    assert_non_null(strstr(text, "%0: f32 = const 1\n      %1: f32 = neg %0\n      %2: f32 = exp %1\n"
                                 "      %3: f32 = exp %2\n      store %y[], %3\n"));
    assert_string_equal(print(f, parse(f, text)), text);
}
static void unnamed(void **state) { assert_int_equal(fixture_run(unnamed_body), WEFT_OK); }

static void values_body(struct fixture *f)
{
    weft_symbol_add(f->dims, "N", 1, 9, 0);
    const char *cursor = read_readme(f);
    const struct weft_form *form = parse(f, find_kernel(f, &cursor, "layer_norm_backward("));
    assert_int_equal(weft_symbol_count(f->dims), 2); /* C is new */
    assert_int_equal(weft_symbol_at(f->dims, 0)->high, 9);
    assert_int_equal(form->axis[2].pieces_of, 0);
    assert_true(weft_dim_is(form->axis[2].by, 128) && weft_dim_is(form->phase[0].by[0], 128));
    assert_int_equal(form->phases, 2);
    assert_int_equal(form->stages, 8);
    assert_int_equal(form->stage[1].kind, WEFT_FORM_ALONG);
    assert_int_equal(form->stage[1].stages, 3);
    assert_int_equal(form->op[2].axes, 3);  /* %0: r, c */
    assert_int_equal(form->op[4].axes, 1);  /* %2: r */
    assert_int_equal(form->op[11].axes, 1); /* %a */
    assert_int_equal(form->op[11].over, 2);
    assert_int_equal(form->array[0].value.id, 0);
}
static void values(void **state) { assert_int_equal(fixture_run(values_body), WEFT_OK); }

/* --- counts ------------------------------------------------------------------------------------------------------- */

/* Sizes that the kernels of README.md have, in the order in which these are set. */
static const struct {
    const char *kernel, *names;
    int64_t sizes[5];
    struct weft_form_counts counts;
} counted[] = {
    /* %m and %s of a row, and %e of a row */
    {"softmax(", "N", {100},
     {.bytes_read = 4 * 76800, .bytes_written = 4 * 76800, .elements_read = 76800, .elements_written = 76800,
      .flops = 5 * 76800, .points = 5 * 76800, .kept_bytes = 4 + 768 * 4 + 4}},
    /* x once, although three loads read it; three pieces of 4096, the last not whole; two rows */
    {"softmax_online(", "NC", {2, 10000},
     {.bytes_read = 4 * 20000, .bytes_written = 4 * 20000, .elements_read = 20000, .elements_written = 20000,
      .flops = 20000 + 4 * 6 + 3 * 20000 + 6 + 3 * 20000, .points = 7 * 20000 + 5 * 6 + 2 * 6 + 2 * 2,
      .kept_bytes = 4 * (2 + 4)}},
    /* x and dy once, dx once; 3 lines of partial sums, written and read; 150 pieces of two rows, in tiles of 128 */
    {"layer_norm_backward(", "NC", {300, 64},
     {.bytes_read = 4 * (2 * 19200 + 64 + 2 * 300 + 2 * 3 * 64), .bytes_written = 4 * (19200 + 2 * 64 + 2 * 3 * 64),
      .elements_read = 2 * 19200 + 64 + 2 * 300, .elements_written = 19200 + 2 * 64,
      .flops = 13 * 19200 + 2 * 150 * 64 + 2 * 3 * 64,
      .points = 13 * 19200 + 2 * 150 * 64 + 2 * 3 * 64 + 2 * 3 * 64 + 2 * 150 * 64,
      .kept_bytes = 4 * (2 * 64 + 2 * 2 * 64 + 2 * 2 + 2 * 64)}},
    {"matmul_gelu(", "MKN", {4, 3000, 5},
     {.bytes_read = 4 * (12000 + 15000 + 60), .bytes_written = 4 * (60 + 20), .elements_read = 27000,
      .elements_written = 20, .flops = 2 * 60000 + 60 + 20, .points = 60000 + 60 + 20, .kept_bytes = 4}},
    /* windows read neighbours again, but each element is needed once; what is outside is not read */
    {"depthwise(", "NCHW", {2, 3, 5, 4},
     {.bytes_read = 4 * (120 + 27 + 3), .bytes_written = 4 * 120, .elements_read = 150, .elements_written = 120,
      .flops = 2 * 9 * 120 + 2 * 120, .points = 2 * 9 * 120 + 2 * 120, .kept_bytes = 4}},
    /* as many rows of the table as there are indices: a bag of 4, 3 of them */
    {"embedding(", "NLVC", {3, 4, 1000, 8},
     {.bytes_read = 8 * 12 + 4 * (12 * 8 + 4 * 8), .bytes_written = 4 * (96 + 24), .elements_read = 12 + 96 + 32,
      .elements_written = 96 + 24, .flops = 2 * 96, .points = 2 * 96, .kept_bytes = 4}},
    /* %m and %s of a row, and %e of a row: nothing for the scan */
    {"top_p(", "NC", {100, 50},
     {.bytes_read = 4 * 5000, .bytes_written = 5000, .elements_read = 5000, .elements_written = 5000,
      .flops = 7 * 5000, .points = 7 * 5000, .kept_bytes = 4 + 50 * 4 + 4}},
    {"cumsum_silu(", "L", {10000},
     {.bytes_read = 4 * (2 * 10000 + 3 + 3), .bytes_written = 4 * (10000 + 3 + 3), .elements_read = 20000,
      .elements_written = 10000, .flops = 10000 + 3 + 3 + 3 * 10000, .points = 10000 + 3 + 3 + 3 * 10000,
      .kept_bytes = 4}},
};

static void check_counts(const char *name, const struct weft_form_counts *is, const struct weft_form_counts *should)
{
    if (memcmp(is, should, sizeof *is) != 0)
        fail_msg("%s: read %lld B written %lld B, elements %lld %lld, flops %lld points %lld kept %lld", name,
                 (long long)is->bytes_read, (long long)is->bytes_written, (long long)is->elements_read,
                 (long long)is->elements_written, (long long)is->flops, (long long)is->points,
                 (long long)is->kept_bytes);
}

static void counts_body(struct fixture *f)
{
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        const char *cursor = read_readme(f);
        int64_t symbols[64] = {0};
        struct weft_form_counts counts;
        struct weft_form *const form = parse(f, find_kernel(f, &cursor, counted[i].kernel));
        for (uint32_t s = 0; s < weft_symbol_count(f->dims); s++) {
            const char *const at = strchr(counted[i].names, weft_symbol_at(f->dims, s)->name[0]);
            symbols[s] = at ? counted[i].sizes[at - counted[i].names] : 0;
        }
        weft_form_count(form, symbols, &counts);
        check_counts(counted[i].kernel, &counts, &counted[i].counts);
    }
}
static void counts(void **state) { assert_int_equal(fixture_run(counts_body), WEFT_OK); }

/* Elements that loads of %x: f32[20] touch. */
static const struct {
    const char *loads;
    int64_t elements;
} touched[] = {
    {"%0: f32 = load %x[h]", 5},
    {"%0: f32 = load %x[4*h]", 5},
    {"%0: f32 = load %x[-2*h + 19]", 5},
    {"%0: f32 = load %x[2*h + i]", 11},
    {"%0: f32 = load %x[4*h + i]", 15},
    {"%0: f32 = load %x[4*h + i - 1 ?]", 14},
    {"%0: f32 = load %x[4*h + 2*i + 1 ?]", 10},
    {"%0: f32 = load %x[h + 30 ?]", 0},
    {"%0: f32 = load %x[h]\n%1: f32 = load %x[h]", 5},
    {"%0: f32 = load %x[h]\n%1: f32 = load %x[h + 1]", 6},
    {"%0: f32 = load %x[h]\n%1: f32 = load %x[h + 15]", 10},
    {"%0: f32 = load %x[3]\n%1: f32 = load %x[7]", 2},
};

static void touched_body(struct fixture *f)
{
    for (size_t i = 0; i < sizeof touched / sizeof *touched; i++) {
        struct weft_form_counts counts;
        char text[512];
        snprintf(text, sizeof text, "kernel @k(in %%x: f32[20], out %%y: f32[5,3]) {\naxis h in 5\naxis i in 3\n"
                 "axis z in 0\nphase {\nsweep h, i {\n%s\nstore %%y[h, i], %%0\n}\nsweep z {\n"
                 "%%z: f32 = load %%x[z]\n%%c: f32 = load %%x[17]\n}\n}\n}\n", touched[i].loads);
        weft_form_count(parse(f, text), NULL, &counts);
        if (counts.elements_read != touched[i].elements)
            fail_msg("%s: %lld", touched[i].loads, (long long)counts.elements_read);
        assert_int_equal(counts.bytes_read, 4 * touched[i].elements);
        assert_int_equal(counts.bytes_written, 4 * 15);
    }
}
static void touching(void **state) { assert_int_equal(fixture_run(touched_body), WEFT_OK); }

/* --- hostile texts ------------------------------------------------------------------------------------------------ */

/* Each text ends early, and each byte is replaced: no crash, and what is taken prints and parses again. */
static void hostile_body(struct fixture *f)
{
    static const char bytes[] = "\0{}[](),%@:=?*+-/ \n#\"9rx";
    const char *cursor = read_readme(f), *text;
    const char *name[] = {"layer_norm_backward(", "depthwise("};
    for (size_t k = 0; k < 2; k++) {
        assert_non_null(text = find_kernel(f, &cursor, name[k]));
        const size_t length = strlen(text);
        for (size_t i = 0; i < length - 1; i++) { /* the last byte ends the last line */
            struct weft_arena arena;
            weft_arena_open(&arena, f->context);
            const char *fault = NULL;
            struct weft_dims *const dims = weft_dims_new(&arena);
            assert_null(weft_form_parse(text, i, dims, &arena, &fault));
            assert_true(fault && fault[0] >= '1' && fault[0] <= '9');
            char *const copy = weft_arena_copy(&arena, text, length);
            copy[i] = bytes[i * 7 % (sizeof bytes - 1)];
            const struct weft_form *const form = weft_form_parse(copy, length, dims, &arena, &fault);
            if (form)
                parse(f, print(f, form));
            weft_arena_close(&arena);
        }
    }
}
static void hostile(void **state) { assert_int_equal(fixture_run(hostile_body), WEFT_OK); }

/* More axes, alongs and numbers than there can be. */
static void limits_body(struct fixture *f)
{
    struct weft_text text = {.context = f->context, .arena = f->arena};
    const char *fault = NULL;
    weft_text_add(&text, "kernel @k() {\n");
    for (int i = 0; i <= WEFT_FORM_AXES; i++)
        weft_text_format(&text, "axis a%d in %d\n", i, i);
    assert_null(weft_form_parse(text.data, text.length, f->dims, f->arena, &fault));
    assert_string_equal(fault, "18: a kernel has at most 16 axes");
    text.length = 0;
    weft_text_add(&text, "kernel @k() {\naxis r in 3\nphase {\n");
    for (int i = 0; i < 100; i++)
        weft_text_add(&text, "along r {\n");
    assert_null(weft_form_parse(text.data, text.length, f->dims, f->arena, &fault));
    assert_string_equal(fault, "20: along stands in along more than 16 times");
    text.length = 0;
    weft_text_add(&text, "kernel @k(in %x: f32[");
    for (int i = 0; i < 100000; i++)
        weft_text_add(&text, "(");
    assert_null(weft_form_parse(text.data, text.length, f->dims, f->arena, &fault));
    assert_string_equal(fault, "1: the expression is nested too deeply");
}
static void limits(void **state) { assert_int_equal(fixture_run(limits_body), WEFT_OK); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readme), cmocka_unit_test(rewriting), cmocka_unit_test(numbers),
        cmocka_unit_test(unnamed), cmocka_unit_test(values), cmocka_unit_test(counts),
        cmocka_unit_test(touching), cmocka_unit_test(hostile), cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
