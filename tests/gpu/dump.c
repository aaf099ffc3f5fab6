/* A stack dump without a debugger, for a process that hangs with the loader's lock held: runs on
 * a watchdog thread; must never call into the loader, allocate, or use stdio's locks. */
#include "dump.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	RANGES_MAX = 2048,
	MAPS_BYTES = 512 * 1024,
	STACK_WORDS = 1500,
	FRAMES_MAX = 24,
};

struct range {
	uintptr_t start, end, file_offset;
	int is_code;
	char path[200];
};

static struct range *ranges;
static char *maps_text;
static int range_count;
static int dump_fd = STDOUT_FILENO;
static volatile uintptr_t stopped_sp, stopped_pc;

static void stopped(int signal_number, siginfo_t *info, void *context)
{
	ucontext_t *user = context;

	(void)signal_number;
	(void)info;
	stopped_pc = (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
	stopped_sp = (uintptr_t)user->uc_mcontext.gregs[REG_RSP];
}

void dump_prepare(void)
{
	size_t bytes = sizeof(struct range[RANGES_MAX]) + MAPS_BYTES;
	struct sigaction action = {.sa_sigaction = stopped, .sa_flags = SA_SIGINFO | SA_RESTART};
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	ranges = (struct range *)memory;
	maps_text = memory + sizeof(struct range[RANGES_MAX]);
	sigaction(SIGUSR2, &action, NULL);
}

/* A file under /proc, without its last newline. Returns its length, 0 where it cannot be read. */
static size_t read_text(const char *path, char *ret_text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got;

	while (fd >= 0 && used < size - 1 && (got = read(fd, ret_text + used, size - 1 - used)) > 0)
		used += (size_t)got;
	if (fd >= 0)
		close(fd);
	while (used && ret_text[used - 1] == '\n')
		used--;
	ret_text[used] = '\0';
	return used;
}

static void read_ranges(void)
{
	char *line = maps_text;

	read_text("/proc/self/maps", maps_text, MAPS_BYTES);
	for (range_count = 0; *line && range_count < RANGES_MAX;) {
		struct range *range = &ranges[range_count];
		char flags[8] = "", *next = strchr(line, '\n');

		if (next)
			*next = '\0';
		range->path[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %199[^\n]", &range->start, &range->end,
			    flags, &range->file_offset, range->path) >= 4) {
			range->is_code = flags[0] == 'r' && flags[2] == 'x';
			range_count++;
		}
		if (!next)
			break;
		line = next + 1;
	}
}

static const struct range *range_of(uintptr_t address)
{
	for (int i = 0; i < range_count; i++) {
		if (address >= ranges[i].start && address < ranges[i].end)
			return &ranges[i];
	}
	return NULL;
}

/* Where the file of this range begins in memory: its first mapping with offset 0 before it. */
static uintptr_t base_of(const struct range *range)
{
	uintptr_t base = range->start - range->file_offset;

	for (int i = 0; i < range_count && ranges[i].start <= range->start; i++) {
		if (ranges[i].file_offset == 0 && !strcmp(ranges[i].path, range->path))
			base = ranges[i].start;
	}
	return base;
}

/* The nearest symbol at or below an address, from the file's own tables. */
static void print_symbol(const char *path, uintptr_t offset)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	const char *best_name = NULL;
	uintptr_t best = 0;
	struct stat info;
	char *file;

	if (fd < 0 || fstat(fd, &info) < 0 || info.st_size < (off_t)sizeof(*header)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	file = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return;
	header = (const Elf64_Ehdr *)file;
	sections = (const Elf64_Shdr *)(file + header->e_shoff);
	for (int i = 0; header->e_shoff && !memcmp(file, ELFMAG, SELFMAG) && i < header->e_shnum;
		i++) {
		const Elf64_Sym *symbols = (const Elf64_Sym *)(file + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_DYNSYM && sections[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++) {
			if (symbols[k].st_shndx == SHN_UNDEF || symbols[k].st_value > offset ||
				symbols[k].st_value <= best)
				continue;
			best = symbols[k].st_value;
			best_name =
				file + sections[sections[i].sh_link].sh_offset + symbols[k].st_name;
		}
	}
	if (best_name)
		dprintf(dump_fd, " (%s+0x%lx)", best_name, offset - best);
	munmap(file, (size_t)info.st_size);
}

static void print_address(const char *label, uintptr_t address)
{
	const struct range *range = range_of(address);

	dprintf(dump_fd, "    %s 0x%lx", label, address);
	if (range && range->path[0] == '/') {
		uintptr_t base = base_of(range);
		const char *name = strrchr(range->path, '/') + 1;

		dprintf(dump_fd, " %s+0x%lx", name, address - base);
		print_symbol(range->path, address - base);
	} else if (range) {
		dprintf(dump_fd, " %s", range->path[0] ? range->path : "anonymous memory");
	}
	dprintf(dump_fd, "\n");
}

/* Whether the bytes before a code address end a call instruction. */
static int is_return_address(uintptr_t address)
{
	const struct range *range = range_of(address);
	const unsigned char *p = (const unsigned char *)address;

	if (!range || !range->is_code || range->path[0] != '/' || address < range->start + 8)
		return 0;
	return p[-5] == 0xe8 || (p[-2] == 0xff && (p[-1] & 0x38) == 0x10) ||
	       (p[-3] == 0xff && (p[-2] & 0x38) == 0x10) || (p[-6] == 0xff && p[-5] == 0x15) ||
	       (p[-6] == 0xff && (p[-5] & 0x38) == 0x10) ||
	       (p[-7] == 0xff && (p[-6] & 0x38) == 0x10);
}

static void print_stack(uintptr_t sp)
{
	const struct range *stack = range_of(sp);
	int frames = 0;

	for (int i = 0; stack && i < STACK_WORDS && frames < FRAMES_MAX; i++) {
		uintptr_t at = sp + (uintptr_t)i * sizeof(uintptr_t);

		if (at + sizeof(uintptr_t) > stack->end)
			break;
		if (is_return_address(*(uintptr_t *)at)) {
			print_address("return to", *(uintptr_t *)at);
			frames++;
		}
	}
}

static void print_lock(uintptr_t address)
{
	const struct range *range = range_of(address);
	const int *word = (const int *)address;

	print_address("futex", address);
	if (range && address + 5 * sizeof(int) <= range->end)
		dprintf(dump_fd,
			"    as a pthread mutex: lock %d count %d owner %d users %d kind %d\n",
			word[0], word[1], word[2], word[3], word[4]);
}

static void dump_thread(const char *task)
{
	char path[300], comm[64], wchan[64], call[256], kernel[1500];
	unsigned long number = 0, a[6] = {0}, sp = 0, pc = 0;
	struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
	read_text(path, comm, sizeof(comm));
	snprintf(path, sizeof(path), "/proc/self/task/%s/wchan", task);
	read_text(path, wchan, sizeof(wchan));
	snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", task);
	read_text(path, call, sizeof(call));
	dprintf(dump_fd, "  thread %s %s: wchan %s, system call %s\n", task, comm, wchan, call);
	if (sscanf(call, "%lu %lx %lx %lx %lx %lx %lx %lx %lx", &number, &a[0], &a[1], &a[2], &a[3],
		    &a[4], &a[5], &sp, &pc) != 9) {
		/* No such file on this kernel, or the thread runs: ask the thread itself. */
		stopped_sp = 0;
		syscall(SYS_tgkill, getpid(), atoi(task), SIGUSR2);
		nanosleep(&pause, NULL);
		sp = stopped_sp;
		pc = stopped_pc;
		if (!sp)
			return;
	} else if (number == SYS_futex) {
		print_lock(a[0]);
	}
	snprintf(path, sizeof(path), "/proc/self/task/%s/stack", task);
	if (number != SYS_futex && read_text(path, kernel, sizeof(kernel)))
		dprintf(dump_fd, "    kernel stack:\n%s\n", kernel);
	print_address("at", pc);
	print_stack(sp);
}

void dump_threads(void)
{
	DIR *stream = opendir("/proc/self/task");
	struct dirent *entry;

	read_ranges();
	dprintf(dump_fd, "-- threads of process %d, seen by thread %ld\n", getpid(),
		syscall(SYS_gettid));
	while (stream && (entry = readdir(stream))) {
		if (entry->d_name[0] != '.' && atol(entry->d_name) != syscall(SYS_gettid))
			dump_thread(entry->d_name);
	}
	if (stream)
		closedir(stream);
	dprintf(dump_fd, "-- end\n");
}

void dump_stack(unsigned long pc, unsigned long sp)
{
	dump_fd = STDERR_FILENO;
	read_ranges();
	print_address("at", pc);
	print_stack(sp);
}
