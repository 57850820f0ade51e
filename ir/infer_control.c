/* SPDX-License-Identifier: Apache-2.0 */
/* infer_control.c: ops with bodies. Bodies capture nothing: their parameters take the operands behind the first.
 *
 *   %r… = if %condition: bool[], %a…  then=@t else=@e     @t(a…) -> r…, @e(a…) -> r…
 *   %r… = loop %trips: i64[], %a…  body=@b                @b(index: i64[], a…) -> a…; r… are the last a… */
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

bool weft_infer_loop(struct weft_infer *infer)
{
    const struct weft_graph *body = weft_infer_attr(infer, WEFT_ATTR_body)->graph;
    if (!check_scalar(infer, WEFT_I64) || !check_params(infer, "body", body, 1) || !check_returns(infer, body))
        return false;
    const struct weft_type *index = weft_type_of(body, body->param[0]);
    if (index->dtype != WEFT_I64 || index->rank != 0)
        return weft_infer_fail(infer, "parameter 0 of body @%s is %s, but must be i64[]", body->name,
                               weft_infer_type_text(infer, index));
    if (infer->results != infer->operands - 1)
        return weft_infer_fail(infer, "has %u results, but carries %u values", infer->results, infer->operands - 1);
    for (unsigned i = 0; i < infer->results; i++) {
        const struct weft_type *carried = weft_infer_type(infer, i + 1),
                               *returned = weft_type_of(body, body->ret[i].value);
        if (!weft_type_same(carried, returned))
            return weft_infer_fail(infer, "operand %u is %s, but body @%s returns %s for it", i + 1,
                                   weft_infer_type_text(infer, carried), body->name,
                                   weft_infer_type_text(infer, returned));
        infer->result[i] = *carried;
    }
    return true;
}
