/* As much of Criterion's interface as our unit tests use, for where Criterion cannot be had or
 * cannot run: its sandbox maps an arena at an address that ThreadSanitizer forbids, and a machine
 * may lack libcriterion-dev. Each test runs in a forked child of its own. One test file is one
 * program: this header holds its main. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CR_DEFAULT_TIMEOUT_S 60

struct cr_options {
	void (*init)(void);
	void (*fini)(void);
	const char *description;
	double timeout; /* seconds; 0: CR_DEFAULT_TIMEOUT_S */
	int signal;     /* the test must die from it */
	int exit_code;  /* the test must end with it */
	bool disabled;
};

struct cr_test {
	const char *suite, *name;
	struct cr_options options;
	void (*body)(void); /* NULL for a suite's own options */
	struct cr_test *next;
};

static struct cr_test *cr_first, **cr_last = &cr_first;
static bool cr_has_failed;

static inline void cr_register(struct cr_test *test)
{
	*cr_last = test;
	cr_last = &test->next;
}

#define CR_REGISTER(id, suite_name, test_name, test_body, ...)                                     \
	static struct cr_test id##_test = {.suite = suite_name,                                    \
		.name = test_name,                                                                 \
		.body = test_body,                                                                 \
		.options = {__VA_ARGS__}};                                                         \
	__attribute__((constructor)) static void id##_register(void)                               \
	{                                                                                          \
		cr_register(&id##_test);                                                           \
	}

#define Test(suite, name, ...)                                                                     \
	static void suite##_##name##_body(void);                                                   \
	CR_REGISTER(suite##_##name, #suite, #name, suite##_##name##_body, __VA_ARGS__)             \
	static void suite##_##name##_body(void)

#define TestSuite(suite, ...) CR_REGISTER(suite##_suite, #suite, NULL, NULL, __VA_ARGS__)

__attribute__((format(printf, 5, 6))) static inline void cr_failed(
	bool is_fatal, const char *file, int line, const char *what, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "[----] %s:%d: failed: %s:", file, line, what);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	cr_has_failed = true;
	if (is_fatal)
		exit(EXIT_FAILURE);
}

/* The blank keeps a missing message from being an empty format. */
#define CR_CHECK(is_fatal, is_true, what, ...)                                                     \
	do {                                                                                       \
		if (!(is_true))                                                                    \
			cr_failed(is_fatal, __FILE__, __LINE__, what, " " __VA_ARGS__);            \
	} while (0)
#define CR_COMPARE(is_fatal, a, op, b, ...)                                                        \
	CR_CHECK(is_fatal, (a)op(b), #a " " #op " " #b, __VA_ARGS__)
#define CR_STRING(is_fatal, a, op, b, ...)                                                         \
	CR_CHECK(is_fatal, strcmp(a, b) op 0, #a " " #op " " #b, __VA_ARGS__)
#define CR_ARRAY(is_fatal, a, op, b, size, ...)                                                    \
	CR_CHECK(is_fatal, memcmp(a, b, size) op 0, #a " " #op " " #b, __VA_ARGS__)

#define cr_assert(is_true, ...) CR_CHECK(true, is_true, #is_true, __VA_ARGS__)
#define cr_assert_not(is_true, ...) CR_CHECK(true, !(is_true), "not " #is_true, __VA_ARGS__)
#define cr_assert_fail(...) CR_CHECK(true, false, "reached", __VA_ARGS__)
#define cr_assert_null(a, ...) CR_CHECK(true, (a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) CR_CHECK(true, (a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_assert_eq(a, b, ...) CR_COMPARE(true, a, ==, b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) CR_COMPARE(true, a, !=, b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) CR_COMPARE(true, a, <, b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) CR_COMPARE(true, a, <=, b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) CR_COMPARE(true, a, >, b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) CR_COMPARE(true, a, >=, b, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) CR_STRING(true, a, ==, b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) CR_STRING(true, a, !=, b, __VA_ARGS__)
#define cr_assert_str_empty(a, ...) CR_STRING(true, a, ==, "", __VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...) CR_ARRAY(true, a, ==, b, size, __VA_ARGS__)
#define cr_assert_arr_neq(a, b, size, ...) CR_ARRAY(true, a, !=, b, size, __VA_ARGS__)

#define cr_expect(is_true, ...) CR_CHECK(false, is_true, #is_true, __VA_ARGS__)
#define cr_expect_not(is_true, ...) CR_CHECK(false, !(is_true), "not " #is_true, __VA_ARGS__)
#define cr_expect_null(a, ...) CR_CHECK(false, (a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_expect_not_null(a, ...) CR_CHECK(false, (a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_expect_eq(a, b, ...) CR_COMPARE(false, a, ==, b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) CR_COMPARE(false, a, !=, b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) CR_COMPARE(false, a, <, b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) CR_COMPARE(false, a, <=, b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) CR_COMPARE(false, a, >, b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) CR_COMPARE(false, a, >=, b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) CR_STRING(false, a, ==, b, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...) CR_ARRAY(false, a, ==, b, size, __VA_ARGS__)

#define cr_log_info(...) cr_log_line(" " __VA_ARGS__)
#define cr_log_warn(...) cr_log_line(" " __VA_ARGS__)
#define cr_log_error(...) cr_log_line(" " __VA_ARGS__)

__attribute__((format(printf, 1, 2))) static inline void cr_log_line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

/* Ends a test that the machine cannot give what it needs. */
#define cr_skip(...)                                                                               \
	do {                                                                                       \
		cr_log_line("skipped: " __VA_ARGS__);                                              \
		exit(EXIT_SUCCESS);                                                                \
	} while (0)

static inline const struct cr_options *cr_suite_options(const char *suite)
{
	static const struct cr_options none;

	for (const struct cr_test *test = cr_first; test; test = test->next)
		if (!test->body && !strcmp(test->suite, suite))
			return &test->options;
	return &none;
}

_Noreturn static inline void cr_run_child(const struct cr_test *test)
{
	const struct cr_options *suite = cr_suite_options(test->suite);
	double timeout = test->options.timeout ? test->options.timeout : suite->timeout;

	alarm(timeout >= 1 ? (unsigned int)timeout : CR_DEFAULT_TIMEOUT_S);
	if (suite->init)
		suite->init();
	if (test->options.init)
		test->options.init();
	test->body();
	if (test->options.fini)
		test->options.fini();
	if (suite->fini)
		suite->fini();
	exit(cr_has_failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static inline bool cr_passes(const struct cr_test *test)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child)
		cr_run_child(test);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (WIFSIGNALED(status) && WTERMSIG(status) != test->options.signal)
		fprintf(stderr, "[----] %s::%s: killed by signal %d\n", test->suite, test->name,
			WTERMSIG(status));
	if (test->options.signal)
		return WIFSIGNALED(status) && WTERMSIG(status) == test->options.signal;
	return WIFEXITED(status) && WEXITSTATUS(status) == test->options.exit_code;
}

int main(void)
{
	int tested = 0, failing = 0;

	for (const struct cr_test *test = cr_first; test; test = test->next) {
		if (!test->body || test->options.disabled)
			continue;
		tested++;
		if (cr_passes(test))
			continue;
		failing++;
		fprintf(stderr, "[FAIL] %s::%s\n", test->suite, test->name);
	}
	fprintf(stderr, "[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: 0\n",
		tested, tested - failing, failing);
	return failing || !tested ? EXIT_FAILURE : EXIT_SUCCESS;
}
