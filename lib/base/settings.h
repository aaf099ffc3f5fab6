/* Hearth's own settings, parsed. A value that cannot be read counts as its default, so that the
 * user's program always runs; settings_read says which one it was. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_NONE, LOG_ERROR, LOG_INFO, LOG_DEBUG };

enum speculate_mode { SPECULATE_AUTO, SPECULATE_ALWAYS, SPECULATE_OFF };
enum context_mode { CONTEXT_ADOPT, CONTEXT_PRIMARY, CONTEXT_NATIVE };

enum prefetch_mode { PREFETCH_AUTO, PREFETCH_OFF };

#define GIVE_BACK_MAX_S 86400
#define PREFETCH_DEFAULT_MIB 256
#define PREFETCH_MAX_MIB (1 << 20)

#define SPARE_MIB_MAX (1 << 24)
#define SPARE_IDLE_MAX_S (7 * 86400)

struct settings {
	bool is_on;                    /* HEARTH */
	enum log_level log_level;      /* HEARTH_LOG_LEVEL */
	const char *driver;            /* HEARTH_DRIVER, or NULL */
	const char *socket;            /* HEARTH_SOCKET, or NULL */
	const char *state_dir;         /* HEARTH_STATE_DIR, or NULL */
	const char *log;               /* HEARTH_LOG, or NULL */
	const char *task;              /* HEARTH_TASK, or NULL */
	enum speculate_mode speculate; /* HEARTH_SPECULATE */
	int speculate_pid;           /* SPECULATE_ALWAYS holds for this process alone; 0: for all */
	bool is_spare;               /* that process is a python that waits for a program */
	enum context_mode contexts;  /* HEARTH_CTX */
	uint64_t give_back_us;       /* HEARTH_GIVE_BACK; 0: as learned */
	enum prefetch_mode prefetch; /* HEARTH_PREFETCH */
	uint64_t prefetch_bytes;     /* HEARTH_PREFETCH_MIB */
	bool are_spares_kept;        /* HEARTH_SPARE=auto */
	unsigned spare_host_mib;     /* HEARTH_SPARE_MIB */
	unsigned spare_gpu_mib;      /* HEARTH_SPARE_GPU_MIB */
	unsigned spare_idle_s;       /* HEARTH_SPARE_IDLE */
};

/* What settings_read gives where nothing is set. */
#define SETTINGS_DEFAULT                                                                           \
	(struct settings)                                                                          \
	{                                                                                          \
		.is_on = true, .prefetch_bytes = (uint64_t)PREFETCH_DEFAULT_MIB << 20,             \
		.spare_host_mib = 4096, .spare_gpu_mib = 2048, .spare_idle_s = 900                 \
	}

/* Reads all settings. Strings point into the environment. Returns NULL, or the name of the first
 * variable whose value was not understood. */
const char *settings_read(struct settings *ret_settings);
