"""`hearth jupyter`: kernelspecs wrapped and restored; a real jupyter_client and ipykernel,
restarted under Hearth. These need PyPI, once per build."""
import json
import os
import shutil
import sys
import unittest

import harness
from kernels import VENV, why_no_jupyter

SPEC = {"argv": ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Ümlaut", "language": "python", "metadata": {"debugger": True}}
RESTARTS = 10
CONTEXT_SLACK_MIB = 16


class Kernelspecs(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "environment/share/jupyter"
        self.env["JUPYTER_PATH"] = f"relative:{self.data}"
        self.spec = self.add(self.data, "python3")

    def add(self, data, name, text=None):
        folder = data / "kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(text or json.dumps(SPEC, indent=1))
        return folder / "kernel.json"

    def jupyter(self, *words, status=0):
        done = self.run_program(harness.HEARTH, "jupyter", *words)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def test_installed_and_restored(self):
        before = self.spec.read_bytes()
        self.assertIn(str(self.spec).encode(), self.jupyter("install"))
        wrapped = json.loads(self.spec.read_text())
        self.assertEqual(wrapped["argv"],
                         [str(harness.HEARTH.resolve()), "run", "--", *SPEC["argv"]])
        self.assertEqual(wrapped["display_name"], SPEC["display_name"])
        self.assertTrue(wrapped["metadata"]["debugger"])
        self.assertIn(b"is as it was", self.jupyter("uninstall"))
        self.assertEqual(self.spec.read_bytes(), before)
        self.assertEqual(os.listdir(self.spec.parent), ["kernel.json"])

    def test_by_way_of_spares(self):
        before = self.spec.read_bytes()
        start = [str(harness.HEARTH.resolve()), "run"]
        modules = ("ipykernel.kernelapp,ipykernel.ipkernel,ipykernel.debugger,"
                   "IPython.core.completerlib,IPython.core.oinspect,"
                   "IPython.extensions.storemagic,tornado.platform.asyncio,psutil")
        for words, option in ((["--spare"], ["--spare", "--keep", modules]),
                              (["--spare", "--import", "a,b.c"],
                               ["--spare", "--keep", modules + ",a,b.c"]), ([], [])):
            self.assertIn(b"from now on", self.jupyter("install", *words))
            self.assertEqual(json.loads(self.spec.read_text())["argv"],
                             [*start, *option, "--", *SPEC["argv"]])
            self.assertIn(b"already", self.jupyter("install", *words))
        self.jupyter("uninstall")
        self.assertEqual(self.spec.read_bytes(), before)
        self.assertIn(b"'a,,b'", self.jupyter("install", "--spare", "--import", "a,,b", status=2))
        self.assertIn(b"--import", self.jupyter("install", "--import", "a", status=2))

    def test_kernelspecs_of_many_kinds_come_back_byte_for_byte(self):
        for text in ('{"argv":["python"],"argv":["x","y"]}', '{"argv":[""],"metadata":[1,2]}',
                     '{"argv":["python"],"metadata":null}', '\n {"argv":["python"]} \n\n',
                     '{"argv":["python"],"metadata":{"hearth":1}}',
                     '{"argv":["hearth","run","--","python"]}',
                     '{"argv":["p",3,null,{"a":1}],"env":{"X":"\\ud83d\\ude00"},"x":1.10}'):
            with self.subTest(text=text):
                self.spec.write_text(text)
                self.assertIn(b"from now on", self.jupyter("install"))
                self.assertIn(b"is as it was", self.jupyter("uninstall"))
                self.assertEqual(self.spec.read_text(), text)

    def test_both_can_be_asked_for_twice(self):
        before = self.spec.read_bytes()
        self.jupyter("install")
        once = self.spec.read_bytes()
        self.assertIn(b"already", self.jupyter("install"))
        self.assertEqual(self.spec.read_bytes(), once)
        self.jupyter("uninstall")
        self.assertIn(b"was not changed", self.jupyter("uninstall"))
        self.assertEqual(self.spec.read_bytes(), before)

    def test_a_kernelspec_that_was_written_anew_stays(self):
        self.jupyter("install")
        self.spec.write_text("{\"argv\": [\"new\"]}")
        self.jupyter("uninstall")
        self.assertEqual(self.spec.read_text(), "{\"argv\": [\"new\"]}")
        self.assertEqual(os.listdir(self.spec.parent), ["kernel.json"])

    def test_the_environments_own_python(self):
        """Jupyter would have put its own in the place of a bare "python3"."""
        python = self.dir / "environment/bin/python3"
        python.parent.mkdir()
        python.symlink_to(sys.executable)
        self.jupyter("install")
        self.assertEqual(json.loads(self.spec.read_text())["argv"][3], str(python))

    def test_by_name_and_place(self):
        del self.env["JUPYTER_PATH"]
        self.env["HOME"] = str(self.dir)
        self.add(self.dir / ".local/share/jupyter", "mine")
        self.add(self.dir / "active/share/jupyter", "theirs")
        self.jupyter("install", "--kernel", "mine")
        self.assertIn(b"VIRTUAL_ENV",
                      self.jupyter("install", "--kernel", "theirs", status=1))
        self.env["VIRTUAL_ENV"] = str(self.dir / "active")
        self.jupyter("install", "--kernel", "theirs")

    def test_beside_the_jupyter_in_path(self):
        """An environment whose bin is in PATH and that is not activated, also by a link."""
        del self.env["JUPYTER_PATH"]
        self.env["HOME"] = str(self.dir)
        bin_folder = self.dir / "environment/bin"
        bin_folder.mkdir()
        links = self.dir / "links"
        links.mkdir()
        for name in ("jupyter", "python3"):
            (bin_folder / name).write_text("#!/bin/sh\n")
            (bin_folder / name).chmod(0o755)
        (links / "jupyter").symlink_to(bin_folder / "jupyter")
        path = self.env["PATH"]
        self.assertIn(b"no kernelspec", self.jupyter("install", status=1))
        for folder in (bin_folder, links):
            self.env["PATH"] = f"relative:/none:{folder}:{path}"
            self.assertIn(str(self.spec).encode(), self.jupyter("install"))
            self.jupyter("uninstall")
        # Jupyter's order: the user's before any prefix but an environment's.
        users = self.add(self.dir / ".local/share/jupyter", "python3")
        self.assertIn(str(users).encode(), self.jupyter("install"))
        # A bare "python3" is Jupyter's own, natively.
        self.assertEqual(json.loads(users.read_text())["argv"][3], str(bin_folder / "python3"))
        self.jupyter("uninstall")
        (self.dir / "environment/pyvenv.cfg").touch()
        self.assertIn(str(self.spec).encode(), self.jupyter("install"))

    def test_a_folder_in_other_letters(self):
        spec = self.add(self.data, "MyKernel")
        self.assertIn(str(spec).encode(), self.jupyter("install", "--kernel", "mykernel"))

    def test_folders_with_blanks_and_other_letters(self):
        spec = self.add(self.dir / "\u00dcber \'uns\'", "x")
        self.env["JUPYTER_PATH"] = str(self.dir / "\u00dcber \'uns\'")
        before = spec.read_bytes()
        self.assertIn(str(spec).encode(), self.jupyter("install", "--kernel", "x"))
        self.jupyter("uninstall", "--kernel", "x")
        self.assertEqual(spec.read_bytes(), before)

    def test_what_was_edited_meanwhile_stays(self):
        for edit in (lambda spec: spec.update(env={"A": "1"}),
                     lambda spec: spec["argv"].append("--debug"),
                     lambda spec: spec["metadata"].update(more=1),
                     lambda spec: spec.update(metadata={"hearth": "0"})):
            self.spec.write_text(json.dumps(SPEC))
            self.jupyter("install")
            wrapped, wanted = json.loads(self.spec.read_text()), json.loads(json.dumps(SPEC))
            edit(wrapped)
            edit(wanted)
            wanted["metadata"].pop("hearth", None)
            self.spec.write_text(json.dumps(wrapped))
            self.assertIn(b"what was edited meanwhile has stayed", self.jupyter("uninstall"))
            self.assertEqual(json.loads(self.spec.read_text()), wanted)
            self.assertEqual(os.listdir(self.spec.parent), ["kernel.json"])

    def test_an_edited_argv_can_be_wrapped_again(self):
        before = self.spec.read_bytes()
        self.jupyter("install")
        edited = json.loads(self.spec.read_text())
        edited["argv"] = ["mine", "-f", "{connection_file}"]
        self.spec.write_text(json.dumps(edited))
        self.assertIn(b"from now on", self.jupyter("install"))
        self.assertEqual(json.loads(self.spec.read_text())["argv"][3], "mine")
        backup = self.spec.parent / "kernel.json.before-hearth"
        self.assertEqual(backup.read_bytes(), before)
        self.jupyter("uninstall")
        self.assertEqual(json.loads(self.spec.read_text()), {**SPEC, "argv": edited["argv"]})

    def test_what_was_kept_is_lost(self):
        self.jupyter("install")
        (self.spec.parent / "kernel.json.before-hearth").unlink()
        self.assertIn(b"without Hearth", self.jupyter("uninstall"))
        self.assertEqual(json.loads(self.spec.read_text()), SPEC)

    def test_the_kernelspec_went_while_it_was_wrapped(self):
        """As pip takes away the file that it has put there."""
        self.jupyter("install")
        self.spec.unlink()
        self.assertIn(b"no kernelspec", self.jupyter("install", status=1))
        self.jupyter("uninstall")
        self.assertEqual(os.listdir(self.spec.parent), [])

    def test_upgraded_in_between_and_installed_again(self):
        self.jupyter("install")
        self.spec.write_text("{\"argv\": [\"new\"]}")
        self.jupyter("install")
        self.assertEqual(json.loads(self.spec.read_text())["argv"][2:], ["--", "new"])
        self.jupyter("uninstall")
        self.assertEqual(self.spec.read_text(), "{\"argv\": [\"new\"]}")

    def test_another_hearth_takes_the_place_of_the_first(self):
        other = self.dir / "other"
        for name in ("bin", "lib/hearth"):
            (other / name).mkdir(parents=True)
        shutil.copy(harness.HEARTH, other / "bin")
        shutil.copy(harness.PRELOAD, other / "lib/hearth")
        before = self.spec.read_bytes()
        self.jupyter("install")
        done = self.run_program(other / "bin/hearth", "jupyter", "install")
        self.assertIn(b"libhearth-alias.so", done.stderr)
        self.assertEqual(done.returncode, 1)
        shutil.copy(harness.PRELOAD.parent / "libhearth-alias.so", other / "lib/hearth")
        done = self.run_program(other / "bin/hearth", "jupyter", "install")
        self.assertIn(b"from now on", done.stdout, done.stderr)
        argv = json.loads(self.spec.read_text())["argv"]
        self.assertEqual(argv, [str(other / "bin/hearth"), "run", "--", *SPEC["argv"]])
        self.jupyter("uninstall")
        self.assertEqual(self.spec.read_bytes(), before)

    def test_a_link_and_its_times_come_back(self):
        real = self.dir / "store.json"
        self.spec.rename(real)
        self.spec.symlink_to(real)
        os.utime(real, (1, 1))
        self.jupyter("install")
        self.assertFalse(self.spec.is_symlink())
        self.assertEqual(json.loads(real.read_text()), SPEC)
        self.jupyter("uninstall")
        self.assertEqual((os.readlink(self.spec), real.stat().st_mtime), (str(real), 1))

    @harness.as_another
    def test_a_folder_that_cannot_be_written(self):
        before = self.spec.read_bytes()
        self.dir.chmod(0o755)
        as_another = ("setpriv", f"--reuid={harness.OTHER_USER}", f"--regid={harness.OTHER_USER}",
                      "--clear-groups", harness.HEARTH, "jupyter")
        done = self.run_program(*as_another, "install")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.spec}: Permission denied".encode(), done.stderr)
        self.assertEqual(os.listdir(self.spec.parent), ["kernel.json"])
        self.jupyter("install")
        wrapped = self.spec.read_bytes()
        done = self.run_program(*as_another, "uninstall")
        self.assertIn(f"{self.spec}: Permission denied".encode(), done.stderr)
        self.assertEqual((done.returncode, self.spec.read_bytes()), (1, wrapped))
        self.jupyter("uninstall")
        self.assertEqual(self.spec.read_bytes(), before)

    def test_what_cannot_be(self):
        self.assertIn(b"'none'", self.jupyter("install", "--kernel", "none", status=1))
        self.assertIn(b"'../x'", self.jupyter("install", "--kernel", "../x", status=2))
        self.assertIn(b"'list'", self.jupyter("list", status=2))
        for text in ("{", "[]", "{\"argv\": []}", "{\"argv\": [1]}", "", "\0", "null",
                     "{\"argv\": \"python3\"}", "{\"argv\": [\"a\\u0000b\"]}", "[" * 100000):
            self.spec.write_text(text)
            self.assertIn(b"not a kernelspec", self.jupyter("install", status=1))
            self.assertEqual(self.spec.read_text(), text)
            self.assertEqual(os.listdir(self.spec.parent), ["kernel.json"])

    def test_the_task_is_the_notebook(self):
        for more, task in (({}, b"work.ipynb"), ({"HEARTH_TASK": "mine"}, b"mine")):
            done = self.run_program(harness.HEARTH, "run", "sh", "-c", "echo $HEARTH_TASK",
                                    env={**self.env, "JPY_SESSION_NAME": "/a/work.ipynb", **more})
            self.assertEqual(done.stdout, task + b"\n")
        self.run_program(harness.HEARTH, "stop")


class Restarts(harness.SystemTest):
    def setUp(self):
        super().setUp()
        reason = why_no_jupyter()
        if reason:
            self.skipTest(f"jupyter_client and ipykernel cannot be had: {reason}")
        # A kernelspec of the test's own, in an environment whose python is the other's.
        environment = self.dir / "environment"
        shutil.copytree(VENV / "share/jupyter", environment / "share/jupyter")
        (environment / "bin").mkdir()
        for name in ("python", "python3"):
            (environment / "bin" / name).write_text(f"#!/bin/sh\nexec {VENV}/bin/python \"$@\"\n")
            (environment / "bin" / name).chmod(0o755)
        self.env.update(JUPYTER_PATH=str(environment / "share/jupyter"), HOME=str(self.dir),
                        LD_LIBRARY_PATH=str(harness.SIM.parent))
        self.addCleanup(self.run_program, harness.HEARTH, "stop")
        self.hearth("jupyter", "install")
        self.hearth("doctor", "--prove")

    def hearth(self, *words):
        done = self.run_program(harness.HEARTH, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_ten_restarts_five_by_sigkill(self):
        done = self.run_program(VENV / "bin/python",
                                harness.SOURCE / "tests/programs/jupyter_restarts.py", "python3",
                                RESTARTS, "sim", timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr.decode()[-2000:])
        seen = json.loads(done.stdout.splitlines()[-1])
        starts = seen["starts"]
        self.assertEqual((len(starts), sum(start["after_kill"] for start in starts)),
                         (RESTARTS + 1, RESTARTS // 2))
        self.assertFalse(any(start["failed"] for start in starts))
        # One context lives at each time, and none at the end.
        used = [start["used_mib"] for start in starts]
        self.assertLessEqual(max(used) - min(used), CONTEXT_SLACK_MIB, used)
        self.assertGreater(min(used), seen["baseline_mib"])
        self.assertLessEqual(seen["after_mib"], seen["baseline_mib"] + CONTEXT_SLACK_MIB)
        runs = json.loads(self.hearth("report", "--json", "-n", "99"))["runs"]
        kernels = [run for run in runs if run["task"] == "work.ipynb"]
        self.assertEqual(len(kernels), RESTARTS + 1)
        ahead = [record["how"] for run in kernels[1:] for record in run["records"]
                 if record["call"] == "cuInit"]
        self.assertGreaterEqual(ahead.count("speculated"), RESTARTS - 2, ahead)
        text = self.hearth("report", "-n", "99").decode()
        self.assertIn(f"work.ipynb: started {RESTARTS + 1} times, ", text)
        self.assertEqual(text.count("task work.ipynb"), 1)


if __name__ == "__main__":
    harness.main()
