/* SPDX-License-Identifier: Apache-2.0 */
/* strip.c: finding a strip kernel, and running one on strides that it does not know.
 *
 * Rows are found by hash of op and types: there are some 1,700, and plans ask once a node. */
#include "kernels/strip/strip.h"

#include "kernels/relayout/relayout.h"

#include <pthread.h>
#include <string.h>

/* Best first: the first row that fits wins. */
static const struct weft_strip_kernel *const tables[] = {
#ifdef __x86_64__
    weft_strip_table__avx512, weft_strip_table_rows__avx512, weft_strip_table_cast_by__avx512,
    weft_strip_table__avx2,   weft_strip_table_rows__avx2,   weft_strip_table_cast_by__avx2,
#endif
    weft_strip_table__ref,    weft_strip_table_rows__ref,    weft_strip_table_cast_by__ref,
    weft_strip_table_plain__ref, weft_strip_table_cast__ref,
};
enum { TABLES = sizeof tables / sizeof tables[0] };

enum { BUCKETS = 1024, MOST_ROWS = 4096 }; /* that all rows fit is tested (test_map.c) */
static struct {
    pthread_once_t once;
    uint16_t rows, first[BUCKETS], next[MOST_ROWS]; /* row + 1; in each chain best first */
    const struct weft_strip_kernel *row[MOST_ROWS];
} found = {.once = PTHREAD_ONCE_INIT};

static uint16_t *bucket_of(const char *op, int in_dtype, int out_dtype)
{
    uint32_t hash = (uint32_t)(in_dtype * 31 + out_dtype);
    for (const char *c = op; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x01000193u; /* FNV-1a */
    return &found.first[(hash ^ hash >> 15) % BUCKETS];
}

/* From the last to the first, so that the first ends up in front. */
static void fill_buckets(void)
{
    for (int t = 0; t < TABLES; t++)
        for (const struct weft_strip_kernel *k = tables[t]; k->name && found.rows < MOST_ROWS; k++)
            found.row[found.rows++] = k;
    for (uint16_t i = found.rows; i > 0; i--) {
        const struct weft_strip_kernel *k = found.row[i - 1];
        uint16_t *bucket = bucket_of(k->op, k->in_dtype, k->out_dtype);
        found.next[i - 1] = *bucket;
        *bucket = i;
    }
}

const struct weft_strip_kernel *weft_strip_find(const char *op, int in_dtype, int out_dtype, uint32_t cpu)
{
    pthread_once(&found.once, fill_buckets);
    for (uint16_t i = *bucket_of(op, in_dtype, out_dtype); i; i = found.next[i - 1]) {
        const struct weft_strip_kernel *k = found.row[i - 1];
        if (k->in_dtype == in_dtype && k->out_dtype == out_dtype && !(k->cpu & ~cpu) && !strcmp(k->op, op))
            return k;
    }
    return NULL;
}

const struct weft_strip_kernel *weft_strip_at(unsigned i)
{
    for (int t = TABLES - 1; t >= 0; t--)
        for (const struct weft_strip_kernel *k = tables[t]; k->name; k++)
            if (!i--)
                return k;
    return NULL;
}

#define CHUNK 256

void weft_strip_strided(const struct weft_strip_args *args, weft_strip_fn fn, int inputs,
                        const int8_t bytes[1 + WEFT_K_MAX_IN])
{
    _Alignas(64) uint8_t buffers[1 + WEFT_K_MAX_IN][CHUNK * 8];
    struct weft_strip_args part = {.stride = {1, 1, 1, 1}, .param = {args->param[0], args->param[1]}};
    for (int64_t start = 0; start < args->n; start += CHUNK) {
        part.n = args->n - start < CHUNK ? args->n - start : CHUNK;
        for (int i = 0; i < inputs; i++) {
            const int64_t stride = args->stride[1 + i];
            const char *const from = (const char *)args->in[i] + start * stride * bytes[1 + i];
            part.in[i] = stride == 1 ? (const void *)from : buffers[1 + i];
            if (stride != 1 && (stride != 0 || start == 0))
                weft_copy_strided(bytes[1 + i], buffers[1 + i], 1, from, stride, part.n);
        }
        const int64_t stride = args->stride[0];
        char *const to = (char *)args->out + start * stride * bytes[0];
        part.out = stride == 1 ? (void *)to : buffers[0];
        fn(&part);
        if (stride != 1)
            weft_copy_strided(bytes[0], to, stride, buffers[0], 1, part.n);
    }
}
