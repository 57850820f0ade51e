/* SPDX-License-Identifier: Apache-2.0 */
/* compile_cache.c: what compiled kernels cost, made by the system's compiler and loaded from the cache:
 *
 *     build/tests/bench_compile_cache [ROUNDS [PROCESSES]]      in the repository's folder; 5, 2
 *
 * The sources are kernels as an emitter writes them: elementwise chains, softmax, norms, an activation with a bias,
 * each with numbers of its own, behind a prelude that is kernels/strip/vector.h and functions.h. A line for each number
 * of kernels and each most number of sources to an object ("even": as many objects as processes): milliseconds with an
 * empty cache, the part of it that weft_compiler_begin takes, then with a full one in the page cache (medians, minima
 * in brackets; the compiler is looked for and the folder checked each time), objects and their size. */
#include "codegen/compiler.h"
#include "kernels/kernels.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_KERNELS = 100, TEXT_BYTES = 2048, PRELUDE_BYTES = 1 << 17, MOST_ROUNDS = 100 };

/* --- sources ------------------------------------------------------------------------------------------------------ */

static const char chain[] =
    "void f(float *restrict y, const float *restrict a, const float *restrict b, long n)\n"
    "{\n"
    "    for (long i = 0; i + LANES <= n; i += LANES) {\n"
    "        const vf x = vload(a + i), z = vload(b + i);\n"
    "        vf t = vmax_x86(vall(0.f), vfma(x, vall(%d.5f), vall(0.25f)));\n"
    "        t = vmin_x86(vall(9.f), vfma(t, x, -z));\n"
    "        vstore(y + i, vsqrt(vabs(vfma(t, t, x) * 0.3f)) + 1.f);\n"
    "    }\n"
    "}\n";
static const char softmax[] =
    "void f(float *restrict y, const float *restrict a, long rows, long n)\n"
    "{\n"
    "    for (long r = 0; r < rows; r++, a += n, y += n) {\n"
    "        vf m = vall(-__builtin_inff()), s = vall(0.f);\n"
    "        for (long i = 0; i < n; i += LANES)\n"
    "            m = vmax_x86(m, vload(a + i) * %d.f);\n"
    "        float top = m[0];\n"
    "        for (int l = 1; l < LANES; l++)\n"
    "            top = top > m[l] ? top : m[l];\n"
    "        for (long i = 0; i < n; i += LANES) {\n"
    "            const vf e = vexp(vload(a + i) * %d.f - top);\n"
    "            vstore(y + i, e);\n"
    "            s += e;\n"
    "        }\n"
    "        float sum = 0;\n"
    "        for (int l = 0; l < LANES; l++)\n"
    "            sum += s[l];\n"
    "        for (long i = 0; i < n; i += LANES)\n"
    "            vstore(y + i, vload(y + i) / sum);\n"
    "    }\n"
    "}\n";
static const char norm[] =
    "void f(float *restrict y, const float *restrict a, const float *restrict g, long rows, long n)\n"
    "{\n"
    "    for (long r = 0; r < rows; r++, a += n, y += n) {\n"
    "        vf s = vall(0.f), q = vall(0.f);\n"
    "        for (long i = 0; i < n; i += LANES)\n"
    "            s += vload(a + i);\n"
    "        float mean = 0, square = 0;\n"
    "        for (int l = 0; l < LANES; l++)\n"
    "            mean += s[l] / n;\n"
    "        for (long i = 0; i < n; i += LANES) {\n"
    "            const vf d = vload(a + i) - mean;\n"
    "            q = vfma(d, d, q);\n"
    "        }\n"
    "        for (int l = 0; l < LANES; l++)\n"
    "            square += q[l] / n;\n"
    "        const vf scale = 1.f / vsqrt(vall(square + 1e-5f * %d));\n"
    "        for (long i = 0; i < n; i += LANES)\n"
    "            vstore(y + i, (vload(a + i) - mean) * scale * vload(g + i));\n"
    "    }\n"
    "}\n";
static const char bias[] =
    "void f(float *restrict y, const float *restrict a, const float *restrict b, long rows, long n)\n"
    "{\n"
    "    for (long r = 0; r < rows; r++, a += n, y += n)\n"
    "        for (long i = 0; i < n; i += LANES) {\n"
    "            const vf x = vload(a + i) + vload(b + i);\n"
    "            vstore(y + i, x / (1.f + vexp(x * -%d.702f)));\n"
    "        }\n"
    "}\n";

static char text[MOST_KERNELS][TEXT_BYTES];
static struct weft_source source[MOST_KERNELS];
static char prelude[PRELUDE_BYTES];

static void write_sources(void)
{
    static const char *const form[] = {chain, softmax, norm, bias};
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    for (int i = 0; i < MOST_KERNELS; i++) {
        snprintf(text[i], TEXT_BYTES, form[i % 4], i + 1, i + 1);
        source[i] = (struct weft_source){text[i], "f", cpu.flags & (WEFT_CPU_AVX2 | WEFT_CPU_AVX512)};
    }
}

/* A header without what it includes of this repository. */
static bool add_header(const char *path)
{
    FILE *const file = fopen(path, "r");
    char line[512];
    size_t used = strlen(prelude);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "#include \"", 10) != 0 && used + strlen(line) < PRELUDE_BYTES)
            used += (size_t)snprintf(prelude + used, PRELUDE_BYTES - used, "%s", line);
    if (file)
        fclose(file);
    else
        perror(path);
    return file;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static void empty_folder(const char *path, int *objects, long long *bytes)
{
    DIR *const entries = opendir(path);
    char inner[512];
    struct stat status;
    *objects = 0, *bytes = 0;
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        snprintf(inner, sizeof inner, "%.200s/%s", path, e->d_name);
        if (lstat(inner, &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        if (status.st_nlink == 1) {
            *objects += 1;
            *bytes += status.st_size;
        }
        unlink(inner);
    }
    if (entries)
        closedir(entries);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds from nothing to `count` functions; below 0 if one is missing. `ret_begin`: until compilers run. */
static double load(struct weft_context *context, const struct weft_compiler_options *options, int count, bool warm,
                   double *ret_begin)
{
    struct weft_compiler *compiler;
    struct weft_code *code;
    const struct weft_sources sources = {.prelude = prelude, .flags = "-fno-math-errno", .source = source,
                                         .count = count};
    const int64_t start = weft_now_ns();
    if (weft_compiler_open(context, options, &compiler) || weft_compiler_begin(compiler, &sources, &code))
        return -1;
    *ret_begin = (double)(weft_now_ns() - start) * 1e-6;
    if (weft_code_wait(code))
        return -1;
    const double ms = (double)(weft_now_ns() - start) * 1e-6;
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        ok = weft_code_function(code, i) && weft_code_was_cached(code, i) == warm;
        if (!ok)
            fprintf(stderr, "kernel %d: %s\n", i, weft_code_reason(code, i) ? weft_code_reason(code, i) : "cache");
    }
    weft_code_drop(code);
    weft_compiler_drop(compiler);
    return ok ? ms : -1;
}

static bool measure(struct weft_context *context, struct weft_compiler_options options, int count, int rounds)
{
    double begin[MOST_ROUNDS], cold[MOST_ROUNDS], warm[MOST_ROUNDS], same;
    int objects = 0;
    long long bytes = 0;
    for (int r = 0; r < rounds; r++) {
        cold[r] = load(context, &options, count, false, &begin[r]);
        warm[r] = load(context, &options, count, true, &same);
        empty_folder(options.folder, &objects, &bytes);
        if (cold[r] < 0 || warm[r] < 0)
            return false;
    }
    qsort(begin, (size_t)rounds, sizeof *begin, by_value);
    qsort(cold, (size_t)rounds, sizeof *cold, by_value);
    qsort(warm, (size_t)rounds, sizeof *warm, by_value);
    char most[16] = "even";
    if (options.per_object)
        snprintf(most, sizeof most, "%d", (int)options.per_object);
    printf("| %d | %s | %.1f (%.1f) | %.2f | %.2f (%.2f) | %d | %.0f |\n", count, most, cold[rounds / 2], cold[0],
           begin[rounds / 2], warm[rounds / 2], warm[0], objects, (double)bytes / 1024);
    fflush(stdout);
    return true;
}

int main(int count, char **argument)
{
    static const int kernels[] = {1, 20, 100}, most[] = {0, 16, 4, 1};
    const int rounds = count > 1 ? atoi(argument[1]) : 5, processes = count > 2 ? atoi(argument[2]) : 2;
    char folder[] = "/tmp/weft-compile-cache-XXXXXX";
    struct weft_context *context;
    bool ok = rounds > 0 && rounds <= MOST_ROUNDS && weft_open(NULL, &context) == WEFT_OK && mkdtemp(folder);
    if (!ok || !add_header("kernels/strip/vector.h") || !add_header("kernels/strip/functions.h"))
        return 1;
    write_sources();
    printf("| kernels | to an object | cold, ms | of it begin | warm, ms | objects | KiB |\n"
           "|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels && ok; k++)
        for (size_t m = 0; m < (kernels[k] > 1 ? sizeof most / sizeof *most : 1) && ok; m++)
            ok = measure(context, (struct weft_compiler_options){.folder = folder, .processes = processes,
                                                                 .per_object = most[m]}, kernels[k], rounds);
    rmdir(folder);
    weft_close(context);
    return !ok;
}
