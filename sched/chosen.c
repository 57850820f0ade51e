/* SPDX-License-Identifier: Apache-2.0 */
/* chosen.c: where the chosen matrices of a product lie. The contract: chosen.h. */
#include "sched/chosen.h"
#include "kernels/gather/gather.h"
#include "sched/step.h"

struct weft_chosen_places weft_chosen_bind(const struct weft_bind *bind)
{
    const struct weft_chosen *const chosen = bind->step->chosen;
    if (!chosen)
        return (struct weft_chosen_places){.operand = -1};
    const struct weft_tensor table = bind->places->tensor(bind->places->user, chosen->table, bind->symbols);
    const struct weft_tensor *const index = &bind->in[2];
    const int rank = weft_type_of(bind->graph, weft_result(bind->graph, bind->step->node, 0))->rank;
    struct weft_chosen_places places = {.operand = (int8_t)chosen->operand, .dtype = index->dtype,
                                        .matrices = table.extent[0], .step = table.stride[0]};
    int64_t products = 1, counted = 1;
    for (int i = 0; i < rank - 2; i++)
        products *= bind->out.extent[i];
    for (int i = 0; i < index->rank && (counted < products || index->extent[i] != 1); i++) {
        places.extent[places.rank] = index->extent[i];
        places.stride[places.rank++] = index->stride[i];
        counted *= index->extent[i];
    }
    return places;
}

int64_t weft_chosen_place(const struct weft_chosen_places *places, const void *index, int64_t product)
{
    int64_t at = 0;
    for (int i = places->rank - 1; i >= 0; i--) {
        at += product % places->extent[i] * places->stride[i];
        product /= places->extent[i];
    }
    return weft_gather_nearest(weft_gather_number(places->dtype, index, at), places->matrices) * places->step;
}
