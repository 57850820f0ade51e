/* SPDX-License-Identifier: Apache-2.0 */
/* layout_view.c: which results of view ops can use the storage of their operand, and how they are laid out in it. */
#include "ir/layout_digits.h"

bool weft_layout_transpose(const struct weft_layout *operand, const int *perm, struct weft_layout *ret)
{
    if (operand->kind != WEFT_STORED)
        return false;
    struct weft_layout result = *operand;
    for (int i = 0; i < operand->axes; i++) {
        int to = 0;
        while (perm[to] != operand->axis[i].axis)
            to++;
        result.axis[i].axis = (uint8_t)to;
    }
    *ret = result;
    return true;
}

bool weft_layout_untranspose(const struct weft_layout *result, const int *perm, struct weft_layout *ret)
{
    if (result->kind != WEFT_STORED)
        return false;
    struct weft_layout operand = *result;
    for (int i = 0; i < result->axes; i++)
        operand.axis[i].axis = (uint8_t)perm[result->axis[i].axis];
    *ret = operand;
    return true;
}
