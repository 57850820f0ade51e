/* SPDX-License-Identifier: Apache-2.0 */
/* packs_tally.c: which loops have read which packs. The rows come from the kernels' own tables: a form that is added
 * there has to be drawn, or the count says that it is missing. */
#include "tests/property/packs.h"

#include "kernels/conv/conv.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 160 };
struct row {
    char name[96];
    long packed, plain;     /* runs on a pack; on weights as they are beside a pack for other loops */
};
static struct row rows[MOST_ROWS];
static int used;

static struct row *row_of(const char *name)
{
    for (int i = 0; i < used; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    if (used == MOST_ROWS)
        return &rows[used - 1];
    snprintf(rows[used].name, sizeof rows[used].name, "%s", name);
    return &rows[used++];
}

static void name_product(char *text, size_t bytes, const char *kernel, bool lines, bool swapped, int lanes, bool sliced)
{
    snprintf(text, bytes, "%s %s%s%s%s", kernel, lines ? "lines" : "panels", swapped ? ", transposed" : "",
             lanes == 32 ? ", 32 lanes" : lanes == 8 ? ", 8 lanes" : "", sliced ? ", slices" : "");
}

static void name_reversed(char *text, size_t bytes, int64_t order)
{
    static const char *const orders[] = {"none",          "panels",        "lines",      "rows",
                                         "taps",          "sixteens",      "tiles",      "panels of taps",
                                         "panels of phases", "winograd_2", "winograd_4"};
    snprintf(text, bytes, "%s, taps reversed", orders[order]);
}

static void count(const char *name, bool packed)
{
    struct row *const row = row_of(name);
    row->packed += packed, row->plain += !packed;
}

void weft_packs_count(const struct weft_plan *plan, const struct weft_execution *execution)
{
    for (uint32_t i = 0; i < plan->steps; i++) {
        const struct weft_step *step = &plan->step[i];
        const void *const descriptor = weft_frame_descriptor(execution->frame, step);
        char name[96];
        bool packed;
        if (!step->pack)
            continue;
        if (step->kind == &weft_step_conv) {
            const struct weft_conv *v = descriptor;
            packed = v->w_packed;
            if (v->packing.reversed) {
                name_reversed(name, sizeof name, v->packing.order);
                count(name, packed);
            }
            snprintf(name, sizeof name, "%s", weft_conv_name(v));
        } else { /* the product is the first member of its step's descriptor */
            const struct weft_gemm *g = descriptor;
            name_product(name, sizeof name, weft_gemm_name(g), g->packing.order == WEFT_PACK_LINES, g->swapped,
                         g->lanes, g->slices > 1);
            packed = g->b_packed;
        }
        count(name, packed);
    }
}

/* Forms that follow from channels, windows and the order of axes, hardly from sizes: where they are chosen at some
 * sizes of a plan, they are at nearly all, and their weights are seldom read as they are. */
static bool is_steady(enum weft_conv_form form)
{
    return form == WEFT_CONV_PLANES || form == WEFT_CONV_SLIDE || form == WEFT_CONV_CHANNELS ||
           form == WEFT_CONV_WINDOWS || form == WEFT_CONV_GROUPED_WINDOWS || form == WEFT_CONV_GROUPED;
}

/* One that has to be there; `varies`: and on weights as they are. */
static int check(const char *name, bool varies, bool quiet)
{
    const struct row *row = row_of(name);
    const bool missing = row->packed == 0 || (varies && row->plain == 0);
    if (missing && !quiet)
        printf("missing: %s was run %ld times on a pack%s\n", name, row->packed,
               row->packed ? ", and never on weights as they are beside a pack for others" : "");
    return missing;
}

static int check_products(uint32_t cpu, bool quiet)
{
    int missing = 0;
    for (unsigned i = 0; i < weft_gemm_kernel_count; i++) {
        const struct weft_gemm_kernel *kernel = &weft_gemm_kernels[i];
        if (kernel->cpu & ~cpu)
            continue;
        const bool vectors = kernel->code->transpose;
        for (int form = 0; form < 8; form++) {
            static const struct {
                bool lines, swapped, sliced;
                int lanes;
            } forms[] = {{.lanes = 1},           {.lanes = 8},
                         {.sliced = true},       {.lines = true, .lanes = 1},
                         {.lines = true, .lanes = 8}, {.lines = true, .lanes = 32},
                         {.swapped = true},      {.lines = true, .swapped = true}};
            char name[96];
            if (forms[form].swapped && !vectors)
                continue;
            name_product(name, sizeof name, kernel->name, forms[form].lines, forms[form].swapped, forms[form].lanes,
                         forms[form].sliced);
            missing += check(name, false, quiet);
        }
    }
    return missing;
}

/* The orders of what has several taps and is no adjoint. */
static int check_reversed(uint32_t cpu, bool quiet)
{
    static const uint8_t orders[] = {WEFT_PACK_ROWS, WEFT_PACK_TAPS, WEFT_PACK_SIXTEENS, WEFT_PACK_TILES,
                                     WEFT_PACK_TAP_PANELS, WEFT_PACK_WINOGRAD_2, WEFT_PACK_WINOGRAD_4};
    int missing = 0;
    for (size_t i = 0; weft_gemm_find(cpu)->code->transpose && i < sizeof orders; i++) {
        char name[96];
        name_reversed(name, sizeof name, orders[i]);
        missing += check(name, false, quiet);
    }
    return missing;
}

int weft_packs_missing(uint32_t cpu, bool quiet)
{
    int missing = check_products(cpu, quiet) + check_reversed(cpu, quiet);
    for (unsigned i = 0; i < weft_conv_kernel_count; i++) {
        const struct weft_conv_kernel *kernel = &weft_conv_kernels[i];
        if ((kernel->cpu & ~cpu) == 0)
            missing += check(kernel->name, !is_steady(kernel->form), quiet);
    }
    for (int i = 0; i < used && !quiet; i++)
        printf("%8ld packed %8ld plain  %s\n", rows[i].packed, rows[i].plain, rows[i].name);
    return missing;
}
