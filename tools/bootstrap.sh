# Sourced by tools/quickstart and tools/check: sees to it that what they need is there.
#
# As root on Debian or Ubuntu it installs packages with apt-get. Anyone else gets meson and ninja
# from PyPI in build/venv and, where apt-get is there, libjansson-dev unpacked (not installed) in
# build/deps; only cc and python3 must be there before. It never uses sudo, says first what it
# will install and where, and prints on stderr only.
#
# Adds build/venv/bin to PATH and build/deps to CPATH and LIBRARY_PATH where they
# are used. MISSING lists what could not be had, which only some tests want.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/build/venv
DEPS=$ROOT/build/deps
MESON_PIN=meson==1.3.2
NINJA_PIN=ninja==1.11.1.1
# The one version whose layout the sources keep: Debian 12's, and to be had from PyPI too.
FORMAT_MAJOR=14
FORMAT_PIN=clang-format==14.0.6
MISSING=()

say()
{
	printf 'hearth: %s\n' "$*" >&2
}

die()
{
	say "$*"
	exit 1
}

have()
{
	command -v "$1" >/dev/null 2>&1
}

# compiles HEADER [LIBRARY]: can cc include it, and link the library?
compiles()
{
	printf '#include <%s>\nint main(void) { return 0; }\n' "$1" |
		cc -x c - -o /dev/null ${2:+-l"$2"} >/dev/null 2>&1
}

# Debian 11's meson 0.56 and older cannot read our build files.
have_meson()
{
	have meson && meson --version 2>/dev/null |
		awk -F. '{ found = $1 >= 1 } END { exit !found }'
}

have_clang_format()
{
	clang_format >/dev/null
}

# Prints the command of the pinned clang-format, or fails.
clang_format()
{
	local name

	for name in "clang-format-$FORMAT_MAJOR" clang-format; do
		if have "$name" && "$name" --version | grep -q "version $FORMAT_MAJOR\."; then
			printf '%s\n' "$name"
			return 0
		fi
	done
	return 1
}

# wanted WHAT: the Debian packages that are missing, for `build` or for `check`.
wanted()
{
	compiles stdio.h || printf '%s\n' gcc libc6-dev
	have_meson || printf '%s\n' meson
	have ninja || printf '%s\n' ninja-build
	have pkg-config || printf '%s\n' pkg-config
	compiles jansson.h jansson || printf '%s\n' libjansson-dev
	[ "$1" = check ] || return 0
	compiles criterion/criterion.h criterion || printf '%s\n' libcriterion-dev
	have clang || printf '%s\n' clang
	have_clang_format || printf '%s\n' "clang-format-$FORMAT_MAJOR"
}

bootstrap_apt()
{
	local packages

	mapfile -t packages < <(wanted "$1")
	if [ ${#packages[@]} = 0 ]; then
		say "nothing to install"
		return 0
	fi
	say "will install with apt-get, for the whole machine: ${packages[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update </dev/null >&2 || say "apt-get update failed; trying what is known here"
	apt-get -q install -y --no-install-recommends "${packages[@]}" </dev/null >&2 ||
		die "apt-get could not install: ${packages[*]}"
}

# The shells whose completions are tested, where the machine's archive has them.
bootstrap_shells()
{
	local packages=()

	have zsh || packages+=(zsh)
	have fish || packages+=(fish)
	[ -e /usr/share/bash-completion/bash_completion ] || packages+=(bash-completion)
	[ ${#packages[@]} = 0 ] && return 0
	say "will install with apt-get, if it can be: ${packages[*]}"
	apt-get -q install -y --no-install-recommends "${packages[@]}" </dev/null >&2 ||
		say "apt-get could not install: ${packages[*]}; what tests them is skipped"
}

# fetch_package NAME: unpack a Debian package in build/deps, without installing it.
fetch_package()
{
	local apt=(apt-get -q) state=$DEPS/apt

	mkdir -p "$state/lists/partial" "$state/archives/partial" "$DEPS/debs" || return 1
	cd "$DEPS/debs" || return 1
	rm -f "$1"_*.deb
	if ! "${apt[@]}" download "$1" >/dev/null 2>&1; then
		# The machine keeps no package lists (as container images do): fetch our own.
		apt+=(-o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state"
			-o Dir::State::status=/var/lib/dpkg/status)
		"${apt[@]}" update </dev/null >&2 && "${apt[@]}" download "$1" </dev/null >&2 ||
			return 1
	fi
	dpkg -x "$1"_*.deb "$DEPS"
}

# Makes build/venv with a pip, also where Debian left ensurepip out.
make_venv()
{
	local wheel

	"$VENV/bin/python3" -m pip --version >/dev/null 2>&1 && return 0
	rm -rf "$VENV"
	python3 -m venv "$VENV" >/dev/null 2>&1 && return 0
	rm -rf "$VENV"
	python3 -m venv --without-pip "$VENV" >&2 ||
		die "python3 has no venv module: install python3-venv"
	have apt-get && (fetch_package python3-pip-whl) ||
		die "python3 has no ensurepip: install python3-venv"
	wheel=$(ls "$DEPS"/usr/share/python-wheels/pip-*.whl | tail -1)
	"$VENV/bin/python3" "$wheel/pip" install --quiet --no-index "$wheel" >&2 ||
		die "$wheel: could not install it in $VENV"
}

bootstrap_user()
{
	local pip=() jansson=no multiarch

	compiles stdio.h || die "no C compiler: install gcc and libc6-dev (or run this as root)"
	if ! have_meson || ! have ninja; then
		pip=("$MESON_PIN" "$NINJA_PIN")
	fi
	if [ "$1" = check ] && ! have_clang_format; then
		pip+=("$FORMAT_PIN")
	fi
	compiles jansson.h jansson || jansson=yes

	if [ ${#pip[@]} = 0 ] && [ $jansson = no ]; then
		say "nothing to install"
	fi
	if [ ${#pip[@]} != 0 ]; then
		say "will install from PyPI, in $VENV only: ${pip[*]}"
	fi
	if [ $jansson = yes ]; then
		have apt-get || die "jansson.h not found: install jansson's development files"
		say "will unpack, in $DEPS only: libjansson-dev"
	fi

	if [ ${#pip[@]} != 0 ]; then
		make_venv
		"$VENV/bin/python3" -m pip install --quiet --disable-pip-version-check \
			"${pip[@]}" </dev/null >&2 || die "pip could not install: ${pip[*]}"
	fi
	if [ $jansson = yes ]; then
		(fetch_package libjansson-dev) || die "libjansson-dev could not be fetched"
		# Without libjansson.so beside it the linker takes libjansson.a.
		find "$DEPS/usr/lib" -name 'libjansson.so*' -delete
	fi
}

use_local_installs()
{
	local multiarch

	if [ -d "$VENV/bin" ]; then
		PATH=$VENV/bin:$PATH
	fi
	if [ -e "$DEPS/usr/include/jansson.h" ]; then
		multiarch=$(cc -print-multiarch)
		export CPATH=$DEPS/usr/include${CPATH:+:$CPATH}
		export LIBRARY_PATH=$DEPS/usr/lib/$multiarch${LIBRARY_PATH:+:$LIBRARY_PATH}
	fi
}

# bootstrap WHAT: `build` for what a build needs, `check` for all tests as well.
bootstrap()
{
	[ "$(uname -m)" = x86_64 ] || die "$(uname -m): Hearth builds on x86-64 only"
	have python3 || die "python3 not found: install python3"
	use_local_installs
	if [ "$(id -u)" = 0 ] && have apt-get; then
		bootstrap_apt "$1"
		[ "$1" != check ] || bootstrap_shells
	else
		bootstrap_user "$1"
	fi
	use_local_installs
	[ "$1" = check ] || return 0
	compiles criterion/criterion.h criterion ||
		MISSING+=("Criterion: unit tests run in plain children")
	have clang || MISSING+=("clang: its build is skipped")
	have zsh || MISSING+=("zsh: its completions are not tried")
	have fish || MISSING+=("fish: its completions are not tried")
	have_clang_format || MISSING+=("clang-format $FORMAT_MAJOR: layout is not checked")
}
