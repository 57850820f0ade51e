/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h: between two looks at a word that another thread is to write: leaves the core to its other thread, and the
 * word's line to the writer. */
#ifndef WEFT_PAUSE_H
#define WEFT_PAUSE_H

static inline void weft_k_pause(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb" ::: "memory"); /* yield is a no-op on most cores; this waits for some tens of cycles */
#endif
}

#endif
