/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy.c: bytes as an array in numpy's format.
 *
 * The reader returns an array or one sentence. An array is written and read again: the same type, shape and bytes, but
 * for f16 and f32 alike, since nothing is computed. The files are in memory (memfd), so nothing is left on a disk. */
#include "tests/fuzz/fuzz.h"
#include "tools/npy.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const size_t weft_fuzz_limit = 2048;

static void read_again(const struct weft_tensor *array)
{
    char path[40], message[WEFT_NPY_MESSAGE];
    struct weft_tensor again;
    const int file = memfd_create("written", 0);
    weft_fuzz_require(file >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (!weft_npy_save(path, array, message) || !weft_npy_load(path, &again, message))
        weft_fuzz_fail("what was read cannot be written and read again: %s", message);
    int64_t count = 1;
    weft_fuzz_require(again.dtype == array->dtype && again.rank == array->rank);
    for (int axis = 0; axis < array->rank; axis++) {
        weft_fuzz_require(again.extent[axis] == array->extent[axis] && again.stride[axis] == array->stride[axis]);
        count *= array->extent[axis];
    }
    weft_fuzz_require(memcmp(again.data, array->data, (size_t)weft_dtype_bytes(array->dtype, count)) == 0);
    weft_npy_free(&again);
    close(file);
}

void weft_fuzz_check(const uint8_t *data, size_t size)
{
    char message[WEFT_NPY_MESSAGE] = "";
    static char nothing[1]; /* the library knows no empty file in memory */
    struct weft_tensor array;
    FILE *from = fmemopen(size ? (void *)(uintptr_t)data : nothing, size ? size : 1, "rb");
    weft_fuzz_require(from != NULL);
    if (weft_npy_read(from, &array, message)) {
        read_again(&array);
        weft_npy_free(&array);
    } else {
        weft_fuzz_require(*message != '\0');
    }
    fclose(from);
}

/* --- mutation ----------------------------------------------------------------------------------------------------- */

/* What headers are made of. */
static const char *const pieces[] = {
    "'<f4'", "'<f8'", "'<f2'", "'<i8'", "'<i4'", "'|i1'", "'<u8'", "'|u1'", "'|b1'", "'>f4'", "'|O'", "True", "False",
    "(), ", "(2,)", "(2, 3)", "(0, 5)", "(1, 1, 1, 1, 1, 1, 1, 1)", "(4611686018427387904, 4)", "3L", "'descr'",
    "'fortran_order'", "'shape'", ": ", ", ", "}", "{", "\"", " "};

/* Bytes 8 and 9 say how long the header is; they follow it where it changes. */
size_t weft_fuzz_mutate(uint8_t *data, size_t size, size_t room, uint64_t *random)
{
    if (size <= 10 || weft_fuzz_draw(random, 4) == 0)
        return weft_fuzz_mutate_bytes(data, size, room, random);
    size_t length = data[8] | (size_t)data[9] << 8;
    if (length > size - 10)
        length = size - 10;
    const size_t at = 10 + weft_fuzz_draw(random, length + 1);
    const char *piece = pieces[weft_fuzz_draw(random, sizeof pieces / sizeof *pieces)];
    size_t old = weft_fuzz_draw(random, 8);
    /* Mostly in the place of a piece that is there. */
    const uint8_t *found = memmem(data + 10, length, "'<", 2);
    size_t place = at;
    if (found && *piece == '\'' && weft_fuzz_draw(random, 2)) {
        place = (size_t)(found - data);
        old = 5;
    }
    if (old > 10 + length - place)
        old = 10 + length - place;
    const size_t after = weft_fuzz_splice(data, size, room, place, old, piece, strlen(piece));
    length = length + after - size;
    data[8] = (uint8_t)(length & 255);
    data[9] = (uint8_t)(length >> 8);
    return after;
}
