/* Fuzz target: arbitrary command lines, words separated by NUL. No crash, a known kind, a name
 * that is harmless UTF-8, the same answer twice. The first byte chooses the executable. */
#include "fuzz.h"

#include "base/utf8.h"
#include "profile/identity.h"

#include <string.h>

#define WORDS_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[FUZZ_SIZE_MAX + 1];
	const char *argv[WORDS_MAX];
	struct identity_source source = {.argv = argv};
	struct identity first, second;

	if (!size || size > FUZZ_SIZE_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	source.executable = data[0] & 1 ? "/usr/bin/python3.11" : "/opt/solver";
	source.notebook = data[0] & 2 ? "paper.ipynb" : NULL;
	source.folder = data[0] & 4 ? "/nonexistent" : NULL;
	for (size_t at = 1; at < size && source.argc < WORDS_MAX; at += strlen(text + at) + 1)
		argv[source.argc++] = text + at;
	identity_compute(&source, &first);
	source.parent = data[0] & 8 ? &first : NULL;
	identity_compute(&source, &second);
	FUZZ_HOLDS(first.kind > 0 && first.kind < IDENTITY_KIND_COUNT);
	FUZZ_HOLDS(memchr(first.name, 0, sizeof(first.name)));
	for (const char *at = first.name; *at;) {
		uint32_t rune = 0;
		size_t length = utf8_next(at, strlen(at), &rune);

		FUZZ_HOLDS(length && utf8_is_harmless(rune));
		at += length;
	}
	FUZZ_HOLDS(source.parent || !memcmp(&first, &second, sizeof(first)));
	return 0;
}

size_t fuzz_seed(uint32_t index, uint8_t ret_data[FUZZ_SIZE_MAX])
{
	static const char *const lines[] = {
		"\1python\nscript.py\n--lr=1\n-n5\n--\n--x",
		"\1python\n-uBW\nignore\n-m\npkg.mod\n-v",
		"\1python\n-c\nfrom multiprocessing.spawn import spawn_main\n-x",
		"\11python\n-m\nloky.backend.popen_loky_posix\n--process-name\nL-3",
		"\3python\n-m\nipykernel_launcher\n-f\nkernel.json",
		"\5python\n-",
		"\4solver\n-n\n5",
	};
	size_t size;

	if (index >= sizeof(lines) / sizeof(lines[0]))
		return 0;
	size = strlen(lines[index]);
	memcpy(ret_data, lines[index], size);
	for (size_t i = 0; i < size; i++)
		if (ret_data[i] == '\n')
			ret_data[i] = 0;
	return size;
}
