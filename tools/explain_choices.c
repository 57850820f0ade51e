/* SPDX-License-Identifier: Apache-2.0 */
/* explain_choices.c: in which ways a node could be computed (sched/select.h): what was taken, and what was not.
 *
 *     choices of convolution, best first:
 *       1 weft_conv_f32_winograd_2__avx512  winograd=2  predicted 410.2 us  packs 2.4 MB
 *       2 weft_conv_f32_direct__avx512      one chain   predicted 761.0 us  packs 147.5 kB
 */
#include "tools/explain.h"
#include "tools/tools.h"

#include <string.h>

const struct weft_plan_note *explain_unit_note(const struct weft_plan *plan, const struct weft_unit *unit)
{
    return unit->nodes > 1 ? plan->graph->group[unit->group].plan : plan->graph->node[unit->first.id].plan;
}

/* None of what is done before the first run. */
static const struct weft_choices *choices_of(const struct weft_plan *plan, const struct weft_unit *unit,
                                             struct weft_arena *arena)
{
    const struct weft_plan_note *const note = explain_unit_note(plan, unit);
    const bool is_run = note && note->kernel && (note->count == 0 || strcmp(note->key[0], "when") != 0);
    return is_run ? weft_plan_list_choices(plan, unit, arena) : NULL;
}

void explain_add_amount(struct weft_text *text, double amount, const char *small, const char *large)
{
    unsigned i = 0;
    for (; i < 4 && amount >= 1000; i++)
        amount /= 1000;
    if (i == 0)
        weft_text_format(text, "%.0f%s", amount, small);
    else
        weft_text_format(text, "%.1f %c%s", amount, " kMGT"[i], large);
}

void explain_unit_choices(const struct weft_plan *plan, const struct weft_unit *unit, struct weft_arena *arena,
                          struct weft_text *text)
{
    const struct weft_choices *const list = choices_of(plan, unit, arena);
    int kernel = 0, signature = 0;
    for (uint32_t i = 0; list && i < list->count; i++) {
        const struct weft_choice *const c = &list->choice[i];
        const int k = (int)strlen(c->kernel), s = (int)strlen(weft_signature_text(&c->signature, arena));
        kernel = k > kernel ? k : kernel;
        signature = s > signature ? s : signature;
    }
    if (list)
        weft_text_format(text, "    choices of %s, best first:\n",
                         unit->nodes > 1 ? "group" : weft_scheduler_of(weft_opcode_of(plan->graph, unit->first))->name);
    for (uint32_t i = 0; list && i < list->count; i++) {
        const struct weft_choice *const c = &list->choice[i];
        weft_text_format(text, "    %3u %-*s  %-*s  predicted %.1f us", i + 1, kernel, c->kernel, signature,
                         weft_signature_text(&c->signature, arena), (double)c->ps * 1e-6);
        if (c->packing) {
            weft_text_add(text, ", packs ");
            explain_add_amount(text, (double)c->pack_bytes, " B", "B");
        }
        if (c->scratch) {
            weft_text_add(text, ", scratch ");
            explain_add_amount(text, (double)c->scratch, " B", "B");
        }
        weft_text_add(text, "\n");
    }
}

int64_t explain_predicted_ps(const struct weft_plan *plan, const struct weft_unit *unit, struct weft_arena *arena)
{
    const struct weft_choices *const list = choices_of(plan, unit, arena);
    return list && list->count ? weft_plan_picked(plan, list)->ps : 0;
}

void explain_choices_json(const struct explain *e, const struct weft_plan *plan, const struct weft_unit *unit,
                          struct weft_text *text)
{
    const struct weft_choices *const list = choices_of(plan, unit, e->arena);
    if (!list)
        return;
    weft_text_add(text, ",\"choices\":[");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct weft_choice *const c = &list->choice[i];
        weft_text_format(text, "%s{\"kernel\":\"%s\",\"signature\":\"%s\",\"predicted_ps\":%lld", i ? "," : "",
                         c->kernel, weft_signature_text(&c->signature, e->arena), (long long)c->ps);
        weft_text_format(text, ",\"pack_bytes\":%zu,\"scratch_bytes\":%zu}", c->pack_bytes, c->scratch);
    }
    weft_text_add(text, "]");
}
