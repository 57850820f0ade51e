/* SPDX-License-Identifier: Apache-2.0 */
/* golden_file.c: test files as lines: where tests begin, what they ask for, and writing their #> blocks anew. */
#include "tools/golden.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool complain(const struct weft_golden_file *file, int line, const char *message)
{
    fprintf(stderr, "weft opt: %s:%d: %s\n", file->path, line, message);
    return false;
}

/* --- directives --------------------------------------------------------------------------------------------------- */

/* Does the line begin with this directive? Then what follows it. */
static const char *after(const char *line, const char *directive)
{
    const size_t length = strlen(directive);
    return strncmp(line, directive, length) == 0 ? line + length : NULL;
}

/* The next `key=value` of a directive; false at its end. Values hold no blanks. */
static bool next_pair(const char **cursor, char key[32], char value[256])
{
    const char *c = *cursor + strspn(*cursor, " \t");
    const size_t word = strcspn(c, " \t"), name = strcspn(c, "= \t");
    if (word == 0)
        return false;
    const bool has_value = name < word;
    snprintf(key, 32, "%.*s", (int)name, c);
    snprintf(value, 256, "%.*s", has_value ? (int)(word - name - 1) : 0, c + name + (has_value ? 1 : 0));
    *cursor = c + word;
    return true;
}

static bool read_test(const struct weft_golden_file *file, int line, const char *text, struct weft_golden_case *ret)
{
    char key[32], value[256];
    *ret = (struct weft_golden_case){0};
    while (next_pair(&text, key, value)) {
        if (strcmp(key, "passes") == 0)
            snprintf(ret->passes, sizeof ret->passes, "%s", value);
        else if (strcmp(key, "target") == 0)
            snprintf(ret->target, sizeof ret->target, "%.31s", value);
        else if (strcmp(key, "own") == 0)
            snprintf(ret->own, sizeof ret->own, "%.127s", value);
        else if (strcmp(key, "strip") == 0)
            ret->strip = true;
        else if (strcmp(key, "print") == 0 && strcmp(value, "plan") == 0)
            ret->plan = true;
        else if (strcmp(key, "print") == 0 && strcmp(value, "stats") == 0)
            ret->plan = ret->stats = true;
        else
            return complain(file, line, "# test: knows passes=, target=, own=, print=plan, print=stats and strip");
    }
    return true;
}

static bool read_evaluation(const struct weft_golden_file *file, int line, const char *text,
                            struct weft_golden_case *test)
{
    char key[32], value[256];
    test->evaluate = true;
    test->low = -1;
    test->high = 1;
    test->seed = 1;
    while (next_pair(&text, key, value)) {
        char *end;
        const double number = strtod(value, &end);
        if (end == value || *end)
            return complain(file, line, "#= wants numbers: seed=1 tol=1e-6 low=-1 high=1");
        if (strcmp(key, "seed") == 0)
            test->seed = (uint64_t)number;
        else if (strcmp(key, "low") == 0)
            test->low = number;
        else if (strcmp(key, "high") == 0)
            test->high = number;
        else if (strcmp(key, "tol") == 0) {
            test->tolerance = number;
            test->has_tolerance = true;
        } else
            return complain(file, line, "#= knows seed=, tol=, low= and high=");
    }
    return true;
}

static bool add_test(struct weft_golden_file *file, int line, const struct weft_golden_case *options)
{
    struct weft_golden_case *grown = realloc(file->test, ((size_t)file->tests + 1) * sizeof *grown);
    if (!grown)
        return complain(file, line, "out of memory");
    file->test = grown;
    struct weft_golden_case *test = &grown[file->tests];
    *test = *options;
    test->index = (uint32_t)file->tests++;
    test->line = test->end = line;
    const char *name = strchr(file->line[line], '@');
    if (name)
        snprintf(test->name, sizeof test->name, "%.*s", (int)strcspn(name, "<( "), name);
    return true;
}

static bool read_lines(struct weft_golden_file *file)
{
    struct weft_golden_case options = {0};
    for (int i = 1; i <= file->lines; i++) {
        const char *line = file->line[i], *text;
        struct weft_golden_case *test = file->tests ? &file->test[file->tests - 1] : NULL;
        bool right = true;
        if ((text = after(line, "# test:")) != NULL)
            right = read_test(file, i, text, &options);
        else if (after(line, "graph"))
            right = add_test(file, i, &options);
        else if (after(line, "#>") && test) {
            if (test->expect_first && test->expect_last != i - 1)
                return complain(file, i, "a graph has one block of #> lines");
            test->expect_first = test->expect_first ? test->expect_first : i;
            test->expect_last = i;
        } else if ((text = after(line, "#=")) != NULL && test)
            right = read_evaluation(file, i, text, test);
        else if (after(line, "#>") || after(line, "#="))
            right = complain(file, i, "#> and #= stand after a graph");
        else if (line[0] == '}' && test)
            test->end = i;
        file->invalid = file->invalid || strstr(line, "# error:");
        if (!right)
            return false;
    }
    return file->tests > 0 || file->invalid || complain(file, 1, "no graph begins at the left margin");
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static char *read_whole(const char *path, size_t *ret_bytes)
{
    FILE *from = fopen(path, "rb");
    char *text = NULL;
    size_t bytes = 0, capacity = 0;
    for (size_t got = 1; from && got > 0; bytes += got) {
        if (bytes + 4096 > capacity) {
            char *grown = realloc(text, capacity = 2 * capacity + 8192);
            if (!grown)
                break;
            text = grown;
        }
        got = fread(text + bytes, 1, capacity - bytes - 1, from);
    }
    const bool failed = !from || ferror(from) || !text;
    if (failed)
        fprintf(stderr, "weft opt: %s: %s\n", path, strerror(errno));
    if (from)
        fclose(from);
    if (failed) {
        free(text);
        return NULL;
    }
    text[bytes] = '\0';
    *ret_bytes = bytes;
    return text;
}

bool weft_golden_read(const char *path, struct weft_golden_file *ret_file)
{
    *ret_file = (struct weft_golden_file){.path = path};
    struct weft_golden_file *file = ret_file;
    file->text = read_whole(path, &file->bytes);
    if (!file->text)
        return false;
    size_t lines = 1;
    for (const char *c = file->text; *c; c++)
        lines += *c == '\n';
    file->copy = strdup(file->text);
    file->line = calloc(lines + 1, sizeof *file->line);
    if (!file->copy || !file->line)
        return complain(file, 1, "out of memory");
    for (char *c = file->copy; *c;) {
        char *end = c + strcspn(c, "\n");
        file->line[++file->lines] = c;
        c = end + (*end == '\n');
        *end = '\0';
    }
    return read_lines(file);
}

void weft_golden_close(struct weft_golden_file *file)
{
    free(file->text);
    free(file->copy);
    free(file->line);
    free(file->test);
}

char *weft_golden_expected(const struct weft_golden_file *file, const struct weft_golden_case *test)
{
    char *text = malloc(file->bytes + 1);
    size_t length = 0;
    for (int i = test->expect_first; text && i && i <= test->expect_last; i++) {
        const char *line = file->line[i] + 2;
        line += *line == ' ';
        length += (size_t)sprintf(text + length, "%s\n", line);
    }
    if (text)
        text[length] = '\0';
    return text;
}

static void write_block(FILE *to, const char *block)
{
    while (*block) {
        const size_t length = strcspn(block, "\n");
        fprintf(to, length ? "#> %.*s\n" : "#>\n", (int)length, block);
        block += length + (block[length] == '\n');
    }
}

bool weft_golden_rewrite(const struct weft_golden_file *file, char *const *block)
{
    struct weft_file rewritten;
    if (!weft_file_create(&rewritten, file->path)) {
        fprintf(stderr, "weft opt: %s: %s\n", file->path, strerror(errno));
        return false;
    }
    FILE *const to = rewritten.to;
    const struct weft_golden_case *test = file->test, *end = file->test + file->tests;
    for (int i = 1; i <= file->lines; i++) {
        while (test < end && i > (test->expect_last ? test->expect_last : test->end))
            test++;
        const char *new = test < end && i >= test->line ? block[test - file->test] : NULL;
        if (new && test->expect_first && i >= test->expect_first) {
            if (i == test->expect_first)
                write_block(to, new);
            continue;
        }
        fprintf(to, "%s\n", file->line[i]);
        if (new && !test->expect_first && i == test->end)
            write_block(to, new);
    }
    if (weft_file_commit(&rewritten))
        return true;
    fprintf(stderr, "weft opt: %s: %s\n", file->path, strerror(errno));
    return false;
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static int compare_paths(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool add_path(char ***list, int *count, const char *folder, const char *name)
{
    char **grown = realloc(*list, ((size_t)*count + 1) * sizeof *grown);
    char *path = malloc(strlen(folder) + strlen(name) + 2);
    if (grown)
        *list = grown;
    if (!grown || !path) {
        free(path);
        return false;
    }
    sprintf(path, "%s%s%s", folder, folder[0] ? "/" : "", name);
    (*list)[(*count)++] = path;
    return true;
}

/* The list is its own queue: folders are replaced by what is in them, files stay. */
char **weft_golden_find(const char *const *path, int paths, int *ret_count)
{
    char **list = NULL;
    int count = 0, files = 0;
    for (int i = 0; i < paths; i++)
        add_path(&list, &count, "", path[i]);
    for (int i = 0; i < count; i++) {
        struct stat info;
        char *here = list[i];
        DIR *folder = stat(here, &info) == 0 && S_ISDIR(info.st_mode) ? opendir(here) : NULL;
        if (!folder) {
            list[files++] = here; /* a name that is no file is reported when it is read */
            continue;
        }
        for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
            const size_t length = strlen(entry->d_name);
            const bool is_text = length > 5 && strcmp(entry->d_name + length - 5, ".weft") == 0;
            if (entry->d_name[0] != '.' && (is_text || entry->d_type == DT_DIR))
                add_path(&list, &count, here, entry->d_name);
        }
        closedir(folder);
        free(here);
    }
    if (files)
        qsort(list, (size_t)files, sizeof *list, compare_paths);
    *ret_count = files;
    return list;
}
