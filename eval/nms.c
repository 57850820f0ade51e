/* SPDX-License-Identifier: Apache-2.0 */
/* nms.c: of overlapping boxes the ones with the best scores, class by class.
 *
 * Candidates are taken by falling score, the lower index first; one stays unless it overlaps one that stays already by
 * more than the limit. Areas are computed in double. */
#include "eval/rule.h"
#include "kernels/plain/shared.h"

struct nms {
    const struct weft_tensor *boxes, *scores;
    bool centre;
    int64_t most;
    double overlap, threshold;
    union weft_number *score;
    struct weft_k_box *kept;
    int64_t *order, *scratch;
};

static double scalar(const struct weft_tensor *tensor) { return weft_load_real(tensor->dtype, tensor->data, 0); }

static struct weft_k_box read_box(const struct nms *nms, int64_t batch, int64_t i)
{
    const struct weft_tensor *boxes = nms->boxes;
    double x[4];
    for (int64_t j = 0; j < 4; j++)
        x[j] = weft_load_real(boxes->dtype, boxes->data,
                              batch * boxes->stride[0] + i * boxes->stride[1] + j * boxes->stride[2]);
    return weft_k_box_of(x, nms->centre);
}

/* One class of one batch: rows [batch, class, box] behind the first `found`; how many there are then. */
static int64_t select_class(const struct nms *nms, int64_t batch, int64_t class, const struct weft_tensor *out,
                            int64_t found)
{
    const struct weft_tensor *scores = nms->scores;
    const int64_t n = nms->boxes->extent[1];
    weft_eval_load(scores, batch * scores->stride[0] + class * scores->stride[1], scores->stride[2], n, nms->score);
    const struct weft_rows rows = {.dtype = scores->dtype, .n = n, .width = 1, .number = nms->score};
    weft_eval_order(&rows, true, nms->order, nms->scratch);
    for (int64_t i = 0, kept = 0; i < n && kept < nms->most; i++) {
        const int64_t at = nms->order[i];
        const struct weft_k_box box = read_box(nms, batch, at);
        if (!(nms->score[at].real > nms->threshold) || weft_k_box_overlaps(&box, nms->kept, kept, nms->overlap))
            continue;
        nms->kept[kept++] = box;
        const int64_t row[] = {batch, class, at};
        for (int64_t j = 0; j < 3 && out; j++)
            weft_store_integer(out->dtype, out->data, found * out->stride[0] + j * out->stride[1], row[j]);
        found++;
    }
    return found;
}

static int64_t suppress(struct weft_eval *eval, const struct weft_tensor *out)
{
    struct nms nms = {.boxes = &eval->in[0], .scores = &eval->in[1],
                      .centre = weft_eval_word_is(eval, WEFT_ATTR_form, "centre"),
                      .most = weft_load_integer(WEFT_I64, eval->in[2].data, 0), .overlap = scalar(&eval->in[3]),
                      .threshold = scalar(&eval->in[4])};
    const int64_t n = nms.boxes->extent[1];
    int64_t found = 0;
    nms.score = weft_eval_scratch(eval, n, sizeof *nms.score);
    nms.kept = weft_eval_scratch(eval, n, sizeof *nms.kept);
    nms.order = weft_eval_scratch(eval, n, sizeof *nms.order);
    nms.scratch = weft_eval_scratch(eval, n, sizeof *nms.scratch);
    for (int64_t batch = 0; batch < nms.scores->extent[0] && !eval->failed; batch++)
        for (int64_t class = 0; class < nms.scores->extent[1]; class++)
            found = select_class(&nms, batch, class, out, found);
    weft_eval_drop(eval, nms.scratch, n, sizeof *nms.scratch);
    weft_eval_drop(eval, nms.order, n, sizeof *nms.order);
    weft_eval_drop(eval, nms.kept, n, sizeof *nms.kept);
    weft_eval_drop(eval, nms.score, n, sizeof *nms.score);
    return found;
}

void weft_extents_nms(struct weft_eval *eval, int64_t *counts) { counts[0] = suppress(eval, NULL); }

void weft_eval_nms(struct weft_eval *eval) { suppress(eval, &eval->out[0]); }
