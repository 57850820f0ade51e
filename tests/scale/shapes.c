/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c: writes graphs of a wanted size as text. Tensors are tiny, so that all time goes into the graph; operands
 * differ, so that nothing is merged or folded away unless that is the point. */
#include "scale/shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const char *format, ...)
{
    for (;;) {
        va_list arguments;
        va_start(arguments, format);
        const size_t room = text->capacity - text->length;
        const size_t need = (size_t)vsnprintf(room ? text->data + text->length : NULL, room, format, arguments);
        va_end(arguments);
        if (need < room) {
            text->length += need;
            return;
        }
        text->capacity = 2 * text->capacity + need + 4096;
        text->data = realloc(text->data, text->capacity);
        if (!text->data)
            abort();
    }
}

void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

/* Each node reads the one before it. */
static void write_chain(struct text *text, uint32_t nodes)
{
    text_add(text, "graph @chain(%%v0: f32[4]) {\n");
    for (uint32_t i = 1; i <= nodes; i++)
        text_add(text, "  %%v%u: f32[4] = %s %%v%u\n", i, i % 2 ? "tanh" : "sin", i - 1);
    text_add(text, "  return %%v%u\n}\n", nodes);
}

/* One value that every node reads. */
static void write_fan_out(struct text *text, uint32_t nodes)
{
    text_add(text, "graph @fan_out(%%x: f32[4]) {\n  %%v0: f32[4] = exp %%x\n");
    for (uint32_t i = 1; i < nodes; i++)
        text_add(text, "  %%v%u: f32[4] = %s %%v%u, %%x\n", i, i % 2 ? "mul" : "add", i - 1);
    text_add(text, "  return %%v%u\n}\n", nodes - 1);
}

/* One node that reads all others: slices of x, each shifted by a number of its own. */
static void write_fan_in(struct text *text, uint32_t nodes)
{
    const uint32_t parts = nodes / 3;
    text_add(text, "graph @fan_in(%%x: f32[8]) {\n");
    for (uint32_t i = 0; i < parts; i++)
        text_add(text,
                 "  %%c%u: f32[2] = const value=%u\n"
                 "  %%s%u: f32[2] = slice %%x start=[%u] end=[%u]\n"
                 "  %%a%u: f32[2] = add %%s%u, %%c%u\n",
                 i, i + 1, i, i % 6, i % 6 + 2, i, i, i);
    text_add(text, "  %%y: f32[%u] = concat", 2 * parts);
    for (uint32_t i = 0; i < parts; i++)
        text_add(text, "%s %%a%u", i ? "," : "", i);
    text_add(text, " axis=0\n  return %%y\n}\n");
}

/* Layers as transformers have them, with weights of their own: 26 lines each. */
static void write_blocks(struct text *text, uint32_t nodes)
{
    text_add(text, "graph @blocks<L=1..64 hint=4>(%%y0: f32[L,8]) {\n");
    const uint32_t blocks = nodes / 26 + 1;
    for (uint32_t i = 1; i <= blocks; i++) {
        for (uint32_t k = 0; k < 6; k++)
            text_add(text, "  %%w%u.%u: f32[8,8] = const random=%u\n", i, k, 8 * i + k);
        text_add(text, "  %%g%u: f32[8] = const random=%u\n", i, 8 * i + 6);
        text_add(text, "  %%b%u: f32[8] = const random=%u\n", i, 8 * i + 7);
        text_add(text, "  %%n%u: f32[L,8] = layer_norm %%y%u, %%g%u, %%b%u axis=1\n", i, i - 1, i, i);
        for (uint32_t k = 0; k < 3; k++)
            text_add(text,
                     "  %%p%u.%u: f32[L,8] = matmul %%n%u, %%w%u.%u\n"
                     "  %%r%u.%u: f32[L,2,4] = reshape %%p%u.%u\n"
                     "  %%t%u.%u: f32[2,L,4] = transpose %%r%u.%u perm=[1 0 2]\n",
                     i, k, i, i, k, i, k, i, k, i, k, i, k);
        text_add(text,
                 "  %%k%u: f32[2,4,L] = transpose %%t%u.1 perm=[0 2 1]\n"
                 "  %%s%u: f32[2,L,L] = matmul %%t%u.0, %%k%u\n"
                 "  %%a%u: f32[2,L,L] = softmax %%s%u axis=2\n"
                 "  %%h%u: f32[2,L,4] = matmul %%a%u, %%t%u.2\n"
                 "  %%u%u: f32[L,2,4] = transpose %%h%u perm=[1 0 2]\n"
                 "  %%v%u: f32[L,8] = reshape %%u%u\n"
                 "  %%o%u: f32[L,8] = matmul %%v%u, %%w%u.3\n"
                 "  %%y%u: f32[L,8] = add %%y%u, %%o%u\n",
                 i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i - 1, i);
    }
    text_add(text, "  return %%y%u\n}\n", blocks);
}

/* As many small arrays as nodes that read them. */
static void write_constants(struct text *text, uint32_t nodes)
{
    text_add(text, "graph @constants(%%v0: f32[4]) {\n");
    for (uint32_t i = 1; i <= nodes / 2; i++)
        text_add(text, "  %%c%u: f32[4] = const value=[%u 1 2 3]\n  %%v%u: f32[4] = %s %%v%u, %%c%u\n", i, i, i,
                 i % 2 ? "mul" : "add", i - 1, i);
    text_add(text, "  return %%v%u\n}\n", nodes / 2);
}

/* A symbol for every eight nodes, and extents that are sums of two. */
static void write_symbols(struct text *text, uint32_t nodes)
{
    const uint32_t symbols = nodes / 8 + 2;
    text_add(text, "graph @symbols<");
    for (uint32_t i = 0; i < symbols; i++)
        text_add(text, "%sS%u=1..100 hint=2", i ? ", " : "", i);
    text_add(text, ">(");
    for (uint32_t i = 0; i < symbols; i++)
        text_add(text, "%s%%x%u: f32[S%u]", i ? ", " : "", i, i);
    text_add(text, ") {\n  %%t0: f32[] = const value=1\n");
    for (uint32_t i = 1; i < symbols; i++)
        text_add(text,
                 "  %%a%u: f32[S%u] = tanh %%x%u\n"
                 "  %%b%u: f32[S%u] = exp %%a%u\n"
                 "  %%c%u: f32[S%u + S%u] = concat %%b%u, %%x%u axis=0\n"
                 "  %%d%u: f32[S%u + S%u] = sin %%c%u\n"
                 "  %%e%u: f32[S%u + S%u] = exp %%d%u\n"
                 "  %%f%u: f32[] = sum %%e%u axes=[0]\n"
                 "  %%g%u: f32[] = tanh %%f%u\n"
                 "  %%t%u: f32[] = add %%t%u, %%g%u\n",
                 i, i, i, i, i, i, i, i - 1, i, i, i - 1, i, i - 1, i, i, i, i - 1, i, i, i, i, i, i, i, i - 1, i);
    text_add(text, "  return %%t%u\n}\n", symbols - 1);
}

/* Two bodies for every five nodes. */
static void write_bodies(struct text *text, uint32_t nodes)
{
    const uint32_t holders = nodes / 5 + 1;
    text_add(text, "graph @bodies(%%c: bool[], %%n: i64[], %%v0: f32[4]) {\n");
    for (uint32_t i = 1; i <= holders; i++) {
        text_add(text,
                 "  graph @a%u(%%x: f32[4]) {\n    %%y: f32[4] = exp %%x\n    %%z: f32[4] = tanh %%y\n"
                 "    return %%z\n  }\n"
                 "  graph @b%u(%%x: f32[4]) {\n    %%y: f32[4] = sin %%x\n    %%z: f32[4] = neg %%y\n"
                 "    return %%z\n  }\n",
                 i, i);
        text_add(text, "  %%v%u: f32[4] = if %%c, %%v%u then=@a%u else=@b%u\n", i, i - 1, i, i);
    }
    text_add(text, "  return %%v%u\n}\n", holders);
}

/* Every second node goes away, with a remark that names it. */
static void write_remarks(struct text *text, uint32_t nodes)
{
    text_add(text, "graph @remarks(%%v0: f32[4]) {\n  %%one: f32[4] = const value=1\n");
    for (uint32_t i = 1; i <= nodes / 2; i++)
        text_add(text, "  %%u%u: f32[4] = mul %%v%u, %%one\n  %%v%u: f32[4] = sin %%u%u\n", i, i - 1, i, i);
    text_add(text, "  return %%v%u\n}\n", nodes / 2);
}

/* Every second node equals the one before. */
static void write_twins(struct text *text, uint32_t nodes)
{
    text_add(text, "graph @twins(%%v0: f32[4]) {\n");
    for (uint32_t i = 1; i <= nodes / 3; i++)
        text_add(text,
                 "  %%a%u: f32[4] = sin %%v%u\n  %%b%u: f32[4] = sin %%v%u\n  %%v%u: f32[4] = mul %%a%u, %%b%u\n", i,
                 i - 1, i, i - 1, i, i, i);
    text_add(text, "  return %%v%u\n}\n", nodes / 3);
}

/* Values that all live until the end: the arena holds them side by side. */
static void write_long_lived(struct text *text, uint32_t nodes)
{
    const uint32_t half = nodes / 2;
    text_add(text, "graph @long_lived(%%v0: f32[4]) {\n");
    for (uint32_t i = 1; i <= half; i++)
        text_add(text, "  %%v%u: f32[4] = %s %%v%u\n", i, i % 2 ? "tanh" : "sin", i - 1);
    text_add(text, "  %%w0: f32[4] = neg %%v%u\n", half);
    for (uint32_t i = 1; i <= half; i++)
        text_add(text, "  %%w%u: f32[4] = add %%w%u, %%v%u\n", i, i - 1, half - i + 1);
    text_add(text, "  return %%w%u\n}\n", half);
}

const struct shape shapes[] = {
    {"chain",      "each node reads the one before",            write_chain,      false},
    {"unnamed",    "a chain of values without names",           write_remarks,    true},
    {"fan_out",    "all nodes read one value",                  write_fan_out,    false},
    {"fan_in",     "one concat of a third of the nodes",        write_fan_in,     false},
    {"blocks",     "layers of a transformer, one symbol",       write_blocks,     false},
    {"constants",  "every second node is a constant",           write_constants,  false},
    {"symbols",    "a symbol for every eight nodes",            write_symbols,    false},
    {"bodies",     "two bodies for every five nodes",           write_bodies,     false},
    {"remarks",    "every second node goes, with a remark",     write_remarks,    false},
    {"twins",      "every third node equals another",           write_twins,      false},
    {"long_lived", "half of the values live to the end",        write_long_lived, false},
};
const unsigned shape_count = sizeof shapes / sizeof shapes[0];

const struct shape *shape_find(const char *name)
{
    for (unsigned i = 0; i < shape_count; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}
