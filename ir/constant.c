/* SPDX-License-Identifier: Apache-2.0 */
/* constant.c: the elements of const nodes, wherever they come from: a splat, bytes in memory or in a mapped file, or
 * the generator of seeded numbers that lets a text stand for a model with weights without carrying them. */
#include "ir/ir.h"

#include <string.h>

static const struct weft_constant *constant_of(const struct weft_graph *graph, weft_val value)
{
    const weft_node def = graph->value[value.id].def;
    return def.id ? graph->node[def.id].constant : NULL;
}

bool weft_is_const(const struct weft_graph *graph, weft_val value) { return constant_of(graph, value) != NULL; }

/* splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014), its output function applied
 * to a counter: element i can be had without those before it. */
static double random_element(const struct weft_constant *constant, uint64_t i)
{
    uint64_t z = constant->seed * 0x9E3779B97F4A7C15u + i + 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return ((double)(z >> 40) / 0x1p23 - 1) * constant->scale;
}

static void write_splat(const struct weft_constant *constant, int dtype, int64_t n, void *data)
{
    if (n == 0)
        return;
    if (weft_dtype_bits(dtype) < 8) {
        for (int64_t i = 0; i < n; i++)
            weft_store_integer(dtype, data, i, constant->splat);
        return;
    }
    if (constant->integer)
        weft_store_integer(dtype, data, 0, constant->splat);
    else
        weft_store_real(dtype, data, 0, constant->real);
    const size_t size = weft_dtype_bits(dtype) / 8;
    for (int64_t i = 1; i < n; i++)
        memcpy((char *)data + (size_t)i * size, data, size);
}

const void *weft_const_data(const struct weft_graph *graph, weft_val value)
{
    const struct weft_constant *constant = constant_of(graph, value);
    return constant && constant->kind == WEFT_CONST_BLOB ? (const char *)constant->blob->data + constant->offset : NULL;
}

void weft_const_write(const struct weft_graph *graph, weft_val value, void *data)
{
    const struct weft_type *type = weft_type_of(graph, value);
    const struct weft_constant *constant = constant_of(graph, value);
    weft_assert(constant && weft_type_is_constant(type));
    const int64_t n = weft_dim_value(weft_type_elements(graph->dims, type));
    switch ((enum weft_constant_kind)constant->kind) {
    case WEFT_CONST_SPLAT:
        write_splat(constant, type->dtype, n, data);
        break;
    case WEFT_CONST_BLOB:
        memcpy(data, weft_const_data(graph, value), (size_t)weft_dtype_bytes(type->dtype, n));
        break;
    case WEFT_CONST_RANDOM:
        for (int64_t i = 0; i < n; i++)
            weft_store_real(type->dtype, data, i, random_element(constant, (uint64_t)i));
        break;
    }
}

bool weft_const_splat(const struct weft_graph *graph, weft_val value, double *ret)
{
    const struct weft_constant *constant = constant_of(graph, value);
    if (!constant || constant->kind == WEFT_CONST_RANDOM)
        return false;
    if (constant->kind == WEFT_CONST_SPLAT) {
        *ret = constant->integer ? (double)constant->splat : constant->real;
        return true;
    }
    const struct weft_type *type = weft_type_of(graph, value);
    const int64_t n = weft_dim_value(weft_type_elements(graph->dims, type));
    if (n == 0)
        return false;
    const double first = weft_load_real(type->dtype, weft_const_data(graph, value), 0);
    for (int64_t i = 1; i < n; i++) {
        const double other = weft_load_real(type->dtype, weft_const_data(graph, value), i);
        if (memcmp(&other, &first, sizeof first) != 0)
            return false;
    }
    *ret = first;
    return true;
}
