/* SPDX-License-Identifier: Apache-2.0 */
/* golden_mistakes.c: runs a file of mistakes: each message is expected at its line, and none besides. */
#include "tools/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which expected messages came, and what came unexpected. */
struct mistakes {
    const struct weft_golden_file *file;
    bool *met;               /* by number of the directive in the file */
    int unexpected;
};

/* Directive `number` of the whole file, at whose line; the message runs to the next directive or the line's end. */
static const char *find_directive(const struct weft_golden_file *file, int line, int *number, const char *from)
{
    static const char word[] = "# error:";
    const char *at = strstr(from ? from : file->line[line], word);
    if (at)
        ++*number;
    return at ? at + strlen(word) : NULL;
}

static bool is_part(const char *directive, const char *message)
{
    directive += strspn(directive, " ");
    const char *end = strstr(directive, "# error:");
    size_t length = end ? (size_t)(end - directive) : strlen(directive);
    while (length > 0 && directive[length - 1] == ' ')
        length--;
    for (const char *c = message; length > 0 && *c; c++)
        if (strncmp(c, directive, length) == 0)
            return true;
    return false;
}

static void meet(void *user, const struct weft_diagnostic *diagnostic)
{
    struct mistakes *mistakes = user;
    int number = -1;
    for (int line = 1; line <= mistakes->file->lines; line++) {
        const char *at = NULL;
        while ((at = find_directive(mistakes->file, line, &number, at)) != NULL)
            if (line == diagnostic->line && !mistakes->met[number] && is_part(at, diagnostic->message)) {
                mistakes->met[number] = true;
                return;
            }
    }
    printf("FAIL %s:%d:%d: unexpected: %s\n", mistakes->file->path, (int)diagnostic->line, (int)diagnostic->column,
           diagnostic->message);
    mistakes->unexpected++;
}

struct parse_all {
    struct weft_context *context;
    const struct weft_golden_file *file;
};

static int parse_all(void *arg)
{
    const struct parse_all *call = arg;
    const struct weft_parse_options options = {.name = call->file->path, .keep_going = true};
    struct weft_graph *graph = weft_parse_graph(call->context, call->file->text, call->file->bytes, 0, &options, NULL);
    if (graph)
        weft_graph_free(graph);
    return WEFT_OK;
}

void weft_golden_run_invalid(const struct weft_golden_file *file, struct weft_golden_score *score)
{
    int count = 0;
    for (int line = 1; line <= file->lines; line++)
        for (const char *at = NULL; (at = strstr(at ? at : file->line[line], "# error:")) != NULL; at++)
            count++;
    struct mistakes mistakes = {.file = file, .met = calloc((size_t)count + 1, sizeof(bool))};
    struct weft_context *context = NULL;
    const struct weft_context_options options = {.size = sizeof options, .diagnose = meet, .diagnose_user = &mistakes};
    if (!mistakes.met || weft_open(&options, &context) < 0) {
        printf("FAIL %s: out of memory\n", file->path);
        score->failed++;
    } else {
        weft_protected(context, parse_all, &(struct parse_all){context, file});
        int number = -1;
        for (int line = 1; line <= file->lines; line++)
            for (const char *at = NULL; (at = find_directive(file, line, &number, at)) != NULL;) {
                if (!mistakes.met[number])
                    printf("FAIL %s:%d: this message did not come:%s\n", file->path, line, at);
                *(mistakes.met[number] ? &score->passed : &score->failed) += 1;
            }
        score->failed += mistakes.unexpected;
        weft_close(context);
    }
    free(mistakes.met);
}
