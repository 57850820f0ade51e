/* SPDX-License-Identifier: Apache-2.0 */
/* layout_samples.h: the layouts that the tests of the algebra go through, and the definition that they compare with:
 * all permutations of rank up to 4 over several shapes; packed, padded, with an offset, with splits that divide and
 * splits that do not. */
#ifndef WEFT_TEST_LAYOUT_SAMPLES_H
#define WEFT_TEST_LAYOUT_SAMPLES_H

#include "support.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MAX_ELEMENTS = 4096, MAX_LAYOUTS = 4000 };

static inline struct weft_type type_of(int rank, const int *extent)
{
    struct weft_type type = {.dtype = WEFT_F32, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        type.extent[i] = weft_dim_of(extent[i]);
    return type;
}

static inline int64_t extent_of(const struct weft_type *type, int axis)
{
    return weft_dim_value(type->extent[axis]);
}

static inline int64_t elements_of(const struct weft_type *type)
{
    int64_t elements = 1;
    for (int i = 0; i < type->rank; i++)
        elements *= extent_of(type, i);
    return elements;
}

static inline void unravel(const struct weft_type *type, int64_t number, int64_t *index)
{
    for (int i = type->rank - 1; i >= 0; i--) {
        index[i] = number % extent_of(type, i);
        number /= extent_of(type, i);
    }
}

/* The definition, written down a second time: products of storage extents for packed layouts, digits times strides. */
static inline int64_t place_of(const struct weft_layout *layout, const struct weft_type *type, const int64_t *index)
{
    int64_t place = weft_dim_value(layout->offset), packed = 1;
    for (int i = layout->axes - 1; i >= 0; i--) {
        const struct weft_axis *axis = &layout->axis[i];
        const int64_t digit = index[axis->axis] / axis->div, extent = extent_of(type, axis->axis);
        const int64_t stride = layout->dense ? packed : weft_dim_value(layout->stride[i]);
        place += (axis->mod ? digit % axis->mod : digit) * stride;
        packed *= axis->mod ? axis->mod : (extent + axis->div - 1) / axis->div;
    }
    return place;
}

static inline void places_of(const struct weft_layout *layout, const struct weft_type *type, int64_t *place)
{
    int64_t index[WEFT_MAX_RANK] = {0};
    for (int64_t n = 0; n < elements_of(type); n++) {
        unravel(type, n, index);
        place[n] = place_of(layout, type, index);
    }
}

static inline const char *print(struct fixture *f, const struct weft_layout *layout)
{
    struct weft_text text = {.context = f->context};
    weft_layout_print(f->dims, layout, &text);
    return fixture_text(f, &text);
}

static inline struct weft_layout parse(struct fixture *f, const char *text)
{
    const char *cursor = text, *message = NULL;
    struct weft_layout layout = {0};
    if (!weft_layout_parse(f->dims, &cursor, text + strlen(text), &layout, &message))
        fail_msg("%s: %s at %s", text, message, cursor);
    assert_int_equal(*cursor, '\0');
    return layout;
}

/* --- all layouts -------------------------------------------------------------------------------------------------- */

struct sample {
    struct weft_type type;
    struct weft_layout layout;
    bool split;
};
static struct sample sample[MAX_LAYOUTS];
static int samples;

static inline void add_sample(const struct weft_type *type, const struct weft_layout *layout, bool split)
{
    assert_true(samples < MAX_LAYOUTS);
    assert_null(weft_layout_check(layout, type));
    sample[samples++] = (struct sample){*type, *layout, split};
}

/* Explicit strides: packed, but each storage axis takes up `pad` more than it needs. */
static inline struct weft_layout padded(struct weft_layout layout, const struct weft_type *type, int64_t pad,
                                        int64_t offset)
{
    int64_t stride = 1;
    layout.dense = layout.axes == 0;
    layout.offset = weft_dim_of(offset);
    for (int i = layout.axes - 1; i >= 0; i--) {
        const struct weft_axis *axis = &layout.axis[i];
        const int64_t extent = extent_of(type, axis->axis);
        layout.stride[i] = weft_dim_of(stride);
        stride = stride * (axis->mod ? axis->mod : (extent + axis->div - 1) / axis->div) + (i % 2 ? pad : 0);
    }
    return layout;
}

/* The axis at a storage position cut in two: the inner digit goes `to`, the outer one stays. */
static inline struct weft_layout cut(struct weft_layout layout, int at, int64_t by, int to)
{
    const struct weft_axis inner = {.axis = layout.axis[at].axis, .div = 1, .mod = by};
    layout.axis[at].div *= by;
    for (int i = layout.axes++; i > to; i--)
        layout.axis[i] = layout.axis[i - 1];
    layout.axis[to] = inner;
    return layout;
}

static inline void add_variants(const struct weft_type *type, const int *order)
{
    const struct weft_layout plain = weft_layout_order(type->rank, order), packed = padded(plain, type, 0, 0);
    const struct weft_layout wide = padded(plain, type, 3, 0), moved = padded(plain, type, 2, 5);
    add_sample(type, &plain, false);
    add_sample(type, &packed, false);
    add_sample(type, &wide, false);
    add_sample(type, &moved, false);
    for (int at = 0; at < type->rank; at++)
        for (int by = 2; by < 5; by++) {
            if (type->rank == 4 && by == 3)
                continue;
            const struct weft_layout end = cut(plain, at, by, plain.axes), next = cut(plain, at, by, at + 1);
            const struct weft_layout far = padded(end, type, 1, 2), front = cut(plain, at, by, 0);
            add_sample(type, &end, true);
            add_sample(type, &next, true);
            add_sample(type, &far, true);
            if (front.axis[0].axis != front.axis[1].axis)
                add_sample(type, &front, true);
            if (by == 2 && at == 0) { /* a digit of three: i/4, i/2%2, i%2 */
                struct weft_layout twice = end;
                twice.axis[at].div = 4;
                twice.axis[twice.axes++] = (struct weft_axis){.axis = twice.axis[at].axis, .div = 2, .mod = 2};
                add_sample(type, &twice, true);
            }
        }
}

static inline void permute(const struct weft_type *type, int *order, int done)
{
    if (done == type->rank)
        add_variants(type, order);
    for (int i = done; i < type->rank; i++) {
        const int first = order[done];
        order[done] = order[i];
        order[i] = first;
        permute(type, order, done + 1);
        order[i] = order[done];
        order[done] = first;
    }
}

static inline void make_samples(void)
{
    static const struct {
        int rank, extent[4];
    } shape[] = {{0, {0}},          {1, {1}},          {1, {12}},         {1, {7}},         {2, {4, 6}},
                 {2, {1, 8}},       {2, {5, 1}},       {3, {2, 3, 4}},    {3, {4, 1, 6}},   {3, {2, 4, 8}},
                 {4, {2, 3, 2, 4}}, {4, {1, 4, 2, 3}}, {4, {3, 5, 1, 2}}};
    samples = 0;
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++) {
        const struct weft_type type = type_of(shape[s].rank, shape[s].extent);
        int order[4] = {0, 1, 2, 3};
        permute(&type, order, 0);
    }
}

static inline void expect_places(struct fixture *f, const struct weft_layout *layout, const struct weft_type *type,
                          const int64_t *place, const char *what, const struct weft_layout *of)
{
    static int64_t have[MAX_ELEMENTS];
    assert_null(weft_layout_check(layout, type));
    places_of(layout, type, have);
    for (int64_t n = 0; n < elements_of(type); n++)
        if (have[n] != place[n])
            fail_msg("%s of %s is %s: element %d at %d, not %d", what, print(f, of), print(f, layout), (int)n,
                     (int)have[n], (int)place[n]);
}

#endif
