/* SPDX-License-Identifier: Apache-2.0 */
/* read.c: a case out of JSON. Ops and expectations stay JSON, and are read where they are carried out. */
#include "layout_cases.h"

#include <string.h>

int read_numbers(const json_t *list, int64_t *ret)
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > WEFT_MAX_RANK)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (!json_is_integer(json_array_get(list, i)))
            return -1;
        ret[i] = json_integer_value(json_array_get(list, i));
    }
    return (int)count;
}

int64_t elements_of(const struct shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->extent[i];
    return elements;
}

static int64_t integer_or(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static const char *read_input(const json_t *json, struct case_input *ret)
{
    *ret = (struct case_input){.name = json_string_value(json_object_get(json, "name")),
                               .mut = json_string_value(json_object_get(json, "mut")),
                               .has_order = json_object_get(json, "order"),
                               .has_strides = json_object_get(json, "strides"),
                               .offset = integer_or(json, "offset", 0), .align = integer_or(json, "align", 64),
                               .limit = integer_or(json, "limit", 100)};
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    ret->shape.dtype = weft_dtype_from_name(dtype);
    ret->shape.rank = read_numbers(json_object_get(json, "shape"), ret->shape.extent);
    if (!ret->name || !ret->shape.dtype || ret->shape.rank < 0)
        return "an input needs a name, a dtype and a shape";
    if (ret->has_order && (ret->orders = read_numbers(json_object_get(json, "order"), ret->order)) < 0)
        return "the order of an input is no list of axes";
    if (ret->has_strides && read_numbers(json_object_get(json, "strides"), ret->stride) != ret->shape.rank)
        return "an input needs as many strides as axes";
    return NULL;
}

static const char *read_output(const json_t *json, struct case_output *ret)
{
    const json_t *required = json_object_get(json, "required");
    *ret = (struct case_output){.name = json_string_value(json_object_get(json, "name")),
                                .has_order = json_object_get(json, "order"), .required = !json_is_false(required)};
    if (!ret->name)
        return "an output needs a name";
    if (ret->has_order && (ret->orders = read_numbers(json_object_get(json, "order"), ret->order)) < 0)
        return "the order of an output is no list of axes";
    return NULL;
}

const char *read_case(const json_t *json, struct layout_case *ret)
{
    const json_t *inputs = json_object_get(json, "inputs"), *outputs = json_object_get(json, "outputs");
    *ret = (struct layout_case){.name = json_string_value(json_object_get(json, "name")),
                                .ops = json_object_get(json, "ops"), .expect = json_object_get(json, "expect")};
    if (!ret->name || !json_is_array(ret->ops) || !json_is_array(ret->expect))
        return "a case needs a name, ops and expectations";
    if (json_array_size(inputs) > MOST_PORTS / 2 || json_array_size(outputs) > MOST_PORTS / 2)
        return "a case of more than 16 inputs or outputs";
    for (; ret->inputs < json_array_size(inputs); ret->inputs++) {
        const char *message = read_input(json_array_get(inputs, ret->inputs), &ret->input[ret->inputs]);
        if (message)
            return message;
    }
    for (; ret->outputs < json_array_size(outputs); ret->outputs++) {
        const char *message = read_output(json_array_get(outputs, ret->outputs), &ret->output[ret->outputs]);
        if (message)
            return message;
    }
    return NULL;
}

/* --- how inputs lie ----------------------------------------------------------------------------------------------- */

static bool is_free(const struct case_input *input, int64_t axis)
{
    return input->shape.extent[axis] == 1 || input->stride[axis] == 0;
}

void order_of_input(const struct case_input *input, int64_t *ret_order)
{
    const int rank = input->shape.rank;
    int count = 0;
    for (int i = 0; i < rank; i++)
        ret_order[i] = input->has_order ? input->order[i] : i;
    if (input->has_order || !input->has_strides)
        return;
    for (int kept = 0; kept < 2; kept++) {
        const int first = count;
        for (int axis = 0; axis < rank; axis++) {
            if (is_free(input, axis) == (kept == 1))
                continue;
            int at = count++;
            for (; kept && at > first && input->stride[ret_order[at - 1]] < input->stride[axis]; at--)
                ret_order[at] = ret_order[at - 1];
            ret_order[at] = axis;
        }
    }
}

void strides_of_input(const struct case_input *input, int64_t *ret_stride)
{
    int64_t order[WEFT_MAX_RANK], stride = 1;
    order_of_input(input, order);
    for (int i = input->shape.rank - 1; i >= 0; i--) {
        ret_stride[order[i]] = input->has_strides ? input->stride[order[i]] : stride;
        stride *= input->shape.extent[order[i]] > 1 ? input->shape.extent[order[i]] : 1;
    }
}
