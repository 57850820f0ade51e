/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_definition.c: a bound for each result, from absolute values.
 *
 * With all operands replaced by their absolute values, the transforms' matrices too, the same formula gives S >= the
 * sum of the magnitudes of everything that is rounded on the way to a result. No term goes through more than C + 24
 * roundings: C in the chain, at most 2 times 4 in either transform of x, M and w, each at most half a unit. So the
 * error is at most (C + 24) 2^-24 S, to first order; 1.01 covers the rest. */
#include "check/winograd_definition.h"

#include "kernels/conv/winograd.h"

#include <math.h>

static const double in_2[6][6] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
static const double in_4[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                  {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
static const double weight_2[6][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
static const double weight_4[6][3] = {{1 / 4.0, 0, 0},
                                      {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                                      {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                                      {1 / 24.0, 1 / 12.0, 1 / 6.0},
                                      {1 / 24.0, -1 / 12.0, 1 / 6.0},
                                      {0, 0, 1}};
static const double out_2[4][6] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
static const double out_4[4][6] = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

struct element {
    const struct weft_conv *conv;
    const float *x, *w;
    int64_t n, g, c, o; /* c, o within the group */
};

static double x_at(const struct element *e, int64_t row, int64_t column)
{
    const struct weft_conv *v = e->conv;
    row -= v->pad[0], column -= v->pad[1];
    if (row < 0 || row >= v->in_extent[0] || column < 0 || column >= v->in_extent[1])
        return 0;
    return e->x[e->n * v->x_stride[0] + (e->g * (v->c / v->groups) + e->c) * v->x_stride[1] + row * v->x_stride[2] +
                column * v->x_stride[3]];
}
static double w_at(const struct element *e, int row, int column)
{
    const struct weft_conv *v = e->conv;
    return e->w[(e->g * (v->o / v->groups) + e->o) * v->w_stride[0] + e->c * v->w_stride[1] + row * v->w_stride[2] +
                column * v->w_stride[3]];
}

/* Adds |V| |U| of one channel to sum[a][a], for the tile at (row, column); NaN has no bound. */
static void add_magnitudes(const struct element *e, int64_t row, int64_t column, int m, double sum[6][6])
{
    const int a = m + 2;
    const double(*in)[6] = m == 2 ? in_2 : in_4;
    const double(*weight)[3] = m == 2 ? weight_2 : weight_4;
    double x[6][6] = {{0}}, w[6][3] = {{0}};
    for (int i = 0; i < a; i++) {
        for (int k = 0; k < a; k++) {
            for (int j = 0; j < a; j++) {
                const double value = x_at(e, row + k, column + j);
                x[i][j] += isnan(value) ? 0 : fabs(in[i][k] * value);
            }
        }
        for (int k = 0; k < 3; k++) {
            for (int j = 0; j < 3; j++)
                w[i][j] += fabs(weight[i][k] * w_at(e, k, j));
        }
    }
    for (int i = 0; i < a; i++) {
        for (int j = 0; j < a; j++) {
            double v = 0, u = 0;
            for (int k = 0; k < a; k++)
                v += fabs(x[i][k] * in[j][k]);
            for (int k = 0; k < 3; k++)
                u += w[i][k] * fabs(weight[j][k]);
            sum[i][j] += v * u;
        }
    }
}

struct tile {
    double magnitude[4][4], exact[4][4];
    bool poisoned, nan[4][4]; /* all of it, by a NaN somewhere; by one in the window of a result */
};

static void define_tile(struct element *e, int64_t row, int64_t column, int m, struct tile *t)
{
    const double(*out)[6] = m == 2 ? out_2 : out_4;
    double sum[6][6] = {{0}};
    *t = (struct tile){0};
    for (e->c = 0; e->c < e->conv->c / e->conv->groups; e->c++) {
        add_magnitudes(e, row, column, m, sum);
        for (int i = 0; i < m * m * 9; i++) {
            const int p = i / 9 / m, q = i / 9 % m;
            const double x = x_at(e, row + p + i % 9 / 3, column + q + i % 3);
            t->exact[p][q] += x * w_at(e, i % 9 / 3, i % 3);
            t->nan[p][q] = t->nan[p][q] || isnan(x);
            t->poisoned = t->poisoned || (m == 4 && isnan(x));
        }
    }
    for (int p = 0; p < m; p++) {
        for (int q = 0; q < m; q++) {
            for (int i = 0; i < (m + 2) * (m + 2); i++)
                t->magnitude[p][q] += fabs(out[p][i / (m + 2)] * out[q][i % (m + 2)]) * sum[i / (m + 2)][i % (m + 2)];
        }
    }
}

static bool holds(struct weft_check *check, const char *what, const struct element *e, const struct tile *t, int p,
                  int q, double got)
{
    const double bound = 1.01 * ((double)(e->conv->c / e->conv->groups) + 24) * 0x1p-24 * t->magnitude[p][q];
    const bool near = t->poisoned || fabs(got - t->exact[p][q]) <= bound;
    const bool good = t->nan[p][q] ? isnan(got) : near;
    if (!good)
        weft_check_fail(check, "%s: %.9g where %.9g is right, at most %.3g apart%s", what, got, t->exact[p][q], bound,
                        t->nan[p][q] ? "; a NaN is lost" : "");
    return good;
}

void weft_check_winograd(struct weft_check *check, const char *what, const struct weft_conv *v, const float *got,
                         const float *x, const float *w)
{
    const struct weft_conv_shape s = weft_conv_shape(v);
    const int m = weft_winograd_of(weft_conv_kernels[v->form].form);
    const int64_t columns = weft_pieces(v->out_extent[1], m), tiles = columns * weft_pieces(v->out_extent[0], m);
    struct element e = {.conv = v, .x = x, .w = w};
    for (int64_t i = 0; i < v->n * v->o * tiles; i++) {
        const int64_t row = i % tiles / columns * m, column = i % tiles % columns * m, o = i / tiles % v->o;
        struct tile t;
        e.n = i / tiles / v->o, e.g = o / s.o, e.o = o % s.o;
        define_tile(&e, row, column, m, &t);
        for (int j = 0; j < m * m; j++) {
            const int64_t h = row + j / m, k = column + j % m;
            const int64_t at = e.n * v->y_stride[0] + o * v->y_stride[1] + h * v->y_stride[2] + k * v->y_stride[3];
            if (h < v->out_extent[0] && k < v->out_extent[1] && !holds(check, what, &e, &t, j / m, j % m, got[at]))
                return;
        }
    }
}
