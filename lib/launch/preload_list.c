/* LD_PRELOAD as a list. Runs in the tools, before they exec a program. Must never lose an entry of
 * the user's. */
#include "launch/preload_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ": "

static const char *base_name(const char *path, size_t length)
{
	const char *slash = memrchr(path, '/', length);

	return slash ? slash + 1 : path;
}

/* Is this entry our library, from whatever folder? */
static bool is_ours(const char *entry, size_t length, const char *library)
{
	const char *name = base_name(entry, length), *ours = base_name(library, strlen(library));
	size_t name_length = (size_t)(entry + length - name);

	return name_length == strlen(ours) && !memcmp(name, ours, name_length);
}

bool preload_list_can_hold(const char *path)
{
	return path[0] == '/' && !path[strcspn(path, SEPARATORS "$")];
}

bool preload_list_has(const char *list, const char *library)
{
	while (list && *(list += strspn(list, SEPARATORS))) {
		size_t length = strcspn(list, SEPARATORS);

		if (is_ours(list, length, library))
			return true;
		list += length;
	}
	return false;
}

int preload_list_add(const char *list, const char *library, char **ret_list)
{
	size_t room = (list ? strlen(list) : 0) + strlen(library) + 2;
	bool is_added = false;
	char *result, *end;

	if (!preload_list_can_hold(library))
		return -EINVAL;
	result = malloc(room);
	if (!result)
		return -ENOMEM;
	end = result;
	while (list && *(list += strspn(list, SEPARATORS))) {
		size_t length = strcspn(list, SEPARATORS), taken = length;
		const char *entry = list;

		list += length;
		if (is_ours(entry, length, library)) {
			if (is_added)
				continue;
			is_added = true;
			/* The room suffices: one entry is replaced, and nothing is appended. */
			entry = library;
			taken = strlen(library);
		}
		if (end != result)
			*end++ = ':';
		end = mempcpy(end, entry, taken);
	}
	if (!is_added) {
		if (end != result)
			*end++ = ':';
		end = mempcpy(end, library, strlen(library));
	}
	*end = '\0';
	*ret_list = result;
	return 0;
}
