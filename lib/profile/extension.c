/* Typed records of a profile. Pure functions over the caller's memory, in any process. A walk never
 * reads outside the area, whatever it holds. */
#include "profile/extension.h"

#include <errno.h>
#include <string.h>

struct head {
	uint32_t type;
	uint32_t length;
};

static uint64_t padded(uint32_t length)
{
	return ((uint64_t)length + 7) & ~(uint64_t)7;
}

static struct head head_at(const uint8_t *data, uint32_t at)
{
	struct head head;

	memcpy(&head, data + at, sizeof(head));
	return head;
}

bool extension_is_walkable(const void *data, uint32_t size)
{
	const uint8_t *bytes = data;
	uint32_t at = 0;

	for (uint32_t count = 0; at < size; count++) {
		struct head head;

		if (count == EXTENSION_RECORDS_MAX || size - at < sizeof(head))
			return false;
		head = head_at(bytes, at);
		at += sizeof(head);
		if (!head.type || padded(head.length) > size - at)
			return false;
		for (uint64_t i = head.length; i < padded(head.length); i++)
			if (bytes[at + i])
				return false;
		at += (uint32_t)padded(head.length);
	}
	return true;
}

bool extension_next(
	const struct profile_extension *extension, uint32_t *cursor, struct extension_record *ret)
{
	struct head head;

	if (*cursor >= extension->size)
		return false;
	head = head_at(extension->data, *cursor);
	*ret = (struct extension_record){
		.type = head.type,
		.length = head.length,
		.payload = extension->data + *cursor + sizeof(head),
		.at = *cursor,
	};
	*cursor += (uint32_t)(sizeof(head) + padded(head.length));
	return true;
}

static uint32_t count_records(const struct profile_extension *extension)
{
	struct extension_record record;
	uint32_t cursor = 0, count = 0;

	while (extension_next(extension, &cursor, &record))
		count++;
	return count;
}

int extension_reserve(
	struct profile_extension *extension, uint32_t type, uint32_t length, void **ret_payload)
{
	struct head head = {type, length};
	uint64_t size = sizeof(head) + padded(length);
	uint8_t *at = extension->data + extension->size;

	if (!type)
		return -EINVAL;
	if (size > extension->room - extension->size ||
		count_records(extension) >= EXTENSION_RECORDS_MAX)
		return -ENOSPC;
	memset(at, 0, size);
	memcpy(at, &head, sizeof(head));
	extension->size += (uint32_t)size;
	*ret_payload = at + sizeof(head);
	return 0;
}

int extension_add(
	struct profile_extension *extension, uint32_t type, const void *payload, uint32_t length)
{
	void *place;
	int rc = extension_reserve(extension, type, length, &place);

	if (!rc && length)
		memcpy(place, payload, length);
	return rc;
}

void extension_remove_at(struct profile_extension *extension, uint32_t at)
{
	struct extension_record record;
	uint32_t next = at;

	if (!extension_next(extension, &next, &record))
		return;
	memmove(extension->data + at, extension->data + next, extension->size - next);
	extension->size -= next - at;
}

uint32_t extension_remove(struct profile_extension *extension, uint32_t type)
{
	struct extension_record record;
	uint32_t cursor = 0, kept = 0, removed = 0;

	while (extension_next(extension, &cursor, &record)) {
		uint32_t size = cursor - record.at;

		if (record.type == type) {
			removed++;
			continue;
		}
		memmove(extension->data + kept, extension->data + record.at, size);
		kept += size;
	}
	extension->size = kept;
	return removed;
}
