/* The recorder's memory: what this run has loaded so far, in order of first use. Filled in by the
 * program's own calls (record_images.c), written to the profile by record_learn.c. */
#pragma once

#include "profile/images.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Handles that are known; more than the images and kernels of a list. */
#define RECORDER_SLOTS 8192u
/* Content of images on the heap that is kept until it is written, bytes of one process. */
#define RECORDER_COPIES_MAX (UINT64_C(32) << 20)

struct recorder_slot {
	uintptr_t handle; /* 0 = free */
	uint32_t index;
};

/* A hash table with open addressing; nothing is ever removed, a handle that comes again means its
 * latest owner. */
struct recorder_table {
	uint32_t count;
	struct recorder_slot slots[RECORDER_SLOTS];
};

struct recorder {
	pthread_mutex_t lock; /* nobody who holds it calls the driver or the loader */
	uint64_t key;         /* of the section */
	bool is_full;         /* an image was left out */
	unsigned int sm;      /* compute capability of the device that was loaded for last */
	uintptr_t bases[IMAGES_FILES_MAX]; /* load address of each file; 0 = only named */
	void *copies[IMAGES_MAX];          /* content of a heap image until it has its digest */
	uint64_t copied;                   /* bytes of them */
	struct images_draft draft;         /* a file of kind 0 and an image with digest_size 0
					    * are not complete yet */
	struct recorder_table owners;      /* libraries and modules: index of the image */
	struct recorder_table kernels;     /* kernels: index */
	uint32_t names[RECORDER_SLOTS];    /* hash table of kernels by image and name: index + 1 */
};

/* This process's recorder while it records, else NULL. */
struct recorder *recorder(void);

/* The same, and it begins where it has not yet and may; one thread begins, and what the others load
 * meanwhile is not recorded. */
struct recorder *record_images_begin(void);

/* Something new is in it: it is to be written once the program is quiet. */
void record_learn_changed(void);

/* Of the texts' room kernels leave so much for paths. */
#define RECORDER_PATHS_ROOM (64u << 10)

/* No more is recorded. */
void record_images_stop(void);
