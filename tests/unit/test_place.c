/* SPDX-License-Identifier: Apache-2.0 */
/* Places of blocks in the arena: alive together never overlap, order of the input does not matter for legality, and the
 * arena is no larger than what must be alive at once where largest-first is known to reach that. */
#include "sched/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_legal(const struct weft_block *block, uint32_t count, int64_t arena)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(block[i].offset % 64, 0);
        assert_true(block[i].offset >= 0 && block[i].offset + block[i].bytes <= arena);
        for (uint32_t k = 0; k < i; k++) {
            const bool together = block[i].first <= block[k].last && block[k].first <= block[i].last;
            const bool apart = block[i].offset + block[i].bytes <= block[k].offset ||
                               block[k].offset + block[k].bytes <= block[i].offset;
            assert_true(!together || apart || block[i].bytes == 0 || block[k].bytes == 0);
        }
    }
}

/* The most bytes, each rounded to 64, that are alive at one step: no arena can be smaller. */
static int64_t lower_bound(const struct weft_block *block, uint32_t count, int32_t steps)
{
    int64_t most = 0;
    for (int32_t s = 0; s < steps; s++) {
        int64_t alive = 0;
        for (uint32_t i = 0; i < count; i++)
            if (block[i].first <= s && s <= block[i].last)
                alive += (block[i].bytes + 63) / 64 * 64;
        most = alive > most ? alive : most;
    }
    return most;
}

static void a_chain_needs_two_blocks(void **state)
{
    struct weft_block block[10];
    uint32_t order[30];
    for (int i = 0; i < 10; i++)
        block[i] = (struct weft_block){.bytes = 1000, .first = i, .last = i + 1};
    assert_int_equal(weft_place_blocks(block, 10, WEFT_PLACE_WELL, order, NULL, NULL), 2 * 1024);
    assert_legal(block, 10, 2 * 1024);
}

static void nothing_needs_nothing(void **state)
{
    uint32_t order[3];
    assert_int_equal(weft_place_blocks(NULL, 0, WEFT_PLACE_WELL, order, NULL, NULL), 0);
    struct weft_block empty = {.bytes = 0, .first = 0, .last = 5};
    assert_int_equal(weft_place_blocks(&empty, 1, WEFT_PLACE_WELL, order, NULL, NULL), 0);
}

static void random_blocks_are_legal_and_near_the_bound(void **state)
{
    enum { COUNT = 60, STEPS = 40, ROUNDS = 300 };
    double ratios = 0;
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        struct weft_block block[COUNT];
        uint32_t order[3 * COUNT];
        for (int i = 0; i < COUNT; i++) {
            const int first = rand() % STEPS;
            block[i] = (struct weft_block){.bytes = rand() % 5000, .first = first, .last = first + rand() % 6};
        }
        const int64_t arena = weft_place_blocks(block, COUNT, WEFT_PLACE_WELL, order, NULL, NULL);
        assert_legal(block, COUNT, arena);
        const int64_t bound = lower_bound(block, COUNT, STEPS + 6);
        assert_int_equal(weft_live_bytes(block, COUNT, order), bound);
        assert_true(arena >= bound && (double)arena <= 1.1 * (double)bound);
        ratios += (double)arena / (double)bound;
    }
    assert_true(ratios <= 1.01 * ROUNDS);
}

/* A few blocks that live all along among many that do not, and twenty thousand in well under a second. */
static void long_lives_and_long_graphs(void **state)
{
    enum { COUNT = 20000 };
    struct weft_block *block = calloc(COUNT, sizeof *block);
    uint32_t *order = calloc(3 * COUNT, sizeof *order);
    int64_t bound = 0;
    for (int i = 0; i < COUNT; i++) {
        const bool all_along = i % 1000 == 0;
        block[i] = (struct weft_block){
            .bytes = 64 * (1 + i % 7), .first = all_along ? 0 : i, .last = all_along ? COUNT : i + 1};
        bound += all_along ? block[i].bytes : 0;
    }
    const int64_t arena = weft_place_blocks(block, COUNT, WEFT_PLACE_WELL, order, NULL, NULL);
    assert_true(arena >= bound + 2 * 64 && arena <= bound + 4 * 7 * 64);
    for (int i = 0; i < COUNT; i += 1000)
        for (int k = 0; k < COUNT; k++)
            assert_true(k == i || block[k].offset >= block[i].offset + block[i].bytes ||
                        block[k].offset + block[k].bytes <= block[i].offset);
    for (int i = 1; i < COUNT; i++)
        assert_true(block[i].first > block[i - 1].last || block[i].offset >= block[i - 1].offset + block[i - 1].bytes ||
                    block[i].offset + block[i].bytes <= block[i - 1].offset);
    free(order);
    free(block);
}

static int by_first(const void *a, const void *b)
{
    const struct weft_block *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Walks over time with the owner of each 64 bytes: nobody takes what is still somebody's. Sorts the blocks. */
static void assert_legal_in_time(struct weft_block *block, uint32_t count, int64_t arena)
{
    const struct weft_block **owner = calloc((size_t)arena / 64 + 1, sizeof(struct weft_block *));
    qsort(block, count, sizeof *block, by_first);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(block[i].offset % 64, 0);
        assert_true(block[i].offset >= 0 && block[i].offset + block[i].bytes <= arena);
        for (int64_t unit = block[i].offset / 64; unit < (block[i].offset + block[i].bytes + 63) / 64; unit++) {
            assert_true(!owner[unit] || owner[unit]->last < block[i].first);
            owner[unit] = &block[i];
        }
    }
    free(owner);
}

/* Half of the values of a deep network live until its way back: comparing each with each would take minutes. */
static void very_many_long_lives(void **state)
{
    enum { HALF = 40000, COUNT = 2 * HALF };
    struct weft_block *block = calloc(COUNT, sizeof *block);
    uint32_t *order = calloc(3 * COUNT, sizeof *order);
    for (int i = 0; i < HALF; i++) {
        block[i] = (struct weft_block){.bytes = 100 + i % 50, .first = i, .last = COUNT - i};
        block[HALF + i] = (struct weft_block){.bytes = 64, .first = HALF + i, .last = HALF + i + 1};
    }
    const int64_t arena = weft_place_blocks(block, COUNT, WEFT_PLACE_WELL, order, NULL, NULL);
    assert_true(arena >= HALF * 128 && arena <= HALF * 192 + 1024);
    assert_legal_in_time(block, COUNT, arena);
    free(order);
    free(block);
}

static void random_long_lives_are_legal_and_near_the_bound(void **state)
{
    enum { COUNT = 12000, STEPS = 3000 };
    struct weft_block *block = calloc(COUNT, sizeof *block);
    uint32_t *order = calloc(3 * COUNT, sizeof *order);
    srand(11);
    for (int i = 0; i < COUNT; i++) {
        const int first = rand() % STEPS, octave = rand() % 12;
        block[i] = (struct weft_block){
            .bytes = 1 + rand() % (64 << octave), .first = first, .last = first + rand() % (STEPS - first)};
    }
    const int64_t arena = weft_place_blocks(block, COUNT, WEFT_PLACE_WELL, order, NULL, NULL);
    assert_true((double)arena <= 1.3 * (double)lower_bound(block, COUNT, STEPS));
    assert_legal_in_time(block, COUNT, arena);
    free(order);
    free(block);
}

/* Blocks that grow by unlike amounts: an order that took much effort for some sizes is one to begin with for others. */
static void a_kept_order_is_one_of_those_tried(void **state)
{
    enum { COUNT = 60, STEPS = 40, ROUNDS = 200 };
    int64_t with = 0, without = 0;
    srand(13);
    for (int round = 0; round < ROUNDS; round++) {
        struct weft_block block[COUNT];
        uint32_t order[3 * COUNT], kept[COUNT];
        bool met[COUNT] = {0};
        for (int i = 0; i < COUNT; i++) {
            const int first = rand() % STEPS;
            block[i] = (struct weft_block){.bytes = rand() % 5000, .first = first, .last = first + rand() % 6};
        }
        block[rand() % COUNT].bytes = 0;
        weft_place_blocks(block, COUNT, WEFT_PLACE_WELL, order, NULL, kept);
        for (int i = 0; i < COUNT; i++) {
            assert_true(kept[i] < COUNT && !met[kept[i]]);
            met[kept[i]] = true;
            block[i].bytes = block[i].bytes * 2 + (i % 3 == 0 ? 64 : 0);
        }
        const int64_t plain = weft_place_blocks(block, COUNT, 1, order, NULL, NULL);
        const int64_t begun = weft_place_blocks(block, COUNT, 1, order, kept, NULL);
        assert_legal(block, COUNT, begun);
        assert_true(begun <= plain || 64 * begun <= 65 * weft_live_bytes(block, COUNT, order));
        with += begun, without += plain;
    }
    assert_true(with < without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_needs_two_blocks),
        cmocka_unit_test(a_kept_order_is_one_of_those_tried),
        cmocka_unit_test(nothing_needs_nothing),
        cmocka_unit_test(long_lives_and_long_graphs),
        cmocka_unit_test(random_blocks_are_legal_and_near_the_bound),
        cmocka_unit_test(random_long_lives_are_legal_and_near_the_bound),
        cmocka_unit_test(very_many_long_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
