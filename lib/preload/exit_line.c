/* The program's end. Runs in our destructor, on the thread that called exit; must not touch the
 * driver and must leave everything standing. */
#include "preload/exit_line.h"

#include "preload/first_call.h"
#include "preload/log_line.h"

#include <errno.h>

void exit_line_write(void)
{
	struct hearth_page *page = first_call_page();
	int kept = errno;

	if (!page)
		return;
	log_line_exit(page);
	__atomic_fetch_or(&page->flags, HEARTH_PAGE_EXITED, __ATOMIC_RELEASE);
	errno = kept;
}
