/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c: the list of all kernels, made from the lists of the families. Which of them runs is the families' own
 * choice, by the CPU mask in each descriptor; there is no table of function pointers to initialise and none to get
 * stale. */
#include "kernels/kernels.h"

#include <string.h>

#define AVX512 (WEFT_CPU_AVX2 | WEFT_CPU_AVX512)

static const struct weft_kernel_info kernels[] = {
#define ALONG(id, level, cpu) {"along", "weft_along_" #id "__" #level, cpu},
#include "kernels/along/along.def"

#define ATTENTION(id, level, cpu) {"attention", "weft_attention_" #id "__" #level, cpu},
#include "kernels/attention/attention.def"
#define ATTENTION(id, level, cpu) {"attention_grad", "weft_attention_grad_" #id "__" #level, cpu},
#include "kernels/attention/attention.def"

#define WEFT_CONV(name, cpu, ...) {"conv", #name, cpu},
#include "kernels/conv/conv.def"

#define GATHER(id, level, cpu) {"gather", "weft_" #id "__" #level, cpu},
#include "kernels/gather/gather.def"

#define WEFT_GEMM(name, cpu, ...) {"gemm", #name, cpu},
#include "kernels/gemm/gemm.def"

#define GRAD_WEIGHT(level, cpu) {"grad_weight", "weft_grad_weight_f32__" #level, cpu},
#include "kernels/grad_weight/grad_weight.def"
#define GRAD_WEIGHT(level, cpu) {"grad_weight", "weft_grad_weight_f32_winograd__" #level, cpu},
#include "kernels/grad_weight/grad_weight.def"

#define PLACES(id) {"places", "weft_" #id "__ref", 0},
#include "kernels/places/places.def"

#define PLAIN(op, units, scratch, run, count) {"plain", "weft_plain_" #op "__ref", 0},
#include "kernels/plain/plain.def"

    {"plain", "weft_weigh__ref", 0},

#define PRODUCT(id, form, level, cpu) {"product", "weft_product_" #id "__" #level, cpu},
#include "kernels/product/product.def"

#define POOL(id, level, cpu) {"pool", "weft_pool_" #id "__" #level, cpu},
#include "kernels/strip/pool.def"
#define POOL_INDEX(id, level, cpu) {"pool", "weft_pool_index_" #id "__" #level, cpu},
#include "kernels/strip/pool_index.def"
    {"pool", "weft_pool_grad_f32__ref", 0},

#define REDUCE(id, level, cpu) {"reduce", "weft_reduce_" #id "__" #level, cpu},
#include "kernels/strip/reduce.def"

#define RELAYOUT(id, function, level, cpu, bytes) {"relayout", "weft_relayout_" #id "__" #level, cpu},
#include "kernels/relayout/relayout.def"
    {"relayout", "weft_relayout_runs__ref", 0},
    {"relayout", "weft_relayout_narrow__ref", 0},
#ifdef __x86_64__
    {"relayout", "weft_relayout_runs__avx2", WEFT_CPU_AVX2},
    {"relayout", "weft_relayout_runs__avx512", AVX512},
    {"relayout", "weft_relayout_weave__avx2", WEFT_CPU_AVX2},
    {"relayout", "weft_relayout_weave__avx512", AVX512},
#endif
    {"relayout", "weft_relayout_strided__ref", 0},
    {"relayout", "weft_reshape_lines__ref", 0},

#define RESIZE(level, cpu) {"resize", "weft_blend_f32__" #level, cpu},
#include "kernels/resize/resize.def"

#define SAMPLE(level, cpu) {"sample", "weft_sample_f32__" #level, cpu},
#include "kernels/sample/sample.def"

#define ROW(id)                         {"strip", "weft_strip_" #id "__ref", 0},
#include "kernels/strip/strip_list.inc"

#ifdef __x86_64__
#define ROW(id)                         {"strip", "weft_strip_" #id "__avx2", WEFT_CPU_AVX2},
#include "kernels/strip/strip_list.inc"

#define ROW(id)                         {"strip", "weft_strip_" #id "__avx512", AVX512},
#include "kernels/strip/strip_list.inc"
#endif

#define P1(id, op, in, out, result)     {"strip", "weft_strip_" #id "__ref", 0},
#define P2(id, op, in, out, result)     P1(id, op, in, out, result)
#define P3(id, op, in, out, result)     P1(id, op, in, out, result)
#include "kernels/strip/strip_plain.def"
#define CAST(from, to)                  {"strip", "weft_strip_cast_" #from "_to_" #to "__ref", 0},
#include "kernels/strip/strip_cast.def"
};

const struct weft_kernel_info *weft_kernel_at(unsigned i)
{
    return i < sizeof kernels / sizeof kernels[0] ? &kernels[i] : NULL;
}

bool weft_kernel_is_plain(const char *name)
{
    const char *machine = name ? strstr(name, "__") : NULL;
    return machine && !strncmp(machine, "__ref", 5);
}
