/* SPDX-License-Identifier: Apache-2.0 */
/* test_gemm.c: how products are shared out, and what the choice of their loops promises. What they compute is
 * weft-check's. */
#include "kernels/gemm/gemm_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after what it needs */

enum { WORKERS = 64 };

static void check_grid(const int64_t extent[3], int parts)
{
    const struct weft_gemm_space space = {.extent = {extent[0], extent[1], extent[2]}, .weight = {0, 6, 64}, .last = 1};
    const int64_t total = extent[0] * extent[1] * extent[2];
    const int64_t even = (total + parts - 1) / parts;
    int cut[3];
    weft_gemm_grid(&space, parts, cut);
    assert_in_range(cut[0] * cut[1] * cut[2], 1, parts);
    char *const taken = calloc((size_t)total, 1);
    assert_non_null(taken);
    for (int part = 0; part < parts; part++) {
        int64_t begin[3], end[3], units = 0;
        if (!weft_gemm_box(extent, cut, part, begin, end))
            continue;
        for (int64_t x = begin[0]; x < end[0]; x++) {
            for (int64_t y = begin[1]; y < end[1]; y++) {
                for (int64_t z = begin[2]; z < end[2]; z++, units++)
                    taken[(x * extent[1] + y) * extent[2] + z]++;
            }
        }
        assert_true(units <= 2 * even);
    }
    for (int64_t i = 0; i < total; i++)
        assert_int_equal(taken[i], 1);
    free(taken);
}

static void each_unit_is_one_part_s(void **state)
{
    static const int64_t extents[][3] = {{1, 1, 1},  {1, 171, 16}, {1, 342, 32}, {1, 1, 48}, {1, 4, 1},  {12, 22, 2},
                                         {1, 7, 7},  {1, 13, 11},  {28, 1, 1},   {1, 30, 30}, {64, 6, 1}, {1, 3, 512},
                                         {3, 5, 17}, {1, 2, 2},    {256, 1, 1},  {1, 61, 1}};
    for (int parts = 1; parts <= WORKERS; parts++) {
        for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
            check_grid(extents[i], parts);
    }
}

static void and_so_it_is_for_extents_at_random(void **state)
{
    uint32_t seed = 1;
    for (int parts = 1; parts <= WORKERS; parts++) {
        for (int i = 0; i < 20; i++) {
            int64_t extent[3];
            for (int d = 0; d < 3; d++) {
                seed = seed * 1664525u + 1013904223u;
                extent[d] = 1 + (seed >> 16) % (d == 0 ? 4 : 50);
            }
            check_grid(extent, parts);
        }
    }
}

static struct weft_gemm product(int64_t m, int64_t n, int64_t k)
{
    return (struct weft_gemm){.batch = 1, .m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = n, .b_col = 1,
                              .c_row = n, .c_col = 1};
}

/* 77 columns are a panel and a fifth of one: two workers who took one each would wait for the first. */
static void short_panels_count_as_what_they_are(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip(); /* numbers are those of the tiles of AVX2 and AVX-512 */
    static const struct {
        int64_t m, n;
        int32_t rows, columns; /* pieces */
    } cases[] = {{1000, 77, 2, 1}, {1000, 65, 2, 1}, {1000, 128, 1, 2}, {6, 77, 1, 2}, {333, 1111, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_gemm g = product(cases[i].m, cases[i].n, 333);
        g.cpu = WEFT_CPU_AVX2 | WEFT_CPU_AVX512;
        weft_gemm_prepare(&g, 2);
        assert_int_equal(g.loops.cut[1], cases[i].rows);
        assert_int_equal(g.loops.cut[2], cases[i].columns);
    }
}

/* The numeric signature: neither the CPU nor the workers nor a pack are part of it. */
static void slices_and_lanes_follow_from_shape(void **state)
{
    static const int64_t shapes[][3] = {{32, 32, 28672}, {1, 4096, 4096}, {1, 1, 5000}, {8, 8, 4096}, {128, 768, 3072}};
    static const int32_t slices[] = {28, 1, 4, 4, 1};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (uint32_t cpu = 0; cpu <= (WEFT_CPU_AVX2 | WEFT_CPU_AVX512); cpu++) {
            for (int workers = 1; workers <= WORKERS; workers *= 4) {
                for (int packed = 0; packed < 2; packed++) {
                    struct weft_gemm g = product(shapes[i][0], shapes[i][1], shapes[i][2]);
                    g.cpu = cpu, g.b_packed = packed;
                    weft_gemm_prepare(&g, workers);
                    assert_int_equal(g.slices, slices[i]);
                    assert_int_equal(g.lanes, g.n == 1 ? 32 : 1);
                    assert_in_range(g.parts, 1, workers);
                }
            }
        }
    }
}

/* Where whoever is ready takes the next part there are more of them, unless they are short or pack what they share. */
static void turns_are_for_long_products(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip(); /* numbers are those of the tiles of AVX2 and AVX-512 */
    struct weft_gemm g = product(512, 512, 512);
    g.cpu = WEFT_CPU_AVX2, g.b_packed = true;
    weft_gemm_prepare(&g, 4);
    assert_in_range(g.parts, 3, 4);
    g.takes_turns = true;
    weft_gemm_prepare(&g, 4);
    assert_in_range(g.parts, 9, 12);
    weft_gemm_prepare(&g, 1);
    assert_int_equal(g.parts, 1);
    g.b_packed = false;
    g.b_row = 1, g.b_col = g.k;
    weft_gemm_prepare(&g, 4);
    assert_in_range(g.parts, 3, 4);
    g = product(32, 32128, 512), g.cpu = WEFT_CPU_AVX2, g.b_packed = g.takes_turns = true;
    weft_gemm_prepare(&g, 2);
    assert_int_equal(g.parts, 6);
    assert_int_equal(g.loops.cut[2], 6); /* no weights are read twice */
    g = product(128, 64, 64), g.b_packed = g.takes_turns = true;
    weft_gemm_prepare(&g, 4);
    assert_in_range(g.parts, 2, 4);
}

/* The parts that are a worker's own come to as much as another's: 16 panels for two workers with three parts each are 8
 * and 8, not 9 and 7. */
static void turns_are_even_between_workers(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip();
    for (int workers = 2; workers <= 16; workers++) {
        for (int64_t panels = 3 * workers; panels <= 6 * workers; panels++) {
            struct weft_gemm g = product(64, 64 * panels, 2816);
            g.cpu = WEFT_CPU_AVX2, g.b_packed = g.takes_turns = true;
            weft_gemm_prepare(&g, workers);
            const int64_t units = g.loops.units[1] * g.loops.units[2];
            int64_t most = 0, all = 0;
            for (int w = 0; w < workers; w++) {
                int64_t own = 0, begin[3], end[3];
                for (int part = w * g.parts / workers; part < (w + 1) * g.parts / workers; part++) {
                    if (weft_gemm_box(g.loops.units, g.loops.cut, part, begin, end))
                        own += (end[1] - begin[1]) * (end[2] - begin[2]);
                }
                most = own > most ? own : most, all += own;
            }
            assert_int_equal(all, units);
            if (g.loops.cut[1] == 1 && g.parts == 3 * workers)
                assert_true(most <= (g.loops.units[2] + workers - 1) / workers * g.loops.units[1]);
        }
    }
    struct weft_gemm g = product(64, 1024, 2816);
    g.cpu = WEFT_CPU_AVX2, g.b_packed = g.takes_turns = true;
    weft_gemm_prepare(&g, 2);
    assert_int_equal(g.parts, 6); /* so that the above is about something */
}

/* Five vectors of two panels are three and two: 18 rows for two workers are cut, not the panels; 14 of four are seven
 * and seven. */
static void panels_count_as_what_they_are(void **state)
{
    struct weft_gemm_space space = {.extent = {18, 1, 2}, .weight = {1, 0, 1000}, .last = 1, .items = 5};
    int cut[3];
    weft_gemm_grid(&space, 2, cut);
    assert_int_equal(cut[0], 2);
    space.items = 4;
    weft_gemm_grid(&space, 2, cut);
    assert_int_equal(cut[2], 2);
    space.extent[0] = 7, space.extent[2] = 4, space.items = 14;
    weft_gemm_grid(&space, 2, cut);
    assert_int_equal(cut[2], 2);
}

static void boxes_of_turns_are_those_of_workers(void **state)
{
    static const int64_t extents[][3] = {{7, 1, 8}, {10, 1, 4}, {49, 1, 1}, {1, 1, 5}, {2, 3, 4}, {11, 1, 16}};
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        const int64_t *const extent = extents[i];
        const struct weft_gemm_space space = {.extent = {extent[0], extent[1], extent[2]},
                                              .weight = {14000, 0, 131000}, .last = 1};
        for (int workers = 1; workers <= 16; workers++) {
            int cut[3];
            weft_gemm_grid(&space, workers, cut);
            const struct weft_gemm_boxes boxes = weft_gemm_boxes(&space, 3 * workers, 3);
            for (int part = 0; part < 3 * workers; part++) {
                int64_t whole[2][3] = {{0}}, box[2][3], units = 0;
                const bool any = weft_gemm_box(extent, cut, part / 3, whole[0], whole[1]);
                for (int turn = 0; turn < 3 && any; turn++) {
                    if (!weft_gemm_box_of_turn(&boxes, part / 3 * 3 + turn, box[0], box[1]))
                        continue;
                    int64_t volume = 1;
                    for (int d = 0; d < 3; d++) {
                        assert_in_range(box[0][d], whole[0][d], whole[1][d]);
                        assert_in_range(box[1][d], box[0][d], whole[1][d]);
                        volume *= box[1][d] - box[0][d];
                    }
                    units += volume;
                }
                int64_t volume = any;
                for (int d = 0; d < 3; d++)
                    volume *= whole[1][d] - whole[0][d];
                assert_int_equal(units, volume); /* cut along one axis, without gaps: box by box */
            }
        }
    }
}

static void one_chain_is_one_chain(void **state)
{
    struct weft_gemm g = product(1, 1, 5000);
    g.one_chain = true;
    weft_gemm_prepare(&g, 4);
    assert_int_equal(g.slices, 1);
    assert_int_equal(g.lanes, 1);
    g = product(32, 32, 28672), g.max_slices = 3;
    weft_gemm_prepare(&g, 4);
    assert_int_equal(g.slices, 3);
}

/* One pack serves any number of rows. */
static void packs_do_not_depend_on_rows(void **state)
{
    static const int64_t columns[] = {1, 5, 8, 9, 64, 65, 1000};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            struct weft_packing packing = {0};
            for (int64_t m = 1; m < 300; m = m * 2 + 1) {
                struct weft_gemm g = product(m, columns[i], 700);
                g.cpu = WEFT_CPU_AVX2 | WEFT_CPU_AVX512, g.b_packed = true;
                if (transposed)
                    g.b_row = 1, g.b_col = g.k;
                weft_gemm_prepare(&g, 2);
                assert_true(m == 1 || weft_packing_same(&packing, &g.packing));
                packing = g.packing;
            }
        }
    }
}

static void a_forced_grid_is_taken(void **state)
{
    struct weft_gemm g = product(600, 640, 64);
    g.cpu = WEFT_CPU_AVX2 | WEFT_CPU_AVX512;
    g.grid[0] = 1, g.grid[1] = 3, g.grid[2] = 2;
    g.block_m = 24, g.block_n = 128, g.block_k = 16;
    weft_gemm_prepare(&g, 1);
    assert_int_equal(g.parts, 6);
    assert_int_equal(g.loops.cut[1], 3);
    assert_int_equal(g.loops.mc, 24);
    assert_int_equal(g.loops.nc, 128);
    assert_int_equal(g.loops.kc, 16);
}

/* Bands are even, and one where the cache has room: of 128 rows no second one reads all of B for the last 32. */
static void bands_are_even(void **state)
{
    if (!WEFT_CPU_BUILT)
        skip(); /* numbers are those of the tiles of AVX2 and AVX-512 */
    static const struct {
        int64_t m, k;
        int32_t band; /* tiles of 6 rows */
    } cases[] = {{128, 768, 22}, {197, 768, 17}, {512, 768, 29}, {1000, 1000, 17}, {40, 768, 7}, {1, 768, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_gemm g = product(cases[i].m, 3072, cases[i].k);
        g.cpu = WEFT_CPU_AVX2 | WEFT_CPU_AVX512, g.b_packed = true, g.cache = 2 << 20;
        weft_gemm_prepare(&g, 1);
        assert_int_equal(g.loops.band, cases[i].band);
    }
    struct weft_gemm none = product(0, 3072, 768);
    none.b_packed = true;
    weft_gemm_prepare(&none, 2);
    assert_in_range(none.loops.band, 1, 32);
}

/* Each part says where it begins to read, and how much at most; what it prefetches for a later step changes nothing. */
static void later_weights_are_prefetched(void **state)
{
    static const int64_t shapes[][3] = {{128, 768, 768}, {7, 130, 64}, {50, 640, 1500}, {1, 512, 4096}, {130, 65, 33}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        struct weft_gemm g = product(m, n, k);
#ifdef __x86_64__
        g.cpu = __builtin_cpu_supports("avx512vl") ? WEFT_CPU_AVX2 | WEFT_CPU_AVX512
                : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? WEFT_CPU_AVX2 : 0;
#endif
        g.b_packed = true;
        weft_gemm_prepare(&g, 3);
        float *const a = calloc((size_t)(m * k), sizeof *a), *const b = calloc((size_t)(n * k), sizeof *b);
        float *const c = calloc((size_t)(2 * m * n), sizeof *c), *const later = calloc(1000, sizeof *later);
        float *const pack = aligned_alloc(64, (weft_gemm_pack_bytes(&g) + 63) / 64 * 64);
        char *const scratch = calloc(1, g.scratch + g.shared + 64);
        assert_true(a && b && c && later && pack && scratch);
        for (int64_t j = 0; j < m * k; j++)
            a[j] = (float)(j * 37 % 101 - 50) / 64;
        for (int64_t j = 0; j < n * k; j++)
            b[j] = (float)(j * 53 % 97 - 48) / 64;
        weft_gemm_pack(&g, pack, (const weft_loose_f32 *)b);
        for (int turn = 0; turn < 2; turn++)
            for (int part = 0; part < g.parts; part++) {
                const struct weft_prefetch first = weft_gemm_reads_first(&g, pack, part);
                if (first.data) {
                    const int64_t panel = g.kernel->columns * k;
                    int64_t begin[3], end[3];
                    assert_true(weft_gemm_box(g.loops.units, g.loops.cut, part, begin, end));
                    assert_ptr_equal(first.data, pack + begin[2] * panel);
                    assert_in_range(first.floats, 1, (end[2] - begin[2]) * panel);
                }
                const struct weft_gemm_data data = {.c = c + turn * m * n, .a = a, .b = pack, .scratch = scratch,
                                                    .shared = scratch + g.scratch,
                                                    .prefetch = {turn ? later : NULL, turn ? 1000 : 0}};
                weft_gemm_run(&g, &data, part, g.parts);
            }
        assert_memory_equal(c, c + m * n, (size_t)(m * n) * sizeof *c);
        assert_true(c[0] != 0 && c[m * n - 1] != 0);
        free(a), free(b), free(c), free(later), free(pack), free(scratch);
    }
    struct weft_gemm g = product(128, 768, 768);
    g.cpu = WEFT_CPU_AVX2 | WEFT_CPU_AVX512;
    weft_gemm_prepare(&g, 2);
    assert_null(weft_gemm_reads_first(&g, NULL, 0).data);
}

/* As tiles make it. */
static void make_piece(struct weft_gemm_copy *copy)
{
    for (int64_t i = 0; i < (copy->transposes ? WEFT_COPY_ROWS : 1); i++) {
        for (int64_t j = 0; j < WEFT_COPY_LINE; j++)
            copy->to[i * copy->to_row + j] = copy->from[i * copy->from_row + j * copy->from_column];
    }
    weft_gemm_copy_next(copy);
}

/* Whatever tiles have made of it, nothing is missing in the end, and nothing beside it is written. */
static void copies_are_whole(void **state)
{
    enum { ROWS = 70, COLUMNS = 64, GAP = 3 };
    static float from[(ROWS + GAP) * (COLUMNS + GAP)], to[ROWS * COLUMNS];
    const struct weft_gemm_kernel *const kernel = weft_gemm_find(0);
    for (int i = 0; i < (int)(sizeof from / sizeof *from); i++)
        from[i] = (float)(i + 1);
    for (int transposes = 0; transposes < 2; transposes++)
        for (int64_t rows = 0; rows <= ROWS; rows += rows < 18 ? 1 : 13)
            for (int64_t columns = 1; columns <= COLUMNS; columns += 9)
                for (int64_t made = 0, left = 1; left > 0; made += 1 + made / 3) {
                    struct weft_gemm_copy copy = {
                        .panel = to, .source = from, .to_row = COLUMNS, .from_row = transposes ? 1 : COLUMNS + GAP,
                        .from_column = transposes ? ROWS + GAP : 1, .rows = rows, .columns = columns};
                    weft_gemm_copy_begin(&copy, 7);
                    for (int64_t i = 0; i < made && copy.left > 0; i++)
                        make_piece(&copy);
                    left = copy.left;
                    weft_gemm_copy_end(kernel, &copy);
                    for (int64_t i = 0; i < ROWS; i++)
                        for (int64_t j = 0; j < COLUMNS; j++) {
                            const bool inside = i < rows && j < columns;
                            assert_true(to[i * COLUMNS + j] ==
                                        (inside ? from[i * copy.from_row + j * copy.from_column] : 0));
                            to[i * COLUMNS + j] = 0;
                        }
                }
}

static void tiles_copy_panels_behind_theirs(void **state)
{
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    struct weft_gemm g = {.cpu = cpu.flags, .batch = 1, .m = 300, .n = 500, .k = 512, .a_row = 512,
                          .a_col = 1, .b_row = 1, .b_col = 512, .c_row = 500, .c_col = 1};
    weft_gemm_prepare(&g, 1);
    if (g.kernel->columns < WEFT_GEMM_COLUMNS)
        skip();
    assert_true(g.loops.spreads && g.loops.two_blocks);
    assert_true(g.scratch >= 2 * 512 * WEFT_GEMM_COLUMNS * sizeof(float));
    g.n = WEFT_GEMM_COLUMNS; /* there is no other one */
    weft_gemm_prepare(&g, 1);
    assert_false(g.loops.two_blocks);
    g.n = 500, g.b_packed = true; /* nothing is copied */
    weft_gemm_prepare(&g, 1);
    assert_false(g.loops.spreads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_unit_is_one_part_s),
        cmocka_unit_test(and_so_it_is_for_extents_at_random),
        cmocka_unit_test(short_panels_count_as_what_they_are),
        cmocka_unit_test(slices_and_lanes_follow_from_shape),
        cmocka_unit_test(turns_are_for_long_products),
        cmocka_unit_test(turns_are_even_between_workers), cmocka_unit_test(panels_count_as_what_they_are),
        cmocka_unit_test(boxes_of_turns_are_those_of_workers),
        cmocka_unit_test(one_chain_is_one_chain),
        cmocka_unit_test(packs_do_not_depend_on_rows),
        cmocka_unit_test(a_forced_grid_is_taken),
        cmocka_unit_test(bands_are_even),
        cmocka_unit_test(later_weights_are_prefetched),
        cmocka_unit_test(copies_are_whole),
        cmocka_unit_test(tiles_copy_panels_behind_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
