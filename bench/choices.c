/* SPDX-License-Identifier: Apache-2.0 */
/* choices.c: is the choice of layouts a good one? Plans of one graph by other layouts, run in turns in one process:
 *
 *     build/tests/bench_choices [--threads N] [--seconds S] [--forced PRICES] FILE.weft…
 *
 *   chosen          what weft does
 *   without         no propagate_memory_format: what the graph leaves open is row-major
 *   row_major       the same of a graph that states no layout of its own but those of parameters and results
 *   channels_last   by the prices of a file, which make row-major kernels dear (bench/layouts.py)
 *
 * A line of JSON for each file: milliseconds of each plan (median of its rounds), the plan that was the fastest of
 * them, and how long the chosen one takes beside it, the median of the ratios within a round. Plans with the same steps
 * are one plan. One thread is timed in its own processor time, so that other work on the machine costs what it does to
 * the caches. */
#include <weft/weft.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHOSEN, WITHOUT, ROW_MAJOR, CHANNELS_LAST, VARIANTS, MOST_ROUNDS = 4000, MOST_PORTS = 64 };
static const char *const names[VARIANTS] = {"chosen", "without", "row_major", "channels_last"};

struct options {
    int threads;
    double seconds;
    const char *forced;
};

struct variant {
    struct weft_context *context;
    struct weft_graph *graph;
    struct weft_plan *plan;
    struct weft_execution *execution;
    void *input[MOST_PORTS];
    char *text, *steps;
    int same;      /* the first variant with these steps */
    double *ms;    /* by round */
    double median;
};

static _Noreturn void give_up(const char *path, const char *what)
{
    fprintf(stderr, "bench_choices: %s: %s\n", path, what);
    exit(1);
}

static double now_ms(bool alone)
{
    struct timespec t;
    clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *list, int count)
{
    double copy[MOST_ROUNDS];
    memcpy(copy, list, (size_t)count * sizeof *list);
    qsort(copy, (size_t)count, sizeof *copy, by_size);
    return count % 2 ? copy[count / 2] : (copy[count / 2 - 1] + copy[count / 2]) / 2;
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static char *read_file(const char *path)
{
    FILE *const file = fopen(path, "rb");
    char *text = NULL;
    if (!file || fseek(file, 0, SEEK_END) != 0)
        give_up(path, "cannot be read");
    const long bytes = ftell(file);
    rewind(file);
    text = calloc((size_t)bytes + 1, 1);
    if (!text || fread(text, 1, (size_t)bytes, file) != (size_t)bytes)
        give_up(path, "cannot be read");
    fclose(file);
    return text;
}

/* Layouts of intermediate values go: what stands in braces before " =", and is not of a value that is returned. */
static void drop_layouts(char *text)
{
    for (char *line = text; *line;) {
        char *const end = line + strcspn(line, "\n"), *const equals = strstr(line, " = ");
        char *open = equals && equals < end ? memchr(line, '{', (size_t)(equals - line)) : NULL;
        char *const close = open ? memchr(open, '}', (size_t)(equals - open)) : NULL;
        char name[80] = "";
        sscanf(line, " %79[^: ]", name);
        char *const returned = strstr(text, "return");
        const bool is_returned = returned && strstr(returned, name); /* a longer name keeps more than it must */
        if (close && !is_returned && open[1] != '?')
            memset(open, ' ', (size_t)(close - open + 1));
        line = *end ? end + 1 : end;
    }
}

/* What of a plan decides its time: lines of steps, which have a kernel right of `!`. Views have none. */
static void keep_steps(char *text)
{
    char *to = text;
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n';
        char *const note = strstr(line, " ! ");
        if (!note || note >= next)
            continue;
        memmove(to, line, (size_t)(next - line));
        to += next - line;
    }
    *to = '\0';
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

/* Numbers between -1 and 1, or 0 and 1 where they are whole, in the strides that the plan wants. */
static void bind_input(struct variant *v, const char *path, size_t i)
{
    struct weft_port port = {.size = sizeof port};
    weft_plan_input(v->plan, i, &port);
    struct weft_tensor t = {.dtype = port.dtype, .rank = port.rank};
    size_t last = 1, size = port.dtype == WEFT_F32 || port.dtype == WEFT_I32 ? 4 : port.dtype == WEFT_F16 ? 2 : 8;
    for (int axis = 0; axis < port.rank; axis++) {
        if (port.extent[axis] < 0)
            give_up(path, "its sizes are open");
        t.extent[axis] = port.extent[axis];
        t.stride[axis] = port.stride[axis];
        last += (size_t)((port.extent[axis] - 1) * port.stride[axis]);
    }
    uint64_t state = i + 1;
    t.data = v->input[i] = aligned_alloc(4096, (last * size + 4096) / 4096 * 4096);
    if (!t.data)
        give_up(path, "no memory");
    memset(t.data, 0, last * size);
    for (size_t k = 0; k < last; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (port.dtype == WEFT_F32)
            ((float *)t.data)[k] = (float)(int32_t)(state >> 32) * 0x1p-31f;
        else if (port.dtype == WEFT_F16)
            ((uint16_t *)t.data)[k] = (uint16_t)(0x3000 | (state >> 48 & 0x8bff));
    }
    if (weft_bind_input(v->execution, i, &t) < 0)
        give_up(path, weft_execution_error(v->execution));
}

static void open_variant(struct variant *v, const char *path, int which, const struct options *o)
{
    const struct weft_context_options options = {.size = sizeof options, .threads = o->threads,
                                                 .prices = which == CHANNELS_LAST ? o->forced : NULL};
    char *const text = read_file(path);
    if (which == ROW_MAJOR)
        drop_layouts(text);
    if (which == WITHOUT || which == ROW_MAJOR)
        setenv("WEFT_SKIP", "propagate_memory_format", 1);
    if (weft_open(&options, &v->context) < 0)
        give_up(path, "a context cannot be opened");
    if (weft_parse(v->context, text, strlen(text), path, &v->graph) < 0 ||
        weft_compile(v->graph, NULL, &v->plan) < 0 || weft_plan_print(v->plan, &v->text) < 0)
        give_up(path, weft_last_error(v->context));
    unsetenv("WEFT_SKIP");
    v->steps = strdup(v->text);
    keep_steps(v->steps);
    if (weft_execution_create(v->plan, &v->execution) < 0 || weft_plan_inputs(v->plan) > MOST_PORTS)
        give_up(path, "cannot be run");
    for (size_t i = 0; i < weft_plan_inputs(v->plan); i++)
        bind_input(v, path, i);
    v->ms = calloc(MOST_ROUNDS, sizeof *v->ms);
    free(text);
}

static void close_variant(struct variant *v)
{
    const size_t inputs = weft_plan_inputs(v->plan);
    weft_execution_destroy(v->execution);
    weft_free_text(v->context, v->text);
    weft_plan_destroy(v->plan);
    weft_graph_destroy(v->graph);
    weft_close(v->context);
    for (size_t i = 0; i < inputs; i++)
        free(v->input[i]);
    free(v->ms);
    free(v->steps);
}

/* --- timing ------------------------------------------------------------------------------------------------------- */

/* Milliseconds of a run, so many in a row, behind one that fills the caches. */
static double sample(struct variant *v, const char *path, int runs, bool alone)
{
    if (weft_run(v->execution) < 0)
        give_up(path, weft_execution_error(v->execution));
    const double start = now_ms(alone);
    for (int i = 0; i < runs; i++)
        weft_run(v->execution);
    return (now_ms(alone) - start) / runs;
}

static void measure(const char *path, const struct options *o)
{
    struct variant variant[VARIANTS] = {0};
    const int variants = o->forced ? VARIANTS : CHANNELS_LAST;
    const bool alone = o->threads == 1;
    double most = 0;
    for (int i = 0; i < variants; i++) {
        open_variant(&variant[i], path, i, o);
        while (strcmp(variant[variant[i].same].steps, variant[i].steps) != 0)
            variant[i].same++;
        const double once = variant[i].same == i ? sample(&variant[i], path, 1, alone) : 0;
        most = once > most ? once : most;
    }
    const int runs = most < 1 ? (int)(1 / (most > 0.001 ? most : 0.001)) : 1;
    int rounds = 0;
    const double end = now_ms(false) + o->seconds * 1e3;
    for (; rounds < MOST_ROUNDS && (rounds < 9 || now_ms(false) < end); rounds++)
        for (int k = 0; k < variants; k++) {
            struct variant *const v = &variant[(rounds + k) % variants];
            if (v->same == (rounds + k) % variants)
                v->ms[rounds] = sample(v, path, runs, alone);
        }
    int best = 0;
    for (int i = 0; i < variants; i++) {
        variant[i].median = median(variant[variant[i].same].ms, rounds);
        best = variant[i].median < variant[best].median ? i : best;
    }
    double ratio[MOST_ROUNDS];
    for (int r = 0; r < rounds; r++)
        ratio[r] = variant[CHOSEN].ms[r] / variant[variant[best].same].ms[r];
    printf("{\"file\": \"%s\", \"ms\": {", path);
    for (int i = 0; i < variants; i++)
        printf("%s\"%s\": %.5f", i ? ", " : "", names[i], variant[i].median);
    int plans = 0;
    for (int k = 0; k < variants; k++)
        plans += variant[k].same == k;
    printf("}, \"best\": \"%s\", \"ratio\": %.4f, \"plans\": %d, \"rounds\": %d}\n", names[variant[best].same],
           median(ratio, rounds), plans, rounds);
    fflush(stdout);
    for (int i = 0; i < variants; i++)
        close_variant(&variant[i]);
}

int main(int argc, char **argv)
{
    struct options options = {.threads = 1, .seconds = 0.5};
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            options.threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            options.seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--forced") == 0)
            options.forced = argv[i + 1];
        else
            give_up(argv[i], "no such option");
    }
    if (i == argc)
        give_up("usage", "bench_choices [--threads N] [--seconds S] [--forced PRICES] FILE.weft...");
    for (; i < argc; i++)
        measure(argv[i], &options);
    return 0;
}
