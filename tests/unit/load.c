/* Reading logs: whole, damaged and mixed ones, and what is said about them. */
#include "report/load.h"

#include "report/show.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define CALL(ts, pid, call, device, at, visible, hidden, how)                                      \
	"{\"v\":1,\"event\":\"call\",\"ts\":\"2026-11-30T18:00:" ts "Z\",\"pid\":" pid             \
	",\"task\":\"exp1\",\"program\":\"train.py\",\"call\":\"" call "\",\"device\":" device     \
	",\"at_us\":" at ",\"visible_us\":" visible ",\"hidden_us\":" hidden                       \
	",\"rc\":0,\"how\":\"" how "\"}\n"
#define EXIT(ts, pid, visible)                                                                     \
	"{\"v\":1,\"event\":\"exit\",\"ts\":\"2026-11-30T18:00:" ts "Z\",\"pid\":" pid             \
	",\"task\":\"exp1\",\"program\":\"train.py\",\"first_result_us\":2803000,"                 \
	"\"cuda_visible_us\":" visible                                                             \
	",\"cuda_hidden_us\":91000,\"native_estimate_us\":331000}\n"
#define RUN                                                                                        \
	"{\"v\":1,\"event\":\"run\",\"pid\":71,\"task\":\"\",\"program\":\"a.out\","               \
	"\"start\":\"2026-11-30T17:00:00.000000Z\",\"exit\":\"killed\",\"first_result_us\":null,"  \
	"\"cuda_visible_us\":100,\"cuda_hidden_us\":0,\"native_estimate_us\":100,\"records\":["    \
	"{\"call\":\"cuInit\",\"object\":\"\",\"device\":null,\"at_us\":5,\"visible_us\":100,"     \
	"\"hidden_us\":0,\"rc\":0,\"how\":\"cold\",\"size\":0}]}\n"

static struct run_log load(const char *text)
{
	FILE *from = fmemopen((char *)text, strlen(text), "r");
	struct run_log log = {0};

	cr_assert(eq(int, load_stream(from, &log), 0));
	fclose(from);
	return log;
}

static void check_sentence(const char *text, const char *expected)
{
	struct run_log log = load(text);
	char *sentence;

	cr_assert(eq(sz, log.count, 1));
	sentence = show_sentence(&log.runs[0]);
	cr_expect(eq(str, sentence, (char *)expected));
	free(sentence);
	run_log_done(&log);
}

Test(load, reads_a_whole_log)
{
	struct run_log log = load(CALL("03.100000", "71", "cuInit", "null", "3000000", "9000",
		"91000", "warm") CALL("03.300000", "71", "cuDevicePrimaryCtxRetain", "0", "3050000",
		"115000", "0", "cold") EXIT("09.000000", "71", "131000"));

	cr_assert(eq(sz, log.count, 1));
	cr_expect(eq(sz, log.damaged, 0));
	cr_expect(eq(sz, log.runs[0].count, 2));
	cr_expect(eq(int, log.runs[0].records[0].device, -1));
	cr_expect(eq(int, log.runs[0].records[1].device, 0));
	cr_expect(eq(u64, log.runs[0].first_result_us, 2803000));
	cr_expect(eq(str, log.runs[0].exit, "exited"));
	cr_expect(eq(u64, run_waited(&log.runs[0]), 131000));
	run_log_done(&log);
}

Test(load, skips_and_counts_damaged_lines)
{
	struct run_log log =
		load("{\"v\":1,\"event\":\"ca\n"
		     "nonsense\n"
		     "\n"
		     "[1,2]\n"
		     "{\"v\":2,\"event\":\"call\",\"pid\":1}\n"
		     "{\"v\":1,\"event\":\"run\",\"pid\":1,\"start\":\"yesterday\"}\n" CALL(
			     "00.000000", "5", "cuInit", "null", "-4", "1", "0", "cold")
				CALL("00.000000", "5", "cuInit", "\\\"x\\\"", "4", "1", "0", "cold")
					RUN "{\"v\":1,\"event\":\"later\",\"pid\":1}\n"
					    "{\"v\":1,\"event\":\"run\",\"pid\":7");

	cr_expect(eq(sz, log.count, 1));
	cr_expect(eq(sz, log.damaged, 8));
	run_log_done(&log);
}

Test(load, tells_processes_apart)
{
	/* Two at once, and a second process of the first one's number. */
	struct run_log log = load(CALL("01.000000", "71", "cuInit", "null", "500000", "9000", "0",
		"cold") CALL("01.000000", "72", "cuInit", "null", "500000", "9000", "0", "cold")
			EXIT("01.500000", "71", "9000") CALL("01.600000", "71", "cuInit", "null",
				"50000", "9000", "0", "cold") CALL("08.000000", "72", "cuInit",
				"null", "50000", "9000", "0", "cold"));

	cr_expect(eq(sz, log.count, 4));
	run_log_done(&log);
}

Test(load, orders_runs_by_their_beginning)
{
	struct run_log log =
		load(CALL("01.000000", "72", "cuInit", "null", "500000", "9000", "0", "cold") RUN);

	cr_assert(eq(sz, log.count, 2));
	cr_expect(eq(str, log.runs[0].program, "a.out"));
	cr_expect(eq(str, log.runs[0].exit, "killed"));
	run_log_done(&log);
}

Test(sentence, names_the_parts)
{
	check_sentence(CALL("03.100000", "71", "cuInit", "null", "3000000", "9000", "91000",
			       "warm") CALL("03.300000", "71", "cuDevicePrimaryCtxRetain", "0",
			       "3050000", "115000", "0", "cold") CALL("03.350000", "71",
			       "cuLibraryLoadData", "0", "3200000", "50000", "0", "cold")
			       CALL("03.450000", "71", "cuLibraryLoadData", "0", "3260000", "66000",
				       "0", "jit") EXIT("09.000000", "71", "243000"),
		"cuInit 9.0 ms (warm: the keeper saved about 91 ms), context 115 ms, "
		"2 libraries 116 ms (1 compiled from PTX), other first calls 3.0 ms");
}

Test(sentence, never_adds_up_devices)
{
	check_sentence(CALL("03.100000", "71", "cuInit", "null", "3000000", "9000", "0", "cold")
			       CALL("03.300000", "71", "cuDevicePrimaryCtxRetain", "0", "3050000",
				       "115000", "0", "cold") CALL("03.400000", "71",
				       "cuDevicePrimaryCtxRetain", "1", "3150000", "120000", "0",
				       "cold") CALL("03.500000", "71", "cuModuleLoadData", "1",
				       "3250000", "7000", "0", "cold"),
		"cuInit 9.0 ms (cold), context on device 0 115 ms, context on device 1 120 ms, "
		"1 library 7.0 ms");
}

Test(sentence, says_what_was_done_ahead)
{
	check_sentence(
		CALL("03.100000", "71", "cuInit", "null", "3000000", "310", "97012", "speculated"),
		"cuInit 0.31 ms (speculated: 97 ms done ahead)");
}

Test(show, sums_are_consistent)
{
	struct run_log log = load(
		CALL("03.100000", "71", "cuInit", "null", "3000000", "9000", "91000", "warm")
			CALL("03.200000", "71", "cudaSetDevice", "0", "2999000", "400", "0", "cold")
				EXIT("09.000000", "71", "10000"));
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	show_run(&log.runs[0], to);
	fclose(to);
	/* 9 and 0.4 listed and 0.6 without a line make the logged 10. */
	cr_expect(strstr(text, "calls without a line       -        -       0.60       0.00") !=
		  NULL);
	/* In the order in which they began. */
	cr_expect(strstr(text, "cudaSetDevice") < strstr(text, "cuInit "));
	cr_expect(strstr(text, "in all                     -        -      10.00      91.00") !=
		  NULL);
	free(text);
	run_log_done(&log);
}
