/* SPDX-License-Identifier: Apache-2.0 */
/* layout_cases.c: runs files of layout cases and says how many passed.
 *
 *   layout_cases [--kinds a,b,…] [--passes a,b,…] [--if-there] [--quiet] FILE…
 *
 * Each expectation that does not hold is a line: case, kind, what was expected, what there is. Values are compared in
 * every case, whatever it expects. Then come a table by kind, and "N passed, N failed, N skipped", in cases: one passes
 * if all its expectations hold.
 *
 * --kinds: only expectations of these kinds decide; the others are asked too, and stand in the table, where one sees
 * how far they are. A case that does not hold only for them is skipped. --passes: run on the graph before it is
 * planned, so that one sees what a pass does that is not in the pipeline. --if-there: a file that is not there is
 * skipped with a word, and with 77 for an exit status. --quiet: no lines for expectations that do not decide. */
#include "layout_cases.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tally {
    bool decides[KINDS], quiet;
    const char *passes;
    int held[KINDS], missed[KINDS];
    int passed, failed, skipped;
};

enum verdict { PASSED, OPEN, FAILED }; /* OPEN: something does not hold that does not decide */

/* One line for what does not hold; whether it may, says the tally. */
static enum verdict judge(struct tally *tally, const struct layout_case *c, int kind, bool holds,
                          const json_t *expectation, const char *got)
{
    const bool known = kind < KINDS;
    if (known)
        *(holds ? &tally->held[kind] : &tally->missed[kind]) += 1;
    const bool decides = !known || tally->decides[kind];
    if (!holds && (decides || !tally->quiet)) {
        char *text = expectation ? json_dumps(expectation, JSON_COMPACT) : NULL;
        printf("%s: %s: expected %s, got %s%s\n", c->name, known ? kind_names[kind] : "?",
               text ? text : "the values of the evaluator", *got ? got : "nothing",
               decides ? "" : " (does not decide)");
        free(text);
    }
    return holds ? PASSED : decides ? FAILED : OPEN;
}

static bool expects_error(const struct layout_case *c)
{
    size_t i;
    json_t *e;
    json_array_foreach(c->expect, i, e)
        if (find_kind(json_string_value(json_object_get(e, "kind"))) == ERROR)
            return true;
    return false;
}

static enum verdict run_one(struct tally *tally, const struct layout_case *c, struct weft_context *context)
{
    char got[512];
    struct trial trial;
    struct build asked;
    run_case(c, context, tally->passes, &trial, got, sizeof got);
    enum verdict verdict;
    if (expects_error(c)) {
        verdict = judge(tally, c, ERROR, trial.status < 0 && *trial.message, json_array_get(c->expect, 0),
                        "a graph that is accepted, and runs");
        close_trial(&trial);
        return verdict;
    }
    if (trial.status < 0)
        snprintf(got, sizeof got, "%s", trial.message);
    verdict = judge(tally, c, SAME_VALUES, !*got, NULL, got);
    build_case(c, TO_ASK, context, &asked);
    size_t i;
    json_t *e;
    json_array_foreach(c->expect, i, e) {
        const int kind = find_kind(json_string_value(json_object_get(e, "kind")));
        if (kind == SAME_VALUES)
            continue;
        const bool asks_graph = kind == WIDTH || kind == INNER;
        bool holds = false;
        if (trial.status == WEFT_OK || asks_graph)
            holds = is_met(c, e, &trial, &asked, got, sizeof got);
        else
            snprintf(got, sizeof got, "%s", trial.message);
        const enum verdict one = judge(tally, c, kind, holds, e, got);
        verdict = one > verdict ? one : verdict;
    }
    weft_graph_destroy(asked.graph);
    close_trial(&trial);
    return verdict;
}

static int run_file(struct tally *tally, const char *path, struct weft_context *context)
{
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error), *json;
    size_t i;
    if (!json_is_array(file)) {
        fprintf(stderr, "%s:%d: %s\n", path, error.line, file ? "no list of cases" : error.text);
        json_decref(file);
        return 2;
    }
    json_array_foreach(file, i, json) {
        struct layout_case c;
        const char *message = read_case(json, &c);
        if (message)
            printf("%s: case %zu: %s\n", path, i, message);
        const enum verdict verdict = message ? FAILED : run_one(tally, &c, context);
        *(verdict == PASSED ? &tally->passed : verdict == OPEN ? &tally->skipped : &tally->failed) += 1;
    }
    json_decref(file);
    return 0;
}

static void print_table(const struct tally *tally)
{
    printf("%-12s %6s %6s\n", "expectation", "holds", "not");
    for (int kind = 0; kind < KINDS; kind++)
        if (tally->held[kind] + tally->missed[kind] > 0)
            printf("%-12s %6d %6d%s\n", kind_names[kind], tally->held[kind], tally->missed[kind],
                   tally->decides[kind] ? "" : "  (does not decide)");
}

/* Marks the kinds of a list like "width,inner". */
static bool take_kinds(struct tally *tally, const char *list)
{
    memset(tally->decides, 0, sizeof tally->decides);
    for (const char *word = list; *word;) {
        char name[32];
        const size_t length = strcspn(word, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        const int kind = find_kind(name);
        if (kind == KINDS) {
            fprintf(stderr, "layout_cases: no kind '%s'\n", name);
            return false;
        }
        tally->decides[kind] = true;
        word += length + (word[length] == ',');
    }
    return true;
}

int main(int argc, char **argv)
{
    struct tally tally = {0};
    struct weft_context *context;
    bool if_there = false;
    int status = 0, files = 0;
    memset(tally.decides, 1, sizeof tally.decides);
    if (weft_open(NULL, &context) != WEFT_OK)
        return 2;
    for (int i = 1; i < argc && status == 0; i++) {
        if (strcmp(argv[i], "--kinds") == 0 && i + 1 < argc) {
            status = take_kinds(&tally, argv[++i]) ? 0 : 2;
        } else if (strcmp(argv[i], "--passes") == 0 && i + 1 < argc) {
            tally.passes = argv[++i];
        } else if (strcmp(argv[i], "--if-there") == 0) {
            if_there = true;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            tally.quiet = true;
        } else if (if_there && access(argv[i], R_OK) != 0) {
            printf("skipped: %s is not there\n", argv[i]);
            tally.skipped++;
            files++;
        } else {
            status = run_file(&tally, argv[i], context);
            files++;
        }
    }
    weft_close(context);
    if (status == 0 && files == 0) {
        fprintf(stderr, "usage: layout_cases [--kinds a,b,…] [--passes a,b,…] [--if-there] [--quiet] FILE…\n");
        return 2;
    }
    print_table(&tally);
    printf("%d passed, %d failed, %d skipped\n", tally.passed, tally.failed, tally.skipped);
    if (status != 0 || tally.failed > 0)
        return status ? status : 1;
    return tally.passed == 0 && tally.skipped > 0 ? 77 : 0;
}
