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

/* Layers that turn their input, work on it, and turn it back: each is a region of sink_transpose's own. */
static void write_transposes(struct text *text, uint32_t nodes)
{
    const uint32_t layers = nodes / 6 + 1;
    text_add(text, "graph @transposes(%%y0: f32[3,4], %%w: f32[4,3]) {\n");
    for (uint32_t i = 1; i <= layers; i++)
        text_add(text,
                 "  %%t%u: f32[4,3] = transpose %%y%u perm=[1 0]\n"
                 "  %%e%u: f32[4,3] = tanh %%t%u\n"
                 "  %%s%u: f32[4,3] = sigmoid %%e%u\n"
                 "  %%m%u: f32[4,3] = mul %%e%u, %%s%u\n"
                 "  %%b%u: f32[3,4] = transpose %%m%u perm=[1 0]\n"
                 "  %%y%u: f32[3,4] = add %%b%u, %%y%u\n",
                 i, i - 1, i, i, i, i, i, i, i, i, i, i, i, i - 1);
    text_add(text, "  return %%y%u\n}\n", layers);
}

/* One region of sink_transpose: a chain with a turned operand at every second node and a reader that wants it as it
 * is at every eighth, so that prices meet in one cut. */
static void write_turned(struct text *text, uint32_t nodes)
{
    const uint32_t steps = nodes / 3 + 1;
    text_add(text, "graph @turned(%%x: f32[3,4], %%z: f32[4,3]) {\n  %%v0: f32[4,3] = transpose %%x perm=[1 0]\n"
                   "  %%p0: f32[3,4] = exp %%x\n");
    for (uint32_t i = 1; i <= steps; i++) {
        text_add(text,
                 "  %%p%u: f32[3,4] = tanh %%p%u\n"
                 "  %%t%u: f32[4,3] = transpose %%p%u perm=[1 0]\n"
                 "  %%v%u: f32[4,3] = add %%v%u, %%t%u\n",
                 i, i - 1, i, i, i, i - 1, i);
        if (i % 8 == 0)
            text_add(text, "  %%q%u: f32[4,3] = mul %%v%u, %%z\n", i, i);
    }
    text_add(text, "  return %%v%u", steps);
    for (uint32_t i = 8; i <= steps; i += 8)
        text_add(text, ", %%q%u", i);
    text_add(text, "\n}\n");
}

/* Halves that go their ways and meet again; some meet as they were parted. */
static void write_concats(struct text *text, uint32_t nodes)
{
    const uint32_t layers = nodes / 7 + 1;
    text_add(text, "graph @concats(%%y0: f32[4]) {\n");
    for (uint32_t i = 1; i <= layers; i++)
        text_add(text,
                 "  %%a%u: f32[2] = slice %%y%u start=[0] end=[2]\n"
                 "  %%b%u: f32[2] = slice %%y%u start=[2] end=[4]\n"
                 "  %%c%u: f32[4] = concat %%a%u, %%b%u axis=0\n"
                 "  %%d%u: f32[2] = sin %%b%u\n"
                 "  %%e%u: f32[4] = concat %%a%u, %%d%u axis=0\n"
                 "  %%f%u: f32[2] = slice %%e%u start=[1] end=[3]\n"
                 "  %%y%u: f32[4] = concat %%f%u, %%d%u axis=0\n",
                 i, i - 1, i, i - 1, i, i, i, i, i, i, i, i, i, i, i, i, i);
    text_add(text, "  return %%y%u\n}\n", layers);
}

/* One wide concat, which is taken to pieces again: slices that are its operands one by one, in another order. */
static void write_pieces(struct text *text, uint32_t nodes)
{
    const uint32_t pieces = nodes / 4 + 1;
    text_add(text, "graph @pieces(%%x: f32[2]) {\n");
    for (uint32_t i = 0; i < pieces; i++)
        text_add(text, "  %%c%u: f32[2] = const value=%u\n  %%a%u: f32[2] = add %%x, %%c%u\n", i, i + 1, i, i);
    text_add(text, "  %%w: f32[%u] = concat", 2 * pieces);
    for (uint32_t i = 0; i < pieces; i++)
        text_add(text, "%s %%a%u", i ? "," : "", pieces - 1 - i);
    text_add(text, " axis=0\n");
    for (uint32_t i = 0; i < pieces; i++)
        text_add(text, "  %%t%u: f32[2] = slice %%w start=[%u] end=[%u]\n  %%b%u: f32[2] = cos %%t%u\n", i, 2 * i,
                 2 * i + 2, i, i);
    text_add(text, "  %%y: f32[%u] = concat", 2 * pieces);
    for (uint32_t i = 0; i < pieces; i++)
        text_add(text, "%s %%b%u", i ? "," : "", i);
    text_add(text, " axis=0\n  return %%y, %%w\n}\n");
}

/* Casts, bounds and comparisons of whole numbers, some of which their ranges make needless. */
static void write_casts(struct text *text, uint32_t nodes)
{
    const uint32_t layers = nodes / 8 + 1;
    text_add(text, "graph @casts(%%y0: u8[4], %%z: u8[4]) {\n  %%k: i32[4] = const value=300\n");
    for (uint32_t i = 1; i <= layers; i++)
        text_add(text,
                 "  %%a%u: i64[4] = cast %%y%u\n"
                 "  %%b%u: i32[4] = cast %%a%u\n"
                 "  %%c%u: i32[4] = clamp %%b%u low=0 high=255\n"
                 "  %%d%u: i32[4] = min %%c%u, %%k\n"
                 "  %%e%u: u8[4] = cast %%d%u\n"
                 "  %%f%u: bool[4] = lt %%d%u, %%k\n"
                 "  %%g%u: u8[4] = select %%f%u, %%e%u, %%z\n"
                 "  %%y%u: u8[4] = add %%g%u, %%z\n",
                 i, i - 1, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
    text_add(text, "  return %%y%u\n}\n", layers);
}

/* Rows written into uniform constants. A scatter becomes some fifteen nodes, so it is one of ten. */
static void write_scatters(struct text *text, uint32_t nodes)
{
    const uint32_t layers = nodes / 10 + 1;
    text_add(text, "graph @scatters(%%y0: f32[3,1]) {\n");
    for (uint32_t i = 1; i <= layers; i++) {
        text_add(text,
                 "  %%k%u: f32[3,4] = const value=%u\n"
                 "  %%i%u: i64[3,1] = const value=[%u %u 1]\n"
                 "  %%s%u: f32[3,4] = scatter_elements %%k%u, %%i%u, %%y%u axis=1\n"
                 "  %%m%u.0: f32[3,1] = reduce_max %%s%u axes=[1] keepdims=1\n",
                 i, i, i, i % 4, i / 4 % 4, i, i, i, i - 1, i, i);
        for (uint32_t k = 1; k <= 5; k++)
            text_add(text, "  %%m%u.%u: f32[3,1] = %s %%m%u.%u\n", i, k, k % 2 ? "tanh" : "sin", i, k - 1);
        text_add(text, "  %%y%u: f32[3,1] = sin %%m%u.5\n", i, i);
    }
    text_add(text, "  return %%y%u\n}\n", layers);
}

/* Recurrent layers, each of which becomes some twenty nodes; so a tenth as many are written. */
static void write_recurrent(struct text *text, uint32_t nodes)
{
    const uint32_t layers = nodes / 10 + 1;
    text_add(text, "graph @recurrent(%%y0: f32[5,2,4], %%w: f32[1,4,4], %%h: f32[1,2,4]) {\n"
                   "  %%b: f32[1,8] = const value=0\n");
    for (uint32_t i = 1; i <= layers; i++)
        text_add(text,
                 "  %%r%u: f32[5,1,2,4], %%s%u: f32[1,2,4] = rnn %%y%u, %%w, %%w, %%b, %%h\n"
                 "  %%y%u: f32[5,2,4] = reshape %%r%u\n",
                 i, i, i - 1, i, i);
    text_add(text, "  return %%y%u\n}\n", layers);
}

/* Loops of which one result is not read. */
static void write_loops(struct text *text, uint32_t nodes)
{
    const uint32_t layers = nodes / 4 + 1;
    text_add(text, "graph @loops(%%n: i64[], %%y0: f32[4], %%k: f32[4]) {\n");
    for (uint32_t i = 1; i <= layers; i++)
        text_add(text,
                 "  graph @b%u(%%i: i64[], %%a: f32[4], %%b: f32[4], %%k: f32[4]) {\n"
                 "    %%c: f32[4] = add %%a, %%k\n    %%d: f32[4] = neg %%b\n    return %%c, %%d\n  }\n"
                 "  %%q%u: f32[4], %%r%u: f32[4] = loop %%n, %%y%u, %%y%u, %%k body=@b%u carried=2\n"
                 "  %%y%u: f32[4] = sin %%r%u\n",
                 i, i, i, i - 1, i - 1, i, i, i);
    text_add(text, "  return %%y%u\n}\n", layers);
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
    {"transposes", "layers between two transposes",             write_transposes, false},
    {"turned",     "a chain of turned operands, one cut",       write_turned,     false},
    {"concats",    "halves that part and meet",                 write_concats,    false},
    {"pieces",     "one concat of pieces, in pieces again",     write_pieces,     false},
    {"casts",      "casts and bounds, some needless",           write_casts,      false},
    {"scatters",   "scatters into uniform constants",           write_scatters,   false},
    {"recurrent",  "rnn layers, which become loops",            write_recurrent,  false},
    {"loops",      "loops with a result that nobody reads",     write_loops,      false},
};
const unsigned shape_count = sizeof shapes / sizeof shapes[0];

const struct shape *shape_find(const char *name)
{
    for (unsigned i = 0; i < shape_count; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}
