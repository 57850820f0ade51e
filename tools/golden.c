/* SPDX-License-Identifier: Apache-2.0 */
/* golden.c: `weft opt --test [--bless] PATH…`: all test files below the paths, and the score. */
#include "tools/golden.h"
#include "tools/tools.h"

#include <stdio.h>
#include <stdlib.h>

/* True if blocks were written. */
static bool run_valid(struct weft_context *context, const struct weft_golden_file *file, bool bless,
                      struct weft_golden_score *score)
{
    char **block = calloc((size_t)file->tests + 1, sizeof *block);
    bool written = false;
    if (block) {
        weft_golden_run(context, file, bless, block, score);
        bool differs = false;
        for (int i = 0; i < file->tests; i++)
            differs = differs || block[i];
        if (bless && differs && weft_golden_rewrite(file, block)) {
            printf("blessed %s\n", file->path);
            written = true;
        }
        for (int i = 0; i < file->tests; i++)
            free(block[i]);
    }
    free(block);
    return written;
}

/* Plans cut work for as many workers as the target and the machine have: the same text everywhere. */
static int count_workers(void *user) { return WEFT_GOLDEN_THREADS; }

static void run_in_turn(void *user, int n, void (*fn)(void *arg, int i), void *arg)
{
    for (int i = 0; i < n; i++)
        fn(arg, i);
}

int weft_golden_main(const char *const *path, int paths, bool bless)
{
    int files = 0, blessed = 0, invalid = 0;
    char **list = weft_golden_find(path, paths, &files);
    struct weft_golden_score score = {0};
    struct weft_context *context = NULL;
    const struct weft_executor executor = {.size = sizeof executor, .workers = count_workers, .run = run_in_turn};
    const struct weft_context_options options = {.size = sizeof options, .executor = &executor, .prices = ""};
    if (weft_open(&options, &context) < 0 || weft_golden_register(context) < 0 ||
        weft_tool_register(context) != WEFT_EXIT_OK) {
        fprintf(stderr, "weft opt: cannot open a context: %s\n", context ? weft_last_error(context) : "");
        return WEFT_EXIT_FAILED;
    }
    for (int i = 0; i < files; i++) {
        struct weft_golden_file file;
        if (!weft_golden_read(list[i], &file))
            score.failed++;
        else if (file.invalid)
            weft_golden_run_invalid(&file, &score);
        else
            blessed += run_valid(context, &file, bless, &score);
        invalid += file.invalid;
        weft_golden_close(&file);
    }
    weft_close(context);
    if (score.wants_bless && !bless) {
        fputs("\nif these texts are what you want: weft opt --test --bless", stdout);
        for (int i = 0; i < paths; i++)
            printf(" %s", path[i]);
        putchar('\n');
    }
    for (int i = 0; i < files; i++)
        free(list[i]);
    free(list);
    if (bless && invalid)
        printf("%d file%s of mistakes not blessed: write `# error: part of the message` at the line by hand\n", invalid,
               weft_tool_plural(invalid));
    if (blessed)
        printf("%d files blessed\n", blessed);
    printf("%d passed, %d failed, %d skipped\n", score.passed, score.failed, score.skipped);
    return score.failed || score.passed == 0 ? WEFT_EXIT_FAILED : WEFT_EXIT_OK;
}
