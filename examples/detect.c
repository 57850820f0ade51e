/* SPDX-License-Identifier: Apache-2.0 */
/* detect.c: faces in a picture: PNG in, boxes and a PNG with the boxes out, from nothing but weft.h and libpng.
 *
 *     detect MODEL.onnx PICTURE.png OUT.png
 *
 * The model (models/ultraface-rfb-320) takes one RGB picture of 320 by 240 as f32[1,3,240,320], (x - 127) / 128, and
 * gives for each of 4420 places a score and a box in fractions of the picture. Pictures of other sizes are scaled to
 * fit, with grey borders, and boxes are mapped back. Of boxes that overlap by more than 30 % the best stays. */
#include <weft/weft.h>

#include <png.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SCORE 0.7f
#define OVERLAP 0.3f
#define MAX_FACES 100
#define RUNS 20

struct face {
    float score, left, top, right, bottom; /* in pixels of the picture */
};

struct picture {
    png_image header;
    unsigned char *rgb;
};

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "detect: %s: %s\n", what, why);
    exit(1);
}

static void must(const struct weft_context *context, int status)
{
    if (status < 0)
        stop(weft_status_text(status), weft_last_error(context));
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* --- the picture -------------------------------------------------------------------------------------------------- */

static struct picture read_picture(const char *path)
{
    struct picture p = {.header = {.version = PNG_IMAGE_VERSION}};
    if (!png_image_begin_read_from_file(&p.header, path))
        stop(path, p.header.message);
    p.header.format = PNG_FORMAT_RGB;
    p.rgb = malloc(PNG_IMAGE_SIZE(p.header));
    const png_color white = {255, 255, 255}; /* behind transparent pixels */
    if (!p.rgb || !png_image_finish_read(&p.header, &white, p.rgb, 0, NULL))
        stop(path, p.rgb ? p.header.message : "out of memory");
    return p;
}

/* The channel's value at a point between pixels, by its four neighbours. */
static float sample(const struct picture *p, float x, float y, int channel)
{
    const int width = (int)p->header.width, height = (int)p->header.height;
    x = fminf(fmaxf(x, 0), (float)(width - 1));
    y = fminf(fmaxf(y, 0), (float)(height - 1));
    const int x0 = (int)x, y0 = (int)y, x1 = x0 + 1 < width ? x0 + 1 : x0, y1 = y0 + 1 < height ? y0 + 1 : y0;
    const float fx = x - (float)x0, fy = y - (float)y0;
    const float upper = (float)p->rgb[(y0 * width + x0) * 3 + channel] * (1 - fx) +
                        (float)p->rgb[(y0 * width + x1) * 3 + channel] * fx;
    const float lower = (float)p->rgb[(y1 * width + x0) * 3 + channel] * (1 - fx) +
                        (float)p->rgb[(y1 * width + x1) * 3 + channel] * fx;
    return upper * (1 - fy) + lower * fy;
}

/* How the picture lies in the model's input: a pixel of the input is (x - left) / scale in the picture. */
struct fit {
    float scale, left, top;
};

static struct fit prepare_input(const struct picture *p, int width, int height, float *input)
{
    const float scale = fminf((float)width / (float)p->header.width, (float)height / (float)p->header.height);
    const struct fit fit = {scale, ((float)width - scale * (float)p->header.width) / 2,
                            ((float)height - scale * (float)p->header.height) / 2};
    for (int channel = 0; channel < 3; channel++)
        for (int row = 0; row < height; row++)
            for (int column = 0; column < width; column++) {
                const float x = ((float)column + 0.5f - fit.left) / scale, y = ((float)row + 0.5f - fit.top) / scale;
                const bool inside = x >= 0 && y >= 0 && x <= (float)p->header.width && y <= (float)p->header.height;
                const float value = inside ? sample(p, x - 0.5f, y - 0.5f, channel) : 127;
                input[(channel * height + row) * width + column] = (value - 127) / 128;
            }
    return fit;
}

static void draw_box(struct picture *p, const struct face *f)
{
    const int width = (int)p->header.width, height = (int)p->header.height;
    const int left = (int)lroundf(f->left), right = (int)lroundf(f->right);
    const int top = (int)lroundf(f->top), bottom = (int)lroundf(f->bottom);
    for (int row = top < 0 ? 0 : top; row <= bottom && row < height; row++)
        for (int column = left < 0 ? 0 : left; column <= right && column < width; column++)
            if (row < top + 2 || row > bottom - 2 || column < left + 2 || column > right - 2)
                memcpy(&p->rgb[(row * width + column) * 3], (const unsigned char[]){40, 230, 80}, 3);
}

/* --- the faces ---------------------------------------------------------------------------------------------------- */

static float overlap(const struct face *a, const struct face *b)
{
    const float width = fminf(a->right, b->right) - fmaxf(a->left, b->left);
    const float height = fminf(a->bottom, b->bottom) - fmaxf(a->top, b->top);
    const float both = width > 0 && height > 0 ? width * height : 0;
    const float all = (a->right - a->left) * (a->bottom - a->top) + (b->right - b->left) * (b->bottom - b->top) - both;
    return all > 0 ? both / all : 0;
}

/* Best first; a box that overlaps a better one is the same face. */
static int pick_faces(const struct weft_tensor *scores, const struct weft_tensor *boxes, float width, float height,
                      struct face *face)
{
    const int64_t places = scores->extent[1];
    bool *used = calloc((size_t)places, sizeof *used);
    if (!used)
        stop("faces", "out of memory");
    int faces = 0;
    while (faces < MAX_FACES) {
        int64_t best = -1;
        const float *score = scores->data;
        for (int64_t i = 0; i < places; i++)
            if (!used[i] && score[2 * i + 1] >= SCORE && (best < 0 || score[2 * i + 1] > score[2 * best + 1]))
                best = i;
        if (best < 0)
            break;
        used[best] = true;
        const float *box = (const float *)boxes->data + 4 * best;
        face[faces] =
            (struct face){score[2 * best + 1], box[0] * width, box[1] * height, box[2] * width, box[3] * height};
        bool fresh = true;
        for (int i = 0; i < faces; i++)
            fresh = fresh && overlap(&face[i], &face[faces]) <= OVERLAP;
        faces += fresh;
    }
    free(used);
    return faces;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

struct detector {
    struct weft_context *context;
    struct weft_plan *plan;
    struct weft_execution *execution;
    struct weft_port input;
    float *pixels;
};

static struct detector open_detector(const char *path)
{
    struct detector d = {.input.size = sizeof d.input};
    struct weft_graph *graph;
    const int status = weft_open(NULL, &d.context);
    if (status < 0)
        stop("weft", weft_status_text(status));
    must(d.context, weft_load(d.context, path, &graph));
    must(d.context, weft_compile(graph, NULL, &d.plan));
    weft_graph_destroy(graph);
    must(d.context, weft_execution_create(d.plan, &d.execution));
    if (weft_plan_inputs(d.plan) != 1 || weft_plan_outputs(d.plan) != 2 || weft_plan_input(d.plan, 0, &d.input) < 0 ||
        d.input.dtype != WEFT_F32 || d.input.rank != 4 || d.input.extent[1] != 3 || d.input.extent[2] <= 0 ||
        d.input.extent[3] <= 0)
        stop(path, "no detector that takes a picture and gives scores and boxes");
    d.pixels = calloc((size_t)(3 * d.input.extent[2] * d.input.extent[3]), sizeof *d.pixels);
    const int64_t height = d.input.extent[2], width = d.input.extent[3];
    const struct weft_tensor input = {.data = d.pixels, .dtype = WEFT_F32, .rank = 4, .extent = {1, 3, height, width},
                                      .stride = {3 * height * width, height * width, width, 1}};
    if (!d.pixels || weft_bind_input(d.execution, 0, &input) < 0)
        stop(path, d.pixels ? weft_execution_error(d.execution) : "out of memory");
    return d;
}

static void close_detector(struct detector *d)
{
    free(d->pixels);
    weft_execution_destroy(d->execution);
    weft_plan_destroy(d->plan);
    weft_close(d->context);
}

static bool is_list(const struct weft_tensor *t, int64_t columns)
{
    return t->dtype == WEFT_F32 && t->rank == 3 && t->extent[0] == 1 && t->extent[2] == columns &&
           t->stride[1] == columns && t->stride[2] == 1;
}

static int find_faces(struct detector *d, struct picture *picture, struct face *face)
{
    const int width = (int)d->input.extent[3], height = (int)d->input.extent[2];
    const struct fit fit = prepare_input(picture, width, height, d->pixels);
    struct weft_tensor scores, boxes;
    if (weft_run(d->execution) < 0 || weft_output(d->execution, 0, &scores) < 0 ||
        weft_output(d->execution, 1, &boxes) < 0)
        stop("run", weft_execution_error(d->execution));
    if (!is_list(&scores, 2) || !is_list(&boxes, 4) || scores.extent[1] != boxes.extent[1])
        stop("run", "the outputs are not scores and boxes");
    const int faces = pick_faces(&scores, &boxes, (float)width, (float)height, face);
    for (int i = 0; i < faces; i++)
        face[i] = (struct face){face[i].score, (face[i].left - fit.left) / fit.scale,
                                (face[i].top - fit.top) / fit.scale, (face[i].right - fit.left) / fit.scale,
                                (face[i].bottom - fit.top) / fit.scale};
    return faces;
}

static double best_ms(struct detector *d)
{
    double best = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        const double before = now_ms();
        if (weft_run(d->execution) < 0)
            stop("run", weft_execution_error(d->execution));
        best = fmin(best, now_ms() - before);
    }
    return best;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: detect MODEL.onnx PICTURE.png OUT.png\n");
        return 2;
    }
    struct picture picture = read_picture(argv[2]);
    struct detector detector = open_detector(argv[1]);
    struct face face[MAX_FACES];
    const int faces = find_faces(&detector, &picture, face);
    printf("%d face%s in %s (%u by %u), %.2f ms (best of %d runs)\n", faces, faces == 1 ? "" : "s", argv[2],
           picture.header.width, picture.header.height, best_ms(&detector), RUNS);
    for (int i = 0; i < faces; i++) {
        printf("face %d: score %.4f, box %.1f %.1f %.1f %.1f\n", i + 1, (double)face[i].score, (double)face[i].left,
               (double)face[i].top, (double)face[i].right, (double)face[i].bottom);
        draw_box(&picture, &face[i]);
    }
    if (!png_image_write_to_file(&picture.header, argv[3], 0, picture.rgb, 0, NULL))
        stop(argv[3], picture.header.message);
    close_detector(&detector);
    free(picture.rgb);
    return 0;
}
