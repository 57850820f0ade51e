/* SPDX-License-Identifier: Apache-2.0 */
/* emit_rows.c: the rows of strip.def as text. */
#include "codegen/emit_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct weft_emit_row rows[] = {
#define F1(id, op, result) {#id, op, #result, 1, false},
#define F2(id, op, result) {#id, op, #result, 2, false},
#define F3(id, op, result) {#id, op, #result, 3, false},
#define C1(id, op, mask)   {#id, op, #mask, 1, true},
#define C2(id, op, mask)   {#id, op, #mask, 2, true},
#define FN(id, op, in, out)
#include "kernels/strip/strip.def"
};

const struct weft_emit_row *weft_emit_row_find(const char *word, unsigned ins)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].ins == ins && strcmp(rows[i].op, word) == 0)
            return &rows[i];
    return NULL;
}

static bool continues(char c) { return isalnum((unsigned char)c) || c == '_'; }

bool weft_emit_row_uses(const struct weft_emit_row *row, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(row->result, name); at; at = strstr(at + 1, name))
        if ((at == row->result || !(continues(at[-1]) || at[-1] == '.')) && !continues(at[length]))
            return true;
    return false;
}

static bool defines(const char *header, const char *name, size_t length)
{
    char function[80], macro[80];
    snprintf(function, sizeof function, "vf %.*s(", (int)length, name);
    snprintf(macro, sizeof macro, "define %.*s(", (int)length, name);
    return strstr(header, function) || strstr(header, macro);
}

bool weft_emit_row_is_double(const struct weft_emit_row *row)
{
    for (const char *at = row->result; *at;) {
        size_t length = 0;
        while (continues(at[length]))
            length++;
        if (length > 0 && at[length] == '(' && defines(weft_prelude_functions_double, at, length))
            return true;
        at += length ? length : 1;
    }
    return false;
}
