/* The last runs of each user: runs.jsonl, one JSON object a line, 0600, the last HISTORY_RUNS of
 * them (a few more between two clean-ups). Written on a thread of its own, since a home folder may
 * lie on a network that hangs; the queue is bounded and drops what does not fit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HISTORY_RUNS 200
#define HISTORY_SLACK 40 /* lines beyond that, before the file is cut */

struct history;

/* `folder`: the state folder; with `per_user` each user's runs lie in FOLDER/UID, written with that
 * user's rights. Copied. 0 or -errno. */
int history_open(const char *folder, bool per_user, struct history **ret_history);

/* Queues a line, which must come from malloc and is taken over. Never waits. NULL history: dropped.
 */
void history_add(struct history *history, uid_t uid, gid_t gid, char *line, size_t length);

/* How many lines are queued or being written. Never waits long. NULL: 0. */
size_t history_pending(struct history *history);

/* Waits until everything queued is written, but at most half a second; then frees. Takes NULL. */
struct history *history_close(struct history *history);

/* Appends one line to FOLDER/runs.jsonl and cuts the file to its last runs where it has grown too
 * long: what the thread does for each line. 0 or -errno. */
int history_append(const char *folder, const char *line, size_t length);

/* Removes FOLDER/runs.jsonl, between two appends. 0; -ENOENT where there is none; or -errno. */
int history_clear(const char *folder);
