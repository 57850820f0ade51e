/* SPDX-License-Identifier: Apache-2.0 */
/* test_recurrent.c: lstm, gru and rnn: values worked out by hand, with gates whose functions are the identity, types
 * that are refused, and the pass that opens them under WEFT_STOP_AFTER. */
#include "eval/activation.h"
#include "ir/recurrent.h"
#include "passes/passes.h"
#include "tests/unit/eval_support.h"

#define RNN                                                                                                            \
    "%x: f32[3,1,1] = const value=[1 -1 3]\n%w: f32[1,1,1] = const value=2\n%q: f32[1,1,1] = const value=1\n"          \
    "%b: f32[1,2] = const value=[0.5 0.25]\n%s: f32[1,1,1] = const value=1\n"
#define RNN_Y RNN "%r: f32[3,1,1,1], %h: f32[1,1,1] = rnn %x, %w, %q, %b, %s"
#define RNN_H RNN "%y: f32[3,1,1,1], %r: f32[1,1,1] = rnn %x, %w, %q, %b, %s"

static void test_rnn(void **state)
{
    EXPECT(RNN_Y " activations=affine", 3.75, 2.5, 9.25);
    EXPECT(RNN_H " activations=affine", 9.25);
    EXPECT(RNN_Y " activations=affine direction=reverse", 9.25, 6.5, 7.75);
    EXPECT(RNN_Y " activations=affine clip=2", 2, 0.75, 2);
    EXPECT(RNN_Y " activations=affine alphas=[2] betas=[-1]", 6.5, 9.5, 31.5);
    EXPECT(RNN_Y, tanh(3.75), tanh(-1.25 + tanh(3.75)), tanh(6.75 + tanh(-1.25 + tanh(3.75))));
    EXPECT("%x: f32[2,1,1] = const value=[nan 1]\n%w: f32[1,1,1] = const value=1\n%b: f32[1,2] = const value=0\n"
           "%r: f32[2,1,1,1], %h: f32[1,1,1] = rnn %x, %w, %w, %b, %w activations=relu clip=9", NAN, NAN);
}

static void test_lengths(void **state)
{
#define WITH_LENGTH(n) "%n: i64[1] = const value=" n "\n"
    EXPECT(WITH_LENGTH("2") RNN_Y ", %n activations=affine", 3.75, 2.5, 0);
    EXPECT(WITH_LENGTH("2") RNN_H ", %n activations=affine", 2.5);
    EXPECT(WITH_LENGTH("2") RNN_Y ", %n activations=affine direction=reverse", 2.5, -0.25, 0);
    EXPECT(WITH_LENGTH("2") RNN_H ", %n activations=affine direction=reverse", 2.5);
    EXPECT(WITH_LENGTH("-1") RNN_H ", %n activations=affine", 1);
    EXPECT(WITH_LENGTH("99") RNN_H ", %n activations=affine", 9.25);
    /* two sequences side by side, the second one shorter */
    EXPECT("%x: f64[2,2,1] = const value=[1 10 2 20]\n%w: f64[1,1,1] = const value=1\n%b: f64[1,2] = const value=0\n"
           "%s: f64[1,2,1] = const value=0\n%n: i64[2] = const value=[2 1]\n"
           "%r: f64[2,1,2,1], %h: f64[1,2,1] = rnn %x, %w, %w, %b, %s, %n activations=affine direction=reverse",
           3, 10, 2, 0);
}

static void test_empty(void **state)
{
    EXPECT("%x: f32[0,1,2] = const value=0\n%w: f32[1,1,2] = const value=0\n%q: f32[1,1,1] = const value=0\n"
           "%b: f32[1,2] = const value=0\n%s: f32[1,1,1] = const value=7\n"
           "%y: f32[0,1,1,1], %r: f32[1,1,1] = rnn %x, %w, %q, %b, %s", 7);
    EXPECT_EMPTY("%x: f32[2,0,2] = const value=0\n%w: f32[1,1,2] = const value=0\n%q: f32[1,1,1] = const value=0\n"
                 "%b: f32[1,2] = const value=0\n%s: f32[1,0,1] = const value=7\n"
                 "%r: f32[2,1,0,1], %h: f32[1,0,1] = rnn %x, %w, %q, %b, %s");
}

#define GRU                                                                                                            \
    "%x: f32[1,1,1] = const value=1\n%w: f32[1,3,1] = const value=[1 2 3]\n%q: f32[1,3,1] = const value=[1 1 2]\n"     \
    "%b: f32[1,6] = const value=[0 0 1 0 0 1]\n%s: f32[1,1,1] = const value=2\n"                                       \
    "%r: f32[1,1,1,1], %h: f32[1,1,1] = gru %x, %w, %q, %b, %s activations=affine_affine"

static void test_gru(void **state)
{
    EXPECT(GRU, -36);                       /* z 3, r 4, candidate 3 + 1 + 2·(4·2) + 1 */
    EXPECT(GRU " linear_before_reset=1", -42); /* candidate 3 + 1 + 4·(2·2 + 1) */
}

#define LSTM                                                                                                           \
    "%x: f32[1,1,1] = const value=1\n%w: f32[1,4,1] = const value=[1 2 3 4]\n%q: f32[1,4,1] = const value=1\n"         \
    "%b: f32[1,8] = const value=0\n%s: f32[1,1,1] = const value=2\n%t: f32[1,1,1] = const value=1\n"                   \
    "%p: f32[1,3] = const value=[1 2 3]\n"
#define IDENTITY " activations=affine_affine_affine"

static void test_lstm(void **state)
{
#define LSTM_RESULTS(y, h, c) \
    LSTM y ": f32[1,1,1,1], " h ": f32[1,1,1], " c ": f32[1,1,1] = lstm %x, %w, %q, %b, %s, %t"
    EXPECT(LSTM_RESULTS("%r", "%h", "%c") IDENTITY, 92); /* i 3, f 5, g 6, c 23, o 4 */
    EXPECT(LSTM_RESULTS("%y", "%h", "%r") IDENTITY, 23);
    EXPECT(LSTM_RESULTS("%y", "%r", "%c") ", %p" IDENTITY, 2176); /* i 4, f 8, c 32, o 4 + 2·32 */
    EXPECT(LSTM_RESULTS("%y", "%r", "%c") ", %p" IDENTITY " input_forget=1", 966); /* f -3, c 21, o 46 */
    EXPECT(LSTM_RESULTS("%y", "%h", "%r"), 1 / (1 + exp(-5)) + tanh(6) / (1 + exp(-3)));
}

static void test_both_directions(void **state)
{
    EXPECT("%x: f64[2,1,1] = const value=[1 2]\n%w: f64[2,1,1] = const value=[1 10]\n%q: f64[2,1,1] = const value=1\n"
           "%b: f64[2,2] = const value=[0 0 0.5 0]\n%s: f64[2,1,1] = const value=[0 100]\n"
           "%r: f64[2,2,1,1], %h: f64[2,1,1] = rnn %x, %w, %q, %b, %s direction=bidirectional activations=affine_relu",
           1, 131, 3, 120.5);
}

/* --- types -------------------------------------------------------------------------------------------------------- */

static void test_wrong_types(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"rnn %x, %w, %q, %b, %s activations=sigmoid_tanh", "activations must name as many functions"},
        {"rnn %x, %w, %q, %b, %s activations=cosine", "activations must name as many functions"},
        {"rnn %x, %w, %q, %b, %s alphas=[1 2]", "alphas and betas must have a number for each function"},
        {"rnn %x, %w, %q, %b, %s clip=-1", "clip must not be negative"},
        {"rnn %x, %w, %q, %b, %s direction=bidirectional", "operand 1 (w) is f32[1,1,1], but must be f32[2,1,1]"},
        {"rnn %x, %w, %q, %w, %s", "operand 3 (b) is f32[1,1,1], but must be f32[1,2]"},
        {"rnn %x, %w, %q, %b, %x", "operand 4 (the first h) is f32[3,1,1], but must be f32[1,1,1]"},
        {"rnn %x, %w, %q, %b, %s, %s", "operand 5 is f32[1,1,1], but lengths must be i64[1]"},
        {"rnn %x, %w, %b, %b, %s", "operand 2 is f32[1,2], but must have 3 axes"},
        {"rnn %n, %w, %q, %b, %s", "operand 0 is i64[3], but its elements must be a float"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct weft_graph *graph;
        snprintf(text, sizeof text, "graph @g() {\n%s%%n: i64[3] = const value=1\n"
                 "%%y: f32[3,1,1,1], %%h: f32[1,1,1] = %s\nreturn %%y\n}\n", RNN, cases[i].line);
        assert_int_equal(weft_parse(context, text, strlen(text), "test", &graph), WEFT_ERR_INVALID);
        if (!strstr(weft_last_error(context), cases[i].message))
            fail_msg("'%s' is not '%s'", weft_last_error(context), cases[i].message);
    }
}

/* --- the pass ----------------------------------------------------------------------------------------------------- */

static void test_the_pass_counts_its_rewrites(void **state)
{
    static const char text[] =
        "graph @g(%x: f32[9,2,3], %w: f32[1,4,3], %q: f32[1,4,4], %b: f32[1,8], %s: f32[1,2,4]) {\n"
        "%y: f32[9,1,2,4], %h: f32[1,2,4] = rnn %x, %w, %q, %b, %s\n"
        "%u: f32[9,1,2,4], %i: f32[1,2,4] = rnn %x, %w, %q, %b, %h\nreturn %y, %u\n}\n";
    for (int allowed = 0; allowed < 4; allowed++) {
        char limit[16];
        snprintf(limit, sizeof limit, "%d", allowed);
        setenv("WEFT_STOP_AFTER", limit, 1);
        struct weft_graph *graph = parse(text);
        unsetenv("WEFT_STOP_AFTER");
        assert_int_equal(weft_run_pass(graph, "lower_recurrent", NULL), allowed > 0);
        int left = 0, loops = 0, products = 0;
        weft_foreach_node(graph, n) {
            left += weft_opcode_of(graph, n) == WEFT_OP_rnn;
            loops += weft_opcode_of(graph, n) == WEFT_OP_loop;
            products += weft_opcode_of(graph, n) == WEFT_OP_matmul;
        }
        const int opened = allowed < 2 ? allowed : 2;
        assert_int_equal(left, 2 - opened);
        assert_int_equal(loops, opened);
        assert_int_equal(products, opened); /* the inputs of all times, outside of the loop */
        assert_int_equal(weft_validate(graph), WEFT_OK);
        weft_graph_destroy(graph);
    }
}

/* As deep as bodies may be there is no room for the body of one more loop: the network stays whole. */
static void test_no_room_for_a_body(void **state)
{
#define PARAMETERS "%%s: f32[1,2,4], %%x: f32[9,2,3], %%w: f32[1,4,3], %%q: f32[1,4,4], %%b: f32[1,8]) {\n"
    for (int depth = WEFT_MAX_DEPTH - 1; depth <= WEFT_MAX_DEPTH; depth++) {
        char *text = malloc(65536);
        size_t at = (size_t)sprintf(text, "graph @g(" PARAMETERS);
        for (int i = 0; i < depth; i++)
            at += (size_t)sprintf(text + at, "graph @cell(%%i: i64[], " PARAMETERS);
        at += (size_t)sprintf(text + at, "%%y: f32[9,1,2,4], %%h: f32[1,2,4] = rnn %%x, %%w, %%q, %%b, %%s\n"
                              "return %%h\n}\n");
        for (int i = 0; i < depth; i++)
            at += (size_t)sprintf(text + at, "%%n: i64[] = const value=1\n"
                                  "%%h: f32[1,2,4] = loop %%n, %%s, %%x, %%w, %%q, %%b body=@cell carried=1\n"
                                  "return %%h\n}\n");
        struct weft_graph *graph = parse(text);
        assert_int_equal(weft_run_pass(graph, "lower_recurrent", NULL), depth < WEFT_MAX_DEPTH);
        assert_int_equal(weft_validate(graph), WEFT_OK);
        weft_graph_destroy(graph);
        free(text);
    }
}

/* The evaluator applies gates' functions by their op. */
static void every_gate_function_has_a_rule(void **state)
{
    for (const struct weft_gate_row *row = weft_gate_rows; row->name; row++)
        if (row->opcode && !weft_real_of(row->opcode))
            fail_msg("%s is no row of eval/unary.def for floats", weft_ops[row->opcode].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rnn),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_gru),
        cmocka_unit_test(test_lstm),
        cmocka_unit_test(test_both_directions),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_the_pass_counts_its_rewrites),
        cmocka_unit_test(test_no_room_for_a_body),
        cmocka_unit_test(every_gate_function_has_a_rule),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
