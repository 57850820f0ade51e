/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h: what the files of the parser share. lex.c walks over the text and reports errors, parse.c reads graphs
 * and their heads, parse_line.c lines, parse_op.c what stands right of a line's `=`, parse_const.c the elements of
 * constants; text.c holds what parser and printer must agree on. */
#ifndef WEFT_PARSE_H
#define WEFT_PARSE_H

#include "ir/ir.h"
#include "ir/suggest.h"
#include "ir/values.h"

/* A piece of the text, or of memory: not NUL-terminated. */
struct weft_word {
    const char *text;
    size_t length;
};

/* A value that a line defines: its name, type and layout as declared. */
struct weft_declared {
    struct weft_word name;
    const char *at, *type_at;
    struct weft_type type;
    struct weft_layout layout;
    bool has_type, has_layout, is_mut, is_static;
};

/* From names to numbers above 0. */
struct weft_parse_entry {
    struct weft_word name;
    uint32_t number; /* 0: free */
};
struct weft_parse_names {
    struct weft_parse_entry *entry;
    uint32_t entries, used;
};

/* Where the parser stands. `unknown` marks values of the graph that is being read whose definition was wrong: what uses
 * them is not checked, so that one mistake makes one message. */
struct weft_parser {
    struct weft_context *context;
    const struct weft_parse_options *options;
    const char *text, *end, *cursor;
    const char *line_start; /* of the line that `line` counts */
    int32_t line;
    struct weft_arena scratch;
    struct weft_graph *root, *graph;
    bool *unknown;
    uint32_t unknown_capacity;
    /* Results and operands of the line that is being read: memory that every line uses again. */
    struct weft_declared *result;
    weft_val *operand;
    uint32_t result_capacity, operand_capacity;
    struct weft_parse_names groups, bodies; /* of `graph`: number of the group; index of the body + 1 */
    uint32_t group;          /* that the lines stand in, or 0 */
    const char *group_at;
    uint32_t group_nodes;    /* nodes of the graph before the group */
    int32_t errors, errors_before; /* so far; before the top-level graph began */
    int32_t extra_braces;    /* of blocks whose heads were wrong */
    bool head_broken;        /* some parameters may be missing */
    bool symbols_broken;     /* of the top-level graph: some symbols may be missing */
    const struct weft_graph **broken; /* bodies with mistakes: what uses them is not checked */
    uint32_t brokens, broken_capacity;
};

/* --- lex.c */

#define WEFT_PARSE_MAX_ERRORS 50
/* Records an error at a place of the text; returns false. */
bool weft_parse_fail(struct weft_parser *p, const char *at, int status, const char *format, ...) WEFT_PRINTF(4, 5);
struct weft_place weft_parse_place(struct weft_parser *p, const char *at);
void weft_parse_blanks(struct weft_parser *p); /* blanks and a comment, to the end of the line at most */
void weft_parse_lines(struct weft_parser *p);  /* blanks, comments and line ends */
/* Is c next, after blanks? Then takes it. */
bool weft_parse_take(struct weft_parser *p, char c);
bool weft_parse_expect(struct weft_parser *p, char c, const char *why);
/* [A-Za-z_][A-Za-z0-9_]*; length 0 if there is none. */
struct weft_word weft_parse_word(struct weft_parser *p);
/* As words, but points may stand within: N.1 */
struct weft_word weft_parse_symbol(struct weft_parser *p);
/* As weft_parse_word, without taking it. */
struct weft_word weft_parse_peek(struct weft_parser *p);
bool weft_parse_is(struct weft_word word, const char *text);
char *weft_parse_copy(struct weft_parser *p, struct weft_word word); /* NUL-terminated, in the scratch arena */
/* %name, @name, %"any bytes"; quoted names are unescaped into the scratch arena. */
bool weft_parse_name(struct weft_parser *p, char sigil, struct weft_word *ret);
/* "…" as for names. */
bool weft_parse_string(struct weft_parser *p, struct weft_word *ret);
/* A run of characters that no other part of the language uses; numbers, plan words. */
struct weft_word weft_parse_token(struct weft_parser *p);
const char *weft_parse_line_end(const struct weft_parser *p);
/* A signed integer that fills `word`. */
bool weft_parse_integer(struct weft_word word, int64_t *ret);
/* To the end of the line. */
void weft_parse_recover(struct weft_parser *p);
/* Past the `{` that ends this line or one of the next, if there is one; else to the end of the line, and false. */
bool weft_parse_recover_block(struct weft_parser *p);

/* --- parse_line.c */

bool weft_parse_extent(struct weft_parser *p, const char *end, weft_dim *ret);
/* f32[N,3]{1 0} */
bool weft_parse_type(struct weft_parser *p, struct weft_declared *ret);
/* Is the value the result of a wrong definition? */
bool weft_parse_unknown(const struct weft_parser *p, weft_val value);
/* Reports a name that is taken. */
bool weft_parse_is_new(struct weft_parser *p, const struct weft_declared *declared);
bool weft_parse_definition(struct weft_parser *p); /* %a: type, %b: type = op … */
bool weft_parse_return(struct weft_parser *p);     /* after the word: %a, mut %p = %b */

/* --- parse_op.c */

/* After `=`: op, operands, attributes, plan. Adds the node; returns none and records errors if it is wrong. Sets
 * *ret_silent when nothing could be checked because an operand's definition was wrong already. */
weft_node weft_parse_op(struct weft_parser *p, const struct weft_declared *result, unsigned results, bool *ret_silent);
/* ! kernel key=value …; *ret is NULL where there is no `!`. */
bool weft_parse_plan(struct weft_parser *p, const struct weft_plan_note **ret);
/* %name of a value that is defined. */
bool weft_parse_value(struct weft_parser *p, weft_val *ret);

/* --- parse_values.c */

/* [axis=1 mode="fast" scales=[1.0 0.5]] */
bool weft_parse_values(struct weft_parser *p, struct weft_attr *ret);

/* --- parse_const.c */

bool weft_parse_constant(struct weft_parser *p, const struct weft_type *type, struct weft_constant *ret);
/* Is the word an element of that type? Then stores it as element i of `data`, unless that is NULL. */
bool weft_parse_element(struct weft_word word, int dtype, void *data, int64_t i);

/* --- parse_names.c */

uint32_t weft_parse_names_find(const struct weft_parse_names *names, struct weft_word word); /* 0: not there */
/* `name` must live as long as the table. */
void weft_parse_names_add(struct weft_arena *arena, struct weft_parse_names *names, const char *name, uint32_t number);

/* --- text.c: what parser and printer agree on */

bool weft_is_name_character(char c);
/* "%name" or, where need be, "%\"…\"". */
void weft_text_name(struct weft_text *text, char sigil, const char *name);
void weft_text_quoted(struct weft_text *text, const char *string);
/* The shortest decimal that reads back as the same element of `dtype`; independent of the locale. */
void weft_text_real(struct weft_text *text, int dtype, double value);
bool weft_read_real(struct weft_word word, double *ret);
/* Element i of an array. */
void weft_text_element(struct weft_text *text, int dtype, const void *data, int64_t i);
/* The folder of a file, with its last '/', or "": length of the prefix of `file`. */
size_t weft_folder_length(const char *file);

/* parse_symbol.c */
/* A number without a sign; false and nothing taken if there is none. */
bool weft_parse_number(struct weft_parser *p, int64_t *ret);
/* One declaration in a graph's head, like N=1..64 hint=8. */
bool weft_parse_symbol_head(struct weft_parser *p);

#endif
