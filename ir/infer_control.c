/* SPDX-License-Identifier: Apache-2.0 */
/* infer_control.c: ops with bodies. Bodies capture nothing: their parameters take the operands behind the first.
 *
 *   %r… = if %condition: bool[], %a…  then=@t else=@e     @t(a…) -> r…, @e(a…) -> r…
 *   %r…, %s… = loop %trips: i64[], %a…, %c…  body=@b      @b(index: i64[], a…, c…) -> a…, e…; r… are the last a…,
 *                                                         s… the e… of all trips along a new axis 0 */
#include "ir/infer.h"

static bool check_scalar(struct weft_infer *infer, int dtype)
{
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (type->dtype != dtype || type->rank != 0)
        return weft_infer_fail(infer, "operand 0 is %s, but must be %s[]", weft_infer_type_text(infer, type),
                               weft_dtype_name(dtype));
    return true;
}

/* The parameters of a body from number `skip` on have the types of the operands from number 1 on. */
static bool check_params(struct weft_infer *infer, const char *role, const struct weft_graph *body, unsigned skip)
{
    if (body->params != skip + infer->operands - 1)
        return weft_infer_fail(infer, "body @%s (%s) takes %u parameters instead of %u", body->name, role, body->params,
                               skip + infer->operands - 1);
    for (unsigned i = 1; i < infer->operands; i++) {
        const struct weft_type *param = weft_type_of(body, body->param[skip + i - 1]),
                               *given = weft_infer_type(infer, i);
        if (!weft_type_same(param, given))
            return weft_infer_fail(infer, "operand %u is %s, but parameter %u of body @%s is %s", i,
                                   weft_infer_type_text(infer, given), skip + i - 1, body->name,
                                   weft_infer_type_text(infer, param));
    }
    return true;
}

static bool check_returns(struct weft_infer *infer, const struct weft_graph *body)
{
    if (body->returns != infer->results)
        return weft_infer_fail(infer, "body @%s returns %u values instead of %u", body->name, body->returns,
                               infer->results);
    return true;
}

bool weft_infer_if(struct weft_infer *infer)
{
    const struct weft_graph *yes = weft_infer_attr(infer, WEFT_ATTR_then)->graph,
                            *no = weft_infer_attr(infer, WEFT_ATTR_else)->graph;
    if (!check_scalar(infer, WEFT_BOOL) || !check_params(infer, "then", yes, 0) ||
        !check_params(infer, "else", no, 0) || !check_returns(infer, yes) || !check_returns(infer, no))
        return false;
    for (unsigned i = 0; i < infer->results; i++) {
        const struct weft_type *a = weft_type_of(yes, yes->ret[i].value), *b = weft_type_of(no, no->ret[i].value);
        if (!weft_type_same(a, b))
            return weft_infer_fail(infer, "result %u is %s in body @%s, but %s in body @%s", i,
                                   weft_infer_type_text(infer, a), yes->name, weft_infer_type_text(infer, b), no->name);
        infer->result[i] = *a;
    }
    return true;
}

/* How many values are carried, and whether the first of them is a condition. */
static bool check_carried(struct weft_infer *infer, unsigned *ret)
{
    const struct weft_attr *attr = weft_infer_attr(infer, WEFT_ATTR_carried);
    int64_t carried = infer->operands - 1, condition;
    if ((attr && !weft_infer_int(infer, WEFT_ATTR_carried, 0, carried, &carried)) ||
        !weft_infer_int(infer, WEFT_ATTR_while, 0, 1, &condition))
        return false;
    *ret = (unsigned)carried;
    const struct weft_type *first = condition && carried ? weft_infer_type(infer, 1) : NULL;
    if (condition && (!first || first->dtype != WEFT_BOOL || first->rank != 0))
        return weft_infer_fail(infer, "while=1 asks for a bool[] as the first carried value");
    return true;
}

/* Behind the carried values, a body returns what is collected: one element of a new axis 0 a trip. */
static bool collect(struct weft_infer *infer, const struct weft_graph *body, unsigned i)
{
    const struct weft_attr *length = weft_infer_attr(infer, WEFT_ATTR_length);
    const struct weft_type *element = weft_type_of(body, body->ret[i].value);
    struct weft_type result = {.dtype = element->dtype, .rank = (uint8_t)(element->rank + 1)};
    if (!length || weft_infer_below(infer, length->integer, 0))
        return weft_infer_fail(infer, "result %u is collected, which asks for attribute length, not negative", i);
    if (element->rank == WEFT_MAX_RANK || weft_dtype_bits(element->dtype) < 8)
        return weft_infer_fail(infer, "result %u is collected, but body @%s returns %s for it", i, body->name,
                               weft_infer_type_text(infer, element));
    result.extent[0] = length->integer;
    for (unsigned axis = 0; axis < element->rank; axis++)
        result.extent[axis + 1] = element->extent[axis];
    infer->result[i] = result;
    return true;
}

bool weft_infer_loop(struct weft_infer *infer)
{
    const struct weft_graph *body = weft_infer_attr(infer, WEFT_ATTR_body)->graph;
    unsigned carried;
    if (!check_scalar(infer, WEFT_I64) || !check_params(infer, "body", body, 1) || !check_returns(infer, body) ||
        !check_carried(infer, &carried))
        return false;
    const struct weft_type *index = weft_type_of(body, body->param[0]);
    if (index->dtype != WEFT_I64 || index->rank != 0)
        return weft_infer_fail(infer, "parameter 0 of body @%s is %s, but must be i64[]", body->name,
                               weft_infer_type_text(infer, index));
    if (infer->results < carried)
        return weft_infer_fail(infer, "has %u results, but carries %u values", infer->results, carried);
    for (unsigned i = 0; i < infer->results; i++) {
        if (i >= carried) {
            if (!collect(infer, body, i))
                return false;
            continue;
        }
        const struct weft_type *given = weft_infer_type(infer, i + 1),
                               *returned = weft_type_of(body, body->ret[i].value);
        if (!weft_type_same(given, returned))
            return weft_infer_fail(infer, "operand %u is %s, but body @%s returns %s for it", i + 1,
                                   weft_infer_type_text(infer, given), body->name,
                                   weft_infer_type_text(infer, returned));
        infer->result[i] = *given;
    }
    return true;
}
