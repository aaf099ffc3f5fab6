/* Replays a fuzz target without a fuzzer: its seeds, mutations of them from a fixed generator, and
 * the files given as arguments. `replay --seeds FOLDER` writes the seeds for a real fuzzer. */
#include "fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATIONS_PER_SEED 1000
#define EDITS_MAX 8

static uint64_t state = 0x9e3779b97f4a7c15;

/* xorshift64: any full-period generator would do, as long as a failure can be repeated. */
static uint32_t next_random(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static size_t mutate(uint8_t *data, size_t size)
{
	static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
	uint32_t edits = 1 + next_random(EDITS_MAX);

	while (edits--) {
		size_t at = next_random((uint32_t)size);

		switch (next_random(4)) {
		case 0:
			data[at] = (uint8_t)next_random(256);
			break;
		case 1:
			data[at] = edges[next_random(sizeof(edges))];
			break;
		case 2:
			data[at] ^= (uint8_t)(1u << next_random(8));
			break;
		default:
			size = 1 + next_random((uint32_t)size);
		}
	}
	return size;
}

static bool replay_file(const char *path)
{
	static uint8_t data[FUZZ_SIZE_MAX];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		return false;
	}
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	return true;
}

static int write_seeds(const char *folder)
{
	static uint8_t seed[FUZZ_SIZE_MAX];
	size_t size;

	for (uint32_t i = 0; (size = fuzz_seed(i, seed)); i++) {
		char path[4096];
		FILE *file;

		snprintf(path, sizeof(path), "%s/seed-%u", folder, i);
		file = fopen(path, "wb");
		if (!file || fwrite(seed, 1, size, file) != size || fclose(file)) {
			perror(path);
			return EXIT_FAILURE;
		}
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static uint8_t seed[FUZZ_SIZE_MAX], data[FUZZ_SIZE_MAX];
	uint32_t count = 0;
	size_t size;

	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return write_seeds(argv[2]);
	for (int i = 1; i < argc; i++)
		if (!replay_file(argv[i]))
			return EXIT_FAILURE;
	LLVMFuzzerTestOneInput(data, 0);
	for (uint32_t i = 0; (size = fuzz_seed(i, seed)); i++) {
		LLVMFuzzerTestOneInput(seed, size);
		for (int round = 0; round < MUTATIONS_PER_SEED; round++, count++) {
			memcpy(data, seed, size);
			LLVMFuzzerTestOneInput(data, mutate(data, size));
		}
	}
	printf("%u mutated inputs\n", count);
	return count ? EXIT_SUCCESS : EXIT_FAILURE;
}
