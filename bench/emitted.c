/* SPDX-License-Identifier: Apache-2.0 */
/* emitted.c: what the C back end is worth: kernels as strip programs, interpreted and compiled from emitted C, in turns
 * on one thread; microseconds, the least and the median of the rounds, and milliseconds that the compiler takes.
 *
 *     build/tests/bench_emitted [baseline | avx2 | avx512 [PART OF A NAME]] */
#include "codegen/emit.h"
#include "codegen/strips.h"
#include "tests/unit/emit_forms.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 21, ARRAYS = 8 };

static const char chain[] = "kernel @chain(in %x: f32[N,C], in %z: f32[N,C], out %y: f32[N,C]) {\n"
                            "  axis r in N\n  axis c in C\n"
                            "  phase r, c {\n"
                            "    sweep r, c {\n"
                            "      %0: f32 = load %x[r, c]\n"
                            "      %1: f32 = load %z[r, c]\n"
                            "      %2: f32 = const 0.7\n"
                            "      %3: f32 = mul %0, %2\n"
                            "      %4: f32 = add %3, %1\n"
                            "      %5: f32 = relu %4\n"
                            "      %6: f32 = mul %5, %5\n"
                            "      %7: f32 = sub %6, %1\n"
                            "      %8: f32 = abs %7\n"
                            "      %9: f32 = max %8, %0\n"
                            "      %10: f32 = clamp(-3, 3) %9\n"
                            "      %11: f32 = fma %10, %2, %1\n"
                            "      %12: f32 = neg %11\n"
                            "      %13: f32 = leaky_relu(0.01) %12\n"
                            "      %14: f32 = add %13, %0\n"
                            "      store %y[r, c], %14\n"
                            "    }\n"
                            "  }\n"
                            "}\n";
static const char gelu[] = "kernel @gelu(in %x: f32[N,C], out %y: f32[N,C]) {\n"
                           "  axis r in N\n  axis c in C\n"
                           "  phase r, c {\n"
                           "    sweep r, c {\n"
                           "      %0: f32 = load %x[r, c]\n"
                           "      %1: f32 = gelu %0\n"
                           "      store %y[r, c], %1\n"
                           "    }\n"
                           "  }\n"
                           "}\n";

static const struct kernel {
    const char *name, *text;
    int64_t n, c;
} kernels[] = {
    {"softmax 4096x768", softmax_rows, 4096, 768},
    {"softmax over columns 768x4096", softmax_columns, 4096, 768},
    {"layer norm 4096x768", layer_norm, 4096, 768},
    {"layer norm 57600x384", layer_norm, 57600, 384},
    {"rms norm 4096x768", rms_norm, 4096, 768},
    {"softmax 65536x17", softmax_rows, 65536, 17},
    {"layer norm 65536x64", layer_norm, 65536, 64},
    {"mean and minimum over columns 4096x1024", mean_columns, 1024, 4096},
    {"12 ops on 16 M", chain, 4096, 4096},
    {"12 ops on 65536", chain, 256, 256},
    {"gelu on 65536", gelu, 256, 256},
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The function of a source, with the milliseconds that it takes to get there; NULL: only the time is asked for. */
static weft_program_code *compile(const char *source, const char *name, uint32_t cpu, double *ret_ms)
{
    char folder[] = "/tmp/weft-bench-XXXXXX", command[1024] = "cc", path[64];
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return NULL;
    FILE *const file = fopen("k.c", "w");
    if (!file || fputs(source, file) < 0 || fclose(file) != 0)
        return NULL;
    for (const char *const *flag = weft_emit_flags(cpu); *flag; flag++)
        snprintf(command + strlen(command), sizeof command - strlen(command), " %s", *flag);
    snprintf(command + strlen(command), sizeof command - strlen(command), " k.c -o ./k.so -lm");
    const double begin = now();
    const int status = system(command);
    *ret_ms = (now() - begin) / 1e3;
    snprintf(path, sizeof path, "%s/k.so", folder);
    void *const object = status == 0 ? dlopen(path, RTLD_NOW) : NULL;
    void *const symbol = object && name ? dlsym(object, name) : NULL;
    weft_program_code *code;
    memcpy(&code, &symbol, sizeof code);
    if (unlink("k.c") != 0 || unlink("k.so") != 0 || chdir("/") != 0 || rmdir(folder) != 0)
        return NULL;
    return code;
}

struct bench {
    struct weft_context *context;
    const struct kernel *kernel;
    uint32_t cpu;
};

static void open_tensors(const struct weft_form *form, const int64_t *symbols, struct weft_tensor *tensor,
                         void **argument)
{
    for (uint32_t i = 0; i < form->arrays; i++) {
        const struct weft_form_array *array = &form->array[i];
        int64_t elements = 1;
        tensor[i] = (struct weft_tensor){.dtype = array->dtype, .rank = array->rank};
        for (int d = array->rank - 1; d >= 0; d--) {
            tensor[i].extent[d] = weft_dim_evaluate(form->dims, array->extent[d], symbols);
            tensor[i].stride[d] = elements;
            elements *= tensor[i].extent[d];
        }
        float *const data = aligned_alloc(64, (size_t)(elements * 4 + 127) / 64 * 64);
        for (int64_t k = 0; data && k < elements; k++)
            data[k] = (float)(k * 7919 % 1000) * 0.004f - 2;
        argument[i] = data;
    }
}

static void time_both(struct weft_program *program, weft_program_code *code, void **argument, double time[2][ROUNDS])
{
    void *const scratch = aligned_alloc(64, (program->scratch + 127) / 64 * 64);
    for (int round = -3; round < ROUNDS; round++)
        for (int way = 0; way < 2; way++) {
            program->code = way ? code : NULL;
            const double begin = now();
            weft_program_run(program, argument, scratch, NULL, 0, 1);
            if (round >= 0)
                time[way][round] = now() - begin;
        }
    for (int way = 0; way < 2; way++)
        qsort(time[way], ROUNDS, sizeof time[way][0], by_size);
    free(scratch);
}

static int measure(void *arg)
{
    const struct bench *b = arg;
    struct weft_arena arena;
    weft_arena_open(&arena, b->context);
    const char *fault = NULL, *why;
    struct weft_dims *const dims = weft_dims_new(&arena);
    struct weft_form *const form = weft_form_parse(b->kernel->text, strlen(b->kernel->text), dims, &arena, &fault);
    const bool reverse = form && strcmp(weft_symbol_at(dims, 0)->name, "C") == 0;
    const int64_t symbols[2] = {reverse ? b->kernel->c : b->kernel->n, reverse ? b->kernel->n : b->kernel->c};
    struct weft_tensor tensor[ARRAYS];
    void *argument[ARRAYS];
    open_tensors(form, symbols, tensor, argument);
    struct weft_program *const program =
        weft_strips_make(form, b->cpu, symbols, tensor, 1, weft_arena_new(&arena, weft_strips_bytes(form)));
    if ((why = weft_emit_refuse(form, program)) != NULL) {
        printf("| %s | is refused: it %s |\n", b->kernel->name, why);
        return WEFT_OK;
    }
    struct weft_text source = {.context = b->context, .arena = &arena};
    char name[WEFT_EMIT_NAME];
    double ms, time[2][ROUNDS];
    weft_emit_source(form, program, &source);
    weft_emit_name(form, name);
    weft_program_code *const code = compile(source.data, name, b->cpu, &ms);
    if (!code)
        return WEFT_ERR_UNSUPPORTED;
    time_both(program, code, argument, time);
    printf("| %s | %.1f (%.1f) | %.1f (%.1f) | %.2f | %.0f |\n", b->kernel->name, time[0][0], time[0][ROUNDS / 2],
           time[1][0], time[1][ROUNDS / 2], time[0][0] / time[1][0], ms);
    fflush(stdout);
    for (uint32_t i = 0; i < form->arrays; i++)
        free(argument[i]);
    weft_arena_close(&arena);
    return WEFT_OK;
}

static int time_prelude(void *arg)
{
    const struct bench *b = arg;
    struct weft_text text = {.context = b->context};
    double ms, least = 1e9, empty = 1e9;
    weft_emit_prelude(b->cpu, /* doubles= */ true, &text);
    for (int round = 0; round < 7; round++) {
        compile(text.data, NULL, b->cpu, &ms);
        least = ms < least ? ms : least;
        compile("int weft_nothing;\n", NULL, b->cpu, &ms);
        empty = ms < empty ? ms : empty;
    }
    printf("the text in front alone: %.0f ms; an empty file %.0f ms\n", least, empty);
    weft_text_close(&text);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    bench.cpu = cpu.flags;
    if ((argc > 1 && !weft_cpu_parse(argv[1], &bench.cpu)) || weft_open(NULL, &bench.context) != WEFT_OK)
        return 2;
    printf("| kernel | interpreted | compiled | times | cc, ms |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        bench.kernel = &kernels[i];
        if (argc > 2 && !strstr(kernels[i].name, argv[2]))
            continue;
        if (weft_protected(bench.context, measure, &bench) != WEFT_OK)
            return 1;
    }
    weft_protected(bench.context, time_prelude, &bench);
    weft_close(bench.context);
    return 0;
}
