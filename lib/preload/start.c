/* The constructor of libhearth.so. Runs in every preloaded process, most of which never use CUDA:
 * it must not block, allocate, open the driver, or print; it reads the settings and decides whether
 * to step aside. */
#include "preload/start.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/locate.h"
#include "preload/exit_line.h"
#include "preload/step_aside.h"

#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Longer values than these name no file and no task that could be used. */
#define KEPT_TEXT_MAX 4096

static struct settings settings;
static uint64_t monotonic_us, realtime_us;
static bool is_prepared, is_off;

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
static void prepare(void)
{
	const char *wrong;

	if (is_prepared)
		return;
	is_prepared = true;
	monotonic_us = clock_monotonic_us();
	realtime_us = clock_realtime_us();
	wrong = settings_read(&settings);
	keep_settings();
	log_set_level(settings.log_level);
	if (wrong)
		log_error("%s: value not understood, taken as unset", wrong);
}

const struct settings *start_settings(void)
{
	prepare();
	return &settings;
}

uint64_t start_monotonic_us(void)
{
	prepare();
	return monotonic_us;
}

uint64_t start_realtime_us(void)
{
	prepare();
	return realtime_us;
}

bool start_is_off(void)
{
	return is_off;
}

/* Whether a driver could be found by anybody in this process. The usual places are asked first: a
 * machine with a GPU pays one or two access() calls. */
static bool has_driver(void)
{
	static const char *const usual[] = {
		"/usr/lib/x86_64-linux-gnu/" LOCATE_NAME,
		"/usr/lib64/" LOCATE_NAME,
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
	if (!settings.is_on || getauxval(AT_SECURE))
		return false;
	if (settings.driver)
		return !locate_check(settings.driver) || (locate_has_device() && has_driver());
	return locate_has_device() && has_driver();
}

__attribute__((constructor)) static void start(void)
{
	prepare();
	if (is_wanted())
		return;
	is_off = true;
	step_aside();
}

__attribute__((destructor)) static void end(void)
{
	exit_line_write();
}
