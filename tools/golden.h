/* SPDX-License-Identifier: Apache-2.0 */
/* golden.h: test files of the graph language and what runs them: `weft opt --test [--bless] PATH…`.
 *
 *   # test: passes=dce,cse target=avx2       for the graphs below, until the next such line; print=plan: the text is
 *                                           that of the plan, as weft opt --print=plan has it, which planned again
 *                                           without passes is the same; print=stats: what the plan moves and computes,
 *                                           as weft opt --print=stats has it; own=softmax,gelu: for a target
 *                                           with kernels own.softmax and own.gelu, row-major, of 1 us
 *                                           Without target= the text is the same at every CPU level: it is that of
 *                                           avx2 and of the baseline. A test for a level that this build has no kernels
 *                                           for is skipped
 *   # why:  one sentence                     the idea of the next graph
 *   graph @name(…) { … }                     a graph at the left margin
 *   #> …                                     the exact text after the passes
 *   #= seed=1 tol=0 low=-1 high=1            and before and after compute the same on random inputs, at
 *                                           the hinted sizes, the smallest and the next; with tol=0 also on hostile
 *                                           numbers: NaN, infinities, zeros of both signs, ends of integers
 *
 * A file with `# error: <part of a message>` at the end of lines is a test of mistakes: just these messages, at
 * these lines. */
#ifndef WEFT_GOLDEN_H
#define WEFT_GOLDEN_H

#include "ir/ir.h"
#include "ir/file.h"

#include <stdio.h>

struct weft_golden_case {
    uint32_t index;             /* number of the graph in its file */
    int line;                   /* of the graph, from 1 */
    char name[64], passes[256], target[32], own[128]; /* own: ops that a target's kernels compute */
    bool strip, plan, stats;
    int expect_first, expect_last; /* lines of the #> block, from 1; first 0: none yet */
    int end;                    /* last line of the graph */
    bool evaluate, has_tolerance;
    uint64_t seed;
    double tolerance, low, high;
};

struct weft_golden_file {
    const char *path;
    char *text;
    size_t bytes;
    char **line;                /* [1, lines], without line ends; in `copy` */
    char *copy;
    int lines;
    bool invalid;               /* a test of mistakes */
    struct weft_golden_case *test;
    int tests;
};

struct weft_golden_score {
    int passed, failed, skipped;
    bool wants_bless;           /* some text differs from its #> block */
};

/* --- golden_own.c */

/* Kernels for these ops, in memory of the arena's; NULL: one of them is no op. */
struct weft_target_kernel *weft_golden_kernels(const char *ops, struct weft_arena *arena);

/* --- golden_file.c */

/* False after saying on stderr what is wrong. */
bool weft_golden_read(const char *path, struct weft_golden_file *ret_file);
void weft_golden_close(struct weft_golden_file *file);
/* The text that the #> block of a test asks for; the caller frees it. */
char *weft_golden_expected(const struct weft_golden_file *file, const struct weft_golden_case *test);
/* Writes the file anew with these #> blocks, one per test (NULL: as it was), if anything changes. */
bool weft_golden_rewrite(const struct weft_golden_file *file, char *const *block);
/* All *.weft below the paths, sorted; the caller frees each and the list. */
char **weft_golden_find(const char *const *path, int paths, int *ret_count);

/* --- golden_run.c */

/* Runs the tests of a file; reports failures on stdout. `ret_block[i]` gets the text of test i after its passes if
 * it is not the expected one, which is no failure when it is going to be blessed; else NULL. */
void weft_golden_run(struct weft_context *context, const struct weft_golden_file *file, bool bless, char **ret_block,
                     struct weft_golden_score *score);

/* --- golden_mistakes.c */

void weft_golden_run_invalid(const struct weft_golden_file *file, struct weft_golden_score *score);

/* --- golden.c */

int weft_golden_main(const char *const *path, int paths, bool bless);

/* --- diff.c */

/* Prints what to change in `from` to get `to`, as a unified diff. */
void weft_diff_print(const char *from, const char *to, const char *from_name, const char *to_name, int first_line);

/* --- opt.c */

enum { WEFT_GOLDEN_THREADS = 4 }; /* of the targets below */

/* Runs passes by name ("a,b", or "pipeline"); false, and an error on the context, if one is unknown. `after` is called
 * after each. Under weft_protected. */
bool weft_opt_passes(struct weft_graph *graph, const char *names, const struct weft_target *target,
                     bool (*after)(void *user, const char *pass), void *user);
/* A target that is the same on every machine. False: there is no such level, or this build has no kernels for it. */
bool weft_opt_target(const char *name, struct weft_target *ret_target);

/* --- golden_custom.c */

/* The custom functions that texts may call. A status. */
int weft_golden_register(struct weft_context *context);

/* --- lists.c */

void weft_opt_print_ops(void);
void weft_opt_print_onnx(void);
void weft_opt_print_passes(void);
void weft_opt_print_kernels(void);

/* --- sidecar.c */

struct weft_sidecar {
    char *path, *shown;         /* shown: what the text calls it; there is no such file yet */
    struct weft_file made;
    bool begun;                 /* something was written to it, and it is not placed yet */
    uint64_t bytes;
    const struct weft_blob **file; /* mapped files that the graph's constants lie in */
    size_t files;
    bool failed;
    int error;                  /* errno of the first failure */
};
/* For a text that will be written to `text_path`, and call it by its whole path or not. False after saying what is
 * wrong; close it in any case. */
bool weft_sidecar_open(struct weft_sidecar *ret_sidecar, const struct weft_graph *graph, const char *text_path,
                       bool whole);
/* A weft_print_options.place_blob; `user` is the sidecar. */
const char *weft_sidecar_add(void *user, const void *data, size_t bytes, uint64_t *ret_offset);
/* All is added; then it is put in its place, together with the text. False after saying what is wrong. */
bool weft_sidecar_finish(struct weft_sidecar *sidecar);
bool weft_sidecar_place(struct weft_sidecar *sidecar);
void weft_sidecar_close(struct weft_sidecar *sidecar);

#endif
