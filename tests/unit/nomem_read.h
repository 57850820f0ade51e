/* SPDX-License-Identifier: Apache-2.0 */
/* nomem_read.h: calls that read a graph, for test_nomem.c. */
#ifndef WEFT_TEST_NOMEM_READ_H
#define WEFT_TEST_NOMEM_READ_H

#include "tests/unit/nomem_world.h"

/* Nothing is needed but where a stride is an expression that the graph does not have yet. */
static inline int read_graph(struct world *w)
{
    struct weft_node_facts node = {.size = sizeof node};
    struct weft_value_facts value = {.size = sizeof value};
    struct weft_attribute attribute;
    int status = WEFT_OK;
    for (weft_node n = weft_next_node(w->graph, (weft_node){0}); n.id && status == WEFT_OK;
         n = weft_next_node(w->graph, n)) {
        status = weft_node_read(w->graph, n, &node);
        if (status == WEFT_OK)
            status = weft_value_read(w->graph, weft_node_result(w->graph, n, 0), &value);
        (void)weft_node_attribute(w->graph, n, "axis", &attribute);
        assert_true(weft_node_operand(w->graph, n, node.operands).id == 0);
    }
    assert_true(weft_graph_param(w->graph, weft_graph_params(w->graph)).id == 0);
    assert_true(weft_graph_return(w->graph, weft_graph_returns(w->graph)).id == 0);
    return status;
}

/* The weights, and the first extent of the input. */
static inline int read_numbers(struct world *w)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    struct weft_tensor weights = {.data = NULL};
    int status = weft_value_read(w->graph, weft_graph_param(w->graph, 0), &facts);
    int64_t rows = 0;
    char *text = UNTOUCHED;
    for (weft_node n = weft_next_node(w->graph, (weft_node){0}); n.id && status == WEFT_OK && !weights.data;
         n = weft_next_node(w->graph, n)) {
        const int found = weft_constant_read(w->graph, weft_node_result(w->graph, n, 0), &weights);
        status = found == WEFT_ERR_ARGUMENT ? WEFT_OK : found;
    }
    weft_tensor_free(w->context, &weights);
    if (status == WEFT_OK)
        status = weft_extent_at(w->graph, facts.extent[0], &(struct weft_size){"N", 7}, 1, &rows);
    if (status == WEFT_OK)
        status = weft_extent_text(w->graph, facts.extent[0], &text);
    if (status == WEFT_OK) {
        assert_int_equal(rows, 7);
        assert_string_equal(text, "N");
        weft_free_text(w->context, text);
    }
    return status;
}

static inline int save(struct world *w)
{
    char path[64], data[80];
    snprintf(path, sizeof path, "/tmp/weft-nomem-%ld.weft", (long)getpid());
    snprintf(data, sizeof data, "%s.bin", path);
    const int status = weft_save(w->graph, path);
    assert_true((access(path, R_OK) == 0) == (status == WEFT_OK));
    unlink(path);
    unlink(data);
    return status;
}

#endif
