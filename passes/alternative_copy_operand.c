/* SPDX-License-Identifier: Apache-2.0 */
/* copy_operand: an operand that lies badly is copied, row-major, and the product reads the copy.
 *
 *   %y: f32[64,4096] = matmul %a, %b         %r: f32[256,4096]{0 1} = relayout %b
 *       %b: f32[256,4096]{1 0}          →    %y: f32[64,4096] = matmul %a, %r
 *
 * weft's own layouts weigh the same copy for all values at once (propagate_memory_format), so that in a graph whose
 * layouts they chose this is taken only where the two prices differ: the layout search has the cost of a product's
 * operand, this the predicted time of the kernel that runs. Keeps all bits. Not for constants, nor for
 * static weights, which are packed. */
#include "passes/alternatives.h"
#include "passes/passes.h"
#include "sched/select.h"

/* A constant, or views and copies of one? */
static bool is_constant(const struct weft_graph *g, weft_val v)
{
    while (weft_def(g, v).id && (weft_is_view(g, weft_def(g, v)) || weft_def_opcode(g, v) == WEFT_OP_relayout))
        v = weft_operand(g, weft_def(g, v), 0);
    return weft_is_const(g, v);
}

/* The operand that is not row-major, or 2: none. */
static unsigned find_bad(const struct weft_graph *g, weft_node n)
{
    for (unsigned i = 0; i < 2; i++) {
        const weft_val v = weft_operand(g, n, i);
        const struct weft_layout layout = weft_layout_of(g, v);
        const weft_node def = weft_def(g, v);
        const bool is_copy = def.id && weft_opcode_of(g, def) == WEFT_OP_relayout;
        const bool is_packed = is_constant(g, v) || (i == 1 && weft_select_packs(g, &weft_step_gemm, v));
        if (!is_packed && !is_copy && layout.kind == WEFT_STORED && !weft_layout_is_row_major(&layout))
            return i;
    }
    return 2;
}

static bool fits(void *user, const struct weft_graph *g, weft_node n)
{
    (void)user;
    return weft_step_is_f32(g, n) && find_bad(g, n) < 2;
}

static int build(void *user, struct weft_graph *g, const weft_node *node, size_t nodes)
{
    (void)user, (void)nodes;
    const weft_node n = {.id = node[0].id};
    struct weft_builder b = {.graph = g};
    const unsigned bad = find_bad(g, n);
    weft_val operand[] = {weft_operand(g, n, 0), weft_operand(g, n, 1)};
    const struct weft_layout rows = weft_layout_row_major(weft_type_of(g, operand[bad])->rank);
    operand[bad] = weft_build(&b, WEFT_OP_relayout, 1, &operand[bad], 0, NULL, weft_type_of(g, operand[bad]));
    weft_state_layout(g, operand[bad], &rows);
    const weft_val y = weft_rebuild(&b, n, operand, weft_type_of(g, weft_result(g, n, 0)));
    weft_clear_returns(g);
    weft_add_return(g, y, WEFT_NO_VALUE);
    return 1;
}

const struct weft_alternative weft_alternative_copy_operand = {
    .size = sizeof(struct weft_alternative), .name = "copy_operand", .op = "matmul", .fits = fits, .build = build};
