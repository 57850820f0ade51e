/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: strings of JSON, for texts and for open files. They may hold any bytes: what is no UTF-8 becomes U+FFFD. */
#include "tools/tools.h"

#include "ir/ir.h"

typedef void put_fn(void *to, const char *bytes, size_t count);

static unsigned length_of(const unsigned char *s)
{
    const unsigned n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
                     : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (unsigned i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    const bool wrong = n > 2 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
                                 (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f));
    return wrong ? 0 : n;
}

static void put_string(const char *string, put_fn *put, void *to)
{
    put(to, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)(string ? string : ""); *s;) {
        const unsigned length = length_of(s);
        char escape[8];
        if (*s == '"' || *s == '\\')
            put(to, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", *s));
        else if (*s < 0x20 || *s == 0x7f)
            put(to, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", *s));
        else if (length)
            put(to, (const char *)s, length);
        else
            put(to, "\\ufffd", 6);
        s += length ? length : 1;
    }
    put(to, "\"", 1);
}

static void put_text(void *to, const char *bytes, size_t count)
{
    weft_text_addn(to, bytes, count);
}

static void put_file(void *to, const char *bytes, size_t count)
{
    (void)fwrite(bytes, 1, count, to);
}

void weft_json_string(struct weft_text *text, const char *string)
{
    put_string(string, put_text, text);
}

void weft_json_write_string(FILE *file, const char *string)
{
    put_string(string, put_file, file);
}
