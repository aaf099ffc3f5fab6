/* The stored verdict of the undo self-test: STATE_DIR/undo/BUILD-ID. */
#pragma once

#include "driver/build_id.h"
#include <stdbool.h>

enum verdict { VERDICT_NONE, VERDICT_PASSED, VERDICT_FAILED };

/* What is stored for that build of the driver. A file that is damaged, a symlink, foreign-owned
 * (neither this user's nor root's) or writable by others counts as none. open, fstat, read, close.
 */
enum verdict verdict_read(const char *state_dir, const struct build_id *driver);

/* Stores a verdict (0600, replaced atomically), with text for people behind it. 0 or a negative
 * errno. */
int verdict_write(
	const char *state_dir, const struct build_id *driver, bool is_passed, const char *details);
