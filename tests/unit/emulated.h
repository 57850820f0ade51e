/* SPDX-License-Identifier: Apache-2.0 */
/* emulated.h: is the test run by an emulator of another CPU (./dev arm)? What it starts itself is not handed to the
 * emulator, and its fork and exec are not the kernel's: tests of these skip. */
#ifndef WEFT_TEST_EMULATED_H
#define WEFT_TEST_EMULATED_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool is_emulated(void)
{
    return getenv("MESON_EXE_WRAPPER") != NULL; /* which Meson sets where it has one */
}

#endif
