/* SPDX-License-Identifier: Apache-2.0 */
/* custom_register.c: the register of functions of the caller's, by name and by ONNX op. */
#include "ir/custom.h"
#include "ir/public.h"
#include "ir/suggest.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

const struct weft_custom_entry *weft_custom_find(struct weft_context *context, const char *name)
{
    const struct weft_custom_entry *entry = atomic_load_explicit(&context->customs, memory_order_acquire);
    while (entry && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

const struct weft_custom_entry *weft_custom_of(const struct weft_graph *graph, weft_node node)
{
    return weft_custom_find(graph->context, weft_attr_word(graph, node, WEFT_ATTR_function));
}

void weft_customs_free(struct weft_context *context)
{
    struct weft_custom_entry *entry = atomic_load(&context->customs);
    while (entry) {
        struct weft_custom_entry *next = entry->next;
        weft_release(context, entry, sizeof *entry);
        entry = next;
    }
}

/* ONNX's own domain has two names. */
static const char *domain_of(const char *domain) { return strcmp(domain, "ai.onnx") == 0 ? "" : domain; }

static bool is(const char *text, const char *other, size_t length)
{
    return strlen(text) == length && (length == 0 || memcmp(text, other, length) == 0);
}

const struct weft_custom_entry *weft_custom_find_op(struct weft_context *context, const char *domain,
                                                    size_t domain_length, const char *op, size_t op_length)
{
    if (domain_length == 7 && memcmp(domain, "ai.onnx", 7) == 0)
        domain_length = 0;
    const struct weft_custom_entry *entry = atomic_load_explicit(&context->customs, memory_order_acquire);
    while (entry && !(entry->op[0] && is(entry->op, op, op_length) && is(entry->domain, domain, domain_length)))
        entry = entry->next;
    return entry;
}

unsigned weft_custom_results(struct weft_context *context, const struct weft_attr *attr, unsigned attrs)
{
    const struct weft_custom_entry *entry = NULL;
    for (unsigned i = 0; i < attrs; i++)
        if (attr[i].key == WEFT_ATTR_function && attr[i].kind == WEFT_ATTR_WORD && attr[i].word)
            entry = weft_custom_find(context, attr[i].word);
    return entry ? (unsigned)entry->custom.results : 1;
}

bool weft_custom_is_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const size_t length = strlen(name);
    return length > 0 && length < 64 && strchr(letters, name[0]) &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

struct registration {
    struct weft_context *context;
    const struct weft_custom *given;
};

/* The ONNX op that it is for, if any. */
static int check_op(const struct registration *r, const struct weft_custom *custom)
{
    if (!custom->op && !custom->domain)
        return WEFT_OK;
    if (!custom->op || !custom->op[0] || strlen(custom->op) > 63 || !custom->domain || strlen(custom->domain) > 63)
        return weft_wrong(r->context, custom->name,
                          "a custom function for an ONNX op has a domain and the name of the op, each up to 63 bytes");
    if (!custom->type)
        return weft_wrong(r->context, custom->name, "a custom function for an ONNX op has a rule for types, "
                                                    "weft_custom.type");
    const char *const domain = domain_of(custom->domain);
    const struct weft_custom_entry *const other =
        weft_custom_find_op(r->context, domain, strlen(domain), custom->op, strlen(custom->op));
    return other ? weft_wrong(r->context, custom->name, "ONNX op %s of domain \"%s\" is custom function '%s' already",
                              custom->op, domain, other->name) : WEFT_OK;
}

static int add_entry(void *arg)
{
    const struct registration *r = arg;
    struct weft_custom custom;
    if (!r->given || !weft_take_options(&custom, sizeof custom, r->given))
        return weft_wrong(r->context, NULL, "weft_custom.size is not set, or says more than this library knows");
    if (!custom.name || !weft_custom_is_name(custom.name))
        return weft_wrong(r->context, custom.name,
                          "the name of a custom function is a letter, then letters, digits and _, up to 63");
    if (!custom.run)
        return weft_wrong(r->context, custom.name, "a custom function has no run");
    if (custom.least_operands < 0 || (custom.most_operands >= 0 && custom.most_operands < custom.least_operands))
        return weft_wrong(r->context, custom.name, "a custom function takes no such number of operands");
    if (weft_custom_find(r->context, custom.name))
        return weft_wrong(r->context, custom.name, "a custom function of this name is registered already");
    if (custom.results < 0 || custom.results > WEFT_CUSTOM_MOST_RESULTS || custom.flags)
        return weft_wrong(r->context, custom.name, custom.flags ? "weft_custom.flags has bits that mean nothing"
                                                                : "a custom function has 1 to 64 results");
    if (check_op(r, &custom) != WEFT_OK)
        return WEFT_ERR_ARGUMENT;
    custom.results += custom.results == 0;
    struct weft_custom_entry *entry = weft_allocate(r->context, sizeof *entry);
    if (!entry)
        return WEFT_ERR_NOMEM;
    *entry = (struct weft_custom_entry){.custom = custom, .next = atomic_load(&r->context->customs)};
    memcpy(entry->name, custom.name, strlen(custom.name));
    entry->custom.name = entry->name;
    snprintf(entry->domain, sizeof entry->domain, "%s", custom.op ? domain_of(custom.domain) : "");
    snprintf(entry->op, sizeof entry->op, "%s", custom.op ? custom.op : "");
    entry->custom.domain = entry->domain;
    entry->custom.op = entry->op;
    snprintf(entry->kernel, sizeof entry->kernel, "custom.%s", entry->name);
    atomic_store_explicit(&r->context->customs, entry, memory_order_release);
    return WEFT_OK;
}

int weft_register(struct weft_context *context, const struct weft_custom *custom)
{
    if (!context || !custom)
        return weft_missing(context);
    return weft_protected(context, add_entry, &(struct registration){context, custom});
}

bool weft_custom_check(const struct weft_graph *graph)
{
    bool right = true;
    for (uint32_t i = 0; i < graph->bodies; i++) /* depth is bounded by WEFT_MAX_DEPTH */
        right = weft_custom_check(graph->body[i]) && right;
    weft_foreach_node(graph, n) {
        if (weft_opcode_of(graph, n) != WEFT_OP_custom || weft_custom_of(graph, n))
            continue;
        const char *name = weft_attr_word(graph, n, WEFT_ATTR_function);
        struct weft_suggest suggest;
        weft_suggest_open(&suggest, name, strlen(name));
        for (const struct weft_custom_entry *e = atomic_load(&graph->context->customs); e; e = e->next)
            weft_suggest_offer(&suggest, e->name);
        weft_error(graph->context, WEFT_ERR_UNSUPPORTED,
                   &(struct weft_place){.file = graph->file,
                                        .line = graph->node[n.id].line,
                                        .column = graph->node[n.id].line ? 1 : 0,
                                        .where = weft_value_text(graph, weft_result(graph, n, 0))},
                   "custom function '%s' is not registered, so nothing can compute this%s", name,
                   weft_suggest_text(&suggest, ""));
        right = false;
    }
    return right;
}
