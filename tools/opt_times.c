/* SPDX-License-Identifier: Apache-2.0 */
/* opt_times.c: weft opt --print=times: where the time goes in which a plan is made, a line for each pass in order of
 * its first run:
 *
 *   pass           runs  changed  rewrites       ms
 *   fold_shape        4        2        57    0.312
 *   …
 *   passes                                   11.904
 *   plan                                      4.120    the rest: constants, kernels, what they pack */
#include "passes/passes.h"
#include "tools/explain.h"

#include <string.h>

struct row {
    const char *pass;
    int64_t runs, changed, rewrites, ns;
};

static struct row *row_of(struct row *row, size_t *rows, const char *pass)
{
    size_t i = 0;
    while (i < *rows && strcmp(row[i].pass, pass) != 0)
        i++;
    if (i == *rows)
        row[(*rows)++].pass = pass;
    return &row[i];
}

static double ms(int64_t ns) { return (double)ns * 1e-6; }

void weft_opt_print_times(const struct weft_graph *graph, int64_t whole_ns, struct weft_arena *arena,
                          struct weft_text *text)
{
    const struct weft_pass_record *record;
    size_t records = 0, rows = 0;
    while (weft_pass_timing(graph, records))
        records++;
    struct row *const row = weft_new(arena, struct row, records + 1);
    int64_t sum = 0;
    for (size_t i = 0; (record = weft_pass_timing(graph, i)); i++) {
        struct row *const mine = row_of(row, &rows, record->pass);
        mine->runs++;
        mine->changed += record->changed;
        mine->rewrites += record->rewrites;
        mine->ns += record->ns;
    }
    weft_text_format(text, "%-26s %6s %8s %9s %10s\n", "pass", "runs", "changed", "rewrites", "ms");
    for (size_t i = 0; i < rows; i++) {
        weft_text_format(text, "%-26s %6lld %8lld %9lld %10.3f\n", row[i].pass, (long long)row[i].runs,
                         (long long)row[i].changed, (long long)row[i].rewrites, ms(row[i].ns));
        sum += row[i].ns;
    }
    weft_text_format(text, "%-52s %10.3f\n", "passes", ms(sum));
    if (whole_ns)
        weft_text_format(text, "%-52s %10.3f\n", "plan", ms(whole_ns - sum));
}
