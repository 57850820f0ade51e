/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: the language of FORMAT.md: print.c, parse.c, validate.c. */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include "ir/graph.h"

struct weft_print_options {
    const char *const *under;    /* per node id, a text to print as a comment below the line, or NULL */
    uint32_t inline_limit;       /* constants of up to so many elements are printed in place; 0: 64 */
    bool all_inline;             /* print every blob constant in place, whatever its size */
    bool by_content;             /* constants of files too have their content hash in the text */
    bool absolute_files;         /* the text will not lie in the folder that the graph came from */
    /* Called for a larger constant that lies in no file; returns a file name and sets the offset, or NULL: then its
     * content hash stands in the text. */
    const char *(*place_blob)(void *user, const void *data, size_t bytes, uint64_t *ret_offset);
    void *user;
};
void weft_print_graph(const struct weft_graph *graph, const struct weft_print_options *options, struct weft_text *text);
/* Content address of a constant's bytes: the 32 hex digits of their XXH3-128, and a NUL. */
void weft_blob_hash(const void *data, size_t bytes, char ret[33]);
/* "%name" or "%12": how a value is printed; text lives in the arena. An unnamed value costs a walk over the graph. */
const char *weft_value_text(const struct weft_graph *graph, weft_val value);
/* The same for all values, by id, without sigil, in one walk. */
const char **weft_value_labels(const struct weft_graph *graph, struct weft_arena *arena);
/* The same as weft_value_text has them. */
const char **weft_value_texts(const struct weft_graph *graph, struct weft_arena *arena);

struct weft_parse_options {
    const char *name;            /* of the text, for messages, and for relative files without `folder` */
    const char *folder;          /* where relative files are, or NULL */
    bool no_files;               /* the text may name none */
    bool keep_going;             /* parse all graphs of the text, not only the first */
    /* Finds the elements of `const blob=HASH`; the caller gets a reference of its own. NULL: unknown. */
    struct weft_blob *(*find_blob)(void *user, const char *hash, uint64_t *ret_offset);
    void *user;
};
/* Bytes of the byte-order mark that some editors put before a text, 0 if there is none; parsing passes over it. */
size_t weft_count_mark(const char *text, size_t bytes);
/* Parses top-level graph number `index` of a text. Errors are recorded with line and column, several at once. NULL
 * if there were errors; *ret_count gets the number of top-level graphs. */
struct weft_graph *weft_parse_graph(struct weft_context *context, const char *text, size_t bytes, uint32_t index,
                                    const struct weft_parse_options *options, uint32_t *ret_count);

struct weft_finding {
    weft_node node;              /* or none: about the graph */
    const char *message;
};
/* Every broken rule; the array lives in `arena`. */
uint32_t weft_find_errors(const struct weft_graph *graph, struct weft_arena *arena, struct weft_finding **ret);
/* Records each finding as an error; true if there is none. */
bool weft_validate_graph(const struct weft_graph *graph);

#endif
