/* SPDX-License-Identifier: Apache-2.0 */
/* test_layout.c: the layout algebra against index arithmetic.
 *
 * A list of layouts (all permutations of rank up to 4 over several shapes; packed, padded, with an offset, with
 * splits that divide and splits that do not) is taken through every function, and each claim is checked element by
 * element: a view puts every element where the operand has it; where a view is refused, a search shows that no
 * strided layout would do. */
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MAX_ELEMENTS = 4096, MAX_LAYOUTS = 4000 };

static struct weft_type type_of(int rank, const int *extent)
{
    struct weft_type type = {.dtype = WEFT_F32, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        type.extent[i] = weft_dim_of(extent[i]);
    return type;
}

static int64_t extent_of(const struct weft_type *type, int axis)
{
    return weft_dim_value(type->extent[axis]);
}

static int64_t elements_of(const struct weft_type *type)
{
    int64_t elements = 1;
    for (int i = 0; i < type->rank; i++)
        elements *= extent_of(type, i);
    return elements;
}

static void unravel(const struct weft_type *type, int64_t number, int64_t *index)
{
    for (int i = type->rank - 1; i >= 0; i--) {
        index[i] = number % extent_of(type, i);
        number /= extent_of(type, i);
    }
}

/* The definition, written down a second time: products of storage extents for packed layouts, digits times strides. */
static int64_t place_of(const struct weft_layout *layout, const struct weft_type *type, const int64_t *index)
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

static void places_of(const struct weft_layout *layout, const struct weft_type *type, int64_t *place)
{
    int64_t index[WEFT_MAX_RANK] = {0};
    for (int64_t n = 0; n < elements_of(type); n++) {
        unravel(type, n, index);
        place[n] = place_of(layout, type, index);
    }
}

static const char *print(struct fixture *f, const struct weft_layout *layout)
{
    struct weft_text text = {.context = f->context};
    weft_layout_print(f->dims, layout, &text);
    return fixture_text(f, &text);
}

static struct weft_layout parse(struct fixture *f, const char *text)
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

static void add_sample(const struct weft_type *type, const struct weft_layout *layout, bool split)
{
    assert_true(samples < MAX_LAYOUTS);
    assert_null(weft_layout_check(layout, type));
    sample[samples++] = (struct sample){*type, *layout, split};
}

/* Explicit strides: packed, but each storage axis takes up `pad` more than it needs. */
static struct weft_layout padded(struct weft_layout layout, const struct weft_type *type, int64_t pad, int64_t offset)
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
static struct weft_layout cut(struct weft_layout layout, int at, int64_t by, int to)
{
    const struct weft_axis inner = {.axis = layout.axis[at].axis, .div = 1, .mod = by};
    layout.axis[at].div *= by;
    for (int i = layout.axes++; i > to; i--)
        layout.axis[i] = layout.axis[i - 1];
    layout.axis[to] = inner;
    return layout;
}

static void add_variants(const struct weft_type *type, const int *order)
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

static void permute(const struct weft_type *type, int *order, int done)
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

static void make_samples(void)
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

/* --- one layout alone --------------------------------------------------------------------------------------------- */

static void expect_places(struct fixture *f, const struct weft_layout *layout, const struct weft_type *type,
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

/* Is an axis linear, and with which stride? */
static bool is_linear(const struct weft_type *type, const int64_t *place, int axis, int64_t *ret_stride)
{
    int64_t unit = 1;
    for (int i = axis + 1; i < type->rank; i++)
        unit *= extent_of(type, i);
    const int64_t extent = extent_of(type, axis);
    *ret_stride = extent > 1 ? place[unit] - place[0] : 0;
    for (int64_t i = 0; i < extent; i++)
        if (place[i * unit] - place[0] != i * *ret_stride)
            return false;
    return true;
}

static void check_alone(struct fixture *f, const struct sample *s)
{
    static int64_t place[MAX_ELEMENTS];
    places_of(&s->layout, &s->type, place);
    const int64_t elements = elements_of(&s->type);
    int64_t index[WEFT_MAX_RANK] = {0}, last = -1;
    for (int64_t n = 0; n < elements; n++) {
        unravel(&s->type, n, index);
        assert_int_equal(weft_layout_place(f->dims, &s->layout, &s->type, index), place[n]);
        const int64_t from_offset = place[n] - weft_dim_value(s->layout.offset);
        last = from_offset > last ? from_offset : last;
    }
    assert_true(weft_dim_value(weft_layout_elements(f->dims, &s->layout, &s->type)) > last);

    struct weft_layout canonical = s->layout;
    weft_layout_canonical(f->dims, &canonical, &s->type);
    expect_places(f, &canonical, &s->type, place, "canonical form", &s->layout);
    struct weft_layout again = canonical;
    weft_layout_canonical(f->dims, &again, &s->type);
    assert_true(weft_layout_same(&canonical, &again));
    assert_true(weft_layout_equal(f->dims, &canonical, &s->layout, &s->type));
    assert_true(weft_dim_value(weft_layout_elements(f->dims, &canonical, &s->type)) > last);
    const struct weft_layout read = parse(f, print(f, &s->layout));
    assert_true(weft_layout_same(&read, &s->layout));

    weft_dim stride[WEFT_MAX_RANK];
    const bool linear = weft_layout_logical_strides(f->dims, &s->layout, &s->type, stride);
    bool expected = true;
    for (int axis = 0; axis < s->type.rank; axis++) {
        int64_t along;
        expected = is_linear(&s->type, place, axis, &along) && expected;
        if (linear && extent_of(&s->type, axis) > 1)
            assert_int_equal(weft_dim_value(stride[axis]), along);
    }
    assert_int_equal(linear, expected);
}

/* Walks storage coordinates from the innermost axis outwards; ends at the first gap. */
static void check_walk(struct fixture *f, const struct sample *s)
{
    weft_dim stride[WEFT_MAX_STORAGE];
    weft_layout_strides(f->dims, &s->layout, &s->type, stride);
    int64_t extent[WEFT_MAX_STORAGE], total = 1;
    for (int i = 0; i < s->layout.axes; i++) {
        extent[i] = weft_dim_value(weft_layout_axis_extent(f->dims, &s->layout, i, &s->type));
        total *= extent[i];
    }
    static int64_t place[MAX_ELEMENTS];
    assert_true(total <= MAX_ELEMENTS);
    for (int64_t n = 0; n < total; n++) {
        place[n] = 0;
        int64_t rest = n;
        for (int i = s->layout.axes - 1; i >= 0; i--) {
            place[n] += rest % extent[i] * weft_dim_value(stride[i]);
            rest /= extent[i];
        }
    }
    int64_t run = 1;
    while (run < total && place[run] == run)
        run++;
    assert_int_equal(weft_layout_run(f->dims, &s->layout, &s->type), run);

    int64_t row = 1; /* of the innermost storage axis */
    for (int i = s->layout.axes - 1; i >= 0 && row == 1; i--)
        row = extent[i];
    for (uint32_t align = 4; align <= 64; align *= 2) {
        struct weft_layout layout = s->layout;
        layout.align = align;
        const int64_t width = weft_layout_vector_width(f->dims, &layout, &s->type, WEFT_F32, 8);
        int64_t best = 1;
        for (int64_t k = 2; k <= 8 && k <= row; k *= 2) {
            bool good = true;
            for (int64_t n = 0; n < total && good; n++) {
                const int64_t block = n / row * row + n % row / k * k; /* where n's block begins */
                if (block % row + k <= row)
                    good = place[n] == place[block] + (n - block) && (align + 4 * place[block]) % (4 * k) == 0;
            }
            best = good ? k : best;
        }
        assert_int_equal(width, best);
    }
}

static void check_each(struct fixture *f)
{
    make_samples();
    assert_true(samples > 1500);
    for (int i = 0; i < samples; i++) {
        check_alone(f, &sample[i]);
        check_walk(f, &sample[i]);
    }
}

/* --- pairs -------------------------------------------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* The greatest r such that the elements fall into pieces of r that are neighbours, in one order, in both. */
static int64_t common_run(const int64_t *a, const int64_t *b, int64_t elements)
{
    static int64_t element_at[4 * MAX_ELEMENTS];
    int64_t places = 0;
    for (int64_t n = 0; n < elements; n++)
        places = a[n] >= places ? a[n] + 1 : places;
    assert_true(places <= 4 * MAX_ELEMENTS);
    memset(element_at, -1, sizeof *element_at * (size_t)places);
    for (int64_t n = 0; n < elements; n++)
        element_at[a[n]] = n;
    int64_t run = 0, length = 0, before = -1;
    for (int64_t p = 0; p < places; p++) {
        const int64_t n = element_at[p];
        const bool goes_on = n >= 0 && before >= 0 && b[n] == b[before] + 1;
        if (!goes_on && length > 0) {
            run = gcd(run, length);
            length = 0;
        }
        length += n >= 0;
        before = n;
    }
    return gcd(run, length);
}

/* Does some axis step between neighbours in memory? */
static bool has_unit_step(const struct weft_type *type, const int64_t *place)
{
    int64_t unit = 1;
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        for (int64_t i = 1; i < extent_of(type, axis); i++)
            if (place[i * unit] == place[0] + 1)
                return true;
        unit *= extent_of(type, axis);
    }
    return false;
}

static void check_pairs(struct fixture *f)
{
    static int64_t a_place[MAX_ELEMENTS], b_place[MAX_ELEMENTS];
    make_samples();
    int64_t kinds[4] = {0};
    for (int i = 0; i < samples; i++) {
        const struct sample *a = &sample[i];
        places_of(&a->layout, &a->type, a_place);
        const int64_t elements = elements_of(&a->type);
        /* every partner for small ranks, every seventh for rank 4 */
        for (int k = 0; k < samples; k += a->type.rank == 4 ? 7 : 1) {
            const struct sample *b = &sample[k];
            if (!weft_type_same(&a->type, &b->type))
                continue;
            places_of(&b->layout, &b->type, b_place);
            const bool equal = memcmp(a_place, b_place, sizeof *a_place * (size_t)elements) == 0;
            assert_int_equal(weft_layout_equal(f->dims, &a->layout, &b->layout, &a->type), equal);
            int64_t run;
            const int kind = weft_layout_conversion(f->dims, &a->layout, &b->layout, &a->type, &run);
            kinds[kind]++;
            assert_int_equal(kind == WEFT_CONVERT_NONE, equal);
            const int64_t best = common_run(a_place, b_place, elements);
            if (a->split || b->split ? best % run != 0 : best != run)
                fail_msg("%s to %s: run %d, found %d", print(f, &a->layout), print(f, &b->layout), (int)run, (int)best);
            if (kind != WEFT_CONVERT_NONE && elements > 1)
                assert_int_equal(kind == WEFT_CONVERT_RUNS, run > 1);
            const bool steps = has_unit_step(&a->type, a_place) && has_unit_step(&a->type, b_place);
            if (kind == WEFT_CONVERT_TRANSPOSE)
                assert_true(steps);
            if (kind == WEFT_CONVERT_GENERAL && !a->split && !b->split)
                assert_false(steps);
        }
    }
    for (int kind = 0; kind < 4; kind++)
        assert_true(kinds[kind] > 0);
}

/* --- views -------------------------------------------------------------------------------------------------------- */

/* Is i -> value[i · unit] - value[0] a sum of digits times strides, with borders that divide each other? */
static bool is_sum_of_digits(const int64_t *value, int64_t unit, int64_t extent)
{
    for (int64_t border = 1; border < extent;) {
        const int64_t stride = value[border * unit] - value[0];
        int64_t q = 1;
        while (border * q < extent && value[border * q * unit] - value[0] == stride * q)
            q++;
        const int64_t next = border * q;
        for (int64_t i = 0; i < extent && next < extent; i++)
            if (value[i * unit] - value[0] !=
                value[i % next * unit] - value[0] + (value[i / next * next * unit] - value[0]))
                return false;
        border = next;
    }
    return true;
}

/* Is there any layout, splits allowed, with these places? */
static bool some_layout_exists(const struct weft_type *type, const int64_t *place)
{
    int64_t unit[WEFT_MAX_RANK], next = 1, index[WEFT_MAX_RANK] = {0};
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        unit[axis] = next;
        next *= extent_of(type, axis);
        if (!is_sum_of_digits(place, unit[axis], extent_of(type, axis)))
            return false;
    }
    for (int64_t n = 0; n < elements_of(type); n++) {
        unravel(type, n, index);
        int64_t sum = place[0];
        for (int axis = 0; axis < type->rank; axis++)
            sum += place[index[axis] * unit[axis]] - place[0];
        if (sum != place[n])
            return false;
    }
    return true;
}

static void check_transpose(struct fixture *f, const struct sample *s, const int *perm)
{
    static int64_t place[MAX_ELEMENTS];
    struct weft_type to = s->type;
    for (int i = 0; i < to.rank; i++)
        to.extent[i] = s->type.extent[perm[i]];
    int64_t index[WEFT_MAX_RANK] = {0}, operand[WEFT_MAX_RANK] = {0};
    for (int64_t n = 0; n < elements_of(&to); n++) {
        unravel(&to, n, index);
        for (int i = 0; i < to.rank; i++)
            operand[perm[i]] = index[i];
        place[n] = place_of(&s->layout, &s->type, operand);
    }
    struct weft_layout view, back;
    assert_true(weft_layout_transpose(&s->layout, perm, &view));
    expect_places(f, &view, &to, place, "transpose", &s->layout);
    assert_true(weft_layout_untranspose(&view, perm, &back));
    assert_true(weft_layout_same(&back, &s->layout));
}

static void check_transposes(struct fixture *f)
{
    static const int perms[][4] = {{0, 1, 2, 3}, {1, 0, 2, 3}, {1, 2, 0, 3}, {2, 0, 1, 3}, {3, 0, 2, 1}, {1, 3, 0, 2}};
    make_samples();
    for (int i = 0; i < samples; i++)
        for (size_t p = 0; p < sizeof perms / sizeof *perms; p++) {
            int moved = 0; /* the perm must keep to the axes that there are */
            for (int k = 0; k < 4; k++)
                moved = perms[p][k] != k ? k + 1 : moved;
            if (moved <= sample[i].type.rank)
                check_transpose(f, &sample[i], perms[p]);
        }
}

static void check_reshape(struct fixture *f, const struct sample *s, const struct weft_type *to, int *views,
                          int *refused)
{
    static int64_t place[MAX_ELEMENTS];
    places_of(&s->layout, &s->type, place); /* a reshape keeps the order of elements */
    struct weft_layout view;
    if (weft_layout_reshape(f->dims, &s->layout, &s->type, to, &view)) {
        expect_places(f, &view, to, place, "reshape", &s->layout);
        ++*views;
        return;
    }
    ++*refused;
    if (!some_layout_exists(to, place))
        return;
    fail_msg("reshape of %s to [%d,%d,…] of rank %d is a view, but was refused", print(f, &s->layout),
             to->rank > 0 ? (int)extent_of(to, 0) : 1, to->rank > 1 ? (int)extent_of(to, 1) : 1, to->rank);
}

/* All shapes of a rank with so many elements. */
static void each_target(struct fixture *f, const struct sample *s, struct weft_type *to, int axis, int64_t left,
                        int *views, int *refused)
{
    if (axis == to->rank) {
        if (left == 1)
            check_reshape(f, s, to, views, refused);
        return;
    }
    for (int64_t extent = 1; extent <= left; extent++) {
        if (left % extent != 0)
            continue;
        to->extent[axis] = weft_dim_of(extent);
        each_target(f, s, to, axis + 1, left / extent, views, refused);
    }
}

static void check_reshapes(struct fixture *f)
{
    make_samples();
    int views = 0, refused = 0;
    for (int i = 0; i < samples; i++)
        for (int rank = 0; rank <= (sample[i].type.rank == 4 ? 3 : 4); rank++) {
            struct weft_type to = {.dtype = WEFT_F32, .rank = (uint8_t)rank};
            each_target(f, &sample[i], &to, 0, elements_of(&sample[i].type), &views, &refused);
        }
    assert_true(views > 1000 && refused > 1000);
}

static void check_slice(struct fixture *f, const struct sample *s, const int64_t *start, const int64_t *step,
                        const int64_t *extent, int *refused)
{
    static int64_t place[MAX_ELEMENTS];
    struct weft_type to = s->type;
    weft_dim first[WEFT_MAX_RANK], stride[WEFT_MAX_RANK];
    for (int i = 0; i < to.rank; i++) {
        to.extent[i] = weft_dim_of(extent[i]);
        first[i] = weft_dim_of(start[i]);
        stride[i] = weft_dim_of(step[i]);
    }
    int64_t index[WEFT_MAX_RANK] = {0};
    for (int64_t n = 0; n < elements_of(&to); n++) {
        unravel(&to, n, index);
        for (int i = 0; i < to.rank; i++)
            index[i] = start[i] + step[i] * index[i];
        place[n] = place_of(&s->layout, &s->type, index);
    }
    struct weft_layout operand = s->layout, view;
    operand.align = 64;
    if (!weft_layout_slice(f->dims, &operand, &s->type, first, stride, &view)) {
        assert_true(s->split);
        ++*refused;
        return;
    }
    expect_places(f, &view, &to, place, "slice", &s->layout);
    const int64_t moved = 4 * (weft_dim_value(view.offset) - weft_dim_value(operand.offset));
    assert_true(view.align == 0 ? moved % 8 != 0 : moved % view.align == 0);
    assert_true(view.align == 64 || view.align == 0 || moved % (2 * (int64_t)view.align) != 0);
}

static void check_slices(struct fixture *f)
{
    make_samples();
    int refused = 0, border_refused = 0;
    for (int i = 0; i < samples; i++) {
        const struct sample *s = &sample[i];
        for (int axis = 0; axis < s->type.rank; axis++)
            for (int64_t from = 0; from < extent_of(&s->type, axis); from++)
                for (int64_t step = 1; step <= 4; step++) {
                    int64_t start[4] = {0}, steps[4] = {1, 1, 1, 1}, extent[4];
                    for (int k = 0; k < s->type.rank; k++)
                        extent[k] = extent_of(&s->type, k);
                    start[axis] = from;
                    steps[axis] = step;
                    extent[axis] = (extent[axis] - from + step - 1) / step;
                    /* blocks are of 2, 3 or 4: a multiple of 12 is a border of all */
                    check_slice(f, s, start, steps, extent, from % 12 == 0 && step == 1 ? &border_refused : &refused);
                }
        int64_t start[4], steps[4] = {1, 2, 1, 1}, extent[4];
        for (int k = 0; k < s->type.rank; k++) {
            start[k] = extent_of(&s->type, k) / 2;
            extent[k] = (extent_of(&s->type, k) - start[k] + steps[k] - 1) / steps[k];
        }
        check_slice(f, s, start, steps, extent, &refused);
    }
    assert_int_equal(border_refused, 0);
    assert_true(refused > 0);
}

static void check_broadcasts(struct fixture *f)
{
    static int64_t place[MAX_ELEMENTS];
    static const int mappings[][4] = {{0, 1, 2, 3}, {1, 2, 3, 4}, {0, 2, 3, 5}, {2, 3, 4, 5}};
    make_samples();
    for (int i = 0; i < samples; i++) {
        const struct sample *s = &sample[i];
        for (size_t m = 0; m < sizeof mappings / sizeof *mappings; m++) {
            struct weft_type to = {.dtype = WEFT_F32, .rank = 6};
            for (int k = 0; k < to.rank; k++)
                to.extent[k] = weft_dim_of(k % 2 ? 2 : 3);
            for (int k = 0; k < s->type.rank; k++)
                if (!weft_dim_is(s->type.extent[k], 1))
                    to.extent[mappings[m][k]] = s->type.extent[k];
            if (elements_of(&to) > MAX_ELEMENTS)
                continue;
            int64_t index[WEFT_MAX_RANK] = {0}, operand[WEFT_MAX_RANK] = {0};
            for (int64_t n = 0; n < elements_of(&to); n++) {
                unravel(&to, n, index);
                for (int k = 0; k < s->type.rank; k++)
                    operand[k] = weft_dim_is(s->type.extent[k], 1) ? 0 : index[mappings[m][k]];
                place[n] = place_of(&s->layout, &s->type, operand);
            }
            struct weft_layout view;
            assert_true(weft_layout_broadcast(f->dims, &s->layout, &s->type, &to, mappings[m], &view));
            expect_places(f, &view, &to, place, "broadcast", &s->layout);
        }
    }
}

/* --- by example --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *print, *canonical; /* for [1,32,12,10] */
} good_cases[] = {
    {"{0 1 2 3}", "{0 1 2 3}", "{0 1 2 3}"},
    {"{ 0 2 3 1 }", "{0 2 3 1}", "{0 2 3 1}"},
    {"{2 3 1 0}", "{2 3 1 0}", "{0 2 3 1}"},
    {"{0 1/16 2 3 1%16}", "{0 1/16 2 3 1%16}", "{0 1/16 2 3 1%16}"},
    {"{0 1%32/2 1%2 1/32 2 3}", "{0 1/2%16 1%2 1/32 2 3}", "{0 1 2 3}"},
    {"{0 1/4/2 1%8 2/5 3 2%5}", "{0 1/8 1%8 2/5 3 2%5}", "{0 1 2/5 3 2%5}"},
    {"{0 1 2 3 | 3840 120 10 1}", "{0 1 2 3 | 3840 120 10 1}", "{0 1 2 3}"},
    {"{0 1 2 3|77 64*2 (16) 1}", "{0 1 2 3 | 77 128 16 1}", "{0 1 2 3 | 4096 128 16 1}"},
    {"{3 2 1 0 | 1 10 120 0}", "{3 2 1 0 | 1 10 120 0}", "{0 1 2 3}"},
    {"{0 1 2 3 | 0 0 10 1}", "{0 1 2 3 | 0 0 10 1}", "{0 1 2 3 | 0 0 10 1}"},
    {"{0 2 3 1 | 4096 640 64 1 +32 align=64 hint}", "{0 2 3 1 | 4096 640 64 1 +32 align=64 hint}",
     "{0 2 3 1 | 7680 640 64 1 +32 align=64 hint}"},
    {"{0 2 3 1 +7}", "{0 2 3 1 +7}", "{0 2 3 1 +7}"},
    {"{0 2 3 1 free}", "{0 2 3 1 free}", "{0 2 3 1 free}"},
    {"{0 1 2 3 | 1 N*120 (N + 3) 1 +(N - 1)}", "{0 1 2 3 | 1 120*N (N + 3) 1 +(N - 1)}",
     "{0 1 2 3 | 3840*N 120*N (N + 3) 1 +(N - 1)}"},
    {"{?}", "{?}", "{?}"},
    {"{-}", "{-}", "{-}"},
};

static const struct {
    const char *text;
    int column;
    const char *message;
} bad_cases[] = {
    {"0 1", 0, "expected '{'"},
    {"{0 1", 4, "expected '}' or a part of a layout"},
    {"{0 x}", 3, "expected '}' or a part of a layout"},
    {"{0 8}", 3, "an axis is a number from 0 to 7"},
    {"{0/}", 3, "expected a number"},
    {"{0/0 0%0}", 2, "an axis is split by a number below 1"},
    {"{1%6/4}", 4, "this division does not fit the remainder before it"},
    {"{1%6%4}", 4, "this division does not fit the remainder before it"},
    {"{0 1 | 1}", 8, "there are fewer strides than storage axes"},
    {"{0 1 | 1 2 3}", 11, "there are more strides than storage axes"},
    {"{0 1 | 1 X}", 9, "unknown symbol"},
    {"{0 1 | 1 2 +}", 12, "expected a number, a symbol or '('"},
    {"{0 1 align=48}", 11, "the alignment is no power of two"},
    {"{0 99999999999}", 3, "the number is too large"},
    {"{0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0}", 33, "a layout has at most 16 storage axes"},
    {"{0 1 hint free}", 10, "expected '}' or a part of a layout"},
    {"{? hint}", 3, "expected '}' or a part of a layout"},
};

static const char *const illegal_cases[][2] = {
    /* for [4,6] */
    {"{0}", "the layout leaves out an axis of the type"},
    {"{0 1 2}", "the layout names an axis that the type does not have"},
    {"{0 1 1}", "the digits of an axis do not cover its index exactly once"},
    {"{0 1/2}", "the innermost digit of an axis must not be divided"},
    {"{0 1%6}", "the outermost digit of an axis must have no modulus"},
    {"{0 1/4 1%2}", "the digits of an axis do not cover its index exactly once"},
    {"{0 1 1%1}", "the digits of an axis do not cover its index exactly once"},
    {"{0 1 | 6 -1}", "a stride is negative"},
    {"{0 1 +-1}", "the offset is negative"},
};

static void check_text(struct fixture *f)
{
    (void)weft_symbol_add(f->dims, "N", 1, 100, 0);
    const struct weft_type type = type_of(4, (const int[]){1, 32, 12, 10}), flat = type_of(2, (const int[]){4, 6});
    for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++) {
        struct weft_layout layout = parse(f, good_cases[i].text);
        assert_string_equal(print(f, &layout), good_cases[i].print);
        assert_null(weft_layout_check(&layout, &type));
        weft_layout_canonical(f->dims, &layout, &type);
        assert_string_equal(print(f, &layout), good_cases[i].canonical);
        const struct weft_layout read = parse(f, print(f, &layout));
        assert_true(weft_layout_same(&read, &layout));
        assert_int_equal(read.strength, layout.strength);
        assert_int_equal(read.align, layout.align);
    }
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        const char *text = bad_cases[i].text, *cursor = text, *message = NULL;
        struct weft_layout layout = {.axes = 9};
        assert_false(weft_layout_parse(f->dims, &cursor, text + strlen(text), &layout, &message));
        assert_string_equal(message, bad_cases[i].message);
        assert_int_equal(cursor - text, bad_cases[i].column);
        assert_int_equal(layout.axes, 9);
    }
    for (size_t i = 0; i < sizeof illegal_cases / sizeof *illegal_cases; i++) {
        const struct weft_layout layout = parse(f, illegal_cases[i][0]);
        const char *message = weft_layout_check(&layout, &flat);
        assert_non_null(message);
        assert_string_equal(message, illegal_cases[i][1]);
    }
}

static weft_dim dim(struct fixture *f, const char *text)
{
    const char *message;
    weft_dim d;
    assert_true(weft_dim_parse(f->dims, &text, text + strlen(text), &d, &message));
    return d;
}

static struct weft_type symbolic(struct fixture *f, const char *extents)
{
    struct weft_type type = {.dtype = WEFT_F32};
    char copy[64];
    for (strcpy(copy, extents); type.rank < WEFT_MAX_RANK;) {
        char *comma = strrchr(copy, ',');
        type.rank++;
        memmove(&type.extent[1], &type.extent[0], sizeof *type.extent * (size_t)(type.rank - 1));
        type.extent[0] = dim(f, comma ? comma + 1 : copy);
        if (!comma)
            break;
        *comma = '\0';
    }
    return type;
}

static const char *const symbolic_reshapes[][4] = {
    /* from, layout, to, layout of the view or "" */
    {"N,4", "{0 1}", "4*N", "{0}"},
    {"4,N", "{0 1}", "4*N", "{0}"},
    {"N*C", "{0}", "N,C", "{0 1}"},
    {"N,C,H,W", "{0 2 3 1}", "N,C,H*W", "{0 2 1}"},
    {"N,C,H,W", "{0 1 2 3}", "N,C*H*W", "{0 1}"},
    {"N,C,H,W", "{0 2 3 1}", "N,C*H,W", ""},
    {"N,C,H*W", "{0 2 1}", "N,C,H,W", "{0 2 3 1}"},
    {"N,8,H", "{0 1 2 | 16*H H 1}", "N,2,4,H", "{0 1 2 3 | 16*H 4*H H 1}"},
    {"N,8,H", "{0 1 2 | 16*H H 1}", "8*N,H", "{0/8 0%8 1 | 16*H H 1}"},
    {"N,32", "{0 1/8 1%8}", "N,4,8", "{0 1 2}"},
    {"N,32", "{1/8 0 1%8}", "N,4,8", "{1 0 2}"},
    {"N,32", "{1/8 0 1%8}", "N,8,4", "{1/2 0 1%2 2}"},
    {"N,C", "{1 0}", "N*C", ""}, /* the digit N*C % C is no constant */
    {"N,6", "{1 0}", "6*N", "{0%6 0/6}"},
    {"N,4", "{0 1}", "2*N,2", "{0 1}"},
    {"N,1,C", "{0 1 2}", "1,N,C,1", "{0 1 2 3}"},
    {"N,C", "{0 1}", "C,N", "{0 1}"},
    {"N,C/2", "{0 1}", "N*(C/2)", "{0}"},
};

static void check_symbols(struct fixture *f)
{
    static const char *const names[] = {"N", "C", "H", "W"};
    for (int i = 0; i < 4; i++)
        (void)weft_symbol_add(f->dims, names[i], 1, 100, 10 + i);
    for (size_t i = 0; i < sizeof symbolic_reshapes / sizeof *symbolic_reshapes; i++) {
        const char *const *c = symbolic_reshapes[i];
        const struct weft_type from = symbolic(f, c[0]), to = symbolic(f, c[2]);
        const struct weft_layout operand = parse(f, c[1]);
        assert_null(weft_layout_check(&operand, &from));
        struct weft_layout view;
        const bool is_view = weft_layout_reshape(f->dims, &operand, &from, &to, &view);
        if (strcmp(is_view ? print(f, &view) : "", c[3]) != 0)
            fail_msg("[%s]%s to [%s]: %s", c[0], c[1], c[2], is_view ? print(f, &view) : "refused");
    }
    const struct weft_type type = symbolic(f, "N,C,H,W");
    const struct weft_layout nhwc = parse(f, "{0 2 3 1}"), nchw = parse(f, "{0 1 2 3}");
    const struct weft_layout blocked = parse(f, "{0 1/8 2 3 1%8}");
    const weft_dim zero = weft_dim_of(0), one = weft_dim_of(1);
    struct weft_layout view;
    assert_true(weft_layout_slice(f->dims, &nhwc, &type, (weft_dim[]){zero, dim(f, "C/2"), one, zero},
                                  (weft_dim[]){one, one, weft_dim_of(2), one}, &view));
    assert_string_equal(print(f, &view), "{0 2 3 1 | C*H*W 2*C*W C 1 +(C*W + C/2)}");
    assert_false(weft_layout_slice(f->dims, &blocked, &type, (weft_dim[]){zero, dim(f, "C/2"), zero, zero},
                                   (weft_dim[]){one, one, one, one}, &view));
    int64_t run;
    assert_int_equal(weft_layout_conversion(f->dims, &nhwc, &nchw, &type, &run), WEFT_CONVERT_TRANSPOSE);
    assert_int_equal(weft_layout_conversion(f->dims, &nhwc, &nhwc, &type, &run), WEFT_CONVERT_NONE);
    assert_int_equal(run, 10 * 11 * 12 * 13);
    assert_int_equal(weft_layout_run(f->dims, &nhwc, &type), 10 * 11 * 12 * 13);
    assert_true(weft_dim_same(weft_layout_elements(f->dims, &nchw, &type), dim(f, "N*C*H*W")));
    assert_true(weft_dim_same(weft_layout_elements(f->dims, &blocked, &type), dim(f, "N*((C + 7)/8)*8*H*W")));
    struct weft_layout aligned = nhwc;
    aligned.align = 64;
    assert_int_equal(weft_layout_vector_width(f->dims, &aligned, &type, WEFT_F32, 16), 1); /* C may be odd */
    aligned = blocked;
    aligned.align = 64;
    assert_int_equal(weft_layout_vector_width(f->dims, &aligned, &type, WEFT_F32, 16), 8);
    const struct weft_type row = symbolic(f, "C"), full = symbolic(f, "N,C");
    const struct weft_layout plain = weft_layout_row_major(1);
    assert_true(weft_layout_broadcast(f->dims, &plain, &row, &full, (const int[]){1}, &view));
    assert_string_equal(print(f, &view), "{0 1 | 0 1}");
    assert_false(weft_layout_broadcast(f->dims, &plain, &row, &full, (const int[]){0}, &view));
}

/* Random tokens, as in test_dims.c. */
static void check_soup(struct fixture *f)
{
    static const char *const tokens[] = {"0", "1", "2", "0", "1",  "2",     "/2",   "%2",   "/", "%", "|", "4", "24",
                                         " ", " ", " ", "+", "(N", "- 1)", "align=", "hint", "free", "?", "-", "}", "N"};
    (void)weft_symbol_add(f->dims, "N", 1, 100, 0);
    const struct weft_type type = type_of(3, (const int[]){4, 6, 1});
    uint64_t state = 99;
    int parsed = 0, legal = 0;
    for (int round = 0; round < 300000; round++) {
        char text[200] = "{";
        for (int n = 1 + round % 10; n > 0; n--) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            strcat(text, tokens[(state >> 33) % (sizeof tokens / sizeof *tokens)]);
            strcat(text, state >> 62 ? " " : "");
        }
        strcat(text, "}");
        const char *cursor = text, *message = NULL, *end = text + strlen(text);
        struct weft_layout layout;
        if (!weft_layout_parse(f->dims, &cursor, end, &layout, &message)) {
            assert_non_null(message);
            assert_true(cursor >= text && cursor <= end);
            continue;
        }
        parsed++;
        const struct weft_layout read = parse(f, print(f, &layout));
        assert_true(weft_layout_same(&read, &layout));
        if (weft_layout_check(&layout, &type))
            continue;
        legal++;
        struct weft_layout canonical = layout;
        weft_layout_canonical(f->dims, &canonical, &type);
        assert_null(weft_layout_check(&canonical, &type));
        assert_true(weft_layout_equal(f->dims, &layout, &canonical, &type));
    }
    assert_true(parsed > 10000 && legal > 100);
}

#define TEST(name)                                            \
    static void test_##name(void **state)                     \
    {                                                         \
        assert_int_equal(fixture_run(check_##name), WEFT_OK); \
    }
TEST(text)
TEST(each)
TEST(pairs)
TEST(transposes)
TEST(reshapes)
TEST(slices)
TEST(broadcasts)
TEST(symbols)
TEST(soup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),   cmocka_unit_test(test_each),       cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_slices), cmocka_unit_test(test_transposes), cmocka_unit_test(test_reshapes),
        cmocka_unit_test(test_symbols), cmocka_unit_test(test_broadcasts), cmocka_unit_test(test_soup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
