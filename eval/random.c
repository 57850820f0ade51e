/* SPDX-License-Identifier: Apache-2.0 */
/* random.c: random numbers as functions of seed, stream, step and the element's index; FORMAT.md states them bit
 * by bit, up to the logarithm, root, sine and cosine of the C library. */
#include "eval/rule.h"
#include "kernels/plain/shared.h"
#include "kernels/philox.h"

#include <math.h>

struct source {
    uint64_t seed;
    uint32_t stream, step;
};

static struct source source_of(const struct weft_eval *eval, unsigned step)
{
    struct source source = {.seed = (uint64_t)weft_eval_int(eval, WEFT_ATTR_seed),
                            .stream = (uint32_t)weft_eval_int(eval, WEFT_ATTR_stream)};
    if (weft_node_of(eval->graph, eval->node)->operands > step)
        source.step = (uint32_t)(uint64_t)weft_load_integer(WEFT_I64, eval->in[step].data, 0);
    return source;
}

static struct weft_philox block_of(const struct source *source, uint64_t block)
{
    return weft_philox((const uint32_t[]){(uint32_t)block, (uint32_t)(block >> 32), source->stream, source->step},
                       source->seed);
}

/* In [0, 1), with as many bits as the significand of the dtype has: two words for f64, one for the others. */
static double uniform(const struct source *source, int dtype, int64_t i)
{
    const uint64_t index = (uint64_t)i;
    if (dtype == WEFT_F64) {
        const struct weft_philox words = block_of(source, index / 2);
        const uint64_t high = words.word[index % 2 * 2], low = words.word[index % 2 * 2 + 1];
        return (double)((high << 32 | low) >> 11) * 0x1p-53;
    }
    const int bits = dtype == WEFT_F16 ? 11 : dtype == WEFT_BF16 ? 8 : 24;
    return ldexp(block_of(source, index / 4).word[index % 4] >> (32 - bits), -bits);
}

/* Box and Muller: two words give two numbers. */
static double normal(const struct source *source, int64_t i)
{
    const uint64_t index = (uint64_t)i;
    const struct weft_philox words = block_of(source, index / 4);
    const unsigned pair = index % 4 / 2 * 2;
    const double radius = sqrt(-2 * log(((double)words.word[pair] + 1) * 0x1p-32));
    const double angle = 6.283185307179586476925 * ((double)words.word[pair + 1] * 0x1p-32);
    return radius * (index % 2 ? sin(angle) : cos(angle));
}

static void draw_all(struct weft_eval *eval, bool is_normal)
{
    const struct weft_tensor *out = &eval->out[0];
    const struct source source = source_of(eval, 0);
    const double from = weft_attr_real(eval->graph, eval->node, is_normal ? WEFT_ATTR_mean : WEFT_ATTR_low);
    const double to = weft_attr_real(eval->graph, eval->node, is_normal ? WEFT_ATTR_deviation : WEFT_ATTR_high);
    int64_t element = 0;
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1, &out); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++, element++) {
            const double z = is_normal ? normal(&source, element) : uniform(&source, out->dtype, element);
            const union weft_number x = {.real = from + (is_normal ? to : to - from) * z};
            weft_eval_store(out, walk.place[0] + i * walk.step[0], 1, 1, &x);
        }
}

void weft_eval_rand_uniform(struct weft_eval *eval) { draw_all(eval, false); }
void weft_eval_rand_normal(struct weft_eval *eval) { draw_all(eval, true); }

void weft_eval_bernoulli(struct weft_eval *eval)
{
    const struct weft_tensor *out = &eval->out[0], *in = &eval->in[0];
    const struct source source = source_of(eval, 1);
    const int dtype = in->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    int64_t element = 0;
    struct weft_walk walk;
    for (weft_walk_open(&walk, 2, (const struct weft_tensor *const[]){out, in}); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++, element++) {
            union weft_number p;
            weft_eval_load(in, walk.place[1] + i * walk.step[1], 1, 1, &p);
            p.integer = uniform(&source, dtype, element) < p.real;
            weft_eval_store(out, walk.place[0] + i * walk.step[0], 1, 1, &p);
        }
}

static void add_up(const union weft_number *x, int64_t classes, double *running)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < classes; i++)
        largest = x[i].real > largest ? x[i].real : largest;
    for (int64_t i = 0; i < classes; i++)
        running[i] = sum += x[i].real == largest ? 1 : exp(x[i].real - largest);
}

void weft_eval_multinomial(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const struct source source = source_of(eval, 1);
    const int64_t classes = in->extent[in->rank - 1], samples = out->extent[in->rank - 1];
    const int64_t elements = weft_tensor_count(in), results = weft_tensor_count(out);
    union weft_number *x = weft_eval_numbers(eval, in), *drawn = weft_eval_scratch(eval, results, sizeof *drawn);
    double *running = weft_eval_scratch(eval, classes, sizeof *running);
    if (x && drawn && running) {
        for (int64_t i = 0; i < results; i++) {
            if (i % samples == 0 && classes > 0)
                add_up(x + i / samples * classes, classes, running);
            drawn[i].integer = weft_k_draw(running, classes, uniform(&source, WEFT_F64, i));
        }
        weft_eval_store_all(out, drawn);
    }
    weft_eval_drop(eval, running, classes, sizeof *running);
    weft_eval_drop_numbers(eval, drawn, results);
    weft_eval_drop_numbers(eval, x, elements);
}
