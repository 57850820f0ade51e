/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: plans a case, runs it on random numbers that lie in memory as the case says, and compares with what the
 * reference evaluator makes of the same numbers, row-major, from a graph without any layouts.
 *
 * Numbers are small multiples of 1/8: sums and products of a few are exact, so that comparisons go the same way on both
 * sides. The bound is generous, since the question is whether each element is where it belongs; how exact kernels are
 * is for weft-check to say. What lies between the elements of an input is NaN, or -1. */
#include "layout_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- elements ----------------------------------------------------------------------------------------------------- */

static int64_t place_of(const struct shape *shape, const int64_t *stride, int64_t n)
{
    int64_t place = 0;
    for (int i = shape->rank - 1; i >= 0; i--) {
        place += n % shape->extent[i] * stride[i];
        n /= shape->extent[i];
    }
    return place;
}

static bool is_half(int dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16; }

/* The bits of a float as those of a 16-bit one, for numbers that both can hold, and back. */
static uint16_t to_half(int dtype, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (dtype == WEFT_BF16)
        return (uint16_t)(bits >> 16);
    const uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 255;
    return (uint16_t)(x == 0 ? sign : sign | (exponent - 112) << 10 | (bits >> 13 & 1023));
}

static double from_half(int dtype, uint16_t h)
{
    const uint32_t wide = (uint32_t)h << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    if (dtype == WEFT_BF16)
        return x;
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return h & 0x8000 ? -size : size;
}

static double load(int dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case WEFT_F64: return ((const double *)data)[i];
    case WEFT_F32: return ((const float *)data)[i];
    case WEFT_F16: case WEFT_BF16: return from_half(dtype, ((const uint16_t *)data)[i]);
    case WEFT_I64: return (double)((const int64_t *)data)[i];
    case WEFT_I32: return ((const int32_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

static void store(int dtype, void *data, int64_t i, double x)
{
    switch (dtype) {
    case WEFT_F64: ((double *)data)[i] = x; break;
    case WEFT_F32: ((float *)data)[i] = (float)x; break;
    case WEFT_F16: case WEFT_BF16: ((uint16_t *)data)[i] = to_half(dtype, (float)x); break;
    case WEFT_I64: ((int64_t *)data)[i] = (int64_t)x; break;
    case WEFT_I32: ((int32_t *)data)[i] = (int32_t)x; break;
    default: ((uint8_t *)data)[i] = (uint8_t)x; break;
    }
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static double draw_element(const struct case_input *input, uint64_t *seed)
{
    switch (input->shape.dtype) {
    case WEFT_F64: case WEFT_F32: case WEFT_F16: case WEFT_BF16: return (double)(draw(seed) % 33) / 8 - 2;
    case WEFT_BOOL: return (double)(draw(seed) % 2);
    default: return (double)(draw(seed) % (uint64_t)(input->limit > 0 ? input->limit : 1));
    }
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static struct weft_tensor tensor_of(const struct shape *shape, const int64_t *stride, void *data)
{
    struct weft_tensor t = {.data = data, .dtype = shape->dtype, .rank = shape->rank};
    for (int i = 0; i < shape->rank; i++) {
        t.extent[i] = shape->extent[i];
        t.stride[i] = stride[i];
    }
    return t;
}

static void row_major(const struct shape *shape, int64_t *ret_stride)
{
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        ret_stride[i] = stride;
        stride *= shape->extent[i];
    }
}

/* Memory for so many bytes whose address is a multiple of `align`, and not of more. */
static void *reserve(size_t bytes, int64_t align, void **ret_data)
{
    char *memory = aligned_alloc(128, (bytes + 255) / 128 * 128);
    if (memory) {
        memset(memory, 255, (bytes + 255) / 128 * 128);
        *ret_data = memory + (align < 128 ? align : 0);
    }
    return memory;
}

/* The input as the case lays it out, and the same numbers row-major. */
static bool fill_input(const struct case_input *input, uint64_t *seed, struct trial *trial, size_t i,
                       struct weft_tensor *strided, struct weft_tensor *plain)
{
    const unsigned size = weft_dtype_bits(input->shape.dtype) / 8;
    const int64_t elements = elements_of(&input->shape);
    int64_t stride[WEFT_MAX_RANK], dense[WEFT_MAX_RANK], reach = input->offset + 1;
    void *base = NULL, *copy = malloc((size_t)(elements ? elements : 1) * size);
    strides_of_input(input, stride);
    row_major(&input->shape, dense);
    for (int axis = 0; axis < input->shape.rank; axis++)
        reach += (input->shape.extent[axis] - 1) * stride[axis];
    trial->memory[i] = reserve((size_t)(elements ? reach : 1) * size, input->align, &base);
    plain->data = copy;
    if (!copy || !trial->memory[i])
        return false;
    char *first = (char *)base + input->offset * size;
    for (int64_t n = 0; n < elements; n++) /* where memory overlaps, the last number stays */
        store(input->shape.dtype, first, place_of(&input->shape, stride, n), draw_element(input, seed));
    for (int64_t n = 0; n < elements; n++)
        store(input->shape.dtype, copy, n, load(input->shape.dtype, first, place_of(&input->shape, stride, n)));
    *strided = tensor_of(&input->shape, stride, first);
    *plain = tensor_of(&input->shape, dense, copy);
    return true;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static bool is_float(int dtype) { return dtype == WEFT_F64 || dtype == WEFT_F32 || is_half(dtype); }

static bool compare(const char *name, const struct weft_tensor *got, const struct weft_tensor *want, char *ret_wrong,
                    size_t bytes)
{
    struct shape shape = {.dtype = want->dtype, .rank = want->rank};
    memcpy(shape.extent, want->extent, sizeof shape.extent);
    const int64_t elements = elements_of(&shape);
    double largest = 1;
    for (int64_t n = 0; n < elements; n++) {
        const double x = fabs(load(want->dtype, want->data, n));
        largest = isfinite(x) && x > largest ? x : largest;
    }
    const double bound = is_half(want->dtype) ? largest / 64 : is_float(want->dtype) ? largest / 4096 : 0;
    for (int64_t n = 0; n < elements; n++) {
        const double x = load(got->dtype, got->data, place_of(&shape, got->stride, n));
        const double y = load(want->dtype, want->data, n);
        if (fabs(x - y) <= bound || x == y || (isnan(x) && isnan(y)))
            continue;
        snprintf(ret_wrong, bytes, "element %lld of %s is %g, not %g", (long long)n, name, x, y);
        return false;
    }
    return true;
}

static void compare_all(const struct layout_case *c, struct trial *trial, const struct weft_tensor *input,
                        const struct weft_tensor *want, char *ret_wrong, size_t bytes)
{
    bool same = true;
    for (size_t i = 0; i < c->outputs && same; i++) {
        struct weft_tensor got;
        same = weft_output(trial->execution, i, &got) == WEFT_OK &&
               compare(c->output[i].name, &got, &want[i], ret_wrong, bytes);
    }
    for (size_t i = 0; i < c->inputs && same; i++)
        if (c->input[i].mut)
            same = compare(c->input[i].mut, &input[i], &want[result_of_input(c, i)], ret_wrong, bytes);
}

/* --- public ------------------------------------------------------------------------------------------------------- */

static bool stop(struct trial *trial, int status, const char *message)
{
    trial->status = status;
    snprintf(trial->message, sizeof trial->message, "%s: %s", weft_status_text(status), message);
    for (char *end = trial->message + strlen(trial->message); end > trial->message && end[-1] == '\n';)
        *--end = '\0';
    return false;
}

static int run_passes(struct weft_graph *graph, const char *passes)
{
    int status = WEFT_OK;
    for (const char *word = passes; word && *word && status >= 0;) {
        char name[64];
        const size_t length = strcspn(word, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        status = weft_run_pass(graph, name, NULL);
        word += length + (word[length] == ',');
    }
    return status < 0 ? status : WEFT_OK;
}

static bool run(const struct layout_case *c, struct weft_context *context, const char *passes, struct trial *trial,
                struct weft_tensor *strided, struct weft_tensor *plain)
{
    const struct weft_compile_options options = {.size = sizeof options, .flags = WEFT_COMPILE_SHARE_RESULTS};
    uint64_t seed = 1;
    int status = build_case(c, TO_PLAN, context, &trial->build);
    if (status != WEFT_OK)
        return stop(trial, status, trial->build.message);
    status = run_passes(trial->build.graph, passes);
    if (status == WEFT_OK)
        status = weft_compile(trial->build.graph, &options, &trial->plan);
    if (status == WEFT_OK)
        status = weft_execution_create(trial->plan, &trial->execution);
    if (status != WEFT_OK)
        return stop(trial, status, weft_last_error(context));
    for (size_t i = 0; i < c->inputs; i++) {
        if (!fill_input(&c->input[i], &seed, trial, i, &strided[i], &plain[i]))
            return stop(trial, WEFT_ERR_NOMEM, "an input is too large");
        status = weft_bind_input(trial->execution, i, &strided[i]);
        if (status != WEFT_OK)
            return stop(trial, status, weft_execution_error(trial->execution));
    }
    status = weft_run(trial->execution);
    return status == WEFT_OK || stop(trial, status, weft_execution_error(trial->execution));
}

void run_case(const struct layout_case *c, struct weft_context *context, const char *passes, struct trial *ret,
              char *ret_wrong, size_t bytes)
{
    struct weft_tensor strided[MOST_PORTS] = {{0}}, plain[MOST_PORTS] = {{0}}, want[MOST_PORTS] = {{0}};
    struct build meaning = {0};
    size_t results = c->outputs;
    for (size_t i = 0; i < c->inputs; i++)
        if (c->input[i].mut && result_of_input(c, i) >= results)
            results = result_of_input(c, i) + 1;
    *ret = (struct trial){0};
    *ret_wrong = '\0';
    if (run(c, context, passes, ret, strided, plain)) {
        int status = build_case(c, TO_EVALUATE, context, &meaning);
        if (status == WEFT_OK)
            status = weft_evaluate(meaning.graph, plain, c->inputs, want, results);
        if (status == WEFT_OK)
            compare_all(c, ret, strided, want, ret_wrong, bytes);
        else
            snprintf(ret_wrong, bytes, "no evaluation: %s", weft_last_error(context));
    }
    for (size_t i = 0; i < c->inputs; i++)
        free(plain[i].data);
    for (size_t i = 0; i < results; i++)
        weft_tensor_free(context, &want[i]);
    weft_graph_destroy(meaning.graph);
}

void close_trial(struct trial *trial)
{
    weft_execution_destroy(trial->execution);
    weft_plan_destroy(trial->plan);
    weft_graph_destroy(trial->build.graph);
    for (size_t i = 0; i < MOST_PORTS; i++)
        free(trial->memory[i]);
}
