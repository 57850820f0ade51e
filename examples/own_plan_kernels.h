/* SPDX-License-Identifier: Apache-2.0 */
/* own_plan_kernels.h: the kernels of own_plan.c, for images and transformers: loops over arrays in row-major order.
 * What works element by element reads its operands through strides, so that a bias that is repeated needs no copy. */
#ifndef OWN_PLAN_KERNELS_H
#define OWN_PLAN_KERNELS_H

#include <weft/weft.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_OPERANDS = 8 };

struct call {
    const struct weft_graph *graph;
    weft_node node;
    int operands;
    struct weft_kernel_array in[MOST_OPERANDS], out;
};

/* --- arrays and attributes ---------------------------------------------------------------------------------------- */

/* The product of extents `from` to `end` - 1. */
static int64_t span(const struct weft_kernel_array *a, int from, int end)
{
    int64_t n = 1;
    for (int i = from; i < end; i++)
        n *= a->extent[i];
    return n;
}

static int64_t elements(const struct weft_kernel_array *a) { return span(a, 0, a->rank); }

static int64_t width(const struct weft_kernel_array *a) { return weft_dtype_bits(a->dtype) / 8; }

/* Number i of a list attribute, or `otherwise`. An extent that is a constant is its own value at any sizes. */
static int64_t number(const struct call *call, const char *name, size_t i, int64_t otherwise)
{
    struct weft_attribute attribute = {0};
    int64_t value = otherwise;
    if (weft_node_attribute(call->graph, call->node, name, &attribute) == WEFT_OK && i < attribute.count)
        weft_extent_at(call->graph, attribute.integers[i], NULL, 0, &value);
    return value;
}

static struct weft_attribute attribute_of(const struct call *call, const char *name)
{
    struct weft_attribute attribute = {0};
    weft_node_attribute(call->graph, call->node, name, &attribute);
    return attribute;
}

static char *at(const struct weft_kernel_array *a, const int64_t *index)
{
    int64_t place = 0;
    for (int k = 0; k < a->storage_axes; k++) {
        const int64_t digit = index[a->storage[k].axis] / a->storage[k].div;
        place += (a->storage[k].mod ? digit % a->storage[k].mod : digit) * a->storage[k].stride;
    }
    return (char *)a->data + place * width(a);
}

/* The next index along the first `axes` axes. */
static void advance(const struct weft_kernel_array *a, int axes, int64_t *index)
{
    for (int axis = axes - 1; axis >= 0 && ++index[axis] == a->extent[axis]; axis--)
        index[axis] = 0;
}

/* From any layout to any other. */
static void relayout(const struct call *c)
{
    int64_t index[WEFT_MAX_RANK] = {0};
    for (int64_t i = 0; i < elements(&c->out); i++) {
        memcpy(at(&c->out, index), at(&c->in[0], index), (size_t)width(&c->out));
        advance(&c->out, c->out.rank, index);
    }
}

/* --- element by element ------------------------------------------------------------------------------------------- */

/* Calls `loop` for each row: n elements of operand k are x[k][i * step[k]]. */
static void by_rows(const struct call *c, void (*loop)(int64_t n, const void *const *x, const int64_t *step, void *y))
{
    const int last = c->out.rank - 1;
    const int64_t n = last < 0 ? 1 : c->out.extent[last];
    int64_t index[WEFT_MAX_RANK] = {0}, step[MOST_OPERANDS];
    const void *x[MOST_OPERANDS];
    for (int64_t row = 0; n && row < elements(&c->out) / n; row++, advance(&c->out, last, index)) {
        for (int k = 0; k < c->operands; k++) {
            x[k] = at(&c->in[k], index);
            step[k] = last < 0 ? 0 : c->in[k].stride[last];
        }
        loop(n, x, step, at(&c->out, index));
    }
}

#define X(k) (((const float *)x[k])[i * step[k]])
#define BY_ROWS(name, type, result) \
    static void name##_row(int64_t n, const void *const *x, const int64_t *step, void *y) \
    { \
        for (int64_t i = 0; i < n; i++) \
            ((type *)y)[i] = (result); \
    } \
    static void name(const struct call *c) { by_rows(c, name##_row); }
BY_ROWS(add, float, X(0) + X(1))
BY_ROWS(sub, float, X(0) - X(1))
BY_ROWS(mul, float, X(0) * X(1))
BY_ROWS(divide, float, X(0) / X(1))
BY_ROWS(relu, float, X(0) > 0 ? X(0) : 0)
BY_ROWS(exponential, float, expf(X(0)))
BY_ROWS(hyperbolic_tangent, float, tanhf(X(0)))
BY_ROWS(gelu, float, 0.5f * X(0) * (1 + erff(X(0) * 0.70710678f)))
BY_ROWS(is_nan, bool, isnan(X(0)))
BY_ROWS(choose, float, ((const bool *)x[0])[i * step[0]] ? X(1) : X(2))
BY_ROWS(bool_of, bool, ((const int64_t *)x[0])[i * step[0]] != 0) /* a mask of a tokenizer's integers */

/* --- along the last axis ------------------------------------------------------------------------------------------ */

static void softmax(const struct call *c)
{
    const int64_t n = c->out.extent[c->out.rank - 1];
    const float *x = c->in[0].data;
    float *y = c->out.data;
    for (int64_t row = 0; n && row < elements(&c->out) / n; row++, x += n, y += n) {
        float most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++)
            most = fmaxf(most, x[i]);
        for (int64_t i = 0; i < n; i++)
            sum += y[i] = expf(x[i] - most);
        for (int64_t i = 0; i < n; i++)
            y[i] /= sum;
    }
}

/* Operands: x, a factor and a summand for each element of a row. */
static void layer_norm(const struct call *c)
{
    const int64_t n = c->out.extent[c->out.rank - 1];
    const float *x = c->in[0].data, *factor = c->in[1].data, *summand = c->in[2].data;
    float *y = c->out.data;
    for (int64_t row = 0; n && row < elements(&c->out) / n; row++, x += n, y += n) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
        const double scale = 1 / sqrt(squares / (double)n + attribute_of(c, "epsilon").real);
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)((x[i] - sum / (double)n) * scale) * factor[i] + summand[i];
    }
}

/* Over the last axes. */
static void mean(const struct call *c)
{
    const int64_t n = elements(&c->in[0]) / elements(&c->out);
    const float *x = c->in[0].data;
    for (int64_t row = 0; row < elements(&c->out); row++, x += n) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        ((float *)c->out.data)[row] = (float)(sum / (double)n);
    }
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* y = a b, where element [i, k] of a is a[i * across + k * along]. As many columns at a time as registers hold sums. */
static void product(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t across, int64_t along,
                    const float *b, float *y)
{
    enum { AT_ONCE = 32 };
    for (int64_t from = 0; from < columns; from += AT_ONCE) {
        const int64_t n = columns - from < AT_ONCE ? columns - from : AT_ONCE;
        for (int64_t i = 0; i < rows; i++) {
            float sum[AT_ONCE] = {0};
            for (int64_t k = 0; k < depth; k++) {
                const float factor = a[i * across + k * along], *row = b + k * columns + from;
                if (n == AT_ONCE) /* so many that the compiler knows the number */
                    for (int j = 0; j < AT_ONCE; j++)
                        sum[j] += factor * row[j];
                else
                    for (int j = 0; j < n; j++)
                        sum[j] += factor * row[j];
            }
            memcpy(y + i * columns + from, sum, (size_t)n * sizeof *y);
        }
    }
}

/* The same, where b lies transposed: sums along rows of both. */
static void product_of_rows(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t across, int64_t along,
                            const float *b, float *y)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += a[i * across + k * along] * b[j * depth + k];
            y[i * columns + j] = sum;
        }
}

static void matmul(const struct call *c)
{
    const int last = c->out.rank - 1;
    const bool turned = attribute_of(c, "trans_a").integer;
    const int64_t rows = c->out.extent[last - 1], columns = c->out.extent[last];
    const int64_t depth = c->in[0].extent[turned ? last - 1 : last];
    for (int64_t batch = 0; batch < span(&c->out, 0, last - 1); batch++)
        (attribute_of(c, "trans_b").integer ? product_of_rows : product)(
            rows, columns, depth, (const float *)c->in[0].data + batch * rows * depth, turned ? 1 : depth,
            turned ? rows : 1, (const float *)c->in[1].data + batch * depth * columns,
            (float *)c->out.data + batch * rows * columns);
}

/* A convolution or a pool in two dimensions: for each axis. */
struct window {
    int64_t stride[2], pad[2], dilation[2];
};

static struct window window_of(const struct call *c)
{
    struct window window;
    for (size_t i = 0; i < 2; i++) {
        window.stride[i] = number(c, "stride", i, 1);
        window.pad[i] = number(c, "pad", i, 0);
        window.dilation[i] = number(c, "dilation", i, 1);
    }
    return window;
}

/* y += weight * what one tap reads of x. */
static void add_tap(const struct window *window, const int64_t *x, const int64_t *y, int64_t r, int64_t s,
                    const float *image, float weight, float *out)
{
    const int64_t step = window->stride[1], shift = s * window->dilation[1] - window->pad[1];
    int64_t first = 0, end = y[3];
    while (first < end && first * step + shift < 0)
        first++;
    while (end > first && (end - 1) * step + shift >= x[3])
        end--;
    for (int64_t i = 0; i < y[2]; i++) {
        const int64_t row = i * window->stride[0] + r * window->dilation[0] - window->pad[0];
        for (int64_t j = first; j < end && row >= 0 && row < x[2]; j++)
            out[i * y[3] + j] += weight * image[row * x[3] + j * step + shift];
    }
}

static void convolve(const struct call *c)
{
    const int64_t *x = c->in[0].extent, *w = c->in[1].extent, *y = c->out.extent;
    const struct window window = window_of(c);
    const int64_t of_group = y[1] / attribute_of(c, "groups").integer;
    float *out = c->out.data;
    memset(out, 0, (size_t)elements(&c->out) * sizeof *out);
    for (int64_t plane = 0; plane < y[0] * y[1]; plane++, out += y[2] * y[3]) {
        const int64_t n = plane / y[1], k = plane % y[1];
        const float *weight = (const float *)c->in[1].data + k * w[1] * w[2] * w[3];
        for (int64_t t = 0; t < w[1] * w[2] * w[3]; t++) {
            const int64_t channel = k / of_group * w[1] + t / (w[2] * w[3]);
            add_tap(&window, x, y, t / w[3] % w[2], t % w[3],
                    (const float *)c->in[0].data + (n * x[1] + channel) * x[2] * x[3], weight[t], out);
        }
    }
}

static void max_pool(const struct call *c)
{
    const int64_t *x = c->in[0].extent, *y = c->out.extent;
    const int64_t taps[] = {number(c, "kernel", 0, 1), number(c, "kernel", 1, 1)};
    const struct window window = window_of(c);
    float *out = c->out.data;
    for (int64_t n = 0; n < y[0] * y[1]; n++)
        for (int64_t i = 0; i < y[2]; i++)
            for (int64_t j = 0; j < y[3]; j++) {
                float most = -INFINITY;
                for (int64_t t = 0; t < taps[0] * taps[1]; t++) {
                    const int64_t row = i * window.stride[0] + t / taps[1] * window.dilation[0] - window.pad[0];
                    const int64_t column = j * window.stride[1] + t % taps[1] * window.dilation[1] - window.pad[1];
                    if (row >= 0 && row < x[2] && column >= 0 && column < x[3])
                        most = fmaxf(most, ((const float *)c->in[0].data)[(n * x[2] + row) * x[3] + column]);
                }
                *out++ = most;
            }
}

/* --- moving elements ---------------------------------------------------------------------------------------------- */

/* Negative indices count from the end, others take the nearest element. */
static int64_t place_of(int64_t index, int64_t extent)
{
    index += index < 0 ? extent : 0;
    return index < 0 ? 0 : index < extent ? index : extent - 1;
}

static void gather(const struct call *c)
{
    const struct weft_kernel_array *x = &c->in[0], *indices = &c->in[1];
    const int axis = (int)attribute_of(c, "axis").integer;
    const int64_t bytes = span(x, axis + 1, x->rank) * width(x);
    char *out = c->out.data;
    for (int64_t i = 0; i < span(x, 0, axis); i++)
        for (int64_t k = 0; k < elements(indices); k++, out += bytes) {
            const int64_t place = place_of(((const int64_t *)indices->data)[k], x->extent[axis]);
            memcpy(out, (const char *)x->data + (i * x->extent[axis] + place) * bytes, (size_t)bytes);
        }
}

/* The last axis of the indices says where along the first axes of x. */
static void gather_nd(const struct call *c)
{
    const struct weft_kernel_array *x = &c->in[0], *indices = &c->in[1];
    const int axes = (int)indices->extent[indices->rank - 1];
    const int64_t bytes = span(x, axes, x->rank) * width(x), *index = indices->data;
    char *out = c->out.data;
    for (int64_t k = 0; k < span(indices, 0, indices->rank - 1); k++, out += bytes) {
        int64_t place = 0;
        for (int axis = 0; axis < axes; axis++)
            place = place * x->extent[axis] + place_of(*index++, x->extent[axis]);
        memcpy(out, (const char *)x->data + place * bytes, (size_t)bytes);
    }
}

static void concat(const struct call *c)
{
    const int axis = (int)attribute_of(c, "axis").integer;
    char *out = c->out.data;
    for (int64_t i = 0; i < span(&c->out, 0, axis); i++)
        for (int k = 0; k < c->operands; k++) {
            const int64_t bytes = span(&c->in[k], axis, c->in[k].rank) * width(&c->out);
            memcpy(out, (const char *)c->in[k].data + i * bytes, (size_t)bytes);
            out += bytes;
        }
}

#endif
