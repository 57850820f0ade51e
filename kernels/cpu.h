/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h: what a family of processors has to say about itself. */
#ifndef WEFT_CPU_H
#define WEFT_CPU_H

#include "kernels/kernels.h"

/* Sets flags, brand, vendor, family and model, and the caches whose sizes the processor tells; those of others stay as
 * they are. In cpu_x86.c or cpu_other.c. */
void weft_cpu_identify(struct weft_cpu *cpu);

#endif
