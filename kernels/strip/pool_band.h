/* SPDX-License-Identifier: Apache-2.0 */
/* pool_band.h: windows in bands (pool_band.c), for whoever makes their operand, or goes on with their results, while
 * these are in the nearest caches.
 *
 * A *band* is some rows of results, one behind the other: a part of one plane, or several whole planes; where channels
 * lie side by side, of some of the channels. With a band come the rows of the operand that it reads. Either may stand
 * in scratch memory that has room for one band. Strides are those of a whole array, which begins so far in front of the
 * scratch memory that the band lies in it: so whoever fills it or reads it counts as everybody does.
 *
 *   [2,3,112,112], 3x3 of stride 2, row-major     plane 0, rows  0 to 27   operand: plane 0, rows  0 to 57
 *   one band                                      plane 0, rows 28 to 55   operand: plane 0, rows 55 to 112
 *                                                 plane 1, …
 *
 * Of rows that two bands of a plane read those in scratch memory are kept, in the next band's place, and need not be
 * made again; slices are, and what two parts read. Results have the bits that weft_pool_run gives. */
#ifndef WEFT_STRIP_POOL_BAND_H
#define WEFT_STRIP_POOL_BAND_H

#include "kernels/kernels.h"

struct weft_pool_bands {
    /* Filled in as for weft_pool_prepare; strides of what stands in scratch memory are set by prepare. */
    struct weft_pool pool;
    bool makes, apart;       /* the operand stands in scratch memory, the results do */
    size_t near, far;        /* bytes that a band may fill, and that it may in order to read little twice; 0: not known
                              */
    /* set by prepare */
    int32_t form;            /* of pool.c */
    bool inside;             /* channels lie side by side */
    int64_t planes, height;  /* planes, or images if channels lie side by side; rows of results of each */
    int64_t rows, channels;  /* of a band, at most */
    int64_t read[2];         /* slices and rows of the operand that a band reads at most */
    size_t in_bytes, out_bytes; /* of scratch memory for either; 0: there is none */
    double read_again, made_again; /* elements of the operand that bands read, and that are made for them, over those
                              * that there are */
};
/* Where channels lie side by side in what does not stand in scratch memory, they do in scratch memory; if all stands
 * there, as in the results as they were given. */
void weft_pool_prepare_bands(struct weft_pool_bands *bands, int workers);
/* How many bands all parts have together, about. */
double weft_pool_count_bands(const struct weft_pool_bands *bands);

struct weft_pool_band {
    int64_t at, end;         /* rows of results of all planes, or images */
    int64_t channel, channels; /* the first one, and how many; row-major: 0 and 1 */
    int64_t plane, planes;   /* the first one, and how many; of either kind */
    int64_t read[2][2];      /* slices and rows of the operand, in each plane: from, to */
    int64_t kept, moved;     /* the first rows of these that the band before had, and how many rows further on */
    int64_t in_shift, out_shift; /* elements from the begin of the whole array to that of the scratch memory */
    struct {
        int64_t at, end, channel, past;
    } left;                  /* of the part */
};
/* The first band of a part, and the next one; false: there is none. */
bool weft_pool_first_band(const struct weft_pool_bands *bands, int part, int parts, struct weft_pool_band *ret);
bool weft_pool_next_band(const struct weft_pool_bands *bands, struct weft_pool_band *band);
/* Brings the rows that are kept to their places. `scratch`: the operand's memory. */
void weft_pool_move_kept(const struct weft_pool_bands *bands, const struct weft_pool_band *band, float *scratch);
/* The whole array that has scratch memory so many elements behind its begin: an address that is reckoned with. */
static inline float *weft_pool_whole(void *scratch, int64_t shift)
{
    return (float *)((uintptr_t)scratch - (uintptr_t)shift * sizeof(float));
}
/* Whole arrays. */
void weft_pool_run_band(const struct weft_pool_bands *bands, const struct weft_pool_band *band, float *out,
                        const float *in);

#endif
