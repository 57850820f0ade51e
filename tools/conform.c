/* SPDX-License-Identifier: Apache-2.0 */
/* conform.c: weft conform: the ONNX backend tests.
 *
 * Each case runs in a process of its own (this command again, with --case), so that a crash is the failure of one case
 * and names it. An alarm ends a case that does not end by itself. */
#include "tools/conform.h"

#include "tools/tools.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DEPTH 4   /* of folders that are searched for cases */
#define PATIENCE  120 /* seconds a case may take */
#define ANSWER    8192

extern char **environ;

struct unsupported {
    char *what; /* "Op dtype" */
    int cases;
};

struct conformance {
    const char *filter;
    bool list, verbose, reference;
    char **folder; /* of the cases */
    size_t cases, capacity;
    int passed, failed, skipped, with_known;
    struct unsupported *unsupported;
    size_t unsupporteds, unsupported_capacity;
};

/* Memory that this command cannot go on without. */
static void *grown(void *array, size_t count, size_t *capacity, size_t element)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 64;
    array = realloc(array, *capacity * element);
    if (!array) {
        fputs("weft conform: out of memory\n", stderr);
        exit(WEFT_EXIT_FAILED);
    }
    return array;
}

/* --- finding cases ------------------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void find_cases(struct conformance *conformance, const char *folder, int depth)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/" WEFT_CASE_FILE, folder);
    if (access(path, F_OK) == 0) {
        if (conformance->filter && fnmatch(conformance->filter, base_name(folder), 0) != 0)
            return;
        conformance->folder =
            grown(conformance->folder, conformance->cases, &conformance->capacity, sizeof *conformance->folder);
        conformance->folder[conformance->cases++] = strdup(folder);
        return;
    }
    DIR *open = depth < MAX_DEPTH ? opendir(folder) : NULL;
    if (!open && depth == 0)
        fprintf(stderr, "weft conform: %s: %s\n", folder, strerror(errno));
    for (struct dirent *entry; open && (entry = readdir(open));) {
        if (entry->d_name[0] == '.' || snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        if (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)
            find_cases(conformance, path, depth + 1);
    }
    if (open)
        closedir(open);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* --- one case ----------------------------------------------------------------------------------------------------- */

/* What the process wrote, its end first if there is too much; it has then ended. */
static void read_answer(int from, char answer[ANSWER])
{
    size_t length = 0;
    ssize_t got;
    char spill[1024];
    while ((got = read(from, length < ANSWER - 1 ? answer + length : spill,
                       length < ANSWER - 1 ? ANSWER - 1 - length : sizeof spill)) > 0 ||
           (got < 0 && errno == EINTR))
        length += got > 0 && length < ANSWER - 1 ? (size_t)got : 0;
    answer[length] = '\0';
}

/* Runs the case in a process of its own; false with a message in `answer` where that did not end well. */
static bool ask(const struct conformance *conformance, const char *folder, char answer[ANSWER])
{
    int ends[2], status;
    /* posix_spawn takes words that it could write to, and does not. */
    const char *words[6 + 2 * WEFT_TOOL_WORDS] = {"weft", "conform", "--case", folder};
    int count = 4;
    for (int i = 0; i < weft_tool_customs.count; i++) {
        words[count++] = "--custom";
        words[count++] = weft_tool_customs.word[i];
    }
    if (conformance->reference)
        words[count++] = "--reference";
    char *arguments[sizeof words / sizeof *words];
    memcpy(arguments, words, sizeof words);
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe(ends) < 0) {
        snprintf(answer, ANSWER, "no pipe: %s", strerror(errno));
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int error = posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    answer[0] = '\0';
    if (!error)
        read_answer(ends[0], answer);
    close(ends[0]);
    if (error) {
        snprintf(answer, ANSWER, "cannot start a process: %s", strerror(error));
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFSIGNALED(status) && WEXITSTATUS(status) == 0)
        return true;
    const size_t length = strlen(answer);
    snprintf(answer + length, ANSWER - length, "%s%s %d", length ? "; " : "",
             WIFSIGNALED(status) ? "ended by signal" : "ended with code",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return false;
}

static void count_unsupported(struct conformance *conformance, const char *what)
{
    size_t i = 0;
    while (i < conformance->unsupporteds && strcmp(conformance->unsupported[i].what, what) != 0)
        i++;
    if (i == conformance->unsupporteds) {
        conformance->unsupported = grown(conformance->unsupported, conformance->unsupporteds,
                                         &conformance->unsupported_capacity, sizeof *conformance->unsupported);
        conformance->unsupported[conformance->unsupporteds++] = (struct unsupported){.what = strdup(what)};
    }
    conformance->unsupported[i].cases++;
}

/* Reads the lines of the verdict; what is none (the words of a sanitizer) is part of the failure. */
static void run_case(struct conformance *conformance, const char *folder)
{
    char answer[ANSWER];
    const bool ended = ask(conformance, folder, answer);
    bool passed = false, skipped = false;
    const char *complaint = ended ? NULL : answer;
    for (char *line = ended ? strtok(answer, "\n") : NULL; line; line = strtok(NULL, "\n")) {
        if (!strcmp(line, "pass")) {
            passed = true;
        } else if (!strncmp(line, "known ", 6)) {
            conformance->with_known++;
        } else if (!strncmp(line, "skip ", 5)) {
            skipped = true;
            count_unsupported(conformance, line + 5);
            if (conformance->verbose)
                printf("skip %s: %s\n", base_name(folder), line + 5);
        } else {
            complaint = strncmp(line, "fail ", 5) ? line : line + 5;
        }
    }
    if (!complaint && !passed && !skipped)
        complaint = "no verdict";
    if (complaint)
        printf("FAIL %s: %s\n", base_name(folder), complaint);
    else if (passed && conformance->verbose)
        printf("pass %s\n", base_name(folder));
    conformance->failed += complaint != NULL;
    conformance->passed += !complaint && passed;
    conformance->skipped += !complaint && !passed;
    fflush(stdout);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static int by_cases(const void *a, const void *b)
{
    const struct unsupported *x = a, *y = b;
    return x->cases != y->cases ? y->cases - x->cases : strcmp(x->what, y->what);
}

static void report(struct conformance *conformance)
{
    if (conformance->unsupporteds) {
        qsort(conformance->unsupported, conformance->unsupporteds, sizeof *conformance->unsupported, by_cases);
        puts("not supported (op, element type, cases):");
    }
    for (size_t i = 0; i < conformance->unsupporteds; i++)
        printf("  %-50s %d\n", conformance->unsupported[i].what, conformance->unsupported[i].cases);
    if (conformance->with_known)
        printf("%d were compiled with small inputs known, since weft refused them otherwise\n",
               conformance->with_known);
    printf("%d passed, %d failed, %d skipped\n", conformance->passed, conformance->failed, conformance->skipped);
}

static void release(struct conformance *conformance)
{
    for (size_t i = 0; i < conformance->cases; i++)
        free(conformance->folder[i]);
    for (size_t i = 0; i < conformance->unsupporteds; i++)
        free(conformance->unsupported[i].what);
    free(conformance->folder);
    free(conformance->unsupported);
}

int weft_cmd_conform(int argc, char **argv)
{
    struct conformance conformance = {0};
    const char *one = NULL;
    const struct weft_option table[] = {
        {"--list", WEFT_OPTION_FLAG, &conformance.list, NULL, "name the cases, run none"},
        {"--filter", WEFT_OPTION_WORD, &conformance.filter, "GLOB", "only cases whose folder's name matches"},
        {"--verbose", WEFT_OPTION_FLAG, &conformance.verbose, NULL, "also name what passed and what was skipped"},
        {"--reference", WEFT_OPTION_FLAG, &conformance.reference, NULL, "run every node in the reference evaluator"},
        WEFT_CUSTOM_OPTION,
        {"--case", WEFT_OPTION_WORD, &one, "DIR", "run this one case here, and print its verdict as it is"},
        {0},
    };
    const struct weft_usage usage = {
        "weft conform DIR… [options]",
        "Runs ONNX backend tests: each folder below DIR with a " WEFT_CASE_FILE " and test_data_set_N/input_i.pb,\n"
        "output_i.pb. A case is skipped only where it needs an op, or an op with an element type, that weft does\n"
        "not list; each of those is named at the end. The exit code is 1 if a case failed.",
        table, NULL, WEFT_TOOL_WORDS};
    struct weft_words words;
    const int code = weft_tool_options(&usage, argc, argv, &words);
    if (code >= 0)
        return code;
    if (one) {
        alarm(PATIENCE);
        return weft_conform_case(one, conformance.reference);
    }
    if (!words.count)
        return weft_tool_missing(&usage, "a folder of tests");
    for (int i = 0; i < words.count; i++)
        find_cases(&conformance, words.word[i], 0);
    if (conformance.cases)
        qsort(conformance.folder, conformance.cases, sizeof *conformance.folder, by_name);
    else
        fputs("weft conform: no cases there\n", stderr);
    for (size_t i = 0; i < conformance.cases; i++)
        if (conformance.list)
            puts(base_name(conformance.folder[i]));
        else
            run_case(&conformance, conformance.folder[i]);
    if (!conformance.list)
        report(&conformance);
    const bool ok = conformance.cases && !conformance.failed;
    release(&conformance);
    return ok ? WEFT_EXIT_OK : WEFT_EXIT_FAILED;
}
