/* Prints what a process is taken for: `identity_probe PID`: kind, digest, name. */
#include "base/env.h"
#include "profile/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct identity identity;
	char digest[2 * DIGEST_SIZE + 1];
	int rc;

	if (argc != 2) {
		fputs("usage: identity_probe PID\n", stderr);
		return 2;
	}
	rc = identity_of_process(atoi(argv[1]), env_get(ENV_JPY_SESSION_NAME), &identity);
	if (rc) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-rc));
		return 1;
	}
	digest_format(identity.digest, DIGEST_SIZE, digest);
	printf("%s %s %s\n", identity_kind_name(identity.kind), digest, identity.name);
	return 0;
}
