/* SPDX-License-Identifier: Apache-2.0 */
/* check_conv_fold.c: cell by cell, as conv_fold.h says, from y as it has to be. The contract: check_conv_fold.h. */
#include "check/check_conv_fold.h"

#include <string.h>

enum { CHAIN = 256, RUN = 2048, TOGETHER = 1024, LANES = 64, BLOCK = 256 /* of reduce.c */ };

void check_conv_fold_open(struct weft_check *check, const struct weft_conv *conv, struct check_conv_fold *ret)
{
    static const enum weft_reduce_op op[] = {WEFT_K_SUM, WEFT_K_MEAN, WEFT_K_MAX, WEFT_K_MIN, WEFT_K_PROD};
    const int64_t gap = weft_check_between(check, 0, 2);
    *ret = (struct check_conv_fold){.conv = conv, .op = op[weft_check_between(check, 0, 4)]};
    const bool turned = weft_check_between(check, 0, 1);
    ret->out_stride[0] = turned ? 1 : conv->o + gap;
    ret->out_stride[1] = turned ? conv->n + gap : 1;
    ret->size = 1 + (conv->n - 1) * ret->out_stride[0] + (conv->o - 1) * ret->out_stride[1];
    ret->out = weft_check_alloc(check, (size_t)ret->size * sizeof(float));
    weft_check_fill(check, ret->out, ret->size, WEFT_FILL_PLAIN);
    weft_conv_fold_prepare(&ret->fold, conv, ret->op, ret->out_stride);
    ret->shared = weft_check_alloc(check, ret->fold.shared);
    memset(ret->shared, 0, 64);
}

void check_conv_fold_piece(struct check_conv_fold *f, const struct weft_conv_piece *piece)
{
    if (f->fold.early)
        weft_conv_fold_piece(&f->fold, f->shared, piece);
}

void check_conv_fold_end(struct check_conv_fold *f, float *y, int parts)
{
    weft_conv_fold_end(&f->fold, f->conv, f->out, y, f->shared, parts);
}

/* Terms through so many lanes, folded by halves; of one lane: a chain. As in reduce.c lanes of more than BLOCK terms
 * are cut, and the pieces added up. */
static float through_lanes(int op, const float *term, int64_t terms, int lanes)
{
    float lane[LANES], total[LANES];
    for (int l = 0; l < lanes; l++)
        lane[l] = total[l] = weft_fold_identity(op);
    for (int64_t i = 0; i < terms; i++) {
        const int l = (int)(i % lanes);
        lane[l] = weft_fold_apply(op, lane[l], term[i]);
        if (i / lanes % BLOCK != BLOCK - 1)
            continue;
        total[l] = weft_fold_apply(op, total[l], lane[l]);
        lane[l] = weft_fold_identity(op);
    }
    for (int l = 0; l < lanes; l++) {
        if (terms > l + (int64_t)lanes * (BLOCK - 1)) /* it was cut */
            lane[l] = weft_fold_apply(op, total[l], lane[l]);
    }
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = weft_fold_apply(op, lane[l], lane[l + half]);
    return lane[0];
}

/* How many pixels stand together before they are cut into cells. */
static int64_t run_of(const struct weft_conv *v, bool across, int64_t pixels)
{
    const int64_t line = v->out_extent[v->spatial - 1];
    int64_t run = line, stride = v->y_stride[1 + v->spatial];
    bool dense = true;
    for (int d = v->spatial - 1; d >= 0; stride *= v->out_extent[d--])
        dense = dense && (v->out_extent[d] == 1 || v->y_stride[2 + d] == stride);
    while (!across && dense && run + line <= TOGETHER && run + line <= pixels)
        run += line;
    return run;
}

static float define(struct weft_check *check, const struct check_conv_fold *f, const float *y, int64_t pixels)
{
    const struct weft_conv *const v = f->conv;
    const bool across = v->y_stride[1] == 1 && v->o > 1;
    const int op = f->op == WEFT_K_MEAN ? WEFT_K_SUM : (int)f->op, most = across ? CHAIN : RUN;
    const int64_t run = run_of(v, across, pixels);
    float *const cell = weft_check_alloc(check, (size_t)(pixels + 1) * sizeof(float)), term[RUN];
    int64_t cells = 0, terms = 0;
    for (int64_t pixel = 0; pixel < pixels; pixel++) {
        int64_t rest = pixel, at = 0;
        for (int d = v->spatial - 1; d >= 0; rest /= v->out_extent[d--])
            at += rest % v->out_extent[d] * v->y_stride[2 + d];
        term[terms++] = y[at];
        if (pixel + 1 < pixels && (pixel + 1) % run && (pixel + 1) % run % most)
            continue;
        cell[cells++] = through_lanes(op, term, terms, across ? 1 : LANES);
        terms = 0;
    }
    const float result = through_lanes(op, cell, cells, across ? 1 : WEFT_FOLD_LANES);
    return f->op == WEFT_K_MEAN ? result / (float)pixels : result;
}

void check_conv_fold_compare(struct weft_check *check, const char *what, const struct check_conv_fold *f,
                             const float *y)
{
    const struct weft_conv *const v = f->conv;
    int64_t pixels = 1;
    for (int d = 0; d < v->spatial; d++)
        pixels *= v->out_extent[d];
    for (int64_t n = 0; n < v->n; n++)
        for (int64_t o = 0; o < v->o; o++) {
            const float want = define(check, f, y + n * v->y_stride[0] + o * v->y_stride[1], pixels);
            const float *const got = f->out + n * f->out_stride[0] + o * f->out_stride[1];
            if (!weft_check_same(check, what, got, &want, 1)) {
                weft_check_fail(check, "%s: fold %d of image %lld, channel %lld, %s", what, (int)f->op, (long long)n,
                                (long long)o, f->fold.early ? "piece by piece" : "at the end");
                return;
            }
        }
    static const char none[64];
    weft_check_same_bytes(check, what, f->shared, none, sizeof none);
}
