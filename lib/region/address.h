/* Where a broker's socket can be. In this order: HEARTH_SOCKET, and then nothing else; else
 * $XDG_RUNTIME_DIR/hearth/socket where that folder is absolute, ours and 0700; else
 * /tmp/hearth-UID/socket; and last the machine's, /run/hearth/socket. */
#pragma once

#include "base/settings.h"

#include <stddef.h>

#define ADDRESS_MAX 108 /* sizeof(sockaddr_un.sun_path) */
#define ADDRESS_CANDIDATES 2
#define ADDRESS_SYSTEM "/run/hearth/socket"

struct address {
	char path[ADDRESS_MAX];
};

/* Fills the candidates, best first, and says how many (0..2). A folder that somebody else could
 * have made or could write to is left out. Looks at folders with lstat; makes nothing. */
size_t address_candidates(
	const struct settings *settings, struct address ret_candidates[ADDRESS_CANDIDATES]);

/* The address that a user's own broker listens at, its folder made (0700) and checked. 0;
 * -ENAMETOOLONG; -EINVAL; -ENOTDIR, -EPERM where the folder is not a folder of ours alone. */
int address_own(const struct settings *settings, struct address *ret_address);

/* The folder that holds, or will hold, the user's own socket without HEARTH_SOCKET; it may not
 * exist, or not be the user's. 0, -ENAMETOOLONG. */
int address_own_folder(char *ret_path, size_t size);

/* What keeps HEARTH_SOCKET's value from being an address, in words behind "HEARTH_SOCKET=VALUE is";
 * NULL where nothing does. It is absolute, since the broker has another working folder than the
 * programs. */
const char *address_setting_fault(const char *path);

/* 0 where `path` itself is a folder (no symlink) that belongs to us and that nobody else can enter;
 * -ENOENT, -ENOTDIR, -EPERM. */
int address_check_folder(const char *path);
