/* The budget of spares that are kept unasked. Runs in `hearth run` and in what holds a spare; waits
 * a moment for each other holder. */
#include "spare/budget.h"

#include "spare/folder.h"
#include "spare/packet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLY_LIMIT_US 100000
#define SHORT_PART 10 /* of all memory */
#define KIB_PER_MIB 1024

static unsigned smaller(unsigned one, unsigned other)
{
	return one < other ? one : other;
}

static bool read_line(const char *line, struct budget *budget)
{
	char name[16], value[16], more;
	unsigned long number;
	char *end;
	int words = sscanf(line, " %15s %15s %c", name, value, &more);

	if (words <= 0 || name[0] == '#')
		return true;
	if (words != 2)
		return false;
	if (!strcmp(name, "auto")) {
		budget->is_allowed = budget->is_allowed && strcmp(value, "off") != 0;
		return !strcmp(value, "off") || !strcmp(value, "on");
	}
	errno = 0;
	number = strtoul(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end || errno || number > SPARE_MIB_MAX)
		return false;
	if (!strcmp(name, "host_mib"))
		budget->host_mib = smaller(budget->host_mib, (unsigned)number);
	else if (!strcmp(name, "gpu_mib"))
		budget->gpu_mib = smaller(budget->gpu_mib, (unsigned)number);
	else if (!strcmp(name, "idle_s"))
		budget->idle_s = smaller(budget->idle_s, (unsigned)number);
	else
		return false;
	return true;
}

int budget_read(const char *file, const struct settings *settings, struct budget *ret_budget)
{
	struct budget budget = {.is_allowed = true,
		.host_mib = settings->spare_host_mib,
		.gpu_mib = settings->spare_gpu_mib,
		.idle_s = settings->spare_idle_s};
	FILE *lines = fopen(file, "re");
	char line[256];
	struct stat info;
	int number = 0, wrong = 0;

	if (lines && (fstat(fileno(lines), &info) || info.st_uid ||
			     info.st_mode & (S_IWGRP | S_IWOTH))) {
		fclose(lines);
		lines = NULL;
	}
	while (lines && !wrong && fgets(line, sizeof(line), lines)) {
		number++;
		if (!read_line(line, &budget))
			wrong = number;
	}
	if (lines)
		fclose(lines);
	if (wrong || !budget.idle_s)
		budget.is_allowed = false;
	*ret_budget = budget;
	return wrong;
}

/* A line of one of the kernel's files: NAME and a number of KiB. */
static unsigned read_mib(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	char line[256];
	unsigned long long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = strtoull(line + strlen(name), NULL, 10);
	if (file)
		fclose(file);
	return (unsigned)(kib / KIB_PER_MIB);
}

unsigned budget_host_mib(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return read_mib(path, "RssAnon:");
}

bool budget_is_short(const char *meminfo)
{
	unsigned total = read_mib(meminfo, "MemTotal:");

	return read_mib(meminfo, "MemAvailable:") < total / SHORT_PART;
}

/* All others, added up, and the one that has waited longest. */
struct others {
	const char *own; /* the socket of who asks */
	unsigned host_mib, gpu_mib;
	uint32_t age_s;
	char oldest[ADDRESS_MAX]; /* its socket; empty where there is none */
};

static int add(int fd, const char *path, void *data)
{
	struct others *others = data;
	struct spare_message message;

	if (!strcmp(path, others->own) || packet_tell(fd, SPARE_STATUS, 0) ||
		packet_receive(fd, REPLY_LIMIT_US, &message, NULL, 0, NULL) || !message.is_auto)
		return 0;
	others->host_mib += message.host_mib;
	others->gpu_mib += message.device >= 0 ? BUDGET_CONTEXT_MIB : 0;
	if (message.value == SPARE_READY && (!others->oldest[0] || message.age_s > others->age_s)) {
		others->age_s = message.age_s;
		strcpy(others->oldest, path);
	}
	return 0;
}

static int end_one(int fd, const char *path, void *data)
{
	const struct others *others = data;
	struct spare_message message;

	if (strcmp(path, others->oldest) != 0)
		return 0;
	if (!packet_tell(fd, SPARE_STOP, 0))
		packet_receive(fd, REPLY_LIMIT_US, &message, NULL, 0, NULL);
	return 1;
}

bool budget_make_room(
	const struct budget *budget, const char *path, unsigned host_mib, unsigned gpu_mib)
{
	if (host_mib > budget->host_mib || gpu_mib > budget->gpu_mib)
		return false;
	for (;;) {
		struct others others = {.own = path};

		folder_each(NULL, add, &others);
		if (others.host_mib + host_mib <= budget->host_mib &&
			others.gpu_mib + gpu_mib <= budget->gpu_mib)
			return true;
		/* What is left is still loading, and will look for itself. */
		if (!others.oldest[0] || folder_each(NULL, end_one, &others) != 1)
			return true;
	}
}
