/* SPDX-License-Identifier: Apache-2.0 */
/* wishes.h: do the words of a command line name something? */
#ifndef WEFT_CHECK_WISHES_H
#define WEFT_CHECK_WISHES_H

#include <stdbool.h>

struct weft_wishes;
/* Of so many words, which may be patterns; NULL: no memory. */
struct weft_wishes *weft_wishes_open(char *const *word, int words);
/* A family and the name of a kernel in it; the latter may live no longer than the call. */
void weft_wishes_offer(struct weft_wishes *wishes, const char *family, const char *name);
/* False after naming on standard error the words that nothing is called by. */
bool weft_wishes_close(struct weft_wishes *wishes);

#endif
