/* SPDX-License-Identifier: Apache-2.0 */
/* form.c: making a form, part by part, and which of its values outlive their stage. The contract: form.h. */
#include "codegen/form.h"

struct weft_form *weft_form_new(struct weft_arena *arena, struct weft_dims *dims, const char *name)
{
    struct weft_form *const form = weft_new(arena, struct weft_form, 1);
    *form = (struct weft_form){.name = name, .dims = dims, .arena = arena};
    return form;
}

uint32_t weft_form_add_axis(struct weft_form *form, const char *name, weft_dim extent)
{
    weft_assert(form->axes < WEFT_FORM_AXES);
    form->axis[form->axes] = (struct weft_form_axis){.name = name, .extent = extent, .pieces_of = -1};
    return form->axes++;
}

#define APPEND(list, count, capacity, item) \
    do { \
        (list) = weft_grow(form->arena, (list), &(capacity), (count) + 1, sizeof *(list)); \
        (list)[(count)] = (item); \
    } while (0)

uint32_t weft_form_add_array(struct weft_form *form, struct weft_form_array array)
{
    APPEND(form->array, form->arrays, form->array_capacity, array);
    return form->arrays++;
}

uint32_t weft_form_add_phase(struct weft_form *form, struct weft_form_phase phase)
{
    phase.first = form->stages;
    phase.stages = 0;
    APPEND(form->phase, form->phases, form->phase_capacity, phase);
    return form->phases++;
}

uint32_t weft_form_add_stage(struct weft_form *form, struct weft_form_stage stage)
{
    weft_assert(form->phases > 0);
    stage.first = form->ops;
    stage.ops = 0;
    APPEND(form->stage, form->stages, form->stage_capacity, stage);
    form->phase[form->phases - 1].stages++;
    return form->stages++;
}

uint32_t weft_form_add_op(struct weft_form *form, struct weft_form_op op)
{
    weft_assert(form->stages > 0);
    APPEND(form->op, form->ops, form->op_capacity, op);
    form->stage[form->stages - 1].ops++;
    return form->ops++;
}

uint32_t weft_form_add_map(struct weft_form *form, int rank, const int8_t *axis)
{
    struct weft_index_map map = {.rank = rank};
    for (int i = 0; i < rank; i++)
        if (axis[i] >= 0) {
            map.at[i].terms = 1;
            map.at[i].term[0] = (struct weft_index_term){.step = weft_dim_of(1), .axis = axis[i]};
        }
    APPEND(form->map, form->maps, form->map_capacity, map);
    return form->maps++;
}

void weft_form_find_kept(const struct weft_form *form, bool *kept)
{
    for (uint32_t s = 0; s < form->stages; s++)
        for (uint32_t i = form->stage[s].first; i < form->stage[s].first + form->stage[s].ops; i++)
            for (unsigned k = 0; k < form->op[i].ins; k++)
                kept[form->op[i].in[k]] |= form->op[i].in[k] < form->stage[s].first;
}
