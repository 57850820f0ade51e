/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: the parts of the language that parser and printer must agree on to the letter: names, numbers, content
 * addresses.
 *
 * Numbers print as the shortest decimal that reads back as the same element of its type, so a text holds no more
 * than was meant (0.1, not 0.100000001) and loses nothing. The C library's number functions follow the process's
 * locale, which belongs to the program that weft is part of: a decimal comma is turned into a point and back here. */
#include "ir/parse.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

bool weft_is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '$' || c == ':' || c == '/' || c == '-';
}

void weft_text_quoted(struct weft_text *text, const char *string)
{
    weft_text_add(text, "\"");
    for (const char *c = string; *c; c++) {
        if (*c == '"' || *c == '\\')
            weft_text_format(text, "\\%c", *c);
        else if (*c == '\n')
            weft_text_add(text, "\\n");
        else if ((unsigned char)*c < ' ' || *c == 127)
            weft_text_format(text, "\\x%02x", (unsigned)(unsigned char)*c);
        else
            weft_text_addn(text, c, 1);
    }
    weft_text_add(text, "\"");
}

void weft_text_name(struct weft_text *text, char sigil, const char *name)
{
    weft_text_addn(text, &sigil, 1);
    const size_t length = strlen(name);
    bool plain = length > 0 && name[length - 1] != ':';
    for (size_t i = 0; i < length && plain; i++)
        plain = weft_is_name_character(name[i]);
    if (plain)
        weft_text_addn(text, name, length);
    else
        weft_text_quoted(text, name);
}

bool weft_read_real(struct weft_word word, double *ret)
{
    char copy[128];
    const char *point = localeconv()->decimal_point;
    size_t length = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (length + 8 > sizeof copy)
            return false;
        if (word.text[i] != '.')
            copy[length++] = word.text[i];
        for (const char *c = word.text[i] == '.' ? point : ""; *c && length + 8 < sizeof copy; c++)
            copy[length++] = *c;
    }
    copy[length] = '\0';
    char *end;
    const double value = strtod(copy, &end);
    if (length == 0 || end != copy + length)
        return false;
    *ret = value;
    return true;
}

/* The same element of dtype? Bits count (-0 is not 0); all NaN are one. */
static bool same_element(int dtype, double a, double b)
{
    uint64_t bits[2] = {0, 0};
    weft_store_real(dtype, &bits[0], 0, a);
    weft_store_real(dtype, &bits[1], 0, b);
    return bits[0] == bits[1];
}

void weft_text_real(struct weft_text *text, int dtype, double value)
{
    if (isnan(value) || isinf(value)) {
        weft_text_add(text, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    char digits[64];
    if (value == floor(value) && fabs(value) < 1e7) {
        weft_text_add(text, signbit(value) ? "-" : ""); /* -0 too */
        weft_text_integer(text, (int64_t)fabs(value));
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (same_element(dtype, strtod(digits, NULL), value))
            break;
    }
    for (const char *c = digits; *c; c++) {
        const bool part = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
        weft_text_addn(text, part ? c : ".", 1);
    }
}

void weft_text_element(struct weft_text *text, int dtype, const void *data, int64_t i)
{
    if (weft_dtype_is_float(dtype))
        weft_text_real(text, dtype, weft_load_real(dtype, data, i));
    else if (dtype == WEFT_U64)
        weft_text_format(text, "%" PRIu64, (uint64_t)weft_load_integer(dtype, data, i));
    else
        weft_text_integer(text, weft_load_integer(dtype, data, i));
}

void weft_blob_hash(const void *data, size_t bytes, char ret[33])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
    for (int i = 0; i < 16; i++)
        snprintf(ret + 2 * i, 3, "%02x", (unsigned)canonical.digest[i]);
}

size_t weft_folder_length(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? (size_t)(slash - file) + 1 : 0;
}
