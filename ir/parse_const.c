/* SPDX-License-Identifier: Apache-2.0 */
/* parse_const.c: the elements of constants:
 *
 *   const value=0.5                     every element; extents may be symbolic
 *   const value=[[1 2] [3 4]]           in place, row-major; inner brackets are for the eye, and not checked
 *   const file="w.bin" offset=4096      packed bytes in a file, mapped; relative to the text's folder
 *   const blob=<32 hex digits>          bytes that the reader of the text has, by their content address
 *   const random=7 scale=0.1            made by formula, for tests and benchmarks */
#include "ir/parse.h"

#include <string.h>

static bool wrong(struct weft_parser *p, struct weft_word word, int dtype)
{
    if (word.length == 0)
        return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "expected a number");
    return weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "'%.*s' is no element of %s", (int)word.length, word.text,
                           weft_dtype_name(dtype));
}

/* Integers of every type but u64 fit an int64_t; u64 is taken as its bits. */
static bool parse_element_integer(struct weft_word word, int dtype, int64_t *ret)
{
    const int bits = (int)weft_dtype_bits(dtype);
    if (dtype == WEFT_BOOL) {
        *ret = weft_parse_is(word, "1") || weft_parse_is(word, "true");
        return *ret || weft_parse_is(word, "0") || weft_parse_is(word, "false");
    }
    if (dtype == WEFT_U64) {
        uint64_t value = 0;
        for (size_t i = 0; i < word.length; i++) {
            if (word.text[i] < '0' || word.text[i] > '9')
                return false;
            const uint64_t digit = (uint64_t)(word.text[i] - '0');
            if (value > (UINT64_MAX - digit) / 10)
                return false;
            value = value * 10 + digit;
        }
        *ret = (int64_t)value;
        return word.length > 0;
    }
    if (!weft_parse_integer(word, ret))
        return false;
    const bool is_signed = weft_dtype_is_signed(dtype);
    const int64_t high = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - is_signed)) - 1;
    return *ret <= high && *ret >= (is_signed ? -high - 1 : 0);
}

static bool is_integral(int dtype) { return !weft_dtype_is_float(dtype); }

bool weft_parse_element(struct weft_word word, int dtype, void *data, int64_t i)
{
    int64_t integer = 0;
    double real = 0;
    if (is_integral(dtype) ? !parse_element_integer(word, dtype, &integer) : !weft_read_real(word, &real))
        return false;
    if (data && is_integral(dtype))
        weft_store_integer(dtype, data, i, integer);
    else if (data)
        weft_store_real(dtype, data, i, real);
    return true;
}

static bool parse_splat(struct weft_parser *p, int dtype, struct weft_constant *ret)
{
    const struct weft_word word = weft_parse_token(p);
    ret->kind = WEFT_CONST_SPLAT;
    ret->integer = is_integral(dtype);
    const bool right =
        ret->integer ? parse_element_integer(word, dtype, &ret->splat) : weft_read_real(word, &ret->real);
    return right || wrong(p, word, dtype);
}

/* Number of elements, or -1 with an error if a symbol decides. */
static int64_t element_count(struct weft_parser *p, const struct weft_type *type, const char *at)
{
    weft_dim count = weft_type_elements(p->root->dims, type);
    if (weft_dim_is_constant(count))
        return weft_dim_value(count);
    weft_parse_fail(p, at, WEFT_ERR_INVALID, "a constant with symbolic extents can only be value=NUMBER");
    return -1;
}

static bool parse_list(struct weft_parser *p, const struct weft_type *type, struct weft_constant *ret)
{
    const char *at = p->cursor;
    const int64_t count = element_count(p, type, at);
    if (count < 0)
        return false;
    /* An element takes two bytes of text, so a short text cannot ask for much memory. */
    const int64_t most = (int64_t)(p->end - at) / 2 + 1;
    struct weft_blob *blob =
        weft_blob_new(p->context, (size_t)weft_dtype_bytes(type->dtype, count < most ? count : most));
    if (!blob)
        weft_out_of_memory(p->context);
    weft_graph_hold(p->graph, blob);
    int depth = 0;
    int64_t filled = 0;
    do {
        weft_parse_lines(p);
        if (weft_parse_take(p, '[')) {
            depth++;
        } else if (weft_parse_take(p, ']')) {
            depth--;
        } else {
            const struct weft_word word = weft_parse_token(p);
            const bool right = weft_parse_element(word, type->dtype, filled < count ? blob->data : NULL, filled);
            if (!right && memchr(at, '\n', (size_t)(word.text - at))) {
                p->cursor = at; /* what follows is more likely the next line than an element */
                return weft_parse_fail(p, at, WEFT_ERR_SYNTAX,
                                       "the list has no ] before a line that is none of its own");
            }
            if (!right)
                return wrong(p, word, type->dtype);
            filled++;
        }
    } while (depth > 0);
    if (filled != count)
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "the type has %lld elements, but the list has %lld",
                               (long long)count, (long long)filled);
    *ret = (struct weft_constant){.kind = WEFT_CONST_BLOB, .blob = blob};
    return true;
}

/* The blob must hold the elements from `offset` on. */
static bool check_size(struct weft_parser *p, const struct weft_type *type, const struct weft_constant *constant,
                       const char *at)
{
    const int64_t count = element_count(p, type, at);
    if (count < 0)
        return false;
    const uint64_t need = (uint64_t)weft_dtype_bytes(type->dtype, count), have = constant->blob->bytes;
    if (constant->offset <= have && need <= have - constant->offset)
        return true;
    return weft_parse_fail(p, at, WEFT_ERR_INVALID, "the constant needs bytes %llu to %llu, but there are only %llu",
                           (unsigned long long)constant->offset, (unsigned long long)(constant->offset + need),
                           (unsigned long long)have);
}

/* A path of the text is relative to the text's folder. Files are mapped once. */
static struct weft_blob *map_file(struct weft_parser *p, struct weft_word path, const char *path_at)
{
    const char *name = p->options->name;
    const size_t folder = path.text[0] == '/' ? 0 : weft_folder_length(name);
    const char *full =
        weft_arena_format(&p->scratch, "%.*s%.*s", (int)folder, folder ? name : "", (int)path.length, path.text);
    if (p->options->no_files) {
        weft_parse_fail(p, path_at, WEFT_ERR_INVALID,
                        "%s: a text in memory may name no files, unless its folder is given", full);
        return NULL;
    }
    if (p->options->folder && path.text[0] != '/')
        full = weft_arena_format(&p->scratch, "%s/%.*s", p->options->folder, (int)path.length, path.text);
    for (uint32_t i = 0; i < p->root->blobs; i++)
        if (p->root->blob[i]->path && strcmp(p->root->blob[i]->path, full) == 0)
            return p->root->blob[i];
    struct weft_caught caught = {.arena = &p->scratch};
    p->context->caught = &caught;
    struct weft_blob *blob = weft_blob_map(p->context, full);
    p->context->caught = NULL;
    if (blob)
        weft_graph_hold(p->graph, blob);
    else
        weft_parse_fail(p, path_at, WEFT_ERR_IO, "%s: %s", full,
                        caught.message ? caught.message : "cannot be mapped");
    return blob;
}

static bool parse_file(struct weft_parser *p, const struct weft_type *type, struct weft_constant *ret)
{
    struct weft_word path;
    weft_parse_blanks(p);
    const char *at = p->cursor;
    int64_t offset = 0;
    if (!weft_parse_string(p, &path))
        return false;
    if (path.length == 0)
        return weft_parse_fail(p, at, WEFT_ERR_INVALID, "the file has no name");
    if (weft_parse_is(weft_parse_peek(p), "offset")) {
        weft_parse_word(p);
        if (!weft_parse_expect(p, '=', "after offset"))
            return false;
        const struct weft_word word = weft_parse_token(p);
        if (!weft_parse_integer(word, &offset) || offset < 0)
            return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "an offset is a number of bytes, not '%.*s'",
                                   (int)word.length, word.text);
    }
    *ret = (struct weft_constant){.kind = WEFT_CONST_BLOB, .blob = map_file(p, path, at), .offset = (uint64_t)offset};
    return ret->blob && check_size(p, type, ret, at);
}

static bool parse_blob(struct weft_parser *p, const struct weft_type *type, struct weft_constant *ret)
{
    const struct weft_word word = weft_parse_token(p);
    bool right = word.length == 32;
    for (size_t i = 0; i < word.length; i++)
        right = right && strchr("0123456789abcdef", word.text[i]);
    if (!right)
        return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX,
                               "a content address is 32 hexadecimal digits, in lower case");
    struct weft_blob *blob = NULL;
    if (p->options->find_blob)
        blob = p->options->find_blob(p->options->user, weft_parse_copy(p, word), &ret->offset);
    if (!blob)
        return weft_parse_fail(p, word.text, WEFT_ERR_INVALID,
                               "nobody here has the bytes %.*s: this text was printed without them", (int)word.length,
                               word.text);
    weft_graph_hold(p->graph, blob);
    ret->kind = WEFT_CONST_BLOB;
    ret->blob = blob;
    return check_size(p, type, ret, word.text);
}

static bool parse_random(struct weft_parser *p, const struct weft_type *type, struct weft_constant *ret)
{
    const struct weft_word word = weft_parse_token(p);
    int64_t seed;
    if (!parse_element_integer(word, WEFT_U64, &seed))
        return weft_parse_fail(p, word.text, WEFT_ERR_SYNTAX, "a seed is a number from 0 to 2^64 - 1");
    if (is_integral(type->dtype))
        return weft_parse_fail(p, word.text, WEFT_ERR_INVALID, "random constants are floating-point, not %s",
                               weft_dtype_name(type->dtype));
    *ret = (struct weft_constant){.kind = WEFT_CONST_RANDOM, .seed = (uint64_t)seed, .scale = 1};
    if (element_count(p, type, word.text) < 0)
        return false;
    if (!weft_parse_is(weft_parse_peek(p), "scale"))
        return true;
    weft_parse_word(p);
    if (!weft_parse_expect(p, '=', "after scale"))
        return false;
    const struct weft_word scale = weft_parse_token(p);
    return weft_read_real(scale, &ret->scale) || wrong(p, scale, WEFT_F64);
}

bool weft_parse_constant(struct weft_parser *p, const struct weft_type *type, struct weft_constant *ret)
{
    const struct weft_word key = weft_parse_word(p);
    static const char *const keys[] = {"value", "file", "blob", "random"};
    unsigned which = 0;
    while (which < 4 && !weft_parse_is(key, keys[which]))
        which++;
    if (which == 4)
        return weft_parse_fail(p, key.text, WEFT_ERR_SYNTAX,
                               "a constant has its elements as value=…, file=\"…\", blob=… or random=…");
    if (!weft_parse_expect(p, '=', "after what the elements come from"))
        return false;
    weft_parse_blanks(p);
    if (which == 0)
        return p->cursor < p->end && *p->cursor == '[' ? parse_list(p, type, ret) : parse_splat(p, type->dtype, ret);
    return which == 1 ? parse_file(p, type, ret) : which == 2 ? parse_blob(p, type, ret) : parse_random(p, type, ret);
}
