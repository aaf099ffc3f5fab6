/* BLAKE2b-256 as RFC 7693 describes it. Pure functions over the caller's memory: run in any process
 * and thread, never allocate. */
#include "profile/digest.h"

#include <string.h>

static const uint64_t initial[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b,
	0x5be0cd19137e2179};

static const uint8_t order[10][16] = {
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

#define ROUNDS 12

static inline uint64_t rotate(uint64_t word, unsigned int by)
{
	return word >> by | word << (64 - by);
}

/* The mixing function G of RFC 7693, section 3.1. */
static inline void mix(uint64_t v[16], int a, int b, int c, int d, uint64_t x, uint64_t y)
{
	v[a] += v[b] + x;
	v[d] = rotate(v[d] ^ v[a], 32);
	v[c] += v[d];
	v[b] = rotate(v[b] ^ v[c], 24);
	v[a] += v[b] + y;
	v[d] = rotate(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = rotate(v[b] ^ v[c], 63);
}

static void compress(struct digest_state *state, const uint8_t *block, uint64_t is_last)
{
	uint64_t v[16], m[16];

	memcpy(m, block, sizeof(m)); /* words are little-endian; so is x86-64 */
	memcpy(v, state->chain, sizeof(state->chain));
	memcpy(v + 8, initial, sizeof(initial));
	v[12] ^= state->length;
	v[14] ^= is_last;
	for (int round = 0; round < ROUNDS; round++) {
		const uint8_t *s = order[round % 10];

		mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
		mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
		mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
		mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
		mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
		mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
		mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
		mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
	}
	for (int i = 0; i < 8; i++)
		state->chain[i] ^= v[i] ^ v[i + 8];
}

void digest_init(struct digest_state *state)
{
	memset(state, 0, sizeof(*state));
	memcpy(state->chain, initial, sizeof(initial));
	state->chain[0] ^=
		0x01010000 ^ DIGEST_SIZE; /* parameter block: fanout 1, depth 1, no key */
}

void digest_update(struct digest_state *state, const void *data, size_t size)
{
	const uint8_t *next = data;

	while (size) {
		size_t take = DIGEST_BLOCK - state->held;

		if (!take) { /* a full block is compressed only once it is known not to be the last
			      */
			state->length += DIGEST_BLOCK;
			compress(state, state->block, 0);
			state->held = 0;
			continue;
		}
		if (take > size)
			take = size;
		memcpy(state->block + state->held, next, take);
		state->held += take;
		next += take;
		size -= take;
	}
}

void digest_final(struct digest_state *state, uint8_t ret_digest[DIGEST_SIZE])
{
	state->length += state->held;
	memset(state->block + state->held, 0, DIGEST_BLOCK - state->held);
	compress(state, state->block, UINT64_MAX);
	memcpy(ret_digest, state->chain, DIGEST_SIZE);
}

void digest_of(const void *data, size_t size, uint8_t ret_digest[DIGEST_SIZE])
{
	struct digest_state state;

	digest_init(&state);
	digest_update(&state, data, size);
	digest_final(&state, ret_digest);
}

void digest_text(struct digest_state *state, const char *text)
{
	uint64_t length = strlen(text);

	digest_update(state, &length, sizeof(length));
	digest_update(state, text, length);
}

void digest_format(const uint8_t *digest, size_t bytes, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < bytes; i++) {
		*ret_text++ = digits[digest[i] >> 4];
		*ret_text++ = digits[digest[i] & 15];
	}
	*ret_text = 0;
}
