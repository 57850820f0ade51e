/* SPDX-License-Identifier: Apache-2.0 */
/* figures_limit.c: what figures.py measures the machine's bandwidth with: arrays that are read from begin to end, and
 * one that is written. Plain loops of vectors, a part for each thread; with streaming stores or without. */
#include <immintrin.h>
#include <omp.h>
#include <stddef.h>

/* So many floats of each array; reads: 0 to 3. The result depends on all that was read. */
static float part(const float *const *in, int reads, float *out, size_t begin, size_t end, int streaming)
{
    __m256 sum = _mm256_setzero_ps(), more = sum;
    const float *const a = in[0], *const b = in[reads > 1], *const c = in[reads > 2 ? 2 : 0];
    for (size_t i = begin; i < end; i += 16) {
        __m256 x = _mm256_load_ps(a + i), y = _mm256_load_ps(a + i + 8);
        if (reads > 1)
            x = _mm256_add_ps(x, _mm256_load_ps(b + i)), y = _mm256_add_ps(y, _mm256_load_ps(b + i + 8));
        if (reads > 2)
            x = _mm256_add_ps(x, _mm256_load_ps(c + i)), y = _mm256_add_ps(y, _mm256_load_ps(c + i + 8));
        if (!out)
            sum = _mm256_add_ps(sum, x), more = _mm256_add_ps(more, y);
        else if (streaming)
            _mm256_stream_ps(out + i, x), _mm256_stream_ps(out + i + 8, y);
        else
            _mm256_store_ps(out + i, x), _mm256_store_ps(out + i + 8, y);
    }
    return _mm256_cvtss_f32(_mm256_add_ps(sum, more));
}

/* One array that is read is read at four places side by side, which keeps more lines on their way. */
static float read_one(const float *in, size_t begin, size_t end)
{
    const size_t quarter = (end - begin) / 4 / 16 * 16;
    __m256 sum[8] = {0};
    for (size_t i = begin; i < begin + quarter; i += 16)
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            sum[k] = _mm256_add_ps(sum[k], _mm256_load_ps(in + i + (size_t)(k / 2) * quarter + (size_t)(k % 2) * 8));
    for (int k = 1; k < 8; k++)
        sum[0] = _mm256_add_ps(sum[0], sum[k]);
    return _mm256_cvtss_f32(sum[0]) + part(&in, 1, NULL, begin + 4 * quarter, end, 0);
}

/* `floats`: a multiple of 16; arrays aligned to 64 bytes. way 0 plain, 1 streaming, 2 side by side. */
float limit(const float *const *in, int reads, float *out, size_t floats, int way, int threads)
{
    float sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        const size_t share = floats / 16 / (size_t)threads * 16, begin = share * (size_t)omp_get_thread_num();
        const size_t end = omp_get_thread_num() == threads - 1 ? floats : begin + share;
        sum += way == 2 ? read_one(in[0], begin, end) : part(in, reads, out, begin, end, way);
    }
    return sum;
}
