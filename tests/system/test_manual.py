"""Man pages and completions against the programs: what `--help` names is in each of them and the
other way round; pages are clean for mandoc and groff; completions work in the shells that are
here."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import harness

MANUAL = harness.BUILD / "tools/man"
CONTROLS = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|[\0-\x1a]")
LOADER = Path("/usr/share/bash-completion/bash_completion")
PAGES = ("hearth.1", "hearthd.8", "hearth-env.7")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def ask(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout


def commands():
    return re.findall(r"^  ([a-z]+) {2,}", ask(harness.HEARTH, "help"), re.M)


def options_of(text):
    """Those that stand at the left of a help text's lines, or in its usage."""
    usage, _, rest = text.partition("\n\n")
    left = re.findall(r"^ {2,4}(\S+(?: \S+)*)", rest, re.M)
    return set(OPTION.findall(" ".join(left))) | set(OPTION.findall(usage))


def page_text(name):
    return (MANUAL / name).read_text().replace("\\-", "-")


def section(text, name):
    return text.partition(f"\n.SS {name}\n")[2].partition("\n.S")[0]


def bold_options(text):
    """A page's entries and its usage lines."""
    return set(OPTION.findall(" ".join(re.findall(r"^\.B (.*)$", text, re.M))))


class Pages(harness.SystemTest):
    def test_every_command_with_just_its_options(self):
        text = page_text("hearth.1")
        listed = re.findall(r"^\.SS (\w+)$", text.partition(".SH ENVIRONMENT")[0], re.M)
        self.assertEqual(listed, commands())
        for name in commands():
            with self.subTest(command=name):
                self.assertEqual(bold_options(section(text, name)),
                                 options_of(ask(harness.HEARTH, name, "--help")))

    def test_the_daemons_options(self):
        text = page_text("hearthd.8").partition(".SH OPTIONS")[2].partition(".SH SIGNALS")[0]
        self.assertEqual(bold_options(text), options_of(ask(harness.HEARTHD, "--help")))
        self.assertGreater(len(bold_options(text)), 5)

    def test_every_setting(self):
        names = re.findall(r"^(?:SETTING|OTHER)\((\w+)",
                           (harness.SOURCE / "lib/base/env.def").read_text(), re.M)
        shown = re.findall(r"^\.B ([A-Z]\w+)", page_text("hearth-env.7"), re.M)
        self.assertEqual(shown, names)

    def test_what_the_troubleshooting_names_exists(self):
        """Commands and their options, and settings, in the hand-written parts."""
        settings = (harness.SOURCE / "lib/base/env.def").read_text()
        for page in PAGES:
            text = (harness.SOURCE / f"tools/man/{page}.in").read_text().replace("\\-", "-")
            self.assertIn(".SH TROUBLESHOOTING", text)
            for setting in re.findall(r"\bHEARTH_\w+", text):
                self.assertIn(f"({setting},", settings, page)
            for name, rest in re.findall(r"\bhearth ([a-z]+)([^\"\n]*)", text):
                if name == "help":
                    continue
                self.assertIn(name, commands(), page)
                known = options_of(ask(harness.HEARTH, name, "--help")) | {"--"}
                self.assertLessEqual(set(OPTION.findall(rest.partition(" -- ")[0])), known)

    @unittest.skipUnless(shutil.which("groff"), "groff is not here")
    def test_groff_has_no_warning(self):
        for page in PAGES:
            done = self.run_program("groff", "-man", "-Tutf8", "-ww", "-z", MANUAL / page)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), page)

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not here")
    def test_mandoc_has_no_warning(self):
        for page in PAGES:
            done = self.run_program("mandoc", "-Tlint", "-Wwarning", MANUAL / page)
            self.assertEqual((done.returncode, done.stdout), (0, b""), page)

    def test_they_are_installed(self):
        plan = ask("meson", "introspect", harness.BUILD, "--installed") \
            if shutil.which("meson") else self.skipTest("meson is not here")
        for name in (*(f"man/man{page[-1]}/{page}" for page in PAGES),
                     "bash-completion/completions/hearth", "zsh/site-functions/_hearth",
                     "fish/vendor_completions.d/hearth.fish"):
            self.assertIn(f"/share/{name}\"", plan)


class Completions(harness.SystemTest):
    def options(self, name):
        return options_of(ask(harness.HEARTH, name, "--help"))

    def test_bash_file(self):
        text = (MANUAL / "hearth").read_text()
        for name in commands():
            words = re.search(rf'^\t{name}\) words="(.*?)"', text, re.M).group(1)
            self.assertEqual(set(OPTION.findall(words)), self.options(name) | {"--help"}, name)

    def test_zsh_file(self):
        text = (MANUAL / "_hearth").read_text()
        for name in commands():
            case = text.partition(f"\n\t{name})\n")[2].partition("\n\t\t;;")[0]
            shown = set(re.findall(r"^\t\t\t'(--?[a-z-]+)\[", case, re.M))
            self.assertEqual(shown, self.options(name) | {"--help"}, name)

    def test_fish_file(self):
        lines = (MANUAL / "hearth.fish").read_text().splitlines()
        for name in commands():
            shown = set()
            for line in lines:
                if f"'__fish_seen_subcommand_from {name}'" in line:
                    shown |= {f"--{word}" for word in re.findall(r" -l ([a-z-]+)", line)}
                    shown |= {f"-{word}" for word in re.findall(r" -s ([a-z])", line)}
            self.assertEqual(shown, self.options(name) | {"--help"}, name)

    def bash(self, *words):
        script = (f'. "{MANUAL}/hearth"\nCOMP_WORDS=("$@")\nCOMP_CWORD=$(($# - 1))\n_hearth\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"\n')
        done = self.run_program("bash", "-c", script, "bash", "hearth", *words)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode().split()

    def test_bash_completes(self):
        self.assertEqual(self.bash("sta"), ["status"])
        self.assertIn("--report", self.bash("run", "--re"))
        self.assertEqual(self.bash("run", "--task", "--re"), [])
        self.assertIn("bash", self.bash("run", "--task", "x", "bas"))
        self.assertEqual(self.bash("run", "python3", "--re"), [])
        self.assertEqual(self.bash("profile", "sho"), ["show"])
        self.assertEqual(self.bash("help", "en"), ["env", "entrypoint"])

    def test_the_shells_can_read_them(self):
        for shell, name in (("bash", "hearth"), ("zsh", "_hearth"), ("fish", "hearth.fish")):
            with self.subTest(shell=shell):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not here")
                done = self.run_program(shell, "-n", MANUAL / name)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def type(self, shell, setup, *typed):
        """What an interactive shell shows for it on a terminal."""
        path = shutil.which(shell[0])
        if not path:
            self.skipTest(f"{shell[0]} is not here")
        pid, terminal = pty.fork()
        if not pid:
            os.execve(path, shell, {**self.env, "TERM": "dumb", "PS1": "", "HOME": str(self.dir)})
        shown = ""
        os.write(terminal, (setup + "; echo rea''dy\n").encode())
        for keys, wanted in (("", "ready"), *typed):
            os.write(terminal, keys.encode())
            end = time.monotonic() + 20
            while wanted not in shown and time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    shown += os.read(terminal, 4096).decode(errors="replace")
                    shown = CONTROLS.sub("", shown)
            self.assertIn(wanted, shown)
            shown = ""
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)

    TYPED = (("hearth sta\t", "hearth status"), ("\x15hearth run --rep\t", "--report"))

    def test_bash_at_a_terminal(self):
        self.type(("bash", "--norc", "--noprofile", "-i"), f". {MANUAL}/hearth", *self.TYPED)

    def test_zsh_at_a_terminal(self):
        """Found in its path for functions, by its first line."""
        self.type(("zsh", "-f", "-i"), f"fpath=({MANUAL} $fpath); autoload -Uz compinit; "
                  "compinit -u -D", *self.TYPED)

    @unittest.skipUnless(LOADER.exists(), "bash-completion is not here")
    def test_bash_completion_finds_it(self):
        folder = self.dir / "completions"
        folder.mkdir()
        (folder / "hearth").symlink_to(MANUAL / "hearth")
        self.env["BASH_COMPLETION_USER_DIR"] = str(self.dir)
        done = self.run_program("bash", "--norc", "-c", f". {LOADER}; _completion_loader hearth; "
                                "complete -p hearth")
        self.assertIn(b"-F _hearth hearth", done.stdout, done.stderr)

    @unittest.skipUnless(shutil.which("fish"), "fish is not here")
    def test_fish_finds_it(self):
        folder = self.dir / "share/fish/vendor_completions.d"
        folder.mkdir(parents=True)
        (folder / "hearth.fish").symlink_to(MANUAL / "hearth.fish")
        self.env.update(HOME=str(self.dir), XDG_DATA_DIRS=str(self.dir / "share"),
                        PATH=f"{harness.HEARTH.parent}:{self.env['PATH']}")
        done = self.run_program("fish", "-c", "complete -C 'hearth sta'")
        self.assertIn(b"status\t", done.stdout, done.stderr)

    @unittest.skipUnless(shutil.which("fish"), "fish is not here")
    def test_fish_completes(self):
        self.env["HOME"] = str(self.dir)
        for line, word in (("hearth sta", "status"), ("hearth run --re", "--report"),
                           ("hearth profile sho", "show")):
            done = self.run_program("fish", "-c", f"source {MANUAL}/hearth.fish; "
                                    f"complete -C '{line}'")
            self.assertIn(word, [shown.split("\t")[0]
                                 for shown in done.stdout.decode().splitlines()], line)


if __name__ == "__main__":
    harness.main()
