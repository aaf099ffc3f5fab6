/* The codes that only MPS gives, for people: what has happened, and what mends it. 805, 806 and 810
 * are told as seen on an H200 (driver 580.159.04), 807 to 809 as NVIDIA's documentation has them.
 */
#pragma once

#define MPS_CODE_FIRST 805
#define MPS_CODE_LAST 810

struct mps_code {
	const char *text, *remedy;
};

/* NULL for a code that is none of MPS's. The texts are constant. */
const struct mps_code *mps_code_find(int code);
