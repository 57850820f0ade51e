/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect.c: the example finds the face: the box that it prints lies within a pixel of the one that follows from
 * the model's reference outputs, and it is drawn into the picture it writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/npy.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL "examples/models/ultraface-rfb-320"
#define WIDTH 320
#define HEIGHT 240

struct found {
    double score, box[4];
};

/* The best box of the reference; no second face overlaps less than half of it, so that suppression has one answer. */
static struct found reference_face(const char *root)
{
    char path[4096], message[WEFT_NPY_MESSAGE];
    struct weft_tensor scores, boxes;
    snprintf(path, sizeof path, "%s/" MODEL "/output_0.npy", root);
    assert_true(weft_npy_load(path, &scores, message));
    snprintf(path, sizeof path, "%s/" MODEL "/output_1.npy", root);
    assert_true(weft_npy_load(path, &boxes, message));
    const float *score = scores.data, *box = boxes.data;
    int64_t best = 0, likely = 0;
    for (int64_t i = 0; i < scores.extent[1]; i++) {
        best = score[2 * i + 1] > score[2 * best + 1] ? i : best;
        if (score[2 * i + 1] > 0.5f) {
            likely++;
            assert_true(fabs((double)box[4 * i] * WIDTH - 113) < 3 && fabs((double)box[4 * i + 1] * HEIGHT - 40) < 3);
        }
    }
    assert_true(likely > 1);
    struct found face = {.score = score[2 * best + 1]};
    for (int k = 0; k < 4; k++)
        face.box[k] = (double)box[4 * best + k] * (k % 2 ? HEIGHT : WIDTH);
    weft_npy_free(&scores);
    weft_npy_free(&boxes);
    return face;
}

static struct found printed_face(const char *root, const char *build, const char *picture)
{
    char model[4096], command[16384], line[4096];
    snprintf(model, sizeof model, "%s/" MODEL, root);
    snprintf(command, sizeof command, "'%s/examples/detect' '%s/model.onnx' '%s/astronaut-320x240.png' '%s'", build,
             model, model, picture);
    FILE *from = popen(command, "r");
    assert_non_null(from);
    struct found face = {0};
    int count = -1, faces = 0;
    while (fgets(line, sizeof line, from)) {
        if (count < 0)
            sscanf(line, "%d face", &count);
        faces += sscanf(line, "face 1: score %lf, box %lf %lf %lf %lf", &face.score, &face.box[0], &face.box[1],
                        &face.box[2], &face.box[3]) == 5;
    }
    assert_int_equal(pclose(from), 0);
    assert_int_equal(count, 1);
    assert_int_equal(faces, 1);
    return face;
}

static void the_face_is_found_and_drawn(void **state)
{
    const char *root = getenv("WEFT_SOURCE"), *build = getenv("WEFT_BUILD");
    assert_true(root && build);
    char path[] = "/tmp/weft_detect_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    const struct found want = reference_face(root), got = printed_face(root, build, path);
    assert_true(fabs(got.score - want.score) < 1e-3);
    for (int k = 0; k < 4; k++)
        if (fabs(got.box[k] - want.box[k]) > 1)
            fail_msg("side %d of the box is at %.2f, expected %.2f", k, got.box[k], want.box[k]);

    png_image header = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&header, path));
    header.format = PNG_FORMAT_RGB;
    assert_int_equal(header.width, WIDTH);
    assert_int_equal(header.height, HEIGHT);
    unsigned char *rgb = malloc(PNG_IMAGE_SIZE(header));
    assert_non_null(rgb);
    assert_true(png_image_finish_read(&header, NULL, rgb, 0, NULL));
    const int left = (int)lround(got.box[0]), middle = (int)lround((got.box[1] + got.box[3]) / 2);
    const unsigned char *edge = &rgb[3 * (middle * WIDTH + left)];
    assert_true(edge[1] > 200 && edge[0] < 100); /* green */
    free(rgb);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_face_is_found_and_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
