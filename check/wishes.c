/* SPDX-License-Identifier: Apache-2.0 */
/* wishes.c: words of the command line that name no kernel and no family, with the nearest name there is. */
#include "check/wishes.h"
#include "ir/suggest.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wish {
    bool found;
    const char *word;
    struct weft_suggest suggest;
    char best[80];
};

struct weft_wishes {
    int count;
    struct wish wish[];
};

struct weft_wishes *weft_wishes_open(char *const *word, int words)
{
    struct weft_wishes *const w = calloc(1, sizeof *w + (size_t)words * sizeof *w->wish);
    if (!w) {
        fputs("weft-check: out of memory\n", stderr);
        return NULL;
    }
    w->count = words;
    for (int i = 0; i < words; i++) {
        w->wish[i].word = word[i];
        weft_suggest_open(&w->wish[i].suggest, word[i], strlen(word[i]));
    }
    return w;
}

static void offer(struct wish *wish, const char *name)
{
    weft_suggest_offer(&wish->suggest, name);
    if (wish->suggest.best == name) {
        snprintf(wish->best, sizeof wish->best, "%s", name);
        wish->suggest.best = wish->best;
    }
}

void weft_wishes_offer(struct weft_wishes *wishes, const char *family, const char *name)
{
    for (int i = 0; i < wishes->count; i++) {
        struct wish *const wish = &wishes->wish[i];
        wish->found = wish->found || strcmp(wish->word, family) == 0 || fnmatch(wish->word, name, 0) == 0;
        offer(wish, family);
        offer(wish, name);
    }
}

bool weft_wishes_close(struct weft_wishes *wishes)
{
    bool known = true;
    for (int i = 0; i < wishes->count; i++) {
        if (wishes->wish[i].found)
            continue;
        fprintf(stderr, "weft-check: no family or kernel is called '%s'%s; --list shows them\n", wishes->wish[i].word,
                weft_suggest_text(&wishes->wish[i].suggest, ""));
        known = false;
    }
    free(wishes);
    return known;
}
