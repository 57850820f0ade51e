/* SPDX-License-Identifier: Apache-2.0 */
/* program_draw.h: graphs of elementwise ops, reductions, scans and contractions over one box, as functions of a seed,
 * for test_program.c. */
#ifndef WEFT_TEST_PROGRAM_DRAW_H
#define WEFT_TEST_PROGRAM_DRAW_H

#include "plan_support.h"

#include <inttypes.h>

enum { MOST_VALUES = 96, RANK = 4, MOST_ELEMENTS = 32767, MANY_ELEMENTS = 3000, MOST_RETURNS = 5, MOST_CHUNKS = 2 };

/* Which axes of the box a value has: all; those that are not folded, also with the others as axes of extent 1; or those
 * that are folded, as a scale of rows has. */
enum shape { WHOLE, KEPT, KEEPDIMS, FOLDED };

struct value {
    char name[8];
    int dtype;
    enum shape shape;
    bool computed;         /* not a parameter, a view or a constant */
    bool returned;         /* in any case, if there is room */
};
struct maker {
    uint64_t state;
    int rank, steps;
    int64_t extent[RANK];
    unsigned folded;       /* axes, a bit each: mostly the first or the last ones */
    int open;              /* axis whose extent is the symbol N, or -1 */
    struct value value[MOST_VALUES];
    int values, params;
    int cut;               /* axis that is folded in chunks: the last one that is not folded; or -1 */
    int64_t chunk;
    char chunks[MOST_CHUNKS][8]; /* names of what they come to, which nothing but the caller reads */
    int folds_of_chunks, concats;
    char piece[2];         /* of a concat: the letter of its name */
    char head[4096], body[16384], text[24576];
};

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static inline uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static inline unsigned draw(struct maker *m, unsigned n) { return (unsigned)(next(&m->state) % n); }

static inline void add_text(char *to, size_t bytes, const char *format, ...) WEFT_PRINTF(3, 4);
static inline void add_text(char *to, size_t bytes, const char *format, ...)
{
    va_list arguments;
    const size_t length = strlen(to);
    va_start(arguments, format);
    const int added = vsnprintf(to + length, bytes - length, format, arguments);
    va_end(arguments);
    assert_true(added >= 0 && (size_t)added < bytes - length);
}
#define HEAD(...) add_text(m->head, sizeof m->head, __VA_ARGS__)
#define BODY(...) add_text(m->body, sizeof m->body, __VA_ARGS__)

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static inline int64_t draw_extent(struct maker *m)
{
    static const int64_t extents[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 65, 100, 257, 513, 1030};
    return draw(m, 60) == 0 ? 0 : extents[draw(m, 16)];
}

static inline void draw_box(struct maker *m)
{
    int64_t elements = 1;
    const int64_t most = draw(m, 8) ? MANY_ELEMENTS : MOST_ELEMENTS; /* most are small: that is faster */
    m->rank = 1 + (int)draw(m, RANK);
    for (int i = 0; i < m->rank; i++) {
        do
            m->extent[i] = draw_extent(m);
        while (m->extent[i] * elements > most);
        elements *= m->extent[i] > 0 ? m->extent[i] : 1;
    }
    const int count = m->rank == 1 || draw(m, 10) == 0 ? (int)draw(m, 2) * m->rank
                                                       : 1 + (int)draw(m, (unsigned)m->rank - 1);
    m->folded = (1u << count) - 1;
    if (draw(m, 3))
        m->folded <<= m->rank - count;
    if (draw(m, 10) == 0)
        m->folded = draw(m, 1u << m->rank);
    if (m->rank > 2 && draw(m, 3) == 0) /* rows of several lines: all but an axis between others */
        m->folded = ((1u << m->rank) - 1) & ~(2u << draw(m, (unsigned)m->rank - 2));
    m->open = draw(m, 4) ? -1 : (int)draw(m, (unsigned)m->rank);
    if (m->rank == 2 && draw(m, 16) == 0) { /* few rows that are long enough for scans to cut them into chunks */
        m->extent[0] = 1 + draw(m, 3);
        m->extent[1] = 16384 + draw(m, 3000);
        m->folded = draw(m, 2) << 1;
        m->open = -1;
    }
    m->cut = m->rank - 1;
    while (m->cut >= 0 && m->folded >> m->cut & 1)
        m->cut--;
    m->chunk = 1 + draw(m, 12);
}

static inline bool has_axis(const struct maker *m, enum shape shape, int axis)
{
    return shape == KEPT ? !(m->folded >> axis & 1) : shape == FOLDED ? m->folded >> axis & 1 : true;
}

static inline const char *extent_text(const struct maker *m, enum shape shape, int axis, char text[24])
{
    if (shape == KEEPDIMS && m->folded >> axis & 1)
        return "1";
    if (axis == m->open)
        return "N";
    snprintf(text, 24, "%" PRId64, m->extent[axis]);
    return text;
}

/* "f32[5,N]". */
static inline const char *type_text(const struct maker *m, int dtype, enum shape shape, char text[96])
{
    int axes = 0;
    char one[24];
    snprintf(text, 96, "%s[", weft_dtype_name(dtype));
    for (int i = 0; i < m->rank; i++)
        if (has_axis(m, shape, i))
            add_text(text, 96, "%s%s", axes++ ? "," : "", extent_text(m, shape, i, one));
    add_text(text, 96, "]");
    return text;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static inline struct value *new_value(struct maker *m, int dtype, enum shape shape, bool computed)
{
    struct value *const v = &m->value[m->values];
    *v = (struct value){.dtype = dtype, .shape = shape, .computed = computed};
    snprintf(v->name, sizeof v->name, "v%d", m->values++);
    return v;
}

static inline int draw_dtype(struct maker *m)
{
    static const int dtypes[] = {WEFT_F32, WEFT_F32, WEFT_F32, WEFT_F32, WEFT_BF16, WEFT_F16,
                                 WEFT_F64, WEFT_I32, WEFT_I64, WEFT_BOOL, WEFT_U8,  WEFT_I8};
    return dtypes[draw(m, 12)];
}

/* Begins the line of a result; the caller ends it. */
static inline struct value *begin(struct maker *m, int dtype, enum shape shape, bool computed)
{
    char type[96];
    struct value *const v = new_value(m, dtype, shape, computed);
    BODY("  %%%s: %s = ", v->name, type_text(m, dtype, shape, type));
    return v;
}

/* One that is stored transposed and seen in order, one whose rows lie apart, or as it is. */
static inline const struct value *add_param(struct maker *m, int dtype, enum shape shape)
{
    char type[96];
    const char *const from = m->params++ ? ", " : "";
    const unsigned how = shape == WHOLE && m->rank == 2 ? draw(m, 6) : 5;
    if (how == 0) {
        char first[24], second[24];
        HEAD("%s%%p%d: %s[%s,%s]", from, m->params, weft_dtype_name(dtype), extent_text(m, WHOLE, 1, first),
             extent_text(m, WHOLE, 0, second));
        struct value *const v = begin(m, dtype, WHOLE, false);
        BODY("transpose %%p%d perm=[1 0]\n", m->params);
        return v;
    }
    if (how == 1 && m->open != 1) {
        char first[24];
        HEAD("%s%%p%d: %s[%s,%" PRId64 "]", from, m->params, weft_dtype_name(dtype), extent_text(m, WHOLE, 0, first),
             2 * m->extent[1] + 3);
        struct value *const v = begin(m, dtype, WHOLE, false);
        const int64_t step = 1 + draw(m, 2);
        BODY("slice %%p%d start=[0 1] end=[%s %" PRId64 "] step=[1 %" PRId64 "]\n", m->params,
             m->open == 0 ? "N" : first, 1 + (m->extent[1] > 0 ? step * (m->extent[1] - 1) + 1 : 0), step);
        return v;
    }
    const char *const order = shape != WHOLE || draw(m, 4) ? "" : m->rank == 4 ? "{0 2 3 1}" : m->rank == 3 ? "{0 2 1}"
                                                                                                        : "";
    int axes = 0;
    for (int i = 0; i < m->rank; i++)
        axes += has_axis(m, shape, i);
    if (axes > 0 && draw(m, 3) == 0) { /* computed by what is in no group, and so dead some time */
        HEAD("%s%%p%d: %s%s", from, m->params, type_text(m, dtype, shape, type), order);
        struct value *const v = begin(m, dtype, shape, false);
        BODY("flip %%p%d axes=[%u]\n", m->params, draw(m, (unsigned)axes));
        return v;
    }
    struct value *const v = new_value(m, dtype, shape, false);
    HEAD("%s%%%s: %s%s", from, v->name, type_text(m, dtype, shape, type), order);
    return v;
}

static inline const struct value *draw_value(struct maker *m)
{
    if (m->values == 0 || (m->params < 4 && draw(m, 8) == 0))
        return add_param(m, draw_dtype(m), draw(m, 3) ? WHOLE : (enum shape)draw(m, 4));
    const unsigned values = (unsigned)m->values;
    return &m->value[draw(m, 2) && values > 3 ? values - 1 - draw(m, 3) : draw(m, values)];
}

static inline const struct value *cast_to(struct maker *m, const struct value *x, int dtype)
{
    if (x->dtype == dtype)
        return x;
    const struct value *const v = begin(m, dtype, x->shape, true);
    BODY("cast %%%s\n", x->name);
    return v;
}

static inline const struct value *add_bcast(struct maker *m, const struct value *x)
{
    const struct value *const v = begin(m, x->dtype, WHOLE, false);
    int axes = 0;
    BODY("bcast %%%s dims=[", x->name);
    for (int i = 0; i < m->rank; i++)
        if (has_axis(m, x->shape, i))
            BODY("%s%d", axes++ ? " " : "", i);
    BODY("]\n");
    return v;
}

static inline const struct value *add_reduction(struct maker *m, const struct value *x, enum shape shape)
{
    static const char *const words[] = {"sum", "sum", "mean", "reduce_max", "reduce_min", "prod"};
    const bool truth = x->dtype == WEFT_BOOL;
    const char *const word = truth ? (draw(m, 2) ? "any" : "all") : words[draw(m, 6)];
    const struct value *const v = begin(m, x->dtype, shape, true);
    int axes = 0;
    BODY("%s %%%s axes=[", word, x->name);
    for (int i = 0; i < m->rank; i++)
        if (m->folded >> i & 1)
            BODY("%s%d", axes++ ? " " : "", i);
    BODY("]%s\n", shape == KEEPDIMS ? " keepdims=1" : "");
    return v;
}

/* Along an axis that is folded, or any. */
static inline void add_scan(struct maker *m, const struct value *x)
{
    static const char *const words[] = {"cumsum", "cumsum", "cumsum", "cumprod", "cummax", "cummin"};
    int axis = (int)draw(m, (unsigned)m->rank);
    while (m->folded && draw(m, 8) && !(m->folded >> axis & 1))
        axis = (axis + 1) % m->rank;
    if (x->shape != WHOLE || x->dtype == WEFT_BOOL)
        return;
    begin(m, x->dtype, WHOLE, true);
    BODY("%s %%%s axis=%d%s%s\n", words[draw(m, 6)], x->name, axis, draw(m, 4) ? "" : " exclusive=1",
         draw(m, 3) ? "" : " reverse=1");
}

/* Sums down columns, that go along with sums along rows. */
static inline void add_chunks(struct maker *m, const struct value *x)
{
    static const char *const words[] = {"sum", "sum", "prod", "max", "min"};
    if (x->dtype == WEFT_BOOL || x->shape != WHOLE || m->cut < 0 || m->folds_of_chunks == MOST_CHUNKS)
        return;
    char *const name = m->chunks[m->folds_of_chunks];
    snprintf(name, sizeof m->chunks[0], "c%d", m->folds_of_chunks++);
    BODY("  %%%s: %s[", name, weft_dtype_name(x->dtype));
    for (int i = 0; i < m->rank; i++) {
        char one[24];
        if (i != m->cut)
            BODY("%s%s", i ? "," : "", extent_text(m, WHOLE, i, one));
        else if (i == m->open)
            BODY("%s(N + %" PRId64 ")/%" PRId64, i ? "," : "", m->chunk - 1, m->chunk);
        else
            BODY("%s%" PRId64, i ? "," : "", (m->extent[i] + m->chunk - 1) / m->chunk);
    }
    BODY("] = fold_chunks %%%s axis=%d chunk=%" PRId64 " fold=%s\n", x->name, m->cut, m->chunk, words[draw(m, 5)]);
}

/* Another value as one of this shape and type: through views, reductions and casts, or a constant. */
static inline const struct value *draw_partner(struct maker *m, int dtype, enum shape shape)
{
    static const char *const numbers[] = {"0", "1", "2", "3", "0.5", "-0.0", "-1.5", "7"};
    if (draw(m, 6) == 0) {
        const struct value *const v = begin(m, dtype, shape, false);
        const unsigned most = weft_dtype_is_float(dtype) ? 8 : dtype == WEFT_BOOL ? 2 : 4;
        BODY("const value=%s\n", numbers[draw(m, most)]);
        return v;
    }
    const struct value *x = draw_value(m);
    if (x->shape != shape && shape != WHOLE) {
        x = x->shape == WHOLE ? x : add_bcast(m, x);
        x = m->folded && shape != FOLDED ? add_reduction(m, x, shape) : add_param(m, dtype, shape);
    } else if (x->shape != shape) {
        x = add_bcast(m, x);
    }
    return cast_to(m, x, dtype);
}

/* --- ops ---------------------------------------------------------------------------------------------------------- */

static inline void add_unary(struct maker *m, const struct value *x)
{
    static const char *const real[] = {"abs", "neg", "sign", "relu",  "floor",   "round",   "sqrt",     "rsqrt",
                                       "exp", "log", "sin",  "tanh",  "sigmoid", "erf",     "softplus", "recip",
                                       "cos", "ceil", "log1p", "expm1"};
    static const char *const whole[] = {"abs", "neg", "sign", "relu", "bit_not"};
    const int dtype = x->dtype;
    if (weft_dtype_is_float(dtype) && draw(m, 12) == 0) {
        begin(m, WEFT_BOOL, x->shape, true);
        BODY("%s %%%s\n", draw(m, 2) ? "is_nan" : "is_inf", x->name);
        return;
    }
    begin(m, dtype, x->shape, true);
    BODY("%s %%%s\n", weft_dtype_is_float(dtype) ? real[draw(m, 20)] : dtype == WEFT_BOOL ? "not"
                      : whole[draw(m, 5)], x->name);
}

static inline void add_binary(struct maker *m, const struct value *x)
{
    static const char *const numeric[] = {"add", "sub", "mul", "div", "min", "max", "add", "mul", "mod", "pow"};
    static const char *const compare[] = {"eq", "ne", "lt", "le", "gt", "ge"}, *const logic[] = {"and", "or", "xor"};
    const struct value *const y = draw_partner(m, x->dtype, x->shape);
    const bool truth = x->dtype == WEFT_BOOL, compares = !truth && draw(m, 5) == 0, swapped = draw(m, 2);
    const char *const word = truth ? logic[draw(m, 3)] : compares ? compare[draw(m, 6)]
                             : numeric[draw(m, weft_dtype_is_float(x->dtype) ? 10 : 8)];
    begin(m, compares ? WEFT_BOOL : x->dtype, x->shape, true);
    BODY("%s %%%s, %%%s\n", word, swapped ? y->name : x->name, swapped ? x->name : y->name);
}

static inline void add_ternary(struct maker *m, const struct value *x)
{
    const bool fma = x->dtype != WEFT_BOOL && draw(m, 3) == 0;
    const struct value *const y = draw_partner(m, x->dtype, x->shape);
    const struct value *const c = draw_partner(m, fma ? x->dtype : WEFT_BOOL, x->shape);
    begin(m, x->dtype, x->shape, true);
    BODY("%s %%%s, %%%s, %%%s\n", fma ? "fma" : "select", c->name, x->name, y->name);
}

/* Two that share nothing but x, which nobody needs to compute anything else. */
static inline void add_beside(struct maker *m, const struct value *x)
{
    for (int i = 0; i < 2; i++) {
        if (x->shape == WHOLE && m->folded && draw(m, 2))
            add_reduction(m, x, KEPT);
        else
            add_unary(m, x);
        m->value[m->values - 1].returned = true;
    }
}

/* "[0 5 0]": a corner of a piece from one place to another along the axis. */
static inline void add_corner(struct maker *m, const char *word, int axis, int64_t at, bool ends)
{
    char one[24];
    BODY(" %s=[", word);
    for (int i = 0; i < m->rank; i++)
        if (i == axis)
            BODY("%s%" PRId64, i ? " " : "", at);
        else
            BODY("%s%s", i ? " " : "", ends ? extent_text(m, WHOLE, i, one) : "0");
    BODY("]");
}

/* The beginning of one value and the end of another, as they are or with an op behind them, as one value. */
static inline void add_concat(struct maker *m, const struct value *x)
{
    const int axis = (int)draw(m, (unsigned)m->rank);
    if (x->shape != WHOLE || axis == m->open || m->extent[axis] < 2)
        return;
    const int64_t cut = 1 + draw(m, (unsigned)m->extent[axis] - 1);
    const int number = m->concats++;
    const struct value *const from[] = {x, draw_partner(m, x->dtype, WHOLE)};
    for (int i = 0; i < 2; i++) {
        char type[96] = "", one[24];
        const bool computes = draw(m, 2);
        for (int k = 0; k < m->rank; k++)
            if (k == axis)
                add_text(type, sizeof type, "%s%" PRId64, k ? "," : "", i ? m->extent[axis] - cut : cut);
            else
                add_text(type, sizeof type, "%s%s", k ? "," : "", extent_text(m, WHOLE, k, one));
        BODY("  %%h%d_%d: %s[%s] = slice %%%s", number, i, weft_dtype_name(x->dtype), type, from[i]->name);
        add_corner(m, "start", axis, i ? cut : 0, false);
        add_corner(m, "end", axis, i ? m->extent[axis] : cut, true);
        BODY("\n");
        if (computes)
            BODY("  %%k%d_%d: %s[%s] = %s %%h%d_%d\n", number, i, weft_dtype_name(x->dtype), type,
                 x->dtype == WEFT_BOOL ? "not" : "abs", number, i);
        m->piece[i] = computes ? 'k' : 'h';
    }
    begin(m, x->dtype, WHOLE, true);
    BODY("concat %%%c%d_0, %%%c%d_1 axis=%d\n", m->piece[0], number, m->piece[1], number, axis);
}

/* A product or a convolution that gives the whole box, of tensors of its own; its operand 1 may be constant. The box
 * has to be known, and have rows and columns. */
static inline void add_contraction(struct maker *m)
{
    static const int64_t terms[] = {1, 2, 7, 16, 33, 70};
    const int64_t k = terms[draw(m, 6)];
    const bool convolves = m->rank >= 3 && draw(m, 2), constant = draw(m, 2);
    const int taps = convolves && draw(m, 2) ? 3 : 1;
    char weights[96] = "f32[", lead[64] = "";
    bool empty = false;
    for (int i = 0; i < m->rank; i++)
        empty |= m->extent[i] == 0;
    if (m->rank < 2 || m->open >= 0 || empty)
        return;
    for (int i = 0; i < m->rank - 2; i++)
        add_text(lead, sizeof lead, "%" PRId64 ",", m->extent[i]);
    const int number = ++m->params;
    HEAD("%s%%p%d: f32[", number > 1 ? ", " : "", number);
    if (!convolves) {
        HEAD("%s%" PRId64 ",%" PRId64 "]", lead, m->extent[m->rank - 2], k);
        add_text(weights, sizeof weights, "%s%" PRId64 ",%" PRId64 "]", lead, k, m->extent[m->rank - 1]);
    } else {
        HEAD("%" PRId64 ",%" PRId64, m->extent[0], k);
        add_text(weights, sizeof weights, "%" PRId64 ",%" PRId64, m->extent[1], k);
        for (int i = 2; i < m->rank; i++) {
            HEAD(",%" PRId64, m->extent[i]);
            add_text(weights, sizeof weights, ",%d", taps);
        }
        HEAD("]%s", m->rank == 4 && draw(m, 2) ? "{0 2 3 1}" : "");
        add_text(weights, sizeof weights, "]");
    }
    if (constant)
        BODY("  %%w%d: %s = const random=%d\n", number, weights, number);
    else
        HEAD(", %%w%d: %s", number, weights), m->params++;
    begin(m, WEFT_F32, WHOLE, true);
    BODY("%s %%p%d, %%w%d", convolves ? "conv" : "matmul", number, number);
    if (taps == 3) {
        BODY(" pad=[");
        for (int i = 0; i < 2 * (m->rank - 2); i++)
            BODY("%s1", i ? " " : "");
        BODY("]");
    }
    BODY("\n");
    if (draw(m, 2)) { /* a bias of its columns or channels */
        const int axis = convolves ? 1 : m->rank - 1;
        const int sum = m->values - 1, row = m->values;
        BODY("  %%b%d: f32[%" PRId64 "] = const random=%d\n", number, m->extent[axis], number);
        begin(m, WEFT_F32, WHOLE, false);
        BODY("bcast %%b%d dims=[%d]\n", number, axis);
        begin(m, WEFT_F32, WHOLE, true);
        BODY("add %%%s, %%%s\n", m->value[sum].name, m->value[row].name);
    }
    if (draw(m, 3) == 0) { /* a residual, and bounds behind it */
        const int sum = m->values - 1, residual = m->values;
        add_param(m, WEFT_F32, WHOLE);
        begin(m, WEFT_F32, WHOLE, true);
        BODY("add %%%s, %%%s\n", m->value[sum].name, m->value[residual].name);
        if (draw(m, 2)) {
            begin(m, WEFT_F32, WHOLE, true);
            BODY("relu %%%s\n", m->value[residual + 1].name);
        }
    }
}

/* A value of the box, or a parameter of other places, by indices in the place of some axes. */
static inline void add_gather(struct maker *m, const struct value *x)
{
    const int axis = (int)draw(m, (unsigned)m->rank), axes = 1 + (int)draw(m, (unsigned)(m->rank - axis));
    const bool inside = x->shape == WHOLE && axes == 1 && draw(m, 2);
    if (m->params > 8)
        return;
    char one[24], name[16];
    const int table = m->params;
    int element = x->dtype;
    snprintf(name, sizeof name, "%s", x->name);
    if (!inside) {
        const int places = draw(m, 40) ? 1 + (int)draw(m, 9) : 0;
        element = draw_dtype(m);
        snprintf(name, sizeof name, "t%d", table);
        HEAD("%s%%t%d: %s[", m->params++ ? ", " : "", table, weft_dtype_name(element));
        for (int i = 0; i < m->rank; i++)
            if (i == axis)
                HEAD("%s%d", i ? "," : "", places);
            else if (i < axis || i >= axis + axes)
                HEAD("%s%s", i ? "," : "", extent_text(m, WHOLE, i, one));
        HEAD("]");
    }
    const int index = m->params++;
    HEAD(", %%t%d: %s[", index, draw(m, 2) ? "i64" : "i32");
    for (int i = axis; i < axis + axes; i++)
        HEAD("%s%s", i > axis ? "," : "", extent_text(m, WHOLE, i, one));
    HEAD("]");
    begin(m, element, WHOLE, true);
    BODY("gather %%%s, %%t%d axis=%d\n", name, index, axis);
}

/* The box out of another one, to which is added before and behind an axis or two, or taken from it; or what lies beside
 * each element of a value. */
static inline void add_pad(struct maker *m, const struct value *x)
{
    static const char *const numbers[] = {"0", "1", "3", "-0.0", "-1.5", "0.5"};
    const bool inside = x->shape == WHOLE && draw(m, 2);
    int64_t before[RANK] = {0}, after[RANK] = {0};
    for (int i = 0; i < 2; i++) {
        const int axis = (int)draw(m, (unsigned)m->rank);
        const int64_t by = (int64_t)draw(m, 6) - 2;
        if (m->extent[axis] < 8 || (axis == m->open && !inside))
            continue;
        before[axis] = by;
        after[axis] = inside ? -by : (int64_t)draw(m, 6) - 2;
    }
    const int number = m->params;
    int dtype = x->dtype;
    char name[16], type[96];
    if (m->params > 8 || (inside && m->open >= 0 && before[m->open])) /* N may be too small */
        return;
    snprintf(name, sizeof name, "%s", x->name);
    if (!inside) {
        dtype = draw_dtype(m);
        snprintf(name, sizeof name, "q%d", number);
        HEAD("%s%%q%d: %s[", m->params++ ? ", " : "", number, weft_dtype_name(dtype));
        for (int i = 0; i < m->rank; i++)
            if (i == m->open)
                HEAD("%sN", i ? "," : "");
            else
                HEAD("%s%" PRId64, i ? "," : "", m->extent[i] - before[i] - after[i]);
        HEAD("]");
    }
    const struct value *const v = new_value(m, dtype, WHOLE, true);
    BODY("  %%n%s: %s[] = const value=%s\n", v->name, weft_dtype_name(dtype),
         numbers[draw(m, weft_dtype_is_float(dtype) ? 6 : dtype == WEFT_BOOL ? 2 : 3)]);
    BODY("  %%%s: %s = pad %%%s, %%n%s pad=[", v->name, type_text(m, dtype, WHOLE, type), name, v->name);
    for (int i = 0; i < m->rank; i++)
        BODY("%" PRId64 " ", before[i]);
    for (int i = 0; i < m->rank; i++)
        BODY("%" PRId64 "%s", after[i], i + 1 < m->rank ? " " : "]\n");
}

static inline void add_step(struct maker *m)
{
    const struct value *const x = draw_value(m);
    switch (draw(m, 18)) {
    case 17:
    case 16: add_scan(m, x); break;
    case 15: add_contraction(m); break;
    case 14:
    case 13: add_pad(m, x); break;
    case 12:
    case 11: add_gather(m, x); break;
    case 10: add_concat(m, x); break;
    case 9: add_beside(m, x); break;
    case 8: add_chunks(m, x); break;
    case 0: cast_to(m, x, draw_dtype(m)); break;
    case 1:
    case 2: add_unary(m, x); break;
    case 3: add_ternary(m, x); break;
    case 4:
    case 5:
        if (x->shape == WHOLE && m->folded)
            add_reduction(m, x, draw(m, 2) ? KEPT : KEEPDIMS);
        else if (x->shape != WHOLE)
            add_bcast(m, x);
        break;
    default: add_binary(m, x); break;
    }
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* The last computed value, and some of the others. */
static inline void add_returns(struct maker *m, uint64_t seed)
{
    uint64_t state = seed ^ 0x9e3779b97f4a7c15u;
    int returns = 0;
    for (int i = m->values; i-- > 0 && returns < MOST_RETURNS;)
        if (m->value[i].computed && (returns == 0 || m->value[i].returned || next(&state) % 6 == 0))
            BODY("%s%%%s", returns++ ? ", " : "  return ", m->value[i].name);
    for (int i = 0; i < m->folds_of_chunks; i++)
        BODY(", %%%s", m->chunks[i]);
    BODY("\n}\n");
}

/* A hint is above 0. */
static inline int64_t hint_of(const struct maker *m) { return m->extent[m->open] > 0 ? m->extent[m->open] : 1; }

/* Of so many steps. Fewer steps of one seed are the beginning of more. */
static inline void make(struct maker *m, uint64_t seed, int steps)
{
    *m = (struct maker){.state = seed * 2 + 1};
    for (int i = 0; i < 8; i++)
        next(&m->state);
    draw_box(m);
    add_param(m, draw_dtype(m), WHOLE);
    bool computed = false;
    for (int i = 0; (i < steps || !computed) && m->values < MOST_VALUES - 12; i++) {
        add_step(m);
        for (int k = 0; k < m->values; k++)
            computed |= m->value[k].computed;
    }
    add_returns(m, seed);
    char symbol[48] = "";
    if (m->open >= 0)
        snprintf(symbol, sizeof symbol, "<N=0..1030 hint=%" PRId64 ">", hint_of(m));
    add_text(m->text, sizeof m->text, "weft 1\ngraph @g%s(%s) {\n%s", symbol, m->head, m->body);
}

static inline int steps_of(uint64_t seed) { return 1 + (int)(seed * 2654435761u >> 7 & 0xffff) % 14; }

#endif
