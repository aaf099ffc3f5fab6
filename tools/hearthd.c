/* `hearthd`: the broker. Reads its arguments; everything else is under lib/broker. */
#include "broker/hearthd.h"
#include "base/env.h"
#include "base/log.h"
#include "broker/keeper_child.h"
#include "broker/machine.h"
#include "broker/prove_child.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_IDLE_S 600
#define DEFAULT_PROVE_AFTER_S 15
#define MAX_SECONDS 31536000 /* a year */
#define EXIT_USAGE 2

static const char help[] =
	"usage: hearthd [OPTION...]\n"
	"\n"
	"Keeps the CUDA driver's state warm and each user's last runs. Started by `hearth run` "
	"when\n"
	"none runs; `hearth stop` ends it.\n"
	"\n"
	"  --system           for every user of this machine, at " ADDRESS_SYSTEM " (as root)\n"
	"  --retain=WHAT      what the keeper holds: init (cuInit alone, the default), context "
	"(the\n"
	"                     primary contexts too, for GPUs that power down), none (no keeper)\n"
	"  --idle=SECONDS     leave so long after the last client; 0 stays (default 600; 0 with\n"
	"                     --system)\n"
	"  --power-managed    keep also GPUs whose runtime power control is `auto` (laptops)\n"
	"  --prove-after=SECONDS\n"
	"                     without a client, before the proof that what programs have done "
	"ahead\n"
	"                     can be undone with this driver, once per driver; 0 never (default "
	"15)\n"
	"  --job=PID          leave with that process (default: the Slurm or PBS job's)\n"
	"  --foreground       do not detach\n"
	"  --help, --version\n";

enum option_id {
	SYSTEM = 256,
	RETAIN,
	IDLE,
	POWER_MANAGED,
	JOB,
	FOREGROUND,
	HELP,
	VERSION,
	PROVE_AFTER,
	KEEPER,
	PROVE
};

static const struct option long_options[] = {
	{"system", no_argument, NULL, SYSTEM},
	{"retain", required_argument, NULL, RETAIN},
	{"idle", required_argument, NULL, IDLE},
	{"power-managed", no_argument, NULL, POWER_MANAGED},
	{"job", required_argument, NULL, JOB},
	{"foreground", no_argument, NULL, FOREGROUND},
	{"help", no_argument, NULL, HELP},
	{"version", no_argument, NULL, VERSION},
	{"prove-after", required_argument, NULL, PROVE_AFTER},
	{"keeper", required_argument, NULL, KEEPER}, /* internal: process_start_keeper */
	{"prove", no_argument, NULL, PROVE},         /* internal: process_start_prover */
	{NULL, 0, NULL, 0},
};

static int complain(const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "hearthd: %s is '%s', expected %s\n", option, value, wanted);
	return EXIT_USAGE;
}

static bool parse_number(const char *text, long *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtol(text, &end, 10);
	return !errno && end != text && !*end && *ret_value >= 0 && *ret_value <= MAX_SECONDS;
}

static int parse_retain(const char *text, struct broker_options *options)
{
	options->has_keeper = strcmp(text, "none");
	options->retain = strcmp(text, "context") ? HEARTH_RETAIN_INIT : HEARTH_RETAIN_CONTEXT;
	if (!options->has_keeper || options->retain == HEARTH_RETAIN_CONTEXT ||
		!strcmp(text, "init"))
		return 0;
	return complain("--retain", text, "init, context or none");
}

int main(int argc, char **argv)
{
	struct broker_options options = {.has_keeper = true, .retain = HEARTH_RETAIN_INIT};
	bool is_foreground = false, has_job = false;
	long number = -1, idle_s = -1, prove_after_s = DEFAULT_PROVE_AFTER_S;
	struct settings settings;
	const char *wrong;
	int option;

	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (option) {
		case SYSTEM:
			options.is_system = true;
			break;
		case RETAIN:
			if (parse_retain(optarg, &options))
				return EXIT_USAGE;
			break;
		case IDLE:
			if (!parse_number(optarg, &idle_s))
				return complain("--idle", optarg, "seconds, 0 to 31536000");
			break;
		case POWER_MANAGED:
			options.keeps_power_managed = true;
			break;
		case JOB:
			if (!parse_number(optarg, &number))
				return complain("--job", optarg, "a process id");
			options.job = (pid_t)number;
			has_job = true;
			break;
		case FOREGROUND:
			is_foreground = true;
			break;
		case PROVE_AFTER:
			if (!parse_number(optarg, &prove_after_s))
				return complain("--prove-after", optarg, "seconds, 0 to 31536000");
			break;
		case PROVE:
			return argc - optind == PROVE_ARGUMENTS ? prove_child_main(argv + optind)
								: EXIT_USAGE;
		case KEEPER:
			return keeper_child_main(strcmp(optarg, "context") ? HEARTH_RETAIN_INIT
									   : HEARTH_RETAIN_CONTEXT);
		case 'h':
		case HELP:
			fputs(help, stdout);
			return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
		case VERSION:
			puts("hearthd " HEARTH_VERSION);
			return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
		default: /* getopt has named the option */
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "hearthd: '%s' is no option: see hearthd --help\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (options.is_system && geteuid() != 0) {
		fprintf(stderr, "hearthd: --system is for root, and this is uid %u\n",
			(unsigned int)geteuid());
		return EXIT_USAGE;
	}
	/* A setting that cannot be read counts as its default, here as in every program. */
	wrong = settings_read(&settings);
	if (wrong)
		fprintf(stderr,
			"hearthd: %s=%s is not understood, its default counts: see hearth help "
			"env\n",
			wrong, env_get_named(wrong));
	log_set_level(settings.log_level);
	if (idle_s < 0)
		idle_s = options.is_system ? 0 : DEFAULT_IDLE_S;
	options.idle_us = (uint64_t)idle_s * 1000000;
	options.prove_after_us = (uint64_t)prove_after_s * 1000000;
	if (!has_job && !options.is_system && (env_get(ENV_SLURM_JOB_ID) || env_get(ENV_PBS_JOBID)))
		options.job = machine_job_keeper(getppid());
	return hearthd_serve(&options, &settings, is_foreground);
}
