/* Ending spares. Runs in the tools. */
#include "spare/end.h"

#include "spare/folder.h"
#include "spare/packet.h"

#include <errno.h>

#define REPLY_LIMIT_US 500000

/* Until the connection ends, and with it the holder's python. */
static int end_one(int fd, const char *path, void *data)
{
	struct spare_message message;
	unsigned *count = data;

	if (!packet_tell(fd, SPARE_STOP, 0) &&
		packet_receive(fd, REPLY_LIMIT_US, &message, NULL, 0, NULL) == -ECONNRESET)
		++*count;
	return 0;
}

int end_all(unsigned *ret_count)
{
	unsigned count = 0, before;
	int rc;

	/* One may have been handed over just now, and the next begun. */
	do {
		before = count;
		rc = folder_each(NULL, end_one, &count);
	} while (!rc && count > before);
	*ret_count = count;
	return rc;
}
