/* SPDX-License-Identifier: Apache-2.0 */
/* no_symbol.c: a shared library that is none of custom functions. */
#include <weft/weft.h>

WEFT_API int weft_something_else(void);
int weft_something_else(void) { return 1; }
