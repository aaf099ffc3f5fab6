/* A client of MPS, of the stand-in for its daemon (tests/system/mps_standin.py), over a protocol of
 * their own; never of a real one. What comes of it is what came of real clients on an H200, driver
 * 580.159.04: where the socket is not there, out of reach or stale, the program goes on without
 * MPS; while a server of another user has clients, cuInit waits; a daemon that may not serve this
 * user is 805; a context that would be one client too many is 808; once the server has gone, work
 * is answered with 806, and once it has terminated the client, with 810. Runs on the program's
 * threads. */
#include "sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PACKET 64

static int server = -1; /* the connection */
static _Atomic int ended;

static int connect_to(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", folder), fd;

	if (length < 0 || (size_t)length >= sizeof(address.sun_path))
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int sim_mps_connect(void)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char packet[PACKET + 1] = "";
	ssize_t got = -1;

	server = folder ? connect_to(folder) : -1;
	if (server < 0)
		return SIM_SUCCESS;
	ended = 0;
	if (send(server, "client", 6, MSG_NOSIGNAL) == 6)
		do
			got = recv(server, packet, PACKET, 0);
		while (got < 0 && errno == EINTR);
	if (got > 0 && !strcmp(packet, "attached"))
		return SIM_SUCCESS;
	sim_mps_close();
	return SIM_MPS_CONNECTION_FAILED;
}

void sim_mps_close(void)
{
	if (server >= 0)
		close(server);
	server = -1;
}

bool sim_mps_is_client(void)
{
	return server >= 0;
}

int sim_mps_enter(void)
{
	char packet[PACKET + 1] = "";
	ssize_t got = -1;

	if (server < 0 || ended)
		return ended;
	if (send(server, "context", 7, MSG_NOSIGNAL) == 7)
		do
			got = recv(server, packet, PACKET, 0);
		while (got < 0 && errno == EINTR);
	if (got <= 0)
		ended = SIM_MPS_RPC_FAILURE;
	else if (!strcmp(packet, "terminated"))
		ended = SIM_MPS_CLIENT_TERMINATED;
	else if (strcmp(packet, "made") != 0)
		return atoi(packet); /* the server takes no more */
	return ended;
}

void sim_mps_leave(void)
{
	if (server >= 0 && send(server, "no context", 10, MSG_NOSIGNAL) < 0)
		ended = SIM_MPS_RPC_FAILURE;
}

int sim_mps_code(void)
{
	char packet[PACKET];
	ssize_t got;

	if (server < 0 || ended)
		return server < 0 ? SIM_SUCCESS : ended;
	got = recv(server, packet, sizeof(packet), MSG_DONTWAIT);
	if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
		ended = SIM_MPS_RPC_FAILURE;
	else if (got > 0)
		ended = SIM_MPS_CLIENT_TERMINATED;
	return ended;
}
