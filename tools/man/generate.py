"""Makes man pages and shell completions from what the programs say of themselves, so that an
option is described once: `generate.py WHAT HEARTH HEARTHD TEMPLATE OUTPUT` with WHAT one of page,
bash, zsh and fish. TEMPLATE is a page's, "-" for the others. Standard library only."""
import re
import subprocess
import sys
from pathlib import Path

ENTRY = re.compile(r"^ {2,4}(\S+(?: \S+)*)(?: {2,}(\S.*))?$")
OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)(?:[= ]([A-Z]+))?")


class Help:
    """A help text: its usage, its paragraphs, and entries ([left, description])."""

    def __init__(self, text):
        usage, _, rest = text.partition("\n\n")
        self.usage = usage.partition("usage: ")[2]
        self.parts = []
        for block in rest.strip("\n").split("\n\n"):
            lines = block.split("\n")
            if lines[0].startswith("  "):
                self.parts.append(_entries(lines))
            else:
                self.parts.append(" ".join(lines))
        self.summary = self.parts[0] if isinstance(self.parts[0], str) else ""

    def entries(self):
        return [entry for part in self.parts if isinstance(part, list) for entry in part]

    def options(self):
        """[(name, value's name or "", description)], each name once."""
        found = {}
        for left, text in self.entries():
            for name, value in OPTION.findall(left):
                found.setdefault(name, (value, text))
        for name, value in OPTION.findall(self.usage):
            found.setdefault(name, (value, ""))
        return [(name, value, text) for name, (value, text) in found.items()]

    def words(self):
        """Subcommands: entries that begin with a lower-case word."""
        return list(dict.fromkeys(left.split()[0] for left, _ in self.entries()
                                  if re.match(r"[a-z]", left)))

    def takes_program(self):
        return re.search(r"(?<!\w)PROGRAM \[ARGUMENT", self.usage) is not None


def _entries(lines):
    found = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        match = ENTRY.match(line) if indent <= 4 else None
        if match:
            found.append([match.group(1), match.group(2) or ""])
        else:
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
    return found


def ask(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True,
                          stdin=subprocess.DEVNULL).stdout


def commands(hearth):
    """{name: Help}, in the order in which `hearth help` lists them."""
    listed = re.findall(r"^  ([a-z]+) {2,}\S", ask(hearth, "help"), re.M)
    return {name: Help(ask(hearth, name, "--help")) for name in listed}


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def roff(parts):
    lines = []
    for part in parts:
        if isinstance(part, str):
            lines += [".PP", escape(part)]
            continue
        for left, text in part:
            lines += [".TP", f".B {escape(left)}", escape(text)]
    return lines


def command_sections(hearth):
    lines = []
    for name, shown in commands(hearth).items():
        lines += [f".SS {name}", f".B {escape(shown.usage)}", *roff(shown.parts)]
    return lines


def daemon_options(hearthd):
    parts = [part for part in Help(ask(hearthd, "--help")).parts if isinstance(part, list)]
    return roff(parts)


def settings(hearth, is_own):
    """`hearth help env`: lines NAME=VALUES or NAME, each with its description below."""
    lines = []
    for name, text in re.findall(r"^(\S+)\n    (.*)$", ask(hearth, "help", "env"), re.M):
        if ("=" in name) == is_own:
            lines += [".TP", f".B {escape(name)}", escape(text)]
    return lines


def page(hearth, hearthd, template):
    text = Path(template).read_text()
    version = ask(hearth, "--version").split()[1]
    for mark, made in (("@COMMANDS@", lambda: command_sections(hearth)),
                       ("@OPTIONS@", lambda: daemon_options(hearthd)),
                       ("@SETTINGS@", lambda: settings(hearth, True)),
                       ("@READ@", lambda: settings(hearth, False))):
        if mark in text:
            text = text.replace(mark, "\n".join(made()))
    return text.replace("@VERSION@", version)


BASH = """# Completion of hearth(1) in bash.
_hearth()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local words values= program= i

	case ${COMP_WORDS[1]-} in
@CASES@
	*) words= ;;
	esac
	if [ "$COMP_CWORD" -eq 1 ]; then
		words="@COMMANDS@ help --help --version"
	elif [[ " $values " == *" $before "* ]]; then
		return # its value: a file, as far as we know
	elif [ -n "$program" ]; then
		for ((i = 2; i < COMP_CWORD; i++)); do
			case ${COMP_WORDS[i]} in
			--) ;;
			-*) [[ " $values " == *" ${COMP_WORDS[i]} "* ]] && ((i++)) ;;
			*) return ;; # the program's own arguments
			esac
		done
		[[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -c -- "$word"); return; }
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _hearth hearth
"""


def bash(hearth):
    every, cases = commands(hearth), []
    for name, shown in every.items():
        options = shown.options()
        words = " ".join([*shown.words(), *(option for option, _, _ in options), "--help"])
        values = " ".join(option for option, value, _ in options if value)
        cases.append(f'\t{name}) words="{words}" values="{values}" '
                     f'program={"yes" if shown.takes_program() else ""} ;;')
    cases.append(f'\thelp) words="env {" ".join(every)}" ;;')
    return BASH.replace("@CASES@", "\n".join(cases)).replace("@COMMANDS@", " ".join(every))


def quoted(text):
    return text.replace("'", "'\\''")


def zsh(hearth):
    every = commands(hearth)
    lines = ["#compdef hearth", "# Completion of hearth(1) in zsh.", "_hearth()", "{",
             "\tlocal -a commands", "\tif ((CURRENT == 2)); then", "\t\tcommands=("]
    for name, shown in every.items():
        lines.append(f"\t\t\t'{name}:{quoted(shown.summary)}'")
    lines += ["\t\t\t'help:explain a command, or env'", "\t\t)",
              "\t\t_describe command commands", "\t\tcompadd -- --help --version",
              "\t\treturn", "\tfi", "\tshift words", "\t((CURRENT--))", "\tcase $words[1] in"]
    for name, shown in every.items():
        lines += [f"\t{name})", "\t\t_arguments -S \\", "\t\t\t'--help[explain]' \\"]
        for option, value, text in shown.options():
            clean = re.sub(r"[\[\]:]", " ", text)
            take = f":{value}:_files" if value else ""
            lines.append(f"\t\t\t'{option}[{quoted(clean)}]{take}' \\")
        rest = "'*:: :_normal'" if shown.takes_program() else "'*:file:_files'"
        if shown.words():
            rest = f"'1:word:({' '.join(shown.words())})' '*:file:_files'"
        lines += [f"\t\t\t{rest}", "\t\t;;"]
    lines += [f"\thelp) compadd -- env {' '.join(every)} ;;", "\tesac", "}", "_hearth \"$@\""]
    return "\n".join(lines) + "\n"


def fish(hearth):
    every = commands(hearth)
    first = "complete -c hearth -n __fish_use_subcommand"
    lines = ["# Completion of hearth(1) in fish.", f"{first} -l help", f"{first} -l version",
             f"{first} -f -a help -d 'explain a command, or env'"]
    for name, shown in every.items():
        seen = f"complete -c hearth -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{first} -f -a {name} -d '{quoted(shown.summary)}'", f"{seen} -l help"]
        for option, value, text in shown.options():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"{seen} {kind}{' -r' if value else ''} -d '{quoted(text)}'")
        for word in shown.words():
            lines.append(f"{seen} -f -a {word}")
        if shown.takes_program():
            lines.append(f"{seen} -a '(__fish_complete_subcommand)'")
    lines.append("complete -c hearth -n '__fish_seen_subcommand_from help' -f "
                 f"-a 'env {' '.join(every)}'")
    return "\n".join(lines) + "\n"


def main():
    what, hearth, hearthd, template, output = sys.argv[1:]
    makers = {"page": lambda: page(hearth, hearthd, template), "bash": lambda: bash(hearth),
              "zsh": lambda: zsh(hearth), "fish": lambda: fish(hearth)}
    Path(output).write_text(makers[what]())


if __name__ == "__main__":
    main()
