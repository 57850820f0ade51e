/* SPDX-License-Identifier: Apache-2.0 */
/* widths.c: floats of 16 bits in the kernels of groups. The contract: widths.h. */
#include "codegen/widths.h"

#include "codegen/form_parts.h"

int weft_inside_dtype(int dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16 ? WEFT_F32 : dtype; }

static uint32_t add_cast(struct weft_form *form, uint32_t op, int dtype)
{
    return weft_form_add_op(form, (struct weft_form_op){
        .kind = WEFT_FORM_MAP, .dtype = (uint8_t)dtype, .ins = 1, .in = {op}, .axes = form->op[op].axes,
        .word = "cast"});
}

uint32_t weft_form_widen(struct weft_form *form, uint32_t begin, uint32_t op)
{
    const int dtype = weft_inside_dtype(form->op[op].dtype);
    if (dtype == form->op[op].dtype)
        return op;
    for (uint32_t i = begin; i < form->ops; i++)
        if (form->op[i].kind == WEFT_FORM_MAP && form->op[i].in[0] == op && form->op[i].dtype == dtype &&
            weft_form_opcode(form->op[i].word) == WEFT_OP_cast)
            return i;
    return add_cast(form, op, dtype);
}

uint32_t weft_form_narrow(struct weft_form *form, uint32_t op, int dtype)
{
    return form->op[op].dtype == dtype ? op : add_cast(form, op, dtype);
}

double weft_rounded(int dtype, double number)
{
    _Alignas(8) char element[8];
    if (!weft_dtype_is_float(dtype))
        return number;
    weft_store_real(dtype, element, 0, number);
    return weft_load_real(dtype, element, 0);
}
