/* The simulated machine: a folder that all its processes share.
 *
 *   DIR/dev/nvidiactl, nvidia-uvm, nvidiaN   stand for the device files; every descriptor that the
 *                                            driver holds there is below DIR/dev/nvidia
 *   DIR/dev/nvidia-client-XXXXXX             one for each live copy of the driver: which GPUs it
 *                                            uses and how much of their memory
 *   DIR/shared-XXXXXX                        device memory that other processes may open
 *   DIR/lock, DIR/kernel                     short accounting lock; the kernel driver's lock
 *
 * A client file is flock'ed as long as its copy lives: the kernel lets go of it with the last
 * descriptor, so a killed process counts no longer, and a fork child that inherited the descriptor
 * still counts, as with the real driver. Runs on the program's threads; takes no lock of sim.h. */
#include "sim/sim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CLIENT_MAGIC 0x43435553u /* "SUCC" */
#define CLIENT_NAME "nvidia-client-"
#define SHARED_NAME "shared-"
#define DEFAULT_MEMORY_MIB 143156
#define INIT_BYTES (4 * SIM_MIB)
/* The kernel's lock is taken for about as long as one of the driver's longer calls. */
#define SLICE_MS 2.0
#define BETWEEN_SLICES_US 100

/* One writer, its own process; readers copy it with pread. */
struct client {
	uint32_t magic;
	uint32_t registered; /* bit: physical GPU */
	uint64_t used[SIM_MAX_DEVICES];
	uint32_t contexts[SIM_MAX_DEVICES];
};

static char folder[3000];
static int client_fd = -1, control_fds[2] = {-1, -1}, device_fds[SIM_MAX_DEVICES];
static int device_fd_count;
/* The process may end while another thread is in a call that uses these. */
static pthread_mutex_t fd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t account_lock = PTHREAD_MUTEX_INITIALIZER; /* guards *client */
static struct client *client;

static void path_of(const char *name, char ret_path[PATH_MAX])
{
	snprintf(ret_path, PATH_MAX, "%s/%s", folder, name);
}

static int open_in(const char *name)
{
	char path[PATH_MAX];

	path_of(name, path);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

int sim_machine_open_device(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "dev/%s", name);
	return open_in(path);
}

int sim_machine_create_shared(char ret_name[SIM_SHARED_NAME])
{
	char path[PATH_MAX];
	int fd;

	path_of(SHARED_NAME "XXXXXX", path);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		snprintf(ret_name, SIM_SHARED_NAME, "%s", strrchr(path, '/') + 1);
	return fd;
}

int sim_machine_open_shared(const char *name)
{
	char path[PATH_MAX];

	if (strncmp(name, SHARED_NAME, strlen(SHARED_NAME)) || strchr(name, '/'))
		return -1;
	path_of(name, path);
	return open(path, O_RDWR | O_CLOEXEC);
}

void sim_machine_remove_shared(const char *name)
{
	char path[PATH_MAX];

	path_of(name, path);
	unlink(path);
}

bool sim_machine_has_cached(const char *name)
{
	char path[PATH_MAX];
	int fd;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EEXIST;
}

static int lock(const char *name)
{
	int fd = open_in(name);

	while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR)
		;
	return fd;
}

static void unlock(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN); /* also where a fork child has inherited the descriptor */
	close(fd);
}

/* Against threads of this process by a mutex, against other processes by the file. */
static int lock_accounts(void)
{
	pthread_mutex_lock(&account_lock);
	return lock("lock");
}

static void unlock_accounts(int fd)
{
	unlock(fd);
	pthread_mutex_unlock(&account_lock);
}

/* Adds up what the live clients hold, this one included; removes dead ones. Under DIR/lock. */
static void sum_clients(struct client *ret_sum, bool is_without_us)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	*ret_sum = (struct client){0};
	path_of("dev", path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		struct client other = {0};
		int fd;

		if (strncmp(entry->d_name, CLIENT_NAME, strlen(CLIENT_NAME)))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!flock(fd, LOCK_SH | LOCK_NB)) {
			unlinkat(dirfd(dir), entry->d_name, 0);
		} else if (pread(fd, &other, sizeof(other), 0) == (ssize_t)sizeof(other) &&
			   other.magic == CLIENT_MAGIC) {
			ret_sum->registered |= other.registered;
			for (int i = 0; i < SIM_MAX_DEVICES; i++) {
				ret_sum->used[i] += other.used[i];
				ret_sum->contexts[i] += other.contexts[i];
			}
		}
		close(fd);
	}
	if (dir)
		closedir(dir);
	for (int i = 0; is_without_us && client && i < SIM_MAX_DEVICES; i++)
		ret_sum->contexts[i] -= client->contexts[i];
}

static int open_client(void)
{
	char path[PATH_MAX];
	int guard = lock_accounts();

	/* One of a cuInit that failed. At the end of the process it stays mapped: other threads may
	 * be in the middle of a call. */
	if (client)
		munmap(client, sizeof(*client));
	client = NULL;
	path_of("dev/" CLIENT_NAME "XXXXXX", path);
	client_fd = mkostemp(path, O_CLOEXEC);
	if (client_fd >= 0) {
		fchmod(client_fd, 0644);
		flock(client_fd, LOCK_EX);
		if (!ftruncate(client_fd, sizeof(*client)))
			client = mmap(NULL, sizeof(*client), PROT_READ | PROT_WRITE, MAP_SHARED,
				client_fd, 0);
		if (client == MAP_FAILED)
			client = NULL;
		if (client)
			client->magic = CLIENT_MAGIC;
	}
	unlock_accounts(guard);
	return client ? SIM_SUCCESS : SIM_OPERATING_SYSTEM;
}

int sim_machine_open(void)
{
	const char *dir = sim_setting(SIM_SET_MACHINE);
	char path[PATH_MAX];

	if (dir)
		snprintf(folder, sizeof(folder), "%s", dir);
	else
		snprintf(folder, sizeof(folder), "/tmp/simcuda-%u", (unsigned int)geteuid());
	mkdir(folder, 0777);
	path_of("dev", path);
	mkdir(path, 0777);
	control_fds[0] = sim_machine_open_device("nvidiactl");
	control_fds[1] = sim_machine_open_device("nvidia-uvm");
	if (control_fds[0] < 0 || control_fds[1] < 0)
		return SIM_OPERATING_SYSTEM;
	return open_client();
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Says when the GPUs were last used. */
static void touch_devices(void)
{
	pthread_mutex_lock(&fd_lock);
	for (int i = 0; i < device_fd_count; i++)
		futimens(device_fds[i], NULL);
	pthread_mutex_unlock(&fd_lock);
}

bool sim_machine_has_context(void)
{
	bool is_there = false;

	pthread_mutex_lock(&account_lock);
	for (int i = 0; client && i < SIM_MAX_DEVICES; i++)
		is_there |= client->contexts[i] > 0;
	pthread_mutex_unlock(&account_lock);
	return is_there;
}

void sim_machine_close(void)
{
	touch_devices();
	pthread_mutex_lock(&fd_lock);
	for (int i = 0; i < device_fd_count; i++)
		close_fd(&device_fds[i]);
	device_fd_count = 0;
	pthread_mutex_unlock(&fd_lock);
	close_fd(&control_fds[0]);
	close_fd(&control_fds[1]);
	close_fd(&client_fd);
}

/* Whether nobody has used the GPU for so long that it has powered down. */
static bool is_idle(int fd)
{
	double after_s = sim_time(SIM_STEP_idle_after) / 1000;
	struct timespec now;
	struct stat status;

	if (after_s <= 0 || fstat(fd, &status))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	return (double)(now.tv_sec - status.st_mtim.tv_sec) > after_s;
}

void sim_machine_register(const int *physical, int count, int present)
{
	bool is_cold = false;
	double ms = sim_time(SIM_STEP_init) + (count - 1) * sim_time(SIM_STEP_init_more);

	for (int i = 0; i < count; i++) {
		struct client sum;
		char name[32];
		int guard, kernel, fd;

		snprintf(name, sizeof(name), "nvidia%d", physical[i]);
		fd = sim_machine_open_device(name);
		kernel = lock("kernel");
		guard = lock_accounts();
		sum_clients(&sum, false);
		client->registered |= 1u << physical[i];
		client->used[physical[i]] += INIT_BYTES;
		unlock_accounts(guard);
		if (!(sum.registered & 1u << physical[i])) {
			double cold =
				sim_time(is_cold ? SIM_STEP_init_cold_more : SIM_STEP_init_cold);

			if (!is_cold && fd >= 0 && is_idle(fd))
				cold += sim_time(SIM_STEP_init_idle);
			is_cold = true;
			sim_time_wait(cold);
		}
		unlock(kernel);
		if (fd >= 0) {
			device_fds[device_fd_count++] = fd;
		}
	}
	touch_devices();
	if (is_cold)
		ms += (present - count) * sim_time(SIM_STEP_init_hidden);
	sim_time_wait(ms);
}

uint64_t sim_machine_total(int physical)
{
	return (uint64_t)sim_setting_number(SIM_SET_MEMORY_MIB, DEFAULT_MEMORY_MIB) * SIM_MIB;
}

uint64_t sim_machine_used(int physical)
{
	struct client sum;
	int guard = lock_accounts();

	sum_clients(&sum, false);
	unlock_accounts(guard);
	return sum.used[physical];
}

int sim_machine_charge(int physical, uint64_t bytes)
{
	uint64_t total = sim_machine_total(physical);
	int rc = SIM_OUT_OF_MEMORY, guard = lock_accounts();
	struct client sum;

	sum_clients(&sum, false);
	if (bytes <= total && sum.used[physical] <= total - bytes) {
		client->used[physical] += bytes;
		rc = SIM_SUCCESS;
	}
	unlock_accounts(guard);
	return rc;
}

void sim_machine_refund(int physical, uint64_t bytes)
{
	int guard = lock_accounts();

	client->used[physical] -= bytes;
	unlock_accounts(guard);
}

int sim_machine_enter(int physical)
{
	int mode = sim_machine_compute_mode(physical), rc = SIM_SUCCESS, guard = lock_accounts();
	struct client others;

	sum_clients(&others, true);
	if (mode == 2 || (mode == 3 && others.contexts[physical]))
		rc = SIM_DEVICE_UNAVAILABLE;
	else
		client->contexts[physical]++;
	unlock_accounts(guard);
	if (rc)
		return rc;
	rc = sim_mps_enter();
	if (rc) {
		guard = lock_accounts();
		client->contexts[physical]--;
		unlock_accounts(guard);
	}
	return rc;
}

void sim_machine_leave(int physical)
{
	int guard = lock_accounts();

	client->contexts[physical]--;
	unlock_accounts(guard);
	sim_mps_leave();
	touch_devices();
}

void sim_machine_kernel(double ms)
{
	while (ms > 0) {
		double slice = ms < SLICE_MS ? ms : SLICE_MS;
		uint64_t start_us;
		int kernel;

		/* What each slice stands for, to whoever has redirected it. */
		ioctl(-1, 0, NULL);
		kernel = lock("kernel");
		sim_time_wait(slice);
		unlock(kernel);
		/* Lets the others have their turn: the kernel is fair, flock alone is not. This is
		 * time that the driver spends outside the kernel, so it counts. */
		start_us = sim_time_now_us();
		usleep(BETWEEN_SLICES_US);
		ms -= slice + (double)(sim_time_now_us() - start_us) / 1000;
	}
}

int sim_machine_compute_mode(int physical)
{
	const char *text = sim_setting(SIM_SET_COMPUTE_MODE);

	for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL) {
		const char *mode = text;

		if (*text >= '0' && *text <= '9') {
			char *end;

			if (strtol(text, &end, 10) != physical || *end != ':')
				continue;
			mode = end + 1;
		}
		if (!strncmp(mode, "exclusive", strlen("exclusive")))
			return 3;
		if (!strncmp(mode, "prohibited", strlen("prohibited")))
			return 2;
		return 0;
	}
	return 0;
}
