/* BLAKE2b with 32 bytes of result (RFC 7693), for identities and for the integrity of files. Chosen
 * because it needs no table of constants beyond SHA-512's IV and runs at about 1 GB/s in plain C,
 * so that a profile's head is checked in a few microseconds. No allocation, no lock. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DIGEST_SIZE 32
#define DIGEST_BLOCK 128

struct digest_state {
	uint64_t chain[8];
	uint64_t length; /* bytes compressed so far; a profile is far below 2^64 */
	size_t held;     /* bytes in block */
	uint8_t block[DIGEST_BLOCK];
};

void digest_init(struct digest_state *state);
void digest_update(struct digest_state *state, const void *data, size_t size);
void digest_final(struct digest_state *state, uint8_t ret_digest[DIGEST_SIZE]);

/* All three for one piece of data. */
void digest_of(const void *data, size_t size, uint8_t ret_digest[DIGEST_SIZE]);

/* Feeds the text with its length before it, so that "ab","c" and "a","bc" differ. */
void digest_text(struct digest_state *state, const char *text);

/* The first `bytes` of a digest in hexadecimal; ret_text has room for 2 * bytes + 1. */
void digest_format(const uint8_t *digest, size_t bytes, char *ret_text);
