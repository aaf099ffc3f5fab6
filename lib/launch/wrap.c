/* Putting a program under Hearth. Runs in the tools. Must never let a program start with an
 * LD_PRELOAD that the loader would complain about. */
#include "launch/wrap.h"

#include "base/env.h"
#include "base/install.h"
#include "launch/preload_list.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIAS_NAME "libhearth-alias.so"

__attribute__((format(printf, 3, 4))) static int fail(
	int rc, struct wrap_error *error, const char *format, ...)
{
	va_list words;

	va_start(words, format);
	vsnprintf(error->text, sizeof(error->text), format, words);
	va_end(words);
	return rc;
}

/* Whether the file is a 64-bit ELF shared object, as far as its first bytes tell. */
static int check_library(const char *path, struct wrap_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr head;
	ssize_t got;

	if (fd < 0)
		return fail(-errno, error, "%s: %s", path, strerror(errno));
	got = pread(fd, &head, sizeof(head), 0);
	close(fd);
	if (got < (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
		head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_DYN)
		return fail(-ENOEXEC, error, "%s: not a shared library of this machine", path);
	if (!preload_list_can_hold(path))
		return fail(-EINVAL, error,
			"%s: LD_PRELOAD cannot hold a path with ':', ' ' or '$': install Hearth in "
			"another folder",
			path);
	return 0;
}

/* What libhearth.so needs from its own folder; without it no program starts. */
static int check_alias(const char *library, struct wrap_error *error)
{
	char path[PATH_MAX];
	const char *slash = strrchr(library, '/');

	snprintf(path, sizeof(path), "%.*s/" ALIAS_NAME, (int)(slash - library), library);
	return check_library(path, error);
}

int wrap_find_library(size_t size, char *ret_path, struct wrap_error *ret_error)
{
	char self[PATH_MAX] = "hearth", path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int rc = install_find(INSTALL_PRELOAD, sizeof(path), path);

	if (length > 0)
		self[length] = '\0';
	if (rc)
		return fail(rc, ret_error,
			"%s is missing: looked for it from %s, in ../lib/hearth and the like",
			install_name(INSTALL_PRELOAD), self);
	rc = check_library(path, ret_error);
	if (!rc)
		rc = check_alias(path, ret_error);
	if (rc)
		return rc;
	if (strlen(path) >= size)
		return fail(-ENAMETOOLONG, ret_error, "%s: the path is too long", path);
	strcpy(ret_path, path);
	return 0;
}

int wrap_set_preload(const char *library, struct wrap_error *ret_error)
{
	char *list = NULL;
	int rc = preload_list_add(env_get(ENV_LD_PRELOAD), library, &list);

	if (!rc && setenv("LD_PRELOAD", list, 1))
		rc = -errno;
	free(list);
	return rc ? fail(rc, ret_error, "LD_PRELOAD: %s", strerror(-rc)) : 0;
}

int wrap_set_eager(void)
{
	char value[32];

	snprintf(value, sizeof(value), "always:%d", (int)getpid());
	return setenv("HEARTH_SPECULATE", value, 1) ? -errno : 0;
}
