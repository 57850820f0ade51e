/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h: graphs of any size whose form makes one kind of work grow: long chains, values with very many users,
 * operands without end, repeated blocks, constants, symbols, bodies, values without names, remarks.
 *
 *   struct text text = {0};
 *   shape_find("chain")->write(&text, 1000);      a graph of about a thousand nodes, as weft text
 *   … text.data, text.length …
 *   text_free(&text); */
#ifndef WEFT_TEST_SHAPES_H
#define WEFT_TEST_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing text; a test that runs out of memory has nothing better to do than to end. */
struct text {
    char *data;
    size_t length, capacity;
};
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *text);

struct shape {
    const char *name;
    const char *help;
    void (*write)(struct text *text, uint32_t nodes);
    bool unnamed; /* the names of the text are taken away before the passes */
};
extern const struct shape shapes[];
extern const unsigned shape_count;
/* NULL if there is none of that name. */
const struct shape *shape_find(const char *name);

#endif
