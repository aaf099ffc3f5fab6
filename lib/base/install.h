/* Where the parts of this installation are. Each program finds the others from its own place, so
 * that a build tree, an unpacked archive and /usr all work without a setting. */
#pragma once

#include <stddef.h>

enum install_part {
	INSTALL_PRELOAD, /* libhearth.so */
	INSTALL_BROKER,  /* hearthd */
	INSTALL_PARTS
};

/* The part's absolute path without links or "..", for the running program. Returns 0; -ENOENT where
 * none of the places holds it; -ENAMETOOLONG. */
int install_find(enum install_part part, size_t size, char *ret_path);

/* The same for a program that lies in `folder`, and pure of /proc: what install_find calls. */
int install_find_from(const char *folder, enum install_part part, size_t size, char *ret_path);

/* The part's file name and the places looked at, for messages. */
const char *install_name(enum install_part part);
