/* The constructor of libhearth.so. Runs in every preloaded process, most of which never use CUDA:
 * it must not block, allocate, open the driver, or print; it reads the settings and decides whether
 * to step aside. */
#include "preload/start.h"

#include "base/at_start.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "driver/locate.h"
#include "preload/around.h"
#include "preload/exit_line.h"
#include "preload/observe.h"
#include "preload/record_images.h"
#include "preload/spare.h"
#include "preload/speculate.h"
#include "preload/step_aside.h"
#include "preload/touched.h"

#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Longer values than these name no file and no task that could be used. */
#define KEPT_TEXT_MAX 4096

/* Not zero, so that it lies in .data, whose page relocation has touched already. */
static struct settings settings = SETTINGS_DEFAULT;
static enum { UNREAD = 1, READ, OFF } state = UNREAD;

AT_START_DATA static uint64_t monotonic_us, realtime_us;

static const char *keep(const char *text, char kept[KEPT_TEXT_MAX])
{
	size_t length = text ? strlen(text) : KEPT_TEXT_MAX;

	if (length >= KEPT_TEXT_MAX)
		return NULL;
	return memcpy(kept, text, length + 1);
}

static void keep_settings(void)
{
	static char driver[KEPT_TEXT_MAX], socket[KEPT_TEXT_MAX], state_dir[KEPT_TEXT_MAX],
		log[KEPT_TEXT_MAX], task[KEPT_TEXT_MAX];

	settings.driver = keep(settings.driver, driver);
	settings.socket = keep(settings.socket, socket);
	settings.state_dir = keep(settings.state_dir, state_dir);
	settings.log = keep(settings.log, log);
	settings.task = keep(settings.task, task);
}

/* Runs in the constructor, or before it where another library's constructor calls the driver. */
static void read_settings(void)
{
	const char *wrong = NULL;

	state = READ;
	if (!env_has_own(environ))
		return;
	wrong = settings_read(&settings);
	keep_settings();
	log_set_level(settings.log_level);
	if (wrong)
		log_error(
			"%s=%s is not understood: its default counts", wrong, env_get_named(wrong));
}

static void prepare(void)
{
	if (state == UNREAD)
		read_settings();
	if (!monotonic_us) {
		realtime_us = clock_realtime_us();
		monotonic_us = clock_monotonic_us();
	}
}

const struct settings *start_settings(void)
{
	prepare();
	return &settings;
}

uint64_t start_monotonic_us(void)
{
	uint64_t adopted_us = spare_adopted_monotonic_us();

	prepare();
	return adopted_us ? adopted_us : monotonic_us;
}

uint64_t start_realtime_us(void)
{
	uint64_t adopted_us = spare_adopted_realtime_us();

	prepare();
	return adopted_us ? adopted_us : realtime_us;
}

bool start_is_off(void)
{
	return state == OFF;
}

/* Whether a driver could be found by anybody in this process. The usual places are asked first: a
 * machine with a GPU pays one to three access() calls. */
static bool has_driver(void)
{
	static const char *const usual[] = {
		"/usr/lib/x86_64-linux-gnu/" LOCATE_NAME,
		"/usr/lib64/" LOCATE_NAME,
		"/usr/local/nvidia/lib64/" LOCATE_NAME,
		"/usr/local/nvidia/lib64/" LOCATE_NAME,
	};
	struct locate_request request = {.driver = settings.driver};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (!access(usual[i], R_OK))
			return true;
	return !locate_driver(&request, path);
}

static bool is_wanted(void)
{
	if (!settings.is_on || (!settings.driver && !locate_has_device()))
		return false;
	if (getauxval(AT_SECURE))
		return false;
	if (locate_is_given(settings.driver))
		return true;
	return (!settings.driver || locate_has_device()) && has_driver();
}

/* In a process that is stepped aside from, this calls nothing in libc that can be done without:
 * each page of it that nobody else touches costs a microsecond in every process there is. */
__attribute__((constructor)) static void start(int argc, char **argv)
{
	if (state == UNREAD)
		read_settings();
	if (is_wanted()) {
		prepare();
		speculate_begin(argc, argv);
		return;
	}
	state = OFF;
	step_aside();
}

__attribute__((destructor)) static void end(void)
{
	if (state == OFF)
		return;
	around_leave();
	observe_end();
	record_learn_end();
	touched_end();
	exit_line_write();
}
