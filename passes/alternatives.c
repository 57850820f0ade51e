/* SPDX-License-Identifier: Apache-2.0 */
/* alternatives.c: the list of alternatives: weft's own (alternatives.def), and behind them the caller's, in the order
 * in which they were registered. */
#include "passes/alternatives.h"

#include "ir/public.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const struct weft_alternative *given;
    int opcode;
} owns[] = {
#define ALTERNATIVE(name, op, help) {&weft_alternative_##name, WEFT_OP_##op},
#include "passes/alternatives.def"
#undef ALTERNATIVE
};
enum { OWN = sizeof owns / sizeof owns[0] };

const struct weft_alternative_entry *weft_alternative_at(const struct weft_context *context, unsigned i,
                                                         struct weft_alternative_entry *own)
{
    if (i < OWN) {
        *own = (struct weft_alternative_entry){.given = *owns[i].given, .opcode = owns[i].opcode};
        memcpy(own->name, own->given.name, strlen(own->given.name) + 1);
        return own;
    }
    const struct weft_alternative_entry *entry = context->alternatives;
    for (i -= OWN; entry && i > 0; i--)
        entry = entry->next;
    return entry;
}

void weft_alternatives_free(struct weft_context *context)
{
    for (struct weft_alternative_entry *entry = context->alternatives, *next; entry; entry = next) {
        next = entry->next;
        weft_release(context, entry, sizeof *entry);
    }
}

bool weft_alternative_is_forced(const char *name)
{
    return weft_environment_names("WEFT_ALTERNATIVE", name, /* all= */ true);
}

/* --- registering -------------------------------------------------------------------------------------------------- */

static bool is_taken(const struct weft_context *context, const char *name)
{
    struct weft_alternative_entry own;
    const struct weft_alternative_entry *entry;
    for (unsigned i = 0; (entry = weft_alternative_at(context, i, &own)); i++)
        if (strcmp(entry->name, name) == 0)
            return true;
    return false;
}

struct registration {
    struct weft_context *context;
    const struct weft_alternative *given;
};

static int add_alternative(void *arg)
{
    const struct registration *const r = arg;
    struct weft_context *const context = r->context;
    struct weft_alternative given;
    if (!weft_take_options(&given, sizeof given, r->given))
        return weft_wrong(context, NULL, "weft_alternative.size is not set");
    const size_t length = given.name ? strlen(given.name) : 0;
    if (length == 0 || length > 63 ||
        strspn(given.name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != length)
        return weft_wrong(context, given.name, "the name of an alternative is letters, digits and _, up to 63");
    if (is_taken(context, given.name) || strcmp(given.name, "all") == 0)
        return weft_wrong(context, given.name, "there is an alternative of this name already");
    if (!given.build)
        return weft_wrong(context, given.name, "an alternative needs `build`");
    const int opcode = given.op ? weft_opcode_find(given.op, strlen(given.op)) : 0;
    if (!opcode)
        return weft_wrong(context, given.name, "it is for '%.64s', which is no op", given.op ? given.op : "");
    struct weft_alternative_entry **end = &context->alternatives, *const added = weft_allocate(context, sizeof *added);
    if (!added)
        return WEFT_ERR_NOMEM;
    *added = (struct weft_alternative_entry){.given = given, .opcode = opcode};
    memcpy(added->name, given.name, length);
    added->given.name = added->given.op = NULL;
    while (*end)
        end = &(*end)->next;
    *end = added;
    return WEFT_OK;
}

int weft_register_alternative(struct weft_context *context, const struct weft_alternative *alternative)
{
    if (!context || !alternative)
        return weft_missing(context);
    return weft_protected(context, add_alternative, &(struct registration){context, alternative});
}
