/* SPDX-License-Identifier: Apache-2.0 */
/* stored_file.h: what is in the file of a plan. Numbers are the machine's: the key says which machine. */
#ifndef WEFT_STORED_FILE_H
#define WEFT_STORED_FILE_H

#include "plan/stored.h"

#include <xxhash.h>

#define WEFT_STORED_WORD "weft plan 1\n\0\0\0"

struct weft_stored_head {
    char word[16];
    XXH128_canonical_t hash; /* of all that follows it */
    uint64_t bytes, text;    /* of the file; of the text */
    uint32_t entries, reserved;
};

enum weft_stored_kind {
    WEFT_STORED_ELEMENTS = 1, /* a constant, whose elements are at `offset` of the file */
    WEFT_STORED_LOST,         /* a constant that is read in packed form alone; `number`: weft_constant.numbers */
    WEFT_STORED_PACK,         /* `number` of the plan's; at `offset`, or, if that is 0, in a file of its own */
};
struct weft_stored_entry {
    char hash[32];
    uint64_t bytes, offset;
    uint32_t kind, number;
};

struct weft_stored_file {
    const char *base;
    const struct weft_stored_head *head;
    const struct weft_stored_entry *entry;
    const char *text;
};

/* A constant of the source graph: it is in no file. */
struct weft_stored_known {
    char hash[33];
    struct weft_blob *blob; /* the source's */
    uint64_t offset;
};
const struct weft_stored_known *weft_stored_find_known(const struct weft_stored *stored, const char *hash);

/* The file with the key, mapped; NULL: there is none that may be trusted. */
void *weft_stored_read(const struct weft_stored *stored, size_t *ret_bytes);
/* NULL, or what is wrong with the bytes, as the end of a sentence. */
const char *weft_stored_take_apart(const void *data, size_t bytes, struct weft_stored_file *ret);

#endif
