/* SPDX-License-Identifier: Apache-2.0 */
/* conv_forms.c: is the form that a convolution takes the fastest of those that fit? Shapes at random, f32, x and y in
 * planes, without Winograd's transforms, by every form of kernels/conv/conv.h that fits.
 *
 *     build/tests/bench_conv_forms [COUNT [SEED [AXES [THREADS [LEVEL]]]]]
 *
 * AXES: 1 or 2 spatial ones. LEVEL: of the CPU, as weft_cpu_parse reads it. A line a shape: what the form that is taken
 * takes in microseconds (the least of some rounds), which form is the fastest, and the ratio; at the end the geometric
 * mean of the ratios. */
#include "kernels/kernels.h"
#include "runtime/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8, RUNS = 4, LINE = 64 };

struct timing {
    struct weft_context *context;
    struct weft_conv conv;
    struct weft_conv_data data;
    char *scratch; /* of all workers */
    int64_t ns;    /* the least of a run */
};

static void *memory(size_t bytes)
{
    void *const p = aligned_alloc(LINE, (bytes + 2 * LINE) / LINE * LINE);
    if (!p)
        abort();
    memset(p, 0, bytes);
    return p;
}

static int64_t between(uint64_t *seed, int64_t low, int64_t high)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((*seed >> 33) % (uint64_t)(high - low + 1));
}
static int64_t power_between(uint64_t *seed, int64_t low, int64_t high)
{
    const double part = (double)between(seed, 0, 1000) / 1000;
    return (int64_t)lround((double)low * pow((double)high / (double)low, part));
}

static struct weft_conv draw(uint64_t *seed, int axes, uint32_t cpu)
{
    struct weft_conv v = {.cpu = cpu, .cache = 1 << 20, .spatial = axes, .n = 1, .groups = 1, .w_packed = true,
                          .takes_turns = true};
    v.c = between(seed, 1, 8) * 16, v.o = between(seed, 1, 16) * 16;
    const int64_t taps = axes == 1 ? between(seed, 2, 7) : 3, step = between(seed, 0, 3) == 0 ? 2 : 1;
    const int64_t size = axes == 1 ? power_between(seed, 250, 8000) : power_between(seed, 7, 112);
    int64_t in = 1, out = 1, window = 1;
    for (int i = axes - 1; i >= 0; i--) {
        v.in_extent[i] = size, v.kernel[i] = taps, v.stride[i] = step, v.dilation[i] = 1, v.pad[i] = taps / 2;
        v.out_extent[i] = (size + 2 * v.pad[i] - taps) / step + 1;
        v.x_stride[2 + i] = in, v.y_stride[2 + i] = out, v.w_stride[2 + i] = window;
        in *= size, out *= v.out_extent[i], window *= taps;
    }
    v.x_stride[1] = in, v.y_stride[1] = out, v.w_stride[1] = window;
    v.x_stride[0] = in * v.c, v.y_stride[0] = out * v.o, v.w_stride[0] = window * v.c;
    return v;
}

static void member(void *arg, int worker, int workers)
{
    struct timing *const t = arg;
    struct weft_conv_data data = t->data;
    data.scratch = t->scratch + (size_t)worker * (t->conv.scratch + LINE) / LINE * LINE;
    for (int round = 0; round < ROUNDS; round++) {
        weft_barrier_wait(t->context->barrier, worker, workers);
        const int64_t start = weft_now_ns();
        for (int run = 0; run < RUNS; run++) {
            const int parts = t->conv.parts;
            for (int p = worker * parts / workers; p < (worker + 1) * parts / workers; p++)
                weft_conv_run(&t->conv, &data, p, parts);
            weft_barrier_wait(t->context->barrier, worker, workers);
        }
        const int64_t ns = (weft_now_ns() - start) / RUNS;
        if (worker == 0 && ns < t->ns)
            t->ns = ns;
    }
}

/* What a form takes, in ns. `wanted` as of weft_conv: 0 is what is chosen. */
static int64_t measure(struct timing *t, const struct weft_conv *shape, int32_t wanted, const float *w, int threads)
{
    t->conv = *shape;
    t->conv.wanted = wanted;
    weft_conv_prepare(&t->conv, threads);
    float *const pack = memory(weft_conv_pack_bytes(&t->conv));
    weft_conv_pack(&t->conv, pack, (const weft_loose_f32 *)w);
    t->data.w = pack;
    t->scratch = memory((t->conv.scratch + 2 * LINE) * (size_t)threads);
    t->ns = INT64_MAX;
    weft_gang_run(t->context, threads, member, t);
    free(t->scratch), free(pack);
    return t->ns;
}

/* Prints the line of a shape; returns the ratio. */
static double compare(struct weft_context *context, const struct weft_conv *shape, int threads)
{
    struct timing t = {.context = context};
    const size_t x = (size_t)shape->x_stride[0], y = (size_t)shape->y_stride[0];
    const size_t weights = (size_t)(shape->w_stride[0] * shape->o);
    float *const w = memory(weights * sizeof *w);
    for (size_t i = 0; i < weights; i++)
        w[i] = (float)(i % 13) - 6;
    float *const image = memory(x * sizeof *image);
    t.data.x = image, t.data.y = memory(y * sizeof *image);
    const int64_t chosen = measure(&t, shape, 0, w, threads);
    const char *const name = weft_conv_name(&t.conv);
    const char *fastest = name;
    int64_t least = chosen;
    for (int form = 1; form < WEFT_CONV_FORMS; form++) { /* without the formula in plain C */
        if (!weft_conv_fits(shape, form))
            continue;
        const int64_t ns = measure(&t, shape, 1 + form, w, threads);
        if (ns < least)
            least = ns, fastest = weft_conv_name(&t.conv);
    }
    /* Measured again as one of the forms, what was chosen may be faster by chance. */
    const double ratio = fastest == name ? 1 : (double)chosen / (double)least;
    printf("%4lld to %4lld channels, %5lld%s, %lld taps, step %lld: %-32s %9.1f us, fastest %-32s %.2f\n",
           (long long)shape->c, (long long)shape->o, (long long)shape->in_extent[0],
           shape->spatial == 2 ? " squared" : "", (long long)shape->kernel[0], (long long)shape->stride[0], name,
           (double)chosen / 1e3, fastest, ratio);
    free(t.data.y), free(image), free(w);
    return ratio;
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 40, axes = argc > 3 ? atoi(argv[3]) : 1;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const int threads = argc > 4 ? atoi(argv[4]) : 1;
    struct weft_cpu cpu;
    uint32_t level = WEFT_CPU_ALL;
    weft_cpu_detect(&cpu);
    if (count < 1 || axes < 1 || axes > 2 || threads < 1 || (argc > 5 && !weft_cpu_parse(argv[5], &level))) {
        fprintf(stderr, "usage: bench_conv_forms [COUNT [SEED [AXES [THREADS [LEVEL]]]]], AXES 1 or 2\n");
        return 2;
    }
    struct weft_context *context = NULL;
    const struct weft_context_options options = {.size = sizeof options, .threads = threads};
    if (weft_open(&options, &context) < 0)
        return 1;
    if (weft_gang_size(context) < threads) {
        fprintf(stderr, "bench_conv_forms: this machine has %d threads\n", weft_gang_size(context));
        return 2;
    }
    double sum = 0; /* of logarithms */
    printf("%s, seed %llu, %d threads\n", cpu.brand, (unsigned long long)seed, threads);
    for (int i = 0; i < count; i++) {
        const struct weft_conv shape = draw(&seed, axes, cpu.flags & level);
        sum += log(compare(context, &shape, threads));
    }
    printf("geometric mean %.3f\n", exp(sum / count));
    weft_close(context);
    return 0;
}
