/* The table of live objects: what lies behind the handles that the program holds.
 *
 * Runs on the program's threads with sim.lock held. Never follows a handle that is not in the
 * table. */
#include "sim/sim.h"

#include <stdlib.h>

#define BUCKETS 1024

static struct sim_object *table[BUCKETS];

static struct sim_object **bucket_of(word handle)
{
	return &table[(handle >> 4) % BUCKETS];
}

void sim_object_add(struct sim_object *object, enum sim_kind kind, struct sim_context *context,
	void (*free)(struct sim_object *object))
{
	struct sim_object **bucket = bucket_of((word)object);

	*object = (struct sim_object){
		.kind = kind, .context = context, .free = free, .next = *bucket};
	*bucket = object;
}

void *sim_object_find(word handle, enum sim_kind kind)
{
	struct sim_object *object = *bucket_of(handle);

	while (object && (word)object != handle)
		object = object->next;
	return object && object->kind == kind ? object : NULL;
}

void sim_object_remove(struct sim_object *object)
{
	struct sim_object **link = bucket_of((word)object);

	while (*link && *link != object)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = object->next;
	if (object->free)
		object->free(object);
}

void sim_object_remove_owned(struct sim_context *context)
{
	for (int i = 0; i < BUCKETS; i++) {
		/* Freeing one object may remove others, so the chain is read anew each time. */
		struct sim_object *object = table[i];

		while (object) {
			if (object->context == context) {
				sim_object_remove(object);
				object = table[i];
			} else {
				object = object->next;
			}
		}
	}
}
