/* SPDX-License-Identifier: Apache-2.0 */
/* speed_shapes.c: reads shape files. bench/shapes/README.md describes them; check/bench.h what a family says about
 * its lines. Wrong lines are refused with file, line and word: a case that is silently another one would be a wrong
 * figure.
 */
#include "check/speed.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 512, MOST_NUMBER = 1 << 30 };

static const struct weft_bench_family *const families[] = {
#define BENCH(family) &weft_bench_##family,
#include WEFT_BENCH_LIST
};

const struct weft_bench_family *speed_family(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (!strcmp(families[i]->name, name))
            return families[i];
    return NULL;
}

struct reader {
    struct weft_case *c;
    char *error;
    size_t bytes;
};

static bool wrong(const struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(const struct reader *reader, const char *format, ...)
{
    int length = 0;
    if (reader->c->file)
        length = snprintf(reader->error, reader->bytes, "%s:%d: ", reader->c->file, reader->c->line);
    va_list list;
    va_start(list, format);
    if (length >= 0 && (size_t)length < reader->bytes)
        vsnprintf(reader->error + length, reader->bytes - (size_t)length, format, list);
    va_end(list);
    return false;
}

/* The place of a word in a list, or -1. */
static int place_of(const char *words, const char *word)
{
    const size_t length = strlen(word);
    int place = 0;
    for (const char *p = words; *p; place++) {
        const size_t n = strcspn(p, " ");
        if (n == length && !memcmp(p, word, n))
            return place;
        p += n;
        p += *p == ' ';
    }
    return -1;
}

static bool read_numbers(struct reader *reader, const struct weft_case_key *key, int at, const char *text)
{
    struct weft_case *const c = reader->c;
    const char *p = text;
    for (;;) {
        char *end;
        errno = 0;
        const long long number = strtoll(p, &end, 10);
        if (end == p || isspace((unsigned char)*p) || (*end && *end != 'x'))
            return wrong(reader, "%s=%s: not %s", key->name, text,
                         key->most > 1 ? "numbers with x between" : "a number");
        if (errno || number < key->low || number > MOST_NUMBER)
            return wrong(reader, "%s=%s: %.*s is not between %lld and %d", key->name, text, (int)(end - p), p,
                         (long long)key->low, MOST_NUMBER);
        if (c->count[at] == key->most)
            return wrong(reader, "%s=%s: more than %d %s", key->name, text, key->most,
                         key->most > 1 ? "numbers" : "number");
        c->value[at][c->count[at]++] = number;
        if (!*end)
            return true;
        p = end + 1;
    }
}

static bool read_key(struct reader *reader, char *word)
{
    struct weft_case *const c = reader->c;
    char *const sign = strchr(word, '=');
    if (sign)
        *sign = 0;
    const struct weft_case_key *const keys = c->family->keys;
    int at = 0;
    while (keys[at].name && strcmp(keys[at].name, word) != 0)
        at++;
    if (!keys[at].name)
        return wrong(reader, "%s has no key '%s'", c->family->name, word);
    const struct weft_case_key *const key = &keys[at];
    if (c->count[at])
        return wrong(reader, "'%s' twice", word);
    if (key->most == 0) {
        c->count[at] = 1, c->value[at][0] = 1;
        return sign ? wrong(reader, "'%s' takes no value", word) : true;
    }
    if (!sign || !sign[1])
        return wrong(reader, "'%s' needs a value: %s=…", word, word);
    if (!key->words)
        return read_numbers(reader, key, at, sign + 1);
    const int place = place_of(key->words, sign + 1);
    c->count[at] = 1, c->value[at][0] = place;
    return place < 0 ? wrong(reader, "%s=%s: not one of: %s", word, sign + 1, key->words) : true;
}

static bool read_case(struct reader *reader, char *line)
{
    struct weft_case *const c = reader->c;
    char *rest;
    const char *const family = strtok_r(line, " ", &rest), *const name = strtok_r(NULL, " ", &rest);
    c->family = speed_family(family);
    if (!c->family)
        return wrong(reader, "no family '%s'", family);
    if (!name || strchr(name, '='))
        return wrong(reader, "the case has no name: family name key=value…");
    if (strlen(name) >= sizeof c->name)
        return wrong(reader, "the name is longer than %zu bytes: %s", sizeof c->name - 1, name);
    strcpy(c->name, name);
    for (int i = 0; c->family->keys[i].name; i++)
        c->value[i][0] = c->family->keys[i].otherwise;
    for (char *word; (word = strtok_r(NULL, " ", &rest));)
        if (!read_key(reader, word))
            return false;
    for (int i = 0; c->family->keys[i].name; i++)
        if (c->family->keys[i].required && !c->count[i])
            return wrong(reader, "%s needs %s=…", family, c->family->keys[i].name);
    const char *const problem = c->family->problem_with ? c->family->problem_with(c) : NULL;
    return problem ? wrong(reader, "%s", problem) : true;
}

static struct weft_case *next_case(struct speed_shapes *shapes)
{
    if (shapes->count == shapes->capacity) {
        shapes->capacity = shapes->capacity ? 2 * shapes->capacity : 64;
        struct weft_case *const more = realloc(shapes->cases, (size_t)shapes->capacity * sizeof *more);
        if (!more) {
            fputs("weft-check: out of memory\n", stderr);
            exit(1);
        }
        shapes->cases = more;
    }
    shapes->cases[shapes->count] = (struct weft_case){0};
    return &shapes->cases[shapes->count];
}

/* A name stands for one case in a file, whatever the group. */
static bool is_new(const struct reader *reader, const struct speed_shapes *shapes)
{
    for (int i = 0; i < shapes->count; i++) {
        const struct weft_case *const other = &shapes->cases[i];
        if (other->file == reader->c->file && other->family == reader->c->family &&
            !strcmp(other->name, reader->c->name))
            return wrong(reader, "'%s %s' is already in line %d", other->family->name, other->name, other->line);
    }
    return true;
}

bool speed_shapes_add(struct speed_shapes *shapes, const char *group, const char *line, char *error, size_t bytes)
{
    struct reader reader = {next_case(shapes), error, bytes};
    char copy[LINE];
    snprintf(copy, sizeof copy, "%s", line);
    snprintf(reader.c->group, sizeof reader.c->group, "%s", group);
    if (!read_case(&reader, copy))
        return false;
    shapes->count++;
    return true;
}

/* One line of a file; `group` is that of the lines before. */
static bool read_line(struct speed_shapes *shapes, struct reader *reader, char *line, char group[WEFT_CASE_NAME])
{
    const size_t length = strlen(line);
    if (length + 1 == LINE && line[length - 1] != '\n')
        return wrong(reader, "the line is longer than %d bytes", LINE - 2);
    line[strcspn(line, "#\r\n")] = 0;
    char *begin = line + strspn(line, " \t");
    for (char *p = begin; *p; p++)
        *p = *p == '\t' ? ' ' : *p;
    for (size_t n = strlen(begin); n > 0 && begin[n - 1] == ' '; n--)
        begin[n - 1] = 0;
    if (!*begin)
        return true;
    if (!strncmp(begin, "group ", 6)) {
        begin += 6 + strspn(begin + 6, " ");
        if (strchr(begin, ' ') || strlen(begin) >= WEFT_CASE_NAME)
            return wrong(reader, "a group has one word of at most %d bytes as its name", WEFT_CASE_NAME - 1);
        strcpy(group, begin);
        return true;
    }
    if (!*group)
        return wrong(reader, "a case before the first 'group NAME'");
    strcpy(reader->c->group, group);
    if (!read_case(reader, begin) || !is_new(reader, shapes))
        return false;
    shapes->count++;
    return true;
}

bool speed_shapes_read(struct speed_shapes *shapes, const char *path, char *error, size_t bytes)
{
    FILE *const file = fopen(path, "r");
    char *const kept = file && shapes->files < SPEED_FILES ? strdup(path) : NULL;
    if (!kept) {
        snprintf(error, bytes, "%s: %s", path, file ? "too many shape files" : strerror(errno));
        if (file)
            fclose(file);
        return false;
    }
    shapes->file[shapes->files++] = kept;
    char line[LINE], group[WEFT_CASE_NAME] = "";
    bool good = true;
    for (int number = 1; good && fgets(line, sizeof line, file); number++) {
        struct reader reader = {next_case(shapes), error, bytes};
        reader.c->file = kept, reader.c->line = number;
        good = read_line(shapes, &reader, line, group);
    }
    fclose(file);
    return good;
}

void speed_shapes_close(struct speed_shapes *shapes)
{
    free(shapes->cases);
    for (int i = 0; i < shapes->files; i++)
        free(shapes->file[i]);
    *shapes = (struct speed_shapes){0};
}
