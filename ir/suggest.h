/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h: "did you mean": which of the words that there are somebody may have meant by one that there is not. */
#ifndef WEFT_SUGGEST_H
#define WEFT_SUGGEST_H

#include <stddef.h>

#define WEFT_SUGGEST_LETTERS 64 /* of a word that are looked at; of longer ones the last */

/* A word without separators and case, and where its parts begin. */
struct weft_spelling {
    char letter[WEFT_SUGGEST_LETTERS];
    int letters, parts;
    int part[9]; /* [parts] is the end */
};

/* weft_suggest_open, then an offer for each word that there is, then weft_suggest_text. Candidates stay where they are
 * until then. */
struct weft_suggest {
    struct weft_spelling word;
    const char *best;              /* the candidate that was nearest so far, or NULL */
    int length;
    double distance;               /* of it, from 0; more than 1: none is near enough */
    char text[160];
};
void weft_suggest_open(struct weft_suggest *suggest, const char *word, size_t length);
void weft_suggest_offer(struct weft_suggest *suggest, const char *candidate);
void weft_suggest_offern(struct weft_suggest *suggest, const char *candidate, size_t length);
/* Offers a candidate under another name that it is known by elsewhere. */
void weft_suggest_offer_as(struct weft_suggest *suggest, const char *alias, const char *candidate);
/* " (did you mean %x?)", with sigil "%", or "" if nothing is near; it lives in `suggest`. */
const char *weft_suggest_text(struct weft_suggest *suggest, const char *sigil);

/* Edit distance: letters inserted, dropped, replaced, or neighbours swapped; of long words, their last letters. */
int weft_count_edits(const char *a, size_t m, const char *b, size_t n);

/* CPU levels by name, of those that kernels/kernels.h knows the ones of this build's processors, for messages and
 * offers. */
#ifdef __x86_64__
#define WEFT_CPU_WORDS "baseline avx2 avx512 avx512bf16 avx512vnni avx512fp16 amx all"
#else
#define WEFT_CPU_WORDS "baseline all"
#endif

/* The same as above, for the words of the language. */
const char *weft_suggest_op(struct weft_suggest *suggest, const char *word, size_t length);
/* Of one op; opcode 0: of all. */
const char *weft_suggest_attr(struct weft_suggest *suggest, int opcode, const char *word, size_t length);
const char *weft_suggest_dtype(struct weft_suggest *suggest, const char *word, size_t length);
/* Of words separated by blanks. */
const char *weft_suggest_among(struct weft_suggest *suggest, const char *words, const char *word, size_t length);
struct weft_graph;
/* Of the names of a graph's live values. */
const char *weft_suggest_value(struct weft_suggest *suggest, const struct weft_graph *graph, const char *word,
                               size_t length);
struct weft_dims;
/* Of the symbols. */
const char *weft_suggest_symbol(struct weft_suggest *suggest, const struct weft_dims *dims, const char *word,
                                size_t length);

#endif
