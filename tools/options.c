/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: command lines from tables. One table gives the parser and the help, so that they cannot disagree. */
#include "tools/tools.h"

#include "ir/suggest.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void print_usage(const struct weft_usage *usage)
{
    printf("usage: %s\n\n%s\n\n", usage->line, usage->text);
    for (const struct weft_option *o = usage->options; o->name; o++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-18s %s\n", name, o->help);
    }
    printf("  %-18s %s\n", "--help", "this text");
}

int weft_tool_misused(const struct weft_usage *usage, const char *format, ...)
{
    char command[32]; /* the first two words of the usage line */
    const int length = 5 + (int)strcspn(usage->line + 5, " "); /* behind "weft " */
    snprintf(command, sizeof command, "%.*s", length, usage->line);
    fprintf(stderr, "%s: ", command);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; see %s --help\n", command);
    return WEFT_EXIT_USAGE;
}

int weft_tool_missing(const struct weft_usage *usage, const char *word)
{
    return weft_tool_misused(usage, "%s is missing: %s", word, usage->line);
}

/* The row of the option that `word` names, alone or before '='; the value behind '=' in *ret_value. */
static const struct weft_option *find_option(const struct weft_usage *usage, const char *word, const char **ret_value)
{
    const char *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);
    for (const struct weft_option *o = usage->options; o->name; o++) {
        if (strlen(o->name) == length && !strncmp(o->name, word, length)) {
            *ret_value = equals ? equals + 1 : NULL;
            return o;
        }
    }
    return NULL;
}

static int no_option(const struct weft_usage *usage, const char *word)
{
    struct weft_suggest suggest;
    weft_suggest_open(&suggest, word, strcspn(word, "="));
    for (const struct weft_option *o = usage->options; o->name; o++)
        weft_suggest_offer(&suggest, o->name);
    return weft_tool_misused(usage, "no option '%s'%s", word, weft_suggest_text(&suggest, ""));
}

/* "64M": a whole number, perhaps of 2^10, 2^20 or 2^30. */
static bool read_bytes(const char *text, int64_t *ret)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    *ret = errno || number > INT64_MAX >> shift ? 0 : number * ((int64_t)1 << shift);
    return text[0] >= '0' && text[0] <= '9' && !end[unit != NULL] && !errno && number <= INT64_MAX >> shift;
}

static int store_value(const struct weft_usage *usage, const struct weft_option *option, const char *value)
{
    if (option->kind == WEFT_OPTION_WORD) {
        *(const char **)option->to = value;
    } else if (option->kind == WEFT_OPTION_WORDS) {
        struct weft_words *words = option->to;
        if (words->count == WEFT_TOOL_WORDS)
            return weft_tool_misused(usage, "more than %d times %s", WEFT_TOOL_WORDS, option->name);
        words->word[words->count++] = value;
    } else if (option->kind == WEFT_OPTION_REAL) {
        char *end;
        const double number = strtod(value, &end);
        if (end == value || *end || !(number >= 0 && number < 1e9))
            return weft_tool_misused(usage, "%s wants a number from 0, not '%s'", option->name, value);
        *(double *)option->to = number;
    } else if (option->kind == WEFT_OPTION_BYTES) {
        int64_t bytes;
        if (!read_bytes(value, &bytes))
            return weft_tool_misused(usage, "%s wants a number of bytes, as 65536, 64K, 64M or 2G, not '%s'",
                                     option->name, value);
        *(int64_t *)option->to = bytes ? bytes : -1;
    } else {
        const int low = option->kind == WEFT_OPTION_COUNT;
        char *end;
        errno = 0;
        const long number = strtol(value, &end, 10);
        if (end == value || *end || errno || number < low || number > INT_MAX)
            return weft_tool_misused(usage, "%s wants a whole number from %d, not '%s'", option->name, low, value);
        *(int *)option->to = (int)number;
    }
    return -1;
}

int weft_tool_options(const struct weft_usage *usage, int argc, char **argv, struct weft_words *ret_words)
{
    *ret_words = (struct weft_words){0};
    bool only_words = false; /* after "--" */
    for (int i = 1; i < argc; i++) {
        if (only_words || argv[i][0] != '-' || !argv[i][1]) {
            if (ret_words->count >= usage->max_words || ret_words->count == WEFT_TOOL_WORDS)
                return weft_tool_misused(usage, "'%s' is one word too many", argv[i]);
            ret_words->word[ret_words->count++] = argv[i];
            continue;
        }
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_usage(usage);
            return WEFT_EXIT_OK;
        }
        if (!strcmp(argv[i], "--")) {
            only_words = true;
            continue;
        }
        const char *value = NULL;
        const struct weft_option *option = find_option(usage, argv[i], &value);
        if (!option)
            return no_option(usage, argv[i]);
        if (option->kind == WEFT_OPTION_FLAG) {
            if (value)
                return weft_tool_misused(usage, "%s takes no value", option->name);
            *(bool *)option->to = true;
            continue;
        }
        if (!value && ++i == argc)
            return weft_tool_misused(usage, "%s wants a value: %s", option->name, option->value);
        const int code = store_value(usage, option, value ? value : argv[i]);
        if (code >= 0)
            return code;
    }
    return usage->word && !ret_words->count ? weft_tool_missing(usage, usage->word) : -1;
}
