/* SPDX-License-Identifier: Apache-2.0 */
/* sample_support.h: graphs of one op for any dtype, from op_samples.def, and what their parameters are filled with. */
#ifndef WEFT_SAMPLE_SUPPORT_H
#define WEFT_SAMPLE_SUPPORT_H

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct sample {
    int op;
    const char *params, *lines, *results;
} samples[] = {
#define SAMPLE(op, params, lines, results) {WEFT_OP_##op, params, lines, results},
#include "tests/unit/op_samples.def"
};
#define SAMPLES (sizeof samples / sizeof *samples)

enum { SAMPLE_FIRST = WEFT_F64, SAMPLE_LAST = WEFT_BOOL }; /* dtypes of arithmetic */

/* T[ becomes f32[ and so on. */
static inline void sample_put(char **at, const char *text, const char *dtype)
{
    for (; *text; text++)
        if (text[0] == 'T' && text[1] == '[')
            *at += sprintf(*at, "%s", dtype);
        else
            *(*at)++ = *text;
    **at = '\0';
}

/* NULL: no such op for the dtype. */
static inline struct weft_graph *sample_graph(struct weft_context *context, const struct sample *sample, int dtype)
{
    char text[2048], *at = text;
    const char *name = weft_dtype_name(dtype);
    const char *bound = strstr(sample->lines, "unique") ? "5*N" : sample->op == WEFT_OP_nms ? "6*N" : "30";
    const bool data = weft_ops[sample->op].traits & WEFT_DATA;
    if (sample->op == WEFT_OP_nonzero)
        bound = "5*N";
    if (strstr(sample->lines, "axis=1 extent=[K]") || strstr(sample->lines, "sorted=0 extent=[K]"))
        bound = "N";
    at += sprintf(at, "graph @t<N=3.. hint=7");
    if (data)
        at += sprintf(at, ", K=data(%s)", bound);
    at += sprintf(at, ">(");
    sample_put(&at, sample->params, name);
    at += sprintf(at, "%s%%n: f32[N]) {\n", *sample->params ? ", " : ""); /* so that there is always an N to find */
    sample_put(&at, sample->lines, name);
    sprintf(at, "\nreturn %s\n}\n", sample->results);
    struct weft_graph *graph = NULL;
    return weft_parse(context, text, strlen(text), "sample", &graph) == WEFT_OK ? graph : NULL;
}

/* Elementwise ops that have no sample, by their number of operands: the result is of the operands' type, or a bool. */
static inline struct weft_graph *sample_elementwise(struct weft_context *context, int op, int dtype)
{
    const unsigned operands = (unsigned)weft_ops[op].min_operands;
    static const char *const params[] = {"%x: T[5,N]", "%x: T[5,N], %z: T[5,N]", "%x: T[5,N], %z: T[5,N], %u: T[5,N]"};
    static const char *const names[] = {"%x", "%x, %z", "%x, %z, %u"};
    static const char *const results[] = {"T", "bool", "f32"};
    for (int i = 0; i < 3; i++) {
        char lines[128], types[128];
        if (op == WEFT_OP_cast && i < 2)
            continue;
        snprintf(types, sizeof types, "%s",
                 op == WEFT_OP_select ? "%x: bool[5,N], %z: T[5,N], %u: T[5,N]"
                 : op == WEFT_OP_dequantize ? "%x: T[5,N], %z: f32[5,N]" : params[operands - 1]);
        snprintf(lines, sizeof lines, "%%y: %s[5,N] = %s %s", results[i], weft_ops[op].name, names[operands - 1]);
        struct weft_graph *graph =
            sample_graph(context, &(struct sample){op, types, lines, "%y"}, dtype);
        if (graph)
            return graph;
    }
    return NULL;
}

/* Extents for N = n, elements, and memory for all of it. */
static inline void sample_fill(const struct weft_graph *g, struct weft_tensor *in, int64_t n, char *memory)
{
    for (uint32_t i = 0; i < g->params; i++) {
        const struct weft_type *type = weft_type_of(g, g->param[i]);
        const char kind = g->value[g->param[i].id].name[0];
        in[i] = (struct weft_tensor){.data = memory, .dtype = type->dtype, .rank = type->rank};
        int64_t symbols[2] = {n, 0};
        for (int axis = 0; axis < type->rank; axis++)
            in[i].extent[axis] = weft_dim_evaluate(g->dims, type->extent[axis], symbols);
        weft_tensor_dense(&in[i]);
        const int64_t count = weft_tensor_count(&in[i]);
        for (int64_t k = 0; k < count; k++) {
            const int64_t x = (k * 37 + 11 * (int64_t)i) % 41;
            if (!weft_dtype_is_float(type->dtype))
                weft_store_integer(type->dtype, memory, k, kind == 'i' ? x % 9 - 2 : kind == 'p' ? x % 3 : x - 20);
            else if (kind == 'p')
                weft_store_real(type->dtype, memory, k, (double)x / 64 + 0.5);
            else
                weft_store_real(type->dtype, memory, k,
                                kind == 'i' ? (double)(x % 5 - 2) : kind == 'x' && k % 97 == 96 ? NAN
                                                                                              : (double)(x - 20) / 8);
        }
        memory += (count * 8 + 63) / 64 * 64;
    }
}

static inline double sample_tolerance(int dtype)
{
    return dtype == WEFT_F64 ? 1e-12 : dtype == WEFT_F32 ? 2e-5 : dtype == WEFT_F16 ? 8e-3 : 6e-2;
}

/* Is element i of one tensor what it is in the other, as near as a sum in another order can be? */
static inline bool sample_near(const struct weft_tensor *got, const struct weft_tensor *want, int64_t i)
{
    if (!weft_dtype_is_float(want->dtype))
        return weft_load_integer(got->dtype, got->data, i) == weft_load_integer(want->dtype, want->data, i);
    const double a = weft_load_real(got->dtype, got->data, i), b = weft_load_real(want->dtype, want->data, i);
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= sample_tolerance(want->dtype) * (1 + fabs(b));
}

#endif
