/* SPDX-License-Identifier: Apache-2.0 */
/* draw_operand.c: what nodes read: types, earlier values, and new values of a wanted type. New ones come in all ways
 * that a graph has: parameters, constants of each form, and what is converted or repeated from another value. Bodies
 * capture nothing, so inside of one there are no new parameters. */
#include "tests/property/random_graph.h"

#include "ir/rules.h"

#include <math.h>
#include <string.h>

static const uint8_t real[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16, WEFT_F32, WEFT_F32};
static const uint8_t whole[] = {WEFT_I64, WEFT_I32, WEFT_I16, WEFT_I8, WEFT_U64, WEFT_U32, WEFT_U16, WEFT_U8};
static const uint8_t storage[] = {WEFT_I4, WEFT_U4, WEFT_F8E4M3, WEFT_F8E5M2};

bool weft_dtype_in(int dtype, unsigned families)
{
    const unsigned family = weft_dtype_is_storage_only(dtype) ? WEFT_DRAW_STORAGE
                            : weft_dtype_is_float(dtype)      ? WEFT_DRAW_REAL
                            : dtype == WEFT_BOOL              ? WEFT_DRAW_BOOL
                                                              : WEFT_DRAW_INTEGER;
    return families & family;
}

int weft_draw_dtype(struct weft_maker *m, unsigned families)
{
    for (;;) {
        const unsigned family = weft_draw(m, 8); /* more floats than others */
        if (family < 4 && families & WEFT_DRAW_REAL)
            return real[weft_draw(m, sizeof real)];
        if ((family == 4 || family == 5) && families & WEFT_DRAW_INTEGER)
            return whole[weft_draw(m, sizeof whole)];
        if (family == 6 && families & WEFT_DRAW_BOOL)
            return WEFT_BOOL;
        if (family == 7 && families & WEFT_DRAW_STORAGE)
            return storage[weft_draw(m, sizeof storage)];
        if (m->choices->replay && m->choices->next >= m->choices->count) /* zeros from here on */
            return families & WEFT_DRAW_REAL ? WEFT_F32 : families & WEFT_DRAW_INTEGER ? WEFT_I64
                                              : families & WEFT_DRAW_BOOL              ? WEFT_BOOL
                                                                                       : WEFT_I4;
    }
}

weft_dim weft_draw_dim(struct weft_maker *m) { return m->dim[weft_draw(m, (unsigned)m->dims)]; }

int64_t weft_least(const struct weft_maker *m, weft_dim extent)
{
    int64_t low, high;
    weft_dim_range(m->graph->dims, extent, &low, &high);
    return low < 0 ? 0 : low;
}

bool weft_draw_fits(const struct weft_maker *m, const struct weft_type *type)
{
    double elements = 1;
    for (int i = 0; i < type->rank; i++)
        elements *= (double)weft_dim_evaluate(m->graph->dims, type->extent[i], m->symbols);
    return elements <= (double)m->most_elements;
}

struct weft_type weft_draw_type(struct weft_maker *m, unsigned families, int least_rank, int most_rank)
{
    struct weft_type type = {.dtype = (uint8_t)weft_draw_dtype(m, families)};
    static const uint8_t ranks[] = {2, 1, 3, 0, 2, 3, 4, 5};
    const int rank = ranks[weft_draw(m, sizeof ranks)];
    type.rank = (uint8_t)(rank < least_rank ? least_rank : rank > most_rank ? most_rank : rank);
    for (int i = 0; i < type.rank; i++)
        type.extent[i] = weft_draw_dim(m);
    for (int i = 0; i < type.rank && !weft_draw_fits(m, &type); i++)
        type.extent[i] = weft_dim_of(1 + (i & 1));
    return type;
}

weft_val weft_draw_value(struct weft_maker *m, unsigned families, int least_rank, int most_rank)
{
    const unsigned values = (unsigned)m->values;
    for (int tries = 0; values && tries < 5; tries++) { /* recent ones more often: passes look at chains */
        const unsigned back = weft_draw(m, 2) ? weft_draw(m, values) : weft_draw(m, values < 3 ? values : 3);
        const weft_val v = m->value[values - 1 - back];
        const struct weft_type *type = weft_drawn_type(m, v);
        if (type->rank >= least_rank && type->rank <= most_rank && weft_dtype_in(type->dtype, families))
            return v;
    }
    const struct weft_type type = weft_draw_type(m, families, least_rank, most_rank);
    return weft_obtain(m, &type);
}

/* --- values of a wanted type -------------------------------------------------------------------------------------- */

/* A number that every type has, unless it is a float. */
static double draw_number(struct weft_maker *m, int dtype)
{
    static const double numbers[] = {0, 1, 2, -1, 0.5, -0.0, 3, -2.5, INFINITY, NAN, 1e-3, 100};
    if (dtype == WEFT_BOOL)
        return weft_draw(m, 2);
    if (!weft_dtype_is_float(dtype))
        return weft_draw(m, 4);
    const double number = numbers[weft_draw(m, 12)];
    return weft_dtype_is_storage_only(dtype) ? weft_draw(m, 2) : number;
}

static weft_val splat(struct weft_maker *m, const struct weft_type *type)
{
    struct weft_builder build = {.graph = m->graph};
    return weft_build_splat(&build, type, draw_number(m, type->dtype));
}

static bool is_fixed(const struct weft_type *type)
{
    int64_t elements = 1;
    for (int i = 0; i < type->rank; i++) {
        if (!weft_dim_is_constant(type->extent[i]))
            return false;
        elements *= weft_dim_value(type->extent[i]);
    }
    return elements <= 4096;
}

/* Elements that follow from one choice; some are what rules look for, and in some constants one differs from the rest.
 */
static weft_val stored(struct weft_maker *m, const struct weft_type *type)
{
    char packed[4096 * 8] = {0};
    int64_t elements = 1;
    for (int i = 0; i < type->rank; i++)
        elements *= weft_dim_value(type->extent[i]);
    const unsigned form = weft_draw(m, 4), start = weft_draw(m, 50);
    for (int64_t i = 0; i < elements; i++) {
        const int64_t n = form == 0 ? (int64_t)(i * 7 + start) % 11 - 3 : form == 1 ? i == start : (i + start) % 3;
        if (weft_dtype_is_float(type->dtype))
            weft_store_real(type->dtype, packed, i, form == 2 && n == 2 ? -0.0 : (double)n / 2);
        else
            weft_store_integer(type->dtype, packed, i,
                               type->dtype == WEFT_BOOL                                  ? n & 1
                               : form == 3 && !weft_dtype_is_storage_only(type->dtype) ? (INT64_C(1) << 53) + n
                                                                                         : n);
    }
    struct weft_builder build = {.graph = m->graph};
    return weft_build_const(&build, type, packed);
}

static weft_val constant_of(struct weft_maker *m, const struct weft_type *type)
{
    weft_val v = WEFT_NO_VALUE;
    const unsigned form = weft_draw(m, 4);
    if (form == 1 && is_fixed(type))
        v = stored(m, type);
    else if (form == 2 && is_fixed(type) && weft_dtype_is_float(type->dtype) &&
             !weft_dtype_is_storage_only(type->dtype))
        v = weft_draw_made(m, weft_emit(m, WEFT_OP_const, 0, NULL, 0, NULL, type));
    if (!v.id)
        v = splat(m, type);
    weft_keep_value(m, v);
    return v;
}

static weft_val new_param(struct weft_maker *m, const struct weft_type *type)
{
    if (m->outer || m->graph->params >= WEFT_MOST_NEW_PARAMS)
        return WEFT_NO_VALUE;
    for (int i = 0; i < type->rank; i++) /* sizes that come out of data are not known when tensors are bound */
        for (uint32_t s = 0; s < weft_symbol_count(m->graph->dims); s++)
            if (weft_symbol_at(m->graph->dims, s)->data && weft_dim_mentions(m->graph->dims, type->extent[i], s))
                return WEFT_NO_VALUE;
    const weft_val v = weft_add_param(m->graph, NULL, type);
    const unsigned word = weft_draw(m, 12);
    weft_value_of(m->graph, v)->is_mut = word == 11;
    weft_value_of(m->graph, v)->is_static = word >= 7 && word < 11;
    weft_keep_value(m, v);
    return v;
}

static weft_val converted(struct weft_maker *m, const struct weft_type *type)
{
    for (int tries = 0; m->values && tries < 6; tries++) {
        const weft_val v = m->value[weft_draw(m, (unsigned)m->values)];
        struct weft_type other = *weft_drawn_type(m, v);
        other.dtype = type->dtype;
        if (!weft_type_same(&other, type))
            continue;
        const weft_node node = weft_emit(m, WEFT_OP_cast, 1, &v, 0, NULL, type);
        return weft_draw_made(m, node);
    }
    return WEFT_NO_VALUE;
}

static weft_val repeated(struct weft_maker *m, const struct weft_type *type)
{
    struct weft_type small = {.dtype = type->dtype};
    int64_t dims[WEFT_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        const unsigned how = weft_draw(m, 3);
        if (how == 0)
            continue;
        dims[small.rank] = i;
        small.extent[small.rank++] = how == 1 ? type->extent[i] : weft_dim_of(1);
    }
    const weft_val v = weft_obtain(m, &small);
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_dims, small.rank, dims);
    const weft_node node = weft_emit(m, WEFT_OP_bcast, 1, &v, 1, &attr, type);
    return weft_draw_made(m, node);
}

weft_val weft_obtain(struct weft_maker *m, const struct weft_type *wanted)
{
    const struct weft_type own = *wanted, *type = &own; /* perhaps that of a value, which moves as others are made */
    weft_val v = WEFT_NO_VALUE;
    m->nested++;
    for (int tries = 0; m->values && tries < 5; tries++) {
        const weft_val other = m->value[m->values - 1 - (int)weft_draw(m, (unsigned)m->values)];
        if (weft_type_same(weft_drawn_type(m, other), type)) {
            v = other;
            break;
        }
    }
    const unsigned how = v.id ? 0 : weft_draw(m, 6);
    if (!v.id && how == 1)
        v = constant_of(m, type);
    else if (!v.id && how == 2)
        v = converted(m, type);
    else if (!v.id && how == 3 && m->nested < 3)
        v = repeated(m, type);
    if (!v.id)
        v = new_param(m, type);
    if (!v.id)
        v = converted(m, type);
    if (!v.id)
        v = constant_of(m, type);
    m->nested--;
    return v;
}

weft_val weft_obtain_with(struct weft_maker *m, int dtype, int rank, const weft_dim *extent)
{
    struct weft_type type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        type.extent[i] = extent[i];
    return weft_obtain(m, &type);
}

weft_val weft_obtain_fixed(struct weft_maker *m, int dtype, int rank, const int64_t *extent)
{
    struct weft_type type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        type.extent[i] = weft_dim_of(extent[i]);
    return weft_obtain(m, &type);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static const char *draw_word(struct weft_maker *m, const struct weft_attr_spec *spec)
{
    int words = 1;
    for (const char *c = spec->words; *c; c++)
        words += *c == ' ';
    int chosen = (int)weft_draw(m, (unsigned)words);
    const char *word = spec->words;
    while (chosen-- > 0)
        word = strchr(word, ' ') + 1;
    return weft_arena_copy(m->graph->arena, word, strcspn(word, " "));
}

/* The attributes that are 0 or 1 wherever they occur. */
static bool is_flag(int key)
{
    static const uint8_t flags[] = {
        WEFT_ATTR_keepdims, WEFT_ATTR_exclusive, WEFT_ATTR_reverse,  WEFT_ATTR_descending, WEFT_ATTR_largest,
        WEFT_ATTR_sorted,   WEFT_ATTR_upper,     WEFT_ATTR_negative, WEFT_ATTR_positive,   WEFT_ATTR_saturate,
        WEFT_ATTR_trans_a,  WEFT_ATTR_trans_b,   WEFT_ATTR_ceil,     WEFT_ATTR_count_pad,  WEFT_ATTR_corners,
        WEFT_ATTR_exclude,  WEFT_ATTR_antialias, WEFT_ATTR_causal,   WEFT_ATTR_column_major,
        WEFT_ATTR_half_pixel, WEFT_ATTR_in_plane};
    return memchr(flags, key, sizeof flags);
}

unsigned weft_draw_attrs(struct weft_maker *m, int op, struct weft_attr *ret)
{
    static const double reals[] = {1, 0.5, 2, -1.5, 0.25};
    unsigned count = 0;
    for (const struct weft_attr_spec *spec = weft_ops[op].attrs; spec->key; spec++) {
        if (weft_draw(m, 2) == 0)
            continue; /* the default */
        const int key = spec->key, kind = weft_attr_kinds[key];
        if (kind == WEFT_ATTR_WORD && strcmp(spec->words, spec->word) != 0)
            ret[count++] = weft_attr_of_word(key, draw_word(m, spec));
        else if (kind == WEFT_ATTR_REAL && key == WEFT_ATTR_epsilon)
            ret[count++] = weft_attr_of_real(key, 0.001);
        else if (kind == WEFT_ATTR_REAL && !spec->required)
            ret[count++] = weft_attr_of_real(key, key == WEFT_ATTR_high || key == WEFT_ATTR_low
                                                      ? (double)weft_draw(m, 5)
                                                      : reals[weft_draw(m, 5)]);
        else if (kind == WEFT_ATTR_INT && is_flag(key))
            ret[count++] = weft_attr_of_int(key, weft_draw(m, 2));
    }
    return count;
}
