/* SPDX-License-Identifier: Apache-2.0 */
/* test_form_check.c: what texts and forms must hold to, a fault each: what is wrong, and which message names it. */
#include "tests/unit/form_support.h"

/* --- faults ------------------------------------------------------------------------------------------------------- */

#define HEAD "kernel @k(in %x: f32[N,C], in %b: bool[N], out %y: f32[N,C]) {\naxis r in N\naxis c in C\n" \
             "axis t in r by 8\n"
#define LOAD "%a: f32 = load %x[r, c]\n"
#define STORE "store %y[r, c], %a\n"
#define SCRATCH "kernel @k(in %x: f32[N], out %y: f32[N], scratch %p: f32[N]) {\naxis r in N\n"

static const struct {
    const char *text, *fault;
} faults[] = {
    /* text */
    {"", "1: expected kernel @name("},
    {"graph @g() {}", "1: expected kernel @name("},
    {"kernel k() {}", "1: expected a name, like @f"},
    {"kernel @k(in %x: f32[N],\n in %x: f32[N]) {\n}", "2: there is an array %x already"},
    {"kernel @k(in %x: f31[N]) {\n}", "1: no element type is called 'f31'"},
    {"kernel @k(in %x: f32[1,1,1,1,1,1,1,1,1]) {\n}", "1: an array has at most 8 axes"},
    {"kernel @k(in %x: f32[N,]) {\n}", "1: a size is missing"},
    {"kernel @k(in %x: f32[N*]) {\n}", "1: expected a number, a symbol or '('"},
    {"kernel @k(in %x: f32[N/0]) {\n}", "1: division by zero"},
    {"kernel @k(at %x: f32[N]) {\n}", "1: expected an array: in, out or scratch, then its name"},
    {"kernel @k() {\naxis r in 3\naxis r in 4\n}", "3: there is an axis r already"},
    {"kernel @k() {\naxis r of 3\n}", "2: expected `in` after axis r"},
    {"kernel @k() {\naxis r in 3\naxis t in r by 0\n}", "3: pieces of axis r by 0"},
    {"kernel @k() {\naxis r in 3\naxis t in 2*r\n}", "3: axis r stands where a size is expected"},
    {"kernel @k() {\nphase q {\n}\n}", "2: there is no axis q"},
    {"kernel @k() {\naxis q in 3\nphase q, q {\n}\n}", "3: axis q stands there twice"},
    {"kernel @k() {\naxis q in 3\nphase q by 0 {\n}\n}", "3: pieces by 0: without `by` the back end chooses"},
    {"kernel @k() {\nphase {\nloop {\n}\n}\n}", "3: expected begin, along, sweep, contract or }"},
    {"kernel @k() {\nphase {\n", "3: the } of a phase is missing"},
    {"kernel @k() {\nphase {\nsweep {\n", "4: the } of a stage is missing"},
    {"kernel @k() {\naxis r in 3\nphase {\nalong r {\n}\n", "6: the } of a phase is missing"},
    {"kernel @k() {\n}\nkernel @l() {\n}\n", "3: nothing may follow the kernel"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%a: f32 = neg %a\n", "8: there is a value %a already"},
    {HEAD "phase r {\nsweep r, c {\n%b: f32 = neg %a\n" LOAD, "7: no value %a is made above this line"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %z[r]\n", "7: the kernel has no array %z"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r]\n", "7: array %x has 2 axes, not 1"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r, 2*c*r]\n", "7: axis c stands where a size is expected"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r, c/2]\n", "7: axis c stands where a size is expected"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r, ]\n", "7: expected an axis or a size"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = const x1\n", "7: 'x1' is no number"},
    {HEAD "phase r {\nsweep r, c {\n%a: i32 = const 1.5\n", "7: '1.5' is no whole number"},
    {HEAD "phase r {\nsweep r, c {\n%a: u8 = const 256\n", "7: 256 is no element of u8"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%b: f32 = clamp(1) %a\n", "8: clamp takes 2 numbers in parentheses, not 1"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%b: f32 = neg(1) %a\n", "8: neg takes 0 numbers in parentheses, not 1"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%b: f32 = fma %a, %a, %a, %a\n",
     "8: an instruction reads at most 3 values"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%b: f32 = fold max %a over c\n", "8: 'max' is no fold"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "read %a\n", "8: expected a line that begins with %value:, carry, store"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "store %y[r, c], %a %a\n", "8: the line should end before '%a'"},
    /* what is read */
    {HEAD "phase r {\nsweep r, c {\n" LOAD STORE "}\n}\nphase r {\nsweep r, c {\n%b: f32 = neg %a\n}\n}\n}",
     "13: %a is of another phase: only arrays are seen there"},
    {HEAD "phase r {\nalong c {\nsweep r, c {\n" LOAD "}\n}\nsweep r, c {\n" STORE "}\n}\n}",
     "12: %a is read behind the along that it was made in"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%s: f32 = fold sum %a over c\n%d: f32 = sub %a, %s\n}\n}\n}",
     "9: %s is read before it is made: it is whole behind its stage"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD STORE "}\nsweep r {\n%b: f32 = neg %a\n}\n}\n}",
     "11: %a has axis c, which this stage does not go over"},
    {HEAD "phase r {\nsweep r {\n%a: f32 = load %x[r, c]\n}\n}\n}",
     "7: axis c of an index of %x is none of its stage"},
    {HEAD "phase r by 4 {\nsweep r {\n%a: f32 = load %x[t, 0]\n}\n}\n}",
     "7: axis t of an index of %x is none of its stage"},
    /* folds */
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r, 0 ?]\n%s: f32 = fold sum %a over c\n}\n}\n}",
     "8: %s goes over axis c, which %a does not have"},
    {HEAD "phase r, c {\nsweep r, c {\n" LOAD "%s: f32 = fold sum %a over c\n}\n}\n}",
     "8: %s goes over axis c, which the phase cuts where the back end likes"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%s: f32 = fold sum %a\n}\n}\n}", "8: %s goes over no axis"},
    {HEAD "phase {\nsweep r, c {\n" LOAD "%s: f32 = scan sum %a over r, c\n}\n}\n}",
     "8: %s goes over several axes, but a scan goes over one"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%s: f32 = scan mean %a over c\n}\n}\n}",
     "8: %s: there is no scan of means"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%s: f64 = scan sum %a over c\n}\n}\n}",
     "8: %s: no sum makes f64 of f32"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%s: f32 = fold reverse sum %a over c\n}\n}\n}",
     "8: 'reverse' is no fold"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%s: i32 = fold sum %a over c\n}\n}\n}", "8: %s: no sum makes i32 of f32"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%s: f32 = contract %a, %a over c\n}\n}\n}",
     "8: a contract stands behind loads in a stage of its own"},
    {HEAD "phase r {\ncontract r, c {\n" LOAD "}\n}\n}", "6: this stage ends in no contract"},
    {HEAD "phase r {\ncontract r, c {\n" LOAD "%n: f32 = neg %a\n%s: f32 = contract %a, %n over c\n}\n}\n}",
     "8: a contract stands behind loads in a stage of its own"},
    /* ops */
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%b: f32 = matmul %a, %a\n}\n}\n}",
     "8: %b: no elementwise op is called 'matmul'"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%b: f32 = add %a\n}\n}\n}", "8: %b: add takes 2 operands, not 1"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%b: i32 = neg %a\n}\n}\n}", "8: %b: no strip kernel of neg makes i32"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%c: bool = load %b[r]\n%d: f32 = add %a, %c\n}\n}\n}",
     "9: %d: no strip kernel of add makes f32"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%d: f32 = select %a, %a, %a\n}\n}\n}",
     "8: %d: no strip kernel of select makes f32"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%d: f32 = gelu.erf %a\n}\n}\n}",
     "8: %d: no strip kernel of gelu.erf makes f32"},
    /* arrays */
    {HEAD "phase r {\nsweep r, c {\n%a: f16 = load %x[r, c]\n}\n}\n}", "7: %x has elements of f32, not f16"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r, c + 1]\n}\n}\n}", "7: index 1 of %x may leave the array"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r - 1, c]\n}\n}\n}", "7: index 0 of %x may leave the array"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[c, r]\n}\n}\n}", "7: index 0 of %x may leave the array"},
    {HEAD "phase r {\nsweep r, c {\n%a: f32 = load %x[r, c] else 1\n}\n}\n}",
     "7: a load of %x says `else`, but no index"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%d: f32 = load %x[r, c] else %a\n}\n}\n}",
     "8: a load of %x says `else`, but no index"},
    {HEAD "phase r {\nsweep r, c {\n%d: bool = load %b[r]\n%e: f32 = load %x[r, c ?] else %d\n}\n}\n}",
     "8: a load of %x is of f32, but outside of bool"},
    {HEAD "phase r {\nsweep r, c {\n%d: f32 = load %x[r, floor(2*c, 2)]\n"
     "%e: f32 = load %x[r, floor(2*c + 2, 2)]\n}\n}\n}",
     "8: index 1 of %x may leave the array"},
    {HEAD "phase r {\nsweep r, c {\n%d: f32 = load %x[r, floor(c, 2) ?]\n}\n}\n}",
     "7: an index of %x is divided, but in a store, guarded, or a value"},
    {HEAD "phase r {\nsweep r, c {\n%d: f32 = load %x[r, floor(c, 1)]\n}\n}\n}",
     "7: an index is divided by a whole number from 2 on"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%d: f32 = load %x[%a, c]\n}\n}\n}",
     "8: an index of %x is a value, but in a store, in a sum, or no integer"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "%i: i64 = const 1\nstore %y[%i, c], %a\n}\n}\n}",
     "9: an instruction reads 2 values, not 1"},
    {HEAD "phase r {\nsweep r, c {\n%d: f32 = load %x[%i, c]\n}\n}\n}", "7: no value %i is made above this line"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "store %x[r, c], %a\n}\n}\n}", "8: %x is an input and cannot be stored"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "}\n}\n}", "1: nothing stores the result %y"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "store %y[r, 0 ?], %a\n}\n}\n}",
     "8: %y is stored once for each point of axis c, which its index does not have"},
    {HEAD "phase r {\nsweep r, c {\n" LOAD "store %y[r + c ?, 0 ?], %a\n}\n}\n}",
     "8: two points may store the same element of %y"},
    {HEAD "phase r {\nsweep c {\n%a: f32 = const 1\nstore %y[0 ?, c], %a\n}\n}\n}",
     "8: %y is stored by each tile of axis r, which its index does not tell"},
    {HEAD "phase r by 4 {\nalong r by 8 {\nsweep c {\n%a: f32 = const 1\nstore %y[t ?, c], %a\n}\n}\n}\n}",
     "9: %y is stored by each tile of axis r, which its index does not tell"},
    {HEAD "phase r by 8 {\nalong r by 2 {\nsweep c {\n%a: f32 = const 1\nstore %y[t ?, c], %a\n}\n}\n}\n}",
     "9: %y is stored for each piece of axis r, which its index does not tell"},
    {SCRATCH "phase r {\nsweep r {\n%a: f32 = load %p[r]\nstore %y[r], %a\n}\n}\n}",
     "5: %p is loaded, but no earlier phase stores it"},
    {SCRATCH "phase r {\nsweep r {\n%b: f32 = load %x[r]\nstore %p[r], %b\n"
     "%a: f32 = load %p[r]\nstore %y[r], %a\n}\n}\n}",
     "7: %p is loaded in a phase that stores it"},
    /* alongs */
    {HEAD "phase r {\nbegin {\ncarry %m: f32 over r = 0\n}\nsweep r {\n}\n}\n}",
     "6: no along stands directly behind this `begin`"},
    {HEAD "phase r {\nsweep r {\ncarry %m: f32 over r = 0\n}\n}\n}", "7: `begin` has carries only"},
    {HEAD "phase r {\nbegin {\ncarry %m: f32 over r, c = 0\n}\nalong c {\n}\n}\n}",
     "7: %m is carried along axis c and cannot have it"},
    {HEAD "phase r {\nbegin {\ncarry %m: f32 over r = 0\n}\nalong c {\n}\n}\n}", "7: %m is carried, but has no next"},
    {HEAD "phase r {\nbegin {\ncarry %m: f32 over r = 0\n}\nalong c {\nsweep r {\nnext %m, %m\nnext %m, %m\n}\n}\n}\n}",
     "12: %m has a second next"},
    {HEAD "phase r {\nbegin {\ncarry %m: f32 over r = 0\n}\nalong c {\n}\nsweep r {\nnext %m, %m\n}\n}\n}",
     "12: the next of %m stands outside of the along that carries it"},
    {HEAD "phase r {\nbegin {\ncarry %m: f32 over r = 0\n}\nalong c {\nsweep r, c {\nnext %m, %m\n}\n}\n}\n}",
     "11: the next of %m stands in a stage of other axes than it has"},
    {HEAD "phase r {\nbegin {\ncarry %m: f32 over r = 0\n}\nalong c {\nsweep r {\n%i: f64 = const 1\n"
     "next %m, %i\n}\n}\n}\n}",
     "12: %m is f32, but its next is f64"},
    {HEAD "phase r {\nalong c {\nsweep r {\n%i: f32 = const 1\nnext %i, %i\n}\n}\n}\n}",
     "9: %i is not carried, so it has no next"},
};

static void faults_body(struct fixture *f)
{
    int failures = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *fault = "(none)";
        const struct weft_form *const form =
            weft_form_parse(faults[i].text, strlen(faults[i].text), f->dims, f->arena, &fault);
        if (form || strncmp(fault, faults[i].fault, strlen(faults[i].fault)) != 0) {
            print_error("%s\n    expected %s\n    but is   %s\n", faults[i].text, faults[i].fault, fault);
            failures++;
        }
    }
    assert_int_equal(failures, 0);
}
static void faulty(void **state) { assert_int_equal(fixture_run(faults_body), WEFT_OK); }

/* --- forms that no text has --------------------------------------------------------------------------------------- */

/* Softmax, for a change of one of its parts. */
static struct weft_form *softmax(struct fixture *f)
{
    const char *cursor = read_readme(f);
    struct weft_form *const form = parse(f, find_kernel(f, &cursor, "softmax("));
    assert_null(weft_form_fault(form, f->arena));
    return form;
}

#define BROKEN(change, expected) \
    do { \
        struct weft_form *const form = softmax(f); \
        change; \
        const char *const fault = weft_form_fault(form, f->arena); \
        if (!fault || !strstr(fault, expected)) \
            fail_msg("%s: %s", #change, fault ? fault : "no fault"); \
    } while (0)

static void broken_body(struct fixture *f)
{
    BROKEN(form->op[3].in[0] = 4, "%e is read before it is made");
    BROKEN(form->op[3].in[0] = 1000, "a value that there is not");
    BROKEN(form->op[7].kind = 99, "an instruction that there is not");
    BROKEN(form->op[4].ins = 4, "an instruction reads 4 values");
    BROKEN(form->op[6].in[1] = 6, "is read before it is made");
    BROKEN(form->op[0].array = 7, "an array or by a map that there is not");
    BROKEN(form->op[0].map = 7, "an array or by a map that there is not");
    BROKEN(form->op[0].axes = 1, "%0 lacks axis c");
    BROKEN(form->op[1].axes = 3, "%m does not have axis c");
    BROKEN(form->op[1].over = 1u << 9, "goes over axis that there is not");
    BROKEN(form->op[4].name = "0", "two values are called %0");
    BROKEN(form->op[4].word = NULL, "no elementwise op is called ''");
    BROKEN(form->op[4].param[1] = 2, "exp takes 0 numbers");
    BROKEN(form->map[0].at[0].border = WEFT_BORDER_WRAP, "a border that a form does not know");
    BROKEN(form->map[0].at[0].data = 1, "an index of %x is a value, but in a store");
    BROKEN(form->map[0].at[0].is_near = true, "is not a sum of axes");
    BROKEN(form->map[0].at[0].over = 1, "an index of %x is divided");
    BROKEN(form->op[1].falls_back = true, "only loads fall back on another value");
    BROKEN(form->op[2].falls_back = true, "only loads fall back on another value");
    BROKEN((form->op[2].ins = 1, form->op[2].in[0] = 0), "reads values that are no index");
    BROKEN(form->map[0].at[0].term[0].axis = 9, "an index of %x is broken");
    BROKEN(form->map[0].rank = 1, "%x has 2 axes, not 1");
    BROKEN(form->axis[1].name = "2c", "an axis is called '2c', which is no word");
    BROKEN(form->axis[1].name = "r", "two axes are called r");
    BROKEN(form->axis[1].extent = weft_dim_of(-1), "axis c has an extent below 0");
    BROKEN(form->axis[1].pieces_of = 0, "axis c numbers pieces of no axis");
    BROKEN((form->axis[1].pieces_of = 0, form->axis[1].by = weft_dim_of(8)), "not as long as axis r has pieces");
    BROKEN(form->array[1].name = "x", "two arrays are called %x");
    BROKEN(form->array[1].dtype = 77, "array 1 has no name, no element type");
    BROKEN(form->array[0].extent[1] = weft_dim_of(-3), "%x has an extent below 0");
    BROKEN(form->phase[0].axes = 1u << 5, "a phase cuts an axis that there is not");
    BROKEN(form->phase[0].by[0] = weft_dim_of(-2), "in tiles of no length");
    BROKEN(form->phase[0].stages = 2, "a stage is of no phase");
    BROKEN(form->stage[1].first = 3, "the ops of stage 1");
    BROKEN(form->stage[2].axes = 1u << 4, "a stage goes over an axis that there is not");
    BROKEN((form->stage[2].kind = WEFT_FORM_ALONG, form->stage[2].stages = 1), "an along does not close");
    BROKEN(form->name = "", "a kernel has no name");
}
static void broken(void **state) { assert_int_equal(fixture_run(broken_body), WEFT_OK); }

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(faulty), cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
