/* Reading the logs of many processes, one file each. Runs in the tools. */
#include "report/load.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* glob(7)'s pattern for a HEARTH_LOG value, its own special characters taken literally. */
static int make_glob(const char *pattern, char *ret_glob, size_t size)
{
	size_t at = 0;

	for (; *pattern; pattern++) {
		bool is_wild = pattern[0] == '%' && (pattern[1] == 'p' || pattern[1] == 'h');

		if (at + 3 > size)
			return -ENAMETOOLONG;
		if (pattern[0] == '%' && pattern[1] && strchr("ph%", pattern[1]))
			pattern++;
		if (!is_wild && strchr("*?[\\", *pattern))
			ret_glob[at++] = '\\';
		ret_glob[at++] = is_wild ? '*' : *pattern;
	}
	ret_glob[at] = '\0';
	return 0;
}

static bool is_written_since(const char *path, uint64_t since_us)
{
	struct stat info;

	/* The file system's clock ticks behind ours: whole seconds are sure. */
	return !stat(path, &info) && (uint64_t)info.st_mtime >= since_us / 1000000;
}

int load_pattern(const char *pattern, uint64_t since_us, struct run_log *log)
{
	char text[2 * PATH_MAX];
	int rc = make_glob(pattern, text, sizeof(text));
	glob_t found;

	if (rc)
		return rc;
	rc = glob(text, GLOB_NOSORT, NULL, &found);
	if (rc)
		return rc == GLOB_NOMATCH ? -ENOENT : rc == GLOB_NOSPACE ? -ENOMEM : -EIO;
	for (size_t i = 0; !rc && i < found.gl_pathc; i++)
		if (is_written_since(found.gl_pathv[i], since_us))
			rc = load_file(found.gl_pathv[i], log);
	globfree(&found);
	run_log_drop_before(log, since_us);
	return rc;
}
