/* Identities: which command lines are runs of one program. */
#include "profile/identity.h"
#include "profile/command.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3.11"
#define WORDS_MAX 12

/* A command line in one string; words are separated by '|'. */
struct line {
	char text[512];
	const char *argv[WORDS_MAX + 1];
	struct identity_source source;
};

static void make(struct line *line, const char *executable, const char *words)
{
	char *rest = line->text, *word;

	memset(line, 0, sizeof(*line));
	snprintf(line->text, sizeof(line->text), "%s", words);
	while ((word = strsep(&rest, "|")) && line->source.argc < WORDS_MAX)
		line->argv[line->source.argc++] = word;
	line->source.argv = line->argv;
	line->source.executable = executable;
}

static struct identity identify(const char *executable, const char *words)
{
	struct identity identity;
	struct line line;

	make(&line, executable, words);
	identity_compute(&line.source, &identity);
	return identity;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return !memcmp(a->digest, b->digest, DIGEST_SIZE);
}

static void enter_folder(void)
{
	static char folder[] = "/tmp/hearth-identity-XXXXXX";

	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
	char folder[4096];
	const char *const names[] = {
		"train.py", "other.py", "link.py", "mod.py", "fifo", "sub/train.py"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	rmdir("sub");
	if (getcwd(folder, sizeof(folder)))
		rmdir(folder);
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
}

TestSuite(identity, .init = enter_folder, .fini = leave_folder);

Test(identity, how_command_lines_are_read)
{
	static const struct {
		const char *executable, *words;
		enum identity_kind kind;
		const char *name;
	} rows[] = {
		{"/opt/app/solver", "solver|-n|5", IDENTITY_EXECUTABLE, "solver"},
		{"/opt/app/solver", "./whatever", IDENTITY_EXECUTABLE, "solver"},
		{"", "./a.out", IDENTITY_EXECUTABLE, "a.out"},
		{"/opt/app/frozen", "frozen|--multiprocessing-fork|pipe_handle=7", IDENTITY_CHILD,
			" (spawn)"},
		{PYTHON, "python|train.py|--lr|1", IDENTITY_SCRIPT, "train.py"},
		{PYTHON, "/venv/bin/python|/x/train.py", IDENTITY_SCRIPT, "train.py"},
		{PYTHON, "python|-u|-W|ignore|train.py", IDENTITY_SCRIPT, "train.py"},
		{PYTHON, "python|-uWignore|train.py", IDENTITY_SCRIPT, "train.py"},
		{PYTHON, "python|-X|dev|-B|train.py|-c|no", IDENTITY_SCRIPT, "train.py"},
		{PYTHON, "python|--check-hash-based-pycs|never|a.py", IDENTITY_SCRIPT, "a.py"},
		{PYTHON, "python|--|-odd.py", IDENTITY_SCRIPT, "-odd.py"},
		{PYTHON, "python|-m|pkg.train|--x", IDENTITY_MODULE, "pkg.train"},
		{PYTHON, "python|-mpkg.train", IDENTITY_MODULE, "pkg.train"},
		{PYTHON, "python|-Im|pkg", IDENTITY_MODULE, "pkg"},
		{PYTHON, "python|-c|import torch|train.py", IDENTITY_TEXT, "python3.11 -c"},
		{PYTHON, "python|-Bcimport torch", IDENTITY_TEXT, "python3.11 -c"},
		{PYTHON, "python|-m", IDENTITY_MODULE, ""},
		{PYTHON, "python|-W", IDENTITY_STDIN, "python3.11 -"},
		{PYTHON, "python", IDENTITY_STDIN, "python3.11 -"},
		{PYTHON, "python|-|x", IDENTITY_STDIN, "python3.11 -"},
		{PYTHON, "python|-V", IDENTITY_STDIN, "python3.11 -"},
		{"/opt/pypy3/bin/pypy3.10", "pypy3|x.py", IDENTITY_SCRIPT, "x.py"},
		{PYTHON,
			"python|-c|from multiprocessing.spawn import spawn_main; "
			"spawn_main(tracker_fd"
			"=5, pipe_handle=7)|--multiprocessing-fork",
			IDENTITY_CHILD, "python3.11 (spawn)"},
		{PYTHON, "python|-c|from multiprocessing.forkserver import main; main(4, 5)",
			IDENTITY_CHILD, "python3.11 (forkserver)"},
		{PYTHON, "python|-c|from multiprocessing.resource_tracker import main;main(4)",
			IDENTITY_CHILD, "python3.11 (tracker)"},
		{PYTHON,
			"python|-m|joblib.externals.loky.backend.popen_loky_posix|--process-name|"
			"Loky"
			"Process-3|--pipe|17",
			IDENTITY_CHILD, "python3.11 (loky)"},
		{PYTHON, "python|/v/site-packages/ray/_private/workers/default_worker.py|--a=1",
			IDENTITY_CHILD, "python3.11 (ray)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct identity identity = identify(rows[i].executable, rows[i].words);

		cr_expect_eq(identity.kind, rows[i].kind, "%s", rows[i].words);
		cr_expect_str_eq(identity.name, rows[i].name, "%s", rows[i].words);
	}
}

Test(identity, which_command_lines_are_one_program)
{
	static const struct {
		const char *first, *second;
		bool is_same;
	} rows[] = {
		{"python|train.py", "/venv/bin/python|train.py", true},
		{"python|train.py", "python|./train.py", true},
		{"python|train.py", "python|link.py", true},
		{"python|train.py", "python|other.py", false},
		{"python|train.py", "python|sub/train.py", false},
		{"python|train.py", "python|train.py|--help", false},
		{"python|train.py|--lr|0.1", "python|train.py|--lr|0.2", true},
		{"python|train.py|--lr=0.1", "python|train.py|--lr=0.2", true},
		{"python|train.py|--lr=0.1", "python|train.py|--lr|0.2", true},
		{"python|train.py|--a|--b", "python|train.py|--b|--a|--a", true},
		{"python|train.py|--a|--b", "python|train.py|--a", false},
		{"python|train.py|--fp16", "python|train.py|--fp32", false},
		{"python|train.py|-n5", "python|train.py|-n6", true},
		{"python|train.py|-n5", "python|train.py|-m5", false},
		{"python|train.py|-5", "python|train.py|-6", true},
		{"python|train.py|-.5", "python|train.py", true},
		{"python|train.py|--|--help", "python|train.py", true},
		{"python|train.py|x", "python|train.py|y|z", true},
		{"python|-u|train.py", "python|train.py", false},
		{"python|-u|-B|train.py", "python|-uBu|train.py", true},
		{"python|-u|-B|train.py", "python|-uB|train.py", true},
		{"python|-W|a|train.py", "python|-W|b|train.py", true},
		{"python|-c|print(1)", "python|-c|print(2)", false},
		{"python|-c|print(1)|--x", "python|-c|print(1)", false},
		{"python|-m|mod", "python|-m|mod.sub", false},
		{"python|-m|json", "python|json", false},
		{"python|/gone/a.py", "python|/gone/b.py", false},
	};

	put("train.py", "1\n");
	put("other.py", "1\n");
	cr_assert_eq(mkdir("sub", 0700), 0);
	put("sub/train.py", "1\n");
	cr_assert_eq(symlink("train.py", "link.py"), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct identity first = identify(PYTHON, rows[i].first);
		struct identity second = identify(PYTHON, rows[i].second);

		cr_expect_eq(is_same(&first, &second), rows[i].is_same, "%s and %s", rows[i].first,
			rows[i].second);
	}
}

Test(identity, a_module_of_the_working_folder_is_another_one_elsewhere)
{
	struct identity here, there, installed, installed_there;

	put("mod.py", "1\n");
	here = identify(PYTHON, "python|-m|mod");
	installed = identify(PYTHON, "python|-m|json.tool");
	cr_assert_eq(mkdir("sub", 0700), 0);
	cr_assert_eq(chdir("sub"), 0);
	there = identify(PYTHON, "python|-m|mod");
	installed_there = identify(PYTHON, "python|-m|json.tool");
	cr_assert_eq(chdir(".."), 0);
	cr_assert_not(is_same(&here, &there));
	cr_assert(is_same(&installed, &installed_there));
}

Test(identity, a_script_without_a_path_is_its_content)
{
	struct identity first, same, other;
	char words[64];
	int fd;

	put("train.py", "print(1)\n");
	fd = open("train.py", O_RDONLY);
	unlink("train.py");
	snprintf(words, sizeof(words), "python|/proc/self/fd/%d", fd);
	first = identify(PYTHON, words);
	put("train.py", "print(1)\n");
	cr_assert_eq(dup2(open("train.py", O_RDONLY), fd), fd);
	unlink("train.py");
	same = identify(PYTHON, words);
	put("train.py", "print(2)\n");
	cr_assert_eq(dup2(open("train.py", O_RDONLY), fd), fd);
	unlink("train.py");
	other = identify(PYTHON, words);
	cr_assert_eq(lseek(fd, 0, SEEK_CUR), 0, "the program's offset moved");
	cr_assert(is_same(&first, &same));
	cr_assert_not(is_same(&first, &other));
}

Test(identity, what_a_pipe_holds_is_left_to_the_program)
{
	char words[64], byte;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	snprintf(words, sizeof(words), "python|/proc/self/fd/%d", ends[0]);
	identify(PYTHON, words);
	cr_assert_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	identify(PYTHON, "python|-");
	cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(read(ends[0], &byte, 1), 1);
}

Test(identity, a_fifo_is_not_opened, .timeout = 10)
{
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	cr_assert_eq(identify(PYTHON, "python|fifo").kind, IDENTITY_SCRIPT);
}

Test(identity, children_belong_to_their_parents)
{
	const char *spawn = "python|-c|from multiprocessing.spawn import spawn_main; "
			    "spawn_main(tracker_fd=%d, pipe_handle=7)|--multiprocessing-fork";
	struct identity parent = identify(PYTHON, "python|-c|one"), child, sibling, stranger;
	struct identity other_parent = identify(PYTHON, "python|-c|two");
	char words[256];
	struct line line;

	snprintf(words, sizeof(words), spawn, 5);
	make(&line, PYTHON, words);
	line.source.parent = &parent;
	identity_compute(&line.source, &child);
	snprintf(words, sizeof(words), spawn, 16);
	make(&line, PYTHON, words);
	line.source.parent = &parent;
	identity_compute(&line.source, &sibling);
	line.source.parent = &other_parent;
	identity_compute(&line.source, &stranger);
	cr_assert(is_same(&child, &sibling));
	cr_assert_not(is_same(&child, &stranger));
	cr_assert_not(is_same(&child, &parent));
	cr_assert_str_eq(child.name, "python3.11 -c (spawn)");
}

Test(identity, numbers_in_a_role_do_not_count)
{
	const char *loky = "python|-m|joblib.externals.loky.backend.popen_loky_posix|"
			   "--process-name|%s|--pipe|17";
	char words[256];
	struct identity first, second, other;

	snprintf(words, sizeof(words), loky, "LokyProcess-3");
	first = identify(PYTHON, words);
	snprintf(words, sizeof(words), loky, "LokyProcess-12");
	second = identify(PYTHON, words);
	snprintf(words, sizeof(words), loky, "Manager-12");
	other = identify(PYTHON, words);
	cr_assert(is_same(&first, &second));
	cr_assert_not(is_same(&first, &other));
}

Test(identity, a_kernel_is_its_notebook)
{
	struct identity first, second, other, plain;
	struct line line;

	make(&line, PYTHON, "python|-m|ipykernel_launcher|-f|/run/kernel-1.json");
	identity_compute(&line.source, &plain);
	cr_assert_eq(plain.kind, IDENTITY_MODULE);
	line.source.notebook = "/home/u/paper.ipynb";
	identity_compute(&line.source, &first);
	make(&line, PYTHON, "python|-m|ipykernel_launcher|-f|/run/kernel-2.json|--debug");
	line.source.notebook = "/home/u/paper.ipynb";
	identity_compute(&line.source, &second);
	line.source.notebook = "/home/u/other.ipynb";
	identity_compute(&line.source, &other);
	cr_assert_eq(first.kind, IDENTITY_NOTEBOOK);
	cr_assert_str_eq(first.name, "paper.ipynb");
	cr_assert(is_same(&first, &second));
	cr_assert_not(is_same(&first, &other));
	/* What a notebook starts has inherited the variable, and is no kernel. */
	make(&line, PYTHON, "python|-c|print(1)");
	line.source.notebook = "/home/u/paper.ipynb";
	identity_compute(&line.source, &plain);
	cr_assert_eq(plain.kind, IDENTITY_TEXT);
}

Test(identity, names_are_printable_and_bounded)
{
	struct identity identity = identify(PYTHON,
		"python|/x/a\x1b[31m\xc3\xa4\xff\xe2\x80\xae_01234567890123456789012345678901234567"
		"890123456789.py");

	cr_assert_eq(strnlen(identity.name, IDENTITY_NAME_SIZE), IDENTITY_NAME_SIZE - 1);
	cr_assert_eq(strncmp(identity.name, "a?[31m\xc3\xa4??_01", 13), 0);
	/* A character that does not fit is left out whole. */
	identity = identify(PYTHON,
		"python|/x/01234567890123456789012345678901234567890123456789012345678901\xc3\xa9");
	cr_assert_str_eq(
		identity.name, "01234567890123456789012345678901234567890123456789012345678901");
}

Test(identity, no_arguments_at_all)
{
	struct identity_source source = {0};
	struct identity identity;

	identity_compute(&source, &identity);
	cr_assert_eq(identity.kind, IDENTITY_EXECUTABLE);
	source.executable = PYTHON;
	identity_compute(&source, &identity);
	cr_assert_eq(identity.kind, IDENTITY_STDIN);
}

Test(identity, more_options_than_are_counted)
{
	const char *argv[300] = {"python", "x.py"};
	struct identity_source source = {.executable = PYTHON, .argv = argv, .argc = 300};
	struct identity first, second;

	for (int i = 2; i < 300; i++)
		argv[i] = i % 2 ? "--a" : "--b";
	identity_compute(&source, &first);
	source.argc = 299;
	identity_compute(&source, &second);
	cr_assert(is_same(&first, &second));
}

Test(identity, a_process_seen_from_inside_and_from_outside_is_the_same)
{
	static char line[4096];
	const char *argv[64];
	struct identity inside, outside;
	int fd = open("/proc/self/cmdline", O_RDONLY), argc = 0;
	ssize_t length = read(fd, line, sizeof(line) - 1);

	for (ssize_t at = 0; at < length && argc < 64; at += (ssize_t)strlen(line + at) + 1)
		argv[argc++] = line + at;
	cr_assert_eq(identity_of_self(argc, argv, NULL, &inside), 0);
	cr_assert_eq(identity_of_process(getpid(), NULL, &outside), 0);
	cr_assert_eq(inside.kind, IDENTITY_EXECUTABLE);
	cr_assert_arr_eq(inside.digest, outside.digest, DIGEST_SIZE);
	cr_assert_str_eq(inside.name, "unit_identity");
}

Test(identity, a_process_that_is_gone)
{
	struct identity identity;
	pid_t child = fork();

	if (!child)
		_exit(0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_assert_lt(identity_of_process(child, NULL, &identity), 0);
}
