/* SPDX-License-Identifier: Apache-2.0 */
/* build.c: the graph of a case: inputs with their layouts, nodes (ops.c), outputs with theirs. */
#include "layout_cases.h"

#include <string.h>

bool fail_build(struct build *b, const char *message)
{
    snprintf(b->message, sizeof b->message, "%s", message ? message : weft_last_error(b->context));
    return false;
}

const struct case_value *find_value(const struct build *b, const char *name)
{
    for (size_t i = 0; name && i < b->values; i++)
        if (strcmp(b->value[i].name, name) == 0)
            return &b->value[i];
    return NULL;
}

/* --- layouts ------------------------------------------------------------------------------------------------------ */

static void add_numbers(char *text, size_t bytes, const int64_t *number, int count)
{
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(text);
        snprintf(text + length, bytes - length, "%s%lld", length > 1 ? " " : "", (long long)number[i]);
    }
}

static bool set_layout(struct build *b, const struct case_value *v, const char *text)
{
    return weft_set_layout(b->graph, v->id, text) == WEFT_OK || fail_build(b, NULL);
}

/* "{0 2 3 1}", and with " hint" where the order is but a wish. */
static bool set_order(struct build *b, const struct case_value *v, const int64_t *order, int orders,
                      const char *strength)
{
    char text[300] = "{";
    add_numbers(text, sizeof text, order, orders);
    const size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%s}", strength);
    return set_layout(b, v, text);
}

/* Of the base, `align` bytes are known; so of the first element what its offset leaves of them. */
static int64_t first_alignment(const struct case_input *input)
{
    const int64_t shift = input->offset * weft_dtype_bits(input->shape.dtype) / 8;
    int64_t align = input->align;
    while (align > 1 && shift % align != 0)
        align /= 2;
    return align;
}

static bool lay_out_input(struct build *b, const struct case_value *v, const struct case_input *input)
{
    int64_t order[WEFT_MAX_RANK] = {0}, stride[WEFT_MAX_RANK];
    char text[400] = "{";
    const int rank = input->shape.rank;
    const bool whole = !input->has_order || input->orders == rank;
    if (whole)
        order_of_input(input, order);
    add_numbers(text, sizeof text, whole ? order : input->order, whole ? rank : input->orders);
    if (input->has_strides && whole && rank > 0) {
        strcat(text, " |");
        for (int i = 0; i < rank; i++) {
            if (order[i] < 0 || order[i] >= rank)
                return fail_build(b, "an order names an axis that is not there");
            stride[i] = input->stride[order[i]];
        }
        add_numbers(text, sizeof text, stride, rank);
    }
    const size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%salign=%lld}", rank ? " " : "", (long long)first_alignment(input));
    return set_layout(b, v, text);
}

/* --- inputs, nodes, outputs --------------------------------------------------------------------------------------- */

static bool add_inputs(struct build *b, const struct layout_case *c, enum purpose purpose)
{
    for (size_t i = 0; i < c->inputs; i++) {
        const struct case_input *input = &c->input[i];
        struct case_value *v = &b->value[b->values];
        weft_dim extent[WEFT_MAX_RANK];
        for (int axis = 0; axis < input->shape.rank; axis++)
            extent[axis] = weft_extent(input->shape.extent[axis]);
        *v = (struct case_value){.name = input->name, .shape = input->shape};
        const int status = (input->mut ? weft_param_mut : weft_param)(b->graph, input->name, input->shape.dtype,
                                                                      input->shape.rank, extent, &v->id);
        if (status != WEFT_OK)
            return fail_build(b, NULL);
        b->values++;
        if (purpose != TO_EVALUATE && !lay_out_input(b, v, input))
            return false;
    }
    return true;
}

static bool is_input(const struct layout_case *c, const char *name)
{
    for (size_t i = 0; i < c->inputs; i++)
        if (strcmp(c->input[i].name, name) == 0)
            return true;
    return false;
}

/* An output without an order is the library's to choose. */
static bool lay_out_outputs(struct build *b, const struct layout_case *c, enum purpose purpose)
{
    for (size_t i = 0; i < c->outputs; i++) {
        const struct case_output *output = &c->output[i];
        const struct case_value *v = find_value(b, output->name);
        if (!v || is_input(c, output->name))
            continue; /* an input lies as it lies */
        if (output->has_order && (output->required || purpose == TO_PLAN)) {
            if (!set_order(b, v, output->order, output->orders, output->required ? "" : " hint"))
                return false;
        } else if (purpose == TO_PLAN && !set_layout(b, v, "{?}")) {
            return false;
        }
    }
    return true;
}

/* Where nothing else is said about a value, what is expected of it holds for questions about its access. */
static bool lay_out_expected(struct build *b, const struct layout_case *c)
{
    size_t i;
    json_t *e;
    json_array_foreach(c->expect, i, e) {
        const char *kind = json_string_value(json_object_get(e, "kind"));
        const char *name = json_string_value(json_object_get(e, "value"));
        const struct case_value *v = find_value(b, name);
        int64_t order[WEFT_MAX_RANK];
        if (!kind || strcmp(kind, "order") != 0 || !v || is_input(c, name))
            continue;
        bool stated = false;
        for (size_t k = 0; k < c->outputs; k++)
            stated |= strcmp(c->output[k].name, name) == 0 && c->output[k].has_order && c->output[k].required;
        const int orders = read_numbers(json_object_get(e, "order"), order);
        if (!stated && orders >= 0 && !set_order(b, v, order, orders, ""))
            return false;
    }
    return true;
}

static size_t output_of(const struct layout_case *c, const char *name)
{
    size_t i = 0;
    while (i < c->outputs && strcmp(c->output[i].name, name) != 0)
        i++;
    return i;
}

size_t result_of_input(const struct layout_case *c, size_t input)
{
    const size_t output = output_of(c, c->input[input].mut);
    size_t others = 0;
    for (size_t i = 0; i < input; i++)
        others += c->input[i].mut && output_of(c, c->input[i].mut) == c->outputs;
    return output < c->outputs ? output : c->outputs + others;
}

static bool add_results(struct build *b, const struct layout_case *c)
{
    weft_val result[MOST_PORTS], updated[MOST_PORTS] = {{0}};
    size_t results = c->outputs;
    for (size_t i = 0; i < c->outputs; i++) {
        const struct case_value *v = find_value(b, c->output[i].name);
        if (!v)
            return fail_build(b, "an output is no value");
        result[i] = v->id;
    }
    for (size_t i = 0; i < c->inputs; i++) {
        if (!c->input[i].mut)
            continue;
        const struct case_value *v = find_value(b, c->input[i].mut);
        const size_t at = result_of_input(c, i);
        if (!v)
            return fail_build(b, "the new value of an input is no value");
        result[at] = v->id;
        updated[at] = find_value(b, c->input[i].name)->id;
        results = at < results ? results : at + 1;
    }
    return weft_return_mut(b->graph, result, updated, results) == WEFT_OK || fail_build(b, NULL);
}

int build_case(const struct layout_case *c, enum purpose purpose, struct weft_context *context, struct build *ret)
{
    *ret = (struct build){.context = context};
    if (weft_graph_create(context, "case", &ret->graph) != WEFT_OK)
        return fail_build(ret, NULL), WEFT_ERR_NOMEM;
    bool built = add_inputs(ret, c, purpose);
    for (size_t i = 0; built && i < json_array_size(c->ops); i++)
        built = build_op(ret, json_array_get(c->ops, i));
    built = built && (purpose == TO_EVALUATE || lay_out_outputs(ret, c, purpose)) &&
            (purpose != TO_ASK || lay_out_expected(ret, c)) && add_results(ret, c);
    return built ? WEFT_OK : WEFT_ERR_INVALID;
}
