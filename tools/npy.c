/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c: the .npy format (numpy.lib.format, NEP 1): "\x93NUMPY", two version bytes, the length of a header (two bytes,
 * or four from version 2 on), the header, then the elements. The header is a Python dictionary with exactly the keys
 * descr, fortran_order and shape; a scanner for the few literals it can hold is all that is needed. */
#include "tools/npy.h"

#include "ir/ir.h"
#include "ir/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER (1 << 16)

static const struct {
    char code[4]; /* kind and bytes of an element */
    int dtype;
} codes[] = {
    {"f8", WEFT_F64}, {"f4", WEFT_F32}, {"f2", WEFT_F16}, {"i8", WEFT_I64}, {"i4", WEFT_I32}, {"i2", WEFT_I16},
    {"i1", WEFT_I8},  {"u8", WEFT_U64}, {"u4", WEFT_U32}, {"u2", WEFT_U16}, {"u1", WEFT_U8},  {"b1", WEFT_BOOL},
};
#define CODES (sizeof codes / sizeof *codes)

static bool fail(char *message, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(char *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, WEFT_NPY_MESSAGE, format, arguments);
    va_end(arguments);
    return false;
}

/* --- the header --------------------------------------------------------------------------------------------------- */

struct header {
    char descr[16];
    bool fortran, seen_descr, seen_order, seen_shape;
    int rank;
    int64_t extent[WEFT_MAX_RANK];
};

struct scanner {
    const char *at;
    char *message;
};

static void skip_blanks(struct scanner *s)
{
    while (*s->at == ' ' || *s->at == '\n' || *s->at == '\t')
        s->at++;
}

static bool take(struct scanner *s, char c)
{
    skip_blanks(s);
    if (*s->at != c)
        return false;
    s->at++;
    return true;
}

/* A string in single or double quotes, without escapes. */
static bool take_string(struct scanner *s, char *to, size_t bytes)
{
    skip_blanks(s);
    const char quote = *s->at;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(s->at + 1, quote);
    if (!end || (size_t)(end - s->at) > bytes)
        return false;
    const size_t length = (size_t)(end - s->at - 1);
    memcpy(to, s->at + 1, length);
    to[length] = '\0';
    s->at = end + 1;
    return true;
}

static bool take_word(struct scanner *s, const char *word)
{
    skip_blanks(s);
    const size_t length = strlen(word);
    if (strncmp(s->at, word, length))
        return false;
    s->at += length;
    return true;
}

/* "(1, 3,)" */
static bool take_shape(struct scanner *s, struct header *header)
{
    if (!take(s, '('))
        return fail(s->message, "the header's shape is no tuple");
    while (!take(s, ')')) {
        skip_blanks(s);
        if (*s->at < '0' || *s->at > '9')
            return fail(s->message, "the header's shape holds something else than sizes");
        char *end;
        errno = 0;
        const long long extent = strtoll(s->at, &end, 10);
        if (errno)
            return fail(s->message, "a size in the header's shape is too large");
        if (header->rank == WEFT_MAX_RANK)
            return fail(s->message, "more than %d axes", WEFT_MAX_RANK);
        header->extent[header->rank++] = extent;
        s->at = end + (*end == 'L'); /* Python 2 wrote long integers so */
        if (!take(s, ',') && (skip_blanks(s), *s->at != ')'))
            return fail(s->message, "the header's shape is no tuple");
    }
    return true;
}

static bool take_entry(struct scanner *s, struct header *header)
{
    char key[16];
    if (!take_string(s, key, sizeof key) || !take(s, ':'))
        return fail(s->message, "the header is no dictionary as numpy writes it");
    bool *seen = !strcmp(key, "descr")           ? &header->seen_descr
                 : !strcmp(key, "fortran_order") ? &header->seen_order
                 : !strcmp(key, "shape")         ? &header->seen_shape
                                                 : NULL;
    if (!seen || *seen)
        return fail(s->message, "the header has %s key '%s'", seen ? "twice the" : "an unknown", key);
    *seen = true;
    if (seen == &header->seen_shape)
        return take_shape(s, header);
    if (seen == &header->seen_descr)
        return take_string(s, header->descr, sizeof header->descr) ||
               fail(s->message, "the element type is no simple type");
    header->fortran = take_word(s, "True");
    return header->fortran || take_word(s, "False") || fail(s->message, "fortran_order is neither True nor False");
}

static bool parse_header(const char *text, struct header *header, char *message)
{
    struct scanner s = {text, message};
    if (!take(&s, '{'))
        return fail(message, "the header is no dictionary as numpy writes it");
    while (!take(&s, '}')) {
        if (!take_entry(&s, header))
            return false;
        if (!take(&s, ',') && (skip_blanks(&s), *s.at != '}'))
            return fail(message, "the header is no dictionary as numpy writes it");
    }
    skip_blanks(&s);
    if (*s.at || !header->seen_descr || !header->seen_order || !header->seen_shape)
        return fail(message, "the header %s",
                    *s.at ? "goes on after its dictionary" : "lacks descr, fortran_order or shape");
    return true;
}

static int find_dtype(const char *descr, char *message)
{
    if (descr[0] == '>')
        fail(message, "big-endian elements ('%s') are not supported", descr);
    else
        fail(message, "element type '%s' is not supported", descr);
    if (descr[0] != '<' && descr[0] != '|' && descr[0] != '=')
        return 0;
    for (size_t i = 0; i < CODES; i++)
        if (!strcmp(codes[i].code, descr + 1))
            return codes[i].dtype;
    return 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool read_header(FILE *from, struct header *header, char *message)
{
    unsigned char start[12];
    if (fread(start, 1, 10, from) != 10 || memcmp(start, "\x93NUMPY", 6))
        return fail(message, "not a .npy file");
    if (start[6] < 1 || start[6] > 3)
        return fail(message, "version %u of the .npy format is unknown", start[6]);
    size_t length = start[8] | (size_t)start[9] << 8;
    if (start[6] > 1) {
        if (fread(start + 10, 1, 2, from) != 2)
            return fail(message, "the file ends inside its header");
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (length > MAX_HEADER)
        return fail(message, "a header of %zu bytes is beyond reason", length);
    char *text = malloc(length + 1);
    if (!text)
        return fail(message, "out of memory");
    bool ok = fread(text, 1, length, from) == length || fail(message, "the file ends inside its header");
    text[ok ? length : 0] = '\0';
    ok = ok && (!memchr(text, 0, length) || fail(message, "the header holds a zero byte"));
    ok = ok && parse_header(text, header, message);
    free(text);
    return ok;
}

/* Bytes from the position to the end, or -1. */
static int64_t bytes_left(FILE *from)
{
    const off_t at = ftello(from);
    if (at < 0 || fseeko(from, 0, SEEK_END))
        return -1;
    const off_t end = ftello(from);
    if (end < at || fseeko(from, at, SEEK_SET))
        return -1;
    return end - at;
}

/* Elements of a tensor of any strides, packed row-major into `to`. */
static void pack(const struct weft_tensor *tensor, int64_t elements, char *to)
{
    const size_t bytes = weft_dtype_bits(tensor->dtype) / 8;
    int64_t index[WEFT_MAX_RANK] = {0}, place = 0;
    for (int64_t i = 0; i < elements; i++) {
        memcpy(to + (size_t)i * bytes, (const char *)tensor->data + (size_t)place * bytes, bytes);
        for (int axis = tensor->rank - 1; axis >= 0; axis--) {
            place += tensor->stride[axis];
            if (++index[axis] < tensor->extent[axis])
                break;
            place -= index[axis] * tensor->stride[axis];
            index[axis] = 0;
        }
    }
}

static void *new_elements(int64_t bytes)
{
    return aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
}

/* The elements lie with the first axis innermost: turned here, so that callers see one order only. */
static bool turn_fortran(struct weft_tensor *tensor, int64_t elements, int64_t bytes, char *message)
{
    int64_t stride = 1;
    for (int axis = 0; axis < tensor->rank; axis++) {
        tensor->stride[axis] = stride;
        stride *= tensor->extent[axis];
    }
    char *turned = new_elements(bytes);
    if (!turned)
        return fail(message, "out of memory");
    pack(tensor, elements, turned);
    free(tensor->data);
    tensor->data = turned;
    weft_tensor_dense(tensor);
    return true;
}

bool weft_npy_read(FILE *from, struct weft_tensor *ret_tensor, char message[WEFT_NPY_MESSAGE])
{
    struct header header = {0};
    if (!read_header(from, &header, message))
        return false;
    struct weft_tensor tensor = {.dtype = find_dtype(header.descr, message), .rank = header.rank};
    if (!tensor.dtype)
        return false;
    int64_t elements = 1, bytes, reach = 1; /* reach: as if axes without elements had one, for strides */
    for (int axis = 0; axis < header.rank; axis++) {
        tensor.extent[axis] = header.extent[axis];
        if (__builtin_mul_overflow(reach, header.extent[axis] > 0 ? header.extent[axis] : 1, &reach))
            return fail(message, "the shape is too large");
        elements *= header.extent[axis]; /* 0, or as far as reach */
    }
    const int64_t left = bytes_left(from);
    if (__builtin_mul_overflow(elements, (int64_t)weft_dtype_bits(tensor.dtype) / 8, &bytes))
        return fail(message, "the shape is too large");
    if (left < 0)
        return fail(message, "not a regular file");
    if (bytes > left)
        return fail(message, "the shape asks for %" PRId64 " bytes, the file holds %" PRId64, bytes, left);
    tensor.data = new_elements(bytes);
    if (!tensor.data)
        return fail(message, "out of memory");
    weft_tensor_dense(&tensor);
    if (fread(tensor.data, 1, (size_t)bytes, from) != (size_t)bytes) {
        free(tensor.data);
        return fail(message, "the file cannot be read to its end");
    }
    if (header.fortran && !turn_fortran(&tensor, elements, bytes, message)) {
        free(tensor.data);
        return false;
    }
    if (tensor.dtype == WEFT_BOOL) /* numpy never writes other bytes than 0 and 1, files may hold any */
        for (int64_t i = 0; i < bytes; i++)
            ((unsigned char *)tensor.data)[i] = ((unsigned char *)tensor.data)[i] != 0;
    *ret_tensor = tensor;
    return true;
}

bool weft_npy_load(const char *path, struct weft_tensor *ret_tensor, char message[WEFT_NPY_MESSAGE])
{
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe without a writer must not wait */
    struct stat status;
    FILE *from = file >= 0 ? fdopen(file, "rb") : NULL;
    if (!from) {
        fail(message, "%s", strerror(errno));
        if (file >= 0)
            close(file);
        return false;
    }
    const bool ok = (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) ? weft_npy_read(from, ret_tensor, message)
                                                                           : fail(message, "not a regular file");
    fclose(from);
    return ok;
}

void weft_npy_free(struct weft_tensor *tensor)
{
    free(tensor->data);
    *tensor = (struct weft_tensor){0};
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Magic, header and padding to a multiple of 64 bytes. */
static bool write_header(FILE *to, const char *code, const struct weft_tensor *tensor)
{
    char text[512];
    int length = snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                          code[1] == '1' ? '|' : '<', code);
    for (int axis = 0; axis < tensor->rank; axis++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%" PRId64 "%s", tensor->extent[axis],
                           axis + 1 < tensor->rank ? ", " : tensor->rank == 1 ? "," : "");
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    while ((10 + length + 1) % 64)
        text[length++] = ' ';
    text[length++] = '\n';
    const unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(length & 255),
                                     (unsigned char)(length >> 8)};
    return fwrite(start, 1, 10, to) == 10 && fwrite(text, 1, (size_t)length, to) == (size_t)length;
}

/* bf16 is the upper half of an f32. */
static void widen_bf16(char *elements, int64_t count)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        uint16_t half;
        memcpy(&half, elements + 2 * i, sizeof half);
        const uint32_t whole = (uint32_t)half << 16;
        memcpy(elements + 4 * i, &whole, sizeof whole);
    }
}

void weft_npy_narrow(struct weft_tensor *tensor, int dtype)
{
    int64_t elements = 1;
    if (dtype != WEFT_BF16 || tensor->dtype != WEFT_F32)
        return;
    for (int axis = 0; axis < tensor->rank; axis++)
        elements *= tensor->extent[axis];
    for (int64_t e = 0; e < elements; e++) /* in place: what is written lies in front of what is read */
        weft_store_real(WEFT_BF16, tensor->data, e, weft_load_real(WEFT_F32, tensor->data, e));
    tensor->dtype = WEFT_BF16;
}

bool weft_npy_save(const char *path, const struct weft_tensor *tensor, char message[WEFT_NPY_MESSAGE])
{
    const bool widen = tensor->dtype == WEFT_BF16;
    const int dtype = widen ? WEFT_F32 : tensor->dtype;
    const char *code = NULL;
    for (size_t i = 0; i < CODES; i++)
        if (codes[i].dtype == dtype)
            code = codes[i].code;
    if (!code)
        return fail(message, "%s has no name in .npy files",
                    weft_dtype_name(dtype) ? weft_dtype_name(dtype) : "an unknown type");
    int64_t elements = 1;
    for (int axis = 0; axis < tensor->rank; axis++)
        elements *= tensor->extent[axis];
    const int64_t bytes = elements * weft_dtype_bits(dtype) / 8;
    char *packed = new_elements(bytes);
    if (!packed)
        return fail(message, "out of memory");
    pack(tensor, elements, packed);
    if (widen)
        widen_bf16(packed, elements);
    struct weft_file file;
    bool ok = weft_file_create(&file, path);
    if (ok && write_header(file.to, code, tensor))
        (void)fwrite(packed, 1, (size_t)bytes, file.to); /* what is wrong is seen below */
    ok = ok && weft_file_commit(&file);
    if (!ok)
        fail(message, "%s", strerror(errno));
    free(packed);
    return ok;
}
