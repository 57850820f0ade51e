/* SPDX-License-Identifier: Apache-2.0 */
/* tiers.h: compiled code for the groups of a plan (tiers.c). A plan starts on strip programs. When somebody asks for
 * it, C is written for each of its kernels (codegen/emit.h), compilers run beside the plan's runs (codegen/compiler.h),
 * and as soon as all is there, runs use it. Both give the same bits, so a run may see the change
 * from one part of a step to the next. */
#ifndef WEFT_TIERS_H
#define WEFT_TIERS_H

#include "plan/plan.h"

/* Under weft_protected, while the plan is made. */
void weft_tiers_open(struct weft_plan *plan);
/* Writes the sources for the sizes of the hints and starts compilers, once, and does not wait for them. WEFT_OK or
 * WEFT_ERR_NOMEM. These three: any thread. */
int weft_tiers_begin(const struct weft_plan *plan);
/* Takes over what is ready, if no other thread is at it. */
void weft_tiers_poll(const struct weft_plan *plan);
/* Begins, and returns when all is there that can be. */
int weft_tiers_wait(const struct weft_plan *plan);
/* How many groups have compiled code, of how many; and why the others have none, or NULL. */
void weft_tiers_count(const struct weft_plan *plan, int32_t *ret_compiled, int32_t *ret_groups, const char **ret_why);
/* With the plan: unloads the code. */
void weft_tiers_close(struct weft_plan *plan);

#endif
