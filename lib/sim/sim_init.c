/* cuInit, the driver's own threads, and the end of the process.
 *
 * As the real driver does it: reads the environment, calls dlopen(NULL) eight times and
 * dlopen("libcuda.so.1") once (both take the loader's lock), binds the abstract socket
 * @cuda-uvmfd-<pid namespace>-<pid>, whose being taken by another live copy means 304, and starts a
 * thread that listens there. Once initialised, it stays so; a failed cuInit can be tried again. */
#include "sim/sim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define DLOPENS_OF_NULL 8
#define STATE_BYTES 4096

static int listener = -1, wake = -1, pipes[2][2] = {{-1, -1}, {-1, -1}};
static pthread_t thread;
static void *self, *program; /* handles of this copy, never closed, and of the main program */
static int at_exit_is_set;
static int (*make_pipe)(int[2], int); /* found at run time, as the real driver finds it */
static char *state_page; /* stands for what a real driver keeps and takes apart at its end */

/* Names the loader's lock in a way that redirected dlopen, dlsym and dlclose slots do not see. */
static void touch_loader_lock(const char *call)
{
	const char *where = sim_setting(SIM_SET_LOADER_LOCK);
	Dl_info info;

	if (where && (!strcmp(where, call) || !strcmp(where, "both")))
		dladdr((const void *)&sim, &info);
}

void sim_init_touch_retain(void)
{
	touch_loader_lock("retain");
}

/* A call that is in flight when the process's end has taken the state apart faults. */
void sim_init_touch_state(void)
{
	char *page = __atomic_load_n(&state_page, __ATOMIC_ACQUIRE);

	if (page && atomic_load(&sim.pid) == getpid())
		__atomic_add_fetch(page, 1, __ATOMIC_RELAXED);
}

static void map_state(void)
{
	void *page =
		mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!state_page && page != MAP_FAILED)
		__atomic_store_n(&state_page, page, __ATOMIC_RELEASE);
}

/* Inaccessible, and not free for others to map. */
static void take_state_apart(void)
{
	if (state_page)
		mprotect(state_page, STATE_BYTES, PROT_NONE);
}

/* As the destructors of static objects: registered when the library is loaded. */
__attribute__((constructor)) static void load(void)
{
	atexit(take_state_apart);
}

int sim_init_pipe(int ends[2])
{
	return make_pipe ? make_pipe(ends, O_CLOEXEC) : -1;
}

/* By number, as the real driver does it. */
int sim_init_event(void)
{
	return (int)syscall(SYS_eventfd2, 0, EFD_CLOEXEC);
}

/* A real driver looks at files and folders of the system by way of streams. */
static void look_around(void)
{
	DIR *folder = opendir("/proc/self/task");
	FILE *file = fopen("/proc/self/status", "r");

	while (folder && readdir(folder))
		;
	if (folder)
		closedir(folder);
	if (file)
		fclose(file);
}

static int bind_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status = {0};
	socklen_t size;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	stat("/proc/self/ns/pid", &status);
	size = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
	       (socklen_t)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
		       "cuda-uvmfd-%lu-%d", (unsigned long)status.st_ino, (int)getpid());
	if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Whoever took this copy's place has put another file there. */
static bool is_retired(void)
{
	int is_listening = 0;
	socklen_t size = sizeof(is_listening);

	return getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) ||
	       !is_listening;
}

int sim_init_listen(void)
{
	int rc = SIM_SUCCESS;

	pthread_mutex_lock(&sim.init_lock);
	if (listener >= 0)
		rc = is_retired() ? SIM_DEINITIALIZED : SIM_SUCCESS;
	else if ((listener = bind_socket()) < 0)
		rc = SIM_OPERATING_SYSTEM;
	pthread_mutex_unlock(&sim.init_lock);
	return rc;
}

/* The driver's thread. Whoever connects is let go again; a socket that was shut down, or whose
 * number now is another file, makes it idle, not spin. */
static void *listen_for_peers(void *unused)
{
	struct pollfd fds[2] = {{.fd = listener, .events = POLLIN}, {.fd = wake, .events = POLLIN}};
	const struct timespec pause = {.tv_nsec = 50000000};

	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		if (fds[1].revents)
			break;
		if (fds[0].revents) {
			int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

			if (peer >= 0)
				close(peer);
			else
				nanosleep(&pause, NULL);
		}
	}
	return NULL;
}

int sim_init_thread(pthread_t *ret_thread, void *(*run)(void *), void *argument)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	rc = pthread_create(ret_thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* At the end of the process, or when the library is unloaded. The time that the kernel would take
 * to tear a context down is spent here. */
static void leave(void)
{
	uint64_t one = 1;

	if (atomic_load(&sim.pid) != getpid() || atomic_load(&sim.state) != SIM_READY)
		return;
	atomic_store(&sim.state, SIM_GONE);
	if (write(wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(thread, NULL);
	take_state_apart();
	if (sim_machine_has_context())
		sim_time_wait(sim_time(SIM_STEP_exit));
	sim_machine_close();
	sim_mps_close();
	/* Not of `self`: that could unload the code that runs here. */
	for (int i = 0; i < DLOPENS_OF_NULL; i++)
		dlclose(program);
}

/* A forked child is told apart by its pid, in sim_entry.c; nothing is left to do here. The import
 * of __register_atfork is what the real driver has. */
static void in_child(void)
{
}

static int undo(int rc)
{
	if (listener >= 0)
		close(listener);
	if (wake >= 0)
		close(wake);
	listener = wake = -1;
	for (int i = 0; i < 4; i++) {
		if (pipes[i / 2][i % 2] >= 0)
			close(pipes[i / 2][i % 2]);
		pipes[i / 2][i % 2] = -1;
	}
	sim_machine_close();
	sim_mps_close();
	atomic_store(&sim.pid, 0);
	return rc;
}

static int initialize(void)
{
	int present = (int)sim_setting_number(SIM_SET_DEVICES, 1), rc;

	if (present > SIM_MAX_DEVICES)
		present = SIM_MAX_DEVICES;
	atomic_store(&sim.pid, getpid());
	map_state();
	sim_env_read_init();
	for (int i = 0; i < DLOPENS_OF_NULL; i++)
		program = dlopen(NULL, RTLD_LAZY);
	*(void **)&make_pipe = dlvsym(program, "pipe2", "GLIBC_2.9");
	touch_loader_lock("init");
	look_around();
	if (!self)
		self = dlopen("libcuda.so.1", RTLD_NOW);
	rc = sim_mps_connect();
	if (rc)
		return undo(rc);
	rc = sim_env_visible(present, &sim.device_count, sim.physical);
	if (rc) {
		sim_time_wait(sim_time(SIM_STEP_init));
		return undo(rc);
	}
	if (listener < 0)
		listener = bind_socket();
	wake = sim_init_event();
	if (listener < 0 || wake < 0 || sim_init_pipe(pipes[0]) || sim_init_pipe(pipes[1]))
		return undo(SIM_OPERATING_SYSTEM);
	rc = sim_machine_open();
	if (rc)
		return undo(rc);
	sim_machine_register(sim.physical, sim.device_count, present);
	if (sim_init_thread(&thread, listen_for_peers, NULL))
		return undo(SIM_OPERATING_SYSTEM);
	if (!at_exit_is_set) {
		pthread_atfork(NULL, NULL, in_child);
		atexit(leave);
		at_exit_is_set = true;
	}
	for (int i = 0; i < sim.device_count; i++) {
		sim.primary[i].device = i;
		sim.primary[i].is_primary = true;
		sim_object_add(&sim.primary[i].object, SIM_CONTEXT, NULL, NULL);
		pthread_mutex_init(&sim.context_lock[i], NULL);
	}
	sim_init_touch_state();
	atomic_store(&sim.state, SIM_READY);
	return SIM_SUCCESS;
}

int sim_init(const word *arg)
{
	pid_t owner = atomic_load(&sim.pid);
	int rc = SIM_SUCCESS;

	if (owner && owner != getpid())
		return SIM_NOT_INITIALIZED;
	if ((unsigned int)arg[0])
		return SIM_INVALID_VALUE;
	if (atomic_load(&sim.state) == SIM_READY)
		return SIM_SUCCESS;
	if (atomic_load(&sim.state) == SIM_GONE)
		return SIM_DEINITIALIZED;
	pthread_mutex_lock(&sim.init_lock);
	if (atomic_load(&sim.state) == SIM_UNINITIALIZED)
		rc = initialize();
	pthread_mutex_unlock(&sim.init_lock);
	return rc;
}
