/* Wire messages. Runs in every process of Hearth, also in the user's program: waits for nothing. */
#include "region/wire.h"

#include "base/socket.h"

#include <errno.h>
#include <string.h>

void wire_init(struct wire_message *ret_message, enum wire_type type)
{
	*ret_message = (struct wire_message){
		.magic = WIRE_MAGIC, .version = WIRE_VERSION, .type = (uint32_t)type};
}

static bool is_terminated(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

int wire_check(const struct wire_message *message)
{
	if (message->magic != WIRE_MAGIC || message->version != WIRE_VERSION)
		return -EPROTO;
	if (!message->type || message->type >= WIRE_TYPES)
		return -EPROTO;
	if (!is_terminated(message->program, sizeof(message->program)) ||
		!is_terminated(message->task, sizeof(message->task)))
		return -EPROTO;
	for (size_t i = 0; i < sizeof(message->reserved) / sizeof(message->reserved[0]); i++)
		if (message->reserved[i])
			return -EPROTO;
	return 0;
}

int wire_send(int fd, const struct wire_message *message, const int *fds, size_t fd_count)
{
	return socket_send(fd, message, sizeof(*message), fds, fd_count);
}

int wire_receive(int fd, struct wire_message *ret_message, int ret_fds[WIRE_MAX_DESCRIPTORS],
	size_t *ret_fd_count)
{
	struct wire_message message;
	int rc;

	rc = socket_receive(
		fd, &message, sizeof(message), ret_fds, WIRE_MAX_DESCRIPTORS, ret_fd_count);
	if (rc)
		return rc;
	rc = wire_check(&message);
	if (rc) {
		socket_close_all(ret_fds, *ret_fd_count);
		return rc;
	}
	*ret_message = message;
	return 0;
}

/* How much of a longer text fits into size - 1 bytes without half a UTF-8 character at its end. */
static size_t cut_length(const char *text, size_t size)
{
	size_t length = size - 1;

	for (size_t back = 0; back < 4 && back < length; back++)
		if (((unsigned char)text[length - back] & 0xc0) != 0x80)
			return length - back;
	return length;
}

void wire_copy_text(char *ret_text, size_t size, const char *text)
{
	size_t length = text ? strnlen(text, size) : 0;

	if (length == size)
		length = cut_length(text, size);
	memset(ret_text, 0, size);
	if (length)
		memcpy(ret_text, text, length);
}
