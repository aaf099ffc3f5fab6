/* Scratch files. Runs in the tools. */
#include "launch/scratch.h"

#include "base/env.h"
#include "region/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

int scratch_make(const char *name, char ret_path[PATH_MAX], int *ret_fd)
{
	const char *folder = env_get(ENV_XDG_RUNTIME_DIR);
	int fd;

	/* Against being killed: the runtime folder goes with the session, /tmp stays. */
	if (!folder || folder[0] != '/' || address_check_folder(folder))
		folder = "/tmp";
	if (snprintf(ret_path, PATH_MAX, "%s/hearth-%s-XXXXXX", folder, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(ret_path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}
