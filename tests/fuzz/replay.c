/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: a target without libFuzzer: kept inputs as they are, then some steps of the target's own mutation from
 * each, the same in every run. So what was found once stays mended under any compiler, and mutators are tested too.
 *
 * usage: replay_<target> [--steps N] FILE…
 * A finding ends the process; the name of the input was printed before, and --keep FILE holds its bytes. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *keep;

static void check(const uint8_t *data, size_t size)
{
    /* An exact copy, so that a read beyond the end is one beyond a block. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(2);
    if (size)
        memcpy(copy, data, size);
    FILE *to = keep ? fopen(keep, "wb") : NULL;
    if (to) {
        fwrite(copy, 1, size, to);
        fclose(to);
    }
    weft_fuzz_check(copy, size);
    free(copy);
}

/* Short walks away from the input, and back to it: what has changed much is refused early. */
static int replay(const char *path, int steps, uint8_t *data, uint8_t *changed)
{
    FILE *from = fopen(path, "rb");
    if (!from) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 0;
    }
    const size_t size = fread(data, 1, weft_fuzz_limit, from);
    fclose(from);
    fprintf(stderr, "%s\n", path);
    check(data, size);
    uint64_t random = size;
    size_t now = size;
    for (int i = 0; i < steps; i++) {
        if (i % 4 == 0)
            memcpy(changed, data, now = size);
        now = weft_fuzz_mutate(changed, now, weft_fuzz_limit, &random);
        check(changed, now);
    }
    return 1;
}

int main(int argc, char **argv)
{
    int steps = 0, done = 0, files = 0;
    uint8_t *data = malloc(weft_fuzz_limit), *changed = malloc(weft_fuzz_limit);
    for (int i = 1; data && changed && i < argc; i++) {
        if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
            steps = atoi(argv[++i]);
        else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc)
            keep = argv[++i];
        else
            files++, done += replay(argv[i], steps, data, changed);
    }
    free(data);
    free(changed);
    printf("%d passed, %d failed, 0 skipped\n", done, files - done);
    return done > 0 && done == files ? 0 : 1;
}
