/* Which files the dynamic loader would take, by its own rules (ld.so(8)), without loading them:
 * DT_RPATH of the one who asks and of those who brought it, LD_LIBRARY_PATH, DT_RUNPATH, the
 * folders of ld.so.conf, the default folders. hwcaps folders and prelink are left out: no driver
 * lies there. */
#pragma once

#include "doctor/elf_file.h"
#include "doctor/scene.h"

#define SEARCH_MAX_OBJECTS 256

struct search_object {
	char *path; /* NULL: no file was found for it */
	char *name; /* as it was asked for */
	struct elf_facts facts;
	int parent; /* index of the object that NEEDs it; -1 for the executable */
};

struct search {
	const struct scene *scene;
	const char *library_path; /* LD_LIBRARY_PATH of the program, or NULL */
	struct search_object
		objects[SEARCH_MAX_OBJECTS]; /* breadth first, as the loader maps them */
	size_t count;
	char *cache; /* ld.so.cache, or NULL */
	size_t cache_size;
	char **folders; /* ld.so.conf's where there is no cache, and the default ones */
	size_t folder_count;
};

/* Takes the executable and all it NEEDs. The executable's facts are read here again. Returns 0 or a
 * negative errno, or elf_read's positive outcomes for the executable. search_done after every call.
 */
int search_walk(const struct scene *scene, const char *executable, const char *library_path,
	struct search *ret);
void search_done(struct search *search);

/* Only the folders, for searches without a program. search_done after it. */
void search_prepare(const struct scene *scene, const char *library_path, struct search *ret);

/* The file for a name that the object with this index asks for (-1: as a program without search
 * paths of its own would). Returns 0 with *ret_path to be freed, -ENOENT, or -ENOMEM. */
int search_find(const struct search *search, int asker, const char *name, char **ret_path);

/* The same by the DT_RPATH and DT_RUNPATH alone that the object searches with. */
int search_find_own(const struct search *search, int asker, const char *name, char **ret_path);

/* The same without a program: LD_LIBRARY_PATH, ld.so.conf, default folders, and those where
 * container tools, WSL and NixOS put a driver. */
int search_find_driver(const struct scene *scene, const char *library_path, char **ret_path);

/* Whether this file could be a driver: an x86-64 library that is not Hearth's (libhearth.so has an
 * alias in its NEEDED list that no driver has). */
bool search_is_driver(const struct scene *scene, const char *path);

/* Fills cache and folders (search_folders.c); and adds one folder, where it is absolute. */
void search_read_folders(struct search *search);
void search_add_folder(struct search *search, const char *folder);
