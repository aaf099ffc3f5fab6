/* What a fuzz target offers: to libFuzzer, and to the plain replayer (replay.c), which needs no
 * special compiler and is part of the test suite. A failure is an abort. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FUZZ_SIZE_MAX 65536

/* libFuzzer's entry: one input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target's seeds: writes number `index` and returns its size; 0: there are no more. */
size_t fuzz_seed(uint32_t index, uint8_t ret_data[FUZZ_SIZE_MAX]);

/* Not assert: it must hold in every build. */
#define FUZZ_HOLDS(is_true)                                                                        \
	do {                                                                                       \
		if (!(is_true))                                                                    \
			fuzz_failed(__FILE__, __LINE__, #is_true);                                 \
	} while (0)

static inline _Noreturn void fuzz_failed(const char *file, int line, const char *what)
{
	__builtin_printf("%s:%d: does not hold: %s\n", file, line, what);
	__builtin_trap();
}
