"""A hearth installed with stand-ins, and the questions that tests put to its doctor."""
import json
import os
import shutil
import tempfile
from pathlib import Path

import harness
from compiled import compile_c

EXPLAINED = (harness.SOURCE / "lib/doctor/README.md").read_text()


class DoctorTest(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        """hearth installed with a libhearth.so that has only its name, and a driver likewise."""
        cls.made = Path(tempfile.mkdtemp(prefix="hearth-doctor-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        cls.made.chmod(0o755)
        (cls.made / "bin").mkdir()
        cls.hearth = shutil.copy(harness.HEARTH, cls.made / "bin/hearth")
        cls.library = compile_c(cls.made / "lib/hearth/libhearth.so", "-Wl,-soname,libcuda.so.1",
                                shared=True, text="int cuInit(int flags) { return flags; }")
        cls.driver = compile_c(cls.made / "driver/libcuda.so.1", "-Wl,-soname,libcuda.so.1",
                               shared=True, text="int cuInit(int flags) { return flags; }")
        (cls.made / "driver/libcuda.so").symlink_to("libcuda.so.1")
        cls.plain = compile_c(cls.made / "programs/plain")
        cls.libc_loader = b"/lib64/ld-linux-x86-64.so.2"

    def setUp(self):
        super().setUp()
        self.dir.chmod(0o755)
        self.env.update(HEARTH_DRIVER=str(self.driver), HOME=str(self.dir),
                        HEARTH_SOCKET=str(self.dir / "no-broker"))

    def doctor(self, *words, env=None, **options):
        """The exit status, and the findings by id."""
        done = self.run_program(self.hearth, "doctor", "--json", *words, env=env, **options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        answer = json.loads(done.stdout)
        self.answer = answer
        for finding in answer["findings"]:
            self.assertIn(f"`{finding['id']}`", EXPLAINED)
        return done.returncode, {finding["id"]: finding for finding in answer["findings"]}

    def assert_not_intercepted(self, why, *words, **options):
        status, findings = self.doctor("--", *words, **options)
        self.assertIn(why, findings)
        self.assertEqual(findings[why]["severity"], "problem", findings)
        self.assertEqual((status, self.answer["intercepted"]), (1, False), findings)
        return findings

    def assert_intercepted(self, *words, **options):
        status, findings = self.doctor("--", *words, **options)
        self.assertEqual((status, self.answer["intercepted"]), (0, True), findings)
        return findings

    def script(self, name, text):
        path = self.dir / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def with_preload(self, library):
        """The environment of a doctor that itself runs under this preload. The option is for a
        doctor built with ASan, as tools/check builds it."""
        return {**self.env, "LD_PRELOAD": str(library),
                "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def named(self, name, source=None):
        """A program of that name, first in PATH."""
        folder = self.dir / "path"
        folder.mkdir(exist_ok=True)
        shutil.copy(source or self.plain, folder / name)
        self.env["PATH"] = f"{folder}:{os.environ['PATH']}"
