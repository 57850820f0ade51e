/* SPDX-License-Identifier: Apache-2.0 */
/* lay.c: how the arrays of a random case lie. */
#include "check/check.h"

int64_t weft_check_lay(struct weft_check *check, const int64_t extent[4], int64_t ret_stride[4])
{
    int axis[4] = {0, 1, 2, 3};
    int64_t count = 1;
    for (int i = 3; i > 0 && weft_check_between(check, 0, 2); i--) {
        const int other = (int)weft_check_between(check, 0, i), was = axis[i];
        axis[i] = axis[other], axis[other] = was;
    }
    for (int i = 3; i >= 0; i--) {
        ret_stride[axis[i]] = count;
        count *= extent[axis[i]] + (weft_check_between(check, 0, 5) == 0);
    }
    int64_t last = 1;
    for (int i = 0; i < 4; i++)
        last += (extent[i] - 1) * ret_stride[i];
    return extent[0] * extent[1] * extent[2] * extent[3] > 0 ? last : 0;
}
