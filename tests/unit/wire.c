/* The wire: messages arrive as sent, and everything else ends the connection and no more. */
#include "region/wire.h"
#include "base/socket.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2];

static void make_pair(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

TestSuite(wire, .init = make_pair);

static int receive(
	struct wire_message *ret_message, int fds[WIRE_MAX_DESCRIPTORS], size_t *ret_count)
{
	return wire_receive(ends[1], ret_message, fds, ret_count);
}

Test(wire, a_message_arrives_with_its_descriptors)
{
	struct wire_message sent, got;
	int fds[WIRE_MAX_DESCRIPTORS], passed[2] = {STDIN_FILENO, STDERR_FILENO};
	size_t count;

	wire_init(&sent, WIRE_HELLO);
	wire_copy_text(sent.program, sizeof(sent.program), "train.py");
	cr_assert_eq(wire_send(ends[0], &sent, passed, 2), 0);
	cr_assert_eq(receive(&got, fds, &count), 0);
	cr_assert_eq(memcmp(&sent, &got, sizeof(got)), 0);
	cr_assert_eq(count, 2);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
}

Test(wire, nothing_there_is_no_wait)
{
	struct wire_message got;
	int fds[WIRE_MAX_DESCRIPTORS];
	size_t count;

	cr_assert_eq(receive(&got, fds, &count), -EAGAIN);
	close(ends[0]);
	cr_assert_eq(receive(&got, fds, &count), -ECONNRESET);
}

Test(wire, every_other_size_is_refused)
{
	struct wire_message sent, got;
	char packet[2 * sizeof(sent)] = {0};
	int fds[WIRE_MAX_DESCRIPTORS];
	size_t count;

	wire_init(&sent, WIRE_HELLO);
	memcpy(packet, &sent, sizeof(sent));
	for (size_t size = 0; size <= sizeof(packet); size++) {
		if (size == sizeof(sent))
			continue;
		cr_assert_eq(send(ends[0], packet, size, 0), (ssize_t)size);
		cr_assert_eq(receive(&got, fds, &count), size ? -EPROTO : -ECONNRESET, "%zu", size);
	}
}

Test(wire, too_many_descriptors_are_closed_and_refused)
{
	struct wire_message sent, got;
	int fds[WIRE_MAX_DESCRIPTORS], passed[4] = {0, 0, 0, 0}, before = count_descriptors();
	size_t count;

	wire_init(&sent, WIRE_HELLO);
	cr_assert_eq(wire_send(ends[0], &sent, passed, 4), 0);
	cr_assert_eq(receive(&got, fds, &count), -EPROTO);
	cr_assert_eq(count_descriptors(), before);
}

Test(wire, descriptors_of_a_wrong_message_are_closed)
{
	struct wire_message sent, got;
	int fds[WIRE_MAX_DESCRIPTORS], passed[2] = {0, 0}, before = count_descriptors();
	size_t count;

	wire_init(&sent, WIRE_HELLO);
	sent.version++;
	cr_assert_eq(wire_send(ends[0], &sent, passed, 2), 0);
	cr_assert_eq(receive(&got, fds, &count), -EPROTO);
	cr_assert_eq(count_descriptors(), before);
}

Test(wire, every_field_is_checked)
{
	struct wire_message good, bad;

	wire_init(&good, WIRE_WELCOME);
	cr_assert_eq(wire_check(&good), 0);
	bad = good, bad.magic++;
	cr_assert_eq(wire_check(&bad), -EPROTO);
	bad = good, bad.version = 0;
	cr_assert_eq(wire_check(&bad), -EPROTO);
	bad = good, bad.type = 0;
	cr_assert_eq(wire_check(&bad), -EPROTO);
	bad = good, bad.type = WIRE_TYPES;
	cr_assert_eq(wire_check(&bad), -EPROTO);
	bad = good, memset(bad.program, 'x', sizeof(bad.program));
	cr_assert_eq(wire_check(&bad), -EPROTO);
	bad = good, memset(bad.task, 'x', sizeof(bad.task));
	cr_assert_eq(wire_check(&bad), -EPROTO);
	bad = good, bad.reserved[4] = 1;
	cr_assert_eq(wire_check(&bad), -EPROTO);
}

Test(wire, random_packets_are_refused)
{
	struct wire_message message;

	srand(2);
	for (int round = 0; round < 10000; round++) {
		for (size_t i = 0; i < sizeof(message); i++)
			((unsigned char *)&message)[i] = (unsigned char)rand();
		cr_assert_eq(wire_check(&message), -EPROTO);
	}
}

Test(wire, a_peer_that_does_not_read_is_no_wait)
{
	struct wire_message message;
	int rc = 0;

	wire_init(&message, WIRE_STATUS);
	for (int i = 0; i < 100000 && !rc; i++)
		rc = wire_send(ends[0], &message, NULL, 0);
	cr_assert_eq(rc, -EAGAIN);
}

Test(wire, a_peer_that_is_gone_raises_no_signal)
{
	struct wire_message message;

	wire_init(&message, WIRE_STATUS);
	close(ends[1]);
	cr_assert_eq(wire_send(ends[0], &message, NULL, 0), -EPIPE);
}

Test(wire, texts_are_cut_between_characters)
{
	char field[8];

	wire_copy_text(field, sizeof(field), "sixteen");
	cr_assert_str_eq(field, "sixteen");
	wire_copy_text(field, sizeof(field), "seventeen");
	cr_assert_str_eq(field, "sevente");
	wire_copy_text(field, sizeof(field), "abcdef\xc3\xa9");
	cr_assert_str_eq(field, "abcdef");
	wire_copy_text(field, sizeof(field), "abc\xf0\x9f\x94\xa5z");
	cr_assert_str_eq(field, "abc\xf0\x9f\x94\xa5");
	wire_copy_text(field, sizeof(field), "abcde\xf0\x9f\x94\xa5");
	cr_assert_str_eq(field, "abcde");
	wire_copy_text(field, sizeof(field), "\x80\x80\x80\x80\x80\x80\x80\x80\x80");
	cr_assert_eq(strlen(field), sizeof(field) - 1);
}
