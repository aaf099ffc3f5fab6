/* Observing. Runs in the user's program, on its own threads: in the constructor, at the lookup of
 * cuInit, in its first calls, at its end. It writes one small file, once; any failure is left
 * alone, since a run that is not learned costs nothing but time. */
#include "preload/observe.h"

#include "base/at_start.h"
#include "base/clock.h"
#include "base/env_copy.h"
#include "base/log.h"
#include "driver/build_id.h"
#include "preload/route.h"
#include "preload/situation.h"
#include "preload/spare.h"
#include "preload/speculation.h"
#include "preload/start.h"
#include "preload/threads.h"
#include "profile/learn.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Variables that a driver reads begin so; which ones exactly is checked at each commit. */
static const char *const prefixes[] = {"CUDA_", "NVIDIA_", "__NV"};

/* FNV-1a, 64 bits. */
#define HASH_START UINT64_C(14695981039346656037)
#define HASH_FACTOR UINT64_C(1099511628211)

/* What is noted once, by whichever thread comes first; nobody waits for it. */
enum once { ONCE_NOT, ONCE_BEGUN, ONCE_DONE };

struct moment {
	uint32_t once;  /* enum once; the rest is there when it is ONCE_DONE */
	uint64_t at_us; /* monotonic */
	uint64_t environment;
	uint32_t forks;
};

AT_START_DATA static pid_t observed; /* the process that the constructor ran in */
AT_START_DATA static uint32_t forks, is_written, is_squashed;
static uint32_t context_once; /* enum once */
AT_START_DATA static struct moment began, looked_up, called;
static struct observation seen;
static char model[PROFILE_MODEL_SIZE];

static void count_fork(void)
{
	__atomic_fetch_add(&forks, 1, __ATOMIC_RELAXED);
}

static uint64_t hash_environment(char *const *entry)
{
	uint64_t sum = 0;

	for (; entry && *entry; entry++) {
		uint64_t hash = HASH_START;
		size_t i = 0;

		while (i < sizeof(prefixes) / sizeof(*prefixes) &&
			strncmp(*entry, prefixes[i], strlen(prefixes[i])))
			i++;
		if (i == sizeof(prefixes) / sizeof(*prefixes))
			continue;
		for (const char *c = *entry; *c; c++)
			hash = (hash ^ (unsigned char)*c) * HASH_FACTOR;
		/* A sum, so that the order does not count. */
		sum += hash;
	}
	return sum;
}

static bool is_first(uint32_t *once)
{
	uint32_t not = ONCE_NOT;

	return __atomic_compare_exchange_n(
		once, &not, ONCE_BEGUN, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void set_done(uint32_t *once)
{
	__atomic_store_n(once, ONCE_DONE, __ATOMIC_RELEASE);
}

static bool is_done(const uint32_t *once)
{
	return __atomic_load_n(once, __ATOMIC_ACQUIRE) == ONCE_DONE;
}

static void take(struct moment *moment, uint64_t at_us, char *const *environment)
{
	moment->at_us = at_us;
	moment->environment = hash_environment(environment);
	moment->forks = __atomic_load_n(&forks, __ATOMIC_RELAXED);
}

bool observe_is_on(void)
{
	return observed && observed == getpid();
}

void observe_begin(void)
{
	observed = getpid();
	take(&began, start_monotonic_us(), environ);
	threads_at_fork(NULL, count_fork, NULL);
}

void observe_lookup(char *const *environment)
{
	if (!observe_is_on() || !is_first(&looked_up.once))
		return;
	take(&looked_up, clock_monotonic_us(), environment);
	set_done(&looked_up.once);
}

void observe_call(void)
{
	bool is_looked_up = is_done(&looked_up.once);
	const struct moment *before = is_looked_up ? &looked_up : &began;
	struct env_copy copy;

	if (!observe_is_on() || !is_first(&called.once) || env_copy_take(&copy))
		return;
	take(&called, clock_monotonic_us(), copy.entries);
	env_copy_drop(&copy);
	seen.is_used = true;
	seen.start_lead_us = called.at_us - start_monotonic_us();
	if (is_looked_up) {
		/* A lookup and a call in one breath still are a lookup. */
		seen.lookup_lead_us = called.at_us - looked_up.at_us + 1;
		/* In a spare it was before there was a program. */
		if (seen.lookup_lead_us > seen.start_lead_us)
			seen.lookup_lead_us = seen.start_lead_us + 1;
		seen.env_after_start = began.environment != looked_up.environment;
		seen.forked_after_start = began.forks != looked_up.forks;
	}
	seen.env_after_lookup = before->environment != called.environment;
	seen.forked_after_lookup = before->forks != called.forks;
	set_done(&called.once);
}

/* How many devices are visible, and the first one's model, which stays as it was where it has none.
 */
static int look_at_devices(char ret_model[PROFILE_MODEL_SIZE])
{
	CUresult (*name)(char *, int, CUdevice) =
		(CUresult(*)(char *, int, CUdevice))route_real(ROW_cuDeviceGetName);
	CUresult (*count_devices)(int *) = (CUresult(*)(int *))route_real(ROW_cuDeviceGetCount);
	char text[PROFILE_MODEL_SIZE] = "";
	int count;

	if (count_devices(&count))
		return 0;
	if (count > 0 && !name(text, sizeof(text), 0))
		memcpy(ret_model, text, sizeof(text));
	return count;
}

static bool note_build(uint8_t ret_build_id[PROFILE_BUILD_SIZE])
{
	struct build_id id;

	if (!route_driver_map() || build_id_of_map(route_driver_map(), &id))
		return false;
	memcpy(ret_build_id, id.bytes, PROFILE_BUILD_SIZE);
	return true;
}

/* False where no driver was opened: then there is nothing to say about one. */
static bool note_driver(void)
{
	if (!note_build(seen.build_id))
		return false;
	if (seen.is_used) {
		seen.visible_count = look_at_devices(model);
		seen.model = model;
	}
	/* Whether others run beside it is not known here. */
	seen.is_several = seen.visible_count > 1;
	return true;
}

bool observe_driver(uint8_t ret_build_id[PROFILE_BUILD_SIZE], char ret_model[PROFILE_MODEL_SIZE])
{
	ret_model[0] = '\0';
	if (!is_done(&called.once) || !note_build(ret_build_id))
		return false;
	/* At the program's end the driver may answer no more. */
	if (!look_at_devices(ret_model))
		memcpy(ret_model, model, sizeof(model));
	return true;
}

bool observe_has_context(void)
{
	return observe_is_on() && is_done(&context_once);
}

static enum learn_outcome outcome(void)
{
	uint32_t verdict = speculation_read(&speculation.verdict),
		 context = speculation_read(&speculation.context),
		 phase = speculation_read(&speculation.phase);

	if (!speculation_is_ours() || phase < PHASE_INIT || verdict == VERDICT_CANCELLED)
		return phase >= PHASE_INIT && speculation.init_rc ? LEARN_FAILED : LEARN_NOT_TRIED;
	if (verdict == VERDICT_SQUASHED || is_squashed)
		return LEARN_SQUASHED;
	if (verdict != VERDICT_COMMITTED)
		return LEARN_UNUSED;
	if (speculation.what == DECIDE_INIT || context == CONTEXT_TAKEN)
		return LEARN_HIT;
	if (speculation.context_rc)
		return LEARN_FAILED;
	/* The program came before the context was begun. */
	return speculation.handle ? LEARN_UNUSED : LEARN_HIT;
}

/* What the next run would do by what is now known. */
static void note_start(const char *folder, const struct identity *identity)
{
	struct situation next = {
		.kind = identity->kind, .is_undo_proven = true, .is_getenv_redirected = true};
	struct start_decision decision;
	struct profile profile;

	if (profile_read(folder, identity->digest, &profile, NULL))
		return;
	next.section = profile_section(&profile, seen.build_id, NULL);
	decide_start(&next, &decision);
	situation_note_start(decision.what != DECIDE_NOTHING && decision.moment == DECIDE_AT_START);
}

static void write_down(void)
{
	const struct identity *identity;
	const char *folder;
	uint32_t no = 0;
	int kept = errno, error;

	if (!observe_is_on() || !spare_is_learning())
		return;
	identity = situation_identity();
	folder = situation_profiles();
	if (!identity || !folder ||
		!__atomic_compare_exchange_n(
			&is_written, &no, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	seen.model = "";
	if (!note_driver())
		return;
	seen.realtime_s = clock_realtime_us() / 1000000;
	seen.rank = decide_rank_of_environment();
	seen.outcome = outcome();
	seen.is_wrong_device = seen.outcome == LEARN_UNUSED && seen.context_count &&
			       speculation.handle &&
			       seen.contexts[0].device != speculation.wanted.device;
	error = learn_run(folder, PROFILE_SYSTEM_DIR, identity, &seen);
	if (error)
		log_info("profile in %s: %s", folder, strerror(-error));
	else if (!spare_is_one())
		note_start(folder, identity);
	errno = kept;
}

void observe_init(uint64_t took_us)
{
	uint64_t none = 0;

	if (observe_is_on())
		__atomic_compare_exchange_n(
			&seen.init_us, &none, took_us, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void observe_context(const struct profile_context *context, uint64_t took_us)
{
	if (!observe_is_on() || !is_first(&context_once))
		return;
	seen.contexts[0] = *context;
	seen.context_us = took_us;
	seen.context_count = 1;
	set_done(&context_once);
	/* Otherwise another thread is about to note the first call: the program's end writes. */
	if (is_done(&called.once))
		write_down();
}

void observe_squash(void)
{
	__atomic_store_n(&is_squashed, 1, __ATOMIC_SEQ_CST);
}

void observe_end(void)
{
	if (observe_is_on() && (is_done(&called.once) || is_done(&looked_up.once)))
		write_down();
}

uint64_t observe_learned_init_us(void)
{
	const struct profile_section *section = situation_section();

	return section ? section->init_us : 0;
}
