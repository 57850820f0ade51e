/* SPDX-License-Identifier: Apache-2.0 */
/* resize_places.c: where the elements of a resized axis stand among those of the operand, and which of them they are
 * made of, for the evaluator and for kernels alike.
 *
 * All kinds of coordinates are straight lines, u = (first + step · i) / unit with whole numbers, once the factor is a
 * fraction P/Q: the quotient of the extents, or the fraction that a stated factor stands for (fraction.c). So what
 * falls upon an element, or halfway between two, does so exactly, and rounding a place never takes the pixel beside the
 * right one: 1.5 / 0.6 - 0.5 is 2. Weights are made of exact distances, rounded once. */
#include "ir/ir.h"
#include "ir/places.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;

#define MOST_TAPS ((int64_t)1 << 30) /* more than memory holds, and what an integer holds */

/* --- what the node says ----------------------------------------------------------------------------------------- */

static int word_index(const struct weft_graph *graph, weft_node node, int key, const char *const *words)
{
    const char *word = weft_attr_word(graph, node, key);
    int i = 0;
    while (words[i] && strcmp(words[i], word) != 0)
        i++;
    return i;
}

bool weft_resize_keeps(const struct weft_graph *graph, weft_node node, int axis)
{
    const struct weft_type *from = weft_type_of(graph, weft_operand(graph, node, 0)),
                           *to = weft_type_of(graph, weft_result(graph, node, 0));
    const struct weft_attr *scale = weft_attr_find(graph, node, WEFT_ATTR_scale),
                           *region = weft_attr_find(graph, node, WEFT_ATTR_region);
    const char *coordinates = weft_attr_word(graph, node, WEFT_ATTR_coordinates);
    const char *nearest = weft_attr_word(graph, node, WEFT_ATTR_nearest);
    if (!weft_dim_same(from->extent[axis], to->extent[axis]) || (scale && scale->reals[axis] != 1))
        return false;
    if (strcmp(coordinates, "tf_half_pixel_for_nn") == 0) /* element i is looked for at i + 1/2 */
        return strcmp(weft_attr_word(graph, node, WEFT_ATTR_form), "nearest") == 0 &&
               (strcmp(nearest, "prefer_floor") == 0 || strcmp(nearest, "floor") == 0);
    return strcmp(coordinates, "tf_crop_and_resize") != 0 ||
           (region->reals[axis] == 0 && region->reals[to->rank + axis] == 1);
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

static wide gcd_of(wide a, wide b)
{
    while (b) {
        const wide rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* Numbers that have no room in lowest terms lose their last digits: only factors of dozens of digits have such. */
static void set_line(struct weft_resize *r, wide first, wide step, wide unit)
{
    const wide limit = (wide)1 << 62, common = gcd_of(gcd_of(first, step), unit);
    if (unit < 0) {
        first = -first;
        step = -step;
        unit = -unit;
    }
    if (common > 1) {
        first /= common;
        step /= common;
        unit /= common;
    }
    while (first >= limit || first <= -limit || step >= limit || step <= -limit || unit >= limit) {
        first /= 2;
        step /= 2;
        unit /= 2;
    }
    r->first = (int64_t)first;
    r->step = (int64_t)step;
    r->unit = unit > 0 ? (int64_t)unit : 1;
}

static bool multiply(wide *product, wide by) { return !__builtin_mul_overflow(*product, by, product); }

/* From a to e, as fractions of an axis whose last element stands at n - 1, in w - 1 = `room` / q steps. */
static void set_crop(struct weft_resize *r, double start, double end, wide room, wide q)
{
    const struct weft_fraction a = weft_fraction_of(start, 53), e = weft_fraction_of(end, 53);
    const wide last = r->in - 1;
    if (room == 0) { /* one result, in the middle */
        set_line(r, ((wide)a.p * e.q + (wide)e.p * a.q) * last, 0, 2 * (wide)a.q * e.q);
        return;
    }
    wide first = (wide)a.p * e.q, step = (wide)e.p * a.q - first, unit = (wide)a.q * e.q;
    const wide common = gcd_of(gcd_of(first, step), unit);
    first /= common;
    step /= common;
    unit /= common;
    if (multiply(&first, room) && multiply(&first, last) && multiply(&step, q) && multiply(&step, last) &&
        multiply(&unit, room))
        set_line(r, first, step, unit);
    else
        set_line(r, llrint(ldexp(start * (double)last, 30)),
                 llrint(ldexp((end - start) * (double)last * (double)q / (double)room, 30)), (wide)1 << 30);
}

static void find_line(struct weft_resize *r, struct weft_fraction scale, double start, double end)
{
    const wide p = scale.p, q = scale.q, n = r->in;
    const wide room = p * n - q; /* (w - 1) · q, where w = s · n is the length before it was rounded */
    switch ((enum weft_resize_coordinates)r->coordinates) {
    case WEFT_RESIZE_HALF_PIXEL_SYMMETRIC: set_line(r, n * p - r->out * q + q - p, 2 * q, 2 * p); break;
    case WEFT_RESIZE_ALIGN_CORNERS: set_line(r, 0, room ? (n - 1) * q : 0, room ? room : 1); break;
    case WEFT_RESIZE_ASYMMETRIC: set_line(r, 0, q, p); break;
    case WEFT_RESIZE_TF_HALF_PIXEL: set_line(r, q, 2 * q, 2 * p); break;
    case WEFT_RESIZE_CROP: set_crop(r, start, end, room, q); break;
    case WEFT_RESIZE_PYTORCH_HALF_PIXEL:
        if (r->out <= 1) {
            set_line(r, 0, 0, 1);
            break;
        }
        __attribute__((fallthrough));
    default: set_line(r, q - p, 2 * q, 2 * p); break;
    }
}

void weft_resize_read(const struct weft_graph *graph, weft_node node, int axis, int64_t in, int64_t out,
                      struct weft_resize *ret)
{
    static const char *const forms[] = {"nearest", "linear", "cubic", NULL};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const rounding[] = {"prefer_floor", "prefer_ceil", "floor", "ceil", NULL};
    const struct weft_attr *scale = weft_attr_find(graph, node, WEFT_ATTR_scale),
                           *region = weft_attr_find(graph, node, WEFT_ATTR_region);
    const int rank = weft_type_of(graph, weft_result(graph, node, 0))->rank;
    *ret = (struct weft_resize){
        .form = (uint8_t)word_index(graph, node, WEFT_ATTR_form, forms),
        .coordinates = (uint8_t)word_index(graph, node, WEFT_ATTR_coordinates, coordinates),
        .nearest = (uint8_t)word_index(graph, node, WEFT_ATTR_nearest, rounding),
        .antialias = weft_attr_int(graph, node, WEFT_ATTR_antialias) != 0,
        .exclude = weft_attr_int(graph, node, WEFT_ATTR_exclude) != 0,
        .cubic = weft_attr_real(graph, node, WEFT_ATTR_cubic),
        .in = in,
        .out = out,
    };
    struct weft_fraction s = {1, 1};
    if (out > 0 && scale)
        s = weft_fraction_of(scale->reals[axis], 53);
    else if (out > 0 && in > 0)
        s = (struct weft_fraction){out / weft_gcd(out, in), in / weft_gcd(out, in)};
    if (s.p == 0) /* a factor that leaves nothing of any axis that there is */
        s = (struct weft_fraction){1, (int64_t)1 << 40};
    const bool shrinks = ret->antialias && s.p < s.q;
    ret->shrink = shrinks ? (double)s.p / (double)s.q : 1;
    const int64_t each = ret->form == WEFT_RESIZE_CUBIC ? 2 : 1; /* elements on either side, without antialiasing */
    const wide reach = shrinks ? ((wide)each * s.q + s.p - 1) / s.p : each;
    ret->taps = ret->form == WEFT_RESIZE_NEAREST ? 1 : 2 * (int64_t)(reach < MOST_TAPS ? reach : MOST_TAPS);
    find_line(ret, s, region ? region->reals[axis] : 0, region ? region->reals[rank + axis] : 1);
}

/* --- places and weights ----------------------------------------------------------------------------------------- */

/* floor(n / unit), unit > 0. */
static int64_t floor_of(wide n, int64_t unit) { return (int64_t)(n / unit - (n % unit < 0)); }

static int64_t ceil_of(wide n, int64_t unit) { return -floor_of(-n, unit); }

static int64_t nearest_to(const struct weft_resize *r, wide n)
{
    switch ((enum weft_resize_nearest)r->nearest) {
    case WEFT_RESIZE_PREFER_FLOOR: return -floor_of(r->unit - 2 * n, 2 * r->unit); /* ceil(u - 1/2) */
    case WEFT_RESIZE_PREFER_CEIL: return floor_of(2 * n + r->unit, 2 * r->unit);
    case WEFT_RESIZE_FLOOR: return floor_of(n, r->unit);
    default: return ceil_of(n, r->unit);
    }
}

/* What nearest_to finds for result i, as one quotient. */
static struct weft_floored floored_of(const struct weft_resize *r)
{
    const bool halves = r->nearest == WEFT_RESIZE_PREFER_FLOOR || r->nearest == WEFT_RESIZE_PREFER_CEIL;
    const bool exact = r->nearest == WEFT_RESIZE_FLOOR || r->nearest == WEFT_RESIZE_PREFER_CEIL;
    const int64_t by = halves ? 2 : 1, over = by * r->unit, step = by * r->step;
    const int64_t first = by * r->first + (halves ? r->unit : 0) + (exact ? 0 : halves ? -1 : over - 1);
    const int64_t common = weft_gcd(step, over);
    return (struct weft_floored){floor_of(first, common), step / common, over / common};
}

bool weft_resize_floors(const struct weft_graph *graph, weft_node node, int axis, struct weft_floored *ret)
{
    enum { MOST_FACTOR = 16, SOME = 3, FAR = 1 << 20 };
    const weft_dim in = weft_type_of(graph, weft_operand(graph, node, 0))->extent[axis];
    const weft_dim out = weft_type_of(graph, weft_result(graph, node, 0))->extent[axis];
    struct weft_resize r;
    if (weft_dim_is_constant(in) && weft_dim_is_constant(out)) {
        weft_resize_read(graph, node, axis, weft_dim_value(in), weft_dim_value(out), &r);
    } else { /* elements as far apart whatever the sizes are, and so many to each */
        int64_t factor = 2;
        while (factor <= MOST_FACTOR && !weft_dim_same(out, weft_dim_mul(graph->dims, in, weft_dim_of(factor))))
            factor++;
        if (factor > MOST_FACTOR)
            return false;
        weft_resize_read(graph, node, axis, SOME, SOME * factor, &r);
        if (r.coordinates != WEFT_RESIZE_HALF_PIXEL && r.coordinates != WEFT_RESIZE_ASYMMETRIC)
            return false;
        const struct weft_floored some = floored_of(&r);
        if (some.first != 0 || some.step != 1 || some.over != factor)
            return false;
    }
    const bool near = r.form == WEFT_RESIZE_NEAREST && r.coordinates != WEFT_RESIZE_CROP && r.in > 0 && r.out > 0 &&
                      r.unit < FAR && r.step > 0 && r.step < FAR && r.first > -FAR && r.first < FAR && r.out < FAR;
    if (!near)
        return false;
    *ret = floored_of(&r);
    return ret->first >= 0 && (ret->first + ret->step * (r.out - 1)) / ret->over < r.in;
}

/* The weight of an element at a distance, which antialiasing has already shrunk. */
static double weight_of(const struct weft_resize *r, double distance)
{
    const double d = fabs(distance), a = r->cubic;
    if (r->form == WEFT_RESIZE_LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d <= 1) /* in factors: it is 0 at distance 1 whatever a is, so that elements in their places stay as they are */
        return (1 - d) * (1 + d - (a + 2) * d * d);
    return d < 2 ? a * (d - 1) * (2 - d) * (2 - d) : 0;
}

static int64_t clamped(int64_t i, int64_t extent) { return i < 0 ? 0 : i >= extent ? extent - 1 : i; }

/* Weights may sum to something else than 1 where elements are left out or spaced by a scale; then they are divided. */
static void normalise(double *weight, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += weight[k];
    for (int64_t k = 0; k < n && sum != 0; k++)
        weight[k] /= sum;
}

bool weft_resize_tabulate(const struct weft_resize *r, int64_t i, int64_t *index, double *weight)
{
    const wide n = r->first + (wide)r->step * i; /* the place, times the unit */
    if (r->form == WEFT_RESIZE_NEAREST) {
        index[0] = clamped(nearest_to(r, n), r->in);
        weight[0] = 1;
    } else {
        const int64_t first = ceil_of(n, r->unit) - r->taps / 2;
        for (int64_t k = 0; k < r->taps; k++) {
            const int64_t at = first + k;
            const bool outside = at < 0 || at >= r->in;
            const double distance = (double)((wide)at * r->unit - n) / (double)r->unit;
            index[k] = clamped(at, r->in);
            weight[k] = r->exclude && outside ? 0 : weight_of(r, distance * r->shrink);
        }
        if (r->exclude || r->shrink < 1)
            normalise(weight, r->taps);
    }
    return r->coordinates != WEFT_RESIZE_CROP || (n >= 0 && n <= (wide)(r->in - 1) * r->unit);
}
