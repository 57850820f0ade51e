/* SPDX-License-Identifier: Apache-2.0 */
/* floor_probe.c: what floor.py measures multiply-adds with: chains of them that wait for nothing but each other, enough
 * to fill both pipes of a core, in vectors of the widest level that the compiler was told of (-march=native). Memory is
 * figures_limit.c's subject. */
#include <omp.h>

#ifdef __AVX512F__
enum { LANES = 16, CHAINS = 16 };
#else
enum { LANES = 8, CHAINS = 12 };
#endif
typedef float vector __attribute__((vector_size(4 * LANES)));

static float chains(long rounds)
{
    vector sum[CHAINS], x = {0}, y = {0};
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        sum[i] = x + (float)i;
    x += 0.999f, y += 1e-3f;
    for (long r = 0; r < rounds; r++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = sum[i] * x + y;
            __asm__ volatile("" : "+x"(sum[i]));
        }
#pragma GCC unroll 16
    for (int i = 1; i < CHAINS; i++)
        sum[0] += sum[i];
    return sum[0][0];
}

/* Each thread does so many rounds; returns floating-point operations, two a multiply-add. */
double multiply_add(long rounds, int threads, float *ret_sum)
{
    float sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    sum += chains(rounds);
    *ret_sum = sum;
    return 2.0 * LANES * CHAINS * (double)rounds * threads;
}
