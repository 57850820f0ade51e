/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c: a unified diff of two short texts. Lines in common are found by the table of longest common subsequences,
 * which is quadratic: fine for graphs of a few hundred lines, and texts beyond that show their first difference
 * only. */
#include "tools/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINES 1500
#define CONTEXT 3

struct side {
    const char *start[MAX_LINES];
    size_t length[MAX_LINES];
    int lines;
};

static bool split(const char *text, struct side *side)
{
    side->lines = 0;
    while (*text) {
        const size_t length = strcspn(text, "\n");
        if (side->lines == MAX_LINES)
            return false;
        side->start[side->lines] = text;
        side->length[side->lines++] = length;
        text += length + (text[length] == '\n');
    }
    return true;
}

static bool same_line(const struct side *a, int i, const struct side *b, int j)
{
    return a->length[i] == b->length[j] && memcmp(a->start[i], b->start[j], a->length[i]) == 0;
}

/* One line of the edit: ' ' kept, '-' dropped, '+' added; from which line of which side. */
struct edit {
    char kind;
    int line;
};

/* The edits from a to b; `table` has room for (a + 1) × (b + 1) lengths. */
static int find_edits(const struct side *a, const struct side *b, short *table, struct edit *edit)
{
    const int width = b->lines + 1;
    for (int i = a->lines; i >= 0; i--)
        for (int j = b->lines; j >= 0; j--) {
            short *cell = &table[i * width + j];
            if (i == a->lines || j == b->lines)
                *cell = 0;
            else if (same_line(a, i, b, j))
                *cell = (short)(cell[width + 1] + 1);
            else
                *cell = cell[width] > cell[1] ? cell[width] : cell[1];
        }
    int edits = 0;
    for (int i = 0, j = 0; i < a->lines || j < b->lines;) {
        if (i < a->lines && j < b->lines && same_line(a, i, b, j)) {
            edit[edits++] = (struct edit){' ', i++};
            j++;
        } else if (j == b->lines || (i < a->lines && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
            edit[edits++] = (struct edit){'-', i++};
        } else {
            edit[edits++] = (struct edit){'+', j++};
        }
    }
    return edits;
}

/* Is there a change within CONTEXT lines of this one? */
static bool is_near(const struct edit *edit, int edits, int i)
{
    for (int k = i < CONTEXT ? 0 : i - CONTEXT; k < edits && k <= i + CONTEXT; k++)
        if (edit[k].kind != ' ')
            return true;
    return false;
}

static void print_edits(const struct side *a, const struct side *b, const struct edit *edit, int edits, int first_line)
{
    int line = first_line;
    bool shown = false;
    for (int i = 0; i < edits; i++) {
        const bool show = is_near(edit, edits, i);
        if (show && !shown)
            printf("@@ line %d @@\n", line);
        shown = show;
        const struct side *side = edit[i].kind == '+' ? b : a;
        if (show)
            printf("%c%.*s\n", edit[i].kind, (int)side->length[edit[i].line], side->start[edit[i].line]);
        line += edit[i].kind != '+';
    }
}

static void print_first_difference(const char *from, const char *to)
{
    int line = 1;
    size_t a = strcspn(from, "\n"), b = strcspn(to, "\n");
    while (a == b && memcmp(from, to, a) == 0 && from[a] && to[b]) {
        from += a + 1;
        to += b + 1;
        a = strcspn(from, "\n");
        b = strcspn(to, "\n");
        line++;
    }
    printf("@@ line %d @@\n-%.*s\n+%.*s\n", line, (int)a, from, (int)b, to);
}

void weft_diff_print(const char *from, const char *to, const char *from_name, const char *to_name, int first_line)
{
    struct side *side = malloc(2 * sizeof *side);
    struct edit *edit = malloc(2 * MAX_LINES * sizeof *edit);
    const bool small = side && edit && split(from, &side[0]) && split(to, &side[1]);
    short *table = small ? calloc(((size_t)side[0].lines + 1) * ((size_t)side[1].lines + 1), sizeof *table) : NULL;
    printf("--- %s\n+++ %s\n", from_name, to_name);
    if (table)
        print_edits(&side[0], &side[1], edit, find_edits(&side[0], &side[1], table, edit), first_line);
    else
        print_first_difference(from, to);
    free(table);
    free(edit);
    free(side);
}
