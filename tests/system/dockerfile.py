"""As much of a Dockerfile as the README uses, run in a Container."""
import json
import shlex
from pathlib import Path


class Dockerfile:
    """Reads the text; raises ValueError for an instruction it does not know, so that an example
    that nobody runs cannot get into the README."""

    def __init__(self, text):
        self.env, self.copies = {}, []
        self.entrypoint, self.command = [], []
        self.folder, self.user = "/", None
        for line in text.splitlines():
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            word, _, rest = line.strip().partition(" ")
            self._read(word, rest.strip())

    def _read(self, word, rest):
        if word == "FROM":
            return
        if word == "ENV":
            for setting in shlex.split(rest):
                name, is_set, value = setting.partition("=")
                if not is_set:
                    raise ValueError(f"ENV {rest}: no '='")
                self.env[name] = value
        elif word == "COPY":
            source, target = shlex.split(rest)
            self.copies.append((source, target))
        elif word == "WORKDIR":
            self.folder = rest
        elif word == "USER":
            self.user = int(rest)
        elif word == "ENTRYPOINT":
            self.entrypoint = json.loads(rest)
        elif word == "CMD":
            self.command = json.loads(rest)
        else:
            raise ValueError(f"{word}: not an instruction that the tests know")

    def build(self, container, context):
        """COPY from the folder `context` into the container's root; its usr/ is there already."""
        for source, target in self.copies:
            path = Path(context) / source
            if not path.exists():
                raise ValueError(f"COPY {source}: not in {context}")
            if target == "/":
                continue
            container.add(path, f"{target}{source}" if target.endswith("/") else target)

    def run(self, container, env=None, command=None):
        """As `docker run IMAGE [COMMAND]`: entry point and command, or the command given."""
        return container.run([*self.entrypoint, *(command or self.command)],
                             env={**self.env, **(env or {})}, cwd=self.folder)
