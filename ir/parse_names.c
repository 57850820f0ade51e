/* SPDX-License-Identifier: Apache-2.0 */
/* parse_names.c: tables from names to numbers, for the groups and bodies of the graph that is being read: a text with
 * many of them is read in linear time. Open addressing, at most half full; names are not copied. */
#include "ir/parse.h"

#include <string.h>

static uint32_t hash_word(struct weft_word word)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < word.length; i++)
        hash = (hash ^ (uint8_t)word.text[i]) * 16777619u;
    return hash;
}

/* The entry of that name, or the free one where it would go. */
static struct weft_parse_entry *entry_of(const struct weft_parse_names *names, struct weft_word word)
{
    uint32_t i = hash_word(word) & (names->entries - 1);
    for (;; i = (i + 1) & (names->entries - 1)) {
        struct weft_parse_entry *entry = &names->entry[i];
        if (!entry->number || (entry->name.length == word.length &&
                               memcmp(entry->name.text, word.text, word.length) == 0))
            return entry;
    }
}

uint32_t weft_parse_names_find(const struct weft_parse_names *names, struct weft_word word)
{
    return names->entries ? entry_of(names, word)->number : 0;
}

void weft_parse_names_add(struct weft_arena *arena, struct weft_parse_names *names, const char *name, uint32_t number)
{
    if (2 * names->used >= names->entries) {
        const struct weft_parse_names old = *names;
        names->entries = old.entries ? 2 * old.entries : 16;
        names->entry = weft_new(arena, struct weft_parse_entry, names->entries);
        for (uint32_t i = 0; i < old.entries; i++)
            if (old.entry[i].number)
                *entry_of(names, old.entry[i].name) = old.entry[i];
    }
    const struct weft_word word = {name, strlen(name)};
    struct weft_parse_entry *entry = entry_of(names, word);
    if (entry->number)
        return; /* the first of that name stays */
    *entry = (struct weft_parse_entry){word, number};
    names->used++;
}
