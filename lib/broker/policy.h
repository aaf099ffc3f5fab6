/* When the broker leaves: so long after its last client, with its batch job, when the last GPU
 * goes, or when its socket is gone. The machine's broker stays. */
#pragma once

#include <stdint.h>

struct broker;

/* The moment at which it would leave for want of clients, if none comes; 0 = it would not. */
uint64_t policy_leave_at(const struct broker *broker);

/* What decides, in words for `hearth status`. */
const char *policy_leave_rule(const struct broker *broker);

/* Leaves where no client has come for so long. */
void policy_tick(struct broker *broker, uint64_t now_us);

/* Leaves where the socket or the last GPU is gone, which nothing reports. */
void policy_check(struct broker *broker);

/* Watches the job's process. 0; or -errno, -ESRCH where the job has ended already. */
int policy_watch_job(struct broker *broker);
