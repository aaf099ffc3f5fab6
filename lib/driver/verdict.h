/* The stored verdict of the undo self-test: STATE_DIR/undo/BUILD-ID, a line that programs read and
 * then lines for people. */
#pragma once

#include "driver/build_id.h"
#include <stdbool.h>

/* Where a machine's broker, root's, keeps its verdicts and its users' runs. */
#define VERDICT_SYSTEM_DIR "/var/lib/hearth"
#define VERDICT_DETAILS_MAX 1024

enum verdict { VERDICT_NONE, VERDICT_PASSED, VERDICT_FAILED };

/* Whom a verdict is for: its writer, or every user of the machine. */
enum verdict_readers { VERDICT_FOR_OWNER, VERDICT_FOR_ALL };

/* What is stored for that build of the driver. A file that is damaged, a symlink, foreign-owned
 * (neither this user's nor root's) or writable by others counts as none. open, fstat, read, close.
 */
enum verdict verdict_read(const char *state_dir, const struct build_id *driver);

/* The same of the user's state folder (which may be empty: unknown) or, where that has none, of
 * the machine's. `ret_details` (NULL: not wanted) gets the text for people, NUL-terminated. */
enum verdict verdict_find(const char *state_dir, const struct build_id *driver,
	char ret_details[VERDICT_DETAILS_MAX]);

/* Stores a verdict (0600, or 0644 in a folder of 0755; replaced atomically), with text for people
 * behind it. 0 or a negative errno. */
int verdict_write(const char *state_dir, const struct build_id *driver,
	enum verdict_readers readers, bool is_passed, const char *details);
