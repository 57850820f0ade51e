/* SPDX-License-Identifier: Apache-2.0 */
/* test_sides.c: the graph's headers and the kernels' in one file, which whoever turns nodes into calls of kernels
 * includes: no name means two things, and what both sides number alike is numbered alike. */
#include "ir/ir.h"
#include "kernels/kernels.h"
#include "kernels/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h> /* after what it needs */

static void types_have_one_number(void **state)
{
    static const int both[][2] = {
        {WEFT_F64, WEFT_K_F64}, {WEFT_F32, WEFT_K_F32}, {WEFT_BF16, WEFT_K_BF16}, {WEFT_F16, WEFT_K_F16},
        {WEFT_I64, WEFT_K_I64}, {WEFT_I32, WEFT_K_I32}, {WEFT_I16, WEFT_K_I16}, {WEFT_I8, WEFT_K_I8},
        {WEFT_U64, WEFT_K_U64}, {WEFT_U32, WEFT_K_U32}, {WEFT_U16, WEFT_K_U16}, {WEFT_U8, WEFT_K_U8},
        {WEFT_BOOL, WEFT_K_BOOL}, {WEFT_I4, WEFT_K_I4}, {WEFT_U4, WEFT_K_U4}, {WEFT_F8E4M3, WEFT_K_F8E4M3},
        {WEFT_F8E5M2, WEFT_K_F8E5M2},
    };
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++)
        assert_int_equal(both[i][0], both[i][1]);
}

/* The same transposed array by the walk of each side: runs of the last axis, in elements; single steps, in bytes. */
static void both_walks_meet_the_same_elements(void **state)
{
    static float data[2 * 3 * 5];
    const struct weft_tensor tensor = {.data = data, .dtype = WEFT_F32, .rank = 3, .extent = {5, 2, 3},
                                       .stride = {1, 15, 5}};
    struct weft_k_axis axis[3];
    for (int i = 0; i < 3; i++)
        axis[i] = (struct weft_k_axis){tensor.extent[i], {tensor.stride[i]}};
    struct weft_k_walk kernel = {.rank = 3, .arrays = 1, .at = {(char *)data}};
    for (int i = 0; i < kernel.rank; i++) {
        kernel.extent[i] = axis[i].extent;
        kernel.step[0][i] = axis[i].stride[0] * (int64_t)sizeof *data;
    }
    struct weft_walk graph;
    int64_t met = 0;
    for (weft_walk_open(&graph, 1, (const struct weft_tensor *const[]){&tensor}); !graph.done; weft_walk_next(&graph))
        for (int64_t i = 0; i < graph.run; i++, met++) {
            assert_ptr_equal(kernel.at[0], data + graph.place[0] + i * graph.step[0]);
            weft_k_walk_next(&kernel, kernel.rank - 1);
        }
    assert_int_equal(met, 30);
    assert_ptr_equal(kernel.at[0], data); /* past the end: the start */
    weft_k_axes_sort(axis, 3);
    assert_int_equal(weft_k_axes_merge(axis, 3, 1), 1); /* without gaps, so it is one axis */
    assert_int_equal(axis[0].extent, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_one_number),
        cmocka_unit_test(both_walks_meet_the_same_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
