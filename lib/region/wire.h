/* Messages between hearthd and its peers: one SOCK_SEQPACKET packet each, fixed-width, checked by
 * wire_check before anything else looks at them. Both sides treat the other as hostile: a packet of
 * another size, magic or version ends the connection (-EPROTO), never more.
 *
 *   program:  HELLO -> WELCOME (+ region, page) | REFUSED           then both close
 *   tools:    STATUS -> TEXT (+ memfd with JSON)
 *             RELEASE, RESUME, STOP -> DONE | REFUSED
 *   program:  DRIVER -> FILE (+ sealed memfd with the driver's file) | REFUSED
 *
 * Descriptors travel by SCM_RIGHTS, with CLOEXEC on arrival. A client leaves no descriptor open:
 * the broker knows it by the pidfd it took while the client waited for WELCOME. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC 0x57545248u /* "HRTW" */
#define WIRE_VERSION 1u
#define WIRE_TASK_SIZE 64

enum wire_type {
	WIRE_HELLO = 1,
	WIRE_WELCOME,
	WIRE_REFUSED,
	WIRE_STATUS,
	WIRE_TEXT,
	WIRE_RELEASE,
	WIRE_RESUME,
	WIRE_STOP,
	WIRE_DONE,
	WIRE_DRIVER,
	WIRE_FILE,
	WIRE_TYPES
};

/* One packet. Unused fields are 0. */
struct wire_message {
	uint32_t magic;
	uint32_t version;
	uint32_t type;              /* enum wire_type */
	int32_t code;               /* REFUSED: a positive errno; RELEASE: 1 = until resumed */
	uint64_t size;              /* WELCOME: bytes of the region; TEXT, FILE: bytes in the memfd;
				     * RELEASE: seconds until the keeper comes back, 0 = 60 */
	uint64_t start_realtime_us; /* HELLO: when the program began */
	char program[32];           /* HELLO: base name, NUL-terminated */
	char task[WIRE_TASK_SIZE];  /* HELLO: HEARTH_TASK, NUL-terminated */
	uint8_t build_id[32];       /* DRIVER: the driver's build-id, zero-padded */
	uint32_t slot;              /* WELCOME: the client's number */
	uint32_t reserved[5];
};
static_assert(sizeof(struct wire_message) == 184, "wire layout v1");

#define WIRE_MAX_DESCRIPTORS 2

/* An empty message of that type. */
void wire_init(struct wire_message *ret_message, enum wire_type type);

/* 0 where the header, the type, the texts and the reserved fields are as they must be; -EPROTO. */
int wire_check(const struct wire_message *message);

/* Sends without waiting: 0 or -errno. */
int wire_send(int fd, const struct wire_message *message, const int *fds, size_t fd_count);

/* Takes one message that is already there and checks it. 0 with the descriptors it brought (the
 * caller's to close), -EPROTO, -ECONNRESET, -EAGAIN. */
int wire_receive(int fd, struct wire_message *ret_message, int ret_fds[WIRE_MAX_DESCRIPTORS],
	size_t *ret_fd_count);

/* Fills a text field: cut to the whole UTF-8 characters that fit, zero-padded. `text` may be NULL.
 */
void wire_copy_text(char *ret_text, size_t size, const char *text);
