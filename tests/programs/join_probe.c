/* Joins the broker as libhearth.so does, says what came of it on one line, and does as told:
 *
 *   join_probe [COMMAND...]
 *     record N    write N records
 *     junk        fill the page with bytes that no program would write
 *     exit-flag   mark the page as one whose program came to its end
 *     wait        wait for stdin's end
 *     kill        die by SIGKILL
 *     again       join once more, as a program does after exec
 *     fetch HEX   ask for the driver with that build-id; a second line: rc and size
 *
 * The line: rc, microseconds that joining took, slot, keeper's state, descriptors left open. */
#include "base/clock.h"
#include "base/log.h"
#include "region/fetch.h"
#include "region/join.h"
#include "region/record.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct join join;
static struct settings settings;

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = -3; /* ".", ".." and the folder's own */

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static void join_once(void)
{
	uint64_t before_us = clock_monotonic_us(), took_us;
	int rc = join_broker(&settings, "join_probe", clock_realtime_us(), &join);

	took_us = clock_monotonic_us() - before_us;
	printf("%d %llu %u %d %d\n", rc, (unsigned long long)took_us, join.page->slot,
		(int)join_keeper_state(&join), count_descriptors());
	fflush(stdout);
}

static void fetch(const char *hex)
{
	uint8_t build_id[FETCH_BUILD_ID_SIZE] = {0};
	uint64_t size = 0;
	int fd, rc;

	for (size_t i = 0; i < sizeof(build_id) && sscanf(hex + 2 * i, "%2hhx", &build_id[i]) == 1;
		i++)
		;
	rc = fetch_driver(&settings, build_id, clock_monotonic_us() + 5000000, &fd, &size);
	printf("%d %llu\n", rc, (unsigned long long)size);
	if (!rc)
		close(fd);
}

static void write_records(int count)
{
	struct hearth_record record = {.device = 0, .how = HEARTH_COLD, .visible_us = 100};

	__atomic_or_fetch(&join.page->flags, HEARTH_PAGE_USES_CUDA, __ATOMIC_RELAXED);
	record_name(&record, "cuInit", NULL);
	for (int i = 0; i < count; i++)
		record_write(join.page, &record);
}

int main(int argc, char **argv)
{
	settings_read(&settings);
	log_set_level(settings.log_level);
	join_once();
	for (int i = 1; i < argc; i++) {
		char byte;

		if (!strcmp(argv[i], "record") && i + 1 < argc)
			write_records(atoi(argv[++i]));
		else if (!strcmp(argv[i], "junk"))
			memset(join.page, 0xa5, sizeof(*join.page));
		else if (!strcmp(argv[i], "exit-flag"))
			__atomic_or_fetch(&join.page->flags, HEARTH_PAGE_EXITED, __ATOMIC_RELEASE);
		else if (!strcmp(argv[i], "wait"))
			while (read(STDIN_FILENO, &byte, 1) > 0)
				;
		else if (!strcmp(argv[i], "kill"))
			raise(SIGKILL);
		else if (!strcmp(argv[i], "fetch") && i + 1 < argc)
			fetch(argv[++i]);
		else if (!strcmp(argv[i], "again"))
			join_once();
		else
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
