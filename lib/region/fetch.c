/* Fetching the driver's file. Runs in the user's program where it needs a fresh copy of the driver.
 * Never waits past the caller's deadline; trusts neither the broker nor what it sends. */
#include "region/fetch.h"

#include "base/socket.h"
#include "region/join.h"
#include "region/segment.h"
#include "region/wire.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES ((uint64_t)1 << 30) /* ten times today's driver */

static int receive_file(int fd, int *ret_fd, uint64_t *ret_size)
{
	struct wire_message file;
	int fds[WIRE_MAX_DESCRIPTORS];
	size_t count;
	int rc = wire_receive(fd, &file, fds, &count);

	if (rc)
		return rc;
	if (file.type == WIRE_REFUSED)
		rc = file.code > 0 ? -file.code : -EPROTO;
	else if (file.type != WIRE_FILE || count != 1 || !file.size || file.size > MAX_BYTES)
		rc = -EPROTO;
	else
		rc = segment_check_whole(fds[0], file.size);
	if (rc) {
		socket_close_all(fds, count);
		return rc;
	}
	*ret_fd = fds[0];
	*ret_size = file.size;
	return 0;
}

int fetch_driver(const struct settings *settings, const uint8_t build_id[FETCH_BUILD_ID_SIZE],
	uint64_t deadline_us, int *ret_fd, uint64_t *ret_size)
{
	struct wire_message request;
	int fd, rc;

	wire_init(&request, WIRE_DRIVER);
	memcpy(request.build_id, build_id, sizeof(request.build_id));
	rc = join_connect(settings, deadline_us, &fd);
	if (rc)
		return rc;
	rc = wire_send(fd, &request, NULL, 0);
	if (!rc)
		rc = socket_wait(fd, deadline_us);
	if (!rc)
		rc = receive_file(fd, ret_fd, ret_size);
	close(fd);
	return rc;
}
