/* SPDX-License-Identifier: Apache-2.0 */
/* prices.c: the table of prices, and its text. A line of the text is a word and a number; what is wrong with it is said
 * with the line, and the rest is read nevertheless, so that one look at a damaged file finds all damage. */
#include "sched/prices.h"

#include "ir/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct weft_price_info weft_price_list[WEFT_PRICE_COUNT] = {
#define PRICE(name, unit, zen, intel, avx2, wide, help) {#name, unit, help},
#include "sched/prices.def"
#undef PRICE
};

const struct weft_prices weft_prices_shipped = {
    .machine = "two cores of Zen 4", .threads = 2, .lanes = 16, .from = "shipped",
    .price = {
#define PRICE(name, unit, zen, intel, avx2, wide, help) zen,
#include "sched/prices.def"
#undef PRICE
    },
};

const struct weft_prices weft_prices_shipped_intel = {
    .machine = "two cores of Granite Rapids", .threads = 2, .lanes = 16, .from = "shipped for Intel",
    .price = {
#define PRICE(name, unit, zen, intel, avx2, wide, help) intel,
#include "sched/prices.def"
#undef PRICE
    },
};

const struct weft_prices weft_prices_shipped_avx2 = {
    .machine = "two cores of Zen 4 without AVX-512", .threads = 2, .lanes = 8, .from = "shipped for AVX2",
    .price = {
#define PRICE(name, unit, zen, intel, avx2, wide, help) avx2,
#include "sched/prices.def"
#undef PRICE
    },
};

const struct weft_prices weft_prices_shipped_wide = {
    .machine = "16 threads of Emerald Rapids", .threads = 16, .lanes = 16, .from = "shipped for Intel, many threads",
    .price = {
#define PRICE(name, unit, zen, intel, avx2, wide, help) wide,
#include "sched/prices.def"
#undef PRICE
    },
};

const struct weft_prices *weft_prices_shipped_for(const struct weft_cpu *cpu, uint32_t flags, int32_t threads)
{
    if ((flags & WEFT_CPU_AVX2) && !(flags & WEFT_CPU_AVX512))
        return &weft_prices_shipped_avx2;
    const bool intel = strcmp(cpu->vendor, "GenuineIntel") == 0 && (flags & WEFT_CPU_AVX512);
    if (intel)
        return threads < WEFT_WIDE_THREADS ? &weft_prices_shipped_intel : &weft_prices_shipped_wide;
    return &weft_prices_shipped;
}

const struct weft_prices *weft_prices_of(const struct weft_target *target)
{
    return target->prices ? target->prices : &weft_prices_shipped;
}

int32_t weft_price_lanes(uint32_t cpu) { return cpu & WEFT_CPU_AVX512 ? 16 : cpu & WEFT_CPU_AVX2 ? 8 : 1; }

void weft_machine_name(const struct weft_cpu *cpu, uint32_t flags, char ret_name[WEFT_MACHINE_BYTES])
{
    char levels[48];
    weft_cpu_describe(flags, levels, sizeof levels);
    snprintf(ret_name, WEFT_MACHINE_BYTES, "%s-%d-%d-%zuK-%zuK-%zuK-%s", cpu->vendor, cpu->family, cpu->model,
             cpu->l1 >> 10, cpu->l2 >> 10, cpu->l3 >> 10, levels);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static const char first_line[] = "weft prices 1";
enum { FIRST_LINE = 1, LINE_BYTES = 256, MOST_PRICE = 1000000000, MOST_LANES = 1024 };

struct reader {
    struct weft_context *context;
    int severity;
    struct weft_place place;
    const char *machine;
    struct weft_prices prices;
    int32_t given[WEFT_PRICE_COUNT]; /* the line, or 0 */
    bool right;
    bool elsewhere; /* right, and not for these levels */
};

/* About what stands at a column, from 1; 0: nowhere, since something is missing. */
static void complain(struct reader *r, int64_t column, const char *format, ...) WEFT_PRINTF(3, 4);
static void complain(struct reader *r, int64_t column, const char *format, ...)
{
    char message[LINE_BYTES + 128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    r->place.column = (int32_t)column;
    if (r->severity == WEFT_ERROR)
        weft_error(r->context, WEFT_ERR_SYNTAX, &r->place, "%s", message);
    else
        weft_note(r->context, r->severity, &r->place, "%s", message);
    r->right = false;
}

/* A whole number from 1 to MOST_PRICE; 0 for all else. */
static int32_t read_number(const char *word)
{
    char *end;
    const long long number = strtoll(word, &end, 10);
    return end == word || *end || number < 1 || number > MOST_PRICE ? 0 : (int32_t)number;
}

/* The name stands in column `at`, the value in column `value_at`. */
static void read_price(struct reader *r, const char *name, int64_t at, const char *value, int64_t value_at)
{
    unsigned i = 0;
    while (i < WEFT_PRICE_COUNT && strcmp(weft_price_list[i].name, name) != 0)
        i++;
    if (i == WEFT_PRICE_COUNT) {
        struct weft_suggest suggest;
        weft_suggest_open(&suggest, name, strlen(name));
        for (i = 0; i < WEFT_PRICE_COUNT; i++)
            weft_suggest_offer(&suggest, weft_price_list[i].name);
        complain(r, at, "no price is called '%s'%s; weft calibrate --list shows them all", name,
                 weft_suggest_text(&suggest, ""));
        return;
    }
    const int32_t number = read_number(value);
    if (!number)
        complain(r, value_at, "'%s' is no price for %s: a whole number from 1 to %d is", value, name, MOST_PRICE);
    else if (r->given[i])
        complain(r, at, "%s was given in line %d already", name, r->given[i]);
    r->prices.price[i] = number;
    r->given[i] = r->place.line;
}

/* Prices of the same machine at other kernel levels are no mistake of the file's: it is what a mask asks for. */
static void read_machine(struct reader *r, const char *machine, int64_t column)
{
    const char *const levels = strrchr(r->machine, '-');
    if (strcmp(machine, r->machine) == 0)
        return;
    if (levels && strncmp(machine, r->machine, (size_t)(levels + 1 - r->machine)) == 0) {
        r->place.column = (int32_t)column;
        weft_note(r->context, r->severity == WEFT_ERROR ? WEFT_WARNING : r->severity, &r->place, "these are prices of "
                  "kernels of other levels: %s, and this is %s; the shipped prices are used", machine, r->machine);
        r->elsewhere = true;
        return;
    }
    complain(r, column, "these are prices of another machine: %s, and this is %s", machine, r->machine);
}

static void read_line(struct reader *r, char *line)
{
    line[strcspn(line, "#\r")] = '\0';
    char *rest = NULL;
    if (r->place.line == FIRST_LINE) {
        const size_t length = strlen(first_line);
        if (strncmp(line, first_line, length) != 0 || line[length + strspn(line + length, " \t")])
            complain(r, 1, "this is no file of prices: it does not begin with '%s'", first_line);
        return;
    }
    const char *const word = strtok_r(line, " \t", &rest), *const value = strtok_r(NULL, " \t", &rest);
    const bool one_value = value && !strtok_r(NULL, " \t", &rest);
    const int64_t at = word ? word - line + 1 : 0, value_at = value ? value - line + 1 : 0;
    if (word && !one_value) {
        complain(r, at, "'%s' wants one value", word);
    } else if (word && strcmp(word, "machine") == 0) {
        read_machine(r, value, value_at);
        snprintf(r->prices.machine, sizeof r->prices.machine, "%s", value);
    } else if (word && strcmp(word, "threads") == 0) {
        r->prices.threads = read_number(value);
        if (!r->prices.threads)
            complain(r, value_at, "'%s' is no number of threads", value);
    } else if (word && strcmp(word, "lanes") == 0) {
        r->prices.lanes = read_number(value);
        if (!r->prices.lanes || r->prices.lanes > MOST_LANES)
            complain(r, value_at, "'%s' is no number of lanes: from 1 to %d is", value, MOST_LANES);
    } else if (word) {
        read_price(r, word, at, value, value_at);
    }
}

/* Of a file that does not say how wide its vectors were: those of its machine, whose name ends in its levels. */
static int32_t lanes_of(const char *machine)
{
    const char *const levels = strrchr(machine, '-');
    char first[WEFT_MACHINE_BYTES] = "";
    uint32_t cpu = 0;
    if (levels) /* what stands behind a + has no wider vectors */
        snprintf(first, sizeof first, "%.*s", (int)strcspn(levels + 1, "+"), levels + 1);
    return weft_cpu_parse(first, &cpu) ? weft_price_lanes(cpu) : weft_prices_shipped.lanes;
}

static void find_gaps(struct reader *r)
{
    int missing = 0;
    const char *first = NULL;
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        if (!r->given[i] && missing++ == 0)
            first = weft_price_list[i].name;
    r->place.line = 0;
    if (!r->prices.machine[0] || !r->prices.threads)
        complain(r, 0, "the line '%s …' is missing", r->prices.machine[0] ? "threads" : "machine");
    if (missing)
        complain(r, 0, "%s is missing%s", first, missing > 1 ? ", and more" : "");
}

bool weft_prices_parse(struct weft_context *context, int severity, const char *path, const char *text, size_t bytes,
                       const char *machine, struct weft_prices *ret_prices)
{
    struct reader r = {.context = context, .severity = severity, .place = {.file = path}, .machine = machine,
                       .right = true};
    for (size_t at = 0; at < bytes && (r.right || r.place.line > FIRST_LINE);) {
        const char *const end = memchr(text + at, '\n', bytes - at);
        const size_t length = end ? (size_t)(end - text) - at : bytes - at;
        char line[LINE_BYTES];
        r.place.line++;
        if (length < sizeof line && !memchr(text + at, '\0', length)) {
            memcpy(line, text + at, length);
            line[length] = '\0';
            read_line(&r, line);
        } else {
            complain(&r, 1, "this is no line of a file of prices");
        }
        at += length + 1;
    }
    if (r.place.line == 0)
        complain(&r, 0, "this is no file of prices: it is empty");
    if (r.right)
        find_gaps(&r);
    if (!r.prices.lanes)
        r.prices.lanes = lanes_of(r.prices.machine);
    const size_t length = strlen(path), room = sizeof r.prices.from - 1;
    snprintf(r.prices.from, sizeof r.prices.from, "%s", path + (length > room ? length - room : 0));
    if (!r.right || r.elsewhere)
        return false;
    *ret_prices = r.prices;
    return true;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

void weft_prices_print(const struct weft_prices *prices, struct weft_text *text)
{
    weft_text_format(text, "weft prices 1\nmachine %s\nthreads %d\nlanes %d\n", prices->machine, prices->threads,
                     prices->lanes);
    for (unsigned i = 0; i < WEFT_PRICE_COUNT; i++)
        weft_text_format(text, "%s %d\n", weft_price_list[i].name, prices->price[i]);
}
