/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_text.c: bytes as the text of a graph.
 *
 * Whatever the bytes are, the parser returns a graph, or a status with at least one message. A graph then has to
 * satisfy all of graph.c. Files that a text refers to are looked for in a folder that does not exist. */
#include "tests/fuzz/fuzz.h"

const size_t weft_fuzz_limit = 4096;

void weft_fuzz_check(const uint8_t *data, size_t size)
{
    struct weft_fuzz_budget budget;
    struct weft_context *context = weft_fuzz_open(&budget);
    struct weft_graph *graph = NULL;
    const int status = weft_parse(context, (const char *)data, size, "/nowhere/fuzz.weft", &graph);
    weft_fuzz_require((status == WEFT_OK) == (graph != NULL));
    if (graph)
        weft_fuzz_graph(graph, size * 31 + (size ? data[size / 2] : 0));
    else
        weft_fuzz_require(*weft_last_error(context) || status == WEFT_ERR_NOMEM);
    weft_graph_destroy(graph);
    weft_fuzz_close(context, &budget);
}

size_t weft_fuzz_mutate(uint8_t *data, size_t size, size_t room, uint64_t *random)
{
    return weft_fuzz_mutate_text(data, size, room, random);
}
