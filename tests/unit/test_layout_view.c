/* SPDX-License-Identifier: Apache-2.0 */
/* test_layout_view.c: a view must put every element where its operand has it; where a reshape is refused, a search
 * shows that no layout would do, splits included. */
#include "layout_samples.h"

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

/* --- with symbols ------------------------------------------------------------------------------------------------- */

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

#define TEST(name)                                            \
    static void test_##name(void **state)                     \
    {                                                         \
        assert_int_equal(fixture_run(check_##name), WEFT_OK); \
    }
TEST(transposes)
TEST(reshapes)
TEST(slices)
TEST(broadcasts)
TEST(symbols)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transposes),
        cmocka_unit_test(test_reshapes),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_broadcasts),
        cmocka_unit_test(test_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
