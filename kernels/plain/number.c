/* SPDX-License-Identifier: Apache-2.0 */
/* number.c: loads and stores of strided elements, a loop for each dtype. */
#include "kernels/plain/number.h"
#include "kernels/small.h"

int64_t weft_k_bytes(int dtype)
{
    switch (dtype) {
    case WEFT_K_F64: case WEFT_K_I64: case WEFT_K_U64: return 8;
    case WEFT_K_F32: case WEFT_K_I32: case WEFT_K_U32: return 4;
    case WEFT_K_F16: case WEFT_K_BF16: case WEFT_K_I16: case WEFT_K_U16: return 2;
    case WEFT_K_I4: case WEFT_K_U4: return 0;
    default: return 1;
    }
}

#define LOAD(type, member, value)                                                                                      \
    do {                                                                                                               \
        const type *const from = (const type *)data + place;                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type x = from[i * step];                                                                             \
            ret[i].member = value;                                                                                     \
        }                                                                                                              \
    } while (0)

void weft_k_load(int dtype, const void *data, int64_t place, int64_t step, int64_t n, union weft_k_number *ret)
{
    switch (dtype) {
    case WEFT_K_F64: LOAD(double, real, x); break;
    case WEFT_K_F32: LOAD(float, real, (double)x); break;
    case WEFT_K_BF16: LOAD(uint16_t, real, (double)weft_small_widen(weft_small_bf16, x)); break;
    case WEFT_K_F16: LOAD(uint16_t, real, (double)weft_small_widen(weft_small_f16, x)); break;
    case WEFT_K_F8E4M3: LOAD(uint8_t, real, (double)weft_small_widen(weft_small_f8e4m3, x)); break;
    case WEFT_K_F8E5M2: LOAD(uint8_t, real, (double)weft_small_widen(weft_small_f8e5m2, x)); break;
    case WEFT_K_I64: case WEFT_K_U64: LOAD(int64_t, integer, x); break;
    case WEFT_K_I32: LOAD(int32_t, integer, x); break;
    case WEFT_K_I16: LOAD(int16_t, integer, x); break;
    case WEFT_K_I8: LOAD(int8_t, integer, x); break;
    case WEFT_K_U32: LOAD(uint32_t, integer, x); break;
    case WEFT_K_U16: LOAD(uint16_t, integer, x); break;
    case WEFT_K_BOOL: LOAD(uint8_t, integer, x != 0); break;
    default: LOAD(uint8_t, integer, x); break;
    }
}

#define STORE(type, value)                                                                                             \
    do {                                                                                                               \
        type *const to = (type *)data + place;                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const union weft_k_number x = number[i];                                                                   \
            to[i * step] = (type)(value);                                                                              \
        }                                                                                                              \
    } while (0)

void weft_k_store(int dtype, void *data, int64_t place, int64_t step, int64_t n, const union weft_k_number *number)
{
    switch (dtype) {
    case WEFT_K_F64: STORE(double, x.real); break;
    case WEFT_K_F32: STORE(float, x.real); break;
    case WEFT_K_BF16: STORE(uint16_t, weft_small_narrow(weft_small_bf16, weft_odd_f64(x.real))); break;
    case WEFT_K_F16: STORE(uint16_t, weft_small_narrow(weft_small_f16, weft_odd_f64(x.real))); break;
    case WEFT_K_F8E4M3: STORE(uint8_t, weft_small_narrow(weft_small_f8e4m3, weft_odd_f64(x.real))); break;
    case WEFT_K_F8E5M2: STORE(uint8_t, weft_small_narrow(weft_small_f8e5m2, weft_odd_f64(x.real))); break;
    case WEFT_K_I64: case WEFT_K_U64: STORE(uint64_t, x.bits); break;
    case WEFT_K_I32: case WEFT_K_U32: STORE(uint32_t, x.bits); break;
    case WEFT_K_I16: case WEFT_K_U16: STORE(uint16_t, x.bits); break;
    case WEFT_K_BOOL: STORE(uint8_t, x.integer != 0); break;
    default: STORE(uint8_t, x.bits); break;
    }
}

void weft_k_move(int64_t bytes, void *to, int64_t to_place, const void *from, int64_t from_place)
{
    memcpy((char *)to + to_place * bytes, (const char *)from + from_place * bytes, (size_t)bytes);
}
