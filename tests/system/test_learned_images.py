"""What a run teaches about the images and kernels that it loads: only that, all of it, also where
it is killed; and how that ages, moves and is kept."""
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import harness
from images import BARE, OTHER, PLUGIN, ImagesTest

FAT_MAGIC = (0xba55ed50).to_bytes(4, "little")
WRAPPER_MAGIC = (0x466243b1).to_bytes(4, "little")
PTX = "//|.version 8.0|.target sm_90|.visible .entry compiled() {}"
HEAP = "SIMCUDA1|kernel heap add"
AGE_MAX = 8


def content(text):
    """What the loader makes of it on the heap."""
    return text.replace("|", "\n").encode() + b"\0"


def digest(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


class Recorded(ImagesTest):
    def test_images_in_files_by_their_place_in_order_of_first_use(self):
        self.load(f"lib={PLUGIN}:2", f"kept={OTHER}:0", f"mod={PLUGIN}:1", f"lib={PLUGIN}:0")
        rows = self.images()
        self.assertEqual([row["file"] for row in rows],
                         [str(PLUGIN), str(OTHER), str(PLUGIN), str(PLUGIN)])
        self.assertEqual([row["entry"] for row in rows],
                         ["cuLibraryLoadData"] * 2 + ["cuModuleLoadFatBinary", "cuLibraryLoadData"])
        self.assertEqual([row["options"] for row in rows], [[], [[1, 1]], [], []])
        self.assertEqual(len({row["build_id"] for row in rows}), 2)
        for row in rows:
            data = Path(row["file"]).read_bytes()
            image = data[row["offset"]:][:row["size"]]
            self.assertEqual(image[:4], FAT_MAGIC)
            self.assertEqual(digest(image[:4096]), row["digest"])
            self.assertTrue(row["replayable"])
            if row["wrapper"] is not None:
                self.assertEqual(data[row["wrapper"]:][:4], WRAPPER_MAGIC)
        self.assertEqual([row["wrapper"] is None for row in rows], [False, False, True, False])

    def test_without_a_build_id_all_of_the_image_counts(self):
        self.load(f"lib={BARE}:0")
        (row,) = self.images()
        data = BARE.read_bytes()
        self.assertIsNone(row["build_id"])
        self.assertEqual(digest(data[row["offset"]:][:row["size"]]), row["digest"])

    def test_images_on_the_heap_are_kept_by_their_content(self):
        other = HEAP + "|kernel other add"
        self.load(f"heap={HEAP}", f"heapmod={other}")
        rows = self.images()
        self.assertEqual([row["digest"] for row in rows],
                         [digest(content(HEAP)), digest(content(other))])
        for row in rows:
            self.assertIsNone(row["file"])
            path = self.states / "images" / row["digest"][:32]
            self.assertEqual(digest(path.read_bytes()), row["digest"])
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE((self.states / "images").stat().st_mode), 0o700)

    def test_what_is_compiled_is_listed_and_not_kept(self):
        self.load(f"heap={PTX}")
        (row,) = self.images()
        self.assertTrue(row["jit"])
        self.assertFalse(row["replayable"])
        self.assertFalse((self.states / "images").exists())

    def test_what_was_loaded_with_options_for_the_compiler_is_not_replayable(self):
        self.load(f"jit={HEAP}")
        (row,) = self.images()
        self.assertEqual((row["jit"], row["replayable"], row["reason"], row["jit_options"]),
                         (False, False, "jit option 4: not loaded ahead", []))

    def test_options_without_values_and_plain_ones_for_the_compiler_are_kept(self):
        self.load(f"novalues={HEAP}", f"plainjit={HEAP}")
        rows = self.images()
        self.assertEqual([(row["options"], row["jit_options"], row["replayable"], row["reason"])
                          for row in rows],
                         [([[1, None]], [], True, ""), ([], [[7, 3]], True, "")])

    def test_whole_files(self):
        text, ptx = self.dir / "add.simcuda", self.dir / "compiled.ptx"
        text.write_text("SIMCUDA1\nkernel add add\n")
        ptx.write_bytes(content(PTX)[:-1])
        self.load(f"file={text}", f"filelib={ptx}", f"file={text}")
        rows = self.images()
        self.assertEqual([(row["file"], row["jit"], row["loads"]) for row in rows],
                         [(str(text), False, 2), (str(ptx), True, 1)])
        self.assertEqual(rows[0]["digest"], digest(text.read_bytes()))

    def test_kernels_by_name_and_which_became_functions(self):
        self.load(f"lib={PLUGIN}:0", "kernel=fill_1_0", "made", "kernel=spin_1_0",
                  "kernel=fill_1_0", f"mod={PLUGIN}:1", "function=scale_1_1", "kernel=nothing")
        self.assertEqual([[(kernel["name"], kernel["function"]) for kernel in row["kernels"]]
                          for row in self.images()],
                         [[("fill_1_0", True), ("spin_1_0", False)], [("scale_1_1", True)]])

    def test_a_handle_that_comes_again_is_its_latest_owners(self):
        """The simulated driver uses the memory of what was unloaded for what is loaded next."""
        self.load(f"lib={PLUGIN}:0", "unload", f"lib={PLUGIN}:1", "kernel=fill_1_1")
        self.assertEqual([len(row["kernels"]) for row in self.images()], [0, 1])

    def test_what_is_loaded_twice_is_listed_once(self):
        self.load(f"lib={PLUGIN}:0", f"heap={HEAP}", f"lib={PLUGIN}:0", f"heap={HEAP}")
        self.assertEqual([row["loads"] for row in self.images()], [2, 2])

    def test_loads_of_many_threads_at_once(self):
        self.load(f"threads={PLUGIN}")
        rows = self.images()
        self.assertEqual(len({row["offset"] for row in rows}), 8)
        self.assertEqual(sum(row["loads"] for row in rows), 32)

    def test_fork_children_record_nothing(self):
        self.load(f"lib={PLUGIN}:0", f"fork={PLUGIN}:1")
        self.assertEqual(len(self.images()), 1)

    def test_nothing_is_recorded_where_speculation_is_off(self):
        self.load(f"lib={PLUGIN}:0", HEARTH_SPECULATE="off")
        self.assertEqual(self.images(), [])

    def test_loads_that_fail_are_not_recorded(self):
        self.load("file=/gone/add.simcuda", f"lib={PLUGIN}:0")
        self.assertEqual(len(self.images()), 1)

    def test_a_file_that_is_gone_by_then_is_not_listed(self):
        (self.dir / "a").write_text("SIMCUDA1\nkernel add add\n")
        plain = self.dir / "plain"
        for env in (self.env, self.preload):
            shutil.copy(self.dir / "a", plain)
            done = self.run_program(sys.executable, self.script, f"file={plain}",
                                    f"replace={plain}:{self.dir / 'b'}", f"lib={PLUGIN}:0",
                                    env=env)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual([row["file"] for row in self.images()], [str(PLUGIN)])

    def test_where_there_are_too_many_kernels_images_are_still_learned(self):
        text = "".join(f"|kernel k{number} add" for number in range(4096))
        self.load(f"heap=SIMCUDA1{text}", "many=4096:k", f"heap={HEAP}", "kernel=heap",
                  f"lib={PLUGIN}:0")
        self.assertEqual([len(row["kernels"]) for row in self.images()], [4096, 0, 0])

    def test_long_names_leave_room_for_paths(self):
        name = 120 * "k"
        text = "".join(f"|kernel {name}{number} add" for number in range(4096))
        path = self.dir / "kernels.simcuda"
        path.write_text(f"SIMCUDA1{text}".replace("|", "\n"))
        self.load(f"filelib={path}", f"many=4096:{name}", f"lib={PLUGIN}:0")
        rows = self.images()
        self.assertEqual([row["file"] for row in rows], [str(path), str(PLUGIN)])
        self.assertIn(len(rows[0]["kernels"]), range(3000, 4096))

    def test_learning_ends_where_there_are_too_many_images(self):
        done = self.start(*(f"heap={HEAP}|kernel k{number} add" for number in range(513)), "ready",
                          HEARTH_LOG_LEVEL="debug")
        messages = b""
        while b"learning is over" not in messages:
            messages += done.stderr.readline()
        self.assertEqual(len(self.images()), 512)

    def start(self, *words, **env):
        process = subprocess.Popen([sys.executable, self.script, *words],
                                   env={**self.preload, **env}, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if line == b"ready\n":
                return process
        self.fail(process.stderr.read().decode())

    def wait_for(self, is_there):
        end = time.monotonic() + harness.DEADLINE_S
        while not is_there():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_one_that_is_killed_once_it_was_quiet(self):
        done = self.start(f"lib={PLUGIN}:0", f"heap={HEAP}", "ready", f"lib={PLUGIN}:1", "ready")
        self.wait_for(lambda: len(self.images()) == 2)
        done.stdin.write(b"\n")
        done.stdin.flush()
        self.wait_for(lambda: len(self.images()) == 3)
        self.assertEqual([row["unused_runs"] for row in self.images()], [0, 0, 0])
        done.send_signal(signal.SIGKILL)
        done.wait()
        self.assertEqual(len(self.images()), 3)


class Kept(ImagesTest):
    def test_what_was_never_asked_for_again_goes(self):
        self.load(f"lib={PLUGIN}:0", f"lib={PLUGIN}:1")
        for run in range(1, AGE_MAX + 1):
            self.load(f"lib={PLUGIN}:1")
            self.assertEqual([row["unused_runs"] for row in self.images()], [0, run])
        self.load(f"lib={PLUGIN}:1")
        self.assertEqual(len(self.images()), 1)

    def test_a_run_that_loads_nothing_counts(self):
        self.load(f"lib={PLUGIN}:0")
        self.load()
        self.assertEqual([row["unused_runs"] for row in self.images()], [1])

    def test_a_run_like_the_one_before_writes_nothing(self):
        words = (f"lib={PLUGIN}:0", "kernel=fill_1_0", f"heap={HEAP}")
        self.load(*words)
        before = self.images()
        self.load(*words)
        self.assertEqual([{**row, "load_us": 0} for row in self.images()],
                         [{**row, "load_us": 0} for row in before])

    def test_a_copy_elsewhere_is_the_same_file(self):
        copy = self.dir / "elsewhere" / "renamed.so"
        copy.parent.mkdir()
        shutil.copyfile(PLUGIN, copy)
        os.utime(copy, (1, 1))
        self.load(f"lib={PLUGIN}:0")
        self.load(f"lib={copy}:0")
        (row,) = self.images()
        self.assertEqual((row["file"], row["unused_runs"]), (str(copy), 0))

    def test_another_build_at_the_same_path_is_another_file(self):
        path = self.dir / "library.so"
        for plugin in (PLUGIN, OTHER):
            shutil.copyfile(plugin, path)
            self.load(f"lib={path}:0")
        rows = self.images()
        self.assertEqual([row["unused_runs"] for row in rows], [0, 1])
        self.assertNotEqual(rows[0]["build_id"], rows[1]["build_id"])

    def test_another_build_of_the_driver_has_its_own_list(self):
        self.load(f"lib={PLUGIN}:0")
        (section,) = self.sections()
        build = bytes.fromhex(section["driver_build"])
        data = harness.SIM.read_bytes()
        self.assertEqual(data.count(build), 1)
        (self.dir / "driver").mkdir()
        (self.dir / "driver/libcuda.so.1").write_bytes(data.replace(build, build[::-1]))
        self.load(f"lib={PLUGIN}:1", HEARTH_DRIVER=str(self.dir / "driver/libcuda.so.1"))
        self.load(f"lib={PLUGIN}:0")
        rows = {row["driver_build"]: row["images"] for row in self.sections()}
        self.assertEqual(set(rows), {build.hex(), build[::-1].hex()})
        for images in rows.values():
            self.assertEqual([row["unused_runs"] for row in images], [0])

    def test_a_damaged_list_is_none_and_is_learned_anew(self):
        self.load(f"lib={PLUGIN}:0")
        (path,) = (self.states / "profiles").iterdir()
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        self.load(f"lib={PLUGIN}:1")
        self.assertEqual(len(self.images()), 1)

    def test_forgetting_all_empties_the_store(self):
        self.load(f"heap={HEAP}")
        self.profile("forget", "--all")
        self.assertEqual(list((self.states / "images").iterdir()), [])

    def test_show_lists_them(self):
        self.load(f"lib={PLUGIN}:0", "kernel=fill_1_0", f"heap={PTX}")
        text = self.profile("show", "loader.py").stdout.decode()
        self.assertIn("image_plugin_1.so", text)
        self.assertIn("compiled: not loaded ahead", text)
        self.assertIn("    1  fill_1_0\n", text)


@harness.plain_only  # imports are redirected
class HandedOver(ImagesTest):
    def setUp(self):
        super().setUp()
        subprocess.run([harness.PROGRAMS / "undo_check", harness.SIM, self.states], check=True,
                       stdout=subprocess.DEVNULL, timeout=harness.DEADLINE_S, env={
                           "SIMCUDA_SPEED": "0", "SIMCUDA_MACHINE": str(self.dir / "machine")})

    def count(self, log):
        return log.read_text().count('"how":"prefetched"')

    def test_a_copy_of_the_tree_is_found_before_it_is_mapped(self):
        """Other inodes, times and prefix; the program is the same script."""
        old, new = self.dir / "old", self.dir / "new/prefix"
        for folder in ("bin", "lib"):
            (old / folder).mkdir(parents=True)
        (old / "bin/python3").symlink_to(Path(sys.executable).resolve())
        shutil.copyfile(PLUGIN, old / "lib/x.so")
        shutil.copyfile(BARE, old / "lib/y.so")
        shutil.copytree(old, new, symlinks=True)
        for tree in (old, new):
            if tree == new:
                shutil.rmtree(old)
                os.utime(new / "lib/x.so", (1, 1))
            log = self.dir / f"log-{tree.name}"
            done = self.run_program(
                tree / "bin/python3", self.script, "sleep", f"lib={tree}/lib/x.so:7",
                f"kept={tree}/lib/y.so:7",
                env={**self.preload, "HEARTH_LOG": str(log), "SIMCUDA_SPEED": "1"})
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.count(self.dir / "log-old"), 0)
        self.assertEqual(self.count(log), 2, log.read_text())

    def test_what_was_loaded_ahead_is_recorded_like_the_rest(self):
        """Also what lies on the heap, of which no second copy is made."""
        words = (f"kept={PLUGIN}:0", "kernel=fill_1_0", f"heap={HEAP}", f"lib={BARE}:1",
                 "kernel=spin_3_1", "made")
        self.load(*words)
        before = self.images()
        self.assertEqual(len(before), 3)
        for run in range(3):
            log = self.dir / f"log-{run}"
            self.load("sleep", *words, HEARTH_LOG=str(log))
            self.assertEqual([{**row, "load_us": 0} for row in self.images()],
                             [{**row, "load_us": 0} for row in before])
        self.assertGreater(self.count(log), 0)


class Moved(ImagesTest):
    def bundle(self):
        self.load(f"heap={HEAP}", f"lib={PLUGIN}:0")
        bundle = self.dir / "loader.profile"
        self.profile("export", "--with-images", "loader.py", bundle)
        return bundle

    def test_a_profile_with_its_images(self):
        bundle, state = self.bundle(), self.dir / "other"
        self.profile("import", bundle, state=state)
        self.assertEqual(self.images(state), self.images())
        (path,) = (state / "images").iterdir()
        self.assertEqual(path.read_bytes(), content(HEAP))
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_without_its_images(self):
        self.load(f"heap={HEAP}")
        exported, state = self.dir / "loader.profile", self.dir / "other"
        self.profile("export", "loader.py", exported)
        self.profile("import", exported, state=state)
        self.assertEqual(self.images(state), self.images())
        self.assertFalse((state / "images").exists())

    def test_for_all_users_of_an_image(self):
        bundle, into = self.bundle(), self.dir / "share/profiles"
        self.profile("import", "--into", into, bundle)
        for folder in (into, self.dir / "share/images"):
            (path,) = folder.iterdir()
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o644)
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o755)

    def test_damaged_and_foreign_bundles_are_refused(self):
        bundle, state = self.bundle(), self.dir / "other"
        good = bundle.read_bytes()
        for what, data in (("cut", good[:-1]), ("changed", good[:-1] + b"x"),
                           ("cut head", good[:20]), ("profile", good[:200] + b"x" + good[201:])):
            with self.subTest(what=what):
                bundle.write_bytes(data)
                failed = self.profile("import", bundle, state=state, status=1)
                self.assertIn(str(bundle).encode(), failed.stderr)
                self.assertFalse((state / "profiles").exists())
        bundle.write_bytes(good)
        bundle.chmod(0o622)
        self.profile("import", bundle, state=state, status=1)


if __name__ == "__main__":
    harness.main()
