/* What MPS's codes mean. Runs in the user's program, where one is logged, and in the tools. */
#include "driver/mps_code.h"

#include <stddef.h>

static const struct mps_code codes[] = {
	{"no MPS server took this program: its daemon is another user's, or has hung",
		"hearth doctor --mps says which; hearth mps start, as this user, starts one of its "
		"own"},
	{"the MPS server has ended, and with it what this program had on the GPU",
		"start the program again; hearth mps logs may say why it ended"},
	{"the MPS server is starting, or ending",
		"start the program again in a second; hearth mps status"},
	{"the GPU has no room for another MPS client",
		"hearth mps clients lists those there are; start it again when one has ended"},
	{"the MPS server has as many connections as it takes",
		"hearth mps clients lists its clients; start it again when one has ended, and with "
		"CUDA_DEVICE_MAX_CONNECTIONS unset, since more of them mean fewer clients"},
	{"this program was ended through its MPS server (terminate_client)", "start it again"},
};
_Static_assert(sizeof(codes) / sizeof(codes[0]) == MPS_CODE_LAST - MPS_CODE_FIRST + 1, "each one");

const struct mps_code *mps_code_find(int code)
{
	if (code < MPS_CODE_FIRST || code > MPS_CODE_LAST)
		return NULL;
	return &codes[code - MPS_CODE_FIRST];
}
