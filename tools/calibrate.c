/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c: weft calibrate: measures what layouts cost on this machine, and leaves the prices where weft finds them.
 *
 * The file is written beside its place and renamed, so that a program that starts meanwhile reads the old prices or the
 * new ones. Prices that were measured wrongly do no harm to results: they choose between right plans. */
#include "tools/calibrate.h"
#include "ir/file.h"
#include "tools/tools.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_PRICE = 1000000000,
};
/* Where quartiles are so far apart, as a share of the median, other things were measured as well. */
static const double most_spread = 0.5;

struct options {
    const char *to, *cpu;
    int threads;
    bool quick, json, list, shipped;
};

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static void show_progress(int round, int rounds)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kround %d of %d", round + 1, rounds);
    else if (round == 0)
        fprintf(stderr, "weft calibrate: %d rounds\n", rounds);
}

static double price_of(const struct calibrate *c, const struct weft_prices *prices, const struct calibrate_job *j)
{
    const double beside = j->beside < 0 ? 0 : c->job[j->beside].median;
    switch (j->how) {
    case CALIBRATE_RATE:
        return j->median * 1e6 / j->units;
    case CALIBRATE_EACH:
        return (j->median - beside) * 1e6 / j->units;
    case CALIBRATE_STEP:
        return j->median;
    case CALIBRATE_SHARE:
        return 100 * (j->median / j->units) / (beside / c->job[j->beside].units);
    case CALIBRATE_EXTRA:
        return 100 + 100 * (j->median - beside) / (j->units * prices->price[j->streamed] * 1e-6);
    case CALIBRATE_NOTHING:
        break;
    }
    return 0;
}

/* Several jobs of one price are weighed alike, whatever their sizes. */
static void set_prices(const struct calibrate *c, struct weft_prices *prices, double spread[WEFT_PRICE_COUNT])
{
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++) {
        double sum = 0;
        int jobs = 0;
        for (int k = 0; k < c->jobs; k++) {
            const struct calibrate_job *const j = &c->job[k];
            if (j->how == CALIBRATE_NOTHING || j->price != i)
                continue;
            sum += price_of(c, prices, j);
            spread[i] = fmax(spread[i], j->spread);
            jobs++;
        }
        weft_assert(jobs > 0);
        prices->price[i] = (int32_t)fmin(fmax(round(sum / jobs), 1), MOST_PRICE);
    }
}

static int measure(void *user)
{
    struct calibrate *const c = user;
    if (!calibrate_open(c))
        return WEFT_ERR_NOMEM;
    calibrate_add_memory(c);
    calibrate_add_kernels(c);
    calibrate_time(c, show_progress);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    return WEFT_OK;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void print_table(const struct calibrate *c, const struct weft_prices *prices, const double *spread)
{
    printf("machine %s, %d thread%s\n", prices->machine, prices->threads, weft_tool_plural(prices->threads));
    printf("  %-25s %10s  %-10s  %10s  %7s  %7s\n", "price", "measured", "unit", "shipped", "ratio", "spread");
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++) {
        const struct weft_price_info *const info = &weft_price_list[i];
        const int32_t shipped = c->shipped->price[i];
        printf("  %-25s %10d  %-10s  %10d  %7.2f  %5.1f %%\n", info->name, prices->price[i], info->unit, shipped,
               (double)prices->price[i] / shipped, 100 * spread[i]);
    }
}

static void print_json(const struct calibrate *c, const struct weft_prices *prices, const double *spread)
{
    printf("{\"machine\": \"%s\", \"threads\": %d, \"prices\": {", prices->machine, prices->threads);
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        printf("%s\"%s\": {\"price\": %d, \"unit\": \"%s\", \"shipped\": %d, \"spread\": %.4f}", i ? ", " : "",
               weft_price_list[i].name, prices->price[i], weft_price_list[i].unit, c->shipped->price[i],
               spread[i]);
    printf("}}\n");
}

static void print_list(const struct weft_prices *shipped)
{
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        printf("  %-25s %10d  %-10s  %s\n", weft_price_list[i].name, shipped->price[i], weft_price_list[i].unit,
               weft_price_list[i].help);
}

static bool failed_at(const char *path)
{
    fprintf(stderr, "weft calibrate: %s: %s\n", path, strerror(errno));
    return false;
}

struct writing {
    struct weft_context *context;
    const struct weft_prices *prices;
    const char *path;
    bool done;
};

static int write_file(void *user)
{
    struct writing *const w = user;
    struct weft_text text = {.context = w->context};
    weft_prices_print(w->prices, &text);
    struct weft_file file;
    w->done = weft_file_create(&file, w->path);
    if (w->done)
        (void)fwrite(text.data, 1, text.length, file.to); /* what is wrong is seen below */
    w->done = (w->done && weft_file_commit(&file)) || failed_at(w->path);
    weft_text_close(&text);
    return WEFT_OK;
}

/* Does other work on the machine speak from the numbers? */
static bool is_busy(const double *spread)
{
    int wide = 0;
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        wide += spread[i] > most_spread;
    return wide > WEFT_PRICE_COUNT / 4;
}

/* The file that was asked for, or that of this machine in the cache. */
static bool write_prices(struct weft_context *context, const struct options *options, const struct weft_prices *prices)
{
    char path[4000], folder[4000];
    const char *const to = options->to ? options->to : path;
    if (!options->to) {
        if (!weft_prices_path(prices->machine, path, sizeof path)) {
            fputs("weft calibrate: neither XDG_CACHE_HOME nor HOME says where to; -o FILE does\n", stderr);
            return false;
        }
        snprintf(folder, sizeof folder, "%s", path);
        *strrchr(folder, '/') = '\0';
        const mode_t mask = umask(077); /* compiled code is kept there too, and who may write there could have it run */
        const bool made = weft_tool_folder(folder);
        umask(mask);
        if (!made)
            return false;
    }
    struct writing writing = {.context = context, .prices = prices, .path = to};
    if (weft_protected(context, write_file, &writing) < 0 || !writing.done)
        return false;
    fprintf(stderr, "weft calibrate: written to %s\n", to);
    return true;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int calibrate(struct calibrate *c, const struct options *options)
{
    c->workers = weft_gang_size(c->context);
    c->rounds = options->quick ? 3 : 25;
    c->sample_ns = options->quick ? 1e6 : 5e6;
    struct weft_prices prices = *c->shipped;
    double spread[WEFT_PRICE_COUNT] = {0};
    weft_machine_name(&c->cpu, c->context->target.cpu, prices.machine);
    if (!options->shipped) {
        prices.threads = c->workers;
        prices.lanes = weft_price_lanes(c->context->target.cpu);
        const int status = weft_protected(c->context, measure, c);
        if (status == WEFT_OK)
            set_prices(c, &prices, spread);
        calibrate_close(c);
        if (status < 0) {
            fprintf(stderr, "weft calibrate: %s\n", weft_status_text(status));
            return WEFT_EXIT_FAILED;
        }
    }
    (options->json ? print_json : print_table)(c, &prices, spread);
    if (is_busy(spread)) {
        fprintf(stderr, "weft calibrate: a quarter of the prices or more moved by more than %.0f %%: "
                        "the machine is busy with other things%s\n",
                100 * most_spread, options->to ? "; written as -o asks" : "; nothing is written");
        if (!options->to)
            return WEFT_EXIT_FAILED;
    }
    if (options->quick && !options->to) {
        fputs("weft calibrate: nothing is written: --quick is for trying it out, unless -o names a file\n", stderr);
        return WEFT_EXIT_OK;
    }
    return write_prices(c->context, options, &prices) ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
}

int weft_cmd_calibrate(int argc, char **argv)
{
    struct options options = {0};
    const struct weft_option table[] = {
        {"-o", WEFT_OPTION_WORD, &options.to, "FILE", "write the prices there instead of to the cache"},
        {"--quick", WEFT_OPTION_FLAG, &options.quick, NULL, "few and short rounds; writes with -o only"},
        {"--json", WEFT_OPTION_FLAG, &options.json, NULL, "one line of JSON instead of the table"},
        {"--list", WEFT_OPTION_FLAG, &options.list, NULL, "what prices there are, as they are shipped for this CPU"},
        {"--shipped", WEFT_OPTION_FLAG, &options.shipped, NULL, "write the shipped prices as this machine's, to edit"},
        {"--threads", WEFT_OPTION_COUNT, &options.threads, "N", "use at most N threads"},
        {"--cpu", WEFT_OPTION_WORD, &options.cpu, "LEVEL", "highest CPU level to use: baseline, avx2, avx512 …"},
        {0},
    };
    const struct weft_usage usage = {
        "weft calibrate [options]",
        "Measures what layouts cost on this machine: memory by level and pattern, conversions, steps, and\n"
        "kernels in either order of channels. The prices go to $XDG_CACHE_HOME/weft (~/.cache/weft), in a file\n"
        "named by the CPU, where every program that uses weft on this machine finds them; WEFT_PRICES=FILE names\n"
        "another, WEFT_PRICES= those shipped for Zen 4, whatever the CPU. Takes half a minute on a machine at rest.",
        table, NULL, 0};
    struct weft_words words;
    int code = weft_tool_options(&usage, argc, argv, &words);
    if (code >= 0)
        return code;
    struct calibrate *const c = calloc(1, sizeof *c);
    code = c ? weft_tool_open_shipped(options.cpu, options.threads, &c->context) : WEFT_EXIT_FAILED;
    if (code == WEFT_EXIT_OK) {
        weft_cpu_detect(&c->cpu);
        c->shipped = weft_prices_shipped_for(&c->cpu, c->context->target.cpu, c->context->target.threads);
        if (options.list)
            print_list(c->shipped);
        else
            code = calibrate(c, &options);
    }
    if (c)
        weft_close(c->context);
    free(c);
    return code;
}
