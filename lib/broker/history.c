/* The history's queue and its thread. history_append runs on that thread only (and in tests); the
 * main thread never touches the files. */
#include "broker/history.h"

#include "base/log.h"
#include "base/state_dir.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_MAX_BYTES ((size_t)16 * 1024 * 1024)
#define CLOSE_WAIT_NS 500000000

struct entry {
	struct entry *next;
	uid_t uid;
	gid_t gid;
	char *line;
	size_t length;
};

struct history {
	char folder[PATH_MAX];
	bool per_user;
	pthread_t thread;
	pthread_mutex_t mutex; /* for everything below */
	pthread_cond_t changed;
	struct entry *first, **last;
	size_t bytes; /* queued */
	bool is_busy;
	bool is_closing;
};

/* With the user's own rights where the folder is theirs: root never follows what a user planted. */
static int append_for(const struct history *history, const struct entry *entry)
{
	char folder[PATH_MAX + 16];
	int rc;

	if (!history->per_user)
		return history_append(history->folder, entry->line, entry->length);
	snprintf(folder, sizeof(folder), "%s/%u", history->folder, (unsigned int)entry->uid);
	if (!mkdir(folder, 0700)) {
		if (lchown(folder, entry->uid, entry->gid) < 0)
			return -errno;
	} else if (errno != EEXIST) {
		return -errno;
	}
	setfsgid(entry->gid);
	setfsuid(entry->uid);
	rc = history_append(folder, entry->line, entry->length);
	setfsuid(geteuid());
	setfsgid(getegid());
	return rc;
}

static struct entry *take(struct history *history)
{
	struct entry *entry = history->first;

	history->first = entry->next;
	if (!history->first)
		history->last = &history->first;
	history->bytes -= entry->length;
	return entry;
}

static void *serve(void *data)
{
	struct history *history = data;

	pthread_mutex_lock(&history->mutex);
	for (;;) {
		struct entry *entry;
		int rc;

		while (!history->first && !history->is_closing)
			pthread_cond_wait(&history->changed, &history->mutex);
		if (!history->first)
			break;
		entry = take(history);
		history->is_busy = true;
		pthread_mutex_unlock(&history->mutex);
		rc = append_for(history, entry);
		if (rc)
			log_error("cannot write a run of uid %u below %s: %s",
				(unsigned int)entry->uid, history->folder, strerror(-rc));
		free(entry->line);
		free(entry);
		pthread_mutex_lock(&history->mutex);
		history->is_busy = false;
		pthread_cond_broadcast(&history->changed);
	}
	pthread_mutex_unlock(&history->mutex);
	return NULL;
}

static int start_thread(struct history *history)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&history->thread, NULL, serve, history);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int history_open(const char *folder, bool per_user, struct history **ret_history)
{
	struct history *history = calloc(1, sizeof(*history));
	int rc;

	if (!history)
		return -ENOMEM;
	snprintf(history->folder, sizeof(history->folder), "%s", folder);
	history->per_user = per_user;
	history->last = &history->first;
	pthread_mutex_init(&history->mutex, NULL);
	pthread_cond_init(&history->changed, NULL);
	rc = start_thread(history);
	if (rc) {
		free(history);
		return rc;
	}
	*ret_history = history;
	return 0;
}

void history_add(struct history *history, uid_t uid, gid_t gid, char *line, size_t length)
{
	struct entry *entry = history ? calloc(1, sizeof(*entry)) : NULL;

	if (!entry) {
		free(line);
		return;
	}
	*entry = (struct entry){.uid = uid, .gid = gid, .line = line, .length = length};
	pthread_mutex_lock(&history->mutex);
	if (history->bytes + length > QUEUE_MAX_BYTES) {
		pthread_mutex_unlock(&history->mutex);
		log_error("a run of uid %u is lost: %s does not take them fast enough",
			(unsigned int)uid, history->folder);
		free(entry);
		free(line);
		return;
	}
	history->bytes += length;
	*history->last = entry;
	history->last = &entry->next;
	pthread_cond_broadcast(&history->changed);
	pthread_mutex_unlock(&history->mutex);
}

size_t history_pending(struct history *history)
{
	size_t count;

	if (!history)
		return 0;
	pthread_mutex_lock(&history->mutex);
	count = history->is_busy;
	for (const struct entry *entry = history->first; entry; entry = entry->next)
		count++;
	pthread_mutex_unlock(&history->mutex);
	return count;
}

struct history *history_close(struct history *history)
{
	struct timespec until;
	int rc = 0;

	if (!history)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += CLOSE_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&history->mutex);
	history->is_closing = true;
	pthread_cond_broadcast(&history->changed);
	while ((history->first || history->is_busy) && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&history->changed, &history->mutex, &until);
	pthread_mutex_unlock(&history->mutex);
	if (rc == ETIMEDOUT)
		return NULL; /* it hangs in a file system: the process ends without it */
	pthread_join(history->thread, NULL);
	pthread_cond_destroy(&history->changed);
	pthread_mutex_destroy(&history->mutex);
	free(history);
	return NULL;
}
