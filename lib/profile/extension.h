/* The extension area of a profile: typed records with lengths, for what later versions learn
 * (libraries and kernels in order of first use). A reader skips types it doesn't know; a writer
 * keeps them. On disk and in memory:
 *
 *     u32 type | u32 length of the payload | payload | zeros up to a multiple of 8
 *
 * No allocation; the memory is the caller's. */
#pragma once

#include "profile/profile.h"

#define EXTENSION_RECORDS_MAX 16384u

/* A record, pointing into the area. */
struct extension_record {
	uint32_t type;
	uint32_t length;
	const void *payload;
	uint32_t at; /* offset of the record */
};

/* Does a walk over all records end exactly at `size`, with zero padding and no type 0? */
bool extension_is_walkable(const void *data, uint32_t size);

/* The record at *cursor (0 to begin with), which moves on; false at the end. Only for an area that
 * is walkable. */
bool extension_next(
	const struct profile_extension *extension, uint32_t *cursor, struct extension_record *ret);

/* Adds a record at the end: 0, -ENOSPC (room or EXTENSION_RECORDS_MAX), -EINVAL (type 0). */
int extension_add(
	struct profile_extension *extension, uint32_t type, const void *payload, uint32_t length);

/* The same with a payload of zeros, which the caller then fills. */
int extension_reserve(
	struct profile_extension *extension, uint32_t type, uint32_t length, void **ret_payload);

/* Removes the record at that offset; what follows moves there. */
void extension_remove_at(struct profile_extension *extension, uint32_t at);

/* Removes all records of a type; returns how many. */
uint32_t extension_remove(struct profile_extension *extension, uint32_t type);
