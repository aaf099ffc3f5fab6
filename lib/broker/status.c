/* The status text, made on hearthd's main thread in memory of a bounded size. */
#include "broker/status.h"

#include "base/clock.h"
#include "base/json_out.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/machine.h"
#include "broker/policy.h"
#include "region/record.h"
#include "region/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_BYTES 32768  /* everything but the clients, 64 devices included */
#define CLIENT_BYTES 1024 /* one client with every byte of its texts escaped */
#define SECOND_US 1000000

/* What a keeper holds on each GPU, as measured on one H200 with driver 580 (bench/results): the
 * driver has no call that tells a process what it costs itself. */
#define INIT_BYTES (UINT64_C(4) << 20)
#define CONTEXT_BYTES (UINT64_C(528) << 20)

/* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
static void format_uuid(const uint8_t uuid[16], char ret_text[48])
{
	char *at = ret_text + sprintf(ret_text, "GPU");

	for (int i = 0; i < 16; i++) {
		if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		at += sprintf(at, "%02x", uuid[i]);
	}
}

static const char *mode_name(uint32_t mode)
{
	static const char *const names[] = {
		"default", "exclusive", "prohibited", "exclusive_process"};

	return mode < 4 ? names[mode] : "unknown";
}

static void write_time(struct json_out *out, const char *key, uint64_t realtime_us)
{
	char text[CLOCK_TEXT_SIZE];

	clock_format(realtime_us, text);
	json_out_string(out, key, text);
}

static void write_devices(struct json_out *out, const struct broker *broker)
{
	const struct hearth_region *region = broker->region;
	bool is_warm = broker->keeper.state == HEARTH_KEEPER_WARM;

	json_out_array_begin(out, "devices");
	for (uint32_t i = 0; i < region->device_count; i++) {
		const struct hearth_device *device = &region->devices[i];
		bool has_context = is_warm && device->has_context;
		char uuid[48];

		format_uuid(device->uuid, uuid);
		json_out_object_begin(out, NULL);
		json_out_u64(out, "ordinal", i);
		json_out_string(out, "name", device->name);
		json_out_string(out, "uuid", uuid);
		json_out_string(out, "pci", device->pci);
		json_out_u64(out, "memory_bytes", device->memory);
		json_out_string(out, "compute_mode", mode_name(device->compute_mode));
		json_out_bool(out, "keeper_has_context", has_context);
		json_out_u64(out, "keeper_bytes_estimate",
			has_context ? CONTEXT_BYTES
			: is_warm   ? INIT_BYTES
				    : 0);
		json_out_object_end(out);
	}
	json_out_array_end(out);
}

static void write_keeper(struct json_out *out, const struct broker *broker, uint64_t now_us)
{
	const struct keeper *keeper = &broker->keeper;
	const struct hearth_region *region = broker->region;

	json_out_object_begin(out, "keeper");
	json_out_string(out, "state", keeper_state_name(keeper->state));
	if (keeper->reason)
		json_out_string(out, "reason", keeper->reason);
	else
		json_out_null(out, "reason");
	json_out_string(out, "retain",
		keeper->options.retain == HEARTH_RETAIN_CONTEXT ? "context" : "init");
	json_out_i64(out, "pid", keeper->pid);
	json_out_u64(out, "rss_bytes", keeper->pid ? machine_resident_bytes(keeper->pid) : 0);
	json_out_i64(out, "rc", region->keeper_rc);
	json_out_u64(out, "init_us", region->keeper_init_us);
	json_out_u64(out, "since_s", (now_us - region->keeper_since_us) / SECOND_US);
	if (keeper->next_us)
		json_out_u64(out, "starts_in_s",
			keeper->next_us > now_us ? (keeper->next_us - now_us) / SECOND_US : 0);
	else
		json_out_null(out, "starts_in_s");
	if (keeper->driver_path[0])
		json_out_string(out, "driver", keeper->driver_path);
	else
		json_out_null(out, "driver");
	json_out_u64(out, "driver_version", region->driver_version);
	json_out_object_end(out);
}

static void write_client(struct json_out *out, const struct client *client)
{
	struct record_totals totals = {0};

	page_read_totals(client->page_fd, &totals);
	json_out_object_begin(out, NULL);
	json_out_u64(out, "slot", client->slot);
	json_out_i64(out, "pid", client->peer.pid);
	json_out_u64(out, "uid", client->peer.uid);
	json_out_string(out, "program", client->program);
	json_out_string(out, "task", client->task);
	write_time(out, "start", client->start_realtime_us);
	json_out_bool(out, "uses_cuda", totals.flags & HEARTH_PAGE_USES_CUDA);
	json_out_bool(out, "mps", totals.flags & HEARTH_PAGE_MPS);
	json_out_u64(out, "records", totals.record_count);
	json_out_u64(out, "visible_us", totals.visible_us);
	json_out_u64(out, "hidden_us", totals.hidden_us);
	json_out_object_end(out);
}

static void write_all(struct json_out *out, const struct broker *broker, uid_t uid)
{
	uint64_t now_us = clock_monotonic_us(), leave_us = policy_leave_at(broker);
	bool sees_all = uid == 0 || (uid == geteuid() && !broker->options.is_system);

	json_out_object_begin(out, NULL);
	json_out_u64(out, "v", 1);
	json_out_string(out, "version", HEARTH_VERSION);
	json_out_i64(out, "pid", getpid());
	json_out_u64(out, "uid", geteuid());
	json_out_bool(out, "system", broker->options.is_system);
	json_out_string(out, "socket", broker->instance.address.path);
	json_out_u64(out, "rss_bytes", machine_resident_bytes(getpid()));
	json_out_u64(out, "runs_unwritten", history_pending(broker->history));
	json_out_u64(out, "up_s", (now_us - broker->region->started_us) / SECOND_US);
	if (leave_us)
		json_out_u64(out, "leaves_in_s",
			leave_us > now_us ? (leave_us - now_us) / SECOND_US : 0);
	else
		json_out_null(out, "leaves_in_s");
	json_out_string(out, "leaves", policy_leave_rule(broker));
	if (broker->options.job)
		json_out_i64(out, "job_pid", broker->options.job);
	else
		json_out_null(out, "job_pid");
	write_keeper(out, broker, now_us);
	json_out_string(out, "proof", prover_state_name(&broker->prover));
	write_devices(out, broker);
	json_out_u64(out, "client_count", broker->region->client_count);
	json_out_array_begin(out, "clients");
	for (const struct client *client = broker->clients; client; client = client->next)
		if (sees_all || client->peer.uid == uid)
			write_client(out, client);
	json_out_array_end(out);
	json_out_object_end(out);
	json_out_newline(out);
}

int status_make(const struct broker *broker, uid_t uid, int *ret_fd, uint64_t *ret_size)
{
	size_t capacity = HEAD_BYTES + (size_t)broker->region->client_count * CLIENT_BYTES;
	char *text = malloc(capacity);
	struct json_out out;
	size_t length;
	int rc;

	if (!text)
		return -ENOMEM;
	json_out_begin(&out, text, capacity);
	write_all(&out, broker, uid);
	rc = json_out_end(&out, &length);
	if (!rc)
		rc = segment_from_bytes("hearth-status", text, length, ret_fd);
	if (!rc)
		*ret_size = length;
	free(text);
	return rc;
}
