/* SPDX-License-Identifier: Apache-2.0 */
/* even_odd.h: lanes of two vectors side by side, as __builtin_shufflevector takes them: every other one. */
#ifndef WEFT_EVEN_ODD_H
#define WEFT_EVEN_ODD_H

#include "kernels/strip/vector.h"

#if LANES == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif LANES == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD  1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN 0, 2, 4, 6
#define ODD  1, 3, 5, 7
#endif

#endif
