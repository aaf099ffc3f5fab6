/* Printing what containers need. Runs in the hearth tool. */
#include "mps/container.h"

/* Inside it has the name that it has outside, so that the two can be compared. */
static void print_docker(const struct place *place, uid_t uid, gid_t gid, FILE *to)
{
	fputs("--gpus all\n--ipc host\n", to);
	if (!place->is_machine)
		fprintf(to, "--user %u:%u\n", (unsigned)uid, (unsigned)gid);
	fprintf(to, "--volume %s:%s\n", place->pipe, place->pipe);
	fprintf(to, "--env CUDA_MPS_PIPE_DIRECTORY=%s\n", place->pipe);
}

static void print_compose(const struct place *place, uid_t uid, gid_t gid, FILE *to)
{
	fputs("    ipc: host\n", to);
	if (!place->is_machine)
		fprintf(to, "    user: \"%u:%u\"\n", (unsigned)uid, (unsigned)gid);
	fprintf(to, "    volumes:\n      - %s:%s\n", place->pipe, place->pipe);
	fprintf(to, "    environment:\n      CUDA_MPS_PIPE_DIRECTORY: %s\n", place->pipe);
	fputs("    deploy:\n      resources:\n        reservations:\n          devices:\n"
	      "            - driver: nvidia\n              count: all\n"
	      "              capabilities: [gpu]\n",
		to);
}

void container_print(
	const struct place *place, uid_t uid, gid_t gid, enum container_form form, FILE *to)
{
	if (form == CONTAINER_SHELL)
		fprintf(to, "export CUDA_MPS_PIPE_DIRECTORY='%s'\n", place->pipe);
	else if (form == CONTAINER_DOCKER)
		print_docker(place, uid, gid, to);
	else
		print_compose(place, uid, gid, to);
}
