/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: prints where the members of the public structs lie, how long these are, and what constants are: one line
 * each, the same for any two headers that agree. README.md tells what for. */
#include <weft/weft.h>

#include <stdio.h>

#define GROWS(type) printf("at least %zu: %s\n", sizeof(type), #type);
#define FIXED(type) printf("%zu: %s\n", sizeof(type), #type);
#define MEMBER(type, member) \
    printf("%zu, %zu: %s.%s\n", offsetof(type, member), sizeof(((type *)0)->member), #type, #member);
#define CONSTANT(name) printf("%lld: %s\n", (long long)(name), #name);

int main(void)
{
#include "layout.def"
    return 0;
}
