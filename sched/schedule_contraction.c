/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_contraction.c: products of matrices and convolutions. */
#include "sched/format.h"
#include "sched/select.h"

/* f32 has kernels of its own; f64 and integers have one for both ops. */
static bool choose_f32_or_product(const struct weft_scheduling *s, struct weft_step *step,
                                  const struct weft_step_kind *kind)
{
    const bool is_f32 = weft_step_is_f32(s->graph, step->node);
    if (!is_f32 && !weft_step_is_product(s->graph, step->node))
        return weft_schedule_refuse(step, "its kernels read, add up and give f32 only");
    step->kind = is_f32 ? kind : &weft_step_product;
    return true;
}

static bool choose_f32(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (!weft_step_is_f32(s->graph, step->node))
        return weft_schedule_refuse(step, "its kernels read, add up and give f32 only");
    step->kind = kind;
    return true;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* A product reads and writes matrices whose rows or whose columns are contiguous; others it copies first, and writes an
 * element at a time. */
static int64_t matrix_ps(const struct weft_formats *f, struct weft_pin pin, uint32_t layout)
{
    const weft_val value = weft_pin_value(f->graph, pin);
    const int rank = weft_type_of(f->graph, value)->rank;
    const int fastest = weft_format_fastest_axis(f, value, layout);
    if (fastest == WEFT_NO_DIM || fastest >= rank - 2)
        return 0;
    return !pin.result ? weft_format_move_ps(f, weft_format_bytes(f, value), WEFT_PRICE_convert_single_near)
                       : weft_format_extra_ps(f, WEFT_PRICE_write_private, weft_format_bytes(f, value),
                                              WEFT_PRICE_access_strided);
}

static int64_t product_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const int64_t turned = matrix_ps(f, operand, layout);
    return (turned ? turned : weft_format_product_read_ps(f, operand, layout, result)) +
           (weft_format_mixes_rows(f, operand, layout, result) ? 0 : WEFT_FORMAT_TIE);
}

static int64_t write_product(const struct weft_formats *f, weft_node n, uint32_t layout)
{
    return matrix_ps(f, (struct weft_pin){.node = n, .result = true}, layout) +
           weft_format_product_write_ps(f, n, layout);
}

const struct weft_scheduler weft_scheduler_matrix = {
    .name = "matrix", .choose = choose_f32_or_product, .write_ps = write_product, .read_ps = product_read_ps};
/* --- attention ---------------------------------------------------------------------------------------------------- */

/* Queries, keys, values and results are copied where the last axis is not contiguous, the mask too. Of sums, which have
 * three axes, each is read or written on its own. */
static int64_t attention_ps(const struct weft_formats *f, struct weft_pin pin, uint32_t layout)
{
    const weft_val value = weft_pin_value(f->graph, pin);
    const int fastest = weft_format_fastest_axis(f, value, layout), rank = weft_type_of(f->graph, value)->rank;
    if (fastest == WEFT_NO_DIM || fastest == rank - 1 || rank == 3)
        return 0;
    return weft_format_move_ps(f, weft_format_bytes(f, value), WEFT_PRICE_convert_single_near);
}
static int64_t read_attention(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return attention_ps(f, operand, layout) +
           (weft_format_mixes_rows(f, operand, layout, result) ? 0 : WEFT_FORMAT_TIE);
}

const struct weft_scheduler weft_scheduler_attention = {
    .name = "attention", .choose = choose_f32, .read_ps = read_attention, .result_ps = attention_ps};

/* --- convolutions ------------------------------------------------------------------------------------------------- */

const struct weft_scheduler weft_scheduler_convolution = {
    .name = "convolution", .choose = choose_f32_or_product, .write_ps = weft_format_conv_write_ps,
    .read_ps = weft_format_conv_read_ps};
/* It gathers operands in any order of axes, and results are few: no layout is better than another. */
const struct weft_scheduler weft_scheduler_convolution_gradient = {
    .name = "convolution gradient", .choose = choose_f32};
const struct weft_scheduler weft_scheduler_transposed_convolution = {
    .name = "transposed convolution", .choose = choose_f32, .write_ps = weft_format_conv_write_ps,
    .read_ps = weft_format_conv_read_ps};
