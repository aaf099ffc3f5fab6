/* SIMCUDA_* settings, read when the library is loaded.
 *
 * From /proc/self/environ: that block is as the process was started with, so reading it cannot race
 * with a program's setenv, and no getenv of ours is seen by who watches the driver's. Where there
 * is no /proc, from environ. Runs in the library's constructor, on the thread that loads it. */
#include "sim/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "SIMCUDA_"

static const char *const names[SIM_SETTINGS] = {
#define SETTING(name, values, default_text, help) PREFIX #name,
#include "sim_settings.def"
#undef SETTING
};

static const char *values[SIM_SETTINGS];

static void take(const char *variable)
{
	for (int i = 0; i < SIM_SETTINGS; i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(variable, names[i], length) && variable[length] == '=')
			values[i] = strdup(variable + length + 1);
	}
}

/* The whole of a file of unknown size, with a NUL after it; NULL on failure. */
static char *read_whole(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0, room = 0;
	char *text = NULL;
	ssize_t got = -1;

	if (fd < 0)
		return NULL;
	do {
		if (size + 4096 > room) {
			char *larger = realloc(text, room = 2 * room + 16384);

			if (!larger)
				break;
			text = larger;
		}
		got = read(fd, text + size, room - size - 1);
		if (got > 0)
			size += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	close(fd);
	if (got) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	*ret_size = size;
	return text;
}

__attribute__((constructor)) static void read_settings(void)
{
	size_t size = 0;
	char *block = read_whole("/proc/self/environ", &size);

	for (size_t at = 0; block && at < size; at += strlen(block + at) + 1)
		if (!strncmp(block + at, PREFIX, sizeof(PREFIX) - 1))
			take(block + at);
	if (!block)
		for (char **variable = environ; variable && *variable; variable++)
			if (!strncmp(*variable, PREFIX, sizeof(PREFIX) - 1))
				take(*variable);
	free(block);
}

const char *sim_setting(enum sim_setting setting)
{
	const char *value = values[setting];

	return value && *value ? value : NULL;
}

long sim_setting_number(enum sim_setting setting, long otherwise)
{
	const char *value = sim_setting(setting);
	char *end;
	long number = value ? strtol(value, &end, 10) : 0;

	return value && !*end ? number : otherwise;
}
