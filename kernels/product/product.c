/* SPDX-License-Identifier: Apache-2.0 */
/* product.c: which numbers a block of a product or convolution is made of, and where its results go. */
#include "kernels/product/product.h"
#include "kernels/plain/number.h"
#include "kernels/walk.h"

#include <string.h>

#define ROWS    WEFT_PRODUCT_ROWS
#define COLUMNS WEFT_PRODUCT_COLUMNS

static const struct weft_product_kernel kernels[] = {
#define PRODUCT(id, form, level, cpu) {"weft_product_" #id "__" #level, cpu, form, weft_product_add_##id##__##level},
#include "kernels/product/product.def"
};

bool weft_product_supports(int a_dtype, int b_dtype, int c_dtype)
{
    if (!weft_k_bytes(a_dtype) || !weft_k_bytes(b_dtype) || weft_k_is_float(a_dtype) != weft_k_is_float(c_dtype) ||
        weft_k_is_float(b_dtype) != weft_k_is_float(c_dtype))
        return false;
    return c_dtype == WEFT_K_F64 || (!weft_k_is_float(c_dtype) && weft_k_bytes(c_dtype) > 0);
}

const char *weft_product_name(const struct weft_product *product) { return product->kernel->name; }

uint32_t weft_product_cpu(const struct weft_product *product) { return product->kernel->cpu; }

static int64_t blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }

static int64_t pixels(const struct weft_product *p) { return p->out_extent[0] * p->out_extent[1] * p->out_extent[2]; }

void weft_product_prepare(struct weft_product *p, int workers)
{
    const int form = p->c_dtype == WEFT_K_F64 ? WEFT_K_F64 : weft_k_bytes(p->c_dtype) == 8 ? WEFT_K_I64 : WEFT_K_I32;
    p->kernel = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels && !p->kernel; i++)
        if (kernels[i].form == form && (kernels[i].cpu & ~p->cpu) == 0)
            p->kernel = &kernels[i];
    if (p->conv)
        p->n = pixels(p);
    int64_t outer = p->conv ? p->images * p->groups : 1;
    for (int i = 0; i < p->batch_rank; i++)
        outer *= p->batch[i];
    const int64_t units = outer * blocks(p->m, ROWS) * blocks(p->n, COLUMNS);
    const int32_t parts = weft_parts_for(outer * p->m * p->n * p->k, workers);
    p->units = units;
    p->parts = units < 1 ? 1 : units < parts ? (int32_t)units : parts;
    p->scratch = (ROWS * COLUMNS + ROWS + COLUMNS) * 2 * sizeof(int64_t);
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

struct block {
    const struct weft_product *p;
    const char *a, *b;
    int64_t a_place, b_place, c_place; /* of the batch, or of the group of an image */
    int64_t row, rows, column, columns;
    union weft_k_number *number;       /* COLUMNS, just loaded */
    void *right, *sum;                 /* in the form of the kernel */
};

/* From numbers to what the kernel adds up: the same 64 bits, or the low 32. */
static void *in_form(const struct weft_product *p, union weft_k_number *number, void *narrow, int64_t n)
{
    if (p->kernel->form != WEFT_K_I32)
        return number;
    for (int64_t i = 0; i < n; i++)
        ((uint32_t *)narrow)[i] = (uint32_t)number[i].bits;
    return narrow;
}

/* Elements of the pixels of a block under one tap of one channel; padding is zeros. */
static void load_pixels(const struct block *b, int64_t place, const int64_t *tap)
{
    const struct weft_product *p = b->p;
    const int64_t *const out = p->out_extent;
    int64_t o[3] = {b->column / (out[1] * out[2]), b->column / out[2] % out[1], b->column % out[2]};
    for (int64_t i = 0; i < b->columns; i++) {
        int64_t at = place;
        bool inside = true;
        for (int axis = 0; axis < 3; axis++) {
            const int64_t x = o[axis] * p->stride[axis] + tap[axis] * p->dilation[axis] - p->pad[axis];
            inside &= x >= 0 && x < p->in_extent[axis];
            at += x * p->x_step[axis];
        }
        b->number[i] = inside ? weft_k_at(p->b_dtype, b->b, at) : (union weft_k_number){.bits = 0};
        for (int axis = 2; axis >= 0 && ++o[axis] == out[axis]; axis--)
            o[axis] = 0;
    }
}

/* Adds the term whose left numbers begin at `a_place`; the right ones are in b->number. */
static void add_term(const struct block *b, int64_t a_place)
{
    const struct weft_product *p = b->p;
    union weft_k_number left[ROWS] = {{.bits = 0}};
    uint32_t narrow[ROWS] = {0};
    weft_k_load(p->a_dtype, b->a, a_place, p->a_row, b->rows, left);
    p->kernel->add(b->sum, in_form(p, left, narrow, ROWS), in_form(p, b->number, b->right, COLUMNS));
}

static void add_product(const struct block *b)
{
    const struct weft_product *p = b->p;
    for (int64_t k = 0; k < p->k; k++) {
        weft_k_load(p->b_dtype, b->b, b->b_place + k * p->b_row + b->column * p->b_column, p->b_column, b->columns,
                    b->number);
        add_term(b, b->a_place + b->row * p->a_row + k * p->a_column);
    }
}

static void add_convolution(const struct block *b)
{
    const struct weft_product *p = b->p;
    const int64_t *const taps = p->taps;
    for (int64_t channel = 0; channel < p->channels; channel++)
        for (int64_t i = 0; i < taps[0] * taps[1] * taps[2]; i++) {
            const int64_t tap[] = {i / (taps[1] * taps[2]), i / taps[2] % taps[1], i % taps[2]};
            load_pixels(b, b->b_place + channel * p->b_row, tap);
            add_term(b, b->a_place + b->row * p->a_row + channel * p->a_column + tap[0] * p->w_step[0] +
                            tap[1] * p->w_step[1] + tap[2] * p->w_step[2]);
        }
}

static int64_t column_place(const struct weft_product *p, int64_t column)
{
    if (!p->conv)
        return column * p->c_column;
    const int64_t *const out = p->out_extent;
    return column / (out[1] * out[2]) * p->y_step[0] + column / out[2] % out[1] * p->y_step[1] +
           column % out[2] * p->y_step[2];
}

static void store(const struct block *b, void *c)
{
    const struct weft_product *p = b->p;
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t j = 0; j < b->columns; j++) {
            const int64_t at = i * COLUMNS + j;
            const union weft_k_number x = p->kernel->form == WEFT_K_I32
                                              ? (union weft_k_number){.bits = ((const uint32_t *)b->sum)[at]}
                                              : ((const union weft_k_number *)b->sum)[at];
            weft_k_put(p->c_dtype, c, b->c_place + (b->row + i) * p->c_row + column_place(p, b->column + j), x);
        }
}

/* Where the operands and results of a unit begin. */
static void place_block(struct block *b, int64_t unit)
{
    const struct weft_product *p = b->p;
    const int64_t columns = blocks(p->n, COLUMNS), rows = blocks(p->m, ROWS);
    b->column = unit % columns * COLUMNS;
    b->row = unit / columns % rows * ROWS;
    b->columns = p->n - b->column < COLUMNS ? p->n - b->column : COLUMNS;
    b->rows = p->m - b->row < ROWS ? p->m - b->row : ROWS;
    int64_t outer = unit / columns / rows;
    b->a_place = b->b_place = b->c_place = 0;
    if (p->conv) {
        const int64_t group = outer % p->groups, image = outer / p->groups;
        b->a_place = group * p->m * p->a_row;
        b->b_place = image * p->x_image + group * p->channels * p->b_row;
        b->c_place = image * p->y_image + group * p->m * p->c_row;
    }
    for (int i = p->batch_rank - 1; i >= 0; i--) {
        const int64_t at = outer % p->batch[i];
        outer /= p->batch[i];
        b->a_place += at * p->a_batch[i];
        b->b_place += at * p->b_batch[i];
        b->c_place += at * p->c_batch[i];
    }
}

void weft_product_run(const struct weft_product *p, void *c, const void *a, const void *b, void *scratch, int part,
                      int parts)
{
    struct block block = {.p = p, .a = a, .b = b, .number = scratch};
    block.right = block.number + COLUMNS;
    block.sum = (char *)block.right + COLUMNS * sizeof(int64_t);
    int64_t begin, end;
    weft_share(p->units, 1, part, parts, &begin, &end);
    for (; begin < end; begin++) {
        place_block(&block, begin);
        memset(block.number, 0, COLUMNS * sizeof *block.number);
        memset(block.sum, 0, ROWS * COLUMNS * sizeof(int64_t)); /* also the double 0 */
        if (p->conv)
            add_convolution(&block);
        else
            add_product(&block);
        store(&block, c);
    }
}
