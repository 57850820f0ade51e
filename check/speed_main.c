/* SPDX-License-Identifier: Apache-2.0 */
/* speed_main.c: which cases weft-check --bench times: those of shape files, or drawn at random; and what families get
 * for making operands. */
#include "runtime/runtime.h"
#include "check/speed.h"

#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PATH = 1024 };
#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
#define BLOCK ((size_t)64 << 20)

struct speed_block {
    struct speed_block *next;
    void *map;
    size_t bytes;
    char *free, *end; /* what is left of it */
};
/* --- for families ------------------------------------------------------------------------------------------------- */

size_t weft_bench_cache(const struct weft_bench *bench) { return weft_context_target(bench->context)->l2; }

static struct speed_block *new_block(struct weft_bench *bench, size_t least)
{
    const size_t bytes = least < BLOCK ? BLOCK : least;
    struct speed_block *const block = malloc(sizeof *block);
    char *const map = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                           -1, 0);
    if (!block || map == MAP_FAILED) {
        fputs("weft-check: out of memory\n", stderr);
        exit(1);
    }
    char *const begin = map + -(uintptr_t)map % HUGE_PAGE;
    (void)madvise(begin, bytes, MADV_HUGEPAGE); /* a wish */
    *block = (struct speed_block){bench->blocks, map, bytes + HUGE_PAGE, begin, begin + bytes};
    bench->blocks = block;
    return block;
}

/* One behind the other on huge pages where the system has them, as in the arena of a plan (runtime/context.c): our
 * arrays, the probes' and what peers pack alike. Staggered, so that they do not all begin in the same cache set. */
void *weft_bench_alloc(struct weft_bench *bench, size_t bytes)
{
    const size_t room = (bytes + 2 * PAGE - 1) / PAGE * PAGE;
    struct speed_block *block = bench->blocks;
    if (!block || (size_t)(block->end - block->free) < room)
        block = new_block(bench, room);
    char *const begin = block->free;
    block->free += room;
    bench->stagger = (bench->stagger + 13 * 64) % PAGE;
    return begin + bench->stagger;
}

void speed_free(struct weft_bench *bench)
{
    for (struct speed_block *block; (block = bench->blocks);) {
        bench->blocks = block->next;
        munmap(block->map, block->bytes);
        free(block);
    }
}

static uint64_t next_random(struct weft_bench *bench) /* splitmix64 */
{
    uint64_t z = bench->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

float *weft_bench_floats(struct weft_bench *bench, int64_t n)
{
    float *const x = weft_bench_alloc(bench, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((int32_t)next_random(bench) * 0x1p-31);
    return x;
}

int64_t weft_bench_between(struct weft_bench *bench, int64_t low, int64_t high)
{
    return low + (int64_t)(next_random(bench) % ((uint64_t)(high - low) + 1));
}

int64_t weft_bench_size(struct weft_bench *bench, int64_t low, int64_t high)
{
    const double share = (double)(next_random(bench) >> 11) * 0x1p-53;
    const int64_t size = (int64_t)llround((double)low * pow((double)high / (double)low, share));
    return size < low ? low : size > high ? high : size;
}

/* --- which cases -------------------------------------------------------------------------------------------------- */

static bool matches(const struct speed_options *options, const char *name)
{
    for (int i = 0; i < options->pattern_count; i++)
        if (!fnmatch(options->patterns[i], name, 0))
            return true;
    return options->pattern_count == 0;
}

static bool wanted(const struct speed_options *options, const struct weft_case *c)
{
    return matches(options, c->family->name) || matches(options, c->group) || matches(options, c->name);
}

static int is_shape_file(const struct dirent *entry)
{
    const char *const dot = strrchr(entry->d_name, '.');
    return dot && !strcmp(dot, ".shapes");
}

/* All files of the folder, in the order of their names. */
static bool read_folder(struct speed_shapes *shapes, const char *folder, char *error, size_t bytes)
{
    struct dirent **entries;
    const int n = scandir(folder, &entries, is_shape_file, alphasort);
    if (n <= 0) {
        snprintf(error, bytes, "no shape files in %s; --shapes=FILE names one", folder);
        return false;
    }
    bool good = true;
    for (int i = 0; i < n; i++) {
        char path[PATH];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        good = good && speed_shapes_read(shapes, path, error, bytes);
        free(entries[i]);
    }
    free(entries);
    return good;
}

/* The words of a random case are its name: they can be copied into a shape file. */
static bool draw_cases(struct weft_bench *bench, struct speed_shapes *shapes, char *error, size_t bytes)
{
    static const struct weft_bench_family *const families[] = {
#define BENCH(family) &weft_bench_##family,
#include WEFT_BENCH_LIST
    };
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (!matches(bench->options, families[i]->name))
            continue;
        char words[256], group[WEFT_CASE_NAME], line[512];
        snprintf(group, sizeof group, "random-%s", families[i]->name);
        for (int n = 0; n < bench->options->random; n++) {
            families[i]->draw(bench, words, sizeof words);
            snprintf(line, sizeof line, "%s %d %s", families[i]->name, n, words);
            if (!speed_shapes_add(shapes, group, line, error, bytes))
                return false;
            struct weft_case *const c = &shapes->cases[shapes->count - 1];
            snprintf(c->name, sizeof c->name, "%.*s", WEFT_CASE_NAME - 1, words);
            for (char *p = c->name; *p; p++)
                *p = *p == ' ' ? ',' : *p;
        }
    }
    return true;
}

static bool choose(struct weft_bench *bench, struct speed_shapes *shapes, char *error, size_t bytes)
{
    const struct speed_options *const options = bench->options;
    if (options->random)
        return draw_cases(bench, shapes, error, bytes);
    return options->shapes ? speed_shapes_read(shapes, options->shapes, error, bytes)
                           : read_folder(shapes, WEFT_SHAPES, error, bytes);
}

/* The limit, the plain loops, the best peer, then every peer that a family of these cases has. */
static void choose_columns(struct speed_report *report, const struct speed_shapes *shapes)
{
    report->column[report->columns++] = "limit";
    report->column[report->columns++] = "ref";
    report->column[report->columns++] = "best";
    for (int i = 0; i < shapes->count; i++)
        for (const struct weft_peer *peer = shapes->cases[i].family->peers; peer && peer->name; peer++) {
            int at = 0;
            while (at < report->columns && strcmp(report->column[at], peer->name) != 0)
                at++;
            if (at == report->columns && at < SPEED_RATIOS)
                report->column[report->columns++] = peer->name;
        }
}

static void print_head(const struct speed_options *options, const struct speed_report *report)
{
    char text[64];
    weft_cpu_describe(options->cpu, text, sizeof text);
    if (options->json) {
        printf("{\"machine\": \"%s\", \"cpu\": \"%s\", \"seed\": %llu}\n", options->brand, text,
               (unsigned long long)options->seed);
        return;
    }
    printf("%s, kernels up to %s, seed %llu\n", options->brand, text, (unsigned long long)options->seed);
    printf("us: of one thread its processor time; limit: our share of what the probe in the last column allows; "
           "else times of others over ours\n");
    if (report->columns == 3)
        printf("peers: none built in (libdnnl-dev, libopenblas-dev; meson -Dpeers=enabled)\n");
}

const char *volatile speed_current;

int speed_main(const struct speed_options *options, int *ret_cases)
{
    struct weft_bench bench = {.options = options, .random = options->seed};
    struct speed_report report = {.out = stdout, .json = options->json};
    struct speed_shapes shapes = {0};
    char error[PATH];
    *ret_cases = 0;
    if (!choose(&bench, &shapes, error, sizeof error)) {
        fprintf(stderr, "weft-check: %s\n", error);
        speed_shapes_close(&shapes);
        return 2;
    }
    choose_columns(&report, &shapes);
    const struct weft_context_options context = {.size = sizeof context};
    if (weft_open(&context, &bench.context) != 0) {
        fputs("weft-check: out of memory\n", stderr);
        exit(1);
    }
    bool good = true;
    for (int i = 0; i < shapes.count; i++) {
        if (!wanted(options, &shapes.cases[i]))
            continue;
        if (options->list) {
            printf("%-10s %-24s %s\n", shapes.cases[i].family->name, shapes.cases[i].group, shapes.cases[i].name);
        } else {
            if (*ret_cases == 0)
                print_head(options, &report);
            speed_current = shapes.cases[i].name;
            good &= speed_case(&bench, &shapes.cases[i], &report);
            speed_current = NULL;
        }
        ++*ret_cases;
    }
    speed_report_close(&report);
    weft_close(bench.context);
    speed_shapes_close(&shapes);
    return good ? 0 : 1;
}

void speed_print_groups(const struct speed_options *options, FILE *out)
{
    struct weft_bench bench = {.options = options};
    struct speed_shapes shapes = {0};
    char error[PATH];
    const bool read = choose(&bench, &shapes, error, sizeof error);
    fputs(read ? "groups with timed cases:" : error, out);
    for (int i = 0; read && i < shapes.count; i++) {
        int first = 0;
        while (strcmp(shapes.cases[first].group, shapes.cases[i].group) != 0)
            first++;
        if (first == i)
            fprintf(out, " %s", shapes.cases[i].group);
    }
    fputc('\n', out);
    speed_shapes_close(&shapes);
}
