"""`hearth doctor --root DIR`: the machine's side, on trees that stand for machines."""
import json
import os
import shutil

import harness

VERSION = ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (x@)  \n"
           "GCC version:  gcc version 15.3.0 (GCC) \n")
NODES = ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1")
LOADER = "lib64/ld-linux-x86-64.so.2"
NOBODY = 65534
# As root they become another user, since root may do anything.
as_another_or_not_root = (harness.as_another if os.geteuid() == 0 else lambda test: test)


class Machine(harness.SystemTest):
    def setUp(self):
        super().setUp()
        self.dir.chmod(0o755)
        self.root = self.dir / "root"
        self.root.mkdir()
        del self.env["HEARTH_DRIVER"]
        self.env.update(HOME="/home/user")

    def put(self, path, text="", mode=0o644):
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            whole.write_bytes(text)
        else:
            whole.write_text(text)
        whole.chmod(mode)
        return whole

    def driver(self, folder="usr/lib/x86_64-linux-gnu", version="580.159.04"):
        """A library under the driver's name, as packages lay it out."""
        shutil.copy(harness.SIM, self.put(f"{folder}/libcuda.so.{version}"))
        (self.root / folder / "libcuda.so.1").symlink_to(f"libcuda.so.{version}")

    def machine(self, version="580.159.04"):
        """One with two GPUs, all in order."""
        self.put("proc/driver/nvidia/version", VERSION.format(version))
        for node in NODES:
            self.put(f"dev/{node}", mode=0o666)
        self.driver()

    def doctor(self, *words, env=None, **options):
        done = self.run_program(harness.HEARTH, "doctor", "--json", "--root", self.root, *words,
                                env=env, **options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        answer = json.loads(done.stdout)
        return done.returncode, {finding["id"]: finding for finding in answer["findings"]}

    def severity(self, name, *words, **options):
        return self.doctor(*words, **options)[1].get(name, {}).get("severity")

    def text(self, name, **options):
        return self.doctor(**options)[1][name]["text"]

    def test_a_machine_in_order(self):
        self.machine()
        self.assertEqual(self.text("driver"),
                         "580.159.04, /usr/lib/x86_64-linux-gnu/libcuda.so.1")
        self.assertIn("2 GPU nodes", self.text("device-nodes"))

    def test_the_driver_is_found_through_ld_so_conf(self):
        self.machine()
        shutil.rmtree(self.root / "usr/lib")
        self.driver("opt/nvidia/lib")
        self.put("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
        self.put("etc/ld.so.conf.d/nvidia.conf", "# the driver\n/opt/nvidia/lib # here\n")
        self.assertIn("/opt/nvidia/lib/libcuda.so.1", self.text("driver"))

    def test_the_driver_is_found_where_container_tools_put_it(self):
        self.machine()
        shutil.rmtree(self.root / "usr/lib")
        self.driver("usr/local/nvidia/lib64")
        self.assertIn("/usr/local/nvidia/lib64/", self.text("driver"))

    def test_no_gpu(self):
        status, findings = self.doctor()
        self.assertEqual((status, findings["no-gpu"]["severity"]), (1, "problem"))

    def test_no_gpu_means_not_intercepted(self):
        shutil.copy("/bin/true", self.put("bin/true", mode=0o755))
        shutil.copy(f"/{LOADER}", self.put(LOADER))
        self.put("usr/lib/hearth/libhearth.so", harness.SIM.read_bytes())
        status, findings = self.doctor("--", "/bin/true")
        self.assertEqual((status, findings["no-gpu"]["severity"]), (1, "problem"))
        self.machine()
        status, findings = self.doctor("--", "/bin/true")
        self.assertEqual((status, findings["command"]["severity"]), (0, "ok"), findings)

    def test_a_library_for_every_program_needs_no_environment(self):
        """/etc/ld.so.preload survives `env -i`; and as everywhere, its file must be there."""
        self.machine()
        for name in ("true", "env"):
            shutil.copy(f"/bin/{name}", self.put(f"bin/{name}", mode=0o755))
        shutil.copy(f"/{LOADER}", self.put(LOADER))
        words = ["--", "/bin/env", "-i", "/bin/true"]
        self.put("usr/lib/hearth/libhearth.so", harness.SIM.read_bytes())
        self.assertEqual(self.severity("command", *words), "problem")
        self.put("etc/ld.so.preload", "/usr/lib/hearth/libhearth.so\n")
        self.assertEqual(self.severity("command", *words), "ok")
        (self.root / "usr/lib/hearth/libhearth.so").unlink()
        self.assertEqual(self.severity("preload", *words), "problem")

    def test_a_stub_that_comes_first(self):
        self.machine()
        shutil.copy(harness.SIM, self.put("opt/cuda/lib64/stubs/libcuda.so.1"))
        env = {**self.env, "LD_LIBRARY_PATH": "/opt/cuda/lib64/stubs"}
        self.assertEqual(self.severity("driver", env=env), "problem")

    def test_a_module_without_a_library(self):
        self.machine()
        shutil.rmtree(self.root / "usr/lib")
        self.assertEqual(self.severity("driver"), "problem")

    def test_module_and_library_of_different_versions(self):
        self.machine(version="570.00.01")
        self.assertEqual(self.severity("driver"), "problem")
        self.assertIn("570.00.01", self.text("driver"))
        self.assertIn("580.159.04", self.text("driver"))

    def test_a_forward_compatible_library_may_be_newer(self):
        self.machine(version="535.00.01")
        shutil.rmtree(self.root / "usr/lib")
        self.driver("usr/local/cuda-13/compat")
        self.put("etc/ld.so.conf", "/usr/local/cuda-13/compat\n")
        self.assertEqual(self.severity("driver"), "ok")

    def test_a_missing_device_node(self):
        for node in ("nvidiactl", "nvidia-uvm"):
            with self.subTest(node=node):
                self.machine()
                (self.root / "dev" / node).unlink()
                self.assertEqual(self.severity("device-nodes"), "problem")
                self.assertIn(node, self.text("device-nodes"))
                shutil.rmtree(self.root)
                self.root.mkdir()

    def test_no_gpu_node(self):
        self.machine()
        for node in ("nvidia0", "nvidia1"):
            (self.root / "dev" / node).unlink()
        self.assertEqual(self.severity("device-nodes"), "problem")

    @as_another_or_not_root
    def test_a_node_that_may_not_be_opened(self):
        self.machine()
        (self.root / "dev/nvidia1").chmod(0o600 if os.geteuid() == 0 else 0)
        options = {} if os.geteuid() else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.assertEqual(self.severity("device-nodes", **options), "problem")
        self.assertIn("nvidia1: Permission denied", self.text("device-nodes", **options))

    def test_wsl2_and_jetson_are_named(self):
        for node, name in (("dxg", "WSL2"), ("nvmap", "Jetson"), ("nvhost-ctrl", "Jetson")):
            with self.subTest(node=node):
                path = self.put(f"dev/{node}", mode=0o666)
                self.assertEqual(self.severity("platform"), "warning")
                self.assertIn(name, self.text("platform"))
                path.unlink()

    def test_a_container_without_a_gpu(self):
        self.put(".dockerenv")
        self.assertEqual(self.severity("container"), "warning")
        self.assertIn("NVIDIA_VISIBLE_DEVICES is unset", self.text("container"))
        self.machine()
        self.assertEqual(self.severity("container"), "ok")

    def test_a_container_that_was_given_no_device_or_no_library(self):
        self.put("run/.containerenv")
        self.machine()
        self.assertEqual(self.severity("container", env={
            **self.env, "NVIDIA_VISIBLE_DEVICES": "void"}), "warning")
        self.assertEqual(self.severity("container", env={
            **self.env, "NVIDIA_DRIVER_CAPABILITIES": "utility"}), "problem")

    def test_kubernetes_by_its_cgroup(self):
        self.put("proc/1/cgroup", "0::/kubepods.slice/kubepods-burstable.slice/x\n")
        self.assertIn("kubernetes", self.text("container"))

    def test_the_jit_cache(self):
        (self.root / "home/user").mkdir(parents=True)
        (self.root / "home/user").chmod(0o777)
        self.assertEqual(self.text("jit-cache"), "/home/user/.nv/ComputeCache")
        self.assertEqual(self.severity("jit-cache"), "ok")
        self.assertEqual(self.severity("jit-cache", env={
            **self.env, "CUDA_CACHE_DISABLE": "1"}), "warning")
        self.assertIn("/cache", self.text("jit-cache", env={
            **self.env, "CUDA_CACHE_PATH": "/cache"}))
        env = dict(self.env)
        del env["HOME"]
        self.assertEqual(self.severity("jit-cache", env=env), "warning")

    @as_another_or_not_root
    def test_a_jit_cache_that_can_not_be_written(self):
        (self.root / "home/user").mkdir(parents=True)
        (self.root / "home/user").chmod(0o555)
        options = {} if os.geteuid() else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.assertEqual(self.severity("jit-cache", **options), "warning")

    def test_links_stay_inside_the_root(self):
        self.machine()
        link = self.root / "usr/lib/x86_64-linux-gnu/libcuda.so.1"
        link.unlink()
        link.symlink_to("/../../../../usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04")
        self.assertEqual(self.severity("driver"), "ok")

    def test_a_fifo_or_a_folder_in_a_files_place_does_no_harm(self):
        os.makedirs(self.root / "proc/driver/nvidia/version")
        os.mkfifo(self.put("etc/x").with_name("ld.so.conf"))
        self.doctor()


if __name__ == "__main__":
    harness.main()
