/* SPDX-License-Identifier: Apache-2.0 */
/* libfuzzer.c: a target behind the names that libFuzzer calls. One step in four is libFuzzer's own, which knows the
 * dictionary and what the program compares with; the others are the target's. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= weft_fuzz_limit)
        weft_fuzz_check(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    uint64_t random = seed;
    if (weft_fuzz_draw(&random, 4) == 0)
        return LLVMFuzzerMutate(data, size, room);
    for (uint32_t steps = 1 + weft_fuzz_draw(&random, 3); steps > 0; steps--)
        size = weft_fuzz_mutate(data, size, room, &random);
    return size;
}
