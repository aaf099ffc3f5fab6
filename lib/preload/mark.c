/* The note by which any Hearth knows the files of any other for Hearth's, and takes none of them
 * for the driver. Runs nowhere. */
#include "driver/build_id.h"

#include <elf.h>

#define ALIGNMENT 4

static const struct {
	Elf64_Nhdr head;
	char owner[(sizeof(BUILD_ID_MARK_OWNER) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT];
	uint32_t version;
} mark __attribute__((section(".note.hearth"), aligned(ALIGNMENT), used)) = {
	{sizeof(BUILD_ID_MARK_OWNER), sizeof(uint32_t), BUILD_ID_MARK_TYPE}, BUILD_ID_MARK_OWNER,
	1};
