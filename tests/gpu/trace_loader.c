/* An auditor of the loader (man rtld-audit): says how long each dlopen took to map and relocate
 * what it brought, and what that was. One line of JSON for each in the file that TRACE_LOADER
 * names; the libraries' constructors are not in it. */
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAMES = 4096 };

static char names[NAMES];
static uint64_t begun_us;
static unsigned opened;

static uint64_t now_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

unsigned int la_version(unsigned int version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	const char *slash = strrchr(map->l_name, '/');
	size_t used = strlen(names);

	(void)space;
	(void)cookie;
	opened++;
	snprintf(names + used, sizeof(names) - used, "%s%s", used ? " " : "",
		slash ? slash + 1 : map->l_name);
	return 0;
}

void la_activity(uintptr_t *cookie, unsigned int flag)
{
	const char *path = getenv("TRACE_LOADER");
	FILE *file;

	(void)cookie;
	if (flag == LA_ACT_ADD) {
		begun_us = now_us(CLOCK_MONOTONIC);
		opened = 0;
		names[0] = '\0';
		return;
	}
	if (flag != LA_ACT_CONSISTENT || !opened || !path || !(file = fopen(path, "a")))
		return;
	fprintf(file, "{\"end_us\": %lu, \"us\": %lu, \"files\": \"%s\"}\n",
		(unsigned long)now_us(CLOCK_REALTIME),
		(unsigned long)(now_us(CLOCK_MONOTONIC) - begun_us), names);
	fclose(file);
}
