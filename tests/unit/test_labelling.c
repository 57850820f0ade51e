/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest labels: equal to those of trying all, on small random problems of many forms; a bound that holds where
 * tables are too large; and work that grows with the graph and no faster. */
#include "sched/labelling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PLENTY = 1000000 };

struct fixture {
    struct weft_context *context;
    struct weft_arena arena;
    struct weft_labelling labelling;
    uint64_t random;
};

static void (*body)(struct fixture *f);

static int run_body(void *arg)
{
    struct fixture *f = arg;
    weft_arena_open(&f->arena, f->context);
    weft_labelling_open(&f->labelling, &f->arena);
    body(f);
    weft_arena_close(&f->arena);
    return WEFT_OK;
}

static void run(void (*what)(struct fixture *f), uint64_t seed)
{
    struct fixture f = {.random = seed};
    assert_int_equal(weft_open(NULL, &f.context), WEFT_OK);
    body = what;
    assert_int_equal(weft_protected(f.context, run_body, &f), WEFT_OK);
    weft_close(f.context);
}

static uint32_t below(struct fixture *f, uint32_t limit)
{
    f->random = f->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->random >> 33) % limit;
}

static int64_t a_cost(struct fixture *f, bool never)
{
    return never && below(f, 12) == 0 ? WEFT_LABEL_NEVER : (int64_t)below(f, 50);
}

static void add_node(struct fixture *f, uint32_t choices, bool never)
{
    int64_t cost[8];
    for (uint32_t i = 0; i < choices; i++)
        cost[i] = a_cost(f, never);
    weft_labelling_node(&f->labelling, choices, cost);
}

static void add_edge(struct fixture *f, uint32_t a, uint32_t b, bool never)
{
    int64_t *cost = weft_labelling_edge(&f->labelling, a, b);
    const uint32_t entries = f->labelling.node[a].choices * f->labelling.node[b].choices;
    for (uint32_t i = 0; i < entries; i++)
        cost[i] = a_cost(f, never);
}

static int64_t try_all(const struct weft_labelling *l)
{
    uint32_t choice[16] = {0};
    int64_t least = WEFT_LABEL_NEVER;
    for (;;) {
        const int64_t cost = weft_labelling_cost(l, choice);
        least = cost < least ? cost : least;
        uint32_t i = 0;
        while (i < l->nodes && ++choice[i] == l->node[i].choices)
            choice[i++] = 0;
        if (i == l->nodes)
            return least;
    }
}

static void draw_problem(struct fixture *f, bool never)
{
    const uint32_t nodes = 1 + below(f, 7), density = below(f, 4);
    for (uint32_t i = 0; i < nodes; i++)
        add_node(f, 1 + below(f, 4), never);
    for (uint32_t a = 0; a < nodes; a++)
        for (uint32_t b = 0; b < nodes; b++)
            if (a != b && below(f, 4) < density)
                add_edge(f, a, b, never); /* both ways: parallel edges */
}

static void compare_with_all(struct fixture *f)
{
    draw_problem(f, f->random % 2);
    struct weft_label_answer answer, tight;
    const int64_t best = try_all(&f->labelling);
    weft_labelling_solve(&f->labelling, PLENTY, &answer);
    assert_int_equal(answer.cost, best);
    assert_int_equal(answer.bound, best);
    assert_int_equal(answer.splits, 0);
    assert_int_equal(weft_labelling_cost(&f->labelling, answer.choice), answer.cost);
    weft_labelling_solve(&f->labelling, 1 + below(f, 6), &tight);
    assert_true(tight.bound <= best && tight.cost >= best);
    assert_true(tight.splits > 0 || tight.cost == best);
}

static void random_problems_are_solved_like_by_trying_all(void **state)
{
    for (uint64_t seed = 1; seed <= 5000; seed++)
        run(compare_with_all, seed);
}

/* What the whole problem costs where one node chooses c and each follower what is best then. */
static int64_t try_beside(const struct weft_labelling *l, const uint8_t *follows, const uint32_t *answer, uint32_t node,
                          uint32_t c)
{
    uint32_t choice[16];
    memcpy(choice, answer, l->nodes * sizeof *choice);
    choice[node] = c;
    const struct weft_label_links links = weft_labelling_links(l, l->arena);
    for (uint32_t n = 0; n < l->nodes; n++) {
        int64_t cost[8];
        if (!follows[n])
            continue;
        weft_labelling_beside(l, &links, choice, n, cost); /* no two of them are neighbours: each for itself */
        for (uint32_t k = 0; k < l->node[n].choices; k++)
            choice[n] = cost[k] < cost[choice[n]] ? k : choice[n];
    }
    return weft_labelling_cost(l, choice);
}

static void compare_beside(struct fixture *f)
{
    const uint32_t nodes = 2 + below(f, 6);
    const bool never = f->random % 2;
    uint8_t follows[8] = {0};
    for (uint32_t i = 0; i < nodes; i++) {
        add_node(f, 1 + below(f, 4), never);
        follows[i] = i > 0 && below(f, 2);
    }
    for (uint32_t a = 0; a < nodes; a++)
        for (uint32_t b = 0; b < nodes; b++)
            if (a != b && !(follows[a] && follows[b]) && below(f, 2))
                add_edge(f, a, b, never);
    struct weft_label_answer answer;
    struct weft_label_followers followers;
    weft_labelling_solve(&f->labelling, PLENTY, &answer);
    if (answer.cost == WEFT_LABEL_NEVER)
        return;
    weft_labelling_follow(&f->labelling, answer.choice, follows, &followers);
    for (uint32_t n = 0; n < nodes; n++) {
        int64_t cost[8];
        if (follows[n])
            continue;
        weft_labelling_beside_followers(&followers, n, cost);
        for (uint32_t c = 0; c < f->labelling.node[n].choices; c++) {
            const int64_t whole = try_beside(&f->labelling, follows, answer.choice, n, c);
            assert_int_equal(cost[c] == WEFT_LABEL_NEVER, whole == WEFT_LABEL_NEVER);
            if (whole < WEFT_LABEL_NEVER)
                assert_int_equal(cost[c] - cost[answer.choice[n]], whole - answer.cost);
        }
    }
}

static void followers_choose_anew_beside_each_choice(void **state)
{
    for (uint64_t seed = 1; seed <= 2000; seed++)
        run(compare_beside, seed);
}

static void solve_the_example(struct fixture *f)
{
    const int64_t a[] = {0, 9}, c[] = {5, 0};
    weft_labelling_node(&f->labelling, 2, a);
    weft_labelling_node(&f->labelling, 2, NULL);
    weft_labelling_node(&f->labelling, 2, c);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t *cost = weft_labelling_edge(&f->labelling, i, i + 1);
        cost[1] = cost[2] = 3;
    }
    struct weft_label_answer answer;
    weft_labelling_solve(&f->labelling, PLENTY, &answer);
    assert_int_equal(answer.cost, 3);
    assert_int_equal(answer.bound, 3);
    assert_int_equal(answer.choice[0], 0);
    assert_int_equal(answer.choice[2], 1);
    assert_int_equal(answer.width, 1);
}

static void the_example_of_the_header(void **state) { run(solve_the_example, 1); }

/* Costs that belong to one end or the other tie nothing together. */
static void solve_separable(struct fixture *f)
{
    for (int i = 0; i < 12; i++)
        add_node(f, 4, false);
    for (uint32_t a = 0; a < 12; a++)
        for (uint32_t b = 0; b < a; b++) {
            int64_t *cost = weft_labelling_edge(&f->labelling, a, b);
            for (uint32_t i = 0; i < 16; i++)
                cost[i] = (int64_t)((i / 4) * (a + 1) + (3 - i % 4) * (b + 2));
        }
    struct weft_label_answer answer;
    weft_labelling_solve(&f->labelling, 1, &answer);
    assert_int_equal(answer.width, 0);
    assert_int_equal(answer.cost, answer.bound);
}

static void separable_costs_tie_nothing(void **state) { run(solve_separable, 3); }

static void solve_forbidden(struct fixture *f)
{
    weft_labelling_node(&f->labelling, 2, NULL);
    weft_labelling_node(&f->labelling, 1, NULL);
    int64_t *cost = weft_labelling_edge(&f->labelling, 0, 1);
    cost[0] = WEFT_LABEL_NEVER;
    cost[1] = 7;
    struct weft_label_answer answer;
    weft_labelling_solve(&f->labelling, PLENTY, &answer);
    assert_int_equal(answer.cost, 7);
    assert_int_equal(answer.choice[0], 1);
    weft_labelling_edge(&f->labelling, 1, 0)[1] = WEFT_LABEL_NEVER; /* and the other choice neither */
    weft_labelling_solve(&f->labelling, PLENTY, &answer);
    assert_int_equal(answer.cost, WEFT_LABEL_NEVER);
    assert_int_equal(answer.bound, WEFT_LABEL_NEVER);
}

static void what_must_not_be_is_not(void **state) { run(solve_forbidden, 1); }

/* A dense core in a long tail: tables are split, and the gap is stated. */
static void solve_dense(struct fixture *f)
{
    enum { CORE = 14 };
    for (int i = 0; i < CORE + 50; i++)
        add_node(f, 4, false);
    for (uint32_t a = 0; a < CORE; a++)
        for (uint32_t b = 0; b < a; b++)
            add_edge(f, a, b, false);
    for (uint32_t i = CORE; i < CORE + 50; i++)
        add_edge(f, i, i - 1, false);
    struct weft_label_answer small, large;
    weft_labelling_solve(&f->labelling, 1000, &small);
    weft_labelling_solve(&f->labelling, 100000, &large);
    assert_true(small.splits > 0 && small.bound < small.cost);
    assert_true(large.bound >= small.bound);
    assert_true(small.largest <= 1000 && large.largest <= 100000);
    assert_true(small.cost >= large.bound && large.cost >= large.bound);
}

static void large_tables_are_split_and_the_gap_is_stated(void **state) { run(solve_dense, 5); }

/* Hundreds of nodes that have nothing to do with their neighbours in number: tables share what room there is. */
static void solve_tangle(struct fixture *f)
{
    enum { NODES = 600, MOST = 100000 };
    for (uint32_t i = 0; i < NODES; i++) {
        add_node(f, 4, false);
        for (uint32_t k = 0; k < 2 && i > 0; k++)
            add_edge(f, i, below(f, i), false);
    }
    struct weft_label_answer answer;
    weft_labelling_solve(&f->labelling, MOST, &answer);
    assert_true(answer.splits > 0 && answer.bound < answer.cost);
    assert_true(f->arena.total < 20 * MOST * sizeof(int64_t) + NODES * (size_t)16384);
}

static void all_tables_together_have_a_bound(void **state) { run(solve_tangle, 7); }

enum form { CHAIN, STAR, LADDER, FORMS };

static void solve_long(struct fixture *f, enum form form, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++)
        add_node(f, 3, false);
    for (uint32_t i = 1; i < nodes; i++)
        add_edge(f, i, form == STAR ? 0 : i - 1, false);
    for (uint32_t i = 2; form == LADDER && i < nodes; i++)
        add_edge(f, i - 2, i, false);
    struct weft_label_answer answer;
    weft_labelling_solve(&f->labelling, PLENTY, &answer);
    assert_int_equal(answer.cost, answer.bound);
    assert_int_equal(answer.width, form == LADDER ? 2 : 1);
    assert_true(f->arena.total < (size_t)nodes * 3000); /* a star that is walked again and again would take more time */
}

static void solve_chain(struct fixture *f) { solve_long(f, CHAIN, 50000); }
static void solve_star(struct fixture *f) { solve_long(f, STAR, 50000); }
static void solve_ladder(struct fixture *f) { solve_long(f, LADDER, 50000); }

static void long_graphs_stay_exact(void **state)
{
    run(solve_chain, 1);
    run(solve_star, 2);
    run(solve_ladder, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_header),
        cmocka_unit_test(random_problems_are_solved_like_by_trying_all),
        cmocka_unit_test(followers_choose_anew_beside_each_choice),
        cmocka_unit_test(separable_costs_tie_nothing),
        cmocka_unit_test(what_must_not_be_is_not),
        cmocka_unit_test(large_tables_are_split_and_the_gap_is_stated),
        cmocka_unit_test(all_tables_together_have_a_bound),
        cmocka_unit_test(long_graphs_stay_exact),
    };
    return cmocka_run_group_tests_name("labelling", tests, NULL, NULL);
}
