"""Small programs that tests make for themselves, by the machine's own compiler."""
import os
import subprocess

import harness

CC = os.environ.get("CC", "cc").split()


def compile_c(target, *options, text="int main(void) { return 0; }", shared=False, compiler=None):
    """One file, compiled. Returns its path; CalledProcessError where the compiler can't."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source = target.with_name(target.name + ".c")
    source.write_text(text)
    kind = ["-shared", "-fPIC"] if shared else []
    command = [*(compiler or CC), *kind, "-o", target, source, *options]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, timeout=harness.DEADLINE_S)
    return target
