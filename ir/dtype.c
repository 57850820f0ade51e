/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c: element types, and single elements of packed arrays as double or 64-bit integers.
 *
 * Every float type of at most 32 bits is exact in double, so reading loses nothing, and storing rounds once: the small
 * formats are rounded straight from double, since going through f32 would round twice. Data may be unaligned (mapped
 * files). */
#include "ir/ir.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t bits;
    bool real, integer, is_signed, storage;
} types[] = {
    [WEFT_F64] = {.name = "f64", .bits = 64, .real = true},
    [WEFT_F32] = {.name = "f32", .bits = 32, .real = true},
    [WEFT_BF16] = {.name = "bf16", .bits = 16, .real = true},
    [WEFT_F16] = {.name = "f16", .bits = 16, .real = true},
    [WEFT_I64] = {.name = "i64", .bits = 64, .integer = true, .is_signed = true},
    [WEFT_I32] = {.name = "i32", .bits = 32, .integer = true, .is_signed = true},
    [WEFT_I16] = {.name = "i16", .bits = 16, .integer = true, .is_signed = true},
    [WEFT_I8] = {.name = "i8", .bits = 8, .integer = true, .is_signed = true},
    [WEFT_U64] = {.name = "u64", .bits = 64, .integer = true},
    [WEFT_U32] = {.name = "u32", .bits = 32, .integer = true},
    [WEFT_U16] = {.name = "u16", .bits = 16, .integer = true},
    [WEFT_U8] = {.name = "u8", .bits = 8, .integer = true},
    [WEFT_BOOL] = {.name = "bool", .bits = 8},
    [WEFT_I4] = {.name = "i4", .bits = 4, .integer = true, .is_signed = true, .storage = true},
    [WEFT_U4] = {.name = "u4", .bits = 4, .integer = true, .storage = true},
    [WEFT_F8E4M3] = {.name = "f8e4m3", .bits = 8, .real = true, .storage = true},
    [WEFT_F8E5M2] = {.name = "f8e5m2", .bits = 8, .real = true, .storage = true},
};
#define TYPES ((int)(sizeof types / sizeof types[0]))

static bool known(int dtype) { return dtype > 0 && dtype < TYPES; }

const char *weft_dtype_name(int dtype) { return known(dtype) ? types[dtype].name : NULL; }
unsigned weft_dtype_bits(int dtype) { return known(dtype) ? types[dtype].bits : 0; }
bool weft_dtype_is_float(int dtype) { return known(dtype) && types[dtype].real; }
bool weft_dtype_is_int(int dtype) { return known(dtype) && types[dtype].integer; }
bool weft_dtype_is_signed(int dtype) { return known(dtype) && types[dtype].is_signed; }
bool weft_dtype_is_storage_only(int dtype) { return known(dtype) && types[dtype].storage; }
bool weft_dtype_is_half(int dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16; }

int weft_dtype_from_name(const char *name)
{
    if (!name)
        return 0;
    for (int dtype = 1; dtype < TYPES; dtype++)
        if (strcmp(name, types[dtype].name) == 0)
            return dtype;
    return 0;
}

int64_t weft_dtype_bytes(int dtype, int64_t n)
{
    const int64_t bits = weft_dtype_bits(dtype);
    return bits >= 8 ? n * (bits / 8) : (n * bits + 7) / 8;
}

/* --- small floats ------------------------------------------------------------------------------------------------- */

/* A format by its fields. `finite` formats (f8e4m3) have no infinity: their top exponent holds numbers, and all ones is
 * NaN. */
struct format {
    int exponent_bits, mantissa_bits;
    bool finite;
};

static struct format format_of(int dtype)
{
    switch (dtype) {
    case WEFT_BF16: return (struct format){8, 7, false};
    case WEFT_F16: return (struct format){5, 10, false};
    case WEFT_F8E4M3: return (struct format){4, 3, true};
    default: return (struct format){5, 2, false};
    }
}

static double decode(struct format f, uint32_t bits)
{
    const int top = (1 << f.exponent_bits) - 1, bias = top / 2;
    const uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
    const int exponent = (int)(bits >> f.mantissa_bits) & top;
    double value;
    if (exponent == top && !f.finite)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == top && mantissa == (1u << f.mantissa_bits) - 1)
        value = NAN;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias - f.mantissa_bits);
    else
        value = ldexp((double)(mantissa | 1u << f.mantissa_bits), exponent - bias - f.mantissa_bits);
    return bits >> (f.exponent_bits + f.mantissa_bits) & 1 ? -value : value;
}

/* Nearest, ties to even. Beyond the largest number: infinity, or NaN in a finite format (as ONNX casts without
 * saturation). */
static uint32_t encode(struct format f, double value)
{
    const int top = (1 << f.exponent_bits) - 1, bias = top / 2;
    const uint32_t sign = (uint32_t)(signbit(value) != 0) << (f.exponent_bits + f.mantissa_bits);
    const uint32_t ones = (1u << f.mantissa_bits) - 1;
    const uint32_t nan = sign | (uint32_t)top << f.mantissa_bits | (f.finite ? ones : 1u << (f.mantissa_bits - 1));
    const uint32_t overflow = f.finite ? nan : sign | (uint32_t)top << f.mantissa_bits;
    if (isnan(value))
        return nan;
    if (isinf(value))
        return overflow;
    int exponent;
    frexp(value, &exponent); /* |value| in [2^(exponent-1), 2^exponent) */
    int unit = exponent - 1 - f.mantissa_bits; /* exponent of the last bit */
    const int lowest = 1 - bias - f.mantissa_bits;
    if (value == 0 || unit < lowest)
        unit = lowest;
    const uint64_t whole = (uint64_t)nearbyint(ldexp(fabs(value), -unit)); /* exact but for this rounding */
    const uint64_t code =
        whole + ((uint64_t)(unit - lowest) << f.mantissa_bits); /* a carry moves into the exponent by itself */
    const uint64_t limit = ((uint64_t)top << f.mantissa_bits) + (f.finite ? ones : 0);
    return code >= limit ? overflow : sign | (uint32_t)code;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

#define LOAD(type) \
    type x; \
    memcpy(&x, (const char *)data + i * (int64_t)sizeof x, sizeof x)
#define STORE(type, v) \
    const type x = (type)(v); \
    memcpy((char *)data + i * (int64_t)sizeof x, &x, sizeof x)

static int64_t load_nibble(int dtype, const void *data, int64_t i)
{
    const uint8_t byte = ((const uint8_t *)data)[i / 2];
    const int nibble = i % 2 ? byte >> 4 : byte & 15;
    return dtype == WEFT_I4 && nibble > 7 ? nibble - 16 : nibble;
}

static void store_nibble(void *data, int64_t i, int64_t value)
{
    uint8_t *byte = (uint8_t *)data + i / 2;
    *byte = (uint8_t)(i % 2 ? (*byte & 15) | (value & 15) << 4 : (*byte & 240) | (value & 15));
}

double weft_load_real(int dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case WEFT_F64: { LOAD(double); return x; }
    case WEFT_F32: { LOAD(float); return x; }
    case WEFT_BF16: case WEFT_F16: { LOAD(uint16_t); return decode(format_of(dtype), x); }
    case WEFT_F8E4M3: case WEFT_F8E5M2: { LOAD(uint8_t); return decode(format_of(dtype), x); }
    case WEFT_U64: return (double)(uint64_t)weft_load_integer(dtype, data, i);
    default: return (double)weft_load_integer(dtype, data, i);
    }
}

static int64_t saturate(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

int64_t weft_load_integer(int dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case WEFT_I64: case WEFT_U64: { LOAD(int64_t); return x; }
    case WEFT_I32: { LOAD(int32_t); return x; }
    case WEFT_I16: { LOAD(int16_t); return x; }
    case WEFT_I8: { LOAD(int8_t); return x; }
    case WEFT_U32: { LOAD(uint32_t); return x; }
    case WEFT_U16: { LOAD(uint16_t); return x; }
    case WEFT_U8: { LOAD(uint8_t); return x; }
    case WEFT_BOOL: { LOAD(uint8_t); return x != 0; }
    case WEFT_I4: case WEFT_U4: return load_nibble(dtype, data, i);
    default: return saturate(weft_load_real(dtype, data, i));
    }
}

void weft_store_real(int dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case WEFT_F64: { STORE(double, value); break; }
    case WEFT_F32: { STORE(float, value); break; }
    case WEFT_BF16: case WEFT_F16: { STORE(uint16_t, encode(format_of(dtype), value)); break; }
    case WEFT_F8E4M3: case WEFT_F8E5M2: { STORE(uint8_t, encode(format_of(dtype), value)); break; }
    case WEFT_BOOL: weft_store_integer(dtype, data, i, value != 0); break;
    case WEFT_U64:
        weft_store_integer(dtype, data, i, value >= 0x1p63 ? (int64_t)(value >= 0x1p64 ? UINT64_MAX : (uint64_t)value)
                                                           : saturate(value));
        break;
    default: weft_store_integer(dtype, data, i, saturate(value)); break;
    }
}

void weft_store_integer(int dtype, void *data, int64_t i, int64_t value)
{
    switch (dtype) {
    case WEFT_I64: case WEFT_U64: { STORE(int64_t, value); break; }
    case WEFT_I32: case WEFT_U32: { STORE(uint32_t, value); break; }
    case WEFT_I16: case WEFT_U16: { STORE(uint16_t, value); break; }
    case WEFT_I8: case WEFT_U8: { STORE(uint8_t, value); break; }
    case WEFT_BOOL: { STORE(uint8_t, value != 0); break; }
    case WEFT_I4: case WEFT_U4: store_nibble(data, i, value); break;
    default: weft_store_real(dtype, data, i, (double)value); break;
    }
}
