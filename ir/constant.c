/* SPDX-License-Identifier: Apache-2.0 */
/* constant.c: the elements of const nodes, wherever they come from: a splat, bytes in memory or in a mapped file, or
 * the generator of seeded numbers that lets a text stand for a model with weights without carrying them. And which
 * nodes have extents and attributes that are numbers. */
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
    const bool is_there = constant && constant->kind == WEFT_CONST_BLOB && constant->blob->data;
    return is_there ? (const char *)constant->blob->data + constant->offset : NULL;
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
        if (weft_const_data(graph, value)) {
            memcpy(data, weft_const_data(graph, value), (size_t)weft_dtype_bytes(type->dtype, n));
            break;
        }
        memset(data, 0, (size_t)weft_dtype_bytes(type->dtype, n)); /* of a plan from a file (plan/stored.h) */
        weft_error(graph->context, WEFT_ERR_INVALID, &(struct weft_place){.where = graph->name},
                   "the elements of a constant are gone");
        break;
    case WEFT_CONST_RANDOM:
        for (int64_t i = 0; i < n; i++)
            weft_store_real(type->dtype, data, i, random_element(constant, (uint64_t)i));
        break;
    }
}

/* Element `i` of a packed array, of whatever kind. */
static struct weft_element load_element(int dtype, const void *data, int64_t i)
{
    struct weft_element element = {.is_integer = !weft_dtype_is_float(dtype), .real = weft_load_real(dtype, data, i)};
    element.integer = element.is_integer ? weft_load_integer(dtype, data, i) : 0;
    return element;
}

/* Larger constants are taken to be weights, which nobody reads for this: to find a file of zeros uniform, all of it
 * would have to be read, and stay in memory. */
#define MAX_UNIFORM_BYTES (1 << 20)

/* Compares bits, not numbers: as doubles, integers beyond 2^53 are the same as their neighbours, and so are zeros of
 * both signs. */
static bool is_uniform(int dtype, const void *data, int64_t n)
{
    const size_t size = weft_dtype_bits(dtype) / 8;
    if (size > 0)
        return memcmp(data, (const char *)data + size, (size_t)(n - 1) * size) == 0;
    for (int64_t i = 1; i < n; i++)
        if (weft_load_integer(dtype, data, i) != weft_load_integer(dtype, data, 0))
            return false;
    return true;
}

bool weft_const_splat(const struct weft_graph *graph, weft_val value, struct weft_element *ret)
{
    const struct weft_constant *constant = constant_of(graph, value);
    if (!constant || constant->kind == WEFT_CONST_RANDOM)
        return false;
    const struct weft_type *type = weft_type_of(graph, value);
    if (constant->kind == WEFT_CONST_SPLAT) {
        int64_t packed = 0;
        write_splat(constant, type->dtype, 1, &packed);
        *ret = load_element(type->dtype, &packed, 0);
        return true;
    }
    const int64_t n = weft_dim_value(weft_type_elements(graph->dims, type));
    const void *data = weft_const_data(graph, value);
    if (n == 0 || !data || weft_dtype_bytes(type->dtype, n) > MAX_UNIFORM_BYTES || !is_uniform(type->dtype, data, n))
        return false;
    weft_blob_forget(constant->blob, constant->offset, (size_t)weft_dtype_bytes(type->dtype, n)); /* all was read */
    *ret = load_element(type->dtype, data, 0);
    return true;
}

static bool attr_is_constant(const struct weft_attr *attr)
{
    if (attr->kind == WEFT_ATTR_INT)
        return weft_dim_is_constant(attr->integer);
    for (uint32_t i = 0; attr->kind == WEFT_ATTR_INTS && i < attr->count; i++)
        if (!weft_dim_is_constant(attr->integers[i]))
            return false;
    return true;
}

bool weft_axes_are_constant(const struct weft_graph *graph, weft_node node)
{
    const struct weft_node_info *info = &graph->node[node.id];
    for (unsigned i = 0; i < info->attrs; i++)
        if (!attr_is_constant(&info->attr[i]))
            return false;
    for (unsigned i = 0; i < info->operands; i++)
        if (!weft_type_is_constant(weft_type_of(graph, weft_operand(graph, node, i))))
            return false;
    for (unsigned i = 0; i < info->results; i++)
        if (!weft_type_is_constant(weft_type_of(graph, weft_result(graph, node, i))))
            return false;
    return true;
}
