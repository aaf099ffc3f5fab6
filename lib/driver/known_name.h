/* The names by which glibc's loader knows a loaded object, beside the path that it was loaded from
 * and its SONAME. A request for a name, dlopen's argument say, is answered with the first object in
 * the loader's list that has it, before any file is looked at. They lie in what glibc keeps of an
 * object behind the public part, the same from 2.3 to 2.41. */
#pragma once

#include <link.h>
#include <stddef.h>

/* glibc's own (struct libname_list); never freed where is_kept is set. */
struct known_name {
	const char *text;
	struct known_name *next;
	int is_kept;
};

struct full_map {
	struct link_map open;
	struct full_map *real; /* tells that it is so: it points back at the object */
	long name_space;
	struct known_name *names;
};

/* NULL where the loader's memory is laid out otherwise, or the object is in another name space than
 * the program. */
static inline struct full_map *known_name_map(const struct link_map *map)
{
	struct full_map *full = (struct full_map *)(uintptr_t)map;

	return full && full->real == full && full->name_space == LM_ID_BASE ? full : NULL;
}

/* Puts `name` before all others of the object; it is the loader's to read until it is taken out.
 * The loader itself adds names at the end alone, so no lock of its is needed; of ours one thread
 * may call these. */
static inline void known_name_add(struct full_map *full, struct known_name *name)
{
	name->is_kept = 1;
	name->next = __atomic_load_n(&full->names, __ATOMIC_ACQUIRE);
	__atomic_store_n(&full->names, name, __ATOMIC_RELEASE);
}

/* Takes out the one that was added last. Who is reading it finds the others. */
static inline void known_name_remove(struct full_map *full)
{
	__atomic_store_n(&full->names, full->names->next, __ATOMIC_RELEASE);
}
