/* The import slots of a loaded library: the words in it that hold addresses of functions of other
 * libraries. For the experiments in this folder, which watch or redirect the driver's own calls. */
#pragma once

#include <link.h>
#include <stddef.h>

struct slot {
	const char *name; /* the imported symbol; lives as long as the library */
	void **word;      /* where its address stands */
	unsigned type;    /* R_X86_64_JUMP_SLOT, _GLOB_DAT or _64 */
	unsigned kind;    /* STT_FUNC, STT_OBJECT, STT_NOTYPE as the importer declares it */
};

/* Calls visit for every slot bound to a symbol that the library itself does not define. */
void slots_each(
	struct link_map *map, void (*visit)(const struct slot *slot, void *data), void *data);

/* Puts `to` into every slot of that name; returns how many there are. Keeps the words writable. */
int slots_redirect(struct link_map *map, const char *name, void *to);

/* The name of a relocation type above. */
const char *slots_type_name(unsigned type);
